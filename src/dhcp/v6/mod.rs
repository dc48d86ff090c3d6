// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCPv6 (RFC 8415): one address for one interface, asked for from its link-local address. The
//! messages are UDP like any other, so that InfiniBand differs from Ethernet in the DUID alone.
//! Or, where routers give the addresses, nothing but name servers ([`information`]). [`packet`],
//! [`identity`], [`lease`], [`client`], [`information`] and [`progress`] are PURE; [`session`],
//! [`inquiry`] and [`socket`] send and receive.

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

use crate::dhcp::identity::WantedId;

/// UDP port of clients (RFC 8415 7.2).
pub const CLIENT_PORT: u16 = 546;
/// UDP port of servers and relays.
pub const SERVER_PORT: u16 = 547;
/// All servers and relays of a link (RFC 8415 7.1).
pub const SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

/// What is wanted of DHCPv6 on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Who asks: bytes of RFC 4361 hold a DUID, anything else means the one of the hardware.
    pub client_id: WantedId,
    /// Seconds that one try takes at most (`rd.net.timeout.dhcp=`); none: until the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u32>,
    /// How many tries (`rd.net.dhcp.retry=`), where a try has an end.
    pub tries: u32,
    /// The root file system comes over the network: the address is never given up.
    pub keep: bool,
    /// The server's name servers are not used (`rd.peerdns=0`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_dns: bool,
    /// `either6`: only where a router says so (its M flag), or gave no address for so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_router_s: Option<u32>,
}
