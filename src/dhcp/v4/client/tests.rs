// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversations with good and bad servers, on a simulated clock.

use std::net::Ipv4Addr;

use super::*;
use crate::dhcp::identity::RequestedId;
use crate::dhcp::v4::answer::Answer;
use crate::dhcp::v4::arp::Arp;
use crate::dhcp::v4::packet::{COOKIE, Kind, option};
use crate::hardware::HardwareType;

mod hostile;
mod resuming;

const S: u64 = SECOND;
const GOOD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const EVIL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MINE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 6);
const UNSPECIFIED: Destination = Destination::Link(Ipv4Addr::UNSPECIFIED);

struct Talk {
    client: Client,
    now_ns: u64,
    sent: Option<Message>,
    actions: Vec<Action>,
}

impl Talk {
    fn new(keep: bool) -> Talk {
        let hardware: Vec<u8> = (0..20).collect();
        let config = Config {
            identity: Identity::new(HardwareType::InfiniBand, &hardware, &RequestedId::Firmware)
                .unwrap(),
            vendor_class: Some("ibboot".to_owned()),
            host_name: None,
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
        talk.start(None);
        talk.hear(Kind::Offer, GOOD, MINE, seconds);
        talk.hear(Kind::Ack, GOOD, MINE, seconds);
        for _ in 0..3 {
            talk.wake();
        }
        assert_eq!(talk.client.state(), State::Bound);
        talk
    }

    fn note(&mut self, actions: Vec<Action>) -> &mut Talk {
        for action in &actions {
            if let Action::Send(message, _) = action {
                self.sent = Some(message.clone());
            }
        }
        self.actions = actions;
        self
    }

    fn start(&mut self, known: Option<Ipv4Addr>) -> &mut Talk {
        let actions = self.client.start(self.now_ns, known);
        self.note(actions)
    }

    fn answer(&self, kind: Kind, server: Ipv4Addr, address: Ipv4Addr, seconds: u32) -> Message {
        let mut message = Message::new(kind, self.sent.as_ref().unwrap().xid);
        message.op = 2;
        message.htype = 32;
        message.yiaddr = address;
        let mut add = |code: u8, value: &[u8]| message.options.insert(code, value.to_vec());
        add(option::SERVER, &server.octets());
        add(option::MASK, &[255, 255, 255, 0]);
        add(option::LEASE_TIME, &seconds.to_be_bytes());
        message
    }

    fn hear(&mut self, kind: Kind, server: Ipv4Addr, address: Ipv4Addr, seconds: u32) -> &mut Talk {
        let message = self.answer(kind, server, address, seconds);
        self.hear_this(&message)
    }

    fn hear_this(&mut self, message: &Message) -> &mut Talk {
        let actions = self.client.received(self.now_ns, &Answer::of(message));
        self.note(actions)
    }

    /// Advances the clock to the next due time and wakes the client.
    fn wake(&mut self) -> &mut Talk {
        self.now_ns = self.client.due().unwrap().max(self.now_ns);
        let actions = self.client.wake(self.now_ns);
        self.note(actions)
    }

    fn sent(&self) -> String {
        let words = self.actions.iter().map(|action| match action {
            Action::Send(message, Destination::Link(_)) => message.kind.to_string(),
            Action::Send(message, Destination::Server { to, .. }) => {
                format!("{} to {to}", message.kind)
            }
            Action::Probe(address) => format!("probe {address}"),
            Action::Defend(address) => format!("defend {address}"),
            Action::Bound => "bound".to_owned(),
            Action::Unopposed(address) => format!("unopposed {address}"),
            Action::Lost(address) => format!("lost {address}"),
            Action::Warn(line) => format!("\"{line}\""),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

#[test]
fn the_usual_way_takes_four_messages_and_a_second_of_probes_beside_the_use_of_the_address() {
    let mut talk = Talk::new(false);
    assert_eq!(talk.start(None).sent(), "DISCOVER");
    let discover = talk.sent.clone().unwrap();
    assert_eq!(
        (
            discover.htype,
            discover.hlen,
            discover.chaddr,
            discover.broadcast
        ),
        (32, 0, [0; 16], true)
    );
    assert_eq!(talk.actions[0], Action::Send(discover.clone(), UNSPECIFIED));
    assert_eq!(talk.hear(Kind::Offer, GOOD, MINE, 600).sent(), "REQUEST");
    let request = talk.sent.clone().unwrap();
    assert_eq!(request.xid, discover.xid);
    assert_eq!(request.address(option::SERVER), Some(GOOD));
    assert_eq!(request.address(option::REQUESTED), Some(MINE));
    assert!(request.broadcast && request.ciaddr.is_unspecified());
    let requested = talk.now_ns;
    assert_eq!(
        talk.hear(Kind::Ack, GOOD, MINE, 600).sent(),
        "bound, probe 10.0.0.5"
    );
    assert_eq!(talk.client.lease().unwrap().requested_ns, requested);
    assert_eq!(talk.wake().sent(), "probe 10.0.0.5");
    assert_eq!(talk.wake().sent(), "probe 10.0.0.5");
    assert!(talk.client.is_probing());
    assert_eq!(talk.wake().sent(), "unopposed 10.0.0.5");
    assert_eq!(talk.now_ns - requested, 9 * S / 10);
    assert_eq!(talk.client.state(), State::Bound);
    // The client renews as usual; its ARP probes are over.
    assert_eq!(talk.wake().sent(), "REQUEST to 10.0.0.1");
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 600).sent(), "bound");
}

#[test]
fn retries_double_with_jitter_up_to_16_s_in_a_boot_and_64_s_after_it() {
    for (mut talk, bases) in [
        (Talk::new(false), [1, 2, 4, 8, 16, 16, 16, 16, 16]),
        (
            Talk::new(false).after_boot(),
            [1, 2, 4, 8, 16, 32, 64, 64, 64],
        ),
    ] {
        talk.start(None);
        let mut waits = Vec::new();
        for _ in bases {
            let before = talk.now_ns;
            assert_eq!(talk.wake().sent(), "DISCOVER");
            waits.push(talk.now_ns - before);
        }
        for (wait, base) in waits.iter().zip(bases) {
            let jitter = (base * S / 2).min(S);
            assert!(
                (base * S - jitter..base * S + jitter).contains(wait),
                "{wait} where {base} s are the middle"
            );
        }
        assert!(waits[7] != waits[8]);
        assert_eq!(
            talk.sent.as_ref().unwrap().secs,
            (talk.now_ns / S - 100) as u16
        );
    }
}

#[test]
fn a_lease_of_another_server_is_no_longer_than_the_one_under_the_root_was() {
    let forever = u32::MAX;
    for (keep, offered, granted) in [
        (true, forever, (600, 300, 525)),
        (true, 60, (60, 30, 52)),
        (false, forever, (forever, forever / 2, 3_758_096_383)),
    ] {
        let mut talk = Talk::bound(keep, 600);
        while talk.client.state() != State::Rebinding {
            talk.wake();
        }
        assert_eq!(talk.hear(Kind::Ack, EVIL, MINE, offered).sent(), "bound");
        let times = |lease: &Lease| (lease.seconds, lease.renew_s, lease.rebind_s);
        assert_eq!(
            times(talk.client.lease().unwrap()),
            granted,
            "{keep} {offered}"
        );
        assert_eq!(talk.client.due().is_some(), granted.0 != forever);
    }
    // The same server may make the lease longer.
    let mut talk = Talk::bound(true, 600);
    talk.wake();
    talk.hear(Kind::Ack, GOOD, MINE, forever);
    assert_eq!(talk.client.lease().unwrap().seconds, forever);
}

#[test]
fn a_taken_address_is_given_up_and_declined_and_another_one_requested() {
    // Also for the root file system's address: nothing depends on a new address yet.
    let mut talk = Talk::new(true);
    talk.start(None);
    talk.hear(Kind::Offer, GOOD, MINE, 600);
    talk.hear(Kind::Ack, GOOD, MINE, 600);
    assert_eq!(talk.client.lease().unwrap().address, MINE);
    let reply = Arp {
        sender_address: MINE,
        ..Arp::probe(HardwareType::InfiniBand, &[0xee; 20], MINE)
    };
    let actions = talk.client.arp(talk.now_ns, &reply);
    let owner = "ee:".repeat(19) + "ee";
    assert_eq!(
        talk.note(actions).sent(),
        format!(
            "\"the host {owner} uses 10.0.0.5: declined; requesting another address\", DECLINE, lost 10.0.0.5"
        )
    );
    assert_eq!(talk.client.lease(), None);
    assert_eq!(talk.client.state(), State::Waiting);
    let taken = format!("the host {owner} uses 10.0.0.5");
    assert_eq!(talk.client.counts().taken.as_ref(), Some(&taken));
    let decline = talk.sent.clone().unwrap();
    assert_eq!(decline.address(option::REQUESTED), Some(MINE));
    assert_eq!(decline.address(option::SERVER), Some(GOOD));
    assert_eq!(decline.option(option::PARAMETERS), None);
    let before = talk.now_ns;
    assert_eq!(talk.wake().sent(), "DISCOVER");
    assert_eq!(talk.now_ns - before, S);
    // The second DECLINE waits ten seconds.
    talk.hear(Kind::Offer, GOOD, MINE, 600);
    talk.hear(Kind::Ack, GOOD, MINE, 600);
    let actions = talk.client.arp(talk.now_ns, &reply);
    let before = talk.note(actions).now_ns;
    assert_eq!(talk.wake().sent(), "DISCOVER");
    assert_eq!(talk.now_ns - before, 10 * S);
}

#[test]
fn the_probes_start_again_after_an_arp_message_that_was_not_decoded() {
    let mut talk = Talk::new(false);
    talk.start(None);
    talk.hear(Kind::Offer, GOOD, MINE, 600);
    talk.hear(Kind::Ack, GOOD, MINE, 600);
    talk.wake().wake();
    let deaf = |talk: &mut Talk| {
        let actions = talk.client.deaf_to_arp(talk.now_ns);
        talk.note(actions).sent()
    };
    assert_eq!(
        deaf(&mut talk),
        "\"whether another host uses 10.0.0.5 is unknown: an ARP message was not decoded; \
         probing the address again\""
    );
    assert_eq!(deaf(&mut talk), "", "said once");
    for _ in 0..3 {
        assert_eq!(talk.wake().sent(), "probe 10.0.0.5");
    }
    assert_eq!(talk.wake().sent(), "unopposed 10.0.0.5");
    assert_eq!(deaf(&mut talk), "");
    assert_eq!(talk.client.state(), State::Bound);
}

/// A client that has just sent the first probe of its lease of MINE.
fn probing(seconds: u32) -> Talk {
    let mut talk = Talk::new(false);
    talk.start(None);
    talk.hear(Kind::Offer, GOOD, MINE, seconds);
    talk.hear(Kind::Ack, GOOD, MINE, seconds);
    talk
}

#[test]
fn a_probe_that_could_not_be_sent_does_not_count() {
    let mut talk = probing(600);
    for _ in 0..9 {
        talk.client.probe_not_sent();
        let before = talk.now_ns;
        assert_eq!(talk.wake().sent(), "probe 10.0.0.5");
        assert!(talk.now_ns > before);
    }
    for _ in 0..2 {
        assert_eq!(talk.wake().sent(), "probe 10.0.0.5");
    }
    assert_eq!(talk.wake().sent(), "unopposed 10.0.0.5");
    // The lease ends nevertheless.
    let mut talk = probing(60);
    let ends = talk.client.lease().unwrap().ends_ns().unwrap();
    while talk.client.is_probing() {
        talk.client.probe_not_sent();
        talk.wake();
    }
    assert!((ends..ends + S).contains(&talk.now_ns));
    assert_eq!(
        talk.sent(),
        "\"the lease of 10.0.0.5/24 has ended: a new lease is requested\", lost 10.0.0.5, DISCOVER"
    );
}

#[test]
fn the_probes_begin_again_with_the_carrier() {
    let mut talk = probing(600);
    talk.wake().wake();
    talk.client.set_carrier(talk.now_ns, false);
    let ends = talk.client.lease().unwrap().ends_ns();
    assert_eq!((talk.client.due(), ends.is_some()), (ends, true));
    talk.now_ns += 9 * S;
    let actions = talk.client.wake(talk.now_ns);
    assert_eq!(talk.note(actions).sent(), "");
    for _ in 0..2 {
        talk.client.set_carrier(talk.now_ns, true);
        assert_eq!(talk.client.due(), Some(talk.now_ns));
    }
    for _ in 0..3 {
        assert_eq!(talk.wake().sent(), "probe 10.0.0.5");
        let due = talk.client.due();
        talk.client.set_carrier(talk.now_ns, true);
        assert_eq!(talk.client.due(), due);
    }
    assert_eq!(talk.wake().sent(), "unopposed 10.0.0.5");
    // The lease ends without carrier too.
    let mut talk = probing(60);
    talk.client.set_carrier(talk.now_ns, false);
    assert_eq!(
        talk.wake().sent(),
        "\"the lease of 10.0.0.5/24 has ended: a new lease is requested\", lost 10.0.0.5, DISCOVER"
    );
    // The renewal of a lease does not wait for the carrier.
    let mut talk = probing(600);
    talk.wake().wake().wake();
    assert_eq!(talk.client.state(), State::Bound);
    let due = talk.client.due();
    talk.client.set_carrier(talk.now_ns, false);
    assert_eq!(talk.client.due(), due);
}

#[test]
fn an_answer_for_another_client_does_not_count() {
    let mut talk = Talk::new(false);
    talk.start(None);
    let mut other_xid = talk.answer(Kind::Offer, GOOD, MINE, 600);
    other_xid.xid ^= 1;
    assert_eq!(talk.hear_this(&other_xid).sent(), "");
    let mut other_id = talk.answer(Kind::Offer, GOOD, MINE, 600);
    other_id.options.insert(option::CLIENT_ID, vec![1, 2, 3]);
    assert_eq!(talk.hear_this(&other_id).sent(), "");
    let mut not_a_reply = talk.answer(Kind::Offer, GOOD, MINE, 600);
    not_a_reply.op = 1;
    assert_eq!(talk.hear_this(&not_a_reply).sent(), "");
    assert_eq!(talk.client.counts().foreign, 2);
    // An answer with our identifier counts; there is no hardware address to compare.
    let mut echoed = talk.answer(Kind::Offer, GOOD, MINE, 600);
    echoed.chaddr = [9; 16];
    let own = talk.client.config.identity.client_id.clone();
    echoed.options.insert(option::CLIENT_ID, own);
    assert_eq!(talk.hear_this(&echoed).sent(), "REQUEST");
}

#[test]
fn unrequested_messages_are_ignored_in_every_state() {
    let mut talk = Talk::new(false);
    talk.start(None);
    for kind in [Kind::Ack, Kind::Nak, Kind::ForceRenew, Kind::Discover] {
        assert_eq!(talk.hear(kind, GOOD, MINE, 600).sent(), "");
    }
    let mut talk = Talk::bound(false, 600);
    let due = talk.client.due();
    for kind in [Kind::Offer, Kind::Ack, Kind::Nak, Kind::ForceRenew] {
        assert_eq!(talk.hear(kind, GOOD, OTHER, 600).sent(), "");
    }
    assert_eq!(talk.client.due(), due);
    assert_eq!(talk.client.counts().unsolicited, 4);
    assert_eq!(talk.client.lease().unwrap().address, MINE);
}

#[test]
fn a_second_server_with_nonsense_does_not_stop_the_good_one() {
    let mut talk = Talk::new(false);
    talk.start(None);
    let nonsense = talk.answer(Kind::Offer, EVIL, Ipv4Addr::new(127, 0, 0, 1), 600);
    assert_eq!(
        talk.hear_this(&nonsense).sent(),
        "\"not usable: OFFER from 10.0.0.2: 127.0.0.1 is not a host address\""
    );
    assert_eq!(talk.hear_this(&nonsense).sent(), "");
    assert_eq!(talk.hear(Kind::Offer, GOOD, MINE, 600).sent(), "REQUEST");
    // Nor do its NAK, its ACK and its other address.
    assert_eq!(
        talk.hear(Kind::Nak, EVIL, MINE, 600).sent(),
        "\"not usable: NAK from 10.0.0.2: the request went to another server\""
    );
    // A message of another kind with the same reason is not logged.
    assert_eq!(talk.hear(Kind::Ack, EVIL, MINE, 600).sent(), "");
    assert_eq!(talk.client.counts().unusable, 4);
    assert_eq!(
        talk.hear(Kind::Ack, GOOD, OTHER, 600).sent(),
        "\"not usable: ACK from 10.0.0.1: 10.0.0.6 was not requested\""
    );
    assert_eq!(
        talk.hear(Kind::Ack, GOOD, MINE, 600).sent(),
        "bound, probe 10.0.0.5"
    );
}

#[test]
fn a_server_that_offers_and_is_silent_gives_way_to_the_other_offer() {
    let mut talk = Talk::new(false);
    talk.start(None);
    assert_eq!(talk.hear(Kind::Offer, EVIL, OTHER, 600).sent(), "REQUEST");
    assert_eq!(talk.hear(Kind::Offer, GOOD, MINE, 600).sent(), "");
    assert_eq!(talk.wake().sent(), "REQUEST");
    assert_eq!(
        talk.sent.as_ref().unwrap().address(option::SERVER),
        Some(EVIL)
    );
    assert_eq!(talk.wake().sent(), "REQUEST");
    assert_eq!(
        talk.sent.as_ref().unwrap().address(option::SERVER),
        Some(GOOD)
    );
    assert!(talk.now_ns - 100 * S < 5 * S);
    assert_eq!(
        talk.hear(Kind::Ack, GOOD, MINE, 600).sent(),
        "bound, probe 10.0.0.5"
    );
}

#[test]
fn a_server_that_failed_us_waits_for_a_better_one_and_gets_its_turn_if_none_comes() {
    let mut talk = Talk::new(false);
    talk.start(None);
    talk.hear(Kind::Offer, EVIL, OTHER, 600);
    for _ in 0..3 {
        assert_eq!(talk.wake().sent(), "REQUEST");
    }
    assert_eq!(talk.wake().sent(), "DISCOVER");
    assert_eq!(talk.client.counts().unanswered_requests, 1);
    assert_eq!(talk.hear(Kind::Offer, EVIL, OTHER, 600).sent(), "");
    let before = talk.now_ns;
    assert_eq!(talk.hear(Kind::Offer, GOOD, MINE, 600).sent(), "REQUEST");
    assert_eq!(
        talk.sent.as_ref().unwrap().address(option::SERVER),
        Some(GOOD)
    );
    let mut talk = Talk::new(false);
    talk.start(None);
    talk.hear(Kind::Offer, EVIL, OTHER, 600);
    for _ in 0..4 {
        talk.wake();
    }
    talk.hear(Kind::Offer, EVIL, OTHER, 600);
    assert_eq!(talk.wake().sent(), "REQUEST");
    assert!(talk.now_ns > before);
}

#[test]
fn a_nak_starts_anew_after_a_while_and_never_makes_a_storm() {
    let mut talk = Talk::new(false);
    talk.start(None);
    let mut messages = 0;
    let mut logged = Vec::new();
    while talk.now_ns < 160 * S {
        talk.hear(Kind::Offer, GOOD, MINE, 600);
        let mut nak = talk.answer(Kind::Nak, GOOD, MINE, 0);
        nak.options
            .insert(option::MESSAGE, b"wrong\x1b[31m network".to_vec());
        if talk.client.state() == State::Requesting {
            logged.push(talk.hear_this(&nak).sent());
        }
        talk.wake();
        messages += 1;
    }
    assert!(messages < 30, "{messages} in a minute");
    let line = "\"server 10.0.0.1 refuses (NAK): wrong\\x1b[31m network\"";
    assert_eq!(logged.remove(0), line);
    assert!(logged.len() > 2 && logged.concat().is_empty(), "{logged:?}");
}

#[test]
fn the_reason_of_a_refusal_changes_no_more_often_than_the_log() {
    let mut talk = Talk::new(false);
    talk.start(None);
    for (words, expected) in [
        ("first", "\"server 10.0.0.1 refuses (NAK): first\""),
        ("second", ""),
    ] {
        talk.hear(Kind::Offer, GOOD, MINE, 600);
        if talk.client.state() != State::Requesting {
            // A server that has refused is asked again only after a while.
            assert_eq!(talk.wake().sent(), "REQUEST");
        }
        let mut nak = talk.answer(Kind::Nak, GOOD, MINE, 0);
        nak.options.insert(option::MESSAGE, words.into());
        assert_eq!(talk.hear_this(&nak).sent(), expected);
        let why = talk.client.counts().why_refused.as_deref();
        assert_eq!(why, Some("server 10.0.0.1 refuses (NAK): first"));
        assert_eq!(talk.wake().sent(), "DISCOVER");
    }
    assert_eq!(talk.client.counts().refusals, 2);
}

#[test]
fn a_new_start_takes_a_new_transaction_and_no_offer_of_the_last_one() {
    let mut talk = Talk::new(false);
    talk.start(None);
    let discover = talk.sent.clone().unwrap();
    talk.hear(Kind::Offer, GOOD, MINE, 600);
    talk.hear(Kind::Nak, GOOD, MINE, 0);
    assert_eq!(talk.wake().sent(), "DISCOVER");
    assert_ne!(talk.sent.as_ref().unwrap().xid, discover.xid);
    assert_eq!(talk.wake().sent(), "DISCOVER");
    let mut late = talk.answer(Kind::Offer, GOOD, MINE, 600);
    late.xid = discover.xid;
    assert_eq!(talk.hear_this(&late).sent(), "");
    assert_eq!(talk.client.counts().foreign, 0);
}

#[test]
fn of_several_offers_only_the_requested_one_is_granted() {
    let mut talk = Talk::new(false);
    talk.start(None);
    talk.hear(Kind::Offer, GOOD, MINE, 600);
    assert_eq!(talk.hear(Kind::Offer, EVIL, OTHER, 600).sent(), "");
    assert_eq!(talk.client.counts().offers, 2);
    assert_eq!(
        talk.hear(Kind::Ack, GOOD, OTHER, 600).sent(),
        "\"not usable: ACK from 10.0.0.1: 10.0.0.6 was not requested\""
    );
    talk.hear(Kind::Ack, GOOD, MINE, 600);
    assert_eq!(talk.client.lease().unwrap().address, MINE);
}

#[test]
fn a_lease_counts_from_the_request_that_its_server_answered() {
    let mut talk = Talk::bound(false, 6000);
    for state in [State::Renewing, State::Rebinding] {
        while talk.client.state() != state {
            talk.wake();
        }
        let late = talk.answer(Kind::Ack, GOOD, MINE, 6000);
        talk.wake();
        assert_eq!(talk.hear_this(&late).sent(), "");
        assert_eq!(talk.client.state(), state);
    }
    let requested = talk.now_ns;
    talk.now_ns += S;
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 6000).sent(), "bound");
    assert_eq!(talk.client.lease().unwrap().requested_ns, requested);
}

#[test]
fn a_known_address_is_requested_first() {
    let mut talk = Talk::new(false);
    assert_eq!(talk.start(Some(MINE)).sent(), "REQUEST");
    let request = talk.sent.clone().unwrap();
    assert_eq!(request.address(option::REQUESTED), Some(MINE));
    assert_eq!(request.address(option::SERVER), None);
    assert!(request.ciaddr.is_unspecified());
    assert_eq!(
        talk.hear(Kind::Ack, GOOD, MINE, 600).sent(),
        "bound, probe 10.0.0.5"
    );
    // After a NAK the client starts again at once; without an answer, after two REQUESTs.
    let mut talk = Talk::new(false);
    talk.start(Some(MINE));
    assert_eq!(
        talk.hear(Kind::Nak, EVIL, MINE, 0).sent(),
        "\"server 10.0.0.2 refuses (NAK)\", DISCOVER"
    );
    let mut talk = Talk::new(false);
    talk.start(Some(MINE));
    assert_eq!(talk.wake().sent(), "REQUEST");
    assert_eq!(talk.wake().sent(), "DISCOVER");
    assert_eq!(
        talk.sent.as_ref().unwrap().address(option::REQUESTED),
        Some(MINE)
    );
}

#[test]
fn a_lease_is_renewed_with_its_server_then_with_any() {
    let mut talk = Talk::bound(false, 6000);
    let requested = talk.client.lease().unwrap().requested_ns;
    assert_eq!(talk.wake().sent(), "REQUEST to 10.0.0.1");
    assert!((2850 * S..=3000 * S).contains(&(talk.now_ns - requested)));
    let renew = talk.sent.clone().unwrap();
    assert_eq!(renew.ciaddr, MINE);
    assert!(!renew.broadcast);
    assert_eq!(renew.address(option::REQUESTED), None);
    assert_eq!(renew.address(option::SERVER), None);
    // Each wait is half the time to T2, and at least a minute.
    let mut last = talk.now_ns;
    let mut renewals = 1;
    while talk.wake().sent() == "REQUEST to 10.0.0.1" {
        assert!(talk.now_ns - last >= 60 * S);
        last = talk.now_ns;
        renewals += 1;
    }
    assert!((5..=8).contains(&renewals), "{renewals}");
    assert_eq!(talk.sent(), "REQUEST");
    assert_eq!(talk.client.state(), State::Rebinding);
    assert_eq!(talk.now_ns - requested, 5250 * S);
    assert_eq!(
        talk.actions.last(),
        Some(&Action::Send(
            talk.sent.clone().unwrap(),
            Destination::Link(MINE)
        ))
    );
    // Another server extends the lease.
    assert_eq!(talk.hear(Kind::Ack, EVIL, MINE, 6000).sent(), "bound");
    assert_eq!(talk.client.lease().unwrap().server, EVIL);
    assert_eq!(talk.client.lease().unwrap().requested_ns, talk.now_ns);
}

#[test]
fn the_seconds_of_a_renewal_count_from_its_begin() {
    let seconds = |talk: &Talk| {
        let bytes = talk.sent.as_ref().unwrap().encode();
        u64::from(u16::from_be_bytes(bytes[8..10].try_into().unwrap()))
    };
    let mut talk = Talk::bound(false, 6000);
    for _ in 0..2 {
        talk.wake();
        assert_eq!(talk.client.state(), State::Renewing);
        assert_eq!(seconds(&talk), 0);
        let began = talk.now_ns;
        // REBINDING continues the renewal.
        while talk.client.state() == State::Renewing {
            talk.wake();
            assert_eq!(seconds(&talk), (talk.now_ns - began) / S);
        }
        assert_eq!(talk.client.state(), State::Rebinding);
        assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 6000).sent(), "bound");
    }
    // The machine slept until after T2.
    talk.now_ns += 5500 * S;
    let actions = talk.client.wake(talk.now_ns);
    assert_eq!(talk.note(actions).sent(), "REQUEST");
    assert_eq!(talk.client.state(), State::Rebinding);
    assert_eq!(seconds(&talk), 0);
}

#[test]
fn a_lease_that_ends_takes_its_address_along() {
    let mut talk = Talk::bound(false, 600);
    while !talk.wake().sent().contains("lost") {}
    assert_eq!(
        talk.sent(),
        "\"the lease of 10.0.0.5/24 has ended: a new lease is requested\", lost 10.0.0.5, DISCOVER"
    );
    assert_eq!(talk.client.lease(), None);
    // Likewise after a refusal.
    let mut talk = Talk::bound(false, 600);
    talk.wake();
    assert_eq!(
        talk.hear(Kind::Nak, EVIL, MINE, 0).sent(),
        "\"not usable: NAK from 10.0.0.2: the request went to another server\""
    );
    assert_eq!(
        talk.hear(Kind::Nak, GOOD, MINE, 0).sent(),
        "\"server 10.0.0.1 refuses (NAK): a new lease is requested\", lost 10.0.0.5, DISCOVER"
    );
}

#[test]
fn the_address_of_the_root_file_system_stays_and_only_it_is_taken_again() {
    let mut talk = Talk::bound(true, 600);
    while talk.client.state() != State::Selecting {
        talk.wake();
    }
    assert_eq!(
        talk.sent(),
        "\"the lease of 10.0.0.5/24 has ended: the address is kept, because the root file system depends on it\", DISCOVER"
    );
    assert_eq!(talk.client.lease().unwrap().address, MINE);
    assert_eq!(
        talk.hear(Kind::Offer, GOOD, OTHER, 600).sent(),
        "\"not usable: OFFER from 10.0.0.1: 10.0.0.6, but 10.0.0.5 is kept\""
    );
    assert_eq!(talk.hear(Kind::Offer, GOOD, MINE, 600).sent(), "REQUEST");
    // The client had the address before: no probe.
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 600).sent(), "bound");
    let mut talk = Talk::bound(true, 600);
    talk.wake();
    assert_eq!(
        talk.hear(Kind::Nak, GOOD, MINE, 0).sent(),
        "\"server 10.0.0.1 refuses (NAK): the address is kept, because the root file system depends on it\", DISCOVER"
    );
}

#[test]
fn a_server_that_pings_before_an_offer_grants_a_kept_address_by_init_reboot() {
    let mut talk = Talk::bound(true, 600).after_boot();
    while talk.client.state() != State::Selecting {
        talk.wake();
    }
    let mut waits = Vec::new();
    for message in ["REQUEST", "DISCOVER"].repeat(8) {
        let before = talk.now_ns;
        assert_eq!(talk.wake().sent(), message);
        waits.push((talk.now_ns - before) / S);
        // dhcpd offers another address: its own ping found this one in use.
        let offer = talk.hear(Kind::Offer, GOOD, OTHER, 600).sent();
        assert!(!offer.contains("REQUEST"), "{offer}");
        // A refusal is no new start.
        if message == "REQUEST" {
            assert_eq!(talk.hear(Kind::Nak, GOOD, MINE, 0).sent(), "");
        }
    }
    assert!(
        waits.iter().rev().take(8).all(|wait| *wait >= 62),
        "{waits:?}"
    );
    assert_eq!(talk.wake().sent(), "REQUEST");
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 600).sent(), "bound");
    assert_eq!(talk.client.state(), State::Bound);
    assert_eq!(talk.client.lease().unwrap().requested_ns, talk.now_ns);
}

#[test]
fn a_lease_for_ever_needs_nothing_more() {
    let talk = Talk::bound(false, u32::MAX);
    assert_eq!(talk.client.due(), None);
}

#[test]
fn a_lease_of_a_second_makes_no_storm() {
    let mut talk = Talk::bound(false, 1);
    let mut requests = 0;
    let end = talk.now_ns + 60 * S;
    while talk.now_ns < end {
        talk.wake();
        if talk.actions.iter().any(|a| matches!(a, Action::Send(..))) {
            requests += 1;
        }
        let kind = if talk.client.state() == State::Selecting {
            Kind::Offer
        } else {
            Kind::Ack
        };
        talk.hear(kind, GOOD, MINE, 1);
    }
    assert!(requests <= 13, "{requests} in a minute");
}

#[test]
fn a_lease_of_another_process_goes_on() {
    let lease = Talk::bound(false, 600).client.lease().unwrap().clone();
    let mut talk = Talk::new(false);
    talk.now_ns = lease.requested_ns + 100 * S;
    let actions = talk.client.resume(talk.now_ns, lease.clone(), false);
    assert_eq!(talk.note(actions).sent(), "");
    assert_eq!(talk.wake().sent(), "REQUEST to 10.0.0.1");
    // The earlier process stopped before its probes were over.
    let mut talk = Talk::new(false);
    talk.now_ns = lease.requested_ns + S;
    let actions = talk.client.resume(talk.now_ns, lease, true);
    assert_eq!(talk.note(actions).sent(), "probe 10.0.0.5");
    assert!(talk.client.is_probing());
    assert_eq!(talk.wake().sent(), "probe 10.0.0.5");
    assert_eq!(talk.wake().sent(), "probe 10.0.0.5");
    assert_eq!(talk.wake().sent(), "unopposed 10.0.0.5");
    assert_eq!(talk.client.state(), State::Bound);
}

#[test]
fn the_bytes_of_a_discover_are_these() {
    let mut talk = Talk::new(false);
    talk.start(None);
    let discover = talk.sent.clone().unwrap();
    let bytes = discover.encode();
    let mut expected = vec![1, 32, 0, 0];
    expected.extend(discover.xid.to_be_bytes());
    expected.extend([0, 0, 0x80, 0]);
    expected.resize(236, 0);
    expected.extend(COOKIE);
    expected.extend([53, 1, 1]);
    expected.extend([
        55, 16, 1, 121, 3, 33, 6, 15, 119, 12, 17, 26, 28, 51, 58, 59, 66, 67,
    ]);
    expected.extend([57, 2, 5, 192]);
    expected.extend(b"\x3c\x06ibboot");
    expected.extend([61, 20, 0xff, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0xc9, 0]);
    expected.extend(12..20);
    expected.push(255);
    expected.resize(300, 0);
    assert_eq!(bytes, expected);
}
