// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose the interfaces are: what the network programs of the initramfs, and then those of the real
//! root, are told.

use kernel_cmdline::Handover;

use crate::check::{expectation, look};
use crate::error::Result;
use crate::facts::Readers;
use crate::facts::reader::IN_BOOT;
use crate::handover::{self, peers};
use crate::rdma::netlink::Rdma;
use crate::request::Request;
use crate::system::directory::Directory;
use crate::system::root::Root;
use crate::{plan, verify};

/// The interfaces are ours: the network programs of the initramfs do not mount what comes over them,
/// whatever becomes of what they are told.
pub fn claim(request: &Request) -> Result<()> {
    if plan::holds_netroot(request) {
        Directory::open()?.write(handover::HOLD, b"")?;
    }
    peers::claim(request).iter().try_for_each(handover::tell)?;
    Ok(())
}

/// What the initramfs told its network programs gives way to what those of the real root are told.
pub fn hand_over(root: &Root, request: &Request) -> Result<()> {
    for claim in peers::claim(request) {
        Directory::below_run(claim.directory)?.remove(&claim.name)?;
    }
    let Some(expectation) = expectation(root)? else {
        return Ok(());
    };
    let readers = Readers::of(root, IN_BOOT);
    let state = handover::read_state(root)?;
    for device in state.iter().flat_map(|state| &state.silent) {
        if let Some(readers) = &readers {
            readers.leave_out(&device.ifname, device.since_ns);
        }
    }
    let facts = look(
        root,
        &expectation,
        readers.as_ref(),
        Rdma::open().ok().as_ref(),
    );
    let report = verify::verify(&expectation, &facts);
    Directory::below_run(peers::NM_PROFILES)?
        .remove_if(|profile| peers::is_generated_for(profile, &report, &facts))?;
    let to = request
        .handover
        .as_ref()
        .map_or(Handover::Auto, |to| to.value);
    for file in peers::hand_over(to, &expectation, &report, &facts) {
        handover::tell(&file)?;
        log::info!("/run/{}/{}: written", file.directory, file.name);
    }
    Ok(())
}
