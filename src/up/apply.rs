// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the changes, tells them, and notes what fails and what is not tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use kernel_cmdline::LinkKind;
use nix::errno::Errno;
use tokio::time::Instant;

use super::Walk;
use super::act::refuse;
use super::naming::UDEV_DATA;
use super::writes::Written;
use crate::changes::{CardPort, Change, Need, Setting, What, Writing, adopt, route_text};
use crate::dhcp::hardware::Hardware;
use crate::error::{Error, Result};
use crate::facts::{Facts, Touched};
use crate::loader::{Answer, PortSet};
use crate::rdma::types::NetnsMode;
use crate::wish::bond::MODE;

/// Routes of a DHCP server that are named in its line of the log.
const ROUTES_SAID: usize = 8;

/// How long the changes of one look wait together for writes of the loader: the healthy ones end
/// within this time, and nothing else needs another look.
const PATIENCE: Duration = Duration::from_millis(100);

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applied {
    /// The machine is another one now.
    Changed,
    /// The machine is as it was, or shows nothing of the change.
    Same,
    /// Another host has the address: what follows for the interface waits.
    Held,
}

impl From<bool> for Applied {
    fn from(is_changed: bool) -> Applied {
        if is_changed {
            Applied::Changed
        } else {
            Applied::Same
        }
    }
}

/// Suggested routes that were set, by interface: one line tells all.
type Suggested = BTreeMap<(String, Option<Ipv4Addr>), Vec<String>>;

impl Walk<'_, '_> {
    /// Makes the changes in order. True if the machine is another one now.
    pub(super) async fn apply(&mut self, changes: &[Change], facts: &Facts) -> bool {
        let mut is_changed = false;
        let (mut held, mut addressed) = (BTreeSet::new(), BTreeSet::new());
        let mut suggested = Suggested::new();
        let until = Instant::now() + PATIENCE;
        for change in changes {
            if held.contains(&change.index) || self.parts.writes.holds(change) {
                continue;
            }
            let applied = match &change.what {
                What::Write(writing) => {
                    self.tried.done.record(change);
                    let request = writing.request(&change.object, change.index);
                    self.parts.writes.begin(change, request);
                    let written = self.parts.writes.soon(change, until).await;
                    is_changed |= self.written(written);
                    continue;
                }
                What::NetnsMode(mode) => self.set_netns_mode(change, *mode).into(),
                What::AddLink { kind, netdev } => {
                    self.add_link(&change.object, *kind, netdev, facts).into()
                }
                What::AwaitName => {
                    let is_working = self.machine.root.exists(UDEV_DATA);
                    let naming = &mut self.parts.naming;
                    let wait = |index| naming.wait(&change.object, index, is_working);
                    change.index.is_some_and(wait).into()
                }
                What::Claim(address) => self.claim(change, *address),
                What::Yield { address, owner } => self.yield_address(change, *address, owner).await,
                What::Set(setting) => self.set(change, setting, &mut suggested).await,
                What::Impossible(error) => {
                    self.journal.tell_once(&change.object, error);
                    Applied::Same
                }
            };
            match applied {
                Applied::Changed => {
                    is_changed = true;
                    self.sight.touch(touched(&change.what));
                    if is_of_address(&change.what) {
                        addressed.extend(change.index);
                    }
                }
                Applied::Same => {}
                Applied::Held => {
                    held.insert(change.index);
                }
            }
        }
        say_suggested(suggested);
        for index in addressed {
            self.parts.leasing.v4.announce(index);
        }
        is_changed
    }

    /// Takes writes that have ended. True if the machine is another one now, or may be: nobody knows
    /// what a write that failed has left.
    pub(super) fn written(&mut self, all: Vec<Written>) -> bool {
        let mut is_any_changed = false;
        for Written { change, answer } in all {
            let is_failed = answer.is_failed();
            let is_changed = match (&change.what, answer) {
                (What::Write(Writing::PortTypes(ports)), Answer::Ports(results)) => {
                    self.port_types_set(&change.object, ports, results)
                }
                (What::Write(Writing::RoceMode { port, mode, .. }), Answer::Done(result)) => {
                    self.roce_mode_set(&change.object, *port, mode, result);
                    false
                }
                (What::Write(Writing::PortTypes(_)), _) | (_, Answer::Ports(_)) => false,
                (_, Answer::Done(result)) => self.was_set(&change, result),
            };
            if is_changed || is_failed {
                self.sight.touch(touched(&change.what));
                is_any_changed = true;
            }
        }
        is_any_changed
    }

    async fn set(
        &mut self,
        change: &Change,
        setting: &Setting,
        suggested: &mut Suggested,
    ) -> Applied {
        let (name, index) = (&change.object, change.index);
        self.tried.done.record(change);
        let set = setting.apply(name, index, &self.machine.net).await;
        if let (Ok(()), Setting::AddRoute(route, _), Need::Suggested(by)) =
            (&set, setting, change.need)
        {
            self.tried.done.record_route(index, route);
            let routes = suggested.entry((name.clone(), by)).or_default();
            routes.push(route_text(route));
            return Applied::Changed;
        }
        self.was_set(change, set).into()
    }

    /// Takes the end of a setting. True if something follows from it.
    fn was_set(&mut self, change: &Change, set: Result<()>) -> bool {
        let name = &change.object;
        if let Err(error) = set {
            self.refused(change, &error);
            return false;
        }
        if change.what == What::Set(Setting::Up) {
            self.tried.not_up.remove(name);
            if let Some(index) = change.index {
                self.tried.done.record_up(index);
            }
        }
        if let Some(line) = made(&change.what) {
            log::info!("{name}: {line}");
        }
        // The kernel shows it as written: nothing follows from it.
        !matches!(change.what, What::Write(Writing::Sysctl(..)))
    }

    fn refused(&mut self, change: &Change, error: &Error) {
        let name = &change.object;
        match (&change.what, change.need) {
            (What::Set(Setting::Up), _) => {
                let text = error.to_string();
                if self.tried.not_up.get(name) != Some(&text) {
                    log::error!("{text}");
                    self.tried.not_up.insert(name.clone(), text);
                }
            }
            (_, Need::Requested) => self.journal.tell_once(name, error),
            (_, Need::Best | Need::Suggested(_)) => log::debug!("{error}"),
        }
    }

    /// True if a type was changed.
    fn port_types_set(
        &mut self,
        card: &str,
        ports: &[CardPort],
        results: Vec<Result<PortSet>>,
    ) -> bool {
        let mut is_changed = false;
        for (port, result) in ports.iter().zip(results) {
            match result {
                Ok(PortSet::Absent) => continue,
                Ok(PortSet::Changed) => {
                    log::info!("{card}: port {}: type set to {}", port.port, port.value);
                    is_changed = true;
                }
                Ok(PortSet::Unchanged) => {}
                Err(error) => self.journal.fail(error.to_string()),
            }
            self.tried.done.record_port_type(card, port);
        }
        is_changed
    }

    /// A mode that cannot be set is logged once and is a failure of the run; nothing waits for it.
    fn roce_mode_set(&mut self, device: &str, port: u32, mode: &str, result: Result<()>) {
        match result {
            Ok(()) => log::info!("{device}/{port}: default RoCE mode is {mode}"),
            Err(error) => self.journal.fail(error.to_string()),
        }
    }

    /// True if the mode was set. A refusal is logged once; another network namespace may end.
    fn set_netns_mode(&mut self, change: &Change, mode: NetnsMode) -> bool {
        let Some(rdma) = &self.machine.rdma else {
            return false;
        };
        let Err(error) = rdma.set_netns_mode(mode) else {
            log::info!("{}: network namespace mode {mode}", change.object);
            return true;
        };
        let what = format!("network namespace mode {mode} cannot be set");
        let error = Error::new(&change.object, what).found(error.to_string());
        self.journal.tell_once(&change.object, &error);
        false
    }

    /// Adds a software link. True if the next look may show it.
    fn add_link(&mut self, name: &str, kind: LinkKind, netdev: &str, facts: &Facts) -> bool {
        // ib_core may have come with the module just now.
        self.machine.open_rdma();
        let Some(rdma) = &self.machine.rdma else {
            return false;
        };
        let Err(error) = rdma.new_link(name, kind, netdev) else {
            log::info!("{name}: {kind} link added on {netdev}");
            return true;
        };
        let reason = match error.errno() {
            // The interface went since the look: the interface may come back.
            Some(Errno::ENODEV) => return false,
            Some(Errno::EEXIST) => {
                if let Some(other) = adopt(&mut self.expectation, name, kind, netdev, facts) {
                    log::info!("{name}: {netdev} carries {other} already: ibboot uses that link");
                    return true;
                }
                // Made since the look: the next look shows the link.
                if self.tried.unseen.insert(name.to_owned()) {
                    return true;
                }
                format!("{netdev} carries another software link already")
            }
            Some(Errno::ENFILE) => format!("another RDMA device has the name {name}"),
            Some(Errno::EINVAL) => {
                format!("the kernel refuses a {kind} link {name} on {netdev} (EINVAL): see dmesg")
            }
            Some(errno) => format!(
                "the kernel refuses a {kind} link {name} on {netdev}: {}",
                errno.desc()
            ),
            None => format!("a {kind} link {name} cannot be added on {netdev}: {error}"),
        };
        self.journal.fail(format!("{name}: {reason}"));
        refuse(&mut self.expectation, name, &reason);
        false
    }

    /// Probes the address by ARP, once. Held: another host is known to have the address.
    fn claim(&mut self, change: &Change, address: Ipv4Addr) -> Applied {
        let name = &change.object;
        let hardware = Hardware::of(self.machine.root, name, change.index);
        match hardware.and_then(|hardware| self.parts.claims.claim(&hardware, address)) {
            Ok(true) => Applied::Same,
            Ok(false) => Applied::Held,
            Err(e) => {
                let what = format!("no ARP probe of {address} can be sent");
                self.journal.tell_once(name, &Error::io(name, what, &e));
                Applied::Same
            }
        }
    }

    /// Removes the address again: another host was found to have it.
    async fn yield_address(
        &mut self,
        change: &Change,
        address: crate::inet::Address,
        owner: &str,
    ) -> Applied {
        let name = &change.object;
        let error = Error::new(name, format!("address {address} removed"))
            .found(format!("{owner} uses this address"))
            .hint("give this node another address with ip=, or find the other host by its GUID");
        // Once, however many hosts answer.
        let taken = format!("{address} is taken");
        if self.journal.is_first_time(name, &taken) {
            self.journal.tell_once(name, &error);
        }
        let Some(index) = change.index else {
            return Applied::Same;
        };
        let gone = self
            .machine
            .net
            .delete_address(index, address.address, None);
        if let Err(why) = gone.await {
            let what = format!("address {address} cannot be removed");
            self.journal
                .tell_once(name, &Error::new(name, what).found(why));
            return Applied::Same;
        }
        Applied::Changed
    }
}

/// What a change touches beside links, addresses and routes: the uevents of a new device come after
/// the next look.
fn touched(what: &What) -> Touched {
    match what {
        What::Yield { .. }
        | What::Write(Writing::Sysctl(..))
        | What::Set(
            Setting::Mtu(_)
            | Setting::Up
            | Setting::Down
            | Setting::AddAddress(..)
            | Setting::AddDeprecated(_)
            | Setting::RemoveAddress(_)
            | Setting::AddRoute(..)
            | Setting::RemoveRoute(_),
        ) => Touched::Nothing,
        // A bond's message may lack the option. A known mode of network namespaces is kept otherwise.
        What::Write(Writing::BondOption { .. }) | What::NetnsMode(_) => Touched::Everything,
        // The driver removes and adds the devices of the card.
        What::Write(Writing::PortTypes(_)) => Touched::Devices,
        _ => Touched::Lists,
    }
}

fn is_of_address(what: &What) -> bool {
    matches!(
        what,
        What::Yield { .. }
            | What::Set(
                Setting::AddAddress(..) | Setting::AddDeprecated(_) | Setting::AddRoute(..)
            )
    )
}

/// What was made, in the words of the log; none: the log has no line for it.
fn made(what: &What) -> Option<String> {
    Some(match what {
        What::Write(Writing::CreateChild(pkey)) => {
            format!("child interface of P_Key {pkey:#06x} created")
        }
        What::Write(Writing::Mode(mode)) => format!("mode {mode}"),
        What::Set(Setting::Rename(name)) => format!("renamed to {name}"),
        What::Set(Setting::Up) => "is up".to_owned(),
        What::Set(Setting::MakeBond) => format!("bond created, {MODE}"),
        What::Set(Setting::Enslave { bond, .. }) => format!("added to {bond}"),
        What::Set(Setting::AddAddress(address, _)) => format!("address {address}"),
        What::Set(Setting::AddDeprecated(address)) => format!("address {address}, deprecated"),
        What::Set(Setting::AddRoute(route, _)) => route_text(route),
        _ => return None,
    })
}

fn say_suggested(suggested: Suggested) {
    for ((name, by), mut routes) in suggested {
        let more = routes.len().saturating_sub(ROUTES_SAID);
        routes.truncate(ROUTES_SAID);
        if more > 0 {
            routes.push(format!("{more} more"));
        }
        let by = by.map_or_else(String::new, |by| format!(" suggested by {by}"));
        log::info!("{name}: {},{by}", routes.join(", "));
    }
}
