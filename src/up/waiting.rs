// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log while `up` waits: a line per change, one for the console from time to time, and the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::progress::{Need, blocking, progress};
use super::troubles::Troubles;
use super::voice::{Subject, Underway};
use crate::error::printable;
use crate::system::clock::{SECOND, boottime_ns};
use crate::system::{notify::Manager, plymouth};
use crate::verify::ports;
use crate::verify::report::{LinkReport, Report};
use crate::wish::expectation::Expectation;

/// A link that changes without end fills no log: so many changes of it are logged in [`WINDOW_NS`].
const LOGGED: u32 = 30;
const WINDOW_NS: u64 = 60 * SECOND;
/// When the first line about the whole wait appears on the console, and how often it is repeated.
const FIRST: Duration = Duration::from_secs(5);
pub const EVERY: Duration = Duration::from_secs(15);

/// What was logged, and since when it is true.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By key of the subject: the sentence that is true, and whether it was logged.
    logged: BTreeMap<String, (String, bool)>,
    /// Since when each subject has its trouble.
    pub troubles: Troubles,
    /// By key of the subject: how many of its changes were counted.
    brakes: BTreeMap<String, Brake>,
    /// The number of lines about the whole wait.
    lines: u32,
    splash: plymouth::Message,
    /// The verdict is known: the boot does not wait any more.
    is_over: bool,
}

/// How many changes of one subject there were, and since when they are counted.
#[derive(Debug, Default)]
struct Brake {
    began_ns: u64,
    times: u32,
}

impl Brake {
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.began_ns) >= WINDOW_NS
    }

    /// The number of changes in this window, with this one.
    fn count(&mut self, now_ns: u64) -> u32 {
        if self.is_over(now_ns) {
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
    /// Logs what changed. Nothing that may still end by what is underway is a fault.
    pub fn log_changes(&mut self, report: &Report, underway: Underway, now_ns: u64) {
        let subjects = Subject::all(report);
        self.troubles.date(&subjects, underway, now_ns);
        for (level, line) in self.news(&subjects, now_ns) {
            log::log!(level, "{line}");
        }
    }

    /// The lines that were not logged yet.
    fn news(&mut self, subjects: &[Subject<'_>], now_ns: u64) -> Vec<(log::Level, String)> {
        // What is no longer in the report is no longer true: if it comes back, it is news.
        let here: BTreeSet<&String> = subjects.iter().map(|subject| &subject.key).collect();
        self.logged.retain(|key, _| here.contains(key));
        self.brakes
            .retain(|key, brake| here.contains(key) || !brake.is_over(now_ns));
        let mut news = Vec::new();
        for subject in subjects {
            let lines = subject.lines(self.troubles.blamed_for_ns(subject, now_ns));
            let sentences: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
            let sentence = sentences.join("\n");
            if matches!(self.logged.get(&subject.key), Some((same, true)) if *same == sentence) {
                continue;
            }
            let brake = self.brakes.entry(subject.key.clone()).or_default();
            let times = brake.count(now_ns);
            self.logged
                .insert(subject.key.clone(), (sentence, times <= LOGGED));
            if times <= LOGGED {
                news.extend(lines);
            }
            if times == LOGGED {
                let line = format!(
                    "{}: changes too often: no messages about this object for one minute",
                    subject.object
                );
                news.push((log::Level::Warn, line));
            }
        }
        news
    }

    /// The time of the next line about the whole wait, from the start of `up`; none after the wait.
    pub fn next_line(&self) -> Option<Duration> {
        (!self.is_over).then(|| self.line_after())
    }

    fn line_after(&self) -> Duration {
        FIRST + EVERY * self.lines
    }

    /// One line about the whole wait, if its time has come, at a level that a `quiet` console shows;
    /// the same text for the service manager and for a boot splash.
    pub fn speak(
        &mut self,
        report: &Report,
        expectation: &Expectation,
        are_drivers_busy: bool,
        elapsed: Duration,
        timeout: Duration,
    ) {
        if self.is_over || elapsed < self.line_after() {
            return;
        }
        let need = Need {
            expectation,
            verified: ports(&report.links, LinkReport::is_good),
            otherwise: otherwise(report, are_drivers_busy),
        };
        let blamed_for_ns =
            |subject: &Subject<'_>| self.troubles.blamed_for_ns(subject, report.taken_ns);
        let subjects = Subject::all(report);
        let line = progress(&subjects, blamed_for_ns, &need, elapsed, timeout);
        // The kernel prints level err on a quiet console (console_loglevel 4).
        log::error!("{line}");
        Manager::of_environment().status(&line);
        self.splash.show(&format!("ibboot: {line}"));
        // A look that came late is followed by one line, not by several.
        while self.line_after() <= elapsed {
            self.lines += 1;
        }
    }

    /// The wait is over. True if a line about the wait is on the console: the verdict follows there.
    pub fn end(&mut self, verdict: &str) -> bool {
        self.is_over = true;
        Manager::of_environment().status(verdict);
        self.splash.hide();
        self.lines > 0
    }

    /// The last lines: every link that is not verified, and for how long.
    pub fn give_up(&self, report: &Report, expectation: &Expectation, timeout: Duration) {
        if let Some(shortfall) = &report.shortfall {
            let shortfall = printable(shortfall);
            log::error!("{shortfall} (deadline {} s)", timeout.as_secs());
        }
        for (level, line) in self.last_words(report, expectation, boottime_ns()) {
            log::log!(level, "{line}");
        }
    }

    /// What the boot depends on first; the rest is marked, and never an error.
    fn last_words(
        &self,
        report: &Report,
        expectation: &Expectation,
        now_ns: u64,
    ) -> Vec<(log::Level, String)> {
        let level = match report.satisfied {
            true => log::Level::Warn,
            false => log::Level::Error,
        };
        let subjects = Subject::all(report);
        let blocking = blocking(&subjects, expectation);
        let is_required = |position: usize, subject: &Subject<'_>| {
            subject.required || !report.has_required() || blocking.contains(&position)
        };
        let (required, optional): (Vec<_>, Vec<_>) = subjects
            .iter()
            .enumerate()
            .partition(|&(position, subject)| is_required(position, subject));
        let mut lines = Vec::new();
        for (subjects, level, is_optional) in
            [(required, level, false), (optional, log::Level::Warn, true)]
        {
            for (_, subject) in subjects {
                let age_s = self.troubles.age_ns(subject, now_ns) / SECOND;
                let texts = subject.last_words(age_s, is_optional);
                lines.extend(texts.into_iter().map(|text| (level, text)));
            }
        }
        lines
    }
}

/// The cause of the wait if no link or server that is awaited has a trouble.
fn otherwise(report: &Report, are_drivers_busy: bool) -> &str {
    let mut servers = report.servers.iter();
    match &report.shortfall {
        _ if are_drivers_busy => "the drivers are still loading",
        Some(shortfall) => shortfall.as_str(),
        None if servers.any(|server| !server.is_answered()) => "a server has not answered yet",
        None => "a required link is not verified yet",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::plan::tests::planned;
    use crate::up::voice;
    use crate::verify::checks::Id;
    use crate::verify::finding::Finding;
    use crate::verify::verify;
    use crate::wish::bond::BondWish;
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
        waiting.troubles.date(&subjects, Underway::Nothing, now_ns);
        texts(waiting.news(&subjects, now_ns))
    }

    fn texts(lines: Vec<(log::Level, String)>) -> Vec<String> {
        let line = |(level, line)| format!("{level} {line}");
        lines.into_iter().map(line).collect()
    }

    fn age_ns(waiting: &Waiting, link: &LinkReport, now_ns: u64) -> u64 {
        waiting.troubles.age_ns(&Subject::of_link(link), now_ns)
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
        let logged = vec!["INFO mlx5_0/1: waiting for the subnet manager".to_owned()];
        assert_eq!(
            news(&mut waiting, std::slice::from_ref(&down), 5),
            logged.clone()
        );
        assert_eq!(news(&mut waiting, std::slice::from_ref(&down), 6).len(), 0);
        assert_eq!(
            news(&mut waiting, &[gone], 7),
            ["INFO ib0: waiting for the driver"]
        );
        assert_eq!(news(&mut waiting, std::slice::from_ref(&down), 8), logged);
        assert_eq!(age_ns(&waiting, &down, 10), 2);
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
            let logged = news(&mut waiting, &state(found), round as u64);
            assert_eq!(logged.len(), 40, "{logged:?}");
        }
    }

    #[test]
    fn a_port_that_flaps_does_not_fill_the_log_and_its_last_state_is_logged() {
        let state = |check: Id| {
            let finding = Finding::failed(check, "INIT", "ACTIVE").hint("");
            [link("ib0", Some("mlx5_0/1"), finding)]
        };
        let mut waiting = Waiting::default();
        let mut logged = Vec::new();
        for round in 0..1000_u64 {
            let found = if round % 2 == 0 {
                Id::PortPhysicalState
            } else {
                Id::PortState
            };
            logged.extend(news(&mut waiting, &state(found), round));
        }
        assert_eq!(logged.len(), 31);
        assert_eq!(
            logged.last().map(String::as_str),
            Some("WARN mlx5_0/1: changes too often: no messages about this object for one minute")
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
        assert_eq!(
            age_ns(&waiting, &state(Id::PortState)[0], WINDOW_NS),
            WINDOW_NS - 999,
            "since when it is so, not since when it is logged"
        );
    }

    #[test]
    fn an_hca_that_comes_back_gets_the_usual_time_for_its_interface() {
        let is = |found: &str| {
            let finding = Finding::failed(Id::DevicePresent, found, "ib0").hint("");
            [link("ib0", None, finding)]
        };
        let (gone, back) = (is("no RDMA device"), is("no network interface ib0"));
        let mut waiting = Waiting::default();
        let usual_ns = voice::usual_ns(Id::DevicePresent);
        let mut lines = Vec::new();
        for (links, now_ns) in [
            (&gone, 0),
            (&gone, usual_ns),
            (&back, usual_ns + 1),
            (&back, 2 * usual_ns),
            (&back, 2 * usual_ns + 1),
        ] {
            lines.extend(news(&mut waiting, links, now_ns));
        }
        assert_eq!(
            lines,
            [
                "INFO ib0: waiting for the driver",
                "INFO waiting: ib0: no such RDMA port: no RDMA device, expected ib0 [device.present]",
                "INFO ib0: waiting for the driver",
                "INFO waiting: ib0: no such RDMA port: no network interface ib0, expected ib0 [device.present]",
            ]
        );
        let age_ns = age_ns(&waiting, &back[0], 2 * usual_ns);
        assert_eq!(age_ns, 2 * usual_ns, "it lasts all the same");
    }

    #[test]
    fn the_count_of_a_link_that_is_gone_is_kept_for_its_minute() {
        let down = link(
            "ib0",
            Some("mlx5_0/1"),
            Finding::failed(Id::PortState, "INIT", "ACTIVE"),
        );
        let mut waiting = Waiting::default();
        news(&mut waiting, &[down], SECOND);
        news(&mut waiting, &[], 2 * SECOND);
        assert_eq!(waiting.brakes.len(), 1);
        news(&mut waiting, &[], WINDOW_NS);
        assert_eq!(waiting.brakes.len(), 0);
    }

    /// The report of these links, of which the boot depends on some, and what was expected.
    fn report(links: Vec<LinkReport>, bond: Option<LinkWish>) -> (Report, Expectation) {
        let mut expectation = planned("ip=ib0:dhcp").expectation;
        let mut report = verify(&expectation, &Facts::default());
        report.links = links;
        expectation.links = bond.into_iter().collect();
        (report, expectation)
    }

    #[test]
    fn the_last_words_begin_with_what_is_required() {
        let required = |link: LinkReport| LinkReport {
            required: true,
            ..link
        };
        let down = || Finding::failed(Id::PortPhysicalState, "Polling", "LinkUp").hint("");
        let init = || Finding::failed(Id::PortState, "INIT", "ACTIVE").hint("do");
        let (optional, needed) = (
            link("ib0", Some("mlx5_0/1"), down()),
            required(link("ib1", Some("mlx5_1/1"), init())),
        );
        let (found, expectation) = report(vec![optional.clone(), needed], None);
        let mut waiting = Waiting::default();
        waiting
            .troubles
            .date(&Subject::all(&found), Underway::Nothing, SECOND);
        let words = |report: &Report, expectation: &Expectation| {
            texts(waiting.last_words(report, expectation, 4 * SECOND))
        };
        assert_eq!(
            words(&found, &expectation),
            [
                "ERROR mlx5_1/1: port is not ACTIVE: INIT, expected ACTIVE (for 3 s) [port.state]",
                "ERROR   do",
                "WARN mlx5_0/1 (not required): no physical link: Polling, expected LinkUp (for 3 s) \
                 [port.physical_state]",
            ]
        );
        // The boot depends on a number of links only.
        let (found, expectation) = report(vec![optional.clone()], None);
        let any =
            "mlx5_0/1: no physical link: Polling, expected LinkUp (for 3 s) [port.physical_state]";
        assert_eq!(words(&found, &expectation), [format!("ERROR {any}")]);
        // A bond has no carrier because of its interface.
        let bond = LinkWish {
            target: "bond0".to_owned().into(),
            required: true,
            bond: Some(BondWish {
                slaves: vec!["ib0".to_owned()],
                ..BondWish::default()
            }),
            ..LinkWish::default()
        };
        let carrier = Finding::failed(Id::BondCarrier, "no carrier", "carrier").hint("");
        let of_bond = LinkReport::new(&bond, None, vec![carrier]);
        let (found, expectation) = report(vec![optional, of_bond], Some(bond));
        assert_eq!(
            words(&found, &expectation),
            [
                format!("ERROR {any}"),
                "ERROR bond0: the bond has no carrier (for 0 s) \
                 [bond.carrier]"
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn without_a_trouble_the_wait_has_a_cause() {
        let (mut found, _) = report(Vec::new(), None);
        assert_eq!(otherwise(&found, true), "the drivers are still loading");
        assert_eq!(
            otherwise(&found, false),
            "a required link is not verified yet"
        );
        found.shortfall = Some("only 1 port".to_owned());
        assert_eq!(otherwise(&found, false), "only 1 port");
    }

    #[test]
    fn the_first_line_about_the_wait_comes_after_5_s_and_then_every_15_s() {
        let mut waiting = Waiting::default();
        let seconds = Duration::from_secs;
        assert_eq!(waiting.next_line(), Some(seconds(5)));
        waiting.lines = 2;
        assert_eq!(waiting.next_line(), Some(seconds(35)));
        waiting.is_over = true;
        assert_eq!(waiting.next_line(), None);
    }

    #[test]
    fn a_good_link_with_a_warning_is_logged_as_verified_and_warned_of() {
        let limited = Finding::failed(Id::PortPkey, "0x7fff", "full membership")
            .hint("")
            .as_warning();
        let mut waiting = Waiting::default();
        assert_eq!(
            news(&mut waiting, &[link("ib0", Some("mlx5_0/1"), limited)], 1),
            [
                "INFO mlx5_0/1: verified: ",
                "WARN mlx5_0/1: not a full member of the partition: 0x7fff, expected full membership [port.pkey]",
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
