// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE but for `files`: the kernel arguments for the links that a node has now, each with its reason.

pub mod files;
mod interface;
pub mod keyfile;

use serde::Serialize;

use crate::SCHEMA;
use crate::error::printable;
use crate::facts::{Facts, Netdev, PortRef};
use crate::hardware::HardwareType;
use crate::rdma::types::{LinkLayer, NodeType, PortState};
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
    if let Some(unread) = facts.unread_interfaces() {
        found.note(format!(
            "{}: {}: addresses are incomplete",
            unread.path, unread.why
        ));
    }
    let used = in_use(facts, profiles);
    required(facts, &used, &mut found);
    software(facts, &mut found);
    for netdev in &used {
        interface::of_netdev(netdev, facts, profiles, &mut found);
    }
    interface::of_all(&used, facts, profiles, &mut found);
    if facts.devices.is_empty() {
        nothing(facts, &mut found);
    }
    let length = found.line().len();
    if length > LINE {
        found.note(format!(
            "the line has {length} bytes, and a kernel of x86 takes {LINE}: give it to the image (dracut --kernel-cmdline)"
        ));
    }
    found
}

/// Whether it is an IPoIB interface or a bond of such interfaces.
fn is_infiniband(netdev: &Netdev) -> bool {
    netdev.hardware_type == Some(HardwareType::InfiniBand)
}

/// The interfaces that shall be set up: parents before children, bonds last.
fn in_use<'f>(facts: &'f Facts, profiles: &[Profile]) -> Vec<&'f Netdev> {
    let is_slave = |netdev: &Netdev| {
        let mut bonds = facts.netdevs.iter().filter_map(|one| one.bond.as_ref());
        bonds.any(|bond| bond.slaves.contains(&netdev.ifname))
    };
    let is_used = |netdev: &&Netdev| {
        // A profile for every interface is no wish for each of them.
        let profile = interface::profile(netdev, facts, profiles);
        let has_profile = profile.is_some_and(|profile| profile.names(&netdev.ifname));
        let has_address = interface::addresses(netdev).next().is_some();
        is_infiniband(netdev) && (has_address || has_profile || is_slave(netdev))
    };
    let mut used: Vec<&Netdev> = facts.netdevs.iter().filter(is_used).collect();
    // The name of a parent is pinned too, unless that would require a carrier which it does not have.
    let parents: Vec<&Netdev> = used
        .iter()
        .filter_map(|netdev| interface::parent(netdev, facts))
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
/// that are ACTIVE need this argument, and it must then name all.
fn required(facts: &Facts, used: &[&Netdev], found: &mut Suggestion) {
    let has_interface = |port: &PortRef<'_>| {
        let mut guids = used.iter().filter_map(|netdev| netdev.port_guid());
        guids.any(|guid| Some(guid) == port.port.port_guid)
    };
    let is_active = |port: &PortRef<'_>| port.port.state == Some(PortState::Active);
    let infiniband = of_layer(facts, LinkLayer::InfiniBand);
    for port in infiniband.iter().filter(|port| !is_active(port)) {
        let state = port
            .port
            .state
            .map_or("unknown".to_owned(), |s| s.to_string());
        found.note(format!("{} is {state} and not required", port.name()));
    }
    let bare: Vec<&PortRef<'_>> = infiniband
        .iter()
        .filter(|port| is_active(port) && !has_interface(port))
        .collect();
    let ethernet = of_layer(facts, LinkLayer::Ethernet);
    let ethernet = ethernet.iter().filter(|port| is_active(port));
    if infiniband.is_empty() {
        return require_ethernet(ethernet.copied().collect(), found);
    }
    for port in ethernet.filter(|port| port.device.bus_address.is_some()) {
        found.note(format!(
            "{} is an Ethernet port (RoCE) and not required: its interface is left to the image's network module",
            port.name()
        ));
    }
    if bare.is_empty() {
        return;
    }
    let names = used
        .iter()
        .map(|netdev| interface::boot_name(netdev, facts));
    let guids = bare.iter().filter_map(|port| port.port.port_guid);
    let all: Vec<String> = names
        .chain(guids.map(|guid| format!("guid={guid}")))
        .collect();
    let reason = "ports that are ACTIVE, and interfaces in use";
    if all.len() > REQUIRED {
        let active = infiniband.iter().filter(|port| is_active(port)).count();
        found.add(
            format!("rd.ib.require=ib:{active}"),
            "number of the ports that are ACTIVE",
        );
    } else if !all.is_empty() {
        found.add(format!("rd.ib.require={}", all.join(",")), reason);
    }
}

fn of_layer(facts: &Facts, layer: LinkLayer) -> Vec<PortRef<'_>> {
    let ports = facts.ports();
    ports
        .filter(|port| port.port.link_layer == Some(layer))
        .collect()
}

/// The ports of RoCE and iWARP cards, by PCI address: the driver of such a card is loaded only for
/// a selector that identifies the card.
fn require_ethernet(ports: Vec<PortRef<'_>>, found: &mut Suggestion) {
    let mut cards: Vec<&str> = Vec::new();
    for address in ports
        .iter()
        .filter_map(|port| port.device.bus_address.as_deref())
    {
        if !cards.contains(&address) {
            cards.push(address);
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
    for device in facts.devices.iter().filter(|d| d.bus_address.is_none()) {
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
