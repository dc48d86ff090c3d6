// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: since when each link and server that `up` waits for has its trouble, and since when the trouble
//! is blamed: not while something is underway that may end it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::voice::{self, Subject, Underway};
use crate::verify::checks::Id;
use crate::verify::finding::Finding;

/// A trouble is not blamed while its driver is at work, but a card that logs errors without end is:
/// after so many changes.
const BUSY: u32 = 5;

/// The troubles of the last look.
#[derive(Debug, Default)]
pub struct Troubles {
    /// By key of the subject.
    by_key: BTreeMap<String, Trouble>,
    underway: Underway,
}

/// The check of a subject that fails; times in ns since kernel start.
#[derive(Debug, Clone)]
struct Trouble {
    check: Id,
    found: Option<String>,
    /// How often `found` has changed while nothing was underway.
    changes: u32,
    since_ns: u64,
    /// From when on the trouble counts as unusual: not while something is underway that may end it.
    blamed_ns: u64,
}

impl Trouble {
    /// Whether the driver has shown more or less since the last look: the driver is at work.
    fn is_of_busy_driver(&self, finding: &Finding) -> bool {
        let has_changed = self.found != finding.found;
        Underway::Drivers.may_end(self.check) && has_changed && self.changes < BUSY
    }
}

impl Troubles {
    /// Dates the trouble of each subject.
    pub fn date(&mut self, subjects: &[Subject<'_>], underway: Underway, now_ns: u64) {
        let known = std::mem::take(&mut self.by_key);
        let before = std::mem::replace(&mut self.underway, underway);
        for subject in subjects {
            let Some(finding) = subject.trouble else {
                continue;
            };
            let check = finding.check;
            let same = known.get(&subject.key).filter(|old| old.check == check);
            // What has ended since the last look ended at an unknown time.
            let is_excused = underway.may_end(check) || before.may_end(check);
            let is_busy = !is_excused && same.is_some_and(|old| old.is_of_busy_driver(finding));
            let mut trouble = Trouble {
                check,
                found: finding.found.clone(),
                changes: same.map_or(0, |old| old.changes) + u32::from(is_busy),
                since_ns: same.map_or(now_ns, |old| old.since_ns),
                blamed_ns: same.map_or(now_ns, |old| old.blamed_ns),
            };
            if is_excused || is_busy {
                trouble.blamed_ns = now_ns;
            }
            self.by_key.insert(subject.key.clone(), trouble);
        }
    }

    /// How long the trouble of a subject lasts.
    pub fn age_ns(&self, subject: &Subject<'_>, now_ns: u64) -> u64 {
        let trouble = self.by_key.get(&subject.key);
        trouble.map_or(0, |trouble| now_ns.saturating_sub(trouble.since_ns))
    }

    /// How long the trouble of a subject counts as unusual.
    pub fn blamed_for_ns(&self, subject: &Subject<'_>, now_ns: u64) -> u64 {
        let trouble = self.by_key.get(&subject.key);
        trouble.map_or(0, |trouble| now_ns.saturating_sub(trouble.blamed_ns))
    }

    /// The time until a trouble counts as unusual, which is logged without an event.
    pub fn next_grown(&self, now_ns: u64) -> Option<Duration> {
        let grown = self.by_key.values().filter_map(|trouble| {
            let at = trouble
                .blamed_ns
                .saturating_add(voice::usual_ns(trouble.check));
            at.checked_sub(now_ns).filter(|left| *left > 0)
        });
        grown.min().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::clock::SECOND;
    use crate::verify::report::LinkReport;
    use crate::wish::expectation::LinkWish;

    fn link(finding: Finding) -> LinkReport {
        LinkReport::new(&LinkWish::default(), None, vec![finding])
    }

    #[test]
    fn a_driver_that_is_still_loading_is_not_blamed() {
        let gone = [link(Finding::failed(Id::DevicePresent, "none", "ib0"))];
        let subjects: Vec<Subject<'_>> = gone.iter().map(Subject::of_link).collect();
        let mut troubles = Troubles::default();
        for (now_s, underway, expected) in [
            (5, Underway::Drivers, 0),
            (30, Underway::Drivers, 0),
            (31, Underway::Nothing, 0),
            (32, Underway::Nothing, 1),
        ] {
            let now_ns = now_s * SECOND;
            troubles.date(&subjects, underway, now_ns);
            assert_eq!(
                troubles.blamed_for_ns(&subjects[0], now_ns),
                expected * SECOND
            );
            let age_ns = troubles.age_ns(&subjects[0], now_ns);
            assert_eq!(age_ns, (now_s - 5) * SECOND, "it lasts all the same");
        }
    }

    #[test]
    fn a_card_that_logs_errors_without_end_is_blamed() {
        let mut troubles = Troubles::default();
        let blamed_s = (0..20_u64).map(|now_s| {
            let line = format!("mlx5_0 at 0000:81:00.0: command timeout {now_s}");
            let finding = Finding::failed(Id::HcaDevice, &line, "an RDMA device");
            let links = [link(finding)];
            let subjects: Vec<Subject<'_>> = links.iter().map(Subject::of_link).collect();
            troubles.date(&subjects, Underway::Nothing, now_s * SECOND);
            troubles.blamed_for_ns(&subjects[0], now_s * SECOND) / SECOND
        });
        let expected = (0..20).map(|now_s: u64| now_s.saturating_sub(u64::from(BUSY)));
        assert_eq!(blamed_s.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn an_interface_that_waits_for_its_name_is_not_blamed() {
        let down = [link(Finding::failed(Id::IpoibUp, "down", "up"))];
        let subjects: Vec<Subject<'_>> = down.iter().map(Subject::of_link).collect();
        let mut troubles = Troubles::default();
        let mut blamed_s = |underway, now_s| {
            troubles.date(&subjects, underway, now_s * SECOND);
            troubles.blamed_for_ns(&subjects[0], now_s * SECOND) / SECOND
        };
        assert_eq!(blamed_s(Underway::Names, 5), 0);
        assert_eq!(blamed_s(Underway::Names, 9), 0);
        // It may have got its name just now.
        assert_eq!(blamed_s(Underway::Drivers, 10), 0);
        // A driver sets nothing.
        assert_eq!(blamed_s(Underway::Drivers, 11), 1);
        assert_eq!(blamed_s(Underway::Nothing, 13), 3);
    }

    #[test]
    fn a_device_that_does_not_answer_is_blamed_while_drivers_load() {
        let silent = [link(Finding::unanswered(
            Id::DeviceAnswers,
            "mlx5_0 has not answered",
        ))];
        let subjects: Vec<Subject<'_>> = silent.iter().map(Subject::of_link).collect();
        let mut troubles = Troubles::default();
        for now_s in [5, 30] {
            troubles.date(&subjects, Underway::Drivers, now_s * SECOND);
        }
        let blamed_for_ns = troubles.blamed_for_ns(&subjects[0], 30 * SECOND);
        assert_eq!(blamed_for_ns, 25 * SECOND);
    }

    #[test]
    fn a_trouble_grows_at_the_end_of_its_usual_time() {
        let mut troubles = Troubles::default();
        assert_eq!(troubles.next_grown(0), None);
        let state = link(Finding::failed(Id::PortState, "INIT", "ACTIVE"));
        troubles.date(&[Subject::of_link(&state)], Underway::Nothing, SECOND);
        let grown = troubles.next_grown(4 * SECOND);
        assert_eq!(grown, Some(Duration::from_secs(7)), "cause and remedy");
        assert_eq!(troubles.next_grown(11 * SECOND), None);
    }
}
