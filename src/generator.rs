// SPDX-License-Identifier: MIT OR Apache-2.0
//! systemd calls this program by another name as a generator of the initramfs (systemd.generator(7)).
//! If the command line requests ibboot, `ibboot.service` starts before dracut's hooks, and dracut's
//! cmdline stage needs no other reason to run. `ibboot.service` starts without the kernel's log where that
//! cannot be read.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::request::Request;
use crate::system::root::Root;

/// The name of the program as a generator.
pub const NAME: &str = "ibboot-generator";

/// Drop-ins below the directory for generated units, with their content.
const DROP_INS: [(&str, &str, &str); 2] = [
    (
        "sysinit.target.d",
        "50-ibboot.conf",
        "[Unit]\nWants=ibboot.service\n",
    ),
    (
        "dracut-cmdline.service.d",
        "60-ibboot.conf",
        "[Unit]\nConditionPathExists=|/etc/initrd-release\n",
    ),
];

/// The drop-in for a kernel whose log cannot be opened (`printk.devkmsg=off`, or no /dev/kmsg): systemd
/// does not start a unit without its standard input.
const WITHOUT_KERNEL_LOG: (&str, &str, &str) = (
    "ibboot.service.d",
    "50-no-kernel-log.conf",
    "[Service]\nStandardInput=null\n",
);

/// Writes the drop-ins into `directory`, the first argument of a generator, if the command line of
/// `root` requests something. The one for a kernel log that cannot be opened (`has_log`) is written in any case,
/// because a hook may request something later. An error names the file.
pub fn generate(root: &Root, directory: &Path, has_log: bool) -> Result<()> {
    let is_requested = Request::read(root).requested_by.is_some();
    let requested = DROP_INS.iter().filter(|_| is_requested);
    let without_log = Some(&WITHOUT_KERNEL_LOG).filter(|_| !has_log);
    for (unit, name, content) in requested.chain(without_log) {
        let folder = directory.join(unit);
        let file = folder.join(name);
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&file, content))
            .map_err(|e| Error::io(file.display().to_string(), "cannot be written", &e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that are generated for the command line of an initramfs, with their content.
    fn generated(line: &str) -> String {
        generated_in(&[("proc/cmdline", line), ("etc/initrd-release", "")])
    }

    /// The files that are generated in an image with these files.
    fn generated_in(files: &[(&str, &str)]) -> String {
        generated_with(files, true)
    }

    fn generated_with(files: &[(&str, &str)], has_log: bool) -> String {
        let image = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = image.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let units = tempfile::tempdir().unwrap();
        generate(&Root::new(image.path()), units.path(), has_log).unwrap();
        let mut files = Vec::new();
        for folder in fs::read_dir(units.path()).unwrap() {
            for file in fs::read_dir(folder.unwrap().path()).unwrap() {
                let file = file.unwrap().path();
                let name = file.strip_prefix(units.path()).unwrap().display();
                files.push(format!("{name}: {}", fs::read_to_string(&file).unwrap()));
            }
        }
        files.sort();
        files.concat()
    }

    #[test]
    fn each_documented_argument_that_requests_ibboot_starts_it() {
        let expected = "dracut-cmdline.service.d/60-ibboot.conf: [Unit]\n\
             ConditionPathExists=|/etc/initrd-release\n\
             sysinit.target.d/50-ibboot.conf: [Unit]\nWants=ibboot.service\n";
        let examples = kernel_cmdline::PARAMETERS.iter().map(|known| known.example);
        let lines = examples.map(|example| format!("quiet {example} rd.neednet=1"));
        let requests = |line: &String| Request::from_text(line).requested_by.is_some();
        let requesting: Vec<String> = lines.filter(requests).collect();
        assert!(requesting.len() > 20, "{requesting:?}");
        for line in &requesting {
            assert_eq!(generated(line), expected, "{line}");
        }
    }

    #[test]
    fn a_typing_error_starts_ibboot_and_a_request_of_others_does_not() {
        for (line, starts) in [
            ("RD.IB.LINK=x", true),
            ("rd.ib_link=x", true),
            ("rd.ib.bogus", true),
            ("ib.pkey", true),
            ("\"ip=ib0:dhcp\"", true),
            ("a\tip=ib0:dhcp", true),
            ("a\nrd.ib=1", true),
            ("root=/dev/vda ib0 rip=1 skip=ip", false),
            ("ip=eth0:dhcp rd.neednet=1 root=nfs:10.0.0.1:/root", false),
            ("rd.driver.post=mlx5_ib", false),
            ("", false),
        ] {
            assert_eq!(!generated(line).is_empty(), starts, "{line}");
        }
    }

    #[test]
    fn all_files_of_the_command_line_count_in_an_initramfs() {
        let (initrd, vmcore) = (("etc/initrd-release", ""), ("proc/vmcore", ""));
        let request = "rd.ib=1";
        for (files, starts) in [
            (vec![initrd, ("etc/cmdline", request)], true),
            (vec![initrd, ("etc/cmdline.d/a.conf", request)], true),
            (
                vec![initrd, ("run/initramfs/cmdline.d/a.conf", request)],
                true,
            ),
            (vec![initrd, ("etc/cmdline.d/a", request)], false),
            (vec![("etc/cmdline", request)], false),
            // A kernel that saves a dump.
            (vec![initrd, vmcore, ("proc/cmdline", request)], false),
            (
                vec![initrd, vmcore, ("proc/cmdline", "rd.ib=1 rd.ib.kdump=1")],
                true,
            ),
        ] {
            assert_eq!(!generated_in(&files).is_empty(), starts, "{files:?}");
        }
    }

    #[test]
    fn without_a_kernel_log_the_unit_starts_without_it_also_for_a_later_request() {
        let files = [("proc/cmdline", "quiet"), ("etc/initrd-release", "")];
        let expected = "ibboot.service.d/50-no-kernel-log.conf: [Service]\nStandardInput=null\n";
        assert_eq!(generated_with(&files, false), expected);
        assert_eq!(generated_with(&files, true), "");
    }

    #[test]
    fn a_drop_in_that_cannot_be_written_is_an_error() {
        let image = tempfile::tempdir().unwrap();
        fs::create_dir(image.path().join("proc")).unwrap();
        fs::write(image.path().join("proc/cmdline"), "rd.ib=1").unwrap();
        let file = image.path().join("file");
        fs::write(&file, "").unwrap();
        let error = generate(&Root::new(image.path()), &file, true).unwrap_err();
        let path = file.join("sysinit.target.d/50-ibboot.conf");
        let expected = format!("{}: cannot be written: Not a directory", path.display());
        assert_eq!(error.to_string(), expected);
    }
}
