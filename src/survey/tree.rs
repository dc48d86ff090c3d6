// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads everything that a command of this program reads, so that the recorded tree serves every
//! command as the machine does.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::facts::reader::ONCE;
use crate::facts::{Facts, Readers};
use crate::handover;
use crate::rdma::netlink::Rdma;
use crate::request::Request;
use crate::system::root::Root;
use crate::up;
use crate::wish::expectation::Depth;

/// Everything that `ibboot facts` prints.
pub fn facts(root: &Root) -> Facts {
    let rdma = root.is_live().then(|| Rdma::open().ok()).flatten();
    let modules: Vec<String> = kernel_cmdline::RDMA_MODULES
        .iter()
        .map(ToString::to_string)
        .collect();
    let readers = Readers::of(root, ONCE);
    let mut facts = Facts::gather(root, readers.as_ref(), &modules, Depth::All);
    facts.add_root(root, rdma.as_ref());
    facts.add_leases(handover::leases(root));
    facts
}

/// The host name.
pub const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Reads what the other commands need, and keeps the answers that no file shows.
pub fn read_rest(root: &Root, facts: &Facts) -> Result<()> {
    facts.keep_answers(root);
    up::Next::look(root, &Request::read(root))?;
    handover::read_expected(root)?;
    handover::read_state(root)?;
    handover::read_check(root)?;
    // The title of the timeline; a machine without a name has a timeline too.
    root.text(HOST_NAME).ok();
    Ok(())
}

/// Writes the recorded tree without secrets to the new directory `to`, which only this user can
/// read.
pub fn save(root: &Root, to: &Path) -> Result<()> {
    let failed = |e: io::Error| Error::io(to.display(), "cannot be written", &e);
    DirBuilder::new().mode(0o700).create(to).map_err(failed)?;
    let files = root.save(to, handover::saved::saved).map_err(failed)?;
    log::info!("{}: {files} files saved", to.display());
    Ok(())
}
