// SPDX-License-Identifier: MIT OR Apache-2.0
//! The PCI Express link between a card and its slot (drivers/pci/pci-sysfs.c: current_link_speed,
//! current_link_width, max_link_speed, max_link_width).

use std::fmt;

use serde::Serialize;

use crate::facts::Look;
use crate::system::pci::{PCI, PciId};

/// The vendor of the devices that QEMU makes up (Red Hat).
const QEMU: u32 = 0x1b36;
/// The class of a bridge between PCI buses.
const BRIDGE: u16 = 0x0604;
/// More bridges than one card has above a function: a port of its switch, and the port towards the slot.
const BRIDGES_OF_CARD: usize = 4;

/// Speed and width of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pcie {
    /// Transfers per second of one lane, in MT/s: 16000 for PCIe 4.0.
    pub speed: u32,
    /// Number of lanes.
    pub width: u32,
}

impl fmt::Display for Pcie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speed = f64::from(self.speed) / 1000.0;
        write!(f, "{speed} GT/s x{}", self.width)
    }
}

/// The link of a card as it is, and the best link that both of its ends allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PcieLink {
    /// The link now.
    pub current: Pcie,
    /// The lower maximum of the card and of the port of its slot: a card with 16 lanes in a slot with 8
    /// lanes is not degraded.
    pub possible: Pcie,
}

impl PcieLink {
    /// The link is slower or narrower than both ends allow.
    pub fn is_degraded(&self) -> bool {
        self.current.speed < self.possible.speed || self.current.width < self.possible.width
    }
}

/// The link between the card of a function and its slot; none if an end is unknown: a virtual machine may
/// show no slot, or one that QEMU makes up, and a virtual function has no link.
pub(super) fn link(look: &mut Look<'_>, address: &str, id: PciId) -> Option<PcieLink> {
    let (card, slot) = ends(look, address, id)?;
    let ends = [pcie(look, &card, "max")?, pcie(look, &slot, "max")?];
    Some(PcieLink {
        current: pcie(look, &card, "current")?,
        possible: Pcie {
            speed: ends.iter().map(|end| end.speed).min()?,
            width: ends.iter().map(|end| end.width).min()?,
        },
    })
}

/// The device of the card that is next to the slot, and the port of the slot. A card of NVIDIA may have a
/// PCI Express switch between its functions and the slot.
fn ends(look: &mut Look<'_>, address: &str, function: PciId) -> Option<(String, String)> {
    let mut card = address.to_owned();
    for _ in 0..=BRIDGES_OF_CARD {
        let (bus, _) = card.rsplit_once(':')?;
        let bridge = look.link_name(&format!("/sys/class/pci_bus/{bus}/device"))?;
        let modalias = look.constant(&format!("{PCI}/{bridge}/modalias"));
        // One that is not known may be QEMU's: its slot has 32 lanes of 16 GT/s, whatever that of the host
        // has (hw/pci-bridge/gen_pcie_root_port.c).
        let id = PciId::parse(&modalias?)?;
        if id.vendor == QEMU {
            return None;
        }
        if !(function.is_of_nvidia() && id.is_of_nvidia() && id.class == BRIDGE) {
            return Some((card, bridge));
        }
        card = bridge;
    }
    None
}

fn pcie(look: &mut Look<'_>, address: &str, which: &str) -> Option<Pcie> {
    let path = |what: &str| format!("{PCI}/{address}/{which}_link_{what}");
    Some(Pcie {
        speed: look.parsed(&path("speed"), speed)??,
        width: look.parsed(&path("width"), width)??,
    })
}

/// Parses `16.0 GT/s PCIe`, before Linux 5.7 `16 GT/s`; none for `Unknown` and `Unknown speed`.
fn speed(text: &str) -> Result<Option<u32>, String> {
    if text.starts_with("Unknown") {
        return Ok(None);
    }
    let number = text.split_once(" GT/s").map(|(number, _)| number.parse());
    match number {
        Some(Ok(number)) if (1.0..1000.0).contains(&number) => {
            let number: f64 = number;
            Ok(Some((number * 1000.0) as u32))
        }
        _ => Err(format!("cannot read link speed from {text:?}")),
    }
}

/// Parses a number of lanes; none for 0 and 63, which a function without a link and a removed
/// function report.
fn width(text: &str) -> Result<Option<u32>, String> {
    match text.parse() {
        Ok(0 | 63) => Ok(None),
        Ok(width @ 1..=32) => Ok(Some(width)),
        _ => Err(format!("cannot read link width from {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_and_width_are_read_as_the_kernel_writes_them() {
        for (text, expected) in [
            ("16.0 GT/s PCIe", Ok(Some(16000))),
            ("2.5 GT/s PCIe", Ok(Some(2500))),
            ("8 GT/s", Ok(Some(8000))),
            ("Unknown", Ok(None)),
            ("Unknown speed", Ok(None)),
        ] {
            assert_eq!(speed(text), expected);
        }
        for text in [
            "",
            "GT/s",
            "-1 GT/s",
            "NaN GT/s PCIe",
            "inf GT/s",
            "1e9 GT/s",
            "16",
        ] {
            let expected = format!("cannot read link speed from {text:?}");
            assert_eq!(speed(text), Err(expected));
        }
        for (text, expected) in [("16", Some(16)), ("1", Some(1)), ("0", None), ("63", None)] {
            assert_eq!(width(text), Ok(expected));
        }
        for text in ["", "x8", "-1", "64", "4294967296"] {
            let expected = format!("cannot read link width from {text:?}");
            assert_eq!(width(text), Err(expected));
        }
    }

    #[test]
    fn a_link_is_degraded_below_what_both_ends_allow() {
        let link = |(speed, width)| PcieLink {
            current: Pcie { speed, width },
            possible: Pcie {
                speed: 16000,
                width: 16,
            },
        };
        assert!(!link((16000, 16)).is_degraded());
        assert!(link((16000, 8)).is_degraded());
        assert!(link((8000, 16)).is_degraded());
        assert_eq!(link((2500, 8)).current.to_string(), "2.5 GT/s x8");
    }
}
