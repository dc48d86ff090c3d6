// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every file access of the program, below a prefix: `/` on a machine, another directory for a
//! saved tree in a test or bug report.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::Mode;
use serde::Serialize;

use super::BOOT_ID;
use super::copy::{self, FAILURES, Failure, Recorded, place};
use crate::error::Error;

/// Size limit of a file; modules.alias of a full distribution kernel has about 1.5 MB, state.json of
/// 4,096 ports about 4 MiB.
const FILE_MAX: u64 = 16 << 20;
/// Largest size of a sysfs attribute (fs/sysfs/file.c).
const PAGE: usize = 4096;

/// A path, the word that is looked for, and in how many bytes.
type Word = (String, String, u64);

/// The root of all paths.
#[derive(Debug)]
pub struct Root {
    prefix: PathBuf,
    record: Option<RefCell<BTreeMap<PathBuf, Recorded>>>,
    /// Results of [`Root::has_word`], with the errno of a failure.
    words: RefCell<BTreeMap<Word, Result<bool, Option<i32>>>>,
    /// Results of [`Root::constant`]; none: there is no such file.
    constants: RefCell<BTreeMap<String, Option<String>>>,
    /// The content of [`FAILURES`].
    failures: OnceCell<BTreeMap<PathBuf, Failure>>,
}

impl Root {
    /// Creates a root with all paths below `prefix`.
    pub fn new(prefix: impl Into<PathBuf>) -> Self {
        Root {
            prefix: prefix.into(),
            record: None,
            words: RefCell::default(),
            constants: RefCell::default(),
            failures: OnceCell::default(),
        }
    }

    /// Like [`Root::new`], and records every file for [`Root::save`].
    pub fn recording(prefix: impl Into<PathBuf>) -> Self {
        Root {
            record: Some(RefCell::default()),
            ..Root::new(prefix)
        }
    }

    /// True for the running machine, false for a saved tree.
    pub fn is_live(&self) -> bool {
        self.prefix == Path::new("/")
    }

    /// True if files are recorded for [`Root::save`].
    pub fn is_recording(&self) -> bool {
        self.record.is_some()
    }

    /// Stores a value that no file of the machine contains in the copy, as JSON.
    pub fn keep(&self, path: &str, value: &impl Serialize) {
        if let Ok(bytes) = serde_json::to_vec_pretty(value) {
            self.remember(path, || Recorded::File(bytes));
        }
    }

    /// Path on this machine of `path`, which is absolute inside the tree.
    pub fn path(&self, path: &str) -> PathBuf {
        self.prefix.join(path.trim_start_matches('/'))
    }

    /// The kernel's id of this boot; none if the file cannot be read.
    pub fn boot_id(&self) -> Option<String> {
        self.constant(BOOT_ID).ok()
    }

    fn remember(&self, path: &str, recorded: impl FnOnce() -> Recorded) {
        if let Some(record) = &self.record {
            record
                .borrow_mut()
                .insert(PathBuf::from(path.trim_start_matches('/')), recorded());
        }
    }

    /// What is recorded, by path without its leading `/`.
    pub fn recorded(&self) -> BTreeMap<PathBuf, Recorded> {
        let record = self.record.as_ref();
        record
            .map(|record| record.borrow().clone())
            .unwrap_or_default()
    }

    /// Adds what another process recorded.
    pub fn adopt(&self, recorded: BTreeMap<PathBuf, Recorded>) {
        if let Some(record) = &self.record {
            record.borrow_mut().extend(recorded);
        }
    }

    /// Records a file that [`Root::read`] did not read.
    pub fn remember_file(&self, path: &str, bytes: &[u8]) {
        self.remember(path, || Recorded::File(bytes.to_vec()));
    }

    /// Records that a file was not read, which [`Root::read`] did not try to read.
    pub fn remember_failure(&self, path: &str, error: &Error) {
        let words = error.found.as_ref().unwrap_or(&error.what).clone();
        self.remember(path, || Recorded::Lost(Failure::Words(words)));
    }

    /// Whether the copy will have the file, or tell why it cannot be read.
    pub fn is_remembered(&self, path: &str) -> bool {
        let record = self.record.as_ref().map(RefCell::borrow);
        record.is_some_and(|record| record.contains_key(place(path)))
    }

    /// The paths of the recorded files, absolute inside the tree.
    pub fn recorded_files(&self) -> Vec<String> {
        let record = self.record.as_ref().map(RefCell::borrow);
        let files = record.iter().flat_map(|record| record.iter());
        let files = files.filter(|(_, recorded)| matches!(recorded, Recorded::File(_)));
        files
            .map(|(path, _)| format!("/{}", path.display()))
            .collect()
    }

    /// Reads, unless the machine of a saved tree could not. Records why something that exists could not be
    /// read, and its directory: the copy needs the directory of a device whose files all fail.
    fn attempt<T>(&self, path: &str, read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let place = place(path);
        let result = match self.failures().get(place) {
            Some(failure) => Err(failure.into()),
            None => read(),
        };
        if let (Some(record), Err(error)) = (&self.record, &result)
            && error.kind() != io::ErrorKind::NotFound
            && let Some(parent) = place.parent()
        {
            let mut record = record.borrow_mut();
            record.entry(parent.to_path_buf()).or_insert(Recorded::Dir);
            let lost = || Recorded::Lost(error.into());
            record.entry(place.to_path_buf()).or_insert_with(lost);
        }
        result
    }

    /// What the machine of a saved tree could not read. A damaged list is empty: the facts tell that it is.
    fn failures(&self) -> &BTreeMap<PathBuf, Failure> {
        self.failures.get_or_init(|| {
            let bytes = (!self.is_live()).then(|| self.bytes(FAILURES).ok());
            let parse = |bytes: Vec<u8>| serde_json::from_slice(&bytes).ok();
            bytes.flatten().and_then(parse).unwrap_or_default()
        })
    }

    /// Reads a whole regular file: `FileTooLarge` beyond 16 MiB, `IsADirectory` and `Unsupported`
    /// for other files. All files of sysfs and procfs that this program reads are regular.
    pub fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let bytes = self.attempt(path, || self.bytes(path))?;
        self.remember(path, || Recorded::File(bytes.clone()));
        Ok(bytes)
    }

    fn bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        if self.is_live() && path.starts_with("/sys/") {
            // The kernel has only regular files here.
            return content(self.opened(path)?, None);
        }
        let (file, size) = self.open(path)?;
        content(file, Some(size))
    }

    fn opened(&self, path: &str) -> io::Result<fs::File> {
        let path = self.path(path);
        // O_NONBLOCK: the open of a planted fifo must not wait for a writer.
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        // musl's open(3) adds a system call for O_CLOEXEC, its openat(3) does not.
        let open = || openat(AT_FDCWD, &path, flags, Mode::empty()).map_err(io::Error::from);
        retried(open).map(fs::File::from)
    }

    /// A regular file and its size in bytes.
    fn open(&self, path: &str) -> io::Result<(fs::File, u64)> {
        let file = self.opened(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "not a regular file",
            ));
        }
        Ok((file, metadata.len()))
    }

    /// Whether a word is in the first `limit` bytes of a file. The file is read once, because some
    /// files of a PCI function are slow; of its content only the word is recorded.
    pub fn has_word(&self, path: &str, word: &str, limit: u64) -> io::Result<bool> {
        let read = || {
            let mut bytes = Vec::with_capacity(PAGE);
            let (file, _) = self.open(path)?;
            file.take(limit).read_to_end(&mut bytes)?;
            let mut parts = bytes.windows(word.len().max(1));
            Ok(parts.any(|part| part == word.as_bytes()))
        };
        let key = (path.to_owned(), word.to_owned(), limit);
        let known = self.words.borrow().get(&key).copied();
        let found = known.unwrap_or_else(|| read().map_err(|e: io::Error| e.raw_os_error()));
        // Another error may be over at the next look, and a file may come with its device.
        if found.is_ok() || matches!(found, Err(Some(libc::EACCES | libc::EPERM))) {
            self.words.borrow_mut().insert(key, found);
        }
        let found = found.map_err(|errno| match errno {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::new(io::ErrorKind::Unsupported, "not a regular file"),
        });
        let found = self.attempt(path, || found)?;
        if found {
            self.remember_file(path, word.as_bytes());
        }
        Ok(found)
    }

    /// Reads a file as text, without the white space around it; bytes that are not UTF-8 become
    /// U+FFFD.
    pub fn text(&self, path: &str) -> io::Result<String> {
        let bytes = self.read(path)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The text of a file that never changes while its device or this boot lasts: read once. A file that
    /// is missing counts as missing until [`Root::forget`].
    pub fn constant(&self, path: &str) -> io::Result<String> {
        let known = self.constants.borrow().get(path).cloned();
        let text = match known {
            Some(text) => text,
            None => {
                let text = match self.text(path) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                    text => Some(text?),
                };
                let mut constants = self.constants.borrow_mut();
                constants.insert(path.to_owned(), text.clone());
                text
            }
        };
        text.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// From now on the constants below this path are read again: they may be those of another device.
    pub fn forget(&self, path: &str) {
        let mut constants = self.constants.borrow_mut();
        constants.retain(|known, _| !known.starts_with(path));
    }

    /// Like [`Root::forget`], for the words of the slow files below this path.
    pub fn forget_words(&self, path: &str) {
        let mut words = self.words.borrow_mut();
        words.retain(|(known, _, _), _| !known.starts_with(path));
    }

    /// The names in a directory, sorted; numbers inside names sort as numbers. What could not be read on the
    /// machine of a saved tree was there.
    pub fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.attempt(path, || fs::read_dir(self.path(path)))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        let lost = self.failures().keys();
        let lost = lost.filter(|lost| lost.parent() == Some(place(path)));
        for name in lost.filter_map(|lost| lost.file_name()) {
            let name = name.to_string_lossy().into_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.sort_by_key(|name| natural(name));
        self.remember(path, || Recorded::Dir);
        Ok(names)
    }

    /// The target of a symbolic link, unresolved.
    pub fn link(&self, path: &str) -> io::Result<String> {
        let target = fs::read_link(self.path(path))?;
        self.remember(path, || Recorded::Link(target.clone()));
        Ok(target.to_string_lossy().into_owned())
    }

    /// The last component of a symbolic link's target, which names a device or driver in sysfs.
    pub fn link_name(&self, path: &str) -> io::Result<String> {
        let target = self.link(path)?;
        let name = Path::new(&target).file_name().unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// True if the name exists, even as a dangling link.
    pub fn exists(&self, path: &str) -> bool {
        self.is_there(path).unwrap_or(false)
    }

    /// Like [`Root::exists`], for a file that nobody reads: the copy has the file without its content.
    pub fn has_file(&self, path: &str) -> bool {
        let exists = self.exists(path);
        if exists && !self.is_remembered(path) {
            self.remember_file(path, b"");
        }
        exists
    }

    /// Like [`Root::exists`], for callers to which an unknown answer matters. What could not be read on the
    /// machine of a saved tree was there.
    pub fn is_there(&self, path: &str) -> io::Result<bool> {
        let is_lost = self.failures().contains_key(place(path));
        match self.attempt(path, || self.path(path).symlink_metadata()) {
            Err(_) if is_lost => Ok(true),
            Ok(found) => {
                if found.is_dir() {
                    self.remember(path, || Recorded::Dir);
                }
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Writes a kernel attribute (sysfs, procfs, configfs): an existing file, in one write.
    pub fn set(&self, path: &str, value: &str) -> io::Result<()> {
        OpenOptions::new()
            .write(true)
            // A kernel attribute ignores O_TRUNC; a file of a saved tree must contain only the new
            // value.
            .truncate(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.path(path))?
            .write_all(value.as_bytes())
    }

    /// Writes all recorded files below `to`, so that `--root TO` reads the same machine. `shown`
    /// gives the bytes to write for a path and its bytes. Without them the copy has a directory in place
    /// of the file: nobody can read that.
    pub fn save(
        &self,
        to: &Path,
        shown: impl for<'a> Fn(&str, &'a [u8]) -> Option<Cow<'a, [u8]>>,
    ) -> io::Result<usize> {
        let Some(record) = &self.record else {
            return Ok(0);
        };
        copy::write(&record.borrow(), to, shown)
    }
}

/// Repeats what a signal interrupted.
fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Everything in a file of `size` bytes. None: an attribute of sysfs, of which one read shows all if
/// that is less than a page (fs/kernfs/file.c). The read that only finds the end is left out where
/// the end is known; the size of a file of procfs is 0.
fn content(mut file: impl Read, size: Option<u64>) -> io::Result<Vec<u8>> {
    let mut page = [0; PAGE];
    let length = retried(|| file.read(&mut page))?;
    let first = page.get(..length).unwrap_or_default();
    match length < PAGE && size.is_none_or(|size| size == length as u64) {
        true => Ok(first.to_vec()),
        false => to_the_end(first.chain(file)),
    }
}

/// Reads to the end of the file. A seq_file (Documentation/filesystems/seq_file.rst) returns whole
/// records, so a read that is shorter than its buffer does not mark the end.
pub(super) fn to_the_end(file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(PAGE);
    file.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Sort key that puts `mlx5_10` after `mlx5_9`.
pub fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text_len = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (text, tail) = rest.split_at(text_len);
        let number_len = tail
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (number, next) = tail.split_at(number_len);
        key.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = next;
    }
    key
}

#[cfg(test)]
mod tests;
