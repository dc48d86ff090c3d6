// SPDX-License-Identifier: MIT OR Apache-2.0
//! The difference between expected and found state, as a list of changes in the order in which they
//! are made. [`changes`] is pure; `ground` reads state that facts do not show, `setting` applies
//! the settings of one interface by rtnetlink.

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
mod writing;

use std::fmt;
use std::net::Ipv4Addr;

use kernel_cmdline::LinkKind;

use crate::error::Error;
use crate::facts::{Facts, Netdev};
use crate::inet::Address;
use crate::rdma::types::NetnsMode;

#[cfg(test)]
pub(crate) use devices::writing_order;
pub use devices::{CardPort, adopt};
pub use done::Done;
pub use expected::{Bond, Expected, Interface};
pub use ground::{Claim, Ground};
pub use setting::{Rival, Setting, route_text};
pub use writing::Writing;

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Network interface, RDMA device or PCI function.
    pub object: String,
    /// Index of the network interface; none for any other object, and for a bond that does not exist yet.
    pub index: Option<u32>,
    /// The reason of the change, which decides the meaning of a failure.
    pub need: Need,
    /// The change itself.
    pub what: What,
}

/// Why a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The command line requests the change: a refusal is a failure.
    Requested,
    /// "max", or a preparation of another change: a refusal is not a failure.
    Best,
    /// A DHCP server suggests the change; the address of the server, if known.
    Suggested(Option<Ipv4Addr>),
}

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Let the loader write something.
    Write(Writing),
    /// Set which network namespaces see RDMA devices.
    NetnsMode(NetnsMode),
    /// Add a software RDMA link on an interface.
    AddLink {
        /// Soft-RoCE or Soft-iWARP.
        kind: LinkKind,
        /// The interface below.
        netdev: String,
    },
    /// Wait: udev has not named the interface yet.
    AwaitName,
    /// Probe the address by ARP (RFC 5227). Later changes of the same interface wait while another
    /// host has the address.
    Claim(Ipv4Addr),
    /// Remove the address: another host has it.
    Yield {
        address: Address,
        /// Text that names the host with the address.
        owner: String,
    },
    /// Change a setting of the interface.
    Set(Setting),
    /// The request is not possible on this machine.
    Impossible(Error),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = &self.object;
        match &self.what {
            What::Write(writing @ Writing::RoceMode { port, .. }) => {
                write!(f, "{object}/{port}: {writing}")
            }
            What::Write(writing) => write!(f, "{object}: {writing}"),
            What::NetnsMode(mode) => write!(f, "{object}: set network namespace mode {mode}"),
            What::AddLink { kind, netdev } => write!(f, "{object}: add {kind} link on {netdev}"),
            What::AwaitName => write!(f, "{object}: wait until udev has named the interface"),
            What::Claim(address) => write!(f, "{object}: probe address {address} by ARP"),
            What::Yield { address, owner } => {
                write!(
                    f,
                    "{object}: remove address {address}: {owner} uses this address"
                )
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

/// The changes that are possible now, in order. Level-triggered: a change that depends on another
/// one follows in a later list, when the other one is found done.
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
    draft.netns_mode(expected.steps);
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

/// The list under construction.
struct Draft<'a> {
    facts: &'a Facts,
    ground: &'a Ground,
    done: &'a Done,
    changes: Vec<Change>,
}

impl Draft<'_> {
    /// Adds a change, unless the list has it or it was tried in vain. After a rename the interface
    /// has another name, so its later changes wait for the next list.
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
            index: netdev.ifindex,
            need,
            what,
        });
    }

    /// Adds a requested setting of an interface.
    fn set(&mut self, netdev: &Netdev, setting: Setting) {
        self.on(netdev, Need::Requested, What::Set(setting));
    }

    /// Adds a requested write to an interface.
    fn write(&mut self, netdev: &Netdev, writing: Writing) {
        self.on(netdev, Need::Requested, What::Write(writing));
    }

    /// Adds a request that is not possible.
    fn refuse(&mut self, netdev: &Netdev, error: Error) {
        self.on(netdev, Need::Requested, What::Impossible(error));
    }

    /// Adds the wait for udev, unless the interface may be set up, renamed or used already (true).
    fn settle(&mut self, netdev: &Netdev) -> bool {
        let is_named = self.ground.is_named(netdev);
        if !is_named && netdev.ifindex.is_some() {
            self.on(netdev, Need::Requested, What::AwaitName);
        }
        is_named
    }

    fn up(&mut self, netdev: &Netdev) {
        if !netdev.up && self.settle(netdev) {
            self.set(netdev, Setting::Up);
        }
    }

    /// Sets an Ethernet interface up that was not up before. Another program that sets the interface
    /// down may add it to a bond, which accepts no interface that is up (bond_enslave,
    /// drivers/net/bonding/bond_main.c) and sets the interface up itself.
    fn ethernet_up(&mut self, netdev: &Netdev) {
        if !self.done.was_up(netdev) {
            self.up(netdev);
        }
    }
}
