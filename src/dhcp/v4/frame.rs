// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a UDP datagram in an IPv4 packet, for sending and receiving on a packet socket (RFC 791,
//! 768).

use std::net::Ipv4Addr;

use super::lease::is_host;

/// Port of DHCP servers.
pub const SERVER_PORT: u16 = 67;
/// Port of DHCP clients.
pub const CLIENT_PORT: u16 = 68;
/// Bytes of the two headers without IP options.
pub const HEADERS: usize = IP + UDP;
const IP: usize = 20;
const UDP: usize = 8;
/// Offset of the transaction in a message.
const XID: usize = 4;
const PROTOCOL_UDP: u8 = 17;
/// Mask of the More Fragments flag and the fragment offset.
const FRAGMENT: u16 = 0x3fff;
/// "Don't fragment".
const DF: u16 = 0x4000;
const TTL: u8 = 64;

/// A UDP datagram from a packet socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Source address: the server, or its relay.
    pub from: Ipv4Addr,
    /// Destination address.
    pub to: Ipv4Addr,
    /// UDP payload.
    pub payload: &'a [u8],
}

/// Sum of 16-bit words, for the Internet checksum (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let mut pairs = bytes.chunks_exact(2);
    let mut sum: u64 = pairs
        .by_ref()
        .map(|pair| match pair {
            [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
            _ => 0,
        })
        .sum();
    if let [last] = pairs.remainder() {
        sum += u64::from(u16::from_be_bytes([*last, 0]));
    }
    sum
}

fn checksum(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !u16::try_from(sum).unwrap_or(0)
}

fn pseudo_header(from: Ipv4Addr, to: Ipv4Addr, length: u16) -> u64 {
    sum(&from.octets()) + sum(&to.octets()) + u64::from(PROTOCOL_UDP) + u64::from(length)
}

/// A packet from the client's port to the servers' port, with "don't fragment"; `None` if the
/// payload is too long for IP.
pub fn to_servers(from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Option<Vec<u8>> {
    let udp_length = u16::try_from(UDP + payload.len()).ok()?;
    let length = u16::try_from(HEADERS + payload.len()).ok()?;
    let mut bytes = Vec::with_capacity(HEADERS + payload.len());
    bytes.extend([0x45, 0]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(0_u16.to_be_bytes());
    bytes.extend(DF.to_be_bytes());
    bytes.extend([TTL, PROTOCOL_UDP]);
    let mut header = bytes.clone();
    header.extend([0, 0]);
    header.extend(from.octets());
    header.extend(to.octets());
    bytes.extend(checksum(sum(&header)).to_be_bytes());
    bytes.extend(from.octets());
    bytes.extend(to.octets());
    let mut udp = Vec::with_capacity(UDP);
    udp.extend(CLIENT_PORT.to_be_bytes());
    udp.extend(SERVER_PORT.to_be_bytes());
    udp.extend(udp_length.to_be_bytes());
    let check = checksum(pseudo_header(from, to, udp_length) + sum(&udp) + sum(payload));
    // Zero would mean "no checksum" (RFC 768).
    let check = if check == 0 { 0xffff } else { check };
    bytes.extend(udp);
    bytes.extend(check.to_be_bytes());
    bytes.extend(payload);
    Some(bytes)
}

/// The transaction of a DHCP message in a packet, from its place (RFC 2131 2). Nothing is checked.
pub fn transaction(packet: &[u8]) -> Option<u32> {
    let header_length = usize::from(packet.first()? & 0xf) * 4;
    let xid = packet.get(header_length + UDP + XID..)?.first_chunk();
    xid.map(|xid| u32::from_be_bytes(*xid))
}

/// Reads a packet for the client's port. `None`: another kind of packet, a fragment, a wrong length
/// or checksum, or a source address that no server can have. `unsummed`: the kernel reports that
/// the UDP checksum is not filled in (`TP_STATUS_CSUMNOTREADY`, packet(7)), as on virtual
/// interfaces.
pub fn to_client(packet: &[u8], unsummed: bool) -> Option<Datagram<'_>> {
    let header: &[u8; IP] = packet.first_chunk()?;
    let word =
        |at: usize| -> Option<u16> { Some(u16::from_be_bytes(*header.get(at..)?.first_chunk()?)) };
    let address = |at: usize| -> Option<Ipv4Addr> {
        Some(Ipv4Addr::from(*header.get(at..)?.first_chunk::<4>()?))
    };
    let (first, protocol) = (*header.first()?, *header.get(9)?);
    let header_length = usize::from(first & 0xf) * 4;
    let is_whole = word(6)? & FRAGMENT == 0;
    if first >> 4 != 4 || header_length < IP || protocol != PROTOCOL_UDP || !is_whole {
        return None;
    }
    // Padding of the link may follow the packet.
    let packet = packet.get(..usize::from(word(2)?))?;
    let (ip, udp) = packet.split_at_checked(header_length)?;
    if checksum(sum(ip)) != 0 {
        return None;
    }
    let (from, to) = (address(12)?, address(16)?);
    // A host without an address broadcasts (RFC 1122 3.2.1.3).
    let is_possible = is_host(from) || (from.is_unspecified() && to.is_broadcast());
    if !is_possible {
        return None;
    }
    let (&[s0, s1, d0, d1, l0, l1, c0, c1], _) = udp.split_first_chunk::<UDP>()?;
    let length = u16::from_be_bytes([l0, l1]);
    if u16::from_be_bytes([d0, d1]) != CLIENT_PORT || u16::from_be_bytes([s0, s1]) == 0 {
        return None;
    }
    let datagram = udp.get(..usize::from(length))?;
    let payload = datagram.get(UDP..)?;
    let has_sum = [c0, c1] != [0, 0] && !unsummed;
    if has_sum && checksum(pseudo_header(from, to, length) + sum(datagram)) != 0 {
        return None;
    }
    Some(Datagram { from, to, payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
    const TO: Ipv4Addr = Ipv4Addr::BROADCAST;

    /// A packet from port 67 to port 68, as another implementation sends it.
    fn answer(payload: &[u8]) -> Vec<u8> {
        let mut packet = to_servers(Ipv4Addr::new(10, 0, 0, 1), TO, payload).unwrap();
        packet[20..24].copy_from_slice(&[0, 67, 0, 68]);
        packet
    }

    #[test]
    fn bytes_are_those_of_the_rfcs() {
        let packet = to_servers(FROM, TO, b"abc").unwrap();
        assert_eq!(
            packet,
            [
                0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0x3a, 0xcf, 0, 0, 0, 0, 255, 255, 255, 255,
                0, 68, 0, 67, 0, 11, 0x3a, 0xef, b'a', b'b', b'c'
            ]
        );
        assert!(to_servers(FROM, TO, &[0; 65_536]).is_none());
    }

    #[test]
    fn a_sent_packet_is_received() {
        for payload in [&b""[..], b"x", b"even", &[0; 1400]] {
            let packet = answer(payload);
            let datagram = to_client(&packet, false).unwrap();
            assert_eq!(datagram.payload, payload);
            assert_eq!(datagram.from, Ipv4Addr::new(10, 0, 0, 1));
            assert_eq!(datagram.to, TO);
        }
    }

    #[test]
    fn an_impossible_packet_is_dropped() {
        let packet = |from: [u8; 4], to: Ipv4Addr| {
            let mut packet = to_servers(from.into(), to, b"abc").unwrap();
            packet[20..24].copy_from_slice(&[0, 67, 0, 68]);
            packet
        };
        for from in [[127, 0, 0, 1], [255; 4], [224, 0, 0, 1], [240, 0, 0, 1]] {
            assert_eq!(to_client(&packet(from, TO), false), None, "{from:?}");
        }
        let host = Ipv4Addr::new(10, 0, 0, 5);
        assert!(to_client(&packet([0; 4], TO), false).is_some());
        assert!(to_client(&packet([0; 4], host), false).is_none());
        assert!(to_client(&packet([10, 0, 0, 1], host), false).is_some());
    }

    #[test]
    fn padding_of_the_link_is_no_part_of_it() {
        let mut packet = answer(b"abc");
        packet.resize(60, 0xaa);
        assert_eq!(to_client(&packet, false).unwrap().payload, b"abc");
    }

    #[test]
    fn a_wrong_bit_anywhere_is_found() {
        let packet = answer(b"payload");
        for position in 0..packet.len() * 8 {
            let mut wrong = packet.clone();
            wrong[position / 8] ^= 1 << (position % 8);
            assert_eq!(to_client(&wrong, false), None, "bit {position}");
        }
    }

    #[test]
    fn a_checksum_that_is_not_filled_in_does_not_count() {
        let mut packet = answer(b"abc");
        packet[26] ^= 0x55;
        assert_eq!(to_client(&packet, false), None);
        assert!(to_client(&packet, true).is_some());
    }

    #[test]
    fn the_transaction_is_read_from_its_place() {
        let mut packet = answer(&[2, 1, 6, 0, 0x12, 0x34, 0x56, 0x78]);
        assert_eq!(transaction(&packet), Some(0x1234_5678));
        assert_eq!(transaction(&packet[..packet.len() - 1]), None);
        assert_eq!(transaction(&[]), None);
        // With IP options.
        packet[0] = 0x46;
        packet.splice(20..20, [0; 4]);
        assert_eq!(transaction(&packet), Some(0x1234_5678));
    }

    #[test]
    fn fragments_and_short_packets_are_nothing() {
        let packet = answer(b"abcdef");
        for length in 0..packet.len() {
            assert_eq!(to_client(&packet[..length], true), None, "{length}");
        }
        for header_length in 0..5 {
            let mut wrong = packet.clone();
            wrong[0] = 0x40 | header_length;
            assert_eq!(to_client(&wrong, true), None);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(
            mut bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..120),
            header in 0_u8..16,
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = 0x40 | header;
            }
            transaction(&bytes);
            if let Some(datagram) = to_client(&bytes, true) {
                proptest::prop_assert!(datagram.payload.len() + HEADERS <= bytes.len());
            }
        }
    }
}
