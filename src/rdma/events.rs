// SPDX-License-Identifier: MIT OR Apache-2.0
//! Event sources: [`Uevents`] (devices that come and go) and [`AsyncEvents`] (port states).
//!
//! Both are non-blocking file descriptors for the event loop. Every event is only a hint to read
//! again: the kernel may repeat events (rxe of Linux 6.12 reports PORT_ACTIVE twice) and may drop
//! them when memory is short, so slow polling remains necessary.

use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::socket::{SockFlag, SockProtocol, setsockopt, sockopt};

use super::{chardev, netlink};
use crate::system::readiness::owns_descriptor;

pub use uevent::Uevent;

pub mod uevent;

/// UEVENT_BUFFER_SIZE (2048) of environment, and the header.
const UEVENT: usize = 8 << 10;

/// Group of the kernel's own messages; group 2 is udev's.
const KERNEL_GROUP: u32 = 1;

/// Queue for the thousands of uevents of a coldplug. The kernel takes the memory only while
/// messages are queued.
const UEVENT_QUEUE: usize = 4 << 20;

/// The kernel's uevents, on a non-blocking socket.
#[derive(Debug)]
pub struct Uevents {
    socket: OwnedFd,
}

owns_descriptor!(Uevents, socket);

impl Uevents {
    /// Open a socket in the kernel's group of NETLINK_KOBJECT_UEVENT.
    pub fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = netlink::open(flags, SockProtocol::NetlinkKObjectUEvent, KERNEL_GROUP)?;
        // Without CAP_NET_ADMIN the queue keeps its default size, and drain() reports a burst as
        // lost.
        if let Err(errno) = setsockopt(&socket, sockopt::RcvBufForce, &UEVENT_QUEUE) {
            log::debug!("uevent queue of {UEVENT_QUEUE} bytes: {errno}");
        }
        Ok(Self { socket })
    }

    /// All queued uevents, until the socket would block. Messages from another process and messages
    /// that are not uevents are left out.
    ///
    /// ENOBUFS: uevents were lost, so the uevents of this call are incomplete. The queue is empty;
    /// read all state again.
    pub fn drain(&self) -> io::Result<Vec<Uevent>> {
        let mut buffer = vec![0; UEVENT];
        let mut events = Ok(Vec::new());
        loop {
            match netlink::receive(self.socket.as_fd(), &mut buffer) {
                Ok(Some(message)) => {
                    if let Ok(events) = &mut events {
                        events.extend(uevent::parse(message));
                    }
                }
                Ok(None) => {}
                Err(Errno::EAGAIN) => return events,
                Err(Errno::ENOBUFS | Errno::EMSGSIZE) => events = Err(Errno::ENOBUFS.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// What an [`AsyncEvent`] is about (`enum ib_event_type` of include/rdma/ib_verbs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncKind {
    /// The device failed or is being removed: drop the descriptor and look for the device again.
    DeviceFatal,
    /// The port became ACTIVE.
    PortActive,
    /// The port left ACTIVE.
    PortErr,
    /// The port has another LID.
    LidChange,
    /// The port's P_Key table changed.
    PkeyChange,
    /// The port has another subnet manager.
    SmChange,
    /// The subnet manager requests that subscriptions are registered again.
    ClientReregister,
    /// The port's GID table changed.
    GidChange,
    /// Another event, by number: an event of a queue pair, or of a newer kernel.
    Other(u32),
    /// Not an event, but the kernel's EIO: the device is gone and the descriptor is dead. Not every
    /// kernel reports EIO to a non-blocking reader, so do not rely on it: use
    /// [`AsyncKind::DeviceFatal`].
    Gone,
}

impl AsyncKind {
    /// Whether this is the last event of its device: drop the [`AsyncEvents`] then.
    pub fn is_final(self) -> bool {
        matches!(self, Self::DeviceFatal | Self::Gone)
    }
}

impl From<u32> for AsyncKind {
    fn from(number: u32) -> Self {
        match number {
            8 => Self::DeviceFatal,
            9 => Self::PortActive,
            10 => Self::PortErr,
            11 => Self::LidChange,
            12 => Self::PkeyChange,
            13 => Self::SmChange,
            17 => Self::ClientReregister,
            18 => Self::GidChange,
            _ => Self::Other(number),
        }
    }
}

impl fmt::Display for AsyncKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeviceFatal => "DEVICE_FATAL",
            Self::PortActive => "PORT_ACTIVE",
            Self::PortErr => "PORT_ERR",
            Self::LidChange => "LID_CHANGE",
            Self::PkeyChange => "PKEY_CHANGE",
            Self::SmChange => "SM_CHANGE",
            Self::ClientReregister => "CLIENT_REREGISTER",
            Self::GidChange => "GID_CHANGE",
            Self::Other(number) => return write!(f, "event {number}"),
            Self::Gone => "gone",
        })
    }
}

/// An event of a device or of one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What happened.
    pub kind: AsyncKind,
    /// Number of the port, from 1; `None` for the device itself.
    pub port: Option<u32>,
}

/// Size of `struct ib_uverbs_async_event_desc`.
const EVENT: usize = 16;

/// Size of the core's part of `struct ib_uverbs_get_context_resp`, and room for the driver's part:
/// mlx4 refuses less than 16 bytes, siw less than 8; the other drivers accept any size.
const RESPONSE: usize = 8 + 64;

/// Size of GET_CONTEXT: `struct ib_uverbs_cmd_hdr`, the address of the response, and the driver's
/// part.
const REQUEST: usize = 8 + 8 + 8;

/// The asynchronous events of one RDMA device, read from its uverbs file: the only interface on
/// which the kernel reports that a port became ACTIVE. Non-blocking and close-on-exec.
///
/// Open this, *then* read the port's state, then wait: in any other order, an event between the two
/// is lost.
///
/// **Drop it when the device is being removed, and before the program ends its work.** Many drivers
/// (rxe, siw, rdmavt, qedr) have no `disassociate_ucontext`: when such a device is removed, by
/// RDMA_NLDEV_CMD_DELLINK, with its network device or with its card, the kernel waits until every
/// uverbs file of the device is closed (`ib_uverbs_remove_one`); before, the file leaves sysfs, with a
/// uevent. A process that sends DELLINK while it holds such a file waits for itself. A file that is
/// left open over switch_root blocks the program that removes the device later. Drop closes both files.
#[derive(Debug)]
pub struct AsyncEvents {
    // Fields are dropped in this order: the event file first, then its context.
    events: OwnedFd,
    _context: OwnedFd,
}

owns_descriptor!(AsyncEvents, events);

impl AsyncEvents {
    /// Open a device by the name of its uverbs file, `uverbs0` ([`netlink::Rdma::chardev`]).
    ///
    /// Would-block: the driver is not ready (mlx5 while it resets); try again. ENOENT: no device
    /// node. EOPNOTSUPP and others: the driver requires its own request format (irdma on hardware
    /// of generation 3, later versions of bnxt_re); poll the port instead.
    pub fn open(name: &str) -> io::Result<Self> {
        let context = chardev::open("uverbs", name)?;
        let events = get_context(context.as_fd())?;
        fcntl(&events, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        fcntl(&events, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self {
            events,
            _context: context,
        })
    }

    /// All queued events, until the descriptor would block. After an event that [is
    /// final](AsyncKind::is_final) no more events follow.
    pub fn drain(&self) -> io::Result<Vec<AsyncEvent>> {
        drain(Descriptor(self.events.as_fd()))
    }
}

impl AsFd for AsyncEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

/// Sends GET_CONTEXT by `write` (`ib_uverbs_write`, `ib_uverbs_get_context`). mlx5 requires the
/// driver's part ({16 bfregs, 4 of them low-latency}); mlx4, hfi1, rxe and siw ignore it.
#[allow(
    unsafe_code,
    reason = "the kernel writes through a pointer inside the request"
)]
fn get_context(context: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut response = [0_u8; RESPONSE];
    let address = response.as_mut_ptr().expose_provenance();
    let request = get_context_request(address as u64);
    // SAFETY: `request` is readable for its whole length. The kernel also writes to the address in
    // it, at most the RESPONSE bytes that out_words announces; `response` has that length and lives
    // until after the call. The provenance of `response` is exposed, so the compiler expects the
    // write.
    let written =
        unsafe { libc::write(context.as_raw_fd(), request.as_ptr().cast(), request.len()) };
    Errno::result(written)?;
    // SAFETY: `response` is an initialised array. The kernel may have written to it without the
    // compiler's knowledge.
    let response = unsafe { std::ptr::read_volatile(&raw const response) };
    let fd = async_fd(&response).ok_or(Errno::EBADF)?;
    // SAFETY: GET_CONTEXT succeeded, so `fd` is a descriptor that the kernel has just created for
    // this process and that no other code owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn get_context_request(response: u64) -> [u8; REQUEST] {
    // 4-byte words, the header included in the first number.
    const IN_WORDS: u16 = (REQUEST / 4) as u16;
    const OUT_WORDS: u16 = (RESPONSE / 4) as u16;
    let mut request = [0; REQUEST];
    let parts: [&[u8]; 6] = [
        &0_u32.to_ne_bytes(),
        &IN_WORDS.to_ne_bytes(),
        &OUT_WORDS.to_ne_bytes(),
        &response.to_ne_bytes(),
        &16_u32.to_ne_bytes(),
        &4_u32.to_ne_bytes(),
    ];
    for (slot, byte) in request.iter_mut().zip(parts.into_iter().flatten()) {
        *slot = *byte;
    }
    request
}

/// `async_fd` of the response. 0 means that the driver wrote no descriptor: a process with a
/// console already uses 0, and an OwnedFd of 0 would close standard input.
fn async_fd(response: &[u8]) -> Option<RawFd> {
    let fd = response
        .first_chunk()
        .map(|bytes| RawFd::from_ne_bytes(*bytes))?;
    (fd > 0).then_some(fd)
}

/// Implements `Read` for a borrowed descriptor.
#[derive(Debug)]
struct Descriptor<'a>(BorrowedFd<'a>);

impl Read for Descriptor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(nix::unistd::read(self.0, buffer)?)
    }
}

/// Reads `struct ib_uverbs_async_event_desc` until the reader would block. A partial event is an
/// error.
pub fn drain(mut events: impl Read) -> io::Result<Vec<AsyncEvent>> {
    let mut found = Vec::new();
    loop {
        let mut bytes = [0; EVENT];
        match events.read(&mut bytes) {
            Ok(EVENT) => found.push(async_event(&bytes)),
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
            Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                found.push(AsyncEvent {
                    kind: AsyncKind::Gone,
                    port: None,
                });
                return Ok(found);
            }
            Err(error) => return Err(error),
        }
    }
}

/// `{u64 element, u32 event_type, u32 reserved}`; `element` of a port's event is the port number.
fn async_event(bytes: &[u8; EVENT]) -> AsyncEvent {
    let [e0, e1, e2, e3, e4, e5, e6, e7, t0, t1, t2, t3, ..] = *bytes;
    let element = u64::from_ne_bytes([e0, e1, e2, e3, e4, e5, e6, e7]);
    let kind = AsyncKind::from(u32::from_ne_bytes([t0, t1, t2, t3]));
    let port = match kind {
        AsyncKind::DeviceFatal | AsyncKind::Other(_) | AsyncKind::Gone => None,
        _ => u32::try_from(element).ok(),
    };
    AsyncEvent { kind, port }
}

#[cfg(test)]
mod tests;
