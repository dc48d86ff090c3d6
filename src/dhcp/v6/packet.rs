// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: encoding and decoding of a DHCPv6 message (RFC 8415 8 and 21). A message with a wrong
//! length is rejected as a whole.

use std::fmt;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use crate::dhcp::message_kinds;

/// Largest message that is decoded: a client receives one packet of the link.
pub const LARGEST: usize = 4096;
/// Longest DUID with its type (RFC 8415 11.1).
pub const DUID: usize = 130;
/// A transaction number has 24 bits.
pub const TRANSACTION: u32 = 0x00ff_ffff;

/// Option codes (RFC 8415 21, or the source in brackets).
pub mod option {
    /// Client identifier.
    pub const CLIENT_ID: u16 = 1;
    /// Server identifier.
    pub const SERVER_ID: u16 = 2;
    /// Identity association for addresses that are not temporary.
    pub const IA_NA: u16 = 3;
    /// An address of an identity association.
    pub const IA_ADDRESS: u16 = 5;
    /// The codes of the requested options.
    pub const REQUEST: u16 = 6;
    /// A server's preference.
    pub const PREFERENCE: u16 = 7;
    /// Hundredths of a second since the first message of the exchange.
    pub const ELAPSED_TIME: u16 = 8;
    /// The result of a request.
    pub const STATUS_CODE: u16 = 13;
    /// An exchange of two messages instead of four.
    pub const RAPID_COMMIT: u16 = 14;
    /// Name servers (RFC 3646).
    pub const NAME_SERVERS: u16 = 23;
    /// Domains to search (RFC 3646).
    pub const DOMAIN_LIST: u16 = 24;
    /// When the client must request its settings again.
    pub const REFRESH_TIME: u16 = 32;
    /// The longest wait between two SOLICITs.
    pub const SOL_MAX_RT: u16 = 82;
    /// The longest wait between two INFORMATION-REQUESTs.
    pub const INF_MAX_RT: u16 = 83;
}

message_kinds! {
    /// The type of a message between a client and a server (RFC 8415 7.3).
    Kind {
        /// The client looks for servers.
        Solicit = 1 "SOLICIT",
        /// A server's answer to SOLICIT.
        Advertise = 2 "ADVERTISE",
        /// The client requests the offered address.
        Request = 3 "REQUEST",
        /// The client checks whether its address is valid on this link.
        Confirm = 4 "CONFIRM",
        /// The client requests more time from the server of its lease.
        Renew = 5 "RENEW",
        /// The client requests more time from any server.
        Rebind = 6 "REBIND",
        /// A server's answer.
        Reply = 7 "REPLY",
        /// The client returns the address.
        Release = 8 "RELEASE",
        /// Another host has the address.
        Decline = 9 "DECLINE",
        /// A server requests a renewal; never obeyed.
        Reconfigure = 10 "RECONFIGURE",
        /// The client requests settings only.
        InformationRequest = 11 "INFORMATION-REQUEST",
    }
}

/// Why bytes are not a DHCPv6 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than the header.
    Short(usize),
    /// Longer than [`LARGEST`].
    Long(usize),
    /// A type that clients and servers do not exchange.
    Type(u8),
    /// An option extends beyond the end of its container.
    Truncated(u16),
    /// Too few bytes for another option follow the last option.
    Rest(usize),
    /// An option with an impossible length.
    Length(u16, usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Short(size) => write!(f, "{size} bytes are too few for a DHCPv6 message"),
            Malformed::Long(size) => write!(f, "{size} bytes are too many for a DHCPv6 message"),
            Malformed::Type(number) => write!(f, "unknown message type {number}"),
            Malformed::Truncated(code) => write!(f, "option {code} is cut off"),
            Malformed::Rest(size) => write!(f, "{size} bytes after the last option"),
            Malformed::Length(code, size) => {
                write!(f, "option {code} has an invalid length of {size} bytes")
            }
        }
    }
}

/// Options in the order of the message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(Vec<(u16, Vec<u8>)>);

impl Options {
    /// Decodes all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Options, Malformed> {
        let mut options = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (head, after) = rest
                .split_first_chunk::<4>()
                .ok_or(Malformed::Rest(rest.len()))?;
            let [high, low, long, short] = *head;
            let code = u16::from_be_bytes([high, low]);
            let length = usize::from(u16::from_be_bytes([long, short]));
            let (value, after) = after
                .split_at_checked(length)
                .ok_or(Malformed::Truncated(code))?;
            options.push((code, value.to_vec()));
            rest = after;
        }
        Ok(Options(options))
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        for (code, value) in &self.0 {
            // Our own values are never this long; a value of 64 KiB or more cannot be encoded.
            let Ok(length) = u16::try_from(value.len()) else {
                continue;
            };
            bytes.extend(code.to_be_bytes());
            bytes.extend(length.to_be_bytes());
            bytes.extend(value);
        }
    }

    /// Appends an option.
    pub fn push(&mut self, code: u16, value: impl Into<Vec<u8>>) {
        self.0.push((code, value.into()));
    }

    /// Removes all options of this code.
    pub fn remove(&mut self, code: u16) {
        self.0.retain(|(other, _)| *other != code);
    }

    /// The first option of this code; repetitions of an option that may appear only once are
    /// ignored.
    pub fn first(&self, code: u16) -> Option<&[u8]> {
        self.all(code).next()
    }

    /// All options of this code.
    pub fn all(&self, code: u16) -> impl Iterator<Item = &[u8]> {
        let mine = self.0.iter().filter(move |(other, _)| *other == code);
        mine.map(|(_, value)| value.as_slice())
    }

    /// The codes, in order.
    pub fn codes(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|(code, _)| *code)
    }

    /// The status, if one is present.
    pub fn status(&self) -> Result<Option<Status>, Malformed> {
        let Some(value) = self.first(option::STATUS_CODE) else {
            return Ok(None);
        };
        let (code, text) = value
            .split_first_chunk::<2>()
            .ok_or(Malformed::Length(option::STATUS_CODE, value.len()))?;
        Ok(Some(Status {
            code: u16::from_be_bytes(*code),
            text: String::from_utf8_lossy(text)
                .trim_end_matches('\0')
                .to_owned(),
        }))
    }
}

/// Option 13.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Number of the code.
    pub code: u16,
    /// For people; may contain control characters.
    pub text: String,
}

/// Status codes (RFC 8415 21.13).
pub mod status {
    /// Done.
    pub const SUCCESS: u16 = 0;
    /// The server has no address left.
    pub const NO_ADDRESSES: u16 = 2;
    /// The server has no record of this lease.
    pub const NO_BINDING: u16 = 3;
    /// The address belongs to another link.
    pub const NOT_ON_LINK: u16 = 4;
}

impl Status {
    /// The name of the code; none if RFC 8415 defines no name.
    pub fn name(&self) -> Option<&'static str> {
        Some(match self.code {
            status::SUCCESS => "Success",
            1 => "UnspecFail",
            status::NO_ADDRESSES => "NoAddrsAvail",
            status::NO_BINDING => "NoBinding",
            status::NOT_ON_LINK => "NotOnLink",
            5 => "UseMulticast",
            _ => return None,
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "status {}", self.code),
        }
    }
}

/// Option 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Association {
    /// IAID: the client's number of the association.
    pub iaid: u32,
    /// T1 in seconds; 0: the client's choice.
    pub renew_s: u32,
    /// T2 in seconds; 0: the client's choice.
    pub rebind_s: u32,
    /// The options in the association.
    pub options: Options,
}

impl Association {
    /// A request for this address, or for any address.
    pub fn asking(iaid: u32, address: Option<Ipv6Addr>) -> Association {
        let mut options = Options::default();
        if let Some(address) = address {
            let requested = Address {
                address,
                preferred_s: 0,
                valid_s: 0,
                options: Options::default(),
            };
            options.push(option::IA_ADDRESS, requested.encode());
        }
        Association {
            iaid,
            renew_s: 0,
            rebind_s: 0,
            options,
        }
    }

    /// Decodes the value of the option.
    pub fn decode(value: &[u8]) -> Result<Association, Malformed> {
        let mut reader = Reader(value, option::IA_NA, value.len());
        Ok(Association {
            iaid: u32::from_be_bytes(reader.take()?),
            renew_s: u32::from_be_bytes(reader.take()?),
            rebind_s: u32::from_be_bytes(reader.take()?),
            options: Options::decode(reader.0)?,
        })
    }

    /// Encodes the value of the option.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [self.iaid, self.renew_s, self.rebind_s] {
            bytes.extend(number.to_be_bytes());
        }
        self.options.encode(&mut bytes);
        bytes
    }
}

/// Option 5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub address: Ipv6Addr,
    /// Preferred lifetime in seconds.
    pub preferred_s: u32,
    /// Valid lifetime in seconds.
    pub valid_s: u32,
    /// The options of the address.
    pub options: Options,
}

impl Address {
    /// Decodes the value of the option.
    pub fn decode(value: &[u8]) -> Result<Address, Malformed> {
        let mut reader = Reader(value, option::IA_ADDRESS, value.len());
        Ok(Address {
            address: Ipv6Addr::from(reader.take::<16>()?),
            preferred_s: u32::from_be_bytes(reader.take()?),
            valid_s: u32::from_be_bytes(reader.take()?),
            options: Options::decode(reader.0)?,
        })
    }

    /// Encodes the value of the option.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.address.octets().to_vec();
        for number in [self.preferred_s, self.valid_s] {
            bytes.extend(number.to_be_bytes());
        }
        self.options.encode(&mut bytes);
        bytes
    }
}

/// Reads the fixed fields of an option: the remaining bytes, the option's code, its whole length.
struct Reader<'a>(&'a [u8], u16, usize);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let short = Malformed::Length(self.1, self.2);
        let (taken, rest) = self.0.split_first_chunk().ok_or(short)?;
        self.0 = rest;
        Ok(*taken)
    }
}

/// A message between a client and a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Message type.
    pub kind: Kind,
    /// The transaction, of 24 bits.
    pub transaction: u32,
    /// The options of the message.
    pub options: Options,
}

impl Message {
    /// A message without options.
    pub fn new(kind: Kind, transaction: u32) -> Message {
        Message {
            kind,
            transaction: transaction & TRANSACTION,
            options: Options::default(),
        }
    }

    /// The message in one line of the debug log.
    pub fn summary(&self) -> String {
        let codes: Vec<String> = self.options.codes().map(|c| c.to_string()).collect();
        format!(
            "{} transaction {:#08x}, options {}",
            self.kind,
            self.transaction,
            codes.join(" ")
        )
    }

    /// Decodes a message; a client rejects messages of relays.
    pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
        if bytes.len() > LARGEST {
            return Err(Malformed::Long(bytes.len()));
        }
        let (head, rest) = bytes
            .split_first_chunk::<4>()
            .ok_or(Malformed::Short(bytes.len()))?;
        let [number, a, b, c] = *head;
        Ok(Message {
            kind: Kind::of_number(number).ok_or(Malformed::Type(number))?,
            transaction: u32::from_be_bytes([0, a, b, c]),
            options: Options::decode(rest)?,
        })
    }

    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let [_, a, b, c] = self.transaction.to_be_bytes();
        let mut bytes = vec![self.kind.number(), a, b, c];
        self.options.encode(&mut bytes);
        bytes
    }

    /// The DUID in this option; a DUID is 3 to [`DUID`] bytes long.
    pub fn duid(&self, code: u16) -> Option<&[u8]> {
        let duid = self.options.first(code)?;
        (3..=DUID).contains(&duid.len()).then_some(duid)
    }

    /// The longest wait between two messages that a server requests of its clients, in seconds:
    /// SOL_MAX_RT or INF_MAX_RT. A value outside the allowed range is ignored (RFC 8415 21.24 and
    /// 21.25).
    pub fn longest_wait_s(&self, code: u16) -> Option<u32> {
        let value = <[u8; 4]>::try_from(self.options.first(code)?).ok()?;
        Some(u32::from_be_bytes(value)).filter(|seconds| is_longest_wait(*seconds))
    }
}

/// Whether a server may request this longest wait (RFC 8415 21.24 and 21.25).
pub fn is_longest_wait(seconds: u32) -> bool {
    (60..=86400).contains(&seconds)
}

#[cfg(test)]
mod tests;
