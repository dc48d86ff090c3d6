// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: reads an archive of the format newc (Documentation/driver-api/early-userspace/
//! buffer-format.rst): the names of its files, and the contents of a few. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

/// Length of a header: a magic number of 6 digits and 13 numbers of 8 digits.
pub const HEADER: usize = 110;
/// Magic numbers: without and with a check sum.
const MAGIC: [&[u8]; 2] = [b"070701", b"070702"];
/// The name that ends an archive.
const TRAILER: &str = "TRAILER!!!";
/// Largest file name (PATH_MAX of linux/limits.h).
const NAME: u32 = 4096;
/// Largest content that is kept, in bytes: the largest module of the kernel has a few MiB.
const CONTENT: u32 = 64 << 20;
/// All contents and names that are kept, in bytes.
const CONTENTS: u64 = 256 << 20;
/// Number of files; an image has a few thousand.
const FILES: usize = 1 << 20;
/// S_IFMT, S_IFREG and S_IFLNK (inode(7)).
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// The files of one image, whose later archives are laid over the earlier ones.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Paths without a slash in front, of any type.
    names: BTreeSet<String>,
    /// Targets of symbolic links.
    links: BTreeMap<String, String>,
    /// Contents of the kept files.
    contents: BTreeMap<String, Vec<u8>>,
    kept: u64,
}

/// Whether the text at the start of an archive is that of newc.
pub fn is_newc(start: &[u8]) -> bool {
    MAGIC.iter().any(|magic| start.starts_with(magic))
}

/// Whether the bytes begin with a whole header.
pub fn begins_archive(bytes: &[u8]) -> bool {
    let digits = |header: &[u8]| header.iter().all(u8::is_ascii_hexdigit);
    is_newc(bytes) && bytes.get(..HEADER).is_some_and(digits)
}

pub(super) fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// A reader that counts, for the padding to 4 bytes.
struct Counted<R> {
    reader: R,
    at: u64,
}

impl<R: Read> Counted<R> {
    fn exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.reader.read_exact(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.reader).take(length), &mut io::sink())?;
        self.at += skipped;
        match skipped == length {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn align(&mut self) -> io::Result<()> {
        self.skip(self.at.next_multiple_of(4) - self.at)
    }

    fn vector(&mut self, length: u32) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let length = u64::from(length);
        let read = (&mut self.reader).take(length).read_to_end(&mut bytes)?;
        self.at += read as u64;
        match read as u64 == length {
            true => Ok(bytes),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// A number of eight hexadecimal digits of the header, by its place.
fn number(header: &[u8; HEADER], place: usize) -> io::Result<u32> {
    let digits = header.get(6 + 8 * place..14 + 8 * place);
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    let is_plain = |digits: &&str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = digits
        .filter(is_plain)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| invalid("a cpio header is damaged"))
}

/// A path without `.`, `..` and empty parts: the archive names nothing outside of its root.
fn plain(name: &str) -> String {
    let parts = name
        .split('/')
        .filter(|part| !matches!(*part, "" | "." | ".."));
    parts.collect::<Vec<_>>().join("/")
}

impl Files {
    /// Adds the files of the archive at the start of `reader`, to its trailer; `keep` tells whose
    /// contents are kept. Returns how many bytes the archive has.
    pub fn add(&mut self, reader: impl Read, keep: &dyn Fn(&str) -> bool) -> io::Result<u64> {
        let mut archive = Counted { reader, at: 0 };
        loop {
            let mut header = [0; HEADER];
            archive.exact(&mut header)?;
            if !is_newc(&header) {
                return Err(invalid("a cpio header is damaged"));
            }
            let (mode, size) = (number(&header, 1)?, number(&header, 6)?);
            let length = number(&header, 11)?;
            if length == 0 || length > NAME {
                return Err(invalid(
                    "the length of a file name in the cpio archive is invalid",
                ));
            }
            let name = archive.vector(length)?;
            archive.align()?;
            let name = String::from_utf8_lossy(&name)
                .trim_end_matches('\0')
                .to_owned();
            if name == TRAILER {
                return Ok(archive.at);
            }
            let name = plain(&name);
            self.one(&mut archive, name, mode, size, keep)?;
            archive.align()?;
        }
    }

    fn one<R: Read>(
        &mut self,
        archive: &mut Counted<R>,
        name: String,
        mode: u32,
        size: u32,
        keep: &dyn Fn(&str) -> bool,
    ) -> io::Result<()> {
        if self.names.len() >= FILES {
            return Err(invalid(format!("the image has more than {FILES} files")));
        }
        self.kept += name.len() as u64;
        if self.kept > CONTENTS {
            return Err(invalid("the names of the files in the image are too long"));
        }
        // A later archive replaces the file.
        self.links.remove(&name);
        self.contents.remove(&name);
        match mode & TYPE {
            LINK if size <= NAME => {
                self.kept += u64::from(size);
                let target = archive.vector(size)?;
                let target = String::from_utf8_lossy(&target).into_owned();
                self.links.insert(name.clone(), target);
            }
            // Of several names of one file (hard links) the last one has the content.
            REGULAR if size > 0 && keep(&name) => {
                self.kept += u64::from(size);
                if size > CONTENT || self.kept > CONTENTS {
                    return Err(invalid(format!("{name} of the image is too large")));
                }
                let content = archive.vector(size)?;
                self.contents.insert(name.clone(), content);
            }
            _ => archive.skip(u64::from(size))?,
        }
        self.names.insert(name);
        Ok(())
    }

    /// The path behind the symbolic links of the image; none if they form a loop.
    fn resolved(&self, path: &str) -> Option<String> {
        /// As the kernel (MAXSYMLINKS of linux/namei.h).
        const LINKS: usize = 40;
        let mut left: Vec<String> = plain(path).split('/').rev().map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = left.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    done.pop();
                    continue;
                }
                _ => done.push(part),
            }
            let Some(target) = self.links.get(&done.join("/")) else {
                continue;
            };
            links += 1;
            if links > LINKS {
                return None;
            }
            done.pop();
            if target.starts_with('/') {
                done.clear();
            }
            left.extend(target.split('/').rev().map(str::to_owned));
        }
        Some(done.join("/"))
    }

    /// Whether the image has this path.
    pub fn has(&self, path: &str) -> bool {
        let is_there = |path: &String| self.names.contains(path);
        self.resolved(path).as_ref().is_some_and(is_there)
    }

    /// The content of a kept file.
    pub fn content(&self, path: &str) -> Option<&[u8]> {
        self.contents.get(&self.resolved(path)?).map(Vec::as_slice)
    }

    /// All paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An archive of these names, types and contents.
    pub fn archive(files: &[(&str, u32, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, mode, content) in files.iter().chain(&[(TRAILER, 0, &b""[..])]) {
            let (size, length) = (content.len(), name.len() + 1);
            let header = format!(
                "070701{:08x}{mode:08x}{}{size:08x}{}{length:08x}{:08x}",
                1,
                "00000000".repeat(4),
                "00000000".repeat(4),
                0
            );
            bytes.extend(header.as_bytes());
            bytes.extend(name.as_bytes());
            bytes.push(0);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend(*content);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    pub const FILE: u32 = 0o100_644;
    pub const DIRECTORY: u32 = 0o040_755;
    pub const SYMLINK: u32 = 0o120_777;

    fn read(bytes: &[u8]) -> io::Result<Files> {
        let mut files = Files::default();
        files.add(bytes, &|name| name.ends_with(".dep"))?;
        Ok(files)
    }

    #[test]
    fn a_file_is_found_behind_links_and_kept_if_requested() {
        let bytes = archive(&[
            ("./usr/lib/modules/6.1/modules.dep", FILE, b"a.ko:\n"),
            ("usr/sbin/ibboot", FILE, b"ELF"),
            ("lib", SYMLINK, b"usr/lib"),
            ("sbin", SYMLINK, b"/usr/sbin"),
            ("loop", SYMLINK, b"loop"),
            ("../../etc/shadow", FILE, b"x"),
        ]);
        let files = read(&bytes).unwrap();
        assert!(files.has("/lib/modules/6.1/modules.dep") && files.has("/sbin/ibboot"));
        assert_eq!(
            files.content("lib/modules/6.1/modules.dep"),
            Some(&b"a.ko:\n"[..])
        );
        assert_eq!(files.content("/sbin/ibboot"), None);
        assert!(!files.has("/loop") && !files.has("/sbin") && files.has("/etc/shadow"));
    }

    #[test]
    fn a_later_archive_replaces_a_kept_file() {
        for (mode, content, expected) in [
            (FILE, &b"b.ko:\n"[..], Some(&b"b.ko:\n"[..])),
            (FILE, b"", None),
            (SYMLINK, b"other", None),
            (DIRECTORY, b"", None),
        ] {
            let mut files = read(&archive(&[("modules.dep", FILE, b"a.ko:\n")])).unwrap();
            assert_eq!(files.content("modules.dep"), Some(&b"a.ko:\n"[..]));
            let later = archive(&[("modules.dep", mode, content)]);
            files.add(&later[..], &|_| true).unwrap();
            assert_eq!(files.content("modules.dep"), expected, "{mode:o}");
            // What a name stands for is all that is left of it.
            let left = files.contents.contains_key("modules.dep");
            assert_eq!(left, expected.is_some(), "{mode:o}");
        }
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        let whole = archive(&[("a.dep", FILE, b"text")]);
        for length in 0..whole.len() - 3 {
            let why = read(&whole[..length]).unwrap_err().kind();
            assert_eq!(why, io::ErrorKind::UnexpectedEof, "{length}");
        }
        let mut long = whole.clone();
        long[94..102].copy_from_slice(b"00010000");
        assert_eq!(
            read(&long).unwrap_err().to_string(),
            "the length of a file name in the cpio archive is invalid"
        );
        let mut large = whole.clone();
        large[54..62].copy_from_slice(b"f0000000");
        assert_eq!(
            read(&large).unwrap_err().to_string(),
            "a.dep of the image is too large"
        );
        let mut wrong = whole;
        wrong[54] = b'+';
        assert_eq!(
            read(&wrong).unwrap_err().to_string(),
            "a cpio header is damaged"
        );
    }

    #[test]
    fn names_and_targets_of_links_count_towards_what_is_kept() {
        let bytes = archive(&[("link", SYMLINK, b"target"), ("etc", DIRECTORY, b"")]);
        let why = |left: u64| {
            let kept = CONTENTS - left;
            let mut files = Files {
                kept,
                ..Files::default()
            };
            files.add(&bytes[..], &|_| true).map_err(|e| e.to_string())
        };
        assert_eq!(why(13), Ok(bytes.len() as u64));
        let long = "the names of the files in the image are too long".to_owned();
        assert_eq!((why(12), why(3)), (Err(long.clone()), Err(long)));
    }

    proptest! {
        #[test]
        fn no_archive_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..200) {
            read(&bytes).ok();
            let whole = archive(&[("lib", SYMLINK, b"a/../lib/x"), ("a.dep", FILE, b"text")]);
            bytes.truncate(8);
            let mut changed = whole.clone();
            let end = (at + bytes.len()).min(changed.len());
            if let Some(place) = changed.get_mut(at..end) {
                let length = place.len();
                place.copy_from_slice(&bytes[..length]);
            }
            if let Ok(files) = read(&changed) {
                files.has("lib/x");
            }
        }
    }
}
