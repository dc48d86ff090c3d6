// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what can be requested of an IPoIB interface, and what sysfs shows of one. What a machine
//! allows is in `facts/rules.rs`, the order of the steps in `up`.
//!
//! Sources: drivers/infiniband/ulp/ipoib/ipoib_main.c, ipoib_vlan.c.

mod granted;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::dhcp;
use crate::dhcp::v4::{Dhcp4Wish, lease};
use crate::dhcp::v6::Dhcp6Wish;
use crate::dhcp::v6::information::InformationWish;
use crate::inet::{Address, Route};

pub use granted::Suggested;
pub use kernel_cmdline::FULL_MEMBER;
/// What is requested; [`Mode`] is what an interface has.
pub use kernel_cmdline::{Mode as RequestedMode, Mtu as RequestedMtu};

/// An interface name has at most this many bytes of its parent's in front (`%.10s.%04x`).
const CHILD_PREFIX: usize = 10;
/// Largest datagram MTU: a 4096-byte IB MTU less the 4-byte header (RFC 4391).
pub const DATAGRAM_MAX: u32 = 4092;
/// Largest datagram MTU on Omni-Path: a 10240-byte MTU less the header (include/rdma/ib_verbs.h,
/// opa_mtu_enum_to_int).
pub const OPA_DATAGRAM_MAX: u32 = 10236;
/// Largest MTU of connected mode (ipoib.h, IPOIB_CM_MTU).
pub const CONNECTED_MAX: u32 = 65520;

/// Transport mode, as sysfs spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Unreliable datagrams: MTU up to 4092, what the broadcast group allows.
    Datagram,
    /// A reliable connection per peer: MTU up to 65520.
    Connected,
}

impl Mode {
    /// The word of the sysfs file.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Datagram => "datagram",
            Mode::Connected => "connected",
        }
    }

    /// Reads the sysfs file.
    pub fn parse(text: &str) -> Option<Mode> {
        match text {
            "datagram" => Some(Mode::Datagram),
            "connected" => Some(Mode::Connected),
            _ => None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl From<lease::Route> for Route {
    fn from(route: lease::Route) -> Route {
        Route {
            network: Address {
                address: route.network.into(),
                prefix: route.prefix,
            },
            gateway: (!route.gateway.is_unspecified()).then(|| route.gateway.into()),
        }
    }
}

/// What is requested of the IPoIB interface on a port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpoibWish {
    /// The requested name; none for any name.
    pub ifname: Option<String>,
    /// The P_Key of a child, full membership bit set; none: the parent interface.
    pub pkey: Option<u16>,
    /// Index of the child at the handover: several may have the P_Key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ifindex: Option<u32>,
    /// Mode; none if the kernel's mode is not changed.
    pub mode: Option<RequestedMode>,
    /// MTU; none for the MTU of the mode.
    pub mtu: Option<RequestedMtu>,
    /// Static addresses.
    pub addresses: Vec<Address>,
    /// Of these the ones that another host may have, as was found at the handover: no ARP probe has
    /// shown whether one has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproven: Vec<Ipv4Addr>,
    /// Default gateways.
    pub gateways: Vec<IpAddr>,
    /// The other end of a point-to-point link; the kernel's `ip=` has the boot server in this
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<IpAddr>,
    /// Routes other than the default one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns: Vec<IpAddr>,
    /// Search domains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// The root file system uses this interface.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub boot: bool,
    /// IPv6 autoconfiguration; none if the kernel's setting is not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoconf: Option<Autoconf>,
    /// A DHCP lease is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dhcp: Option<Dhcp4Wish>,
    /// A DHCPv6 lease is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dhcp6: Option<Dhcp6Wish>,
    /// Servers and routers are asked for addresses of both families, and one family is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_family: Option<SecondFamily>,
    /// Name servers are requested by DHCPv6 if a router's address is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<InformationWish>,
    /// The bond of the interface; the bond sets the interface up and decides its MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond: Option<String>,
    /// The address of the DHCP lease, which is one of `addresses`; not saved, like the suggestions.
    #[serde(skip)]
    pub leased: Option<Ipv4Addr>,
    /// The address of the DHCPv6 lease, if the server grants it as deprecated; not saved either.
    #[serde(skip)]
    pub deprecated: Option<Ipv6Addr>,
    /// What a DHCP server suggests: not saved, because each lease has it.
    #[serde(skip)]
    pub suggested: Suggested,
}

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl From<IpAddr> for Family {
    fn from(address: IpAddr) -> Family {
        match address {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        }
    }
}

/// How long both families are waited for (`rd.net.timeout.ip-required=`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFamily {
    /// Seconds after the interface has carrier.
    pub wait_s: u32,
    /// The family of the server of the root file system, which may not be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<Family>,
    /// The time is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

/// Extent of IPv6 autoconfiguration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Autoconf {
    /// A link-local address is enough (`link6`).
    LinkLocal,
    /// An address of a prefix that a router advertises (`auto6`, RFC 4862).
    Router,
}

/// The kernel's setting that gives an interface IPv6, below /proc/sys/net/ipv6/conf/IF.
pub const WITH_IPV6: (&str, &str) = ("disable_ipv6", "0");

impl Autoconf {
    /// The expected address, in words.
    pub fn word(self) -> &'static str {
        match self {
            Autoconf::LinkLocal => "a link-local IPv6 address",
            Autoconf::Router => "an IPv6 address of a router's prefix",
        }
    }

    /// Whether an address meets the expectation.
    pub fn is_met_by(self, address: IpAddr) -> bool {
        match address {
            IpAddr::V6(v6) => v6.is_unicast_link_local() == (self == Autoconf::LinkLocal),
            IpAddr::V4(_) => false,
        }
    }

    /// The kernel's settings for it below /proc/sys/net/ipv6/conf/IF (ip-sysctl.rst).
    pub fn settings(self) -> [(&'static str, &'static str); 3] {
        let (router, autoconf) = match self {
            Autoconf::LinkLocal => ("0", "0"),
            // 2: also after a program of the real root turns forwarding on. With 1 the kernel then
            // removes the routes of routers (rt6_purge_dflt_routers of net/ipv6/route.c).
            Autoconf::Router => ("2", "1"),
        };
        [WITH_IPV6, ("accept_ra", router), ("autoconf", autoconf)]
    }
}

impl IpoibWish {
    /// Whether any address is requested for the interface.
    pub fn is_addressed(&self) -> bool {
        let asks = self.dhcp.is_some() || self.dhcp6.is_some();
        !self.addresses.is_empty() || asks || self.autoconf.is_some()
    }

    /// Whether the root file system may depend on a leased address.
    pub fn must_keep(&self) -> bool {
        let of_v4 = self.dhcp.as_ref().is_some_and(|wish| wish.keep);
        of_v4 || self.dhcp6.as_ref().is_some_and(|wish| wish.keep)
    }

    /// Whether the name servers of servers and routers are ignored (`rd.peerdns=0`): with a router's
    /// address those of its DHCPv6 server are requested otherwise.
    pub fn ignores_dns(&self) -> bool {
        let of_v4 = self.dhcp.as_ref().is_some_and(|wish| wish.ignore_dns);
        let of_v6 = self.dhcp6.as_ref().is_some_and(|wish| wish.ignore_dns);
        let is_routed = self.autoconf == Some(Autoconf::Router);
        of_v4 || of_v6 || (is_routed && self.information.is_none())
    }

    /// The other end of the link for this address. A server outside the network of the address is
    /// not a peer: PXELINUX and the kernel's `ip=` (nfsroot.rst) have the boot server in this
    /// field.
    pub fn peer_of(&self, address: &Address) -> Option<IpAddr> {
        let is_host = *address == Address::host(address.address);
        self.peer
            .filter(|peer| peer.is_ipv6() == address.address.is_ipv6())
            .filter(|peer| is_host || address.reaches(*peer))
    }

    /// Whether the request itself makes `hop` a next hop: link-local, the peer, or in the network of a
    /// static address or of a route without a gateway.
    pub fn reaches(&self, hop: IpAddr) -> bool {
        let direct = self.routes.iter().filter(|route| route.gateway.is_none());
        let own = self.addresses.iter().copied();
        let mut networks = own.chain(direct.map(|route| route.network));
        let is_direct = self.peer == Some(hop) || Autoconf::LinkLocal.is_met_by(hop);
        is_direct || networks.any(|network| network.reaches(hop))
    }

    /// Whether servers or routers are asked for addresses of both families.
    pub fn asks_both_families(&self) -> bool {
        let is_routed = self.autoconf == Some(Autoconf::Router);
        self.dhcp.is_some() && (self.dhcp6.is_some() || is_routed)
    }

    /// Whether the interface may lack addresses of this family once it has those of the other one.
    pub fn may_lack(&self, family: Family) -> bool {
        let second = self.second_family.as_ref();
        second.is_some_and(|second| second.needed != Some(family))
    }

    /// The autoconfiguration to set in the kernel: with DHCPv6 the routes come from routers.
    pub fn kernel_autoconf(&self) -> Option<Autoconf> {
        let routers = self.dhcp6.as_ref().map(|_| Autoconf::Router);
        routers.or(self.autoconf)
    }

    /// The request for name servers; none if a lease is always requested, because it has name
    /// servers.
    pub fn information(&self) -> Option<&InformationWish> {
        let dhcp6 = self.dhcp6.as_ref();
        let has_lease = dhcp6.is_some_and(|dhcp6| dhcp6.after_router_s.is_none());
        self.information.as_ref().filter(|_| !has_lease)
    }

    /// The wish plus what a DHCPv6 server reported to a node with a router's address.
    pub fn informed(&self, information: &dhcp::v6::information::Information) -> IpoibWish {
        let mut wish = self.clone();
        let servers = information.name_servers.iter().copied();
        wish.dns.extend(servers.map(IpAddr::from));
        wish.domains
            .extend(information.domain_search.iter().cloned());
        wish
    }

    /// The wish plus what a DHCPv6 server granted, which replaces an address from a router. If the
    /// kernel has already made the same address from a router's prefix, the address keeps that
    /// prefix length, because the kernel accepts no address twice. `shown` is the address as the
    /// interface has it.
    pub fn granted6(&self, lease: &dhcp::v6::lease::Lease, shown: Option<Address>) -> IpoibWish {
        let mut wish = self.clone();
        wish.addresses.push(shown.unwrap_or(Address {
            address: lease.address.into(),
            prefix: dhcp::v6::lease::PREFIX,
        }));
        wish.deprecated = lease.is_deprecated().then_some(lease.address);
        let requested = self.dhcp6.as_ref();
        if requested.is_some_and(|dhcp6| dhcp6.after_router_s.is_some()) {
            wish.autoconf = None;
        }
        if !requested.is_some_and(|dhcp6| dhcp6.ignore_dns) {
            let servers = lease.name_servers.iter().copied();
            wish.dns.extend(servers.map(IpAddr::from));
            wish.domains.extend(lease.domain_search.iter().cloned());
        }
        wish
    }
}

/// What sysfs shows of an IPoIB interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpoibFacts {
    /// Transport mode; none if the file is missing (a kernel without CONFIG_INFINIBAND_IPOIB_CM,
    /// a child made through rtnetlink).
    pub mode: Option<Mode>,
    /// P_Key with the membership bit, from the broadcast address: every interface has it.
    pub pkey: Option<u16>,
    /// A child of another interface.
    pub child: bool,
    /// Of children: made through `create_child` of the parent, not through rtnetlink.
    #[serde(skip)]
    pub legacy: bool,
}

/// The name the kernel gives to a child.
pub fn child_name(parent: &str, pkey: u16) -> String {
    let cut: String = parent.chars().take(CHILD_PREFIX).collect();
    format!("{cut}.{:04x}", pkey | FULL_MEMBER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inet::Address;

    #[test]
    fn a_boot_server_beyond_the_network_is_no_peer() {
        for (own, prefix, other, is_peer) in [
            ("10.0.0.5", 24, "10.0.0.1", true),
            ("10.0.0.5", 32, "10.9.0.1", true),
            ("10.0.0.5", 24, "10.9.0.1", false),
            ("fd00::5", 64, "fd00::1", true),
            ("fd00::5", 128, "fd01::1", true),
            ("fd00::5", 64, "fd01::1", false),
            ("fd00::5", 64, "10.0.0.1", false),
        ] {
            let address = Address {
                address: own.parse().unwrap(),
                prefix,
            };
            let peer = other.parse().ok();
            let wish = IpoibWish {
                peer,
                ..IpoibWish::default()
            };
            let expected = peer.filter(|_| is_peer);
            assert_eq!(wish.peer_of(&address), expected, "{own}/{prefix} {other}");
        }
    }

    #[test]
    fn the_kernel_cuts_the_name_of_a_childs_parent() {
        assert_eq!(child_name("ib0", 1), "ib0.8001");
        assert_eq!(child_name("ibp193s0f0np0", 0x8001), "ibp193s0f0.8001");
    }
}
