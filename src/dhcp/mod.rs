// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCP over InfiniBand and Ethernet. The state machines and codecs of the two families are
//! [`v4`] (RFC 2131, RFC 4390) and [`v6`] (RFC 8415). What both share is here: [`identity`],
//! [`names`], [`lifetime`], [`progress`], [`brake`] and [`random`], which are PURE, and [`hardware`], which reads.

pub mod brake;
pub mod hardware;
pub mod identity;
pub mod lifetime;
mod names;
pub mod progress;
mod random;
pub mod v4;
pub mod v6;

use std::net::IpAddr;

use crate::inet::Address;

/// What every lease is, of either family: an address for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The address with its prefix.
    pub address: Address,
    /// Who granted it, or relayed the answer.
    pub server: IpAddr,
    /// When it ends, ns since kernel start; `None`: never.
    pub ends_ns: Option<u64>,
    /// How long it holds: `for 600 s`.
    pub length: String,
}
