// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: whether an image has what a plan needs: ibboot with its hooks or units, dracut's module for
//! the root file system, the kernel modules with their dependencies, and their firmware.

use std::collections::BTreeSet;

use serde::Serialize;

use super::cpio::Files;
use crate::plan::notes::list;
use crate::plan::{Action, Plan};
use crate::request::Request;
use crate::system::blacklist::Blacklist;
use crate::system::modprobe::MODPROBE;
use crate::system::modules::{Index, MODULES_ALIAS, MODULES_BUILTIN, MODULES_DEP, name_of};
use crate::wish::origin::Origin;
use crate::wish::storage::Protocol;

/// Directories of firmware (drivers/base/firmware_loader/main.c, fw_path), with `@` for the release.
const FIRMWARE: [&str; 4] = [
    "lib/firmware/updates/@",
    "lib/firmware/updates",
    "lib/firmware/@",
    "lib/firmware",
];
/// Endings of compressed firmware files.
const COMPRESSED: [&str; 3] = ["", ".xz", ".zst"];
/// Drivers of which most cards need no firmware: ib_qib names that of the 7220 only (qib_sd7220.c).
const WITHOUT_FIRMWARE: [&str; 1] = ["ib_qib"];
/// Longest name of a firmware file that is believed.
const NAME: usize = 200;
/// Hooks of every image, below dracut's directory of hooks (inst_hook of module-setup.sh).
const HOOKS: [&str; 2] = ["netroot/05-hold.sh", "emergency/10-emergency.sh"];
/// Hooks of an image without systemd.
const HOOKS_WITHOUT_SYSTEMD: [&str; 4] = [
    "cmdline/00-early.sh",
    "cmdline/93-cmdline.sh",
    "pre-trigger/10-zz-ibboot-complete.sh",
    "cleanup/05-cleanup.sh",
];
/// What the hooks source. The shell of an initramfs may end at a missing file.
const SCRIPTS: [&str; 6] = ["cmdline", "ended", "finished", "job", "netroot", "settled"];
/// Hooks of an image with systemd.
const HOOKS_WITH_SYSTEMD: [&str; 3] = [
    "cmdline/93-cmdline.sh",
    "cmdline/99-zz-ibboot-complete.sh",
    "cleanup/05-cleanup.sh",
];
/// In the image of a dracut before 060, this drop-in adds these hooks, as links to scripts.
const LINKING: &str = "dracut-cmdline.service.d/50-ibboot.conf";
/// Units in the image of a dracut with systemd, and drop-ins for those of others.
const UNITS: [&str; 7] = [
    "ibboot.service",
    "ibboot-loader.socket",
    "ibboot-loader@.service",
    "dracut-initqueue.service.d/50-ibboot.conf",
    "systemd-networkd-wait-online.service.d/50-ibboot.conf",
    "nm-wait-online-initrd.service.d/50-ibboot.conf",
    "NetworkManager-wait-online-initrd.service.d/50-ibboot.conf",
];
const GENERATOR: &str = "/usr/lib/systemd/system-generators/ibboot-generator";
const UNIT_DIRECTORY: &str = "usr/lib/systemd/system";

/// What an image has and lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Image {
    /// The file.
    pub file: String,
    /// Release of the kernel whose modules it has.
    pub kernel: Option<String>,
    /// What a boot needs and the image lacks, one line each.
    pub missing: Vec<String>,
    /// No card and no driver is known: whether the image has the driver was not checked.
    #[serde(skip)]
    pub is_driver_unknown: bool,
    /// What a boot may need and the image lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Whose contents a first reading keeps: command lines, modprobe.d and indexes of modules.
pub fn is_index(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_line = path.starts_with("etc/cmdline.d/") && name.ends_with(".conf");
    is_line
        || path == "etc/cmdline"
        || (path.contains("/modprobe.d/") && name.ends_with(".conf"))
        || (path.contains("lib/modules/")
            && matches!(name, MODULES_DEP | MODULES_BUILTIN | MODULES_ALIAS))
}

/// The release of the kernel whose modules the image has: `running` if it is one of several.
pub fn release(files: &Files, running: Option<&str>) -> Option<String> {
    let releases = files.paths().filter_map(|path| {
        let (_, rest) = path.split_once("lib/modules/")?;
        let (release, name) = rest.split_once('/')?;
        matches!(name, MODULES_DEP | MODULES_BUILTIN).then_some(release)
    });
    let releases: BTreeSet<&str> = releases.collect();
    let own = running.filter(|running| releases.contains(running));
    own.or(releases.last().copied()).map(str::to_owned)
}

/// The index of its modules; empty without any.
pub fn index(files: &Files, release: Option<&str>) -> Index {
    let directory = format!("/lib/modules/{}", release.unwrap_or_default());
    let directory = directory.trim_end_matches('/').to_owned();
    let content = |name: &str| {
        files
            .content(&format!("{directory}/{name}"))
            .unwrap_or_default()
    };
    let (dep, builtin) = (content(MODULES_DEP), content(MODULES_BUILTIN));
    Index::parse(directory.clone(), dep, builtin, content(MODULES_ALIAS))
}

/// What modprobe.d(5) in the image forbids.
pub fn blacklist(files: &Files) -> Blacklist {
    let list = |directory: &str| {
        let inside = format!("{}/", directory.trim_start_matches('/'));
        let names = files.paths().filter_map(|path| path.strip_prefix(&inside));
        names.map(str::to_owned).collect()
    };
    let text = |path: &str| {
        let content = files.content(path).unwrap_or_default();
        String::from_utf8_lossy(content).into_owned()
    };
    Blacklist::of(list, text)
}

/// The command lines in the image, in the order in which dracut reads them.
pub fn command_lines(files: &Files) -> Vec<(String, Vec<u8>)> {
    let conf = files
        .paths()
        .filter(|path| path.starts_with("etc/cmdline.d/"));
    let paths = conf.chain(["etc/cmdline"]);
    paths
        .filter_map(|path| Some((format!("/{path}"), files.content(path)?.to_vec())))
        .collect()
}

/// The files of the modules that the plan loads, with those that they need; each with the module
/// that needs it.
pub fn modules(files: &Files, release: &str, plan: &Plan) -> Vec<(String, String)> {
    let directory = format!("/lib/modules/{release}");
    let dep = files.content(&format!("{directory}/{MODULES_DEP}"));
    let dep = String::from_utf8_lossy(dep.unwrap_or_default());
    let mut needed: Vec<(String, String)> = Vec::new();
    let mut known = BTreeSet::new();
    for step in &plan.steps {
        let Action::LoadModule {
            module,
            file: Some(_),
            ..
        } = &step.action
        else {
            continue;
        };
        let lines = dep.lines().filter_map(|line| line.split_once(':'));
        let own = lines.filter(|(path, _)| name_of(path) == *module);
        for (path, needs) in own {
            for path in [path].into_iter().chain(needs.split_ascii_whitespace()) {
                let path = format!("{directory}/{path}");
                if known.insert(path.clone()) {
                    needed.push((path, module.clone()));
                }
            }
        }
    }
    needed
}

/// Images in the image that dracut's modules for squashfs and erofs make of all its files; the last one up to
/// dracut 051.
const INNER: [&str; 4] = [
    "squashfs-root.img",
    "squash-root.img",
    "erofs-root.img",
    "squash/root.img",
];

/// What the image lacks of ibboot itself.
pub fn missing_program(files: &Files) -> Vec<String> {
    const ADD: &str = "build the image with dracut --force --add ibboot";
    if !files.has("/usr/sbin/ibboot") {
        let is_inner = |path: &&str| INNER.iter().any(|inner| path.ends_with(inner));
        let squash = files.paths().find(is_inner);
        return vec![match squash {
            Some(file) => format!(
                "the image has its files in {file} (dracut --squash), which cannot be looked into: see lsinitrd"
            ),
            None => format!("/usr/sbin/ibboot is not in the image: {ADD}"),
        }];
    }
    let has_hook = |hook: &str| {
        let end = format!("dracut/hooks/{hook}");
        files.paths().any(|path| path.ends_with(&end))
    };
    let mut missing = Vec::new();
    let mut lack = |what: &str| missing.push(format!("{what} is not in the image: {ADD}"));
    let has_systemd = files.has(&format!("{UNIT_DIRECTORY}/dracut-initqueue.service"));
    let links = files.has(&format!("{UNIT_DIRECTORY}/{LINKING}"));
    let (own, scripts): (&[&str], &[&str]) = match (has_systemd, links) {
        (true, true) => (&[], &["cleanup", "link", "unit", "zz-ibboot-complete"]),
        (true, false) => (&HOOKS_WITH_SYSTEMD, &["unit"]),
        (false, _) => (&HOOKS_WITHOUT_SYSTEMD, &["start"]),
    };
    for hook in HOOKS.iter().chain(own).filter(|hook| !has_hook(hook)) {
        lack(&format!("the hook {hook}"));
    }
    if has_systemd {
        for unit in UNITS {
            if !files.has(&format!("{UNIT_DIRECTORY}/{unit}")) {
                lack(&format!("the unit {unit}"));
            }
        }
        if !files.has(GENERATOR) {
            lack(GENERATOR);
        }
    }
    for script in SCRIPTS.iter().chain(scripts) {
        let path = format!("/usr/lib/ibboot/{script}.sh");
        if !files.has(&path) {
            lack(&path);
        }
    }
    if !MODPROBE.iter().any(|path| files.has(path)) {
        lack("modprobe");
    }
    missing
}

/// The parts of dracut that mount the root file system of a server: each module, and a program that
/// the module installs (modules.d/*nfs, *iscsi, *nvmf, *livenet of dracut 049 to 110). The module nfs has
/// the library by which livenet mounts an NFS server.
fn mounting(protocol: Protocol) -> &'static [(&'static str, &'static str)] {
    const NFS: (&str, &str) = ("nfs", "/sbin/nfsroot");
    const LIVENET: (&str, &str) = ("livenet", "/sbin/livenetroot");
    match protocol {
        Protocol::Nfs => &[NFS],
        Protocol::Iscsi => &[("iscsi", "/sbin/iscsiroot")],
        Protocol::Nvme => &[("nvmf", "/sbin/nvmf-autoconnect.sh")],
        Protocol::Live => &[LIVENET],
        Protocol::LiveNfs => &[LIVENET, NFS],
    }
}

/// Warewulf's module for dracut, which fetches the root file system into memory, and a hook of this module.
const WAREWULF: (&str, &str) = ("wwinit", "-parse-wwinit.sh");

/// What the image lacks to mount the root file system.
pub fn missing_root(files: &Files, request: &Request) -> Option<String> {
    let absent = |protocol: Protocol| {
        let mut parts = mounting(protocol).iter();
        parts.find(|(_, program)| !files.has(program))
    };
    let without = |module: &str, origin: &Origin| {
        format!(
            "dracut's module {module}, which mounts {origin}, is not in the image: add it (dracut --add {module})"
        )
    };
    if let Some(root) = &request.root {
        let part = absent(root.value.protocol);
        return part.map(|(module, _)| without(module, &root.origin));
    }
    let mut written = request.written.iter().map(|one| &one.origin);
    if let Some(root) = written.find(|origin| origin.argument.starts_with("root=wwinit")) {
        let (module, hook) = WAREWULF;
        let is_there = files.paths().any(|path| path.ends_with(hook));
        return (!is_there).then(|| without(module, root));
    }
    let of_lease = request.root_of_lease.as_ref()?;
    // What dracut's netroot starts for the path of a DHCP server.
    let may_be = [Protocol::Nfs, Protocol::Iscsi, Protocol::Live];
    may_be.map(absent).iter().all(Option::is_some).then(|| {
        format!(
            "{}: no module of dracut that mounts a root file system of a server is in the image: add it (dracut --add nfs, or iscsi)",
            of_lease.requested_by
        )
    })
}

/// The module files that the index names and the image lacks.
pub fn missing_modules(files: &Files, needed: &[(String, String)]) -> Vec<String> {
    let absent = needed.iter().filter(|(path, _)| !files.has(path));
    let line = |(path, by): &(String, String)| {
        let name = name_of(path);
        let needed = match name == *by {
            true => String::new(),
            false => format!(", which {by} needs,"),
        };
        format!(
            "{path}{needed} is not in the image: build the image with dracut --force --add-drivers {name}"
        )
    };
    absent.map(line).collect()
}

/// The names of firmware in a module (`.modinfo`, modinfo(8)).
pub fn firmware_of(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0firmware=";
    let mut names = Vec::new();
    let mut rest = module;
    while let Some(at) = rest.windows(KEY.len()).position(|part| part == KEY) {
        rest = rest.get(at + KEY.len()..).unwrap_or_default();
        let end = rest.iter().take(NAME).position(|byte| *byte == 0);
        let name = end.and_then(|end| std::str::from_utf8(rest.get(..end)?).ok());
        let is_plain =
            |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        names.extend(name.filter(is_plain).map(str::to_owned));
    }
    names
}

impl Image {
    /// Adds what the image lacks of the firmware that a module names. A driver names the firmware of
    /// every card that it knows: one file of several may be enough.
    pub fn add_firmware(&mut self, files: &Files, release: &str, module: &str, names: &[String]) {
        let absent = absent_firmware(files, release, names);
        let list = list(absent.iter().copied());
        let Some(first) = absent.first() else { return };
        let hint = format!("add it (dracut --install /lib/firmware/{first})");
        let is_needed = absent.len() == names.len() && !WITHOUT_FIRMWARE.contains(&module);
        match is_needed {
            true => self
                .missing
                .push(format!("no firmware of {module} is in the image ({list}): {hint}")),
            false => self.notes.push(format!(
                "{module} names firmware that is not in the image: {list}; if the card needs it, {hint}"
            )),
        }
    }
}

fn absent_firmware<'n>(files: &Files, release: &str, names: &'n [String]) -> Vec<&'n str> {
    let has = |name: &String| {
        let directories = FIRMWARE
            .iter()
            .map(|directory| directory.replace('@', release));
        let mut paths = directories.flat_map(|directory| {
            COMPRESSED
                .iter()
                .map(move |ending| format!("/{directory}/{name}{ending}"))
        });
        paths.any(|path| files.has(&path))
    };
    let absent = names.iter().filter(|name| !has(name));
    absent.map(String::as_str).collect()
}
