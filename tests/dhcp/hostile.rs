// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server that first sends many kinds of invalid answers, then the valid answer: the client takes
//! only the valid answer.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::{Command, Stdio};

use super::network::{Evil, Node, enter_far, hardware, infiniband, ip, until, with_network};
use ibboot::dhcp::hardware::Hardware;
use ibboot::dhcp::v4::arp::Arp;
use ibboot::dhcp::v4::frame;
use ibboot::dhcp::v4::packet::{Kind, LARGEST, Message, option};
use ibboot::dhcp::v4::socket::{PacketSocket, Protocol};
use ibboot::hardware::HardwareType;
use ibboot::system::root::Root;
use ibboot::up::claims::Claims;
use nix::sys::socket::{setsockopt, sockopt};

const GOOD: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const MINE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 77);
const SHELL: &[u8] = b"$(touch /run/canary);`touch /run/canary`'\";\n\x1b[31m";

const EVIL: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 66);
/// A hardware address of no host in this test.
const STRANGER: [u8; 6] = [2, 0, 0, 0, 0, 0x99];

/// How an answer is sent.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Broadcast from the server's port.
    Broadcast,
    /// In a hand-made IP packet, from this address to that address.
    Packet(Ipv4Addr, Ipv4Addr),
    /// In a frame to another host.
    Frame,
    /// In VLAN 5.
    Vlan,
}

/// The valid answer to this message.
fn right(request: &Message) -> Message {
    let kind = match request.kind {
        Kind::Discover => Kind::Offer,
        _ => Kind::Ack,
    };
    let mut answer = Message::new(kind, request.xid);
    answer.op = 2;
    answer.htype = 32;
    answer.yiaddr = MINE;
    let mut add = |code: u8, value: &[u8]| answer.options.insert(code, value.to_vec());
    add(option::SERVER, &GOOD.octets());
    add(option::MASK, &[255, 255, 255, 0]);
    add(option::LEASE_TIME, &3600_u32.to_be_bytes());
    answer
}

fn changed(request: &Message, change: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut answer = right(request);
    change(&mut answer);
    answer.encode()
}

fn with(request: &Message, code: u8, value: &[u8]) -> Vec<u8> {
    changed(request, |answer| {
        answer.options.insert(code, value.to_vec());
    })
}

/// An offer, and the ACK for it, of a second, hostile server.
fn evil(request: &Message, change: impl FnOnce(&mut Message)) -> Vec<u8> {
    changed(request, |answer| {
        answer.yiaddr = Ipv4Addr::new(10, 9, 0, 99);
        answer
            .options
            .insert(option::SERVER, EVIL.octets().to_vec());
        change(answer);
    })
}

/// Answers that would be valid if they had been sent another way.
fn tricks_of_the_way(request: &Message) -> Vec<(&'static str, Way, Vec<u8>)> {
    let right = evil(request, |_| {});
    let everybody = Ipv4Addr::BROADCAST;
    let from = |from| Way::Packet(from, everybody);
    let to = |to| Way::Packet(EVIL, to);
    let host = Ipv4Addr::new(10, 9, 0, 123);
    [
        ("from loopback", from(Ipv4Addr::LOCALHOST)),
        ("from everybody", from(everybody)),
        ("from a group", from(Ipv4Addr::new(224, 0, 0, 1))),
        ("to another host", to(host)),
        ("to loopback", to(Ipv4Addr::LOCALHOST)),
        ("in a frame to another host", Way::Frame),
        ("in another VLAN", Way::Vlan),
    ]
    .map(|(name, way)| (name, way, right.clone()))
    .to_vec()
}

/// Invalid answers; the client must not take any of them.
fn tricks(request: &Message) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = right(request).encode();
    let end = bytes.iter().rposition(|byte| *byte == option::END).unwrap();
    let cut = |tail: &[u8]| [&bytes[..end], tail].concat();
    vec![
        ("nothing", Vec::new()),
        ("only a header", bytes[..236].to_vec()),
        ("a cookie only", bytes[..240].to_vec()),
        ("an option without its length", cut(&[12])),
        ("an option longer than the packet", cut(&[12, 255, b'x'])),
        ("an option that overlaps the end", cut(&[17, 9, b'/', 255])),
        ("an overload of what does not exist", cut(&[52, 1, 7, 255])),
        ("an overload of length 0", cut(&[52, 0, 255])),
        ("a message type twice", cut(&[53, 1, 2, 255])),
        ("larger than any message", cut(&[0; LARGEST])),
        ("another transaction", changed(request, |a| a.xid ^= 1)),
        ("another client", with(request, option::CLIENT_ID, &[1; 20])),
        ("a request", changed(request, |a| a.op = 1)),
        (
            "FORCERENEW",
            changed(request, |a| a.kind = Kind::ForceRenew),
        ),
        (
            "a NAK of another server",
            changed(request, |a| {
                a.kind = Kind::Nak;
                a.options.insert(option::SERVER, EVIL.octets().to_vec());
            }),
        ),
        (
            "a NAK of nobody",
            changed(request, |a| {
                a.kind = Kind::Nak;
                a.options.remove(&option::SERVER);
            }),
        ),
        (
            "loopback",
            changed(request, |a| a.yiaddr = Ipv4Addr::LOCALHOST),
        ),
        (
            "multicast",
            changed(request, |a| a.yiaddr = Ipv4Addr::new(224, 0, 0, 1)),
        ),
        (
            "no address",
            changed(request, |a| a.yiaddr = Ipv4Addr::UNSPECIFIED),
        ),
        (
            "the broadcast address",
            changed(request, |a| a.yiaddr = Ipv4Addr::new(10, 9, 0, 255)),
        ),
        (
            "no server",
            changed(request, |a| {
                a.options.remove(&option::SERVER);
            }),
        ),
        (
            "no mask",
            changed(request, |a| {
                a.options.remove(&option::MASK);
            }),
        ),
        (
            "a mask with a hole",
            with(request, option::MASK, &[255, 0, 255, 0]),
        ),
        (
            "a mask of 3 bytes",
            with(request, option::MASK, &[255, 255, 255]),
        ),
        (
            "no lease time",
            changed(request, |a| {
                a.options.remove(&option::LEASE_TIME);
            }),
        ),
        (
            "a lease of no time",
            with(request, option::LEASE_TIME, &[0; 4]),
        ),
        (
            "a lease time of 5 bytes",
            with(request, option::LEASE_TIME, &[0; 5]),
        ),
        (
            "a server identifier of 255 bytes",
            with(request, option::SERVER, &[10; 255]),
        ),
        (
            "a hardware address of 255 bytes",
            evil(request, |a| a.hlen = 255),
        ),
        ("hardware of type 255", evil(request, |a| a.htype = 255)),
        (
            "the server's own address",
            evil(request, |a| a.yiaddr = EVIL),
        ),
    ]
}

/// The valid answer with shell syntax in every option that is a name, and absurd times.
fn poisoned(request: &Message) -> Vec<u8> {
    changed(request, |answer| {
        answer.chaddr = [0xff; 16];
        let mut long = SHELL.to_vec();
        // All options fit into one packet: fragments are ignored.
        long.resize(120, b'A');
        for code in [
            option::HOST_NAME,
            option::DOMAIN_NAME,
            option::ROOT_PATH,
            option::TFTP_SERVER,
            option::BOOT_FILE,
        ] {
            answer.options.insert(code, long.clone());
        }
        for code in [
            option::ROUTERS,
            option::NAME_SERVERS,
            option::STATIC_ROUTES,
            option::CLASSLESS_ROUTES,
        ] {
            answer.options.insert(code, vec![0xff; 99]);
        }
        answer.options.insert(option::DOMAIN_SEARCH, vec![0xc0; 98]);
        answer.options.insert(option::MTU, Vec::new());
        answer.options.insert(option::RENEW, vec![0xff; 4]);
        answer.options.insert(option::REBIND, vec![0; 4]);
        answer.file = SHELL.to_vec();
    })
}

/// Sends each answer in the requested way.
struct Sender {
    socket: UdpSocket,
    hardware: Hardware,
}

impl Sender {
    /// A sender in the namespace of this thread.
    fn new(socket: UdpSocket) -> Sender {
        Sender {
            socket,
            hardware: Hardware::read(&Root::new("/"), "far").unwrap(),
        }
    }

    fn send(&self, way: Way, payload: &[u8]) {
        let everybody = SocketAddrV4::new(Ipv4Addr::BROADCAST, 68);
        let packet = |from, to| {
            let mut packet = frame::to_servers(from, to, payload).unwrap();
            // From the server's port to the client's port; the checksum does not change.
            packet[20..24].copy_from_slice(&[0, 67, 0, 68]);
            packet
        };
        let broadcast = |hardware: &Hardware, packet: &[u8]| {
            let socket = PacketSocket::open(Protocol::Dhcp, hardware).unwrap();
            socket.broadcast(packet).unwrap();
        };
        match way {
            Way::Broadcast => _ = self.socket.send_to(payload, everybody).unwrap(),
            Way::Packet(from, to) => broadcast(&self.hardware, &packet(from, to)),
            Way::Frame => {
                let stranger = Hardware {
                    broadcast: STRANGER.to_vec(),
                    ..self.hardware.clone()
                };
                broadcast(&stranger, &packet(EVIL, Ipv4Addr::BROADCAST));
            }
            Way::Vlan => {
                // Broadcast from a stranger, with 802.1Q, VLAN 5, IPv4.
                let head = [&[0xff; 6][..], &STRANGER, &[0x81, 0, 0, 5, 8, 0]].concat();
                let frame = [head, packet(EVIL, Ipv4Addr::BROADCAST)].concat();
                let send = "import socket, sys; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); \
                    s.bind(('far', 0)); s.send(bytes.fromhex(sys.argv[1]))";
                let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
                let sent = Command::new("python3").args(["-c", send, &hex]).status();
                assert!(sent.unwrap().success());
            }
        }
    }
}

/// A server in the namespace `far`: `answer` returns the payloads for each received message.
fn serve(answer: impl Fn(&Message) -> Vec<Vec<u8>> + Send + 'static) -> Evil {
    serve_in_ways(move |request| {
        let all = answer(request).into_iter();
        all.map(|payload| (Way::Broadcast, payload)).collect()
    })
}

fn serve_in_ways(answer: impl Fn(&Message) -> Vec<(Way, Vec<u8>)> + Send + 'static) -> Evil {
    Evil::start((Ipv4Addr::UNSPECIFIED, 67), |socket| {
        socket.set_broadcast(true).unwrap();
        let sender = Sender::new(socket.try_clone().unwrap());
        move |request: &[u8], _| {
            for (way, payload) in answer(&Message::decode(request).unwrap()) {
                sender.send(way, &payload);
            }
        }
    })
}

#[test]
fn no_trick_is_taken_and_each_leaves_the_way_free_for_what_is_right() {
    with_network("hostile server", &[], || {
        let names: Vec<&str> = tricks(&Message::new(Kind::Discover, 1))
            .iter()
            .map(|trick| trick.0)
            .collect();
        for (number, name) in names.iter().enumerate() {
            let _server = serve(move |request| {
                vec![
                    tricks(request).swap_remove(number).1,
                    right(request).encode(),
                ]
            });
            let mut node = Node::new(infiniband());
            let lease = node.boot(None);
            assert_eq!(
                (lease.address_text().as_str(), lease.server),
                ("10.9.0.77/24", GOOD),
                "{name}"
            );
            assert_eq!(
                node.session.progress().counts.sent,
                2,
                "{name}: {:#?}",
                node.session.progress()
            );
        }
    });
}

#[test]
fn what_comes_in_the_wrong_way_is_not_looked_at() {
    with_network("frames of others", &["python3"], || {
        let names = tricks_of_the_way(&Message::new(Kind::Discover, 1));
        for (number, (name, _, _)) in names.into_iter().enumerate() {
            let _server = serve_in_ways(move |request| {
                let (_, way, payload) = tricks_of_the_way(request).swap_remove(number);
                vec![(way, payload), (Way::Broadcast, right(request).encode())]
            });
            let mut node = Node::new(infiniband());
            let lease = node.boot(None);
            assert_eq!((lease.address, lease.server), (MINE, GOOD), "{name}");
            let counts = node.session.progress().counts;
            // One offer at most for each DISCOVER: one that came in the wrong way would be one more.
            assert!(counts.offers < counts.sent, "{name}: {counts:?}");
        }
    });
}

#[test]
fn a_lease_is_renewed_though_another_program_has_the_clients_port() {
    with_network("port 68 in use", &[], || {
        let _server = serve(|request| {
            let mut answer = right(request);
            let mut set = |code: u8, s: u32| answer.options.insert(code, s.to_be_bytes().to_vec());
            // The client renews only with the server of the lease for a long time.
            set(option::RENEW, 1);
            set(option::REBIND, 3000);
            vec![answer.encode()]
        });
        let mut node = Node::new(infiniband());
        let lease = node.boot(None);
        ip(&format!("addr add {} dev near", lease.address_text()));
        let _other = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 68)).unwrap();
        node.until(20, |session| session.progress().counts.replies == 2);
        assert_eq!(node.session.progress().broken, None);
        assert!(node.session.lease().unwrap().requested_ns > lease.requested_ns);
    });
}

#[test]
fn a_poisoned_answer_gives_an_address_and_nothing_else() {
    with_network("poisoned answer", &[], || {
        let _server = serve(|request| vec![poisoned(request)]);
        let mut node = Node::new(infiniband());
        let lease = node.boot(None);
        assert_eq!(lease.address, MINE);
        assert_eq!((lease.renew_s, lease.rebind_s), (1800, 3150));
        assert_eq!(
            (lease.host_name, lease.domain_name, lease.root_path),
            (None, None, None)
        );
        assert_eq!(
            (lease.tftp_server, lease.boot_file, lease.mtu),
            (None, None, None)
        );
        assert_eq!(
            (
                lease.routers.len(),
                lease.name_servers.len(),
                lease.domain_search.len()
            ),
            (0, 0, 0)
        );
        assert_eq!(lease.classless_routes, None);
        assert_eq!(lease.left_out.len(), 12, "{:#?}", lease.left_out);
        assert!(!fs::exists("/run/canary").unwrap());
    });
}

/// Resident memory of this process in KiB (proc(5)).
pub fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Set for the process of one test.
const ALONE: &str = "IBBOOT_TEST_ALONE";

#[test]
fn a_flood_of_a_million_answers_to_others_costs_no_memory() {
    // Memory is counted by process, and other tests run in this one.
    if std::env::var_os(ALONE).is_none() {
        let name = "hostile::a_flood_of_a_million_answers_to_others_costs_no_memory";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let alone = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "");
        // Without the result of that process, which would count once more.
        let alone = alone.stdout(Stdio::null());
        return assert!(alone.status().unwrap().success());
    }
    with_network("flood", &[], || {
        const FLOOD: usize = 1_000_000;
        let _server = serve(|request| {
            let other = changed(request, |answer| answer.xid ^= 0x5555);
            match request.kind {
                Kind::Discover if request.secs == 0 => vec![other],
                _ => vec![right(request).encode()],
            }
        });
        let flood = std::thread::spawn(|| {
            enter_far();
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            socket.set_broadcast(true).unwrap();
            setsockopt(&socket, sockopt::BindToDevice, &"far".into()).unwrap();
            let other = right(&Message::new(Kind::Discover, 0x1234_5678)).encode();
            for _ in 0..FLOOD {
                // The queue may be full during a flood.
                socket
                    .send_to(&other, SocketAddrV4::new(Ipv4Addr::BROADCAST, 68))
                    .ok();
            }
        });
        let mut node = Node::new(infiniband());
        let before = resident();
        node.session.start(None);
        let lease = node.lease(120);
        assert_eq!(lease.address, MINE);
        flood.join().unwrap();
        node.until(120, |session| {
            session.wake();
            session.progress().counts.foreign > 1000
        });
        let grown = resident().saturating_sub(before);
        assert!(grown < 8192, "{grown} KiB more");
    });
}

/// Claims `address` from `far`, with this hardware address.
fn claim_from_far(sender: Vec<u8>, address: Ipv4Addr) {
    let thread = std::thread::spawn(move || {
        enter_far();
        let far = Hardware::read(&Root::new("/"), "far").unwrap();
        let socket = PacketSocket::open(Protocol::Arp(address), &far).unwrap();
        let claim = Arp::announcement(HardwareType::Ethernet, &sender, address);
        socket.send_arp(&claim).unwrap();
    });
    thread.join().unwrap();
}

#[test]
fn an_interface_of_this_machine_takes_no_address_from_another_one() {
    with_network("an answer of our own", &[], || {
        ip("link add other type veth peer name another");
        let near = hardware();
        let other = Hardware::read(&Root::new("/"), "other").unwrap().address;
        let mut claims = Claims::new(false);
        let addresses = [50, 51].map(|last| Ipv4Addr::new(10, 9, 0, last));
        for (address, sender) in addresses.into_iter().zip([other, STRANGER.to_vec()]) {
            assert!(claims.claim(&near, address).unwrap());
            claim_from_far(sender, address);
        }
        until("the end of the second", || {
            claims.listen();
            claims.is_settled()
        });
        let owners = addresses.map(|address| claims.owner(near.index, address));
        assert_eq!(owners, [None, Some("02:00:00:00:00:99")]);
    });
}
