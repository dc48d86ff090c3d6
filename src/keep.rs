// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real root: the leases that the initramfs handed over are renewed, from state.json alone.

mod changes;
mod six;

use std::net::IpAddr;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::signal::unix::{SignalKind, signal};

use crate::dhcp::Wish;
use crate::dhcp::client::Config;
use crate::dhcp::identity::{Identity, WantedId, unhex};
use crate::dhcp::lease::Lease;
use crate::dhcp::progress::Progress;
use crate::dhcp::session::{Outcome, Session};
use crate::dhcp::socket::Hardware;
use crate::error::{Error, Result};
use crate::facts::{Depth, Facts, Netdev};
use crate::handover::{self, Directory, State};
use crate::ipoib::Route;
use crate::system::alarm::Alarm;
use crate::system::clock::boottime_ns;
use crate::system::net::Net;
use crate::system::root::Root;
use changes::{Change, changes, not_applied, routes};

/// Between two looks at what could not be read.
const UNREAD_PAUSE: Duration = Duration::from_secs(1);

/// A lease that is kept.
struct Kept {
    index: u32,
    wish: Wish,
    session: Session,
    /// What was applied: where its address is not on the interface, somebody took that away.
    applied: Option<Lease>,
}

/// A lease of either family.
enum Either {
    Four(Box<Kept>),
    Six(Box<six::Kept>),
}

impl Either {
    fn due(&self) -> Option<u64> {
        match self {
            Either::Four(kept) => kept.session.due(),
            Either::Six(kept) => kept.due(),
        }
    }

    async fn changed(&mut self) {
        match self {
            Either::Four(kept) => kept.session.changed().await,
            Either::Six(kept) => kept.changed().await,
        }
    }

    /// Does what is due and what came of it. False: it is not ours any longer.
    async fn go_on(
        &mut self,
        facts: &Facts,
        net: &Net,
        directory: &Directory,
        root: &Root,
    ) -> Result<bool> {
        match self {
            Either::Four(kept) => kept.go_on(facts, net, directory, root).await,
            Either::Six(kept) => {
                let mut changed = six::Change::new();
                let stays = kept.go_on(facts, net, &mut changed).await;
                if !changed.is_empty() {
                    record(root, directory, |state| six::record(state, changed))?;
                }
                Ok(stays)
            }
        }
    }
}

/// Renews until SIGTERM, or until there is nothing left to renew.
pub async fn keep(root: &Root) -> Result<()> {
    let Some(state) = handover::read_state(root)? else {
        return Ok(());
    };
    if let Some(owner @ ("nm" | "networkd")) = state.handover.as_deref() {
        log::info!("rd.ib.handover={owner}: it renews the leases");
        return Ok(());
    }
    let mut terminate = signal(SignalKind::terminate())
        .map_err(|e| Error::io("SIGTERM", "cannot be waited for", &e))?;
    let alarm = Alarm::new().map_err(|e| Error::io("timer", "cannot be made", &e))?;
    let net = Net::open()?;
    let directory = Directory::open()?;
    let facts = tokio::select! {
        facts = look(root) => facts,
        _ = terminate.recv() => return Ok(()),
    };
    let v4 = state.dhcp.iter();
    let v4 = v4.map(|progress| Ok(Either::Four(Box::new(resume(root, progress, &facts)?))));
    // Where routers give the address, no server has to.
    let granted = state
        .dhcp6
        .iter()
        .filter(|progress| progress.wish.after_router_s.is_none() || progress.lease.is_some());
    let v6 = granted.map(|progress| Ok(Either::Six(Box::new(six::resume(progress, &facts)?))));
    let mut kept = Vec::new();
    for one in v4.chain(v6) {
        match one {
            Ok(one) => kept.push(one),
            Err(error) => {
                let error: Error = error;
                log::warn!("{error}");
            }
        }
    }
    while !kept.is_empty() {
        let due = kept.iter().filter_map(Either::due).min();
        {
            let changes = kept.iter_mut();
            let changed = select_all(changes.map(|one| one.changed().boxed_local()));
            let rings = async {
                match due {
                    Some(due) => {
                        let wait = due.saturating_sub(boottime_ns());
                        alarm.rings(Duration::from_nanos(wait)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = changed => {}
                () = rings => {}
                _ = terminate.recv() => return Ok(()),
            }
        }
        let facts = tokio::select! {
            facts = look(root) => facts,
            _ = terminate.recv() => return Ok(()),
        };
        let mut stay = Vec::with_capacity(kept.len());
        for mut one in kept {
            if one.go_on(&facts, &net, &directory, root).await? {
                stay.push(one);
            }
        }
        kept = stay;
    }
    log::info!("no lease is left to keep");
    Ok(())
}

/// Waits until the interfaces and their addresses can be read: what is not seen would count as taken away.
async fn look(root: &Root) -> Facts {
    loop {
        let facts = Facts::gather(root, None, &[], Depth::Ports);
        let Some(unread) = facts.unread_interfaces() else {
            return facts;
        };
        log::warn!("{}: {}: looked at again in 1 s", unread.path, unread.why);
        tokio::time::sleep(UNREAD_PAUSE).await;
    }
}

fn interface(facts: &Facts, index: u32) -> Option<&Netdev> {
    let mut netdevs = facts.netdevs.iter();
    netdevs.find(|netdev| netdev.ifindex == Some(index))
}

/// The client of a lease in state.json, where its address is still on its interface: else somebody
/// else owns that by now. One whose address was another's begins anew.
fn resume(root: &Root, progress: &Progress, facts: &Facts) -> Result<Kept> {
    let name = &progress.interface;
    let cannot = |why: &str| Error::new(name, "lease is not kept").seen(why);
    let lease = progress.lease.as_ref();
    if lease.is_none() && progress.counts.taken.is_none() {
        return Err(cannot("no server granted one"));
    }
    let netdev = interface(facts, progress.index).ok_or_else(|| cannot("the interface is gone"))?;
    if let Some(lease) = lease
        && !netdev.addresses.contains(&lease.address_text())
    {
        return Err(cannot(&format!(
            "{} is not on the interface any more: somebody else owns it",
            lease.address_text()
        )));
    }
    let hardware = Hardware::read(root, &netdev.ifname)
        .map_err(|e| Error::io(name, "hardware address cannot be read", &e))?;
    let client_id = unhex(&progress.client_id).ok_or_else(|| cannot("its client identifier"))?;
    let wanted = WantedId::Bytes(client_id);
    let identity = Identity::new(hardware.hardware_type, &hardware.address, &wanted);
    let identity = identity.ok_or_else(|| cannot("another kind of hardware"))?;
    let wish = &progress.wish;
    let config = Config {
        identity,
        vendor_class: wish.vendor_class.clone(),
        host_name: wish.host_name.clone(),
        keep: wish.keep,
    };
    let mut session = Session::open(&netdev.ifname, hardware, config)?;
    match lease {
        Some(lease) => {
            // The initramfs may have had no time to see whether somebody else has the address. Under
            // a root file system it stays anyway.
            session.resume(lease.clone(), progress.is_probing() && !wish.keep);
            log::info!(
                "{}: {} of {} is kept, {}",
                netdev.ifname,
                lease.address_text(),
                lease.server,
                lease.length()
            );
        }
        None => {
            log::info!("{}: a server is asked for another address", netdev.ifname);
            session.start(None);
        }
    }
    Ok(Kept {
        index: progress.index,
        wish: wish.clone(),
        session,
        applied: lease.cloned(),
    })
}

impl Kept {
    /// Does what is due and what came of it. False: it is not ours any longer.
    async fn go_on(
        &mut self,
        facts: &Facts,
        net: &Net,
        directory: &Directory,
        root: &Root,
    ) -> Result<bool> {
        let Some(netdev) = interface(facts, self.index) else {
            log::warn!(
                "{}: the interface is gone",
                self.session.progress().interface
            );
            return Ok(false);
        };
        let name = &netdev.ifname;
        if let Some(lease) = &self.applied
            && !netdev.addresses.contains(&lease.address_text())
        {
            log::warn!(
                "{name}: {} is not on the interface any more: it is left to whoever took it away",
                lease.address_text()
            );
            return Ok(false);
        }
        self.session.rename(name);
        // Of a bond it changes with a failover.
        if let Some(address) = netdev.address.as_deref().and_then(unhex) {
            self.session.set_address(address);
        }
        self.session.wake();
        for outcome in self.session.outcomes() {
            match outcome {
                Outcome::Lost(address) => {
                    self.take_routes_away(&netdev.ifname, net).await;
                    take_away(net, netdev, self.index, address.into()).await;
                }
                Outcome::Unopposed => {}
                Outcome::Bound => {
                    if let Some(lease) = self.session.lease().cloned() {
                        self.bound(netdev, &lease, net).await;
                    }
                }
            }
            let progress = Progress {
                wish: self.wish.clone(),
                ..self.session.progress()
            };
            record(root, directory, |state| {
                let mut there = state.dhcp.iter_mut();
                if let Some(before) = there.find(|before| before.index == progress.index) {
                    *before = progress;
                }
            })?;
        }
        Ok(true)
    }

    /// With another address on the interface the kernel would leave the routes of a lost one there.
    async fn take_routes_away(&mut self, name: &str, net: &Net) {
        for route in self.applied.take().iter().flat_map(routes) {
            if let Err(why) = self.route(net, &route, false).await {
                log::error!("{name}: route {route} cannot be taken away: {why}");
            }
        }
    }

    async fn route(&self, net: &Net, route: &Route, set: bool) -> std::result::Result<(), String> {
        let network = Some(route.network).filter(|network| network.prefix > 0);
        if set {
            net.add_route(self.index, network, route.gateway).await
        } else {
            net.delete_route(self.index, network, route.gateway).await
        }
    }

    /// A renewed lease changes its times, and what its server says otherwise than before; a new
    /// address is set with its routes.
    async fn bound(&mut self, netdev: &Netdev, lease: &Lease, net: &Net) {
        let name = &netdev.ifname;
        let what = lease.address_text();
        let before = self.applied.replace(lease.clone());
        if let Some(before) = before.filter(|before| before.address == lease.address) {
            log::info!(
                "{name}: {what} renewed by {}, {}",
                lease.server,
                lease.length()
            );
            self.apply(name, &changes(&before, lease, &self.wish), net)
                .await;
            if let Some(left) = not_applied(&before, lease, &self.wish) {
                log::info!("{name}: the server has changed what is not applied after boot: {left}");
            }
            return;
        }
        log::info!("{name}: {what} of {}, {}", lease.server, lease.length());
        let set = net.add_address(self.index, lease.address.into(), lease.prefix, None);
        if let Err(why) = set.await {
            log::error!("{name}: {what} cannot be set: {why}");
            self.applied = None;
            return;
        }
        for route in routes(lease) {
            if let Err(why) = self.route(net, &route, true).await {
                log::error!("{name}: route {route} cannot be set: {why}");
            }
        }
    }

    /// Each with a line, whether it could be done or not.
    async fn apply(&self, name: &str, changes: &[Change], net: &Net) {
        for change in changes {
            let done = match change {
                Change::AddAddress(new) => {
                    net.add_address(self.index, new.address, new.prefix, None)
                        .await
                }
                Change::RemoveAddress(old) => {
                    net.delete_address(self.index, old.address, Some(old.prefix))
                        .await
                }
                Change::AddRoute(route) => self.route(net, route, true).await,
                Change::RemoveRoute(route) => self.route(net, route, false).await,
                Change::Mtu(bytes) => net.set_mtu(self.index, *bytes).await,
            };
            match done {
                Ok(()) => log::info!("{name}: {change}, as the server has it now"),
                Err(why) => {
                    log::error!("{name}: not {change}: {why}");
                    // What it was to take the place of stays.
                    if matches!(change, Change::AddAddress(_) | Change::AddRoute(_)) {
                        return;
                    }
                }
            }
        }
    }
}

async fn take_away(net: &Net, netdev: &Netdev, index: u32, address: IpAddr) {
    match net.delete_address(index, address, None).await {
        Ok(()) => log::warn!("{}: {address} taken away", netdev.ifname),
        Err(why) => log::error!("{}: {address} cannot be taken away: {why}", netdev.ifname),
    }
}

/// Changes state.json: a lease takes the place of the one before.
fn record(root: &Root, directory: &Directory, change: impl FnOnce(&mut State)) -> Result<()> {
    let Some(mut state) = handover::read_state(root)? else {
        return Ok(());
    };
    change(&mut state);
    directory.write(handover::STATE, handover::json(&state)?.as_bytes())
}
