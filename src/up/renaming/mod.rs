// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether udev may give an interface another name or other settings, and must have done so before
//! the interface is set up. [`reason`] is pure. What cannot be read or understood is a reason.
//!
//! udev renames an interface for `NAME=` of a rule (udev(7)). One rule, 80-net-setup-link.rules,
//! takes the name from the `.link` files (systemd.link(5)), whose `NamePolicy=` has no effect with
//! net.ifnames=0 (src/udev/net/link-config.c of systemd, enable_name_policy).

mod links;
mod rules;

use std::collections::BTreeSet;
use std::io;

use kernel_cmdline::Source;

use super::contract::HOOKDIR;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::system::root::Root;

const CMDLINE: &str = "/proc/cmdline";
/// In order of precedence: of two files with one name, the file in the earlier directory counts.
const PLACES: [&str; 5] = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"];
/// systemd writes rules and .link files of system credentials (systemd.system-credentials(7)).
const CREDENTIALS: [&str; 2] = ["/run/credentials/@system", "/run/credentials/@encrypted"];
const OF_CREDENTIALS: [&str; 2] = ["network.link.", "udev.rules."];
/// The stages whose hooks run after the command line is complete.
const STAGES: [&str; 2] = ["pre-udev", "pre-trigger"];
/// The hooks of dracut in these stages, which write no `NAME=`. ifname-genrules.sh does so for ifname=.
const HOOKS: [&str; 19] = [
    "block-genrules.sh",
    "dm-pre-udev.sh",
    "dmsquash-live-genrules.sh",
    "fips-load-crypto.sh",
    "ifname-genrules.sh",
    "lldpad.sh",
    "load-modsign-keys.sh",
    "load-thermal.sh",
    "mdmon-pre-udev.sh",
    "multipathd.sh",
    "net-genrules.sh",
    "nfs-start-rpc.sh",
    "parse-dm.sh",
    "parse-md.sh",
    "plymouth-pretrigger.sh",
    "resume-genrules.sh",
    "warpclock.sh",
    "watchdog.sh",
    "zz-ibboot-complete.sh",
];

/// A file of the machine.
#[derive(Debug)]
struct Text {
    path: String,
    text: String,
}

/// What decides whether udev renames an interface.
#[derive(Debug, Default)]
struct Sources {
    /// The bytes of /proc/cmdline: udev reads no other file of arguments.
    cmdline: Vec<u8>,
    /// An `ifname=` of any file of arguments.
    ifname: Option<String>,
    /// Files of rules.d that count.
    rules: Vec<Text>,
    /// `.link` files that count, and all their drop-ins.
    links: Vec<Text>,
    /// Hooks that are to run, as `STAGE/NN-NAME.sh`.
    hooks: Vec<String>,
    /// Names of system credentials.
    credentials: Vec<String>,
}

/// Why udev goes first at a new interface; none if udev leaves the name and the settings as they are.
pub fn reason_to_wait(root: &Root, plan: &Plan) -> Option<String> {
    let mut arguments = plan.tokens.iter().map(|token| &token.origin.argument);
    let ifname = arguments.find(|argument| argument.starts_with("ifname"));
    match Sources::read(root) {
        Ok(sources) => reason(&Sources {
            ifname: ifname.cloned(),
            ..sources
        }),
        Err(error) => Some(error.to_string()),
    }
}

fn reason(sources: &Sources) -> Option<String> {
    if let Some(ifname) = &sources.ifname {
        return Some(ifname.clone());
    }
    let is_own = |hook: &&String| {
        let name = hook.rsplit('/').next().unwrap_or_default();
        HOOKS.contains(&name.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-'))
    };
    if let Some(hook) = sources.hooks.iter().find(|hook| !is_own(hook)) {
        return Some(format!("{hook}: a hook that may write rules"));
    }
    let writes = |name: &&String| OF_CREDENTIALS.iter().any(|prefix| name.starts_with(prefix));
    if let Some(name) = sources.credentials.iter().find(writes) {
        return Some(format!("credential {name}"));
    }
    if sources.rules.is_empty() {
        return Some("no file of rules found".to_owned());
    }
    let of_rule = |file: &Text| Some(format!("{}: {}", file.path, rules::naming(&file.text)?));
    if let Some(rule) = sources.rules.iter().find_map(of_rule) {
        return Some(rule);
    }
    let arguments = Source::new(CMDLINE, &sources.cmdline);
    let is_policy = |key: &[u8]| matches!(key, b"net.ifname-policy" | b"net.ifname_policy");
    if arguments.tokens().any(|token| is_policy(token.key)) {
        // systemd-network-generator writes a .link file.
        return Some("net.ifname-policy=".to_owned());
    }
    let mut ifnames = arguments
        .tokens()
        .filter(|token| token.key == b"net.ifnames")
        .peekable();
    let has_policy = ifnames.peek().is_none() || !ifnames.all(|token| token.value == Some(b"0"));
    let of_link = |file: &Text| {
        Some(format!(
            "{}: {}",
            file.path,
            links::setting(&file.text, has_policy)?
        ))
    };
    sources.links.iter().find_map(of_link)
}

impl Sources {
    fn read(root: &Root) -> Result<Sources> {
        let cmdline = root.read(CMDLINE);
        let mut links = texts(root, "systemd/network", ".link")?;
        for place in PLACES {
            let directory = format!("{place}/systemd/network");
            for name in names(root, &directory)? {
                if name.ends_with(".link.d") {
                    links.extend(drop_ins(root, &format!("{directory}/{name}"))?);
                }
            }
        }
        let mut credentials = Vec::new();
        for directory in CREDENTIALS {
            credentials.extend(names(root, directory)?);
        }
        Ok(Sources {
            cmdline: cmdline.map_err(|e| Error::io(CMDLINE, "cannot be read", &e))?,
            ifname: None,
            rules: texts(root, "udev/rules.d", ".rules")?,
            links,
            hooks: hooks(root)?,
            credentials,
        })
    }
}

fn hooks(root: &Root) -> Result<Vec<String>> {
    let hookdir = match root.text(HOOKDIR) {
        // No initramfs of dracut.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(|e| Error::io(HOOKDIR, "cannot be read", &e))?,
    };
    let mut hooks = Vec::new();
    for stage in STAGES {
        let names = names(root, &format!("{hookdir}/{stage}"))?.into_iter();
        let scripts = names.filter(|name| name.ends_with(".sh"));
        hooks.extend(scripts.map(|name| format!("{stage}/{name}")));
    }
    Ok(hooks)
}

/// The names in a directory; none if there is no such directory.
fn names(root: &Root, directory: &str) -> Result<Vec<String>> {
    match root.list(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|e| Error::io(directory, "cannot be read", &e)),
    }
}

/// The files of `directory` below all places that no file of an earlier place replaces.
fn texts(root: &Root, directory: &str, ending: &str) -> Result<Vec<Text>> {
    let (mut texts, mut known) = (Vec::new(), BTreeSet::new());
    for place in PLACES {
        let directory = format!("{place}/{directory}");
        for name in names(root, &directory)? {
            let path = format!("{directory}/{name}");
            if name.ends_with(ending) && known.insert(name) {
                texts.extend(text(root, path)?);
            }
        }
    }
    Ok(texts)
}

fn drop_ins(root: &Root, directory: &str) -> Result<Vec<Text>> {
    let names = names(root, directory)?.into_iter();
    let texts = names
        .filter(|name| name.ends_with(".conf"))
        .filter_map(|name| text(root, format!("{directory}/{name}")).transpose());
    texts.collect()
}

/// None for a link to /dev/null, which stands for an empty file.
fn text(root: &Root, path: String) -> Result<Option<Text>> {
    if root.link(&path).is_ok_and(|target| target == "/dev/null") {
        return Ok(None);
    }
    let text = root.text(&path);
    let text = text.map_err(|e| Error::io(&path, "cannot be read", &e))?;
    Ok(Some(Text { path, text }))
}

#[cfg(test)]
mod tests;
