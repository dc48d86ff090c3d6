// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: ends the wait for the second address family (`rd.net.timeout.ip-required=`), counted from
//! the carrier of the interface.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::verify::checks::Id;
use crate::verify::finding::Status;
use crate::verify::report::{LinkReport, Report};
use crate::wish::expectation::Expectation;

/// When the wait of each interface ends, by the name of its link.
#[derive(Debug, Default)]
pub struct Families(BTreeMap<String, Instant>);

impl Families {
    /// Begins the waits of the interfaces that have carrier, and ends those that are over. True if one
    /// has ended: the expectation has changed.
    pub fn follow(&mut self, expectation: &mut Expectation, report: &Report, now: Instant) -> bool {
        let mut is_changed = false;
        for link in &mut expectation.links {
            let name = link.target.as_str();
            let second = link
                .ipoib
                .as_mut()
                .and_then(|ipoib| ipoib.second_family.as_mut());
            let Some(second) = second.filter(|second| !second.is_over) else {
                self.0.remove(name);
                continue;
            };
            let mut found = report.links.iter().filter(|found| found.target == name);
            if !found.any(has_carrier) && !self.0.contains_key(name) {
                continue;
            }
            let wait = Duration::from_secs(second.wait_s.into());
            let ends = *self.0.entry(name.to_owned()).or_insert(now + wait);
            second.is_over = now >= ends;
            is_changed |= second.is_over;
        }
        is_changed
    }

    /// When the next wait ends.
    pub fn due(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }
}

fn has_carrier(link: &LinkReport) -> bool {
    let is_carrier = |id| matches!(id, Id::IpoibCarrier | Id::BondCarrier);
    let mut checks = link.checks.iter();
    checks.any(|check| is_carrier(check.check) && check.status == Status::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::plan::tests::planned;
    use crate::verify::finding::Finding;
    use crate::verify::verify;

    #[test]
    fn the_wait_begins_with_carrier_and_survives_its_loss() {
        let mut expectation = planned("ip=ib0:dhcp,dhcp6").expectation;
        let empty = verify(&expectation, &Facts::default());
        let report = |check: Finding| {
            let mut report = empty.clone();
            report.links[0].checks = vec![check];
            report
        };
        let down = report(Finding::failed(Id::IpoibCarrier, "none", "carrier"));
        let up = report(Finding::ok(Id::IpoibCarrier, "carrier"));
        let mut families = Families::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert!(!families.follow(&mut expectation, &down, start));
        assert_eq!(families.due(), None);
        assert!(!families.follow(&mut expectation, &up, after(5)));
        assert_eq!(families.due(), Some(after(25)));
        assert!(!families.follow(&mut expectation, &down, after(24)));
        assert!(families.follow(&mut expectation, &down, after(25)));
        assert!(!families.follow(&mut expectation, &up, after(26)));
        assert_eq!(families.due(), None);
    }
}
