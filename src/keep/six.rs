// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DHCPv6 lease that is kept.

use std::net::{IpAddr, Ipv6Addr};

use super::interface;
use crate::dhcp::identity::unhex;
use crate::dhcp6::Wish;
use crate::dhcp6::client::Config;
use crate::dhcp6::duid::Identity;
use crate::dhcp6::lease::{Lease, PREFIX};
use crate::dhcp6::progress::Progress;
use crate::dhcp6::session::{Outcome, Session};
use crate::error::{Error, Result};
use crate::facts::{Facts, Netdev};
use crate::handover::State;
use crate::ipoib::Autoconf;
use crate::system::clock::boottime_ns;
use crate::system::net::Net;

/// Duplicate address detection of a new address is over by then, and tells nobody.
const DETECTION: u64 = 3_000_000_000;

pub(super) struct Kept {
    index: u32,
    wish: Wish,
    session: Session,
    /// What is on the interface: what is granted just now is not there yet.
    set: Option<Ipv6Addr>,
    /// When a new address is looked at again, ns since kernel start.
    look: Option<u64>,
}

/// The client of a lease in state.json, where its address is still on its interface: else somebody
/// else owns that by now.
pub(super) fn resume(progress: &Progress, facts: &Facts) -> Result<Kept> {
    let name = &progress.interface;
    let cannot = |why: &str| Error::new(name, "DHCPv6 lease is not kept").seen(why);
    let lease = progress.lease.as_ref();
    let lease = lease.ok_or_else(|| cannot("no server granted one"))?;
    let netdev = interface(facts, progress.index).ok_or_else(|| cannot("the interface is gone"))?;
    if netdev.shown6(lease.address).is_none() {
        return Err(cannot(&format!(
            "{} is not on the interface any more: somebody else owns it",
            lease.address_text()
        )));
    }
    let mut addresses = netdev.addresses.iter();
    let local = addresses.find(|address| Autoconf::LinkLocal.is_met_by(address));
    let local = local.and_then(|address| address.split('/').next()?.parse().ok());
    let local = local.ok_or_else(|| cannot("no link-local address to ask from"))?;
    let identity = Identity {
        duid: unhex(&progress.duid).ok_or_else(|| cannot("its DUID"))?,
        iaid: progress.iaid,
    };
    let wish = &progress.wish;
    let config = Config {
        identity,
        keep: wish.keep,
    };
    let mut session = Session::open(&netdev.ifname, progress.index, local, config)?;
    session.set_router(progress.router);
    session.resume(lease.clone());
    log::info!(
        "{}: {} of {} is kept, {}",
        netdev.ifname,
        lease.address_text(),
        lease.server,
        lease.length()
    );
    Ok(Kept {
        index: progress.index,
        wish: wish.clone(),
        session,
        set: Some(lease.address),
        look: None,
    })
}

impl Kept {
    pub(super) fn due(&self) -> Option<u64> {
        self.session.due().into_iter().chain(self.look).min()
    }

    pub(super) async fn changed(&mut self) {
        self.session.changed().await;
    }

    /// Does what is due and what came of it; a lease that changed is put into `state`. False: it is
    /// not ours any longer.
    pub(super) async fn go_on(&mut self, facts: &Facts, net: &Net, state: &mut Change) -> bool {
        let Some(netdev) = interface(facts, self.index) else {
            log::warn!(
                "{}: the interface is gone",
                self.session.progress().interface
            );
            return false;
        };
        let name = &netdev.ifname;
        if let Some(address) = self.set {
            if netdev.shown6(address).is_none() {
                log::warn!(
                    "{name}: {address}/{PREFIX} is not on the interface any more: it is left to whoever took it away"
                );
                return false;
            }
            if netdev.is_duplicate6(address) {
                self.session.duplicate();
            }
        }
        if self.look.is_some_and(|look| boottime_ns() >= look) {
            self.look = None;
        }
        self.session.rename(name);
        self.session.wake();
        for outcome in self.session.outcomes() {
            match outcome {
                Outcome::Lost(address) => {
                    self.set = None;
                    super::take_away(net, netdev, self.index, IpAddr::V6(address)).await;
                }
                Outcome::Bound => {
                    if let Some(lease) = self.session.lease().cloned() {
                        self.bound(netdev, &lease, net).await;
                    }
                }
            }
            state.push(Progress {
                wish: self.wish.clone(),
                ..self.session.progress()
            });
        }
        true
    }

    /// A renewed lease changes nothing but its times; a new address is set.
    async fn bound(&mut self, netdev: &Netdev, lease: &Lease, net: &Net) {
        let (name, what) = (&netdev.ifname, lease.address_text());
        let (server, length) = (lease.server, lease.length());
        if self.set == Some(lease.address) {
            log::info!("{name}: {what} renewed by {server}, {length}");
            return;
        }
        log::info!("{name}: {what} of {server}, {length}");
        let address = IpAddr::V6(lease.address);
        if let Err(why) = net.add_address(self.index, address, PREFIX, None).await {
            log::error!("{name}: {what} cannot be set: {why}");
        }
        self.set = Some(lease.address);
        self.look = Some(boottime_ns().saturating_add(DETECTION));
    }
}

/// What changed and is to be written down.
pub(super) type Change = Vec<Progress>;

/// Puts what changed into the place of what was there before.
pub(super) fn record(state: &mut State, changed: Change) {
    for progress in changed {
        let mut there = state.dhcp6.iter_mut();
        if let Some(before) = there.find(|before| before.index == progress.index) {
            *before = progress;
        }
    }
}
