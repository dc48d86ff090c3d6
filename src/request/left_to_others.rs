// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the valid arguments that ibboot does not carry out: the image's network module does, or no
//! program does.

use kernel_cmdline::{Arguments, HwAddr, Interface, Method, Net, Route, Spanned};

use super::NotOurs;
use super::interfaces::{
    InterfaceWish, boot_device, is_addressed, is_named, is_without_ip, unaddressed,
};
use crate::wish::ipoib::IpoibWish;
use crate::wish::origin::{Requested, origin, requested};

/// `BOOTIF=` of Ethernet firmware, if a network root file system is to use an interface of ibboot:
/// `bootdev=` names it, or no other interface has an address. In dracut `BOOTIF=` precedes both.
fn ethernet_booted_from<'a>(
    arguments: &Arguments<'a>,
    is_ours: impl Fn(Interface<'_>) -> bool,
) -> Option<Spanned<'a, HwAddr>> {
    let Net { ip, bootdev, .. } = &arguments.net;
    let over_ours = match bootdev {
        Some(bootdev) => is_ours(bootdev.value),
        None => {
            let mut addressed = ip.iter().map(|ip| ip.value.interface);
            !ip.is_empty() && addressed.all(|interface| interface.is_some_and(&is_ours))
        }
    };
    arguments
        .boot_interface()
        .filter(|bootif| !bootif.value.is_infiniband())
        .filter(|_| over_ours && arguments.network_root().is_some())
}

/// The arguments that address an interface without naming one.
fn left_anywhere(arguments: &Arguments<'_>) -> Vec<Requested<NotOurs>> {
    const WHICH: NotOurs = NotOurs::Left(
        "the argument names no interface: it is left to the image's network module; \
         for InfiniBand write ip=INTERFACE:dhcp or bootdev=",
    );
    const WHOSE: NotOurs = NotOurs::Left(
        "the argument names no interface: it is left to the image's network module; \
         for InfiniBand add the interface or write bootdev=",
    );
    const ANOTHER: NotOurs = NotOurs::Unused(
        "another ip= names the boot device, and this argument names no interface: \
         no interface gets this address",
    );
    const NOWHERE: NotOurs = NotOurs::Left(
        "no ip= and no bootdev= names an interface: the address is left to the image's \
         network module; for InfiniBand write ip=INTERFACE:dhcp or bootdev=",
    );
    let booted = boot_device(arguments);
    let ip = &arguments.net.ip;
    let is_boot_devices = unaddressed(arguments).is_some();
    // If the boot device is Ethernet, the addresses belong to it.
    let is_ethernets = booted.is_none() && is_named(arguments);
    if arguments.requested_by().is_none() || is_boot_devices || is_ethernets {
        return Vec::new();
    }
    let anywhere = ip.iter().filter(|ip| ip.value.interface.is_none());
    let left = anywhere.filter_map(|ip| {
        let asks = is_addressed(&ip.value);
        let why = match booted {
            Some(_) => ANOTHER,
            None if asks => WHICH,
            None => WHOSE,
        };
        (asks || ip.value.client.is_some()).then(|| requested(ip, why))
    });
    let root = arguments.waits_for_network();
    let root = root.filter(|_| booted.is_none() && is_without_ip(arguments));
    left.chain(root.map(|root| requested(&root, NOWHERE)))
        .collect()
}

/// The valid arguments that ibboot does not carry out, with the reason.
pub(super) fn left(
    arguments: &Arguments<'_>,
    interfaces: &[Requested<InterfaceWish>],
) -> Vec<Requested<NotOurs>> {
    const BOOTIF: NotOurs = NotOurs::Left(
        "dracut's network module uses this interface as the boot device and sets it up; \
         rd.bootif=0 prevents that",
    );
    // Bonds included.
    let is_ours = |interface: Interface<'_>| {
        let mut known = interfaces.iter().map(|known| known.value.name.as_str());
        interface.is_infiniband() || known.any(|name| interface == Interface::Name(name))
    };
    let mut left = left_of_ip(arguments, is_ours);
    left.extend(left_anywhere(arguments));
    left.extend(ethernet_booted_from(arguments, is_ours).map(|bootif| requested(&bootif, BOOTIF)));
    let is_without = |ipoib: &IpoibWish| {
        ipoib.addresses.is_empty() && ipoib.dhcp.is_none() && ipoib.dhcp6.is_none()
    };
    if !left.is_empty() || !interfaces.iter().all(|i| is_without(&i.value.ipoib)) {
        left.extend(left_behind_addresses(arguments, interfaces, is_ours));
    }
    left
}

/// The methods, gateways and hardware addresses in `ip=` of ibboot's interfaces that ibboot does not carry
/// out.
fn left_of_ip(
    arguments: &Arguments<'_>,
    is_ours: impl Fn(Interface<'_>) -> bool,
) -> Vec<Requested<NotOurs>> {
    const ADDRESS: NotOurs = NotOurs::Left("this address is left to the image's network module");
    const REST: NotOurs = NotOurs::Unused(
        "link-local and ibft are not carried out beside another method: the image's network module is kept away \
         from the interface",
    );
    const OTHERS: [Method; 2] = [Method::LinkLocal, Method::Ibft];
    const HARDWARE: NotOurs = NotOurs::Unused(
        "the hardware address is not set: that of an IPoIB interface is its queue pair number and \
         its port's GUID, and the kernel lets only the GUID be changed",
    );
    const NTP: NotOurs = NotOurs::Unused(
        "the NTP server is not used: no program of the initramfs sets the clock from it",
    );
    const GATEWAY: NotOurs = NotOurs::Unused(
        "the gateway is not used: the argument has no address; beside DHCP write rd.route=0.0.0.0/0:GATEWAY:INTERFACE",
    );
    const GATEWAY6: NotOurs = NotOurs::Unused(
        "the gateway is not used: the argument has no address; beside DHCPv6 write rd.route=[::/0]:[GATEWAY]:INTERFACE",
    );
    let mut left = Vec::new();
    let is_booted = unaddressed(arguments).is_some();
    let ip = arguments.net.ip.iter();
    for ip in ip.filter(|ip| ip.value.interface.map_or(is_booted, &is_ours)) {
        if ip.value.macaddr.is_some() {
            left.push(requested(ip, HARDWARE));
        }
        if ip.value.ntp.is_some() {
            left.push(requested(ip, NTP));
        }
        if let (Some(gateway), None) = (ip.value.gateway, ip.value.client) {
            let why = if gateway.is_ipv6() { GATEWAY6 } else { GATEWAY };
            left.push(requested(ip, why));
        }
        let methods = &ip.value.methods;
        let carried_out = |method: &Method| !OTHERS.contains(method);
        if !methods.is_empty() && !methods.iter().any(carried_out) {
            left.push(requested(ip, ADDRESS));
        } else if !methods.iter().all(carried_out) {
            left.push(requested(ip, REST));
        }
    }
    left
}

/// The name servers and routes that belong to no address of ibboot's interfaces.
fn left_behind_addresses(
    arguments: &Arguments<'_>,
    interfaces: &[Requested<InterfaceWish>],
    is_ours: impl Fn(Interface<'_>) -> bool,
) -> Vec<Requested<NotOurs>> {
    const NAMES: NotOurs = NotOurs::Left("name servers are left to the image's network module");
    const ROUTE: NotOurs = NotOurs::Left(
        "no address of an InfiniBand interface reaches the gateway of this route: the route is left to the image's network module",
    );
    const UNADDRESSED: NotOurs = NotOurs::Unused(
        "no other argument names the InfiniBand interface of this route: no program sets the route",
    );
    let net = &arguments.net;
    let mut left = Vec::new();
    if !interfaces.iter().any(|i| i.value.ipoib.is_addressed()) {
        left.extend(net.nameservers.iter().map(|a| requested(a, NAMES)));
    }
    let is_taken = |route: &Spanned<'_, Route<'_>>| {
        let by = origin(route);
        let mut follows = interfaces.iter().flat_map(|i| &i.value.follows);
        follows.any(|follows| *follows == by)
    };
    let may_be_ours = |route: &Route<'_>| route.interface.is_none_or(&is_ours);
    let routes = net.routes.iter();
    let routes = routes.filter(|route| !is_taken(route) && may_be_ours(&route.value));
    let is_named_ours = |route: &Route<'_>| route.interface.is_some_and(&is_ours);
    left.extend(routes.map(|a| match is_named_ours(&a.value) {
        true => requested(a, UNADDRESSED),
        false => requested(a, ROUTE),
    }));
    left
}
