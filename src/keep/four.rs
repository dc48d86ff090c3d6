// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client of a DHCPv4 lease that is kept.

use std::net::IpAddr;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, pending};

use super::changes::{changes, mtu, not_applied, routes, usable, without_refused};
use super::held::{Accepted, Client, Renewal};
use super::place::Place;
use super::stay::{Servers, Stay, cuts_off, may_carry, must_stay};
use crate::dhcp::hardware::Hardware;
use crate::dhcp::identity::RequestedId;
use crate::dhcp::v4::client::Config;
use crate::dhcp::v4::identity::Identity;
use crate::dhcp::v4::lease::Lease;
use crate::dhcp::v4::progress::Progress;
use crate::dhcp::v4::session::Session;
use crate::dhcp::{Granted, Outcome};
use crate::error::{Error, Result};
use crate::facts::Netdev;
use crate::handover::{self, Entry};
use crate::hardware::unhex;
use crate::inet::{Address, Route};
use crate::system::root::Root;

pub(super) struct Four {
    /// The progress before the session was opened: the client's identity and the requested
    /// settings.
    before: Progress,
    /// The root file system may depend on the address.
    keep: bool,
    /// None: the interface does not exist or is down.
    session: Option<Session>,
    lease: Option<Lease>,
    /// Routes of earlier leases that stay.
    old_routes: Vec<Route>,
    /// Routes that existed when this program started.
    first_routes: Vec<Route>,
    /// The address of the lease with prefixes of earlier leases that stay.
    old_addresses: Vec<Address>,
    /// The prefix that the address had when this program started.
    first_prefix: u8,
}

impl Four {
    /// `mounted`: the servers of the mounted root file system.
    pub(super) fn new(
        progress: &Progress,
        entry: &Entry,
        servers: &Servers,
        mounted: &[IpAddr],
    ) -> Four {
        let lease = progress.lease.clone();
        let of_lease = |lease: &Lease| routes(&progress.routes, lease);
        let mut first_routes: Vec<Route> = lease.iter().flat_map(of_lease).collect();
        first_routes.extend(&entry.routes);
        let carries = |servers: &Servers| {
            let reaches =
                |lease: &Lease| may_carry(lease.interface_address(), &first_routes, servers);
            lease.as_ref().is_none_or(reaches)
        };
        let own = lease.as_ref().map(Lease::interface_address);
        let mut old_addresses = entry.addresses.clone();
        old_addresses.retain(|old| own.is_some_and(|own| own.address == old.address));
        let first = own.iter().chain(&old_addresses).map(|own| own.prefix).min();
        Four {
            before: progress.clone(),
            keep: must_stay(progress.wish.keep, servers, mounted, carries),
            session: None,
            lease,
            old_routes: entry.routes.clone(),
            first_routes,
            old_addresses,
            first_prefix: first.unwrap_or_default(),
        }
    }

    fn progress(&self, place: &Place) -> Progress {
        let mut session = self.session.as_ref().map(Session::progress);
        // The session has the prefix of the server, which may not be the one on the interface.
        let lease = session.as_mut().and_then(|session| session.lease.as_mut());
        if let (Some(lease), Some(own)) = (lease, &self.lease)
            && lease.address == own.address
        {
            lease.prefix = own.prefix;
        }
        Progress {
            interface: place.name.clone(),
            index: place.index,
            wish: self.before.wish.clone(),
            routes: self.before.routes.clone(),
            addresses: self.before.addresses.clone(),
            ..session.unwrap_or_else(|| self.before.clone())
        }
    }

    /// The routes of the lease, and the routes of earlier leases that stay.
    fn routes_of(&self, lease: &Lease) -> Vec<Route> {
        let mut all = routes(&self.before.routes, lease);
        let old = self.old_routes.iter().filter(|route| !all.contains(route));
        let old: Vec<Route> = old.copied().collect();
        all.extend(old);
        all
    }
}

impl Client for Four {
    fn is_v6(&self) -> bool {
        false
    }

    fn keep(&self) -> bool {
        self.keep
    }

    fn is_boot(&self) -> bool {
        self.before.wish.boot
    }

    fn granted(&self) -> Option<Granted> {
        self.lease.as_ref().map(Lease::granted)
    }

    fn routes(&self) -> Vec<Route> {
        let lease = self.lease.as_ref();
        lease.map_or_else(Vec::new, |lease| self.routes_of(lease))
    }

    fn retain(&mut self, routes: Vec<Route>, addresses: Vec<Address>) {
        self.old_routes.extend(routes);
        self.old_addresses.extend(addresses);
    }

    fn requested(&self) -> &[Route] {
        &self.before.routes
    }

    fn requested_addresses(&self) -> &[Address] {
        &self.before.addresses
    }

    fn forget(&mut self) {
        self.lease = None;
        self.old_routes.clear();
        self.old_addresses.clear();
    }

    fn accept(&mut self, netdev: &Netdev, servers: &Servers, refused: &[Route]) -> Accepted {
        let Some(lease) = self.session.as_ref().and_then(Session::lease) else {
            return Accepted::Nothing;
        };
        let mut lease = lease.clone();
        let before = self.lease.take();
        let Some(before) = before.filter(|before| before.address == lease.address) else {
            self.first_routes = routes(&self.before.routes, &lease);
            self.first_prefix = lease.prefix;
            self.old_addresses.clear();
            let settings = mtu(&lease, &self.before.wish, netdev);
            self.lease = Some(lease);
            return Accepted::Other(settings.into_iter().collect());
        };
        let wish = &self.before.wish;
        let had = without_refused(self.routes_of(&before), refused, &self.old_routes);
        let has = routes(&self.before.routes, &lease);
        let mut old = std::mem::take(&mut self.old_addresses);
        old.push(before.interface_address());
        let mut stay = if self.keep {
            let asked = lease.interface_address();
            let unset = cuts_off(before.interface_address(), asked, &had, servers).then_some(asked);
            if unset.is_some() {
                lease.prefix = before.prefix;
            }
            let new = lease.interface_address();
            let usable = usable(&had, &has, refused, netdev);
            let (first, first_prefix) = (&self.first_routes, self.first_prefix);
            let stay = Stay::of(&had, &usable, &old, new, servers, first, first_prefix);
            Stay { unset, ..stay }
        } else {
            Stay::default()
        };
        let new = lease.interface_address();
        if !self.keep {
            old.retain(|old| *old != new);
            stay.past = old;
        }
        // The kernel has refused this prefix so far: one of the others holds the address.
        let is_set = netdev.state_of(&new).is_some() || before.interface_address() != new;
        if !is_set {
            stay.addresses.append(&mut stay.past);
        }
        self.lease = Some(lease.clone());
        let renewal = Renewal {
            changes: changes(&before, &had, &lease, &has, &stay, wish, netdev),
            not_applied: not_applied(&before, &lease, &stay, wish),
        };
        self.old_routes = stay.routes;
        self.old_addresses = stay.addresses;
        Accepted::Renewed(renewal)
    }

    fn open(&mut self, root: &Root, netdev: &Netdev) -> Result<bool> {
        let name = &netdev.ifname;
        let cannot = |why: &str| Error::new(name, "lease cannot be renewed").found(why);
        let hardware = Hardware::of(root, name, netdev.ifindex)
            .map_err(|e| Error::io(name, "hardware address cannot be read", &e))?;
        let client_id = unhex(&self.before.client_id);
        let expected =
            RequestedId::Bytes(client_id.ok_or_else(|| cannot("invalid client identifier"))?);
        let identity = Identity::new(hardware.hardware_type, &hardware.address, &expected);
        let wish = &self.before.wish;
        let config = Config {
            identity: identity.ok_or_else(|| cannot("unsupported hardware type"))?,
            vendor_class: wish.vendor_class.clone(),
            host_name: wish.host_name.clone(),
            keep: self.keep,
            boot_waits: false,
        };
        self.session = Some(Session::open(name, hardware, config)?);
        Ok(true)
    }

    fn is_open(&self) -> bool {
        self.session.is_some()
    }

    fn close(&mut self, place: &Place) {
        self.before = self.progress(place);
        self.session = None;
    }

    fn start(&mut self) {
        let lease = self.lease.take();
        self.old_routes.clear();
        self.old_addresses.clear();
        if let Some(session) = &mut self.session {
            session.start(lease.map(|lease| lease.address));
        }
    }

    fn resume(&mut self, verify: bool) {
        if let (Some(session), Some(lease)) = (&mut self.session, &self.lease) {
            // The initramfs may have had no time to probe whether another host has the address.
            // Under a root file system the address stays in any case.
            let probe = self.before.is_probing() && !self.keep;
            session.resume(lease.clone(), probe);
            if verify || self.before.refusal().is_some() {
                session.verify();
            }
        }
    }

    fn due(&self) -> Option<u64> {
        self.session.as_ref().and_then(Session::due)
    }

    fn wake(&mut self) {
        self.session.iter_mut().for_each(Session::wake);
    }

    fn changed(&mut self) -> LocalBoxFuture<'_, ()> {
        match &mut self.session {
            Some(session) => session.changed().boxed_local(),
            None => pending().boxed_local(),
        }
    }

    fn work(&mut self, netdev: &Netdev, hurry: bool) -> Vec<Outcome> {
        let Some(session) = &mut self.session else {
            return Vec::new();
        };
        let (address, transmits) = (netdev.address.as_ref(), netdev.can_transmit());
        session.follow(&netdev.ifname, address, transmits);
        if hurry {
            session.hurry();
        }
        session.wake();
        session.outcomes()
    }

    fn is_noted(&self, place: &Place, before: u32, kept: &handover::Kept) -> bool {
        let noted = kept.dhcp.iter().find(|one| one.index == before);
        noted.is_some_and(|noted| noted.is_alike(&self.progress(place)))
    }

    fn note(
        &self,
        place: &Place,
        before: u32,
        kept: &mut handover::Kept,
    ) -> (Vec<Route>, Vec<Address>) {
        let progress = self.progress(place);
        match kept.dhcp.iter_mut().find(|one| one.index == before) {
            Some(present) => *present = progress,
            None => kept.dhcp.push(progress),
        }
        (self.old_routes.clone(), self.old_addresses.clone())
    }

    fn first_prefix(&self) -> u8 {
        self.first_prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp::v4::progress::State;
    use crate::handover::Kept;

    #[test]
    fn a_change_that_check_would_show_is_not_noted_yet() {
        let entry = Entry {
            index: 4,
            ..Entry::default()
        };
        let progress = Progress {
            index: 4,
            state: State::Bound,
            ..Progress::default()
        };
        let four = Four::new(&progress, &entry, &None, &[]);
        let place = Place::new("ib0", 4, None);
        let is_noted = |change: fn(&mut Progress)| {
            let mut kept = Kept::new(None);
            kept.dhcp.push(progress.clone());
            kept.dhcp.iter_mut().for_each(change);
            four.is_noted(&place, 4, &kept)
        };
        assert!(is_noted(|_| {}));
        assert!(is_noted(|noted| noted.counts.malformed = 5));
        assert!(!is_noted(|noted| noted.state = State::Rebooting));
        assert!(!is_noted(|noted| noted.broken = Some("EPERM".to_owned())));
        assert!(!is_noted(
            |noted| noted.counts.why_refused = Some("NAK".to_owned())
        ));
        assert!(!is_noted(|noted| noted.index = 5));
    }
}
