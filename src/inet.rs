// SPDX-License-Identifier: MIT OR Apache-2.0
//! IP addresses with their prefix length, and routes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An IP address with its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Address {
    /// IPv4 or IPv6.
    pub address: IpAddr,
    /// Prefix length in bits.
    pub prefix: u8,
}

impl Route {
    /// The default route through a gateway.
    pub fn default_through(gateway: IpAddr) -> Route {
        let address = match gateway {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Route {
            network: Address { address, prefix: 0 },
            gateway: Some(gateway),
        }
    }
}

/// Whether an address is of its link alone.
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

impl Address {
    /// One host, with the whole address as prefix.
    pub fn host(address: IpAddr) -> Address {
        let prefix = if address.is_ipv6() { 128 } else { 32 };
        Address { address, prefix }
    }

    /// Whether `other` is in the network of this address.
    pub fn reaches(&self, other: IpAddr) -> bool {
        use IpAddr::{V4, V6};
        let prefix = u32::from(self.prefix);
        match (self.address, other) {
            (V4(own), V4(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.leading_zeros() >= prefix
            }
            (V6(own), V6(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.leading_zeros() >= prefix
            }
            _ => false,
        }
    }

    /// The network of the address: without the bits of the host.
    pub fn network(self) -> Address {
        let prefix = u32::from(self.prefix);
        let address = match self.address {
            IpAddr::V4(own) => {
                let host = u32::MAX.checked_shr(prefix).unwrap_or(0);
                Ipv4Addr::from_bits(own.to_bits() & !host).into()
            }
            IpAddr::V6(own) => {
                let host = u128::MAX.checked_shr(prefix).unwrap_or(0);
                Ipv6Addr::from_bits(own.to_bits() & !host).into()
            }
        };
        Address { address, ..self }
    }
}

/// The netmask of an IPv4 network with this prefix length; more than 32 counts as 32.
pub fn mask(prefix: u8) -> Ipv4Addr {
    let host_bits = 32_u32.saturating_sub(u32::from(prefix));
    Ipv4Addr::from_bits(u32::MAX.checked_shl(host_bits).unwrap_or(0))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Reads `ADDRESS/PREFIX`, the format of `Display`.
impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (address, prefix) = text.split_once('/')?;
            let (address, prefix) = (address.parse().ok()?, prefix.parse().ok()?);
            let host = Address::host(address);
            (prefix <= host.prefix).then_some(Address { address, prefix })
        };
        read().ok_or("not ADDRESS/PREFIX")
    }
}

/// A route: destination network and next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Destination.
    pub network: Address,
    /// The next hop; none for a network that is directly on the link.
    pub gateway: Option<IpAddr>,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.network)?;
        self.gateway
            .map_or(Ok(()), |gateway| write!(f, " via {gateway}"))
    }
}

/// What a router advertises about DHCPv6 (M and O flag, RFC 4861 4.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Router {
    /// No router advertisement was received.
    #[default]
    Silent,
    /// Neither M nor O flag: no DHCPv6.
    Unmanaged,
    /// O flag: name servers come from DHCPv6, addresses do not.
    Stateless,
    /// M flag: addresses come from DHCPv6.
    Managed,
}

impl Router {
    /// Whether name servers come from DHCPv6: with addresses (M flag) or without (O flag).
    pub fn has_information(self) -> bool {
        matches!(self, Router::Stateless | Router::Managed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_as_many_ones_as_the_prefix() {
        for (prefix, expected) in [
            (0, "0.0.0.0"),
            (1, "128.0.0.0"),
            (23, "255.255.254.0"),
            (32, "255.255.255.255"),
            (33, "255.255.255.255"),
        ] {
            assert_eq!(mask(prefix).to_string(), expected);
        }
    }

    #[test]
    fn an_address_has_a_prefix_of_its_family() {
        for text in [
            "10.0.0.1/24",
            "0.0.0.0/0",
            "10.0.0.1/32",
            "fe80::1/64",
            "::/128",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        for other in [
            "",
            "/",
            "10.0.0.1",
            "10.0.0.1/",
            "10.0.0.1/33",
            "fd00::1/129",
            "10.0.0/24",
        ] {
            assert_eq!(
                other.parse::<Address>(),
                Err("not ADDRESS/PREFIX"),
                "{other}"
            );
        }
    }
}
