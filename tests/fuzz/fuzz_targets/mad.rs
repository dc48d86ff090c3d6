// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data from the fabric: answers of subnet administrators, behind the header of the umad device,
//! and the connection manager's events about a server. No panic; an interview ends after four
//! questions whatever the answers; every accepted value is clean.
//!
//! The bytes are read three ways: as one read of the umad device, as a script of a subnet
//! administrator's answers in an interview, and as an event of rdma_cm.
#![no_main]

mod script;

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use ibboot::facts::{Device, Facts, Netdev, Port};
use ibboot::rdma::mad::{Awaited, MAD, Question, Replies};
use ibboot::rdma::{reach, umad, cm};
use ibboot::rdma::sa::{Answer, Heard, Interview, Next, PATIENT, QUICK, SaAnswer};
use ibboot::rdma::umad::Received;
use ibboot::rdma::types::Rate;
use ibboot::system::decoder::Format;
use ibboot::verify::finding::Finding;
use ibboot::verify::carrier;
use libfuzzer_sys::fuzz_target;

use script::Script;

const MGID: Ipv6Addr = Ipv6Addr::new(0xff12, 0x401b, 0xffff, 0, 0, 0, 0xffff, 0xffff);
const MTUS: [u32; 5] = [256, 512, 1024, 2048, 4096];
/// Offsets of status, method, RMPP header and record size in an answer.
const METHOD: usize = 3;
const STATUS: usize = 4;
const RECORD_SIZE: usize = 44;
const DATA: usize = 56;

/// An interface without carrier on a port of 100 Gb/sec.
static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let port = Port {
        port: 1,
        rate: Some(Rate {
            text: "100 Gb/sec (4X EDR)".to_owned(),
            gbps: 100.0,
            width: 4,
            speed: "EDR".to_owned(),
        }),
        pkeys: vec![0xffff, 0x0001],
        ..Port::default()
    };
    Facts {
        devices: vec![Device {
            ifname: "mlx5_0".to_owned(),
            ports: vec![port],
            ..Device::default()
        }],
        netdevs: vec![Netdev {
            ifname: "ib0".to_owned(),
            ..Netdev::default()
        }],
        ..Facts::default()
    }
});

fuzz_target!(|data: &[u8]| {
    read(data);
    interview(data);
    server(data);
});

/// One read of the device.
fn read(packet: &[u8]) {
    assert_eq!(umad::header_length(packet).is_some(), packet.len() >= 20);
    match umad::received(packet) {
        Ok(Received::Reply(mad)) => {
            assert!(mad.len() <= packet.len());
            // With the expected transaction, so that more inputs get past the first comparison.
            let tid = mad
                .get(12..16)
                .and_then(|tid| Some(u32::from_be_bytes(tid.try_into().ok()?)));
            for question in [
                Question::ClassPortInfo,
                Question::Group(MGID),
                Question::PortInfo(2),
            ] {
                let tid = tid.unwrap_or(0);
                let awaited = Awaited { question, tid };
                let Some(reply) = Replies::decode(&awaited, &mad) else {
                    continue;
                };
                assert!(Replies::is_sound(&awaited, &Some(reply)), "{reply:?}");
                assert!(reply.port_mtu.is_none_or(|mtu| MTUS.contains(&mtu)));
                assert!(!reply.status.words().is_empty());
            }
        }
        Ok(Received::Silence(_)) => {}
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
}

impl Script<'_> {
    /// A datagram with the header of the question, turned into an answer, and records of the next
    /// bytes.
    fn answer(&mut self, question: &[u8; MAD]) -> Option<Vec<u8>> {
        let what = self.byte()?;
        let mut mad = question.get(..DATA)?.to_vec();
        *mad.get_mut(METHOD)? |= 0x80;
        if what & 1 != 0 {
            mad.get_mut(STATUS..STATUS + 2)?
                .copy_from_slice(&[self.byte()? & 7, self.byte()?]);
        }
        // RMPP: version, type, flags, status, segment, length.
        let rmpp = self.bytes(usize::from(what >> 1 & 1) * 12);
        mad.get_mut(24..24 + rmpp.len())?.copy_from_slice(rmpp);
        let size = [self.byte()? & high_byte(what), self.byte()?];
        mad.get_mut(RECORD_SIZE..RECORD_SIZE + 2)?
            .copy_from_slice(&size);
        if what & 8 != 0 {
            mad.extend(MGID.octets());
        }
        let length = usize::from(self.byte()?);
        mad.extend(self.bytes(length));
        // The kernel joins segments: an answer may be longer than one datagram.
        mad.resize(mad.len() + usize::from(what >> 4) * 64, 0);
        Some(mad)
    }
}

/// Records of more than 2 kB are rarely useful.
fn high_byte(what: u8) -> u8 {
    if what & 4 != 0 { 0xff } else { 0 }
}

fn interview(data: &[u8]) {
    let mut script = Script(data);
    // Without a group the question only tests whether the subnet administrator answers.
    let group = data
        .last()
        .is_some_and(|last| last & 1 == 0)
        .then_some(MGID);
    let first = if data.len() & 1 == 0 {
        QUICK
    } else {
        PATIENT
    };
    let mut interview = Interview::new(group, 2, u32::MAX - 1, first);
    let (mut asked, mut waits_ms) = (1, 0);
    while let Some(step) = script.byte() {
        let question = interview.question();
        let patience = interview.patience();
        let next = match step {
            0..64 => interview.hear(Heard::Silence(None)),
            64..128 => hear(&mut interview, script.bytes(usize::from(step))),
            _ => match script.answer(&question) {
                Some(mad) => hear(&mut interview, &mad),
                None => return,
            },
        };
        if next != Next::Wait {
            waits_ms += patience.timeout_ms * (patience.retries + 1);
            // The first question, the header twice, the last question three times.
            let first_ms = first.timeout_ms * (first.retries + 1);
            assert!(
                waits_ms <= first_ms + 5 * QUICK.timeout_ms,
                "{waits_ms} ms of {first_ms}"
            );
        }
        match next {
            // A packet that is not an answer changes nothing.
            Next::Wait => assert_eq!(interview.question(), question),
            Next::Ask => {
                asked += 1;
                assert!(asked <= 3, "{asked} questions");
                assert_ne!(interview.question(), question);
            }
            Next::Done(answer) => return believed(group, answer),
        }
    }
}

fn hear(interview: &mut Interview, mad: &[u8]) -> Next {
    let awaited = interview.awaited();
    let reply = Replies::decode(&awaited, mad);
    assert!(Replies::is_sound(&awaited, &reply), "{reply:?}");
    interview.hear(Heard::Reply(reply))
}

fn believed(expected: Option<Ipv6Addr>, answer: Answer) {
    match &answer {
        Answer::Joinable { group, port_mtu } => {
            assert_eq!(Some(group.mgid), expected);
            assert!(
                group
                    .mtu
                    .into_iter()
                    .chain(*port_mtu)
                    .all(|mtu| MTUS.contains(&mtu))
            );
            assert!(
                group
                    .megabits
                    .is_none_or(|rate| (2_500..=1_200_000).contains(&rate))
            );
            assert!(group.sl < 16 && group.scope < 16 && group.join_state < 16);
        }
        Answer::Refused(status) => assert_ne!(status.0, 0),
        Answer::Alive => assert_eq!(expected, None),
        Answer::NoGroup => assert_eq!(expected, Some(MGID)),
        Answer::Silent => {}
        Answer::NotAsked(why) => panic!("it was asked: {why}"),
    }
    let json = serde_json::to_string(&answer).expect("JSON");
    assert_eq!(serde_json::from_str(&json).ok().as_ref(), Some(&answer));
    let mut facts = FACTS.clone();
    facts.subnet_administrator = vec![SaAnswer {
        interface: "ib0".to_owned(),
        sm_lid: 1,
        answer,
    }];
    let (netdev, port) = (&facts.netdevs[0], facts.ports().next().expect("a port"));
    line(&carrier::missing(netdev, port, &facts));
}

fn line(finding: &Finding) {
    let sentence = finding.sentence();
    assert!(
        sentence.len() < 1000 && !sentence.chars().any(char::is_control),
        "{sentence:?}"
    );
}

/// The status of an event is the reason that the peer gave.
fn server(response: &[u8]) {
    let Some(event) = cm::event(response) else {
        assert!(response.len() < 20);
        return;
    };
    let reach::Next::Failed(answer) = reach::hear(event) else {
        return;
    };
    let json = serde_json::to_string(&answer).expect("JSON");
    assert!(json.len() < 200 && !json.contains('\\'));
    assert_eq!(serde_json::from_str(&json).ok(), Some(answer));
}
