// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the turns of dracut's hooks after the verdict: over which interfaces dracut continues,
//! when a mount is tried again, and when the boot may continue. The files of /run/ibboot are in
//! [`files`].

pub mod files;

use crate::handover::Outcome;

/// Seconds between the end of an attempt without a root file system and the next attempt.
const AGAIN_AFTER: u64 = 5;
/// An attempt that has not returned is reported each time this many seconds have passed.
const REPORT_EVERY: u64 = 30;

/// What the turns depend on.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Seconds since kernel start.
    pub now_s: u64,
    /// The first line of the result; none before the result is written.
    pub verdict: Option<Outcome>,
    /// The user has left the emergency shell of `rd.ib.onfail=shell`.
    pub is_shell_left: bool,
    /// Interfaces that `ibboot up` configured, the boot device first.
    pub interfaces: Vec<Interface>,
    /// Interfaces of other network modules for which `/sbin/netroot` was held until the verdict.
    pub held: Vec<Held>,
    pub last: Option<Attempt>,
    /// The root file system.
    pub root: RootPath,
    /// Whether the root file system is mounted.
    pub is_mounted: bool,
    /// Whether a file of nvme-cli names a server.
    pub has_nvme_server: bool,
    /// Whether the kernel has an NVMe controller over a transport of these files.
    pub is_nvme_connected: bool,
}

/// An interface that `ibboot up` configured.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Whether the interface is verified.
    pub is_online: bool,
    /// Whether dracut continued over the interface before.
    pub had_turn: bool,
}

/// An interface of another network module.
#[derive(Debug, Clone)]
pub struct Held {
    /// The argument of the `/sbin/netroot` call; dracut passes the name of the boot device
    /// whichever interface is up.
    pub name: String,
    /// Whether the held call was made up for.
    pub had_turn: bool,
}

/// An attempt of dracut to continue over some interfaces, in a shell beside dracut's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub stage: Stage,
    /// When the attempt began or, if the attempt has ended, when it ended: seconds since kernel
    /// start.
    pub since: u64,
    /// Interfaces and root file system, for messages.
    pub what: String,
    /// Age of the attempt in seconds at the last report that it has not returned; 0: no
    /// report yet.
    pub reported: u64,
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// `/sbin/netroot` has not returned for all of the interfaces.
    Running,
    /// The attempt only connects to NVMe servers again, and has not returned.
    Connecting,
    Ended,
}

impl Stage {
    const ALL: [Stage; 3] = [Stage::Running, Stage::Connecting, Stage::Ended];

    /// The word in the file of the attempt, which hold.sh and emergency.sh read too.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Running => "running",
            Stage::Connecting => "connecting",
            Stage::Ended => "ended",
        }
    }

    /// The stage with this word.
    pub fn of_word(word: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.word() == word)
    }
}

/// The root file system as in dracut's variable `netroot`, or from the DHCP server of the boot
/// device. Empty: no root file system is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootPath(pub Vec<u8>);

/// What a hook has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Nothing.
    Wait,
    /// Nothing, and dracut's clock stops: without ibboot dracut would wait for this attempt inside
    /// its queue, and a download or a login that lasts longer than `rd.retry=` is no failure.
    Hold,
    /// Nothing, after a report that the attempt has not returned.
    Report {
        /// Interfaces and root file system.
        what: String,
        /// Seconds since the attempt began.
        seconds: u64,
        /// Whether dracut's clock stops, as in [`Turn::Hold`].
        holds: bool,
    },
    /// Run these steps, one after another, beside dracut's queue.
    Go {
        steps: Vec<Step>,
        /// Interfaces and root file system, for messages.
        what: String,
        /// The earlier attempt that left no root file system, for the log.
        failed: Option<String>,
    },
}

/// A step of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// `source_hook initqueue/online NAME`.
    Online(String),
    /// `/sbin/netroot NAME`.
    Mount(String),
    /// `nvme connect-all`.
    Nvme,
}

impl Step {
    /// The step as a line that a hook reads.
    pub fn line(&self) -> String {
        match self {
            Step::Online(name) => format!("online {name}\n"),
            Step::Mount(name) => format!("mount {name}\n"),
            Step::Nvme => "nvme\n".to_owned(),
        }
    }
}

impl RootPath {
    /// True if dracut mounts such a root file system itself and does not report the result.
    fn is_mounted_by_netroot(&self) -> bool {
        let scheme = self.0.split(|byte| *byte == b':').next();
        matches!(scheme, Some(b"nfs" | b"nfs4" | b"cifs" | b"smb"))
    }

    /// The root path without secrets ([`kernel_cmdline::place`]). Bytes other than visible ASCII
    /// become `?`.
    fn shown(&self) -> String {
        let bytes = kernel_cmdline::place(&self.0).concat();
        let characters = bytes.iter().map(|byte| match byte {
            b'!'..=b'~' => char::from(*byte),
            _ => '?',
        });
        characters.collect()
    }
}

impl State {
    /// Whether an ended attempt left no root file system and the next attempt may mount it: a
    /// server may come up later. Attempts of other kinds report to dracut themselves.
    fn has_failed(&self) -> bool {
        self.lacks_mount() || (self.has_nvme_server && !self.is_nvme_connected)
    }

    fn lacks_mount(&self) -> bool {
        self.root.is_mounted_by_netroot() && !self.is_mounted
    }

    /// The verified interfaces with or without an earlier turn.
    fn ours(&self, had_turn: bool) -> impl Iterator<Item = &Interface> {
        let interfaces = self.interfaces.iter();
        interfaces.filter(move |interface| interface.is_online && interface.had_turn == had_turn)
    }

    /// The held interfaces with or without an earlier turn. A held call with the name of a verified
    /// interface of ours gets no turn of its own.
    fn others(&self, had_turn: bool) -> impl Iterator<Item = &Held> {
        let is_ours = |name: &str| {
            self.interfaces
                .iter()
                .any(|interface| interface.is_online && interface.name == name)
        };
        let held = self.held.iter();
        held.filter(move |held| held.had_turn == had_turn && !is_ours(&held.name))
    }

    fn names(&self, had_turn: bool) -> impl Iterator<Item = &str> {
        let ours = self.ours(had_turn).map(|interface| interface.name.as_str());
        ours.chain(self.others(had_turn).map(|held| held.name.as_str()))
    }

    fn steps(&self, names: &[&str]) -> Vec<Step> {
        let mut steps = Vec::new();
        for name in names {
            if self.ours(false).any(|interface| interface.name == *name) {
                steps.push(Step::Online((*name).to_owned()));
            }
            // A login is not repeated because an NVMe server does not answer.
            if self.names(false).any(|new| new == *name) || self.lacks_mount() {
                steps.push(Step::Mount((*name).to_owned()));
            }
        }
        // dracut connects to NVMe servers once, as soon as udev is quiet: before the network is up.
        steps.extend(self.has_nvme_server.then_some(Step::Nvme));
        steps
    }
}

/// What the hook must do after the verdict, on each turn of dracut's queue. An interface without an
/// earlier turn gets one turn; if the last attempt failed, interfaces with an earlier turn come
/// first and are tried again.
pub fn turn(state: &State) -> Turn {
    let mut failed = None;
    if let Some(last) = &state.last {
        let seconds = state.now_s.saturating_sub(last.since);
        if last.stage != Stage::Ended {
            // Such a mount may never return, and an NVMe server may never answer.
            let holds = !state.root.is_mounted_by_netroot() && last.stage == Stage::Running;
            return match seconds / REPORT_EVERY > last.reported / REPORT_EVERY {
                true => Turn::Report {
                    what: last.what.clone(),
                    seconds,
                    holds,
                },
                false if holds => Turn::Hold,
                false => Turn::Wait,
            };
        }
        if seconds >= AGAIN_AFTER && state.has_failed() {
            failed = Some(last.what.clone());
        }
    }
    let again = failed.iter().flat_map(|_| state.names(true));
    let names: Vec<&str> = again.chain(state.names(false)).collect();
    if names.is_empty() {
        return Turn::Wait;
    }
    let mut what = names.join(" ");
    if !state.root.0.is_empty() {
        what = format!("{what}: {}", state.root.shown());
    }
    Turn::Go {
        steps: state.steps(&names),
        what,
        failed,
    }
}

/// Whether dracut's queue may end: the verdict allows the boot to continue, and dracut continued
/// over each verified interface or the root file system is mounted. It never ends within an attempt
/// that downloads or unpacks: xCAT's root file system is mounted before it is complete. A repeated
/// connect to NVMe servers does neither: dracut itself waits for the disk.
pub fn may_go_on(state: &State) -> bool {
    let is_allowed = match state.verdict {
        Some(Outcome::Verified | Outcome::Continue) => true,
        Some(Outcome::Shell) => state.is_shell_left,
        Some(Outcome::Reboot) | None => false,
    };
    let last = state.last.as_ref();
    let is_ended = last.is_some_and(|last| last.stage != Stage::Running);
    let is_free = state.last.is_none() || is_ended || state.root.is_mounted_by_netroot();
    let had_turns =
        state.ours(false).next().is_none() && (is_ended || state.ours(true).next().is_none());
    is_allowed && is_free && (state.is_mounted || had_turns)
}

#[cfg(test)]
mod tests;
