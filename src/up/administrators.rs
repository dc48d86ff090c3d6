// SPDX-License-Identifier: MIT OR Apache-2.0
//! An interface has no carrier on an ACTIVE port: its subnet administrator is asked why, one question
//! at a time per port.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::part::{Judged, Part, Pauses, Wake, jitter, next};
use crate::ask::administrators::{about_interface, in_trouble, interview};
use crate::facts::{Facts, PortRef};
use crate::rdma::sa::{Answer, PATIENT, Patience, QUICK, SaAnswer};

/// A join takes a moment, and right after ACTIVE a subnet manager is still busy.
const GRACE: Duration = Duration::from_secs(2);
/// Between two interviews.
const PAUSES: Pauses = Pauses {
    first: Duration::from_secs(6),
    longest: Duration::from_secs(60),
};
/// A join that was sent into the silence has ended after 3 s (drivers/infiniband/core/multicast.c),
/// one that was sent later is answered at once. No carrier by now: the kernel waits to try again.
const JOIN: Duration = Duration::from_millis(3500);

/// An interface without carrier on an ACTIVE port.
#[derive(Debug)]
struct Case {
    /// Its port, `mlx5_0/1`.
    port: String,
    due: Instant,
    is_running: bool,
    reply: Option<SaAnswer>,
    /// Interviews in a row with this outcome, silence or an answer.
    repeats: u32,
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
                    is_running: false,
                    reply: None,
                    repeats: 0,
                    rejoin: None,
                });
        }
    }

    /// Begins an interview about the interface where it is time to.
    fn begin(&mut self, interface: &str, now: Instant) -> Option<Patience> {
        let port = &self.cases.get(interface)?.port;
        if self.is_queried(port) {
            return None;
        }
        let case = self.cases.get_mut(interface).filter(|c| c.due <= now)?;
        case.is_running = true;
        let reply = case.reply.as_ref();
        let is_silent = reply.is_some_and(|reply| reply.answer == Answer::Silent);
        Some(if is_silent { PATIENT } else { QUICK })
    }

    fn is_queried(&self, port: &str) -> bool {
        let is_same = |case: &Case| case.is_running && case.port == port;
        self.cases.values().any(is_same)
    }

    /// An interview has ended. `later`: the jitter of the next one, up to a second.
    fn heard(&mut self, reply: SaAnswer, now: Instant, later: Duration) {
        log::debug!("{}: {reply:?}", reply.interface);
        if let Some(case) = self.cases.get_mut(&reply.interface) {
            let was = case.reply.as_ref().map(|reply| &reply.answer);
            if was == Some(&Answer::Silent) && matches!(reply.answer, Answer::Joinable { .. }) {
                case.rejoin = Some(now + JOIN);
            }
            let is_silent = reply.answer == Answer::Silent;
            let is_repeated = was.is_some_and(|was| (*was == Answer::Silent) == is_silent);
            case.repeats = if is_repeated {
                case.repeats.saturating_add(1)
            } else {
                0
            };
            case.is_running = false;
            case.due = now + PAUSES.after(case.repeats, later);
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
        let replies = self.cases.values().filter_map(|case| case.reply.as_ref());
        // An interface that has carrier meanwhile is in its group.
        let has_carrier = |name: &str| facts.netdev(name).is_some_and(|n| n.carrier == Some(true));
        let current = replies.filter(|reply| !has_carrier(&reply.interface));
        facts.subnet_administrator = current.cloned().collect();
    }

    fn judged(&mut self, look: Judged<'_>) {
        let links = look.report.links.iter();
        let troubled: BTreeMap<&str, PortRef<'_>> = links
            .filter_map(|link| in_trouble(link, look.facts))
            .collect();
        let names = troubled.iter().map(|(name, port)| (*name, port.name()));
        let now = Instant::now();
        self.notice(&names.collect(), now, jitter());
        for (interface, port) in troubled {
            if let Some(patience) = self.begin(interface, now) {
                let queries = about_interface(look.root, look.rdma, interface, port, patience);
                self.running.push(interview(queries).boxed_local());
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        let cases = self.cases.values();
        let cases = cases.filter(|case| !self.is_queried(&case.port));
        let rejoins = self.cases.values().filter_map(|case| case.rejoin);
        cases.map(|case| case.due).chain(rejoins).min()
    }

    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let changed = async move {
            let reply = next(&mut self.running).await;
            self.heard(reply, Instant::now(), jitter());
            Wake::Look
        };
        changed.boxed_local()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::mad::Group;
    use crate::rdma::sa::{Heard, Interview, Next};

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
        assert_eq!(all.begin("ib0", first), Some(QUICK));
        assert_eq!(all.begin("ib0.8001", first), None);
        assert_eq!(all.due(), None);
        all.heard(reply(Answer::Silent), first, NO_JITTER);
        assert_eq!(all.due(), Some(first), "the other interface");
        assert_eq!(all.begin("ib0", first), None);
        let second = first + PAUSES.first;
        assert_eq!(all.begin("ib0", second), Some(PATIENT));
        all.heard(reply(Answer::NoGroup), second, NO_JITTER);
        assert_eq!(all.begin("ib0", second), None);
        assert_eq!(all.begin("ib0.8001", first), Some(QUICK));
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

    /// MADs in each minute of a port whose subnet administrator does not answer.
    fn mads_per_minute(minutes: usize, later: Duration) -> Vec<u32> {
        let mut all = Administrators::default();
        let start = Instant::now();
        let one = BTreeMap::from([("ib0", "mlx5_0/1".to_owned())]);
        all.notice(&one, start, later);
        let mut counts = vec![0; minutes];
        while let Some(due) = all.due() {
            let mut now = due;
            let patience = all.begin("ib0", now).unwrap();
            let group = "ff12:401b:ffff::ffff:ffff".parse().unwrap();
            let mut interview = Interview::new(Some(group), 2, 1, patience);
            let answer = loop {
                let patience = interview.patience();
                for _ in 0..=patience.retries {
                    let minute = (now - start).as_secs() / 60;
                    let Some(count) = counts.get_mut(minute as usize) else {
                        return counts;
                    };
                    *count += 1;
                    now += Duration::from_millis(patience.timeout_ms.into());
                }
                if let Next::Done(answer) = interview.hear(Heard::Silence(None)) {
                    break answer;
                }
            };
            all.heard(reply(answer), now, later);
        }
        counts
    }

    #[test]
    fn a_dead_administrator_gets_two_packets_a_minute_in_the_end() {
        assert_eq!(mads_per_minute(6, NO_JITTER), [11, 2, 2, 2, 2, 2]);
        let late = Duration::from_nanos(999_999_999);
        assert_eq!(mads_per_minute(6, late), [9, 2, 2, 0, 2, 2]);
    }
}
