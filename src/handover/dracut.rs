// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the files in /tmp through which dracut's network modules report an interface to dracut's
//! other modules (dracut 057 to 106, `ifup.sh`, `net-lib.sh`, `nfs-lib.sh`).
//!
//! A root shell sources most of these files, and a value may come from a DHCP server: every value
//! is written by [`quoted`].

use std::net::IpAddr;

use crate::inet;
use crate::wish::ipoib::IpoibWish;

/// Directory of the files, which exists only in the initramfs: it is lost at switch_root.
pub const TMP: &str = "/tmp";
/// The configured interfaces, the boot device first, in [`TMP`].
pub const IFACES: &str = "net.ifaces";
/// The interface that `netroot` uses, in [`TMP`].
pub const BOOTDEV: &str = "net.bootdev";
/// The content of `net.IF.did-setup`, which is only looked for: the hook ifcfg.sh removes the files of ibboot
/// by it.
const OWNER: &str = "# ibboot\n";

/// A verified interface with its addresses.
#[derive(Debug, Clone)]
pub struct Interface<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Name of the interface on the command line, if it is another name.
    pub alias: Option<&'a str>,
    /// The spellings of the hardware address on a command line.
    pub addresses: &'a [String],
    /// The request for the interface.
    pub wish: &'a IpoibWish,
    /// DHCP options: the names of dhclient-script (`new_root_path`) and the bytes.
    pub lease: &'a [(&'static str, Vec<u8>)],
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Name in [`TMP`].
    pub name: String,
    /// Content of the file.
    pub content: Vec<u8>,
    /// File mode.
    pub mode: u32,
}

impl File {
    /// A file that all users may read, like dracut's own files.
    pub fn new(name: impl Into<String>, content: impl Into<Vec<u8>>) -> File {
        File {
            name: name.into(),
            content: content.into(),
            mode: 0o644,
        }
    }
}

/// `value` as one word of a POSIX shell, for any bytes. A NUL, which no shell variable can hold,
/// ends the value.
pub fn quoted(value: &[u8]) -> Vec<u8> {
    let mut word = vec![b'\''];
    for &byte in value.iter().take_while(|byte| **byte != 0) {
        match byte {
            b'\'' => word.extend(b"'\\''"),
            _ => word.push(byte),
        }
    }
    word.push(b'\'');
    word
}

/// Lines of `NAME='VALUE'`. A name that is not a shell variable is left out.
pub fn assignments<'v>(pairs: impl IntoIterator<Item = (&'v str, &'v [u8])>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in pairs.into_iter().filter(|(name, _)| is_variable(name)) {
        lines.extend(name.as_bytes());
        lines.push(b'=');
        lines.extend(quoted(value));
        lines.push(b'\n');
    }
    lines
}

/// The value of the last assignment to `name` in a file of assignments. network-legacy writes such
/// a file with `set`: a value may have no quotes. The escapes in bash's `$'...'` are not read.
pub fn assigned(file: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut found = None;
    let mut line: Vec<u8> = Vec::new();
    let mut is_quoted = false;
    let mut bytes = file.iter().copied().chain([b'\n']);
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' => is_quoted = !is_quoted,
            b'\\' if !is_quoted => line.extend(bytes.next()),
            b'\n' if !is_quoted => {
                let value = line.strip_prefix(name.as_bytes());
                let value = value.and_then(|rest| rest.strip_prefix(b"="));
                found = value.map(<[u8]>::to_vec).or(found);
                line.clear();
            }
            _ => line.push(byte),
        }
    }
    found
}

fn is_variable(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(plain)
        && name
            .bytes()
            .next()
            .is_some_and(|first| !first.is_ascii_digit())
}

/// A command line for a shell: `before` and `after` unchanged, `value` quoted.
fn command(before: &str, value: &str, after: &str) -> Vec<u8> {
    [
        before.as_bytes(),
        &quoted(value.as_bytes()),
        after.as_bytes(),
        b"\n",
    ]
    .concat()
}

/// The files of one interface, in the order in which they are written: `did-setup` is the last,
/// because it reports that the others exist.
pub fn files(interface: &Interface<'_>) -> Vec<File> {
    let Interface {
        name, wish, lease, ..
    } = interface;
    let mut files = vec![File::new(format!("net.{name}.override"), overrides(wish))];
    if let Some(hostname) = &wish.hostname {
        let content = command("echo ", hostname, " > /proc/sys/kernel/hostname");
        files.push(File::new(format!("net.{name}.hostname"), content));
    }
    let gateways = wish.all_gateways().map(|gateway| {
        let family = if gateway.is_ipv6() { "ip -6" } else { "ip" };
        let device = String::from_utf8_lossy(&quoted(name.as_bytes())).into_owned();
        command(
            &format!("{family} route replace default via "),
            &gateway.to_string(),
            &format!(" dev {device}"),
        )
    });
    let gateways: Vec<u8> = gateways.collect::<Vec<_>>().concat();
    if !gateways.is_empty() {
        files.push(File::new(format!("net.{name}.gw"), gateways));
    }
    let resolver = resolver(&wish.dns, &wish.domains);
    if !resolver.is_empty() {
        files.push(File::new(
            format!("net.{name}.resolv.conf"),
            resolver.into_bytes(),
        ));
    }
    if !lease.is_empty() {
        let pairs = lease.iter().map(|(name, value)| (*name, value.as_slice()));
        // The root path may contain a password, which iscsiroot needs. Modules that copy the file
        // for the real root keep the file mode.
        files.push(File {
            mode: 0o600,
            ..File::new(format!("dhclient.{name}.dhcpopts"), assignments(pairs))
        });
    }
    for (flag, content) in [("up", ""), ("did-setup", OWNER)] {
        let addresses = interface.addresses.iter().map(String::as_str);
        let names = [Some(*name), interface.alias].into_iter().flatten();
        // The name is part of a file name; a kernel interface has no slash in its name.
        for name in names.chain(addresses).filter(|name| !name.contains('/')) {
            files.push(File::new(format!("net.{name}.{flag}"), content));
        }
    }
    files
}

/// The non-empty fields of `ip=`, under the names that `ip_to_var` gives them.
fn overrides(wish: &IpoibWish) -> Vec<u8> {
    let address = wish.addresses.first();
    let mask = address.map(|address| match address.address {
        IpAddr::V4(_) => inet::mask(address.prefix).to_string(),
        IpAddr::V6(_) => address.prefix.to_string(),
    });
    let mtu = wish.mtu.and_then(|mtu| match mtu {
        crate::wish::ipoib::RequestedMtu::Bytes(bytes) => Some(bytes.to_string()),
        crate::wish::ipoib::RequestedMtu::Max => None,
    });
    let pairs = [
        ("ip", address.map(|address| address.address.to_string())),
        ("srv", wish.peer.map(|peer| peer.to_string())),
        ("gw", wish.all_gateways().next().map(ToString::to_string)),
        ("mask", mask),
        ("hostname", wish.hostname.clone()),
        ("mtu", mtu),
        ("dns1", wish.dns.first().map(ToString::to_string)),
        ("dns2", wish.dns.get(1).map(ToString::to_string)),
    ];
    let present: Vec<(&str, String)> = pairs
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    assignments(
        present
            .iter()
            .map(|(name, value)| (*name, value.as_bytes())),
    )
}

fn resolver(servers: &[IpAddr], domains: &[String]) -> String {
    let servers = servers
        .iter()
        .map(|server| format!("nameserver {server}\n"));
    let domains: Vec<&str> = domains.iter().map(String::as_str).collect();
    let search = search(&domains).map(|line| line + "\n");
    search.into_iter().chain(servers).collect()
}

/// The lines of /etc/resolv.conf followed by those of `more`, each line once. Of several lists of
/// domains only the last one counts (resolv.conf(5)): the lists become one.
pub fn merged_resolver(current: &str, more: &[u8]) -> String {
    let more = String::from_utf8_lossy(more);
    let mut lines: Vec<&str> = Vec::new();
    let mut domains: Vec<&str> = Vec::new();
    let mut place = None;
    for line in current.lines().chain(more.lines()) {
        let mut words = line.split_ascii_whitespace();
        if matches!(words.next(), Some("search" | "domain")) {
            place.get_or_insert(lines.len());
            domains.extend(words);
        // net-lib.sh writes this line after it took an interface down.
        } else if line != "#empty" && !lines.contains(&line) {
            lines.push(line);
        }
    }
    let search = search(&domains);
    if let (Some(place), Some(search)) = (place, &search) {
        lines.insert(place, search);
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The line of resolv.conf with these domains, each once.
fn search(domains: &[&str]) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    for domain in domains {
        // systemd-resolved writes the root domain if it has no other.
        let is_none = *domain == "." && domains.iter().any(|other| *other != ".");
        if !is_none && !all.contains(domain) {
            all.push(domain);
        }
    }
    (!all.is_empty()).then(|| format!("search {}", all.join(" ")))
}

/// The content of [`IFACES`]: the verified interfaces, then those of other modules. Interfaces in
/// `ours` that are not verified are removed, because dracut waits for every interface in the list.
pub fn merged_ifaces(current: &str, verified: &[&str], ours: &[&str]) -> String {
    let others = current
        .split_ascii_whitespace()
        .filter(|name| !verified.contains(name) && !ours.contains(name));
    let all: Vec<&str> = verified.iter().copied().chain(others).collect();
    all.join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_assignment_is_read_as_a_shell_reads_it() {
        let file = b"new_a='x\\nnew_b=planted'\nnew_b=first\nnew_b='it'\\''s'\nnew_bb=other\nb=c";
        let value = |name| assigned(file, name).map(|value| String::from_utf8(value).unwrap());
        assert_eq!(value("new_b").as_deref(), Some("it's"));
        assert_eq!(value("b").as_deref(), Some("c"));
        assert_eq!(value("new_"), None);
        assert_eq!(assigned(b"new_a='x\nnew_b=planted'\n", "new_b"), None);
        assert_eq!(assigned(b"new_a=''", "new_a"), Some(Vec::new()));
        assert_eq!(assigned(b"new_a='open", "new_a"), None);
    }

    proptest! {
        #[test]
        fn any_value_comes_back(values in prop::collection::vec(prop::collection::vec(1..=255u8, 0..40), 3)) {
            let names = ["a", "new_root_path", "b"];
            let pairs = names.into_iter().zip(values.iter().map(Vec::as_slice));
            let file = assignments(pairs);
            for (name, value) in names.into_iter().zip(&values) {
                prop_assert_eq!(assigned(&file, name), Some(value.clone()));
            }
        }
    }

    #[test]
    fn lines_of_other_modules_stay_and_no_line_is_repeated() {
        let current = "#empty\nnameserver 10.0.0.53\nsearch example.org\n";
        let more = b"nameserver 10.0.0.53\nnameserver fd00::53\n";
        assert_eq!(
            merged_resolver(current, more),
            "nameserver 10.0.0.53\nsearch example.org\nnameserver fd00::53\n"
        );
        assert_eq!(merged_resolver("", b""), "");
    }

    #[test]
    fn the_domains_of_all_interfaces_are_searched() {
        let merged = |current| merged_resolver(current, b"search a.example b.example\n");
        assert_eq!(
            merged("nameserver 10.0.0.53\nsearch  c.example b.example\noptions edns0\n"),
            "nameserver 10.0.0.53\nsearch c.example b.example a.example\noptions edns0\n"
        );
        for none in ["", "search .\n", "search\n"] {
            assert_eq!(merged(none), "search a.example b.example\n");
        }
        assert_eq!(
            merged("domain a.example\nsearch c.example\n"),
            "search a.example c.example b.example\n"
        );
        assert_eq!(merged_resolver("search .\n", b""), "search .\n");
    }

    #[test]
    fn the_list_of_interfaces_has_the_verified_ones_first_and_no_failed_one() {
        let current = " ib1 eth0  ib0\n";
        assert_eq!(
            merged_ifaces(current, &["ib0"], &["ib0", "ib1"]),
            "ib0 eth0\n"
        );
        assert_eq!(merged_ifaces("", &["ib1", "ib0"], &[]), "ib1 ib0\n");
    }

    #[test]
    fn a_prefix_becomes_the_netmask_that_scripts_compare() {
        let wish = |text: &str, prefix| IpoibWish {
            addresses: vec![crate::inet::Address {
                address: text.parse().unwrap(),
                prefix,
            }],
            ..IpoibWish::default()
        };
        let text = |wish: &IpoibWish| String::from_utf8(overrides(wish)).unwrap();
        for (prefix, mask) in [
            (0, "0.0.0.0"),
            (20, "255.255.240.0"),
            (32, "255.255.255.255"),
        ] {
            let shown = text(&wish("10.1.2.3", prefix));
            assert_eq!(shown, format!("ip='10.1.2.3'\nmask='{mask}'\n"));
        }
        assert_eq!(text(&wish("fd00::3", 64)), "ip='fd00::3'\nmask='64'\n");
    }
}
