// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests what this program assumes about devices and ports: event files, subnet administrators, the
//! cost of a look, other programs' view of the ports. Nothing here changes the machine.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::claim::Claim;
use super::programs::{PROGRAMS, Program, compare};
use super::tree;
use crate::ask::administrators::{about_interface, about_port, interview};
use crate::error::errno_text;
use crate::facts::{Facts, Netdev, PortRef, rules};
use crate::rdma::events::AsyncEvents;
use crate::rdma::netlink::Rdma;
use crate::rdma::sa::{Answer, CALM};
use crate::rdma::types::{LinkLayer, PortState};
use crate::system::root::Root;
use crate::wish::ipoib::{DATAGRAM_MAX, Mode, OPA_DATAGRAM_MAX};

/// Number of looks that are measured.
const LOOKS: u32 = 20;
/// Time limit for a look: the interval at which ports without events are polled.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// Time limit for another program.
const PROGRAM_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for the questions to one subnet administrator.
const ADMINISTRATOR_LIMIT: Duration = Duration::from_secs(10);

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// Opens the uverbs file of each device and requests its events.
pub fn event_files(root: &Root, rdma: Option<&Rdma>, facts: &Facts) -> Vec<Claim> {
    let claim = |device: &crate::facts::Device| {
        let (name, what) = (device.ifname.clone(), "GET_CONTEXT accepted");
        if !device.has_link() {
            return Claim::skip(name, what, "no port carries a link");
        }
        // A query for the file would load the module.
        if !root.exists("/sys/class/infiniband_verbs") {
            return Claim::skip(name, what, "ib_uverbs is not loaded");
        }
        let Some((rdma, index)) = rdma.zip(device.ifindex) else {
            return Claim::new(name, what, Err("NETLINK_RDMA does not know the device"));
        };
        let file = match rdma.chardev(index, "uverbs") {
            Ok(file) => file,
            Err(e) => return Claim::new(name, what, Err(e)),
        };
        let begin = Instant::now();
        let result = AsyncEvents::open(&file);
        let what = format!("{what} in {}", milliseconds(begin.elapsed()));
        Claim::new(
            name,
            what,
            result.map(drop).map_err(|e| {
                let why = errno_text(&e);
                format!("/dev/infiniband/{file}: {why}; the ports are polled")
            }),
        )
    };
    facts.devices.iter().map(claim).collect()
}

/// Queries the subnet administrator of each InfiniBand port that has one: about the broadcast group
/// of the port's interface where an interface exists.
pub async fn administrators(root: &Root, rdma: Option<&Rdma>, facts: &Facts) -> Vec<Claim> {
    let mut claims = Vec::new();
    for port in facts.ports() {
        if port.port.link_layer != Some(LinkLayer::InfiniBand) {
            continue;
        }
        let what = "subnet administrator";
        if port.port.state != Some(PortState::Active) {
            claims.push(Claim::skip(port.name(), what, "the port is not ACTIVE"));
            continue;
        }
        if !root.exists("/sys/class/infiniband_mad") {
            claims.push(Claim::skip(port.name(), what, "ib_umad is not loaded"));
            continue;
        }
        let interface =
            interfaces(port, facts).find(|n| !n.ipoib.as_ref().is_some_and(|i| i.child));
        let question = match interface {
            Some(netdev) => about_interface(root, rdma, &netdev.ifname, port, CALM),
            None => about_port(root, rdma, port),
        };
        let begin = Instant::now();
        let reply = timeout(ADMINISTRATOR_LIMIT, interview(question)).await;
        let answer = reply.map_or(Answer::Silent, |reply| reply.answer);
        claims.push(of_answer(port.name(), &answer, begin.elapsed()));
    }
    claims
}

/// PURE: the claim about one subnet administrator.
fn of_answer(port: String, answer: &Answer, took: Duration) -> Claim {
    let what = format!("subnet administrator after {}", milliseconds(took));
    match answer {
        Answer::NotAsked(why) => Claim::skip(port, "subnet administrator", why),
        Answer::Alive => Claim::new(port, what + ": answers", Ok::<_, &str>(())),
        Answer::Joinable { group, port_mtu } => {
            let mtu = port_mtu.map_or("unknown".to_owned(), |mtu| mtu.to_string());
            let what = format!("{what}: group {}, port MTU {mtu}", group.mgid);
            Claim::new(port, what, Ok::<_, &str>(()))
        }
        Answer::Silent => Claim::new(port, what, Err("no answer, with and without GRH")),
        Answer::NoGroup => Claim::new(port, what, Err("the broadcast group does not exist")),
        Answer::Refused(status) => {
            Claim::new(port, what, Err(format!("refused: 0x{:04x}", status.0)))
        }
    }
}

/// The IPoIB interfaces over a port, children included.
pub fn interfaces<'f>(port: PortRef<'f>, facts: &'f Facts) -> impl Iterator<Item = &'f Netdev> {
    let is_over = move |netdev: &&Netdev| netdev.ipoib.is_some() && netdev.is_over(port);
    facts.netdevs.iter().filter(is_over)
}

/// PURE: flag byte of the address, mode and MTU of each IPoIB interface fit together.
pub fn ipoib(facts: &Facts) -> Vec<Claim> {
    let of = |netdev: &Netdev| {
        let mode = netdev.ipoib.as_ref()?.mode;
        let address = netdev.address.as_ref().map(|address| address.bytes());
        let flags = address.and_then(|bytes| bytes.first().copied());
        let shown = |value: Option<String>| value.unwrap_or_else(|| "unread".to_owned());
        let what = format!(
            "IPoIB: flag byte {}, mode {}, MTU {}",
            shown(flags.map(|flags| format!("0x{flags:02x}"))),
            shown(mode.map(|mode| mode.to_string())),
            shown(netdev.mtu.map(|mtu| mtu.to_string())),
        );
        let mut ports = facts.ports().filter(|port| netdev.is_over(*port));
        let largest = match ports.any(|port| port.device.is_omni_path()) {
            true => OPA_DATAGRAM_MAX,
            false => DATAGRAM_MAX,
        };
        let result = match (mode, netdev.mtu) {
            _ if flags.is_none() => Err("the address was not read"),
            (None, _) | (_, None) => Err("the mode or the MTU was not read"),
            (Some(Mode::Connected), _) if !rules::can_connect(netdev) => {
                Err("connected without the flag 0x80")
            }
            (Some(Mode::Datagram), Some(mtu)) if mtu > largest => {
                Err("the MTU is too large for datagram mode")
            }
            _ => Ok(()),
        };
        Some(Claim::new(netdev.ifname.clone(), what, result))
    };
    facts.netdevs.iter().filter_map(of).collect()
}

/// Measures looks at the running machine, and each file that the tree recorded.
pub fn cost_of_looks(recorded: &Root) -> Claim {
    let machine = Root::new("/");
    let mut looks = Vec::new();
    for _ in 0..LOOKS {
        let begin = Instant::now();
        tree::facts(&machine);
        looks.push(begin.elapsed());
    }
    looks.sort_unstable();
    let median = looks.get(looks.len() / 2).copied().unwrap_or_default();
    let longest = looks.last().copied().unwrap_or_default();
    let mut slowest = (Duration::ZERO, String::new());
    for path in recorded.recorded_files() {
        if path.starts_with("/sys/class/") {
            let begin = Instant::now();
            // Only the time counts: the look has read the content, and noted an error.
            drop(machine.read(&path));
            slowest = slowest.max((begin.elapsed(), path));
        }
    }
    let what = format!(
        "read {LOOKS} times: median {}, longest {}; slowest file {} {}",
        milliseconds(median),
        milliseconds(longest),
        slowest.1,
        milliseconds(slowest.0),
    );
    let is_fast = longest <= LOOK_LIMIT;
    Claim::new(
        "facts",
        what,
        is_fast.then_some(()).ok_or("reading took more than 1 s"),
    )
}

/// What one program reported.
#[derive(Debug)]
pub struct Compared {
    /// Name of the program, for a file with the output.
    pub name: String,
    /// The program's output.
    pub output: String,
    /// A claim for each attribute.
    pub claims: Vec<Claim>,
}

/// Runs the other programs and compares their output with the facts. A difference counts only if a
/// second run with new facts has a difference too: a port may change between look and run.
pub async fn programs() -> Vec<Compared> {
    let machine = Root::new("/");
    let mut compared = Vec::new();
    for program in &PROGRAMS {
        let mut found = once(&machine, program).await;
        if found.claims.iter().any(Claim::is_false) {
            found = once(&machine, program).await;
        }
        compared.push(found);
    }
    compared
}

async fn once(machine: &Root, program: &Program) -> Compared {
    let facts = tree::facts(machine);
    let (mut output, mut claims) = (String::new(), Vec::new());
    match run(program.command).await {
        Ok(Some(text)) => {
            match (program.parse)(&text) {
                Ok(told) => claims = compare(&facts, program, &told),
                Err(_) if facts.devices.is_empty() => {
                    claims.push(Claim::skip(program.command, "agrees", "no RDMA device"));
                }
                Err(why) => claims.push(Claim::new(program.command, "is understood", Err(why))),
            }
            output = text;
        }
        Ok(None) => claims.push(Claim::skip(program.command, "agrees", "not installed")),
        Err(why) => claims.push(Claim::new(program.command, "runs", Err(why))),
    }
    let name = program.command.split(' ').next().unwrap_or_default();
    Compared {
        name: name.to_owned(),
        output,
        claims,
    }
}

/// The output of a program; `None` if the program is not installed. ibstat and ibv_devinfo end with
/// an error where there is no device: their output counts.
async fn run(command: &str) -> Result<Option<String>, String> {
    let mut words = command.split(' ');
    let child = tokio::process::Command::new(words.next().unwrap_or_default())
        .args(words)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(PROGRAM_LIMIT, child).await {
        Ok(Ok(output)) => Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned())),
        Ok(Err(e)) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(Err(e)) => Err(errno_text(&e)),
        Err(_) => Err(format!("still runs after {} s", PROGRAM_LIMIT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::mad::Status;
    use crate::wish::ipoib::IpoibFacts;

    #[test]
    fn only_an_answer_of_the_subnet_administrator_passes() {
        let line = |answer| {
            let took = Duration::from_micros(2100);
            of_answer("mlx5_0/1".into(), &answer, took).to_string()
        };
        let head = "mlx5_0/1 subnet administrator after 2.1 ms";
        assert_eq!(line(Answer::Alive), format!("{head}: answers: PASS"));
        assert_eq!(
            line(Answer::Silent),
            format!("{head}: FAIL: no answer, with and without GRH")
        );
        assert_eq!(
            line(Answer::NoGroup),
            format!("{head}: FAIL: the broadcast group does not exist")
        );
        assert_eq!(
            line(Answer::Refused(Status(0x0200))),
            format!("{head}: FAIL: refused: 0x0200")
        );
        assert_eq!(
            line(Answer::NotAsked("the port has no LID".into())),
            "mlx5_0/1 subnet administrator: SKIP: the port has no LID"
        );
    }

    #[test]
    fn an_interface_with_values_that_do_not_fit_fails() {
        let line = |flags: &str, mode, mtu| {
            let address =
                format!("{flags}:00:00:01:fe:80:00:00:00:00:00:00:02:50:f7:00:00:00:a0:01");
            let netdev = Netdev {
                ifname: "ib0".into(),
                address: Some(address.parse().unwrap()),
                mtu,
                ipoib: Some(IpoibFacts {
                    mode,
                    pkey: Some(0xffff),
                    ..IpoibFacts::default()
                }),
                ..Netdev::default()
            };
            let facts = Facts {
                netdevs: vec![netdev],
                ..Facts::default()
            };
            ipoib(&facts)[0].to_string()
        };
        assert_eq!(
            line("00", Some(Mode::Datagram), Some(4092)),
            "ib0 IPoIB: flag byte 0x00, mode datagram, MTU 4092: PASS"
        );
        assert_eq!(
            line("80", Some(Mode::Connected), Some(65520)),
            "ib0 IPoIB: flag byte 0x80, mode connected, MTU 65520: PASS"
        );
        assert_eq!(
            line("00", Some(Mode::Connected), Some(65520)),
            "ib0 IPoIB: flag byte 0x00, mode connected, MTU 65520: \
             FAIL: connected without the flag 0x80"
        );
        assert_eq!(
            line("80", Some(Mode::Datagram), Some(65520)),
            "ib0 IPoIB: flag byte 0x80, mode datagram, MTU 65520: \
             FAIL: the MTU is too large for datagram mode"
        );
        assert_eq!(
            line("80", None, None),
            "ib0 IPoIB: flag byte 0x80, mode unread, MTU unread: \
             FAIL: the mode or the MTU was not read"
        );
    }

    #[test]
    fn a_management_plane_has_no_event_file() {
        use crate::facts::{Device, Port, Role};
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("sys/class/infiniband_verbs")).unwrap();
        let device = |name: &str, role| Device {
            ifname: name.to_owned(),
            ports: vec![Port {
                role,
                ..Port::default()
            }],
            ..Device::default()
        };
        let facts = Facts {
            devices: vec![device("mlx5_0", Role::Link), device("smi1", Role::Smi)],
            ..Facts::default()
        };
        let claims = event_files(&Root::new(dir.path()), None, &facts);
        let lines: Vec<String> = claims.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "mlx5_0 GET_CONTEXT accepted: FAIL: NETLINK_RDMA does not know the device",
                "smi1 GET_CONTEXT accepted: SKIP: no port carries a link",
            ]
        );
    }

    #[test]
    fn an_omni_path_interface_has_a_larger_datagram() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/omni-path");
        let mut facts = crate::survey::tree::facts(&Root::new(sys));
        let mut verdict = |mtu| {
            let mut netdevs = facts.netdevs.iter_mut();
            let ib0 = netdevs.find(|netdev| netdev.ifname == "ib0").unwrap();
            ib0.ipoib.as_mut().unwrap().mode = Some(Mode::Datagram);
            ib0.mtu = Some(mtu);
            ipoib(&facts)[0].is_false()
        };
        assert_eq!([10236, 10240].map(&mut verdict), [false, true]);
    }
}
