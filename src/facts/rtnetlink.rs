// SPDX-License-Identifier: MIT OR Apache-2.0
//! The links, addresses and routes of this network namespace: each a complete dump of rtnetlink(7),
//! or an error.

use std::net::IpAddr;

use netlink_packet_core::{DecodeError, Emitable, NlasIterator};
use nix::sys::socket::SockProtocol;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::AddressHeader;
use rtnetlink::packet_route::link::LinkHeader;
use rtnetlink::packet_route::route::{RouteFlags, RouteHeader, RouteProtocol, RouteType};

use crate::inet::{self, Route};
use crate::rdma::netlink::wire::{Attribute, Request, number, text};
use crate::rdma::netlink::{Error, Socket};
use crate::wish::ipoib;

/// linux/if_addr.h.
const IFA_FLAGS: u16 = 8;
/// RTEXT_FILTER_SKIP_STATS (linux/rtnetlink.h): no counters, which change all the time.
const SKIP_STATS: u32 = 1 << 3;
/// Bytes of struct rtnexthop (linux/rtnetlink.h).
const NEXT_HOP: usize = 8;

/// An IP address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Index of the interface.
    pub index: u32,
    /// The interface's own address with its prefix length.
    pub address: inet::Address,
    /// `IFA_F_*`.
    pub flags: u32,
}

/// A route through an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Through {
    /// Index of the interface.
    pub index: u32,
    /// Destination and gateway.
    pub route: Route,
    /// Metric (RTA_PRIORITY); the lowest one counts.
    pub metric: u32,
    /// Made of a router's advertisement (RTPROT_RA).
    pub is_advertised: bool,
}

/// A network interface, as far as rtnetlink reports what is read of it (`rtnl_fill_ifinfo` of
/// net/core/rtnetlink.c). Two equal messages: no attribute of the interface has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// `ARPHRD_*`.
    pub hardware_type: u16,
    /// `IFF_*`.
    pub flags: u32,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Carrier, whether the interface is up or down.
    pub carrier: Option<bool>,
    /// Number of the operational state (RFC 2863, linux/if.h).
    pub operstate: Option<u8>,
    /// Index of the interface below.
    pub lower: Option<u32>,
    /// Hardware address.
    pub address: Vec<u8>,
    /// Broadcast address: of IPoIB with the P_Key.
    pub broadcast: Vec<u8>,
    /// The driver's own attributes (IFLA_LINKINFO), undecoded.
    pub info: Option<Vec<u8>>,
}

impl Link {
    /// The transport mode of an IPoIB interface (`ipoib_fill_info` of ipoib_netlink.c,
    /// linux/if_link.h): also of a child that was created through rtnetlink, which has no file for
    /// the mode.
    pub fn ipoib_mode(&self) -> Option<ipoib::Mode> {
        const MODE: u16 = 2;
        let inside = |bytes: &[u8], kind: u16| {
            let mut attributes = NlasIterator::new(bytes).filter_map(Result::ok);
            let found = attributes.find(|attribute| attribute.kind() == kind)?;
            Some(found.value().to_vec())
        };
        let data = inside(self.info.as_ref()?, libc::IFLA_INFO_DATA)?;
        match inside(&data, MODE)?.try_into().map(u16::from_ne_bytes) {
            Ok(0) => Some(ipoib::Mode::Datagram),
            Ok(1) => Some(ipoib::Mode::Connected),
            _ => None,
        }
    }
}

/// A socket for dumps.
#[derive(Debug)]
pub(super) struct Dumps(Socket);

impl Dumps {
    pub(super) fn open() -> Result<Dumps, Error> {
        let socket = Socket::open(SockProtocol::NetlinkRoute);
        socket.map(Dumps).map_err(Error::Socket)
    }

    /// All interfaces.
    pub(super) fn links(&self) -> Result<Vec<Link>, Error> {
        let header = LinkHeader::default();
        let request = Request::dump_of(libc::RTM_GETLINK, &header);
        self.0
            .dump(&request.u32(libc::IFLA_EXT_MASK, SKIP_STATS), link)
    }

    /// All addresses of both families.
    pub(super) fn addresses(&self) -> Result<Vec<Address>, Error> {
        self.dump(libc::RTM_GETADDR, &AddressHeader::default(), address)
    }

    /// The routes that /proc/net/route and /proc/net/ipv6_route show. IPv4: the main table and the
    /// first next hop. IPv6: all tables and all next hops. Reject routes and local routes are left
    /// out.
    pub(super) fn routes(&self) -> Result<Vec<Through>, Error> {
        self.dump(libc::RTM_GETROUTE, &RouteHeader::default(), route)
    }

    /// The default header has family 0, which requests all families (`rtnl_dump_all` of
    /// net/core/rtnetlink.c).
    fn dump<T: IntoIterator>(
        &self,
        kind: u16,
        header: &impl Emitable,
        read: fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<Vec<T::Item>, Error> {
        let answers = self.0.dump(&Request::dump_of(kind, header), read)?;
        Ok(answers.into_iter().flatten().collect())
    }
}

fn link(message: &[u8]) -> Result<Link, DecodeError> {
    let header = LinkHeader::parse(message)?;
    let mut link = Link {
        index: header.index,
        hardware_type: header.link_layer_type.into(),
        flags: header.flags.bits(),
        ..Link::default()
    };
    for attribute in attributes(message, &header) {
        let attribute = attribute?;
        match attribute.kind() {
            libc::IFLA_IFNAME => link.name = text(&attribute)?,
            libc::IFLA_MTU => link.mtu = Some(number(&attribute)?),
            libc::IFLA_CARRIER => link.carrier = Some(number::<u8>(&attribute)? != 0),
            libc::IFLA_OPERSTATE => link.operstate = Some(number(&attribute)?),
            libc::IFLA_LINK => link.lower = Some(number(&attribute)?),
            libc::IFLA_ADDRESS => link.address = attribute.value().to_vec(),
            libc::IFLA_BROADCAST => link.broadcast = attribute.value().to_vec(),
            libc::IFLA_LINKINFO => link.info = Some(attribute.value().to_vec()),
            _ => {}
        }
    }
    match link.name.is_empty() {
        true => Err("link without a name".into()),
        false => Ok(link),
    }
}

fn address(message: &[u8]) -> Result<Option<Address>, DecodeError> {
    let header = AddressHeader::parse(message)?;
    // The attributes of other families have other lengths.
    if !matches!(header.family, AddressFamily::Inet | AddressFamily::Inet6) {
        return Ok(None);
    }
    let (mut local, mut peer, mut flags) = (None, None, u32::from(header.flags.bits()));
    for attribute in attributes(message, &header) {
        let attribute = attribute?;
        match attribute.kind() {
            libc::IFA_LOCAL => local = Some(ip(&attribute)?),
            // The peer's address on a point-to-point interface, otherwise the interface's own.
            libc::IFA_ADDRESS => peer = Some(ip(&attribute)?),
            // 32 bits; the header has the lowest 8 of them.
            IFA_FLAGS => flags = number(&attribute)?,
            _ => {}
        }
    }
    Ok(local.or(peer).map(|address| Address {
        index: header.index,
        address: inet::Address {
            address,
            prefix: header.prefix_len,
        },
        flags,
    }))
}

fn route(message: &[u8]) -> Result<Vec<Through>, DecodeError> {
    let header = RouteHeader::parse(message)?;
    if !is_shown(&header) {
        return Ok(Vec::new());
    }
    let is_ipv4 = header.address_family == AddressFamily::Inet;
    let mut address = match is_ipv4 {
        true => IpAddr::from([0; 4]),
        false => IpAddr::from([0; 16]),
    };
    let (mut hops, mut output, mut metric) = (Vec::new(), None, 0);
    for attribute in attributes(message, &header) {
        let attribute = attribute?;
        match attribute.kind() {
            libc::RTA_DST => address = ip(&attribute)?,
            libc::RTA_OIF => output = Some(number(&attribute)?),
            libc::RTA_MULTIPATH => hops = next_hops(attribute.value())?,
            libc::RTA_PRIORITY => metric = number(&attribute)?,
            _ => {}
        }
    }
    if let Some(index) = output {
        hops.push((index, gateway(attributes(message, &header))?));
    }
    if is_ipv4 {
        hops.truncate(1);
    }
    let of_family = |address: &IpAddr| address.is_ipv4() == is_ipv4;
    let mut gateways = hops.iter().filter_map(|(_, gateway)| gateway.as_ref());
    if !of_family(&address) || !gateways.all(of_family) {
        return Err("address of another family".into());
    }
    let network = inet::Address {
        address,
        prefix: header.destination_prefix_length,
    };
    let through = |(index, gateway)| Through {
        index,
        route: Route { network, gateway },
        metric,
        is_advertised: header.protocol == RouteProtocol::Ra,
    };
    Ok(hops.into_iter().map(through).collect())
}

/// The attributes of a message. Only those that are needed are decoded: one attribute that a later
/// kernel or another program spells differently must not hide all addresses.
fn attributes<'a>(message: &'a [u8], header: &impl Emitable) -> NlasIterator<&'a [u8]> {
    NlasIterator::new(message.get(header.buffer_len()..).unwrap_or_default())
}

/// Index and gateway of each next hop (struct rtnexthop of linux/rtnetlink.h).
fn next_hops(mut rest: &[u8]) -> Result<Vec<(u32, Option<IpAddr>)>, DecodeError> {
    let mut hops = Vec::new();
    while !rest.is_empty() {
        let (Some([a, b]), Some([c, d, e, f])) = (
            rest.get(..2).and_then(|length| length.first_chunk()),
            rest.get(4..8).and_then(|index| index.first_chunk()),
        ) else {
            return Err("next hop is cut off".into());
        };
        let length = usize::from(u16::from_ne_bytes([*a, *b]));
        let attributes = rest.get(NEXT_HOP..length).ok_or("next hop is cut off")?;
        let gateway = gateway(NlasIterator::new(attributes))?;
        hops.push((u32::from_ne_bytes([*c, *d, *e, *f]), gateway));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(hops)
}

/// Whether the files of /proc/net show the route.
fn is_shown(header: &RouteHeader) -> bool {
    let kind = header.kind;
    match header.address_family {
        AddressFamily::Inet => {
            header.table == RouteHeader::RT_TABLE_MAIN
                && matches!(kind, RouteType::Unicast | RouteType::Local)
        }
        // RTM_F_CLONED marks a cached exception, such as a path MTU, which is not a route.
        AddressFamily::Inet6 => {
            !header.flags.contains(RouteFlags::Cloned)
                && matches!(
                    kind,
                    RouteType::Unicast | RouteType::Anycast | RouteType::Multicast
                )
        }
        _ => false,
    }
}

fn gateway(attributes: NlasIterator<&[u8]>) -> Result<Option<IpAddr>, DecodeError> {
    for attribute in attributes {
        let attribute = attribute?;
        if attribute.kind() == libc::RTA_GATEWAY {
            return Ok(Some(ip(&attribute)?).filter(|gateway| !gateway.is_unspecified()));
        }
    }
    Ok(None)
}

fn ip(attribute: &Attribute<'_>) -> Result<IpAddr, DecodeError> {
    let value = attribute.value();
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from))
        .map_err(|_| format!("attribute {} is not an IP address", attribute.kind()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtnetlink::packet_route::link::LinkFlags;

    const V4: u8 = libc::AF_INET as u8;
    const V6: u8 = libc::AF_INET6 as u8;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn hop(index: u32, gateway: [u8; 4]) -> Vec<u8> {
        let gateway = attribute(libc::RTA_GATEWAY, &gateway);
        let length = u16::try_from(8 + gateway.len()).unwrap();
        [
            &length.to_ne_bytes()[..],
            &[0, 0],
            &index.to_ne_bytes(),
            &gateway,
        ]
        .concat()
    }

    fn shown(header: [u8; 12], attributes: &[Vec<u8>]) -> Vec<String> {
        let message = [&header[..], &attributes.concat()].concat();
        let through = route(&message).unwrap();
        let line = |t: &Through| format!("{} {}", t.index, t.route);
        through.iter().map(line).collect()
    }

    #[test]
    fn the_requests_are_for_every_family_without_a_filter() {
        let addresses = Request::dump_of(libc::RTM_GETADDR, &AddressHeader::default());
        assert_eq!(addresses.bytes(7)[16..], [0; 8]);
        let routes = Request::dump_of(libc::RTM_GETROUTE, &RouteHeader::default());
        assert_eq!(routes.bytes(7)[16..], [0; 12]);
    }

    #[test]
    fn a_link_has_its_attributes() {
        let header = LinkHeader {
            index: 7,
            link_layer_type: 32.into(),
            flags: LinkFlags::Up | LinkFlags::LowerUp,
            ..LinkHeader::default()
        };
        let mut message = vec![0; header.buffer_len()];
        header.emit(&mut message);
        let attributes = [
            attribute(libc::IFLA_IFNAME, b"ib0\0"),
            attribute(libc::IFLA_MTU, &2044u32.to_ne_bytes()),
            attribute(libc::IFLA_CARRIER, &[1]),
            attribute(libc::IFLA_OPERSTATE, &[6]),
            attribute(libc::IFLA_ADDRESS, &[1; 20]),
            attribute(libc::IFLA_BROADCAST, &[2; 20]),
            attribute(libc::IFLA_LINKINFO, &[3; 8]),
            attribute(libc::IFLA_LINK, &3u32.to_ne_bytes()),
        ];
        let found = link(&[message.clone(), attributes.concat()].concat()).unwrap();
        let expected = Link {
            index: 7,
            name: "ib0".to_owned(),
            hardware_type: 32,
            flags: 0x1_0001,
            mtu: Some(2044),
            carrier: Some(true),
            operstate: Some(6),
            lower: Some(3),
            address: vec![1; 20],
            broadcast: vec![2; 20],
            info: Some(vec![3; 8]),
        };
        assert_eq!(found, expected);
        let nameless = link(&message).unwrap_err();
        assert_eq!(nameless.to_string(), "link without a name");
        let cut = [&message[..], &attribute(libc::IFLA_MTU, &[1, 2])].concat();
        let why = |message: &[u8]| link(message).unwrap_err().to_string();
        assert_eq!(
            why(&cut),
            "attribute 4 is not a number of the expected size"
        );
        assert_eq!(
            why(&message[..15]),
            "Buffer too small: 15 (should be at least 16 bytes"
        );
    }

    #[test]
    fn the_mode_of_an_ipoib_interface_is_in_its_message() {
        let info = |mode: &[u8]| {
            let data = [attribute(1, &[0xff, 0xff]), attribute(2, mode)].concat();
            let kind = attribute(libc::IFLA_INFO_KIND, b"ipoib\0");
            [kind, attribute(libc::IFLA_INFO_DATA, &data)].concat()
        };
        for (mode, expected) in [
            (&[0, 0][..], Some(ipoib::Mode::Datagram)),
            (&1u16.to_ne_bytes(), Some(ipoib::Mode::Connected)),
            (&[7, 7], None),
            (&[0], None),
        ] {
            let link = Link {
                info: Some(info(mode)),
                ..Link::default()
            };
            assert_eq!(link.ipoib_mode(), expected);
        }
        assert_eq!(Link::default().ipoib_mode(), None);
    }

    #[test]
    fn an_ipv4_route_has_its_first_next_hop_as_in_proc() {
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
    fn an_ipv6_route_has_all_its_next_hops_and_no_cached_one_counts() {
        let hop6 = |index: u32| {
            let gateway = attribute(libc::RTA_GATEWAY, &[&[0xfd][..], &[0; 14], &[1]].concat());
            let length = u16::try_from(8 + gateway.len()).unwrap().to_ne_bytes();
            [&length[..], &[0, 0], &index.to_ne_bytes(), &gateway].concat()
        };
        let hops = attribute(libc::RTA_MULTIPATH, &[hop6(7), hop6(8)].concat());
        let one = [hops];
        let header = [V6, 0, 0, 0, 1, 3, 0, 1, 0, 0, 0, 0];
        assert_eq!(
            shown(header, &one),
            ["7 ::/0 via fd00::1", "8 ::/0 via fd00::1"]
        );
        let mut cloned = header;
        cloned[8..].copy_from_slice(&libc::RTM_F_CLONED.to_ne_bytes());
        assert_eq!(shown(cloned, &one), [""; 0]);
    }

    #[test]
    fn the_route_of_an_advertisement_is_known_by_its_protocol() {
        let out = attribute(libc::RTA_OIF, &7u32.to_ne_bytes());
        let is_advertised = |protocol: u8| {
            let header = [V6, 0, 0, 0, 254, protocol, 0, 1, 0, 0, 0, 0];
            let message = [&header[..], &out].concat();
            route(&message).unwrap().first().map(|t| t.is_advertised)
        };
        assert_eq!(is_advertised(RouteProtocol::Ra.into()), Some(true));
        assert_eq!(is_advertised(RouteProtocol::Static.into()), Some(false));
    }

    #[test]
    fn an_address_of_another_family_is_skipped() {
        let phonet = [35, 0, 0, 0, 7, 0, 0, 0];
        let message = [&phonet[..], &attribute(libc::IFA_LOCAL, &[0x6c])].concat();
        assert_eq!(address(&message).unwrap(), None);
    }

    #[test]
    fn an_own_address_differs_from_the_peers() {
        let header = [V4, 32, 0x80, 0, 7, 0, 0, 0];
        let header = if cfg!(target_endian = "big") {
            [V4, 32, 0x80, 0, 0, 0, 0, 7]
        } else {
            header
        };
        let attributes = [
            attribute(libc::IFA_ADDRESS, &[10, 0, 0, 1]),
            attribute(libc::IFA_LOCAL, &[10, 0, 0, 2]),
            attribute(IFA_FLAGS, &0x280u32.to_ne_bytes()),
            // A label that is not UTF-8 hides no address.
            attribute(libc::IFA_LABEL, b"\xff\xfe\0"),
        ];
        let message = [&header[..], &attributes.concat()].concat();
        let found = address(&message).unwrap();
        let found = found.unwrap();
        assert_eq!(found.address.to_string(), "10.0.0.2/32");
        assert_eq!((found.index, found.flags), (7, 0x280));
    }

    #[test]
    fn a_malformed_message_is_an_error_and_not_left_out() {
        let header = [V4, 16, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        let cut_hop = hop(7, [10, 0, 0, 1])[..12].to_vec();
        let why = |message: &[u8]| route(message).unwrap_err().to_string();
        for (kind, value, expected) in [
            (
                libc::RTA_DST,
                vec![10, 20, 0],
                "attribute 1 is not an IP address",
            ),
            (
                libc::RTA_OIF,
                vec![1, 2, 3],
                "attribute 4 is not a number of the expected size",
            ),
            (libc::RTA_MULTIPATH, cut_hop, "next hop is cut off"),
        ] {
            let message = [&header[..], &attribute(kind, &value)].concat();
            assert_eq!(why(&message), expected, "{kind}");
        }
        assert_eq!(
            why(&header[..11]),
            "Buffer too small: 11 (should be at least 12 bytes"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_message_is_answered(
            is_ipv4: bool,
            mut message in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        ) {
            // The header of a shown route, so that the attributes are parsed.
            let family = if is_ipv4 { V4 } else { V6 };
            for (at, byte) in [(0, family), (4, libc::RT_TABLE_MAIN), (7, libc::RTN_UNICAST)] {
                if let Some(found) = message.get_mut(at) {
                    *found = byte;
                }
            }
            let _found = address(&message);
            let _found = link(&message);
            for found in route(&message).unwrap_or_default() {
                proptest::prop_assert_eq!(found.route.network.address.is_ipv4(), is_ipv4);
            }
        }
    }
}
