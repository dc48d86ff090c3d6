// SPDX-License-Identifier: MIT OR Apache-2.0
//! Safe files below /run and in the initramfs: links are not followed, and a file is replaced in
//! one step.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::signal::kill;
use nix::sys::stat::{Mode, SFlag, fchmod, fstat, mkdirat};
use nix::unistd::{Pid, Uid, UnlinkatFlags, geteuid, unlinkat};

use super::root::to_the_end;
use crate::error::{Error, Result};

/// An open directory below /run or of the initramfs: later changes of the path do not redirect a
/// write.
#[derive(Debug)]
pub struct Directory {
    pub(crate) fd: OwnedFd,
    pub(crate) path: String,
    /// The hidden files at the first write: [`Directory::sweep`].
    hidden: OnceCell<Vec<String>>,
}

pub(crate) const OPEN: OFlag = OFlag::O_DIRECTORY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// What exists under the name of a file.
#[derive(Debug)]
pub enum Standing {
    /// No file has this name.
    Nothing,
    /// A regular file of root or of this process's user.
    Ours(Vec<u8>),
    /// A link or another file that is not trusted; the error gives the reason.
    Planted(Error),
}

impl Directory {
    /// A directory that was opened, with its path for messages.
    pub(crate) fn of(fd: OwnedFd, path: String) -> Directory {
        Directory {
            fd,
            path,
            hidden: OnceCell::new(),
        }
    }

    /// `/run/ibboot`, as [`Directory::below_run`].
    pub fn open() -> Result<Directory> {
        Directory::below_run("ibboot")
    }

    /// Creates (0755) or opens `/run/PATH`, as [`Directory::below`].
    pub fn below_run(path: &str) -> Result<Directory> {
        Directory::below("/run", path)
    }

    /// Creates (0755) or opens `TOP/PATH`, one name of PATH after another; refuses links, and
    /// directories that another user can write to.
    pub fn below(top: &str, path: &str) -> Result<Directory> {
        let fd = nix::fcntl::open(top, OPEN, Mode::empty())
            .map_err(|errno| Error::new(top, "cannot be opened").found(errno.desc()))?;
        let mut directory = Directory::of(fd, top.to_owned());
        for name in path.split('/') {
            directory = directory.next(name)?;
        }
        Ok(directory)
    }

    /// Opens a directory of the initramfs. In a directory that is writable for all users, the
    /// sticky bit must prevent other users from renaming our files.
    pub fn existing(path: &str) -> Result<Directory> {
        let cannot = |errno: Errno| Error::new(path, "cannot be opened").found(errno.desc());
        let fd = nix::fcntl::open(path, OPEN, Mode::empty()).map_err(cannot)?;
        let sticky = fstat(&fd).map_err(cannot)?.st_mode & 0o1000 != 0;
        let others = if sticky { 0 } else { 0o022 };
        let path = path.to_owned();
        Directory::of(fd, path).checked(others)
    }

    /// Opens the directory that the caller of the program named. Another user may own it: a write
    /// there follows no link, so that user can at most lose the file.
    pub fn named(path: &str) -> Result<Directory> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let fd = nix::fcntl::open(path, flags, Mode::empty())
            .map_err(|errno| Error::new(path, "cannot be opened").found(errno.desc()))?;
        let path = path.to_owned();
        Ok(Directory::of(fd, path))
    }

    /// Opens the directory of a service to read its files, with the user who owns the directory and
    /// these files; `None` if the directory does not exist. Refuses a directory that other users can
    /// write to.
    pub fn of_service(path: &str) -> Result<Option<(Directory, Uid)>> {
        let cannot = |errno: Errno| Error::new(path, "cannot be opened").found(errno.desc());
        let fd = match nix::fcntl::open(path, OPEN, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(cannot(errno)),
        };
        let stat = fstat(&fd).map_err(cannot)?;
        if stat.st_mode & 0o022 != 0 {
            return Err(Error::new(path, "is not safe to use")
                .found(format!("mode {:o}", stat.st_mode & 0o7777))
                .expected("a directory that only its owner can write to"));
        }
        let path = path.to_owned();
        Ok(Some((Directory::of(fd, path), Uid::from_raw(stat.st_uid))))
    }

    /// Refuses a directory of another user, and a directory with any of the permissions in
    /// `others`.
    pub(crate) fn checked(self, others: u32) -> Result<Directory> {
        let stat = fstat(&self.fd).map_err(|errno| self.failed("", "cannot be opened", errno))?;
        if stat.st_uid != geteuid().as_raw() || stat.st_mode & others != 0 {
            return Err(Error::new(self.path, "is not safe to write to")
                .found(format!(
                    "owner {}, mode {:o}",
                    stat.st_uid,
                    stat.st_mode & 0o7777
                ))
                .expected("a directory of this user that no other user can write to"));
        }
        Ok(self)
    }

    fn next(self, name: &str) -> Result<Directory> {
        match mkdirat(&self.fd, name, Mode::from_bits_truncate(0o755)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(self.failed(name, "cannot be created", errno)),
        }
        let cannot = |errno| self.failed(name, "cannot be opened", errno);
        let fd = openat(&self.fd, name, OPEN, Mode::empty()).map_err(cannot)?;
        let path = format!("{}/{name}", self.path);
        Directory::of(fd, path).checked(0o022)
    }

    pub(crate) fn failed(&self, name: &str, what: &str, errno: Errno) -> Error {
        let path = format!("{}/{name}", self.path);
        Error::new(path.trim_end_matches('/'), what).found(errno.desc())
    }

    /// Replaces `name` (0644) by `content` in one step.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        self.write_as(name, content, 0o644)
    }

    /// Replaces `name` by `content` in one step, with these permissions.
    pub fn write_as(&self, name: &str, content: &[u8], mode: u32) -> Result<()> {
        self.sweep(name);
        let mode = Mode::from_bits_truncate(mode);
        let temporary = format!(".{name}.{}", std::process::id());
        let fail = |errno| self.failed(name, "cannot be written", errno);
        let create = || {
            openat(
                &self.fd,
                temporary.as_str(),
                OFlag::O_WRONLY
                    | OFlag::O_CREAT
                    | OFlag::O_EXCL
                    | OFlag::O_NOFOLLOW
                    | OFlag::O_CLOEXEC,
                mode,
            )
        };
        let file = match create() {
            // Left by a killed process with the process id of this one.
            Err(Errno::EEXIST) => {
                unlinkat(&self.fd, temporary.as_str(), UnlinkatFlags::NoRemoveDir).map_err(fail)?;
                create()
            }
            other => other,
        }
        .map_err(fail)?;
        let written = fchmod(&file, mode)
            .map_err(io::Error::from)
            .and_then(|()| File::from(file).write_all(content))
            .and_then(|()| {
                renameat(&self.fd, temporary.as_str(), &self.fd, name).map_err(io::Error::from)
            });
        if let Err(error) = written {
            if let Err(errno) = unlinkat(&self.fd, temporary.as_str(), UnlinkatFlags::NoRemoveDir) {
                log::debug!(
                    "{}/{temporary}: cannot be removed: {}",
                    self.path,
                    errno.desc()
                );
            }
            return Err(Error::io(
                format!("{}/{name}", self.path),
                "cannot be written",
                &error,
            ));
        }
        Ok(())
    }

    /// Removes the temporary files of processes that were killed while they wrote `name`. A file
    /// stays while a process with the process id in its name exists.
    pub(crate) fn sweep(&self, name: &str) {
        let prefix = format!(".{name}.");
        for left in self.hidden.get_or_init(|| hidden(&self.path)) {
            let writer = left.strip_prefix(&prefix).and_then(|pid| pid.parse().ok());
            let is_dead = |pid: i32| pid > 0 && kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
            if writer.is_some_and(is_dead)
                && let Err(error) = self.remove(left)
            {
                log::debug!("{error}");
            }
        }
    }

    /// The file `name`, which has no link once another one replaces it.
    pub fn opened(&self, name: &str) -> Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        openat(&self.fd, name, flags, Mode::empty())
            .map(File::from)
            .map_err(|errno| self.failed(name, "cannot be opened", errno))
    }

    /// Removes `name`; a missing file is success.
    pub fn remove(&self, name: &str) -> Result<()> {
        match unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(self.failed(name, "cannot be removed", errno)),
        }
    }

    /// Creates `name` without content if `is_set`, and removes `name` otherwise.
    pub fn mark(&self, name: &str, is_set: bool) -> Result<()> {
        if is_set {
            self.write(name, b"")
        } else {
            self.remove(name)
        }
    }

    /// Removes the files whose text is `unwanted`. An unreadable file stays.
    pub fn remove_if(&self, unwanted: impl Fn(&str) -> bool) -> Result<()> {
        let names = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries.flatten().map(|entry| entry.file_name()),
            Err(e) => return Err(Error::io(&self.path, "cannot be read", &e)),
        };
        for name in names.filter_map(|name| name.into_string().ok()) {
            let Ok(Some(bytes)) = self.read(&name) else {
                continue;
            };
            if unwanted(&String::from_utf8_lossy(&bytes)) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Reads `name`: a regular file of root or of this process's user; `None` if the file does not
    /// exist.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.read_of(name, geteuid())
    }

    /// Like [`Directory::read`], for a file of root or `owner`.
    pub(crate) fn read_of(&self, name: &str, owner: Uid) -> Result<Option<Vec<u8>>> {
        match self.standing(name, owner)? {
            Standing::Nothing => Ok(None),
            Standing::Ours(bytes) => Ok(Some(bytes)),
            Standing::Planted(error) => Err(error),
        }
    }

    /// The text of an existing file. A file that is not trusted counts as empty, with a warning: the
    /// next write replaces the file. An unreadable file is an error, because replacing the file
    /// would lose the lines of other programs.
    pub fn text(&self, name: &str) -> Result<String> {
        let bytes = match self.standing(name, geteuid())? {
            Standing::Nothing => Vec::new(),
            Standing::Ours(bytes) => bytes,
            Standing::Planted(error) => {
                log::warn!("{error}");
                Vec::new()
            }
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Checks what exists under `name`: a file of root or `owner` is trusted. An error means that the
    /// answer is unknown.
    pub(crate) fn standing(&self, name: &str, owner: Uid) -> Result<Standing> {
        let fail = |errno| self.failed(name, "cannot be read", errno);
        // O_NONBLOCK: the open of a planted fifo must not block.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let fd = match openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::ENOENT) => return Ok(Standing::Nothing),
            Err(Errno::ELOOP) => return Ok(Standing::Planted(fail(Errno::ELOOP))),
            Err(errno) => return Err(fail(errno)),
        };
        let stat = fstat(&fd).map_err(fail)?;
        let regular = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG;
        if !regular || (stat.st_uid != 0 && stat.st_uid != owner.as_raw()) {
            let error = Error::new(format!("{}/{name}", self.path), "is not trusted")
                .found(format!("owner {}, mode {:o}", stat.st_uid, stat.st_mode))
                .expected("a regular file of root");
            return Ok(Standing::Planted(error));
        }
        let bytes = to_the_end(File::from(fd))
            .map_err(|e| Error::io(format!("{}/{name}", self.path), "cannot be read", &e))?;
        Ok(Standing::Ours(bytes))
    }
}

/// The names in a folder that begin with a dot.
fn hidden(path: &str) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with('.')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_limit_is_an_error_and_not_cut() {
        let place = tempfile::tempdir().unwrap();
        let file = File::create(place.path().join("large")).unwrap();
        let directory = Directory::named(place.path().to_str().unwrap()).unwrap();
        file.set_len(16 << 20).unwrap();
        let read = directory.read("large").unwrap();
        assert_eq!(read.map(|bytes| bytes.len()), Some(16 << 20));
        file.set_len((16 << 20) + 1).unwrap();
        let error = directory.read("large").unwrap_err().to_string();
        assert!(
            error.ends_with("/large: cannot be read: file too large"),
            "{error}"
        );
    }
}
