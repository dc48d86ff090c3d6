// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start of `up`. In an initramfs `up` starts beside dracut's cmdline hooks, which may still
//! write arguments to /etc/cmdline.d: until these hooks have ended, nothing but the drivers is
//! loaded, because a loaded driver changes nothing that an argument could forbid later.

use super::modules::Modules;
use super::{Begun, End, run};
use crate::error::Result;
use crate::facts::Readers;
use crate::facts::reader::IN_BOOT;
use crate::handover::COMPLETE;
use crate::plan::{self, Inventory, Plan};
use crate::request::{Request, changed};
use crate::system::arrival;
use crate::system::clock::boottime_ns;
use crate::system::directory::Directory;
use crate::system::root::Root;

/// Carries out `request`. With `is_early` the drivers of `request` are loaded while dracut's hooks
/// complete the command line (`/run/ibboot/complete`); then `request` is read again.
pub async fn bring_up(root: &Root, request: &mut Request, is_early: bool) -> Result<End> {
    let started_ns = boottime_ns();
    let readers = Readers::of(root, IN_BOOT);
    let is_early = is_early && !root.exists(COMPLETE);
    let first = if is_early {
        // Creates the directory in which the file appears.
        Directory::open()?;
        known(root, request, readers.as_ref())
    } else {
        None
    };
    let (inventory, plan);
    let mut modules = Modules::new(root);
    if is_early {
        if let Some((inventory, plan)) = &first {
            modules.load(&inventory.modules, plan);
        }
        modules.until(arrival::of(&root.path(COMPLETE))).await;
        let complete = Request::read(root);
        for line in changed(&request.written, &complete.written) {
            log::info!("{line}");
        }
        *request = complete;
    }
    // The machine is another one with its drivers.
    inventory = match &first {
        Some((first, _)) => Inventory::with(first.modules.clone(), root, readers.as_ref()),
        None => Inventory::read_by(root, readers.as_ref())?,
    };
    plan = plan::plan(request, &inventory);
    let begun = Begun {
        started_ns,
        readers,
        modules,
    };
    run(root, &plan, &inventory.modules, begun).await
}

/// The plan of the command line so far; none if nothing is requested yet. An error is reported when
/// the machine is read again.
fn known(root: &Root, request: &Request, readers: Option<&Readers>) -> Option<(Inventory, Plan)> {
    request.requested_by.as_ref()?;
    let inventory = Inventory::read_by(root, readers).ok()?;
    let plan = plan::plan(request, &inventory);
    Some((inventory, plan))
}
