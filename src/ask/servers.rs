// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the links are verified, the servers that the command line names are asked over RDMA.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use futures_util::future::{FutureExt, LocalBoxFuture, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, timeout};

use crate::error::errno_text;
use crate::rdma::cm::{Cm, DEVICE};
use crate::rdma::reach::{Answer, Next, Seen, Server, hear};
use crate::rdma::types::Guid;
use crate::system::readiness::watched;
use crate::verify::report::{Report, Status};

/// For the neighbour's address, and for the path.
const RESOLVE_MS: u32 = 3000;
/// For all of it. The kernel asks a second time after 4.1 s (CMA_CM_RESPONSE_TIMEOUT).
const PATIENCE: Duration = Duration::from_secs(9);
/// Between the end of a question and the next one to the same server.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Case {
    due: Instant,
    asking: bool,
    answer: Option<Answer>,
}

/// The questions of `up`.
#[derive(Debug, Default)]
pub struct Probing {
    cases: BTreeMap<Server, Case>,
    running: FuturesUnordered<LocalBoxFuture<'static, Seen>>,
}

impl Probing {
    /// What is known so far.
    pub fn seen(&self) -> Vec<Seen> {
        let seen = |(server, case): (&Server, &Case)| {
            let answer = case.answer.clone()?;
            Some(Seen {
                server: *server,
                answer,
            })
        };
        self.cases.iter().filter_map(seen).collect()
    }

    /// Asks where it is time to. An answer that came over links which are gone is forgotten.
    pub fn follow(&mut self, report: &Report) {
        let now = Instant::now();
        for server in &report.servers {
            if server.finding.status == Status::Skipped {
                self.cases.remove(&server.server);
                continue;
            }
            let case = self.cases.entry(server.server).or_insert(Case {
                due: now,
                asking: false,
                answer: None,
            });
            if server.finding.status == Status::Ok || case.asking || case.due > now {
                continue;
            }
            case.asking = true;
            self.running.push(ask(server.server).boxed_local());
        }
    }

    /// When a server is to be asked again.
    pub fn due(&self) -> Option<Instant> {
        let reached = |case: &&Case| !matches!(case.answer, Some(Answer::Reached { .. }));
        let waiting = self
            .cases
            .values()
            .filter(reached)
            .filter(|case| !case.asking);
        waiting.map(|case| case.due).min()
    }

    /// Waits until a question has come to its end.
    pub async fn changed(&mut self) {
        let Some(seen) = self.running.next().await else {
            return std::future::pending().await;
        };
        log::debug!("{}: {:?}", seen.server, seen.answer);
        if let Some(case) = self.cases.get_mut(&seen.server) {
            case.asking = false;
            case.due = Instant::now() + AGAIN;
            case.answer = Some(seen.answer);
        }
    }
}

/// Asks each server once, side by side, for `check`.
pub async fn once(report: &Report) -> Vec<Seen> {
    let due = report
        .servers
        .iter()
        .filter(|server| server.finding.status != Status::Skipped);
    join_all(due.map(|server| ask(server.server))).await
}

async fn ask(server: Server) -> Seen {
    let answer = match timeout(PATIENCE, question(server)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(e)) => refused(&e),
        Err(_) => Answer::Silent,
    };
    Seen { server, answer }
}

/// The kernel did not even begin.
fn refused(error: &io::Error) -> Answer {
    match error.raw_os_error() {
        Some(libc::ENETUNREACH) => Answer::NoRoute,
        Some(libc::ENODEV) => Answer::NoDevice,
        _ => Answer::NotAsked(format!("{DEVICE}: {}", errno_text(error))),
    }
}

async fn question(server: Server) -> io::Result<Answer> {
    let cm = watched(Cm::begin(server.address, server.port, RESOLVE_MS)?)?;
    loop {
        match next(&cm).await? {
            Next::ResolveRoute => cm.get_ref().resolve_route(RESOLVE_MS)?,
            Next::Connect => cm.get_ref().connect()?,
            Next::Reached => {
                let (node_guid, port) = cm.get_ref().way()?;
                return Ok(Answer::Reached {
                    node_guid: Guid(node_guid),
                    port,
                });
            }
            Next::Failed(answer) => return Ok(answer),
            Next::Wait => {}
        }
    }
}

async fn next(cm: &AsyncFd<Cm>) -> io::Result<Next> {
    loop {
        let mut ready = cm.readable().await?;
        if let Some(event) = cm.get_ref().event()? {
            return Ok(hear(event));
        }
        ready.clear_ready();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::checks::Id;
    use crate::verify::report::{Finding, ServerReport};

    fn report(finding: Finding) -> Report {
        let servers = vec![ServerReport {
            server: Server {
                address: "192.0.2.1".parse().unwrap(),
                port: None,
            },
            asked_by: None,
            finding,
        }];
        Report {
            schema: 1,
            boot_id: None,
            taken_ns: 0,
            status: Status::Ok,
            satisfied: false,
            require: String::new(),
            shortfall: None,
            modules: Vec::new(),
            links: Vec::new(),
            servers,
            root: None,
            complaints: Vec::new(),
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_server_is_asked_one_question_at_a_time_and_only_over_good_links() {
        let mut probing = Probing::default();
        probing.follow(&report(Finding::skipped(Id::ServerRdma)));
        assert_eq!((probing.running.len(), probing.due()), (0, None));
        let open = report(Finding::failed(
            Id::ServerRdma,
            "not asked yet",
            "an answer",
        ));
        probing.follow(&open);
        probing.follow(&open);
        assert_eq!((probing.running.len(), probing.due()), (1, None));
        probing.changed().await;
        // This machine has no route there, or no rdma_cm: in both cases it is tried again.
        assert!(probing.due().is_some());
        assert_eq!(probing.seen().len(), 1);
        probing.follow(&report(Finding::skipped(Id::ServerRdma)));
        assert_eq!(probing.seen(), []);
    }
}
