// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the requested client identifier, from which both families build a client's identity.

use serde::{Deserialize, Serialize};

/// The requested client identifier (option 61).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestedId {
    /// On InfiniBand the identifier that the card's boot firmware sends, so that one reservation
    /// fits both; on Ethernet 01 and the address.
    #[default]
    Firmware,
    /// Hardware type and GUID or address: `20:` and 8 bytes on InfiniBand.
    Hardware,
    Bytes(Vec<u8>),
}

/// The forms of a client identifier over InfiniBand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form<'a> {
    /// The hardware type and the port GUID.
    Hardware,
    /// An IAID and a DUID (RFC 4361 6.1).
    Duid(u32, &'a [u8]),
    /// Bytes of a site.
    Other,
}

/// The form of a client identifier.
pub fn form(client_id: &[u8]) -> Form<'_> {
    match client_id {
        [0x20, guid @ ..] if guid.len() == 8 => Form::Hardware,
        [0xff, a, b, c, d, duid @ ..] => Form::Duid(u32::from_be_bytes([*a, *b, *c, *d]), duid),
        _ => Form::Other,
    }
}

/// The type of a DUID in a word of networkd.conf(5), and the bytes behind the type. None: systemd
/// 252 reads no other types with data, and fails at another length (`dhcp_validate_duid_len` of
/// dhcp-identifier.c).
pub fn networkd_duid(duid: &[u8]) -> Option<(&'static str, &[u8])> {
    match duid {
        [0, 2, data @ ..] if data.len() == 12 => Some(("vendor", data)),
        [0, 4, data @ ..] if data.len() == 16 => Some(("uuid", data)),
        _ => None,
    }
}

impl RequestedId {
    /// Whether systemd-networkd can send the identifier on an InfiniBand interface
    /// (systemd.network(5), `ClientIdentifier=`).
    pub fn fits_networkd(&self) -> bool {
        match self {
            // The DUID of the firmware is a byte longer than networkd allows.
            RequestedId::Firmware => false,
            RequestedId::Hardware => true,
            RequestedId::Bytes(bytes) => match form(bytes) {
                Form::Hardware => true,
                Form::Duid(_, duid) => networkd_duid(duid).is_some(),
                Form::Other => false,
            },
        }
    }
}
