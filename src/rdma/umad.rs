// SPDX-License-Identifier: MIT OR Apache-2.0
//! /dev/infiniband/umadN: sends management datagrams to the subnet administrator and receives the
//! answers (include/uapi/rdma/ib_user_mad.h, drivers/infiniband/core/user_mad.c).

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;

use super::chardev::{native, open, write};
use super::mad::{self, MAD, SA_CLASS, SA_CLASS_VERSION};
use super::sa::Patience;
use crate::system::readiness::owns_descriptor;

#[cfg(test)]
mod tests;

/// `struct ib_user_mad_hdr` with its P_Key index.
const HEADER: usize = 64;
/// Buffer size for the usual answer, which has one record.
const USUAL: usize = HEADER + 4 * MAD;
/// Size limit of an answer: no expected answer is larger.
const LARGEST: usize = HEADER + (64 << 10);

/// IB_USER_MAD_ENABLE_PKEY: without it the kernel warns, and the header is 56 bytes.
const ENABLE_PKEY: libc::Ioctl = 0x1b03;
/// IB_USER_MAD_REGISTER_AGENT: reads and writes a `struct ib_user_mad_reg_req`.
const REGISTER_AGENT: libc::Ioctl = 0xc01c_1b01_u32 as libc::Ioctl;

/// Queue pair of general management, which exists on every port.
const GSI_QP: u8 = 1;
/// The well-known Q_Key of queue pair 1 (IBTA 10.2.5).
const GSI_QKEY: u32 = 0x8001_0000;
/// GUID of the subnet administrator in a global route header (IBTA 14.4.2).
const SA_GUID: u64 = 0x0200_0000_0000_0002;

/// `struct ib_user_mad_reg_req`.
#[repr(C)]
struct Registration {
    id: u32,
    method_mask: [u32; 4],
    qpn: u8,
    mgmt_class: u8,
    mgmt_class_version: u8,
    oui: [u8; 3],
    rmpp_version: u8,
}

/// Address of a port's subnet administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Administrator {
    /// LID of the subnet manager.
    pub lid: u16,
    /// Service level towards it (`sm_sl`).
    pub sl: u8,
    /// Index of 0xffff or 0x7fff in the port's P_Key table.
    pub pkey_index: u16,
    /// High half of the port's GIDs.
    pub subnet_prefix: u64,
}

/// A message of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A datagram; the kernel has joined the parts of a longer answer.
    Reply(Vec<u8>),
    /// The kernel reports that a request has no answer: the low half of its transaction ID, which
    /// tells whether the report is late (`send_handler` of drivers/infiniband/core/user_mad.c keeps
    /// the header of the request).
    Silence(Option<u32>),
}

/// An agent for requests to the subnet administrator on one port. Non-blocking and close-on-exec.
/// Closing the file cancels the pending requests.
#[derive(Debug)]
pub struct Umad {
    file: OwnedFd,
    agent: u32,
}

owns_descriptor!(Umad, file);

impl Umad {
    /// Opens a port by the name of its umad file, `umad0`
    /// ([`super::netlink::Rdma::port_chardev`]).
    ///
    /// ENOENT: no device node. EACCES: not root. ENOMEM: 32 agents already exist.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = open("umad", name)?;
        let agent = register(file.as_fd())?;
        Ok(Self { file, agent })
    }

    /// Sends a request. The kernel repeats the request and reports when it gives up, so one [`Received`]
    /// follows, unless the request cannot be sent (`send_handler` of drivers/infiniband/core/user_mad.c
    /// drops every other error than a timeout) or the port is removed.
    pub fn send(
        &self,
        to: &Administrator,
        grh: bool,
        mad: &[u8; MAD],
        patience: Patience,
    ) -> io::Result<()> {
        write(&self.file, &packet(self.agent, to, grh, mad, patience))
    }

    /// The next message; `None` if no message is queued.
    pub fn receive(&self) -> io::Result<Option<Received>> {
        let mut buffer = vec![0; USUAL];
        loop {
            match super::netlink::retry(|| nix::unistd::read(&self.file, &mut buffer)) {
                Ok(length) => return received(buffer.get(..length).unwrap_or_default()).map(Some),
                Err(Errno::EAGAIN) => return Ok(None),
                // The read failed, but filled the header, which contains the length.
                Err(Errno::ENOSPC) if buffer.len() == USUAL => {
                    let length =
                        header_length(&buffer).filter(|length| *length <= LARGEST - HEADER);
                    let length = length.ok_or(io::ErrorKind::FileTooLarge)?;
                    buffer = vec![0; HEADER + length];
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

#[allow(unsafe_code, reason = "the two requests have no other form than ioctl")]
fn register(file: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: the descriptor is open, and this request takes no argument.
    Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), ENABLE_PKEY) })?;
    let mut registration = Registration {
        id: 0,
        // Receive answers only: this agent serves no requests.
        method_mask: [0; 4],
        qpn: GSI_QP,
        mgmt_class: SA_CLASS,
        mgmt_class_version: SA_CLASS_VERSION,
        oui: [0; 3],
        rmpp_version: 1,
    };
    // SAFETY: the descriptor is open. The kernel reads and writes the 28 bytes that the request
    // number announces, which are the whole of `registration`, and keeps no pointer to it.
    let done = unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            REGISTER_AGENT,
            std::ptr::from_mut(&mut registration),
        )
    };
    Errno::result(done)?;
    Ok(registration.id)
}

/// `struct ib_user_mad_hdr`, followed by the datagram.
fn packet(
    agent: u32,
    to: &Administrator,
    grh: bool,
    mad: &[u8; MAD],
    patience: Patience,
) -> Vec<u8> {
    let mut packet = Vec::with_capacity(HEADER + MAD);
    packet.extend(agent.to_ne_bytes());
    packet.extend(0_u32.to_ne_bytes()); // status
    packet.extend(patience.timeout_ms.to_ne_bytes());
    packet.extend(patience.retries.to_ne_bytes());
    packet.extend(0_u32.to_ne_bytes()); // length: set in received packets
    packet.extend(u32::from(GSI_QP).to_be_bytes());
    packet.extend(GSI_QKEY.to_be_bytes());
    packet.extend(to.lid.to_be_bytes());
    // path bits 0; GID index 0 is the port's own GID; a hop limit of 1 stays in the subnet.
    packet.extend([to.sl, 0, u8::from(grh), 0, u8::from(grh), 0]);
    let gid = if grh {
        (u128::from(to.subnet_prefix) << 64) | u128::from(SA_GUID)
    } else {
        0
    };
    packet.extend(Ipv6Addr::from_bits(gid).octets());
    packet.extend(0_u32.to_be_bytes()); // flow label
    packet.extend(to.pkey_index.to_ne_bytes());
    packet.resize(HEADER, 0);
    packet.extend(mad);
    packet
}

/// Length of the whole answer in bytes, from the header before its first part; `None` if the header
/// is too short.
pub fn header_length(packet: &[u8]) -> Option<usize> {
    usize::try_from(native(packet, 16)?).ok()
}

/// Reads a packet of the device: a header and an answer. EINVAL and other errors: the request could
/// not be sent.
pub fn received(packet: &[u8]) -> io::Result<Received> {
    let status = native(packet, 4).ok_or(io::ErrorKind::UnexpectedEof)?;
    match i32::try_from(status) {
        Ok(0) => Ok(Received::Reply(
            packet.get(HEADER..).unwrap_or_default().to_vec(),
        )),
        Ok(libc::ETIMEDOUT) => Ok(Received::Silence(
            packet.get(HEADER..).and_then(mad::transaction),
        )),
        Ok(errno) => Err(io::Error::from_raw_os_error(errno)),
        Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}
