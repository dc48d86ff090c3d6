// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: profiles of interfaces and bonds for another program.

use std::net::IpAddr;

use crate::handover::peers::{File, HEAD, NETWORKD, NM_PROFILES, Owned, PROFILE, is_plain};
use crate::inet::Address;
use crate::wish::bond::BondWish;
use crate::wish::ipoib::IpoibWish;
use crate::wish::{bond, ipoib};

/// A NetworkManager profile with the settings of the interface; none if its name is not plain.
pub(super) fn nm_profile(interface: &Owned<'_>) -> Option<File> {
    let name = interface.netdev.ifname.as_str();
    if !is_plain(name) {
        return None;
    }
    let mut text = format!(
        "{HEAD}[connection]\nid={PROFILE}{name}\ntype=infiniband\ninterface-name={name}\n\
         autoconnect-priority=100\n{}\n[infiniband]\ntransport-mode={}\n",
        interface.nm_master(),
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
    if interface.wish.bond.is_none() {
        text.push_str(&nm_addresses(interface.wish));
    }
    Some(nm_file(name, text))
}

fn nm_file(name: &str, text: String) -> File {
    File {
        directory: NM_PROFILES,
        name: format!("{PROFILE}{name}.nmconnection"),
        mode: 0o600,
        text,
    }
}

fn nm_addresses(wish: &IpoibWish) -> String {
    let mut text = String::new();
    for (section, is_ipv6, otherwise) in [("ipv4", false, "disabled"), ("ipv6", true, "auto")] {
        let addresses = of_family(&wish.addresses, is_ipv6);
        let method = match (wish.dhcp.is_some() && !is_ipv6, addresses.is_empty()) {
            (true, _) => "auto",
            (false, true) => otherwise,
            (false, false) => "manual",
        };
        text.push_str(&format!("\n[{section}]\nmethod={method}\n"));
        for (number, address) in addresses.iter().enumerate() {
            text.push_str(&format!("address{}={address}\n", number.saturating_add(1)));
        }
        let mut gateways = wish.gateways.iter();
        if let Some(gateway) = gateways.find(|gateway| gateway.is_ipv6() == is_ipv6) {
            text.push_str(&format!("gateway={gateway}\n"));
        }
    }
    text
}

/// A bond's options for a profile; a value with a special character is left out.
fn plain_options(wish: &BondWish) -> impl Iterator<Item = (&str, &str)> {
    let is_plain = |value: &str| {
        let plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b';');
        value.bytes().all(plain)
    };
    let options = wish.options.iter().map(|(o, v)| (o.as_str(), v.as_str()));
    options.filter(move |(_, value)| is_plain(value))
}

pub(super) fn nm_bond(name: &str, bond: &BondWish, wish: &IpoibWish) -> File {
    let mut text = format!(
        "{HEAD}[connection]\nid={PROFILE}{name}\ntype=bond\ninterface-name={name}\n\
         autoconnect-priority=100\nautoconnect-slaves=1\n\n[bond]\nmode={}\n",
        bond::MODE
    );
    for (option, value) in plain_options(bond) {
        text.push_str(&format!("{option}={}\n", value.replace(';', ",")));
    }
    text.push_str(&nm_addresses(wish));
    nm_file(name, text)
}

/// Files for a bond: networkd keeps an existing bond as it is, but knows its name only from a file.
pub(super) fn networkd_bond(name: &str, bond: &BondWish, wish: &IpoibWish) -> [File; 2] {
    let file = |kind: &str, text: String| File {
        directory: NETWORKD,
        name: format!("{PROFILE}{name}.{kind}"),
        mode: 0o644,
        text,
    };
    let mut netdev = format!(
        "{HEAD}[NetDev]\nName={name}\nKind=bond\n\n[Bond]\nMode={}\n",
        bond::MODE
    );
    if let Some((_, milliseconds)) = plain_options(bond).find(|(option, _)| *option == "miimon") {
        netdev.push_str(&format!("MIIMonitorSec={milliseconds}ms\n"));
    }
    let mut network = format!("{HEAD}[Match]\nName={name}\n");
    network.push_str(&networkd_addresses(wish));
    [file("netdev", netdev), file("network", network)]
}

fn networkd_addresses(wish: &IpoibWish) -> String {
    let mut text = "\n[Network]\nKeepConfiguration=yes\n".to_owned();
    match (&wish.dhcp, &wish.dhcp6) {
        (Some(_), Some(_)) => text.push_str("DHCP=yes\n"),
        (Some(_), None) => text.push_str("DHCP=ipv4\n"),
        (None, Some(_)) => text.push_str("DHCP=ipv6\n"),
        (None, None) => {}
    }
    if wish.kernel_autoconf() == Some(ipoib::Autoconf::Router) {
        text.push_str("IPv6AcceptRA=yes\n");
    }
    for address in &wish.addresses {
        text.push_str(&format!("Address={address}\n"));
    }
    for gateway in &wish.gateways {
        text.push_str(&format!("Gateway={gateway}\n"));
    }
    text
}

fn of_family(addresses: &[Address], is_ipv6: bool) -> Vec<&Address> {
    let is_of_family = |address: &&Address| matches!(address.address, IpAddr::V6(_)) == is_ipv6;
    addresses.iter().filter(is_of_family).collect()
}

/// A systemd-networkd profile with the settings of the interface; networkd keeps existing settings.
pub(super) fn networkd_profile(interface: &Owned<'_>) -> Option<File> {
    let name = interface.netdev.ifname.as_str();
    if !is_plain(name) {
        return None;
    }
    let mut text = format!("{HEAD}[Match]\nType=infiniband\nName={name}\n");
    if let Some(mtu) = interface.mtu() {
        text.push_str(&format!("\n[Link]\nMTUBytes={mtu}\n"));
    }
    match interface.bond() {
        Some(bond) => text.push_str(&format!("\n[Network]\nBond={bond}\n")),
        None => text.push_str(&networkd_addresses(interface.wish)),
    }
    text.push_str(&format!("\n[IPoIB]\nMode={}\n", interface.mode()));
    Some(File {
        directory: NETWORKD,
        name: format!("{PROFILE}{name}.network"),
        mode: 0o644,
        text,
    })
}
