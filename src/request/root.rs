// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the server of the root file system, as `root=`, `netroot=`, `nfsroot=` and
//! `rd.nvmf.discover=` name it.

use kernel_cmdline::{Arguments, DEV_NFS, NvmfDiscover, Spanned};

use crate::wish::origin::{Requested, origin, requested};
use crate::wish::storage::{self, OfLease, Portal, Protocol, Root, Transport};

/// The root file system that the arguments name, in dracut's order.
pub fn named(arguments: &Arguments<'_>) -> Option<Requested<Root>> {
    let root = &arguments.root;
    let netroot = root.netroot.iter().rev();
    let mut named = netroot.chain(&root.root);
    let is_iser = is_iser(arguments);
    if let Some(legacy) = arguments.legacy_nfs() {
        return Some(requested(&legacy, storage::nfs(legacy.value)));
    }
    named
        .find_map(|argument| {
            Some(requested(
                argument,
                storage::parse(argument.value, is_iser)?,
            ))
        })
        .or_else(|| arguments.nvmf_servers().iter().find_map(discovered))
}

/// The disk behind a discovery controller of `rd.nvmf.discover=`.
fn discovered(discover: &Spanned<'_, NvmfDiscover<'_>>) -> Option<Requested<Root>> {
    let found = Root {
        protocol: Protocol::Nvme,
        transport: match discover.value.transport {
            "rdma" => Transport::Rdma,
            "tcp" => Transport::Tcp,
            _ => return None,
        },
        server: storage::address(discover.value.traddr),
    };
    Some(requested(discover, found))
}

/// The servers of a disk with several paths, or of several disks: one for each `netroot=iscsi:` or
/// `rd.nvmf.discover=`. Empty unless there are several.
pub fn portals(arguments: &Arguments<'_>) -> Vec<Requested<Portal>> {
    let protocol = named(arguments).map(|root| root.value.protocol);
    let (netroot, is_iser) = (arguments.root.netroot.iter(), is_iser(arguments));
    let disks: Vec<Requested<Portal>> = match protocol {
        Some(Protocol::Iscsi) => netroot
            .filter_map(|one| Some(requested(one, Portal::parse(one.value, is_iser)?)))
            .collect(),
        Some(Protocol::Nvme) => {
            let portal = |found: Requested<Root>| Requested {
                value: Portal {
                    root: found.value,
                    target: None,
                },
                origin: found.origin,
            };
            let all = arguments.nvmf_servers().iter();
            all.filter_map(discovered).map(portal).collect()
        }
        _ => Vec::new(),
    };
    let mut servers: Vec<Requested<Portal>> = Vec::new();
    for disk in disks {
        let (server, target) = (disk.value.root.server, &disk.value.target);
        let is_known = servers
            .iter()
            .any(|one| one.value.root.server == server && one.value.target == *target);
        if Some(disk.value.root.protocol) == protocol && !is_known {
            servers.push(disk);
        }
    }
    if servers.len() > 1 {
        servers
    } else {
        Vec::new()
    }
}

/// The argument by which `root=` or `netroot=` leaves the root file system to a DHCP server.
pub fn left_to_dhcp(arguments: &Arguments<'_>) -> Option<OfLease> {
    let all = arguments.root.netroot.iter().chain(&arguments.root.root);
    let mut dhcp = all.filter(|argument| ["dhcp", DEV_NFS].contains(&argument.value));
    let argument = dhcp.next().filter(|_| named(arguments).is_none())?;
    Some(OfLease {
        requested_by: origin(argument),
        is_iser: is_iser(arguments),
    })
}

fn is_iser(arguments: &Arguments<'_>) -> bool {
    let transport = arguments.root.iscsi_transport.as_ref();
    transport.is_some_and(|name| name.value == "iser")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wish::storage::OfLease;
    use crate::wish::storage::Root;
    use crate::wish::storage::Transport;
    use kernel_cmdline::Source;
    use std::net::Ipv4Addr;

    fn found(cmdline: &str) -> Option<String> {
        let sources = [Source::new("test", cmdline.as_bytes())];
        let root = named(&kernel_cmdline::parse(&sources))?;
        let Root {
            protocol,
            transport,
            server,
        } = root.value;
        let server = server.map_or("-".to_owned(), |server| server.to_string());
        let module = root.value.module().unwrap_or("-");
        Some(format!(
            "{protocol:?} {transport} {server} {module} <- {}",
            root.origin
        ))
    }

    #[test]
    fn every_spelling_of_a_root_says_its_server_and_its_transport() {
        for (cmdline, expected) in [
            ("root=nfs:10.0.0.2:/root", "Nfs tcp 10.0.0.2 -"),
            ("root=nfs4:10.0.0.2:/rdma", "Nfs tcp 10.0.0.2 -"),
            (
                "root=nfs4:10.0.0.2:/:rdma,port=20049",
                "Nfs rdma 10.0.0.2 rpcrdma",
            ),
            (
                "root=nfs4:[fd00::2]:/root:rw,proto=rdma6",
                "Nfs rdma fd00::2 rpcrdma",
            ),
            (
                "root=nfs:proto=rdma,port=20049:10.0.0.2:/root",
                "Nfs rdma 10.0.0.2 rpcrdma",
            ),
            ("root=nfs:/root", "Nfs tcp - -"),
            ("root=nfs:server:/root:rdma", "Nfs rdma - rpcrdma"),
            (
                "netroot=iscsi:10.0.0.2::::iqn.2026-01.test:disk",
                "Iscsi tcp 10.0.0.2 -",
            ),
            (
                "netroot=iscsi:u:p@10.0.0.2:::iser::1:iqn.a:b",
                "Iscsi rdma 10.0.0.2 ib_iser",
            ),
            (
                "netroot=iscsi:[fd00::2]:6:3260:iser:::iqn.a:b",
                "Iscsi rdma fd00::2 ib_iser",
            ),
            (
                "netroot=iscsi:[fd00::2]:::iser::1:iqn.a:b",
                "Iscsi rdma fd00::2 ib_iser",
            ),
            // The @ of a target's name.
            (
                "netroot=iscsi:10.0.0.2::::iqn.2026-01.test:di@sk",
                "Iscsi tcp 10.0.0.2 -",
            ),
            (
                "netroot=iscsi:@10.0.0.2:::iser::1:iqn.2026-01.test:di@sk",
                "Iscsi rdma 10.0.0.2 ib_iser",
            ),
            (
                "netroot=iscsi:u:p@[fd00::2]:::iser::1:iqn.2026-01.test:di@sk",
                "Iscsi rdma fd00::2 ib_iser",
            ),
            // dracut splits at the first @, and takes the rest of the password for the server.
            ("netroot=iscsi:u:p@q@10.0.0.2::::iqn.a:b", "Iscsi tcp - -"),
            (
                "rd.nvmf.discover=rdma,10.0.0.2,,4420",
                "Nvme rdma 10.0.0.2 nvme_rdma",
            ),
            ("rd.nvmf.discover=tcp,10.0.0.2", "Nvme tcp 10.0.0.2 -"),
            (
                "root=live:http://u:p@10.0.0.2:8080/a:/b.squashfs",
                "Live tcp 10.0.0.2 -",
            ),
            ("root=live:https://[fd00::2]/b.img", "Live tcp fd00::2 -"),
            ("root=live:http://server/b.img", "Live tcp - -"),
            ("root=live:tftp://10.0.0.2/b.img", "Live tcp 10.0.0.2 -"),
            (
                "root=live:nfs:10.0.0.2:/srv/b.img",
                "LiveNfs tcp 10.0.0.2 -",
            ),
            (
                "root=live:nfs4:[fd00::2]:/srv/b.img:rdma,port=20049",
                "LiveNfs rdma fd00::2 rpcrdma",
            ),
            (
                "root=live:nfs://10.0.0.2/srv/b.img",
                "LiveNfs tcp 10.0.0.2 -",
            ),
            (
                "root=live:nfs://10.0.0.2:/srv/b.img",
                "LiveNfs tcp 10.0.0.2 -",
            ),
            ("netroot=livenet:nfs:server:/srv/b.img", "LiveNfs tcp - -"),
        ] {
            let shown = kernel_cmdline::Shown(cmdline.as_bytes()).to_string();
            let expected = format!("{expected} <- {shown}");
            assert_eq!(found(cmdline).as_ref(), Some(&expected), "{cmdline}");
            // A saved tree has only the redacted form.
            assert_eq!(found(&shown), Some(expected), "{cmdline}");
        }
        for cmdline in [
            "root=/dev/vda",
            "root=UUID=a",
            "root=dhcp",
            "rd.nvmf.discover=fc,auto",
            "rd.nvmf.discover=rdma,10.0.0.2 rd.nonvmf",
            "root=live:/dev/sr0",
            "root=live:torrent://10.0.0.2/a",
            "root=live:http:10.0.0.2",
        ] {
            assert_eq!(found(cmdline), None, "{cmdline}");
        }
        for transport in [
            "rd.iscsi.transport=iser",
            "rd.iscsi.param=iface.transport_name=iser",
        ] {
            assert_eq!(
                found(&format!("{transport} netroot=iscsi:10.0.0.2::::iqn.a")).unwrap(),
                "Iscsi rdma 10.0.0.2 ib_iser <- netroot=iscsi:10.0.0.2::::iqn.a",
                "{transport}"
            );
        }
        for (nfsroot, expected) in [
            ("nfsroot=10.0.0.2:/root,vers=3", "Nfs tcp 10.0.0.2 -"),
            (
                "nfsroot=10.0.0.2:/root,proto=rdma,port=20049",
                "Nfs rdma 10.0.0.2 rpcrdma",
            ),
            ("nfsroot=/root", "Nfs tcp - -"),
        ] {
            let legacy = format!("{nfsroot} root=/dev/nfs netroot=nfs:10.0.0.3:/");
            assert_eq!(found(&legacy), Some(format!("{expected} <- {nfsroot}")));
            assert_eq!(found(&format!("{nfsroot} root=/dev/vda")), None);
        }
        // The disk is named by root=, where it comes from by netroot=.
        assert_eq!(
            found("root=LABEL=r netroot=iscsi:10.0.0.2::::iqn.a").unwrap(),
            "Iscsi tcp 10.0.0.2 - <- netroot=iscsi:10.0.0.2::::iqn.a"
        );
    }

    #[test]
    fn a_disk_may_have_several_servers() {
        let found = |cmdline: &str| {
            let sources = [Source::new("test", cmdline.as_bytes())];
            let portals = portals(&kernel_cmdline::parse(&sources));
            let word = |portal: &Requested<Portal>| {
                let server = portal.value.root.server;
                let server = server.map_or("-".to_owned(), |s| s.to_string());
                match &portal.value.target {
                    Some(target) => format!("{server}/{target}"),
                    None => server,
                }
            };
            let words = portals.iter().map(word);
            words.collect::<Vec<_>>().join(" ")
        };
        let one = "netroot=iscsi:10.0.0.2::::iqn.a";
        for (cmdline, expected) in [
            (one.to_owned(), ""),
            (format!("{one} {one} netroot=nfs:10.1.0.2:/"), ""),
            (
                format!("{one} netroot=iscsi:u:p@10.1.0.2::::iqn.a"),
                "10.0.0.2/iqn.a 10.1.0.2/iqn.a",
            ),
            (
                format!("{one} netroot=iscsi:server::::iqn.a"),
                "10.0.0.2/iqn.a -/iqn.a",
            ),
            // Two disks of one server.
            (
                format!("{one} netroot=iscsi:10.0.0.2:::iser::1:iqn.2026-01.test:b:c"),
                "10.0.0.2/iqn.a 10.0.0.2/iqn.2026-01.test:b:c",
            ),
            (
                format!("{one} netroot=iscsi:10.1.0.2::::eui.02004567a425678d"),
                "10.0.0.2/iqn.a 10.1.0.2/eui.02004567a425678d",
            ),
            (
                format!("{one} netroot=iscsi:10.1.0.2::::disk"),
                "10.0.0.2/iqn.a 10.1.0.2",
            ),
            (
                "rd.nvmf.discover=rdma,10.0.0.2 rd.nvmf.discover=fc,auto \
                 rd.nvmf.discover=rdma,10.1.0.2,,4420"
                    .to_owned(),
                "10.0.0.2 10.1.0.2",
            ),
            (
                "rd.nvmf.discover=rdma,10.0.0.2,,8009 rd.nvmf.discover=rdma,10.0.0.2,,4420"
                    .to_owned(),
                "",
            ),
        ] {
            assert_eq!(found(&cmdline), expected, "{cmdline}");
        }
    }

    #[test]
    fn a_dhcp_server_names_the_root_as_dracut_reads_it() {
        let otherwise = Ipv4Addr::new(10, 0, 0, 3);
        let sources = [Source::new("test", b"root=dhcp")];
        let of_lease = left_to_dhcp(&kernel_cmdline::parse(&sources)).unwrap();
        let granted = |path: &str| of_lease.granted(path, otherwise);
        let over = OfLease {
            is_iser: true,
            ..of_lease.clone()
        };
        let root = over.granted("iscsi:10.0.0.2::::iqn.a", otherwise).unwrap();
        assert_eq!(root.transport, Transport::Rdma);
        for (path, expected) in [
            ("nfs:10.0.0.2:/srv/root", "Nfs tcp 10.0.0.2"),
            ("10.0.0.2:/srv/root", "Nfs tcp 10.0.0.2"),
            ("nfs4:10.0.0.2:/:rdma,port=20049", "Nfs rdma 10.0.0.2"),
            ("/srv/root", "Nfs tcp 10.0.0.3"),
            ("nfs:/srv/root", "Nfs tcp 10.0.0.3"),
            // Whose address is not known here.
            ("nfs:server:/srv/root", "Nfs tcp -"),
            ("iscsi:10.0.0.2::::iqn.a", "Iscsi tcp 10.0.0.2"),
            ("iscsi:::::iqn.a", "Iscsi tcp -"),
        ] {
            let root = granted(path).unwrap();
            let server = root.server.map_or("-".to_owned(), |s| s.to_string());
            let found = format!("{:?} {} {server}", root.protocol, root.transport);
            assert_eq!(found, expected, "{path}");
        }
        for path in ["", "dhcp", "http://10.0.0.2/x", "10.0.0.2", "\u{fffd}:/"] {
            assert_eq!(granted(path), None, "{path}");
        }
    }

    #[test]
    fn the_root_is_left_to_dhcp_where_nothing_else_names_it() {
        let left = |cmdline: &str| {
            let sources = [Source::new("test", cmdline.as_bytes())];
            left_to_dhcp(&kernel_cmdline::parse(&sources)).map(|left| left.requested_by.argument)
        };
        for cmdline in [
            "root=dhcp",
            "root=/dev/vda netroot=dhcp",
            "nfsroot= root=/dev/nfs",
        ] {
            let argument = cmdline.split(' ').next_back().map(str::to_owned);
            assert_eq!(left(cmdline), argument);
        }
        for cmdline in [
            "root=nfs:10.0.0.2:/ netroot=dhcp",
            "root=/dev/nfs nfsroot=10.0.0.2:/",
            "root=/dev/vda",
            "ip=dhcp",
        ] {
            assert_eq!(left(cmdline), None, "{cmdline}");
        }
    }
}
