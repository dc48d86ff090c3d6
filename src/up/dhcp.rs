// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DHCP clients. The client of an interface begins when the interface can transmit.

use std::net::Ipv4Addr;

use tokio::time::Instant;

use super::clients::{Client, Clients, Lessee, Means, Site, identity};
use super::speaker::Speaker;
use super::tries::Tries;
use crate::dhcp::Outcome;
use crate::dhcp::v4::Dhcp4Wish;
use crate::dhcp::v4::client::Config;
use crate::dhcp::v4::identity::Identity;
use crate::dhcp::v4::lease::Lease;
use crate::dhcp::v4::progress::Progress;
use crate::dhcp::v4::session::Session;
use crate::error::Error;
use crate::facts::{AddressState, Netdev};
use crate::handover::Phase;
use crate::hardware::{HardwareAddress, Hex};

/// The clients, and the leases of earlier runs.
#[derive(Debug)]
pub struct Clients4 {
    pub clients: Clients<Session>,
    /// The leases of earlier runs of this boot, or of the walk before.
    known: Vec<Progress>,
    /// `known` has the leases of the walk before, whose request was another one ([`former`]).
    is_anew: bool,
}

/// What a new client does with the lease that was on its interface.
#[derive(Debug, PartialEq)]
enum Former<'a> {
    /// There is no lease, or the lease is of another client.
    Nothing,
    /// Continues with the lease.
    Resumed(&'a Lease),
    /// Requests the address first.
    Requested(Ipv4Addr),
    /// Removes the address: the lease was granted to another request.
    Disowned(Ipv4Addr),
}

/// What a client that sends `client_id` and the options of `wish` does with the lease of `earlier`.
/// `is_anew`: of the walk before in an initramfs, where nothing uses the address yet. An address is
/// never removed for the request of another run: the root file system may depend on the address.
fn former<'a>(
    earlier: Option<&'a Progress>,
    client_id: &str,
    wish: &Dhcp4Wish,
    netdev: &Netdev,
    is_anew: bool,
) -> Former<'a> {
    let Some((earlier, lease)) = earlier.and_then(|one| Some((one, one.lease.as_ref()?))) else {
        return Former::Nothing;
    };
    let state = netdev.state_of(&lease.interface_address());
    let is_own = earlier.client_id == client_id;
    if is_anew && !(is_own && earlier.wish.sends_same(wish)) {
        return match state {
            Some(_) => Former::Disowned(lease.address),
            None => Former::Nothing,
        };
    }
    // A root path with a password must be requested again: dracut needs the path, and state.json
    // does not have it.
    match (is_own, state) {
        (false, _) => Former::Nothing,
        (true, Some(AddressState::Usable)) if !lease.is_redacted() => Former::Resumed(lease),
        (true, _) => Former::Requested(lease.address),
    }
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

    fn outcomes(&mut self) -> Vec<Outcome> {
        Session::outcomes(self)
    }

    fn granted(&self) -> Option<(String, &[String])> {
        let lease = self.lease()?;
        let (address, length) = (lease.address_text(), lease.length());
        let text = format!("{address} of {}, {length}", lease.server);
        Some((text, &lease.left_out))
    }
}

impl Clients4 {
    /// Begins with the leases of earlier runs of this boot.
    pub fn new(known: Vec<Progress>) -> Clients4 {
        Clients4 {
            clients: Clients::default(),
            known,
            is_anew: false,
        }
    }

    /// Begins with the leases of the walk before.
    pub fn anew(known: Vec<Progress>) -> Clients4 {
        Clients4 {
            is_anew: true,
            ..Clients4::new(known)
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
            boot: site.wish.boot,
            ..dhcp.clone()
        };
        self.begin(dhcp, site, means);
        let Some(running) = self.clients.get_mut(site.index) else {
            return false;
        };
        let netdev = site.netdev;
        let (address, transmits) = (netdev.address.as_ref(), netdev.can_transmit());
        running.client.follow(&netdev.ifname, address, transmits);
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
        &mut self,
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
        let probe = earlier.is_some_and(Progress::is_probing);
        let former = former(earlier, &client_id, dhcp, site.netdev, self.is_anew);
        let config = Config {
            identity,
            vendor_class: dhcp.vendor_class.clone(),
            host_name: dhcp.host_name.clone(),
            keep: dhcp.keep,
            boot_waits: true,
        };
        let mut session = Session::open(name, hardware, config)?;
        match former {
            Former::Nothing => session.start(None),
            Former::Resumed(lease) => session.resume(lease.clone(), probe),
            Former::Requested(address) => session.start(Some(address)),
            Former::Disowned(address) => {
                session.disown(address);
                session.start(None);
                // A server may grant the same address to this request.
                self.known.retain(|one| one.index != site.index);
            }
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
    fn only_the_walk_with_another_request_removes_the_address_of_a_lease() {
        let lease = r#"{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1","requested_ns":0,
            "seconds":60,"renew_s":30,"rebind_s":50}"#;
        let earlier = Progress {
            client_id: "01".to_owned(),
            lease: Some(serde_json::from_str(lease).unwrap()),
            ..Progress::default()
        };
        let lease = earlier.lease.as_ref().unwrap();
        let address = lease.address;
        let (same, other) = (Dhcp4Wish::default(), |edit: fn(&mut Dhcp4Wish)| {
            let mut wish = Dhcp4Wish::default();
            edit(&mut wish);
            wish
        });
        let class = other(|wish| wish.vendor_class = Some("x".to_owned()));
        let host = other(|wish| wish.host_name = Some("x".to_owned()));
        let time = other(|wish| (wish.limit_s, wish.ignore_mtu) = (Some(9), true));
        let held = Netdev {
            addresses: vec![lease.interface_address().into()],
            ..Netdev::default()
        };
        let bare = Netdev::default();
        for (client_id, wish, netdev, is_anew, expected) in [
            ("01", &same, &held, false, Former::Resumed(lease)),
            ("01", &same, &held, true, Former::Resumed(lease)),
            ("01", &time, &held, true, Former::Resumed(lease)),
            ("01", &same, &bare, false, Former::Requested(address)),
            ("01", &class, &held, true, Former::Disowned(address)),
            ("01", &host, &held, true, Former::Disowned(address)),
            ("02", &same, &held, true, Former::Disowned(address)),
            ("02", &same, &bare, true, Former::Nothing),
            // `ibboot up` by hand, where an argument of the image is missing.
            ("01", &class, &held, false, Former::Resumed(lease)),
            ("02", &same, &held, false, Former::Nothing),
        ] {
            let found = former(Some(&earlier), client_id, wish, netdev, is_anew);
            assert_eq!(found, expected, "{client_id} {wish:?} {is_anew}");
        }
        assert_eq!(former(None, "01", &same, &held, true), Former::Nothing);
        let redacted = Progress {
            lease: Some(Lease {
                root_path: Some("iscsi:user:****@10.0.0.1".to_owned()),
                ..lease.clone()
            }),
            ..earlier.clone()
        };
        let found = former(Some(&redacted), "01", &same, &held, true);
        assert_eq!(found, Former::Requested(address));
    }

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
