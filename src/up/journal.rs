// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of the walk: marks of the timeline, failures, and lines that are logged only once.

use std::collections::BTreeSet;

use super::voice::Subject;
use super::waiting::Waiting;
use super::waits::Waits;
use crate::error::Error;
use crate::handover::{Mark, Phase};
use crate::system::clock::boottime_ns;
use crate::verify::report::Report;

/// Marks, failures and lines of one run.
#[derive(Debug, Default)]
pub struct Journal {
    /// The log lines about links and servers.
    pub waiting: Waiting,
    marks: Vec<Mark>,
    waits: Waits,
    /// Phase and object of the marks that are set once.
    marked: BTreeSet<String>,
    failures: Vec<String>,
    /// Interface, and a line or an action that happens once.
    once: BTreeSet<(String, String)>,
}

impl Journal {
    /// The journal of a walk with another plan. What the machine did stays, with the waits; what the plan
    /// before found good does not. The new one begins with these failures.
    pub fn anew(mut self, failures: Vec<String>) -> Journal {
        self.marks
            .retain(|mark| !matches!(mark.phase, Phase::Verified | Phase::ServerAnswered));
        let marked = self.marks.iter().map(|mark| key(mark.phase, &mark.object));
        Journal {
            failures,
            marked: marked.collect(),
            marks: self.marks,
            waits: self.waits,
            ..Journal::default()
        }
    }

    /// The phases that were reached, in the order in which they were marked.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Whether `object` has a mark of `phase`.
    pub fn has(&self, phase: Phase, object: &str) -> bool {
        let mut marks = self.marks.iter();
        marks.any(|mark| mark.phase == phase && mark.object == object)
    }

    /// Records what is awaited now.
    pub fn follow(&mut self, report: &Report) {
        self.waits.follow(&Subject::all(report), report.taken_ns);
    }

    /// The number of marks and of waits that ended: it grows with each of them.
    pub fn length(&self) -> usize {
        self.marks.len() + self.waits.ended()
    }

    /// The marks, with the waits that still last as spans until now.
    pub fn marks_until(&self, now_ns: u64) -> Vec<Mark> {
        let marks = self.marks.iter().cloned();
        marks.chain(self.waits.marks(now_ns)).collect()
    }

    /// The sentences of all failures, oldest first.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Marks the first time that `object` reaches `phase`; `at` in ns since kernel start; none:
    /// now.
    pub fn mark(&mut self, phase: Phase, object: &str, at: Option<u64>) {
        if self.marked.insert(key(phase, object)) {
            self.marks.push(Mark {
                phase,
                object: object.to_owned(),
                start_ns: at.unwrap_or_else(boottime_ns),
                ..Mark::default()
            });
        }
    }

    /// Marks a span; its start and its end (none: now) in ns since kernel start.
    pub fn mark_span(&mut self, phase: Phase, object: &str, start_ns: u64, end_ns: Option<u64>) {
        self.marks.push(Mark {
            phase,
            object: object.to_owned(),
            start_ns,
            end_ns: Some(end_ns.unwrap_or_else(boottime_ns)),
            ..Mark::default()
        });
    }

    /// Logs a failure and keeps the line for state.json.
    pub fn fail(&mut self, line: impl Into<String>) {
        let line = line.into();
        log::error!("{line}");
        self.failures.push(line);
    }

    /// Like [`Journal::fail`], once per line.
    pub fn fail_once(&mut self, line: String) {
        if !self.failures.contains(&line) {
            self.fail(line);
        }
    }

    /// Like [`Journal::fail`], once per interface and line.
    pub fn tell_once(&mut self, interface: &str, error: &Error) {
        let line = error.to_string();
        if self.is_first_time(interface, &line) {
            self.fail(line);
        }
    }

    /// Whether this interface has `what` for the first time. A setting that the kernel does not
    /// show as written would otherwise be logged at each look.
    pub fn is_first_time(&mut self, interface: &str, what: &str) -> bool {
        self.once.insert((interface.to_owned(), what.to_owned()))
    }
}

fn key(phase: Phase, object: &str) -> String {
    format!("{phase:?} {object}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::checks::Id;
    use crate::verify::finding::Finding;
    use crate::verify::report::LinkReport;
    use crate::wish::expectation::LinkWish;

    #[test]
    fn a_walk_with_another_plan_keeps_what_the_machine_did() {
        let mut first = Journal::default();
        first.mark_span(Phase::Driver, "mlx5_ib", 1, Some(2));
        first.mark(Phase::DeviceFound, "mlx5_0", Some(3));
        first.mark_span(Phase::Lease, "ib0", 4, Some(5));
        first.mark(Phase::Verified, "mlx5_0/1", Some(6));
        first.mark(Phase::ServerAnswered, "10.0.0.1", Some(7));
        let down = LinkReport {
            name: Some("mlx5_0/1".to_owned()),
            ..LinkReport::new(
                &LinkWish::default(),
                None,
                vec![Finding::failed(Id::PortState, "", "")],
            )
        };
        first.waits.follow(&[Subject::of_link(&down)], 3);
        let mut second = first.anew(vec!["invalid argument".to_owned()]);
        assert_eq!(second.failures(), ["invalid argument"]);
        second.mark(Phase::DeviceFound, "mlx5_0", Some(8));
        second.mark(Phase::Verified, "mlx5_0/1", Some(9));
        second.mark(Phase::ServerAnswered, "10.0.0.1", Some(10));
        second.waits.follow(&[Subject::of_link(&down)], 11);
        let marks = second.marks_until(12).into_iter();
        let marks: Vec<_> = marks.map(|mark| (mark.phase, mark.start_ns)).collect();
        assert_eq!(
            marks,
            [
                (Phase::Driver, 1),
                (Phase::DeviceFound, 3),
                (Phase::Lease, 4),
                (Phase::Verified, 9),
                (Phase::ServerAnswered, 10),
                (Phase::Wait, 3)
            ]
        );
    }

    #[test]
    fn a_phase_is_marked_once_per_object_and_a_failure_is_kept_once_per_interface() {
        let mut journal = Journal::default().anew(vec!["first".to_owned()]);
        journal.mark(Phase::PortActive, "mlx5_0/1", Some(5));
        journal.mark(Phase::PortActive, "mlx5_0/1", Some(7));
        journal.mark(Phase::Verified, "mlx5_0/1", Some(8));
        let starts: Vec<u64> = journal.marks().iter().map(|mark| mark.start_ns).collect();
        assert_eq!(starts, [5, 8]);
        let error = Error::new("ib0", "cannot be brought up");
        for interface in ["ib0", "ib0", "ib1"] {
            journal.tell_once(interface, &error);
        }
        journal.fail_once("first".to_owned());
        let line = "ib0: cannot be brought up";
        assert_eq!(journal.failures(), ["first", line, line]);
        assert!(!journal.is_first_time("ib1", line));
        assert!(journal.is_first_time("ib2", line));
    }
}
