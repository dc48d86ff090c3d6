// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DHCPv6 lease that is kept.

use std::net::{IpAddr, Ipv6Addr};

use super::place::{Place, There};
use super::reconcile::{Seen, Verdict};
use super::{Doubt, Renewals, Troubles, Turn, arrive, take_away};
use crate::dhcp6::client::Config;
use crate::dhcp6::duid::Identity;
use crate::dhcp6::lease::{Lease, PREFIX};
use crate::dhcp6::progress::Progress;
use crate::dhcp6::session::{Outcome, Session};
use crate::error::{Error, Result};
use crate::facts::Netdev;
use crate::handover::Entry;
use crate::hardware::unhex;
use crate::system::clock::boottime_ns;

/// Duplicate address detection of a new address is over by then, and tells nobody.
const DETECTION: u64 = 3_000_000_000;

pub(super) struct Kept {
    place: Place,
    /// As it was when there was no session: who asks, and for what.
    before: Progress,
    /// None: the interface is not there, or has no link-local address.
    session: Option<Session>,
    /// What is set on the interface, or is to be: what is granted just now is not there yet.
    lease: Option<Lease>,
    seen: Seen,
    /// The interface came back: whether the lease holds on its link is asked.
    is_unverified: bool,
    /// When a new address is looked at again, ns since kernel start.
    look: Option<u64>,
    troubles: Troubles,
    doubt: Doubt,
    renewals: Renewals,
    /// The index of the interface in what was written down last.
    pub(super) noted_as: u32,
    /// Something is to be written down.
    pub(super) has_news: bool,
}

impl Kept {
    pub(super) fn new(progress: &Progress, entry: &Entry) -> Kept {
        let lease = progress.lease.clone();
        Kept {
            place: Place::new(&progress.interface, progress.index, entry.identity.clone()),
            before: progress.clone(),
            session: None,
            seen: lease
                .as_ref()
                .map_or_else(Seen::nothing, |_| Seen::handed_over()),
            lease,
            is_unverified: false,
            look: None,
            troubles: Troubles::default(),
            doubt: Doubt::default(),
            renewals: Renewals::default(),
            noted_as: progress.index,
            has_news: true,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let session = self.session.as_ref().map(Session::progress);
        Progress {
            interface: self.place.name.clone(),
            index: self.place.index,
            wish: self.before.wish.clone(),
            ..session.unwrap_or_else(|| self.before.clone())
        }
    }

    pub(super) fn entry(&self) -> Entry {
        Entry {
            is_v6: true,
            index: self.place.index,
            identity: self.place.identity.clone(),
            routes: Vec::new(),
        }
    }

    pub(super) fn due(&self) -> Option<u64> {
        let session = self.session.as_ref().and_then(Session::due);
        session
            .into_iter()
            .chain(self.look)
            .chain(self.doubt.due())
            .min()
    }

    pub(super) fn wake(&mut self) {
        if let Some(session) = &mut self.session {
            session.wake();
        }
    }

    pub(super) async fn changed(&mut self) {
        match &mut self.session {
            Some(session) => session.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Does what is due and what came of it. False: it has another owner now.
    pub(super) async fn go_on(&mut self, turn: &Turn<'_>) -> bool {
        let what = self.lease.as_ref().map(Lease::address_text);
        let what = what.unwrap_or_else(|| "DHCPv6".to_owned());
        let Some(there) = arrive(&mut self.place, turn, &what).await else {
            self.doubt = Doubt::default();
            self.close();
            return true;
        };
        if there.is_back {
            self.close();
            self.seen = Seen::nothing();
            self.is_unverified = true;
            self.has_news = true;
        }
        if !there.netdev.up {
            self.doubt = Doubt::default();
        } else if !self.reconcile(turn, &there).await {
            return false;
        }
        if self.look.is_some_and(|look| boottime_ns() >= look) {
            self.look = None;
        }
        let local = there.netdev.link_local().filter(|_| there.netdev.up);
        let asks_from = self.session.as_ref().map(Session::local);
        if asks_from.is_some() && local.is_some() && asks_from != local {
            let is_there = asks_from.and_then(|asks_from| there.netdev.shown6(asks_from));
            if is_there.is_none() {
                self.close();
            }
        }
        if self.session.is_none() {
            self.open(there.netdev, local);
        } else if there.came_up
            && let Some(session) = &mut self.session
        {
            session.hurry();
        }
        self.work(turn, there.netdev).await;
        true
    }

    /// What is to be on the interface is there, and the client can ask.
    fn well(&mut self) {
        if self.session.is_some() {
            self.troubles.are_over();
        }
    }

    /// Its socket is of a device or an address that is gone.
    fn close(&mut self) {
        if self.session.is_some() {
            self.before = self.progress();
            self.session = None;
            self.has_news = true;
        }
    }

    fn open(&mut self, netdev: &Netdev, local: Option<Ipv6Addr>) {
        let Some(local) = local else {
            // That comes by itself when the link is up.
            return;
        };
        match self.session(netdev, local) {
            Ok(session) => {
                self.session = Some(session);
                self.is_unverified = false;
            }
            Err(error) => self.troubles.say(error.to_string()),
        }
    }

    /// A client that goes on with the lease.
    fn session(&mut self, netdev: &Netdev, local: Ipv6Addr) -> Result<Session> {
        let (name, wish) = (&netdev.ifname, &self.before.wish);
        let cannot = |why: &str| Error::new(name, "DHCPv6 lease cannot be renewed").seen(why);
        let identity = Identity {
            duid: unhex(&self.before.duid).ok_or_else(|| cannot("its DUID"))?,
            iaid: self.before.iaid,
        };
        let keep = wish.keep;
        let config = Config { identity, keep };
        let mut session = Session::open(name, self.place.index, local, config)?;
        session.set_router(self.before.router);
        let Some(lease) = self.lease.clone() else {
            log::info!("{name}: a DHCPv6 server is asked for another address");
            session.start(None);
            return Ok(session);
        };
        let what = lease.address_text();
        let is_over = lease.ends_ns().is_some_and(|ends| boottime_ns() >= ends);
        if self.is_unverified && is_over && !keep {
            // It is not on the interface, and is not ours to set any more.
            log::info!("{name}: a DHCPv6 server is asked for {what} again");
            session.start(Some(lease.address));
            self.lease = None;
            return Ok(session);
        }
        log::info!(
            "{name}: {what} of {} is kept, {}",
            lease.server,
            lease.length()
        );
        session.resume(lease);
        if self.is_unverified {
            session.verify();
        }
        Ok(session)
    }

    /// Sets the address where it is not on the interface and should be. False: somebody took it away.
    async fn reconcile(&mut self, turn: &Turn<'_>, there: &There<'_>) -> bool {
        let doubt = std::mem::take(&mut self.doubt);
        let Some(lease) = self.lease.clone() else {
            return true;
        };
        let is_over = lease.ends_ns().is_some_and(|ends| boottime_ns() >= ends);
        let keep = self.before.wish.keep;
        if self.is_unverified && is_over && !keep {
            return true;
        }
        let (name, what) = (&there.netdev.ifname, lease.address_text());
        let has_address = there.netdev.shown6(lease.address).is_some();
        match self.seen.compare(there, has_address, &[], keep, &[]) {
            Verdict::Left => {
                self.doubt = doubt;
                if !self.doubt.is_certain() {
                    self.seen.set_address();
                    return true;
                }
                log::warn!(
                    "{name}: {what} is not on the interface any more: it is left to whoever took it away"
                );
                return false;
            }
            Verdict::Set { address: false, .. } => {
                self.well();
                if there.netdev.is_duplicate6(lease.address)
                    && let Some(session) = &mut self.session
                {
                    session.duplicate();
                }
            }
            Verdict::Set { .. } => match self.set(turn, lease.address).await {
                Ok(()) => {
                    self.seen.set_address();
                    log::info!("{name}: {what} set again");
                }
                Err(why) => {
                    self.troubles
                        .say(format!("{name}: {what} cannot be set again: {why}"));
                }
            },
        }
        true
    }

    async fn set(&mut self, turn: &Turn<'_>, address: Ipv6Addr) -> std::result::Result<(), String> {
        let address = IpAddr::V6(address);
        let set = turn
            .net
            .add_address(self.place.index, address, PREFIX, None);
        set.await?;
        self.look = Some(boottime_ns().saturating_add(DETECTION));
        Ok(())
    }

    /// The client's turn.
    async fn work(&mut self, turn: &Turn<'_>, netdev: &Netdev) {
        let Some(session) = &mut self.session else {
            return;
        };
        session.rename(&netdev.ifname);
        session.wake();
        let granted = session.lease().cloned();
        for outcome in session.outcomes() {
            self.has_news = true;
            match outcome {
                Outcome::Lost(address) => {
                    (self.lease, self.seen) = (None, Seen::nothing());
                    take_away(turn.net, netdev, self.place.index, IpAddr::V6(address)).await;
                }
                Outcome::Bound => {
                    if let Some(lease) = &granted {
                        self.bound(turn, netdev, lease).await;
                    }
                }
            }
        }
    }

    /// A renewed lease changes nothing but its times; a new address is set.
    async fn bound(&mut self, turn: &Turn<'_>, netdev: &Netdev, lease: &Lease) {
        let (name, what) = (&netdev.ifname, lease.address_text());
        let (server, length) = (lease.server, lease.length());
        let before = self.lease.replace(lease.clone());
        if before.is_some_and(|before| before.address == lease.address) {
            let level = self.renewals.level(boottime_ns());
            log::log!(level, "{name}: {what} renewed by {server}, {length}");
            return;
        }
        log::info!("{name}: {what} of {server}, {length}");
        self.seen = Seen::nothing();
        if let Err(why) = self.set(turn, lease.address).await {
            self.troubles
                .say(format!("{name}: {what} cannot be set: {why}"));
        }
    }
}
