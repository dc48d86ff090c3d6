// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what the present machine shows of a request before a boot depends on it: names that are not
//! here, settings that its interfaces do not support, and arguments that other programs carry out.
//! A note is no refusal: the boot may find what is not here now.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use kernel_cmdline::{RDMA_MODULES, nearest};

use super::tokens::NETWORK_MODULE;
use super::{Action, Fate, Inventory, Plan, Token};
use crate::dhcp::identity::RequestedId;
use crate::facts::select::{self, Ports};
use crate::facts::{Device, Facts, PortRef, rules};
use crate::request::{Known, Request, Written};
use crate::wish::bond::OPTIONS;
use crate::wish::expectation::{LinkWish, Rate, Target};
use crate::wish::ipoib::{
    CONNECTED_MAX, DATAGRAM_MAX, IpoibWish, Mode, OPA_DATAGRAM_MAX, RequestedMode, RequestedMtu,
};
use crate::wish::origin::Origin;
use crate::wish::selector::{Means, Selector};

/// Files that a boot writes for itself.
const OF_THIS_BOOT: &str = "/run/initramfs/";
/// Names in one list.
const LISTED: usize = 8;

/// The notes, one line each. In an initramfs the interfaces are those that the boot sets up; outside
/// of one the kernel makes them anew.
pub fn notes(
    request: &Request,
    plan: &Plan,
    inventory: &Inventory,
    is_initramfs: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = inventory.modules.assumed() {
        notes.push(format!(
            "{why}: the image is assumed to have every module (--image FILE looks into one)"
        ));
    }
    notes.extend(absent(request, plan, &inventory.facts));
    notes.extend(impossible(plan, &inventory.facts, is_initramfs));
    notes.extend(contradictory(plan, &inventory.facts));
    notes.extend(same_interface(plan, &inventory.facts));
    notes.extend(ambiguous(plan, &inventory.facts));
    notes.extend(same_address(plan));
    notes.extend(same_identifier(plan, &inventory.facts));
    notes.extend(unreachable_gateways(plan));
    notes.extend(unreachable_server(request, plan));
    notes.extend(idle_rates(plan, &inventory.facts));
    notes.extend(unknown_options(plan));
    notes.extend(idle_options(plan));
    notes.extend(left_drivers(request, plan));
    notes.extend(left_interfaces(plan));
    notes.extend(unreadable_to_dracut(request));
    notes.extend(unreadable_to_legacy(request));
    notes.extend(request.strangers.iter().cloned());
    notes
}

/// `parse_ifname_opts` of dracut's net-lib.sh, which comes with every network module of dracut, ends
/// the boot at an address that has neither 6 nor 20 bytes with colons.
fn unreadable_to_dracut(request: &Request) -> impl Iterator<Item = String> {
    let written = request.written.iter();
    let ifnames = written.filter(|one| one.name == Some("ifname"));
    let is_valid = |one: &&Written| !matches!(one.known, Known::Complaint(_));
    let is_read = |argument: &str| matches!(argument.split(':').count(), 7 | 21);
    let odd = ifnames.filter(is_valid);
    let odd = odd.filter(move |one| !is_read(&one.origin.argument));
    odd.map(|one| {
        format!(
            "{}: dracut halts the node here if the image has a network module of dracut: write the address as 6 or 20 \
             bytes with colons (20 as ip link prints them; only the last 8 count)",
            one.origin
        )
    })
}

/// `ip_to_var` of dracut's net-lib.sh and parse-ip-opts.sh of network-legacy end the boot at an `ip=`
/// that other network modules and ibboot read.
fn unreadable_to_legacy(request: &Request) -> impl Iterator<Item = String> {
    const OF_INTERFACE: [&str; 6] = ["dhcp", "on", "any", "dhcp6", "auto6", "either6"];
    const OF_SERVER: [&str; 4] = ["dhcp", "on", "any", "dhcp6"];
    let is_refused = |value: &str| {
        let fields: Vec<&str> = value.split(':').collect();
        // Each group of an IPv6 address would be a field here.
        let [client, second, ..] = fields[..] else {
            return false;
        };
        let method = fields.get(6).copied().unwrap_or_default();
        !value.contains('[')
            && !client.is_empty()
            && !OF_INTERFACE.contains(&second)
            && (method.is_empty() || OF_SERVER.contains(&method))
    };
    let written = request.written.iter();
    let ips = written.filter(|one| one.name == Some("ip"));
    let valid = ips.filter(|one| !matches!(one.known, Known::Complaint(_)));
    let value = |one: &Written| Some(one.origin.argument.strip_prefix("ip=")?.to_owned());
    let refused = valid.filter(move |one| value(one).is_some_and(|value| is_refused(&value)));
    refused.map(|one| {
        format!(
            "{}: dracut halts the node at this argument if the image has the module network-legacy, which reads \
             IF:METHOD with one of dhcp, on, any, dhcp6, auto6 and either6, and a static address with none or off \
             only",
            one.origin
        )
    })
}

/// Command lines of the image that this machine has as files, and those of this boot only.
pub fn of_files(request: &Request) -> Vec<String> {
    let written = request.written.iter();
    let sources: BTreeSet<&str> = written
        .map(|written| written.origin.source.as_str())
        .filter(|source| source.starts_with("/etc/cmdline") || source.starts_with(OF_THIS_BOOT))
        .collect();
    let note = |source: &str| match source.starts_with(OF_THIS_BOOT) {
        true => {
            format!("{source} was written during this boot: the next boot may not have the file")
        }
        false => format!(
            "{source} is read as if the image had it: dracut copies the file with install_items+=\" {source} \""
        ),
    };
    sources.into_iter().map(note).collect()
}

/// A name in the request, the selector that it is, and the argument that has it.
struct Named<'a> {
    name: &'a str,
    selector: Option<&'a Selector>,
    origin: Option<&'a Origin>,
}

impl<'a> Named<'a> {
    fn new(selector: &'a Selector, origin: Option<&'a Origin>) -> Named<'a> {
        Named {
            name: selector.as_str(),
            selector: Some(selector),
            origin,
        }
    }

    fn argument(&self) -> &str {
        self.origin.map_or(self.name, |origin| &origin.argument)
    }
}

/// Every name that must mean something that exists before ibboot runs, each once.
fn named<'a>(request: &'a Request, plan: &'a Plan) -> Vec<Named<'a>> {
    let of_link = |link: &'a LinkWish| {
        let selector = link.selector().filter(|_| link.netdev.is_none());
        let port = selector.map_or(link.target.as_str(), Selector::as_str);
        let exists = link.bond.is_none() && link.refused.is_none();
        exists.then_some(Named {
            name: link.netdev.as_deref().unwrap_or(port),
            selector,
            origin: link.requested_by.as_ref(),
        })
    };
    let of_step = |step: &'a super::Step| {
        let selector = match &step.action {
            Action::SetPortType { selector, .. } => Some(selector),
            Action::SetRoceMode { selector, .. } => selector.as_ref(),
            _ => None,
        };
        selector.map(|selector| Named::new(selector, step.requested_by.as_ref()))
    };
    let bare = |selector: &'a Selector| Named::new(selector, None);
    let rates = request
        .rates
        .iter()
        .filter_map(|rate| rate.selector.as_ref());
    let all = plan.expectation.links.iter().filter_map(of_link);
    let all = all.chain(plan.steps.iter().filter_map(of_step));
    let all = all.chain(rates.chain(request.required.except()).map(bare));
    let mut once: Vec<Named<'a>> = Vec::new();
    for named in all {
        if once.iter().all(|known| known.name != named.name) {
            once.push(named);
        }
    }
    let made = |named: &Named<'_>| {
        let mut links = request.links.iter();
        links.any(|link| link.value.is_named(named.name))
    };
    // What does not count may be a card without an RDMA device, or the port of another node.
    let is_excluded = |named: &Named<'_>| {
        let is_fixed =
            |selector: &Selector| matches!(selector.means(), Means::Pci(_) | Means::Guid(_));
        let mut except = request.required.except().iter();
        named.selector.is_some_and(is_fixed) && except.any(|text| *text == named.name)
    };
    once.retain(|named| !made(named) && !is_excluded(named));
    once
}

/// The selectors that mean nothing here.
fn absent(request: &Request, plan: &Plan, facts: &Facts) -> Vec<String> {
    let all = named(request, plan);
    let is_below = |named: &&Named<'_>| {
        let mut links = request.links.iter();
        links.any(|link| link.value.netdev == named.name)
    };
    let mut notes: Vec<String> = all
        .iter()
        .filter(|named| is_below(named) && facts.netdev(named.name).is_none())
        .map(|named| {
            let name = named.name;
            format!("{}: this machine has no interface {name}", named.argument())
        })
        .collect();
    let mut ports = all.iter().filter(|named| !is_below(named)).peekable();
    if facts.devices.is_empty() {
        let nothing = "this machine has no RDMA device, so ibboot did not check names and GUIDs";
        notes.extend(ports.peek().map(|_| nothing.to_owned()));
        return notes;
    }
    notes.extend(ports.filter_map(|named| {
        let why = why_absent(named.selector?, facts)?;
        Some(format!("{}: {why}", named.argument()))
    }));
    notes
}

/// Why a selector means no port of this machine, with what it may have meant; none if it means one.
fn why_absent(selector: &Selector, facts: &Facts) -> Option<String> {
    let is_card = |address: &str| facts.function(address).is_some();
    if !select::ports(selector, facts).is_empty() {
        return None;
    }
    if let Some(other) = select::others(selector, facts).first() {
        let what = other.port.role.words();
        return Some(format!("{} carries no link: {what}", other.name()));
    }
    let device = |name: &str| facts.devices.iter().find(|device| device.ifname == name);
    Some(match selector.means() {
        Means::Port { device: name, port } => match device(name) {
            Some(device) => {
                format!(
                    "{name} of this machine has no port {port} ({})",
                    ports_of(device)
                )
            }
            None => format!(
                "this machine has no RDMA device {name} ({})",
                devices(facts)
            ),
        },
        Means::Name(name) if facts.netdev(name).is_some() => {
            format!("the interface {name} of this machine has no RDMA port")
        }
        Means::Name(name) => format!(
            "this machine has no interface and no RDMA device {name} ({})",
            interfaces(facts)
        ),
        Means::Guid(address) => {
            let guid = address.guid().map(|guid| guid.to_string());
            let guid = guid.unwrap_or_else(|| address.to_string());
            format!(
                "no port of this machine has the GUID {guid} ({})",
                guids(facts)
            )
        }
        Means::Pci(address) if is_card(&address.to_string()) => {
            format!("the card at {address} of this machine has no RDMA device")
        }
        Means::Pci(address) => {
            format!(
                "this machine has no RDMA card at {address} ({})",
                cards(facts)
            )
        }
    })
}

/// The first of these names, and how many follow.
pub fn list<N: AsRef<str>>(names: impl Iterator<Item = N>) -> String {
    let names: Vec<N> = names.collect();
    let (first, more) = names.split_at_checked(LISTED).unwrap_or((&names, &[]));
    let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
    match more.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn ports_of(device: &Device) -> String {
    let ports = device.ports.iter().map(|port| port.port.to_string());
    format!("ports: {}", list(ports))
}

fn devices(facts: &Facts) -> String {
    let names = facts.devices.iter().map(|device| &device.ifname);
    format!("RDMA devices: {}", list(names))
}

fn interfaces(facts: &Facts) -> String {
    let is_ipoib = |netdev: &&crate::facts::Netdev| netdev.is_infiniband() && netdev.bond.is_none();
    let netdevs = facts.netdevs.iter().filter(is_ipoib);
    let mut names = netdevs.map(|netdev| &netdev.ifname).peekable();
    let mut ports = facts.ports().map(|port| port.name_and_layer()).peekable();
    match (names.peek(), ports.peek()) {
        (Some(_), _) => format!("IPoIB interfaces: {}", list(names)),
        (None, Some(_)) => format!("no IPoIB interface; RDMA ports: {}", list(ports)),
        (None, None) => format!("no IPoIB interface; {}", devices(facts)),
    }
}

fn guids(facts: &Facts) -> String {
    let guid = |found: PortRef<'_>| Some(format!("{} {}", found.name(), found.port.port_guid?));
    list(facts.ports().filter_map(guid))
}

fn cards(facts: &Facts) -> String {
    let addresses = facts.devices.iter().filter_map(Device::card);
    format!("cards: {}", list(addresses))
}

/// Modes and MTUs that the interfaces of this machine do not support.
fn impossible(plan: &Plan, facts: &Facts, is_initramfs: bool) -> Vec<String> {
    let ports = Ports::new(facts);
    let expected = &plan.expectation;
    let named = rules::named_interfaces(expected, &ports);
    let mut notes = BTreeSet::new();
    for link in expected.links.iter().chain(&expected.any_port) {
        // A bond has no mode of its own.
        let Some(wish) = link.ipoib.as_ref().filter(|_| link.bond.is_none()) else {
            continue;
        };
        let found = ports.of(link).into_iter();
        let found: Vec<_> = found
            .filter(|port| rules::wants_interface(link, *port, &named))
            .collect();
        if found.is_empty() {
            let name = link.target.as_str();
            notes.extend(above(wish, name, largest(wish.mode), has_omni_path(facts)));
        }
        for port in found {
            notes.extend(of_port(link, port, facts, is_initramfs));
        }
    }
    notes.into_iter().collect()
}

/// Two names of one interface, of which connected and datagram mode are requested: only the machine
/// shows that both names mean the same port.
fn contradictory(plan: &Plan, facts: &Facts) -> Vec<String> {
    let ports = Ports::new(facts);
    let mut notes = Vec::new();
    let mut known = Vec::new();
    for link in &plan.expectation.links {
        let is_of_it = !link.of_all && link.refused.is_none();
        let wish = link.ipoib.as_ref().filter(|_| is_of_it);
        let mode = wish.and_then(|wish| wish.mode);
        let (Some(wish), Some(mode), Some(by)) = (wish, mode, &link.requested_by) else {
            continue;
        };
        if mode == RequestedMode::Auto {
            continue;
        }
        for port in ports.of(link) {
            let interface = (port.name(), wish.pkey);
            let mut others = known.iter();
            let other = others.find(|(other, asked, _)| *other == interface && *asked != mode);
            notes.extend(other.map(|(_, _, other)| {
                format!(
                    "{by}: {other} names the same interface, on {}: the command line requests both connected and datagram mode for this interface",
                    port.name()
                )
            }));
            known.push((interface, mode, by));
        }
    }
    notes
}

/// Two names of one interface, both with addresses, or one in a bond: only the machine shows that both
/// mean the same port.
fn same_interface(plan: &Plan, facts: &Facts) -> Vec<String> {
    let ports = Ports::new(facts);
    let mut notes = Vec::new();
    let mut known: Vec<(String, &LinkWish, &IpoibWish)> = Vec::new();
    for link in &plan.expectation.links {
        let is_one = !link.of_all && link.refused.is_none() && link.bond.is_none();
        let Some(wish) = link.ipoib.as_ref().filter(|_| is_one) else {
            continue;
        };
        let [port] = ports.of(link)[..] else { continue };
        let name = port.name();
        for (_, other, asked) in known.iter().filter(|(other, ..)| *other == name) {
            let is_used = |wish: &IpoibWish| wish.is_addressed() || wish.bond.is_some();
            if wish.pkey != asked.pkey || !is_used(wish) || !is_used(asked) {
                continue;
            }
            let why = match wish.bond.as_ref().or(asked.bond.as_ref()) {
                Some(bond) => format!("it is in {bond}, which has the addresses"),
                None => "addresses of both are requested".to_owned(),
            };
            notes.push(format!(
                "{} and {} name the same interface, on {name}: {why}",
                other.target, link.target
            ));
        }
        known.push((name, link, wish));
    }
    notes
}

/// Requests for one interface that mean several ports.
fn ambiguous(plan: &Plan, facts: &Facts) -> Vec<String> {
    let ports = Ports::new(facts);
    let note = |link: &LinkWish| {
        let found = ports.of(link);
        let names = found.iter().map(PortRef::name);
        rules::is_ambiguous(link, &found).then(|| {
            format!(
                "{} means {}: a static address and a place in a bond are for one interface: write DEVICE:PORT, guid= \
                 or the interface",
                link.target,
                list(names)
            )
        })
    };
    plan.expectation.links.iter().filter_map(note).collect()
}

/// Interfaces of one port that send the same client identifier to DHCP servers.
fn same_identifier(plan: &Plan, facts: &Facts) -> Vec<String> {
    let ports = Ports::new(facts);
    let mut known: Vec<(String, &RequestedId, &Target)> = Vec::new();
    let mut notes = Vec::new();
    for link in &plan.expectation.links {
        let dhcp = link.ipoib.as_ref().and_then(|wish| wish.dhcp.as_ref());
        let id = dhcp.map(|dhcp| &dhcp.client_id);
        let (Some(id), [found]) = (id.filter(|id| id.is_of_port()), &ports.of(link)[..]) else {
            continue;
        };
        let name = found.name();
        let mut before = known.iter();
        if let Some((.., other)) = before.find(|(port, sent, _)| *port == name && *sent == id) {
            notes.push(format!(
                "{other} and {} send the same DHCP client identifier: a server may forget the lease of one of them; \
                 write rd.net.dhcp.client-id= for one",
                link.target
            ));
        }
        known.push((name, id, &link.target));
    }
    notes
}

/// Static addresses that several interfaces get.
fn same_address(plan: &Plan) -> Vec<String> {
    let mut known: BTreeMap<IpAddr, &Target> = BTreeMap::new();
    let mut notes = Vec::new();
    for link in &plan.expectation.links {
        let wishes = link.ipoib.iter();
        for address in wishes.flat_map(|wish| &wish.addresses) {
            let other = known.insert(address.address, &link.target);
            notes.extend(other.filter(|other| **other != link.target).map(|other| {
                let address = address.address;
                format!(
                    "the command line requests {address} for {other} and for {}",
                    link.target
                )
            }));
        }
    }
    notes
}

/// IPv4 gateways that are in no network of their interface, which has static addresses only. A route
/// without a gateway may lead there, as with the address of a single host. A router may announce IPv6
/// networks.
fn unreachable_gateways(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for link in &plan.expectation.links {
        let is_static = |wish: &&IpoibWish| !wish.addresses.is_empty() && wish.dhcp.is_none();
        for wish in link.ipoib.iter().filter(is_static) {
            let is_outside = |gateway: &&IpAddr| gateway.is_ipv4() && !wish.reaches(**gateway);
            let hops = wish.routes.iter().filter_map(|route| route.gateway);
            let gateways: BTreeSet<IpAddr> = wish.gateways.iter().copied().chain(hops).collect();
            notes.extend(gateways.iter().filter(is_outside).map(|gateway| {
                format!(
                    "{}: the gateway {gateway} is in no network of this interface: the kernel refuses the route",
                    link.target
                )
            }));
        }
    }
    notes
}

/// The server of the root file system, if nothing in the request leads to it. DHCP and other programs may
/// bring a route.
fn unreachable_server(request: &Request, plan: &Plan) -> Option<String> {
    let root = request.root.as_ref()?;
    let server = root.value.server.filter(IpAddr::is_ipv4)?;
    let is_left = |token: &Token| token.fate == Fate::Left && token.to == NETWORK_MODULE;
    let has_other = plan.tokens.iter().any(is_left);
    let has_dhcp = request.all_interfaces().any(|one| one.ipoib.dhcp.is_some());
    let is_static = request
        .all_interfaces()
        .any(|one| !one.ipoib.addresses.is_empty());
    let leads_nowhere =
        is_static && !has_dhcp && !has_other && super::root::carried(request).is_none();
    leads_nowhere.then(|| {
        format!(
            "{}: the server {server} is in no network of the requested addresses, and no gateway or route leads to it",
            root.origin
        )
    })
}

/// Minimum rates of ports that no link means: nothing is compared with them.
fn idle_rates(plan: &Plan, facts: &Facts) -> Vec<String> {
    let (expected, ports) = (&plan.expectation, Ports::new(facts));
    let links = expected.links.iter().chain(&expected.any_port);
    let used: BTreeSet<String> = links
        .flat_map(|link| ports.of(link))
        .map(|port| port.name())
        .collect();
    let note = |rate: &Rate| {
        let selector = rate.selector.as_ref()?;
        let meant = select::ports(selector, facts);
        let is_idle = !meant.is_empty() && !meant.iter().any(|port| used.contains(&port.name()));
        let gbps = f64::from(rate.megabits) / 1000.0;
        is_idle.then(|| format!("rd.ib.rate={selector}={gbps}: no other argument requests this port, so ibboot does not check the rate of the port"))
    };
    expected.rates.iter().filter_map(note).collect()
}

/// Options of a bond that cannot be set: the driver has no file of this name.
fn unknown_options(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for link in &plan.expectation.links {
        let options = link.bond.iter().flat_map(|bond| &bond.options);
        let unknown = options.filter(|(option, _)| !OPTIONS.contains(&option.as_str()));
        notes.extend(unknown.map(|(option, _)| {
            let hint = nearest(option, OPTIONS.iter().copied());
            let hint = hint.map_or_else(String::new, |hint| format!("; did you mean {hint}?"));
            let bond = &link.target;
            format!(
                "{bond}: the kernel has no option {option} in /sys/class/net/{bond}/bonding{hint}"
            )
        }));
    }
    notes
}

/// Options of a bond that the kernel does not keep: it sets `arp_interval` to 0 with `miimon`
/// (bond_option_miimon_set of drivers/net/bonding/bond_options.c), and refuses a `primary` that is not in
/// the bond.
fn idle_options(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for link in &plan.expectation.links {
        let Some(bond) = &link.bond else { continue };
        let value = |name: &str| {
            let found = bond.options.iter().find(|(option, _)| option == name)?;
            Some(found.1.as_str())
        };
        let is_on = |name: &str| value(name).is_some_and(|value| value != "0");
        if is_on("miimon") && is_on("arp_interval") {
            notes.push(format!(
                "{}: the kernel does not use miimon and arp_interval together: remove one of them",
                link.target
            ));
        }
        // Which interface a selector means is known only on the machine.
        let is_other = |slave: &String, name: &str| slave != name && !slave.contains([':', '=']);
        let mut slaves = bond.slaves.iter();
        let primary = value("primary").filter(|name| slaves.all(|slave| is_other(slave, name)));
        notes.extend(primary.map(|primary| {
            format!(
                "{}: primary={primary} is not an interface of this bond ({})",
                link.target,
                bond.slaves.join(", ")
            )
        }));
    }
    notes
}

fn has_omni_path(facts: &Facts) -> bool {
    let mut devices = facts.devices.iter();
    devices.any(Device::is_omni_path) || facts.devices.is_empty()
}

/// The mode with the largest MTU that an interface can have which is not known yet; without
/// `rd.ib.mode=` the mode in which the kernel starts (drivers/infiniband/ulp/ipoib/ipoib_main.c).
fn largest(mode: Option<RequestedMode>) -> Mode {
    match mode {
        Some(RequestedMode::Datagram) | None => Mode::Datagram,
        Some(_) => Mode::Connected,
    }
}

/// The note about an MTU above the limit.
fn above(wish: &IpoibWish, name: &str, mode: Mode, is_omni_path: bool) -> Option<String> {
    let most = match mode {
        Mode::Datagram if is_omni_path => OPA_DATAGRAM_MAX,
        Mode::Datagram => DATAGRAM_MAX,
        Mode::Connected => CONNECTED_MAX,
    };
    let mode = mode.word();
    match wish.mtu {
        Some(RequestedMtu::Bytes(bytes)) if bytes > most => Some(format!(
            "{name}: MTU {bytes} was requested; {mode} mode allows at most {most}"
        )),
        _ => None,
    }
}

fn of_port(
    link: &LinkWish,
    port: PortRef<'_>,
    facts: &Facts,
    is_initramfs: bool,
) -> Option<String> {
    let wish = link.ipoib.as_ref()?;
    // Mode and broadcast group of a child are those of its own: only the parent is here for certain.
    let netdev = rules::interface(link, port, facts).or_else(|| rules::own_interface(port, facts));
    let is_omni_path = port.device.is_omni_path();
    let Some(netdev) = netdev else {
        return above(wish, &port.name(), largest(wish.mode), is_omni_path);
    };
    let present = netdev.ipoib.as_ref().and_then(|ipoib| ipoib.mode);
    let mode = match wish.mode.map(|mode| rules::mode(mode, netdev)) {
        Some(Err(why)) => return Some(why),
        Some(Ok(mode)) => Some(mode),
        None if is_initramfs => present,
        None => Some(largest(None)),
    };
    let mode = mode.unwrap_or(Mode::Connected);
    above(wish, &netdev.ifname, mode, is_omni_path)
}

/// Modules that ibboot leaves to dracut, because they are not modules of the RDMA stack.
fn left_drivers(request: &Request, plan: &Plan) -> Vec<String> {
    let is_planned = |name: &str| {
        let mut modules = plan.expectation.modules.iter();
        modules.any(|module| module.name == name)
    };
    let left = request.modules.iter().filter(|m| !is_planned(&m.value));
    left.map(|module| {
        let name = &module.value;
        let hint = nearest(name, RDMA_MODULES.iter().copied());
        let hint = hint.map_or_else(String::new, |hint| format!("; did you mean {hint}?"));
        format!(
            "{}: {name} is not an RDMA module: dracut loads the module{hint}",
            module.origin
        )
    })
    .collect()
}

/// The arguments of interfaces that are not InfiniBand, if no other line says so.
fn left_interfaces(plan: &Plan) -> Option<String> {
    let is_left = |origin: &Origin| {
        let line = format!("{origin}: ");
        let mut lines = plan.left.iter().chain(&plan.unused);
        lines.any(|known| known.starts_with(&line))
    };
    let tokens = plan.tokens.iter();
    let left: Vec<&str> = tokens
        .filter(|token| token.fate == Fate::Left && token.to == NETWORK_MODULE)
        .filter(|token| !is_left(&token.origin))
        .map(|token| token.origin.argument.as_str())
        .collect();
    (!left.is_empty()).then(|| format!("{}: left to {NETWORK_MODULE}", left.join(" ")))
}
