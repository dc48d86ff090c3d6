// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client of `up`, of DHCP or DHCPv6, and how long it asks: `rd.net.timeout.dhcp=` as often as
//! `rd.net.dhcp.retry=` says.

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

    /// No more of them: what is asked for is not needed.
    pub fn give_up(&mut self) {
        self.ends = None;
        self.gave_up = true;
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
            self.give_up();
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

/// A client on an interface.
pub trait Asks {
    /// Does what is due by now.
    fn wake(&mut self);
    /// Asks anew, for any address.
    fn start_anew(&mut self);
    /// Something is granted.
    fn has_lease(&self) -> bool;
    /// When [`Asks::wake`] is wanted, ns since kernel start.
    fn due(&self) -> Option<u64>;
}

/// A client with its tries.
#[derive(Debug)]
pub struct Running<W, S> {
    /// What is wanted of it.
    pub wish: W,
    /// The client.
    pub session: S,
    /// Since when it asks, ns since kernel start.
    pub began_ns: u64,
    /// How long it asks.
    pub tries: Tries,
    /// The timeline has its lease.
    pub is_marked: bool,
}

impl<W, S: Asks> Running<W, S> {
    /// It asks from now on.
    pub fn new(wish: W, session: S, tries: Tries) -> Running<W, S> {
        Running {
            wish,
            session,
            began_ns: boottime_ns(),
            tries,
            is_marked: false,
        }
    }

    /// Does what is due: the client's own, and the end of a try.
    pub fn go_on(&mut self) {
        if !self.tries.gave_up() {
            self.session.wake();
        }
        if self.tries.is_next(Instant::now(), self.session.has_lease()) {
            self.session.start_anew();
        }
    }

    /// When something is due.
    pub fn due(&self) -> Option<Instant> {
        self.tries.due(self.session.due(), self.session.has_lease())
    }
}
