// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is accepted from an answer, and what is rejected.

use proptest::prelude::*;

use super::*;
use crate::dhcp::v6::packet::{Kind, Options};

const IAID: u32 = 0xffff;
const FROM: &str = "fe80::1";

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn offered(address: &str, preferred_s: u32, valid_s: u32) -> Vec<u8> {
    Address {
        address: ip(address),
        preferred_s,
        valid_s,
        options: Options::default(),
    }
    .encode()
}

fn answer(t1: u32, t2: u32, addresses: &[Vec<u8>]) -> Message {
    let mut association = Association::asking(IAID, None);
    (association.renew_s, association.rebind_s) = (t1, t2);
    for address in addresses {
        association
            .options
            .push(option::IA_ADDRESS, address.clone());
    }
    let mut message = Message::new(Kind::Reply, 1);
    message.options.push(option::SERVER_ID, [0, 3, 0, 1, 2]);
    message.options.push(option::IA_NA, association.encode());
    message
}

fn lease(message: &Message) -> Result<Lease, String> {
    let lease = Lease::of(message, ip(FROM), IAID, Some(ip("fd00::7")), 9);
    lease.map_err(|refusal| refusal.to_string())
}

fn with_status(mut message: Message, value: &[u8]) -> Message {
    message.options.push(option::STATUS_CODE, value);
    message
}

#[test]
fn the_times_are_the_servers_where_they_lie_within_the_lease() {
    let times = |t1, t2, preferred, valid| {
        let lease = lease(&answer(t1, t2, &[offered("fd00::5", preferred, valid)])).unwrap();
        (lease.renew_s, lease.rebind_s, lease.seconds)
    };
    assert_eq!(times(50, 80, 100, 200), (50, 80, 200));
    assert_eq!(times(0, 0, 100, 200), (50, 80, 200));
    assert_eq!(times(0, 90, 100, 200), (50, 90, 200));
    assert_eq!(times(300, 400, 100, 200), (50, 80, 200));
    assert_eq!(times(0, 0, 0, 200), (100, 160, 200));
    // A node must be able to renew in time, and duplicate address detection must finish.
    assert_eq!(times(0, 0, 1, 1), (5, 10, 20));
    let short = lease(&answer(0, 0, &[offered("fd00::5", 1, 2)])).unwrap();
    assert_eq!(short.left_out, ["option 5: valid for 2 s, raised to 20 s"]);
    assert_eq!(
        times(0, 0, FOR_EVER, FOR_EVER),
        (FOR_EVER, FOR_EVER, FOR_EVER)
    );
    assert_eq!(times(7, 90, FOR_EVER, FOR_EVER), (7, 90, FOR_EVER));
    let for_ever = lease(&answer(0, 0, &[offered("fd00::5", FOR_EVER, FOR_EVER)])).unwrap();
    assert_eq!(
        (for_ever.ends_ns(), for_ever.length().as_str()),
        (None, "for ever")
    );
    let granted = for_ever.granted();
    assert_eq!(granted.address.to_string(), "fd00::5/128");
    assert_eq!(granted.server, ip(FROM));
    assert_eq!(
        (granted.ends_ns, granted.length.as_str()),
        (None, "for ever")
    );
}

#[test]
fn of_several_addresses_the_requested_one_is_used_and_an_invalid_one_is_left_out() {
    let of =
        |addresses: &[Vec<u8>]| lease(&answer(0, 0, addresses)).map(|lease| lease.address_text());
    let (five, seven) = (offered("fd00::5", 9, 9), offered("fd00::7", 9, 9));
    assert_eq!(of(&[five.clone(), seven]), Ok("fd00::7/128".to_owned()));
    let bad = offered("fd00::6", 10, 9);
    assert_eq!(of(&[bad, five]), Ok("fd00::5/128".to_owned()));
}

#[test]
fn an_answer_without_a_lease_has_a_reason() {
    let good = || answer(0, 0, &[offered("fd00::5", 9, 9)]);
    let mut anonymous = good();
    anonymous.options.remove(option::SERVER_ID);
    let mut empty = good();
    empty.options.remove(option::IA_NA);
    let mut torn = good();
    torn.options.remove(option::IA_NA);
    torn.options.push(option::IA_NA, [0; 5]);
    let mut refusing = Association::asking(IAID, None);
    refusing
        .options
        .push(option::STATUS_CODE, &b"\0\x02no\x1b[31m more"[..]);
    let mut inside = Message::new(Kind::Reply, 1);
    inside.options.push(option::SERVER_ID, [0, 3, 0, 1, 2]);
    inside.options.push(option::IA_NA, refusing.encode());
    let cases = [
        (anonymous, "no server identifier (option 2)"),
        (empty, "no addresses (IA_NA) for our IAID 65535"),
        (torn, "option 3 has an invalid length of 5 bytes"),
        (answer(0, 0, &[]), "no address (option 5)"),
        (
            answer(9, 8, &[offered("fd00::5", 9, 9)]),
            "T1 9 s is later than T2 8 s",
        ),
        (
            answer(0, 0, &[vec![0; 9]]),
            "option 5 has an invalid length of 9 bytes",
        ),
        (
            answer(0, 0, &[offered("fd00::5", 0, 0)]),
            "the address is no longer valid",
        ),
        (
            answer(0, 0, &[offered("fd00::5", 10, 9)]),
            "fd00::5 preferred for 10 s and valid for 9 s",
        ),
        (with_status(good(), &[0, 4]), "NotOnLink"),
        (
            with_status(good(), b"\0\x01bad\nday"),
            "UnspecFail: bad\\x0aday",
        ),
        (
            with_status(good(), &[9]),
            "option 13 has an invalid length of 1 bytes",
        ),
        (inside, "NoAddrsAvail: no\\x1b[31m more"),
    ];
    for (message, why) in cases {
        assert_eq!(lease(&message), Err(why.to_owned()));
    }
    assert!(lease(&with_status(good(), &[0, 0])).is_ok());
    for address in [
        "::",
        "::1",
        "fe80::5",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "100::5",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::5",
        "2001::5",
        "2001:10::5",
        "2001:2f::5",
        "2002:a00:1::5",
        "fec0::5",
    ] {
        let refused = lease(&answer(0, 0, &[offered(address, 9, 9)]));
        assert_eq!(
            refused,
            Err(format!("{} is not a host address", ip(address)))
        );
    }
    for address in [
        "2001:470::5",
        "2a00::5",
        "64:ff9c::5",
        "2001:2::5",
        "2001:db8::5",
        "3fff::5",
    ] {
        assert!(lease(&answer(0, 0, &[offered(address, 9, 9)])).is_ok());
    }
}

#[test]
fn name_servers_and_domains_are_taken_clean_and_the_rest_named() {
    let mut message = answer(0, 0, &[offered("fd00::5", 60, 90)]);
    let servers = [ip("fd00::53").octets(), ip("fe80::53").octets()].concat();
    message.options.push(option::NAME_SERVERS, servers);
    message
        .options
        .push(option::DOMAIN_LIST, &b"\x01a\x07example\0"[..]);
    let lease = lease(&message).unwrap();
    assert_eq!(lease.name_servers, [ip("fd00::53")]);
    assert_eq!(lease.domain_search, ["a.example"]);
    assert_eq!(lease.left_out, ["option 23: fe80::53"]);
    let variables: Vec<String> = lease
        .variables()
        .into_iter()
        .map(|(name, value)| format!("{name}={}", String::from_utf8(value).unwrap()))
        .collect();
    assert_eq!(
        variables,
        [
            "new_ip6_address=fd00::5",
            "new_ip6_prefixlen=128",
            "new_max_life=90",
            "new_preferred_life=60",
            "new_dhcp6_name_servers=fd00::53",
            "new_dhcp6_domain_search=a.example",
        ]
    );
    let mut evil = answer(0, 0, &[offered("fd00::5", 60, 90)]);
    evil.options.push(option::NAME_SERVERS, [0; 17]);
    evil.options
        .push(option::DOMAIN_LIST, &b"\x12$(touch /run/evil)\0"[..]);
    let lease = super::Lease::of(&evil, ip(FROM), IAID, None, 9).unwrap();
    assert_eq!(lease.domain_search, Vec::<String>::new());
    assert_eq!(
        lease.left_out,
        ["option 23: 17 bytes", "option 24: not a valid domain list"]
    );
}

proptest! {
    #[test]
    fn whatever_is_granted_is_clean(
        t1 in any::<u32>(), t2 in any::<u32>(),
        address in any::<u128>(), preferred in any::<u32>(), valid in any::<u32>(),
        more in any::<u16>(), value in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let address = Ipv6Addr::from(address).to_string();
        let mut message = answer(t1, t2, &[offered(&address, preferred, valid)]);
        message.options.push(more % 30, value);
        if let Ok(lease) = lease(&message) {
            prop_assert!(is_host(lease.address) && !is_reserved(lease.address));
            prop_assert!(0 < lease.renew_s && lease.renew_s <= lease.rebind_s);
            prop_assert!(lease.rebind_s <= lease.seconds && lease.preferred_s <= lease.seconds);
            for (name, value) in lease.variables() {
                let text = String::from_utf8(value).unwrap();
                prop_assert!(!text.chars().any(char::is_control), "{}", name);
            }
            for line in &lease.left_out {
                prop_assert!(!line.chars().any(char::is_control));
            }
        }
    }
}
