// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types for the terms of the RDMA stack. `Display` and JSON use the kernel's spelling in sysfs
//! (drivers/infiniband/core/sysfs.c); the numbers are those of include/rdma/ib_verbs.h, which
//! NETLINK_RDMA, uverbs and sysfs share.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::parse::ParseError;

pub use kernel_cmdline::{Guid, Netns as NetnsMode};

/// Defines an enum with the kernel's number, the kernel's name, and JSON with this name.
macro_rules! kernel_enum {
    ($(#[$meta:meta])* $name:ident, $unknown:literal, $what:literal,
     $($(#[$vmeta:meta])* $variant:ident = $number:literal $text:literal),+ $(,)?) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A number without a known name; displayed with the number in brackets.
            Unknown(u8),
        }

        impl $name {
            /// The kernel's number.
            pub fn number(self) -> u8 {
                match self {
                    $(Self::$variant => $number,)+
                    Self::Unknown(number) => number,
                }
            }
        }

        impl From<u8> for $name {
            fn from(number: u8) -> Self {
                match number {
                    $($number => Self::$variant,)+
                    _ => Self::Unknown(number),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.pad($text),)+
                    Self::Unknown(number) => f.pad(&format!(concat!($unknown, "({})"), number)),
                }
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => text
                        .strip_prefix(concat!($unknown, "("))
                        .and_then(|rest| rest.strip_suffix(')'))
                        .and_then(|number| number.parse::<u8>().ok())
                        .map(Self::from)
                        .ok_or_else(|| ParseError::new($what, text)),
                }
            }
        }

        string_conversions!($name);
    };
}

/// JSON strings through `Display` and `FromStr`.
macro_rules! string_conversions {
    ($name:ident) => {
        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseError;

            fn try_from(text: String) -> Result<Self, ParseError> {
                text.parse()
            }
        }
    };
}

kernel_enum!(
    /// Logical port state (`enum ib_port_state`; sysfs `ports/N/state`).
    PortState, "UNKNOWN", "port state",
    /// No state change.
    Nop = 0 "NOP",
    /// No physical link, or disabled.
    Down = 1 "DOWN",
    /// The link is up; only subnet management packets pass. The port waits for a subnet manager.
    Init = 2 "INIT",
    /// Configured by the subnet manager, not yet switched to ACTIVE.
    Armed = 3 "ARMED",
    /// Data passes.
    Active = 4 "ACTIVE",
    /// ACTIVE, while the link is interrupted for a moment.
    ActiveDefer = 5 "ACTIVE_DEFER",
);

kernel_enum!(
    /// Physical port state (`enum ib_port_phys_state`; sysfs `ports/N/phys_state`).
    PhysState, "<unknown>", "physical port state",
    /// The port does not drive the wire.
    Sleep = 1 "Sleep",
    /// Searching for a link partner: cable, transceiver or switch port.
    Polling = 2 "Polling",
    /// Switched off by management.
    Disabled = 3 "Disabled",
    /// Training width and speed.
    PortConfigurationTraining = 4 "PortConfigurationTraining",
    /// Trained: the wire works.
    LinkUp = 5 "LinkUp",
    /// Retraining after errors.
    LinkErrorRecovery = 6 "LinkErrorRecovery",
    /// Transmitter test.
    PhyTest = 7 "Phy Test",
);

kernel_enum!(
    /// Type of the RDMA device (`enum rdma_node_type`; sysfs `node_type`).
    NodeType, "<unknown>", "node type",
    /// InfiniBand or RoCE channel adapter.
    Ca = 1 "CA",
    /// InfiniBand switch.
    Switch = 2 "switch",
    /// InfiniBand router.
    Router = 3 "router",
    /// iWARP NIC.
    Rnic = 4 "RNIC",
    /// Cisco usNIC.
    Usnic = 5 "usNIC",
    /// Cisco usNIC over UDP.
    UsnicUdp = 6 "usNIC UDP",
    /// A device with an unspecified transport.
    Unspecified = 7 "unspecified",
);

/// Link layer of a port (sysfs `ports/N/link_layer`). Only InfiniBand carries IPoIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum LinkLayer {
    /// A port of an InfiniBand fabric, configured by a subnet manager.
    InfiniBand,
    /// RoCE or iWARP.
    Ethernet,
    /// The driver does not report the link layer.
    Unknown,
}

impl fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
            Self::Unknown => "Unknown",
        })
    }
}

impl FromStr for LinkLayer {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "InfiniBand" => Ok(Self::InfiniBand),
            "Ethernet" => Ok(Self::Ethernet),
            "Unknown" => Ok(Self::Unknown),
            _ => Err(ParseError::new("link layer", text)),
        }
    }
}

string_conversions!(LinkLayer);

/// Data rate of a port (sysfs `ports/N/rate`).
///
/// A port that is DOWN reports the slowest rate, not zero: the rate is valid only while LinkUp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The text as read, trimmed: `200 Gb/sec (4X HDR)`.
    pub text: String,
    /// Signalling rate over all lanes in Gb/s, in steps of 0.5 Gb/s.
    pub gbps: f64,
    /// Number of lanes: 1, 2, 4, 8 or 12.
    pub width: u8,
    /// Speed of one lane: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR, XDR.
    pub speed: String,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Which network namespaces see RDMA devices, from the parameter `netns_mode` of ib_core, which
/// follows RDMA_NLDEV_SYS_ATTR_NETNS_MODE: `Y` or `N`.
pub fn netns_mode(text: &str) -> Result<NetnsMode, ParseError> {
    match text {
        "Y" => Ok(NetnsMode::Shared),
        "N" => Ok(NetnsMode::Exclusive),
        _ => Err(ParseError::new("network namespace mode", text)),
    }
}

/// A connection of rdma_cm, from its request on (`rdma resource show cm_id`, state CONNECT).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// RDMA device.
    pub ifname: String,
    /// Port number; none if the connection manager does not report it.
    pub port: Option<u32>,
    /// Kernel module that owns the connection; none for a user program.
    pub owner: Option<String>,
    /// Local address.
    pub source: SocketAddr,
    /// Remote address.
    pub destination: SocketAddr,
}

/// The key of a link inside one boot and across the handover: it does not change when names change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// What identifies the device.
    #[serde(flatten)]
    pub device: Key,
    /// Port number, from 1.
    pub port: u32,
}

/// What identifies a device, best first. A GUID of 0 identifies nothing: a virtual function has
/// this GUID until its physical function assigns one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// GUID of the RDMA device.
    NodeGuid(Guid),
    PortGuid(Guid),
    /// Name of the device on its bus.
    BusAddress(String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::NodeGuid(guid) => write!(f, "node GUID {guid}"),
            Key::PortGuid(guid) => write!(f, "port GUID {guid}"),
            Key::BusAddress(address) => f.write_str(address),
        }
    }
}

impl Identity {
    /// The node GUID, if it identifies the device.
    pub fn node_guid(&self) -> Option<Guid> {
        match self.device {
            Key::NodeGuid(guid) => Some(guid),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for number in 0..=u8::MAX {
            let state = PortState::from(number);
            assert_eq!(state.number(), number);
            assert_eq!(state.to_string().parse(), Ok(state));
            let phys = PhysState::from(number);
            assert_eq!(phys.number(), number);
            assert_eq!(phys.to_string().parse(), Ok(phys));
            let node = NodeType::from(number);
            assert_eq!(node.number(), number);
            assert_eq!(node.to_string().parse(), Ok(node));
        }
    }

    #[test]
    fn display_is_the_kernels_spelling() {
        let states: Vec<String> = (0..=6).map(|n| PortState::from(n).to_string()).collect();
        assert_eq!(
            states,
            [
                "NOP",
                "DOWN",
                "INIT",
                "ARMED",
                "ACTIVE",
                "ACTIVE_DEFER",
                "UNKNOWN(6)"
            ]
        );
        let phys: Vec<String> = (0..=8).map(|n| PhysState::from(n).to_string()).collect();
        assert_eq!(
            phys,
            [
                "<unknown>(0)",
                "Sleep",
                "Polling",
                "Disabled",
                "PortConfigurationTraining",
                "LinkUp",
                "LinkErrorRecovery",
                "Phy Test",
                "<unknown>(8)"
            ]
        );
        assert_eq!(
            Guid(0x5054_00ff_fe00_0001).to_string(),
            "0x505400fffe000001"
        );
        assert_eq!(format!("{:>6}", PortState::Down), "  DOWN");
    }

    #[test]
    fn json_is_the_display_text() -> Result<(), serde_json::Error> {
        let json = serde_json::to_string(&(PortState::Active, Guid(1), LinkLayer::InfiniBand))?;
        assert_eq!(json, r#"["ACTIVE","0x0000000000000001","InfiniBand"]"#);
        let back: (PortState, Guid, LinkLayer) = serde_json::from_str(&json)?;
        assert_eq!(back, (PortState::Active, Guid(1), LinkLayer::InfiniBand));
        let refused = serde_json::from_str::<PortState>(r#""Active""#);
        assert_eq!(
            refused.map_err(|e| e.to_string()),
            Err(r#"cannot read port state from "Active""#.to_owned())
        );
        // JSON accepts only the written form; `guid=` on the command line accepts more forms.
        for other in ["0x1", "505400fffe000001", "50:54:00:ff:fe:00:00:01"] {
            assert!(Guid::parse(other).is_some());
            let refused = serde_json::from_str::<Guid>(&format!("{other:?}"));
            let refused = refused.map_err(|e| e.to_string()).unwrap_err();
            let words = format!("cannot read GUID from {other:?} at line 1 column ");
            assert!(refused.starts_with(&words), "{refused}");
        }
        Ok(())
    }
}
