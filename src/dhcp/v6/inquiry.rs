// SPDX-License-Identifier: MIT OR Apache-2.0
//! An [`Asker`] on a real interface.

use std::net::Ipv6Addr;

use super::answer::Context;
use super::client::Action;
use super::information::{Asker, Information, Progress, Stage};
use super::socket::{Closed, Socket};
use crate::dhcp::random;
use crate::hardware::Hex;
use crate::system::clock::boottime_ns;

/// A request for name servers, with its socket.
#[derive(Debug)]
pub struct Inquiry {
    duid: String,
    asker: Asker,
    socket: Socket,
}

impl Inquiry {
    /// Opens the socket, like [`Socket::open`]; the first message follows within a second.
    pub fn open(
        interface: &str,
        index: u32,
        local: Ipv6Addr,
        duid: Vec<u8>,
    ) -> Result<Inquiry, Closed> {
        let socket = Socket::open(interface, index, local)?;
        let seed = random::seed(&local.octets());
        Ok(Inquiry {
            duid: Hex(&duid).to_string(),
            asker: Asker::new(duid, seed, boottime_ns()),
            socket,
        })
    }

    /// The local address of the socket.
    pub fn local(&self) -> Ipv6Addr {
        self.socket.local
    }

    /// Sets the current name of the interface.
    pub fn rename(&mut self, interface: &str) {
        interface.clone_into(&mut self.socket.interface);
    }

    /// When [`Inquiry::wake`] must be called, ns since kernel start.
    pub fn due(&self) -> Option<u64> {
        self.asker.due()
    }

    /// Does what is due now.
    pub fn wake(&mut self) {
        let actions = self.asker.wake(boottime_ns());
        self.carry_out(actions);
    }

    /// The answer.
    pub fn answer(&self) -> Option<&Information> {
        self.asker.answer()
    }

    /// Releases the port. The answer stays.
    pub fn close(&mut self) {
        self.socket.close();
    }

    /// The stage of the request.
    pub fn stage(&self) -> Stage {
        self.asker.stage()
    }

    /// Ends the wait for an answer; logs once that no answer arrived.
    pub fn end(&mut self) {
        let lines = self.asker.give_up().map(Action::Warn);
        self.carry_out(lines.into_iter().collect());
    }

    /// The state for the report.
    pub fn progress(&self) -> Progress {
        let mut counts = self.asker.counts().clone();
        counts.malformed = self.socket.malformed;
        Progress {
            interface: self.socket.interface.clone(),
            index: self.socket.index,
            duid: self.duid.clone(),
            counts,
            information: self.asker.answer().cloned(),
            broken: self.socket.broken.clone(),
        }
    }

    /// Waits until the answer arrives.
    pub async fn changed(&mut self) {
        while self.asker.answer().is_none() {
            for (packet, from) in self.socket.packets().await {
                let context = Context {
                    from,
                    iaid: None,
                    requested: None,
                };
                if let Some(answer) = self.socket.heard(&packet, &context) {
                    let actions = self.asker.received(&answer);
                    self.carry_out(actions);
                }
                self.asker.lost(self.socket.undecoded);
            }
            // Lets other tasks run during a flood.
            tokio::task::yield_now().await;
        }
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send(message) => {
                    self.socket.send(&message);
                    self.asker.sent(self.socket.broken.as_deref());
                }
                Action::Warn(line) => log::warn!("{}: DHCPv6: {line}", self.socket.interface),
                Action::Info(line) => log::info!("{}: DHCPv6: {line}", self.socket.interface),
                Action::Bound | Action::Lost(_) => {}
            }
        }
    }
}
