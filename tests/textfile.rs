// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot check --textfile`: the file that node_exporter's textfile collector reads.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// `ibboot check` on a saved machine that has nothing to compare with.
fn check(arguments: &[&str]) -> Output {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibboot"));
    command.arg("--root").arg(tree).arg("check").args(arguments);
    command.output().unwrap()
}

#[test]
fn the_file_is_replaced_and_follows_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (
        folder.path().join("ibboot.prom"),
        folder.path().join("other"),
    );
    fs::write(&other, "untouched").unwrap();
    symlink(&other, &file).unwrap();
    let run = check(&["--format", "nhc", "--textfile", file.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(1));
    let gauges = check(&["--format", "prom"]).stdout;
    assert!(gauges.starts_with(b"# HELP ibboot_status"));
    assert_eq!(fs::read(&file).unwrap(), gauges);
    let found = fs::symlink_metadata(&file).unwrap();
    assert_eq!(found.permissions().mode() & 0o7777, 0o644);
    assert!(found.is_file());
    assert_eq!(fs::read_to_string(&other).unwrap(), "untouched");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_file_that_cannot_be_written_is_not_ok() {
    let run = check(&["--format", "journal", "--textfile", "/no/such/ibboot.prom"]);
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(
        said,
        "ibboot: /no/such: cannot be opened: No such file or directory\n"
    );
    let run = check(&["--textfile", "/"]);
    assert_eq!(run.status.code(), Some(3));
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(said, "ibboot: --textfile: is not the name of a file\n");
}

#[test]
fn the_file_is_written_although_the_output_goes_to_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ibboot.prom");
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr");
    let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
        .args(["check", "--format", "prom", "--textfile"])
        .arg(&file)
        .arg("--root")
        .arg(tree)
        .stdout(fs::File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(3));
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(
        said.ends_with("ibboot: stdout: cannot be written: No space left on device\n"),
        "{said}"
    );
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains("ibboot_status 3")
    );
}

#[test]
fn a_device_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stdout");
    symlink("/proc/self/fd/1", &file).unwrap();
    let run = check(&["--textfile", file.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(3));
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(
        said,
        "ibboot: --textfile: node_exporter does not read this file: stdout, expected a name that \
         ends in .prom\n"
    );
    assert!(file.is_symlink());
}
