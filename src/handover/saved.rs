// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the content of a file in a tree of `facts --tree`, without secrets.

use std::borrow::Cow;

use kernel_cmdline::Source;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::handover::{self, CHECK, DIRECTORY, EXPECTED, KEPT, Kept, STATE, State};
use crate::redact::place;
use crate::verify::report::Report;
use crate::wish::expectation::Expectation;

/// The content of the file at `path` for `facts --tree`. ibboot reads the same from it; other
/// content that may hold secrets is left out.
pub fn saved<'a>(path: &str, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    let path = path.trim_start_matches('/');
    let is_below = |directory: &str| path.strip_prefix(directory).is_some();
    let is_cmdline = is_below("etc/cmdline.d/") || is_below("run/initramfs/cmdline.d/");
    match path {
        "proc/cmdline" | "etc/cmdline" => command_line(bytes).into(),
        _ if is_cmdline => command_line(bytes).into(),
        "proc/self/mountinfo" => mounts(&String::from_utf8_lossy(bytes)).into(),
        _ if path.contains("modprobe.d/") => blacklist(&String::from_utf8_lossy(bytes)).into(),
        _ => match path.strip_prefix(DIRECTORY.trim_start_matches('/')) {
            Some(name) => handed_over(name.trim_start_matches('/'), bytes).into(),
            None => bytes.into(),
        },
    }
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

/// The lines of mounts at the root directory (proc(5)).
fn mounts(text: &str) -> Vec<u8> {
    let mut shown = String::new();
    for line in text.lines() {
        let mut words: Vec<Cow<'_, str>> = line.split(' ').map(Cow::from).collect();
        if words.get(4).is_none_or(|place| place != "/") {
            continue;
        }
        let source = words.iter().position(|word| word == "-");
        if let Some(source) = source.and_then(|dash| words.get_mut(dash.saturating_add(2))) {
            *source = place(source).into();
        }
        shown.push_str(&words.join(" "));
        shown.push('\n');
    }
    shown.into_bytes()
}

/// The `blacklist` lines only: `install` and `options` lines may contain secrets (modprobe.d(5)).
fn blacklist(text: &str) -> Vec<u8> {
    let is_blacklist = |line: &&str| line.trim_start().starts_with("blacklist");
    let lines = text.lines().filter(is_blacklist);
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
        String::from_utf8(saved(path, text.as_bytes()).into_owned()).unwrap()
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
        assert_eq!(saved_text("/proc/net/route", "as it is\n"), "as it is\n");
    }
}
