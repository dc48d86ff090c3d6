// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder is a test: tests/cases/NN-name and kernel-cmdline/examples/name.
//!
//! `base` names trees of tests/sys, one a line, each laid over those before; `tree/` lies over them all; `cmdline` becomes its /proc/cmdline;
//! `call` has one call of the program per line (without `--root`). What they print must be
//! `expected`: each call, its stdout, its stderr and its exit code. BLESS=1 writes it anew, and
//! CASE=NAME runs the cases that have NAME in theirs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

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

/// Builds the machine of a case.
fn machine(case: &Path) -> tempfile::TempDir {
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
    tree
}

/// The output of all calls of a case.
fn outcome(case: &Path) -> String {
    let tree = machine(case);
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

const CASES: &str = "tests/cases";
const EXAMPLES: &str = "kernel-cmdline/examples";

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
    let mut cases = folders(directory);
    assert!(
        cases.len() >= at_least,
        "{directory} has only {} cases",
        cases.len()
    );
    if let Ok(name) = std::env::var("CASE") {
        let is_it = |case: &PathBuf| case.file_name().unwrap().to_string_lossy().contains(&name);
        let mut known = [CASES, EXAMPLES].into_iter().flat_map(folders);
        assert!(known.any(|case| is_it(&case)), "no case is called {name}");
        cases.retain(is_it);
    }
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
    all_in(CASES, 30);
}

#[test]
fn every_example_command_line_gives_its_plan() {
    all_in(EXAMPLES, 16);
}

/// Cases whose check is ok; together they have every kind of check.
const GOOD: [&str; 14] = [
    "100-ipoib-as-wanted",
    "107-ipoib-child",
    "180-bond",
    "200-root-over-rdma",
    "210-root-by-iser",
    "215-root-by-nvme",
    "220-ipv6-of-a-router",
    "231-lease6-holds",
    "232-either6-with-a-lease",
    "40-as-handed-over",
    "235-root-by-iscsi-of-two-servers",
    "238-sm-answers",
    "65-by-command-line",
    "70-soft-roce",
];

/// Files and directories below `directory`, without links.
fn all_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            all_below(&path, found);
        }
        found.push(path);
    }
}

/// Exit code and output of a check.
fn check(tree: &Path) -> (i32, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
        .args(["check", "--root"])
        .arg(tree)
        .output()
        .unwrap();
    let said = [run.stdout, run.stderr].concat();
    (run.status.code().unwrap(), String::from_utf8(said).unwrap())
}

/// A file or directory that cannot be read (EISDIR, ENOTDIR) does not change the check, or makes
/// the check unknown with the name of that file. It never makes a check fail.
#[test]
fn what_cannot_be_read_is_unknown_and_named() {
    let (mut same, mut unknown) = (0, 0);
    for name in GOOD {
        let case = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/cases")
            .join(name);
        let tree = machine(&case);
        let tree = tree.path();
        assert_eq!(check(tree).0, 0, "{name}");
        let mut all = Vec::new();
        all_below(tree, &mut all);
        for path in all {
            let aside = tree.with_extension("aside");
            fs::rename(&path, &aside).unwrap();
            if aside.is_dir() {
                fs::write(&path, "").unwrap();
            } else {
                fs::create_dir(&path).unwrap();
            }
            let (code, said) = check(tree);
            if aside.is_dir() {
                fs::remove_file(&path).unwrap();
            } else {
                fs::remove_dir(&path).unwrap();
            }
            fs::rename(&aside, &path).unwrap();
            let shown = path.strip_prefix(tree).unwrap().to_str().unwrap();
            let what = format!("{name}: /{shown}:\n{said}");
            match code {
                0 => same += 1,
                3 => unknown += 1,
                _ => panic!("exit {code}: {what}"),
            }
            // Links lead to the file by another name.
            let is_named = said.contains(&format!("/{shown}")) || shown.starts_with("sys/devices");
            assert!(code == 0 || is_named, "{what}");
            assert!(
                !said.contains("CRITICAL") && !said.contains("WARNING"),
                "{what}"
            );
        }
    }
    assert!(same > 500 && unknown > 300, "{same} {unknown}");
}

/// A saved tree of a machine with unreadable files gives the same answers as the machine.
#[test]
fn a_copy_knows_what_could_not_be_read() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let tree = machine(&cases.join("100-ipoib-as-wanted"));
    let class = tree.path().join("sys/class");
    for file in [
        "net/ib0/mtu",
        "net/ib1/carrier",
        "infiniband/mlx5_0/ports/1/rate",
    ] {
        fs::remove_file(class.join(file)).unwrap();
        fs::create_dir(class.join(file)).unwrap();
    }
    fs::create_dir(class.join("infiniband/mlx5_7")).unwrap();
    fs::write(class.join("infiniband/mlx5_7/ports"), "").unwrap();
    let facts = |root: &Path, more: &[&str]| {
        let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
            .args([&["facts", "--root", root.to_str().unwrap()], more].concat())
            .output()
            .unwrap();
        String::from_utf8(run.stdout).unwrap()
    };
    let copy = tree.path().with_extension("copy");
    let seen = facts(tree.path(), &["--tree", copy.to_str().unwrap()]);
    let again = facts(&copy, &[]);
    let checked = (check(tree.path()), check(&copy));
    fs::remove_dir_all(&copy).unwrap();
    let json = |text: &str| -> serde_json::Value { serde_json::from_str(text).unwrap() };
    let sorted = |mut facts: serde_json::Value| {
        let unread = facts["unread"].as_array_mut().unwrap();
        unread.sort_by_key(|one| one["path"].to_string());
        facts
    };
    assert_eq!(json(&seen)["unread"].as_array().unwrap().len(), 4, "{seen}");
    assert_eq!(sorted(json(&again)), sorted(json(&seen)));
    assert_eq!(checked.0, checked.1);
}
