// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the checks of the root file system: its mount, its transport and the path to its server.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::checks::Id;
use crate::facts::{DiskPath, Facts, Netdev, RootMount};
use crate::rdma::types::Connection;
use crate::verify::finding::{Finding, Status};
use crate::verify::report::LinkReport;
use crate::wish::expectation::RootWish;
use crate::wish::storage::{Protocol, Transport};

/// The hint if an NFS root has no connection (RPCRDMA_IDLE_DISC_TO, net/sunrpc/xprtrdma/xprt_rdma.h).
const IDLE: &str = "NFS closes a connection that is idle for 5 minutes, and opens it when it is needed: run stat -f / and \
                    check again, then look at: rdma resource show cm_id";
/// The same for a live image: what was read of it before is in memory.
const IDLE_IMAGE: &str = "NFS closes a connection that is idle for 5 minutes, and opens it when it is needed: read a file that nothing \
                          has read since the boot, check again, then look at: rdma resource show cm_id";
/// The hint if nothing names the address of a server.
const NO_ADDRESS: &str = "the address of the server is not known";
/// Why the route to the server of a live image is not looked for.
const BY_NAME: &str = "the command line names the server by host name";
/// The file system type of an overlay.
const OVERLAY: &str = "overlay";

/// Finding of `root.mounted`: the root file system comes from the requested server. Skipped in an
/// initramfs.
pub fn mounted(wish: &RootWish, facts: &Facts) -> Finding {
    let id = Id::RootMounted;
    let Some(mount) = &facts.root else {
        return Finding::unknown(id).hint("look at: cat /proc/self/mountinfo");
    };
    match mount.fstype.as_str() {
        "rootfs" => return Finding::skipped(id),
        "tmpfs" | "ramfs" => {
            let found = format!("{}: a file system in memory", mount.text());
            let hint = "find the program that filled this file system (for example Warewulf): the kernel does not report the source";
            return Finding::unanswered(id, &found).hint(hint);
        }
        _ => {}
    }
    match wish.root.protocol {
        Protocol::Nfs => nfs_mounted(wish.root.server, mount),
        Protocol::Iscsi | Protocol::Nvme => disk_mounted(wish, mount),
        Protocol::Live | Protocol::LiveNfs => live_mounted(mount),
    }
}

/// The names that dracut's dmsquash-live gives to its overlay and, without overlayfs, to its
/// snapshot.
fn live_mounted(mount: &RootMount) -> Finding {
    let found = mount.text();
    match mount.source.as_str() {
        "LiveOS_rootfs" | "/dev/mapper/live-rw" => Finding::ok(Id::RootMounted, &found),
        _ => Finding::failed(Id::RootMounted, &found, "a live image"),
    }
}

/// The finding for an overlay whose lowest layer is not known.
fn below_overlay() -> Finding {
    Finding {
        found: Some("an overlay: what is below is not known".to_owned()),
        ..Finding::skipped(Id::RootMounted)
    }
}

fn nfs_mounted(expected: Option<IpAddr>, mount: &RootMount) -> Finding {
    let id = Id::RootMounted;
    let found = match &mount.lower {
        Some(lower) => format!("{lower} below {}", mount.text()),
        None if mount.fstype == OVERLAY => return below_overlay(),
        None => mount.text(),
    };
    if mount.lower.is_none() && !mount.is_nfs() {
        return Finding::failed(id, &found, "nfs");
    }
    match (expected, mount.server) {
        (Some(expected), Some(server)) if expected != server => Finding::failed(
            id,
            &format!("{found}, server {server}"),
            &expected.to_string(),
        ),
        (Some(expected), None) => Finding {
            expected: Some(expected.to_string()),
            ..Finding::unanswered(id, &format!("{found}, server unknown"))
        }
        .hint("look at: grep ' nfs' /proc/self/mountinfo (ibboot found no valid addr= for this mount)"),
        _ => Finding::ok(id, &found),
    }
}

/// Every path to the disk must use the protocol, and one must lead to a named server: iscsid and multipathd
/// may add paths after the boot. The server of an NVMe disk may differ from the discovery controller that
/// reported it.
fn disk_mounted(wish: &RootWish, mount: &RootMount) -> Finding {
    let id = Id::RootMounted;
    let protocol = wish.root.protocol;
    let found = mount.text();
    let expected = format!("a server's disk by {protocol}");
    if mount.is_nfs() {
        return Finding::failed(id, &found, &expected);
    }
    if mount.paths.is_empty() {
        return match mount.fstype.as_str() {
            OVERLAY => below_overlay(),
            _ => {
                let (why, hint) = match mount.source.starts_with("/dev/") {
                    true => (
                        format!("{found}: no disk of this name"),
                        "check that /sys/class/block has this device: ibboot looks for the disk there",
                    ),
                    false => (
                        format!("{}: its disk is not known", mount.fstype),
                        "look at: findmnt / (ibboot finds the disk only if the source of the mount is a device below /dev)",
                    ),
                };
                Finding::unanswered(id, &why).hint(hint)
            }
        };
    }
    if let Some(other) = mount.paths.iter().find(|p| p.protocol != Some(protocol)) {
        let by = match other.protocol {
            Some(by) => format!("by {by}"),
            None => "a local disk".to_owned(),
        };
        return Finding::failed(id, &format!("{found}: {}, {by}", other.device), &expected);
    }
    let asked = match protocol {
        Protocol::Iscsi => servers(wish),
        _ => Vec::new(),
    };
    let servers: Vec<IpAddr> = mount.paths.iter().filter_map(|path| path.server).collect();
    let is_other = !asked.is_empty() && !servers.iter().any(|server| asked.contains(server));
    match servers.first().filter(|_| is_other) {
        Some(server) => {
            let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
            Finding::failed(
                id,
                &format!("{found}, server {server}"),
                &asked.join(" or "),
            )
        }
        None => Finding::ok(id, &format!("{found} by {protocol}")),
    }
}

/// The addresses of the named servers; empty if an address is not known.
fn servers(wish: &RootWish) -> Vec<IpAddr> {
    match wish.portals.as_slice() {
        [] => wish.root.server.into_iter().collect(),
        portals => {
            let known = portals.iter().map(|portal| portal.root.server);
            known.collect::<Option<Vec<IpAddr>>>().unwrap_or_default()
        }
    }
}

/// Whether an argument names this path to an iSCSI disk.
fn is_named(wish: &RootWish, path: &DiskPath) -> bool {
    match wish.portals.as_slice() {
        [] => path.server.is_some() && path.server == wish.root.server,
        portals => portals.iter().any(|portal| {
            path.server.is_some()
                && path.server == portal.root.server
                && portal.may_lead_to(path.target.as_deref())
        }),
    }
}

/// Finding of `root.transport`: the mount uses the requested transport (RDMA or TCP).
pub fn transport(wish: &RootWish, facts: &Facts) -> Finding {
    let id = Id::RootTransport;
    let mount = facts.root.as_ref();
    let disks = mount.map_or(&[][..], |mount| mount.paths.as_slice());
    let disks: Vec<_> = disks.iter().map(|path| path.transport.as_deref()).collect();
    let (found, hint) = match wish.root.protocol {
        Protocol::Nfs => {
            let option = mount.and_then(|mount| mount.transport.as_deref());
            (vec![option], "look at: findmnt -o OPTIONS /")
        }
        protocol @ (Protocol::Iscsi | Protocol::Nvme) => (disks, paths_of(protocol)),
        Protocol::Live | Protocol::LiveNfs => return Finding::skipped(id),
    };
    let expected = wish.root.carrier();
    // tcp6 and rdma6 are the same transports.
    let other =
        |found: &&Option<&str>| found.map(|found| found.trim_end_matches('6')) != Some(expected);
    match (found.iter().find(other), found.first()) {
        (Some(Some(found)), _) => Finding::failed(id, found, expected).hint(hint),
        (None, Some(Some(found))) => Finding::ok(id, found),
        _ => Finding::unknown(id).hint(hint),
    }
}

/// A path to the disk whose session or controller is lost: a warning, if another one is not lost.
fn lost(protocol: Protocol, paths: &[&DiskPath]) -> Option<Finding> {
    let (path, state) = paths.iter().find_map(|path| Some((path, path.lost()?)))?;
    let server = path.server.map_or(String::new(), |s| format!(" to {s}"));
    let found = format!("{}{server} is {state}", path.device);
    let expected = DiskPath::good_state(protocol).unwrap_or_default();
    let finding = Finding::failed(Id::RootPath, &found, expected).hint(paths_of(protocol));
    Some(match paths.iter().all(|path| path.lost().is_some()) {
        true => finding,
        false => finding.as_warning(),
    })
}

/// The command that lists the paths.
fn paths_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Nvme => "look at: nvme list-subsys",
        _ => "look at: iscsiadm -m session -P 1",
    }
}

/// A named server without a path to the disk. A target that has none of the disks must be logged in to. The
/// controllers of NVMe are those that discovery reported, at other addresses: only their number is compared.
fn missing(wish: &RootWish, mount: &RootMount) -> Option<Finding> {
    let protocol = wish.root.protocol;
    let (found, expected) = match protocol {
        Protocol::Iscsi => wish.portals.iter().find_map(|portal| {
            let server = portal.root.server?;
            let paths = mount.paths.iter();
            let mut paths = paths.filter(|path| portal.may_lead_to(path.target.as_deref()));
            match (paths.clone().next(), &portal.target) {
                (None, Some(target)) => {
                    let mut targets = mount.targets.iter();
                    let is_there = targets.any(|one| portal.may_lead_to(Some(one)));
                    let expected = format!("a session with {target} at {server}");
                    (!is_there).then(|| ("not logged in".to_owned(), expected))
                }
                _ => {
                    let leads = |path: &DiskPath| path.server.is_none_or(|one| one == server);
                    let expected = format!("a path to {server}");
                    (!paths.any(leads)).then(|| ("no path to this disk".to_owned(), expected))
                }
            }
        })?,
        Protocol::Nvme => {
            let servers = wish.portals.iter().filter_map(|portal| portal.root.server);
            // A controller has a path to each namespace.
            let controllers = mount.paths.iter().map(|path| &path.device);
            let found = controllers.collect::<BTreeSet<_>>().len();
            let named = servers.count();
            (found < named)
                .then(|| (format!("controllers: {found}"), format!("{named} or more")))?
        }
        _ => return None,
    };
    let finding = Finding::failed(Id::RootPath, &found, &expected).hint(paths_of(protocol));
    Some(finding.as_warning())
}

/// The path to each server of the file system; the worst one counts.
pub fn path(wish: &RootWish, links: &[LinkReport], facts: &Facts) -> Finding {
    let mount = facts.root.as_ref();
    let is_disk = matches!(wish.root.protocol, Protocol::Iscsi | Protocol::Nvme);
    let on_disks = mount.filter(|mount| is_disk && !mount.paths.is_empty());
    let Some(mount) = on_disks else {
        let mounted = mount.and_then(|mount| mount.server);
        return match wish.root.server.or(mounted) {
            Some(server) => way(server, wish, links, facts),
            // The mount of a live image does not show the server.
            None if wish.root.protocol.is_live() => match wish.root.transport {
                Transport::Rdma => connection(None, wish, links, facts),
                Transport::Tcp => Finding {
                    found: Some(BY_NAME.to_owned()),
                    ..Finding::skipped(Id::RootPath)
                },
            },
            None => Finding::unknown(Id::RootPath).hint(NO_ADDRESS),
        };
    };
    let mut disks: BTreeMap<(Option<&str>, &str), Vec<&DiskPath>> = BTreeMap::new();
    for path in &mount.paths {
        let array = path.array.as_deref();
        disks.entry((array, path.disk())).or_default().push(path);
    }
    let is_lost = |paths: &[&DiskPath]| {
        paths.iter().all(|path| {
            let is_down = |server| is_down(server, wish, facts);
            path.lost().is_some() || path.server.is_some_and(is_down)
        })
    };
    let lost_of = |array: &str| {
        let disks = disks.iter().filter(|((of, _), _)| *of == Some(array));
        let lost = disks.filter(|(_, paths)| is_lost(paths));
        // A controller has a path to each namespace, which may all be disks of the array.
        let ways = lost.map(|(_, paths)| {
            let first = paths.first().map(|path| &path.device);
            let same = paths.iter().filter(|path| Some(&path.device) == first);
            same.count()
        });
        ways.sum::<usize>()
    };
    // An array survives the loss of one disk.
    let disks = disks.iter().map(|((array, _), paths)| {
        let finding = disk(wish, paths, links, facts);
        let is_spared = is_lost(paths) && array.is_some_and(|array| lost_of(array) == 1);
        match is_spared && finding.status == Status::Critical {
            true => finding.as_warning(),
            false => finding,
        }
    });
    let all = disks.chain(missing(wish, mount));
    let worst = all.min_by_key(|finding| Reverse(finding.status));
    worst.unwrap_or_else(|| Finding::unknown(Id::RootPath).hint(NO_ADDRESS))
}

/// The paths to one disk, which works over one of them: a path that is down only warns, if another one is
/// good, and a path that no argument names does not count beside a good one that is named.
fn disk(wish: &RootWish, paths: &[&DiskPath], links: &[LinkReport], facts: &Facts) -> Finding {
    let lost = lost(wish.root.protocol, paths);
    if let Some(finding) = lost.clone().filter(|one| one.status == Status::Critical) {
        return finding;
    }
    let kept = paths.iter().filter(|path| path.lost().is_none());
    let mut judged: Vec<(IpAddr, bool, Finding)> = Vec::new();
    for path in kept {
        let Some(server) = path.server else { continue };
        if judged.iter().all(|(known, ..)| *known != server) {
            let is_named = wish.root.protocol != Protocol::Iscsi || is_named(wish, path);
            judged.push((server, is_named, way(server, wish, links, facts)));
        }
    }
    if let (true, Some(server)) = (judged.is_empty(), wish.root.server) {
        judged.push((server, true, way(server, wish, links, facts)));
    }
    let lost = lost.filter(|_| !judged.is_empty());
    let is_good = |finding: &Finding| finding.status == Status::Ok;
    let has_good = judged.iter().any(|(.., finding)| is_good(finding));
    let has_named = judged
        .iter()
        .any(|(_, named, finding)| *named && is_good(finding));
    judged.retain(|(_, named, finding)| *named || !has_named || is_good(finding));
    let found = judged.into_iter().map(|(server, _, finding)| {
        match has_good && is_down(server, wish, facts) {
            true => finding.as_warning(),
            false => finding,
        }
    });
    let worst = found
        .chain(lost)
        .min_by_key(|finding| Reverse(finding.status));
    worst.unwrap_or_else(|| Finding::unknown(Id::RootPath).hint(NO_ADDRESS))
}

/// Whether nothing leads to this server.
fn is_down(server: IpAddr, wish: &RootWish, facts: &Facts) -> bool {
    match wish.root.transport {
        Transport::Rdma => connections(Some(server), wish, facts).is_empty(),
        // The kernel keeps the routes of an interface that has lost its carrier.
        Transport::Tcp => ways(server, facts)
            .iter()
            .all(|netdev| netdev.carrier == Some(false)),
    }
}

/// The way to a server of the file system.
fn way(server: IpAddr, wish: &RootWish, links: &[LinkReport], facts: &Facts) -> Finding {
    match wish.root.transport {
        Transport::Rdma => connection(Some(server), wish, links, facts),
        Transport::Tcp => route(server, links, facts),
    }
}

/// The connections of the protocol's kernel module to the server, or to any if its address is not known: a user program or another module may
/// have connections to the same address. Every kernel that lists connections names the module of each
/// that a module has (`fill_res_name_pid` of drivers/infiniband/core/nldev.c).
fn connections<'a>(
    server: Option<IpAddr>,
    wish: &RootWish,
    facts: &'a Facts,
) -> Vec<&'a Connection> {
    let module = wish.root.module().unwrap_or_default();
    let is_clients = |c: &&Connection| {
        c.owner.as_deref() == Some(module)
            && server.is_none_or(|server| c.destination.ip() == server)
    };
    facts.connections.iter().filter(is_clients).collect()
}

/// Over RDMA: the connection manager knows the port of each connection.
fn connection(
    server: Option<IpAddr>,
    wish: &RootWish,
    links: &[LinkReport],
    facts: &Facts,
) -> Finding {
    let id = Id::RootPath;
    let connections = connections(server, wish, facts);
    let Some(first) = connections.first() else {
        let module = wish.root.module().unwrap_or_default();
        let to = server.map_or(String::new(), |server| format!(" to {server}"));
        let expected = format!("a connection of {module}{to}");
        let finding = Finding::failed(id, "no RDMA connection", &expected);
        return match wish.root.protocol {
            Protocol::Nfs => finding.hint(IDLE),
            Protocol::LiveNfs => finding.hint(IDLE_IMAGE),
            _ => finding,
        };
    };
    let port = |c: &Connection| match c.port {
        Some(port) => format!("{}/{port}", c.ifname),
        None => c.ifname.clone(),
    };
    let verified = |name: &str| carriers(links, |link| link.name.as_deref() == Some(name));
    let stray = connections.iter().find(|c| !verified(&port(c)).0);
    let found = |c: &Connection| {
        let owner = c
            .owner
            .as_deref()
            .map_or(String::new(), |o| format!(", {o}"));
        format!("{} to {}{owner}", port(c), c.destination)
    };
    match stray {
        Some(stray) if verified(&port(stray)).1 => unsure(&found(stray)),
        Some(stray) => Finding::failed(id, &found(stray), "a verified link"),
        None => Finding::ok(id, &found(first)),
    }
}

/// Whether a matching link is verified, and whether a link that may match is unknown: a link
/// without an interface may match too.
fn carriers(links: &[LinkReport], is_meant: impl Fn(&LinkReport) -> bool) -> (bool, bool) {
    let unknown = |link: &LinkReport| {
        link.status == Status::Unknown && (is_meant(link) || link.interface.is_none())
    };
    let good = links.iter().any(|link| link.is_good() && is_meant(link));
    (good, links.iter().any(unknown))
}

/// The path uses a link that could not be checked completely.
fn unsure(found: &str) -> Finding {
    Finding::unanswered(Id::RootPath, found).hint("see the unknown checks of this link")
}

/// The interfaces with the best route to a server.
fn ways(server: IpAddr, facts: &Facts) -> Vec<&Netdev> {
    let way = |netdev: &&Netdev| netdev.way_to(server);
    let best = facts
        .netdevs
        .iter()
        .filter_map(|netdev| netdev.way_to(server))
        .max();
    let netdevs = facts.netdevs.iter();
    netdevs
        .filter(|netdev| best.is_some() && way(netdev) == best)
        .collect()
}

/// Over TCP: the route with the longest prefix counts, then that with the lowest metric. Of equal
/// routes through several interfaces the kernel uses the one that was added first, which is not known.
fn route(server: IpAddr, links: &[LinkReport], facts: &Facts) -> Finding {
    let id = Id::RootPath;
    let netdevs = ways(server, facts);
    if netdevs.is_empty() {
        return Finding::failed(id, "no route", &format!("a route to {server}"));
    }
    let names: Vec<&str> = netdevs
        .iter()
        .map(|netdev| netdev.ifname.as_str())
        .collect();
    let carriers = names.iter().map(|name| {
        carriers(links, |link| {
            [&link.interface, &link.netdev]
                .iter()
                .any(|of| of.as_deref() == Some(name))
        })
    });
    let carriers: Vec<(bool, bool)> = carriers.collect();
    let found = format!("{server} through {}", names.join(" or "));
    if carriers.iter().all(|(is_verified, _)| *is_verified) {
        Finding::ok(id, &found)
    } else if carriers.iter().all(|carrier| *carrier == (false, false)) {
        Finding::failed(id, &found, "the interface of a verified link")
    } else if names.len() > 1 {
        unsure(&found).hint(&format!(
            "several interfaces have equal routes: ip route get {server} shows which one is used"
        ))
    } else {
        unsure(&found)
    }
}
