// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what was tried already and is not tried again at every look.

use std::collections::{BTreeMap, BTreeSet};

use super::{CardPort, Change, Need, Setting, What};
use crate::inet::Route;

/// Nobody wins against another program that names interfaces: give up after so many times.
const RENAMES: u32 = 3;

/// A PCI function or a device, and a port of it.
type Port = (String, u32);

/// What was tried. What is not in here is tried at every look at which it is not found as expected.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// The last step of the plan that was carried out for each port: a later one may come to mean the
    /// same port when its device appears.
    port_types: BTreeMap<Port, usize>,
    roce_modes: BTreeMap<Port, usize>,
    /// How often each interface index was renamed.
    renames: BTreeMap<u32, u32>,
    /// (interface index, bytes) since the last carrier.
    mtus: BTreeSet<(u32, u32)>,
    /// Suggested routes that were set since the last carrier, by interface index.
    routes: BTreeSet<(u32, String)>,
    /// Bond, option and value, and how many interfaces the bond had.
    options: BTreeSet<(String, String, String, usize)>,
}

impl Done {
    /// Whether the change may be tried (again).
    pub fn allows(&self, change: &Change) -> bool {
        let object = &change.object;
        match &change.what {
            What::RoceMode { port, step, .. } => {
                let done = self.roce_modes.get(&(object.clone(), *port));
                done.is_none_or(|done| done < step)
            }
            What::Set(Setting::Rename(_)) => {
                self.renames.get(&change.index).copied().unwrap_or(0) < RENAMES
            }
            What::Set(Setting::Mtu(bytes)) => !self.mtus.contains(&(change.index, *bytes)),
            What::Set(Setting::AddRoute(route)) => {
                let is_suggested = matches!(change.need, Need::Suggested(_));
                !(is_suggested && self.routes.contains(&key(change.index, route)))
            }
            What::Set(Setting::BondOption {
                option,
                value,
                slaves,
            }) => {
                let key = (object.clone(), option.clone(), value.clone(), *slaves);
                !self.options.contains(&key)
            }
            _ => true,
        }
    }

    /// Whether no step from this one on was carried out for the port of a card.
    pub fn allows_port_type(&self, card: &str, port: &CardPort) -> bool {
        let done = self.port_types.get(&(card.to_owned(), port.port));
        done.is_none_or(|done| *done < port.step)
    }

    /// The type of this port was tried.
    pub fn record_port_type(&mut self, card: &str, port: &CardPort) {
        self.port_types
            .insert((card.to_owned(), port.port), port.step);
    }

    /// The change is tried now.
    pub fn record(&mut self, change: &Change) {
        match &change.what {
            What::RoceMode { port, step, .. } => {
                self.roce_modes
                    .insert((change.object.clone(), *port), *step);
            }
            What::Set(Setting::Rename(_)) => {
                let times = self.renames.entry(change.index).or_default();
                *times = times.saturating_add(1);
            }
            What::Set(Setting::Mtu(bytes)) => {
                self.mtus.insert((change.index, *bytes));
            }
            What::Set(Setting::BondOption {
                option,
                value,
                slaves,
            }) => {
                let object = change.object.clone();
                self.options
                    .insert((object, option.clone(), value.clone(), *slaves));
            }
            _ => {}
        }
    }

    /// The suggested route was set: whether it is there then, its check says.
    pub fn record_route(&mut self, index: u32, route: &Route) {
        self.routes.insert(key(index, route));
    }

    /// The carrier or the lease of the interface went: the next one may bring another MTU, and routes
    /// are to be set anew.
    pub fn forget(&mut self, index: u32) {
        self.mtus.retain(|(of, _)| *of != index);
        self.routes.retain(|(of, _)| *of != index);
    }
}

fn key(index: u32, route: &Route) -> (u32, String) {
    (index, route.to_string())
}
