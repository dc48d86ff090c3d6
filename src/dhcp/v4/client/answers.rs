// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a client handles a server's answer (RFC 2131 4.4; RFC 6842).

use std::borrow::Cow;
use std::net::Ipv4Addr;

use super::{Action, Client, State};
use crate::dhcp::brake::Reason;
use crate::dhcp::conduct::{GRACE, OFFERS};
use crate::dhcp::progress::{Counts, count};
use crate::dhcp::v4::answer::Answer;
use crate::dhcp::v4::lease::Lease;
use crate::dhcp::v4::packet::Kind;
use crate::error::printable;
use crate::redact;

impl Client {
    /// Admits an answer of this transaction, and counts one of another transaction.
    pub fn admit(&mut self, xid: u32) -> bool {
        if ![self.xid, self.former_xid].contains(&xid) {
            count(&mut self.counts.foreign);
        }
        xid == self.xid
    }

    /// Handles a message from the link.
    pub fn received(&mut self, now_ns: u64, message: &Answer) -> Vec<Action> {
        if message.op != 2 {
            return Vec::new();
        }
        if !self.admit(message.xid) {
            return Vec::new();
        }
        // A server need not echo the client identifier; an answer with another identifier is for
        // another client (RFC 6842).
        let id = message.client_id.as_ref();
        if id.is_some_and(|id| *id != self.config.identity.client_id) {
            count(&mut self.counts.foreign);
            return Vec::new();
        }
        if let Some(why) = self.not_our_hardware(message) {
            return self.reject(now_ns, message, &why);
        }
        match (message.kind, self.state) {
            (Kind::Offer, State::Selecting | State::Requesting) => self.offered(now_ns, message),
            (
                Kind::Ack,
                State::Requesting | State::Rebooting | State::Renewing | State::Rebinding,
            ) => self.acknowledged(now_ns, message),
            (
                Kind::Nak,
                State::Requesting | State::Rebooting | State::Renewing | State::Rebinding,
            ) => self.refused(now_ns, message),
            // FORCERENEW is ignored too: its sender cannot be verified (RFC 3203 5.4).
            _ => {
                count(&mut self.counts.unsolicited);
                Vec::new()
            }
        }
    }

    /// Counts an unusable answer with its reason; the client waits for the next answer.
    fn reject(&mut self, now_ns: u64, message: &Answer, why: &Reason) -> Vec<Action> {
        count(&mut self.counts.unusable);
        let from = message
            .server
            .map_or_else(String::new, |server| format!(" from {server}"));
        let what = format!("{}{from}: {why}", message.kind);
        let lines = self.warn(now_ns, why.kind.clone(), format!("not usable: {what}"));
        Counts::note(&mut self.counts.why_unusable, !lines.is_empty(), what);
        lines
    }

    /// A warning about an answer; none after a warning of the same kind, or after too many others,
    /// since the last lease.
    fn warn(&mut self, now_ns: u64, kind: Cow<'static, str>, line: String) -> Vec<Action> {
        let line = self.brake.pass(now_ns, kind, line);
        line.into_iter().map(Action::Warn).collect()
    }

    /// Like `warn`, about a lease.
    pub(super) fn warn_of_lease(
        &mut self,
        now_ns: u64,
        kind: &'static str,
        line: String,
    ) -> Vec<Action> {
        let line = self.of_lease.pass(now_ns, kind, line);
        line.into_iter().map(Action::Warn).collect()
    }

    /// Servers echo the hardware fields of the client (RFC 2131 4.3.1, table 3): over InfiniBand
    /// without a hardware address (RFC 4390 2.1).
    fn not_our_hardware(&self, message: &Answer) -> Option<Reason> {
        let own = self.hardware();
        let length = usize::from(own.hlen).min(own.chaddr.len());
        let is_same = (message.htype, message.hlen) == (own.htype, own.hlen)
            && message.chaddr.get(..length) == own.chaddr.get(..length);
        let text = || {
            format!(
                "hardware type {} with an address of {} bytes, expected {} with {}",
                message.htype, message.hlen, own.htype, own.hlen
            )
        };
        (!is_same).then(|| Reason::new("other hardware", text()))
    }

    fn offered(&mut self, now_ns: u64, message: &Answer) -> Vec<Action> {
        let offer = match &message.grant {
            Ok(grant) => grant.lease(self.requested_ns),
            Err(why) => return self.reject(now_ns, message, why),
        };
        if let Some(held) = self
            .held
            .as_ref()
            .filter(|held| held.address != offer.address)
        {
            let why = format!("{}, but {} is kept", offer.address, held.address);
            let why = Reason::new("another address is kept", why);
            return self.reject(now_ns, message, &why);
        }
        count(&mut self.counts.offers);
        let known = |other: &Lease| other.server == offer.server;
        if self.offers.iter().any(known) {
            return Vec::new();
        }
        let is_shunned = self.shunned.contains(&offer.server);
        let is_first = self.offers.is_empty();
        if self.state != State::Selecting {
            self.remember(offer, is_shunned);
            return Vec::new();
        }
        if is_shunned && self.offers.len() >= OFFERS {
            return Vec::new();
        }
        self.offers.push(offer);
        if !is_shunned {
            // Goes before the offers of shunned servers that arrived earlier.
            self.offers.rotate_right(1);
            return self.enter(now_ns, State::Requesting);
        }
        if is_first {
            self.due = Some(now_ns.saturating_add(GRACE));
        }
        Vec::new()
    }

    /// Remembers another offer beside the requested one. An offer of a shunned server never takes
    /// the place of another offer; of many other offers each has the same chance (reservoir
    /// sampling). A thousand servers that answer first cannot keep out the server that delivers.
    fn remember(&mut self, offer: Lease, is_shunned: bool) {
        if !is_shunned {
            self.candidates = self.candidates.saturating_add(1);
        }
        if self.offers.len() < OFFERS {
            self.offers.push(offer);
            return;
        }
        if is_shunned {
            return;
        }
        let shunned = &self.shunned;
        let mut others = self.offers.iter_mut().skip(1);
        let place = match others.find(|other| shunned.contains(&other.server)) {
            Some(place) => Some(place),
            None => {
                let chance = usize::try_from(self.random.below(self.candidates));
                // The requested offer keeps the first place; an index beyond the last place drops
                // the offer.
                self.offers
                    .get_mut(chance.unwrap_or(OFFERS).saturating_add(1))
            }
        };
        if let Some(place) = place {
            *place = offer;
        }
    }

    /// The server that must send this answer; none: any server may.
    fn answering(&self) -> Option<Ipv4Addr> {
        match self.state {
            State::Requesting => self.offers.first().map(|offer| offer.server),
            // RENEW went to this server alone (RFC 2131 4.4.5).
            State::Renewing => self.held.as_ref().map(|held| held.server),
            _ => None,
        }
    }

    fn acknowledged(&mut self, now_ns: u64, message: &Answer) -> Vec<Action> {
        let mut lease = match &message.grant {
            Ok(grant) => grant.lease(self.requested_ns),
            Err(why) => return self.reject(now_ns, message, why),
        };
        if self
            .answering()
            .is_some_and(|server| server != lease.server)
        {
            return self.reject(
                now_ns,
                message,
                &"the request went to another server".into(),
            );
        }
        let requested = match self.state {
            State::Requesting => self.offers.first().map(|offer| offer.address),
            State::Rebooting => self.requested,
            _ => self.held.as_ref().map(|held| held.address),
        };
        if requested != Some(lease.address) {
            let why = format!("{} was not requested", lease.address);
            let why = Reason::new("an address that was not requested", why);
            return self.reject(now_ns, message, &why);
        }
        count(&mut self.counts.replies);
        if let Some(held) = &self.held {
            // A strange server must not silence the client for years. A client may renew before T1 (RFC
            // 2131 4.4.5), and the address of a root file system stays when its lease ends.
            if self.config.keep && held.server != lease.server {
                lease.seconds = lease.seconds.min(held.seconds);
                lease.renew_s = lease.renew_s.min(held.renew_s);
                lease.rebind_s = lease.rebind_s.min(held.rebind_s);
            }
            return self.bound(now_ns, lease);
        }
        self.begin_probing(now_ns, lease)
    }

    /// The client uses the lease from now on.
    pub(super) fn bound(&mut self, now_ns: u64, lease: Lease) -> Vec<Action> {
        self.state = State::Bound;
        self.requested = Some(lease.address);
        self.held = Some(lease);
        self.has_ended = false;
        self.offers.clear();
        self.shunned.clear();
        self.naks = 0;
        self.brake.loosen();
        self.of_lease.loosen();
        self.due = self.next_time(now_ns);
        vec![Action::Bound]
    }

    fn refused(&mut self, now_ns: u64, message: &Answer) -> Vec<Action> {
        let Some(server) = message.server else {
            return self.reject(now_ns, message, &"no server identifier (option 54)".into());
        };
        if self.answering().is_some_and(|expected| expected != server) {
            return self.reject(
                now_ns,
                message,
                &"the request went to another server".into(),
            );
        }
        let words = message.words.as_str();
        let why = if words.is_empty() {
            format!("server {server} refuses (NAK)")
        } else {
            format!(
                "server {server} refuses (NAK): {}",
                printable(&redact::place(words))
            )
        };
        count(&mut self.counts.refusals);
        let actions = self.after_refusal(now_ns, server, &why);
        let is_logged = actions
            .iter()
            .any(|action| matches!(action, Action::Warn(_)));
        Counts::note(&mut self.counts.why_refused, is_logged, why);
        actions
    }

    fn after_refusal(&mut self, now_ns: u64, server: Ipv4Addr, why: &str) -> Vec<Action> {
        if self.has_ended && self.state == State::Rebooting {
            // Only the next DISCOVER can bring the address back.
            return Vec::new();
        }
        if self.held.is_some() && !matches!(self.state, State::Requesting) {
            return self.lost(now_ns, "refused", why);
        }
        let mut actions = self.warn_of_lease(now_ns, "NAK", why.to_owned());
        if self.state == State::Rebooting {
            self.requested = None;
            actions.extend(self.enter(now_ns, State::Selecting));
            return actions;
        }
        // A server that offers and refuses must not cause a storm.
        self.shun(Some(server));
        self.state = State::Waiting;
        let wait = self.backoff(self.naks);
        self.due = Some(now_ns.saturating_add(wait));
        self.naks = self.naks.saturating_add(1);
        actions
    }
}
