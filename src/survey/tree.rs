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

/// Reads what the other commands need, and keeps the answers that no file shows. Returns the errors
/// that another command would report: a report must show them.
pub fn read_rest(root: &Root, facts: &Facts) -> Vec<Error> {
    facts.keep_answers(root);
    // The title of the timeline; a machine without a name has a timeline too.
    root.text(HOST_NAME).ok();
    // `plan` reads the files of an initramfs on every machine.
    Request::read_as_initramfs(root);
    let results = [
        up::Next::look(root, &Request::read(root)).map(drop),
        handover::read_expected(root).map(drop),
        handover::read_state(root).map(drop),
        handover::read_check(root).map(drop),
    ];
    let mut errors: Vec<Error> = Vec::new();
    for error in results.into_iter().filter_map(Result::err) {
        // Several of them read the same file.
        if !errors
            .iter()
            .any(|known| known.to_string() == error.to_string())
        {
            errors.push(error);
        }
    }
    errors
}

/// Writes the recorded tree without secrets to the new directory `to`, which only this user can
/// read.
pub fn save(root: &Root, to: &Path) -> Result<()> {
    let failed = |e: io::Error| Error::io(to.display(), "cannot be written", &e);
    DirBuilder::new().mode(0o700).create(to).map_err(failed)?;
    let files = root.save(to, super::saved::saved).map_err(failed)?;
    log::info!("{}: {files} files saved", to.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_saved_whatever_was_handed_over() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run/ibboot");
        std::fs::create_dir_all(&run).unwrap();
        for name in ["expected.json", "state.json", "check.json"] {
            std::fs::write(run.join(name), r#"{"schema":2}"#).unwrap();
        }
        let proc = folder.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&proc).unwrap();
        std::fs::write(proc.join("osrelease"), "6.1.0\n").unwrap();
        let root = Root::recording(folder.path());
        let facts = Facts::gather(&root, None, &[], Depth::All);
        let errors = read_rest(&root, &facts);
        let errors: Vec<String> = errors.iter().map(Error::to_string).collect();
        let of = |name: &str| {
            format!(
                "/run/ibboot/{name}.json: has schema 2, newer than 1; update ibboot to the version in the \
                 initramfs or later"
            )
        };
        assert_eq!(errors, ["expected", "state", "check"].map(of));
        save(&root, &folder.path().join("saved")).unwrap();
    }
}
