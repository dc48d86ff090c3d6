// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the interface that a wish means, and the limits of its driver and its broadcast group.
//!
//! Sources: drivers/infiniband/ulp/ipoib/ipoib_main.c, ipoib_vlan.c, ipoib_cm.c.

use std::collections::BTreeSet;

use crate::facts::select::Ports;
use crate::facts::{Facts, Netdev, PortRef};
use crate::rdma::types::{LinkLayer, Rate};
use crate::wish::expectation::{Expectation, LinkWish, Target};
use crate::wish::ipoib::IpoibWish;
use crate::wish::ipoib::{
    CONNECTED_MAX, DATAGRAM_MAX, FULL_MEMBER, Mode, OPA_DATAGRAM_MAX, RequestedMode, RequestedMtu,
    Suggested, child_name,
};
use crate::wish::selector::{Means, Selector};

/// Byte 0 of an IPoIB hardware address: the device supports connected mode (RFC 4755, 3.1).
const CONNECTED_CAPABLE: u8 = 0x80;

/// The IPoIB interface of a link on its port: found by the port GUID in its address and by its P_Key,
/// under any name. Through rtnetlink the kernel makes several children of one P_Key (is_child_unique
/// of ipoib_vlan.c): of these the link means the one that has its name, then the one of the handover,
/// then the one that was made through `create_child`.
pub fn interface<'f>(link: &LinkWish, port: PortRef<'_>, facts: &'f Facts) -> Option<&'f Netdev> {
    let wish = link.ipoib.as_ref()?;
    let Some(pkey) = wish.pkey else {
        return own_interface(port, facts);
    };
    let is_child = |netdev: &&Netdev| {
        netdev.is_child() && is_in_partition(netdev, pkey) && netdev.is_over(port)
    };
    let parent = link.selector().map(Selector::as_str);
    let name = parent.map(|parent| child_name(parent, pkey));
    facts.netdevs.iter().filter(is_child).min_by_key(|netdev| {
        let ifname = &netdev.ifname;
        let is_named = link.target == *ifname || name.as_ref() == Some(ifname);
        let is_pinned = wish.ifindex.is_some() && wish.ifindex == netdev.ifindex;
        let is_legacy = netdev.ipoib.as_ref().is_some_and(|ipoib| ipoib.legacy);
        (!is_named, !is_pinned, !is_legacy)
    })
}

/// The name of the interface that the link names; none if it names a port.
pub fn name_of_interface<'w>(link: &'w LinkWish, port: PortRef<'_>) -> Option<&'w str> {
    let name = match &link.target {
        Target::Any => return None,
        Target::Name(name) => name.as_str(),
        Target::Selector(selector) => match selector.means() {
            Means::Name(name) => name.as_str(),
            _ => return None,
        },
    };
    (!link.of_all && name != port.device.ifname).then_some(name)
}

/// The port's own IPoIB interface, the parent of its children.
pub fn own_interface<'f>(port: PortRef<'_>, facts: &'f Facts) -> Option<&'f Netdev> {
    let is_own = |netdev: &&Netdev| netdev.is_parent() && netdev.is_over(port);
    facts.netdevs.iter().find(is_own)
}

/// The parent of a child: the kernel has its index, which may be that of an interface in another
/// network namespace. Without it, the interface of the same port: the last 8 bytes of both addresses
/// are the port GUID.
pub fn parent<'f>(netdev: &Netdev, facts: &'f Facts) -> Option<&'f Netdev> {
    let guid = netdev.port_guid();
    let is_above = |other: &&Netdev| other.is_parent() && other.port_guid() == guid;
    let mut parents = facts.netdevs.iter().filter(is_above);
    if !netdev.is_child() {
        return None;
    }
    let is_linked = |other: &&Netdev| netdev.lower.is_some() && other.ifindex == netdev.lower;
    let linked = parents.clone().find(is_linked);
    linked.or_else(|| guid.and_then(|_| parents.next()))
}

/// Whether the device supports connected mode, according to its hardware address.
pub fn can_connect(netdev: &Netdev) -> bool {
    let address = netdev.address.as_ref();
    let ipoib = address.filter(|address| address.port_guid().is_some());
    let flags = ipoib.and_then(|address| address.bytes().first());
    flags.is_some_and(|flags| flags & CONNECTED_CAPABLE != 0)
}

/// Whether the kernel may report SDR in place of a speed that it does not know
/// (drivers/infiniband/core/sysfs.c, rate_show). Only cards of mlx5 have such speeds.
pub fn may_be_faster(port: PortRef<'_>, rate: &Rate) -> bool {
    rate.speed == "SDR"
        && port.port.link_layer == Some(LinkLayer::InfiniBand)
        && port.device.is_mlx5()
}

/// The rate in Gb/s that an Omni-Path link has at most of which the kernel reports one lane: it does
/// so of two and three lanes too (opa_width_to_ib, drivers/infiniband/hw/hfi1/verbs.c).
pub fn with_three_lanes(port: PortRef<'_>, rate: &Rate) -> Option<f64> {
    let is_unsure = port.device.is_omni_path() && rate.width == 1;
    is_unsure.then_some(3.0 * rate.gbps)
}

/// Whether this is the rate that an Ethernet port may have in place of a faster one: of mlx5 4X QDR
/// (mlx5_query_port_roce, drivers/infiniband/hw/mlx5/main.c), of other cards 4X EDR or 4X NDR, the last
/// ones of their lists, and SDR for an unknown speed (ib_get_eth_speed, drivers/infiniband/core/verbs.c;
/// get_link_speed_and_width, drivers/infiniband/hw/qedr/verbs.c). Mostly 4X is right, and SDR only for
/// 1 Gb/s.
pub fn is_default_of_ethernet(port: PortRef<'_>, rate: &Rate) -> bool {
    let device = port.device;
    let is_default = match rate.speed.as_str() {
        "QDR" => device.is_mlx5() && rate.width == 4,
        "EDR" | "NDR" => !device.is_mlx5() && rate.width == 4,
        "SDR" => !device.is_mlx5(),
        _ => false,
    };
    port.port.link_layer == Some(LinkLayer::Ethernet) && !device.is_software() && is_default
}

/// The current mode. An interface without a file for the mode that cannot connect is in datagram
/// mode (a kernel without CONFIG_INFINIBAND_IPOIB_CM).
pub fn current_mode(netdev: &Netdev) -> Option<Mode> {
    let mode = netdev.ipoib.as_ref()?.mode;
    mode.or_else(|| (!can_connect(netdev)).then_some(Mode::Datagram))
}

/// The mode to set, or why the requested mode is not possible.
pub fn mode(requested: RequestedMode, netdev: &Netdev) -> Result<Mode, String> {
    match requested {
        RequestedMode::Datagram => Ok(Mode::Datagram),
        RequestedMode::Connected | RequestedMode::Auto if can_connect(netdev) => {
            Ok(Mode::Connected)
        }
        RequestedMode::Auto => Ok(Mode::Datagram),
        RequestedMode::Connected => Err(format!(
            "{} does not support connected mode: flag 0x80 of its hardware address is not set (mlx5 with \
             enhanced IPoIB, or a kernel without CONFIG_INFINIBAND_IPOIB_CM); use rd.ib.mode=datagram or auto",
            netdev.ifname
        )),
    }
}

/// The MTU to set after the interface has carrier: before, the broadcast group has not decided the
/// limit.
pub fn mtu_to_set(requested: RequestedMtu, netdev: &Netdev) -> Option<u32> {
    let connected = netdev.ipoib.as_ref().and_then(|ipoib| ipoib.mode) == Some(Mode::Connected);
    let target = match (requested, connected) {
        (RequestedMtu::Bytes(bytes), _) => bytes,
        // The change of the mode has already set the largest MTU.
        (RequestedMtu::Max, true) => return None,
        // Omni-Path: the group granted more than InfiniBand has.
        (RequestedMtu::Max, false) if netdev.mtu > Some(DATAGRAM_MAX) => return None,
        (RequestedMtu::Max, false) => DATAGRAM_MAX,
    };
    (netdev.mtu != Some(target)).then_some(target)
}

/// The next MTU of the bond: the requested one, or at most the least of its slaves. The broadcast
/// group may have reduced the MTU of a slave after it joined the bond.
pub fn bond_mtu(requested: Option<RequestedMtu>, bond: &Netdev, slaves: &[&Netdev]) -> Option<u32> {
    let target = match requested {
        Some(RequestedMtu::Bytes(bytes)) => Some(bytes),
        Some(RequestedMtu::Max) | None => {
            let least = slaves.iter().filter_map(|slave| slave.mtu).min();
            least.filter(|least| bond.mtu.is_some_and(|mtu| *least < mtu))
        }
    };
    target.filter(|target| bond.mtu != Some(*target))
}

/// The MTU to set if a DHCP server suggests one: limited by the mode, by the driver (`device_max`,
/// IFLA_MAX_MTU), and in a bond by the least MTU of the slaves.
pub fn suggested_mtu(
    suggested: &Suggested,
    netdev: &Netdev,
    device_max: Option<u32>,
    slaves: &[&Netdev],
) -> Option<u32> {
    let mode = netdev.ipoib.as_ref().map(|ipoib| ipoib.mode);
    let is_infiniband = netdev.is_infiniband();
    let of_mode = match mode {
        Some(Some(Mode::Connected)) => CONNECTED_MAX,
        Some(_) if netdev.mtu > Some(DATAGRAM_MAX) => OPA_DATAGRAM_MAX,
        Some(_) => DATAGRAM_MAX,
        None if is_infiniband => CONNECTED_MAX,
        None => u32::MAX,
    };
    let of_slaves = slaves.iter().filter_map(|slave| slave.mtu).min();
    let most = [Some(of_mode), device_max, of_slaves];
    let most = most.into_iter().flatten().min().unwrap_or(of_mode);
    let target = suggested.mtu?.min(most);
    (netdev.mtu != Some(target)).then_some(target)
}

/// Whether the interface itself is in the partition: the kernel creates no child of the P_Key of its
/// parent (is_child_unique of drivers/infiniband/ulp/ipoib/ipoib_vlan.c).
pub fn is_in_partition(netdev: &Netdev, pkey: u16) -> bool {
    let own = netdev.ipoib.as_ref().and_then(|ipoib| ipoib.pkey);
    own.is_some_and(|own| own | FULL_MEMBER == pkey | FULL_MEMBER)
}

/// Whether a link requests an IPoIB interface on this port. A request for all interfaces excludes
/// an interface that another link names (`named`, of [`named_interfaces`]), and Ethernet ports,
/// which have none.
pub fn wants_interface(link: &LinkWish, port: PortRef<'_>, named: &BTreeSet<String>) -> bool {
    let is_ethernet = port.port.link_layer == Some(LinkLayer::Ethernet);
    let is_without = is_ethernet && link.link_layer != Some(LinkLayer::InfiniBand);
    link.ipoib.is_some() && !(link.of_all && (is_without || named.contains(&port.name())))
}

/// Whether the link means several `ports` and its request is for one interface: a static address, or
/// a place in a bond.
pub fn is_ambiguous(link: &LinkWish, ports: &[PortRef<'_>]) -> bool {
    let is_of_one = |wish: &IpoibWish| !wish.addresses.is_empty() || wish.bond.is_some();
    let is_open = link.identity.is_none() && ports.len() > 1;
    is_open && link.ipoib.as_ref().is_some_and(is_of_one)
}

/// The ports whose own IPoIB interface (not a child) a link names.
pub fn named_interfaces(expectation: &Expectation, ports: &Ports<'_>) -> BTreeSet<String> {
    let mut links = expectation.links.iter().chain(&expectation.any_port);
    if !links.any(|link| link.of_all) {
        return BTreeSet::new();
    }
    let is_own = |link: &&LinkWish| {
        let ipoib = link.ipoib.as_ref().filter(|_| !link.of_all);
        ipoib.is_some_and(|ipoib| ipoib.pkey.is_none()) && link.bond.is_none()
    };
    let links = expectation.links.iter().filter(is_own);
    let ports = links.flat_map(|link| ports.of(link));
    ports.map(|port| port.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Port};
    use crate::hardware::HardwareType;
    use crate::wish::ipoib::IpoibFacts;

    use crate::wish::ipoib::{Mode, RequestedMode, Suggested};

    fn ipoib(address: &str, mode: Option<Mode>, mtu: u32) -> Netdev {
        Netdev {
            ifname: "ib0".to_owned(),
            hardware_type: Some(HardwareType::InfiniBand),
            address: Some(address.parse().unwrap()),
            mtu: Some(mtu),
            ipoib: Some(IpoibFacts {
                mode,
                pkey: Some(0xffff),
                ..IpoibFacts::default()
            }),
            ..Netdev::default()
        }
    }

    #[test]
    fn of_several_children_of_a_partition_the_link_means_its_own() {
        let found = |names: [&str; 3], ifindex: Option<u32>| {
            let child = |(name, index): (&str, u32)| {
                let mut child = ipoib(CAPABLE, None, 2044);
                child.ifname = name.to_owned();
                child.ifindex = Some(index);
                child.ipoib = Some(IpoibFacts {
                    pkey: Some(0x8001),
                    child: true,
                    legacy: index == 6,
                    ..IpoibFacts::default()
                });
                child
            };
            let facts = Facts {
                netdevs: names.into_iter().zip(4..).map(child).collect(),
                ..Facts::default()
            };
            let link = LinkWish {
                target: "ib0.0001".to_owned().into(),
                port: Selector::parse("ib0"),
                ipoib: Some(IpoibWish {
                    pkey: Some(0x8001),
                    ifindex,
                    ..IpoibWish::default()
                }),
                ..LinkWish::default()
            };
            let (device, port) = (
                Device::default(),
                Port {
                    port_guid: facts.netdevs[0].port_guid(),
                    ..Port::default()
                },
            );
            let port = PortRef {
                device: &device,
                port: &port,
            };
            interface(&link, port, &facts).and_then(|netdev| netdev.ifindex)
        };
        for (names, ifindex, expected) in [
            (["a", "ib0.0001", "c"], Some(4), 5),
            (["a", "ib0.8001", "c"], Some(4), 5),
            (["a", "b", "c"], Some(5), 5),
            (["a", "b", "c"], Some(9), 6),
            (["a", "b", "c"], None, 6),
        ] {
            assert_eq!(
                found(names, ifindex),
                Some(expected),
                "{names:?} {ifindex:?}"
            );
        }
    }

    #[test]
    fn a_child_on_another_port_is_not_the_one_of_the_link() {
        let found = |children: &[&str]| {
            let child = |guid: &&str| {
                let mut child = ipoib(
                    &format!("80:00:00:48:fe:80:00:00:00:00:00:00:{guid}"),
                    None,
                    2044,
                );
                child.ifname = format!("of {guid}");
                child.ipoib = Some(IpoibFacts {
                    pkey: Some(0x8001),
                    child: true,
                    legacy: true,
                    ..IpoibFacts::default()
                });
                child
            };
            let facts = Facts {
                netdevs: children.iter().map(child).collect(),
                ..Facts::default()
            };
            let link = LinkWish {
                target: "ib0.0001".to_owned().into(),
                port: Selector::parse("ib0"),
                ipoib: Some(IpoibWish {
                    pkey: Some(0x8001),
                    ..IpoibWish::default()
                }),
                ..LinkWish::default()
            };
            let (device, port) = (
                Device::default(),
                Port {
                    port_guid: ipoib(CAPABLE, None, 2044).port_guid(),
                    ..Port::default()
                },
            );
            let port = PortRef {
                device: &device,
                port: &port,
            };
            interface(&link, port, &facts).map(|netdev| netdev.ifname.clone())
        };
        let (own, other) = ("b8:59:9f:03:00:fc:1a:2c", "b8:59:9f:03:00:fc:1a:2d");
        assert_eq!(found(&[other]), None);
        assert_eq!(found(&[other, own]), Some(format!("of {own}")));
    }

    #[test]
    fn the_parent_of_a_child_is_linked_and_on_the_same_port() {
        const OTHER: &str = "80:00:00:49:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2d";
        const ZERO: &str = "80:00:00:48:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00";
        let parent_of = |own: &str, lower: Option<u32>| {
            let parents = [(4, CAPABLE), (5, CAPABLE), (6, OTHER), (7, ZERO), (8, ZERO)];
            let parents = parents.map(|(index, address)| Netdev {
                ifindex: Some(index),
                ..ipoib(address, None, 2044)
            });
            let facts = Facts {
                netdevs: parents.to_vec(),
                ..Facts::default()
            };
            let mut child = Netdev {
                lower,
                ..ipoib(own, None, 2044)
            };
            assert_eq!(parent(&child, &facts), None, "it is no child");
            child.ipoib.as_mut().unwrap().child = true;
            parent(&child, &facts).and_then(|parent| parent.ifindex)
        };
        assert_eq!(parent_of(CAPABLE, Some(5)), Some(5));
        assert_eq!(parent_of(CAPABLE, Some(6)), Some(4), "of another namespace");
        assert_eq!(parent_of(CAPABLE, None), Some(4));
        assert_eq!(parent_of(ZERO, Some(8)), Some(8));
        assert_eq!(parent_of(ZERO, Some(6)), None);
        assert_eq!(parent_of(ZERO, None), None);
    }

    const CAPABLE: &str = "80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";

    const ENHANCED: &str = "00:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";

    #[test]
    fn rates_that_stand_for_unknown_ones_are_those_of_the_driver() {
        let (infiniband, ethernet) = (LinkLayer::InfiniBand, LinkLayer::Ethernet);
        for (driver, layer, rate, expected) in [
            ("mlx5_core", infiniband, "10 Gb/sec (4X SDR)", (true, false)),
            (
                "mlx5_core.sf",
                infiniband,
                "10 Gb/sec (4X SDR)",
                (true, false),
            ),
            (
                "mlx4_core",
                infiniband,
                "10 Gb/sec (4X SDR)",
                (false, false),
            ),
            ("mlx5_core", ethernet, "40 Gb/sec (4X QDR)", (false, true)),
            (
                "mlx5_core.sf",
                ethernet,
                "40 Gb/sec (4X QDR)",
                (false, true),
            ),
            (
                "mlx5_core.sf",
                ethernet,
                "100 Gb/sec (4X EDR)",
                (false, false),
            ),
            ("bnxt_en", ethernet, "40 Gb/sec (4X QDR)", (false, false)),
            ("bnxt_en", ethernet, "100 Gb/sec (4X EDR)", (false, true)),
            ("bnxt_en", ethernet, "400 Gb/sec (4X NDR)", (false, true)),
            ("bnxt_en", ethernet, "100 Gb/sec (1X NDR)", (false, false)),
            ("qede", ethernet, "2.5 Gb/sec (1X SDR)", (false, true)),
            ("ice", ethernet, "10 Gb/sec (4X SDR)", (false, true)),
            ("ice", ethernet, "5 Gb/sec (2X SDR)", (false, true)),
            ("ice", ethernet, "25 Gb/sec (1X EDR)", (false, false)),
            ("mlx5_core", ethernet, "2.5 Gb/sec (1X SDR)", (false, false)),
            ("mlx5_core", ethernet, "400 Gb/sec (4X NDR)", (false, false)),
            ("mlx5_core", ethernet, "10 Gb/sec (4X SDR)", (false, false)),
            ("bnxt_en", ethernet, "25 Gb/sec (1X EDR)", (false, false)),
        ] {
            let device = Device {
                driver: Some(driver.to_owned()),
                bus_address: Some("0000:81:00.0".to_owned()),
                ..Device::default()
            };
            let port = &Port {
                link_layer: Some(layer),
                ..Port::default()
            };
            let port = PortRef {
                device: &device,
                port,
            };
            let rate = crate::rdma::parse::rate(rate).unwrap();
            let found = (
                may_be_faster(port, &rate),
                is_default_of_ethernet(port, &rate),
            );
            assert_eq!(found, expected, "{driver} {layer} {rate:?}");
        }
    }

    #[test]
    fn the_rate_of_a_device_in_software_is_that_of_its_interface() {
        let device = Device {
            parent: Some("eth0".to_owned()),
            ..Device::default()
        };
        let port = &Port {
            link_layer: Some(LinkLayer::Ethernet),
            ..Port::default()
        };
        let device = &device;
        let rate = crate::rdma::parse::rate("100 Gb/sec (4X EDR)").unwrap();
        assert!(!is_default_of_ethernet(PortRef { device, port }, &rate));
    }

    #[test]
    fn an_omni_path_link_with_four_lanes_has_no_other_rate() {
        let device = &Device {
            driver: Some("hfi1".to_owned()),
            ..Device::default()
        };
        let port = &Port::default();
        for (text, expected) in [
            ("25 Gb/sec (1X EDR)", Some(75.0)),
            ("100 Gb/sec (4X EDR)", None),
        ] {
            let rate = crate::rdma::parse::rate(text).unwrap();
            assert_eq!(with_three_lanes(PortRef { device, port }, &rate), expected);
        }
    }

    #[test]
    fn the_own_interface_of_a_port_is_none_of_its_children() {
        let mut child = ipoib(CAPABLE, None, 2044);
        child.ifname = "a".to_owned();
        child.ipoib.as_mut().unwrap().child = true;
        let own = ipoib(CAPABLE, None, 2044);
        let (device, port) = (
            Device::default(),
            Port {
                port_guid: own.port_guid(),
                ..Port::default()
            },
        );
        let facts = Facts {
            netdevs: vec![child, own],
            ..Facts::default()
        };
        let port = PortRef {
            device: &device,
            port: &port,
        };
        let found = own_interface(port, &facts).map(|netdev| netdev.ifname.as_str());
        assert_eq!(found, Some("ib0"));
    }

    #[test]
    fn connected_mode_needs_the_flag_in_the_address() {
        let capable = ipoib(CAPABLE, Some(Mode::Datagram), 2044);
        let enhanced = ipoib(ENHANCED, Some(Mode::Datagram), 2044);
        assert_eq!(
            mode(RequestedMode::Connected, &capable),
            Ok(Mode::Connected)
        );
        assert_eq!(mode(RequestedMode::Auto, &capable), Ok(Mode::Connected));
        assert_eq!(mode(RequestedMode::Auto, &enhanced), Ok(Mode::Datagram));
        assert_eq!(mode(RequestedMode::Datagram, &capable), Ok(Mode::Datagram));
        assert_eq!(
            mode(RequestedMode::Connected, &enhanced),
            Err(
                "ib0 does not support connected mode: flag 0x80 of its hardware address is not set (mlx5 with \
                 enhanced IPoIB, or a kernel without CONFIG_INFINIBAND_IPOIB_CM); use rd.ib.mode=datagram or auto"
                    .to_owned()
            )
        );
    }

    #[test]
    fn the_mtu_is_set_only_if_it_differs() {
        let datagram = ipoib(CAPABLE, Some(Mode::Datagram), 2044);
        assert_eq!(mtu_to_set(RequestedMtu::Max, &datagram), Some(4092));
        assert_eq!(mtu_to_set(RequestedMtu::Bytes(2044), &datagram), None);
        let omni_path = ipoib(CAPABLE, Some(Mode::Datagram), 10236);
        assert_eq!(mtu_to_set(RequestedMtu::Max, &omni_path), None);
        assert_eq!(
            mtu_to_set(RequestedMtu::Bytes(2044), &omni_path),
            Some(2044)
        );
        let connected = ipoib(CAPABLE, Some(Mode::Connected), 65520);
        assert_eq!(mtu_to_set(RequestedMtu::Max, &connected), None);
        assert_eq!(
            mtu_to_set(RequestedMtu::Bytes(9000), &connected),
            Some(9000)
        );
    }

    #[test]
    fn a_bond_has_no_larger_mtu_than_its_interfaces() {
        let netdev = |mtu: u32| Netdev {
            mtu: Some(mtu),
            ..Netdev::default()
        };
        let (bond, one, other) = (netdev(4092), netdev(4092), netdev(2044));
        let slaves = [&one, &other];
        assert_eq!(bond_mtu(None, &bond, &slaves), Some(2044));
        let max = Some(RequestedMtu::Max);
        assert_eq!(bond_mtu(max, &bond, &slaves), Some(2044));
        assert_eq!(bond_mtu(max, &bond, &[&one]), None);
        assert_eq!(bond_mtu(max, &other, &[&one]), None);
        let bytes = Some(RequestedMtu::Bytes(4092));
        assert_eq!(bond_mtu(bytes, &bond, &slaves), None);
        assert_eq!(bond_mtu(bytes, &other, &slaves), Some(4092));
    }

    #[test]
    fn a_suggested_mtu_is_limited_by_the_device() {
        let netdev = |mode: Option<Option<Mode>>, mtu: u32| Netdev {
            hardware_type: Some(HardwareType::InfiniBand),
            mtu: Some(mtu),
            ipoib: mode.map(|mode| IpoibFacts {
                mode,
                ..IpoibFacts::default()
            }),
            ..Netdev::default()
        };
        let tried = |suggested: u32, netdev: &Netdev, max, slaves: &[&Netdev]| {
            let suggested = Suggested {
                mtu: Some(suggested),
                ..Suggested::default()
            };
            suggested_mtu(&suggested, netdev, max, slaves)
        };
        let datagram = netdev(Some(Some(Mode::Datagram)), 2044);
        let connected = netdev(Some(Some(Mode::Connected)), 65520);
        let (no_mode, bond) = (netdev(Some(None), 2044), netdev(None, 2044));
        assert_eq!(tried(65520, &datagram, None, &[]), Some(4092));
        assert_eq!(tried(65520, &no_mode, None, &[]), Some(4092));
        let omni_path = netdev(Some(Some(Mode::Datagram)), 10236);
        assert_eq!(tried(65520, &omni_path, None, &[]), None);
        assert_eq!(tried(9000, &omni_path, None, &[]), Some(9000));
        assert_eq!(tried(65520, &datagram, Some(2044), &[]), None);
        assert_eq!(tried(1500, &datagram, Some(2044), &[]), Some(1500));
        assert_eq!(tried(65535, &connected, None, &[]), None);
        assert_eq!(tried(9000, &connected, Some(65520), &[]), Some(9000));
        assert_eq!(
            tried(65520, &bond, Some(65535), &[&connected, &datagram]),
            None
        );
        assert_eq!(
            suggested_mtu(&Suggested::default(), &datagram, None, &[]),
            None
        );
    }

    #[test]
    fn without_a_file_an_interface_that_cannot_connect_is_in_datagram_mode() {
        for (address, mode, expected) in [
            (CAPABLE, None, None),
            (ENHANCED, None, Some(Mode::Datagram)),
            (CAPABLE, Some(Mode::Connected), Some(Mode::Connected)),
        ] {
            assert_eq!(current_mode(&ipoib(address, mode, 2044)), expected);
        }
    }
}
