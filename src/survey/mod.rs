// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot report` and `ibboot hardware-report`: one archive with everything that this program reads
//! on the machine, without secrets. `--root` takes the extracted archive, so that every command
//! replays on it. `hardware-report` also tests what this program assumes about the hardware.

mod archive;
pub mod claim;
mod disturb;
mod in_use;
mod machine;
mod programs;
mod questions;
mod record;
mod saved;
mod trace;
pub mod tree;

use std::path::{Path, PathBuf};

use archive::Archive;
use claim::Claim;
pub use disturb::Disturbance;

use crate::check;
use crate::error::Result;
use crate::facts::Facts;
use crate::handover;
use crate::rdma::netlink::Rdma;
use crate::system::readiness::event_loop;
use crate::system::root::Root;

/// Writes the archive `output`: tree, facts, versions and kernel lines.
pub fn report(root: &Root, output: &Path) -> Result<()> {
    let mut archive = Archive::create(output)?;
    let facts = tree::facts(root);
    add_machine(&mut archive, &facts)?;
    save_tree(&mut archive, root, &facts)?;
    archive.finish()
}

/// Saves the recorded tree, and what is wrong with the files of the hand-over. Returns the directory
/// of the tree.
fn save_tree(archive: &mut Archive, root: &Root, facts: &Facts) -> Result<PathBuf> {
    let errors = tree::read_rest(root, facts);
    for error in &errors {
        log::warn!("{error}");
    }
    let lines: Vec<String> = errors.iter().map(|error| format!("{error}\n")).collect();
    archive.add("errors", &lines.concat());
    archive.save(root)
}

fn add_machine(archive: &mut Archive, facts: &Facts) -> Result<()> {
    archive.add("facts.json", &handover::json(facts)?);
    archive.add("versions", &machine::versions(&Root::new("/"), facts));
    archive.add("kernel-log", &machine::kernel_lines(facts));
    Ok(())
}

/// Tests the claims, passes each of them to `say`, and writes the archive `output`. False if a claim
/// is false. A disturbance of a port in use is an error before anything else is done.
pub fn hardware_report(
    root: &Root,
    output: &Path,
    disturbance: Option<&Disturbance>,
    say: &mut dyn FnMut(&Claim) -> Result<()>,
) -> Result<bool> {
    let rdma = Rdma::open().ok();
    let runtime = event_loop()?;
    let facts = tree::facts(root);
    if let Some(request) = disturbance {
        disturb::unused(request, root, rdma.as_ref(), &facts)?;
    }
    let mut archive = Archive::create(output)?;
    let mut claims: Vec<Claim> = Vec::new();
    let mut tell = |new: Vec<Claim>| -> Result<()> {
        for claim in &new {
            say(claim)?;
        }
        claims.extend(new);
        Ok(())
    };
    tell(read_completely(&facts))?;
    tell(machine::census(&facts))?;
    for compared in runtime.block_on(questions::programs()) {
        tell(compared.claims)?;
        archive.add(&compared.name, &compared.output);
    }
    tell(questions::event_files(root, rdma.as_ref(), &facts))?;
    tell(runtime.block_on(questions::administrators(root, rdma.as_ref(), &facts)))?;
    tell(questions::ipoib(&facts))?;
    tell(vec![questions::cost_of_looks(root)])?;
    add_machine(&mut archive, &facts)?;
    tell(vec![replay(root, &mut archive, &facts)?])?;
    if let Some(request) = disturbance {
        // The tree shows the machine before the disturbance.
        let machine = Root::new("/");
        let facts = tree::facts(&machine);
        let record = disturb::disturb(request, &machine, rdma.as_ref(), &facts);
        let record = runtime.block_on(record)?;
        tell(record.claims)?;
        archive.add("events", &record.events);
        if let Some(script) = &record.script {
            archive.add("trace", script);
        }
    }
    let lines: Vec<String> = claims.iter().map(|claim| format!("{claim}\n")).collect();
    archive.add("claims", &lines.concat());
    archive.finish()?;
    Ok(!claims.iter().any(Claim::is_false))
}

/// PURE: a false claim for each file that could not be read or parsed.
fn read_completely(facts: &Facts) -> Vec<Claim> {
    let claim = |unread: &crate::facts::Unread| {
        Claim::new(
            "facts",
            format!("{} is read", unread.path),
            Err(&unread.why),
        )
    };
    if facts.unread.is_empty() {
        let count = facts.ports().count();
        let what = format!("of {count} RDMA ports are complete");
        return vec![Claim::new("facts", what, Ok::<_, &str>(()))];
    }
    facts.unread.iter().map(claim).collect()
}

/// Saves the tree: `check` reports the same about the saved tree as about the machine.
fn replay(root: &Root, archive: &mut Archive, facts: &Facts) -> Result<Claim> {
    let (object, what) = ("saved tree", "check reports the same as on the machine");
    let mut basis = match check::basis(root) {
        Ok(Some(basis)) => basis,
        basis => {
            save_tree(archive, root, facts)?;
            return Ok(match basis {
                Ok(_) => Claim::skip(object, what, "nothing is requested"),
                Err(error) => Claim::new(object, what, Err(error)),
            });
        }
    };
    let (found, live) = check::look_and_compare(root, &mut basis, false);
    let saved = save_tree(archive, root, &found)?;
    let saved = check::compare(&Root::new(saved), &mut basis.expectation.into(), false);
    let (live, saved) = (live.text(), saved.text());
    let differs =
        |(live, saved): (&str, &str)| format!("{:?}, not {:?}", saved.trim(), live.trim());
    let pair = live.lines().zip(saved.lines()).find(|(a, b)| a != b);
    let result = match pair {
        _ if live == saved => Ok(()),
        Some(pair) => Err(differs(pair)),
        None => Err("one report has more lines".to_owned()),
    };
    Ok(Claim::new(object, what, result))
}
