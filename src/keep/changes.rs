// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a renewed lease changes on its interface, in an order that never interrupts traffic.

use std::net::IpAddr;

use super::stay::{Stay, gone};
use crate::changes::{Rival, Setting};
use crate::dhcp::Granted;
use crate::dhcp::v4::Dhcp4Wish;
use crate::dhcp::v4::lease::Lease;
use crate::facts::{AddressState, Netdev, rules};
use crate::inet::{Address, Route};
use crate::system::clock::SECOND;
use crate::wish::ipoib;
use crate::wish::ipoib::{Autoconf, IpoibWish};

/// A change in the words of the log.
pub fn words(change: &Setting) -> String {
    match change {
        Setting::AddAddress(address, _) => format!("address {address} set"),
        Setting::AddDeprecated(address) => format!("address {address} set, deprecated"),
        Setting::AddRoute(route, _) => format!("route {route} set"),
        Setting::RemoveRoute(route) => format!("route {route} removed"),
        Setting::RemoveAddress(address) => format!("address {address} removed"),
        Setting::Mtu(bytes) => format!("MTU {bytes} set"),
        other => other.to_string(),
    }
}

/// What the log says of a lease that goes on.
pub fn continued(lease: &Granted, now_ns: u64) -> String {
    let what = format!("{} of {}", lease.address, lease.server);
    match lease.ends_ns.and_then(|ends| now_ns.checked_sub(ends)) {
        Some(past) => format!(
            "the lease of {what} ended {} s ago: requesting the address again",
            past / SECOND
        ),
        None => format!("{what} is kept, {}", lease.length),
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

/// The place of a route beside those of other interfaces to the same network, as during the boot: the
/// default route of the boot device comes first. `all` are the routes of the interface: of several
/// IPv4 default routes the first one does.
pub fn rival(route: &Route, all: &[Route], is_boot: bool) -> Rival {
    let is_default = |route: &Route| route.network.prefix == 0;
    let is_first = || all.iter().find(|one| is_default(one)) == Some(route);
    let is_v6 = route.network.address.is_ipv6();
    match is_boot && is_default(route) && (is_v6 || is_first()) {
        true => Rival::Outranked,
        false => Rival::Kept,
    }
}

/// Whether a requested route still leads somewhere after its interface has lost the address `lost`:
/// the interface has another address that reaches the next hop, such as a static one beside DHCP.
/// The next hop may be link-local; the source of a packet to another network is not.
pub fn outlives(route: &Route, lost: IpAddr, netdev: &Netdev) -> bool {
    let is_global = |address| !Autoconf::LinkLocal.is_met_by(address);
    let others = netdev.addresses_in(AddressState::Usable);
    let mut others = others.filter(|own| own.address != lost && is_global(own.address));
    let is_v6 = route.network.address.is_ipv6();
    match route.gateway.filter(|hop| is_global(*hop)) {
        Some(hop) => others.any(|own| own.reaches(hop)),
        None => others.any(|own| own.address.is_ipv6() == is_v6),
    }
}

/// The prefixes with which the address `lost` is removed from its interface; none: with any. An address
/// that the command line requests stays.
pub fn given_up(lost: IpAddr, requested: &[Address], netdev: &Netdev) -> Vec<Option<u8>> {
    if !requested.iter().any(|own| own.address == lost) {
        return vec![None];
    }
    let found = netdev.addresses.iter().map(|found| found.address);
    let others = found.filter(|own| own.address == lost && !requested.contains(own));
    others.map(|own| Some(own.prefix)).collect()
}

/// The routes of a lease that were set: all but those that the kernel refused. A refused route that is
/// in `old` was set for an earlier lease.
pub fn without_refused(mut all: Vec<Route>, refused: &[Route], old: &[Route]) -> Vec<Route> {
    all.retain(|route| !refused.contains(route) || old.contains(route));
    all
}

/// The routes of `has` that are on the interface or will be: the others were refused by the kernel or
/// removed by another program.
pub fn usable(had: &[Route], has: &[Route], refused: &[Route], netdev: &Netdev) -> Vec<Route> {
    let is_new = |route: &Route| !had.contains(route) && !refused.contains(route);
    let usable = has.iter();
    let usable = usable.filter(|route| netdev.has_route(route) || is_new(route));
    usable.copied().collect()
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
    let new = after.interface_address();
    if before.interface_address() != new {
        changes.push(Setting::AddAddress(new, None));
    }
    let gone: Vec<Route> = gone(had, has)
        .filter(|route| !stay.routes.contains(route))
        .collect();
    // A missing route that it had was removed by another program and stays removed.
    let added = has.iter().filter(|route| !had.contains(route));
    changes.extend(added.map(|route| Setting::AddRoute(*route, rival(route, has, wish.boot))));
    changes.extend(gone.iter().copied().map(Setting::RemoveRoute));
    changes.extend(stay.past.iter().copied().map(Setting::RemoveAddress));
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
    words.extend(
        stay.addresses
            .contains(&old)
            .then(|| format!("no address {old}")),
    );
    words.extend(stay.unset.map(|new| format!("address {new}")));
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::stay::Servers;
    use crate::keep::tests::netdev;
    use crate::wish::ipoib::IpoibFacts;

    fn lease(more: &str) -> Lease {
        let text = format!(
            r#"{{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1","requested_ns":5,"seconds":60,
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
            true => Stay::of(&had, &has, &[old], new, servers, &had, old.prefix),
            false => Stay::default(),
        };
        let none = Netdev::default();
        let changes = changes(&before, &had, &after, &has, &stay, wish, &none);
        let mut lines: Vec<String> = changes.iter().map(words).collect();
        lines.extend(not_applied(&before, &after, &stay, wish));
        lines
    }

    #[test]
    fn a_lease_that_ended_before_is_said_to_have_ended() {
        let granted = lease("").granted();
        let kept = "10.0.0.5/24 of 10.0.0.1 is kept, for 60 s";
        assert_eq!(continued(&granted, 60 * SECOND), kept);
        assert_eq!(
            continued(&granted, 360 * SECOND + 5),
            "the lease of 10.0.0.5/24 of 10.0.0.1 ended 300 s ago: requesting the address again"
        );
        let for_ever = Granted {
            ends_ns: None,
            ..granted
        };
        assert_eq!(continued(&for_ever, u64::MAX), kept);
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
    fn the_default_route_of_the_boot_device_comes_first() {
        let route = |network: &str, gateway: &str| Route {
            network: network.parse().unwrap(),
            gateway: gateway.parse().ok(),
        };
        let (first, second) = (
            route("0.0.0.0/0", "10.0.0.1"),
            route("0.0.0.0/0", "10.0.0.2"),
        );
        let all = [route("10.7.0.0/16", "10.0.0.7"), first, second];
        let places = |is_boot| all.map(|route| rival(&route, &all, is_boot));
        assert_eq!(places(true), [Rival::Kept, Rival::Outranked, Rival::Kept]);
        assert_eq!(places(false), [Rival::Kept; 3]);
        // Over IPv6 the metric decides.
        let both = [route("::/0", "fe80::1"), route("::/0", "fe80::2")];
        let places = both.map(|route| rival(&route, &both, true));
        assert_eq!(places, [Rival::Outranked; 2]);
        let (before, wish) = (
            lease(""),
            Dhcp4Wish {
                boot: true,
                ..Dhcp4Wish::default()
            },
        );
        let new = changes(
            &before,
            &[first],
            &before,
            &[second],
            &Stay::default(),
            &wish,
            &netdev(&[]),
        );
        assert_eq!(
            new,
            [
                Setting::AddRoute(second, Rival::Outranked),
                Setting::RemoveRoute(first)
            ]
        );
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
    fn a_requested_address_outlives_a_lease_of_the_same_address() {
        let given_up = |lost: &str, requested: &[&str], addresses: &[&str]| {
            let parsed = |text: &&str| text.parse::<Address>().unwrap();
            let netdev = Netdev {
                addresses: addresses.iter().map(|text| parsed(text).into()).collect(),
                ..Netdev::default()
            };
            let requested: Vec<Address> = requested.iter().map(parsed).collect();
            given_up(lost.parse().unwrap(), &requested, &netdev)
        };
        let own = &["10.0.0.5/24"];
        assert_eq!(given_up("10.0.0.77", &[], &["10.0.0.77/24"]), [None]);
        let both = &["10.0.0.5/24", "10.0.0.77/24"];
        assert_eq!(given_up("10.0.0.77", own, both), [None]);
        assert_eq!(given_up("10.0.0.5", own, own), []);
        let both = &["10.0.0.5/24", "10.0.0.5/16", "10.0.0.6/16"];
        assert_eq!(given_up("10.0.0.5", own, both), [Some(16)]);
        let own = &["fd00::5/64"];
        let both = &["fd00::5/64", "fe80::5/64"];
        assert_eq!(given_up("fd00::5", own, both), []);
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
                let stay = Stay::of(&had, &has, &[own], own, &servers, &first, 24);
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
        let stay = Stay {
            past: vec![lease("").interface_address()],
            ..Stay::default()
        };
        let changes = changes(
            &lease(""),
            &[],
            &wide,
            &[],
            &stay,
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
            let stay = Stay::of(&[], &has, &[old], new, &servers, &[], 16);
            let none = Netdev::default();
            let changes = changes(&wide, &[], narrow, &has, &stay, &root, &none);
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
    fn a_prefix_that_stayed_goes_when_it_is_not_needed_any_longer() {
        let address = |text: &str| text.parse::<Address>().unwrap();
        let [wide, middle, narrow] = ["10.0.0.5/8", "10.0.0.5/16", "10.0.0.5/24"].map(address);
        let default = [Route::default_through("10.0.0.1".parse().unwrap())];
        let root = Some(vec!["10.0.7.1".parse().unwrap()]);
        let old = [middle, narrow];
        for (old, new, has, servers, stays, goes) in [
            (&old[..1], narrow, &[][..], &root, &old[..1], &[][..]),
            (&old[..1], narrow, &[], &None, &old[..1], &[]),
            (&old, narrow, &[], &root, &old[..1], &[]),
            (&old, narrow, &[], &None, &old[..1], &[]),
            // The lease has the network again, or a route leads to the server.
            (&old, middle, &[], &root, &[], &old[1..]),
            (&old, middle, &[], &None, &[], &old[1..]),
            (&old, narrow, &default, &root, &[], &old[..1]),
            // If the servers are not known, only the network of the initramfs stays.
            (&[wide], narrow, &[], &None, &[], &[wide]),
        ] {
            let stay = Stay::of(&[], has, old, new, servers, &[], middle.prefix);
            let what = format!("{old:?}, {new}, {servers:?}");
            assert_eq!(stay.addresses, stays, "{what}");
            assert_eq!(stay.past, goes, "{what}");
        }
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
                ..IpoibFacts::default()
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
