// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: compares an expectation with a snapshot and makes the report.

use std::collections::BTreeSet;

use super::checks::Id;
use super::finding::{Finding, Status};
use super::lookup::Lookup;
use super::object::{Bond, Interface, Ipoib, Link, Object, Port, Root, Server, findings};
use super::report::{LinkReport, ModuleReport, OtherPorts, Report, RootReport, ServerReport};
use super::requirement::{is_met, mark_uncounted, shortfall, spared, whole};
use super::{link, unread};
use crate::SCHEMA;
use crate::facts::cable::cable;
use crate::facts::granted::expected;
use crate::facts::{Facts, Function, Netdev, PortRef, Unread, rules, select};
use crate::rdma::types::LinkLayer;
use crate::wish::bond::{BondFacts, BondWish};
use crate::wish::expectation::{
    Expectation, LinkWish, ModuleWish, Require, RootWish, ServerWish, Target,
};
use crate::wish::ipoib::IpoibWish;

/// Compares the snapshot with the expectation. No I/O, no clock; linear in the number of ports.
pub fn verify(expectation: &Expectation, facts: &Facts) -> Report {
    let lookup = Lookup::new(expectation, facts);
    let modules: Vec<ModuleReport> = expectation
        .modules
        .iter()
        .flat_map(|wish| module(wish, facts))
        .collect();
    let mut links = Vec::new();
    for wish in &expectation.links {
        link(wish, &lookup, &mut links);
    }
    let require = expectation.require;
    mark_uncounted(expectation, &lookup, &mut links);
    match &expectation.any_port {
        Some(wish) if !wish.reserve => any_port(wish, expectation, &lookup, &mut links),
        Some(wish) => {
            if !is_met(require, &links, LinkReport::is_good) {
                let others = other_ports(wish, &lookup, &links);
                links.extend(others.into_iter().filter(LinkReport::is_good));
            }
            let unread = unread::counted(expectation, &links, facts);
            links.extend(unread.into_iter().map(|unread| unknown_port(wish, unread)));
        }
        None => {}
    }
    let is_counted = unread::counted(expectation, &links, facts).is_empty();
    let connected = is_counted && is_met(require, &links, LinkReport::is_good);
    let servers = expectation.servers.iter();
    let servers = servers.flat_map(|wish| server(wish, connected, facts));
    let servers = spared(expectation, servers.collect());
    let answered = servers.iter().all(ServerReport::is_answered);
    let root = expectation
        .root
        .as_ref()
        .map(|wish| root(wish, &links, facts));
    let carried = root.as_ref().is_none_or(RootReport::is_good);
    let satisfied = connected && answered && carried;
    let mut report = Report {
        schema: SCHEMA,
        boot_id: facts.boot_id.clone(),
        taken_ns: facts.taken_ns,
        status: Status::Unknown,
        satisfied,
        require: expectation.requirement(),
        shortfall: shortfall(require, &links, facts),
        modules,
        links,
        others: OtherPorts::of(facts),
        servers,
        root,
        complaints: [
            expectation.complaints.clone(),
            lookup.lost_rates(expectation),
        ]
        .concat(),
    };
    report.status = whole(expectation, &report, facts);
    report
}

fn module(wish: &ModuleWish, facts: &Facts) -> Vec<ModuleReport> {
    let object = Object {
        module: Some(wish),
        ..Object::default()
    };
    let report = |finding| ModuleReport {
        name: wish.name.clone(),
        requested_by: wish.requested_by.clone(),
        finding,
    };
    findings(&object, facts).into_iter().map(report).collect()
}

fn server(wish: &ServerWish, is_connected: bool, facts: &Facts) -> Vec<ServerReport> {
    let object = Object {
        server: Some(Server { wish, is_connected }),
        ..Object::default()
    };
    let report = |finding| ServerReport {
        server: wish.server,
        requested_by: wish.requested_by.clone(),
        finding,
    };
    findings(&object, facts).into_iter().map(report).collect()
}

fn root(wish: &RootWish, links: &[LinkReport], facts: &Facts) -> RootReport {
    let object = Object {
        root: Some(Root { wish, links }),
        ..Object::default()
    };
    RootReport {
        requested_by: wish.requested_by.clone(),
        findings: findings(&object, facts),
    }
}

/// One report for each port that matches the wish; if no port matches, one report that says so.
fn link(wish: &LinkWish, lookup: &Lookup<'_>, out: &mut Vec<LinkReport>) {
    if wish.refused.is_some() {
        if is_driven(wish, lookup) {
            // The driver is there after all.
            let possible = LinkWish {
                refused: None,
                ..wish.clone()
            };
            return link(&possible, lookup, out);
        }
        out.push(without_port(wish, lookup));
        return;
    }
    if let (Some(bond), Some(ipoib)) = (&wish.bond, &wish.ipoib) {
        out.push(on_bond(wish, (bond, ipoib), lookup));
        return;
    }
    let found = lookup.ports.of(wish);
    if rules::is_ambiguous(wish, &found) {
        // None of these ports counts.
        let finding = link::ambiguous(wish, &found);
        let failed = |port| LinkReport::new(wish, Some(port), vec![finding.clone()]);
        return out.extend(found.into_iter().map(failed));
    }
    if found.is_empty() {
        out.push(without_port(wish, lookup));
    }
    for port in found {
        out.push(on_port(wish, lookup, port));
    }
}

/// Whether the port or bond is there for which the initramfs had no driver.
fn is_driven(wish: &LinkWish, lookup: &Lookup<'_>) -> bool {
    let is_there = || match &wish.bond {
        Some(_) => lookup.facts.netdev(wish.target.as_str()).is_some(),
        None => !lookup.ports.of(wish).is_empty(),
    };
    wish.undriven && is_there()
}

fn without_port(wish: &LinkWish, lookup: &Lookup<'_>) -> LinkReport {
    let object = Object {
        link: Some(Link { wish, port: None }),
        ..Object::default()
    };
    LinkReport::new(wish, None, findings(&object, lookup.facts))
}

/// A bond is reported as a separate link, which has an interface and no port.
fn on_bond(
    wish: &LinkWish,
    (bond, ipoib): (&BondWish, &IpoibWish),
    lookup: &Lookup<'_>,
) -> LinkReport {
    let facts = lookup.facts;
    let slave_of = |slave: &String| {
        let link = lookup.links.iter().find(|link| link.target == *slave)?;
        let ipoib = link.ipoib.as_ref()?;
        let mut ports = lookup.ports.of(link).into_iter();
        ports.find_map(|port| Some((ipoib, rules::interface(link, port, facts)?)))
    };
    let slaves: Vec<(String, Option<String>)> = bond
        .slaves
        .iter()
        .map(|slave| {
            let name = slave_of(slave).map(|(_, netdev)| netdev.ifname.clone());
            (slave.clone(), name)
        })
        .collect();
    let refused_mode = |slave: &String| {
        let (ipoib, netdev) = slave_of(slave)?;
        rules::mode(ipoib.mode?, netdev).err()
    };
    let reasons: Option<Vec<String>> = bond.slaves.iter().map(refused_mode).collect();
    let impossible = reasons.and_then(|reasons| reasons.into_iter().next());
    let found = facts.netdev(wish.target.as_str());
    let state = found.and_then(|netdev| netdev.bond.as_ref());
    let absent = (Netdev::default(), BondFacts::default());
    let (netdev, state) = found.zip(state).unwrap_or((&absent.0, &absent.1));
    let name = found.map(|netdev| netdev.ifname.as_str());
    let granted = expected(ipoib, netdev, facts);
    let object = Object {
        bond: Some(Bond {
            name: wish.target.as_str(),
            wish: bond,
            slaves: &slaves,
            impossible,
            netdev,
            found: state,
        }),
        interface: Some(Interface {
            wish: &granted,
            netdev,
            name,
            is_bond: true,
        }),
        ..Object::default()
    };
    LinkReport {
        interface: name.map(str::to_owned),
        ..LinkReport::new(wish, None, findings(&object, facts))
    }
}

fn on_port(wish: &LinkWish, lookup: &Lookup<'_>, port: PortRef<'_>) -> LinkReport {
    let facts = lookup.facts;
    let wish = &lookup.with_layer(wish, port);
    let is_expected = rules::wants_interface(wish, port, &lookup.named);
    let ipoib = wish.ipoib.as_ref().filter(|_| is_expected);
    let found = ipoib.and_then(|_| rules::interface(wish, port, facts));
    let absent = Netdev::default();
    let netdev = found.unwrap_or(&absent);
    let name = found.map(|netdev| netdev.ifname.as_str());
    let granted = ipoib.map(|wish| expected(wish, netdev, facts));
    let interface = granted.as_ref().map(|wish| Interface {
        wish,
        netdev,
        name,
        is_bond: false,
    });
    let requested = ipoib.and_then(|_| rules::name_of_interface(wish, port));
    // The ports of a bond count each.
    let of_bond = select::joined_bond(wish, facts).and(wish.identity.clone());
    let least_rate = lookup.least_rate(wish, port);
    let object = Object {
        link: Some(Link {
            wish,
            port: Some(port),
        }),
        port: Some(Port {
            wish,
            found: port,
            least_rate,
            faster: lookup.siblings.faster_than(port),
        }),
        ipoib: interface.map(|interface| Ipoib { interface, port }),
        interface,
        ..Object::default()
    };
    let report = LinkReport::new(wish, Some(port), findings(&object, facts));
    LinkReport {
        interface: name.map(str::to_owned),
        absent: requested
            .filter(|_| name.is_none() && wish.identity.is_some())
            .map(str::to_owned),
        megabits: least_rate,
        cable: cable(port, facts),
        identity: of_bond.or(report.identity),
        ..report
    }
}

/// One report for each port that no other wish matched; if there is no port, one report that says
/// so.
fn any_port(
    wish: &LinkWish,
    expectation: &Expectation,
    lookup: &Lookup<'_>,
    out: &mut Vec<LinkReport>,
) {
    out.extend(other_ports(wish, lookup, out));
    let unread = unread::hidden(expectation, out, lookup.facts);
    out.extend(unread.into_iter().map(|unread| unknown_port(wish, unread)));
    if out.is_empty() && wish.refused.is_some() {
        out.push(without_port(wish, lookup));
    } else if expectation.require == Require::All {
        bare_functions(wish, lookup.facts, out);
        out.extend(lost_cards(wish, &expectation.cards, lookup));
    }
    if out.is_empty() {
        // Certain even if other files are unreadable: the devices were listed.
        let finding = link::no_candidate(wish, lookup.facts);
        out.push(LinkReport::new(wish, None, vec![finding]));
    }
}

/// The report that a file is unread which shows whether a port counts.
fn unknown_port(wish: &LinkWish, unread: &Unread) -> LinkReport {
    LinkReport::new(wish, None, vec![Finding::unread(Id::DevicePresent, unread)])
}

/// One report for each port that none of `known` is about.
fn other_ports(wish: &LinkWish, lookup: &Lookup<'_>, known: &[LinkReport]) -> Vec<LinkReport> {
    let named = known.iter().filter_map(|link| link.name.as_ref());
    let named: BTreeSet<&String> = named.collect();
    let ports = lookup.ports.of(wish).into_iter();
    let others = ports.filter(|port| !named.contains(&port.name()));
    others.map(|port| on_port(wish, lookup, port)).collect()
}

/// Every port: one report for each HCA of the handover that had no RDMA device and is gone from the bus.
fn lost_cards(wish: &LinkWish, cards: &[String], lookup: &Lookup<'_>) -> Vec<LinkReport> {
    let facts = lookup.facts;
    let is_there = |address: &str| {
        let mut devices = facts.devices.iter();
        facts.function(address).is_some()
            || devices.any(|device| device.bus_address.as_deref() == Some(address))
    };
    let lost = cards.iter().filter(|address| !is_there(address));
    let report = |address: &String| {
        let card = LinkWish {
            target: Target::from(format!("pci={address}")),
            requested_by: wish.requested_by.clone(),
            required: true,
            ..LinkWish::default()
        };
        without_port(&card, lookup)
    };
    lost.map(report).collect()
}

/// Every port: one report for each HCA that must have an RDMA device and has none.
fn bare_functions(wish: &LinkWish, facts: &Facts, out: &mut Vec<LinkReport>) {
    let selector = |function: &Function| format!("pci={}", function.address);
    let is_excepted = |text: &str| wish.except.iter().any(|except| *except == *text);
    let is_meant = |function: &&Function| {
        let may_be = function.infiniband || function.is_of_both() || function.recovery;
        let is_of_layer = may_be || wish.link_layer != Some(LinkLayer::InfiniBand);
        let is_other = function.infiniband && wish.link_layer == Some(LinkLayer::Ethernet);
        is_of_layer && !is_other && !is_excepted(&selector(function))
    };
    let functions = facts.functions.iter().filter(|f| f.is_missing());
    for function in functions.filter(is_meant) {
        let link = LinkWish {
            target: Target::from(selector(function)),
            requested_by: wish.requested_by.clone(),
            required: true,
            ..LinkWish::default()
        };
        let object = Object {
            function: Some(function),
            ..Object::default()
        };
        out.push(LinkReport {
            bus_address: Some(function.address.clone()),
            ..LinkReport::new(&link, None, findings(&object, facts))
        });
    }
}
