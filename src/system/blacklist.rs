// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `blacklist` lines of modprobe.d(5). modprobe obeys them when it resolves an alias, as it
//! does for udev, but not when it loads a module by name.

use std::collections::BTreeMap;

use super::modules::normal;
use super::root::Root;

/// Directories in order of precedence: of two files with one name, the file in the earlier
/// directory counts.
const DIRECTORIES: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// Modules that are not loaded for a device, each with the file that forbids it.
#[derive(Debug, Default)]
pub struct Blacklist {
    modules: BTreeMap<String, String>,
}

impl Blacklist {
    /// Reads the files. An unreadable file forbids nothing.
    pub fn read(root: &Root) -> Blacklist {
        Blacklist::of(
            |directory| root.list(directory).unwrap_or_default(),
            |path| root.text(path).unwrap_or_default(),
        )
    }

    /// `list` has the names of the files in a directory, `text` what is in a file.
    pub fn of(list: impl Fn(&str) -> Vec<String>, text: impl Fn(&str) -> String) -> Blacklist {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for directory in DIRECTORIES {
            let names = list(directory).into_iter();
            for name in names.filter(|name| name.ends_with(".conf")) {
                let path = format!("{directory}/{name}");
                files.entry(name).or_insert(path);
            }
        }
        let mut modules = BTreeMap::new();
        for path in files.into_values() {
            for line in text(&path).lines() {
                let mut words = line.split_ascii_whitespace();
                if let (Some("blacklist"), Some(module)) = (words.next(), words.next()) {
                    modules
                        .entry(normal(module))
                        .or_insert_with(|| path.clone());
                }
            }
        }
        Blacklist { modules }
    }

    /// The file that forbids `name`.
    pub fn by(&self, name: &str) -> Option<&str> {
        self.modules.get(&normal(name)).map(String::as_str)
    }
}
