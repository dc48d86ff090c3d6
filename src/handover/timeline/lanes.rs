// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what happened on each port, bond and server, side by side.

use super::Timeline;
use crate::handover::{Mark, Phase};
use crate::verify::checks::Awaits;

/// What fills a stretch of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// A wait.
    Wait(Awaits),
    /// The load of a module.
    Load,
}

/// One row of the picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// `drivers`, or a link or server as in reports.
    pub name: String,
    /// Start and end (ns since kernel start), and what filled the time between them.
    pub spans: Vec<(u64, u64, Fill)>,
    /// When the link was verified or the server answered; none: it did not before the handover.
    pub verified_ns: Option<u64>,
}

/// Whether a mark of `object` belongs to the lane of `name`: `ib0` is `ib0 (mlx5_0/1)` before the port
/// is known.
pub fn is_of(object: &str, name: &str) -> bool {
    let rest = name.strip_prefix(object);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}

impl Timeline {
    /// A lane for the drivers, and one for each link and server, in the order of their first mark.
    pub(super) fn lanes(&self) -> Vec<Lane> {
        let end = self.end_ns();
        let is_lane =
            |phase: Phase| matches!(phase, Phase::Wait | Phase::Verified | Phase::ServerAnswered);
        let of_lanes = self.marks.iter();
        let of_lanes = of_lanes.filter(|mark| is_lane(mark.phase) && mark.start_ns <= end);
        let objects: Vec<&str> = of_lanes.map(|mark| mark.object.as_str()).collect();
        let mut names: Vec<&str> = Vec::new();
        for object in &objects {
            // The longest name is the one with the port.
            let name = objects
                .iter()
                .find(|name| is_of(object, name) && *name != object);
            let name = name.unwrap_or(object);
            if !names.contains(name) {
                names.push(name);
            }
        }
        let drivers = self.marks.iter().filter(|mark| mark.phase == Phase::Driver);
        let drivers = drivers.filter_map(|mark| self.span(mark, Fill::Load));
        let drivers = Lane {
            name: "drivers".to_owned(),
            spans: drivers.collect(),
            verified_ns: None,
        };
        let lane = |name: &&str| Lane {
            name: (*name).to_owned(),
            spans: self.spans_of(name),
            verified_ns: self.verified(name).filter(|ns| *ns <= end),
        };
        let has_drivers = !drivers.spans.is_empty();
        let lanes = has_drivers.then_some(drivers).into_iter();
        lanes.chain(names.iter().map(lane)).collect()
    }

    fn spans_of(&self, name: &str) -> Vec<(u64, u64, Fill)> {
        let waits = self.waits().filter(|(mark, _)| is_of(&mark.object, name));
        let spans = waits.filter_map(|(mark, awaits)| self.span(mark, Fill::Wait(awaits)));
        spans.collect()
    }

    /// The part of a span before the handover; none if the span has no such part.
    fn span(&self, mark: &Mark, fill: Fill) -> Option<(u64, u64, Fill)> {
        let to_ns = mark.end_ns?.min(self.end_ns());
        (mark.start_ns < to_ns).then_some((mark.start_ns, to_ns, fill))
    }

    fn verified(&self, name: &str) -> Option<u64> {
        let is_it = |phase| matches!(phase, Phase::Verified | Phase::ServerAnswered);
        let mut found = self.marks.iter();
        let found = found.find(|mark| is_it(mark.phase) && mark.object == name);
        found.map(|mark| mark.start_ns)
    }
}
