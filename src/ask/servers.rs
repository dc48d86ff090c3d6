// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests over RDMA whether the servers that the command line names answer.

use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use crate::error::errno_text;
use crate::rdma::cm::{Cm, DEVICE};
use crate::rdma::reach::{Answer, Next, Server, ServerAnswer, hear};
use crate::rdma::types::Guid;
use crate::system::readiness::watched;
use crate::verify::report::{Report, Status};

/// Timeout for the address of the neighbour, and for the path (ms).
const RESOLVE_MS: u32 = 3000;
/// Timeout for the whole test. The kernel repeats the connection request after 4.1 s
/// (CMA_CM_RESPONSE_TIMEOUT).
const PATIENCE: Duration = Duration::from_secs(9);

/// Tests each server once, in parallel, for `check`.
pub async fn once(report: &Report) -> Vec<ServerAnswer> {
    let due = report
        .servers
        .iter()
        .filter(|server| server.finding.status != Status::Skipped);
    join_all(due.map(|server| ask(server.server))).await
}

/// Tests one server, and waits up to 9 s for its answer.
pub async fn ask(server: Server) -> ServerAnswer {
    let answer = match timeout(PATIENCE, connect(server)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(e)) => refused(&e),
        Err(_) => Answer::Silent,
    };
    ServerAnswer { server, answer }
}

/// The answer if the kernel rejects the request.
fn refused(error: &io::Error) -> Answer {
    match error.raw_os_error() {
        Some(libc::ENETUNREACH) => Answer::NoRoute,
        Some(libc::ENODEV) => Answer::NoDevice,
        _ => Answer::NotAsked(format!("{DEVICE}: {}", errno_text(error))),
    }
}

async fn connect(server: Server) -> io::Result<Answer> {
    let cm = watched(Cm::begin(server.address, server.port, RESOLVE_MS)?)?;
    loop {
        match next(&cm).await? {
            Next::ResolveRoute => cm.get_ref().resolve_route(RESOLVE_MS)?,
            Next::Connect => match cm.get_ref().connect() {
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                    let (node_guid, port) = cm.get_ref().way()?;
                    return Ok(Answer::Resolved {
                        node_guid: Guid(node_guid),
                        port,
                    });
                }
                sent => sent?,
            },
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
