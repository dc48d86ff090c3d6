// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leases that servers withdraw, forget or never deliver.

use super::*;

#[test]
fn an_address_in_the_place_of_a_withdrawn_one_is_taken_unless_a_root_hangs_on_it() {
    let mut talk = Talk::bound(false, 1000);
    talk.wake();
    let reply = talk.renumbering();
    talk.hear(&reply, GOOD);
    assert_eq!(talk.actions, [Action::Lost(ip(MINE)), Action::Bound]);
    assert_eq!(talk.client.lease().unwrap().address, ip(OTHER));
    let mut kept = Talk::bound(true, 1000);
    kept.wake();
    let reply = kept.renumbering();
    kept.hear(&reply, GOOD);
    let line = "server fe80::1: the address is no longer valid: the address is kept, because the root file system depends on it";
    assert_eq!(kept.actions[0], Action::Warn(line.to_owned()));
    assert_eq!(kept.last(), (Kind::Solicit, None, Some(MINE)));
    assert_eq!(kept.client.lease().unwrap().address, ip(MINE));
}

#[test]
fn the_address_of_a_root_is_renewed_beside_one_that_is_withdrawn() {
    for other in [None, Some((OTHER, 0))] {
        let mut talk = Talk::bound(true, 1000);
        talk.wake();
        let reply = talk.granting(other.into_iter().chain([(MINE, 1000)]));
        talk.hear(&reply, GOOD);
        assert_eq!(talk.actions, [Action::Bound]);
        assert_eq!(talk.client.lease().unwrap().address, ip(MINE));
    }
}

#[test]
fn a_lease_that_its_server_forgot_is_rebound_and_ends() {
    let mut talk = Talk::bound(false, 100);
    let began = talk.now_ns;
    talk.wake();
    let refusal = talk.refusal(GOOD, 3);
    talk.hear(&refusal, GOOD);
    while talk.state() == State::Requesting {
        talk.wake();
    }
    assert_eq!(talk.last(), (Kind::Rebind, None, Some(MINE)));
    // The next server has no record either, and the lease ends during that exchange.
    talk.now_ns = began + 98 * S;
    let refusal = talk.refusal(EVIL, 3);
    talk.hear(&refusal, EVIL);
    while talk.state() == State::Requesting {
        talk.wake();
    }
    let line = "the lease of fd00::5/128 has ended: a new lease is requested".to_owned();
    assert_eq!(
        talk.actions[..2],
        [Action::Warn(line), Action::Lost(ip(MINE))]
    );
    assert_eq!((talk.now_ns - began, talk.client.lease()), (100 * S, None));
}

#[test]
fn a_kept_address_is_not_changed_by_a_rapid_commit() {
    let mut kept = Talk::bound(true, 1000);
    kept.wake();
    kept.grant(GOOD, MINE, 0);
    assert_eq!(kept.last(), (Kind::Solicit, None, Some(MINE)));
    let mut reply = kept.answer(Kind::Reply, EVIL, MINE, 60);
    reply.options.push(option::RAPID_COMMIT, []);
    kept.hear(&reply, EVIL);
    assert_eq!(
        (kept.state(), kept.client.counts().replies),
        (State::Soliciting, 1)
    );
}

#[test]
fn a_server_that_offers_and_refuses_a_kept_address_causes_no_storm() {
    let mut talk = Talk::bound(true, 100).after_boot();
    while talk.state() != State::Soliciting {
        talk.wake();
    }
    let mut lines = Vec::new();
    let mut sent = 0;
    let began = talk.now_ns;
    while talk.now_ns - began < 3600 * S {
        if talk.state() == State::Soliciting {
            talk.offer(GOOD, MINE, AT_ONCE);
        }
        if talk.state() == State::Requesting {
            let refusal = talk.refusal(GOOD, 4);
            talk.hear(&refusal, GOOD);
            lines.append(&mut talk.actions);
        }
        talk.wake();
        sent += 1;
    }
    let line = "server fe80::1 refuses: NotOnLink: no".to_owned();
    assert_eq!(lines, [Action::Warn(line)]);
    assert!((10..70).contains(&sent), "{sent}");
    assert_eq!(talk.client.lease().unwrap().address, ip(MINE));
}

#[test]
fn a_flood_of_nonsense_with_other_bytes_each_time_is_one_line() {
    let mut talk = Talk::new(false);
    talk.start();
    let mut lines = Vec::new();
    for number in 0..20_000_u16 {
        let last = (number % 255) as u8;
        let mut message = talk.answer(Kind::Advertise, last, MINE, 60);
        message.options.remove(option::IA_NA);
        talk.hear(&message, last);
        lines.append(&mut talk.actions);
        // A refusal with each named code, and with many unnamed codes.
        let mut refusal = talk.answer(Kind::Advertise, last, MINE, 60);
        let text = format!("number {number}");
        let value = [&(number % 1000).to_be_bytes()[..], text.as_bytes()].concat();
        refusal.options.push(option::STATUS_CODE, value);
        if number % 1000 > 0 {
            talk.hear(&refusal, last);
            lines.append(&mut talk.actions);
        }
    }
    let lines: Vec<String> = lines.into_iter().map(|line| format!("{line:?}")).collect();
    assert_eq!(lines.len(), 7, "{lines:#?}");
    let first =
        "Warn(\"not usable: ADVERTISE from fe80::: no addresses (IA_NA) for our IAID 65535\")";
    assert_eq!(lines[0], first);
    assert_eq!(
        lines[6],
        "Warn(\"server fe80::6 refuses: status 6: number 6\")"
    );
    assert_eq!(talk.client.counts().unusable, 20_000);
}

#[test]
fn a_lease_of_another_server_is_no_longer_than_the_one_under_the_root_was() {
    let forever = u32::MAX;
    for (keep, seconds, granted) in [
        (true, forever, 600),
        (true, 60, 60),
        (false, forever, forever),
    ] {
        let mut talk = Talk::bound(keep, 600);
        while talk.state() != State::Rebinding {
            talk.wake();
        }
        talk.grant(EVIL, MINE, seconds);
        let lease = talk.client.lease().unwrap();
        assert_eq!((talk.state(), lease.seconds), (State::Bound, granted));
        assert!(lease.preferred_s <= granted && lease.rebind_s <= granted);
        assert_eq!(talk.client.due().is_some(), granted != forever);
    }
    // The same server may make the lease longer.
    let mut talk = Talk::bound(true, 600);
    talk.wake();
    talk.grant(GOOD, MINE, forever);
    assert_eq!(talk.client.lease().unwrap().seconds, forever);
}

#[test]
fn the_times_of_a_lease_count_from_the_last_question() {
    let mut talk = Talk::bound(false, 100);
    talk.wake();
    while talk.state() != State::Rebinding {
        talk.wake();
    }
    let began = talk.now_ns;
    talk.wake();
    assert_eq!(talk.state(), State::Rebinding);
    assert!(talk.now_ns > began);
    talk.grant(EVIL, MINE, 100);
    assert_eq!(talk.client.lease().unwrap().requested_ns, talk.now_ns);
}
