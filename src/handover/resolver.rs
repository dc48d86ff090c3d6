// SPDX-License-Identifier: MIT OR Apache-2.0
//! /etc/resolv.conf of the initramfs. dracut's `setup_net` (net-lib.sh) replaces the file with the
//! name servers of one interface: the last interface that is set up has the file to itself.

use std::path::Path;

use super::dracut::{TMP, merged_resolver};
use crate::error::Result;
use crate::system::directory::Directory;

const ETC: &str = "/etc";
/// Name in /etc, and the last part of the name of the file of an interface in [`TMP`].
pub const RESOLV_CONF: &str = "resolv.conf";

/// Where systemd-resolved writes the name servers that it uses (systemd-resolved.service(8)).
const RESOLVED: &str = "/run/systemd/resolve";
/// The end of the link to its stub.
const STUB: &str = "run/systemd/resolve/stub-resolv.conf";

/// Adds the lines of `more` that /etc/resolv.conf does not have.
pub fn add(more: &[u8]) -> Result<()> {
    let etc = Directory::existing(ETC)?;
    // systemd-resolved makes a link to its own file: its servers stay, in a file that has both.
    let link = std::fs::read_link(Path::new(ETC).join(RESOLV_CONF));
    let is_resolved = link.is_ok_and(|target| target.ends_with(STUB));
    let current = match is_resolved {
        true => of_resolved(RESOLVED)?,
        false => etc.text(RESOLV_CONF)?,
    };
    let merged = merged_resolver(&current, more);
    if !is_resolved && merged == current {
        return Ok(());
    }
    etc.write(RESOLV_CONF, merged.as_bytes())
}

/// The lines of systemd-resolved in the directory `path`, which belongs to its user. Without the
/// file systemd-resolved has no servers yet.
fn of_resolved(path: &str) -> Result<String> {
    let Some((directory, owner)) = Directory::of_service(path)? else {
        return Ok(String::new());
    };
    let bytes = directory.read_of(RESOLV_CONF, owner)?;
    Ok(String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned())
}

/// Adds the lines of the files that were written for these interfaces (`super::dracut::files`).
pub fn add_again<'n>(interfaces: impl Iterator<Item = &'n str>) -> Result<()> {
    let tmp = Directory::existing(TMP)?;
    let mut lines = Vec::new();
    for name in interfaces {
        let file = tmp.read(&format!("net.{name}.{RESOLV_CONF}"))?;
        lines.extend(file.unwrap_or_default());
    }
    if lines.is_empty() {
        return Ok(());
    }
    add(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn the_servers_of_systemd_resolved_are_those_of_its_user() {
        let directory = std::env::temp_dir().join(format!("ibboot-resolve-{}", std::process::id()));
        let path = directory.to_str().unwrap();
        let file = directory.join(RESOLV_CONF);
        assert_eq!(of_resolved(path).unwrap(), "");
        fs::create_dir(&directory).unwrap();
        let set_mode = |mode| {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        };
        set_mode(0o755);
        assert_eq!(of_resolved(path).unwrap(), "");
        fs::write(&file, "nameserver 192.0.2.53\n").unwrap();
        // The user systemd-resolve. Only root can give files to another user, and in a user namespace
        // only to one that the namespace has.
        if chown(&directory, Some(992), None).is_ok() {
            chown(&file, Some(992), None).unwrap();
            assert_eq!(of_resolved(path).unwrap(), "nameserver 192.0.2.53\n");
            chown(&file, Some(991), None).unwrap();
            let error = of_resolved(path).unwrap_err().to_string();
            assert!(error.contains("is not trusted: owner 991"), "{error}");
            chown(&directory, Some(0), None).unwrap();
            chown(&file, Some(0), None).unwrap();
        }
        assert_eq!(of_resolved(path).unwrap(), "nameserver 192.0.2.53\n");
        set_mode(0o777);
        let error = of_resolved(path).unwrap_err().to_string();
        assert!(error.contains("is not safe to use"), "{error}");
        set_mode(0o755);
        fs::remove_file(&file).unwrap();
        symlink("/etc/hostname", &file).unwrap();
        let error = of_resolved(path).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
        fs::remove_dir_all(&directory).unwrap();
    }
}
