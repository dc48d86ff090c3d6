// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what stays of a lease because the root file system depends on it: the address, a prefix, and
//! the routes to the servers.

use std::net::IpAddr;

use crate::facts::Netdev;
use crate::inet::{Address, Route};

/// The servers of the root file system; none: the servers are not known.
pub type Servers = Option<Vec<IpAddr>>;

/// Whether a lease must stay in any case. `is_requested`: the command line has a root file system on
/// the network. Without that argument the mount may show one, as with iSCSI of the firmware's table.
/// `may_carry`: whether these servers may be reached over the lease.
pub fn must_stay(
    is_requested: bool,
    servers: &Servers,
    mounted: &[IpAddr],
    may_carry: impl Fn(&Servers) -> bool,
) -> bool {
    let is_mounted = !mounted.is_empty() && may_carry(&Some(mounted.to_vec()));
    is_mounted || (is_requested && may_carry(servers))
}

/// Whether the root file system may be reached from the address `own` over these routes.
pub fn may_carry(own: Address, routes: &[Route], servers: &Servers) -> bool {
    let is_reached = |server: &IpAddr| {
        own.reaches(*server) || routes.iter().any(|route| route.network.reaches(*server))
    };
    servers
        .as_ref()
        .is_none_or(|servers| servers.iter().any(is_reached))
}

/// The routes of `all` that the root file system depends on.
pub fn needed(all: &[Route], own: Address, servers: &Servers) -> Vec<Route> {
    kept(all, &[], own, servers, all)
}

/// What stays of the lease before, because the root file system depends on it.
#[derive(Debug, Default)]
pub struct Stay {
    /// Routes that the new lease does not have.
    pub routes: Vec<Route>,
    /// The address with old prefixes, beside the one with the new prefix.
    pub addresses: Vec<Address>,
    /// The address with old prefixes that do not stay.
    pub past: Vec<Address>,
    /// The address with the new prefix, which is not set: see [`cuts_off`].
    pub unset: Option<Address>,
}

impl Stay {
    /// What stays if an address is renewed as `new` that was on the interface as `old`, with the routes
    /// `has` instead of `had`. For `first` and `first_prefix` see [`kept`] and [`old_prefix_stays`].
    pub fn of(
        had: &[Route],
        has: &[Route],
        old: &[Address],
        new: Address,
        servers: &Servers,
        first: &[Route],
        first_prefix: u8,
    ) -> Stay {
        let routes = kept(had, has, new, servers, first);
        let all = [has, &routes].concat();
        let stays = |old: &Address| old_prefix_stays(*old, new, servers, &all, first_prefix);
        let old = old.iter().copied().filter(|old| *old != new);
        let (addresses, past) = old.partition(stays);
        Stay {
            routes,
            addresses,
            past,
            unset: None,
        }
    }
}

/// Whether the network of `new` takes a server of the root file system from a route of `had` that leads
/// to the server from `old`: the kernel would look for the server on the link. If the servers are
/// not known, each of these routes may lead to one.
pub fn cuts_off(old: Address, new: Address, had: &[Route], servers: &Servers) -> bool {
    let Some(servers) = servers else {
        let meets = |route: &Route| {
            let network = route.network;
            network.reaches(new.address) || new.reaches(network.address)
        };
        return new.prefix < old.prefix && had.iter().any(meets);
    };
    let is_cut = |server: &IpAddr| {
        new.reaches(*server) && had.iter().any(|route| leads(route, *server, old))
    };
    servers.iter().any(is_cut)
}

/// Whether a server of the root file system is on the network of `old`, and nothing in `has` leads to
/// the server from `new`. If the servers are not known, a larger network stays that the initramfs
/// handed over, with `first_prefix`.
pub fn old_prefix_stays(
    old: Address,
    new: Address,
    servers: &Servers,
    has: &[Route],
    first_prefix: u8,
) -> bool {
    let Some(servers) = servers else {
        return old.prefix < new.prefix && old.prefix == first_prefix;
    };
    let is_lost = |server: &IpAddr| {
        let mut has = has.iter();
        old.reaches(*server)
            && !new.reaches(*server)
            && !has.any(|route| leads(route, *server, new))
    };
    servers.iter().any(is_lost)
}

/// The routes of `had` that are not in `has` and must stay: the root file system depends on them
/// and no other route reaches the same destination. `first` are the routes that the initramfs
/// handed over; if the servers are not known, only these can stay.
pub fn kept(
    had: &[Route],
    has: &[Route],
    own: Address,
    servers: &Servers,
    first: &[Route],
) -> Vec<Route> {
    let Some(servers) = servers else {
        let is_replaced = |route: &Route| has.iter().any(|other| other.network == route.network);
        let old = gone(had, has).filter(|route| first.contains(route));
        return old.filter(|route| !is_replaced(route)).collect();
    };
    let mut kept: Vec<Route> = Vec::new();
    let mut ends = servers.clone();
    // A next hop is a destination too: another route may have to reach the next hop.
    while let Some(end) = ends.pop() {
        let leads = |route: &Route| leads(route, end, own);
        if has.iter().any(leads) || kept.iter().any(leads) {
            continue;
        }
        let old = gone(had, has).filter(leads);
        if let Some(best) = old.max_by_key(|route| route.network.prefix) {
            kept.push(best);
            ends.extend(best.gateway);
        }
    }
    kept
}

/// The routes of `gone` that stay after all, because the kernel refused the new routes `refused`: a
/// route to the same network as a refused one, and the routes that the root file system depends on
/// without the refused ones. `expected` are the routes that are on the interface or were added.
pub fn spared(
    gone: &[Route],
    refused: &[Route],
    expected: &[Route],
    own: Address,
    servers: &Servers,
    netdev: &Netdev,
) -> Vec<Route> {
    if refused.is_empty() {
        return Vec::new();
    }
    let here = gone.iter().filter(|route| netdev.has_route(route));
    let here: Vec<Route> = here.copied().collect();
    let set = expected.iter().filter(|route| !refused.contains(route));
    let set: Vec<Route> = set.copied().collect();
    let is_to = |old: &Route, routes: &[Route]| routes.iter().any(|new| new.network == old.network);
    let is_replaced = |old: &&Route| is_to(old, refused) && !is_to(old, &set);
    let mut spared: Vec<Route> = here.iter().filter(is_replaced).copied().collect();
    if servers.is_some() {
        let has = [&set[..], &spared].concat();
        spared.extend(kept(&here, &has, own, servers, &[]));
    }
    spared
}

/// Whether a node with the address `own` reaches `server` over `route`.
fn leads(route: &Route, server: IpAddr, own: Address) -> bool {
    !own.reaches(server) && route.network.reaches(server)
}

/// The routes of `had` that are not in `has`.
pub fn gone(had: &[Route], has: &[Route]) -> impl Iterator<Item = Route> {
    had.iter().filter(|route| !has.contains(route)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::tests::netdev;

    #[test]
    fn an_address_is_kept_only_if_the_root_file_system_may_depend_on_it() {
        let own = "10.0.0.5/24".parse().unwrap();
        let default = [Route::default_through("10.0.0.1".parse().unwrap())];
        let may = |servers: &[&str], routes: &[Route]| {
            let servers = servers.iter().map(|server| server.parse().unwrap());
            may_carry(own, routes, &Some(servers.collect()))
        };
        assert!(may_carry(own, &[], &None));
        assert!(may(&["10.0.0.2"], &[]) && may(&["10.9.0.2"], &default));
        assert!(!may(&["10.9.0.2"], &[]) && !may(&["fd00::2"], &default));
        assert!(may(&["10.9.0.2", "10.0.0.2"], &[]));
    }

    #[test]
    fn a_larger_network_that_has_the_server_behind_a_router_cuts_the_server_off() {
        let old = "10.9.0.5/24".parse().unwrap();
        let to = |network: &str| Route {
            network: network.parse().unwrap(),
            gateway: "10.9.0.1".parse().ok(),
        };
        let (default, way) = (to("0.0.0.0/0"), to("10.77.0.0/16"));
        let at = |server: &str| Some(vec![server.parse().unwrap()]);
        for (new, had, servers, expected) in [
            ("10.9.0.5/8", default, at("10.77.1.1"), true),
            ("10.9.0.5/8", way, at("10.77.1.1"), true),
            ("10.9.0.5/8", way, at("10.78.1.1"), false),
            ("10.9.0.5/16", default, at("10.77.1.1"), false),
            ("10.9.0.5/8", default, at("10.9.0.2"), false),
            ("10.9.0.5/25", default, at("10.9.0.200"), false),
            ("10.9.0.5/8", default, None, true),
            ("10.9.0.5/8", way, None, true),
            ("10.9.0.5/16", way, None, false),
            ("10.9.0.5/25", default, None, false),
            ("10.9.0.6/24", default, None, false),
        ] {
            let new = new.parse().unwrap();
            let what = format!("{new}, {had}, {servers:?}");
            assert_eq!(cuts_off(old, new, &[had], &servers), expected, "{what}");
            assert!(!cuts_off(old, new, &[], &servers), "{what}");
        }
        let both = ["10.9.0.2", "10.77.1.1"].map(|server| server.parse().unwrap());
        let new = "10.9.0.5/8".parse().unwrap();
        assert!(cuts_off(old, new, &[default], &Some(both.to_vec())));
    }

    #[test]
    fn an_old_network_stays_while_only_it_reaches_a_server() {
        let to = |network: &str| Route {
            network: network.parse().unwrap(),
            gateway: "10.0.0.1".parse().ok(),
        };
        let stays = |old: &str, new: &str, servers: Option<&[&str]>, has: &[Route]| {
            let parsed = |servers: &[&str]| servers.iter().map(|s| s.parse().unwrap()).collect();
            let (old, new) = (old.parse().unwrap(), new.parse().unwrap());
            old_prefix_stays(old, new, &servers.map(parsed), has, 16)
        };
        let (old, new) = ("10.0.0.5/16", "10.0.0.5/24");
        assert!(stays(old, new, Some(&["10.0.1.1"]), &[]));
        assert!(stays(old, new, Some(&["10.0.0.2", "10.0.1.1"]), &[]));
        assert!(!stays(old, new, Some(&["10.0.0.2"]), &[]));
        assert!(!stays(old, new, Some(&["10.1.0.1"]), &[]));
        assert!(!stays(old, new, Some(&["10.0.1.1"]), &[to("0.0.0.0/0")]));
        assert!(stays(old, new, Some(&["10.0.1.1"]), &[to("10.7.0.0/16")]));
        // The servers are not known: the larger network of the initramfs stays.
        assert!(stays(old, new, None, &[]));
        assert!(!stays("10.0.0.5/20", new, None, &[]));
        assert!(!stays(new, old, None, &[]) && !stays(old, "10.0.0.6/16", None, &[]));
    }

    #[test]
    fn a_route_stays_while_the_kernel_refuses_what_replaces_it() {
        let own = "10.0.0.5/24".parse().unwrap();
        let to = |network: &str, gateway: &str| Route {
            network: network.parse().unwrap(),
            gateway: gateway.parse().ok(),
        };
        let net = |gateway: &str| to("10.7.0.0/16", gateway);
        let default = |gateway: &str| to("0.0.0.0/0", gateway);
        let root = Some(vec!["10.7.0.2".parse().unwrap()]);
        let (old, other) = (default("10.0.0.1"), to("10.8.0.0/16", "10.9.0.9"));
        for (gone, refused, set, servers, expected) in [
            (net("10.0.0.1"), net("10.0.0.2"), None, &None, true),
            (old, default("10.0.0.2"), None, &None, true),
            // The way to the server of the root file system.
            (net("10.0.0.1"), default("10.0.0.2"), None, &root, true),
            (old, net("10.0.0.2"), None, &root, true),
            (old, net("10.0.0.2"), None, &None, false),
            // Another new route leads to the server.
            (old, other, Some(default("10.0.0.2")), &root, false),
            (
                old,
                net("10.9.0.9"),
                Some(default("10.0.0.2")),
                &root,
                false,
            ),
            (net("10.0.0.1"), other, None, &root, true),
            (
                net("10.0.0.1"),
                net("10.9.0.9"),
                Some(net("10.0.0.2")),
                &None,
                false,
            ),
            (net("10.0.0.1"), other, None, &None, false),
        ] {
            let all: Vec<Route> = set.into_iter().chain([refused]).collect();
            let spared =
                |netdev: &Netdev| super::spared(&[gone], &[refused], &all, own, servers, netdev);
            let what = format!("{gone}, refused {refused}, set {set:?}");
            assert_eq!(spared(&netdev(&[gone])) == [gone], expected, "{what}");
            // What is not there cannot stay, or refused routes would add up.
            assert_eq!(spared(&netdev(&[])), [], "{what}");
            assert_eq!(
                super::spared(&[gone], &[], &all, own, servers, &netdev(&[gone])),
                [],
                "{what}"
            );
        }
    }

    #[test]
    fn the_way_to_a_next_hop_stays_with_the_route_over_it() {
        let route = |network: &str, prefix, gateway: Option<&str>| Route {
            network: Address {
                address: network.parse().unwrap(),
                prefix,
            },
            gateway: gateway.map(|hop| hop.parse().unwrap()),
        };
        let own = Address {
            address: "10.0.0.5".parse().unwrap(),
            prefix: 32,
        };
        let hop = route("10.9.0.1", 32, None);
        let way = route("10.7.0.0", 16, Some("10.9.0.1"));
        let other = route("10.6.0.0", 16, Some("10.9.0.1"));
        let had = [hop, other, way];
        let servers = Some(vec!["10.7.0.2".parse().unwrap()]);
        assert_eq!(kept(&had, &[], own, &servers, &[]), [way, hop]);
        assert_eq!(kept(&had, &[hop], own, &servers, &[]), [way]);
        // Of several routes the kernel takes the one with the longest prefix.
        let default = route("0.0.0.0", 0, Some("10.9.0.1"));
        let all = [default, hop, other, way];
        assert_eq!(needed(&all, own, &servers), [way, hop]);
        assert_eq!(needed(&all, own, &None), all);
    }

    #[test]
    fn one_route_stays_for_all_servers_behind_it_and_in_place_of_the_old_prefix() {
        let own: Address = "10.0.0.5/24".parse().unwrap();
        let way = Route {
            network: "10.0.1.0/24".parse().unwrap(),
            gateway: "10.0.0.1".parse().ok(),
        };
        let servers = ["10.0.1.1", "10.0.1.2"].map(|server| server.parse().unwrap());
        let servers = Some(servers.to_vec());
        assert_eq!(kept(&[way], &[], own, &servers, &[]), [way]);
        let old = "10.0.0.5/16".parse().unwrap();
        let stay = Stay::of(&[way], &[], &[old], own, &servers, &[], 16);
        assert_eq!(stay.routes, [way]);
        assert_eq!((stay.addresses, stay.past), (vec![], vec![old]));
        let stay = Stay::of(&[], &[], &[old], own, &servers, &[], 16);
        assert_eq!((stay.addresses, stay.past), (vec![old], vec![]));
    }

    #[test]
    fn a_lease_stays_under_a_mounted_root_and_not_for_an_image_in_memory() {
        let own: Address = "10.0.0.5/24".parse().unwrap();
        let stays = |is_requested, servers: Servers, mounted: &[IpAddr]| {
            let may_carry = |servers: &Servers| may_carry(own, &[], servers);
            must_stay(is_requested, &servers, mounted, may_carry)
        };
        let (near, far): (IpAddr, IpAddr) =
            ("10.0.0.1".parse().unwrap(), "10.9.0.1".parse().unwrap());
        assert!(stays(true, None, &[]));
        assert!(stays(true, Some(vec![near]), &[]));
        assert!(!stays(true, Some(vec![far]), &[far]));
        // iSCSI of the firmware's table: no argument names the root.
        assert!(stays(false, Some(vec![near]), &[near]));
        assert!(!stays(false, Some(vec![far]), &[far]));
        assert!(!stays(false, None, &[]));
        assert!(!stays(true, Some(Vec::new()), &[]));
    }
}
