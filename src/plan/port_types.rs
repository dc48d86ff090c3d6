// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port types of mlx4 cards and default RoCE modes.

use kernel_cmdline::{PortType, RoceMode};

use super::{Action, Draft, Step};
use crate::facts::{Facts, select};
use crate::rdma::types::LinkLayer;
use crate::wish::expectation::PortLayer;
use crate::wish::selector::{Means, Selector};

impl Draft<'_> {
    pub(super) fn port_types(&mut self) {
        for wish in &self.request.port_types {
            let (selector, port_type) = &wish.value;
            match self.refuse_port_type(selector) {
                Some(reason) => self.refuse(selector.as_str(), &reason, Some(&wish.origin)),
                None => self.steps.push(Step {
                    action: Action::SetPortType {
                        selector: selector.clone(),
                        port_type: *port_type,
                    },
                    requested_by: Some(wish.origin.clone()),
                }),
            }
        }
    }

    /// What the port types mean for the ports. A refused one stays: its ports cannot be right.
    pub(super) fn link_layers(&self) -> Vec<PortLayer> {
        let types = self.request.port_types.iter();
        let layer = |(selector, port_type): &(Selector, PortType)| PortLayer {
            selector: selector.clone(),
            link_layer: match port_type {
                PortType::Ib => Some(LinkLayer::InfiniBand),
                PortType::Eth => Some(LinkLayer::Ethernet),
                PortType::Auto => None,
            },
            port: None,
        };
        types.map(|wish| layer(&wish.value)).collect()
    }

    /// Refuses only what is certain now: an existing card that is not an mlx4. Whether an mlx4 accepts
    /// two different types (DPDP) is known to its driver only.
    fn refuse_port_type(&self, selector: &Selector) -> Option<String> {
        let functions = self.targets(selector)?;
        let (address, _) = functions.first()?;
        let function = self.inventory.pci.iter().find(|f| &f.address == address)?;
        match function.driver.as_deref() {
            None | Some("mlx4_core") => {}
            Some("mlx5_core") => {
                return Some(format!(
                    "{address} is driven by mlx5_core, whose port type is set in the firmware: mstconfig -d {address} set LINK_TYPE_P1=1 (Ethernet: 2; of the second port: LINK_TYPE_P2), then reboot"
                ));
            }
            Some(other) => {
                return Some(format!(
                    "{address} is driven by {other}, which has no port types"
                ));
            }
        }
        let supported = function.mlx4_ports.is_empty()
            || functions.iter().all(|(_, port)| {
                port.is_none_or(|port| function.mlx4_ports.iter().any(|(p, _)| *p == port))
            });
        (!supported).then(|| format!("{address} has no such port"))
    }

    fn targets(&self, selector: &Selector) -> Option<Vec<(String, Option<u32>)>> {
        let pci = &self.inventory.pci;
        let exists = |address: &str| pci.iter().any(|function| function.address == address);
        mlx4_targets(selector, &self.inventory.facts, exists)
    }

    pub(super) fn roce(&mut self) {
        for roce in &self.request.roce {
            let (selector, mode) = &roce.value;
            let steps = Step {
                action: Action::SetRoceMode {
                    selector: selector.clone(),
                    mode: match mode {
                        RoceMode::V1 => "IB/RoCE v1",
                        RoceMode::V2 => "RoCE v2",
                    },
                },
                requested_by: Some(roce.origin.clone()),
            };
            self.steps.push(steps);
        }
    }
}

/// PCI addresses and port numbers (none: all ports) of a port type selector; none if the machine
/// does not show them yet. `exists` tells whether a PCI function exists.
pub fn mlx4_targets(
    selector: &Selector,
    facts: &Facts,
    exists: impl Fn(&str) -> bool,
) -> Option<Vec<(String, Option<u32>)>> {
    if let Means::Pci(address) = selector.means() {
        let address = address.to_string();
        return exists(&address).then(|| vec![(address, None)]);
    }
    let found = select::ports(selector, facts);
    let targets: Vec<_> = found
        .iter()
        .filter_map(|found| Some((found.device.card()?.to_owned(), Some(found.port.port))))
        .collect();
    (!targets.is_empty()).then_some(targets)
}
