// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: configuration files that tell NetworkManager, systemd-networkd and network-legacy how to
//! treat ibboot's interfaces.
//!
//! In the initramfs these programs leave the interfaces alone. For the real root `rd.ib.handover=`
//! decides. Sources: NetworkManager.conf(5), nm-settings-keyfile(5), systemd.network(5).

mod profiles;

use std::collections::{BTreeMap, BTreeSet};

use kernel_cmdline::{Guid, Handover, HwAddr};
use profiles::{networkd_bond, networkd_profiles, nm_bond, nm_profile};

use crate::dhcp::{v4, v6};
use crate::facts::{Facts, Netdev, rules};
use crate::hardware::HardwareAddress;
use crate::request::Request;
use crate::verify::report::{LinkReport, Report};
use crate::wish::expectation::{Expectation, LinkWish};
use crate::wish::ipoib::{IpoibWish, Mode};

/// Settings of NetworkManager, below /run.
pub const NM_SETTINGS: &str = "NetworkManager/conf.d";
/// Profiles of NetworkManager; nm-initrd-generator also writes to this directory.
pub const NM_PROFILES: &str = "NetworkManager/system-connections";
/// The states of interfaces that NetworkManager keeps across its restarts, by their index.
pub const NM_DEVICES: &str = "NetworkManager/devices";
/// Directory below which files last until the end of the boot.
pub const RUN: &str = "/run";
/// Directory below which files of the initramfs end with it. dracut 106 and later count the files of
/// systemd-networkd below /run: with one of them, DHCP on every other interface is no longer the
/// default (networkd-config.sh).
pub const ETC: &str = "/etc";

/// Files of systemd-networkd, below [`RUN`], [`ETC`] and /usr/lib.
pub const NETWORKD: &str = "systemd/network";

/// File name in [`NM_SETTINGS`].
const NM_HANDS_OFF: &str = "90-ibboot.conf";
/// File name in [`NETWORKD`]: systemd-networkd uses only the first file that matches an interface,
/// in the order of file names across all directories. The other files of an initramfs begin with 70
/// or more.
const NETWORKD_HANDS_OFF: &str = "00-ibboot.network";
/// Rules of udev. The rules of network-legacy, which has no other configuration, are 90-net.rules
/// and 91-default-net.rules.
pub const UDEV: &str = "udev/rules.d";
/// File name in [`UDEV`].
const LEGACY_HANDS_OFF: &str = "92-ibboot.rules";
/// The same for the real root.
const MARKS: &str = "92-ibboot-links.rules";
/// Property of udev: the name that the interface had in the initramfs, if the name is plain.
const MARK: &str = "IBBOOT_LINK";
/// Property of udev: an interface of ibboot.
const MARKED: &str = "Type=infiniband\nProperty=IBBOOT=1\n";

const HEAD: &str = "# Written by ibboot for this boot; see rd.ib.handover= in ibboot.cmdline(7).\n";

/// The directories of the files for the initramfs, each with its top.
pub const RESERVED: [(&str, &str); 4] = [
    (RUN, NM_SETTINGS),
    (RUN, UDEV),
    (RUN, NETWORKD),
    (ETC, NETWORKD),
];

/// Whether ibboot wrote a file with this text.
pub fn is_ours(text: &str) -> bool {
    text.starts_with(HEAD)
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// `/run`, or `/etc` of the initramfs.
    pub top: &'static str,
    /// Directory below `top`.
    pub directory: &'static str,
    /// Name of the file.
    pub name: String,
    /// File mode: NetworkManager ignores profiles that other users can read.
    pub mode: u32,
    /// Text of the file.
    pub text: String,
}

/// The files for the initramfs. The hardware is not known yet, and an interface may be renamed
/// later: the files apply to every InfiniBand interface except those that are left to these
/// programs. No program then configures an InfiniBand interface that is not named. Therefore no
/// files are written if these programs shall address any interface and ibboot gives no interface an
/// address.
pub fn reserve(request: &Request) -> Vec<File> {
    if !request.claims_infiniband() {
        return Vec::new();
    }
    let bonds = request.bonds.iter().map(|bond| &bond.value.interface);
    let bonds = bonds.filter(|bond| bond.is_ours());
    let interfaces = request.interfaces.iter().map(|interface| &interface.value);
    let left = interfaces.filter(|interface| interface.left);
    let left: Vec<&str> = left.map(|left| left.name.as_str()).collect();
    // A name that the files cannot express: leave all interfaces to these programs.
    if !left.iter().all(|name| is_plain(name)) {
        return Vec::new();
    }
    let mut device = "type:infiniband".to_owned();
    let mut network = "Type=infiniband\n".to_owned();
    for name in &left {
        device.push_str(&format!(";except:interface-name:={name}"));
    }
    if !left.is_empty() {
        network.push_str(&format!("Name=!{}\n", left.join(" ")));
    }
    let bonds = bonds.map(|bond| bond.name.as_str());
    let bonds: Vec<&str> = bonds.filter(|name| is_plain(name)).collect();
    let mut files = vec![of_manager(device, &bonds)];
    files.extend(of_networkd(ETC, &network, &bonds));
    files.push(legacy_hands_off(&left, &bonds));
    files
}

/// The assignment to RUN empties the list of programs; a second lookup of the device's path is
/// harmless (udev(7)).
const EMPTIED: &str = "ACTION==\"add|change|move\", RUN{builtin}=\"path_id\"\n";

/// network-legacy makes udev run `ifup`, which flushes the addresses of the interface.
fn legacy_hands_off(left: &[&str], bonds: &[&str]) -> File {
    let mut rule = format!("{HEAD}SUBSYSTEM==\"net\", ATTR{{type}}==\"32\", ");
    if !left.is_empty() {
        rule.push_str(&format!("NAME!=\"{0}\", KERNEL!=\"{0}\", ", left.join("|")));
    }
    let mut rules = rule + EMPTIED;
    // A bond has the hardware type of Ethernet until an IPoIB interface is in the bond.
    for name in bonds {
        rules.push_str(&format!(
            "SUBSYSTEM==\"net\", KERNEL==\"{name}\", {EMPTIED}"
        ));
    }
    File {
        top: RUN,
        directory: UDEV,
        name: LEGACY_HANDS_OFF.to_owned(),
        mode: 0o644,
        text: rules,
    }
}

/// The file for NetworkManager. A bond is matched by its name, because it has no address of its own.
fn of_manager(mut device: String, bonds: &[&str]) -> File {
    for name in bonds {
        device.push_str(&format!(";interface-name:={name}"));
    }
    nm_hands_off(&device)
}

/// The files for systemd-networkd, below the top of its directory.
fn of_networkd(top: &'static str, network: &str, bonds: &[&str]) -> Vec<File> {
    let of_bond = |name: &&str| {
        let file = format!("00-ibboot-{name}.network");
        networkd_hands_off(top, &file, &format!("Name={name}\n"))
    };
    let mut files = vec![networkd_hands_off(top, NETWORKD_HANDS_OFF, network)];
    files.extend(bonds.iter().map(of_bond));
    files
}

/// The files for the real root, according to `handover`, for the interfaces in `report`.
pub fn hand_over(
    handover: Handover,
    expectation: &Expectation,
    report: &Report,
    facts: &Facts,
) -> Vec<File> {
    let kept = kept(handover, expectation, report, facts);
    let netdevs = with_parents(&kept);
    let addresses = netdevs.iter().filter_map(|netdev| netdev.address.as_ref());
    let mut addresses: Vec<String> = addresses.map(ToString::to_string).collect();
    addresses.sort();
    addresses.dedup();
    if addresses.is_empty() {
        return Vec::new();
    }
    let device: Vec<String> = addresses.iter().map(|a| format!("mac:{a}")).collect();
    let names = bonds(handover, report).into_iter();
    let names: Vec<&str> = names.filter(|name| is_plain(name)).collect();
    let mut files = Vec::new();
    if handover != Handover::Nm {
        files.push(of_manager(device.join(";"), &names));
    }
    if handover != Handover::Networkd {
        files.extend(of_networkd(RUN, MARKED, &names));
    }
    for interface in &kept {
        match handover {
            Handover::Nm => files.extend(nm_profile(interface).into_iter().flatten()),
            Handover::Networkd => files.extend(networkd_profiles(interface)),
            Handover::Auto | Handover::Keep | Handover::None => {}
        }
    }
    let wish_of = |name: &str| expectation.links.iter().find(|link| link.target == name);
    for name in names {
        let wish = wish_of(name).and_then(|link| link.bond.as_ref().zip(link.ipoib.as_ref()));
        let clients = Clients::of(name, facts);
        match (handover, wish) {
            (Handover::Nm, Some((bond, wish))) => {
                let netdev = facts.netdev(name);
                let profile = |netdev| nm_bond(netdev, bond, wish, &clients);
                files.extend(netdev.map(profile).into_iter().flatten());
            }
            (Handover::Networkd, Some((bond, wish))) => {
                files.extend(networkd_bond(name, bond, wish, &clients));
            }
            _ => {}
        }
    }
    if handover != Handover::Networkd {
        files.extend(by_name(&netdevs));
    }
    files.extend(marks(&netdevs));
    files
}

/// Port GUID and P_Key of an interface, as rules of udev match them. networkd compares all of an address,
/// which also has the queue pair number: each load of the driver changes it.
fn marked(netdev: &Netdev) -> Option<(Guid, u16)> {
    let pkey = netdev.ipoib.as_ref()?.pkey?;
    // That of the address, which may be another GID of the port.
    let address = netdev.address.as_ref()?;
    Some((address.port_guid()?, pkey))
}

/// The rules of udev that give the interfaces the properties which the files of networkd match. A bond
/// has the address of an interface in it, but no P_Key.
fn marks(netdevs: &[&Netdev]) -> Option<File> {
    let rule = |netdev: &&Netdev| {
        let (guid, pkey) = marked(netdev)?;
        let bytes = guid.0.to_be_bytes().map(|byte| format!("{byte:02x}"));
        let mut rule = format!(
            "SUBSYSTEM==\"net\", ATTR{{address}}==\"*:{}\", ATTR{{pkey}}==\"{pkey:#06x}\", ENV{{IBBOOT}}=\"1\"",
            bytes.join(":")
        );
        if is_plain(&netdev.ifname) {
            rule.push_str(&format!(", ENV{{{MARK}}}=\"{}\"", netdev.ifname));
        }
        Some(rule + "\n")
    };
    let rules: BTreeSet<String> = netdevs.iter().filter_map(rule).collect();
    (!rules.is_empty()).then(|| File {
        top: RUN,
        directory: UDEV,
        name: MARKS.to_owned(),
        mode: 0o644,
        text: HEAD.to_owned() + &rules.into_iter().collect::<String>(),
    })
}

/// A condition that is never true: systemd 252 and later skip the file then, so another interface that
/// udev gave the name is not matched. Older versions ignore the line.
const ONLY_OLD: &str = "Credential=ibboot.none\n";

/// The files of networkd that match by name. systemd before 243 knows no properties: `Type=` beside the
/// property keeps the file from every other kind of interface there. From 243 on the properties also match
/// an interface that udev renames, and one that the driver creates anew.
fn by_name(netdevs: &[&Netdev]) -> Vec<File> {
    let by_name = netdevs
        .iter()
        .map(|netdev| (netdev.ifname.as_str(), netdev));
    let by_name: BTreeMap<&str, &&Netdev> = by_name.filter(|(name, _)| is_plain(name)).collect();
    let file = |(name, netdev): (&str, &&Netdev)| {
        let only_old = if marked(netdev).is_some() {
            ONLY_OLD
        } else {
            ""
        };
        let network = format!("Type=infiniband\nName={name}\n{only_old}");
        networkd_hands_off(RUN, &format!("00-ibboot-{name}.network"), &network)
    };
    by_name.into_iter().map(file).collect()
}

/// The interfaces that `handover` is about: their owner in the real root is decided here.
pub fn taken<'a>(
    handover: Handover,
    expectation: &'a Expectation,
    report: &Report,
    facts: &'a Facts,
) -> Vec<&'a Netdev> {
    let kept = kept(handover, expectation, report, facts);
    let mut netdevs = with_parents(&kept);
    let bonds = bonds(handover, report).into_iter();
    netdevs.extend(bonds.filter_map(|name| facts.netdev(name)));
    netdevs
}

/// The bonds in `report` whose owner `handover` decides.
fn bonds(handover: Handover, report: &Report) -> Vec<&str> {
    let links = report.links.iter();
    let bonds = links.filter(|link| link.name.is_none() && link.interface.is_some());
    let bonds = bonds.filter(|bond| match handover {
        Handover::None => false,
        Handover::Auto => bond.is_good(),
        Handover::Keep | Handover::Nm | Handover::Networkd => true,
    });
    bonds.map(|bond| bond.target.as_str()).collect()
}

/// The interfaces, and the parents of children: a program that takes a parent down also takes the
/// children down.
fn with_parents<'a>(kept: &[Owned<'a>]) -> Vec<&'a Netdev> {
    let of_one = |interface: &Owned<'a>| interface.parent.into_iter().chain([interface.netdev]);
    kept.iter().flat_map(of_one).collect()
}

/// Whether nm-initrd-generator wrote the profile.
pub fn is_generated(profile: &str) -> bool {
    value_of(profile, "org.freedesktop.NetworkManager.origin=") == Some("nm-initrd-generator")
}

/// The value of `key`, which ends with `=`.
fn value_of<'a>(profile: &'a str, key: &str) -> Option<&'a str> {
    profile.lines().find_map(|line| line.strip_prefix(key))
}

/// Whether nm-initrd-generator wrote the profile for one of the interfaces `taken`. Such a profile was
/// never active, and in the real root it would set datagram mode.
pub fn is_generated_for(profile: &str, taken: &[&Netdev]) -> bool {
    if !is_generated(profile) {
        return false;
    }
    let value = |key| value_of(profile, key);
    let address = value("mac-address=").and_then(HwAddr::parse);
    let guid = address.as_ref().and_then(HwAddr::guid);
    taken.iter().any(|netdev| {
        value("interface-name=") == Some(netdev.ifname.as_str())
            || (guid.is_some() && netdev.port_guid() == guid)
    })
}

/// An existing interface and its request.
struct Owned<'a> {
    wish: &'a IpoibWish,
    netdev: &'a Netdev,
    /// The parent of a child.
    parent: Option<&'a Netdev>,
    /// No other IPoIB interface has the port GUID.
    has_own_guid: bool,
    verified: bool,
    clients: Clients<'a>,
}

/// The DHCP clients of an interface: the server knows the node by the identifiers that they sent.
struct Clients<'a> {
    v4: Option<&'a v4::progress::Progress>,
    v6: Option<&'a v6::progress::Progress>,
    /// The port GUID of the interface; of a bond that of the interface which carries the traffic.
    guid: Option<Guid>,
}

impl<'a> Clients<'a> {
    fn any(&self) -> bool {
        self.v4.is_some() || self.v6.is_some()
    }

    fn of(interface: &str, facts: &'a Facts) -> Clients<'a> {
        let (mut v4, mut v6) = (facts.dhcp.iter(), facts.dhcp6.iter());
        Clients {
            v4: v4.find(|progress| progress.interface == interface),
            v6: v6.find(|progress| progress.interface == interface),
            guid: facts.netdev(interface).and_then(Netdev::port_guid),
        }
    }
}

impl Owned<'_> {
    /// The address that identifies the interface if udev renames it; none for a child.
    fn address(&self) -> Option<&HardwareAddress> {
        let address = self.netdev.address.as_ref();
        address.filter(|_| !self.netdev.is_child() && self.wish.pkey.is_none())
    }

    fn mode(&self) -> Mode {
        let mode = self.netdev.ipoib.as_ref().and_then(|ipoib| ipoib.mode);
        mode.unwrap_or(Mode::Datagram)
    }

    /// The bond of the interface, if the bond's name is plain.
    fn bond(&self) -> Option<&str> {
        self.wish.bond.as_deref().filter(|name| is_plain(name))
    }

    fn nm_master(&self) -> String {
        let bond = self.bond();
        bond.map_or_else(String::new, |bond| {
            format!("master={bond}\nslave-type=bond\n")
        })
    }

    /// The current MTU if one is requested: the actual value, not "max".
    fn mtu(&self) -> Option<u32> {
        self.wish.mtu.and(self.netdev.mtu)
    }
}

/// The interfaces whose owner `handover` decides. With auto another program may succeed with one that
/// is not verified, and owns one that ibboot gave no address: that program may have addressed it in
/// the initramfs, and the real root may have a profile for it.
fn kept<'a>(
    handover: Handover,
    expectation: &'a Expectation,
    report: &Report,
    facts: &'a Facts,
) -> Vec<Owned<'a>> {
    let mut kept = owned(expectation, report, facts);
    match handover {
        Handover::None => kept.clear(),
        Handover::Auto => kept.retain(|interface| {
            let wish = interface.wish;
            interface.verified && (wish.bond.is_some() || wish.is_addressed())
        }),
        Handover::Keep | Handover::Nm | Handover::Networkd => {}
    }
    kept
}

fn owned<'a>(expectation: &'a Expectation, report: &Report, facts: &'a Facts) -> Vec<Owned<'a>> {
    let wish_of = |link: &LinkReport| -> Option<&'a LinkWish> {
        let mut wishes = expectation.links.iter().chain(&expectation.any_port);
        wishes.find(|wish| {
            wish.target == link.target
                && (wish.identity.is_none() || wish.identity == link.identity)
        })
    };
    let is_good = |name: &str| {
        let mut links = report.links.iter();
        links.any(|link| link.target == name && link.is_good())
    };
    let of_link = |link: &LinkReport| {
        let netdev = facts.netdev(link.interface.as_deref()?)?;
        netdev.ipoib.as_ref()?;
        let is_other = |other: &Netdev| {
            let is_ipoib = other.ipoib.is_some() && other.ifname != netdev.ifname;
            is_ipoib && other.port_guid() == netdev.port_guid()
        };
        let wish = wish_of(link)?.ipoib.as_ref()?;
        Some(Owned {
            wish,
            netdev,
            has_own_guid: !facts.netdevs.iter().any(is_other),
            parent: wish.pkey.and_then(|_| rules::parent(netdev, facts)),
            // A slave without a cable counts as verified if its bond is verified.
            verified: link.is_good() || wish.bond.as_deref().is_some_and(is_good),
            clients: Clients::of(&netdev.ifname, facts),
        })
    };
    report.links.iter().filter_map(of_link).collect()
}

/// Whether a name is literal in every file format used here: no separator, no glob, no quote, no
/// newline.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && !name.starts_with(['.', '-']) && name.len() < 16 && name.bytes().all(plain)
}

fn nm_hands_off(device: &str) -> File {
    File {
        top: RUN,
        directory: NM_SETTINGS,
        name: NM_HANDS_OFF.to_owned(),
        mode: 0o644,
        text: format!("{HEAD}[device-ibboot]\nmatch-device={device}\nmanaged=0\n"),
    }
}

fn networkd_hands_off(top: &'static str, name: &str, network: &str) -> File {
    File {
        top,
        directory: NETWORKD,
        name: name.to_owned(),
        mode: 0o644,
        text: format!("{HEAD}[Match]\n{network}\n[Link]\nUnmanaged=yes\n"),
    }
}

#[cfg(test)]
mod tests;
