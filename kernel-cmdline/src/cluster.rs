// SPDX-License-Identifier: MIT OR Apache-2.0
//! An `ip=ADDRESS` without other fields: installers' arguments have the other values.

use core::net::IpAddr;

use heapless::Vec;

use crate::complain::Problem;
use crate::ip::{Ip, is_hostname, mtu};
use crate::net::{Prefixed, next_hop, prefix_length};
use crate::parse::text;
use crate::selector::Interface;
use crate::token::Token;

/// Maximum of problems of one cluster: one for each of its arguments.
const PROBLEMS: usize = 5;
/// The invalid arguments of a cluster.
pub(crate) type Problems<'a> = Vec<(Token<'a>, Problem<'a>), PROBLEMS>;

const HINT: &str = "correct the value: ip=ADDRESS without other fields uses this argument";

/// Whether an argument of this name may belong to an `ip=ADDRESS`.
pub(crate) fn is_of_cluster(key: &[u8]) -> bool {
    matches!(
        key,
        b"gateway" | b"netmask" | b"hostname" | b"mtu" | b"ksdevice"
    )
}

/// The arguments that belong to an `ip=ADDRESS`, the last one of each.
#[derive(Debug, Default)]
pub(crate) struct Cluster<'a> {
    gateway: Option<Token<'a>>,
    netmask: Option<Token<'a>>,
    hostname: Option<Token<'a>>,
    mtu: Option<Token<'a>>,
    device: Option<Token<'a>>,
}

impl<'a> Cluster<'a> {
    /// Records `token` if it may belong to an `ip=ADDRESS`.
    pub(crate) fn note(&mut self, token: &Token<'a>) {
        let slot = match token.key {
            b"gateway" => &mut self.gateway,
            b"netmask" => &mut self.netmask,
            b"hostname" => &mut self.hostname,
            b"mtu" => &mut self.mtu,
            b"ksdevice" => &mut self.device,
            _ => return,
        };
        *slot = Some(*token);
    }

    /// Fills in the fields of `ip` that the other arguments have. `bootif` is the interface that
    /// `ksdevice=bootif` means. Returns the invalid arguments.
    pub(crate) fn complete(&self, ip: &mut Ip<'a>, bootif: Option<Interface<'a>>) -> Problems<'a> {
        let mut problems = Problems::new();
        if let Some(gateway) = read(self.gateway, &mut problems, gateway) {
            ip.gateway = gateway;
        }
        if let Some(client) = ip.client
            && let Some(prefix) = read(self.netmask, &mut problems, |text| {
                netmask(text, client.address)
            })
        {
            ip.client = Some(Prefixed {
                prefix: Some(prefix),
                ..client
            });
        }
        if let Some(hostname) = read(self.hostname, &mut problems, hostname) {
            ip.hostname = Some(hostname);
        }
        if let Some(mtu) = read(self.mtu, &mut problems, mtu) {
            ip.mtu = Some(mtu);
        }
        if let Some(interface) = read(self.device, &mut problems, |text| device(text, bootif)) {
            ip.interface = interface;
        }
        problems
    }
}

/// The value of `token`, read by `parse`; an invalid value is added to `problems`.
fn read<'a, T>(
    token: Option<Token<'a>>,
    problems: &mut Problems<'a>,
    parse: impl Fn(&'a str) -> Result<T, Problem<'a>>,
) -> Option<T> {
    let token = token?;
    let value = text(&token).and_then(|value| {
        value
            .filter(|value| !value.is_empty())
            .ok_or(Problem::NoValue)
    });
    match value.and_then(parse) {
        Ok(value) => Some(value),
        Err(problem) => {
            // Each of the five arguments is read once: there is always room.
            problems.push((token, problem)).ok();
            None
        }
    }
}

fn gateway(text: &str) -> Result<Option<IpAddr>, Problem<'_>> {
    let is_v4 = |hop: &Option<IpAddr>| hop.is_none_or(|hop| hop.is_ipv4());
    next_hop(text).filter(is_v4).ok_or(Problem::Malformed {
        what: "a gateway address",
        text,
        hint: HINT,
    })
}

fn netmask(text: &str, client: IpAddr) -> Result<u8, Problem<'_>> {
    prefix_length(text, client).ok_or(Problem::Malformed {
        what: "a netmask",
        text,
        hint: HINT,
    })
}

fn hostname(text: &str) -> Result<&str, Problem<'_>> {
    let wrong = Problem::Malformed {
        what: "a host name",
        text,
        hint: HINT,
    };
    is_hostname(text).then_some(text).ok_or(wrong)
}

fn device<'a>(
    text: &'a str,
    bootif: Option<Interface<'a>>,
) -> Result<Option<Interface<'a>>, Problem<'a>> {
    match text {
        "link" | "ibft" => Ok(None),
        word if word.eq_ignore_ascii_case("bootif") => Ok(bootif),
        name => {
            let wrong = Problem::Malformed {
                what: "an interface",
                text,
                hint: HINT,
            };
            Interface::parse(name).map(Some).ok_or(wrong)
        }
    }
}
