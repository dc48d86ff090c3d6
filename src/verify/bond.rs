// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the checks of a bond of IPoIB interfaces.

use super::checks::Id;
use super::object::Bond;
use crate::facts::{Facts, Netdev};
use crate::verify::finding::Finding;
use crate::wish::bond::{BondFacts, BondWish, MODE};

/// Finding of `bond.present`: an interface of this name exists and is a bond.
pub fn present(bond: &Bond<'_>, facts: &Facts) -> Finding {
    let (id, name) = (Id::BondPresent, bond.name);
    match facts.netdev(name).map(|netdev| netdev.bond.is_some()) {
        Some(true) => Finding::ok(id, name),
        Some(false) => Finding::failed(id, "an interface that is not a bond", name)
            .hint("choose another name in bond="),
        None => Finding::failed(id, &format!("this machine has no interface {name}"), name),
    }
}

/// Finding of `bond.carrier`: the bond is up and has carrier through an active interface. Without a monitor
/// the driver takes each interface for one that works, and with updelay or downdelay for a while
/// (drivers/net/bonding/bond_main.c, bond_enslave and bond_miimon_inspect).
pub fn carrier(netdev: &Netdev, bond: &BondFacts, facts: &Facts) -> Finding {
    let id = Id::BondCarrier;
    let of_active = |name: &String| facts.netdev(name).and_then(|netdev| netdev.carrier);
    let active = bond
        .active_slave
        .as_ref()
        .map(|name| (name, of_active(name)));
    match (netdev.up, netdev.carrier, active) {
        (false, ..) => Finding::failed(id, "down", "carrier").hint(Id::IpoibUp.row().hint),
        (true, Some(true), Some((name, Some(true)))) => Finding::ok(id, &format!("by {name}")),
        (true, Some(true), Some((name, Some(false)))) => Finding::failed(
            id,
            &format!("{name} is the active interface and has no carrier"),
            "carrier",
        )
        .hint("see the checks of this interface; miimon=100 makes the bond notice"),
        (true, Some(true), Some((name, None))) => {
            Finding::unanswered(id, &format!("by {name}, whose carrier is not known"))
        }
        (true, Some(true), None) => {
            Finding::failed(id, "no active interface", "an active interface")
        }
        _ => Finding::failed(id, "no carrier", "carrier"),
    }
}

/// Finding of `bond.mode`: active-backup with fail_over_mac=active, the only mode for IPoIB.
pub fn mode(bond: &BondFacts) -> Finding {
    let word = |option: &str| {
        let text = bond.option(option).unwrap_or("unknown");
        text.split(' ').next().unwrap_or_default().to_owned()
    };
    let (mode, policy) = (word("mode"), word("fail_over_mac"));
    let found = format!("{mode}, fail_over_mac {policy}");
    // The driver changes the policy only once the bond has an interface.
    if mode != MODE || (policy != "active" && !bond.slaves.is_empty()) {
        return Finding::failed(
            Id::BondMode,
            &found,
            &format!("{MODE}, fail_over_mac active"),
        );
    }
    Finding::ok(Id::BondMode, &found)
}

/// Finding of `bond.slaves`: critical without any interface, a warning if some are missing.
pub fn slaves(bond: &Bond<'_>) -> Finding {
    let id = Id::BondSlaves;
    let (slaves, impossible) = (bond.slaves, bond.impossible.as_deref());
    let bond = bond.found;
    let is_in = |name: &Option<String>| name.as_ref().is_some_and(|n| bond.slaves.contains(n));
    let missing = slaves.iter().any(|(_, name)| !is_in(name));
    let all = bond.slaves.join(", ");
    if !missing {
        return Finding::ok(id, &all);
    }
    let found = match bond.slaves.is_empty() {
        true => "the bond has no interface".to_owned(),
        false => format!("the bond has only {all}"),
    };
    let expected: Vec<&str> = slaves
        .iter()
        .map(|(requested, name)| name.as_deref().unwrap_or(requested))
        .collect();
    let finding = Finding::failed(id, &found, &expected.join(", "));
    if let Some(reason) = impossible.filter(|_| bond.slaves.is_empty()) {
        return finding.hint(reason).lasting();
    }
    // The bond carries traffic with one interface; the checks of the missing interface say why.
    if slaves.iter().any(|(_, name)| is_in(name)) {
        finding.as_warning()
    } else {
        finding
    }
}

/// Finding of `bond.options`: the requested options as the bonding driver reports them.
pub fn options(wish: &BondWish, bond: &BondFacts) -> Finding {
    let id = Id::BondOptions;
    let text = |option: &str| bond.option(option).unwrap_or("missing");
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
    let found: Vec<String> = wrong
        .iter()
        .map(|(o, _)| format!("{o}={}", text(o)))
        .collect();
    let expected: Vec<String> = wrong.iter().map(|(o, v)| format!("{o}={v}")).collect();
    Finding::failed(id, &found.join(", "), &expected.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::finding::Status;

    fn slave(name: &str, carrier: Option<bool>) -> Netdev {
        Netdev {
            ifname: name.to_owned(),
            carrier,
            ..Netdev::default()
        }
    }

    #[test]
    fn a_bond_has_carrier_by_the_interface_that_is_active() {
        let finding = |up, has_carrier, active: Option<&str>| {
            let netdev = Netdev {
                up,
                carrier: has_carrier,
                ..Netdev::default()
            };
            let found = BondFacts {
                active_slave: active.map(str::to_owned),
                ..BondFacts::default()
            };
            let facts = Facts {
                netdevs: vec![slave("ib0", Some(false)), slave("ib1", Some(true))],
                ..Facts::default()
            };
            let finding = carrier(&netdev, &found, &facts);
            (finding.status, finding.found.unwrap())
        };
        let dead = "ib0 is the active interface and has no carrier";
        let unknown = Status::Unknown;
        let (ok, critical) = (Status::Ok, Status::Critical);
        for (up, has_carrier, active, status, found) in [
            (true, Some(true), Some("ib1"), ok, "by ib1"),
            (true, Some(true), Some("ib0"), critical, dead),
            (
                true,
                Some(true),
                Some("ib2"),
                unknown,
                "by ib2, whose carrier is not known",
            ),
            (true, Some(true), None, critical, "no active interface"),
            (true, Some(false), Some("ib1"), critical, "no carrier"),
            (true, None, Some("ib1"), critical, "no carrier"),
            (false, Some(true), Some("ib1"), critical, "down"),
        ] {
            assert_eq!(finding(up, has_carrier, active), (status, found.to_owned()));
        }
    }

    #[test]
    fn the_policy_counts_once_the_bond_has_an_interface() {
        let status = |policy: &str, slaves: &[&str]| {
            let found = BondFacts {
                slaves: slaves.iter().map(ToString::to_string).collect(),
                options: vec!["mode=active-backup 1".to_owned(), policy.to_owned()],
                ..BondFacts::default()
            };
            mode(&found).status
        };
        assert_eq!(status("fail_over_mac=active 1", &["ib0"]), Status::Ok);
        assert_eq!(status("fail_over_mac=none 0", &["ib0"]), Status::Critical);
        assert_eq!(status("fail_over_mac=none 0", &[]), Status::Ok);
    }

    #[test]
    fn a_bond_is_not_an_interface_of_another_kind() {
        let mut facts = Facts::default();
        let absent = (Netdev::default(), BondFacts::default());
        let finding = |facts: &Facts| {
            let bond = Bond {
                name: "b0",
                wish: &BondWish::default(),
                slaves: &[],
                impossible: None,
                netdev: &absent.0,
                found: &absent.1,
            };
            let finding = present(&bond, facts);
            (finding.status, finding.found.unwrap())
        };
        let none = "this machine has no interface b0".to_owned();
        assert_eq!(finding(&facts), (Status::Critical, none));
        facts.netdevs.push(Netdev {
            ifname: "b0".to_owned(),
            ..Netdev::default()
        });
        let other = "an interface that is not a bond".to_owned();
        assert_eq!(finding(&facts), (Status::Critical, other));
        facts.netdevs[0].bond = Some(BondFacts::default());
        assert_eq!(finding(&facts), (Status::Ok, "b0".to_owned()));
    }
}
