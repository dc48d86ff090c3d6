// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes one file of the kernel.

use super::cards::set_default_roce_mode;
use super::request::Write;
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
fn create_child(root: &Root, parent: &str, pkey: u16) -> Result<(), Error> {
    let pkey = format!("{:#06x}", pkey | FULL_MEMBER);
    let path = format!("/sys/class/net/{parent}/create_child");
    root.set(&path, &format!("{pkey}\n")).map_err(|e| {
        let hint = if e.raw_os_error() == Some(libc::ENOTUNIQ) {
            "an interface with this P_Key already exists: see `ip -d link`"
        } else {
            "see dmesg"
        };
        Error::io(
            &path,
            format!("child for P_Key {pkey} cannot be created"),
            &e,
        )
        .hint(hint)
    })
}

/// Writes the mode and reads it back: the kernel reports some failures as success (ipoib_main.c,
/// ipoib_set_mode, -EBUSY).
fn set_mode(root: &Root, ifname: &str, mode: Mode) -> Result<(), Error> {
    let path = format!("/sys/class/net/{ifname}/mode");
    // The newline is part of the text (ipoib_set_mode compares it).
    let word = format!("{mode}\n");
    let fail = |why: String| {
        Error::new(ifname, "mode cannot be set")
            .found(why)
            .expected(mode.word())
            .hint("see dmesg")
    };
    for _ in 0..3 {
        match root.set(&path, &word) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(fail(errno_text(&e))),
            Ok(()) => {}
        }
        let after = root.text(&path).map_err(|e| fail(errno_text(&e)))?;
        if after == mode.word() {
            return Ok(());
        }
    }
    Err(fail("the kernel did not accept the mode".to_owned()))
}

fn set_sysctl(root: &Root, ifname: &str, setting: &str, value: &str) -> Result<(), Error> {
    let path = sysctl(ifname, setting);
    root.set(&path, &format!("{value}\n")).map_err(|e| {
        Error::io(&path, format!("cannot be set to {value}"), &e)
            .hint("check whether this kernel has IPv6 (ipv6.disable=)")
    })
}

/// Path of an IPv6 setting.
pub fn sysctl(ifname: &str, setting: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{ifname}/{setting}")
}

/// Sets an option of a bond. The driver accepts the addresses of a list one at a time; all are
/// tried.
fn set_option(root: &Root, bond: &str, option: &str, value: &str) -> Result<(), Error> {
    let path = format!("/sys/class/net/{bond}/bonding/{option}");
    let sign = if option.ends_with("_target") { "+" } else { "" };
    let set = |part: &str| {
        root.set(&path, &format!("{sign}{part}\n")).map_err(|e| {
            Error::io(bond, format!("option {option}={value} is refused"), &e)
                .hint("see dmesg; `modinfo bonding` lists the options")
        })
    };
    value.split(';').map(set).fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_written_with_its_newline_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sys/class/net/ib0/mode");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "datagram\n").unwrap();
        let root = Root::new(dir.path());
        assert_eq!(set_mode(&root, "ib0", Mode::Connected), Ok(()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "connected\n");
        assert_eq!(
            set_mode(&root, "ib1", Mode::Connected)
                .unwrap_err()
                .to_string(),
            "ib1: mode cannot be set: No such file or directory, expected connected; see dmesg"
        );
    }

    #[test]
    fn a_child_is_a_full_member_and_each_target_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("sys/class/net");
        std::fs::create_dir_all(net.join("ib0/bonding")).unwrap();
        for file in ["ib0/create_child", "ib0/bonding/arp_ip_target"] {
            std::fs::write(net.join(file), "").unwrap();
        }
        let root = Root::new(dir.path());
        let text = |file: &str| std::fs::read_to_string(net.join(file)).unwrap();
        assert_eq!(create_child(&root, "ib0", 1), Ok(()));
        assert_eq!(text("ib0/create_child"), "0x8001\n");
        assert_eq!(
            create_child(&root, "ib1", 1).unwrap_err().to_string(),
            "/sys/class/net/ib1/create_child: child for P_Key 0x8001 cannot be created: \
             No such file or directory; see dmesg"
        );
        let (option, both) = ("arp_ip_target", "10.0.0.1;10.0.0.2");
        assert_eq!(set_option(&root, "ib0", option, both), Ok(()));
        assert!(text("ib0/bonding/arp_ip_target").starts_with("+10.0.0.2\n"));
        assert_eq!(
            set_option(&root, "ib0", "miimon", "1")
                .unwrap_err()
                .to_string(),
            "ib0: option miimon=1 is refused: No such file or directory; \
             see dmesg; `modinfo bonding` lists the options"
        );
    }
}
