// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCP on the interfaces that want it: a client begins when there is carrier, and what it is
//! granted becomes part of what is wanted of the interface.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::time::Instant;

use super::Walk;
use super::speaker::Speaker;
use super::tries::{self, Asks, Tries};
use crate::dhcp::hardware::Hardware;
use crate::dhcp::v4::Wish;
use crate::dhcp::v4::client::Config;
use crate::dhcp::v4::identity::Identity;
use crate::dhcp::v4::progress::Progress;
use crate::dhcp::v4::session::{Outcome, Session};
use crate::error::Error;
use crate::facts::{AddressState, Facts, Netdev};
use crate::handover::{Mark, Phase};
use crate::hardware::{HardwareAddress, Hex};
use crate::system::clock::boottime_ns;

/// The clients, by interface index.
#[derive(Debug, Default)]
pub struct Leases {
    running: BTreeMap<u32, Running>,
    /// Addresses of earlier runs of this boot: asked for first.
    known: Vec<Progress>,
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
    fn say_lease(&self, interface: &str) {
        let Some(lease) = self.session.lease() else {
            return;
        };
        log::info!(
            "{interface}: DHCP: {} of {}, {}",
            lease.address_text(),
            lease.server,
            lease.length()
        );
        for left_out in &lease.left_out {
            log::warn!("{interface}: DHCP: not taken: {left_out}");
        }
    }

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
        Leases {
            running: BTreeMap::new(),
            known,
        }
    }

    /// When [`Walk::lease`] has something to do without an event.
    pub fn due(&self) -> Option<Instant> {
        self.running.values().filter_map(Running::due).min()
    }

    /// Clients of interfaces that are gone are given up: nothing moves them any more.
    pub(super) fn follow(&mut self, facts: &Facts) {
        let is_there = |index: &u32| facts.netdevs.iter().any(|n| n.ifindex == Some(*index));
        self.running.retain(|index, _| is_there(index));
    }

    /// Waits until the link moved a client.
    pub async fn changed(&mut self) {
        let going = self
            .running
            .values_mut()
            .filter(|running| !running.tries.gave_up());
        let waiting: Vec<_> = going
            .map(|running| running.session.changed().boxed_local())
            .collect();
        if waiting.is_empty() {
            return std::future::pending().await;
        }
        select_all(waiting).await;
    }

    /// A client has something for its interface: a lease, or the end of one.
    pub fn has_news(&self) -> bool {
        let mut all = self.running.values();
        all.any(|running| running.session.has_outcomes())
    }

    /// An address is in use of which it is not known yet whether somebody else has it.
    pub fn is_probing(&self) -> bool {
        let mut all = self.running.values();
        all.any(|running| running.session.is_probing())
    }

    /// How far each of them came.
    pub fn seen(&self) -> Vec<Progress> {
        self.running.values().map(Running::progress).collect()
    }
}

impl Walk<'_> {
    /// The client of an interface that is up: begun where there is carrier, moved on where its time
    /// has come. Gives what is wanted of the interface with what was granted.
    pub(super) async fn lease(
        &mut self,
        wish: &crate::wish::ipoib::Wish,
        netdev: &Netdev,
        index: u32,
        speaker: &Speaker,
    ) -> crate::wish::ipoib::Wish {
        let Some(dhcp) = &wish.dhcp else {
            return wish.clone();
        };
        let dhcp = Wish {
            ignore_mtu: wish.mtu.is_some(),
            ..dhcp.clone()
        };
        self.begin(&dhcp, netdev, index, speaker);
        let Some(running) = self.leases.running.get_mut(&index) else {
            return wish.clone();
        };
        running.session.rename(&netdev.ifname);
        // Of a bond it changes with a failover.
        if let Some(address) = &netdev.address {
            running.session.set_address(address.bytes().to_vec());
        }
        running.go_on();
        for outcome in running.session.outcomes() {
            match outcome {
                // A renewal is no news.
                Outcome::Bound if !running.is_marked => running.say_lease(&netdev.ifname),
                Outcome::Bound => {}
                Outcome::Unopposed => {}
                Outcome::Lost(address) => {
                    running.is_marked = false;
                    self.interfaces.forget_tried(index);
                    running.tries.prolong();
                    if let Err(why) = self.net.delete_address(index, address.into(), None).await {
                        let what = format!("{address} cannot be taken away");
                        log::error!("{}", Error::new(&netdev.ifname, what).seen(why));
                    }
                }
            }
        }
        let Some(lease) = running.session.lease().cloned() else {
            return wish.clone();
        };
        if !running.is_marked {
            running.is_marked = true;
            self.marks.push(Mark {
                phase: Phase::Lease,
                object: netdev.ifname.clone(),
                start_ns: running.began_ns,
                end_ns: Some(boottime_ns()),
            });
        }
        wish.granted(&lease)
    }

    /// An interface without carrier, or with another address than before (its device was reset),
    /// begins anew when it is back; a lease stays. A bond's other address is no other client.
    fn begin(&mut self, dhcp: &Wish, netdev: &Netdev, index: u32, speaker: &Speaker) {
        let address = netdev.address.as_ref().map(HardwareAddress::bytes);
        let carrier = netdev.carrier == Some(true);
        let is_same = |running: &Running| {
            *speaker != Speaker::Own
                || Some(running.session.hardware().address.as_slice()) == address
        };
        match self.leases.running.get(&index) {
            Some(running) if is_same(running) && (carrier || running.session.lease().is_some()) => {
                return;
            }
            Some(_) => {
                self.leases.running.remove(&index);
            }
            None => {}
        }
        if !carrier || *speaker == Speaker::Awaited {
            return;
        }
        match self.open(dhcp, netdev, speaker) {
            Ok(session) => {
                let tries = Tries::begin(dhcp.limit_s, dhcp.tries);
                let running = Running::new(dhcp.clone(), session, tries);
                self.leases.running.insert(index, running);
            }
            Err(error) => self.tell_once(&netdev.ifname, &error),
        }
    }

    fn open(&mut self, dhcp: &Wish, netdev: &Netdev, speaker: &Speaker) -> Result<Session, Error> {
        let name = &netdev.ifname;
        let hardware = Hardware::read(self.root, name)
            .map_err(|e| Error::io(name, "DHCP: hardware address cannot be read", &e))?;
        let speaks = speaker.address(&hardware.address);
        let identity = speaks
            .and_then(|speaks| Identity::new(hardware.hardware_type, speaks, &dhcp.client_id));
        let identity = identity.ok_or_else(|| {
            Error::new(name, "DHCP: not on this hardware")
                .seen(format!("ARP hardware type {}", hardware.hardware_type))
                .wanted("InfiniBand or Ethernet")
        })?;
        let begins = format!(
            "DHCP: begins, client identifier {}",
            Hex(&identity.client_id)
        );
        // Not at every flap of the port.
        if self.interfaces.is_first_time(name, &begins) {
            log::info!("{name}: {begins}");
        }
        let known = self.leases.known.iter().find(|known| {
            known.index == hardware.index && known.client_id == Hex(&identity.client_id).to_string()
        });
        let probe = known.is_some_and(Progress::is_probing);
        let known = known.and_then(|known| known.lease.as_ref());
        let address = known.map(|lease| lease.address);
        let config = Config {
            identity: Identity {
                hardware: hardware.address.clone(),
                ..identity
            },
            vendor_class: dhcp.vendor_class.clone(),
            host_name: dhcp.host_name.clone(),
            keep: dhcp.keep,
        };
        let mut session = Session::open(name, hardware, config)?;
        match known {
            // Still on the interface, from an earlier run. A root path with a password has to be asked
            // for again: state.json does not keep it, and dracut needs it.
            Some(lease)
                if netdev.state_of(&lease.interface_address()) == Some(AddressState::Usable)
                    && !lease.is_redacted() =>
            {
                session.resume(lease.clone(), probe);
            }
            _ => session.start(address),
        }
        Ok(session)
    }

    /// Tells the neighbours of the addresses that were set just now; of one that is asked for on the
    /// link the client does so itself.
    pub(super) fn announce(&self, index: u32) {
        if let Some(running) = self.leases.running.get(&index)
            && let Some(lease) = running.session.lease()
            && !running.session.is_probing()
        {
            running.session.announce(lease.address);
        }
    }
}
