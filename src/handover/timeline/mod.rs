// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: where the boot time went: shares, a lane for each port, and the critical chain, as text, SVG
//! and JSON.

mod lanes;
mod shares;
mod svg;
mod text;

use serde::{Deserialize, Serialize};

use crate::handover::{Mark, Outcome, Phase, State};
use crate::verify::report::Report;

/// More marks than this are not shown: a file that has them was not written by `up`.
const MOST: usize = 4096;

/// `ibboot timeline --format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Version of the JSON format.
    pub schema: u32,
    /// Host name; none if unknown.
    pub host: Option<String>,
    /// Release of the kernel; none if unknown.
    pub kernel: Option<String>,
    /// The verdict in the initramfs.
    pub outcome: Outcome,
    /// The marks in order of time.
    pub marks: Vec<Mark>,
}

/// The machine of a timeline.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Host name; none if unknown.
    pub host: Option<String>,
    /// Release of the kernel; none if unknown.
    pub kernel: Option<String>,
}

/// Combines the marks of the initramfs with those of the check after boot.
pub fn timeline(state: &State, check: Option<&Report>, machine: Machine) -> Timeline {
    let moment = |phase, start_ns| Mark {
        phase,
        start_ns,
        ..Mark::default()
    };
    let mut marks = vec![moment(Phase::KernelStart, 0)];
    marks.extend(state.marks.iter().cloned());
    marks.extend(check.map(|report| moment(Phase::CheckedAfterBoot, report.taken_ns)));
    marks.sort_by_key(|mark| mark.start_ns);
    marks.truncate(MOST);
    Timeline {
        schema: crate::SCHEMA,
        host: machine.host,
        kernel: machine.kernel,
        outcome: state.outcome,
        marks,
    }
}

impl Timeline {
    /// When the boot went on: the scale of everything, ns since kernel start, at least 1. Without a
    /// handover the last mark.
    fn end_ns(&self) -> u64 {
        let last = |mark: &Mark| mark.end_ns.unwrap_or(mark.start_ns);
        let handed_over = self.first(Phase::HandedOver);
        let in_initramfs = self.marks.iter();
        let in_initramfs = in_initramfs.filter(|mark| mark.phase != Phase::CheckedAfterBoot);
        let end = handed_over.or_else(|| in_initramfs.map(last).max());
        end.unwrap_or(0).max(1)
    }

    /// When a phase of the whole boot was reached first, ns since kernel start.
    fn first(&self, phase: Phase) -> Option<u64> {
        let mut of_phase = self.marks.iter().filter(|mark| mark.phase == phase);
        of_phase.next().map(|mark| mark.start_ns)
    }

    /// One line: which machine, and how its boot ended.
    fn title(&self) -> String {
        let host = self.host.as_deref().unwrap_or("this machine");
        let kernel = self.kernel.as_ref();
        let kernel = kernel.map_or(String::new(), |kernel| format!(", Linux {kernel}"));
        let outcome = match self.outcome {
            Outcome::Verified => "verified",
            _ => "not verified",
        };
        let seconds = shares::tenths(self.end_ns());
        let text = format!("{host}{kernel}: {outcome}, handed over after {seconds} s");
        crate::error::printable(&text)
    }
}

/// Moments between 0 and `end_ns`, at most `most` of them, at a round distance: ns, and the seconds as
/// text.
fn ticks(end_ns: u64, most: u64) -> Vec<(u64, String)> {
    const TENTH: u64 = 100_000_000;
    let decades = (0..8).map(|n| TENTH * 10_u64.pow(n));
    let steps = decades.flat_map(|decade| [decade, 2 * decade, 5 * decade]);
    let step = steps
        .into_iter()
        .find(|step| end_ns / step < most)
        .unwrap_or(u64::MAX);
    let at = (0..=end_ns / step).map(|n| n * step);
    at.map(|ns| (ns, shares::short(ns))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let words = |end_ns, most| {
            let ticks = ticks(end_ns, most).into_iter();
            ticks.map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(44_000_000_000, 6), "0 10 20 30 40");
        assert_eq!(words(3_716_000_000, 6), "0 1 2 3");
        assert_eq!(words(400_000_000, 6), "0 0.1 0.2 0.3 0.4");
        assert_eq!(words(1, 6), "0");
        assert_eq!(ticks(u64::MAX, 6).len(), 2);
    }
}
