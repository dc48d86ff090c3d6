// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the bonds of IPoIB interfaces, out of the interfaces that are named.

use kernel_cmdline::Arguments;

use super::{bonds_of, is_single, key};
use crate::bond::{self, BondWish};
use crate::request::{InterfaceWish, Wish, wish};

/// Takes the bonds out of `interfaces`. Interfaces that cannot be had because of them are refused.
pub fn bonds(
    arguments: &Arguments<'_>,
    interfaces: &mut Vec<Wish<InterfaceWish>>,
) -> Vec<Wish<BondWish>> {
    let mut bonds: Vec<Wish<BondWish>> = Vec::new();
    for asked in bonds_of(arguments) {
        let name = asked.value.name;
        let mut slaves = Vec::new();
        let is_it = |interface: &Wish<InterfaceWish>| interface.value.port == name;
        let position = interfaces.iter().position(is_it);
        let entry = position.map(|position| interfaces.remove(position).value);
        let mut refused = match entry {
            Some(_) => None,
            None => Some(format!("a bond {name} is asked for already")),
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
                        "{slave} is not an InfiniBand interface: the kernel does not mix them with others \
                         in one bond"
                    ));
                }
                Some((known, Some(other))) if other != name => {
                    refused.get_or_insert(format!("{known} is in {other} already"));
                }
                Some((known, _)) if slaves.contains(known) => {}
                Some((known, _)) => slaves.push(known.clone()),
            }
        }
        bonds.push(wish(
            asked,
            bond::wish(&asked.value, slaves, entry, refused),
        ));
    }
    for interface in interfaces.iter_mut().map(|interface| &mut interface.value) {
        let Some(name) = interface.ipoib.bond.clone() else {
            continue;
        };
        let of_it =
            |bond: &&Wish<BondWish>| bond.value.name == name && bond.value.refused.is_some();
        if bonds.iter().any(|bond| of_it(&bond)) {
            let reason = format!("its bond {name} cannot be made");
            interface.refused.get_or_insert(reason);
        } else if interface.ipoib.is_addressed() || interface.left {
            let reason =
                format!("it is in {name}: give the address to the bond, ip=...:{name}:none");
            interface.refused.get_or_insert(reason);
        }
    }
    bonds
}
