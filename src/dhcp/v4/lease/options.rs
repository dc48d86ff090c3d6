// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of an answer, each value checked. An invalid value is left out and reported.

use std::net::Ipv4Addr;

use kernel_cmdline::is_plain;

use super::{Route, bounds, is_destination, is_host};
use crate::dhcp::names::{DOMAINS, HOST_NAME_MAX, is_name, search_list};
use crate::dhcp::v4::packet::{Message, option};

/// The smallest MTU that is accepted: every link must carry IPv6 packets of this size (RFC 8200 5),
/// and servers send 576 as a mere default.
pub(super) const MTU_MIN: u16 = 1280;
const NO_NAME: &str = "not a valid host or domain name";

/// Collects the valid values of a message, and the invalid ones.
pub(super) struct Taken<'a> {
    message: &'a Message,
    pub(super) left_out: Vec<LeftOut>,
}

/// The rejected values of one option or field. The first value stands for all values of its kind: a
/// list of a thousand is one line.
pub(super) struct LeftOut {
    object: String,
    why: String,
    more: usize,
}

impl LeftOut {
    pub(super) fn line(&self) -> String {
        match self.more {
            0 => format!("{}: {}", self.object, self.why),
            more => format!("{}: {} and {more} more", self.object, self.why),
        }
    }
}

impl Taken<'_> {
    pub(super) fn new(message: &Message) -> Taken<'_> {
        Taken {
            message,
            left_out: Vec::new(),
        }
    }

    pub(super) fn leave_out<T>(&mut self, code: u8, why: &str) -> Option<T> {
        self.leave_out_of(format!("option {code}"), why)
    }

    fn leave_out_of<T>(&mut self, object: String, why: &str) -> Option<T> {
        let mut known = self.left_out.iter_mut();
        match known.find(|known| known.object == object) {
            Some(known) => known.more += 1,
            None => self.left_out.push(LeftOut {
                object,
                why: why.to_owned(),
                more: 0,
            }),
        }
        None
    }

    /// Why this address cannot be a gateway; none: the address is a valid gateway.
    fn no_gateway(&self, gateway: Ipv4Addr) -> Option<String> {
        if gateway == self.message.yiaddr {
            return Some(format!("{gateway} is the node's own address"));
        }
        (!is_host(gateway)).then(|| gateway.to_string())
    }

    /// Routers that are not the node itself.
    pub(super) fn routers(&mut self) -> Vec<Ipv4Addr> {
        let own = self.message.yiaddr;
        let mut routers = self.hosts(option::ROUTERS);
        for gateway in routers.extract_if(.., |gateway| *gateway == own) {
            let why = self.no_gateway(gateway).unwrap_or_default();
            self.leave_out::<()>(option::ROUTERS, &why);
        }
        routers
    }

    /// A name that distinguishes this node from others (RFC 6761 6.3; RFC 1123 2.1).
    pub(super) fn host_name(&mut self) -> Option<String> {
        let name = self.name(option::HOST_NAME)?;
        if let Some(why) = no_host_name(&name) {
            return self.leave_out(option::HOST_NAME, &why);
        }
        let whole = name.trim_end_matches('.');
        if whole.len() <= HOST_NAME_MAX {
            return Some(whole.to_owned());
        }
        let first = whole.split('.').next().unwrap_or_default();
        let length = format!("{whole} has more than {HOST_NAME_MAX} bytes");
        let used = no_host_name(first).is_none();
        let end = if used {
            format!(": {first} is used")
        } else {
            String::new()
        };
        self.leave_out::<()>(option::HOST_NAME, &format!("{length}{end}"));
        used.then(|| first.to_owned())
    }

    /// Host addresses; an invalid address is left out, the others stay.
    pub(super) fn hosts(&mut self, code: u8) -> Vec<Ipv4Addr> {
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

    pub(super) fn mtu(&mut self) -> Option<u16> {
        let bytes = self.message.option(option::MTU)?;
        let Ok(bytes) = <[u8; 2]>::try_from(bytes) else {
            return self.leave_out(option::MTU, &format!("{} bytes", bytes.len()));
        };
        match u16::from_be_bytes(bytes) {
            mtu if mtu >= MTU_MIN => Some(mtu),
            mtu => self.leave_out(option::MTU, &format!("MTU {mtu}, less than {MTU_MIN}")),
        }
    }

    /// One line of text: UTF-8 without characters that hide or reorder other characters.
    pub(super) fn text(&mut self, code: u8) -> Option<String> {
        let bytes = self.message.option(code)?;
        match line_of(bytes) {
            Ok(text) => text,
            Err(why) => self.leave_out(code, why),
        }
    }

    pub(super) fn field(&mut self, name: &str, bytes: &[u8]) -> Option<String> {
        match line_of(bytes) {
            Ok(text) => text,
            Err(why) => self.leave_out_of(name.to_owned(), why),
        }
    }

    /// A host or domain name.
    pub(super) fn name(&mut self, code: u8) -> Option<String> {
        let text = self.text(code)?;
        if is_name(&text) {
            return Some(text);
        }
        self.leave_out(code, NO_NAME)
    }

    /// The node's own domain. Where option 119 is not known, servers send several domains to search,
    /// separated by spaces.
    pub(super) fn domain_names(&mut self) -> Vec<String> {
        const CODE: u8 = option::DOMAIN_NAME;
        let text = self.text(CODE).unwrap_or_default();
        let names = text.split(' ').filter(|name| !name.is_empty());
        let names: Vec<String> = names.take(DOMAINS).map(str::to_owned).collect();
        if !names.iter().all(|name| is_name(name)) {
            self.leave_out::<()>(CODE, NO_NAME);
            return Vec::new();
        }
        names
    }

    pub(super) fn static_routes(&mut self) -> Vec<Route> {
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
            // The class determines the mask (RFC 2132 5.8); option 33 must not contain the default
            // route.
            let class = match a {
                1..=126 => 8,
                128..=191 => 16,
                192..=223 => 24,
                _ => 0,
            };
            let is_network = bounds(network, class).0 == network;
            let no_gateway = self.no_gateway(gateway);
            if class == 0 || no_gateway.is_some() {
                let gateway = no_gateway.unwrap_or_else(|| gateway.to_string());
                self.leave_out::<()>(CODE, &format!("{network} via {gateway}"));
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

    /// RFC 3442. One invalid route makes the whole list unreadable: the start of the next route is
    /// unknown.
    pub(super) fn classless_routes(&mut self) -> Option<Vec<Route>> {
        const CODE: u8 = option::CLASSLESS_ROUTES;
        let mut rest = self.message.option(CODE)?;
        let mut routes = Vec::new();
        if rest.is_empty() {
            return self.leave_out(CODE, "wrong length");
        }
        while let Some((&prefix, after)) = rest.split_first() {
            let significant = usize::from(prefix.div_ceil(8));
            let parts = (prefix <= 32)
                .then(|| after.split_at_checked(significant))
                .flatten()
                .and_then(|(network, after)| Some((network, after.split_first_chunk::<4>()?)));
            let Some((network, (gateway, after))) = parts else {
                return self.leave_out(CODE, "wrong length");
            };
            let mut octets = [0; 4];
            for (to, from) in octets.iter_mut().zip(network) {
                *to = *from;
            }
            let gateway = Ipv4Addr::from(*gateway);
            let network = bounds(Ipv4Addr::from(octets), prefix).0;
            let leads = is_destination(network, prefix);
            let is_on_link = gateway.is_unspecified() && prefix > 0;
            match self.no_gateway(gateway).filter(|_| !is_on_link) {
                None if leads => routes.push(Route {
                    network,
                    prefix,
                    gateway,
                }),
                no_gateway => {
                    let gateway = no_gateway.unwrap_or_else(|| gateway.to_string());
                    self.leave_out::<()>(CODE, &format!("{network}/{prefix} via {gateway}"));
                }
            }
            rest = after;
        }
        // A list without any route does not replace the routers (RFC 3442: 5 bytes at least).
        (!routes.is_empty()).then_some(routes)
    }

    pub(super) fn domain_search(&mut self) -> Vec<String> {
        const CODE: u8 = option::DOMAIN_SEARCH;
        let Some(bytes) = self.message.option(CODE) else {
            return Vec::new();
        };
        match search_list(bytes) {
            Some(domains) => domains,
            None => {
                self.leave_out::<()>(CODE, "not a valid domain list");
                Vec::new()
            }
        }
    }
}

/// Text without the trailing NULs that old servers send; empty text is none.
fn line_of(bytes: &[u8]) -> Result<Option<String>, &'static str> {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    let Some(bytes) = end.and_then(|end| bytes.get(..=end)) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8")?;
    if !text.chars().all(is_plain) {
        return Err("contains a control character");
    }
    Ok(Some(text.to_owned()))
}

/// Why a name is not a valid host name; none: the name is valid.
pub(super) fn no_host_name(name: &str) -> Option<String> {
    let first = name.split('.').next().unwrap_or_default();
    if first.eq_ignore_ascii_case("localhost") {
        return Some(format!("{name} refers to the node itself"));
    }
    let is_number = name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_number.then(|| format!("{name} is a number or an address"))
}
