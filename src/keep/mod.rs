// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real root: keeps the leases that the initramfs handed over. Renews the leases and keeps
//! their settings on the interfaces, from memory: files are read only at the start, and written so
//! that the next start has the current state.

mod changes;
mod four;
mod held;
mod place;
mod reconcile;
mod six;
mod stay;

use std::net::IpAddr;
use std::time::Duration;

use four::Four;
use futures_util::future::select_all;
use held::Held;
use kernel_cmdline::Handover;
use place::{Found, Place, Present};
use six::Six;
use stay::Servers;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::handover::{self, Kept, LeaseDirectory};
use crate::system::alarm::Alarm;
use crate::system::clock::{SECOND, boottime_ns};
use crate::system::net::{LinkEvents, Net};
use crate::system::notify::Manager;
use crate::system::root::Root;
use crate::wish::expectation::Depth;
use crate::wish::storage::Protocol;

/// The machine is checked at least this often.
const LOOK: Duration = Duration::from_secs(60);
/// Link events cause a check at most this often: containers come and go by the hundred, and none of
/// their interfaces is ours.
const PAUSE: Duration = Duration::from_secs(1);

/// What only `check` shows of the clients, such as a refusal, is written at most this often: other
/// hosts cause any number of changes.
const NOTES_APART: u64 = 10 * SECOND;

/// After this many failed checks in a row the log reports the failure.
const BLIND_LOOKS: u32 = 10;

/// The inputs of one check of the machine.
struct Look<'a> {
    root: &'a Root,
    facts: &'a Facts,
    net: &'a Net,
    /// What happened to links since the last check.
    events: &'a LinkEvents,
    servers: &'a Servers,
}

/// Keeps the leases until SIGTERM, or until every lease has another owner.
pub async fn keep(root: &Root) -> Result<()> {
    let manager = Manager::of_environment();
    let (servers, mounted) = servers(root);
    let Some((handed_over, leases)) = handed_over(root, &servers, &mounted)? else {
        manager.ready();
        return Ok(());
    };
    if leases.is_empty() {
        manager.ready();
        log::info!("there is no lease to keep");
        return Ok(());
    }
    // ibboot-check.service starts after this unit is ready, and looks for the lock.
    let _lock = lock()?;
    manager.ready();
    let mut terminate = signal(SignalKind::terminate())
        .map_err(|e| Error::io("SIGTERM", "handler cannot be installed", &e))?;
    let alarm = Alarm::new().map_err(|e| Error::io("timer", "cannot be created", &e))?;
    let mut keeper = Keeper {
        root,
        net: Net::of_addresses()?,
        servers,
        leases,
        notes: Notes::of(handed_over),
        events: LinkEvents::default(),
        blind_looks: 0,
    };
    loop {
        let is_known = keeper.look().await?;
        if keeper.leases.is_empty() {
            log::info!("no lease is left to keep");
            return Ok(());
        }
        manager.alive();
        let patience = manager.patience().unwrap_or(LOOK).min(LOOK);
        let patience = if is_known { patience } else { PAUSE };
        tokio::select! {
            () = keeper.wait(&alarm, patience) => {}
            _ = terminate.recv() => return Ok(()),
        }
    }
}

struct Keeper<'a> {
    root: &'a Root,
    net: Net,
    servers: Servers,
    leases: Vec<Held>,
    notes: Notes,
    events: LinkEvents,
    /// Number of checks in a row that could not read interfaces, addresses or routes.
    blind_looks: u32,
}

impl Keeper<'_> {
    /// Checks the machine once and acts on the result. False: the interfaces could not be read, so
    /// no decision is made.
    async fn look(&mut self) -> Result<bool> {
        if self.net.is_closed() {
            self.net = Net::of_addresses()?;
            self.events = LinkEvents::everything();
        }
        let facts = Facts::gather(self.root, None, &[], Depth::Interfaces);
        if let Some(unread) = facts.unread_interfaces() {
            self.blind_looks = self.blind_looks.saturating_add(1);
            // One failure means nothing: an interface of another program may vanish while it is
            // read.
            if self.blind_looks == BLIND_LOOKS {
                log::warn!(
                    "{}: {}: addresses and routes stay unchanged until the next successful read",
                    unread.path,
                    unread.why
                );
            }
            self.leases.iter_mut().for_each(Held::wake);
            return Ok(false);
        }
        if std::mem::take(&mut self.blind_looks) >= BLIND_LOOKS {
            log::info!("interfaces, addresses and routes can be read again");
        }
        let events = std::mem::take(&mut self.events);
        let look = Look {
            root: self.root,
            facts: &facts,
            net: &self.net,
            events: &events,
            servers: &self.servers,
        };
        let mut stay = Vec::with_capacity(self.leases.len());
        for mut one in std::mem::take(&mut self.leases) {
            if one.go_on(&look).await {
                stay.push(one);
            } else {
                one.note(&mut self.notes.kept, false);
                self.notes.is_due = true;
            }
        }
        self.leases = stay;
        self.notes.write(&mut self.leases);
        Ok(true)
    }

    /// Waits until a packet, a due time, or the links require the next check. Link events are read
    /// all the time, and handled at most once per [`PAUSE`].
    async fn wait(&mut self, alarm: &Alarm, patience: Duration) {
        let now = boottime_ns();
        let after =
            |wait: Duration| now.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        let due = self.leases.iter().filter_map(Held::due);
        let due = due.chain(self.notes.due).min();
        let mut due = due.unwrap_or(u64::MAX).min(after(patience));
        if self.blind_looks > 0 {
            due = due.max(after(PAUSE));
        }
        loop {
            let leases = self.leases.iter_mut();
            let changed = select_all(leases.map(|one| one.changed()));
            let wait = Duration::from_nanos(due.saturating_sub(boottime_ns()));
            tokio::select! {
                _ = changed => return,
                () = alarm.rings(wait) => return,
                events = self.net.events() => {
                    self.events.join(events);
                    due = due.min(after(PAUSE));
                }
            }
        }
    }
}

/// Without a lock.
const UNLOCKED: &str = "ibboot cannot prevent a second instance of \"ibboot lease\"";

/// Locks out a second keeper. None: there is no directory for a lock file.
fn lock() -> Result<Option<nix::fcntl::Flock<std::fs::File>>> {
    let directory = match LeaseDirectory::open() {
        Ok(directory) => directory,
        Err(error) => {
            log::warn!("{error}; {UNLOCKED}");
            return Ok(None);
        }
    };
    match directory.lock() {
        Ok(None) => Err(Error::new(
            "lease",
            "another instance of \"ibboot lease\" is running",
        )),
        Ok(lock) => {
            directory
                .clear()
                .unwrap_or_else(|error| log::warn!("{error}"));
            Ok(lock)
        }
        Err(error) => {
            log::warn!("{error}; {UNLOCKED}");
            Ok(None)
        }
    }
}

/// The leases to keep: as the last keeper wrote them, or as the initramfs did if its file is newer
/// or the only one. `None`: another program renews the leases.
fn handed_over(
    root: &Root,
    servers: &Servers,
    mounted: &[IpAddr],
) -> Result<Option<(Kept, Vec<Held>)>> {
    let kept = handover::read_kept(root).unwrap_or_else(|error| {
        log::warn!("{error}; using the leases that the initramfs handed over");
        None
    });
    let state = match (handover::state_for_service(root), &kept) {
        (Err(error), Some(_)) => {
            log::warn!("{error}; using the leases that the last ibboot lease saved");
            None
        }
        (state, _) => state?,
    };
    match state.as_ref().and_then(|state| state.handover) {
        Some(owner @ (Handover::Nm | Handover::Networkd)) => {
            log::info!("rd.ib.handover={owner}: {owner} renews the leases");
            return Ok(None);
        }
        Some(Handover::Auto | Handover::Keep | Handover::None) | None => {}
    }
    let mut kept = kept.unwrap_or_else(|| Kept::new(root.boot_id()));
    if let Some(state) = &state {
        kept.join(state);
    }
    let entry = |is_v6, index| {
        let mut all = kept.kept.iter();
        all.find(|entry| entry.is_v6 == is_v6 && entry.index == index)
    };
    let v4 = kept.dhcp.iter().filter_map(|progress| {
        let (name, index) = (&progress.interface, progress.index);
        let entry = entry(false, index)?;
        let client = Box::new(Four::new(progress, entry, servers, mounted));
        Some(Held::new(client, name, index, entry))
    });
    let v6 = kept.dhcp6.iter().filter_map(|progress| {
        let (name, index) = (&progress.interface, progress.index);
        let entry = entry(true, index)?;
        let client = Box::new(Six::new(progress, servers, mounted));
        Some(Held::new(client, name, index, entry))
    });
    let leases = v4.chain(v6).collect();
    Ok(Some((kept, leases)))
}

/// The servers of the root file system: the servers that the command line or a lease named, and the
/// servers of the mount. The second list has those of the mount only.
fn servers(root: &Root) -> (Servers, Vec<IpAddr>) {
    let expected = handover::read_expected(root).unwrap_or_else(|error| {
        log::debug!("{error}");
        None
    });
    let named = expected.and_then(|expected| expected.root);
    let mut facts = Facts::default();
    facts.add_root(root, None);
    let mut mounted: Vec<IpAddr> = Vec::new();
    if let Some(mount) = facts.root {
        mounted.extend(mount.server);
        mounted.extend(mount.paths.iter().filter_map(|path| path.server));
    }
    mounted.sort_unstable();
    mounted.dedup();
    let mut servers = mounted.clone();
    if let Some(named) = named {
        // A live image is in memory now: nothing is read from its server any more.
        if named.root.protocol == Protocol::Live && mounted.is_empty() {
            return (Some(Vec::new()), Vec::new());
        }
        servers.extend(named.root.server);
        servers.extend(named.portals.iter().filter_map(|portal| portal.root.server));
    }
    servers.sort_unstable();
    servers.dedup();
    ((!servers.is_empty()).then_some(servers), mounted)
}

/// The file for the next start. A failure to write the file does not affect this process.
struct Notes {
    kept: Kept,
    is_due: bool,
    is_broken: bool,
    /// When the file was last written, and when a change of what `check` shows must be written, ns since
    /// kernel start.
    written_ns: u64,
    due: Option<u64>,
}

impl Notes {
    fn of(kept: Kept) -> Notes {
        Notes {
            kept,
            is_due: false,
            is_broken: false,
            written_ns: 0,
            due: None,
        }
    }

    /// Whether the file is written at `now`; `is_outdated`: `check` would show a client as it was.
    fn is_time(&mut self, is_outdated: bool, now: u64) -> bool {
        let due = self.written_ns.saturating_add(NOTES_APART);
        self.due = (is_outdated && !self.is_due && now < due).then_some(due);
        if !self.is_due && (!is_outdated || self.due.is_some()) {
            return false;
        }
        if self.is_due {
            self.kept.written_ns = now;
        }
        self.written_ns = now;
        true
    }

    /// Writes the file if something is new, or if the last attempt to write failed.
    fn write(&mut self, leases: &mut [Held]) {
        for one in leases.iter_mut() {
            self.is_due |= one.take_news();
        }
        let is_outdated = !leases.iter().all(|one| one.is_noted(&self.kept));
        if !self.is_time(is_outdated, boottime_ns()) {
            return;
        }
        self.kept.kept.clear();
        for one in leases {
            one.note(&mut self.kept, true);
        }
        let written = LeaseDirectory::open().and_then(|directory| directory.write(&self.kept));
        let was_broken = std::mem::replace(&mut self.is_broken, written.is_err());
        self.is_due = self.is_broken;
        match written {
            Ok(()) if was_broken => log::info!("the leases can be saved again"),
            Ok(()) => {}
            Err(error) if was_broken => log::debug!("{error}"),
            Err(error) => log::warn!("{error}; the leases are still renewed"),
        }
    }
}

/// Finds the interface of a lease, and sets the interface up if it came back with the kernel's
/// defaults. `None`: the interface does not exist, which is logged once.
async fn arrive<'a>(
    place: &mut Place,
    troubles: &mut Troubles,
    look: &Look<'a>,
    what: &str,
) -> Option<Present<'a>> {
    let present = match place.look(look.facts, look.events) {
        Found::Vanished => {
            log::warn!(
                "{}: the interface is gone: {what} waits for the interface",
                place.name
            );
            return None;
        }
        Found::Gone => return None,
        Found::Present(present) => present,
    };
    let (name, index) = (&place.name, place.index);
    if present.is_back {
        log::info!("{name}: the interface is back");
    }
    if present.must_be_set_up
        && let Err(why) = look.net.set_up(index).await
    {
        troubles.say(format!("{name}: cannot be brought up: {why}"));
    }
    let mtu = present
        .mtu_before
        .filter(|mtu| present.netdev.mtu != Some(*mtu));
    if let Some(mtu) = mtu {
        match look.net.set_mtu(index, mtu).await {
            Ok(()) => log::info!("{name}: MTU {mtu} set again"),
            Err(why) => troubles.say(format!("{name}: MTU {mtu} cannot be set again: {why}")),
        }
    }
    Some(present)
}

/// The first renewals are logged one by one, later only one per hour: a server can request a
/// renewal every few seconds.
#[derive(Debug, Default)]
struct Renewals {
    logged: u32,
    logged_ns: u64,
}

impl Renewals {
    const LOGGED: u32 = 8;
    const HOUR_NS: u64 = 3_600 * SECOND;

    /// The log level of the next renewal, at `now_ns` since kernel start.
    fn level(&mut self, now_ns: u64) -> log::Level {
        let is_logged =
            self.logged < Self::LOGGED || now_ns.saturating_sub(self.logged_ns) >= Self::HOUR_NS;
        if !is_logged {
            return log::Level::Debug;
        }
        self.logged = self.logged.saturating_add(1);
        self.logged_ns = now_ns;
        log::Level::Info
    }
}

/// An address that seems to be removed: the link may have gone down while the machine was read, and
/// its event comes later. Only a second check after [`PAUSE`] counts.
#[derive(Debug, Default)]
struct Doubt(Option<u64>);

impl Doubt {
    /// When the second check is due, ns since kernel start.
    fn due(&self) -> Option<u64> {
        self.0
    }

    /// Begins the pause, or confirms the doubt (true) after it.
    fn confirm(&mut self) -> bool {
        let pause = u64::try_from(PAUSE.as_nanos()).unwrap_or(u64::MAX);
        let now = boottime_ns();
        now >= *self.0.get_or_insert(now.saturating_add(pause))
    }
}

/// A repeated failure is logged once, until all is well. A server can cause any number of
/// different failures: only the first ones are logged.
#[derive(Debug, Default)]
struct Troubles(Vec<String>);

impl Troubles {
    const LOGGED: usize = 32;

    fn say(&mut self, line: String) {
        if self.0.len() < Self::LOGGED && !self.0.contains(&line) {
            log::error!("{line}");
            self.0.push(line);
        }
    }

    fn are_over(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Netdev;
    use crate::inet::Route;
    use crate::request::Request;
    use crate::wish::expectation::{Expectation, RootWish};

    /// An interface with these routes.
    pub fn netdev(routes: &[Route]) -> Netdev {
        let (default, others): (Vec<Route>, Vec<Route>) =
            routes.iter().partition(|route| route.network.prefix == 0);
        Netdev {
            gateways: default.iter().filter_map(|route| route.gateway).collect(),
            routes: others,
            ..Netdev::default()
        }
    }

    #[test]
    fn a_live_image_on_an_nfs_server_needs_its_server_after_boot() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(
            "proc/self/mountinfo",
            "23 1 0:28 / / rw - overlay LiveOS_rootfs rw,lowerdir=/run/rootfsbase\n",
        );
        for (cmdline, expected) in [
            ("root=live:http://10.0.0.2/r.img", Some(vec![])),
            (
                "root=live:nfs:10.0.0.2:/srv/r.img",
                Some(vec!["10.0.0.2".parse().unwrap()]),
            ),
            ("root=live:nfs:server:/srv/r.img", None),
        ] {
            let request = Request::from_text(&format!("ip=10.0.0.1:::24::ib0:none {cmdline}"));
            let root = request.root.map(|root| RootWish {
                root: root.value,
                portals: Vec::new(),
                requested_by: None,
            });
            let expectation = Expectation {
                schema: crate::SCHEMA,
                root,
                ..Expectation::default()
            };
            let text = serde_json::to_string(&expectation).unwrap();
            put("run/ibboot/expected.json", &text);
            let found = servers(&Root::new(tree.path()));
            assert_eq!(found, (expected, vec![]), "{cmdline}");
        }
    }

    #[tokio::test]
    async fn an_interface_that_cannot_be_set_up_is_logged_once() {
        let (root, net) = (Root::new("/nonexistent"), Net::open().unwrap());
        let back = Netdev {
            ifname: "near".to_owned(),
            // The kernel has no such interface.
            ifindex: Some(0x7fff_ffff),
            ..Netdev::default()
        };
        let facts = Facts {
            netdevs: vec![back],
            ..Facts::default()
        };
        let look = Look {
            root: &root,
            facts: &facts,
            net: &net,
            events: &LinkEvents::default(),
            servers: &None,
        };
        let mut place = Place::new("near", 4, None);
        let mut troubles = Troubles::default();
        for _ in 0..2 {
            arrive(&mut place, &mut troubles, &look, "").await;
        }
        let why = match nix::unistd::geteuid().is_root() {
            true => "No such device",
            false => "Operation not permitted",
        };
        assert_eq!(troubles.0, [format!("near: cannot be brought up: {why}")]);
    }

    #[test]
    fn what_check_shows_is_written_soon_and_not_with_each_packet() {
        let mut notes = Notes::of(Kept::new(None));
        notes.is_due = true;
        assert!(notes.is_time(true, 100 * SECOND));
        notes.is_due = false;
        let mut write = |is_outdated, now: u64| {
            let is_time = notes.is_time(is_outdated, now * SECOND);
            (is_time, notes.due.map(|due| due / SECOND))
        };
        assert_eq!(write(false, 101), (false, None));
        assert_eq!(write(true, 102), (false, Some(110)));
        assert_eq!(write(false, 103), (false, None));
        assert_eq!(write(true, 110), (true, None));
        assert_eq!(write(true, 111), (false, Some(120)));
        // A lease of `up` that was requested in between still counts.
        assert_eq!(notes.kept.written_ns, 100 * SECOND);
        notes.is_due = true;
        assert!(notes.is_time(true, 112 * SECOND));
        assert_eq!((notes.due, notes.kept.written_ns), (None, 112 * SECOND));
    }

    #[test]
    fn many_renewals_are_a_few_lines() {
        let mut renewals = Renewals::default();
        let mut logged = |every_s: u64, times: u64| {
            let levels = (0..times).map(|n| renewals.level(n * every_s * SECOND));
            levels.filter(|level| *level == log::Level::Info).count()
        };
        // One renewal every five seconds for a day.
        assert_eq!(logged(5, 17_280), 8 + 23);
    }
}
