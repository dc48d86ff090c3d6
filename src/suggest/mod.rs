// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE but for `files`: the kernel arguments for the links that a node has now, each with its reason.

pub mod files;
mod interface;
pub mod keyfile;
#[cfg(test)]
mod tests;

use kernel_cmdline::PciAddress;
use serde::Serialize;

use crate::SCHEMA;
use crate::error::printable;
use crate::facts::{Facts, Netdev, PortRef, rules};
use crate::rdma::types::{LinkLayer, NodeType, PortState};
use crate::verify::unread;
use keyfile::Profile;

/// A kernel of x86 takes 2047 bytes (COMMAND_LINE_SIZE of arch/x86/include/asm/setup.h).
const LINE: usize = 2047;
/// Ports of one `rd.ib.require=`.
const REQUIRED: usize = 16;

/// A kernel argument, and why it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// As on the command line.
    pub argument: String,
    /// The facts that it follows from.
    pub reason: String,
}

/// The arguments, and what they do not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// Version of the shape.
    pub schema: u32,
    /// In the order of the command line.
    pub arguments: Vec<Argument>,
    /// What an administrator must know before a boot, one line each.
    pub notes: Vec<String>,
}

impl Suggestion {
    fn add(&mut self, argument: String, reason: impl Into<String>) {
        // Names come from the machine; a quote or a space would change the arguments behind it.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
        if !argument.bytes().all(is_plain) {
            let argument = printable(&argument);
            return self.note(format!(
                "{argument}: a name in it cannot stand on a command line"
            ));
        }
        if self
            .arguments
            .iter()
            .all(|known| known.argument != argument)
        {
            let reason = reason.into();
            self.arguments.push(Argument { argument, reason });
        }
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The arguments as one line.
    pub fn line(&self) -> String {
        let arguments = self.arguments.iter().map(|one| one.argument.as_str());
        arguments.collect::<Vec<_>>().join(" ")
    }

    /// One argument a line, with its reason; the notes as comments.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Argument { argument, reason } in &self.arguments {
            text.push_str(&format!("{argument}  # {}\n", printable(reason)));
        }
        for note in &self.notes {
            text.push_str(&format!("# note: {}\n", printable(note)));
        }
        text
    }
}

/// The arguments for a machine with these facts and profiles; `unread` are lines about profiles that
/// could not be read. Without an argument nothing can be suggested, and the notes say why.
pub fn suggest(facts: &Facts, profiles: &[Profile], unread: Vec<String>) -> Suggestion {
    let mut found = Suggestion {
        schema: SCHEMA,
        arguments: Vec::new(),
        notes: unread,
    };
    let used = in_use(facts, profiles);
    incomplete(facts, &used, &mut found);
    required(facts, &used, &mut found);
    software(facts, &mut found);
    for netdev in &used {
        interface::of_netdev(netdev, facts, profiles, &mut found);
    }
    interface::of_all(&used, facts, profiles, &mut found);
    if facts.devices.is_empty() {
        nothing(facts, &mut found);
    } else if found.arguments.is_empty() && (found.notes.is_empty() || !has_active(facts)) {
        found.note(
            "no InfiniBand or Ethernet port is ACTIVE here: run this on a node whose links work",
        );
    }
    let length = found.line().len();
    if length > LINE {
        found.note(format!(
            "the command line has {length} bytes, and an x86 kernel accepts {LINE}: put the arguments into the image (dracut --kernel-cmdline)"
        ));
    }
    found
}

/// Notes about facts that could not be read, and that an argument would follow from.
fn incomplete(facts: &Facts, used: &[&Netdev], found: &mut Suggestion) {
    let names: Vec<&str> = used.iter().map(|netdev| netdev.ifname.as_str()).collect();
    for unread in unread::of_interfaces(&names, facts) {
        let lost = match unread::is_of_grants(unread) {
            true => "no ip= is suggested for an address that a DHCP server may have granted",
            false => "arguments that follow from this are missing",
        };
        found.note(format!("{}: {}: {lost}", unread.path, unread.why));
    }
}

/// Whether an InfiniBand or Ethernet port is ACTIVE, or may be: its state is not known.
fn has_active(facts: &Facts) -> bool {
    let is_link = |layer| matches!(layer, Some(LinkLayer::InfiniBand | LinkLayer::Ethernet));
    facts.ports().any(|port| {
        let state = port.port.state;
        is_link(port.port.link_layer) && state.is_none_or(|state| state == PortState::Active)
    })
}

/// The interfaces that shall be set up: parents before children, bonds last.
fn in_use<'f>(facts: &'f Facts, profiles: &[Profile]) -> Vec<&'f Netdev> {
    let is_used = |netdev: &&Netdev| {
        // A profile for every interface is no wish for each of them.
        let profile = interface::profile(netdev, facts, profiles);
        let has_profile = profile.is_some_and(|profile| profile.names(&netdev.ifname));
        let has_address = interface::addresses(netdev).next().is_some();
        let mut bonds = netdev.bond.iter();
        let is_in_bond = is_slave(netdev, facts) || bonds.any(|bond| !bond.slaves.is_empty());
        netdev.is_infiniband() && (has_address || has_profile || is_in_bond)
    };
    let mut used: Vec<&Netdev> = facts.netdevs.iter().filter(is_used).collect();
    // The name of a parent is pinned too, unless that would require a carrier which it does not have.
    let parents: Vec<&Netdev> = used
        .iter()
        .filter_map(|netdev| rules::parent(netdev, facts))
        .filter(|parent| parent.carrier == Some(true))
        .collect();
    for parent in parents {
        if used.iter().all(|one| one.ifname != parent.ifname) {
            used.push(parent);
        }
    }
    let rank = |netdev: &Netdev| match (&netdev.bond, interface::child_key(netdev)) {
        (Some(_), _) => 2,
        (None, Some(_)) => 1,
        (None, None) => 0,
    };
    used.sort_by_key(|netdev| rank(netdev));
    used
}

/// `rd.ib.require=`: the interfaces in use are required because they are named; the other ports
/// that are ACTIVE need this argument, and it must then name all. So does an interface without
/// carrier, which would be required otherwise.
fn required(facts: &Facts, used: &[&Netdev], found: &mut Suggestion) {
    let has_interface = |port: &PortRef<'_>| {
        let mut used = used.iter();
        used.any(|netdev| netdev.is_over(*port))
    };
    let is_active = |port: &PortRef<'_>| port.port.state == Some(PortState::Active);
    let (idle, counted): (Vec<_>, Vec<_>) = facts
        .ports()
        .partition(|port| facts.is_for_guest(port) && !has_interface(port));
    let infiniband = of_layer(&counted, LinkLayer::InfiniBand);
    let names = with_carrier(facts, used);
    let bare = infiniband
        .iter()
        .filter(|port| is_active(port) && !has_interface(port));
    let bare: Vec<&PortRef<'_>> = bare.collect();
    let are_all_required = names.is_empty() && bare.is_empty() && !used.is_empty();
    let idle_ports = infiniband.iter().filter(|port| !is_active(port));
    let idle_ports = idle_ports.filter(|port| !(are_all_required && has_interface(port)));
    not_required(idle_ports, idle.len(), found);
    let ethernet = of_layer(&counted, LinkLayer::Ethernet).into_iter();
    let (ethernet, idle_ports): (Vec<_>, Vec<_>) = ethernet
        .filter(|port| !port.device.is_software())
        .partition(is_active);
    if infiniband.is_empty() {
        not_required(idle_ports.iter(), 0, found);
        return require_ethernet(ethernet, found);
    }
    for port in ethernet {
        found.note(format!(
            "{} is an Ethernet port (RoCE) and not required: its interface is left to the image's network module",
            port.name()
        ));
    }
    if are_all_required {
        let names: Vec<String> = used
            .iter()
            .map(|n| interface::boot_name(n, facts))
            .collect();
        return found.note(format!(
            "{}: required because the arguments name them, although they have no carrier",
            names.join(", ")
        ));
    }
    if bare.is_empty() && used.iter().all(|netdev| netdev.carrier == Some(true)) {
        return;
    }
    let guids = bare.iter().filter_map(|port| port.port.port_guid);
    let guids = guids.map(|guid| format!("guid={guid}"));
    let all: Vec<String> = names.into_iter().chain(guids).collect();
    let active = infiniband.iter().filter(|port| is_active(port)).count();
    require(&all, active, found);
}

/// `rd.ib.require=` of these names and GUIDs, or of the number of ACTIVE ports if there are many.
fn require(all: &[String], active: usize, found: &mut Suggestion) {
    match all.len() > REQUIRED {
        true => found.add(
            format!("rd.ib.require=ib:{active}"),
            "number of the ports that are ACTIVE",
        ),
        false => found.add(
            format!("rd.ib.require={}", all.join(",")),
            "ports that are ACTIVE, and interfaces in use that have carrier",
        ),
    }
}

/// The notes about ports that are not ACTIVE, and about ports for guests.
fn not_required<'p>(
    ports: impl Iterator<Item = &'p PortRef<'p>>,
    for_guests: usize,
    found: &mut Suggestion,
) {
    for port in ports {
        let state = port.port.state;
        let name = port.name();
        found.note(match state {
            Some(state) => format!("{name} is {state} and not required"),
            None => format!("the state of {name} is not known: not required"),
        });
    }
    if for_guests > 0 {
        found.note(format!(
            "ports of virtual functions and sub-functions that are not required: {for_guests}"
        ));
    }
}

/// The names of the interfaces in use that have carrier; a bond stands for its interfaces.
fn with_carrier(facts: &Facts, used: &[&Netdev]) -> Vec<String> {
    let own = used
        .iter()
        .filter(|netdev| netdev.carrier == Some(true) && !is_slave(netdev, facts));
    own.map(|netdev| interface::boot_name(netdev, facts))
        .collect()
}

fn is_slave(netdev: &Netdev, facts: &Facts) -> bool {
    let mut bonds = facts.netdevs.iter().filter_map(|one| one.bond.as_ref());
    bonds.any(|bond| bond.slaves.contains(&netdev.ifname))
}

fn of_layer<'f>(ports: &[PortRef<'f>], layer: LinkLayer) -> Vec<PortRef<'f>> {
    let ports = ports.iter().copied();
    ports
        .filter(|port| port.port.link_layer == Some(layer))
        .collect()
}

/// The ports of RoCE and iWARP cards, by PCI address: the driver of such a card is loaded only for
/// a selector that identifies the card.
fn require_ethernet(ports: Vec<PortRef<'_>>, found: &mut Suggestion) {
    let mut cards: Vec<PciAddress> = Vec::new();
    for port in &ports {
        let address = port.device.bus_address.as_deref().unwrap_or_default();
        match PciAddress::parse(address) {
            Some(card) if cards.contains(&card) => {}
            Some(card) => cards.push(card),
            None => found.note(format!(
                "{} is no PCI card ({address}), and not required",
                port.name()
            )),
        }
    }
    if cards.is_empty() {
        return;
    }
    let list: Vec<String> = cards.iter().map(|card| format!("pci={card}")).collect();
    let argument = match list.len() > REQUIRED {
        true => format!("rd.ib.require=eth:{}", ports.len()),
        false => format!("rd.ib.require={}", list.join(",")),
    };
    found.add(
        argument,
        "cards with an ACTIVE Ethernet port (RoCE or iWARP)",
    );
    found.note("no InfiniBand port here: addresses of Ethernet interfaces are left to the image's network module");
}

/// `rd.ib.link=` for the devices in software.
fn software(facts: &Facts, found: &mut Suggestion) {
    for device in facts.devices.iter().filter(|device| device.is_software()) {
        let attached = device.ports.iter().find_map(|port| port.netdev.as_ref());
        let Some(netdev) = device.parent.as_ref().or(attached) else {
            continue;
        };
        let kind = match device.node_type {
            Some(NodeType::Rnic) => "siw",
            _ => "rxe",
        };
        let name = &device.ifname;
        let reason = format!("{name} is a software device on {netdev}");
        found.add(format!("rd.ib.link={name}:{kind}:{netdev}"), reason);
    }
}

/// Why a machine without RDMA devices has no arguments.
fn nothing(facts: &Facts, found: &mut Suggestion) {
    let functions: Vec<&str> = facts.functions.iter().map(|f| f.address.as_str()).collect();
    found.note(match functions.is_empty() {
        true => "no RDMA device and no RDMA card here: there is nothing to suggest; run this on a node whose links work"
            .to_owned(),
        false => format!(
            "no RDMA device here, although there is a card at {}: load its driver, or see ibboot status",
            functions.join(", ")
        ),
    });
}
