// SPDX-License-Identifier: MIT OR Apache-2.0
//! What survives switch_root: the files of /run/ibboot. Rendering is pure; writing is atomic,
//! follows no link and leaves either the old file or the new one.

mod leases;

pub mod dracut;
pub mod peers;
pub mod saved;
pub mod timeline;

use std::io;

use kernel_cmdline::is_plain;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dhcp::v4::progress::Progress;
use crate::error::{Error, Kind, Result};
use crate::facts::Leases;
use crate::rdma::types::{Guid, LinkLayer};
use crate::request::{OnFailure, Request};
use crate::system::directory::Directory;
use crate::system::root::{BOOT_ID, Root};
use crate::verify::report::Report;
use crate::wish::expectation::Expectation;
use crate::wish::origin::Origin;
use crate::{SCHEMA, dhcp};

pub use leases::{Entry, KEPT, Kept, Leases as LeaseDirectory, read as read_kept};

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
/// It is there: something is requested. What the hooks do in place of an `up` that dies or hangs: [`asked`].
pub const ASKED: &str = "asked";
/// The word that dracut's hooks read: [`Outcome`].
pub const RESULT: &str = "result";

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

impl From<OnFailure> for Outcome {
    fn from(onfail: OnFailure) -> Outcome {
        match onfail {
            OnFailure::Shell => Outcome::Shell,
            OnFailure::Reboot => Outcome::Reboot,
            OnFailure::Continue | OnFailure::Dracut => Outcome::Continue,
        }
    }
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

    /// The outcome whose first line of the result file this is.
    pub fn of_word(word: &str) -> Option<Outcome> {
        let all = [
            Outcome::Verified,
            Outcome::Continue,
            Outcome::Shell,
            Outcome::Reboot,
        ];
        all.into_iter().find(|outcome| outcome.word() == word)
    }
}

/// The text of [`ASKED`]: what follows a failure (`shell`, `continue` or `reboot`), and the deadline in seconds, a line
/// each.
pub fn asked(request: &Request) -> String {
    let onfail = match request.onfail {
        OnFailure::Shell => "shell",
        OnFailure::Reboot => "reboot",
        OnFailure::Continue | OnFailure::Dracut => "continue",
    };
    format!("{onfail}\n{}\n", request.timeout.as_secs())
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
    pub dhcp6: Vec<dhcp::v6::progress::Progress>,
    /// What DHCPv6 servers said of name servers where the address is a router's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub information: Vec<dhcp::v6::information::Progress>,
    /// Kernel modules that could not be loaded, one line each.
    pub failures: Vec<String>,
    /// Where the time went.
    pub marks: Vec<Mark>,
}

/// Writes what another program is told.
pub fn tell(file: &peers::File) -> Result<()> {
    Directory::below_run(file.directory)?.write_as(&file.name, file.text.as_bytes(), file.mode)
}

/// Replaces [`STATE`].
pub fn write_state(directory: &Directory, state: &State) -> Result<()> {
    directory.write_as(STATE, json(state)?.as_bytes(), STATE_MODE)
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
        // The unit gives nothing where there is no such file.
        Ok(bytes) if bytes.is_empty() => Ok(None),
        Ok(bytes) => parse(STATE, &bytes, root.boot_id().as_deref()).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => read_state(root),
        Err(e) => Err(Error::io(path.display(), "cannot be read", &e)),
    }
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

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The kernel started: zero of the clock.
    KernelStart,
    /// `ibboot up` started.
    Started,
    /// A kernel module was loaded; a span.
    Driver,
    /// An RDMA device was seen.
    DeviceSeen,
    /// A port was seen ACTIVE.
    PortActive,
    /// DHCP, from carrier to the granted address; a span.
    Lease,
    /// DHCPv6, from its first message to the granted address; a span.
    Lease6,
    /// All checks of a link passed.
    Verified,
    /// A server answered over RDMA.
    ServerAnswered,
    /// The state was handed over and the boot let go on.
    HandedOver,
    /// `ibboot check` looked again in the real root.
    CheckedAfterBoot,
}

/// A moment, or a span where `end_ns` is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// What happened.
    pub phase: Phase,
    /// To what: a module, `mlx5_0/1`; empty for the whole.
    pub object: String,
    /// ns since kernel start.
    pub start_ns: u64,
    /// ns since kernel start.
    pub end_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOOT: &str = "7f3c1d0e-5b6a-4c1e-9d2f-0a1b2c3d4e5f";
    const SAVED: [&str; 3] = [
        include_str!(
            "../../tests/cases/dhcp/holds-and-its-address-is-gone/tree/run/ibboot/state.json"
        ),
        include_str!("../../tests/cases/dhcp6/holds/tree/run/ibboot/state.json"),
        include_str!("../../tests/cases/output/timeline/tree/run/ibboot/state.json"),
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
                "/run/ibboot/state.json: is of another boot: {}..., expected {BOOT}",
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
