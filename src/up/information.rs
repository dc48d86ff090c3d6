// SPDX-License-Identifier: MIT OR Apache-2.0
//! Name servers of DHCPv6 where the address is a router's: asked for when a router says that there
//! are some, beside the boot. Nothing waits for them; they are written down when they come.

use std::net::Ipv6Addr;

use tokio::time::Instant;

use super::clients::{Client, Clients, Means, Site};
use super::dhcp6::{Leases, identity6};
use super::speaker::Speaker;
use super::tries::Tries;
use crate::dhcp::v6::information::{InformationWish, Progress, Stage};
use crate::dhcp::v6::inquiry::Inquiry;
use crate::error::Error;

/// The questions. Only an initramfs has files for the answers.
#[derive(Debug)]
pub struct Inquiries {
    pub clients: Clients<Inquiry>,
    is_boot: bool,
}

impl Client for Inquiry {
    type Wish = ();
    type Progress = Progress;

    fn wake(&mut self) {
        Inquiry::wake(self);
    }

    /// A question has one try, without an end.
    fn start_anew(&mut self) {}

    fn is_answered(&self) -> bool {
        self.answer().is_some()
    }

    fn due(&self) -> Option<u64> {
        Inquiry::due(self)
    }

    async fn changed(&mut self) {
        if self.is_answered() {
            return std::future::pending().await;
        }
        Inquiry::changed(self).await;
    }

    fn progress(&self, (): &(), _gave_up: bool) -> Progress {
        Inquiry::progress(self)
    }

    /// An answer may still come.
    fn is_open(&self) -> bool {
        self.stage() == Stage::Open
    }

    fn end(&mut self) {
        Inquiry::end(self);
    }
}

impl Inquiries {
    pub fn new(is_boot: bool) -> Inquiries {
        Inquiries {
            clients: Clients::default(),
            is_boot,
        }
    }

    /// The port of the interface is needed for a lease. What was answered stays answered.
    pub fn give_way(&mut self, index: u32) {
        match self.clients.get_mut(index) {
            Some(inquiry) if inquiry.client.is_answered() => inquiry.client.close(),
            _ => self.clients.remove(index),
        }
    }

    /// How far each question is.
    pub fn stages(&self) -> Vec<Stage> {
        let clients = self.clients.all();
        clients.map(|(_, one)| one.client.stage()).collect()
    }

    /// The question of an interface: begun where a router says that there is something, repeated where
    /// its time has come.
    pub async fn step(&mut self, site: &Site<'_>, means: &mut Means<'_>, leases: &Leases) {
        let wish = site.wish.information().filter(|_| self.is_boot);
        let Some(wish) = wish.filter(|_| !leases.is_asking(site.index)) else {
            return;
        };
        let local = site.netdev.link_local();
        let is_other = |inquiry: &Inquiry| local.is_some_and(|local| local != inquiry.local());
        let running = self.clients.get(site.index);
        if running.is_some_and(|running| is_other(&running.client)) {
            self.clients.remove(site.index);
        }
        if let Some(running) = self.clients.get_mut(site.index) {
            running.client.rename(&site.netdev.ifname);
            running.go_on(Instant::now());
            return;
        }
        let has_address = leases.has_router_address(site.netdev, site.index);
        let Some(local) = asks_from(site, has_address) else {
            return;
        };
        if !means.net.router(site.index).await.has_information() {
            return;
        }
        match open(wish, site, local, means) {
            Ok(inquiry) => {
                let tries = Tries::begin(None, 1, Instant::now());
                self.clients.begin(site.index, (), inquiry, tries);
            }
            Err(error) => means.journal.tell_once(&site.netdev.ifname, &error),
        }
    }
}

/// The address to ask from; none: it is not time to ask. A lease, where one may still be asked for,
/// brings its own name servers.
fn asks_from(site: &Site<'_>, has_router_address: bool) -> Option<Ipv6Addr> {
    let is_enough = site.wish.dhcp6.is_none() || has_router_address;
    let has_carrier = site.netdev.carrier == Some(true);
    let is_ready = is_enough && has_carrier && *site.speaker != Speaker::Awaited;
    site.netdev.link_local().filter(|_| is_ready)
}

fn open(
    wish: &InformationWish,
    site: &Site<'_>,
    local: Ipv6Addr,
    means: &mut Means<'_>,
) -> Result<Inquiry, Error> {
    let name = &site.netdev.ifname;
    let (index, identity) = identity6(site, means.root, &wish.client_id)?;
    let asks = "DHCPv6: name servers are asked for, as the router says";
    // Not at every flap of the port.
    if means.journal.is_first_time(name, asks) {
        log::info!("{name}: {asks}");
    }
    Ok(Inquiry::open(name, index, local, identity.duid)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp::v6::Dhcp6Wish;
    use crate::wish::ipoib::IpoibWish;

    use crate::facts::Netdev;

    #[test]
    fn name_servers_are_asked_for_where_no_lease_brings_them() {
        let netdev = |addresses: &[&str], carrier| Netdev {
            carrier: Some(carrier),
            addresses: addresses
                .iter()
                .map(|text| text.parse::<crate::inet::Address>().unwrap().into())
                .collect(),
            ..Netdev::default()
        };
        let alone = IpoibWish::default();
        let beside = IpoibWish {
            dhcp6: Some(Dhcp6Wish::default()),
            ..IpoibWish::default()
        };
        let local = ["fe80::5/64"];
        let here = "fe80::5".parse().ok();
        let asks = |wish, netdev: &Netdev, speaker, has_address| {
            let site = Site {
                wish,
                netdev,
                index: 4,
                speaker,
            };
            asks_from(&site, has_address)
        };
        let lit = netdev(&local, true);
        assert_eq!(asks(&alone, &lit, &Speaker::Own, false), here);
        assert_eq!(asks(&alone, &lit, &Speaker::Awaited, false), None);
        assert_eq!(
            asks(&alone, &netdev(&local, false), &Speaker::Own, false),
            None
        );
        assert_eq!(
            asks(&alone, &netdev(&["fd00::5/64"], true), &Speaker::Own, true),
            None
        );
        assert_eq!(asks(&beside, &lit, &Speaker::Own, false), None);
        assert_eq!(asks(&beside, &lit, &Speaker::Own, true), here);
    }
}
