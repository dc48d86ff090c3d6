// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lease that another process obtained, and a link that was down for a while.

use super::*;

fn is_lost(talk: &Talk) -> bool {
    talk.actions.contains(&Action::Lost(ip(MINE)))
}

/// A client that continues with an ended lease.
fn stale(keep: bool) -> Talk {
    let lease = Talk::bound(keep, 1000).client.lease().unwrap().clone();
    let mut talk = Talk::new(keep);
    talk.now_ns = lease.requested_ns + 1001 * S;
    let actions = talk.client.resume(talk.now_ns, lease);
    talk.note(actions);
    assert_eq!(talk.last(), (Kind::Rebind, None, Some(MINE)));
    assert!(!is_lost(&talk));
    talk
}

#[test]
fn a_lease_that_ended_on_file_is_requested_before_it_is_given_up() {
    let mut talk = stale(false);
    talk.grant(GOOD, MINE, 1000);
    assert_eq!(talk.state(), State::Bound);
    let mut talk = stale(false);
    let began = talk.now_ns;
    while !is_lost(&talk) {
        assert_eq!(talk.client.lease().unwrap().address, ip(MINE));
        talk.wake();
    }
    assert!((CHANCE..CHANCE + 2 * S).contains(&(talk.now_ns - began)));
    assert_eq!(talk.client.lease(), None);
    // Under a root file system the address is kept.
    let mut talk = stale(true);
    while talk.state() == State::Rebinding {
        talk.wake();
    }
    assert_eq!(talk.state(), State::Soliciting);
    assert_eq!(talk.client.lease().unwrap().address, ip(MINE));
}

#[test]
fn all_servers_of_a_link_that_came_back_are_asked_about_the_lease() {
    for seconds in [1000, u32::MAX] {
        let mut talk = Talk::bound(false, seconds);
        let actions = talk.client.verify(talk.now_ns);
        talk.note(actions);
        assert_eq!(talk.last(), (Kind::Rebind, None, Some(MINE)));
        talk.wake();
        assert_eq!(talk.last(), (Kind::Rebind, None, Some(MINE)));
        talk.grant(EVIL, MINE, seconds);
        assert_eq!(talk.state(), State::Bound);
        let server = talk.client.lease().map(|lease| lease.server);
        assert_eq!(server, Some(link(EVIL)));
    }
}

#[test]
fn carrier_makes_the_waits_begin_anew_and_never_a_storm() {
    let mut talk = Talk::bound(true, 10_000).after_boot();
    talk.wake();
    for _ in 0..3 {
        talk.wake();
    }
    assert_eq!(talk.state(), State::Renewing);
    assert!(talk.client.due().unwrap() > talk.now_ns + 60 * S);
    talk.now_ns += S;
    // Nodes whose carrier returns at once do not ask together.
    let began = talk.now_ns;
    assert_eq!(talk.client.hurry(began), []);
    talk.wake();
    assert!(talk.now_ns < began + 10 * S);
    assert_eq!(talk.last().0, Kind::Renew);
    assert!(talk.client.due().unwrap() < talk.now_ns + 12 * S);
    talk.grant(GOOD, MINE, 10_000);
    assert_eq!(talk.client.hurry(talk.now_ns), []);
    // A link that flaps continuously, and no server answers.
    let mut talk = Talk::new(false);
    talk.start();
    let mut sent = 0;
    let until = talk.now_ns + 60 * S;
    while talk.now_ns < until {
        talk.now_ns += S / 20;
        sent += talk.client.hurry(talk.now_ns).len();
        sent += talk.client.wake(talk.now_ns).len();
    }
    assert!(sent <= 120, "{sent} messages in a minute");
}
