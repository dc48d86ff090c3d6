// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DHCPv6 server that first sends many kinds of invalid answers, then the valid answer: the
//! client takes only the valid answer.

use std::fs;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};

use super::hostile::resident;
use super::network::{Evil, enter_far, ip};
use super::six::{IAID, Node, inquire, local, with_six};
use ibboot::dhcp::v6::packet::{Address, Association, Kind, LARGEST, Message, Options, option};
use ibboot::dhcp::v6::{CLIENT_PORT, SERVER_PORT, SERVERS};

const MINE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x77);
const GOOD: [u8; 5] = [0, 3, 0, 1, 1];
const EVIL: [u8; 5] = [0, 3, 0, 1, 6];
const SHELL: &[u8] = b"$(touch /run/canary);`touch /run/canary`'\";\n\x1b[31m";

fn granted(address: Ipv6Addr, preferred_s: u32, valid_s: u32) -> Vec<u8> {
    Address {
        address,
        preferred_s,
        valid_s,
        options: Options::default(),
    }
    .encode()
}

fn association(iaid: u32, times: (u32, u32), inside: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut association = Association::asking(iaid, None);
    (association.renew_s, association.rebind_s) = times;
    for (code, value) in inside {
        association.options.push(*code, value.clone());
    }
    association.encode()
}

/// The valid answer to this message.
fn right(request: &Message) -> Message {
    let kind = match request.kind {
        Kind::Solicit => Kind::Advertise,
        _ => Kind::Reply,
    };
    let mut answer = Message::new(kind, request.transaction);
    let own = request.options.first(option::CLIENT_ID).unwrap_or_default();
    answer.options.push(option::CLIENT_ID, own);
    answer.options.push(option::SERVER_ID, GOOD);
    answer.options.push(option::PREFERENCE, [255]);
    let address = granted(MINE, 1800, 3600);
    let inside = association(IAID, (0, 0), &[(option::IA_ADDRESS, address)]);
    answer.options.push(option::IA_NA, inside);
    answer
}

fn with(request: &Message, code: u16, value: impl Into<Vec<u8>>) -> Vec<u8> {
    let mut answer = right(request);
    answer.options.remove(code);
    answer.options.push(code, value);
    answer.encode()
}

fn without(request: &Message, code: u16) -> Vec<u8> {
    let mut answer = right(request);
    answer.options.remove(code);
    answer.encode()
}

/// The valid answer with these options in its association.
fn holding(request: &Message, inside: &[(u16, Vec<u8>)]) -> Vec<u8> {
    with(request, option::IA_NA, association(IAID, (0, 0), inside))
}

fn address(request: &Message, text: &str) -> Vec<u8> {
    let address = granted(text.parse().unwrap(), 60, 60);
    holding(request, &[(option::IA_ADDRESS, address)])
}

/// Invalid answers; the client must not take any of them.
fn tricks(request: &Message) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = right(request).encode();
    let more = |tail: &[u8]| [&bytes, tail].concat();
    let kind = |kind: Kind| {
        let mut answer = right(request);
        answer.kind = kind;
        answer.encode()
    };
    let first = |number: u8| [&[number], &bytes[1..]].concat();
    let status = |code: u8| (option::STATUS_CODE, vec![0, code]);
    let mut other = right(request);
    other.transaction ^= 1;
    let mut swapped = right(request);
    swapped.options.remove(option::SERVER_ID);
    swapped.options.push(option::SERVER_ID, EVIL);
    if swapped.kind == Kind::Advertise {
        swapped.kind = Kind::Reply;
    }
    vec![
        ("nothing", Vec::new()),
        ("a header cut off", bytes[..3].to_vec()),
        ("a header only", bytes[..4].to_vec()),
        ("an option without its length", more(&[0, 13, 0])),
        ("an option longer than the packet", more(&[0, 13, 255, 255])),
        ("larger than any message", more(&[0; LARGEST])),
        ("type 0", first(0)),
        ("a relay's message", first(12)),
        ("a type that does not exist", first(255)),
        ("another transaction", other.encode()),
        ("another client", with(request, option::CLIENT_ID, [7; 12])),
        ("nobody's", without(request, option::CLIENT_ID)),
        ("no server", without(request, option::SERVER_ID)),
        (
            "a server of 2 bytes",
            with(request, option::SERVER_ID, [1; 2]),
        ),
        (
            "a server of 131 bytes",
            with(request, option::SERVER_ID, [1; 131]),
        ),
        ("a request", kind(Kind::Request)),
        ("RECONFIGURE", kind(Kind::Reconfigure)),
        ("a reply of a server that was not queried", swapped.encode()),
        ("no association", without(request, option::IA_NA)),
        (
            "an association cut off",
            with(request, option::IA_NA, [0; 11]),
        ),
        (
            "another association",
            with(
                request,
                option::IA_NA,
                association(9, (0, 0), &[(5, granted(MINE, 1, 1))]),
            ),
        ),
        (
            "T1 after T2",
            with(
                request,
                option::IA_NA,
                association(IAID, (9, 8), &[(5, granted(MINE, 9, 9))]),
            ),
        ),
        ("an association that overlaps the end", {
            let mut inside = association(IAID, (0, 0), &[]);
            inside.extend([0, 5, 0, 24, 0xfd]);
            with(request, option::IA_NA, inside)
        }),
        ("no address", holding(request, &[])),
        ("half an address", holding(request, &[(5, vec![0; 8])])),
        ("no time", holding(request, &[(5, granted(MINE, 9, 8))])),
        ("loopback", address(request, "::1")),
        ("no address at all", address(request, "::")),
        ("multicast", address(request, "ff02::1")),
        ("link-local", address(request, "fe80::77")),
        ("IPv4 in IPv6", address(request, "::ffff:10.0.0.1")),
        ("half a status", with(request, option::STATUS_CODE, [0])),
        ("half a status inside", holding(request, &[(13, vec![7])])),
    ]
    .into_iter()
    .chain(
        (request.kind == Kind::Solicit)
            .then(|| ("no address to be had", holding(request, &[status(2)]))),
    )
    .collect()
}

/// The valid answer with shell syntax in every option that is a name, and absurd times.
fn poisoned(request: &Message) -> Vec<u8> {
    let mut answer = right(request);
    answer.options.remove(option::IA_NA);
    let address = granted(MINE, 1800, u32::MAX);
    let inside = [
        (option::IA_ADDRESS, address),
        (option::STATUS_CODE, [&[0, 0], SHELL].concat()),
    ];
    let inside = association(IAID, (u32::MAX - 1, u32::MAX), &inside);
    answer.options.push(option::IA_NA, inside);
    answer.options.push(option::DOMAIN_LIST, SHELL);
    answer.options.push(option::NAME_SERVERS, [0xff; 64]);
    answer
        .options
        .push(option::STATUS_CODE, [&[0, 0], SHELL].concat());
    answer.options.push(option::SOL_MAX_RT, [0xff; 4]);
    answer.options.push(0xffff, SHELL);
    answer.encode()
}

/// A server in the namespace `far`: `answer` returns the payloads for each received message.
fn serve(answer: impl Fn(&Message) -> Vec<Vec<u8>> + Send + 'static) -> Evil {
    let index = far_index();
    Evil::start((Ipv6Addr::UNSPECIFIED, SERVER_PORT), move |socket| {
        socket.join_multicast_v6(&SERVERS, index).unwrap();
        let socket = socket.try_clone().unwrap();
        move |request: &[u8], from| {
            for payload in answer(&Message::decode(request).unwrap()) {
                socket.send_to(&payload, from).unwrap();
            }
        }
    })
}

fn far_index() -> u32 {
    let shown = ip("-n far -o link show dev far");
    shown.split(':').next().unwrap().parse().unwrap()
}

#[test]
fn no_trick_is_taken_and_each_leaves_the_way_free_for_what_is_right() {
    with_six("hostile DHCPv6 server", &[], || {
        let names: Vec<&str> = tricks(&Message::new(Kind::Solicit, 1))
            .iter()
            .map(|trick| trick.0)
            .collect();
        for (number, name) in names.iter().enumerate() {
            let _server = serve(move |request| {
                let mut all = tricks(request);
                let trick = (number < all.len()).then(|| all.swap_remove(number).1);
                trick.into_iter().chain([right(request).encode()]).collect()
            });
            let mut node = Node::new();
            let lease = node.boot();
            assert_eq!(
                (lease.address, lease.server_id.as_str()),
                (MINE, "00:03:00:01:01"),
                "{name}"
            );
            let progress = node.session.progress();
            assert_eq!(progress.counts.sent, 2, "{name}: {progress:#?}");
        }
    });
}

#[test]
fn a_poisoned_answer_gives_an_address_and_nothing_else() {
    with_six("poisoned DHCPv6 answer", &[], || {
        let _server = serve(|request| vec![poisoned(request)]);
        let mut node = Node::new();
        let lease = node.boot();
        assert_eq!(lease.address, MINE);
        // Times of a hundred years are valid; no calculation overflows.
        assert_eq!(
            (lease.renew_s, lease.rebind_s, lease.seconds),
            (u32::MAX - 1, u32::MAX, u32::MAX)
        );
        assert_eq!(
            (lease.name_servers.len(), lease.domain_search.len()),
            (0, 0)
        );
        assert_eq!(lease.left_out.len(), 5, "{:#?}", lease.left_out);
        assert!(!fs::exists("/run/canary").unwrap());
    });
}

/// Tricks that do not answer a request for settings.
const TRICKS_FOR_A_QUESTION: [&str; 18] = [
    "nothing",
    "a header cut off",
    "a header only",
    "an option without its length",
    "an option longer than the packet",
    "larger than any message",
    "type 0",
    "a relay's message",
    "a type that does not exist",
    "another transaction",
    "another client",
    "nobody's",
    "no server",
    "a server of 2 bytes",
    "a server of 131 bytes",
    "a request",
    "RECONFIGURE",
    "half a status",
];

#[test]
fn a_question_for_name_servers_believes_no_trick_and_no_poison() {
    with_six("hostile stateless DHCPv6 server", &[], || {
        let _server = serve(|request| {
            assert_eq!(request.kind, Kind::InformationRequest);
            let tricks = tricks(request);
            let tricks = TRICKS_FOR_A_QUESTION.map(|name| {
                let mut found = tricks.iter().filter(|trick| trick.0 == name);
                found.next().unwrap().1.clone()
            });
            tricks.into_iter().chain([poisoned(request)]).collect()
        });
        let progress = inquire();
        let information = progress.information.unwrap();
        assert_eq!(information.server_id, "00:03:00:01:01");
        assert_eq!(information.variables(), []);
        assert_eq!(information.left_out.len(), 5, "{:#?}", information.left_out);
        let counts = progress.counts;
        assert_eq!((counts.sent, counts.replies, counts.malformed), (1, 1, 8));
        assert!(!fs::exists("/run/canary").unwrap());
    });
}

#[test]
fn a_flood_of_answers_to_others_costs_no_memory_and_no_lease() {
    with_six("DHCPv6 flood", &[], || {
        const FLOOD: usize = 300_000;
        let near = local();
        let index = far_index();
        let flood = std::thread::spawn(move || {
            enter_far();
            let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
            let other = right(&Message::new(Kind::Solicit, 0x0012_3456)).encode();
            let to = std::net::SocketAddrV6::new(near, CLIENT_PORT, 0, index);
            for _ in 0..FLOOD {
                // The queue may be full during a flood.
                socket.send_to(&other, SocketAddr::V6(to)).ok();
            }
        });
        let _server = serve(|request| vec![right(request).encode()]);
        let mut node = Node::new();
        let before = resident();
        node.session.start(None);
        node.until(60, |session| session.lease().is_some());
        assert_eq!(node.session.lease().unwrap().address, MINE);
        flood.join().unwrap();
        node.until(20, |session| session.progress().counts.foreign > 100);
        let grown = resident().saturating_sub(before);
        assert!(grown < 8192, "{grown} KiB more");
    });
}
