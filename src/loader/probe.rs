// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the kernel to probe a PCI function. The write returns when the driver's probe ends; until
//! then nothing can end the process, which may be minutes: each probe is a process of its own.

use std::io;

use crate::error::{Error, Result};
use crate::system::readiness::watched;
use crate::system::worker::{Master, Worker};

/// The job of a worker that probes the function with the address that follows.
pub const JOB: &str = "probe";

/// Where the kernel is asked (Documentation/ABI/testing/sysfs-bus-pci).
const PROBE: &str = "/sys/bus/pci/drivers_probe";

/// The worker: reports how the write ended.
pub fn serve(address: &str) -> io::Result<()> {
    let written = std::fs::write(PROBE, address);
    Master::of_process().send(&written.err().map(|error| error.to_string()))
}

/// Has a worker probe the function.
pub(super) async fn carry_out(address: &str) -> Result<()> {
    let failed = |found: String| Error::new(address, "cannot be probed").found(found);
    let end = end_of(Worker::start(&[JOB, address])).await;
    match end {
        Ok(None) => Ok(()),
        Ok(Some(failure)) => Err(failed(failure)),
        Err(error) => Err(failed(error.to_string())),
    }
}

async fn end_of(worker: io::Result<Worker>) -> io::Result<Option<String>> {
    let worker = worker?;
    let ear = watched(worker.ear()?)?;
    loop {
        let mut ready = ear.readable().await?;
        match worker.receive()? {
            Some(failure) => return Ok(failure),
            None => ready.clear_ready(),
        }
    }
}
