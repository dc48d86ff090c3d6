// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: how long a DHCP or DHCPv6 client tries: `rd.net.dhcp.retry=` tries of
//! `rd.net.timeout.dhcp=` seconds each.

use std::time::Duration;

use tokio::time::Instant;

/// The tries of one client.
#[derive(Debug)]
pub struct Tries {
    limit: Option<Duration>,
    remaining: u32,
    /// When this try ends; none: never.
    ends: Option<Instant>,
    gave_up: bool,
}

impl Tries {
    /// Begins the first try. `limit_s` is in seconds; without a limit a try does not end.
    pub fn begin(limit_s: Option<u32>, tries: u32, now: Instant) -> Tries {
        let mut tries = Tries {
            limit: limit_s.map(u64::from).map(Duration::from_secs),
            remaining: tries.max(1),
            ends: None,
            gave_up: false,
        };
        tries.next(now);
        tries
    }

    fn next(&mut self, now: Instant) {
        self.remaining = self.remaining.saturating_sub(1);
        self.prolong(now);
    }

    /// Restarts the time of this try, after a lease was lost.
    pub fn prolong(&mut self, now: Instant) {
        self.ends = self.limit.map(|limit| now + limit);
    }

    /// Ends all tries.
    pub fn give_up(&mut self) {
        self.ends = None;
        self.gave_up = true;
    }

    /// True: no tries are left.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Begins the next try (true) if the time of this one is over; after the last one it gives up.
    pub fn advance(&mut self, now: Instant, has_lease: bool) -> bool {
        let is_over = self.ends.is_some_and(|ends| now >= ends);
        if !is_over || has_lease {
            return false;
        }
        if self.remaining == 0 {
            self.give_up();
            return false;
        }
        self.next(now);
        true
    }

    /// When the try ends; none: never, or the client has a lease.
    pub fn due(&self, has_lease: bool) -> Option<Instant> {
        self.ends.filter(|_| !has_lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn each_try_has_its_time_and_after_the_last_one_the_client_gives_up() {
        let now = Instant::now();
        let mut tries = Tries::begin(Some(10), 2, now);
        assert_eq!(tries.due(false), Some(now + LIMIT));
        assert!(!tries.advance(now, false));
        assert!(tries.advance(now + LIMIT, false));
        assert_eq!(tries.due(false), Some(now + 2 * LIMIT));
        assert!(!tries.advance(now + LIMIT, false));
        assert!(!tries.gave_up());
        assert!(!tries.advance(now + 2 * LIMIT, false));
        assert!(tries.gave_up());
        assert_eq!(tries.due(false), None);
    }

    #[test]
    fn a_lease_stops_the_clock_and_its_loss_restarts_the_try() {
        let now = Instant::now();
        let mut tries = Tries::begin(Some(10), 1, now);
        assert_eq!(tries.due(true), None);
        assert!(!tries.advance(now + 2 * LIMIT, true));
        assert!(!tries.gave_up());
        tries.prolong(now + 2 * LIMIT);
        assert_eq!(tries.due(false), Some(now + 3 * LIMIT));
        assert!(!tries.advance(now + 3 * LIMIT, false));
        assert!(tries.gave_up());
    }

    #[test]
    fn without_a_limit_a_try_does_not_end_and_zero_tries_count_as_one() {
        let now = Instant::now();
        let mut tries = Tries::begin(None, 3, now);
        assert_eq!(tries.due(false), None);
        assert!(!tries.advance(now + 100 * LIMIT, false));
        tries.give_up();
        assert!(tries.gave_up());
        let mut none = Tries::begin(Some(10), 0, now);
        assert!(!none.advance(now + LIMIT, false));
        assert!(none.gave_up());
    }
}
