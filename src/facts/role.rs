// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a port is. Some ports of RDMA devices carry no link of the machine: management planes,
//! ports of the NVLink fabric, representors of virtual functions, Ethernet ports without RoCE.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::{Device, Look, Port};
use crate::rdma::netlink;
use crate::rdma::types::LinkLayer;
use crate::system::pci::{PCI, PciId};
use crate::system::root::Root;

/// What NETLINK_RDMA reports of sub-devices, in a saved tree: [`SubDevice`] by device, as JSON.
const SUB_DEVICES: &str = "/ibboot-rdma.json";
/// `RDMA_DEVICE_TYPE_SMI` (include/uapi/rdma/rdma_netlink.h).
const SMI: u8 = 1;
/// PCI vendor of the cards whose VPD is read.
const NVIDIA: &str = "0x15b3";
/// The word in the VPD of an NVSwitch function (nvidia-fabricmanager-start.sh reads the same word).
const SWITCH_MANAGEMENT: &str = "SW_MNG";
/// A VPD has some hundred bytes. Each dword is a transaction of its own, up to 125 ms on a slow
/// card (drivers/pci/vpd.c).
const VPD_MAX: u64 = 4096;
/// No card has more real ports than this on one device without planes or representors.
const REAL_PORTS: usize = 2;

/// What a port is. Only a link is counted, set up and judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A port of the machine.
    #[default]
    Link,
    /// One plane of a multi-plane port, for management datagrams only.
    Smi,
    /// A port of an NVSwitch, in the NVLink fabric.
    Nvlink,
    /// Stands for a virtual function or sub-function in a card's switch.
    Representor,
    /// A plane or a representor that has no network interface.
    NoNetdev,
    /// An Ethernet port for raw packets only: no RDMA connection can use it. So is the uplink of an mlx5
    /// card in switchdev mode, and each port of an mlx5 card whose `enable_roce` is off
    /// (mlx5_query_port_roce, drivers/infiniband/hw/mlx5/main.c).
    NoRoce,
}

impl Role {
    /// True for a port of the machine.
    pub fn is_link(&self) -> bool {
        *self == Role::Link
    }

    /// The port in words.
    pub fn words(self) -> &'static str {
        match self {
            Role::Link => "port",
            Role::Smi => "management plane (SMI)",
            Role::Nvlink => "NVSwitch port of the NVLink fabric, which NVLSM manages",
            Role::Representor => "representor of a virtual function",
            Role::NoNetdev => "plane or representor without a network interface",
            Role::NoRoce => "Ethernet port without RoCE (no GID table)",
        }
    }
}

/// A device that the driver adds to another device (`ib_add_sub_device`, Linux 6.11 on).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubDevice {
    /// `enum rdma_nl_dev_type`.
    pub device_type: u8,
    /// Name of the device that the sub-device belongs to.
    pub parent: Option<String>,
}

/// Whether NETLINK_RDMA reports that the device belongs to another one.
pub(super) fn sub_device(device: &netlink::Device) -> Option<SubDevice> {
    Some(SubDevice {
        device_type: device.device_type?,
        parent: device.parent.clone(),
    })
}

/// The sub-devices of a saved tree, by name.
pub(super) fn saved_sub_devices(look: &mut Look<'_>) -> BTreeMap<String, SubDevice> {
    match look.root().is_live() {
        true => BTreeMap::new(),
        false => look.saved(SUB_DEVICES),
    }
}

/// Stores the sub-devices in a recorded tree.
pub(super) fn keep_sub_devices(look: &Look<'_>, devices: &[Device]) {
    let of = |device: &Device| Some((device.ifname.clone(), device.sub_device.clone()?));
    let found: BTreeMap<String, SubDevice> = devices.iter().filter_map(of).collect();
    if !found.is_empty() {
        look.root().keep(SUB_DEVICES, &found);
    }
}

/// Gives each port its role. The ports have their network interfaces.
pub(super) fn assign(devices: &mut [Device], look: &mut Look<'_>) {
    for device in devices {
        let is_switch = is_nvswitch(device, look);
        let has_netdevs = device.ports.iter().any(|port| port.netdev.is_some());
        let has_extra = device.ports.len() > REAL_PORTS && has_netdevs;
        let is_smi = device.sub_device.as_ref().map(|sub| sub.device_type) == Some(SMI);
        for port in &mut device.ports {
            port.role = match of_device(is_smi, is_switch, port) {
                Role::Link => of_port(port, has_extra, |netdev| port_name(netdev, look)),
                role => role,
            };
        }
    }
}

fn of_device(is_smi: bool, is_switch: bool, port: &Port) -> Role {
    match port.link_layer {
        _ if is_smi => Role::Smi,
        Some(LinkLayer::InfiniBand) if is_switch => Role::Nvlink,
        _ => Role::Link,
    }
}

/// `has_extra`: the device has more ports than the card, and some have a network interface.
/// `port_name` gives the `phys_port_name` of a network interface.
fn of_port(port: &Port, has_extra: bool, port_name: impl FnOnce(&str) -> Option<String>) -> Role {
    if port.link_layer != Some(LinkLayer::Ethernet) {
        return Role::Link;
    }
    match &port.netdev {
        None if has_extra => Role::NoNetdev,
        Some(netdev) if port_name(netdev).is_some_and(|name| is_representor(&name)) => {
            Role::Representor
        }
        _ if port.no_gid_table => Role::NoRoce,
        _ => Role::Link,
    }
}

/// The uplink is `p0`; `pf0vf3`, `pf0sf1`, `pf0` and `c1pf0vf0` are representors
/// (net/devlink/port.c, __devlink_port_phys_port_name_get).
fn is_representor(port_name: &str) -> bool {
    let digits = |c: char| c.is_ascii_digit();
    let controller = port_name.strip_prefix('c');
    let function = controller.map_or(port_name, |rest| rest.trim_start_matches(digits));
    let rest = function.strip_prefix("pf");
    rest.is_some_and(|rest| rest.starts_with(digits))
}

fn port_name(netdev: &str, look: &mut Look<'_>) -> Option<String> {
    let path = format!("/sys/class/net/{netdev}/phys_port_name");
    look.text_or(&path, libc::EOPNOTSUPP)
}

/// Whether the device is a function of an NVSwitch.
fn is_nvswitch(device: &Device, look: &mut Look<'_>) -> bool {
    let is_infiniband = |port: &Port| port.link_layer == Some(LinkLayer::InfiniBand);
    let Some(address) = &device.bus_address else {
        return false;
    };
    let function = format!("{PCI}/{address}");
    if !device.ports.iter().any(is_infiniband)
        || look.constant(&format!("{function}/vendor")).as_deref() != Some(NVIDIA)
    {
        return false;
    }
    look.has_word(&format!("{function}/vpd"), SWITCH_MANAGEMENT, VPD_MAX)
}

/// Whether the PCI function of an InfiniBand controller is one of an NVSwitch: known also before its
/// driver is loaded. False if the VPD cannot be read.
pub(super) fn is_switch_function(root: &Root, address: &str, id: PciId) -> bool {
    let vpd = format!("{PCI}/{address}/vpd");
    let found = || root.has_word(&vpd, SWITCH_MANAGEMENT, VPD_MAX);
    id.is_rdma() && id.is_of_nvidia() && found().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_representor_is_known_by_its_port_name() {
        for name in ["pf0vf3", "pf1sf12", "pf0", "c1pf0vf0", "c12pf1"] {
            assert!(is_representor(name), "{name}");
        }
        for name in ["", "p0", "p1s2", "c", "c1", "pf", "pfx", "cpu0", "3"] {
            assert!(!is_representor(name), "{name}");
        }
    }

    #[test]
    fn only_ethernet_ports_of_a_card_with_extra_ports_need_a_network_interface() {
        let port = |link_layer, netdev: Option<&str>| Port {
            link_layer: Some(link_layer),
            netdev: netdev.map(str::to_owned),
            ..Port::default()
        };
        let of = |port: &Port, has_extra, name: &str| {
            of_port(port, has_extra, |_| Some(name.to_owned()))
        };
        let bare = port(LinkLayer::Ethernet, None);
        assert_eq!(of(&bare, true, ""), Role::NoNetdev);
        assert_eq!(of(&bare, false, ""), Role::Link, "mlx4_en may still come");
        let with = port(LinkLayer::Ethernet, Some("eth0"));
        assert_eq!(of(&with, true, "p0"), Role::Link);
        assert_eq!(of(&with, false, "pf0vf0"), Role::Representor);
        let raw = |port: &Port| Port {
            no_gid_table: true,
            ..port.clone()
        };
        assert_eq!(of(&raw(&with), false, "p0"), Role::NoRoce);
        assert_eq!(of(&raw(&bare), false, ""), Role::NoRoce);
        assert_eq!(of(&raw(&with), true, "pf0vf0"), Role::Representor);
        let infiniband = port(LinkLayer::InfiniBand, None);
        assert_eq!(of(&infiniband, true, "pf0vf0"), Role::Link);
    }
}
