// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of a bond of IPoIB interfaces.

use super::checks::{Id, TABLE};
use super::{interface, lease, unread};
use crate::facts::{Facts, Netdev};
use crate::verify::report::{Finding, Status};
use crate::wish::bond::{MODE, Seen, Wish};
use crate::wish::ipoib;

/// All of them, in the order of the table; what follows from a failed one is skipped. `slaves` are
/// the wished interfaces: what each is called on the command line, and here.
pub fn findings(
    name: &str,
    wish: (&Wish, &ipoib::Wish),
    slaves: &[(String, Option<String>)],
    facts: &Facts,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for row in TABLE {
        let Some(finding) = evaluate(row.id, name, wish, slaves, facts) else {
            continue;
        };
        let is_unmet = |found: &Finding| {
            row.parents.contains(&found.check)
                && !matches!(found.status, Status::Ok | Status::Warning)
        };
        findings.push(if findings.iter().any(is_unmet) {
            Finding::skipped(row.id)
        } else {
            let netdev = facts.netdev(name).map(|netdev| netdev.ifname.as_str());
            unread::settle(finding, facts, &unread::of_netdev(row.id, netdev))
        });
    }
    findings
}

fn evaluate(
    id: Id,
    name: &str,
    (wish, ipoib): (&Wish, &ipoib::Wish),
    slaves: &[(String, Option<String>)],
    facts: &Facts,
) -> Option<Finding> {
    let netdev = facts.netdev(name);
    let seen = netdev.and_then(|netdev| netdev.bond.as_ref());
    // Skipped by its parents where the bond is not there.
    let absent = (Netdev::default(), Seen::default());
    let (netdev, bond) = netdev.zip(seen).unwrap_or((&absent.0, &absent.1));
    let ipoib = &lease::granted_to(ipoib, netdev, facts);
    Some(match id {
        Id::BondPresent => match (facts.netdev(name), seen) {
            (Some(_), Some(_)) => Finding::ok(id, name),
            (Some(_), None) => Finding::failed(id, "an interface that is not a bond", name)
                .hint("choose another name in bond="),
            (None, _) => Finding::failed(id, "none", name),
        },
        Id::BondMode => mode(bond),
        Id::BondSlaves => members(slaves, bond),
        Id::BondOptions if wish.options.is_empty() => return None,
        Id::BondOptions => options(wish, bond),
        Id::BondCarrier if !netdev.up => Finding::failed(id, "down", "carrier")
            .hint("look for another program that sets it down"),
        Id::BondCarrier if netdev.carrier != Some(true) => {
            Finding::failed(id, "by none", "one of its interfaces")
        }
        Id::BondCarrier => match &bond.active_slave {
            Some(active) => Finding::ok(id, &format!("by {active}")),
            None => Finding::failed(id, "no active interface", "one"),
        },
        Id::IpoibMtu if ipoib.mtu.is_some() || ipoib.suggested.mtu.is_some() => {
            interface::mtu(ipoib, netdev)
        }
        Id::LeasePresent if ipoib.dhcp.is_some() => lease::evaluate(netdev, facts),
        Id::Lease6Present if lease::is_wanted6(ipoib, netdev, facts) => {
            lease::evaluate6(netdev, facts)
        }
        Id::AddressPresent if ipoib.is_addressed() => interface::addresses(ipoib, netdev),
        Id::RoutePresent if interface::has_routes(ipoib) => interface::routes(ipoib, netdev),
        _ => return None,
    })
}

fn mode(bond: &Seen) -> Finding {
    let word = |option: &str| {
        let text = bond.option(option).unwrap_or("unknown");
        text.split(' ').next().unwrap_or_default().to_owned()
    };
    let (mode, policy) = (word("mode"), word("fail_over_mac"));
    let seen = format!("{mode}, fail_over_mac {policy}");
    // Without an interface the driver has no reason yet to change the policy.
    if mode != MODE || (policy != "active" && !bond.slaves.is_empty()) {
        return Finding::failed(
            Id::BondMode,
            &seen,
            &format!("{MODE}, fail_over_mac active"),
        );
    }
    Finding::ok(Id::BondMode, &seen)
}

fn members(slaves: &[(String, Option<String>)], bond: &Seen) -> Finding {
    let id = Id::BondSlaves;
    let is_in = |name: &Option<String>| name.as_ref().is_some_and(|n| bond.slaves.contains(n));
    let missing = slaves.iter().any(|(_, name)| !is_in(name));
    let seen = match bond.slaves.len() {
        0 => "none".to_owned(),
        _ => bond.slaves.join(", "),
    };
    if !missing {
        return Finding::ok(id, &seen);
    }
    let wanted: Vec<&str> = slaves
        .iter()
        .map(|(wanted, name)| name.as_deref().unwrap_or(wanted))
        .collect();
    let finding = Finding::failed(id, &seen, &wanted.join(", "));
    // It carries traffic all the same; what is wrong with the other one its own checks say.
    if slaves.iter().any(|(_, name)| is_in(name)) {
        finding.as_warning()
    } else {
        finding
    }
}

fn options(wish: &Wish, bond: &Seen) -> Finding {
    let id = Id::BondOptions;
    let text = |option: &str| bond.option(option).unwrap_or("not there");
    let wrong: Vec<_> = wish
        .options
        .iter()
        .filter(|(o, v)| !bond.has(o, v))
        .collect();
    if wrong.is_empty() {
        let all: Vec<String> = wish
            .options
            .iter()
            .map(|(o, v)| format!("{o}={v}"))
            .collect();
        return Finding::ok(id, &all.join(", "));
    }
    let seen: Vec<String> = wrong
        .iter()
        .map(|(o, _)| format!("{o}={}", text(o)))
        .collect();
    let wanted: Vec<String> = wrong.iter().map(|(o, v)| format!("{o}={v}")).collect();
    Finding::failed(id, &seen.join(", "), &wanted.join(", ")).as_warning()
}
