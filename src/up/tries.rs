// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long an address is asked for: `rd.net.timeout.dhcp=` as often as `rd.net.dhcp.retry=` says.

use std::time::Duration;

use tokio::time::Instant;

use crate::system::clock::boottime_ns;

/// The tries of one client.
#[derive(Debug)]
pub struct Tries {
    limit: Option<Duration>,
    left: u32,
    /// When this try ends; none: it does not.
    ends: Option<Instant>,
    gave_up: bool,
}

impl Tries {
    /// The first one begins now; without a limit in seconds it has no end.
    pub fn begin(limit_s: Option<u32>, tries: u32) -> Tries {
        let mut tries = Tries {
            limit: limit_s.map(u64::from).map(Duration::from_secs),
            left: tries.max(1),
            ends: None,
            gave_up: false,
        };
        tries.next();
        tries
    }

    fn next(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.prolong();
    }

    /// This try has all of its time again: a lease was there, and is lost.
    pub fn prolong(&mut self) {
        self.ends = self.limit.map(|limit| Instant::now() + limit);
    }

    /// All of them are over.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// True: the time of a try is up, and the next one begins now.
    pub fn is_next(&mut self, now: Instant, has_lease: bool) -> bool {
        let is_over = self.ends.is_some_and(|ends| now >= ends);
        if !is_over || has_lease {
            return false;
        }
        if self.left == 0 {
            self.ends = None;
            self.gave_up = true;
            return false;
        }
        self.next();
        true
    }

    /// When something is due: a client's own time, in ns since kernel start, or the end of a try.
    pub fn due(&self, client: Option<u64>, has_lease: bool) -> Option<Instant> {
        let client = client
            .filter(|_| !self.gave_up)
            .map(|due| Instant::now() + Duration::from_nanos(due.saturating_sub(boottime_ns())));
        let limit = self.ends.filter(|_| !has_lease);
        client.into_iter().chain(limit).min()
    }
}
