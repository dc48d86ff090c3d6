// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder is a test: tests/cases/SUBJECT/NAME and kernel-cmdline/examples/NAME.
//!
//! Its file `case` has a header and a session. `machine:` names trees of tests/sys, each laid over
//! those before; `tree/` lies over them all; `cmdline:`, where it stands, is the machine's
//! /proc/cmdline. Behind a blank line is the session: calls of the program (without `--root`), each
//! with its stdout, its stderr and its exit code. BLESS=1 writes what the calls print anew, and
//! CASE=NAME runs the cases that have NAME in `SUBJECT/NAME`.

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
            // A directory in place of a file cannot be read as one.
            if target.is_file() {
                fs::remove_file(&target).unwrap();
            }
            copy(&entry.path(), &target);
        } else if kind.is_symlink() {
            let link = fs::read_link(entry.path()).unwrap();
            std::os::unix::fs::symlink(link, &target).unwrap();
        } else {
            fs::write(&target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// A saved machine, and what the program prints on it.
struct Case {
    folder: PathBuf,
    /// `SUBJECT/NAME`, of an example `NAME`.
    name: String,
    /// The header with the blank line behind it.
    header: Vec<u8>,
    machine: Vec<String>,
    cmdline: Option<Vec<u8>>,
    session: String,
}

impl Case {
    fn read(folder: PathBuf, name: String) -> Case {
        let bytes = fs::read(folder.join("case")).unwrap();
        let end = bytes.windows(2).position(|two| two == b"\n\n");
        let end = end.unwrap_or_else(|| panic!("{name}: no blank line behind the header"));
        let (header, session) = bytes.split_at(end + 2);
        let (mut machine, mut cmdline) = (None, None);
        for line in header[..end].split(|byte| *byte == b'\n') {
            if let Some(trees) = line.strip_prefix(b"machine: ") {
                let trees = String::from_utf8(trees.to_vec()).unwrap();
                machine = Some(trees.split(' ').map(str::to_owned).collect());
            } else if let Some(text) = line.strip_prefix(b"cmdline:") {
                let text = text.strip_prefix(b" ").unwrap_or(text);
                cmdline = Some([text, b"\n"].concat());
            } else {
                panic!("{name}: {}", String::from_utf8_lossy(line));
            }
        }
        Case {
            machine: machine.unwrap_or_else(|| panic!("{name}: no machine")),
            cmdline,
            session: String::from_utf8(session.to_vec()).unwrap(),
            header: header.to_vec(),
            folder,
            name,
        }
    }

    fn called(name: &str) -> Case {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(CASES).join(name);
        Case::read(folder, name.to_owned())
    }

    /// The tree of the machine.
    fn tree(&self) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        for layer in &self.machine {
            copy(&tests.join("sys").join(layer), tree.path());
        }
        if self.folder.join("tree").exists() {
            copy(&self.folder.join("tree"), tree.path());
        }
        if let Some(cmdline) = &self.cmdline {
            fs::create_dir_all(tree.path().join("proc")).unwrap();
            fs::write(tree.path().join("proc/cmdline"), cmdline).unwrap();
        }
        tree
    }

    /// The session anew: each call, its stdout, its stderr and its exit code.
    fn play(&self) -> String {
        let tree = self.tree();
        let mut out = String::new();
        let calls = self.session.lines();
        for call in calls.filter_map(|line| line.strip_prefix("$ ibboot")) {
            let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
                .args(call.split_ascii_whitespace())
                .arg("--root")
                .arg(tree.path())
                .output()
                .unwrap();
            writeln!(out, "$ ibboot{call}").unwrap();
            out.push_str(&String::from_utf8(run.stdout).unwrap());
            for line in String::from_utf8(run.stderr).unwrap().lines() {
                writeln!(out, "stderr: {line}").unwrap();
            }
            writeln!(out, "exit {}", run.status.code().unwrap()).unwrap();
        }
        assert!(!out.is_empty(), "{}: no call", self.name);
        out.replace(&tree.path().display().to_string(), "TREE")
    }
}

const CASES: &str = "tests/cases";
const EXAMPLES: &str = "kernel-cmdline/examples";

/// The cases at or below `folder`, sorted by name; what is not named is not a case.
fn cases_below(folder: &Path, name: &str) -> Vec<Case> {
    if folder.join("case").exists() {
        return vec![Case::read(folder.to_owned(), name.to_owned())];
    }
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut folders: Vec<_> = entries.filter(|entry| entry.path().is_dir()).collect();
    assert!(!folders.is_empty(), "{name}: no file `case`");
    folders.sort_by_key(fs::DirEntry::file_name);
    let below = folders.into_iter().flat_map(|entry| {
        let inner = entry.file_name().into_string().unwrap();
        cases_below(
            &entry.path(),
            format!("{name}/{inner}").trim_start_matches('/'),
        )
    });
    below.collect()
}

fn cases_in(directory: &str) -> Vec<Case> {
    cases_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), "")
}

/// The first line that is another one.
fn difference(case: &Case, found: &str) -> String {
    let mut lines = case.session.lines().zip(found.lines());
    let first = lines.position(|(a, b)| a != b).unwrap_or_else(|| {
        let common = case.session.lines().count();
        common.min(found.lines().count())
    });
    format!(
        "{}: line {} of the session\n  expected: {}\n  found:    {}",
        case.name,
        first + 1,
        case.session.lines().nth(first).unwrap_or("(nothing)"),
        found.lines().nth(first).unwrap_or("(nothing)"),
    )
}

fn all_in(directory: &str, at_least: usize) {
    let bless = std::env::var_os("BLESS").is_some();
    let mut cases = cases_in(directory);
    let count = cases.len();
    assert!(count >= at_least, "{directory} has only {count} cases");
    if let Ok(name) = std::env::var("CASE") {
        let mut known = [CASES, EXAMPLES].into_iter().flat_map(cases_in);
        let is_known = known.any(|case| case.name.contains(&name));
        assert!(is_known, "no case is called {name}");
        cases.retain(|case| case.name.contains(&name));
    }
    let mut failed = Vec::new();
    for case in &cases {
        let found = case.play();
        if bless {
            let text = [case.header.as_slice(), found.as_bytes()].concat();
            fs::write(case.folder.join("case"), text).unwrap();
        } else if found != case.session {
            failed.push(difference(case, &found));
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
const GOOD: [&str; 16] = [
    "ipoib/as-requested",
    "ipoib/child",
    "bond/verified",
    "root/over-rdma",
    "root/by-iser",
    "root/by-nvme",
    "addresses/ipv6-of-a-router",
    "dhcp6/holds",
    "dhcp6/either6-with-a-lease",
    "ports/as-handed-over",
    "root/by-iscsi-of-two-servers",
    "sa/sm-answers",
    "ports/by-command-line",
    "soft-links/check",
    "census/device-in-other-netns",
    "degraded/slot-of-a-virtual-machine",
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
        .args(["check", "--all", "--root"])
        .arg(tree)
        .output()
        .unwrap();
    let said = [run.stdout, run.stderr].concat();
    (run.status.code().unwrap(), String::from_utf8(said).unwrap())
}

/// The names of the checks of links and of the root file system.
fn names(said: &str) -> Vec<&str> {
    let rows = said.lines().filter(|line| line.starts_with("  "));
    rows.filter_map(|row| row.split_whitespace().nth(1))
        .collect()
}

/// A file or directory that cannot be read (EISDIR, ENOTDIR) leaves every check as it is, or makes
/// the check unknown with the name of that file. It never makes a check fail, and hides none.
#[test]
fn what_cannot_be_read_is_unknown_and_named() {
    let (mut same, mut unknown) = (0, 0);
    for name in GOOD {
        let tree = Case::called(name).tree();
        let tree = tree.path();
        let (code, all_read) = check(tree);
        assert_eq!(code, 0, "{name}");
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
            // What a subnet manager would answer is no file of the machine.
            let is_answer = shown == "ibboot-sm.json";
            match code {
                0 if is_answer || names(&said) == names(&all_read) => same += 1,
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
    let tree = Case::called("ipoib/as-requested").tree();
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

/// Their saved trees differ in a text: the column of an argument behind one that is shortened, and the
/// error of a file of which nothing is saved.
const TOLD_DIFFERENTLY: [&str; 3] = [
    "arguments/many-wrong",
    "arguments/secrets-are-not-shown",
    "unread/state-that-does-not-parse",
];

/// A saved tree gives the same answers as the machine, and src/survey/saved.rs knows each path in it.
#[test]
fn every_saved_tree_gives_the_same_answers() {
    let cases = cases_in(CASES);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for part in cases.chunks(cases.len().div_ceil(threads)) {
            scope.spawn(|| part.iter().for_each(gives_the_same_answers_saved));
        }
    });
}

fn gives_the_same_answers_saved(case: &Case) {
    let tree = case.tree();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let run = |root: &Path, call: &str| {
        let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
            .args(call.split(' '))
            .arg("--root")
            .arg(root)
            .output()
            .unwrap();
        let stdout = String::from_utf8(run.stdout).unwrap();
        (run.status.code(), stdout)
    };
    run(tree.path(), &format!("facts --tree {}", copy.display()));
    let mut all = Vec::new();
    all_below(&copy, &mut all);
    for path in all {
        let inside = path.strip_prefix(&copy).unwrap();
        let has_content = !path.is_dir() || !tree.path().join(inside).is_file();
        assert!(
            has_content,
            "{}: {} is not saved",
            case.name,
            inside.display()
        );
    }
    for call in ["check --all", "up --dry-run", "plan"] {
        let (mut machine, mut saved) = (run(tree.path(), call), run(&copy, call));
        if TOLD_DIFFERENTLY.contains(&case.name.as_str()) {
            (machine.1, saved.1) = Default::default();
        }
        assert_eq!(saved, machine, "{}: {call}", case.name);
    }
}

/// `suggest` on these machines; together they have every argument that it writes.
const SUGGESTED: [&str; 14] = [
    "suggest/one-static-port",
    "suggest/two-ports",
    "suggest/partition",
    "suggest/parent-without-carrier",
    "suggest/bond",
    "suggest/networkd",
    "suggest/lease-with-the-guid",
    "suggest/dhcp-by-networkmanager",
    "suggest/roce-only",
    "suggest/ports-without-addresses",
    "ipoib/as-requested",
    "ipoib/child",
    "bond/verified",
    "root/over-rdma",
];

/// `plan` accepts what `suggest` writes, carries out every argument of it, and expects what the
/// machine has: `check` finds no difference.
#[test]
fn a_suggested_line_describes_the_machine() {
    for name in SUGGESTED {
        let tree = Case::called(name).tree();
        let run = |arguments: &[&str]| {
            let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
                .args(arguments)
                .arg("--root")
                .arg(tree.path())
                .output()
                .unwrap();
            let stdout = String::from_utf8(run.stdout).unwrap();
            (run.status.code().unwrap(), stdout)
        };
        let (code, line) = run(&["suggest", "--format", "line"]);
        assert_eq!(code, 0, "{name}: {line}");
        let line = line.trim();
        let (code, plan) = run(&["plan", "--format", "json", "--cmdline", line]);
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        assert_eq!(code, 0, "{name}: {line}\n{plan:#}");
        let tokens = plan["tokens"].as_array().unwrap();
        assert_eq!(tokens.len(), line.split(' ').count(), "{name}");
        for token in tokens {
            assert_eq!(token["fate"], "step", "{name}: {token:#}");
        }
        assert_eq!(plan["left"], serde_json::json!([]), "{name}");
        assert_eq!(plan["notes"], serde_json::Value::Null, "{name}");
        // A lease is in no file of the kernel.
        if !line.contains("dhcp") {
            let (code, report) = run(&["check", "--all", "--cmdline", line]);
            assert_eq!(code, 0, "{name}: {line}\n{report}");
        }
    }
}
