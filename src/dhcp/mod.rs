// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCP over InfiniBand and Ethernet. The state machines and codecs of the two families are [`v4`]
//! (RFC 2131, RFC 4390) and [`v6`] (RFC 8415). Both share [`identity`], [`names`], [`lifetime`],
//! [`progress`], [`brake`] and [`conduct`], which are PURE, [`random`], whose seed is from the clock,
//! [`hardware`], which reads sysfs, and [`traffic`], which reads sockets.

pub mod brake;
mod conduct;
pub mod hardware;
pub mod identity;
pub mod lifetime;
pub(crate) mod names;
pub mod progress;
mod random;
mod traffic;
pub mod v4;
pub mod v6;

use std::net::IpAddr;

use crate::inet::Address;

/// Defines the types of messages, each with its number and its name in the RFC.
macro_rules! message_kinds {
    ($(#[$meta:meta])* $kind:ident {
        $($(#[$doc:meta])* $variant:ident = $number:literal $name:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[repr(u8)]
        pub enum $kind {
            $($(#[$doc])* $variant = $number,)+
        }

        impl $kind {
            fn of_number(number: u8) -> Option<$kind> {
                match number {
                    $($number => Some($kind::$variant),)+
                    _ => None,
                }
            }

            /// The number in the message.
            pub fn number(self) -> u8 {
                self as u8
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self {
                    $($kind::$variant => $name,)+
                })
            }
        }
    };
}
use message_kinds;

/// What a client did; the caller acts on the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A lease was granted or renewed.
    Bound,
    /// The probes ended, and no other host has the address.
    Unopposed,
    /// Remove this address.
    Lost(IpAddr),
}

/// The part of a lease that both families share: an address for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The address with its prefix.
    pub address: Address,
    /// The server that granted the address, or the relay of the answer.
    pub server: IpAddr,
    /// When the client asks any server (T2), ns since kernel start; `None`: never.
    pub rebinds_ns: Option<u64>,
    /// When the lease ends, ns since kernel start; `None`: never.
    pub ends_ns: Option<u64>,
    /// The length of the lease: `for 600 s`.
    pub length: String,
    /// The address is for no new connection while there is another one (IPv6).
    pub is_deprecated: bool,
}
