// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot lease` itself, as in the real root: with state.json alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::network::{Node, Server, enter_far, infiniband, ip, until, with_network};
use super::others::{dhcpd, subnet};
use super::servers::dnsmasq;
use ibboot::dhcp::hardware::Hardware;
use ibboot::dhcp::v4::arp::Arp;
use ibboot::dhcp::v4::progress::{self, Progress};
use ibboot::dhcp::v4::socket::{PacketSocket, Protocol};
use ibboot::handover::{Kept, Outcome, State, write_state};
use ibboot::hardware::HardwareType;
use ibboot::inet::Address;
use ibboot::system::clock::boottime_ns;
use ibboot::system::directory::Directory;
use ibboot::system::root::Root;
use ibboot::{SCHEMA, dhcp};

pub const LEASES: &str = "/run/ibboot/lease/leases.json";

/// Writes state.json with this lease as `up` does, sets the address, and starts the program.
pub fn hand_over(node: Node, keep: bool) -> (Progress, Server) {
    let mut progress = node.session.progress();
    progress.wish.keep = keep;
    written(&progress);
    drop(node);
    (progress, lease())
}

/// Starts the program.
pub fn lease() -> Server {
    Server::here("lease", &[env!("CARGO_BIN_EXE_ibboot"), "lease"])
}

/// Writes state.json and sets the address, as `up` does.
pub fn written(progress: &Progress) {
    ip(&format!(
        "addr add {} dev near",
        progress.lease.as_ref().unwrap().address_text()
    ));
    hand_over_state(vec![progress.clone()], Vec::new());
}

/// Writes state.json as `up` does.
pub fn hand_over_state(dhcp: Vec<Progress>, dhcp6: Vec<dhcp::v6::progress::Progress>) {
    let state = State {
        schema: SCHEMA,
        ibboot: "test".to_owned(),
        boot_id: Root::new("/").boot_id(),
        outcome: Outcome::Verified,
        reason: None,
        handover: None,
        links: Vec::new(),
        dhcp,
        dhcp6,
        information: Vec::new(),
        silent: Vec::new(),
        failures: Vec::new(),
        marks: Vec::new(),
    };
    write_state(&Directory::open().unwrap(), &state).unwrap();
}

/// The state that the program has written.
pub fn now() -> Progress {
    let kept = fs::read(LEASES).unwrap();
    let kept: Kept = serde_json::from_slice(&kept).unwrap();
    kept.dhcp[0].clone()
}

pub fn addresses() -> String {
    ip("-4 -o addr show dev near")
}

#[test]
fn a_lease_is_renewed_and_written_down() {
    with_network("ibboot lease renews", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet("option dhcp-renewal-time 2;"));
        let mut node = Node::new(infiniband());
        node.boot(None);
        let (before, mut program) = hand_over(node, true);
        program.reports("renewed by 10.9.0.1, for 3600 s");
        let before = before.lease.unwrap();
        until("the renewed lease in leases.json", || {
            now().lease.unwrap().requested_ns > before.requested_ns
        });
        assert_eq!(now().lease.unwrap().address, before.address);
        assert!(now().wish.keep);
        let written = fs::metadata(LEASES).unwrap();
        assert_eq!(written.permissions().mode() & 0o7777, 0o600);
        assert!(addresses().contains("valid_lft forever"));
    });
}

/// A lease with four seconds left, whose server is gone.
fn ends(keep: bool) -> Server {
    ends_beside(keep, None)
}

/// Like `ends`; the command line requests the address with this prefix too.
fn ends_beside(keep: bool, prefix: Option<u8>) -> Server {
    let times = "default-lease-time 30; max-lease-time 30; min-lease-time 30;";
    let server = dhcpd("far", &subnet(times));
    let mut node = Node::new(infiniband());
    let lease = node.boot(None);
    assert_eq!(lease.seconds, 30);
    drop(server);
    let mut progress = node.session.progress();
    progress.wish.keep = keep;
    aged(&mut progress, 26);
    let address = lease.address.into();
    let requested = prefix.map(|prefix| Address { address, prefix });
    progress.addresses.extend(requested);
    written(&progress);
    if let Some(requested) = requested {
        ip(&format!("addr add {requested} dev near"));
    }
    drop(node);
    let mut program = self::lease();
    program.reports("has ended");
    program
}

/// Makes the lease older by this many seconds.
pub fn aged(progress: &mut Progress, seconds: u64) {
    let lease = progress.lease.as_mut().unwrap();
    lease.requested_ns = boottime_ns() - seconds * 1_000_000_000;
}

#[test]
fn the_address_of_the_root_outlives_its_lease_and_is_granted_again() {
    with_network("ibboot lease keeps the root's address", &["dhcpd"], || {
        let mut program = ends(true);
        assert!(
            program
                .output()
                .contains("the address is kept, because the root file system depends on it")
        );
        assert!(addresses().contains("10.9.0."));
        let _back = dhcpd("far", &subnet(""));
        program.reports("renewed by 10.9.0.1, for 3600 s");
        assert!(addresses().contains("10.9.0."));
    });
}

#[test]
fn any_other_address_goes_with_its_lease_and_a_new_one_comes() {
    with_network("ibboot lease gives an address up", &["dhcpd"], || {
        let mut program = ends(false);
        program.reports("removed");
        until("no address", || !addresses().contains("10.9.0."));
        let _back = dhcpd("far", &subnet(""));
        program.reports("of 10.9.0.1, for 3600 s");
        until("the address", || addresses().contains("10.9.0."));
        until("the route", || {
            ip("route show default").contains("via 10.9.0.1 dev near")
        });
    });
}

#[test]
fn of_an_address_of_the_command_line_only_the_prefix_of_the_lease_is_removed() {
    with_network("ibboot lease, address requested too", &["dhcpd"], || {
        let mut program = ends_beside(false, Some(16));
        program.reports("/24 removed");
        let output = program.output();
        assert!(
            output.contains("/16 stays: the command line requests it"),
            "{output}"
        );
        assert_eq!(output.matches("removed").count(), 1, "{output}");
        until("the other prefix alone", || {
            let seen = addresses();
            seen.contains("/16") && !seen.contains("/24")
        });
    });
}

#[test]
fn an_address_that_somebody_else_took_away_is_not_ours_any_longer() {
    with_network("ibboot lease and another owner", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet(""));
        let mut node = Node::new(infiniband());
        node.boot(None);
        let (_, mut program) = hand_over(node, false);
        program.reports("is kept, for 3600 s");
        ip("addr flush dev near");
        program.ends_with("was removed by another program: no longer renewed", 0);
        assert!(program.output().contains("no lease is left to keep"));
        // The program wrote this down: the next start leaves the address alone too.
        lease().ends_with("there is no lease to keep", 0);
        assert!(!addresses().contains("10.9.0."), "{}", addresses());
    });
}

#[test]
fn the_address_of_the_root_is_set_again_whoever_took_it_away() {
    with_network("ibboot lease sets the root's address", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet(""));
        let mut node = Node::new(infiniband());
        node.boot(None);
        let (_, mut program) = hand_over(node, true);
        program.reports("is kept, for 3600 s");
        ip("addr flush dev near");
        program.reports("/24 set again");
        program.reports("route 0.0.0.0/0 via 10.9.0.1 set again");
        assert!(addresses().contains("10.9.0."), "{}", addresses());
        assert!(ip("route show default").contains("via 10.9.0.1 dev near"));
        program.running();
    });
}

#[test]
fn probes_that_the_initramfs_had_no_time_for_are_made_and_find_another_owner() {
    with_network("ibboot lease and a taken address", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet(""));
        let mut node = Node::new(infiniband());
        let taken = node.boot(None).address_text();
        ip(&format!("-n far addr add {taken} dev far"));
        let (before, mut program) = hand_over(node, false);
        assert_eq!(before.state, progress::State::Probing);
        program.reports(": declined; requesting another address");
        program.reports("of 10.9.0.1, for 3600 s");
        until("another address", || {
            addresses().contains("10.9.0.") && !addresses().contains(&taken)
        });
        until("the end of the probes", || {
            now().state == progress::State::Bound
        });
        assert_ne!(now().lease.unwrap().address_text(), taken);
    });
}

#[test]
fn what_the_server_changes_is_applied_when_the_lease_is_renewed() {
    with_network("ibboot lease applies changes", &["dnsmasq"], || {
        let range = "--dhcp-range=10.9.0.10,10.9.0.10,255.255.255.0,1h";
        let server = |options: [&str; 4]| {
            let (renew, rebind) = ("--dhcp-option=option:T1,2", "--dhcp-option=option:T2,4");
            let mut all = vec![range, renew, rebind];
            all.extend(options);
            dnsmasq(&all)
        };
        let first = server([
            "--dhcp-option=option:netmask,255.255.255.0",
            "--dhcp-option=option:classless-static-route,10.7.0.0/16,10.9.0.7,0.0.0.0/0,10.9.0.1",
            "--dhcp-option=option:mtu,1400",
            "--dhcp-option=option:dns-server,10.9.0.3",
        ]);
        let mut node = Node::new(infiniband());
        let lease = node.boot(None);
        assert_eq!(
            (lease.address_text().as_str(), lease.mtu),
            ("10.9.0.10/24", Some(1400))
        );
        drop(first);
        let mut progress = node.session.progress();
        progress.wish.keep = false;
        written(&progress);
        drop(node);
        // As `up` sets the routes.
        ip("route add 10.7.0.0/16 via 10.9.0.7 dev near proto static");
        ip("route add default via 10.9.0.1 dev near proto static");
        ip("link set near mtu 1400");
        let _second = server([
            "--dhcp-option=option:netmask,255.255.0.0",
            "--dhcp-option=option:classless-static-route,10.8.0.0/16,10.9.0.7,0.0.0.0/0,10.9.0.2",
            "--dhcp-option=option:mtu,1300",
            "--dhcp-option=option:dns-server,10.9.0.4",
        ]);
        let mut program = self::lease();
        program.reports(
            "near: the server changed settings that are not applied after boot: name servers 10.9.0.4",
        );
        let output = program.output();
        for change in [
            "address 10.9.0.10/16 set",
            "route 10.8.0.0/16 via 10.9.0.7 set",
            "route 0.0.0.0/0 via 10.9.0.2 set",
            "route 10.7.0.0/16 via 10.9.0.7 removed",
            "route 0.0.0.0/0 via 10.9.0.1 removed",
            "address 10.9.0.10/24 removed",
            "MTU 1300 set",
        ] {
            let line = format!("near: {change}, as the server requests");
            assert!(output.contains(&line), "{line}: {output}");
        }
        assert_eq!(
            ip("-4 route show proto static"),
            "default via 10.9.0.2 dev near \n10.8.0.0/16 via 10.9.0.7 dev near \n"
        );
        assert!(addresses().contains(" 10.9.0.10/16 ") && !addresses().contains("/24"));
        assert!(ip("link show near").contains(" mtu 1300 "));
        assert!(!output.contains("set again"), "{output}");
        // The address is still the node's own, and the next renewal changes nothing more.
        until("the next renewal", || {
            program.output().matches("10.9.0.10/16 renewed by").count() > 1
        });
        assert_eq!(
            program.output().matches("as the server requests").count(),
            7
        );
        assert_eq!(now().lease.unwrap().prefix, 16);
    });
}

/// The hardware address of an interface in this namespace.
fn hardware_address(name: &str) -> Vec<u8> {
    Hardware::read(&Root::new("/"), name).unwrap().address
}

#[test]
fn who_uses_the_address_too_is_named_once_and_answered_and_an_interface_of_our_own_is_not() {
    with_network("ibboot lease and a conflict", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet(""));
        ip("link add other type veth peer name another");
        let mut node = Node::new(infiniband());
        let address = node.boot(None).address;
        node.unopposed();
        let (before, mut program) = hand_over(node, true);
        assert_eq!(before.state, progress::State::Bound);
        program.reports("is kept, for 3600 s");
        let (near, other) = (hardware_address("near"), hardware_address("other"));
        // The kernel may announce the address with the hardware address of `other`: no conflict.
        let (stranger, mine) = ([2, 0, 0, 0, 0, 0x99], other.clone());
        let heard = std::thread::spawn(move || {
            enter_far();
            let far = Hardware::read(&Root::new("/"), "far").unwrap();
            let socket = PacketSocket::open(Protocol::Arp(address), &far).unwrap();
            for sender in [&mine[..], &stranger] {
                for _ in 0..50 {
                    let claim = Arp::announcement(HardwareType::Ethernet, sender, address);
                    socket.send_arp(&claim).unwrap();
                }
            }
            let mut answer = None;
            until("the defence", || {
                answer = socket.receive().unwrap();
                answer.is_some()
            });
            Arp::decode(&answer.unwrap().bytes).unwrap()
        });
        assert_eq!(
            heard.join().unwrap(),
            Arp::announcement(HardwareType::Ethernet, &near, address)
        );
        let line = format!(
            "near: DHCP: 02:00:00:00:00:99 also uses {address}: the address is kept and announced again"
        );
        program.reports(&line);
        assert_eq!(program.output().matches(" also uses ").count(), 1);
        assert!(addresses().contains(&address.to_string()));
    });
}
