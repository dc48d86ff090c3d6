// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: addresses, routes and gateways of an interface with carrier.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Claim, Draft, Need, Setting, What};
use crate::facts::{AddressState, Netdev};
use crate::inet::{Address, Route};
use crate::wish::ipoib::IpoibWish;

impl Draft<'_> {
    /// Addresses first, then the routes that depend on them, then the gateways, which may depend on
    /// a route.
    pub(super) fn addresses(&mut self, wish: &IpoibWish, netdev: &Netdev) {
        for address in &wish.addresses {
            // The DHCP client probes its address itself.
            let static4 = match address.address {
                IpAddr::V4(v4) if wish.dhcp.is_none() => Some(v4),
                _ => None,
            };
            match netdev.state_of(address) {
                Some(AddressState::Duplicate) => {}
                Some(AddressState::Usable | AddressState::Tentative) => {
                    if let Some(v4) = static4 {
                        self.claimed(netdev, *address, v4);
                    }
                }
                None => {
                    if let Some(v4) = static4 {
                        self.on(netdev, Need::Requested, What::Claim(v4));
                    }
                    let peer = wish.peer_of(address);
                    self.set(netdev, Setting::AddAddress(*address, peer));
                }
            }
        }
        let is_missing = |gateway: &&IpAddr| !netdev.gateways.contains(gateway);
        let routes = wish.routes.iter().filter(|route| !netdev.has_route(route));
        let gateways = wish.gateways.iter().filter(is_missing).map(default_route);
        for route in routes.copied().chain(gateways) {
            self.set(netdev, Setting::AddRoute(route));
        }
        let suggested = &wish.suggested;
        let routes = suggested.routes.iter();
        let routes = routes.filter(|route| !netdev.has_route(route));
        let gateway = suggested.gateway.iter().filter(is_missing);
        for route in routes.copied().chain(gateway.map(default_route)) {
            let need = Need::Suggested(suggested.by);
            self.on(netdev, need, What::Set(Setting::AddRoute(route)));
        }
    }

    /// Adds the change for an address, depending on the result of the ARP probe.
    fn claimed(&mut self, netdev: &Netdev, address: Address, v4: Ipv4Addr) {
        let key = netdev.ifindex.map(|index| (index, v4));
        let what = match key.and_then(|key| self.ground.claims.get(&key)) {
            Some(Claim::Open) => What::Claim(v4),
            Some(Claim::Taken(owner)) => What::Yield {
                address,
                owner: owner.clone(),
            },
            None => return,
        };
        self.on(netdev, Need::Requested, what);
    }
}

/// The default route through a gateway.
fn default_route(gateway: &IpAddr) -> Route {
    let address = match gateway {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Route {
        network: Address { address, prefix: 0 },
        gateway: Some(*gateway),
    }
}
