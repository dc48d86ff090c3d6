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
use crate::verify::finding::Status;
use crate::verify::report::Report;

/// Timeout for the address of the neighbour, and for the path (ms).
const RESOLVE_MS: u32 = 3000;
/// Timeout for the whole test. The kernel repeats the connection request after 4.1 s
/// (CMA_CM_RESPONSE_TIMEOUT).
const PATIENCE: Duration = Duration::from_secs(9);

/// Timeout for the end of an accepted connection, which a server confirms at once.
const END: Duration = Duration::from_secs(1);

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
    let (answer, accepted) = match timeout(PATIENCE, connect(server)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(e)) => (refused(&e), None),
        Err(_) => (Answer::Silent, None),
    };
    if let Some(cm) = accepted {
        hang_up(&cm).await;
    }
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

/// The answer, and the connection if the server has accepted one.
async fn connect(server: Server) -> io::Result<(Answer, Option<AsyncFd<Cm>>)> {
    let cm = watched(Cm::begin(server.address, server.port, RESOLVE_MS)?)?;
    loop {
        match next(&cm).await? {
            Next::ResolveRoute => cm.get_ref().resolve_route(RESOLVE_MS)?,
            Next::Connect => match cm.get_ref().connect() {
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                    let (node_guid, port) = cm.get_ref().way()?;
                    let node_guid = Guid(node_guid);
                    return Ok((Answer::Resolved { node_guid, port }, None));
                }
                sent => sent?,
            },
            Next::Reached => return Ok((reached(&cm)?, None)),
            Next::Accepted => return Ok((reached(&cm)?, Some(cm))),
            Next::Failed(answer) => return Ok((answer, None)),
            Next::Wait | Next::Ended => {}
        }
    }
}

fn reached(cm: &AsyncFd<Cm>) -> io::Result<Answer> {
    let (node_guid, port) = cm.get_ref().way()?;
    Ok(Answer::Reached {
        node_guid: Guid(node_guid),
        port,
    })
}

/// Ends an accepted connection. If the file were only closed, the kernel would send a reject, which an
/// NFS server ignores: it keeps such a connection, with its buffers, for 6 to 12 minutes
/// (svc_rdma_cma_handler of net/sunrpc/xprtrdma/svc_rdma_transport.c, svc_age_temp_xprts of
/// net/sunrpc/svc_xprt.c), and of too many connections it closes the oldest.
async fn hang_up(cm: &AsyncFd<Cm>) {
    let end = async {
        cm.get_ref().hang_up()?;
        // The kernel repeats a message that is lost, while the file is open.
        while next(cm).await? != Next::Ended {}
        io::Result::Ok(())
    };
    match timeout(END, end).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => log::debug!("{DEVICE}: {}", errno_text(&e)),
        Err(_) => log::debug!("{DEVICE}: the server does not confirm the end of a connection"),
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
