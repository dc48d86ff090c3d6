// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events as Linux 6.1.192 and 6.12.117 sent them for an rxe link, and invented events.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// A reader that returns these results in order.
struct Script(VecDeque<io::Result<Vec<u8>>>);

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.pop_front().expect("one read too many")?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

fn errno(errno: Errno) -> io::Result<Vec<u8>> {
    Err(errno.into())
}

fn event(element: u64, kind: u32) -> io::Result<Vec<u8>> {
    Ok([&element.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 4]].concat())
}

fn drained<const N: usize>(
    script: [io::Result<Vec<u8>>; N],
) -> std::result::Result<Vec<AsyncEvent>, io::ErrorKind> {
    drain(Script(script.into())).map_err(|error| error.kind())
}

fn received(kind: AsyncKind, port: Option<u32>) -> AsyncEvent {
    AsyncEvent { kind, port }
}

#[test]
fn port_events_until_it_would_block() {
    // Events of Linux 6.12 when an rxe's network device is set up, gets an address and is set
    // down.
    assert_eq!(
        drained([
            event(1, 9),
            event(1, 9),
            errno(Errno::EINTR),
            event(1, 18),
            event(1, 10),
            errno(Errno::EAGAIN),
        ]),
        Ok(vec![
            received(AsyncKind::PortActive, Some(1)),
            received(AsyncKind::PortActive, Some(1)),
            received(AsyncKind::GidChange, Some(1)),
            received(AsyncKind::PortErr, Some(1)),
        ])
    );
    assert_eq!(drained([errno(Errno::EAGAIN)]), Ok(vec![]));
}

#[test]
fn events_queued_before_a_removal_are_kept() {
    assert_eq!(
        drained([event(2, 10), event(0, 8), errno(Errno::EIO)]),
        Ok(vec![
            received(AsyncKind::PortErr, Some(2)),
            received(AsyncKind::DeviceFatal, None),
            received(AsyncKind::Gone, None),
        ])
    );
    assert!(AsyncKind::DeviceFatal.is_final() && AsyncKind::Gone.is_final());
    assert!(!AsyncKind::PortErr.is_final());
}

#[test]
fn short_events_and_other_errors_are_reported() {
    assert_eq!(
        drained([Ok(vec![0; 15])]),
        Err(io::ErrorKind::UnexpectedEof)
    );
    assert_eq!(drained([Ok(vec![])]), Err(io::ErrorKind::UnexpectedEof));
    assert_eq!(
        drained([errno(Errno::EACCES)]),
        Err(io::ErrorKind::PermissionDenied)
    );
}

#[test]
fn kinds_and_their_names() {
    let names: Vec<String> = [8, 9, 10, 11, 12, 13, 17, 18, 3]
        .into_iter()
        .map(|number| AsyncKind::from(number).to_string())
        .collect();
    assert_eq!(
        names,
        [
            "DEVICE_FATAL",
            "PORT_ACTIVE",
            "PORT_ERR",
            "LID_CHANGE",
            "PKEY_CHANGE",
            "SM_CHANGE",
            "CLIENT_REREGISTER",
            "GID_CHANGE",
            "event 3",
        ]
    );
    // The element of a queue pair's event is a handle, not a port.
    let Ok(events) = drained([event(1, 3), errno(Errno::EAGAIN)]) else {
        panic!("no events");
    };
    assert_eq!(events, [received(AsyncKind::Other(3), None)]);
}

#[test]
fn get_context_announces_its_sizes_in_words() {
    let address = 0x1122_3344_5566_7788_u64;
    let mut expected = Vec::new();
    expected.extend_from_slice(&0_u32.to_ne_bytes());
    expected.extend_from_slice(&6_u16.to_ne_bytes());
    expected.extend_from_slice(&18_u16.to_ne_bytes());
    expected.extend_from_slice(&address.to_ne_bytes());
    expected.extend_from_slice(&16_u32.to_ne_bytes());
    expected.extend_from_slice(&4_u32.to_ne_bytes());
    assert_eq!(get_context_request(address).as_slice(), expected);
}

#[test]
fn the_response_holds_a_descriptor_or_none() {
    assert_eq!(async_fd(&7_i32.to_ne_bytes()), Some(7));
    assert_eq!(async_fd(&0_i32.to_ne_bytes()), None);
    assert_eq!(async_fd(&(-1_i32).to_ne_bytes()), None);
    assert_eq!(async_fd(&[1, 2]), None);
}

#[test]
fn names_that_are_no_uverbs_device() {
    for name in ["", "uverbs", "uverbs0x", "umad0", "../uverbs0", "uverbs+1"] {
        let error = AsyncEvents::open(name).map(drop).map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err(format!("{name:?} is not the name of a uverbs device"))
        );
    }
    let absent = AsyncEvents::open("uverbs99999").map(drop);
    assert_eq!(
        absent.map_err(|error| error.kind()),
        Err(io::ErrorKind::NotFound)
    );
}

#[test]
fn the_uevent_socket_is_not_inherited_and_does_not_block() {
    let uevents = Uevents::open().unwrap();
    let flags = fcntl(&uevents.socket, FcntlArg::F_GETFD).unwrap();
    assert_eq!(FdFlag::from_bits_retain(flags), FdFlag::FD_CLOEXEC);
    let flags = OFlag::from_bits_retain(fcntl(&uevents.socket, FcntlArg::F_GETFL).unwrap());
    assert!(flags.contains(OFlag::O_NONBLOCK));
    // Devices of this machine may send events at the same time: the call must return.
    uevents.drain().unwrap();
}

/// rxe0, as Linux 6.1 announces it.
const ADD: &str = "add@/devices/virtual/infiniband/rxe0|ACTION=add|\
    DEVPATH=/devices/virtual/infiniband/rxe0|SUBSYSTEM=infiniband|NAME=rxe0|SEQNUM=3108|";
const ADD_UVERBS: &str = "add@/devices/virtual/infiniband_verbs/uverbs0|ACTION=add|\
    DEVPATH=/devices/virtual/infiniband_verbs/uverbs0|SUBSYSTEM=infiniband_verbs|MAJOR=231|\
    MINOR=192|DEVNAME=infiniband/uverbs0|DEVMODE=0666|SEQNUM=3105|";
const REMOVE: &str = "remove@/devices/virtual/infiniband/rxe1|ACTION=remove|\
    DEVPATH=/devices/virtual/infiniband/rxe1|SUBSYSTEM=infiniband|NAME=rxe1|SEQNUM=3116|";
const MOVE: &str = "move@/devices/virtual/infiniband/soft0|ACTION=move|\
    DEVPATH=/devices/virtual/infiniband/soft0|SUBSYSTEM=infiniband|\
    DEVPATH_OLD=/devices/virtual/infiniband/rxe0|NAME=soft0|SEQNUM=99|";
const NET: &str = "add@/devices/virtual/net/d0|ACTION=add|DEVPATH=/devices/virtual/net/d0|\
    SUBSYSTEM=net|INTERFACE=d0|IFINDEX=5|SEQNUM=1|";

fn message(text: &str) -> Vec<u8> {
    text.replace('|', "\0").into_bytes()
}

fn uevent_of(action: &str, subsystem: &str, devpath: &str) -> Uevent {
    Uevent {
        action: action.to_owned(),
        subsystem: subsystem.to_owned(),
        devpath: devpath.to_owned(),
        is_synthetic: false,
    }
}

#[test]
fn uevents_of_the_stack() {
    let uverbs0 = "/devices/virtual/infiniband_verbs/uverbs0";
    for (text, action, subsystem, devpath) in [
        (ADD, "add", "infiniband", "/devices/virtual/infiniband/rxe0"),
        (ADD_UVERBS, "add", "infiniband_verbs", uverbs0),
        (
            REMOVE,
            "remove",
            "infiniband",
            "/devices/virtual/infiniband/rxe1",
        ),
        (
            MOVE,
            "move",
            "infiniband",
            "/devices/virtual/infiniband/soft0",
        ),
        (NET, "add", "net", "/devices/virtual/net/d0"),
    ] {
        let expected = uevent_of(action, subsystem, devpath);
        assert_eq!(uevent::parse(&message(text)), Some(expected), "{text}");
    }
}

#[test]
fn messages_that_are_no_uevents() {
    for text in [
        "",
        "|",
        "add@/devices/x|",
        "add@/devices/x|ACTION=add|DEVPATH=/devices/x|",
        "add@/devices/x|ACTION=add|DEVPATH=/devices/x|SUBSYSTEM=|",
        "add@/devices/x|ACTION=remove|DEVPATH=/devices/x|SUBSYSTEM=net|",
        "add@/devices/x|ACTION=add|DEVPATH=/devices/y|SUBSYSTEM=net|",
        "add@devices/x|ACTION=add|DEVPATH=devices/x|SUBSYSTEM=net|",
        // Truncated: the last string has no NUL.
        "add@/devices/x|ACTION=add|DEVPATH=/devices/x|SUBSYSTEM=net",
        "libudev|\u{fe}\u{ed}ACTION=add|DEVPATH=/devices/x|SUBSYSTEM=net|",
    ] {
        assert_eq!(uevent::parse(&message(text)), None, "{text:?}");
    }
}

#[test]
fn foreign_keys_may_hold_anything() {
    let mut bytes = message("add@/devices/x|ACTION=add|DEVPATH=/devices/x|SUBSYSTEM=net|NOVALUE|");
    bytes.extend_from_slice(b"ODD=\xff\xfe\0=\0\0");
    assert_eq!(
        uevent::parse(&bytes),
        Some(uevent_of("add", "net", "/devices/x"))
    );
}

#[test]
fn a_uevent_truncated_anywhere_is_none_or_the_same_device() {
    let whole = message(ADD);
    for length in 0..whole.len() {
        if let Some(event) = uevent::parse(&whole[..length]) {
            assert_eq!(event.devpath, "/devices/virtual/infiniband/rxe0");
            assert_eq!(event.subsystem, "infiniband");
        }
    }
}

proptest! {
    #[test]
    fn no_message_panics(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let event = uevent::parse(&bytes);
        prop_assert!(event.is_none_or(|event| event.devpath.starts_with('/')));
    }

    #[test]
    fn no_flipped_byte_panics(at: prop::sample::Index, with: u8) {
        let mut bytes = message(MOVE);
        let at = at.index(bytes.len());
        bytes[at] ^= with;
        let event = uevent::parse(&bytes);
        prop_assert!(event.is_none_or(|event| event.devpath.starts_with('/')));
    }

    #[test]
    fn any_event_is_read(element: u64, kind: u32) {
        let Ok(events) = drained([event(element, kind), errno(Errno::EAGAIN)]) else {
            return Err(TestCaseError::fail("no events"));
        };
        prop_assert_eq!(events.len(), 1);
        prop_assert_eq!(events[0].kind, AsyncKind::from(kind));
    }
}
