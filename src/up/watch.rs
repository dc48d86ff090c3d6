// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can wake the walk: uverbs asynchronous events per device, NETLINK_RDMA notifications
//! (6.12 on) and uevents for devices that come, go or change their names. Uevents also tell what a
//! look must read again.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::io::unix::AsyncFd;

use super::part::{Part, Wake, any};
use crate::facts::{Device, Facts, Readers, Touched};
use crate::rdma::events::Uevents;
use crate::rdma::netlink::Monitor;
use crate::system::readiness::watched;
use crate::system::worker::Ear;

/// The look that needs no event: a lost event must not cost the boot. As often as a line about the wait,
/// with which the look then coincides: one wake-up for both.
const SAFETY: Duration = super::waiting::EVERY;
/// The same where a port has no events.
const POLL: Duration = Duration::from_secs(1);

/// What is listened to.
#[derive(Debug)]
pub struct Watch {
    uevents: Option<AsyncFd<Uevents>>,
    monitor: Option<AsyncFd<Monitor>>,
    /// The readers of devices, by process: they tell of port events and of late answers.
    readers: BTreeMap<u32, AsyncFd<Ear>>,
    /// The events of a device are not heard (yet): its ports are polled.
    blind: bool,
    /// What events touched since the last look.
    touched: Cell<Touched>,
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
            readers: BTreeMap::new(),
            touched: Cell::default(),
        }
    }

    /// What events touched since the last call; without uevents everything.
    pub fn touched(&self) -> Touched {
        let touched = self.touched.replace(Touched::Nothing);
        match self.uevents {
            Some(_) => touched,
            None => Touched::default(),
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
    /// Listens to new readers.
    fn follow(&mut self, facts: &Facts, readers: Option<&Readers>) {
        let Some(readers) = readers else {
            self.blind = true;
            return;
        };
        let here = readers.processes();
        self.readers
            .retain(|process, _| here.values().any(|one| one == process));
        self.blind = self.uevents.is_none() || readers.is_any_deaf(|name| has_link(facts, name));
        for (name, process) in here {
            if self.readers.contains_key(&process) {
                continue;
            }
            match readers.ear(&name).and_then(watched) {
                Ok(ear) => drop(self.readers.insert(process, ear)),
                Err(error) => {
                    log::debug!("{name}: its reader cannot be listened to: {error}");
                    self.blind = true;
                }
            }
        }
    }

    /// Waits until an event file has something to tell, and takes all of that.
    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let changed = async move {
            let mut waiting: Vec<LocalBoxFuture<'_, ()>> = Vec::new();
            let touched = &self.touched;
            if let Some(uevents) = &self.uevents {
                waiting.push(device_changes(uevents, touched).boxed_local());
            }
            if let Some(monitor) = &self.monitor {
                waiting.push(notifications(monitor, touched).boxed_local());
            }
            for ear in self.readers.values() {
                // The readers know themselves which device has changed.
                waiting.push(news(ear).boxed_local());
            }
            any(waiting).await;
            Wake::Look
        };
        changed.boxed_local()
    }
}

/// Whether the events of the device matter.
fn has_link(facts: &Facts, name: &str) -> bool {
    let mut devices = facts.devices.iter();
    let device = devices.find(|device| device.ifname == name);
    device.is_none_or(Device::has_link)
}

/// Returns at the first uevent about RDMA or network devices. Notes what each uevent touches.
async fn device_changes(uevents: &AsyncFd<Uevents>, touched: &Cell<Touched>) {
    loop {
        let Ok(mut ready) = uevents.readable().await else {
            return std::future::pending().await;
        };
        let events = uevents.get_ref().drain();
        ready.clear_ready();
        match events {
            Ok(events) => {
                let by_all = events.iter().map(Touched::by_uevent);
                touched.set(by_all.fold(touched.get(), Touched::max));
                let matters = |s: &str| s.starts_with("infiniband") || s == "net";
                if events.iter().any(|event| matters(&event.subsystem)) {
                    return;
                }
            }
            // Some were lost: look.
            Err(_) => return touched.set(Touched::default()),
        }
    }
}

async fn notifications(monitor: &AsyncFd<Monitor>, touched: &Cell<Touched>) {
    let Ok(mut ready) = monitor.readable().await else {
        return std::future::pending().await;
    };
    let events = monitor.get_ref().drain();
    ready.clear_ready();
    for event in events {
        log::debug!("NETLINK_RDMA: {event:?}");
    }
    touched.set(touched.get().max(Touched::Devices));
}

/// Returns when a reader has something to tell that no look has taken.
async fn news(ear: &AsyncFd<Ear>) {
    loop {
        let Ok(mut ready) = ear.readable().await else {
            return std::future::pending().await;
        };
        ready.clear_ready();
        // Looks take the answers that they wait for.
        if ear.get_ref().hears() {
            return;
        }
    }
}
