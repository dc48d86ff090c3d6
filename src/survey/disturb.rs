// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--disturb`: takes the interfaces of one unused port down and up, with `--rebind` also unbinds and
//! binds its driver, and records what the kernel reports meanwhile.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, timeout_at};

use super::claim::Claim;
use super::trace::{self, PortEvent};
use super::{in_use, tree};
use crate::error::{Error, Kind, Result, errno_text, printable};
use crate::facts::{Facts, PortRef};
use crate::rdma::events::{AsyncEvents, Uevents};
use crate::rdma::netlink::{Monitor, Rdma};
use crate::rdma::types::PortState;
use crate::system::clock::boottime_ns;
use crate::system::net::Net;
use crate::system::readiness::watched;
use crate::system::root::Root;

/// A disturbance ends after this time without an event.
const QUIET: Duration = Duration::from_secs(3);
/// A disturbance ends at the latest after this time.
const LIMIT: Duration = Duration::from_secs(30);
/// How long a driver may take to bind and its port to become ACTIVE again: mlx5 gives its firmware
/// 120 s.
const BIND_LIMIT: Duration = Duration::from_secs(180);
/// Interval at which the uverbs file of a device that comes back is tried.
const RETRY: Duration = Duration::from_millis(20);

/// What the user requests.
#[derive(Debug, Clone)]
pub struct Disturbance {
    /// `mlx5_0/1`, as rdma(8) names ports.
    pub port: String,
    /// Also unbind and bind the driver.
    pub rebind: bool,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Record {
    /// All events and actions, one a line: CLOCK_BOOTTIME in nanoseconds, source, event.
    pub events: String,
    /// The script for softib's knob `events`, if the port reported events.
    pub script: Option<String>,
    /// Claims about the disturbance.
    pub claims: Vec<Claim>,
}

/// The port that the user names; an error if the port is in use.
pub fn unused<'f>(
    request: &Disturbance,
    root: &Root,
    rdma: Option<&Rdma>,
    facts: &'f Facts,
) -> Result<PortRef<'f>> {
    let known: Vec<String> = facts.ports().map(|port| port.name()).collect();
    let port = facts
        .ports()
        .find(|port| port.name() == request.port)
        .ok_or_else(|| {
            Error::new("--disturb", "no such port")
                .found(request.port.clone())
                .expected(if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(" or ")
                })
                .kind(Kind::Usage)
        })?;
    let refuse = |why: String| Err(Error::new(port.name(), "is not disturbed").found(why));
    if let Some(unread) = facts.unread.first() {
        return refuse(format!(
            "{}: {}, so its use is unknown",
            unread.path, unread.why
        ));
    }
    let Some((rdma, index)) = rdma.zip(port.device.ifindex) else {
        return refuse("NETLINK_RDMA does not know the device".to_owned());
    };
    let holders = match rdma.holders(index) {
        Ok(holders) => holders,
        Err(e) => return refuse(format!("queue pairs and cm_ids cannot be listed: {e}")),
    };
    // The driver serves all ports of its function.
    let is_touched = |other: &PortRef<'_>| {
        let same_bus = other.device.bus_address == port.device.bus_address;
        other.name() == port.name() || (request.rebind && same_bus)
    };
    let mut uses = Vec::new();
    for touched in facts.ports().filter(is_touched) {
        let uppers = uppers(root, touched, facts)?;
        uses.extend(in_use::uses(touched, facts, &uppers, &holders));
    }
    if uses.is_empty() {
        Ok(port)
    } else {
        refuse(format!("the port is in use: {}", uses.join(", ")))
    }
}

/// The interfaces over those of a port, from the links `upper_NAME` in sysfs.
fn uppers(root: &Root, port: PortRef<'_>, facts: &Facts) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for netdev in in_use::of_port(port, facts) {
        let path = format!("/sys/class/net/{}", netdev.ifname);
        let names = root.list(&path);
        let names = names.map_err(|e| Error::io(&path, "cannot be read", &e))?;
        let names = names.iter().filter_map(|name| name.strip_prefix("upper_"));
        found.extend(names.map(str::to_owned));
    }
    Ok(found)
}

/// The event sources, and what they reported.
struct Recorder {
    uevents: AsyncFd<Uevents>,
    monitor: AsyncFd<Monitor>,
    net: Net,
    port: Option<AsyncFd<AsyncEvents>>,
    number: u32,
    lines: String,
    of_port: Vec<PortEvent>,
}

impl Recorder {
    fn open(number: u32) -> Result<Recorder> {
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
    fn open_port(&mut self, rdma: &Rdma, index: u32) -> std::result::Result<(), String> {
        let file = rdma.chardev(index, "uverbs").map_err(|e| e.to_string())?;
        let events = AsyncEvents::open(&file.name).and_then(watched);
        self.port = Some(events.map_err(|e| format!("{}: {}", file.name, errno_text(&e)))?);
        Ok(())
    }

    fn note(&mut self, source: &str, text: &str) {
        let line = format!("{} {source} {text}", boottime_ns());
        _ = writeln!(self.lines, "{}", printable(&line));
    }

    /// Records until no event came for [`QUIET`], at most until `end`.
    async fn until_quiet(&mut self, end: Instant) {
        while let Ok(()) = timeout_at(end.min(Instant::now() + QUIET), self.next()).await {}
    }

    /// Waits for one source and records its events.
    async fn next(&mut self) {
        let port = async {
            match &self.port {
                Some(port) => port.readable().await.map(|mut ready| ready.clear_ready()),
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
    }

    /// Records the events of the device, and closes the file after the last one.
    fn take_port_events(&mut self) {
        let Some(file) = &self.port else { return };
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

/// Disturbs the port of [`unused`] and restores the interfaces.
pub async fn disturb(
    request: &Disturbance,
    root: &Root,
    rdma: Option<&Rdma>,
    facts: &Facts,
) -> Result<Record> {
    let port = unused(request, root, rdma, facts)?;
    let mut recorder = Recorder::open(port.port.port)?;
    let mut record = Record::default();
    let Some((rdma, index)) = rdma.zip(port.device.ifindex) else {
        return Ok(record);
    };
    let opened = recorder.open_port(rdma, index);
    let what = "the uverbs file is opened";
    record.claims.push(Claim::new(port.name(), what, opened));
    let netdevs = in_use::of_port(port, facts);
    let up: Vec<(&str, u32)> = netdevs
        .iter()
        .filter(|netdev| netdev.up)
        .filter_map(|netdev| Some((netdev.ifname.as_str(), netdev.ifindex?)))
        .collect();
    for (name, index) in up.iter().rev() {
        recorder.note("action", &format!("{name} is set down"));
        let result = recorder.net.set_down(*index).await;
        record.claims.push(Claim::new(*name, "is set down", result));
        recorder.until_quiet(Instant::now() + LIMIT).await;
    }
    for (name, index) in &up {
        recorder.note("action", &format!("{name} is set up"));
        let result = recorder.net.set_up(name, *index).await;
        record.claims.push(Claim::new(*name, "is set up", result));
        recorder.until_quiet(Instant::now() + LIMIT).await;
    }
    if up.is_empty() {
        let why = "the port has no interface that is up";
        record
            .claims
            .push(Claim::skip(port.name(), "interface down and up", why));
    }
    if request.rebind {
        let claims = rebind(&mut recorder, root, rdma, port, &up).await?;
        record.claims.extend(claims);
    }
    let kernel = facts.kernel.as_deref().unwrap_or("unknown");
    let title = format!("ibboot hardware-report, {}, kernel {kernel}", port.name());
    record.script = trace::script(&printable(&title), &recorder.of_port);
    let kinds: Vec<String> = recorder
        .of_port
        .iter()
        .map(|(_, kind)| kind.to_string())
        .collect();
    let what = "events of the port";
    record.claims.push(match kinds.is_empty() {
        true => Claim::skip(port.name(), what, "none was reported"),
        false => Claim::new(
            port.name(),
            format!("{what}: {}", kinds.join(" ")),
            Ok::<_, &str>(()),
        ),
    });
    record.events = recorder.lines;
    Ok(record)
}

/// Unbinds the driver from the function of the port and binds it again.
async fn rebind(
    recorder: &mut Recorder,
    root: &Root,
    rdma: &Rdma,
    port: PortRef<'_>,
    up: &[(&str, u32)],
) -> Result<Vec<Claim>> {
    let name = port.name();
    let device = format!("/sys/class/infiniband/{}/device", port.device.ifname);
    let driver = std::fs::canonicalize(format!("{device}/driver"));
    let (Ok(driver), Some(address)) = (driver, port.device.bus_address.clone()) else {
        let why = "the device has no bus driver";
        return Ok(vec![Claim::skip(name, "driver unbound and bound", why)]);
    };
    let before = port.port.state;
    let mut claims = Vec::new();
    for action in ["unbind", "bind"] {
        recorder.note("action", &format!("{action} {address}"));
        let file = driver.join(action);
        let path = file.display().to_string();
        let bytes = address.clone();
        // The kernel may wait for the end of a probe, or until uverbs files are closed.
        let mut write = tokio::task::spawn_blocking(move || Root::new("/").set(&path, &bytes));
        let end = Instant::now() + BIND_LIMIT;
        let is_bind = action == "bind";
        let result = loop {
            let pause = Instant::now() + RETRY;
            tokio::select! {
                result = &mut write => break result,
                _ = timeout_at(pause, recorder.next()) => {}
            }
            if !is_bind && Instant::now() + BIND_LIMIT > end + QUIET {
                // A driver without disassociate_ucontext waits for this file.
                recorder.port = None;
            }
            if is_bind && recorder.port.is_none() {
                watch_again(recorder, rdma, &address);
            }
        };
        let result = match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(format!("{}: {}", file.display(), errno_text(&e))),
            Err(e) => Err(e.to_string()),
        };
        claims.push(Claim::new(
            name.clone(),
            format!("{action} of {address}"),
            result,
        ));
        if is_bind {
            claims.push(come_back(recorder, root, rdma, (port, before, &address), end).await);
        } else {
            recorder.until_quiet(Instant::now() + LIMIT).await;
            recorder.port = None;
        }
    }
    for (name, _) in up {
        // The interface is a new one, with another index.
        let index = tree::facts(root)
            .netdev(name)
            .and_then(|netdev| netdev.ifindex);
        let result = match index {
            Some(index) => recorder
                .net
                .set_up(name, index)
                .await
                .map_err(|e| e.to_string()),
            None => Err("there is no interface of this name".to_owned()),
        };
        claims.push(Claim::new(*name, "is up again", result));
    }
    recorder.until_quiet(Instant::now() + LIMIT).await;
    Ok(claims)
}

/// The index of the RDMA device on a bus address.
fn index_at(address: &str) -> Option<u32> {
    let facts = tree::facts(&Root::new("/"));
    let mut devices = facts.devices.iter();
    let is_it = |address_of: Option<&str>| address_of == Some(address);
    devices
        .find(|device| is_it(device.bus_address.as_deref()))?
        .ifindex
}

fn watch_again(recorder: &mut Recorder, rdma: &Rdma, address: &str) {
    if let Some(index) = index_at(address)
        && recorder.open_port(rdma, index).is_ok()
    {
        recorder.note("action", "the events of the device are read again");
    }
}

/// Records until the port has its previous state again.
async fn come_back(
    recorder: &mut Recorder,
    root: &Root,
    rdma: &Rdma,
    (port, before, address): (PortRef<'_>, Option<PortState>, &str),
    end: Instant,
) -> Claim {
    let begin = Instant::now();
    let shown = |state: Option<PortState>| state.map_or("unknown".to_owned(), |s| s.to_string());
    let mut state = None;
    while Instant::now() < end {
        if recorder.port.is_none() {
            watch_again(recorder, rdma, address);
        }
        let facts = tree::facts(root);
        let found = facts.ports().find(|found| {
            found.device.bus_address.as_deref() == Some(address)
                && found.port.port == port.port.port
        });
        state = found.and_then(|found| found.port.state);
        if state.is_some() && state == before {
            break;
        }
        drop(timeout_at(Instant::now() + RETRY * 5, recorder.next()).await);
    }
    let took = begin.elapsed().as_secs_f64();
    let what = format!("is {} again after {took:.1} s", shown(before));
    recorder.until_quiet(Instant::now() + LIMIT).await;
    let is_same = state.is_some() && state == before;
    Claim::new(port.name(), what, is_same.then_some(()).ok_or(shown(state)))
}
