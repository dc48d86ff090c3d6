// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: profiles of interfaces and bonds for another program.

use std::net::IpAddr;

use kernel_cmdline::Guid;

use crate::dhcp::identity::{self, Form, form};
use crate::facts::Netdev;
use crate::handover::peers::{
    Clients, File, HEAD, MARK, NETWORKD, NM_DEVICES, NM_PROFILES, ONLY_OLD, Owned, RUN, is_plain,
    marked,
};
use crate::hardware::{Hex, unhex};
use crate::inet::Address;
use crate::system::{PROFILE, PROFILE_BY_NAME};
use crate::wish::bond::BondWish;
use crate::wish::ipoib::IpoibWish;
use crate::wish::{bond, ipoib};

/// A NetworkManager profile with the settings of the interface, and its state; none if its name is
/// not plain.
pub(super) fn nm_profile(interface: &Owned<'_>) -> Option<Vec<File>> {
    let name = interface.netdev.ifname.as_str();
    if !is_plain(name) {
        return None;
    }
    let uuid = nm_uuid(interface.netdev, &interface.clients);
    let by_name = format!("interface-name={name}\n");
    // NetworkManager compares only the GUID, which a child shares with its parent.
    let (by_name, by_address) = match interface.address().filter(|_| interface.has_own_guid) {
        Some(address) => (String::new(), format!("mac-address={address}\n")),
        None => (by_name, String::new()),
    };
    let mut text = format!(
        "{HEAD}[connection]\nid={PROFILE}{name}\n{uuid}type=infiniband\n{by_name}\
         autoconnect-priority=100\n{}\n[infiniband]\n{by_address}transport-mode={}\n",
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
        text.push_str(&nm_addresses(interface.wish, &interface.clients));
    }
    Some(nm_files(interface.netdev, text, &interface.clients))
}

/// The line with the UUID of a profile, for an interface with a lease.
fn nm_uuid(netdev: &Netdev, clients: &Clients<'_>) -> String {
    let index = netdev.ifindex.filter(|_| clients.any());
    index.map_or_else(String::new, |index| format!("uuid={}\n", uuid(index)))
}

fn uuid(index: u32) -> String {
    format!("1bb007ed-0000-4000-8000-{index:012x}")
}

/// A profile and, for an interface with a lease, what NetworkManager writes for its own next start:
/// that the profile is active. Otherwise NetworkManager takes a leased address for a static one of
/// another program, and renews nothing (`nm_config_device_state_load` of nm-config.c).
fn nm_files(netdev: &Netdev, text: String, clients: &Clients<'_>) -> Vec<File> {
    let mut files = vec![File {
        top: RUN,
        directory: NM_PROFILES,
        name: format!("{PROFILE}{}.nmconnection", netdev.ifname),
        mode: 0o600,
        text,
    }];
    files.extend(netdev.ifindex.filter(|_| clients.any()).map(|index| File {
        top: RUN,
        directory: NM_DEVICES,
        name: index.to_string(),
        mode: 0o644,
        text: format!(
            "{HEAD}[device]\nmanaged=true\nconnection-uuid={}\nnm-owned=false\n",
            uuid(index)
        ),
    }));
    files
}

fn nm_addresses(wish: &IpoibWish, clients: &Clients<'_>) -> String {
    nm_family(wish, clients, false) + &nm_family(wish, clients, true)
}

/// The section of a family: its method, addresses, name servers and routes, and what its DHCP client
/// sends.
fn nm_family(wish: &IpoibWish, clients: &Clients<'_>, is_ipv6: bool) -> String {
    let section = if is_ipv6 { "ipv6" } else { "ipv4" };
    let addresses = of_family(&wish.addresses, is_ipv6);
    let method = nm_method(wish, &addresses, is_ipv6);
    let mut text = format!("\n[{section}]\nmethod={method}\n");
    for (number, address) in addresses.iter().enumerate() {
        text.push_str(&format!("address{}={address}\n", number.saturating_add(1)));
    }
    // NetworkManager rejects a profile with a gateway beside no address (`verify` of
    // nm-setting-ip-config.c).
    let is_of_family = |gateway: &&IpAddr| gateway.is_ipv6() == is_ipv6;
    let mut gateways = wish.gateways.iter().filter(is_of_family);
    if !addresses.is_empty()
        && let Some(gateway) = gateways.next()
    {
        text.push_str(&format!("gateway={gateway}\n"));
    }
    // NetworkManager rejects a profile with name servers of a family that is disabled or only
    // link-local (`verify` of nm-setting-ip4-config.c and nm-setting-ip6-config.c).
    let servers = wish.dns.iter().filter(|server| server.is_ipv6() == is_ipv6);
    let servers: String = servers.map(|server| format!("{server};")).collect();
    if !servers.is_empty() && !matches!(method, "disabled" | "link-local") {
        text.push_str(&format!("dns={servers}\n"));
    }
    if wish.ignores_dns() {
        text.push_str("ignore-auto-dns=true\n");
    }
    let anywhere = if is_ipv6 { "::/0" } else { "0.0.0.0/0" };
    let others = gateways.map(|gateway| format!("{anywhere},{gateway}"));
    let routes = wish.routes.iter();
    let routes = routes.filter(|route| route.network.address.is_ipv6() == is_ipv6);
    let routes = routes.map(|route| {
        let hop = route.gateway.map(|hop| format!(",{hop}"));
        format!("{}{}", route.network, hop.unwrap_or_default())
    });
    for (number, route) in routes.chain(others).enumerate() {
        text.push_str(&format!("route{}={route}\n", number.saturating_add(1)));
    }
    text + &nm_client(wish, clients, is_ipv6)
}

/// The method of a family with these addresses.
fn nm_method(wish: &IpoibWish, addresses: &[&Address], is_ipv6: bool) -> &'static str {
    let otherwise = match (is_ipv6, wish.kernel_autoconf()) {
        (false, _) => "disabled",
        (true, Some(ipoib::Autoconf::LinkLocal)) => "link-local",
        (true, _) => "auto",
    };
    let is_requested = match is_ipv6 {
        true => wish.kernel_autoconf() == Some(ipoib::Autoconf::Router),
        false => wish.dhcp.is_some(),
    };
    match (is_requested, addresses.is_empty()) {
        (true, _) => "auto",
        (false, true) => otherwise,
        (false, false) => "manual",
    }
}

/// What the DHCP client of a family sends, and how long it waits.
fn nm_client(wish: &IpoibWish, clients: &Clients<'_>, is_ipv6: bool) -> String {
    let mut text = String::new();
    match (is_ipv6, clients.v4, clients.v6) {
        (false, Some(v4), _) => {
            text.push_str(&format!("dhcp-client-id={}\n", v4.client_id));
        }
        (true, _, Some(v6)) => {
            text.push_str(&format!("dhcp-duid={}\ndhcp-iaid={}\n", v6.duid, v6.iaid));
        }
        _ => {}
    }
    let is_leased = match is_ipv6 {
        true => wish.dhcp6.is_some(),
        false => wish.dhcp.is_some(),
    };
    if !is_ipv6 {
        let lines = dhcp_lines(wish, "dhcp-vendor-class-identifier", "dhcp-hostname");
        text.push_str(&lines);
    }
    if is_leased && wish.must_keep() {
        // Without an answer the connection fails after 45 s, but with this number never
        // (nm-settings-keyfile(5)).
        text.push_str("dhcp-timeout=2147483647\n");
    }
    text
}

/// The vendor class and the host name that the DHCPv4 client sends, a line each.
fn dhcp_lines(wish: &IpoibWish, class_key: &str, name_key: &str) -> String {
    let Some(dhcp) = &wish.dhcp else {
        return String::new();
    };
    let values = [(class_key, &dhcp.vendor_class), (name_key, &dhcp.host_name)];
    let values = values.map(|(key, value)| (key, value.as_deref().filter(|value| is_text(value))));
    let lines = values.map(|(key, value)| value.map(|value| format!("{key}={value}\n")));
    lines.into_iter().flatten().collect()
}

/// Whether a value means itself in the files of both programs: no control character, no escape, no
/// space that is cut off.
fn is_text(value: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'\\';
    !value.is_empty() && value.trim() == value && value.bytes().all(plain)
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

pub(super) fn nm_bond(
    netdev: &Netdev,
    bond: &BondWish,
    wish: &IpoibWish,
    clients: &Clients<'_>,
) -> Vec<File> {
    let (name, uuid) = (netdev.ifname.as_str(), nm_uuid(netdev, clients));
    let mut text = format!(
        "{HEAD}[connection]\nid={PROFILE}{name}\n{uuid}type=bond\ninterface-name={name}\n\
         autoconnect-priority=100\nautoconnect-slaves=1\n\n[bond]\nmode={}\n",
        bond::MODE
    );
    for (option, value) in plain_options(bond) {
        text.push_str(&format!("{option}={}\n", value.replace(';', ",")));
    }
    text.push_str(&nm_addresses(wish, clients));
    nm_files(netdev, text, clients)
}

/// Files for a bond: networkd keeps an existing bond as it is, but knows its name only from a file.
pub(super) fn networkd_bond(
    name: &str,
    bond: &BondWish,
    wish: &IpoibWish,
    clients: &Clients<'_>,
) -> [File; 2] {
    let file = |kind: &str, text: String| File {
        top: RUN,
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
    let mut network = format!("{HEAD}[Match]\nName={name}\n\n");
    network.push_str(&networkd_addresses(wish, clients));
    [file("netdev", netdev), file("network", network)]
}

/// The sections `[Network]`, `[Route]`, `[DHCPv4]`, `[DHCPv6]` and `[IPv6AcceptRA]`. With
/// `KeepConfiguration=yes` networkd keeps an address after its lease has ended (systemd.network(5)):
/// right under a root file system only. With `static` it keeps the address of the initramfs when it
/// starts.
fn networkd_addresses(wish: &IpoibWish, clients: &Clients<'_>) -> String {
    let mut text = "[Network]\n".to_owned();
    let is_leased = wish.dhcp.is_some() || wish.dhcp6.is_some();
    let is_kept = !is_leased || wish.must_keep() || !wish.addresses.is_empty();
    let kept = if is_kept { "yes" } else { "static" };
    text.push_str(&format!("KeepConfiguration={kept}\n"));
    match (&wish.dhcp, &wish.dhcp6) {
        (Some(_), Some(_)) => text.push_str("DHCP=yes\n"),
        (Some(_), None) => text.push_str("DHCP=ipv4\n"),
        (None, Some(_)) => text.push_str("DHCP=ipv6\n"),
        (None, None) => {}
    }
    text.push_str(match wish.kernel_autoconf() {
        Some(ipoib::Autoconf::Router) => "IPv6AcceptRA=yes\n",
        Some(ipoib::Autoconf::LinkLocal) => "IPv6AcceptRA=no\n",
        None => "",
    });
    for address in &wish.addresses {
        text.push_str(&format!("Address={address}\n"));
    }
    for gateway in &wish.gateways {
        text.push_str(&format!("Gateway={gateway}\n"));
    }
    for server in &wish.dns {
        text.push_str(&format!("DNS={server}\n"));
    }
    for route in &wish.routes {
        text.push_str(&format!("\n[Route]\nDestination={}\n", route.network));
        if let Some(hop) = route.gateway {
            text.push_str(&format!("Gateway={hop}\n"));
        }
    }
    let (mut dhcp4, mut dhcp6) = (String::new(), String::new());
    if let Some(v4) = clients.v4
        && let client_id = unhex(&v4.client_id).unwrap_or_default()
        && let Some(identifier) = networkd_identifier(&client_id, clients.guid)
    {
        dhcp4.push_str(&identifier);
    }
    if let Some(v6) = clients.v6 {
        let duid = networkd_duid(&unhex(&v6.duid).unwrap_or_default());
        let (iaid, duid) = (v6.iaid, duid.unwrap_or_default());
        dhcp6.push_str(&format!("WithoutRA=solicit\nIAID={iaid}\n{duid}"));
    }
    dhcp4.push_str(&dhcp_lines(wish, "VendorClassIdentifier", "Hostname"));
    let mut router = String::new();
    if wish.ignores_dns() {
        for section in [&mut dhcp4, &mut dhcp6, &mut router] {
            section.push_str("UseDNS=no\n");
        }
    }
    for (section, lines) in [
        ("DHCPv4", dhcp4),
        ("DHCPv6", dhcp6),
        ("IPv6AcceptRA", router),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n[{section}]\n{lines}"));
        }
    }
    text
}

/// The settings that make networkd send this client identifier over InfiniBand; none: networkd
/// cannot send the identifier (systemd.network(5), `ClientIdentifier=`). `own` is the port GUID of
/// the interface, the only one that networkd sends.
fn networkd_identifier(client_id: &[u8], own: Option<Guid>) -> Option<String> {
    match form(client_id) {
        Form::Hardware(guid) if own != Some(guid) => None,
        Form::Hardware(_) => Some("ClientIdentifier=mac\n".to_owned()),
        Form::Duid(iaid, duid) => Some(format!(
            "ClientIdentifier=duid\nIAID={iaid}\n{}",
            networkd_duid(duid)?
        )),
        Form::Other => None,
    }
}

fn networkd_duid(duid: &[u8]) -> Option<String> {
    let (kind, data) = identity::networkd_duid(duid)?;
    Some(format!("DUIDType={kind}\nDUIDRawData={}\n", Hex(data)))
}

fn of_family(addresses: &[Address], is_ipv6: bool) -> Vec<&Address> {
    let is_of_family = |address: &&Address| matches!(address.address, IpAddr::V6(_)) == is_ipv6;
    addresses.iter().filter(is_of_family).collect()
}

/// The systemd-networkd profiles with the settings of the interface; networkd keeps existing
/// settings. The first one matches by the property of udev, because udev of the real root may rename
/// the interface. systemd before 243 knows no properties, and uses the second one, which matches by
/// name.
pub(super) fn networkd_profiles(interface: &Owned<'_>) -> Vec<File> {
    let name = interface.netdev.ifname.as_str();
    if !is_plain(name) {
        return Vec::new();
    }
    let settings = networkd_settings(interface);
    let file = |prefix: &str, matches: &str| File {
        top: RUN,
        directory: NETWORKD,
        name: format!("{prefix}{name}.network"),
        mode: 0o644,
        text: format!("{HEAD}[Match]\n{matches}\n{settings}"),
    };
    let by_name = format!("Type=infiniband\nName={name}\n");
    if marked(interface.netdev).is_none() {
        return vec![file(PROFILE, &by_name)];
    }
    let by_mark = format!("Type=infiniband\nProperty={MARK}={name}\n");
    let by_name = format!("{by_name}{ONLY_OLD}");
    vec![file(PROFILE, &by_mark), file(PROFILE_BY_NAME, &by_name)]
}

fn networkd_settings(interface: &Owned<'_>) -> String {
    let mut text = String::new();
    if let Some(mtu) = interface.mtu() {
        text.push_str(&format!("[Link]\nMTUBytes={mtu}\n\n"));
    }
    match interface.bond() {
        Some(bond) => text.push_str(&format!("[Network]\nBond={bond}\n")),
        None => text.push_str(&networkd_addresses(interface.wish, &interface.clients)),
    }
    text.push_str(&format!("\n[IPoIB]\nMode={}\n", interface.mode()));
    text
}
