// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCPv6 (RFC 8415): one address for one interface, requested from the interface's link-local
//! address. The messages are ordinary UDP, so InfiniBand differs from Ethernet only in the DUID. If
//! routers give the addresses, only name servers are requested ([`information`]). [`packet`],
//! [`identity`], [`lease`], [`client`], [`information`] and [`progress`] are PURE; [`session`],
//! [`inquiry`] and [`socket`] send and receive.

pub mod answer;
pub mod client;
pub mod identity;
pub mod information;
pub mod inquiry;
pub mod lease;
pub mod packet;
pub mod progress;
pub mod session;
pub mod socket;

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use crate::dhcp::identity::RequestedId;

/// UDP port of clients (RFC 8415 7.2).
pub const CLIENT_PORT: u16 = 546;
/// UDP port of servers and relays.
pub const SERVER_PORT: u16 = 547;
/// All servers and relays of a link (RFC 8415 7.1).
pub const SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

/// The requested settings of DHCPv6 on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dhcp6Wish {
    /// The client identifier: bytes of RFC 4361 contain a DUID; any other value means the DUID of
    /// the hardware.
    pub client_id: RequestedId,
    /// Longest duration of one try in seconds (`rd.net.timeout.dhcp=`); none: until the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u32>,
    /// Number of tries (`rd.net.dhcp.retry=`), if a try has a limit.
    pub tries: u32,
    /// The root file system is on the network: the address is never given up.
    pub keep: bool,
    /// Ignore the server's name servers (`rd.peerdns=0`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_dns: bool,
    /// `either6`: only if a router requests it (M flag), or gives no address for this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_router_s: Option<u32>,
    /// As in [`crate::dhcp::v4::Dhcp4Wish`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub boot: bool,
}
