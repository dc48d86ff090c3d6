// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes port types of mlx4 cards and default RoCE modes.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::statfs::{FsType, statfs};

use super::request::PortSet;
use crate::error::{Error, Result, errno_text};
use crate::system::root::Root;
use kernel_cmdline::PortType;

const CONFIGFS: &str = "/sys/kernel/config";
/// CONFIGFS_MAGIC (fs/configfs/mount.c).
const CONFIGFS_MAGIC: FsType = FsType(0x6265_6570);

/// How long rdma_cm is waited for: the kernel shows a device before it gives the device to rdma_cm
/// (enable_device_and_get, drivers/infiniband/core/device.c). Shorter than a write that is called hung.
const UNTIL_KNOWN: Duration = Duration::from_secs(3);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// A port of a card, and its type.
type Port = (u32, PortType);

/// Whether the text of a port's file shows this type. A port in mode auto shows the detected type.
pub fn is_port_type(shown: &str, expected: PortType) -> bool {
    match expected {
        PortType::Auto => shown.starts_with("auto"),
        _ => shown == expected.as_str(),
    }
}

/// Sets the types of the ports of one card, in this order; one result for each.
pub(super) fn set_port_types(root: &Root, card: &str, ports: &[Port]) -> Vec<Result<PortSet>> {
    set_card(ports, &mut |(port, requested)| {
        set_mlx4_port(root, card, *port, *requested)
    })
}

/// A port that is refused has a second try when another one changed after it: the driver keeps a
/// refused type, so the last write sets both ports of a card that accepts only equal types
/// (mlx4_core, set_port_type).
fn set_card(
    ports: &[Port],
    set: &mut impl FnMut(&Port) -> Result<PortSet>,
) -> Vec<Result<PortSet>> {
    let mut all: Vec<Result<PortSet>> = ports.iter().map(&mut *set).collect();
    if all.contains(&Ok(PortSet::Changed)) {
        for (port, result) in ports.iter().zip(&mut all) {
            if result.is_err() {
                *result = set(port);
            }
        }
    }
    all
}

/// Sets the type of one mlx4 port (drivers/net/ethernet/mellanox/mlx4/main.c, set_port_type) and
/// reads it back.
fn set_mlx4_port(root: &Root, address: &str, port: u32, requested: PortType) -> Result<PortSet> {
    let path = format!("/sys/bus/pci/devices/{address}/mlx4_port{port}");
    let is_so = |text: &str| is_port_type(text, requested);
    let read = || match root.text(&path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(&path, "cannot be read", &e)),
    };
    let Some(before) = read()? else {
        return Ok(PortSet::Absent);
    };
    if is_so(&before) {
        return Ok(PortSet::Unchanged);
    }
    root.set(&path, &format!("{}\n", requested.as_str()))
        .map_err(|e| {
            Error::new(&path, "port type cannot be set")
                .found(format!("{before}, {}", errno_text(&e)))
                .expected(requested.as_str())
                .hint("see dmesg; a card without DPDP refuses two different types (\"Only same port types supported on this HCA\"): set both ports to one type")
        })?;
    match read()? {
        Some(after) if is_so(&after) => Ok(PortSet::Changed),
        after => Err(Error::new(&path, "port type is not as written")
            .found(after.unwrap_or_else(|| "gone".to_owned()))
            .expected(requested.as_str())),
    }
}

/// Tries again, for a limited time, while rdma_cm does not know the device yet (ENODEV of
/// drivers/infiniband/core/cma_configfs.c).
fn until_known<T>(limit: Duration, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = Instant::now() + limit;
    loop {
        match attempt() {
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) && Instant::now() < end => {
                std::thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

/// Sets the default RoCE mode of a port (Documentation/ABI/testing/configfs-rdma_cm). The mode
/// stays when the directory, which holds the device, is removed again.
pub(super) fn set_default_roce_mode(
    root: &Root,
    device: &str,
    port: u32,
    mode: &str,
) -> Result<()> {
    let base = format!("{CONFIGFS}/rdma_cm");
    if !root.exists(&base) && !is_configfs(root) {
        nix::mount::mount(
            Some("configfs"),
            &root.path(CONFIGFS),
            Some("configfs"),
            nix::mount::MsFlags::empty(),
            None::<&str>,
        )
        .map_err(|e| Error::new(CONFIGFS, "cannot be mounted").found(e.desc()))?;
    }
    if !root.exists(&base) {
        return Err(Error::new(&base, "default RoCE mode cannot be set")
            .found("no such directory")
            .hint("the kernel needs CONFIG_INFINIBAND_ADDR_TRANS_CONFIGFS"));
    }
    let directory = format!("{base}/{device}");
    let create = || std::fs::create_dir(root.path(&directory));
    let made = match until_known(UNTIL_KNOWN, create) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
        Err(e) => return Err(Error::io(&directory, "cannot be created", &e)),
    };
    let path = format!("{directory}/ports/{port}/default_roce_mode");
    let result = root
        .set(&path, &format!("{mode}\n"))
        .and_then(|()| root.text(&path))
        .map_err(|e| {
            let what = format!("default RoCE mode {mode} cannot be set (rd.ib.roce=)");
            let error = Error::io(format!("{device}/{port}"), what, &e);
            // cma_set_default_gid_type of drivers/infiniband/core/cma.c.
            match e.raw_os_error() == Some(nix::libc::EINVAL) {
                true => error.hint(
                    "the device has no GIDs of this mode: the link uses the kernel's default",
                ),
                false => error.hint("see dmesg"),
            }
        })
        .and_then(|after| {
            if after == mode {
                Ok(())
            } else {
                Err(Error::new(&path, "default RoCE mode is not as written")
                    .found(after)
                    .expected(mode))
            }
        });
    if made && let Err(e) = std::fs::remove_dir(root.path(&directory)) {
        log::warn!("{directory}: cannot be removed: {}", errno_text(&e));
    }
    result
}

/// True if configfs is mounted already: it would be stacked by every try.
fn is_configfs(root: &Root) -> bool {
    statfs(&root.path(CONFIGFS)).is_ok_and(|fs| fs.filesystem_type() == CONFIGFS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{CardPort, writing_order};
    use std::fs;

    fn card(port1: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let device = dir.path().join("sys/bus/pci/devices/0000:05:00.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("mlx4_port1"), port1).unwrap();
        let root = Root::new(dir.path());
        (dir, root)
    }

    #[test]
    fn a_port_type_is_written_once_and_read_back() {
        let (dir, root) = card("eth\n");
        assert_eq!(
            set_mlx4_port(&root, "0000:05:00.0", 1, PortType::Ib),
            Ok(PortSet::Changed)
        );
        let file = dir
            .path()
            .join("sys/bus/pci/devices/0000:05:00.0/mlx4_port1");
        assert_eq!(fs::read_to_string(&file).unwrap(), "ib\n");
        assert_eq!(
            set_mlx4_port(&root, "0000:05:00.0", 1, PortType::Ib),
            Ok(PortSet::Unchanged)
        );
        assert_eq!(
            set_mlx4_port(&root, "0000:05:00.0", 2, PortType::Ib),
            Ok(PortSet::Absent)
        );
    }

    #[test]
    fn auto_is_met_by_the_detected_type() {
        assert!(is_port_type("auto (ib)", PortType::Auto));
        assert!(!is_port_type("auto (ib)", PortType::Ib));
        assert!(is_port_type("ib", PortType::Ib));
        assert!(!is_port_type("", PortType::Eth));
    }

    #[test]
    fn auto_is_fulfilled_by_what_it_sensed() {
        let (_dir, root) = card("auto (ib)\n");
        assert_eq!(
            set_mlx4_port(&root, "0000:05:00.0", 1, PortType::Auto),
            Ok(PortSet::Unchanged)
        );
    }

    /// The ports in the order in which they are written.
    fn in_order(ports: &[(u32, PortType)]) -> Vec<Port> {
        let port = |(port, value): &(u32, PortType)| CardPort {
            port: *port,
            value: *value,
            step: 0,
        };
        let mut ports: Vec<CardPort> = ports.iter().map(port).collect();
        writing_order(&mut ports);
        let port = |port: &CardPort| (port.port, port.value);
        ports.iter().map(port).collect()
    }

    /// A card as mlx4_core has it (set_port_type): a refused type is kept and applies together with
    /// the next write; without DPDP both ports must have one type. The result is the ports, or the
    /// number of the port that was refused to the end.
    fn on_a_card(
        before: [PortType; 2],
        dpdp: bool,
        ports: &[(u32, PortType)],
    ) -> std::result::Result<[PortType; 2], u32> {
        let mut card = before;
        let mut kept = before;
        let mut set = |(port, value): &Port| {
            let at = *port as usize - 1;
            if card[at] == *value {
                return Ok(PortSet::Unchanged);
            }
            kept[at] = *value;
            if !dpdp && kept[0] != kept[1] {
                return Err(Error::new("mlx4_port", "refused"));
            }
            card = kept;
            Ok(PortSet::Changed)
        };
        let ports = in_order(ports);
        for ((port, _), result) in ports.iter().zip(set_card(&ports, &mut set)) {
            result.map_err(|_| *port)?;
        }
        Ok(card)
    }

    #[test]
    fn port_types_are_written_in_the_order_the_card_takes() {
        use PortType::{Eth, Ib};
        for (before, requested) in [
            ([Ib, Ib], [Eth, Eth]),
            ([Eth, Eth], [Ib, Ib]),
            ([Ib, Ib], [Ib, Eth]),
            ([Ib, Ib], [Eth, Ib]),
            ([Eth, Eth], [Ib, Eth]),
            ([Ib, Eth], [Eth, Eth]),
        ] {
            for ports in [
                [(1, requested[0]), (2, requested[1])],
                [(2, requested[1]), (1, requested[0])],
            ] {
                assert_eq!(on_a_card(before, true, &ports), Ok(requested));
                let is_mix = requested[0] != requested[1];
                let without_dpdp = on_a_card(before, false, &ports);
                assert_eq!(without_dpdp.is_err(), is_mix, "{before:?} {requested:?}");
                assert!(is_mix || without_dpdp == Ok(requested));
            }
        }
    }

    #[test]
    fn a_refused_port_has_a_second_try_after_another_changed() {
        let mut tries = Vec::new();
        let mut set = |(port, _): &Port| {
            tries.push(*port);
            match (*port, tries.len()) {
                (2, 1) => Err(Error::new("mlx4_port2", "refused")),
                _ => Ok(PortSet::Changed),
            }
        };
        let ports = [2, 1].map(|port| (port, PortType::Eth));
        assert_eq!(
            set_card(&ports, &mut set),
            [Ok(PortSet::Changed), Ok(PortSet::Changed)]
        );
        assert_eq!(tries, [2, 1, 2]);
    }

    #[test]
    fn a_device_that_rdma_cm_does_not_know_yet_is_tried_again() {
        let mut errors = vec![libc::EEXIST, libc::ENODEV, libc::ENODEV];
        let mut attempt = || match errors.pop() {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(()),
        };
        let errno = |result: io::Result<()>| result.map_err(|e| e.raw_os_error().unwrap());
        let long = Duration::from_secs(600);
        assert_eq!(errno(until_known(long, &mut attempt)), Err(libc::EEXIST));
        assert_eq!(errno(until_known(long, &mut attempt)), Ok(()));
        let never = || Err(io::Error::from_raw_os_error(libc::ENODEV));
        assert_eq!(errno(until_known(PAUSE, never)), Err(libc::ENODEV));
    }

    #[test]
    fn a_kernel_without_roce_modes_is_an_error_and_no_mount() {
        let (dir, root) = card("ib\n");
        let base = dir.path().join("sys/kernel/config/rdma_cm/rxe0/ports/1");
        fs::create_dir_all(&base).unwrap();
        fs::write(base.join("default_roce_mode"), "IB/RoCE v1\n").unwrap();
        assert_eq!(set_default_roce_mode(&root, "rxe0", 1, "RoCE v2"), Ok(()));
        assert!(!is_configfs(&root));
        assert_eq!(
            set_default_roce_mode(&root, "rxe1", 1, "RoCE v2")
                .unwrap_err()
                .to_string(),
            "rxe1/1: default RoCE mode RoCE v2 cannot be set (rd.ib.roce=): No such file or directory; see dmesg"
        );
    }
}
