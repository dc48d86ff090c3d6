// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what can be requested of the loader, and whether a request is sound.

use std::fmt;

use kernel_cmdline::{DEVICE_NAME, INTERFACE_NAME, PciAddress, PortType};
use serde::{Deserialize, Serialize};

use crate::dhcp::names::HOST_NAME_MAX;
use crate::error::{Error, Result};
use crate::system::drivers::{ASYNC_PROBE, NO_BOND};
use crate::wish::ipoib::{Autoconf, Mode};

/// Longest name of an option of a bond in bytes; the kernel has none above 20.
const OPTION: usize = 63;
/// Longest value of an option of a bond in bytes: a kernel command line has at most 4096.
const VALUE: usize = 4096;
/// The texts of default_roce_mode (gid_type_str, drivers/infiniband/core/cache.c).
const ROCE_MODES: [&str; 2] = ["IB/RoCE v1", "RoCE v2"];

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Load a module of the RDMA stack, or the driver of bonds.
    Load {
        module: String,
        parameters: Vec<String>,
    },
    /// Probe the PCI function with this address.
    Probe(String),
    /// Set the types of ports of one mlx4 card, in this order.
    PortTypes {
        /// Bus address.
        card: String,
        /// Port number, from 1, and type.
        ports: Vec<(u32, PortType)>,
    },
    Write(Write),
    /// Save the index of kernel modules in /run/ibboot.
    Index,
}

/// A network interface. Only the index is of one interface for ever: by the time of the write the name
/// may be that of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub name: String,
    /// Interface index; a write to an interface with another one is refused.
    pub index: u32,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A write to one file of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Write {
    /// The transport mode of an IPoIB interface.
    Mode {
        interface: Interface,
        mode: Mode,
    },
    /// A child of an IPoIB interface for this P_Key.
    CreateChild {
        interface: Interface,
        pkey: u16,
    },
    /// An IPv6 setting of an interface: one of [`Autoconf::settings`].
    Ipv6 {
        interface: Interface,
        setting: String,
        value: String,
    },
    /// An option of a bond; `;` separates the addresses of a list.
    BondOption {
        bond: Interface,
        option: String,
        value: String,
    },
    /// The default RoCE mode of a port, in the spelling of configfs.
    RoceMode {
        device: String,
        port: u32,
        mode: String,
    },
    HostName(String),
}

/// What became of the type of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortSet {
    /// The card has no file for the port, or none yet.
    Absent,
    /// The port had the type already.
    Unchanged,
    /// The port has the type now.
    Changed,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Done(Result<()>),
    /// One result for each port of [`Request::PortTypes`].
    Ports(Vec<Result<PortSet>>),
}

impl Answer {
    /// Whether the request, or a part of it, was not carried out.
    pub fn is_failed(&self) -> bool {
        match self {
            Answer::Done(result) => result.is_err(),
            Answer::Ports(all) => all.iter().any(Result::is_err),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Load { module, .. } => write!(f, "load {module}"),
            Request::Probe(address) => write!(f, "probe {address}"),
            Request::PortTypes { card, .. } => write!(f, "set port types of {card}"),
            Request::Write(write) => write.fmt(f),
            Request::Index => f.write_str("read the index of modules"),
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Write::Mode { interface, mode } => write!(f, "set mode {mode} of {interface}"),
            Write::CreateChild { interface, pkey } => {
                write!(f, "create the child of {interface} for P_Key {pkey:#06x}")
            }
            Write::Ipv6 {
                interface, setting, ..
            } => write!(f, "set IPv6 {setting} of {interface}"),
            Write::BondOption { bond, option, .. } => write!(f, "set option {option} of {bond}"),
            Write::RoceMode { device, port, .. } => {
                write!(f, "set default RoCE mode of {device}/{port}")
            }
            Write::HostName(_) => f.write_str("set the host name"),
        }
    }
}

impl Request {
    /// Whether two times are as good as one: a loader may end after it has carried out a request and
    /// before it answers.
    pub(super) fn may_be_repeated(&self) -> bool {
        !matches!(
            self,
            Request::Write(Write::CreateChild { .. } | Write::BondOption { .. })
        )
    }

    /// Whether each name is one name, and each value one that the plan can have. The error names
    /// what is not.
    pub fn check(&self) -> Result<()> {
        match self {
            Request::Load { parameters, .. } => {
                let known = [ASYNC_PROBE, NO_BOND];
                let mut others = parameters
                    .iter()
                    .filter(|one| !known.contains(&one.as_str()));
                others
                    .next()
                    .map_or(Ok(()), |other| Err(refused("module parameter", other)))
            }
            Request::Probe(card) | Request::PortTypes { card, .. } => {
                must(is_pci_address(card), "PCI address", card)
            }
            Request::Write(write) => write.check(),
            Request::Index => Ok(()),
        }
    }
}

impl Write {
    fn check(&self) -> Result<()> {
        match self {
            Write::Mode { interface, .. } | Write::CreateChild { interface, .. } => {
                is_interface(interface)
            }
            Write::Ipv6 {
                interface,
                setting,
                value,
            } => {
                is_interface(interface)?;
                // These stand for every interface (Documentation/networking/ip-sysctl.rst).
                let name = interface.name.as_str();
                must(!matches!(name, "all" | "default"), "interface name", name)?;
                let all = [Autoconf::LinkLocal, Autoconf::Router].map(Autoconf::settings);
                let mut all = all.iter().flatten();
                let is_one = all.any(|one| *one == (setting.as_str(), value.as_str()));
                must(is_one, "IPv6 setting", setting)
            }
            Write::BondOption {
                bond,
                option,
                value,
            } => {
                is_interface(bond)?;
                let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
                let is_one = is_name(option, OPTION) && option.bytes().all(is_plain);
                must(is_one, "option", option)?;
                let is_line = value.len() <= VALUE && value.chars().all(kernel_cmdline::is_plain);
                must(is_line, "value of an option", value)
            }
            Write::RoceMode { device, mode, .. } => {
                must(is_name(device, DEVICE_NAME), "RDMA device", device)?;
                must(ROCE_MODES.contains(&mode.as_str()), "RoCE mode", mode)
            }
            Write::HostName(name) => {
                let is_plain =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                let is_one = name.len() <= HOST_NAME_MAX && name.bytes().all(is_plain);
                must(is_one && !name.is_empty(), "host name", name)
            }
        }
    }
}

fn is_interface(interface: &Interface) -> Result<()> {
    let name = &interface.name;
    must(is_name(name, INTERFACE_NAME), "interface name", name)
}

/// Whether the text is one name of a file.
fn is_name(name: &str, longest: usize) -> bool {
    let is_one = |byte: u8| byte != b'/' && !byte.is_ascii_control();
    !matches!(name, "" | "." | "..") && name.len() <= longest && name.bytes().all(is_one)
}

/// As the kernel writes it (pci_setup_device, drivers/pci/probe.c).
fn is_pci_address(text: &str) -> bool {
    PciAddress::parse(text).is_some_and(|address| address.to_string() == text)
}

fn must(is_so: bool, what: &str, found: &str) -> Result<()> {
    is_so.then_some(()).ok_or_else(|| refused(what, found))
}

/// The error of a request that the loader does not carry out.
pub(super) fn refused(what: &str, found: &str) -> Error {
    Error::new("loader", format!("{what} refused")).found(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(check: Result<()>) -> String {
        check.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
    }

    fn interface(name: &str) -> Interface {
        let name = name.to_owned();
        Interface { name, index: 5 }
    }

    #[test]
    fn no_name_leads_out_of_its_folder() {
        for (name, is_one) in [
            ("ib0", true),
            ("ib0.8001", true),
            ("mlx5_0", true),
            ("", false),
            (".", false),
            ("..", false),
            ("../../kernel", false),
            ("ib0/../lo", false),
            ("ib0\n", false),
            ("a-name-of-16-byt", false),
        ] {
            let interface = || interface(name);
            let mode = Mode::Datagram;
            let bond = Write::BondOption {
                bond: interface(),
                option: "miimon".to_owned(),
                value: "50".to_owned(),
            };
            for write in [
                Write::Mode {
                    interface: interface(),
                    mode,
                },
                Write::CreateChild {
                    interface: interface(),
                    pkey: 1,
                },
                bond,
            ] {
                let expected = if is_one {
                    "ok".to_owned()
                } else {
                    refused("interface name", name).to_string()
                };
                assert_eq!(text(Request::Write(write).check()), expected);
            }
        }
    }

    #[test]
    fn only_what_the_plan_can_have_is_requested() {
        let load = |parameter: &str| Request::Load {
            module: "mlx5_core".to_owned(),
            parameters: vec![parameter.to_owned()],
        };
        let ipv6_of = |interface: &str, setting: &str, value: &str| {
            Request::Write(Write::Ipv6 {
                interface: self::interface(interface),
                setting: setting.to_owned(),
                value: value.to_owned(),
            })
        };
        let ipv6 = |setting: &str, value: &str| ipv6_of("ib0", setting, value);
        let option = |option: &str, value: &str| {
            Request::Write(Write::BondOption {
                bond: interface("bond0"),
                option: option.to_owned(),
                value: value.to_owned(),
            })
        };
        let roce = |device: &str, mode: &str| {
            Request::Write(Write::RoceMode {
                device: device.to_owned(),
                port: 1,
                mode: mode.to_owned(),
            })
        };
        for (request, expected) in [
            (load(ASYNC_PROBE), "ok"),
            (load(NO_BOND), "ok"),
            (
                load("prof_sel=9"),
                "loader: module parameter refused: prof_sel=9",
            ),
            (Request::Probe("0000:dc:00.0".to_owned()), "ok"),
            (Request::Probe("10000:dc:00.0".to_owned()), "ok"),
            (
                Request::Probe("dc:00.0".to_owned()),
                "loader: PCI address refused: dc:00.0",
            ),
            (
                Request::Probe("0000.dc:00:0".to_owned()),
                "loader: PCI address refused: 0000.dc:00:0",
            ),
            (
                Request::Probe("../../../x".to_owned()),
                "loader: PCI address refused: ../../../x",
            ),
            (ipv6("accept_ra", "2"), "ok"),
            (
                ipv6("forwarding", "1"),
                "loader: IPv6 setting refused: forwarding",
            ),
            (
                ipv6("accept_ra", "1"),
                "loader: IPv6 setting refused: accept_ra",
            ),
            (
                ipv6_of("all", "accept_ra", "2"),
                "loader: interface name refused: all",
            ),
            (
                ipv6_of("default", "accept_ra", "2"),
                "loader: interface name refused: default",
            ),
            (option("arp_ip_target", "10.0.0.1;10.0.0.2"), "ok"),
            (option("../mtu", "9"), "loader: option refused: ../mtu"),
            (
                option("miimon", "1\n2"),
                "loader: value of an option refused: 1\\x0a2",
            ),
            (roce("rxe0", "RoCE v2"), "ok"),
            (roce("..", "RoCE v2"), "loader: RDMA device refused: .."),
            (
                roce("rxe0", "RoCE v3"),
                "loader: RoCE mode refused: RoCE v3",
            ),
            (Request::Write(Write::HostName("n1.hpc".to_owned())), "ok"),
            (
                Request::Write(Write::HostName("$(reboot)".to_owned())),
                "loader: host name refused: $(reboot)",
            ),
        ] {
            assert_eq!(text(request.check()), expected);
        }
    }

    #[test]
    fn a_request_has_no_path_and_no_unknown_word() {
        let request = Request::PortTypes {
            card: "0000:05:00.0".to_owned(),
            ports: vec![(1, PortType::Eth)],
        };
        let json = r#"{"PortTypes":{"card":"0000:05:00.0","ports":[[1,"eth"]]}}"#;
        assert_eq!(serde_json::to_string(&request).unwrap(), json);
        assert_eq!(serde_json::from_str::<Request>(json).unwrap(), request);
        let path = r#"{"Write":{"File":{"path":"/proc/sysrq-trigger","value":"b"}}}"#;
        for (wrong, word) in [(&*json.replace("eth", "fc"), "fc"), (path, "File")] {
            let error = serde_json::from_str::<Request>(wrong)
                .unwrap_err()
                .to_string();
            let expected = format!("unknown variant `{word}`, expected one of ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn an_answer_has_failed_if_a_part_of_it_has() {
        let error = || Error::new("mlx4_port2", "refused");
        assert!(Answer::Done(Err(error())).is_failed());
        assert!(Answer::Ports(vec![Ok(PortSet::Changed), Err(error())]).is_failed());
        assert!(!Answer::Done(Ok(())).is_failed());
        assert!(!Answer::Ports(vec![Ok(PortSet::Absent), Ok(PortSet::Unchanged)]).is_failed());
    }
}
