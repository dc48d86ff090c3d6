// SPDX-License-Identifier: MIT OR Apache-2.0
//! What servers send, and what is accepted: one case per trick.

use super::*;
use crate::dhcp::v4::packet::{Kind, Message};
use crate::system::clock::SECOND;

const ASKED: u64 = 5_000_000_000;

fn offer() -> Message {
    let mut message = Message::new(Kind::Offer, 1);
    message.op = 2;
    message.yiaddr = Ipv4Addr::new(10, 0, 0, 5);
    set(&mut message, option::SERVER, &[10, 0, 0, 1]);
    set(&mut message, option::MASK, &[255, 255, 255, 0]);
    set(&mut message, option::LEASE_TIME, &[0, 0, 0x0e, 0x10]);
    message
}

fn set(message: &mut Message, code: u8, value: &[u8]) {
    message.options.insert(code, value.to_vec());
}

/// The lease, or the text of the reason for a rejection.
fn of(message: &Message) -> Result<Lease, String> {
    Lease::of(message, ASKED).map_err(|why| why.to_string())
}

fn with(code: u8, value: &[u8]) -> Result<Lease, String> {
    let mut message = offer();
    set(&mut message, code, value);
    of(&message)
}

/// The line about one option with this value; panics unless there is exactly one line.
fn left_out(code: u8, value: &[u8]) -> String {
    let lease = with(code, value).unwrap();
    let lines: [String; 1] = lease.left_out.try_into().unwrap();
    lines[0].clone()
}

#[test]
fn the_least_that_a_lease_is() {
    let lease = of(&offer()).unwrap();
    assert_eq!(lease.address_text(), "10.0.0.5/24");
    assert_eq!(
        (lease.seconds, lease.renew_s, lease.rebind_s),
        (3600, 1800, 3150)
    );
    assert_eq!(lease.ends_ns(), Some(3605 * SECOND));
    let granted = lease.granted();
    assert_eq!(granted.address.to_string(), lease.address_text());
    assert_eq!(granted.server, lease.server);
    assert_eq!(granted.ends_ns, lease.ends_ns());
    assert_eq!(granted.length, "for 3600 s");
    assert_eq!(lease.routes(), []);
    assert_eq!(lease.left_out, Vec::<String>::new());
    let json = serde_json::to_string(&lease).unwrap();
    assert_eq!(serde_json::from_str::<Lease>(&json).unwrap(), lease);
}

#[test]
fn an_address_that_no_host_can_have_is_refused() {
    for address in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ] {
        let mut message = offer();
        message.yiaddr = address.parse().unwrap();
        let why = format!("{address} is not a host address");
        assert_eq!(of(&message), Err(why));
        assert_eq!(
            with(option::SERVER, &message.yiaddr.octets()),
            Err(format!("invalid server identifier {address}"))
        );
    }
    for last in [0, 255] {
        let mut message = offer();
        message.yiaddr = Ipv4Addr::new(10, 0, 0, last);
        let why = format!("10.0.0.{last}/24 is a network or broadcast address");
        assert_eq!(of(&message), Err(why));
    }
}

#[test]
fn a_mask_with_holes_or_none_is_refused() {
    for mask in [
        [0, 0, 0, 0],
        [255, 0, 255, 0],
        [128, 0, 0, 0],
        [0, 0, 0, 255],
    ] {
        let why = format!("invalid subnet mask {}", Ipv4Addr::from(mask));
        assert_eq!(with(option::MASK, &mask), Err(why));
    }
    assert_eq!(with(option::MASK, &[255; 4]).unwrap().prefix, 32);
}

#[test]
fn every_fixed_size_option_has_its_size_or_does_not_count() {
    let needed = [
        (option::SERVER, "no server identifier (option 54)"),
        (option::MASK, "no subnet mask (option 1)"),
        (option::LEASE_TIME, "no lease time (option 51)"),
    ];
    for length in (0..=255).filter(|length| *length != 4) {
        let value = vec![1; length];
        for (code, why) in needed {
            assert_eq!(with(code, &value), Err(why.to_owned()), "{length} bytes");
        }
        for code in [option::RENEW, option::REBIND, option::BROADCAST] {
            let lease = with(code, &value).unwrap();
            assert_eq!(
                (lease.renew_s, lease.rebind_s, lease.broadcast),
                (1800, 3150, None)
            );
        }
        if length % 4 != 0 {
            for code in [option::ROUTERS, option::NAME_SERVERS] {
                assert_eq!(
                    left_out(code, &value),
                    format!("option {code}: {length} bytes")
                );
            }
        }
        if length % 8 != 0 {
            assert_eq!(
                left_out(option::STATIC_ROUTES, &value),
                format!("option 33: {length} bytes")
            );
        }
        if length != 2 {
            assert_eq!(
                left_out(option::MTU, &value),
                format!("option 26: {length} bytes")
            );
        }
    }
}

#[test]
fn absurd_times_do_not_count() {
    let times = |t1: u32, t2: u32, seconds: u32| {
        let mut message = offer();
        set(&mut message, option::RENEW, &t1.to_be_bytes());
        set(&mut message, option::REBIND, &t2.to_be_bytes());
        set(&mut message, option::LEASE_TIME, &seconds.to_be_bytes());
        let lease = of(&message).unwrap();
        assert!(lease.rebind_s < lease.seconds, "{lease:?}");
        (lease.renew_s, lease.rebind_s)
    };
    assert_eq!(times(100, 200, 300), (100, 200));
    assert_eq!(times(0, 0, 3600), (1800, 3150));
    assert_eq!(times(200, 100, 3600), (100, 100));
    assert_eq!(times(u32::MAX, u32::MAX, 3600), (1800, 3150));
    // A node must be able to renew in time.
    assert_eq!(times(1, 2, 1), (5, 10));
    assert_eq!(times(1, 2, 3600), (5, 10));
    assert_eq!(times(18, 19, 20), (18, 19));
    let short = with(option::LEASE_TIME, &2_u32.to_be_bytes()).unwrap();
    assert_eq!((short.seconds, short.rebind_s), (20, 10));
    assert_eq!(short.left_out, ["option 51: 2 s, raised to 20 s"]);
    assert_eq!(
        with(option::LEASE_TIME, &[0; 4]),
        Err("lease time 0 s".to_owned())
    );
    assert_eq!(with(option::LEASE_TIME, &[255; 4]).unwrap().ends_ns(), None);
}

/// state.json exists as long as the machine runs, and no program needs the secrets after the boot.
#[test]
fn secrets_of_a_server_are_not_written_down() {
    let path = "iscsi:user:SECRET@10.0.0.2::::iqn.a";
    let mut message = offer();
    set(&mut message, option::ROOT_PATH, path.as_bytes());
    set(
        &mut message,
        option::BOOT_FILE,
        b"http://10.0.0.2/?t=SECRET",
    );
    let lease = Lease::of(&message, ASKED).unwrap();
    // dracut gets the unchanged value.
    let variable = ("new_root_path", path.as_bytes().to_vec());
    assert!(lease.variables().contains(&variable));
    assert!(!lease.is_redacted());
    let written = serde_json::to_string(&lease).unwrap();
    assert!(!written.contains("SECRET"), "{written}");
    let read: Lease = serde_json::from_str(&written).unwrap();
    assert_eq!(
        read.root_path.as_deref(),
        Some("iscsi:****@10.0.0.2::::iqn.a")
    );
    assert_eq!(read.boot_file.as_deref(), Some("http://10.0.0.2/?****"));
    assert!(read.is_redacted());
    // A secret that an older version stored is removed as well.
    let older = written.replace("****", "u:SECRET");
    assert_eq!(serde_json::from_str::<Lease>(&older).unwrap(), read);
    let plain = with(option::ROOT_PATH, b"nfs:10.0.0.2:/@root").unwrap();
    let written = serde_json::to_string(&plain).unwrap();
    assert_eq!(serde_json::from_str::<Lease>(&written).unwrap(), plain);
}

#[test]
fn text_is_one_line_or_nothing() {
    for code in [option::ROOT_PATH, option::TFTP_SERVER, option::BOOT_FILE] {
        for text in [
            "a\nb", "\x1b[31m", "a\0b", "\u{85}", "\x7f", "\u{202e}", "\u{2028}",
        ] {
            assert_eq!(
                left_out(code, text.as_bytes()),
                format!("option {code}: contains a control character")
            );
        }
        assert_eq!(
            left_out(code, b"\xff\xfe"),
            format!("option {code}: not UTF-8")
        );
    }
    // Shell syntax is ordinary text: the writer of a shell file quotes it.
    let lease = with(option::ROOT_PATH, b"nfs:1.2.3.4:/$(touch /tmp/x);'\"`\0\0").unwrap();
    assert_eq!(
        lease.root_path.as_deref(),
        Some("nfs:1.2.3.4:/$(touch /tmp/x);'\"`")
    );
    assert_eq!(with(option::ROOT_PATH, b"\0").unwrap().root_path, None);
    let mut message = offer();
    message.file = b"x\ny".to_vec();
    message.sname = b"ok".to_vec();
    let lease = of(&message).unwrap();
    assert_eq!(lease.left_out, ["file: contains a control character"]);
    assert_eq!(lease.tftp_server.as_deref(), Some("ok"));
}

#[test]
fn a_name_has_the_letters_of_names() {
    for code in [option::HOST_NAME, option::DOMAIN_NAME] {
        for name in [
            "a $(b)",
            "$(reboot)",
            "a..b",
            "-x",
            "a/b",
            "é",
            ".",
            "a;b",
            "a'b",
        ] {
            assert_eq!(
                left_out(code, name.as_bytes()),
                format!("option {code}: not a valid host or domain name"),
                "{name}"
            );
        }
        let long = format!("{}.example", "x".repeat(64));
        assert_eq!(
            left_out(code, long.as_bytes()),
            format!("option {code}: not a valid host or domain name")
        );
        assert_eq!(
            left_out(code, &[b'a'; 255]),
            format!("option {code}: not a valid host or domain name")
        );
    }
    assert_eq!(
        left_out(option::HOST_NAME, b"a b"),
        "option 12: not a valid host or domain name"
    );
    assert_eq!(
        with(option::DOMAIN_NAME, b"a-1.b_2.example.")
            .unwrap()
            .domain_name
            .as_deref(),
        Some("a-1.b_2.example.")
    );
}

#[test]
fn several_names_in_the_option_of_the_domain_are_a_search_list() {
    let mut message = offer();
    set(&mut message, option::DOMAIN_NAME, b"a.example  b.example");
    let lease = of(&message).unwrap();
    assert_eq!(lease.domain_name.as_deref(), Some("a.example"));
    assert_eq!(lease.domains(), ["a.example", "b.example"]);
    assert_eq!(lease.left_out, Vec::<String>::new());
    set(&mut message, option::DOMAIN_SEARCH, b"\x01c\0");
    let lease = of(&message).unwrap();
    assert_eq!(lease.domain_name.as_deref(), Some("a.example"));
    assert_eq!(lease.domains(), ["c"]);
    let many = [b'a', b' '].repeat(2000);
    assert_eq!(
        with(option::DOMAIN_NAME, &many).unwrap().domains().len(),
        32
    );
    assert_eq!(with(option::DOMAIN_NAME, b" ").unwrap().domain_name, None);
}

#[test]
fn addresses_that_no_host_has_are_left_out_of_lists() {
    let list = [[10, 0, 0, 1], [0, 0, 0, 0], [10, 0, 0, 2]].concat();
    let lease = with(option::ROUTERS, &list).unwrap();
    assert_eq!(
        lease.routers,
        [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)]
    );
    assert_eq!(lease.left_out, ["option 3: 0.0.0.0"]);
    assert_eq!(lease.gateway(), Some(Ipv4Addr::new(10, 0, 0, 1)));
}

#[test]
fn an_mtu_that_ipv6_cannot_live_with_is_left_out() {
    for mtu in [0_u16, 576, 1279] {
        assert_eq!(
            left_out(option::MTU, &mtu.to_be_bytes()),
            format!("option 26: MTU {mtu}, less than 1280")
        );
    }
    let least = 1280_u16.to_be_bytes();
    assert_eq!(with(option::MTU, &least).unwrap().mtu, Some(1280));
    assert_eq!(with(option::MTU, &[255, 255]).unwrap().mtu, Some(65535));
}

#[test]
fn classless_routes_go_before_routers_and_have_no_bits_behind_their_prefix() {
    let mut message = offer();
    set(&mut message, option::ROUTERS, &[10, 0, 0, 1]);
    set(
        &mut message,
        option::STATIC_ROUTES,
        &[192, 168, 1, 0, 10, 0, 0, 7],
    );
    let route = |text: &str, prefix, gateway: &str| Route {
        network: text.parse().unwrap(),
        prefix,
        gateway: gateway.parse().unwrap(),
    };
    let lease = of(&message).unwrap();
    assert_eq!(
        lease.routes(),
        [
            route("192.168.1.0", 24, "10.0.0.7"),
            route("0.0.0.0", 0, "10.0.0.1")
        ]
    );
    set(
        &mut message,
        option::CLASSLESS_ROUTES,
        &[
            20, 10, 17, 255, 10, 0, 0, 8, 0, 10, 0, 0, 9, 32, 10, 1, 2, 3, 0, 0, 0, 0,
        ],
    );
    let lease = of(&message).unwrap();
    assert_eq!(
        lease.routes(),
        [
            route("10.17.240.0", 20, "10.0.0.8"),
            route("0.0.0.0", 0, "10.0.0.9"),
            route("10.1.2.3", 32, "0.0.0.0")
        ]
    );
    assert_eq!(lease.gateway(), Some(Ipv4Addr::new(10, 0, 0, 9)));
    // Both halves of a default route, and groups.
    let value = &[
        1, 0, 10, 0, 0, 8, 1, 128, 10, 0, 0, 8, 4, 224, 0, 0, 0, 0, 8, 239, 10, 0, 0, 8,
    ];
    let lease = with(option::CLASSLESS_ROUTES, value).unwrap();
    assert_eq!(
        lease.routes(),
        [
            route("0.0.0.0", 1, "10.0.0.8"),
            route("128.0.0.0", 1, "10.0.0.8"),
            route("224.0.0.0", 4, "0.0.0.0"),
            route("239.0.0.0", 8, "10.0.0.8")
        ]
    );
    assert_eq!(lease.left_out, Vec::<String>::new());
    assert!(lease.is_sound());
}

#[test]
fn routes_that_cannot_be_are_left_out() {
    const CODE: u8 = option::CLASSLESS_ROUTES;
    for value in [
        &[33, 1, 1, 1, 1, 10, 0, 0, 1][..],
        &[],
        &[24, 10, 0],
        &[0],
        &[0, 10, 0, 0],
        &[255; 255],
    ] {
        assert_eq!(left_out(CODE, value), "option 121: wrong length");
        assert_eq!(with(CODE, value).unwrap().classless_routes, None);
    }
    assert_eq!(
        left_out(CODE, &[8, 127, 10, 0, 0, 1]),
        "option 121: 127.0.0.0/8 via 10.0.0.1"
    );
    assert_eq!(
        left_out(CODE, &[0, 0, 0, 0, 0]),
        "option 121: 0.0.0.0/0 via 0.0.0.0"
    );
    assert_eq!(
        left_out(CODE, &[8, 10, 255, 255, 255, 255]),
        "option 121: 10.0.0.0/8 via 255.255.255.255"
    );
    assert_eq!(
        left_out(option::STATIC_ROUTES, &[0, 0, 0, 0, 10, 0, 0, 1]),
        "option 33: 0.0.0.0 via 10.0.0.1"
    );
}

#[test]
fn a_search_list_is_read_with_its_pointers_and_every_walk_ends() {
    const CODE: u8 = option::DOMAIN_SEARCH;
    let list = b"\x01b\x01a\x07example\0\x01c\xc0\x02";
    assert_eq!(
        with(CODE, list).unwrap().domain_search,
        ["b.a.example", "c.a.example"]
    );
    for wrong in [
        &b"\xc0\x00"[..],
        b"\x01a\xc0\x00",
        b"\x01a\xc0\x02",
        b"\x01a",
        b"\x3fabc",
        b"\x40a\0",
        b"\x03a b\0",
        b"\xc0",
        b"\0",
    ] {
        assert_eq!(
            left_out(CODE, wrong),
            "option 119: not a valid domain list",
            "{wrong:?}"
        );
    }
    let many = b"\x01a\0".repeat(100);
    assert_eq!(with(CODE, &many).unwrap().domain_search.len(), 32);
}

#[test]
fn the_variables_are_those_that_dracut_reads() {
    let mut message = offer();
    message.siaddr = Ipv4Addr::new(10, 0, 0, 4);
    message.file = b"boot.img".to_vec();
    for (code, value) in [
        (option::ROUTERS, &[10, 0, 0, 1, 10, 0, 0, 2][..]),
        (option::NAME_SERVERS, &[10, 0, 0, 3, 10, 0, 0, 4]),
        (option::CLASSLESS_ROUTES, &[20, 10, 17, 240, 10, 0, 0, 8]),
        (option::HOST_NAME, b"node5"),
        (option::DOMAIN_NAME, b"example"),
        (option::ROOT_PATH, b"nfs:10.0.0.1:/srv"),
        (option::MTU, &[8, 0]),
        (option::BROADCAST, &[10, 0, 0, 255]),
        (option::TFTP_SERVER, b"tftp"),
        (option::DOMAIN_SEARCH, b"\x01a\0\x01b\0"),
    ] {
        set(&mut message, code, value);
    }
    let variables = of(&message).unwrap().variables();
    let text: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value)))
        .collect();
    assert_eq!(
        text,
        [
            "new_ip_address=10.0.0.5",
            "new_subnet_mask=255.255.255.0",
            "new_broadcast_address=10.0.0.255",
            "new_routers=10.0.0.1,10.0.0.2",
            "new_classless_static_routes=20 10 17 240 10 0 0 8",
            "new_domain_name_servers=10.0.0.3 10.0.0.4",
            "new_domain_name=example",
            "new_domain_search=a b",
            "new_host_name=node5",
            "new_interface_mtu=2048",
            "new_dhcp_lease_time=3600",
            "new_dhcp_server_identifier=10.0.0.1",
            "new_next_server=10.0.0.4",
            "new_tftp_server_name=tftp",
            "new_root_path=nfs:10.0.0.1:/srv",
            "filename=boot.img",
        ]
    );
}

proptest::proptest! {
    #[test]
    fn whatever_is_believed_is_clean(
        code in 1_u8..=254,
        value in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
        address in proptest::prelude::any::<u32>(),
    ) {
        let mut message = offer();
        message.yiaddr = Ipv4Addr::from_bits(address);
        set(&mut message, code, &value);
        message.file = value.iter().copied().take(128).take_while(|byte| *byte != 0).collect();
        if let Ok(lease) = of(&message) {
            proptest::prop_assert!(is_host(lease.address) && is_host(lease.server));
            proptest::prop_assert!((8..=32).contains(&lease.prefix));
            proptest::prop_assert!(lease.renew_s <= lease.rebind_s && lease.rebind_s <= lease.seconds);
            for (name, value) in lease.variables() {
                let text = String::from_utf8(value).unwrap();
                proptest::prop_assert!(!text.chars().any(char::is_control), "{}", name);
            }
            for line in &lease.left_out {
                proptest::prop_assert!(!line.chars().any(char::is_control));
            }
            for route in lease.routes() {
                proptest::prop_assert!(route.prefix <= 32);
                proptest::prop_assert_eq!(bounds(route.network, route.prefix).0, route.network);
            }
        }
    }
}

#[test]
fn the_nodes_own_address_is_no_gateway() {
    let own = "10.0.0.5 is the node's own address";
    let routers = [[10, 0, 0, 5], [10, 0, 0, 1]].concat();
    let lease = with(option::ROUTERS, &routers).unwrap();
    assert_eq!(lease.gateway(), Some(Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!(lease.left_out, [format!("option 3: {own}")]);
    assert_eq!(
        left_out(option::STATIC_ROUTES, &[10, 7, 0, 0, 10, 0, 0, 5]),
        format!("option 33: 10.7.0.0 via {own}")
    );
    assert_eq!(
        left_out(option::CLASSLESS_ROUTES, &[0, 10, 0, 0, 5]),
        format!("option 121: 0.0.0.0/0 via {own}")
    );
}

#[test]
fn a_host_is_not_called_as_every_other_one_or_by_a_number() {
    for name in ["localhost", "LocalHost.", "localhost.localdomain"] {
        assert_eq!(
            left_out(option::HOST_NAME, name.as_bytes()),
            format!("option 12: {name} refers to the node itself")
        );
    }
    for name in ["1.2.3.4", "17", "1.2.3.4."] {
        assert_eq!(
            left_out(option::HOST_NAME, name.as_bytes()),
            format!("option 12: {name} is a number or an address")
        );
    }
    for name in ["node017", "17a", "localhost1"] {
        let lease = with(option::HOST_NAME, name.as_bytes()).unwrap();
        assert_eq!(lease.host_name.as_deref(), Some(name));
    }
}

#[test]
fn a_host_name_that_the_kernel_refuses_is_shortened() {
    let lease = with(option::HOST_NAME, b"node1.").unwrap();
    assert_eq!(lease.host_name.as_deref(), Some("node1"));
    let long = format!("node1.{}.example", "c".repeat(60));
    assert_eq!(
        left_out(option::HOST_NAME, long.as_bytes()),
        format!("option 12: {long} has more than 64 bytes: node1 is used")
    );
    let lease = with(option::HOST_NAME, long.as_bytes()).unwrap();
    assert_eq!(lease.host_name.as_deref(), Some("node1"));
    assert!(lease.is_sound());
    let number = format!("0042.{}.example", "c".repeat(60));
    assert_eq!(
        left_out(option::HOST_NAME, number.as_bytes()),
        format!("option 12: {number} has more than 64 bytes")
    );
    let lease = with(option::HOST_NAME, number.as_bytes()).unwrap();
    assert_eq!(lease.host_name, None);
    assert!(lease.is_sound());
}

#[test]
fn a_thousand_values_that_are_none_are_one_line() {
    let lease = with(option::NAME_SERVERS, &[255; 4000]).unwrap();
    assert_eq!(lease.left_out, ["option 6: 255.255.255.255 and 999 more"]);
}

#[test]
fn the_servers_own_address_is_not_granted() {
    assert_eq!(
        with(option::SERVER, &[10, 0, 0, 5]),
        Err("10.0.0.5 is the server's own address".to_owned())
    );
}
