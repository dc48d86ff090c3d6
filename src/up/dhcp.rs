// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DHCP clients. The client of an interface begins when the interface can transmit.

use tokio::time::Instant;

use super::clients::{Client, Clients, Lessee, Means, News, Site, identity};
use super::speaker::Speaker;
use super::tries::Tries;
use crate::dhcp::v4::Dhcp4Wish;
use crate::dhcp::v4::client::Config;
use crate::dhcp::v4::identity::Identity;
use crate::dhcp::v4::lease::Lease;
use crate::dhcp::v4::progress::Progress;
use crate::dhcp::v4::session::{Outcome, Session};
use crate::error::Error;
use crate::facts::{AddressState, Netdev};
use crate::handover::Phase;
use crate::hardware::{HardwareAddress, Hex};

/// The clients, and the leases of earlier runs.
#[derive(Debug)]
pub struct Leases {
    pub clients: Clients<Session>,
    /// Earlier runs of this boot: their addresses are requested first.
    known: Vec<Progress>,
}

impl Client for Session {
    type Wish = Dhcp4Wish;
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

    fn progress(&self, wish: &Dhcp4Wish, gave_up: bool) -> Progress {
        Progress {
            wish: wish.clone(),
            gave_up,
            ..Session::progress(self)
        }
    }

    fn has_news(&self) -> bool {
        self.has_outcomes()
    }

    /// True while the probes for other hosts with the address are not over.
    fn is_open(&self) -> bool {
        self.is_probing()
    }
}

impl Lessee for Session {
    const PROTOCOL: &'static str = "DHCP";
    const PHASE: Phase = Phase::Lease;

    fn news(&mut self) -> News {
        let mut news = News::default();
        for outcome in self.outcomes() {
            match outcome {
                Outcome::Bound => news.is_bound = true,
                Outcome::Unopposed => {}
                Outcome::Lost(address) => news.lost.push(address.into()),
            }
        }
        news
    }

    fn granted(&self) -> Option<(String, &[String])> {
        let lease = self.lease()?;
        let (address, length) = (lease.address_text(), lease.length());
        let text = format!("{address} of {}, {length}", lease.server);
        Some((text, &lease.left_out))
    }
}

impl Leases {
    /// Begins with the leases of earlier runs of this boot.
    pub fn new(known: Vec<Progress>) -> Leases {
        Leases {
            clients: Clients::default(),
            known,
        }
    }

    /// Begins the client of an interface that can transmit, and lets the client do what is due.
    /// True: an address was lost.
    pub async fn step(&mut self, site: &Site<'_>, means: &mut Means<'_>) -> bool {
        let Some(dhcp) = &site.wish.dhcp else {
            return false;
        };
        let dhcp = Dhcp4Wish {
            ignore_mtu: site.wish.mtu.is_some(),
            ..dhcp.clone()
        };
        self.begin(dhcp, site, means);
        let Some(running) = self.clients.get_mut(site.index) else {
            return false;
        };
        running.client.rename(&site.netdev.ifname);
        // The hardware address of a bond changes at a failover.
        if let Some(address) = &site.netdev.address {
            running.client.set_address(address.bytes().to_vec());
        }
        running.go_on(Instant::now());
        self.clients.settle(site, means).await
    }

    fn begin(&mut self, dhcp: Dhcp4Wish, site: &Site<'_>, means: &mut Means<'_>) {
        let has_room = self.clients.has_room(site.index, |client| {
            let address = &client.hardware().address;
            stays(address, client.is_answered(), site.netdev, site.speaker)
        });
        let can_send = site.netdev.can_transmit() && *site.speaker != Speaker::Awaited;
        if !has_room || !can_send {
            return;
        }
        match self.open(&dhcp, site, means) {
            Ok(session) => {
                let tries = Tries::begin(dhcp.limit_s, dhcp.tries, Instant::now());
                self.clients.begin(site.index, dhcp, session, tries);
            }
            Err(error) => means.journal.tell_once(&site.netdev.ifname, &error),
        }
    }

    fn open(
        &self,
        dhcp: &Dhcp4Wish,
        site: &Site<'_>,
        means: &mut Means<'_>,
    ) -> Result<Session, Error> {
        let name = &site.netdev.ifname;
        let (hardware, identity) = identity("DHCP", site, means.root, |hardware, speaks| {
            let kind = hardware.hardware_type;
            let identity = Identity::new(kind, speaks, &dhcp.client_id)?;
            Some(Identity {
                hardware: hardware.address.clone(),
                ..identity
            })
        })?;
        let client_id = Hex(&identity.client_id).to_string();
        let begins = format!("DHCP: begins, client identifier {client_id}");
        // Logged once, not at every flap of the port.
        if means.journal.is_first_time(name, &begins) {
            log::info!("{name}: {begins}");
        }
        let earlier = self.known.iter().find(|one| one.index == hardware.index);
        let is_same = |one: &&Progress| one.client_id == client_id && one.wish.sends_same(dhcp);
        let known = earlier.filter(is_same);
        let probe = known.is_some_and(Progress::is_probing);
        let known = known.and_then(|known| known.lease.as_ref());
        let config = Config {
            identity,
            vendor_class: dhcp.vendor_class.clone(),
            host_name: dhcp.host_name.clone(),
            keep: dhcp.keep,
        };
        let mut session = Session::open(name, hardware, config)?;
        let is_usable = |lease: &Lease| {
            let state = site.netdev.state_of(&lease.interface_address());
            state == Some(AddressState::Usable)
        };
        match known {
            // The address of an earlier run is still on the interface. A root path with a password
            // must be requested again: dracut needs the path, and state.json does not have it.
            Some(lease) if is_usable(lease) && !lease.is_redacted() => {
                session.resume(lease.clone(), probe);
            }
            _ => session.start(known.map(|lease| lease.address)),
        }
        let other = earlier.filter(|one| !is_same(one));
        if let Some(lease) = other.and_then(|one| one.lease.as_ref())
            && site.netdev.state_of(&lease.interface_address()).is_some()
        {
            session.disown(lease.address);
        }
        Ok(session)
    }

    /// Announces the leased address after it was set. While the client probes the address, the
    /// client announces it.
    pub fn announce(&self, index: u32) {
        if let Some(running) = self.clients.get(index)
            && let Some(lease) = running.client.lease()
            && !running.client.is_probing()
        {
            running.client.announce(lease.address);
        }
    }
}

/// True: the client continues. The client ends when the hardware address becomes another one (the
/// device was reset); the address of a bond may change. A client without a lease also ends when the
/// carrier goes. A new client begins with the carrier.
fn stays(sends_from: &[u8], has_lease: bool, netdev: &Netdev, speaker: &Speaker) -> bool {
    let address = netdev.address.as_ref().map(HardwareAddress::bytes);
    let is_same = *speaker != Speaker::Own || Some(sends_from) == address;
    is_same && (has_lease || netdev.carrier == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_ends_with_another_hardware_address_or_without_carrier_and_lease() {
        let netdev = |address: &str, carrier: bool| Netdev {
            address: Some(address.parse().unwrap()),
            carrier: Some(carrier),
            ..Netdev::default()
        };
        let (own, slave) = (Speaker::Own, Speaker::Slave(vec![0x80, 9]));
        let here = [0x80, 1];
        for (address, carrier, has_lease, speaker, expected) in [
            ("80:01", true, false, &own, true),
            ("80:01", false, true, &own, true),
            ("80:01", false, false, &own, false),
            ("80:02", true, true, &own, false),
            ("80:02", true, false, &slave, true),
            ("80:02", false, true, &slave, true),
            ("80:02", false, false, &slave, false),
            ("80:02", true, false, &Speaker::Awaited, true),
        ] {
            let netdev = netdev(address, carrier);
            let text = format!("{address} {carrier} {has_lease} {speaker:?}");
            assert_eq!(
                stays(&here, has_lease, &netdev, speaker),
                expected,
                "{text}"
            );
        }
    }
}
