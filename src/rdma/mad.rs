// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: requests to the subnet administrator and their answers, as bytes (IBTA 13.4 and 15.2).
//! Input from the wire is hostile: a truncated or forged record is ignored and never causes a
//! panic.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use crate::system::decoder::Format;

#[cfg(test)]
mod tests;

/// Bytes of a management datagram on the wire.
pub const MAD: usize = 256;
/// Management class SubnAdm.
pub const SA_CLASS: u8 = 0x03;
/// Class version of [`SA_CLASS`].
pub const SA_CLASS_VERSION: u8 = 2;

const BASE_VERSION: u8 = 1;
const GET: u8 = 0x01;
const GET_TABLE: u8 = 0x12;
const RESPONSE: u8 = 0x80;

/// Offsets of the fields.
mod at {
    pub const STATUS: usize = 4;
    /// The low half: the kernel writes its own number of the agent into the high half.
    pub const TID_LOW: usize = 12;
    pub const ATTRIBUTE: usize = 16;
    pub const RECORD_SIZE: usize = 44;
    pub const COMPONENT_MASK: usize = 48;
    pub const DATA: usize = 56;
}

/// MCMemberRecord without its padding.
const GROUP_BYTES: usize = 52;
/// MGID, the first component of MCMemberRecord.
const COMPONENT_MGID: u64 = 1;
/// LID, the first component of PortInfoRecord.
const COMPONENT_LID: u64 = 1;
/// MTUCap in a PortInfoRecord: 4 bytes of keys, then PortInfo.
const PORT_INFO_MTU: usize = 4 + 41;

/// A request to the subnet administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// ClassPortInfo: the cheapest request for the subnet administrator.
    ClassPortInfo,
    /// MCMemberRecord of one group, by its MGID.
    Group(Ipv6Addr),
    /// PortInfoRecord of the port with this LID.
    PortInfo(u16),
}

impl Question {
    fn attribute(self) -> u16 {
        match self {
            Self::ClassPortInfo => 0x0001,
            Self::PortInfo(_) => 0x0012,
            Self::Group(_) => 0x0038,
        }
    }

    fn method(self) -> u8 {
        match self {
            Self::ClassPortInfo => GET,
            Self::Group(_) | Self::PortInfo(_) => GET_TABLE,
        }
    }

    /// The datagram of the request. The answer carries the same `tid`.
    pub fn bytes(self, tid: u32) -> [u8; MAD] {
        let mut mad = [0; MAD];
        put(
            &mut mad,
            0,
            &[BASE_VERSION, SA_CLASS, SA_CLASS_VERSION, self.method()],
        );
        put(&mut mad, at::TID_LOW, &tid.to_be_bytes());
        put(&mut mad, at::ATTRIBUTE, &self.attribute().to_be_bytes());
        match self {
            Self::ClassPortInfo => {}
            Self::Group(mgid) => {
                put(&mut mad, at::COMPONENT_MASK, &COMPONENT_MGID.to_be_bytes());
                put(&mut mad, at::DATA, &mgid.octets());
            }
            Self::PortInfo(lid) => {
                put(&mut mad, at::COMPONENT_MASK, &COMPONENT_LID.to_be_bytes());
                put(&mut mad, at::DATA, &lid.to_be_bytes());
            }
        }
        mad
    }

    /// Reads the answer to this request; `None` if `mad` is not that answer.
    fn answer(self, tid: u32, mad: &[u8]) -> Option<Reading<'_>> {
        let [BASE_VERSION, SA_CLASS, SA_CLASS_VERSION, method, ..] = *mad else {
            return None;
        };
        let is_it = method == self.method() | RESPONSE
            && transaction(mad)? == tid
            && be16(mad, at::ATTRIBUTE)? == self.attribute();
        is_it.then_some(Reading {
            status: Status(be16(mad, at::STATUS)?),
            mad,
        })
    }
}

/// The status field: generic bits in the low byte, the code of the class in the high byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Status(pub u16);

impl Status {
    /// Success.
    pub const OK: Status = Status(0);
    /// No record matches the request.
    pub const NO_RECORDS: Status = Status(0x0300);
    /// Bit 1: another port answers for this class. The subnet administrator is alive.
    const REDIRECT: u16 = 0x0002;

    /// Whether the subnet administrator is alive and redirects to another port.
    pub fn is_redirect(self) -> bool {
        self.0 & Self::REDIRECT != 0
    }

    /// Bits 2 to 4: the method with this attribute is not supported. A host answers so for a class
    /// that none of its programs serves (drivers/infiniband/core/mad.c, generate_unmatched_resp).
    pub fn is_unserved(self) -> bool {
        self.0 & 0x1c == 0x0c
    }

    /// Text of the status in the words of the specification (IBTA tables 103 and 186).
    pub fn words(self) -> &'static str {
        match (self.0 >> 8, self.0 & 0x1f) {
            _ if self.is_redirect() => "redirects to another port",
            (1, _) => "no resources",
            (2, _) => "request invalid",
            (3, _) => "no records",
            (4, _) => "too many records",
            (5, _) => "invalid GID",
            (6, _) => "insufficient components",
            (7, _) => "request denied",
            (_, 0x01) => "busy",
            (_, 0x04) => "bad version",
            (_, 0x08) => "method not supported",
            (_, 0x0c) => "attribute not supported",
            (_, 0x1c) => "invalid field",
            _ => "unknown code",
        }
    }
}

/// An answer of the subnet administrator, as bytes.
#[derive(Clone, Copy, Debug)]
struct Reading<'a> {
    status: Status,
    mad: &'a [u8],
}

/// A request without an answer, and its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The request.
    pub question: Question,
    /// Its transaction.
    pub tid: u32,
}

/// An answer of the subnet administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Status of the answer.
    pub status: Status,
    /// The requested group, if the table has it.
    pub group: Option<Group>,
    /// Largest MTU of the requested port in bytes.
    pub port_mtu: Option<u32>,
}

/// Datagrams from the umad file; none: not the answer to the awaited request.
#[derive(Debug)]
pub struct Replies;

impl Format for Replies {
    const NAME: &'static str = "mad";
    type Context = Awaited;
    type Value = Option<Reply>;

    fn decode(awaited: &Awaited, mad: &[u8]) -> Option<Reply> {
        let reading = awaited.question.answer(awaited.tid, mad)?;
        let is_requested = |group: &Group| Question::Group(group.mgid) == awaited.question;
        let is_port = matches!(awaited.question, Question::PortInfo(_));
        Some(Reply {
            status: reading.status,
            group: reading.groups().find(is_requested),
            port_mtu: reading.port_mtu().filter(|_| is_port),
        })
    }

    fn is_sound(awaited: &Awaited, reply: &Option<Reply>) -> bool {
        let is_mtu = |bytes: Option<u32>| bytes.is_none() || (1..=5).any(|code| mtu(code) == bytes);
        let is_rate = |megabits: Option<u32>| {
            megabits.is_none() || (2..=24).any(|code| rate(code) == megabits)
        };
        let is_group = |group: Group| {
            Question::Group(group.mgid) == awaited.question
                && is_mtu(group.mtu)
                && is_rate(group.megabits)
                && [group.sl, group.scope, group.join_state]
                    .iter()
                    .all(|bits| *bits < 16)
        };
        reply.is_none_or(|reply| reply.group.is_none_or(is_group) && is_mtu(reply.port_mtu))
    }
}

/// The fields of an MCMemberRecord that describe a multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Address of the group.
    pub mgid: Ipv6Addr,
    /// Multicast LID.
    pub mlid: u16,
    /// Q_Key of its datagrams.
    pub qkey: u32,
    /// P_Key.
    pub pkey: u16,
    /// IB MTU in bytes; none for an unknown code.
    pub mtu: Option<u32>,
    /// Mb/s; none for an unknown code.
    pub megabits: Option<u32>,
    /// Service level.
    pub sl: u8,
    /// Scope: 2 link-local, 5 site-local.
    pub scope: u8,
    /// Bits: full member, non-member, send-only member, of the requesting port.
    pub join_state: u8,
}

impl<'a> Reading<'a> {
    /// The records of the table; the header gives their distance in bytes.
    fn records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        // In units of 8 bytes. 0 means that no record follows.
        let size = usize::from(be16(self.mad, at::RECORD_SIZE).unwrap_or(0)) * 8;
        let data = self.mad.get(at::DATA..).filter(|_| size > 0);
        data.unwrap_or_default().chunks_exact(size.max(1))
    }

    /// The multicast groups of the table.
    fn groups(&self) -> impl Iterator<Item = Group> + use<'a> {
        self.records().filter_map(group)
    }

    /// Largest MTU of the port in bytes, as the subnet administrator reports it.
    fn port_mtu(&self) -> Option<u32> {
        let code = self.records().next()?.get(PORT_INFO_MTU)? & 0x0f;
        mtu(code)
    }
}

fn group(record: &[u8]) -> Option<Group> {
    let record = record.get(..GROUP_BYTES)?;
    let byte = |at: usize| record.get(at).copied();
    Some(Group {
        mgid: Ipv6Addr::from(*record.first_chunk::<16>()?),
        qkey: be32(record, 32)?,
        mlid: be16(record, 36)?,
        // The two high bits are a selector, which has a meaning only in requests.
        mtu: mtu(byte(38)? & 0x3f),
        pkey: be16(record, 40)?,
        megabits: rate(byte(42)? & 0x3f),
        sl: byte(44)? >> 4,
        scope: byte(48)? >> 4,
        join_state: byte(48)? & 0x0f,
    })
}

/// MTU in bytes of an MTU code.
fn mtu(code: u8) -> Option<u32> {
    matches!(code, 1..=5).then(|| 128 << code)
}

/// Rate in Mb/s of a rate code (IBTA 15.2.5.16; `enum ib_rate` of include/rdma/ib_verbs.h).
fn rate(code: u8) -> Option<u32> {
    Some(match code {
        2 => 2_500,
        3 => 10_000,
        4 => 30_000,
        5 => 5_000,
        6 => 20_000,
        7 => 40_000,
        8 => 60_000,
        9 => 80_000,
        10 => 120_000,
        11 => 14_000,
        12 => 56_000,
        13 => 112_000,
        14 => 168_000,
        15 => 25_000,
        16 => 100_000,
        17 => 200_000,
        18 => 300_000,
        19 => 28_000,
        20 => 50_000,
        21 => 400_000,
        22 => 600_000,
        23 => 800_000,
        24 => 1_200_000,
        _ => return None,
    })
}

fn put(mad: &mut [u8], at: usize, bytes: &[u8]) {
    for (slot, byte) in mad.iter_mut().skip(at).zip(bytes) {
        *slot = *byte;
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The low half of the transaction ID; none if the datagram ends before it.
pub fn transaction(mad: &[u8]) -> Option<u32> {
    be32(mad, at::TID_LOW)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
