// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client's UDP port on one interface: sends and receives messages.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

use tokio::io::unix::AsyncFd;

use super::answer::{Answer, Answers, Context};
use super::packet::{LARGEST, Message};
use super::{CLIENT_PORT, SERVER_PORT, SERVERS};
use crate::dhcp::traffic;
use crate::error::Error;
use crate::system::decoder::decode;
use crate::system::readiness::watched;

/// Why the port is not available.
#[derive(Debug)]
pub enum Closed {
    /// Another client has the port (EADDRINUSE).
    InUse(Error),
    /// Anything else.
    Failed(Error),
}

impl From<Closed> for Error {
    fn from(closed: Closed) -> Error {
        match closed {
            Closed::InUse(error) | Closed::Failed(error) => error,
        }
    }
}

/// The client's port on an interface.
#[derive(Debug)]
pub struct Socket {
    /// Current name of the interface.
    pub interface: String,
    pub index: u32,
    /// The interface's link-local address: the source address of messages.
    pub local: Ipv6Addr,
    /// Why the last send failed.
    pub broken: Option<String>,
    /// Packets that are not DHCPv6.
    pub malformed: u32,
    /// Packets that the decoder lost.
    pub undecoded: u32,
    /// None: closed.
    socket: Option<AsyncFd<UdpSocket>>,
}

impl Socket {
    /// `local` is a link-local address of the interface that is not tentative. Runs on the current
    /// tokio runtime.
    pub fn open(interface: &str, index: u32, local: Ipv6Addr) -> Result<Socket, Closed> {
        let socket = open(index, local).and_then(watched).map_err(|e| {
            let error = Error::io(
                interface,
                format!("DHCPv6: cannot bind UDP port {CLIENT_PORT} of {local}"),
                &e,
            );
            match e.kind() {
                io::ErrorKind::AddrInUse => {
                    Closed::InUse(error.hint("another DHCPv6 client is running: see ss -lnup"))
                }
                _ => Closed::Failed(error),
            }
        })?;
        Ok(Socket {
            interface: interface.to_owned(),
            index,
            local,
            broken: None,
            malformed: 0,
            undecoded: 0,
            socket: Some(socket),
        })
    }

    /// Releases the port: sends and receives nothing from now on.
    pub fn close(&mut self) {
        self.socket = None;
    }

    /// True until [`Socket::close`].
    pub fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// Sends the message to all servers and relays of the link; logs a failure once.
    pub fn send(&mut self, message: &Message) {
        let Some(socket) = &self.socket else {
            return;
        };
        let to = SocketAddrV6::new(SERVERS, SERVER_PORT, 0, self.index);
        let sent = socket.get_ref().send_to(&message.encode(), to).map(|_| ());
        let who = format!("{}: DHCPv6", self.interface);
        let what = format!("{} sent", message.summary());
        traffic::note(&who, &what, sent, &mut self.broken);
    }

    /// Waits for packets, and returns them with their source addresses.
    pub async fn packets(&self) -> Vec<(Vec<u8>, Ipv6Addr)> {
        match &self.socket {
            Some(socket) => traffic::batch(socket, next).await,
            None => std::future::pending().await,
        }
    }

    /// The message in a packet; none: not a message, or the decoder failed.
    pub fn heard(&mut self, packet: &[u8], context: &Context) -> Option<Box<Answer>> {
        let (interface, from) = (&self.interface, context.from);
        let Some(heard) = decode::<Answers>(context, packet) else {
            self.undecoded = self.undecoded.saturating_add(1);
            return None;
        };
        match heard {
            Ok(answer) => {
                log::debug!("{interface}: DHCPv6: {} from {from}", answer.summary);
                Some(answer)
            }
            Err(why) => {
                self.malformed = self.malformed.saturating_add(1);
                log::debug!("{interface}: DHCPv6: from {from}: {why}");
                None
            }
        }
    }
}

/// Binds to the link-local address, so that the kernel delivers only packets for this interface.
fn open(index: u32, local: Ipv6Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddrV6::new(local, CLIENT_PORT, 0, index))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The next packet with its source address.
fn next(socket: &UdpSocket) -> Option<(Vec<u8>, Ipv6Addr)> {
    // One byte more than a message may have, so that a longer message is detected.
    let mut buffer = [0; LARGEST + 1];
    match socket.recv_from(&mut buffer) {
        Ok((length, SocketAddr::V6(from))) => Some((buffer.get(..length)?.to_vec(), *from.ip())),
        _ => None,
    }
}
