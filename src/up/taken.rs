// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is a static IPv4 address free? It is asked for on the link before it is set (RFC 5227), for one
//! second: an HCA's port has carrier only when the fabric is ready, so nothing like a bridge's
//! forwarding delay has to be waited for. IPv6 the kernel does by itself.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::time::Instant;

use crate::dhcp::arp::Arp;
use crate::dhcp::socket::{Hardware, PacketSocket, Protocol};
use kernel_cmdline::HwAddr;

/// How long answers are waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// When the question is repeated.
const AGAIN: Duration = Duration::from_millis(400);
/// When an address that is taken is asked for anew: its owner may go.
const RETRY: Duration = Duration::from_secs(10);
/// Packets of the link that are looked at in one turn.
const PACKETS: usize = 256;

/// The addresses that were asked for, by interface index.
#[derive(Debug, Default)]
pub struct Claims {
    known: BTreeMap<(u32, Ipv4Addr), State>,
}

#[derive(Debug)]
enum State {
    Asked {
        socket: PacketSocket,
        began: Instant,
        repeated: bool,
    },
    Free,
    Taken {
        by: String,
        since: Instant,
    },
}

/// What is known of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Not yet.
    Asking,
    /// Nobody has it.
    Free,
    /// Somebody has it: the hardware address.
    Taken(String),
}

fn ask(socket: &PacketSocket, address: Ipv4Addr) -> io::Result<()> {
    let hardware = socket.hardware();
    let probe = Arp::probe(hardware.hardware_type, &hardware.address, address);
    socket.send_arp(&probe)
}

/// Who has the address, of those that were heard.
fn owner(socket: &PacketSocket, address: Ipv4Addr) -> Option<String> {
    let own = &socket.hardware().address;
    for _ in 0..PACKETS {
        let packet = socket.receive().ok()??;
        if let Some(arp) = Arp::decode(&packet.bytes)
            && arp.takes(address, own)
        {
            let by = HwAddr::from_bytes(&arp.sender);
            return Some(match by.and_then(|by| by.guid()) {
                Some(guid) => format!("port GUID {guid}"),
                None => by.map_or_else(|| "somebody".to_owned(), |by| by.to_string()),
            });
        }
    }
    None
}

impl Claims {
    /// Whether the address may be set: the first call asks, a later one knows. An error means that
    /// nobody can be asked here.
    pub fn verdict(&mut self, hardware: &Hardware, address: Ipv4Addr) -> io::Result<Verdict> {
        let key = (hardware.index, address);
        let now = Instant::now();
        let next = match self.known.remove(&key) {
            Some(State::Free) => State::Free,
            Some(State::Taken { by, since }) if now < since + RETRY => State::Taken { by, since },
            Some(State::Asked {
                socket,
                began,
                repeated,
            }) => match owner(&socket, address) {
                Some(by) => State::Taken { by, since: now },
                None if now >= began + PATIENCE => State::Free,
                None => {
                    let repeat = !repeated && now >= began + AGAIN;
                    if repeat {
                        ask(&socket, address)?;
                    }
                    State::Asked {
                        socket,
                        began,
                        repeated: repeated || repeat,
                    }
                }
            },
            Some(State::Taken { .. }) | None => {
                let socket = PacketSocket::open(Protocol::Arp, hardware)?;
                ask(&socket, address)?;
                State::Asked {
                    socket,
                    began: now,
                    repeated: false,
                }
            }
        };
        let verdict = match &next {
            State::Asked { .. } => Verdict::Asking,
            State::Free => Verdict::Free,
            State::Taken { by, .. } => Verdict::Taken(by.clone()),
        };
        self.known.insert(key, next);
        Ok(verdict)
    }

    /// When [`Claims::verdict`] may say something else.
    pub fn due(&self) -> Option<Instant> {
        let due = self.known.values().filter_map(|state| match state {
            State::Asked {
                began,
                repeated: false,
                ..
            } => Some(*began + AGAIN),
            State::Asked { began, .. } => Some(*began + PATIENCE),
            State::Taken { since, .. } => Some(*since + RETRY),
            State::Free => None,
        });
        due.min()
    }

    /// The interface lost its carrier: what was learnt on the link does not hold any more.
    pub fn forget(&mut self, index: u32) {
        self.known.retain(|(of, _), _| *of != index);
    }

    /// Which addresses are taken, in words, with the index of their interface.
    pub fn taken(&self) -> Vec<(u32, String)> {
        let words = |((index, address), state): (&(u32, Ipv4Addr), &State)| match state {
            State::Taken { by, .. } => Some((*index, format!("{address} is taken by {by}"))),
            _ => None,
        };
        self.known.iter().filter_map(words).collect()
    }
}

/// Tells the neighbours: they may know this address with the hardware address of an earlier boot,
/// of which on InfiniBand only the GUID stays the same.
pub fn announce(hardware: &Hardware, address: Ipv4Addr) -> io::Result<()> {
    let arp = Arp::announcement(hardware.hardware_type, &hardware.address, address);
    PacketSocket::open(Protocol::Arp, hardware)?.send_arp(&arp)
}
