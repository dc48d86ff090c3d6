// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which ports of a snapshot a selector means.

use kernel_cmdline::Selector;

use crate::facts::{Facts, Netdev, PortRef};
use crate::hardware::HardwareType;

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
            .filter(|found| {
                let guid = found.port.port_guid;
                guid.is_some_and(|guid| address.matches_guid(guid))
            })
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

/// The port that carries a network interface: by attachment (RoCE, Soft-RoCE), or by the port
/// GUID in the last 8 bytes of an IPoIB address, which is all of it that is stable.
fn below<'f>(netdev: &Netdev, facts: &'f Facts) -> Vec<PortRef<'f>> {
    if netdev.hardware_type == Some(HardwareType::InfiniBand) {
        let guid = netdev.port_guid();
        return facts
            .ports()
            .filter(|found| guid.is_some() && found.port.port_guid == guid)
            .collect();
    }
    facts
        .ports()
        .filter(|found| found.port.netdev.as_deref() == Some(netdev.ifname.as_str()))
        .collect()
}
