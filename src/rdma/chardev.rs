// SPDX-License-Identifier: MIT OR Apache-2.0
//! Character devices: that of a device or a port, from NETLINK_RDMA (GET_CHARDEV, Linux 5.3), on
//! older kernels from sysfs; how one is opened, and what uverbs, umad and rdma_cm share.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;

use super::netlink::{Error, Rdma, retry};
use super::parse;
use crate::system::root::Root;

/// The kinds of character devices that this program opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asynchronous events of a device: `uverbs0`.
    Uverbs,
    /// Management datagrams of the port with this number: `umad0`.
    Umad(u32),
}

impl Kind {
    /// The directory with one entry per character device (drivers/infiniband/core/uverbs_main.c
    /// and user_mad.c).
    fn class(self) -> &'static str {
        match self {
            Kind::Uverbs => "/sys/class/infiniband_verbs",
            Kind::Umad(_) => "/sys/class/infiniband_mad",
        }
    }

    /// Whether an entry of the directory is such a device; `infiniband_mad` also has `issmN`.
    fn is_name(self, entry: &str) -> bool {
        entry.starts_with(match self {
            Kind::Uverbs => "uverbs",
            Kind::Umad(_) => "umad",
        })
    }
}

/// The name below /dev/infiniband. `index` and `device` are index and name of the RDMA device.
/// Errors are those of [`Rdma::chardev`]: EINVAL also means that the kernel has no GET_CHARDEV and
/// sysfs has no entry for the device.
pub fn name(
    root: &Root,
    rdma: &Rdma,
    (index, device): (u32, &str),
    kind: Kind,
) -> Result<String, Error> {
    let found = match kind {
        Kind::Uverbs => rdma.chardev(index, "uverbs"),
        Kind::Umad(port) => rdma.port_chardev(index, port, "umad"),
    };
    chosen(found, || in_sysfs(root, device, kind))
}

/// Whether sysfs still has the character device with this name: of a device that is being removed it
/// goes first.
pub fn is_there(root: &Root, name: &str, kind: Kind) -> bool {
    root.exists(&format!("{}/{name}", kind.class()))
}

/// The answer of the kernel, or of sysfs if the kernel does not know the question.
fn chosen(
    found: Result<String, Error>,
    in_sysfs: impl FnOnce() -> Option<String>,
) -> Result<String, Error> {
    match found {
        Err(error) if error.errno() == Some(Errno::EINVAL) => in_sysfs().ok_or(error),
        found => found,
    }
}

/// The entry in sysfs whose `ibdev` is the device and, with [`Kind::Umad`], whose `port` is the
/// port.
fn in_sysfs(root: &Root, device: &str, kind: Kind) -> Option<String> {
    let class = kind.class();
    let is_it = |entry: &String| {
        let text = |file: &str| root.text(&format!("{class}/{entry}/{file}")).ok();
        let is_port = match kind {
            Kind::Uverbs => true,
            Kind::Umad(port) => {
                let found = text("port").and_then(|text| parse::number("port", &text).ok());
                found == Some(port)
            }
        };
        kind.is_name(entry) && text("ibdev").as_deref() == Some(device) && is_port
    };
    root.list(class).ok()?.into_iter().find(is_it)
}

/// Opens the device with this name, which is `prefix` and a number; see [`open_file`].
pub fn open(prefix: &str, name: &str) -> io::Result<OwnedFd> {
    let number = name.strip_prefix(prefix).unwrap_or_default();
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        let why = format!("{name:?} is not the name of a {prefix} device");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    open_file(&format!("/dev/infiniband/{name}"))
}

/// Opens a device file. Non-blocking and close-on-exec.
pub fn open_file(path: &str) -> io::Result<OwnedFd> {
    // std sets O_CLOEXEC.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    Ok(file.into())
}

/// Writes one request as a whole.
pub fn write(file: &OwnedFd, request: &[u8]) -> io::Result<()> {
    let written = retry(|| nix::unistd::write(file, request))?;
    if written == request.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// The number at this place of a message of the kernel.
pub fn native(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_kernel_before_5_3_refuses_the_question_and_sysfs_answers() {
        let refused = |errno| Err(Error::Kernel(errno));
        let sysfs = || Some("uverbs1".to_owned());
        let name = |found| chosen(found, sysfs).map_err(|error| error.errno());
        assert_eq!(name(refused(Errno::EINVAL)), Ok("uverbs1".to_owned()));
        assert_eq!(name(Ok("uverbs0".to_owned())), Ok("uverbs0".to_owned()));
        assert_eq!(name(refused(Errno::ENODEV)), Err(Some(Errno::ENODEV)));
        let none = chosen(refused(Errno::EINVAL), || None).map_err(|error| error.errno());
        assert_eq!(none, Err(Some(Errno::EINVAL)));
    }

    #[test]
    fn an_entry_in_sysfs_belongs_to_a_device_and_a_port() {
        let tree = tempfile::tempdir().unwrap();
        let add = |class: &str, entry: &str, files: &[(&str, &str)]| {
            let directory = tree.path().join("sys/class").join(class).join(entry);
            fs::create_dir_all(&directory).unwrap();
            for (file, text) in files {
                fs::write(directory.join(file), format!("{text}\n")).unwrap();
            }
        };
        let root = Root::new(tree.path());
        assert_eq!(in_sysfs(&root, "mlx4_0", Kind::Uverbs), None);
        fs::create_dir_all(tree.path().join("sys/class/infiniband_mad")).unwrap();
        fs::write(
            tree.path().join("sys/class/infiniband_mad/abi_version"),
            "5\n",
        )
        .unwrap();
        add(
            "infiniband_mad",
            "issm1",
            &[("ibdev", "mlx4_0"), ("port", "2")],
        );
        add(
            "infiniband_mad",
            "umad0",
            &[("ibdev", "mlx4_0"), ("port", "1")],
        );
        add(
            "infiniband_mad",
            "umad1",
            &[("ibdev", "mlx4_0"), ("port", "2")],
        );
        add(
            "infiniband_mad",
            "umad2",
            &[("ibdev", "mlx4_1"), ("port", "x")],
        );
        add("infiniband_verbs", "uverbs0", &[("ibdev", "mlx4_1")]);
        add("infiniband_verbs", "uverbs1", &[("ibdev", "mlx4_0")]);
        for (device, kind, expected) in [
            ("mlx4_0", Kind::Uverbs, Some("uverbs1")),
            ("mlx4_1", Kind::Uverbs, Some("uverbs0")),
            ("mlx4_2", Kind::Uverbs, None),
            ("mlx4_0", Kind::Umad(1), Some("umad0")),
            ("mlx4_0", Kind::Umad(2), Some("umad1")),
            ("mlx4_0", Kind::Umad(3), None),
            ("mlx4_1", Kind::Umad(1), None),
        ] {
            let found = in_sysfs(&root, device, kind);
            assert_eq!(found.as_deref(), expected, "{device} {kind:?}");
        }
    }
}
