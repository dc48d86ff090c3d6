// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other hosts on the link that send wrong messages.

use super::*;
use crate::dhcp::conduct::OFFERS;

fn server(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 66, 0, 1).to_bits() + number)
}

/// The log lines that these messages cause; each message has different bytes.
fn lines(talk: &mut Talk, messages: impl Iterator<Item = Message>) -> Vec<String> {
    let mut lines = Vec::new();
    for message in messages {
        talk.hear_this(&message);
        let logged = talk.actions.iter().filter_map(|action| match action {
            Action::Warn(line) => Some(line.clone()),
            _ => None,
        });
        lines.extend(logged);
    }
    lines
}

#[test]
fn a_flood_of_unusable_offers_acks_and_naks_is_a_line_for_each_kind_of_reason() {
    const FLOOD: u32 = 20_000;
    let mut talk = Talk::new(false);
    talk.start(None);
    let good = talk.answer(Kind::Offer, GOOD, MINE, 600);
    let offer = |number: u32| {
        let mut offer = good.clone();
        let mut set = |code: u8, value: &[u8]| offer.options.insert(code, value.to_vec());
        set(option::SERVER, &server(number).octets());
        match number % 3 {
            0 => set(option::MASK, &(number | 1).to_be_bytes()),
            1 => set(option::SERVER, &(0xf000_0000 | number).to_be_bytes()),
            _ => offer.options.remove(&option::MASK),
        };
        offer
    };
    assert_eq!(
        lines(&mut talk, (0..FLOOD).map(offer)),
        [
            "not usable: OFFER from 10.66.0.1: invalid subnet mask 0.0.0.1",
            "not usable: OFFER from 240.0.0.1: invalid server identifier 240.0.0.1",
            "not usable: OFFER from 10.66.0.3: no subnet mask (option 1)",
        ]
    );
    assert_eq!(talk.client.counts().unusable, FLOOD);
    // The report does not change with every packet.
    let why = talk.client.counts().why_unusable.as_deref();
    assert_eq!(why, Some("OFFER from 10.66.0.3: no subnet mask (option 1)"));
    talk.hear(Kind::Offer, GOOD, MINE, 600);
    let ack = |number| {
        let mut ack = good.clone();
        ack.kind = if number % 2 == 0 {
            Kind::Ack
        } else {
            Kind::Nak
        };
        let from = server(number).octets().to_vec();
        ack.options.insert(option::SERVER, from);
        let text = format!("number {number}").into_bytes();
        ack.options.insert(option::MESSAGE, text);
        ack
    };
    assert_eq!(
        lines(&mut talk, (0..FLOOD).map(ack)),
        ["not usable: ACK from 10.66.0.1: the request went to another server"]
    );
    let hardware = |number: u32| {
        let mut other = good.clone();
        (other.htype, other.hlen) = (number as u8, (number >> 8) as u8 | 1);
        other
    };
    assert_eq!(lines(&mut talk, (0..FLOOD).map(hardware)).len(), 1);
    assert_eq!(talk.client.counts().unusable, 3 * FLOOD);
    talk.hear(Kind::Ack, GOOD, MINE, 600);
    assert_eq!(talk.client.lease().unwrap().address, MINE);
    // These warnings do not silence the lines about the lease.
    let taken = Arp::announcement(HardwareType::InfiniBand, &[0xee; 20], MINE);
    let actions = talk.client.arp(talk.now_ns, &taken);
    assert!(talk.note(actions).sent().contains("declined"));
}

#[test]
fn leases_of_seconds_do_not_loosen_the_brake_more_than_once_a_minute() {
    let mut talk = Talk::bound(false, 10);
    let end = talk.now_ns + 600 * S;
    let mut logged = 0;
    while talk.now_ns < end {
        talk.wake();
        if talk.client.state() == State::Renewing {
            let flood: Vec<Message> = (0..20)
                .map(|number| talk.answer(Kind::Ack, server(number), OTHER, number))
                .collect();
            logged += lines(&mut talk, flood.into_iter()).len();
        }
        let kind = match talk.client.state() {
            State::Selecting => Kind::Offer,
            _ => Kind::Ack,
        };
        talk.hear(kind, GOOD, MINE, 10);
    }
    // A lease time of 0 and another server: at most two lines a minute.
    assert!((10..=20).contains(&logged), "{logged}");
}

#[test]
fn a_renewal_is_granted_by_the_server_of_the_lease_alone() {
    let mut talk = Talk::bound(true, 600);
    talk.wake();
    assert_eq!(talk.client.state(), State::Renewing);
    let mut rogue = talk.answer(Kind::Ack, EVIL, MINE, 600);
    rogue.options.insert(option::MASK, vec![255, 0, 0, 0]);
    assert_eq!(
        talk.hear_this(&rogue).sent(),
        "\"not usable: ACK from 10.0.0.2: the request went to another server\""
    );
    let lease = talk.client.lease().unwrap();
    assert_eq!((lease.server, lease.prefix), (GOOD, 24));
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 600).sent(), "bound");
}

#[test]
fn an_answer_for_other_hardware_is_not_taken() {
    for (htype, hlen) in [(255, 0), (1, 0), (32, 255), (32, 6), (6, 255)] {
        let mut talk = Talk::new(false);
        talk.start(None);
        let mut offer = talk.answer(Kind::Offer, GOOD, MINE, 600);
        (offer.htype, offer.hlen) = (htype, hlen);
        let what = format!(
            "\"not usable: OFFER from 10.0.0.1: hardware type {htype} with an address of {hlen} bytes, expected 32 with 0\""
        );
        assert_eq!(talk.hear_this(&offer).sent(), what);
    }
    // Over Ethernet the address is compared too.
    let mut talk = Talk::new(false);
    let hardware = [2, 0, 0, 0, 0, 7];
    talk.client.config.identity =
        Identity::new(HardwareType::Ethernet, &hardware, &RequestedId::Firmware).unwrap();
    talk.start(None);
    let other = "\"not usable: OFFER from 10.0.0.1: hardware type 1 with an address of 6 bytes, expected 1 with 6\"";
    for (last, sent) in [(8, other), (7, "REQUEST")] {
        let mut offer = talk.answer(Kind::Offer, GOOD, MINE, 600);
        (offer.htype, offer.hlen) = (1, 6);
        offer.chaddr[..6].copy_from_slice(&[2, 0, 0, 0, 0, last]);
        assert_eq!(talk.hear_this(&offer).sent(), sent);
    }
}

#[test]
fn servers_that_failed_keep_no_place_from_the_one_that_delivers() {
    let mut talk = Talk::new(false);
    talk.start(None);
    // Eight servers that offer and do not answer.
    for number in 0..8 {
        talk.hear(Kind::Offer, server(number), OTHER, 600);
    }
    while talk.client.state() == State::Requesting {
        talk.wake();
    }
    assert_eq!(talk.client.shunned.len(), 8);
    // A ninth server takes the first place; then all of them come before the good server.
    for number in (8..9).chain(0..8) {
        talk.hear(Kind::Offer, server(number), OTHER, 600);
    }
    assert_eq!(talk.client.offers.len(), OFFERS);
    talk.hear(Kind::Offer, GOOD, MINE, 600);
    let began = talk.now_ns;
    while talk.sent.as_ref().unwrap().address(option::SERVER) != Some(GOOD) {
        talk.wake();
        assert_eq!(talk.client.state(), State::Requesting);
    }
    assert!(talk.now_ns - began < 5 * S, "{}", talk.now_ns - began);
}

#[test]
fn the_one_that_delivers_is_found_among_a_thousand_that_do_not() {
    const MANY: u32 = 1000;
    let mut talk = Talk::new(false);
    talk.start(None);
    let began = talk.now_ns;
    while talk.client.lease().is_none() {
        if talk.client.state() == State::Selecting {
            for number in 0..MANY {
                talk.hear(Kind::Offer, server(number), OTHER, 600);
            }
            // The last of the thousand is always chosen.
            talk.hear(Kind::Offer, GOOD, MINE, 600);
        }
        let requested = talk.sent.as_ref().unwrap().address(option::SERVER);
        if requested == Some(GOOD) {
            talk.hear(Kind::Ack, GOOD, MINE, 600);
        } else {
            talk.wake();
        }
    }
    assert_eq!(talk.client.lease().unwrap().server, GOOD);
    // Trying every server would take 3 s each.
    let took = (talk.now_ns - began) / S;
    assert!(took < u64::from(MANY) * 4, "{took} s");
}

#[test]
fn another_host_with_the_address_is_named_and_answered_once_in_ten_seconds() {
    for keep in [false, true] {
        let mut talk = Talk::bound(keep, 6000);
        let other = [0xee; 20];
        let uses = Arp::announcement(HardwareType::InfiniBand, &other, MINE);
        let actions = talk.client.arp(talk.now_ns, &uses);
        let name = "ee:".repeat(19) + "ee";
        assert_eq!(
            talk.note(actions).sent(),
            format!(
                "\"{name} also uses 10.0.0.5: the address is kept and announced again\", defend 10.0.0.5"
            )
        );
        let mut defences = 0;
        for step in 0..20_000_u64 {
            // Each packet has a new hardware address.
            let sender: Vec<u8> = (0..20).map(|byte| (step >> (byte % 8)) as u8 | 1).collect();
            let uses = Arp::announcement(HardwareType::InfiniBand, &sender, MINE);
            let actions = talk.client.arp(talk.now_ns + step * S / 200, &uses);
            match talk.note(actions).sent().as_str() {
                "" => {}
                "defend 10.0.0.5" => defences += 1,
                other => panic!("{other}"),
            }
        }
        assert_eq!(defences, 9);
        assert_eq!(talk.client.state(), State::Bound);
        assert_eq!(talk.client.lease().unwrap().address, MINE);
        // A probe, a request and our own packet are not conflicts.
        let later = talk.now_ns + 200 * S;
        for arp in [
            Arp::probe(HardwareType::InfiniBand, &other, MINE),
            Arp::announcement(HardwareType::InfiniBand, &other, OTHER),
            Arp::announcement(
                HardwareType::InfiniBand,
                &(0..20).collect::<Vec<u8>>(),
                MINE,
            ),
        ] {
            assert_eq!(talk.client.arp(later, &arp), []);
        }
    }
}
