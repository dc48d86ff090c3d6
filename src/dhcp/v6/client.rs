// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the state machine of a client (RFC 8415 18). Times and messages go in; the messages to
//! send come out. The state machine knows no clock and no socket.

mod answers;
mod requests;
#[cfg(test)]
mod tests;
mod timing;

use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::identity::Identity;
use super::lease::Lease;
use super::packet::Message;
use super::progress::State;
use crate::dhcp::brake::Brake;
use crate::dhcp::conduct::{
    CLOSE, IMPATIENT, REQUESTS, after_decline, early, fate, may_hurry, spread,
};
use crate::dhcp::progress::{Counts, count};
use crate::dhcp::random::Random;
use crate::system::clock::SECOND;

pub(super) use requests::elapsed;

/// DECLINEs (DEC_MAX_RC).
const DECLINES: u32 = 4;
/// Remembered servers that offered and did not deliver.
const SHUNNED: usize = 256;
/// Wait after a server's refusal; the wait doubles up to the second value.
const REFUSED: u64 = SECOND;
const REFUSED_LONGEST: u64 = 16 * SECOND;
/// The longest wait after a refusal if no boot waits for the answer.
const REFUSED_AFTER_BOOT: u64 = 600 * SECOND;
/// A lease that ended before this process knew of it is requested for this long before it is given
/// up.
const CHANCE: u64 = 10 * SECOND;
/// The highest preference: no better server can answer (RFC 8415 18.2.1).
const AT_ONCE: u8 = 255;

/// What does not change while a client runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// DUID and IAID of the client.
    pub identity: Identity,
    /// The root file system depends on the address: the address is kept when the lease ends or is
    /// refused, and only the same address is accepted again.
    pub keep: bool,
    /// A boot waits for the lease: the waits stay short, whatever a server wishes.
    pub boot_waits: bool,
}

/// What the caller must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this message to all servers and relays of the link.
    Send(Message),
    /// A lease was granted or renewed: see [`Client::lease`].
    Bound,
    /// Remove the address: the lease ended.
    Lost(Ipv6Addr),
    /// Log this line.
    Info(String),
    /// Log this line as a warning.
    Warn(String),
}

#[derive(Debug, Clone)]
struct Offer {
    lease: Lease,
    preference: u8,
}

/// A client of one interface.
#[derive(Debug)]
pub struct Client {
    config: Config,
    random: Random,
    state: State,
    /// When [`Client::wake`] must be called; none: only a message moves the client.
    due: Option<u64>,
    transaction: u32,
    /// The transaction before the current one: a late answer is not a foreign answer.
    former: u32,
    /// Messages sent in this exchange, the times of the first and the last message, and the last
    /// wait.
    sent: u32,
    requested_ns: u64,
    last_ns: u64,
    wait_ns: u64,
    /// The longest wait that the server allows (SOL_MAX_RT), in seconds.
    slowest_s: Option<u32>,
    /// The offers of this exchange; the best offer is first.
    offers: Vec<Offer>,
    /// DUIDs of servers that offered and then did not deliver.
    shunned: Vec<String>,
    /// The address to request again.
    requested: Option<Ipv6Addr>,
    /// The lease that is or was granted and is on the interface.
    held: Option<Lease>,
    /// The held lease does not count as ended before this time.
    chance_ns: u64,
    /// The lease whose address another host has.
    declined: Option<Lease>,
    declines: u32,
    refusals: u32,
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
            transaction: 0,
            former: 0,
            sent: 0,
            requested_ns: 0,
            last_ns: 0,
            wait_ns: 0,
            slowest_s: None,
            offers: Vec::new(),
            shunned: Vec::new(),
            requested: None,
            held: None,
            chance_ns: 0,
            declined: None,
            declines: 0,
            refusals: 0,
            counts: Counts::default(),
            brake: Brake::default(),
            of_lease: Brake::default(),
        }
    }

    /// Starts the client; with `known`, the client requests the address of an earlier lease.
    ///
    /// The client sends the first SOLICIT at once: duplicate address detection of the link-local
    /// address has already spread the nodes in time (RFC 4862 5.4.2).
    pub fn start(&mut self, now_ns: u64, known: Option<Ipv6Addr>) -> Vec<Action> {
        self.requested = known;
        self.enter(now_ns, State::Soliciting)
    }

    /// Continues with a lease that another process obtained and that is on the interface. A process
    /// that could not save its state may have renewed a lease that seems to have ended: the client
    /// asks the servers before it gives up such a lease.
    pub fn resume(&mut self, now_ns: u64, lease: Lease) -> Vec<Action> {
        self.requested = Some(lease.address);
        self.held = Some(lease);
        if self.is_over(now_ns) {
            self.chance_ns = now_ns.saturating_add(CHANCE);
            return self.enter(now_ns, State::Rebinding);
        }
        self.state = State::Bound;
        self.due = self.renewal(now_ns);
        self.wake(now_ns)
    }

    /// When [`Client::wake`] must be called, ns since kernel start.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// The current lease, or the ended lease whose address is kept.
    pub fn lease(&self) -> Option<&Lease> {
        self.held.as_ref()
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
        let is_held = matches!(
            self.state,
            State::Bound | State::Renewing | State::Rebinding
        );
        // The client requests a kept address even after the lease has ended.
        if self.is_over(now_ns) && (is_held || !self.config.keep) {
            return self.ended(now_ns);
        }
        match self.state {
            State::Waiting => self.waited(now_ns),
            State::Soliciting if !self.offers.is_empty() => self.enter(now_ns, State::Requesting),
            State::Soliciting => self.send(now_ns),
            State::Requesting => self.requesting(now_ns),
            State::Declining if self.sent >= DECLINES => self.after_decline(now_ns),
            State::Declining => self.send(now_ns),
            State::Bound | State::Renewing | State::Rebinding => self.holding(now_ns),
        }
    }

    /// Whether a server may still renew the held lease after a refusal.
    fn may_renew(&self) -> bool {
        self.held.is_some() && !self.config.keep
    }

    /// The wait is over.
    fn waited(&mut self, now_ns: u64) -> Vec<Action> {
        if self.may_renew() {
            return self.holding(now_ns);
        }
        self.enter(now_ns, State::Soliciting)
    }

    /// Whether the held lease has ended.
    fn is_over(&self, now_ns: u64) -> bool {
        self.ends_ns().is_some_and(|ends| now_ns >= ends)
    }

    /// When the held lease ends; none: never, or no lease is held.
    fn ends_ns(&self) -> Option<u64> {
        let ends = self.held.as_ref().and_then(Lease::ends_ns);
        ends.map(|ends| ends.max(self.chance_ns))
    }

    /// A server probably answers now: the client repeats its request, after boot within ten seconds, and
    /// restarts its waits, unless the next repetition is due within a moment.
    pub fn hurry(&mut self, now_ns: u64) -> Vec<Action> {
        let is_asking = match self.state {
            State::Soliciting | State::Renewing | State::Rebinding => true,
            // Another server may be behind this link than the one that refused.
            State::Waiting => self.declines == 0,
            _ => false,
        };
        if !is_asking || !may_hurry(now_ns, self.last_ns, self.due) {
            return Vec::new();
        }
        if !self.config.boot_waits {
            self.sent = 0;
            self.due = spread(&mut self.random, now_ns, self.due);
            return Vec::new();
        }
        match self.state {
            State::Waiting => self.waited(now_ns),
            state => self.enter(now_ns, state),
        }
    }

    /// Asks all servers before the time of the held lease whether the lease is valid on this link (RFC
    /// 8415 18.2.12): the link may have other servers now.
    pub fn verify(&mut self, now_ns: u64) -> Vec<Action> {
        if self.state != State::Bound {
            return Vec::new();
        }
        self.enter(now_ns, State::Rebinding)
    }

    /// The answer to a REQUEST is missing.
    fn requesting(&mut self, now_ns: u64) -> Vec<Action> {
        if self.sent >= IMPATIENT && self.offers.len() > 1 {
            self.shun();
            self.offers.remove(0);
            return self.enter(now_ns, State::Requesting);
        }
        if self.sent < REQUESTS {
            return self.send(now_ns);
        }
        count(&mut self.counts.unanswered_requests);
        self.shun();
        if self.is_over(now_ns) {
            return self.ended(now_ns);
        }
        if self.held.is_some() {
            // The server forgot the lease and then did not answer: another server may know the
            // lease.
            return self.enter(now_ns, State::Rebinding);
        }
        self.enter(now_ns, State::Soliciting)
    }

    /// Makes the requested server the last choice from now on.
    fn shun(&mut self) {
        let server = self.offers.first().map(|offer| &offer.lease.server_id);
        let server = server.filter(|server| !self.shunned.contains(server));
        if let Some(server) = server.filter(|_| self.shunned.len() < SHUNNED) {
            self.shunned.push(server.clone());
        }
    }

    /// Starts an exchange: a new transaction and its first message.
    fn enter(&mut self, now_ns: u64, state: State) -> Vec<Action> {
        self.state = state;
        self.sent = 0;
        self.former = self.transaction;
        self.transaction = self.random.next_u32() & super::packet::TRANSACTION;
        if state == State::Soliciting {
            self.offers.clear();
        }
        self.send(now_ns)
    }

    /// Sends the message of the exchange and sets the time of the next repetition (RFC 8415 15).
    fn send(&mut self, now_ns: u64) -> Vec<Action> {
        if self.sent == 0 {
            self.requested_ns = now_ns;
            self.wait_ns = 0;
        }
        let Some(message) = self.message(now_ns) else {
            // No offer is left to request: the client looks for another server.
            self.state = State::Waiting;
            self.due = Some(now_ns.saturating_add(REFUSED));
            return Vec::new();
        };
        count(&mut self.counts.sent);
        self.last_ns = now_ns;
        self.wait_ns = self.next_wait();
        let again = now_ns.saturating_add(self.wait_ns);
        let until = self.held.as_ref().and_then(|lease| match self.state {
            State::Renewing => lease.at(lease.rebind_s),
            State::Soliciting | State::Requesting if self.config.keep => None,
            _ => self.ends_ns(),
        });
        let until = until.unwrap_or(u64::MAX).max(now_ns.saturating_add(CLOSE));
        self.due = Some(again.min(until));
        self.sent = self.sent.saturating_add(1);
        vec![Action::Send(message)]
    }

    /// When the current lease is renewed; none: never.
    fn renewal(&mut self, now_ns: u64) -> Option<u64> {
        let lease = self.held.as_ref()?;
        let (renew, asked) = (lease.at(lease.renew_s), lease.requested_ns);
        let ends = lease.ends_ns();
        let at = renew.map(|at| early(&mut self.random, asked, at));
        let next = at.into_iter().chain(ends).min()?;
        Some(next.max(now_ns.saturating_add(CLOSE)))
    }

    /// Starts the exchange that the age of the lease requires.
    fn holding(&mut self, now_ns: u64) -> Vec<Action> {
        self.settle();
        let Some(lease) = &self.held else {
            return self.enter(now_ns, State::Soliciting);
        };
        let passed = |at: Option<u64>| at.is_some_and(|at| now_ns >= at);
        match self.state {
            State::Rebinding => self.send(now_ns),
            _ if passed(lease.at(lease.rebind_s)) => self.enter(now_ns, State::Rebinding),
            State::Renewing => self.send(now_ns),
            _ => self.enter(now_ns, State::Renewing),
        }
    }

    /// The time in which the lease needed nothing is over.
    fn settle(&mut self) {
        if self.state == State::Bound {
            self.counts.settle();
        }
    }

    /// The time of the lease has passed.
    fn ended(&mut self, now_ns: u64) -> Vec<Action> {
        self.settle();
        let lease = self.held.as_ref().map(Lease::address_text);
        let lease = lease.unwrap_or_default();
        self.lost(now_ns, "ended", &format!("the lease of {lease} has ended"))
    }

    /// The lease ended. If the root file system depends on the address, the address is kept and
    /// requested again.
    fn lost(&mut self, now_ns: u64, kind: impl Into<Cow<'static, str>>, why: &str) -> Vec<Action> {
        let Some(lease) = self.held.clone() else {
            return self.enter(now_ns, State::Soliciting);
        };
        let line = format!("{why}: {}", fate(self.config.keep));
        let mut actions = self.warn_of_lease(now_ns, kind, line);
        if self.config.keep {
            self.requested = Some(lease.address);
        } else {
            actions.push(Action::Lost(lease.address));
            self.held = None;
            self.requested = None;
        }
        actions.extend(self.enter(now_ns, State::Soliciting));
        actions
    }

    /// Another host has the granted address: the kernel's duplicate address detection found the
    /// other host. The client declines the address (DECLINE) and requests another address.
    pub fn duplicate(&mut self, now_ns: u64) -> Vec<Action> {
        let Some(lease) = self.held.take() else {
            return Vec::new();
        };
        let what = format!("another host uses {}", lease.address);
        self.counts.taken = Some(what.clone());
        self.requested = None;
        let mut actions = self.warn_of_lease(now_ns, "taken", format!("{what}: declined"));
        actions.push(Action::Lost(lease.address));
        self.declined = Some(lease);
        actions.extend(self.enter(now_ns, State::Declining));
        actions
    }

    fn after_decline(&mut self, now_ns: u64) -> Vec<Action> {
        let wait = after_decline(self.declines);
        self.declined = None;
        self.declines = self.declines.saturating_add(1);
        self.state = State::Waiting;
        self.due = Some(now_ns.saturating_add(wait));
        Vec::new()
    }
}
