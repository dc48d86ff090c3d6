// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the files of one snapshot: a missing file is an answer, and a file that cannot be read or
//! parsed is listed.

use std::collections::BTreeMap;
use std::io;

use nix::unistd::geteuid;

use super::{Obstacle, Unread};
use crate::error::errno_text;
use crate::system::modules::{InitState, init_state, normal};
use crate::system::root::Root;
use crate::wish::expectation::Depth;

/// Reads attributes and lists those that could not be read.
#[derive(Debug)]
pub struct Look<'a> {
    root: &'a Root,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// Which attributes are read.
    pub depth: Depth,
    /// The states of the modules that were read; none of a module that is not loaded.
    pub(super) modules: BTreeMap<String, Option<InitState>>,
}

impl<'a> Look<'a> {
    /// Creates a reader without notes.
    pub fn new(root: &'a Root) -> Self {
        Look {
            root,
            unread: Vec::new(),
            depth: Depth::Ports,
            modules: BTreeMap::new(),
        }
    }

    /// The root of the tree that is read.
    pub fn root(&self) -> &'a Root {
        self.root
    }

    /// Notes an attribute that could not be read.
    pub fn note(&mut self, path: impl Into<String>, why: impl ToString) {
        self.push(path, why, None);
    }

    /// Like [`Look::note`], with what is in the way.
    pub(super) fn push(
        &mut self,
        path: impl Into<String>,
        why: impl ToString,
        obstacle: Option<Obstacle>,
    ) {
        self.unread.push(Unread {
            path: path.into(),
            why: why.to_string(),
            obstacle,
        });
    }

    /// Notes a file that could not be read.
    fn failed(&mut self, path: &str, error: &io::Error) {
        let obstacle = self.obstacle(error, geteuid().is_root());
        self.push(path, errno_text(error), obstacle);
    }

    /// What is in the caller's way. A copy has the failures of another caller.
    fn obstacle(&self, error: &io::Error, is_root: bool) -> Option<Obstacle> {
        let is_live = self.root.is_live();
        is_live.then(|| Obstacle::of_file(error, is_root)).flatten()
    }

    /// The attribute's text. A missing file is a valid answer and is not noted.
    pub fn text(&mut self, path: &str) -> Option<String> {
        let text = self.root.text(path);
        self.present(path, text)
    }

    /// What was read; a missing file is not noted.
    fn present<T>(&mut self, path: &str, read: io::Result<T>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => {
                self.failed(path, &e);
                None
            }
        }
    }

    /// The text of a file that never changes ([`Root::constant`]). A missing file is not noted.
    pub fn constant(&mut self, path: &str) -> Option<String> {
        let text = self.root.constant(path);
        self.present(path, text)
    }

    /// Whether a file holds the word ([`Root::has_word`]). A missing file does not.
    pub fn has_word(&mut self, path: &str, word: &str, limit: u64) -> bool {
        let found = self.root.has_word(path, word, limit);
        self.present(path, found).unwrap_or_default()
    }

    /// Like [`Look::text`]; the errno `nothing` means that the attribute has no value.
    pub fn text_or(&mut self, path: &str, nothing: i32) -> Option<String> {
        match self.root.text(path) {
            Err(e) if e.raw_os_error() == Some(nothing) => None,
            text => self.present(path, text),
        }
    }

    /// The last component of a link's target.
    pub fn link_name(&mut self, path: &str) -> Option<String> {
        let target = self.link(path)?;
        target.rsplit('/').next().map(str::to_owned)
    }

    /// A link's target; none if the path is not a link or does not exist.
    pub(super) fn link(&mut self, path: &str) -> Option<String> {
        match self.root.link(path) {
            Ok(target) => Some(target),
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => None,
            Err(e) => {
                self.failed(path, &e);
                None
            }
        }
    }

    /// The module's state, which one look reads only once.
    pub(super) fn module(&mut self, name: &str) -> Option<InitState> {
        if let Some(state) = self.modules.get(name) {
            return *state;
        }
        match init_state(self.root, name) {
            Ok(state) => {
                self.modules.insert(name.to_owned(), state);
                state
            }
            Err(e) => {
                let path = format!("/sys/module/{}/initstate", normal(name));
                self.failed(&path, &e);
                None
            }
        }
    }

    /// The states of those modules that are loaded.
    pub(super) fn modules(&mut self, names: &[String]) -> BTreeMap<String, InitState> {
        let state = |name: &String| Some((name.clone(), self.module(name)?));
        names.iter().filter_map(state).collect()
    }

    /// Records the file for the copy of this machine; its content comes from another source.
    pub fn keep(&mut self, path: &str) {
        if self.root.is_recording() {
            self.text(path);
        }
    }

    /// Reads a JSON file that was saved together with the files of the machine.
    pub(super) fn saved<T: Default + serde::de::DeserializeOwned>(&mut self, path: &str) -> T {
        self.parsed(path, |text| serde_json::from_str(text))
            .unwrap_or_default()
    }

    /// The attribute's parsed value.
    pub fn parsed<T, E: ToString>(
        &mut self,
        path: &str,
        parse: impl FnOnce(&str) -> std::result::Result<T, E>,
    ) -> Option<T> {
        let text = self.text(path)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(e) => {
                self.note(path, e);
                None
            }
        }
    }

    /// The names in a directory; a missing directory is empty.
    pub fn list(&mut self, path: &str) -> Vec<String> {
        let names = self.root.list(path);
        self.present(path, names).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_the_way_of_another_caller_is_not_in_the_way_of_this_one() {
        for (prefix, expected) in [("/", Some(Obstacle::NotRoot)), ("/copy", None)] {
            let root = Root::new(prefix);
            let denied = io::Error::from_raw_os_error(libc::EACCES);
            assert_eq!(Look::new(&root).obstacle(&denied, false), expected);
        }
    }
}
