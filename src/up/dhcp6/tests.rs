// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::facts::FoundAddress;
use crate::wish::ipoib::IpoibWish;

const LEASE: &str = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
    "requested_ns":0,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;

fn site<'a>(wish: &'a IpoibWish, netdev: &'a Netdev, index: u32) -> Site<'a> {
    Site {
        wish,
        netdev,
        index,
        speaker: &Speaker::Own,
    }
}

fn found(text: &str, state: AddressState) -> FoundAddress {
    let address = text.parse().unwrap();
    FoundAddress { address, state }
}

#[test]
fn a_lease_of_another_process_counts_while_its_address_is_on_the_interface() {
    let known = Progress {
        interface: "old".to_owned(),
        index: 4,
        duid: "00:03:00:20".to_owned(),
        lease: Some(serde_json::from_str(LEASE).unwrap()),
        ..Progress::default()
    };
    let mut netdev = Netdev {
        ifname: "ib0".to_owned(),
        addresses: vec![found("fd00::5/128", AddressState::Usable)],
        ..Netdev::default()
    };
    let mut clients = Clients6::new(vec![known.clone()], true);
    assert_eq!(clients.progress(), []);
    assert!(!clients.keep(&netdev, 4, "00:03:00:21"));
    assert!(!clients.keep(&netdev, 5, &known.duid));
    assert!(clients.keep(&netdev, 4, &known.duid));
    let now = Progress {
        interface: "ib0".to_owned(),
        ..known.clone()
    };
    assert_eq!(clients.progress(), [now]);
    netdev.addresses.clear();
    assert!(!clients.keep(&netdev, 4, &known.duid));
    assert_eq!(clients.progress(), []);
}

#[test]
fn the_address_of_another_identity_is_disowned_while_the_interface_has_it() {
    let known = Progress {
        duid: "00:03:00:20".to_owned(),
        iaid: 7,
        lease: Some(serde_json::from_str(LEASE).unwrap()),
        ..Progress::default()
    };
    let held = Netdev {
        addresses: vec![found("fd00::5/128", AddressState::Usable)],
        ..Netdev::default()
    };
    let address = "fd00::5".parse().ok();
    for (duid, iaid, netdev, expected) in [
        ("00:03:00:20", 7, &held, None),
        ("00:03:00:21", 7, &held, address),
        ("00:03:00:20", 8, &held, address),
        ("00:03:00:21", 7, &Netdev::default(), None),
    ] {
        assert_eq!(
            disowned_by(duid, iaid, &known, netdev),
            expected,
            "{duid} {iaid}"
        );
    }
}

#[test]
fn the_address_of_a_lease_is_not_the_address_of_a_router() {
    let known = Progress {
        index: 4,
        lease: Some(serde_json::from_str(LEASE).unwrap()),
        ..Progress::default()
    };
    let mut clients = Clients6::new(vec![known], true);
    clients.granted.insert((4, "fd00::6".parse().unwrap()));
    let netdev = |usable: &[&str], tentative: &[&str]| {
        let usable = usable.iter().map(|text| found(text, AddressState::Usable));
        let tentative = tentative.iter();
        let tentative = tentative.map(|text| found(text, AddressState::Tentative));
        Netdev {
            ifindex: Some(4),
            addresses: usable.chain(tentative).collect(),
            ..Netdev::default()
        }
    };
    // The address of an earlier run, and the address of a lost lease.
    let leased = netdev(&["fe80::5/64", "fd00::5/128"], &["fd00::6/128"]);
    let wish = IpoibWish::default();
    let has = |clients: &Clients6, netdev: &Netdev, index| {
        clients.has_router_address(&site(&wish, netdev, index))
    };
    assert!(!has(&clients, &leased, 4));
    assert!(has(&clients, &leased, 5));
    let routed = netdev(&["fd00::5/64"], &[]);
    assert!(has(&clients, &routed, 4));
    assert!(has(&clients, &netdev(&[], &["fd00::7/128"]), 4));
    // A static address.
    let wish = IpoibWish {
        addresses: vec!["fd00::5/64".parse().unwrap()],
        ..IpoibWish::default()
    };
    assert!(!clients.has_router_address(&site(&wish, &routed, 4)));
    clients.follow(&Facts::default(), None);
    assert!(has(&clients, &leased, 4));
}

#[test]
fn a_client_ends_with_another_link_local_address_or_without_carrier_and_lease() {
    let here: Ipv6Addr = "fe80::5".parse().unwrap();
    let other: Ipv6Addr = "fe80::6".parse().unwrap();
    for (local, carrier, has_lease, expected) in [
        (Some(here), true, false, true),
        (Some(here), false, true, true),
        (Some(here), false, false, false),
        (Some(other), true, true, false),
        (None, false, true, true),
        (None, true, false, false),
    ] {
        let text = format!("{local:?} {carrier} {has_lease}");
        assert_eq!(stays(here, has_lease, local, carrier), expected, "{text}");
    }
}

#[test]
fn with_either6_a_client_waits_for_the_routers_unless_they_announce_dhcpv6() {
    let either6 = |seconds| Dhcp6Wish {
        after_router_s: seconds,
        ..Dhcp6Wish::default()
    };
    let netdev = |addresses: &[&str]| Netdev {
        ifindex: Some(4),
        carrier: Some(true),
        addresses: addresses
            .iter()
            .map(|text| found(text, AddressState::Usable))
            .collect(),
        ..Netdev::default()
    };
    let bare = netdev(&["fe80::5/64"]);
    let mut clients = Clients6::default();
    let none = IpoibWish::default();
    let mut may_begin = |wish: &Dhcp6Wish, netdev: &Netdev, router| {
        clients.may_begin(wish, &site(&none, netdev, 4), router)
    };
    assert!(may_begin(&either6(None), &bare, Router::Silent));
    assert!(may_begin(&either6(Some(10)), &bare, Router::Managed));
    assert!(!may_begin(&either6(Some(10)), &bare, Router::Silent));
    assert!(
        !may_begin(&either6(Some(0)), &netdev(&[]), Router::Silent),
        "no address to send from"
    );
    assert!(
        may_begin(&either6(Some(0)), &bare, Router::Silent),
        "the wait is over"
    );
    let routed = netdev(&["fe80::5/64", "fd00::5/64"]);
    assert!(!may_begin(&either6(Some(0)), &routed, Router::Silent));
}
