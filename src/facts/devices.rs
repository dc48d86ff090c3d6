// SPDX-License-Identifier: MIT OR Apache-2.0
//! The RDMA devices of the machine, from sysfs (drivers/infiniband/core/sysfs.c) and, where sysfs
//! has no answer, from NETLINK_RDMA.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::reader::Readers;
use crate::facts::{Device, Look, Memory, Netdev, Port, PortRef, role};
use crate::rdma::netlink::{self, Rdma};
use crate::rdma::parse;
use crate::rdma::types::{Connection, Guid, LinkLayer, NodeType};
use crate::system::drivers;
use crate::wish::expectation::Depth;
use crate::wish::ipoib::FULL_MEMBER;

/// The directory of all devices.
pub const CLASS: &str = "/sys/class/infiniband";

/// The devices that do not answer in a saved tree: seconds by name, as JSON.
pub const SILENT: &str = "/ibboot-silent.json";

/// The network devices of ports without a GID table, of which no file tells, in a saved tree: names by
/// port (`mlx5_0/1`), as JSON.
const NETDEVS: &str = "/ibboot-netdevs.json";

/// All devices in /sys/class/infiniband, by name. `readers`, if given, read the devices, each in a
/// process of its own.
pub(super) fn devices(
    look: &mut Look<'_>,
    readers: Option<&Readers>,
    memory: &mut Memory,
) -> Vec<Device> {
    let names = memory.names(look);
    if let Some(readers) = readers {
        let devices = readers.read(&names, look, memory.reads_devices());
        role::keep_sub_devices(look, &devices);
        keep_netdevs(look, &devices);
        return devices;
    }
    let mut sub_devices = role::saved_sub_devices(look);
    let silent: BTreeMap<String, u32> = match look.root().is_live() {
        true => BTreeMap::new(),
        false => look.saved(SILENT),
    };
    let mut netdevs: BTreeMap<String, String> = match look.root().is_live() {
        true => BTreeMap::new(),
        false => look.saved(NETDEVS),
    };
    let of_name = |name: String| {
        let mut device = identify(look, &name);
        match silent.get(&name) {
            Some(seconds) => device.silent_s = Some(*seconds),
            None => complete(look, None, None, &mut device),
        }
        device.sub_device = sub_devices.remove(&device.ifname);
        for port in device.ports.iter_mut().filter(|port| port.no_gid_table) {
            port.netdev = netdevs.remove(&format!("{}/{}", device.ifname, port.port));
        }
        device
    };
    names.into_iter().map(of_name).collect()
}

/// Stores in a recorded tree the network devices that only NETLINK_RDMA reports.
fn keep_netdevs(look: &Look<'_>, devices: &[Device]) {
    let ports = devices.iter().flat_map(|device| {
        device
            .ports
            .iter()
            .map(move |port| PortRef { device, port })
    });
    let found: BTreeMap<String, &String> = ports
        .filter(|found| found.port.no_gid_table)
        .filter_map(|found| Some((found.name(), found.port.netdev.as_ref()?)))
        .collect();
    if !found.is_empty() {
        look.root().keep(NETDEVS, &found);
    }
}

/// The connections of all devices.
pub fn connections(look: &mut Look<'_>, rdma: &Rdma, devices: &[Device]) -> Vec<Connection> {
    let mut found = Vec::new();
    for Device {
        ifname: name,
        ifindex,
        ..
    } in devices
    {
        let Some(index) = *ifindex else {
            let why = "the device does not answer";
            look.note(format!("NETLINK_RDMA connections of {name}"), why);
            continue;
        };
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

/// What the kernel knows of a device without a query to its firmware: the attributes of ib_core
/// (drivers/infiniband/core/sysfs.c), the name of the board, which the driver keeps, and the cached
/// GID table.
pub fn identify(look: &mut Look<'_>, name: &str) -> Device {
    let base = format!("{CLASS}/{name}");
    let mut numbers: Vec<u32> = look
        .list(&format!("{base}/ports"))
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    numbers.sort_unstable();
    let bus_address = look.link_name(&format!("{base}/device"));
    let driver = look.link_name(&format!("{base}/device/driver"));
    let node_type = look.parsed(&format!("{base}/node_type"), parse::node_type);
    let is_iwarp = node_type == Some(NodeType::Rnic);
    Device {
        ifname: name.to_owned(),
        node_guid: look.parsed(&format!("{base}/node_guid"), parse::guid),
        sys_image_guid: look.parsed(&format!("{base}/sys_image_guid"), parse::guid),
        node_type,
        board_id: free(look, &format!("{base}/board_id")),
        // The drivers of iWARP cards have it in memory.
        fw: is_iwarp
            .then(|| free(look, &format!("{base}/fw_ver")))
            .flatten(),
        driver,
        bus_address,
        parent: free(look, &format!("{base}/parent")),
        sub_device: None,
        ports: numbers
            .into_iter()
            .map(|number| identify_port(look, &format!("{base}/ports/{number}"), number))
            .collect(),
        ..Device::default()
    }
}

impl Device {
    /// The name on its bus of the card whose device this is; none of a software device.
    pub fn card(&self) -> Option<&str> {
        let address = self.bus_address.as_deref();
        address.filter(|_| !self.is_software())
    }

    /// Whether the device has a port that is judged. A management plane has no events: no uverbs file
    /// (ib_uverbs_add_one, drivers/infiniband/core/uverbs_main.c).
    pub fn has_link(&self) -> bool {
        self.ports.is_empty() || self.ports.iter().any(|port| port.role.is_link())
    }

    /// Whether this is an Omni-Path card.
    pub fn is_omni_path(&self) -> bool {
        self.driver.as_deref().is_some_and(drivers::is_omni_path)
    }

    /// Whether this is a function of an mlx5 card: of the PCI bus, or a sub-function (mlx5_sf_driver of
    /// drivers/net/ethernet/mellanox/mlx5/core/sf/dev/driver.c).
    pub fn is_mlx5(&self) -> bool {
        matches!(self.driver.as_deref(), Some("mlx5_core" | "mlx5_core.sf"))
    }

    /// Whether its ports are neither InfiniBand nor Ethernet: EFA has a transport of its own, and reports no
    /// link layer (efa_port_link_layer, drivers/infiniband/hw/efa/efa_verbs.c).
    pub fn has_own_transport(&self) -> bool {
        use NodeType::{Unspecified, Usnic, UsnicUdp};
        matches!(self.node_type, Some(Unspecified | Usnic | UsnicUdp))
    }

    /// Whether this is Soft-RoCE or siw. Some kernels give such a device the bus device of the Ethernet
    /// card below it (siw_device_create, drivers/infiniband/sw/siw/siw_main.c). Soft-RoCE has a `parent`
    /// (parent_show, drivers/infiniband/sw/rxe/rxe_verbs.c). siw is an iWARP device without a firmware
    /// version: of the drivers in drivers/infiniband/hw only erdma makes another one, on a card that
    /// has no network interface.
    pub fn is_software(&self) -> bool {
        let is_siw = self.node_type == Some(NodeType::Rnic)
            && self.fw.is_none()
            && self.driver.as_deref() != Some("erdma");
        self.bus_address.is_none() || self.parent.is_some() || is_siw
    }
}

fn identify_port(look: &mut Look<'_>, base: &str, number: u32) -> Port {
    let mut port = Port {
        port: number,
        link_layer: look.parsed(&format!("{base}/link_layer"), parse::link_layer),
        ..Port::default()
    };
    read_gid(look, base, &mut port);
    port
}

fn read_gid(look: &mut Look<'_>, base: &str, port: &mut Port) {
    let path = format!("{base}/gids/0");
    let gid = look.parsed(&path, parse::gid);
    // An empty slot is all zero: RoCE before its network device is up.
    let gid = gid.filter(|gid| !gid.is_unspecified());
    // Of a virtual function without a GUID: 0 would match every other such port.
    port.port_guid = gid.map(parse::gid_port_guid).filter(|guid| guid.0 != 0);
    port.subnet_prefix = gid.map(|gid| Guid((u128::from(gid) >> 64) as u64));
    // ib_core makes a file for each entry before it announces the device (setup_port,
    // drivers/infiniband/core/sysfs.c).
    port.no_gid_table = port.link_layer == Some(LinkLayer::Ethernet)
        && gid.is_none()
        && matches!(look.root().is_there(&path), Ok(false));
}

/// What the kernel knows of a device that was [identified](identify) before with this index, which
/// belongs to it until it is removed; none if the device is another one now. `rdma` reports the GUID
/// of the node; the GUID of a port follows from the GID table.
pub fn identify_again(
    look: &mut Look<'_>,
    rdma: &Rdma,
    known: &Device,
) -> Option<(Device, netlink::Device)> {
    let reported = rdma.device(known.ifindex?).ok()?;
    if reported.name != known.ifname {
        return None;
    }
    let base = format!("{CLASS}/{}", known.ifname);
    let mut device = Device {
        node_guid: Some(reported.node_guid),
        ..known.clone()
    };
    for port in &mut device.ports {
        read_gid(look, &format!("{base}/ports/{}", port.port), port);
    }
    Some((device, reported))
}

/// Text that a driver may leave empty.
fn free(look: &mut Look<'_>, path: &str) -> Option<String> {
    look.text(path).and_then(|raw| parse::text(&raw))
}

/// Adds what may query the firmware. `rdma`, if given, adds values that sysfs does not have, and
/// values for which each read of a sysfs file would query the firmware. `known` is what it reports
/// of the device, if that is known already.
pub fn complete(
    look: &mut Look<'_>,
    rdma: Option<&Rdma>,
    known: Option<netlink::Device>,
    device: &mut Device,
) {
    let base = format!("{CLASS}/{}", device.ifname);
    let reported = rdma.and_then(|rdma| query(rdma, look, &device.ifname, known));
    device.ifindex = reported.as_ref().map(|(found, _)| found.index);
    device.sub_device = reported
        .as_ref()
        .and_then(|(found, _)| role::sub_device(found));
    // Only for people: no decision needs these values.
    if look.depth == Depth::All {
        device.fw = free(look, &format!("{base}/fw_ver"));
        device.hca_type = free(look, &format!("{base}/hca_type"));
        device.hw_rev = free(look, &format!("{base}/hw_rev"));
        device.node_desc = free(look, &format!("{base}/node_desc"));
    }
    let reported = reported.map_or_else(Vec::new, |(_, ports)| ports);
    for port in &mut device.ports {
        let reported = reported.iter().find(|p| p.port == port.port);
        complete_port(look, &base, port, reported);
    }
}

/// The device and its ports from NETLINK_RDMA. A device that is added or removed during the
/// query keeps the values of sysfs: the next snapshot is complete.
fn query(
    rdma: &Rdma,
    look: &mut Look<'_>,
    name: &str,
    known: Option<netlink::Device>,
) -> Option<(netlink::Device, Vec<netlink::Port>)> {
    let device = match known {
        Some(device) => device,
        None => {
            let devices = rdma.devices();
            let devices = devices.map_err(|e| look.note("NETLINK_RDMA devices", e));
            devices.ok()?.into_iter().find(|one| one.name == name)?
        }
    };
    match rdma.ports(device.index) {
        Ok(ports) => Some((device, ports)),
        Err(e) => {
            look.note(format!("NETLINK_RDMA ports of {name}"), e);
            None
        }
    }
}

fn complete_port(
    look: &mut Look<'_>,
    device: &str,
    port: &mut Port,
    reported: Option<&netlink::Port>,
) {
    let base = format!("{device}/ports/{}", port.port);
    port.rate = look
        .parsed(&format!("{base}/rate"), parse::rate_if_any)
        .flatten();
    port.pkeys = pkeys(look, &base);
    // Each read of a state file in sysfs queries the driver, on mlx5 with a firmware command.
    if let Some(reported) = reported {
        keep_files(look, &base);
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
    let reads_lid = look.depth == Depth::All || port.link_layer != Some(LinkLayer::Ethernet);
    if port.lid.is_none() && reads_lid {
        port.lid = look.parsed(&format!("{base}/lid"), parse::lid);
        port.sm_lid = look.parsed(&format!("{base}/sm_lid"), parse::lid);
        port.lmc = look.parsed(&format!("{base}/lid_mask_count"), |raw| {
            parse::number("LMC", raw)
        });
        port.cap_mask = look.parsed(&format!("{base}/cap_mask"), parse::cap_mask);
    }
}

/// Records the files of what NETLINK_RDMA reports: a saved tree has only files.
fn keep_files(look: &mut Look<'_>, port: &str) {
    if !look.root().is_recording() {
        return;
    }
    for file in [
        "state",
        "phys_state",
        "lid",
        "sm_lid",
        "lid_mask_count",
        "cap_mask",
    ] {
        look.keep(&format!("{port}/{file}"));
    }
    look.text_or(&format!("{port}/gid_attrs/ndevs/0"), libc::EINVAL);
}

/// The P_Key table, up to the depth of the snapshot; iWARP ports have no table.
fn pkeys(look: &mut Look<'_>, port: &str) -> Vec<u16> {
    let mut missing = match &look.depth {
        Depth::Interfaces | Depth::Ports => return Vec::new(),
        Depth::Partitions(required) => Some(required.clone()),
        Depth::All => None,
    };
    let mut found = Vec::new();
    // The first slot is often enough: no list then.
    if missing.is_some() && slot(look, port, "0", &mut missing, &mut found) {
        return found;
    }
    for name in look.list(&format!("{port}/pkeys")) {
        let is_read = missing.is_some() && name == "0";
        if !is_read && slot(look, port, &name, &mut missing, &mut found) {
            break;
        }
    }
    found
}

/// Reads one slot. True if no P_Key is missing any longer.
fn slot(
    look: &mut Look<'_>,
    port: &str,
    name: &str,
    missing: &mut Option<BTreeSet<u16>>,
    found: &mut Vec<u16>,
) -> bool {
    let path = format!("{port}/pkeys/{name}");
    let Some(pkey) = look.parsed(&path, parse::pkey).filter(|pkey| *pkey != 0) else {
        return false;
    };
    if let Some(missing) = missing {
        // The first slot is the partition of the port's own interface (ipoib_main.c,
        // ipoib_add_port).
        if found.is_empty() {
            missing.insert(pkey | FULL_MEMBER);
        }
        missing.remove(&pkey);
    }
    found.push(pkey);
    missing.as_ref().is_some_and(BTreeSet::is_empty)
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
    fn a_port_without_a_gid_table_is_an_ethernet_port_without_a_first_entry() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let port = |number: u32, layer: &str, gid: Option<&str>| {
            let base = format!("/{number}");
            let path = root.path(&base);
            std::fs::create_dir_all(path.join("gids")).unwrap();
            std::fs::write(path.join("link_layer"), layer).unwrap();
            if let Some(gid) = gid {
                std::fs::write(path.join("gids/0"), gid).unwrap();
            }
            identify_port(&mut Look::new(&root), &base, number).no_gid_table
        };
        let empty = "0000:0000:0000:0000:0000:0000:0000:0000";
        assert!(port(1, "Ethernet", None));
        assert!(!port(2, "Ethernet", Some(empty)));
        assert!(!port(3, "Ethernet", Some("garbled")));
        assert!(!port(4, "InfiniBand", None));
        assert!(!port(5, "Unknown", None));
    }

    #[test]
    fn a_saved_tree_has_the_interfaces_of_ports_without_a_gid_table() {
        let port = |number: u32, no_gid_table| Port {
            port: number,
            no_gid_table,
            netdev: Some(format!("eth{number}")),
            ..Port::default()
        };
        let device = Device {
            ifname: "mlx5_0".to_owned(),
            ports: vec![port(1, true), port(2, false)],
            ..Device::default()
        };
        let root = Root::recording("/");
        keep_netdevs(&Look::new(&root), &[device]);
        let dir = tempfile::tempdir().unwrap();
        root.save(dir.path(), |_, bytes| Some(bytes.into()))
            .unwrap();
        let saved = Root::new(dir.path());
        let found: BTreeMap<String, String> = Look::new(&saved).saved(NETDEVS);
        let expected = [("mlx5_0/1".to_owned(), "eth1".to_owned())];
        assert_eq!(found, BTreeMap::from(expected));
    }

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
