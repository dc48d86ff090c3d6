// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread plays the worker. The name of a device says how it behaves.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use nix::sys::socket::MsgFlags;

use super::*;
use crate::facts::Port;
use crate::pace;
use crate::rdma::types::Guid;
use crate::system::worker::{receive_from, send_to};

const BUDGET: Duration = Duration::from_millis(1000);
/// More than the budget, and less than two.
const LATE: Duration = Duration::from_millis(1500);

/// Waits until the reader of this device has told something that was not received.
fn until_told(readers: &Readers, name: &str) {
    let readers = readers.readers.borrow();
    let worker = readers.get(name).and_then(|one| one.worker.as_ref());
    let worker = worker.unwrap();
    let mut limit = pace::Limit::seconds(20);
    while !worker.ear().unwrap().hears() {
        assert!(!limit.is_over(), "{name} tells nothing");
        worker::wait(&[worker], Instant::now() + limit.left());
    }
}

fn send(far: &OwnedFd, answer: Answer) -> io::Result<()> {
    let message = Message::Found(Box::new(answer));
    send_to(far.as_fd(), &message, MsgFlags::empty())
}

/// An InfiniBand port that is configured.
fn active() -> Port {
    Port {
        port: 1,
        link_layer: Some(LinkLayer::InfiniBand),
        state: Some(PortState::Active),
        port_guid: Some(Guid(1)),
        lid: Some(1),
        sm_lid: Some(1),
        pkeys: vec![0xffff],
        ..Port::default()
    }
}

/// Answers with the number of the request; "restless" has an event after each answer.
fn count(name: &str, far: &OwnedFd) -> io::Result<()> {
    let wait = MsgFlags::empty();
    let mut requests = 0;
    loop {
        let request: Request = receive_from(far.as_fd(), wait)?;
        requests += 1;
        let mut answer = Answer {
            is_complete: true,
            has_events: request.wants_events && name != "deaf",
            ..Answer::default()
        };
        answer.device.ifname = name.to_owned();
        answer.device.fw = Some(requests.to_string());
        let mut port = active();
        match name {
            "late-sm" => port.state = Some(PortState::Init),
            "coming" => port.lid = Some(0),
            _ => {}
        }
        answer.device.ports = vec![port];
        send(far, answer)?;
        if name == "restless" {
            send_to(far.as_fd(), &Message::Changed, wait)?;
        }
    }
}

fn start_counting(name: &str) -> io::Result<Worker> {
    let (worker, far) = Worker::pair()?;
    let name = name.to_owned();
    thread::spawn(move || count(&name, &far));
    Ok(worker)
}

#[test]
fn an_answer_that_is_still_true_is_not_requested_again() {
    let readers = Readers::new(BUDGET, start_counting);
    readers.listen();
    let names = ["still", "restless", "deaf", "coming"].map(str::to_owned);
    let root = Root::new("/");
    let read = |depth: Depth, is_all| {
        let mut look = Look::new(&root);
        look.depth = depth;
        let devices = readers.read(&names, &mut look, is_all).into_iter();
        // The event comes after the answer.
        until_told(&readers, "restless");
        devices.map(|one| one.fw.unwrap()).collect::<Vec<_>>()
    };
    let partition = |pkey| Depth::Partitions([pkey].into());
    assert_eq!(read(Depth::Ports, false), ["1", "1", "1", "1"]);
    assert_eq!(read(Depth::Ports, false), ["1", "2", "2", "2"]);
    assert_eq!(read(Depth::Ports, true), ["2", "3", "3", "3"]);
    assert_eq!(read(partition(0xffff), false), ["3", "4", "4", "4"]);
    assert_eq!(read(partition(0xffff), false), ["3", "5", "5", "5"]);
    // The partition may still come.
    assert_eq!(read(partition(0x8001), false), ["4", "6", "6", "6"]);
    assert_eq!(read(partition(0x8001), false), ["5", "7", "7", "7"]);
}

#[test]
fn a_port_that_waits_for_its_subnet_manager_is_read_again_after_a_second() {
    let readers = Readers::new(BUDGET, start_counting);
    readers.listen();
    let names = ["late-sm".to_owned()];
    let root = Root::new("/");
    let read = |answered_ns: Option<u64>| {
        if let Some(answered_ns) = answered_ns {
            let mut readers = readers.readers.borrow_mut();
            readers.get_mut("late-sm").unwrap().answered_ns = answered_ns;
        }
        let mut devices = readers.read(&names, &mut Look::new(&root), false);
        devices.pop().unwrap().fw.unwrap()
    };
    let second = u64::try_from(UNTIL_ACTIVE.as_nanos()).unwrap();
    assert_eq!(read(None), "1");
    // A time yet to come: the answer is new, however slow the machine is.
    assert_eq!(read(Some(u64::MAX)), "1");
    assert_eq!(read(Some(boottime_ns() - second)), "2");
}

#[test]
fn how_long_an_answer_is_true_without_an_event() {
    let with = |change: &dyn Fn(&mut Port)| {
        let mut port = active();
        change(&mut port);
        lasts(&Device {
            ports: vec![active(), port],
            ..Device::default()
        })
    };
    assert_eq!(lasts(&Device::default()), Duration::ZERO);
    assert_eq!(with(&|_| {}), Duration::MAX);
    for (state, expected) in [
        (Some(PortState::Down), UNTIL_ACTIVE),
        (Some(PortState::Init), UNTIL_ACTIVE),
        (Some(PortState::Armed), UNTIL_ACTIVE),
        (None, Duration::ZERO),
    ] {
        assert_eq!(with(&|port| port.state = state), expected, "{state:?}");
    }
    let none = Duration::ZERO;
    assert_eq!(with(&|port| port.link_layer = None), none);
    let ethernet = Some(LinkLayer::Ethernet);
    assert_eq!(with(&|port| port.link_layer = ethernet), none);
    assert_eq!(with(&|port| port.lid = Some(0)), none);
    assert_eq!(with(&|port| port.sm_lid = None), none);
    assert_eq!(with(&|port| port.port_guid = None), none);
}

fn play(name: &str, far: &OwnedFd) -> io::Result<()> {
    let wait = MsgFlags::empty();
    for turn in 0.. {
        let request: Request = receive_from(far.as_fd(), wait)?;
        let mut answer = Answer::default();
        answer.device.ifname = name.to_owned();
        answer.device.ports = vec![crate::facts::Port::default()];
        match name {
            "mute" => {}
            "ended" => return Ok(()),
            "garbled" => send_to(far.as_fd(), &"no answer", wait)?,
            _ => send(far, answer.clone())?,
        }
        if ["mute", "hung"].contains(&name) {
            continue;
        }
        if name == "late" || name == "late-once" && turn == 0 {
            thread::sleep(LATE);
        }
        answer.is_complete = true;
        answer.device.fw = Some(format!("{:?}", request.depth));
        send(far, answer)?;
    }
    Ok(())
}

fn start(name: &str) -> io::Result<Worker> {
    let (worker, far) = Worker::pair()?;
    let name = name.to_owned();
    thread::spawn(move || play(&name, &far));
    Ok(worker)
}

/// For each device: whether it is silent, the number of its ports, the depth that was read.
type Seen = Vec<(bool, usize, Option<String>)>;

fn look(readers: &Readers, names: &[&str], depth: Depth) -> (Seen, Vec<String>, Duration) {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let root = Root::new("/");
    let mut look = Look::new(&root);
    look.depth = depth;
    let began = Instant::now();
    let devices = readers.read(&names, &mut look, true);
    let took = began.elapsed();
    for (device, name) in devices.iter().zip(&names) {
        assert_eq!(device.ifname, *name);
    }
    let seen = devices.into_iter();
    let seen = seen.map(|one| (one.silent_s.is_some(), one.ports.len(), one.fw));
    let unread = look.unread.into_iter();
    let unread = unread.map(|one| format!("{}: {}", one.path, one.why));
    (seen.collect(), unread.collect(), took)
}

fn ports() -> Option<String> {
    Some("Ports".to_owned())
}

#[test]
fn a_device_that_does_not_answer_costs_one_budget_once() {
    let readers = Readers::new(BUDGET, start);
    let names = ["good", "hung", "mute"];
    let (seen, unread, took) = look(&readers, &names, Depth::Ports);
    assert_eq!(
        seen,
        [(false, 1, ports()), (true, 1, None), (true, 0, None)]
    );
    let hidden = "/sys/class/infiniband/mute/ports: has not answered for 1 s (firmware?)";
    assert_eq!(unread, [hidden]);
    assert!(took >= BUDGET, "{took:?}");
    let (again, _, took) = look(&readers, &names, Depth::Ports);
    assert_eq!(again, seen);
    assert!(took < BUDGET || took < BUDGET * pace::now(), "{took:?}");
    assert!(readers.is_any_silent());
    readers.give_up();
    assert!(!readers.is_any_silent());
    let (again, _, _) = look(&readers, &names, Depth::Ports);
    assert_eq!(again, seen);
}

#[test]
fn a_late_answer_counts_if_it_has_what_is_needed() {
    let readers = Readers::new(BUDGET, start);
    let (seen, ..) = look(&readers, &["late"], Depth::Ports);
    assert_eq!(seen, [(true, 1, None)]);
    until_told(&readers, "late");
    let (seen, ..) = look(&readers, &["late"], Depth::Ports);
    assert_eq!(seen, [(false, 1, ports())]);
    look(&readers, &["late"], Depth::Ports);
    until_told(&readers, "late");
    let (seen, ..) = look(&readers, &["late"], Depth::All);
    assert_eq!(seen, [(true, 1, None)]);
}

#[test]
fn a_late_answer_to_another_request_is_followed_by_a_new_request_in_the_same_look() {
    let readers = Readers::new(BUDGET, start);
    let (seen, ..) = look(&readers, &["late-once"], Depth::Ports);
    assert_eq!(seen, [(true, 1, None)]);
    until_told(&readers, "late-once");
    let (seen, ..) = look(&readers, &["late-once"], Depth::All);
    assert_eq!(seen, [(false, 1, Some("All".to_owned()))]);
}

#[test]
fn a_device_that_was_given_up_is_not_read_until_it_comes_back() {
    let readers = Readers::new(BUDGET, start);
    readers.leave_out("good", boottime_ns() - 47_000_000_000);
    let (seen, unread, _) = look(&readers, &["good"], Depth::Ports);
    assert_eq!(seen, [(true, 0, None)]);
    let hidden = "/sys/class/infiniband/good/ports: has not answered for 30 s (firmware?)";
    assert_eq!(unread, [hidden]);
    look(&readers, &[], Depth::Ports);
    let (seen, ..) = look(&readers, &["good"], Depth::Ports);
    assert_eq!(seen, [(false, 1, ports())]);
}

#[test]
fn a_reader_that_cannot_be_started_names_what_is_in_the_way() {
    let unread = |start: Start| {
        let root = Root::new("/");
        let mut look = Look::new(&root);
        Readers::new(BUDGET, start).read(&["good".to_owned()], &mut look, true);
        look.unread
    };
    let expected = |reason: &str, obstacle| {
        [Unread {
            path: "/sys/class/infiniband/good/ports".to_owned(),
            why: format!("no process can read it: {reason}"),
            obstacle: Some(obstacle),
        }]
    };
    let limit = unread(|_| Err(io::Error::from_raw_os_error(libc::EMFILE)));
    assert_eq!(limit, expected("Too many open files", Obstacle::Limit));
    let hidden = unread(|_| Err(io::Error::from_raw_os_error(libc::ENOENT)));
    let reason = "No such file or directory";
    assert_eq!(hidden, expected(reason, Obstacle::NoProcess));
}

#[test]
fn a_reader_that_ends_or_talks_nonsense_leaves_its_device_unknown() {
    let readers = Readers::new(BUDGET, start);
    let (seen, unread, took) = look(&readers, &["ended", "garbled"], Depth::Ports);
    assert_eq!(seen, [(false, 0, None), (false, 0, None)]);
    let reasons = ["unexpected end of file", "unknown variant"];
    for (line, reason) in unread.iter().zip(reasons) {
        assert!(line.contains("/ports: the reader has ended: "), "{line}");
        assert!(line.contains(reason), "{line}");
    }
    assert_eq!(unread.len(), 2);
    assert!(took < BUDGET || took < BUDGET * pace::now(), "{took:?}");
    assert!(!readers.is_any_silent());
}

#[test]
fn the_silence_is_told_in_steps() {
    for (seconds, step) in [(0, 1), (1, 1), (4, 2), (59, 30), (60, 60), (100_000, 600)] {
        let text = format!("has not answered for {step} s (firmware?)");
        assert_eq!(silence(seconds), text);
    }
}

#[test]
fn the_event_file_is_closed_when_its_device_goes() {
    let dir = tempfile::tempdir().unwrap();
    let entry = dir.path().join("sys/class/infiniband_verbs/uverbs0");
    std::fs::create_dir_all(&entry).unwrap();
    let root = Root::new(dir.path());
    let events = Events {
        device: 3,
        name: "uverbs0".to_owned(),
        file: (),
    };
    assert!(events.is_kept(&root, Some(3)));
    assert!(!events.is_kept(&root, Some(4)), "another device");
    assert!(!events.is_kept(&root, None));
    std::fs::remove_dir(&entry).unwrap();
    assert!(!events.is_kept(&root, Some(3)), "the kernel waits");
}
