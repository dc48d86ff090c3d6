// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: ports of different RDMA devices that share one cable. A Socket Direct card is one card in
//! two PCI slots: each slot has a function of its own, hence an RDMA device of its own, and both
//! use the same port of the card. So do two virtual functions that a host gave to this machine.

use crate::facts::{Facts, PortRef};
use crate::rdma::types::{Guid, LinkLayer};

/// The port of a card that the port of an RDMA device stands for.
///
/// The kernel names no cable. Both functions of a Socket Direct card have the system image GUID of
/// the card, the same function number for the same port of the card, and on InfiniBand the same LID:
/// they are virtual ports (IBTA, annex on virtualization), which share the LID of the physical port, while two
/// physical ports of a subnet never have the same LID. The number of a virtual function tells nothing
/// of its port. On Ethernet nothing of this is certain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cable {
    system_image: Guid,
    /// None for a virtual function.
    function: Option<String>,
    port: u32,
    subnet_prefix: Guid,
    lid: u32,
}

impl Cable {
    /// What ports with this cable are. Virtual functions of two ports look the same if these are in two
    /// subnets with one prefix.
    pub fn words(&self) -> &'static str {
        match self.function {
            Some(_) => "are one port of one card (Socket Direct)",
            None => "may be one port of one card (virtual functions with the same LID)",
        }
    }
}

/// The cable of a port; none if nothing shows whether other ports share the cable.
pub fn cable(found: PortRef<'_>, facts: &Facts) -> Option<Cable> {
    let (device, port) = (found.device, found.port);
    let function = facts.function(device.card()?)?;
    // hfi1 has one system image GUID for all cards of a machine.
    let is_mlx5 = function.driver.as_deref() == Some("mlx5_core");
    let is_infiniband = port.link_layer == Some(LinkLayer::InfiniBand);
    let (_, number) = function.address.rsplit_once('.')?;
    let is_set = |guid: &Guid| guid.0 != 0;
    (is_mlx5 && is_infiniband).then_some(())?;
    Some(Cable {
        system_image: device.sys_image_guid.filter(is_set)?,
        function: (!function.is_virtual()).then(|| number.to_owned()),
        port: port.port,
        subnet_prefix: port.subnet_prefix?,
        lid: port.lid.filter(|lid| (1..0xc000).contains(lid))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Function, Port};

    /// A port of the second function of a card.
    fn machine() -> Facts {
        Facts {
            devices: vec![Device {
                sys_image_guid: Some(Guid(7)),
                bus_address: Some("0000:81:00.1".to_owned()),
                ports: vec![Port {
                    port: 1,
                    link_layer: Some(LinkLayer::InfiniBand),
                    subnet_prefix: Some(Guid(0xfe80)),
                    lid: Some(17),
                    ..Port::default()
                }],
                ..Device::default()
            }],
            functions: vec![Function {
                address: "0000:81:00.1".to_owned(),
                driver: Some("mlx5_core".to_owned()),
                ..Function::default()
            }],
            ..Facts::default()
        }
    }

    fn with(change: impl FnOnce(&mut Device, &mut Function)) -> Option<Cable> {
        let mut facts = machine();
        change(&mut facts.devices[0], &mut facts.functions[0]);
        let device = &facts.devices[0];
        let port = &device.ports[0];
        cable(PortRef { device, port }, &facts)
    }

    /// In another slot, as the other half of a Socket Direct card is.
    fn moved(device: &mut Device, function: &mut Function, address: &str) {
        device.bus_address = Some(address.to_owned());
        address.clone_into(&mut function.address);
    }

    #[test]
    fn ports_share_a_cable_if_nothing_of_it_differs() {
        let one = with(|_, _| {});
        assert!(one.is_some());
        let other_slot = with(|device, function| moved(device, function, "0000:05:00.1"));
        assert_eq!(one, other_slot);
        for other in [
            with(|device, function| moved(device, function, "0000:81:00.0")),
            with(|device, _| device.sys_image_guid = Some(Guid(8))),
            with(|device, _| device.ports[0].port = 2),
            with(|device, _| device.ports[0].subnet_prefix = Some(Guid(0xfec0))),
            with(|device, _| device.ports[0].lid = Some(18)),
            with(|_, function| function.physical = Some("0000:81:00.0".to_owned())),
        ] {
            assert!(other.is_some() && other != one, "{other:?}");
        }
    }

    #[test]
    fn nothing_is_said_of_a_port_that_is_not_known_by_guid_and_lid() {
        for unknown in [
            with(|_, function| function.driver = Some("hfi1".to_owned())),
            with(|device, _| device.ports[0].link_layer = Some(LinkLayer::Ethernet)),
            with(|device, _| device.sys_image_guid = Some(Guid(0))),
            with(|device, _| device.ports[0].lid = Some(0)),
            // The first LID of a multicast group.
            with(|device, _| device.ports[0].lid = Some(0xc000)),
        ] {
            assert_eq!(unknown, None);
        }
        assert!(with(|device, _| device.ports[0].lid = Some(0xbfff)).is_some());
    }
}
