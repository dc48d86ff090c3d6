// SPDX-License-Identifier: MIT OR Apache-2.0
//! modprobe(8), which loads kernel modules. It handles `install` lines, options, soft dependencies and
//! compressed modules, which finit_module(2) does not.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::kmsg::KernelWords;
use super::modules::{Found, Index, InitState, init_state, is_live, normal};
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
/// 1: the kernel loads no module until it is started again (Documentation/admin-guide/sysctl/kernel.rst).
const MODULES_DISABLED: &str = "/proc/sys/kernel/modules_disabled";
/// Pauses before another try: EBUSY is temporary while another program's attempt to load the module
/// fails (kernel/module/main.c, module_patient_check_exists), and so is a lack of memory or of processes.
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
        let ended = run(modprobe, &name, parameters).await;
        if is_live(root, &name) {
            return Ok(());
        }
        if let Some(pause) = pauses.next()
            && is_temporary(&ended, init_state(root, &name).ok().flatten())
        {
            tokio::time::sleep(*pause).await;
            continue;
        }
        let ended = ended.map_err(|e| Error::io(modprobe, "cannot be run", &e))?;
        let is_disabled = root.text(MODULES_DISABLED).is_ok_and(|value| value == "1");
        let words = kernel_words(index, &name, &mut words);
        return Err(failure(&name, &ended, &words, is_disabled));
    }
}

/// How modprobe has ended.
#[derive(Debug)]
struct Ended {
    /// The signal that killed it.
    signal: Option<i32>,
    /// The beginning of what it has printed.
    printed: String,
}

/// Runs modprobe to its end.
async fn run(modprobe: &str, name: &str, parameters: &[String]) -> io::Result<Ended> {
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
    let status = child.wait().await?;
    // A daemon that prints more must not fill the memory.
    fcntl(&printed, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_GROW))?;
    let mut text = vec![0; PRINTED];
    let length = printed.read_at(&mut text, 0)?;
    text.truncate(length);
    Ok(Ended {
        signal: status.signal(),
        printed: String::from_utf8_lossy(&text).into_owned(),
    })
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

/// Whether the failure is temporary: another program is loading the module, or the machine has no memory
/// or no process left at the moment.
fn is_temporary(ended: &io::Result<Ended>, state: Option<InitState>) -> bool {
    let ended = match ended {
        Ok(ended) => ended,
        Err(e) => return matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM)),
    };
    let output = &ended.printed;
    state.is_some()
        || ended.signal.is_some()
        || output.contains("Device or resource busy")
        || output.contains("Resource temporarily unavailable")
        || output.contains("err -16")
}

/// Combines the messages of modprobe and of the kernel to one error. An install line of modprobe.d
/// may print any number of lines. `is_disabled`: [`MODULES_DISABLED`] is 1.
fn failure(name: &str, ended: &Ended, kernel: &[String], is_disabled: bool) -> Error {
    let output = &ended.printed;
    let killed = ended
        .signal
        .map(|signal| format!("modprobe was killed by signal {signal}"));
    let printed = output
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
        .map(|line| line.chars().take(CHARACTERS).collect::<String>());
    let mut found = killed
        .into_iter()
        .chain(printed)
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
    // Without CONFIG_MODVERSIONS the kernel only misses the symbol. An error -16: the module that has it is
    // still being loaded (resolve_symbol_wait).
    let of_two_builds = |line: &String| {
        line.contains("disagrees about version")
            || line.contains("version magic")
            || (line.contains("Unknown symbol") && !line.contains("err -16"))
    };
    // An install line may run modprobe, which then has its own words.
    let is_explained = || {
        let attempts = output.matches("could not insert").count();
        attempts > 1 || kernel.iter().any(|line| mentions(line, name))
    };
    let hint = if kernel.iter().any(of_two_builds) {
        "the image mixes modules of two builds: rebuild the image"
    } else if output.contains("Key was rejected") || output.contains("Required key not available") {
        "the module is not signed by a key that this kernel trusts"
    } else if output.contains("allow_unsupported_modules") {
        // modprobe of SLES.
        "set allow_unsupported_modules 1 in that file, and rebuild the image"
    } else if output.contains("Operation not permitted") && is_disabled {
        "kernel.modules_disabled is 1: this kernel loads no module until the next boot"
    } else if output.contains("Operation not permitted") {
        "check the command line for module_blacklist=, and the kernel for lockdown"
    } else if ended.signal.is_some() {
        "see dmesg"
    } else if output.trim().is_empty()
        || (output.contains("running install command") && !is_explained())
    {
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
    use super::super::modules::tests::tree;
    use super::*;
    use std::fs;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    fn ended(printed: &str) -> Ended {
        Ended {
            signal: None,
            printed: printed.to_owned(),
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
        let printed = printed.unwrap().unwrap().printed;
        let daemon = printed.strip_suffix(" a=1\n").unwrap().parse().unwrap();
        kill(Pid::from_raw(daemon), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn a_failure_of_many_lines_is_short() {
        let (line, word) = ("a".repeat(5000) + "\n", "mlx5_core: b".to_owned());
        let error = failure(
            "mlx5_core",
            &ended(&line.repeat(5000)),
            &vec![word.clone(); 5000],
            false,
        );
        let lines = vec!["a".repeat(CHARACTERS); LINES].join(", ");
        let words = vec![word; LINES].join(" | ");
        assert_eq!(error.found, Some(format!("{lines} (kernel: {words})")));
    }

    #[test]
    fn a_failure_quotes_modprobe_and_the_kernel() {
        let error = failure(
            "mlx5_core",
            &ended("modprobe: ERROR: could not insert 'mlx5_core': Invalid argument\n"),
            &["mlx5_core: disagrees about version of symbol mlxfw_firmware_flash".to_owned()],
            false,
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
        let install = "modprobe: ERROR: ../libkmod/libkmod-module.c:1047 command_do() Error running install \
                       command '/bin/false' for module mlx5_ib: retcode 1\n\
                       modprobe: ERROR: could not insert 'mlx5_ib': Invalid argument\n";
        let unknown = "modprobe: ERROR: could not insert 'mlx5_ib': Unknown symbol in module, or unknown parameter (see dmesg)\n";
        let of_bluefield = &[unknown, install].concat();
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
                install,
                // The dependencies were loaded before.
                "mlx5_core 0000:81:00.0: firmware version: 20.31.1014",
                line,
            ),
            // install mlx5_ib /sbin/modprobe --ignore-install mlx5_ib && /sbin/mlnx_bf_configure
            (of_bluefield, "", "see dmesg"),
            (
                of_bluefield,
                "mlx5_ib: Unknown symbol ib_alloc (err -2)",
                builds,
            ),
            (
                install,
                "mlx5_ib: module verification failed: signature and/or required key missing",
                "see dmesg",
            ),
            (
                unknown,
                "mlx5_ib: Unknown symbol mlx5_core_create_cq (err -16)",
                "see dmesg",
            ),
            (
                "modprobe: ERROR: could not insert 'mlx5_ib': Cannot allocate memory\n",
                "",
                "see dmesg",
            ),
        ] {
            let error = failure("mlx5_ib", &ended(output), &[kernel.to_owned()], false);
            assert_eq!(error.hint.as_deref(), Some(hint), "{output}");
        }
        let denied = "modprobe: ERROR: could not insert 'mlx5_ib': Operation not permitted\n";
        let error = failure("mlx5_ib", &ended(denied), &[], true);
        assert_eq!(
            error.to_string(),
            "mlx5_ib: kernel module cannot be loaded: could not insert 'mlx5_ib': Operation not permitted; \
             kernel.modules_disabled is 1: this kernel loads no module until the next boot"
        );
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
        let is_temporary = |output: &str, state| is_temporary(&Ok(ended(output)), state);
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

    #[tokio::test]
    async fn a_lack_of_memory_or_of_processes_is_temporary() {
        for (errno, expected) in [
            (libc::EAGAIN, true),
            (libc::ENOMEM, true),
            (libc::EACCES, false),
        ] {
            let error = Err(io::Error::from_raw_os_error(errno));
            assert_eq!(is_temporary(&error, None), expected, "{errno}");
        }
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        fs::write(&script, "kill -9 $$\n").unwrap();
        let killed = run("/bin/sh", script.to_str().unwrap(), &[]).await;
        assert!(is_temporary(&killed, None), "{killed:?}");
        let error = failure("mlx5_ib", &killed.unwrap(), &[], false);
        assert_eq!(
            error.to_string(),
            "mlx5_ib: kernel module cannot be loaded: modprobe was killed by signal 9; see dmesg"
        );
    }
}
