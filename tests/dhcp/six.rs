// SPDX-License-Identifier: MIT OR Apache-2.0
//! DHCPv6 with real servers: dnsmasq, ISC dhcpd and Kea.

use std::fs;
use std::net::Ipv6Addr;
use std::time::Duration;

use super::network::{self, Server, hardware, ip, until, with_network};
use crate::pace::Limit;
use ibboot::dhcp::Outcome;
use ibboot::dhcp::identity::RequestedId;
use ibboot::dhcp::v6::client::Config;
use ibboot::dhcp::v6::identity::Identity;
use ibboot::dhcp::v6::information::Progress as InformationProgress;
use ibboot::dhcp::v6::inquiry::Inquiry;
use ibboot::dhcp::v6::lease::Lease;
use ibboot::dhcp::v6::session::Session;
use ibboot::dhcp::v6::socket::Closed;
use ibboot::hardware::{HardwareType, unhex};
use ibboot::inet::Router;
use ibboot::system::clock::boottime_ns;

/// The DUID of the port GUID 0x0002c903000a1b2c, and the IAID of the default partition.
pub const DUID: &str = "00:03:00:20:00:02:c9:03:00:0a:1b:2c";
pub const IAID: u32 = 0xffff;

/// Like [`with_network`], with IPv6 on both sides: fd00::1 at the far end.
pub fn with_six(name: &str, programs: &[&str], test: impl FnOnce() + Send + 'static) {
    with_network(name, programs, || {
        ip("-n far addr add fd00::1/64 dev far nodad");
        until("the far end's link-local address", || {
            let found = ip("-n far -6 addr show dev far scope link");
            found.contains("fe80") && !found.contains("tentative")
        });
        local();
        test();
    });
}

/// The link-local address of `near`, no longer tentative.
pub fn local() -> Ipv6Addr {
    let mut found = None;
    until("the near link-local address", || {
        let output = ip("-6 -o addr show dev near scope link");
        let address = output.split_ascii_whitespace().nth(3).unwrap_or_default();
        found = address.split('/').next().and_then(|text| text.parse().ok());
        found.is_some() && !output.contains("tentative")
    });
    found.unwrap()
}

/// A client on `near` with the identity of an InfiniBand node.
pub struct Node {
    pub session: Session,
    runtime: tokio::runtime::Runtime,
}

impl Node {
    pub fn new() -> Node {
        Node::called(Identity::new(
            HardwareType::InfiniBand,
            &[
                0x80, 0, 2, 8, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0x0a, 0x1b, 0x2c,
            ],
            &[
                0, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff,
                0xff, 0xff, 0xff,
            ],
            &RequestedId::Firmware,
        ))
    }

    pub fn called(identity: Option<Identity>) -> Node {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let config = Config {
            identity: identity.unwrap(),
            keep: false,
            boot_waits: true,
        };
        let session = {
            let _on_the_loop = runtime.enter();
            Session::open("near", hardware().index, local(), config).unwrap()
        };
        Node { session, runtime }
    }

    /// Runs until `done` holds, or panics with the client's progress.
    pub fn until(&mut self, seconds: u64, mut done: impl FnMut(&mut Session) -> bool) {
        let mut limit = Limit::seconds(seconds);
        while !done(&mut self.session) {
            assert!(!limit.is_over(), "{:#?}", self.session.progress());
            let left = limit.left();
            let wait = self.session.due().map_or(left, |due| {
                Duration::from_nanos(due.saturating_sub(boottime_ns())).min(left)
            });
            let session = &mut self.session;
            self.runtime.block_on(async {
                if tokio::time::timeout(wait, session.changed()).await.is_err() {
                    session.wake();
                }
            });
        }
    }

    /// Starts, and returns the lease.
    pub fn boot(&mut self) -> Lease {
        self.session.start(None);
        self.until(20, |session| session.outcomes().contains(&Outcome::Bound));
        self.session.lease().unwrap().clone()
    }
}

fn address(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last)
}

pub fn dnsmasq(more: &[&str]) -> Server {
    network::dnsmasq("DHCPv6, ", more)
}

/// ISC dhcpd for the pool fd00::10 to fd00::20, with these statements.
pub fn dhcpd(more: &str) -> Server {
    let configuration =
        format!("authoritative;\n{more}\nsubnet6 fd00::/64 {{ range6 fd00::10 fd00::20; }}\n");
    fs::write("/run/dhcpd6.conf", configuration).unwrap();
    if !fs::exists("/run/dhcpd6.leases").unwrap() {
        fs::write("/run/dhcpd6.leases", "").unwrap();
    }
    let program = [
        "dhcpd",
        "-6",
        "-f",
        "-d",
        "-cf",
        "/run/dhcpd6.conf",
        "-lf",
        "/run/dhcpd6.leases",
        "--no-pid",
        "far",
    ];
    let mut server = Server::start("far", "dhcpd6", &program);
    server.reports("Server starting service.");
    server
}

fn kea(subnet: &str) -> Server {
    let configuration = format!(
        r#"{{"Dhcp6": {{
            "interfaces-config": {{"interfaces": ["far"]}},
            "lease-database": {{"type": "memfile", "persist": false}},
            "server-id": {{"type": "LL", "persist": false}},
            "host-reservation-identifiers": ["duid"],
            "subnet6": [{{"id": 1, "subnet": "fd00::/64", "interface": "far", {subnet}}}],
            "loggers": [{{"name": "kea-dhcp6", "output_options": [{{"output": "stdout"}}], "severity": "INFO"}}]
        }}}}"#
    );
    fs::write("/run/kea6.conf", configuration).unwrap();
    fs::create_dir_all("/run/kea").unwrap();
    let mut server = Server::start("far", "kea6", &["kea-dhcp6", "-c", "/run/kea6.conf"]);
    server.reports("DHCP6_STARTED");
    server
}

#[test]
fn dnsmasq_knows_the_node_by_the_duid_of_its_port() {
    with_six("dnsmasq, DHCPv6", &["dnsmasq"], || {
        let host = format!("--dhcp-host=id:{DUID},[fd00::55]");
        let _server = dnsmasq(&[
            "--dhcp-range=fd00::10,fd00::20,64,1h",
            &host,
            "--dhcp-option=option6:dns-server,[fd00::53]",
            "--dhcp-option=option6:domain-search,a.example,b.a.example",
        ]);
        let mut node = Node::new();
        let lease = node.boot();
        assert_eq!(lease.address_text(), "fd00::55/128");
        assert_eq!(
            (lease.seconds, lease.renew_s, lease.rebind_s),
            (3600, 1800, 3150)
        );
        assert!(lease.server.is_unicast_link_local(), "{}", lease.server);
        assert_eq!(lease.name_servers, [address(0x53)]);
        assert_eq!(lease.domain_search, ["a.example", "b.a.example"]);
        assert_eq!(lease.left_out, Vec::<String>::new());
        // The client accepts rapid commit.
        let progress = node.session.progress();
        assert_eq!((progress.counts.sent, progress.counts.replies), (1, 1));
        assert_eq!((progress.duid.as_str(), progress.iaid), (DUID, IAID));
        // The client declines the address, as if another host had it.
        node.session.duplicate();
        assert!(
            node.session
                .outcomes()
                .contains(&Outcome::Lost(address(0x55).into()))
        );
        node.until(20, |session| session.outcomes().contains(&Outcome::Bound));
        assert_ne!(node.session.lease().unwrap().address, address(0x55));
    });
}

#[test]
fn dhcpd_knows_the_node_and_has_nothing_for_others() {
    with_six("dhcpd, DHCPv6", &["dhcpd"], || {
        let host = format!(
            "default-lease-time 3600; option dhcp6.name-servers fd00::53;\n\
             host node5 {{ host-identifier option dhcp6.client-id {DUID}; fixed-address6 fd00::55; }}"
        );
        let _server = dhcpd(&host);
        let mut node = Node::new();
        let lease = node.boot();
        assert_eq!(lease.address_text(), "fd00::55/128");
        assert_eq!(lease.name_servers, [address(0x53)]);
        let counts = node.session.progress().counts;
        assert_eq!((counts.sent, counts.offers, counts.replies), (2, 1, 1));
    });
}

#[test]
fn kea_knows_the_node_and_says_when_it_has_no_address() {
    with_six("Kea, DHCPv6", &["kea-dhcp6"], || {
        let server = kea(&format!(
            r#""valid-lifetime": 400, "preferred-lifetime": 300, "renew-timer": 100, "rebind-timer": 200,
               "rapid-commit": true, "pools": [],
               "reservations": [{{"duid": "{DUID}", "ip-addresses": ["fd00::55"]}}]"#
        ));
        let mut node = Node::new();
        let lease = node.boot();
        assert_eq!(lease.address_text(), "fd00::55/128");
        assert_eq!(
            (
                lease.preferred_s,
                lease.seconds,
                lease.renew_s,
                lease.rebind_s
            ),
            (300, 400, 100, 200)
        );
        drop(node);
        let mut other = Node::called(Some(Identity {
            duid: vec![0, 4, 1, 2, 3, 4],
            iaid: 1,
        }));
        other.session.start(None);
        other.until(20, |session| session.progress().counts.refusals > 0);
        let (found, hint) = other.session.progress().diagnosis();
        assert!(found.starts_with("server fe80::"), "{found}");
        assert!(found.contains(" refuses: NoAddrsAvail: "), "{found}");
        assert!(found.ends_with("(client 00:04:01:02:03:04)"), "{found}");
        assert_eq!(
            hint,
            "give the server a pool for this link, or a reservation for this DUID"
        );
        drop(server);
    });
}

#[test]
fn silence_is_told_with_what_a_router_says() {
    with_six("silence, DHCPv6", &[], || {
        let mut node = Node::new();
        node.session.start(None);
        node.until(20, |session| session.progress().counts.sent == 2);
        assert_eq!(
            node.session.progress().diagnosis().0,
            format!("no DHCPv6 server answers client {DUID}, and no router sends advertisements")
        );
    });
}

#[test]
fn the_flags_of_a_router_are_reported() {
    use ibboot::system::net::Net;
    with_six("router advertisements", &["dnsmasq"], || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let index = hardware().index;
        let see = |expected: Router| {
            runtime.block_on(async {
                let net = Net::open().unwrap();
                let mut limit = Limit::seconds(20);
                while net.router(index).await != Some(expected) {
                    assert!(!limit.is_over(), "never {expected:?}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            });
        };
        see(Router::Silent);
        let server = dnsmasq(&["--enable-ra", "--dhcp-range=fd00::10,fd00::20,64,1h"]);
        see(Router::Managed);
        drop(server);
        let _plain = network::dnsmasq(
            "router advertisement",
            &["--enable-ra", "--dhcp-range=fd00::,ra-only"],
        );
        see(Router::Unmanaged);
    });
}

/// Requests name servers on `near`, until the answer arrives.
pub fn inquire() -> InformationProgress {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let duid = unhex(DUID).unwrap();
        let mut inquiry = Inquiry::open("near", hardware().index, local(), duid).unwrap();
        answered(&mut inquiry).await;
        inquiry.progress()
    })
}

/// Waits for the answer, or panics with the client's progress.
async fn answered(inquiry: &mut Inquiry) {
    let mut limit = Limit::seconds(20);
    while inquiry.answer().is_none() {
        assert!(!limit.is_over(), "{:#?}", inquiry.progress());
        let left = limit.left();
        let due = inquiry.due().unwrap().saturating_sub(boottime_ns());
        let wait = Duration::from_nanos(due).min(left);
        if tokio::time::timeout(wait, inquiry.changed()).await.is_err() {
            inquiry.wake();
        }
    }
}

#[test]
fn a_router_says_that_name_servers_are_to_be_had_and_its_server_knows_them() {
    use ibboot::system::net::Net;
    with_six("stateless DHCPv6", &["dnsmasq"], || {
        let server = network::dnsmasq(
            "DHCPv6 stateless on fd00::",
            &[
                "--dhcp-range=fd00::,ra-stateless",
                "--dhcp-option=option6:dns-server,[fd00::53],[fd00::54]",
                "--dhcp-option=option6:domain-search,a.example,b.a.example",
            ],
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let index = hardware().index;
        until("the O flag", || {
            let found = runtime.block_on(async { Net::open().unwrap().router(index).await });
            found == Some(Router::Stateless)
        });
        let progress = inquire();
        let information = progress.information.unwrap();
        assert_eq!(information.name_servers, [address(0x53), address(0x54)]);
        assert_eq!(information.domain_search, ["a.example", "b.a.example"]);
        assert_eq!(information.left_out, Vec::<String>::new());
        assert!(information.server.is_unicast_link_local());
        assert_eq!((progress.duid.as_str(), progress.counts.sent), (DUID, 1));
        let output = server.output();
        assert!(output.contains("DHCPINFORMATION-REQUEST"), "{output}");
        assert!(!output.contains("DHCPSOLICIT"), "{output}");
    });
}

#[test]
fn dhcpd_and_kea_answer_a_question_without_an_address() {
    with_six("dhcpd and Kea, stateless", &["dhcpd", "kea-dhcp6"], || {
        let server = dhcpd("option dhcp6.name-servers fd00::53;");
        let information = inquire().information.unwrap();
        assert_eq!(information.name_servers, [address(0x53)]);
        drop(server);
        let _server =
            kea(r#""pools": [], "option-data": [{"name": "dns-servers", "data": "fd00::54"}]"#);
        let information = inquire().information.unwrap();
        assert_eq!(information.name_servers, [address(0x54)]);
    });
}

#[test]
fn the_port_is_either_a_leases_or_a_questions_and_an_answer_outlasts_it() {
    with_six("one port of DHCPv6", &["dnsmasq"], || {
        let _server = network::dnsmasq(
            "DHCPv6 stateless on fd00::",
            &[
                "--dhcp-range=fd00::,ra-stateless",
                "--dhcp-option=option6:dns-server,[fd00::53]",
            ],
        );
        let mut node = Node::new();
        node.session.start(None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _on_the_loop = runtime.enter();
        let open = || Inquiry::open("near", hardware().index, local(), unhex(DUID).unwrap());
        assert!(matches!(open(), Err(Closed::InUse(_))));
        // A client that gave up releases the port, and logs nothing more.
        node.session.close();
        let sent = node.session.progress().counts.sent;
        node.session.set_router(Router::Managed);
        assert_eq!(node.session.progress().counts.sent, sent);
        let mut inquiry = open().unwrap();
        runtime.block_on(answered(&mut inquiry));
        let before = inquiry.progress();
        assert!(matches!(open(), Err(Closed::InUse(_))));
        inquiry.close();
        assert_eq!(inquiry.progress(), before);
        assert_eq!(before.information.unwrap().name_servers, [address(0x53)]);
        drop(Node::new());
    });
}
