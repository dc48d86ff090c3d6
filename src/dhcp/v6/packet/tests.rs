// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes as servers send them, invalid bytes, and properties of arbitrary bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// An ADVERTISE: server and client identifier, preference, one address.
const ADVERTISE: &[u8] = &[
    2, 0xab, 0xcd, 0xef, // type, transaction
    0, 2, 0, 4, 0, 3, 0, 1, // server identifier
    0, 1, 0, 5, 0, 3, 0, 32, 9, // client identifier
    0, 7, 0, 1, 255, // preference
    0, 3, 0, 40, 0, 0, 0x80, 1, 0, 0, 0, 50, 0, 0, 0, 80, // IA_NA, T1, T2
    0, 5, 0, 24, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, // address
    0, 0, 0, 100, 0, 0, 0, 200, // preferred, valid
];

#[test]
fn an_advertise_is_read_as_it_was_sent() {
    let message = Message::decode(ADVERTISE).unwrap();
    assert_eq!(
        (message.kind, message.transaction),
        (Kind::Advertise, 0x00ab_cdef)
    );
    assert_eq!(message.duid(option::SERVER_ID), Some(&[0_u8, 3, 0, 1][..]));
    let codes: Vec<u16> = message.options.codes().collect();
    assert_eq!(codes, [2, 1, 7, 3]);
    let association = message.options.first(option::IA_NA).unwrap();
    let association = Association::decode(association).unwrap();
    assert_eq!(
        (association.iaid, association.renew_s, association.rebind_s),
        (0x8001, 50, 80)
    );
    let address = association.options.first(option::IA_ADDRESS).unwrap();
    let address = Address::decode(address).unwrap();
    assert_eq!(address.address, "fd00::5".parse::<Ipv6Addr>().unwrap());
    assert_eq!((address.preferred_s, address.valid_s), (100, 200));
    assert_eq!(message.encode(), ADVERTISE);
}

#[test]
fn a_packet_with_a_wrong_length_is_not_a_message() {
    let cases: [(&[u8], Malformed); 8] = [
        (b"", Malformed::Short(0)),
        (&[1, 0, 0], Malformed::Short(3)),
        (&[0, 0, 0, 0], Malformed::Type(0)),
        (&[12, 0, 0, 0], Malformed::Type(12)),
        (&[13, 0, 0, 0], Malformed::Type(13)),
        (&[7, 0, 0, 1, 0], Malformed::Rest(1)),
        (&[7, 0, 0, 1, 0, 13, 0], Malformed::Rest(3)),
        (&[7, 0, 0, 1, 0, 13, 0, 2, 0], Malformed::Truncated(13)),
    ];
    for (bytes, why) in cases {
        assert_eq!(Message::decode(bytes), Err(why));
    }
    let long = vec![0; LARGEST + 1];
    assert_eq!(Message::decode(&long), Err(Malformed::Long(LARGEST + 1)));
    for length in 0..12 {
        let cut = Association::decode(&[0; 11][..length.min(11)]);
        assert_eq!(cut, Err(Malformed::Length(option::IA_NA, length.min(11))));
    }
    let cut = Address::decode(&[0; 23]);
    assert_eq!(cut, Err(Malformed::Length(option::IA_ADDRESS, 23)));
    let overlap = [&[0; 12][..], &[0, 5, 0, 24, 0xfd]].concat();
    assert_eq!(Association::decode(&overlap), Err(Malformed::Truncated(5)));
}

#[test]
fn a_duid_has_a_type_and_a_length_that_the_rfc_allows() {
    for (length, fits) in [(0, false), (2, false), (3, true), (130, true), (131, false)] {
        let mut message = Message::new(Kind::Reply, 1);
        message.options.push(option::SERVER_ID, vec![7; length]);
        assert_eq!(message.duid(option::SERVER_ID).is_some(), fits, "{length}");
    }
}

#[test]
fn a_status_is_printed_by_its_name() {
    let read = |value: &[u8]| {
        let mut options = Options::default();
        options.push(option::STATUS_CODE, value);
        let status = options.status();
        status.map(|status| status.map(|status| (status.to_string(), status.text)))
    };
    let some = |name: &str, text: &str| Ok(Some((name.to_owned(), text.to_owned())));
    assert_eq!(read(&[0, 2]), some("NoAddrsAvail", ""));
    assert_eq!(read(b"\0\x03gone\0"), some("NoBinding", "gone"));
    assert_eq!(read(&[1, 0, 0xff]), some("status 256", "\u{fffd}"));
    assert_eq!(read(&[0]), Err(Malformed::Length(13, 1)));
    assert_eq!(Options::default().status(), Ok(None));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_and_come_back(bytes in vec(any::<u8>(), 0..600)) {
        let mut all = vec![bytes.clone()];
        // Half of the messages have a valid type.
        all.push([&[7][..], &bytes].concat());
        for bytes in all {
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
        }
        if let Ok(association) = Association::decode(&bytes) {
            prop_assert_eq!(association.encode(), bytes.clone());
        }
        if let Ok(address) = Address::decode(&bytes) {
            prop_assert_eq!(address.encode(), bytes);
        }
    }

    #[test]
    fn an_encoded_message_decodes_to_itself(
        number in 1_u8..=11,
        transaction in any::<u32>(),
        options in vec((any::<u16>(), vec(any::<u8>(), 0..40)), 0..20),
    ) {
        let mut message = Message::new(Kind::of_number(number).unwrap(), transaction);
        for (code, value) in options {
            message.options.push(code, value);
        }
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
}
