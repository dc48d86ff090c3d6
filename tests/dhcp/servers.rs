// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real servers.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;

use super::network::{
    self, CLIENT_ID, Node, Server, ethernet, infiniband, ip, partition, with_network,
};
use ibboot::dhcp::Outcome;
use ibboot::dhcp::v4::lease::Route;
use ibboot::dhcp::v4::progress::State;

const RESERVED: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 55);

fn route(network: [u8; 4], prefix: u8, gateway: [u8; 4]) -> Route {
    Route {
        network: network.into(),
        prefix,
        gateway: gateway.into(),
    }
}

pub fn dnsmasq(more: &[&str]) -> Server {
    network::dnsmasq("DHCP, ", more)
}

const RANGE: &str = "--dhcp-range=10.9.0.10,10.9.0.20,255.255.255.0,1h";

#[test]
fn dnsmasq_knows_the_node_by_the_identifier_of_its_firmware() {
    with_network("dnsmasq reservation", &["dnsmasq"], || {
        let host = format!("--dhcp-host=id:{CLIENT_ID},10.9.0.55,node5,infinite");
        let _server = dnsmasq(&[
            RANGE,
            &host,
            "--dhcp-option=option:router,10.9.0.1,10.9.0.2",
            "--dhcp-option=option:dns-server,10.9.0.3",
            "--dhcp-option=option:domain-name,cluster.example",
            "--dhcp-option=option:domain-search,a.example,b.a.example",
            "--dhcp-option=option:root-path,nfs:10.9.0.1:/srv/root",
            "--dhcp-option=option:mtu,2044",
            "--dhcp-option=option:classless-static-route,10.8.0.0/14,10.9.0.7,0.0.0.0/0,10.9.0.8",
            "--dhcp-boot=boot.img,tftp.example,10.9.0.4",
        ]);
        let mut node = Node::new(infiniband());
        let lease = node.boot(None);
        assert_eq!((lease.address, lease.prefix), (RESERVED, 24));
        assert_eq!(lease.server, Ipv4Addr::new(10, 9, 0, 1));
        assert_eq!(lease.seconds, u32::MAX);
        node.unopposed();
        assert_eq!(node.session.due(), None);
        assert_eq!(lease.host_name.as_deref(), Some("node5"));
        assert_eq!(lease.domain_name.as_deref(), Some("cluster.example"));
        assert_eq!(lease.domain_search, ["a.example", "b.a.example"]);
        assert_eq!(lease.root_path.as_deref(), Some("nfs:10.9.0.1:/srv/root"));
        assert_eq!(lease.mtu, Some(2044));
        assert_eq!(lease.next_server, Some(Ipv4Addr::new(10, 9, 0, 4)));
        assert_eq!(lease.boot_file.as_deref(), Some("boot.img"));
        assert_eq!(
            lease.routes(),
            [
                route([10, 8, 0, 0], 14, [10, 9, 0, 7]),
                route([0, 0, 0, 0], 0, [10, 9, 0, 8])
            ]
        );
        assert_eq!(lease.left_out, Vec::<String>::new());
        let counts = node.session.progress().counts;
        assert_eq!((counts.sent, counts.offers, counts.replies), (2, 1, 1));
    });
}

#[test]
fn dnsmasq_gives_an_ethernet_node_an_address() {
    with_network("dnsmasq, Ethernet", &["dnsmasq"], || {
        let _server = dnsmasq(&[RANGE]);
        let lease = Node::new(ethernet()).boot(None);
        assert_eq!(lease.address.octets()[..3], [10, 9, 0]);
        assert!((10..=20).contains(&lease.address.octets()[3]));
        assert_eq!((lease.seconds, lease.renew_s), (3600, 1800));
        assert_eq!(lease.routes(), [route([0, 0, 0, 0], 0, [10, 9, 0, 1])]);
    });
}

#[test]
fn a_known_address_comes_back_and_a_wrong_one_is_refused() {
    with_network("dnsmasq INIT-REBOOT and NAK", &["dnsmasq"], || {
        let server = dnsmasq(&[RANGE, "--dhcp-authoritative"]);
        let first = Node::new(infiniband()).boot(None);
        let again = Node::new(infiniband()).boot(Some(first.address));
        assert_eq!(again.address, first.address);
        assert_eq!(server.output().matches("DHCPDISCOVER").count(), 1);
        let mut node = Node::new(infiniband());
        let lease = node.boot(Some(Ipv4Addr::new(192, 168, 7, 7)));
        assert_eq!(lease.address, first.address);
        let counts = node.session.progress().counts;
        assert_eq!(counts.refusals, 1);
        assert_eq!(
            counts.why_refused.as_deref(),
            Some("server 10.9.0.1 refuses (NAK): wrong address")
        );
    });
}

#[test]
fn an_address_that_somebody_has_is_given_up_and_declined_and_another_one_taken() {
    with_network("dnsmasq DECLINE", &["dnsmasq"], || {
        // The owner of the address answers ARP and is not a DHCP client.
        ip("-n far addr add 10.9.0.10/24 dev far");
        let server = dnsmasq(&[
            "--dhcp-range=10.9.0.10,10.9.0.11,255.255.255.0,1h",
            "--dhcp-sequential-ip",
        ]);
        let mut node = Node::new(infiniband());
        let lease = node.boot(None);
        let taken = Ipv4Addr::new(10, 9, 0, 10);
        assert_eq!(lease.address, taken);
        // The address is in use during the probes, as in `up`: the kernel's own ARP must not hide
        // the owner.
        ip("addr add 10.9.0.10/24 dev near");
        node.until(5, |session| {
            session.wake();
            session.outcomes().contains(&Outcome::Lost(taken.into()))
        });
        ip("addr del 10.9.0.10/24 dev near");
        let lease = node.lease(20);
        assert_eq!(lease.address, Ipv4Addr::new(10, 9, 0, 11));
        node.unopposed();
        let taken = node.session.progress().counts.taken.unwrap();
        assert!(taken.ends_with(" uses 10.9.0.10"), "{taken}");
        assert_eq!(
            server
                .output()
                .matches("DHCPDECLINE(far) 10.9.0.10")
                .count(),
            1
        );
    });
}

#[test]
fn probes_that_cannot_be_sent_are_repeated() {
    with_network(
        "ARP probes on an interface that is down",
        &["dnsmasq"],
        || {
            let _server = dnsmasq(&[RANGE]);
            let mut node = Node::new(infiniband());
            node.boot(None);
            ip("link set near down");
            let mut due = BTreeSet::new();
            node.until(20, |session| {
                due.insert(session.due());
                due.len() > 5
            });
            assert!(node.session.is_probing());
            let broken = node.session.progress().broken;
            assert_eq!(broken.as_deref(), Some("cannot send: Network is down"));
            ip("link set near up");
            node.unopposed();
            assert_eq!(node.session.progress().broken, None);
        },
    );
}

#[test]
fn a_lease_is_renewed_by_dnsmasq_and_after_it_died_by_another_server() {
    with_network("dnsmasq RENEW and REBIND", &["dnsmasq"], || {
        let short = [
            "--dhcp-range=10.9.0.10,10.9.0.10,255.255.255.0,1h",
            "--dhcp-option=option:T1,2",
            "--dhcp-option=option:T2,4",
        ];
        let server = dnsmasq(&short);
        let mut node = Node::new(infiniband());
        let lease = node.boot(None);
        // The minimum times hold, whatever the server sends.
        assert_eq!((lease.renew_s, lease.rebind_s), (5, 10));
        ip(&format!("addr add {} dev near", lease.address_text()));
        let renewed = node.lease(20);
        assert!(renewed.requested_ns > lease.requested_ns);
        assert_eq!(node.session.progress().state, State::Bound);
        // Another server, at another address, without a record of the lease.
        drop(server);
        fs::remove_file("/run/dnsmasq.leases").unwrap();
        ip("-n far addr del 10.9.0.1/24 dev far");
        ip("-n far addr add 10.9.0.2/24 dev far");
        let mut all = short.to_vec();
        all.push("--dhcp-authoritative");
        let _other = dnsmasq(&all);
        let rebound = node.lease(20);
        assert_eq!(rebound.address, lease.address);
        assert_eq!(rebound.server, Ipv4Addr::new(10, 9, 0, 2));
    });
}

#[test]
fn two_interfaces_of_a_port_have_a_lease_each() {
    with_network("dnsmasq, two interfaces", &["dnsmasq"], || {
        let times = ["--dhcp-option=option:T1,2", "--dhcp-option=option:T2,4"];
        let _server = dnsmasq(&[RANGE, times[0], times[1]]);
        let mut first = Node::new(infiniband());
        let lease = first.boot(None);
        ip(&format!("addr add {} dev near", lease.address_text()));
        let other = Node::new(partition(0x8001)).boot(None);
        assert_ne!(other.address, lease.address);
        // dnsmasq has not forgotten the first lease.
        let renewed = first.lease(20);
        assert_eq!(renewed.address, lease.address);
        assert_eq!(first.session.progress().counts.refusals, 0);
    });
}

#[test]
fn silence_is_told_apart_from_a_server_that_answers_others() {
    with_network("dnsmasq silence", &["dnsmasq"], || {
        let mut node = Node::new(infiniband());
        node.session.start(None);
        node.until(20, |session| session.progress().counts.sent == 2);
        assert_eq!(
            node.session.progress().diagnosis().0,
            format!("no DHCP server answers client {CLIENT_ID}")
        );
        // This server serves only one node, another one.
        let _server = dnsmasq(&[
            "--dhcp-range=10.9.0.0,static,255.255.255.0",
            "--dhcp-host=id:01:02:03:04:05:06,10.9.0.9",
        ]);
        let mut other = infiniband();
        other.identity.client_id = vec![1, 2, 3, 4, 5, 6];
        Node::new(other).boot(None);
        node.until(20, |session| session.progress().counts.sent == 3);
        assert_eq!(
            node.session.progress().diagnosis().0,
            format!("a DHCP server answers other clients but not client {CLIENT_ID}")
        );
    });
}
