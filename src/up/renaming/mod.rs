// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether udev may give an interface another name or other settings, and must have done so before
//! the interface is set up. [`reason`] is pure. What cannot be read or understood is a reason.
//!
//! A rule of udev may rename an interface (`NAME=`), or write its MTU or IPoIB mode (`ATTR{}=`,
//! udev(7)). One rule, 80-net-setup-link.rules, takes the name from the `.link` files
//! (systemd.link(5)), whose `NamePolicy=` has no effect with net.ifnames=0
//! (src/udev/net/link-config.c of systemd, enable_name_policy).

mod links;
mod rules;

use std::collections::BTreeSet;

use kernel_cmdline::Source;

use super::hooks::{self, names};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::system::root::Root;

const CMDLINE: &str = "/proc/cmdline";
/// In order of precedence: of two files with one name, the file in the earlier directory counts.
const PLACES: [&str; 5] = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"];
/// The stages whose hooks run after the command line is complete.
const STAGES: [&str; 2] = ["pre-udev", "pre-trigger"];

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
    /// A hook of a site that is to run, as `STAGE/NN-NAME.sh`.
    hook: Option<String>,
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
    if let Some(hook) = &sources.hook {
        return Some(format!("{hook}: a hook that may write rules"));
    }
    if sources.rules.is_empty() {
        return Some("no file of rules found".to_owned());
    }
    let of_rule = |file: &Text| Some(format!("{}: {}", file.path, rules::setting(&file.text)?));
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
        let mut hook = None;
        for stage in STAGES {
            hook = hook.or(hooks::of_site(root, stage)?);
        }
        Ok(Sources {
            cmdline: cmdline.map_err(|e| Error::io(CMDLINE, "cannot be read", &e))?,
            ifname: None,
            rules: texts(root, "udev/rules.d", ".rules")?,
            links,
            hook,
        })
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

/// PURE: what decides in a file of udev, for a saved tree: [`reason`] is the same there. None for
/// other files.
pub fn saved(path: &str, text: &str) -> Option<String> {
    if path.contains("/udev/rules.d/") {
        return Some(rules::setting(text).unwrap_or_default());
    }
    path.contains("/systemd/network/")
        .then(|| links::saved(text))
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
