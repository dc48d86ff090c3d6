// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the line about the whole wait.

use std::collections::BTreeSet;
use std::time::Duration;

use super::voice::Subject;
use crate::error::printable;
use crate::verify::checks::Id;
use crate::wish::expectation::{Expectation, Require};

/// More subjects than this are counted by cause.
const NAMED: usize = 3;

/// The interfaces whose troubles explain that a bond has no interface or no carrier, as positions in
/// `subjects`.
fn explained_by(
    bond: &Subject<'_>,
    subjects: &[Subject<'_>],
    expectation: &Expectation,
) -> Vec<usize> {
    let is_explained = bond.trouble.is_some_and(|finding| {
        matches!(finding.check, Id::BondSlaves | Id::BondCarrier) && !finding.lasting
    });
    let Some(wish) = bond.bond(expectation).filter(|_| is_explained) else {
        return Vec::new();
    };
    let is_slave = |subject: &Subject<'_>| {
        let mut slaves = wish.slaves.iter();
        slaves.any(|slave| subject.target.is_some_and(|target| *target == *slave))
    };
    let all = subjects.iter().enumerate();
    all.filter(|(_, subject)| subject.trouble.is_some() && is_slave(subject))
        .map(|(position, _)| position)
        .collect()
}

/// The optional interfaces that a required bond waits for, as positions in `subjects`.
pub fn blocking(subjects: &[Subject<'_>], expectation: &Expectation) -> BTreeSet<usize> {
    let required = subjects.iter().filter(|subject| subject.required);
    required
        .flat_map(|subject| explained_by(subject, subjects, expectation))
        .collect()
}

/// What the line about the whole wait depends on beside the subjects.
#[derive(Debug, Clone, Copy)]
pub struct Need<'a> {
    pub expectation: &'a Expectation,
    /// The number of verified ports.
    pub verified: usize,
    /// The cause if no subject that is awaited has a trouble.
    pub otherwise: &'a str,
}

impl Need<'_> {
    /// The number of ports that must still be verified; none if certain links are required.
    fn missing(&self) -> Option<usize> {
        match self.expectation.require {
            Require::Count(n) => Some((n as usize).saturating_sub(self.verified)),
            Require::Listed | Require::All => None,
        }
    }

    /// Whether the wait ends only with this subject, or with one of its kind.
    fn is_for(&self, subject: &Subject<'_>) -> bool {
        let is_counted = match self.missing() {
            // A bond has no port of its own.
            Some(missing) => missing > 0 && subject.bond(self.expectation).is_none(),
            None => self.expectation.require == Require::All,
        };
        subject.trouble.is_some() && (subject.required || is_counted)
    }
}

/// The line while `up` waits: `waiting for ib0 (mlx5_0/1), 30 s of 180 s: CAUSE`. `blamed_for_ns`: how long
/// the trouble of a subject counts as unusual. A bond is explained by its interfaces.
pub fn progress(
    subjects: &[Subject<'_>],
    blamed_for_ns: impl Fn(&Subject<'_>) -> u64,
    need: &Need<'_>,
    elapsed: Duration,
    timeout: Duration,
) -> String {
    let time = format!("{} s of {} s", elapsed.as_secs(), timeout.as_secs());
    let all = subjects.iter().enumerate();
    let awaited: Vec<(usize, &Subject<'_>)> =
        all.filter(|(_, subject)| need.is_for(subject)).collect();
    if awaited.is_empty() {
        return format!("waiting, {time}: {}", printable(need.otherwise));
    }
    let mut named = BTreeSet::new();
    for (position, subject) in &awaited {
        let members = explained_by(subject, subjects, need.expectation);
        match members.is_empty() {
            true => named.extend([*position]),
            false => named.extend(members),
        }
    }
    let named = named.iter().filter_map(|position| subjects.get(*position));
    let causes: Vec<(&str, String)> = named
        .filter_map(|subject| {
            Some((
                subject.object.as_str(),
                subject.cause(blamed_for_ns(subject))?,
            ))
        })
        .collect();
    let awaited: Vec<&Subject<'_>> = awaited.into_iter().map(|(_, subject)| subject).collect();
    let absent = absent(&awaited, need);
    let head = match awaited.as_slice() {
        [one] if absent == 0 => one.object.clone(),
        _ => number(&awaited, absent, need),
    };
    let mut what = match (causes.as_slice(), awaited.as_slice()) {
        ([(object, cause)], [one]) if *object == one.object && absent == 0 => cause.clone(),
        (causes, _) if causes.len() <= NAMED => {
            let each = causes
                .iter()
                .map(|(object, cause)| format!("{object}: {cause}"));
            each.collect::<Vec<String>>().join("; ")
        }
        (causes, _) => counted(causes),
    };
    if absent > 0 {
        let ports = if absent == 1 { "port" } else { "ports" };
        what.push_str(&format!("; {absent} {ports} not found"));
    }
    format!("waiting for {head}, {time}: {what}")
}

/// The number of required ports that the machine does not show, if the report does not say that of a
/// link.
fn absent(awaited: &[&Subject<'_>], need: &Need<'_>) -> usize {
    let is_port = |subject: &&Subject<'_>| {
        let check = subject.trouble.map(|finding| finding.check);
        subject.target.is_some() && check != Some(Id::DevicePresent)
    };
    match awaited.iter().all(is_port) {
        true => need.missing().unwrap_or(0).saturating_sub(awaited.len()),
        false => 0,
    }
}

/// `2 links`, `1 of 2 links` if any of them will do, `1 link and 2 servers`.
fn number(awaited: &[&Subject<'_>], absent: usize, need: &Need<'_>) -> String {
    let is_link = |subject: &&&Subject<'_>| subject.target.is_some();
    let links = awaited.iter().filter(is_link).count();
    let servers = awaited.len() - links;
    let of = |number: usize, noun: &str| match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    };
    let any = need.missing().filter(|missing| *missing < links);
    let texts = [
        (links > 0).then(|| {
            let any = any.map(|missing| format!("{missing} of "));
            any.unwrap_or_default() + &of(links + absent, "link")
        }),
        (servers > 0).then(|| of(servers, "server")),
    ];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    texts.join(" and ")
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
    use std::net::Ipv4Addr;

    use super::*;
    use crate::plan::tests::planned;
    use crate::rdma::reach::Server;
    use crate::rdma::types::LinkLayer;
    use crate::system::clock::SECOND;
    use crate::up::voice::tests::{init, link};
    use crate::verify::finding::Finding;
    use crate::verify::report::{LinkReport, ServerReport};
    use crate::wish::bond::BondWish;
    use crate::wish::expectation::LinkWish;

    fn expectation(require: Require) -> Expectation {
        Expectation {
            require,
            ..planned("ip=ib0:dhcp").expectation
        }
    }

    fn line(subjects: &[Subject<'_>], age_s: u64, need: &Need<'_>) -> String {
        let (elapsed, timeout) = (Duration::from_secs(30), Duration::from_secs(180));
        progress(subjects, |_| age_s * SECOND, need, elapsed, timeout)
    }

    fn waiting(links: &[LinkReport], age_s: u64) -> String {
        let subjects: Vec<_> = links.iter().map(Subject::of_link).collect();
        let need = Need {
            expectation: &expectation(Require::Listed),
            verified: 0,
            otherwise: "the drivers are still loading",
        };
        line(&subjects, age_s, &need)
    }

    #[test]
    fn one_line_says_what_is_waited_for() {
        let down = Finding::failed(Id::PortPhysicalState, "Polling", "LinkUp");
        assert_eq!(
            waiting(&[], 20),
            "waiting, 30 s of 180 s: the drivers are still loading"
        );
        assert_eq!(
            waiting(&[link(0, &init())], 20),
            "waiting for ib0 (mlx5_0/1), 30 s of 180 s: INIT, no subnet manager has configured this port"
        );
        assert_eq!(
            waiting(&[link(0, &init())], 9),
            "waiting for ib0 (mlx5_0/1), 30 s of 180 s: waiting for the subnet manager"
        );
        assert_eq!(
            waiting(&[link(0, &init()), link(1, &down)], 9),
            "waiting for 2 links, 30 s of 180 s: ib0 (mlx5_0/1): waiting for the subnet manager; \
             ib1 (mlx5_1/1): no physical link: Polling"
        );
        let mut links: Vec<LinkReport> = (0..14).map(|number| link(number, &init())).collect();
        links.extend([link(14, &down), link(15, &down)]);
        assert_eq!(
            waiting(&links, 20),
            "waiting for 16 links, 30 s of 180 s: 14 x INIT, no subnet manager has configured this \
             port; 2 x no physical link: Polling"
        );
        // A link that is not required is no reason to wait.
        links[14].required = false;
        assert!(waiting(&links, 20).starts_with("waiting for 15 links, "));
    }

    /// So many links are down, and others are verified.
    fn any_of(links: usize, required: u32, verified: usize) -> String {
        let down = Finding::failed(Id::PortPhysicalState, "Polling", "LinkUp");
        let links: Vec<LinkReport> = (0..links)
            .map(|number| LinkReport {
                required: false,
                ..link(number, &down)
            })
            .collect();
        let subjects: Vec<_> = links.iter().map(Subject::of_link).collect();
        let need = Need {
            expectation: &expectation(Require::Count(required)),
            verified,
            otherwise: "a required link is not verified yet",
        };
        line(&subjects, 20, &need)
    }

    #[test]
    fn the_line_counts_what_is_required() {
        assert_eq!(
            any_of(5, 4, 3),
            "waiting for 1 of 5 links, 30 s of 180 s: 5 x no physical link: Polling"
        );
        assert_eq!(
            any_of(1, 4, 1),
            "waiting for 3 links, 30 s of 180 s: ib0 (mlx5_0/1): no physical link: Polling; 2 ports not found"
        );
        // Enough ports are verified: no link is awaited.
        assert_eq!(
            any_of(1, 1, 1),
            "waiting, 30 s of 180 s: a required link is not verified yet"
        );
    }

    #[test]
    fn servers_are_no_links() {
        let server = |number| ServerReport {
            server: Server {
                address: Ipv4Addr::new(10, 0, 0, number).into(),
                port: None,
            },
            requested_by: None,
            finding: Finding::failed(Id::ServerRdma, "the request was sent", ""),
        };
        let (servers, down) = ([server(2), server(3)], link(0, &init()));
        let need = Need {
            expectation: &expectation(Require::Listed),
            verified: 0,
            otherwise: "",
        };
        let mut subjects: Vec<_> = servers.iter().map(Subject::of_server).collect();
        assert_eq!(
            line(&subjects, 20, &need),
            "waiting for 2 servers, 30 s of 180 s: 10.0.0.2: not verified over RDMA: the request was sent; \
             10.0.0.3: not verified over RDMA: the request was sent"
        );
        subjects.insert(0, Subject::of_link(&down));
        let both = line(&subjects, 20, &need);
        assert!(
            both.starts_with("waiting for 1 link and 2 servers, 30 s of 180 s: ib0 "),
            "{both}"
        );
    }

    #[test]
    fn the_interfaces_of_a_bond_explain_its_wait() {
        let bond = LinkWish {
            target: "bond0".to_owned().into(),
            required: true,
            bond: Some(BondWish {
                slaves: vec!["ib0".to_owned(), "ib1".to_owned()],
                options: Vec::new(),
            }),
            ..LinkWish::default()
        };
        let expectation = Expectation {
            links: vec![bond.clone()],
            ..expectation(Require::Listed)
        };
        let need = Need {
            expectation: &expectation,
            verified: 0,
            otherwise: "",
        };
        let of = |check: Id, slave: &Finding, age_s| {
            let slave = |number| LinkReport {
                required: false,
                ..link(number, slave)
            };
            let finding = Finding::failed(check, "no carrier", "carrier");
            let links = [
                slave(0),
                slave(1),
                LinkReport::new(&bond, None, vec![finding]),
            ];
            let subjects: Vec<_> = links.iter().map(Subject::of_link).collect();
            let blocking = Vec::from_iter(blocking(&subjects, &expectation));
            (line(&subjects, age_s, &need), blocking)
        };
        let init = "INIT, no subnet manager has configured this port";
        let explained = format!(
            "waiting for bond0, 30 s of 180 s: ib0 (mlx5_0/1): {init}; ib1 (mlx5_1/1): {init}"
        );
        for check in [Id::BondSlaves, Id::BondCarrier] {
            assert_eq!(
                of(check, &self::init(), 20),
                (explained.clone(), vec![0, 1])
            );
        }
        let good = Finding::ok(Id::PortState, "ACTIVE");
        let alone = "waiting for bond0, 30 s of 180 s: the bond has no carrier";
        assert_eq!(of(Id::BondCarrier, &good, 20), (alone.to_owned(), vec![]));
        let absent = "waiting for bond0, 30 s of 180 s: waiting for the driver";
        assert_eq!(
            of(Id::BondPresent, &self::init(), 1),
            (absent.to_owned(), vec![])
        );
    }

    #[test]
    fn the_state_of_a_port_is_named_by_its_check_and_its_link_layer() {
        let unknown = Finding::unknown(Id::PortState);
        assert_eq!(
            waiting(&[link(0, &unknown)], 20),
            "waiting for ib0 (mlx5_0/1), 30 s of 180 s: port.state is not known: not reported"
        );
        let down = Finding::failed(Id::PortState, "DOWN", "ACTIVE");
        let ethernet = LinkReport {
            link_layer: Some(LinkLayer::Ethernet),
            ..link(0, &down)
        };
        assert_eq!(
            waiting(std::slice::from_ref(&ethernet), 9),
            "waiting for ib0 (mlx5_0/1), 30 s of 180 s: waiting for the port to become ACTIVE"
        );
        assert_eq!(
            Subject::of_link(&ethernet).lines(0),
            [(
                log::Level::Info,
                "ib0 (mlx5_0/1): waiting for the port to become ACTIVE".to_owned()
            )]
        );
    }

    #[test]
    fn the_line_is_printable() {
        let need = Need {
            expectation: &expectation(Require::Listed),
            verified: 0,
            otherwise: "only 1 port\nREADY=1",
        };
        assert_eq!(
            line(&[], 0, &need),
            "waiting, 30 s of 180 s: only 1 port\\x0aREADY=1"
        );
    }
}
