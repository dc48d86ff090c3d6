// SPDX-License-Identifier: MIT OR Apache-2.0
//! A full or closed stderr, or one without a reader, changes neither the results nor the exit code;
//! a full stdout is an error.

#![allow(clippy::unwrap_used)]

mod skip;

use std::fs;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use ibboot::system::directory::Directory;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

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
fn an_error_that_cannot_be_written_keeps_its_exit_code() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (arguments, code) in [
        (&["check", "--root", empty][..], 3),
        (&["timeline", "--root", empty], 3),
        (&["plan", "--root", empty], 1),
        (&["facts", "--root", "/nonexistent"], 64),
        (&["bogus"], 64),
    ] {
        let output = run(arguments, Stdio::piped());
        assert!(output.stderr.starts_with(b"ibboot: "), "{output:?}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let full = run(arguments, full());
        assert_eq!(full.status.code(), Some(code), "{arguments:?} >/dev/full");
        let unread = run(arguments, without_reader());
        assert_eq!(unread.status.code(), Some(code), "{arguments:?} | true");
    }
}

#[test]
fn a_command_with_a_limit_is_carried_out_once_if_stdout_is_full() {
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sys/connectx6-hdr");
    let folder = tempfile::tempdir().unwrap();
    // A directory that exists would be another error.
    let copy = folder.path().join("tree");
    let facts = ["facts", "--root", tree, "--tree", copy.to_str().unwrap()];
    let port = ["check", "--root", tree, "--cmdline=rd.ib.require=mlx5_0:1"];
    let nhc = [&port[..], &["--format=nhc"]].concat();
    for (command, code) in [(&facts[..], 1), (&port, 3), (&nhc, 1)] {
        let run = Command::new(env!("CARGO_BIN_EXE_ibboot"))
            .args(["--limit", "60"])
            .args(command)
            .stdout(full())
            .output()
            .unwrap();
        let found = (run.status.code(), String::from_utf8(run.stderr).unwrap());
        let why = "ibboot: stdout: cannot be written: No space left on device\n";
        assert_eq!(found, (Some(code), why.to_owned()), "{command:?}");
    }
    assert!(copy.is_dir());
}

#[test]
fn a_tree_that_does_not_exist_is_wrong_usage() {
    let run = run(&["status", "--root=/nonexistent"], Stdio::piped());
    assert_eq!((run.status.code(), &run.stdout[..]), (Some(64), &b""[..]));
    assert_eq!(
        String::from_utf8(run.stderr).unwrap(),
        "ibboot: --root: /nonexistent: not a directory that can be read: expected what ibboot facts --tree saved, \
         or ibboot-report of an archive of ibboot report\n"
    );
}

#[test]
fn a_log_line_that_cannot_be_written_keeps_the_result() {
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
    let (expected, log) = facts(Stdio::piped());
    assert!(log.starts_with("ibboot: INFO  "), "{log}");
    assert!(log.ends_with(" files saved\n"), "{log}");
    assert_eq!(facts(full().into()), (expected.clone(), String::new()));
    assert_eq!(facts(without_reader().into()), (expected, String::new()));
}

/// A stderr that accepts 8 bytes and no more, like the full socket of a log daemon: after a
/// successful write the next one can still fail.
fn with_room_for_a_word() -> (std::io::PipeReader, std::io::PipeWriter) {
    const ROOM: usize = "ibboot: ".len();
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    // The kernel rounds the size up to a page, and writes continue in the last page.
    let size = fcntl(&writer, FcntlArg::F_SETPIPE_SZ(1)).unwrap();
    let filled = usize::try_from(size).unwrap() - ROOM;
    writer.write_all(&vec![b'.'; filled]).unwrap();
    (reader, writer)
}

#[test]
fn a_second_write_that_fails_does_not_end_the_program() {
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sys/connectx6-hdr");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("tree");
    let facts = [
        "-v",
        "facts",
        "--root",
        tree,
        "--tree",
        copy.to_str().unwrap(),
    ];
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (arguments, code) in [
        (&facts[..], 0),
        (&["check", "--root", empty], 3),
        (&["plan", "--root", empty], 1),
    ] {
        let (mut reader, writer) = with_room_for_a_word();
        let run = run(arguments, writer);
        assert_eq!(run.status.code(), Some(code), "{arguments:?}");
        let mut log = String::new();
        reader.read_to_string(&mut log).unwrap();
        assert!(!log.contains("internal error"), "{log}");
    }
}

/// The program that runs for the life of the machine.
#[test]
fn a_lease_is_kept_or_released_for_any_stderr() {
    if skip::without_root("lease without stderr") {
        return;
    }
    // A thread with a private /run reads on this machine.
    let lease = || {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none).unwrap();
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let state = format!(
            r#"{{"schema":1,"ibboot":"test","boot_id":"{}","outcome":"verified","reason":null,
                "handover":"nm","links":[],"failures":[],"marks":[]}}"#,
            boot_id.trim()
        );
        let directory = Directory::open().unwrap();
        directory.write("state.json", state.as_bytes()).unwrap();
        let heard = run(&["lease"], Stdio::piped());
        assert_eq!(
            String::from_utf8(heard.stderr).unwrap(),
            "ibboot: INFO  rd.ib.handover=nm: nm renews the leases\n"
        );
        assert_eq!(heard.status.code(), Some(0));
        let (_reader, writer) = with_room_for_a_word();
        for stderr in [full().into(), without_reader().into(), Stdio::from(writer)] {
            assert_eq!(run(&["lease"], stderr).status.code(), Some(0));
        }
    };
    std::thread::spawn(lease).join().unwrap();
}
