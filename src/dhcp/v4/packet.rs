// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: encoding and decoding of a DHCP message (RFC 2131 2, RFC 2132, RFC 3396). A message with a
//! wrong length is rejected as a whole.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

use crate::dhcp::message_kinds;
use crate::hardware::Hex;

/// Smallest message that every relay forwards (RFC 951: 300 bytes, RFC 1542 2.1).
const SMALLEST: usize = 300;
/// Largest message that is decoded; option 57 requests less.
pub const LARGEST: usize = 4096;
/// The magic cookie (RFC 2131 3).
pub const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// BROADCAST flag (RFC 2131, figure 2).
const BROADCAST: u16 = 0x8000;

/// Option codes (RFC 2132, or the source in brackets).
pub mod option {
    /// Subnet mask.
    pub const MASK: u8 = 1;
    /// Routers.
    pub const ROUTERS: u8 = 3;
    /// Domain name servers.
    pub const NAME_SERVERS: u8 = 6;
    /// Host name.
    pub const HOST_NAME: u8 = 12;
    /// Domain name.
    pub const DOMAIN_NAME: u8 = 15;
    /// Root path.
    pub const ROOT_PATH: u8 = 17;
    /// Interface MTU.
    pub const MTU: u8 = 26;
    /// Broadcast address.
    pub const BROADCAST: u8 = 28;
    /// Classful static routes.
    pub const STATIC_ROUTES: u8 = 33;
    /// Requested IP address.
    pub const REQUESTED: u8 = 50;
    /// Lease time.
    pub const LEASE_TIME: u8 = 51;
    /// Options continue in `file` and `sname`.
    pub const OVERLOAD: u8 = 52;
    /// Message type.
    pub const MESSAGE_TYPE: u8 = 53;
    /// Server identifier.
    pub const SERVER: u8 = 54;
    /// Parameter request list.
    pub const PARAMETERS: u8 = 55;
    /// Message, for people.
    pub const MESSAGE: u8 = 56;
    /// Maximum DHCP message size.
    pub const MAX_SIZE: u8 = 57;
    /// T1.
    pub const RENEW: u8 = 58;
    /// T2.
    pub const REBIND: u8 = 59;
    /// Vendor class identifier.
    pub const VENDOR_CLASS: u8 = 60;
    /// Client identifier.
    pub const CLIENT_ID: u8 = 61;
    /// TFTP server name.
    pub const TFTP_SERVER: u8 = 66;
    /// Boot file name.
    pub const BOOT_FILE: u8 = 67;
    /// Domain search list (RFC 3397).
    pub const DOMAIN_SEARCH: u8 = 119;
    /// Classless static routes (RFC 3442).
    pub const CLASSLESS_ROUTES: u8 = 121;
    /// Padding.
    pub const PAD: u8 = 0;
    /// End of the options.
    pub const END: u8 = 255;
}

message_kinds! {
    /// Message type (option 53).
    Kind {
        /// The client looks for servers.
        Discover = 1 "DISCOVER",
        /// A server's answer to DISCOVER.
        Offer = 2 "OFFER",
        /// The client requests the offered address, or an extension of its lease.
        Request = 3 "REQUEST",
        /// Another host has the address.
        Decline = 4 "DECLINE",
        /// The server grants the request.
        Ack = 5 "ACK",
        /// The server refuses the request.
        Nak = 6 "NAK",
        /// The client returns the address.
        Release = 7 "RELEASE",
        /// The client requests settings only.
        Inform = 8 "INFORM",
        /// A server requests a renewal (RFC 3203); never obeyed.
        ForceRenew = 9 "FORCERENEW",
    }
}

/// Why bytes are not a DHCP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than the header.
    Short(usize),
    /// Longer than [`LARGEST`].
    Long(usize),
    /// The magic cookie is wrong.
    Cookie,
    /// An option extends beyond the end of its field.
    Truncated(u8),
    /// An option with an impossible length.
    Length(u8, usize),
    /// Option 53 is missing or has an unknown number.
    Type,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Short(length) => write!(f, "only {length} bytes"),
            Malformed::Long(length) => write!(f, "{length} bytes are too many"),
            Malformed::Cookie => f.write_str("no DHCP cookie"),
            Malformed::Truncated(code) => write!(f, "option {code} is cut off"),
            Malformed::Length(code, length) => {
                write!(f, "option {code} has an invalid length of {length} bytes")
            }
            Malformed::Type => f.write_str("no valid message type"),
        }
    }
}

/// A DHCP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// 1: to a server, 2: from a server.
    pub op: u8,
    /// ARP hardware type: 1 Ethernet, 32 InfiniBand.
    pub htype: u8,
    /// Length of the hardware address in `chaddr`, as received; never used as an index.
    pub hlen: u8,
    /// Transaction.
    pub xid: u32,
    /// Seconds since the client started.
    pub secs: u16,
    /// The answer must be broadcast.
    pub broadcast: bool,
    /// The client's current address, or 0.0.0.0.
    pub ciaddr: Ipv4Addr,
    /// The granted address.
    pub yiaddr: Ipv4Addr,
    /// The next server of the boot.
    pub siaddr: Ipv4Addr,
    /// The relay.
    pub giaddr: Ipv4Addr,
    /// The client's hardware address field.
    pub chaddr: [u8; 16],
    /// Server name up to its NUL; empty if the field holds options.
    pub sname: Vec<u8>,
    /// Boot file up to its NUL; empty if the field holds options.
    pub file: Vec<u8>,
    /// Option 53.
    pub kind: Kind,
    /// All other options; the parts of a split option are joined in order (RFC 3396).
    pub options: BTreeMap<u8, Vec<u8>>,
}

impl Message {
    /// A client's message without options.
    pub fn new(kind: Kind, xid: u32) -> Message {
        Message {
            op: 1,
            htype: 1,
            hlen: 0,
            xid,
            secs: 0,
            broadcast: false,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
            chaddr: [0; 16],
            sname: Vec::new(),
            file: Vec::new(),
            kind,
            options: BTreeMap::new(),
        }
    }

    /// An option's bytes.
    pub fn option(&self, code: u8) -> Option<&[u8]> {
        self.options.get(&code).map(Vec::as_slice)
    }

    /// An option that is exactly one IPv4 address.
    pub fn address(&self, code: u8) -> Option<Ipv4Addr> {
        let bytes: [u8; 4] = self.option(code)?.try_into().ok()?;
        Some(Ipv4Addr::from(bytes))
    }

    /// An option that is exactly one 32-bit number.
    pub fn number(&self, code: u8) -> Option<u32> {
        let bytes: [u8; 4] = self.option(code)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    /// The message in one line of the debug log.
    pub fn summary(&self) -> String {
        let mut line = format!("{} xid {:#010x}", self.kind, self.xid);
        let mut add = |name: &str, address: Ipv4Addr| {
            if !address.is_unspecified() {
                line.push_str(&format!(", {name} {address}"));
            }
        };
        add("ciaddr", self.ciaddr);
        add("yiaddr", self.yiaddr);
        add("siaddr", self.siaddr);
        add("relay", self.giaddr);
        if let Some(address) = self.address(option::REQUESTED) {
            add("requested", address);
        }
        if let Some(address) = self.address(option::SERVER) {
            add("server", address);
        }
        line.push_str(&format!(
            ", htype {} hlen {}{}",
            self.htype,
            self.hlen,
            if self.broadcast { ", broadcast" } else { "" }
        ));
        if let Some(id) = self.option(option::CLIENT_ID) {
            line.push_str(&format!(", client {}", Hex(id)));
        }
        let codes: Vec<String> = self.options.keys().map(ToString::to_string).collect();
        line.push_str(&format!(", options {}", codes.join(" ")));
        line
    }

    /// Decodes a message.
    pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
        if bytes.len() > LARGEST {
            return Err(Malformed::Long(bytes.len()));
        }
        let mut reader = Reader {
            bytes,
            whole: bytes.len(),
        };
        let [op, htype, hlen, _hops] = reader.take()?;
        let xid = u32::from_be_bytes(reader.take()?);
        let secs = u16::from_be_bytes(reader.take()?);
        let flags = u16::from_be_bytes(reader.take()?);
        let ciaddr = reader.address()?;
        let yiaddr = reader.address()?;
        let siaddr = reader.address()?;
        let giaddr = reader.address()?;
        let chaddr = reader.take()?;
        let sname: [u8; 64] = reader.take()?;
        let file: [u8; 128] = reader.take()?;
        if reader.take()? != COOKIE {
            return Err(Malformed::Cookie);
        }
        let mut options = BTreeMap::new();
        collect(reader.bytes, &mut options)?;
        // RFC 2131 4.1: the options field first, then `file`, then `sname`.
        let overload = match options.remove(&option::OVERLOAD).as_deref() {
            None => 0,
            Some([fields @ 1..=3]) => *fields,
            Some(other) => return Err(Malformed::Length(option::OVERLOAD, other.len())),
        };
        if overload & 1 != 0 {
            collect(&file, &mut options)?;
        }
        if overload & 2 != 0 {
            collect(&sname, &mut options)?;
        }
        // An overloaded field cannot overload again.
        options.remove(&option::OVERLOAD);
        let kind = match options.remove(&option::MESSAGE_TYPE).as_deref() {
            Some([number]) => Kind::of_number(*number).ok_or(Malformed::Type)?,
            _ => return Err(Malformed::Type),
        };
        Ok(Message {
            op,
            htype,
            hlen,
            xid,
            secs,
            broadcast: flags & BROADCAST != 0,
            ciaddr,
            yiaddr,
            siaddr,
            giaddr,
            chaddr,
            sname: until_nul(if overload & 2 != 0 { &[] } else { &sname }),
            file: until_nul(if overload & 1 != 0 { &[] } else { &file }),
            kind,
            options,
        })
    }

    /// Encodes the message. An option of more than 255 bytes is split (RFC 3396); `sname` and
    /// `file` are cut to their fields.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SMALLEST);
        bytes.extend([self.op, self.htype, self.hlen, 0]);
        bytes.extend(self.xid.to_be_bytes());
        bytes.extend(self.secs.to_be_bytes());
        bytes.extend(if self.broadcast { BROADCAST } else { 0 }.to_be_bytes());
        for address in [self.ciaddr, self.yiaddr, self.siaddr, self.giaddr] {
            bytes.extend(address.octets());
        }
        bytes.extend(self.chaddr);
        for (text, size) in [(&self.sname, 64), (&self.file, 128)] {
            let before = bytes.len();
            bytes.extend(text.iter().take(size));
            bytes.resize(before + size, 0);
        }
        bytes.extend(COOKIE);
        bytes.extend([option::MESSAGE_TYPE, 1, self.kind.number()]);
        for (code, value) in &self.options {
            if value.is_empty() {
                bytes.extend([*code, 0]);
            }
            for part in value.chunks(255) {
                bytes.extend([*code, u8::try_from(part.len()).unwrap_or(u8::MAX)]);
                bytes.extend(part);
            }
        }
        bytes.push(option::END);
        bytes.resize(bytes.len().max(SMALLEST), option::PAD);
        bytes
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    whole: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let short = Malformed::Short(self.whole);
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(short)?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn address(&mut self) -> Result<Ipv4Addr, Malformed> {
        Ok(Ipv4Addr::from(self.take::<4>()?))
    }
}

/// Adds the options of one field. A full field may end without END.
fn collect(field: &[u8], options: &mut BTreeMap<u8, Vec<u8>>) -> Result<(), Malformed> {
    let mut rest = field;
    while let Some((&code, after)) = rest.split_first() {
        match code {
            option::PAD => rest = after,
            option::END => return Ok(()),
            _ => {
                let cut = Malformed::Truncated(code);
                let (&length, after) = after.split_first().ok_or(cut)?;
                let (value, after) = after.split_at_checked(usize::from(length)).ok_or(cut)?;
                options.entry(code).or_default().extend(value);
                rest = after;
            }
        }
    }
    Ok(())
}

fn until_nul(field: &[u8]) -> Vec<u8> {
    field
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .collect()
}

#[cfg(test)]
mod tests;
