// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client among servers that send anything at any time: the client never panics, never sends more
//! than its timers and its state machine allow, and never takes an address that was not granted.
//!
//! The bytes are a script: each step lets time pass or delivers a message of the current
//! transaction, made of the next bytes.
#![no_main]

mod script;

use std::collections::BTreeSet;

use ibboot::dhcp::identity::RequestedId;
use ibboot::dhcp::v4::answer::{Answer, Answers, Heard};
use ibboot::dhcp::v4::arp::Arp;
use ibboot::dhcp::v4::client::{Action, Client, Config};
use ibboot::dhcp::v4::identity::Identity;
use ibboot::dhcp::v4::packet::{Kind, Message, option};
use ibboot::hardware::HardwareType;
use ibboot::system::clock::SECOND;
use ibboot::system::decoder::Format;
use libfuzzer_sys::fuzz_target;

use script::Script;

/// What the decoder makes of the message: the program must believe it.
fn sound(message: &Message) -> Answer {
    let answer = Answer::of(message);
    let heard = Heard::Answer {
        from: [10, 0, 0, 1].into(),
        to: [255; 4].into(),
        answer: Box::new(answer.clone()),
    };
    assert!(Answers::is_sound(&false, &heard), "{answer:?}");
    answer
}

const KINDS: [Kind; 4] = [Kind::Offer, Kind::Ack, Kind::Nak, Kind::ForceRenew];

impl Script<'_> {
    /// A message of this transaction, with the options that a lease needs and some more.
    fn message(&mut self, xid: u32) -> Option<Message> {
        let what = self.byte()?;
        let mut message = Message::new(KINDS[usize::from(what & 3)], xid ^ u32::from(what >> 7));
        message.op = 2;
        // Sometimes for other hardware.
        message.htype = if what & 4 == 0 { 32 } else { 1 };
        message.yiaddr = [10, 0, 0, self.byte()?].into();
        let mut add = |code: u8, value: Vec<u8>| message.options.insert(code, value);
        add(option::SERVER, vec![10, 0, 1, self.byte()? & 3]);
        add(option::MASK, vec![255, 255, 0, 0]);
        add(option::LEASE_TIME, vec![0, 0, self.byte()?, self.byte()?]);
        for _ in 0..(what >> 4 & 3) {
            let (code, length) = (self.byte()?, self.byte()?);
            message
                .options
                .insert(code, self.bytes(usize::from(length)).to_vec());
        }
        Some(message)
    }
}

fuzz_target!(|data: &[u8]| {
    let mut script = Script(data);
    let Some(first) = script.byte() else { return };
    let hardware: Vec<u8> = (0..20).collect();
    let identity = Identity::new(HardwareType::InfiniBand, &hardware, &RequestedId::Firmware).expect("InfiniBand");
    let config = Config {
        identity,
        vendor_class: None,
        host_name: None,
        keep: first & 1 != 0,
        boot_waits: first & 4 == 0,
    };
    let mut client = Client::new(config, u64::from(first));
    let mut now = SECOND;
    let known = (first & 2 != 0).then(|| [10, 0, 0, 9].into());
    let mut actions = client.start(now, known);
    let mut xid = 0;
    let mut sent = 0_u64;
    let began = now;
    let mut answers = 0_u64;
    let mut shapes = BTreeSet::new();
    while let Some(step) = script.byte() {
        for action in actions.drain(..) {
            match action {
                Action::Send(message, _) => {
                    xid = message.xid;
                    sent += 1;
                    // Repetitions differ only in their numbers.
                    let shape = (message.kind.number(), message.ciaddr, message.options.len());
                    if shapes.insert(shape) {
                        assert_eq!(Message::decode(&message.encode()), Ok(message));
                    }
                }
                Action::Warn(line) => assert!(!line.chars().any(char::is_control), "{line:?}"),
                Action::Bound => assert!(client.lease().is_some()),
                Action::Lost(_) => assert!(client.lease().is_none()),
                Action::Probe(_) | Action::Unopposed(_) | Action::Defend(_) => {
                    assert!(client.lease().is_some());
                }
            }
        }
        actions = match step & 3 {
            0 => {
                now += u64::from(step) * SECOND / 16;
                client.wake(now)
            }
            1 => {
                now = client.due().unwrap_or(now).max(now);
                client.wake(now)
            }
            2 => {
                let address = [10, 0, 0, step >> 2].into();
                client.arp(now, &Arp::announcement(HardwareType::InfiniBand, &[step; 20], address))
            }
            _ => {
                answers += 1;
                let Some(message) = script.message(xid) else {
                    return;
                };
                client.received(now, &sound(&message))
            }
        };
        // One message at once for each answer that moves the client, otherwise at most two a
        // second.
        let seconds = (now - began) / SECOND + 1;
        assert!(
            sent <= 2 * seconds + 8 + answers.min(3 * seconds),
            "{sent} in {seconds} s"
        );
        // No lease is longer than option 51 can express.
        assert!(
            client
                .due()
                .is_none_or(|due| due <= now + (1 << 32) * SECOND)
        );
    }
});
