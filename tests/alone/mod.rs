// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test in namespaces of its own.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::skip;

/// Runs `test` on a thread with new namespaces, with a file system of each type at its place.
/// Without root, prints that the test was skipped.
pub fn run(
    name: &str,
    flags: CloneFlags,
    mounts: &'static [(&'static str, &'static str)],
    test: impl FnOnce() + Send + 'static,
) {
    if skip::without_root(name) {
        return;
    }
    // A panic and a skipped test are reported with the name of the test.
    let thread = std::thread::current();
    let named = std::thread::Builder::new().name(thread.name().unwrap_or(name).to_owned());
    let spawned = named.spawn(move || {
        unshare(flags).expect("unshare");
        let none = None::<&str>;
        if flags.contains(CloneFlags::CLONE_NEWNS) {
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        }
        for &(kind, place) in mounts {
            mount(Some(kind), place, Some(kind), MsFlags::empty(), none).unwrap();
        }
        test();
    });
    let joined = spawned.expect("a thread").join();
    joined.expect("the test's thread panicked");
}
