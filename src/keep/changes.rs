// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a renewed lease changes on its interface, in the order in which traffic goes on.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::dhcp::Wish;
use crate::dhcp::lease::Lease;
use crate::facts::Netdev;
use crate::ipoib::{self, Address, Route};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The same address with another prefix is set.
    AddAddress(Address),
    /// A route is set.
    AddRoute(Route),
    /// What an earlier answer brought goes.
    RemoveRoute(Route),
    /// The address with the earlier prefix goes.
    RemoveAddress(Address),
    /// MTU in bytes.
    Mtu(u32),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::AddAddress(address) => write!(f, "address {address} set"),
            Change::AddRoute(route) => write!(f, "route {route} set"),
            Change::RemoveRoute(route) => write!(f, "route {route} taken away"),
            Change::RemoveAddress(address) => write!(f, "address {address} taken away"),
            Change::Mtu(bytes) => write!(f, "MTU {bytes} set"),
        }
    }
}

/// All routes of a lease, the default one among them.
pub fn routes(lease: &Lease) -> Vec<Route> {
    let wish = ipoib::Wish::default().granted(lease);
    let everywhere = Address {
        address: Ipv4Addr::UNSPECIFIED.into(),
        prefix: 0,
    };
    let default = |gateway: &IpAddr| Route {
        network: everywhere,
        gateway: Some(*gateway),
    };
    let defaults: Vec<Route> = wish.all_gateways().map(default).collect();
    wish.all_routes().copied().chain(defaults).collect()
}

fn address(lease: &Lease) -> Address {
    Address {
        address: lease.address.into(),
        prefix: lease.prefix,
    }
}

fn gone(had: &[Route], has: &[Route]) -> impl Iterator<Item = Route> {
    had.iter().filter(|route| !has.contains(route)).copied()
}

/// The way to a network root stays until there is another one to the same network.
fn is_kept(route: &Route, has: &[Route], wish: &Wish) -> bool {
    wish.keep && !has.iter().any(|other| other.network == route.network)
}

/// What `after` changes where `before` was in use, of the same address, on this interface. New ones come
/// before old ones go, and an MTU is no larger than the interface takes.
pub fn changes(before: &Lease, after: &Lease, wish: &Wish, netdev: &Netdev) -> Vec<Change> {
    let mut changes = Vec::new();
    let (old, new) = (address(before), address(after));
    if old != new {
        changes.push(Change::AddAddress(new));
    }
    let (had, has) = (routes(before), routes(after));
    let added = has.iter().filter(|route| !had.contains(route));
    changes.extend(added.copied().map(Change::AddRoute));
    let gone = gone(&had, &has).filter(|route| !is_kept(route, &has, wish));
    changes.extend(gone.map(Change::RemoveRoute));
    if old != new {
        changes.push(Change::RemoveAddress(old));
    }
    let mtu = after.mtu.filter(|_| before.mtu != after.mtu);
    let suggested = ipoib::Suggested {
        mtu: mtu.filter(|_| !wish.ignore_mtu).map(u32::from),
        ..ipoib::Suggested::default()
    };
    changes.extend(suggested.mtu_for(netdev, None, &[]).map(Change::Mtu));
    changes
}

/// What the server says otherwise than before and nobody here applies, in words: name servers and host
/// name are the real root's own.
pub fn not_applied(before: &Lease, after: &Lease, wish: &Wish) -> Option<String> {
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
    let (had, has) = (routes(before), routes(after));
    let kept = gone(&had, &has).filter(|route| is_kept(route, &has, wish));
    words.extend(kept.map(|route| format!("no route {route}")));
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(more: &str) -> Lease {
        let text = format!(
            r#"{{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1","asked_ns":5,"seconds":60,
                "renew_s":30,"rebind_s":50{more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn said(before: &str, after: &str, wish: &Wish) -> Vec<String> {
        let (before, after) = (lease(before), lease(after));
        let changes = changes(&before, &after, wish, &Netdev::default());
        let mut said: Vec<String> = changes.iter().map(ToString::to_string).collect();
        said.extend(not_applied(&before, &after, wish));
        said
    }

    #[test]
    fn what_is_the_same_changes_nothing() {
        let all = r#","mtu":2000,"routers":["10.0.0.1"],"name_servers":["10.0.0.3"]"#;
        assert_eq!(said(all, all, &Wish::default()), Vec::<String>::new());
    }

    #[test]
    fn new_routes_come_before_old_ones_go() {
        let before = r#","routers":["10.0.0.1"],
            "static_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]"#;
        let after = r#","routers":["10.0.0.2"],
            "static_routes":[{"network":"10.8.0.0","prefix":16,"gateway":"10.0.0.7"}]"#;
        assert_eq!(
            said(before, after, &Wish::default()),
            [
                "route 10.8.0.0/16 via 10.0.0.7 set",
                "route 0.0.0.0/0 via 10.0.0.2 set",
                "route 10.7.0.0/16 via 10.0.0.7 taken away",
                "route 0.0.0.0/0 via 10.0.0.1 taken away",
            ]
        );
    }

    #[test]
    fn the_way_to_a_network_root_stays_until_there_is_another_one() {
        let root = Wish {
            keep: true,
            ..Wish::default()
        };
        let before = r#","routers":["10.0.0.1"],
            "static_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]"#;
        let after = r#","routers":["10.0.0.2"]"#;
        assert_eq!(
            said(before, after, &root),
            [
                "route 0.0.0.0/0 via 10.0.0.2 set",
                "route 0.0.0.0/0 via 10.0.0.1 taken away",
                "no route 10.7.0.0/16 via 10.0.0.7",
            ]
        );
        assert_eq!(
            said(before, "", &root),
            ["no route 10.7.0.0/16 via 10.0.0.7, no route 0.0.0.0/0 via 10.0.0.1"]
        );
    }

    #[test]
    fn another_prefix_is_set_before_the_old_one_goes() {
        let mut wide = lease("");
        wide.prefix = 16;
        let netdev = Netdev::default();
        let changes = changes(&lease(""), &wide, &Wish::default(), &netdev);
        let said: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            ["address 10.0.0.5/16 set", "address 10.0.0.5/24 taken away"]
        );
    }

    #[test]
    fn the_mtu_follows_unless_the_command_line_has_one() {
        let (before, after) = (r#","mtu":2000"#, r#","mtu":1500"#);
        assert_eq!(said(before, after, &Wish::default()), ["MTU 1500 set"]);
        assert_eq!(said(before, "", &Wish::default()), ["no MTU"]);
        let fixed = Wish {
            ignore_mtu: true,
            ..Wish::default()
        };
        assert_eq!(said(before, after, &fixed), Vec::<String>::new());
        assert_eq!(said(before, "", &fixed), Vec::<String>::new());
    }

    #[test]
    fn no_larger_mtu_is_set_than_the_interface_takes() {
        let datagram = Netdev {
            mtu: Some(1500),
            ipoib: Some(ipoib::Seen {
                mode: Some(ipoib::Mode::Datagram),
                pkey: None,
                child: false,
            }),
            ..Netdev::default()
        };
        let (before, after) = (lease(r#","mtu":1500"#), lease(r#","mtu":65520"#));
        let changes = changes(&before, &after, &Wish::default(), &datagram);
        assert_eq!(changes, [Change::Mtu(ipoib::DATAGRAM_MAX)]);
    }

    #[test]
    fn names_are_the_real_roots_own() {
        let before = r#","name_servers":["10.0.0.3"],"host_name":"a""#;
        let after = r#","name_servers":["10.0.0.4","10.0.0.5"],"domain_search":["a.example"]"#;
        assert_eq!(
            said(before, after, &Wish::default()),
            ["name servers 10.0.0.4 10.0.0.5, domains a.example, host name none"]
        );
        let other_dns = Wish {
            ignore_dns: true,
            ..Wish::default()
        };
        assert_eq!(said(before, after, &other_dns), ["host name none"]);
    }
}
