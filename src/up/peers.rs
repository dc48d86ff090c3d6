// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the files that tell the network programs of the initramfs, and later those of the real
//! root, which interfaces belong to ibboot.

use std::io::ErrorKind;
use std::path::Path;

use kernel_cmdline::Handover;

use crate::check;
use crate::error::Result;
use crate::facts::Readers;
use crate::facts::reader::IN_BOOT;
use crate::handover::{self, peers};
use crate::rdma::netlink::Rdma;
use crate::request::Request;
use crate::system::directory::Directory;
use crate::system::root::Root;
use crate::{plan, verify};

/// The file of dracut for every interface, which dracut removes if the command line names one.
const DRACUT_DEFAULT: &str = "zzzz-dracut-default.network";

/// `up --reserve`: makes the network programs of the initramfs leave our interfaces alone. Holds
/// netroot first, so that nothing is mounted over our interfaces even if the other files cannot be
/// written. Replaces everything that an earlier run wrote: a later hook may have changed the command
/// line.
pub fn reserve(root: &Root, request: &Request) -> Result<()> {
    let directory = Directory::open()?;
    directory.mark(handover::HOLD, plan::holds_netroot(request))?;
    take_back()?;
    let is_alone = plan::addresses_all(request) && !has_networks(root);
    directory.mark(handover::ALONE, is_alone)?;
    peers::reserve(request)
        .iter()
        .try_for_each(handover::write_for)?;
    Ok(())
}

/// Whether a file of the site may give systemd-networkd of the image an interface.
fn has_networks(root: &Root) -> bool {
    let is_of_site = |name: &String| name.ends_with(".network") && name != DRACUT_DEFAULT;
    match root.list(&format!("{}/{}", peers::ETC, peers::NETWORKD)) {
        Ok(names) => names.iter().any(is_of_site),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Removes the files of earlier runs. Creates no directory of a program that is not here.
fn take_back() -> Result<()> {
    for (top, directory) in peers::RESERVED {
        if Path::new(top).join(directory).exists() {
            Directory::below(top, directory)?.remove_if(peers::is_ours)?;
        }
    }
    Ok(())
}

/// `up --hand-over`: removes the files for the network programs of the initramfs, and writes those
/// for the programs of the real root.
pub fn hand_over(root: &Root, request: &Request) -> Result<()> {
    take_back()?;
    let Some(mut basis) = check::basis(root)? else {
        return Ok(());
    };
    let readers = Readers::of(root, IN_BOOT);
    let state = handover::read_state(root)?;
    for device in state.iter().flat_map(|state| &state.silent) {
        if let Some(readers) = &readers {
            readers.leave_out(&device.ifname, device.since_ns);
        }
    }
    let facts = basis.look(root, readers.as_ref(), Rdma::open().ok().as_ref());
    let expectation = &basis.expectation;
    let report = verify::verify(expectation, &facts);
    Directory::below_run(peers::NM_PROFILES)?
        .remove_if(|profile| peers::is_generated_for(profile, &report, &facts))?;
    let to = request
        .handover
        .as_ref()
        .map_or(Handover::Auto, |to| to.value);
    for file in peers::hand_over(to, expectation, &report, &facts) {
        handover::write_for(&file)?;
        log::info!("{}/{}/{}: written", file.top, file.directory, file.name);
    }
    Ok(())
}
