// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what `rdma -j link`, `ibstat` and `ibv_devinfo -v` report about ports, in the words of
//! [`Facts`], and the comparison with them. Sources: rdma/link.c of iproute2,
//! infiniband-diags/ibstat.c and libibverbs/examples/devinfo.c of rdma-core.

use std::collections::BTreeSet;

use serde_json::Value;

use super::claim::Claim;
use crate::facts::{Facts, PortRef};
use crate::rdma::types::{Guid, PhysState, PortState};

/// A program to compare with.
#[derive(Debug)]
pub struct Program {
    /// Command and arguments, separated by spaces.
    pub command: &'static str,
    /// Parses the program's output.
    pub parse: fn(&str) -> Result<Vec<Told>, String>,
    /// Whether the program lists every RDMA device of the kernel: ibstat has no iWARP devices, and
    /// ibv_devinfo only those with a provider in user space.
    pub is_complete: bool,
}

/// The programs, with the parser of each.
pub const PROGRAMS: [Program; 3] = [
    Program {
        command: "rdma -j link",
        parse: rdma_link,
        is_complete: true,
    },
    Program {
        command: "ibstat",
        parse: ibstat,
        is_complete: false,
    },
    Program {
        command: "ibv_devinfo -v",
        parse: ibv_devinfo,
        is_complete: false,
    },
];

/// An attribute that a program and the facts both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Port state.
    State,
    /// Physical port state.
    PhysicalState,
    Lid,
    /// LID of the subnet manager.
    SmLid,
    /// LID mask count.
    Lmc,
    LinkLayer,
    PortGuid,
    NodeGuid,
    /// Firmware version.
    Firmware,
    /// Network device below the port.
    Netdev,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Field::State => "state",
            Field::PhysicalState => "physical state",
            Field::Lid => "LID",
            Field::SmLid => "SM LID",
            Field::Lmc => "LMC",
            Field::LinkLayer => "link layer",
            Field::PortGuid => "port GUID",
            Field::NodeGuid => "node GUID",
            Field::Firmware => "firmware",
            Field::Netdev => "network device",
        }
    }

    /// The value of the facts.
    fn found(self, port: PortRef<'_>) -> Option<String> {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        match self {
            Field::State => port.port.state.map(|state| state.to_string()),
            Field::PhysicalState => port.port.physical_state.map(|state| state.to_string()),
            Field::Lid => number(port.port.lid),
            Field::SmLid => number(port.port.sm_lid),
            Field::Lmc => number(port.port.lmc),
            Field::LinkLayer => port.port.link_layer.map(|layer| layer.to_string()),
            Field::PortGuid => port.port.port_guid.map(|guid| guid.to_string()),
            Field::NodeGuid => port.device.node_guid.map(|guid| guid.to_string()),
            Field::Firmware => port.device.fw.clone(),
            Field::Netdev => port.port.netdev.clone(),
        }
    }

    /// The program's text as the facts spell it; the text itself if it is not understood, so that it
    /// equals nothing.
    fn canonical(self, text: &str) -> String {
        let word = text.trim();
        let value = match self {
            Field::State => state(word).map(|state| state.to_string()),
            Field::PhysicalState => phys_state(word).map(|state| state.to_string()),
            Field::Lid | Field::SmLid | Field::Lmc => number(word).map(|n| n.to_string()),
            // `0x0250f7000000a000`, or `0250:f700:0000:a000` as ibv_devinfo prints it.
            Field::PortGuid | Field::NodeGuid => Guid::parse_written(word).map(|g| g.to_string()),
            Field::LinkLayer | Field::Firmware | Field::Netdev => Some(word.to_owned()),
        };
        value.unwrap_or_else(|| format!("{word:?}"))
    }
}

/// One attribute of one port, as a program reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// `mlx5_0/1`.
    pub port: String,
    /// Which attribute.
    pub field: Field,
    /// The value, as the facts spell it.
    pub value: String,
}

/// The number in decimal, or in hexadecimal with 0x.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The number in the brackets of `PORT_ACTIVE (4)`.
fn in_brackets(text: &str) -> Option<u8> {
    let (_, number) = text.strip_suffix(')')?.rsplit_once('(')?;
    number.parse().ok()
}

fn state(text: &str) -> Option<PortState> {
    if let Some(number) = in_brackets(text) {
        return Some(PortState::from(number));
    }
    match text {
        "Down" => Some(PortState::Down),
        "Initializing" => Some(PortState::Init),
        "Armed" => Some(PortState::Armed),
        "Active" => Some(PortState::Active),
        _ => text.parse().ok(),
    }
}

fn phys_state(text: &str) -> Option<PhysState> {
    if let Some(number) = in_brackets(text) {
        return Some(PhysState::from(number));
    }
    Some(match text {
        "NOP" | "No state change" => PhysState::from(0),
        "SLEEP" => PhysState::Sleep,
        "POLLING" => PhysState::Polling,
        "DISABLED" => PhysState::Disabled,
        // iproute2 uses the name of a port state for PortConfigurationTraining.
        "ARMED" => PhysState::PortConfigurationTraining,
        "LINK_UP" => PhysState::LinkUp,
        "LINK_ERROR_RECOVER" => PhysState::LinkErrorRecovery,
        "PHY_TEST" | "PhyTest" => PhysState::PhyTest,
        "OPA_OFFLINE" => PhysState::from(9),
        "OPA_TEST" => PhysState::from(11),
        _ => return text.parse().ok(),
    })
}

/// `rdma -j link`: an array with an object for each port.
pub fn rdma_link(text: &str) -> Result<Vec<Told>, String> {
    const KEYS: [(&str, Field); 6] = [
        ("state", Field::State),
        ("physical_state", Field::PhysicalState),
        ("lid", Field::Lid),
        ("sm_lid", Field::SmLid),
        ("lmc", Field::Lmc),
        ("netdev", Field::Netdev),
    ];
    let ports: Vec<Value> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut told = Vec::new();
    for port in &ports {
        let name = port.get("ifname").and_then(Value::as_str);
        let number = port.get("port").and_then(Value::as_u64);
        let (Some(name), Some(number)) = (name, number) else {
            return Err("an entry has no ifname or no port".to_owned());
        };
        for (key, field) in KEYS {
            let Some(value) = port.get(key) else { continue };
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            told.push(Told {
                port: format!("{name}/{number}"),
                field,
                value: field.canonical(&value),
            });
        }
    }
    Ok(told)
}

/// The attributes below `CA 'mlx5_0'` and `Port 1:` of ibstat.
pub fn ibstat(text: &str) -> Result<Vec<Told>, String> {
    const KEYS: [(&str, Field); 7] = [
        ("State", Field::State),
        ("Physical state", Field::PhysicalState),
        ("Base lid", Field::Lid),
        ("SM lid", Field::SmLid),
        ("LMC", Field::Lmc),
        ("Link layer", Field::LinkLayer),
        ("Port GUID", Field::PortGuid),
    ];
    let device = |line: &str| Some(line.strip_prefix("CA '")?.strip_suffix('\'')?.to_owned());
    let port = |line: &str| number(line.strip_prefix("Port ")?.strip_suffix(':')?);
    let of_device = [
        ("Node GUID", Field::NodeGuid),
        ("Firmware version", Field::Firmware),
    ];
    indented(text, device, port, &of_device, &KEYS)
}

/// The attributes below `hca_id: mlx5_0` and `port: 1` of ibv_devinfo.
pub fn ibv_devinfo(text: &str) -> Result<Vec<Told>, String> {
    const KEYS: [(&str, Field); 6] = [
        ("state", Field::State),
        ("phys_state", Field::PhysicalState),
        ("port_lid", Field::Lid),
        ("sm_lid", Field::SmLid),
        ("port_lmc", Field::Lmc),
        ("link_layer", Field::LinkLayer),
    ];
    let device = |line: &str| Some(line.strip_prefix("hca_id:")?.trim().to_owned());
    let port = |line: &str| number(line.strip_prefix("port:")?.trim());
    // fw_ver is left out: the provider in user space formats the kernel's number in its own way.
    let of_device = [("node_guid", Field::NodeGuid)];
    indented(text, device, port, &of_device, &KEYS)
}

/// Reads `KEY: VALUE` lines below the heading of a device and of its ports. An attribute of the
/// device counts for each of its ports.
fn indented(
    text: &str,
    device: impl Fn(&str) -> Option<String>,
    port: impl Fn(&str) -> Option<u32>,
    of_device: &[(&str, Field)],
    of_port: &[(&str, Field)],
) -> Result<Vec<Told>, String> {
    let (mut name, mut at): (Option<String>, Option<u32>) = (None, None);
    let mut common: Vec<(Field, String)> = Vec::new();
    let mut told = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(found) = device(line) {
            (name, at) = (Some(found), None);
            common.clear();
            continue;
        }
        let Some(name) = &name else { continue };
        if let Some(found) = port(line) {
            at = Some(found);
            told.extend(common.iter().map(|(field, value)| Told {
                port: format!("{name}/{found}"),
                field: *field,
                value: value.clone(),
            }));
            continue;
        }
        // A software device has no firmware version: the value is empty.
        let Some((key, value)) = line.split_once(':').filter(|(_, v)| !v.trim().is_empty()) else {
            continue;
        };
        let field = |table: &[(&str, Field)]| {
            let row = table.iter().find(|(word, _)| *word == key);
            row.map(|(_, field)| *field)
        };
        match at {
            None => common.extend(field(of_device).map(|f| (f, f.canonical(value)))),
            Some(number) => told.extend(field(of_port).map(|field| Told {
                port: format!("{name}/{number}"),
                field,
                value: field.canonical(value),
            })),
        }
    }
    match name {
        Some(_) => Ok(told),
        None => Err("no device in its output".to_owned()),
    }
}

/// A claim for each attribute that the program reports of a port that carries a link, and one for
/// each port that only one side has.
pub fn compare(facts: &Facts, program: &Program, told: &[Told]) -> Vec<Claim> {
    let command = program.command;
    let mut claims = Vec::new();
    for port in facts.ports() {
        let name = port.name();
        let mut listed = told.iter().filter(|told| told.port == name).peekable();
        if listed.peek().is_none() {
            let what = format!("listed by {command}");
            claims.push(if program.is_complete {
                Claim::new(name, what, Err("not in its output"))
            } else {
                Claim::skip(name, what, "not in its output")
            });
            continue;
        }
        claims.extend(listed.map(|told| {
            let found = told.field.found(port);
            let shown = found.as_deref().unwrap_or("nothing");
            let (field, value) = (told.field.name(), &told.value);
            let what = format!("{field}: facts {shown}, {command} {value}");
            let is_same = found.as_ref() == Some(value);
            Claim::new(
                name.clone(),
                what,
                is_same.then_some(()).ok_or("the values differ"),
            )
        }));
    }
    let known: BTreeSet<String> = facts.all_ports().map(|port| port.name()).collect();
    let others: BTreeSet<&String> = told.iter().map(|told| &told.port).collect();
    let others = others.into_iter().filter(|port| !known.contains(*port));
    claims.extend(others.map(|port| {
        let why = format!("{command} lists the port");
        Claim::new(port.clone(), "in the facts", Err(why))
    }));
    claims
}

#[cfg(test)]
mod tests;
