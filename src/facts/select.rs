// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the ports of a snapshot that a selector means.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::functions::slot;
use crate::facts::{Device, Facts, Netdev, PortRef};
use crate::rdma::types::{Identity, LinkLayer};
use crate::system::drivers;
use crate::wish::bond::BondFacts;
use crate::wish::expectation::{LinkWish, PortPin, Target};
use crate::wish::selector::{Means, Selector};

/// The ports of a snapshot, by identity. Several ports can share a node GUID: a card's VFs, or
/// software devices on interfaces that share a MAC address.
#[derive(Debug)]
pub struct Ports<'f> {
    facts: &'f Facts,
    by_identity: BTreeMap<Identity, Vec<PortRef<'f>>>,
}

impl<'f> Ports<'f> {
    /// Indexes the ports of `facts`.
    pub fn new(facts: &'f Facts) -> Ports<'f> {
        let mut by_identity: BTreeMap<Identity, Vec<PortRef<'f>>> = BTreeMap::new();
        for port in facts.ports() {
            for identity in port.identities() {
                by_identity.entry(identity).or_default().push(port);
            }
        }
        Ports { facts, by_identity }
    }

    /// The ports of a link. A link that is pinned has the port with its identity, under any name; of
    /// several such ports those on its netdev, or all if none is. The last port of a shared identity
    /// may be the other one: then the link has no port. A port that no argument names and that has
    /// joined a RoCE bond since the handover is that of the bond. A link that is not pinned has the
    /// ports of its selector, or without one its candidates.
    pub fn of(&self, link: &LinkWish) -> Vec<PortRef<'f>> {
        if let Some(identity) = &link.identity {
            if let Some(bond) = joined_bond(link, self.facts) {
                let works = bond.netdev.is_some_and(Netdev::can_transmit);
                let ports = self.facts.ports();
                let is_its = |port: &PortRef<'_>| works && port.device.ifname == bond.device.ifname;
                return ports.filter(is_its).collect();
            }
            let mut pinned = self.pinned(identity, link.device_index, link.shared);
            let is_bound = |port: &PortRef<'_>| {
                link.netdev_index.is_some() && port.port.netdev_index == link.netdev_index
            };
            // Soft-RoCE and siw on one interface share identity and netdev.
            let may_be_other = !pinned.is_certain && pinned.ports.len() == 1;
            if may_be_other {
                return Vec::new();
            }
            if pinned.ports.iter().any(is_bound) {
                pinned.ports.retain(is_bound);
            }
            return pinned.ports;
        }
        match (&link.port, &link.target) {
            (None, Target::Any) => self.candidates(link),
            (Some(port), _) => named(link, port.as_str(), Some(port), self.facts),
            (None, target) => named(link, target.as_str(), target.selector(), self.facts),
        }
    }

    /// The ports that a link without a selector means: those of its link layer that it does not
    /// exclude. A port whose link layer is not known stays, and its check is unknown; a port that is
    /// neither InfiniBand nor Ethernet does not stay. A port for a guest does not count. If a port may be
    /// an excluded one, "every port" still requires it, and "any port" does not accept it.
    fn candidates(&self, link: &LinkWish) -> Vec<PortRef<'f>> {
        let except = link.except.iter();
        let pinned = link.except_ports.iter().chain(&link.switch_ports);
        let pinned = pinned.map(|pin| self.of_pin(pin));
        let pinned = pinned.filter(|pinned| pinned.is_certain || !link.required);
        let except: BTreeSet<String> = except
            .flat_map(|selector| ports(selector, self.facts))
            .chain(pinned.flat_map(|pinned| pinned.ports))
            .map(|port| port.name())
            .collect();
        let is_of_layer = |found: &PortRef<'_>| match (link.link_layer, found.port.link_layer) {
            (None, _) | (_, None) => true,
            (_, Some(LinkLayer::Unknown)) => !found.device.has_own_transport(),
            (expected, found) => expected == found,
        };
        self.facts
            .ports()
            .filter(|port| is_of_layer(port) && !except.contains(&port.name()))
            .filter(|port| !self.facts.is_for_guest(port))
            .collect()
    }

    /// Whether several ports have this identity.
    pub fn is_shared(&self, identity: &Identity) -> bool {
        let ports = self.by_identity.get(identity);
        ports.is_some_and(|ports| ports.len() > 1)
    }

    /// The port that was pinned, under any name.
    pub fn of_pin(&self, pin: &PortPin) -> Pinned<'f> {
        self.pinned(&pin.identity, pin.device_index, pin.shared)
    }

    /// A reset gives a device another index; a device that shared its identity may be gone instead:
    /// then every port of the identity may be the one.
    fn pinned(&self, identity: &Identity, index: Option<u32>, shared: bool) -> Pinned<'f> {
        let ports = self.by_identity.get(identity);
        let ports = ports.map_or(&[][..], Vec::as_slice);
        let is_device = |port: &&PortRef<'_>| index.is_some() && port.device.ifindex == index;
        let device = ports.iter().find(is_device).copied();
        let is_identity = ports.is_empty() || (ports.len() == 1 && !shared);
        Pinned {
            is_certain: device.is_some() || is_identity,
            ports: device.map_or_else(|| ports.to_vec(), |port| vec![port]),
        }
    }
}

/// The RoCE bond that a port has joined since the handover.
#[derive(Debug)]
pub struct JoinedBond<'f> {
    /// The device of the bond.
    pub device: &'f Device,
    /// The interface of the port, if it is in a bond.
    pub netdev: Option<&'f Netdev>,
}

/// The bond of a pinned port that no argument names. The node GUID of the bond is that of the first of
/// its ports: no identity tells whether the port itself works.
pub fn joined_bond<'f>(link: &LinkWish, facts: &'f Facts) -> Option<JoinedBond<'f>> {
    let address = may_join_bond(link)?;
    let bonds = || facts.netdevs.iter().filter_map(|one| one.bond.as_ref());
    let is_its = |netdev: &&Netdev| {
        netdev.bus_address.as_deref() == Some(address)
            && bonds().any(|bond| bond.slaves.contains(&netdev.ifname))
    };
    Some(JoinedBond {
        device: facts.roce_bond(address)?,
        netdev: facts.netdevs.iter().find(is_its),
    })
}

/// The address of a pinned port that no argument names, unless it was that of a bond at the handover.
pub fn may_join_bond(link: &LinkWish) -> Option<&str> {
    let was_bond = link.of_bond || drivers::is_roce_bond(link.target.as_str());
    let address = link.bus_address.as_deref();
    address.filter(|_| link.identity.is_some() && link.of_any && !was_bond)
}

/// What became of a pinned port.
#[derive(Debug)]
pub struct Pinned<'f> {
    /// The port; several: each of them may be the port; none: the port is gone.
    pub ports: Vec<PortRef<'f>>,
    /// False: the port may also be gone, or another of `ports`.
    pub is_certain: bool,
}

/// The ports that `selector` means, by what does not change within a boot; `None` if it
/// means none, or one that nothing identifies.
pub fn pins(selector: &Selector, facts: &Facts) -> Option<Vec<PortPin>> {
    let all = Ports::new(facts);
    let ports = ports(selector, facts).into_iter();
    let pin = |port: PortRef<'_>| {
        let identity = port.identity()?;
        Some(PortPin {
            name: port.name(),
            shared: all.is_shared(&identity),
            identity,
            device_index: port.device.ifindex,
        })
    };
    let pins: Option<Vec<PortPin>> = ports.map(pin).collect();
    pins.filter(|pins| !pins.is_empty())
}

/// The ports that `text` means in a link; `selector`, if it is one. An IPoIB interface and the device
/// of its port may have the same name: rdma-core and udev name both after the PCI address (`ibp5s0`).
/// A link with `ipoib` means the interface, unless `rd.ib.mode=` or `rd.ib.mtu=` without an interface added `ipoib` to it.
pub fn named<'f>(
    link: &LinkWish,
    text: &str,
    selector: Option<&Selector>,
    facts: &'f Facts,
) -> Vec<PortRef<'f>> {
    let is_interface = link.ipoib.is_some() && !link.of_all;
    let is_ipoib = |netdev: &&Netdev| netdev.is_infiniband();
    let netdev = facts.netdev(text).filter(is_ipoib);
    match (netdev.filter(|_| is_interface), selector) {
        (Some(netdev), _) => facts
            .ports()
            .filter(|p| is_below(netdev, *p, facts))
            .collect(),
        (None, Some(selector)) => ports(selector, facts),
        (None, None) => Vec::new(),
    }
}

/// The ports that `selector` means, in the order of the snapshot. A device stands for all its
/// ports that carry a link.
pub fn ports<'f>(selector: &Selector, facts: &'f Facts) -> Vec<PortRef<'f>> {
    meant(selector, facts, facts.ports().collect())
}

/// The ports that `selector` means and that carry no link.
pub fn others<'f>(selector: &Selector, facts: &'f Facts) -> Vec<PortRef<'f>> {
    let is_other = |found: &PortRef<'_>| !found.port.role.is_link();
    meant(
        selector,
        facts,
        facts.all_ports().filter(is_other).collect(),
    )
}

fn meant<'f>(
    selector: &Selector,
    facts: &'f Facts,
    mut ports: Vec<PortRef<'f>>,
) -> Vec<PortRef<'f>> {
    match selector.means() {
        Means::Name(name) => {
            let is_device = |found: &PortRef<'_>| found.device.ifname == *name;
            match facts.netdev(name) {
                Some(netdev) if !ports.iter().any(is_device) => {
                    ports.retain(|found| is_below(netdev, *found, facts));
                }
                _ => ports.retain(is_device),
            }
        }
        Means::Port { device, port } => ports
            .retain(|found| found.device.ifname == *device && found.port.port == u32::from(*port)),
        Means::Guid(address) => ports.retain(|found| {
            let guid = found.port.port_guid;
            guid.is_some_and(|guid| address.matches_guid(guid))
        }),
        Means::Pci(address) => {
            let address = address.to_string();
            ports.retain(|found| found.device.card() == Some(address.as_str()));
        }
    }
    ports
}

/// The interface below a VLAN, or below several: RDMA over a VLAN uses the port of that interface
/// (is_eth_port_of_netdev_filter, drivers/infiniband/core/roce_gid_mgmt.c). Another interface itself.
fn below_vlans<'f>(netdev: &'f Netdev, facts: &'f Facts) -> &'f Netdev {
    const NESTED: usize = 8;
    let below = |netdev: &&'f Netdev| {
        let lower = netdev.lower?;
        facts.netdevs.iter().find(|one| one.ifindex == Some(lower))
    };
    let all = std::iter::successors(Some(netdev), below).take(NESTED);
    all.last().unwrap_or(netdev)
}

/// Whether the port is below a network interface: by attachment (RoCE, Soft-RoCE), or as
/// [`Netdev::is_over`] of IPoIB. Of a RoCE bond NETLINK_RDMA reports one of the two interfaces in the
/// bond (mlx5_lag_get_roce_netdev, drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c): both are of the
/// card of the port.
fn is_below(netdev: &Netdev, found: PortRef<'_>, facts: &Facts) -> bool {
    if netdev.is_infiniband() {
        return netdev.is_over(found);
    }
    let netdev = below_vlans(netdev, facts);
    let Some(attached) = &found.port.netdev else {
        return false;
    };
    let card = found.device.card().and_then(slot);
    let is_of_card = |slave: &String| {
        let address = facts.netdev(slave).and_then(|n| n.bus_address.as_deref());
        card.is_some() && address.and_then(slot) == card
    };
    let is_in =
        |bond: &BondFacts| bond.slaves.contains(attached) && bond.slaves.iter().all(is_of_card);
    *attached == netdev.ifname || netdev.bond.as_ref().is_some_and(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Port;
    use crate::hardware::HardwareType;
    use crate::rdma::types::{Guid, Key};
    use crate::wish::ipoib::IpoibWish;

    /// Two devices with the same node GUID and one port each, and a device with another GUID and
    /// two ports.
    fn facts() -> Facts {
        let port = |port: u32| Port {
            port,
            ..Port::default()
        };
        let device = |name: &str, index: u32, guid: u64, ports: &[u32]| Device {
            ifname: name.to_owned(),
            ifindex: Some(index),
            node_guid: Some(Guid(guid)),
            ports: ports.iter().copied().map(port).collect(),
            ..Device::default()
        };
        Facts {
            devices: vec![
                device("rxe0", 1, 0xa, &[1]),
                device("rxe1", 2, 0xa, &[1]),
                device("mlx4_0", 3, 0xb, &[1, 2]),
            ],
            ..Facts::default()
        }
    }

    /// The same devices after a reset, which gives each of them another index.
    fn reset() -> Facts {
        let mut facts = facts();
        for device in &mut facts.devices {
            device.ifindex = device.ifindex.map(|index| index + 6);
        }
        facts
    }

    fn names(link: &LinkWish) -> Vec<String> {
        let facts = facts();
        let found = Ports::new(&facts).of(link).into_iter();
        found.map(|port| port.name()).collect()
    }

    #[test]
    fn a_link_has_the_ports_of_its_selector_or_every_port() {
        let named = |target: &str, port: Option<&str>| LinkWish {
            target: Target::from(target.to_owned()),
            port: port.and_then(Selector::parse),
            ..LinkWish::default()
        };
        assert_eq!(names(&named("mlx4_0", None)), ["mlx4_0/1", "mlx4_0/2"]);
        assert_eq!(names(&named("ib0", Some("mlx4_0:2"))), ["mlx4_0/2"]);
        assert_eq!(names(&named("any port", Some("rxe1:1"))), ["rxe1/1"]);
        assert!(names(&named("ib0", None)).is_empty());
        assert!(names(&named("pci=nonsense", None)).is_empty());
        let every = ["rxe0/1", "rxe1/1", "mlx4_0/1", "mlx4_0/2"];
        assert_eq!(names(&named("any port", None)), every);
    }

    #[test]
    fn a_pinned_link_has_one_port_under_any_name() {
        let pinned = |guid: u64, port: u32, index: Option<u32>| LinkWish {
            target: Target::from("mlx4_0:1".to_owned()),
            identity: Some(Identity {
                device: Key::NodeGuid(Guid(guid)),
                port,
            }),
            device_index: index,
            ..LinkWish::default()
        };
        assert_eq!(names(&pinned(0xb, 2, None)), ["mlx4_0/2"]);
        assert_eq!(names(&pinned(0xa, 1, Some(2))), ["rxe1/1"]);
        // A reset gives the device another index.
        assert_eq!(names(&pinned(0xa, 1, Some(9))), ["rxe0/1", "rxe1/1"]);
        assert_eq!(names(&pinned(0xb, 2, Some(9))), ["mlx4_0/2"]);
        let shared = LinkWish {
            shared: true,
            ..pinned(0xb, 2, Some(9))
        };
        assert!(names(&shared).is_empty(), "this may be the other port");
        let mut facts = reset();
        facts.devices[1].ports[0].netdev_index = Some(5);
        let on_netdev = LinkWish {
            netdev_index: Some(5),
            ..pinned(0xa, 1, Some(2))
        };
        let found = Ports::new(&facts).of(&on_netdev).into_iter();
        assert_eq!(
            found.map(|port| port.name()).collect::<Vec<_>>(),
            ["rxe1/1"]
        );
        let without = LinkWish {
            netdev_index: None,
            ..on_netdev
        };
        let found = Ports::new(&facts).of(&without).into_iter();
        assert_eq!(found.count(), 2, "no netdev tells which one");
        assert!(names(&pinned(0xc, 1, Some(3))).is_empty());
    }

    #[test]
    fn no_other_port_takes_the_place_of_a_pinned_one_that_is_gone() {
        let facts = facts();
        let found = |facts: &Facts, text: &str| {
            let pins = pins(&Selector::named(text), &self::facts()).unwrap();
            let ports = Ports::new(facts);
            let found = pins.iter().map(|pin| ports.of_pin(pin));
            let texts = found.map(|pinned| {
                let names: Vec<String> = pinned.ports.iter().map(PortRef::name).collect();
                let before = if pinned.is_certain { "" } else { "perhaps " };
                format!("{before}{}", names.join(" "))
            });
            texts.collect::<Vec<_>>()
        };
        assert_eq!(found(&facts, "rxe1"), ["rxe1/1"]);
        let mut left = self::facts();
        left.devices.remove(0);
        assert_eq!(found(&left, "rxe0"), ["perhaps rxe1/1"]);
        assert_eq!(found(&left, "rxe1"), ["rxe1/1"]);
        left.devices.remove(0);
        assert_eq!(found(&left, "rxe1"), [""]);
        let reset = reset();
        assert_eq!(found(&reset, "mlx4_0"), ["mlx4_0/1", "mlx4_0/2"]);
        assert_eq!(found(&reset, "rxe0"), ["perhaps rxe0/1 rxe1/1"]);
    }

    #[test]
    fn what_may_be_an_excluded_port_is_required_and_is_not_enough() {
        let candidates = |required: bool| {
            let link = LinkWish {
                target: Target::Any,
                required,
                except_ports: pins(&Selector::named("rxe0"), &facts()).unwrap(),
                ..LinkWish::default()
            };
            let reset = reset();
            let found = Ports::new(&reset).of(&link).into_iter();
            found.map(|port| port.name()).collect::<Vec<_>>()
        };
        assert_eq!(
            candidates(true),
            ["rxe0/1", "rxe1/1", "mlx4_0/1", "mlx4_0/2"]
        );
        assert_eq!(candidates(false), ["mlx4_0/1", "mlx4_0/2"]);
    }

    #[test]
    fn a_mode_for_all_interfaces_makes_no_interface_of_a_device_with_the_same_name() {
        let mut facts = facts();
        facts.devices[2].ports[0].port_guid = Some(Guid(0xb8599f0300fc1a2c));
        let address = "80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";
        facts.netdevs.push(Netdev {
            ifname: "mlx4_0".to_owned(),
            hardware_type: Some(HardwareType::InfiniBand),
            address: address.parse().ok(),
            ..Netdev::default()
        });
        let found = |of_all| {
            let link = LinkWish {
                target: Target::from(Selector::named("mlx4_0")),
                ipoib: Some(IpoibWish::default()),
                of_all,
                ..LinkWish::default()
            };
            let found = Ports::new(&facts).of(&link).into_iter();
            found.map(|port| port.name()).collect::<Vec<_>>()
        };
        assert_eq!(found(true), ["mlx4_0/1", "mlx4_0/2"]);
        assert_eq!(found(false), ["mlx4_0/1"]);
    }
}
