// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the words about each link or server that `up` waits for. While a trouble is younger than its
//! usual time, the words only name what is awaited; cause and remedy come after that time.

use crate::error::printable;
use crate::rdma::types::LinkLayer;
use crate::system::clock::SECOND;
use crate::verify::SWEEPING;
use crate::verify::checks::{Awaits, Id};
use crate::verify::finding::{Finding, Status};
use crate::verify::report::{LinkReport, Report, ServerReport};
use crate::wish::bond::BondWish;
use crate::wish::expectation::{Expectation, Target};

/// A link or a server of the report.
#[derive(Debug)]
pub struct Subject<'a> {
    /// Identifies the subject from one look to the next.
    pub key: String,
    /// The name in messages.
    pub object: String,
    /// The request of a link; none: a server.
    pub target: Option<&'a Target>,
    /// Of the port of a link.
    link_layer: Option<LinkLayer>,
    pub required: bool,
    /// What is wrong; none: nothing.
    pub trouble: Option<&'a Finding>,
    /// What is good, and a warning.
    pub good: Vec<(log::Level, String)>,
}

impl<'a> Subject<'a> {
    /// The subject of a link.
    pub fn of_link(link: &'a LinkReport) -> Subject<'a> {
        let verified = || format!("{}: verified: {}", link.object(), link.description());
        let mut good = Vec::new();
        if link.is_good() {
            good.push((log::Level::Info, verified()));
            let warnings = link.trouble().into_iter();
            good.extend(warnings.flat_map(|finding| warning(&link.object(), finding)));
        }
        Subject {
            // Any port may be meant by one request: each port is a subject. Names of interfaces change.
            key: format!("{} {}", link.target, link.name.as_deref().unwrap_or("")),
            object: printable(&link.object()),
            target: Some(&link.target),
            link_layer: link.link_layer,
            required: link.required,
            trouble: link.trouble().filter(|_| !link.is_good()),
            good,
        }
    }

    /// The subject of a server that must answer.
    pub fn of_server(server: &'a ServerReport) -> Subject<'a> {
        let finding = &server.finding;
        let object = server.server.to_string();
        let found = finding.found.as_deref().unwrap_or("answers");
        let good = match finding.status {
            Status::Ok => vec![(log::Level::Info, format!("{object}: {found}"))],
            Status::Warning => warning(&object, finding),
            _ => Vec::new(),
        };
        Subject {
            key: format!("server {object}"),
            object,
            target: None,
            link_layer: None,
            required: true,
            trouble: Some(finding).filter(|_| !server.is_answered()),
            good,
        }
    }

    /// The links and the servers of a report, without servers that were not queried yet.
    pub fn all(report: &'a Report) -> Vec<Subject<'a>> {
        let links = report.links.iter().map(Subject::of_link);
        let queried = |server: &&ServerReport| server.finding.status != Status::Skipped;
        let servers = report.servers.iter().filter(queried);
        links.chain(servers.map(Subject::of_server)).collect()
    }

    /// The lines of the log. `blamed_for_ns`: how long the trouble counts as unusual.
    pub fn lines(&self, blamed_for_ns: u64) -> Vec<(log::Level, String)> {
        let Some(finding) = self.trouble else {
            return self.good.clone();
        };
        let texts = match is_usual(finding, blamed_for_ns) {
            true => vec![format!(
                "{}: waiting for {}",
                self.object,
                self.awaited(finding)
            )],
            false => lines(&self.object, "waiting: ", finding),
        };
        let line = |text| (log::Level::Info, text);
        texts.into_iter().map(line).collect()
    }

    /// The lines at the deadline: what is wrong or warns, and for how many seconds. An optional
    /// subject is marked.
    pub fn last_words(&self, age_s: u64, is_optional: bool) -> Vec<String> {
        let Some(finding) = self.trouble else {
            let warnings = self.good.iter();
            let warnings = warnings.filter(|(level, _)| *level == log::Level::Warn);
            return warnings.map(|(_, line)| line.clone()).collect();
        };
        let mark = if is_optional { " (not required)" } else { "" };
        let problem = format!("{} (for {age_s} s)", finding.problem());
        two_lines(&format!("{}{mark}", self.object), "", &problem, finding)
    }

    fn awaited(&self, finding: &Finding) -> &'static str {
        let is_infiniband = self
            .link_layer
            .is_none_or(|layer| layer == LinkLayer::InfiniBand);
        match finding.check.row().awaits {
            // No subnet manager configures an Ethernet port.
            Awaits::SubnetManager if !is_infiniband => "the port to become ACTIVE",
            awaits => awaits.words(),
        }
    }

    /// The cause of the wait in a few words; none without a trouble.
    pub fn cause(&self, blamed_for_ns: u64) -> Option<String> {
        let finding = self.trouble?;
        if is_usual(finding, blamed_for_ns) {
            return Some(format!("waiting for {}", self.awaited(finding)));
        }
        if finding.status == Status::Unknown || finding.is_said() {
            return Some(finding.problem());
        }
        let found = finding.found.as_deref().map(printable);
        Some(match (finding.check, found) {
            (Id::PortState, Some(found)) => found,
            (check, Some(found)) => format!("{}: {found}", check.row().failure),
            (_, None) => finding.problem(),
        })
    }

    /// What is requested of it, if it is a bond.
    pub fn bond<'e>(&self, expectation: &'e Expectation) -> Option<&'e BondWish> {
        let target = self.target?;
        let mut wishes = expectation.links.iter();
        wishes.find(|wish| wish.target == *target)?.bond.as_ref()
    }
}

/// Whether a machine without a fault may be in this state for so long.
fn is_usual(finding: &Finding, blamed_for_ns: u64) -> bool {
    let hint = finding.hint.as_deref();
    let is_sweep = hint.is_some_and(|hint| hint.starts_with(SWEEPING));
    !finding.lasting && (is_sweep || blamed_for_ns < usual_ns(finding.check))
}

/// The usual time of the trouble of a check, in nanoseconds.
pub fn usual_ns(check: Id) -> u64 {
    check.row().awaits.usual_s() * SECOND
}

/// What goes on beside the walk and may end a trouble.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Underway {
    #[default]
    Nothing,
    /// Drivers are loading, or udev has not begun to load any, or may still give an interface its name.
    Drivers,
    /// udev names interfaces: nothing is set before.
    Names,
}

impl Underway {
    /// Whether the trouble may end without a change of ibboot.
    pub fn may_end(self, check: Id) -> bool {
        // The driver of a device that does not answer is loaded.
        let is_of_driver = check != Id::DeviceAnswers;
        match (self, check.row().awaits) {
            (Underway::Drivers | Underway::Names, Awaits::Driver | Awaits::Members) => is_of_driver,
            (Underway::Names, Awaits::Setting) => true,
            _ => false,
        }
    }
}

/// The lines of a warning.
fn warning(object: &str, finding: &Finding) -> Vec<(log::Level, String)> {
    let lines = lines(object, "", finding).into_iter();
    lines.map(|line| (log::Level::Warn, line)).collect()
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::wish::expectation::LinkWish;

    /// A required link that has this finding.
    pub fn link(number: usize, finding: &Finding) -> LinkReport {
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

    /// A port that no subnet manager has configured.
    pub fn init() -> Finding {
        let found = "INIT, no subnet manager has configured this port";
        Finding::failed(Id::PortState, found, "ACTIVE").hint("start a subnet manager")
    }

    #[test]
    fn a_device_that_does_not_answer_awaits_no_driver() {
        let may_end = |check| Underway::Drivers.may_end(check);
        assert!(may_end(Id::DevicePresent) && may_end(Id::BondPresent));
        assert!(!may_end(Id::DeviceAnswers));
    }

    #[test]
    fn a_server_that_need_not_answer_is_a_warning() {
        let server = ServerReport {
            server: serde_json::from_str(r#"{"address":"10.0.0.2","port":null}"#).unwrap(),
            requested_by: None,
            finding: Finding::failed(Id::ServerRdma, "no answer came", "an answer")
                .hint("look at the server")
                .as_warning(),
        };
        let subject = Subject::of_server(&server);
        let line = "10.0.0.2: not verified over RDMA: no answer came, expected an answer \
                    [server.rdma]";
        let warning = |line: &str| (log::Level::Warn, line.to_owned());
        let lines = [warning(line), warning("  look at the server")];
        assert_eq!(subject.lines(0), lines);
        assert_eq!(subject.last_words(0, false), lines.map(|(_, line)| line));
        assert!(subject.trouble.is_none());
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
