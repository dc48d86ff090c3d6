// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client on a real interface: sends the client's messages and passes messages to the client.

use std::net::Ipv6Addr;

use super::client::{Action, Client, Config};
use super::lease::Lease;
use super::progress::{Progress, State};
use super::socket::{Closed, Socket};
use crate::dhcp::{Outcome, random};
use crate::hardware::Hex;
use crate::inet::Router;
use crate::system::clock::boottime_ns;

/// A client with its socket.
#[derive(Debug)]
pub struct Session {
    duid: String,
    iaid: u32,
    client: Client,
    socket: Socket,
    router: Router,
    outcomes: Vec<Outcome>,
}

impl Session {
    /// Opens the socket; sends nothing yet. `local` is a link-local address of the interface that
    /// is not tentative. Runs on the current tokio runtime.
    pub fn open(
        interface: &str,
        index: u32,
        local: Ipv6Addr,
        config: Config,
    ) -> Result<Session, Closed> {
        let socket = Socket::open(interface, index, local)?;
        Ok(Session {
            duid: Hex(&config.identity.duid).to_string(),
            iaid: config.identity.iaid,
            client: Client::new(config, random::seed(&local.octets())),
            socket,
            router: Router::default(),
            outcomes: Vec::new(),
        })
    }

    /// Starts the client; with `known`, the client requests the address of an earlier lease.
    pub fn start(&mut self, known: Option<Ipv6Addr>) {
        let actions = self.client.start(boottime_ns(), known);
        self.carry_out(actions);
    }

    /// Continues with a lease whose address is on the interface.
    pub fn resume(&mut self, lease: Lease) {
        let actions = self.client.resume(boottime_ns(), lease);
        self.carry_out(actions);
    }

    /// The address on the interface is from the lease of another request: the address is removed.
    pub fn disown(&mut self, address: Ipv6Addr) {
        log::info!(
            "{}: DHCPv6: {address} is removed: its lease was for another request",
            self.socket.interface
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
        let actions = self.client.hurry(boottime_ns());
        self.carry_out(actions);
    }

    /// Duplicate address detection found the granted address on another host.
    pub fn duplicate(&mut self) {
        let actions = self.client.duplicate(boottime_ns());
        self.carry_out(actions);
    }

    /// Stops the client and releases the port. The progress stays for the report.
    pub fn close(&mut self) {
        self.socket.close();
    }

    /// The local address of the socket.
    pub fn local(&self) -> Ipv6Addr {
        self.socket.local
    }

    /// Sets the current name of the interface.
    pub fn rename(&mut self, interface: &str) {
        interface.clone_into(&mut self.socket.interface);
    }

    /// Sets what a router advertises, for the report. A first advertisement means that the network
    /// has just come up: the next message is sent at once.
    pub fn set_router(&mut self, router: Router) {
        let is_new = self.router == Router::Silent && router != Router::Silent;
        self.router = router;
        if is_new && self.socket.is_open() {
            let actions = self.client.hurry(boottime_ns());
            self.carry_out(actions);
        }
    }

    /// When [`Session::wake`] must be called, ns since kernel start.
    pub fn due(&self) -> Option<u64> {
        self.client.due()
    }

    /// The current lease.
    pub fn lease(&self) -> Option<&Lease> {
        self.client.lease()
    }

    /// Whether the client sent at least this many messages and no server is about to grant a lease.
    pub fn is_in_vain(&self, messages: u32) -> bool {
        let is_granting = self.client.state() == State::Requesting;
        self.client.counts().sent >= messages && !is_granting
    }

    /// Does what is due now.
    pub fn wake(&mut self) {
        let actions = self.client.wake(boottime_ns());
        self.carry_out(actions);
    }

    /// What happened since the last call.
    pub fn outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// The state for the report.
    pub fn progress(&self) -> Progress {
        let mut counts = self.client.counts().clone();
        counts.malformed = self.socket.malformed;
        counts.undecoded = self.socket.undecoded;
        Progress {
            interface: self.socket.interface.clone(),
            index: self.socket.index,
            duid: self.duid.clone(),
            iaid: self.iaid,
            state: self.client.state(),
            counts,
            router: self.router,
            lease: self.client.lease().cloned(),
            broken: self.socket.broken.clone(),
            ..Progress::default()
        }
    }

    /// Waits until a packet changes the client: its state, its next time, or the lease.
    pub async fn changed(&mut self) {
        loop {
            let before = (self.client.state(), self.client.due());
            for (packet, from) in self.socket.packets().await {
                let context = self.client.context(from);
                if let Some(answer) = self.socket.heard(&packet, &context) {
                    let actions = self.client.received(boottime_ns(), &answer);
                    self.carry_out(actions);
                }
            }
            if before != (self.client.state(), self.client.due()) || !self.outcomes.is_empty() {
                return;
            }
            // Lets other tasks run during a flood.
            tokio::task::yield_now().await;
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(message) => self.socket.send(&message),
                Action::Bound => self.outcomes.push(Outcome::Bound),
                Action::Lost(address) => self.outcomes.push(Outcome::Lost(address.into())),
                Action::Warn(line) => log::warn!("{}: DHCPv6: {line}", self.socket.interface),
                Action::Info(line) => log::info!("{}: DHCPv6: {line}", self.socket.interface),
            }
        }
    }
}
