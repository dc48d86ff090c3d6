// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot plan`: the plan of the next boot, before anything depends on it.

use crate::error::Result;
use crate::plan::{self, Inventory, Plan, notes};
use crate::request::{Request, in_initramfs};
use crate::system::root::Root;

/// The plan for a command line: for `text`, or for what the files of the machine say, read as the
/// initramfs will read them. Outside an initramfs, a machine without kernel modules is planned for
/// an image that has them.
pub fn plan(root: &Root, text: Option<&str>) -> Result<Plan> {
    let is_image = in_initramfs(root);
    let request = match text {
        Some(text) => Request::from_text(text),
        None => Request::read_as_initramfs(root),
    };
    let inventory = match is_image {
        true => Inventory::read(root)?,
        false => Inventory::assume(root)?,
    };
    let mut plan = plan::plan(&request, &inventory);
    if plan.requested_by.is_some() {
        plan.notes = notes::notes(&request, &plan, &inventory);
        if !is_image && text.is_none() {
            plan.notes.extend(notes::of_files(&request));
        }
    }
    Ok(plan)
}
