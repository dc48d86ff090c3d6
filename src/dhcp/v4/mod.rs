// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCPv4 (RFC 2131), over InfiniBand (RFC 4390) and Ethernet. [`packet`], [`frame`], [`arp`],
//! [`lease`], [`identity`], [`progress`] and [`client`] are PURE; [`session`] and [`socket`] send and
//! receive.

pub mod arp;
pub mod client;
pub mod frame;
pub mod identity;
pub mod lease;
pub mod packet;
pub mod progress;
pub mod session;
pub mod socket;

use serde::{Deserialize, Serialize};

use crate::dhcp::identity::WantedId;

/// What is wanted of DHCP on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Option 61.
    pub client_id: WantedId,
    /// Option 60 (`rd.net.dhcp.vendor-class=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_class: Option<String>,
    /// Option 12, the host name field of `ip=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
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
    /// The command line says the MTU; the server's does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_mtu: bool,
}
