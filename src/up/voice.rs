// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the words about a link or a server that `up` waits for. While a trouble is younger than its
//! usual time, the words only name what is awaited; cause and remedy come after that time.

use std::time::Duration;

use crate::error::printable;
use crate::system::clock::SECOND;
use crate::verify::SWEEPING;
use crate::verify::checks::{Awaits, Id};
use crate::verify::report::{Finding, LinkReport, Report, ServerReport, Status};

/// More subjects than this are counted by cause.
const NAMED: usize = 3;

/// A link or a server of the report.
#[derive(Debug)]
pub struct Subject<'a> {
    /// Identifies the subject from one look to the next.
    pub key: String,
    /// The name in messages.
    pub object: String,
    pub required: bool,
    /// What is wrong; none: nothing.
    pub trouble: Option<&'a Finding>,
    /// What is good, and a warning.
    pub good: Vec<(log::Level, String)>,
}

impl<'a> Subject<'a> {
    /// What is to be told about a link.
    pub fn of_link(link: &'a LinkReport) -> Subject<'a> {
        let verified = || format!("{}: verified: {}", link.object(), link.description());
        let mut good = Vec::new();
        if link.is_good() {
            good.push((log::Level::Info, verified()));
            let warning = link
                .trouble()
                .map(|finding| lines(&link.object(), "", finding));
            let warning = warning.into_iter().flatten();
            good.extend(warning.map(|line| (log::Level::Warn, line)));
        }
        Subject {
            // Any port may be meant by one request: each port is a subject.
            key: format!("{} {}", link.target, link.object()),
            object: printable(&link.object()),
            required: link.required,
            trouble: link.trouble().filter(|_| !link.is_good()),
            good,
        }
    }

    /// What is to be told about a server that must answer.
    pub fn of_server(server: &'a ServerReport) -> Subject<'a> {
        let finding = &server.finding;
        let is_wrong = matches!(finding.status, Status::Unknown | Status::Critical);
        let found = finding.found.as_deref().unwrap_or("answers");
        let good = (log::Level::Info, format!("{}: {found}", server.server));
        Subject {
            key: format!("server {}", server.server),
            object: server.server.to_string(),
            required: true,
            trouble: is_wrong.then_some(finding),
            good: if is_wrong { Vec::new() } else { vec![good] },
        }
    }

    /// The links and the servers of a report, without servers that were not queried yet.
    pub fn all(report: &'a Report) -> Vec<Subject<'a>> {
        let links = report.links.iter().map(Subject::of_link);
        let queried = |server: &&ServerReport| server.finding.status != Status::Skipped;
        let servers = report.servers.iter().filter(queried);
        links.chain(servers.map(Subject::of_server)).collect()
    }

    /// The lines of the log. `age_ns`: how long the trouble lasts.
    pub fn lines(&self, age_ns: u64) -> Vec<(log::Level, String)> {
        let Some(finding) = self.trouble else {
            return self.good.clone();
        };
        let texts = match is_usual(finding, age_ns) {
            true => vec![format!("{}: waiting for {}", self.object, awaited(finding))],
            false => lines(&self.object, "waiting: ", finding),
        };
        let line = |text| (log::Level::Info, text);
        texts.into_iter().map(line).collect()
    }

    /// The lines at the deadline: what is wrong or warns, and for how many seconds.
    pub fn last_words(&self, age_s: u64) -> Vec<String> {
        let Some(finding) = self.trouble else {
            let warnings = self.good.iter().skip(1);
            return warnings.map(|(_, line)| line.clone()).collect();
        };
        let problem = format!("{}, for {age_s} s", finding.problem());
        two_lines(&self.object, "", &problem, finding)
    }
}

fn awaited(finding: &Finding) -> &'static str {
    finding.check.row().awaits.words()
}

/// Whether a machine without a fault may be in this state for so long.
fn is_usual(finding: &Finding, age_ns: u64) -> bool {
    let is_sweep = finding.hint.as_deref() == Some(SWEEPING);
    !finding.lasting && (is_sweep || age_ns < usual_ns(finding.check))
}

/// The usual time of the trouble of a check, in nanoseconds.
pub fn usual_ns(check: Id) -> u64 {
    check.row().awaits.usual_s() * SECOND
}

/// Whether the trouble may end with a driver that is still loading.
pub fn is_of_driver(check: Id) -> bool {
    matches!(check.row().awaits, Awaits::Driver | Awaits::Members)
}

/// `BEFORE` `OBJECT: PROBLEM [CHECK]`, and below it the action.
fn lines(object: &str, before: &str, finding: &Finding) -> Vec<String> {
    two_lines(object, before, &finding.problem(), finding)
}

fn two_lines(object: &str, before: &str, problem: &str, finding: &Finding) -> Vec<String> {
    let name = finding.check.row().name;
    let mut lines = vec![format!("{before}{}: {problem} [{name}]", printable(object))];
    let action = finding.hint.as_deref().map(printable);
    lines.extend(action.map(|action| format!("  {action}")));
    lines
}

/// The cause of a wait in a few words.
fn cause(finding: &Finding, age_ns: u64) -> String {
    if is_usual(finding, age_ns) {
        return format!("awaiting {}", awaited(finding));
    }
    let found = finding.found.as_deref().map(printable);
    match (finding.check, found) {
        (Id::PortState, Some(found)) => found,
        (check, Some(found)) if finding.status != Status::Unknown => {
            format!("{}: {found}", check.row().failure)
        }
        _ => finding.problem(),
    }
}

/// The line while `up` waits: `waiting for ib0 (mlx5_0/1), 30 s of 180 s: CAUSE`. Each subject has
/// the age of its trouble, ns; `otherwise`: the cause if no subject has a trouble.
pub fn progress(
    subjects: &[(Subject<'_>, u64)],
    otherwise: &str,
    (elapsed, timeout): (Duration, Duration),
) -> String {
    let time = format!("{} s of {} s", elapsed.as_secs(), timeout.as_secs());
    let has_required = subjects
        .iter()
        .any(|(subject, _)| subject.required && subject.trouble.is_some());
    let causes: Vec<(&str, String)> = subjects
        .iter()
        .filter(|(subject, _)| subject.required || !has_required)
        .filter_map(|(subject, age_ns)| {
            Some((subject.object.as_str(), cause(subject.trouble?, *age_ns)))
        })
        .collect();
    let what = match causes.as_slice() {
        [] => return format!("waiting, {time}: {otherwise}"),
        [(object, cause)] => return format!("waiting for {object}, {time}: {cause}"),
        causes if causes.len() <= NAMED => {
            let each = causes
                .iter()
                .map(|(object, cause)| format!("{object} {cause}"));
            each.collect::<Vec<String>>().join("; ")
        }
        causes => counted(causes),
    };
    format!("waiting for {} links, {time}: {what}", causes.len())
}

/// The number of subjects of each cause, the most frequent first.
fn counted(causes: &[(&str, String)]) -> String {
    let mut counts: Vec<(usize, &str)> = Vec::new();
    for (_, cause) in causes {
        match counts.iter_mut().find(|(_, known)| known == cause) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, cause)),
        }
    }
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let rest: usize = counts.iter().skip(NAMED).map(|(count, _)| count).sum();
    let mut texts: Vec<String> = counts
        .iter()
        .take(NAMED)
        .map(|(count, cause)| format!("{count} x {cause}"))
        .collect();
    texts.extend((rest > 0).then(|| format!("{rest} x other causes")));
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wish::expectation::LinkWish;

    fn link(number: usize, finding: &Finding) -> LinkReport {
        let wish = LinkWish {
            target: format!("ib{number}").into(),
            required: true,
            ..LinkWish::default()
        };
        LinkReport {
            name: Some(format!("mlx5_{number}/1")),
            interface: Some(format!("ib{number}")),
            ..LinkReport::new(&wish, None, vec![finding.clone()])
        }
    }

    fn init() -> Finding {
        let found = "INIT, no subnet manager has configured this port";
        Finding::failed(Id::PortState, found, "ACTIVE").hint("start a subnet manager")
    }

    fn said(links: &[LinkReport], age_s: u64) -> String {
        let subjects: Vec<_> = links
            .iter()
            .map(|link| (Subject::of_link(link), age_s * SECOND))
            .collect();
        let times = (Duration::from_secs(30), Duration::from_secs(180));
        progress(&subjects, "drivers are loading", times)
    }

    #[test]
    fn one_line_says_what_is_waited_for() {
        let down = Finding::failed(Id::PortPhysicalState, "Polling", "LinkUp");
        assert_eq!(said(&[], 20), "waiting, 30 s of 180 s: drivers are loading");
        assert_eq!(
            said(&[link(0, &init())], 20),
            "waiting for ib0 (mlx5_0/1), 30 s of 180 s: INIT, no subnet manager has configured this port"
        );
        assert_eq!(
            said(&[link(0, &init())], 9),
            "waiting for ib0 (mlx5_0/1), 30 s of 180 s: awaiting the subnet manager"
        );
        assert_eq!(
            said(&[link(0, &init()), link(1, &down)], 9),
            "waiting for 2 links, 30 s of 180 s: ib0 (mlx5_0/1) awaiting the subnet manager; \
             ib1 (mlx5_1/1) no physical link: Polling"
        );
        let mut links: Vec<LinkReport> = (0..14).map(|number| link(number, &init())).collect();
        links.extend([link(14, &down), link(15, &down)]);
        assert_eq!(
            said(&links, 20),
            "waiting for 16 links, 30 s of 180 s: 14 x INIT, no subnet manager has configured this \
             port; 2 x no physical link: Polling"
        );
        // A link that is not required is no reason to wait.
        links[14].required = false;
        assert!(said(&links, 20).starts_with("waiting for 15 links, "));
    }

    #[test]
    fn cause_and_remedy_come_after_the_usual_time() {
        let lines = |finding: &Finding, age_s| {
            let link = link(0, finding);
            let lines = Subject::of_link(&link).lines(age_s * SECOND);
            let texts = lines.into_iter().map(|(_, text)| text);
            texts.collect::<Vec<String>>()
        };
        let neutral = ["ib0 (mlx5_0/1): waiting for the subnet manager"];
        let problem = [
            "waiting: ib0 (mlx5_0/1): port is not ACTIVE: INIT, no subnet manager has configured \
             this port, expected ACTIVE [port.state]",
            "  start a subnet manager",
        ];
        assert_eq!(lines(&init(), 9), neutral);
        assert_eq!(lines(&init(), 10), problem);
        assert_eq!(lines(&init().lasting(), 0), problem);
        assert_eq!(lines(&init().hint(SWEEPING), 25), neutral);
    }
}
