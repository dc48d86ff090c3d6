// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARP probes for static IPv4 addresses (RFC 5227). An address is used at once, and the probes run
//! beside that use for one second, like the optimistic duplicate address detection of IPv6
//! (RFC 4429): the boot does not wait. If another host has the address, the address is removed from
//! the interface. The port of an HCA has carrier only when the fabric is ready, so a delay like the
//! forwarding delay of a bridge is not needed. For IPv6 the kernel detects duplicates.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use kernel_cmdline::HwAddr;
use tokio::time::Instant;

use super::part::Part;
use crate::dhcp::hardware::{Hardware, own_addresses};
use crate::dhcp::v4::arp::{Arp, Arps};
use crate::dhcp::v4::socket::{PacketSocket, Protocol};
use crate::facts::{AddressState, Facts, FoundAddress, Netdev, Readers};
use crate::system::decoder::decode;
use crate::system::root::Root;

/// Time in which an answer must arrive.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time from the first probe to the second one.
const AGAIN: Duration = Duration::from_millis(400);
/// Time until an address of another host is probed again: that host may leave.
const RETRY: Duration = Duration::from_secs(10);
/// Packets that are read in one turn.
const PACKETS: usize = 256;

/// The claimed addresses, by interface index.
#[derive(Debug)]
pub struct Claims {
    known: BTreeMap<(u32, Ipv4Addr), State>,
    /// The claims whose last probe ended without a result: a message was not decoded.
    unknown: BTreeSet<(u32, Ipv4Addr)>,
    /// The claims of an earlier run whose probe ended without a result, until an interface with the
    /// address is found.
    left_open: BTreeSet<Ipv4Addr>,
    /// Which claims an earlier run left open is not known: every address that is found is probed.
    probes_all: bool,
    is_boot: bool,
}

#[derive(Debug)]
enum State {
    Probing(Probe),
    /// The carrier went during the probe or after it, or an answer was not decoded: the address, which
    /// may be set, must be probed again.
    Open,
    Free,
    Taken {
        by: String,
        since: Instant,
    },
}

#[derive(Debug)]
struct Probe {
    socket: PacketSocket,
    address: Ipv4Addr,
    began: Instant,
    repeated: bool,
    /// A message was not decoded: it may have named another host with the address.
    is_deaf: bool,
    /// The host that had the address before: then the address is set only after the probe.
    before: Option<String>,
}

impl Probe {
    fn begin(hardware: &Hardware, address: Ipv4Addr, before: Option<String>) -> io::Result<Probe> {
        let socket = PacketSocket::open(Protocol::Arp(address), hardware)?;
        send_probe(&socket, address)?;
        Ok(Probe {
            socket,
            address,
            began: Instant::now(),
            repeated: false,
            is_deaf: false,
            before,
        })
    }

    /// Reads the answers and sends what is due.
    fn advance(mut self) -> State {
        let now = Instant::now();
        let answers = read_answers(&self.socket, self.address, &mut self.is_deaf);
        match next(answers, now - self.began, self.repeated) {
            Next::Taken(by) => return State::Taken { by, since: now },
            Next::Free if self.is_deaf => return unknown(self.before, now),
            Next::Free => {
                self.note(self.announce());
                return State::Free;
            }
            Next::Repeat => {
                self.repeated = true;
                self.note(send_probe(&self.socket, self.address));
            }
            Next::Wait => {}
        }
        State::Probing(self)
    }

    /// Announces an address that is in use already. A neighbour may have the hardware address of an
    /// earlier boot in its ARP cache: on InfiniBand only the GUID in that address stays the same.
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

/// The state after a probe without a result: the host that had the address before may still have it.
fn unknown(before: Option<String>, since: Instant) -> State {
    match before {
        Some(by) => State::Taken { by, since },
        None => State::Open,
    }
}

fn send_probe(socket: &PacketSocket, address: Ipv4Addr) -> io::Result<()> {
    let hardware = socket.hardware();
    let probe = Arp::probe(hardware.hardware_type, &hardware.address, address);
    socket.send_arp(&probe)
}

/// Result of reading the answers.
#[derive(Debug)]
enum Answers {
    /// This other host has the address.
    Owner(String),
    /// No owner in the packets of this turn; more packets may be queued.
    More,
    /// No owner in all packets that have arrived.
    Nothing,
}

/// Reads at most [`PACKETS`] packets, up to the first one that shows another host with the address.
/// Sets `is_deaf` if one was not decoded.
fn read_answers(socket: &PacketSocket, address: Ipv4Addr, is_deaf: &mut bool) -> Answers {
    let own = &socket.hardware().address;
    for _ in 0..PACKETS {
        let Ok(Some(packet)) = socket.receive() else {
            return Answers::Nothing;
        };
        let arp = decode::<Arps>(&(), &packet.bytes);
        *is_deaf |= arp.is_none();
        if let Some(arp) = arp.flatten()
            && arp.takes(address, own)
            // An interface may answer for another interface of the same machine.
            && !own_addresses(&Root::new("/")).contains(&arp.sender)
        {
            let by = HwAddr::from_bytes(&arp.sender);
            return Answers::Owner(match by.and_then(|by| by.guid()) {
                Some(guid) => format!("port GUID {guid}"),
                None => by.map_or_else(|| "another host".to_owned(), |by| by.to_string()),
            });
        }
    }
    Answers::More
}

/// What a probe does next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// This other host has the address.
    Taken(String),
    Free,
    /// Sends the second probe.
    Repeat,
    Wait,
}

/// What follows from the answers, `age` after the first probe. While more packets arrive than one
/// turn reads, the end is delayed by up to one second.
fn next(answers: Answers, age: Duration, repeated: bool) -> Next {
    let is_behind = match answers {
        Answers::Owner(by) => return Next::Taken(by),
        Answers::More => age < 2 * PATIENCE,
        Answers::Nothing => false,
    };
    if age >= PATIENCE && !is_behind {
        Next::Free
    } else if !repeated && age >= AGAIN {
        Next::Repeat
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
    /// No claims. Outside a boot an address counts only after its probe.
    pub fn new(is_boot: bool) -> Claims {
        Claims {
            known: BTreeMap::new(),
            unknown: BTreeSet::new(),
            left_open: BTreeSet::new(),
            probes_all: false,
            is_boot,
        }
    }

    /// The same, with the addresses that an earlier run handed over as unproven: they are set, and
    /// probed again.
    pub fn and_left_open(self, addresses: impl IntoIterator<Item = Ipv4Addr>) -> Claims {
        Claims {
            left_open: addresses.into_iter().collect(),
            ..self
        }
    }

    /// The same, if it is not known which addresses an earlier run left unproven: the requested ones that
    /// are found count as if this run had set them.
    pub fn and_all(self) -> Claims {
        Claims {
            probes_all: true,
            ..self
        }
    }

    /// Finds the addresses that were left open.
    fn find_left_open(&mut self, netdevs: &[Netdev]) {
        for netdev in netdevs {
            for found in &netdev.addresses {
                let (Some(index), IpAddr::V4(address)) = (netdev.ifindex, found.address.address)
                else {
                    continue;
                };
                let was_open = self.left_open.remove(&address);
                if (was_open || self.probes_all) && !self.known.contains_key(&(index, address)) {
                    self.known.insert((index, address), State::Open);
                    if was_open {
                        self.unknown.insert((index, address));
                    }
                }
            }
        }
    }

    /// Begins a probe for the address, unless a probe runs or the result is known. True: the
    /// address may be set now. An error means that no probe can be sent on this interface.
    pub fn claim(&mut self, hardware: &Hardware, address: Ipv4Addr) -> io::Result<bool> {
        let key = (hardware.index, address);
        let before = match self.known.get(&key) {
            None | Some(State::Open) => None,
            Some(State::Free) => {
                // Another program removed the address, or the host that had the address left.
                announce(
                    &PacketSocket::open(Protocol::Arp(address), hardware)?,
                    address,
                )?;
                return Ok(true);
            }
            Some(State::Probing(probe)) => return Ok(probe.before.is_none()),
            Some(State::Taken { since, .. }) if Instant::now() < *since + RETRY => {
                return Ok(false);
            }
            Some(State::Taken { by, .. }) => Some(by.clone()),
        };
        let may = before.is_none();
        let probe = Probe::begin(hardware, address, before)?;
        self.known.insert(key, State::Probing(probe));
        Ok(may)
    }

    /// Reads the answers to all probes, and sends what is due. Called at each turn.
    pub fn listen(&mut self) {
        for (key, state) in std::mem::take(&mut self.known) {
            let next = match state {
                State::Probing(probe) => {
                    let next = probe.advance();
                    self.note_result(key, &next);
                    next
                }
                known => known,
            };
            self.known.insert(key, next);
        }
    }

    /// Notes whether a probe has ended with a result; logs the first of those that have not.
    fn note_result(&mut self, key: (u32, Ipv4Addr), state: &State) {
        match state {
            State::Probing(_) => {}
            State::Free | State::Taken { .. } => {
                self.unknown.remove(&key);
            }
            State::Open => {
                if self.unknown.insert(key) {
                    log::warn!(
                        "whether another host uses {} is unknown: an ARP message was not decoded; \
                         probing the address again",
                        key.1
                    );
                }
            }
        }
    }

    /// True: no probe runs, except one that repeats a probe without a result. Such probes may go on
    /// for as long as messages are not decoded.
    pub fn is_settled(&self) -> bool {
        let is_first = |key| !self.unknown.contains(key);
        let mut known = self.known.iter();
        !known.any(|(key, state)| matches!(state, State::Probing(_)) && is_first(key))
    }

    /// The other host that has a claimed address.
    pub fn owner(&self, index: u32, address: Ipv4Addr) -> Option<&str> {
        match self.known.get(&(index, address)) {
            Some(State::Taken { by, .. }) => Some(by),
            _ => None,
        }
    }

    /// When the result of [`Claims::listen`] or [`Claims::claim`] may change.
    pub fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        let due = self.known.values().filter_map(|state| match state {
            State::Probing(probe) => Some(probe.due()),
            State::Taken { since, .. } => Some(*since + RETRY).filter(|at| *at > now),
            State::Open | State::Free => None,
        });
        due.min()
    }

    /// Forgets the results of an interface that lost its carrier: on another link they may be
    /// wrong. The addresses that are set stay there, and are probed and announced again.
    pub fn forget(&mut self, index: u32) {
        let is_taken = |state: &State| matches!(state, State::Taken { .. });
        self.known
            .retain(|(of, _), state| *of != index || !is_taken(state));
        for ((of, _), state) in &mut self.known {
            if *of == index {
                *state = State::Open;
            }
        }
    }

    /// Whether an address that is set must be probed again.
    pub fn is_open(&self, index: u32, address: Ipv4Addr) -> bool {
        matches!(self.known.get(&(index, address)), Some(State::Open))
    }

    /// Adds the results to the facts: the addresses of other hosts, those about which no probe had a
    /// result, and outside a boot the addresses that do not count yet.
    pub fn add_to(&self, netdevs: &mut [Netdev]) {
        for netdev in netdevs {
            for ((index, address), state) in &self.known {
                if netdev.ifindex != Some(*index) {
                    continue;
                }
                match state {
                    State::Taken { by, .. }
                    | State::Probing(Probe {
                        before: Some(by), ..
                    }) => {
                        netdev
                            .taken
                            .push(format!("the host with {by} uses {address}"));
                    }
                    State::Probing(_) | State::Open
                        if self.unknown.contains(&(*index, *address)) =>
                    {
                        netdev.unproven.push(*address);
                    }
                    State::Probing(_) if !self.is_boot => does_not_count(netdev, *address),
                    _ => {}
                }
            }
        }
    }
}

fn does_not_count(netdev: &mut Netdev, address: Ipv4Addr) {
    let is_it = |found: &&mut FoundAddress| found.address.address == address;
    for found in netdev.addresses.iter_mut().filter(is_it) {
        found.state = AddressState::Tentative;
    }
}

impl Part for Claims {
    fn follow(&mut self, facts: &Facts, _readers: Option<&Readers>) {
        self.find_left_open(&facts.netdevs);
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
    use crate::inet::Address;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_probe_is_repeated_once_and_the_address_is_free_after_a_silent_second() {
        for (age, repeated, expected) in [
            (0, false, Next::Wait),
            (399, false, Next::Wait),
            (400, false, Next::Repeat),
            (400, true, Next::Wait),
            (999, true, Next::Wait),
            (1000, true, Next::Free),
            (1000, false, Next::Free),
        ] {
            assert_eq!(
                next(Answers::Nothing, age * MS, repeated),
                expected,
                "{age}"
            );
        }
        let owner = || Answers::Owner("port GUID 1".to_owned());
        let taken = Next::Taken("port GUID 1".to_owned());
        assert_eq!(next(owner(), Duration::ZERO, false), taken);
        assert_eq!(next(owner(), 5000 * MS, true), taken);
    }

    #[test]
    fn a_flood_of_packets_delays_the_end_by_one_second() {
        assert_eq!(next(Answers::More, 400 * MS, false), Next::Repeat);
        assert_eq!(next(Answers::More, 1000 * MS, true), Next::Wait);
        assert_eq!(next(Answers::More, 1999 * MS, true), Next::Wait);
        assert_eq!(next(Answers::More, 2000 * MS, true), Next::Free);
    }

    #[test]
    fn a_lost_carrier_removes_the_results_of_the_interface() {
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
            ..Claims::new(true)
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
        let line = "the host with port GUID 1 uses 10.0.0.2".to_owned();
        assert_eq!(taken_of(0), Some(vec![line]));
        assert_eq!(taken_of(1), Some(Vec::new()));
        assert!(claims.is_settled() && !claims.is_busy());
        claims.forget(4);
        assert_eq!(claims.owner(4, taken.into()), None);
        assert_eq!(claims.due(), None);
        assert!(claims.is_open(4, other.into()));
        // The address is still set: it is probed and announced on the link that comes next.
        assert!(claims.is_open(4, free.into()));
        assert!(!claims.is_open(4, taken.into()));
        assert!(!claims.is_open(5, free.into()));
        assert!(matches!(
            claims.known.get(&(5, free.into())),
            Some(State::Free)
        ));
    }

    #[test]
    fn an_address_of_another_host_is_not_free_because_an_answer_was_not_decoded() {
        let (one, since) = (Ipv4Addr::new(10, 0, 0, 1), Instant::now());
        let mut claims = Claims::new(true);
        claims.known.insert((4, one), unknown(None, since));
        assert!(claims.is_open(4, one), "in use while it is probed again");
        let by = "port GUID 1".to_owned();
        claims.known.insert((4, one), unknown(Some(by), since));
        assert_eq!(claims.owner(4, one), Some("port GUID 1"));
        assert_eq!(claims.due(), Some(since + RETRY));
    }

    #[test]
    fn an_address_that_an_earlier_run_left_open_is_unproven_and_probed_again() {
        let one = Ipv4Addr::new(10, 0, 0, 1);
        let mut claims = Claims::new(false).and_left_open([one]);
        let mut look = |text: &str| {
            let mut facts = Facts {
                netdevs: vec![Netdev {
                    ifindex: Some(4),
                    addresses: vec![text.parse::<Address>().unwrap().into()],
                    ..Netdev::default()
                }],
                ..Facts::default()
            };
            claims.follow(&facts, None);
            Part::add_to(&claims, &mut facts);
            (claims.is_open(4, one), facts.netdevs[0].unproven.clone())
        };
        assert_eq!(look("10.0.0.2/24"), (false, Vec::new()));
        assert_eq!(look("10.0.0.1/24"), (true, vec![one]));
        // The probe has a result: the earlier run does not count any more.
        claims.note_result((4, one), &State::Free);
        claims.known.insert((4, one), State::Free);
        claims.find_left_open(&[]);
        assert!(!claims.is_open(4, one));
        assert!(claims.unknown.is_empty() && claims.left_open.is_empty());
    }

    #[test]
    fn every_address_is_probed_if_it_is_not_known_which_ones_an_earlier_run_left_open() {
        let [one, two] =
            ["10.0.0.1/24", "10.0.0.2/24"].map(|text| text.parse::<Address>().unwrap());
        let mut claims = Claims::new(false).and_all();
        let taken = State::Taken {
            by: "port GUID 1".to_owned(),
            since: Instant::now(),
        };
        claims.known.insert((4, Ipv4Addr::new(10, 0, 0, 2)), taken);
        let mut facts = Facts {
            netdevs: vec![Netdev {
                ifindex: Some(4),
                addresses: vec![one.into(), two.into()],
                ..Netdev::default()
            }],
            ..Facts::default()
        };
        claims.follow(&facts, None);
        assert!(claims.is_open(4, Ipv4Addr::new(10, 0, 0, 1)));
        assert!(
            !claims.is_open(4, Ipv4Addr::new(10, 0, 0, 2)),
            "its result is known"
        );
        Part::add_to(&claims, &mut facts);
        assert_eq!(facts.netdevs[0].unproven, Vec::<Ipv4Addr>::new());
    }

    #[test]
    fn an_address_whose_answers_were_not_decoded_is_unproven_until_a_probe_ends() {
        let one = Ipv4Addr::new(10, 0, 0, 1);
        let mut claims = Claims::new(true);
        let mut look = |state: State| {
            claims.note_result((4, one), &state);
            claims.known.insert((4, one), state);
            let mut netdev = Netdev {
                ifindex: Some(4),
                ..Netdev::default()
            };
            Claims::add_to(&claims, std::slice::from_mut(&mut netdev));
            (claims.is_open(4, one), netdev.unproven, netdev.taken)
        };
        for _ in 0..2 {
            assert_eq!(look(State::Open), (true, vec![one], Vec::new()));
        }
        assert_eq!(look(State::Free), (false, Vec::new(), Vec::new()));
        assert_eq!(look(State::Open), (true, vec![one], Vec::new()));
        let by = "port GUID 1".to_owned();
        let line = "the host with port GUID 1 uses 10.0.0.1".to_owned();
        let since = Instant::now();
        let taken = look(State::Taken { by, since });
        assert_eq!(taken, (false, Vec::new(), vec![line]));
    }
}
