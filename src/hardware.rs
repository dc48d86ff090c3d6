// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: hardware types and hardware addresses of network interfaces, and their text.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use kernel_cmdline::Guid;
use serde::{Deserialize, Serialize, Serializer};

/// ARP hardware type of an interface (ARPHRD_*, include/uapi/linux/if_arp.h). Text and JSON contain
/// the number, as the file `type` of sysfs does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u16", into = "u16")]
pub enum HardwareType {
    /// ARPHRD_ETHER, 1.
    Ethernet,
    /// ARPHRD_INFINIBAND, 32: IPoIB (RFC 4391 9.1.1), and a bond of IPoIB interfaces.
    InfiniBand,
    /// Any other number.
    Other(u16),
}

impl HardwareType {
    /// The number that the kernel, ARP and DHCP use.
    pub fn number(self) -> u16 {
        match self {
            HardwareType::Ethernet => 1,
            HardwareType::InfiniBand => 32,
            HardwareType::Other(number) => number,
        }
    }
}

impl From<u16> for HardwareType {
    fn from(number: u16) -> Self {
        match number {
            1 => HardwareType::Ethernet,
            32 => HardwareType::InfiniBand,
            other => HardwareType::Other(other),
        }
    }
}

impl From<HardwareType> for u16 {
    fn from(hardware_type: HardwareType) -> u16 {
        hardware_type.number()
    }
}

/// Number 0, which no IP interface has.
impl Default for HardwareType {
    fn default() -> Self {
        HardwareType::Other(0)
    }
}

impl FromStr for HardwareType {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<u16>().map(Self::from)
    }
}

impl fmt::Display for HardwareType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

/// Longest hardware address of the kernel in bytes (MAX_ADDR_LEN, include/linux/netdevice.h).
pub const ADDRESS: usize = 32;
/// Length of an IPoIB address in bytes (RFC 4391 9.1.1).
const IPOIB: usize = 20;

/// The hardware address of an interface, 0 to [`ADDRESS`] bytes: tunnels have 0, 4 or 16, Ethernet
/// 6, IPoIB 20. Text and JSON have the format of the file `address` of sysfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardwareAddress(Vec<u8>);

impl HardwareAddress {
    /// The bytes of the address.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// GUID of the port below an IPoIB interface: the last 8 of 20 bytes, the only part that is the
    /// same in every boot (RFC 4391 9.1.1). None for a port whose GUID is not set.
    pub fn port_guid(&self) -> Option<Guid> {
        let bytes = self.0.last_chunk::<8>().filter(|_| self.0.len() == IPOIB)?;
        Some(Guid(u64::from_be_bytes(*bytes))).filter(|guid| guid.0 != 0)
    }
}

impl FromStr for HardwareAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(HardwareAddress(Vec::new()));
        }
        let bytes = unhex(text).filter(|bytes| bytes.len() <= ADDRESS);
        bytes
            .map(HardwareAddress)
            .ok_or("not the hexadecimal bytes of a hardware address")
    }
}

impl fmt::Display for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl Serialize for HardwareAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// P_Key of an IPoIB interface, membership bit included: bytes 8 and 9 of the 20-byte broadcast
/// address (RFC 4391 4).
pub fn pkey_of_broadcast(broadcast: &[u8]) -> Option<u16> {
    let [_, _, _, _, group @ ..] = <[u8; IPOIB]>::try_from(broadcast).ok()?;
    let [_, _, _, _, high, low, ..] = group;
    Some(u16::from_be_bytes([high, low]))
}

/// MGID of the broadcast group of an IPoIB interface: bytes 4 to 19 of the 20-byte broadcast
/// address (RFC 4391 4).
pub fn group_of_broadcast(broadcast: &[u8]) -> Option<Ipv6Addr> {
    let [_, _, _, _, group @ ..] = <[u8; IPOIB]>::try_from(broadcast).ok()?;
    Some(Ipv6Addr::from(group))
}

/// Bytes as sysfs, dhcpd and dnsmasq write them: `ff:00:...`.
#[derive(Debug, Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if position == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

/// An address or a port GUID as the arguments of dracut and boot loaders spell it: network-legacy waits
/// for a file with that name. An `ip=` may have dashes, and boot firmware leaves out the two bytes in
/// the middle of a GUID (`BOOTIF=01-...`).
pub fn spellings(bytes: &[u8]) -> Vec<String> {
    let mut all = vec![Hex(bytes).to_string()];
    if let [a, b, c, _, _, d, e, f] = *bytes {
        all.push(Hex(&[a, b, c, d, e, f]).to_string());
    }
    let dashed: Vec<String> = all.iter().map(|text| text.replace(':', "-")).collect();
    [dashed, all].concat()
}

/// Reads the text of [`Hex`]: one byte or more.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &str| {
        let plain = pair.len() == 2 && pair.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u8::from_str_radix(pair, 16).ok()).flatten()
    };
    text.split(':').map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: &str = "80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";
    const PARTITION: &str = "00:ff:ff:ff:ff:12:40:1b:80:01:00:00:00:00:00:00:ff:ff:ff:ff";

    #[test]
    fn a_type_is_its_number() {
        for number in [0, 1, 2, 32, 33, 772, u16::MAX] {
            let kind = HardwareType::from(number);
            assert_eq!(
                (kind.number(), kind.to_string()),
                (number, number.to_string())
            );
            assert_eq!(kind.to_string().parse(), Ok(kind));
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, number.to_string());
            assert_eq!(serde_json::from_str::<HardwareType>(&json).unwrap(), kind);
        }
        assert_eq!(HardwareType::from(1), HardwareType::Ethernet);
        assert_eq!(HardwareType::from(32), HardwareType::InfiniBand);
        let error = "65536".parse::<HardwareType>().unwrap_err();
        assert_eq!(error.kind(), &std::num::IntErrorKind::PosOverflow);
    }

    #[test]
    fn whatever_sysfs_shows_of_an_address_comes_back() {
        let longest = ["0f"; ADDRESS].join(":");
        for text in ["", "0a:00:00:01", "52:54:00:12:34:56", PORT, &longest] {
            let address: HardwareAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            let json = serde_json::to_string(&address).unwrap();
            assert_eq!(json, format!("{text:?}"));
        }
        let too_long = format!("{longest}:0f");
        for other in ["x", "52:54:0", "52:54:", ":", "5254", "+1:02", &too_long] {
            let error = other.parse::<HardwareAddress>().unwrap_err();
            assert_eq!(
                error, "not the hexadecimal bytes of a hardware address",
                "{other}"
            );
        }
    }

    #[test]
    fn only_an_ipoib_address_has_a_port_guid() {
        let guid = |text: &str| text.parse::<HardwareAddress>().unwrap().port_guid();
        assert_eq!(guid(PORT), Some(Guid(0xb859_9f03_00fc_1a2c)));
        let unset = "80:00:00:48:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:00";
        for other in [unset, "", "52:54:00:12:34:56", "b8:59:9f:03:00:fc:1a:2c"] {
            assert_eq!(guid(other), None, "{other}");
        }
    }

    #[test]
    fn a_broadcast_address_holds_group_and_partition() {
        let broadcast = unhex(PARTITION).unwrap();
        assert_eq!(pkey_of_broadcast(&broadcast), Some(0x8001));
        let group = group_of_broadcast(&broadcast).unwrap();
        assert_eq!(group.to_string(), "ff12:401b:8001::ffff:ffff");
        for other in [&[0xff; 6][..], &broadcast[1..], &[]] {
            assert_eq!(pkey_of_broadcast(other), None);
            assert_eq!(group_of_broadcast(other), None);
        }
    }
}
