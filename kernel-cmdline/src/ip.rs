// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `ip=` argument, in every form that dracut.cmdline(7) and the readers of `ip=` know.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use heapless::Vec;

use crate::complain::Problem;
use crate::hwaddr::HwAddr;
use crate::net::{Prefixed, address, fields, leading_address, next_hop, prefix_length};
use crate::selector::Interface;
use crate::token::decimal;
use crate::values::words;
use crate::wishes;

words! {
    /// How an interface gets its addresses.
    Method {
        /// DHCPv4.
        Dhcp = "dhcp",
        /// The same as `dhcp`.
        On = "on",
        /// The same as `dhcp`.
        Any = "any",
        /// DHCPv6.
        Dhcp6 = "dhcp6",
        /// IPv6 router advertisements.
        Auto6 = "auto6",
        /// Router advertisements, and DHCPv6 if none arrives.
        Either6 = "either6",
        /// IPv6 link-local only.
        Link6 = "link6",
        /// DHCPv4 on all interfaces at once; the first answer is used.
        SingleDhcp = "single-dhcp",
        /// IPv4 link-local only.
        LinkLocal = "link-local",
        /// DHCPv4 and IPv6 router advertisements.
        Auto = "auto",
        /// Only the addresses in the argument.
        None = "none",
        /// The same as `none`.
        Off = "off",
        /// The addresses of the firmware's iSCSI table.
        Ibft = "ibft",
    }
}

impl Method {
    /// Whether an IPv4 address is requested from a DHCP server.
    pub const fn is_dhcp4(self) -> bool {
        matches!(
            self,
            Self::Dhcp | Self::On | Self::Any | Self::SingleDhcp | Self::Auto
        )
    }

    /// Whether an address may be requested from a DHCPv6 server.
    pub const fn is_dhcp6(self) -> bool {
        matches!(self, Self::Dhcp6 | Self::Either6)
    }

    /// Whether only the addresses in the argument are used.
    pub const fn is_static(self) -> bool {
        matches!(self, Self::None | Self::Off)
    }
}

/// Maximum of methods of one `ip=`.
pub const METHODS: usize = 4;
/// The methods of one `ip=`, in the order written.
pub type Methods = Vec<Method, METHODS>;

/// Smallest MTU that carries IPv4.
const MTU_MIN: u32 = 68;
/// Largest MTU of any interface.
const MTU_MAX: u32 = 65535;
/// Maximum length of a host name, in bytes.
const HOSTNAME: usize = 253;

const ADDRESS: &str = "write an IPv4 or an IPv6 address, IPv6 in brackets";
const FULL_FORM: &str =
    "write CLIENT:PEER:GATEWAY:MASK:HOSTNAME:INTERFACE:METHOD, also the colons of empty fields";

/// One `ip=` argument.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ip<'a> {
    /// The interface's own address. The prefix comes from the address or from the netmask field.
    pub client: Option<Prefixed>,
    /// The peer of a point-to-point link; the kernel's own `ip=` has the boot server in this
    /// field.
    pub peer: Option<Prefixed>,
    /// The default gateway.
    pub gateway: Option<IpAddr>,
    pub hostname: Option<&'a str>,
    /// The interface; `None`: any interface.
    pub interface: Option<Interface<'a>>,
    /// The methods; empty only if `client` is given without a method.
    pub methods: Methods,
    /// The MTU, in bytes.
    pub mtu: Option<u32>,
    /// The hardware address to set on the interface.
    pub macaddr: Option<HwAddr>,
    /// First name server.
    pub dns1: Option<IpAddr>,
    /// Second name server.
    pub dns2: Option<IpAddr>,
    /// The NTP server of the kernel's own `ip=` (nfsroot.rst, `ntp0-ip`).
    pub ntp: Option<IpAddr>,
    /// The argument is only an address: `netmask=`, `gateway=`, `hostname=`, `mtu=` and
    /// `ksdevice=` have the other fields.
    pub is_cluster: bool,
}

impl<'a> Ip<'a> {
    /// Reads the value of `ip=`.
    pub fn parse(text: &'a str) -> Result<Self, Problem<'a>> {
        let fields = fields(text)?;
        if let [only] = fields.as_slice() {
            return Self::parse_alone(only);
        }
        let found = Self::parse_interface_form(&fields).unwrap_or_else(|| {
            Self::parse_full_form(&fields)
                .map_err(|problem| misplaced_method(&fields).unwrap_or(problem))
        });
        found.map(Self::without_unset_servers)
    }

    /// A server of 0.0.0.0 or `::` means none.
    fn without_unset_servers(self) -> Self {
        let set = |server: Option<IpAddr>| server.filter(|server| !server.is_unspecified());
        Self {
            dns1: set(self.dns1),
            dns2: set(self.dns2),
            ntp: set(self.ntp),
            ..self
        }
    }

    /// `METHOD`, or an IPv4 address alone.
    fn parse_alone(text: &'a str) -> Result<Self, Problem<'a>> {
        if let Some(
            client @ Prefixed {
                address: IpAddr::V4(_),
                ..
            },
        ) = Prefixed::parse(text)
        {
            return Ok(Self {
                client: Some(client),
                is_cluster: true,
                ..Self::default()
            });
        }
        Ok(Self {
            methods: methods(text)?,
            ..Self::default()
        })
    }

    /// `INTERFACE:METHOD[:MTU[:MAC]]`. `None` if the fields do not have this form.
    fn parse_interface_form(fields: &[&'a str]) -> Option<Result<Self, Problem<'a>>> {
        let (interface, rest) = match leading_address(fields, starts_with_method) {
            Some((address, taken)) => (Some(address), fields.get(taken..)?),
            None => {
                let (first, rest) = fields.split_first()?;
                if !starts_with_method(rest) {
                    return None;
                }
                match interface(first) {
                    Ok(interface) => (interface, rest),
                    Err(problem) => return Some(Err(problem)),
                }
            }
        };
        let (method, tail) = rest.split_first()?;
        let ip = methods(method).and_then(|methods| {
            Self {
                interface,
                methods,
                ..Self::default()
            }
            .with_tail(tail)
        });
        Some(ip)
    }

    /// `CLIENT:[PEER]:GATEWAY:MASK:HOSTNAME:INTERFACE:METHOD` and a tail.
    fn parse_full_form(fields: &[&'a str]) -> Result<Self, Problem<'a>> {
        let field = |at: usize| fields.get(at).copied().filter(|text| !text.is_empty());
        let prefixed = |at, what| match field(at) {
            Some(text) => Prefixed::parse(text).map(Some).ok_or(Problem::Malformed {
                what,
                text,
                hint: ADDRESS,
            }),
            None => Ok(None),
        };
        let client = match prefixed(0, "an address") {
            Ok(client) => client,
            Err(problem) => return Err(without_method(fields).unwrap_or(problem)),
        };
        let peer = prefixed(1, "a peer address")?;
        let gateway = match field(2) {
            Some(text) => {
                let wrong = Problem::Malformed {
                    what: "a gateway address",
                    text,
                    hint: ADDRESS,
                };
                next_hop(text).ok_or(wrong)?
            }
            None => None,
        };
        let client = match field(3).filter(|text| *text != "0.0.0.0") {
            Some(netmask) => masked(client, netmask)?,
            None => client,
        };
        let hostname = field(4);
        if let Some(text) = hostname.filter(|text| !is_hostname(text)) {
            let hint = "write letters, digits, dots and dashes";
            return Err(Problem::Malformed {
                what: "a host name",
                text,
                hint,
            });
        }
        let (interface, methods, tail) = behind_hostname(fields.get(5..).unwrap_or_default())?;
        // The kernel's own `ip=` takes 0.0.0.0 in a field for an empty one (`ip_auto_config_setup` of
        // net/ipv4/ipconfig.c).
        let set = |one: Option<Prefixed>| one.filter(|one| !one.address.is_unspecified());
        let ip = Self {
            client: set(client),
            peer: set(peer),
            gateway,
            hostname,
            interface,
            methods,
            ..Self::default()
        };
        ip.with_tail(tail)?.complete()
    }

    /// `[MTU][:MAC]` or `[DNS1][:DNS2]`.
    fn with_tail(mut self, tail: &[&'a str]) -> Result<Self, Problem<'a>> {
        let used = tail
            .iter()
            .rposition(|field| !field.is_empty())
            .map_or(0, |last| last.saturating_add(1));
        let Some((first, rest)) = tail.get(..used).and_then(<[_]>::split_first) else {
            return Ok(self);
        };
        self.dns1 = address(first);
        if !first.is_empty() && self.dns1.is_none() {
            let number = decimal(first).filter(|mtu| (MTU_MIN..=MTU_MAX).contains(mtu));
            let what = "an MTU or a name server";
            let wrong = Problem::NotNumber {
                what,
                text: first,
                min: MTU_MIN,
                max: MTU_MAX,
            };
            self.mtu = Some(number.ok_or(wrong)?);
        }
        let Some((second, more)) = rest.split_first() else {
            return Ok(self);
        };
        self.dns2 = address(second).filter(|_| self.mtu.is_none());
        let is_ntp = self.mtu.is_none()
            && second.is_empty()
            && more.first().and_then(|ntp| address(ntp)).is_some();
        if self.dns1.is_none() && self.dns2.is_none() && !is_ntp {
            return self.with_macaddr(rest);
        }
        let hint = "write at most two name servers and one NTP server, without an MTU or a hardware address";
        if self.dns2.is_none() && !second.is_empty() {
            return Err(Problem::Malformed {
                what: "a name server",
                text: second,
                hint,
            });
        }
        let (ntp, more) = match more {
            [] => return Ok(self),
            [ntp, more @ ..] => (*ntp, more),
        };
        self.ntp = address(ntp);
        match (self.ntp, more.first()) {
            (Some(_), None) => Ok(self),
            (None, _) => Err(Problem::Malformed {
                what: "an NTP server",
                text: ntp,
                hint,
            }),
            (Some(_), Some(text)) => Err(Problem::Malformed {
                what: "allowed after the NTP server",
                text,
                hint,
            }),
        }
    }

    /// The hardware address, as one field or with colons.
    fn with_macaddr(mut self, fields: &[&'a str]) -> Result<Self, Problem<'a>> {
        let macaddr = match fields {
            [only] => HwAddr::parse(only),
            groups => HwAddr::from_groups(groups.iter().copied()),
        };
        let plain = macaddr.filter(|address| address.hardware_type().is_none());
        let text = fields.first().copied().unwrap_or_default();
        let hint = "write 6, 8 or 20 groups of two hexadecimal digits";
        self.macaddr = Some(plain.ok_or(Problem::Malformed {
            what: "a hardware address",
            text,
            hint,
        })?);
        Ok(self)
    }

    /// Rejects a full form that is incomplete or contradicts itself.
    fn complete(self) -> Result<Self, Problem<'a>> {
        let Some(client) = self.client else {
            if self.methods.is_empty() {
                return Err(Problem::Missing {
                    what: "the method",
                    hint: "write the method after the interface",
                });
            }
            if self.methods.iter().any(|method| method.is_static()) {
                return Err(Problem::Missing {
                    what: "the address",
                    hint: "write the address as the first field, or ip=INTERFACE:off for no address",
                });
            }
            return Ok(self);
        };
        if client.prefix.is_none() && self.peer.is_none_or(|peer| peer.prefix.is_none()) {
            let hint =
                "write the netmask as the fourth field; the address does not imply a netmask";
            return Err(Problem::Missing {
                what: "the netmask",
                hint,
            });
        }
        let families = [self.peer.map(|peer| peer.address), self.gateway];
        if families
            .into_iter()
            .flatten()
            .any(|other| other.is_ipv6() != client.address.is_ipv6())
        {
            return Err(Problem::Contradiction {
                what: "the address, its peer and its gateway are not all IPv4 or all IPv6",
                hint: "write one ip= for each address family",
            });
        }
        Ok(self)
    }

    /// Whether this can only mean an InfiniBand interface.
    pub fn is_infiniband(&self) -> bool {
        self.interface
            .is_some_and(|interface| interface.is_infiniband())
            || self.macaddr.is_some_and(|address| address.is_infiniband())
    }

    const fn has_servers(&self) -> bool {
        self.dns1.is_some() || self.dns2.is_some() || self.ntp.is_some()
    }

    /// Whether an IPv4 address is requested from a DHCP server.
    pub fn wants_dhcp4(&self) -> bool {
        self.methods.iter().any(|method| method.is_dhcp4())
    }
}

/// The problem of fields that begin with an address, if the method behind the interface is in another
/// place than in the full form: a colon is missing, or there is one too many.
fn misplaced_method<'a>(fields: &[&'a str]) -> Option<Problem<'a>> {
    let from = |at: usize| fields.get(at..).unwrap_or_default();
    let in_place =
        starts_with_method(from(6)) || leading_address(from(5), starts_with_method).is_some();
    Prefixed::parse(fields.first()?).filter(|_| !in_place)?;
    let text = fields.windows(2).find_map(|pair| match pair {
        [interface, method] if starts_with_method(&[method]) => {
            Interface::parse(interface).map(|_| *method)
        }
        _ => None,
    })?;
    Some(Problem::Malformed {
        what: "in the seventh field, where the method belongs",
        text,
        hint: FULL_FORM,
    })
}

/// The address with the prefix length of the netmask. A netmask without an address stands in front of a
/// server's address.
fn masked(client: Option<Prefixed>, netmask: &str) -> Result<Option<Prefixed>, Problem<'_>> {
    let own = client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |client| client.address);
    let prefix = prefix_length(netmask, own).ok_or(Problem::Malformed {
        what: "a netmask",
        text: netmask,
        hint: "write a netmask such as 255.255.255.0 or the length of a prefix such as 24",
    })?;
    if client.is_some_and(|client| client.prefix.is_some_and(|written| written != prefix)) {
        return Err(Problem::Contradiction {
            what: "the prefix of the address and the netmask differ",
            hint: "remove one of them",
        });
    }
    let with_prefix = |client| Prefixed {
        prefix: Some(prefix),
        ..client
    };
    Ok(client.map(with_prefix))
}

/// The problem of fields that begin with an interface, like those of `INTERFACE:METHOD`, and
/// have no method behind the interface.
fn without_method<'a>(fields: &[&'a str]) -> Option<Problem<'a>> {
    // With this many fields the first one was meant to be an address.
    const FULL_FORM: usize = 6;
    let (first, rest) = fields.split_first().filter(|_| fields.len() < FULL_FORM)?;
    Interface::parse(first)?;
    methods(rest.first()?).err()
}

/// The interface and the methods behind the host name, and the fields behind these.
fn behind_hostname<'f, 'a>(
    fields: &'f [&'a str],
) -> Result<(Option<Interface<'a>>, Methods, &'f [&'a str]), Problem<'a>> {
    let (interface, rest) =
        match leading_address(fields, |rest| rest.is_empty() || starts_with_method(rest)) {
            Some((address, taken)) => (Some(address), fields.get(taken..).unwrap_or_default()),
            None => match fields.split_first() {
                Some((first, rest)) => (interface(first)?, rest),
                None => (None, fields),
            },
        };
    let (method, tail) = rest.split_first().unwrap_or((&"", &[]));
    let methods = match (interface, methods(method)) {
        // The field of the host name is missing.
        (Some(Interface::Name(name)), _) if method.is_empty() && Method::parse(name).is_some() => {
            return Err(Problem::Missing {
                what: "the interface",
                hint: FULL_FORM,
            });
        }
        _ if method.is_empty() => Methods::new(),
        (_, methods) => methods?,
    };
    Ok((interface, methods, tail))
}

/// Whether the first of `fields` is a list of methods.
fn starts_with_method(fields: &[&str]) -> bool {
    fields.first().is_some_and(|field| {
        !field.is_empty() && field.split(',').all(|word| Method::parse(word).is_some())
    })
}

/// An interface; `None` for an empty field.
fn interface<'a>(text: &'a str) -> Result<Option<Interface<'a>>, Problem<'a>> {
    if text.is_empty() {
        return Ok(None);
    }
    wishes::interface(text).map(Some)
}

/// A comma list of methods.
fn methods(text: &str) -> Result<Methods, Problem<'_>> {
    let mut methods = Methods::new();
    for word in text.split(',') {
        let method = Method::read("a method of ip=", word)?;
        if !methods.contains(&method) {
            methods.push(method).map_err(|_| Problem::TooMany {
                what: "methods of one ip=",
                limit: METHODS,
            })?;
        }
    }
    let alone = |method: &Method| method.is_static() || *method == Method::Ibft;
    if methods.len() > 1 && methods.iter().any(alone) {
        return Err(Problem::Contradiction {
            what: "none, off and ibft exclude every other method",
            hint: "remove one of them",
        });
    }
    Ok(methods)
}

/// Whether a text consists of letters, digits, `-`, `.` and `_`: the characters of a host name,
/// none of them special to a shell.
pub(crate) fn is_hostname(text: &str) -> bool {
    text.len() <= HOSTNAME
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// The MTU `text`, in bytes.
pub(crate) fn mtu(text: &str) -> Result<u32, Problem<'_>> {
    wishes::number("an MTU", text, MTU_MIN, MTU_MAX)
}

/// Writes a hardware address with dashes: one field of `ip=`.
struct Dashed(HwAddr);

impl fmt::Display for Dashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.0.hardware_type();
        for (at, byte) in kind
            .as_ref()
            .into_iter()
            .chain(self.0.as_bytes())
            .enumerate()
        {
            write!(f, "{}{byte:02x}", if at == 0 { "" } else { "-" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Ip<'_> {
    /// The value of an equivalent `ip=`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = self.client.is_some()
            || self.peer.is_some()
            || self.gateway.is_some()
            || self.hostname.is_some();
        let tail = self.mtu.is_some() || self.macaddr.is_some() || self.has_servers();
        let alone =
            !tail && self.interface.is_none() && self.gateway.is_none() && self.hostname.is_none();
        if self.is_cluster && alone {
            return optional(f, self.client);
        }
        if full {
            let client = self.client.map(|client| Prefixed {
                prefix: None,
                ..client
            });
            optional(f, client)?;
            f.write_str(":")?;
            optional(f, self.peer)?;
            f.write_str(":")?;
            optional(
                f,
                self.gateway.map(|address| Prefixed {
                    address,
                    prefix: None,
                }),
            )?;
            f.write_str(":")?;
            optional(f, self.client.and_then(|client| client.prefix))?;
            f.write_str(":")?;
            optional(f, self.hostname)?;
            f.write_str(":")?;
        }
        match self.interface {
            Some(Interface::Address(address)) => write!(f, "{}", Dashed(address))?,
            interface => optional(f, interface)?,
        }
        if full || tail || self.interface.is_some() {
            f.write_str(":")?;
        }
        for (at, method) in self.methods.iter().enumerate() {
            write!(f, "{}{method}", if at == 0 { "" } else { "," })?;
        }
        if self.has_servers() {
            for server in [Some(self.dns1), Some(self.dns2), self.ntp.map(Some)]
                .into_iter()
                .flatten()
            {
                f.write_str(":")?;
                optional(
                    f,
                    server.map(|address| Prefixed {
                        address,
                        prefix: None,
                    }),
                )?;
            }
        } else if tail {
            f.write_str(":")?;
            optional(f, self.mtu)?;
            f.write_str(":")?;
            optional(f, self.macaddr.map(Dashed))?;
        }
        Ok(())
    }
}

fn optional(f: &mut fmt::Formatter<'_>, value: Option<impl fmt::Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, "{value}"))
}
