// SPDX-License-Identifier: MIT OR Apache-2.0
//! The RDMA devices of the machine, from sysfs (drivers/infiniband/core/sysfs.c) and, where sysfs
//! has no answer, from NETLINK_RDMA.

use std::collections::BTreeSet;

use crate::facts::{Device, Look, Netdev, Port, role};
use crate::rdma::netlink::{self, Rdma};
use crate::rdma::parse;
use crate::rdma::types::{Connection, Guid, LinkLayer};
use crate::wish::expectation::Depth;
use crate::wish::ipoib::FULL_MEMBER;

const CLASS: &str = "/sys/class/infiniband";

/// One device as NETLINK_RDMA reports it.
struct Reported {
    device: netlink::Device,
    ports: Vec<netlink::Port>,
}

/// Queries NETLINK_RDMA. A device that is added or removed during the query keeps the values of
/// sysfs: the next snapshot is complete.
fn query(rdma: &Rdma, look: &mut Look<'_>) -> Vec<Reported> {
    let devices = match rdma.devices() {
        Ok(devices) => devices,
        Err(e) => {
            look.note("NETLINK_RDMA devices", e);
            return Vec::new();
        }
    };
    let mut reported = Vec::with_capacity(devices.len());
    for device in devices {
        match rdma.ports(device.index) {
            Ok(ports) => reported.push(Reported { device, ports }),
            Err(e) => look.note(format!("NETLINK_RDMA ports of {}", device.name), e),
        }
    }
    reported
}

/// All devices in /sys/class/infiniband, by name. `rdma`, if given, adds values that sysfs does not
/// have, and values for which each read of a sysfs file would query the firmware.
pub fn devices(look: &mut Look<'_>, rdma: Option<&Rdma>) -> Vec<Device> {
    let reported = rdma.map(|rdma| query(rdma, look)).unwrap_or_default();
    let mut sub_devices = role::sub_devices(look, reported.iter().map(|r| &r.device));
    let names = look.list(CLASS);
    names
        .into_iter()
        .map(|name| {
            let reported = reported
                .iter()
                .find(|reported| reported.device.name == name);
            let sub_device = sub_devices.remove(&name);
            Device {
                sub_device,
                ..device(look, name, reported)
            }
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

/// Notes that the connections are unknown without a NETLINK_RDMA socket, unless ib_core is absent
/// and no connections can exist.
pub fn note_silence(look: &mut Look<'_>) {
    if let Err(e) = Rdma::open()
        && e.raw_os_error() != Some(libc::EPROTONOSUPPORT)
    {
        look.note("NETLINK_RDMA connections", crate::error::errno_text(&e));
    }
}

fn device(look: &mut Look<'_>, ifname: String, reported: Option<&Reported>) -> Device {
    let base = format!("{CLASS}/{ifname}");
    let free = |look: &mut Look<'_>, file: &str| {
        // Only for people: no decision needs these values.
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
        ifindex: reported.map(|reported| reported.device.index),
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
        sub_device: None,
        ports: numbers
            .into_iter()
            .map(|number| {
                let reported =
                    reported.and_then(|reported| reported.ports.iter().find(|p| p.port == number));
                port(look, &base, number, reported)
            })
            .collect(),
        ifname,
    }
}

fn port(look: &mut Look<'_>, device: &str, number: u32, reported: Option<&netlink::Port>) -> Port {
    let base = format!("{device}/ports/{number}");
    let gid = look.parsed(&format!("{base}/gids/0"), parse::gid);
    // An empty slot is all zero: RoCE before its network device is up.
    let gid = gid.filter(|gid| !gid.is_unspecified());
    let link_layer = look.parsed(&format!("{base}/link_layer"), parse::link_layer);
    let mut port = Port {
        port: number,
        link_layer,
        rate: look.parsed(&format!("{base}/rate"), parse::rate),
        // Of a virtual function without a GUID: 0 would match every other such port.
        port_guid: gid.map(parse::gid_port_guid).filter(|guid| guid.0 != 0),
        subnet_prefix: gid.map(|gid| Guid((u128::from(gid) >> 64) as u64)),
        pkeys: pkeys(look, &base),
        ..Port::default()
    };
    // Each read of a state file in sysfs queries the driver, on mlx5 with a firmware command.
    if let Some(reported) = reported {
        port.state = Some(reported.state);
        port.physical_state = Some(reported.phys_state);
        port.lid = reported.lid;
        port.sm_lid = reported.sm_lid;
        port.lmc = reported.lmc.map(u32::from);
        // The upper half is CapabilityMask2.
        port.cap_mask = reported.cap_flags.map(|flags| flags as u32);
        port.netdev.clone_from(&reported.netdev);
        port.netdev_index = reported.netdev_index;
    } else {
        port.state = look.parsed(&format!("{base}/state"), parse::port_state);
        port.physical_state = look.parsed(&format!("{base}/phys_state"), parse::phys_state);
        // EINVAL if no network device is attached (InfiniBand, or an empty slot).
        port.netdev = look
            .text_or(&format!("{base}/gid_attrs/ndevs/0"), libc::EINVAL)
            .and_then(|raw| parse::text(&raw));
    }
    // LIDs exist only on InfiniBand; NETLINK_RDMA does not report them for other link layers.
    let reads_lid = look.depth == Depth::All || link_layer != Some(LinkLayer::Ethernet);
    if port.lid.is_none() && reads_lid {
        port.lid = look.parsed(&format!("{base}/lid"), parse::lid);
        port.sm_lid = look.parsed(&format!("{base}/sm_lid"), parse::lid);
        port.lmc = look.parsed(&format!("{base}/lid_mask_count"), |raw| {
            parse::number("LMC", raw)
        });
        port.cap_mask = look.parsed(&format!("{base}/cap_mask"), parse::cap_mask);
    }
    port
}

/// The P_Key table, up to the depth of the snapshot; iWARP ports have no table.
fn pkeys(look: &mut Look<'_>, port: &str) -> Vec<u16> {
    let mut missing = match &look.depth {
        Depth::Interfaces | Depth::Ports => return Vec::new(),
        Depth::Partitions(required) => Some(required.clone()),
        Depth::All => None,
    };
    let mut found = Vec::new();
    for slot in look.list(&format!("{port}/pkeys")) {
        let path = format!("{port}/pkeys/{slot}");
        let Some(pkey) = look.parsed(&path, parse::pkey).filter(|pkey| *pkey != 0) else {
            continue;
        };
        if let Some(missing) = &mut missing {
            // The first slot is the partition of the port's own interface (ipoib_main.c,
            // ipoib_add_port).
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

/// Adds the network device if neither netlink nor the GID table names it: the parent of Soft-RoCE.
/// Also adds the interface index for a name.
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
    fn a_partition_table_is_read_as_far_as_required() {
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
        let until = |required: &[u16]| read(Depth::Partitions(required.iter().copied().collect()));
        assert_eq!(read(Depth::Ports), [0u16; 0]);
        // The first slot's partition is always needed, as a full member.
        assert_eq!(until(&[]), [0x7fff, 0x8001, 0xffff]);
        assert_eq!(until(&[0x8002]), [0x7fff, 0x8001, 0xffff, 0x8002]);
        assert_eq!(until(&[0x8003]), read(Depth::All));
        std::fs::write(table.join("0"), "0xffff\n").unwrap();
        assert_eq!(until(&[]), [0xffff]);
        assert_eq!(until(&[0x8001]), [0xffff, 0x8001]);
    }
}
