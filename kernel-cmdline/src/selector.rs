// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selectors of ports, interfaces and partitions.

use core::fmt;

use crate::hwaddr::{Guid, HwAddr, hexadecimal};
use crate::token::decimal;

/// Maximum length of an interface name, in bytes (the kernel's IFNAMSIZ, without the NUL).
pub const INTERFACE_NAME: usize = 15;
/// Maximum length of an RDMA device name, in bytes (the kernel's IB_DEVICE_NAME_MAX, without
/// the NUL).
pub const DEVICE_NAME: usize = 63;

/// Whether the kernel accepts `name` as a name of at most `longest` bytes.
pub(crate) fn is_name(name: &str, longest: usize) -> bool {
    !name.is_empty()
        && name.len() <= longest
        && !matches!(name, "." | "..")
        && name.bytes().all(|byte| {
            byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b',' | b'=' | b'"')
        })
}

/// A network interface, by name, by hardware address or by its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interface<'a> {
    /// Name in the initramfs, such as `ib0`.
    Name(&'a str),
    /// Hardware address or, for InfiniBand, the part of it that never changes.
    Address(HwAddr),
    /// The IPoIB interface of a port, `mlx5_0/1`.
    Port {
        /// Name of the RDMA device.
        device: &'a str,
        /// Port number; the kernel counts from 1.
        port: u8,
    },
    /// The IPoIB interface of the device at this PCI address.
    Pci(PciAddress),
}

impl<'a> Interface<'a> {
    /// An address if `text` parses as one, otherwise a name of 1 to 15 bytes, otherwise a port in
    /// the spellings of [`Selector::parse`].
    pub fn parse(text: &'a str) -> Option<Self> {
        if let Some(address) = HwAddr::parse(text) {
            return Some(Self::Address(address));
        }
        if is_name(text, INTERFACE_NAME) {
            return Some(Self::Name(text));
        }
        match Selector::parse(text)? {
            Selector::Name(_) => None,
            Selector::Port { device, port } => Some(Self::Port { device, port }),
            Selector::Guid(address) => Some(Self::Address(address)),
            Selector::Pci(address) => Some(Self::Pci(address)),
        }
    }

    /// The selector of the port below the interface.
    pub const fn selector(&self) -> Selector<'a> {
        match *self {
            Self::Name(name) => Selector::Name(name),
            Self::Address(address) => Selector::Guid(address),
            Self::Port { device, port } => Selector::Port { device, port },
            Self::Pci(address) => Selector::Pci(address),
        }
    }

    /// Whether this means an InfiniBand interface: a name that starts with `ib` (but not
    /// `ibft0`, dracut's name for the interface of the firmware's iSCSI table), an address that
    /// only InfiniBand has, or a port, which only ibboot understands.
    pub fn is_infiniband(&self) -> bool {
        match self {
            Self::Name(name) => name.starts_with("ib") && !name.starts_with("ibft"),
            Self::Address(address) => address.is_infiniband(),
            Self::Port { .. } | Self::Pci(_) => true,
        }
    }
}

impl fmt::Display for Interface<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => write!(f, "{address}"),
            Self::Port { device, port } => write!(f, "{device}/{port}"),
            Self::Pci(address) => write!(f, "{address}"),
        }
    }
}

/// A PCI function, `dddd:bb:dd.f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// PCI domain (segment).
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number, 0 to 31.
    pub device: u8,
    /// Function number, 0 to 7.
    pub function: u8,
}

impl PciAddress {
    /// Reads `dddd:bb:dd.f` or, in domain 0, `bb:dd.f`; hexadecimal digits of either case.
    pub fn parse(text: &str) -> Option<Self> {
        let (place, function) = text.rsplit_once('.')?;
        let (place, device) = place.rsplit_once(':')?;
        let (domain, bus) = place.rsplit_once(':').unwrap_or(("0", place));
        let number =
            |text: &str, digits, most| hexadecimal(text, digits).filter(|&number| number <= most);
        Some(Self {
            // Domains behind VMD bridges have more than four digits.
            domain: u32::try_from(number(domain, 8, u64::from(u32::MAX))?).ok()?,
            bus: u8::try_from(number(bus, 2, 0xff)?).ok()?,
            device: u8::try_from(number(device, 2, 0x1f)?).ok()?,
            function: u8::try_from(number(function, 1, 7)?).ok()?,
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.{:x}",
            self.domain, self.bus, self.device, self.function
        )
    }
}

/// The ports that an `rd.ib.*` argument selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Selector<'a> {
    /// Every port of the RDMA device with this name, or the port below the network interface
    /// with this name: the inventory decides which.
    Name(&'a str),
    /// One port of an RDMA device, `mlx5_0:1`.
    Port {
        /// Name of the RDMA device.
        device: &'a str,
        /// Port number; the kernel counts from 1.
        port: u8,
    },
    /// The port with this GUID, `guid=`; compared by [`HwAddr::matches_guid`].
    Guid(HwAddr),
    /// Every port of the device at this PCI address, `pci=`.
    Pci(PciAddress),
}

impl<'a> Selector<'a> {
    /// Reads `DEVICE`, `DEVICE:PORT`, `DEVICE/PORT`, `guid=GUID`, `pci=dddd:bb:dd.f` or the name of
    /// a network interface; a GUID with `0x` or separators and a PCI address need no prefix.
    pub fn parse(text: &'a str) -> Option<Self> {
        if let Some(guid) = text.strip_prefix("guid=") {
            return HwAddr::parse(guid)
                .or_else(|| Guid::parse(guid).map(HwAddr::from))
                .map(Self::Guid);
        }
        if let Some(pci) = text.strip_prefix("pci=") {
            return PciAddress::parse(pci).map(Self::Pci);
        }
        // As reports of ibboot, lspci and ibstat write them; none of these is a name.
        if let Some(pci) = PciAddress::parse(text) {
            return Some(Self::Pci(pci));
        }
        let number = || text.strip_prefix("0x").and_then(|_| Guid::parse(text));
        if let Some(guid) = HwAddr::parse(text).or_else(|| number().map(HwAddr::from)) {
            return Some(Self::Guid(guid));
        }
        if let Some((device, port)) = text.rsplit_once([':', '/']) {
            let port = decimal(port)
                .and_then(|port| u8::try_from(port).ok())
                .filter(|&port| port > 0)?;
            return is_name(device, DEVICE_NAME).then_some(Self::Port { device, port });
        }
        is_name(text, DEVICE_NAME).then_some(Self::Name(text))
    }
}

impl fmt::Display for Selector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Port { device, port } => write!(f, "{device}:{port}"),
            Self::Guid(address) => match address.guid() {
                Some(guid) => write!(f, "guid={guid}"),
                None => write!(f, "guid={address}"),
            },
            Self::Pci(address) => write!(f, "pci={address}"),
        }
    }
}

/// A child interface for a partition, `PARENT.PKEY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pkey<'a> {
    pub parent: Interface<'a>,
    /// The P_Key as written.
    pub key: u16,
}

/// The membership bit of a P_Key: set in full members.
pub const FULL_MEMBER: u16 = 0x8000;

impl<'a> Pkey<'a> {
    /// Reads `PARENT.PKEY`, split from the right; the P_Key has up to four hexadecimal
    /// digits, with or without `0x`. 0 and 0x8000 are not P_Keys.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (parent, key) = text.rsplit_once('.')?;
        let digits = key
            .strip_prefix("0x")
            .or_else(|| key.strip_prefix("0X"))
            .unwrap_or(key);
        let key = u16::try_from(hexadecimal(digits, 4)?)
            .ok()
            .filter(|key| key & !FULL_MEMBER != 0)?;
        Some(Self {
            parent: Interface::parse(parent)?,
            key,
        })
    }

    /// The P_Key of the IPoIB child in the kernel: always a full member.
    pub const fn full(&self) -> u16 {
        self.key | FULL_MEMBER
    }
}

impl fmt::Display for Pkey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04x}", self.parent, self.key)
    }
}
