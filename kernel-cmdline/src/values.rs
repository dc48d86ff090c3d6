// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words and small values behind a `=`.

use core::fmt;
use core::net::IpAddr;

use crate::selector::{Interface, Selector};

/// Defines an enum whose variants are words on the command line, and in JSON with the feature
/// `serde`.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum $name {
            $($(#[$variant_doc])* #[cfg_attr(feature = "serde", serde(rename = $word))] $variant,)+
        }

        impl $name {
            /// Every word, in the order of the documentation.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The variant that `word` means, exactly as written.
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The variant that `text` means; `what` is what the problem says that `text` is not.
            pub fn read<'a>(
                what: &'static str,
                text: &'a str,
            ) -> Result<Self, $crate::complain::Problem<'a>> {
                let choices = Self::WORDS;
                let wrong = $crate::complain::Problem::NotOneOf { what, text, choices };
                Self::parse(text).ok_or(wrong)
            }

            /// The word on the command line.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The IPoIB transport mode, `rd.ib.mode=`.
    Mode {
        /// Connected where the device can, else datagram.
        Auto = "auto",
        /// Reliable connections.
        Connected = "connected",
        /// Unreliable datagrams.
        Datagram = "datagram",
    }
}

words! {
    /// The kind of a software RDMA device, `rd.ib.link=`.
    LinkKind {
        /// Soft-RoCE.
        Rxe = "rxe",
        /// Soft-iWARP.
        Siw = "siw",
    }
}

words! {
    /// The default RoCE mode of a port, `rd.ib.roce=`.
    RoceMode {
        /// IB/RoCE v1.
        V1 = "v1",
        /// RoCE v2.
        V2 = "v2",
    }
}

words! {
    /// The port type of an mlx4 card, `rd.ib.porttype=`.
    PortType {
        /// InfiniBand.
        Ib = "ib",
        /// Ethernet.
        Eth = "eth",
        /// Sensed from the other end of the cable.
        Auto = "auto",
    }
}

words! {
    /// Which network namespaces see RDMA devices, `rd.ib.netns=`.
    Netns {
        /// Each device is in one network namespace.
        Exclusive = "exclusive",
        /// All network namespaces share the devices.
        Shared = "shared",
    }
}

words! {
    /// The action at the deadline, `rd.ib.onfail=`.
    OnFail {
        /// dracut's emergency shell.
        Shell = "shell",
        /// The boot continues.
        Continue = "continue",
        /// The node reboots.
        Reboot = "reboot",
    }
}

words! {
    /// Who owns the interface in the real root, `rd.ib.handover=`.
    Handover {
        /// The network manager of the real root, except for verified interfaces.
        Auto = "auto",
        /// No program: the interface stays as it is.
        Keep = "keep",
        /// NetworkManager.
        Nm = "nm",
        /// systemd-networkd.
        Networkd = "networkd",
        /// No state is handed over.
        None = "none",
    }
}

words! {
    /// The form of the DHCP client identifier, `rd.ib.dhcp.client-id=`.
    ClientIdForm {
        /// The form of the boot firmware of the card.
        Firmware = "firmware",
        /// Hardware type 20 and the port GUID.
        Guid = "guid",
        /// The port GUID alone.
        PortGuid = "port-guid",
        /// Hardware type 01 and the six bytes that iPXE makes of the port GUID.
        Ipxe = "ipxe",
    }
}

/// `rd.ib.dhcp.client-id=[IF:]FORM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientIdWish<'a> {
    /// The interface, or `None` for all.
    pub interface: Option<Interface<'a>>,
    pub form: ClientIdForm,
}

/// `rd.ib.mode=[IF:]MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeWish<'a> {
    /// The interface, or `None` for all.
    pub interface: Option<Interface<'a>>,
    pub mode: Mode,
}

/// An MTU on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Mtu {
    Bytes(u32),
    /// The maximum of the mode and the link.
    Max,
}

/// `rd.ib.mtu=[IF:]MTU`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MtuWish<'a> {
    /// The interface, or `None` for all.
    pub interface: Option<Interface<'a>>,
    pub mtu: Mtu,
}

/// `rd.ib.link=NAME:KIND:NETDEV`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// Name of the new RDMA device.
    pub name: &'a str,
    /// What kind of device.
    pub kind: LinkKind,
    /// The network interface below it.
    pub netdev: &'a str,
}

/// `rd.ib.roce=[SELECTOR:]MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoceWish<'a> {
    /// The ports, or `None` for all.
    pub selector: Option<Selector<'a>>,
    pub mode: RoceMode,
}

/// `rd.ib.porttype=SELECTOR:TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortTypeWish<'a> {
    /// The ports.
    pub selector: Selector<'a>,
    pub port_type: PortType,
}

/// Maximum of selectors of one `rd.ib.require=` that lists ports.
pub const REQUIRED_PORTS: usize = 16;
/// Maximum of selectors that one `rd.ib.require=` excludes: one command line may have the spare ports of
/// all nodes.
pub const EXCLUDED_PORTS: usize = 64;

words! {
    /// The link layer of a port, `rd.ib.require=`.
    LinkLayer {
        /// InfiniBand.
        Ib = "ib",
        /// Ethernet.
        Eth = "eth",
    }
}

/// How many of the candidates must be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Every one.
    All,
    /// This many, whichever.
    Any(u32),
}

/// A requirement that names no port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates<'a> {
    /// Only ports with this link layer count; `None` if the argument does not say.
    pub link_layer: Option<LinkLayer>,
    /// How many of them.
    pub number: Number,
    /// The ports that do not count.
    pub except: heapless::Vec<Selector<'a>, EXCLUDED_PORTS>,
}

/// `rd.ib.require=`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "without an allocator")]
pub enum Require<'a> {
    /// A number of ports.
    Candidates(Candidates<'a>),
    /// All of these ports.
    Ports(heapless::Vec<Selector<'a>, REQUIRED_PORTS>),
}

/// `rd.ib.rate=[SELECTOR=]GBPS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateWish<'a> {
    /// The ports, or `None` for all.
    pub selector: Option<Selector<'a>>,
    /// The minimum rate, in Mb/s: single data rate over one lane is 2500.
    pub megabits: u32,
}

/// `rd.ib.probe=ADDR[:PORT]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The address that must answer.
    pub address: IpAddr,
    /// The port that must accept connections.
    pub port: Option<u16>,
}

/// A time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Seconds(u32),
    /// No limit.
    Infinite,
}

/// `ifname=NAME:ADDRESS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ifname<'a> {
    /// The new name.
    pub name: &'a str,
    /// The address of the interface to rename.
    pub address: crate::HwAddr,
}

/// `rd.net.dhcp.client-id=IF:ID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientId<'a> {
    pub interface: Interface<'a>,
    /// The identifier.
    pub id: ClientIdValue<'a>,
}

/// A DHCP client identifier as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientIdValue<'a> {
    /// Text behind `@`, sent unchanged.
    Text(&'a str),
    /// Groups of two hexadecimal digits with `-` or `:` between them, checked.
    Hexadecimal(&'a str),
}

impl ClientIdValue<'_> {
    /// The bytes to send, in order.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        let (text, hexadecimal) = match self {
            Self::Text(text) => (Some(text.bytes()), None),
            Self::Hexadecimal(text) => (None, Some(text.split(['-', ':']))),
        };
        let hexadecimal = hexadecimal
            .into_iter()
            .flatten()
            .filter_map(|group| u8::from_str_radix(group, 16).ok());
        text.into_iter().flatten().chain(hexadecimal)
    }
}

/// `rd.nvmf.discover=TRANSPORT,TRADDR[,HOST_TRADDR[,TRSVCID]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmfDiscover<'a> {
    /// `rdma`, `tcp`, `fc` or another that nvme-cli knows.
    pub transport: &'a str,
    /// Address of the discovery controller; `auto` and Fibre Channel names exist.
    pub traddr: &'a str,
}
