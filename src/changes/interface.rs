// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: an IPoIB interface: child, name, mode, up, carrier, MTU, addresses, in this order. The mode
//! before up, because some drivers take it only then; the MTU after carrier, because the broadcast
//! group decides it.

use super::{Draft, Expected, Interface, Need, Setting, What, ground};
use crate::error::Error;
use crate::facts::{Netdev, rules, select};
use crate::hardware::HardwareType;
use crate::rdma::types::LinkLayer;
use crate::wish::ipoib::{FULL_MEMBER, WantedMtu, Wish};

impl Draft<'_> {
    /// The next changes of an interface.
    pub(super) fn interface(&mut self, interface: &Interface<'_>) {
        let wish = &interface.wish;
        let Some(netdev) = interface.netdev else {
            return self.child(interface);
        };
        if !self.is_settled(netdev) {
            return;
        }
        if let Some(name) = wish.ifname.as_deref().filter(|name| *name != netdev.ifname) {
            return self.rename(netdev, name);
        }
        self.mode(wish, netdev);
        // A child is up only while its parent is.
        if let Some(parent) = interface.parent {
            self.up(parent);
        }
        // Its bond sets it up, and has what follows.
        if wish.bond.is_none() {
            self.addressed(wish, netdev, interface.max_mtu, &[]);
        }
    }

    fn child(&mut self, interface: &Interface<'_>) {
        // The kernel makes the child's name out of its parent's.
        if let (Some(pkey), Some(parent)) = (interface.wish.pkey, interface.parent)
            && self.is_settled(parent)
        {
            self.set(parent, Setting::CreateChild(pkey | FULL_MEMBER));
        }
    }

    fn rename(&mut self, netdev: &Netdev, name: &str) {
        let facts = self.facts;
        let Some(other) = facts.netdev(name) else {
            return self.set(netdev, Setting::Rename(name.to_owned()));
        };
        if other.hardware_type != Some(HardwareType::InfiniBand) {
            let error = Error::new(&netdev.ifname, format!("cannot be renamed to {name}"))
                .seen("an interface that is not InfiniBand has this name")
                .hint("choose another name in ifname=");
            return self.refuse(netdev, error);
        }
        // Another interface in the way steps aside: ifname= may swap ib0 and ib1.
        if self.is_settled(other) {
            let aside = format!("ib-aside{}", other.ifindex.unwrap_or(0));
            self.set(other, Setting::Rename(aside));
        }
    }

    fn mode(&mut self, wish: &Wish, netdev: &Netdev) {
        let found = netdev.ipoib.as_ref().and_then(|seen| seen.mode);
        match wish.mode.map(|wanted| rules::mode(wanted, netdev)) {
            Some(Ok(mode)) if found != Some(mode) => self.set(netdev, Setting::Mode(mode)),
            // The check of the mode says that waiting does not help.
            Some(Err(reason)) => self.refuse(netdev, Error::new(&netdev.ifname, reason)),
            _ => {}
        }
    }

    /// What an interface and a bond have in common. IPv6 is set before the interface is up: the kernel
    /// solicits routers then.
    pub(super) fn addressed(
        &mut self,
        wish: &Wish,
        netdev: &Netdev,
        max_mtu: Option<u32>,
        slaves: &[&Netdev],
    ) {
        for (name, value) in ground::sysctls(wish) {
            if !self.ground.has_sysctl(&netdev.ifname, name, value) {
                self.set(netdev, Setting::Sysctl(name, value));
            }
        }
        self.up(netdev);
        if netdev.carrier != Some(true) {
            return;
        }
        if let Some(wanted) = wish.mtu
            && let Some(bytes) = rules::mtu_to_set(wanted, netdev)
        {
            // "As much as there is" is no failure where the device has less.
            let need = match wanted {
                WantedMtu::Max => Need::Best,
                WantedMtu::Bytes(_) => Need::Requested,
            };
            self.on(netdev, need, What::Set(Setting::Mtu(bytes)));
        }
        let suggested = &wish.suggested;
        if let Some(bytes) = rules::suggested_mtu(suggested, netdev, max_mtu, slaves) {
            // What the device makes of it, its check says.
            let need = Need::Suggested(suggested.by);
            self.on(netdev, need, What::Set(Setting::Mtu(bytes)));
        }
        self.addresses(wish, netdev);
    }

    /// A RoCE port is ACTIVE only while its interface is up: nothing else in an initramfs sets
    /// an interface up that carries no address. Only what is named: the others are not ours.
    pub(super) fn ethernet(&mut self, expected: &Expected<'_>) {
        let facts = self.facts;
        let selectors = expected
            .links
            .iter()
            .filter_map(|link| kernel_cmdline::Selector::parse(link.wanted.as_str()));
        let mut names: Vec<&str> = selectors
            .flat_map(|selector| select::ports(&selector, facts))
            .filter(|found| found.port.link_layer == Some(LinkLayer::Ethernet))
            .filter_map(|found| found.port.netdev.as_deref())
            .collect();
        names.sort_unstable();
        for netdev in names.into_iter().filter_map(|name| facts.netdev(name)) {
            self.up(netdev);
        }
    }
}
