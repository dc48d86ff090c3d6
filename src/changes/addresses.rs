// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: addresses, routes and gateways of an interface with carrier.

use std::net::{IpAddr, Ipv4Addr};

use super::{Claim, Draft, Need, Rival, Setting, What};
use crate::error::Error;
use crate::facts::{AddressState, Netdev};
use crate::inet::{Address, Route};
use crate::wish::ipoib::{Autoconf, IpoibWish};

impl Draft<'_> {
    /// Addresses first, then the routes that depend on them, then the gateways, which may depend on
    /// a route.
    pub(super) fn addresses(&mut self, wish: &IpoibWish, netdev: &Netdev) {
        for address in &wish.addresses {
            // The DHCP client probes its address itself.
            let static4 = match address.address {
                IpAddr::V4(v4) if wish.leased != Some(v4) => Some(v4),
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
                    self.add_address(wish, netdev, *address);
                }
            }
        }
        let routes = wish.routes.iter().filter(|route| !netdev.has_route(route));
        let gateways = wish.gateways.iter().copied();
        let gateways = gateways.filter(|gateway| !netdev.has_lasting_gateway(*gateway));
        let gateways = gateways.map(Route::default_through);
        for route in routes.copied().chain(gateways) {
            if !is_awaiting_hop(wish, netdev, &route) {
                self.requested_route(wish, netdev, route);
            }
        }
        let suggested = &wish.suggested;
        let routes = suggested.routes.iter();
        let routes = routes.filter(|route| !netdev.has_route(route));
        let is_missing = |gateway: &&IpAddr| !netdev.gateways.contains(gateway);
        let gateway = suggested.gateway.iter().filter(is_missing);
        let gateway = gateway.copied().map(Route::default_through);
        for route in routes.copied().chain(gateway) {
            let need = Need::Suggested(suggested.by);
            self.on(netdev, need, self.add_route(wish, netdev, route));
        }
    }

    fn add_address(&mut self, wish: &IpoibWish, netdev: &Netdev, address: Address) {
        // The kernel accepts no IPv6 address twice: a request with another prefix length succeeds and
        // changes nothing (inet6_rtm_newaddr of net/ipv6/addrconf.c).
        let shown = match address.address {
            IpAddr::V6(v6) => netdev.shown6(v6),
            IpAddr::V4(_) => None,
        };
        if let Some(shown) = shown {
            let what = format!("address {address} cannot be set");
            let error = Error::new(&netdev.ifname, what)
                .found(format!("the interface has {shown}"))
                .hint("an interface has an IPv6 address once: remove one of the two");
            return self.refuse(netdev, error);
        }
        let setting = if wish.deprecated.map(IpAddr::V6) == Some(address.address) {
            Setting::AddDeprecated(address)
        } else {
            Setting::AddAddress(address, wish.peer_of(&address))
        };
        self.set(netdev, setting);
    }

    fn requested_route(&mut self, wish: &IpoibWish, netdev: &Netdev, route: Route) {
        // The route of a router's advertisement gives way: beside it the kernel keeps no second route
        // through this gateway.
        if netdev.has_route(&route) {
            self.set(netdev, Setting::RemoveRoute(route));
        }
        self.on(netdev, Need::Requested, self.add_route(wish, netdev, route));
    }

    /// The change that adds a route. Two InfiniBand interfaces may have a route to the same network, as
    /// two rails have a gateway each, and so may one interface with two requested gateways; any other
    /// route is replaced.
    fn add_route(&self, wish: &IpoibWish, netdev: &Netdev, route: Route) -> What {
        let is_rival = |other: &Netdev| {
            other.ifindex != netdev.ifindex && other.is_infiniband() && other.leads_to(&route)
        };
        let is_second =
            |own: Route| own != route && own.network == route.network && netdev.has_route(&own);
        let to_come = |is_own: bool| {
            let mut changes = self.changes.iter();
            changes.any(|change| match &change.what {
                What::Set(Setting::AddRoute(other, _)) => {
                    (change.index == netdev.ifindex) == is_own
                        && other.network == route.network
                        && !(is_own && *other == route)
                }
                _ => false,
            })
        };
        let defaults = wish.all_gateways().copied().map(Route::default_through);
        let mut own = wish.all_routes().copied().chain(defaults);
        let has_own = own.any(is_second) || to_come(true);
        let has_rival = self.facts.netdevs.iter().any(is_rival) || to_come(false);
        let is_of_boot = wish.boot && route.network.prefix == 0;
        let is_v6 = route.network.address.is_ipv6();
        let rival = if is_of_boot && (is_v6 || (has_rival && !has_own)) {
            Rival::Outranked
        } else if has_rival || has_own {
            Rival::Kept
        } else {
            Rival::Replaced
        };
        What::Set(Setting::AddRoute(route, rival))
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

/// Whether a server or a router has yet to give the address or the route that leads to the next hop of
/// the route: until then the kernel refuses the route.
fn is_awaiting_hop(wish: &IpoibWish, netdev: &Netdev, route: &Route) -> bool {
    let Some(hop) = route.gateway else {
        return false;
    };
    let is_awaited = match hop {
        IpAddr::V4(_) => wish.dhcp.is_some() && wish.leased.is_none(),
        IpAddr::V6(_) => wish.kernel_autoconf() == Some(Autoconf::Router),
    };
    is_awaited && !wish.reaches(hop) && !netdev.reaches(hop)
}
