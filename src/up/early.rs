// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start of `up`. In an initramfs `up` starts beside dracut's cmdline hooks, which may still
//! add arguments in /etc/cmdline.d. dracut's own hooks contradict no argument of the kernel's command
//! line: the walk begins at once, and waits for these hooks only with its verdict. A hook of a site
//! may write anything, also options of drivers: then everything waits for that hook. With rd.hostonly=0
//! dracut removes arguments and options before its first hook: everything waits for its hooks. Without systemd,
//! and if a person is about to change the command line, only the drivers are loaded before: a loaded
//! driver changes nothing that an argument could forbid later.

use std::time::Duration;

use kernel_cmdline::{Source, Token};
use tokio::time::Instant;

use super::hooks;
use super::naming::{UDEV_CONTROL, UDEV_DATA};
use super::{Begun, End, Start, Walk, log_plan};
use crate::error::Result;
use crate::facts::Readers;
use crate::facts::reader::IN_BOOT;
use crate::handover::{self, COMPLETE, DIRECTORY, REQUESTED};
use crate::loader::Loader;
use crate::plan::{self, Inventory, Plan};
use crate::request::{Request, changed};
use crate::system::arrival;
use crate::system::clock::boottime_ns;
use crate::system::directory::Directory;
use crate::system::modules::Index;
use crate::system::root::Root;
use crate::wish::expectation::LinkWish;

const CMDLINE: &str = "/proc/cmdline";
/// With systemd, dracut-cmdline.sh of dracut 051 to 112 writes this file behind the last cmdline hook.
/// That hook does not create [`COMPLETE`] if nothing is requested and `up` had not started yet.
const STATE: &str = "/dracut-state.sh";
/// What dracut's pre-udev hooks and the start of udevd may take.
const UDEVD: Duration = Duration::from_secs(10);

/// The machine as it is, and what its request means on it.
type Planned = (Inventory, Plan);

/// What began before the command line was complete.
enum Early<'p, 'l> {
    Walk(Box<Walk<'p, 'l>>),
    Drivers(Box<Begun<'l>>),
}

/// Carries out `request`. With `is_early` the walk begins while dracut's hooks complete the command
/// line (`/run/ibboot/complete`); then the arguments are read again, and another walk begins if they
/// request something else.
pub async fn bring_up(root: &Root, request: &mut Request, is_early: bool) -> Result<End> {
    let started_ns = boottime_ns();
    let loader = Loader::default();
    let begun = Begun::new(root, Readers::of(root, IN_BOOT), &loader);
    let (mut first, mut complete_ns) = (None, None);
    let early = if is_early && !has_ended(root) {
        // Creates the directory in which the file appears.
        Directory::open()?;
        first = first_plan(root, request, &begun).await;
        let early = until_hooks_end(root, first.as_ref(), begun).await?;
        complete_ns = Some(boottime_ns());
        early
    } else {
        Early::Drivers(Box::new(begun))
    };
    let is_same = is_early && complete(root, request, first.is_some()).await;
    if is_early && request.requested_by.is_none() {
        return Ok(End::nothing_requested());
    }
    let start = Start {
        started_ns,
        complete_ns,
        began: Instant::now(),
        is_of_boot: is_early,
    };
    let begun = match early {
        Early::Walk(mut walk) if is_same => return walk.until_settled(start).await,
        Early::Walk(walk) => walk.into_begun(),
        Early::Drivers(begun) => *begun,
    };
    walk_anew(root, request, first.as_ref(), begun, start).await
}

/// The plan of what is requested so far; none if nothing is, or if drivers must wait for the hooks.
async fn first_plan(root: &Root, request: &Request, begun: &Begun<'_>) -> Option<Planned> {
    if request.requested_by.is_none() || !may_load(root, request) {
        return None;
    }
    let index = tokio::select! {
        // An error is reported when the index is read again.
        read = begun.loader().index(root, request.timeout) => read.ok(),
        () = end_of_hooks(root) => None,
    };
    Some(planned(root, request, begun, index?))
}

/// Walks until dracut's hooks have ended. Without udev, and if a person is about to change the command
/// line, only loads the drivers.
async fn until_hooks_end<'p, 'l: 'p>(
    root: &'p Root,
    first: Option<&'p Planned>,
    mut begun: Begun<'l>,
) -> Result<Early<'p, 'l>> {
    if let Some((inventory, plan)) = first {
        if is_named_by_udev(root) && !may_be_edited(root) {
            let mut walk = Walk::new(root, plan, &inventory.modules, begun)?;
            walk.until_complete(end_of_hooks(root)).await?;
            return Ok(Early::Walk(Box::new(walk)));
        }
        begun.parts.modules.load(&inventory.modules, plan);
    }
    begun.parts.modules.until(end_of_hooks(root)).await;
    Ok(Early::Drivers(Box::new(begun)))
}

/// Puts the complete command line in the place of `request`, when the options of drivers are complete
/// too, unless there is a plan: its drivers are loaded. True if the request is the same as before.
async fn complete(root: &Root, request: &mut Request, has_plan: bool) -> bool {
    let mut complete = Request::read(root);
    if complete.requested_by.is_some() && !has_plan {
        options_complete(root).await;
        // A hook of pre-udev may have added arguments, too.
        complete = Request::read(root);
    }
    let before = std::mem::replace(request, complete);
    if request.requested_by.is_none() {
        return false;
    }
    for line in changed(&before.written, &request.written) {
        log::info!("{line}");
    }
    // A hook of pre-udev may have changed the command line after the last cmdline hook.
    if let Err(error) = handover::write_requested(request) {
        log::warn!("{error}");
    }
    before == *request
}

/// Walks with a plan of the complete command line: the machine is another one with its drivers.
async fn walk_anew(
    root: &Root,
    request: &Request,
    first: Option<&Planned>,
    mut begun: Begun<'_>,
    start: Start,
) -> Result<End> {
    let index = match first {
        Some((inventory, _)) => inventory.modules.clone(),
        None => begun.loader().index(root, request.timeout).await?,
    };
    let (inventory, plan) = planned(root, request, &begun, index);
    if plan.requested_by.is_none() {
        log_plan(&plan);
        return Ok(End::nothing_requested());
    }
    if first.is_some_and(|(_, first)| requests_of_links(first) != requests_of_links(&plan)) {
        begun.parts.leasing = begun.parts.leasing.anew();
    }
    let mut walk = Walk::new(root, &plan, &inventory.modules, begun)?;
    walk.until_settled(start).await
}

fn planned(root: &Root, request: &Request, begun: &Begun<'_>, index: Index) -> Planned {
    let inventory = Inventory::with(root, begun.readers.as_ref(), index);
    let plan = plan::plan(request, &inventory);
    (inventory, plan)
}

fn requests_of_links(plan: &Plan) -> (&[LinkWish], Option<&LinkWish>) {
    (&plan.expectation.links, plan.expectation.any_port.as_ref())
}

/// Whether an interface is left to udev, if udev may rename the interface: without systemd udevd starts
/// after the hooks, and nothing shows before that udevd will come.
fn is_named_by_udev(root: &Root) -> bool {
    root.exists(UDEV_CONTROL)
}

/// Whether a person is about to change the command line: dracut asks for arguments, or opens a shell
/// before its cmdline hooks.
fn may_be_edited(root: &Root) -> bool {
    let read = root.read(CMDLINE);
    let is_edit = |token: Token<'_>| match token.key {
        b"rd.cmdline" => token.value == Some(b"ask"),
        b"rd.break" | b"rdbreak" => token.value == Some(b"cmdline"),
        _ => false,
    };
    read.map_or(true, |line| {
        Source::new(CMDLINE, &line).tokens().any(is_edit)
    })
}

/// Whether dracut's cmdline hooks have ended; those of ibboot know it if something is requested.
fn has_ended(root: &Root) -> bool {
    root.exists(COMPLETE) || root.exists(STATE) && !is_requested(root)
}

fn is_requested(root: &Root) -> bool {
    root.exists(&format!("{DIRECTORY}/{REQUESTED}"))
}

async fn end_of_hooks(root: &Root) {
    let (ours, state) = (root.path(COMPLETE), root.path(STATE));
    tokio::select! {
        () = arrival::of(&ours) => return,
        () = arrival::of(&state) => {}
    }
    if is_requested(root) {
        arrival::of(&ours).await;
    }
}

/// Whether no hook of a site may still write options of drivers, and dracut removes none.
fn may_load(root: &Root, request: &Request) -> bool {
    if request.without_hostonly {
        log::info!(
            "rd.hostonly=: drivers are loaded and links set up after dracut's hooks: dracut removes arguments and options"
        );
        return false;
    }
    let hook = ["cmdline", "pre-udev"]
        .iter()
        .find_map(|stage| hooks::of_site(root, stage).transpose());
    match hook {
        None => true,
        Some(Ok(hook)) => {
            log::info!(
                "{hook}: drivers are loaded and links set up after this hook, which may write arguments and options"
            );
            false
        }
        Some(Err(error)) => {
            log::warn!("{error}: drivers are loaded and links set up after dracut's hooks");
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
    use futures_util::FutureExt;
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
        let may_load = |root: &Root| may_load(root, &Request::from_text("ip=ib0:dhcp"));
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

    #[test]
    fn nothing_begins_before_dracut_has_removed_what_is_for_one_machine_only() {
        for (own, line, expected) in [
            ("ip=ib7:dhcp", "rd.hostonly=0 ip=ib0:dhcp", false),
            ("ip=ib7:dhcp", "ip=ib0:dhcp rd.hostonly=no", false),
            ("ip=ib7:dhcp rd.hostonly=off", "ip=ib0:dhcp", false),
            ("rd.hostonly=0", "rd.hostonly=1 ip=ib0:dhcp", true),
            ("ip=ib7:dhcp", "rd.hostonly ip=ib0:dhcp", true),
            ("ip=ib7:dhcp", "ip=ib0:dhcp", true),
        ] {
            let (dir, root) = image(&["etc/cmdline.d/50-ib.conf", "proc/cmdline"]);
            fs::write(dir.path().join("etc/cmdline.d/50-ib.conf"), own).unwrap();
            fs::write(dir.path().join("proc/cmdline"), line).unwrap();
            let may = may_load(&root, &Request::read(&root));
            assert_eq!(may, expected, "{own} {line}");
        }
    }

    #[test]
    fn only_drivers_are_loaded_before_a_person_edits_the_command_line() {
        for (line, is_edited) in [
            ("ip=ib0:dhcp rd.break=pre-mount rd.cmdline=", false),
            ("ip=ib0:dhcp rd.cmdline=ask", true),
            ("rd.break=cmdline ip=ib0:dhcp", true),
            ("rdbreak=cmdline", true),
        ] {
            let (dir, root) = image(&["proc/cmdline"]);
            fs::write(dir.path().join("proc/cmdline"), line).unwrap();
            assert_eq!(may_be_edited(&root), is_edited, "{line}");
        }
        assert!(may_be_edited(&image(&[]).1), "unreadable");
    }

    #[tokio::test]
    async fn the_hooks_have_ended_with_the_file_of_ibboot_or_if_nothing_is_requested_of_dracut() {
        let (ours, dracut, requested) = (COMPLETE, "dracut-state.sh", "run/ibboot/requested");
        let ours = ours.trim_start_matches('/');
        for files in [&[ours, requested][..], &[ours], &[dracut]] {
            let (_dir, root) = image(files);
            assert!(has_ended(&root), "{files:?}");
            end_of_hooks(&root).await;
        }
        for files in [&[dracut, requested][..], &[requested], &[]] {
            let (_dir, root) = image(files);
            assert!(!has_ended(&root), "{files:?}");
            assert!(end_of_hooks(&root).now_or_never().is_none(), "{files:?}");
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
