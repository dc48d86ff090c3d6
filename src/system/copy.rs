// SPDX-License-Identifier: MIT OR Apache-2.0
//! The copy of a machine's files: what was read, why something could not be read, and the tree of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What was read below the prefix, for `ibboot facts --tree`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Recorded {
    /// A file's bytes.
    File(#[serde(with = "latin1")] Vec<u8>),
    /// The target of a link.
    Link(PathBuf),
    /// A directory.
    Dir,
    /// A file or directory that exists and could not be read.
    Lost(Failure),
}

/// What could not be read in a saved tree's machine, as JSON: [`Failure`] by path, without its leading `/`.
pub const FAILURES: &str = "/ibboot-failures.json";

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Failure {
    Errno(i32),
    Words(String),
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Failure {
        match error.raw_os_error() {
            Some(errno) => Failure::Errno(errno),
            None => Failure::Words(error.to_string()),
        }
    }
}

impl From<&Failure> for io::Error {
    fn from(failure: &Failure) -> io::Error {
        match failure {
            Failure::Errno(errno) => io::Error::from_raw_os_error(*errno),
            Failure::Words(words) => io::Error::other(words.clone()),
        }
    }
}

/// Bytes as a JSON string, one character each: nearly all files are ASCII, and a list of numbers has
/// four times the size. A message of a reader has a limit.
mod latin1 {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let byte = |c: char| u8::try_from(c).map_err(|_| D::Error::custom("not a byte"));
        text.chars().map(byte).collect()
    }
}

/// Writes all recorded files below `to`. `shown` gives the bytes to write for a path and its bytes. Without
/// them the copy has a directory in place of the file: nobody can read that. Returns their number.
pub(super) fn write(
    record: &BTreeMap<PathBuf, Recorded>,
    to: &Path,
    shown: impl for<'a> Fn(&str, &'a [u8]) -> Option<Cow<'a, [u8]>>,
) -> io::Result<usize> {
    let mut failures = BTreeMap::new();
    for (path, recorded) in record.iter() {
        let target = to.join(path);
        // A link on the path of a recorded file must lead to a directory of the copy.
        let is_passed = |link: &Path| {
            record
                .range(link.join("")..)
                .next()
                .is_some_and(|(next, _)| next.starts_with(link))
        };
        if let Recorded::Link(link) = recorded
            && is_passed(path)
            && let Some(inside) = inside(to, path, link)
        {
            fs::create_dir_all(inside)?;
        }
        match recorded {
            Recorded::Dir => fs::create_dir_all(&target)?,
            Recorded::Lost(failure) => {
                failures.insert(path, failure);
            }
            Recorded::File(bytes) => match shown(&path.to_string_lossy(), bytes) {
                Some(shown) => {
                    fs::create_dir_all(target.parent().unwrap_or(to))?;
                    fs::write(&target, shown)?;
                }
                None => fs::create_dir_all(&target)?,
            },
            Recorded::Link(link) => {
                fs::create_dir_all(target.parent().unwrap_or(to))?;
                match std::os::unix::fs::symlink(link, &target) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                    other => other?,
                }
            }
        }
    }
    if !failures.is_empty() {
        let list = to.join(FAILURES.trim_start_matches('/'));
        fs::write(list, serde_json::to_vec_pretty(&failures)?)?;
    }
    Ok(record.len())
}

/// The path in the record and in [`FAILURES`].
pub(super) fn place(path: &str) -> &Path {
    Path::new(path.trim_start_matches('/'))
}

/// The target of a relative link of the copy, if the target is inside the copy.
fn inside(to: &Path, path: &Path, link: &Path) -> Option<PathBuf> {
    let mut place: Vec<_> = path.parent()?.components().collect();
    for part in link.components() {
        match part {
            std::path::Component::ParentDir => {
                place.pop()?;
            }
            std::path::Component::Normal(_) => place.push(part),
            _ => return None,
        }
    }
    Some(to.join(place.into_iter().collect::<PathBuf>()))
}
