// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses and routes of this network namespace, each as one dump of rtnetlink(7): whole, or an
//! error. Layout: linux/if_addr.h and linux/rtnetlink.h, a family's header and then attributes.

use std::net::IpAddr;

use nix::sys::socket::SockProtocol;

use crate::inet::{self, Route};
use crate::rdma::netlink::wire::{Attribute, Attributes, Malformed, Request};
use crate::rdma::netlink::{Error, Socket};

const V4: u8 = libc::AF_INET as u8;
const V6: u8 = libc::AF_INET6 as u8;

/// Lengths of struct ifaddrmsg, struct rtmsg and struct rtnexthop.
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;
const HOP_HEADER: usize = 8;

/// linux/if_addr.h.
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;

/// An IP address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Index of the interface.
    pub index: u32,
    /// The interface's own address with the prefix length of its network.
    pub address: inet::Address,
    /// `IFA_F_*`.
    pub flags: u32,
}

/// A route through an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Through {
    /// Index of the interface.
    pub index: u32,
    /// Where it leads.
    pub route: Route,
}

/// All addresses of both families.
pub(super) fn addresses() -> Result<Vec<Address>, Error> {
    dump(libc::RTM_GETADDR, &[0; ADDRESS_HEADER], address)
}

/// The routes that /proc/net/route and /proc/net/ipv6_route show: of IPv4 the main table and the
/// first next hop, of IPv6 all tables and all next hops; none that rejects or leads to this machine.
pub(super) fn routes() -> Result<Vec<Through>, Error> {
    dump(libc::RTM_GETROUTE, &[0; ROUTE_HEADER], route)
}

/// Family 0 in the header asks all families (`rtnl_dump_all` of net/core/rtnetlink.c).
fn dump<T>(
    kind: u16,
    header: &[u8],
    read: fn(Attributes<'_>) -> Result<Vec<T>, Malformed>,
) -> Result<Vec<T>, Error> {
    let socket = Socket::open(SockProtocol::NetlinkRoute).map_err(Error::Socket)?;
    let answers = socket.dump(&Request::dump_of(kind, header), read)?;
    Ok(answers.into_iter().flatten().collect())
}

fn address(message: Attributes<'_>) -> Result<Vec<Address>, Malformed> {
    let ([family, prefix, flags, _, index @ ..], attributes) =
        message.behind::<ADDRESS_HEADER>()?;
    let (mut own, mut other, mut flags) = (None, None, u32::from(flags));
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            IFA_LOCAL => own = Some(ip(family, &attribute)?),
            // The other end's, where there is one; else the own.
            IFA_ADDRESS => other = Some(ip(family, &attribute)?),
            // Wider than the header's.
            IFA_FLAGS => flags = attribute.number()?,
            _ => {}
        }
    }
    let Some(address) = own.or(other).flatten() else {
        return Ok(Vec::new());
    };
    Ok(vec![Address {
        index: u32::from_ne_bytes(index),
        address: inet::Address { address, prefix },
        flags,
    }])
}

fn route(message: Attributes<'_>) -> Result<Vec<Through>, Malformed> {
    let (header, attributes) = message.behind::<ROUTE_HEADER>()?;
    let [family, prefix, _, _, table, _, _, kind, flags @ ..] = header;
    let unspecified = match family {
        V4 => IpAddr::from([0; 4]),
        V6 => IpAddr::from([0; 16]),
        _ => return Ok(Vec::new()),
    };
    let is_shown = match family {
        V4 => table == libc::RT_TABLE_MAIN && matches!(kind, libc::RTN_UNICAST | libc::RTN_LOCAL),
        // An exception, as of a path's MTU, is no route.
        _ => {
            u32::from_ne_bytes(flags) & libc::RTM_F_CLONED == 0
                && matches!(
                    kind,
                    libc::RTN_UNICAST | libc::RTN_ANYCAST | libc::RTN_MULTICAST
                )
        }
    };
    if !is_shown {
        return Ok(Vec::new());
    }
    let mut address = unspecified;
    let mut single = Hop::default();
    let mut hops = Vec::new();
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            libc::RTA_DST => address = ip(family, &attribute)?.unwrap_or(unspecified),
            libc::RTA_MULTIPATH => hops = next_hops(family, attribute.value)?,
            _ => single.add(family, &attribute)?,
        }
    }
    hops.push(single);
    let network = inet::Address { address, prefix };
    let through = hops.into_iter().filter_map(|hop| {
        let gateway = hop.gateway.filter(|gateway| !gateway.is_unspecified());
        let route = Route { network, gateway };
        Some(Through {
            index: hop.index?,
            route,
        })
    });
    Ok(match family {
        V4 => through.take(1).collect(),
        _ => through.collect(),
    })
}

/// One way of a route.
#[derive(Default)]
struct Hop {
    index: Option<u32>,
    gateway: Option<IpAddr>,
}

impl Hop {
    fn add(&mut self, family: u8, attribute: &Attribute<'_>) -> Result<(), Malformed> {
        match attribute.kind {
            libc::RTA_OIF => self.index = Some(attribute.number()?),
            libc::RTA_GATEWAY => self.gateway = ip(family, attribute)?,
            _ => {}
        }
        Ok(())
    }
}

/// `struct rtnexthop {len u16, flags u8, hops u8, ifindex i32}`, each with attributes of its own.
fn next_hops(family: u8, mut bytes: &[u8]) -> Result<Vec<Hop>, Malformed> {
    let mut hops = Vec::new();
    while let Some(&[l0, l1, _, _, index @ ..]) = bytes.first_chunk::<HOP_HEADER>() {
        let length = u16::from_ne_bytes([l0, l1]);
        let attributes = bytes
            .get(HOP_HEADER..usize::from(length))
            .ok_or(Malformed::AttributeLength(length))?;
        let mut hop = Hop {
            index: Some(u32::from_ne_bytes(index)),
            gateway: None,
        };
        for attribute in Attributes::new(attributes) {
            hop.add(family, &attribute?)?;
        }
        hops.push(hop);
        let next = usize::from(length).next_multiple_of(4);
        bytes = bytes.get(next..).unwrap_or_default();
    }
    Ok(hops)
}

/// The address in an attribute; none of a family that is not IP.
fn ip(family: u8, attribute: &Attribute<'_>) -> Result<Option<IpAddr>, Malformed> {
    let malformed = Malformed::Number(attribute.kind);
    match family {
        V4 => <[u8; 4]>::try_from(attribute.value)
            .map(|bytes| Some(bytes.into()))
            .map_err(|_| malformed),
        V6 => <[u8; 16]>::try_from(attribute.value)
            .map(|bytes| Some(bytes.into()))
            .map_err(|_| malformed),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn hop(index: u32, gateway: [u8; 4]) -> Vec<u8> {
        let gateway = attribute(libc::RTA_GATEWAY, &gateway);
        let length = u16::try_from(HOP_HEADER + gateway.len()).unwrap();
        [
            &length.to_ne_bytes()[..],
            &[0, 0],
            &index.to_ne_bytes(),
            &gateway,
        ]
        .concat()
    }

    fn shown(header: [u8; ROUTE_HEADER], attributes: &[Vec<u8>]) -> Vec<String> {
        let message = [&header[..], &attributes.concat()].concat();
        let through = route(Attributes::new(&message)).unwrap();
        let line = |t: &Through| format!("{} {}", t.index, t.route);
        through.iter().map(line).collect()
    }

    #[test]
    fn of_an_ipv4_route_the_first_next_hop_counts_as_in_proc() {
        let main = [V4, 16, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        let to = attribute(libc::RTA_DST, &[10, 20, 0, 0]);
        let hops = [hop(7, [10, 0, 0, 1]), hop(8, [10, 0, 0, 2])].concat();
        let hops = attribute(libc::RTA_MULTIPATH, &hops);
        assert_eq!(
            shown(main, &[to.clone(), hops]),
            ["7 10.20.0.0/16 via 10.0.0.1"]
        );
        let out = attribute(libc::RTA_OIF, &7u32.to_ne_bytes());
        let one = [to, out];
        assert_eq!(shown(main, &one), ["7 10.20.0.0/16"]);
        let mut local = main;
        local[4] = 255;
        let mut unreachable = main;
        unreachable[7] = 7;
        let mut mpls = main;
        mpls[0] = 28;
        for header in [local, unreachable, mpls] {
            assert_eq!(shown(header, &one), [""; 0]);
        }
    }

    #[test]
    fn an_own_address_is_told_from_the_other_ends() {
        let header = [V4, 32, 0x80, 0, 7, 0, 0, 0];
        let header = if cfg!(target_endian = "big") {
            [V4, 32, 0x80, 0, 0, 0, 0, 7]
        } else {
            header
        };
        let attributes = [
            attribute(IFA_ADDRESS, &[10, 0, 0, 1]),
            attribute(IFA_LOCAL, &[10, 0, 0, 2]),
            attribute(IFA_FLAGS, &0x280u32.to_ne_bytes()),
        ];
        let message = [&header[..], &attributes.concat()].concat();
        let found = address(Attributes::new(&message)).unwrap();
        let [found] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(found.address.to_string(), "10.0.0.2/32");
        assert_eq!((found.index, found.flags), (7, 0x280));
    }

    #[test]
    fn what_is_not_as_the_headers_say_is_an_error_and_not_left_out() {
        let header = [V4, 16, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        let cut_hop = hop(7, [10, 0, 0, 1])[..12].to_vec();
        for (kind, value) in [
            (libc::RTA_DST, vec![10, 20, 0]),
            (libc::RTA_OIF, vec![1, 2, 3]),
            (libc::RTA_MULTIPATH, cut_hop),
        ] {
            let message = [&header[..], &attribute(kind, &value)].concat();
            assert!(route(Attributes::new(&message)).is_err(), "{kind}");
        }
        assert_eq!(
            route(Attributes::new(&header[..11])),
            Err(Malformed::ShortMessage)
        );
    }

    proptest::proptest! {
        #[test]
        fn any_message_is_answered(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            if let Ok(found) = address(Attributes::new(&bytes)) {
                proptest::prop_assert!(found.len() <= 1);
            }
            let mut message = bytes;
            if let Some(first) = message.first_mut() {
                *first = if *first % 2 == 0 { V4 } else { V6 };
            }
            if let Ok(found) = route(Attributes::new(&message)) {
                let family = message.first() == Some(&V4);
                proptest::prop_assert!(found.iter().all(|t| t.route.network.address.is_ipv4() == family));
            }
        }
    }
}
