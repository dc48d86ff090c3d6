// SPDX-License-Identifier: MIT OR Apache-2.0
//! What survives switch_root: the files of /run/ibboot. Rendering is pure; writing is atomic,
//! follows no link and leaves either the old file or the new one.

mod leases;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use kernel_cmdline::is_plain;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::signal::kill;
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, mkdirat};
use nix::unistd::{Pid, Uid, UnlinkatFlags, geteuid, unlinkat};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dhcp::progress::Progress;
use crate::dhcp6;
use crate::error::{Error, Kind, Result};
use crate::peers;
use crate::rdma::types::{Guid, LinkLayer};
use crate::report::Report;
use crate::system::root::Root;
use crate::timeline::Mark;
use crate::verify::expectation::{Expectation, Origin};

pub use leases::{Entry, KEPT, Kept, Leases as LeaseDirectory, read as read_kept};

/// Version of the files' shapes; a reader refuses a higher one.
pub const SCHEMA: u32 = 1;
/// The directory, in the initramfs and in the real root.
pub const DIRECTORY: &str = "/run/ibboot";
/// What was brought up and verified: [`State`].
pub const STATE: &str = "state.json";
/// Its mode: it tells what DHCP servers said, which concerns nobody but root. The other files are for
/// everybody (0644), and have no secret in them.
pub const STATE_MODE: u32 = 0o600;
/// What `ibboot check` compares with: [`Expectation`].
pub const EXPECTED: &str = "expected.json";
/// The last recorded `ibboot check`: [`Report`].
pub const CHECK: &str = "check.json";
/// The interfaces that dracut goes on with, for its hooks: `online NAME` or `offline NAME` a line.
pub const INTERFACES: &str = "interfaces";
/// It is there: what dracut's network modules mount waits for the verdict.
pub const HOLD: &str = "hold";
/// The word that dracut's hooks read: [`Outcome`].
pub const RESULT: &str = "result";

/// The kernel's id of this boot (random(4)).
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Largest file of ours that is read back: 4,096 ports take about 4 MiB.
const FILE_MAX: u64 = 16 << 20;

/// Of a file that is not understood a message shows at most this much.
const SHOWN_CHARS: usize = 200;

/// What dracut's hooks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All that is required is verified.
    Verified,
    /// The deadline passed or the wish is impossible; boot on.
    Continue,
    /// The same; emergency shell.
    Shell,
    /// The same; reboot.
    Reboot,
}

impl Outcome {
    /// The first line of the result file.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Verified => "verified",
            Outcome::Continue => "failed continue",
            Outcome::Shell => "failed shell",
            Outcome::Reboot => "failed reboot",
        }
    }
}

/// One link as it was handed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Node GUID, with the port the key inside one boot; none where the device has none.
    pub node_guid: Option<Guid>,
    /// Port number, from 1.
    pub port: u32,
    /// RDMA device name at that time; udev may rename it later.
    pub ifname: String,
    /// GUID of the port, the last 8 bytes of an IPoIB address.
    pub port_guid: Option<Guid>,
    /// PCI address of the HCA; none for Soft-RoCE.
    pub pci: Option<String>,
    /// InfiniBand or Ethernet.
    pub link_layer: Option<LinkLayer>,
    /// Rate as sysfs spells it.
    pub rate: Option<String>,
    /// The netdev bound to the port (RoCE, Soft-RoCE).
    pub netdev: Option<String>,
    /// The argument that asked for it; none where any port would do.
    pub asked_by: Option<Origin>,
    /// Whether the boot depended on it.
    pub required: bool,
    /// All checks passed.
    pub verified: bool,
    /// When they passed first, ns since kernel start.
    pub verified_ns: Option<u64>,
}

/// `/run/ibboot/state.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the program that wrote it.
    pub ibboot: String,
    /// The kernel's boot id: files of another boot mean nothing.
    pub boot_id: Option<String>,
    /// What dracut's hooks were told.
    pub outcome: Outcome,
    /// Why it failed, one line.
    pub reason: Option<String>,
    /// Who owns the interfaces from now on, where `rd.ib.handover=` says so: its word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<String>,
    /// The links, in the order they were asked for.
    pub links: Vec<Link>,
    /// What DHCP servers granted, and where none did how far it came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dhcp: Vec<Progress>,
    /// The same of DHCPv6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dhcp6: Vec<dhcp6::progress::Progress>,
    /// What DHCPv6 servers said of name servers where the address is a router's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub information: Vec<dhcp6::information::Progress>,
    /// Kernel modules that could not be loaded, one line each.
    pub failures: Vec<String>,
    /// Where the time went.
    pub marks: Vec<Mark>,
}

/// A directory below /run (or of the initramfs), held open: later path changes do not lead a write elsewhere.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: String,
}

/// What stands where a file is to be.
#[derive(Debug)]
pub enum Standing {
    /// Nothing.
    Nothing,
    /// A regular file of root's or ours.
    Ours(Vec<u8>),
    /// A link, or what is no such file: why it is not believed.
    Planted(Error),
}

const OPEN: OFlag = OFlag::O_DIRECTORY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

impl Directory {
    /// `/run/ibboot`, as [`Directory::below_run`].
    pub fn open() -> Result<Directory> {
        Directory::below_run("ibboot")
    }

    /// Makes (0755) or opens `/run/PATH`, one name after another; refuses links and what somebody
    /// else can write to.
    pub fn below_run(path: &str) -> Result<Directory> {
        let run = nix::fcntl::open("/run", OPEN, Mode::empty())
            .map_err(|errno| Error::new("/run", "cannot be opened").seen(errno.desc()))?;
        let mut directory = Directory {
            fd: run,
            path: "/run".to_owned(),
        };
        for name in path.split('/') {
            directory = directory.below(name)?;
        }
        Ok(directory)
    }

    /// Opens a directory of the initramfs; where everybody may make files in it, nobody else may
    /// rename ours (the sticky bit).
    pub fn existing(path: &str) -> Result<Directory> {
        let cannot = |errno: Errno| Error::new(path, "cannot be opened").seen(errno.desc());
        let fd = nix::fcntl::open(path, OPEN, Mode::empty()).map_err(cannot)?;
        let sticky = fstat(&fd).map_err(cannot)?.st_mode & 0o1000 != 0;
        let others = if sticky { 0 } else { 0o022 };
        let path = path.to_owned();
        Directory { fd, path }.checked(others)
    }

    /// Refuses a directory of somebody else, and one with any of the permissions in `others`.
    fn checked(self, others: u32) -> Result<Directory> {
        let stat = fstat(&self.fd).map_err(|errno| self.failed("", "cannot be opened", errno))?;
        if stat.st_uid != geteuid().as_raw() || stat.st_mode & others != 0 {
            return Err(Error::new(self.path, "is not safe to write to")
                .seen(format!(
                    "owner {}, mode {:o}",
                    stat.st_uid,
                    stat.st_mode & 0o7777
                ))
                .wanted("own directory that nobody else can write"));
        }
        Ok(self)
    }

    fn below(self, name: &str) -> Result<Directory> {
        match mkdirat(&self.fd, name, Mode::from_bits_truncate(0o755)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(self.failed(name, "cannot be made", errno)),
        }
        let cannot = |errno| self.failed(name, "cannot be opened", errno);
        let fd = openat(&self.fd, name, OPEN, Mode::empty()).map_err(cannot)?;
        let path = format!("{}/{name}", self.path);
        Directory { fd, path }.checked(0o022)
    }

    fn failed(&self, name: &str, what: &str, errno: Errno) -> Error {
        let path = format!("{}/{name}", self.path);
        Error::new(path.trim_end_matches('/'), what).seen(errno.desc())
    }

    /// Replaces `name` (0644) by `content` in one step.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        self.write_as(name, content, 0o644)
    }

    /// Replaces [`STATE`].
    pub fn write_state(&self, state: &State) -> Result<()> {
        self.write_as(STATE, json(state)?.as_bytes(), STATE_MODE)
    }

    /// Replaces `name` by `content` in one step, with these permissions.
    pub fn write_as(&self, name: &str, content: &[u8], mode: u32) -> Result<()> {
        self.sweep(name);
        let mode = Mode::from_bits_truncate(mode);
        let temporary = format!(".{name}.{}", std::process::id());
        let fail = |errno| self.failed(name, "cannot be written", errno);
        let create = || {
            openat(
                &self.fd,
                temporary.as_str(),
                OFlag::O_WRONLY
                    | OFlag::O_CREAT
                    | OFlag::O_EXCL
                    | OFlag::O_NOFOLLOW
                    | OFlag::O_CLOEXEC,
                mode,
            )
        };
        let file = match create() {
            // Left by a killed process that had our number.
            Err(Errno::EEXIST) => {
                unlinkat(&self.fd, temporary.as_str(), UnlinkatFlags::NoRemoveDir).map_err(fail)?;
                create()
            }
            other => other,
        }
        .map_err(fail)?;
        let written = fchmod(&file, mode)
            .map_err(io::Error::from)
            .and_then(|()| File::from(file).write_all(content))
            .and_then(|()| {
                renameat(&self.fd, temporary.as_str(), &self.fd, name).map_err(io::Error::from)
            });
        if let Err(error) = written {
            if let Err(errno) = unlinkat(&self.fd, temporary.as_str(), UnlinkatFlags::NoRemoveDir) {
                log::debug!(
                    "{}/{temporary}: cannot be removed: {}",
                    self.path,
                    errno.desc()
                );
            }
            return Err(Error::io(
                format!("{}/{name}", self.path),
                "cannot be written",
                &error,
            ));
        }
        Ok(())
    }

    /// Removes what processes left that were killed while they wrote `name`. A number that a process
    /// has again stays until that one has ended.
    fn sweep(&self, name: &str) {
        let prefix = format!(".{name}.");
        let entries = std::fs::read_dir(&self.path).into_iter().flatten();
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        for left in names {
            let writer = left.strip_prefix(&prefix).and_then(|pid| pid.parse().ok());
            let is_dead = |pid: i32| pid > 0 && kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
            if writer.is_some_and(is_dead)
                && let Err(error) = self.remove(&left)
            {
                log::debug!("{error}");
            }
        }
    }

    /// Removes `name`; not there is success.
    pub fn remove(&self, name: &str) -> Result<()> {
        match unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(self.failed(name, "cannot be removed", errno)),
        }
    }

    /// Removes the files whose text is `unwanted`. What cannot be read stays.
    pub fn remove_if(&self, unwanted: impl Fn(&str) -> bool) -> Result<()> {
        let names = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries.flatten().map(|entry| entry.file_name()),
            Err(e) => return Err(Error::io(&self.path, "cannot be read", &e)),
        };
        for name in names.filter_map(|name| name.into_string().ok()) {
            let Ok(Some(bytes)) = self.read(&name) else {
                continue;
            };
            if unwanted(&String::from_utf8_lossy(&bytes)) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Reads `name`: a regular file of root's or ours, `None` if it is not there.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.read_of(name, geteuid())
    }

    /// The same, of root's or of `owner`'s.
    fn read_of(&self, name: &str, owner: Uid) -> Result<Option<Vec<u8>>> {
        match self.standing(name, owner)? {
            Standing::Nothing => Ok(None),
            Standing::Ours(bytes) => Ok(Some(bytes)),
            Standing::Planted(error) => Err(error),
        }
    }

    /// What stands there as `name`. An error: nobody knows.
    pub fn look_at(&self, name: &str) -> Result<Standing> {
        self.standing(name, geteuid())
    }

    /// The same where root or `owner` may own the file.
    fn standing(&self, name: &str, owner: Uid) -> Result<Standing> {
        let fail = |errno| self.failed(name, "cannot be read", errno);
        // O_NONBLOCK: a planted fifo must not hold us.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let fd = match openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(Standing::Nothing),
            Err(Errno::ELOOP) => return Ok(Standing::Planted(fail(Errno::ELOOP))),
            Err(errno) => return Err(fail(errno)),
        };
        let stat = fstat(&fd).map_err(fail)?;
        let regular = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG;
        if !regular || (stat.st_uid != 0 && stat.st_uid != owner.as_raw()) {
            let error = Error::new(format!("{}/{name}", self.path), "is not believed")
                .seen(format!("owner {}, mode {:o}", stat.st_uid, stat.st_mode))
                .wanted("a regular file of root");
            return Ok(Standing::Planted(error));
        }
        let mut bytes = Vec::new();
        File::from(fd)
            .take(FILE_MAX)
            .read_to_end(&mut bytes)
            .map_err(|e| Error::io(format!("{}/{name}", self.path), "cannot be read", &e))?;
        Ok(Standing::Ours(bytes))
    }
}

/// Writes what another program is told.
pub fn tell(file: &peers::File) -> Result<()> {
    Directory::below_run(file.directory)?.write_as(&file.name, file.text.as_bytes(), file.mode)
}

/// Pretty JSON with a newline at its end. What is not plain can only stand in a string: it is written
/// as `\uNNNN` (RFC 8259 7).
pub fn json<T: Serialize>(value: &T) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::new("JSON", "cannot be written").seen(e.to_string()))?;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || is_plain(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    Ok(out + "\n")
}

/// The bytes of a file of ours, on the machine with all care, in a fixture tree plainly.
fn bytes_of(root: &Root, name: &str) -> Result<Option<Vec<u8>>> {
    if root.is_live() {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_PATH;
        return match nix::fcntl::open(DIRECTORY, flags, Mode::empty()) {
            Ok(fd) => {
                let path = DIRECTORY.to_owned();
                let bytes = Directory { fd, path }.read(name)?;
                if let Some(bytes) = &bytes {
                    root.remember_file(&format!("{DIRECTORY}/{name}"), bytes);
                }
                Ok(bytes)
            }
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(Error::new(DIRECTORY, "cannot be opened").seen(errno.desc())),
        };
    }
    bytes_in_tree(root, name)
}

/// The bytes of a file of ours in a fixture tree.
fn bytes_in_tree(root: &Root, name: &str) -> Result<Option<Vec<u8>>> {
    match root.read(&format!("{DIRECTORY}/{name}")) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(
            format!("{DIRECTORY}/{name}"),
            "cannot be read",
            &e,
        )),
    }
}

/// What files of all versions have.
#[derive(Deserialize)]
struct Stamp {
    schema: u32,
}

/// Files that carry the boot they belong to.
pub trait Stamped: DeserializeOwned {
    /// The kernel's boot id.
    fn boot_id(&self) -> Option<&str>;
}

impl Stamped for State {
    fn boot_id(&self) -> Option<&str> {
        self.boot_id.as_deref()
    }
}

impl Stamped for Expectation {
    fn boot_id(&self) -> Option<&str> {
        self.boot_id.as_deref()
    }
}

impl Stamped for Report {
    fn boot_id(&self) -> Option<&str> {
        self.boot_id.as_deref()
    }
}

/// Reads a file of this boot.
fn read<T: Stamped>(root: &Root, name: &str) -> Result<Option<T>> {
    let Some(bytes) = bytes_of(root, name)? else {
        return Ok(None);
    };
    parse(name, &bytes, this_boot(root)?.as_deref()).map(Some)
}

/// As [`boot_id`]; one that cannot be read is an error.
fn this_boot(root: &Root) -> Result<Option<String>> {
    match root.text(BOOT_ID) {
        Ok(id) => Ok(Some(id)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(BOOT_ID, "cannot be read", &e).kind(Kind::Unknown)),
    }
}

/// The bytes of file `name` as a file of the boot `boot_id`. One of another boot, of a newer schema or
/// that does not parse is an error of kind `Unknown`.
pub fn parse<T: Stamped>(name: &str, bytes: &[u8], boot_id: Option<&str>) -> Result<T> {
    let path = format!("{DIRECTORY}/{name}");
    let garbled = |e: serde_json::Error| {
        Error::new(&path, "does not parse")
            .seen(shown(&e.to_string()))
            .kind(Kind::Unknown)
    };
    // First of all: another version may well have another shape.
    let Stamp { schema } = serde_json::from_slice(bytes).map_err(garbled)?;
    if schema > SCHEMA {
        return Err(Error::new(&path, "has another schema")
            .seen(schema.to_string())
            .wanted(SCHEMA.to_string())
            .hint("use the ibboot of the same version as in the initramfs")
            .kind(Kind::Unknown));
    }
    let value: T = serde_json::from_slice(bytes).map_err(garbled)?;
    if value.boot_id() != boot_id {
        return Err(Error::new(&path, "is of another boot")
            .seen(shown(value.boot_id().unwrap_or("no boot id")))
            .wanted(boot_id.unwrap_or("no boot id"))
            .kind(Kind::Unknown));
    }
    Ok(value)
}

/// As much of what stands in a file as a line about it needs.
fn shown(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    let cut = if shown.len() < text.len() { "..." } else { "" };
    format!("{shown}{cut}")
}

/// The kernel's id of this boot.
pub fn boot_id(root: &Root) -> Option<String> {
    root.text(BOOT_ID).ok()
}

/// What was handed over in this boot, if anything.
pub fn read_state(root: &Root) -> Result<Option<State>> {
    read(root, STATE)
}

/// The same for a service with a user of its own, to which the service manager gives the file
/// (`LoadCredential=`, systemd.exec(5)): a root path in it may have a password, so root alone reads it.
pub fn state_for_service(root: &Root) -> Result<Option<State>> {
    let Some(directory) = std::env::var_os("CREDENTIALS_DIRECTORY") else {
        return read_state(root);
    };
    let path = std::path::Path::new(&directory).join(STATE);
    match std::fs::read(&path) {
        Ok(bytes) => parse(STATE, &bytes, boot_id(root).as_deref()).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => read_state(root),
        Err(e) => Err(Error::io(path.display(), "cannot be read", &e)),
    }
}

/// What DHCP servers granted in this boot.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    /// Those of IPv4.
    pub dhcp: Vec<Progress>,
    /// Those of IPv6.
    pub dhcp6: Vec<dhcp6::progress::Progress>,
}

/// What DHCP servers granted in this boot, as `ibboot lease` keeps it where that has run.
pub fn leases(root: &Root) -> Result<Leases> {
    let mut kept = read_kept(root)?.unwrap_or_else(|| Kept::new(None));
    if let Some(state) = read_state(root)? {
        kept.join(&state);
    }
    Ok(Leases {
        dhcp: kept.dhcp,
        dhcp6: kept.dhcp6,
    })
}

/// What is expected in this boot, if anything.
pub fn read_expected(root: &Root) -> Result<Option<Expectation>> {
    read(root, EXPECTED)
}

/// The last recorded check of this boot, if any.
pub fn read_check(root: &Root) -> Result<Option<Report>> {
    read(root, CHECK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOOT: &str = "7f3c1d0e-5b6a-4c1e-9d2f-0a1b2c3d4e5f";
    const SAVED: [&str; 3] = [
        include_str!(
            "../tests/cases/194-lease-holds-and-its-address-is-gone/tree/run/ibboot/state.json"
        ),
        include_str!("../tests/cases/231-lease6-holds/tree/run/ibboot/state.json"),
        include_str!("../tests/cases/80-timeline/tree/run/ibboot/state.json"),
    ];

    fn state(bytes: &[u8]) -> Result<State> {
        parse(STATE, bytes, Some(BOOT))
    }

    /// Whatever is in the file, it is believed or one short line.
    fn answered(bytes: &[u8]) {
        for error in [
            state(bytes).err(),
            parse::<Expectation>(EXPECTED, bytes, Some(BOOT)).err(),
            parse::<Report>(CHECK, bytes, Some(BOOT)).err(),
        ]
        .into_iter()
        .flatten()
        {
            let line = error.to_string();
            assert!(line.starts_with("/run/ibboot/"), "{line}");
            assert!(
                line.len() < 2000 && !line.chars().any(char::is_control),
                "{line}"
            );
            assert_eq!(error.kind, Kind::Unknown);
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_one_line() {
        let whole = SAVED[0].trim_end();
        for length in 0..whole.len() {
            answered(&whole.as_bytes()[..length]);
            assert!(state(&whole.as_bytes()[..length]).is_err(), "{length}");
        }
        assert!(state(whole.as_bytes()).is_ok());
    }

    #[test]
    fn what_is_planted_does_not_fill_the_screen() {
        let long = "x".repeat(1 << 20);
        let planted = format!(r#"{{"schema":1,"boot_id":"{long}"}}"#);
        let outcome = SAVED[0].replace("\"continue\"", &format!("\"{long}\""));
        let other = SAVED[0].replace(BOOT, &long);
        for text in [planted, outcome, other, "[".repeat(1 << 20)] {
            answered(text.as_bytes());
        }
        let said = state(SAVED[0].replace(BOOT, &long).as_bytes()).unwrap_err();
        assert_eq!(
            said.to_string(),
            format!(
                "/run/ibboot/state.json: is of another boot: {}..., wanted {BOOT}",
                "x".repeat(200)
            )
        );
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_json_without_a_raw_control(text in ".*|[\\p{Cf}\\p{Cc}\\p{Co}]*") {
            let written = json(&text).unwrap();
            let line = written.strip_suffix('\n').unwrap();
            prop_assert!(line.chars().all(is_plain), "{}", line);
            prop_assert_eq!(serde_json::from_str::<String>(line).unwrap(), text);
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            answered(&bytes);
            prop_assert!(state(&bytes).is_err());
        }

        #[test]
        fn any_flipped_byte_is_answered(which in 0..SAVED.len(), at: prop::sample::Index, with: u8) {
            let mut bytes = SAVED[which].as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= with;
            answered(&bytes);
            if let Ok(read) = state(&bytes) {
                prop_assert_eq!(state(json(&read).unwrap().as_bytes()), Ok(read));
            }
        }
    }
}
