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
use crate::loader::Loader;
use crate::plan::{self, Inventory};
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
    let loader = Loader::default();
    let mut modules = Modules::new(&loader);
    let mut index = None;
    if is_early && !root.exists(COMPLETE) {
        // Creates the directory in which the file appears.
        Directory::open()?;
        if request.requested_by.is_some() {
            // An error is reported when the index is read again.
            index = loader.index(root).await.ok();
        }
        if let Some(index) = &index {
            let inventory = Inventory::with(root, readers.as_ref(), index.clone());
            modules.load(index, &plan::plan(request, &inventory));
        }
        modules.until(arrival::of(&root.path(COMPLETE))).await;
        let complete = Request::read(root);
        for line in changed(&request.written, &complete.written) {
            log::info!("{line}");
        }
        *request = complete;
    }
    let index = match index {
        Some(index) => index,
        None => loader.index(root).await?,
    };
    // The machine is another one with its drivers.
    let inventory = Inventory::with(root, readers.as_ref(), index);
    let plan = plan::plan(request, &inventory);
    let begun = Begun {
        started_ns,
        readers,
        modules,
    };
    run(root, &plan, &inventory.modules, begun).await
}
