// SPDX-License-Identifier: MIT OR Apache-2.0
//! HCAs that no driver binds although their driver is loaded: the kernel probes a function once. A
//! card whose firmware was not ready then (a BlueField that boots beside its host) stays without a
//! driver, so ibboot asks the kernel to probe the function again.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use super::part::{Part, Wake};
use crate::facts::{Facts, Readers};
use crate::system::readiness::watched;
use crate::system::worker::{Master, Worker};

/// The job of a worker that probes the function with the address that follows.
pub const JOB: &str = "probe";
/// Starts the worker for an address.
pub type Start = fn(&str) -> io::Result<Worker>;

/// Where the kernel is asked (Documentation/ABI/testing/sysfs-bus-pci).
const PROBE: &str = "/sys/bus/pci/drivers_probe";
/// How long a function has been without a driver before each probe.
const AFTER: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(90)];

/// When a function is probed again, from the time since which its driver is loaded and does not
/// bind it; none if it was probed often enough.
fn due(since: Instant, probes: usize) -> Option<Instant> {
    AFTER.get(probes).map(|after| since + *after)
}

/// A function without a driver.
#[derive(Debug)]
struct Left {
    since: Instant,
    probes: usize,
    is_running: bool,
}

/// A probe that has ended.
#[derive(Debug)]
struct Probed {
    address: String,
    /// What the kernel or the worker reported.
    failure: Option<String>,
}

/// The functions without a driver, by address.
#[derive(Debug)]
pub struct Probing {
    start: Start,
    left: BTreeMap<String, Left>,
    running: FuturesUnordered<LocalBoxFuture<'static, Probed>>,
}

impl Probing {
    /// Creates the part without functions; `start` starts the worker that probes an address.
    pub fn new(start: Start) -> Probing {
        Probing {
            start,
            left: BTreeMap::new(),
            running: FuturesUnordered::new(),
        }
    }

    /// Starts the probes that are due.
    fn start(&mut self, now: Instant) {
        for (address, left) in &mut self.left {
            let is_due = due(left.since, left.probes).is_some_and(|due| due <= now);
            if left.is_running || !is_due {
                continue;
            }
            left.probes += 1;
            left.is_running = true;
            if left.probes == 1 {
                log::info!("{address}: no driver binds it; probing it again");
            }
            let worker = (self.start)(address);
            self.running.push(probe(worker, address.clone()));
        }
    }
}

/// The worker: asks the kernel to probe the function, and reports how that ended. The write returns
/// when the driver's probe ends; until then nothing can end the process, which may be minutes.
pub fn serve(address: &str) -> io::Result<()> {
    let written = std::fs::write(PROBE, address);
    Master::of_process().send(&written.err().map(|error| error.to_string()))
}

/// The end of a probe.
fn probe(worker: io::Result<Worker>, address: String) -> LocalBoxFuture<'static, Probed> {
    async move {
        let failure = match end_of(worker).await {
            Ok(failure) => failure,
            Err(error) => Some(error.to_string()),
        };
        Probed { address, failure }
    }
    .boxed_local()
}

async fn end_of(worker: io::Result<Worker>) -> io::Result<Option<String>> {
    let worker = worker?;
    let ear = watched(worker.ear()?)?;
    loop {
        let mut ready = ear.readable().await?;
        match worker.receive()? {
            Some(failure) => return Ok(failure),
            None => ready.clear_ready(),
        }
    }
}

impl Part for Probing {
    fn follow(&mut self, facts: &Facts, _readers: Option<&Readers>) {
        let now = Instant::now();
        let functions = facts.functions.iter();
        let left: Vec<&str> = functions
            .filter(|function| function.is_missing() && function.is_left())
            .map(|function| function.address.as_str())
            .collect();
        self.left
            .retain(|address, known| known.is_running || left.contains(&address.as_str()));
        for address in left {
            self.left.entry(address.to_owned()).or_insert(Left {
                since: now,
                probes: 0,
                is_running: false,
            });
        }
        self.start(now);
    }

    fn due(&self) -> Option<Instant> {
        let waiting = self.left.values().filter(|left| !left.is_running);
        waiting
            .filter_map(|left| due(left.since, left.probes))
            .min()
    }

    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let next = async move {
            let Some(probed) = self.running.next().await else {
                return std::future::pending().await;
            };
            if let Some(failure) = probed.failure {
                log::debug!("{}: {PROBE}: {failure}", probed.address);
            }
            if let Some(left) = self.left.get_mut(&probed.address) {
                left.is_running = false;
            }
            Wake::Look
        };
        next.boxed_local()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use nix::sys::socket::MsgFlags;

    use super::*;
    use crate::facts::Function;
    use crate::facts::functions::Module;
    use crate::system::modules::InitState;
    use crate::system::worker::send_to;

    const ADDRESS: &str = "0000:dc:00.0";

    fn facts(driver: Option<&str>, state: Option<InitState>) -> Facts {
        let core = Module {
            name: "mlx5_core".to_owned(),
            state,
        };
        Facts {
            functions: vec![Function {
                address: ADDRESS.to_owned(),
                driver: driver.map(str::to_owned),
                modules: vec![core],
                expected: true,
                ..Function::default()
            }],
            ..Facts::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_function_that_its_driver_leaves_is_probed_twice() {
        let start = |address: &str| {
            assert_eq!(address, ADDRESS);
            let (worker, far) = Worker::pair()?;
            send_to(far.as_fd(), &Some("No such device"), MsgFlags::empty())?;
            Ok(worker)
        };
        let live = Some(InitState::Live);
        let mut probing = Probing::new(start);
        // While the driver initialises, its probe still runs.
        probing.follow(&facts(None, Some(InitState::Coming)), None);
        probing.follow(&facts(None, None), None);
        assert_eq!(probing.due(), None);
        let start = Instant::now();
        for (after, probes) in [(0, 0), (29, 0), (30, 1), (89, 1), (90, 2), (1000, 2)] {
            let now = start + Duration::from_secs(after);
            tokio::time::advance(now - Instant::now()).await;
            probing.follow(&facts(None, live), None);
            if !probing.running.is_empty() {
                assert_eq!(probing.due(), None);
                assert_eq!(probing.changed().await, Wake::Look);
            }
            assert_eq!(probing.left[ADDRESS].probes, probes, "after {after} s");
        }
        assert_eq!(probing.due(), None);
        probing.follow(&facts(Some("mlx5_core"), live), None);
        assert!(probing.left.is_empty());
    }
}
