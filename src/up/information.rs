// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DHCPv6 inquiries: requests for name servers, on interfaces whose address does not come from
//! DHCPv6. An inquiry begins when a router advertises name servers in DHCPv6. The boot does not
//! wait for the answer; the files are written when the answer arrives.

use std::net::Ipv6Addr;

use tokio::time::Instant;

use super::clients::{Client, Clients, Means, Site};
use super::dhcp6::{Clients6, identity6};
use super::speaker::Speaker;
use super::tries::Tries;
use crate::dhcp::v6::information::{InformationWish, Progress, Stage};
use crate::dhcp::v6::inquiry::Inquiry;
use crate::error::Error;
use crate::inet::Router;

/// The inquiries. They begin only in an initramfs, which has files for the answers.
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

    /// An inquiry has one try, which does not end.
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

    /// An answer may still arrive.
    fn is_open(&self) -> bool {
        self.stage() == Stage::Open
    }

    fn end(&mut self) {
        Inquiry::end(self);
    }
}

impl Inquiries {
    /// No inquiry yet. `is_boot`: the program runs in an initramfs.
    pub fn new(is_boot: bool) -> Inquiries {
        Inquiries {
            clients: Clients::default(),
            is_boot,
        }
    }

    /// Releases the port of the interface, because a client needs the port. An answer is kept.
    pub fn give_way(&mut self, index: u32) {
        match self.clients.get_mut(index) {
            Some(inquiry) if inquiry.client.is_answered() => inquiry.client.close(),
            _ => self.clients.remove(index),
        }
    }

    /// The stage of each inquiry.
    pub fn stages(&self) -> Vec<Stage> {
        let clients = self.clients.all();
        clients.map(|(_, one)| one.client.stage()).collect()
    }

    /// Begins the inquiry of an interface if a router advertises name servers in DHCPv6, and
    /// repeats the inquiry when the repetition is due.
    pub async fn step(&mut self, site: &Site<'_>, means: &mut Means<'_>, clients6: &Clients6) {
        let wish = site.wish.information().filter(|_| self.is_boot);
        let Some(wish) = wish.filter(|_| !clients6.is_asking(site.index)) else {
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
        let has_address = clients6.has_router_address(site);
        let Some(local) = sends_from(site, has_address) else {
            return;
        };
        let router = means.net.router(site.index).await;
        if !router.is_some_and(Router::has_information) {
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

/// The address to send from. None: do not send yet. While a lease may still be granted, no inquiry
/// is sent: the lease has name servers of its own.
fn sends_from(site: &Site<'_>, has_router_address: bool) -> Option<Ipv6Addr> {
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
    let begins = "DHCPv6: requests name servers, as the router advertises";
    // Logged once, not at every flap of the port.
    if means.journal.is_first_time(name, begins) {
        log::info!("{name}: {begins}");
    }
    Ok(Inquiry::open(name, index, local, identity.duid)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp::v6::Dhcp6Wish;
    use crate::facts::Netdev;
    use crate::wish::ipoib::IpoibWish;

    #[test]
    fn name_servers_are_requested_where_no_lease_has_them() {
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
        let source = |wish, netdev: &Netdev, speaker, has_address| {
            let site = Site {
                wish,
                netdev,
                index: 4,
                speaker,
            };
            sends_from(&site, has_address)
        };
        let lit = netdev(&local, true);
        assert_eq!(source(&alone, &lit, &Speaker::Own, false), here);
        assert_eq!(source(&alone, &lit, &Speaker::Awaited, false), None);
        assert_eq!(
            source(&alone, &netdev(&local, false), &Speaker::Own, false),
            None
        );
        assert_eq!(
            source(&alone, &netdev(&["fd00::5/64"], true), &Speaker::Own, true),
            None
        );
        assert_eq!(source(&beside, &lit, &Speaker::Own, false), None);
        assert_eq!(source(&beside, &lit, &Speaker::Own, true), here);
    }
}
