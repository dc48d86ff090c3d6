// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mount of the root directory, and the RDMA connections of this machine.

use std::net::IpAddr;

use serde::Serialize;

use super::{DiskPath, Look, disks};
use crate::redact;

/// File with the connections of a saved tree, as JSON.
pub const CONNECTIONS: &str = "/ibboot-connections.json";

/// The mount at `/` (/proc/self/mountinfo, proc(5)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RootMount {
    /// File system type: `nfs4`, `ext4`.
    pub fstype: String,
    /// Source of the mount: `10.0.0.2:/root`, `/dev/vda`; without user and password of a URL.
    pub source: String,
    /// `proto=` of an NFS mount: `tcp`, `rdma`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// `addr=` of an NFS mount, the server's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<IpAddr>,
    /// The paths to the disk of the file system, if it has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<DiskPath>,
}

pub(super) fn root(look: &mut Look<'_>) -> Option<RootMount> {
    let mounts = look.text("/proc/self/mountinfo")?;
    // Of several mounts on one directory, the last one is visible.
    let (number, mut mount) = mounts.lines().filter_map(mount_at_root).next_back()?;
    mount.paths = disks::of(look, number, &mount.source);
    Some(mount)
}

/// The device number and the mount.
fn mount_at_root(line: &str) -> Option<(&str, RootMount)> {
    let (place, what) = line.split_once(" - ")?;
    let mut words = place.split(' ').skip(2);
    let number = words.next()?;
    (words.nth(1)? == "/").then_some(())?;
    let mut fields = what.splitn(3, ' ');
    let (fstype, source, options) = (fields.next()?, fields.next()?, fields.next()?);
    let option = |name: &str| {
        let mut options = options.split(',');
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    };
    let nfs = fstype.starts_with("nfs");
    let mount = RootMount {
        fstype: fstype.to_owned(),
        source: redact::place(source),
        transport: option("proto").filter(|_| nfs).map(str::to_owned),
        server: option("addr")
            .filter(|_| nfs)
            // A link-local address has a scope: fe80::1%ib0.
            .and_then(|addr| addr.split('%').next()?.parse().ok()),
        paths: Vec::new(),
    };
    Some((number, mount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_at_the_root_counts() {
        let line = "23 1 0:21 / / rw,relatime shared:1 - nfs4 10.0.0.2:/ rw,vers=4.2,hard,proto=rdma,port=20049,clientaddr=10.0.0.1,local_lock=none,addr=10.0.0.2";
        assert_eq!(
            mount_at_root(line),
            Some((
                "0:21",
                RootMount {
                    fstype: "nfs4".to_owned(),
                    source: "10.0.0.2:/".to_owned(),
                    transport: Some("rdma".to_owned()),
                    server: Some("10.0.0.2".parse().unwrap()),
                    paths: Vec::new(),
                }
            ))
        );
        let (number, disk) = mount_at_root("1 0 254:0 / / rw - ext4 /dev/vda rw,addr=1").unwrap();
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
            assert_eq!(mount_at_root(other), None, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "\\PC*|[0-9: /]{0,20} - nfs4? [ -~]{0,60}") {
            let mount = mount_at_root(&line);
            proptest::prop_assert!(mount.is_none() || line.contains(" - "));
        }
    }
}
