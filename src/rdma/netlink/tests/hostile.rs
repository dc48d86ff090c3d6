// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams that are truncated, flipped or forged.

use netlink_packet_core::NlasIterator;
use proptest::prelude::*;

use super::*;

/// Passes a datagram to every parser.
fn read_all(datagram: &[u8]) {
    // Each message has at least its header: a larger count would mean that the walk does not
    // advance.
    assert!(wire::messages(datagram).count() <= datagram.len() / 16 + 1);
    for message in wire::messages(datagram).flatten() {
        assert!(NlasIterator::new(message.payload()).count() <= datagram.len() / 4 + 1);
    }
    for end in [
        outcome(&[datagram.to_vec()], wire::device).1,
        outcome(&[datagram.to_vec()], wire::port).1,
        outcome(&[datagram.to_vec()], wire::chardev).1,
        outcome(&[datagram.to_vec()], wire::connections).1,
    ] {
        // Only NLMSG_DONE or an acknowledgement ends a request with success.
        let ends = wire::messages(datagram)
            .flatten()
            .any(|message| matches!(message.message_type(), 2 | 3));
        assert!(ends || end != Ok(true));
    }
    let mut events = Vec::new();
    read_notifications(datagram, &mut events);
}

#[test]
fn cut_at_every_length() {
    for hex in ALL {
        let whole = bytes(hex);
        for length in 0..whole.len() {
            let cut = &whole[..length];
            read_all(cut);
            let first = wire::messages(cut).next();
            let is_whole = length >= usize::from(whole[0]);
            assert_eq!(
                first.map(|message| message.is_ok()),
                (length > 0).then_some(is_whole),
                "{hex} cut at {length}"
            );
        }
    }
}

#[test]
fn lengths_that_would_not_advance_end_the_walk() {
    for length in [0_u32, 1, 15, u32::MAX] {
        let mut message = bytes(DEVICE_6_1);
        message[..4].copy_from_slice(&length.to_ne_bytes());
        let walked: Vec<bool> = wire::messages(&message).map(|m| m.is_ok()).collect();
        assert_eq!(walked, [false], "{length}");
    }
    for length in [0_u16, 3, u16::MAX] {
        let mut message = bytes(DEVICE_6_1);
        message[16..18].copy_from_slice(&length.to_ne_bytes());
        let walked: Vec<bool> = wire::messages(&message)
            .flatten()
            .flat_map(|message| NlasIterator::new(message.payload()))
            .map(|attribute| attribute.is_ok())
            .collect();
        assert_eq!(walked, [false], "{length}");
    }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A `struct sockaddr_storage` of AF_INET.
fn storage(port: u16, address: [u8; 4]) -> Vec<u8> {
    let mut bytes = [&2_u16.to_ne_bytes()[..], &port.to_be_bytes(), &address].concat();
    bytes.resize(128, 0);
    bytes
}

/// `fill_res_cm_id_entry` of nldev.c.
fn connection(state: u8, from: &[u8], to: &[u8]) -> Vec<u8> {
    let parts = [
        attribute(attr::PORT_INDEX, &1_u32.to_ne_bytes()),
        attribute(attr::RES_STATE, &[state]),
        attribute(attr::RES_KERN_NAME, b"rpcrdma\0"),
        attribute(attr::RES_SRC_ADDR, from),
        attribute(attr::RES_DST_ADDR, to),
    ];
    attribute(attr::RES_CM_ID_ENTRY, &parts.concat())
}

#[test]
fn only_complete_connections_in_the_state_connect_are_read() {
    let (own, other) = (storage(40000, [10, 0, 0, 1]), storage(20049, [10, 0, 0, 2]));
    let entries = [
        connection(5, &own, &other),
        connection(4, &own, &other),
        connection(5, &own[..7], &other),
        connection(5, &[0; 128], &other),
    ];
    let payload = [
        attribute(attr::DEV_NAME, b"mlx5_0\0"),
        attribute(attr::RES_CM_ID, &entries.concat()),
    ]
    .concat();
    let mut message = Request::dump(Op::ResCmIdGet).bytes(SEQ);
    message.extend(payload);
    let length = u32::try_from(message.len()).unwrap();
    message[..4].copy_from_slice(&length.to_ne_bytes());
    let (found, end) = outcome(&[message, bytes(DONE)], wire::connections);
    assert_eq!(end, Ok(true));
    let expected = Connection {
        ifname: "mlx5_0".to_owned(),
        port: Some(1),
        owner: Some("rpcrdma".to_owned()),
        source: "10.0.0.1:40000".parse().unwrap(),
        destination: "10.0.0.2:20049".parse().unwrap(),
    };
    assert_eq!(found, [vec![expected]]);
}

#[test]
fn text_without_nul_and_numbers_of_odd_width() {
    let text = |value: &[u8]| {
        let bytes = attribute(2, value);
        wire::text(&wire::Attribute::new(&bytes)).map_err(|why| why.to_string())
    };
    fn number<T: TryFrom<u64>>(value: &[u8]) -> std::result::Result<T, String> {
        let bytes = attribute(2, value);
        wire::number(&wire::Attribute::new(&bytes)).map_err(|why| why.to_string())
    }
    assert_eq!(text(b"rxe0\0"), Ok("rxe0".to_owned()));
    let no_text = Err("attribute 2 is not NUL-terminated UTF-8".to_owned());
    assert_eq!(text(b"rxe0"), no_text);
    assert_eq!(text(b"\xff\0"), no_text);
    assert_eq!(number(&[7]), Ok(7_u32));
    assert_eq!(number(&[7, 0, 0, 0]), Ok(7_u8));
    let no_number = "attribute 2 is not a number of the expected size".to_owned();
    assert_eq!(number::<u8>(&[0, 1, 0, 0]), Err(no_number.clone()));
    assert_eq!(number::<u32>(&[7, 0]), Err(no_number.clone()));
    assert_eq!(number::<u32>(&[]), Err(no_number));
}

proptest! {
    #[test]
    fn no_flipped_byte_panics(which in 0..ALL.len(), at: prop::sample::Index, with: u8) {
        let mut datagram = [bytes(ALL[which]), bytes(DONE)].concat();
        let at = at.index(datagram.len());
        datagram[at] ^= with;
        read_all(&datagram);
    }

    #[test]
    fn no_datagram_panics(datagram in prop::collection::vec(any::<u8>(), 0..512)) {
        read_all(&datagram);
    }

    /// The decoder reads what the encoder writes.
    #[test]
    fn requests_are_well_formed(index: u32, name in "[a-z0-9_]{1,63}") {
        let request = Request::ask(Op::Newlink)
            .text(attr::DEV_NAME, &name)
            .u32(attr::DEV_INDEX, index)
            .bytes(SEQ);
        let mut walked = wire::messages(&request);
        let message = walked.next().unwrap().unwrap();
        prop_assert!(walked.next().is_none());
        prop_assert_eq!((message.message_type(), message.sequence_number()), (5123, SEQ));
        let attributes: Vec<_> = NlasIterator::new(message.payload()).map(|a| a.unwrap()).collect();
        prop_assert_eq!(attributes.len(), 2);
        prop_assert_eq!(wire::text(&attributes[0]).unwrap(), name);
        prop_assert_eq!(wire::number::<u32>(&attributes[1]).unwrap(), index);
    }
}
