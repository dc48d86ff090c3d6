// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that dracut's root shells source, in every shell that an initramfs may have: hostile
//! values of a DHCP server and of the command line come back byte for byte, and no part of them is
//! executed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ibboot::handover::dracut::{Interface, assignments, files};
use ibboot::inet::Address;
use ibboot::wish::ipoib::IpoibWish;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The shells with their commands; busybox has a built-in shell.
const SHELLS: &[&[&str]] = &[&["bash"], &["dash"], &["busybox", "ash"], &["mksh"]];

/// The values behind the eight fixes of 2026 in dracut and similar programs, and other hostile
/// values of a server.
fn hostile() -> Vec<Vec<u8>> {
    let canary = "/canary";
    let mut values: Vec<Vec<u8>> = [
        "$(touch CANARY)",
        "`touch CANARY`",
        "'; touch CANARY; '",
        "\"; touch CANARY; \"",
        "'\"'\"'; touch CANARY #",
        "\\'; touch CANARY; \\'",
        "a\ntouch CANARY\nb",
        "a\r\ntouch CANARY\r\n",
        "${IFS}$(touch${IFS}CANARY)",
        "$((x[$(touch CANARY)]))",
        "; touch CANARY &",
        "| touch CANARY",
        "> CANARY",
        "$'\\'; touch CANARY'",
        "!touch",
        "~root",
        "* ? [a-z]",
        "-n",
        "-e \\x27",
        "",
        " ",
        "  lead and trail  ",
        "'",
        "''''",
        "\\",
        "\\\\'",
        "\n",
        "\n\n\n",
        "EOF",
        "nfs:10.0.0.1:/root,rw$(touch CANARY)",
        "caf\u{e9} \u{1f600}",
    ]
    .iter()
    .map(|text| text.replace("CANARY", canary).into_bytes())
    .collect();
    values.push((1..=255).collect());
    values.push((1..=255).rev().collect());
    values.push(vec![b'\''; 255]);
    values.push(vec![0xff; 255]);
    values.push(vec![0x80, 0x81, 0x88, 0x01, 0x7f, 0xfe]);
    values.push(b"$(touch /canary)".repeat(15));
    for byte in 1..=255u8 {
        values.push(vec![byte]);
        values.push(vec![b'a', byte, b'\'', byte, b'\n']);
    }
    values
}

/// The options with free text of the server.
const NAMES: &[&str] = &[
    "new_root_path",
    "new_host_name",
    "new_domain_name",
    "new_domain_search",
    "new_next_server",
    "new_dhcp_server_identifier",
    "new_routers",
    "new_classless_static_routes",
    "filename",
    "server_name",
];

/// Sources `file` in `shell`, in a private root directory where an executed program would leave a
/// file, and reads the variables back.
fn sourced(shell: &[&str], folder: &Path, file: &str, names: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let outputs: Vec<String> = names
        .iter()
        .map(|name| format!("printf %s \"${{{name}-UNSET}}\" > out.{name}\n"))
        .collect();
    let script = format!(". ./{file}\n{}", outputs.concat());
    let (program, arguments) = shell.split_first().unwrap();
    let run = Command::new(program)
        .args(arguments)
        .args(["-c", &script])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    assert!(run.status.success(), "{shell:?}: {}", run.status);
    assert_eq!(String::from_utf8_lossy(&run.stderr), "", "{shell:?}");
    assert_eq!(String::from_utf8_lossy(&run.stdout), "", "{shell:?}");
    names
        .iter()
        .map(|name| {
            let value = fs::read(folder.join(format!("out.{name}"))).unwrap();
            ((*name).to_owned(), value)
        })
        .collect()
}

/// The shells of this machine; a missing shell is reported, never skipped silently.
fn shells() -> Vec<&'static [&'static str]> {
    let is_available = |shell: &&'static [&'static str]| {
        let mut call = Command::new(shell[0]);
        let found = call.args(&shell[1..]).args(["-c", "exit 0"]).status();
        let is_installed = found.is_ok_and(|status| status.success());
        if !is_installed {
            eprintln!(
                "skipped in part: hostile values in {}: not installed",
                shell.join(" ")
            );
        }
        is_installed
    };
    SHELLS.iter().copied().filter(is_available).collect()
}

/// A directory that receives a file if a value is executed: the tests' canary is a path in it.
struct Cage {
    folder: tempfile::TempDir,
}

impl Cage {
    fn new() -> Cage {
        Cage {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn canary(&self) -> PathBuf {
        self.folder.path().join("canary")
    }

    /// The value with the path of our canary.
    fn with_canary(&self, value: &[u8]) -> Vec<u8> {
        let text = value.to_vec();
        let name = self.canary();
        let name = name.to_str().unwrap().as_bytes();
        let mut out = Vec::new();
        let mut rest = text.as_slice();
        while let Some(at) = rest.windows(7).position(|window| window == b"/canary") {
            out.extend(&rest[..at]);
            out.extend(name);
            rest = &rest[at + 7..];
        }
        out.extend(rest);
        out
    }

    fn comes_back(&self, shell: &[&str], pairs: &[(&str, Vec<u8>)]) {
        let content = assignments(pairs.iter().map(|(name, value)| (*name, value.as_slice())));
        fs::write(self.folder.path().join("opts"), content).unwrap();
        let names: Vec<&str> = pairs.iter().map(|(name, _)| *name).collect();
        let read = sourced(shell, self.folder.path(), "opts", &names);
        for (name, value) in pairs {
            assert_eq!(&read[*name], value, "{shell:?}: {name}");
        }
        assert!(
            !self.canary().exists(),
            "{shell:?} ran something of {pairs:?}"
        );
    }
}

#[test]
fn hostile_values_come_back_and_nothing_is_run() {
    let cage = Cage::new();
    for shell in shells() {
        for values in hostile().chunks(NAMES.len()) {
            let pairs: Vec<(&str, Vec<u8>)> = NAMES
                .iter()
                .copied()
                .zip(values.iter().map(|value| cage.with_canary(value)))
                .collect();
            cage.comes_back(shell, &pairs);
        }
    }
}

#[test]
fn any_bytes_come_back() {
    let cage = Cage::new();
    let cases = if std::env::var_os("IBBOOT_LONG").is_some() {
        10_000
    } else {
        100
    };
    for shell in shells() {
        let config = Config {
            cases,
            failure_persistence: None,
            ..Config::default()
        };
        let bytes = prop::collection::vec(
            prop_oneof![
                3 => prop::sample::select(b"'\"\\$`(){};&|<>\n\r\t #*?~!=x/".to_vec()),
                1 => 1..=255u8,
            ],
            0..256,
        );
        TestRunner::new(config)
            .run(&bytes, |value| {
                cage.comes_back(shell, &[("filename", value)]);
                Ok(())
            })
            .unwrap();
    }
}

/// No variable can hold a NUL; every shell loses the text behind a NUL.
#[test]
fn a_value_ends_at_a_nul_and_an_invalid_name_is_left_out() {
    let cut = assignments([("filename", b"a\0'; touch /canary".as_slice())]);
    assert_eq!(cut, b"filename='a'\n");
    for name in ["", "a b", "a;b", "1a", "a=b", "a$(x)", "\u{e9}", "a\n"] {
        assert_eq!(assignments([(name, b"x".as_slice())]), b"", "{name:?}");
    }
}

/// Every file of an interface, sourced like dracut's setup_net and nfs-lib.sh do.
#[test]
fn all_files_of_an_interface_are_harmless() {
    let cage = Cage::new();
    let address = |text: &str, prefix| Address {
        address: text.parse().unwrap(),
        prefix,
    };
    let evil = String::from_utf8(cage.with_canary(b"$(touch /canary)'`touch /canary`")).unwrap();
    for name in ["ib0", "ib$(x)'"] {
        let wish = IpoibWish {
            addresses: vec![address("10.0.0.1", 24)],
            gateways: vec!["10.0.0.254".parse().unwrap(), "fd00::1".parse().unwrap()],
            peer: Some("10.0.0.9".parse().unwrap()),
            hostname: Some(evil.clone()),
            dns: vec!["10.0.0.53".parse().unwrap(), "fd00::53".parse().unwrap()],
            ..IpoibWish::default()
        };
        let lease = [("new_root_path", evil.clone().into_bytes())];
        let written = files(&Interface {
            name,
            alias: Some("guid/0x1"),
            addresses: &["80:00:00:48:fe:80".to_owned()],
            wish: &wish,
            lease: &lease,
        });
        let names: Vec<&str> = written.iter().map(|file| file.name.as_str()).collect();
        let expected = [
            "net.IF.override",
            "net.IF.hostname",
            "net.IF.gw",
            "net.IF.resolv.conf",
            "dhclient.IF.dhcpopts",
            "net.IF.up",
            "net.80:00:00:48:fe:80.up",
            "net.IF.did-setup",
            "net.80:00:00:48:fe:80.did-setup",
        ]
        .map(|text| text.replace("IF", name));
        assert_eq!(names, expected);
        for shell in shells() {
            for file in written
                .iter()
                .filter(|file| !file.name.ends_with("resolv.conf"))
            {
                // The commands have no effect: the test compares their words.
                let stubs = "echo() { printf '<%s>' \"$@\"; }; ip() { printf '<%s>' \"$@\"; printf '\\n'; }\n";
                let content = String::from_utf8(file.content.clone()).unwrap();
                let content = content.replace("/proc/sys/kernel/hostname", "hostname");
                let path = cage.folder.path().join("sourced");
                fs::write(&path, format!("{stubs}{content}")).unwrap();
                let (program, arguments) = shell.split_first().unwrap();
                let run = Command::new(program)
                    .args(arguments)
                    .args(["-c", ". ./sourced; printf '%s|%s|%s|%s|%s|%s|%s' \"$ip\" \"$srv\" \"$gw\" \"$mask\" \"$hostname\" \"$dns1\" \"$dns2\" > vars"])
                    .current_dir(cage.folder.path())
                    .output()
                    .unwrap();
                assert!(run.status.success(), "{shell:?} {}", file.name);
                let output = String::from_utf8(run.stdout).unwrap();
                let read = |name: &str| fs::read_to_string(cage.folder.path().join(name)).unwrap();
                if file.name.ends_with("override") {
                    assert_eq!(
                        read("vars"),
                        format!(
                            "10.0.0.1|10.0.0.9|10.0.0.254|255.255.255.0|{evil}|10.0.0.53|fd00::53"
                        )
                    );
                } else if file.name.ends_with("hostname") {
                    assert_eq!(read("hostname"), format!("<{evil}>"));
                } else if file.name.ends_with("gw") {
                    let route = |gateway: &str| {
                        format!("<route><replace><default><via><{gateway}><dev><{name}>\n")
                    };
                    assert_eq!(
                        output,
                        format!("{}<-6>{}", route("10.0.0.254"), route("fd00::1"))
                    );
                }
            }
        }
        assert!(!cage.canary().exists());
    }
}
