// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what NetworkManager, systemd-networkd and network-legacy are told of the interfaces that ibboot brings up.
//!
//! In the initramfs: hands off. For the real root what `rd.ib.handover=` says. Sources:
//! NetworkManager.conf(5), nm-settings-keyfile(5), systemd.network(5).

use std::net::IpAddr;

use kernel_cmdline::{Handover, HwAddr};

use crate::facts::{Facts, Netdev};
use crate::ipoib::{self, Mode};
use crate::report::{LinkReport, Report};
use crate::request::Request;
use crate::verify::expectation::{Expectation, LinkWish};

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

/// The files of [`claim`], which must not stay for the real root.
pub const CLAIMS: [(&str, &str); 3] = [
    (NM_SETTINGS, NM_HANDS_OFF),
    (NETWORKD, NETWORKD_HANDS_OFF),
    (UDEV, LEGACY_HANDS_OFF),
];

/// For the initramfs. Nothing is known of the hardware yet and an interface may get another name on
/// the way: every InfiniBand interface is meant, but for those that are left to these programs. Nobody
/// configures the ones there that are not named.
pub fn claim(request: &Request) -> Vec<File> {
    let (left, ours): (Vec<_>, Vec<_>) = request
        .interfaces
        .iter()
        .map(|interface| &interface.value)
        .partition(|interface| interface.left);
    if request.asked.is_none() || (ours.is_empty() && request.any_interface.is_none()) {
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
    vec![
        nm_hands_off(&device),
        networkd_hands_off(&network),
        legacy_hands_off(&left),
    ]
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
                    && ipoib::same_port(netdev, interface.netdev))
        }) {
            let address = netdev.address.as_deref().and_then(HwAddr::parse);
            // Written anew: what stands in the file is hexadecimal digits, whatever was read.
            addresses.extend(address.map(|address| address.to_string()));
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
    let mut files = Vec::new();
    if handover != Handover::Nm {
        files.push(nm_hands_off(&device.join(";")));
    }
    if handover != Handover::Networkd {
        files.push(networkd_hands_off(&network));
    }
    for interface in kept {
        match handover {
            Handover::Nm => files.extend(nm_profile(interface)),
            Handover::Networkd => files.extend(networkd_profile(interface)),
            Handover::Auto | Handover::Keep | Handover::None => {}
        }
    }
    files
}

/// Whether a profile that nm-initrd-generator wrote is for one of the interfaces in `report`. It was
/// never in force, and in the real root it would set datagram mode.
pub fn is_generated_for(profile: &str, report: &Report, facts: &Facts) -> bool {
    let value = |key: &str| profile.lines().find_map(|line| line.strip_prefix(key));
    let generated = value("org.freedesktop.NetworkManager.origin=") == Some("nm-initrd-generator");
    if !generated || value("type=") != Some("infiniband") {
        return false;
    }
    let address = value("mac-address=").and_then(HwAddr::parse);
    let guid = address.as_ref().and_then(HwAddr::guid);
    report.links.iter().any(|link| {
        let Some(name) = link.interface.as_deref() else {
            return false;
        };
        let seen = facts
            .netdev(name)
            .and_then(|netdev| netdev.address.as_deref());
        value("interface-name=") == Some(name)
            || (guid.is_some() && seen.and_then(HwAddr::parse).and_then(|seen| seen.guid()) == guid)
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
    let of_link = |link: &LinkReport| {
        let netdev = facts.netdev(link.interface.as_deref()?)?;
        let parent = |other: &&Netdev| {
            other.ipoib.as_ref().is_some_and(|seen| !seen.child) && ipoib::same_port(other, netdev)
        };
        let wish = wish_of(link)?.ipoib.as_ref()?;
        Some(Owned {
            wish,
            netdev,
            parent: wish.pkey.and_then(|_| facts.netdevs.iter().find(parent)),
            verified: link.is_good(),
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

fn networkd_hands_off(network: &str) -> File {
    File {
        directory: NETWORKD,
        name: NETWORKD_HANDS_OFF.to_owned(),
        mode: 0o644,
        text: format!("{HEAD}[Match]\n{network}\n[Link]\nUnmanaged=yes\n"),
    }
}

/// A profile with what the interface was given; none where its name does not fit into one.
fn nm_profile(interface: &Owned<'_>) -> Option<File> {
    let name = interface.netdev.ifname.as_str();
    if !is_plain(name) {
        return None;
    }
    let mut text = format!(
        "{HEAD}[connection]\nid={PROFILE}{name}\ntype=infiniband\ninterface-name={name}\n\
         autoconnect-priority=100\n\n[infiniband]\ntransport-mode={}\n",
        interface.mode()
    );
    if let Some(mtu) = interface.mtu() {
        text.push_str(&format!("mtu={mtu}\n"));
    }
    if let (Some(pkey), Some(parent)) = (interface.wish.pkey, interface.parent) {
        if !is_plain(&parent.ifname) {
            return None;
        }
        text.push_str(&format!("p-key={pkey}\nparent={}\n", parent.ifname));
    }
    for (section, is_ipv6, otherwise) in [("ipv4", false, "disabled"), ("ipv6", true, "auto")] {
        let addresses = of_family(&interface.wish.addresses, is_ipv6);
        let method = if addresses.is_empty() {
            otherwise
        } else {
            "manual"
        };
        text.push_str(&format!("\n[{section}]\nmethod={method}\n"));
        for (number, address) in addresses.iter().enumerate() {
            text.push_str(&format!("address{}={address}\n", number.saturating_add(1)));
        }
        let mut gateways = interface.wish.gateways.iter();
        if let Some(gateway) = gateways.find(|gateway| gateway.is_ipv6() == is_ipv6) {
            text.push_str(&format!("gateway={gateway}\n"));
        }
    }
    Some(File {
        directory: NM_PROFILES,
        name: format!("{PROFILE}{name}.nmconnection"),
        mode: 0o600,
        text,
    })
}

fn of_family(addresses: &[ipoib::Address], is_ipv6: bool) -> Vec<&ipoib::Address> {
    let of_it = |address: &&ipoib::Address| matches!(address.address, IpAddr::V6(_)) == is_ipv6;
    addresses.iter().filter(of_it).collect()
}

/// The same for systemd-networkd, which keeps what is there already.
fn networkd_profile(interface: &Owned<'_>) -> Option<File> {
    let name = interface.netdev.ifname.as_str();
    if !is_plain(name) {
        return None;
    }
    let mut text = format!("{HEAD}[Match]\nType=infiniband\nName={name}\n");
    if let Some(mtu) = interface.mtu() {
        text.push_str(&format!("\n[Link]\nMTUBytes={mtu}\n"));
    }
    text.push_str("\n[Network]\nKeepConfiguration=yes\n");
    for address in &interface.wish.addresses {
        text.push_str(&format!("Address={address}\n"));
    }
    for gateway in &interface.wish.gateways {
        text.push_str(&format!("Gateway={gateway}\n"));
    }
    text.push_str(&format!("\n[IPoIB]\nMode={}\n", interface.mode()));
    Some(File {
        directory: NETWORKD,
        name: format!("{PROFILE}{name}.network"),
        mode: 0o644,
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Depth;
    use crate::plan::{Inventory, plan};
    use crate::system::root::Root;
    use crate::verify::verify;

    fn claimed(cmdline: &str) -> Vec<String> {
        let files = claim(&Request::from_text(cmdline));
        files.into_iter().map(|file| body(&file)).collect()
    }

    fn body(file: &File) -> String {
        let text = file.text.strip_prefix(HEAD).unwrap();
        format!("{}/{} {:o}\n{text}", file.directory, file.name, file.mode)
    }

    /// What is handed over on a machine whose tree is `tests/sys/TREES`, laid over one another.
    fn handed(cmdline: &str, trees: &[&str], change: impl Fn(&mut Facts)) -> Vec<String> {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let over = tempfile::tempdir().unwrap();
        for tree in trees {
            let copied = std::process::Command::new("cp")
                .args(["-aT", "--remove-destination"])
                .arg(sys.join(tree))
                .arg(over.path())
                .status();
            assert!(copied.unwrap().success());
        }
        let root = Root::new(over.path());
        let request = Request::from_text(cmdline);
        let expectation = plan(&request, &Inventory::read(&root).unwrap()).expectation;
        let mut facts = Facts::gather(&root, None, &[], Depth::Partitions);
        change(&mut facts);
        let report = verify(&expectation, &facts);
        let to = request.handover.map_or(Handover::Auto, |to| to.value);
        let files = hand_over(to, &expectation, &report, &facts);
        files.iter().map(body).collect()
    }

    const MACHINE: [&str; 2] = ["connectx6-hdr", "ipoib-connected"];

    fn with_address(facts: &mut Facts) {
        for netdev in facts.netdevs.iter_mut().filter(|n| n.ifname == "ib0") {
            netdev.addresses.push("10.0.0.1/24".to_owned());
        }
    }

    #[test]
    fn every_infiniband_interface_is_claimed_but_those_that_are_left() {
        assert_eq!(
            claimed("ip=10.0.0.1:::255.255.255.0::ib0:none"),
            [
                "NetworkManager/conf.d/90-ibboot.conf 644\n\
                 [device-ibboot]\nmatch-device=type:infiniband\nmanaged=0\n",
                "systemd/network/00-ibboot.network 644\n\
                 [Match]\nType=infiniband\n\n[Link]\nUnmanaged=yes\n",
                "udev/rules.d/92-ibboot.rules 644\n\
                 SUBSYSTEM==\"net\", ATTR{type}==\"32\", ACTION==\"add|change|move\", RUN{builtin}=\"path_id\"\n"
            ]
        );
        assert_eq!(
            claimed("ip=10.0.0.1:::255.255.255.0::ib0:none ip=ib1:auto6 ip=ib2:link6"),
            [
                "NetworkManager/conf.d/90-ibboot.conf 644\n\
                 [device-ibboot]\nmatch-device=type:infiniband;except:interface-name:=ib1;\
                 except:interface-name:=ib2\nmanaged=0\n",
                "systemd/network/00-ibboot.network 644\n\
                 [Match]\nType=infiniband\nName=!ib1 ib2\n\n[Link]\nUnmanaged=yes\n",
                "udev/rules.d/92-ibboot.rules 644\n\
                 SUBSYSTEM==\"net\", ATTR{type}==\"32\", NAME!=\"ib1|ib2\", KERNEL!=\"ib1|ib2\", \
                 ACTION==\"add|change|move\", RUN{builtin}=\"path_id\"\n"
            ]
        );
        assert_eq!(claimed("rd.ib.mode=connected").len(), 3);
    }

    #[test]
    fn what_nobody_asks_for_is_not_claimed() {
        for cmdline in [
            "ip=10.0.0.1:::255.255.255.0::eth0:none",
            "rd.ib.link=rxe0:rxe:eth0 ip=eth0:dhcp",
            "rd.ib=0 ip=10.0.0.1:::255.255.255.0::ib0:none",
            "ip=ib0:auto6",
            // Left, and not to be told by a name.
            "ip=10.0.0.1:::255.255.255.0::ib0:none ip=ib;type:auto6",
            "ip=10.0.0.1:::255.255.255.0::ib0:none ip=ib*:auto6",
        ] {
            assert_eq!(claimed(cmdline), [""; 0], "{cmdline}");
        }
    }

    #[test]
    fn a_verified_interface_stays_as_it_is() {
        let cmdline = "ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.mode=connected";
        let kept = [
            "NetworkManager/conf.d/90-ibboot.conf 644\n[device-ibboot]\n\
             match-device=mac:80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c\nmanaged=0\n",
            "systemd/network/00-ibboot.network 644\n[Match]\n\
             MACAddress=80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c\n\n\
             [Link]\nUnmanaged=yes\n",
        ];
        assert_eq!(handed(cmdline, &MACHINE, with_address), kept);
        // Without its address it is not verified.
        assert_eq!(handed(cmdline, &MACHINE, |_| ()), [""; 0]);
        let keep = format!("{cmdline} rd.ib.handover=keep");
        assert_eq!(handed(&keep, &MACHINE, |_| ()), kept);
        let none = format!("{cmdline} rd.ib.handover=none");
        assert_eq!(handed(&none, &MACHINE, with_address), [""; 0]);
    }

    #[test]
    fn a_profile_has_what_the_interface_was_given() {
        let cmdline = "ip=10.0.0.1::10.0.0.254:255.255.255.0::ib0:none ip=[fd00::1/64]::::h:ib0:none \
                       rd.ib.mode=connected rd.ib.mtu=max";
        let files = handed(&format!("{cmdline} rd.ib.handover=nm"), &MACHINE, |_| ());
        assert_eq!(files.len(), 2);
        assert!(files[0].starts_with("systemd/network/00-ibboot.network 644\n"));
        assert_eq!(
            files[1],
            "NetworkManager/system-connections/10-ibboot-ib0.nmconnection 600\n\
             [connection]\nid=10-ibboot-ib0\ntype=infiniband\ninterface-name=ib0\n\
             autoconnect-priority=100\n\n\
             [infiniband]\ntransport-mode=connected\nmtu=65520\n\n\
             [ipv4]\nmethod=manual\naddress1=10.0.0.1/24\ngateway=10.0.0.254\n\n\
             [ipv6]\nmethod=manual\naddress1=fd00::1/64\n"
        );
        let files = handed(
            &format!("{cmdline} rd.ib.handover=networkd"),
            &MACHINE,
            |_| (),
        );
        assert_eq!(files.len(), 2);
        assert!(files[0].starts_with("NetworkManager/conf.d/90-ibboot.conf 644\n"));
        assert_eq!(
            files[1],
            "systemd/network/10-ibboot-ib0.network 644\n\
             [Match]\nType=infiniband\nName=ib0\n\n[Link]\nMTUBytes=65520\n\n\
             [Network]\nKeepConfiguration=yes\nAddress=10.0.0.1/24\nAddress=fd00::1/64\n\
             Gateway=10.0.0.254\n\n[IPoIB]\nMode=connected\n"
        );
    }

    #[test]
    fn a_hostile_name_gets_no_profile() {
        let cmdline = "ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.mode=connected";
        for name in [
            "ib\nx=y", "ib]0", "ib;0", "ib*", "ib%i", "-ib0", "..", "ib'0",
        ] {
            let rename = |facts: &mut Facts| {
                for netdev in facts.netdevs.iter_mut().filter(|n| n.ifname == "ib0") {
                    netdev.ifname = name.to_owned();
                }
            };
            for to in ["nm", "networkd"] {
                let cmdline = format!("{} rd.ib.handover={to}", cmdline.replace("ib0", "guid"));
                // By its GUID: the name comes from elsewhere.
                let cmdline = cmdline.replace(":guid:", ":b8-59-9f-03-00-fc-1a-2c:");
                let files = handed(&cmdline, &MACHINE, rename);
                assert_eq!(files.len(), 1, "{name:?} {files:?}");
                assert!(
                    files[0].contains("00:b8:59:9f:03:00:fc:1a:2c\n"),
                    "{files:?}"
                );
            }
        }
    }

    #[test]
    fn only_generated_profiles_of_our_interfaces_go() {
        let cmdline = "ip=10.0.0.1:::255.255.255.0::ib0:none";
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr");
        let root = Root::new(sys);
        let expectation = plan(
            &Request::from_text(cmdline),
            &Inventory::read(&root).unwrap(),
        )
        .expectation;
        let facts = Facts::gather(&root, None, &[], Depth::Partitions);
        let report = verify(&expectation, &facts);
        let profile = |kind: &str, what: &str, origin: &str| {
            let text = format!(
                "[connection]\nid=x\ntype={kind}\n{what}\n\n[user]\n\
                 org.freedesktop.NetworkManager.origin={origin}\n"
            );
            is_generated_for(&text, &report, &facts)
        };
        let generator = "nm-initrd-generator";
        assert!(profile("infiniband", "interface-name=ib0", generator));
        let mac = "mac-address=80:00:00:00:fe:80:00:00:00:00:00:00:B8:59:9F:03:00:FC:1A:2C";
        assert!(profile("infiniband", mac, generator));
        assert!(!profile("infiniband", "interface-name=ib1", generator));
        assert!(!profile("infiniband", "interface-name=ib0", "site"));
        assert!(!profile("ethernet", "interface-name=ib0", generator));
    }
}
