// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pure function of the program: expectation and snapshot in, report out.

use std::collections::{BTreeMap, BTreeSet};

use kernel_cmdline::Selector;

use super::checks::{Check, Id, Severity, TABLE};
use super::{interface, lease6, port, root, server, unread};
use crate::SCHEMA;
use crate::facts::{Facts, Netdev, PortRef, rules, select};
use crate::hardware::HardwareType;
use crate::rdma::types::{Identity, LinkLayer};
use crate::system::modules::InitState;
use crate::verify::report::{
    Finding, LinkReport, ModuleReport, Report, RootReport, ServerReport, Status,
};
use crate::wish::expectation::{Expectation, LinkWish, ModuleWish, Require};
use crate::wish::{bond, ipoib};

/// What `verify` looks up more than once.
struct Lookup<'a> {
    facts: &'a Facts,
    /// The links that are named.
    links: &'a [LinkWish],
    /// Ports by identity. Several with one node GUID happen: a card's VFs, software devices on
    /// interfaces that share a MAC address.
    by_identity: BTreeMap<Identity, Vec<PortRef<'a>>>,
    /// For every `rd.ib.rate=` the ports it means; none: all.
    rates: Vec<(Option<BTreeSet<String>>, u32)>,
    /// The ports whose interface a link names.
    named: BTreeSet<String>,
}

impl<'a> Lookup<'a> {
    fn new(expectation: &'a Expectation, facts: &'a Facts) -> Lookup<'a> {
        let mut by_identity: BTreeMap<Identity, Vec<PortRef<'a>>> = BTreeMap::new();
        for port in facts.ports() {
            if let Some(identity) = port.identity() {
                by_identity.entry(identity).or_default().push(port);
            }
        }
        let rates = expectation.rates.iter().map(|rate| {
            let selector = rate
                .selector
                .as_deref()
                .map(|text| match Selector::parse(text) {
                    Some(selector) => select::ports(&selector, facts),
                    None => Vec::new(),
                });
            let names = selector.map(|ports| ports.iter().map(|port| port.name()).collect());
            (names, rate.megabits)
        });
        let mut lookup = Lookup {
            facts,
            links: &expectation.links,
            by_identity,
            rates: rates.collect(),
            named: BTreeSet::new(),
        };
        lookup.named = rules::named_interfaces(expectation, |link| lookup.ports_of(link));
        lookup
    }

    /// Mb/s this port must reach at least: the last argument that means it.
    fn least_rate(&self, wish: &LinkWish, port: PortRef<'_>) -> Option<u32> {
        wish.megabits.or_else(|| {
            let means = |ports: &Option<BTreeSet<String>>| {
                ports
                    .as_ref()
                    .is_none_or(|ports| ports.contains(&port.name()))
            };
            self.rates
                .iter()
                .rev()
                .find(|(ports, _)| means(ports))
                .map(|(_, megabits)| *megabits)
        })
    }

    /// The ports that a wish means.
    fn ports_of(&self, wish: &LinkWish) -> Vec<PortRef<'a>> {
        match wish.identity {
            Some(identity) => self.pinned(wish, identity).into_iter().collect(),
            None => match Selector::parse(wish.port.as_deref().unwrap_or(&wish.wanted)) {
                Some(selector) => select::ports(&selector, self.facts),
                None => Vec::new(),
            },
        }
    }

    /// The port that was handed over under this identity.
    fn pinned(&self, wish: &LinkWish, identity: Identity) -> Option<PortRef<'a>> {
        let ports = self.by_identity.get(&identity)?;
        let same = |port: &&PortRef<'_>| {
            wish.device_index.is_some() && port.device.ifindex == wish.device_index
        };
        ports.iter().find(same).or_else(|| ports.first()).copied()
    }
}

/// Compares. No I/O, no clock; linear in the ports.
pub fn verify(expectation: &Expectation, facts: &Facts) -> Report {
    let lookup = Lookup::new(expectation, facts);
    let modules: Vec<ModuleReport> = expectation
        .modules
        .iter()
        .map(|wish| module(wish, facts))
        .collect();
    let mut links = Vec::new();
    for wish in &expectation.links {
        link(wish, &lookup, &mut links);
    }
    if let Some(wish) = &expectation.any_port {
        any_port(wish, &lookup, &mut links);
    }
    let require = expectation.require;
    let good = ports(&links, LinkReport::is_good);
    let connected = is_met(require, &links, LinkReport::is_good);
    let servers: Vec<ServerReport> = expectation
        .servers
        .iter()
        .map(|wish| server::report(wish, connected, facts))
        .collect();
    let answered = servers.iter().all(|s| s.finding.status == Status::Ok);
    let root = expectation
        .root
        .as_ref()
        .map(|wish| root::report(wish, &links, facts));
    let carried = root.as_ref().is_none_or(RootReport::is_good);
    let satisfied = connected && answered && carried;
    let shortfall = match require {
        Require::Count(n) if !connected => {
            let ports = if good == 1 { "port is" } else { "ports are" };
            Some(format!(
                "rd.ib.require={n}: only {good} {ports} verified, wanted {n}; \
                 look for HCAs and ports that are missing here (lspci, rdma link)"
            ))
        }
        _ => None,
    };
    let mut report = Report {
        schema: SCHEMA,
        boot_id: facts.boot_id.clone(),
        taken_ns: facts.taken_ns,
        status: Status::Unknown,
        satisfied,
        require: require.to_string(),
        shortfall,
        modules,
        links,
        servers,
        root,
        complaints: expectation.complaints.clone(),
    };
    report.status = whole(require, &report, facts);
    report
}

/// How many ports are such links: two wishes may mean one, and a bond is none.
fn ports(links: &[LinkReport], is_one: fn(&LinkReport) -> bool) -> usize {
    let ports: BTreeSet<_> = links
        .iter()
        .filter(|link| is_one(link) && link.name.is_some())
        .map(|link| (link.identity, link.name.as_deref()))
        .collect();
    ports.len()
}

/// Whether enough of the links are such.
fn is_met(require: Require, links: &[LinkReport], is_one: fn(&LinkReport) -> bool) -> bool {
    match require {
        Require::Listed => links.iter().all(|link| is_one(link) || !link.required),
        Require::All => ports(links, is_one) > 0 && links.iter().all(is_one),
        Require::Count(n) => ports(links, is_one) >= n as usize,
    }
}

/// The verdict. Critical is only what would be so whatever stood in the files that could not be read.
fn whole(require: Require, report: &Report, facts: &Facts) -> Status {
    let (modules, links) = (&report.modules, &report.links);
    if links.is_empty() && modules.is_empty() {
        return Status::Unknown;
    }
    // There may be any number of ports where not all can be listed.
    let is_hidden = require != Require::Listed && unread::hidden(facts).next().is_some();
    let may_be_met = match require {
        Require::All if is_hidden => links.iter().all(LinkReport::may_be_good),
        Require::Count(_) if is_hidden => true,
        _ => is_met(require, links, LinkReport::may_be_good),
    };
    let failed = |server: &ServerReport| server.finding.status == Status::Critical;
    let is_wrong = !may_be_met
        || report.servers.iter().any(failed)
        || report.root.as_ref().is_some_and(RootReport::is_wrong);
    let modules = modules.iter().map(|module| module.finding.status);
    let mut statuses = modules.chain(links.iter().map(|link| link.status));
    let is_all_ok = statuses.clone().all(|status| status == Status::Ok);
    // Nobody knows what a wrong argument was to require.
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

fn module(wish: &ModuleWish, facts: &Facts) -> ModuleReport {
    let state = facts.modules.get(&wish.name);
    let finding = match (state, &wish.refused) {
        _ if wish.builtin => Finding::ok(Id::ModuleLive, "builtin"),
        (Some(InitState::Live), _) => Finding::ok(Id::ModuleLive, "live"),
        (Some(InitState::Coming), _) => Finding::failed(Id::ModuleLive, "coming", "live")
            .hint("its init function still runs: see dmesg"),
        (Some(InitState::Going), _) => Finding::failed(Id::ModuleLive, "going", "live"),
        (None, Some(reason)) => Finding::failed(Id::ModuleLive, reason, "")
            .hint("")
            .lasting(),
        (None, None) => Finding::failed(Id::ModuleLive, "not loaded", "live"),
    };
    ModuleReport {
        name: wish.name.clone(),
        asked_by: wish.asked_by.clone(),
        finding: unread::settle(finding, facts, &unread::of_module(&wish.name)),
    }
}

/// One report per port that the wish means; one that says what is missing if there is none.
fn link(wish: &LinkWish, lookup: &Lookup<'_>, out: &mut Vec<LinkReport>) {
    if let Some(reason) = &wish.refused {
        let finding = Finding::failed(Id::WishPossible, reason.as_str(), "").lasting();
        out.push(LinkReport::new(wish, None, vec![finding]));
        return;
    }
    if let (Some(bond), Some(ipoib)) = (&wish.bond, &wish.ipoib) {
        out.push(on_bond(wish, (bond, ipoib), lookup));
        return;
    }
    let found = lookup.ports_of(wish);
    if found.is_empty() {
        let finding = absent(wish, lookup.facts);
        let finding = unread::settle(finding, lookup.facts, &unread::identity());
        out.push(LinkReport::new(wish, None, vec![finding]));
    }
    for port in found {
        out.push(on_port(wish, lookup, port));
    }
}

/// A bond is reported as a link of its own, which has an interface and no port.
fn on_bond(
    wish: &LinkWish,
    wanted: (&bond::Wish, &ipoib::Wish),
    lookup: &Lookup<'_>,
) -> LinkReport {
    let facts = lookup.facts;
    let here = |slave: &String| {
        let link = lookup.links.iter().find(|link| link.wanted == *slave)?;
        let ipoib = link.ipoib.as_ref()?;
        let mut ports = lookup.ports_of(link).into_iter();
        ports.find_map(|port| rules::interface(ipoib, port, facts))
    };
    let slaves: Vec<(String, Option<String>)> = wanted
        .0
        .slaves
        .iter()
        .map(|slave| {
            (
                slave.clone(),
                here(slave).map(|netdev| netdev.ifname.clone()),
            )
        })
        .collect();
    let findings = super::bond::findings(&wish.wanted, wanted, &slaves, facts);
    LinkReport {
        interface: facts
            .netdev(&wish.wanted)
            .map(|netdev| netdev.ifname.clone()),
        ..LinkReport::new(wish, None, findings)
    }
}

fn on_port(wish: &LinkWish, lookup: &Lookup<'_>, port: PortRef<'_>) -> LinkReport {
    let without = || LinkWish {
        ipoib: None,
        ..wish.clone()
    };
    let is_whole = wish.ipoib.is_none() || rules::wants_interface(wish, port, &lookup.named);
    let wish = if is_whole { wish } else { &without() };
    let interface = wish
        .ipoib
        .as_ref()
        .and_then(|wish| rules::interface(wish, port, lookup.facts));
    LinkReport {
        interface: interface.map(|netdev| netdev.ifname.clone()),
        megabits: lookup.least_rate(wish, port),
        ..LinkReport::new(wish, Some(port), port_findings(wish, lookup, port))
    }
}

/// Every port that no other wish means already; one report that says what is missing if there
/// is nothing at all.
fn any_port(wish: &LinkWish, lookup: &Lookup<'_>, out: &mut Vec<LinkReport>) {
    let named: BTreeSet<String> = out.iter().filter_map(|link| link.name.clone()).collect();
    for port in lookup
        .facts
        .ports()
        .filter(|port| !named.contains(&port.name()))
    {
        out.push(on_port(wish, lookup, port));
    }
    for unread in unread::hidden(lookup.facts) {
        let finding = Finding::unread(Id::DevicePresent, unread);
        out.push(LinkReport::new(wish, None, vec![finding]));
    }
    if out.is_empty() {
        let finding = match &wish.refused {
            Some(reason) => Finding::failed(Id::WishPossible, reason.as_str(), "").lasting(),
            None => Finding::failed(Id::DevicePresent, "no RDMA device at all", "any port"),
        };
        out.push(LinkReport::new(wish, None, vec![finding]));
    }
}

/// Names of interfaces that a line shows.
const SHOWN: usize = 8;

/// The finding for a wish that no port fits.
fn absent(wish: &LinkWish, facts: &Facts) -> Finding {
    let names: Vec<String> = facts.ports().map(|port| port.name()).collect();
    let there = match names.len() {
        0 => "no RDMA device at all".to_owned(),
        1..=8 => format!("only {}", names.join(", ")),
        n => format!("{n} other ports"),
    };
    match wish.identity {
        Some(identity) => Finding::failed(
            Id::DevicePresent,
            &there,
            &format!("{} (node GUID {})", wish.wanted, identity.node_guid),
        )
        .hint("the device was there in the initramfs: look for its removal in dmesg"),
        None => {
            if let Some(below) = wish
                .netdev
                .as_deref()
                .filter(|name| facts.netdev(name).is_none())
            {
                let names: Vec<&str> = facts.netdevs.iter().map(|n| n.ifname.as_str()).collect();
                return Finding::failed(
                    Id::DevicePresent,
                    &format!("no network interface {below}, only {}", names.join(", ")),
                    &wish.wanted,
                )
                .hint("check the interface's driver and its name (net.ifnames=0 keeps eth0)");
            }
            if let Some(netdev) = facts.netdev(&wish.wanted) {
                let kind = match netdev.hardware_type {
                    Some(HardwareType::InfiniBand) => "IPoIB",
                    Some(_) => "Ethernet",
                    // It is being removed.
                    None => "vanishing",
                };
                return Finding::failed(
                    Id::DevicePresent,
                    &format!("{kind} interface without an RDMA port below it"),
                    "a port",
                )
                .hint("load the HCA's *_ib driver, or make a port with rd.ib.link=");
            }
            let finding = Finding::failed(Id::DevicePresent, &there, &wish.wanted);
            match unnamed(wish, facts) {
                Some(seen) if !names.is_empty() => {
                    let seen = format!("{seen}, {there}");
                    let hint = renamed(facts);
                    Finding::failed(Id::DevicePresent, &seen, &wish.wanted).hint(&hint)
                }
                _ => finding,
            }
        }
    }
}

/// The port of an IPoIB interface is named by the interface, and that is not there.
fn unnamed(wish: &LinkWish, facts: &Facts) -> Option<String> {
    wish.ipoib.as_ref()?;
    let name = wish.port.as_deref().unwrap_or(&wish.wanted);
    let is_name = matches!(Selector::parse(name)?, Selector::Name(_));
    (is_name && facts.netdev(name).is_none()).then(|| format!("no network interface {name}"))
}

/// What to do where an interface is not there by its name: another one may be it.
fn renamed(facts: &Facts) -> String {
    let is_parent = |netdev: &&Netdev| netdev.ipoib.as_ref().is_some_and(|seen| !seen.child);
    let found: Vec<&str> = facts
        .netdevs
        .iter()
        .filter(is_parent)
        .map(|netdev| netdev.ifname.as_str())
        .take(SHOWN)
        .collect();
    if found.is_empty() {
        return "see whether ib_ipoib is loaded; a name may change, guid= and pci= do not"
            .to_owned();
    }
    format!(
        "the IPoIB interfaces are {}: udev names them unless net.ifnames=0; use such a name, guid= or pci=",
        found.join(", ")
    )
}

/// Runs the table over one port. A check whose parent did not pass is skipped.
fn port_findings(wish: &LinkWish, lookup: &Lookup<'_>, port: PortRef<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::with_capacity(TABLE.len());
    for row in TABLE {
        let parent_failed = row.parents.iter().any(|parent| {
            findings.iter().any(|f| {
                f.check == *parent && f.status != Status::Ok && f.status != Status::Warning
            })
        });
        let finding = if parent_failed {
            applies(row.id, wish, lookup, port).then(|| Finding::skipped(row.id))
        } else {
            evaluate(row, wish, lookup, port)
        };
        findings.extend(finding);
    }
    findings
}

fn applies(id: Id, wish: &LinkWish, lookup: &Lookup<'_>, port: PortRef<'_>) -> bool {
    match id {
        Id::ModuleLive
        | Id::WishPossible
        | Id::ServerRdma
        | Id::RootMounted
        | Id::RootTransport
        | Id::RootPath => false,
        // A bond has no port.
        Id::BondPresent | Id::BondMode | Id::BondSlaves | Id::BondOptions | Id::BondCarrier => {
            false
        }
        Id::PortNetdev => wish.netdev.is_some(),
        Id::PortLid | Id::PortSmLid => port.port.link_layer == Some(LinkLayer::InfiniBand),
        Id::PortSa => port::contact(port, lookup.facts).is_some(),
        Id::PortRate => lookup.least_rate(wish, port).is_some(),
        Id::IpoibPresent | Id::PortPkey | Id::IpoibUp | Id::IpoibCarrier | Id::IpoibMtu => {
            wish.ipoib.is_some()
        }
        Id::IpoibName => wish
            .ipoib
            .as_ref()
            .is_some_and(|ipoib| ipoib.ifname.is_some()),
        Id::IpoibMode => wish
            .ipoib
            .as_ref()
            .is_some_and(|ipoib| ipoib.mode.is_some()),
        Id::LeasePresent => wish
            .ipoib
            .as_ref()
            .is_some_and(|ipoib| ipoib.dhcp.is_some()),
        Id::Lease6Present => wish.ipoib.as_ref().is_some_and(|ipoib| {
            let netdev = rules::interface(ipoib, port, lookup.facts);
            let seen = netdev.cloned().unwrap_or_default();
            lease6::is_wanted(ipoib, &seen, lookup.facts)
        }),
        Id::RoutePresent => wish.ipoib.as_ref().is_some_and(|ipoib| {
            let ipoib = interface::granted(ipoib, port, lookup.facts);
            interface::has_routes(&ipoib)
        }),
        Id::AddressPresent => wish.ipoib.as_ref().is_some_and(ipoib::Wish::is_addressed),
        Id::DevicePresent | Id::PortLinkLayer | Id::PortPhysicalState | Id::PortState => true,
    }
}

fn evaluate(
    row: &Check,
    wish: &LinkWish,
    lookup: &Lookup<'_>,
    found: PortRef<'_>,
) -> Option<Finding> {
    let facts = lookup.facts;
    if !applies(row.id, wish, lookup, found) {
        return None;
    }
    let seen = found.port;
    let finding = match row.id {
        Id::ModuleLive
        | Id::WishPossible
        | Id::ServerRdma
        | Id::RootMounted
        | Id::RootTransport
        | Id::RootPath
        | Id::BondPresent
        | Id::BondMode
        | Id::BondSlaves
        | Id::BondOptions
        | Id::BondCarrier => return None,
        Id::DevicePresent => Finding::ok(row.id, &found.name()),
        Id::PortLinkLayer => match (seen.link_layer, wish.link_layer) {
            (None, _) => Finding::unknown(row.id),
            // As EFA's devices answer.
            (Some(LinkLayer::Unknown), _) => Finding {
                seen: Some(LinkLayer::Unknown.to_string()),
                ..Finding::unknown(row.id)
            }
            .hint("its driver says neither InfiniBand nor Ethernet"),
            (Some(seen), Some(wanted)) if seen != wanted => {
                Finding::failed(row.id, &seen.to_string(), &wanted.to_string())
            }
            (Some(seen), _) => Finding::ok(row.id, &seen.to_string()),
        },
        Id::PortNetdev => port::netdev(row, wish, seen),
        Id::PortPhysicalState => port::physical_state(row, found, facts),
        Id::PortState => port::state(row, found),
        Id::PortLid => port::lid(row, seen.lid),
        Id::PortSmLid => port::lid(row, seen.sm_lid),
        Id::PortSa => port::administrator(row, port::contact(found, facts)?),
        Id::PortRate => {
            let wanted = lookup.least_rate(wish, found)?;
            match &seen.rate {
                None => Finding::unknown(row.id),
                Some(rate) if rate.gbps * 1000.0 < f64::from(wanted) => Finding::failed(
                    row.id,
                    &rate.text,
                    &format!("{} Gb/sec", f64::from(wanted) / 1000.0),
                ),
                Some(rate) => Finding::ok(row.id, &rate.text),
            }
        }
        Id::IpoibPresent
        | Id::IpoibName
        | Id::IpoibMode
        | Id::PortPkey
        | Id::IpoibUp
        | Id::IpoibCarrier
        | Id::IpoibMtu
        | Id::LeasePresent
        | Id::Lease6Present
        | Id::AddressPresent
        | Id::RoutePresent => interface::evaluate(row.id, wish.ipoib.as_ref()?, found, facts),
    };
    let finding = match row.severity {
        Severity::Critical => finding,
        Severity::Warning => finding.as_warning(),
    };
    let netdev = wish.ipoib.as_ref();
    let netdev = netdev.and_then(|wish| rules::interface(wish, found, facts));
    let netdev = netdev.map(|netdev| netdev.ifname.as_str());
    let sources = unread::of_port(row.id, found, netdev);
    Some(unread::settle(finding, facts, &sources))
}
