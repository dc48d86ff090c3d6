// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lease that is kept and whose settings are kept on its interface. Both families share one loop;
//! the differences are behind [`Client`].

use std::net::{IpAddr, Ipv6Addr};

use futures_util::future::LocalBoxFuture;

use super::changes::{continued, given_up, outlives, rival, words};
use super::place::{Place, Present};
use super::reconcile::{Holdings, Verdict};
use super::stay::{Servers, needed, old_prefix_stays, spared};
use super::{Doubt, Look, Renewals, Troubles, arrive};
use crate::changes::{Rival, Setting};
use crate::dhcp::{Granted, Outcome};
use crate::error::Result;
use crate::facts::{AddressState, Netdev};
use crate::handover::{self, Entry};
use crate::inet::{Address, Route};
use crate::system::clock::{SECOND, boottime_ns};
use crate::system::net::Net;
use crate::system::root::Root;

/// Duplicate address detection of a new IPv6 address ends within this time (ns), without a
/// notification.
const DETECTION: u64 = 3 * SECOND;
/// Changes of one renewal that are logged one by one.
const SHOWN: usize = 8;

/// How the lease of a session differs from the lease before.
pub(super) enum Accepted {
    /// The session has no lease.
    Nothing,
    /// The lease has another address; these settings come with the lease too.
    Other(Vec<Setting>),
    /// The lease has the same address.
    Renewed(Renewal),
}

/// What a renewed lease changes.
#[derive(Default)]
pub(super) struct Renewal {
    /// Changes on the interface, in this order.
    pub(super) changes: Vec<Setting>,
    /// What the server changed and is not applied after boot.
    pub(super) not_applied: Option<String>,
}

/// The client of one family, with the lease that the client continues.
pub(super) trait Client {
    /// True for DHCPv6.
    fn is_v6(&self) -> bool;
    /// The root file system depends on the address.
    fn keep(&self) -> bool;
    /// The interface is the boot device.
    fn is_boot(&self) -> bool;

    /// The lease that is or must be set on the interface.
    fn granted(&self) -> Option<Granted>;
    /// The routes of the interface while it has the lease: those that the command line requests,
    /// those of the lease, and those of earlier leases that stay.
    fn routes(&self) -> Vec<Route>;
    /// The routes of the interface that the command line requests.
    fn requested(&self) -> &[Route];
    /// The addresses of the interface that the command line requests.
    fn requested_addresses(&self) -> &[Address];
    /// These routes of earlier leases stay too, and the address of the lease with these prefixes.
    fn retain(&mut self, _: Vec<Route>, _: Vec<Address>) {}
    /// The prefix of the address when this program started.
    fn first_prefix(&self) -> u8 {
        0
    }
    /// Forgets the lease: the lease ended.
    fn forget(&mut self);
    /// Takes over the lease of the session. The kernel refused the routes `refused`.
    fn accept(&mut self, netdev: &Netdev, servers: &Servers, refused: &[Route]) -> Accepted;

    /// Opens the session; false: the interface does not have an address to send from yet.
    fn open(&mut self, root: &Root, netdev: &Netdev) -> Result<bool>;
    /// Whether a session is open.
    fn is_open(&self) -> bool;
    /// Whether the session uses an address that no longer exists.
    fn is_stale(&self, _netdev: &Netdev) -> bool {
        false
    }
    /// Ends the session; the progress stays for [`Client::note`].
    fn close(&mut self, place: &Place);

    /// Requests the address of the lease, or any address, and gives the lease up.
    fn start(&mut self);
    /// Continues with the lease; `verify`: checks first whether the lease is valid on this link.
    fn resume(&mut self, verify: bool);
    /// Looks for the result of duplicate address detection of the address on the interface.
    fn detect(&mut self, _netdev: &Netdev) {}
    /// When [`Client::wake`] must be called, ns since kernel start.
    fn due(&self) -> Option<u64>;
    /// Does what is due now.
    fn wake(&mut self);
    /// Waits until a packet moved the client.
    fn changed(&mut self) -> LocalBoxFuture<'_, ()>;
    /// Lets the client work on the interface as found; `hurry`: the link has carrier again. Returns
    /// what happened since the last call.
    fn work(&mut self, netdev: &Netdev, hurry: bool) -> Vec<Outcome>;

    /// Whether `check` finds in `kept`, under the index `before`, what it would find in the progress.
    fn is_noted(&self, place: &Place, before: u32, kept: &handover::Kept) -> bool;
    /// Writes the progress to `kept`, replacing the entry with the index `before`. Returns the
    /// routes of earlier leases that stay, and the address with earlier prefixes that stay.
    fn note(
        &self,
        place: &Place,
        before: u32,
        kept: &mut handover::Kept,
    ) -> (Vec<Route>, Vec<Address>);
}

pub(super) struct Held {
    client: Box<dyn Client>,
    place: Place,
    found: Holdings,
    /// Routes that the kernel refused: they are tried again.
    refused: Vec<Route>,
    /// The interface came back: the client must check whether the lease is valid on its link.
    is_unverified: bool,
    /// When a new address is checked again, ns since kernel start.
    look: Option<u64>,
    troubles: Troubles,
    doubt: Doubt,
    renewals: Renewals,
    /// The index of the interface that was last written to the file.
    noted_as: u32,
    /// Something new must be written to the file.
    has_news: bool,
}

impl Held {
    /// A lease as handed over, on the interface of this name and index.
    pub(super) fn new(client: Box<dyn Client>, interface: &str, index: u32, entry: &Entry) -> Held {
        let found = match client.granted() {
            Some(_) => Holdings::handed_over(entry.removed.clone()),
            None => Holdings::nothing(),
        };
        Held {
            client,
            place: Place::new(interface, index, entry.identity.clone()),
            found,
            refused: Vec::new(),
            is_unverified: false,
            look: None,
            troubles: Troubles::default(),
            doubt: Doubt::default(),
            renewals: Renewals::default(),
            noted_as: index,
            has_news: true,
        }
    }

    /// Writes the current progress to `kept`; `is_ours`: the next start must keep this lease too.
    pub(super) fn note(&mut self, kept: &mut handover::Kept, is_ours: bool) {
        let (routes, addresses) = self.client.note(&self.place, self.noted_as, kept);
        let entry = Entry {
            routes,
            addresses,
            is_v6: self.client.is_v6(),
            index: self.place.index,
            identity: self.place.identity.clone(),
            removed: self.found.removed().to_vec(),
        };
        self.noted_as = self.place.index;
        kept.kept.extend(is_ours.then_some(entry));
    }

    /// Whether there is something new to write since the last call.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Whether `check` finds the client in `kept` as it is now.
    pub(super) fn is_noted(&self, kept: &handover::Kept) -> bool {
        self.client.is_noted(&self.place, self.noted_as, kept)
    }

    pub(super) fn due(&self) -> Option<u64> {
        let all = [self.client.due(), self.look, self.doubt.due()];
        all.into_iter().flatten().min()
    }

    /// Wakes only the client: the state of the interface is unknown.
    pub(super) fn wake(&mut self) {
        self.client.wake();
    }

    pub(super) fn changed(&mut self) -> LocalBoxFuture<'_, ()> {
        self.client.changed()
    }

    /// Does what is due and applies the result. False: the lease has another owner now.
    pub(super) async fn go_on(&mut self, look: &Look<'_>) -> bool {
        let what = match self.client.granted() {
            Some(granted) => granted.address.to_string(),
            None if self.client.is_v6() => "DHCPv6".to_owned(),
            None => "DHCP".to_owned(),
        };
        let Some(present) = arrive(&mut self.place, &mut self.troubles, look, &what).await else {
            self.doubt = Doubt::default();
            self.look = None;
            self.close();
            return true;
        };
        if present.is_back {
            self.close();
            self.found = Holdings::nothing();
            self.is_unverified = true;
            self.has_news = true;
        }
        // Another program may have set the route.
        self.refused
            .retain(|route| !present.netdev.has_route(route));
        if !present.netdev.up {
            self.doubt = Doubt::default();
        } else if !self.reconcile(look, &present).await {
            return false;
        }
        if self.look.is_some_and(|look| boottime_ns() >= look) {
            self.look = None;
        }
        if self.client.is_stale(present.netdev) {
            self.close();
        }
        let hurry = present.came_up && self.client.is_open();
        if present.netdev.up && !self.client.is_open() {
            self.open(look.root, present.netdev);
        }
        for outcome in self.client.work(present.netdev, hurry) {
            self.has_news = true;
            match outcome {
                Outcome::Lost(address) => self.lost(look, present.netdev, address).await,
                Outcome::Unopposed => {}
                Outcome::Bound => self.bound(look, present.netdev).await,
            }
        }
        true
    }

    /// Closes the session: its sockets belong to a device or an address that no longer exists.
    fn close(&mut self) {
        if self.client.is_open() {
            self.client.close(&self.place);
            self.has_news = true;
        }
    }

    fn open(&mut self, root: &Root, netdev: &Netdev) {
        match self.client.open(root, netdev) {
            Ok(true) => self.begin(&netdev.ifname),
            // The link-local address appears when the link is up.
            Ok(false) => {}
            Err(error) => self.troubles.say(error.to_string()),
        }
    }

    /// Continues with the lease, or requests an address.
    fn begin(&mut self, name: &str) {
        let server = if self.client.is_v6() {
            "a DHCPv6 server"
        } else {
            "a DHCP server"
        };
        match self.client.granted() {
            None => {
                log::info!("{name}: requesting another address from {server}");
                self.client.start();
            }
            Some(granted) if self.is_forfeit(&granted) => {
                log::info!("{name}: requesting {} again from {server}", granted.address);
                self.client.start();
            }
            Some(granted) => {
                log::info!("{name}: {}", continued(&granted, boottime_ns()));
                self.client.resume(self.is_unverified);
            }
        }
        self.is_unverified = false;
    }

    /// Whether the lease ended while its interface was gone: the address is no longer ours to set.
    fn is_forfeit(&self, granted: &Granted) -> bool {
        let is_over = granted.ends_ns.is_some_and(|ends| boottime_ns() >= ends);
        self.is_unverified && is_over && !self.client.keep()
    }

    /// Which settings of the lease are missing on the interface, and whether to set them again.
    fn compare(&mut self, look: &Look<'_>, present: &Present<'_>, granted: &Granted) -> Verdict {
        let (expected, keep) = (self.client.routes(), self.client.keep());
        let has_address = match granted.address.address {
            IpAddr::V4(_) => {
                present.netdev.state_of(&granted.address) == Some(AddressState::Usable)
            }
            IpAddr::V6(address) => present.netdev.shown6(address).is_some(),
        };
        let needed = if keep {
            let mut usable = expected.clone();
            usable.retain(|route| !self.refused.contains(route));
            needed(&usable, granted.address, look.servers)
        } else {
            Vec::new()
        };
        let before = self.found.removed().to_vec();
        let verdict = self
            .found
            .compare(present, has_address, &expected, keep, &needed);
        self.has_news |= self.found.removed() != before;
        verdict
    }

    /// Sets again what is missing on the interface. False: another program removed the address.
    async fn reconcile(&mut self, look: &Look<'_>, present: &Present<'_>) -> bool {
        let doubt = std::mem::take(&mut self.doubt);
        let granted = self.client.granted();
        let Some(granted) = granted.filter(|granted| !self.is_forfeit(granted)) else {
            return true;
        };
        let (name, what) = (&present.netdev.ifname, granted.address);
        let verdict = self.compare(look, present, &granted);
        let Verdict::Set {
            address,
            routes,
            left,
        } = verdict
        else {
            self.doubt = doubt;
            if !self.doubt.confirm() {
                self.found.set_address();
                return true;
            }
            log::warn!("{name}: {what} was removed by another program: no longer renewed");
            return false;
        };
        for route in left {
            log::warn!("{name}: route {route} was removed by another program: not set again");
        }
        if !address && routes.is_empty() {
            // All settings are present, and the client can send.
            if self.client.is_open() {
                self.troubles.are_over();
            }
            match granted.address.address {
                IpAddr::V6(own) if self.client.keep() && present.netdev.is_duplicate6(own) => {
                    self.insist(look.net, name, own, granted.address.prefix)
                        .await;
                }
                _ => self.client.detect(present.netdev),
            }
            return true;
        }
        if address {
            if let Err(why) = self.set_address(look.net, &granted).await {
                let line = format!("{name}: {what} cannot be set again: {why}");
                self.troubles.say(line);
                return true;
            }
            self.found.set_address();
            log::info!("{name}: {what} set again");
        }
        self.restore(look.net, name, routes).await;
        true
    }

    async fn set_address(
        &mut self,
        net: &Net,
        granted: &Granted,
    ) -> std::result::Result<(), String> {
        let (address, prefix) = (granted.address.address, granted.address.prefix);
        let index = self.place.index;
        if granted.is_deprecated {
            net.add_deprecated(index, address, prefix).await?;
        } else {
            net.add_address(index, address, prefix, None).await?;
        }
        let look = || boottime_ns().saturating_add(DETECTION);
        self.look = address.is_ipv6().then(look);
        Ok(())
    }

    /// The kernel's duplicate address detection found another host with the address of the root file
    /// system: sets the address again, without the detection. The kernel never repeats the detection,
    /// and uses no address that failed it.
    async fn insist(&mut self, net: &Net, name: &str, own: Ipv6Addr, prefix: u8) {
        self.troubles.say(format!(
            "{name}: another host uses {own}: the address is kept, because the root file system depends on it"
        ));
        let index = self.place.index;
        let removed = net.delete_address(index, own.into(), None).await;
        let set = match removed {
            Ok(()) => net.add_undetected(index, own, prefix).await,
            Err(why) => Err(why),
        };
        if let Err(why) = set {
            self.troubles
                .say(format!("{name}: {own} cannot be set again: {why}"));
        }
    }

    async fn restore(&mut self, net: &Net, name: &str, routes: Vec<Route>) {
        for (set_before, route) in routes.into_iter().enumerate() {
            match self.add_route(net, &route).await {
                Ok(()) => {
                    self.found.set_route(route);
                    self.refused.retain(|refused| *refused != route);
                    if set_before < SHOWN {
                        log::info!("{name}: route {route} set again");
                    }
                }
                Err(why) => {
                    let line = format!("{name}: route {route} cannot be set again: {why}");
                    self.troubles.say(line);
                    self.refuse(route);
                }
            }
        }
    }

    /// Adds a route. Another interface may have a route to the same network by now.
    async fn add_route(&self, net: &Net, route: &Route) -> std::result::Result<(), String> {
        match rival(route, &self.client.routes(), self.client.is_boot()) {
            Rival::Outranked => net.prepend_route(self.place.index, route).await,
            Rival::Kept | Rival::Replaced => net.append_route(self.place.index, route).await,
        }
    }

    fn refuse(&mut self, route: Route) {
        if !self.refused.contains(&route) {
            self.refused.push(route);
        }
    }

    /// Removes address and routes: if the interface has another address, the kernel would keep the
    /// routes of the lost address. The address stays if the command line requests it too.
    async fn lost(&mut self, look: &Look<'_>, netdev: &Netdev, address: IpAddr) {
        let name = &netdev.ifname;
        let mut routes = self.client.routes();
        let (requested, own) = (self.client.requested(), self.client.requested_addresses());
        let stays = own.iter().copied().find(|own| own.address == address);
        let given_up = given_up(address, own, netdev);
        routes.retain(|route| {
            !(requested.contains(route) && (stays.is_some() || outlives(route, address, netdev)))
        });
        for route in routes {
            if let Err(why) = look.net.delete_route(self.place.index, &route).await {
                log::error!("{name}: route {route} cannot be removed: {why}");
            }
        }
        self.client.forget();
        self.refused.clear();
        self.found = Holdings::nothing();
        if let Some(own) = stays {
            log::warn!("{name}: {own} stays: the command line requests it");
        }
        for prefix in given_up {
            let lost = prefix.map(|prefix| Address { address, prefix });
            let lost = lost.map_or_else(|| address.to_string(), |lost| lost.to_string());
            let removed = look.net.delete_address(self.place.index, address, prefix);
            match removed.await {
                Ok(()) => log::warn!("{name}: {lost} removed"),
                Err(why) => log::error!("{name}: {lost} cannot be removed: {why}"),
            }
        }
    }

    /// Applies a renewed lease: its times and what the server changed. A new address is set with
    /// its routes.
    async fn bound(&mut self, look: &Look<'_>, netdev: &Netdev) {
        let accepted = self.client.accept(netdev, look.servers, &self.refused);
        let expected = self.client.routes();
        self.refused.retain(|route| expected.contains(route));
        let Some(granted) = self.client.granted() else {
            return;
        };
        let (name, what, net) = (&netdev.ifname, granted.address, look.net);
        let (server, length) = (granted.server, &granted.length);
        let settings = match accepted {
            Accepted::Nothing => return,
            Accepted::Renewed(renewal) => {
                let level = self.renewals.level(boottime_ns());
                log::log!(level, "{name}: {what} renewed by {server}, {length}");
                self.apply(netdev, &renewal.changes, look, level).await;
                if let Some(left) = renewal.not_applied {
                    log::log!(
                        level,
                        "{name}: the server changed settings that are not applied after boot: {left}"
                    );
                }
                return;
            }
            Accepted::Other(settings) => settings,
        };
        log::info!("{name}: {what} of {server}, {length}");
        self.apply(netdev, &settings, look, log::Level::Info).await;
        self.found = Holdings::nothing();
        if let Err(why) = self.set_address(net, &granted).await {
            self.troubles
                .say(format!("{name}: {what} cannot be set: {why}"));
            return;
        }
        for route in self.client.routes() {
            if let Err(why) = self.add_route(net, &route).await {
                self.troubles
                    .say(format!("{name}: route {route} cannot be set: {why}"));
                self.refuse(route);
            }
        }
    }

    /// The routes that `changes` remove and that stay because the kernel refused others.
    fn spared(&self, changes: &[Setting], netdev: &Netdev, look: &Look<'_>) -> Vec<Route> {
        let Some(granted) = self.client.granted() else {
            return Vec::new();
        };
        let gone = removed_routes(changes);
        let (mut expected, own) = (self.client.routes(), granted.address);
        expected.retain(|route| is_set(route, changes, netdev));
        let servers = look.servers.as_ref().filter(|_| self.client.keep());
        spared(
            &gone,
            &self.refused,
            &expected,
            own,
            &servers.cloned(),
            netdev,
        )
    }

    /// Whether the root file system needs the address with the old prefix, because the kernel refused a
    /// route to its server.
    fn is_needed(
        &self,
        old: Address,
        changes: &[Setting],
        netdev: &Netdev,
        look: &Look<'_>,
    ) -> bool {
        let own = self.client.granted().map(|granted| granted.address);
        let Some(own) = own.filter(|own| own.address == old.address && self.client.keep()) else {
            return false;
        };
        let mut routes = self.client.routes();
        routes.retain(|route| !self.refused.contains(route) && is_set(route, changes, netdev));
        let first_prefix = self.client.first_prefix();
        old_prefix_stays(old, own, look.servers, &routes, first_prefix)
    }

    /// Applies changes. Only the first few are logged one by one: a server can make a hundred
    /// changes at every renewal.
    async fn apply(
        &mut self,
        netdev: &Netdev,
        changes: &[Setting],
        look: &Look<'_>,
        level: log::Level,
    ) {
        let (index, name) = (self.place.index, &netdev.ifname);
        let mut stay = None;
        let mut addresses = Vec::new();
        let mut done = 0_usize;
        for change in changes {
            // New routes come before old ones go.
            if let Setting::RemoveRoute(old) = change
                && stay
                    .get_or_insert_with(|| self.spared(changes, netdev, look))
                    .contains(old)
            {
                continue;
            }
            if let Setting::RemoveAddress(old) = change
                && self.client.requested_addresses().contains(old)
            {
                continue;
            }
            if let Setting::RemoveAddress(old) = change
                && self.is_needed(*old, changes, netdev, look)
            {
                log::warn!("{name}: address {old} stays: the root file system depends on it");
                addresses.push(*old);
                continue;
            }
            let words = words(change);
            match change.apply(name, Some(index), look.net).await {
                Ok(()) => {
                    if let Setting::AddRoute(route, _) = change {
                        self.refused.retain(|refused| refused != route);
                    }
                    done += 1;
                    if done <= SHOWN {
                        log::log!(level, "{name}: {words}, as the server requests");
                    }
                }
                Err(error) => {
                    self.troubles.say(error.to_string());
                    match change {
                        // The address that this one would replace stays, with its routes.
                        Setting::AddAddress(..) => {
                            let mut stay = removed_routes(changes);
                            stay.retain(|route| netdev.has_route(route));
                            self.client.retain(stay, removed_addresses(changes));
                            return;
                        }
                        Setting::AddRoute(route, _) => self.refuse(*route),
                        _ => {}
                    }
                }
            }
        }
        self.client.retain(stay.unwrap_or_default(), addresses);
        let more = done.saturating_sub(SHOWN);
        if more > 0 {
            log::log!(level, "{name}: {more} more changes, as the server requests");
        }
    }
}

/// Whether the interface has the route, or these changes add the route.
fn is_set(route: &Route, changes: &[Setting], netdev: &Netdev) -> bool {
    let is_it = |change: &Setting| matches!(change, Setting::AddRoute(new, _) if new == route);
    netdev.has_route(route) || changes.iter().any(is_it)
}

/// The addresses that these changes remove.
fn removed_addresses(changes: &[Setting]) -> Vec<Address> {
    let removed = changes.iter().filter_map(|change| match change {
        Setting::RemoveAddress(address) => Some(*address),
        _ => None,
    });
    removed.collect()
}

/// The routes that these changes remove.
fn removed_routes(changes: &[Setting]) -> Vec<Route> {
    let removed = changes.iter().filter_map(|change| match change {
        Setting::RemoveRoute(route) => Some(*route),
        _ => None,
    });
    removed.collect()
}
