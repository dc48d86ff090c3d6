// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams as opensm 3.3.23 sent them to softib under Linux 6.12.107; the parsing of truncated,
//! flipped and forged datagrams; the interview.

use proptest::prelude::*;

use super::*;
use crate::rdma::sa::{Answer, Heard, Interview, Next, QUICK};

/// ClassPortInfo.
const CLASS_PORT_INFO: &str = "0103028100000000000000124864ce0d0001000000000000000000000000000000000000000000000000000000\
    0000000000000000000000010226020016bd100000000000000000000000000000000000000000000000000000\
    000180010000000000000000000000000000000000000000000000000000000000008001000000000000000000\
    000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    00000000000000000000000000000000000000000000000000000000000000";
/// MCMemberRecord of the broadcast group of 0xffff: one record, 2048 bytes, 10 Gb/sec.
const GROUP: &str = "0103029200000000000000124864ce0e003800000000000001010700000000010000004c000000000000000000\
    0700000000000000000001ff12401bffff000000000000ffffffff000000000000000000000000000000000000\
    0b1bc0008400ffff8392000000002000000000000000";
/// PortInfoRecord of LID 2, a port of 4096 bytes.
const PORT_INFO: &str = "0103029200000000000000124864ce0f001200000000000001010700000000010000005c000000000000000000\
    0900000000000000000001000201000000000000000000fe800000000000000002000102010840000000000113\
    1302745200475010000000050010000000000000011208000000000000000000000000000000";
/// The request for GROUP where partitions.conf has no ipoib flag: a table without a record.
const NO_GROUP: &str = "010302920000000000000022e4ee210e0038000000000000010107000000000100000014000000000000000000\
    0000000000000000000001";

const MGID: &str = "ff12:401b:ffff::ffff:ffff";

fn mgid() -> Ipv6Addr {
    MGID.parse().unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// An answer to `question` with these records, `size` bytes apart.
fn answer(question: Question, tid: u32, status: u16, size: usize, records: &[u8]) -> Vec<u8> {
    let mut mad = question.bytes(tid)[..at::DATA].to_vec();
    mad[3] |= RESPONSE;
    put(&mut mad, at::STATUS, &status.to_be_bytes());
    // The number of the agent, which the kernel writes.
    put(&mut mad, 8, &[0xde, 0xad, 0xbe, 0xef]);
    let units = u16::try_from(size / 8).unwrap();
    put(&mut mad, at::RECORD_SIZE, &units.to_be_bytes());
    mad.extend(records);
    mad
}

/// MTU 2048, 10 Gb/sec, P_Key 0xffff, and padding to 56 bytes.
fn record(mgid: Ipv6Addr) -> Vec<u8> {
    let mut record = vec![0; 56];
    put(&mut record, 0, &mgid.octets());
    put(&mut record, 32, &0x0b1b_u32.to_be_bytes());
    put(&mut record, 36, &[0xc0, 0x00, 0x84, 0x00, 0xff, 0xff, 0x83]);
    put(&mut record, 44, &[0x10, 0, 0, 0, 0x21]);
    record
}

fn hear(interview: &mut Interview, mad: &[u8]) -> Next {
    let awaited = interview.awaited();
    let reply = Replies::decode(&awaited, mad);
    assert!(Replies::is_sound(&awaited, &reply));
    interview.hear(Heard::Reply(reply))
}

#[test]
fn questions_are_as_the_specification_draws_them() {
    let mad = Question::ClassPortInfo.bytes(0x0102_0304);
    assert_eq!(
        mad[..24],
        [
            1, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 1, 0, 0, 0, 0, 0, 0
        ]
    );
    assert_eq!(mad[24..], [0; 232]);

    let mad = Question::Group(mgid()).bytes(1);
    assert_eq!(mad[3], 0x12);
    assert_eq!(mad[16..18], [0x00, 0x38]);
    assert_eq!(mad[48..56], [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(mad[56..72], mgid().octets());
    assert_eq!(mad[72..], [0; 184]);

    let mad = Question::PortInfo(0x0203).bytes(1);
    assert_eq!(mad[3], 0x12);
    assert_eq!(mad[16..18], [0x00, 0x12]);
    assert_eq!(mad[48..58], [0, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
    assert_eq!(mad[58..], [0; 198]);
}

#[test]
fn answers_of_opensm_are_read() {
    let (first, second, third) = (bytes(CLASS_PORT_INFO), bytes(GROUP), bytes(PORT_INFO));
    let mut alive = Interview::new(None, 2, 0x4864ce0d, QUICK);
    assert_eq!(hear(&mut alive, &first), Next::Done(Answer::Alive));
    let mut interview = Interview::new(Some(mgid()), 2, 0x4864ce0e, QUICK);
    let mut without = interview.clone();
    assert_eq!(hear(&mut interview, &second), Next::Ask);
    let group = Group {
        mgid: mgid(),
        mlid: 0xc000,
        qkey: 0x0b1b,
        pkey: 0xffff,
        mtu: Some(2048),
        megabits: Some(10_000),
        sl: 0,
        scope: 2,
        join_state: 0,
    };
    let answer = Answer::Joinable {
        group,
        port_mtu: Some(4096),
    };
    assert_eq!(hear(&mut interview, &third), Next::Done(answer));
    // From another interview: replace its TID with the TID of this one.
    let mut none = bytes(NO_GROUP);
    put(&mut none, at::TID_LOW, &0x4864ce0e_u32.to_be_bytes());
    assert_eq!(hear(&mut without, &none), Next::Done(Answer::NoGroup));
}

#[test]
fn a_table_of_groups_is_read() {
    let question = Question::Group(mgid());
    let mut records = record(mgid());
    records.extend(record("ff12:401b:ffff::1".parse().unwrap()));
    let mad = answer(question, 9, 0, 56, &records);
    let reply = question.answer(9, &mad).unwrap();
    assert_eq!(reply.status, Status::OK);
    let groups: Vec<Group> = reply.groups().collect();
    assert_eq!(
        groups[0],
        Group {
            mgid: mgid(),
            mlid: 0xc000,
            qkey: 0x0b1b,
            pkey: 0xffff,
            mtu: Some(2048),
            megabits: Some(10_000),
            sl: 1,
            scope: 2,
            join_state: 1,
        }
    );
    assert_eq!(groups.len(), 2);
    assert_eq!(groups[1].mgid.to_string(), "ff12:401b:ffff::1");
}

#[test]
fn only_the_answer_to_the_request_is_accepted() {
    let question = Question::Group(mgid());
    let good = answer(question, 9, 0, 56, &record(mgid()));
    assert!(question.answer(9, &good).is_some());
    assert!(question.answer(8, &good).is_none());
    assert!(Question::ClassPortInfo.answer(9, &good).is_none());
    // Base version, class, class version, method, TID, attribute.
    for position in [0, 1, 2, 3, 12, 13, 14, 15, 16, 17] {
        let mut bad = good.clone();
        bad[position] ^= 0x20;
        assert!(question.answer(9, &bad).is_none(), "byte {position}");
    }
    // The request itself is not an answer.
    assert!(question.answer(9, &question.bytes(9)).is_none());
}

#[test]
fn truncated_records_are_ignored() {
    let question = Question::Group(mgid());
    let whole = answer(question, 9, 0, 56, &record(mgid()));
    for length in 0..whole.len() {
        let groups = question
            .answer(9, &whole[..length])
            .map(|reply| reply.groups().count());
        let expected = (length >= 18).then_some(0);
        assert_eq!(groups, expected, "{length} bytes");
    }
    for size in [0, 8, 48] {
        let mad = answer(question, 9, 0, size, &record(mgid()));
        assert_eq!(
            question.answer(9, &mad).unwrap().groups().count(),
            0,
            "records of {size}"
        );
    }
}

#[test]
fn codes_are_the_specifications() {
    let mtus: Vec<Option<u32>> = (0..=6).map(mtu).collect();
    assert_eq!(
        mtus,
        [
            None,
            Some(256),
            Some(512),
            Some(1024),
            Some(2048),
            Some(4096),
            None
        ]
    );
    assert_eq!(
        (rate(3), rate(16), rate(24)),
        (Some(10_000), Some(100_000), Some(1_200_000))
    );
    assert_eq!(
        (rate(0), rate(1), rate(25), rate(63)),
        (None, None, None, None)
    );
    assert_eq!(Status(0x0700).words(), "request denied");
    assert_eq!(Status(0x0001).words(), "busy");
    assert_eq!(Status(0x001c).words(), "invalid field");
    assert_eq!(Status(0x7f00).words(), "unknown code");
}

fn begun() -> Interview {
    Interview::new(Some(mgid()), 2, 8, QUICK)
}

#[test]
fn silence_is_final_only_after_a_request_with_a_global_route_header() {
    let mut interview = begun();
    assert!(!interview.grh());
    assert_eq!(interview.hear(Heard::Silence(None)), Next::Ask);
    assert!(interview.grh());
    assert_eq!(
        interview.hear(Heard::Silence(None)),
        Next::Done(Answer::Silent)
    );
}

#[test]
fn the_silence_of_an_earlier_request_is_not_that_of_the_awaited_one() {
    let mut interview = begun();
    assert_eq!(interview.hear(Heard::Silence(Some(7))), Next::Wait);
    assert_eq!(interview.hear(Heard::Silence(Some(8))), Next::Ask);
    assert_eq!(interview.hear(Heard::Silence(Some(8))), Next::Wait);
    let silent = Next::Done(Answer::Silent);
    assert_eq!(interview.hear(Heard::Silence(Some(9))), silent);
}

#[test]
fn an_answer_is_a_sign_of_life() {
    for status in [0, 0x0001, 0x0002, 0x0700] {
        let mut interview = Interview::new(None, 2, 7, QUICK);
        let mad = answer(Question::ClassPortInfo, 7, status, 0, &[0; 200]);
        assert_eq!(hear(&mut interview, &mad), Next::Done(Answer::Alive));
    }
    // The host's kernel answers after its subnet manager has ended.
    let mut interview = Interview::new(None, 2, 7, QUICK);
    let mad = answer(Question::ClassPortInfo, 7, 0x000c, 0, &[0; 200]);
    assert_eq!(
        hear(&mut interview, &mad),
        Next::Done(Answer::Refused(Status(0x000c)))
    );
    let mut interview = Interview::new(None, 2, 7, QUICK);
    assert_eq!(interview.hear(Heard::Silence(None)), Next::Ask);
    assert_eq!(
        interview.hear(Heard::Silence(None)),
        Next::Done(Answer::Silent)
    );
}

#[test]
fn the_header_stays_once_an_answer_needed_it() {
    let mut interview = begun();
    assert_eq!(interview.hear(Heard::Silence(None)), Next::Ask);
    let mad = answer(Question::Group(mgid()), 9, 0, 56, &record(mgid()));
    assert_eq!(hear(&mut interview, &mad), Next::Ask);
    assert!(interview.grh());
    assert_eq!(interview.question(), Question::PortInfo(2).bytes(10));
}

#[test]
fn a_missing_group_has_three_spellings() {
    let other = "ff12:401b:8001::ffff:ffff".parse().unwrap();
    for (status, records) in [(0x0300, vec![]), (0, vec![]), (0, record(other))] {
        let mut interview = begun();
        let mad = answer(Question::Group(mgid()), 8, status, 56, &records);
        assert_eq!(hear(&mut interview, &mad), Next::Done(Answer::NoGroup));
    }
}

#[test]
fn a_group_is_reported_with_the_mtu_of_the_port() {
    let mut interview = begun();
    let mad = answer(Question::Group(mgid()), 8, 0, 56, &record(mgid()));
    assert_eq!(hear(&mut interview, &mad), Next::Ask);
    let mut port = vec![0; 64];
    port[PORT_INFO_MTU] = 0xf4;
    let mad = answer(Question::PortInfo(2), 9, 0, 64, &port);
    let mut deaf = interview.clone();
    let Next::Done(Answer::Joinable { group, port_mtu }) = hear(&mut interview, &mad) else {
        panic!("not done");
    };
    assert_eq!((group.mtu, port_mtu), (Some(2048), Some(2048)));
    assert_eq!(
        deaf.hear(Heard::Silence(None)),
        Next::Done(Answer::Joinable {
            group,
            port_mtu: None
        })
    );
}

#[test]
fn an_error_is_kept_and_a_late_answer_is_ignored() {
    let mut interview = begun();
    let late = answer(Question::Group(mgid()), 7, 0, 56, &record(mgid()));
    assert_eq!(hear(&mut interview, &late), Next::Wait);
    let denied = answer(Question::Group(mgid()), 8, 0x0700, 0, &[]);
    assert_eq!(
        hear(&mut interview, &denied),
        Next::Done(Answer::Refused(Status(0x0700)))
    );
}

proptest! {
    #[test]
    fn no_datagram_panics(
        mut mad in proptest::collection::vec(any::<u8>(), 0..1200),
        step in 0_usize..3,
        looks_right: bool,
    ) {
        let question = [Question::ClassPortInfo, Question::Group(mgid()), Question::PortInfo(2)][step];
        if looks_right {
            put(&mut mad, 0, &[1, 3, 2, question.method() | RESPONSE]);
            put(&mut mad, at::TID_LOW, &9_u32.to_be_bytes());
            put(&mut mad, at::ATTRIBUTE, &question.attribute().to_be_bytes());
        }
        let reply = question.answer(9, &mad);
        prop_assert!(reply.is_some() || !looks_right || mad.len() < 18);
        if let Some(reply) = reply {
            let room = mad.len().saturating_sub(at::DATA);
            prop_assert!(reply.groups().count() <= room / GROUP_BYTES);
            prop_assert!(reply.port_mtu().is_none_or(|mtu| (256..=4096).contains(&mtu)));
        }
        let awaited = Awaited { question, tid: 9 };
        prop_assert!(Replies::is_sound(&awaited, &Replies::decode(&awaited, &mad)));
        let mut interview = begun();
        let next = hear(&mut interview, &mad);
        prop_assert!(matches!(next, Next::Wait | Next::Ask | Next::Done(_)));
    }

    /// For every valid answer and every silence.
    #[test]
    fn an_interview_ends_after_three_questions(
        answers in proptest::collection::vec(
            (any::<bool>(), any::<u16>(), 0_usize..80, proptest::collection::vec(any::<u8>(), 0..600)),
            3,
        ),
        with_group: bool,
    ) {
        let mut interview = begun();
        let mut end = None;
        for (silent, status, units, mut records) in answers {
            if with_group {
                records.splice(0..0, mgid().octets());
            }
            let mut mad = interview.question().to_vec();
            mad[3] |= RESPONSE;
            put(&mut mad, at::STATUS, &(status % 3 * 0x0100).to_be_bytes());
            put(&mut mad, at::RECORD_SIZE, &u16::try_from(units).unwrap().to_be_bytes());
            mad.truncate(at::DATA);
            mad.extend(records);
            let next = if silent { interview.hear(Heard::Silence(None)) } else { hear(&mut interview, &mad) };
            prop_assert_ne!(&next, &Next::Wait);
            if let Next::Done(answer) = next {
                end = Some(answer);
                break;
            }
        }
        match end {
            Some(Answer::Joinable { group, port_mtu }) => {
                prop_assert_eq!(group.mgid, mgid());
                prop_assert!(group.mtu.into_iter().chain(port_mtu).all(|mtu| mtu <= 4096));
            }
            Some(Answer::Refused(status)) => prop_assert_ne!(status, Status::OK),
            Some(Answer::NoGroup | Answer::Silent) => {}
            Some(Answer::Alive | Answer::NotAsked(_)) | None => prop_assert!(false, "{:?}", end),
        }
    }
}
