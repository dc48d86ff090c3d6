// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: which interface a name, an address or a port on the command line means, and whether it is
//! InfiniBand.

use kernel_cmdline::{Arguments, Bond, HwAddr, Ifname, Interface, Pkey, Spanned};

use crate::wish::ipoib::{self, FULL_MEMBER};
use crate::wish::selector::Selector;

/// Identity of an interface: two names with the same port selector and P_Key mean one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) port: Selector,
    pub(super) pkey: Option<u16>,
}

/// `ib0.8001` is a child of `ib0`.
pub(super) fn split_child(name: &str) -> (&str, Option<u16>) {
    match name.rsplit_once('.') {
        // No interface can be the parent: the kernel accepts no such name.
        Some(("" | "." | "..", _)) => (name, None),
        Some((parent, digits)) if digits.len() == 4 => match u16::from_str_radix(digits, 16) {
            Ok(pkey) => (parent, Some(pkey | FULL_MEMBER)),
            Err(_) => (name, None),
        },
        _ => (name, None),
    }
}

/// Like `split_child`; the P_Key may have fewer digits if an `ib.pkey=` has the same name.
fn child_of<'a>(arguments: &Arguments<'_>, name: &'a str) -> (&'a str, Option<u16>) {
    let written = Pkey::parse(name);
    let written = written.filter(|child| arguments.pkeys.iter().any(|own| own.value == *child));
    match (written, name.rsplit_once('.')) {
        (Some(child), Some((parent, _))) => (parent, Some(child.full())),
        _ => split_child(name),
    }
}

/// The name of an interface as the kernel has it: of a child with bit 15 of the P_Key.
pub fn full_name(arguments: &Arguments<'_>, name: &str) -> String {
    match child_of(arguments, name) {
        (parent, Some(pkey)) => ipoib::child_name(parent, pkey),
        (name, None) => name.to_owned(),
    }
}

/// The `ifname=` of InfiniBand interfaces. An address of six bytes is one if the name is an
/// InfiniBand name: firmware makes such addresses from a port GUID.
pub(super) fn ifnames<'a, 'b>(
    arguments: &'a Arguments<'b>,
) -> impl Iterator<Item = &'a Spanned<'b, Ifname<'b>>> {
    arguments.net.ifname.iter().filter(|ifname| {
        let Ifname { name, address } = ifname.value;
        address.is_infiniband() || Interface::Name(name).is_infiniband()
    })
}

/// The name that `ifname=` gives to an InfiniBand address.
fn named_address<'a>(arguments: &'a Arguments<'_>, name: &str) -> Option<&'a HwAddr> {
    ifnames(arguments)
        .find(|ifname| ifname.value.name == name)
        .map(|ifname| &ifname.value.address)
}

pub(super) fn key(arguments: &Arguments<'_>, interface: &Interface<'_>) -> Key {
    match interface {
        Interface::Name(name) => {
            let (parent, pkey) = child_of(arguments, name);
            let address = named_address(arguments, parent);
            let port = address.map_or_else(|| Selector::named(parent), Selector::of_address);
            Key { port, pkey }
        }
        Interface::Address(address) => Key {
            port: Selector::of_address(address),
            pkey: None,
        },
        Interface::Port { .. } | Interface::Pci(_) => Key {
            port: interface.selector().into(),
            pkey: None,
        },
    }
}

/// Whether an interface is InfiniBand: by its name or address, by an `ifname=` that gives its name
/// to an InfiniBand address, or as a bond of such interfaces.
pub fn is_infiniband(arguments: &Arguments<'_>, interface: &Interface<'_>) -> bool {
    is_single(arguments, interface)
        || bonds_of(arguments).any(|bond| *interface == Interface::Name(bond.value.name))
}

/// Like `is_infiniband`, without bonds: a bond's name may also begin with `ib`.
pub(super) fn is_single(arguments: &Arguments<'_>, interface: &Interface<'_>) -> bool {
    let named = |name: &str| named_address(arguments, child_of(arguments, name).0).is_some();
    let bond = |name: &str| {
        arguments
            .net
            .bonds
            .iter()
            .any(|bond| bond.value.name == name)
    };
    match interface {
        Interface::Name(name) => !bond(name) && (interface.is_infiniband() || named(name)),
        Interface::Address(_) | Interface::Port { .. } | Interface::Pci(_) => {
            interface.is_infiniband()
        }
    }
}

/// The `bond=` of InfiniBand interfaces.
pub(super) fn bonds_of<'a, 'b>(
    arguments: &'a Arguments<'b>,
) -> impl Iterator<Item = &'a Spanned<'b, Bond<'b>>> {
    arguments.net.bonds.iter().filter(|bond| {
        let mut slaves = bond.value.slaves.iter();
        slaves.any(|slave| is_single(arguments, slave))
    })
}

#[cfg(test)]
mod tests {
    use crate::request::Request;

    #[test]
    fn a_name_without_a_parent_is_no_child() {
        for (name, port, pkey) in [
            ("ib0.8001", "ib0", Some(0x8001)),
            (".8001", ".8001", None),
            ("..8001", "..8001", None),
            ("...8001", "...8001", None),
        ] {
            let request = Request::from_text(&format!("rd.ib.mode={name}:connected"));
            let found = request.interfaces.iter().map(|found| &found.value);
            let found: Vec<_> = found
                .map(|one| (one.port.as_str(), one.ipoib.pkey))
                .collect();
            assert_eq!(found, [(port, pkey)]);
        }
    }
}
