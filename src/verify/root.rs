// SPDX-License-Identifier: MIT OR Apache-2.0
//! What carries the root file system: its mount, and the way to its server.

use std::net::IpAddr;

use super::checks::Id;
use super::expectation::RootWish;
use crate::facts::{Facts, Netdev};
use crate::report::{Finding, LinkReport, RootReport, Status};
use crate::storage::{Protocol, Transport};

/// The checks of the root file system.
pub fn report(wish: &RootWish, links: &[LinkReport], facts: &Facts) -> RootReport {
    let mut findings = vec![mounted(wish, facts)];
    let passed = |findings: &[Finding]| findings.iter().all(|f| f.status == Status::Ok);
    if wish.root.protocol == Protocol::Nfs {
        findings.push(if passed(&findings) {
            transport(wish, facts)
        } else {
            Finding::skipped(Id::RootTransport)
        });
    }
    findings.push(if passed(&findings) {
        path(wish, links, facts)
    } else {
        Finding::skipped(Id::RootPath)
    });
    RootReport {
        asked_by: wish.asked_by.clone(),
        findings,
    }
}

fn server(wish: &RootWish, facts: &Facts) -> Option<IpAddr> {
    let mounted = facts.root.as_ref().and_then(|root| root.server);
    wish.root.server.or(mounted)
}

/// Of a block device only the kind is known: it is no file system of the initramfs.
fn mounted(wish: &RootWish, facts: &Facts) -> Finding {
    let id = Id::RootMounted;
    let Some(mount) = &facts.root else {
        return Finding::unknown(id).hint("look at: cat /proc/self/mountinfo");
    };
    let seen = format!("{} {}", mount.fstype, mount.source);
    if matches!(mount.fstype.as_str(), "rootfs" | "tmpfs" | "ramfs") {
        return Finding::skipped(id);
    }
    let nfs = mount.fstype.starts_with("nfs");
    if nfs != (wish.root.protocol == Protocol::Nfs) {
        let wanted = if nfs { "a disk" } else { "nfs" };
        return Finding::failed(id, &seen, wanted);
    }
    match (wish.root.server, mount.server) {
        (Some(wanted), Some(server)) if nfs && wanted != server => {
            Finding::failed(id, &format!("{seen}, server {server}"), &wanted.to_string())
        }
        _ => Finding::ok(id, &seen),
    }
}

fn transport(wish: &RootWish, facts: &Facts) -> Finding {
    let id = Id::RootTransport;
    let seen = facts
        .root
        .as_ref()
        .and_then(|root| root.transport.as_deref());
    let wanted = wish.root.transport.to_string();
    match seen {
        None => Finding::unknown(id).hint("look at: cat /proc/self/mountinfo"),
        // tcp6 and rdma6 are the same.
        Some(seen) if seen.trim_end_matches('6') == wanted => Finding::ok(id, seen),
        Some(seen) => Finding::failed(id, seen, &wanted),
    }
}

fn path(wish: &RootWish, links: &[LinkReport], facts: &Facts) -> Finding {
    let Some(server) = server(wish, facts) else {
        return Finding::unknown(Id::RootPath).hint("the address of the server is not known");
    };
    match wish.root.transport {
        Transport::Rdma => connection(server, links, facts),
        Transport::Tcp => route(server, links, facts),
    }
}

/// Over RDMA the connection manager knows which port each connection goes by.
fn connection(server: IpAddr, links: &[LinkReport], facts: &Facts) -> Finding {
    let id = Id::RootPath;
    let to_server = |c: &&crate::facts::Connection| c.destination.ip() == server;
    let connections: Vec<_> = facts.connections.iter().filter(to_server).collect();
    let Some(first) = connections.first() else {
        return Finding::failed(id, "no RDMA connection", &format!("one to {server}"));
    };
    let port = |c: &crate::facts::Connection| match c.port {
        Some(port) => format!("{}/{port}", c.ifname),
        None => c.ifname.clone(),
    };
    let verified = |name: &str| {
        let mut links = links.iter().filter(|link| link.is_good());
        links.any(|link| link.name.as_deref() == Some(name))
    };
    let stray = connections.iter().find(|c| !verified(&port(c)));
    let seen = |c: &crate::facts::Connection| {
        let owner = c
            .owner
            .as_deref()
            .map_or(String::new(), |o| format!(", {o}"));
        format!("{} to {}{owner}", port(c), c.destination)
    };
    match stray {
        Some(stray) => Finding::failed(id, &seen(stray), "a verified link"),
        None => Finding::ok(id, &seen(first)),
    }
}

/// Over TCP the routing table says it: the longest prefix counts.
fn route(server: IpAddr, links: &[LinkReport], facts: &Facts) -> Finding {
    let id = Id::RootPath;
    let best = facts.netdevs.iter().filter_map(|netdev| {
        let prefix = prefix_to(netdev, server)?;
        Some((prefix, netdev))
    });
    let Some((_, netdev)) = best.max_by_key(|(prefix, _)| *prefix) else {
        return Finding::failed(id, "no route", &format!("one to {server}"));
    };
    let name = netdev.ifname.as_str();
    let mut good = links.iter().filter(|link| link.is_good());
    let carries = good.any(|link| {
        link.interface.as_deref() == Some(name) || link.netdev.as_deref() == Some(name)
    });
    if carries {
        Finding::ok(id, &format!("{server} through {name}"))
    } else {
        let seen = format!("{server} through {name}");
        Finding::failed(id, &seen, "the interface of a verified link")
    }
}

/// Length of the longest prefix that leads to `server` through this interface.
fn prefix_to(netdev: &Netdev, server: IpAddr) -> Option<u8> {
    let routes = netdev.routes.iter().map(|route| route.network);
    let reaching = routes.filter(|network| network.reaches(server));
    let default = netdev
        .gateways
        .iter()
        .any(|gateway| gateway.is_ipv6() == server.is_ipv6());
    reaching
        .map(|network| network.prefix)
        .chain(default.then_some(0))
        .max()
}
