// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the state machine of a client (RFC 2131 4.4). Times, packets and ARP go in; the messages
//! to send come out. The state machine knows no clock and no socket.

mod answers;
mod probing;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::identity::Identity;
use super::lease::Lease;
use super::packet::Message;
use super::progress::State;
use crate::dhcp::brake::Brake;
use crate::dhcp::conduct::{CLOSE, IMPATIENT, REQUESTS, early, fate, may_hurry, spread};
use crate::dhcp::progress::{Counts, count};
use crate::dhcp::random::Random;
use crate::system::clock::SECOND;

/// The first wait before a retry; waits double up to [`LONGEST`]. A boot needs the first retry
/// soon; the later retries of a thousand nodes must spread out.
const SHORTEST: u64 = SECOND;
const LONGEST: u64 = 16 * SECOND;
/// The longest wait if no boot waits for the answer (RFC 2131 4.1).
const LONGEST_AFTER_BOOT: u64 = 64 * SECOND;
/// Unanswered REQUESTs for the address of an earlier lease (INIT-REBOOT).
const REBOOTS: u32 = 2;
/// Remembered servers that offered and did not deliver.
const SHUNNED: usize = 1024;
/// RENEW and REBIND are repeated no sooner than this (RFC 2131 4.4.5), unless the whole lease is
/// shorter.
const RENEW_APART: u64 = 60 * SECOND;

/// What does not change while a client runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Hardware and client identifier of the client.
    pub identity: Identity,
    /// Option 60.
    pub vendor_class: Option<String>,
    /// Option 12.
    pub host_name: Option<String>,
    /// The root file system depends on the address: the address is kept when the lease ends or is
    /// refused, and only the same address is accepted again.
    pub keep: bool,
    /// A boot waits for the lease: the waits stay short.
    pub boot_waits: bool,
}

/// Where a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To every host on the link, from this address.
    Link(Ipv4Addr),
    /// From the address of the lease to the server of the lease.
    Server {
        /// Own address.
        from: Ipv4Addr,
        /// The server.
        to: Ipv4Addr,
    },
}

/// What the caller must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Send(Message, Destination),
    /// Check by ARP whether another host has this address.
    Probe(Ipv4Addr),
    /// Announce this address on the link: another host claims the address.
    Defend(Ipv4Addr),
    /// A lease was granted or renewed: see [`Client::lease`].
    Bound,
    /// The probes ended, and no other host has this address.
    Unopposed(Ipv4Addr),
    /// Remove the address: the lease ended, or another host has the address.
    Lost(Ipv4Addr),
    /// Log this line as a warning.
    Warn(String),
}

/// A client of one interface.
#[derive(Debug)]
pub struct Client {
    config: Config,
    random: Random,
    state: State,
    /// When [`Client::wake`] must be called; none: only a message moves the client.
    due: Option<u64>,
    /// When the client started to look for a lease or to renew one, for `secs`.
    began: u64,
    secs: u16,
    xid: u32,
    /// The transaction before the current one: a late answer is not a foreign answer.
    former_xid: u32,
    /// Messages sent in this state.
    sent: u32,
    requested_ns: u64,
    /// The offers of this round; the client requests the first one.
    offers: Vec<Lease>,
    /// Offers of this round that competed for a place in `offers`.
    candidates: u64,
    /// Servers that offered and then did not deliver.
    shunned: BTreeSet<Ipv4Addr>,
    /// The address to request again.
    requested: Option<Ipv4Addr>,
    /// The lease that is or was granted and is on the interface.
    held: Option<Lease>,
    /// The held lease has ended, and its address is kept.
    has_ended: bool,
    declines: u32,
    naks: u32,
    /// When the address was last defended, ns since kernel start.
    defended_ns: Option<u64>,
    counts: Counts,
    /// Limits the log lines that other hosts can cause.
    brake: Brake,
    /// Limits the log lines about leases: unusable answers never silence these.
    of_lease: Brake,
}

impl Client {
    /// Creates a client that has not started. `seed` determines jitter and transaction numbers.
    pub fn new(config: Config, seed: u64) -> Client {
        Client {
            config,
            random: Random::new(seed),
            state: State::Waiting,
            due: None,
            began: 0,
            secs: 0,
            xid: 0,
            former_xid: 0,
            sent: 0,
            requested_ns: 0,
            offers: Vec::new(),
            candidates: 0,
            shunned: BTreeSet::new(),
            requested: None,
            held: None,
            has_ended: false,
            declines: 0,
            naks: 0,
            defended_ns: None,
            counts: Counts::default(),
            brake: Brake::default(),
            of_lease: Brake::default(),
        }
    }

    /// Starts the client. With `known`, the address of an earlier lease, the client first requests
    /// that address (INIT-REBOOT).
    pub fn start(&mut self, now_ns: u64, known: Option<Ipv4Addr>) -> Vec<Action> {
        self.began = now_ns;
        self.requested = known;
        match known {
            Some(_) => self.enter(now_ns, State::Rebooting),
            None => self.enter(now_ns, State::Selecting),
        }
    }

    /// Continues with a lease that another process obtained and that is on the interface. With
    /// `probe` (that process had no time to probe) the client checks whether another host has the
    /// address. A process that could not save its state may have renewed a lease that seems to have
    /// ended: the client asks the servers before it gives up such a lease.
    pub fn resume(&mut self, now_ns: u64, lease: Lease, probe: bool) -> Vec<Action> {
        self.began = now_ns;
        self.requested = Some(lease.address);
        let is_over = lease.ends_ns().is_some_and(|ends| now_ns >= ends);
        self.held = Some(lease);
        if is_over {
            return self.enter(now_ns, State::Rebooting);
        }
        if probe {
            self.state = State::Probing;
            return self.probe(now_ns);
        }
        self.state = State::Bound;
        self.due = self.next_time(now_ns);
        self.wake(now_ns)
    }

    /// Checks with the servers whether the lease is valid on this link (INIT-REBOOT, RFC 2131 3.2).
    /// Without an answer the client continues with the lease.
    pub fn verify(&mut self, now_ns: u64) -> Vec<Action> {
        if self.held.is_none() {
            return Vec::new();
        }
        self.began = now_ns;
        self.enter(now_ns, State::Rebooting)
    }

    /// A server probably answers now: the client repeats its request within ten seconds and restarts
    /// its waits, unless it sent the request a moment ago.
    pub fn hurry(&mut self, now_ns: u64) {
        let is_asking = match self.state {
            State::Selecting => self.offers.is_empty(),
            // Another server may be behind this link than the one that refused.
            State::Waiting => self.declines == 0,
            State::Rebooting | State::Renewing | State::Rebinding => true,
            _ => false,
        };
        if is_asking && may_hurry(now_ns, self.requested_ns, self.due) {
            self.sent = 0;
            self.due = spread(&mut self.random, now_ns, self.due);
        }
    }

    /// When [`Client::wake`] must be called, ns since kernel start.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// The current lease, or the ended lease whose address is kept.
    pub fn lease(&self) -> Option<&Lease> {
        self.held.as_ref()
    }

    /// True while the address is on the interface and the probes for other hosts are not over.
    pub fn is_probing(&self) -> bool {
        self.state == State::Probing
    }

    /// What came back so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The state of the client.
    pub fn state(&self) -> State {
        self.state
    }

    /// Does what is due at `now_ns`.
    pub fn wake(&mut self, now_ns: u64) -> Vec<Action> {
        if self.due.is_none_or(|due| now_ns < due) {
            return Vec::new();
        }
        match self.state {
            State::Waiting => self.enter(now_ns, State::Selecting),
            State::Selecting if !self.offers.is_empty() => self.enter(now_ns, State::Requesting),
            State::Selecting | State::Rebooting if self.has_ended => self.ask_again(now_ns),
            State::Selecting => self.send(now_ns),
            State::Requesting => self.requesting(now_ns),
            State::Rebooting if self.sent >= REBOOTS => self.unverified(now_ns),
            State::Rebooting => self.send(now_ns),
            State::Probing => self.probe(now_ns),
            State::Bound | State::Renewing | State::Rebinding => self.holding(now_ns),
        }
    }

    /// No server answered for the address of an earlier lease. A lease that is still held stays
    /// valid until its end (RFC 2131 3.2, 4).
    fn unverified(&mut self, now_ns: u64) -> Vec<Action> {
        let Some(lease) = &self.held else {
            return self.enter(now_ns, State::Selecting);
        };
        let renews = u64::from(lease.renew_s) * SECOND;
        let must_renew =
            now_ns.saturating_sub(lease.requested_ns) >= renews && lease.ends_ns().is_some();
        self.state = State::Bound;
        if must_renew {
            return self.holding(now_ns);
        }
        self.due = self.next_time(now_ns);
        Vec::new()
    }

    /// Requests the address of the ended lease by DISCOVER and by INIT-REBOOT in turn. Before an
    /// offer, dhcpd and dnsmasq check by ICMP echo that nobody uses the address, and this node
    /// answers; INIT-REBOOT comes without that check.
    fn ask_again(&mut self, now_ns: u64) -> Vec<Action> {
        self.state = match self.state {
            State::Selecting => State::Rebooting,
            _ => State::Selecting,
        };
        self.new_transaction();
        self.requested_ns = now_ns;
        self.send(now_ns)
    }

    /// The answer to a REQUEST is missing.
    fn requesting(&mut self, now_ns: u64) -> Vec<Action> {
        let server = self.offers.first().map(|offer| offer.server);
        if self.sent >= IMPATIENT && self.offers.len() > 1 {
            self.shun(server);
            self.offers.remove(0);
            return self.enter(now_ns, State::Requesting);
        }
        if self.sent < REQUESTS {
            return self.send(now_ns);
        }
        count(&mut self.counts.unanswered_requests);
        self.shun(server);
        self.enter(now_ns, State::Selecting)
    }

    fn shun(&mut self, server: Option<Ipv4Addr>) {
        if let Some(server) = server.filter(|_| self.shunned.len() < SHUNNED) {
            self.shunned.insert(server);
        }
    }

    /// Enters `state` (SELECTING and INIT-REBOOT take a new xid) and sends its first message.
    fn enter(&mut self, now_ns: u64, state: State) -> Vec<Action> {
        self.state = state;
        self.sent = 0;
        if matches!(state, State::Selecting | State::Rebooting) {
            self.new_transaction();
            self.offers.clear();
            self.candidates = 0;
        }
        self.send(now_ns)
    }

    fn new_transaction(&mut self) {
        self.former_xid = self.xid;
        self.xid = self.random.next_u32();
    }

    /// Sends the message of the state and sets the time of the next repetition.
    fn send(&mut self, now_ns: u64) -> Vec<Action> {
        // A REQUEST carries the seconds of its DISCOVER (RFC 2131 4.4.1).
        if self.state != State::Requesting {
            let seconds = now_ns.saturating_sub(self.began) / SECOND;
            self.secs = u16::try_from(seconds).unwrap_or(u16::MAX);
        }
        if matches!(self.state, State::Renewing | State::Rebinding) {
            self.new_transaction();
            self.requested_ns = now_ns;
        } else if self.sent == 0 {
            self.requested_ns = now_ns;
        }
        let Some((message, to)) = self.message() else {
            return Vec::new();
        };
        count(&mut self.counts.sent);
        self.due = match self.state {
            State::Renewing | State::Rebinding => self.next_time(now_ns),
            _ => Some(now_ns.saturating_add(self.backoff(self.sent))),
        };
        self.sent = self.sent.saturating_add(1);
        vec![Action::Send(message, to)]
    }

    /// The wait doubles; up to one second, or half of the wait, of jitter goes to either side (RFC
    /// 2131 4.1).
    fn backoff(&mut self, times: u32) -> u64 {
        let longest = match self.config.boot_waits {
            true => LONGEST,
            false => LONGEST_AFTER_BOOT,
        };
        let base = SHORTEST
            .saturating_mul(1_u64.checked_shl(times.min(32)).unwrap_or(u64::MAX))
            .min(longest);
        let jitter = (base / 2).min(SECOND);
        base - jitter + self.random.below(2 * jitter)
    }

    /// The next time that is due for the current lease.
    fn next_time(&mut self, now_ns: u64) -> Option<u64> {
        let lease = self.held.as_ref()?;
        let ends = lease.ends_ns()?;
        let at = |seconds: u32| {
            lease
                .requested_ns
                .saturating_add(u64::from(seconds) * SECOND)
        };
        let (renew, rebind) = (at(lease.renew_s), at(lease.rebind_s));
        // A repetition comes halfway to the next state, at least `least` after the last one.
        let close = |from: u64, until: u64| {
            let least = if until.saturating_sub(from) > 2 * RENEW_APART {
                RENEW_APART
            } else {
                CLOSE
            };
            let wait = (until.saturating_sub(now_ns) / 2).max(least);
            let no_storm = now_ns.saturating_add(CLOSE);
            now_ns.saturating_add(wait).min(until.max(no_storm))
        };
        Some(match self.state {
            State::Bound => {
                let early = early(&mut self.random, lease.requested_ns, renew);
                early.max(now_ns.saturating_add(CLOSE))
            }
            State::Renewing => close(renew, rebind),
            _ => close(rebind, ends),
        })
    }

    /// Enters the state that the age of the lease requires.
    fn holding(&mut self, now_ns: u64) -> Vec<Action> {
        let Some(lease) = &self.held else {
            return self.enter(now_ns, State::Selecting);
        };
        let age = now_ns.saturating_sub(lease.requested_ns);
        let passed = |seconds: u32| age >= u64::from(seconds) * SECOND;
        if self.state == State::Bound {
            // REBINDING continues this renewal (RFC 2131 2, table 1).
            self.began = now_ns;
            self.counts.settle();
        }
        if lease.ends_ns().is_some_and(|ends| now_ns >= ends) {
            let why = format!("the lease of {} has ended", lease.address_text());
            return self.lost(now_ns, "ended", &why);
        }
        match self.state {
            State::Rebinding => self.send(now_ns),
            _ if passed(lease.rebind_s) => self.enter(now_ns, State::Rebinding),
            State::Renewing => self.send(now_ns),
            _ => self.enter(now_ns, State::Renewing),
        }
    }

    /// The lease ended. If the root file system depends on the address, the address is kept and
    /// requested again.
    fn lost(&mut self, now_ns: u64, kind: &'static str, why: &str) -> Vec<Action> {
        let Some(lease) = self.held.clone() else {
            return self.enter(now_ns, State::Selecting);
        };
        let line = format!("{why}: {}", fate(self.config.keep));
        let mut actions = self.warn_of_lease(now_ns, kind, line);
        if self.config.keep {
            self.requested = Some(lease.address);
            self.has_ended = true;
        } else {
            actions.push(Action::Lost(lease.address));
            self.held = None;
            self.requested = None;
        }
        self.began = now_ns;
        actions.extend(self.enter(now_ns, State::Selecting));
        actions
    }
}
