// SPDX-License-Identifier: MIT OR Apache-2.0
//! A boot with secrets on its command line and in its DHCP server's answer: the whole `ibboot up`,
//! on an interface that sysfs shows as InfiniBand, then every other command. dracut gets the
//! unchanged root path; no secret goes anywhere else.

use std::fs;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use nix::mount::{MsFlags, mount};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::network::{Server, ip, until, with_network};
use super::servers::dnsmasq;
use crate::program;

/// Each secret is `S3CR3T` and a number.
const CMDLINE: &str = "root=dhcp ip=ib0:dhcp rd.ib.timeout=60 rd.debug rd.ib.handover=keep \
    rd.iscsi.username=S3CR3T10 rd.iscsi.password=S3CR3T11 rd.iscsi.in.password=S3CR3T12 \
    rd.iscsi.param=node.session.auth.password=S3CR3T13 inst.ks=https://S3CR3T14@10.9.0.1/ks?t=S3CR3T15 \
    rd.ib.token=S3CR3T16 systemd.set_credential=key:S3CR3T17 \
    rd.nvmf.discover=tcp,10.9.0.1,,4420,DHHC-1:00:S3CR3T18:\n";
const ROOT_PATH: &str = "iscsi:user:S3CR3T20:in:S3CR3T21@10.9.0.1::::iqn.2026-01.test:disk";
const BOOT_FILE: &str = "http://user:S3CR3T22@10.9.0.1/boot?token=S3CR3T23";
const SECRET: &str = "S3CR3T";
/// A copy of the program where no mount of the test hides it.
const PROGRAM: &str = "/run/program";
const LOGS: [&str; 2] = ["/dev/kmsg", "/dev/console"];

/// The near end of the veth pair as port 1 of mlx5_0, in an initramfs. Returns the kernel log and
/// the console.
fn in_initramfs() -> [File; 2] {
    for call in [
        "link set near down",
        "link set near name ib0",
        "link set ib0 up",
    ] {
        ip(call);
    }
    until("a veth pair that carries", || {
        ip("link show ib0").contains("qdisc noqueue state UP")
    });
    let bind = |from: &str, to: &str| {
        mount(Some(from), to, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
    };
    let tmpfs = |place: &str| {
        let none = None::<&str>;
        mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::empty(), none).unwrap();
    };
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sys/connectx6-hdr/sys");
    let copied = Command::new("cp").args(["-r", tree, "/run/sys"]).status();
    assert!(copied.unwrap().success());
    fs::create_dir("/run/kernel").unwrap();
    let none = None::<&str>;
    mount(
        Some("sysfs"),
        "/run/kernel",
        Some("sysfs"),
        MsFlags::empty(),
        none,
    )
    .unwrap();
    let (made_up, real) = ("/run/sys/class/net/ib0", "/run/kernel/class/net/ib0");
    for file in ["ifindex", "flags", "carrier", "mtu", "operstate"] {
        fs::remove_file(format!("{made_up}/{file}")).unwrap();
        symlink(format!("{real}/{file}"), format!("{made_up}/{file}")).unwrap();
    }
    fs::copy(format!("{real}/ifindex"), format!("{made_up}/iflink")).unwrap();
    // The first six bytes are an Ethernet broadcast address; the P_Key is at its place in an IPoIB
    // address.
    let broadcast = "ff:ff:ff:ff:ff:ff:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff\n";
    fs::write(format!("{made_up}/broadcast"), broadcast).unwrap();
    fs::remove_dir_all("/run/sys/class/net/ib1").unwrap();
    for module in ["ib_ipoib", "mlx5_ib"] {
        fs::create_dir_all(format!("/run/sys/module/{module}")).unwrap();
        fs::write(format!("/run/sys/module/{module}/initstate"), "live\n").unwrap();
    }
    bind("/run/sys", "/sys");
    // The project may lie below /tmp.
    program::copy(PROGRAM);
    tmpfs("/tmp");
    fs::set_permissions("/tmp", PermissionsExt::from_mode(0o1777)).unwrap();
    tmpfs("/etc");
    fs::write("/etc/initrd-release", "").unwrap();
    fs::write("/run/cmdline", CMDLINE).unwrap();
    bind("/run/cmdline", "/proc/cmdline");
    fs::create_dir("/run/dev").unwrap();
    fs::write("/run/dev/null", "").unwrap();
    for name in LOGS {
        mkfifo(name.replace("/dev", "/run/dev").as_str(), Mode::S_IRWXU).unwrap();
    }
    bind("/dev/null", "/run/dev/null");
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some("/run/dev"), "/dev", none, flags, none).unwrap();
    // Opened for reading and writing: no writer blocks, and the text stays in the pipe.
    LOGS.map(|name| {
        let mut log = OpenOptions::new();
        let log = log.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        log.open(name).unwrap()
    })
}

/// The new text in the kernel log since the last call; the console gets what a quiet kernel does
/// not print.
fn logged(logs: &mut [File; 2]) -> String {
    let [kernel, _] = logs.each_mut().map(|log| {
        let mut output = Vec::new();
        match log.read_to_end(&mut output) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            other => panic!("{other:?}"),
        }
        let output = String::from_utf8(output).unwrap();
        assert!(!output.contains(SECRET), "{output}");
        output
    });
    kernel
}

fn ibboot(arguments: &str) -> Output {
    let run = Command::new(PROGRAM)
        .args(arguments.split(' '))
        .output()
        .unwrap();
    for output in [&run.stdout, &run.stderr] {
        let output = String::from_utf8(output.clone()).unwrap();
        assert!(!output.contains(SECRET), "{arguments}: {output}");
    }
    run
}

fn exits(arguments: &str, code: i32) -> String {
    let run = ibboot(arguments);
    assert_eq!(run.status.code(), Some(code), "{arguments}: {run:?}");
    String::from_utf8(run.stdout).unwrap()
}

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The root path in dracut's file; the file is removed so that the next run must write it again.
fn told_to_dracut() -> String {
    const OPTIONS: &str = "/tmp/dhclient.ib0.dhcpopts";
    assert_eq!(mode(OPTIONS), 0o600);
    let text = fs::read_to_string(OPTIONS).unwrap();
    fs::remove_file(OPTIONS).unwrap();
    let mut lines = text.lines();
    let path = lines.find_map(|line| line.strip_prefix("new_root_path="));
    path.unwrap().trim_matches('\'').to_owned()
}

/// The files below `place` that contain a secret, without the files of the test itself.
fn with_a_secret(place: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(place).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = path.to_str().unwrap().to_owned();
        let is_ours = [
            "/run/kernel",
            "/run/netns",
            "/run/cmdline",
            "/run/dnsmasq.log",
        ]
        .contains(&name.as_str());
        if kind.is_dir() && !is_ours {
            with_a_secret(&path, found);
        } else if kind.is_file()
            && !is_ours
            && String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(SECRET)
        {
            found.push(name);
        }
    }
}

#[test]
fn a_whole_boot_tells_its_secrets_to_dracut_alone() {
    with_network("secrets of a boot", &["dnsmasq"], || {
        let root_path = format!("--dhcp-option=option:root-path,{ROOT_PATH}");
        let boot_file = format!("--dhcp-option=option:bootfile-name,{BOOT_FILE}");
        let _server = dnsmasq(&[
            "--dhcp-range=10.9.0.10,10.9.0.10,255.255.255.0,1h",
            &root_path,
            &boot_file,
        ]);
        let mut logs = in_initramfs();
        exits("up --reserve", 0);
        // A second run continues the lease of the first; state.json does not contain the root path.
        for _ in 0..2 {
            let run = ibboot("up");
            let output = logged(&mut logs);
            assert_eq!(run.status.code(), Some(0), "{output}");
            assert_eq!(
                fs::read_to_string("/run/ibboot/result").unwrap(),
                "verified\ninvalid argument: /proc/cmdline:252: rd.ib.token=****: unknown argument; \
                 see ibboot.cmdline(7) for all arguments\n"
            );
            assert_eq!(told_to_dracut(), ROOT_PATH);
            assert!(
                output.contains("rd.ib.token=****: unknown argument"),
                "{output}"
            );
        }
        exits("up --hand-over", 0);
        logged(&mut logs);
        fs::remove_file("/etc/initrd-release").unwrap();
        let files = [("state", 0o600), ("expected", 0o644), ("check", 0o644)];
        // The misspelt argument makes the result of every check unknown.
        for (format, code) in [
            ("text", 3),
            ("json", 3),
            ("nagios", 3),
            ("prom", 3),
            ("nhc", 1),
        ] {
            exits(&format!("check --record --format {format}"), code);
        }
        for (name, wanted) in files {
            assert_eq!(mode(&format!("/run/ibboot/{name}.json")), wanted, "{name}");
        }
        for format in ["text", "json", "svg"] {
            exits(&format!("timeline --format {format}"), 0);
        }
        for format in ["text", "json"] {
            exits(&format!("plan --format {format}"), 1);
        }
        exits("facts", 0);
        exits("-v facts --tree /run/tree", 0);
        assert_eq!(mode("/run/tree"), 0o700);
        // The saved tree gives the same answer as the machine.
        let timeline = exits("timeline", 0);
        assert_eq!(exits("timeline --root /run/tree", 0), timeline);
        let plan = exits("plan --root /run/tree", 1);
        assert!(plan.contains("ib0: up, carrier, DHCP"), "{plan}");
        let check = ibboot("check --format json --root /run/tree").stdout;
        let check: serde_json::Value = serde_json::from_slice(&check).unwrap();
        let findings = check["links"][0]["checks"].as_array().unwrap().iter();
        let mut lease = findings.filter(|finding| finding["check"] == "lease.present");
        assert_eq!(lease.next().unwrap()["status"], "ok");
        // A user other than root cannot read the lease; the error must not claim that no lease
        // exists.
        let mut nobody = Command::new(PROGRAM);
        let run = nobody
            .args(["check", "--all"])
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        let output = String::from_utf8(run.stdout).unwrap();
        let unknown = "  UNKNOWN   lease.present              /run/ibboot/state.json: cannot be read: \
             Permission denied\n";
        assert!(output.contains(unknown), "{output}");
        let mut lease = Server::here("lease", &[PROGRAM, "-v", "lease"]);
        lease.reports("10.9.0.10/24 of 10.9.0.1 is kept");
        drop(lease);
        let mut found = Vec::new();
        for place in ["/run", "/tmp", "/etc"] {
            with_a_secret(Path::new(place), &mut found);
        }
        assert_eq!(found, [""; 0]);
    });
}
