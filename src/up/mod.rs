// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one effectful walk: load, make, wait, verify, hand over.
//!
//! It is level triggered: every event (uverbs, uevent, NETLINK_RDMA, rtnetlink, a finished
//! modprobe) is only a hint to look at the whole again. A device that comes late, is renamed,
//! removed or reset is therefore nothing special.

mod act;
mod apply;
mod bond;
pub mod claims;
mod contract;
mod dhcp;
mod dhcp6;
mod dry_run;
mod information;
mod log;
mod naming;
mod outcome;
mod rejoin;
mod settings;
mod speaker;
pub use dry_run::Next;
pub use outcome::stillborn;
pub mod taken;
mod tries;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::ask::{administrators, servers};
use crate::error::{Error, Kind, Result};
use crate::facts::Facts;
use crate::handover::{Mark, Outcome, Phase};
use crate::plan::{Action, Plan};
use crate::rdma::netlink::Rdma;
use crate::rdma::types::PortState;
use crate::request::in_initramfs;
use crate::system::alarm::Alarm;
use crate::system::clock::boottime_ns;
use crate::system::directory::Directory;
use crate::system::modules::{self, Index};
use crate::system::net::Net;
use crate::system::root::Root;
use crate::verify::report::{LinkReport, Report, Status};
use crate::verify::verify;
use crate::wish::expectation::{Expectation, Require};

/// The look that needs no event: a lost one must not cost the boot.
const SAFETY: Duration = Duration::from_secs(10);
/// The same where a port has no events.
const POLL: Duration = Duration::from_secs(1);
/// Between two looks that nothing but the clock asks for.
const PAUSE: Duration = Duration::from_millis(10);

/// How often in one turn something may be changed because of what was changed before.
const ACTS: usize = 4;

/// What `up` knows while it runs.
struct Walk<'a> {
    root: &'a Root,
    plan: &'a Plan,
    index: &'a Index,
    expectation: Expectation,
    rdma: Option<Rdma>,
    net: Net,
    watch: watch::Watch,
    naming: naming::Naming,
    interfaces: act::Tried,
    asking: administrators::Asking,
    probing: servers::Probing,
    leases: dhcp::Leases,
    leases6: dhcp6::Leases,
    inquiries: information::Inquiries,
    /// Since when a bond has carrier without the interface that speaks for it.
    speechless: BTreeMap<u32, Instant>,
    claims: taken::Claims,
    log: log::Waiting,
    marks: Vec<Mark>,
    marked: BTreeSet<String>,
    failures: Vec<String>,
    directory: Directory,
    /// What the files say already.
    told: Option<outcome::Told>,
}

/// How `up` ended.
#[derive(Debug)]
pub struct End {
    /// Exit code of the program.
    pub code: u8,
    /// The last look; none if nothing was asked.
    pub report: Option<Report>,
}

/// Says what is wrong, left to others or refused.
fn tell_plan(plan: &Plan) {
    for complaint in &plan.complaints {
        // Urgent, so that a quiet console shows it: nobody else will.
        ::log::error!("{complaint}");
    }
    for left in &plan.left {
        ::log::info!("{left}");
    }
    for refusal in &plan.refusals {
        ::log::error!("{}: {}", refusal.object, refusal.reason);
    }
}

/// Carries `plan` out.
pub async fn run(root: &Root, plan: &Plan, index: &Index) -> Result<End> {
    tell_plan(plan);
    if plan.asked_by.is_none() {
        return Ok(End {
            code: Kind::NothingAsked.exit_code(),
            report: None,
        });
    }
    let directory = Directory::open()?;
    // A second run starts with a clean slate, or a hook would read the first one's result.
    directory
        .remove(crate::handover::RESULT)
        .map_err(|error| error.hint("it holds the verdict of an earlier run"))?;
    // What an earlier run was granted is asked for first: no more than a wish.
    let known = crate::handover::leases(root).unwrap_or_else(|error| {
        ::log::debug!("{error}");
        crate::facts::Leases::default()
    });
    let mut walk = Walk {
        root,
        plan,
        index,
        // It is mounted after the walk, over what the walk brought up.
        expectation: Expectation {
            root: None,
            ..plan.expectation.clone()
        },
        rdma: None,
        net: Net::open()?,
        watch: watch::Watch::open(),
        naming: naming::Naming::default(),
        interfaces: act::Tried::default(),
        asking: administrators::Asking::default(),
        probing: servers::Probing::default(),
        leases: dhcp::Leases::new(known.dhcp),
        leases6: dhcp6::Leases::new(known.dhcp6),
        inquiries: information::Inquiries::default(),
        speechless: BTreeMap::new(),
        claims: taken::Claims::new(in_initramfs(root)),
        log: log::Waiting::default(),
        marks: Vec::new(),
        marked: BTreeSet::new(),
        failures: plan
            .refusals
            .iter()
            .map(|refusal| format!("{}: {}", refusal.object, refusal.reason))
            .chain(plan.complaints.iter().cloned())
            .collect(),
        directory,
        told: None,
    };
    walk.mark(Phase::Started, "", None);
    walk.until_settled().await
}

impl Walk<'_> {
    async fn until_settled(&mut self) -> Result<End> {
        let deadline = Instant::now() + self.plan.timeout;
        let mut terminate = signal(SignalKind::terminate())
            .map_err(|e| Error::io("SIGTERM", "cannot be waited for", &e))?;
        let alarm = Alarm::new().map_err(|e| Error::io("timer", "cannot be made", &e))?;
        let linger = in_initramfs(self.root);
        let (root, index) = (self.root, self.index);
        let load = |(name, parameters): (String, Vec<String>)| async move {
            let start_ns = boottime_ns();
            let result = modules::load(root, index, &name, &parameters).await;
            (name, start_ns, result)
        };
        // Modules with parameters first: modprobe of one that needs them would load them without.
        let (first, mut second) = self.modules();
        let mut is_stopped = false;
        let mut loading: FuturesUnordered<_> = first.into_iter().map(load).collect();
        loop {
            if loading.is_empty() {
                loading.extend(std::mem::take(&mut second).into_iter().map(load));
            }
            let report = self.turn().await;
            let is_late = Instant::now() >= deadline;
            if is_stopped || is_late {
                self.end_asking();
            }
            // An address that is set is not left before it is known whose it is.
            if is_stopped && self.claims.is_settled() {
                if report.satisfied {
                    self.tell_or_log(Outcome::Verified, &report)?;
                    return Ok(self.end(report));
                }
                return self.give_up(report);
            }
            let still_loading = !loading.is_empty();
            // "Every port there is" is not known before all drivers have probed.
            let is_open = self.expectation.require == Require::All && still_loading;
            if report.satisfied && !is_open {
                self.tell_or_log(Outcome::Verified, &report)?;
                let all = report.links.iter().all(LinkReport::is_good);
                let is_probing = !self.claims.is_settled() || self.leases.is_probing();
                let is_asking = self.is_asking();
                if !still_loading && !is_probing && !is_asking && (all || !linger) {
                    return Ok(self.end(report));
                }
            } else if (!still_loading && outcome::is_hopeless(&self.expectation, &report))
                || is_late
            {
                return self.give_up(report);
            }
            if is_late {
                self.log.give_up(&report, self.plan.timeout);
                return Ok(self.end(report));
            }
            let safety = if self.watch.must_poll() { POLL } else { SAFETY };
            let soon = Instant::now() + safety;
            loop {
                let next = self.next(deadline.min(soon));
                tokio::select! {
                    Some((name, start_ns, result)) = loading.next() => self.loaded(&name, start_ns, result),
                    () = self.watch.changed() => {}
                    () = self.net.changed() => {}
                    () = self.asking.changed() => {}
                    () = self.probing.changed() => {}
                    // The next message is sent: the machine is as it was.
                    () = self.leases.changed() => if !self.leases.has_news() { continue },
                    () = self.leases6.changed() => {}
                    () = self.inquiries.changed() => {}
                    () = alarm.rings(next) => {}
                    _ = terminate.recv() => {
                        ::log::info!("stopped by SIGTERM");
                        is_stopped = true;
                    }
                }
                break;
            }
        }
    }

    /// How long nothing is due, `latest` at the latest. What is due and was not done has to wait for
    /// an event, and is looked at again meanwhile, but not without a pause.
    fn next(&self, latest: Instant) -> Duration {
        let due = [
            self.naming.due(),
            self.asking.due(),
            self.probing.due(),
            self.leases.due(),
            self.leases6.due(),
            self.inquiries.due(),
            self.speaker_due(),
            self.claims.due(),
        ];
        let next = due.into_iter().flatten().fold(latest, Instant::min);
        next.saturating_duration_since(Instant::now()).max(PAUSE)
    }

    /// The last words. Where the boot went on already this is only a second look at it.
    fn give_up(&mut self, report: Report) -> Result<End> {
        self.end_asking();
        self.log.give_up(&report, self.plan.timeout);
        self.tell_or_log(self.plan.onfail.into(), &report)?;
        Ok(self.end(report))
    }

    /// As the hooks were told.
    fn end(&self, report: Report) -> End {
        let is_verified = self.told.as_ref().is_some_and(outcome::Told::is_verified);
        End {
            code: if is_verified {
                0
            } else {
                Kind::Failed.exit_code()
            },
            report: Some(report),
        }
    }

    /// The modules to load: those with parameters, and the others.
    #[allow(clippy::type_complexity)]
    fn modules(&self) -> (Vec<(String, Vec<String>)>, Vec<(String, Vec<String>)>) {
        self.plan
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::LoadModule {
                    module,
                    file: Some(_),
                    parameters,
                } => Some((module.clone(), parameters.clone())),
                _ => None,
            })
            .partition(|(_, parameters)| !parameters.is_empty())
    }

    fn loaded(&mut self, name: &str, start_ns: u64, result: Result<()>) {
        match result {
            Ok(()) => {
                self.marks.push(Mark {
                    phase: Phase::Driver,
                    object: name.to_owned(),
                    start_ns,
                    end_ns: Some(boottime_ns()),
                });
                ::log::info!("{name}: loaded");
            }
            Err(error) => {
                ::log::error!("{error}");
                self.failures.push(error.to_string());
                act::module_failed(name, &error, &mut self.expectation, self.plan);
            }
        }
    }

    /// One look, and what follows from it.
    async fn turn(&mut self) -> Report {
        self.claims.listen();
        let mut facts = self.look();
        self.leases.follow(&facts);
        self.leases6.follow(&facts);
        self.inquiries.follow(&facts);
        // A link that was added just now may have wishes of its own, such as its RoCE mode: they
        // are done before it is judged.
        for _ in 0..ACTS {
            if !self.act(&facts).await {
                break;
            }
            facts = self.look();
        }
        // The event file is open before the state is read, or an event in between is lost.
        if self.watch.follow(&facts, self.rdma.as_ref()) {
            facts = self.look();
        }
        facts.subnet_administrator = self.asking.seen();
        facts.servers = self.probing.seen();
        facts.dhcp = self.leases.seen();
        facts.dhcp6 = self.leases6.seen();
        self.claims.add_to(&mut facts.netdevs);
        let report = verify(&self.expectation, &facts);
        self.probing.follow(&report);
        self.asking
            .follow(self.root, self.rdma.as_ref(), &facts, &report);
        self.rejoin(&facts).await;
        self.note(&facts, &report);
        report
    }

    fn look(&mut self) -> Facts {
        if self.rdma.is_none() {
            // EPROTONOSUPPORT until ib_core is loaded.
            self.rdma = Rdma::open().ok();
        }
        let names: Vec<String> = self
            .expectation
            .modules
            .iter()
            .map(|module| module.name.clone())
            .collect();
        let depth = self.expectation.depth();
        Facts::gather(self.root, self.rdma.as_ref(), &names, depth)
    }

    fn mark(&mut self, phase: Phase, object: &str, at: Option<u64>) {
        if self.marked.insert(format!("{phase:?} {object}")) {
            self.marks.push(Mark {
                phase,
                object: object.to_owned(),
                start_ns: at.unwrap_or_else(boottime_ns),
                end_ns: None,
            });
        }
    }

    /// Marks what is new, and says what is waited for when that changes.
    fn note(&mut self, facts: &Facts, report: &Report) {
        let at = Some(facts.taken_ns);
        for device in &facts.devices {
            self.mark(Phase::DeviceSeen, &device.ifname, at);
        }
        for port in facts.ports() {
            if port.port.state == Some(PortState::Active) {
                self.mark(Phase::PortActive, &port.name(), at);
            }
        }
        for link in report.links.iter().filter(|link| link.is_good()) {
            self.mark(Phase::Verified, &link.object(), at);
        }
        for server in &report.servers {
            if server.finding.status == Status::Ok {
                self.mark(Phase::ServerAnswered, &server.server.to_string(), at);
            }
        }
        self.log.say(report, facts.taken_ns);
    }
}
