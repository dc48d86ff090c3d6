// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client on a real interface: what it wants sent is sent, what comes to its port is handed to it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

use tokio::io::unix::AsyncFd;

use super::client::{Action, Client, Config};
use super::lease::Lease;
use super::packet::{LARGEST, Message};
use super::progress::{Progress, Router};
use super::{CLIENT_PORT, SERVER_PORT, SERVERS, Wish};
use crate::dhcp::identity::Hex;
use crate::error::{Error, errno_text};
use crate::system::clock::boottime_ns;
use crate::system::readiness::watched;

/// Packets handed over in one piece: a flood must not keep the program from its other work.
const BATCH: usize = 64;

/// What the caller has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is a lease, or a renewed one.
    Bound,
    /// This address must go.
    Lost(Ipv6Addr),
}

/// Why there is no session.
#[derive(Debug)]
pub enum Closed {
    /// Another client has the port (EADDRINUSE).
    InUse(Error),
    /// Anything else.
    Failed(Error),
}

impl From<Closed> for Error {
    fn from(closed: Closed) -> Error {
        match closed {
            Closed::InUse(error) | Closed::Failed(error) => error,
        }
    }
}

/// A client with its socket.
#[derive(Debug)]
pub struct Session {
    interface: String,
    index: u32,
    /// The interface's link-local address: from there it asks.
    local: Ipv6Addr,
    duid: String,
    iaid: u32,
    client: Client,
    socket: AsyncFd<UdpSocket>,
    router: Router,
    /// Why the last send failed.
    broken: Option<String>,
    malformed: u32,
    outcomes: Vec<Outcome>,
}

impl Session {
    /// Opens the socket; nothing is sent yet. `local` is a link-local address of the interface that
    /// is not tentative. Runs on the current tokio runtime.
    pub fn open(
        interface: &str,
        index: u32,
        local: Ipv6Addr,
        config: Config,
    ) -> Result<Session, Closed> {
        let socket = open(index, local).and_then(watched).map_err(|e| {
            let error = Error::io(
                interface,
                format!("DHCPv6: UDP port {CLIENT_PORT} of {local} cannot be had"),
                &e,
            );
            match e.kind() {
                io::ErrorKind::AddrInUse => {
                    Closed::InUse(error.hint("another DHCPv6 client runs: ss -lnup"))
                }
                _ => Closed::Failed(error),
            }
        })?;
        let mut seed = RandomState::new().build_hasher();
        seed.write(&local.octets());
        seed.write_u64(boottime_ns());
        Ok(Session {
            interface: interface.to_owned(),
            index,
            local,
            duid: Hex(&config.identity.duid).to_string(),
            iaid: config.identity.iaid,
            client: Client::new(config, seed.finish()),
            socket,
            router: Router::default(),
            broken: None,
            malformed: 0,
            outcomes: Vec::new(),
        })
    }

    /// Begins; with `known` by asking for the address of an earlier lease.
    pub fn start(&mut self, known: Option<Ipv6Addr>) {
        let actions = self.client.start(boottime_ns(), known);
        self.carry_out(actions);
    }

    /// Goes on with a lease whose address is on the interface.
    pub fn resume(&mut self, lease: Lease) {
        let actions = self.client.resume(boottime_ns(), lease);
        self.carry_out(actions);
    }

    /// Duplicate address detection found the granted address on another host.
    pub fn duplicate(&mut self) {
        let actions = self.client.duplicate(boottime_ns());
        self.carry_out(actions);
    }

    /// The address that it asks from.
    pub fn local(&self) -> Ipv6Addr {
        self.local
    }

    /// The interface's name now.
    pub fn rename(&mut self, interface: &str) {
        interface.clone_into(&mut self.interface);
    }

    /// What a router says, for the report. One that is heard for the first time came up with its
    /// network: the next question does not wait for its turn.
    pub fn set_router(&mut self, router: Router) {
        let is_new = self.router == Router::Silent && router != Router::Silent;
        self.router = router;
        if is_new {
            let actions = self.client.hurry(boottime_ns());
            self.carry_out(actions);
        }
    }

    /// When [`Session::wake`] is wanted, ns since kernel start.
    pub fn due(&self) -> Option<u64> {
        self.client.due()
    }

    /// What is granted.
    pub fn lease(&self) -> Option<&Lease> {
        self.client.lease()
    }

    /// Does what is due by now.
    pub fn wake(&mut self) {
        let actions = self.client.wake(boottime_ns());
        self.carry_out(actions);
    }

    /// What happened since the last call.
    pub fn outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// For the report.
    pub fn progress(&self) -> Progress {
        let mut counts = self.client.counts().clone();
        counts.malformed = self.malformed;
        Progress {
            interface: self.interface.clone(),
            index: self.index,
            duid: self.duid.clone(),
            iaid: self.iaid,
            state: self.client.state().to_owned(),
            counts,
            router: self.router,
            lease: self.client.lease().cloned(),
            wish: Wish::default(),
            gave_up: false,
            broken: self.broken.clone(),
        }
    }

    /// Waits until a packet moved the client: its state, its next time, or the lease.
    pub async fn changed(&mut self) {
        loop {
            let before = (self.client.state(), self.client.due());
            let Ok(mut ready) = self.socket.readable().await else {
                return std::future::pending().await;
            };
            let packets = batch(ready.get_inner());
            if packets.len() < BATCH {
                ready.clear_ready();
            }
            for (bytes, from) in packets {
                self.heard(&bytes, from);
            }
            if before != (self.client.state(), self.client.due()) || !self.outcomes.is_empty() {
                return;
            }
            // Under a flood the others get their turn.
            tokio::task::yield_now().await;
        }
    }

    fn heard(&mut self, bytes: &[u8], from: Ipv6Addr) {
        match Message::decode(bytes) {
            Ok(message) => {
                log::debug!("{}: DHCPv6: {} from {from}", self.interface, said(&message));
                let actions = self.client.received(boottime_ns(), &message, from);
                self.carry_out(actions);
            }
            Err(why) => {
                self.malformed = self.malformed.saturating_add(1);
                log::debug!("{}: DHCPv6: from {from}: {why}", self.interface);
            }
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(message) => self.send(&message),
                Action::Bound => self.outcomes.push(Outcome::Bound),
                Action::Lost(address) => self.outcomes.push(Outcome::Lost(address)),
                Action::Say(true, line) => log::warn!("{}: DHCPv6: {line}", self.interface),
                Action::Say(false, line) => log::info!("{}: DHCPv6: {line}", self.interface),
            }
        }
    }

    /// Sends it, and says a failure once.
    fn send(&mut self, message: &Message) {
        let to = SocketAddrV6::new(SERVERS, SERVER_PORT, 0, self.index);
        match self.socket.get_ref().send_to(&message.encode(), to) {
            Ok(_) => {
                log::debug!("{}: DHCPv6: {} sent", self.interface, said(message));
                self.broken = None;
            }
            Err(error) => {
                let why = format!("nothing can be sent: {}", errno_text(&error));
                if self.broken.as_ref() != Some(&why) {
                    log::warn!("{}: DHCPv6: {why}", self.interface);
                    self.broken = Some(why);
                }
            }
        }
    }
}

/// Bound to the link-local address, so that the kernel hands over what is for this interface alone.
fn open(index: u32, local: Ipv6Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddrV6::new(local, CLIENT_PORT, 0, index))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// What is there, up to [`BATCH`], with whom it is from. An error is the end of it.
fn batch(socket: &UdpSocket) -> Vec<(Vec<u8>, Ipv6Addr)> {
    // A byte more than a message may have: what is longer is seen to be.
    let mut buffer = vec![0; LARGEST + 1];
    let mut next = || match socket.recv_from(&mut buffer) {
        Ok((length, SocketAddr::V6(from))) => Some((buffer.get(..length)?.to_vec(), *from.ip())),
        _ => None,
    };
    std::iter::from_fn(&mut next).take(BATCH).collect()
}

/// A message in one line of the debug log.
fn said(message: &Message) -> String {
    let codes: Vec<String> = message.options.codes().map(|c| c.to_string()).collect();
    format!(
        "{} transaction {:#08x}, options {}",
        message.kind,
        message.transaction,
        codes.join(" ")
    )
}
