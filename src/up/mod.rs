// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one effectful walk: load, make, wait, verify, hand over. In an initramfs the walk begins before
//! the command line is complete (`early`), and waits for the complete one with its verdict.
//!
//! It is level triggered: every event (uverbs, uevent, NETLINK_RDMA, rtnetlink, a finished
//! modprobe) is only a hint to look at the whole again. A device that comes late, is renamed,
//! removed or reset is therefore nothing special.

mod act;
mod administrators;
mod ages;
mod apply;
pub mod claims;
mod clients;
mod contract;
mod dhcp;
mod dhcp6;
mod driver_probes;
mod dry_run;
mod early;
mod families;
mod hooks;
mod information;
mod journal;
mod leasing;
mod machine;
mod modules;
mod naming;
mod outcome;
mod part;
pub mod peers;
mod pinned;
mod progress;
mod rejoin;
pub mod renaming;
mod servers;
mod sight;
mod speaker;
mod step;
pub use dry_run::Next;
pub use early::bring_up;
pub use outcome::stillborn;
mod tries;
mod troubles;
mod verdict;
mod voice;
mod waiting;
mod waits;
mod watch;
mod writes;

use std::pin::pin;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::error::{Error, Kind, Result};
use crate::facts::{Facts, Readers, Touched};
use crate::handover::{Outcome, Phase};
use crate::loader::{Loader, Request, Write};
use crate::plan::Plan;
use crate::rdma::types::PortState;
use crate::request::in_initramfs;
use crate::system::alarm::Alarm;
use crate::system::clock::boottime_ns;
use crate::system::modules::Index;
use crate::system::net::Net;
use crate::system::root::Root;
use crate::verify::finding::Status;
use crate::verify::report::{LinkReport, Report};
use crate::verify::verify;
use crate::wish::expectation::{Expectation, Require};

use journal::Journal;
use machine::Machine;
use outcome::{Files, Source};
use part::{Judged, Parts, Wake};
use sight::Sight;
use step::{Situation, Step};
use voice::Underway;

/// How often in one round something may be changed because of what was changed before.
const ACTS: usize = 4;

/// How long the verdict waits for the host name.
const HOST_NAME: Duration = Duration::from_secs(2);

/// What `up` knows while it runs. The loader and the parts outlive the plan.
struct Walk<'p, 'l: 'p> {
    plan: &'p Plan,
    expectation: Expectation,
    machine: Machine<'p>,
    sight: Sight,
    tried: act::Tried,
    families: families::Families,
    parts: Parts<'l>,
    journal: Journal,
    files: Files,
    /// Start of the time until the deadline.
    began: Instant,
}

/// How `up` ended.
#[derive(Debug)]
pub struct End {
    /// Exit code of the program.
    pub code: u8,
    /// The last look; none if nothing was requested.
    pub report: Option<Report>,
}

impl End {
    fn nothing_requested() -> End {
        End {
            code: Kind::NothingAsked.exit_code(),
            report: None,
        }
    }
}

/// Logs what is wrong, left to others or refused.
fn log_plan(plan: &Plan) {
    for complaint in &plan.complaints {
        // Urgent, so that a quiet console shows it: nobody else will.
        log::error!("{complaint}");
    }
    for warning in &plan.warnings {
        log::warn!("{warning}");
    }
    for left in plan.left.iter().chain(&plan.unused) {
        log::info!("{left}");
    }
    for token in plan.tokens.iter().filter(|token| token.is_news) {
        log::warn!("{token}");
    }
    for refusal in &plan.refusals {
        log::error!("{}: {}", refusal.object, refusal.reason);
    }
}

/// What does not depend on the plan: a walk with another plan takes it over.
#[derive(Debug)]
struct Begun<'l> {
    readers: Option<Readers>,
    parts: Parts<'l>,
    /// The memory of the walk before, if there was one.
    journal: Journal,
}

impl<'l> Begun<'l> {
    fn new(root: &Root, readers: Option<Readers>, loader: &'l Loader) -> Begun<'l> {
        // What an earlier run was granted is asked for first: no more than a wish.
        let known = crate::handover::leases(root).unwrap_or_else(|error| {
            log::debug!("{error}");
            crate::facts::Leases::default()
        });
        let is_boot = in_initramfs(root);
        let claims = claims::Claims::new(is_boot);
        let claims = match crate::handover::read_expected(root) {
            Ok(expected) => {
                let links = expected.into_iter().flat_map(|expected| expected.links);
                let wishes = links.filter_map(|link| link.ipoib);
                claims.and_left_open(wishes.flat_map(|wish| wish.unproven))
            }
            Err(error) => {
                log::warn!(
                    "{error}; which addresses an earlier run has probed is not known: \
                     every requested static IPv4 address is probed again"
                );
                claims.and_all()
            }
        };
        Begun {
            readers,
            journal: Journal::default(),
            parts: Parts {
                probing: driver_probes::Probing::new(loader),
                writes: writes::Writes::new(loader),
                modules: modules::Modules::new(loader),
                watch: watch::Watch::open(),
                naming: naming::Naming::default(),
                speakers: speaker::Speakers::default(),
                leasing: leasing::Leasing::new(known, is_boot),
                claims,
                servers: servers::Servers::default(),
                administrators: administrators::Administrators::default(),
            },
        }
    }

    fn loader(&self) -> &'l Loader {
        self.parts.modules.loader()
    }
}

/// When the program, and the walk with the complete command line, began.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// Start of the program, ns since kernel start.
    started_ns: u64,
    /// End of the wait for dracut's cmdline hooks, ns since kernel start; none without a wait.
    complete_ns: Option<u64>,
    /// Start of the time until the deadline.
    began: Instant,
    /// dracut's hooks started this process and stop it, as opposed to a person in a shell.
    is_of_boot: bool,
}

/// The latest time of a walk without a deadline: a breakpoint of dracut may last.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 3600);

/// What wakes the walk beside its parts.
struct Alarms {
    deadline: Instant,
    alarm: Alarm,
    /// The signals that end the walk with a verdict; none while they end the program.
    stop: Option<Stop>,
}

impl Alarms {
    fn new(deadline: Instant, stop: Option<Stop>) -> Result<Alarms> {
        Ok(Alarms {
            deadline,
            stop,
            alarm: Alarm::new().map_err(|e| Error::io("timer", "cannot be created", &e))?,
        })
    }

    async fn stopped(stop: &mut Option<Stop>) -> &'static str {
        match stop {
            Some(stop) => stop.signal().await,
            None => std::future::pending().await,
        }
    }
}

/// The signals that end the walk with a verdict.
struct Stop {
    terminate: Signal,
    /// Control-C of a person. In a run of the boot the shell has set it to be ignored.
    interrupt: Option<Signal>,
}

impl Stop {
    fn listen(is_of_boot: bool) -> Result<Stop> {
        let listen = |kind, name: &str| {
            signal(kind).map_err(|e| Error::io(name, "handler cannot be installed", &e))
        };
        let interrupt = (!is_of_boot).then(|| listen(SignalKind::interrupt(), "SIGINT"));
        Ok(Stop {
            terminate: listen(SignalKind::terminate(), "SIGTERM")?,
            interrupt: interrupt.transpose()?,
        })
    }

    /// The name of the next signal.
    async fn signal(&mut self) -> &'static str {
        let interrupted = async {
            match &mut self.interrupt {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = interrupted => "SIGINT",
        }
    }
}

impl<'p, 'l> Walk<'p, 'l> {
    fn new(
        root: &'p Root,
        plan: &'p Plan,
        index: &'p Index,
        mut begun: Begun<'l>,
    ) -> Result<Walk<'p, 'l>> {
        let files = Files::open()?;
        if let Some(readers) = &begun.readers {
            readers.listen();
        }
        begun.parts.modules.load(index, plan);
        let refusals = plan.refusals.iter();
        let refusals = refusals.map(|refusal| format!("{}: {}", refusal.object, refusal.reason));
        let failures = refusals.chain(plan.complaints.iter().cloned());
        Ok(Walk {
            plan,
            // The root file system is mounted after the walk, over what the walk brought up.
            expectation: Expectation {
                root: None,
                ..plan.expectation.clone()
            },
            machine: Machine {
                root,
                index,
                loader: begun.loader(),
                net: Net::open()?,
                rdma: None,
            },
            sight: Sight::new(begun.readers),
            tried: act::Tried::default(),
            families: families::Families::default(),
            parts: begun.parts,
            journal: begun.journal.anew(failures.collect()),
            files,
            began: Instant::now(),
        })
    }

    /// What the walk with another plan takes over.
    fn into_begun(self) -> Begun<'l> {
        Begun {
            readers: self.sight.into_readers(),
            parts: self.parts,
            journal: self.journal,
        }
    }

    /// Does what is possible until the command line is complete. There is no verdict and no deadline,
    /// and a signal ends the program.
    async fn until_complete(&mut self, complete: impl Future<Output = ()>) -> Result<()> {
        let mut alarms = Alarms::new(Instant::now() + UNLIMITED, None)?;
        let mut complete = pin!(complete);
        let mut ended = 0;
        loop {
            let now = self.parts.modules.count_ended();
            if now != ended {
                self.sight.touch(Touched::Lists);
                ended = now;
            }
            self.round().await;
            // The time that udev may take for a name begins after the hooks, as the deadline does.
            self.parts.naming.pause();
            self.began = Instant::now();
            tokio::select! {
                () = &mut complete => break,
                _ = self.wait(&mut alarms, None) => {}
            }
        }
        // Whether udev may rename an interface also depends on what the hooks have written.
        self.parts.naming = naming::Naming::default();
        Ok(())
    }

    /// Goes on with the complete command line, to the verdict.
    async fn until_settled(&mut self, start: Start) -> Result<End> {
        log_plan(self.plan);
        self.began = start.began;
        let journal = &mut self.journal;
        journal.mark(Phase::Started, "", Some(start.started_ns));
        if start.complete_ns.is_some() {
            journal.mark_span(Phase::Hooks, "", start.started_ns, start.complete_ns);
        }
        let stop = Stop::listen(start.is_of_boot)?;
        let mut alarms = Alarms::new(self.began + self.plan.timeout, Some(stop))?;
        let lingers = in_initramfs(self.machine.root);
        let mut is_stopped = false;
        loop {
            self.take_loaded();
            let (facts, report) = self.round().await;
            let is_late = Instant::now() >= alarms.deadline;
            if is_stopped || is_late {
                self.parts.end();
            }
            let situation = Situation {
                is_stopped,
                is_late,
                lingers,
                ..self.situation(&facts, &report)
            };
            let step = situation.next_step();
            match step {
                Step::Wait => {
                    let (elapsed, timeout) = (self.began.elapsed(), self.plan.timeout);
                    let are_drivers_busy = self.are_drivers_busy(&facts);
                    let expectation = &self.expectation;
                    let waiting = &mut self.journal.waiting;
                    waiting.speak(&report, expectation, are_drivers_busy, elapsed, timeout);
                    self.tell_again(&facts, &report).await?;
                }
                Step::Linger | Step::End | Step::EndIncomplete => {
                    self.tell(Outcome::Verified, &facts, &report).await?;
                }
                Step::GiveUp if self.files.is_verified() => {
                    self.tell_again(&facts, &report).await?;
                }
                Step::GiveUp => {
                    self.parts.end();
                    self.give_up(&report);
                    self.tell(self.plan.onfail.into(), &facts, &report).await?;
                }
            }
            match step {
                Step::Wait | Step::Linger => {
                    let line = self.journal.waiting.next_line();
                    let line = line.map(|after| self.began + after);
                    is_stopped |= self.wait(&mut alarms, line).await;
                }
                Step::End | Step::EndIncomplete | Step::GiveUp => {
                    if step == Step::EndIncomplete {
                        self.give_up(&report);
                    }
                    let is_held = self.files.is_verified() && self.parts.leasing.holds_lease();
                    if is_held && !is_stopped && start.is_of_boot {
                        self.hold_leases(&mut alarms).await?;
                    }
                    return Ok(self.end(report));
                }
            }
        }
    }

    /// Renews leases after the verdict, until the boot stops this process: nobody else does before the keeper
    /// of the real root, and the way there may be long (a live image, a server that is not there yet).
    async fn hold_leases(&mut self, alarms: &mut Alarms) -> Result<()> {
        alarms.deadline = Instant::now() + UNLIMITED;
        while !self.wait(alarms, None).await {
            self.take_loaded();
            let (facts, report) = self.round().await;
            self.tell_again(&facts, &report).await?;
        }
        Ok(())
    }

    /// Writes what has changed since the verdict, if the boot went on. What another run (a person's) handed over
    /// since stays.
    async fn tell_again(&mut self, facts: &Facts, report: &Report) -> Result<()> {
        match self.files.is_verified() && self.files.are_ours() {
            true => self.tell(Outcome::Verified, facts, report).await,
            false => Ok(()),
        }
    }

    /// Logs what is missing at the deadline.
    fn give_up(&self, report: &Report) {
        let (waiting, timeout) = (&self.journal.waiting, self.plan.timeout);
        waiting.give_up(report, &self.expectation, timeout);
    }

    /// A driver is loading, or initialises HCAs.
    fn are_drivers_busy(&self, facts: &Facts) -> bool {
        self.parts.modules.is_loading() || facts.is_probing()
    }

    fn underway(&self, facts: &Facts) -> Underway {
        if self.parts.naming.is_waiting() {
            Underway::Names
        } else if self.are_drivers_busy(facts)
            || self.parts.naming.is_udev_to_come(self.machine.root)
            || self.parts.naming.may_rename_soon(facts.taken_ns)
        {
            Underway::Drivers
        } else {
            Underway::Nothing
        }
    }

    /// What decides the next step, as far as the look shows it.
    fn situation(&mut self, facts: &Facts, report: &Report) -> Situation {
        // An interface of rd.ib.rate= that does not exist yet.
        let is_rate_lost = report.complaints.len() > self.expectation.complaints.len();
        Situation {
            is_satisfied: report.satisfied,
            is_complete: report.links.iter().all(LinkReport::is_good),
            is_hopeless: outcome::is_hopeless(&self.expectation, report),
            is_loading: self.parts.modules.is_loading(),
            is_probing: facts.is_probing(),
            needs_every_port: self.expectation.require == Require::All,
            is_undecided: is_rate_lost || self.plan.is_undecided(&self.expectation, facts),
            is_naming: self.parts.naming.is_waiting(),
            is_claiming: !self.parts.claims.is_settled(),
            is_writing: self.parts.writes.is_any_short(),
            is_busy: self.parts.is_busy(),
            ..Situation::default()
        }
    }

    /// Waits until there is a reason to look again; `line` is the time of the next line about the wait.
    /// True if the reason is a signal.
    async fn wait(&mut self, alarms: &mut Alarms, line: Option<Instant>) -> bool {
        let safety = self.sight.looked() + self.parts.watch.interval(self.sight.is_any_silent());
        // An event may be lost: these looks are at everything.
        let everything = line.map_or(safety, |line| line.min(safety));
        let grown = self.journal.waiting.troubles.next_grown(boottime_ns());
        let grown = grown.map(|after| Instant::now() + after);
        let due = grown.into_iter().chain(self.families.due());
        let soon = due.fold(everything, Instant::min);
        loop {
            let next = self.parts.next(alarms.deadline.min(soon));
            tokio::select! {
                wake = self.parts.changed() => if wake == Wake::Wait { continue },
                () = self.machine.net.changed() => {}
                () = alarms.alarm.rings(next) => {}
                signal = Alarms::stopped(&mut alarms.stop) => {
                    log::info!("stopped by {signal}");
                    return true;
                }
            }
            if Instant::now() >= everything {
                self.sight.touch(Touched::Everything);
            }
            return false;
        }
    }

    async fn tell(&mut self, outcome: Outcome, facts: &Facts, report: &Report) -> Result<()> {
        let source = Source {
            root: self.machine.root,
            plan: self.plan,
            expectation: &self.expectation,
            facts,
            report,
            information: &self.parts.leasing.information,
            elapsed: self.began.elapsed(),
            are_drivers_busy: self.are_drivers_busy(facts),
            is_writing: self.parts.writes.is_any_short(),
            is_naming: self.parts.naming.is_waiting(),
        };
        if let Some(name) = contract::host_name(&source)
            && self.tried.host_name.as_ref() != Some(&name)
        {
            self.tried.host_name = Some(name.clone());
            let request = Request::Write(Write::HostName(name));
            if let Err(error) = self.machine.loader.do_within(HOST_NAME, request).await {
                log::error!("{error}");
            }
        }
        self.files.tell(outcome, &source, &mut self.journal)
    }

    /// The exit code follows the verdict that the hooks have.
    fn end(&self, report: Report) -> End {
        if let Some(readers) = self.sight.readers() {
            readers.give_up();
        }
        End {
            code: if self.files.is_verified() {
                0
            } else {
                Kind::Failed.exit_code()
            },
            report: Some(report),
        }
    }

    /// Takes the modprobes that have ended.
    fn take_loaded(&mut self) {
        for loaded in self.parts.modules.take_ended() {
            self.sight.touch(Touched::Lists);
            self.loaded(loaded);
        }
    }

    fn loaded(&mut self, loaded: modules::Loaded) {
        let name = &loaded.name;
        match loaded.result {
            Ok(()) => {
                let (start, end) = (loaded.start_ns, Some(loaded.end_ns));
                self.journal.mark_span(Phase::Driver, name, start, end);
                log::info!("{name}: loaded");
                self.parts.servers.loaded(Instant::now());
            }
            Err(error) => {
                self.journal.fail(error.to_string());
                act::module_failed(name, &error, &mut self.expectation, self.plan);
            }
        }
    }

    /// One look, and what follows from it.
    async fn round(&mut self) -> (Facts, Report) {
        let written = self.parts.writes.take_ended();
        self.written(written);
        let mut facts = self.look();
        // A link that was added just now may have wishes of its own, such as its RoCE mode: they
        // are done before it is judged.
        for _ in 0..ACTS {
            if !self.act(&facts).await {
                break;
            }
            facts = self.look();
        }
        self.parts.add_to(&mut facts);
        self.plan.narrow(&mut self.expectation, &facts);
        let mut report = verify(&self.expectation, &facts);
        let now = Instant::now();
        if self.families.follow(&mut self.expectation, &report, now) {
            report = verify(&self.expectation, &facts);
        }
        self.parts.judged(Judged {
            root: self.machine.root,
            rdma: self.machine.rdma.as_ref(),
            facts: &facts,
            report: &report,
        });
        let due = self.parts.administrators.rejoins(Instant::now());
        rejoin::rejoin(&due, &self.machine.net, &facts).await;
        self.note(&facts, &report);
        (facts, report)
    }

    fn look(&mut self) -> Facts {
        self.machine.open_rdma();
        self.sight.touch(self.parts.watch.touched());
        let facts = self.sight.look(self.machine.root, &self.expectation);
        self.parts.follow(&facts, self.sight.readers());
        facts
    }

    /// Marks what is new, and logs what is awaited when that changes.
    fn note(&mut self, facts: &Facts, report: &Report) {
        let at = Some(facts.taken_ns);
        for device in &facts.devices {
            self.journal.mark(Phase::DeviceFound, &device.ifname, at);
        }
        for port in facts.ports() {
            if port.port.state == Some(PortState::Active) {
                self.journal.mark(Phase::PortActive, &port.name(), at);
            }
        }
        for link in report.links.iter().filter(|link| link.is_good()) {
            self.journal.mark(Phase::Verified, &link.object(), at);
        }
        for server in &report.servers {
            if server.finding.status == Status::Ok {
                let server = server.server.to_string();
                self.journal.mark(Phase::ServerAnswered, &server, at);
            }
        }
        let underway = self.underway(facts);
        self.journal.follow(report);
        let waiting = &mut self.journal.waiting;
        waiting.log_changes(report, underway, facts.taken_ns);
    }
}
