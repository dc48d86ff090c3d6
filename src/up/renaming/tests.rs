// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

const SETUP: &str = "NAME==\"\", ENV{ID_NET_NAME}!=\"\", NAME=\"$env{ID_NET_NAME}\"\n";
const DEFAULT: &str = "[Match]\nOriginalName=*\n[Link]\nNamePolicy=keep kernel path\n";

/// A machine with the rules and the .link file of systemd, and these files.
fn waits(files: &[(&str, &str)]) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let usual = [
        ("proc/cmdline", "quiet net.ifnames=0 root=/dev/vda\n"),
        ("usr/lib/udev/rules.d/80-net-setup-link.rules", SETUP),
        ("usr/lib/systemd/network/99-default.link", DEFAULT),
        ("etc/initrd-release", ""),
        ("lib/dracut/hooks/pre-udev/50-ifname-genrules.sh", "NAME="),
        ("lib/dracut/hooks/pre-udev/99-nfs-start-rpc.sh", ""),
        ("lib/dracut/hooks/cmdline/00-site.sh", ""),
    ];
    for (path, text) in usual.iter().chain(files) {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match *text {
            "-> /dev/null" => {
                _ = fs::remove_file(&path);
                symlink("/dev/null", path).unwrap();
            }
            "a directory" => fs::create_dir_all(path).unwrap(),
            text => fs::write(path, text).unwrap(),
        }
    }
    match Sources::read(&Root::new(dir.path())) {
        Ok(sources) => reason(&sources),
        Err(error) => Some(error.to_string()),
    }
}

fn waits_for(files: &[(&str, &str)], expected: &str) {
    assert_eq!(waits(files).as_deref(), Some(expected), "{files:?}");
}

#[test]
fn udev_leaves_the_names_of_the_kernel() {
    assert_eq!(waits(&[]), None);
    let rdma = "# ATTR{type}==\"32\", NAME=\"mlx4_ib3\"\n";
    assert_eq!(
        waits(&[("etc/udev/rules.d/70-persistent-ipoib.rules", rdma)]),
        None
    );
    // Names of the firmware, without a .link file in the image.
    let files = [
        ("proc/cmdline", "quiet\n"),
        ("etc/systemd/network/99-default.link", "-> /dev/null"),
    ];
    assert_eq!(waits(&files), None);
}

#[test]
fn the_policy_of_names_counts_unless_every_argument_turns_it_off() {
    let expected = "/usr/lib/systemd/network/99-default.link: NamePolicy=keep kernel path";
    for cmdline in [
        "",
        "net.ifnames=1",
        "net.ifnames",
        "net.ifnames=0 net.ifnames=1",
        "net.ifnames=no",
    ] {
        waits_for(&[("proc/cmdline", cmdline)], expected);
    }
    // udev does not read it.
    let files = [
        ("proc/cmdline", ""),
        ("etc/cmdline.d/10.conf", "net.ifnames=0"),
    ];
    waits_for(&files, expected);
    assert_eq!(
        waits(&[("proc/cmdline", "net.ifnames=0 net.ifnames=0")]),
        None
    );
    let policy = "net.ifnames=0 net.ifname-policy=mac";
    waits_for(&[("proc/cmdline", policy)], "net.ifname-policy=");
}

#[test]
fn a_file_of_a_site_counts_and_one_that_is_replaced_does_not() {
    let rule = "SUBSYSTEM==\"net\", NAME=\"x\"";
    let (etc, lib) = (
        "etc/udev/rules.d/70-a.rules",
        "usr/lib/udev/rules.d/70-a.rules",
    );
    waits_for(&[(lib, rule)], &format!("/{lib}: NAME=\"x\""));
    waits_for(&[(etc, rule), (lib, "")], &format!("/{etc}: NAME=\"x\""));
    assert_eq!(waits(&[(etc, ""), (lib, rule)]), None);
    assert_eq!(waits(&[(etc, "-> /dev/null"), (lib, rule)]), None);
    assert_eq!(waits(&[("etc/udev/rules.d/70-a.rules.old", rule)]), None);
    let link = "run/systemd/network/10-ib.link";
    waits_for(&[(link, "[Link]\nName=x")], &format!("/{link}: Name=x"));
    let drop_in = "etc/systemd/network/99-default.link.d/10.conf";
    waits_for(
        &[(drop_in, "[Link]\nName=x")],
        &format!("/{drop_in}: Name=x"),
    );
}

#[test]
fn what_comes_later_counts() {
    let hook = ("lib/dracut/hooks/pre-udev/50-site.sh", "");
    waits_for(&[hook], "pre-udev/50-site.sh: a hook that may write rules");
    let hook = ("lib/dracut/hooks/pre-trigger/50-site.sh", "");
    waits_for(
        &[hook],
        "pre-trigger/50-site.sh: a hook that may write rules",
    );
    let sources = Sources {
        ifname: Some("ifname=ib9:00:02:c9:03:00:31:78:f2".to_owned()),
        ..Sources::default()
    };
    assert_eq!(reason(&sources), sources.ifname);
}

#[test]
fn what_cannot_be_read_counts() {
    let rule = ("etc/udev/rules.d/70-a.rules", "a directory");
    waits_for(
        &[rule],
        "/etc/udev/rules.d/70-a.rules: cannot be read: Is a directory",
    );
    let rules = ("etc/udev/rules.d", "");
    waits_for(
        &[rules],
        "/etc/udev/rules.d: cannot be read: Not a directory",
    );
    let none = reason(&Sources::default());
    assert_eq!(none.as_deref(), Some("no file of rules found"));
}
