// SPDX-License-Identifier: MIT OR Apache-2.0
//! udev names an interface before anything is done to it. Kernels before 6.2 do not rename an interface
//! that is up (net/core/dev.c, dev_change_name: EBUSY), later ones rename it while it is in use.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::Walk;
use super::part::Part;
use crate::facts::Netdev;
use crate::system::clock::boottime_ns;
use crate::system::root::Root;

/// What udev may take for one interface. It needs milliseconds; a rule that hangs must not cost the boot.
const PATIENCE: Duration = Duration::from_secs(2);
/// udev sends no rtnetlink message for an interface that keeps its name: its database is read again.
const LOOK: Duration = Duration::from_millis(50);

/// Whose turn it is at each interface.
#[derive(Debug, Default)]
pub struct Naming {
    /// Interface index: since when udev is waited for, in nanoseconds of CLOCK_BOOTTIME.
    since: BTreeMap<u32, u64>,
    /// Interface indices for which udev is not waited for any longer.
    given_up: BTreeSet<u32>,
    due: Option<Instant>,
}

/// What [`Naming::turn`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// udev is at work.
    Udev,
    /// udev is through with the interface, does not run, or was given up before.
    Ours,
    /// The patience has just ended.
    GivenUp,
}

impl Naming {
    /// A new look begins: what is waited for is found anew.
    pub(super) fn begin(&mut self) {
        self.due = None;
    }

    fn turn(&mut self, index: u32, is_named: bool, now_ns: u64) -> Turn {
        if is_named || self.given_up.contains(&index) {
            self.since.remove(&index);
            return Turn::Ours;
        }
        let since = *self.since.entry(index).or_insert(now_ns);
        if u128::from(now_ns.saturating_sub(since)) < PATIENCE.as_nanos() {
            return Turn::Udev;
        }
        self.given_up.insert(index);
        Turn::GivenUp
    }
}

impl Part for Naming {
    /// When udev's database is to be read again.
    fn due(&self) -> Option<Instant> {
        self.due
    }
}

impl Walk<'_> {
    /// Whether the interface may be set up, renamed or built upon: udev has named it, or had its time.
    pub(super) fn is_settled(&mut self, netdev: &Netdev) -> bool {
        let Some(index) = netdev.ifindex else {
            return false;
        };
        // What is in use already is not kept waiting.
        if netdev.up {
            return true;
        }
        let is_named = is_named(self.root, index);
        match self.parts.naming.turn(index, is_named, boottime_ns()) {
            Turn::Ours => true,
            Turn::Udev => {
                self.parts.naming.due = Some(Instant::now() + LOOK);
                false
            }
            Turn::GivenUp => {
                log::warn!(
                    "{}: udev has not named this interface after {} s: ibboot goes on without udev",
                    netdev.ifname,
                    PATIENCE.as_secs()
                );
                true
            }
        }
    }
}

/// udev keeps a file for each network interface (/run/udev/data/nIFINDEX). Its line `I:` is written when all
/// rules are applied and the interface has its name; the file itself is there before that (systemd 247 on,
/// udev-event.c, rename_netif: ID_RENAMING). Without udev nothing is waited for.
fn is_named(root: &Root, index: u32) -> bool {
    if !root.exists("/run/udev/control") {
        return true;
    }
    let entry = root.text(&format!("/run/udev/data/n{index}"));
    entry.is_ok_and(|text| text.lines().any(|line| line.starts_with("I:")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_interface_is_named_when_udev_has_applied_all_rules() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert!(is_named(&root, 3), "no udev");
        fs::create_dir_all(dir.path().join("run/udev/data")).unwrap();
        fs::write(dir.path().join("run/udev/control"), "").unwrap();
        assert!(!is_named(&root, 3), "no entry");
        let entry = dir.path().join("run/udev/data/n3");
        fs::write(&entry, "E:ID_RENAMING=1\nG:systemd\nQ:systemd\nV:1\n").unwrap();
        assert!(!is_named(&root, 3), "on its way to a name");
        fs::write(&entry, "I:4711\nE:ID_RENAMING=1\nG:systemd\n").unwrap();
        assert!(is_named(&root, 3));
        assert!(!is_named(&root, 4));
    }

    #[test]
    fn each_interface_is_left_to_udev_for_two_seconds_at_most() {
        const S: u64 = 1_000_000_000;
        let mut naming = Naming::default();
        assert_eq!(naming.turn(3, false, 10 * S), Turn::Udev);
        assert_eq!(naming.turn(3, false, 12 * S - 1), Turn::Udev);
        assert_eq!(naming.turn(4, false, 12 * S - 1), Turn::Udev);
        assert_eq!(naming.turn(3, false, 12 * S), Turn::GivenUp);
        assert_eq!(naming.turn(3, false, 13 * S), Turn::Ours, "said once");
        assert_eq!(naming.turn(4, false, 13 * S), Turn::Udev);
        assert_eq!(naming.turn(4, true, 13 * S), Turn::Ours);
        assert_eq!(
            naming.turn(4, false, 90 * S),
            Turn::Udev,
            "its turn begins anew"
        );
    }
}
