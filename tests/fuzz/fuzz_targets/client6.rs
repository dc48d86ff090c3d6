// SPDX-License-Identifier: MIT OR Apache-2.0
//! A DHCPv6 client among servers that send anything at any time: the client never panics, never
//! sends more than its timers and its state machine allow, and keeps the root's address. A client
//! that requests only settings stops with the first answer.
//!
//! The bytes are a script: each step lets time pass, finds a duplicate address or delivers a
//! message of the current transaction, made of the next bytes. A 7 at the end makes the script an
//! inquiry.
#![no_main]

mod believed;
mod script;

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use ibboot::dhcp::v6::answer::{Answer, Answers, Context};
use ibboot::dhcp::v6::client::{Action, Client, Config};
use ibboot::dhcp::v6::identity::Identity;
use ibboot::dhcp::v6::information::Asker;
use ibboot::dhcp::v6::packet::{Address, Association, Kind, Message, Options, option};
use ibboot::system::clock::SECOND;
use ibboot::system::decoder::Format;
use libfuzzer_sys::fuzz_target;

use script::Script;

const IAID: u32 = 0xffff;
const KINDS: [Kind; 4] = [Kind::Advertise, Kind::Reply, Kind::Reply, Kind::Reconfigure];

impl Script<'_> {
    /// A message of this transaction, with the options that a lease needs and some more.
    fn message(&mut self, transaction: u32, duid: &[u8]) -> Option<Message> {
        let what = self.byte()?;
        let kind = KINDS[usize::from(what & 3)];
        let mut message = Message::new(kind, transaction ^ u32::from(what >> 7));
        let server = self.byte()?;
        let address = Address {
            address: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(self.byte()? & 7)),
            preferred_s: u32::from(self.byte()?),
            valid_s: u32::from_be_bytes([0, 0, self.byte()?, self.byte()?]),
            options: Options::default(),
        };
        let mut association = Association::asking(IAID, None);
        association
            .options
            .push(option::IA_ADDRESS, address.encode());
        if server & 0x80 != 0 {
            association
                .options
                .push(option::STATUS_CODE, [0, self.byte()? & 7, b'\n']);
        }
        let options = &mut message.options;
        options.push(option::CLIENT_ID, duid);
        options.push(option::SERVER_ID, [0, 3, 0, server & 3]);
        options.push(option::PREFERENCE, [self.byte()?]);
        for _ in 0..(what >> 4 & 3) {
            let (code, length) = (self.byte()?, self.byte()?);
            options.push(u16::from(code), self.bytes(usize::from(length)));
        }
        options.push(option::IA_NA, association.encode());
        Some(message)
    }
}

fuzz_target!(|data: &[u8]| {
    match data.split_last() {
        Some((7, script)) => inquiry(script),
        _ => talk(data),
    }
});

fn talk(data: &[u8]) {
    let mut script = Script(data);
    let Some(first) = script.byte() else { return };
    let identity = Identity {
        duid: vec![0, 3, 0, 32, 1, 2, 3, 4, 5, 6, 7, 8],
        iaid: IAID,
    };
    let duid = identity.duid.clone();
    let keep = first & 1 != 0;
    let config = Config {
        identity,
        keep,
        boot_waits: first & 4 == 0,
    };
    let mut client = Client::new(config, u64::from(first));
    let began = SECOND;
    let mut now = began;
    let known = (first & 2 != 0).then(|| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 3));
    let mut actions = client.start(now, known);
    let (mut transaction, mut sent, mut moved) = (0, 0_u64, 0_u64);
    let mut is_duplicate = false;
    // Repetitions differ only in their numbers.
    let (mut shapes, mut leases) = (BTreeSet::new(), BTreeSet::new());
    while let Some(step) = script.byte() {
        for action in actions.drain(..) {
            match action {
                Action::Send(message) => {
                    transaction = message.transaction;
                    sent += 1;
                    if shapes.insert((message.kind.number(), message.options.codes().count())) {
                        assert_eq!(Message::decode(&message.encode()), Ok(message));
                    }
                }
                Action::Info(line) | Action::Warn(line) => {
                    assert!(!line.chars().any(char::is_control), "{line:?}")
                }
                Action::Bound => {
                    let lease = client.lease().expect("a lease");
                    if leases.insert((lease.address, lease.seconds, lease.left_out.len())) {
                        believed::check(lease);
                    }
                }
                Action::Lost(_) => assert!(!keep || is_duplicate),
            }
        }
        // Only a duplicate removes the root's address.
        is_duplicate = step & 7 == 3;
        actions = match step & 7 {
            0 => {
                now += u64::from(step) * SECOND / 16;
                client.wake(now)
            }
            1 | 2 => {
                now = client.due().unwrap_or(now).max(now);
                client.wake(now)
            }
            3 => {
                moved += 1;
                client.duplicate(now)
            }
            4 => {
                moved += 1;
                client.hurry(now)
            }
            _ => {
                let Some(message) = script.message(transaction, &duid) else {
                    return;
                };
                moved += 1;
                client.received(now, &sound(&message, client.context(Ipv6Addr::LOCALHOST)))
            }
        };
        // One message at once for each event that moves the client, otherwise at most two a second.
        let seconds = (now - began) / SECOND + 1;
        assert!(sent <= 2 * seconds + 8 + moved, "{sent} in {seconds} s");
        assert!(
            client
                .due()
                .is_none_or(|due| due <= now + (1 << 33) * SECOND)
        );
    }
}

/// What the decoder makes of the message: the program must believe it.
fn sound(message: &Message, context: Context) -> Answer {
    let answer = Answer::of(message, &context);
    let value = Ok(Box::new(answer.clone()));
    assert!(Answers::is_sound(&context, &value), "{answer:?}");
    answer
}

/// A client that requests only settings: one answer, and no further message.
fn inquiry(data: &[u8]) {
    let mut script = Script(data);
    let Some(first) = script.byte() else { return };
    let duid = vec![0, 3, 0, 32, 1, 2, 3, 4, 5, 6, 7, 8];
    let began = SECOND;
    let mut now = began;
    let mut asker = Asker::new(duid.clone(), u64::from(first), now);
    let (mut transaction, mut sent) = (0, 0_u64);
    while let Some(step) = script.byte() {
        let actions = match step & 3 {
            0 => {
                now += u64::from(step) * SECOND / 16;
                asker.wake(now)
            }
            1 => {
                now = asker.due().unwrap_or(now).max(now);
                asker.wake(now)
            }
            _ => {
                let Some(message) = script.message(transaction, &duid) else {
                    return;
                };
                let context = Context {
                    from: Ipv6Addr::LOCALHOST,
                    iaid: None,
                    requested: None,
                };
                asker.received(&sound(&message, context))
            }
        };
        for action in actions {
            match action {
                Action::Send(message) => {
                    assert!(asker.answer().is_none());
                    transaction = message.transaction;
                    sent += 1;
                }
                Action::Info(line) | Action::Warn(line) => {
                    assert!(!line.chars().any(char::is_control), "{line:?}")
                }
                Action::Bound => {
                    let told = asker.answer().expect("an answer");
                    believed::clean(&told.variables(), &told.left_out);
                    assert!(told.name_servers.len() <= 16 && told.domain_search.len() <= 32);
                }
                Action::Lost(address) => panic!("{address} was never granted"),
            }
        }
        assert!(!asker.why_silent().chars().any(char::is_control));
        assert_eq!(asker.due().is_none(), asker.answer().is_some());
        let seconds = (now - began) / SECOND + 1;
        assert!(sent <= seconds + 1, "{sent} in {seconds} s");
    }
}
