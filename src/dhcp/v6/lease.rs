// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a server grants, each value checked. An invalid value is left out and reported; an
//! invalid address or time makes the whole answer unusable.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::packet::{Address, Association, DUID, Malformed, Message, Status, option, status};
use crate::dhcp::Granted;
use crate::dhcp::brake::Reason;
use crate::dhcp::lifetime::{self, FOR_EVER, SECONDS_MIN, floored};
use crate::dhcp::names::{is_name, search_list};
use crate::error::printable;
use crate::hardware::{Hex, unhex};
use crate::inet;
use crate::system::decoder::{LINE, is_line};

/// Largest number of name servers or addresses that is accepted: no program queries more.
const MANY: usize = 16;
/// The lease has no network around its address: routers announce what is on the link (RFC 8415
/// 21.6).
pub const PREFIX: u8 = 128;

/// A lease, as in state.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The granted address.
    pub address: Ipv6Addr,
    /// Source address of the answer: the server, or a relay.
    pub server: Ipv6Addr,
    /// DUID of the server in hexadecimal.
    pub server_id: String,
    /// When the lease was last requested, ns since kernel start: the lease times count from this
    /// moment.
    pub requested_ns: u64,
    /// Valid lifetime of the address in seconds; 4294967295 means for ever.
    pub seconds: u32,
    /// Preferred lifetime in seconds.
    pub preferred_s: u32,
    /// Seconds until the client renews the lease with its server (T1).
    pub renew_s: u32,
    /// Seconds until the client asks any server (T2).
    pub rebind_s: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<Ipv6Addr>,
    /// Domains to search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domain_search: Vec<String>,
    /// Values of the server that were rejected, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Why an answer grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The server reports a status.
    Status(Status),
    /// The address is no longer valid.
    Ended,
    /// The answer is unusable, for this reason.
    Unusable(Reason),
}

impl Refusal {
    /// The kind of the reason; independent of the sender's text.
    pub fn kind(&self) -> Cow<'static, str> {
        match self {
            Refusal::Status(status) => status.name().unwrap_or("another status").into(),
            Refusal::Ended => "no longer valid".into(),
            Refusal::Unusable(why) => why.kind.clone(),
        }
    }

    /// Whether a decoder can have sent this.
    pub fn is_sound(&self) -> bool {
        match self {
            Refusal::Status(status) => status.text.len() <= LINE,
            Refusal::Ended => true,
            Refusal::Unusable(why) => why.is_sound(),
        }
    }

    /// Whether the server has no record of the lease.
    pub fn is_no_binding(&self) -> bool {
        matches!(self, Refusal::Status(status) if status.code == status::NO_BINDING)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Status(status) if status.text.is_empty() => write!(f, "{status}"),
            Refusal::Status(status) => write!(f, "{status}: {}", printable(&status.text)),
            Refusal::Ended => f.write_str("the address is no longer valid"),
            Refusal::Unusable(why) => write!(f, "{why}"),
        }
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Refusal {
        Refusal::Unusable(Reason::new("malformed", malformed.to_string()))
    }
}

impl Lease {
    /// The lease for association `iaid` in an ADVERTISE or a REPLY to a request of `requested_ns`; of
    /// several addresses the `requested` address, otherwise the first.
    pub fn of(
        message: &Message,
        from: Ipv6Addr,
        iaid: u32,
        requested: Option<Ipv6Addr>,
        requested_ns: u64,
    ) -> Result<Lease, Refusal> {
        let unusable = |why: &'static str| Refusal::Unusable(why.into());
        let server_id = message
            .duid(option::SERVER_ID)
            .ok_or_else(|| unusable("no server identifier (option 2)"))?;
        failed(message.options.status()?)?;
        let association = association(message, iaid)?;
        let address = address(&association, requested)?;
        let mut left_out = Vec::new();
        if address.valid_s < SECONDS_MIN {
            let short = format!("valid for {} s, raised to {SECONDS_MIN} s", address.valid_s);
            left_out.push(format!("option {}: {short}", option::IA_ADDRESS));
        }
        let (renew_s, rebind_s) = times(&association, &address);
        let (renew_s, rebind_s, seconds) = floored(renew_s, rebind_s, address.valid_s);
        Ok(Lease {
            address: address.address,
            server: from,
            server_id: Hex(server_id).to_string(),
            requested_ns,
            seconds,
            preferred_s: address.preferred_s,
            renew_s,
            rebind_s,
            name_servers: name_servers(message, &mut left_out),
            domain_search: domain_search(message, &mut left_out),
            left_out,
        })
    }

    /// Whether a REPLY withdraws this address: our association contains the address with a valid
    /// lifetime of 0.
    pub fn is_withdrawn(message: &Message, iaid: u32, address: Ipv6Addr) -> bool {
        let is_success = matches!(message.options.status().map(failed), Ok(Ok(())));
        let Some(association) = association(message, iaid).ok().filter(|_| is_success) else {
            return false;
        };
        let all = association.options.all(option::IA_ADDRESS).take(MANY);
        let mut all = all.filter_map(|value| Address::decode(value).ok());
        all.any(|inside| inside.address == address && inside.valid_s == 0)
    }

    /// Whether the values are as [`Lease::of`] returns them.
    pub fn is_sound(&self) -> bool {
        is_duid(&self.server_id)
            && !self.server.is_multicast()
            && !self.server.is_unspecified()
            && is_host(self.address)
            && !is_reserved(self.address)
            && lifetime::is_sound(self.renew_s, self.rebind_s, self.seconds)
            && self.preferred_s <= self.seconds
            && are_sound(&self.name_servers, &self.domain_search, &self.left_out)
    }

    /// Whether the server grants the address as deprecated: with a preferred lifetime of 0 (RFC 8415
    /// 21.6, RFC 4862 5.5.4), as before the prefix of a link is replaced.
    pub fn is_deprecated(&self) -> bool {
        self.preferred_s == 0
    }

    /// When the lease ends, ns since kernel start; `None`: never.
    pub fn ends_ns(&self) -> Option<u64> {
        self.at(self.seconds)
    }

    /// The time `seconds` after the request, ns since kernel start; `None`: never.
    pub fn at(&self, seconds: u32) -> Option<u64> {
        lifetime::end_ns(self.requested_ns, seconds)
    }

    /// The length of the lease in words.
    pub fn length(&self) -> String {
        lifetime::words(self.seconds)
    }

    /// The part of the lease that both families share.
    pub fn granted(&self) -> Granted {
        Granted {
            address: inet::Address {
                address: self.address.into(),
                prefix: PREFIX,
            },
            server: self.server.into(),
            rebinds_ns: self.at(self.rebind_s),
            ends_ns: self.ends_ns(),
            length: self.length(),
            is_deprecated: self.is_deprecated(),
        }
    }

    /// `fd00::5/128`.
    pub fn address_text(&self) -> String {
        format!("{}/{PREFIX}", self.address)
    }

    /// The variables that dracut's modules read (dhclient-script(8)), as plain bytes: the writer of
    /// a shell file must quote them.
    pub fn variables(&self) -> Vec<(&'static str, Vec<u8>)> {
        let all = [
            ("new_ip6_address", self.address.to_string()),
            ("new_ip6_prefixlen", PREFIX.to_string()),
            ("new_max_life", self.seconds.to_string()),
            ("new_preferred_life", self.preferred_s.to_string()),
        ];
        let all = all
            .into_iter()
            .map(|(name, value)| (name, value.into_bytes()));
        all.chain(resolver_variables(&self.name_servers, &self.domain_search))
            .collect()
    }
}

/// The variables of name servers and domains, without empty ones.
pub(super) fn resolver_variables(
    name_servers: &[Ipv6Addr],
    domain_search: &[String],
) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let servers: Vec<String> = name_servers.iter().map(ToString::to_string).collect();
    let all = [
        ("new_dhcp6_name_servers", servers.join(" ")),
        ("new_dhcp6_domain_search", domain_search.join(" ")),
    ];
    let filled = all.into_iter().filter(|(_, value)| !value.is_empty());
    filled.map(|(name, value)| (name, value.into_bytes()))
}

pub(super) fn failed(status: Option<Status>) -> Result<(), Refusal> {
    match status {
        Some(status) if status.code != status::SUCCESS => Err(Refusal::Status(status)),
        _ => Ok(()),
    }
}

/// Our association, if its values are valid (RFC 8415 21.4).
fn association(message: &Message, iaid: u32) -> Result<Association, Refusal> {
    let mut all = message.options.all(option::IA_NA);
    let mine = all.find_map(|value| match Association::decode(value) {
        Ok(association) => (association.iaid == iaid).then_some(Ok(association)),
        Err(malformed) => Some(Err(malformed)),
    });
    let Some(mine) = mine else {
        let why = format!("no addresses (IA_NA) for our IAID {iaid}");
        return Err(Refusal::Unusable(Reason::new("no addresses", why)));
    };
    let mine = mine?;
    failed(mine.options.status()?)?;
    if mine.rebind_s > 0 && mine.renew_s > mine.rebind_s {
        let why = format!("T1 {} s is later than T2 {} s", mine.renew_s, mine.rebind_s);
        return Err(Refusal::Unusable(Reason::new("T1 after T2", why)));
    }
    Ok(mine)
}

fn address(association: &Association, requested: Option<Ipv6Addr>) -> Result<Address, Refusal> {
    let mut refusal = Refusal::Unusable("no address (option 5)".into());
    let mut found: Option<Address> = None;
    for value in association.options.all(option::IA_ADDRESS).take(MANY) {
        match Address::decode(value).map_err(Refusal::from).and_then(fit) {
            Ok(address) if Some(address.address) == requested => return Ok(address),
            Ok(address) => {
                found.get_or_insert(address);
            }
            Err(why) => refusal = why,
        }
    }
    found.ok_or(refusal)
}

/// The address, if a host can use it (RFC 8415 21.6).
fn fit(address: Address) -> Result<Address, Refusal> {
    failed(address.options.status()?)?;
    if !is_host(address.address) || is_reserved(address.address) {
        let why = format!("{} is not a host address", address.address);
        return Err(Refusal::Unusable(Reason::new("not a host address", why)));
    }
    if address.preferred_s > address.valid_s {
        let why = format!(
            "{} preferred for {} s and valid for {} s",
            address.address, address.preferred_s, address.valid_s
        );
        return Err(Refusal::Unusable(Reason::new(
            "preferred and not valid",
            why,
        )));
    }
    if address.valid_s == 0 {
        return Err(Refusal::Ended);
    }
    Ok(address)
}

/// Whether a host can have this address beyond its own link.
fn is_host(address: Ipv6Addr) -> bool {
    let is_plain = !address.is_unspecified() && !address.is_loopback() && !address.is_multicast();
    // ::ffff:0:0/96 and the former ::/96 stand for IPv4.
    let stands_for_v4 = address.to_ipv4().is_some();
    is_plain && !stands_for_v4 && !address.is_unicast_link_local()
}

/// Whether the address is in a prefix from which no server grants addresses (RFC 6890, IANA's
/// registry of special addresses). A name server may well be behind NAT64 or 6to4. Test networks use
/// the prefixes for documentation and benchmarking, as those of IPv4.
fn is_reserved(address: Ipv6Addr) -> bool {
    matches!(
        address.segments(),
        // Discard-only (RFC 6666), 6to4 (RFC 3056), Teredo (RFC 4380), ORCHID (RFC 4843 and 7343), NAT64
        // (RFC 6052 and 8215), and the deprecated site-local prefix (RFC 3879).
        [0x100, 0, 0, 0, ..]
            | [0x2002, ..]
            | [0x2001, 0, ..]
            | [0x2001, 0x10..=0x2f, ..]
            | [0x64, 0xff9b, 0, 0, 0, 0, ..]
            | [0x64, 0xff9b, 1, ..]
            | [0xfec0..=0xfeff, ..]
    )
}

/// T1 and T2: the server's values if they lie within the lease, otherwise half and four fifths of
/// the preferred lifetime (RFC 8415 21.4).
fn times(association: &Association, address: &Address) -> (u32, u32) {
    let base = match address.preferred_s {
        0 => address.valid_s,
        preferred => preferred,
    };
    let part = |of: u64, by: u64| match base {
        FOR_EVER => FOR_EVER,
        // Never more than the whole, so the value always fits.
        base => u32::try_from(u64::from(base) * of / by)
            .unwrap_or(base)
            .max(1),
    };
    let within = |seconds: u32, most: u32| (1..=most).contains(&seconds);
    let rebind_s = Some(association.rebind_s)
        .filter(|t2| within(*t2, address.valid_s))
        .unwrap_or_else(|| part(4, 5));
    let renew_s = Some(association.renew_s)
        .filter(|t1| within(*t1, rebind_s))
        .unwrap_or_else(|| part(1, 2).min(rebind_s));
    (renew_s, rebind_s)
}

/// Whether the text is a DUID in hexadecimal.
pub(super) fn is_duid(text: &str) -> bool {
    unhex(text).is_some_and(|duid| duid.len() <= DUID)
}

/// Whether the values are as `name_servers` and `domain_search` return them.
pub(super) fn are_sound(servers: &[Ipv6Addr], domains: &[String], left_out: &[String]) -> bool {
    servers.len() <= MANY
        && servers.iter().all(|server| is_host(*server))
        && domains.iter().all(|domain| is_name(domain))
        && left_out.iter().all(|line| is_line(line))
}

pub(super) fn name_servers(message: &Message, left_out: &mut Vec<String>) -> Vec<Ipv6Addr> {
    const CODE: u16 = option::NAME_SERVERS;
    let Some(bytes) = message.options.first(CODE) else {
        return Vec::new();
    };
    let (addresses, []) = bytes.as_chunks::<16>() else {
        left_out.push(format!("option {CODE}: {} bytes", bytes.len()));
        return Vec::new();
    };
    let mut hosts = Vec::new();
    for address in addresses.iter().take(MANY).copied().map(Ipv6Addr::from) {
        // A link-local address needs its interface, which the files cannot express.
        if is_host(address) {
            hosts.push(address);
        } else {
            left_out.push(format!("option {CODE}: {address}"));
        }
    }
    hosts
}

pub(super) fn domain_search(message: &Message, left_out: &mut Vec<String>) -> Vec<String> {
    const CODE: u16 = option::DOMAIN_LIST;
    let bytes = message.options.first(CODE).unwrap_or_default();
    search_list(bytes).unwrap_or_else(|| {
        left_out.push(format!("option {CODE}: not a valid domain list"));
        Vec::new()
    })
}

#[cfg(test)]
mod tests;
