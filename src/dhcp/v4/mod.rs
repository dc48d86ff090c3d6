// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCPv4 (RFC 2131), over InfiniBand (RFC 4390) and Ethernet. [`packet`], [`frame`], [`arp`],
//! [`lease`], [`identity`], [`progress`] and [`client`] are PURE; [`session`] and [`socket`] send
//! and receive.

pub mod answer;
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

use crate::dhcp::identity::RequestedId;

/// The requested settings of DHCP on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dhcp4Wish {
    /// Option 61.
    pub client_id: RequestedId,
    /// Option 60 (`rd.net.dhcp.vendor-class=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_class: Option<String>,
    /// Option 12, the host name field of `ip=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
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
    /// Ignore the server's MTU: the command line sets the MTU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_mtu: bool,
    /// The interface is the boot device: its default route precedes those of other interfaces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub boot: bool,
}

impl Dhcp4Wish {
    /// Whether a client sends the same options for both, except option 61, which depends on the
    /// hardware. A server may grant another lease to other options.
    pub fn sends_same(&self, other: &Dhcp4Wish) -> bool {
        (&self.vendor_class, &self.host_name) == (&other.vendor_class, &other.host_name)
    }
}
