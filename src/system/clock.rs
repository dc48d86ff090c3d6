// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time since the kernel started: the clock that the initramfs and the real root share.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds per second.
pub const SECOND: u64 = 1_000_000_000;

/// Nanoseconds since kernel start, suspend included (`CLOCK_BOOTTIME`, clock_gettime(2)); 0 if the
/// kernel has no such clock.
pub fn boottime_ns() -> u64 {
    match clock_gettime(ClockId::CLOCK_BOOTTIME) {
        Ok(t) => u64::try_from(t.tv_sec())
            .unwrap_or(0)
            .saturating_mul(SECOND)
            .saturating_add(u64::try_from(t.tv_nsec()).unwrap_or(0)),
        Err(_) => 0,
    }
}

/// Formats nanoseconds as seconds with three decimals: `8.604`.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / SECOND, ns / 1_000_000 % 1000)
}
