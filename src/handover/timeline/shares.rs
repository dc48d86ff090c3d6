// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what the boot did in each stretch of its time, along the link that was verified last.

use std::cmp::Reverse;

use super::Timeline;
use super::lanes::is_of;
use crate::handover::{Mark, Outcome, Phase};
use crate::system::clock::SECOND;
use crate::verify::checks::Awaits;

/// What the boot did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Kernel and initramfs, before `ibboot up` started.
    Before,
    /// A link or a server waited for this.
    Wait(Awaits),
    /// A driver was loading, and nothing else was awaited.
    Drivers,
    /// None of these.
    Other,
}

impl Share {
    /// In words.
    pub fn words(self) -> String {
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
pub struct Piece {
    /// Start, ns since kernel start.
    pub from_ns: u64,
    /// End, ns since kernel start.
    pub to_ns: u64,
    /// What the boot did meanwhile.
    pub share: Share,
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
        let lasting = |mark: &Mark| (mark.end_ns.map(|ns| ns.min(end)), Reverse(mark.start_ns));
        let longest = waits.map(|(mark, _)| mark).max_by_key(|mark| lasting(mark));
        let longest = longest.filter(|_| self.outcome != Outcome::Verified);
        let found = longest.into_iter().chain(verified);
        found.map(|mark| mark.object.as_str()).collect()
    }

    /// The waits: the mark, and what was awaited.
    pub(super) fn waits(&self) -> impl Iterator<Item = (&Mark, Awaits)> {
        let waits = self.marks.iter().filter(|mark| mark.phase == Phase::Wait);
        waits.filter_map(|mark| Some((mark, mark.awaited?)))
    }

    /// The boot from kernel start to handover, without a gap.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let end = self.end_ns();
        let mut bounds = vec![0, end];
        bounds.extend(self.first(Phase::Started));
        bounds.extend(self.marks.iter().flat_map(|mark| {
            let span = mark.end_ns.map(|end_ns| [mark.start_ns, end_ns]);
            span.into_iter().flatten()
        }));
        bounds.retain(|bound| *bound <= end);
        bounds.sort_unstable();
        bounds.dedup();
        let mut pieces: Vec<Piece> = Vec::new();
        for (from_ns, to_ns) in bounds.iter().copied().zip(bounds.iter().copied().skip(1)) {
            let share = self.share_at(from_ns);
            match pieces.last_mut().filter(|piece| piece.share == share) {
                Some(piece) => piece.to_ns = to_ns,
                None => pieces.push(Piece {
                    from_ns,
                    to_ns,
                    share,
                }),
            }
        }
        pieces
    }

    /// What the boot did at a moment: the wait of the first critical object that waited, otherwise the
    /// wait for a driver, before a port is known.
    fn share_at(&self, ns: u64) -> Share {
        if self.first(Phase::Started).is_some_and(|start| ns < start) {
            return Share::Before;
        }
        let covers = |mark: &Mark| mark.start_ns <= ns && mark.end_ns > Some(ns);
        let waits: Vec<(&Mark, Awaits)> = self.waits().filter(|(mark, _)| covers(mark)).collect();
        let critical = self.critical().into_iter();
        let mut of_critical =
            critical.filter_map(|name| waits.iter().find(|(mark, _)| is_of(&mark.object, name)));
        let of_driver = waits.iter().find(|(_, awaits)| *awaits == Awaits::Driver);
        let loads = |mark: &Mark| mark.phase == Phase::Driver && covers(mark);
        match of_critical.next().or(of_driver) {
            Some((_, awaits)) => Share::Wait(*awaits),
            None if self.marks.iter().any(loads) => Share::Drivers,
            None => Share::Other,
        }
    }

    /// The shares of the boot time, the longest first: ns, what, and of whom.
    pub(super) fn shares(&self) -> Vec<(u64, Share, String)> {
        let mut sums: Vec<(u64, Share)> = Vec::new();
        for piece in self.pieces() {
            let took = piece.to_ns.saturating_sub(piece.from_ns);
            match sums.iter_mut().find(|(_, share)| *share == piece.share) {
                Some((sum, _)) => *sum += took,
                None => sums.push((took, piece.share)),
            }
        }
        sums.sort_by_key(|(sum, _)| Reverse(*sum));
        let named = sums
            .into_iter()
            .map(|(sum, share)| (sum, share, self.whose(share)));
        named.collect()
    }

    /// Whose wait: the object, or their number.
    fn whose(&self, share: Share) -> String {
        let Share::Wait(awaited) = share else {
            return String::new();
        };
        let waits = self.waits().filter(|(_, awaits)| *awaits == awaited);
        let mut objects: Vec<&str> = waits.map(|(mark, _)| mark.object.as_str()).collect();
        objects.sort_unstable();
        objects.dedup();
        match objects.as_slice() {
            [one] => (*one).to_owned(),
            several => format!("{} links", several.len()),
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
            awaited: None,
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
                mark(Phase::Started, "", 4, None),
                mark(Phase::Driver, "mlx5_ib", 4, Some(9)),
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
                "22 waiting for the subnet manager 2 links",
                "4 kernel and initramfs before ibboot up ",
                "3 waiting for the driver ib0",
                "1 loading drivers ",
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
