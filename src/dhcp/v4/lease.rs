// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a server grants, each value checked. An invalid value is left out and reported; an
//! invalid address, mask, server or time makes the whole offer unusable.

mod options;

use std::net::Ipv4Addr;

use options::{LeftOut, Taken};
use serde::{Deserialize, Serialize};

use super::packet::{LARGEST, Message, option};
use crate::dhcp::Granted;
use crate::dhcp::brake::Reason;
use crate::dhcp::lifetime::{self, SECONDS_MIN, floored};
use crate::dhcp::names::is_name;
use crate::inet::{self, Address};
use crate::redact;
use crate::system::decoder::is_line;

/// Entries of the longest list in a message: an IPv4 address has 4 bytes.
const MANY: usize = LARGEST / 4;
/// No network is larger than a class A network.
const PREFIX_MIN: u32 = 8;

/// A route that the server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Destination; bits after the prefix are zero.
    pub network: Ipv4Addr,
    /// Prefix length in bits.
    pub prefix: u8,
    /// The next hop; 0.0.0.0: the network is on the link.
    pub gateway: Ipv4Addr,
}

/// A lease; state.json stores the lease without possible secrets in its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The granted address.
    pub address: Ipv4Addr,
    /// Prefix length in bits.
    pub prefix: u8,
    /// The server that granted the lease (option 54).
    pub server: Ipv4Addr,
    /// When the lease was requested, ns since kernel start: the lease times count from this moment
    /// (RFC 2131 4.4.1).
    pub requested_ns: u64,
    /// Length of the lease in seconds; 4294967295 means for ever.
    pub seconds: u32,
    /// Seconds until the client renews the lease with its server (T1).
    pub renew_s: u32,
    /// Seconds until the client asks any server (T2).
    pub rebind_s: u32,
    /// Broadcast address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Ipv4Addr>,
    /// Routers (option 3).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routers: Vec<Ipv4Addr>,
    /// Classless static routes (option 121); if present, `routers` is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classless_routes: Option<Vec<Route>>,
    /// Classful static routes (option 33).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_routes: Vec<Route>,
    /// Domain name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<Ipv4Addr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_name: Option<String>,
    /// Domains to search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domain_search: Vec<String>,
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
    /// Values of the server that were rejected, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Lease {
    /// The lease in an OFFER or an ACK to a request of `requested_ns`; the error is one line that says
    /// why the answer is unusable.
    pub fn of(message: &Message, requested_ns: u64) -> Result<Lease, Reason> {
        let address = message.yiaddr;
        if !is_host(address) {
            let why = format!("{address} is not a host address");
            return Err(Reason::new("not a host address", why));
        }
        let server = message
            .address(option::SERVER)
            .ok_or("no server identifier (option 54)")?;
        if !is_host(server) {
            let why = format!("invalid server identifier {server}");
            return Err(Reason::new("server identifier", why));
        }
        if server == address {
            let why = format!("{address} is the server's own address");
            return Err(Reason::new("the server's own address", why));
        }
        let mask = message
            .address(option::MASK)
            .ok_or("no subnet mask (option 1)")?;
        let prefix = prefix_of(mask)
            .ok_or_else(|| Reason::new("subnet mask", format!("invalid subnet mask {mask}")))?;
        if !is_network(address, prefix) {
            let why = format!("{address}/{prefix} is a network or broadcast address");
            return Err(Reason::new("a network or broadcast address", why));
        }
        let seconds = message
            .number(option::LEASE_TIME)
            .ok_or("no lease time (option 51)")?;
        if seconds == 0 {
            return Err("lease time 0 s".into());
        }
        let mut taken = Taken::new(message);
        if seconds < SECONDS_MIN {
            let why = format!("{seconds} s, raised to {SECONDS_MIN} s");
            taken.leave_out::<()>(option::LEASE_TIME, &why);
        }
        let domains = taken.domain_names();
        let domain_name = domains.first().cloned();
        let mut domain_search = taken.domain_search();
        if domain_search.is_empty() && domains.len() > 1 {
            domain_search = domains;
        }
        let (renew_s, rebind_s) = times(message, seconds);
        let (renew_s, rebind_s, seconds) = floored(renew_s, rebind_s, seconds);
        Ok(Lease {
            address,
            prefix,
            server,
            requested_ns,
            seconds,
            renew_s,
            rebind_s,
            broadcast: message.address(option::BROADCAST),
            routers: taken.routers(),
            classless_routes: taken.classless_routes(),
            static_routes: taken.static_routes(),
            name_servers: taken.hosts(option::NAME_SERVERS),
            domain_name,
            domain_search,
            host_name: taken.host_name(),
            mtu: taken.mtu(),
            root_path: taken.text(option::ROOT_PATH),
            next_server: Some(message.siaddr).filter(|server| is_host(*server)),
            tftp_server: taken
                .text(option::TFTP_SERVER)
                .or_else(|| taken.field("sname", &message.sname)),
            boot_file: taken
                .text(option::BOOT_FILE)
                .or_else(|| taken.field("file", &message.file)),
            left_out: taken.left_out.iter().map(LeftOut::line).collect(),
        })
    }

    /// Whether the values are as [`Lease::of`] returns them.
    pub fn is_sound(&self) -> bool {
        let own = self.address;
        let is_gateway = |gateway: Ipv4Addr| is_host(gateway) && gateway != own;
        let is_route = |route: &Route| {
            let is_network = route.prefix <= 32
                && bounds(route.network, route.prefix).0 == route.network
                && is_destination(route.network, route.prefix);
            let is_on_link = route.gateway.is_unspecified() && route.prefix > 0;
            is_network && (is_on_link || is_gateway(route.gateway))
        };
        let classless = self.classless_routes.as_deref().unwrap_or_default();
        let texts = [&self.root_path, &self.tftp_server, &self.boot_file];
        let names = self.domain_name.iter().chain(&self.host_name);
        let lengths = [
            self.routers.len(),
            classless.len(),
            self.static_routes.len(),
            self.name_servers.len(),
            self.domain_search.len(),
            self.left_out.len(),
        ];
        is_network(own, self.prefix)
            && lengths.into_iter().all(|length| length <= MANY)
            && is_host(self.server)
            && self.server != own
            && lifetime::is_sound(self.renew_s, self.rebind_s, self.seconds)
            && self.routers.iter().copied().all(is_gateway)
            && classless.iter().chain(&self.static_routes).all(is_route)
            && self
                .name_servers
                .iter()
                .chain(&self.next_server)
                .all(|server| is_host(*server))
            && names.chain(&self.domain_search).all(|name| is_name(name))
            && self
                .host_name
                .iter()
                .all(|name| options::no_host_name(name).is_none())
            && self.mtu.is_none_or(|mtu| mtu >= options::MTU_MIN)
            && texts
                .into_iter()
                .flatten()
                .chain(&self.left_out)
                .all(|text| is_line(text))
    }

    /// Whether the lease comes from a state.json that lacks the secrets.
    pub fn is_redacted(&self) -> bool {
        let texts = [&self.root_path, &self.tftp_server, &self.boot_file];
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| redact::is_redacted(text))
    }

    /// When the lease ends, ns since kernel start; `None`: never.
    pub fn ends_ns(&self) -> Option<u64> {
        lifetime::end_ns(self.requested_ns, self.seconds)
    }

    /// The length of the lease in words.
    pub fn length(&self) -> String {
        lifetime::words(self.seconds)
    }

    /// The part of the lease that both families share.
    pub fn granted(&self) -> Granted {
        Granted {
            address: self.interface_address(),
            server: self.server.into(),
            rebinds_ns: lifetime::end_ns(self.requested_ns, self.rebind_s),
            ends_ns: self.ends_ns(),
            length: self.length(),
            is_deprecated: false,
        }
    }

    /// The address with the prefix length of its network.
    pub fn interface_address(&self) -> Address {
        Address {
            address: self.address.into(),
            prefix: self.prefix,
        }
    }

    /// `10.0.0.5/24`.
    pub fn address_text(&self) -> String {
        self.interface_address().to_string()
    }

    /// The routes to set, in order: with option 121 only its routes (RFC 3442), otherwise the
    /// classful routes and the first router as default gateway.
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

    /// The search list, or the node's own domain if there is no list.
    pub fn domains(&self) -> Vec<String> {
        if self.domain_search.is_empty() {
            self.domain_name.iter().cloned().collect()
        } else {
            self.domain_search.clone()
        }
    }

    /// The variables that dracut's modules read (dhclient-script(8)), as plain bytes: the writer of
    /// a shell file must quote them.
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
        add("new_subnet_mask", Some(inet::mask(self.prefix).to_string()));
        add(
            "new_broadcast_address",
            self.broadcast.map(|address| address.to_string()),
        );
        // dracut splits only this list at commas.
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

/// Option 121 in the form of dhclient: prefix, significant octets of the network, gateway.
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

/// Whether a host can have this address: not in network 0, loopback, multicast, reserved or
/// broadcast.
pub(crate) fn is_host(address: Ipv4Addr) -> bool {
    let [first, ..] = address.octets();
    (1..=223).contains(&first) && first != 127
}

/// Whether a route may lead to this network: groups included, and parts of a default route, such as
/// 0.0.0.0/1.
fn is_destination(network: Ipv4Addr, prefix: u8) -> bool {
    u32::from(prefix) < PREFIX_MIN || is_host(network) || network.is_multicast()
}

/// Whether the network with this prefix length has the address for a host.
fn is_network(address: Ipv4Addr, prefix: u8) -> bool {
    let (network, last) = bounds(address, prefix);
    let is_length = (PREFIX_MIN..=32).contains(&u32::from(prefix));
    let is_inside = address != network && address != last;
    is_host(address) && is_length && (prefix > 30 || is_inside)
}

fn prefix_of(mask: Ipv4Addr) -> Option<u8> {
    let ones = mask.to_bits().leading_ones();
    (mask.to_bits().count_ones() == ones && ones >= PREFIX_MIN)
        .then(|| u8::try_from(ones).ok())
        .flatten()
}

/// First and last address of the network.
fn bounds(address: Ipv4Addr, prefix: u8) -> (Ipv4Addr, Ipv4Addr) {
    let mask = inet::mask(prefix).to_bits();
    let network = address.to_bits() & mask;
    (Ipv4Addr::from(network), Ipv4Addr::from(network | !mask))
}

/// T1 and T2: the server's values where 0 < T1 < T2 < lease, otherwise half and seven eighths of
/// the lease (RFC 2131 4.4.5).
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

#[cfg(test)]
mod tests;
