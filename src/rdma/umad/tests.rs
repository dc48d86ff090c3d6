// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header in both directions, without a device.

use proptest::prelude::*;

use super::*;

const ADMINISTRATOR: Administrator = Administrator {
    lid: 0x0102,
    sl: 3,
    pkey_index: 1,
    subnet_prefix: 0xfe80_0000_0000_0000,
};
const PATIENCE: Patience = Patience {
    timeout_ms: 500,
    retries: 2,
};

fn field<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    packet[at..at + N].try_into().unwrap()
}

#[test]
fn fields_have_the_offsets_of_the_kernel() {
    assert_eq!(std::mem::size_of::<Registration>(), 28);
    assert_eq!(std::mem::offset_of!(Registration, qpn), 20);
    assert_eq!(std::mem::offset_of!(Registration, rmpp_version), 26);
    let mad = [7; MAD];
    let plain = packet(5, &ADMINISTRATOR, false, &mad, PATIENCE);
    assert_eq!(plain.len(), 320);
    assert_eq!(u32::from_ne_bytes(field(&plain, 0)), 5);
    assert_eq!(u32::from_ne_bytes(field(&plain, 8)), 500);
    assert_eq!(u32::from_ne_bytes(field(&plain, 12)), 2);
    assert_eq!(u32::from_be_bytes(field(&plain, 20)), 1);
    assert_eq!(u32::from_be_bytes(field(&plain, 24)), 0x8001_0000);
    assert_eq!(u16::from_be_bytes(field(&plain, 28)), 0x0102);
    assert_eq!(plain[30], 3);
    assert_eq!(plain[32..56], [0; 24]);
    assert_eq!(u16::from_ne_bytes(field(&plain, 56)), 1);
    assert_eq!(plain[58..64], [0; 6]);
    assert_eq!(plain[64..], mad);
}

#[test]
fn a_global_route_header_names_the_subnet_administrator() {
    let routed = packet(5, &ADMINISTRATOR, true, &[0; MAD], PATIENCE);
    assert_eq!(routed[32], 1);
    assert_eq!(routed[34], 1);
    assert_eq!(
        Ipv6Addr::from(field::<16>(&routed, 36)).to_string(),
        "fe80::200:0:0:2"
    );
}

#[test]
fn silence_differs_from_errors() {
    let with_status = |status: i32| {
        let mut packet = vec![0; HEADER + 24];
        packet[4..8].copy_from_slice(&status.to_ne_bytes());
        packet
    };
    let silent = received(&with_status(libc::ETIMEDOUT)).unwrap();
    assert_eq!(silent, Received::Silence(Some(0)));
    // The header of the request, in whose transaction ID the kernel has written a high half.
    let mut late = with_status(libc::ETIMEDOUT);
    late[HEADER + 8..HEADER + 16].copy_from_slice(&0x0000_0009_1234_5678_u64.to_be_bytes());
    assert_eq!(
        received(&late).unwrap(),
        Received::Silence(Some(0x1234_5678))
    );
    let cut = received(&late[..HEADER]).unwrap();
    assert_eq!(cut, Received::Silence(None));
    let reply = received(&with_status(0)).unwrap();
    assert_eq!(reply, Received::Reply(vec![0; 24]));
    let failed = received(&with_status(libc::EIO)).unwrap_err();
    assert_eq!(failed.raw_os_error(), Some(libc::EIO));
    let cut = received(&[0; 5]).unwrap_err();
    assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_name_that_is_no_device_opens_no_file() {
    for name in ["", "umad", "uverbs0", "umad../null", "umad-1"] {
        let error = Umad::open(name).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{name:?} is not the name of a umad device")
        );
    }
}

proptest! {
    #[test]
    fn no_packet_panics(packet in proptest::collection::vec(any::<u8>(), 0..600)) {
        let reply = received(&packet);
        prop_assert_eq!(reply.is_err_and(|e| e.kind() == io::ErrorKind::UnexpectedEof), packet.len() < 8);
        prop_assert_eq!(header_length(&packet).is_none(), packet.len() < 20);
    }
}
