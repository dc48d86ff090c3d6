// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to the machine: files, clock, kernel log, modules, blacklists, network links, service
//! manager, workers, the decoder.

pub mod alarm;
pub mod arrival;
pub mod blacklist;
pub mod clock;
pub mod confine;
pub mod copy;
pub mod decoder;
pub mod directory;
pub mod drivers;
pub mod kmsg;
pub mod limit;
pub mod modprobe;
pub mod modules;
pub mod net;
pub mod notify;
pub mod pci;
pub mod plymouth;
pub mod priority;
pub mod readiness;
pub mod root;
pub mod stderr;
pub mod terminal;
pub mod worker;

/// The kernel's id of this boot (random(4)).
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How the names of the profiles begin that `up` writes for NetworkManager and systemd-networkd.
pub const PROFILE: &str = "10-ibboot-";
/// The same of a profile of systemd-networkd after the one that matches by property.
pub const PROFILE_BY_NAME: &str = "11-ibboot-";
