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

/// The message of this program, removed with the value.
#[derive(Debug, Default)]
pub struct Message(Option<String>);

impl Message {
    /// Shows a message in place of the last one.
    pub fn show(&mut self, text: &str) {
        self.replace(Some(text)).iter().for_each(|one| send(one));
    }

    /// Removes the message.
    pub fn hide(&mut self) {
        self.replace(None).iter().for_each(|one| send(one));
    }

    /// The requests that remove the message and show the next one.
    fn replace(&mut self, next: Option<&str>) -> Vec<Vec<u8>> {
        let last = std::mem::replace(&mut self.0, next.map(str::to_owned));
        let removed = last.map(|text| request(b'm', &text));
        let shown = next.map(|text| request(b'M', text));
        removed.into_iter().chain(shown).collect()
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.hide();
    }
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

    #[test]
    fn the_last_message_is_removed_before_the_next_one_is_shown() {
        let mut message = Message::default();
        assert!(message.replace(None).is_empty());
        assert_eq!(message.replace(Some("a")), [b"M\x02\x02a\0"]);
        assert_eq!(
            message.replace(Some("b")),
            [b"m\x02\x02a\0", b"M\x02\x02b\0"]
        );
        assert_eq!(message.replace(None), [b"m\x02\x02b\0"]);
    }
}
