// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server that first says every kind of nonsense, then what is right: the client takes what is right
//! and nothing of the rest.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::network::{Node, infiniband, with_network};
use ibboot::dhcp::packet::{Kind, LARGEST, Message, option};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{setsockopt, sockopt};

const GOOD: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const MINE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 77);
const SHELL: &[u8] = b"$(touch /run/canary);`touch /run/canary`'\";\n\x1b[31m";

/// What is right: the answer to this message.
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

/// Answers that must not be taken; none of them is one that a client may believe.
fn tricks(request: &Message) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = right(request).encode();
    let end = bytes.iter().rposition(|byte| *byte == option::END).unwrap();
    let cut = |tail: &[u8]| [&bytes[..end], tail].concat();
    let evil = Ipv4Addr::new(10, 9, 0, 66);
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
                a.options.insert(option::SERVER, evil.octets().to_vec());
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
    ]
}

/// The right answer with every option that names something full of a shell's words, and absurd times.
fn poisoned(request: &Message) -> Vec<u8> {
    changed(request, |answer| {
        (answer.htype, answer.hlen, answer.chaddr) = (6, 255, [0xff; 16]);
        let mut long = SHELL.to_vec();
        // All of it fits into one packet: fragments are not looked at.
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

/// A server in the namespace `far`: `say` gives the payloads for each message that comes.
struct Evil {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Evil {
    fn start(say: impl Fn(&Message) -> Vec<Vec<u8>> + Send + 'static) -> Evil {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            setns(
                File::open("/run/netns/far").unwrap(),
                CloneFlags::CLONE_NEWNET,
            )
            .unwrap();
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 67)).unwrap();
            socket.set_broadcast(true).unwrap();
            setsockopt(&socket, sockopt::BindToDevice, &"far".into()).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_millis(100)))
                .unwrap();
            ready.send(()).unwrap();
            let mut buffer = [0; 2048];
            while !told.load(Ordering::Relaxed) {
                let Ok((length, _)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                let request = Message::decode(&buffer[..length]).unwrap();
                for payload in say(&request) {
                    socket
                        .send_to(&payload, SocketAddrV4::new(Ipv4Addr::BROADCAST, 68))
                        .unwrap();
                }
            }
        });
        is_ready.recv().unwrap();
        Evil {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Evil {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn no_trick_is_taken_and_each_leaves_the_way_free_for_what_is_right() {
    with_network("hostile server", &[], || {
        let names: Vec<&str> = tricks(&Message::new(Kind::Discover, 1))
            .iter()
            .map(|trick| trick.0)
            .collect();
        for (number, name) in names.iter().enumerate() {
            let _server = Evil::start(move |request| {
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
fn a_poisoned_answer_gives_an_address_and_nothing_else() {
    with_network("poisoned answer", &[], || {
        let _server = Evil::start(|request| vec![poisoned(request)]);
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

#[test]
fn a_flood_of_a_million_answers_to_others_costs_no_memory() {
    with_network("flood", &[], || {
        const FLOOD: usize = 1_000_000;
        let _server = Evil::start(|request| {
            let other = changed(request, |answer| answer.xid ^= 0x5555);
            match request.kind {
                Kind::Discover if request.secs == 0 => vec![other],
                _ => vec![right(request).encode()],
            }
        });
        let flood = std::thread::spawn(|| {
            setns(
                File::open("/run/netns/far").unwrap(),
                CloneFlags::CLONE_NEWNET,
            )
            .unwrap();
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            socket.set_broadcast(true).unwrap();
            setsockopt(&socket, sockopt::BindToDevice, &"far".into()).unwrap();
            let other = right(&Message::new(Kind::Discover, 0x1234_5678)).encode();
            for _ in 0..FLOOD {
                // The queue may be full: that is what a flood is.
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
