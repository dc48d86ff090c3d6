// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCPv4 (RFC 2131), over InfiniBand (RFC 4390) and Ethernet. [`packet`], [`frame`], [`arp`],
//! [`lease`], [`identity`] and [`client`] are PURE; [`socket`] sends and receives.

pub mod arp;
pub mod client;
pub mod frame;
pub mod identity;
pub mod lease;
pub mod packet;
pub mod progress;
pub mod session;
pub mod socket;
