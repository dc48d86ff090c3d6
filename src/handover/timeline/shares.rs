// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what the boot did in each stretch of its time, along the link that was verified last.

use std::cmp::Reverse;

use super::Timeline;
use super::lanes::is_of;
use crate::error::printable;
use crate::handover::{Mark, Outcome, Phase};
use crate::system::clock::SECOND;
use crate::verify::checks::Awaits;

/// A shorter stretch is a part of the one before, ns.
const SHORT: u64 = 1_000_000;

/// What the boot did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Kernel and initramfs, before `ibboot up` started.
    Before,
    /// A link or a server waited for this.
    Wait(Awaits),
    /// A driver was loading, and nothing else was awaited.
    Drivers,
    /// dracut's cmdline hooks ran, and no driver was loading.
    Hooks,
    /// None of these.
    Other,
}

impl Share {
    /// In words, with the name of what waited.
    pub(super) fn named(self, whose: &str) -> String {
        match whose {
            "" => self.words(),
            whose => format!("{} ({})", self.words(), printable(whose)),
        }
    }

    fn words(self) -> String {
        match self {
            Share::Before => "kernel and initramfs before ibboot up".to_owned(),
            Share::Wait(awaits) => {
                let article = match awaits {
                    Awaits::Driver
                    | Awaits::PhysicalLink
                    | Awaits::SubnetManager
                    | Awaits::Members => "the ",
                    Awaits::Lease | Awaits::Server | Awaits::Setting => "a ",
                    Awaits::Address => "an ",
                    Awaits::Carrier => "",
                };
                format!("waiting for {article}{}", noun(awaits))
            }
            Share::Drivers => "loading drivers".to_owned(),
            Share::Hooks => "waiting for dracut's cmdline hooks".to_owned(),
            Share::Other => "other".to_owned(),
        }
    }
}

/// What is awaited, without an article.
pub fn noun(awaits: Awaits) -> &'static str {
    match awaits {
        Awaits::Driver => "driver",
        Awaits::PhysicalLink => "physical link",
        Awaits::SubnetManager => "subnet manager",
        Awaits::Carrier => "carrier",
        Awaits::Lease => "DHCP lease",
        Awaits::Address => "address",
        Awaits::Server => "server",
        Awaits::Members => "interfaces of the bond",
        Awaits::Setting => "setting",
    }
}

/// A stretch of the boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Start, ns since kernel start.
    pub from_ns: u64,
    /// End, ns since kernel start.
    pub to_ns: u64,
    /// What the boot did meanwhile.
    pub share: Share,
    /// The link or server that waited; empty if none did.
    pub object: &'a str,
}

/// A wait on which the handover may have depended.
struct Wait<'a> {
    /// The most important wait has the lowest rank.
    rank: usize,
    mark: &'a Mark,
    awaits: Awaits,
}

/// Seconds with one decimal.
pub fn tenths(ns: u64) -> String {
    format!("{}.{}", ns / SECOND, ns / (SECOND / 10) % 10)
}

/// Seconds with one decimal, or without if the decimal is 0.
pub fn short(ns: u64) -> String {
    let text = tenths(ns);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

impl Timeline {
    /// The objects on which the handover depended, the most important first: what was verified last;
    /// after a failure the longest of the waits that lasted to the end.
    pub(super) fn critical(&self) -> Vec<&str> {
        let end = self.end_ns();
        let is_verified =
            |mark: &&Mark| matches!(mark.phase, Phase::Verified | Phase::ServerAnswered);
        let verified = self.marks.iter().rev().filter(is_verified);
        let verified = verified.filter(|mark| mark.start_ns <= end);
        let waits = self.waits().filter(|(mark, _)| mark.start_ns < end);
        let lasting = |mark: &Mark| {
            let until = mark.end_ns.map(|ns| ns.min(end));
            (!mark.optional, until, Reverse(mark.start_ns))
        };
        let longest = waits.map(|(mark, _)| mark).max_by_key(|mark| lasting(mark));
        let longest = longest.filter(|_| self.outcome != Outcome::Verified);
        let mut names: Vec<&str> = Vec::new();
        for mark in longest.into_iter().chain(verified) {
            if !names.contains(&mark.object.as_str()) {
                names.push(&mark.object);
            }
        }
        names
    }

    /// The waits: the mark, and what was awaited.
    pub(super) fn waits(&self) -> impl Iterator<Item = (&Mark, Awaits)> {
        let waits = self.marks.iter().filter(|mark| mark.phase == Phase::Wait);
        waits.filter_map(|mark| Some((mark, mark.awaited?)))
    }

    /// The waits of critical objects, and for a driver, before a port is known.
    fn ranked(&self) -> Vec<Wait<'_>> {
        let critical = self.critical();
        let rank = |mark: &Mark, awaits: Awaits| {
            let of = critical.iter().position(|name| is_of(&mark.object, name));
            of.or_else(|| (awaits == Awaits::Driver).then_some(critical.len()))
        };
        let waits = self.waits().filter_map(|(mark, awaits)| {
            let rank = rank(mark, awaits)?;
            Some(Wait { rank, mark, awaits })
        });
        waits.collect()
    }

    /// The boot from kernel start to handover, without a gap.
    pub(super) fn pieces(&self) -> Vec<Piece<'_>> {
        let (end, started) = (self.end_ns(), self.first(Phase::Started));
        let waits = self.ranked();
        let loads = self.marks.iter().filter(|mark| mark.phase == Phase::Driver);
        let loads: Vec<&Mark> = loads.collect();
        let hooks = self.marks.iter().find(|mark| mark.phase == Phase::Hooks);
        let spans = waits
            .iter()
            .map(|wait| wait.mark)
            .chain(loads.iter().copied())
            .chain(hooks);
        let mut bounds: Vec<u64> = spans
            .flat_map(|mark| [mark.start_ns, mark.end_ns.unwrap_or(mark.start_ns)])
            .chain([0, end])
            .chain(started)
            .filter(|bound| *bound <= end)
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let covers = |mark: &Mark, ns| mark.start_ns <= ns && mark.end_ns > Some(ns);
        let mut pieces: Vec<Piece<'_>> = Vec::new();
        for (from_ns, to_ns) in bounds.iter().copied().zip(bounds.iter().copied().skip(1)) {
            let wait = waits.iter().filter(|wait| covers(wait.mark, from_ns));
            let (share, object) = match wait.min_by_key(|wait| wait.rank) {
                _ if started.is_some_and(|start| from_ns < start) => (Share::Before, ""),
                Some(wait) => (Share::Wait(wait.awaits), wait.mark.object.as_str()),
                None if loads.iter().any(|mark| covers(mark, from_ns)) => (Share::Drivers, ""),
                None if hooks.is_some_and(|mark| covers(mark, from_ns)) => (Share::Hooks, ""),
                None => (Share::Other, ""),
            };
            match pieces.last_mut() {
                Some(last)
                    if (last.share, last.object) == (share, object) || to_ns - from_ns < SHORT =>
                {
                    last.to_ns = to_ns;
                }
                _ => pieces.push(Piece {
                    from_ns,
                    to_ns,
                    share,
                    object,
                }),
            }
        }
        pieces
    }

    /// This time as a part of the boot, rounded.
    pub(super) fn percent(&self, ns: u64) -> u128 {
        let end = u128::from(self.end_ns());
        (u128::from(ns) * 100 + end / 2) / end
    }

    /// The shares of the boot time, the longest first: ns, what, and of whom.
    pub(super) fn shares(&self) -> Vec<(u64, Share, String)> {
        let mut sums: Vec<(u64, Share, Vec<Piece<'_>>)> = Vec::new();
        for piece in self.pieces() {
            let took = piece.to_ns.saturating_sub(piece.from_ns);
            match sums.iter_mut().find(|(_, share, _)| *share == piece.share) {
                Some((sum, _, pieces)) => {
                    *sum += took;
                    pieces.push(piece);
                }
                None => sums.push((took, piece.share, vec![piece])),
            }
        }
        sums.sort_by_key(|(sum, _, _)| Reverse(*sum));
        let named = sums
            .into_iter()
            .map(|(sum, share, pieces)| (sum, share, self.whose(share, &pieces)));
        named.collect()
    }

    /// Whose wait: the object, and how many others waited for the same at the same time.
    fn whose(&self, share: Share, pieces: &[Piece<'_>]) -> String {
        let longest = pieces
            .iter()
            .max_by_key(|piece| piece.to_ns - piece.from_ns);
        let (Share::Wait(awaited), Some(longest)) = (share, longest) else {
            return String::new();
        };
        let is_beside = |mark: &Mark| {
            let overlaps = |piece: &Piece<'_>| {
                mark.start_ns < piece.to_ns && mark.end_ns > Some(piece.from_ns)
            };
            pieces.iter().any(overlaps)
        };
        let beside = self
            .waits()
            .filter(|(mark, awaits)| *awaits == awaited && is_beside(mark));
        let mut others: Vec<&str> = beside.map(|(mark, _)| mark.object.as_str()).collect();
        others.retain(|object| *object != longest.object);
        others.sort_unstable();
        others.dedup();
        match others.len() {
            0 => longest.object.to_owned(),
            more => format!("{} and {more} more", longest.object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = SECOND;

    fn mark(phase: Phase, object: &str, start: u64, end: Option<u64>) -> Mark {
        Mark {
            phase,
            object: object.to_owned(),
            start_ns: start * S,
            end_ns: end.map(|end| end * S),
            ..Mark::default()
        }
    }

    fn wait(object: &str, awaited: Awaits, start: u64, end: u64) -> Mark {
        Mark {
            awaited: Some(awaited),
            ..mark(Phase::Wait, object, start, Some(end))
        }
    }

    fn of(outcome: Outcome, marks: Vec<Mark>) -> Timeline {
        Timeline {
            schema: 1,
            host: None,
            kernel: None,
            outcome,
            marks,
        }
    }

    fn words(timeline: &Timeline) -> Vec<String> {
        let shares = timeline.shares().into_iter();
        let words =
            shares.map(|(ns, share, whose)| format!("{} {} {whose}", ns / S, share.words()));
        words.collect()
    }

    #[test]
    fn the_shares_follow_the_link_that_was_verified_last_and_add_up() {
        let timeline = of(
            Outcome::Verified,
            vec![
                mark(Phase::KernelStart, "", 0, None),
                mark(Phase::Started, "", 1, None),
                mark(Phase::Hooks, "", 1, Some(4)),
                mark(Phase::Driver, "mlx5_ib", 2, Some(9)),
                wait("ib0", Awaits::Driver, 5, 8),
                wait("ib0 (mlx5_0/1)", Awaits::SubnetManager, 8, 30),
                wait("ib1 (mlx5_1/1)", Awaits::PhysicalLink, 8, 20),
                mark(Phase::Verified, "ib1 (mlx5_1/1)", 20, None),
                mark(Phase::Verified, "ib0 (mlx5_0/1)", 30, None),
                mark(Phase::HandedOver, "", 31, None),
                // After the handover nothing is a part of the boot.
                wait("ib2 (mlx5_2/1)", Awaits::SubnetManager, 31, 90),
            ],
        );
        assert_eq!(timeline.critical(), ["ib0 (mlx5_0/1)", "ib1 (mlx5_1/1)"]);
        assert_eq!(
            words(&timeline),
            [
                "22 waiting for the subnet manager ib0 (mlx5_0/1)",
                "3 loading drivers ",
                "3 waiting for the driver ib0",
                "1 kernel and initramfs before ibboot up ",
                "1 waiting for dracut's cmdline hooks ",
                "1 other ",
            ]
        );
        let sum: u64 = timeline.shares().iter().map(|(ns, _, _)| ns).sum();
        assert_eq!(sum, timeline.end_ns());
    }

    #[test]
    fn an_optional_link_that_never_came_is_not_blamed() {
        let timeline = of(
            Outcome::Verified,
            vec![
                mark(Phase::Started, "", 2, None),
                wait("ib1 (mlx5_1/1)", Awaits::PhysicalLink, 2, 9),
                wait("ib0 (mlx5_0/1)", Awaits::SubnetManager, 3, 7),
                mark(Phase::Verified, "ib0 (mlx5_0/1)", 7, None),
                wait("10.0.0.2", Awaits::Server, 7, 9),
                mark(Phase::ServerAnswered, "10.0.0.2", 9, None),
                mark(Phase::HandedOver, "", 9, None),
            ],
        );
        assert_eq!(
            words(&timeline),
            [
                "4 waiting for the subnet manager ib0 (mlx5_0/1)",
                "2 kernel and initramfs before ibboot up ",
                "2 waiting for a server 10.0.0.2",
                "1 other ",
            ]
        );
    }

    #[test]
    fn after_a_failure_the_chain_is_that_of_the_longest_wait() {
        let timeline = of(
            Outcome::Continue,
            vec![
                mark(Phase::Started, "", 2, None),
                wait("ib0 (mlx5_0/1)", Awaits::PhysicalLink, 3, 10),
                mark(Phase::Verified, "ib1 (mlx5_1/1)", 4, None),
                mark(Phase::HandedOver, "", 10, None),
            ],
        );
        assert_eq!(timeline.critical().first(), Some(&"ib0 (mlx5_0/1)"));
        assert_eq!(
            words(&timeline),
            [
                "7 waiting for the physical link ib0 (mlx5_0/1)",
                "2 kernel and initramfs before ibboot up ",
                "1 other ",
            ]
        );
    }

    #[test]
    fn after_a_failure_a_required_link_is_blamed_before_an_optional_one() {
        let optional = Mark {
            optional: true,
            ..wait("ib1 (mlx5_1/1)", Awaits::PhysicalLink, 2, 10)
        };
        let timeline = of(
            Outcome::Shell,
            vec![
                optional,
                wait("ib0 (mlx5_0/1)", Awaits::SubnetManager, 4, 10),
                mark(Phase::HandedOver, "", 10, None),
            ],
        );
        assert_eq!(timeline.critical(), ["ib0 (mlx5_0/1)"]);
    }

    #[test]
    fn who_waited_for_the_same_at_the_same_time_is_counted() {
        let mut marks: Vec<Mark> = (0..16)
            .map(|n| wait(&format!("mlx5_{n}/1"), Awaits::SubnetManager, 1, 5 + n))
            .collect();
        marks.extend((0..16).map(|n| mark(Phase::Verified, &format!("mlx5_{n}/1"), 5 + n, None)));
        marks.push(mark(Phase::HandedOver, "", 20, None));
        let timeline = of(Outcome::Verified, marks);
        assert_eq!(
            words(&timeline),
            [
                "19 waiting for the subnet manager mlx5_15/1 and 15 more",
                "1 other "
            ]
        );
    }

    #[test]
    fn marks_of_an_older_program_have_no_waits() {
        let timeline = of(
            Outcome::Verified,
            vec![
                mark(Phase::Started, "", 3, None),
                mark(Phase::HandedOver, "", 5, None),
            ],
        );
        assert!(timeline.critical().is_empty());
        assert_eq!(
            words(&timeline),
            ["3 kernel and initramfs before ibboot up ", "2 other "]
        );
    }
}
