// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what each link and server waits for, as spans of the timeline.

use std::collections::BTreeMap;

use super::voice::Subject;
use crate::handover::{Mark, Phase};
use crate::verify::checks::Awaits;

/// A link that changes without end fills no file: so many waits of one subject are kept.
const KEPT: u32 = 20;

/// The waits of one run.
#[derive(Debug, Default)]
pub struct Waits {
    /// By key of the subject.
    open: BTreeMap<String, Open>,
    /// By key of the subject: how many waits ended.
    ended: BTreeMap<String, u32>,
}

#[derive(Debug)]
struct Open {
    object: String,
    awaits: Awaits,
    since_ns: u64,
}

impl Open {
    fn until(&self, now_ns: u64) -> Mark {
        Mark {
            phase: Phase::Wait,
            object: self.object.clone(),
            start_ns: self.since_ns,
            end_ns: Some(now_ns),
            awaited: Some(self.awaits),
        }
    }
}

impl Waits {
    /// Takes what is awaited now; returns the waits that ended, as spans.
    pub fn follow(&mut self, subjects: &[Subject<'_>], now_ns: u64) -> Vec<Mark> {
        let awaited: BTreeMap<&str, Awaits> = subjects
            .iter()
            .filter_map(|subject| {
                let awaits = subject.trouble?.check.row().awaits;
                Some((subject.key.as_str(), awaits))
            })
            .collect();
        let mut marks = Vec::new();
        for (key, open) in std::mem::take(&mut self.open) {
            if awaited.get(key.as_str()) == Some(&open.awaits) {
                self.open.insert(key, open);
                continue;
            }
            let ended = self.ended.entry(key).or_default();
            if *ended < KEPT && open.since_ns < now_ns {
                *ended += 1;
                marks.push(open.until(now_ns));
            }
        }
        for subject in subjects {
            if let Some(awaits) = awaited.get(subject.key.as_str()) {
                let open = || Open {
                    object: subject.object.clone(),
                    awaits: *awaits,
                    since_ns: now_ns,
                };
                self.open.entry(subject.key.clone()).or_insert_with(open);
            }
        }
        marks
    }

    /// The waits that still last, as spans until now.
    pub fn open(&self, now_ns: u64) -> Vec<Mark> {
        let lasting = self.open.values().filter(|open| open.since_ns < now_ns);
        lasting.map(|open| open.until(now_ns)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::checks::Id;
    use crate::verify::report::{Finding, LinkReport};
    use crate::wish::expectation::LinkWish;

    fn link(check: Option<Id>) -> [LinkReport; 1] {
        let wish = LinkWish {
            target: "ib0".to_owned().into(),
            ..LinkWish::default()
        };
        let findings = check.map(|check| Finding::failed(check, "", ""));
        [LinkReport::new(&wish, None, findings.into_iter().collect())]
    }

    fn follow(waits: &mut Waits, check: Option<Id>, now_ns: u64) -> Vec<(Awaits, u64, u64)> {
        let links = link(check);
        let subjects: Vec<Subject<'_>> = links.iter().map(Subject::of_link).collect();
        let marks = waits.follow(&subjects, now_ns).into_iter();
        let spans = marks.map(|mark| (mark.awaited.unwrap(), mark.start_ns, mark.end_ns.unwrap()));
        spans.collect()
    }

    #[test]
    fn a_wait_ends_when_something_else_is_awaited() {
        let mut waits = Waits::default();
        assert_eq!(follow(&mut waits, Some(Id::PortPhysicalState), 1), []);
        assert_eq!(
            follow(&mut waits, Some(Id::PortState), 5),
            [(Awaits::PhysicalLink, 1, 5)]
        );
        assert_eq!(
            follow(&mut waits, Some(Id::PortSmLid), 7),
            [],
            "the same subnet manager"
        );
        let open: Vec<u64> = waits.open(8).iter().map(|mark| mark.start_ns).collect();
        assert_eq!(open, [5]);
        assert_eq!(follow(&mut waits, None, 9), [(Awaits::SubnetManager, 5, 9)]);
        assert_eq!(waits.open(10), []);
    }

    #[test]
    fn a_link_that_flaps_fills_no_file() {
        let mut waits = Waits::default();
        let mut kept = 0;
        for round in 0..1000 {
            let check = (round % 2 == 0).then_some(Id::PortState);
            kept += follow(&mut waits, check, round).len();
        }
        assert_eq!(kept, KEPT as usize);
    }
}
