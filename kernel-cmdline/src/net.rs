// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses, prefixes and routes, and the fields of an argument.

use core::fmt;
use core::net::IpAddr;

use heapless::Vec;

use crate::complain::Problem;
use crate::selector::{Interface, Selector};
use crate::token::decimal;

/// An IP address with its prefix length, if one was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefixed {
    pub address: IpAddr,
    /// Length of the network prefix, in bits.
    pub prefix: Option<u8>,
}

impl Prefixed {
    /// Reads `ADDRESS[/PREFIX]`. An IPv6 address may be in brackets, with the prefix inside or
    /// behind them.
    pub fn parse(text: &str) -> Option<Self> {
        let (text, outer) = match text.strip_prefix('[') {
            None => (text, None),
            Some(inner) => {
                let (inner, outer) = inner.split_once(']')?;
                (inner, (!outer.is_empty()).then_some(outer))
            }
        };
        let (address, inner) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address = address.parse().ok()?;
        let prefix = match (inner, outer) {
            (None, None) => None,
            (Some(prefix), None) => Some(prefix_length(prefix, address)?),
            (None, Some(prefix)) => Some(prefix_length(prefix.strip_prefix('/')?, address)?),
            (Some(_), Some(_)) => return None,
        };
        Some(Self { address, prefix })
    }
}

impl fmt::Display for Prefixed {
    /// As in the `ip=` argument: IPv6 in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.address.is_ipv6() {
            ("[", "]")
        } else {
            ("", "")
        };
        write!(f, "{open}{}", self.address)?;
        if let Some(prefix) = self.prefix {
            write!(f, "/{prefix}")?;
        }
        f.write_str(close)
    }
}

/// An address without a prefix; IPv6 with or without brackets.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    Prefixed::parse(text)
        .filter(|parsed| parsed.prefix.is_none())
        .map(|parsed| parsed.address)
}

/// The next hop `text`. `Some(None)`: 0.0.0.0 or `::`, which mean no next hop; PXELINUX writes
/// 0.0.0.0 on a network without a router (`genipopt`).
pub(crate) fn next_hop(text: &str) -> Option<Option<IpAddr>> {
    address(text).map(|hop| Some(hop).filter(|hop| !hop.is_unspecified()))
}

/// A prefix length for `address`: a number of bits, or an IPv4 netmask.
pub(crate) fn prefix_length(text: &str, address: IpAddr) -> Option<u8> {
    let longest = if address.is_ipv6() { 128 } else { 32 };
    if let Some(bits) = decimal(text) {
        return u8::try_from(bits).ok().filter(|&bits| bits <= longest);
    }
    match (text.parse().ok()?, address) {
        (IpAddr::V4(mask), IpAddr::V4(_)) => {
            let bits = mask.to_bits();
            let ones = bits.leading_ones();
            (bits.count_ones() == ones)
                .then(|| u8::try_from(ones).ok())
                .flatten()
        }
        _ => None,
    }
}

/// Maximum of fields of one argument: every field of `ip=` with two 20-byte addresses written
/// with colons, and a reserve for trailing colons.
pub(crate) const FIELDS: usize = 64;

/// The parts of an argument between its `:`, at most [`FIELDS`]. Brackets are not split.
pub(crate) fn fields(text: &str) -> Result<Vec<&str, FIELDS>, Problem<'_>> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        // A colon between brackets belongs to an IPv6 address.
        let hint = "close the bracket after the address";
        let open = Problem::Malformed {
            what: "a field",
            text: rest,
            hint,
        };
        let from = if rest.starts_with('[') {
            rest.find(']').ok_or(open)?
        } else {
            0
        };
        let (field, after) = match rest.get(from..).and_then(|tail| tail.split_once(':')) {
            Some((tail, after)) => (
                rest.get(..from.saturating_add(tail.len()))
                    .unwrap_or_default(),
                Some(after),
            ),
            None => (rest, None),
        };
        fields.push(field).map_err(|_| Problem::TooMany {
            what: "fields of one argument",
            limit: FIELDS,
        })?;
        match after {
            Some(after) => rest = after,
            None => return Ok(fields),
        }
    }
}

/// The possible numbers of fields of a hardware address, of a GUID as sysfs writes it, and of a PCI
/// address.
const GROUPS: [usize; 8] = [20, 9, 8, 7, 6, 4, 3, 2];
/// Longest text of one of them: 20 groups behind `guid=`.
const ADDRESS: usize = 64;

/// The address at the start of `fields`, written with colons, and its number of fields, provided
/// that `follows` accepts the fields behind the address.
pub(crate) fn leading_address<'a>(
    fields: &[&str],
    follows: impl Fn(&[&str]) -> bool,
) -> Option<(Interface<'a>, usize)> {
    GROUPS.iter().find_map(|&groups| {
        let (address, rest) = fields.split_at_checked(groups)?;
        let address = joined(address)?;
        follows(rest).then_some((address, groups))
    })
}

/// The address whose parts are between the colons.
fn joined<'a>(parts: &[&str]) -> Option<Interface<'a>> {
    let mut text = heapless::String::<ADDRESS>::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push(':').ok()?;
        }
        text.push_str(part).ok()?;
    }
    match Selector::parse(&text)? {
        Selector::Guid(address) => Some(Interface::Address(address)),
        Selector::Pci(address) => Some(Interface::Pci(address)),
        Selector::Name(_) | Selector::Port { .. } => None,
    }
}

/// `rd.route=NET/MASK:GATEWAY[:INTERFACE]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'a> {
    /// The destination network.
    pub network: IpAddr,
    /// Prefix length of the destination, in bits.
    pub prefix: u8,
    /// The next hop; `None`: the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// The interface; `None`: the interface that reaches the gateway.
    pub interface: Option<Interface<'a>>,
}

const ROUTE: &str = "write NET/MASK:GATEWAY[:INTERFACE], IPv6 in brackets";

impl<'a> Route<'a> {
    /// Reads the value of `rd.route=`. Without a mask the destination is one address.
    pub fn parse(text: &'a str) -> Result<Self, Problem<'a>> {
        let malformed = Problem::Malformed {
            what: "a route",
            text,
            hint: ROUTE,
        };
        let fields = fields(text)?;
        let (network, rest) = fields.split_first().ok_or(malformed)?;
        let network = Prefixed::parse(network).ok_or(Problem::Malformed {
            what: "a network",
            text: network,
            hint: ROUTE,
        })?;
        let (gateway, rest) = rest.split_first().ok_or(Problem::Missing {
            what: "the gateway",
            hint: ROUTE,
        })?;
        let next_hop = if gateway.is_empty() {
            None
        } else {
            next_hop(gateway).ok_or(Problem::Malformed {
                what: "a gateway address",
                text: gateway,
                hint: ROUTE,
            })?
        };
        let interface = match rest {
            [] | [""] => None,
            [name] => {
                let parsed = Interface::parse(name);
                Some(parsed.ok_or(Problem::Malformed {
                    what: "an interface",
                    text: name,
                    hint: ROUTE,
                })?)
            }
            groups => {
                let (address, _) =
                    leading_address(groups, |rest| rest.is_empty()).ok_or(malformed)?;
                Some(address)
            }
        };
        if next_hop.is_none() && interface.is_none() {
            return Err(Problem::Missing {
                what: "the gateway",
                hint: ROUTE,
            });
        }
        if next_hop.is_some_and(|gateway| gateway.is_ipv6() != network.address.is_ipv6()) {
            return Err(Problem::Contradiction {
                what: "the network and the gateway are not both IPv4 or both IPv6",
                hint: ROUTE,
            });
        }
        let longest = if network.address.is_ipv6() { 128 } else { 32 };
        Ok(Self {
            network: network.address,
            prefix: network.prefix.unwrap_or(longest),
            gateway: next_hop,
            interface,
        })
    }
}

impl fmt::Display for Route<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:",
            Prefixed {
                address: self.network,
                prefix: Some(self.prefix)
            }
        )?;
        if let Some(address) = self.gateway {
            write!(
                f,
                "{}",
                Prefixed {
                    address,
                    prefix: None
                }
            )?;
        }
        match self.interface {
            Some(interface) => write!(f, ":{interface}"),
            None => Ok(()),
        }
    }
}
