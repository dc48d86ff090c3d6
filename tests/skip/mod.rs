// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test that cannot run here reports that in one line. libtest counts the test as passed; tests/run
//! counts the test as skipped, once.

#![allow(clippy::print_stderr)]

use nix::unistd::geteuid;

/// Reports that the test that runs in this thread is skipped. `what`: its scene.
pub fn test(what: &str, why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("?");
    // In one piece: other threads print too.
    let line = format!("skipped: {name}: {what}: {why}\n");
    eprint!("{line}");
}

/// Whether this process is not root: then the test is skipped.
pub fn without_root(what: &str) -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        test(what, "root is needed for namespaces");
    }
    !is_root
}
