// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the checks of a port.

use super::checks::Id;
use super::finding::Finding;
use super::object::Port;
use crate::facts::addresses::FoundAddress;
use crate::facts::reader::silence;
use crate::facts::{self, Facts, Netdev, PortRef, rules};
use crate::rdma::sa::{Answer, Contact};
use crate::rdma::types::{Guid, LinkLayer, NodeType, PhysState, PortState};
use crate::wish::expectation::LinkWish;

/// The finding for a device that does not answer.
pub fn silent(found: PortRef<'_>) -> Finding {
    let seconds = found.device.silent_s.unwrap_or(0);
    let found = format!("{} {}", found.device.ifname, silence(seconds));
    Finding::unanswered(Id::DeviceAnswers, &found)
}

/// The link layer of a port with a transport of its own.
const NEITHER: &str = "neither InfiniBand nor Ethernet";
/// What to do about a requirement that such a port cannot meet.
pub const WITHOUT_LAYER: &str = "a port with a transport of its own (EFA) is neither InfiniBand nor Ethernet: it does not count where one of the two is requested (ib:, eth:, IPoIB)";

/// Finding of `port.link_layer`: InfiniBand or Ethernet, and the requested one. A port with a transport of its
/// own is neither.
pub fn link_layer(port: &Port<'_>) -> Finding {
    let id = Id::PortLinkLayer;
    let is_neither = port.found.device.has_own_transport();
    match (port.found.port.link_layer, port.wish.link_layer) {
        (None, _) => Finding::unknown(id),
        (Some(LinkLayer::Unknown), None | Some(LinkLayer::Unknown)) if is_neither => {
            Finding::ok(id, NEITHER)
        }
        (Some(LinkLayer::Unknown), Some(expected)) if is_neither => {
            Finding::failed(id, NEITHER, &expected.to_string()).hint(WITHOUT_LAYER)
        }
        (Some(LinkLayer::Unknown), _) => Finding::unanswered(id, &LinkLayer::Unknown.to_string())
            .hint("the driver reports neither InfiniBand nor Ethernet"),
        (Some(found), Some(expected)) if found != expected => {
            Finding::failed(id, &found.to_string(), &expected.to_string())
        }
        (Some(found), _) => Finding::ok(id, &found.to_string()),
    }
}

/// Finding of `port.rate`: at least the requested rate.
pub fn rate(port: &Port<'_>) -> Finding {
    let id = Id::PortRate;
    let required = f64::from(port.least_rate.unwrap_or(0));
    let expected = format!("{} Gb/sec", required / 1000.0);
    match &port.found.port.rate {
        None => Finding::unknown(id),
        Some(rate) if rate.gbps * 1000.0 >= required => Finding::ok(id, &rate.text),
        Some(rate)
            if rules::may_be_faster(port.found, rate)
                || rules::is_default_of_ethernet(port.found, rate) =>
        {
            Finding {
            expected: Some(expected),
            ..Finding::unanswered(id, &rate.text)
        }
        .hint(&match port.found.port.link_layer {
            Some(LinkLayer::Ethernet) => format!(
                "the kernel cannot tell: it also reports this rate for a speed that it does not know; \
                 see the speed with ethtool {} or at the switch, and leave this port out of rd.ib.rate=",
                port.found.port.netdev.as_deref().unwrap_or("IF")
            ),
            _ => {
                "the kernel cannot tell: it reports SDR for every speed that it does not know (NDR, XDR); \
                 see the speed with smpquery -C DEVICE -P PORT -D portinfo 0 or at the switch, and remove rd.ib.rate="
                    .to_owned()
            }
        })
        }
        Some(rate)
            if rules::with_three_lanes(port.found, rate)
                .is_some_and(|most| most * 1000.0 >= required) =>
        {
            Finding {
                expected: Some(expected),
                ..Finding::unanswered(id, &rate.text)
            }
            .hint(
                "the kernel cannot tell: it reports one lane of an Omni-Path link with two or three lanes; \
                 check the cable, the transceiver and the switch port; see the lanes with opainfo",
            )
        }
        Some(rate) => Finding::failed(id, &rate.text, &expected),
    }
}

/// Finding of `port.physical_state`: LinkUp; of an Ethernet port the state of its interface
/// explains a failure.
pub fn physical_state(found: PortRef<'_>, facts: &Facts) -> Finding {
    let id = Id::PortPhysicalState;
    let Some(physical_state) = found.port.physical_state else {
        return Finding::unknown(id);
    };
    if physical_state == PhysState::LinkUp {
        return Finding::ok(id, &physical_state.to_string());
    }
    // iWARP drivers before Linux 5.4 report no physical state (c4iw_query_port,
    // drivers/infiniband/hw/cxgb4/provider.c).
    if physical_state.number() == 0
        && found.port.state == Some(PortState::Active)
        && found.device.node_type == Some(NodeType::Rnic)
    {
        return Finding::ok(id, "not reported by the driver, and the port is ACTIVE");
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
            (true, Some(true)) if is_without_address(found, netdev) => Finding::failed(
                id,
                &format!("{physical_state}, {name} has no IPv4 address"),
                &expected,
            )
            .hint(&format!(
                "an iWARP port works only while its interface has an IPv4 address: add ip=ADDRESS:::PREFIX::{name}:none, \
                 or let the image's network module configure {name}"
            )),
            (true, Some(true)) => Finding::failed(id, &physical_state.to_string(), &expected)
                .hint(&format!("{name} has carrier: see dmesg")),
        };
    }
    let finding = Finding::failed(id, &physical_state.to_string(), &expected);
    match physical_state {
        _ if found.device.has_own_transport() => finding.hint("see dmesg"),
        PhysState::Disabled => finding.hint(
            "check the cable and the transceiver first (mlx5 reports Disabled without a cable); then enable \
             the port (ibportstate, or the other end's configuration)",
        ),
        PhysState::PortConfigurationTraining | PhysState::LinkErrorRecovery => finding
            .hint("the link is training; if this persists, the cable or the transceiver is bad"),
        _ => finding,
    }
}

/// Whether this keeps an iWARP port down (`iw_query_port` of drivers/infiniband/core/device.c).
fn is_without_address(found: PortRef<'_>, netdev: &Netdev) -> bool {
    let is_ipv4 = |found: &FoundAddress| found.address.address.is_ipv4();
    found.device.node_type == Some(NodeType::Rnic) && !netdev.addresses.iter().any(is_ipv4)
}

/// Partitions and logs of a subnet manager name ports by their GUIDs.
pub fn guid(found: PortRef<'_>) -> String {
    let guid = found.port.port_guid.filter(|guid| guid.0 != 0);
    guid.map_or_else(
        || "this port's GUID".to_owned(),
        |guid| format!("port GUID {guid}"),
    )
}

/// Finding of `port.state`: ACTIVE; a failure tells how far the subnet manager is.
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
            let words = "INIT, no subnet manager has configured this port";
            // opensm does not configure Omni-Path ports.
            let (manager, program) = match found.device.is_omni_path() {
                true => ("fabric manager", "opafm"),
                false => ("subnet manager", "opensm"),
            };
            Finding::failed(id, words, &expected).hint(&format!(
                "check that a {manager} runs on this subnet, and look for {} in its log; start a {manager} \
                 ({program}) only if the subnet has none",
                guid(found)
            ))
        }
        (PortState::Init, Some(lid)) => {
            Finding::failed(id, &format!("INIT, SM LID {lid}"), &expected).hint(&sweep(found))
        }
        (PortState::Armed, _) => Finding::failed(id, "ARMED", &expected).hint(&sweep(found)),
        (PortState::Down, _) if found.port.physical_state == Some(PhysState::LinkUp) => {
            // mlx5_ib reads the node GUID once, when it registers the device.
            let again = match found.device.node_guid {
                Some(Guid(0)) => {
                    "; after a node GUID was set, bind the driver of the function again or restart the guest"
                }
                _ => "",
            };
            Finding::failed(id, "DOWN, LinkUp", &expected).hint(&format!(
                "on a virtual function: set its GUIDs and its state (on its host: ip link set PF vf N node_guid GUID, \
                 the same with port_guid GUID, then with state auto) and let the subnet manager support virtualization \
                 (opensm: virt_enabled 2){again}"
            ))
        }
        _ => Finding::failed(id, &state.to_string(), &expected),
    }
}

/// A subnet manager sets the LID of each port, then computes the routes, then sets ARMED and ACTIVE
/// (opensm, osm_state_mgr.c): in a large fabric a port is INIT with an SM LID, or ARMED, for this
/// many seconds without any fault.
const SWEEP_SECONDS: u64 = 30;

/// The beginning of the hint while nothing is wrong yet.
pub const SWEEPING: &str = "the subnet manager is configuring the fabric: ";

/// The hint for a port that a subnet manager has begun to configure. This node cannot ask a subnet
/// manager before the port is ACTIVE.
fn sweep(found: PortRef<'_>) -> String {
    let guid = guid(found);
    match found.port.seconds_in_state {
        Some(0..SWEEP_SECONDS) => {
            format!(
                "{SWEEPING}set a longer deadline (rd.ib.timeout=), or look for {guid} in the log of the subnet manager"
            )
        }
        Some(_) => format!(
            "check that the subnet manager runs (on another node: sminfo), and look for {guid} in its log: the port \
             has not become ACTIVE for 30 s, and its SM LID may be that of an earlier subnet manager"
        ),
        // Nobody watched the port.
        None => format!(
            "the subnet manager is configuring the fabric; if this state lasts longer than 30 s, check that the \
             subnet manager runs (on another node: sminfo), and look for {guid} in its log"
        ),
    }
}

/// The answer of the port's subnet administrator, if it was queried.
pub fn contact<'a>(port: PortRef<'_>, facts: &'a Facts) -> Option<&'a Contact> {
    let name = port.name();
    facts.subnet_managers.iter().find(|c| c.port == name)
}

/// Finding of `port.sa`: the answer of the subnet administrator. Unknown if nobody queried it.
pub fn administrator(port: PortRef<'_>, facts: &Facts) -> Finding {
    let id = Id::PortSa;
    let Some(contact) = contact(port, facts) else {
        return Finding::unknown(id);
    };
    let lid = contact.sm_lid;
    match &contact.answer {
        Answer::NotAsked(why) => Finding::failed(
            id,
            &format!("ibboot could not send a query: {why}"),
            "an answer",
        )
        .hint(""),
        Answer::Silent => Finding::failed(
            id,
            &format!("LID {lid} did not answer within 3 s"),
            "an answer",
        ),
        Answer::Refused(_) => Finding::failed(
            id,
            &format!("the host at LID {lid} answers, but no subnet administrator runs there"),
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
        return Finding::failed(id, "the port has no network interface", expected);
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

/// The unicast LIDs of a port: 16 bits on InfiniBand (IBTA 4.1.3), 24 bits on Omni-Path, whose
/// multicast LIDs begin at 0xf00000 (include/rdma/opa_addr.h).
pub fn lid(id: Id, port: PortRef<'_>, lid: Option<u32>) -> Finding {
    let largest = if port.device.is_omni_path() {
        0xef_ffff
    } else {
        0xbfff
    };
    match lid {
        None => Finding::unknown(id),
        // 0xffff is the permissive LID, of a port without a subnet manager.
        Some(lid) if (1..=largest).contains(&lid) && lid != 0xffff => {
            Finding::ok(id, &lid.to_string())
        }
        Some(lid) => Finding::failed(id, &lid.to_string(), &format!("1 to {largest}")).hint(
            &format!("check the subnet manager's log for {}", guid(port)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Device;
    use crate::rdma::types::Guid;
    use crate::verify::finding::Status;

    #[test]
    fn what_to_do_about_a_port_that_is_not_active_names_its_guid() {
        let hint = |driver: &str, state, sm_lid, seconds, guid: Option<u64>| {
            let device = Device {
                driver: Some(driver.to_owned()),
                ports: vec![facts::Port {
                    link_layer: Some(LinkLayer::InfiniBand),
                    state: Some(state),
                    sm_lid: Some(sm_lid),
                    seconds_in_state: seconds,
                    port_guid: guid.map(Guid),
                    ..facts::Port::default()
                }],
                ..Device::default()
            };
            let port = PortRef {
                device: &device,
                port: &device.ports[0],
            };
            super::state(port).hint.unwrap()
        };
        let (mlx5, guid) = ("mlx5_core", Some(0xb859_9f03_00fc_1a2c));
        for (driver, state, sm_lid, seconds, guid, expected) in [
            (
                mlx5,
                PortState::Init,
                0,
                Some(40),
                guid,
                "check that a subnet manager runs on this subnet, and look for port GUID 0xb8599f0300fc1a2c in its log; \
                 start a subnet manager (opensm) only if the subnet has none",
            ),
            (
                "hfi1",
                PortState::Init,
                0,
                None,
                Some(0),
                "check that a fabric manager runs on this subnet, and look for this port's GUID in its log; start a \
                 fabric manager (opafm) only if the subnet has none",
            ),
            (
                mlx5,
                PortState::Armed,
                1,
                Some(29),
                guid,
                "the subnet manager is configuring the fabric: set a longer deadline (rd.ib.timeout=), or look for \
                 port GUID 0xb8599f0300fc1a2c in the log of the subnet manager",
            ),
            (
                mlx5,
                PortState::Init,
                1,
                Some(30),
                None,
                "check that the subnet manager runs (on another node: sminfo), and look for this port's GUID in its log: \
                 the port has not become ACTIVE for 30 s, and its SM LID may be that of an earlier subnet manager",
            ),
            (
                mlx5,
                PortState::Init,
                1,
                None,
                guid,
                "the subnet manager is configuring the fabric; if this state lasts longer than 30 s, check that the \
                 subnet manager runs (on another node: sminfo), and look for port GUID 0xb8599f0300fc1a2c in its log",
            ),
        ] {
            assert_eq!(hint(driver, state, sm_lid, seconds, guid), expected);
        }
    }

    #[test]
    fn a_lid_is_a_unicast_one_of_its_fabric() {
        for (driver, lid, expected) in [
            ("mlx5_core", Some(1), Status::Ok),
            ("mlx5_core", Some(0xbfff), Status::Ok),
            ("mlx5_core", Some(0xc000), Status::Critical),
            ("mlx5_core", Some(0), Status::Critical),
            ("hfi1", Some(0xc000), Status::Ok),
            ("hfi1", Some(0xffff), Status::Critical),
            ("hfi1", Some(0xef_ffff), Status::Ok),
            ("hfi1", Some(0xf0_0000), Status::Critical),
            ("hfi1", None, Status::Unknown),
        ] {
            let device = Device {
                driver: Some(driver.to_owned()),
                ports: vec![facts::Port::default()],
                ..Device::default()
            };
            let port = PortRef {
                device: &device,
                port: &device.ports[0],
            };
            let found = super::lid(Id::PortLid, port, lid);
            assert_eq!(found.status, expected, "{driver} {lid:?}");
        }
    }
}
