// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the IPoIB interfaces that a command line names, from the arguments that name interfaces:
//! `ip=`, `ifname=`, `bond=`, `bootdev=`, `BOOTIF=`, `ib.pkey=`, `rd.ib.mode=`, `rd.ib.mtu=`.

mod addressing;
mod bonds;
mod boot;

use std::net::IpAddr;

use addressing::{addressed, second_family, settings};
use kernel_cmdline::{
    Arguments, Bond, ClientIdForm, HwAddr, Ifname, Interface, Ip, Pkey, Spanned, StackKind,
};

use crate::dhcp::identity::RequestedId;
use crate::inet::{Address, Route};
use crate::wish::ipoib::{self, FULL_MEMBER, IpoibWish, RequestedMtu};
use crate::wish::origin::{Origin, Requested, origin, requested};
use crate::wish::selector::Selector;

pub use addressing::is_addressed;
pub use bonds::{RequestedBond, bonds};
pub use boot::{boot_device, is_anywhere, is_named, is_without_ip, unaddressed};

/// Identity of an interface: two names with the same port selector and P_Key mean one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    port: Selector,
    pkey: Option<u16>,
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

/// `ib0.8001` is a child of `ib0`.
fn split_child(name: &str) -> (&str, Option<u16>) {
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
fn ifnames<'a, 'b>(
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

fn key(arguments: &Arguments<'_>, interface: &Interface<'_>) -> Key {
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
fn is_single(arguments: &Arguments<'_>, interface: &Interface<'_>) -> bool {
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
fn bonds_of<'a, 'b>(
    arguments: &'a Arguments<'b>,
) -> impl Iterator<Item = &'a Spanned<'b, Bond<'b>>> {
    arguments.net.bonds.iter().filter(|bond| {
        let mut slaves = bond.value.slaves.iter();
        slaves.any(|slave| is_single(arguments, slave))
    })
}

/// All named interfaces, each once, with everything requested of it. First the arguments that name
/// interfaces, then those that apply to named interfaces.
pub fn named(arguments: &Arguments<'_>) -> Vec<Requested<InterfaceWish>> {
    let mut collected = Collected {
        arguments,
        found: Vec::new(),
    };
    collected.ifnames();
    collected.ips();
    collected.children();
    collected.bonds();
    collected.stacked();
    collected.booted();
    collected.boot_addresses();
    collected.set();
    collected.modes();
    collected.mtus();
    collected.boot_device();
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
        ipoib.second_family = second_family(arguments, ipoib);
        found
            .value
            .follows
            .extend(settings(arguments, &found.value.ipoib));
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

/// What `rd.ib.mode=` and `rd.ib.mtu=` without an interface request of every interface.
pub fn unnamed(arguments: &Arguments<'_>) -> Option<Requested<IpoibWish>> {
    let mode = arguments
        .ib
        .modes
        .iter()
        .rfind(|mode| mode.value.interface.is_none());
    let mtu = arguments
        .ib
        .mtus
        .iter()
        .rfind(|mtu| mtu.value.interface.is_none());
    let wish = IpoibWish {
        mode: mode.map(|mode| mode.value.mode),
        mtu: mtu.map(|mtu| mtu.value.mtu),
        ..IpoibWish::default()
    };
    mode.map(|mode| requested(mode, wish.clone()))
        .or_else(|| mtu.map(|mtu| requested(mtu, wish.clone())))
}

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
                let (parent, pkey) = child_of(self.arguments, name);
                pkey.map_or_else(|| name.to_owned(), |pkey| ipoib::child_name(parent, pkey))
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
        for ifname in ifnames(self.arguments) {
            let interface = ifname.with(Interface::Address(ifname.value.address));
            self.add(&interface, |ipoib| {
                ipoib.ifname = Some(ifname.value.name.to_owned())
            });
        }
    }

    fn ips(&mut self) {
        let arguments = self.arguments;
        let ours = |ip: &Ip<'_>| ip.interface.is_some_and(|i| is_infiniband(arguments, &i));
        for ip in arguments.net.ip.iter().filter(|ip| ours(&ip.value)) {
            if let Some(interface) = ip.value.interface {
                self.ip(&ip.value, &ip.with(interface));
            }
        }
    }

    fn children(&mut self) {
        for pkey in &self.arguments.pkeys {
            // The parent must be up, but needs no carrier: its own partition may not exist.
            let parent = &pkey.value.parent;
            let port = key(self.arguments, parent).port;
            self.child(pkey, &parent.to_string(), port, pkey.value.full());
        }
    }

    /// Adds the interfaces of bonds, and the bonds.
    fn bonds(&mut self) {
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

    /// Adds what other programs would make of InfiniBand interfaces, refused: the boot would wait for
    /// such an interface until the deadline.
    fn stacked(&mut self) {
        let arguments = self.arguments;
        let is_ours = |interface: &Interface<'_>| is_infiniband(arguments, interface);
        let all = arguments.net.stacked.iter();
        for stacked in all.filter(|stacked| stacked.value.below.iter().any(is_ours)) {
            let reason = match stacked.value.kind {
                StackKind::Vlan => {
                    "the kernel makes no VLAN on an InfiniBand interface (NETIF_F_VLAN_CHALLENGED): ib.pkey= makes \
                     an interface for a partition"
                }
                StackKind::Bridge => "the kernel takes only Ethernet interfaces into a bridge",
                StackKind::Team => "ibboot makes no team of InfiniBand interfaces: write bond=",
            };
            self.change(
                &stacked.with(Interface::Name(stacked.value.name)),
                |found| {
                    found.refused = Some(reason.to_owned());
                },
            );
        }
    }

    /// `bootdev=` and `BOOTIF=`.
    fn booted(&mut self) {
        let arguments = self.arguments;
        let bootdev = arguments.net.bootdev.iter();
        for interface in bootdev.filter(|bootdev| is_infiniband(arguments, &bootdev.value)) {
            self.add(interface, |_| ());
        }
        // bootdev= has precedence: the address may be that of another port.
        let bootif = arguments.boot_interface();
        let bootif = bootif.filter(|_| arguments.net.bootdev.is_none());
        if let Some(bootif) = bootif.filter(|bootif| bootif.value.is_infiniband()) {
            self.add(&bootif.with(Interface::Address(bootif.value)), |_| ());
        }
    }

    /// Adds what an `ip=` requests of this interface.
    fn ip(&mut self, ip: &Ip<'_>, interface: &Spanned<'_, Interface<'_>>) {
        let arguments = self.arguments;
        let is_static = ip.methods.iter().all(|method| method.is_static());
        self.change(interface, |found| {
            let ipoib = &mut found.ipoib;
            let is_left = !addressed(arguments, ip, ipoib) && !is_static;
            found.left |= is_left;
            // Beside the address of a server, as nm-initrd-generator and systemd-network-generator
            // set it.
            if let Some(client) = ip.client.filter(|_| !is_left) {
                let host = Address::host(client.address);
                ipoib.addresses.push(Address {
                    prefix: client.prefix.unwrap_or(host.prefix),
                    ..host
                });
                ipoib.gateways.extend(ip.gateway);
            }
            // The boot server too, which dracut uses for a root file system that names no server.
            if !is_left {
                ipoib.peer = ip.peer.map(|peer| peer.address).or(ipoib.peer);
            }
            let hostname = ip.hostname.map(str::to_owned);
            ipoib.hostname = hostname.or_else(|| ipoib.hostname.take());
            ipoib.dns.extend(ip.dns1.into_iter().chain(ip.dns2));
            ipoib.mtu = ip.mtu.map(RequestedMtu::Bytes).or(ipoib.mtu);
        });
    }

    /// Adds what an `ip=` without an interface, or no `ip=`, requests of the boot device.
    fn boot_addresses(&mut self) {
        let arguments = self.arguments;
        let Some(device) = boot::unaddressed(arguments) else {
            return;
        };
        let anywhere = arguments.net.ip.iter();
        for ip in anywhere.filter(|ip| ip.value.interface.is_none()) {
            self.ip(&ip.value, &device);
            let key = key(arguments, &device.value);
            if let Some(found) = self.find(&key) {
                found.value.follows.push(origin(ip));
            }
        }
        if let Some(ip) = boot::implied(arguments) {
            self.ip(&ip, &device);
        }
    }

    /// Sets client identifiers. Those for one interface precede those for all; an identifier that
    /// the command line gives as bytes precedes both.
    fn client_ids(&mut self) {
        let arguments = self.arguments;
        let of_form = |form: ClientIdForm| match form {
            ClientIdForm::Firmware => RequestedId::Firmware,
            ClientIdForm::Guid => RequestedId::Hardware,
        };
        for found in &mut self.found {
            let means = |interface: &Interface<'_>| found.value.is(&key(arguments, interface));
            let (mut client_id, mut by) = (RequestedId::default(), None);
            let forms = &arguments.ib.client_ids;
            let all = forms.iter().filter(|id| id.value.interface.is_none());
            let named = forms.iter().filter(|id| {
                let interface = id.value.interface.as_ref();
                interface.is_some_and(means)
            });
            for id in all.chain(named) {
                client_id = of_form(id.value.form);
                by = Some(origin(id));
            }
            let explicit = arguments.net.dhcp.client_ids.iter();
            for id in explicit.filter(|id| means(&id.value.interface)) {
                client_id = RequestedId::Bytes(id.value.id.bytes().collect());
                by = Some(origin(id));
            }
            let ipoib = &found.value.ipoib;
            if ipoib.dhcp.is_some() || ipoib.dhcp6.is_some() || ipoib.information.is_some() {
                found.value.follows.extend(by);
            }
            if let Some(dhcp6) = &mut found.value.ipoib.dhcp6 {
                dhcp6.client_id = client_id.clone();
            }
            if let Some(information) = &mut found.value.ipoib.information {
                information.client_id = client_id.clone();
            }
            if let Some(dhcp) = &mut found.value.ipoib.dhcp {
                dhcp.client_id = client_id;
            }
        }
    }

    /// Gives the interfaces of one port different client identifiers: only one sends that of the
    /// firmware. Interfaces of one client need an IAID each (RFC 4361 6.1): of two leases with one
    /// identifier dnsmasq forgets the first, whatever their networks are.
    fn partition_ids(&mut self) {
        let arguments = self.arguments;
        // A bond sends the GUID of its first interface.
        let sender = |one: &InterfaceWish| {
            let mut bonds = bonds_of(arguments);
            let bond = bonds.find(|bond| one.port == bond.value.name);
            let first = bond.and_then(|bond| bond.value.slaves.first());
            first.map_or_else(|| one.key(), |slave| key(arguments, slave))
        };
        let is_firmware = |one: &InterfaceWish| {
            let dhcp = one.ipoib.dhcp.as_ref();
            dhcp.is_some_and(|dhcp| dhcp.client_id == RequestedId::Firmware)
        };
        let mut senders: Vec<(usize, bool, Key)> = Vec::new();
        for (at, found) in self.found.iter().enumerate() {
            let one = &found.value;
            if is_firmware(one) {
                senders.push((at, one.ipoib.boot, sender(one)));
            }
        }
        // The port's own interface comes first, then the boot device.
        senders.sort_by_key(|(_, is_boot, key)| (key.pkey.is_some(), !is_boot));
        let mut ports: Vec<&Selector> = Vec::new();
        for (at, _, key) in &senders {
            let found = self.found.get_mut(*at).map(|found| &mut found.value.ipoib);
            let dhcp = found.and_then(|ipoib| ipoib.dhcp.as_mut());
            if let (Some(dhcp), Some(pkey), true) = (dhcp, key.pkey, ports.contains(&&key.port)) {
                dhcp.client_id = RequestedId::Partition(pkey);
            }
            ports.push(&key.port);
        }
    }

    /// Adds the child of a partition, with the name that the kernel will give it.
    fn child<T>(&mut self, argument: &Spanned<'_, T>, parent: &str, port: Selector, pkey: u16) {
        let key = Key {
            port,
            pkey: Some(pkey),
        };
        if let Some(found) = self.find(&key) {
            found.value.follows.push(origin(argument));
            return;
        }
        let entry = InterfaceWish::new(ipoib::child_name(parent, pkey), key, origin(argument));
        self.found.push(requested(argument, entry));
    }

    /// Marks the interface that the root file system uses: the boot device, otherwise the interface
    /// of the first `ip=`, as in dracut.
    fn boot_device(&mut self) {
        let arguments = self.arguments;
        let device = boot_device(arguments).map(|device| device.value);
        let mut named = arguments.net.ip.iter().filter(|_| !is_named(arguments));
        let boot = device.or_else(|| named.find_map(|ip| ip.value.interface));
        if let Some(found) = boot.and_then(|boot| self.find(&key(arguments, &boot))) {
            found.value.ipoib.boot = true;
        }
    }

    /// `nameserver=` applies to every interface with an address, after the name servers of its own
    /// `ip=` and before those of its DHCP servers.
    fn nameservers(&mut self) {
        for found in &mut self.found {
            let entry = &mut found.value.ipoib;
            let servers = self.arguments.net.nameservers.iter().map(|n| n.value);
            if entry.is_addressed() {
                entry.dns.extend(servers);
                let all = self.arguments.net.nameservers.iter();
                found.value.follows.extend(all.map(origin));
            }
        }
    }

    /// Each `rd.route=` belongs to one interface: the named one, the one whose static address reaches
    /// the gateway, otherwise the one that the root file system uses, if it has any address.
    fn routes(&mut self) {
        for route in &self.arguments.net.routes {
            let by = origin(route);
            let route = &route.value;
            let found = match &route.interface {
                Some(interface) => self.find(&key(self.arguments, interface)),
                None => self.reaching(route.gateway),
            };
            if let Some(found) = found {
                found.value.follows.push(by);
                let network = Address {
                    address: route.network,
                    prefix: route.prefix,
                };
                let ipoib = &mut found.value.ipoib;
                match route.gateway {
                    Some(gateway) if route.prefix == 0 => ipoib.gateways.push(gateway),
                    gateway => ipoib.routes.push(Route {
                        network: network.network(),
                        gateway,
                    }),
                }
            }
        }
    }

    fn reaching(&mut self, gateway: Option<IpAddr>) -> Option<&mut Requested<InterfaceWish>> {
        let near = |found: &Requested<InterfaceWish>| {
            let mut addresses = found.value.ipoib.addresses.iter();
            gateway.is_some_and(|gateway| addresses.any(|address| address.reaches(gateway)))
        };
        // A lease may reach the gateway.
        let boot = |found: &Requested<InterfaceWish>| {
            found.value.ipoib.boot && found.value.ipoib.is_addressed()
        };
        let first = self.found.iter().position(near);
        let at = first.or_else(|| self.found.iter().position(boot))?;
        self.found.get_mut(at)
    }

    /// Adds the interfaces that only `rd.ib.mode=` and `rd.ib.mtu=` name, before any of their values
    /// applies: a value for all interfaces is for these too.
    fn set(&mut self) {
        let ib = &self.arguments.ib;
        let modes = ib.modes.iter();
        let modes = modes.filter_map(|mode| Some(mode.with(mode.value.interface?)));
        let mtus = ib.mtus.iter();
        let mtus = mtus.filter_map(|mtu| Some(mtu.with(mtu.value.interface?)));
        for interface in modes.chain(mtus) {
            let key = key(self.arguments, &interface.value);
            if self.find(&key).is_none() {
                self.add(&interface, |_| ());
            }
        }
    }

    /// Sets modes.
    fn modes(&mut self) {
        let arguments = self.arguments;
        for found in &mut self.found {
            // The mode belongs to the slaves, not to the bond.
            if bonds_of(arguments).any(|bond| found.value.port == bond.value.name) {
                continue;
            }
            let is_it = |interface: &Interface<'_>| {
                let mut bonds = bonds_of(arguments);
                match bonds.find(|bond| *interface == Interface::Name(bond.value.name)) {
                    Some(bond) => {
                        let mut slaves = bond.value.slaves.iter();
                        slaves.any(|slave| found.value.is(&key(arguments, slave)))
                    }
                    None => found.value.is(&key(arguments, interface)),
                }
            };
            let mode = applied(&arguments.ib.modes, |mode| mode.interface, is_it);
            found.value.ipoib.mode = mode.map(|mode| mode.value.mode);
            found.value.follows.extend(mode.map(origin));
        }
    }

    /// Sets MTUs; the MTU field of `ip=` and the MTU of `bond=` have precedence.
    fn mtus(&mut self) {
        let arguments = self.arguments;
        for found in &mut self.found {
            if found.value.ipoib.bond.is_some() {
                found.value.ipoib.mtu = None;
            } else if found.value.ipoib.mtu.is_none() {
                let is_it = |interface: &Interface<'_>| found.value.is(&key(arguments, interface));
                let mtu = applied(&arguments.ib.mtus, |mtu| mtu.interface, is_it);
                found.value.ipoib.mtu = mtu.map(|mtu| mtu.value.mtu);
                found.value.follows.extend(mtu.map(origin));
            }
        }
    }
}

/// The last argument that names the interface, otherwise the last one for all interfaces.
fn applied<'a, 'b, T>(
    all: &'a [Spanned<'b, T>],
    interface: impl Fn(&T) -> Option<Interface<'b>>,
    is_it: impl Fn(&Interface<'b>) -> bool,
) -> Option<&'a Spanned<'b, T>> {
    let named = |one: &&Spanned<'b, T>| interface(&one.value).is_some_and(|named| is_it(&named));
    let for_all = |one: &&Spanned<'b, T>| interface(&one.value).is_none();
    all.iter()
        .rfind(named)
        .or_else(|| all.iter().rfind(for_all))
}

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

#[cfg(test)]
mod tests {
    use crate::dhcp::identity::RequestedId;
    use crate::request::Request;
    use crate::wish::ipoib::{RequestedMode, RequestedMtu};

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

    #[test]
    fn of_the_interfaces_of_a_port_one_has_the_identifier_of_the_firmware() {
        use RequestedId::{Firmware, Hardware, Partition};
        let ids = |line: &str| -> Vec<(String, RequestedId)> {
            let request = Request::from_text(line);
            let all = request.all_interfaces().cloned();
            all.filter_map(|one| Some((one.name, one.ipoib.dhcp?.client_id)))
                .collect()
        };
        let [one, two] = [Partition(0x8001), Partition(0x8002)];
        for (line, expected) in [
            ("ip=ib0.8001:dhcp", &[("ib0.8001", Firmware)][..]),
            (
                "ip=ib0.8001:dhcp ip=ib0:off ip=ib1:dhcp",
                &[("ib0.8001", Firmware), ("ib1", Firmware)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0:dhcp",
                &[("ib0.8001", one.clone()), ("ib0", Firmware)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0.8002:dhcp",
                &[("ib0.8001", Firmware), ("ib0.8002", two)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0.8002:dhcp bootdev=ib0.8002",
                &[("ib0.8001", one.clone()), ("ib0.8002", Firmware)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0:dhcp rd.ib.dhcp.client-id=guid",
                &[("ib0.8001", Hardware), ("ib0", Hardware)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0:dhcp rd.ib.dhcp.client-id=ib0:guid",
                &[("ib0.8001", Firmware), ("ib0", Hardware)],
            ),
            (
                "bond=a:ib0,ib1 bond=b:ib0.8001,ib1.8001 ip=a:dhcp ip=b:dhcp",
                &[("a", Firmware), ("b", one)],
            ),
        ] {
            let mut found = ids(line);
            let mut expected: Vec<(String, RequestedId)> = expected
                .iter()
                .map(|(name, id)| ((*name).to_owned(), id.clone()))
                .collect();
            let by_name = |one: &(String, RequestedId)| one.0.clone();
            found.sort_by_key(by_name);
            expected.sort_by_key(by_name);
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_mode_or_mtu_for_one_interface_precedes_those_for_all_in_any_order() {
        let of_one = "rd.ib.mode=ib0:auto rd.ib.mode=ib0:datagram rd.ib.mtu=ib0:2044";
        let of_all = "rd.ib.mode=connected rd.ib.mtu=max";
        for line in [format!("{of_one} {of_all}"), format!("{of_all} {of_one}")] {
            let request = Request::from_text(&format!("ip=ib0:dhcp {line} ip=ib1:dhcp"));
            let wishes = request.interfaces.iter().map(|found| &found.value);
            let wishes = wishes.map(|found| (&*found.name, found.ipoib.mode, found.ipoib.mtu));
            assert_eq!(
                wishes.collect::<Vec<_>>(),
                [
                    (
                        "ib0",
                        Some(RequestedMode::Datagram),
                        Some(RequestedMtu::Bytes(2044))
                    ),
                    (
                        "ib1",
                        Some(RequestedMode::Connected),
                        Some(RequestedMtu::Max)
                    ),
                ],
                "{line}"
            );
        }
    }
}
