// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: compares an expectation with a snapshot and makes the report.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::checks::Id;
use super::object::{Bond, Interface, Ipoib, Link, Object, Port, Root, Server, findings};
use super::siblings::Siblings;
use super::{port, unread};
use crate::SCHEMA;
use crate::facts::cable::{Cable, cable};
use crate::facts::granted::expected;
use crate::facts::select::{self, Pinned, Ports};
use crate::facts::{Facts, Function, Netdev, PortRef, Unread, functions, rules};
use crate::rdma::types::{Identity, LinkLayer};
use crate::verify::finding::{Finding, Status};
use crate::verify::report::{
    LinkReport, ModuleReport, OtherPorts, Report, RootReport, ServerReport,
};
use crate::wish::bond::{BondFacts, BondWish};
use crate::wish::expectation::{
    Expectation, LinkWish, ModuleWish, PortPin, Rate, Require, RootWish, ServerWish, Target,
};
use crate::wish::ipoib::IpoibWish;
use crate::wish::selector::Selector;

/// Results that `verify` uses more than once.
struct Lookup<'a> {
    facts: &'a Facts,
    /// The named links.
    links: &'a [LinkWish],
    ports: Ports<'a>,
    siblings: Siblings<'a>,
    rates: Vec<LeastRate>,
    /// The names of ports, and the link layer requested of them; none: any.
    layers: Vec<(BTreeSet<String>, Option<LinkLayer>)>,
    /// The ports whose interface is named by a link.
    named: BTreeSet<String>,
}

/// The minimum rate of an `rd.ib.rate=`.
struct LeastRate {
    /// The names of the ports; none: all ports.
    ports: Option<BTreeSet<String>>,
    /// False: some of the ports may be others that share their identity.
    is_certain: bool,
    /// In Mb/s.
    megabits: u32,
}

impl LeastRate {
    /// Of a port: that of the last matching argument, or the highest one if it is not certain which
    /// ports the last arguments match.
    fn of(port: &str, rates: &[LeastRate]) -> Option<u32> {
        let is_of = |rate: &&LeastRate| {
            let mut ports = rate.ports.iter();
            ports.all(|ports| ports.contains(port))
        };
        let mut least = None;
        for rate in rates.iter().rev().filter(is_of) {
            least = least.max(Some(rate.megabits));
            if rate.is_certain {
                break;
            }
        }
        least
    }
}

impl<'a> Lookup<'a> {
    fn new(expectation: &'a Expectation, facts: &'a Facts) -> Lookup<'a> {
        let ports = Ports::new(facts);
        let meant = |pin: Option<&PortPin>, selector: &Selector| match pin {
            Some(pin) => ports.of_pin(pin),
            None => Pinned {
                ports: select::ports(selector, facts),
                is_certain: true,
            },
        };
        let names = |ports: &[PortRef<'_>]| ports.iter().map(PortRef::name).collect();
        let rates = expectation.rates.iter().map(|rate| {
            let selector = rate.selector.as_ref();
            let meant = selector.map(|selector| meant(rate.port.as_ref(), selector));
            LeastRate {
                is_certain: meant.as_ref().is_none_or(|meant| meant.is_certain),
                ports: meant.map(|meant| names(&meant.ports)),
                megabits: rate.megabits,
            }
        });
        let rates = rates.collect();
        let layers = expectation.link_layers.iter().map(|layer| {
            let meant = meant(layer.port.as_ref(), &layer.selector);
            (names(&meant.ports), layer.link_layer)
        });
        let layers = layers.collect();
        Lookup {
            facts,
            links: &expectation.links,
            named: rules::named_interfaces(expectation, &ports),
            ports,
            siblings: Siblings::of(facts),
            rates,
            layers,
        }
    }

    /// The minimum rates of no port, one line each: nothing is checked against them. A port that
    /// was there when the links were handed over may be gone: its own checks report that.
    fn lost_rates(&self, expectation: &Expectation) -> Vec<String> {
        let rates = expectation.rates.iter().zip(&self.rates);
        let is_lost = |found: &LeastRate| found.ports.as_ref().is_some_and(BTreeSet::is_empty);
        let lost = rates.filter(|(rate, found)| rate.port.is_none() && is_lost(found));
        let line = |(rate, _): (&Rate, _)| {
            let (port, gbps) = (rate.selector.as_ref()?, f64::from(rate.megabits) / 1000.0);
            Some(format!("rd.ib.rate={port}={gbps}: no port is {port}"))
        };
        lost.filter_map(line).collect()
    }

    /// The wish with the link layer that `rd.ib.porttype=` requests of this port, unless the wish has
    /// one.
    fn with_layer<'w>(&self, wish: &'w LinkWish, port: PortRef<'_>) -> Cow<'w, LinkWish> {
        let name = port.name();
        let mut layers = self.layers.iter().rev();
        let requested = layers.find(|(ports, _)| ports.contains(&name));
        match requested {
            Some((_, Some(layer))) if wish.link_layer.is_none() => Cow::Owned(LinkWish {
                link_layer: Some(*layer),
                ..wish.clone()
            }),
            _ => Cow::Borrowed(wish),
        }
    }

    /// Minimum rate of this port in Mb/s.
    fn least_rate(&self, wish: &LinkWish, port: PortRef<'_>) -> Option<u32> {
        let of_port = || LeastRate::of(&port.name(), &self.rates);
        wish.megabits.or_else(of_port)
    }
}

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

/// An answer of one server of a disk is enough: then the others only warn.
fn spared(expectation: &Expectation, mut servers: Vec<ServerReport>) -> Vec<ServerReport> {
    if has_alternatives(expectation) && servers.iter().any(ServerReport::is_answered) {
        for server in servers.iter_mut().filter(|server| !server.is_answered()) {
            server.finding.status = Status::Warning;
        }
    }
    servers
}

fn has_alternatives(expectation: &Expectation) -> bool {
    expectation.servers.iter().any(|wish| wish.alternative)
}

/// Marks the links whose port is none of those that `rd.ib.require=N` counts.
fn mark_uncounted(expectation: &Expectation, lookup: &Lookup<'_>, links: &mut [LinkReport]) {
    let (Require::Count(_), Some(any)) = (expectation.require, &expectation.any_port) else {
        return;
    };
    let counted = lookup.ports.of(any);
    let counted: BTreeSet<String> = counted.iter().map(PortRef::name).collect();
    for link in links {
        let is_other = |name: &String| !counted.contains(name);
        link.uncounted |= link.name.as_ref().is_some_and(is_other);
    }
}

/// The message if fewer ports are verified than `rd.ib.require=` expects.
fn shortfall(require: Require, links: &[LinkReport], facts: &Facts) -> Option<String> {
    let Require::Count(n) = require else {
        return None;
    };
    let good = ports(links, LinkReport::is_good);
    if good >= n as usize {
        return None;
    }
    let others = ports(links, |link| !link.is_good());
    let functions = facts.functions.iter();
    let missing: Vec<&Function> = functions.filter(|f| f.is_missing()).collect();
    let mut advice = Vec::new();
    let uncounted = links.iter().filter(|link| link.uncounted && link.is_good());
    let uncounted: BTreeSet<&str> = uncounted.filter_map(|link| link.name.as_deref()).collect();
    if !uncounted.is_empty() {
        let names = Vec::from_iter(uncounted).join(", ");
        advice.push(format!("rd.ib.require= does not count {names}"));
    }
    if others > 0 {
        advice.push("the checks of the other ports name the causes".to_owned());
    }
    if !missing.is_empty() {
        let missing = functions::in_words(&missing);
        advice.push(format!("without an RDMA device: {missing}"));
    } else if good + others < n as usize {
        advice.push("look for missing HCAs and ports (ibboot status)".to_owned());
    }
    let found = match good {
        0 => "no port is verified".to_owned(),
        1 => "only 1 port is verified".to_owned(),
        good => format!("only {good} ports are verified"),
    };
    let (doubles, advice) = (shared_cables(links), advice.join("; "));
    Some(format!("{found}, expected {n}; {doubles}{advice}"))
}

/// The ports that count once because they share a cable, in words; empty without such ports.
fn shared_cables(links: &[LinkReport]) -> String {
    let mut cables: BTreeMap<&Cable, BTreeSet<&str>> = BTreeMap::new();
    for link in links.iter().filter(|link| link.is_good()) {
        if let (Some(cable), Some(name)) = (&link.cable, &link.name) {
            cables.entry(cable).or_default().insert(name);
        }
    }
    let shared = cables.into_iter().filter(|(_, names)| names.len() > 1);
    let words = |(cable, names): (&Cable, BTreeSet<&str>)| {
        let names: Vec<&str> = names.into_iter().collect();
        format!("{} {}; ", names.join(" and "), cable.words())
    };
    shared.map(words).collect()
}

/// What counts once for `rd.ib.require=N`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Counted<'a> {
    Cable(&'a Cable),
    Port(&'a Option<Identity>, Option<&'a str>),
}

/// Number of ports whose link satisfies `is_one`, as `rd.ib.require=N` counts them. Two wishes may
/// mean the same port, two RDMA devices may share one cable; a bond has no port.
pub fn ports(links: &[LinkReport], is_one: fn(&LinkReport) -> bool) -> usize {
    let ports: BTreeSet<_> = links
        .iter()
        .filter(|link| is_one(link) && link.name.is_some() && !link.uncounted)
        .map(|link| match &link.cable {
            Some(cable) => Counted::Cable(cable),
            None => Counted::Port(&link.identity, link.name.as_deref()),
        })
        .collect();
    ports.len()
}

/// Whether enough links satisfy `is_one`.
fn is_met(require: Require, links: &[LinkReport], is_one: fn(&LinkReport) -> bool) -> bool {
    match require {
        Require::Listed => links.iter().all(|link| is_one(link) || !link.required),
        Require::All => ports(links, is_one) > 0 && links.iter().all(is_one),
        Require::Count(n) => ports(links, is_one) >= n as usize,
    }
}

/// The verdict. Critical only if no content of the unreadable files could change it.
fn whole(expectation: &Expectation, report: &Report, facts: &Facts) -> Status {
    let require = expectation.require;
    let (modules, links) = (&report.modules, &report.links);
    if links.is_empty() && modules.is_empty() {
        return Status::Unknown;
    }
    // If a list of ports is unreadable, the number of ports is unknown.
    let is_hidden = !unread::hidden(expectation, &report.links, facts).is_empty();
    // These ports may be good where they are.
    let elsewhere = links.iter().filter(|link| link.is_elsewhere()).count();
    let may_be_met = match require {
        Require::All if is_hidden || elsewhere > 0 => links.iter().all(LinkReport::may_be_good),
        Require::Count(_) if is_hidden => true,
        Require::Count(n) => ports(links, LinkReport::may_be_good) + elsewhere >= n as usize,
        _ => is_met(require, links, LinkReport::may_be_good),
    };
    let failed = |server: &ServerReport| server.finding.status == Status::Critical;
    let is_wrong = !may_be_met
        || report.servers.iter().any(failed)
        || report.root.as_ref().is_some_and(RootReport::has_failed);
    let modules = modules.iter().map(|module| module.finding.status);
    let mut statuses = modules.chain(links.iter().map(|link| link.status));
    // One of several paths to the disk of the root file system is down.
    let warns = |server: &ServerReport| server.finding.status == Status::Warning;
    let has_spare = has_alternatives(expectation) && report.servers.iter().any(warns)
        || report.root.as_ref().map(RootReport::status) == Some(Status::Warning);
    let is_all_ok = !has_spare && statuses.clone().all(|status| status == Status::Ok);
    // What an invalid argument was meant to require is unknown.
    let is_any_unknown =
        !report.complaints.is_empty() || statuses.any(|status| status == Status::Unknown);
    match report.satisfied {
        false if is_wrong => Status::Critical,
        false => Status::Unknown,
        true if is_any_unknown => Status::Unknown,
        true if is_all_ok => Status::Ok,
        true => Status::Warning,
    }
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
        let finding = port::ambiguous(wish, &found);
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
    LinkReport {
        interface: name.map(str::to_owned),
        absent: requested
            .filter(|_| name.is_none() && wish.identity.is_some())
            .map(str::to_owned),
        megabits: least_rate,
        cable: cable(port, facts),
        ..LinkReport::new(wish, Some(port), findings(&object, facts))
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
        let finding = port::no_candidate(wish, lookup.facts);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_port_not_every_port_is_verified() {
        let expectation = Expectation {
            require: Require::All,
            ..Expectation::default()
        };
        let report = verify(&expectation, &Facts::default());
        assert_eq!((report.satisfied, report.status), (false, Status::Unknown));
    }

    #[test]
    fn the_last_rate_counts_and_of_uncertain_ones_the_highest() {
        let rate = |ports: &[&str], is_certain, megabits| LeastRate {
            ports: (!ports.is_empty()).then(|| ports.iter().copied().map(str::to_owned).collect()),
            is_certain,
            megabits,
        };
        let rates = [
            rate(&[], true, 100),
            rate(&["mlx5_0/1"], true, 40),
            rate(&["rxe0/1", "rxe1/1"], false, 10),
            rate(&["rxe0/1", "rxe1/1"], false, 25),
        ];
        for (port, expected) in [("mlx5_0/1", 40), ("mlx5_1/1", 100), ("rxe0/1", 100)] {
            assert_eq!(LeastRate::of(port, &rates), Some(expected), "{port}");
        }
        assert_eq!(LeastRate::of("rxe1/1", &rates[2..]), Some(25));
        assert_eq!(LeastRate::of("mlx5_0/1", &rates[2..]), None);
    }
}
