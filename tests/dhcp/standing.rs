// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot lease` through the events of a year: links that go down and come back, cards that are
//! reset, files that cannot be written, other programs, and another user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use super::keeping::{LEASES, addresses, aged, hand_over, lease, now, written};
use super::network::{Node, Server, hardware, infiniband, ip, until, with_network};
use super::others::{dhcpd, subnet};
use super::servers::dnsmasq;
use crate::program;
use ibboot::dhcp::v4::progress::Progress;
use ibboot::handover::leases;
use ibboot::hardware::Hex;
use ibboot::system::root::Root;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

const PLACE: &str = "/run/ibboot";
const ROUTES: &str =
    "--dhcp-option=option:classless-static-route,10.7.0.0/16,10.9.0.7,0.0.0.0/0,10.9.0.1";

fn routes() -> String {
    ip("-4 route show proto static")
}

/// A client with a lease, and the state that `up` would write.
fn booted(keep: bool) -> Progress {
    let mut node = Node::new(infiniband());
    node.boot(None);
    let mut progress = node.session.progress();
    progress.wish.keep = keep;
    progress
}

fn count(program: &Server, what: &str) -> usize {
    program.output().matches(what).count()
}

#[test]
fn routes_that_went_with_the_link_are_set_again() {
    for keep in [true, false] {
        with_network("ibboot lease and a link down", &["dnsmasq"], move || {
            let _server = dnsmasq(&["--dhcp-range=10.9.0.10,10.9.0.10,1h", ROUTES]);
            let mut node = Node::new(infiniband());
            node.boot(None);
            let (_, mut program) = hand_over(node, keep);
            let all = "default via 10.9.0.1 dev near \n10.7.0.0/16 via 10.9.0.7 dev near \n";
            until("the routes", || routes() == all);
            ip("link set near down");
            until("no routes", || routes().is_empty());
            ip("link set near up");
            until("the routes again", || routes() == all);
            program.running();
        });
    }
}

#[test]
fn the_default_route_of_the_boot_device_precedes_that_of_another_interface_again() {
    for boot in [true, false] {
        with_network("ibboot lease and two gateways", &["dnsmasq"], move || {
            let _server = dnsmasq(&["--dhcp-range=10.9.0.10,10.9.0.10,1h", ROUTES]);
            let mut progress = booted(false);
            progress.wish.boot = boot;
            ip("link add other type veth peer name third");
            ip("addr add 10.8.0.5/24 dev other");
            ip("link set other up");
            ip("link set third up");
            ip("route add default via 10.8.0.1 dev other proto static");
            written(&progress);
            let mut program = lease();
            let (near, other) = (
                "default via 10.9.0.1 dev near \n",
                "default via 10.8.0.1 dev other \n",
            );
            let way = "10.7.0.0/16 via 10.9.0.7 dev near \n";
            let all = match boot {
                true => [near, other, way].concat(),
                false => [other, near, way].concat(),
            };
            until("the routes", || routes() == all);
            ip("link set near down");
            until("the other route alone", || routes() == other);
            ip("link set near up");
            until("the routes again", || routes() == all);
            program.running();
        });
    }
}

#[test]
fn a_route_that_somebody_took_away_is_theirs_unless_it_leads_to_the_root() {
    for keep in [true, false] {
        with_network("ibboot lease and a lost route", &["dnsmasq"], move || {
            let _server = dnsmasq(&["--dhcp-range=10.9.0.10,10.9.0.10,1h", ROUTES]);
            let progress = booted(keep);
            written(&progress);
            root_is_on("10.7.0.2");
            let mut program = lease();
            until("the routes", || routes().lines().count() == 2);
            // The program sets a route again that it had not checked yet, and the second time
            // leaves the route removed.
            let taken = |route: &str, program: &Server| {
                let what = format!("route {route} was removed by another program: not set again");
                until(&what, || {
                    let network = route.split(' ').next().unwrap();
                    if !ip(&format!("route show {network} dev near")).is_empty() {
                        ip(&format!("route del {network} dev near"));
                        // An event that the program receives.
                        ip("addr replace 192.0.2.1/32 dev near");
                    }
                    program.output().contains(&what)
                });
            };
            taken("0.0.0.0/0 via 10.9.0.1", &program);
            if keep {
                ip("route del 10.7.0.0/16");
                ip("addr replace 192.0.2.2/32 dev near");
                program.reports("route 10.7.0.0/16 via 10.9.0.7 set again");
                until("the way to the root", || {
                    routes() == "10.7.0.0/16 via 10.9.0.7 dev near \n"
                });
            } else {
                taken("10.7.0.0/16 via 10.9.0.7", &program);
                assert_eq!(routes(), "");
            }
            program.running();
        });
    }
}

#[test]
fn an_old_route_stays_while_the_kernel_refuses_the_new_one_also_after_a_restart() {
    with_network("ibboot lease and a refused route", &["dnsmasq"], || {
        let server = |router: &str| {
            let router = format!("--dhcp-option=option:router,{router}");
            let range = "--dhcp-range=10.9.0.10,10.9.0.10,255.255.255.0,2m";
            dnsmasq(&[range, "--dhcp-option=option:T1,5", &router])
        };
        let first = server("10.9.0.1");
        let progress = booted(false);
        drop(first);
        written(&progress);
        ip("route add default via 10.9.0.1 dev near proto static");
        let old = "default via 10.9.0.1 dev near \n";
        // The broadcast address of the link.
        let second = server("10.9.0.255");
        for start in ["after boot", "again"] {
            let mut program = lease();
            program.reports("10.9.0.255");
            until("two renewals", || count(&program, "renewed by") >= 2);
            assert_eq!(routes(), old, "{start}: {}", program.output());
        }
        drop(second);
        let _third = server("10.9.0.2");
        let mut program = lease();
        program.reports("route 0.0.0.0/0 via 10.9.0.1 removed, as the server requests");
        assert_eq!(routes(), "default via 10.9.0.2 dev near \n");
    });
}

/// expected.json with a root file system on this server.
fn root_is_on(server: &str) {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = format!(
        r#"{{"schema": 1, "boot_id": "{}", "require": "listed", "links": [], "any_port": null, "rates": [],
            "modules": [], "root": {{"protocol": "nfs", "transport": "tcp", "server": "{server}", "requested_by": null}}}}"#,
        boot_id.trim()
    );
    fs::write(format!("{PLACE}/expected.json"), text).unwrap();
}

#[test]
fn of_the_routes_that_the_server_has_no_more_those_to_the_root_stay() {
    with_network(
        "ibboot lease and a server without routes",
        &["dnsmasq"],
        || {
            let options = [
                "--dhcp-range=10.9.0.10,10.9.0.10,255.255.255.0,2m",
                "--dhcp-option=option:T1,5",
            ];
            let first = dnsmasq(&[&options[..], &[ROUTES]].concat());
            let progress = booted(true);
            drop(first);
            written(&progress);
            root_is_on("10.7.0.2");
            // Without an explicit "no router" dnsmasq announces itself as router.
            let _second = dnsmasq(&[&options[..], &["--dhcp-option=option:router"]].concat());
            let mut program = lease();
            program.reports("applied after boot: no route 10.7.0.0/16 via 10.9.0.7");
            program.reports("route 0.0.0.0/0 via 10.9.0.1 removed");
            assert_eq!(routes(), "10.7.0.0/16 via 10.9.0.7 dev near \n");
            // The next start has the same state.
            until("the lease in leases.json", || {
                fs::exists(LEASES).unwrap() && now().lease != progress.lease
            });
            drop(program);
            let mut program = lease();
            program.reports("is kept, for 120 s");
            ip("link set near down");
            ip("link set near up");
            program.reports("route 10.7.0.0/16 via 10.9.0.7 set again");
            assert_eq!(routes(), "10.7.0.0/16 via 10.9.0.7 dev near \n");
        },
    );
}

#[test]
fn a_larger_network_does_not_take_the_root_from_its_router() {
    with_network("ibboot lease and a larger network", &["dnsmasq"], || {
        let options = |mask: &str| {
            let mask = format!("--dhcp-option=option:netmask,{mask}");
            let range = "--dhcp-range=10.9.0.10,10.9.0.10,255.255.255.0,2m";
            dnsmasq(&[range, "--dhcp-option=option:T1,5", &mask])
        };
        let first = options("255.255.255.0");
        let progress = booted(true);
        drop(first);
        written(&progress);
        root_is_on("10.77.1.1");
        let _second = options("255.0.0.0");
        for start in ["after boot", "again"] {
            let mut program = lease();
            program.reports("10.9.0.10/24 of 10.9.0.1 is kept");
            program.reports("applied after boot: address 10.9.0.10/8");
            let output = program.output();
            assert!(
                output.contains("10.9.0.10/24 renewed by 10.9.0.1"),
                "{start}: {output}"
            );
            assert!(addresses().contains(" 10.9.0.10/24 ") && !addresses().contains("/8"));
            assert!(ip("route get 10.77.1.1").contains(" via 10.9.0.1 "));
            until("the lease in leases.json", || {
                fs::exists(LEASES).unwrap() && now().lease != progress.lease
            });
            assert_eq!(now().lease.unwrap().prefix, 24);
        }
    });
}

#[test]
fn a_prefix_that_stayed_for_the_root_goes_when_a_router_leads_there() {
    with_network("ibboot lease and a smaller network", &["dnsmasq"], || {
        let server = |mask: &str, router: &str| {
            let mask = format!("--dhcp-option=option:netmask,{mask}");
            let router = format!("--dhcp-option=option:router{router}");
            let range = "--dhcp-range=10.9.0.10,10.9.0.10,255.255.255.0,2m";
            dnsmasq(&[range, "--dhcp-option=option:T1,5", &mask, &router])
        };
        let first = server("255.255.0.0", "");
        let progress = booted(true);
        drop(first);
        written(&progress);
        root_is_on("10.9.7.1");
        let second = server("255.255.255.0", "");
        let mut program = lease();
        program.reports("applied after boot: no address 10.9.0.10/16");
        assert!(addresses().contains(" 10.9.0.10/16 ") && addresses().contains(" 10.9.0.10/24 "));
        until("the prefix in leases.json", || {
            fs::read_to_string(LEASES).is_ok_and(|text| text.contains("\"addresses\""))
        });
        drop((program, second));
        let _third = server("255.255.255.0", ",10.9.0.1");
        let mut program = lease();
        program.reports("address 10.9.0.10/16 removed, as the server requests");
        assert!(!addresses().contains(" 10.9.0.10/16 ") && addresses().contains(" 10.9.0.10/24 "));
    });
}

#[test]
fn an_interface_that_comes_back_after_a_reset_gets_its_address_again() {
    for keep in [true, false] {
        with_network("ibboot lease and a reset", &["dhcpd"], move || {
            let server = dhcpd("far", &subnet(""));
            let mut node = Node::new(infiniband());
            node.boot(None);
            let (before, mut program) = hand_over(node, keep);
            program.reports("is kept, for 3600 s");
            let lease = before.lease.unwrap().address_text();
            let address = Hex(&hardware().address).to_string();
            ip("link del near");
            program.reports(&format!(
                "near: the interface is gone: {lease} waits for the interface"
            ));
            // Another interface with the old name is not ours.
            ip("link add near type veth peer name other");
            ip(&format!(
                "link add anew address {address} type veth peer name far netns far"
            ));
            ip("-n far addr add 10.9.0.1/24 dev far");
            ip("-n far link set far up");
            program.reports("anew: the interface is back");
            until("the address", || {
                ip("-4 -o addr show dev anew").contains(&lease)
            });
            until("the route", || {
                ip("route show default").contains("via 10.9.0.1 dev anew")
            });
            assert!(addresses().is_empty());
            assert!(ip("link show anew").contains(",UP"));
            drop(server);
            // A server without a record of the lease grants the address again.
            let _server = dhcpd("far", &subnet("option dhcp-renewal-time 5;"));
            ip("link set anew down");
            ip("link set anew up");
            until("the name in leases.json", || now().interface == "anew");
            program.running();
        });
    }
}

#[test]
fn carrier_makes_the_next_question_come_soon() {
    with_network("ibboot lease and carrier", &["dhcpd"], || {
        let server = dhcpd("far", &subnet("option dhcp-renewal-time 5;"));
        let progress = booted(true);
        drop(server);
        written(&progress);
        let mut program = Server::here("lease", &[env!("CARGO_BIN_EXE_ibboot"), "lease", "-v"]);
        // The next renewal would come after half of the time until T2, in twenty minutes.
        program.reports(" sent to 10.9.0.1");
        let _server = dhcpd("far", &subnet(""));
        ip("-n far link set far down");
        until("no carrier", || ip("link show near").contains("NO-CARRIER"));
        ip("-n far link set far up");
        program.reports("renewed by 10.9.0.1, for 3600 s");
    });
}

#[test]
fn files_that_cannot_be_written_or_read_end_nothing_and_take_nothing_away() {
    with_network("ibboot lease without files", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet("option dhcp-renewal-time 5;"));
        let progress = booted(false);
        written(&progress);
        let mut program = lease();
        program.reports("renewed by 10.9.0.1");
        until("leases.json", || now().lease != progress.lease);
        // A damaged file and a full file system: the program has all it needs in memory.
        fs::write(LEASES, "{").unwrap();
        let none = None::<&str>;
        mount(Some(PLACE), PLACE, none, MsFlags::MS_BIND, none).unwrap();
        let read_only = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(none, PLACE, none, read_only, none).unwrap();
        let what =
            "leases.json: cannot be written: Read-only file system; the leases are still renewed";
        program.reports(what);
        let renewals = count(&program, "renewed by");
        until("another renewal", || {
            count(&program, "renewed by") > renewals
        });
        assert_eq!(count(&program, what), 1, "{}", program.output());
        umount2(PLACE, MntFlags::MNT_DETACH).unwrap();
        program.reports("the leases can be saved again");
        until("leases.json", || now().lease != progress.lease);
        assert!(addresses().contains("10.9.0."));
        program.running();
    });
}

#[test]
fn a_start_takes_nothing_away_on_the_word_of_an_old_file() {
    with_network("ibboot lease and an old file", &["dhcpd"], || {
        let server = dhcpd("far", &subnet(""));
        let mut progress = booted(false);
        // As if the lease had been renewed all the time, without being written.
        let lease_s = u64::from(progress.lease.as_ref().unwrap().seconds);
        progress.lease.as_mut().unwrap().seconds = 30;
        assert!(lease_s > 30);
        aged(&mut progress, 31);
        written(&progress);
        let mut program = lease();
        program.reports("renewed by 10.9.0.1, for 3600 s");
        assert_eq!(count(&program, "removed"), 0, "{}", program.output());
        drop((program, server));
        // A file that does not parse must not stop the program.
        fs::write(LEASES, "{").unwrap();
        let mut program = lease();
        program.reports("leases.json: does not parse");
        program.reports("using the leases that the initramfs handed over");
        program.reports(" s ago: requesting the address again");
        drop(program);
        fs::write(LEASES, "{").unwrap();
        fs::write(format!("{PLACE}/state.json"), "{").unwrap();
        lease().ends_with("/run/ibboot/state.json: does not parse", 3);
        assert!(addresses().contains("10.9.0."));
    });
}

#[test]
fn one_keeper_at_a_time() {
    with_network("two of ibboot lease", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet(""));
        let mut node = Node::new(infiniband());
        node.boot(None);
        let (_, mut program) = hand_over(node, true);
        program.reports("is kept, for 3600 s");
        let mut second = Server::here("second", &[env!("CARGO_BIN_EXE_ibboot"), "lease"]);
        second.ends_with("lease: another instance of \"ibboot lease\" is running", 1);
        let left = format!("{PLACE}/lease/.leases.json.1");
        fs::write(&left, "").unwrap();
        drop(program);
        lease().reports("is kept, for 3600 s");
        assert!(!fs::exists(left).unwrap());
        let mode = |name: &str| {
            let metadata = fs::metadata(format!("{PLACE}/lease/{name}")).unwrap();
            metadata.permissions().mode() & 0o7777
        };
        assert_eq!((mode("lock"), mode("leases.json")), (0o600, 0o600));
    });
}

/// Resident memory of a process in KiB.
fn resident_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

#[test]
fn interfaces_that_come_and_go_leave_nothing_behind() {
    with_network("ibboot lease and other interfaces", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet(""));
        let mut node = Node::new(infiniband());
        node.boot(None);
        let (_, mut program) = hand_over(node, true);
        program.reports("is kept, for 3600 s");
        let churn = || {
            let lines: Vec<String> = (0..50)
                .flat_map(|at| {
                    [
                        format!("link add c{at} type veth peer name d{at}"),
                        format!("link del c{at}"),
                    ]
                })
                .collect();
            fs::write("/run/churn", lines.join("\n")).unwrap();
            let done = Command::new("ip").args(["-batch", "/run/churn"]).status();
            assert!(done.unwrap().success());
        };
        // The first interfaces grow buffers that are never freed.
        churn();
        let before = resident_kib(program.running());
        (0..5).for_each(|_| churn());
        let after = resident_kib(program.running());
        assert!(after < before + 4096, "{before} KiB, then {after} KiB");
    });
}

/// Runs a program as the user nobody with these capabilities.
const ALONE: [&str; 6] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all,+net_admin,+net_raw,+net_bind_service",
    "--ambient-caps=-all,+net_admin,+net_raw,+net_bind_service",
];

#[test]
fn a_user_of_its_own_with_three_capabilities_is_enough() {
    with_network("ibboot lease, unprivileged", &["dhcpd", "setpriv"], || {
        let _server = dhcpd("far", &subnet("option dhcp-renewal-time 5;"));
        let progress = booted(true);
        written(&progress);
        // As in the unit: RuntimeDirectory=, LoadCredential= and the watchdog.
        let state = format!("{PLACE}/state.json");
        let own = format!("{PLACE}/lease");
        fs::create_dir(&own).unwrap();
        fs::create_dir("/run/credentials").unwrap();
        fs::copy(&state, "/run/credentials/state.json").unwrap();
        for path in [own.as_str(), "/run/credentials/state.json"] {
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
        }
        for path in [state.as_str(), "/run/credentials/state.json"] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        // The program itself is in a directory that the user nobody cannot read.
        let binary = "/run/ibboot-program";
        program::copy(binary);
        fs::set_permissions(binary, fs::Permissions::from_mode(0o755)).unwrap();
        let manager = UnixDatagram::bind("/run/notify").unwrap();
        manager
            .set_read_timeout(Some(std::time::Duration::from_secs(60)))
            .unwrap();
        fs::set_permissions("/run/notify", fs::Permissions::from_mode(0o777)).unwrap();
        let environment = [
            ("CREDENTIALS_DIRECTORY", "/run/credentials"),
            ("NOTIFY_SOCKET", "/run/notify"),
            ("WATCHDOG_USEC", "2000000"),
        ];
        let program = [&ALONE[..], &[binary, "lease"]].concat();
        let mut program = Server::with("lease", &program, &environment);
        for expected in ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"] {
            let mut bytes = [0; 64];
            let length = manager.recv(&mut bytes).unwrap();
            assert_eq!(
                &bytes[..length],
                expected.as_bytes(),
                "{}",
                program.output()
            );
        }
        program.reports("renewed by 10.9.0.1");
        ip("link set near down");
        ip("link set near up");
        ip("addr flush dev near");
        program.reports("/24 set again");
        until("leases.json", || now().lease != progress.lease);
        // Root trusts the file of the user; a start by hand continues the lease, and lock and file
        // stay the user's.
        let believed = leases(&Root::new("/")).unwrap().dhcp.remove(0).lease;
        assert_eq!(believed, now().lease);
        let pid = program.running();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        // CAP_NET_BIND_SERVICE 10, CAP_NET_ADMIN 12, CAP_NET_RAW 13.
        assert!(status.contains("CapEff:\t0000000000003400"), "{status}");
        drop(program);
        fs::remove_file(format!("{own}/lock")).unwrap();
        let mut by_hand = lease();
        by_hand.reports("is kept, for 3600 s").reports("renewed by");
        until("leases.json of root", || now().lease != believed);
        for name in ["lock", "leases.json"] {
            let owner = std::os::unix::fs::MetadataExt::uid(
                &fs::metadata(format!("{own}/{name}")).unwrap(),
            );
            assert_eq!(owner, 65534, "{name}");
        }
    });
}
