// SPDX-License-Identifier: MIT OR Apache-2.0
//! The RDMA devices of the machine, from sysfs (drivers/infiniband/core/sysfs.c) and, for what
//! sysfs does not tell, from NETLINK_RDMA.

use std::collections::BTreeSet;

use crate::facts::{Device, Look, Netdev, Port};
use crate::rdma::netlink::{self, Rdma};
use crate::rdma::parse;
use crate::rdma::types::{Connection, Guid, LinkLayer};
use crate::wish::expectation::Depth;
use crate::wish::ipoib::FULL_MEMBER;

const CLASS: &str = "/sys/class/infiniband";

/// What NETLINK_RDMA told of one device.
struct Told {
    device: netlink::Device,
    ports: Vec<netlink::Port>,
}

/// Asks NETLINK_RDMA. A device that comes or goes meanwhile is left as sysfs shows it: the next
/// look sees it whole.
fn ask(rdma: &Rdma, look: &mut Look<'_>) -> Vec<Told> {
    let devices = match rdma.devices() {
        Ok(devices) => devices,
        Err(e) => {
            look.note("NETLINK_RDMA devices", e);
            return Vec::new();
        }
    };
    let mut told = Vec::with_capacity(devices.len());
    for device in devices {
        match rdma.ports(device.index) {
            Ok(ports) => told.push(Told { device, ports }),
            Err(e) => look.note(format!("NETLINK_RDMA ports of {}", device.name), e),
        }
    }
    told
}

/// All devices in /sys/class/infiniband, by name; with netlink, where given, for what sysfs does
/// not tell and for what it would ask the firmware once per file.
pub fn devices(look: &mut Look<'_>, rdma: Option<&Rdma>) -> Vec<Device> {
    let told = rdma.map(|rdma| ask(rdma, look)).unwrap_or_default();
    let names = look.list(CLASS);
    names
        .into_iter()
        .map(|name| {
            let told = told.iter().find(|told| told.device.name == name);
            device(look, name, told)
        })
        .collect()
}

/// The established connections of all devices.
pub fn connections(look: &mut Look<'_>, rdma: &Rdma, devices: &[Device]) -> Vec<Connection> {
    let mut found = Vec::new();
    for (name, index) in devices.iter().filter_map(|d| Some((&d.ifname, d.ifindex?))) {
        match rdma.connections(index) {
            Ok(connections) => found.extend(connections),
            Err(e) => look.note(format!("NETLINK_RDMA connections of {name}"), e),
        }
    }
    found
}

/// Without a socket nobody knows of connections, unless there is no ib_core to make any.
pub fn note_silence(look: &mut Look<'_>) {
    if let Err(e) = Rdma::open()
        && e.raw_os_error() != Some(libc::EPROTONOSUPPORT)
    {
        look.note("NETLINK_RDMA connections", crate::error::errno_text(&e));
    }
}

fn device(look: &mut Look<'_>, ifname: String, told: Option<&Told>) -> Device {
    let base = format!("{CLASS}/{ifname}");
    let free = |look: &mut Look<'_>, file: &str| {
        // Only people want to know these.
        if look.depth < Depth::All && file != "parent" {
            return None;
        }
        look.text(&format!("{base}/{file}"))
            .and_then(|raw| parse::text(&raw))
    };
    let mut numbers: Vec<u32> = look
        .list(&format!("{base}/ports"))
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    let bus_address = look.link_name(&format!("{base}/device"));
    let driver = look.link_name(&format!("{base}/device/driver"));
    Device {
        ifindex: told.map(|told| told.device.index),
        node_guid: look.parsed(&format!("{base}/node_guid"), parse::guid),
        sys_image_guid: free(look, "sys_image_guid").and_then(|raw| parse::guid(&raw).ok()),
        node_type: look.parsed(&format!("{base}/node_type"), parse::node_type),
        fw: free(look, "fw_ver"),
        hca_type: free(look, "hca_type"),
        hw_rev: free(look, "hw_rev"),
        board_id: free(look, "board_id"),
        node_desc: free(look, "node_desc"),
        driver,
        bus_address,
        parent: free(look, "parent"),
        ports: numbers
            .into_iter()
            .map(|number| {
                let told = told.and_then(|told| told.ports.iter().find(|p| p.port == number));
                port(look, &base, number, told)
            })
            .collect(),
        ifname,
    }
}

fn port(look: &mut Look<'_>, device: &str, number: u32, told: Option<&netlink::Port>) -> Port {
    let base = format!("{device}/ports/{number}");
    let gid = look.parsed(&format!("{base}/gids/0"), parse::gid);
    // An empty slot is all zero: RoCE before its netdev is up.
    let gid = gid.filter(|gid| !gid.is_unspecified());
    let link_layer = look.parsed(&format!("{base}/link_layer"), parse::link_layer);
    let mut port = Port {
        port: number,
        link_layer,
        rate: look.parsed(&format!("{base}/rate"), parse::rate),
        port_guid: gid.map(parse::gid_port_guid),
        subnet_prefix: gid.map(|gid| Guid((u128::from(gid) >> 64) as u64)),
        pkeys: pkeys(look, &base),
        ..Port::default()
    };
    // Every state file of sysfs asks the driver anew, on mlx5 by a firmware command.
    if let Some(told) = told {
        port.state = Some(told.state);
        port.physical_state = Some(told.phys_state);
        port.lid = told.lid;
        port.sm_lid = told.sm_lid;
        port.lmc = told.lmc.map(u32::from);
        // The upper half is CapabilityMask2.
        port.cap_mask = told.cap_flags.map(|flags| flags as u32);
        port.netdev.clone_from(&told.netdev);
        port.netdev_index = told.netdev_index;
    } else {
        port.state = look.parsed(&format!("{base}/state"), parse::port_state);
        port.physical_state = look.parsed(&format!("{base}/phys_state"), parse::phys_state);
        // EINVAL where no netdev is attached (InfiniBand, an empty slot).
        port.netdev = look
            .text_or(&format!("{base}/gid_attrs/ndevs/0"), libc::EINVAL)
            .and_then(|raw| parse::text(&raw));
    }
    // LIDs mean something on InfiniBand only; elsewhere netlink does not tell them.
    let wanted = look.depth == Depth::All || link_layer != Some(LinkLayer::Ethernet);
    if port.lid.is_none() && wanted {
        port.lid = look.parsed(&format!("{base}/lid"), parse::lid);
        port.sm_lid = look.parsed(&format!("{base}/sm_lid"), parse::lid);
        port.lmc = look.parsed(&format!("{base}/lid_mask_count"), |raw| {
            parse::number("LMC", raw)
        });
        port.cap_mask = look.parsed(&format!("{base}/cap_mask"), parse::cap_mask);
    }
    port
}

/// The partition table, as far as it is wanted; iWARP ports have none.
fn pkeys(look: &mut Look<'_>, port: &str) -> Vec<u16> {
    let mut missing = match &look.depth {
        Depth::Interfaces | Depth::Ports => return Vec::new(),
        Depth::Partitions(wanted) => Some(wanted.clone()),
        Depth::All => None,
    };
    let mut found = Vec::new();
    for slot in look.list(&format!("{port}/pkeys")) {
        let path = format!("{port}/pkeys/{slot}");
        let Some(pkey) = look.parsed(&path, parse::pkey).filter(|pkey| *pkey != 0) else {
            continue;
        };
        if let Some(missing) = &mut missing {
            // The first slot is the partition of the port's own interface (ipoib_main.c, ipoib_add_port).
            if found.is_empty() {
                missing.insert(pkey | FULL_MEMBER);
            }
            missing.remove(&pkey);
        }
        found.push(pkey);
        if missing.as_ref().is_some_and(BTreeSet::is_empty) {
            break;
        }
    }
    found
}

/// Where neither netlink nor the GID table names the netdev yet: Soft-RoCE's parent, and the
/// index of a name.
pub fn bind_netdevs(devices: &mut [Device], netdevs: &[Netdev]) {
    for device in devices {
        let parent = device.parent.clone();
        for port in &mut device.ports {
            if port.netdev.is_none() && port.link_layer == Some(LinkLayer::Ethernet) {
                port.netdev.clone_from(&parent);
            }
            if port.netdev_index.is_none() {
                port.netdev_index = port.netdev.as_ref().and_then(|name| {
                    netdevs
                        .iter()
                        .find(|netdev| &netdev.ifname == name)
                        .and_then(|netdev| netdev.ifindex)
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::root::Root;

    #[test]
    fn a_partition_table_is_read_as_far_as_it_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("port/pkeys");
        std::fs::create_dir_all(&table).unwrap();
        let slots = ["0x7fff", "0x0000", "0x8001", "0xffff", "0x8002"];
        for (slot, pkey) in slots.iter().enumerate() {
            std::fs::write(table.join(slot.to_string()), format!("{pkey}\n")).unwrap();
        }
        let root = Root::new(dir.path());
        let read = |depth: Depth| {
            let mut look = Look::new(&root);
            look.depth = depth;
            pkeys(&mut look, "/port")
        };
        let until = |wanted: &[u16]| read(Depth::Partitions(wanted.iter().copied().collect()));
        assert_eq!(read(Depth::Ports), [0u16; 0]);
        // The first slot's partition, as a full member, is wanted always.
        assert_eq!(until(&[]), [0x7fff, 0x8001, 0xffff]);
        assert_eq!(until(&[0x8002]), [0x7fff, 0x8001, 0xffff, 0x8002]);
        assert_eq!(until(&[0x8003]), read(Depth::All));
        std::fs::write(table.join("0"), "0xffff\n").unwrap();
        assert_eq!(until(&[]), [0xffff]);
        assert_eq!(until(&[0x8001]), [0xffff, 0x8001]);
    }
}
