// SPDX-License-Identifier: MIT OR Apache-2.0
//! An interface has no carrier on an ACTIVE port: its subnet administrator is asked why, one question
//! at a time per port.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use super::part::{Part, Verdict, Wake};
use crate::ask::administrators::{about_interface, in_trouble, interview};
use crate::facts::{Facts, PortRef};
use crate::rdma::sa::{Answer, PATIENT_MS, QUICK_MS, SaAnswer};
use crate::system::clock::boottime_ns;

/// A join takes a moment, and right after ACTIVE a subnet manager is still busy.
const GRACE: Duration = Duration::from_secs(2);
/// Between two interviews; with the jitter below the safety look, which it takes the place of.
const AGAIN: Duration = Duration::from_millis(8500);
/// A join that was sent into the silence has ended after 3 s (drivers/infiniband/core/multicast.c),
/// one that was sent later is answered at once. No carrier by now: the kernel waits to try again.
const JOIN: Duration = Duration::from_millis(3500);

/// An interface without carrier on an ACTIVE port.
#[derive(Debug)]
struct Case {
    /// Its port, `mlx5_0/1`.
    port: String,
    due: Instant,
    asking: bool,
    reply: Option<SaAnswer>,
    /// The subnet administrator was silent and answers again: when its silence can no longer be
    /// what keeps the carrier away.
    rejoin: Option<Instant>,
}

/// The interviews, by interface.
#[derive(Debug, Default)]
pub struct Administrators {
    cases: BTreeMap<String, Case>,
    running: FuturesUnordered<LocalBoxFuture<'static, SaAnswer>>,
}

impl Administrators {
    /// Takes notice of interfaces that get into this trouble or out of it. `later`: the jitter of the
    /// first question.
    fn notice(&mut self, troubled: &BTreeMap<&str, String>, now: Instant, later: Duration) {
        self.cases
            .retain(|interface, _| troubled.contains_key(interface.as_str()));
        for (interface, port) in troubled {
            self.cases
                .entry((*interface).to_owned())
                .or_insert_with(|| Case {
                    port: port.clone(),
                    due: now + GRACE + later,
                    asking: false,
                    reply: None,
                    rejoin: None,
                });
        }
    }

    /// Begins an interview about the interface where it is time to: how long each question waits for
    /// its answer, in ms.
    fn begin(&mut self, interface: &str, now: Instant) -> Option<u32> {
        let port = &self.cases.get(interface)?.port;
        if self.is_asked(port) {
            return None;
        }
        let case = self.cases.get_mut(interface).filter(|c| c.due <= now)?;
        case.asking = true;
        let reply = case.reply.as_ref();
        let is_silent = reply.is_some_and(|reply| reply.answer == Answer::Silent);
        Some(if is_silent { PATIENT_MS } else { QUICK_MS })
    }

    fn is_asked(&self, port: &str) -> bool {
        let asked = |case: &Case| case.asking && case.port == port;
        self.cases.values().any(asked)
    }

    /// An interview has ended. `later`: the jitter of the next one.
    fn heard(&mut self, reply: SaAnswer, now: Instant, later: Duration) {
        log::debug!("{}: {reply:?}", reply.interface);
        if let Some(case) = self.cases.get_mut(&reply.interface) {
            let was = case.reply.as_ref().map(|reply| &reply.answer);
            if was == Some(&Answer::Silent) && matches!(reply.answer, Answer::Joinable { .. }) {
                case.rejoin = Some(now + JOIN);
            }
            case.asking = false;
            // One question at a time stands with the kernel for as long as there is silence.
            case.due = match reply.answer {
                Answer::Silent => now,
                _ => now + AGAIN + later,
            };
            case.reply = Some(reply);
        }
    }

    /// The interfaces that are to join again by `now`.
    pub fn rejoins(&mut self, now: Instant) -> Vec<String> {
        let mut due: Vec<String> = Vec::new();
        for (interface, case) in &mut self.cases {
            if case.rejoin.is_some_and(|at| at <= now) {
                case.rejoin = None;
                due.push(interface.clone());
            }
        }
        due
    }
}

impl Part for Administrators {
    fn add_to(&self, facts: &mut Facts) {
        let reply = self.cases.values().filter_map(|case| case.reply.clone());
        facts.subnet_administrator = reply.collect();
    }

    fn judged(&mut self, verdict: Verdict<'_>) {
        let links = verdict.report.links.iter();
        let troubled: BTreeMap<&str, PortRef<'_>> = links
            .filter_map(|link| in_trouble(link, verdict.facts))
            .collect();
        let names = troubled.iter().map(|(name, port)| (*name, port.name()));
        let now = Instant::now();
        self.notice(&names.collect(), now, jitter());
        for (interface, port) in troubled {
            if let Some(wait_ms) = self.begin(interface, now) {
                let asked = about_interface(verdict.root, verdict.rdma, interface, port, wait_ms);
                self.running.push(interview(asked).boxed_local());
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        let waiting = self.cases.values();
        let waiting = waiting.filter(|case| !self.is_asked(&case.port));
        let rejoins = self.cases.values().filter_map(|case| case.rejoin);
        waiting.map(|case| case.due).chain(rejoins).min()
    }

    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let next = async move {
            let Some(reply) = self.running.next().await else {
                return std::future::pending().await;
            };
            self.heard(reply, Instant::now(), jitter());
            Wake::Look
        };
        next.boxed_local()
    }
}

/// Up to a second: whole clusters boot at the same time.
fn jitter() -> Duration {
    Duration::from_nanos(boottime_ns() % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::mad::Group;

    const NO_JITTER: Duration = Duration::ZERO;

    fn reply(answer: Answer) -> SaAnswer {
        SaAnswer {
            interface: "ib0".to_owned(),
            sm_lid: 1,
            answer,
        }
    }

    fn two_on_one_port() -> BTreeMap<&'static str, String> {
        let port = || "mlx5_0/1".to_owned();
        BTreeMap::from([("ib0", port()), ("ib0.8001", port())])
    }

    #[test]
    fn a_port_has_one_question_at_a_time_and_after_silence_a_patient_one() {
        let mut all = Administrators::default();
        let now = Instant::now();
        all.notice(&two_on_one_port(), now, NO_JITTER);
        let first = now + GRACE;
        assert_eq!(all.due(), Some(first));
        assert_eq!(all.begin("ib0", now), None);
        assert_eq!(all.begin("ib0", first), Some(QUICK_MS));
        assert_eq!(all.begin("ib0.8001", first), None);
        assert_eq!(all.due(), None);
        all.heard(reply(Answer::Silent), first, NO_JITTER);
        assert_eq!(all.due(), Some(first));
        assert_eq!(all.begin("ib0", first), Some(PATIENT_MS));
        all.heard(reply(Answer::NoGroup), first, NO_JITTER);
        assert_eq!(all.begin("ib0", first), None);
        assert_eq!(all.begin("ib0.8001", first), Some(QUICK_MS));
        all.notice(&BTreeMap::new(), first, NO_JITTER);
        assert_eq!((all.due(), all.cases.len()), (None, 0));
    }

    #[test]
    fn an_interface_joins_again_when_a_silent_administrator_answers() {
        let joinable = || {
            reply(Answer::Joinable {
                group: Group {
                    mgid: "ff12:401b:ffff::ffff:ffff".parse().unwrap(),
                    mlid: 0xc000,
                    qkey: 0xb1b,
                    pkey: 0xffff,
                    mtu: Some(4096),
                    megabits: None,
                    sl: 0,
                    scope: 2,
                    join_state: 1,
                },
                port_mtu: None,
            })
        };
        let mut all = Administrators::default();
        let now = Instant::now();
        all.notice(&two_on_one_port(), now, NO_JITTER);
        all.heard(joinable(), now, NO_JITTER);
        assert_eq!(all.rejoins(now + JOIN), Vec::<String>::new());
        all.heard(reply(Answer::Silent), now, NO_JITTER);
        all.heard(joinable(), now, NO_JITTER);
        assert_eq!(all.rejoins(now), Vec::<String>::new());
        assert_eq!(all.rejoins(now + JOIN), ["ib0"]);
        assert_eq!(all.rejoins(now + JOIN), Vec::<String>::new());
    }
}
