// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stderr that is full, closed or without a reader changes neither the results nor the exit code.

#![allow(clippy::unwrap_used)]

use std::fs::{File, OpenOptions};
use std::process::{Command, Output, Stdio};

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn without_reader() -> std::io::PipeWriter {
    let (_, writer) = std::io::pipe().unwrap();
    writer
}

fn run(arguments: &[&str], stderr: impl Into<Stdio>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ibboot"))
        .args(arguments)
        .stderr(stderr)
        .output()
        .unwrap()
}

#[test]
fn an_error_that_cannot_be_said_keeps_its_exit_code() {
    for (arguments, code) in [
        (&["check", "--root", "/nonexistent"][..], 3),
        (&["timeline", "--root", "/nonexistent"], 3),
        (&["plan", "--root", "/nonexistent"], 1),
        (&["bogus"], 64),
    ] {
        let said = run(arguments, Stdio::piped());
        assert!(said.stderr.starts_with(b"ibboot: "), "{said:?}");
        assert_eq!(said.status.code(), Some(code), "{arguments:?}");
        let full = run(arguments, full());
        assert_eq!(full.status.code(), Some(code), "{arguments:?} >/dev/full");
        let unread = run(arguments, without_reader());
        assert_eq!(unread.status.code(), Some(code), "{arguments:?} | true");
    }
}

#[test]
fn a_log_line_that_cannot_be_said_keeps_the_result() {
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sys/connectx6-hdr");
    let facts = |stderr: Stdio| {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("tree");
        let copy = copy.to_str().unwrap();
        let run = run(&["-v", "facts", "--root", tree, "--tree", copy], stderr);
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        let mut facts: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        facts.as_object_mut().unwrap().remove("taken_ns");
        (facts, String::from_utf8(run.stderr).unwrap())
    };
    let (wanted, said) = facts(Stdio::piped());
    assert!(said.starts_with("ibboot: INFO  "), "{said}");
    assert!(said.ends_with(" files saved\n"), "{said}");
    assert_eq!(facts(full().into()), (wanted.clone(), String::new()));
    assert_eq!(facts(without_reader().into()), (wanted, String::new()));
}
