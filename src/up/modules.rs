// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the kernel modules of the plan in parallel. Modules with parameters come first: modprobe
//! of a module that depends on one of them would load it without its parameters.

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

/// The modules that are being loaded. Each modprobe is a process of its own.
#[derive(Debug)]
pub struct Modules<'a> {
    root: &'a Root,
    index: &'a Index,
    running: FuturesUnordered<LocalBoxFuture<'a, Loaded>>,
    /// Modules that are loaded after the running modprobes.
    later: Vec<Module>,
    ended: Vec<Loaded>,
}

impl<'a> Modules<'a> {
    /// Begins to load the modules with parameters, or all modules if there are none with
    /// parameters.
    pub fn load(root: &'a Root, index: &'a Index, plan: &Plan) -> Modules<'a> {
        let (first, later) = in_order(plan);
        let mut modules = Modules {
            root,
            index,
            running: FuturesUnordered::new(),
            later,
            ended: Vec::new(),
        };
        modules.begin(first);
        modules.go_on();
        modules
    }

    fn begin(&mut self, some: Vec<Module>) {
        let (root, index) = (self.root, self.index);
        let load = |(name, parameters): Module| {
            let loading = async move {
                Loaded {
                    start_ns: boottime_ns(),
                    result: modules::load(root, index, &name, &parameters).await,
                    name,
                }
            };
            loading.boxed_local()
        };
        self.running.extend(some.into_iter().map(load));
    }

    fn go_on(&mut self) {
        if self.running.is_empty() {
            let later = std::mem::take(&mut self.later);
            self.begin(later);
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
}
