// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notifications to the service manager (sd_notify(3)): the service is ready, and it is alive.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use std::{env, io};

use crate::error::errno_text;

/// The service manager, if it requested notifications.
#[derive(Debug)]
pub struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// Reads `NOTIFY_SOCKET` and `WATCHDOG_USEC` of the environment.
    pub fn of_environment() -> Manager {
        let socket = env::var_os("NOTIFY_SOCKET").and_then(|name| match connect(&name) {
            Ok(socket) => Some(socket),
            Err(error) => {
                log::warn!("NOTIFY_SOCKET: {}", errno_text(&error));
                None
            }
        });
        let microseconds = env::var("WATCHDOG_USEC").ok();
        let microseconds = microseconds.and_then(|text| text.parse().ok());
        Manager {
            socket,
            watchdog: microseconds.map(Duration::from_micros),
        }
    }

    /// Reports that the service is ready.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Reports what the service does, in one line (systemctl status shows it).
    pub fn status(&self, text: &str) {
        self.send(&format!("STATUS={text}"));
    }

    /// Reports that the program has done all due work: the watchdog restarts.
    pub fn alive(&self) {
        if self.watchdog.is_some() {
            self.send("WATCHDOG=1");
        }
    }

    /// Longest time between two calls of [`Manager::alive`]: half of the watchdog's time, as
    /// sd_watchdog_enabled(3) recommends.
    pub fn patience(&self) -> Option<Duration> {
        self.watchdog.map(|whole| whole / 2)
    }

    fn send(&self, what: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(what.as_bytes(), address)
        {
            log::debug!("NOTIFY_SOCKET: {what}: {}", errno_text(&error));
        }
    }
}

fn connect(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A busy service manager must not delay the leases.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_notified_and_the_watchdog_only_if_requested() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let abstract_name = format!("ibboot-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        for (receiver, name) in [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.as_os_str().to_owned(),
            ),
            (
                UnixDatagram::bind_addr(&address).unwrap(),
                format!("@{abstract_name}").into(),
            ),
        ] {
            receiver.set_nonblocking(true).unwrap();
            let mut manager = Manager {
                socket: Some(connect(&name).unwrap()),
                watchdog: None,
            };
            manager.ready();
            manager.alive();
            manager.watchdog = Some(Duration::from_secs(60));
            manager.alive();
            manager.status("waiting");
            let mut received = Vec::new();
            let mut bytes = [0; 64];
            while let Ok(length) = receiver.recv(&mut bytes) {
                received.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            }
            assert_eq!(received, ["READY=1", "WATCHDOG=1", "STATUS=waiting"]);
            assert_eq!(manager.patience(), Some(Duration::from_secs(30)));
        }
    }
}
