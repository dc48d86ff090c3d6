// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the bonds of IPoIB interfaces, from the named interfaces.

use kernel_cmdline::{Arguments, Bond};

use crate::request::interfaces::{InterfaceWish, bonds_of, is_single, key};
use crate::wish::bond::{BondWish, MODE};
use crate::wish::ipoib::IpoibWish;
use crate::wish::origin::{Origin, Requested, requested};

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
        let is_it = |interface: &Requested<InterfaceWish>| interface.value.port == name;
        let position = interfaces.iter().position(is_it);
        let entry = position.map(|position| interfaces.remove(position).value);
        let mut refused = match entry {
            Some(_) => None,
            None => Some(format!("an earlier bond= requests a bond {name}")),
        };
        for slave in &asked.value.slaves {
            let key = key(arguments, slave);
            let found = interfaces
                .iter()
                .find(|i| i.value.port == key.port && i.value.ipoib.pkey == key.pkey)
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
        bonds.push(requested(
            asked,
            bond_wish(&asked.value, slaves, entry, refused),
        ));
    }
    for interface in interfaces.iter_mut().map(|interface| &mut interface.value) {
        let Some(name) = interface.ipoib.bond.clone() else {
            continue;
        };
        let of_it = |bond: &&Requested<RequestedBond>| {
            bond.value.name == name && bond.value.refused.is_some()
        };
        if bonds.iter().any(|bond| of_it(&bond)) {
            let reason = format!("the bond {name} of this interface cannot be created");
            interface.refused.get_or_insert(reason);
        } else if interface.ipoib.is_addressed() || interface.left {
            let reason = format!(
                "this interface is in {name}: give the address to the bond, ip=...:{name}:none"
            );
            interface.refused.get_or_insert(reason);
        }
    }
    bonds
}

/// Everything that one `bond=` requests, and why it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedBond {
    pub name: String,
    /// Its interfaces and options.
    pub bond: BondWish,
    /// MTU and addresses.
    pub ipoib: IpoibWish,
    /// Why the bond is not possible.
    pub refused: Option<String>,
    /// The addresses are left to the image's network module.
    pub left: bool,
    /// Every argument that the wish follows.
    pub follows: Vec<Origin>,
}

/// The wish of one `bond=`. `slaves` are the names of its interfaces in the wishes, `entry` is what
/// the other arguments request of the bond, `refused` is why the bond is not possible.
fn bond_wish(
    bond: &Bond<'_>,
    slaves: Vec<String>,
    entry: Option<InterfaceWish>,
    refused: Option<String>,
) -> RequestedBond {
    let value_of = |option: &str| {
        let mut options = bond.options.iter().rev();
        options.find(|(name, _)| *name == option).map(|(_, v)| *v)
    };
    let refused = refused.or_else(|| match (value_of("mode"), value_of("fail_over_mac")) {
        (Some(mode), _) if mode != MODE && mode != "1" => Some(format!(
            "mode={mode} is not possible: InfiniBand interfaces keep their hardware addresses, and the kernel \
             accepts them in active-backup mode only"
        )),
        (_, Some(policy)) if policy != "active" && policy != "1" => Some(format!(
            "fail_over_mac={policy} is not possible: the kernel sets it to active for InfiniBand interfaces"
        )),
        _ => None,
    });
    let mut options: Vec<(String, String)> = Vec::new();
    for (option, value) in &bond.options {
        options.retain(|(known, _)| known != option);
        if !matches!(*option, "mode" | "fail_over_mac") {
            // The brackets of an IPv6 address are not part of it.
            let value = value.replace(['[', ']'], "");
            options.push(((*option).to_owned(), value));
        }
    }
    if value_of("miimon").is_none() && value_of("arp_interval").is_none() {
        options.push(("miimon".to_owned(), MIIMON.to_owned()));
    }
    RequestedBond {
        name: bond.name.to_owned(),
        bond: BondWish { slaves, options },
        left: entry.as_ref().is_some_and(|entry| entry.left),
        follows: entry
            .as_ref()
            .map_or_else(Vec::new, |entry| entry.follows.clone()),
        ipoib: IpoibWish {
            // The mode belongs to the slaves, not to the bond.
            mode: None,
            ..entry.map(|entry| entry.ipoib).unwrap_or_default()
        },
        refused,
    }
}

/// Default interval of link monitoring, in milliseconds: the driver's default is no monitoring.
const MIIMON: &str = "100";
