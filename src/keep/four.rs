// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DHCP lease that is kept.

use super::changes::{Change, address, changes, kept, needed, not_applied, routes};
use super::place::{Place, There};
use super::reconcile::{Seen, Verdict};
use super::{Doubt, Renewals, Troubles, Turn, arrive, take_away};
use crate::dhcp::client::Config;
use crate::dhcp::identity::{Identity, WantedId};
use crate::dhcp::lease::Lease;
use crate::dhcp::progress::Progress;
use crate::dhcp::session::{Outcome, Session};
use crate::dhcp::socket::Hardware;
use crate::error::{Error, Result};
use crate::facts::{AddressState, Netdev};
use crate::handover::Entry;
use crate::hardware::unhex;
use crate::inet::Route;
use crate::system::clock::boottime_ns;
use crate::system::net::Net;
use crate::system::root::Root;

/// Changes of one renewal that have a line each.
const SHOWN: usize = 8;

pub(super) struct Kept {
    place: Place,
    /// As it was when there was no session: who asks, and for what.
    before: Progress,
    /// None: the interface is not there, or not up.
    session: Option<Session>,
    /// What is set on the interface, or is to be.
    lease: Option<Lease>,
    /// Routes of earlier leases that stay.
    old_routes: Vec<Route>,
    /// Routes as this program found them.
    first_routes: Vec<Route>,
    seen: Seen,
    /// The interface came back: whether the lease holds on its link is asked.
    is_unverified: bool,
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
        let mut first_routes: Vec<Route> = lease.iter().flat_map(routes).collect();
        first_routes.extend(&entry.routes);
        Kept {
            place: Place::new(&progress.interface, progress.index, entry.identity.clone()),
            before: progress.clone(),
            session: None,
            seen: lease
                .as_ref()
                .map_or_else(Seen::nothing, |_| Seen::handed_over()),
            lease,
            old_routes: entry.routes.clone(),
            first_routes,
            is_unverified: false,
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
            is_v6: false,
            index: self.place.index,
            identity: self.place.identity.clone(),
            routes: self.old_routes.clone(),
        }
    }

    pub(super) fn due(&self) -> Option<u64> {
        let session = self.session.as_ref().and_then(Session::due);
        session.into_iter().chain(self.doubt.due()).min()
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
        let what = what.unwrap_or_else(|| "DHCP".to_owned());
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
        if self.session.is_none() {
            if there.netdev.up {
                self.open(turn.root, there.netdev);
            }
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

    /// Its sockets are of a device that is gone.
    fn close(&mut self) {
        if self.session.is_some() {
            self.before = self.progress();
            self.session = None;
            self.has_news = true;
        }
    }

    fn open(&mut self, root: &Root, netdev: &Netdev) {
        match self.session(root, netdev) {
            Ok(session) => {
                self.session = Some(session);
                self.is_unverified = false;
            }
            Err(error) => self.troubles.say(error.to_string()),
        }
    }

    /// A client that goes on with the lease.
    fn session(&mut self, root: &Root, netdev: &Netdev) -> Result<Session> {
        let name = &netdev.ifname;
        let cannot = |why: &str| Error::new(name, "lease cannot be renewed").seen(why);
        let hardware = Hardware::read(root, name)
            .map_err(|e| Error::io(name, "hardware address cannot be read", &e))?;
        let client_id = unhex(&self.before.client_id);
        let wanted = WantedId::Bytes(client_id.ok_or_else(|| cannot("its client identifier"))?);
        let identity = Identity::new(hardware.hardware_type, &hardware.address, &wanted);
        let wish = &self.before.wish;
        let config = Config {
            identity: identity.ok_or_else(|| cannot("another kind of hardware"))?,
            vendor_class: wish.vendor_class.clone(),
            host_name: wish.host_name.clone(),
            keep: wish.keep,
        };
        let mut session = Session::open(name, hardware, config)?;
        let Some(lease) = self.lease.clone() else {
            log::info!("{name}: a server is asked for another address");
            session.start(None);
            return Ok(session);
        };
        let what = lease.address_text();
        let is_over = lease.ends_ns().is_some_and(|ends| boottime_ns() >= ends);
        if self.is_unverified && is_over && !wish.keep {
            // It is not on the interface, and is not ours to set any more.
            log::info!("{name}: a server is asked for {what} again");
            session.start(Some(lease.address));
            self.lease = None;
            return Ok(session);
        }
        log::info!(
            "{name}: {what} of {} is kept, {}",
            lease.server,
            lease.length()
        );
        // The initramfs may have had no time to see whether somebody else has the address. Under a
        // root file system it stays anyway.
        session.resume(lease, self.before.is_probing() && !wish.keep);
        if self.is_unverified {
            session.verify();
        }
        Ok(session)
    }

    /// Sets what is not on the interface and should be. False: somebody took the address away.
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
        let own = address(&lease);
        let wanted = self.routes(&lease);
        let has_address = there.netdev.state_of(&own) == Some(AddressState::Usable);
        let needed = if keep {
            needed(&wanted, own, turn.servers)
        } else {
            Vec::new()
        };
        let verdict = self
            .seen
            .compare(there, has_address, &wanted, keep, &needed);
        let Verdict::Set {
            address,
            routes,
            left,
        } = verdict
        else {
            self.doubt = doubt;
            if !self.doubt.is_certain() {
                self.seen.set_address();
                return true;
            }
            log::warn!(
                "{name}: {what} is not on the interface any more: it is left to whoever took it away"
            );
            return false;
        };
        for route in left {
            log::warn!(
                "{name}: route {route} is not there any more: it is left to whoever took it away"
            );
        }
        if !address && routes.is_empty() {
            self.well();
            return true;
        }
        if address {
            let set = turn
                .net
                .add_address(self.place.index, own.address, own.prefix, None);
            match set.await {
                Ok(()) => {
                    self.seen.set_address();
                    log::info!("{name}: {what} set again");
                }
                Err(why) => {
                    self.troubles
                        .say(format!("{name}: {what} cannot be set again: {why}"));
                    return true;
                }
            }
        }
        for route in routes {
            // Another interface may have a route to the same network by now.
            let network = Some(route.network).filter(|network| network.prefix > 0);
            let set = turn
                .net
                .restore_route(self.place.index, network, route.gateway);
            match set.await {
                Ok(()) => {
                    self.seen.set_route(route);
                    log::info!("{name}: route {route} set again");
                }
                Err(why) => {
                    let line = format!("{name}: route {route} cannot be set again: {why}");
                    self.troubles.say(line);
                }
            }
        }
        true
    }

    /// Those of the lease, and those of earlier ones that stay.
    fn routes(&self, lease: &Lease) -> Vec<Route> {
        let mut all = routes(lease);
        let old = self.old_routes.iter().filter(|route| !all.contains(route));
        let old: Vec<Route> = old.copied().collect();
        all.extend(old);
        all
    }

    /// The client's turn.
    async fn work(&mut self, turn: &Turn<'_>, netdev: &Netdev) {
        let Some(session) = &mut self.session else {
            return;
        };
        session.rename(&netdev.ifname);
        // Of a bond it changes with a failover.
        if let Some(address) = &netdev.address {
            session.set_address(address.bytes().to_vec());
        }
        session.wake();
        let granted = session.lease().cloned();
        for outcome in session.outcomes() {
            self.has_news = true;
            match outcome {
                Outcome::Lost(address) => {
                    self.take_routes_away(&netdev.ifname, turn.net).await;
                    take_away(turn.net, netdev, self.place.index, address.into()).await;
                }
                Outcome::Unopposed => {}
                Outcome::Bound => {
                    if let Some(lease) = &granted {
                        self.bound(turn, netdev, lease).await;
                    }
                }
            }
        }
    }

    /// With another address on the interface the kernel would leave the routes of a lost one there.
    async fn take_routes_away(&mut self, name: &str, net: &Net) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        for route in self.routes(&lease) {
            if let Err(why) = self.route(net, &route, false).await {
                log::error!("{name}: route {route} cannot be taken away: {why}");
            }
        }
        self.old_routes.clear();
        self.seen = Seen::nothing();
    }

    async fn route(&self, net: &Net, route: &Route, set: bool) -> std::result::Result<(), String> {
        let network = Some(route.network).filter(|network| network.prefix > 0);
        if set {
            net.add_route(self.place.index, network, route.gateway)
                .await
        } else {
            net.delete_route(self.place.index, network, route.gateway)
                .await
        }
    }

    /// A renewed lease changes its times, and what its server says otherwise than before; a new
    /// address is set with its routes.
    async fn bound(&mut self, turn: &Turn<'_>, netdev: &Netdev, lease: &Lease) {
        let (name, net) = (&netdev.ifname, turn.net);
        let (what, wish) = (lease.address_text(), self.before.wish.clone());
        let before = self.lease.replace(lease.clone());
        if let Some(before) = before.filter(|before| before.address == lease.address) {
            let (server, length) = (lease.server, lease.length());
            let level = self.renewals.level(boottime_ns());
            log::log!(level, "{name}: {what} renewed by {server}, {length}");
            let had = self.routes(&before);
            let stay = if wish.keep {
                let (has, first) = (routes(lease), &self.first_routes);
                kept(&had, &has, address(lease), turn.servers, first)
            } else {
                Vec::new()
            };
            let changes = changes(&before, &had, lease, &stay, &wish, netdev);
            self.apply(name, &changes, net, level).await;
            if let Some(left) = not_applied(&before, lease, &stay, &wish) {
                log::log!(
                    level,
                    "{name}: the server has changed what is not applied after boot: {left}"
                );
            }
            self.old_routes = stay;
            return;
        }
        log::info!("{name}: {what} of {}, {}", lease.server, lease.length());
        (self.first_routes, self.seen) = (routes(lease), Seen::nothing());
        let set = net.add_address(self.place.index, lease.address.into(), lease.prefix, None);
        if let Err(why) = set.await {
            self.troubles
                .say(format!("{name}: {what} cannot be set: {why}"));
            return;
        }
        for route in routes(lease) {
            if let Err(why) = self.route(net, &route, true).await {
                self.troubles
                    .say(format!("{name}: route {route} cannot be set: {why}"));
            }
        }
    }

    /// The first few changes have a line each: a server can make a hundred at every renewal.
    async fn apply(&mut self, name: &str, changes: &[Change], net: &Net, level: log::Level) {
        let index = self.place.index;
        for (done_before, change) in changes.iter().enumerate() {
            let done = match change {
                Change::AddAddress(new) => {
                    net.add_address(index, new.address, new.prefix, None).await
                }
                Change::RemoveAddress(old) => {
                    net.delete_address(index, old.address, Some(old.prefix))
                        .await
                }
                Change::AddRoute(route) => self.route(net, route, true).await,
                Change::RemoveRoute(route) => self.route(net, route, false).await,
                Change::Mtu(bytes) => net.set_mtu(index, *bytes).await,
            };
            match done {
                Ok(()) if done_before < SHOWN => {
                    log::log!(level, "{name}: {change}, as the server has it now");
                }
                Ok(()) => {}
                Err(why) => {
                    self.troubles.say(format!("{name}: not {change}: {why}"));
                    // What it was to take the place of stays.
                    if matches!(change, Change::AddAddress(_) | Change::AddRoute(_)) {
                        return;
                    }
                }
            }
        }
        if changes.len() > SHOWN {
            let more = changes.len().saturating_sub(SHOWN);
            log::log!(
                level,
                "{name}: {more} more changes, as the server has it now"
            );
        }
    }
}
