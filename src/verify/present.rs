// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the ports that the machine has instead of the requested one, and its HCAs without an RDMA
//! device.

use std::collections::BTreeSet;

use crate::facts::{Device, Facts, Function, PortRef, functions};
use crate::verify::finding::Finding;
use crate::verify::report::OtherPorts;

/// Maximum of names in one line.
pub const SHOWN: usize = 8;

/// The ports of the machine, or what it has in place of ports; then its HCAs that have no RDMA device.
pub fn in_words(facts: &Facts, with_layer: bool) -> String {
    let name = |port: PortRef<'_>| match with_layer {
        true => port.name_and_layer(),
        false => port.name(),
    };
    let names: Vec<String> = facts.ports().map(name).collect();
    let ports = match names.len() {
        0 if facts.devices.is_empty() => return facts.no_device_in_words(),
        0 => no_links(facts).map_or_else(
            || "this machine has no RDMA port".to_owned(),
            |others| format!("this machine has no RDMA port except {others}"),
        ),
        1..=SHOWN => format!("this machine has only {}", names.join(", ")),
        n => format!("this machine has {n} other ports"),
    };
    with_bare_functions(ports, facts)
}

/// The words, then the HCAs that have no RDMA device.
pub fn with_bare_functions(words: String, facts: &Facts) -> String {
    let bare = facts.bare_functions();
    match bare.is_empty() {
        true => words,
        false => format!(
            "{words}; HCAs without an RDMA device: {}",
            functions::in_words(&bare)
        ),
    }
}

/// The ports that carry no link, in words.
fn no_links(facts: &Facts) -> Option<String> {
    let others = OtherPorts::of(facts).into_iter();
    let words: Vec<String> = others
        .map(|o| format!("{} ({})", o.name(), o.words()))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The hint if no HCA is on the PCI bus.
pub const NO_HCA: &str = "the kernel sees no HCA on the PCI bus: check that the card is fully inserted and has power, \
                          and that the BIOS enables its slot; on a virtual machine, pass a function of an HCA of the host \
                          to the guest";

/// What to do about a card in switchdev mode.
pub const IN_SWITCHDEV: &str = "in switchdev mode name a virtual function or sub-function";

/// The hint for a port without RoCE.
pub fn enable_roce(device: &Device) -> String {
    let Some(card) = device.card().filter(|_| device.is_mlx5()) else {
        return "name another port: this port supports only raw packets".to_owned();
    };
    let bus = match device.driver.as_deref() {
        Some("mlx5_core.sf") => "auxiliary",
        _ => "pci",
    };
    format!(
        "{IN_SWITCHDEV}; otherwise enable RoCE: devlink dev param set {bus}/{card} name enable_roce value true \
         cmode driverinit, then devlink dev reload {bus}/{card}"
    )
}

/// Hints at the HCA on the bus that has no RDMA device, or at the bus without an HCA, instead of asking
/// for one. Of several HCAs the wish may mean any.
pub fn on_bus(finding: Finding, facts: &Facts) -> Finding {
    let hints = facts.bare_functions().into_iter().map(Function::hint);
    let hints: BTreeSet<String> = hints.collect();
    match hints.first() {
        None if facts.devices.is_empty() && facts.has_no_hca() => finding.hint(NO_HCA),
        None => finding,
        Some(hint) if hints.len() == 1 => finding.hint(hint),
        Some(_) => finding.hint("look for these HCAs in dmesg"),
    }
}
