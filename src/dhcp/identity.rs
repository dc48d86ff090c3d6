// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what both families make a client's identity of: hardware types, bytes in hexadecimal, the
//! client identifier that is wanted.

use std::fmt;

use serde::{Deserialize, Serialize};

/// ARP hardware type of Ethernet.
pub const ETHERNET: u16 = 1;
/// ARP hardware type of InfiniBand (RFC 4391 9.1.1).
pub const INFINIBAND: u16 = 32;

/// The client identifier that is wanted (option 61).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WantedId {
    /// On InfiniBand as the card's own boot firmware sends it, so that one reservation fits both;
    /// on Ethernet 01 and the address.
    #[default]
    Firmware,
    /// Hardware type and GUID, or address: `20:` and 8 bytes on InfiniBand.
    Hardware,
    /// These bytes.
    Bytes(Vec<u8>),
}

/// Bytes as dhcpd and dnsmasq write them: `ff:00:...`.
#[derive(Debug, Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if position == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

/// Reads what [`Hex`] writes.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &str| {
        let plain = pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u8::from_str_radix(pair, 16).ok()).flatten()
    };
    text.split(':').map(byte).collect()
}
