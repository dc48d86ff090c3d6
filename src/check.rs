// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot check`: compares the machine with what was handed over, or with what the command line
//! requests.

use std::path::Path;

use crate::ask::{administrators, servers};
use crate::error::{Error, Result};
use crate::facts::reader::ONCE;
use crate::facts::{Facts, Readers};
use crate::plan::{self, Inventory};
use crate::rdma::netlink::Rdma;
use crate::request::Request;
use crate::system::directory::Directory;
use crate::system::readiness::event_loop;
use crate::system::root::Root;
use crate::verify::report::Report;
use crate::wish::expectation::Expectation;
use crate::{handover, verify};

/// How often a look is repeated while names change.
const AGAIN: usize = 3;

/// What a machine is compared with.
#[derive(Debug)]
pub struct Basis {
    /// What the machine must have.
    pub expectation: Expectation,
    /// The snapshot of the plan, for the first look: all ports, and no module.
    planned: Option<Facts>,
}

impl From<Expectation> for Basis {
    fn from(expectation: Expectation) -> Basis {
        Basis {
            expectation,
            planned: None,
        }
    }
}

impl Basis {
    /// One snapshot of everything that the expectation needs. The snapshot of the plan is completed
    /// if it has the depth.
    pub fn look(&mut self, root: &Root, readers: Option<&Readers>, rdma: Option<&Rdma>) -> Facts {
        let mut facts = self.look_once(root, readers, rdma);
        for _ in 0..AGAIN {
            if !facts.is_outdated(root) {
                break;
            }
            facts = self.look_once(root, readers, rdma);
        }
        facts
    }

    fn look_once(&mut self, root: &Root, readers: Option<&Readers>, rdma: Option<&Rdma>) -> Facts {
        let names = self.expectation.module_names();
        let depth = self.expectation.depth();
        let mut facts = match self.planned.take().filter(|_| depth == plan::DEPTH) {
            Some(mut facts) => {
                facts.add_modules(root, &names);
                facts
            }
            None => Facts::gather(root, readers, &names, depth),
        };
        facts.add_root(root, rdma);
        facts.add_leases(handover::leases(root));
        facts
    }
}

/// What to compare with: what was handed over in this boot, otherwise what the command line
/// requests.
pub fn basis(root: &Root) -> Result<Option<Basis>> {
    match handover::read_expected(root)? {
        Some(expected) => Ok(Some(expected.into())),
        None => requested(root, &Request::read(root)),
    }
}

/// What a request expects of this machine; none if it requests nothing.
pub fn requested(root: &Root, request: &Request) -> Result<Option<Basis>> {
    if request.requested_by.is_none() {
        return Ok(None);
    }
    let inventory = Inventory::of_machine(root)?;
    Ok(Some(Basis {
        expectation: plan::plan(request, &inventory).expectation,
        planned: Some(inventory.facts),
    }))
}

/// The report of [`look_and_compare`].
pub fn compare(root: &Root, basis: &mut Basis, sm: bool) -> Report {
    look_and_compare(root, basis, sm).1
}

/// Compares one snapshot of the machine. If an interface has no carrier, queries its subnet
/// administrator; with `sm` also those of the other ports; if all links are verified, the servers.
/// The snapshot includes their answers.
pub fn look_and_compare(root: &Root, basis: &mut Basis, sm: bool) -> (Facts, Report) {
    let rdma = root.is_live().then(|| Rdma::open().ok()).flatten();
    let readers = Readers::of(root, ONCE);
    let mut facts = basis.look(root, readers.as_ref(), rdma.as_ref());
    let expectation = &basis.expectation;
    let report = verify::verify(expectation, &facts);
    if !root.is_live()
        || (report.servers.is_empty() && !administrators::is_needed(&facts, &report, sm))
    {
        return (facts, report);
    }
    let answers = event_loop().map(|runtime| {
        runtime.block_on(async {
            let administrators =
                administrators::once(root, rdma.as_ref(), &facts, &report, sm).await;
            (administrators, servers::once(&report).await)
        })
    });
    match answers {
        Ok(((administrators, managers), servers)) => {
            facts.subnet_administrator = administrators;
            facts.subnet_managers = managers;
            facts.servers = servers;
            let report = verify::verify(expectation, &facts);
            (facts, report)
        }
        Err(error) => {
            log::warn!("{error}");
            (facts, report)
        }
    }
}

/// Replaces a file of node_exporter's textfile collector. The collector reads `*.prom` at any time,
/// so the file must never be incomplete; the temporary file has another ending.
pub fn write_textfile(file: &Path, text: &str) -> Result<()> {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
        return Err(Error::new("--textfile", "is not the name of a file"));
    };
    // The file is replaced: a device like /dev/null must not be.
    if !name.ends_with(".prom") {
        return Err(
            Error::new("--textfile", "node_exporter does not read this file")
                .found(name)
                .expected("a name that ends in .prom"),
        );
    }
    let directory = match file.parent().and_then(|parent| parent.to_str()) {
        None | Some("") => ".",
        Some(parent) => parent,
    };
    Directory::named(directory)?.write(name, text.as_bytes())
}

/// Writes the first report of this boot for `timeline`: a later one says nothing about the boot. A file
/// that cannot be read may be that report.
pub fn record(root: &Root, report: &Report) -> Result<()> {
    if handover::has_check(root)? {
        return Ok(());
    }
    let text = handover::json(report)?;
    Directory::open()?.write(handover::CHECK, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_renamed_during_a_look_is_looked_at_again() {
        let tree = tempfile::tempdir().unwrap();
        let class = tree.path().join("sys/class");
        for (before, after) in [
            ("infiniband/mlx5_0", "infiniband/ibp65s0"),
            ("net/ib0", "net/ibp65s0"),
        ] {
            fs::create_dir_all(class.join(before)).unwrap();
            fs::write(class.join(before).join("type"), "32\n").unwrap();
            let root = Root::new(tree.path());
            let request = Request::from_text("rd.ib.require=any");
            let mut basis = requested(&root, &request).unwrap().unwrap();
            assert_eq!(
                basis.expectation.depth(),
                plan::DEPTH,
                "the snapshot of the plan is used"
            );
            fs::rename(class.join(before), class.join(after)).unwrap();
            let facts = basis.look(&root, None, None);
            let devices = facts
                .devices
                .iter()
                .map(|device| format!("infiniband/{}", device.ifname));
            let netdevs = facts
                .netdevs
                .iter()
                .map(|netdev| format!("net/{}", netdev.ifname));
            assert!(devices.chain(netdevs).any(|name| name == after), "{after}");
        }
    }
}
