// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder is a test: tests/cases/NN-name and kernel-cmdline/examples/name.
//!
//! `base` names trees of tests/sys, one a line, each laid over those before; `tree/` lies over them all; `cmdline` becomes its /proc/cmdline;
//! `call` has one call of the program per line (without `--root`). What they print must be
//! `expected`: each call, its stdout, its stderr and its exit code. BLESS=1 writes it anew.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_symlink() {
            let link = fs::read_link(entry.path()).unwrap();
            std::os::unix::fs::symlink(link, &target).unwrap();
        } else {
            fs::write(&target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Everything the calls of a case print.
fn outcome(case: &Path) -> String {
    let tree = tempfile::tempdir().unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let base = fs::read_to_string(case.join("base")).unwrap();
    for layer in base.lines() {
        copy(&tests.join("sys").join(layer), tree.path());
    }
    if case.join("tree").exists() {
        copy(&case.join("tree"), tree.path());
    }
    if let Ok(cmdline) = fs::read(case.join("cmdline")) {
        fs::create_dir_all(tree.path().join("proc")).unwrap();
        fs::write(tree.path().join("proc/cmdline"), cmdline).unwrap();
    }
    let calls = fs::read_to_string(case.join("call"))
        .unwrap_or_else(|_| "plan\nplan --format json\n".into());
    let mut out = String::new();
    for call in calls.lines() {
        let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
            .args(call.split_ascii_whitespace())
            .arg("--root")
            .arg(tree.path())
            .output()
            .unwrap();
        writeln!(out, "$ ibboot {call}").unwrap();
        out.push_str(&String::from_utf8(run.stdout).unwrap());
        for line in String::from_utf8(run.stderr).unwrap().lines() {
            writeln!(out, "stderr: {line}").unwrap();
        }
        writeln!(out, "exit {}", run.status.code().unwrap()).unwrap();
    }
    out.replace(&tree.path().display().to_string(), "TREE")
}

fn folders(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut folders: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn all_in(directory: &str, at_least: usize) {
    let bless = std::env::var_os("BLESS").is_some();
    let cases = folders(directory);
    assert!(
        cases.len() >= at_least,
        "{directory} has only {} cases",
        cases.len()
    );
    let mut failed = Vec::new();
    for case in &cases {
        let seen = outcome(case);
        let file = case.join("expected");
        if bless {
            fs::write(&file, &seen).unwrap();
            continue;
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if seen != expected {
            let first = expected
                .lines()
                .zip(seen.lines())
                .position(|(a, b)| a != b)
                .unwrap_or_else(|| expected.lines().count().min(seen.lines().count()));
            failed.push(format!(
                "{}: line {}\n  expected: {}\n  seen:     {}",
                case.display(),
                first + 1,
                expected.lines().nth(first).unwrap_or("(nothing)"),
                seen.lines().nth(first).unwrap_or("(nothing)"),
            ));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} differ:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}

#[test]
fn every_case_prints_what_is_expected() {
    all_in("tests/cases", 30);
}

#[test]
fn every_example_command_line_gives_its_plan() {
    all_in("kernel-cmdline/examples", 16);
}
