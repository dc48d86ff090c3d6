// SPDX-License-Identifier: MIT OR Apache-2.0
//! ISC dhcpd, Kea, a relay, and several servers at once.

use std::fs;
use std::net::Ipv4Addr;

use super::network::{CLIENT_ID, Node, Server, infiniband, ip, with_network};

/// dhcpd in `namespace`, on its interface of the same name.
pub fn dhcpd(namespace: &str, configuration: &str) -> Server {
    let (conf, leases) = (
        format!("/run/{namespace}.conf"),
        format!("/run/{namespace}.leases"),
    );
    fs::write(&conf, configuration).unwrap();
    fs::write(&leases, "").unwrap();
    let program = [
        "dhcpd", "-4", "-f", "-d", "-cf", &conf, "-lf", &leases, "--no-pid", namespace,
    ];
    let mut server = Server::start(namespace, &format!("dhcpd-{namespace}"), &program);
    server.reports("Server starting service.");
    server
}

/// A subnet declaration with the range and these statements.
pub fn subnet(more: &str) -> String {
    format!(
        "authoritative;\nping-check false;\ndefault-lease-time 3600;\n{more}\n\
         subnet 10.9.0.0 netmask 255.255.255.0 {{ range 10.9.0.10 10.9.0.20; option routers 10.9.0.1; }}\n"
    )
}

#[test]
fn dhcpd_knows_the_node_with_and_without_an_echo_of_its_identifier() {
    with_network("dhcpd reservation", &["dhcpd"], || {
        for echo in ["", "echo-client-id true;"] {
            let host = format!(
                "{echo} host node5 {{ option dhcp-client-identifier {CLIENT_ID}; fixed-address 10.9.0.55; \
                 option root-path \"nfs:10.9.0.1:/srv\"; filename \"boot.img\"; next-server 10.9.0.4; }}"
            );
            let _server = dhcpd("far", &subnet(&host));
            let lease = Node::new(infiniband()).boot(None);
            assert_eq!(lease.address_text(), "10.9.0.55/24");
            assert_eq!(lease.root_path.as_deref(), Some("nfs:10.9.0.1:/srv"));
            assert_eq!(lease.boot_file.as_deref(), Some("boot.img"));
            assert_eq!(lease.next_server, Some(Ipv4Addr::new(10, 9, 0, 4)));
            assert_eq!(
                (lease.seconds, lease.renew_s, lease.rebind_s),
                (3600, 1800, 3150)
            );
        }
    });
}

#[test]
fn dhcpd_refuses_an_address_of_another_network() {
    with_network("dhcpd NAK", &["dhcpd"], || {
        let _server = dhcpd("far", &subnet(""));
        let mut node = Node::new(infiniband());
        let lease = node.boot(Some(Ipv4Addr::new(192, 168, 7, 7)));
        assert_eq!(lease.address.octets()[..3], [10, 9, 0]);
        let counts = node.session.progress().counts;
        assert_eq!(counts.refusals, 1);
        assert_eq!(
            counts.why_refused.as_deref(),
            Some("server 10.9.0.1 refuses (NAK)")
        );
    });
}

/// Kea in `namespace`, on its interface of the same name, with a reservation for the node.
fn kea(namespace: &str, subnet: &str) -> Server {
    let id = CLIENT_ID.replace(':', "");
    let configuration = format!(
        r#"{{"Dhcp4": {{
            "interfaces-config": {{"interfaces": ["{namespace}"]}},
            "lease-database": {{"type": "memfile", "persist": false}},
            "valid-lifetime": 3600, "authoritative": true,
            "host-reservation-identifiers": ["client-id"],
            "subnet4": [{{"subnet": "10.9.0.0/24", "pools": [{{"pool": "10.9.0.10 - 10.9.0.20"}}], {subnet}
                "option-data": [{{"name": "routers", "data": "10.9.0.1"}}, {{"name": "root-path", "data": "nfs:x:/y"}}],
                "reservations": [{{"client-id": "{id}", "ip-address": "10.9.0.55", "hostname": "node5"}}]}}],
            "loggers": [{{"name": "kea-dhcp4", "output_options": [{{"output": "stdout"}}], "severity": "INFO"}}]
        }}}}"#
    );
    fs::write("/run/kea.conf", configuration).unwrap();
    fs::create_dir_all("/run/kea").unwrap();
    let mut server = Server::start(namespace, "kea", &["kea-dhcp4", "-c", "/run/kea.conf"]);
    server.reports("DHCP4_STARTED");
    server
}

#[test]
fn kea_answers_a_node_without_a_hardware_address() {
    with_network("Kea", &["kea-dhcp4"], || {
        let _server = kea("far", "");
        let lease = Node::new(infiniband()).boot(None);
        assert_eq!(lease.address_text(), "10.9.0.55/24");
        assert_eq!(lease.root_path.as_deref(), Some("nfs:x:/y"));
        assert_eq!(lease.gateway(), Some(Ipv4Addr::new(10, 9, 0, 1)));
    });
}

/// Makes the namespace `far` a relay to 10.8.0.2 in the new namespace `server`: near - far - beyond -
/// server.
fn beyond() {
    ip("netns add server");
    ip("-n far link add beyond type veth peer name server netns server");
    ip("-n far addr add 10.8.0.1/24 dev beyond");
    ip("-n far link set beyond up");
    ip("-n server addr add 10.8.0.2/24 dev server");
    ip("-n server link set server up");
    ip("-n server route add default via 10.8.0.1");
    super::network::forward("far");
}

/// Boots a node behind the relay, and waits until the server renews the lease.
fn renewed_behind_a_relay() {
    let relay = [
        "dhcrelay", "-4", "-d", "-id", "far", "-iu", "beyond", "10.8.0.2",
    ];
    let mut relay = Server::start("far", "relay", &relay);
    relay.reports("Sending on");
    let mut node = Node::new(infiniband());
    let lease = node.boot(None);
    assert_eq!(lease.server, Ipv4Addr::new(10, 8, 0, 2));
    ip(&format!("addr add {} dev near", lease.address_text()));
    ip("route add default via 10.9.0.1");
    let renewed = node.lease(20);
    assert!(renewed.requested_ns > lease.requested_ns);
    assert_eq!(node.session.progress().counts.refusals, 0);
}

#[test]
fn a_server_behind_a_relay_is_renewed_directly() {
    with_network("dhcpd behind a relay", &["dhcpd", "dhcrelay"], || {
        beyond();
        let both = format!(
            "{}subnet 10.8.0.0 netmask 255.255.255.0 {{ }}\n",
            subnet("option dhcp-renewal-time 2; option dhcp-rebinding-time 3000;")
        );
        let _server = dhcpd("server", &both);
        renewed_behind_a_relay();
    });
}

#[test]
fn kea_behind_a_relay_is_renewed_directly() {
    with_network("Kea behind a relay", &["kea-dhcp4", "dhcrelay"], || {
        beyond();
        let relay =
            r#""relay": {"ip-addresses": ["10.9.0.1"]}, "renew-timer": 2, "rebind-timer": 3000,"#;
        let _server = kea("server", relay);
        renewed_behind_a_relay();
    });
}

#[test]
fn of_two_servers_the_one_that_knows_the_node_wins_when_the_other_has_nothing_usable() {
    with_network("two servers", &["dhcpd"], || {
        // Both servers on one link: a bridge in the namespace `far`.
        ip("netns add other");
        ip("-n far link add bridge type bridge");
        ip("-n far link add port type veth peer name other netns other");
        ip("-n far addr del 10.9.0.1/24 dev far");
        ip("-n far link set far master bridge");
        ip("-n far link set port master bridge");
        ip("-n far link set port up");
        ip("-n far addr add 10.9.0.1/24 dev bridge");
        ip("-n far link set bridge up");
        ip("-n other addr add 10.9.0.2/24 dev other");
        ip("-n other link set other up");
        // Its mask has a hole, and this server answers first.
        let _bad = dhcpd("other", &subnet("option subnet-mask 255.0.255.0;"));
        let mut node = Node::new(infiniband());
        node.session.start(None);
        node.until(20, |session| session.progress().counts.unusable > 0);
        fs::write("/run/good.conf", subnet("")).unwrap();
        fs::write("/run/good.leases", "").unwrap();
        let program = [
            "dhcpd",
            "-4",
            "-f",
            "-d",
            "-cf",
            "/run/good.conf",
            "-lf",
            "/run/good.leases",
            "--no-pid",
            "bridge",
        ];
        let mut good = Server::start("far", "good", &program);
        good.reports("Server starting service.");
        let lease = node.lease(40);
        assert_eq!(lease.server, Ipv4Addr::new(10, 9, 0, 1));
        let why = node.session.progress().counts.why_unusable.unwrap();
        assert!(
            why.ends_with(" from 10.9.0.2: invalid subnet mask 255.0.255.0"),
            "{why}"
        );
    });
}
