// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client on a real interface: sends the client's messages and passes packets from the link to
//! the client.

use std::net::{Ipv4Addr, UdpSocket};

use tokio::io::unix::AsyncFd;

use super::answer::{Answer, Answers, Heard};
use super::arp::{Arp, Arps};
use super::client::{Action, Client, Config, Destination};
use super::frame;
use super::lease::Lease;
use super::packet::Message;
use super::progress::Progress;
use super::socket::{PacketSocket, Protocol, Received, send_to_server};
use crate::dhcp::hardware::{Hardware, own_addresses};
use crate::dhcp::{Outcome, random, traffic};
use crate::error::{Error, Result, errno_text};
use crate::hardware::{HardwareAddress, Hex};
use crate::system::clock::{SECOND, boottime_ns};
use crate::system::decoder::decode;
use crate::system::readiness::watched;
use crate::system::root::Root;

/// ARP packets about an address that are decoded in a second, except while the address is probed: what
/// they tell is said once in ten seconds.
const ARPS: u32 = 128;
/// How long the list of the machine's own hardware addresses is valid, in ns.
const OWN_FOR: u64 = SECOND;

/// A client with its sockets.
#[derive(Debug)]
pub struct Session {
    interface: String,
    client_id: String,
    client: Client,
    hardware: Hardware,
    packets: AsyncFd<PacketSocket>,
    /// Receives ARP packets about the requested or current address.
    arp: Option<(Ipv4Addr, AsyncFd<PacketSocket>)>,
    arps: Share,
    /// The hardware addresses of this machine, and when they were read, ns since kernel start.
    own: (Vec<Vec<u8>>, u64),
    /// The socket of the last renewal: without a socket the kernel would reject the answer.
    renewal: Option<UdpSocket>,
    /// Why the last send failed.
    broken: Option<String>,
    malformed: u32,
    undecoded: u32,
    outcomes: Vec<Outcome>,
}

impl Session {
    /// Opens the sockets; sends nothing yet. Runs on the current tokio runtime.
    pub fn open(interface: &str, hardware: Hardware, config: Config) -> Result<Session> {
        let packets = PacketSocket::open(Protocol::Dhcp, &hardware)
            .and_then(watched)
            .map_err(|e| Error::io(interface, "DHCP: packet socket cannot be opened", &e))?;
        let seed = random::seed(&hardware.address);
        Ok(Session {
            interface: interface.to_owned(),
            client_id: Hex(&config.identity.client_id).to_string(),
            client: Client::new(config, seed),
            hardware,
            packets,
            arp: None,
            arps: Share::default(),
            own: (Vec::new(), 0),
            renewal: None,
            broken: None,
            malformed: 0,
            undecoded: 0,
            outcomes: Vec::new(),
        })
    }

    /// Starts the client; with `known`, the client first requests the address of an earlier lease.
    pub fn start(&mut self, known: Option<Ipv4Addr>) {
        let actions = self.client.start(boottime_ns(), known);
        self.carry_out(actions);
    }

    /// Continues with a lease whose address is on the interface; with `probe`, checks first whether
    /// another host has the address.
    pub fn resume(&mut self, lease: Lease, probe: bool) {
        let actions = self.client.resume(boottime_ns(), lease, probe);
        self.watch_address();
        self.carry_out(actions);
    }

    /// The address on the interface is from the lease of another request: the address is removed.
    pub fn disown(&mut self, address: Ipv4Addr) {
        log::info!(
            "{}: DHCP: {address} is removed: its lease was for another request",
            self.interface
        );
        self.outcomes.push(Outcome::Lost(address.into()));
    }

    /// Checks with the servers whether the lease is valid on this link.
    pub fn verify(&mut self) {
        let actions = self.client.verify(boottime_ns());
        self.carry_out(actions);
    }

    /// The link has carrier again: repeats the current request soon.
    pub fn hurry(&mut self) {
        self.client.hurry(boottime_ns());
    }

    /// The interface as it was when the sockets were opened, with its current hardware address.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// Takes the name and the hardware address of the interface, and whether its link has carrier and
    /// transmits. Called before [`Session::wake`]. The address of a bond changes at a failover; the client
    /// identifier stays.
    pub fn follow(&mut self, name: &str, address: Option<&HardwareAddress>, has_carrier: bool) {
        name.clone_into(&mut self.interface);
        if let Some(address) = address {
            self.hardware.address = address.bytes().to_vec();
        }
        self.client.set_carrier(boottime_ns(), has_carrier);
    }

    /// When [`Session::wake`] must be called, ns since kernel start.
    pub fn due(&self) -> Option<u64> {
        self.client.due()
    }

    /// The current lease.
    pub fn lease(&self) -> Option<&Lease> {
        self.client.lease()
    }

    /// Does what is due now.
    pub fn wake(&mut self) {
        let actions = self.client.wake(boottime_ns());
        self.carry_out(actions);
    }

    /// Whether [`Session::outcomes`] has any.
    pub fn has_outcomes(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// What happened since the last call.
    pub fn outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// The state for the report.
    pub fn progress(&self) -> Progress {
        let mut counts = self.client.counts().clone();
        counts.malformed = self.malformed;
        counts.undecoded = self.undecoded;
        Progress {
            interface: self.interface.clone(),
            index: self.hardware.index,
            hardware_type: self.hardware.hardware_type,
            client_id: self.client_id.clone(),
            state: self.client.state(),
            counts,
            lease: self.client.lease().cloned(),
            broken: self.broken.clone(),
            ..Progress::default()
        }
    }

    /// True while the probes for other hosts with the address are not over.
    pub fn is_probing(&self) -> bool {
        self.client.is_probing()
    }

    /// Announces the address to the neighbours: a neighbour that knew this node before its reboot
    /// would send to a queue pair that no longer exists. Must not be called while another host may
    /// have the address.
    pub fn announce(&self, address: Ipv4Addr) {
        let hardware = &self.hardware;
        let arp = Arp::announcement(hardware.hardware_type, &hardware.address, address);
        let sent = PacketSocket::open(Protocol::Arp(address), hardware);
        let sent = sent.and_then(|socket| socket.send_arp(&arp));
        if let Err(error) = sent {
            log::debug!("{}: ARP: {}", self.interface, errno_text(&error));
        }
    }

    /// Waits until a packet changes the client: its state, its next time, or the lease.
    pub async fn changed(&mut self) {
        loop {
            let before = (self.client.state(), self.client.due());
            tokio::select! {
                packets = traffic::batch(&self.packets, next) => {
                    for packet in packets {
                        self.received(&packet);
                    }
                }
                arps = arps(self.arp.as_ref()) => {
                    for packet in arps {
                        self.received_arp(&packet);
                    }
                }
            }
            if before != (self.client.state(), self.client.due()) || !self.outcomes.is_empty() {
                return;
            }
            // Lets other tasks run during a flood.
            tokio::task::yield_now().await;
        }
    }

    fn received_arp(&mut self, packet: &Received) {
        if !self.client.is_probing() && !self.arps.take(boottime_ns()) {
            return;
        }
        let actions = match decode::<Arps>(&(), &packet.bytes) {
            None => self.client.deaf_to_arp(boottime_ns()),
            Some(Some(arp)) if !self.is_own(&arp.sender) => self.client.arp(boottime_ns(), &arp),
            Some(_) => return,
        };
        self.carry_out(actions);
    }

    /// Whether an interface of this machine has the address. The list is read at most once a
    /// second, because a flood calls this for every packet.
    fn is_own(&mut self, address: &[u8]) -> bool {
        let now_ns = boottime_ns();
        let is_old = now_ns.saturating_sub(self.own.1) >= OWN_FOR;
        if is_old && !self.own.0.iter().any(|own| own == address) {
            self.own = (own_addresses(&Root::new("/")), now_ns);
        }
        self.own.0.iter().any(|own| own == address)
    }

    fn received(&mut self, packet: &Received) {
        // The decoder is another process: a flood of answers for others must not reach it.
        let xid = frame::transaction(&packet.bytes);
        if xid.is_some_and(|xid| !self.client.admit(xid)) {
            return;
        }
        match decode::<Answers>(&packet.unsummed, &packet.bytes) {
            None => self.undecoded = self.undecoded.saturating_add(1),
            Some(Heard::Foreign) => self.malformed = self.malformed.saturating_add(1),
            Some(Heard::Malformed { from, why }) => {
                self.malformed = self.malformed.saturating_add(1);
                log::debug!("{}: DHCP: from {from}: {why}", self.interface);
            }
            Some(Heard::Answer { to, answer, .. }) if !self.is_to_us(to, &answer) => {
                log::debug!(
                    "{}: DHCP: ignored: sent to {to}, another host",
                    self.interface
                );
            }
            Some(Heard::Answer { from, answer, .. }) => {
                let summary = &answer.summary;
                log::debug!("{}: DHCP: {summary} from {from}", self.interface);
                let actions = self.client.received(boottime_ns(), &answer);
                self.carry_out(actions);
            }
        }
    }

    /// Servers send answers to the broadcast address of the link or of the network, to the address
    /// that they grant, or to the address that the client renews (RFC 2131 4.1).
    fn is_to_us(&self, to: Ipv4Addr, answer: &Answer) -> bool {
        let held = self.client.lease().map(|lease| lease.address);
        to.is_broadcast() || to == answer.yiaddr || [held, answer.broadcast].contains(&Some(to))
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(message, to) => self.send(&message, to),
                Action::Probe(address) => self.probe(address),
                Action::Bound => {
                    self.renewal = None;
                    self.watch_address();
                    self.outcomes.push(Outcome::Bound);
                }
                Action::Unopposed(address) => {
                    self.announce(address);
                    self.outcomes.push(Outcome::Unopposed);
                }
                Action::Defend(address) => self.announce(address),
                Action::Lost(address) => {
                    self.arp = None;
                    self.outcomes.push(Outcome::Lost(address.into()));
                }
                Action::Warn(line) => log::warn!("{}: DHCP: {line}", self.interface),
            }
        }
    }

    fn send(&mut self, message: &Message, to: Destination) {
        let what = format!("{} sent{}", message.summary(), destination(to));
        let bytes = message.encode();
        let sent = match to {
            Destination::Link(from) => {
                self.renewal = None;
                frame::to_servers(from, Ipv4Addr::BROADCAST, &bytes)
                    .ok_or_else(|| std::io::ErrorKind::InvalidInput.into())
                    .and_then(|packet| self.packets.get_ref().broadcast(&packet))
            }
            Destination::Server { from, to } => {
                // The port is free only after the earlier socket is closed.
                self.renewal = None;
                send_to_server(&self.interface, from, to, &bytes)
                    .map(|socket| self.renewal = socket)
            }
        };
        self.note(&what, sent);
    }

    /// Opens the ARP socket for the address of the lease (RFC 5227 2.4).
    fn watch_address(&mut self) {
        let held = self.client.lease().map(|lease| lease.address);
        let Some(address) = held.filter(|held| self.arp.as_ref().is_none_or(|(of, _)| of != held))
        else {
            return;
        };
        match PacketSocket::open(Protocol::Arp(address), &self.hardware).and_then(watched) {
            Ok(socket) => self.arp = Some((address, socket)),
            Err(error) => self.note("ARP", Err(error)),
        }
    }

    fn probe(&mut self, address: Ipv4Addr) {
        let hardware = &self.hardware;
        let arp = Arp::probe(hardware.hardware_type, &hardware.address, address);
        self.watch_address();
        let socket = self.arp.as_ref().filter(|(of, _)| *of == address);
        let sent = socket.map(|(_, socket)| socket.get_ref().send_arp(&arp));
        if !matches!(sent, Some(Ok(()))) {
            self.client.probe_not_sent();
        }
        if let Some(sent) = sent {
            self.note(&format!("ARP probe for {address} sent"), sent);
        }
    }

    /// Logs what was sent; logs a failure once.
    fn note(&mut self, what: &str, sent: std::io::Result<()>) {
        let who = format!("{}: DHCP", self.interface);
        traffic::note(&who, what, sent, &mut self.broken);
    }
}

/// The packets that are decoded in each second.
#[derive(Debug, Default)]
struct Share {
    began_ns: u64,
    taken: u32,
}

impl Share {
    /// Whether another packet, received at `now_ns`, is decoded.
    fn take(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.began_ns) >= SECOND {
            *self = Share {
                began_ns: now_ns,
                taken: 0,
            };
        }
        self.taken = self.taken.saturating_add(1);
        self.taken <= ARPS
    }
}

async fn arps(socket: Option<&(Ipv4Addr, AsyncFd<PacketSocket>)>) -> Vec<Received> {
    match socket {
        Some((_, socket)) => traffic::batch(socket, next).await,
        None => std::future::pending().await,
    }
}

fn next(socket: &PacketSocket) -> Option<Received> {
    socket.receive().ok().flatten()
}

fn destination(to: Destination) -> String {
    match to {
        Destination::Link(_) => String::new(),
        Destination::Server { to, .. } => format!(" to {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_its_share_of_each_second() {
        let mut share = Share::default();
        let mut taken = |from: u64| {
            (from..from + 10_000)
                .filter(|now_ns| share.take(*now_ns))
                .count()
        };
        assert_eq!(taken(5 * SECOND), 128);
        assert_eq!(taken(6 * SECOND - 10_000), 0);
        assert_eq!(taken(6 * SECOND), 128);
    }
}
