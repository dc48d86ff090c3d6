// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bond=`: several interfaces bonded into one.

use heapless::Vec;

use crate::complain::Problem;
use crate::ip::mtu;
use crate::selector::{INTERFACE_NAME, Interface, is_name};

/// Maximum of interfaces of one `bond=`.
pub const BOND_SLAVES: usize = 8;
/// Maximum of options of one `bond=`.
pub const BOND_OPTIONS: usize = 16;
/// Maximum length of an option's name, in bytes; the kernel's longest name has 17.
const OPTION_NAME: usize = 32;

const HINT: &str = "write NAME[:IF,IF...[:OPTION=VALUE,...[:MTU]]]";

/// `bond=NAME[:SLAVES[:OPTIONS[:MTU]]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond<'a> {
    /// The name of the bond.
    pub name: &'a str,
    /// The slaves; if none is given, dracut's default `eth0` and `eth1`.
    pub slaves: Vec<Interface<'a>, BOND_SLAVES>,
    /// Options of the kernel's driver with their values, in the order written. `;` separates the
    /// addresses of one value; IPv6 addresses are in brackets.
    pub options: Vec<(&'a str, &'a str), BOND_OPTIONS>,
    /// The MTU of the bond, in bytes.
    pub mtu: Option<u32>,
}

impl<'a> Bond<'a> {
    /// Reads the value of `bond=`.
    pub fn parse(text: &'a str) -> Result<Self, Problem<'a>> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if !is_name(name, INTERFACE_NAME) {
            return Err(malformed("a name for a bond", name));
        }
        let (listed, rest) = split_slaves(rest);
        let slaves = slaves(listed)?;
        let mut fields = fields(rest);
        let options = options(fields.next().unwrap_or_default())?;
        let mtu = match fields.next().unwrap_or_default() {
            "" => None,
            text => Some(mtu(text)?),
        };
        match fields.next() {
            None | Some("") => Ok(Self {
                name,
                slaves,
                options,
                mtu,
            }),
            Some(more) => Err(malformed("allowed after the MTU of a bond", more)),
        }
    }

    /// Whether at least one slave is an InfiniBand interface.
    pub fn is_infiniband(&self) -> bool {
        self.slaves.iter().any(Interface::is_infiniband)
    }
}

/// The parts of the value between its `:`; a `:` in brackets belongs to an IPv6 address.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    let mut is_open = false;
    text.split(move |character| {
        is_open = match character {
            '[' => true,
            ']' => false,
            _ => is_open,
        };
        character == ':' && !is_open
    })
}

fn malformed<'a>(what: &'static str, text: &'a str) -> Problem<'a> {
    Problem::Malformed {
        what,
        text,
        hint: HINT,
    }
}

/// The list of slaves and the text behind the colon after the list. A GUID and a PCI address have
/// colons of their own, so the list is the longest one of interfaces.
fn split_slaves(text: &str) -> (&str, &str) {
    let split = |at: usize| text.split_at_checked(at);
    let colons = text.match_indices(':').map(|(at, _)| at);
    let longest = colons
        .chain([text.len()])
        .rev()
        .filter_map(split)
        .find(|(list, _)| {
            list.split(',')
                .all(|slave| slave.is_empty() || is_slave(slave))
        });
    match longest {
        Some((list, rest)) => (list, rest.strip_prefix(':').unwrap_or(rest)),
        None => text.split_once(':').unwrap_or((text, "")),
    }
}

/// Whether the text is an interface. `ib1:1` is not one here: the options follow a colon.
fn is_slave(text: &str) -> bool {
    match Interface::parse(text) {
        Some(Interface::Port { .. }) => !text.contains(':'),
        interface => interface.is_some(),
    }
}

fn slaves(text: &str) -> Result<Vec<Interface<'_>, BOND_SLAVES>, Problem<'_>> {
    let mut slaves = Vec::new();
    let text = if text.is_empty() { "eth0,eth1" } else { text };
    for slave in text.split(',').filter(|slave| !slave.is_empty()) {
        let interface = Interface::parse(slave).ok_or(malformed("an interface", slave))?;
        if slaves.contains(&interface) {
            return Err(Problem::Contradiction {
                what: "an interface is named twice",
                hint: "name each interface of a bond once",
            });
        }
        slaves.push(interface).map_err(|_| Problem::TooMany {
            what: "interfaces of one bond",
            limit: BOND_SLAVES,
        })?;
    }
    if slaves.is_empty() {
        return Err(malformed("an interface", text));
    }
    Ok(slaves)
}

fn options(text: &str) -> Result<Vec<(&str, &str), BOND_OPTIONS>, Problem<'_>> {
    let mut options = Vec::new();
    for option in text.split(',').filter(|option| !option.is_empty()) {
        let wrong = malformed("an option", option);
        let (name, value) = option.split_once('=').ok_or(wrong)?;
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty()
            || name.len() > OPTION_NAME
            || !name.bytes().all(is_plain)
            || value.is_empty()
            || value.matches('[').count() != value.matches(']').count()
        {
            return Err(wrong);
        }
        options.push((name, value)).map_err(|_| Problem::TooMany {
            what: "options of one bond",
            limit: BOND_OPTIONS,
        })?;
    }
    Ok(options)
}
