// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot plan`: the plan of the next boot, before anything depends on it.

mod archive;
mod cpio;
mod image;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result, printable};
use crate::facts::Readers;
use crate::facts::reader::ONCE;
use crate::plan::{self, Inventory, Plan, notes};
use crate::request::{Request, in_initramfs};
use crate::system::drivers;
use crate::system::modules::name_of;
use crate::system::root::Root;

pub use image::Image;

/// The plan of a boot, and what its image has.
#[derive(Debug, Serialize)]
pub struct Preflight {
    /// What the command line requests.
    #[serde(flatten)]
    pub plan: Plan,
    /// What was found in an image; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

impl Preflight {
    /// Whether the boot can do what is requested.
    pub fn is_possible(&self) -> bool {
        self.plan.refusals.is_empty() && self.plan.complaints.is_empty() && self.has_all()
    }

    /// Whether the image, if one was looked into, has what it needs.
    pub fn has_all(&self) -> bool {
        let missing = self.image.iter().map(|image| image.missing.len());
        missing.sum::<usize>() == 0
    }

    /// The image as text.
    pub fn image_text(&self) -> String {
        let Some(image) = &self.image else {
            return String::new();
        };
        let kernel = image.kernel.as_deref().unwrap_or("unknown");
        let mut text = format!(
            "image: {}, kernel {}\n",
            printable(&image.file),
            printable(kernel)
        );
        for missing in &image.missing {
            text.push_str(&format!("missing: {}\n", printable(missing)));
        }
        for note in &image.notes {
            text.push_str(&format!("note: {}\n", printable(note)));
        }
        if image.missing.is_empty() {
            text.push_str(self.judgement(image));
        }
        text
    }

    /// What was found in an image that lacks nothing.
    fn judgement(&self, image: &Image) -> &'static str {
        if self.plan.requested_by.is_none() {
            "the image has ibboot; no module was checked: the command line requests nothing\n"
        } else if !self.plan.refusals.is_empty() || !self.plan.complaints.is_empty() {
            "the image has ibboot; the boot cannot do what is refused or wrong above\n"
        } else if image.is_driver_unknown {
            "the image has ibboot and the modules of this plan; the driver of the node's card was not checked\n"
        } else {
            "the image has ibboot, and the modules of this plan\n"
        }
    }
}

/// The plan for a command line: for `text`, or for what the files of the machine say, read as the
/// initramfs will read them. Outside an initramfs, a machine without kernel modules is planned for
/// an image that has them.
pub fn plan(root: &Root, text: Option<&str>) -> Result<Preflight> {
    let is_image = in_initramfs(root);
    let request = match text {
        Some(text) => Request::from_text(text),
        None => {
            // Without a command line nothing is known to be requested, or not.
            const LINE: &str = "/proc/cmdline";
            let path = root.path(LINE).display().to_string();
            root.text(LINE)
                .map_err(|e| Error::io(path, "cannot be read", &e))?;
            Request::read_as_initramfs(root)
        }
    };
    let mut inventory = Inventory::of_machine(root)?;
    if !is_image {
        // Live now, but not in the next boot.
        inventory.live.clear();
    }
    let mut plan = plan::plan(&request, &inventory);
    plan.notes.clone_from(&request.strangers);
    if plan.requested_by.is_some() {
        plan.notes = notes::notes(&request, &plan, &inventory, is_image);
        if !is_image && text.is_none() {
            plan.notes.extend(notes::of_files(&request));
        }
    }
    Ok(Preflight { plan, image: None })
}

/// The plan for an image, and what the image lacks. The command line is `text`, or that of the
/// machine, behind the lines that the image has itself. The error says why the image cannot be read.
pub fn with_image(root: &Root, path: &Path, text: Option<&str>) -> Result<Preflight> {
    let files = archive::read(path, &image::is_index)?;
    let running = root.text("/proc/sys/kernel/osrelease").ok();
    let release = image::release(&files, running.as_deref());
    let index = image::index(&files, release.as_deref());
    let request = requested(root, &files, text)?;
    let readers = Readers::of(root, ONCE);
    let inventory = Inventory {
        blacklist: image::blacklist(&files),
        live: BTreeSet::new(),
        ..Inventory::with(root, readers.as_ref(), index)
    };
    let mut plan = plan::plan(&request, &inventory);
    let mut found = Image {
        file: path.display().to_string(),
        missing: image::missing_program(&files),
        is_driver_unknown: false,
        notes: Vec::new(),
        kernel: release,
    };
    plan.notes.clone_from(&request.strangers);
    if plan.requested_by.is_some() {
        found.missing.extend(image::missing_root(&files, &request));
        plan.notes = notes::notes(&request, &plan, &inventory, in_initramfs(root));
    }
    let is_driver = |module: &str| drivers::makes_hcas(module);
    let mut modules = plan.expectation.modules.iter();
    let wants_card = plan.requested_by.is_some() && request.links.is_empty();
    if wants_card && !modules.any(|module| is_driver(&module.name)) {
        let what = "no RDMA card is known here: name the driver of the node's card (rd.driver.post=mlx5_ib) to check it";
        found.notes.push(what.to_owned());
        found.is_driver_unknown = true;
    }
    if let Some(release) = found.kernel.clone() {
        let needed = image::modules(&files, &release, &plan);
        found
            .missing
            .extend(image::missing_modules(&files, &needed));
        firmware(path, &release, &needed, &mut found)?;
        if running.as_ref().is_some_and(|running| *running != release) {
            let running = running.unwrap_or_default();
            found.notes.push(format!(
                "the image is for kernel {release}; this kernel is {running}"
            ));
        }
    } else {
        let what = "no kernel modules are in the image: build it for the kernel that boots (dracut --kver)";
        found.missing.push(what.to_owned());
    }
    Ok(Preflight {
        plan,
        image: Some(found),
    })
}

/// What the command lines of the image and of the machine request.
fn requested(root: &Root, files: &cpio::Files, text: Option<&str>) -> Result<Request> {
    let line = match text {
        Some(text) => ("--cmdline".to_owned(), text.as_bytes().to_vec()),
        None => {
            let path = "/proc/cmdline";
            let line = root
                .read(path)
                .map_err(|e| Error::io(path, "cannot be read", &e))?;
            (path.to_owned(), line)
        }
    };
    let mut lines = image::command_lines(files);
    lines.push(line.clone());
    let request = Request::from_files(&lines);
    // dracut removes the image's own lines before anything else reads them.
    Ok(match request.without_hostonly {
        true => Request::from_files(&[line]),
        false => request,
    })
}

/// Reads the needed modules, which name their firmware.
fn firmware(
    path: &Path,
    release: &str,
    needed: &[(String, String)],
    found: &mut Image,
) -> Result<()> {
    let names: BTreeSet<String> = needed.iter().map(|(path, _)| name_of(path)).collect();
    let is_needed = |file: &str| file.contains("lib/modules/") && names.contains(&name_of(file));
    if needed.is_empty() {
        return Ok(());
    }
    let files = archive::read(path, &is_needed)?;
    for (file, _) in needed {
        let Some(content) = files.content(file) else {
            continue;
        };
        let module = archive::module(content)
            .map_err(|e| Error::io(file, "cannot be read in the image", &e))?;
        found.add_firmware(
            &files,
            release,
            &name_of(file),
            &image::firmware_of(&module),
        );
    }
    Ok(())
}
