// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end: what dracut's hooks are told, and what the real root finds.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Walk;
use crate::SCHEMA;
use crate::dhcp::v4::progress::Progress;
use crate::dhcp::v6::information::Stage;
use crate::dhcp::{v4, v6};
use crate::error::Result;
use crate::handover::{self, Link, Mark, Outcome, Phase, State};
use crate::request::OnFailure;
use crate::system::clock::boottime_ns;
use crate::up::Directory;
use crate::verify::report::{LinkReport, Report, Status};
use crate::wish::expectation::{Expectation, LinkWish, Require, Target};

/// What the files say already: they are written anew when that changes.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    outcome: Outcome,
    /// Of links and servers.
    statuses: Vec<(Option<String>, Status)>,
    /// A modprobe may end after the link it made possible is verified.
    marks: usize,
    /// State of each client, and its address: one that somebody else has is given up for another.
    leases: Leases,
    /// Of questions for name servers, which may end after the verdict, answered or not.
    information: Vec<Stage>,
}

impl Told {
    pub(super) fn is_verified(&self) -> bool {
        self.outcome == Outcome::Verified
    }
}

fn statuses(report: &Report) -> Vec<(Option<String>, Status)> {
    let links = report.links.iter().map(|l| (l.name.clone(), l.status));
    let servers = report.servers.iter().map(|s| (None, s.finding.status));
    links.chain(servers).collect()
}

/// By family: state and address of each client.
type Leases = (
    Vec<(v4::progress::State, Option<Ipv4Addr>)>,
    Vec<(v6::progress::State, Option<Ipv6Addr>)>,
);

fn leases(dhcp: &[Progress], dhcp6: &[v6::progress::Progress]) -> Leases {
    let v4 = dhcp.iter().map(|progress| {
        let lease = progress.lease.as_ref();
        (progress.state, lease.map(|lease| lease.address))
    });
    let v6 = dhcp6.iter().map(|progress| {
        let lease = progress.lease.as_ref();
        (progress.state, lease.map(|lease| lease.address))
    });
    (v4.collect(), v6.collect())
}

/// Nothing that could still happen would satisfy the requirement: what is required has a trouble
/// that lasts.
pub fn is_hopeless(expectation: &Expectation, report: &Report) -> bool {
    let lasting = |link: &LinkReport| link.trouble().is_some_and(|trouble| trouble.lasting);
    let mut links = report.links.iter();
    match expectation.require {
        Require::Listed => links.any(|link| link.required && lasting(link)),
        Require::All => links.any(lasting),
        // Where any port will do, another one may still come, unless every one there is refuses.
        Require::Count(_) if expectation.any_port.is_some() => links.all(lasting),
        Require::Count(n) => links.filter(|link| !lasting(link)).count() < n as usize,
    }
}

/// The second line of the result: the reason, and that something else may have been wanted.
fn words(reason: Option<String>, complaints: &[String]) -> String {
    let wrong = complaints
        .first()
        .map(|one| format!("wrong argument: {one}"));
    let wrong = wrong.filter(|wrong| reason.as_ref() != Some(wrong));
    let words: Vec<String> = reason.into_iter().chain(wrong).collect();
    words.join("; ")
}

/// The expectation as `check` will use it: every verified link is pinned to its port.
fn pinned(expectation: &Expectation, report: &Report, boot_id: Option<String>) -> Expectation {
    let mut pinned = Expectation {
        boot_id,
        ..expectation.clone()
    };
    let verified = |link: &&LinkReport| link.is_good() && link.identity.is_some();
    let selector = |link: &LinkReport| link.name.as_ref().map(|name| name.replace('/', ":"));
    let pin = |wish: &LinkWish, link: &LinkReport| LinkWish {
        wanted: match (&wish.ipoib, selector(link)) {
            (None, Some(port)) => Target::Named(port),
            _ => wish.wanted.clone(),
        },
        port: wish.ipoib.as_ref().and_then(|_| selector(link)),
        identity: link.identity,
        device_index: link.device_index,
        netdev_index: wish.netdev.as_ref().and(link.netdev_index),
        link_layer: link.link_layer,
        megabits: link.megabits,
        ..wish.clone()
    };
    let mut links = Vec::new();
    for wish in &expectation.links {
        let found: Vec<&LinkReport> = report
            .links
            .iter()
            .filter(|link| link.wanted == wish.wanted)
            .filter(verified)
            .collect();
        let whole = report
            .links
            .iter()
            .filter(|link| link.wanted == wish.wanted)
            .all(LinkReport::is_good);
        if found.is_empty() || !whole {
            links.push(wish.clone());
        } else {
            links.extend(found.into_iter().map(|link| pin(wish, link)));
        }
    }
    if let Some(wish) = &expectation.any_port {
        let pinned_already: Vec<_> = links.iter().filter_map(|link| link.identity).collect();
        let found = report
            .links
            .iter()
            .filter(verified)
            .filter(|link| link.wanted == wish.wanted)
            .filter(|link| {
                link.identity
                    .is_some_and(|identity| !pinned_already.contains(&identity))
            });
        links.extend(found.map(|link| pin(wish, link)));
        // While too few are verified, any other port may still make up for it after boot.
        if report.satisfied {
            pinned.any_port = None;
        }
    }
    pinned.links = links;
    pinned
}

impl Walk<'_> {
    /// As [`Walk::tell`]; once the hooks were told, the boot has gone on, and a file that cannot be
    /// written is a line in the log.
    pub(super) fn tell_or_log(&mut self, outcome: Outcome, report: &Report) -> Result<Outcome> {
        match (
            self.told.as_ref().map(|told| told.outcome),
            self.tell(outcome, report),
        ) {
            (Some(told), Err(error)) => {
                log::error!("{error}");
                Ok(told)
            }
            (_, result) => result,
        }
    }

    /// Writes the files when they would say something new. The result comes last: it opens
    /// dracut's gate. Returns what the hooks were told, by this call or before.
    pub(super) fn tell(&mut self, outcome: Outcome, report: &Report) -> Result<Outcome> {
        let (dhcp, dhcp6) = (self.leases.seen(), self.leases6.seen());
        let mut now = Told {
            // What the hooks were told stands: the boot has gone on by it.
            outcome: self.told.as_ref().map_or(outcome, |told| told.outcome),
            statuses: statuses(report),
            marks: self.marks.len(),
            leases: leases(&dhcp, &dhcp6),
            information: self.inquiries.stages(),
        };
        if self.told.as_ref() == Some(&now) {
            return Ok(now.outcome);
        }
        self.mark(Phase::HandedOver, "", None);
        let first = self.told.is_none();
        // dracut's modules would wait for a network that they were not told of.
        let untold = self.tell_dracut(report);
        if first && untold.is_some() && now.outcome == Outcome::Verified {
            now.outcome = self.plan.onfail.into();
        }
        let outcome = now.outcome;
        let boot_id = self.root.boot_id();
        let named = self.plan.expectation.root.clone();
        let expected = Expectation {
            root: named.or_else(|| self.granted_root(report)),
            ..pinned(&self.expectation, report, boot_id.clone())
        };
        let reason = match outcome {
            Outcome::Verified => None,
            _ if report.satisfied => untold.or_else(|| report.reason()),
            _ => report.reason(),
        };
        let state = State {
            schema: SCHEMA,
            ibboot: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id,
            outcome,
            reason: reason.clone(),
            handover: self.plan.handover.as_ref().map(|to| to.value.to_string()),
            links: self.links(report),
            dhcp,
            dhcp6,
            information: self.inquiries.seen(),
            failures: self.failures.clone(),
            marks: self.marks.clone(),
        };
        self.directory
            .write(handover::EXPECTED, handover::json(&expected)?.as_bytes())?;
        handover::write_state(&self.directory, &state)?;
        self.told = Some(Told {
            marks: self.marks.len(),
            ..now
        });
        if first {
            let words = words(reason, &report.complaints);
            let text = [outcome.word(), &words].join("\n");
            let text = text.trim_end().to_owned() + "\n";
            self.directory.write(handover::RESULT, text.as_bytes())?;
            super::contract::call_queue(self.root);
            log::info!("handed over: {}", text.trim_end().replace('\n', ": "));
        }
        Ok(outcome)
    }

    fn links(&self, report: &Report) -> Vec<Link> {
        let verified_ns = |link: &LinkReport| {
            let is_it =
                |mark: &&Mark| mark.phase == Phase::Verified && mark.object == link.object();
            self.marks.iter().find(is_it).map(|mark| mark.start_ns)
        };
        report
            .links
            .iter()
            .filter_map(|link| {
                Some(Link {
                    node_guid: link.identity.map(|identity| identity.node_guid),
                    port: link.name.as_deref()?.split('/').next_back()?.parse().ok()?,
                    ifname: link.name.as_deref()?.split('/').next()?.to_owned(),
                    port_guid: link.port_guid,
                    pci: link.bus_address.clone(),
                    link_layer: link.link_layer,
                    rate: link.rate.clone(),
                    netdev: link.netdev.clone(),
                    asked_by: link.asked_by.clone(),
                    required: link.required,
                    verified: link.is_good(),
                    verified_ns: verified_ns(link).filter(|_| link.is_good()),
                })
            })
            .collect()
    }
}

/// A run that ended by `error` leaves its reason for the hooks.
pub fn stillborn(onfail: OnFailure, error: &crate::error::Error) {
    let text = format!("{}\n{error}\n", Outcome::from(onfail).word());
    log::error!(
        "{error} (at {} s)",
        crate::system::clock::seconds(boottime_ns())
    );
    if let Err(error) =
        Directory::open().and_then(|directory| directory.write(handover::RESULT, text.as_bytes()))
    {
        log::error!("{error}");
    }
}
