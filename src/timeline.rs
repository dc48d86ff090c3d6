// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the boot time went: marks to text bars and JSON. Pure.

use serde::{Deserialize, Serialize};

use crate::error::printable;
use crate::handover::State;
use crate::report::Report;
use crate::system::clock::seconds;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The kernel started: zero of the clock.
    KernelStart,
    /// `ibboot up` started.
    Started,
    /// A kernel module was loaded; a span.
    Driver,
    /// An RDMA device was seen.
    DeviceSeen,
    /// A port was seen ACTIVE.
    PortActive,
    /// All checks of a link passed.
    Verified,
    /// The state was handed over and the boot let go on.
    HandedOver,
    /// `ibboot check` looked again in the real root.
    CheckedAfterBoot,
}

impl Phase {
    fn words(self) -> &'static str {
        match self {
            Phase::KernelStart => "kernel start",
            Phase::Started => "ibboot up started",
            Phase::Driver => "driver",
            Phase::DeviceSeen => "device seen",
            Phase::PortActive => "port ACTIVE",
            Phase::Verified => "verified",
            Phase::HandedOver => "handed over",
            Phase::CheckedAfterBoot => "checked after boot",
        }
    }
}

/// A moment, or a span where `end_ns` is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// What happened.
    pub phase: Phase,
    /// To what: a module, `mlx5_0/1`; empty for the whole.
    pub object: String,
    /// ns since kernel start.
    pub start_ns: u64,
    /// ns since kernel start.
    pub end_ns: Option<u64>,
}

/// `ibboot timeline --format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Version of the shape.
    pub schema: u32,
    /// In order of time.
    pub marks: Vec<Mark>,
}

/// Puts together what the initramfs left and what the check after boot recorded.
pub fn timeline(state: &State, check: Option<&Report>) -> Timeline {
    let moment = |phase, start_ns| Mark {
        phase,
        object: String::new(),
        start_ns,
        end_ns: None,
    };
    let mut marks = vec![moment(Phase::KernelStart, 0)];
    marks.extend(state.marks.iter().cloned());
    marks.extend(check.map(|report| moment(Phase::CheckedAfterBoot, report.taken_ns)));
    marks.sort_by_key(|mark| mark.start_ns);
    Timeline {
        schema: crate::handover::SCHEMA,
        marks,
    }
}

const BAR: u64 = 40;

impl Timeline {
    /// A line per mark: seconds since kernel start, a bar, what happened.
    pub fn text(&self) -> String {
        let last = |mark: &Mark| mark.end_ns.unwrap_or(mark.start_ns);
        let end = self.marks.iter().map(last).max().unwrap_or(0).max(1);
        let position = |ns: u64| {
            usize::try_from(u128::from(ns) * u128::from(BAR - 1) / u128::from(end)).unwrap_or(0)
        };
        let mut out = String::new();
        for mark in &self.marks {
            let (from, to) = (position(mark.start_ns), position(last(mark)));
            let bar = match mark.end_ns {
                Some(_) => "=".repeat(to.saturating_sub(from) + 1),
                None => "|".to_owned(),
            };
            let took = mark.end_ns.map_or(String::new(), |end_ns| {
                format!("  ({} s)", seconds(end_ns.saturating_sub(mark.start_ns)))
            });
            let object = if mark.object.is_empty() {
                String::new()
            } else {
                format!(" {}", printable(&mark.object))
            };
            out.push_str(&format!(
                "{:>9}  {:<width$}  {}{object}{took}\n",
                seconds(mark.start_ns),
                format!("{}{bar}", " ".repeat(from)),
                mark.phase.words(),
                width = BAR as usize,
            ));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_to_scale() {
        let mark = |phase, object: &str, start_ns, end_ns| Mark {
            phase,
            object: object.to_owned(),
            start_ns,
            end_ns,
        };
        let timeline = Timeline {
            schema: 1,
            marks: vec![
                mark(Phase::KernelStart, "", 0, None),
                mark(
                    Phase::Driver,
                    "rdma_rxe",
                    2_000_000_000,
                    Some(4_000_000_000),
                ),
                mark(Phase::Verified, "rxe0/1", 4_000_000_000, None),
            ],
        };
        assert_eq!(
            timeline.text(),
            "    0.000  |                                         kernel start\n\
             \x20   2.000                     =====================  driver rdma_rxe  (2.000 s)\n\
             \x20   4.000                                         |  verified rxe0/1\n"
        );
    }
}
