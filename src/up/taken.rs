// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is a static IPv4 address free? The link is asked (RFC 5227) when the address is set, and listened to
//! for a second, as optimistic duplicate address detection of IPv6 does it (RFC 4429): the boot does not
//! wait for that. Whoever has the address keeps it, ours is taken away. An HCA's port has
//! carrier only when the fabric is ready, so nothing like a bridge's forwarding delay has to be waited
//! for. IPv6 the kernel does by itself.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use kernel_cmdline::HwAddr;
use tokio::time::Instant;

use super::part::Part;
use crate::dhcp::hardware::{Hardware, own_addresses};
use crate::dhcp::v4::arp::Arp;
use crate::dhcp::v4::socket::{PacketSocket, Protocol};
use crate::facts::{AddressState, Facts, FoundAddress, Netdev, Readers};
use crate::system::root::Root;

/// How long answers are listened for.
const PATIENCE: Duration = Duration::from_secs(1);
/// When the question is repeated.
const AGAIN: Duration = Duration::from_millis(400);
/// When an address that is taken is asked for anew: its owner may go.
const RETRY: Duration = Duration::from_secs(10);
/// Packets of the link that are looked at in one turn.
const PACKETS: usize = 256;

/// The addresses that were asked for, by interface index.
#[derive(Debug)]
pub struct Claims {
    known: BTreeMap<(u32, Ipv4Addr), State>,
    is_boot: bool,
}

#[derive(Debug)]
enum State {
    Asked(Question),
    /// The carrier went before its second was over: to be asked for anew.
    Open,
    Free,
    Taken {
        by: String,
        since: Instant,
    },
}

#[derive(Debug)]
struct Question {
    socket: PacketSocket,
    address: Ipv4Addr,
    began: Instant,
    repeated: bool,
    /// Who had it before: this time it is set only when the second is over.
    before: Option<String>,
}

impl Question {
    fn ask(hardware: &Hardware, address: Ipv4Addr, before: Option<String>) -> io::Result<Question> {
        let socket = PacketSocket::open(Protocol::Arp(address), hardware)?;
        ask(&socket, address)?;
        Ok(Question {
            socket,
            address,
            began: Instant::now(),
            repeated: false,
            before,
        })
    }

    /// Reads the answers and sends what is due.
    fn turn(mut self) -> State {
        let now = Instant::now();
        let heard = owner(&self.socket, self.address);
        match next(heard, now - self.began, self.repeated) {
            Next::Taken(by) => return State::Taken { by, since: now },
            Next::Free => {
                self.note(self.announce());
                return State::Free;
            }
            Next::Ask => {
                self.repeated = true;
                self.note(ask(&self.socket, self.address));
            }
            Next::Wait => {}
        }
        State::Asked(self)
    }

    /// Tells the neighbours: they may know this address with the hardware address of an earlier boot,
    /// of which on InfiniBand only the GUID stays the same.
    fn announce(&self) -> io::Result<()> {
        if self.before.is_some() {
            return Ok(());
        }
        announce(&self.socket, self.address)
    }

    fn note(&self, sent: io::Result<()>) {
        if let Err(e) = sent {
            log::debug!("ARP for {}: {e}", self.address);
        }
    }

    fn due(&self) -> Instant {
        self.began + if self.repeated { PATIENCE } else { AGAIN }
    }
}

fn ask(socket: &PacketSocket, address: Ipv4Addr) -> io::Result<()> {
    let hardware = socket.hardware();
    let probe = Arp::probe(hardware.hardware_type, &hardware.address, address);
    socket.send_arp(&probe)
}

/// What was heard.
#[derive(Debug)]
enum Heard {
    Owner(String),
    /// There may be more.
    Much,
    Nothing,
}

/// Who has the address, of those that were heard.
fn owner(socket: &PacketSocket, address: Ipv4Addr) -> Heard {
    let own = &socket.hardware().address;
    for _ in 0..PACKETS {
        let Ok(Some(packet)) = socket.receive() else {
            return Heard::Nothing;
        };
        if let Some(arp) = Arp::decode(&packet.bytes)
            && arp.takes(address, own)
            // One interface may answer for another of the same machine.
            && !own_addresses(&Root::new("/")).contains(&arp.sender)
        {
            let by = HwAddr::from_bytes(&arp.sender);
            return Heard::Owner(match by.and_then(|by| by.guid()) {
                Some(guid) => format!("port GUID {guid}"),
                None => by.map_or_else(|| "somebody".to_owned(), |by| by.to_string()),
            });
        }
    }
    Heard::Much
}

/// What a question does next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// This host has the address.
    Taken(String),
    Free,
    /// The question is repeated.
    Ask,
    Wait,
}

/// What follows from the answers, `age` after the first question. While there are more packets than one
/// turn reads, the end is put off for another second.
fn next(heard: Heard, age: Duration, repeated: bool) -> Next {
    let is_behind = match heard {
        Heard::Owner(by) => return Next::Taken(by),
        Heard::Much => age < 2 * PATIENCE,
        Heard::Nothing => false,
    };
    if age >= PATIENCE && !is_behind {
        Next::Free
    } else if !repeated && age >= AGAIN {
        Next::Ask
    } else {
        Next::Wait
    }
}

fn announce(socket: &PacketSocket, address: Ipv4Addr) -> io::Result<()> {
    let hardware = socket.hardware();
    let arp = Arp::announcement(hardware.hardware_type, &hardware.address, address);
    socket.send_arp(&arp)
}

impl Claims {
    /// None yet. Where nobody waits for a boot, no address counts before its second is over.
    pub fn new(is_boot: bool) -> Claims {
        Claims {
            known: BTreeMap::new(),
            is_boot,
        }
    }

    /// Asks for the address, unless that was done already, and says whether it may be set now. An error
    /// means that nobody can be asked here.
    pub fn claim(&mut self, hardware: &Hardware, address: Ipv4Addr) -> io::Result<bool> {
        let key = (hardware.index, address);
        let before = match self.known.get(&key) {
            None | Some(State::Open) => None,
            Some(State::Free) => {
                // Taken away by somebody, or free at last.
                announce(
                    &PacketSocket::open(Protocol::Arp(address), hardware)?,
                    address,
                )?;
                return Ok(true);
            }
            Some(State::Asked(question)) => return Ok(question.before.is_none()),
            Some(State::Taken { since, .. }) if Instant::now() < *since + RETRY => {
                return Ok(false);
            }
            Some(State::Taken { by, .. }) => Some(by.clone()),
        };
        let may = before.is_none();
        let question = Question::ask(hardware, address, before)?;
        self.known.insert(key, State::Asked(question));
        Ok(may)
    }

    /// Hears the answers. To be called at each turn.
    pub fn listen(&mut self) {
        for (key, state) in std::mem::take(&mut self.known) {
            let next = match state {
                State::Asked(question) => question.turn(),
                known => known,
            };
            self.known.insert(key, next);
        }
    }

    fn questions(&self) -> impl Iterator<Item = (&(u32, Ipv4Addr), &Question)> {
        self.known.iter().filter_map(|(key, state)| match state {
            State::Asked(question) => Some((key, question)),
            _ => None,
        })
    }

    /// Nobody has to be listened to any more.
    pub fn is_settled(&self) -> bool {
        self.questions().next().is_none()
    }

    /// Who has an address that was asked for, if somebody has it.
    pub fn owner(&self, index: u32, address: Ipv4Addr) -> Option<&str> {
        match self.known.get(&(index, address)) {
            Some(State::Taken { by, .. }) => Some(by),
            _ => None,
        }
    }

    /// When [`Claims::listen`] or [`Claims::claim`] may say something else.
    pub fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        let due = self.known.values().filter_map(|state| match state {
            State::Asked(question) => Some(question.due()),
            State::Taken { since, .. } => Some(*since + RETRY).filter(|at| *at > now),
            State::Open | State::Free => None,
        });
        due.min()
    }

    /// The interface lost its carrier: what was learnt on the link does not hold any more.
    pub fn forget(&mut self, index: u32) {
        let is_open = |state: &State| matches!(state, State::Asked(_) | State::Open);
        self.known
            .retain(|(of, _), state| *of != index || is_open(state));
        for ((of, _), state) in &mut self.known {
            if *of == index {
                *state = State::Open;
            }
        }
    }

    /// Whether an address that is set has still to be asked for.
    pub fn is_open(&self, index: u32, address: Ipv4Addr) -> bool {
        matches!(self.known.get(&(index, address)), Some(State::Open))
    }

    /// Adds what was heard to what was found: who has an address, and which do not count yet.
    pub fn add_to(&self, netdevs: &mut [Netdev]) {
        for netdev in netdevs {
            for ((index, address), state) in &self.known {
                if netdev.ifindex != Some(*index) {
                    continue;
                }
                match state {
                    State::Taken { by, .. }
                    | State::Asked(Question {
                        before: Some(by), ..
                    }) => {
                        netdev.taken.push(format!("{address} is taken by {by}"));
                    }
                    State::Asked(_) if !self.is_boot => {
                        let is_it = |found: &&mut FoundAddress| found.address.address == *address;
                        for found in netdev.addresses.iter_mut().filter(is_it) {
                            found.state = AddressState::Tentative;
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Part for Claims {
    fn follow(&mut self, _facts: &Facts, _readers: Option<&Readers>) {
        self.listen();
    }

    fn add_to(&self, facts: &mut Facts) {
        Claims::add_to(self, &mut facts.netdevs);
    }

    fn due(&self) -> Option<Instant> {
        Claims::due(self)
    }

    fn is_busy(&self) -> bool {
        !self.is_settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_question_is_repeated_once_and_the_address_is_free_after_a_silent_second() {
        for (age, repeated, expected) in [
            (0, false, Next::Wait),
            (399, false, Next::Wait),
            (400, false, Next::Ask),
            (400, true, Next::Wait),
            (999, true, Next::Wait),
            (1000, true, Next::Free),
            (1000, false, Next::Free),
        ] {
            assert_eq!(next(Heard::Nothing, age * MS, repeated), expected, "{age}");
        }
        let owner = || Heard::Owner("port GUID 1".to_owned());
        let taken = Next::Taken("port GUID 1".to_owned());
        assert_eq!(next(owner(), Duration::ZERO, false), taken);
        assert_eq!(next(owner(), 5000 * MS, true), taken);
    }

    #[test]
    fn a_flood_puts_the_end_off_for_a_second_and_no_longer() {
        assert_eq!(next(Heard::Much, 400 * MS, false), Next::Ask);
        assert_eq!(next(Heard::Much, 1000 * MS, true), Next::Wait);
        assert_eq!(next(Heard::Much, 1999 * MS, true), Next::Wait);
        assert_eq!(next(Heard::Much, 2000 * MS, true), Next::Free);
    }

    #[test]
    fn what_was_learnt_on_a_link_goes_with_its_carrier() {
        let (free, taken, other) = ([10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3]);
        let since = Instant::now();
        let by = "port GUID 1".to_owned();
        let known = [
            ((4, free.into()), State::Free),
            ((4, taken.into()), State::Taken { by, since }),
            ((4, other.into()), State::Open),
            ((5, free.into()), State::Free),
        ];
        let mut claims = Claims {
            known: BTreeMap::from(known),
            is_boot: true,
        };
        assert_eq!(claims.due(), Some(since + RETRY));
        assert_eq!(claims.owner(4, taken.into()), Some("port GUID 1"));
        assert_eq!(claims.owner(5, taken.into()), None);
        let netdev = |index| Netdev {
            ifindex: Some(index),
            ..Netdev::default()
        };
        let mut facts = Facts {
            netdevs: vec![netdev(4), netdev(5)],
            ..Facts::default()
        };
        Part::add_to(&claims, &mut facts);
        let taken_of = |index: usize| facts.netdevs.get(index).map(|one| one.taken.clone());
        let line = "10.0.0.2 is taken by port GUID 1".to_owned();
        assert_eq!(taken_of(0), Some(vec![line]));
        assert_eq!(taken_of(1), Some(Vec::new()));
        assert!(claims.is_settled() && !claims.is_busy());
        claims.forget(4);
        assert_eq!(claims.owner(4, taken.into()), None);
        assert_eq!(claims.due(), None);
        assert!(claims.is_open(4, other.into()));
        assert!(!claims.is_open(4, free.into()));
        assert!(matches!(
            claims.known.get(&(5, free.into())),
            Some(State::Free)
        ));
    }
}
