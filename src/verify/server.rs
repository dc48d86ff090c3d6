// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the check of a server: its answer over RDMA as a finding.

use super::checks::Id;
use super::object::Server;
use crate::facts::Facts;
use crate::rdma::reach::{self, Answer};
use crate::rdma::types::{Guid, NodeType};
use crate::verify::finding::Finding;

/// The finding about a server; skipped unless the links are as expected.
pub fn answers(server: &Server<'_>, facts: &Facts) -> Finding {
    let expected = &server.wish.server;
    let queried = facts.servers.iter().find(|found| found.server == *expected);
    match queried {
        _ if !server.is_connected => Finding::skipped(Id::ServerRdma),
        None => unknown(
            "not queried yet",
            "ibboot check on the node queries the server",
        ),
        Some(found) => finding(expected, &found.answer, facts),
    }
}

/// Whether the server answers was not found out.
fn unknown(found: &str, hint: &str) -> Finding {
    Finding::unanswered(Id::ServerRdma, found).hint(hint)
}

fn finding(server: &reach::Server, answer: &Answer, facts: &Facts) -> Finding {
    let address = server.address;
    // Without a port any answer of the host is enough.
    let expected = match server.port {
        Some(_) => "an answer of the service",
        None => "an answer",
    };
    let failed = |found: &str| Finding::failed(Id::ServerRdma, found, expected);
    let port_of = |guid: &Guid, number: u32| {
        let mut ports = facts.ports();
        ports.find(|port| port.device.node_guid == Some(*guid) && port.port.port == number)
    };
    match answer {
        Answer::Reached { node_guid, port } => {
            let by = port_of(node_guid, *port).map(|port| port.name());
            let by = by.unwrap_or_else(|| format!("node GUID {node_guid} port {port}"));
            Finding::ok(Id::ServerRdma, &format!("answers through {by}"))
        }
        Answer::Resolved { node_guid, port } => match port_of(node_guid, *port) {
            Some(by) if by.device.node_type == Some(NodeType::Rnic) => {
                failed(&format!("the address of the server is resolved through {}; over iWARP ibboot cannot test the server", by.name()))
                    .hint("wait for the mount, then look at: findmnt")
                    .as_warning()
            }
            _ => unknown("cannot be queried: Invalid argument", "look at: dmesg"),
        },
        Answer::NoService => {
            let port = server.port.unwrap_or(0);
            failed(&format!("the host answers, but no program listens on port {port}"))
                .hint("start the RDMA listener on the server (NFS: /proc/fs/nfsd/portlist)")
        }
        Answer::Rejected(reason) => {
            failed(&format!("the host rejects connections, reason {reason}"))
                .hint("see the server's log")
        }
        Answer::Silent => failed("the request was sent, but no answer came"),
        Answer::NoNeighbour => failed("no host answers for this address (ARP, ND)")
            .hint("check that the server is up and in this subnet"),
        Answer::NoDevice => failed("the route uses an interface without an RDMA device")
            .hint(&format!("look at: ip route get {address}; ibboot status shows the interface of each port")),
        Answer::NoRoute => failed("no route to the server").hint("give an address or a gateway with ip="),
        Answer::NoPath(why) => failed(&format!(
            "the subnet administrator has no path to the server: {why}"
        ))
        .hint("see the subnet manager's log; an RDMA connection over InfiniBand cannot cross a gateway"),
        Answer::NotAsked(why) => {
            unknown(&format!("cannot be queried: {why}"), "look at: lsmod (rdma_ucm), dmesg")
        }
    }
}
