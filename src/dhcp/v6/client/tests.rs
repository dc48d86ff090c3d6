// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversations with good and bad servers, on a simulated clock.

use super::*;
use crate::dhcp::v6::answer::Answer;
use crate::dhcp::v6::packet::{Address, Association, Kind, Options, option};

mod resuming;
mod trouble;

const S: u64 = SECOND;
const GOOD: u8 = 1;
const EVIL: u8 = 2;
const MINE: u16 = 5;
const OTHER: u16 = 6;

fn ip(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last)
}

fn link(server: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, u16::from(server))
}

struct Talk {
    client: Client,
    now_ns: u64,
    sent: Option<Message>,
    actions: Vec<Action>,
}

impl Talk {
    fn new(keep: bool) -> Talk {
        let config = Config {
            identity: Identity {
                duid: vec![0, 3, 0, 32, 1, 2, 3, 4, 5, 6, 7, 8],
                iaid: 0xffff,
            },
            keep,
            boot_waits: true,
        };
        Talk {
            client: Client::new(config, 7),
            now_ns: 100 * S,
            sent: None,
            actions: Vec::new(),
        }
    }

    /// No boot waits any more.
    fn after_boot(mut self) -> Talk {
        self.client.config.boot_waits = false;
        self
    }

    /// A client with a lease of MINE from GOOD for `seconds`.
    fn bound(keep: bool, seconds: u32) -> Talk {
        let mut talk = Talk::new(keep);
        talk.start();
        talk.offer(GOOD, MINE, AT_ONCE);
        talk.grant(GOOD, MINE, seconds);
        assert_eq!(talk.state(), State::Bound);
        talk
    }

    fn state(&self) -> State {
        self.client.state()
    }

    fn note(&mut self, actions: Vec<Action>) -> &mut Talk {
        for action in &actions {
            if let Action::Send(message) = action {
                assert_eq!(Message::decode(&message.encode()).as_ref(), Ok(message));
                self.sent = Some(message.clone());
            }
        }
        self.actions = actions;
        self
    }

    fn start(&mut self) -> &mut Talk {
        let actions = self.client.start(self.now_ns, None);
        self.note(actions)
    }

    /// Advances the clock to the next due time.
    fn wake(&mut self) -> &mut Talk {
        self.now_ns = self.client.due().unwrap();
        let actions = self.client.wake(self.now_ns);
        self.note(actions)
    }

    fn answer(&self, kind: Kind, server: u8, address: u16, seconds: u32) -> Message {
        let sent = self.sent.as_ref().unwrap();
        let mut association = Association::asking(0xffff, None);
        let granted = Address {
            address: ip(address),
            preferred_s: seconds,
            valid_s: seconds,
            options: Options::default(),
        };
        association
            .options
            .push(option::IA_ADDRESS, granted.encode());
        let mut message = Message::new(kind, sent.transaction);
        let own = sent.options.first(option::CLIENT_ID).unwrap();
        message.options.push(option::CLIENT_ID, own);
        message.options.push(option::SERVER_ID, [0, 3, 0, server]);
        message.options.push(option::IA_NA, association.encode());
        message
    }

    /// An answer with this status and nothing else.
    fn refusal(&self, server: u8, code: u8) -> Message {
        let mut association = Association::asking(0xffff, None);
        association
            .options
            .push(option::STATUS_CODE, [0, code, b'n', b'o']);
        let mut message = self.answer(Kind::Reply, server, MINE, 60);
        message.options.remove(option::IA_NA);
        message.options.push(option::IA_NA, association.encode());
        message
    }

    /// A REPLY that withdraws MINE and grants OTHER instead.
    fn renumbering(&self) -> Message {
        self.granting([(OTHER, 1000), (MINE, 0)])
    }

    /// A REPLY with these addresses, each for so many seconds.
    fn granting(&self, all: impl IntoIterator<Item = (u16, u32)>) -> Message {
        let mut association = Association::asking(0xffff, None);
        for (address, seconds) in all {
            let granted = Address {
                address: ip(address),
                preferred_s: seconds,
                valid_s: seconds,
                options: Options::default(),
            };
            let options = &mut association.options;
            options.push(option::IA_ADDRESS, granted.encode());
        }
        let mut message = self.answer(Kind::Reply, GOOD, MINE, 60);
        message.options.remove(option::IA_NA);
        message.options.push(option::IA_NA, association.encode());
        message
    }

    fn hear(&mut self, message: &Message, server: u8) -> &mut Talk {
        let context = self.client.context(link(server));
        let answer = Answer::of(message, &context);
        let actions = self.client.received(self.now_ns, &answer);
        self.note(actions)
    }

    fn offer(&mut self, server: u8, address: u16, preference: u8) -> &mut Talk {
        let mut message = self.answer(Kind::Advertise, server, address, 3600);
        message.options.push(option::PREFERENCE, [preference]);
        self.hear(&message, server)
    }

    fn grant(&mut self, server: u8, address: u16, seconds: u32) -> &mut Talk {
        let message = self.answer(Kind::Reply, server, address, seconds);
        self.hear(&message, server)
    }

    /// The last message: its type, and the server and the address in it.
    fn last(&self) -> (Kind, Option<u8>, Option<u16>) {
        let sent = self.sent.as_ref().unwrap();
        let server = sent.options.first(option::SERVER_ID);
        let association = sent.options.first(option::IA_NA).unwrap();
        let association = Association::decode(association).unwrap();
        assert_eq!(association.iaid, 0xffff);
        let address = association.options.first(option::IA_ADDRESS);
        let address = address.map(|value| Address::decode(value).unwrap().address.segments()[7]);
        (sent.kind, server.map(|duid| duid[3]), address)
    }
}

#[test]
fn a_preference_of_255_is_taken_at_once() {
    let mut talk = Talk::new(false);
    talk.start();
    assert_eq!(talk.last(), (Kind::Solicit, None, None));
    let solicit = talk.sent.clone().unwrap();
    assert!(solicit.options.first(option::RAPID_COMMIT).is_some());
    assert_eq!(
        solicit.options.first(option::ELAPSED_TIME),
        Some(&[0, 0][..])
    );
    talk.offer(GOOD, MINE, AT_ONCE);
    assert_eq!(talk.last(), (Kind::Request, Some(GOOD), Some(MINE)));
    assert_ne!(talk.sent.as_ref().unwrap().transaction, solicit.transaction);
    talk.grant(GOOD, MINE, 3600);
    assert_eq!(talk.actions, [Action::Bound]);
    let lease = talk.client.lease().unwrap();
    assert_eq!((lease.address, lease.server), (ip(MINE), link(GOOD)));
    assert_eq!(lease.server_id, "00:03:00:01");
    let counts = talk.client.counts();
    assert_eq!((counts.sent, counts.offers, counts.replies), (2, 1, 1));
}

#[test]
fn else_the_best_of_the_first_wait_is_taken() {
    let mut talk = Talk::new(false);
    talk.start();
    talk.offer(3, 7, 0);
    talk.offer(GOOD, MINE, 9);
    talk.offer(EVIL, OTHER, 9);
    assert_eq!(talk.actions, []);
    let began = talk.now_ns;
    talk.wake();
    let waited = talk.now_ns - began;
    assert!(waited > S && waited <= S + S / 10 + 1, "{waited}");
    assert_eq!(talk.last(), (Kind::Request, Some(GOOD), Some(MINE)));
}

#[test]
fn after_the_first_wait_the_first_offer_is_taken() {
    let mut talk = Talk::new(false);
    talk.start().wake();
    assert_eq!(talk.last().0, Kind::Solicit);
    talk.offer(GOOD, MINE, 0);
    assert_eq!(talk.last(), (Kind::Request, Some(GOOD), Some(MINE)));
}

#[test]
fn a_rapid_commit_takes_two_messages_and_a_reply_without_it_is_none() {
    let mut talk = Talk::new(false);
    talk.start();
    talk.grant(GOOD, MINE, 60);
    assert_eq!(
        (talk.state(), talk.client.counts().unsolicited),
        (State::Soliciting, 1)
    );
    let mut reply = talk.answer(Kind::Reply, GOOD, MINE, 60);
    reply.options.push(option::RAPID_COMMIT, []);
    talk.hear(&reply, GOOD);
    assert_eq!(talk.actions, [Action::Bound]);
    assert_eq!(talk.client.counts().sent, 1);
}

#[test]
fn silence_is_answered_by_waits_that_double_up_to_sixteen_seconds() {
    let mut talk = Talk::new(false);
    talk.start();
    let transaction = talk.sent.as_ref().unwrap().transaction;
    for expected in [1, 2, 4, 8, 16, 16, 16] {
        let began = talk.now_ns;
        talk.wake();
        let waited = (talk.now_ns - began) as f64 / S as f64;
        let off = (waited / f64::from(expected) - 1.0).abs();
        // Each wait doubles the wait before, including its jitter.
        assert!(off <= 0.35, "{waited} s instead of {expected}");
        assert_eq!(talk.sent.as_ref().unwrap().transaction, transaction);
    }
    let elapsed = talk
        .sent
        .as_ref()
        .unwrap()
        .options
        .first(option::ELAPSED_TIME);
    let elapsed = u16::from_be_bytes(elapsed.unwrap().try_into().unwrap());
    assert_eq!(u64::from(elapsed), (talk.now_ns - 100 * S) / (S / 100));
}

#[test]
fn a_hurried_client_does_not_wait_for_the_repetition() {
    let mut talk = Talk::new(false);
    talk.start();
    assert_eq!(talk.client.hurry(talk.now_ns + S / 2), []);
    talk.wake().wake().wake();
    talk.now_ns += S;
    let actions = talk.client.hurry(talk.now_ns);
    talk.note(actions);
    assert_eq!(talk.last().0, Kind::Solicit);
    let wait = talk.client.due().unwrap() - talk.now_ns;
    assert!(wait <= S + S / 10 + 1, "{wait}");
    assert_eq!(Talk::bound(false, 60).client.hurry(101 * S), []);
}

#[test]
fn a_message_for_another_client_is_counted_and_changes_nothing() {
    let mut talk = Talk::new(false);
    talk.start();
    let good = talk.answer(Kind::Advertise, GOOD, MINE, 60);
    let changed = |change: &dyn Fn(&mut Message)| {
        let mut message = good.clone();
        change(&mut message);
        message
    };
    let set = |code: u16, value: &'static [u8]| {
        changed(&move |message| {
            message.options.remove(code);
            message.options.push(code, value);
        })
    };
    let without = |code: u16| changed(&move |message| message.options.remove(code));
    let tricks = [
        changed(&|message| message.transaction ^= 1),
        set(option::CLIENT_ID, &[0, 3, 0, 32, 9]),
        changed(&|message| message.kind = Kind::Reconfigure),
        changed(&|message| message.kind = Kind::Solicit),
        changed(&|message| message.kind = Kind::Reply),
        without(option::CLIENT_ID),
        without(option::SERVER_ID),
        set(option::SERVER_ID, &[1, 2]),
        without(option::IA_NA),
        set(option::IA_NA, &[0; 12]),
        set(option::STATUS_CODE, &[7]),
    ];
    for trick in &tricks {
        talk.hear(trick, EVIL);
        assert_eq!(talk.state(), State::Soliciting);
    }
    let counts = talk.client.counts().clone();
    assert_eq!(
        (counts.foreign, counts.unsolicited, counts.unusable),
        (2, 3, 6)
    );
    assert_eq!((counts.offers, counts.refusals), (0, 0));
    talk.offer(GOOD, MINE, AT_ONCE);
    // Late answers to the SOLICIT do not count as foreign.
    talk.hear(&good, GOOD);
    assert_eq!(talk.client.counts().foreign, 2);
    let mut reply = talk.answer(Kind::Reply, EVIL, OTHER, 60);
    talk.hear(&reply, EVIL);
    assert_eq!(talk.state(), State::Requesting);
    reply.kind = Kind::Advertise;
    talk.hear(&reply, EVIL);
    assert_eq!(talk.state(), State::Requesting);
    assert_eq!(
        talk.client.counts().why_unusable.as_deref(),
        Some("REPLY from fe80::2: the request went to another server")
    );
    talk.grant(GOOD, MINE, 60);
    assert_eq!(talk.actions, [Action::Bound]);
}

#[test]
fn a_server_that_offers_and_does_not_answer_is_the_last_choice() {
    let mut talk = Talk::new(false);
    talk.start();
    talk.offer(EVIL, OTHER, 200).offer(GOOD, MINE, 0);
    talk.wake().wake();
    assert_eq!(talk.last(), (Kind::Request, Some(EVIL), Some(OTHER)));
    talk.wake();
    assert_eq!(talk.last(), (Kind::Request, Some(GOOD), Some(MINE)));
    // This server is silent too: the client starts again, and the server that failed first waits
    // for a better one.
    talk.wake().wake().wake().wake();
    assert_eq!(
        (talk.last().0, talk.client.counts().unanswered_requests),
        (Kind::Solicit, 1)
    );
    talk.offer(EVIL, OTHER, AT_ONCE);
    assert_eq!(talk.state(), State::Soliciting);
    talk.offer(3, 7, 0);
    talk.wake();
    assert_eq!(talk.last(), (Kind::Request, Some(3), Some(7)));
}

#[test]
fn a_refusal_is_logged_and_causes_no_storm() {
    let mut talk = Talk::new(false);
    talk.start();
    let mut none = talk.refusal(GOOD, 2);
    none.kind = Kind::Advertise;
    talk.hear(&none, GOOD);
    let line = "server fe80::1 refuses: NoAddrsAvail: no".to_owned();
    assert_eq!(talk.actions, [Action::Warn(line.clone())]);
    talk.hear(&none, GOOD);
    assert_eq!(talk.actions, []);
    assert_eq!(talk.client.counts().refusals, 2);
    assert_eq!(talk.client.counts().why_refused.as_ref(), Some(&line));
    // A server that offers and then refuses, again and again.
    let began = talk.now_ns;
    for round in 0..6 {
        if round > 0 {
            talk.wake();
        }
        talk.wake();
        talk.offer(GOOD, MINE, 0);
        while talk.state() == State::Soliciting {
            talk.wake();
        }
        assert_eq!(talk.last().0, Kind::Request);
        let refusal = talk.refusal(GOOD, 4);
        talk.hear(&refusal, GOOD);
        assert_eq!(talk.state(), State::Waiting);
    }
    assert!(talk.now_ns - began > 30 * S, "{}", talk.now_ns - began);
}

#[test]
fn a_lease_is_renewed_with_its_server_then_with_any_then_given_up() {
    let mut talk = Talk::bound(false, 1000);
    let began = talk.now_ns;
    talk.wake();
    let age = (talk.now_ns - began) / S;
    assert!((475..=500).contains(&age), "renewed after {age} s");
    assert_eq!(talk.last(), (Kind::Renew, Some(GOOD), Some(MINE)));
    talk.grant(GOOD, MINE, 1000);
    assert_eq!(talk.actions, [Action::Bound]);
    let renewed = talk.now_ns;
    // The server of the lease is gone.
    talk.wake();
    while talk.state() == State::Renewing {
        talk.wake();
    }
    let age = (talk.now_ns - renewed) / S;
    assert_eq!(talk.last(), (Kind::Rebind, None, Some(MINE)));
    assert_eq!(age, 800);
    let mut foreign = Talk::bound(false, 1000);
    std::mem::swap(&mut foreign, &mut talk);
    foreign.grant(EVIL, MINE, 1000);
    assert_eq!(foreign.actions, [Action::Bound]);
    assert_eq!(foreign.client.lease().unwrap().server_id, "00:03:00:02");
    // No server answers.
    while talk.state() != State::Soliciting {
        talk.wake();
    }
    let why = "the lease of fd00::5/128 has ended: a new lease is requested".to_owned();
    assert_eq!(
        talk.actions[..2],
        [Action::Warn(why), Action::Lost(ip(MINE))]
    );
    assert_eq!(talk.client.lease(), None);
    assert_eq!(talk.last(), (Kind::Solicit, None, None));
}

#[test]
fn a_known_address_is_solicited() {
    let mut talk = Talk::new(false);
    let actions = talk.client.start(talk.now_ns, Some(ip(MINE)));
    assert_eq!(talk.note(actions).last(), (Kind::Solicit, None, Some(MINE)));
}

#[test]
fn the_address_of_the_root_is_kept_and_no_other_one_taken() {
    let mut talk = Talk::bound(true, 100).after_boot();
    while talk.state() != State::Soliciting {
        talk.wake();
    }
    assert_eq!(
        talk.actions[0],
        Action::Warn("the lease of fd00::5/128 has ended: the address is kept, because the root file system depends on it"
                .to_owned()
        )
    );
    assert_eq!(talk.last(), (Kind::Solicit, None, Some(MINE)));
    let solicit = talk.sent.clone().unwrap();
    assert_eq!(solicit.options.first(option::RAPID_COMMIT), None);
    talk.offer(EVIL, OTHER, AT_ONCE);
    assert_eq!(
        talk.client.counts().why_unusable.as_deref(),
        Some("ADVERTISE from fe80::2: fd00::6, but fd00::5 is kept")
    );
    // A server can slow the client down: no boot waits.
    let mut slow = talk.answer(Kind::Advertise, EVIL, OTHER, 60);
    slow.options
        .push(option::SOL_MAX_RT, 86400_u32.to_be_bytes());
    talk.hear(&slow, EVIL);
    for _ in 0..30 {
        talk.wake();
    }
    let wait = talk.client.due().unwrap() - talk.now_ns;
    assert!(wait > 70_000 * S, "{wait}");
    talk.offer(GOOD, MINE, 0);
    talk.grant(GOOD, MINE, 100);
    assert_eq!(talk.actions, [Action::Bound]);
}

#[test]
fn a_server_slows_the_client_down_only_after_the_boot() {
    let wait = |mut talk: Talk, server_s: Option<u32>| {
        talk.start();
        let mut slow = talk.refusal(EVIL, 2);
        slow.kind = Kind::Advertise;
        if let Some(seconds) = server_s {
            slow.options.push(option::SOL_MAX_RT, seconds.to_be_bytes());
        }
        talk.hear(&slow, EVIL);
        for _ in 0..30 {
            talk.wake();
        }
        (talk.client.due().unwrap() - talk.now_ns) / S
    };
    for (server_s, after_boot) in [
        (None, 3600),
        (Some(60), 60),
        (Some(86400), 86400),
        // Outside of 60 to 86,400 (21.24).
        (Some(59), 3600),
        (Some(86401), 3600),
    ] {
        let boot = wait(Talk::new(false), server_s);
        assert!((14..18).contains(&boot), "{boot}");
        let least = after_boot - after_boot / 10;
        let most = after_boot + after_boot / 10;
        let keeper = wait(Talk::new(false).after_boot(), server_s);
        assert!((least..most).contains(&keeper), "{keeper}");
    }
}

#[test]
fn a_lease_that_the_server_forgot_is_requested_again() {
    for keep in [false, true] {
        let mut talk = Talk::bound(keep, 1000);
        talk.wake();
        let refusal = talk.refusal(GOOD, 3);
        talk.hear(&refusal, GOOD);
        assert_eq!(talk.last(), (Kind::Request, Some(GOOD), Some(MINE)));
        talk.grant(GOOD, OTHER, 1000);
        if keep {
            assert_eq!(talk.state(), State::Requesting);
            talk.grant(GOOD, MINE, 1000);
            assert_eq!(talk.actions, [Action::Bound]);
        } else {
            assert_eq!(talk.actions, [Action::Lost(ip(MINE)), Action::Bound]);
        }
    }
}

#[test]
fn only_the_server_of_the_lease_ends_it_before_its_time() {
    let mut talk = Talk::bound(false, 1000);
    let began = talk.now_ns;
    while talk.state() != State::Rebinding {
        talk.wake();
    }
    for _ in 0..3 {
        assert_eq!(talk.last(), (Kind::Rebind, None, Some(MINE)));
        talk.hear(&talk.refusal(EVIL, 3), EVIL);
        assert_eq!(talk.last(), (Kind::Request, Some(EVIL), Some(MINE)));
        talk.hear(&talk.refusal(EVIL, 2), EVIL);
        // `check` warns in this state.
        assert_eq!(talk.state(), State::Waiting);
        let refused = "server fe80::2 refuses: NoAddrsAvail: no";
        assert_eq!(talk.client.counts().why_refused.as_deref(), Some(refused));
        assert_eq!(talk.client.lease().unwrap().address, ip(MINE));
        talk.wake();
    }
    talk.grant(GOOD, MINE, 1000);
    assert_eq!(talk.actions, [Action::Bound]);
    assert!(talk.now_ns - began < 900 * S, "{}", talk.now_ns - began);
    // The lease still ends in time.
    while talk.state() != State::Rebinding {
        talk.wake();
    }
    let ends = talk.client.lease().unwrap().ends_ns().unwrap();
    while talk.client.lease().is_some() {
        if talk.state() == State::Rebinding {
            talk.hear(&talk.refusal(EVIL, 3), EVIL);
            talk.hear(&talk.refusal(EVIL, 2), EVIL);
        }
        talk.wake();
    }
    assert_eq!(talk.now_ns, ends);
    // Its own server.
    let mut talk = Talk::bound(false, 1000);
    talk.wake();
    talk.hear(&talk.refusal(GOOD, 3), GOOD);
    talk.hear(&talk.refusal(GOOD, 2), GOOD);
    assert_eq!(talk.actions[1], Action::Lost(ip(MINE)));
}

#[test]
fn a_server_that_takes_the_address_back_is_obeyed_unless_a_root_hangs_on_it() {
    let mut talk = Talk::bound(false, 1000);
    talk.wake();
    talk.grant(GOOD, MINE, 0);
    assert_eq!(talk.actions[1], Action::Lost(ip(MINE)));
    let mut kept = Talk::bound(true, 1000);
    kept.wake();
    kept.grant(GOOD, MINE, 0);
    assert_eq!(kept.client.lease().unwrap().address, ip(MINE));
    // Any other refusal of a renewal does not end the lease.
    let mut talk = Talk::bound(false, 1000);
    talk.wake();
    let refusal = talk.refusal(GOOD, 1);
    talk.hear(&refusal, GOOD);
    assert_eq!(talk.state(), State::Renewing);
    talk.grant(GOOD, OTHER, 1000);
    assert_eq!(
        talk.client.counts().why_unusable.as_deref(),
        Some("REPLY from fe80::1: fd00::6 was not requested")
    );
}

#[test]
fn an_address_of_another_host_is_declined_and_another_one_is_requested() {
    let mut talk = Talk::bound(false, 1000);
    let actions = talk.client.duplicate(talk.now_ns);
    talk.note(actions);
    let line = "another host uses fd00::5: declined".to_owned();
    assert_eq!(
        talk.actions[..2],
        [Action::Warn(line), Action::Lost(ip(MINE))]
    );
    assert_eq!(talk.last(), (Kind::Decline, Some(GOOD), Some(MINE)));
    assert_eq!(talk.client.lease(), None);
    talk.grant(EVIL, OTHER, 60);
    assert_eq!(talk.state(), State::Declining);
    let declined = talk.now_ns;
    talk.grant(GOOD, MINE, 60);
    talk.wake();
    assert_eq!(
        (talk.last(), talk.now_ns - declined),
        ((Kind::Solicit, None, None), S)
    );
    talk.offer(GOOD, OTHER, AT_ONCE).grant(GOOD, OTHER, 60);
    assert_eq!(talk.client.lease().unwrap().address, ip(OTHER));
    // The next address is taken too, and the server does not answer the DECLINE.
    let actions = talk.client.duplicate(talk.now_ns);
    talk.note(actions);
    let declined = talk.client.counts().sent;
    while talk.state() == State::Declining {
        talk.wake();
    }
    assert_eq!(talk.client.counts().sent - declined, 3);
    let began = talk.now_ns;
    talk.wake();
    assert_eq!(talk.now_ns - began, 10 * S);
}

#[test]
fn a_lease_of_another_process_goes_on_where_it_stands() {
    let lease = Talk::bound(false, 1000).client.lease().unwrap().clone();
    let mut talk = Talk::new(false);
    let actions = talk.client.resume(300 * S, lease.clone());
    assert_eq!((actions, talk.state()), (Vec::new(), State::Bound));
    let mut late = Talk::new(false);
    late.now_ns = 100 * S + 850 * S;
    let actions = late.client.resume(late.now_ns, lease.clone());
    late.note(actions).wake();
    assert_eq!(late.last(), (Kind::Rebind, None, Some(MINE)));
    let for_ever = Lease {
        seconds: u32::MAX,
        renew_s: u32::MAX,
        rebind_s: u32::MAX,
        ..lease
    };
    talk.client.resume(talk.now_ns, for_ever);
    assert_eq!(talk.client.due(), None);
}
