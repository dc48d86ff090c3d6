// SPDX-License-Identifier: MIT OR Apache-2.0
//! NETLINK_RDMA on the wire, without a socket: bytes to messages to values, and back.
//!
//! Layout: include/uapi/linux/netlink.h and include/uapi/rdma/rdma_netlink.h. A message is
//! `{len u32, type u16, flags u16, seq u32, portid u32}` and then attributes `{len u16, type u16,
//! value}`, all padded to 4 bytes, all in host byte order; RDMA has no family header in between.
//! GUIDs and the subnet prefix are host order too.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::super::types::{Guid, NodeType, PhysState, PortState};
use super::{Chardev, Connection, Device, MonitorEvent, MonitorKind, Port};

const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;

/// `RDMA_NL_NLDEV`, shifted as `RDMA_NL_GET_TYPE` does.
const NLDEV: u16 = 5 << 10;

/// Operations of RDMA_NL_NLDEV (`enum rdma_nldev_command`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Op {
    /// Devices.
    Get = 1,
    /// Add a software link.
    Newlink = 3,
    /// Remove a software link.
    Dellink = 4,
    /// Ports of a device.
    PortGet = 5,
    /// Properties of the stack.
    SysGet = 6,
    /// Identifiers of the connection manager.
    ResCmIdGet = 11,
    /// Character device of a client.
    GetChardev = 15,
    /// Kernel to user: something changed.
    Monitor = 28,
}

impl Op {
    /// `nlmsg_type` of this operation.
    pub fn message_type(self) -> u16 {
        NLDEV + self as u16
    }
}

/// Attribute numbers (`enum rdma_nldev_attr`).
pub mod attr {
    #![allow(missing_docs, reason = "the names are the kernel's")]
    pub const DEV_INDEX: u16 = 1;
    pub const DEV_NAME: u16 = 2;
    pub const PORT_INDEX: u16 = 3;
    pub const CAP_FLAGS: u16 = 4;
    pub const FW_VERSION: u16 = 5;
    pub const NODE_GUID: u16 = 6;
    pub const SYS_IMAGE_GUID: u16 = 7;
    pub const SUBNET_PREFIX: u16 = 8;
    pub const LID: u16 = 9;
    pub const SM_LID: u16 = 10;
    pub const LMC: u16 = 11;
    pub const PORT_STATE: u16 = 12;
    pub const PORT_PHYS_STATE: u16 = 13;
    pub const DEV_NODE_TYPE: u16 = 14;
    pub const RES_STATE: u16 = 27;
    pub const RES_KERN_NAME: u16 = 29;
    pub const RES_CM_ID: u16 = 30;
    pub const RES_CM_ID_ENTRY: u16 = 31;
    pub const RES_SRC_ADDR: u16 = 33;
    pub const RES_DST_ADDR: u16 = 34;
    pub const NDEV_INDEX: u16 = 50;
    pub const NDEV_NAME: u16 = 51;
    pub const LINK_TYPE: u16 = 65;
    pub const DEV_PROTOCOL: u16 = 67;
    pub const CHARDEV_TYPE: u16 = 69;
    pub const CHARDEV_NAME: u16 = 70;
    pub const CHARDEV_ABI: u16 = 71;
    pub const CHARDEV: u16 = 72;
    pub const EVENT_TYPE: u16 = 102;
    pub const MONITOR_MODE: u16 = 103;
}

/// Bytes that are not what include/uapi/linux/netlink.h says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than a message header.
    ShortMessage,
    /// The message's length is below its header's or beyond what was received.
    MessageLength(u32),
    /// Fewer bytes than an attribute header.
    ShortAttribute,
    /// The attribute's length is below its header's or beyond its message.
    AttributeLength(u16),
    /// A number of an unexpected width or beyond its field's range, of this attribute.
    Number(u16),
    /// Text without its NUL, or not UTF-8, of this attribute.
    Text(u16),
    /// An error message without a negative errno.
    Errno,
    /// A reply without this attribute, which it always has.
    Missing(u16),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed netlink message: ")?;
        match self {
            Self::ShortMessage => f.write_str("shorter than its header"),
            Self::MessageLength(len) => write!(f, "message length {len}"),
            Self::ShortAttribute => f.write_str("attribute shorter than its header"),
            Self::AttributeLength(len) => write!(f, "attribute length {len}"),
            Self::Number(attr) => write!(f, "attribute {attr} is not such a number"),
            Self::Text(attr) => write!(f, "attribute {attr} is not NUL-terminated UTF-8"),
            Self::Errno => f.write_str("error without errno"),
            Self::Missing(attr) => write!(f, "no attribute {attr}"),
        }
    }
}

impl std::error::Error for Malformed {}

/// A request under construction.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
    kind: u16,
    flags: u16,
}

impl Request {
    /// An operation answered by its values, if it has some, and an acknowledgement.
    pub fn ask(op: Op) -> Self {
        Self::new(op.message_type(), libc::NLM_F_REQUEST | libc::NLM_F_ACK)
    }

    /// An operation answered by any number of messages and NLMSG_DONE.
    pub fn dump(op: Op) -> Self {
        Self::new(op.message_type(), libc::NLM_F_REQUEST | libc::NLM_F_DUMP)
    }

    /// A dump of a message type of another protocol, with that protocol's header.
    pub fn dump_of(kind: u16, header: &[u8]) -> Self {
        let mut request = Self::new(kind, libc::NLM_F_REQUEST | libc::NLM_F_DUMP);
        request.bytes.extend_from_slice(header);
        request
    }

    fn new(kind: u16, flags: libc::c_int) -> Self {
        Self {
            bytes: vec![0; HEADER],
            kind,
            // The flags of netlink.h are 16 bits wide.
            flags: u16::try_from(flags).unwrap_or(0),
        }
    }

    /// Append a number.
    pub fn u32(self, attr: u16, value: u32) -> Self {
        self.value(attr, &[&value.to_ne_bytes()])
    }

    /// Append text and its NUL, which the kernel's policy (NLA_NUL_STRING) wants inside the length.
    pub fn text(self, attr: u16, value: &str) -> Self {
        self.value(attr, &[value.as_bytes(), &[0]])
    }

    fn value(mut self, attr: u16, parts: &[&[u8]]) -> Self {
        let len = ATTRIBUTE_HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
        // Callers bound their text by the kernel's limits of 16 and 64 bytes.
        let len16 = u16::try_from(len).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&len16.to_ne_bytes());
        self.bytes.extend_from_slice(&attr.to_ne_bytes());
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// The message, with the sequence number that its answers will carry.
    pub fn bytes(&self, seq: u32) -> Vec<u8> {
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let mut message = Vec::with_capacity(self.bytes.len());
        message.extend_from_slice(&len.to_ne_bytes());
        message.extend_from_slice(&self.kind.to_ne_bytes());
        message.extend_from_slice(&self.flags.to_ne_bytes());
        message.extend_from_slice(&seq.to_ne_bytes());
        // portid 0: the kernel.
        message.extend_from_slice(&[0; 4]);
        message.extend(self.bytes.iter().skip(HEADER));
        message
    }
}

/// One message of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_flags`.
    pub flags: u16,
    /// `nlmsg_seq`: 0 in a notification.
    pub seq: u32,
    payload: &'a [u8],
}

/// What a message means to whoever asked.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// Values. The operation is not told apart: the answer to a single PORT_GET carries GET's type
    /// (5121), one of a dump its own (5125).
    Values(Attributes<'a>),
    /// The request is carried out.
    Finished,
    /// The request failed, with this positive errno.
    Failed(i32),
    /// Nothing (NLMSG_NOOP).
    Nothing,
}

impl<'a> Message<'a> {
    /// Read the control messages of netlink itself; everything else has values.
    pub fn reply(&self) -> Result<Reply<'a>, Malformed> {
        match libc::c_int::from(self.kind) {
            libc::NLMSG_NOOP => Ok(Reply::Nothing),
            libc::NLMSG_ERROR => errno(self.payload),
            // A dump that failed half-way says so here; older kernels leave the payload out.
            libc::NLMSG_DONE if self.payload.is_empty() => Ok(Reply::Finished),
            libc::NLMSG_DONE => match errno(self.payload)? {
                Reply::Failed(errno) => Ok(Reply::Failed(errno)),
                _ => Ok(Reply::Finished),
            },
            libc::NLMSG_OVERRUN => Ok(Reply::Failed(libc::ENOBUFS)),
            _ => Ok(Reply::Values(self.attributes())),
        }
    }

    /// The values.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes { rest: self.payload }
    }
}

/// A negative errno, or 0 for success. NLMSG_DONE may also hold a positive size.
fn errno<'a>(payload: &[u8]) -> Result<Reply<'a>, Malformed> {
    let code = payload
        .first_chunk()
        .map(|bytes| i32::from_ne_bytes(*bytes))
        .ok_or(Malformed::Errno)?;
    match code.checked_neg() {
        Some(errno) if errno > 0 => Ok(Reply::Failed(errno)),
        Some(_) => Ok(Reply::Finished),
        None => Err(Malformed::Errno),
    }
}

/// Messages of a datagram. Ends after the first malformed one: there is no way to find the next.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

/// Walk a datagram.
pub fn messages(datagram: &[u8]) -> Messages<'_> {
    Messages { rest: datagram }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let datagram = std::mem::take(&mut self.rest);
        if datagram.is_empty() {
            return None;
        }
        let Some(header) = datagram.first_chunk::<HEADER>() else {
            return Some(Err(Malformed::ShortMessage));
        };
        let [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, ..] = *header;
        let len = u32::from_ne_bytes([l0, l1, l2, l3]);
        let Some((payload, rest)) = split(datagram, len, HEADER) else {
            return Some(Err(Malformed::MessageLength(len)));
        };
        self.rest = rest;
        Some(Ok(Message {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: u16::from_ne_bytes([f0, f1]),
            seq: u32::from_ne_bytes([s0, s1, s2, s3]),
            payload,
        }))
    }
}

/// The bytes from `header` to `len`, and what follows after the padding.
fn split(bytes: &[u8], len: u32, header: usize) -> Option<(&[u8], &[u8])> {
    let len = usize::try_from(len).ok()?;
    let payload = bytes.get(header..len)?;
    // The last one may come without its padding.
    let rest = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    Some((payload, rest))
}

/// Attributes of a message. Ends after the first malformed one.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// What stands in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Attributes { rest: bytes }
    }

    /// The header of a protocol that has one before its attributes, and these.
    pub fn behind<const N: usize>(self) -> Result<([u8; N], Self), Malformed> {
        let (header, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(Malformed::ShortMessage)?;
        Ok((*header, Attributes { rest }))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        let Some(&[l0, l1, k0, k1]) = bytes.first_chunk::<ATTRIBUTE_HEADER>() else {
            return Some(Err(Malformed::ShortAttribute));
        };
        let len = u16::from_ne_bytes([l0, l1]);
        let Some((value, rest)) = split(bytes, len.into(), ATTRIBUTE_HEADER) else {
            return Some(Err(Malformed::AttributeLength(len)));
        };
        self.rest = rest;
        Some(Ok(Attribute {
            // The two top bits are flags (nested, byte order).
            kind: u16::from_ne_bytes([k0, k1]) & 0x3fff,
            value,
        }))
    }
}

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// One of [`attr`], or one this program does not know, to be skipped.
    pub kind: u16,
    /// Its bytes, without the padding.
    pub value: &'a [u8],
}

impl Attribute<'_> {
    /// A number. The kernel's header and its code have disagreed on widths (UVERBS_DRIVER_ID), so
    /// each width that holds the value is taken.
    pub fn number<T: TryFrom<u64>>(&self) -> Result<T, Malformed> {
        let wide = match *self.value {
            [a] => u64::from(a),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err(Malformed::Number(self.kind)),
        };
        T::try_from(wide).map_err(|_| Malformed::Number(self.kind))
    }

    /// The attributes inside of it.
    pub fn nested(&self) -> Attributes<'_> {
        Attributes { rest: self.value }
    }

    /// Text up to its NUL.
    pub fn text(&self) -> Result<String, Malformed> {
        std::ffi::CStr::from_bytes_until_nul(self.value)
            .ok()
            .and_then(|text| text.to_str().ok())
            .map(str::to_owned)
            .ok_or(Malformed::Text(self.kind))
    }
}

/// Read a device (`fill_dev_info` of drivers/infiniband/core/nldev.c).
pub fn device(attributes: Attributes<'_>) -> Result<Device, Malformed> {
    let (mut index, mut name, mut node_guid) = (None, None, None);
    let mut device = Device {
        index: 0,
        name: String::new(),
        ports: 0,
        cap_flags: 0,
        fw_version: None,
        node_guid: Guid(0),
        sys_image_guid: Guid(0),
        node_type: NodeType::Unspecified,
        protocol: None,
    };
    for attribute in attributes {
        let value = attribute?;
        match value.kind {
            attr::DEV_INDEX => index = Some(value.number()?),
            attr::DEV_NAME => name = Some(value.text()?),
            attr::PORT_INDEX => device.ports = value.number()?,
            attr::CAP_FLAGS => device.cap_flags = value.number()?,
            attr::FW_VERSION => {
                device.fw_version = Some(value.text()?).filter(|text| !text.is_empty());
            }
            attr::NODE_GUID => node_guid = Some(Guid(value.number()?)),
            attr::SYS_IMAGE_GUID => device.sys_image_guid = Guid(value.number()?),
            attr::DEV_NODE_TYPE => device.node_type = NodeType::from(value.number::<u8>()?),
            attr::DEV_PROTOCOL => device.protocol = Some(value.text()?),
            _ => {}
        }
    }
    device.index = index.ok_or(Malformed::Missing(attr::DEV_INDEX))?;
    device.name = name.ok_or(Malformed::Missing(attr::DEV_NAME))?;
    device.node_guid = node_guid.ok_or(Malformed::Missing(attr::NODE_GUID))?;
    Ok(device)
}

/// Read a port (`fill_port_info` of drivers/infiniband/core/nldev.c).
pub fn port(attributes: Attributes<'_>) -> Result<Port, Malformed> {
    let (mut index, mut name, mut number) = (None, None, None);
    let (mut state, mut phys_state) = (None, None);
    let (mut lid, mut sm_lid, mut lmc) = (None, None, None);
    let (mut cap_flags, mut subnet_prefix) = (None, None);
    let (mut netdev_index, mut netdev) = (None, None);
    for attribute in attributes {
        let value = attribute?;
        match value.kind {
            attr::DEV_INDEX => index = Some(value.number()?),
            attr::DEV_NAME => name = Some(value.text()?),
            attr::PORT_INDEX => number = Some(value.number()?),
            attr::PORT_STATE => state = Some(PortState::from(value.number::<u8>()?)),
            attr::PORT_PHYS_STATE => phys_state = Some(PhysState::from(value.number::<u8>()?)),
            attr::LID => lid = Some(value.number()?),
            attr::SM_LID => sm_lid = Some(value.number()?),
            attr::LMC => lmc = Some(value.number()?),
            attr::CAP_FLAGS => cap_flags = Some(value.number()?),
            attr::SUBNET_PREFIX => subnet_prefix = Some(value.number()?),
            attr::NDEV_INDEX => netdev_index = Some(value.number()?),
            attr::NDEV_NAME => netdev = Some(value.text()?),
            _ => {}
        }
    }
    Ok(Port {
        dev_index: index.ok_or(Malformed::Missing(attr::DEV_INDEX))?,
        dev_name: name.ok_or(Malformed::Missing(attr::DEV_NAME))?,
        port: number.ok_or(Malformed::Missing(attr::PORT_INDEX))?,
        state: state.ok_or(Malformed::Missing(attr::PORT_STATE))?,
        phys_state: phys_state.ok_or(Malformed::Missing(attr::PORT_PHYS_STATE))?,
        lid,
        sm_lid,
        lmc,
        cap_flags,
        subnet_prefix,
        netdev_index,
        netdev,
    })
}

/// Read the answer to GET_CHARDEV.
pub fn chardev(attributes: Attributes<'_>) -> Result<Chardev, Malformed> {
    let (mut name, mut dev_t, mut abi) = (None, None, None);
    for attribute in attributes {
        let value = attribute?;
        match value.kind {
            attr::CHARDEV_NAME => name = Some(value.text()?),
            attr::CHARDEV => dev_t = Some(value.number()?),
            attr::CHARDEV_ABI => abi = Some(value.number()?),
            _ => {}
        }
    }
    Ok(Chardev {
        name: name.ok_or(Malformed::Missing(attr::CHARDEV_NAME))?,
        dev_t: dev_t.ok_or(Malformed::Missing(attr::CHARDEV))?,
        abi: abi.ok_or(Malformed::Missing(attr::CHARDEV_ABI))?,
    })
}

/// Read the answer to SYS_GET: can this kernel notify? Kernels before the monitor leave it out.
pub fn monitor_mode(attributes: Attributes<'_>) -> Result<bool, Malformed> {
    let mut supported = false;
    for attribute in attributes {
        let value = attribute?;
        if value.kind == attr::MONITOR_MODE {
            supported = value.number::<u8>()? != 0;
        }
    }
    Ok(supported)
}

/// Read a notification; `None` when the message is something else.
pub fn monitor_event(message: &Message<'_>) -> Result<Option<MonitorEvent>, Malformed> {
    if message.kind != Op::Monitor.message_type() {
        return Ok(None);
    }
    let mut kind = None;
    let mut event = MonitorEvent {
        kind: MonitorKind::Lost,
        dev_index: None,
        dev_name: None,
        port: None,
        netdev_index: None,
        netdev: None,
    };
    for attribute in message.attributes() {
        let value = attribute?;
        match value.kind {
            attr::EVENT_TYPE => kind = Some(MonitorKind::from(value.number::<u8>()?)),
            attr::DEV_INDEX => event.dev_index = Some(value.number()?),
            attr::DEV_NAME => event.dev_name = Some(value.text()?),
            attr::PORT_INDEX => event.port = Some(value.number()?),
            attr::NDEV_INDEX => event.netdev_index = Some(value.number()?),
            attr::NDEV_NAME => event.netdev = Some(value.text()?),
            _ => {}
        }
    }
    event.kind = kind.ok_or(Malformed::Missing(attr::EVENT_TYPE))?;
    Ok(Some(event))
}

/// RDMA_CM_CONNECT (`enum rdma_cm_state`, include/rdma/rdma_cm.h).
const CONNECTED: u8 = 5;

/// The connections of one datagram of a dump: those that are established.
pub fn connections(attributes: Attributes<'_>) -> Result<Vec<Connection>, Malformed> {
    let mut name = None;
    let mut found = Vec::new();
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            attr::DEV_NAME => name = Some(attribute.text()?),
            attr::RES_CM_ID => {
                for entry in attribute.nested().filter_map(Result::ok) {
                    if entry.kind == attr::RES_CM_ID_ENTRY {
                        found.extend(connection(entry.nested())?);
                    }
                }
            }
            _ => {}
        }
    }
    for connection in &mut found {
        connection.ifname = name.clone().unwrap_or_default();
    }
    Ok(found)
}

fn connection(attributes: Attributes<'_>) -> Result<Option<Connection>, Malformed> {
    let (mut port, mut owner, mut state, mut source, mut destination) =
        (None, None, None, None, None);
    for attribute in attributes {
        let attribute = attribute?;
        match attribute.kind {
            attr::PORT_INDEX => port = Some(attribute.number()?),
            attr::RES_STATE => state = Some(attribute.number::<u8>()?),
            attr::RES_KERN_NAME => owner = Some(attribute.text()?),
            attr::RES_SRC_ADDR => source = socket_address(attribute.value),
            attr::RES_DST_ADDR => destination = socket_address(attribute.value),
            _ => {}
        }
    }
    Ok(match (state, source, destination) {
        (Some(CONNECTED), Some(source), Some(destination)) => Some(Connection {
            ifname: String::new(),
            port,
            owner,
            source,
            destination,
        }),
        _ => None,
    })
}

/// A `struct sockaddr_storage` of AF_INET or AF_INET6 (bits/socket.h: the family is in the
/// machine's byte order, port and address in the network's).
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let (&[f0, f1, p0, p1], rest) = bytes.split_first_chunk::<4>()?;
    let port = u16::from_be_bytes([p0, p1]);
    match i32::from(u16::from_ne_bytes([f0, f1])) {
        libc::AF_INET => {
            let address = Ipv4Addr::from(*rest.first_chunk::<4>()?);
            Some(SocketAddr::from((address, port)))
        }
        libc::AF_INET6 => {
            let address = Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?);
            Some(SocketAddr::from((address, port)))
        }
        _ => None,
    }
}
