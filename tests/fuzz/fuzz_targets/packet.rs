// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as an IP packet, as ARP, and as a DHCP message: no panic; a decoded message survives
//! encoding and decoding; every accepted value is clean.
#![no_main]

use ibboot::dhcp::v4::arp::Arp;
use ibboot::dhcp::v4::frame;
use ibboot::dhcp::v4::lease::Lease;
use ibboot::dhcp::v4::packet::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for unsummed in [false, true] {
        if let Some(datagram) = frame::to_client(data, unsummed) {
            assert!(datagram.payload.len() + frame::HEADERS <= data.len());
            message(datagram.payload);
        }
    }
    if let Some(arp) = Arp::decode(data) {
        let again = arp.encode().and_then(|bytes| Arp::decode(&bytes));
        assert_eq!(again, Some(arp));
    }
    message(data);
});

fn message(bytes: &[u8]) {
    let Ok(message) = Message::decode(bytes) else {
        return;
    };
    assert_eq!(Message::decode(&message.encode()).as_ref(), Ok(&message));
    let size: usize = message.options.values().map(Vec::len).sum();
    assert!(size <= bytes.len());
    let Ok(lease) = Lease::of(&message, 1) else {
        return;
    };
    assert!(!lease.address.is_unspecified() && !lease.address.is_loopback());
    assert!(!lease.address.is_multicast() && !lease.address.is_broadcast());
    assert!((8..=32).contains(&lease.prefix));
    assert!(lease.renew_s <= lease.rebind_s && lease.rebind_s <= lease.seconds);
    for (name, value) in lease.variables() {
        let text = std::str::from_utf8(&value).expect("text");
        assert!(!text.chars().any(char::is_control), "{name}");
    }
    let json = serde_json::to_string(&lease).expect("JSON");
    assert_eq!(serde_json::from_str::<Lease>(&json).ok(), Some(lease));
}
