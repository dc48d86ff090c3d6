// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the expectation, resolved against one snapshot: the interfaces it means, and what is
//! requested of each interface, including what leases granted.

use super::Ground;
use std::collections::BTreeSet;

use crate::facts::select::{self, Ports};
use crate::facts::{Facts, Netdev, PortRef, rules};
use crate::plan::Step;
use crate::rdma::types::LinkLayer;
use crate::wish::bond::{BondFacts, BondWish};
use crate::wish::expectation::{Expectation, LinkWish};
use crate::wish::ipoib::IpoibWish;

/// The expected state of the machine.
#[derive(Debug)]
pub struct Expected<'a> {
    /// The steps of the plan: port types, software links and RoCE modes.
    pub(super) steps: &'a [Step],
    /// The links.
    pub(super) links: &'a [LinkWish],
    /// IPoIB interfaces, including bonds' slaves.
    pub interfaces: Vec<Interface<'a>>,
    pub bonds: Vec<Bond<'a>>,
    /// The Ethernet interfaces of ports that are named, or that count for `all` or `eth:`. A RoCE port is
    /// ACTIVE only while its interface is up, and no other program of the initramfs sets an interface
    /// without address up. Other interfaces are not ours.
    pub(super) ethernet: Vec<&'a Netdev>,
}

/// An IPoIB interface on one port.
#[derive(Debug)]
pub struct Interface<'a> {
    /// What is requested, including what leases granted.
    pub wish: IpoibWish,
    /// The largest MTU in bytes that the driver accepts, if known.
    pub max_mtu: Option<u32>,
    /// The interface; none if it does not exist.
    pub(super) netdev: Option<&'a Netdev>,
    /// The parent of a child.
    pub(super) parent: Option<&'a Netdev>,
}

/// A bond of IPoIB interfaces.
#[derive(Debug)]
pub struct Bond<'a> {
    /// Name of the bond.
    pub(super) name: &'a str,
    /// What is requested of the bond.
    pub(super) bond: &'a BondWish,
    /// What is requested of the bond as an interface, including what leases granted.
    pub wish: IpoibWish,
    /// As [`Interface::max_mtu`].
    pub max_mtu: Option<u32>,
    /// The interface of the bond's name; none if it does not exist.
    pub(super) netdev: Option<&'a Netdev>,
    /// The slaves that are not refused.
    pub(super) slaves: Vec<Slave<'a>>,
}

/// A slave of a bond.
#[derive(Debug)]
pub(super) struct Slave<'a> {
    /// Name of the slave in `bond=`.
    name: &'a str,
    /// What is requested of the slave.
    pub(super) wish: &'a IpoibWish,
    /// The interface; none if it does not exist.
    pub(super) netdev: Option<&'a Netdev>,
}

impl<'a> Expected<'a> {
    /// Resolves `expectation`; no leases are included.
    pub fn new(steps: &'a [Step], expectation: &'a Expectation, facts: &'a Facts) -> Expected<'a> {
        let ports = Ports::new(facts);
        let named = rules::named_interfaces(expectation, &ports);
        let links = expectation.links.iter().chain(&expectation.any_port);
        let links = links.filter(|link| link.bond.is_none() && link.refused.is_none());
        let mut interfaces = Vec::new();
        for link in links {
            let Some(wish) = &link.ipoib else { continue };
            let found = ports.of(link);
            if rules::is_ambiguous(link, &found) {
                continue;
            }
            for port in found {
                if rules::wants_interface(link, port, &named) {
                    interfaces.push(Interface::new(link, wish, port, facts));
                }
            }
        }
        let links = expectation.links.iter();
        let bonds = links.filter_map(|link| Bond::new(link, expectation, facts));
        Expected {
            steps,
            links: &expectation.links,
            interfaces,
            bonds: bonds.collect(),
            ethernet: ethernet(expectation, &ports, facts),
        }
    }
}

fn ethernet<'a>(expectation: &Expectation, ports: &Ports<'a>, facts: &'a Facts) -> Vec<&'a Netdev> {
    let links = expectation.links.iter();
    let named = links
        .flat_map(|link| select::named(link, link.target.as_str(), link.target.selector(), facts));
    let is_meant = |any: &&LinkWish| {
        any.refused.is_none() && (any.required || any.link_layer == Some(LinkLayer::Ethernet))
    };
    let counted = expectation.any_port.iter().filter(is_meant);
    let names: BTreeSet<&str> = named
        .chain(counted.flat_map(|any| ports.of(any)))
        .filter(|found| found.port.link_layer == Some(LinkLayer::Ethernet))
        .filter_map(|found| found.port.netdev.as_deref())
        .collect();
    names
        .into_iter()
        .filter_map(|name| facts.netdev(name))
        .collect()
}

impl<'a> Interface<'a> {
    fn new(
        link: &LinkWish,
        wish: &IpoibWish,
        port: PortRef<'_>,
        facts: &'a Facts,
    ) -> Interface<'a> {
        let parent = wish.pkey.and_then(|_| rules::own_interface(port, facts));
        Interface {
            wish: wish.clone(),
            max_mtu: None,
            netdev: rules::interface(link, port, facts),
            parent,
        }
    }

    /// The interface and its index, if it has its name and may have addresses.
    pub fn ready(&self, ground: &Ground) -> Option<(&'a Netdev, u32)> {
        let netdev = self.netdev.filter(|netdev| ground.is_named(netdev))?;
        let name = self.wish.ifname.as_ref();
        let is_named = name.is_none_or(|name| *name == netdev.ifname);
        let is_own = is_named && self.wish.bond.is_none();
        Some((netdev, netdev.ifindex.filter(|_| is_own)?))
    }
}

impl<'a> Bond<'a> {
    fn new(link: &'a LinkWish, expectation: &'a Expectation, facts: &'a Facts) -> Option<Bond<'a>> {
        let bond = link.bond.as_ref().filter(|_| link.refused.is_none())?;
        let links = expectation.links.iter();
        let links = links.filter(|link| bond.slaves.iter().any(|slave| link.target == *slave));
        let slaves = links.filter(|link| link.refused.is_none());
        let slaves = slaves.filter_map(|link| {
            Some(Slave {
                name: link.target.as_str(),
                wish: link.ipoib.as_ref()?,
                netdev: interface_of(link, facts),
            })
        });
        Some(Bond {
            name: link.target.as_str(),
            bond,
            wish: link.ipoib.clone()?,
            max_mtu: None,
            netdev: facts.netdev(link.target.as_str()),
            slaves: slaves.collect(),
        })
    }

    /// The bond, its state and its index, if the bond has slaves.
    pub fn ready(&self) -> Option<(&'a Netdev, &'a BondFacts, u32)> {
        let netdev = self.netdev?;
        let found = netdev.bond.as_ref().filter(|b| !b.slaves.is_empty())?;
        Some((netdev, found, netdev.ifindex?))
    }

    /// The slaves in the order of the command line; none for a slave that does not exist.
    pub fn named(&self) -> Vec<Option<&'a Netdev>> {
        let find = |name: &String| self.slaves.iter().find(|slave| slave.name == *name)?.netdev;
        self.bond.slaves.iter().map(find).collect()
    }
}

/// The interface that a link means.
fn interface_of<'f>(link: &LinkWish, facts: &'f Facts) -> Option<&'f Netdev> {
    let ports = Ports::new(facts).of(link);
    let is_one = !rules::is_ambiguous(link, &ports);
    let mut ports = ports.into_iter().filter(|_| is_one);
    ports.find_map(|port| rules::interface(link, port, facts))
}
