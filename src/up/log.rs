// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said while waiting: once per change, on the console from time to time, and at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::voice::{self, Subject};
use crate::system::clock::{SECOND, boottime_ns};
use crate::system::{notify::Manager, plymouth};
use crate::verify::checks::Id;
use crate::verify::report::Report;

/// A link that changes without end fills no log: so many times is it spoken of in [`WINDOW_NS`].
const SAYINGS: u32 = 30;
const WINDOW_NS: u64 = 60 * SECOND;
/// When the first line about the whole wait appears on the console, and how often it is repeated.
const FIRST: Duration = Duration::from_secs(5);
const EVERY: Duration = Duration::from_secs(15);

/// What was said, and since when it is true.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By key of the subject: the sentence that is true, and whether it was said.
    said: BTreeMap<String, (String, bool)>,
    /// By key of the subject: the check that fails, and since when, ns since kernel start.
    troubles: BTreeMap<String, (Id, u64)>,
    /// By key of the subject: how often something was said of it.
    brakes: BTreeMap<String, Brake>,
    /// The number of lines about the whole wait, and the last one.
    spoken: (u32, String),
    /// The verdict is known: the boot does not wait any more.
    is_over: bool,
}

/// How often one link was spoken of, and since when that is counted.
#[derive(Debug, Default)]
struct Brake {
    began_ns: u64,
    times: u32,
}

impl Brake {
    /// How many times it will have been in this window, this one included.
    fn count(&mut self, now_ns: u64) -> u32 {
        if now_ns.saturating_sub(self.began_ns) >= WINDOW_NS {
            *self = Brake {
                began_ns: now_ns,
                times: 0,
            };
        }
        self.times = self.times.saturating_add(1);
        self.times
    }
}

impl Waiting {
    /// Says what changed. While drivers are loading, nothing that a driver may still bring is a
    /// fault.
    pub fn say(&mut self, report: &Report, is_loading: bool, now_ns: u64) {
        let subjects = Subject::all(report);
        self.date(&subjects, is_loading, now_ns);
        for (level, line) in self.news(&subjects, now_ns) {
            log::log!(level, "{line}");
        }
    }

    /// Dates the trouble of each subject.
    fn date(&mut self, subjects: &[Subject<'_>], is_loading: bool, now_ns: u64) {
        let known = std::mem::take(&mut self.troubles);
        for subject in subjects {
            let Some(check) = subject.trouble.map(|finding| finding.check) else {
                continue;
            };
            let is_young = is_loading && voice::is_of_driver(check);
            let since = match known.get(&subject.key) {
                Some((same, since)) if *same == check && !is_young => *since,
                _ => now_ns,
            };
            self.troubles.insert(subject.key.clone(), (check, since));
        }
    }

    fn age_ns(&self, subject: &Subject<'_>, now_ns: u64) -> u64 {
        let since = self.troubles.get(&subject.key);
        since.map_or(0, |(_, since)| now_ns.saturating_sub(*since))
    }

    /// What has not been said of them.
    fn news(&mut self, subjects: &[Subject<'_>], now_ns: u64) -> Vec<(log::Level, String)> {
        // What is no longer in the report is no longer true: if it comes back, it is news.
        let here: BTreeSet<&String> = subjects.iter().map(|subject| &subject.key).collect();
        self.said.retain(|key, _| here.contains(key));
        let mut news = Vec::new();
        for subject in subjects {
            let lines = subject.lines(self.age_ns(subject, now_ns));
            let sentences: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
            let sentence = sentences.join("\n");
            if matches!(self.said.get(&subject.key), Some((same, true)) if *same == sentence) {
                continue;
            }
            let brake = self.brakes.entry(subject.key.clone()).or_default();
            let times = brake.count(now_ns);
            self.said
                .insert(subject.key.clone(), (sentence, times <= SAYINGS));
            if times <= SAYINGS {
                news.extend(lines);
            }
            if times == SAYINGS {
                let line = format!(
                    "{}: changes too often, the next minute is not told",
                    subject.object
                );
                news.push((log::Level::Warn, line));
            }
        }
        news
    }

    /// When something is to be said without an event: the time from now.
    pub fn due(&self, elapsed: Duration, now_ns: u64) -> Duration {
        let grown = self.troubles.values().filter_map(|(check, since)| {
            let at = since + voice::usual_ns(*check);
            at.checked_sub(now_ns).filter(|left| *left > 0)
        });
        let grown = grown.map(Duration::from_nanos);
        let line = match self.is_over {
            true => Duration::MAX,
            false => self.next_line().saturating_sub(elapsed),
        };
        grown.fold(line, Duration::min)
    }

    /// The time of the next line about the whole wait, from the start of `up`.
    fn next_line(&self) -> Duration {
        FIRST + EVERY * self.spoken.0
    }

    /// One line about the whole wait, if its time has come, at a level that a `quiet` console shows;
    /// the same text for the service manager and for a boot splash.
    pub fn speak(
        &mut self,
        report: &Report,
        is_loading: bool,
        (elapsed, timeout): (Duration, Duration),
    ) {
        if self.is_over || elapsed < self.next_line() {
            return;
        }
        let now_ns = report.taken_ns;
        let subjects: Vec<(Subject<'_>, u64)> = Subject::all(report)
            .into_iter()
            .map(|subject| {
                let age = self.age_ns(&subject, now_ns);
                (subject, age)
            })
            .collect();
        let shortfall = report.shortfall.as_deref().unwrap_or("more links");
        let otherwise = if is_loading {
            "drivers are loading"
        } else {
            shortfall
        };
        let line = voice::progress(&subjects, otherwise, (elapsed, timeout));
        // The kernel prints level err on a quiet console (console_loglevel 4).
        log::error!("{line}");
        Manager::of_environment().status(&line);
        plymouth::show(&format!("ibboot: {line}"));
        // A look that came late is followed by one line, not by several.
        while self.next_line() <= elapsed {
            self.spoken.0 += 1;
        }
        self.spoken.1 = line;
    }

    /// The wait is over. True if a line about the wait is on the console: the verdict follows there.
    pub fn end(&mut self, verdict: &str) -> bool {
        self.is_over = true;
        Manager::of_environment().status(verdict);
        let (times, line) = &self.spoken;
        if *times > 0 {
            plymouth::hide(&format!("ibboot: {line}"));
        }
        *times > 0
    }

    /// The last words: every link that is not verified, and for how long it is as it is.
    pub fn give_up(&self, report: &Report, timeout: Duration) {
        let level = match report.satisfied {
            true => log::Level::Warn,
            false => log::Level::Error,
        };
        if let Some(shortfall) = &report.shortfall {
            log::error!("{shortfall} (deadline {} s)", timeout.as_secs());
        }
        let now_ns = boottime_ns();
        for subject in Subject::all(report) {
            let age_s = self.age_ns(&subject, now_ns) / SECOND;
            for line in subject.last_words(age_s) {
                log::log!(level, "{line}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::checks::Id;
    use crate::verify::report::{Finding, LinkReport};
    use crate::wish::expectation::LinkWish;

    fn link(target: &str, name: Option<&str>, finding: Finding) -> LinkReport {
        let wish = LinkWish {
            target: target.to_owned().into(),
            ..LinkWish::default()
        };
        LinkReport {
            name: name.map(str::to_owned),
            ..LinkReport::new(&wish, None, vec![finding])
        }
    }

    fn news(waiting: &mut Waiting, links: &[LinkReport], now_ns: u64) -> Vec<String> {
        let subjects: Vec<Subject<'_>> = links.iter().map(Subject::of_link).collect();
        waiting.date(&subjects, false, now_ns);
        said(waiting.news(&subjects, now_ns))
    }

    fn said(news: Vec<(log::Level, String)>) -> Vec<String> {
        let line = |(level, line)| format!("{level} {line}");
        news.into_iter().map(line).collect()
    }

    #[test]
    fn a_port_that_went_and_came_back_is_news_again() {
        let down = link(
            "ib0",
            Some("mlx5_0/1"),
            Finding::failed(Id::PortState, "INIT", "ACTIVE").hint(""),
        );
        let gone = link(
            "ib0",
            None,
            Finding::failed(Id::DevicePresent, "none", "ib0").hint(""),
        );
        let mut waiting = Waiting::default();
        let told = vec!["INFO mlx5_0/1: waiting for the subnet manager".to_owned()];
        assert_eq!(
            news(&mut waiting, std::slice::from_ref(&down), 5),
            told.clone()
        );
        assert_eq!(news(&mut waiting, std::slice::from_ref(&down), 6).len(), 0);
        assert_eq!(
            news(&mut waiting, &[gone], 7),
            ["INFO ib0: waiting for its driver"]
        );
        assert_eq!(news(&mut waiting, std::slice::from_ref(&down), 8), told);
        let since: Vec<u64> = waiting.troubles.values().map(|(_, since)| *since).collect();
        assert_eq!(since, [8]);
    }

    #[test]
    fn forty_ports_that_any_port_means_do_not_silence_each_other() {
        let state = |check: Id| -> Vec<LinkReport> {
            let one = |port: u32| {
                let finding = Finding::failed(check, "", "").hint("");
                link("any port", Some(&format!("mlx5_{port}/1")), finding)
            };
            (0..40).map(one).collect()
        };
        let mut waiting = Waiting::default();
        for (round, found) in [Id::PortPhysicalState, Id::PortState]
            .into_iter()
            .enumerate()
        {
            let told = news(&mut waiting, &state(found), round as u64);
            assert_eq!(told.len(), 40, "{told:?}");
        }
    }

    #[test]
    fn a_port_that_flaps_does_not_fill_the_log_and_its_last_state_is_told() {
        let state = |check: Id| {
            let finding = Finding::failed(check, "INIT", "ACTIVE").hint("");
            [link("ib0", Some("mlx5_0/1"), finding)]
        };
        let mut waiting = Waiting::default();
        let mut told = Vec::new();
        for round in 0..1000_u64 {
            let found = if round % 2 == 0 {
                Id::PortPhysicalState
            } else {
                Id::PortState
            };
            told.extend(news(&mut waiting, &state(found), round));
        }
        assert_eq!(told.len(), 31);
        assert_eq!(
            told.last().map(String::as_str),
            Some("WARN mlx5_0/1: changes too often, the next minute is not told")
        );
        assert_eq!(
            news(&mut waiting, &state(Id::PortState), WINDOW_NS - 1).len(),
            0,
            "still the same minute"
        );
        assert_eq!(
            news(&mut waiting, &state(Id::PortState), WINDOW_NS),
            ["INFO waiting: mlx5_0/1: port is not ACTIVE: INIT, expected ACTIVE [port.state]"]
        );
        let since: Vec<u64> = waiting.troubles.values().map(|(_, since)| *since).collect();
        assert_eq!(
            since,
            [999],
            "since when it is so, not since when it is told"
        );
    }

    #[test]
    fn a_driver_that_is_still_loading_is_not_blamed() {
        let gone = [link(
            "ib0",
            None,
            Finding::failed(Id::DevicePresent, "none", "ib0"),
        )];
        let subjects: Vec<Subject<'_>> = gone.iter().map(Subject::of_link).collect();
        let mut waiting = Waiting::default();
        let age = |waiting: &Waiting, now| waiting.age_ns(&subjects[0], now) / SECOND;
        for (now_s, is_loading, expected) in [(5, true, 0), (30, true, 0), (31, false, 1)] {
            waiting.date(&subjects, is_loading, now_s * SECOND);
            assert_eq!(age(&waiting, now_s * SECOND), expected);
        }
    }

    #[test]
    fn the_first_line_about_the_wait_comes_after_5_s_and_then_every_15_s() {
        let mut waiting = Waiting::default();
        let seconds = Duration::from_secs;
        assert_eq!(waiting.due(seconds(3), 0), seconds(2));
        waiting.spoken.0 = 2;
        assert_eq!(waiting.next_line(), seconds(35));
        let state = link(
            "ib0",
            None,
            Finding::failed(Id::PortState, "INIT", "ACTIVE"),
        );
        waiting.date(&[Subject::of_link(&state)], false, SECOND);
        assert_eq!(
            waiting.due(seconds(10), 4 * SECOND),
            seconds(7),
            "cause and remedy"
        );
        assert_eq!(waiting.due(seconds(10), 11 * SECOND), seconds(25));
    }

    #[test]
    fn a_good_link_with_a_warning_is_said_to_be_verified_and_warned_of() {
        let limited = Finding::failed(Id::PortPkey, "0x7fff", "full membership")
            .hint("")
            .as_warning();
        let mut waiting = Waiting::default();
        assert_eq!(
            news(&mut waiting, &[link("ib0", Some("mlx5_0/1"), limited)], 1),
            [
                "INFO mlx5_0/1: verified: ",
                "WARN mlx5_0/1: not in the partition: 0x7fff, expected full membership [port.pkey]",
            ]
        );
    }

    #[test]
    fn a_warning_is_no_diagnosis_while_something_fails() {
        let limited = Finding::failed(Id::PortPkey, "0x7fff", "").as_warning();
        let carrier = Finding::failed(Id::IpoibCarrier, "none", "carrier").hint("");
        let mut report = link("ib0", Some("mlx5_0/1"), limited);
        report.checks.push(carrier);
        assert_eq!(
            report.trouble().map(|trouble| trouble.check),
            Some(Id::IpoibCarrier)
        );
        report.checks.pop();
        assert_eq!(
            report.trouble().map(|trouble| trouble.check),
            Some(Id::PortPkey)
        );
    }
}
