// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any text as a file of /sys/class/infiniband or /sys/class/net: no panic; a rejected value gives
//! one short line; an accepted value survives writing and reading.
#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use ibboot::hardware::{
    HardwareAddress, HardwareType, group_of_broadcast, pkey_of_broadcast, unhex,
};
use ibboot::wish::ipoib::Mode;
use ibboot::rdma::parse;
use ibboot::rdma::parse::ParseError;
use ibboot::rdma::types::{LinkLayer, NodeType, PhysState, PortState};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|data: &[u8]| {
    // As system::root returns the text.
    let text = String::from_utf8_lossy(data);
    let raw = text.as_ref();
    // Each error names its quantity; the rest of the line is the same.
    let line = ParseError::new("rate", raw).to_string();
    assert!(
        line.len() < 1000 && !line.chars().any(char::is_control),
        "{line:?}"
    );
    named(raw, parse::port_state(raw));
    named(raw, parse::phys_state(raw));
    named(raw, parse::node_type(raw));
    named(raw, parse::link_layer(raw));
    named(raw, PortState::from_str(raw));
    named(raw, PhysState::from_str(raw));
    named(raw, NodeType::from_str(raw));
    named(raw, LinkLayer::from_str(raw));
    refusal(raw, parse::lid(raw));
    refusal(raw, parse::cap_mask(raw));
    refusal(raw, parse::pkey(raw));
    refusal(raw, parse::number("service level", raw));
    if let Some(guid) = refusal(raw, parse::guid(raw)) {
        assert_eq!(parse::guid(&guid.to_string()), Ok(guid));
        assert_eq!(parse::guid(&format!("{guid:#}")), Ok(guid));
        let json = serde_json::to_string(&guid).expect("JSON");
        assert_eq!(serde_json::from_str(&json).ok(), Some(guid));
    }
    if let Some(gid) = refusal(raw, parse::gid(raw)) {
        assert_eq!(parse::gid(&groups(gid)), Ok(gid));
        assert_eq!(parse::gid_port_guid(gid).0, gid.to_bits() as u64);
    }
    if let Some(rate) = refusal(raw, parse::rate(raw)) {
        assert!(rate.gbps.is_finite() && rate.gbps >= 0.0);
        assert_eq!(parse::rate(&rate.to_string()), Ok(rate.clone()));
        let json = serde_json::to_string(&rate).expect("JSON");
        assert_eq!(serde_json::from_str(&json).ok(), Some(rate));
    }
    if let Some(text) = parse::text(raw) {
        assert!(!text.is_empty() && !text.chars().any(char::is_control));
    }
    if let Ok(address) = raw.parse::<HardwareAddress>() {
        assert_eq!(address.to_string().parse(), Ok(address));
    }
    if let Ok(kind) = raw.parse::<HardwareType>() {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let broadcast = unhex(raw).unwrap_or_default();
    let pkey = pkey_of_broadcast(&broadcast);
    let group = group_of_broadcast(&broadcast).map(|group| group.octets());
    // Bytes 8 and 9 of 20; the group has the last 16 bytes.
    if let (Some(pkey), Some([_, _, _, _, high, low, ..])) = (pkey, group) {
        assert_eq!(pkey, u16::from_be_bytes([high, low]));
    }
    if let Some(mode) = Mode::parse(raw) {
        assert_eq!(mode.word(), raw.trim());
    }
});

fn refusal<T>(raw: &str, read: Result<T, ParseError>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            assert_eq!(error.raw, raw);
            None
        }
    }
}

/// Like `refusal`, for values with names: Display and JSON must return the same value.
fn named<T>(raw: &str, read: Result<T, ParseError>)
where
    T: Copy
        + Debug
        + Display
        + PartialEq
        + FromStr<Err = ParseError>
        + Serialize
        + DeserializeOwned,
{
    if let Some(value) = refusal(raw, read) {
        assert_eq!(T::from_str(&value.to_string()), Ok(value));
        let json = serde_json::to_string(&value).expect("JSON");
        assert_eq!(serde_json::from_str(&json).ok(), Some(value));
    }
}

fn groups(gid: std::net::Ipv6Addr) -> String {
    gid.segments().map(|group| format!("{group:04x}")).join(":")
}
