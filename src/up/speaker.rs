// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: whose hardware address makes the identity of a DHCP client.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::part::Part;
use crate::facts::Netdev;
use crate::wish::bond::BondFacts;

/// How long the first interface of a bond is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whose hardware address it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// The interface's own: where that changes, somebody else asks.
    Own,
    /// That of an interface of the bond, as bytes. The bond's own is that of whichever carries the
    /// traffic (fail_over_mac=active), and a server would give each of them another address.
    Slave(Vec<u8>),
    /// An interface of the bond that may still come.
    Awaited,
}

impl Speaker {
    /// Who asks for a bond: of its interfaces as the command line names them (none: not there) the
    /// first; the first that is in it where that did not come in time.
    fn of_bond(named: &[Option<&Netdev>], found: &BondFacts, is_late: bool) -> Speaker {
        let mut there = named.iter().map(|netdev| {
            let netdev = netdev.filter(|netdev| found.slaves.contains(&netdev.ifname))?;
            Some(netdev.address.as_ref()?.bytes().to_vec())
        });
        let found = if is_late {
            there.flatten().next()
        } else {
            there.next().flatten()
        };
        found.map_or(Speaker::Awaited, Speaker::Slave)
    }

    /// The address, of an interface that has this one; none: it is not known yet.
    pub fn address<'a>(&'a self, own: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Speaker::Own => Some(own),
            Speaker::Slave(address) => Some(address),
            Speaker::Awaited => None,
        }
    }
}

/// Who speaks for the bonds.
#[derive(Debug, Default)]
pub struct Speakers {
    /// Bonds that have carrier and miss their first interface, by interface index, and since when.
    awaiting: BTreeMap<u32, Instant>,
}

impl Speakers {
    /// Who asks for a bond with this interface index, as [`Speaker::of_bond`]: the first interface is
    /// waited for from the bond's carrier on.
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

    /// The next time after `now` at which the patience with an interface ends.
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
    fn the_first_interface_of_a_bond_speaks_for_it_whichever_carries_the_traffic() {
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
        // As it is named, not as it was put in.
        let second = Speaker::Slave(vec![0x80, 2]);
        let turned = [Some(&ib1), Some(&ib0)];
        let seen_both = found(&["ib0", "ib1"], "ib0");
        assert_eq!(Speaker::of_bond(&turned, &seen_both, false), second);
        // One that is not there, or there and not in the bond, is waited for.
        let alone = found(&["ib1"], "ib1");
        for named in [both, [None, Some(&ib1)]] {
            assert_eq!(Speaker::of_bond(&named, &alone, false), Speaker::Awaited);
            assert_eq!(Speaker::of_bond(&named, &alone, true), second);
        }
        let none = BondFacts::default();
        assert_eq!(Speaker::of_bond(&both, &none, true), Speaker::Awaited);
    }

    #[test]
    fn what_is_awaited_has_no_address() {
        let own = [1, 2];
        assert_eq!(Speaker::Own.address(&own), Some(&own[..]));
        assert_eq!(Speaker::Slave(vec![3]).address(&own), Some(&[3][..]));
        assert_eq!(Speaker::Awaited.address(&own), None);
    }

    #[test]
    fn a_bonds_first_interface_is_waited_for_from_the_carrier_on() {
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
        // Without carrier the patience begins anew.
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
