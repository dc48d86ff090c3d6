// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: settings that a server sends without granting an address (RFC 8415 6.1 and 18.2.6): name
//! servers when a router gives the address. Times and messages go in; the messages to send come
//! out.

#[cfg(test)]
mod tests;

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Context};
use super::client::{Action, elapsed};
use super::lease::{
    Refusal, are_sound, domain_search, failed, is_duid, name_servers, resolver_variables,
};
use super::packet::{Kind, Message, TRANSACTION, option};
use crate::dhcp::identity::RequestedId;
use crate::dhcp::progress::{Counts, count};
use crate::dhcp::random::Random;
use crate::hardware::Hex;
use crate::system::clock::SECOND;
use crate::system::decoder::LOST;

/// INF_MAX_DELAY: one router advertisement reaches all nodes of a link at the same time.
const DELAY: u64 = SECOND;
/// INF_TIMEOUT.
const FIRST: u64 = SECOND;
/// The longest wait between two messages, where the RFC allows an hour: the boot continues
/// meanwhile. A refusing server may request a longer wait (INF_MAX_RT).
const LONGEST: u64 = 16 * SECOND;
/// Unanswered messages before the log reports the silence, half a minute after the first message.
const UNANSWERED: u32 = 5;
/// Option 6; the last two codes are mandatory (RFC 8415 21.7). The refresh time (option 32) is not
/// stored: `up` ends long before that time, and no client runs in the real root.
const REQUESTED: [u16; 4] = [
    option::NAME_SERVERS,
    option::DOMAIN_LIST,
    option::REFRESH_TIME,
    option::INF_MAX_RT,
];

/// The beginning of the report if no name servers arrive; the reason follows.
pub const NO_NAME_SERVERS: &str = "no name servers, although a router advertises DHCPv6";

/// The requested settings: requested if a router sets the O or M flag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InformationWish {
    /// The client identifier, as in [`super::Dhcp6Wish`].
    pub client_id: RequestedId,
}

/// The settings of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Information {
    /// Source address of the answer: the server, or a relay.
    pub server: Ipv6Addr,
    /// DUID of the server in hexadecimal.
    pub server_id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<Ipv6Addr>,
    /// Domains to search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domain_search: Vec<String>,
    /// Values of the server that were rejected, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Information {
    /// The settings in a REPLY.
    pub fn of(message: &Message, from: Ipv6Addr) -> Result<Information, Refusal> {
        let server_id = message.duid(option::SERVER_ID);
        let server_id =
            server_id.ok_or_else(|| Refusal::Unusable("no server identifier (option 2)".into()))?;
        failed(message.options.status()?)?;
        let mut left_out = Vec::new();
        Ok(Information {
            server: from,
            server_id: Hex(server_id).to_string(),
            name_servers: name_servers(message, &mut left_out),
            domain_search: domain_search(message, &mut left_out),
            left_out,
        })
    }

    /// Whether the values are as [`Information::of`] returns them.
    pub fn is_sound(&self, context: &Context) -> bool {
        self.server == context.from
            && is_duid(&self.server_id)
            && are_sound(&self.name_servers, &self.domain_search, &self.left_out)
    }

    /// The variables that dracut's modules read, as in [`super::lease::Lease::variables`].
    pub fn variables(&self) -> Vec<(&'static str, Vec<u8>)> {
        resolver_variables(&self.name_servers, &self.domain_search).collect()
    }

    /// The settings in words: `name servers fd00::53, search a.example`.
    pub fn words(&self) -> String {
        let servers: Vec<String> = self.name_servers.iter().map(ToString::to_string).collect();
        let part = |what: &str, values: &[String]| {
            (!values.is_empty()).then(|| format!("{what} {}", values.join(" ")))
        };
        let parts = [
            part("name servers", &servers),
            part("search", &self.domain_search),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            "no name servers".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

/// The progress on an interface, as in state.json.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Name of the interface.
    pub interface: String,
    /// Index of the interface; a rename does not change the index.
    pub index: u32,
    /// Option 1 as it was sent, in hexadecimal.
    pub duid: String,
    /// Messages sent and answers received; the answer counts as one of `replies`.
    pub counts: Counts,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub information: Option<Information>,
    /// Why the client cannot send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

/// The stage of a request for settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// No answer has arrived, and the silence is not reported yet.
    Open,
    /// Reported as unanswered; a late answer is still taken.
    Silent,
    /// The answer has arrived.
    Answered(Information),
}

/// The client of one interface.
#[derive(Debug)]
pub struct Asker {
    duid: Vec<u8>,
    random: Random,
    transaction: u32,
    due: Option<u64>,
    /// When the first message was sent, and the wait after the last message.
    began_ns: u64,
    wait_ns: u64,
    /// The longest wait that the server allows (INF_MAX_RT), in seconds.
    slowest_s: Option<u32>,
    answer: Option<Information>,
    /// The silence was reported.
    is_given_up: bool,
    /// Why the last message could not be sent.
    broken: Option<String>,
    counts: Counts,
}

impl Asker {
    /// Creates a client that sends its first message within a second. `seed` determines jitter and
    /// the transaction number.
    pub fn new(duid: Vec<u8>, seed: u64, now_ns: u64) -> Asker {
        let mut random = Random::new(seed);
        Asker {
            duid,
            transaction: random.next_u32() & TRANSACTION,
            due: Some(now_ns.saturating_add(random.below(DELAY))),
            random,
            began_ns: 0,
            wait_ns: 0,
            slowest_s: None,
            answer: None,
            is_given_up: false,
            broken: None,
            counts: Counts::default(),
        }
    }

    /// When [`Asker::wake`] must be called, ns since kernel start; none: the answer has arrived.
    pub fn due(&self) -> Option<u64> {
        self.due
    }

    /// The answer.
    pub fn answer(&self) -> Option<&Information> {
        self.answer.as_ref()
    }

    /// Messages sent and answers received.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The stage of the request.
    pub fn stage(&self) -> Stage {
        match &self.answer {
            Some(information) => Stage::Answered(information.clone()),
            None if self.is_given_up => Stage::Silent,
            None => Stage::Open,
        }
    }

    /// True until an answer arrives or the silence is reported.
    pub fn is_hopeful(&self) -> bool {
        self.answer.is_none() && !self.is_given_up
    }

    /// Reports the result of the last send: the reason of a failure.
    pub fn sent(&mut self, broken: Option<&str>) {
        self.broken = broken.map(str::to_owned);
    }

    /// Ends the wait for an answer. Returns the line to log; none if an answer has arrived or the
    /// silence was reported already.
    pub fn give_up(&mut self) -> Option<String> {
        let why = self.is_hopeful().then(|| self.why_silent());
        self.is_given_up = true;
        why
    }

    /// Sends or repeats the message if it is due at `now_ns`.
    pub fn wake(&mut self, now_ns: u64) -> Vec<Action> {
        if self.due.is_none_or(|due| now_ns < due) {
            return Vec::new();
        }
        let mut actions = Vec::new();
        if self.counts.sent == UNANSWERED {
            actions.extend(self.give_up().map(Action::Warn));
        }
        if self.counts.sent == 0 {
            self.began_ns = now_ns;
        }
        count(&mut self.counts.sent);
        let slowest = self.slowest_s.map(|seconds| u64::from(seconds) * SECOND);
        let base = match self.wait_ns {
            0 => FIRST,
            before => before.saturating_mul(2).min(slowest.unwrap_or(LONGEST)),
        };
        // A tenth of jitter to either side (RFC 8415 15).
        self.wait_ns = base - base / 10 + self.random.below(base / 5);
        self.due = Some(now_ns.saturating_add(self.wait_ns));
        actions.push(Action::Send(self.message(now_ns)));
        actions
    }

    /// Takes the number of packets that the decoder lost.
    pub fn lost(&mut self, undecoded: u32) {
        self.counts.undecoded = undecoded;
    }

    /// The line to log without an answer.
    pub fn why_silent(&self) -> String {
        let counts = &self.counts;
        let answered = counts.why_refused.as_ref().or(counts.why_unusable.as_ref());
        let why = answered.or(self.broken.as_ref()).map(String::as_str);
        let why = why.unwrap_or(match (counts.sent, counts.undecoded) {
            (0, _) => "no request was sent",
            (_, 0) => "no server answers",
            _ => LOST,
        });
        format!("{NO_NAME_SERVERS}: {why}")
    }

    fn message(&self, now_ns: u64) -> Message {
        let mut message = Message::new(Kind::InformationRequest, self.transaction);
        let options = &mut message.options;
        options.push(option::CLIENT_ID, self.duid.clone());
        let elapsed = elapsed(self.began_ns, now_ns);
        options.push(option::ELAPSED_TIME, elapsed.to_be_bytes());
        let codes: Vec<u8> = REQUESTED.iter().flat_map(|c| c.to_be_bytes()).collect();
        options.push(option::REQUEST, codes);
        message
    }

    /// Handles a message to the client's port.
    pub fn received(&mut self, message: &Answer) -> Vec<Action> {
        if message.kind != Kind::Reply || self.answer.is_some() || self.counts.sent == 0 {
            count(&mut self.counts.unsolicited);
            return Vec::new();
        }
        let client = message.client_id.as_ref();
        let is_anothers = client.is_some_and(|client| *client != self.duid);
        if message.transaction != self.transaction || is_anothers {
            count(&mut self.counts.foreign);
            return Vec::new();
        }
        self.slowest_s = message.inf_max_rt_s.or(self.slowest_s);
        let from = message.from;
        let information = match client {
            Some(_) => message.information.clone(),
            None => Err(Refusal::Unusable("no client identifier (option 1)".into())),
        };
        match information {
            Ok(information) => {
                count(&mut self.counts.replies);
                let mut actions =
                    vec![Action::Info(format!("{} from {from}", information.words()))];
                let left_out = information.left_out.iter();
                actions.extend(left_out.map(|what| Action::Warn(format!("not used: {what}"))));
                actions.push(Action::Bound);
                self.answer = Some(information);
                self.due = None;
                actions
            }
            Err(Refusal::Unusable(why)) => {
                count(&mut self.counts.unusable);
                self.counts.why_unusable = Some(format!("REPLY from {from}: {why}"));
                Vec::new()
            }
            Err(refusal) => {
                count(&mut self.counts.refusals);
                self.counts.why_refused = Some(format!("server {from} refuses: {refusal}"));
                Vec::new()
            }
        }
    }
}
