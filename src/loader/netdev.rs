// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of one network interface. udev or an administrator may give its name to another interface
//! after `up` has looked: the folder is opened once, and its files are those of the interface that was
//! found then.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::thread::sleep;
use std::time::Duration;

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use super::request::Interface;
use crate::error::{Error, Result};
use crate::system::root::Root;

/// Largest size of a sysfs attribute (fs/sysfs/file.c).
const PAGE: u64 = 4096;
/// How often, and how long, a missing file is waited for.
const PAUSES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// An open folder of the kernel. A rename moves the folder in sysfs, and ends that of a sysctl: then
/// the files of the latter do not exist.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder.
    pub(super) fn open(root: &Root, path: &str) -> io::Result<Folder> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = open(&root.path(path), flags, Mode::empty())?;
        Ok(Folder(folder))
    }

    /// Opens the folder of the interface in sysfs. Refuses an interface with another index.
    pub(super) fn of(root: &Root, interface: &Interface) -> Result<Folder> {
        let Interface { name, index } = interface;
        let path = format!("/sys/class/net/{name}");
        let cannot = |e| Error::io(&path, "cannot be opened", &e);
        let folder = Folder::open(root, &path).map_err(cannot)?;
        let found = folder
            .text("ifindex")
            .map_err(|e| Error::io(format!("{path}/ifindex"), "cannot be read", &e))?;
        match found == index.to_string() {
            true => Ok(folder),
            false => Err(Error::new(name, "this name has another interface now")
                .found(format!("index {found}"))
                .expected(index.to_string())),
        }
    }

    fn file(&self, name: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty())?;
        Ok(File::from(file))
    }

    /// The text of a file, without the white space around it.
    pub(super) fn text(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        let file = self.file(name, OFlag::O_RDONLY)?;
        file.take(PAGE).read_to_string(&mut text)?;
        Ok(text.trim().to_owned())
    }

    /// Writes a file of an IPoIB interface. The kernel creates these files just after it has announced
    /// the interface (ipoib_add_port of ipoib_main.c), and no event tells of them: a missing file has
    /// half a second to appear.
    pub(super) fn set_late(&self, name: &str, value: &str) -> io::Result<()> {
        when_there(|| self.set(name, value), || sleep(PAUSE))
    }

    /// Writes a file, as [`Root::set`].
    pub(super) fn set(&self, name: &str, value: &str) -> io::Result<()> {
        let mut file = self.file(name, OFlag::O_WRONLY | OFlag::O_TRUNC)?;
        file.write_all(value.as_bytes())
    }
}

/// The first result that is not "no such file", or the last one.
fn when_there(
    mut attempt: impl FnMut() -> io::Result<()>,
    mut pause: impl FnMut(),
) -> io::Result<()> {
    for _ in 0..PAUSES {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => pause(),
            result => return result,
        }
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_the_kernel_creates_late_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("sys/class/net/ib0");
        fs::create_dir_all(&net).unwrap();
        let folder = Folder::open(&Root::new(dir.path()), "/sys/class/net/ib0").unwrap();
        let set = || folder.set("mode", "connected\n");
        let mut pauses = 0;
        let never = when_there(set, || pauses += 1).unwrap_err();
        assert_eq!((never.kind(), pauses), (io::ErrorKind::NotFound, PAUSES));
        let create = || fs::write(net.join("mode"), "datagram\n").unwrap();
        when_there(set, create).unwrap();
        let written = fs::read_to_string(net.join("mode")).unwrap();
        assert_eq!(written, "connected\n");
        when_there(set, || panic!("the file is there")).unwrap();
    }

    #[test]
    fn a_name_that_another_interface_has_now_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("sys/class/net");
        let make = |name: &str, index: &str| {
            fs::create_dir_all(net.join(name)).unwrap();
            fs::write(net.join(name).join("ifindex"), index).unwrap();
            fs::write(net.join(name).join("mode"), "datagram\n").unwrap();
        };
        make("ib0", "5\n");
        make("ib1", "6\n");
        make("ib2", "");
        let root = Root::new(dir.path());
        let of = |name: &str, index| {
            let name = name.to_owned();
            Folder::of(&root, &Interface { name, index })
        };
        let ib0 = of("ib0", 5).unwrap();
        for (name, expected) in [
            (
                "ib1",
                "ib1: this name has another interface now: index 6, expected 5",
            ),
            (
                "ib2",
                "ib2: this name has another interface now: index , expected 5",
            ),
            (
                "ib3",
                "/sys/class/net/ib3: cannot be opened: No such file or directory",
            ),
        ] {
            assert_eq!(of(name, 5).unwrap_err().to_string(), expected);
        }
        // The two names are swapped, and the write goes where it belongs.
        for (from, to) in [("ib0", "swap"), ("ib1", "ib0"), ("swap", "ib1")] {
            fs::rename(net.join(from), net.join(to)).unwrap();
        }
        ib0.set("mode", "connected\n").unwrap();
        let mode = |name: &str| fs::read_to_string(net.join(name).join("mode")).unwrap();
        assert_eq!(
            (&*mode("ib0"), &*mode("ib1")),
            ("datagram\n", "connected\n")
        );
        assert_eq!(ib0.text("mode").unwrap(), "connected");
    }
}
