// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of a port that have more than one way to fail.

use super::checks::Check;
use crate::facts::{Facts, Port, PortRef};
use crate::rdma::sa::{Answer, Contact};
use crate::rdma::types::{LinkLayer, PhysState, PortState};
use crate::verify::report::Finding;
use crate::wish::expectation::LinkWish;

pub fn physical_state(row: &Check, found: PortRef<'_>, facts: &Facts) -> Finding {
    let Some(seen) = found.port.physical_state else {
        return Finding::unknown(row.id);
    };
    if seen == PhysState::LinkUp {
        return Finding::ok(row.id, &seen.to_string());
    }
    let wanted = PhysState::LinkUp.to_string();
    let netdev = found
        .port
        .netdev
        .as_deref()
        .and_then(|name| facts.netdev(name));
    if let Some(netdev) = netdev.filter(|_| found.port.link_layer == Some(LinkLayer::Ethernet)) {
        let name = &netdev.ifname;
        return match (netdev.up, netdev.carrier) {
            (false, _) => Finding::failed(row.id, &format!("{seen}, {name} is down"), &wanted)
                .hint(&format!("set it up: ip link set {name} up")),
            (true, Some(false) | None) => {
                Finding::failed(row.id, &format!("{seen}, {name} has no carrier"), &wanted)
            }
            // The RDMA port follows its netdev within the same event.
            (true, Some(true)) => Finding::failed(row.id, &seen.to_string(), &wanted)
                .hint(&format!("{name} has carrier: see dmesg")),
        };
    }
    let hint = match seen {
        PhysState::Disabled => {
            Some("the port is disabled: enable it (ibportstate, or the other end's configuration)")
        }
        PhysState::PortConfigurationTraining | PhysState::LinkErrorRecovery => {
            Some("the link trains; if it stays so, the cable or the transceiver is bad")
        }
        _ => None,
    };
    let finding = Finding::failed(row.id, &seen.to_string(), &wanted);
    match hint {
        Some(hint) => finding.hint(hint),
        None => finding,
    }
}

pub fn state(row: &Check, found: PortRef<'_>) -> Finding {
    let Some(seen) = found.port.state else {
        return Finding::unknown(row.id);
    };
    if seen == PortState::Active {
        return Finding::ok(row.id, &seen.to_string());
    }
    let wanted = PortState::Active.to_string();
    if found.port.link_layer != Some(LinkLayer::InfiniBand) {
        return Finding::failed(row.id, &seen.to_string(), &wanted).hint("see dmesg");
    }
    match (seen, found.port.sm_lid) {
        (PortState::Init, Some(0) | None) => {
            Finding::failed(row.id, "INIT, LinkUp, SM LID 0", &wanted)
                .hint("no subnet manager sees this port: start one (opensm, or the switch's)")
        }
        (PortState::Init, Some(lid)) => {
            Finding::failed(row.id, &format!("INIT, SM LID {lid}"), &wanted)
                .hint("the subnet manager knew this port and does not bring it up: see its log")
        }
        (PortState::Armed, _) => Finding::failed(row.id, "ARMED", &wanted)
            .hint("the subnet manager stopped half way: see its log"),
        _ => Finding::failed(row.id, &seen.to_string(), &wanted),
    }
}

/// What the subnet administrator of the port said, where it was asked.
pub fn contact<'a>(port: PortRef<'_>, facts: &'a Facts) -> Option<&'a Contact> {
    let name = port.name();
    facts.subnet_managers.iter().find(|c| c.port == name)
}

pub fn administrator(row: &Check, contact: &Contact) -> Finding {
    let lid = contact.sm_lid;
    match &contact.answer {
        Answer::NotAsked(why) => {
            Finding::failed(row.id, &format!("not asked: {why}"), "an answer").hint("")
        }
        Answer::Silent => {
            Finding::failed(row.id, &format!("no answer from LID {lid}"), "one in 3 s")
        }
        Answer::Refused(_) => Finding::failed(
            row.id,
            &format!("none at LID {lid}, only its host answers"),
            "an answer",
        ),
        _ => Finding::ok(row.id, &format!("LID {lid} answers")),
    }
}

/// The index counts once it is known: udev may rename the interface.
pub fn netdev(row: &Check, wish: &LinkWish, port: &Port) -> Finding {
    let wanted = wish.netdev.as_deref().unwrap_or("one");
    let Some(seen) = port.netdev.as_deref() else {
        return Finding::failed(row.id, "none", wanted);
    };
    let same = match (wish.netdev_index, port.netdev_index) {
        (Some(wanted), Some(seen)) => wanted == seen,
        _ => wanted == seen,
    };
    if same {
        Finding::ok(row.id, seen)
    } else {
        Finding::failed(row.id, seen, wanted)
    }
}

pub fn lid(row: &Check, lid: Option<u32>) -> Finding {
    match lid {
        None => Finding::unknown(row.id),
        // Unicast LIDs (IBTA 4.1.3); 0xffff is the permissive one of a port nobody configured.
        Some(lid @ 1..=0xbfff) => Finding::ok(row.id, &lid.to_string()),
        Some(lid) => Finding::failed(row.id, &lid.to_string(), "1 to 49151"),
    }
}
