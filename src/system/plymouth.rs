// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages on the boot splash of plymouth, if one runs.

use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, send as send_to, socket,
};

/// The abstract socket of plymouthd (ply-boot-protocol.h in plymouth).
const SOCKET: &str = "/org/freedesktop/plymouthd";
/// The size of an argument is one byte and includes the final 0.
const LONGEST: usize = 254;

/// A request with an argument: the command, 2, the size and the text with a final 0.
fn request(command: u8, text: &str) -> Vec<u8> {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default().as_bytes();
    let size = u8::try_from(text.len() + 1).unwrap_or(u8::MAX);
    [&[command, 2, size], text, &[0]].concat()
}

/// Shows a message.
pub fn show(text: &str) {
    send(&request(b'M', text));
}

/// Removes a message.
pub fn hide(text: &str) {
    send(&request(b'm', text));
}

/// Without a splash nobody listens, and an answer is of no use. A splash that hangs delays nothing.
fn send(request: &[u8]) {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let sent = socket(AddressFamily::Unix, SockType::Stream, flags, None).and_then(|socket| {
        let address = UnixAddr::new_abstract(SOCKET.as_bytes())?;
        connect(socket.as_raw_fd(), &address)?;
        send_to(socket.as_raw_fd(), request, MsgFlags::MSG_NOSIGNAL)
    });
    if let Err(error) = sent {
        log::debug!("plymouth: {}", error.desc());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_its_size_and_ends_with_0() {
        assert_eq!(request(b'M', "ab"), b"M\x02\x03ab\0");
        let long = request(b'm', &"ä".repeat(200));
        assert_eq!((long.len(), long[2]), (258, 255));
        assert_eq!(
            request(b'm', &"ä".repeat(200))[3..257],
            *"ä".repeat(127).as_bytes()
        );
    }
}
