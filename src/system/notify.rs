// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the service manager is told (sd_notify(3)): that the service runs, and that it is not stuck.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use std::{env, io};

use crate::error::errno_text;

/// The service manager, if there is one that wants to hear.
#[derive(Debug)]
pub struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// From `NOTIFY_SOCKET` and `WATCHDOG_USEC` of the environment.
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

    /// Whoever waits for the service need not wait any longer.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// Everything that was due is done: the watchdog starts anew.
    pub fn alive(&self) {
        if self.watchdog.is_some() {
            self.say("WATCHDOG=1");
        }
    }

    /// It must be told at least this often; twice within the watchdog's time, as sd_watchdog_enabled(3)
    /// recommends.
    pub fn patience(&self) -> Option<Duration> {
        self.watchdog.map(|whole| whole / 2)
    }

    fn say(&self, what: &str) {
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
    // A manager that is busy must not hold the leases up.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_what_it_is_told_and_the_watchdog_only_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let abstract_name = format!("ibboot-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        for (ears, name) in [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.as_os_str().to_owned(),
            ),
            (
                UnixDatagram::bind_addr(&address).unwrap(),
                format!("@{abstract_name}").into(),
            ),
        ] {
            ears.set_nonblocking(true).unwrap();
            let mut manager = Manager {
                socket: Some(connect(&name).unwrap()),
                watchdog: None,
            };
            manager.ready();
            manager.alive();
            manager.watchdog = Some(Duration::from_secs(60));
            manager.alive();
            let mut said = Vec::new();
            let mut bytes = [0; 64];
            while let Ok(length) = ears.recv(&mut bytes) {
                said.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            }
            assert_eq!(said, ["READY=1", "WATCHDOG=1"]);
            assert_eq!(manager.patience(), Some(Duration::from_secs(30)));
        }
    }
}
