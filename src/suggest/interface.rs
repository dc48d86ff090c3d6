// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the arguments of one IPoIB interface or bond.

use std::net::IpAddr;

use super::keyfile::{Profile, Program};
use super::{Suggestion, is_slave};
use crate::facts::addresses::AddressState;
use crate::facts::{Facts, Netdev, rules};
use crate::hardware::{Hex, unhex};
use crate::inet::{Address, Route, is_link_local};
use crate::verify::unread;
use crate::wish::ipoib::{CONNECTED_MAX, DATAGRAM_MAX, FULL_MEMBER, Mode, child_name};

/// The usual MTU of a datagram interface whose broadcast group has an IB MTU of 2048.
const DATAGRAM_USUAL: u32 = 2044;
/// The start of the default client identifier (`firmware` of `rd.ib.dhcp.client-id=`).
const FIRMWARE: &str = "ff:00:00:00:00:00:02:00:00:02:c9:00:";
/// Options of a bond and their defaults; the driver writes the name of a value first.
const BOND_DEFAULTS: [(&str, &str); 8] = [
    ("miimon", "100"),
    ("updelay", "0"),
    ("downdelay", "0"),
    ("arp_interval", "0"),
    ("arp_ip_target", ""),
    ("primary", ""),
    ("primary_reselect", "always"),
    ("num_grat_arp", "1"),
];

/// P_Key of a child interface.
pub fn child_key(netdev: &Netdev) -> Option<u16> {
    let ipoib = netdev.ipoib.as_ref().filter(|ipoib| ipoib.child)?;
    ipoib.pkey.map(|pkey| pkey | FULL_MEMBER)
}

/// The name in the initramfs: the kernel names a child after its parent.
pub fn boot_name(netdev: &Netdev, facts: &Facts) -> String {
    match (rules::parent(netdev, facts), child_key(netdev)) {
        (Some(parent), Some(pkey)) => child_name(&parent.ifname, pkey),
        _ => netdev.ifname.clone(),
    }
}

/// The profile that tells what the interface shall have.
pub fn profile<'p>(netdev: &Netdev, facts: &Facts, all: &'p [Profile]) -> Option<&'p Profile> {
    let parent = rules::parent(netdev, facts).map_or("", |parent| parent.ifname.as_str());
    let child = child_key(netdev).map(|pkey| (pkey, parent));
    let guid = netdev.port_guid().filter(|_| netdev.bond.is_none());
    let mut all = all.iter().filter(|p| p.is_for(&netdev.ifname, guid, child));
    let first = all.next()?;
    // A .netdev file only makes the interface.
    let is_whole = |profile: &&Profile| !profile.file.ends_with(".netdev");
    Some(first).filter(is_whole).or_else(|| all.find(is_whole))
}

/// Its usable addresses, without link-local ones.
pub fn addresses(netdev: &Netdev) -> impl Iterator<Item = Address> {
    let found = netdev.addresses_in(AddressState::Usable);
    found.filter(|address| !is_link_local(address.address))
}

/// The arguments of an interface or bond in use.
pub fn of_netdev(netdev: &Netdev, facts: &Facts, profiles: &[Profile], found: &mut Suggestion) {
    let profile = profile(netdev, facts, profiles);
    if netdev.bond.is_some() {
        bond(netdev, facts, found);
    } else if let Some(pkey) = child_key(netdev) {
        child(netdev, pkey, facts, found);
    } else {
        name(netdev, facts, found);
    }
    let name = boot_name(netdev, facts);
    if netdev.bond.is_none() {
        mode(netdev, &name, profile, found);
    }
    // The bond has the addresses and the MTU.
    if !is_slave(netdev, facts) {
        mtu(netdev, &name, profile, facts, found);
        Addressing {
            netdev,
            name: &name,
            profile,
        }
        .add(facts, found);
    }
}

/// `ifname=`: the name of the interface at every boot.
fn name(netdev: &Netdev, facts: &Facts, found: &mut Suggestion) {
    let (Some(address), Some(guid)) = (&netdev.address, netdev.port_guid()) else {
        return found.note(format!(
            "{}: the GUID of its port is not known: no argument pins its name",
            netdev.ifname
        ));
    };
    let port = facts.ports().find(|port| port.port.port_guid == Some(guid));
    let port = port.map_or("the port".to_owned(), |port| port.name());
    let name = &netdev.ifname;
    // The present address may have another GID of the port: that of the next boot has its GUID.
    let own = guid.0.to_be_bytes();
    let (kept, _) = address
        .bytes()
        .split_at(address.bytes().len().saturating_sub(own.len()));
    let address = [kept, &own].concat();
    found.add(
        format!("ifname={name}:{}", Hex(&address)),
        format!("{port} has the GUID {guid}; only these 8 bytes of the address count"),
    );
}

fn child(netdev: &Netdev, pkey: u16, facts: &Facts, found: &mut Suggestion) {
    let Some(parent) = rules::parent(netdev, facts) else {
        return found.note(format!(
            "{}: its parent interface is not known",
            netdev.ifname
        ));
    };
    if parent.carrier != Some(true) {
        found.note(format!(
            "{0} has no carrier, so no ifname= pins its name, which would require the carrier: {0} must be \
             the same port at every boot",
            parent.ifname
        ));
    }
    let (name, parent) = (&netdev.ifname, &parent.ifname);
    found.add(
        format!("ib.pkey={parent}.{pkey:04x}"),
        format!("{name} is the interface of partition {pkey:#06x} on {parent}"),
    );
    let boot_name = boot_name(netdev, facts);
    if boot_name != *name {
        found.note(format!("{name} is called {boot_name} in the initramfs"));
    }
}

fn bond(netdev: &Netdev, facts: &Facts, found: &mut Suggestion) {
    let Some(bond) = &netdev.bond else { return };
    let name = &netdev.ifname;
    let in_initramfs = |slave: &str| {
        let known = facts.netdev(slave);
        known.map_or(slave.to_owned(), |slave| boot_name(slave, facts))
    };
    let mut options = vec!["mode=active-backup".to_owned()];
    for (option, default) in BOND_DEFAULTS {
        let value = bond.option(option).unwrap_or_default();
        // A list of addresses has spaces; of `always 0` the name counts.
        let value = match option {
            "arp_ip_target" => value.split_whitespace().collect::<Vec<_>>().join(";"),
            "primary" => in_initramfs(value),
            _ => value
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let is_default =
            value.is_empty() || value == default || (option == "miimon" && value == "0");
        if !is_default {
            options.push(format!("{option}={value}"));
        }
    }
    if options.iter().any(|option| option.contains(';')) {
        found.note(format!(
            "{name}: a ; ends a command in grub.cfg: write the argument bond= in single quotes there"
        ));
    }
    let slaves: Vec<String> = bond.slaves.iter().map(|one| in_initramfs(one)).collect();
    found.add(
        format!("bond={name}:{}:{}", slaves.join(","), options.join(",")),
        format!("{name} has these interfaces and options"),
    );
    if !bond.has("mode", "active-backup") {
        let mode = bond.option("mode").unwrap_or("unknown");
        found.note(format!(
            "{name}: its mode is {mode}; InfiniBand allows active-backup only"
        ));
    }
}

fn mode(netdev: &Netdev, name: &str, profile: Option<&Profile>, found: &mut Suggestion) {
    let present = netdev.ipoib.as_ref().and_then(|ipoib| ipoib.mode);
    let of_profile = profile.and_then(|profile| Some((profile, profile.mode?)));
    match (present, of_profile) {
        (Some(Mode::Connected), _) => found.add(
            format!("rd.ib.mode={name}:connected"),
            format!("{} is in connected mode", netdev.ifname),
        ),
        (present, Some((profile, mode))) if present != Some(mode) => {
            let here = present.map_or("unknown", Mode::word);
            found.note(format!(
                "{}: {} has mode {mode}, but the interface is in mode {here}, which counts",
                netdev.ifname, profile.file
            ));
        }
        _ => {}
    }
}

fn mtu(
    netdev: &Netdev,
    name: &str,
    profile: Option<&Profile>,
    facts: &Facts,
    found: &mut Suggestion,
) {
    let Some(mtu) = netdev.mtu else { return };
    let slaves = netdev.bond.iter().flat_map(|bond| &bond.slaves);
    let slaves = slaves.filter_map(|slave| facts.netdev(slave));
    let mut all = std::iter::once(netdev).chain(slaves);
    let mode = all.find_map(|one| one.ipoib.as_ref()?.mode);
    let is_usual = match mode {
        Some(Mode::Connected) => mtu == CONNECTED_MAX,
        Some(Mode::Datagram) => matches!(mtu, DATAGRAM_USUAL | DATAGRAM_MAX),
        None => true,
    };
    let set_by = profile.filter(|profile| profile.mtu == Some(mtu));
    if let Some(profile) = set_by {
        found.add(
            format!("rd.ib.mtu={name}:{mtu}"),
            format!("{} sets this MTU", profile.file),
        );
    } else if !is_usual {
        found.add(
            format!("rd.ib.mtu={name}:{mtu}"),
            format!("{} has this MTU", netdev.ifname),
        );
    }
}

/// The addresses of one interface.
struct Addressing<'a> {
    netdev: &'a Netdev,
    /// The name in the initramfs.
    name: &'a str,
    profile: Option<&'a Profile>,
}

impl Addressing<'_> {
    /// Whether the profile has the address.
    fn is_written(&self, own: &Address) -> bool {
        let mut written = self.profile.iter().flat_map(|profile| &profile.addresses);
        written.any(|written| written.address == own.address)
    }

    /// Whether a server or a router gave the address.
    fn is_dynamic(&self, own: &Address) -> bool {
        self.netdev.dynamic.contains(&own.address) && !self.is_written(own)
    }

    /// The methods of `ip=` by which servers and routers give addresses.
    fn methods(&self, has_lease: bool, facts: &Facts) -> Vec<&'static str> {
        let is_dynamic = |is_ipv6| {
            let mut here = addresses(self.netdev);
            here.any(|own| own.address.is_ipv6() == is_ipv6 && self.is_dynamic(&own))
        };
        let mut here = addresses(self.netdev);
        let has_v6 = here.any(|own| own.address.is_ipv6() && !self.is_written(&own));
        let mut leases = facts.dhcp6.iter().filter(|found| found.lease.is_some());
        let lease6 = leases.find(|found| found.interface == self.netdev.ifname);
        let (has_dhcp, v6) = match (self.profile, lease6) {
            // A profile asks routers also on a subnet that has none.
            (Some(profile), _) => {
                let is_given = has_v6 && (profile.autoconf || profile.dhcp6);
                let is_either = profile.autoconf || !profile.dhcp6;
                let v6 = (is_given || is_dynamic(true)).then_some(is_either);
                (profile.dhcp4 || is_dynamic(false), v6)
            }
            (None, Some(lease)) => (has_lease, Some(lease.wish.after_router_s.is_some())),
            (None, None) => (
                has_lease || is_dynamic(false),
                is_dynamic(true).then_some(true),
            ),
        };
        let v6 = v6.map(|is_either| if is_either { "either6" } else { "dhcp6" });
        has_dhcp.then_some("dhcp").into_iter().chain(v6).collect()
    }

    fn add(&self, facts: &Facts, found: &mut Suggestion) {
        let lease = facts
            .dhcp
            .iter()
            .find(|lease| lease.interface == self.netdev.ifname);
        let mut leases6 = facts.dhcp6.iter();
        let has_lease6 = leases6.any(|found| found.interface == self.netdev.ifname);
        let profile = self.profile.cloned().unwrap_or_default();
        let methods = self.methods(lease.is_some(), facts);
        let source = |other: &str| match self.profile {
            Some(profile) => profile.file.clone(),
            None => other.to_owned(),
        };
        let is_of_server = |address: IpAddr| match address.is_ipv6() {
            true => methods.iter().any(|method| method.ends_with('6')),
            false => methods.contains(&"dhcp"),
        };
        if !methods.is_empty() {
            let argument = format!("ip={}:{}", self.name, methods.join(","));
            found.add(
                argument,
                format!(
                    "addresses of servers or routers: {}",
                    source(match lease.is_some() || has_lease6 {
                        true => "the DHCP lease of this boot",
                        false => "the addresses have a lifetime",
                    })
                ),
            );
            self.client_id(found);
            let of_lease = lease.filter(|_| self.profile.is_none());
            of_lease
                .iter()
                .for_each(|lease| self.id_of_lease(&lease.client_id, found));
        }
        let here: Vec<Address> = addresses(self.netdev).collect();
        // What the kernel has counts: the profile may name a gateway that is not used.
        let is_of_profile = here.is_empty();
        let own = match is_of_profile {
            true => profile.addresses.clone(),
            false => here,
        };
        let hides_grants = unread::hides_grants(facts);
        let may_be_fixed = |address| !is_of_server(address) && !hides_grants;
        let fixed: Vec<Address> = own
            .into_iter()
            .filter(|a| self.is_written(a) || may_be_fixed(a.address))
            .collect();
        let (gateways, routes) = match is_of_profile {
            true => (&profile.gateways, &profile.routes),
            false => (&self.netdev.gateways, &self.netdev.routes),
        };
        self.fixed(&fixed, gateways, &source("the kernel"), found);
        let routes = routes.iter().filter(|route| {
            let by_server = is_of_server(route.gateway.unwrap_or(route.network.address));
            let is_requested = !by_server || profile.routes.contains(route);
            is_requested && (route.gateway.is_some() || is_own(route, &fixed))
        });
        for route in routes {
            self.route(route, found);
        }
        if self.profile.is_none() {
            self.note_server(&fixed, found);
        }
    }

    /// The note that a server may have given these addresses.
    fn note_server(&self, fixed: &[Address], found: &mut Suggestion) {
        let has = |is_ipv6| fixed.iter().any(|a| a.address.is_ipv6() == is_ipv6);
        let name = self.name;
        let instead = match (has(false), has(true)) {
            (false, false) => return,
            (true, true) => format!("ip={name}:dhcp for IPv4, ip={name}:dhcp6 for IPv6"),
            (false, true) => format!("ip={name}:dhcp6"),
            (true, false) => format!("ip={name}:dhcp"),
        };
        found.note(format!(
            "no profile of NetworkManager or systemd-networkd was found for {}: if a DHCP server assigned the address, write {instead}",
            self.netdev.ifname
        ));
    }

    /// `ip=` of static addresses; the gateway of its family stands with the first one.
    fn fixed(&self, fixed: &[Address], gateways: &[IpAddr], source: &str, found: &mut Suggestion) {
        let mut has_gateway = [false; 2];
        for address in fixed {
            let is_ipv6 = address.address.is_ipv6();
            let gateway = gateways.iter().find(|gateway| gateway.is_ipv6() == is_ipv6);
            let [v4, v6] = &mut has_gateway;
            let has = if is_ipv6 { v6 } else { v4 };
            let gateway = gateway.filter(|_| !std::mem::replace(has, true));
            let gateway = gateway.map_or_else(String::new, |gateway| bracketed(*gateway));
            found.add(
                format!(
                    "ip={}::{gateway}:{}::{}:none",
                    bracketed(address.address),
                    address.prefix,
                    self.name
                ),
                format!("static address of {} ({source})", self.netdev.ifname),
            );
        }
    }

    fn route(&self, route: &Route, found: &mut Suggestion) {
        let gateway = route.gateway.map_or_else(String::new, bracketed);
        let network = bracketed(route.network.address);
        let prefix = route.network.prefix;
        found.add(
            format!("rd.route={network}/{prefix}:{gateway}:{}", self.name),
            format!("route of {}", self.netdev.ifname),
        );
    }

    /// The client identifier of the lease that ibboot has, unless it is the default.
    fn id_of_lease(&self, id: &str, found: &mut Suggestion) {
        let name = self.name;
        if id.is_empty() || id.starts_with(FIRMWARE) {
            return;
        }
        let reason = "the client identifier of the lease";
        let guid = self
            .netdev
            .port_guid()
            .map(|guid| Hex(&guid.0.to_be_bytes()).to_string());
        match guid.is_some_and(|guid| id == format!("20:{guid}")) {
            true => found.add(format!("rd.ib.dhcp.client-id={name}:guid"), reason),
            false => {
                let id = id.replace(':', "-");
                found.add(format!("rd.net.dhcp.client-id={name}:{id}"), reason);
            }
        }
    }

    /// The client identifier, so that a reservation of the server stays valid.
    fn client_id(&self, found: &mut Suggestion) {
        let Some(profile) = self.profile.filter(|profile| profile.dhcp4) else {
            return;
        };
        let name = self.name;
        let written = profile.client_id.as_deref();
        let bytes = written.and_then(unhex).filter(|bytes| !bytes.is_empty());
        match (profile.program, written) {
            (_, Some(_)) if bytes.is_some() => {
                let bytes = bytes.unwrap_or_default();
                let hex = Hex(&bytes).to_string().replace(':', "-");
                found.add(
                    format!("rd.net.dhcp.client-id={name}:{hex}"),
                    format!("client identifier of {}", profile.file),
                );
            }
            (Program::Manager, None | Some("mac" | "perm-mac")) => found.add(
                format!("rd.ib.dhcp.client-id={name}:guid"),
                "the client identifier of NetworkManager, which the server knows",
            ),
            (_, _) => found.note(format!(
                "{name}: the DHCP server knows another client identifier ({}): see rd.net.dhcp.client-id=",
                profile.file
            )),
        }
    }
}

/// What is common to all interfaces: name servers, and the owner in the real root.
pub fn of_all(used: &[&Netdev], facts: &Facts, profiles: &[Profile], found: &mut Suggestion) {
    let mut managers = Vec::new();
    for netdev in used {
        let Some(profile) = profile(netdev, facts, profiles) else {
            continue;
        };
        for server in &profile.dns {
            found.add(
                format!("nameserver={server}"),
                format!("name server of {}", profile.file),
            );
        }
        if profile.program == Program::Manager {
            managers.push(netdev.ifname.as_str());
        }
        if let Some(zone) = &profile.zone {
            found.note(format!(
                "{} sets firewalld's zone {zone}, which ibboot does not set: firewall-cmd --permanent --zone={zone} --add-interface={}",
                profile.file,
                boot_name(netdev, facts)
            ));
        }
    }
    // A server of addresses names the name servers too.
    let mut addresses = found.arguments.iter().map(|one| one.argument.as_str());
    let has_server = addresses.clone().any(|one| one.starts_with("nameserver="))
        || addresses
            .clone()
            .any(|one| one.starts_with("ip=") && !one.ends_with(":none"));
    if !has_server && addresses.any(|one| one.starts_with("ip=")) {
        found.note(
            "no name server is suggested: write nameserver=ADDRESS if the boot uses host names",
        );
    }
    if !managers.is_empty() {
        found.note(format!(
            "NetworkManager has profiles of {}; rd.ib.handover=nm gives the interfaces to it after boot",
            managers.join(", ")
        ));
    }
}

/// Whether a route without a gateway is one of its own beside these static addresses: the kernel makes
/// those to the network of an address, to link-local addresses and to groups.
fn is_own(route: &Route, fixed: &[Address]) -> bool {
    let network = route.network.address;
    let mut own = fixed.iter().map(|address| address.network());
    own.clone()
        .any(|own| own.address.is_ipv6() == network.is_ipv6())
        && !is_link_local(network)
        && !network.is_multicast()
        && own.all(|own| own != route.network)
}

/// An address as in `ip=`: IPv6 in brackets.
fn bracketed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
