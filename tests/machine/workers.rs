// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes of `up` that decode and load: what they can do, and what ends them.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ibboot::loader;
use ibboot::system::decoder;
use ibboot::system::modules::Index;
use ibboot::system::root::Root;
use ibboot::system::worker::{receive_from, send_to};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept, bind, listen, recv,
    socket, socketpair,
};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, dup, mkfifo};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};

use super::{IBBOOT, alone, index_of, ip, on_own_run, pace, skip};

/// A worker with this end of its socket.
fn worker(job: &str, far: OwnedFd) -> Child {
    Command::new(IBBOOT)
        .args(["worker", job])
        .stdin(Stdio::from(far))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The soft and the hard limit of RLIMIT_DATA in /proc/PID/limits.
fn memory_limit(limits: &str) -> [&str; 2] {
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max data size"));
    let mut words = line.unwrap().split_whitespace();
    [(); 2].map(|()| words.next().unwrap())
}

/// Whatever the kernel lacks, the decoder has no capability; this kernel has seccomp.
#[test]
fn the_decoder_has_no_power() {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (near, far) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
    // Whoever started the program may have left a file open.
    let left_open = dup(fs::File::open("/etc/passwd").unwrap()).unwrap();
    let mut decoder = worker(decoder::JOB, far);
    let receive = || receive_from::<Value>(near.as_fd(), MsgFlags::empty());
    let send = |message: Value| send_to(near.as_fd(), &message, MsgFlags::empty()).unwrap();
    let lacks = receive().unwrap()["Confined"].to_string();
    assert!(!lacks.contains("seccomp"), "{lacks}");
    drop(left_open);

    let directory = format!("/proc/{}", decoder.id());
    let status = fs::read_to_string(format!("{directory}/status")).unwrap();
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(line(set), "0000000000000000", "{set}");
    }
    assert_eq!(
        (line("NoNewPrivs:"), line("Seccomp:")),
        ("1".into(), "2".into())
    );

    let open = fs::read_dir(format!("{directory}/fd")).unwrap().count();
    assert!(open == 3 || lacks.contains("close_range"), "{open} files");
    let limits = fs::read_to_string(format!("{directory}/limits")).unwrap();
    assert_eq!(memory_limit(&limits), ["16777216", "16777216"]);
    // The largest packet, and a small one afterwards.
    let largest = "ff:".repeat(0xffff);
    send(json!({"format": "dhcp", "context": false, "bytes": largest.trim_end_matches(':')}));
    assert_eq!(receive().unwrap(), json!({"Decoded": "Foreign"}));
    send(json!({"format": "arp", "context": null, "bytes": "00:01"}));
    assert_eq!(receive().unwrap(), json!({"Decoded": null}));
    send(json!({"format": "dhcp", "context": false, "bytes": ""}));
    assert_eq!(receive().unwrap(), json!({"Decoded": "Foreign"}));
    // No such format: the decoder ends, and the next message finds a new one.
    send(json!({"format": "sysfs", "context": null, "bytes": ""}));
    assert_eq!(receive().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(decoder.wait().unwrap().code(), Some(1));
}

#[test]
fn a_decoder_with_a_lower_limit_of_memory_decodes() {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (near, far) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
    let mut decoder = Command::new("sh")
        .args(["-c", "ulimit -d 8192; exec \"$0\" worker decode", IBBOOT])
        .stdin(Stdio::from(far))
        .spawn()
        .unwrap();
    let receive = || receive_from::<Value>(near.as_fd(), MsgFlags::empty());
    let first = receive().unwrap();
    assert!(first["Confined"].is_array(), "{first}");
    let limits = fs::read_to_string(format!("/proc/{}/limits", decoder.id())).unwrap();
    assert_eq!(memory_limit(&limits), ["8388608", "8388608"]);
    let arp = json!({"format": "arp", "context": null, "bytes": "00:01"});
    send_to(near.as_fd(), &arp, MsgFlags::empty()).unwrap();
    assert_eq!(receive().unwrap(), json!({"Decoded": null}));
    drop(near);
    assert!(decoder.wait().unwrap().success());
}

/// Where a filter forbids capset(2), as `SystemCallFilter=~@privileged` in a unit does.
#[test]
fn a_decoder_that_keeps_its_power_says_why_and_decodes_nothing() {
    let forbidden = BTreeMap::from([(libc::SYS_capset, Vec::new())]);
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(forbidden, SeccompAction::Allow, refuse, arch).unwrap();
    let filter: BpfProgram = filter.try_into().unwrap();
    let flags = SockFlag::SOCK_CLOEXEC;
    let (near, far) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
    // What comes before the decoder has ended is read too.
    let arp = json!({"format": "arp", "context": null, "bytes": "00:01"});
    send_to(near.as_fd(), &arp, MsgFlags::empty()).unwrap();
    // A filter is that of one thread, and of what the thread starts.
    let start = move || {
        seccompiler::apply_filter(&filter).unwrap();
        worker(decoder::JOB, far)
    };
    let mut decoder = std::thread::spawn(start).join().unwrap();
    assert_eq!(decoder.wait().unwrap().code(), Some(1));
    let receive = || receive_from::<Value>(near.as_fd(), MsgFlags::empty());
    let why = json!({"Unconfined": "capset: Operation not permitted"});
    assert_eq!(receive().unwrap(), why);
    assert_eq!(receive().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

/// The process that `up` starts, in a network and with a host name of its own.
#[test]
fn the_loader_writes_what_is_requested_and_nothing_else() {
    let flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWNS;
    alone::run("loader", flags, &[("sysfs", "/sys")], || {
        ip("link add near type veth peer name far");
        // A file whose write does not end.
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let stuck = "/proc/sys/net/ipv6/conf/near/autoconf";
        mount(
            Some(&fifo),
            stuck,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .unwrap();
        let flags = SockFlag::SOCK_CLOEXEC;
        let (near, far) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
        let mut loader = worker(loader::JOB, far);
        let ask = |request: Value| {
            send_to(near.as_fd(), &json!([7, request]), MsgFlags::empty()).unwrap();
            let answer: Value = receive_from(near.as_fd(), MsgFlags::empty()).unwrap();
            assert_eq!(answer[0], 7);
            answer[1]["Done"].clone()
        };
        let index = index_of("near");
        let ipv6_of = |interface: Value, setting: &str| json!({"Write": {"Ipv6": {"interface": interface, "setting": setting, "value": "0"}}});
        let ipv6 =
            |name: &str, setting: &str| ipv6_of(json!({"name": name, "index": index}), setting);
        let done = json!({"Ok": null});
        let stuck = json!([1, ipv6("near", "autoconf")]);
        send_to(near.as_fd(), &stuck, MsgFlags::empty()).unwrap();
        assert_eq!(ask(json!({"Write": {"HostName": "n1.hpc"}})), done);
        assert_eq!(ask(ipv6("near", "accept_ra")), done);
        // The files of this thread's network and name.
        let read = |path: &str| fs::read_to_string(path).unwrap().trim().to_owned();
        assert_eq!(read("/proc/sys/kernel/hostname"), "n1.hpc");
        assert_eq!(read("/proc/sys/net/ipv6/conf/near/accept_ra"), "0");
        for (request, found) in [
            (ipv6("../near", "accept_ra"), "../near"),
            (ipv6("near", "forwarding"), "forwarding"),
            (ipv6("all", "accept_ra"), "all"),
            (json!({"Probe": "ffff:00:00.0"}), "ffff:00:00.0"),
            (json!({"Probe": "../../class"}), "../../class"),
            (
                json!({"Load": {"module": "ext4", "parameters": []}}),
                "ext4",
            ),
        ] {
            assert_eq!(ask(request)["Err"]["found"], found);
        }
        let far = ipv6_of(json!({"name": "far", "index": index}), "accept_ra");
        let far = ask(far)["Err"].clone();
        assert_eq!(far["what"], "this name has another interface now");
        assert_eq!(far["expected"], index.to_string());
        assert_ne!(read("/proc/sys/net/ipv6/conf/far/accept_ra"), "0");
        // No such request: the loader ends.
        let path = json!([8, {"File": "/proc/sysrq-trigger"}]);
        send_to(near.as_fd(), &path, MsgFlags::empty()).unwrap();
        let ended = receive_from::<Value>(near.as_fd(), MsgFlags::empty());
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(loader.wait().unwrap().code(), Some(1));
    });
}

/// Gives this mount namespace an index with the module ib_umad; false if the kernel has no overlayfs.
fn has_module_index() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let lib = fs::canonicalize("/lib").unwrap();
    let modules = format!("/run/upper/modules/{}", release.trim());
    fs::create_dir_all(&modules).unwrap();
    fs::create_dir("/run/work").unwrap();
    let umad = "kernel/drivers/infiniband/core/ib_umad.ko:\n";
    fs::write(format!("{modules}/modules.dep"), umad).unwrap();
    let layers = format!(
        "lowerdir={},upperdir=/run/upper,workdir=/run/work",
        lib.display()
    );
    let overlay = Some("overlay");
    mount(overlay, &lib, overlay, MsFlags::empty(), Some(&*layers)).is_ok()
}

#[test]
fn up_waits_for_no_loader_past_its_deadline_or_a_signal() {
    on_own_run("silent loader", || {
        if !has_module_index() {
            skip::test("silent loader", "the kernel has no overlayfs");
            return;
        }
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        // In the place of systemd.
        let flags = SockFlag::SOCK_CLOEXEC;
        let listener = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
        let address = UnixAddr::new(loader::SOCKET).unwrap();
        bind(listener.as_raw_fd(), &address).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        // No link needs ib_umad.
        let reason = "pci=ffff:00:00.0: no such RDMA port: ";
        for (timeout_s, signal) in [
            (1, None),
            (600, Some(Signal::SIGTERM)),
            (600, Some(Signal::SIGINT)),
        ] {
            let line = format!(
                "rd.ib.require=pci=ffff:00:00.0 rd.driver.post=ib_umad rd.ib.timeout={timeout_s}"
            );
            fs::write("/run/cmdline", line).unwrap();
            let (here, none) = (Some("/run/cmdline"), None::<&str>);
            mount(here, "/proc/cmdline", none, MsFlags::MS_BIND, none).unwrap();
            let mut up = Command::new(IBBOOT)
                .arg("up")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let near = accept(listener.as_raw_fd()).unwrap();
            let mut request = [0; 1024];
            let length = recv(near, &mut request, MsgFlags::empty()).unwrap();
            let request: Value = serde_json::from_slice(&request[..length]).unwrap();
            assert_eq!(request[1]["Load"]["module"], "ib_umad");
            if let Some(signal) = signal {
                kill(Pid::from_raw(up.id().try_into().unwrap()), signal).unwrap();
            }
            let mut limit = pace::Limit::seconds(20);
            let status = loop {
                match up.try_wait().unwrap() {
                    Some(status) => break status,
                    None => assert!(!limit.is_over(), "{signal:?}: up does not end"),
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            assert_eq!(status.code(), Some(1));
            let result = fs::read_to_string("/run/ibboot/result").unwrap();
            let expected = format!("failed continue\n{reason}");
            assert!(result.starts_with(&expected), "{result}");
        }
    });
}

#[test]
fn without_its_socket_the_loader_is_no_powerless_child() {
    on_own_run("no socket", || {
        if !has_module_index() {
            skip::test("no socket", "the kernel has no overlayfs");
            return;
        }
        // As ProtectKernelModules= hides the modules from a unit without these capabilities.
        let hidden = fs::Permissions::from_mode(0o000);
        fs::set_permissions("/lib/modules", hidden).unwrap();
        fs::write("/run/cmdline", "rd.ib.require=1 rd.driver.post=ib_umad").unwrap();
        let (here, none) = (Some("/run/cmdline"), None::<&str>);
        mount(here, "/proc/cmdline", none, MsFlags::MS_BIND, none).unwrap();
        let up = Command::new("setpriv")
            .args([
                "--bounding-set=-dac_override,-dac_read_search",
                IBBOOT,
                "up",
            ])
            .output()
            .expect("setpriv (util-linux)");
        assert_eq!(up.status.code(), Some(1));
        assert_eq!(
            fs::read_to_string("/run/ibboot/result").unwrap(),
            "failed continue\nloader: no answer to: read the index of modules: \
             /run/ibboot-loader: No such file or directory: see ibboot-loader.socket\n"
        );
    });
}

#[test]
fn the_loader_saves_the_index_of_modules() {
    on_own_run("index", || {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (near, far) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
        let mut loader = worker(loader::JOB, far);
        send_to(near.as_fd(), &json!([1, "Index"]), MsgFlags::empty()).unwrap();
        let answer: Value = receive_from(near.as_fd(), MsgFlags::empty()).unwrap();
        assert_eq!(answer, json!([1, {"Done": {"Ok": null}}]));
        let saved = fs::read("/run/ibboot/modules.json").unwrap();
        let saved: Index = serde_json::from_slice(&saved).unwrap();
        assert_eq!(saved, Index::read(&Root::new("/")).unwrap());
        // Nobody needs the loader any longer.
        drop(near);
        assert!(loader.wait().unwrap().success());
    });
}
