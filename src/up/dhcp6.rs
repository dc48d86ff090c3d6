// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DHCPv6 clients. The client of an interface begins when the interface has carrier and a
//! link-local address. With `either6` the client also waits until a router announces DHCPv6, or
//! until no router has given an address in time.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::time::Instant;

use super::clients::{Client, Clients, Lessee, Means, Site, identity, is_there};
use super::information::Inquiries;
use super::part::{Part, Wake};
use super::speaker::Speaker;
use super::tries::Tries;
use crate::dhcp::Outcome;
use crate::dhcp::identity::RequestedId;
use crate::dhcp::v6::Dhcp6Wish;
use crate::dhcp::v6::client::Config;
use crate::dhcp::v6::identity::Identity;
use crate::dhcp::v6::information::NO_NAME_SERVERS;
use crate::dhcp::v6::lease::PREFIX;
use crate::dhcp::v6::progress::Progress;
use crate::dhcp::v6::session::Session;
use crate::dhcp::v6::socket::Closed;
use crate::error::Error;
use crate::facts::{AddressState, Facts, Netdev, Readers};
use crate::handover::Phase;
use crate::hardware::Hex;
use crate::inet::{Address, Router};
use crate::system::root::Root;
use crate::wish::ipoib::Autoconf;

/// Messages that a client sends in vain before the client ends, on an interface for which the
/// address of a router is enough.
const NEEDLESS: u32 = 5;

/// The clients, and the leases of earlier runs.
#[derive(Debug, Default)]
pub struct Clients6 {
    clients: Clients<Session>,
    /// In an initramfs: only there the walk waits for name servers.
    is_boot: bool,
    /// When the wait for a router ends, by interface index.
    patience: BTreeMap<u32, Instant>,
    /// The leases of earlier runs of this boot, or of the walk before.
    known: Vec<Progress>,
    /// `known` has the leases of the walk before, whose request was another one ([`disowned_by`]).
    is_anew: bool,
    /// Those of `known` that another process (`ibboot lease`) keeps, by interface index.
    kept: BTreeMap<u32, Progress>,
    /// Interface index and address of every lease: an address may outlast the lease on the
    /// interface.
    granted: BTreeSet<(u32, Ipv6Addr)>,
    /// Interfaces with an address of a router, whose client continues only for name servers.
    beside: BTreeSet<u32>,
    /// Interfaces for which the end of a client was logged. What a router advertises may change
    /// often: the end is logged once.
    ended: BTreeSet<u32>,
}

impl Client for Session {
    type Wish = Dhcp6Wish;
    type Progress = Progress;

    fn wake(&mut self) {
        Session::wake(self);
    }

    fn start_anew(&mut self) {
        self.start(None);
    }

    fn is_answered(&self) -> bool {
        self.lease().is_some()
    }

    fn due(&self) -> Option<u64> {
        Session::due(self)
    }

    async fn changed(&mut self) {
        Session::changed(self).await;
    }

    fn progress(&self, wish: &Dhcp6Wish, gave_up: bool) -> Progress {
        Progress {
            wish: wish.clone(),
            gave_up,
            ..Session::progress(self)
        }
    }
}

impl Lessee for Session {
    const PROTOCOL: &'static str = "DHCPv6";
    const PHASE: Phase = Phase::Lease6;

    fn outcomes(&mut self) -> Vec<Outcome> {
        Session::outcomes(self)
    }

    fn granted(&self) -> Option<(String, &[String])> {
        let lease = self.lease()?;
        let (address, length) = (lease.address_text(), lease.length());
        let text = format!("{address} of {}, {length}", lease.server);
        Some((text, &lease.left_out))
    }
}

impl Part for Clients6 {
    fn follow(&mut self, facts: &Facts, readers: Option<&Readers>) {
        self.clients.follow(facts, readers);
        self.patience.retain(|index, _| is_there(facts, *index));
        self.kept.retain(|index, _| is_there(facts, *index));
        self.granted.retain(|(index, _)| is_there(facts, *index));
    }

    fn due(&self) -> Option<Instant> {
        let waiting = self.patience.iter();
        let waiting = waiting.filter(|(index, _)| self.clients.get(**index).is_none());
        // The look at that time has dealt with a wait that has ended.
        let now = Instant::now();
        let waiting = waiting
            .map(|(_, until)| *until)
            .filter(|until| *until > now);
        self.clients.due().into_iter().chain(waiting).min()
    }

    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        self.clients.changed()
    }

    /// True: name servers may still arrive on an interface that needs no lease.
    fn is_busy(&self) -> bool {
        let mut clients = self.clients.all();
        self.is_boot && clients.any(|(index, _)| self.beside.contains(&index))
    }

    /// Logs the interfaces whose name servers did not arrive.
    fn end(&mut self) {
        for index in std::mem::take(&mut self.beside) {
            if let Some(running) = self.clients.get(index) {
                let interface = Session::progress(&running.client).interface;
                log::warn!("{interface}: DHCPv6: {NO_NAME_SERVERS}: no server granted an address");
            }
        }
    }
}

impl Clients6 {
    /// Begins with the leases of earlier runs of this boot. `is_boot`: in an initramfs.
    pub fn new(known: Vec<Progress>, is_boot: bool) -> Clients6 {
        let granted = known
            .iter()
            .filter_map(|one| Some((one.index, one.lease.as_ref()?.address)));
        Clients6 {
            granted: granted.collect(),
            known,
            is_boot,
            ..Clients6::default()
        }
    }

    /// Begins with the leases of the walk before, in an initramfs.
    pub fn anew(known: Vec<Progress>) -> Clients6 {
        Clients6 {
            is_anew: true,
            ..Clients6::new(known, true)
        }
    }

    /// The progress of each client, and of each lease that another process keeps.
    pub fn progress(&self) -> Vec<Progress> {
        let running = self.clients.progress().into_iter();
        running.chain(self.kept.values().cloned()).collect()
    }

    /// True: the client of this interface uses the port, because the client requests or has a
    /// lease.
    pub fn is_asking(&self, index: u32) -> bool {
        let running = self.clients.get(index);
        running.is_some_and(|running| !running.tries.gave_up())
    }

    /// Begins the client of an interface where the client can send, and lets the client do what is
    /// due.
    pub async fn step(
        &mut self,
        site: &Site<'_>,
        means: &mut Means<'_>,
        inquiries: &mut Inquiries,
    ) {
        let Some(dhcp) = &site.wish.dhcp6 else {
            return;
        };
        let dhcp = &Dhcp6Wish {
            boot: site.wish.boot,
            ..dhcp.clone()
        };
        let (netdev, index) = (site.netdev, site.index);
        let known = means.net.router(index).await;
        let router = known.unwrap_or_default();
        // Before the client may end: a lost address must be removed from the interface.
        self.settle(site, means).await;
        self.yield_to_router(dhcp, site, router);
        if !self.may_begin(dhcp, site, router) {
            self.kept.remove(&index);
            return;
        }
        self.begin(dhcp, site, means, inquiries);
        let Some(running) = self.clients.get_mut(index) else {
            return;
        };
        let session = &mut running.client;
        if let Some(router) = known {
            session.set_router(router);
        }
        session.rename(&netdev.ifname);
        let granted = session.lease().map(|lease| lease.address);
        if granted.is_some_and(|address| netdev.is_duplicate6(address)) {
            session.duplicate();
        }
        running.go_on(Instant::now());
        self.end_if_needless(dhcp, site);
        self.settle(site, means).await;
    }

    async fn settle(&mut self, site: &Site<'_>, means: &mut Means<'_>) {
        self.clients.settle(site, means).await;
        let running = self.clients.get(site.index);
        let lease = running.and_then(|running| running.client.lease());
        let granted = lease.map(|lease| (site.index, lease.address));
        self.granted.extend(granted);
    }

    /// `either6`: where a router announces DHCPv6 and also gives an address, the client ends after
    /// [`NEEDLESS`] messages in vain. A client that gave up closes the port, because the inquiry
    /// for name servers needs the port.
    fn end_if_needless(&mut self, wish: &Dhcp6Wish, site: &Site<'_>) {
        let (netdev, index) = (site.netdev, site.index);
        let is_enough = wish.after_router_s.is_some() && self.has_router_address(site);
        let Some(running) = self.clients.get_mut(index) else {
            return;
        };
        let is_asking = running.client.lease().is_none() && !running.tries.gave_up();
        let is_needless = is_enough && is_asking;
        if is_needless && running.client.is_in_vain(NEEDLESS) {
            if self.ended.insert(index) {
                log::info!(
                    "{}: DHCPv6: ends, no server grants anything and a router gave an address",
                    netdev.ifname
                );
            }
            running.tries.give_up();
        }
        if running.tries.gave_up() {
            running.client.close();
        }
        if is_needless && !running.tries.gave_up() && !wish.ignore_dns {
            self.beside.insert(index);
        } else {
            self.beside.remove(&index);
        }
    }

    /// `either6`: ends a client without a lease where a router gave an address and does not
    /// announce DHCPv6.
    fn yield_to_router(&mut self, wish: &Dhcp6Wish, site: &Site<'_>, router: Router) {
        let (netdev, index) = (site.netdev, site.index);
        let running = self.clients.get(index);
        let is_asking = running.is_some_and(|running| running.client.lease().is_none());
        let is_enough = wish.after_router_s.is_some() && router != Router::Managed;
        if is_asking && is_enough && self.has_router_address(site) {
            if self.ended.insert(index) {
                log::info!("{}: DHCPv6: ends, a router gave an address", netdev.ifname);
            }
            self.clients.remove(index);
        }
    }

    /// The lease of an earlier run whose address is on the interface.
    fn held(&self, netdev: &Netdev, index: u32) -> Option<&Progress> {
        let is_there = |known: &&Progress| {
            let address = known.lease.as_ref().map(|lease| lease.address);
            known.index == index && address.is_some_and(|a| netdev.shown6(a).is_some())
        };
        self.known.iter().find(is_there)
    }

    /// Another process has the port: the lease of that process counts. False: the process has no
    /// lease for this interface.
    fn keep(&mut self, netdev: &Netdev, index: u32, duid: &str) -> bool {
        let held = self.held(netdev, index).filter(|held| held.duid == duid);
        let Some(held) = held.cloned() else {
            self.kept.remove(&index);
            return false;
        };
        let interface = netdev.ifname.clone();
        if !self.kept.contains_key(&index) {
            log::info!("{interface}: DHCPv6: another process keeps the lease");
        }
        self.kept.insert(index, Progress { interface, ..held });
        true
    }

    /// True: the client may begin. With `either6` the routers come first.
    fn may_begin(&mut self, wish: &Dhcp6Wish, site: &Site<'_>, router: Router) -> bool {
        let (netdev, index) = (site.netdev, site.index);
        let Some(seconds) = wish.after_router_s else {
            return true;
        };
        let has_begun = self.clients.get(index).is_some() || self.held(netdev, index).is_some();
        if has_begun || router == Router::Managed {
            return true;
        }
        if netdev.carrier != Some(true) || netdev.link_local().is_none() {
            self.patience.remove(&index);
            return false;
        }
        let patience = Duration::from_secs(u64::from(seconds));
        let until = self.patience.entry(index);
        let until = *until.or_insert_with(|| Instant::now() + patience);
        !self.has_router_address(site) && Instant::now() >= until
    }

    /// True: the interface has an address, possibly tentative, that is neither link-local nor requested
    /// nor from a lease. The address of a lease has prefix length 128. With another prefix length the
    /// address is also in the prefix of a router.
    pub fn has_router_address(&self, site: &Site<'_>) -> bool {
        let (netdev, index) = (site.netdev, site.index);
        let of_lease = |found: &Address| match found.address {
            IpAddr::V6(v6) => found.prefix == PREFIX && self.granted.contains(&(index, v6)),
            IpAddr::V4(_) => false,
        };
        let usable = netdev.addresses_in(AddressState::Usable);
        let found = usable.chain(netdev.addresses_in(AddressState::Tentative));
        let is_requested = |found: &Address| site.wish.addresses.contains(found);
        let mut others = found.filter(|found| !of_lease(found) && !is_requested(found));
        others.any(|other| Autoconf::Router.is_met_by(other.address))
    }

    fn begin(
        &mut self,
        dhcp: &Dhcp6Wish,
        site: &Site<'_>,
        means: &mut Means<'_>,
        inquiries: &mut Inquiries,
    ) {
        let carrier = site.netdev.carrier == Some(true);
        let local = site.netdev.link_local();
        let has_room = self.clients.has_room(site.index, |client| {
            stays(client.local(), client.is_answered(), local, carrier)
        });
        let can_send = has_room && carrier && *site.speaker != Speaker::Awaited;
        let Some(local) = local.filter(|_| can_send) else {
            return;
        };
        // Both send from the same port.
        inquiries.give_way(site.index);
        match self.open(dhcp, site, local, means) {
            Ok(Some(session)) => {
                let tries = Tries::begin(dhcp.limit_s, dhcp.tries, Instant::now());
                self.kept.remove(&site.index);
                self.clients.begin(site.index, dhcp.clone(), session, tries);
            }
            Ok(None) => {}
            Err(error) => means.journal.tell_once(&site.netdev.ifname, &error),
        }
    }

    /// Opens the session. None: another process has the port and keeps the lease of an earlier run.
    fn open(
        &mut self,
        dhcp: &Dhcp6Wish,
        site: &Site<'_>,
        local: Ipv6Addr,
        means: &mut Means<'_>,
    ) -> Result<Option<Session>, Error> {
        let (netdev, name) = (site.netdev, &site.netdev.ifname);
        let (index, identity) = identity6(site, means.root, &dhcp.client_id)?;
        let duid = Hex(&identity.duid).to_string();
        let iaid = identity.iaid;
        let earlier = self.known.iter().find(|known| known.index == index);
        let disowned = earlier.filter(|_| self.is_anew);
        let disowned = disowned.and_then(|known| disowned_by(&duid, iaid, known, netdev));
        let known = earlier.filter(|known| known.duid == duid && known.iaid == iaid);
        let known = known.and_then(|known| known.lease.clone());
        let config = Config {
            identity,
            keep: dhcp.keep,
            boot_waits: true,
        };
        let mut session = match Session::open(name, index, local, config) {
            Err(Closed::InUse(_)) if self.keep(netdev, index, &duid) => return Ok(None),
            opened => opened?,
        };
        let begins = format!("DHCPv6: begins, DUID {duid}, IAID {iaid}");
        // Logged once, not at every flap of the port.
        if means.journal.is_first_time(name, &begins) {
            log::info!("{name}: {begins}");
        }
        match known {
            // The address of an earlier run is still on the interface.
            Some(lease) if netdev.shown6(lease.address).is_some() => {
                session.resume(lease);
            }
            _ => session.start(known.map(|lease| lease.address)),
        }
        if let Some(address) = disowned {
            session.disown(address);
            // A server may grant the same address to this request.
            self.known.retain(|known| known.index != index);
        }
        Ok(Some(session))
    }
}

/// The address on the interface that is from a lease of another identity than this one. In a walk with
/// another request the address is removed; at any other time the root file system may depend on it.
fn disowned_by(duid: &str, iaid: u32, known: &Progress, netdev: &Netdev) -> Option<Ipv6Addr> {
    let is_own = known.duid == duid && known.iaid == iaid;
    let address = known.lease.as_ref().filter(|_| !is_own)?.address;
    netdev.shown6(address).is_some().then_some(address)
}

/// True: the client continues. The client ends when the link-local address becomes another one (the
/// device was reset). A client without a lease also ends when the carrier or the link-local address
/// goes. A new client begins when both are back.
fn stays(sends_from: Ipv6Addr, has_lease: bool, local: Option<Ipv6Addr>, carrier: bool) -> bool {
    match local {
        Some(local) => local == sends_from && (has_lease || carrier),
        None => has_lease,
    }
}

/// The index of the interface and the identity of the client on the interface.
pub fn identity6(
    site: &Site<'_>,
    root: &Root,
    client_id: &RequestedId,
) -> Result<(u32, Identity), Error> {
    let (hardware, identity) = identity("DHCPv6", site, root, |hardware, speaks| {
        let kind = hardware.hardware_type;
        Identity::new(kind, speaks, &hardware.broadcast, client_id)
    })?;
    Ok((hardware.index, identity))
}
