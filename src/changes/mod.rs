// SPDX-License-Identifier: MIT OR Apache-2.0
//! The difference between what is expected and what is found, as a list of changes in the order in
//! which they are made. [`changes`] is pure; `ground` reads what facts do not show, `setting` applies
//! what is set on one interface.

mod addresses;
mod bond;
mod devices;
mod done;
mod expected;
mod ground;
mod interface;
mod setting;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::Ipv4Addr;

use kernel_cmdline::LinkKind;

use crate::error::Error;
use crate::facts::{Facts, Netdev};
use crate::inet::Address;

#[cfg(test)]
pub(crate) use devices::writing_order;
pub use devices::{CardPort, adopt, is_port_type};
pub use done::Done;
pub use expected::{Bond, Expected, Interface};
pub use ground::{Claim, Ground};
pub use setting::{Setting, route_text};

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Network interface, RDMA device or PCI function.
    pub object: String,
    /// Index of the network interface; 0 for any other object.
    pub index: u32,
    /// Who needs the change: what its failure means.
    pub need: Need,
    /// What is changed.
    pub what: What,
}

/// Who needs a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The command line requests it: a refusal is a failure.
    Requested,
    /// "As much as there is", or a means to an end: a refusal is an answer.
    Best,
    /// A DHCP server suggests it, the one with this address where that is known.
    Suggested(Option<Ipv4Addr>),
}

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The types of the ports of an mlx4 card, in the order in which the card takes them.
    PortTypes(Vec<CardPort>),
    /// A software RDMA link is added on this interface.
    AddLink {
        /// Soft-RoCE or Soft-iWARP.
        kind: LinkKind,
        /// The interface below.
        netdev: String,
    },
    /// The default RoCE mode of a port, as configfs spells it.
    RoceMode {
        /// Port number, from 1.
        port: u32,
        /// `IB/RoCE v1` or `RoCE v2`.
        mode: &'static str,
        /// Position of the step of the plan that requests it.
        step: usize,
    },
    /// udev has not named the interface yet: it is left alone.
    AwaitName,
    /// ARP probes the address (RFC 5227). What follows for the same interface waits while another host
    /// has the address.
    Claim(Ipv4Addr),
    /// Another host has the address: it is taken away again.
    Yield {
        /// The address.
        address: Address,
        /// Who has it, in words.
        owner: String,
    },
    /// The interface itself is changed.
    Set(Setting),
    /// This cannot be had on this machine.
    Impossible(Error),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = &self.object;
        match &self.what {
            What::PortTypes(ports) => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                write!(f, "{object}: set {}", ports.join(", then "))
            }
            What::AddLink { kind, netdev } => write!(f, "{object}: add {kind} link on {netdev}"),
            What::RoceMode { port, mode, .. } => {
                write!(f, "{object}/{port}: set default RoCE mode {mode}")
            }
            What::AwaitName => write!(f, "{object}: wait until udev has named the interface"),
            What::Claim(address) => write!(f, "{object}: probe address {address} by ARP"),
            What::Yield { address, owner } => {
                write!(f, "{object}: remove address {address}: {owner} has it")
            }
            What::Set(setting) => {
                write!(f, "{object}: {setting}")?;
                match self.need {
                    Need::Suggested(Some(by)) => write!(f, ", suggested by {by}"),
                    _ => Ok(()),
                }
            }
            What::Impossible(error) => error.fmt(f),
        }
    }
}

/// The changes that are possible now, in order. Level triggered: what depends on a change that was
/// not found made yet is in the list of a later look.
pub fn changes(
    expected: &Expected<'_>,
    facts: &Facts,
    ground: &Ground,
    done: &Done,
) -> Vec<Change> {
    let mut draft = Draft {
        facts,
        ground,
        done,
        changes: Vec::new(),
    };
    draft.port_types(expected.steps);
    draft.links(expected);
    draft.roce_modes(expected.steps);
    for interface in &expected.interfaces {
        draft.interface(interface);
    }
    for bond in &expected.bonds {
        draft.bond(bond);
    }
    draft.ethernet(expected);
    draft.changes
}

/// The list while it is made.
struct Draft<'a> {
    facts: &'a Facts,
    ground: &'a Ground,
    done: &'a Done,
    changes: Vec<Change>,
}

impl Draft<'_> {
    /// Adds a change, unless it is in the list or was tried in vain. What is renamed has another name
    /// when the next change is made: the rest waits for the next look.
    fn push(&mut self, change: Change) {
        let is_renamed = |other: &Change| {
            let is_name = matches!(other.what, What::Set(Setting::Rename(_)));
            is_name && other.index == change.index
        };
        let is_ready = !self.changes.contains(&change) && !self.changes.iter().any(is_renamed);
        if is_ready && self.done.allows(&change) {
            self.changes.push(change);
        }
    }

    /// Adds a change of an interface.
    fn on(&mut self, netdev: &Netdev, need: Need, what: What) {
        self.push(Change {
            object: netdev.ifname.clone(),
            index: netdev.ifindex.unwrap_or(0),
            need,
            what,
        });
    }

    /// Adds a requested setting of an interface.
    fn set(&mut self, netdev: &Netdev, setting: Setting) {
        self.on(netdev, Need::Requested, What::Set(setting));
    }

    /// Adds what cannot be had.
    fn refuse(&mut self, netdev: &Netdev, error: Error) {
        self.on(netdev, Need::Requested, What::Impossible(error));
    }

    /// Whether the interface may be set up, renamed or built upon. If not, udev is waited for.
    fn is_settled(&mut self, netdev: &Netdev) -> bool {
        let is_settled = self.ground.is_settled(netdev);
        if !is_settled && netdev.ifindex.is_some() {
            self.on(netdev, Need::Requested, What::AwaitName);
        }
        is_settled
    }

    fn up(&mut self, netdev: &Netdev) {
        if !netdev.up && self.is_settled(netdev) {
            self.set(netdev, Setting::Up);
        }
    }
}
