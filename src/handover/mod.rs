// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of /run/ibboot, which survive switch_root. Rendering is pure; a write is atomic,
//! follows no link and leaves either the old file or the new file.

pub(crate) mod leases;

pub mod dracut;
pub mod gauges;
pub mod peers;
pub mod resolver;
pub mod timeline;

use std::io;

use kernel_cmdline::{Handover, is_plain};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dhcp::v4::progress::Progress;
use crate::error::{Error, Kind, Result};
use crate::facts::{Leases, Renewer};
use crate::rdma::types::{Guid, LinkLayer};
use crate::request::{OnFailure, Request};
use crate::system::BOOT_ID;
use crate::system::directory::Directory;
use crate::system::root::Root;
use crate::verify::checks::Awaits;
use crate::verify::report::Report;
use crate::wish::expectation::Expectation;
use crate::wish::origin::Origin;
use crate::{SCHEMA, dhcp};

pub use leases::{Entry, KEPT, Kept, Leases as LeaseDirectory, read as read_kept};

/// The directory, in the initramfs and in the real root.
pub const DIRECTORY: &str = "/run/ibboot";
/// The links that were brought up and verified: [`State`].
pub const STATE: &str = "state.json";
/// File mode of [`STATE`]: only root reads the answers of DHCP servers. Secrets are left out when the file is
/// written (`redact`); the mode is a second barrier. All users may read the other files (0644).
pub const STATE_MODE: u32 = 0o600;
/// The expectation of `ibboot check`: [`Expectation`].
pub const EXPECTED: &str = "expected.json";
/// The first recorded `ibboot check` of a boot: [`Report`].
pub const CHECK: &str = "check.json";
/// The interfaces that dracut's hooks report to dracut: a line `online NAME` or `offline NAME`
/// each.
pub const INTERFACES: &str = "interfaces";
/// While this file exists, dracut's netroot waits for the verdict.
pub const HOLD: &str = "hold";
/// While these files exist, dracut's queue does not wait for systemd-networkd-wait-online or for
/// nm-wait-online-initrd, which would wait in vain (networkd-wait-online.conf, nm-wait-online.conf).
pub const ALONE: [&str; 2] = ["alone", "alone-nm"];
/// Exists if a link or network is requested. Tells the hooks what to do if `up` dies or hangs:
/// [`what_hooks_do`].
pub const REQUESTED: &str = "requested";
/// File that says that dracut's hooks have completed the command line.
pub const COMPLETE: &str = "/run/ibboot/complete";
/// The verdict that dracut's hooks read: [`Outcome`].
pub const RESULT: &str = "result";

/// A message shows at most this many characters of an unreadable file.
const SHOWN_CHARS: usize = 200;

/// The verdict for dracut's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All required links are verified.
    Verified,
    /// The deadline passed or the request is impossible: continue the boot.
    Continue,
    /// As `Continue`, but start the emergency shell.
    Shell,
    /// As `Continue`, but reboot.
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
    /// Every outcome.
    pub const ALL: [Outcome; 4] = [
        Outcome::Verified,
        Outcome::Continue,
        Outcome::Shell,
        Outcome::Reboot,
    ];

    /// The first line of the result file.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Verified => "verified",
            Outcome::Continue => "failed continue",
            Outcome::Shell => "failed shell",
            Outcome::Reboot => "failed reboot",
        }
    }

    /// The outcome for the first line of the result file.
    pub fn of_word(word: &str) -> Option<Outcome> {
        let mut all = Outcome::ALL.into_iter();
        all.find(|outcome| outcome.word() == word)
    }
}

/// The text of [`REQUESTED`]: the action after a failure (`shell`, `continue` or `reboot`), the deadline
/// in seconds and the word of `rd.ib.handover=`, one per line.
fn what_hooks_do(request: &Request) -> String {
    // A hook writes `failed` in front of it.
    let onfail = Outcome::from(request.onfail).word();
    let onfail = onfail.trim_start_matches("failed ");
    let to = request.handover.as_ref();
    let to = to.map_or(Handover::Auto, |to| to.value);
    format!("{onfail}\n{}\n{to}\n", request.timeout.as_secs())
}

/// Writes [`REQUESTED`].
pub fn write_requested(request: &Request) -> Result<()> {
    Directory::open()?.write(REQUESTED, what_hooks_do(request).as_bytes())
}

/// One link at the time of the handover.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Node GUID, which together with the port is the key inside one boot; none if the device has
    /// no node GUID.
    pub node_guid: Option<Guid>,
    /// Port number, from 1.
    pub port: u32,
    /// RDMA device name at the handover; udev may rename the device later.
    pub ifname: String,
    /// GUID of the port: the last 8 bytes of an IPoIB address.
    pub port_guid: Option<Guid>,
    /// PCI address of the HCA; none for Soft-RoCE.
    pub pci: Option<String>,
    /// InfiniBand or Ethernet.
    pub link_layer: Option<LinkLayer>,
    /// Rate in the spelling of sysfs.
    pub rate: Option<String>,
    /// The network device attached to the port (RoCE, Soft-RoCE).
    pub netdev: Option<String>,
    /// The argument that requested the link; none if any port was accepted.
    pub requested_by: Option<Origin>,
    /// Whether the boot requires the link.
    pub required: bool,
    /// Every check passed or only warned.
    pub verified: bool,
    /// Time when the link was verified first, ns since kernel start.
    pub verified_ns: Option<u64>,
}

/// An RDMA device that does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silent {
    pub ifname: String,
    /// Time of the request without an answer, ns since kernel start.
    pub since_ns: u64,
}

/// `/run/ibboot/state.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the ibboot that wrote the file.
    pub ibboot: String,
    /// The kernel's boot id: files of another boot are not valid.
    pub boot_id: Option<String>,
    /// The verdict for dracut's hooks.
    pub outcome: Outcome,
    /// Reason of the failure, one line.
    pub reason: Option<String>,
    /// The program that owns the interfaces from now on: the value of `rd.ib.handover=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Handover>,
    /// The links, in the order of the requests.
    pub links: Vec<Link>,
    /// DHCP leases, or the progress of DHCP without a lease.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dhcp: Vec<Progress>,
    /// DHCPv6 leases, or the progress of DHCPv6 without a lease.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dhcp6: Vec<dhcp::v6::progress::Progress>,
    /// Name servers from DHCPv6, if the address comes from a router.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub information: Vec<dhcp::v6::information::Progress>,
    /// RDMA devices that did not answer at the verdict: nothing of the boot reads them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<Silent>,
    /// Refused requests, invalid arguments and steps that failed, one line each.
    pub failures: Vec<String>,
    /// Times of the boot.
    pub marks: Vec<Mark>,
}

/// Writes a file for another program.
pub fn write_for(file: &peers::File) -> Result<()> {
    Directory::below(file.top, file.directory)?.write_as(
        &file.name,
        file.text.as_bytes(),
        file.mode,
    )
}

/// Replaces [`STATE`].
pub fn write_state(directory: &Directory, state: &State) -> Result<()> {
    directory.write_as(STATE, json(state)?.as_bytes(), STATE_MODE)
}

/// Pretty JSON with a newline at its end. Non-plain characters occur only in strings: they are
/// written as `\uNNNN` (RFC 8259 7).
pub fn json<T: Serialize>(value: &T) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::new("JSON", "cannot be written").found(e.to_string()))?;
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

/// Reads a file of /run/ibboot: with ownership checks on the machine, as a plain file in a saved
/// tree.
fn bytes_of(root: &Root, name: &str) -> Result<Option<Vec<u8>>> {
    if root.is_live() {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_PATH;
        return match nix::fcntl::open(DIRECTORY, flags, Mode::empty()) {
            Ok(fd) => {
                let path = format!("{DIRECTORY}/{name}");
                let read = Directory::of(fd, DIRECTORY.to_owned()).read(name);
                match &read {
                    Ok(Some(bytes)) => root.remember_file(&path, bytes),
                    Ok(None) => {}
                    Err(error) => root.remember_failure(&path, error),
                }
                read
            }
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(Error::new(DIRECTORY, "cannot be opened").found(errno.desc())),
        };
    }
    bytes_in_tree(root, name)
}

/// Reads a file of /run/ibboot in a saved tree.
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

/// The fields that every version has.
#[derive(Deserialize)]
struct Stamp {
    schema: u32,
    #[serde(default)]
    boot_id: serde_json::Value,
}

impl Stamp {
    /// Whether the file is of the boot `boot_id`; none: the kernel shows no id.
    fn is_of(&self, boot_id: Option<&str>) -> Result<bool> {
        match boot_id {
            _ if self.boot_id.as_str() == boot_id => Ok(true),
            Some(_) => Ok(false),
            None => Err(Error::new(BOOT_ID, "cannot be read")
                .found(Errno::ENOENT.desc())
                .hint("let this process see all of /proc: ProcSubset=all in a unit")
                .kind(Kind::Unknown)),
        }
    }
}

/// Reads a file of this boot. A file that cannot be used is an error of kind `Unknown`.
fn read<T: DeserializeOwned>(root: &Root, name: &str) -> Result<Option<T>> {
    let Some(bytes) = bytes_of(root, name).map_err(|error| error.kind(Kind::Unknown))? else {
        return Ok(None);
    };
    parse(name, &bytes, this_boot(root)?.as_deref()).map(Some)
}

/// The id of this boot, if the kernel shows one; an unreadable id is an error.
fn this_boot(root: &Root) -> Result<Option<String>> {
    match root.constant(BOOT_ID) {
        Ok(id) => Ok(Some(id)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(BOOT_ID, "cannot be read", &e).kind(Kind::Unknown)),
    }
}

/// Parses the bytes of file `name`, which must belong to the boot `boot_id`. A file of another
/// boot, of a newer schema or with a syntax error is an error of kind `Unknown`.
pub fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8], boot_id: Option<&str>) -> Result<T> {
    let path = format!("{DIRECTORY}/{name}");
    // Read the schema first: another version may have another format.
    let stamp: Stamp = parsed(&path, bytes)?;
    if stamp.schema > SCHEMA {
        let what = format!("has schema {}, newer than {SCHEMA}", stamp.schema);
        return Err(Error::new(&path, what)
            .hint("update ibboot to the version in the initramfs or later")
            .kind(Kind::Unknown));
    }
    let value: T = parsed(&path, bytes)?;
    if !stamp.is_of(boot_id)? {
        return Err(Error::new(&path, "belongs to another boot")
            .found(shown(stamp.boot_id.as_str().unwrap_or("no boot id")))
            .expected(boot_id.unwrap_or("no boot id"))
            .kind(Kind::Unknown));
    }
    Ok(value)
}

fn parsed<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::new(path, "does not parse")
            .found(shown(&error.to_string()))
            .kind(Kind::Unknown)
    })
}

/// The beginning of a file's text, for an error message.
fn shown(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    let cut = if shown.len() < text.len() { "..." } else { "" };
    format!("{shown}{cut}")
}

/// The state that was handed over in this boot, if any.
pub fn read_state(root: &Root) -> Result<Option<State>> {
    read(root, STATE)
}

/// Like [`read_state`], for a service with its own user, which gets the file from the service
/// manager (`LoadCredential=`, systemd.exec(5)): only root can read the file ([`STATE_MODE`]).
pub fn state_for_service(root: &Root) -> Result<Option<State>> {
    let Some(directory) = std::env::var_os("CREDENTIALS_DIRECTORY") else {
        return read_state(root);
    };
    let path = std::path::Path::new(&directory).join(STATE);
    match std::fs::read(&path) {
        // The unit passes a line without text if the file does not exist: systemd ignores
        // `SetCredential=` with an empty value.
        Ok(bytes) if bytes.trim_ascii().is_empty() => Ok(None),
        Ok(bytes) => parse(STATE, &bytes, this_boot(root)?.as_deref()).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => read_state(root),
        Err(e) => Err(Error::io(path.display(), "cannot be read", &e).kind(Kind::Unknown)),
    }
}

/// The leases of DHCP servers in this boot, in the state of `ibboot lease` if that has run.
pub fn leases(root: &Root) -> Result<Leases> {
    let (kept, state) = (read_kept(root)?, read_state(root)?);
    let has_keeper = kept.is_some() || leases::was_started(root)?;
    let renewer = renewer(state.as_ref(), has_keeper);
    let mut kept = kept.unwrap_or_else(|| Kept::new(None));
    if let Some(state) = &state {
        kept.join(state);
    }
    Ok(Leases {
        dhcp: kept.dhcp,
        dhcp6: kept.dhcp6,
        renewer,
    })
}

/// Who renews the leases of this state; `has_keeper`: `ibboot lease` was started in this boot.
fn renewer(state: Option<&State>, has_keeper: bool) -> Option<Renewer> {
    match state.map(|state| state.handover) {
        Some(Some(Handover::Nm)) => Some(Renewer::Owner("NetworkManager")),
        Some(Some(Handover::Networkd)) => Some(Renewer::Owner("systemd-networkd")),
        Some(_) if !has_keeper => Some(Renewer::Nobody),
        _ => has_keeper.then_some(Renewer::Keeper),
    }
}

/// The expectation of this boot, if any.
pub fn read_expected(root: &Root) -> Result<Option<Expectation>> {
    read(root, EXPECTED)
}

/// The first recorded check of this boot, if any.
pub fn read_check(root: &Root) -> Result<Option<Report>> {
    read(root, CHECK)
}

/// Whether a check of this boot is recorded, by whatever version of this program.
pub fn has_check(root: &Root) -> Result<bool> {
    let Some(bytes) = bytes_of(root, CHECK)? else {
        return Ok(false);
    };
    let stamp: Stamp = parsed(&format!("{DIRECTORY}/{CHECK}"), &bytes)?;
    stamp.is_of(this_boot(root)?.as_deref())
}

/// A phase of the boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The kernel started: zero of the clock.
    #[default]
    KernelStart,
    /// `ibboot up` started.
    Started,
    /// dracut's cmdline hooks completed the command line after the start of `ibboot up`; a span.
    Hooks,
    /// A kernel module was loaded; a span.
    Driver,
    /// A link or a server was not verified yet, for one reason; a span.
    Wait,
    /// An RDMA device was found.
    DeviceFound,
    /// A port was found ACTIVE.
    PortActive,
    /// DHCP, from carrier to the granted address; a span.
    Lease,
    /// DHCPv6, from its first message to the granted address; a span.
    Lease6,
    /// Every check of a link passed or only warned.
    Verified,
    /// A server answered over RDMA.
    ServerAnswered,
    /// The state was handed over, and the boot continues.
    HandedOver,
    /// `ibboot check` checked the links in the real root.
    CheckedAfterBoot,
}

/// A point in time, or a span if `end_ns` is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The phase of the boot.
    pub phase: Phase,
    /// Object of the phase: a module, `mlx5_0/1`; empty for the whole boot.
    pub object: String,
    /// Start, ns since kernel start.
    pub start_ns: u64,
    /// End, ns since kernel start.
    pub end_ns: Option<u64>,
    /// What a wait was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaited: Option<Awaits>,
    /// The wait of a link that the boot did not need.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOOT: &str = "7f3c1d0e-5b6a-4c1e-9d2f-0a1b2c3d4e5f";
    const SAVED: [&str; 4] = [
        include_str!(
            "../../tests/cases/dhcp/holds-and-its-address-is-gone/tree/run/ibboot/state.json"
        ),
        include_str!("../../tests/cases/dhcp6/holds/tree/run/ibboot/state.json"),
        include_str!("../../tests/cases/output/timeline/tree/run/ibboot/state.json"),
        include_str!("../../tests/cases/output/timeline-of-a-bond/tree/run/ibboot/state.json"),
    ];

    fn state(bytes: &[u8]) -> Result<State> {
        parse(STATE, bytes, Some(BOOT))
    }

    #[test]
    fn leases_are_renewed_by_the_owner_or_by_a_keeper_that_was_started() {
        use Handover::{Auto, Keep, Networkd, Nm, None as Neither};
        let renewer = |handover, has_keeper| {
            let state = State {
                handover,
                ..state(SAVED[0].as_bytes()).unwrap()
            };
            renewer(Some(&state), has_keeper)
        };
        for has_keeper in [false, true] {
            let of = |handover| renewer(Some(handover), has_keeper);
            assert_eq!(of(Nm), Some(Renewer::Owner("NetworkManager")));
            assert_eq!(of(Networkd), Some(Renewer::Owner("systemd-networkd")));
        }
        for handover in [None, Some(Auto), Some(Keep), Some(Neither)] {
            assert_eq!(renewer(handover, true), Some(Renewer::Keeper));
            assert_eq!(renewer(handover, false), Some(Renewer::Nobody));
        }
        assert_eq!(super::renewer(None, true), Some(Renewer::Keeper));
        assert_eq!(super::renewer(None, false), None);
    }

    /// Any content is accepted, or is reported in one short line.
    fn accepted_or_one_line(bytes: &[u8]) {
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

    /// Other programs read the file.
    #[test]
    fn the_keys_of_the_state_stay() {
        for text in SAVED {
            let before: serde_json::Value = serde_json::from_str(text).unwrap();
            let state: State = serde_json::from_str(text).unwrap();
            let after = serde_json::to_value(&state).unwrap();
            for (key, value) in before.as_object().unwrap() {
                assert_eq!(after.get(key), Some(value), "{key}");
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_unknown() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("run/ibboot/state.json")).unwrap();
        let error = read_state(&Root::new(tree.path())).unwrap_err();
        assert_eq!(error.kind, Kind::Unknown);
        assert_eq!(
            error.to_string(),
            "/run/ibboot/state.json: cannot be read: Is a directory"
        );
    }

    #[test]
    fn a_file_truncated_anywhere_is_one_line() {
        let whole = SAVED[0].trim_end();
        for length in 0..whole.len() {
            accepted_or_one_line(&whole.as_bytes()[..length]);
            assert!(state(&whole.as_bytes()[..length]).is_err(), "{length}");
        }
        assert!(state(whole.as_bytes()).is_ok());
    }

    #[test]
    fn a_planted_file_gives_a_short_message() {
        let long = "x".repeat(1 << 20);
        let planted = format!(r#"{{"schema":1,"boot_id":"{long}"}}"#);
        let outcome = SAVED[0].replace("\"continue\"", &format!("\"{long}\""));
        let other = SAVED[0].replace(BOOT, &long);
        for text in [planted, outcome, other, "[".repeat(1 << 20)] {
            accepted_or_one_line(text.as_bytes());
        }
        let error = state(SAVED[0].replace(BOOT, &long).as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "/run/ibboot/state.json: belongs to another boot: {}..., expected {BOOT}",
                "x".repeat(200)
            )
        );
    }

    #[test]
    fn a_file_of_a_boot_that_is_not_shown_names_the_cause() {
        let of = |boot_id| parse::<State>(STATE, SAVED[0].as_bytes(), boot_id);
        let error = of(None).unwrap_err();
        assert_eq!(error.kind, Kind::Unknown);
        assert_eq!(
            error.to_string(),
            "/proc/sys/kernel/random/boot_id: cannot be read: No such file or directory; \
             let this process see all of /proc: ProcSubset=all in a unit"
        );
        let none = SAVED[0].replace(&format!("\"{BOOT}\""), "null");
        assert!(parse::<State>(STATE, none.as_bytes(), None).is_ok());
    }

    #[test]
    fn a_selector_that_cannot_be_read_is_one_error() {
        let link = r#""requested_by":null,"required":true,"identity":null,"link_layer":null,"netdev":null,"megabits":null,"refused":null"#;
        let whole = [
            &format!(r#"{{"schema":1,"boot_id":"{BOOT}","require":"all","modules":[]"#),
            &format!(r#""links":[{{"target":"guid=0x506.8001","port":"mlx5_0:1",{link}}}]"#),
            &format!(r#""any_port":{{"target":"any port","except":["mlx5_1:1"],{link}}}"#),
            r#""rates":[{"selector":"mlx5_2:1","megabits":1}]"#,
            r#""link_layers":[{"selector":"mlx5_3:1","link_layer":null}]}"#,
        ]
        .join(",");
        let read = |text: &str| parse::<Expectation>(EXPECTED, text.as_bytes(), Some(BOOT));
        let written = serde_json::to_value(read(&whole).unwrap()).unwrap();
        assert_eq!(written["links"][0]["target"], "guid=0x506.8001");
        assert_eq!(written["links"][0]["port"], "mlx5_0:1");
        for (good, end) in [
            ("mlx5_0:1", "\""),
            ("mlx5_1:1", "\"]"),
            ("mlx5_2:1", "\""),
            ("mlx5_3:1", "\""),
        ] {
            let text = whole.replace(good, r"guid=ib0\n");
            let column = text.find(r"ib0\n").unwrap() + r"ib0\n".len() + end.len();
            assert_eq!(
                read(&text).unwrap_err().to_string(),
                format!(
                    r#"/run/ibboot/expected.json: does not parse: cannot read a selector from "guid=ib0\n" at line 1 column {column}"#
                ),
                "{good}"
            );
        }
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
        fn any_bytes_give_at_most_one_line(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            accepted_or_one_line(&bytes);
            prop_assert!(state(&bytes).is_err());
        }

        #[test]
        fn any_flipped_byte_gives_at_most_one_line(which in 0..SAVED.len(), at: prop::sample::Index, with: u8) {
            let mut bytes = SAVED[which].as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= with;
            accepted_or_one_line(&bytes);
            if let Ok(read) = state(&bytes) {
                prop_assert_eq!(state(json(&read).unwrap().as_bytes()), Ok(read));
            }
        }
    }
}
