// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the sequence of requests to the subnet administrator about an IPoIB interface without
//! carrier, and the result of the answers. Any answer to the first request shows that the subnet
//! administrator is alive.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::mad::{Awaited, Group, Question, Reply, Status};

/// Result of the requests for one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaAnswer {
    /// The IPoIB interface.
    pub interface: String,
    /// LID of the subnet manager that received the requests.
    pub sm_lid: u32,
    /// Answer of the subnet administrator.
    pub answer: Answer,
}

/// Result of the first request alone, for a port without an interface in question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// The port, `mlx5_0/1`.
    pub port: String,
    /// LID of the subnet manager that received the request.
    pub sm_lid: u32,
    /// Answer of the subnet administrator.
    pub answer: Answer,
}

/// Answer of the subnet administrator, over all requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The request could not be sent; the text is the reason.
    NotAsked(String),
    /// No answer came.
    Silent,
    /// The subnet administrator answers; no further request was sent.
    Alive,
    /// The subnet administrator returned an error.
    Refused(Status),
    /// The broadcast group does not exist.
    NoGroup,
    /// The broadcast group exists.
    Joinable {
        group: Group,
        /// Largest MTU of the port in bytes, as the subnet administrator reports it.
        port_mtu: Option<u32>,
    },
}

/// How long the kernel waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Timeout of each try in milliseconds.
    pub timeout_ms: u32,
    /// Number of tries after the first.
    pub retries: u32,
}

/// One sequence of requests. Send [`Interview::question`] and pass the outcome to
/// [`Interview::hear`], until the result is returned.
#[derive(Clone, Debug)]
pub struct Interview {
    lid: u16,
    tid: u32,
    /// For the answer to the first request.
    first: Patience,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Alive { grh: bool },
    Group { grh: bool, mgid: Ipv6Addr },
    Port { grh: bool, group: Group },
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug)]
pub enum Heard {
    /// A datagram was received; none: not the answer to the awaited request.
    Reply(Option<Reply>),
    /// The kernel reported the timeout of the request with this transaction, or of the awaited one.
    Silence(Option<u32>),
}

/// Next step of the sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The datagram was not the answer: wait for the next one.
    Wait,
    /// Send the next request.
    Ask,
    /// The sequence is complete.
    Done(Answer),
}

/// For an answer that is expected: 1.5 s.
pub const QUICK: Patience = Patience {
    timeout_ms: 500,
    retries: 2,
};
/// For a subnet administrator with no known fault: 3 s, before it is reported as silent.
pub const CALM: Patience = Patience {
    timeout_ms: 1000,
    retries: 2,
};
/// For a subnet administrator that was silent before: one packet, which does not add to its load.
pub const PATIENT: Patience = Patience {
    timeout_ms: 2000,
    retries: 0,
};

impl Interview {
    /// Requests about the group `mgid`, or without a group one request for a sign of life, by the
    /// port with this LID. `tid` is increased with every request; `first` is for the first one.
    pub fn new(mgid: Option<Ipv6Addr>, lid: u16, tid: u32, first: Patience) -> Self {
        let grh = false;
        Self {
            lid,
            tid,
            first,
            step: match mgid {
                Some(mgid) => Step::Group { grh, mgid },
                None => Step::Alive { grh },
            },
        }
    }

    fn subject(&self) -> Question {
        match self.step {
            Step::Alive { .. } => Question::ClassPortInfo,
            Step::Group { mgid, .. } => Question::Group(mgid),
            Step::Port { .. } => Question::PortInfo(self.lid),
        }
    }

    /// The request whose answer is next.
    pub fn awaited(&self) -> Awaited {
        Awaited {
            question: self.subject(),
            tid: self.tid,
        }
    }

    /// The datagram to send next.
    pub fn question(&self) -> [u8; super::mad::MAD] {
        self.subject().bytes(self.tid)
    }

    /// Whether to send the request with a global route header. The subnet administrator of a
    /// virtualised port answers only requests with this header, and sysfs does not show such a
    /// port: the result is silence only after a try without and a try with the header.
    pub fn grh(&self) -> bool {
        match self.step {
            Step::Alive { grh } | Step::Group { grh, .. } | Step::Port { grh, .. } => grh,
        }
    }

    /// Timeout and number of retries for the next request.
    pub fn patience(&self) -> Patience {
        match self.step {
            Step::Alive { grh: false } | Step::Group { grh: false, .. } => self.first,
            // Rarely answered with a GRH, so the timeout is short.
            Step::Alive { grh: true } | Step::Group { grh: true, .. } => Patience {
                retries: self.first.retries.min(1),
                ..QUICK
            },
            Step::Port { .. } => QUICK,
        }
    }

    /// Takes the outcome of the last request and returns the next step.
    pub fn hear(&mut self, heard: Heard) -> Next {
        let reply = match heard {
            Heard::Reply(None) => return Next::Wait,
            Heard::Reply(reply) => reply,
            // Late: this request was given up before.
            Heard::Silence(Some(tid)) if tid != self.tid => return Next::Wait,
            Heard::Silence(_) => None,
        };
        let next = match (self.step, reply) {
            (Step::Alive { grh: false }, None) => Step::Alive { grh: true },
            (Step::Group { grh: false, mgid }, None) => Step::Group { grh: true, mgid },
            (Step::Alive { .. } | Step::Group { .. }, None) => return Next::Done(Answer::Silent),
            // An error such as busy or redirected also proves that the subnet administrator is
            // alive.
            (Step::Alive { .. }, Some(reply)) if reply.status.is_unserved() => {
                return Next::Done(Answer::Refused(reply.status));
            }
            (Step::Alive { .. }, Some(_)) => return Next::Done(Answer::Alive),
            (Step::Group { grh, mgid }, Some(reply)) => {
                let group = reply.group.filter(|group| group.mgid == mgid);
                match (reply.status, group) {
                    (Status::OK, Some(group)) => Step::Port { grh, group },
                    (Status::OK | Status::NO_RECORDS, None) | (Status::NO_RECORDS, Some(_)) => {
                        return Next::Done(Answer::NoGroup);
                    }
                    (status, _) => return Next::Done(Answer::Refused(status)),
                }
            }
            (Step::Port { group, .. }, reply) => {
                let answered = reply.filter(|reply| reply.status == Status::OK);
                let port_mtu = answered.and_then(|reply| reply.port_mtu);
                return Next::Done(Answer::Joinable { group, port_mtu });
            }
        };
        self.step = next;
        self.tid = self.tid.wrapping_add(1);
        Next::Ask
    }
}
