// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel modules: which modules the image has (modules.dep(5), modules.builtin), which are loaded,
//! and modprobe(8) to load them. modprobe instead of finit_module(2), because modprobe handles
//! `install` lines, options, soft dependencies and compressed modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::Duration;

use kernel_cmdline::is_rdma_module;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use super::kmsg::KernelWords;
use super::priority::make_usual;
use super::root::Root;
use crate::error::{Error, Result, printable};
use crate::system::drivers;

/// Paths of modprobe in dracut's images and in real roots.
pub const MODPROBE: [&str; 4] = [
    "/sbin/modprobe",
    "/usr/sbin/modprobe",
    "/bin/modprobe",
    "/usr/bin/modprobe",
];
/// The release of the running kernel.
const OS_RELEASE: &str = "/proc/sys/kernel/osrelease";
/// The files of an index (depmod(8)).
pub const MODULES_DEP: &str = "modules.dep";
pub const MODULES_BUILTIN: &str = "modules.builtin";
pub const MODULES_ALIAS: &str = "modules.alias";
/// Pauses before another try: EBUSY is temporary while another program's attempt to load the module
/// fails (kernel/module/main.c, module_patient_check_exists).
const RETRY: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1500),
    Duration::from_secs(5),
];

/// Lines of modprobe, and of the kernel, in one error: the first ones of modprobe, the last ones of
/// the kernel.
const LINES: usize = 8;
/// Longest line of modprobe in an error; a line of the kernel has at most 1 kB.
const CHARACTERS: usize = 300;
/// Bytes that are read of what modprobe printed.
const PRINTED: usize = 16 << 10;

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
    /// The image is not known: it is assumed to have every module.
    #[serde(default)]
    assumed: bool,
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
    /// index at all, as in a container, its image is assumed to have every module.
    pub fn read_or_assume(root: &Root) -> Result<Index> {
        let release = root.text(OS_RELEASE).unwrap_or_default();
        let directory = format!("/lib/modules/{release}");
        let directory = directory.trim_end_matches('/').to_owned();
        let is_missing = |name| matches!(root.is_there(&format!("{directory}/{name}")), Ok(false));
        if [MODULES_DEP, MODULES_BUILTIN].into_iter().all(is_missing) {
            return Ok(Index {
                directory,
                assumed: true,
                ..Index::default()
            });
        }
        Index::read(root)
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

    /// Whether there is no index, and the image is assumed to have every module.
    pub fn is_assumed(&self) -> bool {
        self.assumed
    }

    /// Where the running kernel finds `name`.
    pub fn find(&self, name: &str) -> Found {
        let name = normal(name);
        if let Some((path, _)) = self.files.get(&name) {
            Found::File(format!("{}/{path}", self.directory))
        } else if self.builtin.contains(&name) {
            Found::Builtin
        } else if self.assumed {
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
        self.drivers.contains(name) || (self.assumed && drivers::binds_hcas(name))
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
    let directory = format!("/sys/module/{}", normal(name));
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

/// Loads `name` with modprobe and `parameters`, and succeeds only if the kernel then reports the
/// module as live. It is not an error if another program loads the module at the same time. The
/// error quotes modprobe and the kernel.
pub async fn load(root: &Root, index: &Index, name: &str, parameters: &[String]) -> Result<()> {
    let name = normal(name);
    if index.find(&name) == Found::Builtin {
        return Ok(());
    }
    if is_live(root, &name) {
        return Ok(());
    }
    let Some(modprobe) = MODPROBE.iter().find(|path| root.exists(path)) else {
        return Err(Error::new(&name, "cannot be loaded")
            .found("no modprobe in this image")
            .hint("install kmod into the image"));
    };
    let mut words = KernelWords::from_now();
    let mut pauses = RETRY.iter();
    loop {
        let printed = run(modprobe, &name, parameters)
            .await
            .map_err(|e| Error::io(modprobe, "cannot be run", &e))?;
        if is_live(root, &name) {
            return Ok(());
        }
        if let Some(pause) = pauses.next()
            && is_temporary(&printed, init_state(root, &name).ok().flatten())
        {
            tokio::time::sleep(*pause).await;
            continue;
        }
        return Err(failure(
            &name,
            &printed,
            &kernel_words(index, &name, &mut words),
        ));
    }
}

/// Runs modprobe to its end. The text is the beginning of what it has printed.
async fn run(modprobe: &str, name: &str, parameters: &[String]) -> io::Result<String> {
    // Not a pipe: a daemon that an `install` line of modprobe.d has started could hold it open.
    let printed = memory_file()?;
    let mut child = tokio::process::Command::new(modprobe)
        .arg("--")
        .arg(name)
        .args(parameters)
        .env_clear()
        // `install` lines are shell text and find their programs through PATH.
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(printed.try_clone()?)
        .spawn()?;
    // The drivers of links have the high priority of the loader (`ibboot-loader@.service`); these
    // modules have the usual one, so that a link need not wait for them on a machine with few
    // processors.
    if drivers::is_for_programs(name)
        && let Some(process) = child.id()
        && let Err(error) = make_usual(process)
    {
        log::debug!("{name}: the priority of modprobe cannot be lowered: {error}");
    }
    child.wait().await?;
    // A daemon that prints more must not fill the memory.
    fcntl(&printed, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_GROW))?;
    let mut text = vec![0; PRINTED];
    let length = printed.read_at(&mut text, 0)?;
    text.truncate(length);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A file without a name (memfd_create(2)).
fn memory_file() -> io::Result<File> {
    // MFD_NOEXEC_SEAL, which vm.memfd_noexec=2 requires and a kernel before 6.3 does not know.
    let no_exec = MFdFlags::from_bits_retain(8);
    let usual = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let create = |flags| memfd_create(c"modprobe", usual | flags);
    let file = create(no_exec).or_else(|_| create(MFdFlags::empty()))?;
    Ok(File::from(file))
}

/// The kernel's log lines about the module or, if there are none, about its dependencies: modprobe
/// loads these first and stops at the first failure.
fn kernel_words(index: &Index, name: &str, words: &mut KernelWords) -> Vec<String> {
    let closure = index.closure(name);
    let spellings: Vec<String> = closure
        .iter()
        .flat_map(|module| [module.clone(), module.replace('_', "-")])
        .collect();
    let spellings: Vec<&str> = spellings.iter().map(String::as_str).collect();
    chosen(words.about(&spellings), name, &closure)
}

/// The lines about `name`; without any, the last lines about its dependencies.
fn chosen(lines: Vec<String>, name: &str, closure: &[String]) -> Vec<String> {
    /// Number of lines about dependencies: a dependency that was loaded successfully may have
    /// logged many.
    const OF_OTHERS: usize = 3;
    let (own, others): (Vec<_>, Vec<_>) = lines
        .into_iter()
        .filter(|line| closure.iter().any(|module| mentions(line, module)))
        .partition(|line| mentions(line, name));
    if !own.is_empty() {
        return own;
    }
    let skip = others.len().saturating_sub(OF_OTHERS);
    others.into_iter().skip(skip).collect()
}

/// True if a word of `line` is the module, in either spelling.
fn mentions(line: &str, module: &str) -> bool {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
        .any(|word| normal(word) == module)
}

/// Whether the failure is temporary, because another program is loading the module.
fn is_temporary(output: &str, state: Option<InitState>) -> bool {
    state.is_some()
        || output.contains("Device or resource busy")
        || output.contains("Resource temporarily unavailable")
        || output.contains("err -16")
}

/// Combines the messages of modprobe and of the kernel to one error. An install line of modprobe.d
/// may print any number of lines.
fn failure(name: &str, output: &str, kernel: &[String]) -> Error {
    let mut found = output
        .lines()
        .map(|line| {
            let line = line.trim();
            line.strip_prefix("modprobe: ")
                .map(|rest| {
                    rest.trim_start_matches("ERROR: ")
                        .trim_start_matches("FATAL: ")
                })
                .unwrap_or(line)
        })
        .filter(|line| !line.is_empty())
        .take(LINES)
        .map(|line| line.chars().take(CHARACTERS).collect::<String>())
        .collect::<Vec<_>>()
        .join(", ");
    if found.is_empty() {
        found.push_str("modprobe reported no error, but the module is not loaded");
    }
    let last = kernel.len().saturating_sub(LINES);
    let words: Vec<&str> = kernel.iter().skip(last).map(String::as_str).collect();
    if !words.is_empty() {
        found.push_str(&format!(" (kernel: {})", words.join(" | ")));
    }
    let of_two_builds =
        |line: &String| line.contains("disagrees about version") || line.contains("version magic");
    let hint = if kernel.iter().any(of_two_builds) {
        "the image mixes modules of two builds: rebuild the image"
    } else if output.contains("Key was rejected") || output.contains("Required key not available") {
        "the module is not signed by a key that this kernel trusts"
    } else if output.contains("allow_unsupported_modules") {
        // modprobe of SLES.
        "set allow_unsupported_modules 1 in that file, and rebuild the image"
    } else if output.contains("Operation not permitted") {
        "check the command line for module_blacklist=, and the kernel for lockdown"
    } else if output.trim().is_empty() || output.contains("running install command") {
        "look for an install line of this module in modprobe.d"
    } else {
        "see dmesg"
    };
    Error::new(name, "kernel module cannot be loaded")
        .found(printable(&found))
        .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    fn tree() -> tempfile::TempDir {
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

    #[tokio::test]
    async fn a_daemon_of_an_install_line_is_not_awaited() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        fs::write(&script, "sleep 30 &\necho $! $1 >&2\n").unwrap();
        // `sh -- SCRIPT PARAMETER` in place of `modprobe -- MODULE PARAMETER`.
        let parameters = ["a=1".to_owned()];
        let run = run("/bin/sh", script.to_str().unwrap(), &parameters);
        let printed = tokio::time::timeout(Duration::from_secs(10), run).await;
        let printed = printed.unwrap().unwrap();
        let daemon = printed.strip_suffix(" a=1\n").unwrap().parse().unwrap();
        kill(Pid::from_raw(daemon), Signal::SIGKILL).unwrap();
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

    #[test]
    fn a_failure_of_many_lines_is_short() {
        let (line, word) = ("a".repeat(5000) + "\n", "mlx5_core: b".to_owned());
        let error = failure("mlx5_core", &line.repeat(5000), &vec![word.clone(); 5000]);
        let lines = vec!["a".repeat(CHARACTERS); LINES].join(", ");
        let words = vec![word; LINES].join(" | ");
        assert_eq!(error.found, Some(format!("{lines} (kernel: {words})")));
    }

    #[test]
    fn a_failure_quotes_modprobe_and_the_kernel() {
        let error = failure(
            "mlx5_core",
            "modprobe: ERROR: could not insert 'mlx5_core': Invalid argument\n",
            &["mlx5_core: disagrees about version of symbol mlxfw_firmware_flash".to_owned()],
        );
        assert_eq!(
            error.to_string(),
            "mlx5_core: kernel module cannot be loaded: could not insert 'mlx5_core': Invalid argument \
             (kernel: mlx5_core: disagrees about version of symbol mlxfw_firmware_flash); \
             the image mixes modules of two builds: rebuild the image"
        );
    }

    #[test]
    fn the_hint_of_a_failure_fits_its_cause() {
        let builds = "the image mixes modules of two builds: rebuild the image";
        let line = "look for an install line of this module in modprobe.d";
        for (output, kernel, hint) in [
            (
                "modprobe: ERROR: could not insert 'mlx5_ib': Exec format error\n",
                "mlx5_ib: version magic '5.14.0-362.el9 SMP' should be '5.14.0-427.el9 SMP'",
                builds,
            ),
            (
                "modprobe: ERROR: could not insert 'mlx5_ib': Key was rejected by service\n",
                "",
                "the module is not signed by a key that this kernel trusts",
            ),
            // kmod of SLES 15.
            (
                "modprobe: ERROR: module 'mlx5_ib' is unsupported\n\
                 modprobe: ERROR: Use --allow-unsupported or set allow_unsupported_modules 1 in\n\
                 modprobe: ERROR: /etc/modprobe.d/10-unsupported-modules.conf\n\
                 modprobe: ERROR: could not insert 'mlx5_ib': Operation not permitted\n",
                "",
                "set allow_unsupported_modules 1 in that file, and rebuild the image",
            ),
            (
                "modprobe: ERROR: could not insert 'mlx5_ib': Operation not permitted\n",
                "Module mlx5_ib is blacklisted",
                "check the command line for module_blacklist=, and the kernel for lockdown",
            ),
            // install mlx5_ib /bin/true
            ("", "", line),
            // install mlx5_ib /bin/false, kmod 30
            (
                "modprobe: ERROR: ../libkmod/libkmod-module.c:1047 command_do() Error running install \
                 command '/bin/false' for module mlx5_ib: retcode 1\n\
                 modprobe: ERROR: could not insert 'mlx5_ib': Invalid argument\n",
                "",
                line,
            ),
            (
                "modprobe: ERROR: could not insert 'mlx5_ib': Cannot allocate memory\n",
                "",
                "see dmesg",
            ),
        ] {
            let error = failure("mlx5_ib", output, &[kernel.to_owned()]);
            assert_eq!(error.hint.as_deref(), Some(hint), "{output}");
        }
    }

    #[test]
    fn the_kernel_may_name_a_dependency() {
        let dir = tree();
        let index = Index::read(&Root::new(dir.path())).unwrap();
        let closure = index.closure("mlx5_ib");
        let lines = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
        let mixed = "mlx5_core: disagrees about version of symbol devlink_alloc_ns";
        assert_eq!(
            chosen(lines(&["xib_core: no", mixed]), "mlx5_ib", &closure),
            [mixed]
        );
        let hyphen = "pci-hyperv-intf: Unknown symbol (err -22)";
        assert_eq!(chosen(lines(&[hyphen]), "mlx5_ib", &closure), [hyphen]);
        // Lines about the module itself take precedence over lines about a dependency.
        let own = "mlx5_ib: Unknown symbol ib_alloc (err -2)";
        let up = "mlx5_core 0000:81:00.0: firmware version: 20.31.1014";
        assert_eq!(chosen(lines(&[up, own]), "mlx5_ib", &closure), [own]);
        assert_eq!(
            chosen(lines(&[up, up, up, mixed]), "mlx5_ib", &closure),
            [up, up, mixed]
        );
    }

    #[test]
    fn a_failure_beside_another_loader_is_temporary() {
        assert!(is_temporary(
            "could not insert 'x': Device or resource busy",
            None
        ));
        assert!(is_temporary("", Some(InitState::Coming)));
        assert!(!is_temporary(
            "could not insert 'x': Exec format error",
            None
        ));
    }
}
