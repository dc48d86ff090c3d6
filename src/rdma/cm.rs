// SPDX-License-Identifier: MIT OR Apache-2.0
//! /dev/infiniband/rdma_cm: tests whether a server answers over RDMA. A host that answers only over
//! TCP is not reachable by this test (include/uapi/rdma/rdma_user_cm.h,
//! drivers/infiniband/core/ucma.c).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use super::chardev::{native, open_file, write};
use crate::system::decoder::{Format, LOST, decode};
use crate::system::readiness::owns_descriptor;

/// The device of rdma_ucm.
pub const DEVICE: &str = "/dev/infiniband/rdma_cm";

/// `RDMA_USER_CM_CMD_*`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
enum Command {
    CreateId = 0,
    ResolveIp = 3,
    ResolveRoute = 4,
    Connect = 6,
    Accept = 8,
    Disconnect = 10,
    GetEvent = 12,
    Query = 19,
}

/// RDMA_PS_TCP: the port space of NFS/RDMA, iSER and NVMe/RDMA.
const PORT_SPACE_TCP: u16 = 0x0106;
/// RDMA_PS_UDP: a request for a service in this port space needs no queue pair (SIDR, IBTA 12.11).
const PORT_SPACE_UDP: u16 = 0x0111;
const QPT_RC: u8 = 2;
const QPT_UD: u8 = 4;
/// The kernel drops the events of an identifier with user id 0 (`ucma_event_handler`).
const USER_ID: u64 = 1;
/// A service that no host offers: the refusal proves that the host answers.
const NO_SERVICE: u16 = 1;

/// Size of the largest response, `struct rdma_ucm_event_resp`.
const RESPONSE: usize = 336;
/// Size of `struct rdma_ucm_query_addr_resp`.
const QUERY_RESPONSE: usize = 280;

/// An event of the connection manager (`enum rdma_cm_event_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Number of the event type.
    pub kind: u32,
    /// 0, a negative errno, or the reason that the server gave.
    pub status: i32,
}

/// One request to one server. Non-blocking and close-on-exec; closing the file cancels the request.
#[derive(Debug)]
pub struct Cm {
    file: OwnedFd,
    id: u32,
    is_service: bool,
}

owns_descriptor!(Cm, file);

impl Cm {
    /// Starts to resolve the server's address to an RDMA device and a neighbour. Without `port` the
    /// test is for the host itself, not for a service.
    ///
    /// ENOENT: rdma_ucm is not loaded. ENETUNREACH: no route to the address.
    pub fn begin(address: IpAddr, port: Option<u16>, timeout_ms: u32) -> io::Result<Self> {
        let mut cm = Self {
            file: open_file(DEVICE)?,
            id: 0,
            is_service: port.is_some(),
        };
        let (space, kind) = match port {
            Some(_) => (PORT_SPACE_TCP, QPT_RC),
            None => (PORT_SPACE_UDP, QPT_UD),
        };
        let mut request = Vec::with_capacity(24);
        request.extend(USER_ID.to_ne_bytes());
        let response = cm.query(Command::CreateId, &request, 4, |request| {
            request.extend(space.to_ne_bytes());
            request.extend([kind, 0, 0, 0, 0, 0]);
        })?;
        cm.id = native(&response, 0).ok_or(io::ErrorKind::UnexpectedEof)?;

        let mut request = vec![0; 28]; // any source address
        request.extend(sockaddr(SocketAddr::new(
            address,
            port.unwrap_or(NO_SERVICE),
        )));
        request.extend(cm.id.to_ne_bytes());
        request.extend(timeout_ms.to_ne_bytes());
        cm.send(Command::ResolveIp, &request)?;
        Ok(cm)
    }

    /// Resolves the path to the server; on InfiniBand the kernel queries the subnet administrator.
    pub fn resolve_route(&self, timeout_ms: u32) -> io::Result<()> {
        let mut request = Vec::with_capacity(8);
        request.extend(self.id.to_ne_bytes());
        request.extend(timeout_ms.to_ne_bytes());
        self.send(Command::ResolveRoute, &request)
    }

    /// Sends the connection request or SIDR request to the server.
    pub fn connect(&self) -> io::Result<()> {
        let mut request = Vec::with_capacity(288);
        let qp_num = if self.is_service { no_queue_pair() } else { 0 };
        request.extend(qp_num.to_ne_bytes());
        request.resize(8 + 256, 0); // Q_Key, no private data
        // private_data_len, srq, responder_resources, initiator_depth, flow_control,
        // retry_count, rnr_retry_count, valid
        request.extend([0, 0, 0, 0, 0, 7, 7, 1]);
        request.extend(self.id.to_ne_bytes());
        request.resize(288, 0);
        self.send(Command::Connect, &request)
    }

    /// Completes the connection that the server has accepted (RTU), and ends it (DREQ).
    pub fn hang_up(&self) -> io::Result<()> {
        self.send(Command::Accept, &completion(self.id))?;
        let mut request = self.id.to_ne_bytes().to_vec();
        request.resize(8, 0);
        self.send(Command::Disconnect, &request)
    }

    /// Node GUID and port number of the local port towards the server, after its address is
    /// resolved.
    pub fn way(&self) -> io::Result<(u64, u32)> {
        let response = self.query(Command::Query, &[], QUERY_RESPONSE, |request| {
            request.extend(self.id.to_ne_bytes());
            request.extend(0_u32.to_ne_bytes()); // RDMA_USER_CM_QUERY_ADDR
        })?;
        let short = io::ErrorKind::UnexpectedEof;
        let guid = response.first_chunk().ok_or(short)?;
        let port = response.get(8).ok_or(short)?;
        Ok((u64::from_be_bytes(*guid), u32::from(*port)))
    }

    /// The next event; `None` if no event is queued.
    pub fn event(&self) -> io::Result<Option<Event>> {
        match self.query(Command::GetEvent, &[], RESPONSE, |_| {}) {
            // The kernel does not repeat an event.
            Ok(response) => decode::<Events>(&(), &response).ok_or_else(|| io::Error::other(LOST)),
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Sends a command without a response.
    fn send(&self, command: Command, request: &[u8]) -> io::Result<()> {
        write(&self.file, &framed(command, request, 0))
    }

    /// Sends a command with a response. The kernel writes the response to the address that follows
    /// `before` in the request; `after` follows this address.
    #[allow(
        unsafe_code,
        reason = "the kernel writes through a pointer inside the request"
    )]
    fn query(
        &self,
        command: Command,
        before: &[u8],
        length: usize,
        after: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<Vec<u8>> {
        let mut response = [0_u8; RESPONSE];
        let length = length.min(RESPONSE);
        let address = response.as_mut_ptr().expose_provenance();
        let mut request = before.to_vec();
        request.extend((address as u64).to_ne_bytes());
        after(&mut request);
        // The kernel writes at most `length` bytes, which framed() announces; `response` has that
        // length. The provenance of `response` is exposed, so the compiler expects the write.
        write(&self.file, &framed(command, &request, length))?;
        // SAFETY: `response` is an initialised array. The kernel may have written to it without the
        // compiler's knowledge.
        let response = unsafe { std::ptr::read_volatile(&raw const response) };
        Ok(response.get(..length).unwrap_or_default().to_vec())
    }
}

/// `struct rdma_ucm_accept` of whoever began the connection: without valid parameters.
fn completion(id: u32) -> Vec<u8> {
    let mut request = vec![0; 8 + 272]; // uid, conn_param
    request.extend(id.to_ne_bytes());
    request.resize(288, 0);
    request
}

/// `struct rdma_ucm_cmd_hdr`, followed by the request.
fn framed(command: Command, request: &[u8], out: usize) -> Vec<u8> {
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_ne_bytes();
    let mut whole = Vec::with_capacity(8 + request.len());
    whole.extend((command as u32).to_ne_bytes());
    whole.extend(length(request.len()));
    whole.extend(length(out));
    whole.extend(request);
    whole
}

/// `struct sockaddr_in6`, or `struct sockaddr_in` in the same 28 bytes.
fn sockaddr(to: SocketAddr) -> [u8; 28] {
    let family = match to.ip() {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    let family = u16::try_from(family).unwrap_or(0).to_ne_bytes();
    let port = to.port().to_be_bytes();
    let mut bytes = family.into_iter().chain(port).collect::<Vec<u8>>();
    match to.ip() {
        IpAddr::V4(address) => bytes.extend(address.octets()),
        IpAddr::V6(address) => {
            bytes.extend(0_u32.to_ne_bytes()); // flow label
            bytes.extend(address.octets());
        }
    }
    let mut out = [0; 28];
    out.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    out
}

/// A queue pair number (24 bits) for a request that makes no connection, so over InfiniBand and RoCE
/// the kernel uses no queue pair. Each request has another number: a host rejects a second request
/// with the number of an earlier one as stale (drivers/infiniband/core/cm.c, cm_match_req).
fn no_queue_pair() -> u32 {
    let random = RandomState::new().hash_one(USER_ID);
    // The upper half of the range: the queue pairs of drivers begin at the lower end.
    0x80_0000 | u32::try_from(random >> 41).unwrap_or(0)
}

/// Reads `struct rdma_ucm_event_resp`; `None` if the response is too short.
pub fn event(response: &[u8]) -> Option<Event> {
    Some(Event {
        kind: native(response, 12)?,
        status: native(response, 16)?.cast_signed(),
    })
}

/// Responses with an event, which contain what the other host sent; none: too short.
#[derive(Debug)]
pub struct Events;

impl Format for Events {
    const NAME: &'static str = "connection";
    type Context = ();
    type Value = Option<Event>;

    fn decode((): &(), response: &[u8]) -> Option<Event> {
        event(response)
    }

    /// Every number has a meaning ([`super::reach::hear`]).
    fn is_sound((): &(), _: &Option<Event>) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_as_the_kernel_lays_them_out() {
        let mut frame = framed(Command::ResolveIp, &[0xee; 64], 0);
        assert_eq!(frame.len(), 72);
        frame.truncate(8);
        assert_eq!(frame, [3, 0, 0, 0, 64, 0, 0, 0]);
        assert_eq!(framed(Command::Query, &[0; 16], 280)[4..8], [16, 0, 24, 1]);
        let completion = completion(0x0403_0201);
        let id = 0x0403_0201_u32.to_ne_bytes();
        assert_eq!((completion.len(), &completion[280..284]), (288, &id[..]));
        // `valid` is the last byte of the parameters.
        assert!(completion.iter().take(280).all(|byte| *byte == 0));
    }

    #[test]
    fn two_requests_have_two_queue_pair_numbers_of_24_bits() {
        let numbers = [no_queue_pair(), no_queue_pair()];
        assert!(
            numbers
                .iter()
                .all(|number| (0x80_0000..0x100_0000).contains(number))
        );
        assert_ne!(numbers[0], numbers[1]);
    }

    #[test]
    fn both_families_fit() {
        let v4 = sockaddr("10.0.0.2:20049".parse().unwrap());
        assert_eq!(v4[..9], [2, 0, 0x4e, 0x51, 10, 0, 0, 2, 0]);
        let v6 = sockaddr("[fe80::2]:1".parse().unwrap());
        assert_eq!(v6[..10], [10, 0, 0, 1, 0, 0, 0, 0, 0xfe, 0x80]);
        assert_eq!(v6[23..], [2, 0, 0, 0, 0]);
    }

    #[test]
    fn an_event_is_read_and_a_short_response_is_none() {
        let mut bytes = [0; RESPONSE];
        bytes[12] = 1;
        bytes[16..20].copy_from_slice(&(-110_i32).to_ne_bytes());
        let expected = Event {
            kind: 1,
            status: -110,
        };
        assert_eq!(event(&bytes), Some(expected));
        assert_eq!(event(&bytes[..19]), None);
    }

    proptest! {
        #[test]
        fn no_response_panics(bytes in prop::collection::vec(any::<u8>(), 0..RESPONSE)) {
            let event = event(&bytes);
            prop_assert_eq!(event.is_none(), bytes.len() < 20);
        }
    }
}
