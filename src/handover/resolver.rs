// SPDX-License-Identifier: MIT OR Apache-2.0
//! /etc/resolv.conf of the initramfs. dracut's `setup_net` (net-lib.sh) replaces the file with the
//! name servers of one interface: the last interface that is set up has the file to itself.

use std::path::Path;

use super::dracut::{TMP, merged_resolver};
use crate::error::Result;
use crate::system::directory::Directory;

const ETC: &str = "/etc";
/// Name in /etc, and the last part of the name of the file of an interface in [`TMP`].
pub const RESOLV_CONF: &str = "resolv.conf";

/// Where systemd-resolved writes the name servers that it uses (systemd-resolved.service(8)).
const RESOLVED: &str = "/run/systemd/resolve";
/// The end of the link to its stub.
const STUB: &str = "run/systemd/resolve/stub-resolv.conf";

/// Adds the lines of `more` that /etc/resolv.conf does not have.
pub fn add(more: &[u8]) -> Result<()> {
    let etc = Directory::existing(ETC)?;
    // systemd-resolved makes a link to its own file: its servers stay, in a file that has both.
    let link = std::fs::read_link(Path::new(ETC).join(RESOLV_CONF));
    let is_resolved = link.is_ok_and(|target| target.ends_with(STUB));
    let current = match is_resolved {
        // Without the file systemd-resolved has no servers yet.
        true => Directory::existing(RESOLVED)
            .and_then(|resolved| resolved.text(RESOLV_CONF))
            .unwrap_or_default(),
        false => etc.text(RESOLV_CONF)?,
    };
    let merged = merged_resolver(&current, more);
    if !is_resolved && merged == current {
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
