// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program on an artificial machine: the sysfs of tests/sys, and the addresses, routes and
//! files of private namespaces. Needs root; without root each test reports that it was skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod alone;
mod pace;
mod program;
mod skip;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ibboot::facts::{Facts, Memory, Touched};
use ibboot::hardware::HardwareType;
use ibboot::system::root::Root;
use ibboot::wish::expectation::Depth;
use nix::mount::{MsFlags, mount};
use nix::sched::CloneFlags;
use serde_json::Value;

/// A copy of the program where no mount of a test hides it: the project may be below /tmp.
const PROGRAM: &str = "/run/program";
/// One page of /proc/net/route has 31 lines, one of ipv6_route 26, one of if_inet6 75.
const COUNTS: [u32; 4] = [1, 31, 32, 1000];

/// Runs `test` in its own network namespace, with its own /run and a /sys of this namespace.
fn alone(name: &str, test: impl FnOnce() + Send + 'static) {
    let flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    alone::run(name, flags, &[("tmpfs", "/run"), ("sysfs", "/sys")], || {
        program::copy(PROGRAM);
        test();
    });
}

fn ip(arguments: &str, stdin: &str) -> String {
    let mut run = Command::new("ip")
        .args(arguments.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ip");
    run.stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    let run = run.wait_with_output().unwrap();
    assert!(run.status.success(), "ip {arguments}");
    String::from_utf8(run.stdout).unwrap()
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&ip(arguments, "")).unwrap()
}

fn ibboot(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

fn facts(arguments: &[&str]) -> Value {
    let run = ibboot(&[&["facts"], arguments].concat());
    assert!(run.status.success(), "{run:?}");
    serde_json::from_slice(&run.stdout).unwrap()
}

/// Adds `count` addresses and routes of each family on `ib0`, and routes of each other kind. None
/// of them appears later by itself.
fn crowd(count: u32) {
    let mut batch = String::from(
        "link set lo up\n\
         link add ib0 type veth peer name far0\nlink add ib1 type veth peer name far1\n\
         link set far0 addrgenmode none\nlink set far1 addrgenmode none\n\
         link set ib0 addrgenmode none\nlink set ib1 addrgenmode none\n\
         link set far0 up\nlink set far1 up\nlink set ib0 up\nlink set ib1 up\n\
         addr add 172.16.0.1 peer 172.16.0.2 dev ib1\naddr add 172.17.0.1/16 dev ib1\n\
         addr add 172.18.0.1/16 dev ib1 valid_lft 9999 preferred_lft 9999\n",
    );
    for n in 1..=count {
        let (a, b) = (n >> 8, n & 0xff);
        writeln!(batch, "addr add 10.1.{a}.{b}/32 dev ib0").unwrap();
        writeln!(batch, "addr add fd01::{n:x}/128 dev ib0 nodad").unwrap();
        writeln!(batch, "route add 10.2.{a}.{b} dev ib0").unwrap();
        writeln!(batch, "route add fd02::{n:x} via fe80::{n:x} dev ib0").unwrap();
    }
    batch.push_str(
        "route add default via 172.17.0.9 dev ib1\nroute add default via fe80::9 dev ib1\n\
         route add 10.8.0.0/16 nexthop via 172.17.0.7 dev ib1 nexthop via 10.2.0.1 dev ib0\n\
         route add fd08::/64 nexthop via fe80::7 dev ib1 nexthop via fe80::8 dev ib0\n\
         route add unreachable 10.9.0.0/16\nroute add unreachable fd09::/64\n\
         route add blackhole 10.10.0.0/16\nroute add 10.11.0.0/16 dev ib1 table 100\n",
    );
    ip("-batch -", &batch);
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// `INTERFACE ADDRESS/PREFIX`, from the facts.
fn addresses(facts: &Value) -> Vec<String> {
    let netdevs = facts["netdevs"].as_array().unwrap().iter();
    let lines = netdevs.flat_map(|netdev| {
        let name = netdev["ifname"].as_str().unwrap();
        let lists = ["addresses", "tentative", "duplicates"].map(|list| netdev[list].as_array());
        let all = lists.into_iter().flatten().flatten();
        all.map(move |shown| format!("{name} {}", shown.as_str().unwrap()))
    });
    sorted(lines.collect())
}

/// `INTERFACE ADDRESS/PREFIX`, from ip(8).
fn addresses_of_ip() -> Vec<String> {
    let links = json("-j addr show");
    let lines = links.as_array().unwrap().iter().flat_map(|link| {
        let name = link["ifname"].as_str().unwrap();
        let all = link["addr_info"].as_array().unwrap().iter();
        all.map(move |a| format!("{name} {}/{}", a["local"].as_str().unwrap(), a["prefixlen"]))
    });
    sorted(lines.collect())
}

/// `INTERFACE NETWORK [via GATEWAY]`, from the facts.
fn routes(facts: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for netdev in facts["netdevs"].as_array().unwrap() {
        let name = netdev["ifname"].as_str().unwrap();
        for gateway in netdev["gateways"].as_array().unwrap() {
            lines.push(format!("{name} default via {}", gateway.as_str().unwrap()));
        }
        for route in netdev["routes"].as_array().into_iter().flatten() {
            let network = &route["network"];
            let to = network["address"].as_str().unwrap();
            let via = route["gateway"].as_str().map(|g| format!(" via {g}"));
            let via = via.unwrap_or_default();
            lines.push(format!("{name} {to}/{}{via}", network["prefix"]));
        }
    }
    sorted(lines)
}

/// `INTERFACE NETWORK [via GATEWAY]`, from ip(8): of IPv4 the first next hop, as in
/// /proc/net/route.
fn routes_of_ip() -> Vec<String> {
    let mut lines = Vec::new();
    for (call, whole) in [
        ("-j -4 route show", 32),
        ("-j -6 route show table all", 128),
    ] {
        for route in json(call).as_array().unwrap() {
            let kind = route["type"].as_str().unwrap_or("unicast");
            if !["unicast", "anycast", "multicast"].contains(&kind) {
                continue;
            }
            let to = match route["dst"].as_str().unwrap() {
                to if to == "default" || to.contains('/') => to.to_owned(),
                to => format!("{to}/{whole}"),
            };
            let hops = route["nexthops"].as_array();
            let hops = hops.map_or(std::slice::from_ref(route), Vec::as_slice);
            let shown = if whole == 32 { 1 } else { hops.len() };
            for hop in hops.iter().take(shown) {
                let via = hop["gateway"].as_str().map(|g| format!(" via {g}"));
                let name = hop["dev"].as_str().unwrap();
                lines.push(format!("{name} {to}{}", via.unwrap_or_default()));
            }
        }
    }
    sorted(lines)
}

fn lines_of(path: &str) -> usize {
    let path = format!("/proc/thread-self/net/{path}");
    let text = Root::new("/").text(&path).unwrap();
    text.lines().count()
}

#[test]
fn all_addresses_and_routes_are_found_on_the_machine_and_in_its_copy() {
    for count in COUNTS {
        alone("tables", move || {
            crowd(count);
            let found = facts(&[]);
            assert_eq!(addresses(&found), addresses_of_ip(), "{count}");
            assert_eq!(routes(&found), routes_of_ip(), "{count}");
            assert_eq!(found["unread"], Value::Array(Vec::new()), "{count}");
            // The files are seq_files of several pages.
            let count = usize::try_from(count).unwrap();
            for (path, least) in [("route", 1), ("ipv6_route", 0), ("if_inet6", 0)] {
                assert!(lines_of(path) > least + count, "{path} {count}");
            }
            let copy = Path::new("/run/copy").to_str().unwrap();
            for again in [facts(&["--tree", copy]), facts(&["--root", copy])] {
                assert_eq!(addresses(&again), addresses(&found), "{count}");
                assert_eq!(routes(&again), routes(&found), "{count}");
            }
        });
    }
}

/// The machine of tests/sys/connectx6-hdr with the `ib0` of this namespace.
fn dress_up(cmdline: &str) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/connectx6-hdr/sys");
    let tests = tests.to_str().unwrap();
    let index = json("-j link show ib0")[0]["ifindex"].to_string();
    let copied = Command::new("cp").args(["-r", tests, "/run/sys"]).status();
    assert!(copied.unwrap().success());
    for file in ["ifindex", "iflink"] {
        fs::write(format!("/run/sys/class/net/ib0/{file}"), &index).unwrap();
    }
    fs::write("/run/cmdline", cmdline).unwrap();
    for (from, to) in [("/run/sys", "/sys"), ("/run/cmdline", "/proc/cmdline")] {
        let none = None::<&str>;
        mount(Some(from), to, none, MsFlags::MS_BIND, none).unwrap();
    }
}

#[test]
fn a_boot_is_verified_with_any_other_routes() {
    for count in COUNTS {
        alone("up", move || {
            crowd(count);
            dress_up(
                "rd.ib.require=ib0 rd.ib.timeout=60 ip=10.7.0.2::10.7.0.1:24::ib0:none \
                 ip=[fd07::2]::[fd07::1]:64::ib0:none rd.route=10.77.0.0/16:10.7.0.3:ib0",
            );
            let up = ibboot(&["up"]);
            let output = String::from_utf8_lossy(&up.stdout).into_owned()
                + &String::from_utf8_lossy(&up.stderr);
            assert_eq!(up.status.code(), Some(0), "{count}: {output}");
            let check = ibboot(&["check", "--all"]);
            let output = String::from_utf8(check.stdout).unwrap();
            for row in [
                "  ok        address.present            10.7.0.2/24, fd07::2/64",
                "  ok        route.present              10.7.0.1, fd07::1, 10.77.0.0/16 via 10.7.0.3",
            ] {
                assert!(output.contains(row), "{count}: {output}");
            }
            assert_eq!(check.status.code(), Some(0), "{count}: {output}");
        });
    }
}

/// `up` in an initramfs whose command line requests `ib0` and in whose /etc another program left a
/// name server, after `before` has run.
fn in_initramfs(more: &str, before: fn()) -> Output {
    crowd(1);
    let none = None::<&str>;
    dress_up(&format!(
        "rd.ib.require=ib0 rd.ib.timeout=60 ip=10.7.0.2::10.7.0.1:24::ib0:none nameserver=10.7.0.53 {more}"
    ));
    for place in ["/etc", "/tmp"] {
        mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::empty(), none).unwrap();
    }
    fs::write("/etc/initrd-release", "").unwrap();
    fs::write("/etc/resolv.conf", "nameserver 192.0.2.53\n").unwrap();
    fs::write("/tmp/net.ifaces", "eth0\n").unwrap();
    before();
    ibboot(&["up"])
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn files_that_others_wrote_for_dracut_keep_their_lines() {
    alone("contract", || {
        let up = in_initramfs("", || {});
        assert_eq!(up.status.code(), Some(0), "{up:?}");
        assert_eq!(read("/run/ibboot/result"), "verified\n");
        assert_eq!(read("/tmp/net.ifaces"), "ib0 eth0\n");
        let both = "nameserver 192.0.2.53\nnameserver 10.7.0.53\n";
        assert_eq!(read("/etc/resolv.conf"), both);
    });
}

/// Whether the result is a failure with this reason.
fn fails_with(before: fn(), reason: &'static str, stays: fn()) {
    alone("contract", move || {
        let up = in_initramfs("", before);
        assert_eq!(up.status.code(), Some(1), "{up:?}");
        let result = format!("failed continue\n{reason}\n");
        assert_eq!(read("/run/ibboot/result"), result);
        let state: Value = serde_json::from_str(&read("/run/ibboot/state.json")).unwrap();
        let verdict = (&state["outcome"], &state["reason"]);
        assert_eq!(verdict, (&"continue".into(), &reason.into()));
        stays();
    });
}

#[test]
fn a_file_that_cannot_be_read_is_not_replaced_and_the_boot_is_not_verified() {
    fails_with(
        || {
            fs::remove_file("/etc/resolv.conf").unwrap();
            // A socket is a file that cannot be opened.
            UnixListener::bind("/etc/resolv.conf").unwrap();
        },
        "/etc/resolv.conf: cannot be read: No such device or address",
        || {
            let left = fs::symlink_metadata("/etc/resolv.conf").unwrap();
            assert!(left.file_type().is_socket());
            assert_eq!(read("/tmp/net.ifaces"), "ib0 eth0\n");
        },
    );
}

#[test]
fn a_boot_whose_files_for_dracut_cannot_be_written_is_not_verified() {
    fails_with(
        || {
            let (none, readonly) = (None::<&str>, MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY);
            mount(none, "/tmp", none, readonly, none).unwrap();
        },
        "/tmp/net.ib0.override: cannot be written: Read-only file system",
        || assert_eq!(read("/tmp/net.ifaces"), "eth0\n"),
    );
}

#[test]
fn a_wrong_argument_stops_no_boot_and_is_in_the_verdict() {
    alone("invalid argument", || {
        let up = in_initramfs("rd.ib.rate=5O", || {});
        assert_eq!(up.status.code(), Some(0), "{up:?}");
        let result = read("/run/ibboot/result");
        let wrong = "verified\ninvalid argument: /proc/cmdline:92: rd.ib.rate=5O: '5O' is not a rate in Gb/s";
        assert!(result.starts_with(wrong), "{result}");
        // The check in the real root uses the files of the handover.
        fs::remove_file("/etc/initrd-release").unwrap();
        fs::write("/run/cmdline", "").unwrap();
        let check = ibboot(&["check", "--format", "nhc"]);
        let output = String::from_utf8(check.stdout).unwrap();
        assert!(
            output
                .starts_with("ibboot: UNKNOWN: invalid argument: /proc/cmdline:92: rd.ib.rate=5O"),
            "{output}"
        );
        assert_eq!(check.status.code(), Some(1));
        assert_eq!(ibboot(&["check"]).status.code(), Some(3));
    });
}

/// A boot with one verified link.
fn boot() {
    crowd(1);
    dress_up("rd.ib.require=ib0");
    assert_eq!(ibboot(&["up"]).status.code(), Some(0));
}

/// A boot with one verified link, and a /run that cannot be written afterwards.
fn boot_and_protect_run() {
    boot();
    let none = None::<&str>;
    let readonly = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(none, "/run", none, readonly, none).unwrap();
}

#[test]
fn an_earlier_verdict_that_cannot_be_removed_is_an_error_that_names_it() {
    alone("earlier verdict", || {
        boot_and_protect_run();
        let again = ibboot(&["up"]);
        let output = String::from_utf8(again.stderr).unwrap();
        let why = "/run/ibboot/result: cannot be removed: Read-only file system; it holds the verdict of an earlier run";
        assert!(output.contains(why), "{output}");
        assert_eq!(again.status.code(), Some(1));
    });
}

#[test]
fn a_report_that_cannot_be_recorded_leaves_the_verdict_as_it_is() {
    alone("record", || {
        boot_and_protect_run();
        for format in ["text", "journal"] {
            let check = ibboot(&["check", "--format", format, "--record"]);
            assert_eq!(
                String::from_utf8(check.stderr).unwrap(),
                "ibboot: WARN  /run/ibboot/check.json: cannot be written: Read-only file system; \
                 timeline will lack this check\n"
            );
            assert_eq!(check.status.code(), Some(0));
        }
        let file = ["check", "--textfile", "/run/ibboot/x.prom"];
        assert_eq!(ibboot(&file).status.code(), Some(3));
    });
}

#[test]
fn a_report_is_recorded_only_if_there_is_none_of_this_boot() {
    alone("record once", || {
        boot();
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let newer = format!(r#"{{"schema":99,"boot_id":"{}"}}"#, id.trim());
        let damaged = "ibboot: WARN  /run/ibboot/check.json: does not parse: EOF while parsing an \
                       object at line 1 column 1; timeline will lack this check\n";
        for (before, is_kept, warning) in [
            (newer.as_str(), true, ""),
            ("{", true, damaged),
            (r#"{"schema":1,"boot_id":"another"}"#, false, ""),
        ] {
            fs::write("/run/ibboot/check.json", before).unwrap();
            let check = ibboot(&["check", "--record"]);
            assert_eq!(String::from_utf8(check.stderr).unwrap(), warning);
            assert_eq!(check.status.code(), Some(0));
            let after = fs::read_to_string("/run/ibboot/check.json").unwrap();
            assert_eq!(after == before, is_kept, "{after}");
            assert_eq!(after.contains(r#""status": "ok""#), !is_kept, "{after}");
        }
    });
}

#[test]
fn a_command_ends_at_its_limit_with_the_output_of_all_others_unchanged() {
    alone("limit", || {
        crowd(1);
        dress_up("rd.ib.require=guid=0x1 rd.ib.timeout=600");
        let mut limit = pace::Limit::seconds(60);
        let late = ibboot(&["--limit", "1", "up"]);
        assert_eq!(late.status.code(), Some(1));
        assert!(!limit.is_over());
        let why = "ibboot: --limit 1 up: has not ended in time; ";
        let stderr = String::from_utf8(late.stderr).unwrap();
        assert!(stderr.lines().last().unwrap().starts_with(why), "{stderr}");
        for call in [vec!["plan"], vec!["plan", "--requested"], vec!["bogus"]] {
            let free = ibboot(&call);
            let limited = ibboot(&[&["--limit=60"], call.as_slice()].concat());
            assert_eq!(format!("{free:?}"), format!("{limited:?}"));
        }
    });
}

/// Values of all interfaces by name, from the facts.
fn links(facts: &Value) -> Vec<String> {
    let netdevs = facts["netdevs"].as_array().unwrap().iter();
    let lines = netdevs.map(|link| {
        // Down: neither carrier nor a state below.
        let carrier = link["carrier"].as_bool().unwrap_or_default();
        format!(
            "{} {} up={} carrier={carrier} {} mtu={} {}",
            link["ifindex"],
            link["ifname"],
            link["up"],
            link["operstate"],
            link["mtu"],
            link["address"],
        )
    });
    sorted(lines.collect())
}

/// The same from ip(8).
fn links_of_ip() -> Vec<String> {
    let links = json("-j link show");
    let lines = links.as_array().unwrap().iter().map(|link| {
        let flags = link["flags"].as_array().unwrap();
        let has = |flag: &str| flags.iter().any(|one| one == flag);
        let state = link["operstate"].as_str().unwrap().to_lowercase();
        format!(
            "{} {} up={} carrier={} \"{state}\" mtu={} {}",
            link["ifindex"],
            link["ifname"],
            has("UP"),
            has("UP") && !has("NO-CARRIER"),
            link["mtu"],
            link["address"],
        )
    });
    sorted(lines.collect())
}

#[test]
fn all_links_are_seen_on_the_machine_and_in_its_copy() {
    alone("links", || {
        let mut batch = String::from("link set lo up\nlink add br0 type bridge\n");
        for n in 0..200 {
            writeln!(
                batch,
                "link add v{n} mtu {} type veth peer name p{n}",
                1500 + n
            )
            .unwrap();
            // Both up, one down (no carrier), both down.
            for end in ["v", "p"].iter().take(n % 3) {
                writeln!(batch, "link set {end}{n} up").unwrap();
            }
        }
        ip("-batch -", &batch);
        let same = || links(&facts(&[])) == links_of_ip();
        // The kernel's link watch sets the operational state later.
        let mut limit = pace::Limit::seconds(5);
        let is_same = loop {
            std::thread::sleep(std::time::Duration::from_millis(100));
            let is_same = same();
            if is_same || limit.is_over() {
                break is_same;
            }
        };
        let found = facts(&[]);
        assert!(is_same, "{:?}\n{:?}", links(&found), links_of_ip());
        assert_eq!(links(&found).len(), 402);
        assert_eq!(found["unread"], Value::Array(Vec::new()));
        let copy = "/run/copy";
        for again in [facts(&["--tree", copy]), facts(&["--root", copy])] {
            assert_eq!(links(&again), links(&found));
            let kinds = |facts: &Value| facts["netdevs"][0]["kind"].clone();
            assert_eq!(kinds(&again), kinds(&found));
        }
    });
}

#[test]
fn the_files_of_an_interface_are_read_again_with_its_message_or_with_everything() {
    alone("files of interfaces", || {
        crowd(1);
        dress_up("");
        let (root, mut memory) = (Root::new("/"), Memory::default());
        let mut look = |touched: Touched| {
            memory.touch(touched);
            let depth = Depth::Interfaces;
            let facts = Facts::gather_again(&root, None, &mut memory, &[], depth);
            facts.netdev("ib0").unwrap().hardware_type
        };
        let becomes = |text: &str| fs::write("/run/sys/class/net/ib0/type", text).unwrap();
        let (infiniband, ethernet) = (Some(HardwareType::InfiniBand), Some(HardwareType::Ethernet));
        becomes("1\n");
        assert_eq!(look(Touched::Nothing), ethernet);
        becomes("32\n");
        assert_eq!(look(Touched::Lists), ethernet);
        // A state is in the message alone.
        ip("link set ib0 mtu 1400", "");
        assert_eq!(look(Touched::Lists), ethernet);
        assert_eq!(look(Touched::Everything), infiniband);
        // The message of an IPoIB interface without its mode does not report a change of the mode.
        becomes("1\n");
        assert_eq!(look(Touched::Nothing), ethernet);
        becomes("32\n");
        ip("link set ib0 address 02:00:00:00:00:07", "");
        assert_eq!(look(Touched::Nothing), infiniband);
    });
}
