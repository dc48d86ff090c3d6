// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a test waits for what must come. A busy or slow machine is no fault: the limit is a multiple of what a
//! measured piece of work takes on this host, at that time. qemu/bootcase/pace.py is the same for boot cases.

use std::process::Command;
use std::time::{Duration, Instant};

/// What work.sh takes on a machine of 2020 that has nothing else to do.
const IDLE: Duration = Duration::from_millis(200);
/// What hangs ends too, on any host.
const MOST: u32 = 10;
const WORK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pace/work.sh");

/// How many times slower than an idle machine this host is now: 1 to [`MOST`].
pub fn now() -> u32 {
    let began = Instant::now();
    let run = Command::new("sh").arg(WORK).status().expect("sh");
    assert!(run.success(), "{WORK}: {run}");
    factor(began.elapsed())
}

fn factor(took: Duration) -> u32 {
    let times = took.as_nanos().div_ceil(IDLE.as_nanos());
    u32::try_from(times).unwrap_or(MOST).clamp(1, MOST)
}

/// A limit in seconds of an idle machine. The host is measured only when they are over.
pub struct Limit {
    began: Instant,
    idle: Duration,
    times: u32,
}

impl Limit {
    pub fn seconds(idle: u64) -> Limit {
        Limit {
            began: Instant::now(),
            idle: Duration::from_secs(idle),
            times: 1,
        }
    }

    /// What is left before the host is to be asked; zero: [`Limit::is_over`] asks it.
    pub fn left(&self) -> Duration {
        (self.idle * self.times).saturating_sub(self.began.elapsed())
    }

    pub fn is_over(&mut self) -> bool {
        if self.left().is_zero() {
            self.times = self.times.max(now());
        }
        self.left().is_zero()
    }
}

#[test]
fn a_busy_host_has_more_time_and_not_for_ever() {
    for (took, times) in [(0, 1), (200, 1), (201, 2), (700, 4), (600_000, MOST)] {
        assert_eq!(factor(Duration::from_millis(took)), times, "{took} ms");
    }
    let mut limit = Limit::seconds(3600);
    assert!(!limit.is_over() && limit.left() > Duration::from_secs(3000));
    limit.idle = Duration::ZERO;
    assert!(limit.is_over());
}
