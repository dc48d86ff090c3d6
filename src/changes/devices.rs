// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: port types of mlx4 cards, software links and default RoCE modes. If several arguments
//! apply to a port, the last one counts.

use std::collections::BTreeMap;
use std::fmt;

use kernel_cmdline::{LinkKind, PortType};

use super::{Change, Done, Draft, Expected, Ground, Need, What, Writing};
use crate::error::Error;
use crate::facts::{Facts, PortRef, select};
use crate::loader::is_port_type;
use crate::plan::{Action, IB_CORE, Step, mlx4_targets};
use crate::rdma::types::{LinkLayer, NodeType};
use crate::system::drivers;
use crate::wish::expectation::{Expectation, LinkWish};

/// A PCI address or device name, and a port number.
type Key = (String, u32);

/// A port of a card and the type that is requested for the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardPort {
    /// Port number, from 1.
    pub port: u32,
    pub value: PortType,
    /// Position of the step of the plan that requests it.
    pub step: usize,
}

impl fmt::Display for CardPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {} to type {}", self.port, self.value)
    }
}

impl Done {
    /// Records the ports that have their type already. When the device is renamed, an argument that
    /// names the device no longer applies, and an earlier one for the whole card must not replace
    /// the type.
    pub fn record_right_port_types(
        &mut self,
        expected: &Expected<'_>,
        facts: &Facts,
        ground: &Ground,
    ) {
        for (card, port, is_right) in shown_port_types(expected.steps, facts, ground) {
            if is_right && self.allows_port_type(&card, &port) {
                self.record_port_type(&card, &port);
            }
        }
    }
}

impl Draft<'_> {
    /// Adds the port types that the cards do not show yet.
    pub(super) fn port_types(&mut self, steps: &[Step]) {
        let mut cards: BTreeMap<String, Vec<CardPort>> = BTreeMap::new();
        for (card, port, is_right) in shown_port_types(steps, self.facts, self.ground) {
            if !is_right && self.done.allows_port_type(&card, &port) {
                cards.entry(card).or_default().push(port);
            }
        }
        for (card, mut ports) in cards {
            writing_order(&mut ports);
            self.push(Change {
                object: card,
                index: None,
                need: Need::Requested,
                what: What::Write(Writing::PortTypes(ports)),
            });
        }
    }

    /// Adds the network namespace mode, if the kernel shows another one.
    pub(super) fn netns_mode(&mut self, steps: &[Step]) {
        for step in steps {
            let Action::SetNetnsMode { mode } = step.action else {
                continue;
            };
            if self.facts.netns_mode.is_some_and(|found| found != mode) {
                self.push(Change {
                    object: IB_CORE.to_owned(),
                    index: None,
                    need: Need::Requested,
                    what: What::NetnsMode(mode),
                });
            }
        }
    }

    /// Adds software links: the interface below is set up first, then the link is added.
    pub(super) fn links(&mut self, expected: &Expected<'_>) {
        let facts = self.facts;
        for step in expected.steps {
            let Action::AddLink { name, kind, netdev } = &step.action else {
                continue;
            };
            let wish = expected.links.iter().find(|link| link.target == *name);
            let (kind, Some(below)) = (*kind, facts.netdev(netdev)) else {
                continue;
            };
            if wish.is_some_and(|wish| wish.refused.is_some()) || !self.settle(below) {
                continue;
            }
            self.ethernet_up(below);
            let has_driver = self.ground.drivers.contains(drivers::of_link(kind));
            if has_driver && !exists(name, wish, facts) {
                self.push(Change {
                    object: name.clone(),
                    index: None,
                    need: Need::Requested,
                    what: What::AddLink {
                        kind,
                        netdev: netdev.clone(),
                    },
                });
            }
        }
    }

    /// Adds default RoCE modes. Each is set once for a device: only a new configfs directory would show the
    /// current mode. A device that is added again has the kernel's default (cma_add_one of cma.c) and
    /// another index.
    pub(super) fn roce_modes(&mut self, steps: &[Step]) {
        if !self.ground.has_roce_modes() {
            return;
        }
        for ((device, port), (step, mode, link_layer)) in roce_modes(steps, self.facts) {
            let mut devices = self.facts.devices.iter();
            let found = devices.find(|found| found.ifname == device);
            let what = match link_layer {
                LinkLayer::Ethernet => What::Write(Writing::RoceMode {
                    device: found.and_then(|found| found.ifindex),
                    port,
                    mode,
                    step,
                }),
                other => What::Impossible(
                    Error::new(
                        format!("{device}/{port}"),
                        "default RoCE mode cannot be set",
                    )
                    .found(other.to_string())
                    .expected(LinkLayer::Ethernet.to_string()),
                ),
            };
            self.push(Change {
                object: device,
                index: None,
                need: Need::Requested,
                what,
            });
        }
    }
}

/// Card, port and whether the card shows the requested type; cards without files of port types are
/// left out.
fn shown_port_types(
    steps: &[Step],
    facts: &Facts,
    ground: &Ground,
) -> Vec<(String, CardPort, bool)> {
    let is_present = |address: &str| ground.functions.contains(address);
    let shown = |((card, number), port): (Key, CardPort)| {
        let shown = ground.port_types.get(&(card.clone(), number))?;
        let is_right = is_port_type(shown, port.value);
        Some((card, port, is_right))
    };
    let requested = port_types(steps, facts, is_present);
    requested.into_iter().filter_map(shown).collect()
}

/// The type of each port, from the last step that applies to the port.
fn port_types(
    steps: &[Step],
    facts: &Facts,
    is_present: impl Fn(&str) -> bool,
) -> BTreeMap<Key, CardPort> {
    let mut types = BTreeMap::new();
    for (step, action) in steps.iter().map(|step| &step.action).enumerate() {
        let Action::SetPortType {
            selector,
            port_type: value,
        } = action
        else {
            continue;
        };
        for (address, port) in mlx4_targets(selector, facts, &is_present).unwrap_or_default() {
            for port in port.map_or_else(|| vec![1, 2], |port| vec![port]) {
                types.insert(
                    (address.clone(), port),
                    CardPort {
                        port,
                        value: *value,
                        step,
                    },
                );
            }
        }
    }
    types
}

/// Sorts the ports so that a card with DPDP never has port 1 eth and port 2 ib in between, which
/// rdma-core's mlx4-setup.sh refuses; the kernel has no such rule (drivers/net/ethernet/mellanox/
/// mlx4/main.c, mlx4_check_port_params: a card without DPDP refuses every mix, in any order).
pub(crate) fn writing_order(ports: &mut [CardPort]) {
    ports.sort_by_key(|port| match (port.value, port.port) {
        (PortType::Eth, 2) | (PortType::Ib | PortType::Auto, 1) => (0, port.port),
        _ => (1, port.port),
    });
}

/// Step, mode and link layer of each port, from the last step that applies to the port. "All ports"
/// stands for the ports that can have a mode: the kernel refuses RoCE v2 for an iWARP port
/// (roce_gid_type_mask_support, drivers/infiniband/core/roce_gid_mgmt.c).
fn roce_modes(steps: &[Step], facts: &Facts) -> BTreeMap<Key, (usize, &'static str, LinkLayer)> {
    let mut modes = BTreeMap::new();
    for (step, action) in steps.iter().map(|step| &step.action).enumerate() {
        let Action::SetRoceMode { selector, mode } = action else {
            continue;
        };
        let found = match selector {
            None => facts.ports().filter(can_have_roce_mode).collect(),
            Some(selector) => select::ports(selector, facts),
        };
        for found in found {
            if let Some(link_layer) = found.port.link_layer {
                let key = (found.device.ifname.clone(), found.port.port);
                modes.insert(key, (step, *mode, link_layer));
            }
        }
    }
    modes
}

fn can_have_roce_mode(found: &PortRef<'_>) -> bool {
    found.port.link_layer == Some(LinkLayer::Ethernet)
        && found.device.node_type != Some(NodeType::Rnic)
}

/// Whether the link exists by its name, or was adopted under another name.
fn exists(name: &str, wish: Option<&LinkWish>, facts: &Facts) -> bool {
    let adopted = wish.and_then(|wish| wish.identity.as_ref());
    facts.devices.iter().any(|device| device.ifname == name)
        || adopted.is_some_and(|key| {
            facts
                .ports()
                .any(|port| port.identities().any(|identity| identity == *key))
        })
}

/// True for a software link of this kind on this interface, never for the interface's own hardware.
/// Soft-RoCE names the interface below; siw does not.
fn is_link_on(netdev: &str, kind: LinkKind, found: PortRef<'_>) -> bool {
    let parent = found.device.parent.as_deref();
    match kind {
        LinkKind::Rxe => parent == Some(netdev),
        LinkKind::Siw => {
            parent.is_none()
                && found.device.is_software()
                && found.port.netdev.as_deref() == Some(netdev)
        }
    }
}

/// Adopts the software link that the interface already has under another name (a second run after
/// udev renamed the link): the wish then means the existing link.
pub fn adopt(
    expectation: &mut Expectation,
    name: &str,
    kind: LinkKind,
    netdev: &str,
    facts: &Facts,
) -> Option<String> {
    let found = facts
        .ports()
        .find(|found| is_link_on(netdev, kind, *found))?;
    let key = found.identity()?;
    let wish = expectation
        .links
        .iter_mut()
        .find(|wish| wish.target == name)?;
    wish.identity = Some(key);
    wish.device_index = found.device.ifindex;
    Some(found.device.ifname.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::planned;
    use crate::system::root::Root;
    use crate::wish::expectation::Depth;
    use std::path::Path;

    fn tree(name: &str) -> Root {
        let sys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        Root::new(sys.join(name))
    }

    fn look(name: &str) -> Facts {
        Facts::gather(&tree(name), None, &[], Depth::Ports)
    }

    #[test]
    fn a_renamed_link_is_adopted_for_good() {
        let mut facts = look("soft-roce");
        let mut expected = planned("rd.ib.link=rxe0:rxe:eth0").expectation;
        for device in &mut facts.devices {
            device.ifname = "rocep0s3".to_owned();
            device.ifindex = Some(7);
        }
        assert!(!exists("rxe0", expected.links.first(), &facts));
        let adopted = adopt(&mut expected, "rxe0", LinkKind::Rxe, "eth0", &facts);
        assert_eq!(adopted.as_deref(), Some("rocep0s3"));
        let index = expected.links.first().and_then(|wish| wish.device_index);
        assert_eq!(index, Some(7));
        assert!(exists("rxe0", expected.links.first(), &facts));
        facts.devices.clear();
        assert!(!exists("rxe0", expected.links.first(), &facts));
    }

    #[test]
    fn hardware_is_never_adopted() {
        let mut facts = look("connectx6-hdr");
        let soft = look("soft-roce");
        facts.devices.extend(soft.devices);
        facts.netdevs.extend(soft.netdevs);
        for device in &mut facts.devices {
            for port in &mut device.ports {
                port.netdev = Some("eth0".to_owned());
            }
        }
        assert!(facts.devices.iter().any(|d| d.ifname == "mlx5_0"));
        let mut expected = planned("rd.ib.link=rxe0:rxe:eth0").expectation;
        let adopted = adopt(&mut expected, "rxe0", LinkKind::Rxe, "eth0", &facts);
        assert_eq!(adopted.as_deref(), Some("rxe0"));
        let adopted = adopt(&mut expected, "rxe0", LinkKind::Siw, "eth0", &facts);
        assert_eq!(adopted, None);
    }

    #[test]
    fn the_last_port_type_counts() {
        let steps = planned(
            "rd.ib.porttype=mlx4_0:1:ib rd.ib.porttype=pci=0000:05:00.0:eth rd.ib.porttype=mlx4_0:2:auto",
        )
        .steps;
        let types = |facts: &Facts| -> Vec<(u32, PortType)> {
            port_types(&steps, facts, |address| address == "0000:05:00.0")
                .into_iter()
                .map(|((_, port), last)| (port, last.value))
                .collect()
        };
        assert_eq!(
            types(&look("connectx3-dual")),
            [(1, PortType::Eth), (2, PortType::Auto)]
        );
        // Before the device exists, only its PCI address selects the port.
        assert_eq!(
            types(&Facts::default()),
            [(1, PortType::Eth), (2, PortType::Eth)]
        );
    }

    #[test]
    fn the_last_roce_mode_counts() {
        let value = |cmdline: &str| {
            let modes = roce_modes(&planned(cmdline).steps, &look("soft-roce"));
            let (_, mode, link_layer) = modes.get(&("rxe0".to_owned(), 1)).copied().unwrap();
            assert_eq!(link_layer, LinkLayer::Ethernet);
            mode
        };
        assert_eq!(value("rd.ib.roce=v2 rd.ib.roce=rxe0:v1"), "IB/RoCE v1");
        assert_eq!(value("rd.ib.roce=rxe0:v1 rd.ib.roce=v2"), "RoCE v2");
        let steps = planned("rd.ib.roce=v2 rd.ib.roce=mlx5_0:v1").steps;
        let modes = roce_modes(&steps, &look("connectx6-hdr"));
        assert_eq!(
            modes
                .into_iter()
                .map(|(key, (_, _, l))| (key, l))
                .collect::<Vec<_>>(),
            [(("mlx5_0".to_owned(), 1), LinkLayer::InfiniBand)]
        );
    }

    #[test]
    fn no_write_of_a_port_type_prevents_the_next() {
        let order = |values: [PortType; 2]| {
            let port = |port, value| CardPort {
                port,
                value,
                step: 0,
            };
            let mut ports = [port(1, values[0]), port(2, values[1])];
            writing_order(&mut ports);
            ports.map(|port| port.port)
        };
        assert_eq!(order([PortType::Eth, PortType::Eth]), [2, 1]);
        assert_eq!(order([PortType::Ib, PortType::Ib]), [1, 2]);
        assert_eq!(order([PortType::Ib, PortType::Eth]), [1, 2]);
        assert_eq!(order([PortType::Auto, PortType::Eth]), [1, 2]);
    }
}
