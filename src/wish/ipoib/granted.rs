// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a DHCP server grants and what it only suggests. The address is granted. An MTU, a
//! host name, routes and name servers are suggestions: ibboot tries to set them, and nothing
//! depends on them.

use std::net::{IpAddr, Ipv4Addr};

use crate::dhcp::v4::lease::Lease;
use crate::inet::{Address, Route};
use crate::wish::ipoib::{Autoconf, IpoibWish};

/// What a server suggests, if the command line requests nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suggested {
    /// The server; none if there is no lease.
    pub by: Option<Ipv4Addr>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Default gateway.
    pub gateway: Option<IpAddr>,
    /// Routes other than the default one, in the order in which they are set.
    pub routes: Vec<Route>,
}

impl Suggested {
    /// ` suggested by 10.0.0.1`.
    pub fn by_whom(&self) -> String {
        self.by
            .map_or_else(String::new, |server| format!(" suggested by {server}"))
    }
}

impl IpoibWish {
    /// The wish plus what a DHCP server granted. The command line precedes the suggestions of the
    /// server.
    pub fn granted(&self, lease: &Lease) -> IpoibWish {
        let mut wish = self.clone();
        let own = lease.interface_address();
        wish.addresses.push(own);
        wish.leased = Some(lease.address);
        let has_gateway = self.gateways.iter().any(IpAddr::is_ipv4);
        let gateway = lease.gateway().filter(|_| !has_gateway).map(IpAddr::from);
        let is_requested = |route: &Route| {
            let mut requested = self.routes.iter();
            requested.any(|requested| requested.network == route.network)
        };
        let granted = lease.routes().into_iter().filter(|route| route.prefix > 0);
        let granted: Vec<Route> = granted
            .map(Route::from)
            .filter(|route| !is_requested(route))
            .collect();
        let routes = neighbours(&[own], &granted, gateway);
        let (direct, others): (Vec<Route>, Vec<Route>) = granted
            .iter()
            .copied()
            .partition(|route| route.gateway.is_none());
        wish.suggested = Suggested {
            by: Some(lease.server),
            mtu: lease.mtu.map(u32::from).filter(|_| self.mtu.is_none()),
            gateway,
            routes: routes.into_iter().chain(direct).chain(others).collect(),
        };
        if !self.dhcp.as_ref().is_some_and(|dhcp| dhcp.ignore_dns) {
            let servers = lease.name_servers.iter().copied();
            wish.dns.extend(servers.map(IpAddr::from));
            wish.domains.extend(lease.domains());
        }
        wish.hostname = wish.hostname.or_else(|| lease.host_name.clone());
        wish
    }

    /// Adds routes to the requested next hops of a family whose addresses are single hosts
    /// (`ip=10.0.0.5::10.9.0.1:32::ib0:none`), as NetworkManager does.
    pub fn add_neighbours(&mut self) {
        for is_v6 in [false, true] {
            let own = self.addresses.iter().copied();
            let own: Vec<Address> = own.filter(|own| own.address.is_ipv6() == is_v6).collect();
            if own.is_empty() || own.iter().any(|own| *own != Address::host(own.address)) {
                continue;
            }
            let of_family = |hop: &IpAddr| hop.is_ipv6() == is_v6;
            let routes = self.routes.iter().copied();
            let routes: Vec<Route> = routes
                .filter(|route| of_family(&route.network.address))
                .collect();
            let gateways = self.gateways.iter().copied().filter(of_family);
            let mut neighbours = neighbours(&own, &routes, gateways);
            neighbours.retain(|route| Some(route.network.address) != self.peer);
            neighbours.retain(|route| !Autoconf::LinkLocal.is_met_by(route.network.address));
            self.routes.splice(..0, neighbours);
        }
    }

    /// The routes to set, the requested ones first: a gateway may be reachable only by one of the
    /// others.
    pub fn all_routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().chain(&self.suggested.routes)
    }

    /// The default gateways to set.
    pub fn all_gateways(&self) -> impl Iterator<Item = &IpAddr> {
        self.gateways.iter().chain(&self.suggested.gateway)
    }
}

/// Routes to the next hops that neither the addresses nor a route without a next hop reach: if an
/// address is a single host, the next hops are neighbours nevertheless.
fn neighbours(
    own: &[Address],
    routes: &[Route],
    gateways: impl IntoIterator<Item = IpAddr>,
) -> Vec<Route> {
    let on_link = |hop: &IpAddr| {
        let mut direct = routes.iter().filter(|route| route.gateway.is_none());
        own.iter().any(|own| own.reaches(*hop)) || direct.any(|route| route.network.reaches(*hop))
    };
    let hops = routes.iter().filter_map(|route| route.gateway);
    let mut neighbours: Vec<IpAddr> = hops.chain(gateways).collect();
    neighbours.retain(|hop| !on_link(hop));
    neighbours.dedup();
    let route = |address: IpAddr| Route {
        network: Address::host(address),
        gateway: None,
    };
    neighbours.into_iter().map(route).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wish::ipoib::RequestedMtu;

    fn lease(json: &str) -> Lease {
        let common =
            r#""server":"10.0.0.1","requested_ns":0,"seconds":60,"renew_s":30,"rebind_s":50"#;
        serde_json::from_str(&format!("{{{json},{common}}}")).unwrap()
    }

    fn texts(routes: &[Route]) -> Vec<String> {
        routes.iter().map(Route::to_string).collect()
    }

    #[test]
    fn the_address_is_expected_and_the_rest_is_suggested() {
        let granted = IpoibWish::default().granted(&lease(
            r#""address":"10.0.0.5","prefix":24,"mtu":1500,"host_name":"other","routers":["10.0.0.1"]"#,
        ));
        assert_eq!(granted.addresses[0].to_string(), "10.0.0.5/24");
        assert_eq!((granted.mtu, granted.gateways.len()), (None, 0));
        let suggested = Suggested {
            by: Some(Ipv4Addr::new(10, 0, 0, 1)),
            mtu: Some(1500),
            gateway: Some("10.0.0.1".parse().unwrap()),
            routes: Vec::new(),
        };
        assert_eq!(granted.suggested, suggested);
        assert_eq!(granted.hostname.as_deref(), Some("other"));
        // A host address: the gateway and the next hop become neighbours first.
        let granted = IpoibWish::default().granted(&lease(
            r#""address":"10.0.0.5","prefix":32,
               "classless_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.9.0.1"},
                                   {"network":"10.9.0.0","prefix":24,"gateway":"0.0.0.0"},
                                   {"network":"0.0.0.0","prefix":0,"gateway":"10.0.0.1"}]"#,
        ));
        assert_eq!(
            texts(&granted.suggested.routes),
            ["10.0.0.1/32", "10.9.0.0/24", "10.7.0.0/16 via 10.9.0.1"]
        );
        assert_eq!(granted.routes, []);
    }

    #[test]
    fn requests_of_the_command_line_precede_suggestions_of_a_server() {
        let route = Route {
            network: Address {
                address: "10.7.0.0".parse().unwrap(),
                prefix: 16,
            },
            gateway: Some("10.0.0.7".parse().unwrap()),
        };
        let written = IpoibWish {
            mtu: Some(RequestedMtu::Max),
            hostname: Some("node5".to_owned()),
            gateways: vec!["10.0.0.254".parse().unwrap()],
            routes: vec![route],
            ..IpoibWish::default()
        };
        let granted = written.granted(&lease(
            r#""address":"10.0.0.5","prefix":24,"mtu":1500,"host_name":"other",
               "classless_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.9"},
                                   {"network":"10.8.0.0","prefix":16,"gateway":"10.0.0.9"},
                                   {"network":"0.0.0.0","prefix":0,"gateway":"10.0.0.1"}]"#,
        ));
        assert_eq!(granted.mtu, Some(RequestedMtu::Max));
        assert_eq!(granted.hostname.as_deref(), Some("node5"));
        assert_eq!(
            (&granted.gateways, &granted.routes),
            (&written.gateways, &written.routes)
        );
        let suggested = &granted.suggested;
        assert_eq!((suggested.mtu, suggested.gateway), (None, None));
        assert_eq!(texts(&suggested.routes), ["10.8.0.0/16 via 10.0.0.9"]);
    }
}
