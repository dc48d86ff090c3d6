// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the profiles of NetworkManager and of systemd-networkd.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use super::keyfile::{self, Profile};
use crate::error::Error;
use crate::system::root::Root;
use crate::system::{PROFILE, PROFILE_BY_NAME};

/// Directories of profiles; of files with one name the first one counts.
const MANAGER: [&str; 3] = [
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
];
const NETWORKD: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

/// Directories of ifcfg files, of RHEL and of SLES.
const IFCFG: [&str; 2] = ["/etc/sysconfig/network-scripts", "/etc/sysconfig/network"];
/// Endings of files that initscripts and NetworkManager pass over.
const BACKUPS: [&str; 7] = [
    "~", ".bak", ".old", ".orig", ".rpmnew", ".rpmorig", ".rpmsave",
];

/// The profiles, in the order in which the programs use them, and a line for each file that cannot
/// be read, or has a format that is not read.
pub fn read(root: &Root) -> (Vec<Profile>, Vec<String>) {
    let mut unread = Vec::new();
    let mut profiles = Vec::new();
    for (path, text) in texts(root, &MANAGER, &[".nmconnection", ""], &mut unread) {
        profiles.extend(keyfile::of_manager(&path, &text));
    }
    for (path, mut text) in texts(root, &NETWORKD, &[".network", ".netdev"], &mut unread) {
        // The parts of a file in directories of its name, as if they stood at its end.
        let name = path.rsplit('/').next().unwrap_or_default();
        let parts = NETWORKD.map(|directory| format!("{directory}/{name}.d"));
        let parts = parts.each_ref().map(String::as_str);
        for (_, part) in texts(root, &parts, &[".conf"], &mut unread) {
            text.push('\n');
            text.push_str(&part);
        }
        profiles.extend(keyfile::of_networkd(&path, &text));
    }
    let [red_hat, suse] = IFCFG;
    for path in ifcfg(root, red_hat, &mut unread) {
        unread.push(format!(
            "{path} is not read (nmcli connection migrate makes a keyfile of it): with DHCP of NetworkManager \
             add rd.ib.dhcp.client-id=guid"
        ));
    }
    for path in ifcfg(root, suse, &mut unread) {
        unread.push(format!(
            "{path} is not read: wicked sets the interface up again after boot, unless the file is deleted"
        ));
    }
    (profiles, unread)
}

/// The ifcfg files for InfiniBand interfaces: of NetworkManager by their type, of wicked, which has none, by
/// their mode or name. RHEL has a file with the name of the directory of SLES.
fn ifcfg(root: &Root, directory: &str, unread: &mut Vec<String>) -> Vec<String> {
    let is_used = |name: &str| !BACKUPS.iter().any(|ending| name.ends_with(ending));
    let mut cannot = |path: &str, e: &std::io::Error| {
        if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
            unread.push(Error::io(path, "cannot be read", e).to_string());
        }
    };
    let is_infiniband = |line: &str| {
        let (key, value) = line.trim().split_once('=').unwrap_or_default();
        let value = value.trim_matches(['"', '\'']);
        key == "IPOIB_MODE" || key == "TYPE" && value.eq_ignore_ascii_case("infiniband")
    };
    let names = root.list(directory).inspect_err(|e| cannot(directory, e));
    let mut names = names.unwrap_or_default();
    names.sort();
    let mut found = Vec::new();
    for name in names.iter().filter(|name| is_used(name)) {
        let Some(interface) = name.strip_prefix("ifcfg-") else {
            continue;
        };
        let path = format!("{directory}/{name}");
        match root.text(&path) {
            Ok(text) if interface.starts_with("ib") || text.lines().any(is_infiniband) => {
                found.push(path);
            }
            Ok(_) => {}
            Err(e) => cannot(&path, &e),
        }
    }
    found
}

/// Whether the programs read the file, and somebody else than ibboot wrote the file. NetworkManager
/// skips hidden files and backups of editors (NetworkManager.conf(5), keyfile).
fn is_profile(name: &str, endings: &[&str]) -> bool {
    let is_skipped = name.starts_with('.')
        || name.ends_with('~')
        || [PROFILE, PROFILE_BY_NAME]
            .iter()
            .any(|of_ours| name.starts_with(of_ours));
    !is_skipped && endings.iter().any(|ending| name.ends_with(ending))
}

/// The texts of the files with one of the `endings`, by name.
fn texts(
    root: &Root,
    directories: &[&str],
    endings: &[&str],
    unread: &mut Vec<String>,
) -> Vec<(String, String)> {
    let mut cannot = |path: &str, e: &std::io::Error| {
        if e.kind() != ErrorKind::NotFound {
            unread.push(Error::io(path, "cannot be read", e).to_string());
        }
    };
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for directory in directories {
        let names = root.list(directory).inspect_err(|e| cannot(directory, e));
        for name in names.unwrap_or_default() {
            if is_profile(&name, endings) {
                let path = format!("{directory}/{name}");
                paths.entry(name).or_insert(path);
            }
        }
    }
    let mut texts = Vec::new();
    for path in paths.into_values() {
        match root.text(&path) {
            Ok(text) => texts.push((path, text)),
            Err(e) => cannot(&path, &e),
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_in_files_of_initscripts_and_wicked_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "network-scripts/ifcfg-storage",
                "DEVICE=ib0\nTYPE=\"InfiniBand\"\n",
            ),
            ("network-scripts/ifcfg-eth0", "TYPE=Ethernet\n"),
            ("network-scripts/ifcfg-ib0~", "TYPE=InfiniBand\n"),
            ("network-scripts/ifcfg-ib0.rpmsave", "TYPE=InfiniBand\n"),
            ("network-scripts/keys-ib0", "TYPE=InfiniBand\n"),
            ("network/if-up.d/ifcfg-ib0", ""),
            ("network/ifcfg-ib0", "STARTMODE='auto'\n"),
            ("network/ifcfg-mgmt", "IPOIB_MODE='connected'\n"),
            ("network/config", "IPOIB_MODE=\n"),
        ] {
            let path = folder.path().join("etc/sysconfig").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (profiles, unread) = read(&Root::new(folder.path()));
        assert_eq!(profiles, []);
        let wicked = |name: &str| {
            format!(
                "/etc/sysconfig/network/{name} is not read: wicked sets the interface up again after boot, unless \
                 the file is deleted"
            )
        };
        let manager = "/etc/sysconfig/network-scripts/ifcfg-storage is not read (nmcli connection migrate makes a \
                       keyfile of it): with DHCP of NetworkManager add rd.ib.dhcp.client-id=guid";
        assert_eq!(
            unread,
            [
                manager.to_owned(),
                wicked("ifcfg-ib0"),
                wicked("ifcfg-mgmt")
            ]
        );
    }

    #[test]
    fn backups_and_profiles_of_ibboot_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("etc/NetworkManager/system-connections");
        std::fs::create_dir_all(&directory).unwrap();
        for name in [
            "10-ibboot-ib0.nmconnection",
            "ib0.nmconnection~",
            ".ib0.nmconnection",
            "ib0",
        ] {
            std::fs::write(directory.join(name), "[connection]\ntype=infiniband\n").unwrap();
        }
        let directory = folder.path().join("run/systemd/network");
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["10-ibboot-ib0.network", "11-ibboot-ib0.network"] {
            std::fs::write(directory.join(name), "[Match]\nName=ib0\n").unwrap();
        }
        let (profiles, unread) = read(&Root::new(folder.path()));
        let files: Vec<&str> = profiles.iter().map(|p| p.file.as_str()).collect();
        assert_eq!(files, ["/etc/NetworkManager/system-connections/ib0"]);
        assert_eq!(unread, [""; 0]);
    }
}
