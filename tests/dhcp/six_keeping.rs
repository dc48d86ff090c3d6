// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot lease` with DHCPv6 leases: renewed, ended, removed with the link, declined.

use std::fs;
use std::net::Ipv6Addr;

use super::keeping::{LEASES, hand_over_state, lease as ibboot_lease};
use super::network::{Server, hardware, ip, until};
use super::six::{IAID, Node, dhcpd, dnsmasq, local, with_six};
use ibboot::dhcp::v6::client::Config;
use ibboot::dhcp::v6::identity::Identity;
use ibboot::dhcp::v6::lease::Lease;
use ibboot::dhcp::v6::progress::Progress;
use ibboot::dhcp::v6::session::Session;
use ibboot::dhcp::v6::socket::Closed;
use ibboot::handover::Kept;

/// Writes state.json with this lease as `up` does, sets the address, and starts `ibboot lease`.
fn hand_over(node: Node, keep: bool) -> (Lease, Server) {
    hand_over_aged(node, keep, 0)
}

/// Like `hand_over`, with a lease that was requested this many seconds earlier.
fn hand_over_aged(node: Node, keep: bool, seconds: u64) -> (Lease, Server) {
    let mut progress = node.session.progress();
    progress.wish.keep = keep;
    if let Some(lease) = &mut progress.lease {
        lease.requested_ns = lease.requested_ns.saturating_sub(seconds * 1_000_000_000);
    }
    let lease = progress.lease.clone().unwrap();
    ip(&format!("addr add {} dev near nodad", lease.address_text()));
    hand_over_state(Vec::new(), vec![progress]);
    drop(node);
    (lease, ibboot_lease())
}

fn now() -> Progress {
    let kept = fs::read(LEASES).unwrap();
    let kept: Kept = serde_json::from_slice(&kept).unwrap();
    kept.dhcp6[0].clone()
}

fn addresses() -> String {
    ip("-6 -o addr show dev near scope global")
}

/// Lease times for dhcpd.
fn times(valid: u32, renew: u32) -> String {
    format!(
        "default-lease-time {valid}; max-lease-time {valid}; min-lease-time {valid}; preferred-lifetime {valid}; \
         option dhcp-renewal-time {renew}; option dhcp-rebinding-time {};",
        valid - 1
    )
}

#[test]
fn a_lease_is_renewed_and_written_down() {
    with_six("ibboot lease renews DHCPv6", &["dhcpd"], || {
        let _server = dhcpd(&times(3600, 2));
        let mut node = Node::new();
        let lease = node.boot();
        assert_eq!((lease.seconds, lease.renew_s), (3600, 5));
        let (before, mut program) = hand_over(node, true);
        program.reports("renewed by fe80::");
        let config = Config {
            identity: Identity {
                duid: vec![0, 3, 0, 32, 1, 2, 3, 4, 5, 6, 7, 8],
                iaid: IAID,
            },
            keep: false,
            boot_waits: true,
        };
        let second = Session::open("near", hardware().index, local(), config);
        assert!(matches!(second, Err(Closed::InUse(_))), "{second:?}");
        until("state.json", || {
            now().lease.unwrap().requested_ns > before.requested_ns
        });
        assert_eq!(now().lease.unwrap().address, before.address);
        assert!(now().wish.keep);
        assert!(addresses().contains("valid_lft forever"), "{}", addresses());
    });
}

/// A lease with four seconds left, whose server is gone.
fn ends(keep: bool) -> Server {
    let server = dhcpd(&times(30, 15));
    let mut node = Node::new();
    assert_eq!(node.boot().seconds, 30);
    drop(server);
    let (_, mut program) = hand_over_aged(node, keep, 26);
    program.reports("has ended");
    program
}

#[test]
fn the_address_of_the_root_outlives_its_lease_and_is_granted_again() {
    with_six(
        "ibboot lease keeps the root's IPv6 address",
        &["dhcpd"],
        || {
            let mut program = ends(true);
            let output = program.output();
            assert!(
                output.contains("the address is kept, because the root file system depends on it")
            );
            assert!(addresses().contains("fd00::"));
            let _back = dhcpd(&times(3600, 1800));
            program.reports("renewed by fe80::");
            assert!(addresses().contains("fd00::"));
        },
    );
}

#[test]
fn any_other_address_goes_with_its_lease_and_a_new_one_comes() {
    with_six("ibboot lease gives an IPv6 address up", &["dhcpd"], || {
        let mut program = ends(false);
        program.reports("removed");
        until("no address", || !addresses().contains("fd00::"));
        let _back = dhcpd(&times(3600, 1800));
        program.reports("for 3600 s");
        until("the address", || addresses().contains("fd00::"));
    });
}

#[test]
fn an_address_that_the_kernel_took_with_the_link_is_set_again() {
    with_six("ibboot lease and IPv6 without a link", &["dhcpd"], || {
        let _server = dhcpd(&times(3600, 1800));
        let mut node = Node::new();
        node.boot();
        let (lease, mut program) = hand_over(node, false);
        program.reports("is kept, for 3600 s");
        ip("link set near down");
        until("no address", || !addresses().contains("fd00::"));
        ip("link set near up");
        program.reports(&format!("{} set again", lease.address_text()));
        until("the address", || addresses().contains("fd00::"));
        // While the link is up, a vanished address means that another program removed it.
        until("the end of duplicate address detection", || {
            !addresses().contains("tentative")
        });
        ip(&format!("addr del {} dev near", lease.address_text()));
        program.ends_with("was removed by another program: no longer renewed", 0);
    });
}

#[test]
fn a_new_address_that_another_host_has_is_declined() {
    with_six("ibboot lease, IPv6 address taken", &["dnsmasq"], || {
        let server = dnsmasq(&["--dhcp-range=fd00::10,fd00::20,64,1h"]);
        let mut node = Node::new();
        let mut lease = node.boot();
        let taken = lease.address;
        // The host with the address answers duplicate address detection, and is not a DHCP client.
        ip(&format!("-n far addr add {taken}/64 dev far nodad"));
        // The lease that ends now has an address of another network.
        lease.address = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 0x99);
        lease.requested_ns = 0;
        lease.seconds = 1;
        node.session.resume(lease);
        let (_, mut program) = hand_over(node, false);
        program.reports(&format!("another host uses {taken}: declined"));
        until("another address", || {
            let seen = addresses();
            seen.contains("/128") && !seen.contains(&taken.to_string())
        });
        assert!(
            server.output().contains("DHCPDECLINE"),
            "{}",
            server.output()
        );
    });
}

#[test]
fn the_address_of_a_root_stays_if_another_host_has_the_address() {
    with_six("ibboot lease, IPv6 address of a root", &["dhcpd"], || {
        let _server = dhcpd(&times(3600, 1800));
        let mut node = Node::new();
        node.boot();
        let (lease, mut program) = hand_over(node, true);
        program.reports("is kept, for 3600 s");
        let address = lease.address.to_string();
        ip(&format!("-n far addr add {address}/64 dev far nodad"));
        ip("link set near down");
        until("no address", || !addresses().contains(&address));
        ip("link set near up");
        program.reports(&format!("another host uses {address}: the address is kept"));
        until("the address, which the kernel uses", || {
            let seen = addresses();
            let is_used = !seen.contains("dadfailed") && !seen.contains("tentative");
            seen.contains(&address) && is_used
        });
    });
}
