// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the profiles of NetworkManager and of systemd-networkd.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use super::keyfile::{self, Profile};
use crate::error::Error;
use crate::system::root::Root;

/// Directories of profiles; of files with one name the first one counts.
const MANAGER: [&str; 3] = [
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager/system-connections",
];
const NETWORKD: [&str; 3] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/lib/systemd/network",
];

/// How the names of the profiles begin that `up` writes for an earlier boot's arguments.
const HANDED_OVER: [&str; 2] = ["10-ibboot-", "11-ibboot-"];

/// The profiles, in the order in which the programs use them, and a line for each file that cannot
/// be read.
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
    (profiles, unread)
}

/// Whether the programs read the file, and somebody else than ibboot wrote the file. NetworkManager
/// skips hidden files and backups of editors (NetworkManager.conf(5), keyfile).
fn is_profile(name: &str, endings: &[&str]) -> bool {
    let is_skipped = name.starts_with('.')
        || name.ends_with('~')
        || HANDED_OVER.iter().any(|of_ours| name.starts_with(of_ours));
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
