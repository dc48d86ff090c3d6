// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: remembers the changes that were tried, so that they are not tried again each time.

use std::collections::{BTreeMap, BTreeSet};

use super::{CardPort, Change, Need, Setting, What, Writing};
use crate::facts::Netdev;
use crate::inet::Route;

/// Number of renames of one interface: against another program that renames it, more tries do not
/// help.
const RENAMES: u32 = 3;

/// A PCI function or device, and a port number.
type Port = (String, u32);

/// The changes that were tried. A change that is not recorded here is tried again whenever the
/// machine differs from the expectation.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// The last step of the plan that was carried out for each port: a later step may apply to the
    /// same port when its device appears.
    port_types: BTreeMap<Port, usize>,
    /// By index of the RDMA device.
    roce_modes: BTreeMap<(Option<u32>, Port), usize>,
    /// Number of renames of each interface index.
    renames: BTreeMap<Option<u32>, u32>,
    /// Interface index and bytes, since the interface last got carrier.
    mtus: BTreeSet<(Option<u32>, u32)>,
    /// Suggested routes by interface index, since the interface last got carrier.
    routes: BTreeSet<(Option<u32>, String)>,
    /// Interface index of the bond, option, value, and the number of slaves at that time.
    options: BTreeSet<(Option<u32>, String, String, usize)>,
    /// Indices of the interfaces that were up.
    ups: BTreeSet<u32>,
}

impl Done {
    /// Whether the change may be tried, for the first time or again.
    pub fn allows(&self, change: &Change) -> bool {
        let object = &change.object;
        match &change.what {
            What::Write(Writing::RoceMode {
                device, port, step, ..
            }) => {
                let key = (*device, (object.clone(), *port));
                let done = self.roce_modes.get(&key);
                done.is_none_or(|done| done < step)
            }
            What::Set(Setting::Rename(_)) => {
                self.renames.get(&change.index).copied().unwrap_or(0) < RENAMES
            }
            What::Set(Setting::Mtu(bytes)) => !self.mtus.contains(&(change.index, *bytes)),
            What::Set(Setting::AddRoute(route, _)) => {
                let is_suggested = matches!(change.need, Need::Suggested(_));
                !(is_suggested && self.routes.contains(&key(change.index, route)))
            }
            What::Write(Writing::BondOption {
                option,
                value,
                slaves,
            }) => {
                let key = (change.index, option.clone(), value.clone(), *slaves);
                !self.options.contains(&key)
            }
            _ => true,
        }
    }

    /// Whether neither this step nor a later one was carried out for the port of a card.
    pub fn allows_port_type(&self, card: &str, port: &CardPort) -> bool {
        let done = self.port_types.get(&(card.to_owned(), port.port));
        done.is_none_or(|done| *done < port.step)
    }

    /// Records that the type of this port was tried.
    pub fn record_port_type(&mut self, card: &str, port: &CardPort) {
        self.port_types
            .insert((card.to_owned(), port.port), port.step);
    }

    /// Records that the change is tried now.
    pub fn record(&mut self, change: &Change) {
        match &change.what {
            What::Write(Writing::RoceMode {
                device, port, step, ..
            }) => {
                let key = (*device, (change.object.clone(), *port));
                self.roce_modes.insert(key, *step);
            }
            What::Set(Setting::Rename(_)) => {
                let times = self.renames.entry(change.index).or_default();
                *times = times.saturating_add(1);
            }
            What::Set(Setting::Mtu(bytes)) => {
                self.mtus.insert((change.index, *bytes));
            }
            What::Write(Writing::BondOption {
                option,
                value,
                slaves,
            }) => {
                let key = (change.index, option.clone(), value.clone(), *slaves);
                self.options.insert(key);
            }
            _ => {}
        }
    }

    /// Records that the suggested route was set; its check reports whether the route exists.
    pub fn record_route(&mut self, index: Option<u32>, route: &Route) {
        self.routes.insert(key(index, route));
    }

    /// Records that the interface is up.
    pub fn record_up(&mut self, index: u32) {
        self.ups.insert(index);
    }

    /// Whether the interface was up before.
    pub(super) fn was_up(&self, netdev: &Netdev) -> bool {
        netdev
            .ifindex
            .is_some_and(|index| self.ups.contains(&index))
    }

    /// Forgets MTUs and routes after the interface lost its carrier or lease: the next carrier may
    /// allow another MTU, and routes must be set again.
    pub fn forget(&mut self, index: u32) {
        self.mtus.retain(|(of, _)| *of != Some(index));
        self.routes.retain(|(of, _)| *of != Some(index));
    }
}

fn key(index: Option<u32>, route: &Route) -> (Option<u32>, String) {
    (index, route.to_string())
}
