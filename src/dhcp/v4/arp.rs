// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: ARP for IPv4 over any hardware (RFC 826), and the probe for an address in use (RFC 5227).

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::hardware::HardwareType;
use crate::system::decoder::Format;

const PROTOCOL_IPV4: u16 = 0x0800;
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
/// Bytes before the addresses.
pub const HEADER: usize = 8;

/// An ARP packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arp {
    /// Hardware type of the link.
    pub hardware_type: HardwareType,
    /// 1: request, 2: reply.
    pub operation: u16,
    /// Hardware address of the sender.
    pub sender: Vec<u8>,
    /// The address that the sender claims; 0.0.0.0 in a probe.
    pub sender_address: Ipv4Addr,
    /// The address that the packet requests.
    pub target_address: Ipv4Addr,
}

impl Arp {
    /// A probe, "who has `address`?", from a host without an address.
    pub fn probe(hardware_type: HardwareType, sender: &[u8], address: Ipv4Addr) -> Arp {
        Arp {
            hardware_type,
            operation: REQUEST,
            sender: sender.to_vec(),
            sender_address: Ipv4Addr::UNSPECIFIED,
            target_address: address,
        }
    }

    /// An announcement, "I have `address`": neighbours update their ARP caches (RFC 5227 3).
    pub fn announcement(hardware_type: HardwareType, sender: &[u8], address: Ipv4Addr) -> Arp {
        Arp {
            sender_address: address,
            ..Arp::probe(hardware_type, sender, address)
        }
    }

    /// Encodes the packet; `None` for a hardware address of more than 255 bytes.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let length = u8::try_from(self.sender.len()).ok()?;
        let mut bytes = Vec::with_capacity(HEADER + 2 * (self.sender.len() + 4));
        bytes.extend(self.hardware_type.number().to_be_bytes());
        bytes.extend(PROTOCOL_IPV4.to_be_bytes());
        bytes.extend([length, 4]);
        bytes.extend(self.operation.to_be_bytes());
        bytes.extend(&self.sender);
        bytes.extend(self.sender_address.octets());
        bytes.resize(bytes.len() + self.sender.len(), 0);
        bytes.extend(self.target_address.octets());
        Some(bytes)
    }

    /// Decodes an IPv4 request or reply; `None` for any other packet.
    pub fn decode(bytes: &[u8]) -> Option<Arp> {
        let (&[h0, h1, p0, p1, length, 4, o0, o1], rest) = bytes.split_first_chunk::<HEADER>()?
        else {
            return None;
        };
        let operation = u16::from_be_bytes([o0, o1]);
        if u16::from_be_bytes([p0, p1]) != PROTOCOL_IPV4 || !matches!(operation, REQUEST | REPLY) {
            return None;
        }
        let (sender, rest) = rest.split_at_checked(usize::from(length))?;
        let (sender_address, rest) = rest.split_first_chunk::<4>()?;
        let (_, rest) = rest.split_at_checked(usize::from(length))?;
        let (target_address, _) = rest.split_first_chunk::<4>()?;
        Some(Arp {
            hardware_type: HardwareType::from(u16::from_be_bytes([h0, h1])),
            operation,
            sender: sender.to_vec(),
            sender_address: Ipv4Addr::from(*sender_address),
            target_address: Ipv4Addr::from(*target_address),
        })
    }

    /// Whether another host has `address`, or probes for it at the same time (RFC 5227 2.1.1).
    pub fn takes(&self, address: Ipv4Addr, own: &[u8]) -> bool {
        let probes = self.sender_address.is_unspecified()
            && self.operation == REQUEST
            && self.target_address == address;
        self.sender != own && (self.sender_address == address || probes)
    }
}

/// ARP packets; none: another packet.
#[derive(Debug)]
pub struct Arps;

impl Format for Arps {
    const NAME: &'static str = "arp";
    type Context = ();
    type Value = Option<Arp>;

    fn decode((): &(), bytes: &[u8]) -> Option<Arp> {
        Arp::decode(bytes)
    }

    fn is_sound((): &(), arp: &Option<Arp>) -> bool {
        arp.as_ref()
            .is_none_or(|arp| arp.sender.len() <= usize::from(u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

    #[test]
    fn a_probe_over_infiniband_has_twenty_byte_addresses() {
        let own: Vec<u8> = (1..=20).collect();
        let bytes = Arp::probe(HardwareType::InfiniBand, &own, ADDRESS)
            .encode()
            .unwrap();
        let mut expected = vec![0, 32, 8, 0, 20, 4, 0, 1];
        expected.extend(1..=20);
        expected.extend([0; 4 + 20]);
        expected.extend([10, 0, 0, 5]);
        assert_eq!(bytes, expected);
        assert_eq!(
            Arp::decode(&bytes),
            Some(Arp::probe(HardwareType::InfiniBand, &own, ADDRESS))
        );
        for length in 0..bytes.len() {
            assert_eq!(Arp::decode(&bytes[..length]), None);
        }
    }

    #[test]
    fn an_address_is_taken_by_its_owner_and_by_another_probe_and_not_by_ourselves() {
        let (own, other) = ([1; 6], [2; 6]);
        let arp = |sender: [u8; 6], operation, sender_address, target_address| Arp {
            hardware_type: HardwareType::Ethernet,
            operation,
            sender: sender.to_vec(),
            sender_address,
            target_address,
        };
        let (unspecified, third) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(10, 0, 0, 9));
        assert!(arp(other, REPLY, ADDRESS, unspecified).takes(ADDRESS, &own));
        assert!(arp(other, REQUEST, ADDRESS, third).takes(ADDRESS, &own));
        assert!(arp(other, REQUEST, unspecified, ADDRESS).takes(ADDRESS, &own));
        assert!(!arp(own, REQUEST, unspecified, ADDRESS).takes(ADDRESS, &own));
        assert!(!arp(other, REQUEST, third, ADDRESS).takes(ADDRESS, &own));
        assert!(!arp(other, REPLY, unspecified, ADDRESS).takes(ADDRESS, &own));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_harm_and_come_back(
            mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80),
            is_arp in proptest::prelude::any::<bool>(),
        ) {
            if let Some(head) = bytes.get_mut(2..8).filter(|_| is_arp) {
                head.copy_from_slice(&[8, 0, 20, 4, 0, 2]);
            }
            let arp = Arps::decode(&(), &bytes);
            proptest::prop_assert!(Arps::is_sound(&(), &arp));
            if let Some(arp) = arp {
                let again = arp.encode().and_then(|bytes| Arp::decode(&bytes));
                proptest::prop_assert_eq!(again, Some(arp));
            }
        }
    }
}
