// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hooks of the image. Those of dracut and of ibboot write nothing that matters to drivers and
//! names before the command line is complete. A hook of a site may write arguments, options of
//! modules (modprobe.d(5)) and rules of udev.

use std::io;

use crate::error::{Error, Result};
use crate::request::in_initramfs;
use crate::system::root::Root;

/// The folders of hooks in an image: the last one up to dracut 060, the second one since 102, the
/// others since 110.
const FOLDERS: [&str; 4] = [
    "/etc/dracut/hooks",
    "/var/lib/dracut/hooks",
    "/usr/lib/dracut/hooks",
    "/lib/dracut/hooks",
];
/// The hook that starts `up` in an image without systemd: hooks before it have ended.
const EARLY: &str = "00-early.sh";
/// ibboot's hooks in the stages below.
const OWN: [&str; 4] = [
    EARLY,
    "93-cmdline.sh",
    "10-zz-ibboot-complete.sh",
    "99-zz-ibboot-complete.sh",
];
/// dracut's hooks in the stages cmdline, pre-udev and pre-trigger, without their numbers.
/// ifname-genrules.sh writes names for ifname=, which ibboot reads itself. cmssetup.sh (s390) is not
/// here: it writes options of modules and rules of udev from a file of the machine.
const OF_DRACUT: [&str; 71] = [
    "block-genrules.sh",
    "cm-config.sh",
    "create-overlay-genrules.sh",
    "dhcp-root.sh",
    "dm-pre-udev.sh",
    "dmsquash-live-genrules.sh",
    "dmsquash-liveiso-genrules.sh",
    "fips-boot.sh",
    "fips-load-crypto.sh",
    "gensplash-pretrigger.sh",
    "ifname-genrules.sh",
    "lldpad.sh",
    "load-modsign-keys.sh",
    "load-thermal.sh",
    "md-noddf.sh",
    "md-noimsm.sh",
    "mdmon-pre-udev.sh",
    "memdisk.sh",
    "multipathd.sh",
    "net-genrules.sh",
    "networkd-config.sh",
    "nfs-start-rpc.sh",
    "nm-config.sh",
    "parse-block.sh",
    "parse-bond.sh",
    "parse-bridge.sh",
    "parse-ccw.sh",
    "parse-cifsroot.sh",
    "parse-cio_accept.sh",
    "parse-crypt.sh",
    "parse-dasd-mod.sh",
    "parse-dasd.sh",
    "parse-dcssblk.sh",
    "parse-dm.sh",
    "parse-dmsquash-live.sh",
    "parse-fcoe.sh",
    "parse-i18n.sh",
    "parse-ibft.sh",
    "parse-ifname.sh",
    "parse-ip-opts.sh",
    "parse-iscsiroot.sh",
    "parse-iso-scan.sh",
    "parse-kernel.sh",
    "parse-keydev.sh",
    "parse-livenet.sh",
    "parse-lunmask.sh",
    "parse-lvm.sh",
    "parse-md.sh",
    "parse-nbdroot.sh",
    "parse-nfsroot.sh",
    "parse-ntp.sh",
    "parse-nvmf-boot-connections.sh",
    "parse-overlayfs.sh",
    "parse-resume.sh",
    "parse-root-opts.sh",
    "parse-root.sh",
    "parse-syslog-opts.sh",
    "parse-systemd-import.sh",
    "parse-team.sh",
    "parse-uefifcoe.sh",
    "parse-virtfs.sh",
    "parse-virtiofs.sh",
    "parse-vlan.sh",
    "parse-zfcp.sh",
    "parse-zipl.sh",
    "plymouth-pretrigger.sh",
    "qcom-adsp-pre-udev.sh",
    "resume-genrules.sh",
    "securityfs.sh",
    "warpclock.sh",
    "watchdog.sh",
];

/// The first hook of a site in this stage of an initramfs that had not run when `up` started, as
/// `STAGE/NN-NAME.sh`.
pub(super) fn of_site(root: &Root, stage: &str) -> Result<Option<String>> {
    if !in_initramfs(root) {
        return Ok(None);
    }
    for folder in FOLDERS {
        let names = names(root, &format!("{folder}/{stage}"))?;
        if let Some(name) = first_of_site(&names) {
            // A saved tree needs only the name.
            root.remember_file(&format!("{folder}/{stage}/{name}"), b"");
            return Ok(Some(format!("{stage}/{name}")));
        }
    }
    Ok(None)
}

/// The names in a directory; none if there is no such directory.
pub(super) fn names(root: &Root, directory: &str) -> Result<Vec<String>> {
    match root.list(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|e| Error::io(directory, "cannot be read", &e)),
    }
}

fn first_of_site(names: &[String]) -> Option<&String> {
    let has_early = names.iter().any(|name| name == EARLY);
    let has_ended = |name: &str| has_early && name < EARLY;
    let mut hooks = names.iter().filter(|name| name.ends_with(".sh"));
    hooks.find(|name| !has_ended(name) && !is_known(name))
}

fn is_known(name: &str) -> bool {
    let bare = name.trim_start_matches(|c: char| c.is_ascii_digit());
    let bare = bare.strip_prefix('-').unwrap_or(bare);
    OWN.contains(&name) || OF_DRACUT.contains(&bare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn found(names: &[&str]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        first_of_site(&names).cloned()
    }

    #[test]
    fn a_hook_that_neither_dracut_nor_ibboot_has_is_of_a_site() {
        let usual = [
            "10-parse-root-opts.sh",
            "93-cmdline.sh",
            "98-parse-ip-opts.sh",
            "99-nm-config.sh",
            "99-zz-ibboot-complete.sh",
            "README",
        ];
        assert_eq!(found(&usual), None);
        for site in [
            "50-site.sh",
            "cmdline.sh",
            "10-cmdline.sh",
            "90-parse-site.sh",
        ] {
            let names = [&usual[..], &[site]].concat();
            assert_eq!(found(&names).as_deref(), Some(site));
        }
    }

    #[test]
    fn hooks_that_only_some_versions_of_dracut_have_are_known() {
        let known = [
            // 048
            "01-fips-boot.sh",
            // 048 and 051
            "10-gensplash-pretrigger.sh",
            "30-md-noddf.sh",
            "30-md-noimsm.sh",
            // 110 and 112
            "30-memdisk.sh",
            "30-qcom-adsp-pre-udev.sh",
        ];
        assert_eq!(found(&known), None);
        let writes = found(&["30-cmssetup.sh"]);
        assert_eq!(writes.as_deref(), Some("30-cmssetup.sh"));
    }

    #[test]
    fn without_systemd_hooks_before_the_first_one_of_ibboot_have_ended() {
        assert_eq!(found(&["00-a-site.sh", EARLY]), None);
        let after = found(&["00-a-site.sh", EARLY, "00-site.sh"]);
        assert_eq!(after.as_deref(), Some("00-site.sh"));
        assert_eq!(found(&["00-a-site.sh"]).as_deref(), Some("00-a-site.sh"));
    }

    #[test]
    fn each_folder_of_hooks_counts_in_an_image() {
        for folder in FOLDERS {
            let dir = tempfile::tempdir().unwrap();
            let stage = dir.path().join(format!(".{folder}/cmdline"));
            fs::create_dir_all(&stage).unwrap();
            fs::write(stage.join("50-site.sh"), "").unwrap();
            let root = Root::new(dir.path());
            assert_eq!(of_site(&root, "cmdline"), Ok(None), "no initramfs");
            fs::create_dir_all(dir.path().join("etc")).unwrap();
            fs::write(dir.path().join("etc/initrd-release"), "").unwrap();
            let hook = "cmdline/50-site.sh".to_owned();
            assert_eq!(of_site(&root, "cmdline"), Ok(Some(hook)));
            assert_eq!(of_site(&root, "pre-udev"), Ok(None));
        }
    }
}
