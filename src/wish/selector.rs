// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a selector of ports, parsed once: its text, and what it means.

use std::fmt;

use kernel_cmdline::{HwAddr, PciAddress};
use serde::{Deserialize, Serialize};

/// A selector. Two are equal if their texts are.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Selector {
    text: String,
    means: Means,
}

/// The cases of [`kernel_cmdline::Selector`].
#[derive(Debug, Clone)]
pub enum Means {
    /// Every port of the RDMA device with this name, or the port below the network interface with
    /// this name.
    Name(String),
    /// One port of an RDMA device.
    Port {
        /// Name of the RDMA device.
        device: String,
        /// Port number; the kernel counts from 1.
        port: u8,
    },
    /// The port with this GUID.
    Guid(HwAddr),
    /// Every port of the device at this PCI address.
    Pci(PciAddress),
}

impl Selector {
    /// Reads the spellings of [`kernel_cmdline::Selector::parse`], and keeps the text.
    pub fn parse(text: &str) -> Option<Selector> {
        kernel_cmdline::Selector::parse(text).map(|selector| Selector {
            text: text.to_owned(),
            means: selector.into(),
        })
    }

    /// The selector of a name that the kernel accepts. The name may look like a GUID (`0x12`): then
    /// the selector means the GUID, as everywhere.
    pub fn named(name: &str) -> Selector {
        Selector::parse(name).unwrap_or_else(|| kernel_cmdline::Selector::Name(name).into())
    }

    /// The selector of a hardware address: only its GUID is persistent, and the hardware type in
    /// front of an address is not part of it.
    pub fn of_address(address: &HwAddr) -> Selector {
        kernel_cmdline::Selector::Guid(address.without_type()).into()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the text means.
    pub fn means(&self) -> &Means {
        &self.means
    }
}

impl From<kernel_cmdline::Selector<'_>> for Means {
    fn from(selector: kernel_cmdline::Selector<'_>) -> Means {
        match selector {
            kernel_cmdline::Selector::Name(name) => Means::Name(name.to_owned()),
            kernel_cmdline::Selector::Port { device, port } => Means::Port {
                device: device.to_owned(),
                port,
            },
            kernel_cmdline::Selector::Guid(address) => Means::Guid(address),
            kernel_cmdline::Selector::Pci(address) => Means::Pci(address),
        }
    }
}

impl From<kernel_cmdline::Selector<'_>> for Selector {
    fn from(selector: kernel_cmdline::Selector<'_>) -> Selector {
        Selector {
            text: selector.to_string(),
            means: selector.into(),
        }
    }
}

impl TryFrom<String> for Selector {
    type Error = String;

    fn try_from(text: String) -> Result<Selector, String> {
        Selector::parse(&text).ok_or_else(|| format!("cannot read a selector from {text:?}"))
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> String {
        selector.text
    }
}

impl AsRef<str> for Selector {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl<T: AsRef<str> + ?Sized> PartialEq<T> for Selector {
    fn eq(&self, text: &T) -> bool {
        self.text == text.as_ref()
    }
}

impl Eq for Selector {}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_stays_in_every_spelling() {
        for text in [
            "ib0",
            "mlx5_0:1",
            "mlx5_0/1",
            "guid=0x506b4b0300a1b2c3",
            "50:6b:4b:03:00:a1:b2:c3",
            "0x12",
            "pci=81:00.0",
            "0000:81:00.0",
        ] {
            let json = format!("{text:?}");
            let selector: Selector = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&selector).unwrap(), json);
        }
    }

    #[test]
    fn the_hardware_type_is_no_part_of_a_selector() {
        for (address, text, means) in [
            (
                "20:50:6b:4b:a1:b2:c3",
                "guid=50:6b:4b:a1:b2:c3",
                "Guid(HwAddr(50:6b:4b:a1:b2:c3))",
            ),
            (
                "20:50:6b:4b:03:00:a1:b2:c3",
                "guid=0x506b4b0300a1b2c3",
                "Guid(HwAddr(50:6b:4b:03:00:a1:b2:c3))",
            ),
        ] {
            let selector = Selector::of_address(&HwAddr::parse(address).unwrap());
            assert_eq!(selector.as_str(), text);
            assert_eq!(format!("{:?}", selector.means()), means);
        }
    }
}
