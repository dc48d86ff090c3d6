// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real kernel in private namespaces: rtnetlink in an empty network, and the files and workers
//! of `up` on a private /run. Needs root; without root each test reports that it was skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "machine/files.rs"]
mod files;
mod pace;
#[path = "machine/rtnetlink.rs"]
mod rtnetlink;
mod skip;
#[path = "machine/workers.rs"]
mod workers;

use std::process::Command;

use ibboot::system::decoder;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;

const IBBOOT: &str = env!("CARGO_BIN_EXE_ibboot");

/// Runs `test` on a thread with its own namespaces. Without root, prints that the test was skipped.
fn alone(name: &str, flags: CloneFlags, test: impl FnOnce() + Send + 'static) {
    decoder::use_program(IBBOOT.into());
    if skip::without_root(name) {
        return;
    }
    // A panic and a skipped test are reported with the name of the test.
    let thread = std::thread::current();
    let named = std::thread::Builder::new().name(thread.name().unwrap_or(name).to_owned());
    let spawned = named.spawn(move || {
        unshare(flags).expect("unshare");
        test();
    });
    let joined = spawned.expect("a thread").join();
    joined.expect("the test's thread panicked");
}

/// The output of `ip`.
fn ip(arguments: &str) -> String {
    let run = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .expect("ip");
    let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "ip {arguments}: {stderr}");
    String::from_utf8(run.stdout).expect("text")
}

/// The index of an interface, as `ip` shows it.
fn index_of(name: &str) -> u32 {
    let json: Value = serde_json::from_str(&ip(&format!("-j link show {name}"))).unwrap();
    u32::try_from(json[0]["ifindex"].as_u64().unwrap()).unwrap()
}

/// Runs `test` with its own mounts and an empty /run.
fn on_own_run(name: &str, test: impl FnOnce() + Send + 'static) {
    alone(name, CloneFlags::CLONE_NEWNS, move || {
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none).unwrap();
        test();
    });
}
