// SPDX-License-Identifier: MIT OR Apache-2.0
//! A part sends, listens or waits beside the walk. All parts have the same few methods, and no part
//! knows the walk.

use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use super::administrators::Administrators;
use super::claims::Claims;
use super::driver_probes::Probing;
use super::leasing::Leasing;
use super::modules::Modules;
use super::naming::Naming;
use super::servers::Servers;
use super::speaker::Speakers;
use super::watch::Watch;
use super::writes::Writes;
use crate::facts::{Facts, Readers};
use crate::rdma::netlink::Rdma;
use crate::system::clock::SECOND;
use crate::system::root::Root;
use crate::verify::report::Report;

/// The shortest pause between two looks without an event.
const PAUSE: Duration = Duration::from_millis(10);

/// What the walk does after a part has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wake {
    /// Wait on: only the next due time of the part has changed.
    Wait,
    /// Look at the machine again.
    Look,
}

/// A look at the machine, and the report on it.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    pub root: &'a Root,
    pub rdma: Option<&'a Rdma>,
    pub facts: &'a Facts,
    pub report: &'a Report,
}

/// Something that works beside the walk.
pub trait Part {
    /// Takes the facts of a look.
    fn follow(&mut self, _facts: &Facts, _readers: Option<&Readers>) {}

    /// Adds what the part knows to the facts.
    fn add_to(&self, _facts: &mut Facts) {}

    /// Takes the result of a look.
    fn judged(&mut self, _look: Judged<'_>) {}

    /// When the part must act without an event; none: never.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Waits until the part has changed. Dropping the future loses no event.
    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        std::future::pending().boxed_local()
    }

    /// True: the walk must not end yet because of this part.
    fn is_busy(&self) -> bool {
        false
    }

    /// Ends the wait of the walk for this part.
    fn end(&mut self) {}
}

/// The parts of a walk.
#[derive(Debug)]
pub struct Parts<'a> {
    pub modules: Modules<'a>,
    pub probing: Probing<'a>,
    pub writes: Writes<'a>,
    pub watch: Watch,
    pub naming: Naming,
    pub speakers: Speakers,
    pub leasing: Leasing,
    pub claims: Claims,
    pub servers: Servers,
    pub administrators: Administrators,
}

impl Parts<'_> {
    fn all(&mut self) -> [&mut dyn Part; 12] {
        [
            &mut self.modules,
            &mut self.probing,
            &mut self.writes,
            &mut self.watch,
            &mut self.naming,
            &mut self.speakers,
            &mut self.leasing.v4.clients,
            &mut self.leasing.v6,
            &mut self.leasing.information.clients,
            &mut self.claims,
            &mut self.servers,
            &mut self.administrators,
        ]
    }

    /// Shows the snapshot to every part.
    pub fn follow(&mut self, facts: &Facts, readers: Option<&Readers>) {
        let all = self.all().into_iter();
        all.for_each(|part| part.follow(facts, readers));
    }

    /// Adds to the snapshot what the parts know: leases, answers of servers, owners of addresses.
    pub fn add_to(&mut self, facts: &mut Facts) {
        facts.add_leases(Ok(self.leasing.leases()));
        self.all().into_iter().for_each(|part| part.add_to(facts));
    }

    /// Shows the result of a look to every part.
    pub fn judged(&mut self, look: Judged<'_>) {
        self.all().into_iter().for_each(|part| part.judged(look));
    }

    /// The time until a part is due, and at most until `latest`. A part that stays due after a look
    /// waits for an event: the pause keeps the walk from looking in a busy loop.
    pub fn next(&mut self, latest: Instant) -> Duration {
        let due = self.all().into_iter().filter_map(|part| part.due());
        let next = due.fold(latest, Instant::min);
        next.saturating_duration_since(Instant::now()).max(PAUSE)
    }

    /// Waits until at least one part has changed, as [`any`].
    pub async fn changed(&mut self) -> Wake {
        let all = self.all().into_iter().map(Part::changed).collect();
        any(all).await.into_iter().max().unwrap_or(Wake::Look)
    }

    /// Whether a part does something that must end before the walk may end.
    pub fn is_busy(&mut self) -> bool {
        self.all().into_iter().any(|part| part.is_busy())
    }

    /// Ends every part, as [`Part::end`] says.
    pub fn end(&mut self) {
        self.all().into_iter().for_each(Part::end);
    }
}

/// The pauses between two questions to a program that every node of a cluster asks: a cluster must not
/// keep that program from coming up.
#[derive(Debug)]
pub struct Pauses {
    pub first: Duration,
    /// Without the random part.
    pub longest: Duration,
}

impl Pauses {
    /// The pause after so many repetitions: doubled each time, and up to half as much again at random.
    /// `later` is up to a second: [`jitter`].
    pub fn after(&self, repeats: u32, later: Duration) -> Duration {
        let doubled = 1_u32.checked_shl(repeats.min(8)).unwrap_or(1);
        let pause = self.first.saturating_mul(doubled).min(self.longest);
        pause + (pause / 2).mul_f64(later.as_secs_f64().min(1.0))
    }
}

/// Up to a second, from the kernel's random numbers: whole clusters boot at the same time.
pub fn jitter() -> Duration {
    Duration::from_nanos(RandomState::new().hash_one(()) % SECOND)
}

/// The next result; waits for ever if nothing runs.
pub async fn next<T>(running: &mut FuturesUnordered<LocalBoxFuture<'_, T>>) -> T {
    match running.next().await {
        Some(result) => result,
        None => std::future::pending().await,
    }
}

/// Waits until at least one future is ready, and returns the outputs of all ready futures. Each
/// future is polled: a future that is always ready cannot starve the others.
pub async fn any<T>(mut waiting: Vec<LocalBoxFuture<'_, T>>) -> Vec<T> {
    poll_fn(|context| {
        let ready: Vec<T> = waiting
            .iter_mut()
            .filter_map(|one| match one.poll_unpin(context) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            })
            .collect();
        if ready.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(ready)
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_never_the_same_on_two_nodes() {
        let all = Pauses {
            first: Duration::from_secs(6),
            longest: Duration::from_secs(60),
        };
        let seconds = |repeats| all.after(repeats, Duration::ZERO).as_secs();
        let pauses = [0, 1, 2, 3, 4, 5, u32::MAX].map(seconds);
        assert_eq!(pauses, [6, 12, 24, 48, 60, 60, 60]);
        let half = Duration::from_millis(500);
        assert_eq!(all.after(4, half), Duration::from_secs(75));
    }

    #[test]
    fn the_random_part_differs_between_nodes_that_ask_at_the_same_time() {
        let mut drawn = [0; 10];
        for _ in 0..1000 {
            drawn[usize::try_from(jitter().as_millis() / 100).unwrap()] += 1;
        }
        assert!(drawn.iter().all(|n| (50..150).contains(n)), "{drawn:?}");
    }

    #[test]
    fn all_ready_futures_return_their_output() {
        let ready = |wake| std::future::ready(wake).boxed_local();
        let never = std::future::pending().boxed_local();
        let woken = any(vec![ready(Wake::Wait), never, ready(Wake::Look)]).now_or_never();
        assert_eq!(woken, Some(vec![Wake::Wait, Wake::Look]));
        assert_eq!(Wake::Wait.max(Wake::Look), Wake::Look);
        let none: Vec<LocalBoxFuture<'_, Wake>> = Vec::new();
        assert_eq!(any(none).now_or_never(), None);
        let never: LocalBoxFuture<'_, Wake> = std::future::pending().boxed_local();
        assert_eq!(any(vec![never]).now_or_never(), None);
    }
}
