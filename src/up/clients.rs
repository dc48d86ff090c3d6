// SPDX-License-Identifier: MIT OR Apache-2.0
//! What DHCP clients, DHCPv6 clients and inquiries for name servers share: one client for each
//! interface begins, continues and ends.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::time::Instant;

use super::journal::Journal;
use super::part::{Part, Wake, any};
use super::speaker::Speaker;
use super::tries::Tries;
use crate::dhcp::Outcome;
use crate::dhcp::hardware::Hardware;
use crate::error::Error;
use crate::facts::{Facts, Netdev, Readers, links};
use crate::handover::Phase;
use crate::system::clock::boottime_ns;
use crate::system::net::Net;
use crate::system::root::Root;
use crate::wish::ipoib::IpoibWish;

/// An interface that is up, with its speaker.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    pub wish: &'a IpoibWish,
    pub netdev: &'a Netdev,
    pub index: u32,
    pub speaker: &'a Speaker,
}

/// What a client needs from the walk.
#[derive(Debug)]
pub struct Means<'a> {
    pub root: &'a Root,
    pub net: &'a Net,
    pub journal: &'a mut Journal,
}

/// A client on an interface.
pub trait Client {
    /// What is requested of the client.
    type Wish: Debug;
    /// How far the client is, for the facts and for the hand-over.
    type Progress;

    /// Does what is due now.
    fn wake(&mut self);
    /// Starts again, and requests any address.
    fn start_anew(&mut self);
    /// True: a server granted the request.
    fn is_answered(&self) -> bool;
    /// When [`Client::wake`] must be called, ns since kernel start; none: only a message moves the
    /// client.
    fn due(&self) -> Option<u64>;
    /// Waits until a message has moved the client.
    async fn changed(&mut self);
    /// The progress; `gave_up`: no further try follows.
    fn progress(&self, wish: &Self::Wish, gave_up: bool) -> Self::Progress;

    /// True: after a message the client has a result for its interface.
    fn has_news(&self) -> bool {
        true
    }

    /// True: the walk must not end yet because of this client.
    fn is_open(&self) -> bool {
        false
    }

    /// Ends the wait of the walk for this client.
    fn end(&mut self) {}
}

/// A client that is granted a lease.
pub trait Lessee: Client {
    /// Name of the protocol in the log.
    const PROTOCOL: &'static str;
    /// The phase of the timeline from the first message to the granted address.
    const PHASE: Phase;

    /// What happened since the last call.
    fn outcomes(&mut self) -> Vec<Outcome>;
    /// `ADDRESS/PREFIX of SERVER, for N s`, and the parts of the answer that are not used.
    fn granted(&self) -> Option<(String, &[String])>;
}

/// A client with its tries.
#[derive(Debug)]
pub struct Running<C: Client> {
    pub wish: C::Wish,
    pub client: C,
    pub tries: Tries,
    /// When the client began, ns since kernel start.
    began_ns: u64,
    /// The timeline has a mark of the current lease.
    is_marked: bool,
}

impl<C: Client> Running<C> {
    /// Lets the client do what is due, and begins the next try when the time of one is over.
    pub fn go_on(&mut self, now: Instant) {
        if !self.tries.gave_up() {
            self.client.wake();
        }
        let is_answered = self.client.is_answered();
        if self.tries.advance(now, is_answered) {
            self.client.start_anew();
        }
    }

    fn due(&self) -> Option<Instant> {
        let due = self.client.due().filter(|_| !self.tries.gave_up());
        // In this order the sum is never before the time that is due.
        let (now_ns, now) = (boottime_ns(), Instant::now());
        let due = due.and_then(|due| match due.checked_sub(now_ns) {
            Some(ahead) => Some(now + Duration::from_nanos(ahead)),
            None => now.checked_sub(Duration::from_nanos(now_ns - due)),
        });
        let limit = self.tries.due(self.client.is_answered());
        due.into_iter().chain(limit).min()
    }
}

/// The clients, by interface index.
#[derive(Debug)]
pub struct Clients<C: Client> {
    by_index: BTreeMap<u32, Running<C>>,
    /// The time of the last look, also in ns since kernel start.
    looked: (Instant, u64),
}

impl<C: Client> Default for Clients<C> {
    fn default() -> Clients<C> {
        Clients {
            by_index: BTreeMap::new(),
            looked: (Instant::now(), boottime_ns()),
        }
    }
}

impl<C: Client> Clients<C> {
    /// The client on the interface of this index.
    pub fn get(&self, index: u32) -> Option<&Running<C>> {
        self.by_index.get(&index)
    }

    /// The client on the interface of this index, to be changed.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Running<C>> {
        self.by_index.get_mut(&index)
    }

    /// All clients, each with the index of its interface.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Running<C>)> {
        self.by_index
            .iter()
            .map(|(index, running)| (*index, running))
    }

    /// Ends a client that does not stay. True: the interface has no client, so one may begin.
    pub fn has_room(&mut self, index: u32, stays: impl Fn(&C) -> bool) -> bool {
        let stays_here = self
            .by_index
            .get(&index)
            .map(|running| stays(&running.client));
        if stays_here == Some(false) {
            self.remove(index);
        }
        stays_here != Some(true)
    }

    /// Puts a client on the interface; a client that is already there is dropped.
    pub fn begin(&mut self, index: u32, wish: C::Wish, client: C, tries: Tries) {
        let running = Running {
            wish,
            client,
            tries,
            began_ns: boottime_ns(),
            is_marked: false,
        };
        self.by_index.insert(index, running);
    }

    /// Drops the client of the interface; its socket is closed.
    pub fn remove(&mut self, index: u32) {
        self.by_index.remove(&index);
    }

    /// The progress of each client.
    pub fn progress(&self) -> Vec<C::Progress> {
        let progress = |one: &Running<C>| one.client.progress(&one.wish, one.tries.gave_up());
        self.by_index.values().map(progress).collect()
    }
}

impl<C: Client> Part for Clients<C> {
    /// Ends the clients of interfaces that no longer exist.
    fn follow(&mut self, facts: &Facts, _readers: Option<&Readers>) {
        self.by_index.retain(|index, _| is_there(facts, *index));
        self.looked = (Instant::now(), boottime_ns());
    }

    /// A client that was due at the last look is on an interface that cannot be used (the firmware is
    /// silent, a bond has no slaves): only an event changes that.
    fn due(&self) -> Option<Instant> {
        let (looked, looked_ns) = self.looked;
        let due = self.by_index.values().filter_map(|running| {
            let is_new = running.began_ns > looked_ns;
            running.due().filter(|due| is_new || *due > looked)
        });
        due.min()
    }

    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let changed = async move {
            let going = self
                .by_index
                .values_mut()
                .filter(|one| !one.tries.gave_up());
            let waiting = going.map(|one| one.client.changed().boxed_local());
            any(waiting.collect()).await;
            // A client without news has only sent its next message.
            if self.by_index.values().any(|one| one.client.has_news()) {
                Wake::Look
            } else {
                Wake::Wait
            }
        };
        changed.boxed_local()
    }

    fn is_busy(&self) -> bool {
        self.by_index.values().any(|one| one.client.is_open())
    }

    fn end(&mut self) {
        self.by_index.values_mut().for_each(|one| one.client.end());
    }
}

impl<C: Lessee> Clients<C> {
    /// Takes the news of a client, as [`Clients::take_news`], and removes lost addresses. True: an
    /// address was lost.
    pub async fn settle(&mut self, site: &Site<'_>, means: &mut Means<'_>) -> bool {
        let name = &site.netdev.ifname;
        let lost = self.take_news(site.index, name, means.journal, Instant::now());
        for address in &lost {
            if let Err(why) = means.net.delete_address(site.index, *address, None).await {
                let what = format!("{address} cannot be removed");
                let error = Error::new(name, what).found(why);
                means.journal.tell_once(name, &error);
            }
        }
        !lost.is_empty()
    }

    /// Logs and marks a granted lease. Restarts the try after a loss. Returns the lost addresses.
    fn take_news(
        &mut self,
        index: u32,
        interface: &str,
        journal: &mut Journal,
        now: Instant,
    ) -> Vec<IpAddr> {
        let Some(running) = self.by_index.get_mut(&index) else {
            return Vec::new();
        };
        let outcomes = running.client.outcomes();
        let is_bound = outcomes.contains(&Outcome::Bound);
        let lost = outcomes.into_iter().filter_map(|outcome| match outcome {
            Outcome::Lost(address) => Some(address),
            Outcome::Bound | Outcome::Unopposed => None,
        });
        let lost: Vec<IpAddr> = lost.collect();
        if !lost.is_empty() {
            running.is_marked = false;
            running.tries.prolong(now);
        }
        let granted = running.client.granted();
        if let Some((lease, left_out)) = granted.filter(|_| !running.is_marked) {
            // A resumed lease was logged before.
            if is_bound {
                log::info!("{interface}: {}: {lease}", C::PROTOCOL);
                for left_out in left_out {
                    log::warn!("{interface}: {}: not used: {left_out}", C::PROTOCOL);
                }
            }
            if is_bound || !journal.has(C::PHASE, interface) {
                journal.mark_span(C::PHASE, interface, running.began_ns, None);
            }
            running.is_marked = true;
        }
        lost
    }
}

/// The hardware of an interface, and the client identity that `make` creates from the hardware and
/// the address of the speaker.
pub fn identity<I>(
    protocol: &str,
    site: &Site<'_>,
    root: &Root,
    make: impl Fn(&Hardware, &[u8]) -> Option<I>,
) -> Result<(Hardware, I), Error> {
    let name = &site.netdev.ifname;
    let hardware = Hardware::of(root, name, Some(site.index)).map_err(|e| {
        let what = format!("{protocol}: hardware address cannot be read");
        Error::io(name, what, &e)
    })?;
    let speaks = site.speaker.address(&hardware.address);
    match speaks.and_then(|speaks| make(&hardware, speaks)) {
        Some(identity) => Ok((hardware, identity)),
        None => Err(
            Error::new(name, format!("{protocol}: not supported on this hardware"))
                .found(format!("ARP hardware type {}", hardware.hardware_type))
                .expected("InfiniBand or Ethernet"),
        ),
    }
}

/// Whether an interface has this index.
pub fn is_there(facts: &Facts, index: u32) -> bool {
    let is_hidden = || facts.unread.iter().any(|unread| unread.path == links::DUMP);
    facts.netdevs.iter().any(|one| one.ifindex == Some(index)) || is_hidden()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Unread;

    /// A client that a test controls.
    #[derive(Debug, Default)]
    struct Puppet {
        outcomes: Vec<Outcome>,
        lease: Option<&'static str>,
        due: Option<u64>,
        has_news: bool,
        begun: u32,
        woken: u32,
        is_moved: bool,
    }

    impl Client for Puppet {
        type Wish = ();
        type Progress = (u32, bool);

        fn wake(&mut self) {
            self.woken += 1;
        }

        fn start_anew(&mut self) {
            self.begun += 1;
        }

        fn is_answered(&self) -> bool {
            self.lease.is_some()
        }

        fn due(&self) -> Option<u64> {
            self.due
        }

        async fn changed(&mut self) {
            if !self.is_moved {
                std::future::pending().await
            }
        }

        fn progress(&self, (): &(), gave_up: bool) -> (u32, bool) {
            (self.begun, gave_up)
        }

        fn has_news(&self) -> bool {
            self.has_news
        }
    }

    impl Lessee for Puppet {
        const PROTOCOL: &'static str = "DHCP";
        const PHASE: Phase = Phase::Lease;

        fn outcomes(&mut self) -> Vec<Outcome> {
            std::mem::take(&mut self.outcomes)
        }

        fn granted(&self) -> Option<(String, &[String])> {
            Some((self.lease?.to_owned(), &[]))
        }
    }

    fn clients(tries: Tries) -> Clients<Puppet> {
        let mut clients = Clients::default();
        clients.begin(4, (), Puppet::default(), tries);
        clients
    }

    fn puppet(clients: &mut Clients<Puppet>) -> &mut Puppet {
        &mut clients.get_mut(4).unwrap().client
    }

    #[test]
    fn a_client_that_a_look_left_due_waits_for_an_event() {
        let mut all = clients(Tries::begin(None, 1, Instant::now()));
        let hour_ns = 3_600_000_000_000;
        puppet(&mut all).due = Some(boottime_ns() + hour_ns);
        assert!(Part::due(&all).is_some());
        let mut facts = Facts::default();
        facts.unread.push(Unread {
            path: links::DUMP.to_owned(),
            why: "no answer".to_owned(),
            obstacle: None,
        });
        // The look that could not list the interfaces ends no client.
        all.follow(&facts, None);
        assert!(all.get(4).is_some());
        puppet(&mut all).due = Some(boottime_ns().saturating_sub(hour_ns));
        assert_eq!(Part::due(&all), None);
        all.follow(&Facts::default(), None);
        assert!(all.get(4).is_none());
    }

    #[test]
    fn a_lease_is_marked_once_until_it_is_lost() {
        let now = Instant::now();
        let mut journal = Journal::default();
        let mut all = clients(Tries::begin(Some(10), 1, now));
        let bound = || vec![Outcome::Bound];
        let mut marks = |all: &mut Clients<Puppet>, now| {
            let lost = all.take_news(4, "ib0", &mut journal, now);
            (lost, journal.marks().len())
        };
        assert_eq!(marks(&mut all, now), (Vec::new(), 0));
        puppet(&mut all).lease = Some("10.0.0.5/24");
        puppet(&mut all).outcomes = bound();
        assert_eq!(marks(&mut all, now), (Vec::new(), 1));
        puppet(&mut all).outcomes = bound();
        assert_eq!(marks(&mut all, now), (Vec::new(), 1), "a renewal");
        let address: IpAddr = "10.0.0.5".parse().unwrap();
        puppet(&mut all).lease = None;
        puppet(&mut all).outcomes.push(Outcome::Lost(address));
        let later = now + Duration::from_secs(60);
        assert_eq!(marks(&mut all, later), (vec![address], 1));
        assert_eq!(all.due(), Some(later + Duration::from_secs(10)));
        puppet(&mut all).lease = Some("10.0.0.6/24");
        puppet(&mut all).outcomes = bound();
        assert_eq!(marks(&mut all, later), (Vec::new(), 2));
        // Another walk resumes the lease.
        all = clients(Tries::begin(Some(10), 1, now));
        puppet(&mut all).lease = Some("10.0.0.6/24");
        assert_eq!(marks(&mut all, later), (Vec::new(), 2));
        assert_eq!(
            all.take_news(5, "ib1", &mut journal, now),
            Vec::<IpAddr>::new()
        );
    }

    #[test]
    fn a_client_starts_again_after_each_try_and_sleeps_after_the_last_one() {
        let now = Instant::now();
        let limit = Duration::from_secs(10);
        let mut all = clients(Tries::begin(Some(10), 2, now));
        puppet(&mut all).due = Some(0);
        assert!(all.due().unwrap() < now + limit);
        all.get_mut(4).unwrap().go_on(now);
        assert_eq!((puppet(&mut all).woken, puppet(&mut all).begun), (1, 0));
        all.get_mut(4).unwrap().go_on(now + limit);
        assert_eq!((puppet(&mut all).woken, puppet(&mut all).begun), (2, 1));
        all.get_mut(4).unwrap().go_on(now + 2 * limit);
        assert_eq!(all.progress(), [(1, true)]);
        all.get_mut(4).unwrap().go_on(now + 2 * limit);
        assert_eq!(puppet(&mut all).woken, 3, "not woken again");
        assert_eq!(all.due(), None);
        puppet(&mut all).is_moved = true;
        assert_eq!(all.changed().now_or_never(), None);
    }

    #[test]
    fn a_client_with_news_wakes_the_walk_and_a_client_without_interface_ends() {
        let mut all = clients(Tries::begin(None, 1, Instant::now()));
        assert_eq!(all.changed().now_or_never(), None);
        puppet(&mut all).is_moved = true;
        assert_eq!(all.changed().now_or_never(), Some(Wake::Wait));
        puppet(&mut all).has_news = true;
        assert_eq!(all.changed().now_or_never(), Some(Wake::Look));
        let mut facts = Facts {
            netdevs: vec![Netdev {
                ifindex: Some(4),
                ..Netdev::default()
            }],
            ..Facts::default()
        };
        all.follow(&facts, None);
        assert!(all.get(4).is_some());
        facts.netdevs.clear();
        all.follow(&facts, None);
        assert!(all.get(4).is_none());
    }
}
