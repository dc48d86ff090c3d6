// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what NetworkManager, systemd-networkd and network-legacy are told of the interfaces that ibboot brings up.
//!
//! In the initramfs: hands off. For the real root what `rd.ib.handover=` says. Sources:
//! NetworkManager.conf(5), nm-settings-keyfile(5), systemd.network(5).

mod profiles;

use kernel_cmdline::{Handover, HwAddr};
use profiles::{networkd_bond, networkd_profile, nm_bond, nm_profile};

use crate::facts::{Facts, Netdev, rules};
use crate::request::Request;
use crate::verify::report::{LinkReport, Report};
use crate::wish::expectation::{Expectation, LinkWish};
use crate::wish::ipoib::{self, Mode};

/// Where NetworkManager reads settings, below /run.
pub const NM_SETTINGS: &str = "NetworkManager/conf.d";
/// Where it reads profiles; nm-initrd-generator writes there too.
pub const NM_PROFILES: &str = "NetworkManager/system-connections";
/// Where systemd-networkd reads, beside /etc and /usr/lib.
pub const NETWORKD: &str = "systemd/network";

/// Of [`NM_SETTINGS`].
const NM_HANDS_OFF: &str = "90-ibboot.conf";
/// Of [`NETWORKD`]: the first file that matches an interface is its only one, whatever directory
/// it is in, and the other ones that an initramfs has begin with 70 and more.
const NETWORKD_HANDS_OFF: &str = "00-ibboot.network";
/// Where udev reads rules. Those of network-legacy, which has no other way to be told, are
/// 90-net.rules and 91-default-net.rules.
pub const UDEV: &str = "udev/rules.d";
/// Of [`UDEV`].
const LEGACY_HANDS_OFF: &str = "92-ibboot.rules";
/// What the names of the profiles begin with.
const PROFILE: &str = "10-ibboot-";

const HEAD: &str = "# Written by ibboot for this boot; see rd.ib.handover= in ibboot.cmdline(7).\n";

/// A file to write, below /run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its directory.
    pub directory: &'static str,
    /// Its name.
    pub name: String,
    /// Access mode: NetworkManager does not read profiles that others can.
    pub mode: u32,
    /// Its text.
    pub text: String,
}

/// For the initramfs. Nothing is known of the hardware yet and an interface may get another name on
/// the way: every InfiniBand interface is meant, but for those that are left to these programs. Nobody
/// configures the ones there that are not named: where these programs shall address whichever interface
/// comes up, and none of ours is given an address here, nothing is taken from them.
pub fn claim(request: &Request) -> Vec<File> {
    let (left, ours): (Vec<_>, Vec<_>) = request
        .interfaces
        .iter()
        .map(|interface| &interface.value)
        .filter(|interface| interface.left || interface.refused.is_none())
        .partition(|interface| interface.left);
    if request.asked.is_none() || (ours.is_empty() && request.any_interface.is_none()) {
        return Vec::new();
    }
    let bonds = request.bonds.iter().map(|bond| &bond.value);
    let bonds: Vec<_> = bonds
        .filter(|bond| !bond.left && bond.refused.is_none())
        .collect();
    let wishes = ours.iter().map(|interface| &interface.ipoib);
    let mut wishes = wishes.chain(bonds.iter().map(|bond| &bond.ipoib));
    if request.anywhere && !wishes.any(ipoib::Wish::is_addressed) {
        return Vec::new();
    }
    let left: Vec<&str> = left.iter().map(|left| left.name.as_str()).collect();
    // One that cannot be told by its name is not taken away from them.
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
    let bonds: Vec<&str> = bonds.iter().map(|bond| bond.name.as_str()).collect();
    let mut files = hands_off(&device, &network, &bonds, true, true);
    files.push(legacy_hands_off(&left));
    files
}

/// network-legacy has udev run `ifup`, which flushes the addresses it finds. An assignment empties
/// the list of programs; looking up the device's path once more is no harm (udev(7)).
fn legacy_hands_off(left: &[&str]) -> File {
    let mut rule = format!("{HEAD}SUBSYSTEM==\"net\", ATTR{{type}}==\"32\", ");
    if !left.is_empty() {
        rule.push_str(&format!("NAME!=\"{0}\", KERNEL!=\"{0}\", ", left.join("|")));
    }
    rule.push_str("ACTION==\"add|change|move\", RUN{builtin}=\"path_id\"\n");
    File {
        directory: UDEV,
        name: LEGACY_HANDS_OFF.to_owned(),
        mode: 0o644,
        text: rule,
    }
}

/// Both programs are told, or one of them. A bond has no address of its own and is told by its name.
fn hands_off(device: &str, network: &str, bonds: &[&str], nm: bool, networkd: bool) -> Vec<File> {
    let bonds = bonds.iter().filter(|name| is_plain(name));
    let mut files = Vec::new();
    if nm {
        let mut device = device.to_owned();
        for name in bonds.clone() {
            device.push_str(&format!(";interface-name:={name}"));
        }
        files.push(nm_hands_off(&device));
    }
    if networkd {
        files.push(networkd_hands_off(NETWORKD_HANDS_OFF, network));
        files.extend(bonds.map(|name| {
            let file = format!("00-ibboot-{name}.network");
            networkd_hands_off(&file, &format!("Name={name}\n"))
        }));
    }
    files
}

/// For the real root: what `handover` says of the interfaces in `report`.
pub fn hand_over(
    handover: Handover,
    expectation: &Expectation,
    report: &Report,
    facts: &Facts,
) -> Vec<File> {
    let owned = owned(expectation, report, facts);
    let kept: Vec<&Owned<'_>> = match handover {
        Handover::None => return Vec::new(),
        // What is not verified may be better off with somebody else.
        Handover::Auto => owned
            .iter()
            .filter(|interface| interface.verified)
            .collect(),
        Handover::Keep | Handover::Nm | Handover::Networkd => owned.iter().collect(),
    };
    let mut addresses: Vec<String> = Vec::new();
    for interface in &kept {
        // Whoever takes a parent down takes its children along.
        for netdev in facts.netdevs.iter().filter(|netdev| {
            netdev.ifname == interface.netdev.ifname
                || (interface.wish.pkey.is_some()
                    && netdev.ipoib.as_ref().is_some_and(|seen| !seen.child)
                    && rules::same_port(netdev, interface.netdev))
        }) {
            addresses.extend(netdev.address.as_ref().map(ToString::to_string));
        }
    }
    addresses.sort();
    addresses.dedup();
    if addresses.is_empty() {
        return Vec::new();
    }
    let device: Vec<String> = addresses.iter().map(|a| format!("mac:{a}")).collect();
    let network: String = addresses
        .iter()
        .map(|a| format!("MACAddress={a}\n"))
        .collect();
    let bonds: Vec<&LinkReport> = report
        .links
        .iter()
        .filter(|link| link.name.is_none() && link.interface.is_some())
        .filter(|link| link.is_good() || handover != Handover::Auto)
        .collect();
    let names: Vec<&str> = bonds.iter().map(|bond| bond.wanted.as_str()).collect();
    let (nm, networkd) = (handover != Handover::Nm, handover != Handover::Networkd);
    let mut files = hands_off(&device.join(";"), &network, &names, nm, networkd);
    for interface in kept {
        match handover {
            Handover::Nm => files.extend(nm_profile(interface)),
            Handover::Networkd => files.extend(networkd_profile(interface)),
            Handover::Auto | Handover::Keep | Handover::None => {}
        }
    }
    let wish_of = |name: &str| expectation.links.iter().find(|link| link.wanted == name);
    for name in names.into_iter().filter(|name| is_plain(name)) {
        let wish = wish_of(name).and_then(|link| link.bond.as_ref().zip(link.ipoib.as_ref()));
        match (handover, wish) {
            (Handover::Nm, Some((bond, wish))) => files.push(nm_bond(name, bond, wish)),
            (Handover::Networkd, Some((bond, wish))) => {
                files.extend(networkd_bond(name, bond, wish));
            }
            _ => {}
        }
    }
    files
}

/// Whether a profile that nm-initrd-generator wrote is for one of the interfaces in `report`. It was
/// never in force, and in the real root it would set datagram mode.
pub fn is_generated_for(profile: &str, report: &Report, facts: &Facts) -> bool {
    let value = |key: &str| profile.lines().find_map(|line| line.strip_prefix(key));
    let generated = value("org.freedesktop.NetworkManager.origin=") == Some("nm-initrd-generator");
    if !generated {
        return false;
    }
    let address = value("mac-address=").and_then(HwAddr::parse);
    let guid = address.as_ref().and_then(HwAddr::guid);
    report.links.iter().any(|link| {
        let Some(name) = link.interface.as_deref() else {
            return false;
        };
        let found = facts.netdev(name).and_then(Netdev::port_guid);
        value("interface-name=") == Some(name) || (guid.is_some() && found == guid)
    })
}

/// An interface that is there, and what was wanted of it.
struct Owned<'a> {
    wish: &'a ipoib::Wish,
    netdev: &'a Netdev,
    /// The parent of a child.
    parent: Option<&'a Netdev>,
    verified: bool,
}

impl Owned<'_> {
    fn mode(&self) -> Mode {
        let seen = self.netdev.ipoib.as_ref().and_then(|seen| seen.mode);
        seen.unwrap_or(Mode::Datagram)
    }

    /// The bond it is in, if that has a name for a file.
    fn bond(&self) -> Option<&str> {
        self.wish.bond.as_deref().filter(|name| is_plain(name))
    }

    fn nm_master(&self) -> String {
        let bond = self.bond();
        bond.map_or_else(String::new, |bond| {
            format!("master={bond}\nslave-type=bond\n")
        })
    }

    /// The MTU, where one was wanted: what it is, not what "max" was.
    fn mtu(&self) -> Option<u32> {
        self.wish.mtu.and(self.netdev.mtu)
    }
}

fn owned<'a>(expectation: &'a Expectation, report: &Report, facts: &'a Facts) -> Vec<Owned<'a>> {
    let wish_of = |link: &LinkReport| -> Option<&'a LinkWish> {
        let mut wishes = expectation.links.iter().chain(&expectation.any_port);
        wishes.find(|wish| {
            wish.wanted == link.wanted
                && (wish.identity.is_none() || wish.identity == link.identity)
        })
    };
    let is_good = |name: &str| {
        let mut links = report.links.iter();
        links.any(|link| link.wanted == name && link.is_good())
    };
    let of_link = |link: &LinkReport| {
        let netdev = facts.netdev(link.interface.as_deref()?)?;
        netdev.ipoib.as_ref()?;
        let parent = |other: &&Netdev| {
            other.ipoib.as_ref().is_some_and(|seen| !seen.child) && rules::same_port(other, netdev)
        };
        let wish = wish_of(link)?.ipoib.as_ref()?;
        Some(Owned {
            wish,
            netdev,
            parent: wish.pkey.and_then(|_| facts.netdevs.iter().find(parent)),
            // With its bond the one goes that has no cable.
            verified: link.is_good() || wish.bond.as_deref().is_some_and(is_good),
        })
    };
    report.links.iter().filter_map(of_link).collect()
}

/// A name that means nothing but itself in every format here: no separator, no glob, no quote, and no
/// newline.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && !name.starts_with(['.', '-']) && name.len() < 16 && name.bytes().all(plain)
}

fn nm_hands_off(device: &str) -> File {
    File {
        directory: NM_SETTINGS,
        name: NM_HANDS_OFF.to_owned(),
        mode: 0o644,
        text: format!("{HEAD}[device-ibboot]\nmatch-device={device}\nmanaged=0\n"),
    }
}

fn networkd_hands_off(name: &str, network: &str) -> File {
    File {
        directory: NETWORKD,
        name: name.to_owned(),
        mode: 0o644,
        text: format!("{HEAD}[Match]\n{network}\n[Link]\nUnmanaged=yes\n"),
    }
}

#[cfg(test)]
mod tests;
