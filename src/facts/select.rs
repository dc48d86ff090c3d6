// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which ports of a snapshot a selector means.

use kernel_cmdline::{HwAddr, Selector};

use crate::facts::{Facts, Netdev, PortRef};
use crate::rdma::types::Guid;

/// ARP hardware type of IPoIB interfaces (`ARPHRD_INFINIBAND`, include/uapi/linux/if_arp.h).
pub const ARPHRD_INFINIBAND: u32 = 32;

/// The ports that `selector` means, in the order of the snapshot. A device means all its ports.
pub fn ports<'f>(selector: &Selector<'_>, facts: &'f Facts) -> Vec<PortRef<'f>> {
    match selector {
        Selector::Name(name) => {
            let of_device: Vec<_> = facts
                .ports()
                .filter(|found| found.device.ifname == *name)
                .collect();
            match facts.netdev(name) {
                Some(netdev) if of_device.is_empty() => below(netdev, facts),
                _ => of_device,
            }
        }
        Selector::Port { device, port } => facts
            .ports()
            .filter(|found| found.device.ifname == *device && found.port.port == u32::from(*port))
            .collect(),
        Selector::Guid(address) => facts
            .ports()
            .filter(|found| has_guid(found.port.port_guid, address))
            .collect(),
        Selector::Pci(address) => {
            let address = address.to_string();
            facts
                .ports()
                .filter(|found| found.device.bus_address.as_deref() == Some(address.as_str()))
                .collect()
        }
    }
}

fn has_guid(guid: Option<Guid>, address: &HwAddr) -> bool {
    guid.is_some_and(|guid| address.matches_guid(guid))
}

/// The port that carries a network interface: by attachment (RoCE, Soft-RoCE), or by the port
/// GUID in the last 8 bytes of an IPoIB address, which is all of it that is stable.
fn below<'f>(netdev: &Netdev, facts: &'f Facts) -> Vec<PortRef<'f>> {
    if netdev.hardware_type == Some(ARPHRD_INFINIBAND) {
        let address = netdev.address.as_deref().and_then(HwAddr::parse);
        return facts
            .ports()
            .filter(|found| address.is_some_and(|address| has_guid(found.port.port_guid, &address)))
            .collect();
    }
    facts
        .ports()
        .filter(|found| found.port.netdev.as_deref() == Some(netdev.ifname.as_str()))
        .collect()
}
