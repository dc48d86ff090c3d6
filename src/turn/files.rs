// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of /run/ibboot that hold the state of the turns, and the variables of dracut's
//! environment.
//!
//! The hook of dracut's queue and the shell beside the queue write different files at the same
//! time: the hook writes `netroot` while no attempt runs, and the shell writes `netroot` at the end
//! of an attempt.

use std::io;
use std::os::unix::ffi::OsStringExt;

use kernel_cmdline::Selector;

use super::{Attempt, Held, Interface, RootPath, Stage, State, Step, Turn, turn};
use crate::error::{Error, Result};
use crate::handover::dracut::{BOOTDEV, TMP, assigned};
use crate::handover::{DIRECTORY, INTERFACES, Outcome, REQUESTED, RESULT, resolver};
use crate::hardware::spellings;
use crate::request::Request;
use crate::system::directory::Directory;
use crate::system::root::Root;

/// The last attempt: the word of its [`Stage`], the seconds since kernel start, and a description.
const NETROOT: &str = "netroot";
/// The seconds at which the running attempt began, and its age at the last report.
const REPORTED: &str = "netroot-reported";
const SHELL_LEFT: &str = "shell-left";
/// An interface of ours that had its turn.
const ONLINE: &str = "online-";
/// A call of `/sbin/netroot` that was held (hold.sh), and a call that was made up for.
const HELD: &str = "held-";
const TURN: &str = "turn-";

const KMSG: &str = "/dev/kmsg";
/// proc(5).
const UPTIME: &str = "/proc/uptime";
/// What `nvme connect-all` reads.
const NVME_SERVERS: &str = "/etc/nvme/discovery.conf";
const NVME_CONFIG: &str = "/etc/nvme/config.json";
/// drivers/nvme/host/fabrics.c.
const NVME_CONTROLLERS: &str = "/sys/class/nvme-fabrics/ctl";

/// Variables of dracut's shells.
#[derive(Debug, Default)]
pub struct Environment {
    /// `netroot`, from `root=` or `netroot=`.
    pub netroot: Vec<u8>,
    /// `NEWROOT`: where the root file system is mounted.
    pub newroot: String,
    /// `hookdir`.
    pub hookdir: String,
}

impl Environment {
    /// The environment of this process, as the hooks set it.
    pub fn of_process() -> Environment {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        let text = |name| variable(name).to_string_lossy().into_owned();
        Environment {
            netroot: variable("netroot").into_vec(),
            newroot: text("NEWROOT"),
            hookdir: text("hookdir"),
        }
    }
}

/// The text of a file of /run/ibboot, trimmed; empty if the file does not exist.
fn own(root: &Root, name: &str) -> Result<String> {
    let path = format!("{DIRECTORY}/{name}");
    match root.text(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io(path, "cannot be read", &e)),
        text => Ok(text.unwrap_or_default()),
    }
}

/// The state of the turns. A missing file means that nothing has happened yet; a file of
/// /run/ibboot that cannot be read is an error.
pub fn read(root: &Root, environment: &Environment) -> Result<State> {
    let names = match root.list(DIRECTORY) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(Error::io(DIRECTORY, "cannot be read", &e));
        }
        names => names.unwrap_or_default(),
    };
    let has = |name: &str| names.iter().any(|other| other == name);
    let interfaces = own(root, INTERFACES)?;
    let interfaces = interfaces.lines().filter_map(|line| {
        let (word, name) = line.split_once(' ')?;
        Some(Interface {
            name: name.to_owned(),
            is_online: word == "online",
            had_turn: has(&format!("{ONLINE}{name}")),
        })
    });
    let held = names.iter().filter_map(|name| name.strip_prefix(HELD));
    let held = held.map(|name| Held {
        name: name.to_owned(),
        had_turn: has(&format!("{TURN}{name}")),
    });
    let discovery = root.text(NVME_SERVERS).unwrap_or_default();
    let config = root.text(NVME_CONFIG).unwrap_or_default();
    let has_nvme_server = names_server(&discovery) || has_address(&config);
    Ok(State {
        now_s: uptime(root)?,
        verdict: match has(RESULT) {
            true => Some(verdict(&own(root, RESULT)?, &own(root, REQUESTED)?)),
            false => None,
        },
        is_shell_left: has(SHELL_LEFT),
        interfaces: interfaces.collect(),
        held: held.collect(),
        last: attempt(&own(root, NETROOT)?, &own(root, REPORTED)?),
        root: root_path(root, environment),
        // Without NEWROOT that would be the /proc of the initramfs.
        is_mounted: !environment.newroot.is_empty()
            && root.path(&format!("{}/proc", environment.newroot)).is_dir(),
        has_nvme_server: has_nvme_server && !Request::read(root).no_nvmf,
        is_nvme_connected: nvme_transports(root).iter().any(|name| {
            !has_nbft(root) || names_transport(&discovery, name) || names_transport(&config, name)
        }),
    })
}

/// Seconds since kernel start.
fn uptime(root: &Root) -> Result<u64> {
    let text = root
        .text(UPTIME)
        .map_err(|e| Error::io(UPTIME, "cannot be read", &e))?;
    let seconds = text
        .split(['.', ' '])
        .next()
        .and_then(|seconds| seconds.parse().ok());
    seconds.ok_or_else(|| Error::new(UPTIME, "does not parse").found(text))
}

/// The outcome of a result. A result of which nothing could be written (a full /run) has the action of a
/// failure that was requested, as in job.sh.
fn verdict(result: &str, requested: &str) -> Outcome {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let onfail = || Outcome::of_word(&format!("failed {}", first(requested)));
    Outcome::of_word(&first(result))
        .or_else(onfail)
        .unwrap_or(Outcome::Continue)
}

fn attempt(text: &str, reported: &str) -> Option<Attempt> {
    let mut words = text.splitn(3, ' ');
    let stage = Stage::of_word(words.next()?)?;
    let since: u64 = words.next()?.parse().ok()?;
    let reported = reported
        .split_once(' ')
        .filter(|(of, _)| of.parse() == Ok(since));
    Some(Attempt {
        stage,
        since,
        what: words.next()?.to_owned(),
        reported: reported
            .and_then(|(_, seconds)| seconds.parse().ok())
            .unwrap_or(0),
    })
}

/// The root path of the command line, or with `root=dhcp` the root path of the boot device's DHCP
/// server, as dracut's netroot reads it.
fn root_path(root: &Root, environment: &Environment) -> RootPath {
    if environment.netroot != b"dhcp" {
        return RootPath(environment.netroot.clone());
    }
    let granted = || {
        let device = root.text(&format!("{TMP}/{BOOTDEV}")).ok()?;
        let options = root
            .read(&format!("{TMP}/dhclient.{device}.dhcpopts"))
            .ok()?;
        assigned(&options, "new_root_path").filter(|path| !path.is_empty())
    };
    let Some(path) = granted() else {
        return RootPath(environment.netroot.clone());
    };
    let is_server =
        path.first().is_some_and(u8::is_ascii_digit) && path.windows(2).any(|two| two == b":/");
    let scheme: &[u8] = if is_server || path.starts_with(b"/") {
        b"nfs:"
    } else {
        b""
    };
    RootPath([scheme, &path].concat())
}

/// Whether a discovery.conf (nvme-discover(1)) has more than comments; the file of Debian's
/// nvme-cli has only comments.
fn names_server(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The transports of the controllers over a fabric.
fn nvme_transports(root: &Root) -> Vec<String> {
    let names = root.list(NVME_CONTROLLERS).unwrap_or_default().into_iter();
    names
        .filter(|name| name.starts_with("nvme"))
        .filter_map(|name| {
            root.text(&format!("{NVME_CONTROLLERS}/{name}/transport"))
                .ok()
        })
        .collect()
}

/// Whether the firmware names NVMe servers (NVM Express Boot Specification, NBFT): dracut connects to them.
fn has_nbft(root: &Root) -> bool {
    let tables = root.list("/sys/firmware/acpi/tables").unwrap_or_default();
    tables.iter().any(|name| name.starts_with("NBFT"))
}

/// Whether a file of nvme-cli has this transport. A controller with another one may be of the firmware.
fn names_transport(text: &str, transport: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim().starts_with('#'));
    let mut words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
    words.any(|word| word == transport)
}

/// Whether a config.json of nvme-cli has the address of a controller.
fn has_address(text: &str) -> bool {
    text.contains("\"traddr\"")
}

/// Restores the name servers of our interfaces, if dracut has set up another interface since: a
/// mount may need a name that only our servers know.
pub fn keep_name_servers(state: &State) {
    let interfaces = state.interfaces.iter();
    let online = interfaces.filter(|interface| interface.is_online);
    if let Err(error) = resolver::add_again(online.map(|interface| interface.name.as_str())) {
        log::error!("{error}");
    }
}

/// What the hook reads if dracut's clock must stop.
const HOLD: &str = "hold\n";

/// Takes a turn: writes the next state, and returns the steps of the hook, one per line. `is_idle`: no shell
/// of an attempt runs. An attempt that counts as running has then lost its end, or its steps.
pub fn take(root: &Root, environment: &Environment, is_idle: bool) -> Result<String> {
    let mut state = read(root, environment)?;
    let is_over = |last: &Attempt| last.stage == Stage::Ended;
    if is_idle && !state.last.as_ref().is_none_or(is_over) {
        end(root)?;
        state = read(root, environment)?;
    }
    for interface in state
        .interfaces
        .iter()
        .filter(|interface| !interface.is_online)
    {
        stop_waiting(root, environment, &interface.name);
    }
    keep_name_servers(&state);
    let (steps, what, failed) = match turn(&state) {
        Turn::Wait => return Ok(String::new()),
        Turn::Hold => return Ok(HOLD.to_owned()),
        Turn::Report {
            what,
            seconds,
            holds,
        } => {
            let since = state.last.as_ref().map_or(0, |last| last.since);
            Directory::open()?.write(REPORTED, format!("{since} {seconds}\n").as_bytes())?;
            let is_connect = state
                .last
                .is_some_and(|last| last.stage == Stage::Connecting);
            let (state, answer) = match (holds, is_connect) {
                (true, _) => (
                    "the boot waits: dracut has been downloading, unpacking or logging in",
                    HOLD,
                ),
                (false, false) => ("still not mounted, and the mount has not returned", ""),
                (false, true) => (
                    "still not mounted, and nvme connect-all has not returned",
                    "",
                ),
            };
            tell_kernel(root, &format!("{what}: {state} for {seconds} s"));
            return Ok(answer.to_owned());
        }
        Turn::Go {
            steps,
            what,
            failed,
        } => (steps, what, failed),
    };
    if let Some(failed) = failed {
        tell_kernel(root, &format!("{failed}: not mounted, trying again"));
    }
    let directory = Directory::open()?;
    let stage = match steps[..] {
        [Step::Nvme] => Stage::Connecting,
        _ => Stage::Running,
    };
    let running = format!("{} {} {what}\n", stage.word(), state.now_s);
    directory.write(NETROOT, running.as_bytes())?;
    for interface in state.ours(false) {
        directory.write(&format!("{ONLINE}{}", interface.name), b"")?;
    }
    for held in state.others(false) {
        directory.write(&format!("{TURN}{}", held.name), b"")?;
    }
    Ok(steps.iter().map(Step::line).collect())
}

/// Writes that the running attempt has ended.
pub fn end(root: &Root) -> Result<()> {
    let text = own(root, NETROOT)?;
    let Some(running) = attempt(&text, "").filter(|attempt| attempt.stage != Stage::Ended) else {
        return Err(Error::new(
            format!("{DIRECTORY}/{NETROOT}"),
            "no mount or connection attempt is running",
        ));
    };
    let ended = format!(
        "{} {} {}\n",
        Stage::Ended.word(),
        uptime(root)?,
        running.what
    );
    Directory::open()?.write(NETROOT, ended.as_bytes())
}

/// Ends network-legacy's wait for an interface that did not come up.
fn stop_waiting(root: &Root, environment: &Environment, target: &str) {
    for name in waited_names(target) {
        let path = format!("{}/initqueue/finished/wait-{name}.sh", environment.hookdir);
        match std::fs::remove_file(root.path(&path)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                log::error!("{}", Error::io(path, "cannot be removed", &e))
            }
            _ => {}
        }
    }
}

/// The names under which network-legacy may wait for this target: an `ip=` has the name, or the
/// address, and `BOOTIF=` the address without its type (`fix_bootif` of dracut's net-lib.sh).
fn waited_names(target: &str) -> Vec<String> {
    let mut names = vec![target.to_owned()];
    if let Some(Selector::Guid(address)) = Selector::parse(target) {
        names.extend(spellings(address.as_bytes()));
    }
    names
}

/// Writes a line of severity err to the kernel log: readable on a quiet console.
fn tell_kernel(root: &Root, text: &str) {
    if let Err(e) = root.set(KMSG, &format!("<3>ibboot: {text}\n")) {
        log::error!("{text}; {}", Error::io(KMSG, "cannot be written", &e));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_target_is_awaited_under_every_spelling() {
        assert_eq!(waited_names("ib0"), ["ib0"]);
        assert_eq!(
            waited_names("guid=0xb8599f0300fc1a2c"),
            [
                "guid=0xb8599f0300fc1a2c",
                "b8-59-9f-03-00-fc-1a-2c",
                "b8-59-9f-fc-1a-2c",
                "b8:59:9f:03:00:fc:1a:2c",
                "b8:59:9f:fc:1a:2c",
            ]
        );
    }

    #[test]
    fn the_line_of_an_attempt_is_read() {
        let running = |reported| Attempt {
            stage: Stage::Running,
            since: 5,
            what: "ib0 ib1: nfs:/a".to_owned(),
            reported,
        };
        let line = "running 5 ib0 ib1: nfs:/a";
        assert_eq!(attempt(line, ""), Some(running(0)));
        assert_eq!(attempt(line, "5 31"), Some(running(31)));
        // The report belongs to an earlier attempt.
        assert_eq!(attempt(line, "4 31"), Some(running(0)));
        assert_eq!(attempt(line, "5 x"), Some(running(0)));
        let connecting = Attempt {
            stage: Stage::Connecting,
            ..running(0)
        };
        assert_eq!(
            attempt("connecting 5 ib0 ib1: nfs:/a", ""),
            Some(connecting)
        );
        let ended = attempt("ended 7 ib0", "").unwrap();
        assert_eq!(
            (ended.stage, ended.since, ended.what.as_str()),
            (Stage::Ended, 7, "ib0")
        );
        for garbled in ["", "running", "running x ib0", "running 5", "gone 5 ib0"] {
            assert_eq!(attempt(garbled, ""), None, "{garbled}");
        }
    }

    #[test]
    fn comments_name_no_server() {
        for (text, is_one) in [
            ("", false),
            ("# Example:\n\n  #--transport=tcp\n", false),
            ("# no newline:\n --transport=tcp", true),
        ] {
            assert_eq!(names_server(text), is_one, "{text}");
        }
    }

    #[test]
    fn a_server_of_either_file_of_nvme_cli_counts() {
        const SERVER: &str =
            r#"[{"subsystems":[{"ports":[{"transport":"rdma","traddr":"10.0.0.2"}]}]}]"#;
        for (name, text, is_one) in [
            (
                "discovery.conf",
                "--transport=rdma --traddr=10.0.0.2\n",
                true,
            ),
            ("config.json", SERVER, true),
            ("config.json", "[]\n", false),
        ] {
            let path = format!("etc/nvme/{name}");
            let tree = machine(&[("proc/uptime", "1.00 1.00\n"), (&path, text)]);
            let state = read(&Root::new(tree.path()), &Environment::default()).unwrap();
            assert_eq!(state.has_nvme_server, is_one, "{name}: {text}");
        }
    }

    #[test]
    fn a_controller_of_another_transport_is_not_of_these_files() {
        const DISCOVERY: &str = "#--transport=tcp\n-t rdma -a 10.0.0.2\n";
        const CONFIG: &str =
            r#"[{"subsystems":[{"ports":[{"transport":"tcp","traddr":"10.0.0.2"}]}]}]"#;
        for (name, text, transport, expected) in [
            ("discovery.conf", DISCOVERY, "rdma\n", true),
            ("discovery.conf", DISCOVERY, "tcp\n", false),
            ("config.json", CONFIG, "tcp\n", true),
            ("config.json", CONFIG, "rdma\n", false),
        ] {
            let path = format!("etc/nvme/{name}");
            for (table, expected) in [("NBFT", expected), ("FACP", true)] {
                let table = format!("sys/firmware/acpi/tables/{table}");
                let tree = machine(&[
                    ("proc/uptime", "1.00 1.00\n"),
                    (&path, text),
                    (&table, ""),
                    ("sys/class/nvme-fabrics/ctl/nvme0/transport", transport),
                ]);
                let state = read(&Root::new(tree.path()), &Environment::default()).unwrap();
                assert_eq!(
                    state.is_nvme_connected, expected,
                    "{name} {transport} {table}"
                );
            }
        }
    }

    #[test]
    fn without_nvme_over_fabrics_no_file_names_a_server() {
        for (cmdline, expected) in [
            ("quiet\n", true),
            ("rd.nonvmf=0\n", true),
            ("rd.nonvmf\n", false),
            ("rd.nonvmf=1\n", false),
        ] {
            let tree = machine(&[
                ("proc/uptime", "1.00 1.00\n"),
                ("proc/cmdline", cmdline),
                ("etc/nvme/discovery.conf", "--transport=rdma\n"),
            ]);
            let state = read(&Root::new(tree.path()), &Environment::default()).unwrap();
            assert_eq!(state.has_nvme_server, expected, "{cmdline}");
        }
    }

    /// A machine with these files.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        tree
    }

    #[test]
    fn the_files_become_a_state() {
        let tree = machine(&[
            ("proc/uptime", "12.90 1.00\n"),
            ("run/ibboot/result", "failed shell\nno cable\n"),
            ("run/ibboot/shell-left", ""),
            (
                "run/ibboot/interfaces",
                "online ib1\nonline ib0\noffline ib2\n",
            ),
            ("run/ibboot/online-ib1", ""),
            ("run/ibboot/held-eth0", ""),
            ("run/ibboot/held-eth1", ""),
            ("run/ibboot/turn-eth0", ""),
            ("run/ibboot/netroot", "ended 9 ib1\n"),
            ("sysroot/proc/version", ""),
            ("etc/nvme/discovery.conf", "--transport=rdma\n"),
            ("sys/class/nvme-fabrics/ctl/nvme0/transport", "rdma\n"),
        ]);
        let environment = Environment {
            newroot: "/sysroot".to_owned(),
            ..Environment::default()
        };
        let state = read(&Root::new(tree.path()), &environment).unwrap();
        assert_eq!(
            (state.now_s, state.verdict, state.is_shell_left),
            (12, Some(Outcome::Shell), true)
        );
        let ours = state.interfaces.iter();
        let ours: Vec<_> = ours
            .map(|one| (one.name.as_str(), one.is_online, one.had_turn))
            .collect();
        assert_eq!(
            ours,
            [
                ("ib1", true, true),
                ("ib0", true, false),
                ("ib2", false, false)
            ]
        );
        let held: Vec<_> = state
            .held
            .iter()
            .map(|one| (one.name.as_str(), one.had_turn))
            .collect();
        assert_eq!(held, [("eth0", true), ("eth1", false)]);
        assert_eq!(
            state.last.map(|last| (last.stage, last.since)),
            Some((Stage::Ended, 9))
        );
        assert_eq!(state.root, RootPath::default());
        assert!(state.is_mounted && state.has_nvme_server && state.is_nvme_connected);
        let unset = read(&Root::new(tree.path()), &Environment::default()).unwrap();
        assert!(!unset.is_mounted, "/proc of the initramfs");
    }

    #[test]
    fn without_files_nothing_has_happened() {
        let tree = machine(&[("proc/uptime", "1.00 1.00\n")]);
        let environment = Environment {
            newroot: "/sysroot".to_owned(),
            ..Environment::default()
        };
        let state = read(&Root::new(tree.path()), &environment).unwrap();
        assert_eq!(
            (state.now_s, state.verdict, state.is_shell_left),
            (1, None, false)
        );
        assert!(state.interfaces.is_empty() && state.held.is_empty() && state.last.is_none());
        assert!(!state.is_mounted && !state.has_nvme_server && !state.is_nvme_connected);
        // What every device of sysfs has is no controller.
        let tree = machine(&[
            ("proc/uptime", "1.00 1.00\n"),
            ("sys/class/nvme-fabrics/ctl/uevent", ""),
            ("sys/class/nvme-fabrics/ctl/power/control", "auto\n"),
        ]);
        let state = read(&Root::new(tree.path()), &environment).unwrap();
        assert!(!state.is_nvme_connected);
        let tree = machine(&[("proc/uptime", "x\n")]);
        let error = read(&Root::new(tree.path()), &environment).unwrap_err();
        assert_eq!(error.to_string(), "/proc/uptime: does not parse: x");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_file_that_is_not_there() {
        for name in ["interfaces", "result", "netroot"] {
            let below = format!("run/ibboot/{name}/x");
            let tree = machine(&[("proc/uptime", "1.00 1.00\n"), (&below, "")]);
            let error = read(&Root::new(tree.path()), &Environment::default()).unwrap_err();
            let expected = format!("/run/ibboot/{name}: cannot be read: Is a directory");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_root_path_of_a_dhcp_server_is_the_one_of_the_boot_device() {
        for (netroot, granted, expected) in [
            ("nfs:/b", "/a", "nfs:/b"),
            ("dhcp", "/a", "nfs:/a"),
            ("dhcp", "10.0.0.2:/a", "nfs:10.0.0.2:/a"),
            ("dhcp", "nfs4:10.0.0.2:/a", "nfs4:10.0.0.2:/a"),
            ("dhcp", "iscsi:10.0.0.2::::iqn", "iscsi:10.0.0.2::::iqn"),
            ("dhcp", "", "dhcp"),
        ] {
            let options = format!("new_ip_address='10.0.0.1'\nnew_root_path='{granted}'\n");
            let tree = machine(&[
                ("tmp/net.bootdev", "ib0\n"),
                ("tmp/dhclient.ib0.dhcpopts", &options),
            ]);
            let environment = Environment {
                netroot: netroot.as_bytes().to_vec(),
                ..Environment::default()
            };
            let path = root_path(&Root::new(tree.path()), &environment);
            assert_eq!(
                String::from_utf8(path.0).unwrap(),
                expected,
                "{netroot} {granted}"
            );
            let path = root_path(&Root::new(machine(&[]).path()), &environment);
            assert_eq!(path.0, netroot.as_bytes());
        }
    }
}
