// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path from the kernel to the disk of the root file system: iSCSI sessions and NVMe
//! controllers, as sysfs shows them.

use std::net::IpAddr;

use serde::Serialize;

use super::Look;
use crate::wish::storage::Protocol;

/// Maximum depth of stacked block devices (device mapper, md).
const LAYERS_MAX: usize = 8;

/// One path to the disk of the root file system. With multipath a disk has several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiskPath {
    /// The local end: the disk of an iSCSI session (`sda`), the NVMe controller (`nvme0`), or a
    /// disk of this machine (`vda`).
    pub device: String,
    /// Protocol towards the target; none for a disk of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The device that needs only one of its paths or disks, this one among them (`dm-0`): multipath, a mirror,
    /// an NVMe subsystem. None: without this path a disk is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// The RAID that survives the loss of one of its disks, but perhaps not of two: `md0`, `btrfs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// The name of the iSCSI target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Transport in the kernel's word: `tcp` or `iser` for iSCSI, `tcp`, `rdma` or `fc` for NVMe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Address of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<IpAddr>,
    /// State of the session or controller in the kernel's word: `LOGGED_IN`, `FAILED`; `live`, `connecting`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl DiskPath {
    /// The word for a session or controller that carries commands.
    pub fn good_state(protocol: Protocol) -> Option<&'static str> {
        match protocol {
            Protocol::Iscsi => Some("LOGGED_IN"),
            Protocol::Nvme => Some("live"),
            Protocol::Nfs | Protocol::Live | Protocol::LiveNfs => None,
        }
    }

    /// The name of the disk, which other paths may lead to as well.
    pub fn disk(&self) -> &str {
        self.disk.as_deref().unwrap_or(&self.device)
    }

    /// The state, if the session or controller is lost.
    pub fn lost(&self) -> Option<&str> {
        let good = Self::good_state(self.protocol?);
        self.state.as_deref().filter(|state| Some(*state) != good)
    }
}

/// The iSCSI targets that this machine is logged in to.
pub(super) fn targets(look: &mut Look<'_>) -> Vec<String> {
    const SESSIONS: &str = "/sys/class/iscsi_session";
    let sessions = look.list(SESSIONS).into_iter();
    let sessions = sessions.filter(|name| is_numbered(name, "session"));
    sessions
        .filter_map(|session| {
            let place = format!("{SESSIONS}/{session}");
            let state = look.text(&format!("{place}/state"))?;
            (Some(state.as_str()) == DiskPath::good_state(Protocol::Iscsi)).then_some(())?;
            look.text(&format!("{place}/targetname"))
        })
        .collect()
}

/// The paths to the disk with this device number (`8:1`) or source (`/dev/sda1`): a file system
/// over several devices (btrfs) has its own number, which is not the number of a disk.
pub(super) fn of(look: &mut Look<'_>, number: &str, source: &str) -> Vec<DiskPath> {
    const BLOCK: &str = "/sys/class/block";
    let device = source.strip_prefix("/dev/");
    let device = device.filter(|_| number.starts_with("0:"));
    let place = match device {
        Some(name) => match name.strip_prefix("mapper/") {
            None => format!("{BLOCK}/{name}"),
            // A device of the device mapper has its name in a file (drivers/md/dm-sysfs.c).
            Some(mapped) => {
                let mut devices = look.list(BLOCK).into_iter();
                let is_it = |device: &String| {
                    device.starts_with("dm-")
                        && look.text(&format!("{BLOCK}/{device}/dm/name")).as_deref()
                            == Some(mapped)
                };
                match devices.find(is_it) {
                    Some(device) => format!("{BLOCK}/{device}"),
                    None => return Vec::new(),
                }
            }
        },
        None => format!("/sys/dev/block/{number}"),
    };
    let mut found = Vec::new();
    let name = place.rsplit('/').next().unwrap_or_default();
    match device.and_then(|_| btrfs(look, name)) {
        Some((filesystem, devices)) => {
            let above = match is_redundant(look, &filesystem) {
                true => Above::Array("btrfs"),
                false => Above::Nothing,
            };
            for device in devices {
                let place = format!("{filesystem}/devices/{device}");
                below(look, &place, LAYERS_MAX, above, &mut found);
            }
        }
        None => below(look, &place, LAYERS_MAX, Above::Nothing, &mut found),
    }
    found
}

/// The directory of the btrfs file system with this device, and all its devices, if it has several
/// (fs/btrfs/sysfs.c).
fn btrfs(look: &mut Look<'_>, device: &str) -> Option<(String, Vec<String>)> {
    const BTRFS: &str = "/sys/fs/btrfs";
    let mut all = look.list(BTRFS).into_iter();
    let found = all.find_map(|name| {
        let filesystem = format!("{BTRFS}/{name}");
        let devices = look.list(&format!("{filesystem}/devices"));
        let is_it = devices.iter().any(|one| one == device);
        is_it.then_some((filesystem, devices))
    });
    found.filter(|(_, devices)| devices.len() > 1)
}

/// Whether every kind of block group of this btrfs file system survives the loss of a device.
fn is_redundant(look: &mut Look<'_>, filesystem: &str) -> bool {
    ["data", "metadata", "system"].iter().all(|kind| {
        let profiles = look.list(&format!("{filesystem}/allocation/{kind}"));
        let has = |names: &[&str]| profiles.iter().any(|one| names.contains(&one.as_str()));
        let redundant = ["raid1", "raid1c3", "raid1c4", "raid10", "raid5", "raid6"];
        has(&redundant) && !has(&["single", "dup", "raid0"])
    })
}

/// What the devices above a disk need of it.
#[derive(Clone, Copy)]
enum Above<'a> {
    /// All their disks.
    Nothing,
    /// All their disks but one: the outermost array.
    Array(&'a str),
    /// One of the paths or disks of `disk`, which may be a disk of an array.
    Shared {
        disk: &'a str,
        array: Option<&'a str>,
    },
}

impl<'a> Above<'a> {
    /// The same with this device below.
    fn and(self, look: &mut Look<'_>, place: &str, device: &'a str, slaves: &[String]) -> Self {
        let array = match self {
            Above::Shared { .. } => return self,
            Above::Array(array) => Some(array),
            Above::Nothing => None,
        };
        let disk = device;
        match need(look, place, slaves) {
            Need::One => Above::Shared { disk, array },
            Need::AllButOne => Above::Array(array.unwrap_or(device)),
            Need::All => self,
        }
    }
}

/// How many of its slaves a device needs.
enum Need {
    One,
    AllButOne,
    All,
}

/// An LV's RAID level is not in sysfs: an LV without redundancy (raid0) has no metadata, except the rare
/// raid0_meta. md's raid6 and raid10, and a RAID of LVM, may survive more than is counted here.
fn need(look: &mut Look<'_>, place: &str, slaves: &[String]) -> Need {
    if let Some(level) = look.text(&format!("{place}/md/level")) {
        let disks = look.text(&format!("{place}/md/raid_disks"));
        let disks = disks.and_then(|text| text.parse().ok()).unwrap_or(0);
        return match level.as_str() {
            "raid1" => Need::One,
            // md has removed a disk already.
            "raid4" | "raid5" | "raid6" | "raid10" if slaves.len() < disks => Need::All,
            "raid4" | "raid5" | "raid6" | "raid10" => Need::AllButOne,
            _ => Need::All,
        };
    }
    let uuid = look.text(&format!("{place}/dm/uuid")).unwrap_or_default();
    let names = slaves
        .iter()
        .filter_map(|slave| look.text(&format!("{place}/slaves/{slave}/dm/name")));
    let names: Vec<String> = names.collect();
    let has = |part: &str| names.iter().any(|name| name.contains(part));
    if uuid.starts_with("mpath-") || has("_mimage_") {
        Need::One
    } else if has("_rimage_") && has("_rmeta_") {
        Need::AllButOne
    } else {
        Need::All
    }
}

fn below(
    look: &mut Look<'_>,
    place: &str,
    layers: usize,
    upper: Above<'_>,
    found: &mut Vec<DiskPath>,
) {
    let Some(layers) = layers.checked_sub(1) else {
        return;
    };
    let Some(target) = look.link(place) else {
        return;
    };
    let directory = resolved(place, &target);
    let above = directory.rsplit_once('/').map_or("", |(above, _)| above);
    // A partition has no slaves: those of its disk are in the directory above it.
    for disk in [&directory, above] {
        let slaves = look.list(&format!("{disk}/slaves"));
        let own = disk.rsplit('/').next().filter(|_| slaves.len() > 1);
        let upper = own.map_or(upper, |own| upper.and(look, disk, own, &slaves));
        for slave in &slaves {
            let place = format!("{disk}/slaves/{slave}");
            // The metadata of an image is on the disk of the image.
            let name = look.text(&format!("{place}/dm/name"));
            if name.is_some_and(|name| name.contains("_rmeta_")) {
                continue;
            }
            below(look, &place, layers, upper, found);
        }
        if !slaves.is_empty() {
            return;
        }
    }
    let nodes: Vec<&str> = target.split('/').collect();
    let Some(&device) = nodes.last() else { return };
    let subsystem = numbered(&nodes, "nvme-subsys");
    let mut ways = if let Some(session) = numbered(&nodes, "session") {
        vec![iscsi(look, device, session, numbered(&nodes, "host"))]
    } else if let Some(subsystem) = subsystem {
        let place = format!("/sys/class/nvme-subsystem/{subsystem}");
        let controllers = look.list(&place);
        controllers
            .iter()
            .filter(|name| is_numbered(name, "nvme"))
            .map(|name| nvme(look, name, &format!("{place}/{name}")))
            .collect()
    } else if let Some(controller) = numbered(&nodes, "nvme") {
        let place = format!("/sys/class/nvme/{controller}");
        vec![nvme(look, controller, &place)]
    } else {
        vec![DiskPath {
            device: device.to_owned(),
            protocol: None,
            disk: None,
            array: None,
            target: None,
            transport: None,
            server: None,
            state: None,
        }]
    };
    for way in &mut ways {
        let (disk, array) = match upper {
            Above::Nothing => (None, None),
            Above::Array(array) => (None, Some(array)),
            Above::Shared { disk, array } => (Some(disk), array),
        };
        way.disk = disk.or(subsystem).map(str::to_owned);
        way.array = array.map(str::to_owned);
    }
    found.extend(ways);
}

/// Where a link at `place` leads to. The path has no link, if that of `place` has none: what is above
/// a device in sysfs is above it in the path.
fn resolved(place: &str, target: &str) -> String {
    let mut nodes: Vec<&str> = place.split('/').collect();
    nodes.pop();
    for node in target.split('/') {
        match node {
            ".." => drop(nodes.pop()),
            node => nodes.push(node),
        }
    }
    nodes.join("/")
}

/// A disk of scsi_transport_iscsi. The name of the driver is in the SCSI host, where iscsiadm(8)
/// also reads it.
fn iscsi(look: &mut Look<'_>, device: &str, session: &str, host: Option<&str>) -> DiskPath {
    let driver = host.and_then(|host| look.text(&format!("/sys/class/scsi_host/{host}/proc_name")));
    let number = session.trim_start_matches("session");
    let connection = format!("/sys/class/iscsi_connection/connection{number}:0");
    // The address of the login remains known while the connection is down.
    let address = look.text(&format!("{connection}/persistent_address"));
    DiskPath {
        device: device.to_owned(),
        protocol: Some(Protocol::Iscsi),
        disk: None,
        array: None,
        target: look.text(&format!("/sys/class/iscsi_session/{session}/targetname")),
        transport: driver.map(|name| name.trim_start_matches("iscsi_").to_owned()),
        server: address.and_then(|text| text.parse().ok()),
        state: look.text(&format!("/sys/class/iscsi_session/{session}/state")),
    }
}

/// A controller of drivers/nvme/host/sysfs.c; `address` is `traddr=10.0.0.2,trsvcid=4420`.
fn nvme(look: &mut Look<'_>, controller: &str, place: &str) -> DiskPath {
    let transport = look.text(&format!("{place}/transport"));
    let is_local = transport.as_deref() == Some("pcie");
    let state = look.text(&format!("{place}/state"));
    let address = look.text(&format!("{place}/address"));
    let server = address.as_deref().and_then(|text| {
        let mut words = text.split(',');
        words.find_map(|word| word.strip_prefix("traddr=")?.parse().ok())
    });
    DiskPath {
        device: controller.to_owned(),
        protocol: (!is_local).then_some(Protocol::Nvme),
        disk: None,
        array: None,
        target: None,
        transport,
        server,
        state: state.filter(|_| !is_local),
    }
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    let number = name.strip_prefix(prefix).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// The node whose name is `prefix` and a number.
fn numbered<'a>(nodes: &[&'a str], prefix: &str) -> Option<&'a str> {
    let mut nodes = nodes.iter().copied();
    nodes.find(|node| is_numbered(node, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::root::Root;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn file(tree: &Path, path: &str, text: &str) {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(tree: &Path, path: &str, target: &str) {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn paths(tree: &Path, number: &str, source: &str) -> String {
        let root = Root::new(tree);
        let ways = of(&mut Look::new(&root), number, source);
        serde_json::to_string(&ways).unwrap()
    }

    /// The array, if there is one, the disk and the path.
    fn word(way: &DiskPath) -> String {
        let array = way.array.as_ref().map(|array| format!("{array}:"));
        format!("{}{} {}", array.unwrap_or_default(), way.disk(), way.device)
    }

    const SESSION: &str = "../../devices/platform/host2/session1/target2:0:0/2:0:0:0/block/sda";

    fn iscsi_tree(tree: &Path) {
        file(tree, "sys/class/scsi_host/host2/proc_name", "iscsi_iser\n");
        let connection = "sys/class/iscsi_connection/connection1:0";
        file(
            tree,
            &format!("{connection}/persistent_address"),
            "10.0.0.2\n",
        );
    }

    #[test]
    fn a_partition_of_an_iscsi_disk_is_reached_by_its_session() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        iscsi_tree(tree);
        file(tree, "sys/class/iscsi_session/session1/state", "FAILED\n");
        link(tree, "sys/dev/block/8:1", &format!("{SESSION}/sda1"));
        let way = r#"{"device":"sda1","protocol":"iscsi","transport":"iser","server":"10.0.0.2","state":"FAILED"}"#;
        assert_eq!(paths(tree, "8:1", "/dev/root"), format!("[{way}]"));
    }

    #[test]
    fn a_mapped_disk_has_the_paths_of_all_disks_below() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        iscsi_tree(tree);
        let mapped = "../../devices/virtual/block/dm-0";
        link(tree, "sys/dev/block/253:0", mapped);
        let slaves = "sys/devices/virtual/block/dm-0/slaves";
        link(tree, &format!("{slaves}/sda"), &format!("../../{SESSION}"));
        link(
            tree,
            &format!("{slaves}/vda"),
            "../../../../pci0000:00/0000:00:03.0/virtio1/block/vda",
        );
        assert_eq!(
            paths(tree, "253:0", "/dev/mapper/vg-root"),
            r#"[{"device":"sda","protocol":"iscsi","transport":"iser","server":"10.0.0.2"},{"device":"vda"}]"#
        );
    }

    #[test]
    fn a_partition_of_an_array_has_the_paths_of_all_disks_of_the_array() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        iscsi_tree(tree);
        let array = "sys/devices/virtual/block/md127";
        file(tree, &format!("{array}/md127p1/partition"), "1\n");
        let partition = "../../devices/virtual/block/md127/md127p1";
        link(tree, "sys/dev/block/259:0", partition);
        link(tree, "sys/class/block/md127p1", partition);
        let slaves = format!("{array}/slaves");
        link(
            tree,
            &format!("{slaves}/sda1"),
            &format!("../../{SESSION}/sda1"),
        );
        link(
            tree,
            &format!("{slaves}/vda"),
            "../../../../pci0000:00/0000:00:03.0/virtio1/block/vda",
        );
        let ways = r#"[{"device":"sda1","protocol":"iscsi","transport":"iser","server":"10.0.0.2"},{"device":"vda"}]"#;
        assert_eq!(paths(tree, "259:0", "/dev/md127p1"), ways);
        // btrfs
        assert_eq!(paths(tree, "0:33", "/dev/md127p1"), ways);
    }

    #[test]
    fn a_disk_is_what_multipath_or_a_mirror_needs_one_of() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        let sessions = |disk: &str, names: [&str; 2]| {
            let slaves = format!("sys/devices/virtual/block/{disk}/slaves");
            for (name, session) in names.into_iter().zip(["session1", "session2"]) {
                let target = format!("../../../../platform/{session}/target2:0:0/block/{name}");
                link(tree, &format!("{slaves}/{name}"), &target);
            }
        };
        let disks = || {
            let ways = of(&mut Look::new(&Root::new(tree)), "253:0", "/dev/root");
            let words = ways.iter().map(word);
            words.collect::<Vec<_>>().join(", ")
        };
        link(
            tree,
            "sys/dev/block/253:0",
            "../../devices/virtual/block/md0",
        );
        let md = "sys/devices/virtual/block/md0";
        for mapped in ["dm-1", "dm-2"] {
            let target = format!("../../{mapped}");
            link(tree, &format!("{md}/slaves/{mapped}"), &target);
            let uuid = format!("sys/devices/virtual/block/{mapped}/dm/uuid");
            file(tree, &uuid, "mpath-36001405a\n");
        }
        sessions("dm-1", ["sda", "sdb"]);
        sessions("dm-2", ["sdc", "sdd"]);
        for (level, expected) in [
            ("raid0", "dm-1 sda, dm-1 sdb, dm-2 sdc, dm-2 sdd"),
            ("linear", "dm-1 sda, dm-1 sdb, dm-2 sdc, dm-2 sdd"),
            ("raid1", "md0 sda, md0 sdb, md0 sdc, md0 sdd"),
            (
                "raid5",
                "md0:dm-1 sda, md0:dm-1 sdb, md0:dm-2 sdc, md0:dm-2 sdd",
            ),
            (
                "raid10",
                "md0:dm-1 sda, md0:dm-1 sdb, md0:dm-2 sdc, md0:dm-2 sdd",
            ),
        ] {
            file(tree, &format!("{md}/md/level"), &format!("{level}\n"));
            assert_eq!(disks(), expected, "{level}");
        }
        // An LV over two disks.
        fs::remove_file(tree.join("sys/dev/block/253:0")).unwrap();
        link(
            tree,
            "sys/dev/block/253:0",
            "../../devices/virtual/block/dm-3",
        );
        sessions("dm-3", ["sde", "sdf"]);
        let dm = "sys/devices/virtual/block/dm-3/dm";
        file(tree, &format!("{dm}/uuid"), "LVM-a\n");
        assert_eq!(disks(), "sde sde, sdf sdf");
        // RAID of LVM: raid0, with redundancy, and the older mirror.
        fs::remove_dir_all(tree.join("sys/devices/virtual/block/dm-3/slaves")).unwrap();
        let slaves = "sys/devices/virtual/block/dm-3/slaves";
        link(tree, &format!("{slaves}/dm-1"), "../../dm-1");
        link(tree, &format!("{slaves}/dm-2"), "../../dm-2");
        let name = |mapped: &str, name: &str| {
            let name_of = format!("sys/devices/virtual/block/{mapped}/dm/name");
            file(tree, &name_of, &format!("{name}\n"));
        };
        let uuid = |mapped: &str, uuid: &str| {
            let uuid_of = format!("sys/devices/virtual/block/{mapped}/dm/uuid");
            file(tree, &uuid_of, &format!("{uuid}\n"));
        };
        for (mapped, image) in [("dm-1", "vg-r_rimage_0"), ("dm-2", "vg-r_rimage_1")] {
            name(mapped, image);
            uuid(mapped, "LVM-a");
        }
        assert_eq!(disks(), "sda sda, sdb sdb, sdc sdc, sdd sdd");
        link(tree, &format!("{slaves}/dm-4"), "../../dm-4");
        sessions("dm-4", ["sda", "sdc"]);
        name("dm-4", "vg-r_rmeta_0");
        assert_eq!(
            disks(),
            "dm-3:sda sda, dm-3:sdb sdb, dm-3:sdc sdc, dm-3:sdd sdd"
        );
        name("dm-1", "vg-r_mimage_0");
        name("dm-2", "vg-r_mimage_1");
        fs::remove_file(tree.join(format!("{slaves}/dm-4"))).unwrap();
        assert_eq!(disks(), "dm-3 sda, dm-3 sdb, dm-3 sdc, dm-3 sdd");
    }

    #[test]
    fn a_btrfs_over_several_disks_has_the_paths_of_all() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        let filesystem = "sys/fs/btrfs/7b8f";
        for (name, session) in [("sda", "session1"), ("sdb", "session2")] {
            let device = format!("devices/platform/{session}/target2:0:0/block/{name}");
            link(
                tree,
                &format!("sys/class/block/{name}"),
                &format!("../../{device}"),
            );
            let place = format!("{filesystem}/devices/{name}");
            link(tree, &place, &format!("../../../../{device}"));
        }
        let profile = |kind: &str, profile: &str| {
            let file_of = format!("{filesystem}/allocation/{kind}/{profile}/used_bytes");
            file(tree, &file_of, "1\n");
        };
        let disks = || {
            let ways = of(&mut Look::new(&Root::new(tree)), "0:33", "/dev/sdb");
            let words = ways.iter().map(word);
            words.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(disks(), "sda sda, sdb sdb");
        for kind in ["data", "metadata", "system"] {
            profile(kind, "raid1");
        }
        assert_eq!(disks(), "btrfs:sda sda, btrfs:sdb sdb");
        profile("data", "single");
        assert_eq!(disks(), "sda sda, sdb sdb");
    }

    #[test]
    fn targets_are_those_that_are_logged_in() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        for (session, state) in [("session1", "LOGGED_IN"), ("session2", "FAILED")] {
            let place = format!("sys/class/iscsi_session/{session}");
            file(tree, &format!("{place}/state"), state);
            file(
                tree,
                &format!("{place}/targetname"),
                &format!("iqn.{session}\n"),
            );
        }
        let root = Root::new(tree);
        assert_eq!(targets(&mut Look::new(&root)), ["iqn.session1"]);
    }

    #[test]
    fn a_namespace_is_reached_by_every_controller_of_its_subsystem() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        let subsystem = "../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/nvme0n1p2";
        link(tree, "sys/dev/block/259:2", subsystem);
        let place = "sys/class/nvme-subsystem/nvme-subsys0";
        for (name, address) in [
            ("nvme0", "traddr=10.0.0.2,trsvcid=4420"),
            ("nvme1", "trsvcid=4420,traddr=fd00::2,host_traddr=fd00::1"),
        ] {
            file(tree, &format!("{place}/{name}/transport"), "rdma\n");
            file(tree, &format!("{place}/{name}/address"), address);
        }
        file(tree, &format!("{place}/nvme1/state"), "connecting\n");
        file(tree, &format!("{place}/nvme0n1/size"), "8\n");
        assert_eq!(
            paths(tree, "259:2", "/dev/nvme0n1p2"),
            r#"[{"device":"nvme0","protocol":"nvme","disk":"nvme-subsys0","transport":"rdma","server":"10.0.0.2"},{"device":"nvme1","protocol":"nvme","disk":"nvme-subsys0","transport":"rdma","server":"fd00::2","state":"connecting"}]"#
        );
    }

    #[test]
    fn a_card_in_the_machine_is_no_server() {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        let card = "../../devices/pci0000:00/0000:00:04.0/nvme/nvme1/nvme1n1";
        link(tree, "sys/class/block/nvme1n1", card);
        file(tree, "sys/class/nvme/nvme1/transport", "pcie\n");
        file(tree, "sys/class/nvme/nvme1/state", "live\n");
        file(tree, "sys/class/nvme/nvme1/address", "0000:00:04.0\n");
        // btrfs: the number belongs to the file system, not to a disk.
        assert_eq!(
            paths(tree, "0:33", "/dev/nvme1n1"),
            r#"[{"device":"nvme1","transport":"pcie"}]"#
        );
        assert_eq!(paths(tree, "0:33", "10.0.0.2:/"), "[]");
    }
}
