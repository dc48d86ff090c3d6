// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet sockets (packet(7)) for DHCP and ARP on an interface without an address, on Ethernet and
//! on InfiniBand. The 20-byte addresses of InfiniBand do not fit into the C library's
//! `sockaddr_ll`.

#![allow(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::mem::{offset_of, size_of};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn,
    recvmsg, sendto, setsockopt, socket, sockopt,
};

use super::arp::{self, Arp};
use super::frame::{self, CLIENT_PORT, SERVER_PORT};
use super::packet;
use crate::dhcp::hardware::Hardware;
use crate::hardware::ADDRESS;
use crate::system::readiness::owns_descriptor;

/// Size of the receive buffer: one message with its headers.
const ROOM: usize = packet::LARGEST + frame::HEADERS + 40;
/// `TP_STATUS_CSUMNOTREADY` (include/uapi/linux/if_packet.h).
const UNSUMMED: u32 = 1 << 3;
/// `struct tpacket_auxdata`, with 32 bits to spare.
const AUXDATA: usize = 24;

/// `struct sockaddr_ll` with room for the address of any device.
#[repr(C)]
struct LinkAddress {
    family: u16,
    protocol: u16,
    index: i32,
    hardware_type: u16,
    packet_type: u8,
    length: u8,
    address: [u8; ADDRESS],
}

/// What a [`PacketSocket`] receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// UDP over IPv4 to the DHCP client's port.
    Dhcp,
    /// ARP packets that claim or probe this address.
    Arp(Ipv4Addr),
}

impl Protocol {
    fn ethertype(self) -> u16 {
        let ethertype = match self {
            Protocol::Dhcp => libc::ETH_P_IP,
            Protocol::Arp(_) => libc::ETH_P_ARP,
        };
        u16::try_from(ethertype).unwrap_or(0)
    }
}

/// A packet socket on one interface, without the link's header. Non-blocking and close-on-exec.
#[derive(Debug)]
pub struct PacketSocket {
    file: OwnedFd,
    protocol: Protocol,
    hardware: Hardware,
}

owns_descriptor!(PacketSocket, file);

/// A received packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The packet from its IP or ARP header on.
    pub bytes: Vec<u8>,
    /// The kernel did not fill in the UDP checksum.
    pub unsummed: bool,
}

impl PacketSocket {
    /// Opens the socket. EAFNOSUPPORT: the kernel has no packet sockets; EPERM: not root.
    pub fn open(protocol: Protocol, hardware: &Hardware) -> io::Result<PacketSocket> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // Without a protocol no packet arrives before the filter is attached.
        let file = socket(AddressFamily::Packet, SockType::Datagram, flags, None)?;
        match protocol {
            Protocol::Dhcp => {
                attach(&file, &to_this_host(&dhcp_filter()))?;
                set_auxdata(&file)?;
            }
            Protocol::Arp(address) => {
                let filter = arp_filter(hardware.address.len(), address);
                attach(&file, &to_this_host(&filter))?;
            }
        }
        let socket = PacketSocket {
            file,
            protocol,
            hardware: hardware.clone(),
        };
        let (address, length) = socket.link_address(&[])?;
        // SAFETY: `address` is a whole LinkAddress, which begins like sockaddr_ll, and the kernel
        // only reads `length` bytes of it.
        let bound = unsafe {
            libc::bind(
                socket.file.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                length,
            )
        };
        Errno::result(bound)?;
        Ok(socket)
    }

    /// The interface of the socket.
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    fn link_address(&self, to: &[u8]) -> io::Result<(LinkAddress, libc::socklen_t)> {
        let mut address = [0; ADDRESS];
        let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
        address
            .get_mut(..to.len())
            .ok_or_else(wrong)?
            .copy_from_slice(to);
        // The kernel requires at least its own structure, and the whole of a longer address.
        let length =
            size_of::<libc::sockaddr_ll>().max(offset_of!(LinkAddress, address) + to.len());
        let link = LinkAddress {
            family: libc::AF_PACKET as u16,
            protocol: self.protocol.ethertype().to_be(),
            index: i32::try_from(self.hardware.index).map_err(|_| wrong())?,
            hardware_type: 0,
            packet_type: 0,
            length: u8::try_from(to.len()).map_err(|_| wrong())?,
            address,
        };
        Ok((
            link,
            libc::socklen_t::try_from(length).map_err(|_| wrong())?,
        ))
    }

    /// Sends to every host on the link.
    pub fn broadcast(&self, bytes: &[u8]) -> io::Result<()> {
        let (address, length) = self.link_address(&self.hardware.broadcast)?;
        // SAFETY: the kernel reads `bytes.len()` bytes of `bytes` and `length` bytes of `address`,
        // which is at most its size, and keeps neither pointer.
        let sent = unsafe {
            libc::sendto(
                self.file.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                0,
                std::ptr::from_ref(&address).cast(),
                length,
            )
        };
        Errno::result(sent)?;
        Ok(())
    }

    /// The next packet; `None` if no packet is waiting. Packets that are too long are dropped.
    pub fn receive(&self) -> io::Result<Option<Received>> {
        loop {
            let mut bytes = vec![0; ROOM];
            let mut control = nix::cmsg_space!([u8; AUXDATA]);
            let received = {
                let mut parts = [IoSliceMut::new(&mut bytes)];
                let result = recvmsg::<()>(
                    self.file.as_raw_fd(),
                    &mut parts,
                    Some(&mut control),
                    MsgFlags::empty(),
                );
                match result {
                    Ok(message) => (
                        message.bytes,
                        message.flags.contains(MsgFlags::MSG_TRUNC),
                        message
                            .cmsgs()
                            .is_ok_and(|mut all| all.any(|c| is_unsummed(&c))),
                    ),
                    Err(Errno::EAGAIN) => return Ok(None),
                    Err(Errno::EINTR) => continue,
                    Err(errno) => return Err(errno.into()),
                }
            };
            let (length, is_cut, unsummed) = received;
            if is_cut {
                continue;
            }
            bytes.truncate(length);
            return Ok(Some(Received { bytes, unsummed }));
        }
    }

    /// Sends an ARP probe or announcement.
    pub fn send_arp(&self, arp: &Arp) -> io::Result<()> {
        let bytes = arp.encode().ok_or(io::ErrorKind::InvalidInput)?;
        self.broadcast(&bytes)
    }
}

fn is_unsummed(message: &ControlMessageOwned) -> bool {
    match message {
        // The first word of struct tpacket_auxdata is tp_status.
        ControlMessageOwned::Unknown(auxdata)
            if auxdata.cmsg_header.cmsg_level == libc::SOL_PACKET
                && auxdata.cmsg_header.cmsg_type == libc::PACKET_AUXDATA =>
        {
            let status = auxdata.data_bytes.first_chunk().copied();
            status.is_some_and(|bytes| u32::from_ne_bytes(bytes) & UNSUMMED != 0)
        }
        _ => false,
    }
}

const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H;
const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const HEADER_TO_X: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
/// `PACKET_OTHERHOST` (include/uapi/linux/if_packet.h).
const OTHERHOST: u32 = 3;
/// The VLAN number in a tag (include/linux/if_vlan.h, VLAN_VID_MASK).
const VLAN: u32 = 0xfff;

fn step(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// The offset of packet metadata that the kernel provides (socket(7), BPF extensions).
fn ancillary(offset: i32) -> u32 {
    (libc::SKF_AD_OFF + offset).cast_unsigned()
}

/// `rest`, applied to frames without a VLAN that are for this host or broadcast. Without this
/// filter a packet socket also receives what a switch floods to all ports and what a promiscuous
/// interface receives.
fn to_this_host(rest: &[libc::sock_filter]) -> Vec<libc::sock_filter> {
    let head = [
        step(
            LOAD_BYTE | libc::BPF_ABS,
            0,
            0,
            ancillary(libc::SKF_AD_PKTTYPE),
        ),
        step(EQUAL, 4, 0, OTHERHOST),
        step(
            LOAD_BYTE | libc::BPF_ABS,
            0,
            0,
            ancillary(libc::SKF_AD_VLAN_TAG_PRESENT),
        ),
        step(EQUAL, 3, 0, 0),
        step(
            LOAD_HALF | libc::BPF_ABS,
            0,
            0,
            ancillary(libc::SKF_AD_VLAN_TAG),
        ),
        // VLAN 0 means a priority without a VLAN (IEEE 802.1Q).
        step(ANY_BIT, 0, 1, VLAN),
        step(RETURN, 0, 0, 0),
    ];
    head.into_iter().chain(rest.iter().copied()).collect()
}

/// Accepts ARP over IPv4 with hardware addresses of `hardware` bytes: packets of a host that claims
/// the address or probes for it (RFC 5227 1.1).
fn arp_filter(hardware: usize, address: Ipv4Addr) -> [libc::sock_filter; 7] {
    let length = u32::try_from(hardware).unwrap_or(0);
    let header = u32::try_from(arp::HEADER).unwrap_or(0);
    let (sender, target) = (header + length, header + 2 * length + 4);
    [
        step(LOAD_WORD | libc::BPF_ABS, 0, 0, sender),
        step(EQUAL, 4, 0, address.to_bits()),
        step(EQUAL, 0, 2, 0),
        step(LOAD_WORD | libc::BPF_ABS, 0, 0, target),
        step(EQUAL, 1, 0, address.to_bits()),
        step(RETURN, 0, 0, 0),
        step(RETURN, 0, 0, u32::MAX),
    ]
}

/// Accepts, of all IPv4 packets, unfragmented UDP packets to port 68 that hold a BOOTREPLY with the
/// DHCP cookie. The program checks all of this again; the filter keeps the other traffic of the
/// link away.
fn dhcp_filter() -> [libc::sock_filter; 16] {
    [
        step(LOAD_BYTE | libc::BPF_ABS, 0, 0, 0),
        step(AND, 0, 0, 0xf0),
        step(EQUAL, 0, 12, 0x40),
        step(LOAD_BYTE | libc::BPF_ABS, 0, 0, 9),
        step(EQUAL, 0, 10, 17),
        step(LOAD_HALF | libc::BPF_ABS, 0, 0, 6),
        step(ANY_BIT, 8, 0, 0x3fff),
        step(HEADER_TO_X, 0, 0, 0),
        step(LOAD_HALF | libc::BPF_IND, 0, 0, 2),
        step(EQUAL, 0, 5, u32::from(CLIENT_PORT)),
        step(LOAD_BYTE | libc::BPF_IND, 0, 0, 8),
        step(EQUAL, 0, 3, 2),
        step(LOAD_WORD | libc::BPF_IND, 0, 0, 8 + 236),
        step(EQUAL, 0, 1, u32::from_be_bytes(packet::COOKIE)),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}

fn attach(file: &OwnedFd, steps: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(steps.len()).unwrap_or(0),
        filter: steps.as_ptr().cast_mut(),
    };
    set_option(file, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn set_auxdata(file: &OwnedFd) -> io::Result<()> {
    set_option(file, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1_i32)
}

fn set_option<T>(file: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: the kernel reads `length` bytes of `value`, its whole size. Of a filter the kernel
    // copies the `len` steps behind the pointer; the caller's slice holds them during the call.
    let done = unsafe {
        libc::setsockopt(
            file.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            length,
        )
    };
    Errno::result(done)?;
    Ok(())
}

/// Sends to the server from the address of the lease, through the routing table of the machine. The
/// packet socket receives the answer.
///
/// The caller must keep the returned socket until the answer arrives: without a socket on the port
/// the kernel rejects the answer with ICMP. None: another program has the port, which serves the
/// same purpose.
pub fn send_to_server(
    interface: &str,
    from: Ipv4Addr,
    to: Ipv4Addr,
    bytes: &[u8],
) -> io::Result<Option<UdpSocket>> {
    match send_from_port(interface, from, to, bytes) {
        Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
            send_raw(interface, from, to, bytes)?;
            Ok(None)
        }
        sent => sent.map(Some),
    }
}

/// Like `send_from_port`, with own IP and UDP headers (raw(7)): needs no port.
fn send_raw(interface: &str, from: Ipv4Addr, to: Ipv4Addr, bytes: &[u8]) -> io::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let (family, protocol) = (AddressFamily::Inet, SockProtocol::Raw);
    let file = socket(family, SockType::Raw, flags, protocol)?;
    setsockopt(&file, sockopt::BindToDevice, &interface.into())?;
    let packet = frame::to_servers(from, to, bytes).ok_or(io::ErrorKind::InvalidInput)?;
    let to = SockaddrIn::from(SocketAddrV4::new(to, 0));
    sendto(file.as_raw_fd(), &packet, &to, MsgFlags::empty())?;
    Ok(())
}

fn send_from_port(
    interface: &str,
    from: Ipv4Addr,
    to: Ipv4Addr,
    bytes: &[u8],
) -> io::Result<UdpSocket> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let file = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
    setsockopt(&file, sockopt::ReuseAddr, &true)?;
    setsockopt(&file, sockopt::BindToDevice, &interface.into())?;
    let own = SockaddrIn::from(SocketAddrV4::new(from, CLIENT_PORT));
    nix::sys::socket::bind(file.as_raw_fd(), &own)?;
    let socket = UdpSocket::from(file);
    socket.send_to(bytes, SocketAddrV4::new(to, SERVER_PORT))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_kernels_with_room_behind_it() {
        assert_eq!(
            offset_of!(LinkAddress, address),
            offset_of!(libc::sockaddr_ll, sll_addr)
        );
        assert_eq!(
            offset_of!(LinkAddress, length),
            offset_of!(libc::sockaddr_ll, sll_halen)
        );
        assert_eq!(
            offset_of!(LinkAddress, index),
            offset_of!(libc::sockaddr_ll, sll_ifindex)
        );
    }
}
