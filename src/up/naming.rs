// SPDX-License-Identifier: MIT OR Apache-2.0
//! udev names an interface before anything is done to it, if udev may rename one (`renaming`). Kernels
//! before 6.2 do not rename an interface that is up (net/core/dev.c, dev_change_name: EBUSY), later
//! ones rename it while it is in use.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::part::Part;
use super::renaming::reason_to_wait;
use crate::facts::Facts;
use crate::plan::Plan;
use crate::system::clock::boottime_ns;
use crate::system::root::Root;

/// udev works on this machine, or will.
pub(super) const UDEV_CONTROL: &str = "/run/udev/control";
/// udevd creates this directory for its first device; the socket of udevd is there before udevd.
pub(super) const UDEV_DATA: &str = "/run/udev/data";
/// What udev may take for one interface. It needs milliseconds; a rule that hangs must not cost the boot.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the start of udevd and its first device may take, after an interface is there.
const START: Duration = Duration::from_secs(10);
/// udev sends no rtnetlink message for an interface that keeps its name: its database is read again.
const LOOK: Duration = Duration::from_millis(50);

/// Whose turn it is at each interface.
#[derive(Debug, Default)]
pub struct Naming {
    /// Whether udev may rename an interface; none while there was no interface without udev's name.
    may_rename: Option<bool>,
    /// udev has handled its first device.
    has_udev_begun: Cell<bool>,
    /// Since when an interface waits for udev to work, in nanoseconds of CLOCK_BOOTTIME.
    idle_since: Option<u64>,
    /// Interface index: since when udev is waited for, in nanoseconds of CLOCK_BOOTTIME.
    since: BTreeMap<u32, u64>,
    /// Interface index: since when the interface is seen without udev's name, in nanoseconds of
    /// CLOCK_BOOTTIME.
    unnamed_since: BTreeMap<u32, u64>,
    /// Interface indices for which udev is not waited for any longer.
    given_up: BTreeSet<u32>,
    due: Option<Instant>,
}

impl Naming {
    /// A new look begins. Gives the indices of the interfaces that wait for udev's name: those that
    /// udev will not rename or that were given up are not among them.
    pub(super) fn begin(&mut self, root: &Root, plan: &Plan, facts: &Facts) -> BTreeSet<u32> {
        let mut found = match self.may_rename {
            Some(false) => BTreeSet::new(),
            _ => unnamed(root, facts),
        };
        if !found.is_empty() {
            let may_rename = self
                .may_rename
                .get_or_insert_with(|| may_rename(root, plan));
            found.retain(|_| *may_rename);
        }
        self.count(&mut found, boottime_ns());
        found
    }

    fn count(&mut self, unnamed: &mut BTreeSet<u32>, now_ns: u64) {
        self.due = None;
        unnamed.retain(|index| !self.given_up.contains(index));
        self.since.retain(|index, _| unnamed.contains(index));
        self.unnamed_since
            .retain(|index, _| unnamed.contains(index));
        for index in unnamed.iter() {
            self.unnamed_since.entry(*index).or_insert(now_ns);
        }
    }

    /// At the last look an interface was without udev's name, and was not for longer than udev may
    /// take: the interface may be the one that is missing under the name that is requested.
    pub(super) fn may_rename_soon(&self, now_ns: u64) -> bool {
        let mut since = self.unnamed_since.values();
        since.any(|since| Duration::from_nanos(now_ns.saturating_sub(*since)) < START)
    }

    /// Nothing is to be waited for yet: no time of an interface has begun.
    pub(super) fn pause(&mut self) {
        (self.idle_since, self.due) = (None, None);
        self.since.clear();
    }

    /// Something is to be done to this interface. True: its time is over, and it is ours now. The
    /// time of an interface begins when udev works.
    pub(super) fn wait(&mut self, name: &str, index: u32, is_working: bool) -> bool {
        self.due = Some(Instant::now() + LOOK);
        let now_ns = boottime_ns();
        let (is_over, what, patience) = match is_working {
            true => (
                self.give_up_if_over(index, now_ns),
                "not named this interface",
                PATIENCE,
            ),
            false => (
                self.give_up_if_idle(index, now_ns),
                "handled no device",
                START,
            ),
        };
        if is_over {
            log::warn!(
                "{name}: udev has {what} after {} s: ibboot continues without udev",
                patience.as_secs()
            );
        }
        is_over
    }

    /// True: udev was idle for too long.
    fn give_up_if_idle(&mut self, index: u32, now_ns: u64) -> bool {
        let since = *self.idle_since.get_or_insert(now_ns);
        self.give_up_after(index, now_ns.saturating_sub(since), START)
    }

    /// udev has not begun to handle devices, and loads drivers when it does.
    pub(super) fn is_udev_to_come(&self, root: &Root) -> bool {
        if !self.has_udev_begun.get() {
            self.has_udev_begun.set(root.exists(UDEV_DATA));
        }
        !self.has_udev_begun.get() && root.exists(UDEV_CONTROL)
    }

    /// Something waits for udev's name in this look.
    pub(super) fn is_waiting(&self) -> bool {
        self.due.is_some()
    }

    /// True: udev has worked for too long without this interface.
    fn give_up_if_over(&mut self, index: u32, now_ns: u64) -> bool {
        let since = *self.since.entry(index).or_insert(now_ns);
        self.give_up_after(index, now_ns.saturating_sub(since), PATIENCE)
    }

    fn give_up_after(&mut self, index: u32, waited_ns: u64, patience: Duration) -> bool {
        let is_over = Duration::from_nanos(waited_ns) >= patience;
        if is_over {
            self.given_up.insert(index);
        }
        is_over
    }
}

/// Indices of the interfaces that are down and that udev has not named; empty without udev.
fn unnamed(root: &Root, facts: &Facts) -> BTreeSet<u32> {
    if !root.has_file(UDEV_CONTROL) {
        return BTreeSet::new();
    }
    let down = facts.netdevs.iter().filter(|netdev| !netdev.up);
    let indices = down.filter_map(|netdev| netdev.ifindex);
    indices.filter(|index| !is_named(root, *index)).collect()
}

/// udev keeps a file for each network interface (/run/udev/data/nIFINDEX). udev writes the line
/// `I:` after all rules are applied and the interface has its name; the file itself exists earlier
/// (systemd 247 on, udev-event.c, rename_netif: ID_RENAMING).
fn is_named(root: &Root, index: u32) -> bool {
    let entry = root.text(&format!("{UDEV_DATA}/n{index}"));
    entry.is_ok_and(|text| text.lines().any(|line| line.starts_with("I:")))
}

fn may_rename(root: &Root, plan: &Plan) -> bool {
    let reason = reason_to_wait(root, plan);
    match &reason {
        Some(reason) => log::info!("udev may rename an interface, and goes first: {reason}"),
        None => log::debug!("udev renames no interface: ibboot does not wait for udev"),
    }
    reason.is_some()
}

impl Part for Naming {
    /// When udev's database is to be read again.
    fn due(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Netdev;
    use crate::system::clock::SECOND;
    use std::fs;

    #[tokio::test]
    async fn the_time_begins_when_udev_works() {
        let mut naming = Naming::default();
        assert!(!naming.is_waiting());
        assert!(!naming.wait("ib0", 3, false));
        assert!(naming.is_waiting());
        assert!(naming.since.is_empty());
        assert!(!naming.wait("ib0", 3, true));
        assert!(naming.since.contains_key(&3));
        naming.pause();
        assert!(!naming.is_waiting());
        assert!(naming.since.is_empty() && naming.idle_since.is_none());
    }

    #[test]
    fn each_interface_is_left_to_udev_for_two_seconds_at_most() {
        const S: u64 = SECOND;
        let mut naming = Naming::default();
        let unnamed = |naming: &mut Naming, found: &[u32]| -> Vec<u32> {
            let mut found = found.iter().copied().collect();
            naming.count(&mut found, 0);
            found.into_iter().collect()
        };
        assert_eq!(unnamed(&mut naming, &[3, 4]), [3, 4]);
        assert!(!naming.give_up_if_over(3, 10 * S));
        assert!(!naming.give_up_if_over(3, 12 * S - 1));
        assert!(!naming.give_up_if_over(4, 12 * S - 1));
        assert!(naming.give_up_if_over(3, 12 * S));
        assert_eq!(unnamed(&mut naming, &[3, 4]), [4], "said once");
        assert!(!naming.give_up_if_over(4, 13 * S));
        assert!(unnamed(&mut naming, &[3]).is_empty());
        assert!(!naming.give_up_if_over(4, 90 * S), "its turn begins anew");
    }

    #[test]
    fn an_interface_may_get_another_name_for_ten_seconds() {
        const S: u64 = SECOND;
        let mut naming = Naming::default();
        let mut may_rename_soon = |found: &[u32], now_ns| {
            let mut found = found.iter().copied().collect();
            naming.count(&mut found, now_ns);
            naming.may_rename_soon(now_ns)
        };
        assert!(!may_rename_soon(&[], S));
        assert!(may_rename_soon(&[3], 2 * S));
        assert!(may_rename_soon(&[3], 12 * S - 1));
        assert!(!may_rename_soon(&[3], 12 * S));
        assert!(may_rename_soon(&[3, 4], 12 * S));
        assert!(!may_rename_soon(&[3], 13 * S));
        assert!(!may_rename_soon(&[], 14 * S));
        assert!(
            may_rename_soon(&[3], 15 * S),
            "the index of another interface"
        );
    }

    #[test]
    fn an_interface_is_named_when_udev_has_applied_all_rules() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let netdev = |ifindex, up| Netdev {
            ifindex: Some(ifindex),
            up,
            ..Netdev::default()
        };
        let facts = Facts {
            netdevs: vec![netdev(3, false), netdev(4, false), netdev(5, true)],
            ..Facts::default()
        };
        let unnamed = || unnamed(&root, &facts).into_iter().collect::<Vec<u32>>();
        assert!(unnamed().is_empty(), "no udev");
        fs::create_dir_all(dir.path().join("run/udev/data")).unwrap();
        fs::write(dir.path().join("run/udev/control"), "").unwrap();
        assert_eq!(unnamed(), [3, 4], "no entry");
        let entry = dir.path().join("run/udev/data/n3");
        fs::write(&entry, "E:ID_RENAMING=1\nG:systemd\nQ:systemd\nV:1\n").unwrap();
        assert_eq!(unnamed(), [3, 4], "on its way to a name");
        fs::write(&entry, "I:4711\nE:ID_RENAMING=1\nG:systemd\n").unwrap();
        assert_eq!(unnamed(), [4]);
    }
}
