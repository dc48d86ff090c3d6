// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the content of a file in a tree of `facts --tree`, without secrets.

use std::borrow::Cow;

use kernel_cmdline::Source;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::facts::rootfs::lines_of_root;
use crate::handover::{self, CHECK, DIRECTORY, EXPECTED, KEPT, Kept, STATE, State};
use crate::redact::place;
use crate::up::renaming;
use crate::verify::report::Report;
use crate::wish::expectation::Expectation;

/// Below these every file that ibboot reads is saved as it is. So is what ibboot saves itself.
const WHOLE: [&str; 5] = [
    "sys/",
    "proc/net/",
    "proc/sys/kernel/",
    "proc/sys/net/ipv6/conf/",
    "lib/modules/",
];

/// The content of the file at `path` for `facts --tree`: ibboot reads the same from it, and what ibboot
/// does not use is left out. None for a path that is not listed here: nothing of the file is saved.
pub fn saved<'a>(path: &str, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let path = path.trim_start_matches('/');
    let is_below = |directory: &str| path.starts_with(directory);
    let is_own = || is_below("ibboot-") && path.ends_with(".json") && !path.contains('/');
    if WHOLE.into_iter().any(is_below) || is_own() {
        return Some(bytes.into());
    }
    if let Some(name) = path.strip_prefix(DIRECTORY.trim_start_matches('/')) {
        return Some(handed_over(name.trim_start_matches('/'), bytes).into());
    }
    let text = || String::from_utf8_lossy(bytes);
    let saved = match path {
        // Only the name counts.
        "proc/vmcore" | "run/udev/control" | "etc/initrd-release" | "usr/lib/initrd-release" => {
            Vec::new()
        }
        _ if path.contains("/dracut/hooks/") || path.starts_with("lib/dracut/hooks/") => Vec::new(),
        "proc/cmdline" | "etc/cmdline" => command_line(bytes),
        _ if is_below("etc/cmdline.d/") || is_below("run/initramfs/cmdline.d/") => {
            command_line(bytes)
        }
        "proc/self/mountinfo" => mounts(&text()),
        _ if path.contains("/modprobe.d/") => beginning(&text(), "blacklist"),
        // The names of an interface are complete.
        _ if is_below("run/udev/data/") => beginning(&text(), "I:"),
        _ => renaming::saved(path, &text())?.into_bytes(),
    };
    Some(saved.into())
}

fn command_line(bytes: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(bytes.len());
    let mut end = 0;
    for token in Source::new("", bytes).tokens() {
        let begin = token.column.saturating_sub(1);
        shown.extend(bytes.get(end..begin).unwrap_or_default());
        shown.extend(token.text().pieces().concat());
        end = begin.saturating_add(token.raw.len());
    }
    shown.extend(bytes.get(end..).unwrap_or_default());
    shown
}

fn mounts(text: &str) -> Vec<u8> {
    let mut shown = String::new();
    for line in lines_of_root(text) {
        let mut words: Vec<Cow<'_, str>> = line.split(' ').map(Cow::from).collect();
        let source = words.iter().position(|word| word == "-");
        if let Some(source) = source.and_then(|dash| words.get_mut(dash.saturating_add(2))) {
            *source = place(source).into();
        }
        shown.push_str(&words.join(" "));
        shown.push('\n');
    }
    shown.into_bytes()
}

/// The lines that begin with `word`: `install` and `options` lines of modprobe.d(5) and properties of
/// udev's database may contain secrets.
fn beginning(text: &str, word: &str) -> Vec<u8> {
    let lines = text.lines();
    let lines = lines.filter(|line| line.trim_start().starts_with(word));
    lines
        .flat_map(|line| [line, "\n"])
        .collect::<String>()
        .into_bytes()
}

/// A file of /run/ibboot in the format of this version. Of a file that this version cannot parse only
/// the schema, which says why; empty without one.
fn handed_over(name: &str, bytes: &[u8]) -> Vec<u8> {
    #[derive(Deserialize, Serialize)]
    struct Schema {
        schema: u32,
    }
    fn parsed<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Option<String> {
        let value: T = serde_json::from_slice(bytes).ok()?;
        handover::json(&value).ok()
    }
    fn rewritten<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Vec<u8> {
        let text = parsed::<T>(bytes).or_else(|| parsed::<Schema>(bytes));
        text.unwrap_or_default().into_bytes()
    }
    match name {
        STATE => rewritten::<State>(bytes),
        EXPECTED => rewritten::<Expectation>(bytes),
        CHECK => rewritten::<Report>(bytes),
        KEPT => rewritten::<Kept>(bytes),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved_text(path: &str, text: &str) -> String {
        String::from_utf8(saved(path, text.as_bytes()).unwrap().into_owned()).unwrap()
    }

    #[test]
    fn a_saved_command_line_has_only_the_values_that_are_read() {
        let line = "quiet  rd.ib.mode=connected\tBOOT_IMAGE=SECRET rd.iscsi.password=SECRET\n\
                    netroot=iscsi:u:SECRET@10.0.0.2::::iqn.a inst.ks=http://h/?t=SECRET other=\"SECRET\n";
        for path in [
            "/proc/cmdline",
            "/etc/cmdline",
            "/etc/cmdline.d/a.conf",
            "/run/initramfs/cmdline.d/a.conf",
        ] {
            assert_eq!(
                saved_text(path, line),
                "quiet  rd.ib.mode=connected\tBOOT_IMAGE=**** rd.iscsi.password=****\n\
                 netroot=iscsi:****@10.0.0.2::::iqn.a inst.ks=http://h/?**** other=\"****\n"
            );
        }
    }

    #[test]
    fn content_that_is_not_read_is_not_saved() {
        assert_eq!(
            saved_text(
                "/etc/modprobe.d/a.conf",
                "options x key=SECRET\n blacklist mlx5_ib\ninstall y curl -u u:SECRET h\n"
            ),
            " blacklist mlx5_ib\n"
        );
        assert_eq!(
            saved_text(
                "/proc/self/mountinfo",
                "23 1 0:21 / / rw - fuse.x https://u:SECRET@h/x?SECRET rw\n\
                 24 23 0:22 / /home rw - cifs //h/x rw,username=SECRET\n"
            ),
            "23 1 0:21 / / rw - fuse.x https://****@h/x?**** rw\n"
        );
        let overlay = "23 1 0:31 / / rw - overlay over rw,lowerdir=/other:/run/base,upperdir=/u\n";
        let lowest = "25 24 0:21 / /run/base ro - nfs4 10.0.0.2:/root rw,proto=tcp,addr=10.0.0.2\n";
        let other = "26 24 0:22 / /other ro - fuse.x https://u:SECRET@h/ rw\n";
        assert_eq!(
            saved_text("/proc/self/mountinfo", &[overlay, other, lowest].concat()),
            [overlay, lowest].concat()
        );
        let rules = "RUN+=\"curl -u a:SECRET h\"\nPROGRAM=\"x SECRET\", NAME=\"%c\"\n";
        assert_eq!(
            saved_text("/etc/udev/rules.d/10.rules", rules),
            "NAME=\"%c\""
        );
        let link = "[Match]\nPath=SECRET\n[Link]\nWakeOnLanPassword=SECRET\n";
        for path in [
            "/etc/systemd/network/a.link",
            "/usr/lib/systemd/network/a.link.d/b.conf",
        ] {
            assert_eq!(saved_text(path, link), "[Link]\nanother setting\n");
        }
        let entry = "I:1234\nE:TOKEN=SECRET\n";
        assert_eq!(saved_text("/run/udev/data/n5", entry), "I:1234\n");
        for path in [
            "/proc/vmcore",
            "/run/udev/control",
            "/etc/initrd-release",
            "/usr/lib/initrd-release",
            "/lib/dracut/hooks/pre-udev/50-a.sh",
            "/var/lib/dracut/hooks/cmdline/50-a.sh",
        ] {
            assert_eq!(saved_text(path, "SECRET"), "", "{path}");
        }
        for name in [STATE, EXPECTED, CHECK, "result", crate::handover::REQUESTED] {
            assert_eq!(saved_text(&format!("/run/ibboot/{name}"), "SECRET"), "");
        }
        let of_newer = r#"{"schema":7,"boot_id":"b","secrets":["SECRET"]}"#;
        for name in [STATE, EXPECTED, CHECK, KEPT] {
            assert_eq!(
                saved_text(&format!("/run/ibboot/{name}"), of_newer),
                "{\n  \"schema\": 7\n}\n"
            );
        }
        for path in [
            "/proc/net/route",
            "/sys/class/net/ib0/mtu",
            "/lib/modules/6.1.0/modules.dep",
            crate::facts::UNREAD,
        ] {
            assert_eq!(saved_text(path, "as it is\n"), "as it is\n", "{path}");
        }
    }

    #[test]
    fn nothing_is_saved_of_a_path_that_is_not_known() {
        for path in [
            "/etc/shadow",
            "/etc/systemd/system/a.service",
            "/etc/NetworkManager/system-connections/a.nmconnection",
            "/proc/kcore",
            "/proc/sys/net/core/x",
            "/root/ibboot-a.json",
            "/ibboot-x/a.json",
            "",
        ] {
            assert_eq!(saved(path, b"SECRET"), None, "{path}");
        }
    }
}
