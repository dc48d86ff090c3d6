// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes one file of the kernel.

use super::cards::set_default_roce_mode;
use super::netdev::Folder;
use super::request::{Interface, Write};
use crate::error::{Error, errno_text};
use crate::system::root::Root;
use crate::wish::ipoib::{FULL_MEMBER, Mode};

/// proc(5).
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Carries out a write that [`super::Request::check`] has accepted. [`Error::found`] is the kernel's
/// answer.
pub(super) fn carry_out(root: &Root, write: &Write) -> Result<(), Error> {
    match write {
        Write::Mode { interface, mode } => set_mode(root, interface, *mode),
        Write::CreateChild { interface, pkey } => create_child(root, interface, *pkey),
        Write::Ipv6 {
            interface,
            setting,
            value,
        } => set_sysctl(root, interface, setting, value),
        Write::BondOption {
            bond,
            option,
            value,
        } => set_option(root, bond, option, value),
        Write::RoceMode { device, port, mode } => set_default_roce_mode(root, device, *port, mode),
        Write::HostName(name) => root
            .set(HOST_NAME, name)
            .map_err(|e| Error::io(format!("host name {name}"), "cannot be set", &e)),
    }
}

/// Writes the P_Key to `create_child`, always as full member: the kernel compares the P_Key before
/// it sets the membership bit, and would create a second child for the limited spelling of the same
/// partition (ipoib_vlan.c).
fn create_child(root: &Root, parent: &Interface, pkey: u16) -> Result<(), Error> {
    let pkey = format!("{:#06x}", pkey | FULL_MEMBER);
    let set = Folder::of(root, parent)?.set_late("create_child", &format!("{pkey}\n"));
    set.map_err(|e| {
        let hint = if e.raw_os_error() == Some(libc::ENOTUNIQ) {
            "an interface with this P_Key already exists: see `ip -d link`"
        } else {
            "see dmesg"
        };
        Error::io(
            parent,
            format!("child for P_Key {pkey} cannot be created"),
            &e,
        )
        .hint(hint)
    })
}

/// Writes the mode and reads it back: the kernel reports some failures as success (ipoib_main.c,
/// ipoib_set_mode, -EBUSY).
fn set_mode(root: &Root, interface: &Interface, mode: Mode) -> Result<(), Error> {
    let folder = Folder::of(root, interface)?;
    // The newline is part of the text (ipoib_set_mode compares it).
    let word = format!("{mode}\n");
    let fail = |why: String| {
        Error::new(&interface.name, "mode cannot be set")
            .found(why)
            .expected(mode.word())
            .hint("see dmesg")
    };
    for _ in 0..3 {
        match folder.set_late("mode", &word) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(fail(errno_text(&e))),
            Ok(()) => {}
        }
        let after = folder.text("mode").map_err(|e| fail(errno_text(&e)))?;
        if after == mode.word() {
            return Ok(());
        }
    }
    Err(fail("the kernel did not accept the mode".to_owned()))
}

fn set_sysctl(root: &Root, interface: &Interface, setting: &str, value: &str) -> Result<(), Error> {
    let fail = |e| {
        Error::io(
            sysctl(&interface.name, setting),
            format!("cannot be set to {value}"),
            &e,
        )
        .hint("check whether this kernel has IPv6 (ipv6.disable=)")
    };
    // Opened before the index is read: if the name is that of the interface then, the folder is too,
    // or a rename has ended the folder.
    let folder = Folder::open(root, &sysctl_folder(&interface.name)).map_err(fail)?;
    Folder::of(root, interface)?;
    folder.set(setting, &format!("{value}\n")).map_err(fail)
}

fn sysctl_folder(ifname: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{ifname}")
}

/// Path of an IPv6 setting.
pub fn sysctl(ifname: &str, setting: &str) -> String {
    format!("{}/{setting}", sysctl_folder(ifname))
}

/// Sets an option of a bond. The driver accepts the addresses of a list one at a time; all are
/// tried.
fn set_option(root: &Root, bond: &Interface, option: &str, value: &str) -> Result<(), Error> {
    let folder = Folder::of(root, bond)?;
    let file = format!("bonding/{option}");
    let sign = if option.ends_with("_target") { "+" } else { "" };
    let set = |part: &str| {
        folder.set(&file, &format!("{sign}{part}\n")).map_err(|e| {
            Error::io(bond, format!("option {option}={value} is refused"), &e)
                .hint("see dmesg; `modinfo bonding` lists the options")
        })
    };
    value.split(';').map(set).fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn interface(name: &str) -> Interface {
        let name = name.to_owned();
        Interface { name, index: 5 }
    }

    /// The folder of an interface with the index 5 in sysfs.
    fn made(dir: &Path, name: &str) -> PathBuf {
        let folder = dir.join("sys/class/net").join(name);
        fs::create_dir_all(folder.join("bonding")).unwrap();
        fs::write(folder.join("ifindex"), "5\n").unwrap();
        folder
    }

    #[test]
    fn the_mode_is_written_with_its_newline_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = made(dir.path(), "ib0").join("mode");
        made(dir.path(), "eth0");
        fs::write(&file, "datagram\n").unwrap();
        let root = Root::new(dir.path());
        let set = |name: &str| set_mode(&root, &interface(name), Mode::Connected);
        assert_eq!(set("ib0"), Ok(()));
        assert_eq!(fs::read_to_string(&file).unwrap(), "connected\n");
        assert_eq!(
            set("eth0").unwrap_err().to_string(),
            "eth0: mode cannot be set: No such file or directory, expected connected; see dmesg"
        );
    }

    #[test]
    fn a_child_is_a_full_member_and_each_target_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let ib0 = made(dir.path(), "ib0");
        made(dir.path(), "ib1");
        for file in ["create_child", "bonding/arp_ip_target"] {
            fs::write(ib0.join(file), "").unwrap();
        }
        let root = Root::new(dir.path());
        let text = |file: &str| fs::read_to_string(ib0.join(file)).unwrap();
        assert_eq!(create_child(&root, &interface("ib0"), 1), Ok(()));
        assert_eq!(text("create_child"), "0x8001\n");
        assert_eq!(
            create_child(&root, &interface("ib1"), 1)
                .unwrap_err()
                .to_string(),
            "ib1: child for P_Key 0x8001 cannot be created: No such file or directory; see dmesg"
        );
        let (option, both) = ("arp_ip_target", "10.0.0.1;10.0.0.2");
        let set = |option, value| set_option(&root, &interface("ib0"), option, value);
        assert_eq!(set(option, both), Ok(()));
        assert!(text("bonding/arp_ip_target").starts_with("+10.0.0.2\n"));
        assert_eq!(
            set("miimon", "1").unwrap_err().to_string(),
            "ib0: option miimon=1 is refused: No such file or directory; \
             see dmesg; `modinfo bonding` lists the options"
        );
    }

    #[test]
    fn no_file_of_another_interface_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let ib0 = made(dir.path(), "ib0");
        let conf = dir.path().join("proc/sys/net/ipv6/conf/ib0");
        fs::create_dir_all(&conf).unwrap();
        let files = ["create_child", "mode", "bonding/miimon"].map(|file| ib0.join(file));
        let files: Vec<PathBuf> = files.into_iter().chain([conf.join("accept_ra")]).collect();
        for file in &files {
            fs::write(file, "").unwrap();
        }
        let root = Root::new(dir.path());
        let write = |index| {
            let name = "ib0".to_owned();
            let ib0 = Interface { name, index };
            [
                create_child(&root, &ib0, 1),
                set_mode(&root, &ib0, Mode::Datagram),
                set_option(&root, &ib0, "miimon", "50"),
                set_sysctl(&root, &ib0, "accept_ra", "0"),
            ]
        };
        let refused = "ib0: this name has another interface now: index 5, expected 6";
        for result in write(6) {
            assert_eq!(result.unwrap_err().to_string(), refused);
        }
        let texts = || files.iter().map(|file| fs::read_to_string(file).unwrap());
        assert!(texts().all(|text| text.is_empty()));
        assert_eq!(write(5), [Ok(()), Ok(()), Ok(()), Ok(())]);
        assert!(texts().all(|text| !text.is_empty()));
    }
}
