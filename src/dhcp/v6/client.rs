// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the state machine of a client (RFC 8415 18). Times and messages go in, what is to be sent
//! comes out; nothing here knows a clock or a socket.

mod answers;
mod requests;
#[cfg(test)]
mod tests;
mod timing;

use std::net::Ipv6Addr;

use super::identity::Identity;
use super::lease::Lease;
use super::packet::Message;
use super::progress::State;
use crate::dhcp::brake::Brake;
use crate::dhcp::progress::Counts;
use crate::dhcp::random::Random;
use crate::system::clock::SECOND;

pub(super) use requests::elapsed;

/// REQUESTs without an answer before another offer is tried, where there is one.
const IMPATIENT: u32 = 2;
/// REQUESTs without an answer before everything starts anew, where REQ_MAX_RC has 10: a boot waits.
const REQUESTS: u32 = 4;
/// DECLINEs (DEC_MAX_RC).
const DECLINES: u32 = 4;
/// Offers that are remembered.
const OFFERS: usize = 8;
/// Servers that are remembered for not delivering.
const SHUNNED: usize = 256;
/// How long an offer of a server that failed us before waits for a better one.
const GRACE: u64 = 2 * SECOND;
/// After the first DECLINE, and after every later one: a server with nothing but taken addresses
/// must not make a storm.
const DECLINED_ONCE: u64 = SECOND;
const DECLINED: u64 = 10 * SECOND;
/// A server that refuses is asked again after this, doubled each time up to the other.
const REFUSED: u64 = SECOND;
const REFUSED_LONGEST: u64 = 16 * SECOND;
/// The same, where an address is kept: nobody waits for that.
const REFUSED_KEPT: u64 = 600 * SECOND;
/// No lease is so short that it makes a storm.
const CLOSE: u64 = SECOND;
/// A lease that ended before this process knew of it is asked for so long before it is given up.
const CHANCE: u64 = 10 * SECOND;
/// The highest preference: nobody better will come (RFC 8415 18.2.1).
const AT_ONCE: u8 = 255;

/// What does not change while a client runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who asks.
    pub identity: Identity,
    /// The root file system hangs on the address: it is kept when the lease ends or is refused,
    /// and only the same one is taken again.
    pub keep: bool,
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this to all servers and relays of the link.
    Send(Message),
    /// There is a lease, or a renewed one: [`Client::lease`].
    Bound,
    /// The address must go: this lease is over.
    Lost(Ipv6Addr),
    /// A line for the log: warning or not.
    Say(bool, String),
}

impl Action {
    fn warning(line: String) -> Action {
        Action::Say(true, line)
    }
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
    /// When [`Client::wake`] is wanted; none: never again by itself.
    due: Option<u64>,
    transaction: u32,
    /// The transaction before this one: what is late is not for somebody else.
    former: u32,
    /// Times that something was sent in this exchange, the first and the last of them, and the
    /// last wait.
    sent: u32,
    asked_ns: u64,
    last_ns: u64,
    wait_ns: u64,
    /// What a server allows (SOL_MAX_RT), in seconds.
    slowest_s: Option<u32>,
    /// The offers of this exchange, the best one first.
    offers: Vec<Offer>,
    /// DUIDs of servers that offered and then did not deliver.
    shunned: Vec<String>,
    /// An address to ask for again.
    wanted: Option<Ipv6Addr>,
    /// What is or was granted and is on the interface.
    held: Option<Lease>,
    /// What is held does not end before this.
    chance_ns: u64,
    /// Granted, and found to be another host's.
    declined: Option<Lease>,
    declines: u32,
    refusals: u32,
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
            transaction: 0,
            former: 0,
            sent: 0,
            asked_ns: 0,
            last_ns: 0,
            wait_ns: 0,
            slowest_s: None,
            offers: Vec::new(),
            shunned: Vec::new(),
            wanted: None,
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

    /// Begins; with `known`, by saying that the address of an earlier lease would be welcome.
    ///
    /// The first SOLICIT goes at once: that many nodes are not in step, duplicate address detection
    /// of the link-local address has seen to already (RFC 4862 5.4.2).
    pub fn start(&mut self, now: u64, known: Option<Ipv6Addr>) -> Vec<Action> {
        self.wanted = known;
        self.enter(now, State::Soliciting)
    }

    /// Goes on with a lease that is on the interface already (another process got it). One that
    /// ended meanwhile may have been renewed by a process that could not write this down: servers
    /// are asked before it is given up.
    pub fn resume(&mut self, now: u64, lease: Lease) -> Vec<Action> {
        self.wanted = Some(lease.address);
        self.held = Some(lease);
        if self.is_over(now) {
            self.chance_ns = now.saturating_add(CHANCE);
            return self.enter(now, State::Rebinding);
        }
        self.state = State::Bound;
        self.due = self.renewal(now);
        self.wake(now)
    }

    /// When [`Client::wake`] is wanted, ns since kernel start.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// What is granted, or was and is kept.
    pub fn lease(&self) -> Option<&Lease> {
        self.held.as_ref()
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
        let is_held = matches!(
            self.state,
            State::Bound | State::Renewing | State::Rebinding
        );
        // What is kept is asked for beyond its end.
        if self.is_over(now) && (is_held || !self.config.keep) {
            return self.ended(now);
        }
        match self.state {
            State::Waiting => self.enter(now, State::Soliciting),
            State::Soliciting if !self.offers.is_empty() => self.enter(now, State::Requesting),
            State::Soliciting => self.send(now),
            State::Requesting => self.requesting(now),
            State::Declining if self.sent >= DECLINES => self.after_decline(now),
            State::Declining => self.send(now),
            State::Bound | State::Renewing | State::Rebinding => self.holding(now),
        }
    }

    /// The time of what is held has passed.
    fn is_over(&self, now: u64) -> bool {
        self.ends_ns().is_some_and(|ends| now >= ends)
    }

    /// When what is held ends; none: never, or nothing is.
    fn ends_ns(&self) -> Option<u64> {
        let ends = self.held.as_ref().and_then(Lease::ends_ns);
        ends.map(|ends| ends.max(self.chance_ns))
    }

    /// There is reason to think that a server answers now: what is asked for is asked for anew, with
    /// the waits from their beginning, unless it is about to be repeated anyhow.
    pub fn hurry(&mut self, now: u64) -> Vec<Action> {
        let is_near = |due| due <= now.saturating_add(CLOSE);
        let is_fresh = now < self.last_ns.saturating_add(CLOSE);
        if is_fresh || self.due.is_none_or(is_near) {
            return Vec::new();
        }
        match self.state {
            State::Soliciting | State::Renewing | State::Rebinding => self.enter(now, self.state),
            // A server that refused may be another one behind this link.
            State::Waiting if self.declines == 0 => self.enter(now, State::Soliciting),
            _ => Vec::new(),
        }
    }

    /// Renews what is held before its time: whether it holds on this link is not known.
    pub fn verify(&mut self, now: u64) -> Vec<Action> {
        if self.state != State::Bound {
            return Vec::new();
        }
        self.enter(now, State::Renewing)
    }

    /// The answer to a REQUEST is missing.
    fn requesting(&mut self, now: u64) -> Vec<Action> {
        if self.sent >= IMPATIENT && self.offers.len() > 1 {
            self.shun();
            self.offers.remove(0);
            return self.enter(now, State::Requesting);
        }
        if self.sent < REQUESTS {
            return self.send(now);
        }
        self.counts.unanswered_requests = self.counts.unanswered_requests.saturating_add(1);
        self.shun();
        if self.is_over(now) {
            return self.ended(now);
        }
        if self.held.is_some() {
            // The server forgot the lease and then fell silent: any other may know it.
            return self.enter(now, State::Rebinding);
        }
        self.enter(now, State::Soliciting)
    }

    /// The server that is asked is the last choice from now on.
    fn shun(&mut self) {
        let server = self.offers.first().map(|offer| &offer.lease.server_id);
        let server = server.filter(|server| !self.shunned.contains(server));
        if let Some(server) = server.filter(|_| self.shunned.len() < SHUNNED) {
            self.shunned.push(server.clone());
        }
    }

    /// Begins an exchange, with a new transaction, by its first message.
    fn enter(&mut self, now: u64, state: State) -> Vec<Action> {
        self.state = state;
        self.sent = 0;
        self.former = self.transaction;
        self.transaction = self.random.next_u32() & super::packet::TRANSACTION;
        if state == State::Soliciting {
            self.offers.clear();
        }
        self.send(now)
    }

    /// Sends what the exchange sends, and sets the time of its repetition (RFC 8415 15).
    fn send(&mut self, now: u64) -> Vec<Action> {
        if self.sent == 0 {
            self.asked_ns = now;
            self.wait_ns = 0;
        }
        let Some(message) = self.message(now) else {
            // Nothing to ask a server for: the next one is looked for.
            self.state = State::Waiting;
            self.due = Some(now.saturating_add(REFUSED));
            return Vec::new();
        };
        self.counts.sent = self.counts.sent.saturating_add(1);
        self.last_ns = now;
        self.wait_ns = self.next_wait();
        let again = now.saturating_add(self.wait_ns);
        let until = self.held.as_ref().and_then(|lease| match self.state {
            State::Renewing => lease.at(lease.rebind_s),
            State::Soliciting | State::Requesting if self.config.keep => None,
            _ => self.ends_ns(),
        });
        let until = until.unwrap_or(u64::MAX).max(now.saturating_add(CLOSE));
        self.due = Some(again.min(until));
        self.sent = self.sent.saturating_add(1);
        vec![Action::Send(message)]
    }

    /// With a lease: when it is renewed. A thousand nodes that booted together shall not do so
    /// together; none: it never is.
    fn renewal(&mut self, now: u64) -> Option<u64> {
        let lease = self.held.as_ref()?;
        let (renew, asked) = (lease.at(lease.renew_s), lease.asked_ns);
        let ends = lease.ends_ns();
        let early = |random: &mut Random, at: u64| {
            at.saturating_sub(random.below(at.saturating_sub(asked) / 20))
        };
        let at = renew.map(|at| early(&mut self.random, at));
        let next = at.into_iter().chain(ends).min()?;
        Some(next.max(now.saturating_add(CLOSE)))
    }

    /// With a lease: which exchange its age asks for.
    fn holding(&mut self, now: u64) -> Vec<Action> {
        let Some(lease) = &self.held else {
            return self.enter(now, State::Soliciting);
        };
        let passed = |at: Option<u64>| at.is_some_and(|at| now >= at);
        match self.state {
            State::Rebinding => self.send(now),
            _ if passed(lease.at(lease.rebind_s)) => self.enter(now, State::Rebinding),
            State::Renewing => self.send(now),
            _ => self.enter(now, State::Renewing),
        }
    }

    /// Its time has passed.
    fn ended(&mut self, now: u64) -> Vec<Action> {
        let lease = self.held.as_ref().map(Lease::address_text);
        let lease = lease.unwrap_or_default();
        self.lost(now, "ended", &format!("the lease of {lease} has ended"))
    }

    /// The lease is over. Under a root file system the address stays, and is asked for anew.
    fn lost(&mut self, now: u64, kind: &'static str, why: &str) -> Vec<Action> {
        let Some(lease) = self.held.clone() else {
            return self.enter(now, State::Soliciting);
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
        actions.extend(self.enter(now, State::Soliciting));
        actions
    }

    /// The address that was granted is another host's: the kernel's duplicate address detection
    /// found it when it was set. The server is told, and another one asked for.
    pub fn duplicate(&mut self, now: u64) -> Vec<Action> {
        let Some(lease) = self.held.take() else {
            return Vec::new();
        };
        let what = format!("{} is taken by another host", lease.address);
        self.counts.taken = Some(what.clone());
        self.wanted = None;
        let mut actions = self.tell(now, "taken", format!("{what}: declined"));
        actions.push(Action::Lost(lease.address));
        self.declined = Some(lease);
        actions.extend(self.enter(now, State::Declining));
        actions
    }

    fn after_decline(&mut self, now: u64) -> Vec<Action> {
        let wait = if self.declines == 0 {
            DECLINED_ONCE
        } else {
            DECLINED
        };
        self.declined = None;
        self.declines = self.declines.saturating_add(1);
        self.state = State::Waiting;
        self.due = Some(now.saturating_add(wait));
        Vec::new()
    }
}
