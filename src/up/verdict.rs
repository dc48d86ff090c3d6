// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the verdict in words.

use std::time::Duration;

use crate::handover::Outcome;
use crate::verify::report::{LinkReport, Report, Status};
use crate::wish::expectation::Require;

/// `all 2 links verified in 3.4 s`, or how many of the required links and servers are missing and
/// what follows.
pub fn words(outcome: Outcome, report: &Report, require: Require, elapsed: Duration) -> String {
    let time = format!("{:.1} s", elapsed.as_secs_f64());
    let count = |links: &mut dyn Iterator<Item = &LinkReport>| links.count();
    let links = report.links.len();
    let good = count(&mut report.links.iter().filter(|link| link.is_good()));
    let next = match outcome {
        Outcome::Verified => {
            return match (good, links) {
                (1, 1) => format!("the link is verified after {time}"),
                (good, links) if good == links => format!("all {links} links verified in {time}"),
                _ => format!("{good} of {links} links verified in {time}: as many as required"),
            };
        }
        Outcome::Continue => "the boot continues (rd.ib.onfail=continue)",
        Outcome::Shell => "an emergency shell follows (rd.ib.onfail=shell)",
        Outcome::Reboot => "a reboot follows (rd.ib.onfail=reboot)",
    };
    let required = || report.links.iter().filter(|link| link.required);
    let (good, needed) = match require {
        Require::Listed => {
            let good = count(&mut required().filter(|link| link.is_good()));
            (good, count(&mut required()))
        }
        Require::All => (good, links),
        Require::Count(n) => (good.min(n as usize), n as usize),
    };
    let answers = report.servers.iter();
    let answers = answers.filter(|server| server.finding.status == Status::Ok);
    let (answers, servers) = (answers.count(), report.servers.len());
    let what = match (good < needed, answers < servers) {
        (true, _) => format!("{good} of {needed} required links verified after {time}"),
        (false, true) => format!("{answers} of {servers} servers answered after {time}"),
        // A driver is still loading, or dracut's files cannot be written.
        (false, false) => {
            format!("{good} of {needed} links verified after {time}, and more is required")
        }
    };
    format!("{what}; {next}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::plan::{Inventory, plan};
    use crate::request::Request;
    use crate::system::root::Root;
    use crate::verify::checks::Id;
    use crate::verify::report::Finding;
    use crate::verify::verify;

    /// The report of `ib0` and of the required or optional `ib1`.
    fn report(good: &[bool], required: usize) -> Report {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = Inventory::read(&Root::new(sys)).unwrap();
        let request = Request::from_text("ip=ib0:dhcp");
        let mut report = verify(&plan(&request, &inventory).expectation, &Facts::default());
        let link = |(number, good): (usize, &bool)| LinkReport {
            required: number < required,
            status: if *good { Status::Ok } else { Status::Critical },
            checks: vec![Finding::ok(Id::PortState, "ACTIVE")],
            ..report.links[0].clone()
        };
        report.links = good.iter().enumerate().map(link).collect();
        report
    }

    #[test]
    fn the_verdict_counts_the_links_and_says_what_follows() {
        let words = |outcome, report: &Report, require| {
            words(outcome, report, require, Duration::from_millis(3400))
        };
        let (one, two) = (report(&[true], 1), report(&[true, true], 2));
        let listed = Require::Listed;
        for (expected, found) in [
            (
                "the link is verified after 3.4 s",
                words(Outcome::Verified, &one, listed),
            ),
            (
                "all 2 links verified in 3.4 s",
                words(Outcome::Verified, &two, listed),
            ),
            (
                "1 of 2 links verified in 3.4 s: as many as required",
                words(Outcome::Verified, &report(&[true, false], 1), listed),
            ),
            (
                "0 of 1 required links verified after 3.4 s; the boot continues \
                 (rd.ib.onfail=continue)",
                words(Outcome::Continue, &report(&[false, true], 1), listed),
            ),
            (
                "1 of 2 required links verified after 3.4 s; a reboot follows \
                 (rd.ib.onfail=reboot)",
                words(Outcome::Reboot, &report(&[true, false], 0), Require::All),
            ),
            (
                "1 of 3 required links verified after 3.4 s; an emergency shell follows \
                 (rd.ib.onfail=shell)",
                words(Outcome::Shell, &one, Require::Count(3)),
            ),
        ] {
            assert_eq!(found, expected);
        }
    }
}
