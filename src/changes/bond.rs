// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a bond of IPoIB interfaces: create, options, slaves, up, carrier, MTU, addresses, in this
//! order. A slave gets its mode first and joins the bond while it is down: the bond sets the slave
//! up.

use super::expected::Slave;
use super::{Bond, Change, Draft, Need, Setting, What, Writing};
use crate::facts::{Netdev, rules};
use crate::system::drivers;
use crate::wish::bond::{BondFacts, MODE};
use crate::wish::ipoib::{IpoibWish, RequestedMtu};

impl Draft<'_> {
    /// The next changes of a bond.
    pub(super) fn bond(&mut self, bond: &Bond<'_>) {
        let Some(netdev) = bond.netdev else {
            return self.make(bond);
        };
        // If another kind of interface has this name, its check reports that.
        let (Some(found), Some(index)) = (&netdev.bond, netdev.ifindex) else {
            return;
        };
        if !found.has("mode", MODE) && found.slaves.is_empty() {
            if netdev.up {
                // A bond changes its mode only while it is down: continue when the bond is down.
                return self.set(netdev, Setting::Down);
            }
            // Another program created the bond, with the driver's default mode.
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
        let slaves = found.slaves.iter().filter_map(|name| facts.netdev(name));
        let slaves: Vec<&Netdev> = slaves.collect();
        let wish = IpoibWish {
            mtu: rules::bond_mtu(bond.wish.mtu, netdev, &slaves).map(RequestedMtu::Bytes),
            ..bond.wish.clone()
        };
        self.addressed(&wish, netdev, bond.max_mtu, &slaves);
    }

    fn make(&mut self, bond: &Bond<'_>) {
        if self.ground.drivers.contains(drivers::BONDING) {
            self.push(Change {
                object: bond.name.to_owned(),
                index: None,
                need: Need::Requested,
                what: What::Set(Setting::MakeBond),
            });
        }
    }

    fn option(&mut self, netdev: &Netdev, found: &BondFacts, option: &str, value: &str) {
        let option = Writing::BondOption {
            option: option.to_owned(),
            value: value.to_owned(),
            slaves: found.slaves.len(),
        };
        self.write(netdev, option);
    }

    fn slave(&mut self, slave: &Slave<'_>, bond: &Netdev, index: u32, found: &BondFacts) {
        let Some(netdev) = slave.netdev.filter(|netdev| netdev.ifindex.is_some()) else {
            return;
        };
        let name = slave.wish.ifname.as_ref();
        let is_named = name.is_none_or(|name| *name == netdev.ifname);
        let has_mode = slave.wish.mode.is_none_or(|requested| {
            let found = rules::current_mode(netdev);
            rules::mode(requested, netdev).is_ok_and(|requested| Some(requested) == found)
        });
        let is_in = found.slaves.contains(&netdev.ifname);
        if is_in || !is_named || !has_mode || !self.settle(netdev) {
            return;
        }
        if netdev.up {
            // Continue when the slave is down.
            return self.set(netdev, Setting::Down);
        }
        // Give the slave's MTU to the bond before the slave joins: a new bond has the MTU of
        // Ethernet.
        let mtu = netdev.mtu.filter(|mtu| bond.mtu != Some(*mtu));
        if let Some(bytes) = mtu.filter(|_| found.slaves.is_empty()) {
            self.set(bond, Setting::Mtu(bytes));
        }
        let bond = bond.ifname.clone();
        self.set(netdev, Setting::Enslave { bond, index });
    }
}
