// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: whether the links meet `rd.ib.require=`, and the status of the whole report.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::finding::Status;
use super::lookup::Lookup;
use super::report::{LinkReport, Report, RootReport, ServerReport};
use super::unread;
use crate::facts::cable::Cable;
use crate::facts::{Facts, Function, PortRef, functions};
use crate::rdma::types::Identity;
use crate::wish::expectation::{Expectation, Require};
use crate::wish::storage::has_alternative;

/// An answer of one server of each disk is enough: then the others only warn.
pub fn spared(expectation: &Expectation, mut servers: Vec<ServerReport>) -> Vec<ServerReport> {
    if !has_alternatives(expectation) {
        return servers;
    }
    let root = expectation.root.as_ref();
    let portals = root.map_or(&[][..], |root| root.portals.as_slice());
    let answered = servers.iter().filter(|server| server.is_answered());
    let answered: BTreeSet<IpAddr> = answered.map(|one| one.server.address).collect();
    for server in servers.iter_mut().filter(|server| !server.is_answered()) {
        let answers = |other: IpAddr| answered.contains(&other);
        if has_alternative(portals, server.server.address, answers) {
            server.finding.status = Status::Warning;
        }
    }
    servers
}

fn has_alternatives(expectation: &Expectation) -> bool {
    expectation.servers.iter().any(|wish| wish.alternative)
}

/// Marks the links whose port is none of those that `rd.ib.require=N` counts.
pub fn mark_uncounted(expectation: &Expectation, lookup: &Lookup<'_>, links: &mut [LinkReport]) {
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
pub fn shortfall(require: Require, links: &[LinkReport], facts: &Facts) -> Option<String> {
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
        advice.push(format!("HCAs without an RDMA device: {missing}"));
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
pub fn is_met(require: Require, links: &[LinkReport], is_one: fn(&LinkReport) -> bool) -> bool {
    match require {
        Require::Listed => links.iter().all(|link| is_one(link) || !link.required),
        Require::All => ports(links, is_one) > 0 && links.iter().all(is_one),
        Require::Count(n) => ports(links, is_one) >= n as usize,
    }
}

/// The verdict. Critical only if no content of the unreadable files could change it.
pub fn whole(expectation: &Expectation, report: &Report, facts: &Facts) -> Status {
    let require = expectation.require;
    let (modules, links) = (&report.modules, &report.links);
    if links.is_empty() && modules.is_empty() {
        return Status::Unknown;
    }
    // If a list of ports is unreadable, the number of ports is unknown.
    let is_hidden = !unread::hidden(expectation, &report.links, facts).is_empty();
    // These ports may be good in another network namespace, or in a bond that cannot be read.
    let elsewhere = links
        .iter()
        .filter(|link| link.is_elsewhere() || link.may_have_port());
    let elsewhere = elsewhere.count();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::verify;

    #[test]
    fn without_a_port_not_every_port_is_verified() {
        let expectation = Expectation {
            require: Require::All,
            ..Expectation::default()
        };
        let report = verify(&expectation, &Facts::default());
        assert_eq!((report.satisfied, report.status), (false, Status::Unknown));
    }
}
