// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the sockets of both families are read, and what the log says about sending.

use std::io;
use std::os::fd::AsRawFd;

use tokio::io::unix::AsyncFd;

use crate::error::errno_text;

/// Packets handled in one batch: a flood must not keep the program from its other work.
const BATCH: usize = 64;

/// Waits for packets, and returns at most [`BATCH`] of them. `receive` returns the next one; an error,
/// such as an interface that is down, ends the batch.
pub(super) async fn batch<S: AsRawFd, P>(
    socket: &AsyncFd<S>,
    receive: impl Fn(&S) -> Option<P>,
) -> Vec<P> {
    let Ok(mut ready) = socket.readable().await else {
        return std::future::pending().await;
    };
    let next = || receive(socket.get_ref());
    let packets: Vec<P> = std::iter::from_fn(next).take(BATCH).collect();
    if packets.len() < BATCH {
        ready.clear_ready();
    }
    packets
}

/// Logs what the client `who` sent; logs a failure once. `broken`: why the last send failed.
pub(super) fn note(who: &str, what: &str, sent: io::Result<()>, broken: &mut Option<String>) {
    match sent {
        Ok(()) => {
            log::debug!("{who}: {what}");
            *broken = None;
        }
        Err(error) => {
            let why = format!("cannot send: {}", errno_text(&error));
            if broken.as_ref() != Some(&why) {
                log::warn!("{who}: {why}");
                *broken = Some(why);
            }
        }
    }
}
