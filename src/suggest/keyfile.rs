// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the files of NetworkManager (nm-settings-keyfile(5)) and of systemd-networkd
//! (systemd.network(5), systemd.netdev(5)), as far as they tell what an interface shall have. Keys
//! that are not named here, and with them every secret, are never kept.

use std::net::IpAddr;

use kernel_cmdline::Guid;

use crate::hardware::HardwareAddress;
use crate::inet::{Address, Route};
use crate::system::modules::glob;
use crate::wish::ipoib::{FULL_MEMBER, Mode};

/// The program that a file configures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Program {
    /// NetworkManager.
    #[default]
    Manager,
    /// systemd-networkd.
    Networkd,
}

/// What a file tells about the interfaces that it matches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Its path.
    pub file: String,
    pub program: Program,
    /// Names of interfaces; `*` and `?` match as in a shell.
    pub names: Vec<String>,
    /// The port GUID in the hardware address that it names.
    pub guid: Option<Guid>,
    /// P_Key of a child interface.
    pub pkey: Option<u16>,
    /// Name of the parent of a child interface.
    pub parent: Option<String>,
    /// It is for InfiniBand interfaces, and names none.
    pub is_for_any: bool,
    pub mode: Option<Mode>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Addresses of a DHCP server.
    pub dhcp4: bool,
    /// Addresses of a DHCPv6 server.
    pub dhcp6: bool,
    /// Addresses of routers.
    pub autoconf: bool,
    /// The client identifier for the DHCP server, as written.
    pub client_id: Option<String>,
    pub addresses: Vec<Address>,
    pub gateways: Vec<IpAddr>,
    pub dns: Vec<IpAddr>,
    pub routes: Vec<Route>,
    /// Zone of firewalld.
    pub zone: Option<String>,
}

impl Profile {
    /// Whether it is for this interface.
    pub fn is_for(&self, name: &str, guid: Option<Guid>, child: Option<(u16, &str)>) -> bool {
        if self.pkey.is_some() && self.parent.is_some() {
            let own = self.pkey.zip(self.parent.as_deref());
            return own == child || self.has_name(name);
        }
        let is_named = !self.names.is_empty() || self.guid.is_some();
        match is_named {
            true => {
                let is_name = self.names.is_empty() || self.has_name(name);
                // A child has the GUID of its parent.
                let is_guid = self.guid.is_none() || (self.guid == guid && child.is_none());
                is_name && is_guid
            }
            false => self.is_for_any && guid.is_some() && child.is_none(),
        }
    }

    /// Whether it names this interface, not only a pattern that the interface matches.
    pub fn names(&self, name: &str) -> bool {
        let is_name = self.names.iter().any(|known| known == name);
        is_name || self.guid.is_some() || self.pkey.is_some()
    }

    fn has_name(&self, name: &str) -> bool {
        let fits = |pattern: &String| glob(pattern.as_bytes(), name.as_bytes());
        self.names.iter().any(fits)
    }
}

/// A line of the file: its section, key and value. The line that begins a section has an empty key.
type Entry<'a> = (&'a str, &'a str, &'a str);

fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut section = "";
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        let name = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(name) = name {
            section = name;
            found.push((section, "", ""));
        } else if let Some((key, value)) = line.split_once('=') {
            found.push((section, key.trim(), value.trim()));
        }
    }
    found
}

fn words<'a>(value: &'a str, separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    value
        .split(separators)
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

fn guid(value: &str) -> Option<Guid> {
    let address = value.parse::<HardwareAddress>().ok()?;
    address.port_guid()
}

/// `ADDRESS/PREFIX[,GATEWAY]`; an address without a prefix is one host.
fn address(value: &str) -> Option<(Address, Option<IpAddr>)> {
    let mut words = words(value, &[',']);
    let text = words.next()?;
    let address = text.parse().ok().or_else(|| host(text))?;
    Some((address, words.next().and_then(|word| word.parse().ok())))
}

fn host(text: &str) -> Option<Address> {
    text.parse().ok().map(Address::host)
}

/// A P_Key, in decimal or with `0x`; the kernel sets the bit of full membership.
fn pkey(value: &str) -> Option<u16> {
    let digits = value
        .strip_prefix("0x")
        .or_else(|| value.strip_prefix("0X"));
    let key = match digits {
        Some(digits) => u16::from_str_radix(digits, 16).ok()?,
        None => value.parse().ok()?,
    };
    Some(key | FULL_MEMBER)
}

fn is_yes(value: &str) -> bool {
    matches!(value, "yes" | "true" | "on" | "1" | "both")
}

/// A key of two families: `address1` and `route2` have a number.
fn is_numbered(key: &str, name: &str) -> bool {
    let number = key.strip_prefix(name);
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A profile of NetworkManager; none if it is for no InfiniBand interface or bond, or is never
/// activated by itself.
pub fn of_manager(file: &str, text: &str) -> Option<Profile> {
    let mut profile = Profile {
        file: file.to_owned(),
        ..Profile::default()
    };
    let entries = entries(text);
    let has = |section: &str, key: &str| entries.iter().any(|(s, k, _)| (*s, *k) == (section, key));
    // Without the section NetworkManager adds the default method, unless another interface has the
    // addresses (`_normalize_ip_config` of nm-connection.c).
    let is_port = has("connection", "master") || has("connection", "controller");
    profile.dhcp4 = !is_port && !has("ipv4", "");
    profile.autoconf = !is_port && !has("ipv6", "method");
    let mut kind = "";
    for (section, key, value) in &entries {
        match (*section, *key) {
            ("connection", "type") => kind = value,
            ("connection", "interface-name") => profile.names.push((*value).to_owned()),
            ("connection", "zone") if !value.is_empty() => profile.zone = Some((*value).to_owned()),
            ("connection", "autoconnect") if !is_yes(value) => return None,
            ("infiniband", "mac-address") => profile.guid = guid(value),
            ("infiniband", "transport-mode") => profile.mode = Mode::parse(value),
            ("infiniband", "mtu") => profile.mtu = value.parse().ok().filter(|mtu| *mtu > 0),
            ("infiniband", "p-key") => profile.pkey = pkey(value),
            ("infiniband", "parent") => profile.parent = Some((*value).to_owned()),
            ("ipv4" | "ipv6", _) => of_family(&mut profile, section, key, value),
            _ => {}
        }
    }
    for (section, key, value) in &entries {
        if *key == "never-default" && is_yes(value) {
            let is_ipv6 = *section == "ipv6";
            profile
                .gateways
                .retain(|gateway| gateway.is_ipv6() != is_ipv6);
        }
    }
    profile.is_for_any = kind == "infiniband";
    // A child of the kernel has the name of its parent and its P_Key.
    if profile.pkey.is_some() && profile.parent.is_none() {
        profile.parent = profile.names.first().cloned();
        profile.names.clear();
    }
    matches!(kind, "infiniband" | "bond").then_some(profile)
}

fn of_family(profile: &mut Profile, family: &str, key: &str, value: &str) {
    match (family, key, value) {
        ("ipv4", "method", "auto") => profile.dhcp4 = true,
        ("ipv6", "method", "auto") => profile.autoconf = true,
        ("ipv6", "method", "dhcp") => profile.dhcp6 = true,
        (_, "gateway", _) => profile.gateways.extend(value.parse::<IpAddr>()),
        ("ipv4", "dhcp-client-id", _) => profile.client_id = Some(value.to_owned()),
        (_, "dns", _) => {
            let servers = words(value, &[';', ',', ' ']);
            profile
                .dns
                .extend(servers.filter_map(|s| s.parse::<IpAddr>().ok()));
        }
        (_, key, _) if is_numbered(key, "address") || key == "addresses" => {
            for (own, gateway) in words(value, &[';']).filter_map(address) {
                profile.addresses.push(own);
                profile.gateways.extend(gateway);
            }
        }
        (_, key, _) if is_numbered(key, "route") => {
            let route = address(value);
            profile
                .routes
                .extend(route.map(|(network, gateway)| Route { network, gateway }));
        }
        _ => {}
    }
}

/// A [Route] section of systemd-networkd; a destination that cannot be parsed is no default route.
#[derive(Default)]
struct RouteSection {
    destination: Option<Option<Address>>,
    gateway: Option<IpAddr>,
}

impl RouteSection {
    fn add(self, profile: &mut Profile) {
        match (self.destination, self.gateway) {
            (None, Some(gateway)) => profile.gateways.push(gateway),
            (Some(Some(network)), Some(gateway)) if network.prefix == 0 => {
                profile.gateways.push(gateway);
            }
            (Some(Some(network)), gateway) => profile.routes.push(Route { network, gateway }),
            (Some(None), _) | (None, None) => {}
        }
    }
}

/// A .network or .netdev file of systemd-networkd; none if it names no interface, or leaves its
/// interfaces alone, as the files of ibboot do.
pub fn of_networkd(file: &str, text: &str) -> Option<Profile> {
    let mut profile = Profile {
        file: file.to_owned(),
        program: Program::Networkd,
        // The default of IPv6AcceptRA=.
        autoconf: file.ends_with(".network"),
        ..Profile::default()
    };
    let mut has_ipv6 = true;
    let mut route = RouteSection::default();
    for (section, key, value) in entries(text) {
        if key.is_empty() {
            std::mem::take(&mut route).add(&mut profile);
        }
        match (section, key) {
            // An empty value empties the list.
            ("Match", "Name") if value.is_empty() => profile.names.clear(),
            ("Network", "Address") if value.is_empty() => profile.addresses.clear(),
            ("Network", "Gateway") if value.is_empty() => profile.gateways.clear(),
            ("Network", "DNS") if value.is_empty() => profile.dns.clear(),
            ("Match", "Name") => {
                let names = words(value, &[' ']).map(str::to_owned);
                profile.names.extend(names);
            }
            ("Match", "MACAddress" | "PermanentMACAddress") => profile.guid = guid(value),
            ("NetDev", "Name") => profile.names.push(value.to_owned()),
            ("NetDev", "MTUBytes") | ("Link", "MTUBytes") => profile.mtu = value.parse().ok(),
            ("Link", "Unmanaged") if is_yes(value) => return None,
            ("IPoIB", "Mode") => profile.mode = Mode::parse(value),
            ("Network", "DHCP") => {
                profile.dhcp4 = is_yes(value) || value == "ipv4";
                profile.dhcp6 = is_yes(value) || value == "ipv6";
            }
            ("Network", "LinkLocalAddressing") => {
                let is_without = ["no", "false", "off", "0", "ipv4", "ipv4-fallback"];
                has_ipv6 = !is_without.contains(&value);
            }
            ("Network", "IPv6AcceptRA") => profile.autoconf = is_yes(value),
            ("Network" | "Address", "Address") => {
                profile.addresses.extend(address(value).map(|(own, _)| own));
            }
            ("Network", "Gateway") => profile.gateways.extend(value.parse::<IpAddr>()),
            ("Network", "DNS") => {
                let servers = words(value, &[' ']);
                profile
                    .dns
                    .extend(servers.filter_map(|s| s.parse::<IpAddr>().ok()));
            }
            ("Route", "Destination") => {
                route.destination = Some(value.parse().ok().or_else(|| host(value)));
            }
            ("Route", "Gateway") => route.gateway = value.parse().ok(),
            ("DHCPv4", "ClientIdentifier") => profile.client_id = Some(value.to_owned()),
            _ => {}
        }
    }
    route.add(&mut profile);
    profile.autoconf &= has_ipv6;
    (!profile.names.is_empty() || profile.guid.is_some()).then_some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_a_word_both_programs_ask_servers_and_routers() {
        let asks = |profile: Option<Profile>| profile.map(|p| (p.dhcp4, p.autoconf)).unwrap();
        let head = "[connection]\ntype=infiniband\ninterface-name=ib0\n";
        for (text, expected) in [
            ("", (true, true)),
            (
                "[ipv4]\nmethod=manual\naddress1=10.0.0.5/24\n",
                (false, true),
            ),
            (
                "[ipv4]\nmethod=auto\n[ipv6]\nmethod=disabled\n",
                (true, false),
            ),
            (
                "[ipv4]\nmethod=disabled\n[ipv6]\naddr-gen-mode=eui64\n",
                (false, true),
            ),
            ("master=bond0\nslave-type=bond\n", (false, false)),
        ] {
            let profile = of_manager("f", &format!("{head}{text}"));
            assert_eq!(asks(profile), expected, "{text}");
        }
        for (text, expected) in [
            ("[Network]\nAddress=10.0.0.5/24\n", (false, true)),
            ("[Network]\nDHCP=ipv4\nIPv6AcceptRA=no\n", (true, false)),
            ("[Network]\nLinkLocalAddressing=no\n", (false, false)),
            ("[Network]\nLinkLocalAddressing=ipv6\n", (false, true)),
        ] {
            let profile = of_networkd("f.network", &format!("[Match]\nName=ib0\n{text}"));
            assert_eq!(asks(profile), expected, "{text}");
        }
    }

    #[test]
    fn a_profile_of_networkmanager_is_read_without_its_secrets() {
        let text = "[connection]\nid=ib\ntype=infiniband\ninterface-name=ib0\n[infiniband]\n\
            mac-address=80:00:00:48:FE:80:00:00:00:00:00:00:B8:59:9F:03:00:FC:1A:2C\ntransport-mode=connected\nmtu=65520\n\
            [802-1x]\npassword=secret\n[ipv4]\nmethod=manual\naddress1=10.0.0.5/24,10.0.0.1\ndns=10.0.0.2;10.0.0.3;\n\
            route1=10.8.0.0/16,10.0.0.9,100\n[ipv6]\nmethod=disabled\n";
        let profile = of_manager("f", text).unwrap();
        assert_eq!(profile.names, ["ib0"]);
        assert_eq!(profile.guid, Some(Guid(0xb859_9f03_00fc_1a2c)));
        assert_eq!(
            (profile.mode, profile.mtu),
            (Some(Mode::Connected), Some(65520))
        );
        assert_eq!(profile.addresses, ["10.0.0.5/24".parse().unwrap()]);
        assert_eq!(profile.gateways, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(profile.dns.len(), 2);
        assert_eq!(profile.routes[0].to_string(), "10.8.0.0/16 via 10.0.0.9");
        assert!(!profile.dhcp4 && !profile.autoconf);
        assert!(!format!("{profile:?}").contains("secret"));
        let ethernet = text.replace("type=infiniband", "type=ethernet");
        assert_eq!(of_manager("f", &ethernet), None);
    }

    #[test]
    fn a_profile_of_a_child_is_for_the_child_only() {
        let text = "[connection]\ntype=infiniband\n[infiniband]\np-key=32769\nparent=ib0\n";
        let profile = of_manager("f", text).unwrap();
        assert_eq!(profile.pkey, Some(0x8001));
        let guid = Some(Guid(1));
        assert!(profile.is_for("ib0.8001", guid, Some((0x8001, "ib0"))));
        assert!(!profile.is_for("ib0", guid, None));
        assert!(!profile.is_for("ib1.8001", guid, Some((0x8001, "ib1"))));
    }

    #[test]
    fn a_file_of_networkd_is_read() {
        let text = "[Match]\nName=ib0 ibp*\n[Network]\nDHCP=ipv4\nAddress=10.0.0.5/24\nDNS=10.0.0.2\n[Route]\n\
            Gateway=10.0.0.1\n[Route]\nDestination=10.8.0.0/16\nGateway=10.0.0.9\n[Link]\nMTUBytes=2044\n";
        let profile = of_networkd("f", text).unwrap();
        assert!(profile.is_for("ibp9s0", None, None) && !profile.is_for("eth0", None, None));
        assert!(profile.dhcp4 && !profile.dhcp6);
        assert_eq!(profile.mtu, Some(2044));
        assert_eq!(profile.gateways, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(profile.routes[0].to_string(), "10.8.0.0/16 via 10.0.0.9");
        let left = "[Match]\nName=ib0\n[Link]\nUnmanaged=yes\n";
        assert_eq!(of_networkd("00-ibboot-ib0.network", left), None);
    }

    #[test]
    fn a_gateway_is_of_the_destination_in_its_section() {
        let text = "[Match]\nName=ib0\n[Route]\nGateway=10.0.0.9\nDestination=10.8.0.0/16\n[Route]\n\
            Destination=nonsense\nGateway=10.0.0.7\n[Route]\nDestination=10.9.0.0/16\n[Route]\nGateway=10.0.0.1\n";
        let profile = of_networkd("f", text).unwrap();
        assert_eq!(profile.gateways, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        let gateways: Vec<_> = profile.routes.iter().map(|route| route.gateway).collect();
        assert_eq!(gateways, ["10.0.0.9".parse().ok(), None]);
    }

    #[test]
    fn a_profile_that_is_never_the_default_has_no_gateway() {
        let text = "[connection]\ntype=infiniband\n[ipv4]\nnever-default=true\naddress1=10.0.0.5/24,10.0.0.1\n\
            [ipv6]\naddress1=fd00::5/64,fd00::1\n";
        let profile = of_manager("f", text).unwrap();
        assert_eq!(profile.gateways, ["fd00::1".parse::<IpAddr>().unwrap()]);
        assert_eq!(profile.addresses.len(), 2);
    }

    proptest! {
        #[test]
        fn no_file_panics(text in "(\\[[a-zA-Z0-9]*\\]|[a-zA-Z0-9=;,:./*? -]*|\\PC*)(\n(\\[ipv4\\]|address1=[0-9./,]*|Name=[*?a-z]*)){0,6}") {
            of_manager("f", &text);
            if let Some(profile) = of_networkd("f", &text) {
                profile.is_for("ib0", Some(Guid(1)), None);
            }
        }
    }
}
