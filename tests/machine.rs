// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real kernel in private namespaces: rtnetlink in an empty network, the handover on a private
//! /run. Needs root; without root each test reports that it was skipped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod pace;

use std::fs;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ibboot::dhcp::hardware::Hardware;
use ibboot::facts::{AddressState, FoundAddress, Netdev};
use ibboot::handover::RESULT;
use ibboot::hardware::HardwareType;
use ibboot::inet::{Address, Route};
use ibboot::loader;
use ibboot::system::decoder;
use ibboot::system::directory::Directory;
use ibboot::system::modules::Index;
use ibboot::system::net::Net;
use ibboot::system::root::Root;
use ibboot::system::worker::{receive_from, send_to};
use ibboot::up::taken::Claims;
use kernel_cmdline::HwAddr;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept, bind, listen, recv,
    socket, socketpair,
};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, dup, geteuid, mkfifo};
use serde_json::{Value, json};

const IBBOOT: &str = env!("CARGO_BIN_EXE_ibboot");

/// Runs `test` on a thread with its own namespaces. Without root, prints that the test was skipped.
fn alone(name: &str, flags: CloneFlags, test: impl FnOnce() + Send + 'static) {
    decoder::use_program(IBBOOT.into());
    if !geteuid().is_root() {
        eprintln!("skipped: {name}: root is needed for namespaces");
        return;
    }
    std::thread::spawn(move || {
        unshare(flags).expect("unshare");
        test();
    })
    .join()
    .expect("the test's thread panicked");
}

fn ip(arguments: &str) -> String {
    let run = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .expect("ip");
    let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "ip {arguments}: {stderr}");
    String::from_utf8(run.stdout).expect("text")
}

fn index_of(name: &str) -> u32 {
    let json: serde_json::Value =
        serde_json::from_str(&ip(&format!("-j link show {name}"))).unwrap();
    u32::try_from(json[0]["ifindex"].as_u64().unwrap()).unwrap()
}

fn in_empty_network(name: &str, test: impl AsyncFnOnce(Net) + Send + 'static) {
    alone(name, CloneFlags::CLONE_NEWNET, move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let net = Net::open().expect("rtnetlink");
            let mut test = std::pin::pin!(test(net));
            let mut limit = pace::Limit::seconds(20);
            while tokio::time::timeout(limit.left(), &mut test).await.is_err() {
                assert!(!limit.is_over(), "no result within 20 s");
            }
        });
    });
}

#[test]
fn a_second_default_route_is_appended() {
    in_empty_network("two-gateways", async |net: Net| {
        for (name, peer, subnet) in [("near0", "far0", 0), ("near1", "far1", 1)] {
            ip(&format!("link add {name} type veth peer name {peer}"));
            ip(&format!("link set {peer} up"));
            ip(&format!("link set {name} up"));
            ip(&format!("address add 10.{subnet}.0.2/24 dev {name}"));
            ip(&format!("address add fd00:{subnet}::2/64 dev {name} nodad"));
        }
        let indexes = ["near0", "near1"].map(index_of);
        for gateways in [["10.0.0.1", "10.1.0.1"], ["fd00:0::1", "fd00:1::1"]] {
            let routes = gateways.map(|gateway| Route::default_through(gateway.parse().unwrap()));
            net.add_route(indexes[0], &routes[0]).await.unwrap();
            // The second call finds the same route.
            for _ in 0..2 {
                net.append_route(indexes[1], &routes[1]).await.unwrap();
            }
        }
        let lines = |family: &str| ip(&format!("{family} -oneline route show default"));
        let (v4, v6) = (lines("-4"), lines("-6"));
        let at = |text: &str, route: &str| text.find(route).unwrap_or_else(|| panic!("{text}"));
        assert!(at(&v4, "via 10.0.0.1 dev near0") < at(&v4, "via 10.1.0.1 dev near1"));
        assert!(at(&v6, "via fd00::1 dev near0") < at(&v6, "via fd00:1::1 dev near1"));
        assert_eq!(
            v4.matches("via").count() + v6.matches("via").count(),
            4,
            "{v4}{v6}"
        );
        let route = Route::default_through("10.1.0.1".parse().unwrap());
        net.delete_route(indexes[1], &route).await.unwrap();
        assert_eq!(lines("-4").matches("via").count(), 1);
    });
}

#[test]
fn a_link_is_set_up_addressed_and_renamed_as_ip_shows_it() {
    in_empty_network("rtnetlink", async |net: Net| {
        ip("link add near type veth peer name far");
        ip("link set far up");
        let index = index_of("near");
        net.rename(index, "storage0").await.unwrap();
        net.set_up("storage0", index).await.unwrap();
        net.set_up("storage0", index).await.unwrap();
        net.set_mtu(index, 1400).await.unwrap();
        let address: IpAddr = "10.9.8.7".parse().unwrap();
        for _ in 0..2 {
            net.add_address(index, address, 24, None).await.unwrap();
            let v6: IpAddr = "fd00:9::7".parse().unwrap();
            net.add_address(index, v6, 64, None).await.unwrap();
            let route = Route::default_through("10.9.8.1".parse().unwrap());
            net.add_route(index, &route).await.unwrap();
            for (network, prefix, gateway) in [
                ("10.20.0.0", 16, Some("10.9.8.2")),
                ("10.30.0.0", 16, None),
                ("fd00:20::", 64, Some("fd00:9::2")),
                ("fd00:30::", 64, None),
            ] {
                let network = Address {
                    address: network.parse().unwrap(),
                    prefix,
                };
                let gateway = gateway.map(|gateway: &str| gateway.parse().unwrap());
                let route = Route { network, gateway };
                net.add_route(index, &route).await.unwrap();
            }
        }
        let other = "10.9.7.7".parse().unwrap();
        let peer = Some("10.9.6.6".parse().unwrap());
        net.add_address(index, other, 32, peer).await.unwrap();
        let json: serde_json::Value = serde_json::from_str(&ip("-j addr show storage0")).unwrap();
        let link = &json[0];
        assert_eq!(link["mtu"], 1400);
        assert!(
            link["flags"]
                .as_array()
                .unwrap()
                .iter()
                .any(|flag| flag == "UP")
        );
        let addresses: Vec<String> = link["addr_info"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|a| a["scope"] == "global")
            .map(|a| format!("{}/{}", a["local"].as_str().unwrap(), a["prefixlen"]))
            .collect();
        assert_eq!(addresses, ["10.9.8.7/24", "10.9.7.7/32", "fd00:9::7/64"]);
        assert_eq!(link["addr_info"][1]["address"], "10.9.6.6");
        let routes = |call: &str| -> Vec<String> {
            let lines = ip(call);
            let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.lines().map(plain).collect()
        };
        assert_eq!(
            routes("-4 route show proto static"),
            [
                "default via 10.9.8.1 dev storage0",
                "10.20.0.0/16 via 10.9.8.2 dev storage0",
                "10.30.0.0/16 dev storage0 scope link",
            ]
        );
        assert_eq!(
            routes("-6 route show proto static"),
            [
                "fd00:20::/64 via fd00:9::2 dev storage0 metric 1024 pref medium",
                "fd00:30::/64 dev storage0 metric 1024 pref medium",
            ]
        );
    });
}

fn usable(text: &str) -> FoundAddress {
    text.parse::<Address>().unwrap().into()
}

fn in_state(netdev: &Netdev, state: AddressState) -> Vec<String> {
    let found = netdev.addresses_in(state);
    found.map(|address| address.to_string()).collect()
}

#[test]
fn an_address_of_another_host_is_found_at_once_or_within_a_second() {
    in_empty_network("address probe", async |net: Net| {
        ip("link add near type veth peer name far");
        ip("link set far address 52:54:00:00:00:02");
        ip("addr add 10.9.8.7/24 dev far");
        ip("link set far up");
        net.set_up("near", index_of("near")).await.unwrap();
        let near: serde_json::Value = serde_json::from_str(&ip("-j link show near")).unwrap();
        let address = near[0]["address"].as_str().unwrap();
        let hardware = Hardware {
            index: index_of("near"),
            hardware_type: HardwareType::Ethernet,
            address: HwAddr::parse(address).unwrap().as_bytes().to_vec(),
            broadcast: vec![0xff; 6],
        };
        let mut claims = Claims::new(false);
        let near = index_of("near");
        let addresses = ["10.9.8.8/24", "10.9.8.7/24"];
        let mut netdevs = [Netdev {
            ifindex: Some(near),
            addresses: addresses.map(usable).to_vec(),
            ..Netdev::default()
        }];
        for address in ["10.9.8.8", "10.9.8.7"] {
            // The address is set at once; outside a boot it does not count before its probe ends.
            assert!(claims.claim(&hardware, address.parse().unwrap()).unwrap());
        }
        claims.add_to(&mut netdevs);
        assert_eq!(
            in_state(&netdevs[0], AddressState::Tentative),
            ["10.9.8.8/24", "10.9.8.7/24"]
        );
        let began = Instant::now();
        while claims.owner(near, "10.9.8.7".parse().unwrap()).is_none() {
            tokio::time::sleep_until(claims.due().unwrap()).await;
            claims.listen();
        }
        assert!(began.elapsed() < Duration::from_secs(1) * pace::now());
        assert!(
            !claims
                .claim(&hardware, "10.9.8.7".parse().unwrap())
                .unwrap()
        );
        netdevs[0].addresses = addresses.map(usable).to_vec();
        claims.add_to(&mut netdevs);
        let words = ["10.9.8.7 is in use by 52:54:00:00:00:02".to_owned()];
        assert_eq!(netdevs[0].taken, words);
        assert_eq!(
            in_state(&netdevs[0], AddressState::Tentative),
            ["10.9.8.8/24"]
        );
        assert_eq!(in_state(&netdevs[0], AddressState::Usable), ["10.9.8.7/24"]);
        // No answer at first, and then another host uses the address.
        let ten = "10.9.8.10".parse().unwrap();
        assert!(claims.claim(&hardware, ten).unwrap());
        claims.listen();
        assert!(claims.owner(near, ten).is_none());
        ip("addr add 10.9.8.10/24 dev far");
        while !claims.is_settled() {
            tokio::time::sleep_until(claims.due().unwrap()).await;
            claims.listen();
        }
        assert!(claims.owner(near, ten).is_some());
        assert!(claims.owner(near, "10.9.8.8".parse().unwrap()).is_none());
        assert!(
            claims
                .claim(&hardware, "10.9.8.9".parse().unwrap())
                .unwrap()
        );
        // Carrier is lost within that second: the address is probed again from the start.
        let nine = "10.9.8.9".parse().unwrap();
        claims.forget(near);
        assert!(claims.is_open(near, nine) && claims.is_settled());
        assert!(claims.owner(near, "10.9.8.7".parse().unwrap()).is_none());
        assert!(claims.claim(&hardware, nine).unwrap());
        assert!(!claims.is_open(near, nine));
        let began = Instant::now();
        while !claims.is_settled() {
            tokio::time::sleep_until(claims.due().unwrap()).await;
            claims.listen();
        }
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(990), "{took:?}");
        assert!(claims.owner(near, "10.9.8.9".parse().unwrap()).is_none());
    });
}

#[test]
fn carrier_is_an_event() {
    in_empty_network("carrier event", async |mut net: Net| {
        ip("link add near type veth peer name far");
        net.set_up("near", index_of("near")).await.unwrap();
        // After the events of our own changes are read, no event may arrive without a cause.
        while tokio::time::timeout(Duration::from_millis(300), net.changed())
            .await
            .is_ok()
        {}
        ip("link set far up");
        net.changed().await;
    });
}

#[test]
fn the_kernels_error_texts_are_returned() {
    in_empty_network("rtnetlink errors", async |net: Net| {
        assert_eq!(
            net.rename(4711, "x").await,
            Err("No such device".to_owned())
        );
        assert_eq!(
            net.set_up("eth7", 4711).await.unwrap_err().to_string(),
            "eth7: cannot be set up: No such device"
        );
    });
}

#[test]
fn the_alarm_rings_when_it_is_set_and_not_before() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let alarm = ibboot::system::alarm::Alarm::new().unwrap();
        let far = alarm.rings(Duration::from_secs(3600));
        assert!(
            tokio::time::timeout(Duration::from_millis(200), far)
                .await
                .is_err()
        );
        // The next wait sets the alarm again; an abandoned alarm does not fire later.
        let began = std::time::Instant::now();
        alarm.rings(Duration::from_millis(50)).await;
        assert!(began.elapsed() >= Duration::from_millis(50));
        alarm.rings(Duration::ZERO).await;
    });
}

fn on_own_run(name: &str, test: impl FnOnce() + Send + 'static) {
    alone(name, CloneFlags::CLONE_NEWNS, move || {
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), none).unwrap();
        test();
    });
}

#[test]
fn files_are_replaced_whole_and_readable() {
    on_own_run("handover", || {
        let directory = Directory::open().unwrap();
        directory.write(RESULT, b"verified\n").unwrap();
        directory.write(RESULT, b"failed shell\nwhy\n").unwrap();
        assert_eq!(
            fs::read_to_string("/run/ibboot/result").unwrap(),
            "failed shell\nwhy\n"
        );
        assert_eq!(
            fs::metadata("/run/ibboot/result")
                .unwrap()
                .permissions()
                .mode()
                & 0o7777,
            0o644
        );
        assert_eq!(
            fs::metadata("/run/ibboot").unwrap().permissions().mode() & 0o7777,
            0o755
        );
        assert_eq!(fs::read_dir("/run/ibboot").unwrap().count(), 1);
        directory.remove(RESULT).unwrap();
        directory.remove(RESULT).unwrap();
        assert_eq!(fs::read_dir("/run/ibboot").unwrap().count(), 0);
    });
}

#[test]
fn a_planted_file_is_replaced_or_refused() {
    on_own_run("planted files", || {
        fs::write("/run/victim", "untouched").unwrap();
        let directory = Directory::open().unwrap();
        // The write replaces the name, never the target of a link; a fifo does not block.
        symlink("/run/victim", "/run/ibboot/result").unwrap();
        directory.write(RESULT, b"verified\n").unwrap();
        assert_eq!(fs::read_to_string("/run/victim").unwrap(), "untouched");
        assert!(
            fs::symlink_metadata("/run/ibboot/result")
                .unwrap()
                .is_file()
        );
        nix::unistd::mkfifo("/run/ibboot/state.json", nix::sys::stat::Mode::S_IRWXU).unwrap();
        directory.write("state.json", b"{}\n").unwrap();
        assert_eq!(
            fs::read_to_string("/run/ibboot/state.json").unwrap(),
            "{}\n"
        );
        // Our temporary name, left by a killed process or forged as a link.
        let temporary = format!("/run/ibboot/.result.{}", std::process::id());
        symlink("/run/victim", &temporary).unwrap();
        directory.write(RESULT, b"verified\n").unwrap();
        assert_eq!(fs::read_to_string("/run/victim").unwrap(), "untouched");
        assert!(!fs::exists(&temporary).unwrap());
        // A directory in the place of a file is an error with its name and leaves no file behind.
        fs::create_dir("/run/ibboot/expected.json").unwrap();
        assert_eq!(
            directory
                .write("expected.json", b"{}")
                .unwrap_err()
                .to_string(),
            "/run/ibboot/expected.json: cannot be written: Is a directory"
        );
        assert!(!fs::exists(format!("/run/ibboot/.expected.json.{}", std::process::id())).unwrap());
    });
}

#[test]
fn the_file_of_a_killed_process_is_removed_by_the_next_write() {
    on_own_run("leftover", || {
        let directory = Directory::open().unwrap();
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let names = [
            // The writer has ended, lives, is no process, or wrote another file.
            format!(".state.json.{}", ended.id()),
            ".state.json.1".to_owned(),
            ".state.json.new".to_owned(),
            format!(".result.{}", ended.id()),
        ];
        for name in &names {
            fs::write(format!("/run/ibboot/{name}"), "half").unwrap();
        }
        directory.write("state.json", b"{}\n").unwrap();
        let mut left: Vec<_> = fs::read_dir("/run/ibboot").unwrap().flatten().collect();
        left.sort_by_key(fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(left, [&names[3], &names[1], &names[2], "state.json"]);
    });
}

#[test]
fn files_of_other_programs_are_written_with_their_mode_and_removed_by_their_text() {
    on_own_run("files of others", || {
        let directory = Directory::below_run("some/where").unwrap();
        directory.write_as("secret", b"yes\n", 0o600).unwrap();
        directory.write("open", b"no\n").unwrap();
        let mode = |name: &str| fs::metadata(name).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("/run/some"), 0o755);
        assert_eq!(mode("/run/some/where/secret"), 0o600);
        fs::write("/run/victim", "yes\n").unwrap();
        symlink("/run/victim", "/run/some/where/link").unwrap();
        directory.remove_if(|text| text == "yes\n").unwrap();
        let mut left: Vec<_> = fs::read_dir("/run/some/where").unwrap().flatten().collect();
        left.sort_by_key(fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(left, ["link", "open"]);
        symlink("/run/some", "/run/planted").unwrap();
        assert_eq!(
            Directory::below_run("planted/where")
                .unwrap_err()
                .to_string(),
            "/run/planted: cannot be opened: Not a directory"
        );
    });
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    on_own_run("unsafe directory", || {
        fs::create_dir("/run/ibboot").unwrap();
        fs::set_permissions("/run/ibboot", fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(
            Directory::open().unwrap_err().to_string(),
            "/run/ibboot: is not safe to write to: owner 0, mode 777, expected a directory of this user that no other user can write to"
        );
        fs::remove_dir("/run/ibboot").unwrap();
        fs::create_dir("/run/elsewhere").unwrap();
        symlink("/run/elsewhere", "/run/ibboot").unwrap();
        assert_eq!(
            Directory::open().unwrap_err().to_string(),
            "/run/ibboot: cannot be opened: Not a directory"
        );
        assert_eq!(fs::read_dir("/run/elsewhere").unwrap().count(), 0);
        fs::remove_file("/run/ibboot").unwrap();
        fs::create_dir("/run/ibboot").unwrap();
        nix::unistd::chown("/run/ibboot", Some(65534.into()), None).unwrap();
        assert_eq!(fs::metadata("/run/ibboot").unwrap().uid(), 65534);
        assert_eq!(
            Directory::open().unwrap_err().to_string(),
            "/run/ibboot: is not safe to write to: owner 65534, mode 755, expected a directory of this user that no other user can write to"
        );
    });
}

#[test]
fn a_file_of_another_user_is_not_trusted() {
    on_own_run("foreign file", || {
        let directory = Directory::open().unwrap();
        directory.write("expected.json", b"{}").unwrap();
        nix::unistd::chown("/run/ibboot/expected.json", Some(65534.into()), None).unwrap();
        let root = ibboot::system::root::Root::new("/");
        assert_eq!(
            ibboot::handover::read_expected(&root)
                .unwrap_err()
                .to_string(),
            "/run/ibboot/expected.json: is not trusted: owner 65534, mode 100644, expected a regular file of root"
        );
        fs::remove_file("/run/ibboot/expected.json").unwrap();
        nix::unistd::mkfifo("/run/ibboot/expected.json", nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert_eq!(
            ibboot::handover::read_expected(&root)
                .unwrap_err()
                .to_string(),
            "/run/ibboot/expected.json: is not trusted: owner 0, mode 10400, expected a regular file of root"
        );
    });
}

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
    let memory = limits
        .lines()
        .find(|line| line.starts_with("Max data size"));
    assert_eq!(memory.unwrap().split_whitespace().nth(3), Some("16777216"));
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
    assert!(receive().is_err());
    assert_eq!(decoder.wait().unwrap().code(), Some(1));
}

/// The process that `up` starts, in a network and with a host name of its own.
#[test]
fn the_loader_writes_what_is_requested_and_nothing_else() {
    let flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWNS;
    alone("loader", flags, || {
        ip("link add near type veth peer name far");
        // A file whose write does not end.
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
        // The interfaces of this network.
        let sysfs = Some("sysfs");
        mount(sysfs, "/sys", sysfs, MsFlags::empty(), None::<&str>).unwrap();
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
        assert!(receive_from::<Value>(near.as_fd(), MsgFlags::empty()).is_err());
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
fn up_waits_for_no_loader_past_its_deadline_or_sigterm() {
    on_own_run("silent loader", || {
        if !has_module_index() {
            eprintln!("skipped: silent loader: the kernel has no overlayfs");
            return;
        }
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        // In the place of systemd.
        let flags = SockFlag::SOCK_CLOEXEC;
        let listener = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
        let address = UnixAddr::new(loader::SOCKET).unwrap();
        bind(listener.as_raw_fd(), &address).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        let reason = "ib_umad: kernel module is not loaded: not loaded, expected live; see dmesg";
        for (timeout_s, is_stopped) in [(1, false), (600, true)] {
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
            if is_stopped {
                kill(Pid::from_raw(up.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
            }
            let mut limit = pace::Limit::seconds(20);
            let status = loop {
                match up.try_wait().unwrap() {
                    Some(status) => break status,
                    None => assert!(!limit.is_over(), "timeout={timeout_s}: up does not end"),
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            assert_eq!(status.code(), Some(1));
            let result = fs::read_to_string("/run/ibboot/result").unwrap();
            assert_eq!(result, format!("failed continue\n{reason}\n"));
        }
    });
}

#[test]
fn without_its_socket_the_loader_is_no_powerless_child() {
    on_own_run("no socket", || {
        if !has_module_index() {
            eprintln!("skipped: no socket: the kernel has no overlayfs");
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
