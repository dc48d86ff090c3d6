// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mount of the root directory, and the RDMA connections of this machine.

use std::net::IpAddr;

use serde::Serialize;

use super::{DiskPath, Look, disks};
use crate::redact;
use crate::wish::storage::Protocol;

/// File with the connections of a saved tree, as JSON.
pub const CONNECTIONS: &str = "/ibboot-connections.json";

/// The mount at `/` (/proc/self/mountinfo, proc(5)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RootMount {
    /// File system type: `nfs4`, `ext4`.
    pub fstype: String,
    /// Source of the mount: `10.0.0.2:/root`, `/dev/vda`; without user and password of a URL.
    pub source: String,
    /// The NFS mount that is the lowest layer of an overlay: `nfs4 10.0.0.2:/root`. `transport` and
    /// `server` are those of this mount then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<String>,
    /// `proto=` of an NFS mount: `tcp`, `rdma`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// `addr=` of an NFS mount, the server's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<IpAddr>,
    /// The paths to the disk of the file system, if it has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<DiskPath>,
    /// The iSCSI targets that this machine is logged in to, whether or not the file system is on them; empty
    /// unless it is on one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
}

pub(super) fn root(look: &mut Look<'_>) -> Option<RootMount> {
    let mounts = look.text("/proc/self/mountinfo")?;
    let (number, mut mount) = root_of(&mounts)?;
    mount.paths = disks::of(look, number, &mount.source);
    if mount
        .paths
        .iter()
        .any(|path| path.protocol == Some(Protocol::Iscsi))
    {
        mount.targets = disks::targets(look);
    }
    Some(mount)
}

/// The lines that decide what is mounted at `/`: those of the mounts there, and of the lowest layer of
/// an overlay.
pub fn lines_of_root(mounts: &str) -> impl Iterator<Item = &str> {
    let mut root = mounts.lines().filter_map(|line| mount_at("/", line));
    let lowest = root
        .next_back()
        .and_then(|(_, _, options)| lowest_layer(options));
    mounts.lines().filter(move |line| {
        let place = line.split(' ').nth(4);
        place.is_some_and(|place| place == "/" || Some(place) == lowest)
    })
}

/// The device number and the mount at `/`.
fn root_of(mounts: &str) -> Option<(&str, RootMount)> {
    // Of several mounts on one directory, the last one is visible.
    let last = |place: &str| {
        mounts
            .lines()
            .filter_map(|l| mount_at(place, l))
            .next_back()
    };
    let (number, mut mount, options) = last("/")?;
    let lowest = lowest_layer(options).filter(|_| mount.fstype == "overlay");
    let lower = lowest.and_then(last);
    if let Some((_, lower, _)) = lower.filter(|(_, lower, _)| lower.is_nfs()) {
        mount.lower = Some(lower.text());
        mount.transport = lower.transport;
        mount.server = lower.server;
    }
    Some((number, mount))
}

impl RootMount {
    /// Type and source.
    pub fn text(&self) -> String {
        format!("{} {}", self.fstype, self.source)
    }

    /// Whether this is an NFS mount.
    pub fn is_nfs(&self) -> bool {
        self.fstype.starts_with("nfs")
    }
}

/// The value of one of the options.
fn option<'a>(options: &'a str, name: &str) -> Option<&'a str> {
    let mut options = options.split(',');
    options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

/// The lowest layer of an overlay: all layers are in one option, or each in one of its own since Linux
/// 6.7 (ovl_show_options, fs/overlayfs/params.c).
fn lowest_layer(options: &str) -> Option<&str> {
    let mut options = options.rsplit(',').filter_map(|one| one.split_once('='));
    options.find_map(|option| match option {
        ("lowerdir", layers) => layers.rsplit(':').next(),
        ("lowerdir+", layer) => Some(layer),
        _ => None,
    })
}

/// The device number, the mount and its options, if the line is that of a mount at `at`.
fn mount_at<'a>(at: &str, line: &'a str) -> Option<(&'a str, RootMount, &'a str)> {
    let (place, what) = line.split_once(" - ")?;
    let mut words = place.split(' ').skip(2);
    let number = words.next()?;
    (words.nth(1)? == at).then_some(())?;
    let mut fields = what.splitn(3, ' ');
    let (fstype, source, options) = (fields.next()?, fields.next()?, fields.next()?);
    let mut mount = RootMount {
        fstype: fstype.to_owned(),
        source: redact::place(source),
        lower: None,
        transport: None,
        server: None,
        paths: Vec::new(),
        targets: Vec::new(),
    };
    if mount.is_nfs() {
        mount.transport = option(options, "proto").map(str::to_owned);
        // A link-local address has a scope: fe80::1%ib0.
        let address = option(options, "addr").and_then(|addr| addr.split('%').next());
        mount.server = address.and_then(|address| address.parse().ok());
    }
    Some((number, mount, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_at_the_root_counts() {
        let line = "23 1 0:21 / / rw,relatime shared:1 - nfs4 10.0.0.2:/ rw,vers=4.2,hard,proto=rdma,port=20049,clientaddr=10.0.0.1,local_lock=none,addr=10.0.0.2";
        assert_eq!(
            root_of(line),
            Some((
                "0:21",
                RootMount {
                    fstype: "nfs4".to_owned(),
                    source: "10.0.0.2:/".to_owned(),
                    lower: None,
                    transport: Some("rdma".to_owned()),
                    server: Some("10.0.0.2".parse().unwrap()),
                    paths: Vec::new(),
                    targets: Vec::new(),
                }
            ))
        );
        let (number, disk) = root_of("1 0 254:0 / / rw - ext4 /dev/vda rw,addr=1").unwrap();
        assert_eq!(
            (number, disk.fstype.as_str(), disk.server),
            ("254:0", "ext4", None)
        );
        for other in [
            "",
            "1 0 254:0 / /mnt rw - ext4 /dev/vda rw",
            "1 0 254:0 / / rw ext4 x rw",
            "1 0 0:1 / / rw - nfs x",
        ] {
            assert_eq!(root_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_lowest_layer_of_an_overlay_counts_if_it_is_an_nfs_mount() {
        let over = |layers: &str, lower: &str| {
            let overlay = format!("23 1 0:31 / / rw - overlay over rw,{layers},upperdir=/u");
            root_of(&format!("{overlay}\n{lower}")).unwrap().1
        };
        let nfs = "25 24 0:21 / /run/base ro - nfs4 10.0.0.2:/root rw,proto=rdma,addr=10.0.0.2";
        for layers in [
            "lowerdir=/run/base",
            "lowerdir=/run/other:/run/base",
            "lowerdir+=/run/other,lowerdir+=/run/base,datadir+=/data",
        ] {
            let mount = over(layers, nfs);
            assert_eq!(mount.text(), "overlay over");
            assert_eq!(mount.lower.as_deref(), Some("nfs4 10.0.0.2:/root"));
            assert_eq!(mount.transport.as_deref(), Some("rdma"));
            assert_eq!(mount.server, Some("10.0.0.2".parse().unwrap()));
        }
        let disk = "25 24 8:1 / /run/base ro - ext4 /dev/sda1 rw,addr=10.0.0.2";
        for (layers, lower) in [
            ("lowerdir=/run/base", disk),
            ("lowerdir=/run/base:/lower", nfs),
            ("lowerdir+=/run/base,lowerdir+=/lower", nfs),
            ("lowerdir=/run/base", ""),
        ] {
            let mount = over(layers, lower);
            assert_eq!(
                (mount.lower, mount.server),
                (None, None),
                "{layers} {lower}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "\\PC*|[0-9: /]{0,20} - nfs4? [ -~]{0,60}") {
            let mount = root_of(&line);
            proptest::prop_assert!(mount.is_none() || line.contains(" - "));
        }
    }
}
