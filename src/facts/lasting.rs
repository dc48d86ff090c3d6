// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: identifies an interface after its card was reset or its driver was loaded again: the
//! interface index and possibly the name are then different.

use serde::{Deserialize, Serialize};

use super::Netdev;
use crate::hardware::{HardwareType, Hex};
use crate::wish::ipoib::FULL_MEMBER;

/// Properties that identify an interface for the whole boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// ARP hardware type.
    pub hardware_type: HardwareType,
    /// Port GUID on InfiniBand, the name of a bond (whose address changes with a failover),
    /// otherwise the hardware address.
    pub lasting: String,
    /// P_Key of an IPoIB interface without the membership bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pkey: Option<u16>,
    /// Kind of a virtual interface, such as `vlan`: it has the address of the interface below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

impl Identity {
    /// `None` if the interface does not have a hardware address.
    pub fn of(netdev: &Netdev) -> Option<Identity> {
        let hardware_type = netdev.hardware_type?;
        let address = netdev.address.as_ref()?;
        let lasting = if netdev.bond.is_some() {
            netdev.ifname.clone()
        } else if hardware_type == HardwareType::InfiniBand {
            Hex(&address.port_guid()?.0.to_be_bytes()).to_string()
        } else {
            address.to_string()
        };
        let pkey = netdev.ipoib.as_ref().and_then(|ipoib| ipoib.pkey);
        Some(Identity {
            hardware_type,
            lasting,
            pkey: pkey.map(|pkey| pkey & !FULL_MEMBER),
            kind: netdev.kind.clone(),
        })
    }

    /// Compares type and kind only. Sufficient for an interface that still exists under the same
    /// index: its address may have been changed by hand.
    pub fn is_kind_of(&self, netdev: &Netdev) -> bool {
        netdev.hardware_type == Some(self.hardware_type) && netdev.kind == self.kind
    }
}
