// SPDX-License-Identifier: MIT OR Apache-2.0
//! A secret in each place of an argument, of a file of an older ibboot or of a file of the machine:
//! no command shows a secret in any format, and no file of `facts --tree` contains one.
//! tests/dhcp/secrets.rs has a whole boot with a DHCP server that sends secrets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod skip;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const SECRET: &str = "S3CR3T";

const CMDLINE: &str = "root=LABEL=r rd.neednet=1 rd.driver.post=mlx5_ib,ib_ipoib ip=ib0:dhcp \
    ip=10.0.0.5::10.0.0.1:24::ib1:none \
    netroot=iscsi:user:S3CR3T33@10.0.0.2::::iqn.2026-01.test:di@sk \
    netroot=iscsi:user:S3CR3T34@S3CR3T35@10.0.0.2::::iqn.2026-01.test:disk \
    netroot=iscsi:iqn.2026-01.test:S3CR3T36@10.1.0.2::::eui.02004567a425678d \
    netroot=iscsi:user:iqn.S3CR3T37@10.2.0.2::::naa.6001405a \
    netroot=iscsi:user:S3CR3T01:in:S3CR3T02@10.0.0.2:::iser::1:iqn.2026-01.test:disk \
    netroot=cifs://user:S3CR3T03@10.0.0.3/share netroot=iscis:user:S3CR3T04@10.0.0.2::::iqn.a \
    rd.iscsi.username=S3CR3T05 rd.iscsi.password=S3CR3T06 rd.iscsi.in.username=S3CR3T07 \
    rd.iscsi.in.password=S3CR3T08 iscsi_password=S3CR3T09 \
    rd.iscsi.param=node.session.auth.password=S3CR3T10 \
    rd.nvmf.discover=tcp,10.0.0.2,,4420,DHHC-1:00:S3CR3T11: rd.nvmf.hostkey=S3CR3T12 \
    inst.ks=https://user:S3CR3T13@10.0.0.1/ks imgurl=http://10.0.0.1/root?token=S3CR3T14 \
    inst.repo=ftp://S3CR3T15@10.0.0.1/x#S3CR3T16 inst.vncpassword=S3CR3T17 cifspass=S3CR3T18 \
    rd.ib.token=S3CR3T19 rd.ib.iscsi:user:S3CR3T20@10.0.0.2 \"rd.ib.key=S3CR3T21 S3CR3T22\" \
    rd.ib.mode=\"connected rd.iscsi.password=S3CR3T23 root=iscsi:user:S3CR3T24@10.0.0.2";
const LIVE: &str = "ip=ib0:dhcp root=live:https://S3CR3T30:x@10.0.0.2/r.img?key=S3CR3T31";
/// A forgotten quote, which a later one closes, and a forgotten comma.
const TORN: [&str; 4] = [
    "rd.ib.timeout=\"60 rd.iscsi.password=S3CR3T dyndbg=\"file x +p\"",
    "rd.ib=1 ip=ib0:dhcp\" netroot=iscsi:u:S3CR3T@10.0.0.1::::iqn.x:y dyndbg=\"file x +p\"",
    "rd.ib=1 rd.ib.timeout=\"60 rd.iscsi.password=\"S3CR3T S3CR3T\"",
    "rd.ib=1 ip=ib0:dhcp rd.nvmf.discover=rdma,10.0.0.1,4420,S3CR3T",
];
const OF_DHCP: &str = "ip=ib0:dhcp root=dhcp netroot=dhcp rd.ib.xxx=S3CR3T32";

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn write(tree: &Path, path: &str, text: &str) {
    let path = tree.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run(tree: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ibboot"))
        .args(arguments)
        .arg("--root")
        .arg(tree)
        .output()
        .unwrap()
}

fn printed(tree: &Path, call: &str) -> String {
    String::from_utf8(run(tree, &call.split(' ').collect::<Vec<_>>()).stdout).unwrap()
}

/// A machine that booted from `cmdline`.
fn machine(cmdline: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path();
    let copied = Command::new("cp")
        .arg("-r")
        .args([
            manifest("tests/sys/connectx6-hdr/sys"),
            manifest("tests/sys/connectx6-hdr/proc"),
        ])
        .arg(tree)
        .status();
    assert!(copied.unwrap().success());
    write(tree, "proc/cmdline", cmdline);
    write(
        tree,
        "proc/self/mountinfo",
        "23 1 0:21 / / rw - fuse.live https://user:S3CR3T40@10.0.0.2/r?S3CR3T41 rw\n\
         24 23 0:22 / /home rw - cifs //10.0.0.2/home rw,password=S3CR3T42\n",
    );
    let modprobe = "blacklist nouveau\ninstall x curl -u S3CR3T43 h\noptions y key=S3CR3T44\n";
    write(tree, "etc/modprobe.d/site.conf", modprobe);
    folder
}

/// Writes the files of /run/ibboot as an older ibboot did that did not hide secrets.
fn hand_over(tree: &Path) {
    let plan: Value = serde_json::from_str(&printed(tree, "plan --format json")).unwrap();
    let mut check: Value = serde_json::from_str(&printed(tree, "check --format json")).unwrap();
    let boot_id = fs::read_to_string(tree.join("proc/sys/kernel/random/boot_id")).unwrap();
    let mut expected = plan["expectation"].clone();
    for file in [&mut expected, &mut check] {
        file["boot_id"] = boot_id.trim().into();
    }
    // Put the hidden texts back, except in the complaints: no older ibboot wrote those.
    let whole = |file: &Value| {
        let mut file = file.clone();
        file.as_object_mut().unwrap().remove("complaints");
        file.to_string().replace("****", "user:S3CR3T50")
    };
    assert!(whole(&expected).contains(SECRET));
    write(tree, "run/ibboot/expected.json", &whole(&expected));
    write(tree, "run/ibboot/check.json", &whole(&check));
    let saved = "tests/cases/dhcp/holds-and-its-address-is-gone/tree/run/ibboot/state.json";
    let mut state: Value = serde_json::from_slice(&fs::read(manifest(saved)).unwrap()).unwrap();
    let lease = &mut state["dhcp"][0]["lease"];
    lease["root_path"] = "iscsi:user:S3CR3T51@10.0.0.2::::iqn.a".into();
    lease["boot_file"] = "http://10.0.0.2/x?S3CR3T52".into();
    lease["tftp_server"] = "S3CR3T53@10.0.0.2".into();
    state["links"] = Value::Array(Vec::new());
    write(tree, "run/ibboot/state.json", &state.to_string());
    let kept = serde_json::json!({
        "schema": 1, "boot_id": boot_id.trim(), "written_ns": 0, "dhcp": state["dhcp"], "dhcp6": [], "kept": [],
    });
    write(tree, "run/ibboot/lease/leases.json", &kept.to_string());
}

const CALLS: &[&str] = &[
    "plan",
    "plan --format json",
    "plan --requested",
    "status",
    "suggest",
    "suggest --format line",
    "suggest --format json",
    "check",
    "check --all",
    "check --format json",
    "check --format nagios",
    "check --format prom",
    "check --format nhc",
    "check --format journal",
    "check --sm",
    "facts",
    "timeline",
    "timeline --format json",
    "timeline --format svg",
    "up --dry-run",
];

fn shows_none(tree: &Path) {
    for call in CALLS {
        let arguments: Vec<&str> = ["-v"].into_iter().chain(call.split(' ')).collect();
        let run = run(tree, &arguments);
        assert_ne!(run.status.code(), Some(64), "{call}: {run:?}");
        for output in [run.stdout, run.stderr] {
            let output = String::from_utf8(output).unwrap();
            assert!(!output.contains(SECRET), "{call}: {output}");
        }
    }
}

/// The files and links below `place`, each with its content.
fn files(place: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files(&path));
        } else if kind.is_file() {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            found.push((path, text));
        }
    }
    found
}

/// A saved tree of `tree`.
fn saved(tree: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("tree");
    let run = run(tree, &["-v", "facts", "--tree", copy.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    for output in [run.stdout, run.stderr] {
        assert!(!String::from_utf8(output).unwrap().contains(SECRET));
    }
    assert_eq!(
        fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
        0o700
    );
    for (path, text) in files(&copy) {
        assert!(!text.contains(SECRET), "{}: {text}", path.display());
        // docs/reporting-a-bug.md.
        let inside = path.strip_prefix(&copy).unwrap();
        let places = [
            "sys",
            "proc",
            "run/ibboot",
            "run/initramfs/cmdline.d",
            "run/udev",
            "etc/udev/rules.d",
            "etc/systemd/network",
            "etc/initrd-release",
            "etc/cmdline",
            "etc/cmdline.d",
            "etc/modprobe.d",
        ];
        assert!(
            places.iter().any(|place| inside.starts_with(place)),
            "{}",
            path.display()
        );
    }
    folder
}

#[test]
fn no_command_shows_a_secret() {
    for cmdline in [CMDLINE, LIVE, OF_DHCP] {
        let folder = machine(cmdline);
        let tree = folder.path();
        assert_eq!(run(tree, &["plan", "--requested"]).status.code(), Some(0));
        shows_none(tree);
        // In the initramfs, with arguments in other files.
        write(tree, "etc/initrd-release", "");
        write(
            tree,
            "etc/cmdline.d/a.conf",
            "netroot=iscsi:u:S3CR3T60@10.0.0.2::::iqn.a\n",
        );
        write(tree, "etc/cmdline", "rd.ib.typo=S3CR3T61\n");
        write(
            tree,
            "run/initramfs/cmdline.d/b.conf",
            "inst.ks=http://h/?S3CR3T62\n",
        );
        shows_none(tree);
        let plan = printed(tree, "plan");
        assert!(
            plan.contains("wrong: /etc/cmdline:1: rd.ib.typo=****: unknown argument"),
            "{plan}"
        );
        saved(tree);
    }
}

#[test]
fn no_command_shows_a_secret_behind_a_forgotten_quote() {
    for cmdline in TORN {
        let folder = machine(cmdline);
        shows_none(folder.path());
        saved(folder.path());
    }
    let folder = machine("");
    let line = "rd.ib=1 ip=ib0:dhcp rd.iscsi.password=S3CR3T rd.ib.mode=\"connected\" root=iscsi:u:S3CR3T@h \
                rd.ib.timeout=60 rd.ib.token=S3CR3T rd.ib.rate=200 dyndbg=\"file x +p\"";
    for at in 0..line.len() {
        let mut line = line.to_owned();
        line.insert(at, '"');
        let run = run(folder.path(), &["-v", "plan", "--cmdline", &line]);
        for output in [run.stdout, run.stderr] {
            let output = String::from_utf8(output).unwrap();
            assert!(!output.contains(SECRET), "{line}: {output}");
        }
    }
}

/// udev shall name ib0, and has files with secrets.
#[test]
fn files_of_udev_are_saved_without_their_secrets() {
    let rule = "SUBSYSTEM==\"net\", PROGRAM=\"/bin/x S3CR3T70\", NAME=\"%c\", RUN+=\"S3CR3T71\"\n";
    let link = "[Match]\nPath=S3CR3T72\n[Link]\nWakeOnLanPassword=S3CR3T73\n";
    for (path, text, reason) in [
        ("etc/udev/rules.d/70-x.rules", rule, "NAME=\"%c\""),
        (
            "etc/udev/rules.d/70-x.rules",
            "RUN+=\"S3CR3T74, NAME=\"a\"\n",
            "NAME in a rule that cannot be parsed",
        ),
        ("etc/systemd/network/10-a.link", link, "another setting"),
        (
            "etc/systemd/network/10-a.link.d/b.conf",
            link,
            "another setting",
        ),
    ] {
        let folder = machine("ip=10.0.0.5::10.0.0.1:24::ib0:none rd.neednet=1");
        let tree = folder.path();
        write(tree, "sys/class/net/ib0/flags", "0x1002\n");
        write(tree, "run/udev/control", "");
        let index = fs::read_to_string(tree.join("sys/class/net/ib0/ifindex")).unwrap();
        let entry = format!("run/udev/data/n{}", index.trim());
        write(tree, &entry, "E:TOKEN=S3CR3T75\n");
        let other = "etc/udev/rules.d/10-x.rules";
        write(
            tree,
            other,
            "RUN+=\"/usr/bin/curl -u admin:S3CR3T http://x\"\n",
        );
        write(tree, path, text);
        let copy = saved(tree);
        let copy = copy.path().join("tree");
        for file in [other, &entry] {
            assert_eq!(fs::read_to_string(copy.join(file)).unwrap(), "");
        }
        for tree in [tree, &copy] {
            let run = run(tree, &["-v", "up", "--dry-run"]);
            let said = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
            assert!(!said.contains(SECRET), "{said}");
            let reason =
                format!("udev may rename an interface, and goes first: /{path}: {reason}\n");
            assert!(said.contains(&reason), "{said}");
            assert!(
                said.contains("ib0: wait until udev has named the interface\n"),
                "{said}"
            );
        }
    }
}

/// `ibboot report` in a mount namespace whose kernel command line has secrets. Needs root.
#[test]
fn a_report_has_no_secret_and_is_replayed() {
    if skip::without_root("a report of a machine with secrets") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "cmdline", CMDLINE);
    let script =
        "mount --bind cmdline /proc/cmdline && \"$1\" report --output r.tar && tar xf r.tar";
    let made = Command::new("unshare")
        .args([
            "-m",
            "sh",
            "-ec",
            script,
            "sh",
            env!("CARGO_BIN_EXE_ibboot"),
        ])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let tree = folder.path().join("ibboot-report");
    let saved = files(&tree);
    assert!(saved.len() > 5, "{saved:?}");
    for (path, text) in saved {
        assert!(!text.contains(SECRET), "{}: {text}", path.display());
    }
    let plan = printed(&tree, "plan");
    assert!(plan.contains("\nrequested by: ip=ib0:dhcp\n"), "{plan}");
}

#[test]
fn files_of_an_older_ibboot_are_shown_without_their_secrets() {
    let folder = machine(CMDLINE);
    let tree = folder.path();
    hand_over(tree);
    shows_none(tree);
    let check = printed(tree, "check --all");
    let root =
        "root                       netroot=iscsi:****@10.0.0.2:::iser::1:iqn.2026-01.test:disk\n";
    assert!(check.contains(root), "{check}");
}

#[test]
fn a_saved_tree_has_no_secret_and_gives_the_same_answers() {
    let folder = machine(CMDLINE);
    let tree = folder.path();
    hand_over(tree);
    let copy = saved(tree);
    let copy = copy.path().join("tree");
    // A saved tree of the saved tree is identical.
    let again = saved(&copy);
    for (path, text) in files(&copy) {
        let same = again
            .path()
            .join("tree")
            .join(path.strip_prefix(&copy).unwrap());
        assert_eq!(
            fs::read_to_string(&same).unwrap_or_default(),
            text,
            "{}",
            path.display()
        );
    }
    for call in CALLS {
        let arguments: Vec<&str> = call.split(' ').collect();
        let (original, saved) = (run(tree, &arguments), run(&copy, &arguments));
        assert_eq!(original.status, saved.status, "{call}");
        // The column of an argument has changed.
        if !call.starts_with("plan") {
            let text = |output: &[u8]| String::from_utf8(output.to_vec()).unwrap();
            assert_eq!(text(&original.stdout), text(&saved.stdout), "{call}");
        }
    }
    let steps = |tree: &Path| {
        let plan: Value = serde_json::from_str(&printed(tree, "plan --format json")).unwrap();
        let steps = plan["steps"].as_array().unwrap().iter();
        steps.map(|step| step["action"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(steps(tree), steps(&copy));
}
