// SPDX-License-Identifier: MIT OR Apache-2.0
//! NETLINK_RDMA on the wire, without a socket: bytes to messages to values, and back.
//!
//! Framing: netlink-packet-core, which checks the lengths of messages and attributes. Values:
//! include/uapi/rdma/rdma_netlink.h, in host byte order, GUIDs and the subnet prefix included. The
//! attributes of RDMA follow the message header directly: RDMA has no family header.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, ErrorBuffer, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST,
    NLMSG_DONE, NetlinkBuffer, NetlinkHeader, NlaBuffer, NlasIterator,
};
use nix::errno::Errno;

use super::super::types::{Guid, NodeType, PhysState, PortState};
use super::{Connection, Device, Holder, MonitorEvent, MonitorKind, Port};

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
    /// Ports of a device.
    PortGet = 5,
    /// Change a property of the stack.
    SysSet = 7,
    /// Queue pairs.
    ResQpGet = 10,
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
    pub const DEV_INDEX: u16 = 1;
    pub const DEV_NAME: u16 = 2;
    pub const PORT_INDEX: u16 = 3;
    pub const CAP_FLAGS: u16 = 4;
    pub const NODE_GUID: u16 = 6;
    pub const LID: u16 = 9;
    pub const SM_LID: u16 = 10;
    pub const LMC: u16 = 11;
    pub const PORT_STATE: u16 = 12;
    pub const PORT_PHYS_STATE: u16 = 13;
    pub const DEV_NODE_TYPE: u16 = 14;
    pub const RES_QP: u16 = 19;
    pub const RES_QP_ENTRY: u16 = 20;
    pub const RES_STATE: u16 = 27;
    pub const RES_PID: u16 = 28;
    pub const RES_KERN_NAME: u16 = 29;
    pub const RES_CM_ID: u16 = 30;
    pub const RES_CM_ID_ENTRY: u16 = 31;
    pub const RES_SRC_ADDR: u16 = 33;
    pub const RES_DST_ADDR: u16 = 34;
    pub const NDEV_INDEX: u16 = 50;
    pub const NDEV_NAME: u16 = 51;
    pub const LINK_TYPE: u16 = 65;
    pub const NETNS_MODE: u16 = 66;
    pub const CHARDEV_TYPE: u16 = 69;
    pub const CHARDEV_NAME: u16 = 70;
    pub const DEV_TYPE: u16 = 99;
    pub const PARENT_NAME: u16 = 100;
    pub const EVENT_TYPE: u16 = 102;
}

/// A request to the kernel: a message without its length and sequence number.
#[derive(Debug)]
pub struct Request {
    header: NetlinkHeader,
    payload: Vec<u8>,
}

impl Request {
    /// An operation that the kernel answers with at most one message and an acknowledgement.
    pub fn ask(op: Op) -> Self {
        Self::new(op.message_type(), NLM_F_ACK, Vec::new())
    }

    /// An operation that the kernel answers with any number of messages and NLMSG_DONE.
    pub fn dump(op: Op) -> Self {
        Self::new(op.message_type(), NLM_F_DUMP, Vec::new())
    }

    /// A dump of a message type of another netlink protocol, with the header of that protocol.
    pub fn dump_of(kind: u16, header: &impl Emitable) -> Self {
        Self::new(kind, NLM_F_DUMP, emitted(header))
    }

    fn new(kind: u16, flags: u16, payload: Vec<u8>) -> Self {
        let mut header = NetlinkHeader::default();
        header.message_type = kind;
        header.flags = NLM_F_REQUEST | flags;
        Self { header, payload }
    }

    /// Append a number.
    pub fn u32(self, attr: u16, value: u32) -> Self {
        self.value(attr, value.to_ne_bytes().to_vec())
    }

    /// Append a number of one byte.
    pub fn u8(self, attr: u16, value: u8) -> Self {
        self.value(attr, vec![value])
    }

    /// Append text of at most 64 bytes and its NUL: the length of an attribute with the kernel's
    /// policy NLA_NUL_STRING includes the NUL.
    pub fn text(self, attr: u16, value: &str) -> Self {
        self.value(attr, [value.as_bytes(), &[0]].concat())
    }

    fn value(mut self, attr: u16, value: Vec<u8>) -> Self {
        self.payload.extend(emitted(&DefaultNla::new(attr, value)));
        self
    }

    /// The message as bytes; the answers carry the same sequence number.
    pub fn bytes(&self, seq: u32) -> Vec<u8> {
        let mut header = self.header;
        let length = header.buffer_len() + self.payload.len();
        header.length = u32::try_from(length).unwrap_or(u32::MAX);
        header.sequence_number = seq;
        [emitted(&header), self.payload.clone()].concat()
    }
}

fn emitted(part: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; part.buffer_len()];
    part.emit(&mut bytes);
    bytes
}

/// One message of a datagram, with a checked length.
pub type Message<'a> = NetlinkBuffer<&'a [u8]>;

/// One attribute of a message, with a checked length.
pub type Attribute<'a> = NlaBuffer<&'a [u8]>;

/// The messages of a datagram. The walk ends after the first malformed message, because the
/// start of the next message is unknown.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<Message<'_>, DecodeError>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message = Message::new_checked(rest);
        // The last message may come without its padding.
        rest = match &message {
            Ok(found) => rest.get((found.length() as usize).next_multiple_of(4)..),
            Err(_) => None,
        }
        .unwrap_or_default();
        Some(message)
    })
}

/// The errno of an NLMSG_ERROR or NLMSG_DONE message; none when the request succeeded.
pub fn errno(message: &Message<'_>) -> Result<Option<Errno>, DecodeError> {
    let payload = message.payload();
    // A failed dump has its errno in NLMSG_DONE; older kernels send NLMSG_DONE without a payload.
    if message.message_type() == NLMSG_DONE && payload.is_empty() {
        return Ok(None);
    }
    let code = ErrorBuffer::new_checked(payload)?.code();
    match code.map_or(0, i32::from).checked_neg() {
        Some(errno) if errno > 0 => Ok(Some(Errno::from_raw(errno))),
        // 0 is an acknowledgement; NLMSG_DONE may hold a positive size.
        Some(_) => Ok(None),
        None => Err("error without errno".into()),
    }
}

/// A number. The kernel's header and its code have disagreed on widths (UVERBS_DRIVER_ID), so
/// every width that holds the value is accepted.
pub fn number<T: TryFrom<u64>>(attribute: &Attribute<'_>) -> Result<T, DecodeError> {
    let wide = match *attribute.value() {
        [a] => Some(u64::from(a)),
        [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    };
    let value = wide.and_then(|wide| T::try_from(wide).ok());
    value.ok_or_else(|| {
        format!(
            "attribute {} is not a number of the expected size",
            attribute.kind()
        )
        .into()
    })
}

/// Text up to its NUL.
pub fn text(attribute: &Attribute<'_>) -> Result<String, DecodeError> {
    std::ffi::CStr::from_bytes_until_nul(attribute.value())
        .ok()
        .and_then(|text| text.to_str().ok())
        .map(str::to_owned)
        .ok_or_else(|| {
            let kind = attribute.kind();
            format!("attribute {kind} is not NUL-terminated UTF-8").into()
        })
}

fn required<T>(value: Option<T>, attr: u16) -> Result<T, DecodeError> {
    value.ok_or_else(|| format!("no attribute {attr}").into())
}

/// Read a device (`fill_dev_info` of drivers/infiniband/core/nldev.c).
pub fn device(payload: &[u8]) -> Result<Device, DecodeError> {
    let (mut index, mut name, mut node_guid) = (None, None, None);
    let mut device = Device {
        index: 0,
        name: String::new(),
        ports: 0,
        node_guid: Guid(0),
        node_type: NodeType::Unspecified,
        device_type: None,
        parent: None,
    };
    for attribute in NlasIterator::new(payload) {
        let value = attribute?;
        match value.kind() {
            attr::DEV_INDEX => index = Some(number(&value)?),
            attr::DEV_NAME => name = Some(text(&value)?),
            attr::PORT_INDEX => device.ports = number(&value)?,
            attr::NODE_GUID => node_guid = Some(Guid(number(&value)?)),
            attr::DEV_NODE_TYPE => device.node_type = NodeType::from(number::<u8>(&value)?),
            attr::DEV_TYPE => device.device_type = Some(number(&value)?),
            attr::PARENT_NAME => device.parent = Some(text(&value)?),
            _ => {}
        }
    }
    device.index = required(index, attr::DEV_INDEX)?;
    device.name = required(name, attr::DEV_NAME)?;
    device.node_guid = required(node_guid, attr::NODE_GUID)?;
    Ok(device)
}

/// Read a port (`fill_port_info` of drivers/infiniband/core/nldev.c).
pub fn port(payload: &[u8]) -> Result<Port, DecodeError> {
    let (mut port, mut state, mut phys_state) = (None, None, None);
    let (mut lid, mut sm_lid, mut lmc) = (None, None, None);
    let mut cap_flags = None;
    let (mut netdev_index, mut netdev) = (None, None);
    for attribute in NlasIterator::new(payload) {
        let value = attribute?;
        match value.kind() {
            attr::PORT_INDEX => port = Some(number(&value)?),
            attr::PORT_STATE => state = Some(PortState::from(number::<u8>(&value)?)),
            attr::PORT_PHYS_STATE => phys_state = Some(PhysState::from(number::<u8>(&value)?)),
            attr::LID => lid = Some(number(&value)?),
            attr::SM_LID => sm_lid = Some(number(&value)?),
            attr::LMC => lmc = Some(number(&value)?),
            attr::CAP_FLAGS => cap_flags = Some(number(&value)?),
            attr::NDEV_INDEX => netdev_index = Some(number(&value)?),
            attr::NDEV_NAME => netdev = Some(text(&value)?),
            _ => {}
        }
    }
    Ok(Port {
        port: required(port, attr::PORT_INDEX)?,
        state: required(state, attr::PORT_STATE)?,
        phys_state: required(phys_state, attr::PORT_PHYS_STATE)?,
        lid,
        sm_lid,
        lmc,
        cap_flags,
        netdev_index,
        netdev,
    })
}

/// Read the answer to GET_CHARDEV: the name below /dev/infiniband.
pub fn chardev(payload: &[u8]) -> Result<String, DecodeError> {
    let mut name = None;
    for attribute in NlasIterator::new(payload) {
        let value = attribute?;
        if value.kind() == attr::CHARDEV_NAME {
            name = Some(text(&value)?);
        }
    }
    required(name, attr::CHARDEV_NAME)
}

/// Read a notification; `None` when the message is something else.
pub fn monitor_event(message: &Message<'_>) -> Result<Option<MonitorEvent>, DecodeError> {
    if message.message_type() != Op::Monitor.message_type() {
        return Ok(None);
    }
    let mut kind = None;
    let mut event = MonitorEvent::default();
    for attribute in NlasIterator::new(message.payload()) {
        let value = attribute?;
        match value.kind() {
            attr::EVENT_TYPE => kind = Some(MonitorKind::from(number::<u8>(&value)?)),
            attr::DEV_INDEX => event.dev_index = Some(number(&value)?),
            attr::DEV_NAME => event.dev_name = Some(text(&value)?),
            attr::PORT_INDEX => event.port = Some(number(&value)?),
            attr::NDEV_INDEX => event.netdev_index = Some(number(&value)?),
            attr::NDEV_NAME => event.netdev = Some(text(&value)?),
            _ => {}
        }
    }
    event.kind = required(kind, attr::EVENT_TYPE)?;
    Ok(Some(event))
}

/// RDMA_CM_CONNECT (`enum rdma_cm_state`, include/rdma/rdma_cm.h): a client has this state from its
/// request on (`rdma_connect_locked` of drivers/infiniband/core/cma.c), without an answer for more than
/// a minute. Only the state of the queue pair, a query of the firmware, would tell more.
const CONNECTED: u8 = 5;

/// The connections of one datagram of a dump: those in the state CONNECT.
pub fn connections(payload: &[u8]) -> Result<Vec<Connection>, DecodeError> {
    let mut name = None;
    let mut found = Vec::new();
    for attribute in NlasIterator::new(payload) {
        let attribute = attribute?;
        match attribute.kind() {
            attr::DEV_NAME => name = Some(text(&attribute)?),
            attr::RES_CM_ID => {
                for entry in NlasIterator::new(attribute.value()).flatten() {
                    if entry.kind() == attr::RES_CM_ID_ENTRY {
                        found.extend(connection(entry.value())?);
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

fn connection(payload: &[u8]) -> Result<Option<Connection>, DecodeError> {
    let (mut port, mut owner, mut state, mut source, mut destination) =
        (None, None, None, None, None);
    for attribute in NlasIterator::new(payload) {
        let attribute = attribute?;
        match attribute.kind() {
            attr::PORT_INDEX => port = Some(number(&attribute)?),
            attr::RES_STATE => state = Some(number::<u8>(&attribute)?),
            attr::RES_KERN_NAME => owner = Some(text(&attribute)?),
            attr::RES_SRC_ADDR => source = socket_address(attribute.value()),
            attr::RES_DST_ADDR => destination = socket_address(attribute.value()),
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

/// The holders in one datagram of a dump of queue pairs or of connection manager identifiers
/// (`fill_res_qp_entry`, `fill_res_cm_id_entry` of drivers/infiniband/core/nldev.c).
pub fn holders(payload: &[u8]) -> Result<Vec<Holder>, DecodeError> {
    let mut found = Vec::new();
    for attribute in NlasIterator::new(payload) {
        let attribute = attribute?;
        let (what, entry) = match attribute.kind() {
            attr::RES_QP => ("queue pair", attr::RES_QP_ENTRY),
            attr::RES_CM_ID => ("cm_id", attr::RES_CM_ID_ENTRY),
            _ => continue,
        };
        for one in NlasIterator::new(attribute.value()) {
            let one = one?;
            if one.kind() == entry {
                found.push(holder(what, one.value())?);
            }
        }
    }
    Ok(found)
}

fn holder(what: &'static str, payload: &[u8]) -> Result<Holder, DecodeError> {
    let (mut port, mut module, mut pid) = (None, None, None);
    for attribute in NlasIterator::new(payload) {
        let attribute = attribute?;
        match attribute.kind() {
            attr::PORT_INDEX => port = Some(number(&attribute)?),
            attr::RES_KERN_NAME => module = Some(text(&attribute)?),
            attr::RES_PID => pid = Some(number(&attribute)?),
            _ => {}
        }
    }
    Ok(Holder {
        what,
        port,
        module,
        pid,
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
