// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes, in up to four sources (a byte 0xff begins the next one).
#![no_main]

#[path = "../../tests/common/invariants.rs"]
mod invariants;

use kernel_cmdline::Source;
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 4] = ["/etc/cmdline", "/proc/cmdline", "third", "fourth"];

fuzz_target!(|data: &[u8]| {
    let parts = data.splitn(NAMES.len(), |&byte| byte == 0xff);
    let sources: Vec<_> = NAMES
        .into_iter()
        .zip(parts)
        .map(|(name, bytes)| Source::new(name, bytes))
        .collect();
    invariants::check(&sources);
});
