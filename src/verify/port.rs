// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of a link and of its port.

use kernel_cmdline::Selector;

use super::checks::Id;
use super::object::{Link, Port};
use crate::facts::reader::silence;
use crate::facts::{self, Facts, Netdev, PortRef};
use crate::hardware::HardwareType;
use crate::rdma::sa::{Answer, Contact};
use crate::rdma::types::{LinkLayer, PhysState, PortState};
use crate::verify::report::Finding;
use crate::wish::expectation::LinkWish;

/// The finding for a link that is not possible on this machine.
pub fn refused(wish: &LinkWish) -> Finding {
    let reason = wish.refused.as_deref().unwrap_or_default();
    Finding::failed(Id::WishPossible, reason, "").lasting()
}

pub fn present(link: &Link<'_>, facts: &Facts) -> Finding {
    match link.port {
        Some(port) => Finding::ok(Id::DevicePresent, &port.name()),
        None => absent(link.wish, facts),
    }
}

/// Maximum of interface names in one line.
const SHOWN: usize = 8;

/// The finding for a link without a matching port.
fn absent(wish: &LinkWish, facts: &Facts) -> Finding {
    let failed = |found: &str, expected: &str| Finding::failed(Id::DevicePresent, found, expected);
    let names: Vec<String> = facts.ports().map(|port| port.name()).collect();
    let present = match names.len() {
        0 => "no RDMA device".to_owned(),
        1..=8 => format!("only {}", names.join(", ")),
        n => format!("{n} other ports"),
    };
    if let Some(identity) = wish.identity {
        let expected = format!("{} (node GUID {})", wish.target, identity.node_guid);
        return failed(&present, &expected)
            .hint("the device existed in the initramfs: look for its removal in dmesg");
    }
    let is_missing = |name: &&str| facts.netdev(name).is_none();
    if let Some(below) = wish.netdev.as_deref().filter(is_missing) {
        let names: Vec<&str> = facts.netdevs.iter().map(|n| n.ifname.as_str()).collect();
        let found = format!("no network interface {below}, only {}", names.join(", "));
        return failed(&found, wish.target.as_str())
            .hint("check the interface's driver and its name (net.ifnames=0 keeps eth0)");
    }
    if let Some(netdev) = facts.netdev(wish.target.as_str()) {
        let kind = match netdev.hardware_type {
            Some(HardwareType::InfiniBand) => "IPoIB",
            Some(_) => "Ethernet",
            // The interface is being removed.
            None => "vanishing",
        };
        let found = format!("{kind} interface without an RDMA port below it");
        return failed(&found, "a port")
            .hint("load the HCA's *_ib driver, or create a port with rd.ib.link=");
    }
    match unnamed(wish, facts) {
        Some(found) if !names.is_empty() => {
            failed(&format!("{found}, {present}"), wish.target.as_str()).hint(&renamed(facts))
        }
        _ => failed(&present, wish.target.as_str()),
    }
}

/// The text if a wish names its port by an IPoIB interface that does not exist.
fn unnamed(wish: &LinkWish, facts: &Facts) -> Option<String> {
    wish.ipoib.as_ref()?;
    let name = wish.port.as_deref().unwrap_or(wish.target.as_str());
    let is_name = matches!(Selector::parse(name)?, Selector::Name(_));
    (is_name && facts.netdev(name).is_none()).then(|| format!("no network interface {name}"))
}

/// The hint if an interface of this name does not exist: it may have another name.
fn renamed(facts: &Facts) -> String {
    let is_parent = |netdev: &&Netdev| netdev.ipoib.as_ref().is_some_and(|ipoib| !ipoib.child);
    let found: Vec<&str> = facts
        .netdevs
        .iter()
        .filter(is_parent)
        .map(|netdev| netdev.ifname.as_str())
        .take(SHOWN)
        .collect();
    if found.is_empty() {
        return "check that ib_ipoib is loaded; a name may change, guid= and pci= do not"
            .to_owned();
    }
    format!(
        "the IPoIB interfaces are {}: udev names them unless net.ifnames=0; use one of these names, guid= or pci=",
        found.join(", ")
    )
}

/// The finding for a device that does not answer.
pub fn silent(found: PortRef<'_>) -> Finding {
    let seconds = found.device.silent_s.unwrap_or(0);
    let found = format!("{} {}", found.device.ifname, silence(seconds));
    Finding::unanswered(Id::DeviceAnswers, &found)
}

pub fn link_layer(port: &Port<'_>) -> Finding {
    let id = Id::PortLinkLayer;
    match (port.found.port.link_layer, port.wish.link_layer) {
        (None, _) => Finding::unknown(id),
        // EFA devices report this link layer.
        (Some(LinkLayer::Unknown), _) => Finding {
            found: Some(LinkLayer::Unknown.to_string()),
            ..Finding::unknown(id)
        }
        .hint("the driver reports neither InfiniBand nor Ethernet"),
        (Some(found), Some(expected)) if found != expected => {
            Finding::failed(id, &found.to_string(), &expected.to_string())
        }
        (Some(found), _) => Finding::ok(id, &found.to_string()),
    }
}

pub fn rate(port: &Port<'_>) -> Finding {
    let id = Id::PortRate;
    let required = f64::from(port.least_rate.unwrap_or(0));
    match &port.found.port.rate {
        None => Finding::unknown(id),
        Some(rate) if rate.gbps * 1000.0 < required => {
            Finding::failed(id, &rate.text, &format!("{} Gb/sec", required / 1000.0))
        }
        Some(rate) => Finding::ok(id, &rate.text),
    }
}

pub fn physical_state(found: PortRef<'_>, facts: &Facts) -> Finding {
    let id = Id::PortPhysicalState;
    let Some(physical_state) = found.port.physical_state else {
        return Finding::unknown(id);
    };
    if physical_state == PhysState::LinkUp {
        return Finding::ok(id, &physical_state.to_string());
    }
    let expected = PhysState::LinkUp.to_string();
    let netdev = found
        .port
        .netdev
        .as_deref()
        .and_then(|name| facts.netdev(name));
    if let Some(netdev) = netdev.filter(|_| found.port.link_layer == Some(LinkLayer::Ethernet)) {
        let name = &netdev.ifname;
        return match (netdev.up, netdev.carrier) {
            (false, _) => {
                Finding::failed(id, &format!("{physical_state}, {name} is down"), &expected)
                    .hint(&format!("set it up: ip link set {name} up"))
            }
            (true, Some(false) | None) => Finding::failed(
                id,
                &format!("{physical_state}, {name} has no carrier"),
                &expected,
            ),
            // The RDMA port follows the state of its netdev within the same event.
            (true, Some(true)) => Finding::failed(id, &physical_state.to_string(), &expected)
                .hint(&format!("{name} has carrier: see dmesg")),
        };
    }
    let finding = Finding::failed(id, &physical_state.to_string(), &expected);
    match physical_state {
        PhysState::Disabled => finding.hint(
            "the port is disabled: enable it (ibportstate, or the other end's configuration)",
        ),
        PhysState::PortConfigurationTraining | PhysState::LinkErrorRecovery => finding
            .hint("the link is training; if this persists, the cable or the transceiver is bad"),
        _ => finding,
    }
}

pub fn state(found: PortRef<'_>) -> Finding {
    let id = Id::PortState;
    let Some(state) = found.port.state else {
        return Finding::unknown(id);
    };
    if state == PortState::Active {
        return Finding::ok(id, &state.to_string());
    }
    let expected = PortState::Active.to_string();
    if found.port.link_layer != Some(LinkLayer::InfiniBand) {
        return Finding::failed(id, &state.to_string(), &expected).hint("see dmesg");
    }
    match (state, found.port.sm_lid) {
        (PortState::Init, Some(0) | None) => {
            Finding::failed(id, "INIT, LinkUp, SM LID 0", &expected)
                .hint("no subnet manager sees this port: start one (opensm, or the switch's)")
        }
        (PortState::Init, Some(lid)) => {
            Finding::failed(id, &format!("INIT, SM LID {lid}"), &expected).hint(
                "the subnet manager has found this port but does not bring it up: see its log",
            )
        }
        (PortState::Armed, _) => Finding::failed(id, "ARMED", &expected)
            .hint("the subnet manager stopped half way: see its log"),
        _ => Finding::failed(id, &state.to_string(), &expected),
    }
}

/// The answer of the port's subnet administrator, if it was queried.
pub fn contact<'a>(port: PortRef<'_>, facts: &'a Facts) -> Option<&'a Contact> {
    let name = port.name();
    facts.subnet_managers.iter().find(|c| c.port == name)
}

pub fn administrator(port: PortRef<'_>, facts: &Facts) -> Finding {
    let id = Id::PortSa;
    let Some(contact) = contact(port, facts) else {
        return Finding::unknown(id);
    };
    let lid = contact.sm_lid;
    match &contact.answer {
        Answer::NotAsked(why) => {
            Finding::failed(id, &format!("not queried: {why}"), "an answer").hint("")
        }
        Answer::Silent => Finding::failed(
            id,
            &format!("no answer from LID {lid} within 3 s"),
            "an answer",
        ),
        Answer::Refused(_) => Finding::failed(
            id,
            &format!("the host at LID {lid} answers, without a subnet administrator"),
            "an answer",
        ),
        _ => Finding::ok(id, &format!("LID {lid} answers")),
    }
}

/// Compares the indexes if both are known, because udev may rename the interface.
pub fn netdev(wish: &LinkWish, port: &facts::Port) -> Finding {
    let id = Id::PortNetdev;
    let expected = wish.netdev.as_deref().unwrap_or("a network interface");
    let Some(found) = port.netdev.as_deref() else {
        return Finding::failed(id, "none", expected);
    };
    let same = match (wish.netdev_index, port.netdev_index) {
        (Some(expected), Some(found)) => expected == found,
        _ => expected == found,
    };
    if same {
        Finding::ok(id, found)
    } else {
        Finding::failed(id, found, expected)
    }
}

pub fn lid(id: Id, lid: Option<u32>) -> Finding {
    match lid {
        None => Finding::unknown(id),
        // Unicast LIDs (IBTA 4.1.3); 0xffff is the permissive LID, of a port without a subnet
        // manager.
        Some(lid @ 1..=0xbfff) => Finding::ok(id, &lid.to_string()),
        Some(lid) => Finding::failed(id, &lid.to_string(), "1 to 49151"),
    }
}
