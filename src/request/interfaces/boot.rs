// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the interface that the machine boots from, and the interface of an `ip=` that names none.
//! Sources: dracut 059, `parse-ip-opts.sh`, `net-genrules.sh`, `ifup.sh` of network-legacy.

use std::mem::discriminant;

use kernel_cmdline::{Arguments, Interface, Ip, Method, Methods, Spanned};

use super::Collected;
use super::identity::{bonds_of, is_infiniband, is_single, key};
use crate::request::unquoted;
use crate::wish::origin::origin;

/// The interface of `bootdev=`, otherwise of `BOOTIF=`, of any kind.
fn named<'b>(arguments: &Arguments<'b>) -> Option<Spanned<'b, Interface<'b>>> {
    let firmware = || {
        let bootif = arguments.boot_interface()?;
        Some(bootif.with(Interface::Address(bootif.value)))
    };
    arguments.net.bootdev.or_else(firmware)
}

/// Whether an argument says which interface the machine boots from.
pub fn is_named(arguments: &Arguments<'_>) -> bool {
    named(arguments).is_some()
}

/// The InfiniBand interface of `bootdev=`, otherwise of `BOOTIF=`; if it is in a bond, the bond,
/// which has the addresses. Without both arguments, and if no `ip=` names an interface, the only
/// bond: dracut then sets up no other interface.
pub fn boot_device<'b>(arguments: &Arguments<'b>) -> Option<Spanned<'b, Interface<'b>>> {
    let Some(device) = named(arguments) else {
        return only_bond(arguments);
    };
    is_infiniband(arguments, &device.value).then(|| {
        let own = key(arguments, &device.value);
        let mut bonds = bonds_of(arguments);
        let bond = bonds.find(|bond| {
            let mut slaves = bond.value.slaves.iter();
            slaves.any(|slave| is_single(arguments, slave) && key(arguments, slave) == own)
        });
        bond.map_or(device, |bond| device.with(Interface::Name(bond.value.name)))
    })
}

fn only_bond<'b>(arguments: &Arguments<'b>) -> Option<Spanned<'b, Interface<'b>>> {
    let net = &arguments.net;
    let bond = bonds_of(arguments).next()?;
    let is_only = net.bonds.len() == 1 && net.ip.iter().all(|ip| ip.value.interface.is_none());
    is_only.then(|| bond.with(Interface::Name(bond.value.name)))
}

/// The boot device, if no `ip=` names it: an `ip=` without an interface belongs to it.
pub fn unaddressed<'b>(arguments: &Arguments<'b>) -> Option<Spanned<'b, Interface<'b>>> {
    let device = boot_device(arguments)?;
    let own = key(arguments, &device.value);
    let mut named = arguments.net.ip.iter().filter_map(|ip| ip.value.interface);
    (!named.any(|interface| key(arguments, &interface) == own)).then_some(device)
}

/// The implied `ip=` of a boot device without any `ip=`: DHCP, if a network is needed (`ifup.sh`,
/// "no ip option directed at our interface"; nm-initrd-generator: method=auto).
fn implied<'b>(arguments: &Arguments<'b>) -> Option<Ip<'b>> {
    let method = match arguments.network_root().map(|root| root.value) {
        Some("dhcp6") => Method::Dhcp6,
        Some("either6") => Method::Either6,
        _ => Method::Dhcp,
    };
    let mut all = arguments.net.ip.iter();
    let is_given = has_wrong_ip(arguments) || all.any(|ip| ip.value.interface.is_none());
    (needs_network(arguments) && !is_given && !is_perhaps_named(arguments)).then(|| Ip {
        methods: Methods::from_slice(&[method]).unwrap_or_default(),
        ..Ip::default()
    })
}

/// Whether an `ip=` or a `bond=` may name the boot device in another spelling: by name, by address, by
/// RDMA port or by PCI address. Which port such a spelling means is known only on the machine.
fn is_perhaps_named(arguments: &Arguments<'_>) -> bool {
    let device = boot_device(arguments).map(|device| device.value);
    let Some(device) = device.filter(|device| is_single(arguments, device)) else {
        return false;
    };
    // How an interface spells its port.
    let kind = |one: &Interface<'_>| discriminant(key(arguments, one).port.means());
    let is_name = |interface: &Interface<'_>| matches!(interface, Interface::Name(_));
    let ips = arguments.net.ip.iter().filter_map(|ip| ip.value.interface);
    let slaves = bonds_of(arguments).flat_map(|bond| bond.value.slaves.iter().copied());
    let mut others = ips
        .chain(slaves)
        .filter(|other| is_single(arguments, other));
    // Two names are two interfaces.
    others.any(|other| !(is_name(&device) && is_name(&other)) && kind(&other) != kind(&device))
}

/// Whether the image's network module is to address any interface that comes up.
pub fn is_anywhere(arguments: &Arguments<'_>) -> bool {
    let mut all = arguments.net.ip.iter();
    let is_requested = all.any(|ip| ip.value.interface.is_none())
        || (is_without_ip(arguments) && needs_network(arguments));
    is_requested && !is_named(arguments) && boot_device(arguments).is_none()
}

/// Whether there is no `ip=`, not even an invalid one, whose intent is unknown.
pub fn is_without_ip(arguments: &Arguments<'_>) -> bool {
    arguments.net.ip.is_empty() && !has_wrong_ip(arguments)
}

fn has_wrong_ip(arguments: &Arguments<'_>) -> bool {
    let mut wrong = arguments.complaints.iter();
    wrong.any(|complaint| unquoted(complaint.argument).starts_with(b"ip="))
}

fn needs_network(arguments: &Arguments<'_>) -> bool {
    let neednet = arguments.neednet.is_some_and(|neednet| neednet.value);
    neednet || arguments.waits_for_network().is_some()
}

impl Collected<'_, '_> {
    /// `bootdev=` and `BOOTIF=`.
    pub(super) fn booted(&mut self) {
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

    /// Adds what an `ip=` without an interface, or no `ip=`, requests of the boot device.
    pub(super) fn boot_addresses(&mut self) {
        let arguments = self.arguments;
        let Some(device) = unaddressed(arguments) else {
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
        if let Some(ip) = implied(arguments) {
            self.ip(&ip, &device);
        }
    }

    /// Marks the interface that the root file system uses: the boot device, otherwise the interface
    /// of the first `ip=`, as in dracut.
    pub(super) fn mark_boot_device(&mut self) {
        let arguments = self.arguments;
        let device = boot_device(arguments).map(|device| device.value);
        let mut named = arguments.net.ip.iter().filter(|_| !is_named(arguments));
        let boot = device.or_else(|| named.find_map(|ip| ip.value.interface));
        if let Some(found) = boot.and_then(|boot| self.find(&key(arguments, &boot))) {
            found.value.ipoib.boot = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::request::Request;
    use crate::wish::ipoib::IpoibWish;

    const PXELINUX: &str = "ip=10.0.0.5:10.0.0.1:10.0.0.254:255.255.255.0";
    const BOOTIF: &str = "BOOTIF=20-b8-59-9f-03-00-fc-1a-2c";

    /// Each interface and bond with its address methods, and `*` after the boot device.
    fn addressed(cmdline: &str) -> Vec<String> {
        let request = Request::from_text(cmdline);
        let text = |name: &str, ipoib: &IpoibWish| {
            let mut how: Vec<String> = ipoib.addresses.iter().map(ToString::to_string).collect();
            how.extend(ipoib.dhcp.as_ref().map(|_| "dhcp".to_owned()));
            how.extend(ipoib.dhcp6.as_ref().map(|dhcp6| {
                let either = if dhcp6.after_router_s.is_some() {
                    "either6"
                } else {
                    "dhcp6"
                };
                either.to_owned()
            }));
            let boot = if ipoib.boot { "*" } else { "" };
            format!("{name}{boot}: {}", how.join(" "))
        };
        let all = request.all_interfaces();
        all.map(|one| text(&one.name, &one.ipoib)).collect()
    }

    #[test]
    fn an_address_without_an_interface_is_the_boot_devices() {
        for (cmdline, expected) in [
            (
                format!("{PXELINUX} {BOOTIF}"),
                vec!["guid=0xb8599f0300fc1a2c*: 10.0.0.5/24"],
            ),
            (format!("{PXELINUX} {BOOTIF} rd.bootif=0"), vec![]),
            (format!("{PXELINUX} bootdev=ib0"), vec!["ib0*: 10.0.0.5/24"]),
            (
                format!("bootdev=ib0 ip=dhcp {PXELINUX}"),
                vec!["ib0*: 10.0.0.5/24 dhcp"],
            ),
            (
                format!("{PXELINUX} bootdev=ib0 {BOOTIF}"),
                vec!["ib0*: 10.0.0.5/24"],
            ),
            (
                format!("{PXELINUX} bootdev=ib0 ip=ib0:dhcp6"),
                vec!["ib0*: dhcp6"],
            ),
            (
                format!("{PXELINUX} bootdev=ib0 ip=ib1:dhcp"),
                vec!["ib1: dhcp", "ib0*: 10.0.0.5/24"],
            ),
            (
                format!("{PXELINUX} bootdev=eth0 ip=ib0:dhcp"),
                vec!["ib0: dhcp"],
            ),
            (
                format!("{PXELINUX} rd.ib.mode=ib0:connected"),
                vec!["ib0: "],
            ),
            (
                format!("{PXELINUX} bond=bond0:ib0,ib1 bootdev=ib1"),
                vec!["ib0: ", "ib1: ", "bond0*: 10.0.0.5/24"],
            ),
            (
                format!("{PXELINUX} bond=bond0:ib0,ib1"),
                vec!["ib0: ", "ib1: ", "bond0*: 10.0.0.5/24"],
            ),
            (
                format!("{PXELINUX} bond=bond0:ib0,ib1 bond=bond1:eth0,eth1"),
                vec!["ib0: ", "ib1: ", "bond0: "],
            ),
        ] {
            assert_eq!(addressed(&cmdline), expected, "{cmdline}");
        }
    }

    #[test]
    fn a_boot_device_that_no_ip_is_for_asks_dhcp_where_a_network_is_needed() {
        for (cmdline, expected) in [
            ("root=nfs:10.0.0.1:/x bootdev=ib0", "ib0*: dhcp"),
            ("root=dhcp bootdev=ib0", "ib0*: dhcp"),
            ("root=dhcp6 bootdev=ib0", "ib0*: dhcp6"),
            ("netroot=either6 bootdev=ib0", "ib0*: either6"),
            ("netroot=iscsi:10.0.0.2::::iqn.a bootdev=ib0", "ib0*: dhcp"),
            ("root=wwinit bootdev=ib0", "ib0*: dhcp"),
            ("rd.neednet=1 bootdev=ib0", "ib0*: dhcp"),
            ("rd.neednet=0 bootdev=ib0", "ib0*: "),
            ("root=/dev/sda1 bootdev=ib0", "ib0*: "),
            (
                "root=nfs:10.0.0.1:/x bootdev=ib0 ip=eth0:dhcp",
                "ib0*: dhcp",
            ),
            ("root=nfs:10.0.0.1:/x bootdev=ib0 ip=link-local", "ib0*: "),
            // The intent of an invalid ip= is unknown.
            (
                "root=nfs:10.0.0.1:/x bootdev=ib0 ip=10.0.0.1:::24::ib0:noen",
                "ib0*: ",
            ),
            (
                "root=nfs:10.0.0.1:/x bootdev=ib0 \"ip=10.0.0.1:::24::ib0:noen\"",
                "ib0*: ",
            ),
            ("root=nfs:10.0.0.1:/x rd.ib.mode=ib0:connected", "ib0: "),
        ] {
            assert_eq!(addressed(cmdline), [expected], "{cmdline}");
        }
        let expected = ["guid=0xb8599f0300fc1a2c*: dhcp"];
        assert_eq!(
            addressed(&format!("root=nfs:10.0.0.1:/x {BOOTIF}")),
            expected
        );
        let expected = ["ib0: ", "ib1: ", "bond0*: dhcp"];
        assert_eq!(
            addressed("root=nfs:10.0.0.1:/x bond=bond0:ib0,ib1"),
            expected
        );
    }

    #[test]
    fn a_boot_device_that_an_ip_may_name_in_another_spelling_asks_no_dhcp() {
        let fixed = "root=nfs:10.0.0.1:/x ip=10.0.0.5::10.0.0.254:24:n1";
        for (cmdline, expected) in [
            (
                format!("{fixed}:ib0:none {BOOTIF}"),
                vec!["ib0: 10.0.0.5/24", "guid=0xb8599f0300fc1a2c*: "],
            ),
            (
                format!("{fixed}:bond0:none bond=bond0:ib0,ib1 {BOOTIF}"),
                vec![
                    "ib0: ",
                    "ib1: ",
                    "guid=0xb8599f0300fc1a2c*: ",
                    "bond0: 10.0.0.5/24",
                ],
            ),
            (
                format!("{fixed}:0xb8599f0300fc1a2c:none bootdev=ib0"),
                vec!["guid=0xb8599f0300fc1a2c: 10.0.0.5/24", "ib0*: "],
            ),
            // Two names are two interfaces, and a bond has no address of its own.
            (
                "root=nfs:10.0.0.1:/x ifname=ib0:b8:59:9f:fc:1a:2c bootdev=ib0 ip=ib1:dhcp"
                    .to_owned(),
                vec!["ib0*: dhcp", "ib1: dhcp"],
            ),
            (
                "root=nfs:10.0.0.1:/x bond=bond0:0xb8599f0300fc1a2c,ib1".to_owned(),
                vec!["guid=0xb8599f0300fc1a2c: ", "ib1: ", "bond0*: dhcp"],
            ),
            // The hardware type in front of an address is not part of it.
            (
                format!(
                    "ifname=ib0:b8:59:9f:fc:1a:2c {fixed}:ib0:none BOOTIF=20-b8-59-9f-fc-1a-2c"
                ),
                vec!["ib0*: 10.0.0.5/24"],
            ),
        ] {
            assert_eq!(addressed(&cmdline), expected, "{cmdline}");
        }
    }

    #[test]
    fn bootdev_names_an_interface_whatever_bootif_says() {
        let request = Request::from_text(&format!(
            "root=nfs:10.0.0.1:/x ip=10.1.0.5:::16::ib0:none ip=10.2.0.5:::16::ib1:none bootdev=ib1 {BOOTIF}"
        ));
        let ports = request.interfaces.iter();
        let ports: Vec<&str> = ports.map(|found| found.value.port.as_str()).collect();
        assert_eq!(ports, ["ib0", "ib1"]);
    }
}
