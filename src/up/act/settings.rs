// SPDX-License-Identifier: MIT OR Apache-2.0
//! Port types of mlx4 cards and default RoCE modes. Of several arguments that mean a port the
//! last one counts.

use std::collections::BTreeMap;
use std::io;

use kernel_cmdline::Selector;
use nix::sys::statfs::{FsType, statfs};

use super::is_live;
use crate::error::{Error, errno_text};
use crate::facts::{Facts, select};
use crate::plan::{Action, Step, mlx4_targets};
use crate::rdma::types::LinkLayer;
use crate::system::root::Root;
use crate::up::Walk;

const CONFIGFS: &str = "/sys/kernel/config";
/// CONFIGFS_MAGIC (fs/configfs/mount.c).
const CONFIGFS_MAGIC: FsType = FsType(0x6265_6570);

/// A PCI address or a device, and a port of it.
type Key = (String, u32);

/// Which step was carried out last for each port: a later one may come to mean it when its
/// device appears.
#[derive(Debug, Default)]
pub struct Done {
    port_types: BTreeMap<Key, usize>,
    roce: BTreeMap<Key, usize>,
}

/// What the last step that means a port wants of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    step: usize,
    value: &'static str,
}

impl Walk<'_> {
    /// True if a type was changed.
    pub(super) fn set_port_types(&mut self, facts: &Facts) -> bool {
        let root = self.root;
        let there = |address: &str| root.exists(&format!("/sys/bus/pci/devices/{address}"));
        let mut cards: BTreeMap<String, Vec<(u32, Last)>> = BTreeMap::new();
        for ((address, port), last) in port_types(&self.plan.steps, facts, there) {
            let done = &self.acts.settings.port_types;
            if done
                .get(&(address.clone(), port))
                .is_none_or(|step| *step < last.step)
            {
                cards.entry(address).or_default().push((port, last));
            }
        }
        let mut changed = false;
        for (address, ports) in cards {
            let mut set = |port: u32, wanted: &str| set_mlx4_port(root, &address, port, wanted);
            let types = ports.iter().map(|(port, last)| (*port, last.value));
            for (port, wanted, result) in set_card(types.collect(), &mut set) {
                match result {
                    Ok(None) => continue,
                    Ok(Some(true)) => {
                        log::info!("{address}: port {port}: type set to {wanted}");
                        changed = true;
                    }
                    Ok(Some(false)) => {}
                    Err(error) => {
                        self.journal.fail(error.to_string());
                    }
                }
                if let Some((_, last)) = ports.iter().find(|(of, _)| *of == port) {
                    let key = (address.clone(), port);
                    self.acts.settings.port_types.insert(key, last.step);
                }
            }
        }
        changed
    }

    /// What cannot be set is told once and is a failure of the run; nothing waits for it.
    pub(super) fn set_roce_modes(&mut self, facts: &Facts) {
        let wants = |step: &Step| matches!(step.action, Action::SetRoceMode { .. });
        if !self.plan.steps.iter().any(wants) || !is_live(self.root, self.index, "rdma_cm") {
            return;
        }
        for (key, (last, link_layer)) in roce_modes(&self.plan.steps, facts) {
            let done = self.acts.settings.roce.get(&key);
            if done.is_some_and(|step| *step >= last.step) {
                continue;
            }
            let (device, port) = &key;
            let mode = last.value;
            let result = match link_layer {
                LinkLayer::Ethernet => set_default_roce_mode(self.root, device, *port, mode),
                other => Err(Error::new(
                    format!("{device}/{port}"),
                    "default RoCE mode cannot be set",
                )
                .seen(other.to_string())
                .wanted(LinkLayer::Ethernet.to_string())),
            };
            match result {
                Ok(()) => log::info!("{device}/{port}: default RoCE mode is {mode}"),
                Err(error) => {
                    self.journal.fail(error.to_string());
                }
            }
            self.acts.settings.roce.insert(key, last.step);
        }
    }
}

/// The type of each port by the last step that means it.
fn port_types(steps: &[Step], facts: &Facts, there: impl Fn(&str) -> bool) -> BTreeMap<Key, Last> {
    let mut types = BTreeMap::new();
    for (step, action) in steps.iter().map(|step| &step.action).enumerate() {
        let Action::SetPortType {
            selector,
            port_type,
        } = action
        else {
            continue;
        };
        for (address, port) in mlx4_targets(selector, facts, &there).unwrap_or_default() {
            for port in port.map_or_else(|| vec![1, 2], |port| vec![port]) {
                let value = *port_type;
                types.insert((address.clone(), port), Last { step, value });
            }
        }
    }
    types
}

/// The RoCE mode of each port by the last step that means it. "All ports" are those that can
/// have one.
fn roce_modes(steps: &[Step], facts: &Facts) -> BTreeMap<Key, (Last, LinkLayer)> {
    let mut modes = BTreeMap::new();
    for (step, action) in steps.iter().map(|step| &step.action).enumerate() {
        let Action::SetRoceMode { selector, mode } = action else {
            continue;
        };
        let found = match selector.as_deref().map(Selector::parse) {
            None => facts
                .ports()
                .filter(|found| found.port.link_layer == Some(LinkLayer::Ethernet))
                .collect(),
            Some(Some(selector)) => select::ports(&selector, facts),
            Some(None) => Vec::new(),
        };
        for found in found {
            if let Some(link_layer) = found.port.link_layer {
                let key = (found.device.ifname.clone(), found.port.port);
                modes.insert(key, (Last { step, value: mode }, link_layer));
            }
        }
    }
    modes
}

/// The order in which no write stands in the way of the next: on most cards port 1 cannot be eth
/// while port 2 is ib (drivers/net/ethernet/mellanox/mlx4/main.c, mlx4_check_port_params).
fn writing_order(ports: &mut [(u32, &str)]) {
    ports.sort_by_key(|(port, wanted)| match (*wanted, port) {
        ("eth", 2) | ("ib" | "auto", 1) => (0, *port),
        _ => (1, *port),
    });
}

/// What became of one port: its number, the type wanted, and as [`set_mlx4_port`].
type Set<'a> = (u32, &'a str, Result<Option<bool>, Error>);

/// Sets the types of the ports of one card. A port that is refused has a second try when another
/// one changed after it.
fn set_card<'a>(
    mut ports: Vec<(u32, &'a str)>,
    set: &mut impl FnMut(u32, &str) -> Result<Option<bool>, Error>,
) -> Vec<Set<'a>> {
    writing_order(&mut ports);
    let mut all: Vec<Set<'a>> = Vec::new();
    for (port, wanted) in ports {
        all.push((port, wanted, set(port, wanted)));
    }
    if all.iter().any(|(_, _, result)| *result == Ok(Some(true))) {
        for (port, wanted, result) in all.iter_mut().filter(|(_, _, result)| result.is_err()) {
            *result = set(*port, wanted);
        }
    }
    all
}

/// Sets the type of one mlx4 port (drivers/net/ethernet/mellanox/mlx4/main.c, set_port_type) and
/// reads it back. `None`: the card does not have this file (yet); `Some(false)`: it was so.
fn set_mlx4_port(
    root: &Root,
    address: &str,
    port: u32,
    wanted: &str,
) -> Result<Option<bool>, Error> {
    let path = format!("/sys/bus/pci/devices/{address}/mlx4_port{port}");
    let is_so = |text: &str| match wanted {
        "auto" => text.starts_with("auto"),
        _ => text == wanted,
    };
    let read = || match root.text(&path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(&path, "cannot be read", &e)),
    };
    let Some(before) = read()? else {
        return Ok(None);
    };
    if is_so(&before) {
        return Ok(Some(false));
    }
    root.set(&path, &format!("{wanted}\n")).map_err(|e| {
        Error::new(&path, "port type cannot be set")
            .seen(format!("{before}, {}", errno_text(&e)))
            .wanted(wanted)
            .hint("see dmesg; many cards cannot have port 1 eth and port 2 ib")
    })?;
    match read()? {
        Some(after) if is_so(&after) => Ok(Some(true)),
        after => Err(Error::new(&path, "port type is not as written")
            .seen(after.unwrap_or_else(|| "gone".to_owned()))
            .wanted(wanted)),
    }
}

/// Sets the default RoCE mode of a port (Documentation/ABI/testing/configfs-rdma_cm). The mode
/// stays when the directory, which holds the device, is removed again.
fn set_default_roce_mode(root: &Root, device: &str, port: u32, mode: &str) -> Result<(), Error> {
    let base = format!("{CONFIGFS}/rdma_cm");
    if !root.exists(&base) && !is_configfs(root) {
        nix::mount::mount(
            Some("configfs"),
            &root.path(CONFIGFS),
            Some("configfs"),
            nix::mount::MsFlags::empty(),
            None::<&str>,
        )
        .map_err(|e| Error::new(CONFIGFS, "cannot be mounted").seen(e.desc()))?;
    }
    if !root.exists(&base) {
        return Err(Error::new(&base, "default RoCE mode cannot be set")
            .seen("no such directory")
            .hint("the kernel needs CONFIG_INFINIBAND_ADDR_TRANS_CONFIGFS"));
    }
    let directory = format!("{base}/{device}");
    let made = match std::fs::create_dir(root.path(&directory)) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
        Err(e) => return Err(Error::io(&directory, "cannot be made", &e)),
    };
    let path = format!("{directory}/ports/{port}/default_roce_mode");
    let result = root
        .set(&path, &format!("{mode}\n"))
        .and_then(|()| root.text(&path))
        .map_err(|e| Error::io(&path, "default RoCE mode cannot be set", &e))
        .and_then(|after| {
            if after == mode {
                Ok(())
            } else {
                Err(Error::new(&path, "default RoCE mode is not as written")
                    .seen(after)
                    .wanted(mode))
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
            set_mlx4_port(&root, "0000:05:00.0", 1, "ib"),
            Ok(Some(true))
        );
        let file = dir
            .path()
            .join("sys/bus/pci/devices/0000:05:00.0/mlx4_port1");
        assert_eq!(fs::read_to_string(&file).unwrap(), "ib\n");
        assert_eq!(
            set_mlx4_port(&root, "0000:05:00.0", 1, "ib"),
            Ok(Some(false))
        );
        assert_eq!(set_mlx4_port(&root, "0000:05:00.0", 2, "ib"), Ok(None));
    }

    #[test]
    fn auto_is_fulfilled_by_what_it_sensed() {
        let (_dir, root) = card("auto (ib)\n");
        assert_eq!(
            set_mlx4_port(&root, "0000:05:00.0", 1, "auto"),
            Ok(Some(false))
        );
    }

    fn steps(cmdline: &str) -> Vec<Step> {
        let plan = |sys: &str| {
            let inventory = crate::plan::Inventory::read(&tree(sys)).unwrap();
            crate::plan::plan(&crate::request::Request::from_text(cmdline), &inventory)
        };
        plan("fresh-node").steps
    }

    fn tree(name: &str) -> Root {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        Root::new(sys.join(name))
    }

    fn look(name: &str) -> Facts {
        Facts::gather(
            &tree(name),
            None,
            &[],
            crate::wish::expectation::Depth::Ports,
        )
    }

    #[test]
    fn the_last_port_type_counts() {
        let steps = steps(
            "rd.ib.porttype=mlx4_0:1:ib rd.ib.porttype=pci=0000:05:00.0:eth rd.ib.porttype=mlx4_0:2:auto",
        );
        let types = |facts: &Facts| -> Vec<(u32, &str)> {
            port_types(&steps, facts, |address| address == "0000:05:00.0")
                .into_iter()
                .map(|((_, port), last)| (port, last.value))
                .collect()
        };
        assert_eq!(types(&look("connectx3-dual")), [(1, "eth"), (2, "auto")]);
        // Before the device is there only its address means it.
        assert_eq!(types(&Facts::default()), [(1, "eth"), (2, "eth")]);
    }

    #[test]
    fn the_last_roce_mode_counts() {
        let value = |cmdline: &str| {
            let modes = roce_modes(&steps(cmdline), &look("soft-roce"));
            let (last, link_layer) = modes.get(&("rxe0".to_owned(), 1)).copied().unwrap();
            assert_eq!(link_layer, LinkLayer::Ethernet);
            last.value
        };
        assert_eq!(value("rd.ib.roce=v2 rd.ib.roce=rxe0:v1"), "IB/RoCE v1");
        assert_eq!(value("rd.ib.roce=rxe0:v1 rd.ib.roce=v2"), "RoCE v2");
        let steps = steps("rd.ib.roce=v2 rd.ib.roce=mlx5_0:v1");
        let modes = roce_modes(&steps, &look("connectx6-hdr"));
        assert_eq!(
            modes
                .into_iter()
                .map(|(key, (_, l))| (key, l))
                .collect::<Vec<_>>(),
            [(("mlx5_0".to_owned(), 1), LinkLayer::InfiniBand)]
        );
    }

    /// A card as mlx4_check_port_params has it: port 1 is not eth while port 2 is ib.
    fn on_a_card(before: [&'static str; 2], ports: &[(u32, &'static str)]) -> ([String; 2], usize) {
        let mut card = before.map(str::to_owned);
        let mut writes = 0;
        let mut set = |port: u32, wanted: &str| {
            let mut next = card.clone();
            next[port as usize - 1] = wanted.to_owned();
            if next == card {
                return Ok(Some(false));
            }
            writes += 1;
            if next[0] == "eth" && next[1] == "ib" {
                return Err(Error::new("mlx4_port1", "refused"));
            }
            card = next;
            Ok(Some(true))
        };
        for (_, _, result) in set_card(ports.to_vec(), &mut set) {
            result.unwrap();
        }
        (card, writes)
    }

    #[test]
    fn port_types_are_written_in_the_order_the_card_takes() {
        for (before, wanted) in [
            (["ib", "ib"], ["eth", "eth"]),
            (["eth", "eth"], ["ib", "ib"]),
            (["ib", "ib"], ["ib", "eth"]),
            (["eth", "eth"], ["ib", "eth"]),
            (["ib", "eth"], ["eth", "eth"]),
        ] {
            for ports in [
                [(1, wanted[0]), (2, wanted[1])],
                [(2, wanted[1]), (1, wanted[0])],
            ] {
                let different = before.iter().zip(wanted).filter(|(a, b)| **a != *b).count();
                let (card, writes) = on_a_card(before, &ports);
                assert_eq!((card, writes), (wanted.map(str::to_owned), different));
            }
        }
    }

    #[test]
    fn a_refused_port_has_a_second_try_after_another_changed() {
        let mut tries = Vec::new();
        let mut set = |port: u32, _: &str| {
            tries.push(port);
            match (port, tries.len()) {
                (2, 1) => Err(Error::new("mlx4_port2", "refused")),
                _ => Ok(Some(true)),
            }
        };
        let all = set_card(vec![(1, "eth"), (2, "eth")], &mut set);
        assert!(all.iter().all(|(_, _, result)| *result == Ok(Some(true))));
        assert_eq!(tries, [2, 1, 2]);
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
            "/sys/kernel/config/rdma_cm/rxe1/ports/1/default_roce_mode: default RoCE mode cannot \
             be set: No such file or directory"
        );
    }
}
