// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a DHCPv6 message as bytes and back (RFC 8415 8 and 21). What does not fit its own length
//! is no message; no part of one is believed then.

use std::fmt;
use std::net::Ipv6Addr;

/// Largest message that is looked at: what a client gets is one packet of the link.
pub const LARGEST: usize = 4096;
/// Longest DUID with its type (RFC 8415 11.1).
pub const DUID: usize = 130;
/// A transaction has 24 bits.
pub const TRANSACTION: u32 = 0x00ff_ffff;

/// Option codes (RFC 8415 21 and where noted).
pub mod option {
    /// Client identifier.
    pub const CLIENT_ID: u16 = 1;
    /// Server identifier.
    pub const SERVER_ID: u16 = 2;
    /// Identity association for addresses that are not temporary.
    pub const IA_NA: u16 = 3;
    /// An address of one.
    pub const IA_ADDRESS: u16 = 5;
    /// What is asked for besides.
    pub const REQUEST: u16 = 6;
    /// A server's preference.
    pub const PREFERENCE: u16 = 7;
    /// Hundredths of a second since the first message of the exchange.
    pub const ELAPSED_TIME: u16 = 8;
    /// How it went.
    pub const STATUS_CODE: u16 = 13;
    /// Two messages instead of four.
    pub const RAPID_COMMIT: u16 = 14;
    /// Name servers (RFC 3646).
    pub const NAME_SERVERS: u16 = 23;
    /// Domains to search (RFC 3646).
    pub const DOMAIN_LIST: u16 = 24;
    /// When settings are asked for again.
    pub const REFRESH_TIME: u16 = 32;
    /// How far the repetition of SOLICIT may slow down.
    pub const SOL_MAX_RT: u16 = 82;
    /// The same of INFORMATION-REQUEST.
    pub const INF_MAX_RT: u16 = 83;
}

/// The type of a message between a client and a server (RFC 8415 7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Who has an address for me?
    Solicit,
    /// A server's answer to it.
    Advertise,
    /// That one, please.
    Request,
    /// Is it still right on this link?
    Confirm,
    /// May I keep it? To the server that granted it.
    Renew,
    /// The same, to any server.
    Rebind,
    /// A server's answer.
    Reply,
    /// Given back.
    Release,
    /// Somebody else has the address.
    Decline,
    /// A server asks for a renewal; never obeyed.
    Reconfigure,
    /// Only settings are wanted.
    InformationRequest,
}

impl Kind {
    const ALL: [(u8, Kind, &'static str); 11] = [
        (1, Kind::Solicit, "SOLICIT"),
        (2, Kind::Advertise, "ADVERTISE"),
        (3, Kind::Request, "REQUEST"),
        (4, Kind::Confirm, "CONFIRM"),
        (5, Kind::Renew, "RENEW"),
        (6, Kind::Rebind, "REBIND"),
        (7, Kind::Reply, "REPLY"),
        (8, Kind::Release, "RELEASE"),
        (9, Kind::Decline, "DECLINE"),
        (10, Kind::Reconfigure, "RECONFIGURE"),
        (11, Kind::InformationRequest, "INFORMATION-REQUEST"),
    ];

    fn of_number(number: u8) -> Option<Kind> {
        let row = Kind::ALL.iter().find(|row| row.0 == number)?;
        Some(row.1)
    }

    /// The number in the message.
    pub fn number(self) -> u8 {
        let row = Kind::ALL.iter().find(|row| row.1 == self);
        row.map_or(0, |row| row.0)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = Kind::ALL.iter().find(|row| row.1 == *self);
        f.pad(row.map_or("", |row| row.2))
    }
}

/// Why bytes are no message of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than the header.
    Short(usize),
    /// Longer than [`LARGEST`].
    Long(usize),
    /// A type that is none between client and server.
    Type(u8),
    /// An option reaches beyond the end of what holds it.
    Truncated(u16),
    /// Bytes behind the last option that are too few for another one.
    Rest(usize),
    /// An option whose length cannot be.
    Length(u16, usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Short(size) => write!(f, "{size} bytes are no DHCPv6 message"),
            Malformed::Long(size) => write!(f, "{size} bytes are too many"),
            Malformed::Type(number) => write!(f, "message type {number}"),
            Malformed::Truncated(code) => write!(f, "option {code} is cut off"),
            Malformed::Rest(size) => write!(f, "{size} bytes behind the last option"),
            Malformed::Length(code, size) => write!(f, "option {code} of {size} bytes"),
        }
    }
}

/// Options in the order in which they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(Vec<(u16, Vec<u8>)>);

impl Options {
    /// Reads all of `bytes`.
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
            // None of ours is as long; what has no length cannot be sent.
            let Ok(length) = u16::try_from(value.len()) else {
                continue;
            };
            bytes.extend(code.to_be_bytes());
            bytes.extend(length.to_be_bytes());
            bytes.extend(value);
        }
    }

    /// Adds one behind the others.
    pub fn push(&mut self, code: u16, value: impl Into<Vec<u8>>) {
        self.0.push((code, value.into()));
    }

    /// Takes all of this code away.
    pub fn remove(&mut self, code: u16) {
        self.0.retain(|(other, _)| *other != code);
    }

    /// The first one of this code: of those that may stand once only, the others mean nothing.
    pub fn first(&self, code: u16) -> Option<&[u8]> {
        self.all(code).next()
    }

    /// All of this code.
    pub fn all(&self, code: u16) -> impl Iterator<Item = &[u8]> {
        let mine = self.0.iter().filter(move |(other, _)| *other == code);
        mine.map(|(_, value)| value.as_slice())
    }

    /// The codes, in order.
    pub fn codes(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|(code, _)| *code)
    }

    /// How it went, where it is said.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Number of the code.
    pub code: u16,
    /// For people; not clean.
    pub text: String,
}

/// Status codes (RFC 8415 21.13).
pub mod status {
    /// Done.
    pub const SUCCESS: u16 = 0;
    /// No address is to be had.
    pub const NO_ADDRESSES: u16 = 2;
    /// The server knows nothing of this lease.
    pub const NO_BINDING: u16 = 3;
    /// The address belongs to another link.
    pub const NOT_ON_LINK: u16 = 4;
}

impl Status {
    /// The code's name; none: it has none in RFC 8415.
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
    /// Which of the client's.
    pub iaid: u32,
    /// T1 in seconds; 0: the client's choice.
    pub renew_s: u32,
    /// T2 in seconds; 0: the client's choice.
    pub rebind_s: u32,
    /// What it holds.
    pub options: Options,
}

impl Association {
    /// One that asks for this address, or for any.
    pub fn asking(iaid: u32, address: Option<Ipv6Addr>) -> Association {
        let mut options = Options::default();
        if let Some(address) = address {
            let wanted = Address {
                address,
                preferred_s: 0,
                valid_s: 0,
                options: Options::default(),
            };
            options.push(option::IA_ADDRESS, wanted.encode());
        }
        Association {
            iaid,
            renew_s: 0,
            rebind_s: 0,
            options,
        }
    }

    /// Reads the value of the option.
    pub fn decode(value: &[u8]) -> Result<Association, Malformed> {
        let mut reader = Reader(value, option::IA_NA, value.len());
        Ok(Association {
            iaid: u32::from_be_bytes(reader.take()?),
            renew_s: u32::from_be_bytes(reader.take()?),
            rebind_s: u32::from_be_bytes(reader.take()?),
            options: Options::decode(reader.0)?,
        })
    }

    /// The value of the option.
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
    /// The address.
    pub address: Ipv6Addr,
    /// Preferred lifetime in seconds.
    pub preferred_s: u32,
    /// Valid lifetime in seconds.
    pub valid_s: u32,
    /// What it holds.
    pub options: Options,
}

impl Address {
    /// Reads the value of the option.
    pub fn decode(value: &[u8]) -> Result<Address, Malformed> {
        let mut reader = Reader(value, option::IA_ADDRESS, value.len());
        Ok(Address {
            address: Ipv6Addr::from(reader.take::<16>()?),
            preferred_s: u32::from_be_bytes(reader.take()?),
            valid_s: u32::from_be_bytes(reader.take()?),
            options: Options::decode(reader.0)?,
        })
    }

    /// The value of the option.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.address.octets().to_vec();
        for number in [self.preferred_s, self.valid_s] {
            bytes.extend(number.to_be_bytes());
        }
        self.options.encode(&mut bytes);
        bytes
    }
}

/// The fixed fields of an option: its rest, its code, its whole length.
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
    /// Its type.
    pub kind: Kind,
    /// The transaction, of 24 bits.
    pub transaction: u32,
    /// What it says.
    pub options: Options,
}

impl Message {
    /// One that says nothing yet.
    pub fn new(kind: Kind, transaction: u32) -> Message {
        Message {
            kind,
            transaction: transaction & TRANSACTION,
            options: Options::default(),
        }
    }

    /// Reads one; messages of relays are none for a client.
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

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let [_, a, b, c] = self.transaction.to_be_bytes();
        let mut bytes = vec![self.kind.number(), a, b, c];
        self.options.encode(&mut bytes);
        bytes
    }

    /// The DUID of this option, 3 to [`DUID`] bytes long.
    pub fn duid(&self, code: u16) -> Option<&[u8]> {
        let duid = self.options.first(code)?;
        (3..=DUID).contains(&duid.len()).then_some(duid)
    }

    /// How long a server wants its clients to wait at most between two messages, in seconds:
    /// SOL_MAX_RT or INF_MAX_RT. What is out of its range is ignored (RFC 8415 21.24 and 21.25).
    pub fn longest_wait_s(&self, code: u16) -> Option<u32> {
        let value = <[u8; 4]>::try_from(self.options.first(code)?).ok()?;
        let seconds = u32::from_be_bytes(value);
        (60..=86400).contains(&seconds).then_some(seconds)
    }
}

#[cfg(test)]
mod tests;
