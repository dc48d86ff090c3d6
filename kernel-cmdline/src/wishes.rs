// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parsers of the values of single arguments.

use core::net::SocketAddr;

use crate::complain::Problem;
use crate::hwaddr::{HwAddr, hexadecimal};
use crate::ip::mtu;
use crate::net::address;
use crate::selector::{DEVICE_NAME, INTERFACE_NAME, Interface, Pkey, Selector, is_name};
use crate::token::decimal;
use crate::values::{
    Candidates, ClientId, ClientIdForm, ClientIdValue, ClientIdWish, Ifname, Limit, Link, LinkKind,
    LinkLayer, Mode, ModeWish, Mtu, MtuWish, Number, NvmfDiscover, PortType, PortTypeWish, Probe,
    RateWish, Require, RoceMode, RoceWish,
};

/// Maximum of a time, in seconds: some thirty years.
const SECONDS: u32 = 1_000_000_000;
/// Maximum of the number in `rd.ib.require=`.
const PORTS: u32 = 4096;
/// Maximum length of a DHCP client identifier: the length of option 61 is one byte.
const CLIENT_ID: usize = 255;

const SELECTOR: &str = "write DEVICE, DEVICE:PORT, guid=0x..., pci=dddd:bb:dd.f or an interface";
const INTERFACE: &str =
    "write a name of at most 15 characters, a hardware address, DEVICE/PORT or a PCI address";

type Parsed<'a, T> = Result<T, Problem<'a>>;

pub(crate) fn interface(text: &str) -> Parsed<'_, Interface<'_>> {
    Interface::parse(text).ok_or(Problem::Malformed {
        what: "an interface",
        text,
        hint: INTERFACE,
    })
}

fn selector(text: &str) -> Parsed<'_, Selector<'_>> {
    Selector::parse(text).ok_or(Problem::Malformed {
        what: "a selector",
        text,
        hint: SELECTOR,
    })
}

/// `[FRONT:]LAST`, split from the right.
fn split_last(text: &str) -> (Option<&str>, &str) {
    text.rsplit_once(':')
        .map_or((None, text), |(front, last)| (Some(front), last))
}

/// A number from `min` to `max`; `what` is what the problem says that `text` is not.
pub(crate) fn number<'a>(what: &'static str, text: &'a str, min: u32, max: u32) -> Parsed<'a, u32> {
    let number = decimal(text).filter(|number| (min..=max).contains(number));
    number.ok_or(Problem::NotNumber {
        what,
        text,
        min,
        max,
    })
}

/// A number of seconds.
pub(crate) fn seconds(text: &str, min: u32) -> Parsed<'_, u32> {
    number("a number of seconds", text, min, SECONDS)
}

/// A number of seconds, or `infinity`.
pub(crate) fn limit(text: &str) -> Parsed<'_, Limit> {
    if text == "infinity" {
        return Ok(Limit::Infinite);
    }
    seconds(text, 0).map(Limit::Seconds)
}

/// A number of tries, at least 1.
pub(crate) fn count(text: &str) -> Parsed<'_, u32> {
    number("a number of tries", text, 1, SECONDS)
}

pub(crate) fn pkey(text: &str) -> Parsed<'_, Pkey<'_>> {
    let hint =
        "write PARENT.PKEY, such as ib0.8004: up to four hexadecimal digits, not 0 and not 8000";
    Pkey::parse(text).ok_or(Problem::Malformed {
        what: "a partition",
        text,
        hint,
    })
}

pub(crate) fn boot_interface(text: &str) -> Parsed<'_, HwAddr> {
    let hint = "write 6, 8 or 20 groups of two hexadecimal digits, 01 and 6 groups, or 20 and 6 or 8 groups";
    HwAddr::parse(text).ok_or(Problem::Malformed {
        what: "a hardware address",
        text,
        hint,
    })
}

pub(crate) fn name_server(text: &str) -> Parsed<'_, core::net::IpAddr> {
    let hint = "write an IPv4 or an IPv6 address";
    address(text).ok_or(Problem::Malformed {
        what: "an address",
        text,
        hint,
    })
}

pub(crate) fn mode(text: &str) -> Parsed<'_, ModeWish<'_>> {
    let (front, last) = split_last(text);
    let mode = Mode::read("an IPoIB mode", last)?;
    Ok(ModeWish {
        interface: front.map(interface).transpose()?,
        mode,
    })
}

pub(crate) fn client_id_form(text: &str) -> Parsed<'_, ClientIdWish<'_>> {
    let (front, last) = split_last(text);
    let form = ClientIdForm::read("a form of the client identifier", last)?;
    Ok(ClientIdWish {
        interface: front.map(interface).transpose()?,
        form,
    })
}

pub(crate) fn mtu_wish(text: &str) -> Parsed<'_, MtuWish<'_>> {
    let (front, last) = split_last(text);
    let mtu = if last == "max" {
        Mtu::Max
    } else {
        let wrong = |_| Problem::Malformed {
            what: "an MTU",
            text: last,
            hint: "write max or a number from 68 to 65535",
        };
        Mtu::Bytes(mtu(last).map_err(wrong)?)
    };
    Ok(MtuWish {
        interface: front.map(interface).transpose()?,
        mtu,
    })
}

pub(crate) fn link(text: &str) -> Parsed<'_, Link<'_>> {
    const HINT: &str = "write NAME:rxe:NETDEV or NAME:siw:NETDEV";
    let (name, rest) = text.split_once(':').ok_or(Problem::Missing {
        what: "the kind of the link",
        hint: HINT,
    })?;
    let (word, netdev) = rest.split_once(':').ok_or(Problem::Missing {
        what: "the network interface",
        hint: HINT,
    })?;
    if !is_name(name, DEVICE_NAME) {
        return Err(Problem::Malformed {
            what: "a name for an RDMA device",
            text: name,
            hint: HINT,
        });
    }
    let kind = LinkKind::read("a kind of link", word)?;
    if !is_name(netdev, INTERFACE_NAME) {
        return Err(Problem::Malformed {
            what: "a network interface",
            text: netdev,
            hint: HINT,
        });
    }
    Ok(Link { name, kind, netdev })
}

pub(crate) fn roce(text: &str) -> Parsed<'_, RoceWish<'_>> {
    let (front, last) = split_last(text);
    let mode = RoceMode::read("a RoCE mode", last)?;
    Ok(RoceWish {
        selector: front.map(selector).transpose()?,
        mode,
    })
}

pub(crate) fn port_type(text: &str) -> Parsed<'_, PortTypeWish<'_>> {
    let missing = |what| Problem::Missing {
        what,
        hint: "write SELECTOR:ib, SELECTOR:eth or SELECTOR:auto",
    };
    let (front, last) = split_last(text);
    let port_type = match (PortType::read("a port type", last), front) {
        (Err(_), None) => return Err(missing("the port type")),
        (port_type, _) => port_type?,
    };
    Ok(PortTypeWish {
        selector: selector(front.ok_or(missing("the port"))?)?,
        port_type,
    })
}

/// The required ports, and the problem. Of a list with an invalid selector the valid ones stay
/// required: without them any port would satisfy the boot.
pub(crate) fn require(text: &str) -> (Option<Require<'_>>, Option<Problem<'_>>) {
    let (first, rest) = text
        .split_once(',')
        .map_or((text, None), |(first, rest)| (first, Some(rest)));
    match candidates(first) {
        Some(Ok((link_layer, number))) => {
            let what = "excluded ports of one rd.ib.require=";
            let (except, wrong) = selectors(rest, excluded, what);
            let candidates = Candidates {
                link_layer,
                number,
                except,
            };
            (Some(Require::Candidates(candidates)), wrong)
        }
        Some(Err(wrong)) => (None, Some(wrong)),
        None => {
            let (ports, wrong) = selectors(Some(text), included, "ports of one rd.ib.require=");
            let is_any = !ports.is_empty();
            (is_any.then_some(Require::Ports(ports)), wrong)
        }
    }
}

/// `[ib:|eth:]all|any|N`, or the link layer alone, which is any one port; `None` for a selector.
fn candidates(text: &str) -> Option<Parsed<'_, (Option<LinkLayer>, Number)>> {
    let (layer, behind) = match text.split_once(':') {
        Some((layer, behind)) => (LinkLayer::parse(layer), behind),
        None => (LinkLayer::parse(text), "any"),
    };
    let word = if layer.is_some() { behind } else { text };
    let is_digits = word.bytes().all(|byte| byte.is_ascii_digit());
    let found = match word {
        "all" => Ok(Number::All),
        "any" => Ok(Number::Any(1)),
        _ if is_digits => number("a number of ports", word, 1, PORTS).map(Number::Any),
        _ if layer.is_none() => return None,
        _ => Err(Problem::Malformed {
            what: "a number of ports",
            text: word,
            hint: "write all, any or a number behind ib: or eth:",
        }),
    };
    Some(found.map(|number| (layer, number)))
}

/// The valid selectors of a list, and the first problem. `what` names the list.
fn selectors<'a, const N: usize>(
    list: Option<&'a str>,
    parse: fn(&'a str) -> Parsed<'a, Selector<'a>>,
    what: &'static str,
) -> (heapless::Vec<Selector<'a>, N>, Option<Problem<'a>>) {
    let mut found = heapless::Vec::new();
    let mut wrong = None;
    for part in list.into_iter().flat_map(|list| list.split(',')) {
        let too_many = Problem::TooMany { what, limit: N };
        let taken = parse(part).and_then(|port| found.push(port).map_err(|_| too_many));
        wrong = wrong.or(taken.err());
    }
    (found, wrong)
}

/// A selector of a list of required ports.
fn included(text: &str) -> Parsed<'_, Selector<'_>> {
    if text.starts_with('-') {
        return Err(Problem::Malformed {
            what: "a required port",
            text,
            hint: "-SELECTOR excludes a port behind all, any or a number: all,-SELECTOR",
        });
    }
    const NUMBERS: &[&str] = &["all", "any"];
    let is_number = |word: &&str| text.eq_ignore_ascii_case(word) && text != *word;
    if NUMBERS.iter().any(is_number) {
        return Err(Problem::NotOneOf {
            what: "a required port",
            text,
            choices: NUMBERS,
        });
    }
    if !text.is_empty() && candidates(text).is_some() {
        return Err(Problem::Malformed {
            what: "a required port",
            text,
            hint: "write either a number of ports or a list of selectors",
        });
    }
    selector(text)
}

/// `-SELECTOR` behind a number of ports.
fn excluded(text: &str) -> Parsed<'_, Selector<'_>> {
    let port = text.strip_prefix('-').ok_or(Problem::Malformed {
        what: "an excluded port",
        text,
        hint: "write -SELECTOR behind all, any or a number, or a list of selectors alone",
    })?;
    selector(port)
}

pub(crate) fn rate(text: &str) -> Parsed<'_, RateWish<'_>> {
    let (front, last) = text
        .rsplit_once('=')
        .map_or((None, text), |(front, last)| (Some(front), last));
    let hint = "write a number such as 100 or 2.5, at most 10000";
    let wrong = Problem::Malformed {
        what: "a rate in Gb/s",
        text: last,
        hint,
    };
    let megabits = megabits(last)
        .filter(|rate| (1..=10_000_000).contains(rate))
        .ok_or(wrong)?;
    Ok(RateWish {
        selector: front.map(selector).transpose()?,
        megabits,
    })
}

/// Gb/s with up to three decimals, as Mb/s.
fn megabits(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let scale = match fraction.len() {
        1 => 100,
        2 => 10,
        3 => 1,
        _ => return None,
    };
    decimal(whole)?
        .checked_mul(1000)?
        .checked_add(decimal(fraction)?.checked_mul(scale)?)
}

pub(crate) fn probe(text: &str) -> Parsed<'_, Probe> {
    if let Some(address) = address(text) {
        return Ok(Probe {
            address,
            port: None,
        });
    }
    let hint = "write ADDRESS or ADDRESS:PORT, IPv6 in brackets if a port follows";
    let wrong = Problem::Malformed {
        what: "an address",
        text,
        hint,
    };
    let socket: SocketAddr = text.parse().map_err(|_| wrong)?;
    if socket.port() == 0 {
        return Err(Problem::NotNumber {
            what: "a port",
            text: "0",
            min: 1,
            max: 65535,
        });
    }
    Ok(Probe {
        address: socket.ip(),
        port: Some(socket.port()),
    })
}

pub(crate) fn ifname(text: &str) -> Parsed<'_, Ifname<'_>> {
    const HINT: &str =
        "write NAME:ADDRESS, the address as 6, 8 or 20 groups of two hexadecimal digits";
    let (name, address) = text.split_once(':').ok_or(Problem::Missing {
        what: "the address",
        hint: HINT,
    })?;
    if !is_name(name, INTERFACE_NAME) {
        return Err(Problem::Malformed {
            what: "a name for an interface",
            text: name,
            hint: HINT,
        });
    }
    let wrong = Problem::Malformed {
        what: "a hardware address",
        text: address,
        hint: HINT,
    };
    let plain = HwAddr::parse(address).filter(|address| address.hardware_type().is_none());
    Ok(Ifname {
        name,
        address: plain.ok_or(wrong)?,
    })
}

/// The interface and the identifier behind a colon. Both may have colons: then the identifier is
/// text, or has dashes.
fn split_client_id(text: &str) -> Option<(&str, &str)> {
    let of_text = text.find(":@").and_then(|at| text.split_at_checked(at));
    let of_text = of_text.map(|(front, id)| (front, id.strip_prefix(':').unwrap_or(id)));
    let last = text.rsplit_once(':').filter(|(_, id)| id.contains('-'));
    let split = of_text.or(last);
    let split = split.filter(|(front, _)| Interface::parse(front).is_some());
    split.or_else(|| text.split_once(':'))
}

pub(crate) fn client_id(text: &str) -> Parsed<'_, ClientId<'_>> {
    const HINT: &str = "write INTERFACE:HEX-HEX-... or INTERFACE:@TEXT";
    let (front, id) = split_client_id(text).ok_or(Problem::Missing {
        what: "the identifier",
        hint: HINT,
    })?;
    let wrong = Problem::Malformed {
        what: "a client identifier",
        text: id,
        hint: HINT,
    };
    let groups = || id.split(['-', ':']);
    let id = match id.strip_prefix('@') {
        Some(text) if !text.is_empty() && text.len() <= CLIENT_ID => ClientIdValue::Text(text),
        Some(_) => return Err(wrong),
        None => {
            let pairs = groups().all(|group| group.len() == 2 && hexadecimal(group, 2).is_some());
            if !pairs || groups().count() > CLIENT_ID {
                return Err(wrong);
            }
            ClientIdValue::Hexadecimal(id)
        }
    };
    Ok(ClientId {
        interface: interface(front)?,
        id,
    })
}

pub(crate) fn nvmf_discover(text: &str) -> Parsed<'_, NvmfDiscover<'_>> {
    const HINT: &str = "write TRANSPORT,ADDRESS[,HOST-ADDRESS[,SERVICE]]";
    let mut parts = text.split(',');
    let mut part = || parts.next().filter(|part| !part.is_empty());
    let transport = part().ok_or(Problem::Missing {
        what: "the transport",
        hint: HINT,
    })?;
    let traddr = part().ok_or(Problem::Missing {
        what: "the address",
        hint: HINT,
    })?;
    let _host_address = part();
    if let Some(text) = part() {
        number("a service", text, 1, 65535)?;
    }
    match parts.next() {
        // Not shown: the field may be a key for the server.
        Some(_) => Err(Problem::Contradiction {
            what: "no field is allowed after the service",
            hint: HINT,
        }),
        None => Ok(NvmfDiscover { transport, traddr }),
    }
}
