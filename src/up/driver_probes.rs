// SPDX-License-Identifier: MIT OR Apache-2.0
//! HCAs that no driver binds although their driver is loaded: the kernel probes a function once. A
//! card whose firmware was not ready then (a BlueField that boots beside its host) stays without a
//! driver, so ibboot asks the kernel to probe the function again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::part::{Part, Wake, next};
use crate::error::Result;
use crate::facts::{Facts, Readers};
use crate::loader::Loader;

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
    result: Result<()>,
}

/// The functions without a driver, by address.
#[derive(Debug)]
pub struct Probing<'a> {
    loader: &'a Loader,
    left: BTreeMap<String, Left>,
    running: FuturesUnordered<LocalBoxFuture<'a, Probed>>,
}

impl<'a> Probing<'a> {
    /// Creates the part without functions.
    pub fn new(loader: &'a Loader) -> Probing<'a> {
        Probing {
            loader,
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
            self.running.push(probe(self.loader, address.clone()));
        }
    }
}

/// The end of a probe.
fn probe(loader: &Loader, address: String) -> LocalBoxFuture<'_, Probed> {
    async move {
        let result = loader.probe(&address).await;
        Probed { address, result }
    }
    .boxed_local()
}

impl Part for Probing<'_> {
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
        let changed = async move {
            let probed = next(&mut self.running).await;
            if let Err(error) = probed.result {
                log::debug!("{error}");
            }
            if let Some(left) = self.left.get_mut(&probed.address) {
                left.is_running = false;
            }
            Wake::Look
        };
        changed.boxed_local()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::facts::Function;
    use crate::facts::functions::Module;
    use crate::system::modules::InitState;

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
        // A probe that fails.
        let loader = Loader::new(|| Err(io::ErrorKind::NotFound.into()));
        let live = Some(InitState::Live);
        let mut probing = Probing::new(&loader);
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
