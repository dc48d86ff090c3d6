// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCPv6 on the interfaces that want it: a client begins when there are carrier and a link-local
//! address, with `either6` when the routers had their turn, and what it is granted becomes part of
//! what is wanted of the interface.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::time::Instant;

use super::Walk;
use super::speaker::Speaker;
use super::tries::{self, Asks, Tries};
use crate::dhcp::hardware::Hardware;
use crate::dhcp::identity::WantedId;
use crate::dhcp::v6::Wish;
use crate::dhcp::v6::client::Config;
use crate::dhcp::v6::identity::Identity;
use crate::dhcp::v6::information::NO_NAME_SERVERS;
use crate::dhcp::v6::lease::{Lease, PREFIX};
use crate::dhcp::v6::progress::Progress;
use crate::dhcp::v6::session::{Outcome, Session};
use crate::dhcp::v6::socket::Closed;
use crate::error::Error;
use crate::facts::{AddressState, Facts, Netdev};
use crate::handover::{Mark, Phase};
use crate::hardware::Hex;
use crate::inet::{Address, Router};
use crate::system::clock::boottime_ns;
use crate::wish::ipoib::Autoconf;

/// Messages after which a client ends to which no server granted anything, where a router's address
/// is enough.
const NEEDLESS: u32 = 5;

/// The clients, by interface index.
#[derive(Debug, Default)]
pub struct Leases {
    running: BTreeMap<u32, Running>,
    /// Until when a router is waited for.
    patience: BTreeMap<u32, Instant>,
    /// Addresses of earlier runs of this boot: asked for first.
    known: Vec<Progress>,
    /// Those of them whose client is another process, `ibboot lease`.
    kept: BTreeMap<u32, Progress>,
    /// What was ever granted, by interface index: on the interface it may outlast its lease.
    granted: BTreeSet<(u32, Ipv6Addr)>,
    /// Interfaces with a router's address whose client still asks, for name servers alone.
    beside: BTreeSet<u32>,
    /// Interfaces of whose client it was said that it ends: what a router advertises may change often.
    ended: BTreeSet<u32>,
}

type Running = tries::Running<Wish, Session>;

impl Asks for Session {
    fn wake(&mut self) {
        Session::wake(self);
    }

    fn start_anew(&mut self) {
        self.start(None);
    }

    fn has_lease(&self) -> bool {
        self.lease().is_some()
    }

    fn due(&self) -> Option<u64> {
        Session::due(self)
    }
}

impl Running {
    fn progress(&self) -> Progress {
        Progress {
            wish: self.wish.clone(),
            gave_up: self.tries.gave_up(),
            ..self.session.progress()
        }
    }
}

impl Leases {
    /// With what an earlier run of this boot was granted.
    pub fn new(known: Vec<Progress>) -> Leases {
        let granted = known
            .iter()
            .filter_map(|one| Some((one.index, one.lease.as_ref()?.address)));
        Leases {
            granted: granted.collect(),
            known,
            ..Leases::default()
        }
    }

    /// When [`Walk::lease6`] has something to do without an event.
    pub fn due(&self) -> Option<Instant> {
        let clients = self.running.values().filter_map(Running::due);
        let waiting = self.patience.iter();
        let waiting = waiting.filter(|(index, _)| !self.running.contains_key(index));
        // What is over already has been seen to.
        let now = Instant::now();
        let waiting = waiting
            .map(|(_, until)| *until)
            .filter(|until| *until > now);
        clients.chain(waiting).min()
    }

    /// Clients of interfaces that are gone are given up: nothing moves them any more.
    pub(super) fn follow(&mut self, facts: &Facts) {
        let is_there = |index: &u32| facts.netdevs.iter().any(|n| n.ifindex == Some(*index));
        self.running.retain(|index, _| is_there(index));
        self.patience.retain(|index, _| is_there(index));
        self.kept.retain(|index, _| is_there(index));
        self.granted.retain(|(index, _)| is_there(index));
    }

    /// Waits until the link moved a client.
    pub async fn changed(&mut self) {
        let going = self.running.values_mut();
        let waiting: Vec<_> = going
            .filter(|running| !running.tries.gave_up())
            .map(|running| running.session.changed().boxed_local())
            .collect();
        if waiting.is_empty() {
            return std::future::pending().await;
        }
        select_all(waiting).await;
    }

    /// How far each of them came.
    pub fn seen(&self) -> Vec<Progress> {
        let running = self.running.values().map(Running::progress);
        running.chain(self.kept.values().cloned()).collect()
    }

    /// A client of this interface has the port: it asks, or has a lease.
    pub(super) fn is_asking(&self, index: u32) -> bool {
        let running = self.running.get(&index);
        running.is_some_and(|running| !running.tries.gave_up())
    }

    /// A client asks where the boot needs no lease: name servers may still come.
    pub fn is_open(&self) -> bool {
        self.running.keys().any(|index| self.beside.contains(index))
    }

    /// Nothing is awaited any longer: says where name servers were.
    pub fn end(&mut self) {
        for index in std::mem::take(&mut self.beside) {
            if let Some(running) = self.running.get(&index) {
                let interface = running.session.progress().interface;
                log::warn!("{interface}: DHCPv6: {NO_NAME_SERVERS}: no server granted an address");
            }
        }
    }

    /// `either6`: where a router says that addresses come from DHCPv6, and gives one itself, the
    /// client asks for some time. Whoever gave up leaves the port to the question for name servers.
    fn rest(&mut self, wish: &Wish, netdev: &Netdev, index: u32) {
        let is_enough = wish.after_router_s.is_some() && self.has_router_address(netdev, index);
        let Some(running) = self.running.get_mut(&index) else {
            return;
        };
        let is_asking = running.session.lease().is_none() && !running.tries.gave_up();
        let is_needless = is_enough && is_asking;
        if is_needless && running.session.is_in_vain(NEEDLESS) {
            if self.ended.insert(index) {
                log::info!(
                    "{}: DHCPv6: ends, no server grants anything and a router gave an address",
                    netdev.ifname
                );
            }
            running.tries.give_up();
        }
        if running.tries.gave_up() {
            running.session.close();
        }
        if is_needless && !running.tries.gave_up() && !wish.ignore_dns {
            self.beside.insert(index);
        } else {
            self.beside.remove(&index);
        }
    }

    /// `either6`: a router's address makes a client that has no lease yet needless.
    fn yield_to_router(&mut self, wish: &Wish, netdev: &Netdev, index: u32, router: Router) {
        let running = self.running.get(&index);
        let is_asking = running.is_some_and(|running| running.session.lease().is_none());
        let is_enough = wish.after_router_s.is_some() && router != Router::Managed;
        if is_asking && is_enough && self.has_router_address(netdev, index) {
            if self.ended.insert(index) {
                log::info!("{}: DHCPv6: ends, a router gave an address", netdev.ifname);
            }
            self.running.remove(&index);
        }
    }

    /// An earlier run's lease whose address is on the interface.
    fn held(&self, netdev: &Netdev, index: u32) -> Option<&Progress> {
        let is_there = |known: &&Progress| {
            let address = known.lease.as_ref().map(|lease| lease.address);
            known.index == index && address.is_some_and(|a| netdev.shown6(a).is_some())
        };
        self.known.iter().find(is_there)
    }

    /// The port is another process's: what that keeps stands.
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

    /// Whether DHCPv6 has its turn: at once, or after the routers.
    fn has_turn(&mut self, wish: &Wish, netdev: &Netdev, index: u32, router: Router) -> bool {
        let Some(seconds) = wish.after_router_s else {
            return true;
        };
        let has_begun = self.running.contains_key(&index) || self.held(netdev, index).is_some();
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
        !self.has_router_address(netdev, index) && Instant::now() >= until
    }

    /// There is an address beyond the link, be it tentative, that no lease gave: what a lease gave
    /// has no network around it, unless a router's prefix did.
    pub(super) fn has_router_address(&self, netdev: &Netdev, index: u32) -> bool {
        let of_lease = |found: &Address| match found.address {
            IpAddr::V6(v6) => found.prefix == PREFIX && self.granted.contains(&(index, v6)),
            IpAddr::V4(_) => false,
        };
        let usable = netdev.addresses_in(AddressState::Usable);
        let found = usable.chain(netdev.addresses_in(AddressState::Tentative));
        let mut others = found.filter(|found| !of_lease(found));
        others.any(|other| Autoconf::Router.is_met_by(other.address))
    }
}

impl Walk<'_> {
    /// The client of an interface that is up: begun where it can ask, moved on where its time has
    /// come. Gives what is wanted of the interface with what was granted.
    pub(super) async fn lease6(
        &mut self,
        wish: &crate::wish::ipoib::Wish,
        netdev: &Netdev,
        index: u32,
        speaker: &Speaker,
    ) -> crate::wish::ipoib::Wish {
        let Some(dhcp) = &wish.dhcp6 else {
            return wish.clone();
        };
        let router = self.net.router(index).await;
        // Before the client may end: what it lost is still on the interface.
        self.settle6(netdev, index).await;
        self.leases6.yield_to_router(dhcp, netdev, index, router);
        if !self.leases6.has_turn(dhcp, netdev, index, router) {
            return wish.clone();
        }
        self.begin6(dhcp, netdev, index, speaker);
        let Some(running) = self.leases6.running.get_mut(&index) else {
            let kept = self.leases6.kept.get(&index);
            let lease = kept.and_then(|kept| kept.lease.as_ref());
            return lease.map_or_else(
                || wish.clone(),
                |lease| wish.granted6(lease, netdev.shown6(lease.address)),
            );
        };
        let session = &mut running.session;
        session.set_router(router);
        session.rename(&netdev.ifname);
        let granted = session.lease().map(|lease| lease.address);
        if granted.is_some_and(|address| netdev.is_duplicate6(address)) {
            session.duplicate();
        }
        running.go_on();
        self.leases6.rest(dhcp, netdev, index);
        let lease = self.settle6(netdev, index).await;
        lease.map_or_else(
            || wish.clone(),
            |lease| wish.granted6(&lease, netdev.shown6(lease.address)),
        )
    }

    /// What the client did since: the address of a lease that is lost goes, one that is granted is
    /// said and marked. Gives the lease.
    async fn settle6(&mut self, netdev: &Netdev, index: u32) -> Option<Lease> {
        let running = self.leases6.running.get_mut(&index)?;
        let outcomes = running.session.outcomes();
        let is_loss = |outcome: &Outcome| matches!(outcome, Outcome::Lost(_));
        if outcomes.iter().any(is_loss) {
            running.is_marked = false;
            running.tries.prolong();
        }
        let lease = running.session.lease().cloned();
        let span = (lease.is_some() && !running.is_marked).then_some(running.began_ns);
        running.is_marked |= lease.is_some();
        let granted = lease.iter().map(|lease| (index, lease.address));
        self.leases6.granted.extend(granted);
        for outcome in outcomes {
            match (outcome, &lease) {
                (Outcome::Lost(address), _) => self.take_away(netdev, index, address).await,
                // A renewal is no news.
                (Outcome::Bound, Some(lease)) if span.is_some() => say(netdev, lease),
                (Outcome::Bound, _) => {}
            }
        }
        if let Some(start_ns) = span {
            self.marks.push(Mark {
                phase: Phase::Lease6,
                object: netdev.ifname.clone(),
                start_ns,
                end_ns: Some(boottime_ns()),
            });
        }
        lease
    }

    async fn take_away(&mut self, netdev: &Netdev, index: u32, address: Ipv6Addr) {
        if let Err(why) = self
            .net
            .delete_address(index, IpAddr::V6(address), None)
            .await
        {
            let what = format!("{address} cannot be taken away");
            self.tell_once(&netdev.ifname, &Error::new(&netdev.ifname, what).seen(why));
        }
    }

    /// An interface whose link-local address is another one than before (its device was reset), or
    /// that lost its carrier without a lease, begins anew when it is back.
    fn begin6(&mut self, dhcp: &Wish, netdev: &Netdev, index: u32, speaker: &Speaker) {
        let carrier = netdev.carrier == Some(true);
        let local = netdev.link_local();
        match self.leases6.running.get(&index) {
            Some(running) if local.is_none_or(|local| local == running.session.local()) => {
                if running.session.lease().is_some() || (carrier && local.is_some()) {
                    return;
                }
                self.leases6.running.remove(&index);
            }
            Some(_) => {
                self.leases6.running.remove(&index);
            }
            None => {}
        }
        let Some(local) = local.filter(|_| carrier && *speaker != Speaker::Awaited) else {
            return;
        };
        // Both ask from the same port.
        self.inquiries.give_way(index);
        match self.open6(dhcp, netdev, local, speaker) {
            Ok(Some(session)) => {
                let tries = Tries::begin(dhcp.limit_s, dhcp.tries);
                let running = Running::new(dhcp.clone(), session, tries);
                self.leases6.kept.remove(&index);
                self.leases6.running.insert(index, running);
            }
            Ok(None) => {}
            Err(error) => self.tell_once(&netdev.ifname, &error),
        }
    }

    /// The session; none: another process has the port, and keeps the lease of an earlier run.
    fn open6(
        &mut self,
        dhcp: &Wish,
        netdev: &Netdev,
        local: Ipv6Addr,
        speaker: &Speaker,
    ) -> Result<Option<Session>, Error> {
        let name = &netdev.ifname;
        let hardware = Hardware::read(self.root, name)
            .map_err(|e| Error::io(name, "DHCPv6: hardware address cannot be read", &e))?;
        let identity = identity(name, &hardware, speaker, &dhcp.client_id)?;
        let duid = Hex(&identity.duid).to_string();
        let iaid = identity.iaid;
        let known = self.leases6.known.iter().find(|known| {
            let is_same = known.duid == duid && known.iaid == iaid;
            known.index == hardware.index && is_same
        });
        let known = known.and_then(|known| known.lease.clone());
        let config = Config {
            identity,
            keep: dhcp.keep,
        };
        let mut session = match Session::open(name, hardware.index, local, config) {
            Err(Closed::InUse(_)) if self.leases6.keep(netdev, hardware.index, &duid) => {
                return Ok(None);
            }
            opened => opened?,
        };
        let begins = format!("DHCPv6: begins, DUID {duid}, IAID {iaid}");
        // Not at every flap of the port.
        if self.interfaces.is_first_time(name, &begins) {
            log::info!("{name}: {begins}");
        }
        match known {
            // Still on the interface, from an earlier run.
            Some(lease) if netdev.shown6(lease.address).is_some() => {
                session.resume(lease);
            }
            _ => session.start(known.map(|lease| lease.address)),
        }
        Ok(Some(session))
    }
}

/// Who asks on this interface.
pub(super) fn identity(
    name: &str,
    hardware: &Hardware,
    speaker: &Speaker,
    client_id: &WantedId,
) -> Result<Identity, Error> {
    let kind = hardware.hardware_type;
    let speaks = speaker.address(&hardware.address);
    let identity =
        speaks.and_then(|speaks| Identity::new(kind, speaks, &hardware.broadcast, client_id));
    identity.ok_or_else(|| {
        Error::new(name, "DHCPv6: not on this hardware")
            .seen(format!("ARP hardware type {kind}"))
            .wanted("InfiniBand or Ethernet")
    })
}

fn say(netdev: &Netdev, lease: &Lease) {
    let name = &netdev.ifname;
    let (address, length) = (lease.address_text(), lease.length());
    log::info!("{name}: DHCPv6: {address} of {}, {length}", lease.server);
    for left_out in &lease.left_out {
        log::warn!("{name}: DHCPv6: not taken: {left_out}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FoundAddress;

    fn found(text: &str, state: AddressState) -> FoundAddress {
        let address = text.parse().unwrap();
        FoundAddress { address, state }
    }

    #[test]
    fn a_lease_that_another_process_keeps_stands_while_its_address_does() {
        let lease = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
            "asked_ns":0,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
        let known = Progress {
            interface: "old".to_owned(),
            index: 4,
            duid: "00:03:00:20".to_owned(),
            lease: Some(serde_json::from_str(lease).unwrap()),
            ..Progress::default()
        };
        let mut netdev = Netdev {
            ifname: "ib0".to_owned(),
            addresses: vec![found("fd00::5/128", AddressState::Usable)],
            ..Netdev::default()
        };
        let mut leases = Leases::new(vec![known.clone()]);
        assert_eq!(leases.seen(), []);
        assert!(!leases.keep(&netdev, 4, "00:03:00:21"));
        assert!(!leases.keep(&netdev, 5, &known.duid));
        assert!(leases.keep(&netdev, 4, &known.duid));
        let now = Progress {
            interface: "ib0".to_owned(),
            ..known.clone()
        };
        assert_eq!(leases.seen(), [now]);
        netdev.addresses.clear();
        assert!(!leases.keep(&netdev, 4, &known.duid));
        assert_eq!(leases.seen(), []);
    }

    #[test]
    fn the_address_that_a_lease_gave_is_no_routers() {
        let known = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
            "asked_ns":0,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
        let known = Progress {
            index: 4,
            lease: Some(serde_json::from_str(known).unwrap()),
            ..Progress::default()
        };
        let mut leases = Leases::new(vec![known]);
        leases.granted.insert((4, "fd00::6".parse().unwrap()));
        let netdev = |usable: &[&str], tentative: &[&str]| {
            let usable = usable.iter().map(|text| found(text, AddressState::Usable));
            let tentative = tentative.iter();
            let tentative = tentative.map(|text| found(text, AddressState::Tentative));
            Netdev {
                ifindex: Some(4),
                addresses: usable.chain(tentative).collect(),
                ..Netdev::default()
            }
        };
        // An earlier run's, and one that is withdrawn and still there.
        let left = netdev(&["fe80::5/64", "fd00::5/128"], &["fd00::6/128"]);
        assert!(!leases.has_router_address(&left, 4));
        assert!(leases.has_router_address(&left, 5));
        assert!(leases.has_router_address(&netdev(&["fd00::5/64"], &[]), 4));
        assert!(leases.has_router_address(&netdev(&[], &["fd00::7/128"]), 4));
        leases.follow(&Facts::default());
        assert!(leases.has_router_address(&left, 4));
    }
}
