// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a bond of IPoIB interfaces: made, options, interfaces, up, carrier, MTU, addresses, in this
//! order. An interface gets its mode first and goes into the bond while it is down: the bond sets
//! it up.

use super::expected::Slave;
use super::{Bond, Change, Draft, Need, Setting, What};
use crate::facts::{Netdev, rules};
use crate::system::drivers;
use crate::wish::bond::{MODE, Seen};
use crate::wish::ipoib::{WantedMtu, Wish};

impl Draft<'_> {
    /// The next changes of a bond.
    pub(super) fn bond(&mut self, bond: &Bond<'_>) {
        let Some(netdev) = bond.netdev else {
            return self.make(bond);
        };
        // What is there instead, its check says.
        let (Some(found), Some(index)) = (&netdev.bond, netdev.ifindex) else {
            return;
        };
        if !found.has("mode", MODE) && found.slaves.is_empty() {
            if netdev.up {
                // Only a bond that is down changes its mode: the next look finds it down.
                return self.on(netdev, Need::Best, What::Set(Setting::Down));
            }
            // Another program made it, in the driver's own mode.
            self.option(netdev, found, "mode", MODE);
        }
        for (option, value) in found.to_set(bond.bond) {
            self.option(netdev, found, option, value);
        }
        for slave in &bond.slaves {
            self.slave(slave, netdev, index, found);
        }
        if found.slaves.is_empty() {
            return;
        }
        let facts = self.facts;
        let there = found.slaves.iter().filter_map(|name| facts.netdev(name));
        let there: Vec<&Netdev> = there.collect();
        let wish = Wish {
            mtu: rules::bond_mtu(bond.wish.mtu, netdev, &there).map(WantedMtu::Bytes),
            ..bond.wish.clone()
        };
        self.addressed(&wish, netdev, bond.max_mtu, &there);
    }

    fn make(&mut self, bond: &Bond<'_>) {
        if self.ground.drivers.contains(drivers::BONDING) {
            self.push(Change {
                object: bond.name.to_owned(),
                index: 0,
                need: Need::Requested,
                what: What::Set(Setting::MakeBond),
            });
        }
    }

    fn option(&mut self, netdev: &Netdev, found: &Seen, option: &str, value: &str) {
        let option = Setting::BondOption {
            option: option.to_owned(),
            value: value.to_owned(),
            slaves: found.slaves.len(),
        };
        self.set(netdev, option);
    }

    fn slave(&mut self, slave: &Slave<'_>, bond: &Netdev, index: u32, found: &Seen) {
        let Some(netdev) = slave.netdev.filter(|netdev| netdev.ifindex.is_some()) else {
            return;
        };
        let name = slave.wish.ifname.as_ref();
        let is_named = name.is_none_or(|name| *name == netdev.ifname);
        let has_mode = slave.wish.mode.is_none_or(|wanted| {
            let mode = netdev.ipoib.as_ref().and_then(|seen| seen.mode);
            rules::mode(wanted, netdev).is_ok_and(|wanted| Some(wanted) == mode)
        });
        let is_in = found.slaves.contains(&netdev.ifname);
        if is_in || !is_named || !has_mode || !self.is_settled(netdev) {
            return;
        }
        if netdev.up {
            // The next look finds it down.
            return self.set(netdev, Setting::Down);
        }
        // What goes into a bond gets its MTU: a new one has that of Ethernet.
        let mtu = netdev.mtu.filter(|mtu| bond.mtu != Some(*mtu));
        if let Some(bytes) = mtu.filter(|_| found.slaves.is_empty()) {
            self.set(bond, Setting::Mtu(bytes));
        }
        let bond = bond.ifname.clone();
        self.set(netdev, Setting::Enslave { bond, index });
    }
}
