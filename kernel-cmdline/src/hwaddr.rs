// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hardware addresses in all spellings that are in use for InfiniBand.

use core::fmt;

/// A 64-bit globally unique identifier of a node or a port.
///
/// `{}` writes it as `0x0002c903000a1b2c`, `{:#}` as sysfs does: `0002:c903:000a:1b2c`. With the
/// feature `serde` JSON has the text of `{}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u64);

impl Guid {
    /// Reads `0x` and up to 16 hexadecimal digits, 16 digits without `0x`, four groups of four
    /// digits (as in sysfs), or eight groups of two with `:` or `-`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            return hexadecimal(digits, 16).map(Self);
        }
        if text.len() == 16 {
            return hexadecimal(text, 16).map(Self);
        }
        let mut words = 0_u32;
        let mut guid = 0_u64;
        if text.len() == 19 {
            for word in text.split(':') {
                let value = hexadecimal(word, 4).filter(|_| word.len() == 4)?;
                guid = (guid << 16) | value;
                words = words.saturating_add(1);
            }
            return (words == 4).then_some(Self(guid));
        }
        HwAddr::parse(text)
            .filter(|address| address.as_bytes().len() == 8)
            .and_then(|address| address.guid())
    }

    /// Reads what the kernel and `Display` write: sysfs's four groups of four, or `0x` and exactly 16
    /// hexadecimal digits.
    pub fn parse_written(text: &str) -> Option<Self> {
        // In the other spellings of `parse` a GUID has 3 to 17 bytes or 23.
        Self::parse(text).filter(|_| matches!(text.len(), 18 | 19))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Guid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Guid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl serde::de::Visitor<'_> for Text {
            type Value = Guid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Guid, E> {
                Guid::parse_written(text)
                    .ok_or_else(|| E::custom(format_args!("cannot read GUID from {text:?}")))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// A text of up to `digits` hexadecimal digits.
pub(crate) fn hexadecimal(text: &str, digits: usize) -> Option<u64> {
    let plain = !text.is_empty()
        && text.len() <= digits
        && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write!(f, "0x{:016x}", self.0);
        }
        let [a, b, c, d, e, g, h, i] = self.0.to_be_bytes();
        write!(
            f,
            "{a:02x}{b:02x}:{c:02x}{d:02x}:{e:02x}{g:02x}:{h:02x}{i:02x}"
        )
    }
}

/// ARP hardware type of Ethernet, as firmware puts it before an address.
pub const HARDWARE_ETHERNET: u8 = 1;
/// ARP hardware type of InfiniBand (32), as firmware puts it before an address.
pub const HARDWARE_INFINIBAND: u8 = 0x20;

/// A hardware address: 6 bytes (a MAC address, or the short form of a GUID in InfiniBand
/// firmware), 8 bytes (a GUID) or 20 bytes (an IPoIB address, of which only the last 8 bytes,
/// the port GUID, are the same at every boot).
///
/// Spellings of 7 and 9 bytes are a hardware type and 6 or 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HwAddr {
    bytes: [u8; 20],
    length: u8,
    hardware_type: Option<u8>,
}

impl HwAddr {
    /// An address of 6, 8 or 20 bytes, or of 7 or 9 bytes that begin with the hardware type.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (hardware_type, address) = match (bytes.len(), bytes.split_first()) {
            (6 | 8 | 20, _) => (None, bytes),
            // Some boot loaders write 00 for an unknown type.
            (7, Some((&kind @ (0 | HARDWARE_ETHERNET | HARDWARE_INFINIBAND), address))) => {
                (Some(kind), address)
            }
            (9, Some((&HARDWARE_INFINIBAND, address))) => (Some(HARDWARE_INFINIBAND), address),
            _ => return None,
        };
        let mut own = [0; 20];
        own.get_mut(..address.len())?.copy_from_slice(address);
        Some(Self {
            bytes: own,
            length: u8::try_from(address.len()).ok()?,
            hardware_type,
        })
    }

    /// Reads 6, 7, 8, 9 or 20 groups of two hexadecimal digits with `:` or with `-` between
    /// them, upper or lower case; for a GUID also `0x` and 16 digits, or four groups of four
    /// digits (as in sysfs).
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with("0x") || text.starts_with("0X") || text.len() == 19 {
            return Guid::parse(text).map(Self::from);
        }
        let separator = if text.contains('-') { '-' } else { ':' };
        Self::from_groups(text.split(separator))
    }

    /// The address of these groups of two hexadecimal digits.
    pub(crate) fn from_groups<'g>(groups: impl Iterator<Item = &'g str>) -> Option<Self> {
        let mut bytes = [0; 20];
        let mut length = 0_usize;
        for group in groups {
            if group.len() != 2 {
                return None;
            }
            *bytes.get_mut(length)? = u8::try_from(hexadecimal(group, 2)?).ok()?;
            length = length.saturating_add(1);
        }
        Self::from_bytes(bytes.get(..length)?)
    }

    /// The 6, 8 or 20 bytes of the address, without the hardware type.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }

    /// The ARP hardware type in front of the address, if one was written.
    pub const fn hardware_type(&self) -> Option<u8> {
        self.hardware_type
    }

    /// The same address without the hardware type in front.
    pub const fn without_type(self) -> Self {
        Self {
            hardware_type: None,
            ..self
        }
    }

    /// The port GUID: the last 8 bytes of an address of 8 or 20 bytes.
    pub fn guid(&self) -> Option<Guid> {
        let bytes = self.as_bytes();
        (bytes.len() >= 8)
            .then(|| bytes.last_chunk())
            .flatten()
            .map(|&last| Guid(u64::from_be_bytes(last)))
    }

    /// Whether only InfiniBand has such an address: 8 or 20 bytes, or the hardware type of
    /// InfiniBand in front. Six bytes alone are ambiguous.
    pub fn is_infiniband(&self) -> bool {
        self.length >= 8 || self.hardware_type == Some(HARDWARE_INFINIBAND)
    }

    /// Whether this address means the port whose GUID is `guid`.
    ///
    /// Of eight and twenty bytes the last eight are compared. Six bytes match two kinds of GUID:
    /// the same bytes with any two bytes in the middle (firmware of InfiniBand cards drops these
    /// two to make a MAC address), or with `ff:fe` in the middle and the universal/local bit
    /// inverted (modified EUI-64, as in Soft-RoCE).
    pub fn matches_guid(&self, guid: Guid) -> bool {
        if let Some(own) = self.guid() {
            return own == guid;
        }
        let [a, b, c, d, e, f, g, h] = guid.0.to_be_bytes();
        let inserted = self.as_bytes() == [a, b, c, f, g, h];
        let eui64 = d == 0xff && e == 0xfe && self.as_bytes() == [a ^ 0x02, b, c, f, g, h];
        inserted || eui64
    }
}

impl From<Guid> for HwAddr {
    fn from(guid: Guid) -> Self {
        let mut bytes = [0; 20];
        for (to, from) in bytes.iter_mut().zip(guid.0.to_be_bytes()) {
            *to = from;
        }
        Self {
            bytes,
            length: 8,
            hardware_type: None,
        }
    }
}

impl fmt::Display for HwAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.hardware_type.as_ref();
        for (at, byte) in kind.into_iter().chain(self.as_bytes()).enumerate() {
            write!(f, "{}{byte:02x}", if at == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for HwAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HwAddr({self})")
    }
}
