// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the check of a kernel module.

use super::checks::Id;
use crate::facts::Facts;
use crate::system::drivers;
use crate::system::modules::InitState;
use crate::verify::finding::Finding;
use crate::wish::expectation::ModuleWish;

/// What is expected of a module.
const LOADED: &str = "loaded and initialised";

/// Finding of `module.live`: the module is built in or its init function has returned.
pub fn live(wish: &ModuleWish, facts: &Facts) -> Finding {
    let id = Id::ModuleLive;
    match (facts.modules.get(&wish.name), &wish.refused) {
        _ if wish.builtin => Finding::ok(id, "builtin"),
        (Some(InitState::Live), _) => Finding::ok(id, "live"),
        (Some(InitState::Coming), _) if drivers::binds_hcas(&wish.name) => {
            Finding::failed(id, &format!("the module {INITIALISING}"), LOADED)
        }
        (Some(InitState::Coming), _) => {
            Finding::failed(id, "the kernel is still loading the module", LOADED)
                .hint("wait; if this state persists, see dmesg")
        }
        (Some(InitState::Going), _) => {
            Finding::failed(id, "the kernel is removing the module", LOADED)
        }
        (None, Some(reason)) => Finding::failed(id, reason, "").hint("").lasting(),
        (None, None) => match busy_core(wish, facts) {
            Some(core) => Finding::failed(id, &format!("{core} {INITIALISING}"), LOADED),
            None => Finding::failed(id, "not loaded", LOADED).hint(&format!(
                "run modprobe {}; the reason of a failure is in dmesg",
                wish.name
            )),
        },
    }
}

/// mlx5_core waits up to 120 s for the firmware of each card in turn (main.c, mlx5_init_one).
const INITIALISING: &str = "is still loading and initialises its cards, up to 120 s for a card whose firmware is not ready";

/// The PCI driver that the module needs, if the init function of this driver still runs.
fn busy_core(wish: &ModuleWish, facts: &Facts) -> Option<&'static str> {
    let is_coming = |core: &str| facts.modules.get(core) == Some(&InitState::Coming);
    drivers::cores_of(&wish.name).find(|core| is_coming(core))
}

/// The mode that the kernel shows.
pub fn netns(wish: &ModuleWish, facts: &Facts) -> Finding {
    let id = Id::RdmaNetns;
    match (facts.netns_mode, wish.netns) {
        (None, _) | (_, None) => {
            Finding::unknown(id).hint("use Linux 5.2 or later, or remove rd.ib.netns=: this kernel has no network namespace mode")
        }
        (Some(found), Some(expected)) if found == expected => Finding::ok(id, &found.to_string()),
        (Some(found), Some(expected)) => {
            Finding::failed(id, &found.to_string(), &expected.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::finding::Status;

    #[test]
    fn a_module_is_live_once_its_init_function_has_returned() {
        let mut wish = ModuleWish {
            name: "mlx5_ib".to_owned(),
            ..ModuleWish::default()
        };
        let finding = |wish: &ModuleWish, state| {
            let mut facts = Facts::default();
            facts
                .modules
                .extend(Option::map(state, |s| (wish.name.clone(), s)));
            let finding = live(wish, &facts);
            (finding.status, finding.found.unwrap(), finding.lasting)
        };
        let is = |status, found: &str, lasting| (status, found.to_owned(), lasting);
        let (ok, critical) = (Status::Ok, Status::Critical);
        let coming = Some(InitState::Coming);
        let busy = {
            let mut facts = Facts::default();
            facts
                .modules
                .insert("mlx5_core".to_owned(), InitState::Coming);
            live(&wish, &facts)
        };
        assert_eq!(busy.found, Some(format!("mlx5_core {INITIALISING}")));
        assert_eq!(finding(&wish, Some(InitState::Live)), is(ok, "live", false));
        assert_eq!(
            finding(&wish, coming),
            is(critical, "the kernel is still loading the module", false)
        );
        assert_eq!(
            finding(&wish, Some(InitState::Going)),
            is(critical, "the kernel is removing the module", false)
        );
        assert_eq!(finding(&wish, None), is(critical, "not loaded", false));
        wish.refused = Some("blacklisted".to_owned());
        assert_eq!(finding(&wish, None), is(critical, "blacklisted", true));
        wish.builtin = true;
        assert_eq!(finding(&wish, None), is(ok, "builtin", false));
    }
}
