// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records what the kernel reports about devices, links and one port, with the time of each event.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, timeout_at};

use super::trace::PortEvent;
use crate::error::{Error, Result, errno_text, printable};
use crate::rdma::chardev::{self, Kind};
use crate::rdma::events::{AsyncEvents, Uevents};
use crate::rdma::netlink::{Monitor, Rdma};
use crate::system::clock::boottime_ns;
use crate::system::net::Net;
use crate::system::readiness::watched;
use crate::system::root::Root;

/// A disturbance ends after this time without an event.
pub const QUIET: Duration = Duration::from_secs(3);
/// A disturbance ends at the latest after this time.
const LIMIT: Duration = Duration::from_secs(30);
/// The event sources, and what they reported.
#[derive(Debug)]
pub struct Recorder {
    uevents: AsyncFd<Uevents>,
    monitor: AsyncFd<Monitor>,
    /// Reports changes of links, and carries them out.
    pub net: Net,
    /// The event file of the device and its name, while it is open.
    pub port: Option<(String, AsyncFd<AsyncEvents>)>,
    number: u32,
    /// All events and actions, one a line: CLOCK_BOOTTIME in nanoseconds, source, event.
    pub lines: String,
    /// The events of the port.
    pub of_port: Vec<PortEvent>,
}

impl Recorder {
    /// Opens the sources for port `number`; the event file of the device comes later.
    pub fn open(number: u32) -> Result<Recorder> {
        let failed = |what: &str, e: &std::io::Error| Error::io(what, "cannot be opened", e);
        Ok(Recorder {
            uevents: Uevents::open()
                .and_then(watched)
                .map_err(|e| failed("uevents", &e))?,
            monitor: Monitor::open()
                .and_then(watched)
                .map_err(|e| failed("NETLINK_RDMA", &e))?,
            net: Net::open()?,
            port: None,
            number,
            lines: String::new(),
            of_port: Vec::new(),
        })
    }

    /// Opens the event file of the device with this NETLINK_RDMA index.
    pub fn open_port(&mut self, rdma: &Rdma, index: u32) -> std::result::Result<(), String> {
        let file = rdma.chardev(index, "uverbs").map_err(|e| e.to_string())?;
        let events = AsyncEvents::open(&file).and_then(watched);
        let events = events.map_err(|e| format!("{file}: {}", errno_text(&e)))?;
        self.port = Some((file, events));
        Ok(())
    }

    /// Records one line.
    pub fn note(&mut self, source: &str, text: &str) {
        let line = format!("{} {source} {text}", boottime_ns());
        _ = writeln!(self.lines, "{}", printable(&line));
    }

    /// Records until no event came for [`QUIET`], at most for [`LIMIT`].
    pub async fn until_quiet(&mut self) {
        let end = Instant::now() + LIMIT;
        while let Ok(()) = timeout_at(end.min(Instant::now() + QUIET), self.next()).await {}
    }

    /// Waits for one source and records its events.
    pub async fn next(&mut self) {
        let port = async {
            match &self.port {
                Some((_, port)) => port.readable().await.map(|mut ready| ready.clear_ready()),
                None => std::future::pending().await,
            }
        };
        let mut texts: Vec<(&str, String)> = Vec::new();
        tokio::select! {
            text = self.net.link_message() => texts.push(("rtnetlink", text)),
            Ok(mut ready) = self.uevents.readable() => {
                ready.clear_ready();
                match self.uevents.get_ref().drain() {
                    Ok(events) => texts.extend(events.iter().map(|event| {
                        ("uevent", format!("{} {} {}", event.action, event.subsystem, event.devpath))
                    })),
                    Err(e) => texts.push(("uevent", errno_text(&e))),
                }
            }
            Ok(mut ready) = self.monitor.readable() => {
                ready.clear_ready();
                let events = self.monitor.get_ref().drain();
                texts.extend(events.iter().map(|event| ("nldev", format!("{event:?}"))));
            }
            result = port => match result {
                Ok(()) => return self.take_port_events(),
                Err(e) => texts.push(("uverbs", errno_text(&e))),
            },
        }
        for (source, text) in texts {
            self.note(source, &text);
        }
        let left = self.port.as_ref().map(|(name, _)| name.clone());
        if let Some(name) = left.filter(|name| has_left(&Root::new("/"), name)) {
            self.note(
                "action",
                &format!("{name} is closed: its device is being removed"),
            );
            self.port = None;
        }
    }

    /// Records the events of the device, and closes the file after the last one.
    fn take_port_events(&mut self) {
        let Some((_, file)) = &self.port else { return };
        let drained = file.get_ref().drain();
        let now = boottime_ns();
        match drained {
            Ok(events) => {
                for event in events {
                    let is_own = event.port.is_none_or(|port| port == self.number);
                    let port = event.port.map(|port| format!(" port {port}"));
                    let text = format!("{}{}", event.kind, port.unwrap_or_default());
                    self.note("uverbs", &text);
                    if is_own {
                        self.of_port.push((now, event.kind));
                    }
                    if event.kind.is_final() {
                        self.port = None;
                    }
                }
            }
            Err(e) => {
                self.note("uverbs", &errno_text(&e));
                self.port = None;
            }
        }
    }
}

/// Whether the event file has left its class: most drivers let the kernel remove the device only after the
/// file is closed.
fn has_left(root: &Root, name: &str) -> bool {
    !chardev::is_there(root, name, Kind::Uverbs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_file_leaves_its_class_before_its_device() {
        let dir = tempfile::tempdir().unwrap();
        let entry = dir.path().join("sys/class/infiniband_verbs/uverbs0");
        std::fs::create_dir_all(&entry).unwrap();
        let root = Root::new(dir.path());
        assert!(!has_left(&root, "uverbs0"));
        assert!(has_left(&root, "uverbs1"));
        std::fs::remove_dir(&entry).unwrap();
        assert!(has_left(&root, "uverbs0"));
    }
}
