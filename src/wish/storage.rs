// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a root file system on a server, in dracut's spelling, and the kernel module that its
//! protocol needs. `request/root.rs` finds the argument that names it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use kernel_cmdline::is_plain_nfs;
use serde::{Deserialize, Serialize};

use crate::redact;
use crate::wish::origin::Origin;

/// How a root file system is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// NFS, of any version.
    Nfs,
    /// iSCSI; over RDMA it is iSER.
    Iscsi,
    /// NVMe over Fabrics.
    Nvme,
    /// A live image, which is fetched once and then stays in memory.
    Live,
    /// A live image that stays on its NFS server: the root file system reads from there.
    LiveNfs,
}

impl Protocol {
    /// Whether dracut's livenet mounts it.
    pub fn is_live(self) -> bool {
        matches!(self, Protocol::Live | Protocol::LiveNfs)
    }
}

/// The transport of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP, over IPoIB.
    Tcp,
    Rdma,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Nfs => "nfs",
            Protocol::Iscsi => "iscsi",
            Protocol::Nvme => "nvme",
            Protocol::Live => "live",
            Protocol::LiveNfs => "live-nfs",
        })
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Tcp => "tcp",
            Transport::Rdma => "rdma",
        })
    }
}

/// A root file system on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    pub protocol: Protocol,
    pub transport: Transport,
    /// Address of the server; none if a DHCP server or a name server gives it.
    pub server: Option<IpAddr>,
}

impl Root {
    /// The transport, in the word that the tools of the protocol use.
    pub fn carrier(&self) -> &'static str {
        match (self.protocol, self.transport) {
            (_, Transport::Tcp) => "tcp",
            (Protocol::Iscsi, Transport::Rdma) => "iser",
            (_, Transport::Rdma) => "rdma",
        }
    }

    /// The client's kernel module for RDMA: no other program loads it.
    pub fn module(&self) -> Option<&'static str> {
        let module = match self.protocol {
            Protocol::Nfs | Protocol::LiveNfs => "rpcrdma",
            Protocol::Iscsi => "ib_iser",
            Protocol::Nvme => "nvme_rdma",
            Protocol::Live => return None,
        };
        (self.transport == Transport::Rdma).then_some(module)
    }
}

/// One of several servers that arguments name for the disks of the root file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portal {
    #[serde(flatten)]
    pub root: Root,
    /// The iSCSI target; none with NVMe, or if the argument names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Portal {
    /// In dracut's spelling, as [`parse`].
    pub fn parse(text: &str, is_iser: bool) -> Option<Portal> {
        Some(Portal {
            root: parse(text, is_iser)?,
            // Without its secrets: this text is printed.
            target: target(&redact::place(text)),
        })
    }

    /// Whether this portal leads to `target`; true if one of both is not known. dracut writes names as
    /// `normalized_iscsi_name` of its net-lib does.
    pub fn may_lead_to(&self, target: Option<&str>) -> bool {
        let normal = |name: &str| {
            let mut name = name.to_ascii_lowercase();
            name.retain(|c| c.is_ascii_alphanumeric() || ".:-".contains(c));
            name
        };
        let both = self.target.as_deref().zip(target);
        both.is_none_or(|(own, target)| normal(own) == normal(target))
    }
}

/// Whether another server that satisfies `is_one` leads to every target of this server.
pub fn has_alternative(
    portals: &[Portal],
    server: IpAddr,
    is_one: impl Fn(IpAddr) -> bool,
) -> bool {
    let (own, others): (Vec<&Portal>, Vec<&Portal>) = portals
        .iter()
        .partition(|portal| portal.root.server == Some(server));
    let leads = |other: &&Portal, target: Option<&str>| {
        other.root.server.is_some_and(&is_one) && other.may_lead_to(target)
    };
    let has_other = |own: &&Portal| {
        let mut others = others.iter();
        others.any(|other| leads(other, own.target.as_deref()))
    };
    !own.is_empty() && own.iter().all(has_other)
}

/// The target at the end of an iSCSI root (`parse_iscsi_root` of dracut's net-lib).
fn target(text: &str) -> Option<String> {
    let rest = without_user(text.strip_prefix("iscsi:")?);
    let mut kinds = ["iqn.", "eui.", "naa."].iter();
    kinds.find_map(|kind| {
        let colon = rest.rfind(&format!(":{kind}"))?;
        rest.get(colon + 1..).map(str::to_owned)
    })
}

/// A DHCP server names the root file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfLease {
    /// The argument that leaves the root file system to DHCP.
    pub requested_by: Origin,
    /// iSCSI uses iSER, even if a path does not say so.
    pub is_iser: bool,
}

impl OfLease {
    /// The root file system that the DHCP server names (option 17): as in `root=`, or without
    /// `nfs:`. `otherwise` is the server if the option names none.
    pub fn granted(&self, path: &str, otherwise: Ipv4Addr) -> Option<Root> {
        let mut root = parse(path, self.is_iser)?;
        if root.protocol == Protocol::Nfs && names_no_server(path) {
            root.server = Some(otherwise.into());
        }
        Some(root)
    }
}

fn names_no_server(path: &str) -> bool {
    let kinds = ["nfs:", "nfs4:"].iter();
    let bare = kinds.filter_map(|kind| path.strip_prefix(kind)).next();
    let bare = bare.unwrap_or(path);
    bare.starts_with('/') && !bare.starts_with("//")
}

/// A root file system in dracut's spelling (`nfs:...`, `SERVER:/PATH`, `iscsi:...`, `live:URL`); none
/// for another kind.
pub fn parse(text: &str, is_iser: bool) -> Option<Root> {
    if is_plain_nfs(text) {
        return Some(nfs(text));
    }
    let (kind, rest) = text.split_once(':')?;
    match kind {
        "nfs" | "nfs4" => Some(nfs(rest)),
        "iscsi" => Some(iscsi(rest, is_iser)),
        "live" | "livenet" => live(rest),
        _ => None,
    }
}

/// `SCHEME://[USER@]SERVER[:PORT]/PATH`, or an NFS root in dracut's spelling (the handlers of dracut's
/// url-lib); other live images are on a disk, or not on a single server.
fn live(url: &str) -> Option<Root> {
    let (scheme, rest) = url.split_once(':')?;
    let protocol = match scheme {
        "http" | "https" | "ftp" | "tftp" => Protocol::Live,
        "nfs" | "nfs4" => Protocol::LiveNfs,
        _ => return None,
    };
    let Some(rest) = rest.strip_prefix("//") else {
        return (protocol == Protocol::LiveNfs).then(|| Root {
            protocol,
            ..nfs(rest)
        });
    };
    let place = rest.split('/').next().unwrap_or_default();
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let server = match place.split_once(']') {
        Some((server, _)) => server.trim_start_matches('['),
        None => place.split(':').next().unwrap_or_default(),
    };
    Some(Root {
        protocol,
        transport: Transport::Tcp,
        server: address(server),
    })
}

/// `[SERVER:]/PATH[:OPTIONS]`, with the options in front in anaconda's spelling.
pub fn nfs(rest: &str) -> Root {
    let mut words = rest.split([':', ',']);
    let rdma = words.any(|word| matches!(word, "rdma" | "proto=rdma" | "proto=rdma6"));
    let server = rest.split_once(":/").map_or("", |(server, _)| server);
    let server = match server.rfind('[') {
        Some(open) => server.get(open..).unwrap_or_default(),
        None => server.rsplit(':').next().unwrap_or_default(),
    };
    Root {
        protocol: Protocol::Nfs,
        transport: if rdma {
            Transport::Rdma
        } else {
            Transport::Tcp
        },
        server: address(server),
    }
}

/// `[USER:PASSWORD@]SERVER:[PROTOCOL]:[PORT]:[IFACE]:[NETDEV]:[LUN]:TARGET`; the iface record of
/// open-iscsi names the transport, as does `rd.iscsi.transport=`.
fn iscsi(rest: &str, is_iser: bool) -> Root {
    let rest = without_user(rest);
    let bracketed = rest.strip_prefix('[');
    let (server, rest) = bracketed
        .and_then(|rest| rest.split_once("]:"))
        .or_else(|| rest.split_once(':'))
        .unwrap_or((rest, ""));
    let rdma = is_iser || rest.split(':').nth(2) == Some("iser");
    Root {
        protocol: Protocol::Iscsi,
        transport: if rdma {
            Transport::Rdma
        } else {
            Transport::Tcp
        },
        server: address(server),
    }
}

/// Without four colons behind it an `@` is one of the target's name (`parse_iscsi_root` of dracut's iscsiroot).
fn without_user(rest: &str) -> &str {
    let behind_user = rest.split_once('@').map(|(_, rest)| rest);
    let is_behind = |rest: &&str| rest.matches(':').count() >= 4;
    behind_user.filter(is_behind).unwrap_or(rest)
}

/// An address, in brackets or not.
pub fn address(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(text).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_portal_leads_to_its_target_in_dracuts_spelling() {
        let leads = |text: &str, target| Portal::parse(text, false).unwrap().may_lead_to(target);
        let portal = "iscsi:10.0.0.2::::iqn.2026-01.Test:di@sk";
        assert!(leads(portal, Some("iqn.2026-01.test:disk")));
        assert!(!leads(portal, Some("iqn.2026-01.test:data")));
        assert!(leads(portal, None));
        assert!(leads(
            "iscsi:10.0.0.2::::disk",
            Some("iqn.2026-01.test:data")
        ));
    }

    #[test]
    fn a_server_has_an_alternative_if_another_one_has_all_its_targets() {
        let portal = |text: &str| Portal::parse(text, false).unwrap();
        let disk = portal("iscsi:10.0.0.2::::iqn.2026-01.test:disk");
        let again = portal("iscsi:10.1.0.2::::iqn.2026-01.test:disk");
        let data = portal("iscsi:10.1.0.2::::iqn.2026-01.test:data");
        let bare = portal("iscsi:10.1.0.2::::disk");
        let servers = [&disk, &again].map(|one| one.root.server.unwrap());
        for (portals, expected) in [
            (vec![disk.clone()], [false, false]),
            (vec![disk.clone(), data.clone()], [false, false]),
            (vec![disk.clone(), again.clone()], [true, true]),
            (vec![disk.clone(), again, data], [true, false]),
            (vec![disk, bare], [true, true]),
        ] {
            let found = servers.map(|server| has_alternative(&portals, server, |_| true));
            assert_eq!(found, expected, "{portals:?}");
            let found = servers.map(|server| has_alternative(&portals, server, |_| false));
            assert_eq!(found, [false, false], "{portals:?}");
        }
    }

    #[test]
    fn a_target_is_no_part_of_a_user_or_password() {
        let target = |text: &str| Portal::parse(text, false).unwrap().target;
        for user in [
            "iqn.2026-01.example:SECRET",
            "user:iqn.SECRET",
            "user:SECRET:in:naa.SECRET",
            "a@b:c:d:e:f:iqn.SECRET",
        ] {
            let named = format!("iscsi:{user}@10.1.0.2::::eui.02004567a425678d");
            assert_eq!(target(&named).unwrap(), "eui.02004567a425678d", "{user}");
            assert_eq!(target(&format!("iscsi:{user}@10.1.0.2::::disk")), None);
        }
    }

    proptest! {
        #[test]
        fn a_target_has_no_secret(
            before in "([a-z:/?#@]|:iqn\\.|:eui\\.){0,6}",
            host in "[a-z:.]{0,8}",
            target in "(iqn|eui|naa)\\.[a-z:@.]{0,6}|[a-z]{0,3}",
        ) {
            for text in [
                format!("iscsi:u:{before}SECRET@{host}::::{target}"),
                format!("iscsi:u:{before}iqn.SECRET@{host}::::{target}"),
                format!("iscsi:iqn.u:{before}SECRET@{host}:{target}"),
            ] {
                let found = Portal::parse(&text, false).unwrap().target;
                let found = found.unwrap_or_default();
                prop_assert!(!found.contains("SECRET"), "{}: {}", text, found);
            }
        }
    }
}
