// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel modules: which modules the image has (modules.dep(5), modules.builtin), and which are loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use kernel_cmdline::is_rdma_module;
use serde::{Deserialize, Serialize};

use super::root::Root;
use crate::error::{Error, Result};
use crate::system::drivers;

/// The release of the running kernel.
pub const OS_RELEASE: &str = "/proc/sys/kernel/osrelease";
/// The files of an index (depmod(8)).
pub const MODULES_DEP: &str = "modules.dep";
pub const MODULES_BUILTIN: &str = "modules.builtin";
pub const MODULES_ALIAS: &str = "modules.alias";
/// The modules that the kernel has.
const MODULES: &str = "/sys/module";
/// Where the running kernel finds a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Found {
    /// Part of the kernel image.
    Builtin,
    /// A file below /lib/modules/RELEASE.
    File(String),
    /// There is no index: see [`Index::read_or_assume`].
    Assumed,
    /// Neither builtin nor in the index.
    Missing,
}

/// The module index of one kernel release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// `/lib/modules/RELEASE`.
    pub directory: String,
    files: BTreeMap<String, (String, Vec<String>)>,
    builtin: BTreeSet<String>,
    /// PCI aliases of HCA drivers, by pattern, for devices without a driver.
    aliases: Vec<(String, String)>,
    /// Modules of the RDMA stack that bind devices of a bus directly, not a device that another
    /// driver created.
    drivers: BTreeSet<String>,
    /// Why the image is not known: it is assumed to have every module.
    #[serde(default)]
    assumed: Option<String>,
    /// It is that of a machine, not that of an image.
    #[serde(default)]
    is_of_machine: bool,
}

/// The kernel's spelling of a module name: `-` and `_` are equal.
pub fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// `kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko.xz` -> `mlx5_ib`.
pub fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    normal(file.split_once(".ko").map_or(file, |(name, _)| name))
}

/// The lines of an index; a line that is not UTF-8 names no module of the kernel.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok())
}

/// `(pattern, module)` of an alias, for the buses of cards only: an auxiliary driver (mlx5_ib)
/// binds a device that another driver created.
fn device_alias(line: &str) -> Option<(&str, &str)> {
    let (pattern, module) = line.strip_prefix("alias ")?.rsplit_once(' ')?;
    let is_card = pattern.starts_with("pci:") || pattern.starts_with("platform:");
    is_card.then_some((pattern, module))
}

/// Whether a module belongs to the RDMA stack, needs the stack, or is the bonding driver: the
/// modules that this program may have to load. A distribution's index has some 4,000 others.
fn is_of_rdma(path: &str, needs: &str) -> bool {
    let of_tree = |text: &str| text.contains("/infiniband/") || text.contains("/mellanox/");
    let name = name_of(path);
    of_tree(path)
        || of_tree(needs)
        || is_rdma_module(&name)
        || drivers::binds_hcas(&name)
        || name == drivers::BONDING
}

impl Index {
    /// Reads the RDMA part of the index of the running kernel (of `/proc/sys/kernel/osrelease` in
    /// the tree). A missing index is an empty index: every module is then builtin or missing.
    pub fn read(root: &Root) -> Result<Index> {
        let release = root
            .text(OS_RELEASE)
            .map_err(|e| Error::io(OS_RELEASE, "cannot be read", &e))?;
        let directory = format!("/lib/modules/{release}");
        let file = |name: &str| {
            let path = format!("{directory}/{name}");
            match root.read(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                read => read.map_err(|e| Error::io(path, "cannot be read", &e)),
            }
        };
        let mut index = Index::default();
        // One file at a time: a distribution's are large.
        index.add_dep(&file(MODULES_DEP)?);
        index.add_builtin(&file(MODULES_BUILTIN)?);
        index.add_alias(&file(MODULES_ALIAS)?);
        Ok(Index { directory, ..index })
    }

    /// Like [`Index::read`], for a machine that is not the one that boots: if this kernel has no
    /// index at all, as in a container, or its release cannot be read, its image is assumed to have
    /// every module.
    pub fn read_or_assume(root: &Root) -> Result<Index> {
        let assume = |why: String| Index {
            assumed: Some(why),
            ..Index::default()
        };
        let release = match root.text(OS_RELEASE) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                let error = Error::io(OS_RELEASE, "cannot be read", &e);
                return Ok(assume(error.to_string()));
            }
            release => release.unwrap_or_default(),
        };
        let directory = format!("/lib/modules/{release}");
        let directory = directory.trim_end_matches('/');
        let is_missing = |name| matches!(root.is_there(&format!("{directory}/{name}")), Ok(false));
        if [MODULES_DEP, MODULES_BUILTIN].into_iter().all(is_missing) {
            return Ok(assume(format!("no kernel modules in {directory}")));
        }
        Ok(Index {
            is_of_machine: true,
            ..Index::read(root)?
        })
    }

    /// Where a missing module is not.
    pub fn place(&self) -> String {
        match self.is_of_machine {
            true => format!("in {}/{MODULES_DEP}", self.directory),
            false => format!("in the initramfs ({}/{MODULES_DEP})", self.directory),
        }
    }

    /// How a missing module comes into the image.
    pub fn remedy(&self, name: &str) -> String {
        let package = match self.is_of_machine {
            true => "install the package that has it, then ",
            false => "",
        };
        format!("{package}build the image with dracut --force --add-drivers {name}")
    }

    /// The RDMA part of `modules.dep`, `modules.builtin` and `modules.alias` of `directory`.
    pub fn parse(directory: String, dep: &[u8], builtin: &[u8], alias: &[u8]) -> Index {
        let mut index = Index::default();
        index.add_dep(dep);
        index.add_builtin(builtin);
        index.add_alias(alias);
        Index { directory, ..index }
    }

    fn add_dep(&mut self, dep: &[u8]) {
        for (path, needs) in lines(dep).filter_map(|line| line.split_once(':')) {
            if is_of_rdma(path, needs) {
                let needs = needs.split_ascii_whitespace().map(name_of).collect();
                self.files.insert(name_of(path), (path.to_owned(), needs));
            }
        }
    }

    fn add_builtin(&mut self, builtin: &[u8]) {
        let paths = lines(builtin).filter(|path| is_of_rdma(path, ""));
        self.builtin.extend(paths.map(name_of));
    }

    /// After [`Index::add_dep`]: only modules with a file count as drivers.
    fn add_alias(&mut self, alias: &[u8]) {
        for line in lines(alias) {
            let Some((pattern, module)) = device_alias(line) else {
                continue;
            };
            let module = normal(module);
            if self.files.contains_key(&module) {
                self.drivers.insert(module.clone());
            }
            // Only drivers that can bind an HCA: other aliases of a full tree would only use
            // memory.
            if drivers::binds_hcas(&module) && pattern.starts_with("pci:") {
                self.aliases.push((pattern.to_owned(), module));
            }
        }
    }

    /// Why there is no index, and the image is assumed to have every module.
    pub fn assumed(&self) -> Option<&str> {
        self.assumed.as_deref()
    }

    /// Where the running kernel finds `name`.
    pub fn find(&self, name: &str) -> Found {
        let name = normal(name);
        if let Some((path, _)) = self.files.get(&name) {
            Found::File(format!("{}/{path}", self.directory))
        } else if self.builtin.contains(&name) {
            Found::Builtin
        } else if self.assumed.is_some() {
            Found::Assumed
        } else {
            Found::Missing
        }
    }

    /// `name` and all its dependencies in modules.dep, dependencies first.
    pub fn closure(&self, name: &str) -> Vec<String> {
        let name = normal(name);
        let mut all = match self.files.get(&name) {
            // modules.dep lists direct and indirect dependencies, the deepest last.
            Some((_, needs)) => needs.iter().rev().cloned().collect(),
            None => Vec::new(),
        };
        all.push(name);
        all
    }

    /// True if `name` belongs to the RDMA stack and binds devices of a bus directly: it has aliases
    /// of this bus.
    pub fn drives_devices(&self, name: &str) -> bool {
        self.drivers.contains(name) || (self.assumed.is_some() && drivers::binds_hcas(name))
    }

    /// The HCA drivers whose PCI aliases match `modalias`.
    pub fn for_modalias(&self, modalias: &str) -> Vec<String> {
        let mut found: Vec<String> = self
            .aliases
            .iter()
            .filter(|(pattern, _)| glob(pattern.as_bytes(), modalias.as_bytes()))
            .map(|(_, module)| module.clone())
            .collect();
        found.dedup();
        found
    }
}

/// fnmatch(3) with `*` and `?`; PCI aliases use no other pattern. The worst case compares each byte
/// of one text with each byte of the other.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0usize, 0usize);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || Some(&c) == text.get(t) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((star_p, star_t)) => {
                    star = Some((star_p, star_t + 1));
                    p = star_p + 1;
                    t = star_t + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|&c| c == b'*')
}

/// State of a module (`/sys/module/NAME/initstate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InitState {
    /// Loaded and initialised; a builtin module is always live.
    Live,
    /// The init function runs.
    Coming,
    /// The module is being removed.
    Going,
}

/// The state of `name`; `None` if the kernel does not have the module. An unknown state is
/// `InvalidData`. A builtin module without parameters has no directory in /sys/module: use
/// [`Index::find`] for builtin modules.
pub fn init_state(root: &Root, name: &str) -> io::Result<Option<InitState>> {
    let directory = format!("{MODULES}/{}", normal(name));
    let state = match root.text(&format!("{directory}/initstate")) {
        // Only the directory of a builtin module lacks this file.
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(root.is_there(&directory)?.then_some(InitState::Live));
        }
        state => state?,
    };
    match state.as_str() {
        "live" => Ok(Some(InitState::Live)),
        "coming" => Ok(Some(InitState::Coming)),
        "going" => Ok(Some(InitState::Going)),
        other => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{other:?} is not a module state"),
        )),
    }
}

/// Whether the kernel reports `name` as loaded and initialised.
pub fn is_live(root: &Root, name: &str) -> bool {
    matches!(init_state(root, name), Ok(Some(InitState::Live)))
}

/// The modules of the RDMA stack, and the bonding driver, that the kernel reports as live.
pub fn live(root: &Root) -> BTreeSet<String> {
    let names = root.list(MODULES).unwrap_or_default().into_iter();
    names
        .filter(|name| is_of_rdma(name, "") && is_live(root, name))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs;

    /// A tree with the modules of Debian's kernel.
    pub fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let modules = dir.path().join("lib/modules/6.1.0-50-amd64");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        fs::write(
            dir.path().join("proc/sys/kernel/osrelease"),
            "6.1.0-50-amd64\n",
        )
        .unwrap();
        fs::write(
            modules.join("modules.dep"),
            "kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko: kernel/drivers/infiniband/core/ib_uverbs.ko kernel/drivers/infiniband/core/ib_core.ko kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko kernel/drivers/pci/controller/pci-hyperv-intf.ko\nkernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko: kernel/drivers/pci/controller/pci-hyperv-intf.ko\nextra/erdma.ko: kernel/drivers/infiniband/core/ib_core.ko\nupdates/hns_roce.ko: kernel/drivers/infiniband/core/ib_core.ko\n",
        )
        .unwrap();
        fs::write(
            modules.join("modules.builtin"),
            "kernel/fs/ext4/ext4.ko\nkernel/drivers/infiniband/core/iw_cm.ko\n",
        )
        .unwrap();
        fs::write(
            modules.join("modules.alias"),
            "alias pci:v000015B3d0000101Bsv*sd*bc*sc*i* mlx5_core\nalias fs-ext4 ext4\nalias pci:v00008086d000010D3sv*sd*bc*sc*i* e1000e\nalias auxiliary:mlx5_core.rdma mlx5_ib\nalias pci:v00001DEDd0000107Fsv*sd*bc*sc*i* erdma\nalias platform:hns_roce hns-roce\n",
        )
        .unwrap();
        dir
    }

    #[test]
    fn the_index_finds_a_module() {
        let dir = tree();
        let index = Index::read(&Root::new(dir.path())).unwrap();
        assert_eq!(
            index.find("mlx5-ib"),
            Found::File(
                "/lib/modules/6.1.0-50-amd64/kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko".into()
            )
        );
        assert_eq!(index.find("iw-cm"), Found::Builtin);
        // Not part of the RDMA stack.
        assert_eq!(index.find("ext4"), Found::Missing);
        assert_eq!(index.find("siw"), Found::Missing);
        assert_eq!(
            index.closure("mlx5_ib"),
            [
                "pci_hyperv_intf",
                "mlx5_core",
                "ib_core",
                "ib_uverbs",
                "mlx5_ib"
            ]
        );
        assert!(index.drives_devices("mlx5_core") && !index.drives_devices("mlx5_ib"));
        // A module of any vendor that needs the RDMA stack belongs to it.
        assert!(index.drives_devices("erdma") && index.drives_devices("hns_roce"));
        assert_eq!(
            index.for_modalias("pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00"),
            ["mlx5_core"]
        );
        assert!(index.for_modalias("pci:v00008086d0000101B").is_empty());
        // A driver that creates no RDMA device is left out.
        let network = "pci:v00008086d000010D3sv00008086sd0000A01Fbc02sc00i00";
        assert!(index.for_modalias(network).is_empty() && !index.drives_devices("e1000e"));
    }

    #[test]
    fn glob_is_fnmatch() {
        for (pattern, text, fits) in [
            ("a*c", "abc", true),
            ("a*c", "abd", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("", "a", false),
            ("a*b*c", "aXbYbZc", true),
            ("ib0", "ib0", true),
            ("ib0", "ib01", false),
            ("ib*", "ibp9s0", true),
            ("*", "ib0", true),
            ("*s0", "ibp9s0", true),
            ("*s0", "ibp9s0f1", false),
            ("ib?", "ib0", true),
            ("ib?", "ib", false),
            ("i*p*0", "ibp9s0", true),
            ("i*s0s0", "ibs0s0", true),
        ] {
            assert_eq!(
                glob(pattern.as_bytes(), text.as_bytes()),
                fits,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn initstate_of_live_coming_builtin_and_absent() {
        let dir = tempfile::tempdir().unwrap();
        for (name, state) in [
            ("ib_core", Some("live\n")),
            ("mlx5_core", Some("coming\n")),
            ("mlx4_core", Some("\n")),
            ("hfi1", Some("LIVE\n")),
            ("ext4", None),
        ] {
            let module = dir.path().join("sys/module").join(name);
            fs::create_dir_all(&module).unwrap();
            if let Some(state) = state {
                fs::write(module.join("initstate"), state).unwrap();
            }
        }
        let root = Root::new(dir.path());
        let state = |name: &str| init_state(&root, name).map_err(|e| e.to_string());
        assert_eq!(state("ib-core"), Ok(Some(InitState::Live)));
        assert_eq!(state("mlx5_core"), Ok(Some(InitState::Coming)));
        assert_eq!(state("ext4"), Ok(Some(InitState::Live)));
        assert_eq!(state("siw"), Ok(None));
        // Only `live` is live.
        for (name, word) in [("mlx4_core", ""), ("hfi1", "LIVE")] {
            assert_eq!(state(name), Err(format!("{word:?} is not a module state")));
            assert!(!is_live(&root, name));
        }
    }
}
