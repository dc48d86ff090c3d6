// SPDX-License-Identifier: MIT OR Apache-2.0
//! What carries the root file system: its mount, and the way to its server.

use std::net::IpAddr;

use super::checks::Id;
use crate::facts::{Facts, Netdev, RootMount};
use crate::verify::report::{Finding, LinkReport, Status};
use crate::wish::expectation::RootWish;
use crate::wish::storage::{Protocol, Transport};

pub fn mounted(wish: &RootWish, facts: &Facts) -> Finding {
    let id = Id::RootMounted;
    let Some(mount) = &facts.root else {
        return Finding::unknown(id).hint("look at: cat /proc/self/mountinfo");
    };
    if matches!(mount.fstype.as_str(), "rootfs" | "tmpfs" | "ramfs") {
        return Finding::skipped(id);
    }
    match wish.root.protocol {
        Protocol::Nfs => nfs_mounted(wish.root.server, mount),
        Protocol::Iscsi | Protocol::Nvme => disk_mounted(wish, mount),
        Protocol::Live => live_mounted(mount),
    }
}

/// As dracut's dmsquash-live names its overlay, and its snapshot where there is no overlayfs.
fn live_mounted(mount: &RootMount) -> Finding {
    let seen = format!("{} {}", mount.fstype, mount.source);
    match mount.source.as_str() {
        "LiveOS_rootfs" | "/dev/mapper/live-rw" => Finding::ok(Id::RootMounted, &seen),
        _ => Finding::failed(Id::RootMounted, &seen, "a live image"),
    }
}

fn nfs_mounted(wanted: Option<IpAddr>, mount: &RootMount) -> Finding {
    let id = Id::RootMounted;
    let seen = format!("{} {}", mount.fstype, mount.source);
    if !mount.fstype.starts_with("nfs") {
        return Finding::failed(id, &seen, "nfs");
    }
    match (wanted, mount.server) {
        (Some(wanted), Some(server)) if wanted != server => {
            Finding::failed(id, &format!("{seen}, server {server}"), &wanted.to_string())
        }
        _ => Finding::ok(id, &seen),
    }
}

/// Every way to the disk must be one of the protocol. The server of NVMe may be another one than
/// the discovery controller that told of it.
fn disk_mounted(wish: &RootWish, mount: &RootMount) -> Finding {
    let id = Id::RootMounted;
    let protocol = wish.root.protocol;
    let seen = format!("{} {}", mount.fstype, mount.source);
    let wanted = format!("a server's disk by {protocol}");
    if mount.fstype.starts_with("nfs") {
        return Finding::failed(id, &seen, &wanted);
    }
    // What an overlay lies on is not known.
    if mount.paths.is_empty() {
        return Finding::skipped(id);
    }
    if let Some(other) = mount.paths.iter().find(|p| p.protocol != Some(protocol)) {
        let by = match other.protocol {
            Some(by) => format!("by {by}"),
            None => "a local disk".to_owned(),
        };
        return Finding::failed(id, &format!("{seen}: {}, {by}", other.device), &wanted);
    }
    let asked = match protocol {
        Protocol::Iscsi => servers(wish),
        _ => Vec::new(),
    };
    let mut servers = mount.paths.iter().filter_map(|path| path.server);
    match servers.find(|server| !asked.is_empty() && !asked.contains(server)) {
        Some(server) => {
            let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
            Finding::failed(id, &format!("{seen}, server {server}"), &asked.join(" or "))
        }
        None => Finding::ok(id, &format!("{seen} by {protocol}")),
    }
}

/// The servers that are named; none where one of them is not known by its address.
fn servers(wish: &RootWish) -> Vec<IpAddr> {
    match wish.portals.as_slice() {
        [] => wish.root.server.into_iter().collect(),
        portals => {
            let known: Option<Vec<IpAddr>> = portals.iter().copied().collect();
            known.unwrap_or_default()
        }
    }
}

pub fn transport(wish: &RootWish, facts: &Facts) -> Finding {
    let id = Id::RootTransport;
    let mount = facts.root.as_ref();
    let disks = mount.map_or(&[][..], |mount| mount.paths.as_slice());
    let disks: Vec<_> = disks.iter().map(|path| path.transport.as_deref()).collect();
    let (seen, hint) = match wish.root.protocol {
        Protocol::Nfs => {
            let option = mount.and_then(|mount| mount.transport.as_deref());
            (vec![option], "look at: findmnt -o OPTIONS /")
        }
        Protocol::Iscsi => (disks, "look at: iscsiadm -m session -P 1"),
        Protocol::Nvme => (disks, "look at: nvme list-subsys"),
        Protocol::Live => return Finding::skipped(id),
    };
    let wanted = wish.root.carrier();
    // tcp6 and rdma6 are the same.
    let other = |seen: &&Option<&str>| seen.map(|seen| seen.trim_end_matches('6')) != Some(wanted);
    match (seen.iter().find(other), seen.first()) {
        (Some(Some(seen)), _) => Finding::failed(id, seen, wanted).hint(hint),
        (None, Some(Some(seen))) => Finding::ok(id, seen),
        _ => Finding::unknown(id).hint(hint),
    }
}

/// The way to each server of the file system; the first that is not as it should be counts.
pub fn path(wish: &RootWish, links: &[LinkReport], facts: &Facts) -> Finding {
    let mount = facts.root.as_ref();
    let disks = mount.map_or(&[][..], |mount| mount.paths.as_slice());
    let mut servers: Vec<IpAddr> = match wish.root.protocol {
        Protocol::Nfs | Protocol::Live => Vec::new(),
        Protocol::Iscsi | Protocol::Nvme => disks.iter().filter_map(|path| path.server).collect(),
    };
    servers.dedup();
    if servers.is_empty() {
        let mounted = mount.and_then(|mount| mount.server);
        servers.extend(wish.root.server.or(mounted));
    }
    let found: Vec<Finding> = servers
        .into_iter()
        .map(|server| match wish.root.transport {
            Transport::Rdma => connection(server, links, facts),
            Transport::Tcp => route(server, links, facts),
        })
        .collect();
    let wrong = found.iter().find(|finding| finding.status != Status::Ok);
    match wrong.or(found.first()) {
        Some(finding) => finding.clone(),
        // Its name is in the command line, and nothing depends on it any more.
        None if wish.root.protocol == Protocol::Live => Finding::skipped(Id::RootPath),
        None => Finding::unknown(Id::RootPath).hint("the address of the server is not known"),
    }
}

/// Over RDMA the connection manager knows which port each connection goes by.
fn connection(server: IpAddr, links: &[LinkReport], facts: &Facts) -> Finding {
    let id = Id::RootPath;
    let to_server = |c: &&crate::rdma::types::Connection| c.destination.ip() == server;
    let connections: Vec<_> = facts.connections.iter().filter(to_server).collect();
    let Some(first) = connections.first() else {
        return Finding::failed(
            id,
            "no RDMA connection",
            &format!("a connection to {server}"),
        );
    };
    let port = |c: &crate::rdma::types::Connection| match c.port {
        Some(port) => format!("{}/{port}", c.ifname),
        None => c.ifname.clone(),
    };
    let verified = |name: &str| carriers(links, |link| link.name.as_deref() == Some(name));
    let stray = connections.iter().find(|c| !verified(&port(c)).0);
    let seen = |c: &crate::rdma::types::Connection| {
        let owner = c
            .owner
            .as_deref()
            .map_or(String::new(), |o| format!(", {o}"));
        format!("{} to {}{owner}", port(c), c.destination)
    };
    match stray {
        Some(stray) if verified(&port(stray)).1 => unsure(&seen(stray)),
        Some(stray) => Finding::failed(id, &seen(stray), "a verified link"),
        None => Finding::ok(id, &seen(first)),
    }
}

/// Whether a link that is meant is verified, and whether one is that could not be looked at whole: it may
/// be one that no port was found for.
fn carriers(links: &[LinkReport], is_meant: impl Fn(&LinkReport) -> bool) -> (bool, bool) {
    let unknown = |link: &LinkReport| {
        link.status == Status::Unknown && (is_meant(link) || link.interface.is_none())
    };
    let good = links.iter().any(|link| link.is_good() && is_meant(link));
    (good, links.iter().any(unknown))
}

/// It goes by a link of which not all is known.
fn unsure(seen: &str) -> Finding {
    Finding {
        seen: Some(seen.to_owned()),
        ..Finding::unknown(Id::RootPath)
    }
    .hint("see the unknown checks of this link")
}

/// Over TCP the routing table says it: the longest prefix counts.
fn route(server: IpAddr, links: &[LinkReport], facts: &Facts) -> Finding {
    let id = Id::RootPath;
    let best = facts.netdevs.iter().filter_map(|netdev| {
        let prefix = prefix_to(netdev, server)?;
        Some((prefix, netdev))
    });
    let Some((_, netdev)) = best.max_by_key(|(prefix, _)| *prefix) else {
        return Finding::failed(id, "no route", &format!("a route to {server}"));
    };
    let name = netdev.ifname.as_str();
    let carriers = carriers(links, |link| {
        link.interface.as_deref() == Some(name) || link.netdev.as_deref() == Some(name)
    });
    let seen = format!("{server} through {name}");
    match carriers {
        (true, _) => Finding::ok(id, &seen),
        (_, true) => unsure(&seen),
        _ => Finding::failed(id, &seen, "the interface of a verified link"),
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
