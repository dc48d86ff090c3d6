// SPDX-License-Identifier: MIT OR Apache-2.0
//! What could not be read proves nothing: a check that did not pass, and that rests on such a file, is
//! unknown and names the file.

use super::checks::Id;
use crate::facts::{Facts, PortRef, Unread, addresses, rootfs, routes};
use crate::system::root::BOOT_ID;
use crate::verify::report::{Finding, Status};

/// Files, or what else [`Unread::path`] names, each as a pattern: `*` stands for one name of a path, `**`
/// at the end for all below.
pub type Sources = Vec<String>;

/// By which a port or an interface is found: while one of these is unread, none is known to be absent.
const IDENTITY: [&str; 13] = [
    "/sys/class/infiniband",
    "/sys/class/infiniband/*/ports",
    "/sys/class/infiniband/*/node_guid",
    "/sys/class/infiniband/*/device",
    "/sys/class/infiniband/*/parent",
    "/sys/class/infiniband/*/ports/*/gids/0",
    "/sys/class/infiniband/*/ports/*/gid_attrs/ndevs/0",
    "/sys/class/net",
    "/sys/class/net/*/type",
    "/sys/class/net/*/address",
    "/sys/class/net/*/broadcast",
    "/sys/class/net/*/uevent",
    "/sys/class/net/*/if*",
];

/// The finding, unless something that it rests on could not be read.
pub fn settle(finding: Finding, facts: &Facts, sources: &[String]) -> Finding {
    if matches!(finding.status, Status::Ok | Status::Skipped) {
        return finding;
    }
    match first(facts, sources) {
        Some(unread) => Finding::unread(finding.check, unread),
        None => finding,
    }
}

/// The same of a finding that is true only of everything together: it does not pass either.
pub fn settle_whole(finding: Finding, facts: &Facts, sources: &[String]) -> Finding {
    match first(facts, sources) {
        Some(unread) if finding.status != Status::Critical => {
            Finding::unread(finding.check, unread)
        }
        _ => settle(finding, facts, sources),
    }
}

fn first<'f>(facts: &'f Facts, sources: &[String]) -> Option<&'f Unread> {
    let covered = |unread: &&Unread| sources.iter().any(|source| covers(source, &unread.path));
    facts.unread.iter().find(covered)
}

/// Whether the pattern means the path.
fn covers(pattern: &str, path: &str) -> bool {
    let mut names = path.split('/');
    for part in pattern.split('/') {
        let fits = match (part, names.next()) {
            ("**", _) => return true,
            (_, None) => false,
            (part, Some(name)) => match part.strip_suffix('*') {
                Some(begin) => name.starts_with(begin),
                None => part == name,
            },
        };
        if !fits {
            return false;
        }
    }
    names.next().is_none()
}

fn all<const N: usize>(patterns: [&str; N]) -> Sources {
    patterns.map(str::to_owned).to_vec()
}

/// What tells that a device, a port or an interface is there.
pub fn identity() -> Sources {
    all(IDENTITY)
}

/// The devices whose ports could not be listed: nobody knows how many ports there are.
pub fn hidden(facts: &Facts) -> impl Iterator<Item = &Unread> {
    let lists = ["/sys/class/infiniband", "/sys/class/infiniband/*/ports"];
    let is_list = move |unread: &&Unread| lists.iter().any(|list| covers(list, &unread.path));
    facts.unread.iter().filter(is_list)
}

/// Of the state of a module.
pub fn of_module(name: &str) -> Sources {
    vec![format!("/sys/module/{name}/**")]
}

/// Of the mount at `/` and what is below it.
pub fn of_root() -> Sources {
    all([
        "/proc/self/mountinfo",
        "/sys/dev/block/**",
        "/sys/class/block/**",
        "/sys/class/nvme/**",
        "/sys/class/nvme-subsystem/**",
        "/sys/class/scsi_host/**",
        "/sys/class/iscsi_connection/**",
    ])
}

/// Of the way to a server: the routes, and the connections of rdma_cm.
pub fn of_root_path() -> Sources {
    let mut sources = of_root();
    sources.extend(of_routes());
    sources.extend(all([
        "/sys/class/net",
        "/sys/class/net/*/ifindex",
        "NETLINK_RDMA connections*",
        rootfs::CONNECTIONS,
    ]));
    sources
}

/// Of a check of a port, or of the interface `netdev` on it.
pub fn of_port(id: Id, port: PortRef<'_>, netdev: Option<&str>) -> Sources {
    let device = format!("/sys/class/infiniband/{}", port.device.ifname);
    let base = format!("{device}/ports/{}", port.port.port);
    let of = |files: &[&str]| files.iter().map(|file| format!("{base}/{file}")).collect();
    match id {
        Id::PortLinkLayer => of(&["link_layer"]),
        Id::PortNetdev => [
            of(&["gid_attrs/ndevs/0", "link_layer"]),
            vec![format!("{device}/parent")],
        ]
        .concat(),
        Id::PortPhysicalState => of(&["phys_state"]),
        Id::PortState => of(&["state"]),
        Id::PortLid => of(&["lid"]),
        Id::PortSmLid => of(&["sm_lid"]),
        Id::PortRate => of(&["rate"]),
        Id::PortPkey => [of(&["pkeys/**"]), of_netdev(id, netdev)].concat(),
        _ => of_netdev(id, netdev),
    }
}

/// Of a check of an interface; none: it was not found.
pub fn of_netdev(id: Id, netdev: Option<&str>) -> Sources {
    let Some(name) = netdev else {
        return identity();
    };
    let base = format!("/sys/class/net/{name}");
    let of =
        |files: &[&str]| -> Sources { files.iter().map(|file| format!("{base}/{file}")).collect() };
    let index = || of(&["ifindex"]);
    let granted = || all(["/run/ibboot/**", BOOT_ID]);
    match id {
        Id::IpoibMode => of(&["mode", "address"]),
        Id::PortPkey => of(&["broadcast"]),
        Id::IpoibUp => of(&["flags"]),
        Id::IpoibCarrier => of(&["flags", "carrier"]),
        Id::IpoibMtu => [of(&["mtu"]), granted()].concat(),
        Id::BondPresent => of(&["uevent", "bonding"]),
        Id::BondMode | Id::BondOptions => of(&["bonding/**"]),
        Id::BondSlaves => [of(&["bonding/**"]), identity()].concat(),
        Id::BondCarrier => of(&["flags", "carrier", "bonding/**"]),
        Id::LeasePresent => [index(), granted()].concat(),
        Id::Lease6Present | Id::AddressPresent => [
            index(),
            granted(),
            all([addresses::DUMP, addresses::V6, addresses::V4]),
        ]
        .concat(),
        Id::RoutePresent => [index(), granted(), of_routes()].concat(),
        _ => identity(),
    }
}

fn of_routes() -> Sources {
    all([routes::DUMP, routes::V4, routes::V6])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_a_path_and_what_it_says_below_it() {
        for (pattern, path, fits) in [
            ("/sys/class/net", "/sys/class/net", true),
            ("/sys/class/net", "/sys/class/net/ib0", false),
            ("/sys/class/net/*/if*", "/sys/class/net/ib0/ifindex", true),
            ("/sys/class/net/*/if*", "/sys/class/net/ib0/mtu", false),
            ("/sys/class/net/*/type", "/sys/class/net/type", false),
            ("/sys/dev/block/**", "/sys/dev/block/8:1/slaves/sda", true),
            ("/sys/dev/block/**", "/sys/dev/block", true),
            ("/sys/dev/block/**", "/sys/dev/bloc", false),
            ("rtnetlink routes", "rtnetlink routes", true),
        ] {
            assert_eq!(covers(pattern, path), fits, "{pattern} {path}");
        }
    }
}
