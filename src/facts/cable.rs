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
