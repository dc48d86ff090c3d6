// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bonds of IPoIB interfaces: made, options, interfaces, up, carrier, MTU, addresses, in this
//! order. An interface gets its mode first and goes into the bond while it is down: the bond sets
//! it up.

use tokio::time::Instant;

use super::speaker::Speaker;
use super::{Walk, ipoib as interfaces};
use crate::error::Error;
use crate::facts::rules::{self, bond_mtu};
use crate::facts::{Facts, Netdev};
use crate::system::drivers;
use crate::wish::bond::{MODE, Seen, Wish};
use crate::wish::expectation::LinkWish;
use crate::wish::ipoib;

impl Walk<'_> {
    /// Brings every wanted bond one step further. True if something was changed.
    pub(super) async fn bonds(&mut self, facts: &Facts) -> bool {
        let bonds: Vec<LinkWish> = self
            .expectation
            .links
            .iter()
            .filter(|link| link.bond.is_some() && link.refused.is_none())
            .cloned()
            .collect();
        let mut changed = false;
        for link in &bonds {
            if let (Some(wish), Some(ipoib)) = (&link.bond, &link.ipoib) {
                changed |= self.bond(&link.wanted, wish, ipoib, facts).await;
            }
        }
        changed
    }

    async fn bond(&mut self, name: &str, wish: &Wish, ipoib: &ipoib::Wish, facts: &Facts) -> bool {
        let Some(netdev) = facts.netdev(name) else {
            return self.make_bond(name).await;
        };
        // What is there instead, its check says.
        let (Some(bond), Some(index)) = (&netdev.bond, netdev.ifindex) else {
            return false;
        };
        let mut changed = self.set_bond_mode(netdev, bond, index).await;
        for (option, value) in bond.to_set(wish) {
            changed |= self.set_option(name, bond, option, value);
        }
        for slave in self.slaves(wish) {
            changed |= self.enslave(&slave, netdev, bond, facts).await;
        }
        if bond.slaves.is_empty() {
            return changed;
        }
        self.set_autoconf(ipoib, netdev);
        changed |= self.set_up(name, facts).await;
        let speaker = &self.speaker(wish, netdev, bond, index, facts);
        let ipoib = &self.granted(ipoib, netdev, index, speaker).await;
        if netdev.carrier != Some(true) {
            self.acts.interfaces.forget_tried(index);
            return changed;
        }
        let there: Vec<&Netdev> = bond.slaves.iter().filter_map(|s| facts.netdev(s)).collect();
        let wish = ipoib::Wish {
            mtu: bond_mtu(ipoib.mtu, netdev, &there).map(ipoib::WantedMtu::Bytes),
            ..ipoib.clone()
        };
        changed |= self.set_mtu(&wish, netdev, index).await;
        changed |= self.try_mtu(&wish, netdev, index, &there).await;
        if self.set_addresses(&wish, netdev, index).await {
            self.parts.leasing.v4.announce(index);
            changed = true;
        }
        changed
    }

    /// Who asks for its addresses.
    fn speaker(
        &mut self,
        wish: &Wish,
        netdev: &Netdev,
        seen: &Seen,
        index: u32,
        facts: &Facts,
    ) -> Speaker {
        let links = self.slaves(wish);
        let named = wish.slaves.iter().map(|name| {
            let link = links.iter().find(|link| link.wanted == *name)?;
            interface_of(link, facts)
        });
        let named: Vec<Option<&Netdev>> = named.collect();
        let bond = (netdev, index, seen);
        self.parts.speakers.of_bond(bond, &named, Instant::now())
    }

    /// What goes into a bond gets its MTU: a new one has that of Ethernet.
    async fn fit(&mut self, bond: &Netdev, index: u32, seen: &Seen, slave: &Netdev) {
        let wanted = slave.mtu.filter(|mtu| bond.mtu != Some(*mtu));
        let Some(bytes) = wanted.filter(|_| seen.slaves.is_empty()) else {
            return;
        };
        if let Err(why) = self.net.set_mtu(index, bytes).await {
            let error = Error::new(&bond.ifname, format!("MTU {bytes} is refused")).seen(why);
            self.journal.tell_once(&bond.ifname, &error);
        }
    }

    async fn make_bond(&mut self, name: &str) -> bool {
        if !self.is_live(drivers::BONDING) {
            return false;
        }
        match self.net.add_bond(name).await {
            Ok(()) => {
                log::info!("{name}: bond made, {MODE}");
                true
            }
            Err(why) => {
                let error = Error::new(name, "bond cannot be made").seen(why);
                self.journal.tell_once(name, &error);
                false
            }
        }
    }

    /// Another program may have made it, in the driver's own mode. Only a bond that is down and has
    /// no interfaces changes its mode.
    async fn set_bond_mode(&mut self, netdev: &Netdev, bond: &Seen, index: u32) -> bool {
        if bond.has("mode", MODE) || !bond.slaves.is_empty() {
            return false;
        }
        if netdev.up {
            return self.net.set_down(index).await.is_ok();
        }
        self.set_option(&netdev.ifname, bond, "mode", MODE)
    }

    fn set_option(&mut self, name: &str, bond: &Seen, option: &str, value: &str) -> bool {
        // What the driver refuses it may take once there is another interface in the bond.
        let attempt = format!("{option}={value} {}", bond.slaves.len());
        if !self.journal.is_first_time(name, &attempt) {
            return false;
        }
        let path = format!("/sys/class/net/{name}/bonding/{option}");
        // The driver takes the addresses of a list one by one.
        let mut changed = false;
        for part in value.split(';') {
            let sign = if option.ends_with("_target") { "+" } else { "" };
            match self.root.set(&path, &format!("{sign}{part}\n")) {
                Ok(()) => changed = true,
                Err(e) => {
                    let error = Error::io(name, format!("option {option}={value} is refused"), &e)
                        .hint("see dmesg; what there is: modinfo bonding");
                    self.journal.tell_once(name, &error);
                }
            }
        }
        changed
    }

    /// The wishes of its interfaces.
    fn slaves(&self, wish: &Wish) -> Vec<LinkWish> {
        let links = self.expectation.links.iter();
        links
            .filter(|link| wish.slaves.contains(&link.wanted) && link.refused.is_none())
            .cloned()
            .collect()
    }

    async fn enslave(
        &mut self,
        link: &LinkWish,
        bond: &Netdev,
        seen: &Seen,
        facts: &Facts,
    ) -> bool {
        let Some(wish) = &link.ipoib else {
            return false;
        };
        let found = interface_of(link, facts);
        let Some((netdev, index)) = found.and_then(|n| Some((n, n.ifindex?))) else {
            return false;
        };
        let is_named = wish
            .ifname
            .as_ref()
            .is_none_or(|name| *name == netdev.ifname);
        let has_mode = wish.mode.is_none_or(|wanted| {
            let mode = netdev.ipoib.as_ref().and_then(|seen| seen.mode);
            rules::mode(wanted, netdev).is_ok_and(|wanted| Some(wanted) == mode)
        });
        if seen.slaves.contains(&netdev.ifname)
            || !is_named
            || !has_mode
            || !self.is_settled(netdev)
        {
            return false;
        }
        let Some(bond_index) = bond.ifindex else {
            return false;
        };
        let result = if netdev.up {
            // The next look finds it down.
            self.net.set_down(index).await
        } else {
            self.fit(bond, bond_index, seen, netdev).await;
            self.net.enslave(index, bond_index).await
        };
        match result {
            Ok(()) if netdev.up => true,
            Ok(()) => {
                log::info!("{}: in its bond", netdev.ifname);
                true
            }
            Err(why) => {
                let error = Error::new(&netdev.ifname, "cannot be put into its bond").seen(why);
                self.journal
                    .tell_once(&netdev.ifname, &error.hint("see dmesg"));
                false
            }
        }
    }
}

/// The interface that a wish means.
fn interface_of<'f>(link: &LinkWish, facts: &'f Facts) -> Option<&'f Netdev> {
    let wish = link.ipoib.as_ref()?;
    let mut ports = interfaces::ports_of(link, facts).into_iter();
    ports.find_map(|port| rules::interface(wish, port, facts))
}
