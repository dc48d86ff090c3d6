// SPDX-License-Identifier: MIT OR Apache-2.0
//! NETLINK_RDMA: devices, ports, software links, and notifications about devices that come and go.
//!
//! This is the native interface of the stack (include/uapi/rdma/rdma_netlink.h,
//! drivers/infiniband/core/nldev.c). sysfs has what this interface lacks (`facts/devices`). [`wire`]
//! is the encoding, without a socket.

use std::cell::Cell;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use kernel_cmdline::LinkKind;
use netlink_packet_core::{
    DecodeError, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN,
};
use nix::errno::Errno;
use nix::sys::socket::{
    self, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use wire::{Op, Request, attr};

use super::types::{Guid, NodeType, PhysState, PortState};
use crate::error::errno_text;
use crate::rdma::types::{Connection, NetnsMode};
use crate::system::readiness::owns_descriptor;

pub mod wire;

#[cfg(test)]
mod tests;

/// The kernel builds no netlink datagram beyond 32 KiB (`netlink_dump` of af_netlink.c).
const DATAGRAM: usize = 32 << 10;

/// The kernel answers inside `send`: an answer that is not queued after this time was lost.
const ANSWER_SECONDS: i64 = 5;

/// Tries of a dump, if devices change during the dump or its answers do not fit.
const DUMP_ATTEMPTS: u32 = 4;

/// IB_DEVICE_NAME_MAX, with the NUL.
const DEVICE_NAME: usize = 64;

/// IFNAMSIZ, and the limit of a link type (RDMA_NLDEV_ATTR_ENTRY_STRLEN), with the NUL.
const SHORT_NAME: usize = 16;

/// Bit of RDMA_NL_GROUP_NOTIFY (4) in `nl_groups`.
const NOTIFY_GROUP: u32 = 1 << (4 - 1);

/// An RDMA device, as NETLINK_RDMA reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Kernel index of the device: stable across renames, until the device is removed.
    pub index: u32,
    /// Current name: `mlx5_0`, `ibp129s0`, `rxe0`.
    pub name: String,
    /// Number of ports; ports are counted from 1.
    pub ports: u32,
    /// GUID of the node: stable across renames and reboots.
    pub node_guid: Guid,
    /// Channel adapter, RNIC or other.
    pub node_type: NodeType,
    /// `enum rdma_nl_dev_type` of a sub-device: 1 is SMI. Linux 6.11 on.
    pub device_type: Option<u8>,
    /// Name of the device that a sub-device belongs to.
    pub parent: Option<String>,
}

/// A port of an RDMA device, as NETLINK_RDMA reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Number of the port, from 1.
    pub port: u32,
    /// Logical state.
    pub state: PortState,
    /// Physical state.
    pub phys_state: PhysState,
    /// LID; InfiniBand only, 0 until a subnet manager assigns one.
    pub lid: Option<u32>,
    /// LID of the subnet manager; InfiniBand only, 0 until a subnet manager has swept this port.
    pub sm_lid: Option<u32>,
    /// LID mask count; InfiniBand only.
    pub lmc: Option<u8>,
    /// CapabilityMask, and CapabilityMask2 from bit 32 on; InfiniBand only.
    pub cap_flags: Option<u64>,
    /// Index of the network device below the port: RoCE and iWARP, in this network namespace. Never
    /// set for IPoIB, whose network device is above the port.
    pub netdev_index: Option<u32>,
    /// Name of the network device below the port.
    pub netdev: Option<String>,
}

/// Kind of a [`MonitorEvent`] (`enum rdma_nl_notify_event_type`). There is no event for a port
/// state: see [`super::events::AsyncEvents`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MonitorKind {
    /// A device was registered.
    Register,
    /// A device was removed.
    Unregister,
    /// A port got its network device.
    NetdevAttach,
    /// A port lost its network device.
    NetdevDetach,
    /// A device was renamed.
    Rename,
    /// A port's network device was renamed.
    NetdevRename,
    /// An event of a newer kernel.
    Other(u8),
    /// Not an event of the kernel: events were lost or not understood. Read all state again.
    #[default]
    Lost,
}

impl From<u8> for MonitorKind {
    fn from(number: u8) -> Self {
        match number {
            0 => Self::Register,
            1 => Self::Unregister,
            2 => Self::NetdevAttach,
            3 => Self::NetdevDetach,
            4 => Self::Rename,
            5 => Self::NetdevRename,
            _ => Self::Other(number),
        }
    }
}

/// A change of the set of devices. It is only a hint: read the devices again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorEvent {
    /// What happened.
    pub kind: MonitorKind,
    /// [`Device::index`].
    pub dev_index: Option<u32>,
    /// [`Device::name`].
    pub dev_name: Option<String>,
    /// Number of the port, in events about network devices.
    pub port: Option<u32>,
    /// Index of the network device.
    pub netdev_index: Option<u32>,
    /// Name of the network device.
    pub netdev: Option<String>,
}

/// A queue pair or an identifier of the connection manager, with its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// `queue pair` or `cm_id`.
    pub what: &'static str,
    /// Number of the port, from 1; none if it is not bound to a port.
    pub port: Option<u32>,
    /// Kernel module that owns it; none for a user program.
    pub module: Option<String>,
    /// Process that owns it.
    pub pid: Option<u32>,
}

/// Why a request failed.
#[derive(Debug)]
pub enum Error {
    /// The kernel refused the request.
    Kernel(Errno),
    /// The socket failed.
    Socket(io::Error),
    /// No answer within 5 s.
    Timeout,
    /// The answer contradicts the kernel's headers.
    Malformed(DecodeError),
    /// A name that the kernel cannot accept: empty, too long, or with a NUL.
    Name(String),
}

impl Error {
    /// The errno of the kernel's refusal, for callers that distinguish EEXIST from ENODEV.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Kernel(errno) => Some(*errno),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(errno) => write!(f, "{errno}"),
            Self::Socket(error) => write!(f, "netlink socket: {error}"),
            Self::Timeout => write!(f, "no answer from the kernel within {ANSWER_SECONDS} s"),
            Self::Malformed(why) => write!(f, "malformed netlink message: {why}"),
            Self::Name(name) => write!(f, "{name:?} is not a name that the kernel accepts"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Kernel(errno) => Some(errno),
            Self::Socket(error) => Some(error),
            Self::Malformed(why) => Some(why),
            Self::Timeout | Self::Name(_) => None,
        }
    }
}

impl From<DecodeError> for Error {
    fn from(why: DecodeError) -> Self {
        Self::Malformed(why)
    }
}

type Result<T> = std::result::Result<T, Error>;

/// A NETLINK_RDMA socket for requests.
#[derive(Debug)]
pub struct Rdma {
    socket: Socket,
}

impl Rdma {
    /// Open a socket. EPROTONOSUPPORT: ib_core is not loaded, and the kernel could not load it.
    pub fn open() -> io::Result<Self> {
        let socket = Socket::open(SockProtocol::NetlinkRDMA)?;
        Ok(Self { socket })
    }

    /// Open a socket; none until ib_core is loaded.
    pub fn open_if_loaded() -> Option<Self> {
        match Rdma::open() {
            Ok(rdma) => Some(rdma),
            Err(error) => {
                if error.raw_os_error() != Some(libc::EPROTONOSUPPORT) {
                    log::debug!("NETLINK_RDMA: {}", errno_text(&error));
                }
                None
            }
        }
    }

    /// All devices of this network namespace.
    pub fn devices(&self) -> Result<Vec<Device>> {
        self.socket.dump(&Request::dump(Op::Get), wire::device)
    }

    /// One device. EINVAL: no such device.
    pub fn device(&self, dev_index: u32) -> Result<Device> {
        let request = Request::ask(Op::Get).u32(attr::DEV_INDEX, dev_index);
        self.socket.ask(&request, wire::device)
    }

    /// All ports of a device. EINVAL: no such device.
    pub fn ports(&self, dev_index: u32) -> Result<Vec<Port>> {
        let request = Request::dump(Op::PortGet).u32(attr::DEV_INDEX, dev_index);
        self.socket.dump(&request, wire::port)
    }

    /// One port of a device. EINVAL: no such device or port.
    pub fn port(&self, dev_index: u32, port: u32) -> Result<Port> {
        let request = Request::ask(Op::PortGet)
            .u32(attr::DEV_INDEX, dev_index)
            .u32(attr::PORT_INDEX, port);
        self.socket.ask(&request, wire::port)
    }

    /// Add a software link on a network device. Needs CAP_NET_ADMIN.
    ///
    /// EEXIST: `netdev` already has a link of this kind. ENFILE: the name is taken. ENODEV: no such
    /// network device. EINVAL: the module of the kind is not available, or the name has a `%`.
    /// EPERM: not possible on this network device (rxe on a VLAN).
    pub fn new_link(&self, name: &str, kind: LinkKind, netdev: &str) -> Result<()> {
        let request = Request::ask(Op::Newlink)
            .text(attr::DEV_NAME, bounded(name, DEVICE_NAME)?)
            .text(attr::LINK_TYPE, bounded(kind.as_str(), SHORT_NAME)?)
            .text(attr::NDEV_NAME, bounded(netdev, SHORT_NAME)?);
        self.socket.exchange(&request, &mut |_| Ok(()))
    }

    /// Connections of the connection manager on a device. EINVAL: no such device.
    pub fn connections(&self, dev_index: u32) -> Result<Vec<Connection>> {
        let request = Request::dump(Op::ResCmIdGet).u32(attr::DEV_INDEX, dev_index);
        let datagrams = self.socket.dump(&request, wire::connections)?;
        Ok(datagrams.into_iter().flatten().collect())
    }

    /// Queue pairs and connection manager identifiers of a device. Needs CAP_NET_ADMIN. EINVAL: no
    /// such device.
    pub fn holders(&self, dev_index: u32) -> Result<Vec<Holder>> {
        let mut found = Vec::new();
        for op in [Op::ResQpGet, Op::ResCmIdGet] {
            let request = Request::dump(op).u32(attr::DEV_INDEX, dev_index);
            found.extend(
                self.socket
                    .dump(&request, wire::holders)?
                    .into_iter()
                    .flatten(),
            );
        }
        Ok(found)
    }

    /// Name below /dev/infiniband of the character device of a device's client, `uverbs`: `uverbs0`. The
    /// kernel loads the client's module.
    ///
    /// EOPNOTSUPP: no such client, its module is not available, or it does not serve this device.
    /// EINVAL: no such device.
    pub fn chardev(&self, dev_index: u32, kind: &str) -> Result<String> {
        let request = Request::ask(Op::GetChardev)
            .u32(attr::DEV_INDEX, dev_index)
            .text(attr::CHARDEV_TYPE, bounded(kind, SHORT_NAME)?);
        self.socket.ask(&request, wire::chardev)
    }

    /// Name of the character device of a port's client, `umad` or `issm`: `umad0`.
    pub fn port_chardev(&self, dev_index: u32, port: u32, kind: &str) -> Result<String> {
        let request = Request::ask(Op::GetChardev)
            .u32(attr::DEV_INDEX, dev_index)
            .u32(attr::PORT_INDEX, port)
            .text(attr::CHARDEV_TYPE, bounded(kind, SHORT_NAME)?);
        self.socket.ask(&request, wire::chardev)
    }

    /// Set which network namespaces see RDMA devices. Needs CAP_NET_ADMIN. EBUSY: other network
    /// namespaces exist. EINVAL: before Linux 5.2.
    pub fn set_netns_mode(&self, mode: NetnsMode) -> Result<()> {
        let is_shared = u8::from(mode == NetnsMode::Shared);
        let request = Request::ask(Op::SysSet).u8(attr::NETNS_MODE, is_shared);
        self.socket.exchange(&request, &mut |_| Ok(()))
    }
}

/// A socket for requests to the kernel, of any netlink protocol; one request at a time.
#[derive(Debug)]
pub struct Socket {
    socket: OwnedFd,
    seq: Cell<u32>,
}

impl Socket {
    /// Open a socket on which a missing answer is an error.
    pub fn open(protocol: SockProtocol) -> io::Result<Self> {
        let socket = open(SockFlag::SOCK_CLOEXEC, protocol, 0)?;
        let patience = TimeVal::seconds(ANSWER_SECONDS);
        socket::setsockopt(&socket, sockopt::ReceiveTimeout, &patience)?;
        Ok(Self {
            socket,
            seq: Cell::new(0),
        })
    }

    /// Sends a request and returns the single answer.
    fn ask<T>(
        &self,
        request: &Request,
        read: fn(&[u8]) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        let mut answer = None;
        self.exchange(request, &mut |payload| {
            answer = Some(read(payload)?);
            Ok(())
        })?;
        // The kernel acknowledged the request without an answer.
        answer.ok_or(Error::Kernel(Errno::ENODATA))
    }

    /// Sends a dump request and returns all answers of one consistent dump.
    pub fn dump<T>(
        &self,
        request: &Request,
        read: fn(&[u8]) -> std::result::Result<T, DecodeError>,
    ) -> Result<Vec<T>> {
        let mut attempt = 1;
        loop {
            let mut answers = Vec::new();
            let done = self.exchange(request, &mut |payload| {
                answers.push(read(payload)?);
                Ok(())
            });
            match done {
                Err(Error::Kernel(Errno::EINTR | Errno::ENOBUFS)) if attempt < DUMP_ATTEMPTS => {
                    attempt += 1;
                }
                done => return done.map(|()| answers),
            }
        }
    }

    /// Send a request, and pass every answer to `each` until the kernel reports the end.
    fn exchange(&self, request: &Request, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let seq = self.seq.get().wrapping_add(1).max(1);
        self.seq.set(seq);
        self.send(&request.bytes(seq))?;
        let mut buffer = [0; DATAGRAM];
        let mut progress = Progress::default();
        loop {
            let datagram = match receive(self.socket.as_fd(), &mut buffer) {
                Ok(Some(datagram)) => datagram,
                Ok(None) => continue,
                Err(Errno::EAGAIN) => return Err(Error::Timeout),
                Err(Errno::ENOBUFS) => return Err(Error::Kernel(Errno::ENOBUFS)),
                Err(errno) => return Err(Error::Socket(errno.into())),
            };
            if progress.digest(datagram, seq, each)? {
                return Ok(());
            }
        }
    }

    fn send(&self, message: &[u8]) -> Result<()> {
        let kernel = NetlinkAddr::new(0, 0);
        let sent =
            retry(|| socket::sendto(self.socket.as_raw_fd(), message, &kernel, MsgFlags::empty()))
                .map_err(|errno| Error::Socket(errno.into()))?;
        if sent == message.len() {
            Ok(())
        } else {
            Err(Error::Socket(io::ErrorKind::WriteZero.into()))
        }
    }
}

/// State of the answers to one request.
#[derive(Debug, Default)]
pub struct Progress {
    interrupted: bool,
}

impl Progress {
    /// Pass the payload of each answer in a datagram to `each`; returns true after the last answer.
    pub fn digest(
        &mut self,
        datagram: &[u8],
        seq: u32,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        for message in wire::messages(datagram) {
            let message = message?;
            // A late answer to a request that timed out.
            if message.sequence_number() != seq {
                continue;
            }
            self.interrupted |= message.flags() & NLM_F_DUMP_INTR != 0;
            match message.message_type() {
                NLMSG_NOOP => {}
                NLMSG_OVERRUN => return Err(Error::Kernel(Errno::ENOBUFS)),
                NLMSG_DONE | NLMSG_ERROR => match wire::errno(&message)? {
                    Some(errno) => return Err(Error::Kernel(errno)),
                    // The dump is inconsistent: devices came or went during it.
                    None if self.interrupted => return Err(Error::Kernel(Errno::EINTR)),
                    None => return Ok(true),
                },
                // The answer to a single PORT_GET has the type of GET (5121), the answers to a dump
                // have the type of PORT_GET (5125): the type does not identify the operation.
                _ => each(message.payload())?,
            }
        }
        Ok(false)
    }
}

/// A second socket, on which the kernel reports devices that are added, removed and renamed. Never
/// blocks. A kernel without notifications (before Linux 6.12) sends nothing.
#[derive(Debug)]
pub struct Monitor {
    socket: OwnedFd,
}

owns_descriptor!(Monitor, socket);

impl Monitor {
    /// Open a socket in RDMA_NL_GROUP_NOTIFY.
    pub fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = open(flags, SockProtocol::NetlinkRDMA, NOTIFY_GROUP)?;
        Ok(Self { socket })
    }

    /// All queued events, until the socket would block. An error of the socket is returned as
    /// [`MonitorKind::Lost`].
    pub fn drain(&self) -> Vec<MonitorEvent> {
        let mut buffer = [0; DATAGRAM];
        let mut events = Vec::new();
        loop {
            match receive(self.socket.as_fd(), &mut buffer) {
                Ok(Some(datagram)) => read_notifications(datagram, &mut events),
                Ok(None) => {}
                Err(Errno::EAGAIN) => return events,
                Err(errno) => {
                    log::debug!("RDMA netlink notifications: {errno}");
                    events.push(MonitorEvent::default());
                    // The queue was full: the kernel reports the error once; the events that fit
                    // follow.
                    if errno != Errno::ENOBUFS {
                        return events;
                    }
                }
            }
        }
    }
}

/// Appends the events of a datagram; an unreadable event becomes [`MonitorKind::Lost`].
pub fn read_notifications(datagram: &[u8], events: &mut Vec<MonitorEvent>) {
    for message in wire::messages(datagram) {
        match message.and_then(|message| wire::monitor_event(&message)) {
            Ok(event) => events.extend(event),
            Err(why) => {
                log::debug!("RDMA netlink notification: {why}");
                events.push(MonitorEvent::default());
            }
        }
    }
}

/// Checks the length of a name: the kernel's errno would be ERANGE or EINVAL, which also have other
/// causes.
fn bounded(name: &str, limit: usize) -> Result<&str> {
    if name.is_empty() || name.len() >= limit || name.contains('\0') {
        return Err(Error::Name(name.to_owned()));
    }
    Ok(name)
}

/// A netlink socket, bound to `groups`.
pub(super) fn open(flags: SockFlag, protocol: SockProtocol, groups: u32) -> io::Result<OwnedFd> {
    let socket = socket::socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    socket::bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(socket)
}

/// Receives one datagram of the kernel; `None` for a datagram of another process. EMSGSIZE if the
/// datagram did not fit.
pub(super) fn receive<'a>(
    socket: BorrowedFd<'_>,
    buffer: &'a mut [u8],
) -> nix::Result<Option<&'a [u8]>> {
    let (length, flags, sender) = retry(|| {
        let mut parts = [IoSliceMut::new(buffer)];
        socket::recvmsg::<NetlinkAddr>(socket.as_raw_fd(), &mut parts, None, MsgFlags::empty())
            .map(|message| (message.bytes, message.flags, message.address))
    })?;
    if sender.is_none_or(|sender| sender.pid() != 0) {
        return Ok(None);
    }
    if flags.contains(MsgFlags::MSG_TRUNC) {
        return Err(Errno::EMSGSIZE);
    }
    Ok(buffer.get(..length))
}

/// Repeats a system call that a signal interrupted.
pub(super) fn retry<T>(mut call: impl FnMut() -> nix::Result<T>) -> nix::Result<T> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}
