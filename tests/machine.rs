// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real kernel in private namespaces: rtnetlink in an empty network, and the files and workers
//! of `up` on a private /run. Needs root; without root each test reports that it was skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod alone;
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
use nix::sched::CloneFlags;
use serde_json::Value;

const IBBOOT: &str = env!("CARGO_BIN_EXE_ibboot");

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
    decoder::use_program(IBBOOT.into());
    alone::run(name, CloneFlags::CLONE_NEWNS, &[("tmpfs", "/run")], test);
}
