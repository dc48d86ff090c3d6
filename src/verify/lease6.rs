// SPDX-License-Identifier: MIT OR Apache-2.0
//! The check of a DHCPv6 lease.

use super::checks::Id;
use crate::dhcp6::progress::Progress;
use crate::facts::{Facts, Netdev};
use crate::verify::report::Finding;
use crate::wish::ipoib::{Autoconf, Wish};

fn progress<'f>(netdev: &Netdev, facts: &'f Facts) -> Option<&'f Progress> {
    let mut all = facts.dhcp6.iter();
    all.find(|progress| netdev.ifindex == Some(progress.index))
}

/// Whether a lease is wanted: with `either6` not where a router gave an address, nor while one is
/// waited for.
pub fn is_wanted(wish: &Wish, netdev: &Netdev, facts: &Facts) -> bool {
    let Some(dhcp6) = &wish.dhcp6 else {
        return false;
    };
    if dhcp6.after_router_s.is_none() {
        return true;
    }
    let of_router = has_router_address(wish, netdev);
    progress(netdev, facts).is_some_and(|progress| progress.lease.is_some() || !of_router)
}

/// Whether there is an address of a router's prefix beside those that are written.
pub fn has_router_address(wish: &Wish, netdev: &Netdev) -> bool {
    let written: Vec<String> = wish.addresses.iter().map(ToString::to_string).collect();
    let mut others = netdev.addresses.iter().filter(|a| !written.contains(a));
    others.any(|address| Autoconf::Router.is_met_by(address))
}

/// The lease.
pub fn evaluate(netdev: &Netdev, facts: &Facts) -> Finding {
    const ID: Id = Id::Lease6Present;
    const WANTED: &str = "a lease";
    let Some(progress) = progress(netdev, facts) else {
        let (seen, hint) = not_begun(netdev);
        return Finding::failed(ID, &seen, WANTED).hint(hint);
    };
    let Some(lease) = &progress.lease else {
        let (seen, hint) = progress.diagnosis();
        let finding = Finding::failed(ID, &seen, WANTED).hint(&hint);
        return if progress.gave_up {
            finding.lasting()
        } else {
            finding
        };
    };
    let what = format!("{} of {}", lease.address_text(), lease.server);
    match lease.ends_ns() {
        Some(ends) if facts.taken_ns >= ends => {
            let seconds = (facts.taken_ns - ends) / 1_000_000_000;
            let seen = format!("{what}, which ended {seconds} s ago");
            Finding::failed(ID, &seen, "one that holds")
                .hint("the address is kept and asked for anew: see the log of ibboot-lease.service and of the server")
                .as_warning()
        }
        _ => Finding::ok(ID, &format!("{what}, {}", lease.length())),
    }
}

/// Why no server was asked: it is done from the link-local address.
fn not_begun(netdev: &Netdev) -> (String, &'static str) {
    let of_link = |list: &[String]| {
        let mut all = list.iter();
        all.find(|address| Autoconf::LinkLocal.is_met_by(address))
            .cloned()
    };
    if of_link(&netdev.addresses).is_some() {
        return (
            "no server was asked".to_owned(),
            "ibboot up asks: was it run?",
        );
    }
    if let Some(address) = of_link(&netdev.duplicates) {
        return (
            format!("another host has the link-local address {address}"),
            "two ports with one GUID: see ibstat on both",
        );
    }
    if let Some(address) = of_link(&netdev.tentative) {
        return (
            format!("the link-local address {address} is tentative"),
            "duplicate address detection takes a second; where it lasts: ip -6 addr",
        );
    }
    (
        "no link-local address to ask from".to_owned(),
        "is IPv6 in this kernel (ipv6.disable=), and addr_gen_mode 0?",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp6;
    use crate::verify::report::Status;

    const SECOND: u64 = 1_000_000_000;

    fn seen(netdev: &Netdev, facts: &Facts) -> (Status, String) {
        let finding = evaluate(netdev, facts);
        (finding.status, finding.seen.unwrap_or_default())
    }

    fn netdev(addresses: &[&str]) -> Netdev {
        Netdev {
            ifindex: Some(4),
            addresses: addresses.iter().map(ToString::to_string).collect(),
            ..Netdev::default()
        }
    }

    #[test]
    fn before_it_begins_the_link_local_address_tells_why() {
        let facts = Facts::default();
        let link = "fe80::5/64".to_owned();
        let mut one = netdev(&["fd00::9/64"]);
        let none = "no link-local address to ask from".to_owned();
        assert_eq!(seen(&one, &facts), (Status::Critical, none));
        one.tentative.push(link.clone());
        let tentative = "the link-local address fe80::5/64 is tentative".to_owned();
        assert_eq!(seen(&one, &facts), (Status::Critical, tentative));
        one.duplicates.push(link.clone());
        let taken = "another host has the link-local address fe80::5/64".to_owned();
        assert_eq!(seen(&one, &facts), (Status::Critical, taken));
        one.addresses.push(link);
        let unasked = "no server was asked".to_owned();
        assert_eq!(seen(&one, &facts), (Status::Critical, unasked));
    }

    #[test]
    fn a_lease_that_has_ended_is_a_warning_with_its_age() {
        let lease = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
            "asked_ns":5000000000,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
        let mut facts = Facts {
            dhcp6: vec![Progress {
                index: 4,
                lease: Some(serde_json::from_str(lease).unwrap()),
                ..Progress::default()
            }],
            taken_ns: 64 * SECOND,
            ..Facts::default()
        };
        let one = netdev(&[]);
        let what = "fd00::5/128 of fe80::1".to_owned();
        assert_eq!(
            seen(&one, &facts),
            (Status::Ok, format!("{what}, for 60 s"))
        );
        facts.taken_ns = 95 * SECOND;
        let ended = format!("{what}, which ended 30 s ago");
        assert_eq!(seen(&one, &facts), (Status::Warning, ended));
    }

    #[test]
    fn with_either6_a_routers_address_is_as_good_as_a_lease() {
        let mut wish = Wish {
            autoconf: Some(Autoconf::Router),
            dhcp6: Some(dhcp6::Wish {
                after_router_s: Some(10),
                ..dhcp6::Wish::default()
            }),
            ..Wish::default()
        };
        let mut facts = Facts::default();
        let bare = netdev(&["fe80::5/64"]);
        let routed = netdev(&["fe80::5/64", "fd00::5/64"]);
        assert!(!is_wanted(&wish, &bare, &facts), "a router is waited for");
        facts.dhcp6.push(Progress {
            index: 4,
            ..Progress::default()
        });
        assert!(is_wanted(&wish, &bare, &facts));
        assert!(!is_wanted(&wish, &routed, &facts));
        wish.dhcp6 = Some(dhcp6::Wish::default());
        assert!(is_wanted(&wish, &routed, &Facts::default()));
        wish.dhcp6 = None;
        assert!(!is_wanted(&wish, &bare, &facts));
    }
}
