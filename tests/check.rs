// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot check` as a process: when it ends, and with which exit code.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod pace;

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
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

#[test]
fn a_call_that_did_not_end_is_named_without_its_command_line() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr");
    let secret = "rd.ib.require=any rd.iscsi.password=S3CR3T";
    for option in [
        vec!["--cmdline".to_owned(), secret.to_owned()],
        vec![format!("--cmdline={secret}")],
    ] {
        let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
            .args(["--limit", "1", "check", "--watch", "--format", "nhc"])
            .args(&option)
            .arg("--root")
            .arg(&tree)
            .output()
            .unwrap();
        let found = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
        assert!(found.contains("--cmdline"), "{found}");
        assert!(found.contains("**** --root"), "{found}");
        assert!(!found.contains("S3CR3T"), "{found}");
    }
}

/// The check of monitoring/nhc in a shell with NHC's `die`, and a program in place of ibboot.
fn node_health_check(ibboot: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ibboot");
    std::fs::write(&program, format!("#!/bin/sh\n{ibboot}\n")).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let run = Command::new("bash")
        .args([
            "-c",
            "die() { echo \"died $*\"; }; . monitoring/nhc/ibboot.nhc; check_ibboot",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
        .output()
        .unwrap();
    (run.status.code(), String::from_utf8(run.stdout).unwrap())
}

#[test]
fn the_note_of_a_node_is_the_line_of_a_failed_check() {
    let call = r#"[ "$*" = "--limit 20 check --format nhc" ] || exit 64"#;
    let line = "ibboot: CRITICAL: mlx5_0/1: no physical link: `Polling', expected \"LinkUp\"";
    for (does, code, note) in [
        ("echo 'ibboot: WARNING: slow'", 0, String::new()),
        (
            &format!("echo more >&2; cat <<'E'\n{line}\nE\nexit 1"),
            1,
            format!("died 1 {line}\n"),
        ),
        (
            "exit 3",
            1,
            "died 1 ibboot ended with exit status 3\n".to_owned(),
        ),
    ] {
        let found = node_health_check(&format!("{call}\n{does}"));
        assert_eq!(found, (Some(code), note), "{does}");
    }
}
