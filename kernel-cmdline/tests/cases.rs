// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each file in tests/cases has the cases of one grammar: a command line after `> `, then
//! every value that is read from it with its column, who asked, and every complaint.
//! `\xNN` and `\n` in a command line are bytes. `BLESS=1` writes what is read.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
)]

#[path = "common/render.rs"]
mod render;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use kernel_cmdline::{Source, parse};

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (byte, used) = match &rest[at + 1..at + 2] {
            "n" => (b'\n', 2),
            "t" => (b'\t', 2),
            "x" => (u8::from_str_radix(&rest[at + 2..at + 4], 16).unwrap(), 4),
            other => panic!("\\{other} in a case"),
        };
        bytes.push(byte);
        rest = &rest[at + used..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Runs every case of one file and returns how many there were.
fn run(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    let mut cases = 0;
    let mut read = String::new();
    for line in text.lines() {
        if line.starts_with('#') || line.is_empty() {
            writeln!(read, "{line}").unwrap();
        } else if let Some(written) = line.strip_prefix("> ") {
            let bytes = unescape(written);
            let sources = [Source::new("/proc/cmdline", &bytes)];
            write!(read, "{line}\n{}", render::render(&parse(&sources))).unwrap();
            cases += 1;
        }
    }
    if env::var_os("BLESS").is_some_and(|value| value == "1") {
        fs::write(path, &read).unwrap();
        return cases;
    }
    for (number, (want, got)) in text.lines().zip(read.lines()).enumerate() {
        assert_eq!(got, want, "{}:{}", path.display(), number + 1);
    }
    assert_eq!(
        text.lines().count(),
        read.lines().count(),
        "{}: lines are missing at the end",
        path.display()
    );
    cases
}

#[test]
fn every_case_reads_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut cases = 0;
    for file in &files {
        let here = run(file);
        assert!(here > 0, "{}: no case", file.display());
        cases += here;
    }
    assert!(
        files.len() >= 8 && cases >= 400,
        "{} files, {cases} cases: some are gone",
        files.len()
    );
    eprintln!("{cases} cases in {} files", files.len());
}
