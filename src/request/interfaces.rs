// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the IPoIB interfaces that a command line names, each once, with everything requested of it.

mod bonds;
mod boot;
mod client_ids;
mod identity;
mod ip;
mod modes;
mod routes;

use identity::{Key, key, split_child};
use kernel_cmdline::{Arguments, Interface, Spanned, StackKind};

use crate::wish::ipoib::{self, FULL_MEMBER, IpoibWish};
use crate::wish::origin::{Origin, Requested, origin, requested};
use crate::wish::selector::Selector;

pub use bonds::RequestedBond;
pub(super) use bonds::bonds;
pub(super) use boot::{boot_device, is_anywhere, is_named, is_without_ip, unaddressed};
pub(super) use identity::{full_name, is_infiniband};
pub(super) use ip::is_addressed;
pub(super) use modes::unnamed;

/// An IPoIB interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceWish {
    /// Its name, as on the command line.
    pub name: String,
    /// The selector of its port.
    pub port: Selector,
    /// What is requested of the interface.
    pub ipoib: IpoibWish,
    /// Why the interface is not possible.
    pub refused: Option<String>,
    /// The addresses are left to the image's network module, which must be able to set the
    /// interface up.
    pub left: bool,
    /// Every argument that the wish follows.
    pub follows: Vec<Origin>,
}

impl InterfaceWish {
    /// The interface of `key`, of which nothing else is requested yet.
    fn new(name: String, key: Key, by: Origin) -> InterfaceWish {
        InterfaceWish {
            name,
            port: key.port,
            ipoib: IpoibWish {
                pkey: key.pkey,
                ..IpoibWish::default()
            },
            refused: None,
            left: false,
            follows: vec![by],
        }
    }

    fn key(&self) -> Key {
        Key {
            port: self.port.clone(),
            pkey: self.ipoib.pkey,
        }
    }

    fn is(&self, key: &Key) -> bool {
        self.port == key.port && self.ipoib.pkey == key.pkey
    }

    /// Whether ibboot sets the interface up and addresses it.
    pub fn is_ours(&self) -> bool {
        !self.left && self.refused.is_none()
    }
}

/// All named interfaces, each once, with everything requested of it. First the arguments that name
/// interfaces, then those that apply to named interfaces.
pub(super) fn named(arguments: &Arguments<'_>) -> Vec<Requested<InterfaceWish>> {
    let mut collected = Collected {
        arguments,
        found: Vec::new(),
    };
    collected.ifnames();
    collected.ips();
    collected.children();
    collected.bonded();
    collected.stacked();
    collected.booted();
    collected.boot_addresses();
    collected.set_only();
    collected.modes();
    collected.mtus();
    collected.mark_boot_device();
    collected.nameservers();
    collected.routes();
    collected.client_ids();
    collected.partition_ids();
    for found in &mut collected.found {
        let ipoib = &mut found.value.ipoib;
        ipoib.add_neighbours();
        if ipoib.pkey == Some(FULL_MEMBER) {
            let reason = "0 and 8000 are not P_Keys: the kernel creates no such child";
            found.value.refused.get_or_insert(reason.to_owned());
        }
        ipoib.second_family = ip::second_family(arguments, ipoib);
        let settings = ip::settings(arguments, ipoib);
        found.value.follows.extend(settings);
    }
    refuse_shared_names(&mut collected.found);
    collected.found
}

/// Refuses the second interface of one name: two of them would rename each other for ever.
fn refuse_shared_names(found: &mut [Requested<InterfaceWish>]) {
    let mut names: Vec<(String, Selector)> = Vec::new();
    for interface in found {
        let Some(name) = interface.value.ipoib.ifname.clone() else {
            continue;
        };
        match names.iter().find(|(taken, _)| *taken == name) {
            Some((_, port)) => {
                interface.value.refused =
                    Some(format!("ifname= already gives the name {name} to {port}"));
            }
            None => names.push((name, interface.value.port.clone())),
        }
    }
}

/// The interfaces that the arguments have named so far.
struct Collected<'a, 'b> {
    arguments: &'a Arguments<'b>,
    found: Vec<Requested<InterfaceWish>>,
}

impl Collected<'_, '_> {
    fn find(&mut self, key: &Key) -> Option<&mut Requested<InterfaceWish>> {
        self.found.iter_mut().find(|found| found.value.is(key))
    }

    /// Like [`Collected::change`], for the wish of the interface.
    fn add(&mut self, interface: &Spanned<'_, Interface<'_>>, change: impl FnOnce(&mut IpoibWish)) {
        self.change(interface, |found| change(&mut found.ipoib));
    }

    /// Changes the entry of this interface; adds the entry if this is the first argument that names
    /// it.
    fn change(
        &mut self,
        interface: &Spanned<'_, Interface<'_>>,
        change: impl FnOnce(&mut InterfaceWish),
    ) {
        let key = key(self.arguments, &interface.value);
        if let Some(found) = self.find(&key) {
            found.value.follows.push(origin(interface));
            change(&mut found.value);
            return;
        }
        let name = match interface.value {
            // With fewer digits than the kernel writes.
            Interface::Name(name) if split_child(name).1 != key.pkey => {
                full_name(self.arguments, name)
            }
            other => other.to_string(),
        };
        let mut entry = InterfaceWish::new(name, key, origin(interface));
        change(&mut entry);
        if !matches!(interface.value, Interface::Name(_)) {
            let name = entry.ipoib.ifname.clone();
            entry.name = name.unwrap_or_else(|| entry.port.to_string());
        }
        self.found.push(requested(interface, entry));
    }

    fn ifnames(&mut self) {
        for ifname in identity::ifnames(self.arguments) {
            let interface = ifname.with(Interface::Address(ifname.value.address));
            self.add(&interface, |ipoib| {
                ipoib.ifname = Some(ifname.value.name.to_owned())
            });
        }
    }

    /// Adds the children of `ib.pkey=`, with the names that the kernel will give them.
    fn children(&mut self) {
        for pkey in &self.arguments.pkeys {
            // The parent must be up, but needs no carrier: its own partition may not exist.
            let parent = &pkey.value.parent;
            let child = Key {
                pkey: Some(pkey.value.full()),
                ..key(self.arguments, parent)
            };
            if let Some(found) = self.find(&child) {
                found.value.follows.push(origin(pkey));
                continue;
            }
            let name = ipoib::child_name(&parent.to_string(), pkey.value.full());
            let entry = InterfaceWish::new(name, child, origin(pkey));
            self.found.push(requested(pkey, entry));
        }
    }

    /// Adds what other programs would make of InfiniBand interfaces, refused: the boot would wait for
    /// such an interface until the deadline.
    fn stacked(&mut self) {
        let arguments = self.arguments;
        let is_ours = |interface: &Interface<'_>| is_infiniband(arguments, interface);
        let all = arguments.net.stacked.iter();
        for stacked in all.filter(|stacked| stacked.value.below.iter().any(is_ours)) {
            let reason = match stacked.value.kind {
                StackKind::Vlan => {
                    "the kernel creates no VLAN on an InfiniBand interface (NETIF_F_VLAN_CHALLENGED): ib.pkey= \
                     creates an interface for a partition"
                }
                StackKind::Bridge => "the kernel accepts only Ethernet interfaces in a bridge",
                StackKind::Team => "ibboot creates no team of InfiniBand interfaces: write bond=",
            };
            self.change(
                &stacked.with(Interface::Name(stacked.value.name)),
                |found| {
                    found.refused = Some(reason.to_owned());
                },
            );
        }
    }
}
