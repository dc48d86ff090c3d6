// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leases that `ibboot lease` keeps, in a separate directory below /run/ibboot: the program
//! listens to the network for the life of the machine, so it runs as its own user, who can write to
//! no other directory.

use std::fs::File;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat, mkdirat};
use nix::unistd::{Gid, Uid, fchownat, geteuid};
use serde::{Deserialize, Serialize};

use super::{DIRECTORY, State, bytes_in_tree, parse};
use crate::dhcp::progress::Counts;
use crate::dhcp::v4::progress::Progress;
use crate::error::{Error, Kind, Result};
use crate::facts::lasting::Identity;
use crate::inet::{Address, Route};
use crate::system::directory::{Directory, OPEN};
use crate::system::root::Root;
use crate::{SCHEMA, dhcp};

/// Path of the file with [`Kept`], below [`DIRECTORY`].
pub const KEPT: &str = "lease/leases.json";
/// Directory below [`DIRECTORY`], owned by the keeper's user.
const PLACE: &str = "lease";
/// The file with the leases: [`Kept`].
const LEASES: &str = "leases.json";
/// Lock file of the keeper. No other user may open the file, because whoever can open it can lock
/// it.
const LOCK: &str = "lock";
const PRIVATE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);
const OTHERS_WRITE: u32 = 0o022;

/// `/run/ibboot/lease/leases.json`: if the file exists, its DHCP leases replace those of
/// state.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The kernel's boot id: leases of another boot are not valid.
    pub boot_id: Option<String>,
    /// Time of the last write, ns since kernel start, but not of one that only shows what a client hears.
    pub written_ns: u64,
    /// The DHCP leases that were handed over, in their current state.
    pub dhcp: Vec<Progress>,
    /// The DHCPv6 leases that were handed over, in their current state.
    pub dhcp6: Vec<dhcp::v6::progress::Progress>,
    /// The leases that are kept; the others were never granted, or now belong to another program.
    pub kept: Vec<Entry>,
}

/// One kept lease of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Whether the lease is of DHCPv6.
    pub is_v6: bool,
    /// Index of the interface.
    pub index: u32,
    /// Identity of the interface, to find it under another index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Routes of earlier leases that are kept because they lead to the servers of the root file
    /// system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The address of the lease with prefixes of earlier leases, kept for the same reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Routes of the lease that another program removed: they stay removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Route>,
}

impl Kept {
    /// No leases, for this boot.
    pub fn new(boot_id: Option<String>) -> Kept {
        Kept {
            schema: SCHEMA,
            boot_id,
            written_ns: 0,
            dhcp: Vec::new(),
            dhcp6: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// The first lease that no answer of a server can have produced. A user other than root writes the
    /// file.
    fn impossible(&self) -> Option<String> {
        let four = self.dhcp.iter().filter_map(|one| {
            let lease = one.lease.as_ref().filter(|lease| !lease.is_sound())?;
            Some((&one.interface, lease.granted().address))
        });
        let six = self.dhcp6.iter().filter_map(|one| {
            let lease = one.lease.as_ref().filter(|lease| !lease.is_sound())?;
            Some((&one.interface, lease.granted().address))
        });
        let (interface, address) = four.chain(six).next()?;
        Some(format!("{interface}: {address}"))
    }

    /// Adds the leases of `up` that are unknown here, or that were granted after this file was
    /// written: a second run of `up` requests new leases.
    pub fn join(&mut self, state: &State) {
        join(&mut self.dhcp, &mut self.kept, &state.dhcp, self.written_ns);
        join(
            &mut self.dhcp6,
            &mut self.kept,
            &state.dhcp6,
            self.written_ns,
        );
    }
}

/// The client of an interface, of either family.
trait Client: Clone {
    const IS_V6: bool;
    fn index(&self) -> u32;
    fn counts(&self) -> &Counts;
    /// When the lease was requested, ns since kernel start; none without a lease.
    fn requested_ns(&self) -> Option<u64>;
    /// Whether both name themselves to servers in the same way.
    fn has_identifier_of(&self, other: &Self) -> bool;
}

impl Client for Progress {
    const IS_V6: bool = false;

    fn index(&self) -> u32 {
        self.index
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn requested_ns(&self) -> Option<u64> {
        self.lease.as_ref().map(|lease| lease.requested_ns)
    }

    fn has_identifier_of(&self, other: &Self) -> bool {
        self.client_id == other.client_id
    }
}

impl Client for dhcp::v6::progress::Progress {
    const IS_V6: bool = true;

    fn index(&self) -> u32 {
        self.index
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn requested_ns(&self) -> Option<u64> {
        self.lease.as_ref().map(|lease| lease.requested_ns)
    }

    fn has_identifier_of(&self, other: &Self) -> bool {
        (&self.duid, self.iaid) == (&other.duid, other.iaid)
    }
}

fn join<C: Client>(clients: &mut Vec<C>, kept: &mut Vec<Entry>, of_up: &[C], written_ns: u64) {
    for client in of_up {
        let requested_ns = client.requested_ns();
        // A request without a lease has failed; but after an address conflict a new lease is
        // requested.
        let is_ours = requested_ns.is_some() || client.counts().taken.is_some();
        let is_later = requested_ns.is_some_and(|requested_ns| requested_ns > written_ns);
        let known = clients.iter().position(|one| one.index() == client.index());
        // The interface of the lease may have another index now. Two existing interfaces may
        // share an identifier: a parent and its child do.
        let is_gone = |one: &C| !of_up.iter().any(|other| other.index() == one.index());
        let is_same = |one: &C| one.has_identifier_of(client) && is_gone(one);
        let known = known.or_else(|| clients.iter().position(is_same));
        match known.and_then(|at| clients.get_mut(at)) {
            Some(_) if !is_later => continue,
            Some(known) => {
                kept.retain(|entry| entry.is_v6 != C::IS_V6 || entry.index != known.index());
                *known = client.clone();
            }
            None => clients.push(client.clone()),
        }
        kept.extend(is_ours.then(|| Entry::new(C::IS_V6, client.index())));
    }
}

impl Entry {
    fn new(is_v6: bool, index: u32) -> Entry {
        Entry {
            is_v6,
            index,
            ..Entry::default()
        }
    }
}

/// The keeper's directory, held open.
#[derive(Debug)]
pub struct Leases {
    directory: Directory,
    owner: (Uid, Gid),
}

impl Leases {
    /// Creates (0755) or opens the directory. Only root can have created it for another user,
    /// because only root can write to the parent directory.
    pub fn open() -> Result<Leases> {
        Leases::at(true)?.ok_or_else(|| {
            Error::new(format!("{DIRECTORY}/{PLACE}"), "cannot be opened")
                .found(Errno::ENOENT.desc())
        })
    }

    /// Opens the directory, and creates it first if `make` is set; `None` if it does not exist.
    fn at(make: bool) -> Result<Option<Leases>> {
        let cannot =
            |path: &str, errno: Errno| Error::new(path, "cannot be opened").found(errno.desc());
        let fd = match nix::fcntl::open(DIRECTORY, OPEN, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(cannot(DIRECTORY, errno)),
        };
        let stat = fstat(&fd).map_err(|errno| cannot(DIRECTORY, errno))?;
        let is_ours = stat.st_uid == 0 || stat.st_uid == geteuid().as_raw();
        if !is_ours || stat.st_mode & OTHERS_WRITE != 0 {
            return Err(unsafe_to_use(DIRECTORY, &stat));
        }
        let path = format!("{DIRECTORY}/{PLACE}");
        if make {
            match mkdirat(&fd, PLACE, Mode::from_bits_truncate(0o755)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(Error::new(path, "cannot be created").found(errno.desc())),
            }
        }
        let fd = match openat(&fd, PLACE, OPEN, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(cannot(&path, errno)),
        };
        let stat = fstat(&fd).map_err(|errno| cannot(&path, errno))?;
        if stat.st_mode & OTHERS_WRITE != 0 {
            return Err(unsafe_to_use(&path, &stat));
        }
        Ok(Some(Leases {
            directory: Directory::of(fd, path),
            owner: (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)),
        }))
    }

    /// Replaces the leases in one step. The mode is 0600, as [`super::STATE_MODE`].
    pub fn write(&self, kept: &Kept) -> Result<()> {
        let text = super::json(kept)?;
        self.directory
            .write_as(LEASES, text.as_bytes(), PRIVATE.bits())?;
        self.belongs_to_owner(LEASES)
    }

    /// Takes the keeper's lock, which is held until it is dropped; `None` if another keeper holds
    /// the lock.
    pub fn lock(&self) -> Result<Option<Flock<File>>> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fail = |errno| self.directory.failed(LOCK, "cannot be locked", errno);
        let file = openat(&self.directory.fd, LOCK, flags | OFlag::O_NONBLOCK, PRIVATE);
        let file = File::from(file.map_err(fail)?);
        self.belongs_to_owner(LOCK)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(lock)),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(fail(errno)),
        }
    }

    /// Removes the temporary files of killed keepers. The caller must hold the lock.
    pub fn clear(&self) -> Result<()> {
        let cannot = |e: std::io::Error| Error::io(&self.directory.path, "cannot be read", &e);
        for entry in std::fs::read_dir(&self.directory.path).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name();
            let name = name.to_str().unwrap_or_default();
            if name.starts_with(&format!(".{LEASES}.")) {
                self.directory.remove(name)?;
            }
        }
        Ok(())
    }

    /// Gives a file that root wrote to the keeper's user, who must be able to replace the file.
    fn belongs_to_owner(&self, name: &str) -> Result<()> {
        let (user, group) = self.owner;
        if !geteuid().is_root() || user.is_root() {
            return Ok(());
        }
        let no_link = AtFlags::AT_SYMLINK_NOFOLLOW;
        fchownat(&self.directory.fd, name, Some(user), Some(group), no_link)
            .map_err(|errno| self.directory.failed(name, "owner cannot be set", errno))
    }
}

fn unsafe_to_use(path: &str, stat: &FileStat) -> Error {
    Error::new(path, "is not safe to use")
        .found(format!(
            "owner {}, mode {:o}",
            stat.st_uid,
            stat.st_mode & 0o7777
        ))
        .expected("a directory of root or of this user that no other user can write to")
}

/// The leases that `ibboot lease` keeps in this boot, if any.
pub fn read(root: &Root) -> Result<Option<Kept>> {
    let name = KEPT;
    let bytes = if root.is_live() {
        match Leases::at(false)? {
            Some(leases) => {
                let bytes = leases.directory.read_of(LEASES, leases.owner.0)?;
                if let Some(bytes) = &bytes {
                    root.remember_file(&format!("{DIRECTORY}/{name}"), bytes);
                }
                bytes
            }
            None => None,
        }
    } else {
        bytes_in_tree(root, name)?
    };
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let kept: Kept = parse(name, &bytes, super::this_boot(root)?.as_deref())?;
    match kept.impossible() {
        None => Ok(Some(kept)),
        Some(lease) => Err(Error::new(
            format!("{DIRECTORY}/{name}"),
            "has a lease that no server can grant",
        )
        .found(lease)
        .kind(Kind::Unknown)),
    }
}

/// Whether a keeper was started in this boot: its lock file is there even if /run is full and the
/// leases could not be written.
pub fn was_started(root: &Root) -> Result<bool> {
    let path = format!("{DIRECTORY}/{PLACE}/{LOCK}");
    let is_there = root
        .is_there(&path)
        .map_err(|e| Error::io(&path, "cannot be read", &e).kind(Kind::Unknown))?;
    if is_there {
        root.remember_file(&path, b"");
    }
    Ok(is_there)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::dhcp::v4::lease::Lease;
    use crate::dhcp::v6;

    pub(crate) fn progress(index: u32, client: &str, requested_ns: Option<u64>) -> Progress {
        let lease = requested_ns.map(|requested_ns| {
            let text = format!(
                r#"{{"address":"10.0.0.{index}","prefix":24,"server":"10.0.0.1","requested_ns":{requested_ns},
                    "seconds":60,"renew_s":30,"rebind_s":50}}"#
            );
            serde_json::from_str::<Lease>(&text).unwrap()
        });
        Progress {
            index,
            client_id: client.to_owned(),
            lease,
            ..Progress::default()
        }
    }

    pub(crate) fn state(dhcp: Vec<Progress>) -> State {
        let text = r#"{"schema":1,"ibboot":"test","boot_id":null,"outcome":"verified","reason":null,
            "links":[],"failures":[],"marks":[]}"#;
        State {
            dhcp,
            ..serde_json::from_str(text).unwrap()
        }
    }

    /// Index, time of the request, and whether the lease is kept.
    fn summary(kept: &Kept) -> Vec<(u32, Option<u64>, bool)> {
        let one = |progress: &Progress| {
            let requested_ns = progress.lease.as_ref().map(|lease| lease.requested_ns);
            let is_kept = kept.kept.iter().any(|entry| entry.index == progress.index);
            (progress.index, requested_ns, is_kept)
        };
        kept.dhcp.iter().map(one).collect()
    }

    #[test]
    fn the_later_lease_of_two_files_counts() {
        let mut kept = Kept::new(None);
        kept.join(&state(vec![
            progress(4, "a", Some(10)),
            progress(5, "b", None),
        ]));
        assert_eq!(summary(&kept), [(4, Some(10), true), (5, None, false)]);
        // The lease was renewed, and its interface has another index after a reset; the handed over
        // lease is older.
        kept.dhcp[0] = progress(9, "a", Some(20));
        kept.kept[0].index = 9;
        kept.written_ns = 20;
        kept.join(&state(vec![progress(4, "a", Some(10))]));
        assert_eq!(summary(&kept), [(9, Some(20), true), (5, None, false)]);
        // The lease has ended, and no server granted another one.
        kept.dhcp[0].lease = None;
        kept.join(&state(vec![progress(4, "a", Some(10))]));
        assert_eq!(summary(&kept)[0], (9, None, true));
        // The lease was left to another program; then `up` ran again, on one more interface.
        kept.kept.clear();
        kept.join(&state(vec![progress(9, "a", Some(20))]));
        assert_eq!(summary(&kept)[0], (9, None, false));
        kept.join(&state(vec![
            progress(9, "a", Some(30)),
            progress(6, "c", Some(30)),
        ]));
        assert_eq!(
            summary(&kept),
            [(9, Some(30), true), (5, None, false), (6, Some(30), true)]
        );
    }

    #[test]
    fn a_client_whose_address_another_host_has_requests_a_new_lease() {
        let taken = || Counts {
            taken: Some("10.0.0.4 is in use".to_owned()),
            ..Counts::default()
        };
        let mut state = state(vec![progress(4, "a", None), progress(5, "b", None)]);
        state.dhcp[0].counts = taken();
        let six = |index, counts| v6::progress::Progress {
            index,
            duid: format!("00:0{index}"),
            counts,
            ..Default::default()
        };
        state.dhcp6 = vec![six(4, Counts::default()), six(5, taken())];
        let mut kept = Kept::new(None);
        kept.join(&state);
        assert_eq!((kept.dhcp.len(), kept.dhcp6.len()), (2, 2));
        assert_eq!(kept.kept, [Entry::new(false, 4), Entry::new(true, 5)]);
    }

    #[test]
    fn a_lease_that_no_server_can_grant_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        let place = tree.path().join("run/ibboot/lease");
        std::fs::create_dir_all(&place).unwrap();
        let root = Root::new(tree.path());
        let read = |change: &dyn Fn(&mut Lease)| {
            let mut kept = Kept::new(None);
            let mut one = progress(4, "a", Some(10));
            one.interface = "ib0".to_owned();
            one.lease.iter_mut().for_each(change);
            kept.dhcp.push(one);
            std::fs::write(place.join(LEASES), serde_json::to_vec(&kept).unwrap()).unwrap();
            super::read(&root).map(|kept| kept.unwrap().dhcp.len())
        };
        assert_eq!(read(&|_| ()), Ok(1));
        let error = read(&|lease| lease.prefix = 99).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/run/ibboot/lease/leases.json: has a lease that no server can grant: ib0: 10.0.0.4/99"
        );
        assert_eq!(error.kind, Kind::Unknown);
        let error = read(&|lease| lease.routers = vec!["127.0.0.1".parse().unwrap()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/run/ibboot/lease/leases.json: has a lease that no server can grant: ib0: 10.0.0.4/24"
        );
        let six = |server: &str| {
            let text = format!(
                r#"{{"address":"fd00::5","server":"{server}","server_id":"00:03:00:01:02:03","requested_ns":0,
                    "seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}}"#
            );
            let mut kept = Kept::new(None);
            kept.dhcp6.push(dhcp::v6::progress::Progress {
                interface: "ib0".to_owned(),
                lease: serde_json::from_str(&text).unwrap(),
                ..Default::default()
            });
            kept.impossible()
        };
        assert_eq!(six("fe80::1"), None);
        assert_eq!(six("ff02::1").as_deref(), Some("ib0: fd00::5/128"));
    }

    #[test]
    fn a_keeper_that_could_not_write_was_started_in_a_copy_too() {
        let folder = tempfile::tempdir().unwrap();
        let machine = folder.path().join("machine");
        let root = Root::recording(&machine);
        assert_eq!(was_started(&root), Ok(false));
        let place = machine.join("run/ibboot/lease");
        std::fs::create_dir_all(&place).unwrap();
        assert_eq!(was_started(&root), Ok(false));
        std::fs::write(place.join(LOCK), "").unwrap();
        assert_eq!(was_started(&root), Ok(true));
        let copy = folder.path().join("copy");
        root.save(&copy, |_, bytes| Some(bytes.into())).unwrap();
        assert_eq!(was_started(&Root::new(&copy)), Ok(true));
    }

    #[test]
    fn interfaces_that_share_an_identifier_have_a_lease_each() {
        // A parent and its child: the identifier of the card's firmware does not include the P_Key.
        let both = vec![progress(4, "a", Some(10)), progress(5, "a", Some(11))];
        let mut kept = Kept::new(None);
        kept.join(&state(both.clone()));
        assert_eq!(summary(&kept), [(4, Some(10), true), (5, Some(11), true)]);
        kept.join(&state(both));
        assert_eq!(summary(&kept), [(4, Some(10), true), (5, Some(11), true)]);
    }
}
