// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lease that another process obtained, and a link that was down for a while.

use super::*;

const ENDED: &str =
    "\"the lease of 10.0.0.5/24 has ended: a new lease is requested\", lost 10.0.0.5, DISCOVER";

/// A lease of 600 s, given to a client 601 s after the request.
fn stale(keep: bool) -> Talk {
    let lease = Talk::bound(keep, 600).client.lease().unwrap().clone();
    let mut talk = Talk::new(keep);
    talk.now_ns = lease.requested_ns + 601 * S;
    let actions = talk.client.resume(talk.now_ns, lease, false);
    assert_eq!(talk.note(actions).sent(), "REQUEST");
    let request = talk.sent.as_ref().unwrap();
    assert_eq!(request.address(option::REQUESTED), Some(MINE));
    assert_eq!(request.address(option::SERVER), None);
    assert!(request.ciaddr.is_unspecified());
    talk
}

#[test]
fn a_lease_that_ended_on_file_is_requested_before_it_is_given_up() {
    let mut talk = stale(false);
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 600).sent(), "bound");
    assert_eq!(talk.client.state(), State::Bound);
    let began = talk.now_ns;
    let mut talk = stale(false);
    assert_eq!(talk.wake().sent(), "REQUEST");
    assert_eq!(talk.wake().sent(), ENDED);
    assert!(talk.now_ns - began >= 2 * S);
    let mut talk = stale(false);
    assert_eq!(
        talk.hear(Kind::Nak, GOOD, MINE, 0).sent(),
        "\"server 10.0.0.1 refuses (NAK): a new lease is requested\", lost 10.0.0.5, DISCOVER"
    );
    // Under a root file system the address is kept, whatever the servers answer.
    for refused in [false, true] {
        let mut talk = stale(true);
        if refused {
            talk.hear(Kind::Nak, GOOD, MINE, 0);
        } else {
            talk.wake();
            talk.wake();
        }
        assert!(
            talk.sent().contains("the address is kept"),
            "{}",
            talk.sent()
        );
        assert_eq!(talk.client.lease().unwrap().address, MINE);
    }
}

#[test]
fn a_lease_on_a_link_that_came_back_is_verified_and_holds_where_no_server_answers() {
    let mut talk = Talk::bound(false, 600);
    let due = talk.client.due();
    let actions = talk.client.verify(talk.now_ns);
    assert_eq!(talk.note(actions).sent(), "REQUEST");
    assert_eq!(talk.client.state(), State::Rebooting);
    assert_eq!(talk.wake().sent(), "REQUEST");
    // The silence changes nothing: the lease is renewed at its time, and not before.
    assert_eq!(talk.wake().sent(), "");
    assert_eq!(talk.client.state(), State::Bound);
    assert!(talk.now_ns < due.unwrap());
    talk.now_ns = talk.client.due().unwrap();
    let actions = talk.client.wake(talk.now_ns);
    assert_eq!(talk.note(actions).sent(), "REQUEST to 10.0.0.1");
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 600).sent(), "bound");
    let actions = talk.client.verify(talk.now_ns);
    talk.note(actions);
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 600).sent(), "bound");
    // Without a lease there is nothing to verify.
    assert_eq!(Talk::new(false).client.verify(S), []);
}

#[test]
fn a_lease_without_an_end_stays_bound_where_no_server_answers() {
    let mut talk = Talk::bound(false, u32::MAX);
    let actions = talk.client.verify(talk.now_ns);
    assert_eq!(talk.note(actions).sent(), "REQUEST");
    assert_eq!(talk.wake().sent(), "REQUEST");
    assert_eq!(talk.wake().sent(), "");
    assert_eq!(talk.client.state(), State::Bound);
    assert_eq!(talk.client.due(), None);
}

#[test]
fn carrier_makes_the_waits_begin_anew_and_never_a_storm() {
    // No server answered for a while.
    let mut talk = Talk::new(false).after_boot();
    talk.start(None);
    for _ in 0..8 {
        talk.wake();
    }
    talk.now_ns += S;
    assert!(talk.client.due().unwrap() > talk.now_ns + 60 * S);
    talk.client.hurry(talk.now_ns);
    assert!(talk.client.due().unwrap() < talk.now_ns + 10 * S);
    assert_eq!(talk.wake().sent(), "DISCOVER");
    assert!(talk.client.due().unwrap() <= talk.now_ns + 2 * S);
    // A link that flaps continuously.
    let mut sent = 0;
    let until = talk.now_ns + 60 * S;
    while talk.now_ns < until {
        talk.now_ns += S / 20;
        talk.client.hurry(talk.now_ns);
        let actions = talk.client.wake(talk.now_ns);
        sent += actions.len();
    }
    assert!(sent <= 120, "{sent} messages in a minute");
    // Renewing while the server is silent.
    let mut talk = Talk::bound(true, 6000);
    talk.wake();
    assert_eq!(talk.client.state(), State::Renewing);
    talk.now_ns += 30 * S;
    let began = talk.now_ns;
    talk.client.hurry(talk.now_ns);
    assert_eq!(talk.wake().sent(), "REQUEST to 10.0.0.1");
    assert!(talk.now_ns < began + 10 * S);
    // A lease that is valid is left alone.
    assert_eq!(talk.hear(Kind::Ack, GOOD, MINE, 6000).sent(), "bound");
    let due = talk.client.due();
    talk.client.hurry(talk.now_ns);
    assert_eq!(talk.client.due(), due);
}

#[test]
fn nodes_whose_carrier_returns_at_once_ask_within_ten_seconds_and_not_together() {
    let dues = (0..1000).map(|seed| {
        let mut client = Client::new(Talk::new(false).after_boot().client.config, seed);
        client.start(0, None);
        client.due = Some(64 * S);
        client.hurry(9 * S);
        client.due.unwrap() / S
    });
    let dues: Vec<u64> = dues.collect();
    for second in 9..19 {
        let together = dues.iter().filter(|due| **due == second).count();
        assert!((70..130).contains(&together), "{together} in {second}");
    }
}
