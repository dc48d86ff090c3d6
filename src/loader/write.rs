// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes and writes. Until its end nothing can end the process that waits for the kernel, which may
//! be minutes where firmware does not answer: each is carried out by a process of its own.

use std::io;

use super::request::{Answer, Request, refused};
use super::{cards, files};
use crate::error::{Error, Result};
use crate::system::readiness::watched;
use crate::system::root::Root;
use crate::system::worker::{Master, Worker};

/// The job of a worker that carries out one request of the loader.
pub const JOB: &str = "write";

/// Where the kernel is asked for a probe (Documentation/ABI/testing/sysfs-bus-pci).
const PROBE: &str = "/sys/bus/pci/drivers_probe";

/// The worker: carries out the request that it receives, and ends.
pub fn serve() -> io::Result<()> {
    let master = Master::of_process();
    let request = master.receive()?;
    master.send(&carry_out(&Root::new("/"), &request))
}

/// Waits for the kernel.
pub(super) fn carry_out(root: &Root, request: &Request) -> Answer {
    Answer::Done(match request {
        Request::PortTypes { card, ports } => {
            return Answer::Ports(cards::set_port_types(root, card, ports));
        }
        Request::Probe(address) => probe(root, address),
        Request::Write(write) => files::carry_out(root, write),
        Request::Load { .. } | Request::Index => Err(refused("request", &request.to_string())),
    })
}

fn probe(root: &Root, address: &str) -> Result<()> {
    root.set(PROBE, address)
        .map_err(|e| Error::io(address, "cannot be probed", &e))
}

/// Has a worker carry the request out.
pub(super) async fn by(worker: io::Result<Worker>, request: &Request) -> Answer {
    let answer = match worker {
        Ok(worker) => {
            let answer = answer_of(&worker, request).await;
            // A loader carries out many requests: no zombie of each stays.
            worker.end_soon().await;
            answer
        }
        Err(error) => Err(error),
    };
    let failed = |error| Error::io("loader", format!("cannot {request}"), &error);
    answer.unwrap_or_else(|error| Answer::Done(Err(failed(error))))
}

async fn answer_of(worker: &Worker, request: &Request) -> io::Result<Answer> {
    worker.send(request)?;
    let ear = watched(worker.ear()?)?;
    loop {
        let mut ready = ear.readable().await?;
        match worker.receive()? {
            Some(answer) => return Ok(answer),
            None => ready.clear_ready(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn a_worker_leaves_no_zombie() {
        let worker = Worker::start_program(Path::new("/bin/true"), &[JOB]).unwrap();
        let process = Path::new("/proc").join(worker.id().to_string());
        assert!(process.exists());
        let request = Request::Probe("0000:dc:00.0".to_owned());
        let answer = by(Ok(worker), &request).await;
        assert!(answer.is_failed(), "{answer:?}");
        assert!(!process.exists());
    }
}
