// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the walk remembers of what it did: marks of the timeline, failures, and lines that are said
//! only once.

use std::collections::BTreeSet;

use super::log::Waiting;
use crate::error::Error;
use crate::handover::{Mark, Phase};
use crate::system::clock::boottime_ns;

/// Marks, failures and lines of one run.
#[derive(Debug, Default)]
pub struct Journal {
    /// What is said of links and servers.
    pub waiting: Waiting,
    marks: Vec<Mark>,
    /// Phase and object of the marks that are made once.
    marked: BTreeSet<String>,
    failures: Vec<String>,
    /// (interface, what), said or done once.
    told: BTreeSet<(String, String)>,
}

impl Journal {
    /// A journal that begins with failures.
    pub fn new(failures: Vec<String>) -> Journal {
        Journal {
            failures,
            ..Journal::default()
        }
    }

    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Marks the first time that `object` reaches `phase`; `at` in ns since kernel start, none: now.
    pub fn mark(&mut self, phase: Phase, object: &str, at: Option<u64>) {
        if self.marked.insert(format!("{phase:?} {object}")) {
            self.marks.push(Mark {
                phase,
                object: object.to_owned(),
                start_ns: at.unwrap_or_else(boottime_ns),
                end_ns: None,
            });
        }
    }

    /// Marks a span that ends now; its start in ns since kernel start.
    pub fn mark_span(&mut self, phase: Phase, object: &str, start_ns: u64) {
        self.marks.push(Mark {
            phase,
            object: object.to_owned(),
            start_ns,
            end_ns: Some(boottime_ns()),
        });
    }

    /// Says a failure and keeps it for state.json.
    pub fn fail(&mut self, line: impl Into<String>) {
        let line = line.into();
        log::error!("{line}");
        self.failures.push(line);
    }

    /// As [`Journal::fail`], once per line.
    pub fn fail_once(&mut self, line: String) {
        if !self.failures.contains(&line) {
            self.fail(line);
        }
    }

    /// Says a failure once per interface.
    pub fn tell_once(&mut self, interface: &str, error: &Error) {
        let line = error.to_string();
        if self.is_first_time(interface, &line) {
            self.fail(line);
        }
    }

    /// Whether `what` was not done to this interface before: what the kernel does not show as it was
    /// written is not a change for ever.
    pub fn is_first_time(&mut self, interface: &str, what: &str) -> bool {
        self.told.insert((interface.to_owned(), what.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_reaches_a_phase_once_and_a_failure_is_kept_once_per_interface() {
        let mut journal = Journal::new(vec!["first".to_owned()]);
        journal.mark(Phase::PortActive, "mlx5_0/1", Some(5));
        journal.mark(Phase::PortActive, "mlx5_0/1", Some(7));
        journal.mark(Phase::Verified, "mlx5_0/1", Some(8));
        let starts: Vec<u64> = journal.marks().iter().map(|mark| mark.start_ns).collect();
        assert_eq!(starts, [5, 8]);
        let error = Error::new("ib0", "cannot be set up");
        for interface in ["ib0", "ib0", "ib1"] {
            journal.tell_once(interface, &error);
        }
        journal.fail_once("first".to_owned());
        let line = "ib0: cannot be set up";
        assert_eq!(journal.failures(), ["first", line, line]);
        assert!(!journal.is_first_time("ib1", line));
        assert!(journal.is_first_time("ib2", line));
    }
}
