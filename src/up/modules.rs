// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the kernel modules of the plan in parallel. Modules with parameters come first: modprobe
//! of a module that depends on one of them would load it without its parameters.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::part::{Part, Wake};
use crate::error::Result;
use crate::plan::{Action, Plan};
use crate::system::clock::boottime_ns;
use crate::system::modules::{self, Index};
use crate::system::root::Root;

/// A modprobe that has ended.
#[derive(Debug)]
pub struct Loaded {
    pub name: String,
    /// Start of the modprobe, ns since kernel start.
    pub start_ns: u64,
    pub result: Result<()>,
}

/// Name and parameters.
type Module = (String, Vec<String>);

#[derive(Debug)]
pub struct Modules<'a> {
    root: &'a Root,
    /// Every module of [`Modules::load`].
    known: BTreeSet<String>,
    running: FuturesUnordered<LocalBoxFuture<'a, Loaded>>,
    /// Modules that are loaded after the running modprobes.
    later: Vec<(&'a Index, Module)>,
    ended: Vec<Loaded>,
}

impl<'a> Modules<'a> {
    /// No modules.
    pub fn new(root: &'a Root) -> Modules<'a> {
        Modules {
            root,
            known: BTreeSet::new(),
            running: FuturesUnordered::new(),
            later: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Begins to load the modules of `plan` that no earlier plan had: those with parameters, or all
    /// modules if there are none with parameters.
    pub fn load(&mut self, index: &'a Index, plan: &Plan) {
        let (mut first, mut later) = in_order(plan);
        for modules in [&mut first, &mut later] {
            modules.retain(|(name, _)| self.known.insert(name.clone()));
        }
        for module in first {
            self.begin(index, module);
        }
        self.later
            .extend(later.into_iter().map(|module| (index, module)));
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

    fn begin(&mut self, index: &'a Index, (name, parameters): Module) {
        let root = self.root;
        let loading = async move {
            Loaded {
                start_ns: boottime_ns(),
                result: modules::load(root, index, &name, &parameters).await,
                name,
            }
        };
        self.running.push(loading.boxed_local());
    }

    fn go_on(&mut self) {
        if self.running.is_empty() {
            for (index, module) in std::mem::take(&mut self.later) {
                self.begin(index, module);
            }
        }
    }

    /// True while a modprobe runs.
    pub fn is_loading(&self) -> bool {
        !self.running.is_empty()
    }

    /// The modprobes that have ended since the last call.
    pub fn ended(&mut self) -> Vec<Loaded> {
        std::mem::take(&mut self.ended)
    }
}

impl Part for Modules<'_> {
    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let next = async move {
            let Some(loaded) = self.running.next().await else {
                return std::future::pending().await;
            };
            self.ended.push(loaded);
            self.go_on();
            Wake::Look
        };
        next.boxed_local()
    }

    fn is_busy(&self) -> bool {
        self.is_loading()
    }
}

/// The modules in the image: those with parameters, and the others.
fn in_order(plan: &Plan) -> (Vec<Module>, Vec<Module>) {
    plan.steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::LoadModule {
                module,
                file: Some(_),
                parameters,
            } => Some((module.clone(), parameters.clone())),
            _ => None,
        })
        .partition(|(_, parameters)| !parameters.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Inventory, plan};
    use crate::request::Request;

    #[test]
    fn modules_with_parameters_are_loaded_before_the_others() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = Inventory::read(&Root::new(sys)).unwrap();
        let order = |cmdline: &str| {
            let (first, later) = in_order(&plan(&Request::from_text(cmdline), &inventory));
            let names = |some: Vec<Module>| -> Vec<String> {
                some.into_iter().map(|(name, _)| name).collect()
            };
            (names(first), names(later))
        };
        let (first, later) = order("rd.ib=1 rd.ib.async_probe=1");
        assert_eq!(first, ["mlx5_core"]);
        assert!(later.contains(&"mlx5_ib".to_owned()), "{later:?}");
        assert_eq!(order("rd.ib=1").0, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_second_plan_loads_only_what_the_first_one_did_not() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let root = Root::new(sys);
        let inventory = Inventory::read(&root).unwrap();
        let mut modules = Modules::new(&root);
        let mut begun = |cmdline: &str| {
            let plan = plan(&Request::from_text(cmdline), &inventory);
            modules.load(&inventory.modules, &plan);
            (modules.running.len(), modules.later.len())
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
