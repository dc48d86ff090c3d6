// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: an IPoIB interface: child, name, mode, up, carrier, MTU, addresses, in this order. The
//! mode precedes up, because some drivers accept it only then; the MTU follows the carrier, because
//! the broadcast group limits it.

use super::{Draft, Expected, Interface, Need, Setting, What, Writing, ground};
use crate::error::Error;
use crate::facts::{Netdev, rules};
use crate::hardware::HardwareType;
use crate::wish::ipoib::{FULL_MEMBER, IpoibWish, RequestedMtu};

impl Draft<'_> {
    /// The next changes of an interface.
    pub(super) fn interface(&mut self, interface: &Interface<'_>) {
        let wish = &interface.wish;
        let Some(netdev) = interface.netdev else {
            return self.child(interface);
        };
        if !self.settle(netdev) {
            return;
        }
        if let Some(name) = wish.ifname.as_deref().filter(|name| *name != netdev.ifname) {
            return self.rename(netdev, name);
        }
        self.mode(wish, netdev);
        // A child is up only while its parent is up.
        if let Some(parent) = interface.parent {
            self.up(parent);
        }
        // A slave stops here: the bond sets it up, and has the MTU and the addresses.
        if wish.bond.is_none() {
            self.addressed(wish, netdev, interface.max_mtu, &[]);
        }
    }

    fn child(&mut self, interface: &Interface<'_>) {
        // The kernel derives the child's name from the parent's name.
        if let (Some(pkey), Some(parent)) = (interface.wish.pkey, interface.parent)
            && self.settle(parent)
            && !rules::is_in_partition(parent, pkey)
        {
            self.write(parent, Writing::CreateChild(pkey | FULL_MEMBER));
        }
    }

    fn rename(&mut self, netdev: &Netdev, name: &str) {
        let facts = self.facts;
        let Some(other) = facts.netdev(name) else {
            return self.set(netdev, Setting::Rename(name.to_owned()));
        };
        if other.hardware_type != Some(HardwareType::InfiniBand) {
            let error = Error::new(&netdev.ifname, format!("cannot be renamed to {name}"))
                .found("an interface that is not InfiniBand has this name")
                .hint("choose another name in ifname=");
            return self.refuse(netdev, error);
        }
        // Rename an InfiniBand interface that has the name, because ifname= may swap ib0 and ib1.
        if let Some(index) = other.ifindex
            && self.settle(other)
        {
            let aside = format!("ib-aside{index}");
            self.set(other, Setting::Rename(aside));
        }
    }

    fn mode(&mut self, wish: &IpoibWish, netdev: &Netdev) {
        let found = rules::current_mode(netdev);
        match wish.mode.map(|requested| rules::mode(requested, netdev)) {
            Some(Ok(mode)) if found != Some(mode) => self.write(netdev, Writing::Mode(mode)),
            // The check of the mode reports that waiting does not help.
            Some(Err(reason)) => self.refuse(netdev, Error::new(&netdev.ifname, reason)),
            _ => {}
        }
    }

    /// Changes that an interface and a bond have in common. IPv6 settings precede up: the kernel
    /// solicits routers when the interface is up.
    pub(super) fn addressed(
        &mut self,
        wish: &IpoibWish,
        netdev: &Netdev,
        max_mtu: Option<u32>,
        slaves: &[&Netdev],
    ) {
        for (name, value) in ground::sysctls(wish) {
            if !self.ground.has_sysctl(&netdev.ifname, name, value) {
                self.write(netdev, Writing::Sysctl(name, value));
            }
        }
        self.up(netdev);
        if netdev.carrier != Some(true) {
            return;
        }
        if let Some(requested) = wish.mtu
            && let Some(bytes) = rules::mtu_to_set(requested, netdev)
        {
            // For "max", a smaller MTU of the device is not a failure.
            let need = match requested {
                RequestedMtu::Max => Need::Best,
                RequestedMtu::Bytes(_) => Need::Requested,
            };
            self.on(netdev, need, What::Set(Setting::Mtu(bytes)));
        }
        let suggested = &wish.suggested;
        if let Some(bytes) = rules::suggested_mtu(suggested, netdev, max_mtu, slaves) {
            // The check of the MTU reports the value that the device accepted.
            let need = Need::Suggested(suggested.by);
            self.on(netdev, need, What::Set(Setting::Mtu(bytes)));
        }
        // The first packet from an address must not be lost.
        if netdev.can_transmit() {
            self.addresses(wish, netdev);
        }
    }

    /// Sets the Ethernet interfaces up.
    pub(super) fn ethernet(&mut self, expected: &Expected<'_>) {
        for netdev in expected.ethernet.iter().copied() {
            self.ethernet_up(netdev);
        }
    }
}
