// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the state machine of a client (RFC 2131 4.4). Times, packets and ARP go in, what is to be
//! sent comes out; nothing here knows a clock or a socket.

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
use crate::dhcp::progress::Counts;
use crate::dhcp::random::Random;
use crate::system::clock::SECOND;

/// Retries start after this and double up to [`LONGEST`]: a boot wants the first soon, a thousand
/// nodes want the later ones apart.
const SHORTEST: u64 = SECOND;
const LONGEST: u64 = 16 * SECOND;
/// The same where an address is kept whose lease has ended: nobody waits for that.
const LONGEST_KEPT: u64 = 64 * SECOND;
/// REQUESTs without an answer before another offer is tried, where there is one.
const IMPATIENT: u32 = 2;
/// REQUESTs without an answer before everything starts anew.
const REQUESTS: u32 = 4;
/// The same for the address of an earlier lease (INIT-REBOOT).
const REBOOTS: u32 = 2;
/// Offers that are remembered.
const OFFERS: usize = 8;
/// Servers that are remembered for not delivering.
const SHUNNED: usize = 1024;
/// How long an offer of a server that failed us before waits for a better one.
const GRACE: u64 = 2 * SECOND;
/// RENEW and REBIND are repeated no sooner than this (RFC 2131 4.4.5) ...
const RENEW_APART: u64 = 60 * SECOND;
/// ... unless the whole lease is shorter.
const RENEW_CLOSE: u64 = SECOND;

/// What does not change while a client runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who asks.
    pub identity: Identity,
    /// Option 60.
    pub vendor_class: Option<String>,
    /// Option 12.
    pub host_name: Option<String>,
    /// The root file system hangs on the address: it is kept when the lease ends or is refused,
    /// and only the same one is taken again.
    pub keep: bool,
}

/// Where a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To all on the link; from this address.
    Link(Ipv4Addr),
    /// From the address of the lease to the server of it.
    Server {
        /// Own address.
        from: Ipv4Addr,
        /// The server.
        to: Ipv4Addr,
    },
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this.
    Send(Message, Destination),
    /// Ask by ARP whether somebody has this address.
    Probe(Ipv4Addr),
    /// Tell the link that this address is ours: somebody else says that it is his.
    Defend(Ipv4Addr),
    /// There is a lease, or a renewed one: [`Client::lease`].
    Bound,
    /// The probes are over, and nobody else has this address.
    Unopposed(Ipv4Addr),
    /// The address must go: this lease is over, or somebody else has it.
    Lost(Ipv4Addr),
    /// A line for the log: warning or not.
    Say(bool, String),
}

impl Action {
    fn warning(line: String) -> Action {
        Action::Say(true, line)
    }
}

/// A client of one interface.
#[derive(Debug)]
pub struct Client {
    config: Config,
    random: Random,
    state: State,
    /// When [`Client::wake`] is wanted; none: never again by itself.
    due: Option<u64>,
    /// When it all began, for `secs`.
    began: u64,
    secs: u16,
    xid: u32,
    /// The transaction before this one: what is late is not for somebody else.
    former_xid: u32,
    /// Times that something was sent in this state.
    sent: u32,
    asked_ns: u64,
    /// The offers of this round; the first one is asked for.
    offers: Vec<Lease>,
    /// Offers of this round that had a claim to a place among the others.
    candidates: u64,
    /// Servers that offered and then did not deliver.
    shunned: BTreeSet<Ipv4Addr>,
    /// An address to ask for again.
    wanted: Option<Ipv4Addr>,
    /// What is or was granted and is on the interface.
    held: Option<Lease>,
    declines: u32,
    naks: u32,
    /// When the address was defended last, ns since kernel start.
    defended_ns: Option<u64>,
    counts: Counts,
    /// On what others send.
    brake: Brake,
    /// On what becomes of leases: never silenced by answers that cannot be used.
    of_lease: Brake,
}

impl Client {
    /// A client that has not begun. `seed` makes its jitter and transaction numbers.
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
            asked_ns: 0,
            offers: Vec::new(),
            candidates: 0,
            shunned: BTreeSet::new(),
            wanted: None,
            held: None,
            declines: 0,
            naks: 0,
            defended_ns: None,
            counts: Counts::default(),
            brake: Brake::default(),
            of_lease: Brake::default(),
        }
    }

    /// Begins; with `known`, the address of an earlier lease, by asking for that one (INIT-REBOOT).
    pub fn start(&mut self, now: u64, known: Option<Ipv4Addr>) -> Vec<Action> {
        self.began = now;
        self.wanted = known;
        match known {
            Some(_) => self.enter(now, State::Rebooting),
            None => self.enter(now, State::Selecting),
        }
    }

    /// Goes on with a lease that is on the interface already (another process got it), and, where
    /// that one had no time for it, asks whether somebody else has the address. A lease that ended
    /// meanwhile may have been renewed by a process that could not write this down: servers are
    /// asked before it is given up.
    pub fn resume(&mut self, now: u64, lease: Lease, probe: bool) -> Vec<Action> {
        self.began = now;
        self.wanted = Some(lease.address);
        let is_over = lease.ends_ns().is_some_and(|ends| now >= ends);
        self.held = Some(lease);
        if is_over {
            return self.enter(now, State::Rebooting);
        }
        if probe {
            self.state = State::Probing;
            return self.probe(now);
        }
        self.state = State::Bound;
        self.due = self.next_time(now);
        self.wake(now)
    }

    /// Asks whether what is held holds on this link (INIT-REBOOT, RFC 2131 3.2), and goes on with it
    /// where nobody answers.
    pub fn verify(&mut self, now: u64) -> Vec<Action> {
        if self.held.is_none() {
            return Vec::new();
        }
        self.began = now;
        self.enter(now, State::Rebooting)
    }

    /// There is reason to think that a server answers now: what is asked for is asked for anew, with
    /// the waits from their beginning, unless it was asked for a moment ago.
    pub fn hurry(&mut self, now: u64) -> Vec<Action> {
        let is_near = |due| due <= now.saturating_add(RENEW_CLOSE);
        let is_fresh = now < self.asked_ns.saturating_add(RENEW_CLOSE);
        if is_fresh || self.due.is_none_or(is_near) {
            return Vec::new();
        }
        match self.state {
            State::Selecting if self.offers.is_empty() => self.enter(now, State::Selecting),
            // A server that refused may be another one behind this link.
            State::Waiting if self.declines == 0 => self.enter(now, State::Selecting),
            State::Rebooting | State::Renewing | State::Rebinding => self.enter(now, self.state),
            _ => Vec::new(),
        }
    }

    /// When [`Client::wake`] is wanted, ns since kernel start.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// What is granted, or was and is kept.
    pub fn lease(&self) -> Option<&Lease> {
        self.held.as_ref()
    }

    /// The address is on the interface, and whether somebody else has it is not known yet.
    pub fn is_probing(&self) -> bool {
        self.state == State::Probing
    }

    /// What came back so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Where the client is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Time has passed: does what is due.
    pub fn wake(&mut self, now: u64) -> Vec<Action> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        match self.state {
            State::Waiting => self.enter(now, State::Selecting),
            State::Selecting if !self.offers.is_empty() => self.enter(now, State::Requesting),
            State::Selecting => self.send(now),
            State::Requesting => self.requesting(now),
            State::Rebooting if self.sent >= REBOOTS => self.unverified(now),
            State::Rebooting => self.send(now),
            State::Probing => self.probe(now),
            State::Bound | State::Renewing | State::Rebinding => self.holding(now),
        }
    }

    /// Nobody answers for the address of an earlier lease. One that is held is good until its end
    /// (RFC 2131 3.2, 4).
    fn unverified(&mut self, now: u64) -> Vec<Action> {
        if self.held.is_none() {
            return self.enter(now, State::Selecting);
        }
        self.state = State::Bound;
        self.holding(now)
    }

    /// The answer to a REQUEST is missing.
    fn requesting(&mut self, now: u64) -> Vec<Action> {
        let server = self.offers.first().map(|offer| offer.server);
        if self.sent >= IMPATIENT && self.offers.len() > 1 {
            self.shun(server);
            self.offers.remove(0);
            return self.enter(now, State::Requesting);
        }
        if self.sent < REQUESTS {
            return self.send(now);
        }
        self.counts.unanswered_requests += 1;
        self.shun(server);
        self.enter(now, State::Selecting)
    }

    fn shun(&mut self, server: Option<Ipv4Addr>) {
        if let Some(server) = server.filter(|_| self.shunned.len() < SHUNNED) {
            self.shunned.insert(server);
        }
    }

    /// Into `state`, with a new transaction where that is what it means, and its first message.
    fn enter(&mut self, now: u64, state: State) -> Vec<Action> {
        self.state = state;
        self.sent = 0;
        if matches!(state, State::Selecting | State::Rebooting) {
            self.new_transaction();
            self.offers.clear();
            self.candidates = 0;
        }
        self.send(now)
    }

    fn new_transaction(&mut self) {
        self.former_xid = self.xid;
        self.xid = self.random.next_u32();
    }

    /// Sends what the state sends, and sets the time of its repetition.
    fn send(&mut self, now: u64) -> Vec<Action> {
        // A REQUEST has the seconds of its DISCOVER (RFC 2131 4.4.1).
        if self.state != State::Requesting {
            let seconds = now.saturating_sub(self.began) / SECOND;
            self.secs = u16::try_from(seconds).unwrap_or(u16::MAX);
        }
        if matches!(self.state, State::Renewing | State::Rebinding) {
            self.new_transaction();
            self.asked_ns = now;
        } else if self.sent == 0 {
            self.asked_ns = now;
        }
        let Some((message, to)) = self.message() else {
            return Vec::new();
        };
        self.counts.sent += 1;
        self.due = match self.state {
            State::Renewing | State::Rebinding => self.next_time(now),
            _ => Some(now.saturating_add(self.backoff(self.sent))),
        };
        self.sent = self.sent.saturating_add(1);
        vec![Action::Send(message, to)]
    }

    /// Doubling with up to a second, or half, of jitter to either side (RFC 2131 4.1).
    fn backoff(&mut self, times: u32) -> u64 {
        let longest = if self.held.is_some() {
            LONGEST_KEPT
        } else {
            LONGEST
        };
        let base = SHORTEST
            .saturating_mul(1_u64.checked_shl(times.min(32)).unwrap_or(u64::MAX))
            .min(longest);
        let jitter = (base / 2).min(SECOND);
        base - jitter + self.random.below(2 * jitter)
    }

    /// With a lease: when something is due next.
    fn next_time(&mut self, now: u64) -> Option<u64> {
        let lease = self.held.as_ref()?;
        let ends = lease.ends_ns()?;
        let at = |seconds: u32| lease.asked_ns.saturating_add(u64::from(seconds) * SECOND);
        let (renew, rebind) = (at(lease.renew_s), at(lease.rebind_s));
        // Halfway to the next state, again and again.
        let close = |from: u64, until: u64| {
            let least = if until.saturating_sub(from) > 2 * RENEW_APART {
                RENEW_APART
            } else {
                RENEW_CLOSE
            };
            let wait = (until.saturating_sub(now) / 2).max(least);
            let no_storm = now.saturating_add(RENEW_CLOSE);
            now.saturating_add(wait).min(until.max(no_storm))
        };
        Some(match self.state {
            // A thousand nodes that booted together shall not renew together; and no lease is so
            // short that it makes a storm.
            State::Bound => {
                let until = renew.saturating_sub(lease.asked_ns);
                let early = self.random.below(until / 20);
                renew
                    .saturating_sub(early)
                    .max(now.saturating_add(RENEW_CLOSE))
            }
            State::Renewing => close(renew, rebind),
            _ => close(rebind, ends),
        })
    }

    /// With a lease: which state its age asks for.
    fn holding(&mut self, now: u64) -> Vec<Action> {
        let Some(lease) = &self.held else {
            return self.enter(now, State::Selecting);
        };
        let age = now.saturating_sub(lease.asked_ns);
        let passed = |seconds: u32| age >= u64::from(seconds) * SECOND;
        if lease.ends_ns().is_some_and(|ends| now >= ends) {
            let why = format!("the lease of {} has ended", lease.address_text());
            return self.lost(now, "ended", &why);
        }
        match self.state {
            State::Rebinding => self.send(now),
            _ if passed(lease.rebind_s) => self.enter(now, State::Rebinding),
            State::Renewing => self.send(now),
            _ => self.enter(now, State::Renewing),
        }
    }

    /// The lease is over. Under a root file system the address stays, and is asked for anew.
    fn lost(&mut self, now: u64, kind: &'static str, why: &str) -> Vec<Action> {
        let Some(lease) = self.held.clone() else {
            return self.enter(now, State::Selecting);
        };
        let becomes = if self.config.keep {
            "the address stays, because the root file system hangs on it"
        } else {
            "the address goes"
        };
        let mut actions = self.tell(now, kind, format!("{why}: {becomes}"));
        if self.config.keep {
            self.wanted = Some(lease.address);
        } else {
            actions.push(Action::Lost(lease.address));
            self.held = None;
            self.wanted = None;
        }
        self.began = now;
        actions.extend(self.enter(now, State::Selecting));
        actions
    }
}
