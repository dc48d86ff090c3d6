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
