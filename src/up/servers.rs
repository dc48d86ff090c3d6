// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the servers that the command line names, when the links are verified: one test per server
//! at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::part::{Judged, Part, Pauses, Wake, jitter, next};
use crate::ask::servers::ask;
use crate::facts::Facts;
use crate::rdma::reach::{Answer, Server, ServerAnswer};
use crate::verify::finding::Status;
use crate::verify::report::Report;

/// From the end of a test to the next test of the same server. A test queries the subnet administrator
/// for the path.
const PAUSES: Pauses = Pauses {
    first: Duration::from_secs(2),
    longest: Duration::from_secs(8),
};

#[derive(Debug)]
struct Case {
    due: Instant,
    is_running: bool,
    answer: Option<Answer>,
    /// Tests in a row that left this machine.
    repeats: u32,
}

/// The tested servers.
#[derive(Debug, Default)]
pub struct Servers {
    cases: BTreeMap<Server, Case>,
    running: FuturesUnordered<LocalBoxFuture<'static, ServerAnswer>>,
}

impl Servers {
    /// The servers to test now. Forgets the answers of servers that the plan does not name, or whose links
    /// are not verified any more.
    fn begin(&mut self, report: &Report, now: Instant) -> Vec<Server> {
        let is_tested = |server: &Server| report.servers.iter().any(|one| one.server == *server);
        self.cases.retain(|server, _| is_tested(server));
        let mut begun = Vec::new();
        for server in &report.servers {
            if server.finding.status == Status::Skipped {
                self.cases.remove(&server.server);
                continue;
            }
            let case = self.cases.entry(server.server).or_insert(Case {
                due: now,
                is_running: false,
                answer: None,
                repeats: 0,
            });
            if server.finding.status == Status::Ok || case.is_running || case.due > now {
                continue;
            }
            case.is_running = true;
            begun.push(server.server);
        }
        begun
    }

    /// A test has ended. `later`: the jitter of the next one, up to a second.
    fn record(&mut self, reply: ServerAnswer, now: Instant, later: Duration) {
        log::debug!("{}: {:?}", reply.server, reply.answer);
        if let Some(case) = self.cases.get_mut(&reply.server) {
            case.is_running = false;
            case.due = now + PAUSES.after(case.repeats, later);
            case.repeats = match reply.answer {
                Answer::NotAsked(_) | Answer::NoRoute | Answer::NoDevice => 0,
                _ => case.repeats.saturating_add(1),
            };
            case.answer = Some(reply.answer);
        }
    }

    /// A module was loaded: a test that had no device is made again at once.
    pub fn loaded(&mut self, now: Instant) {
        for case in self.cases.values_mut() {
            if let Some(Answer::NotAsked(_) | Answer::NoDevice) = case.answer {
                case.answer = None;
                case.due = now;
            }
        }
    }

    fn replies(&self) -> Vec<ServerAnswer> {
        let reply = |(server, case): (&Server, &Case)| {
            let answer = case.answer.clone()?;
            Some(ServerAnswer {
                server: *server,
                answer,
            })
        };
        self.cases.iter().filter_map(reply).collect()
    }
}

impl Part for Servers {
    fn add_to(&self, facts: &mut Facts) {
        facts.servers = self.replies();
    }

    fn judged(&mut self, look: Judged<'_>) {
        let begun = self.begin(look.report, Instant::now());
        let tests = begun.into_iter().map(|server| ask(server).boxed_local());
        self.running.extend(tests);
    }

    fn due(&self) -> Option<Instant> {
        let is_open = |case: &&Case| !matches!(case.answer, Some(Answer::Reached { .. }));
        let cases = self.cases.values().filter(is_open);
        let waiting = cases.filter(|case| !case.is_running);
        waiting.map(|case| case.due).min()
    }

    fn changed(&mut self) -> LocalBoxFuture<'_, Wake> {
        let changed = async move {
            let reply = next(&mut self.running).await;
            self.record(reply, Instant::now(), jitter());
            Wake::Look
        };
        changed.boxed_local()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::checks::Id;
    use crate::verify::finding::Finding;
    use crate::verify::report::ServerReport;

    fn server() -> Server {
        Server {
            address: "192.0.2.1".parse().unwrap(),
            port: None,
        }
    }

    fn report(finding: Finding) -> Report {
        let servers = vec![ServerReport {
            server: server(),
            requested_by: None,
            finding,
        }];
        Report {
            servers,
            ..Report::default()
        }
    }

    #[test]
    fn a_server_has_one_test_at_a_time_and_only_over_verified_links() {
        let mut servers = Servers::default();
        let now = Instant::now();
        let skipped = report(Finding::skipped(Id::ServerRdma));
        assert_eq!(servers.begin(&skipped, now), []);
        assert_eq!(servers.due(), None);
        let open = Finding::failed(Id::ServerRdma, "not asked yet", "an answer");
        let open = report(open);
        assert_eq!(servers.begin(&open, now), [server()]);
        assert_eq!(servers.begin(&open, now), []);
        assert_eq!(servers.due(), None);
        let silent = ServerAnswer {
            server: server(),
            answer: Answer::Silent,
        };
        servers.record(silent.clone(), now, Duration::ZERO);
        assert_eq!(servers.replies(), std::slice::from_ref(&silent));
        assert_eq!(servers.due(), Some(now + PAUSES.first));
        assert_eq!(servers.begin(&open, now), []);
        assert_eq!(servers.begin(&open, now + PAUSES.first), [server()]);
        servers.begin(&skipped, now);
        assert_eq!(servers.replies(), []);
        // Another plan tests no server.
        assert_eq!(servers.begin(&open, now), [server()]);
        servers.record(silent, now, Duration::ZERO);
        let nobody = Report {
            servers: Vec::new(),
            ..open
        };
        servers.begin(&nobody, now);
        assert_eq!((servers.due(), servers.replies()), (None, Vec::new()));
    }

    #[test]
    fn a_test_without_a_device_is_made_again_when_a_module_was_loaded() {
        let mut servers = Servers::default();
        let now = Instant::now();
        let open = report(Finding::failed(
            Id::ServerRdma,
            "not asked yet",
            "an answer",
        ));
        let no_file = Answer::NotAsked("rdma_cm: No such file".into());
        let answers = [
            (no_file, true),
            (Answer::NoDevice, true),
            (Answer::Silent, false),
        ];
        for (answer, is_forgotten) in answers {
            servers.cases.clear();
            assert_eq!(servers.begin(&open, now), [server()]);
            let reply = ServerAnswer {
                server: server(),
                answer,
            };
            servers.record(reply, now, Duration::ZERO);
            servers.loaded(now);
            assert_eq!(servers.replies().is_empty(), is_forgotten);
            assert_eq!(!servers.begin(&open, now).is_empty(), is_forgotten);
        }
    }

    #[test]
    fn a_server_that_answered_is_tested_again_only_when_its_check_fails() {
        let mut servers = Servers::default();
        let now = Instant::now();
        let good = report(Finding::ok(Id::ServerRdma, "answers"));
        assert_eq!(servers.begin(&good, now), []);
        let reached = Answer::Reached {
            node_guid: crate::rdma::types::Guid(1),
            port: 1,
        };
        servers.record(
            ServerAnswer {
                server: server(),
                answer: reached,
            },
            now,
            Duration::ZERO,
        );
        assert_eq!(servers.due(), None);
        assert_eq!(servers.begin(&good, now + PAUSES.first), []);
    }

    /// The times of the first tests, in seconds, of a server about which each test ends at once.
    fn times(answer: &Answer, later: Duration) -> [u64; 7] {
        let open = report(Finding::failed(Id::ServerRdma, "", "an answer"));
        let start = Instant::now();
        let mut servers = Servers::default();
        let mut now = start;
        [(); 7].map(|()| {
            assert_eq!(servers.begin(&open, now), [server()]);
            let answer = answer.clone();
            let server = server();
            servers.record(ServerAnswer { server, answer }, now, later);
            let at = now.duration_since(start).as_secs();
            now = servers.due().unwrap();
            at
        })
    }

    #[test]
    fn a_server_that_is_down_is_tested_less_and_less_often() {
        let zero = Duration::ZERO;
        let down = [0, 2, 6, 14, 22, 30, 38];
        assert_eq!(times(&Answer::NoService, zero), down);
        let late = Duration::from_secs(1);
        let later = [0, 3, 9, 21, 33, 45, 57];
        assert_eq!(times(&Answer::Silent, late), later);
        // Nothing is sent to the fabric.
        assert_eq!(times(&Answer::NoRoute, zero), [0, 2, 4, 6, 8, 10, 12]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_test_that_ends_wakes_the_walk() {
        let mut servers = Servers::default();
        let open = Finding::failed(Id::ServerRdma, "not asked yet", "an answer");
        servers.begin(&report(open), Instant::now());
        servers.running.push(ask(server()).boxed_local());
        // This machine has no route to the server, or no rdma_cm: the test is repeated in both
        // cases.
        assert_eq!(servers.changed().await, Wake::Look);
        assert!(servers.due().is_some());
        assert_eq!(servers.replies().len(), 1);
    }
}
