// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the verdict in words.

use std::time::Duration;

use crate::handover::Outcome;
use crate::plan::{Fate, Plan};
use crate::request::OnFailure;
use crate::verify::ports;
use crate::verify::report::{LinkReport, Report};
use crate::wish::expectation::Require;

/// What the verdict depends on beside the report.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    pub outcome: Outcome,
    pub require: Require,
    /// Since the start of the walk.
    pub elapsed: Duration,
    /// What follows a failure ([`next`]); none outside the initramfs, where no hook acts.
    pub next: Option<&'a str>,
    /// Why the outcome is a failure, where not too little is verified.
    pub obstacle: Option<&'a str>,
}

/// What follows a failure in the initramfs. An argument is named only if the command line has it.
pub fn next(plan: &Plan) -> &'static str {
    const CONTINUE: &str = "rd.ib.onfail=continue";
    let mut tokens = plan.tokens.iter();
    match plan.onfail {
        OnFailure::Shell => plan
            .no_shell
            .unwrap_or("an emergency shell opens (rd.ib.onfail=shell)"),
        OnFailure::Reboot => "the node reboots (rd.ib.onfail=reboot)",
        OnFailure::Dracut => "dracut now waits for the root file system",
        OnFailure::Continue
            if tokens
                .any(|token| token.origin.argument == CONTINUE && token.fate == Fate::Step) =>
        {
            "the boot continues (rd.ib.onfail=continue)"
        }
        OnFailure::Continue => "the boot continues",
    }
}

/// `all 2 links verified in 3.4 s`, or how many of the required links, ports or servers are missing
/// and what follows.
pub fn words(report: &Report, ending: &Ending<'_>) -> String {
    let time = format!("{:.1} s", ending.elapsed.as_secs_f64());
    let links = report.links.len();
    let verified = report.verified();
    if ending.outcome == Outcome::Verified {
        return match (verified, links) {
            (1, 1) => format!("the link is verified after {time}"),
            (verified, links) if verified == links => {
                format!("all {links} links verified in {time}")
            }
            _ => format!("{verified} of {links} links verified in {time}: as many as required"),
        };
    }
    let what = match (shortage(report, ending.require), ending.obstacle) {
        (Some(shortage), _) => format!("{shortage} after {time}"),
        (None, Some(obstacle)) => {
            format!("{verified} of {links} links verified after {time}, but {obstacle}")
        }
        (None, None) => format!("{verified} of {links} links verified after {time}"),
    };
    match ending.next {
        Some(next) => format!("{what}; {next}"),
        None => what,
    }
}

/// How much of what is required is verified; none: enough.
fn shortage(report: &Report, require: Require) -> Option<String> {
    let is_counted = |link: &&LinkReport| link.required || require == Require::All;
    let counted: Vec<&LinkReport> = report.links.iter().filter(is_counted).collect();
    let (good, needed, what) = match require {
        Require::Count(n) => {
            let good = ports(&report.links, LinkReport::is_good);
            (good, n as usize, "ports")
        }
        Require::Listed | Require::All => {
            let good = counted.iter().filter(|link| link.is_good()).count();
            (good, counted.len(), "links")
        }
    };
    if good < needed {
        return Some(format!("{good} of {needed} required {what} verified"));
    }
    let servers = report.servers.len();
    let answers = report.servers.iter();
    let answers = answers.filter(|server| server.is_answered()).count();
    (answers < servers).then(|| format!("{answers} of {servers} servers answered"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::plan::tests::planned;
    use crate::system::root::Root;
    use crate::verify::checks::Id;
    use crate::verify::finding::{Finding, Status};
    use crate::verify::report::ServerReport;
    use crate::verify::verify;
    use crate::wish::expectation::Depth;

    /// The report of links that are good (`+`) or not; the first ones are required.
    fn report(links: &str, required: usize) -> Report {
        let mut report = verify(&planned("ip=ib0:dhcp").expectation, &Facts::default());
        let link = |(number, sign): (usize, char)| LinkReport {
            required: number < required,
            name: Some(format!("mlx5_{number}/1")),
            status: match sign {
                '+' => Status::Ok,
                _ => Status::Critical,
            },
            checks: vec![Finding::ok(Id::PortState, "ACTIVE")],
            ..report.links[0].clone()
        };
        report.links = links.chars().enumerate().map(link).collect();
        report
    }

    fn ending(outcome: Outcome, require: Require) -> Ending<'static> {
        Ending {
            outcome,
            require,
            elapsed: Duration::from_millis(3400),
            next: Some("the boot continues"),
            obstacle: None,
        }
    }

    #[test]
    fn the_pages_show_what_follows() {
        let readme = include_str!("../../README.md").replace("\n    ibboot:     ", " ");
        let (_, line) = readme.split_once("plan --cmdline '").unwrap();
        let (line, _) = line.split_once('\'').unwrap();
        let end = format!("verified after 180.0 s; {}\n", next(&planned(line)));
        assert!(readme.contains(&end), "{end}");
        let page = include_str!("../../docs/node-hangs.md");
        for line in [
            "ip=ib0:dhcp",
            "ip=ib0:dhcp root=nfs4:10.0.0.1:/",
            "ip=ib0:dhcp rd.ib.onfail=continue",
            "ip=ib0:dhcp rd.ib.onfail=shell",
            "ip=ib0:dhcp rd.ib.onfail=shell rd.shell=0",
            "ip=ib0:dhcp rd.ib.onfail=reboot",
        ] {
            let next = format!("| `{}` |", next(&planned(line)));
            assert!(page.contains(&next), "{next}");
        }
    }

    #[test]
    fn the_verdict_counts_what_is_required_and_names_what_follows() {
        let (verified, failed) = (Outcome::Verified, Outcome::Continue);
        let two = Require::Count(2);
        for (links, required, outcome, require, expected) in [
            (
                "+",
                1,
                verified,
                Require::Listed,
                "the link is verified after 3.4 s",
            ),
            (
                "++",
                2,
                verified,
                Require::Listed,
                "all 2 links verified in 3.4 s",
            ),
            (
                "+-",
                1,
                verified,
                Require::Listed,
                "1 of 2 links verified in 3.4 s: as many as required",
            ),
            (
                "-+",
                1,
                failed,
                Require::Listed,
                "0 of 1 required links verified after 3.4 s; the boot continues",
            ),
            (
                "+-",
                0,
                failed,
                Require::All,
                "1 of 2 required links verified after 3.4 s; the boot continues",
            ),
            (
                "+-",
                0,
                failed,
                two,
                "1 of 2 required ports verified after 3.4 s; the boot continues",
            ),
        ] {
            let words = words(&report(links, required), &ending(outcome, require));
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn outside_the_initramfs_nothing_follows() {
        let failed = Ending {
            next: None,
            ..ending(Outcome::Reboot, Require::Listed)
        };
        assert_eq!(
            words(&report("-", 1), &failed),
            "0 of 1 required links verified after 3.4 s"
        );
    }

    #[test]
    fn an_argument_is_named_only_if_it_is_given() {
        for (cmdline, expected) in [
            ("ip=ib0:dhcp", "the boot continues"),
            (
                "ip=ib0:dhcp rd.ib.onfail=continue",
                "the boot continues (rd.ib.onfail=continue)",
            ),
            (
                "ip=ib0:dhcp rd.ib.onfail=shell",
                "an emergency shell opens (rd.ib.onfail=shell)",
            ),
            (
                "ip=ib0:dhcp rd.ib.onfail=shell rd.shell=no rd.shell=1",
                "an emergency shell opens (rd.ib.onfail=shell)",
            ),
            (
                "ip=ib0:dhcp rd.ib.onfail=shell rd.shell=0 rd.break",
                "an emergency shell opens (rd.ib.onfail=shell)",
            ),
            (
                "ip=ib0:dhcp rd.ib.onfail=shell rd.shell=0",
                "no shell opens (rd.shell=): dracut halts the node or switches it off",
            ),
            (
                "ip=ib0:dhcp rd.ib.onfail=shell rd.shell=no rd.emergency=halt rd.emergency=reboot",
                "no shell opens (rd.shell=): dracut reboots the node",
            ),
            (
                "ip=ib0:dhcp rd.ib.onfail=shell rd.shell=off rd.emergency=poweroff",
                "no shell opens (rd.shell=): dracut switches the node off",
            ),
            (
                "ip=ib0:dhcp rd.ib.onfail=shell rd.shell=0 rd.emergency=halt",
                "no shell opens (rd.shell=): dracut halts the node",
            ),
            (
                "ip=ib0:dhcp rd.ib.onfail=shell rd.shell=0 rd.emergency=shell",
                "no shell opens (rd.shell=): the boot continues",
            ),
            ("ip=ib0:dhcp rd.shell=0", "the boot continues"),
            (
                "ip=ib0:dhcp rd.ib.onfail=reboot",
                "the node reboots (rd.ib.onfail=reboot)",
            ),
            (
                "ip=ib0:dhcp root=nfs:10.0.0.2:/srv",
                "dracut now waits for the root file system",
            ),
            (
                "ip=ib0:dhcp root=nfs:10.0.0.2:/srv rd.ib.onfail=continue",
                "the boot continues (rd.ib.onfail=continue)",
            ),
        ] {
            assert_eq!(next(&planned(cmdline)), expected, "{cmdline}");
        }
        // A kernel that saves a crash dump does not do what the argument requests.
        let mut dump = planned("ip=ib0:dhcp rd.ib.onfail=reboot");
        dump.onfail = OnFailure::Continue;
        assert_eq!(next(&dump), "the boot continues");
    }

    #[test]
    fn the_verdict_names_what_prevents_success_although_enough_is_verified() {
        let failed = |obstacle| Ending {
            obstacle: Some(obstacle),
            ..ending(Outcome::Continue, Require::Listed)
        };
        assert_eq!(
            words(&report("++", 1), &failed("drivers are still loading")),
            "2 of 2 links verified after 3.4 s, but drivers are still loading; the boot continues"
        );
        // What is missing precedes it.
        assert_eq!(
            words(&report("+-", 2), &failed("drivers are still loading")),
            "1 of 2 required links verified after 3.4 s; the boot continues"
        );
    }

    #[test]
    fn a_server_that_only_warns_has_answered() {
        let server = |finding| ServerReport {
            server: serde_json::from_str(r#"{"address":"10.0.0.2","port":null}"#).unwrap(),
            requested_by: None,
            finding,
        };
        let silent = || Finding::failed(Id::ServerRdma, "no answer", "");
        let mut found = report("+", 1);
        found.servers = vec![
            server(Finding::ok(Id::ServerRdma, "")),
            server(silent().as_warning()),
        ];
        assert_eq!(shortage(&found, Require::Listed), None);
        found.servers.push(server(silent()));
        let short = shortage(&found, Require::Listed);
        assert_eq!(short.as_deref(), Some("2 of 3 servers answered"));
    }

    #[test]
    fn two_devices_with_one_cable_are_one_port() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/socket-direct");
        let facts = Facts::gather(&Root::new(sys), None, &[], Depth::Ports);
        let ports = facts.ports().count();
        for required in [1, u32::try_from(ports).unwrap()] {
            let expectation = planned(&format!("rd.ib.require={required}")).expectation;
            let report = verify(&expectation, &facts);
            let good = super::ports(&report.links, LinkReport::is_good);
            assert_eq!(good >= required as usize, report.satisfied);
            assert!(good < ports, "{ports} ports");
        }
    }
}
