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

impl RequestedId {
    /// Whether systemd-networkd can send the identifier on an InfiniBand interface: the hardware
    /// type with the GUID, or an IAID with a DUID (systemd.network(5), `ClientIdentifier=`).
    pub fn fits_networkd(&self) -> bool {
        match self {
            // The DUID of the firmware is a byte longer than networkd allows.
            RequestedId::Firmware => false,
            RequestedId::Hardware => true,
            RequestedId::Bytes(bytes) => match bytes.as_slice() {
                [0x20, guid @ ..] => guid.len() == 8,
                // IAID, type of the DUID, and the DUID (RFC 4361 6.1).
                [0xff, _, _, _, _, 0, 2, rest @ ..] => rest.len() == 12,
                [0xff, _, _, _, _, 0, 4, rest @ ..] => rest.len() == 16,
                _ => false,
            },
        }
    }
}
