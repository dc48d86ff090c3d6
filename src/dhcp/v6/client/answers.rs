// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a client handles messages (RFC 8415 18.2.9 and 18.2.10).

use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::{AT_ONCE, Action, Client, Offer, REFUSED, REFUSED_AFTER_BOOT, REFUSED_LONGEST, State};
use crate::dhcp::brake::Reason;
use crate::dhcp::conduct::{GRACE, OFFERS};
use crate::dhcp::progress::{Counts, count};
use crate::dhcp::v6::answer::{Answer, Context};
use crate::dhcp::v6::lease::{Lease, Refusal};
use crate::dhcp::v6::packet::Kind;
use crate::hardware::{Hex, unhex};

impl Client {
    /// What the decoder must know about a message from the address `from`.
    pub fn context(&self, from: Ipv6Addr) -> Context {
        Context {
            from,
            iaid: Some(self.config.identity.iaid),
            requested: match self.state {
                State::Requesting => self.offers.first().map(|offer| offer.lease.address),
                State::Renewing | State::Rebinding => self.held.as_ref().map(|held| held.address),
                _ => self.requested,
            },
        }
    }

    /// Handles a message to the client's port.
    pub fn received(&mut self, now_ns: u64, message: &Answer) -> Vec<Action> {
        if !matches!(message.kind, Kind::Advertise | Kind::Reply) {
            // RECONFIGURE is ignored too: the client never accepted reconfiguration (RFC 8415
            // 18.2.11).
            count(&mut self.counts.unsolicited);
            return Vec::new();
        }
        let own = self.config.identity.duid.as_slice();
        let is_ours = match message.client_id.as_deref() {
            Some(id) if id != own => false,
            _ => message.transaction == self.transaction,
        };
        if !is_ours {
            if message.transaction != self.former {
                count(&mut self.counts.foreign);
            }
            return Vec::new();
        }
        let Some(server) = message.server_id.as_deref() else {
            return self.reject(now_ns, message, &"no server identifier (option 2)".into());
        };
        if message.client_id.is_none() {
            return self.reject(now_ns, message, &"no client identifier (option 1)".into());
        }
        let is_expected = match self.expected() {
            Some(asked) => unhex(asked).as_deref() == Some(server),
            None => true,
        };
        match (message.kind, self.state) {
            (Kind::Advertise, State::Soliciting) => self.offered(now_ns, message),
            (Kind::Reply, State::Soliciting) if message.is_rapid && self.held.is_none() => {
                self.granted(now_ns, message)
            }
            (Kind::Reply, State::Requesting | State::Renewing | State::Declining)
                if !is_expected =>
            {
                self.reject(
                    now_ns,
                    message,
                    &"the request went to another server".into(),
                )
            }
            (Kind::Reply, State::Requesting | State::Renewing | State::Rebinding) => {
                self.granted(now_ns, message)
            }
            // Any REPLY ends the DECLINE exchange, whatever its status.
            (Kind::Reply, State::Declining) => self.after_decline(now_ns),
            _ => {
                count(&mut self.counts.unsolicited);
                Vec::new()
            }
        }
    }

    /// DUID of the server that must answer; none: any server may.
    fn expected(&self) -> Option<&str> {
        let lease = match self.state {
            State::Requesting => self.offers.first().map(|offer| &offer.lease),
            State::Renewing => self.held.as_ref(),
            State::Declining => self.declined.as_ref(),
            _ => None,
        };
        lease.map(|lease| lease.server_id.as_str())
    }

    /// Counts an unusable answer with its reason; the client waits for the next answer.
    fn reject(&mut self, now_ns: u64, message: &Answer, why: &Reason) -> Vec<Action> {
        count(&mut self.counts.unusable);
        let what = format!("{} from {}: {why}", message.kind, message.from);
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
        kind: impl Into<Cow<'static, str>>,
        line: String,
    ) -> Vec<Action> {
        let line = self.of_lease.pass(now_ns, kind, line);
        line.into_iter().map(Action::Warn).collect()
    }

    /// Counts a refusal with its reason, and logs it.
    fn note_refusal(&mut self, now_ns: u64, from: Ipv6Addr, refusal: &Refusal) -> Vec<Action> {
        count(&mut self.counts.refusals);
        let what = format!("server {from} refuses: {refusal}");
        let lines = self.warn(now_ns, refusal.kind(), what.clone());
        Counts::note(&mut self.counts.why_refused, !lines.is_empty(), what);
        lines
    }

    fn offered(&mut self, now_ns: u64, message: &Answer) -> Vec<Action> {
        self.slow_down(message);
        let lease = match self.lease_of(message) {
            Ok(lease) => lease,
            Err(Refusal::Unusable(why)) => return self.reject(now_ns, message, &why),
            Err(refusal) => return self.note_refusal(now_ns, message.from, &refusal),
        };
        if let Some(why) = self.is_kept_from(&lease) {
            return self.reject(now_ns, message, &why);
        }
        count(&mut self.counts.offers);
        let known = |other: &Offer| other.lease.server_id == lease.server_id;
        if self.offers.iter().any(known) {
            return Vec::new();
        }
        let preference = message.preference;
        let is_shunned = self.shunned.contains(&lease.server_id);
        self.offers.push(Offer { lease, preference });
        let (shunned, requested) = (&self.shunned, self.requested);
        // The sort is stable: of equal offers the first to arrive stays first.
        self.offers.sort_by_key(|offer| {
            let is_shunned = shunned.contains(&offer.lease.server_id);
            let is_requested = requested == Some(offer.lease.address);
            (is_shunned, 255 - offer.preference, !is_requested)
        });
        self.offers.truncate(OFFERS);
        let first_wait_is_over = self.sent > 1;
        if is_shunned {
            if first_wait_is_over && self.offers.len() == 1 {
                self.due = Some(now_ns.saturating_add(GRACE));
            }
            return Vec::new();
        }
        if preference == AT_ONCE || first_wait_is_over {
            return self.enter(now_ns, State::Requesting);
        }
        Vec::new()
    }

    /// What the message grants for the last request.
    fn lease_of(&self, message: &Answer) -> Result<Lease, Refusal> {
        let lease = message.lease.clone()?;
        Ok(Lease {
            requested_ns: self.last_ns,
            ..lease
        })
    }

    /// Why this lease is rejected: another address is kept.
    fn is_kept_from(&self, lease: &Lease) -> Option<Reason> {
        let held = self.held.as_ref().filter(|_| self.config.keep)?;
        let why = || format!("{}, but {} is kept", lease.address, held.address);
        (held.address != lease.address).then(|| Reason::new("another address is kept", why()))
    }

    /// The lease, no longer than the one that is kept if another server granted that one: a strange server
    /// must not silence the client for years.
    fn shortened(&self, lease: Lease) -> Lease {
        let held = self.held.as_ref().filter(|_| self.config.keep);
        match held.filter(|held| held.server_id != lease.server_id) {
            Some(held) => Lease {
                seconds: lease.seconds.min(held.seconds),
                preferred_s: lease.preferred_s.min(held.preferred_s),
                renew_s: lease.renew_s.min(held.renew_s),
                rebind_s: lease.rebind_s.min(held.rebind_s),
                ..lease
            },
            None => lease,
        }
    }

    /// Handles an answer that grants or refuses.
    fn granted(&mut self, now_ns: u64, message: &Answer) -> Vec<Action> {
        self.slow_down(message);
        let requested = self.context(message.from).requested;
        let is_renewal = matches!(self.state, State::Renewing | State::Rebinding);
        // A server that renumbers the link grants another address instead (18.2.10.1).
        let is_withdrawn = is_renewal && message.is_withdrawn;
        let lease = match self.lease_of(message) {
            answer if is_withdrawn && (self.config.keep || answer.is_err()) => {
                return self.refused(now_ns, message, &Refusal::Ended);
            }
            Ok(lease) => self.shortened(lease),
            Err(Refusal::Unusable(why)) => return self.reject(now_ns, message, &why),
            Err(refusal) => return self.refused(now_ns, message, &refusal),
        };
        if is_renewal && !is_withdrawn && requested != Some(lease.address) {
            let why = format!("{} was not requested", lease.address);
            let why = Reason::new("an address that was not requested", why);
            return self.reject(now_ns, message, &why);
        }
        if let Some(why) = self.is_kept_from(&lease) {
            return self.reject(now_ns, message, &why);
        }
        count(&mut self.counts.replies);
        let mut actions = Vec::new();
        if let Some(held) = &self.held
            && held.address != lease.address
        {
            actions.push(Action::Lost(held.address));
        }
        if is_renewal {
            self.declines = 0;
        }
        self.refusals = 0;
        self.brake.loosen();
        self.of_lease.loosen();
        self.state = State::Bound;
        self.requested = Some(lease.address);
        self.held = Some(lease);
        self.offers.clear();
        self.shunned.clear();
        self.due = self.renewal(now_ns);
        actions.push(Action::Bound);
        actions
    }

    /// Whether the message comes from the server that granted the held lease.
    fn is_own_server(&self, message: &Answer) -> bool {
        let server = message.server_id.as_deref().unwrap_or_default();
        let held = self.held.as_ref();
        held.is_some_and(|held| unhex(&held.server_id).as_deref() == Some(server))
    }

    /// Handles the refusal of the answering server.
    fn refused(&mut self, now_ns: u64, message: &Answer, refusal: &Refusal) -> Vec<Action> {
        let from = message.from;
        let mut actions = self.note_refusal(now_ns, from, refusal);
        match self.state {
            State::Renewing | State::Rebinding if *refusal == Refusal::Ended => {
                return self.lost(now_ns, refusal.kind(), &format!("server {from}: {refusal}"));
            }
            // The server has no record of the lease: the client requests the same address as if the
            // server had offered it (18.2.10.1).
            State::Renewing | State::Rebinding if refusal.is_no_binding() => {
                let server = message.server_id.as_deref().unwrap_or_default();
                let lease = self.held.clone().map(|held| Lease {
                    server: from,
                    server_id: Hex(server).to_string(),
                    ..held
                });
                self.offers = lease
                    .map(|lease| Offer {
                        lease,
                        preference: 0,
                    })
                    .into_iter()
                    .collect();
                actions.extend(self.enter(now_ns, State::Requesting));
            }
            State::Requesting if self.is_own_server(message) && !self.config.keep => {
                let why = format!("server {from} refuses: {refusal}");
                return self.lost(now_ns, refusal.kind(), &why);
            }
            State::Requesting => {
                self.shun();
                self.requested = self.held.as_ref().map(|held| held.address);
                let longest = match self.config.boot_waits {
                    true => REFUSED_LONGEST,
                    false => REFUSED_AFTER_BOOT,
                };
                let wait = REFUSED
                    .saturating_mul(1_u64.checked_shl(self.refusals).unwrap_or(u64::MAX))
                    .min(longest);
                self.refusals = self.refusals.saturating_add(1);
                self.state = State::Waiting;
                let ends = self.ends_ns().filter(|_| self.may_renew());
                let ends = ends.unwrap_or(u64::MAX);
                self.due = Some(now_ns.saturating_add(wait).min(ends));
            }
            // Other servers may still grant the address.
            _ => {}
        }
        actions
    }
}
