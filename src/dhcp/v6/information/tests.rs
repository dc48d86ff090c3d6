// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests and answers on a simulated clock.

use super::*;
use crate::dhcp::v6::packet::Malformed;

const OWN: [u8; 4] = [0, 3, 0, 32];
const SERVER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

fn asker() -> Asker {
    Asker::new(OWN.to_vec(), 7, 100 * SECOND)
}

/// Advances the clock to the next due time.
fn wake(asker: &mut Asker) -> (u64, Vec<Action>) {
    let now_ns = asker.due().unwrap();
    (now_ns, asker.wake(now_ns))
}

fn heard(message: &Message) -> Answer {
    let context = Context {
        from: SERVER,
        iaid: None,
        requested: None,
    };
    Answer::of(message, &context)
}

/// The message in the actions.
fn sent(actions: &[Action]) -> Message {
    let sent = actions.iter().find_map(|action| match action {
        Action::Send(message) => Some(message.clone()),
        _ => None,
    });
    let message = sent.unwrap();
    assert_eq!(Message::decode(&message.encode()).as_ref(), Ok(&message));
    message
}

fn reply(request: &Message) -> Message {
    let mut message = Message::new(Kind::Reply, request.transaction);
    message.options.push(option::CLIENT_ID, OWN);
    message.options.push(option::SERVER_ID, [0, 3, 0, 1]);
    let server: Ipv6Addr = "fd00::53".parse().unwrap();
    let host = server.octets();
    let link = SERVER.octets();
    message
        .options
        .push(option::NAME_SERVERS, [host, link].concat());
    message
        .options
        .push(option::DOMAIN_LIST, *b"\x01a\x07example\x00");
    message
}

fn with(request: &Message, code: u16, value: impl Into<Vec<u8>>) -> Message {
    let mut message = reply(request);
    message.options.remove(code);
    message.options.push(code, value);
    message
}

fn without(request: &Message, code: u16) -> Message {
    let mut message = reply(request);
    message.options.remove(code);
    message
}

#[test]
fn the_request_has_the_identity_and_the_options_and_no_address() {
    let mut asker = asker();
    let first = asker.due().unwrap();
    assert!((100 * SECOND..101 * SECOND).contains(&first), "{first}");
    assert_eq!(asker.wake(first - 1), []);
    let (_, actions) = wake(&mut asker);
    let message = sent(&actions);
    assert_eq!(message.kind, Kind::InformationRequest);
    let options: Vec<u16> = message.options.codes().collect();
    assert_eq!(options, [1, 8, 6]);
    assert_eq!(message.options.first(option::CLIENT_ID), Some(&OWN[..]));
    let requested = [0, 23, 0, 24, 0, 32, 0, 83];
    assert_eq!(message.options.first(option::REQUEST), Some(&requested[..]));
    let elapsed = |message: &Message| {
        message
            .options
            .first(option::ELAPSED_TIME)
            .map(<[u8]>::to_vec)
    };
    assert_eq!(elapsed(&message), Some(vec![0, 0]));
    // The same transaction, and the time since the first message.
    let (now_ns, actions) = wake(&mut asker);
    let again = sent(&actions);
    assert_eq!(again.transaction, message.transaction);
    let hundredths = u16::try_from((now_ns - first) / 10_000_000).unwrap();
    assert_eq!(elapsed(&again), Some(hundredths.to_be_bytes().to_vec()));
}

#[test]
fn an_answer_ends_it() {
    let mut asker = asker();
    let request = sent(&wake(&mut asker).1);
    let actions = asker.received(&heard(&reply(&request)));
    assert_eq!(
        actions,
        [
            Action::Info("name servers fd00::53, search a.example from fe80::1".to_owned()),
            Action::Warn("not used: option 23: fe80::1".to_owned()),
            Action::Bound,
        ]
    );
    let information = asker.answer().unwrap().clone();
    let variables: Vec<_> = information.variables();
    assert_eq!(
        variables,
        [
            ("new_dhcp6_name_servers", b"fd00::53".to_vec()),
            ("new_dhcp6_domain_search", b"a.example".to_vec()),
        ]
    );
    assert_eq!((asker.due(), asker.is_hopeful()), (None, false));
    // The first answer counts.
    let other = with(&request, option::NAME_SERVERS, [0xfd; 16]);
    assert_eq!(asker.received(&heard(&other)), []);
    assert_eq!(asker.answer(), Some(&information));
    assert_eq!((asker.counts().replies, asker.counts().unsolicited), (1, 1));
}

#[test]
fn an_answer_without_name_servers_is_one() {
    let mut asker = asker();
    let request = sent(&wake(&mut asker).1);
    let mut empty = without(&request, option::NAME_SERVERS);
    empty.options.remove(option::DOMAIN_LIST);
    let actions = asker.received(&heard(&empty));
    let line = "no name servers from fe80::1".to_owned();
    assert_eq!(actions, [Action::Info(line), Action::Bound]);
    assert_eq!(asker.answer().unwrap().variables(), []);
}

#[test]
fn an_answer_to_another_request_is_not_used() {
    let mut asker = asker();
    let mut early = Message::new(Kind::Reply, asker.transaction);
    early.options = reply(&early).options;
    assert_eq!(asker.received(&heard(&early)), []);
    let request = sent(&wake(&mut asker).1);
    let mut other = reply(&request);
    other.transaction ^= 1;
    let mut advertise = reply(&request);
    advertise.kind = Kind::Advertise;
    for message in [
        other,
        advertise,
        with(&request, option::CLIENT_ID, [0, 3, 0, 33]),
        without(&request, option::CLIENT_ID),
        without(&request, option::SERVER_ID),
        with(&request, option::SERVER_ID, [1; 2]),
        with(&request, option::STATUS_CODE, [0]),
        with(&request, option::STATUS_CODE, [0, 1, b'n', b'\n']),
    ] {
        assert_eq!(asker.received(&heard(&message)), [], "{message:?}");
    }
    assert_eq!(asker.answer(), None);
    let counts = asker.counts().clone();
    assert_eq!((counts.unsolicited, counts.foreign), (2, 2));
    assert_eq!((counts.unusable, counts.refusals), (4, 1));
    let malformed = Malformed::Length(option::STATUS_CODE, 1);
    assert_eq!(
        counts.why_unusable,
        Some(format!("REPLY from fe80::1: {malformed}"))
    );
    // The right answer is still accepted.
    assert_eq!(
        asker.received(&heard(&reply(&request))).last(),
        Some(&Action::Bound)
    );
}

#[test]
fn values_that_do_not_fit_are_left_out_and_named() {
    let mut asker = asker();
    let request = sent(&wake(&mut asker).1);
    let mut bad = with(&request, option::NAME_SERVERS, [0xfd; 17]);
    bad.options.remove(option::DOMAIN_LIST);
    bad.options.push(option::DOMAIN_LIST, *b"\x03$\x28)\x00");
    asker.received(&heard(&bad));
    let information = asker.answer().unwrap();
    assert_eq!(information.variables(), []);
    assert_eq!(
        information.left_out,
        ["option 23: 17 bytes", "option 24: not a valid domain list"]
    );
}

#[test]
fn silence_is_logged_once_and_slows_the_repetition_down() {
    let mut asker = asker();
    let mut last = 0;
    let mut logged = Vec::new();
    for number in 1..=8 {
        assert_eq!(asker.is_hopeful(), number <= 6, "{number}");
        let (now_ns, actions) = wake(&mut asker);
        logged.extend(actions.into_iter().filter_map(|action| match action {
            Action::Warn(line) => Some((number, line)),
            _ => None,
        }));
        let longest = LONGEST + LONGEST / 10;
        assert!(last == 0 || now_ns - last <= longest, "{number}");
        last = now_ns;
    }
    let line = "no name servers, although a router advertises DHCPv6: no server answers";
    assert_eq!(logged, [(6, line.to_owned())]);
    assert_eq!((asker.stage(), asker.give_up()), (Stage::Silent, None));
    // A late answer counts.
    let request = sent(&wake(&mut asker).1);
    asker.received(&heard(&reply(&request)));
    assert_eq!(
        asker.stage(),
        Stage::Answered(asker.answer().unwrap().clone())
    );
}

#[test]
fn an_end_without_an_answer_is_logged_once_with_the_counts() {
    let line = |why: &str| {
        let what = "no name servers, although a router advertises DHCPv6";
        Some(format!("{what}: {why}"))
    };
    let mut unsent = asker();
    assert_eq!(unsent.stage(), Stage::Open);
    assert_eq!(unsent.give_up(), line("no request was sent"));
    assert_eq!((unsent.stage(), unsent.give_up()), (Stage::Silent, None));
    assert!(!unsent.is_hopeful());

    let mut request = asker();
    wake(&mut request);
    request.sent(None);
    assert_eq!(request.give_up(), line("no server answers"));

    let mut deaf = asker();
    wake(&mut deaf);
    deaf.lost(1);
    assert_eq!(deaf.give_up(), line(LOST));

    let mut broken = asker();
    wake(&mut broken);
    let why = "cannot send: ENETUNREACH";
    broken.sent(Some(why));
    assert_eq!(broken.give_up(), line(why));

    let mut answered = asker();
    let request = sent(&wake(&mut answered).1);
    answered.received(&heard(&reply(&request)));
    assert_eq!(answered.give_up(), None);
}

#[test]
fn a_server_that_refuses_may_slow_the_repetition_down() {
    // The longest wait between two messages after that.
    let longest = |value: &[u8]| {
        let mut asker = asker();
        let request = sent(&wake(&mut asker).1);
        let mut refusal = with(&request, option::STATUS_CODE, [0, 1]);
        refusal.options.push(option::INF_MAX_RT, value);
        asker.received(&heard(&refusal));
        let times: Vec<u64> = (0..12).map(|_| wake(&mut asker).0).collect();
        times.windows(2).map(|two| two[1] - two[0]).max().unwrap()
    };
    let around = |seconds: u64| (seconds * SECOND * 9 / 10)..(seconds * SECOND * 11 / 10);
    assert!(around(60).contains(&longest(&60_u32.to_be_bytes())));
    assert!(around(300).contains(&longest(&300_u32.to_be_bytes())));
    for ignored in [
        &59_u32.to_be_bytes()[..],
        &86401_u32.to_be_bytes(),
        &[0, 0, 60],
    ] {
        assert!(around(16).contains(&longest(ignored)), "{ignored:?}");
    }
}

#[test]
fn a_refusal_is_the_logged_reason() {
    let mut asker = asker();
    let request = sent(&wake(&mut asker).1);
    let refusal = with(&request, option::STATUS_CODE, *b"\x00\x01no\x1b[2J");
    asker.received(&heard(&refusal));
    asker.sent(Some("cannot send: ENETDOWN"));
    let line = "no name servers, although a router advertises DHCPv6: server fe80::1 refuses: UnspecFail: no\\x1b[2J";
    assert_eq!(asker.give_up(), Some(line.to_owned()));
}
