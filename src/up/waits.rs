// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what each link and server waits for, as spans of the timeline.

use std::collections::BTreeMap;

use super::voice::Subject;
use crate::handover::{Mark, Phase};
use crate::verify::checks::Awaits;

/// A link that changes without end fills no file: so many waits of one subject are kept.
const KEPT: usize = 20;
/// So many subjects are followed.
const SUBJECTS: usize = 512;

/// The waits of one run, by key of the subject.
#[derive(Debug, Default)]
pub struct Waits(BTreeMap<String, Known>);

/// The waits of one subject.
#[derive(Debug, Default)]
struct Known {
    /// The newest name: the kernel and udev rename interfaces.
    object: String,
    required: bool,
    /// What is awaited, and since when, ns since kernel start.
    open: Option<(Awaits, u64)>,
    /// What was awaited, from when to when.
    ended: Vec<(Awaits, u64, u64)>,
}

impl Waits {
    /// Takes what is awaited now.
    pub fn follow(&mut self, subjects: &[Subject<'_>], now_ns: u64) {
        let awaits = |subject: &Subject<'_>| Some(subject.trouble?.check.row().awaits);
        let here: BTreeMap<&str, &Subject<'_>> = subjects
            .iter()
            .map(|subject| (subject.key.as_str(), subject))
            .collect();
        for (key, known) in &mut self.0 {
            let awaited = here.get(key.as_str()).and_then(|subject| awaits(subject));
            known.turn_to(awaited, now_ns);
        }
        for (key, subject) in here {
            if !self.0.contains_key(key) && self.0.len() >= SUBJECTS {
                continue;
            }
            let known = self.0.entry(key.to_owned()).or_default();
            known.object.clone_from(&subject.object);
            known.required = subject.required;
            known.turn_to(awaits(subject), now_ns);
        }
    }

    /// How many waits ended.
    pub fn ended(&self) -> usize {
        self.0.values().map(|known| known.ended.len()).sum()
    }

    /// All waits as spans; one that has not ended ends now, and one without a length is left out.
    pub fn marks(&self, now_ns: u64) -> Vec<Mark> {
        let mut marks = Vec::new();
        for (key, known) in &self.0 {
            let object = self.newest(key).unwrap_or(&known.object);
            let open = known.open.map(|(awaits, since)| (awaits, since, now_ns));
            for (awaits, start_ns, end_ns) in known.ended.iter().copied().chain(open) {
                if start_ns < end_ns {
                    marks.push(Mark {
                        phase: Phase::Wait,
                        object: object.to_owned(),
                        start_ns,
                        end_ns: Some(end_ns),
                        awaited: Some(awaits),
                        optional: !known.required,
                    });
                }
            }
        }
        marks
    }

    /// The name of the only port that a request without a port turned out to mean.
    fn newest(&self, key: &str) -> Option<&str> {
        let of_request = key.ends_with(' ').then_some(key)?;
        let mut ports = self.0.iter();
        let mut ports = ports
            .by_ref()
            .filter(|(other, _)| other.len() > of_request.len() && other.starts_with(of_request));
        match (ports.next(), ports.next()) {
            (Some((_, known)), None) => Some(&known.object),
            _ => None,
        }
    }
}

impl Known {
    fn turn_to(&mut self, awaited: Option<Awaits>, now_ns: u64) {
        match (self.open, awaited) {
            (Some((same, _)), Some(awaits)) if same == awaits => return,
            (Some((awaits, since)), _) if self.ended.len() < KEPT && since < now_ns => {
                self.ended.push((awaits, since, now_ns));
            }
            _ => {}
        }
        self.open = awaited.map(|awaits| (awaits, now_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::checks::Id;
    use crate::verify::finding::Finding;
    use crate::verify::report::LinkReport;
    use crate::wish::expectation::LinkWish;

    fn link(name: Option<&str>, check: Option<Id>) -> LinkReport {
        let wish = LinkWish {
            target: "ib0".to_owned().into(),
            ..LinkWish::default()
        };
        let findings = check.map(|check| Finding::failed(check, "", ""));
        LinkReport {
            name: name.map(str::to_owned),
            ..LinkReport::new(&wish, None, findings.into_iter().collect())
        }
    }

    fn follow(waits: &mut Waits, link: &LinkReport, now_ns: u64) {
        waits.follow(&[Subject::of_link(link)], now_ns);
    }

    fn spans(waits: &Waits, now_ns: u64) -> Vec<(String, Awaits, u64, u64)> {
        let marks = waits.marks(now_ns).into_iter();
        let span = |mark: Mark| {
            let (awaited, end_ns) = (mark.awaited.unwrap(), mark.end_ns.unwrap());
            (mark.object, awaited, mark.start_ns, end_ns)
        };
        marks.map(span).collect()
    }

    #[test]
    fn a_wait_ends_when_something_else_is_awaited() {
        let mut waits = Waits::default();
        let port = Some("mlx5_0/1");
        for (now, check) in [
            (1, Some(Id::PortPhysicalState)),
            (5, Some(Id::PortState)),
            // The same subnet manager.
            (7, Some(Id::PortSmLid)),
        ] {
            follow(&mut waits, &link(port, check), now);
        }
        let object = || "mlx5_0/1".to_owned();
        let trained = (object(), Awaits::PhysicalLink, 1, 5);
        let until = |now| (object(), Awaits::SubnetManager, 5, now);
        assert_eq!(spans(&waits, 8), [trained.clone(), until(8)]);
        follow(&mut waits, &link(port, None), 9);
        assert_eq!(spans(&waits, 20), [trained, until(9)]);
        assert_eq!(waits.ended(), 2);
    }

    #[test]
    fn the_wait_before_a_port_is_known_belongs_to_its_port() {
        let mut waits = Waits::default();
        follow(&mut waits, &link(None, Some(Id::DevicePresent)), 1);
        follow(&mut waits, &link(Some("mlx5_0/1"), Some(Id::PortState)), 3);
        let objects: Vec<String> = spans(&waits, 4).into_iter().map(|span| span.0).collect();
        assert_eq!(objects, ["mlx5_0/1", "mlx5_0/1"]);
    }

    #[test]
    fn a_link_that_flaps_fills_no_file() {
        let mut waits = Waits::default();
        for round in 0..1000 {
            let check = (round % 2 == 0).then_some(Id::PortState);
            follow(&mut waits, &link(Some("mlx5_0/1"), check), round);
        }
        assert_eq!(waits.ended(), KEPT);
    }
}
