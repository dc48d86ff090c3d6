// SPDX-License-Identifier: MIT OR Apache-2.0
//! Name servers of DHCPv6 where the address is a router's: asked for when a router says that there
//! are some, beside the boot. Nothing waits for them; they are written down when they come.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::time::Instant;

use super::Walk;
use super::dhcp6::identity;
use super::speaker::Speaker;
use crate::dhcp::hardware::Hardware;
use crate::dhcp::v6::information::{Progress, Stage, Wish};
use crate::dhcp::v6::inquiry::Inquiry;
use crate::error::Error;
use crate::facts::{Facts, Netdev};
use crate::request::in_initramfs;
use crate::system::clock::boottime_ns;
use crate::wish::ipoib;

/// The questions, by interface index.
#[derive(Debug, Default)]
pub struct Inquiries(BTreeMap<u32, Inquiry>);

impl Inquiries {
    /// When [`Walk::ask_information`] has something to do without an event.
    pub fn due(&self) -> Option<Instant> {
        let due = self.0.values().filter_map(Inquiry::due).min()?;
        Some(Instant::now() + Duration::from_nanos(due.saturating_sub(boottime_ns())))
    }

    /// Those of interfaces that are gone are given up: nothing moves them any more.
    pub(super) fn follow(&mut self, facts: &Facts) {
        let is_there = |index: &u32| facts.netdevs.iter().any(|n| n.ifindex == Some(*index));
        self.0.retain(|index, _| is_there(index));
    }

    /// Waits until there is an answer.
    pub async fn changed(&mut self) {
        let open = self.0.values_mut().filter(|one| one.answer().is_none());
        let waiting: Vec<_> = open.map(|one| one.changed().boxed_local()).collect();
        if waiting.is_empty() {
            return std::future::pending().await;
        }
        select_all(waiting).await;
    }

    /// An answer may still come.
    pub fn is_open(&self) -> bool {
        self.stages().contains(&Stage::Open)
    }

    /// Nothing is awaited any longer.
    pub fn end(&mut self) {
        self.0.values_mut().for_each(Inquiry::end);
    }

    /// The port of the interface is needed for a lease. What was answered stays answered.
    pub(super) fn give_way(&mut self, index: u32) {
        match self.0.get_mut(&index) {
            Some(inquiry) if inquiry.answer().is_some() => inquiry.close(),
            _ => _ = self.0.remove(&index),
        }
    }

    /// How far each of them came.
    pub fn seen(&self) -> Vec<Progress> {
        self.0.values().map(Inquiry::progress).collect()
    }

    /// The same in short: what is news when it changes.
    pub fn stages(&self) -> Vec<Stage> {
        self.0.values().map(Inquiry::stage).collect()
    }
}

impl Walk<'_> {
    /// Name servers may still come.
    pub(super) fn is_asking(&self) -> bool {
        self.inquiries.is_open() || (in_initramfs(self.root) && self.leases6.is_open())
    }

    /// Nothing is awaited any longer: says of what, once.
    pub(super) fn end_asking(&mut self) {
        self.inquiries.end();
        self.leases6.end();
    }

    /// The question of an interface that is up: begun where a router says that there is something,
    /// repeated where its time has come. Only an initramfs has files for the answer.
    pub(super) async fn ask_information(
        &mut self,
        wish: &ipoib::Wish,
        netdev: &Netdev,
        index: u32,
        speaker: &Speaker,
    ) {
        let wanted = wish.information().filter(|_| in_initramfs(self.root));
        let Some(wanted) = wanted.filter(|_| !self.leases6.is_asking(index)) else {
            return;
        };
        let local = netdev.link_local();
        let is_other = |inquiry: &Inquiry| local.is_some_and(|local| local != inquiry.local());
        if self.inquiries.0.get(&index).is_some_and(is_other) {
            self.inquiries.0.remove(&index);
        }
        if let Some(inquiry) = self.inquiries.0.get_mut(&index) {
            inquiry.rename(&netdev.ifname);
            inquiry.wake();
            return;
        }
        // A lease, where one may still be asked for, brings its own.
        let is_enough = wish.dhcp6.is_none() || self.leases6.has_router_address(netdev, index);
        let is_ready = is_enough && netdev.carrier == Some(true) && *speaker != Speaker::Awaited;
        let Some(local) = local.filter(|_| is_ready) else {
            return;
        };
        if !self.net.router(index).await.has_information() {
            return;
        }
        match self.inquire(wanted, netdev, local, speaker) {
            Ok(inquiry) => {
                self.inquiries.0.insert(index, inquiry);
            }
            Err(error) => self.tell_once(&netdev.ifname, &error),
        }
    }

    fn inquire(
        &mut self,
        wanted: &Wish,
        netdev: &Netdev,
        local: Ipv6Addr,
        speaker: &Speaker,
    ) -> Result<Inquiry, Error> {
        let name = &netdev.ifname;
        let hardware = Hardware::read(self.root, name)
            .map_err(|e| Error::io(name, "DHCPv6: hardware address cannot be read", &e))?;
        let identity = identity(name, &hardware, speaker, &wanted.client_id)?;
        let asks = "DHCPv6: name servers are asked for, as the router says";
        // Not at every flap of the port.
        if self.interfaces.is_first_time(name, asks) {
            log::info!("{name}: {asks}");
        }
        Ok(Inquiry::open(name, hardware.index, local, identity.duid)?)
    }
}
