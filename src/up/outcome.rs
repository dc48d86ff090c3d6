// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end: what dracut's hooks are told, and what the real root finds.

use std::fs::File;
use std::mem::take;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use super::contract;
use super::information::Inquiries;
use super::journal::Journal;
use super::pinned::pinned;
use super::verdict;
use crate::SCHEMA;
use crate::dhcp::v4::progress::Progress;
use crate::dhcp::v6::information::Stage;
use crate::dhcp::{v4, v6};
use crate::error::{Result, printable};
use crate::facts::Facts;
use crate::handover::{self, Link, Mark, Outcome, Phase, Silent, State};
use crate::inet::{Address, Route};
use crate::plan::Plan;
use crate::rdma::types::Identity;
use crate::request::{OnFailure, in_initramfs};
use crate::system::clock::{SECOND, boottime_ns};
use crate::system::directory::Directory;
use crate::system::notify::Manager;
use crate::system::root::Root;
use crate::verify::finding::Status;
use crate::verify::report::{LinkReport, Report};
use crate::wish::expectation::{Expectation, Require};
use crate::wish::ipoib::IpoibWish;

/// What the files say already: they are written anew when that changes.
#[derive(Debug, PartialEq, Eq)]
struct Announced {
    outcome: Outcome,
    /// Of links and servers.
    statuses: Vec<(Option<String>, Status)>,
    /// A modprobe may end after the link it made possible is verified.
    marks: usize,
    /// State of each client, and its address: one that somebody else has is given up for another.
    leases: Leases,
    /// Of questions for name servers, which may end after the verdict, answered or not.
    information: Vec<Stage>,
    /// Addresses that another host may have: their probes may end after the verdict.
    unproven: Vec<Ipv4Addr>,
}

fn unproven(facts: &Facts) -> Vec<Ipv4Addr> {
    let unproven = facts.netdevs.iter().flat_map(|netdev| &netdev.unproven);
    unproven.copied().collect()
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

/// Nothing that could still happen would satisfy the requirement, because what is required has a
/// trouble that lasts; and no other link is awaited, over which the boot may go on nevertheless.
pub fn is_hopeless(expectation: &Expectation, report: &Report) -> bool {
    let lasting = |link: &&LinkReport| link.trouble().is_some_and(|trouble| trouble.lasting);
    let is_lost = |links: &[&LinkReport]| links.iter().any(lasting);
    let is_settled =
        |links: &[&LinkReport]| links.iter().all(|link| link.is_good() || lasting(link));
    let mut links: Vec<&LinkReport> = report.links.iter().collect();
    match expectation.require {
        Require::Listed => {
            links.retain(|link| link.required);
            is_lost(&links) && is_settled(&links)
        }
        Require::All => is_lost(&links) && is_settled(&links),
        // Where any port will do, another one may still come, unless every one there is refuses.
        Require::Count(_) if expectation.any_port.is_some() => links.iter().all(lasting),
        Require::Count(n) => {
            let possible = links.iter().filter(|link| !lasting(link)).count();
            possible < n as usize && is_settled(&links)
        }
    }
}

/// Why the boot fails. A satisfied report fails only by an `obstacle`: what warns is not the reason.
fn reason(report: &Report, obstacle: Option<String>) -> Option<String> {
    obstacle
        .filter(|_| report.satisfied)
        .or_else(|| report.reason())
}

/// The second line of the result: the reason, and that an argument is wrong.
fn words(reason: Option<String>, complaints: &[String]) -> String {
    let wrong = complaints
        .first()
        .map(|one| format!("invalid argument: {one}"));
    let wrong = wrong.filter(|wrong| reason.as_ref() != Some(wrong));
    let words: Vec<String> = reason.into_iter().chain(wrong).collect();
    words.join("; ")
}

/// What the files are written of: the last look, and what led to it.
#[derive(Debug)]
pub struct Source<'a> {
    pub root: &'a Root,
    pub plan: &'a Plan,
    pub expectation: &'a Expectation,
    pub facts: &'a Facts,
    pub report: &'a Report,
    pub information: &'a Inquiries,
    /// Since the start of the walk.
    pub elapsed: Duration,
    /// A driver is still loading, or initialises HCAs.
    pub are_drivers_busy: bool,
    /// A write has begun and may soon end.
    pub is_writing: bool,
    /// udev may rename an interface or device.
    pub is_naming: bool,
}

impl Source<'_> {
    /// What is still open when the report is satisfied and the walk ends without the verdict.
    fn obstacle(&self) -> Option<&'static str> {
        match (self.are_drivers_busy, self.is_writing, self.is_naming) {
            (true, ..) => Some("drivers are still loading"),
            (_, true, _) => Some("settings are still being written"),
            (.., true) => Some("udev is still naming interfaces"),
            _ => None,
        }
    }
}

/// The files of /run/ibboot.
#[derive(Debug)]
pub struct Files {
    directory: Directory,
    /// What they say already.
    announced: Option<Announced>,
    /// The result that this process wrote.
    result: Option<File>,
}

impl Files {
    /// A second run starts with a clean slate, or a hook would read the first one's result.
    pub fn open() -> Result<Files> {
        let directory = Directory::open()?;
        directory
            .remove(handover::RESULT)
            .map_err(|error| error.hint("it holds the verdict of an earlier run"))?;
        Ok(Files {
            directory,
            announced: None,
            result: None,
        })
    }

    /// Whether no other run has replaced or removed the result.
    pub fn are_ours(&self) -> bool {
        let result = self.result.as_ref().and_then(|file| file.metadata().ok());
        result.is_none_or(|result| result.nlink() > 0)
    }

    /// The hooks were told that the requirement is verified.
    pub fn is_verified(&self) -> bool {
        let announced = self.announced.as_ref();
        announced.is_some_and(|now| now.outcome == Outcome::Verified)
    }

    /// Writes the files when they would say something new. Once the hooks were told, the boot has gone
    /// on, and a file that cannot be written is a line in the log. While a required link is down afterwards,
    /// only the leases are written: the rest stays as it was handed over.
    pub fn tell(
        &mut self,
        outcome: Outcome,
        source: &Source<'_>,
        journal: &mut Journal,
    ) -> Result<()> {
        let was_announced = self.announced.is_some();
        let is_lost = self.is_verified() && !source.report.satisfied;
        let written = match is_lost {
            true => self.write_leases(source),
            false => self.write(outcome, source, journal),
        };
        match written {
            Err(error) if was_announced => {
                log::error!("{error}");
                Ok(())
            }
            result => result,
        }
    }

    /// Renews the leases in the state.
    fn write_leases(&self, source: &Source<'_>) -> Result<()> {
        let Some(before) = handover::read_state(source.root)? else {
            return Ok(());
        };
        let mut state = before.clone();
        renew(&mut state, source.facts);
        // The file has no secrets, which the leases in memory may have.
        match handover::json(&state)? == handover::json(&before)? {
            true => Ok(()),
            false => handover::write_state(&self.directory, &state),
        }
    }

    /// The result comes last: it opens dracut's gate.
    fn write(
        &mut self,
        outcome: Outcome,
        source: &Source<'_>,
        journal: &mut Journal,
    ) -> Result<()> {
        let report = source.report;
        let mut now = Announced {
            // What the hooks were told stands: the boot has gone on by it.
            outcome: self.announced.as_ref().map_or(outcome, |now| now.outcome),
            statuses: statuses(report),
            marks: journal.length(),
            leases: leases(&source.facts.dhcp, &source.facts.dhcp6),
            information: source.information.stages(),
            unproven: unproven(source.facts),
        };
        if self.announced.as_ref() == Some(&now) {
            return Ok(());
        }
        journal.mark(Phase::HandedOver, "", None);
        let first = self.announced.is_none();
        // dracut's modules would wait for a network that they were not told of.
        let untold = contract::tell_dracut(&self.directory, source, journal);
        if first && untold.is_some() && now.outcome == Outcome::Verified {
            now.outcome = source.plan.onfail.into();
        }
        let named = source.plan.expectation.root.clone();
        let boot_id = source.root.boot_id();
        let expected = Expectation {
            root: named.or_else(|| contract::granted_root(source, journal)),
            ..pinned(source.expectation, source.facts, report, boot_id.clone())
        };
        let obstacle = untold.or_else(|| source.obstacle().map(str::to_owned));
        let reason = match now.outcome {
            Outcome::Verified => None,
            _ => reason(report, obstacle),
        };
        let outcome = now.outcome;
        let state = state(source, journal, boot_id, outcome, reason.clone());
        self.directory
            .write(handover::EXPECTED, handover::json(&expected)?.as_bytes())?;
        handover::write_state(&self.directory, &state)?;
        now.marks = journal.length();
        self.announced = Some(now);
        if first {
            let text = result(outcome, &words(reason.clone(), &report.complaints));
            self.directory.write(handover::RESULT, text.as_bytes())?;
            self.result = self.directory.opened(handover::RESULT).ok();
            contract::call_queue(source.root);
            announce(outcome, reason.as_deref(), source, journal);
        }
        Ok(())
    }
}

/// Logs the verdict.
fn announce(outcome: Outcome, reason: Option<&str>, source: &Source<'_>, journal: &mut Journal) {
    let ending = verdict::Ending {
        outcome,
        require: source.expectation.require,
        elapsed: source.elapsed,
        next: in_initramfs(source.root).then(|| verdict::next(source.plan)),
        obstacle: reason,
    };
    let verdict = printable(&verdict::words(source.report, &ending));
    let was_waiting = journal.waiting.end(&verdict);
    // Who reads on a quiet console that ibboot waits must also read how that ends.
    match outcome == Outcome::Verified && !was_waiting {
        true => log::info!("{verdict}"),
        false => log::error!("{verdict}"),
    }
}

/// The lines of the result: the outcome, and the reason where there is one.
fn result(outcome: Outcome, words: &str) -> String {
    let text = [outcome.word(), &literal(words)].join("\n");
    text.trim_end().to_owned() + "\n"
}

/// The same words for `echo`: dracut prints the result with the `echo` of its shell, and dash reads
/// `\033` as an escape sequence, but not `\xNN`.
fn literal(words: &str) -> String {
    let mut all = words.chars().peekable();
    let mut text = String::with_capacity(words.len());
    while let Some(character) = all.next() {
        if character == '\\' && all.peek() != Some(&'x') {
            text.push_str("\\x5c");
        } else {
            text.push(character);
        }
    }
    text
}

fn state(
    source: &Source<'_>,
    journal: &Journal,
    boot_id: Option<String>,
    outcome: Outcome,
    reason: Option<String>,
) -> State {
    let handover = source.plan.handover.as_ref();
    State {
        schema: SCHEMA,
        ibboot: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id,
        outcome,
        reason,
        handover: handover.map(|to| to.value),
        links: links(source.report, source.facts, journal.marks()),
        dhcp: leases4(source),
        dhcp6: leases6(source),
        information: source.information.clients.progress(),
        silent: silent(source.facts),
        failures: journal.failures().to_vec(),
        marks: journal.marks_until(source.report.taken_ns),
    }
}

/// Puts what DHCP servers granted since in the place of the leases of a state. A lease that is lost stays: the
/// keeper asks the server about it.
fn renew(state: &mut State, facts: &Facts) {
    for old in &mut state.dhcp {
        let mut now = facts.dhcp.iter();
        let new = now.find(|new| new.index == old.index && new.lease.is_some());
        if let Some(new) = new {
            *old = v4::progress::Progress {
                routes: take(&mut old.routes),
                addresses: take(&mut old.addresses),
                ..new.clone()
            };
        }
    }
    for old in &mut state.dhcp6 {
        let mut now = facts.dhcp6.iter();
        let new = now.find(|new| new.index == old.index && new.lease.is_some());
        if let Some(new) = new {
            *old = v6::progress::Progress {
                routes: take(&mut old.routes),
                addresses: take(&mut old.addresses),
                ..new.clone()
            };
        }
    }
}

/// The leases, with what the command line requests on their interfaces.
fn leases4(source: &Source<'_>) -> Vec<v4::progress::Progress> {
    let found = source.facts.dhcp.iter();
    let leases = found.map(|progress| v4::progress::Progress {
        routes: requested_routes(source, &progress.interface, false),
        addresses: requested_addresses(source, &progress.interface, false),
        ..progress.clone()
    });
    leases.collect()
}

/// The same for DHCPv6.
fn leases6(source: &Source<'_>) -> Vec<v6::progress::Progress> {
    let found = source.facts.dhcp6.iter();
    let leases = found.map(|progress| v6::progress::Progress {
        routes: requested_routes(source, &progress.interface, true),
        addresses: requested_addresses(source, &progress.interface, true),
        ..progress.clone()
    });
    leases.collect()
}

/// What the command line requests on an interface.
fn requested<'s>(source: &Source<'s>, interface: &str) -> Option<&'s IpoibWish> {
    let mut links = source.report.links.iter();
    let link = links.find(|link| link.interface.as_deref() == Some(interface))?;
    let mut wishes = source.expectation.links.iter();
    let wish = wishes.find(|wish| wish.target == link.target)?;
    wish.ipoib.as_ref()
}

/// The addresses that the command line requests on an interface.
fn requested_addresses(source: &Source<'_>, interface: &str, is_v6: bool) -> Vec<Address> {
    let ipoib = requested(source, interface).into_iter();
    let all = ipoib.flat_map(|ipoib| ipoib.addresses.iter().copied());
    all.filter(|own| own.address.is_ipv6() == is_v6).collect()
}

/// The routes that the command line requests on an interface, the default ones last.
fn requested_routes(source: &Source<'_>, interface: &str, is_v6: bool) -> Vec<Route> {
    let Some(ipoib) = requested(source, interface) else {
        return Vec::new();
    };
    let gateways = ipoib.gateways.iter().copied();
    let defaults = gateways.map(Route::default_through);
    let routes = ipoib.routes.iter().copied().chain(defaults);
    routes
        .filter(|route| route.network.address.is_ipv6() == is_v6)
        .collect()
}

fn silent(facts: &Facts) -> Vec<Silent> {
    let devices = facts.devices.iter();
    let since = |seconds: u32| facts.taken_ns.saturating_sub(u64::from(seconds) * SECOND);
    devices
        .filter_map(|device| {
            Some(Silent {
                ifname: device.ifname.clone(),
                since_ns: since(device.silent_s?),
            })
        })
        .collect()
}

fn links(report: &Report, facts: &Facts, marks: &[Mark]) -> Vec<Link> {
    let verified_ns = |link: &LinkReport| {
        let is_it = |mark: &&Mark| mark.phase == Phase::Verified && mark.object == link.object();
        marks.iter().find(is_it).map(|mark| mark.start_ns)
    };
    report
        .links
        .iter()
        .filter_map(|link| {
            let port = facts.port(link.name.as_deref()?)?;
            Some(Link {
                node_guid: link.identity.as_ref().and_then(Identity::node_guid),
                port: port.port.port,
                ifname: port.device.ifname.clone(),
                port_guid: link.port_guid,
                pci: link.bus_address.clone(),
                link_layer: link.link_layer,
                rate: link.rate.clone(),
                netdev: link.netdev.clone(),
                requested_by: link.requested_by.clone(),
                required: link.required,
                verified: link.is_good(),
                verified_ns: verified_ns(link).filter(|_| link.is_good()),
            })
        })
        .collect()
}

/// A run that ended by `error` leaves its reason for the hooks.
pub fn stillborn(onfail: OnFailure, error: &crate::error::Error) {
    let text = result(Outcome::from(onfail), &error.to_string());
    log::error!(
        "{error} (at {} s)",
        crate::system::clock::seconds(boottime_ns())
    );
    // In place of the last line about the wait.
    Manager::of_environment().status(&error.to_string());
    if let Err(error) =
        Directory::open().and_then(|directory| directory.write(handover::RESULT, text.as_bytes()))
    {
        log::error!("{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handover::leases::tests::{progress, state};
    use crate::plan::tests::planned;
    use crate::verify::checks::Id;
    use crate::verify::finding::Finding;
    use crate::wish::expectation::{LinkWish, Target};

    /// While a required link is down, an interface of another one may get a new lease, and that of the
    /// link itself may be gone.
    #[test]
    fn a_lease_in_the_state_follows_its_renewals_and_outlives_its_loss() {
        let route: Route = Route::default_through("10.0.0.1".parse().unwrap());
        let asked = Progress {
            routes: vec![route],
            ..progress(4, "a", Some(10))
        };
        let mut kept = state(vec![asked.clone(), progress(5, "b", Some(10))]);
        let facts = Facts {
            dhcp: vec![progress(4, "a", Some(20)), progress(5, "b", None)],
            ..Facts::default()
        };
        renew(&mut kept, &facts);
        let renewed = Progress {
            lease: progress(4, "a", Some(20)).lease,
            ..asked
        };
        assert_eq!(kept.dhcp, [renewed, progress(5, "b", Some(10))]);
    }

    fn link(target: &str, finding: Finding) -> LinkReport {
        let wish = LinkWish {
            target: target.to_owned().into(),
            required: target != "optional",
            ..LinkWish::default()
        };
        LinkReport::new(&wish, None, vec![finding])
    }

    fn good(target: &str) -> LinkReport {
        link(target, Finding::ok(Id::PortState, "ACTIVE"))
    }

    fn waiting(target: &str) -> LinkReport {
        link(target, Finding::failed(Id::PortState, "INIT", "ACTIVE"))
    }

    fn lost(target: &str) -> LinkReport {
        let finding = Finding::failed(Id::PortLinkLayer, "Ethernet", "InfiniBand");
        link(target, finding.lasting())
    }

    fn report(links: Vec<LinkReport>) -> Report {
        Report {
            links,
            ..Report::default()
        }
    }

    #[test]
    fn a_result_that_another_run_replaced_or_removed_is_not_ours() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::named(place.path().to_str().unwrap()).unwrap();
        directory.write(handover::RESULT, b"verified\n").unwrap();
        let mut files = Files {
            result: directory.opened(handover::RESULT).ok(),
            directory,
            announced: None,
        };
        assert!(files.are_ours());
        files
            .directory
            .write(handover::RESULT, b"verified\n")
            .unwrap();
        assert!(!files.are_ours());
        files.result = files.directory.opened(handover::RESULT).ok();
        assert!(files.are_ours());
        files.directory.remove(handover::RESULT).unwrap();
        assert!(!files.are_ours());
    }

    #[test]
    fn there_is_no_hope_when_what_is_required_has_failed_for_good() {
        let any_port = || {
            Some(LinkWish {
                target: Target::Any,
                ..LinkWish::default()
            })
        };
        let hopeless = |require, any_port: Option<LinkWish>, links| {
            let expectation = Expectation {
                require,
                any_port,
                ..planned("").expectation
            };
            is_hopeless(&expectation, &report(links))
        };
        let listed = |links| hopeless(Require::Listed, None, links);
        assert!(listed(vec![good("ib0"), lost("ib1")]));
        assert!(!listed(vec![good("ib0"), waiting("ib1")]));
        assert!(!listed(vec![waiting("ib0"), lost("optional")]));
        // The root file system may be behind ib0.
        assert!(!listed(vec![waiting("ib0"), lost("ib1")]));
        assert!(listed(vec![good("ib0"), waiting("optional"), lost("ib1")]));
        let all = |links| hopeless(Require::All, None, links);
        assert!(all(vec![good("ib0"), lost("optional")]));
        assert!(!all(vec![waiting("ib0"), good("ib1")]));
        assert!(!all(vec![waiting("ib0"), lost("ib1")]));
        // Of three links, one that is lost leaves two that may still come.
        let two = |links| hopeless(Require::Count(2), None, links);
        assert!(!two(vec![good("ib0"), waiting("ib1"), lost("ib2")]));
        assert!(two(vec![good("ib0"), lost("ib1"), lost("ib2")]));
        assert!(!two(vec![waiting("ib0"), lost("ib1"), lost("ib2")]));
        let any = |links| hopeless(Require::Count(2), any_port(), links);
        assert!(!any(vec![waiting("any port"), lost("any port")]));
        assert!(any(vec![lost("any port"), lost("any port")]));
    }

    #[test]
    fn the_result_has_the_outcome_the_reason_and_the_first_wrong_argument() {
        let complaints = ["rd.ib.mode: no such mode".to_owned(), "another".to_owned()];
        let of = |reason: Option<&str>, complaints: &[String]| {
            let words = words(reason.map(str::to_owned), complaints);
            result(Outcome::Continue, &words)
        };
        assert_eq!(of(None, &[]), "failed continue\n");
        assert_eq!(
            of(Some("ib0: no cable"), &[]),
            "failed continue\nib0: no cable\n"
        );
        assert_eq!(
            of(Some("ib0: no cable"), &complaints),
            "failed continue\nib0: no cable; invalid argument: rd.ib.mode: no such mode\n"
        );
        let same = "invalid argument: rd.ib.mode: no such mode";
        assert_eq!(
            of(Some(same), &complaints),
            format!("failed continue\n{same}\n")
        );
        assert_eq!(result(Outcome::Verified, &words(None, &[])), "verified\n");
        // The words of a DHCP server.
        assert_eq!(
            of(Some(r"refuses: \033[2J \\x41 \x1b \"), &[]),
            "failed continue\nrefuses: \\x5c033[2J \\x5c\\x41 \\x1b \\x5c\n"
        );
    }

    #[test]
    fn a_satisfied_report_fails_by_its_obstacle_and_not_by_what_warns() {
        let obstacle = || Some("drivers are still loading".to_owned());
        let mut found = report(vec![good("ib0"), waiting("optional")]);
        found.satisfied = true;
        assert_eq!(reason(&found, obstacle()), obstacle());
        found.satisfied = false;
        assert_eq!(reason(&found, obstacle()), found.reason());
    }

    #[test]
    fn a_failure_does_what_onfail_requests() {
        for (argument, target) in [
            ("", Outcome::Continue),
            ("rd.ib.onfail=continue", Outcome::Continue),
            ("rd.ib.onfail=shell", Outcome::Shell),
            ("rd.ib.onfail=reboot", Outcome::Reboot),
        ] {
            assert_eq!(
                Outcome::from(planned(argument).onfail),
                target,
                "{argument}"
            );
        }
    }

    #[test]
    fn the_files_are_written_anew_when_a_lease_has_another_state_or_address() {
        let lease = r#"{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1","requested_ns":0,
            "seconds":60,"renew_s":30,"rebind_s":50}"#;
        let mut progress = Progress::default();
        let before = leases(&[progress.clone()], &[]);
        progress.lease = Some(serde_json::from_str(lease).unwrap());
        let after = leases(&[progress], &[v6::progress::Progress::default()]);
        assert_ne!(before, after);
        let addresses: Vec<Option<Ipv4Addr>> =
            after.0.into_iter().map(|(_, address)| address).collect();
        assert_eq!(addresses, ["10.0.0.5".parse().ok()]);
        let addresses: Vec<Option<Ipv6Addr>> =
            after.1.into_iter().map(|(_, address)| address).collect();
        assert_eq!(addresses, [None]);
    }
}
