// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a `bond=` requests: the bond, and its place among the named interfaces.

use kernel_cmdline::{Arguments, Bond, Interface};

use super::identity::{Key, bonds_of, is_single, key};
use super::{Collected, InterfaceWish};
use crate::wish::bond::{BondWish, MODE};
use crate::wish::ipoib::RequestedMtu;
use crate::wish::origin::{Requested, origin, requested};
use crate::wish::selector::Selector;

impl Collected<'_, '_> {
    /// Adds the interfaces of bonds, and the bonds.
    pub(super) fn bonded(&mut self) {
        let arguments = self.arguments;
        for bond in bonds_of(arguments) {
            let slaves = bond.value.slaves.iter();
            for slave in slaves.filter(|slave| is_single(arguments, slave)) {
                self.add(&bond.with(*slave), |ipoib| {
                    ipoib.bond.get_or_insert_with(|| bond.value.name.to_owned());
                });
            }
            self.add(&bond.with(Interface::Name(bond.value.name)), |ipoib| {
                ipoib.mtu = ipoib.mtu.or(bond.value.mtu.map(RequestedMtu::Bytes));
            });
        }
    }
}

/// Moves the bonds out of `interfaces`. Refuses the interfaces that are not possible because of a
/// bond.
pub fn bonds(
    arguments: &Arguments<'_>,
    interfaces: &mut Vec<Requested<InterfaceWish>>,
) -> Vec<Requested<RequestedBond>> {
    let mut bonds: Vec<Requested<RequestedBond>> = Vec::new();
    for asked in bonds_of(arguments) {
        let name = asked.value.name;
        let mut slaves = Vec::new();
        let own = Key {
            port: Selector::named(name),
            pkey: None,
        };
        let position = interfaces.iter().position(|one| one.value.is(&own));
        let entry = position.map(|position| interfaces.remove(position).value);
        let mut refused = match entry {
            Some(_) => None,
            None => Some(format!("an earlier bond= requests a bond {name}")),
        };
        let entry =
            entry.unwrap_or_else(|| InterfaceWish::new(name.to_owned(), own, origin(asked)));
        for slave in &asked.value.slaves {
            let key = key(arguments, slave);
            let found = interfaces
                .iter()
                .find(|one| one.value.is(&key))
                .filter(|_| is_single(arguments, slave));
            match found.map(|found| (&found.value.name, found.value.ipoib.bond.as_deref())) {
                None => {
                    refused.get_or_insert(format!(
                        "{slave} is not an InfiniBand interface: the kernel does not mix InfiniBand and \
                         other interfaces in one bond"
                    ));
                }
                Some((known, Some(other))) if other != name => {
                    refused.get_or_insert(format!("{known} is already in {other}"));
                }
                Some((known, _)) if slaves.contains(known) => {}
                Some((known, _)) => slaves.push(known.clone()),
            }
        }
        let refused = refused.or_else(|| impossible(&asked.value));
        let wish = RequestedBond {
            bond: bond_wish(&asked.value, slaves),
            interface: InterfaceWish { refused, ..entry },
        };
        bonds.push(requested(asked, wish));
    }
    refuse_slaves(&bonds, interfaces);
    refuse_partitions(&bonds, interfaces);
    bonds
}

/// The bond of an interface must be possible, and has the addresses and routes of the interface.
fn refuse_slaves(bonds: &[Requested<RequestedBond>], interfaces: &mut [Requested<InterfaceWish>]) {
    for interface in interfaces.iter_mut().map(|interface| &mut interface.value) {
        let Some(name) = interface.ipoib.bond.clone() else {
            continue;
        };
        let mut all = bonds.iter().map(|bond| &bond.value.interface);
        if all.any(|bond| bond.name == name && bond.refused.is_some()) {
            let reason = format!("the bond {name} of this interface cannot be created");
            interface.refused.get_or_insert(reason);
        } else if interface.ipoib.is_addressed() || interface.left {
            let reason = format!(
                "this interface is in {name}: give the address to the bond, ip=...:{name}:none"
            );
            interface.refused.get_or_insert(reason);
        } else if !(interface.ipoib.routes.is_empty() && interface.ipoib.gateways.is_empty()) {
            let reason = format!(
                "this interface is in {name}: give the route to the bond, rd.route=...:{name}"
            );
            interface.refused.get_or_insert(reason);
        }
    }
}

/// Only an IPoIB interface of a port has children: a bond has no `create_child`.
fn refuse_partitions(
    bonds: &[Requested<RequestedBond>],
    interfaces: &mut [Requested<InterfaceWish>],
) {
    for interface in interfaces.iter_mut().map(|interface| &mut interface.value) {
        let mut all = bonds.iter().map(|bond| &bond.value.interface);
        let parent = all.find(|bond| bond.port == interface.port);
        if let (Some(bond), Some(_)) = (parent, interface.ipoib.pkey) {
            let reason = format!(
                "{} is a bond: request a partition of its interfaces",
                bond.name
            );
            interface.refused.get_or_insert(reason);
        }
    }
}

/// Everything that one `bond=` requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedBond {
    /// The interface, with everything that other arguments request of it.
    pub interface: InterfaceWish,
    /// Its interfaces and options.
    pub bond: BondWish,
}

fn value_of<'b>(bond: &Bond<'b>, option: &str) -> Option<&'b str> {
    let mut options = bond.options.iter().rev();
    options.find(|(name, _)| *name == option).map(|(_, v)| *v)
}

/// Why InfiniBand interfaces cannot be in such a bond.
fn impossible(bond: &Bond<'_>) -> Option<String> {
    match (value_of(bond, "mode"), value_of(bond, "fail_over_mac")) {
        (Some(mode), _) if mode != MODE && mode != "1" => Some(format!(
            "mode={mode} is not possible: InfiniBand interfaces keep their hardware addresses, and the kernel \
             accepts them in active-backup mode only"
        )),
        (_, Some(policy)) if policy != "active" && policy != "1" => Some(format!(
            "fail_over_mac={policy} is not possible: the kernel sets it to active for InfiniBand interfaces"
        )),
        _ => None,
    }
}

/// The wish of one `bond=`. `slaves` are the names of its interfaces in the wishes.
fn bond_wish(bond: &Bond<'_>, slaves: Vec<String>) -> BondWish {
    let mut options: Vec<(String, String)> = Vec::new();
    for (option, value) in &bond.options {
        options.retain(|(known, _)| known != option);
        if !matches!(*option, "mode" | "fail_over_mac") {
            // The brackets of an IPv6 address are not part of it.
            let value = value.replace(['[', ']'], "");
            options.push(((*option).to_owned(), value));
        }
    }
    if value_of(bond, "miimon").is_none() && value_of(bond, "arp_interval").is_none() {
        options.push(("miimon".to_owned(), MIIMON.to_owned()));
    }
    BondWish { slaves, options }
}

/// Default interval of link monitoring, in milliseconds: the driver's default is no monitoring.
const MIIMON: &str = "100";
