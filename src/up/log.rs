// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said while waiting: once per change, and at the end with since when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::system::clock::{boottime_ns, seconds};
use crate::verify::report::{LinkReport, Report, ServerReport, Status};

/// A link that changes without end fills no log: so many times is it spoken of in [`WINDOW_NS`].
const SAYINGS: u32 = 30;
const WINDOW_NS: u64 = 60_000_000_000;

/// The last thing said of each link.
#[derive(Debug, Default)]
pub struct Waiting {
    /// By selector and port: the sentence that is true, since when (ns since kernel start), and
    /// whether it was said.
    said: BTreeMap<String, (String, u64, bool)>,
    /// By selector: how often something was said of it.
    brakes: BTreeMap<String, Brake>,
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

/// A link or a server, as it is spoken of.
struct Subject {
    /// What was asked for: this is what the brake counts.
    target: String,
    /// What is asked for, and what was found for it.
    key: String,
    object: String,
    lines: Vec<(log::Level, String)>,
}

fn key(link: &LinkReport) -> String {
    format!("{} {}", link.target, link.object())
}

fn server_key(server: &ServerReport) -> String {
    format!("server {}", server.server)
}

fn of_link(link: &LinkReport) -> Subject {
    Subject {
        // Any port may be meant by one request: each has a brake of its own.
        target: key(link),
        key: key(link),
        object: link.object(),
        lines: lines(link),
    }
}

fn subjects(report: &Report) -> Vec<Subject> {
    let links = report.links.iter().map(of_link);
    let asked = |server: &&ServerReport| server.finding.status != Status::Skipped;
    let servers = report.servers.iter().filter(asked).map(|server| Subject {
        target: server_key(server),
        key: server_key(server),
        object: server.server.to_string(),
        lines: vec![match server.diagnosis() {
            Some(trouble) => (log::Level::Info, format!("waiting: {trouble}")),
            None => {
                let found = server.finding.found.as_deref().unwrap_or("answers");
                (log::Level::Info, format!("{}: {found}", server.server))
            }
        }],
    });
    links.chain(servers).collect()
}

/// What there is to say of a link: what is waited for, or that it is verified and what to look at.
fn lines(link: &LinkReport) -> Vec<(log::Level, String)> {
    let verified = || format!("{}: verified: {}", link.object(), link.description());
    match link.diagnosis() {
        None => vec![(log::Level::Info, verified())],
        Some(warning) if link.is_good() => {
            vec![(log::Level::Info, verified()), (log::Level::Warn, warning)]
        }
        Some(trouble) => vec![(log::Level::Info, format!("waiting: {trouble}"))],
    }
}

impl Waiting {
    /// Says what changed.
    pub fn say(&mut self, report: &Report, now_ns: u64) {
        for (level, line) in self.news(subjects(report), now_ns) {
            log::log!(level, "{line}");
        }
    }

    /// What has not been said of them.
    fn news(&mut self, subjects: Vec<Subject>, now_ns: u64) -> Vec<(log::Level, String)> {
        // What is no longer in the report is no longer true: if it comes back, it is news.
        let here: BTreeSet<&String> = subjects.iter().map(|subject| &subject.key).collect();
        self.said.retain(|key, _| here.contains(key));
        let mut news = Vec::new();
        for subject in subjects {
            let sentences: Vec<&str> = subject
                .lines
                .iter()
                .map(|(_, line)| line.as_str())
                .collect();
            let sentence = sentences.join("\n");
            let since = match self.said.get(&subject.key) {
                Some((same, _, true)) if *same == sentence => continue,
                Some((same, since, false)) if *same == sentence => *since,
                _ => now_ns,
            };
            let times = self.brakes.entry(subject.target).or_default().count(now_ns);
            self.said
                .insert(subject.key, (sentence, since, times <= SAYINGS));
            if times <= SAYINGS {
                news.extend(subject.lines);
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

    /// The last words: every link that is not verified, and since when it is as it is.
    pub fn give_up(&self, report: &Report, timeout: Duration) {
        if let Some(shortfall) = &report.shortfall {
            log::error!("{shortfall} (deadline {} s)", timeout.as_secs());
        }
        let links = report.links.iter().map(|l| (key(l), l.diagnosis()));
        let servers = report
            .servers
            .iter()
            .map(|s| (server_key(s), s.diagnosis()));
        for (key, diagnosis) in links.chain(servers) {
            let Some(diagnosis) = diagnosis else {
                continue;
            };
            let since = self
                .said
                .get(&key)
                .map_or_else(boottime_ns, |(_, since, _)| *since);
            let line = format!(
                "{diagnosis} (so since {} s after kernel start, deadline {} s)",
                seconds(since),
                timeout.as_secs()
            );
            if report.satisfied {
                log::warn!("{line}");
            } else {
                log::error!("{line}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::checks::Id;
    use crate::verify::report::Finding;
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

    fn of(links: &[LinkReport]) -> Vec<Subject> {
        links.iter().map(of_link).collect()
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
        let told =
            vec!["INFO waiting: mlx5_0/1: port is not ACTIVE: INIT, expected ACTIVE".to_owned()];
        assert_eq!(
            said(waiting.news(of(std::slice::from_ref(&down)), 5)),
            told.clone()
        );
        assert_eq!(
            said(waiting.news(of(std::slice::from_ref(&down)), 6)).len(),
            0
        );
        assert_eq!(
            said(waiting.news(of(&[gone]), 7)),
            ["INFO waiting: ib0: no such RDMA port: none, expected ib0"]
        );
        assert_eq!(said(waiting.news(of(std::slice::from_ref(&down)), 8)), told);
        assert_eq!(
            waiting
                .said
                .values()
                .map(|(_, at, _)| *at)
                .collect::<Vec<_>>(),
            [8]
        );
    }

    #[test]
    fn forty_ports_that_any_port_means_do_not_silence_each_other() {
        let state = |found: &str| -> Vec<LinkReport> {
            let one = |port: u32| {
                let finding = Finding::failed(Id::PortState, found, "ACTIVE").hint("");
                link("any port", Some(&format!("mlx5_{port}/1")), finding)
            };
            (0..40).map(one).collect()
        };
        let mut waiting = Waiting::default();
        for (round, found) in ["DOWN", "INIT"].into_iter().enumerate() {
            let told = said(waiting.news(of(&state(found)), round as u64));
            assert_eq!(told.len(), 40, "{told:?}");
        }
    }

    #[test]
    fn a_port_that_flaps_does_not_fill_the_log_and_its_last_state_is_told() {
        let state = |found: &str| {
            let finding = Finding::failed(Id::PortState, found, "ACTIVE").hint("");
            [link("ib0", Some("mlx5_0/1"), finding)]
        };
        let mut waiting = Waiting::default();
        let mut told = Vec::new();
        for round in 0..1000_u64 {
            let found = if round % 2 == 0 { "DOWN" } else { "INIT" };
            told.extend(said(waiting.news(of(&state(found)), round)));
        }
        assert_eq!(told.len(), 31);
        assert_eq!(
            told.last().map(String::as_str),
            Some("WARN mlx5_0/1: changes too often, the next minute is not told")
        );
        assert_eq!(
            said(waiting.news(of(&state("INIT")), WINDOW_NS - 1)).len(),
            0,
            "still the same minute"
        );
        assert_eq!(
            said(waiting.news(of(&state("INIT")), WINDOW_NS)),
            ["INFO waiting: mlx5_0/1: port is not ACTIVE: INIT, expected ACTIVE"]
        );
        assert_eq!(
            waiting
                .said
                .values()
                .map(|(_, at, _)| *at)
                .collect::<Vec<_>>(),
            [999],
            "since when it is so, not since when it is told"
        );
    }

    #[test]
    fn a_good_link_with_a_warning_is_said_to_be_verified_and_warned_of() {
        let limited = Finding::failed(Id::PortPkey, "0x7fff", "full membership")
            .hint("")
            .as_warning();
        let mut waiting = Waiting::default();
        assert_eq!(
            said(waiting.news(of(&[link("ib0", Some("mlx5_0/1"), limited)]), 1)),
            [
                "INFO mlx5_0/1: verified: ",
                "WARN mlx5_0/1: not in the partition: 0x7fff, expected full membership",
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
