// SPDX-License-Identifier: MIT OR Apache-2.0
//! The speaker of an interface: the hardware address in the identity of the DHCP client.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::part::Part;
use crate::facts::Netdev;
use crate::wish::bond::BondFacts;

/// How long a bond waits for its first interface.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hardware address that a DHCP client uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// The address of the interface. A changed address means another client.
    Own,
    /// The address of a slave of the bond, as bytes. The address of the bond is the one of the
    /// active slave (fail_over_mac=active), and a server would grant each slave another IP address.
    Slave(Vec<u8>),
    /// Not known yet: the bond waits for its first interface.
    Awaited,
}

impl Speaker {
    /// The speaker of a bond: the first of its interfaces in the order of the command line
    /// (`named`; none: missing). If that one is late: the first one that is a slave.
    fn of_bond(named: &[Option<&Netdev>], found: &BondFacts, is_late: bool) -> Speaker {
        let mut slaves = named.iter().map(|netdev| {
            let netdev = netdev.filter(|netdev| found.slaves.contains(&netdev.ifname))?;
            Some(netdev.address.as_ref()?.bytes().to_vec())
        });
        let found = if is_late {
            slaves.flatten().next()
        } else {
            slaves.next().flatten()
        };
        found.map_or(Speaker::Awaited, Speaker::Slave)
    }

    /// The address to use on an interface with the address `own`; none: not known yet.
    pub fn address<'a>(&'a self, own: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Speaker::Own => Some(own),
            Speaker::Slave(address) => Some(address),
            Speaker::Awaited => None,
        }
    }
}

/// The speakers of the bonds.
#[derive(Debug, Default)]
pub struct Speakers {
    /// Since when a bond has carrier without its first interface, by interface index of the bond.
    awaiting: BTreeMap<u32, Instant>,
}

impl Speakers {
    /// The speaker of a bond, given with its interface index, as [`Speaker::of_bond`]. The wait for
    /// the first interface begins with the carrier of the bond.
    pub fn of_bond(
        &mut self,
        bond: (&Netdev, u32, &BondFacts),
        named: &[Option<&Netdev>],
        now: Instant,
    ) -> Speaker {
        let (netdev, index, found) = bond;
        let speaker = Speaker::of_bond(named, found, false);
        if speaker != Speaker::Awaited || netdev.carrier != Some(true) {
            self.awaiting.remove(&index);
            return speaker;
        }
        let since = *self.awaiting.entry(index).or_insert(now);
        Speaker::of_bond(named, found, now - since >= PATIENCE)
    }

    /// The next time after `now` at which the wait for an interface ends.
    fn due_after(&self, now: Instant) -> Option<Instant> {
        let ends = self.awaiting.values().map(|since| *since + PATIENCE);
        ends.filter(|end| *end > now).min()
    }
}

impl Part for Speakers {
    fn due(&self) -> Option<Instant> {
        self.due_after(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn netdev(name: &str, address: &str) -> Netdev {
        Netdev {
            ifname: name.to_owned(),
            address: Some(address.parse().unwrap()),
            ..Netdev::default()
        }
    }

    #[test]
    fn the_first_interface_of_a_bond_is_its_speaker_for_every_active_slave() {
        let (ib0, ib1) = (netdev("ib0", "80:01"), netdev("ib1", "80:02"));
        let found = |slaves: &[&str], active: &str| BondFacts {
            slaves: slaves.iter().map(ToString::to_string).collect(),
            active_slave: Some(active.to_owned()),
            ..BondFacts::default()
        };
        let both = [Some(&ib0), Some(&ib1)];
        let first = Speaker::Slave(vec![0x80, 1]);
        for active in ["ib0", "ib1"] {
            let found = found(&["ib1", "ib0"], active);
            assert_eq!(Speaker::of_bond(&both, &found, false), first);
            assert_eq!(Speaker::of_bond(&both, &found, true), first);
        }
        // In the order of the command line, not of the bond.
        let second = Speaker::Slave(vec![0x80, 2]);
        let turned = [Some(&ib1), Some(&ib0)];
        let in_bond = found(&["ib0", "ib1"], "ib0");
        assert_eq!(Speaker::of_bond(&turned, &in_bond, false), second);
        // The bond waits for an interface that is missing or not yet a slave.
        let alone = found(&["ib1"], "ib1");
        for named in [both, [None, Some(&ib1)]] {
            assert_eq!(Speaker::of_bond(&named, &alone, false), Speaker::Awaited);
            assert_eq!(Speaker::of_bond(&named, &alone, true), second);
        }
        let none = BondFacts::default();
        assert_eq!(Speaker::of_bond(&both, &none, true), Speaker::Awaited);
    }

    #[test]
    fn an_awaited_speaker_has_no_address() {
        let own = [1, 2];
        assert_eq!(Speaker::Own.address(&own), Some(&own[..]));
        assert_eq!(Speaker::Slave(vec![3]).address(&own), Some(&[3][..]));
        assert_eq!(Speaker::Awaited.address(&own), None);
    }

    #[test]
    fn the_wait_for_the_first_interface_begins_with_the_carrier_of_the_bond() {
        let second = netdev("ib1", "80:02");
        let named = [None, Some(&second)];
        let found = BondFacts {
            slaves: vec!["ib1".to_owned()],
            ..BondFacts::default()
        };
        let bond = |carrier| Netdev {
            carrier: Some(carrier),
            ..Netdev::default()
        };
        let (dark, lit) = (bond(false), bond(true));
        let mut speakers = Speakers::default();
        let now = Instant::now();
        let late = now + PATIENCE;
        assert_eq!(
            speakers.of_bond((&dark, 4, &found), &named, now),
            Speaker::Awaited
        );
        assert_eq!(speakers.due_after(now), None);
        assert_eq!(
            speakers.of_bond((&lit, 4, &found), &named, now),
            Speaker::Awaited
        );
        assert_eq!(speakers.due_after(now), Some(late));
        let other = Speaker::Slave(vec![0x80, 2]);
        assert_eq!(speakers.of_bond((&lit, 4, &found), &named, late), other);
        assert_eq!(speakers.due_after(late), None);
        // A lost carrier restarts the wait.
        assert_eq!(
            speakers.of_bond((&dark, 4, &found), &named, late),
            Speaker::Awaited
        );
        assert_eq!(
            speakers.of_bond((&lit, 4, &found), &named, late),
            Speaker::Awaited
        );
        assert_eq!(speakers.due_after(late), Some(late + PATIENCE));
    }
}
