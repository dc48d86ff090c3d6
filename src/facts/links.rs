// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network interfaces. Source on a running machine: one dump of rtnetlink for the list and for what
//! changes (up, carrier, operational state, MTU), sysfs for what identifies an interface; in a
//! saved tree: sysfs.

use std::collections::{BTreeMap, BTreeSet};

use super::rtnetlink::{Dumps, Link};
use super::{Device, Look, Netdev, Port};
use crate::hardware::{HardwareType, pkey_of_broadcast, unhex};
use crate::rdma::netlink::Error;
use crate::rdma::types::Guid;
use crate::system::root::natural;
use crate::wish::bond::BondFacts;
use crate::wish::ipoib::{self, IpoibFacts};

/// Name of the rtnetlink dump in a note about a failure.
pub const DUMP: &str = "rtnetlink links";
/// The directory of all interfaces.
pub(super) const CLASS: &str = "/sys/class/net";
/// IFF_UP (linux/if.h).
const UP: u32 = 1;

/// What rtnetlink reported at the last look, and the interfaces that followed from it.
#[derive(Debug, Default)]
pub struct Links {
    dumps: Option<Dumps>,
    known: Vec<(Link, Netdev)>,
}

impl Links {
    /// The files of all interfaces are read again.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// A dump on the socket, which is opened anew after a failure.
    pub(super) fn dump<T>(
        &mut self,
        dump: impl FnOnce(&Dumps) -> Result<Vec<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        let dumps = match self.dumps.take() {
            Some(dumps) => dumps,
            None => Dumps::open()?,
        };
        let found = dump(&dumps)?;
        self.dumps = Some(dumps);
        Ok(found)
    }
}

/// What changes while an interface exists.
#[derive(Debug, Default)]
struct State {
    ifindex: Option<u32>,
    mtu: Option<u32>,
    up: bool,
    carrier: Option<bool>,
    operstate: Option<String>,
}

/// All interfaces of this network namespace, by name, without addresses and routes.
pub(super) fn netdevs(look: &mut Look<'_>, links: &mut Links) -> Vec<Netdev> {
    if look.root().is_live() {
        return live(look, links);
    }
    let names = look.list(CLASS).into_iter();
    // A file, not an interface (drivers/net/bonding/bond_sysfs.c).
    let names = names.filter(|name| name != "bonding_masters");
    names
        .map(|name| {
            let state = of_files(look, &name);
            netdev(look, name, state)
        })
        .collect()
}

fn live(look: &mut Look<'_>, links: &mut Links) -> Vec<Netdev> {
    let mut found = match links.dump(Dumps::links) {
        Ok(found) => found,
        Err(e) => {
            look.note(DUMP, e);
            return Vec::new();
        }
    };
    found.sort_by_cached_key(|link| natural(&link.name));
    let mut before = std::mem::take(&mut links.known);
    let is_quiet = before.iter().map(|(old, _)| old).eq(&found);
    let mut netdevs = Vec::with_capacity(found.len());
    for link in found {
        let kept = before.iter().position(|(old, _)| old.index == link.index);
        let kept = kept
            .map(|at| before.swap_remove(at))
            .filter(|(old, netdev)| has_same_files(old, &link) && is_told(netdev, &link, is_quiet));
        let notes = look.unread.len();
        let netdev = match kept {
            Some((_, netdev)) => in_state(netdev, of_link(&link)),
            None => {
                if look.root().is_recording() {
                    of_files(look, &link.name);
                }
                let mut netdev = netdev(look, link.name.clone(), of_link(&link));
                if let Some(ipoib) = &mut netdev.ipoib {
                    ipoib.mode = ipoib.mode.or_else(|| link.ipoib_mode());
                }
                netdev
            }
        };
        netdevs.push(netdev.clone());
        // An interface with a file that could not be read is read again.
        if look.unread.len() == notes {
            links.known.push((link, netdev));
        }
    }
    netdevs
}

/// Whether no more than the state has changed, which the message tells completely.
fn has_same_files(old: &Link, new: &Link) -> bool {
    old == new || {
        let in_new_state = Link {
            flags: new.flags,
            mtu: new.mtu,
            carrier: new.carrier,
            operstate: new.operstate,
            ..old.clone()
        };
        in_new_state == *new
    }
}

/// Whether a change of the interface's files changes a message of rtnetlink. The mode of an IPoIB
/// interface is in its message only if the driver reports it (ipoib_netlink.c): IFLA_LINKINFO of an
/// interface in a bond may have nothing but the bond's attributes. The slaves of a bond are in the
/// messages of the slaves.
fn is_told(netdev: &Netdev, link: &Link, is_quiet: bool) -> bool {
    match (&netdev.ipoib, &netdev.bond) {
        (Some(_), _) => link.ipoib_mode().is_some(),
        (_, Some(_)) => is_quiet,
        _ => true,
    }
}

fn of_link(link: &Link) -> State {
    // RFC 2863, in the words of sysfs (net/core/net-sysfs.c, operstates).
    const STATES: [&str; 7] = [
        "unknown",
        "notpresent",
        "down",
        "lowerlayerdown",
        "testing",
        "dormant",
        "up",
    ];
    let up = link.flags & UP != 0;
    State {
        ifindex: Some(link.index),
        mtu: link.mtu,
        up,
        carrier: link.carrier.filter(|_| up),
        operstate: link
            .operstate
            .and_then(|number| STATES.get(usize::from(number)))
            .map(|word| (*word).to_owned()),
    }
}

fn of_files(look: &mut Look<'_>, ifname: &str) -> State {
    let base = format!("{CLASS}/{ifname}");
    let number = |text: &str| text.parse::<u32>();
    let hexadecimal = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16);
    State {
        up: look
            .parsed(&format!("{base}/flags"), hexadecimal)
            .is_some_and(|flags| flags & UP != 0),
        // A read of the carrier of an interface that is down fails with EINVAL
        // (net/core/net-sysfs.c).
        carrier: look
            .text_or(&format!("{base}/carrier"), libc::EINVAL)
            .map(|text| text == "1"),
        ifindex: look.parsed(&format!("{base}/ifindex"), number),
        mtu: look.parsed(&format!("{base}/mtu"), number),
        operstate: look.text(&format!("{base}/operstate")),
    }
}

/// Reads what identifies the interface.
fn netdev(look: &mut Look<'_>, ifname: String, state: State) -> Netdev {
    let base = format!("{CLASS}/{ifname}");
    let kind = look.text(&format!("{base}/uevent")).and_then(|uevent| {
        uevent
            .lines()
            .find_map(|line| line.strip_prefix("DEVTYPE=").map(str::to_owned))
    });
    let hardware_type = look.parsed(&format!("{base}/type"), str::parse);
    // A bond of IPoIB interfaces has their hardware type and the address of one of them.
    let bond = (kind.as_deref() == Some("bond")).then(|| bond(look, &base));
    let is_ipoib = hardware_type == Some(HardwareType::InfiniBand) && bond.is_none();
    let lower = (is_ipoib || kind.as_deref() == Some("vlan"))
        .then(|| look.parsed(&format!("{base}/iflink"), str::parse::<u32>))
        .flatten();
    // The link of a parent is the parent itself (ipoib_get_iflink); a child that was created through
    // rtnetlink has no `parent` file.
    let lower = lower.filter(|lower| Some(*lower) != state.ifindex);
    let ipoib = is_ipoib.then(|| IpoibFacts {
        // __ipoib_vlan_add of drivers/infiniband/ulp/ipoib/ipoib_vlan.c.
        legacy: look.text(&format!("{base}/parent")).is_some(),
        mode: look.parsed(&format!("{base}/mode"), |text| {
            ipoib::Mode::parse(text).ok_or("neither datagram nor connected")
        }),
        pkey: look.parsed(&format!("{base}/broadcast"), |text| {
            let pkey = unhex(text).and_then(|bytes| pkey_of_broadcast(&bytes));
            pkey.ok_or("not a hardware address of IPoIB")
        }),
        child: lower.is_some(),
    });
    let netdev = Netdev {
        hardware_type,
        address: look.parsed(&format!("{base}/address"), str::parse),
        kind,
        lower,
        bus_address: look.link_name(&format!("{base}/device")),
        ipoib,
        bond,
        ifname,
        ..Netdev::default()
    };
    in_state(netdev, state)
}

/// Root may give an interface and its children another GID of their port (ipoib_set_mac and
/// set_base_guid of drivers/infiniband/ulp/ipoib/ipoib_main.c): an address whose GUID no port has is
/// that of the port with the device and the number of the parent. Without its number a card with
/// several ports is left out.
pub(super) fn bind_aliases(netdevs: &mut [Netdev], devices: &[Device], look: &mut Look<'_>) {
    let ports = || devices.iter().flat_map(|device| &device.ports);
    let known: BTreeSet<Guid> = ports().filter_map(|port| port.port_guid).collect();
    let mut aliases: BTreeMap<Guid, Option<Guid>> = BTreeMap::new();
    for netdev in netdevs.iter() {
        let guid = netdev.port_guid().filter(|guid| !known.contains(guid));
        let (Some(guid), Some(card), true) = (guid, &netdev.bus_address, netdev.is_parent()) else {
            continue;
        };
        let is_below = |device: &&Device| device.bus_address.as_ref() == Some(card);
        let below = devices.iter().filter(is_below);
        let below: Vec<&Port> = below
            .flat_map(|device| &device.ports)
            .filter(|port| port.role.is_link())
            .collect();
        let port = match below[..] {
            [port] => port.port_guid,
            _ => {
                let path = format!("{CLASS}/{}/dev_id", netdev.ifname);
                let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16);
                let number = look
                    .parsed(&path, number)
                    .and_then(|index| index.checked_add(1));
                let mut numbered = below.iter().filter(|port| Some(port.port) == number);
                let port = numbered.next().filter(|_| numbered.next().is_none());
                port.and_then(|port| port.port_guid)
            }
        };
        // Ports with the same other GUID: of their children nothing tells which one is below.
        let same = aliases.entry(guid).or_insert(port);
        *same = same.filter(|_| *same == port);
    }
    for netdev in netdevs.iter_mut() {
        let guid = netdev.port_guid();
        netdev.alias_of = guid.and_then(|guid| *aliases.get(&guid)?);
    }
}

fn in_state(netdev: Netdev, state: State) -> Netdev {
    Netdev {
        ifindex: state.ifindex,
        mtu: state.mtu,
        up: state.up,
        carrier: state.carrier,
        operstate: state.operstate,
        ..netdev
    }
}

/// Reads a bond's own directory. Besides options it contains state: the slaves, the active slave,
/// and the values of 802.3ad.
fn bond(look: &mut Look<'_>, base: &str) -> BondFacts {
    let mut found = BondFacts::default();
    for name in look.list(&format!("{base}/bonding")) {
        let is_state =
            matches!(name.as_str(), "mii_status" | "queue_id") || name.starts_with("ad_");
        if is_state {
            continue;
        }
        let Some(text) = look.text(&format!("{base}/bonding/{name}")) else {
            continue;
        };
        match name.as_str() {
            "slaves" => found.slaves = text.split_ascii_whitespace().map(str::to_owned).collect(),
            "active_slave" => found.active_slave = Some(text).filter(|text| !text.is_empty()),
            _ => found.options.push(format!("{name}={text}")),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::root::Root;

    #[test]
    fn a_link_has_the_values_of_its_files() {
        let link = |flags, carrier, operstate| Link {
            index: 4,
            flags,
            carrier: Some(carrier),
            operstate: Some(operstate),
            ..Link::default()
        };
        let shown = |link: &Link| {
            let state = of_link(link);
            (state.up, state.carrier, state.operstate.unwrap_or_default())
        };
        let word = |text: &str| text.to_owned();
        assert_eq!(
            shown(&link(0x1003, true, 6)),
            (true, Some(true), word("up"))
        );
        assert_eq!(
            shown(&link(0x1003, false, 3)),
            (true, Some(false), word("lowerlayerdown"))
        );
        // sysfs shows no carrier of an interface that is down.
        assert_eq!(shown(&link(0x1002, true, 2)), (false, None, word("down")));
        assert_eq!(of_link(&link(1, true, 7)).operstate, None);
    }

    #[test]
    fn a_change_of_state_is_in_the_message_and_in_no_file() {
        let before = Link {
            index: 4,
            name: "ib0".to_owned(),
            hardware_type: 32,
            flags: 0x1002,
            lower: Some(4),
            address: vec![0x80; 20],
            broadcast: vec![0; 20],
            info: Some(vec![1]),
            ..Link::default()
        };
        let up = Link {
            flags: 0x1003,
            mtu: Some(2044),
            carrier: Some(true),
            operstate: Some(6),
            ..before.clone()
        };
        assert!(has_same_files(&before, &up));
        let known = Netdev {
            ifname: "ib0".to_owned(),
            ..Netdev::default()
        };
        let found = in_state(known, of_link(&up));
        assert_eq!((found.ifname.as_str(), found.mtu), ("ib0", Some(2044)));
        assert_eq!((found.up, found.carrier), (true, Some(true)));
        let changes: [fn(&mut Link); 6] = [
            |link| link.name.push('0'),
            |link| link.hardware_type = 1,
            |link| link.lower = None,
            |link| link.address[19] = 1,
            |link| link.broadcast[9] = 1,
            |link| link.info = None,
        ];
        for change in changes {
            let mut link = up.clone();
            change(&mut link);
            assert!(!has_same_files(&up, &link), "{link:?}");
        }
    }

    #[test]
    fn an_address_with_another_gid_of_the_port_is_of_the_port_with_its_device_and_number() {
        let bound = |guids: [u8; 4], ports: u32, dev_ids: [Option<&str>; 2]| {
            let dir = tempfile::tempdir().unwrap();
            let netdev = |(index, last): (usize, u8)| {
                let address = format!("{}{last:02x}", "00:".repeat(19));
                let child = index > 1;
                Netdev {
                    ifname: format!("ib{index}"),
                    address: address.parse().ok(),
                    bus_address: (!child).then(|| "card".to_owned()),
                    ipoib: Some(IpoibFacts {
                        child,
                        legacy: child,
                        ..IpoibFacts::default()
                    }),
                    ..Netdev::default()
                }
            };
            let mut netdevs: Vec<Netdev> = guids.into_iter().enumerate().map(netdev).collect();
            for (netdev, dev_id) in netdevs.iter().zip(dev_ids) {
                let base = dir.path().join(format!("sys/class/net/{}", netdev.ifname));
                std::fs::create_dir_all(&base).unwrap();
                if let Some(dev_id) = dev_id {
                    std::fs::write(base.join("dev_id"), dev_id).unwrap();
                }
            }
            let port = |number: u32| Port {
                port: number,
                port_guid: Some(Guid(u64::from(number))),
                ..Port::default()
            };
            let device = Device {
                bus_address: Some("card".to_owned()),
                ports: (1..=ports).map(port).collect(),
                ..Device::default()
            };
            let root = Root::new(dir.path());
            bind_aliases(&mut netdevs, &[device], &mut Look::new(&root));
            let found = netdevs.iter().map(|netdev| netdev.port_guid().unwrap().0);
            found.collect::<Vec<_>>()
        };
        let numbers = [Some("0x0\n"), Some("0x1\n")];
        assert_eq!(bound([9, 1, 9, 8], 1, [None; 2]), [1, 1, 1, 8]);
        assert_eq!(bound([1, 9, 9, 1], 2, numbers), [1, 2, 2, 1]);
        assert_eq!(bound([8, 9, 9, 8], 2, numbers), [1, 2, 2, 1]);
        assert_eq!(bound([1, 9, 9, 1], 2, [None; 2]), [1, 9, 9, 1]);
        assert_eq!(bound([9, 9, 9, 1], 2, numbers), [9, 9, 9, 1]);
        assert_eq!(bound([1, 9, 9, 1], 2, [None, Some("0x4\n")]), [1, 9, 9, 1]);
    }

    #[test]
    fn files_that_no_message_tells_of_are_read_again() {
        let netdev = |ipoib: bool, bond: bool| Netdev {
            ipoib: ipoib.then(IpoibFacts::default),
            bond: bond.then(BondFacts::default),
            ..Netdev::default()
        };
        // Lengths and kinds of netlink(7) attributes: IFLA_INFO_DATA with IFLA_IPOIB_MODE 1, and
        // IFLA_INFO_SLAVE_KIND "bond".
        let info = |words: &[u16]| Link {
            info: Some(words.iter().copied().flat_map(u16::to_ne_bytes).collect()),
            ..Link::default()
        };
        let bare = Link::default();
        let with_info = info(&[12, libc::IFLA_INFO_DATA, 6, 2, 1, 0]);
        let of_slave = Link {
            info: Some([&info(&[9, 4]).info.unwrap()[..], b"bond\0\0\0\0"].concat()),
            ..Link::default()
        };
        assert!(is_told(&netdev(false, false), &bare, false));
        assert!(!is_told(&netdev(true, false), &bare, true));
        assert!(is_told(&netdev(true, false), &with_info, false));
        assert!(!is_told(&netdev(true, false), &of_slave, true));
        assert!(!is_told(&netdev(false, true), &with_info, false));
        assert!(is_told(&netdev(false, true), &with_info, true));
    }
}
