// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the client identifier that is wanted, of which both families make a client's identity.

use serde::{Deserialize, Serialize};

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
