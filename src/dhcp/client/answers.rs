// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a server's answer does to a client (RFC 2131 4.4; RFC 6842).

use std::net::Ipv4Addr;

use super::{Action, Client, GRACE, OFFERS, State};
use crate::dhcp::lease::Lease;
use crate::dhcp::packet::{Kind, Message, option};
use crate::error::printable;

impl Client {
    /// A message came from the link.
    pub fn received(&mut self, now: u64, message: &Message) -> Vec<Action> {
        if message.op != 2 {
            return Vec::new();
        }
        if message.xid != self.xid {
            if message.xid != self.former_xid {
                self.counts.foreign += 1;
            }
            return Vec::new();
        }
        // Servers need not send it back; one that sends another's answers another (RFC 6842).
        let id = message.option(option::CLIENT_ID);
        if id.is_some_and(|id| id != self.config.identity.client_id) {
            self.counts.foreign += 1;
            return Vec::new();
        }
        match (message.kind, self.state) {
            (Kind::Offer, State::Selecting | State::Requesting) => self.offered(now, message),
            (
                Kind::Ack,
                State::Requesting | State::Rebooting | State::Renewing | State::Rebinding,
            ) => self.acknowledged(now, message),
            (
                Kind::Nak,
                State::Requesting | State::Rebooting | State::Renewing | State::Rebinding,
            ) => self.refused(now, message),
            // FORCERENEW too, since nobody can tell who sent it (RFC 3203 5.4).
            _ => {
                self.counts.unsolicited += 1;
                Vec::new()
            }
        }
    }

    /// An answer that cannot be used is counted with its reason, and the next one awaited.
    fn disbelieve(&mut self, message: &Message, why: &str) -> Vec<Action> {
        self.counts.unusable += 1;
        let from = message
            .address(option::SERVER)
            .map_or_else(String::new, |server| format!(" of {server}"));
        let what = format!("{}{from}: {why}", message.kind);
        let said = self.counts.why_unusable.as_deref() == Some(what.as_str());
        self.counts.why_unusable = Some(what.clone());
        if said {
            return Vec::new();
        }
        vec![Action::Say(true, format!("not usable: {what}"))]
    }

    fn offered(&mut self, now: u64, message: &Message) -> Vec<Action> {
        let offer = match Lease::of(message, self.asked_ns) {
            Ok(offer) => offer,
            Err(why) => return self.disbelieve(message, &why),
        };
        if let Some(held) = self
            .held
            .as_ref()
            .filter(|held| held.address != offer.address)
        {
            let why = format!("{} while {} is kept", offer.address, held.address);
            return self.disbelieve(message, &why);
        }
        self.counts.offers += 1;
        let known = |other: &Lease| other.server == offer.server;
        if self.offers.iter().any(known) || self.offers.len() >= OFFERS {
            return Vec::new();
        }
        let is_shunned = self.shunned.contains(&offer.server);
        let is_first = self.offers.is_empty();
        self.offers.push(offer);
        if self.state != State::Selecting {
            return Vec::new();
        }
        if !is_shunned {
            // Ahead of the shunned ones that came before.
            self.offers.rotate_right(1);
            return self.enter(now, State::Requesting);
        }
        if is_first {
            self.due = Some(now.saturating_add(GRACE));
        }
        Vec::new()
    }

    /// The server that this answer must come from; none: any one.
    fn answering(&self) -> Option<Ipv4Addr> {
        match self.state {
            State::Requesting => self.offers.first().map(|offer| offer.server),
            _ => None,
        }
    }

    fn acknowledged(&mut self, now: u64, message: &Message) -> Vec<Action> {
        let lease = match Lease::of(message, self.asked_ns) {
            Ok(lease) => lease,
            Err(why) => return self.disbelieve(message, &why),
        };
        if self
            .answering()
            .is_some_and(|server| server != lease.server)
        {
            return self.disbelieve(message, "another server was asked");
        }
        let asked_for = match self.state {
            State::Requesting => self.offers.first().map(|offer| offer.address),
            State::Rebooting => self.wanted,
            _ => self.held.as_ref().map(|held| held.address),
        };
        if asked_for != Some(lease.address) {
            return self.disbelieve(message, &format!("{} was not asked for", lease.address));
        }
        self.counts.acks += 1;
        if self.held.is_some() {
            return self.bound(now, lease);
        }
        self.begin_probing(now, lease)
    }

    /// The lease is in use from now on.
    pub(super) fn bound(&mut self, now: u64, lease: Lease) -> Vec<Action> {
        self.state = State::Bound;
        self.wanted = Some(lease.address);
        self.held = Some(lease);
        self.offers.clear();
        self.shunned.clear();
        self.naks = 0;
        self.due = self.next_time(now);
        vec![Action::Bound]
    }

    fn refused(&mut self, now: u64, message: &Message) -> Vec<Action> {
        let Some(server) = message.address(option::SERVER) else {
            return self.disbelieve(message, "no server identifier (option 54)");
        };
        let wanted = match self.state {
            State::Renewing => self.held.as_ref().map(|held| held.server),
            _ => self.answering(),
        };
        if wanted.is_some_and(|wanted| wanted != server) {
            return self.disbelieve(message, "another server was asked");
        }
        let words = message.option(option::MESSAGE).unwrap_or_default();
        let words = String::from_utf8_lossy(words);
        let words = words.trim_end_matches('\0');
        let why = if words.is_empty() {
            format!("server {server} refuses (NAK)")
        } else {
            format!("server {server} refuses (NAK): {}", printable(words))
        };
        self.counts.naks += 1;
        self.counts.why_nak = Some(why.clone());
        if self.held.is_some() && !matches!(self.state, State::Requesting) {
            return self.lost(now, &why);
        }
        let mut actions = vec![Action::Say(true, why)];
        if self.state == State::Rebooting {
            self.wanted = None;
            actions.extend(self.enter(now, State::Selecting));
            return actions;
        }
        // A server that offers and refuses must not make a storm.
        self.shun(Some(server));
        self.state = State::Waiting;
        let wait = self.backoff(self.naks);
        self.due = Some(now.saturating_add(wait));
        self.naks = self.naks.saturating_add(1);
        actions
    }
}
