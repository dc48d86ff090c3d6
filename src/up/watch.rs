// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can wake the walk: uverbs asynchronous events per device, NETLINK_RDMA notifications
//! (6.12 on) and uevents for devices that come, go or change their names.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::io::unix::AsyncFd;

use super::part::{Part, Wake, any};
use crate::facts::{Device, Facts};
use crate::rdma::events::{AsyncEvents, Uevents};
use crate::rdma::netlink::{Monitor, Rdma};
use crate::system::readiness::watched;

/// The look that needs no event: a lost event must not cost the boot.
const SAFETY: Duration = Duration::from_secs(10);
/// The same where a port has no events.
const POLL: Duration = Duration::from_secs(1);

/// The event files. Dropped before the program ends: a Soft-RoCE device cannot be removed while
/// somebody holds its uverbs file.
#[derive(Debug)]
pub struct Watch {
    uevents: Option<AsyncFd<Uevents>>,
    monitor: Option<AsyncFd<Monitor>>,
    /// By NETLINK_RDMA device index, which a rename leaves alone.
    ports: BTreeMap<u32, AsyncFd<AsyncEvents>>,
    /// A device has no event file (yet): its ports are polled.
    blind: bool,
}

impl Watch {
    /// Opens what is there without a device. What cannot be opened is done without: the safety
    /// look remains.
    pub fn open() -> Watch {
        let uevents = Uevents::open().and_then(watched);
        let monitor = Monitor::open().and_then(watched);
        if let Err(error) = &uevents {
            log::warn!("uevents: cannot be listened to: {error}; devices are polled");
        }
        Watch {
            blind: uevents.is_err(),
            uevents: uevents.ok(),
            monitor: monitor.ok(),
            ports: BTreeMap::new(),
        }
    }

    /// Until the look that needs no event. `is_silent`: the answer of a device may come without one.
    pub fn interval(&self, is_silent: bool) -> Duration {
        if self.blind || is_silent {
            POLL
        } else {
            SAFETY
        }
    }
}

impl Part for Watch {
    /// Opens the event files of new devices and closes those of devices that go.
    fn follow(&mut self, facts: &Facts, rdma: Option<&Rdma>) -> bool {
        let here = watchable(facts);
        self.ports.retain(|index, _| here.contains_key(index));
        self.blind = self.uevents.is_none() || here.len() < facts.devices.len();
        let mut opened = false;
        for (index, device) in here {
            if self.ports.contains_key(&index) {
                continue;
            }
            let name = &device.ifname;
            match rdma.map(|rdma| open(rdma, index)) {
                Some(Ok(events)) => {
                    self.ports.insert(index, events);
                    opened = true;
                }
                Some(Err(why)) => {
                    log::debug!("{name}: no asynchronous events: {why}; its ports are polled");
                    self.blind = true;
                }
                None => self.blind = true,
            }
        }
        opened
    }

    /// Waits until an event file has something to tell, and takes all of that.
    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let changed = async move {
            let mut waiting: Vec<LocalBoxFuture<'_, Option<u32>>> = Vec::new();
            if let Some(uevents) = &self.uevents {
                waiting.push(device_changes(uevents).boxed_local());
            }
            if let Some(monitor) = &self.monitor {
                waiting.push(notifications(monitor).boxed_local());
            }
            for (index, events) in &self.ports {
                waiting.push(port_events(*index, events).boxed_local());
            }
            for index in any(waiting).await.into_iter().flatten() {
                self.ports.remove(&index);
            }
            Wake::Look
        };
        changed.boxed_local()
    }
}

/// The devices whose events are read, by index. The kernel waits for us to let go of a software device
/// whose interface is gone.
fn watchable(facts: &Facts) -> BTreeMap<u32, &Device> {
    let stays = |device: &&Device| {
        let parent = device.parent.as_deref();
        parent.is_none_or(|parent| facts.netdev(parent).is_some())
    };
    let devices = facts.devices.iter().filter(stays);
    devices
        .filter_map(|device| Some((device.ifindex?, device)))
        .collect()
}

fn open(rdma: &Rdma, index: u32) -> std::result::Result<AsyncFd<AsyncEvents>, String> {
    let file = rdma.chardev(index, "uverbs").map_err(|e| e.to_string())?;
    let events = AsyncEvents::open(&file.name).map_err(|e| e.to_string())?;
    watched(events).map_err(|e| e.to_string())
}

/// Returns at the first uevent about RDMA or network devices.
async fn device_changes(uevents: &AsyncFd<Uevents>) -> Option<u32> {
    loop {
        let Ok(mut ready) = uevents.readable().await else {
            return std::future::pending().await;
        };
        let events = uevents.get_ref().drain();
        ready.clear_ready();
        match events {
            Ok(events) => {
                let matters = |s: &str| s.starts_with("infiniband") || s == "net";
                if events.iter().any(|event| matters(&event.subsystem)) {
                    return None;
                }
            }
            // Some were lost: look.
            Err(_) => return None,
        }
    }
}

async fn notifications(monitor: &AsyncFd<Monitor>) -> Option<u32> {
    let Ok(mut ready) = monitor.readable().await else {
        return std::future::pending().await;
    };
    let events = monitor.get_ref().drain();
    ready.clear_ready();
    for event in events {
        log::debug!("NETLINK_RDMA: {event:?}");
    }
    None
}

/// The index of the device if it is gone.
async fn port_events(index: u32, events: &AsyncFd<AsyncEvents>) -> Option<u32> {
    let Ok(mut ready) = events.readable().await else {
        return Some(index);
    };
    let told = events.get_ref().drain();
    ready.clear_ready();
    match told {
        Ok(told) => {
            for event in &told {
                log::debug!("device {index}: {event:?}");
            }
            told.iter()
                .any(|event| event.kind.is_final())
                .then_some(index)
        }
        Err(_) => Some(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::root::Root;
    use crate::wish::expectation::Depth;

    #[test]
    fn a_software_device_is_let_go_when_its_interface_is_gone() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/soft-roce");
        let mut facts = Facts::gather(&Root::new(sys), None, &[], Depth::Ports);
        let device = facts.devices.first_mut().unwrap();
        assert_eq!(device.parent.as_deref(), Some("eth0"));
        let watched = |facts: &Facts| watchable(facts).into_keys().collect::<Vec<u32>>();
        assert_eq!(watched(&facts), Vec::<u32>::new(), "no index");
        facts.devices.first_mut().unwrap().ifindex = Some(3);
        assert_eq!(watched(&facts), [3]);
        facts.netdevs.retain(|netdev| netdev.ifname != "eth0");
        assert_eq!(watched(&facts), Vec::<u32>::new());
        facts.devices.first_mut().unwrap().parent = None;
        assert_eq!(watched(&facts), [3], "hardware");
    }
}
