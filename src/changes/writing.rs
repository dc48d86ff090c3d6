// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what the loader writes for a change, and the request to the loader.

use std::fmt;

use super::CardPort;
use crate::loader::{Interface, Request, Write};
use crate::wish::ipoib::Mode;

/// What the loader writes to files of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writing {
    /// The types of the ports of an mlx4 card, in the order that the card accepts.
    PortTypes(Vec<CardPort>),
    /// The default RoCE mode of a port, in the spelling of configfs.
    RoceMode {
        /// Index of the RDMA device, which has another one when it is added again.
        device: Option<u32>,
        /// Port number, from 1.
        port: u32,
        /// `IB/RoCE v1` or `RoCE v2`.
        mode: &'static str,
        /// Position of the step of the plan that requests it.
        step: usize,
    },
    /// A child of the interface for this P_Key.
    CreateChild(u16),
    /// The transport mode of IPoIB.
    Mode(Mode),
    /// An IPv6 setting below `/proc/sys/net/ipv6/conf/IF`.
    Sysctl(&'static str, &'static str),
    /// An option of a bond.
    BondOption {
        /// File name of the option.
        option: String,
        /// Value; `;` separates the addresses of a list.
        value: String,
        /// Number of slaves of the bond: the driver may accept a refused option after another slave
        /// has joined.
        slaves: usize,
    },
}

impl Writing {
    /// The request that writes this for the object of a change, and its interface index.
    pub fn request(&self, object: &str, index: Option<u32>) -> Request {
        let interface = || Interface {
            name: object.to_owned(),
            // No interface has the index 0.
            index: index.unwrap_or(0),
        };
        Request::Write(match self {
            Writing::PortTypes(ports) => {
                return Request::PortTypes {
                    card: object.to_owned(),
                    ports: ports.iter().map(|port| (port.port, port.value)).collect(),
                };
            }
            Writing::RoceMode { port, mode, .. } => Write::RoceMode {
                device: object.to_owned(),
                port: *port,
                mode: (*mode).to_owned(),
            },
            Writing::CreateChild(pkey) => Write::CreateChild {
                interface: interface(),
                pkey: *pkey,
            },
            Writing::Mode(mode) => Write::Mode {
                interface: interface(),
                mode: *mode,
            },
            Writing::Sysctl(setting, value) => Write::Ipv6 {
                interface: interface(),
                setting: (*setting).to_owned(),
                value: (*value).to_owned(),
            },
            Writing::BondOption { option, value, .. } => Write::BondOption {
                bond: interface(),
                option: option.clone(),
                value: value.clone(),
            },
        })
    }
}

impl fmt::Display for Writing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Writing::PortTypes(ports) => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                write!(f, "set {}", ports.join(", then "))
            }
            Writing::RoceMode { mode, .. } => write!(f, "set default RoCE mode {mode}"),
            Writing::CreateChild(pkey) => write!(f, "create the child for P_Key {pkey:#06x}"),
            Writing::Mode(mode) => write!(f, "set mode {mode}"),
            Writing::Sysctl(name, value) => write!(f, "set IPv6 {name} to {value}"),
            Writing::BondOption { option, value, .. } => write!(f, "set option {option}={value}"),
        }
    }
}
