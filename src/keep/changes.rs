// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a renewed lease changes on its interface, in an order that never interrupts traffic.

use std::net::IpAddr;

use crate::changes::{Rival, Setting};
use crate::dhcp::v4::Dhcp4Wish;
use crate::dhcp::v4::lease::Lease;
use crate::facts::{AddressState, Netdev, rules};
use crate::inet::{Address, Route};
use crate::wish::ipoib;
use crate::wish::ipoib::IpoibWish;

/// A change in the words of the log.
pub fn words(change: &Setting) -> String {
    match change {
        Setting::AddAddress(address, _) => format!("address {address} set"),
        Setting::AddRoute(route, _) => format!("route {route} set"),
        Setting::RemoveRoute(route) => format!("route {route} removed"),
        Setting::RemoveAddress(address) => format!("address {address} removed"),
        Setting::Mtu(bytes) => format!("MTU {bytes} set"),
        other => other.to_string(),
    }
}

/// All routes of an interface with a lease, including the default route: those that the command
/// line requests, and those of the lease that they do not replace.
pub fn routes(requested: &[Route], lease: &Lease) -> Vec<Route> {
    let mut wish = IpoibWish::default();
    for route in requested {
        match route.gateway {
            Some(gateway) if route.network.prefix == 0 => wish.gateways.push(gateway),
            _ => wish.routes.push(*route),
        }
    }
    let wish = wish.granted(lease);
    let gateways = wish.all_gateways().copied();
    let defaults = gateways.map(Route::default_through);
    wish.all_routes().copied().chain(defaults).collect()
}

fn gone(had: &[Route], has: &[Route]) -> impl Iterator<Item = Route> {
    had.iter().filter(|route| !has.contains(route)).copied()
}

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

/// Whether a node with the address `own` reaches `server` over `route`.
fn leads(route: &Route, server: IpAddr, own: Address) -> bool {
    !own.reaches(server) && route.network.reaches(server)
}

/// Whether a requested route still leads somewhere after its interface has lost the address `lost`:
/// the interface has another address that reaches the next hop, such as a static one beside DHCP.
/// The next hop may be link-local; the source of a packet to another network is not.
pub fn outlives(route: &Route, lost: IpAddr, netdev: &Netdev) -> bool {
    let others = netdev.addresses_in(AddressState::Usable);
    let mut others = others.filter(|own| own.address != lost && !is_link_local(own.address));
    let is_v6 = route.network.address.is_ipv6();
    match route.gateway.filter(|hop| !is_link_local(*hop)) {
        Some(hop) => others.any(|own| own.reaches(hop)),
        None => others.any(|own| own.address.is_ipv6() == is_v6),
    }
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// The routes of `all` that the root file system depends on.
pub fn needed(all: &[Route], own: Address, servers: &Servers) -> Vec<Route> {
    kept(all, &[], own, servers, all)
}

/// The routes of a lease that were set: all but those that the kernel refused. A refused route that is
/// in `old` was set for an earlier lease.
pub fn without_refused(mut all: Vec<Route>, refused: &[Route], old: &[Route]) -> Vec<Route> {
    all.retain(|route| !refused.contains(route) || old.contains(route));
    all
}

/// What stays of the lease before, because the root file system depends on it.
#[derive(Debug, Default)]
pub struct Stay {
    /// Routes that the new lease does not have.
    pub routes: Vec<Route>,
    /// The address with the old prefix, beside the one with the new prefix.
    pub old_prefix: bool,
}

impl Stay {
    /// What stays if the address `old` is renewed as `new`, with the routes `has` instead of `had`.
    /// For `first` see [`kept`].
    pub fn of(
        had: &[Route],
        has: &[Route],
        old: Address,
        new: Address,
        servers: &Servers,
        first: &[Route],
    ) -> Stay {
        let routes = kept(had, has, new, servers, first);
        let old_prefix = old_prefix_stays(old, new, servers, &[has, &routes].concat());
        Stay { routes, old_prefix }
    }
}

/// Whether a server of the root file system is on the network of `old`, and nothing in `has` leads to
/// the server from `new`. If the servers are not known, the larger network stays.
pub fn old_prefix_stays(old: Address, new: Address, servers: &Servers, has: &[Route]) -> bool {
    let Some(servers) = servers else {
        return old.prefix < new.prefix;
    };
    let is_lost = |server: &IpAddr| {
        let mut has = has.iter();
        old.reaches(*server)
            && !new.reaches(*server)
            && !has.any(|route| leads(route, *server, new))
    };
    servers.iter().any(is_lost)
}

/// The routes of `has` that are on the interface or will be: the others were refused by the kernel or
/// removed by another program.
pub fn usable(had: &[Route], has: &[Route], refused: &[Route], netdev: &Netdev) -> Vec<Route> {
    let is_new = |route: &Route| !had.contains(route) && !refused.contains(route);
    let usable = has.iter();
    let usable = usable.filter(|route| netdev.has_route(route) || is_new(route));
    usable.copied().collect()
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

/// What the lease `after` changes on an interface with the lease `before` of the same address and
/// the routes `had`. It shall have the routes `has`. New routes come before old routes go, and an MTU
/// is never larger than the interface allows.
pub fn changes(
    before: &Lease,
    had: &[Route],
    after: &Lease,
    has: &[Route],
    stay: &Stay,
    wish: &Dhcp4Wish,
    netdev: &Netdev,
) -> Vec<Setting> {
    let mut changes = Vec::new();
    let (old, new) = (before.interface_address(), after.interface_address());
    if old != new {
        changes.push(Setting::AddAddress(new, None));
    }
    let gone: Vec<Route> = gone(had, has)
        .filter(|route| !stay.routes.contains(route))
        .collect();
    // A missing route that it had was removed by another program and stays removed.
    let added = has.iter().filter(|route| !had.contains(route));
    changes.extend(added.map(|route| Setting::AddRoute(*route, Rival::Kept)));
    changes.extend(gone.iter().copied().map(Setting::RemoveRoute));
    if old != new && !stay.old_prefix {
        changes.push(Setting::RemoveAddress(old));
    }
    if before.mtu != after.mtu {
        changes.extend(mtu(after, wish, netdev));
    }
    changes
}

/// The MTU that the lease suggests, unless the interface has it or the command line decides.
pub fn mtu(lease: &Lease, wish: &Dhcp4Wish, netdev: &Netdev) -> Option<Setting> {
    let suggested = ipoib::Suggested {
        mtu: lease.mtu.filter(|_| !wish.ignore_mtu).map(u32::from),
        ..ipoib::Suggested::default()
    };
    rules::suggested_mtu(&suggested, netdev, None, &[]).map(Setting::Mtu)
}

/// What the server changed and this program does not apply, in words: name servers and host name
/// belong to the real root.
pub fn not_applied(before: &Lease, after: &Lease, stay: &Stay, wish: &Dhcp4Wish) -> Option<String> {
    let mut words = Vec::new();
    let list = |items: Vec<String>| match items.join(" ") {
        none if none.is_empty() => "none".to_owned(),
        items => items,
    };
    if !wish.ignore_dns && before.name_servers != after.name_servers {
        let servers = after.name_servers.iter().map(ToString::to_string);
        words.push(format!("name servers {}", list(servers.collect())));
    }
    if !wish.ignore_dns && before.domains() != after.domains() {
        words.push(format!("domains {}", list(after.domains())));
    }
    if before.host_name != after.host_name {
        let name = after.host_name.clone().unwrap_or_default();
        words.push(format!("host name {}", list(vec![name])));
    }
    if before.mtu.is_some() && after.mtu.is_none() && !wish.ignore_mtu {
        words.push("no MTU".to_owned());
    }
    let had = routes(&[], before);
    let kept = stay.routes.iter().filter(|route| had.contains(route));
    words.extend(kept.map(|route| format!("no route {route}")));
    let old = before.interface_address();
    words.extend(stay.old_prefix.then(|| format!("no address {old}")));
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::tests::netdev;
    use crate::wish::ipoib::IpoibFacts;

    fn lease(more: &str) -> Lease {
        let text = format!(
            r#"{{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1","asked_ns":5,"seconds":60,
                "renew_s":30,"rebind_s":50{more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn lines(before: &str, after: &str, wish: &Dhcp4Wish) -> Vec<String> {
        lines_for(before, after, wish, &None)
    }

    fn lines_for(before: &str, after: &str, wish: &Dhcp4Wish, servers: &Servers) -> Vec<String> {
        let (before, after) = (lease(before), lease(after));
        let (had, has) = (routes(&[], &before), routes(&[], &after));
        let (old, new) = (before.interface_address(), after.interface_address());
        let stay = match wish.keep {
            true => Stay::of(&had, &has, old, new, servers, &had),
            false => Stay::default(),
        };
        let changes = changes(&before, &had, &after, &has, &stay, wish, &Netdev::default());
        let mut lines: Vec<String> = changes.iter().map(words).collect();
        lines.extend(not_applied(&before, &after, &stay, wish));
        lines
    }

    #[test]
    fn a_requested_route_replaces_that_of_the_lease() {
        let lease = lease(
            r#","routers":["10.0.0.1"],
            "static_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]"#,
        );
        let route = |network: &str, gateway: &str| Route {
            network: network.parse().unwrap(),
            gateway: gateway.parse().ok(),
        };
        let list = |routes: &[Route]| -> Vec<String> {
            let all = super::routes(routes, &lease);
            all.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            list(&[route("10.9.0.0/16", "10.0.0.9")]),
            [
                "10.9.0.0/16 via 10.0.0.9",
                "10.7.0.0/16 via 10.0.0.7",
                "0.0.0.0/0 via 10.0.0.1"
            ]
        );
        let requested = [
            route("10.7.0.0/16", "10.0.0.8"),
            route("0.0.0.0/0", "10.0.0.9"),
        ];
        assert_eq!(
            list(&requested),
            ["10.7.0.0/16 via 10.0.0.8", "0.0.0.0/0 via 10.0.0.9"]
        );
    }

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
    fn a_requested_route_outlives_the_lease_if_another_address_reaches_its_next_hop() {
        let netdev = |addresses: &[&str]| Netdev {
            addresses: addresses
                .iter()
                .map(|address| address.parse::<Address>().unwrap().into())
                .collect(),
            ..Netdev::default()
        };
        let stays = |network: &str, gateway: &str, lost: &str, addresses: &[&str]| {
            let route = Route {
                network: network.parse().unwrap(),
                gateway: gateway.parse().ok(),
            };
            outlives(&route, lost.parse().unwrap(), &netdev(addresses))
        };
        // `ip=10.0.0.5::10.0.0.1:255.255.255.0::ib0:dhcp`, with a lease of this or another network.
        for (lost, prefix) in [("10.0.0.77", 24), ("10.9.0.77", 24)] {
            let both = ["10.0.0.5/24", &format!("{lost}/{prefix}")];
            assert!(stays("0.0.0.0/0", "10.0.0.1", lost, &both));
            assert!(!stays("0.0.0.0/0", "10.7.0.1", lost, &both));
            assert!(stays("10.8.0.0/16", "", lost, &both));
        }
        assert!(!stays(
            "0.0.0.0/0",
            "10.0.0.1",
            "10.0.0.77",
            &["10.0.0.77/24"]
        ));
        assert!(!stays(
            "10.8.0.0/16",
            "",
            "10.0.0.77",
            &["10.0.0.77/24", "fd00::5/64"]
        ));
        let lost = "fd00::77";
        let local = ["fe80::5/64", "fd00::77/128"];
        let both = ["fe80::5/64", "fd00::77/128", "fd00::5/64"];
        for (network, gateway) in [("::/0", "fe80::1"), ("::/0", "fd00::1"), ("fd01::/64", "")] {
            assert!(!stays(network, gateway, lost, &local));
            assert!(stays(network, gateway, lost, &both));
        }
    }

    #[test]
    fn an_equal_lease_changes_nothing() {
        let all = r#","mtu":2000,"routers":["10.0.0.1"],"name_servers":["10.0.0.3"]"#;
        assert_eq!(lines(all, all, &Dhcp4Wish::default()), Vec::<String>::new());
    }

    #[test]
    fn new_routes_come_before_old_ones_go() {
        let before = r#","routers":["10.0.0.1"],
            "static_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]"#;
        let after = r#","routers":["10.0.0.2"],
            "static_routes":[{"network":"10.8.0.0","prefix":16,"gateway":"10.0.0.7"}]"#;
        assert_eq!(
            lines(before, after, &Dhcp4Wish::default()),
            [
                "route 10.8.0.0/16 via 10.0.0.7 set",
                "route 0.0.0.0/0 via 10.0.0.2 set",
                "route 10.7.0.0/16 via 10.0.0.7 removed",
                "route 0.0.0.0/0 via 10.0.0.1 removed",
            ]
        );
    }

    #[test]
    fn the_way_to_a_network_root_stays_until_there_is_another_one() {
        let root = Dhcp4Wish {
            keep: true,
            ..Dhcp4Wish::default()
        };
        let before = r#","routers":["10.0.0.1"],
            "static_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]"#;
        let after = r#","routers":["10.0.0.2"]"#;
        assert_eq!(
            lines(before, after, &root),
            [
                "route 0.0.0.0/0 via 10.0.0.2 set",
                "route 0.0.0.0/0 via 10.0.0.1 removed",
                "no route 10.7.0.0/16 via 10.0.0.7",
            ]
        );
        assert_eq!(
            lines(before, "", &root),
            ["no route 10.7.0.0/16 via 10.0.0.7, no route 0.0.0.0/0 via 10.0.0.1"]
        );
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
    fn a_new_route_comes_before_the_old_one_goes_and_a_removed_one_stays_removed() {
        let default = |gateway: &str| Route::default_through(gateway.parse().unwrap());
        let (old, new) = (default("10.0.0.1"), default("10.0.0.2"));
        let renew = |had: &[Route], found: &[Route]| {
            let (lease, wish) = (lease(""), Dhcp4Wish::default());
            changes(
                &lease,
                had,
                &lease,
                &[new],
                &Stay::default(),
                &wish,
                &netdev(found),
            )
        };
        let replace = [
            Setting::AddRoute(new, Rival::Kept),
            Setting::RemoveRoute(old),
        ];
        assert_eq!(renew(&[old], &[old]), replace);
        // The kernel refused the new route, and it was set later.
        assert_eq!(renew(&[new, old], &[old, new]), replace[1..]);
        assert_eq!(renew(&[new], &[new]), []);
        // Another program removed the new route.
        assert_eq!(renew(&[new], &[]), []);
    }

    #[test]
    fn a_route_that_is_not_there_leads_nowhere() {
        let to = |network: &str| Route {
            network: network.parse().unwrap(),
            gateway: "10.0.0.1".parse().ok(),
        };
        let [there, removed, refused, new] = [
            to("10.1.0.0/16"),
            to("10.2.0.0/16"),
            to("10.3.0.0/16"),
            to("10.4.0.0/16"),
        ];
        let all = [there, removed, refused, new];
        assert_eq!(
            without_refused(all.to_vec(), &[refused, there], &[there]),
            [there, removed, new]
        );
        let found = netdev(&[there]);
        assert_eq!(
            usable(&[there, removed], &all, &[refused], &found),
            [there, new]
        );
    }

    #[test]
    fn only_the_routes_to_the_servers_of_the_root_stay() {
        let root = Dhcp4Wish {
            keep: true,
            ..Dhcp4Wish::default()
        };
        let before = r#","routers":["10.0.0.1"],
            "static_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"},
                             {"network":"10.8.0.0","prefix":16,"gateway":"10.0.0.7"}]"#;
        let servers = |all: &[&str]| Some(all.iter().map(|ip| ip.parse().unwrap()).collect());
        // The server behind a router needs a route; the server on the link needs none.
        assert_eq!(
            lines_for(before, "", &root, &servers(&["10.7.0.2", "10.0.0.3"])),
            [
                "route 10.8.0.0/16 via 10.0.0.7 removed",
                "route 0.0.0.0/0 via 10.0.0.1 removed",
                "no route 10.7.0.0/16 via 10.0.0.7",
            ]
        );
        assert_eq!(
            lines_for(
                before,
                r#","routers":["10.0.0.2"]"#,
                &root,
                &servers(&["10.7.0.2"])
            ),
            [
                "route 0.0.0.0/0 via 10.0.0.2 set",
                "route 10.7.0.0/16 via 10.0.0.7 removed",
                "route 10.8.0.0/16 via 10.0.0.7 removed",
                "route 0.0.0.0/0 via 10.0.0.1 removed",
            ]
        );
        assert_eq!(
            lines_for(before, "", &root, &servers(&["192.0.2.9"]))
                .last()
                .unwrap(),
            "no route 0.0.0.0/0 via 10.0.0.1"
        );
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
    fn a_server_that_brings_new_routes_each_time_does_not_make_them_grow() {
        let servers = Some(vec!["10.200.0.2".parse().unwrap()]);
        let root = Dhcp4Wish {
            keep: true,
            ..Dhcp4Wish::default()
        };
        for servers in [servers, None] {
            let first = lease(r#","routers":["10.0.0.1"]"#);
            let (mut before, mut had) = (first.clone(), routes(&[], &first));
            for round in 0..50_u8 {
                let many: Vec<String> = (0..100_u8)
                    .map(|at| {
                        format!(
                            r#"{{"network":"172.{round}.{at}.0","prefix":24,"gateway":"10.0.0.7"}}"#
                        )
                    })
                    .collect();
                let after = lease(&format!(r#","classless_routes":[{}]"#, many.join(",")));
                let has = routes(&[], &after);
                let (own, first) = (after.interface_address(), routes(&[], &first));
                let stay = Stay::of(&had, &has, own, own, &servers, &first);
                assert_eq!(stay.routes, first);
                let changes = changes(
                    &before,
                    &had,
                    &after,
                    &has,
                    &stay,
                    &root,
                    &Netdev::default(),
                );
                had.extend(changes.iter().filter_map(|change| match change {
                    Setting::AddRoute(route, _) => Some(*route),
                    _ => None,
                }));
                had.retain(|route| !changes.contains(&Setting::RemoveRoute(*route)));
                assert_eq!(had.len(), 101);
                before = after;
            }
        }
    }

    #[test]
    fn another_prefix_is_set_before_the_old_one_goes() {
        let mut wide = lease("");
        wide.prefix = 16;
        let changes = changes(
            &lease(""),
            &[],
            &wide,
            &[],
            &Stay::default(),
            &Dhcp4Wish::default(),
            &Netdev::default(),
        );
        let lines: Vec<String> = changes.iter().map(words).collect();
        assert_eq!(
            lines,
            ["address 10.0.0.5/16 set", "address 10.0.0.5/24 removed"]
        );
    }

    #[test]
    fn a_smaller_network_does_not_cut_the_root_off() {
        let (mut wide, narrow) = (lease(""), lease(""));
        wide.prefix = 16;
        let root = Dhcp4Wish {
            keep: true,
            ..Dhcp4Wish::default()
        };
        let renew = |narrow: &Lease, servers: Servers| {
            let (old, new) = (wide.interface_address(), narrow.interface_address());
            let has = routes(&[], narrow);
            let stay = Stay::of(&[], &has, old, new, &servers, &[]);
            let changes = changes(&wide, &[], narrow, &has, &stay, &root, &Netdev::default());
            let mut lines: Vec<String> = changes.iter().map(words).collect();
            lines.extend(not_applied(&wide, narrow, &stay, &root));
            lines
        };
        let at = |server: &str| Some(vec![server.parse().unwrap()]);
        let stays = ["address 10.0.0.5/24 set", "no address 10.0.0.5/16"];
        assert_eq!(renew(&narrow, at("10.0.7.1")), stays);
        assert_eq!(renew(&narrow, None), stays);
        let goes = ["address 10.0.0.5/24 set", "address 10.0.0.5/16 removed"];
        assert_eq!(renew(&narrow, at("10.0.0.1")), goes);
        // A router of the new lease leads to the server.
        assert_eq!(
            renew(&lease(r#","routers":["10.0.0.1"]"#), at("10.0.7.1")),
            [
                "address 10.0.0.5/24 set",
                "route 0.0.0.0/0 via 10.0.0.1 set",
                "address 10.0.0.5/16 removed",
            ]
        );
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

    #[test]
    fn the_mtu_follows_unless_the_command_line_has_one() {
        let (before, after) = (r#","mtu":2000"#, r#","mtu":1500"#);
        assert_eq!(
            lines(before, after, &Dhcp4Wish::default()),
            ["MTU 1500 set"]
        );
        assert_eq!(lines(before, "", &Dhcp4Wish::default()), ["no MTU"]);
        let fixed = Dhcp4Wish {
            ignore_mtu: true,
            ..Dhcp4Wish::default()
        };
        assert_eq!(lines(before, after, &fixed), Vec::<String>::new());
        assert_eq!(lines(before, "", &fixed), Vec::<String>::new());
    }

    #[test]
    fn no_larger_mtu_is_set_than_the_interface_takes() {
        let datagram = Netdev {
            mtu: Some(1500),
            ipoib: Some(IpoibFacts {
                mode: Some(ipoib::Mode::Datagram),
                pkey: None,
                child: false,
            }),
            ..Netdev::default()
        };
        let (before, after) = (lease(r#","mtu":1500"#), lease(r#","mtu":65520"#));
        let changes = changes(
            &before,
            &[],
            &after,
            &[],
            &Stay::default(),
            &Dhcp4Wish::default(),
            &datagram,
        );
        assert_eq!(changes, [Setting::Mtu(ipoib::DATAGRAM_MAX)]);
        // Another address comes with its MTU, whatever the MTU of the lease before was.
        let of_other = mtu(&after, &Dhcp4Wish::default(), &datagram);
        assert_eq!(of_other, Some(Setting::Mtu(ipoib::DATAGRAM_MAX)));
        assert_eq!(mtu(&before, &Dhcp4Wish::default(), &datagram), None);
    }

    #[test]
    fn names_are_the_real_roots_own() {
        let before = r#","name_servers":["10.0.0.3"],"host_name":"a""#;
        let after = r#","name_servers":["10.0.0.4","10.0.0.5"],"domain_search":["a.example"]"#;
        assert_eq!(
            lines(before, after, &Dhcp4Wish::default()),
            ["name servers 10.0.0.4 10.0.0.5, domains a.example, host name none"]
        );
        let other_dns = Dhcp4Wish {
            ignore_dns: true,
            ..Dhcp4Wish::default()
        };
        assert_eq!(lines(before, after, &other_dns), ["host name none"]);
    }
}
