// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network of two namespaces: `near` in this namespace, `far` in the namespace `far`, and a
//! client on `near`.

use std::fs;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ibboot::dhcp::Outcome;
use ibboot::dhcp::hardware::Hardware;
use ibboot::dhcp::identity::RequestedId;
use ibboot::dhcp::v4::client::Config;
use ibboot::dhcp::v4::identity::Identity;
use ibboot::dhcp::v4::lease::Lease;
use ibboot::dhcp::v4::session::Session;
use ibboot::hardware::HardwareType;
use ibboot::system::clock::boottime_ns;
use ibboot::system::decoder;
use ibboot::system::root::Root;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{setsockopt, sockopt};

use crate::alone;
use crate::pace::Limit;
use crate::skip;

/// An IPoIB address whose port GUID is 0x0002c903000a1b2c.
const IPOIB: [u8; 20] = [
    0x80, 0, 2, 8, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0x0a, 0x1b, 0x2c,
];
/// Option 61 for this address, as the firmware sends it.
pub const CLIENT_ID: &str = "ff:00:00:00:00:00:02:00:00:02:c9:00:00:02:c9:03:00:0a:1b:2c";

/// Runs `test` in new namespaces, with tmpfs on /run and the veth pair; prints that the test was
/// skipped if root or one of `programs` is missing.
pub fn with_network(name: &str, programs: &[&str], test: impl FnOnce() + Send + 'static) {
    // The client's decoder is the real one.
    decoder::use_program(env!("CARGO_BIN_EXE_ibboot").into());
    if let Some(missing) = programs.iter().find(|program| !is_installed(program)) {
        skip::test(name, &format!("{missing} is not installed (tests/setup)"));
        return;
    }
    let flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    alone::run(name, flags, &[("tmpfs", "/run"), ("sysfs", "/sys")], || {
        ip("link set lo up");
        ip("netns add far");
        ip("link add near type veth peer name far netns far");
        ip("-n far addr add 10.9.0.1/24 dev far");
        ip("-n far link set lo up");
        ip("-n far link set far up");
        ip("link set near up");
        // The kernel takes up to a second until a new veth end sends packets (linkwatch).
        for place in ["", "-n far "] {
            until("a veth pair that carries", || {
                ip(&format!("{place}link show type veth")).contains("qdisc noqueue state UP")
            });
        }
        test();
    });
}

fn is_installed(program: &str) -> bool {
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    folders
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
}

pub fn ip(arguments: &str) -> String {
    let run = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .expect("ip");
    let output = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "ip {arguments}: {output}");
    String::from_utf8(run.stdout).expect("text")
}

/// Moves this thread into the namespace `far`, with its interfaces in /sys.
pub fn enter_far() {
    let far = File::open("/run/netns/far").unwrap();
    setns(far, CloneFlags::CLONE_NEWNET).unwrap();
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let (none, sysfs) = (None::<&str>, Some("sysfs"));
    mount(sysfs, "/sys", sysfs, MsFlags::empty(), none).unwrap();
}

/// A program that ends with the test, and its output.
pub struct Server {
    child: Child,
    log: String,
}

impl Server {
    /// Starts `program` in the namespace; its output goes to a file.
    pub fn start(namespace: &str, name: &str, program: &[&str]) -> Server {
        let exec = ["ip", "netns", "exec", namespace];
        Server::here(name, &[&exec, program].concat())
    }

    /// Like `start`, in this namespace.
    pub fn here(name: &str, program: &[&str]) -> Server {
        Server::with(name, program, &[])
    }

    /// Like `here`, with these variables in the environment.
    pub fn with(name: &str, program: &[&str], environment: &[(&str, &str)]) -> Server {
        let log = format!("/run/{name}.log");
        let file = File::create(&log).unwrap();
        let child = Command::new(program[0])
            .args(&program[1..])
            // Tests wait for what the server prints: in English.
            .env("LC_ALL", "C")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Server { child, log }
    }

    pub fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the output contains this text.
    pub fn reports(&mut self, what: &str) -> &mut Server {
        let mut limit = Limit::seconds(60);
        while !self.output().contains(what) {
            let ended = self.child.try_wait().unwrap();
            let output = self.output();
            assert!(ended.is_none(), "{}: ended: {output}", self.log);
            assert!(!limit.is_over(), "{}: never {what:?}: {output}", self.log);
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// Waits until the program ends by itself, with this text in its last lines and this exit code.
    pub fn ends_with(&mut self, what: &str, code: i32) {
        until(what, || self.child.try_wait().unwrap().is_some());
        assert!(self.output().contains(what), "{}", self.output());
        let ended = self.child.try_wait().unwrap().unwrap();
        assert_eq!(ended.code(), Some(code), "{}", self.output());
    }

    /// The process number; the program must be running.
    pub fn running(&mut self) -> u32 {
        assert!(
            self.child.try_wait().unwrap().is_none(),
            "{}",
            self.output()
        );
        self.child.id()
    }
}

/// dnsmasq in the namespace `far`, without its ping before an offer, once its output contains
/// `ready`.
pub fn dnsmasq(ready: &str, more: &[&str]) -> Server {
    let mut program = vec![
        "dnsmasq",
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--port=0",
        "--no-ping",
        "--user=root",
        "--pid-file",
        "--log-facility=-",
        "--log-dhcp",
        "--dhcp-leasefile=/run/dnsmasq.leases",
    ];
    program.extend(more);
    let mut server = Server::start("far", "dnsmasq", &program);
    server.reports(ready);
    server
}

/// A server in the namespace `far` that ends with the test.
pub struct Evil {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Evil {
    /// `open` returns what to do with each received message and its sender. Returns once the socket
    /// is open.
    pub fn start<Answer: Fn(&[u8], SocketAddr)>(
        address: impl Into<SocketAddr> + Send + 'static,
        open: impl FnOnce(&UdpSocket) -> Answer + Send + 'static,
    ) -> Evil {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            enter_far();
            let socket = bound(address);
            setsockopt(&socket, sockopt::BindToDevice, &"far".into()).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_millis(100)))
                .unwrap();
            let answer = open(&socket);
            ready.send(()).unwrap();
            let mut buffer = [0; 2048];
            while !told.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    answer(&buffer[..length], from);
                }
            }
        });
        is_ready.recv().unwrap();
        Evil {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Evil {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A UDP socket of a server. A child that another test has forked holds the socket of an earlier
/// server until the child calls exec: this function waits for the port.
fn bound(address: impl Into<SocketAddr>) -> UdpSocket {
    let address = address.into();
    let mut socket = None;
    until("the port is free", || {
        socket = UdpSocket::bind(address).ok();
        socket.is_some()
    });
    socket.unwrap()
}

/// Waits until the condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let mut limit = Limit::seconds(60);
    while !holds() {
        assert!(!limit.is_over(), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Makes the namespace a router.
pub fn forward(namespace: &str) {
    let exec = ["netns", "exec", namespace, "sh", "-c"];
    let write = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    assert!(
        Command::new("ip")
            .args(exec)
            .arg(write)
            .status()
            .unwrap()
            .success()
    );
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The identity of an InfiniBand node in DHCP messages, although the wire is Ethernet.
pub fn infiniband() -> Config {
    infiniband_that_sends(&RequestedId::Firmware)
}

/// This node with another client identifier.
pub fn infiniband_that_sends(requested: &RequestedId) -> Config {
    Config {
        identity: Identity::new(HardwareType::InfiniBand, &IPOIB, requested).unwrap(),
        vendor_class: None,
        host_name: None,
        keep: false,
        boot_waits: true,
    }
}

/// Another interface of the same node and port.
pub fn partition(pkey: u16) -> Config {
    infiniband_that_sends(&RequestedId::Partition(pkey))
}

/// The identity of the interface itself.
pub fn ethernet() -> Config {
    let near = hardware();
    Config {
        identity: Identity::new(near.hardware_type, &near.address, &RequestedId::Firmware).unwrap(),
        ..infiniband()
    }
}

pub fn hardware() -> Hardware {
    Hardware::read(&Root::new("/"), "near").unwrap()
}

/// A client on `near` that records the time of its actions.
pub struct Node {
    pub session: Session,
    runtime: tokio::runtime::Runtime,
}

impl Node {
    pub fn new(config: Config) -> Node {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let session = {
            let _on_the_loop = runtime.enter();
            Session::open("near", hardware(), config).unwrap()
        };
        Node { session, runtime }
    }

    /// Runs until `done` holds, or panics with the client's progress.
    pub fn until(&mut self, seconds: u64, mut done: impl FnMut(&mut Session) -> bool) {
        let mut limit = Limit::seconds(seconds);
        while !done(&mut self.session) {
            assert!(!limit.is_over(), "{:#?}", self.session.progress());
            let left = limit.left();
            let wait = self.session.due().map_or(left, |due| {
                Duration::from_nanos(due.saturating_sub(boottime_ns())).min(left)
            });
            let session = &mut self.session;
            self.runtime.block_on(async {
                if tokio::time::timeout(wait, session.changed()).await.is_err() {
                    session.wake();
                }
            });
        }
    }

    /// Waits for the lease, at most this many seconds.
    pub fn lease(&mut self, seconds: u64) -> Lease {
        self.until(seconds, |session| {
            session.outcomes().contains(&Outcome::Bound)
        });
        self.session.lease().unwrap().clone()
    }

    /// Waits for the end of the probes; no host answers them.
    pub fn unopposed(&mut self) {
        self.until(5, |session| {
            session.outcomes().contains(&Outcome::Unopposed)
        });
    }

    /// Starts, and returns the lease.
    pub fn boot(&mut self, known: Option<Ipv4Addr>) -> Lease {
        self.session.start(known);
        self.lease(20)
    }
}
