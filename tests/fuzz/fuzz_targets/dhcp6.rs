// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a DHCPv6 message: no panic; a decoded message survives encoding and decoding; every
//! accepted value is clean.
#![no_main]

mod believed;

use std::net::Ipv6Addr;

use ibboot::dhcp::v6::information::Information;
use ibboot::dhcp::v6::lease::Lease;
use ibboot::dhcp::v6::packet::Message;
use libfuzzer_sys::fuzz_target;

const IAID: u32 = 0xffff;

fuzz_target!(|data: &[u8]| {
    let Ok(message) = Message::decode(data) else {
        return;
    };
    assert_eq!(message.encode(), data);
    if let Ok(lease) = Lease::of(&message, Ipv6Addr::LOCALHOST, IAID, None, 1) {
        believed::check(&lease);
    }
    if let Ok(information) = Information::of(&message, Ipv6Addr::LOCALHOST) {
        believed::clean(&information.variables(), &information.left_out);
        assert!(!information.words().chars().any(char::is_control));
    }
});
