// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the questions to the subnet administrator about an IPoIB interface without carrier, one
//! after the other, and what its answers come to; the first of them alone tells whether it lives.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::mad::{Group, Question, Status};

/// What was learnt for one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The IPoIB interface.
    pub interface: String,
    /// LID of the subnet manager that was asked.
    pub sm_lid: u32,
    /// What it said.
    pub answer: Answer,
}

/// What was learnt for a port that wants nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// The port, `mlx5_0/1`.
    pub port: String,
    /// LID of the subnet manager that was asked.
    pub sm_lid: u32,
    /// What it said.
    pub answer: Answer,
}

/// What the subnet administrator said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It could not be asked, and why.
    NotAsked(String),
    /// Nothing.
    Silent,
    /// It answers; nothing else was asked.
    Alive,
    /// An error.
    Refused(Status),
    /// There is no such broadcast group.
    NoGroup,
    /// The broadcast group is there.
    Joinable {
        /// The group.
        group: Group,
        /// Largest MTU in bytes of the port, in the eyes of the subnet administrator.
        port_mtu: Option<u32>,
    },
}

/// How long the kernel waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// To each try, milliseconds.
    pub timeout_ms: u32,
    /// Tries after the first.
    pub retries: u32,
}

/// One interview. Ask [`Interview::question`], hand what came to [`Interview::hear`], until that
/// gives the result.
#[derive(Clone, Debug)]
pub struct Interview {
    mgid: Option<Ipv6Addr>,
    lid: u16,
    tid: u32,
    /// Milliseconds to wait for the first answer.
    timeout_ms: u32,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Alive { grh: bool },
    Group { grh: bool, mgid: Ipv6Addr },
    Port { grh: bool, group: Group },
}

/// What came.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// A datagram.
    Reply(&'a [u8]),
    /// The kernel gave up waiting.
    Silence,
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It was no answer: wait on.
    Wait,
    /// Ask the next question.
    Ask,
    /// That was all.
    Done(Answer),
}

/// Enough where the subnet administrator lives: 1.5 s with the two retries.
pub const QUICK_MS: u32 = 500;
/// For one that works, as far as is known: 3 s before it is called silent.
pub const CALM_MS: u32 = 1000;
/// For one that was silent before: the kernel keeps asking, we sleep.
pub const PATIENT_MS: u32 = 2000;

impl Interview {
    /// About the group `mgid`, or none, by the port with this LID. `tid` is increased with every
    /// question.
    pub fn new(mgid: Option<Ipv6Addr>, lid: u16, tid: u32, timeout_ms: u32) -> Self {
        Self {
            mgid,
            lid,
            tid,
            timeout_ms,
            step: Step::Alive { grh: false },
        }
    }

    fn subject(&self) -> Question {
        match self.step {
            Step::Alive { .. } => Question::ClassPortInfo,
            Step::Group { mgid, .. } => Question::Group(mgid),
            Step::Port { .. } => Question::PortInfo(self.lid),
        }
    }

    /// The datagram to send.
    pub fn question(&self) -> [u8; super::mad::MAD] {
        self.subject().bytes(self.tid)
    }

    /// Whether to send it with a global route header. A virtualised port's subnet administrator
    /// answers no other, and sysfs does not tell that: silence is believed after both ways.
    pub fn grh(&self) -> bool {
        match self.step {
            Step::Alive { grh } | Step::Group { grh, .. } | Step::Port { grh, .. } => grh,
        }
    }

    /// How long to wait for the answer.
    pub fn patience(&self) -> Patience {
        let (timeout_ms, retries) = match self.step {
            Step::Alive { grh: false } => (self.timeout_ms, 2),
            // Rarely the one that is heard: short.
            Step::Alive { grh: true } => (QUICK_MS, 1),
            Step::Group { .. } | Step::Port { .. } => (QUICK_MS, 2),
        };
        Patience {
            timeout_ms,
            retries,
        }
    }

    /// Takes what came.
    pub fn hear(&mut self, heard: Heard<'_>) -> Next {
        let reply = match heard {
            Heard::Reply(mad) => match self.subject().answer(self.tid, mad) {
                Some(reply) => Some(reply),
                None => return Next::Wait,
            },
            Heard::Silence => None,
        };
        let next = match (self.step, reply) {
            (Step::Alive { grh: false }, None) => Step::Alive { grh: true },
            (Step::Alive { .. } | Step::Group { .. }, None) => return Next::Done(Answer::Silent),
            // Busy or redirected, it lives.
            (Step::Alive { grh }, Some(reply)) => match self.mgid {
                Some(mgid) => Step::Group { grh, mgid },
                None if reply.status.is_unserved() => {
                    return Next::Done(Answer::Refused(reply.status));
                }
                None => return Next::Done(Answer::Alive),
            },
            (Step::Group { grh, mgid }, Some(reply)) => {
                let group = reply.groups().find(|group| group.mgid == mgid);
                match (reply.status, group) {
                    (Status::OK, Some(group)) => Step::Port { grh, group },
                    (Status::OK | Status::NO_RECORDS, None) | (Status::NO_RECORDS, Some(_)) => {
                        return Next::Done(Answer::NoGroup);
                    }
                    (status, _) => return Next::Done(Answer::Refused(status)),
                }
            }
            (Step::Port { group, .. }, reply) => {
                let told = reply.filter(|reply| reply.status == Status::OK);
                let port_mtu = told.and_then(|reply| reply.port_mtu());
                return Next::Done(Answer::Joinable { group, port_mtu });
            }
        };
        self.step = next;
        self.tid = self.tid.wrapping_add(1);
        Next::Ask
    }
}
