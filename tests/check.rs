// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot check` as a process: when it ends, and with which exit code.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod pace;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// `ibboot check` on a saved machine with one good required port.
fn check(arguments: &[&str]) -> Command {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibboot"));
    command.arg("--root").arg(tree).arg("check");
    command.args(["--cmdline", "rd.ib.require=mlx5_0:1"]);
    command.args(arguments);
    command
}

#[test]
fn watch_ends_when_nobody_reads_its_output() {
    let mut child = check(&["--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for check in 0..2 {
        let mut line = String::new();
        while !line.starts_with("ok ") {
            line.clear();
            let length = output.read_line(&mut line).unwrap();
            assert_ne!(length, 0, "ended after {check} checks");
        }
    }
    drop(output);
    let mut limit = pace::Limit::seconds(60);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if limit.is_over() {
            child.kill().unwrap();
        }
        sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_check_that_does_not_end_is_unknown() {
    for (format, code, stdout) in [
        ("text", 3, ""),
        ("nagios", 3, "IBBOOT UNKNOWN - --limit 1 "),
        ("nhc", 1, "ibboot: UNKNOWN: --limit 1 "),
        ("journal", 1, "<3>UNKNOWN: --limit 1 "),
    ] {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr");
        let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
            .args([
                "--limit", "1", "check", "--watch", "--format", format, "--root",
            ])
            .arg(tree)
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(code), "{format}");
        let found = String::from_utf8(run.stdout).unwrap();
        assert!(found.starts_with(stdout), "{format}: {found}");
        assert_eq!(found.is_empty(), stdout.is_empty(), "{format}: {found}");
        let stderr = String::from_utf8(run.stderr).unwrap();
        let last = stderr.lines().last().unwrap_or_default();
        // The journal has the line of stdout.
        let is_told = last.contains("has not ended in time; firmware does not answer");
        assert_eq!(is_told, format != "journal", "{format}: {stderr}");
    }
}
