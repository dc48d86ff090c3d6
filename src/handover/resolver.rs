// SPDX-License-Identifier: MIT OR Apache-2.0
//! /etc/resolv.conf of the initramfs. dracut's `setup_net` (net-lib.sh) replaces the file with the
//! name servers of one interface: the last interface that is set up has the file to itself.

use super::dracut::{TMP, merged_resolver};
use crate::error::Result;
use crate::system::directory::Directory;

const ETC: &str = "/etc";
/// Name in /etc, and the last part of the name of the file of an interface in [`TMP`].
pub const RESOLV_CONF: &str = "resolv.conf";

/// Adds the lines of `more` that /etc/resolv.conf does not have.
pub fn add(more: &[u8]) -> Result<()> {
    let etc = Directory::existing(ETC)?;
    let current = etc.text(RESOLV_CONF)?;
    let merged = merged_resolver(&current, more);
    if merged == current {
        return Ok(());
    }
    etc.write(RESOLV_CONF, merged.as_bytes())
}

/// Adds the lines of the files that were written for these interfaces (`super::dracut::files`).
pub fn add_again<'n>(interfaces: impl Iterator<Item = &'n str>) -> Result<()> {
    let tmp = Directory::existing(TMP)?;
    let mut lines = Vec::new();
    for name in interfaces {
        let file = tmp.read(&format!("net.{name}.{RESOLV_CONF}"))?;
        lines.extend(file.unwrap_or_default());
    }
    if lines.is_empty() {
        return Ok(());
    }
    add(&lines)
}
