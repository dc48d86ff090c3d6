// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that changes depend on and facts do not show: udev's progress, loaded drivers, types of
//! mlx4 ports, IPv6 settings, and address conflicts.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;

use super::Expected;
use crate::facts::{Facts, Netdev};
use crate::loader::sysctl;
use crate::plan::{Action, mlx4_targets};
use crate::system::drivers;
use crate::system::modules::{self, Found, Index};
use crate::system::root::Root;
use crate::wish::ipoib::{Autoconf, IpoibWish, WITH_IPV6};
use crate::wish::selector::{Means, Selector};

/// The module whose configfs directory has the default RoCE modes.
const RDMA_CM: &str = "rdma_cm";

/// Result of the ARP probe for a static IPv4 address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The address is set, but not yet probed.
    Open,
    /// Another host has the address; the text names the host.
    Taken(String),
}

/// State that facts do not show.
#[derive(Debug, Default)]
pub struct Ground {
    /// Indices of interfaces that udev has not named yet.
    pub unnamed: BTreeSet<u32>,
    /// Static IPv4 addresses, by interface index.
    pub claims: BTreeMap<(u32, Ipv4Addr), Claim>,
    /// Drivers that are live, of the drivers in the plan.
    pub(super) drivers: BTreeSet<String>,
    /// PCI functions that exist, of the functions in the plan.
    pub(super) functions: BTreeSet<String>,
    /// The type of each port by PCI address and number, as the driver shows the type; empty if the
    /// file cannot be read.
    pub(super) port_types: BTreeMap<(String, u32), String>,
    /// IPv6 settings, by path.
    pub(super) sysctls: BTreeMap<String, String>,
}

impl Ground {
    /// Reads the machine; `unnamed` and `claims` are empty.
    pub fn read(root: &Root, index: &Index, expected: &Expected<'_>, facts: &Facts) -> Ground {
        let mut ground = Ground::default();
        ground.read_plan(root, index, expected, facts);
        if !expected.bonds.is_empty() && is_live(root, index, drivers::BONDING) {
            ground.drivers.insert(drivers::BONDING.to_owned());
        }
        let own = expected.interfaces.iter();
        let own = own.map(|interface| (interface.netdev, &interface.wish));
        let bonds = expected.bonds.iter().map(|bond| (bond.netdev, &bond.wish));
        for (netdev, wish) in own.chain(bonds) {
            for (name, _) in sysctls(wish) {
                let Some(netdev) = netdev else { continue };
                let path = sysctl(&netdev.ifname, name);
                if let Ok(text) = root.text(&path) {
                    ground.sysctls.insert(path, text);
                }
            }
        }
        ground
    }

    fn read_plan(&mut self, root: &Root, index: &Index, expected: &Expected<'_>, facts: &Facts) {
        for step in expected.steps {
            let driver = match &step.action {
                Action::AddLink { kind, .. } => Some(drivers::of_link(*kind)),
                Action::SetRoceMode { .. } => Some(RDMA_CM),
                Action::SetPortType { selector, .. } => {
                    self.read_port_types(root, selector, facts);
                    None
                }
                _ => None,
            };
            if let Some(driver) = driver.filter(|driver| is_live(root, index, driver)) {
                self.drivers.insert(driver.to_owned());
            }
        }
    }

    fn read_port_types(&mut self, root: &Root, selector: &Selector, facts: &Facts) {
        let function = |address: &str| format!("/sys/bus/pci/devices/{address}");
        if let Means::Pci(address) = selector.means() {
            let address = address.to_string();
            if root.exists(&function(&address)) {
                self.functions.insert(address);
            }
        }
        let is_present = |address: &str| self.functions.contains(address);
        let targets = mlx4_targets(selector, facts, is_present).unwrap_or_default();
        for (address, port) in targets {
            for port in port.map_or_else(|| vec![1, 2], |port| vec![port]) {
                let text = match root.text(&format!("{}/mlx4_port{port}", function(&address))) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    text => text.unwrap_or_default(),
                };
                self.port_types.insert((address.clone(), port), text);
            }
        }
    }

    /// Whether RoCE modes can be set.
    pub(super) fn has_roce_modes(&self) -> bool {
        self.drivers.contains(RDMA_CM)
    }

    /// Whether an IPv6 setting has this value.
    pub(super) fn has_sysctl(&self, ifname: &str, name: &str, value: &str) -> bool {
        let found = self.sysctls.get(&sysctl(ifname, name));
        found.is_some_and(|found| found == value)
    }

    /// Whether udev has finished with the interface. An interface that is already up does not wait.
    pub fn is_named(&self, netdev: &Netdev) -> bool {
        netdev
            .ifindex
            .is_some_and(|index| netdev.up || !self.unnamed.contains(&index))
    }
}

/// The requested IPv6 settings and their values. An interface without IPv6 (`ipv6.disable_ipv6=1`, or a
/// file in sysctl.d of the image) has no static address either.
pub(super) fn sysctls(wish: &IpoibWish) -> impl Iterator<Item = (&'static str, &'static str)> {
    let settings = wish.kernel_autoconf().map(Autoconf::settings);
    let is_static = wish.addresses.iter().any(|own| own.address.is_ipv6());
    let alone = (is_static && settings.is_none()).then_some(WITH_IPV6);
    settings.into_iter().flatten().chain(alone)
}

fn is_live(root: &Root, index: &Index, module: &str) -> bool {
    index.find(module) == Found::Builtin || modules::is_live(root, module)
}
