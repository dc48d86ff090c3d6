// SPDX-License-Identifier: MIT OR Apache-2.0
//! In the initramfs: writes the files that tell dracut's other modules which interfaces are up
//! (`crate::handover::dracut`), and the list of interfaces for our hooks.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use super::journal::Journal;
use super::outcome::Source;
use crate::dhcp;
use crate::dhcp::v4::lease::Lease;
use crate::dhcp::v6::information::Information;
use crate::error::{Error, Result};
use crate::facts::granted;
use crate::handover::INTERFACES;
use crate::handover::dracut::{self, BOOTDEV, File, IFACES, Interface, TMP};
use crate::handover::resolver::{self, RESOLV_CONF};
use crate::hardware::{self, HardwareAddress};
use crate::request::in_initramfs;
use crate::system::directory::Directory;
use crate::system::root::Root;
use crate::verify::report::LinkReport;
use crate::wish::expectation::{LinkWish, RootWish};
use crate::wish::ipoib::IpoibWish;
use crate::wish::storage::OfLease;

/// File with the path of dracut's hooks: the cmdline hook writes its `$hookdir` there.
const HOOKDIR: &str = "/run/ibboot/hookdir";

/// Wakes dracut's queue with the file `initqueue/work`, as `/sbin/initqueue` does. Without the file
/// the queue waits until udev has processed all events (dracut-initqueue.sh).
pub(super) fn call_queue(root: &Root) {
    if !in_initramfs(root) {
        return;
    }
    let Ok(hookdir) = root.text(HOOKDIR) else {
        return;
    };
    let work = root.path(&format!("{hookdir}/initqueue/work"));
    let created = OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&work);
    if let Err(e) = created {
        log::debug!("{}: {e}", work.display());
    }
}

/// A verified interface with requested addresses.
struct Online<'a> {
    wish: &'a LinkWish,
    /// The request for the interface, with what servers granted.
    ipoib: IpoibWish,
    lease: Option<Lease>,
    lease6: Option<dhcp::v6::lease::Lease>,
    information: Option<Information>,
    name: &'a str,
    /// The spellings of its hardware address.
    addresses: Vec<String>,
}

/// Writes all files again: an interface may be verified after the boot continued with another one.
/// Returns the error of the first file that could not be written: a program that reads that file
/// does not know of the network.
pub(super) fn tell_dracut(
    run: &Directory,
    source: &Source<'_>,
    journal: &mut Journal,
) -> Option<String> {
    let ours = ours(source);
    if ours.is_empty() {
        return None;
    }
    let online = all_online(&ours, source);
    let bootdev = boot_device(&online, source.plan.needs_boot_device);
    let errors = write(run, &ours, &online, bootdev);
    for error in &errors {
        journal.fail(error.to_string());
    }
    errors.first().map(ToString::to_string)
}

/// The host name of the first verified interface that has one, in an initramfs.
pub(super) fn host_name(source: &Source<'_>) -> Option<String> {
    let mut online = all_online(&ours(source), source).into_iter();
    online.find_map(|online| online.ipoib.hostname)
}

/// The wishes of interfaces with addresses; none outside an initramfs.
fn ours<'a>(source: &Source<'a>) -> Vec<&'a LinkWish> {
    let is_initramfs = in_initramfs(source.root);
    let wishes = source.expectation.links.iter();
    wishes
        .filter(|wish| is_initramfs && is_addressed(wish))
        .collect()
}

/// The verified interfaces, the boot device first.
fn all_online<'a>(ours: &[&'a LinkWish], source: &Source<'a>) -> Vec<Online<'a>> {
    let informed = source.information.clients.progress();
    let wishes = ours.iter();
    let mut online: Vec<Online<'a>> = wishes
        .filter_map(|wish| online(wish, source, &informed))
        .collect();
    online.sort_by_key(|interface| !is_boot(interface.wish));
    online
}

/// The root file system that the DHCP server of the boot device names, if the command line leaves
/// the name to the server.
pub(super) fn granted_root(source: &Source<'_>, journal: &mut Journal) -> Option<RootWish> {
    let of_lease = source.plan.root_of_lease.as_ref()?;
    let wishes: Vec<&LinkWish> = source.expectation.links.iter().collect();
    root_of_lease(of_lease, &all_online(&wishes, source)).unwrap_or_else(|error| {
        // This function runs more than once.
        journal.fail_once(error.to_string());
        None
    })
}

/// The root file system from the lease of the boot device: `netroot` reads no other lease.
fn root_of_lease(of_lease: &OfLease, online: &[Online<'_>]) -> Result<Option<RootWish>> {
    let requested_by = &of_lease.requested_by;
    let boot = online.first().filter(|first| is_boot(first.wish));
    let Some((name, lease)) = boot.and_then(|boot| Some((boot.name, boot.lease.as_ref()?))) else {
        return Ok(None);
    };
    let Some(path) = &lease.root_path else {
        return Err(Error::new(name, "no root file system named by DHCP")
            .found("no root path (option 17)")
            .expected(format!("one, for {requested_by}"))
            .hint("add it to the DHCP server's answer, as in nfs:SERVER:/PATH"));
    };
    let root = of_lease.granted(path, lease.next_server.unwrap_or(lease.server));
    Ok(root.map(|root| RootWish {
        root,
        portals: Vec::new(),
        requested_by: Some(requested_by.clone()),
    }))
}

/// The interface for `netroot`: the boot device, or else the first verified interface. With
/// `needs_it`, only the boot device: its DHCP server names the server of the root file system.
fn boot_device<'a>(online: &[Online<'a>], needs_it: bool) -> Option<&'a str> {
    let first = online.first();
    let first = first.filter(|first| !needs_it || is_boot(first.wish));
    first.map(|first| first.name)
}

fn is_addressed(wish: &LinkWish) -> bool {
    let ipoib = wish.ipoib.as_ref();
    ipoib.is_some_and(IpoibWish::is_addressed)
}

fn is_boot(wish: &LinkWish) -> bool {
    wish.ipoib.as_ref().is_some_and(|ipoib| ipoib.boot)
}

fn online<'a>(
    wish: &'a LinkWish,
    source: &Source<'a>,
    informed: &[dhcp::v6::information::Progress],
) -> Option<Online<'a>> {
    let ipoib = wish.ipoib.as_ref()?;
    let mut links = source.report.links.iter();
    let is_verified = |link: &&LinkReport| link.target == wish.target && link.is_good();
    let name = links.find(is_verified)?.interface.as_deref()?;
    let netdev = source.facts.netdev(name)?;
    let (dhcp, dhcp6) = (&source.facts.dhcp, &source.facts.dhcp6);
    let lease = granted::lease(ipoib, netdev, dhcp);
    let lease6 = granted::lease6(ipoib, netdev, dhcp6);
    let granted = granted::granted(ipoib, netdev, dhcp, dhcp6);
    // A lease with name servers needs no inquiry.
    let has_own = |lease: &dhcp::v6::lease::Lease| !lease.name_servers.is_empty();
    let is_used = ipoib.information().is_some() && !lease6.is_some_and(has_own);
    let mut informed = informed.iter().filter(|_| is_used);
    let information = informed
        .find(|progress| netdev.ifindex == Some(progress.index))
        .and_then(|progress| progress.information.clone());
    let complete = information.as_ref().map(|found| granted.informed(found));
    Some(Online {
        wish,
        ipoib: complete.unwrap_or(granted),
        lease: lease.cloned(),
        lease6: lease6.cloned(),
        information,
        name,
        addresses: netdev.address.as_ref().map_or_else(Vec::new, spellings),
    })
}

/// The spellings of a hardware address; of an IPoIB address also those of the port GUID
/// (`BOOTIF=20-...`).
fn spellings(address: &HardwareAddress) -> Vec<String> {
    let guid = address.port_guid().map(|guid| guid.0.to_be_bytes());
    let of_guid = guid.map_or_else(Vec::new, |guid| hardware::spellings(&guid));
    [hardware::spellings(address.bytes()), of_guid].concat()
}

/// Writes as many files as possible. Returns one error per file that could not be written.
fn write(
    run: &Directory,
    ours: &[&LinkWish],
    online: &[Online<'_>],
    bootdev: Option<&str>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    // Two arguments may mean one interface.
    let mut verified: Vec<&str> = Vec::new();
    for interface in online {
        if !verified.contains(&interface.name) {
            verified.push(interface.name);
        }
    }
    if !verified.is_empty() {
        let files = files(ours, online);
        let servers: Vec<u8> = files
            .iter()
            .filter(|file| file.name.ends_with(RESOLV_CONF))
            .flat_map(|file| file.content.clone())
            .collect();
        match Directory::existing(TMP) {
            Ok(tmp) => {
                let ifaces = ifaces(&tmp, ours, online);
                let ifaces = ifaces.map_err(|error| errors.push(error)).ok();
                let bootdev = bootdev.map(|name| File::new(BOOTDEV, format!("{name}\n")));
                let all = files.iter().chain(&ifaces).chain(&bootdev);
                errors.extend(all.filter_map(|f| tmp.write_as(&f.name, &f.content, f.mode).err()));
            }
            Err(error) => errors.push(error),
        }
        if !servers.is_empty() {
            errors.extend(resolver::add(&servers).err());
        }
    }
    let waiting = ours
        .iter()
        .filter(|wish| online.iter().all(|up| up.wish.target != wish.target));
    let lines = verified.iter().map(|name| format!("online {name}\n"));
    let others = waiting.map(|wish| format!("offline {}\n", wish.target));
    let all: String = lines.chain(others).collect();
    errors.extend(run.write(INTERFACES, all.as_bytes()).err());
    errors
}

/// The files of every interface.
fn files(ours: &[&LinkWish], online: &[Online<'_>]) -> Vec<File> {
    let mut files = Vec::new();
    for interface in online {
        let alias = interface.wish.target.as_str();
        let is_ambiguous = online.iter().any(|other| other.name == alias)
            || ours.iter().filter(|wish| wish.target == alias).count() > 1;
        files.extend(dracut::files(&Interface {
            name: interface.name,
            alias: (!is_ambiguous).then_some(alias),
            addresses: &interface.addresses,
            wish: &interface.ipoib,
            lease: &variables(interface),
        }));
    }
    files
}

/// The options of the servers of an interface, with the names of dhclient-script.
fn variables(interface: &Online<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let v4 = interface.lease.as_ref().map(Lease::variables);
    let v6 = interface.lease6.as_ref();
    let v6 = v6.map(dhcp::v6::lease::Lease::variables);
    let v6_information = interface.information.as_ref().map(Information::variables);
    v4.into_iter()
        .chain(v6)
        .chain(v6_information)
        .flatten()
        .collect()
}

/// The file `net.ifaces`, with the interfaces of other modules in the existing file.
fn ifaces(tmp: &Directory, ours: &[&LinkWish], online: &[Online<'_>]) -> Result<File> {
    let verified: Vec<&str> = online.iter().map(|interface| interface.name).collect();
    let targets = ours.iter().map(|wish| wish.target.as_str());
    let addresses = online.iter().flat_map(|interface| &interface.addresses);
    let known: Vec<&str> = targets.chain(addresses.map(String::as_str)).collect();
    let all = dracut::merged_ifaces(&tmp.text(IFACES)?, &verified, &known);
    Ok(File::new(IFACES, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    fn online<'a>(wish: &'a LinkWish, lease: Option<Lease>) -> Online<'a> {
        Online {
            wish,
            ipoib: IpoibWish::default(),
            lease,
            lease6: None,
            information: None,
            name: wish.target.as_str(),
            addresses: Vec::new(),
        }
    }

    fn wish(name: &str, boot: bool) -> LinkWish {
        LinkWish {
            target: name.to_owned().into(),
            ipoib: Some(IpoibWish {
                boot,
                ..IpoibWish::default()
            }),
            ..LinkWish::default()
        }
    }

    fn lease(root_path: &str) -> Lease {
        let text = format!(
            r#"{{"address": "10.0.0.9", "prefix": 24, "server": "10.0.0.1", "requested_ns": 0,
            "seconds": 600, "renew_s": 300, "rebind_s": 525, "root_path": {root_path}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_queue_is_woken_only_in_an_initramfs_and_never_through_a_symlink() {
        let tree = tempfile::tempdir().unwrap();
        let path = |name: &str| tree.path().join(name);
        for folder in ["etc", "run/ibboot", "hooks/initqueue"] {
            std::fs::create_dir_all(path(folder)).unwrap();
        }
        let root = Root::new(tree.path());
        let work = path("hooks/initqueue/work");
        call_queue(&root);
        std::fs::write(path("run/ibboot/hookdir"), "/hooks\n").unwrap();
        call_queue(&root);
        assert!(!work.exists());
        std::fs::write(path("etc/initrd-release"), "").unwrap();
        std::os::unix::fs::symlink("elsewhere", &work).unwrap();
        call_queue(&root);
        assert!(!path("hooks/initqueue/elsewhere").exists());
        std::fs::remove_file(&work).unwrap();
        call_queue(&root);
        assert_eq!(std::fs::read(&work).unwrap(), b"");
    }

    #[test]
    fn a_boot_device_that_is_needed_is_replaced_by_no_other_interface() {
        for (is_boot, needs_it, targets) in [
            (true, true, Some("ib0")),
            (true, false, Some("ib0")),
            (false, false, Some("ib0")),
            (false, true, None),
        ] {
            let wish = wish("ib0", is_boot);
            assert_eq!(boot_device(&[online(&wish, None)], needs_it), targets);
        }
        assert_eq!(boot_device(&[], false), None);
    }

    #[test]
    fn only_the_lease_of_the_boot_device_names_the_root() {
        let of_lease = Request::from_text("root=dhcp").root_of_lease.unwrap();
        let root = |boot, path: &str| {
            let wish = wish("ib0", boot);
            let online = [online(&wish, Some(lease(path)))];
            root_of_lease(&of_lease, &online).map(|root| root.is_some())
        };
        assert!(root(true, r#""nfs:10.0.0.2:/srv""#).unwrap());
        assert!(!root(false, r#""nfs:10.0.0.2:/srv""#).unwrap());
        assert!(!root(false, "null").unwrap());
        assert_eq!(
            root(true, "null").unwrap_err().to_string(),
            "ib0: no root file system named by DHCP: no root path (option 17), expected one, for root=dhcp; \
             add it to the DHCP server's answer, as in nfs:SERVER:/PATH"
        );
    }
}
