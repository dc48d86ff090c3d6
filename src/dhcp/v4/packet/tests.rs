// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of real and of hostile servers, and properties of arbitrary bytes.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

/// Bytes before the options: the BOOTP header and the magic cookie.
const HEADER: usize = 240;

/// The header of an OFFER and the cookie, `sname` and `file` as given.
fn header(sname: &[u8], file: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 32, 0, 0, 0xde, 0xad, 0xbe, 0xef, 0, 3, 0x80, 0];
    bytes.extend([0, 0, 0, 0, 10, 0, 0, 55, 10, 0, 0, 4, 0, 0, 0, 0]);
    bytes.extend([0; 16]);
    for (text, size) in [(sname, 64), (file, 128)] {
        let mut field = text.to_vec();
        field.resize(size, 0);
        bytes.extend(field);
    }
    bytes.extend(COOKIE);
    bytes
}

fn with(options: &[u8]) -> Vec<u8> {
    [header(b"", b"").as_slice(), options].concat()
}

#[test]
fn an_offer_is_read_as_it_was_sent() {
    let bytes = [
        header(b"tftp.example", b"boot.img").as_slice(),
        &[
            53, 1, 2, 54, 4, 10, 0, 0, 2, 0, 0, 51, 4, 0, 0, 0x0e, 0x10, 255, 7, 7,
        ],
    ]
    .concat();
    let message = Message::decode(&bytes).unwrap();
    assert_eq!((message.op, message.htype, message.hlen), (2, 32, 0));
    assert_eq!(
        (message.xid, message.secs, message.broadcast),
        (0xdead_beef, 3, true)
    );
    assert_eq!(message.yiaddr, Ipv4Addr::new(10, 0, 0, 55));
    assert_eq!(message.siaddr, Ipv4Addr::new(10, 0, 0, 4));
    assert_eq!(
        (message.sname.as_slice(), message.file.as_slice()),
        (&b"tftp.example"[..], &b"boot.img"[..])
    );
    assert_eq!(message.kind, Kind::Offer);
    assert_eq!(
        message.address(option::SERVER),
        Some(Ipv4Addr::new(10, 0, 0, 2))
    );
    assert_eq!(message.number(option::LEASE_TIME), Some(3600));
    assert_eq!(message.options.len(), 2);
}

#[test]
fn parts_of_an_option_are_joined_over_all_three_fields_in_their_order() {
    let bytes = [
        header(
            &[17, 2, b'e', b'f', 255],
            &[17, 2, b'c', b'd', 0, 12, 1, b'n', 255],
        )
        .as_slice(),
        &[53, 1, 5, 17, 1, b'a', 52, 1, 3, 17, 1, b'b', 255],
    ]
    .concat();
    let message = Message::decode(&bytes).unwrap();
    assert_eq!(message.option(option::ROOT_PATH), Some(&b"abcdef"[..]));
    assert_eq!(message.option(option::HOST_NAME), Some(&b"n"[..]));
    assert_eq!(message.option(option::OVERLOAD), None);
    assert!(message.sname.is_empty() && message.file.is_empty());
}

#[test]
fn a_malformed_packet_is_not_a_message() {
    let decoded = |options: &[u8]| Message::decode(&with(options)).map(|_| ());
    assert_eq!(Message::decode(&[]), Err(Malformed::Short(0)));
    assert_eq!(
        Message::decode(&with(&[])[..239]),
        Err(Malformed::Short(239))
    );
    assert_eq!(Message::decode(&vec![0; 4097]), Err(Malformed::Long(4097)));
    let mut cookie = with(&[53, 1, 2, 255]);
    cookie[239] ^= 1;
    assert_eq!(Message::decode(&cookie), Err(Malformed::Cookie));
    assert_eq!(decoded(&[]), Err(Malformed::Type));
    assert_eq!(decoded(&[53, 0, 255]), Err(Malformed::Type));
    assert_eq!(decoded(&[53, 1, 0, 255]), Err(Malformed::Type));
    assert_eq!(decoded(&[53, 1, 10, 255]), Err(Malformed::Type));
    assert_eq!(decoded(&[53, 1, 2, 53, 1, 2, 255]), Err(Malformed::Type));
    assert_eq!(decoded(&[53, 1, 2, 12]), Err(Malformed::Truncated(12)));
    assert_eq!(
        decoded(&[53, 1, 2, 12, 3, 0, 0]),
        Err(Malformed::Truncated(12))
    );
    assert_eq!(
        decoded(&[53, 1, 2, 52, 1, 4, 255]),
        Err(Malformed::Length(52, 1))
    );
    assert_eq!(
        decoded(&[53, 1, 2, 52, 0, 255]),
        Err(Malformed::Length(52, 0))
    );
    // Any bytes may follow END; a full field needs no END.
    assert_eq!(decoded(&[53, 1, 2, 255, 12]), Ok(()));
    assert_eq!(decoded(&[53, 1, 2]), Ok(()));
}

#[test]
fn an_overloaded_field_that_does_not_fit_is_no_message_either() {
    let bytes = [
        header(&[200; 64], b"").as_slice(),
        &[53, 1, 2, 52, 1, 2, 255],
    ]
    .concat();
    assert_eq!(Message::decode(&bytes), Err(Malformed::Truncated(200)));
}

#[test]
fn a_long_option_is_split_and_comes_back_whole() {
    let mut message = Message::new(Kind::Request, 7);
    let long: Vec<u8> = (0..=255).cycle().take(700).collect();
    message.options.insert(43, long);
    message.options.insert(80, Vec::new());
    assert_eq!(Message::decode(&message.encode()), Ok(message));
}

prop_compose! {
    fn message()(
        kind in 1_u8..=9,
        (op, htype, hlen) in any::<(u8, u8, u8)>(),
        (xid, secs, broadcast) in any::<(u32, u16, bool)>(),
        addresses in any::<[u32; 4]>(),
        chaddr in any::<[u8; 16]>(),
        sname in vec(1_u8.., 0..64),
        file in vec(1_u8.., 0..128),
        options in btree_map(1_u8..=254, vec(any::<u8>(), 0..300), 0..9),
    ) -> Message {
        let [ciaddr, yiaddr, siaddr, giaddr] = addresses.map(Ipv4Addr::from_bits);
        let mut message = Message {
            op, htype, hlen, xid, secs, broadcast, ciaddr, yiaddr, siaddr, giaddr, chaddr, sname, file, options,
            kind: Kind::of_number(kind).unwrap(),
        };
        message.options.remove(&option::MESSAGE_TYPE);
        message.options.remove(&option::OVERLOAD);
        message
    }
}

proptest! {
    #[test]
    fn any_message_comes_back(message in message()) {
        let bytes = message.encode();
        prop_assert!(bytes.len() >= 300);
        prop_assert_eq!(Message::decode(&bytes), Ok(message));
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in vec(any::<u8>(), 0..600)) {
        for packet in [bytes.clone(), with(&bytes)] {
            if let Ok(message) = Message::decode(&packet) {
                prop_assert!(message.sname.len() <= 64 && message.file.len() <= 128);
            }
        }
    }

    #[test]
    fn a_message_is_never_larger_than_what_it_was_read_from(bytes in vec(any::<u8>(), 0..600)) {
        let packet = [with(&[53, 1, 2]), bytes].concat();
        if let Ok(message) = Message::decode(&packet) {
            let size: usize = message.options.values().map(Vec::len).sum();
            prop_assert!(size <= packet.len() - HEADER);
            prop_assert_eq!(Message::decode(&message.encode()).unwrap().options, message.options);
        }
    }
}
