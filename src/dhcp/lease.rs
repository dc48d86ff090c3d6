// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a server grants, each value checked. A value that does not fit is left out and named;
//! an address, mask, server or time that does not fit makes the whole offer unusable.

use std::net::Ipv4Addr;

use kernel_cmdline::is_plain;
use serde::{Deserialize, Serialize};

use super::packet::{Message, option};
use crate::redact;

/// A lease for ever (RFC 2131 3.3).
pub const FOR_EVER: u32 = u32::MAX;
/// dhclient-script takes no MTU up to this one: servers that say 576 mean "no idea".
const MTU_MIN: u16 = 576;
/// No network is larger than one of class A.
const PREFIX_MIN: u32 = 8;
/// Longest host or domain name (RFC 1035 2.3.4).
const NAME: usize = 253;
/// Domains of a search list that are taken.
const DOMAINS: usize = 32;

/// A route that the server wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Where it leads; bits behind the prefix are zero.
    pub network: Ipv4Addr,
    /// Length of its prefix in bits.
    pub prefix: u8,
    /// The next hop; 0.0.0.0: the network is on the link itself.
    pub gateway: Ipv4Addr,
}

/// A lease; state.json keeps it without what may be a secret in its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// Length of its prefix in bits.
    pub prefix: u8,
    /// Who granted it (option 54).
    pub server: Ipv4Addr,
    /// When it was asked for, ns since kernel start: its times count from there (RFC 2131 4.4.1).
    pub asked_ns: u64,
    /// Seconds it holds; 4294967295 is for ever.
    pub seconds: u32,
    /// Seconds until it is renewed with its server (T1).
    pub renew_s: u32,
    /// Seconds until any server is asked (T2).
    pub rebind_s: u32,
    /// Broadcast address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Ipv4Addr>,
    /// Routers (option 3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routers: Vec<Ipv4Addr>,
    /// Classless static routes (option 121); where it is there, `routers` does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classless_routes: Option<Vec<Route>>,
    /// Classful static routes (option 33).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_routes: Vec<Route>,
    /// Domain name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<Ipv4Addr>,
    /// Domain name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_name: Option<String>,
    /// Domains to search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domain_search: Vec<String>,
    /// Host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// MTU in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// Root path (option 17).
    #[serde(
        default,
        with = "redact::places",
        skip_serializing_if = "Option::is_none"
    )]
    pub root_path: Option<String>,
    /// Next server of the boot (`siaddr`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_server: Option<Ipv4Addr>,
    /// TFTP server name (option 66, or `sname`).
    #[serde(
        default,
        with = "redact::places",
        skip_serializing_if = "Option::is_none"
    )]
    pub tftp_server: Option<String>,
    /// Boot file (option 67, or `file`).
    #[serde(
        default,
        with = "redact::places",
        skip_serializing_if = "Option::is_none"
    )]
    pub boot_file: Option<String>,
    /// What the server sent and was not taken, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Lease {
    /// The lease in an OFFER or an ACK to a request of `asked_ns`; the error says in one line what
    /// makes it unusable.
    pub fn of(message: &Message, asked_ns: u64) -> Result<Lease, String> {
        let address = message.yiaddr;
        if !is_host(address) {
            return Err(format!("{address} is no address for a host"));
        }
        let server = message
            .address(option::SERVER)
            .ok_or("no server identifier (option 54)")?;
        if !is_host(server) {
            return Err(format!("server identifier {server}"));
        }
        let mask = message
            .address(option::MASK)
            .ok_or("no subnet mask (option 1)")?;
        let prefix = prefix_of(mask).ok_or_else(|| format!("subnet mask {mask}"))?;
        let (network, last) = bounds(address, prefix);
        if prefix <= 30 && (address == network || address == last) {
            return Err(format!(
                "{address}/{prefix} is the address of a whole network"
            ));
        }
        let seconds = message
            .number(option::LEASE_TIME)
            .ok_or("no lease time (option 51)")?;
        if seconds == 0 {
            return Err("a lease time of 0 s".to_owned());
        }
        let (renew_s, rebind_s) = times(message, seconds);
        let mut taken = Taken {
            message,
            left_out: Vec::new(),
        };
        Ok(Lease {
            address,
            prefix,
            server,
            asked_ns,
            seconds,
            renew_s,
            rebind_s,
            broadcast: message.address(option::BROADCAST),
            routers: taken.hosts(option::ROUTERS),
            classless_routes: taken.classless_routes(),
            static_routes: taken.static_routes(),
            name_servers: taken.hosts(option::NAME_SERVERS),
            domain_name: taken.name(option::DOMAIN_NAME),
            domain_search: taken.domain_search(),
            host_name: taken.name(option::HOST_NAME),
            mtu: taken.mtu(),
            root_path: taken.text(option::ROOT_PATH),
            next_server: Some(message.siaddr).filter(|server| is_host(*server)),
            tftp_server: taken
                .text(option::TFTP_SERVER)
                .or_else(|| taken.field("sname", &message.sname)),
            boot_file: taken
                .text(option::BOOT_FILE)
                .or_else(|| taken.field("file", &message.file)),
            left_out: taken.left_out,
        })
    }

    /// Whether it was read from a state.json that does not have all of it.
    pub fn is_redacted(&self) -> bool {
        let texts = [&self.root_path, &self.tftp_server, &self.boot_file];
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| redact::is_redacted(text))
    }

    /// When it ends, ns since kernel start; `None`: never.
    pub fn ends_ns(&self) -> Option<u64> {
        let length = u64::from(self.seconds).saturating_mul(1_000_000_000);
        (self.seconds != FOR_EVER).then(|| self.asked_ns.saturating_add(length))
    }

    /// How long it holds, in words.
    pub fn length(&self) -> String {
        match self.seconds {
            FOR_EVER => "for ever".to_owned(),
            seconds => format!("for {seconds} s"),
        }
    }

    /// `10.0.0.5/24`.
    pub fn address_text(&self) -> String {
        format!("{}/{}", self.address, self.prefix)
    }

    /// The routes to set, in order: with option 121 its own alone (RFC 3442), else classful ones
    /// and the first router as default.
    pub fn routes(&self) -> Vec<Route> {
        if let Some(routes) = &self.classless_routes {
            return routes.clone();
        }
        let mut routes = self.static_routes.clone();
        routes.extend(self.routers.first().map(|gateway| Route {
            network: Ipv4Addr::UNSPECIFIED,
            prefix: 0,
            gateway: *gateway,
        }));
        routes
    }

    /// The default gateway.
    pub fn gateway(&self) -> Option<Ipv4Addr> {
        let routes = self.routes();
        let default = routes.iter().find(|route| route.prefix == 0)?;
        Some(default.gateway).filter(|gateway| !gateway.is_unspecified())
    }

    /// What to search: the list, else the node's own domain.
    pub fn domains(&self) -> Vec<String> {
        if self.domain_search.is_empty() {
            self.domain_name.iter().cloned().collect()
        } else {
            self.domain_search.clone()
        }
    }

    /// The variables under which dracut's modules look for the values (dhclient-script(8)), as
    /// plain bytes: whoever writes them for a shell quotes them.
    pub fn variables(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut variables: Vec<(&'static str, Vec<u8>)> = Vec::new();
        let mut add = |name, value: Option<String>| {
            variables.extend(value.map(|value| (name, value.into_bytes())));
        };
        let some = |text: String| (!text.is_empty()).then_some(text);
        let list = |addresses: &[Ipv4Addr], between: &str| {
            let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            some(texts.join(between))
        };
        add("new_ip_address", Some(self.address.to_string()));
        add("new_subnet_mask", Some(mask_of(self.prefix).to_string()));
        add(
            "new_broadcast_address",
            self.broadcast.map(|address| address.to_string()),
        );
        // dracut's reader cuts this one list at a comma.
        add("new_routers", list(&self.routers, ","));
        let routes = self.classless_routes.as_deref().unwrap_or_default();
        add("new_classless_static_routes", some(octets(routes)));
        add("new_domain_name_servers", list(&self.name_servers, " "));
        add("new_domain_name", self.domain_name.clone());
        add("new_domain_search", some(self.domain_search.join(" ")));
        add("new_host_name", self.host_name.clone());
        add("new_interface_mtu", self.mtu.map(|mtu| mtu.to_string()));
        add("new_dhcp_lease_time", Some(self.seconds.to_string()));
        add("new_dhcp_server_identifier", Some(self.server.to_string()));
        add(
            "new_next_server",
            self.next_server.map(|server| server.to_string()),
        );
        add("new_tftp_server_name", self.tftp_server.clone());
        add("new_root_path", self.root_path.clone());
        add("filename", self.boot_file.clone());
        variables
    }
}

/// Option 121 as dhclient writes it: prefix, significant octets of the network, gateway.
fn octets(routes: &[Route]) -> String {
    let one = |route: &Route| {
        let significant = usize::from(route.prefix.div_ceil(8));
        let mut numbers = vec![route.prefix];
        numbers.extend(route.network.octets().iter().take(significant));
        numbers.extend(route.gateway.octets());
        let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        texts.join(" ")
    };
    let texts: Vec<String> = routes.iter().map(one).collect();
    texts.join(" ")
}

/// An address that one machine may have: no network 0, loopback, multicast, reserved or broadcast.
fn is_host(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    (1..=223).contains(&first) && first != 127
}

fn prefix_of(mask: Ipv4Addr) -> Option<u8> {
    let ones = mask.to_bits().leading_ones();
    (mask.to_bits().count_ones() == ones && ones >= PREFIX_MIN)
        .then(|| u8::try_from(ones).ok())
        .flatten()
}

fn mask_of(prefix: u8) -> Ipv4Addr {
    let host_bits = 32_u32.saturating_sub(u32::from(prefix));
    Ipv4Addr::from(u32::MAX.checked_shl(host_bits).unwrap_or(0))
}

/// First and last address of the network.
fn bounds(address: Ipv4Addr, prefix: u8) -> (Ipv4Addr, Ipv4Addr) {
    let mask = mask_of(prefix).to_bits();
    let network = address.to_bits() & mask;
    (Ipv4Addr::from(network), Ipv4Addr::from(network | !mask))
}

/// T1 and T2: the server's where 0 < T1 < T2 < lease, else a half and seven eighths of the lease
/// (RFC 2131 4.4.5).
fn times(message: &Message, seconds: u32) -> (u32, u32) {
    let rebind_s = message
        .number(option::REBIND)
        .filter(|t2| *t2 > 0 && *t2 < seconds)
        .unwrap_or((seconds - seconds.div_ceil(8)).max(1));
    let renew_s = message
        .number(option::RENEW)
        .filter(|t1| *t1 > 0 && *t1 < rebind_s)
        .unwrap_or_else(|| (seconds / 2).min(rebind_s));
    (renew_s, rebind_s)
}

struct Taken<'a> {
    message: &'a Message,
    left_out: Vec<String>,
}

impl Taken<'_> {
    fn leave_out<T>(&mut self, code: u8, why: &str) -> Option<T> {
        self.left_out.push(format!("option {code}: {why}"));
        None
    }

    /// Addresses of hosts; one that is none is left out, the others stay.
    fn hosts(&mut self, code: u8) -> Vec<Ipv4Addr> {
        let Some(bytes) = self.message.option(code) else {
            return Vec::new();
        };
        let (addresses, []) = bytes.as_chunks::<4>() else {
            self.leave_out::<()>(code, &format!("{} bytes", bytes.len()));
            return Vec::new();
        };
        let mut hosts = Vec::new();
        for address in addresses.iter().map(|bytes| Ipv4Addr::from(*bytes)) {
            if is_host(address) {
                hosts.push(address);
            } else {
                self.leave_out::<()>(code, &address.to_string());
            }
        }
        hosts
    }

    fn mtu(&mut self) -> Option<u16> {
        let bytes = self.message.option(option::MTU)?;
        let Ok(bytes) = <[u8; 2]>::try_from(bytes) else {
            return self.leave_out(option::MTU, &format!("{} bytes", bytes.len()));
        };
        match u16::from_be_bytes(bytes) {
            mtu if mtu > MTU_MIN => Some(mtu),
            mtu => self.leave_out(option::MTU, &format!("MTU {mtu}")),
        }
    }

    /// One line of text: UTF-8 without characters that hide or reorder others.
    fn text(&mut self, code: u8) -> Option<String> {
        let bytes = self.message.option(code)?;
        match line_of(bytes) {
            Ok(text) => text,
            Err(why) => self.leave_out(code, why),
        }
    }

    fn field(&mut self, name: &str, bytes: &[u8]) -> Option<String> {
        match line_of(bytes) {
            Ok(text) => text,
            Err(why) => {
                self.left_out.push(format!("{name}: {why}"));
                None
            }
        }
    }

    /// A host or domain name.
    fn name(&mut self, code: u8) -> Option<String> {
        let text = self.text(code)?;
        if is_name(&text) {
            return Some(text);
        }
        self.leave_out(code, "no host or domain name")
    }

    fn static_routes(&mut self) -> Vec<Route> {
        const CODE: u8 = option::STATIC_ROUTES;
        let Some(bytes) = self.message.option(CODE) else {
            return Vec::new();
        };
        let (pairs, []) = bytes.as_chunks::<8>() else {
            self.leave_out::<()>(CODE, &format!("{} bytes", bytes.len()));
            return Vec::new();
        };
        let mut routes = Vec::new();
        for &[a, b, c, d, gateway @ ..] in pairs {
            let (network, gateway) = (Ipv4Addr::new(a, b, c, d), Ipv4Addr::from(gateway));
            // The class says the mask (RFC 2132 5.8); the default route is not allowed here.
            let class = match a {
                1..=126 => 8,
                128..=191 => 16,
                192..=223 => 24,
                _ => 0,
            };
            let is_network = bounds(network, class).0 == network;
            if class == 0 || !is_host(gateway) {
                self.leave_out::<()>(CODE, &format!("{network} by {gateway}"));
                continue;
            }
            routes.push(Route {
                network,
                prefix: if is_network { class } else { 32 },
                gateway,
            });
        }
        routes
    }

    /// RFC 3442. One wrong route makes the whole list unreadable: there is no telling where the
    /// next one begins.
    fn classless_routes(&mut self) -> Option<Vec<Route>> {
        const CODE: u8 = option::CLASSLESS_ROUTES;
        let mut rest = self.message.option(CODE)?;
        let mut routes = Vec::new();
        while let Some((&prefix, after)) = rest.split_first() {
            let significant = usize::from(prefix.div_ceil(8));
            let parts = (prefix <= 32)
                .then(|| after.split_at_checked(significant))
                .flatten()
                .and_then(|(network, after)| Some((network, after.split_first_chunk::<4>()?)));
            let Some((network, (gateway, after))) = parts else {
                return self.leave_out(CODE, "does not fit its length");
            };
            let mut octets = [0; 4];
            for (to, from) in octets.iter_mut().zip(network) {
                *to = *from;
            }
            let gateway = Ipv4Addr::from(*gateway);
            let network = bounds(Ipv4Addr::from(octets), prefix).0;
            let leads = prefix == 0 || is_host(network);
            if leads && (is_host(gateway) || (gateway.is_unspecified() && prefix > 0)) {
                routes.push(Route {
                    network,
                    prefix,
                    gateway,
                });
            } else {
                self.leave_out::<()>(CODE, &format!("{network}/{prefix} by {gateway}"));
            }
            rest = after;
        }
        Some(routes)
    }

    fn domain_search(&mut self) -> Vec<String> {
        const CODE: u8 = option::DOMAIN_SEARCH;
        let Some(bytes) = self.message.option(CODE) else {
            return Vec::new();
        };
        match domains(bytes) {
            Some(domains) => domains,
            None => {
                self.leave_out::<()>(CODE, "no list of domains");
                Vec::new()
            }
        }
    }
}

/// Text up to trailing NULs, which old servers send; empty is none.
fn line_of(bytes: &[u8]) -> Result<Option<String>, &'static str> {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    let Some(bytes) = end.and_then(|end| bytes.get(..=end)) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8")?;
    if !text.chars().all(is_plain) {
        return Err("a control character");
    }
    Ok(Some(text.to_owned()))
}

/// Labels of letters, digits, `-` and `_`, of at most 63 bytes, with dots between them and perhaps
/// one behind (RFC 1123 2.1).
fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= NAME && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

/// RFC 3397: names of RFC 1035 4.1.4 with pointers. A pointer leads backwards, so that every walk
/// ends.
pub(crate) fn domains(bytes: &[u8]) -> Option<Vec<String>> {
    let mut domains = Vec::new();
    let mut position = 0;
    while position < bytes.len() && domains.len() < DOMAINS {
        let (domain, next) = domain(bytes, position)?;
        domains.push(domain);
        position = next;
    }
    Some(domains)
}

/// The name at `start`, and where the next one begins.
fn domain(bytes: &[u8], start: usize) -> Option<(String, usize)> {
    let mut labels: Vec<&str> = Vec::new();
    let mut position = start;
    // Where the labels that are read now began: a pointer must lead before that.
    let mut began = start;
    let mut next = None;
    loop {
        let length = *bytes.get(position)?;
        match length {
            0 => {
                let name = labels.join(".");
                let next = next.unwrap_or(position.checked_add(1)?);
                return is_name(&name).then_some((name, next));
            }
            1..=63 => {
                let from = position.checked_add(1)?;
                position = from.checked_add(usize::from(length))?;
                labels.push(std::str::from_utf8(bytes.get(from..position)?).ok()?);
                if labels.len() > NAME {
                    return None;
                }
            }
            192..=255 => {
                let behind = position.checked_add(1)?;
                let low = *bytes.get(behind)?;
                let target = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                if target >= began {
                    return None;
                }
                next = next.or(behind.checked_add(1));
                (position, began) = (target, target);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;
