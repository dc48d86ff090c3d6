// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: whether a link is possible and has a port; if it has none, the reason.

use super::checks::Id;
use super::finding::Finding;
use super::object::Link;
use super::port::WITHOUT_LAYER;
use super::{elsewhere, present, unnamed};
use crate::facts::{Facts, Function, Netdev, PortRef, Role, select};
use crate::hardware::HardwareType;
use crate::rdma::types::{LinkLayer, NetnsMode};
use crate::wish::expectation::LinkWish;
use crate::wish::selector::{Means, Selector};

/// The finding for a link that cannot be as requested.
pub fn refused(wish: &LinkWish) -> Finding {
    let reason = wish.refused.as_deref().unwrap_or_default();
    Finding::failed(Id::WishPossible, reason, "").lasting()
}

/// Finding of `device.present`: a port matches the request.
pub fn present(link: &Link<'_>, facts: &Facts) -> Finding {
    match link.port {
        Some(port) if select::joined_bond(link.wish, facts).is_some() => {
            let found = format!("{}, the RoCE bond of {}", port.name(), link.wish.target);
            Finding::ok(Id::DevicePresent, &found)
        }
        Some(port) => Finding::ok(Id::DevicePresent, &port.name()),
        None => absent(link.wish, facts),
    }
}

/// The finding for an HCA that must have an RDMA device.
pub fn device_of(function: &&Function) -> Finding {
    let id = Id::HcaDevice;
    match function.is_missing() {
        false => Finding::ok(id, &function.devices.join(", ")),
        true => {
            let found = format!("{}, {}", function.id, function.sentence());
            Finding::failed(id, &found, "an RDMA device").hint(&function.hint())
        }
    }
}

/// What to do about an Ethernet card without an RDMA device.
const LOAD_DRIVER: &str = "load the RDMA driver of the Ethernet card (mlx5_ib, irdma, bnxt_re or another), and check that the image has it";

/// The finding for a machine without a candidate port.
pub fn no_candidate(wish: &LinkWish, facts: &Facts) -> Finding {
    let expected = match wish.link_layer {
        Some(layer) => format!("any {layer} port"),
        None => wish.target.to_string(),
    };
    if wish.link_layer == Some(LinkLayer::Ethernet)
        && facts.devices.is_empty()
        && facts.bare_functions().is_empty()
    {
        return Finding::failed(Id::DevicePresent, "no RDMA device", &expected).hint(LOAD_DRIVER);
    }
    let others = present::in_words(facts, wish.link_layer.is_some());
    let all = LinkWish {
        except: Vec::new(),
        except_ports: Vec::new(),
        ..wish.clone()
    };
    if !select::Ports::new(facts).of(&all).is_empty() {
        let except: Vec<&str> = wish.except.iter().map(Selector::as_str).collect();
        let except = match except.is_empty() {
            true => String::new(),
            false => format!(", without {}", except.join(", ")),
        };
        return Finding::failed(Id::DevicePresent, &others, &format!("{expected}{except}"))
            .hint("the command line excludes every port of this machine");
    }
    let finding = Finding::failed(Id::DevicePresent, &others, &expected);
    let raw = facts
        .all_ports()
        .find(|found| found.port.role == Role::NoRoce);
    if let Some(raw) = raw.filter(|_| wish.link_layer != Some(LinkLayer::InfiniBand))
        && facts.bare_functions().is_empty()
    {
        return finding.hint(&present::enable_roce(raw.device));
    }
    let is_neither = |port: PortRef<'_>| port.device.has_own_transport();
    if wish.link_layer.is_some() && facts.ports().any(is_neither) {
        return finding.hint(WITHOUT_LAYER);
    }
    let is_ethernet = |port: PortRef<'_>| port.port.link_layer == Some(LinkLayer::Ethernet);
    let has_ethernet = wish.link_layer.is_some() && facts.ports().any(is_ethernet);
    if !facts.bare_functions().is_empty() || !has_ethernet {
        return present::on_bus(finding, facts);
    }
    let eth = "write rd.ib.require=eth if an Ethernet port is meant";
    match unnamed::set_port_type(facts) {
        Some(set) => finding.hint(&format!("{eth}, or {set}")),
        None => finding.hint(eth),
    }
}

/// The finding about a wish that names its HCA by the PCI address. The census has no Ethernet card whose
/// RDMA driver is not loaded.
fn at_address(found: &str, target: &str, address: &str, facts: &Facts) -> Finding {
    let is_at = |bus_address: &Option<String>| bus_address.as_deref() == Some(address);
    let is_there = facts.devices.iter().any(|one| is_at(&one.bus_address));
    let finding = Finding::failed(Id::DevicePresent, found, target);
    if let Some(function) = facts.function(address) {
        return match function.devices.is_empty() {
            true => finding.hint(&function.hint()),
            false => finding,
        };
    }
    let mut netdevs = facts.netdevs.iter();
    match netdevs.find(|one| is_at(&one.bus_address)) {
        _ if is_there => finding,
        Some(netdev) => {
            let found = format!("the card of {} has no RDMA device", netdev.ifname);
            Finding::failed(Id::DevicePresent, &found, target).hint(&load_driver_of(netdev))
        }
        None if facts.has_no_hca() => finding.hint(present::NO_HCA),
        None => finding.hint("no RDMA card is at this PCI address: look for its removal in dmesg, or for the card at another address"),
    }
}

/// The finding for a link without a matching port.
fn absent(wish: &LinkWish, facts: &Facts) -> Finding {
    let failed = |found: &str, expected: &str| Finding::failed(Id::DevicePresent, found, expected);
    let found = present::in_words(facts, false);
    if let Some(found) = elsewhere::bonded(wish, facts) {
        return found;
    }
    if let Some(identity) = &wish.identity {
        let expected = format!("{} ({})", wish.target, identity.device);
        let card = wish.bus_address.as_deref();
        let card = card.and_then(|address| facts.function(address));
        if let Some(function) = card.filter(|function| function.in_other_netns) {
            let found = format!("{}: {}", function.address, function.state());
            let finding = failed(&found, &expected).hint(&function.hint());
            // A port that no argument names may be given away, as before the handover.
            return match wish.of_any {
                true => finding.as_warning(),
                false => finding,
            };
        }
        let is_other = |port: PortRef<'_>| port.identities().any(|found| found == *identity);
        let hint = match wish.shared && facts.ports().any(is_other) {
            true => {
                "two ports had this GUID and one is left: create both RDMA devices again, because ibboot cannot tell which port is left"
            }
            false if facts.netns_mode == Some(NetnsMode::Exclusive) => {
                "the device existed in the initramfs: look for its removal in dmesg, or for the device in another \
                 network namespace (ip netns exec NETNS rdma dev)"
            }
            false => "the device existed in the initramfs: look for its removal in dmesg",
        };
        return failed(&found, &expected).hint(hint);
    }
    if let Some(found) = carries_no_link(wish, facts) {
        return found;
    }
    let is_missing = |name: &&str| facts.netdev(name).is_none();
    if let Some(below) = wish.netdev.as_deref().filter(is_missing) {
        let names: Vec<&str> = facts.netdevs.iter().map(|n| n.ifname.as_str()).collect();
        let found = format!(
            "this machine has no network interface {below}, only {}",
            names.join(", ")
        );
        return failed(&found, wish.target.as_str())
            .hint("check the interface's driver and its name (net.ifnames=0 keeps eth0)");
    }
    if let Some(netdev) = facts.netdev(wish.target.as_str()) {
        let without = "interface without an RDMA port below it";
        return match netdev.hardware_type {
            Some(HardwareType::InfiniBand) => failed(&format!("IPoIB {without}"), "a port")
                .hint("look for the removal of its RDMA device in dmesg"),
            Some(_) => {
                let hint = twin_of(netdev, facts).unwrap_or_else(|| load_driver_of(netdev));
                failed(&format!("Ethernet {without}"), "a port").hint(&hint)
            }
            // The kernel has no more files of the interface.
            None => {
                let name = &netdev.ifname;
                failed(
                    &format!("{name} is being removed: its RDMA device is gone"),
                    "",
                )
                .hint("look for the reason of the removal in dmesg")
            }
        };
    }
    if let Some(found) = elsewhere::finding(wish, facts) {
        return found;
    }
    if let Some(found) = unnamed::finding(wish, facts) {
        return found;
    }
    // A device in software needs no HCA.
    if wish.netdev.is_some() && facts.devices.is_empty() {
        return failed("no RDMA device", wish.target.as_str());
    }
    match wish.selector().map(Selector::means) {
        Some(Means::Pci(address)) => {
            at_address(&found, wish.target.as_str(), &address.to_string(), facts)
        }
        _ => present::on_bus(failed(&found, wish.target.as_str()), facts),
    }
}

/// What to do about an Ethernet interface whose hardware address another one has, with an RDMA port: on
/// Hyper-V (Azure) hv_netvsc makes an interface over that of a virtual function.
fn twin_of(netdev: &Netdev, facts: &Facts) -> Option<String> {
    let address = netdev.address.as_ref().filter(|_| netdev.bond.is_none())?;
    let mut ports = facts
        .ports()
        .filter_map(|port| Some((facts.netdev(port.port.netdev.as_deref()?)?, port)));
    let (twin, port) = ports.find(|(other, _)| other.address.as_ref() == Some(address))?;
    Some(format!(
        "the RDMA port is below {}, which has the same hardware address ({}): name that interface",
        twin.ifname,
        port.name()
    ))
}

/// What to do about an Ethernet interface whose card has no RDMA device. iw_cxgb4 makes its device when
/// an interface is set up for the first time (cxgb_up, drivers/net/ethernet/chelsio/cxgb4/cxgb4_main.c).
fn load_driver_of(netdev: &Netdev) -> String {
    let load = format!("{LOAD_DRIVER}, or create a port with rd.ib.link=");
    match netdev.up {
        true => load,
        false => format!(
            "{load}; iw_cxgb4 creates no port before the interface is up (ip link set {} up)",
            netdev.ifname
        ),
    }
}

/// The finding if the wish names ports that exist and carry no link.
fn carries_no_link(wish: &LinkWish, facts: &Facts) -> Option<Finding> {
    let named = select::others(wish.selector()?, facts);
    let first = named.first()?;
    let finding = |found: &str, hint: &str| {
        Finding::failed(Id::DevicePresent, found, "a port that carries a link").hint(hint)
    };
    let found = format!(
        "{} carries no link: {}",
        first.name(),
        first.port.role.words()
    );
    Some(match first.port.role {
        Role::Nvlink => finding(
            &found,
            "name another port: ibboot does not manage this port",
        )
        .lasting(),
        Role::Smi => {
            let sub = first.device.sub_device.as_ref();
            let parent = sub.and_then(|sub| sub.parent.as_deref());
            let hint = format!("name the RDMA device {}", parent.unwrap_or("that has it"));
            finding(&found, &hint).lasting()
        }
        // The uplink of a card in switchdev mode has no RoCE.
        Role::Representor => finding(
            &found,
            &format!("{}: the uplink has no RoCE", present::IN_SWITCHDEV),
        ),
        Role::NoRoce => finding(&found, &present::enable_roce(first.device)),
        _ => finding(&found, "name the port of the physical function"),
    })
}

/// The finding for a link that means several ports, with a request for one interface.
pub fn ambiguous(wish: &LinkWish, found: &[PortRef<'_>]) -> Finding {
    let names: Vec<String> = found.iter().map(PortRef::name).collect();
    let meant = format!("{} means {}", wish.target, names.join(", "));
    let hint = "a static address and a place in a bond are for one interface: write DEVICE:PORT, guid= or the interface";
    Finding::failed(Id::WishPossible, &meant, "one port")
        .hint(hint)
        .lasting()
}
