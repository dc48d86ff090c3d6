// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client of a DHCPv6 lease that is kept.

use std::net::IpAddr;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, pending};

use super::held::{Accepted, Client, Renewal};
use super::place::Place;
use super::stay::{Servers, must_stay};
use crate::changes::Setting;
use crate::dhcp::v6::client::Config;
use crate::dhcp::v6::identity::Identity;
use crate::dhcp::v6::lease::Lease;
use crate::dhcp::v6::progress::Progress;
use crate::dhcp::v6::session::Session;
use crate::dhcp::{Granted, Outcome};
use crate::error::{Error, Result};
use crate::facts::Netdev;
use crate::handover;
use crate::hardware::unhex;
use crate::inet::{Address, Route};
use crate::system::root::Root;

pub(super) struct Six {
    /// The progress before the session was opened: the client's identity and the requested
    /// settings.
    before: Progress,
    /// The root file system may depend on the address.
    keep: bool,
    /// None: the interface does not exist, or has no link-local address.
    session: Option<Session>,
    /// The lease on the interface; a lease that was granted just now is not set yet.
    lease: Option<Lease>,
}

impl Six {
    /// `mounted`: the servers of the mounted root file system.
    pub(super) fn new(progress: &Progress, servers: &Servers, mounted: &[IpAddr]) -> Six {
        // Which servers a router leads to is unknown.
        let is_v6 = |servers: &Vec<IpAddr>| servers.iter().any(IpAddr::is_ipv6);
        let may_carry = |servers: &Servers| servers.as_ref().is_none_or(is_v6);
        Six {
            before: progress.clone(),
            keep: must_stay(progress.wish.keep, servers, mounted, may_carry),
            session: None,
            lease: progress.lease.clone(),
        }
    }

    fn progress(&self, place: &Place) -> Progress {
        let session = self.session.as_ref().map(Session::progress);
        Progress {
            interface: place.name.clone(),
            index: place.index,
            wish: self.before.wish.clone(),
            routes: self.before.routes.clone(),
            addresses: self.before.addresses.clone(),
            ..session.unwrap_or_else(|| self.before.clone())
        }
    }
}

impl Client for Six {
    fn is_v6(&self) -> bool {
        true
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
        match self.lease {
            Some(_) => self.before.routes.clone(),
            None => Vec::new(),
        }
    }

    fn requested(&self) -> &[Route] {
        &self.before.routes
    }

    fn requested_addresses(&self) -> &[Address] {
        &self.before.addresses
    }

    fn forget(&mut self) {
        self.lease = None;
    }

    fn accept(&mut self, netdev: &Netdev, _: &Servers, _: &[Route]) -> Accepted {
        let Some(lease) = self.session.as_ref().and_then(Session::lease) else {
            return Accepted::Nothing;
        };
        let before = self.lease.replace(lease.clone());
        match before.filter(|before| before.address == lease.address) {
            Some(before) => Accepted::Renewed(Renewal {
                changes: changes6(&before, lease, netdev),
                not_applied: None,
            }),
            None => Accepted::Other(Vec::new()),
        }
    }

    fn open(&mut self, _: &Root, netdev: &Netdev) -> Result<bool> {
        let name = &netdev.ifname;
        let (Some(local), Some(index)) = (netdev.link_local(), netdev.ifindex) else {
            return Ok(false);
        };
        let cannot = |why: &str| Error::new(name, "DHCPv6 lease cannot be renewed").found(why);
        let config = Config {
            identity: Identity {
                duid: unhex(&self.before.duid).ok_or_else(|| cannot("invalid DUID"))?,
                iaid: self.before.iaid,
            },
            keep: self.keep,
            boot_waits: false,
        };
        let mut session = Session::open(name, index, local, config)?;
        session.set_router(self.before.router);
        self.session = Some(session);
        Ok(true)
    }

    fn is_open(&self) -> bool {
        self.session.is_some()
    }

    fn is_stale(&self, netdev: &Netdev) -> bool {
        let Some(session) = &self.session else {
            return false;
        };
        let is_other = netdev
            .link_local()
            .is_some_and(|local| local != session.local());
        netdev.up && is_other && netdev.shown6(session.local()).is_none()
    }

    fn close(&mut self, place: &Place) {
        self.before = self.progress(place);
        self.session = None;
    }

    fn start(&mut self) {
        let lease = self.lease.take();
        if let Some(session) = &mut self.session {
            session.start(lease.map(|lease| lease.address));
        }
    }

    fn resume(&mut self, verify: bool) {
        if let (Some(session), Some(lease)) = (&mut self.session, &self.lease) {
            session.resume(lease.clone());
            if verify || self.before.refusal().is_some() {
                session.verify();
            }
        }
    }

    fn detect(&mut self, netdev: &Netdev) {
        let address = self.lease.as_ref().map(|lease| lease.address);
        if address.is_some_and(|address| netdev.is_duplicate6(address))
            && let Some(session) = &mut self.session
        {
            session.duplicate();
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
        session.rename(&netdev.ifname);
        if hurry {
            session.hurry();
        }
        session.wake();
        session.outcomes()
    }

    fn is_noted(&self, place: &Place, before: u32, kept: &handover::Kept) -> bool {
        let noted = kept.dhcp6.iter().find(|one| one.index == before);
        noted.is_some_and(|noted| noted.is_alike(&self.progress(place)))
    }

    fn note(
        &self,
        place: &Place,
        before: u32,
        kept: &mut handover::Kept,
    ) -> (Vec<Route>, Vec<Address>) {
        let progress = self.progress(place);
        match kept.dhcp6.iter_mut().find(|one| one.index == before) {
            Some(present) => *present = progress,
            None => kept.dhcp6.push(progress),
        }
        (Vec::new(), Vec::new())
    }
}

/// What the lease `after` changes on an interface with the lease `before` of the same address: only its
/// times, and whether the address is deprecated.
fn changes6(before: &Lease, after: &Lease, netdev: &Netdev) -> Vec<Setting> {
    let is_same = before.is_deprecated() == after.is_deprecated();
    let shown = netdev.shown6(after.address).filter(|_| !is_same);
    let setting = |shown| match after.is_deprecated() {
        true => Setting::AddDeprecated(shown),
        false => Setting::AddAddress(shown, None),
    };
    shown.into_iter().map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_lease_deprecates_its_address_and_takes_that_back() {
        let lease = |preferred_s: u32| -> Lease {
            let text = format!(
                r#"{{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01","requested_ns":0,
                    "seconds":60,"preferred_s":{preferred_s},"renew_s":30,"rebind_s":50}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let own: Address = "fd00::5/128".parse().unwrap();
        let netdev = Netdev {
            addresses: vec![own.into()],
            ..Netdev::default()
        };
        let changes = |before, after, netdev| changes6(&lease(before), &lease(after), netdev);
        assert_eq!(changes(60, 0, &netdev), [Setting::AddDeprecated(own)]);
        assert_eq!(changes(0, 40, &netdev), [Setting::AddAddress(own, None)]);
        assert_eq!(changes(60, 40, &netdev), []);
        assert_eq!(changes(0, 0, &netdev), []);
        // A missing address is set again with the lease.
        assert_eq!(changes(60, 0, &Netdev::default()), []);
    }
}
