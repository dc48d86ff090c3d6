// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: unreadable files: a check that did not pass and that needs an unreadable file is unknown
//! and names the file. The table names files by patterns: `*` stands for the rest of one name of a
//! path, `**` at the end for everything below, `{module}`, `{device}`, `{card}`, `{port}` and `{netdev}`
//! at the beginning for the directory of the checked object, `{slot}` for those of the functions of its
//! card at the handover.

use super::checks::Check;
use super::object::Object;
use crate::facts::functions::slot;
use crate::facts::role::Role;
use crate::facts::{self, Facts, Unread, addresses, links, rootfs, routes, select};
use crate::rdma::types::LinkLayer;
use crate::system::BOOT_ID;
use crate::system::pci::PCI;
use crate::verify::finding::{Finding, Status};
use crate::verify::report::LinkReport;
use crate::wish::expectation::{Expectation, Require, Target};
use crate::wish::ipoib::IpoibWish;

/// Files that identify ports and interfaces: while one of these is unread, no port or interface is
/// known to be absent.
pub const IDENTITY: &[&str] = &[
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
    links::DUMP,
];

/// What DHCP servers granted.
pub const GRANTED: &[&str] = &["/run/ibboot/**", BOOT_ID];

/// The addresses of all interfaces.
pub const ADDRESSES: &[&str] = &[addresses::DUMP, addresses::V6, addresses::V4];

/// The routes of all interfaces.
pub const ROUTES: &[&str] = &[routes::DUMP, routes::V4, routes::V6];

/// The mount at `/` and the devices below it.
pub const ROOT: &[&str] = &[
    "/proc/self/mountinfo",
    "/sys/dev/block/**",
    "/sys/class/block/**",
    "/sys/devices/**",
    "/sys/class/nvme/**",
    "/sys/class/nvme-subsystem/**",
    "/sys/class/scsi_host/**",
    "/sys/class/iscsi_connection/**",
    "/sys/class/iscsi_session/**",
    "/sys/fs/btrfs/**",
];

/// The connections of rdma_cm, and the indexes of the interfaces.
pub const CONNECTIONS: &[&str] = &[
    "/sys/class/net",
    "/sys/class/net/*/ifindex",
    "NETLINK_RDMA connections*",
    rootfs::CONNECTIONS,
];

/// The files of a saved tree that are about the whole look at the machine. Three of them list what could not
/// be read there: without them nothing that is missing in the tree was missing there. The last one is its
/// time, without which no lease is known to be valid.
const LISTS: &[&str] = &[
    facts::UNREAD,
    facts::FAILURES,
    facts::devices::SILENT,
    facts::TAKEN,
];

/// The finding, or an unknown one if a file that the check needs could not be read.
pub fn settle(finding: Finding, row: &Check, object: &Object<'_>, facts: &Facts) -> Finding {
    if let Some(unread) = among(&[LISTS], facts).next() {
        return Finding::unread(finding.check, unread);
    }
    if !row.complete && matches!(finding.status, Status::Ok | Status::Skipped) {
        return finding;
    }
    let is_needed = |unread: &&Unread| rests_on(row, object, facts, &unread.path);
    match facts.unread.iter().find(is_needed) {
        Some(unread) => Finding::unread(finding.check, unread),
        None => finding,
    }
}

/// Whether the check of this object needs the file.
fn rests_on(row: &Check, object: &Object<'_>, facts: &Facts, path: &str) -> bool {
    // Without a request for DHCP no server granted anything.
    let is_static = |wish: &IpoibWish| wish.dhcp.is_none() && wish.dhcp6.is_none();
    let interface = object.interface.as_ref();
    let is_static = interface.is_some_and(|interface| is_static(interface.wish));
    // What a port is decides only whether it is one of any port, on a machine with NVSwitches.
    let may_be_switch = object.port.as_ref().is_some_and(|port| {
        port.wish.target == Target::Any && port.found.device.bus_address.is_some()
    }) && facts.all_ports().any(|port| port.port.role == Role::Nvlink);
    let groups = row.files.iter().copied();
    let groups = groups.filter(|group| !is_static || *group != GRANTED);
    let groups = groups.filter(|group| may_be_switch || *group != SWITCH);
    let link = object.link.as_ref();
    // A RoCE bond has another link layer than an InfiniBand port.
    let may_be_joined = link.is_some_and(|link| {
        let may_join = select::may_join_bond(link.wish).is_some();
        may_join && link.wish.link_layer != Some(LinkLayer::InfiniBand)
    });
    let groups = groups.filter(|group| may_be_joined || *group != JOINED);
    let mut patterns = groups.flatten();
    patterns.any(|pattern| match place(pattern, object) {
        Some(pattern) => covers(&pattern, path),
        None => IDENTITY.iter().any(|pattern| covers(pattern, path)),
    })
}

/// The pattern with the directory of the object's module, device, card, slot, port or interface; none if
/// the object is not known to have one.
fn place(pattern: &str, object: &Object<'_>) -> Option<String> {
    let device = || Some(object.port.as_ref()?.found);
    Some(match pattern.split_once('}') {
        Some(("{module", rest)) => format!("/sys/module/{}{rest}", object.module?.name),
        Some(("{device", rest)) => {
            format!("/sys/class/infiniband/{}{rest}", device()?.device.ifname)
        }
        Some(("{card", rest)) => format!("{PCI}/{}{rest}", device()?.device.bus_address.as_ref()?),
        Some(("{slot", rest)) => {
            let address = object.link.as_ref()?.wish.bus_address.as_deref()?;
            format!("{PCI}/{}.*{rest}", slot(address)?)
        }
        Some(("{port", rest)) => {
            let found = device()?;
            let (device, port) = (&found.device.ifname, found.port.port);
            format!("/sys/class/infiniband/{device}/ports/{port}{rest}")
        }
        Some(("{netdev", rest)) => format!("/sys/class/net/{}{rest}", object.interface?.name?),
        _ => pattern.to_owned(),
    })
}

/// Whether the pattern matches the path, or a file below the path: a note about a directory also
/// means what is in the directory.
fn covers(pattern: &str, path: &str) -> bool {
    let mut names = path.split('/');
    for part in pattern.split('/') {
        let fits = match (part, names.next()) {
            ("**", _) => return true,
            (_, None) => return true,
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

/// The files of the census of HCAs.
pub const FUNCTIONS: &[&str] = &[
    "/sys/bus/pci/devices",
    "/sys/bus/pci/devices/*/modalias",
    "/sys/bus/pci/devices/*/driver",
    "/sys/bus/pci/devices/*/physfn",
];

/// What shows that a port has joined a RoCE bond since the handover (select.rs), and that its own interface
/// works. Without an operstate that is read, the carrier decides.
pub const JOINED: &[&str] = &[
    "/sys/class/net/*/device",
    "/sys/class/net/*/carrier",
    "/sys/class/net/*/bonding/slaves",
    "/sys/class/net/*/bonding/mode",
    "{slot}/modalias",
    "{slot}/driver",
    "{slot}/physfn",
];

/// What shows that the port is one of an NVSwitch, which no subnet manager has to configure (role.rs).
pub const SWITCH: &[&str] = &["{card}/vendor", "{card}/vpd"];

/// What shows which ports count: virtual functions and representors do not (select.rs, role.rs).
const ROLES: &[&str] = &["/sys/class/net/*/phys_port_name"];

/// What shows that two ports share a cable (cable.rs).
const CABLES: &[&str] = &[
    "/sys/class/infiniband/*/sys_image_guid",
    "/sys/class/infiniband/*/ports/*/gids/0",
    "/sys/class/infiniband/*/ports/*/lid",
];

fn among<'a>(lists: &[&[&str]], facts: &'a Facts) -> impl Iterator<Item = &'a Unread> {
    let lists = lists.concat();
    let is_listed = move |unread: &&Unread| lists.iter().any(|list| covers(list, &unread.path));
    facts.unread.iter().filter(is_listed)
}

/// Whether the file has what servers granted.
pub fn is_of_grants(unread: &Unread) -> bool {
    GRANTED.iter().any(|pattern| covers(pattern, &unread.path))
}

/// Whether it is not known what servers granted.
pub fn hides_grants(facts: &Facts) -> bool {
    facts.unread.iter().any(is_of_grants)
}

/// The unreadable files without which it is not known what these interfaces have.
pub fn of_interfaces<'a>(names: &[&str], facts: &'a Facts) -> impl Iterator<Item = &'a Unread> {
    let own: Vec<String> = names
        .iter()
        .map(|name| format!("/sys/class/net/{name}/**"))
        .collect();
    let is_own = move |path: &str| own.iter().any(|pattern| covers(pattern, path));
    let lists = [IDENTITY, ADDRESSES, ROUTES, GRANTED].concat();
    let is_listed = move |path: &str| lists.iter().any(|pattern| covers(pattern, path));
    let is_theirs = move |unread: &&Unread| is_own(&unread.path) || is_listed(&unread.path);
    facts.unread.iter().filter(is_theirs)
}

/// The unreadable files without which the number of ports is unknown: the lists of devices and
/// ports, for every port the census of HCAs, and what [`counted`] names.
pub fn hidden<'a>(
    expected: &Expectation,
    links: &[LinkReport],
    facts: &'a Facts,
) -> Vec<&'a Unread> {
    const PORTS: &[&str] = &["/sys/class/infiniband", "/sys/class/infiniband/*/ports"];
    let lists: &[&[&str]] = match expected.require {
        Require::Listed => &[],
        Require::Count(_) => &[PORTS],
        Require::All => &[PORTS, FUNCTIONS],
    };
    let counted = counted(expected, links, facts);
    let lists = among(lists, facts).filter(|unread| !counted.contains(unread));
    lists.chain(counted.iter().copied()).collect()
}

/// The unreadable files without which a port of `links` may count that does not, or two ports that
/// share a cable count twice. For "every port" such a port is one more that must be good.
pub fn counted<'a>(
    expected: &Expectation,
    links: &[LinkReport],
    facts: &'a Facts,
) -> Vec<&'a Unread> {
    // The ports of the handover are known.
    let is_open = expected.any_port.as_ref().is_some_and(|any| !any.reserve);
    let lists: &[&[&str]] = match expected.require {
        Require::Count(1) if is_open => &[ROLES, FUNCTIONS],
        Require::Count(number) if number > 1 => &[ROLES, FUNCTIONS, CABLES],
        _ => &[],
    };
    let is_of_good = |unread: &&Unread| {
        let mut good = links.iter().filter(|link| link.is_good());
        good.any(|link| is_about(&unread.path, link))
    };
    among(lists, facts).filter(is_of_good).collect()
}

/// Whether a file of [`ROLES`], [`FUNCTIONS`] or [`CABLES`] is one of the link's port, interface or
/// PCI function, or a list of all.
fn is_about(path: &str, link: &LinkReport) -> bool {
    let device = link.name.as_deref().and_then(|name| name.split('/').next());
    let (rest, own) = if let Some(rest) = path.strip_prefix("/sys/class/infiniband/") {
        (rest, device)
    } else if let Some(rest) = path.strip_prefix("/sys/class/net/") {
        (rest, link.netdev.as_deref())
    } else if let Some(rest) = path.strip_prefix("/sys/bus/pci/devices/") {
        (rest, link.bus_address.as_deref())
    } else {
        return true;
    };
    rest.split('/').next() == own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{self, Device, Netdev, PortRef};
    use crate::rdma::types::{Guid, Identity, Key};
    use crate::verify::checks::{Id, TABLE};
    use crate::verify::object::{Interface, Link, Port};
    use crate::wish::expectation::{LinkWish, ModuleWish};

    #[test]
    fn a_pattern_means_a_path_and_what_it_says_below_it() {
        for (pattern, path, fits) in [
            ("/sys/class/net", "/sys/class/net", true),
            ("/sys/class/net", "/sys/class/net/ib0", false),
            ("/sys/class/net/*/if*", "/sys/class/net/ib0/ifindex", true),
            ("/sys/class/net/*/if*", "/sys/class/net/ib0/mtu", false),
            ("/sys/class/net/*/type", "/sys/class/net/ib0", true),
            ("/sys/class/net/*/type", "/sys/class/net/ib0/mtu", false),
            ("/sys/dev/block/**", "/sys/dev/block/8:1/slaves/sda", true),
            ("/sys/dev/block/**", "/sys/dev/block", true),
            ("/sys/dev/block/**", "/sys/dev/bloc", false),
            ("rtnetlink routes", "rtnetlink routes", true),
        ] {
            assert_eq!(covers(pattern, path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_begins_at_the_object_or_it_means_what_tells_that_there_is_one() {
        let port = facts::Port {
            port: 2,
            ..facts::Port::default()
        };
        let device = Device {
            ifname: "mlx5_0".to_owned(),
            ports: vec![port],
            ..Device::default()
        };
        let netdev = Netdev::default();
        let module = ModuleWish {
            name: "ib_ipoib".to_owned(),
            ..ModuleWish::default()
        };
        let (link, ipoib) = (LinkWish::default(), IpoibWish::default());
        let mut object = Object {
            module: Some(&module),
            port: Some(Port {
                wish: &link,
                found: PortRef {
                    device: &device,
                    port: &device.ports[0],
                },
                least_rate: None,
                faster: None,
            }),
            interface: Some(Interface {
                wish: &ipoib,
                netdev: &netdev,
                name: Some("ib0"),
                is_bond: false,
            }),
            ..Object::default()
        };
        let rests =
            |id: Id, object: &Object<'_>, path| rests_on(id.row(), object, &Facts::default(), path);
        for (id, path) in [
            (Id::ModuleLive, "/sys/module/ib_ipoib/initstate"),
            (Id::PortNetdev, "/sys/class/infiniband/mlx5_0/parent"),
            (Id::PortPkey, "/sys/class/infiniband/mlx5_0/ports/2/pkeys/0"),
            (Id::PortPkey, "/sys/class/net/ib0/broadcast"),
            (Id::RootPath, "/proc/net/route"),
        ] {
            assert!(rests(id, &object, path), "{path}");
        }
        for (id, path) in [
            (Id::ModuleLive, "/sys/module/ib_core/initstate"),
            (Id::PortLid, "/sys/class/infiniband/mlx5_0/ports/1/lid"),
            (Id::IpoibUp, "/sys/class/net/ib1/flags"),
            (Id::IpoibUp, "/sys/class/net/ib0/type"),
        ] {
            assert!(!rests(id, &object, path), "{path}");
        }
        // While the interface is not known, every file that could identify one counts.
        object.interface = None;
        assert!(rests(Id::IpoibUp, &object, "/sys/class/net/ib1/type"));
        assert!(!rests(Id::IpoibUp, &object, "/sys/class/net/ib1/flags"));
    }

    #[test]
    fn what_shows_a_bond_matters_to_a_port_that_may_have_joined_one() {
        let ethernet = LinkWish {
            identity: Some(Identity {
                device: Key::NodeGuid(Guid(1)),
                port: 1,
            }),
            of_any: true,
            bus_address: Some("0000:01:00.1".to_owned()),
            link_layer: Some(LinkLayer::Ethernet),
            ..LinkWish::default()
        };
        let rests = |wish: &LinkWish, path: &str| {
            let object = Object {
                link: Some(Link { wish, port: None }),
                ..Object::default()
            };
            rests_on(Id::DevicePresent.row(), &object, &Facts::default(), path)
        };
        let carrier = "/sys/class/net/eth1/carrier";
        for path in [
            carrier,
            "/sys/class/net/bond0/bonding",
            "/sys/class/net/bond0/bonding/slaves",
            "/sys/bus/pci/devices",
            "/sys/bus/pci/devices/0000:01:00.0/driver",
            "/sys/bus/pci/devices/0000:01:00.1/modalias",
        ] {
            assert!(rests(&ethernet, path), "{path}");
        }
        for path in [
            "/sys/class/net/eth1/operstate",
            "/sys/bus/pci/devices/0000:81:00.1/modalias",
        ] {
            assert!(!rests(&ethernet, path), "{path}");
        }
        let others = [
            LinkWish {
                of_any: false,
                ..ethernet.clone()
            },
            LinkWish {
                of_bond: true,
                ..ethernet.clone()
            },
            LinkWish {
                link_layer: Some(LinkLayer::InfiniBand),
                ..ethernet
            },
        ];
        assert!(others.iter().all(|wish| !rests(wish, carrier)));
    }

    #[test]
    fn the_table_names_places_that_are_known() {
        const KNOWN: [&str; 7] = [
            "", "{module}", "{device}", "{card}", "{slot}", "{port}", "{netdev}",
        ];
        for row in TABLE {
            let patterns = row.files.iter().copied().flatten();
            for pattern in patterns.filter(|pattern| pattern.contains(['/', '{'])) {
                let begin = pattern.split('/').next().unwrap();
                assert!(KNOWN.contains(&begin), "{}: {pattern}", row.name);
            }
        }
    }
}
