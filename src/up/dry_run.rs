// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot up --dry-run`: prints the next changes and applies none.

use std::fmt::Write as _;

use super::log_plan;
use super::naming::Naming;
use crate::changes::{Done, Expected, Ground, What, changes};
use crate::error::{Kind, Result};
use crate::facts::reader::ONCE;
use crate::facts::{Facts, Readers};
use crate::plan::{self, Action, Inventory, Plan, text};
use crate::request::Request;
use crate::system::modules;
use crate::system::root::Root;

/// The next changes of `up`.
#[derive(Debug)]
pub struct Next {
    /// One line per change, in order.
    lines: Vec<String>,
    /// A part of the request is impossible on this machine.
    is_impossible: bool,
    plan: Plan,
}

impl Next {
    /// Reads the machine or the saved tree once and writes nothing. Addresses that leases would
    /// grant are not known.
    pub fn look(root: &Root, request: &Request) -> Result<Next> {
        let readers = Readers::of(root, ONCE);
        let inventory = Inventory::read_by(root, readers.as_ref())?;
        let plan = plan::plan(request, &inventory);
        let expectation = &plan.expectation;
        let (names, depth) = (expectation.module_names(), expectation.depth());
        let facts = Facts::gather(root, readers.as_ref(), &names, depth);
        let facts = facts.answering();
        let expected = Expected::new(&plan.steps, expectation, &facts);
        let mut ground = Ground::read(root, &inventory.modules, &expected, &facts);
        ground.unnamed = Naming::default().begin(root, &plan, &facts);
        let changes = changes(&expected, &facts, &ground, &Done::default());
        let loads = plan.steps.iter().filter_map(|step| match &step.action {
            Action::LoadModule {
                module,
                file: Some(_),
                ..
            } if !modules::is_live(root, module) => Some(format!("{module}: load the module")),
            _ => None,
        });
        let lines = loads.chain(changes.iter().map(ToString::to_string));
        let lines = lines.collect();
        let is_refused = !plan.refusals.is_empty() || !plan.complaints.is_empty();
        let is_impossible = |what: &What| matches!(what, What::Impossible(_));
        Ok(Next {
            lines,
            is_impossible: is_refused || changes.iter().any(|change| is_impossible(&change.what)),
            plan,
        })
    }

    /// Logs the refusals and complaints of the plan. Returns the text of the changes and the exit
    /// code.
    pub fn report(&self) -> (String, u8) {
        if self.plan.requested_by.is_none() {
            return (text::of_plan(&self.plan), Kind::NothingAsked.exit_code());
        }
        log_plan(&self.plan);
        let mut text = String::new();
        for line in &self.lines {
            _ = writeln!(text, "{line}");
        }
        if self.lines.is_empty() {
            text.push_str("nothing to change\n");
        }
        let failed = Kind::Failed.exit_code();
        (text, if self.is_impossible { failed } else { 0 })
    }
}
