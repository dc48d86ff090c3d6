// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of the IPoIB interface on a port.

use std::net::IpAddr;

use super::checks::Id;
use super::{carrier, lease6};
use crate::dhcp::progress::Progress;
use crate::facts::{Facts, Netdev, PortRef, rules};
use crate::verify::report::Finding;
use crate::wish::ipoib::{self, Autoconf, FULL_MEMBER, WantedMtu, Wish};

/// Evaluates one of them; the interface is there for all but the first.
pub fn evaluate(id: Id, wish: &Wish, port: PortRef<'_>, facts: &Facts) -> Finding {
    let Some(netdev) = rules::interface(wish, port, facts) else {
        return absent(wish, port, facts);
    };
    let name = netdev.ifname.as_str();
    let wish = &granted(wish, port, facts);
    match id {
        Id::IpoibName => match wish.ifname.as_deref() {
            Some(wanted) if wanted != name => Finding::failed(id, name, wanted),
            _ => Finding::ok(id, name),
        },
        Id::IpoibMode => mode(wish, netdev),
        Id::PortPkey => pkey(netdev, port),
        Id::IpoibUp if !netdev.up => Finding::failed(id, "down", "up"),
        Id::IpoibUp => Finding::ok(id, "up"),
        Id::IpoibCarrier if netdev.carrier != Some(true) => carrier::missing(netdev, port, facts),
        Id::IpoibCarrier => Finding::ok(id, "carrier"),
        Id::IpoibMtu => mtu(wish, netdev),
        Id::LeasePresent => lease(netdev, facts),
        Id::Lease6Present => lease6::evaluate(netdev, facts),
        Id::AddressPresent => addresses(wish, netdev),
        Id::RoutePresent => routes(wish, netdev),
        _ => Finding::ok(Id::IpoibPresent, name),
    }
}

/// What is wanted with what DHCP servers granted for the interface of the wish.
pub fn granted(wish: &Wish, port: PortRef<'_>, facts: &Facts) -> Wish {
    let netdev = rules::interface(wish, port, facts);
    netdev.map_or_else(|| wish.clone(), |netdev| granted_to(wish, netdev, facts))
}

/// The same, of an interface that is known.
pub fn granted_to(wish: &Wish, netdev: &Netdev, facts: &Facts) -> Wish {
    crate::facts::granted::granted(wish, netdev, &facts.dhcp, &facts.dhcp6)
}

fn progress<'f>(netdev: &Netdev, facts: &'f Facts) -> Option<&'f Progress> {
    let mut all = facts.dhcp.iter();
    all.find(|progress| netdev.ifindex == Some(progress.index))
}

/// The lease.
pub fn lease(netdev: &Netdev, facts: &Facts) -> Finding {
    const WANTED: &str = "a lease";
    let Some(progress) = progress(netdev, facts) else {
        return Finding::failed(Id::LeasePresent, "no server was asked", WANTED)
            .hint("ibboot up asks: was it run?");
    };
    let Some(lease) = &progress.lease else {
        let (seen, hint) = progress.diagnosis();
        let finding = Finding::failed(Id::LeasePresent, &seen, WANTED).hint(&hint);
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
            Finding::failed(
                Id::LeasePresent,
                &format!("{what}, which ended {seconds} s ago"),
                "one that holds",
            )
            .hint("the address is kept and asked for anew: see the log of ibboot-lease.service and of the server")
            .as_warning()
        }
        _ => Finding::ok(Id::LeasePresent, &format!("{what}, {}", lease.length())),
    }
}

fn absent(wish: &Wish, port: PortRef<'_>, facts: &Facts) -> Finding {
    let Some(pkey) = wish.pkey else {
        return Finding::failed(Id::IpoibPresent, "none", &format!("one on {}", port.name()));
    };
    let parent = rules::interface(&Wish::default(), port, facts);
    let wanted = format!("a child of P_Key {pkey:#06x}");
    match parent {
        Some(parent) => Finding::failed(
            Id::IpoibPresent,
            &format!("only {}", parent.ifname),
            &wanted,
        )
        .hint("ibboot up makes it; by hand: echo the P_Key into create_child of the parent"),
        None => Finding::failed(Id::IpoibPresent, "none", &wanted),
    }
}

fn mode(wish: &Wish, netdev: &Netdev) -> Finding {
    let seen = netdev.ipoib.as_ref().and_then(|seen| seen.mode);
    let seen_word = seen.map_or("unknown", ipoib::Mode::word);
    match wish.mode.map(|wanted| rules::mode(wanted, netdev)) {
        Some(Ok(wanted)) if seen != Some(wanted) => {
            Finding::failed(Id::IpoibMode, seen_word, wanted.word())
        }
        Some(Err(reason)) => Finding::failed(Id::IpoibMode, seen_word, "connected")
            .hint(&reason)
            .lasting(),
        _ => Finding::ok(Id::IpoibMode, seen_word),
    }
}

/// The kernel keeps every interface's P_Key with the full membership bit; what the port really is
/// in the partition only its table tells.
fn pkey(netdev: &Netdev, port: PortRef<'_>) -> Finding {
    let Some(wanted) = netdev.ipoib.as_ref().and_then(|seen| seen.pkey) else {
        return Finding::unknown(Id::PortPkey);
    };
    let table = &port.port.pkeys;
    let full = wanted | FULL_MEMBER;
    let limited = wanted & !FULL_MEMBER;
    if table.contains(&full) {
        return Finding::ok(Id::PortPkey, &format!("{full:#06x}, full member"));
    }
    if table.contains(&limited) {
        return Finding::failed(Id::PortPkey, &format!("{limited:#06x}, limited member"), "full membership")
            .hint("limited members do not hear each other: make the port a full member in partitions.conf")
            .as_warning();
    }
    let there: Vec<String> = table.iter().map(|pkey| format!("{pkey:#06x}")).collect();
    let seen = if there.is_empty() {
        "no P_Key".to_owned()
    } else {
        format!("only {}", there.join(", "))
    };
    Finding::failed(Id::PortPkey, &seen, &format!("{full:#06x}"))
}

/// The MTU: one that is asked for is a must, one that a server suggests at most a warning.
pub fn mtu(wish: &Wish, netdev: &Netdev) -> Finding {
    const ID: Id = Id::IpoibMtu;
    let Some(seen) = netdev.mtu else {
        return Finding::unknown(ID);
    };
    let suggested = &wish.suggested;
    match (wish.mtu, suggested.mtu) {
        (Some(WantedMtu::Bytes(wanted)), _) if wanted != seen => {
            Finding::failed(ID, &seen.to_string(), &wanted.to_string())
        }
        (None, Some(mtu)) if mtu != seen => {
            let found = format!("found {seen}, {mtu}{}", suggested.by_whom());
            Finding::failed(ID, &found, "")
                .hint("nothing depends on it: the device takes no other MTU, or another program set it; correct the DHCP server's option 26")
                .as_warning()
        }
        _ => Finding::ok(ID, &seen.to_string()),
    }
}

/// Whether any route is asked for or suggested.
pub fn has_routes(wish: &Wish) -> bool {
    wish.all_gateways().next().is_some() || wish.all_routes().next().is_some()
}

/// The routes: those that are asked for are a must, those that a server suggests at most a warning.
pub fn routes(wish: &Wish, netdev: &Netdev) -> Finding {
    const ID: Id = Id::RoutePresent;
    let list = |gateways: &[IpAddr]| {
        let texts: Vec<String> = gateways.iter().map(ToString::to_string).collect();
        if texts.is_empty() {
            "none".to_owned()
        } else {
            texts.join(", ")
        }
    };
    let missing = |gateway: &&IpAddr| !netdev.gateways.contains(gateway);
    if wish.gateways.iter().any(|gateway| missing(&gateway)) {
        return Finding::failed(ID, &list(&netdev.gateways), &list(&wish.gateways));
    }
    if let Some(route) = wish.routes.iter().find(|route| !netdev.has_route(route)) {
        return Finding::failed(ID, "none", &route.to_string());
    }
    let suggested = &wish.suggested;
    let warning = |seen: &str, wanted: String| {
        let wanted = format!("{wanted},{}", suggested.by_whom());
        Finding::failed(ID, seen, &wanted)
            .hint("nothing depends on it: correct the DHCP server's options 3, 33 and 121, or look for another program that removes routes")
            .as_warning()
    };
    if let Some(gateway) = suggested.gateway.iter().find(missing) {
        return warning(&list(&netdev.gateways), gateway.to_string());
    }
    let mut routes = suggested.routes.iter();
    if let Some(route) = routes.find(|route| !netdev.has_route(route)) {
        return warning("none", route.to_string());
    }
    let gateways = wish.all_gateways().map(ToString::to_string);
    let all: Vec<String> = gateways
        .chain(wish.all_routes().map(ToString::to_string))
        .collect();
    Finding::ok(ID, &all.join(", "))
}

pub fn addresses(wish: &Wish, netdev: &Netdev) -> Finding {
    let mut wanted: Vec<String> = wish.addresses.iter().map(ToString::to_string).collect();
    if let Some(address) = wanted.iter().find(|a| netdev.duplicates.contains(a)) {
        let seen = format!("another host has {address}");
        return Finding::failed(Id::AddressPresent, &seen, &wanted.join(", "))
            .hint("give this node another address with ip=, or take it from the other host");
    }
    let own = |address: &String| netdev.addresses.contains(address);
    let found = wish.autoconf.map(|autoconf| {
        let mut others = netdev.addresses.iter().filter(|a| !wanted.contains(a));
        others.find(|address| autoconf.is_met_by(address)).cloned()
    });
    let missing = found == Some(None) || !wanted.iter().all(own);
    if missing && !netdev.taken.is_empty() {
        let seen = netdev.taken.join(", ");
        return Finding::failed(Id::AddressPresent, &seen, &wanted.join(", "))
            .hint("give this node another address with ip=, or find the other one by its GUID");
    }
    match (wish.autoconf, found) {
        (_, Some(Some(address))) => wanted.push(address),
        (Some(autoconf), _) => wanted.push(autoconf.word().to_owned()),
        _ => {}
    }
    let awaited = |address: &&String| wish.autoconf.is_some() || wanted.contains(address);
    if let Some(address) = netdev.tentative.iter().find(awaited).filter(|_| missing) {
        let seen = format!("{address} is tentative");
        return Finding::failed(Id::AddressPresent, &seen, &wanted.join(", "))
            .hint("duplicate address detection takes a second; where it lasts: ip -6 addr");
    }
    if missing {
        let seen = if netdev.addresses.is_empty() {
            "none".to_owned()
        } else {
            netdev.addresses.join(", ")
        };
        let finding = Finding::failed(Id::AddressPresent, &seen, &wanted.join(", "));
        return if wish.autoconf == Some(Autoconf::Router)
            && wish.addresses.iter().all(|a| own(&a.to_string()))
        {
            finding.hint("see whether a router advertises a prefix on this partition (radvd; tcpdump -i icmp6)")
        } else {
            finding
        };
    }
    Finding::ok(Id::AddressPresent, &wanted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::report::Status;

    #[test]
    fn a_granted_address_that_a_router_gave_already_has_the_routers_prefix() {
        let lease = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
            "asked_ns":0,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
        let lease = serde_json::from_str(lease).unwrap();
        let seen = |shown: &str| {
            let netdev = Netdev {
                addresses: vec!["fe80::5/64".to_owned(), shown.to_owned()],
                ..Netdev::default()
            };
            let wish = Wish::default().granted6(&lease, netdev.shown6(lease.address));
            let finding = addresses(&wish, &netdev);
            (finding.status, finding.seen.unwrap_or_default())
        };
        for same in ["fd00::5/64", "fd00::5/128"] {
            assert_eq!(seen(same), (Status::Ok, same.to_owned()));
        }
        let other = "fe80::5/64, fd00::6/64".to_owned();
        assert_eq!(seen("fd00::6/64"), (Status::Critical, other));
        let mut dead = Netdev::default();
        dead.duplicates.push("fd00::5/64".to_owned());
        assert!(dead.is_duplicate6(lease.address));
        assert_eq!(dead.shown6(lease.address), Some("fd00::5/64"));
    }

    #[test]
    fn what_a_server_suggests_is_at_most_a_warning() {
        let lease = r#"{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1","asked_ns":0,
            "seconds":60,"renew_s":30,"rebind_s":50,"mtu":65520,"classless_routes":[
            {"network":"0.0.0.0","prefix":0,"gateway":"10.0.0.9"},
            {"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]}"#;
        let lease = serde_json::from_str(lease).unwrap();
        let mut wish = Wish::default().granted(&lease);
        let mut netdev = Netdev {
            mtu: Some(2044),
            ..Netdev::default()
        };
        let said = |finding: Finding| {
            let wanted = finding.wanted.unwrap_or_default();
            (finding.status, finding.seen.unwrap_or_default(), wanted)
        };
        let row = |status, seen: &str, wanted: &str| (status, seen.to_owned(), wanted.to_owned());
        assert!(has_routes(&wish));
        assert_eq!(
            said(mtu(&wish, &netdev)),
            row(
                Status::Warning,
                "found 2044, 65520 suggested by 10.0.0.1",
                ""
            )
        );
        assert_eq!(
            said(routes(&wish, &netdev)),
            row(Status::Warning, "none", "10.0.0.9, suggested by 10.0.0.1")
        );
        netdev.gateways.push("10.0.0.9".parse().unwrap());
        assert_eq!(
            said(routes(&wish, &netdev)),
            row(
                Status::Warning,
                "none",
                "10.7.0.0/16 via 10.0.0.7, suggested by 10.0.0.1"
            )
        );
        netdev.routes = wish.suggested.routes.clone();
        let all = "10.0.0.9, 10.7.0.0/16 via 10.0.0.7";
        assert_eq!(said(routes(&wish, &netdev)), row(Status::Ok, all, ""));
        // What the command line asks for is a must.
        wish.mtu = Some(WantedMtu::Bytes(65520));
        wish.gateways = vec!["10.0.0.2".parse().unwrap()];
        assert_eq!(
            said(mtu(&wish, &netdev)),
            row(Status::Critical, "2044", "65520")
        );
        assert_eq!(
            said(routes(&wish, &netdev)),
            row(Status::Critical, "10.0.0.9", "10.0.0.2")
        );
    }

    #[test]
    fn a_lease_that_has_ended_is_a_warning_with_its_age() {
        const SECOND: u64 = 1_000_000_000;
        let lease = r#"{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1",
            "asked_ns":5000000000,"seconds":60,"renew_s":30,"rebind_s":50}"#;
        let netdev = Netdev {
            ifindex: Some(4),
            ..Netdev::default()
        };
        let mut facts = Facts {
            dhcp: vec![Progress {
                index: 4,
                lease: Some(serde_json::from_str(lease).unwrap()),
                ..Progress::default()
            }],
            ..Facts::default()
        };
        let seen = |facts: &Facts| {
            let finding = super::lease(&netdev, facts);
            (finding.status, finding.seen.unwrap_or_default())
        };
        facts.taken_ns = 64 * SECOND;
        let what = "10.0.0.5/24 of 10.0.0.1".to_owned();
        assert_eq!(seen(&facts), (Status::Ok, format!("{what}, for 60 s")));
        facts.taken_ns = 95 * SECOND;
        let ended = format!("{what}, which ended 30 s ago");
        assert_eq!(seen(&facts), (Status::Warning, ended));
        facts.dhcp.clear();
        let nobody = "no server was asked".to_owned();
        assert_eq!(seen(&facts), (Status::Critical, nobody));
    }
}
