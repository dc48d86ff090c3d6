// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start of `up`. In an initramfs `up` starts beside dracut's cmdline hooks, which may still
//! write arguments to /etc/cmdline.d: until these hooks have ended, nothing but the drivers is
//! loaded, because a loaded driver changes nothing that an argument could forbid later. A hook of a
//! site may also write options of drivers: then the drivers wait for that hook.

use std::time::Duration;

use tokio::time::Instant;

use super::hooks;
use super::modules::Modules;
use super::naming::UDEV_DATA;
use super::{Begun, End, run};
use crate::error::{Kind, Result};
use crate::facts::Readers;
use crate::facts::reader::IN_BOOT;
use crate::handover::{self, COMPLETE};
use crate::loader::Loader;
use crate::plan::{self, Inventory};
use crate::request::{Request, changed};
use crate::system::arrival;
use crate::system::clock::boottime_ns;
use crate::system::directory::Directory;
use crate::system::root::Root;

/// With systemd, dracut-cmdline.sh of dracut 051 to 112 writes this file behind the last cmdline hook.
/// That hook does not create [`COMPLETE`] if `up` had not started yet.
const STATE: &str = "/dracut-state.sh";
/// What dracut's pre-udev hooks and the start of udevd may take.
const UDEVD: Duration = Duration::from_secs(10);

/// Carries out `request`. With `is_early` the drivers of `request` are loaded while dracut's hooks
/// complete the command line (`/run/ibboot/complete`); then `request` is read again.
pub async fn bring_up(root: &Root, request: &mut Request, is_early: bool) -> Result<End> {
    let started_ns = boottime_ns();
    let readers = Readers::of(root, IN_BOOT);
    let loader = Loader::default();
    let mut modules = Modules::new(&loader);
    let (mut index, mut complete_ns) = (None, None);
    if is_early && !has_ended(root) {
        // Creates the directory in which the file appears.
        Directory::open()?;
        if request.requested_by.is_some() && may_load(root) {
            // An error is reported when the index is read again.
            index = tokio::select! {
                read = loader.index(root, request.timeout) => read.ok(),
                () = end_of_hooks(root) => None,
            };
        }
        if let Some(index) = &index {
            let inventory = Inventory::with(root, readers.as_ref(), index.clone());
            modules.load(index, &plan::plan(request, &inventory));
        }
        modules.until(end_of_hooks(root)).await;
        complete_ns = Some(boottime_ns());
    }
    if is_early {
        let mut complete = Request::read(root);
        if complete.requested_by.is_some() && index.is_none() {
            options_complete(root).await;
            // A hook of pre-udev may have added arguments, too.
            complete = Request::read(root);
        }
        if complete.requested_by.is_none() {
            *request = complete;
            return Ok(End {
                code: Kind::NothingAsked.exit_code(),
                report: None,
            });
        }
        for line in changed(&request.written, &complete.written) {
            log::info!("{line}");
        }
        *request = complete;
        // A hook of pre-udev may have changed the command line after the last cmdline hook.
        if let Err(error) = handover::write_asked(request) {
            log::warn!("{error}");
        }
    }
    let began = Instant::now();
    let index = match index {
        Some(index) => index,
        None => loader.index(root, request.timeout).await?,
    };
    // The machine is another one with its drivers.
    let inventory = Inventory::with(root, readers.as_ref(), index);
    let plan = plan::plan(request, &inventory);
    let begun = Begun {
        started_ns,
        complete_ns,
        began,
        readers,
        modules,
    };
    run(root, &plan, &inventory.modules, begun).await
}

/// Whether dracut's cmdline hooks have ended.
fn has_ended(root: &Root) -> bool {
    root.exists(COMPLETE) || root.exists(STATE)
}

async fn end_of_hooks(root: &Root) {
    let (ours, state) = (root.path(COMPLETE), root.path(STATE));
    tokio::select! {
        () = arrival::of(&ours) => {}
        () = arrival::of(&state) => {}
    }
}

/// Whether no hook of a site may still write options of drivers.
fn may_load(root: &Root) -> bool {
    let hook = ["cmdline", "pre-udev"]
        .iter()
        .find_map(|stage| hooks::of_site(root, stage).transpose());
    match hook {
        None => true,
        Some(Ok(hook)) => {
            log::info!("{hook}: drivers are loaded after this hook, which may write their options");
            false
        }
        Some(Err(error)) => {
            log::warn!("{error}: drivers are loaded after dracut's hooks");
            false
        }
    }
}

/// Waits for the pre-udev hooks if one of them is of a site: udevd starts after them.
async fn options_complete(root: &Root) {
    if matches!(hooks::of_site(root, "pre-udev"), Ok(None)) {
        return;
    }
    let udevd = root.path(UDEV_DATA);
    if tokio::time::timeout(UDEVD, arrival::of(&udevd))
        .await
        .is_err()
    {
        log::warn!(
            "udevd has handled no device after {} s: drivers are loaded now",
            UDEVD.as_secs()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// An initramfs with these files.
    fn image(files: &[&str]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for file in ["etc/initrd-release"].iter().chain(files) {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let root = Root::new(dir.path());
        (dir, root)
    }

    #[test]
    fn drivers_wait_for_hooks_of_a_site() {
        let dracut = "lib/dracut/hooks/cmdline/98-parse-ip-opts.sh";
        assert!(may_load(&image(&[dracut]).1));
        for hook in [
            "lib/dracut/hooks/cmdline/50-site.sh",
            "var/lib/dracut/hooks/pre-udev/50-site.sh",
            // Not a folder.
            "etc/dracut/hooks/cmdline",
        ] {
            assert!(!may_load(&image(&[dracut, hook]).1), "{hook}");
        }
        let later = "lib/dracut/hooks/pre-trigger/50-site.sh";
        assert!(may_load(&image(&[later]).1));
    }

    #[tokio::test]
    async fn the_hooks_have_ended_with_either_file() {
        assert!(!has_ended(&image(&[]).1));
        for file in ["run/ibboot/complete", "dracut-state.sh"] {
            let (_dir, root) = image(&["run/ibboot/asked", file]);
            assert!(has_ended(&root));
            end_of_hooks(&root).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn udevd_starts_after_the_pre_udev_hooks() {
        let hook = "lib/dracut/hooks/pre-udev/50-site.sh";
        let start = Instant::now();
        options_complete(&image(&["lib/dracut/hooks/cmdline/50-site.sh"]).1).await;
        options_complete(&image(&[hook, "run/udev/data/n3"]).1).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        options_complete(&image(&[hook]).1).await;
        assert_eq!(start.elapsed(), UDEVD);
    }
}
