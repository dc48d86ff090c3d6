// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes from the kernel's sockets and files: answers and notifications of NETLINK_RDMA,
//! uevents, asynchronous events of uverbs. No panic; no length leads the walk backwards or beyond
//! the end; only the kernel's own acknowledgement completes a request.
#![no_main]

use std::io;
use std::io::Read;

use ibboot::rdma::events::{drain, uevent};
use ibboot::rdma::netlink::{wire, Progress, read_notifications};
use libfuzzer_sys::fuzz_target;
use netlink_packet_core::{DecodeError, NlasIterator};

fuzz_target!(|data: &[u8]| {
    walk(data);
    // A dump comes in several datagrams; the sequence number is the one of the first datagram.
    let seq = wire::messages(data)
        .next()
        .and_then(|first| Some(first.ok()?.sequence_number()))
        .unwrap_or(0);
    let cut = data
        .last()
        .map_or(0, |last| usize::from(*last) * 4)
        .min(data.len());
    let datagrams = data.split_at(cut);
    for datagrams in [[data, &[]], [datagrams.0, datagrams.1]] {
        for device in answers(datagrams, seq, wire::device) {
            assert!(device.name.len() <= data.len() && !device.name.contains('\0'));
        }
        for port in answers(datagrams, seq, wire::port) {
            assert!(port.netdev.is_none_or(|name| name.len() <= data.len()));
        }
        for name in answers(datagrams, seq, wire::chardev) {
            assert!(name.len() <= data.len() && !name.contains('\0'));
        }
        for connections in answers(datagrams, seq, wire::connections) {
            // A connection needs an entry with two addresses.
            assert!(connections.len() <= data.len() / 40);
        }
    }
    let mut events = Vec::new();
    read_notifications(data, &mut events);
    assert!(events.len() <= wire::messages(data).count());
    device_event(data);
    // Half an event is an error, which also discards the events before it.
    let events = drain(Queue(data)).map(|events| events.len()).ok();
    assert_eq!(
        events,
        data.len().is_multiple_of(16).then_some(data.len() / 16)
    );
});

/// A device file with these bytes to read.
struct Queue<'a>(&'a [u8]);

impl Read for Queue<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.0.read(buffer)
    }
}

/// Every message and every attribute needs at least its header.
fn walk(datagram: &[u8]) {
    let mut left = datagram.len() / 16 + 1;
    for message in wire::messages(datagram) {
        left = left.checked_sub(1).expect("no more messages than headers");
        let Ok(message) = message else { continue };
        nested(message.payload(), 0);
    }
}

fn nested(payload: &[u8], depth: usize) {
    let mut left = payload.len() / 4 + 1;
    for attribute in NlasIterator::new(payload) {
        left = left
            .checked_sub(1)
            .expect("no more attributes than headers");
        let Ok(attribute) = attribute else { continue };
        let value = attribute.value();
        assert!(attribute.kind() < 1 << 14 && value.len() <= payload.len());
        if let Ok(number) = wire::number::<u64>(&attribute) {
            assert_eq!(wire::number::<u8>(&attribute).is_ok(), number <= 0xff);
        }
        assert!(wire::text(&attribute).map_or(true, |text| text.len() < value.len()));
        if depth < 3 {
            nested(value, depth + 1);
        }
    }
}

/// The result of a request whose answer arrives in these datagrams; datagrams before the end count.
fn answers<T>(
    datagrams: [&[u8]; 2],
    seq: u32,
    read: fn(&[u8]) -> Result<T, DecodeError>,
) -> Vec<T> {
    let mut values = Vec::new();
    let mut progress = Progress::default();
    for datagram in datagrams {
        let end = progress.digest(datagram, seq, &mut |payload| {
            values.push(read(payload)?);
            Ok(())
        });
        // NLMSG_ERROR or NLMSG_DONE.
        let ends = || {
            wire::messages(datagram)
                .flatten()
                .any(|message| matches!(message.message_type(), 2 | 3))
        };
        match end {
            Ok(true) => assert!(ends()),
            Ok(false) => continue,
            Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
        }
        break;
    }
    values
}

/// A decoded uevent survives encoding and decoding.
fn device_event(message: &[u8]) {
    let Some(event) = uevent::parse(message) else {
        return;
    };
    assert!(event.devpath.starts_with('/') && !event.subsystem.is_empty());
    let synthetic = if event.is_synthetic { "SYNTH_UUID=0\0" } else { "" };
    let text = format!(
        "{0}@{1}\0ACTION={0}\0DEVPATH={1}\0SUBSYSTEM={2}\0{synthetic}",
        event.action, event.devpath, event.subsystem
    );
    assert_eq!(uevent::parse(text.as_bytes()), Some(event));
}
