// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot check`: compares the machine with what was handed over, or with what the command line
//! requests.

use crate::ask::{administrators, servers};
use crate::error::Result;
use crate::facts::reader::ONCE;
use crate::facts::{Facts, Readers};
use crate::plan::{self, Inventory};
use crate::rdma::netlink::Rdma;
use crate::request::Request;
use crate::system::readiness::event_loop;
use crate::system::root::Root;
use crate::verify::report::Report;
use crate::wish::expectation::Expectation;
use crate::{handover, verify};

/// One snapshot of everything that `expectation` needs.
pub fn look(
    root: &Root,
    expectation: &Expectation,
    readers: Option<&Readers>,
    rdma: Option<&Rdma>,
) -> Facts {
    let names = expectation.module_names();
    let mut facts = Facts::gather(root, readers, &names, expectation.depth());
    facts.add_root(root, rdma);
    facts.add_leases(handover::leases(root));
    facts
}

/// What to compare with: what was handed over in this boot, otherwise what the command line
/// requests.
pub fn expectation(root: &Root) -> Result<Option<Expectation>> {
    match handover::read_expected(root)? {
        Some(expected) => Ok(Some(expected)),
        None => requested(root, &Request::read(root)),
    }
}

/// What a request expects of this machine; none if it requests nothing.
pub fn requested(root: &Root, request: &Request) -> Result<Option<Expectation>> {
    if request.requested_by.is_none() {
        return Ok(None);
    }
    Ok(Some(
        plan::plan(request, &Inventory::read(root)?).expectation,
    ))
}

/// The report of [`look_and_compare`].
pub fn compare(root: &Root, expectation: &Expectation, sm: bool) -> Report {
    look_and_compare(root, expectation, sm).1
}

/// Compares one snapshot of the machine. If an interface has no carrier, queries its subnet
/// administrator; with `sm` also those of the other ports; if all links are verified, the servers.
/// The snapshot includes their answers.
pub fn look_and_compare(root: &Root, expectation: &Expectation, sm: bool) -> (Facts, Report) {
    let rdma = root.is_live().then(|| Rdma::open().ok()).flatten();
    let readers = Readers::of(root, ONCE);
    let mut facts = look(root, expectation, readers.as_ref(), rdma.as_ref());
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
