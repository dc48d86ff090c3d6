// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes whether another host has the granted address. The address is used at once and probed
//! meanwhile; a conflict within this second removes the address (RFC 2131 4.4.1; RFC 5227 requires
//! the probe first).

use std::net::Ipv4Addr;

use super::{Action, Client, Destination, SECOND, State};
use crate::dhcp::conduct::after_decline;
use crate::dhcp::progress::count;
use crate::dhcp::v4::arp::Arp;
use crate::dhcp::v4::lease::Lease;
use crate::hardware::Hex;

/// Number of ARP probes and the time between two of them: one second in all, where RFC 5227 takes
/// five.
const PROBES: u32 = 3;
const PROBE_APART: u64 = SECOND * 3 / 10;
/// Time between two defences of an address (RFC 5227 1.1, DEFEND_INTERVAL).
const DEFEND_APART: u64 = 10 * SECOND;

impl Client {
    /// Uses a new lease and starts to probe the link for another host with the address.
    pub(super) fn begin_probing(&mut self, now_ns: u64, lease: Lease) -> Vec<Action> {
        let mut actions = self.bound(now_ns, lease);
        self.state = State::Probing;
        self.sent = 0;
        actions.extend(self.probe(now_ns));
        actions
    }

    /// Sends the next ARP probe, or ends the probes. Probes that cannot be sent do not outlast the
    /// lease.
    pub(super) fn probe(&mut self, now_ns: u64) -> Vec<Action> {
        let Some(lease) = &self.held else {
            return self.enter(now_ns, State::Selecting);
        };
        let address = lease.address;
        if lease.ends_ns().is_some_and(|ends| now_ns >= ends) {
            return self.holding(now_ns);
        }
        if self.sent >= PROBES {
            self.state = State::Bound;
            self.declines = 0;
            self.due = self.next_time(now_ns);
            return vec![Action::Unopposed(address)];
        }
        self.sent += 1;
        self.due = Some(now_ns.saturating_add(PROBE_APART));
        vec![Action::Probe(address)]
    }

    /// The last probe could not be sent: the probe does not count, and is repeated at its time.
    pub fn probe_not_sent(&mut self) {
        if self.state == State::Probing {
            self.sent = self.sent.saturating_sub(1);
        }
    }

    /// Whether the link has carrier. Without carrier the kernel drops probes and reports no error:
    /// the probes wait until the lease ends, and begin again with the carrier.
    pub fn set_carrier(&mut self, now_ns: u64, has_carrier: bool) {
        if self.state != State::Probing {
            return;
        }
        let end = self.held.as_ref().and_then(Lease::ends_ns);
        if !has_carrier {
            self.sent = 0;
            self.due = end;
        } else if self.due == end {
            self.due = Some(now_ns);
        }
    }

    /// Handles an ARP packet from another machine on the link.
    pub fn arp(&mut self, now_ns: u64, arp: &Arp) -> Vec<Action> {
        let Some(lease) = &self.held else {
            return Vec::new();
        };
        let address = lease.address;
        if self.state != State::Probing {
            let is_other = arp.sender != self.config.identity.hardware;
            return if is_other && arp.sender_address == address {
                self.conflict(now_ns, address, arp)
            } else {
                Vec::new()
            };
        }
        if !arp.takes(address, &self.config.identity.hardware) {
            return Vec::new();
        }
        let what = format!("the host {} uses {address}", Hex(&arp.sender));
        let decline = self.decline(lease);
        self.counts.taken = Some(what.clone());
        self.held = None;
        self.requested = None;
        self.state = State::Waiting;
        self.due = Some(now_ns.saturating_add(after_decline(self.declines)));
        self.declines = self.declines.saturating_add(1);
        count(&mut self.counts.sent);
        let line = format!("{what}: declined; requesting another address");
        let mut actions = self.warn_of_lease(now_ns, "taken", line);
        let broadcast = Destination::Link(Ipv4Addr::UNSPECIFIED);
        actions.push(Action::Send(decline, broadcast));
        actions.push(Action::Lost(address));
        actions
    }

    /// Handles an ARP packet that was not decoded. The packet may have named another host with the
    /// address: while the address is probed, the probes start again.
    pub fn deaf_to_arp(&mut self, now_ns: u64) -> Vec<Action> {
        let held = self.held.as_ref().filter(|_| self.state == State::Probing);
        let Some(address) = held.map(|lease| lease.address) else {
            return Vec::new();
        };
        self.sent = 0;
        let line = format!(
            "whether another host uses {address} is unknown: an ARP message was not decoded; \
             probing the address again"
        );
        self.warn_of_lease(now_ns, "unknown", line)
    }

    /// Another host uses our address (RFC 5227 2.4). The client defends the address and never gives
    /// it up: otherwise one forged ARP packet could take the address of any node.
    fn conflict(&mut self, now_ns: u64, address: Ipv4Addr, arp: &Arp) -> Vec<Action> {
        let is_soon = |at: u64| now_ns.saturating_sub(at) < DEFEND_APART;
        if self.defended_ns.is_some_and(is_soon) {
            return Vec::new();
        }
        self.defended_ns = Some(now_ns);
        let line = format!(
            "{} also uses {address}: the address is kept and announced again",
            Hex(&arp.sender)
        );
        let mut actions = self.warn_of_lease(now_ns, "conflict", line);
        actions.push(Action::Defend(address));
        actions
    }
}
