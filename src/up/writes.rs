// SPDX-License-Identifier: MIT OR Apache-2.0
//! The changes that the loader writes. A write ends at once on a healthy machine, and sleeps in the
//! kernel where firmware does not answer: then the walk goes on with the other objects.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::part::{Part, Wake, next};
use crate::changes::{Change, Setting, What};
use crate::facts::{Facts, Netdev, Readers, Unended};
use crate::loader::{Answer, Loader, Request};

/// A change whose write has failed is not tried again before: the end of the write wakes the walk,
/// which finds the change still to be made.
const RETRY: Duration = Duration::from_secs(10);

/// A write that has ended.
#[derive(Debug)]
pub struct Written {
    pub change: Change,
    pub answer: Answer,
}

/// What a write is about: an interface by its index, because its name may change meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Other(String),
    Interface(u32),
}

impl Subject {
    fn of(change: &Change) -> Subject {
        match change.index {
            None => Subject::Other(change.object.clone()),
            Some(index) => Subject::Interface(index),
        }
    }
}

/// A write that has not ended.
#[derive(Debug)]
struct UnderWay {
    /// The object of the change: the last known name of an interface.
    object: String,
    what: String,
    is_port_types: bool,
    since: Instant,
    is_long: bool,
}

/// The writes that have begun.
#[derive(Debug)]
pub struct Writes<'a> {
    loader: &'a Loader,
    running: FuturesUnordered<LocalBoxFuture<'a, Written>>,
    /// A subject has one write at a time.
    under_way: BTreeMap<Subject, UnderWay>,
    ended: Vec<Written>,
    /// The changes whose write has failed, and until when each is held.
    failed: Vec<(Change, Instant)>,
}

impl<'a> Writes<'a> {
    /// Creates the part without writes.
    pub fn new(loader: &'a Loader) -> Writes<'a> {
        Writes {
            loader,
            running: FuturesUnordered::new(),
            under_way: BTreeMap::new(),
            ended: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Whether the change must wait: for the end of a write, or because its own has failed just now.
    pub fn holds(&self, change: &Change) -> bool {
        let bond = match &change.what {
            What::Set(Setting::Enslave { index, .. }) => Some(Subject::Interface(*index)),
            _ => None,
        };
        let is_failed =
            |(failed, until): &(Change, Instant)| failed == change && Instant::now() < *until;
        if self.failed.iter().any(is_failed) {
            return true;
        }
        let mut subjects = bond.into_iter().chain([Subject::of(change)]);
        subjects.any(|subject| self.under_way.contains_key(&subject))
    }

    /// Begins the write of a change that no other write [holds](Writes::holds).
    pub fn begin(&mut self, change: &Change, request: Request) {
        let new = UnderWay {
            object: change.object.clone(),
            what: request.to_string(),
            is_port_types: matches!(request, Request::PortTypes { .. }),
            since: Instant::now(),
            is_long: false,
        };
        self.under_way.insert(Subject::of(change), new);
        let (loader, change) = (self.loader, change.clone());
        let writing = async move {
            let answer = loader.carry_out(request).await;
            Written { change, answer }
        };
        self.running.push(writing.boxed_local());
    }

    /// Waits for the end of the change's write, but only until `until`. Gives all writes that have
    /// ended.
    pub async fn soon(&mut self, change: &Change, until: Instant) -> Vec<Written> {
        let subject = Subject::of(change);
        while self.under_way.contains_key(&subject) {
            tokio::select! {
                // First of all the request is sent.
                biased;
                Some(written) = self.running.next() => self.end_of(written),
                () = sleep_until(until) => break,
            }
        }
        self.take_ended()
    }

    /// Whether a write has begun and may soon end: the facts of the last look may be older than what
    /// the write does.
    pub fn is_any_short(&self) -> bool {
        self.under_way.values().any(|write| !write.is_long)
    }

    /// The writes that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<Written> {
        std::mem::take(&mut self.ended)
    }

    fn end_of(&mut self, written: Written) {
        if let Some(known) = self.under_way.remove(&Subject::of(&written.change))
            && known.is_long
        {
            let seconds = known.since.elapsed().as_secs();
            log::info!("{}: ended after {seconds} s", known.what);
        }
        if written.answer.is_failed() {
            let until = Instant::now() + RETRY;
            self.failed.push((written.change.clone(), until));
        }
        self.ended.push(written);
    }
}

impl Part for Writes<'_> {
    fn follow(&mut self, facts: &Facts, _readers: Option<&Readers>) {
        self.failed.retain(|(_, until)| Instant::now() < *until);
        for (subject, write) in &mut self.under_way {
            let mut netdevs = facts.netdevs.iter();
            let is_it =
                |netdev: &&Netdev| netdev.ifindex.map(Subject::Interface).as_ref() == Some(subject);
            if let Some(netdev) = netdevs.find(is_it) {
                write.object.clone_from(&netdev.ifname);
            }
            if !write.is_long && write.since.elapsed() >= Unended::LONG {
                write.is_long = true;
                log::warn!("{}", Unended::words(&write.what));
            }
        }
    }

    fn add_to(&self, facts: &mut Facts) {
        let shown = self.under_way.values();
        let shown = shown.filter(|write| write.is_long || write.is_port_types);
        facts.unended.extend(shown.map(|write| Unended {
            object: write.object.clone(),
            what: write.what.clone(),
            is_port_types: write.is_port_types,
            is_long: write.is_long,
        }));
    }

    fn due(&self) -> Option<Instant> {
        let short = self.under_way.values().filter(|write| !write.is_long);
        let failed = self.failed.iter().map(|(_, until)| *until);
        short
            .map(|write| write.since + Unended::LONG)
            .chain(failed)
            .min()
    }

    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let changed = async move {
            let written = next(&mut self.running).await;
            self.end_of(written);
            Wake::Look
        };
        changed.boxed_local()
    }

    fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::fd::AsFd;

    use nix::sys::socket::MsgFlags;

    use super::*;
    use crate::changes::{Need, Writing};
    use crate::error::Error;
    use crate::system::worker::{Worker, receive_from, send_to};
    use crate::wish::ipoib::Mode;

    /// Never answers about an interface `stuck`, and fails for `refused`.
    fn loader() -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        std::thread::spawn(move || -> io::Result<()> {
            loop {
                let (number, request): (u32, Request) =
                    receive_from(far.as_fd(), MsgFlags::empty())?;
                let text = request.to_string();
                if !text.ends_with("stuck") {
                    let result = match text.ends_with("refused") {
                        true => Err(Error::new("refused", "cannot be set")),
                        false => Ok(()),
                    };
                    let answer = (number, Answer::Done(result));
                    send_to(far.as_fd(), &answer, MsgFlags::empty())?;
                }
            }
        });
        Ok(worker)
    }

    /// The interfaces; the index is the position, from 1.
    const INTERFACES: [&str; 5] = ["stuck", "refused", "ib0", "ib1", "ib2"];

    fn change(object: &str, what: What) -> Change {
        let mut indices = (1..).zip(INTERFACES);
        Change {
            object: object.to_owned(),
            index: indices
                .find(|(_, name)| *name == object)
                .map(|(index, _)| index),
            need: Need::Requested,
            what,
        }
    }

    const MODE: Writing = Writing::Mode(Mode::Connected);

    fn connected(object: &str) -> Change {
        change(object, What::Write(MODE))
    }

    fn begin(writes: &mut Writes<'_>, object: &str) {
        let change = connected(object);
        assert!(!writes.holds(&change));
        writes.begin(&change, MODE.request(object, change.index));
        assert!(writes.holds(&change));
    }

    #[tokio::test]
    async fn a_write_that_does_not_end_holds_its_own_object_only() {
        let loader = Loader::new(loader);
        let mut writes = Writes::new(&loader);
        begin(&mut writes, "stuck");
        let soon = || Instant::now() + Duration::from_millis(50);
        assert!(writes.soon(&connected("stuck"), soon()).await.is_empty());
        let bond = "stuck".to_owned();
        let joins = What::Set(Setting::Enslave { bond, index: 1 });
        assert!(writes.holds(&change("ib1", joins)));
        assert!(writes.holds(&change("stuck", What::Set(Setting::Up))));
        assert!(!writes.holds(&change("ib0", What::Set(Setting::Up))));
        begin(&mut writes, "ib0");
        let minute = Instant::now() + Duration::from_secs(60);
        let ended = writes.soon(&connected("ib0"), minute).await;
        let ended = ended.iter().map(|one| (&*one.change.object, &one.answer));
        let done = Answer::Done(Ok(()));
        assert_eq!(ended.collect::<Vec<_>>(), [("ib0", &done)]);
        begin(&mut writes, "ib2");
        assert_eq!(writes.changed().await, Wake::Look);
        assert_eq!(writes.take_ended().len(), 1);
        assert!(writes.is_busy() && writes.take_ended().is_empty());
    }

    #[tokio::test]
    async fn a_write_follows_its_interface_to_another_name() {
        let loader = Loader::new(loader);
        let mut writes = Writes::new(&loader);
        begin(&mut writes, "stuck");
        let renamed = |name: &str, index| Change {
            object: name.to_owned(),
            index: Some(index),
            ..connected("stuck")
        };
        assert!(writes.holds(&renamed("ib7", 1)));
        assert!(!writes.holds(&renamed("stuck", 7)));
        tokio::time::pause();
        tokio::time::advance(Unended::LONG).await;
        let netdevs = [(1, "ib7"), (7, "stuck")].map(|(index, name)| Netdev {
            ifindex: Some(index),
            ifname: name.to_owned(),
            ..Netdev::default()
        });
        let mut facts = Facts {
            netdevs: netdevs.into(),
            ..Facts::default()
        };
        writes.follow(&facts, None);
        Part::add_to(&writes, &mut facts);
        let unended = facts.unended.first().unwrap();
        let (object, what) = (&*unended.object, &*unended.what);
        assert_eq!((object, what), ("ib7", "set mode connected of stuck"));
    }

    #[tokio::test]
    async fn a_write_that_failed_is_not_begun_again_at_once() {
        let loader = Loader::new(loader);
        let mut writes = Writes::new(&loader);
        begin(&mut writes, "refused");
        assert_eq!(writes.changed().await, Wake::Look);
        tokio::time::pause();
        assert!(!writes.is_busy());
        assert!(writes.holds(&connected("refused")));
        assert!(!writes.holds(&connected("ib0")));
        assert!(!writes.holds(&change(
            "refused",
            What::Write(Writing::Mode(Mode::Datagram))
        )));
        assert!(writes.due().is_some(), "the walk looks again then");
        tokio::time::advance(RETRY).await;
        assert!(!writes.holds(&connected("refused")));
        writes.follow(&Facts::default(), None);
        assert_eq!(writes.due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_has_not_ended_is_named_after_a_while() {
        let loader = Loader::new(loader);
        let mut writes = Writes::new(&loader);
        begin(&mut writes, "stuck");
        let named = |writes: &mut Writes<'_>| {
            let mut facts = Facts::default();
            writes.follow(&facts, None);
            Part::add_to(writes, &mut facts);
            facts.unended
        };
        assert_eq!(
            (named(&mut writes), writes.due().is_some()),
            (Vec::new(), true)
        );
        assert!(writes.is_any_short());
        tokio::time::advance(Unended::LONG).await;
        let stuck = Unended {
            object: "stuck".to_owned(),
            what: "set mode connected of stuck".to_owned(),
            is_port_types: false,
            is_long: true,
        };
        assert_eq!((named(&mut writes), writes.due()), (vec![stuck], None));
        assert!(!writes.is_any_short(), "no verdict waits for it any longer");
        let types = Writing::PortTypes(Vec::new());
        let card = Change {
            object: "0000:05:00.0".to_owned(),
            index: None,
            need: Need::Requested,
            what: What::Write(types.clone()),
        };
        writes.begin(&card, types.request(&card.object, None));
        let shown = named(&mut writes).into_iter();
        let shown = shown.map(|one| (one.object, one.is_port_types, one.is_long));
        let (card, stuck) = ("0000:05:00.0".to_owned(), "stuck".to_owned());
        let expected = [(card, true, false), (stuck, false, true)];
        assert_eq!(
            shown.collect::<Vec<_>>(),
            expected,
            "port types from the start"
        );
    }
}
