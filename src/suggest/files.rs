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

/// The profiles, in the order in which the programs use them, and a line for each file that cannot
/// be read.
pub fn read(root: &Root) -> (Vec<Profile>, Vec<String>) {
    let mut unread = Vec::new();
    let mut profiles = Vec::new();
    for (path, text) in texts(root, &MANAGER, &[".nmconnection", ""], &mut unread) {
        profiles.extend(keyfile::of_manager(&path, &text));
    }
    for (path, text) in texts(root, &NETWORKD, &[".network", ".netdev"], &mut unread) {
        profiles.extend(keyfile::of_networkd(&path, &text));
    }
    (profiles, unread)
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
            if endings.iter().any(|ending| name.ends_with(ending)) && !name.starts_with('.') {
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
