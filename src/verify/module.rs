// SPDX-License-Identifier: MIT OR Apache-2.0
//! The check of a kernel module.

use super::checks::Id;
use crate::facts::Facts;
use crate::system::modules::InitState;
use crate::verify::report::Finding;
use crate::wish::expectation::ModuleWish;

pub fn live(wish: &ModuleWish, facts: &Facts) -> Finding {
    let id = Id::ModuleLive;
    match (facts.modules.get(&wish.name), &wish.refused) {
        _ if wish.builtin => Finding::ok(id, "builtin"),
        (Some(InitState::Live), _) => Finding::ok(id, "live"),
        (Some(InitState::Coming), _) => {
            Finding::failed(id, "coming", "live").hint("its init function still runs: see dmesg")
        }
        (Some(InitState::Going), _) => Finding::failed(id, "going", "live"),
        (None, Some(reason)) => Finding::failed(id, reason, "").hint("").lasting(),
        (None, None) => Finding::failed(id, "not loaded", "live"),
    }
}
