// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::facts::FoundAddress;

fn found(text: &str, state: AddressState) -> FoundAddress {
    let address = text.parse().unwrap();
    FoundAddress { address, state }
}

#[test]
fn a_lease_that_another_process_keeps_stands_while_its_address_does() {
    let lease = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
        "asked_ns":0,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
    let known = Progress {
        interface: "old".to_owned(),
        index: 4,
        duid: "00:03:00:20".to_owned(),
        lease: Some(serde_json::from_str(lease).unwrap()),
        ..Progress::default()
    };
    let mut netdev = Netdev {
        ifname: "ib0".to_owned(),
        addresses: vec![found("fd00::5/128", AddressState::Usable)],
        ..Netdev::default()
    };
    let mut leases = Leases::new(vec![known.clone()], true);
    assert_eq!(leases.progress(), []);
    assert!(!leases.keep(&netdev, 4, "00:03:00:21"));
    assert!(!leases.keep(&netdev, 5, &known.duid));
    assert!(leases.keep(&netdev, 4, &known.duid));
    let now = Progress {
        interface: "ib0".to_owned(),
        ..known.clone()
    };
    assert_eq!(leases.progress(), [now]);
    netdev.addresses.clear();
    assert!(!leases.keep(&netdev, 4, &known.duid));
    assert_eq!(leases.progress(), []);
}

#[test]
fn the_address_that_a_lease_gave_is_no_routers() {
    let known = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
        "asked_ns":0,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
    let known = Progress {
        index: 4,
        lease: Some(serde_json::from_str(known).unwrap()),
        ..Progress::default()
    };
    let mut leases = Leases::new(vec![known], true);
    leases.granted.insert((4, "fd00::6".parse().unwrap()));
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
    // An earlier run's, and one that is withdrawn and still there.
    let left = netdev(&["fe80::5/64", "fd00::5/128"], &["fd00::6/128"]);
    assert!(!leases.has_router_address(&left, 4));
    assert!(leases.has_router_address(&left, 5));
    assert!(leases.has_router_address(&netdev(&["fd00::5/64"], &[]), 4));
    assert!(leases.has_router_address(&netdev(&[], &["fd00::7/128"]), 4));
    leases.follow(&Facts::default(), None);
    assert!(leases.has_router_address(&left, 4));
}

#[test]
fn a_client_goes_on_while_it_asks_from_its_address_with_carrier_or_has_a_lease() {
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
        let what = format!("{local:?} {carrier} {has_lease}");
        assert_eq!(stays(here, has_lease, local, carrier), expected, "{what}");
    }
}

#[test]
fn with_either6_the_routers_have_the_first_turn_unless_they_leave_addresses_to_dhcpv6() {
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
    let mut leases = Leases::default();
    let mut turn =
        |wish: &Dhcp6Wish, netdev: &Netdev, router| leases.has_turn(wish, netdev, 4, router);
    assert!(turn(&either6(None), &bare, Router::Silent));
    assert!(turn(&either6(Some(10)), &bare, Router::Managed));
    assert!(!turn(&either6(Some(10)), &bare, Router::Silent));
    assert!(
        !turn(&either6(Some(0)), &netdev(&[]), Router::Silent),
        "nowhere to ask from"
    );
    assert!(
        turn(&either6(Some(0)), &bare, Router::Silent),
        "the time is over"
    );
    let routed = netdev(&["fe80::5/64", "fd00::5/64"]);
    assert!(!turn(&either6(Some(0)), &routed, Router::Silent));
}
