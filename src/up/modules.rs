// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the kernel modules of the plan in parallel, in up to three stages.

use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;

use super::part::{Part, Wake, next};
use crate::error::Result;
use crate::loader::Loader;
use crate::plan::{Action, Plan};
use crate::system::clock::boottime_ns;
use crate::system::drivers::ASYNC_PROBE;
use crate::system::modules::Index;

/// A modprobe that has ended.
#[derive(Debug)]
pub struct Loaded {
    pub name: String,
    /// Start of the modprobe, ns since kernel start.
    pub start_ns: u64,
    /// Its end, ns since kernel start.
    pub end_ns: u64,
    pub result: Result<()>,
}

/// Name and parameters.
type Module = (String, Vec<String>);

/// The modules that are being loaded.
#[derive(Debug)]
pub struct Modules<'a> {
    loader: &'a Loader,
    /// Every module of [`Modules::load`].
    known: BTreeSet<String>,
    running: FuturesUnordered<LocalBoxFuture<'a, Loaded>>,
    /// The stages that are loaded after the running modprobes, the next one first.
    later: VecDeque<Vec<Module>>,
    ended: Vec<Loaded>,
}

impl<'a> Modules<'a> {
    /// No modules.
    pub fn new(loader: &'a Loader) -> Modules<'a> {
        Modules {
            loader,
            known: BTreeSet::new(),
            running: FuturesUnordered::new(),
            later: VecDeque::new(),
            ended: Vec::new(),
        }
    }

    /// What loads the modules.
    pub fn loader(&self) -> &'a Loader {
        self.loader
    }

    /// Begins to load the modules of `plan` that no earlier plan had, after those of earlier plans.
    pub fn load(&mut self, index: &Index, plan: &Plan) {
        for mut stage in stages(plan, index) {
            stage.retain(|(name, _)| self.known.insert(name.clone()));
            self.later.push_back(stage);
        }
        self.go_on();
    }

    /// Loads modules until `event` is there.
    pub async fn until(&mut self, event: impl Future<Output = ()>) {
        let mut event = pin!(event);
        loop {
            tokio::select! {
                () = &mut event => return,
                _ = self.changed() => {}
            }
        }
    }

    fn begin(&mut self, (name, parameters): Module) {
        let loader = self.loader;
        let loading = async move {
            let start_ns = boottime_ns();
            let result = loader.load(&name, &parameters).await;
            Loaded {
                start_ns,
                end_ns: boottime_ns(),
                result,
                name,
            }
        };
        self.running.push(loading.boxed_local());
    }

    fn go_on(&mut self) {
        while self.running.is_empty()
            && let Some(stage) = self.later.pop_front()
        {
            for module in stage {
                self.begin(module);
            }
        }
    }

    /// True while a modprobe runs.
    pub fn is_loading(&self) -> bool {
        !self.running.is_empty()
    }

    /// The number of modprobes that have ended since the last call of [`Modules::take_ended`].
    pub fn count_ended(&self) -> usize {
        self.ended.len()
    }

    /// The modprobes that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<Loaded> {
        std::mem::take(&mut self.ended)
    }
}

impl Part for Modules<'_> {
    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let changed = async move {
            let loaded = next(&mut self.running).await;
            self.ended.push(loaded);
            self.go_on();
            Wake::Look
        };
        changed.boxed_local()
    }

    fn is_busy(&self) -> bool {
        self.is_loading()
    }
}

/// The modules in the image.
///
/// 1. With asynchronous probing, the modules that need no module with parameters: the load of a
///    module ends when all probes that run have ended, also that of a dependency
///    (`async_synchronize_full` in do_init_module of kernel/module/main.c), so ib_ipoib would wait
///    for the slowest card.
/// 2. Modules with parameters.
/// 3. The others: modprobe of a module that depends on one with parameters would load that one
///    without them.
fn stages(plan: &Plan, index: &Index) -> [Vec<Module>; 3] {
    let steps = plan.steps.iter();
    let (with, others): (Vec<Module>, Vec<Module>) = steps
        .filter_map(|step| match &step.action {
            Action::LoadModule {
                module,
                file: Some(_),
                parameters,
                ..
            } => Some((module.clone(), parameters.clone())),
            _ => None,
        })
        .partition(|(_, parameters)| !parameters.is_empty());
    let probes_later = |(_, parameters): &Module| parameters.iter().any(|p| p == ASYNC_PROBE);
    if !with.iter().any(probes_later) {
        return [Vec::new(), with, others];
    }
    let needs_one = |(name, _): &Module| {
        let closure = index.closure(name);
        with.iter().any(|(name, _)| closure.contains(name))
    };
    let (last, first) = others.into_iter().partition(needs_one);
    [first, with, last]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Inventory, plan};
    use crate::request::Request;
    use crate::system::root::Root;

    #[test]
    fn modules_are_loaded_in_stages() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = Inventory::read(&Root::new(sys)).unwrap();
        let order = |cmdline: &str| {
            let plan = plan(&Request::from_text(cmdline), &inventory);
            stages(&plan, &inventory.modules).map(|stage| {
                let names = stage.into_iter().map(|(name, _)| name);
                names.collect::<Vec<String>>()
            })
        };
        let [first, second, last] = order("rd.ib=1 rd.ib.async_probe=1 ip=ib0:dhcp");
        assert!(first.contains(&"ib_ipoib".to_owned()), "{first:?}");
        assert_eq!(second, ["mlx5_core"]);
        assert_eq!(last, ["mlx5_ib"]);
        let [first, second, last] = order("rd.ib=1");
        assert_eq!((first, second), (Vec::new(), Vec::new()));
        assert!(last.contains(&"mlx5_ib".to_owned()), "{last:?}");
    }

    #[tokio::test]
    async fn a_second_plan_loads_only_what_the_first_one_did_not() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let root = Root::new(sys);
        let inventory = Inventory::read(&root).unwrap();
        let loader = Loader::default();
        let mut modules = Modules::new(&loader);
        let mut begun = |cmdline: &str| {
            let plan = plan(&Request::from_text(cmdline), &inventory);
            modules.load(&inventory.modules, &plan);
            let later = modules.later.iter().map(Vec::len);
            (modules.running.len(), later.sum::<usize>())
        };
        let (first, _) = begun("rd.driver.post=mlx5_ib rd.ib=1");
        assert!(first > 0);
        assert_eq!(begun("rd.driver.post=mlx5_ib rd.ib=1"), (first, 0));
        let more = "rd.driver.post=mlx5_ib,ib_umad rd.ib=1 ip=ib0:dhcp";
        let (running, later) = begun(more);
        // They follow the running modprobes.
        assert_eq!((running, later), (first, 2), "{:?}", modules.later);
    }
}
