// SPDX-License-Identifier: MIT OR Apache-2.0
//! A setting of one network interface that is made by rtnetlink.

use std::fmt;
use std::net::IpAddr;

use crate::error::Error;
use crate::inet::{Address, Route};
use crate::system::net::Net;
use crate::wish::bond::MODE;

/// What becomes of another route to the same network: the kernel has one route to a network with the
/// same metric, unless a second one is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// Replaced.
    Replaced,
    /// Kept, and used before this one; over IPv6 both are used.
    Kept,
    /// Kept, and used after this one: a default route of the boot device. Over IPv6 the metric decides,
    /// so this also holds for routes that are set later.
    Outranked,
}

/// A setting of a network interface, by rtnetlink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// Rename the interface.
    Rename(String),
    /// Set administratively up.
    Up,
    /// Set administratively down: a bond before its mode is set, a slave before it joins its bond.
    Down,
    /// Create the bond of this name.
    MakeBond,
    /// Add the interface to a bond.
    Enslave {
        /// Name of the bond.
        bond: String,
        /// Interface index of the bond.
        index: u32,
    },
    /// Set the MTU in bytes.
    Mtu(u32),
    /// Add an address, on a point-to-point link with the peer's address.
    AddAddress(Address, Option<IpAddr>),
    /// Add an IPv6 address as deprecated, or deprecate it (RFC 4862 5.5.4): the kernel uses it for no
    /// new connection while there is another one.
    AddDeprecated(Address),
    RemoveAddress(Address),
    /// Add a route; a route to 0.0.0.0/0 or ::/0 through a gateway is a default gateway.
    AddRoute(Route, Rival),
    RemoveRoute(Route),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Rename(name) => write!(f, "rename to {name}"),
            Setting::Up => f.write_str("bring up"),
            Setting::Down => f.write_str("set down"),
            Setting::MakeBond => write!(f, "create the bond, mode {MODE}"),
            Setting::Enslave { bond, .. } => write!(f, "add to {bond}"),
            Setting::Mtu(bytes) => write!(f, "set MTU {bytes}"),
            Setting::AddAddress(address, None) => write!(f, "set address {address}"),
            Setting::AddAddress(address, Some(peer)) => {
                write!(f, "set address {address}, peer {peer}")
            }
            Setting::AddDeprecated(address) => write!(f, "set address {address}, deprecated"),
            Setting::RemoveAddress(address) => write!(f, "remove address {address}"),
            Setting::AddRoute(route, _) => write!(f, "set {}", route_text(route)),
            Setting::RemoveRoute(route) => write!(f, "remove {}", route_text(route)),
        }
    }
}

/// Text of a route; a default route through a gateway is called default gateway.
pub fn route_text(route: &Route) -> String {
    match route.gateway {
        Some(gateway) if route.network.prefix == 0 => format!("default gateway {gateway}"),
        _ => format!("route {route}"),
    }
}

impl Setting {
    /// Applies the setting to the interface `name` with this index. [`Error::found`] is the
    /// kernel's answer.
    pub async fn apply(&self, name: &str, index: Option<u32>, net: &Net) -> Result<(), Error> {
        let index = match (index, self) {
            (Some(index), _) => index,
            // The bond gets its index now.
            (None, Setting::MakeBond) => 0,
            (None, _) => return Err(self.refused(name).found("the interface has no index")),
        };
        let set = match self {
            Setting::Up => net.set_up(index).await,
            Setting::Rename(name) => net.rename(index, name).await,
            Setting::Down => net.set_down(index).await,
            Setting::MakeBond => net.add_bond(name).await,
            Setting::Enslave { index: bond, .. } => net.enslave(index, *bond).await,
            Setting::Mtu(bytes) => net.set_mtu(index, *bytes).await,
            Setting::AddAddress(own, peer) => {
                net.add_address(index, own.address, own.prefix, *peer).await
            }
            Setting::AddDeprecated(own) => net.add_deprecated(index, own.address, own.prefix).await,
            Setting::RemoveAddress(own) => {
                net.delete_address(index, own.address, Some(own.prefix))
                    .await
            }
            Setting::AddRoute(route, Rival::Replaced) => net.add_route(index, route).await,
            Setting::AddRoute(route, Rival::Kept) => net.append_route(index, route).await,
            Setting::AddRoute(route, Rival::Outranked) => net.prepend_route(index, route).await,
            Setting::RemoveRoute(route) => net.delete_route(index, route).await,
        };
        set.map_err(|why| self.refused(name).found(why))
    }

    /// The error for a setting that the kernel refuses.
    fn refused(&self, name: &str) -> Error {
        let error = |what: String| Error::new(name, what);
        match self {
            Setting::Rename(to) => error(format!("cannot be renamed to {to}")).hint(
                "kernels before 6.2 rename an interface only while it is down: do not load ib_ipoib before ibboot does",
            ),
            Setting::MakeBond => error("bond cannot be created".to_owned()),
            Setting::Up => error("cannot be brought up".to_owned()),
            Setting::Down => error("cannot be set down".to_owned()).hint("see dmesg"),
            Setting::Enslave { bond, .. } => {
                error(format!("cannot be added to {bond}")).hint("see dmesg")
            }
            Setting::Mtu(bytes) => error(format!("MTU {bytes} is refused")),
            Setting::AddAddress(address, _) | Setting::AddDeprecated(address) => {
                error(format!("address {address} cannot be set"))
            }
            Setting::AddRoute(route, _) => error(format!("{} cannot be set", route_text(route))),
            other => error(format!("cannot {other}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_before_6_2_does_not_rename_an_interface_that_is_up() {
        let refused = Setting::Rename("ib7".to_owned()).refused("ib0");
        assert_eq!(
            refused.found("Device or resource busy").to_string(),
            "ib0: cannot be renamed to ib7: Device or resource busy; kernels before 6.2 rename an \
             interface only while it is down: do not load ib_ipoib before ibboot does"
        );
    }

    #[test]
    fn the_default_route_over_a_gateway_is_called_default_gateway() {
        let route = |network: &str, prefix, gateway: Option<&str>| Route {
            network: Address {
                address: network.parse().unwrap(),
                prefix,
            },
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        };
        let default = route("::", 0, Some("fd00::1"));
        assert_eq!(route_text(&default), "default gateway fd00::1");
        let direct = route("::", 0, None);
        assert_eq!(route_text(&direct), "route ::/0");
        let other = route("10.9.0.0", 16, Some("10.0.0.1"));
        assert_eq!(route_text(&other), "route 10.9.0.0/16 via 10.0.0.1");
    }
}
