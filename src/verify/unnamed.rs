// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: an IPoIB interface that a wish names and that does not exist, and why.

use std::collections::BTreeSet;

use super::checks::Id;
use super::present::{self, SHOWN};
use crate::facts::{Facts, Function, PortRef};
use crate::rdma::types::LinkLayer;
use crate::system::drivers::IPOIB;
use crate::system::modules::InitState;
use crate::verify::finding::Finding;
use crate::wish::expectation::LinkWish;
use crate::wish::selector::Means;

/// The finding if the wish names its port by an IPoIB interface that does not exist, on a machine with
/// RDMA devices.
pub fn finding(wish: &LinkWish, facts: &Facts) -> Option<Finding> {
    wish.ipoib.as_ref()?;
    let Means::Name(name) = wish.selector()?.means() else {
        return None;
    };
    if facts.netdev(name).is_some() || facts.devices.is_empty() {
        return None;
    }
    let failed = |found: &str, expected: &str| Finding::failed(Id::DevicePresent, found, expected);
    let Some(ports) = all_ethernet(facts) else {
        let found = format!(
            "no network interface {name}; {}",
            present::in_words(facts, false)
        );
        return Some(failed(&found, wish.target.as_str()).hint(&renamed(facts)));
    };
    let why = format!("{ports}, and IPoIB needs an InfiniBand port");
    let why = present::with_bare_functions(why, facts);
    let finding = failed(&format!("no network interface {name}: {why}"), "");
    // The interface may be that of a card that has no RDMA device yet.
    let is_coming = facts.bare_functions().into_iter().any(Function::is_missing);
    Some(match is_coming {
        true => present::on_bus(finding, facts),
        false => finding.hint(&instead(facts)),
    })
}

/// That the machine has Ethernet ports only; none if that is not so, or not known.
fn all_ethernet(facts: &Facts) -> Option<String> {
    let is_ethernet = |port: PortRef<'_>| port.port.link_layer == Some(LinkLayer::Ethernet);
    if !facts.ports().all(is_ethernet) {
        return None;
    }
    let names: Vec<String> = facts.ports().map(|port| port.name()).collect();
    match &names[..] {
        [] => None,
        [name] => Some(format!("the only port, {name}, is Ethernet")),
        names if names.len() <= SHOWN => {
            Some(format!("all ports are Ethernet ({})", names.join(", ")))
        }
        names => Some(format!("all {} ports are Ethernet", names.len())),
    }
}

/// The hint if the machine has Ethernet ports only.
fn instead(facts: &Facts) -> String {
    let netdevs: Vec<&str> = facts
        .ports()
        .filter_map(|port| port.port.netdev.as_deref())
        .take(SHOWN)
        .collect();
    let name = match netdevs.is_empty() {
        true => "name the Ethernet interface in ip=".to_owned(),
        false => format!(
            "name the Ethernet interface in ip= ({})",
            netdevs.join(", ")
        ),
    };
    match set_port_type(facts) {
        Some(set) => format!("{set}, or {name}"),
        None => name,
    }
}

/// How to make InfiniBand ports of the Ethernet ports; none if no driver of the machine has port types. A
/// virtual function has the port type of its card.
pub fn set_port_type(facts: &Facts) -> Option<String> {
    let is_virtual = |card: &&str| facts.function(card).is_some_and(Function::is_virtual);
    let cards: BTreeSet<&str> = facts
        .ports()
        .filter_map(|port| port.device.card())
        .filter(|card| !is_virtual(card))
        .collect();
    let address = match cards.first() {
        Some(only) if cards.len() == 1 => only,
        _ => "ADDRESS",
    };
    let functions = || cards.iter().filter_map(|card| facts.function(card));
    let has = |driver| functions().any(|function| function.driver.as_deref() == Some(driver));
    let firmware = format!(
        "mstconfig -d {address} set LINK_TYPE_P1=1, of the second port LINK_TYPE_P2=1, then reboot"
    );
    let argument = format!("rd.ib.porttype=pci={address}:ib");
    let how = match (has("mlx5_core"), has("mlx4_core")) {
        (true, true) => format!("mlx5: {firmware}; mlx4: {argument}"),
        (true, false) => firmware,
        (false, true) => argument,
        (false, false) => return None,
    };
    Some(format!(
        "set the port type if the card supports InfiniBand ({how})"
    ))
}

/// The hint if an interface of this name does not exist: it may have another name.
fn renamed(facts: &Facts) -> String {
    let found: Vec<&str> = facts
        .netdevs
        .iter()
        .filter(|netdev| netdev.is_parent())
        .map(|netdev| netdev.ifname.as_str())
        .take(SHOWN)
        .collect();
    if !found.is_empty() {
        return format!(
            "the IPoIB interfaces are {}: udev names them unless net.ifnames=0; use one of these names, guid= or pci=",
            found.join(", ")
        );
    }
    match facts.modules.get(IPOIB) {
        Some(InitState::Live) => "ib_ipoib is loaded but created no interface: see dmesg",
        _ => "check that ib_ipoib is loaded; a name may change, guid= and pci= do not",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Port};
    use crate::wish::expectation::Target;
    use crate::wish::ipoib::IpoibWish;

    fn machine(devices: &[(&str, &str, &str, LinkLayer)]) -> Facts {
        let device = |(name, address, _, layer): &(&str, &str, &str, LinkLayer)| Device {
            ifname: (*name).to_owned(),
            bus_address: Some((*address).to_owned()),
            ports: vec![Port {
                port: 1,
                link_layer: Some(*layer),
                ..Port::default()
            }],
            ..Device::default()
        };
        let function = |(name, address, driver, _): &(&str, &str, &str, LinkLayer)| Function {
            address: (*address).to_owned(),
            driver: Some((*driver).to_owned()),
            devices: vec![(*name).to_owned()],
            ..Function::default()
        };
        Facts {
            devices: devices.iter().map(device).collect(),
            functions: devices.iter().map(function).collect(),
            ..Facts::default()
        }
    }

    fn of_ib0(facts: &Facts) -> (String, String) {
        let wish = LinkWish {
            target: Target::from("ib0".to_owned()),
            ipoib: Some(IpoibWish::default()),
            ..LinkWish::default()
        };
        let finding = finding(&wish, facts).unwrap();
        (finding.found.unwrap(), finding.hint.unwrap())
    }

    #[test]
    fn ports_that_are_all_ethernet_explain_a_missing_interface() {
        use LinkLayer::{Ethernet, InfiniBand};
        let needs = "and IPoIB needs an InfiniBand port";
        let (a, b) = ("0000:1b:00.0", "0000:81:00.0");
        let mlx5 = ("mlx5_0", a, "mlx5_core", Ethernet);
        let mlx4 = ("mlx4_0", b, "mlx4_core", Ethernet);
        for (devices, found, hint) in [
            (
                vec![mlx5],
                "the only port, mlx5_0/1, is Ethernet",
                "set the port type if the card supports InfiniBand (mstconfig -d 0000:1b:00.0 set \
                 LINK_TYPE_P1=1, of the second port LINK_TYPE_P2=1, then reboot), or name the Ethernet interface in ip=",
            ),
            (
                vec![mlx4],
                "the only port, mlx4_0/1, is Ethernet",
                "set the port type if the card supports InfiniBand (rd.ib.porttype=pci=0000:81:00.0:ib), \
                 or name the Ethernet interface in ip=",
            ),
            (
                vec![mlx5, mlx4],
                "all ports are Ethernet (mlx5_0/1, mlx4_0/1)",
                "set the port type if the card supports InfiniBand (mlx5: mstconfig -d ADDRESS set \
                 LINK_TYPE_P1=1, of the second port LINK_TYPE_P2=1, then reboot; mlx4: rd.ib.porttype=pci=ADDRESS:ib), or name the Ethernet interface in ip=",
            ),
            (
                vec![("bnxt_re0", a, "bnxt_en", Ethernet)],
                "the only port, bnxt_re0/1, is Ethernet",
                "name the Ethernet interface in ip=",
            ),
        ] {
            let found = format!("no network interface ib0: {found}, {needs}");
            assert_eq!(of_ib0(&machine(&devices)), (found, hint.to_owned()));
        }
        let mut bare = machine(&[mlx5]);
        bare.functions.push(Function {
            address: b.to_owned(),
            id: "15b3:101b".to_owned(),
            expected: true,
            ..Function::default()
        });
        let (found, hint) = of_ib0(&bare);
        assert!(
            found.ends_with(
                "; HCAs without an RDMA device: 0000:81:00.0 (15b3:101b): no driver is known for this card"
            ),
            "{found}"
        );
        assert_eq!(
            hint,
            "install the driver of this card, and add it to the image (dracut --force --add-drivers MODULE)"
        );
        let both = machine(&[mlx5, ("mlx5_1", b, "mlx5_core", InfiniBand)]);
        let (found, hint) = of_ib0(&both);
        assert_eq!(
            found,
            "no network interface ib0; this machine has only mlx5_0/1, mlx5_1/1"
        );
        assert!(hint.starts_with("check that ib_ipoib is loaded"), "{hint}");
        let mut live = both;
        live.modules.insert(IPOIB.to_owned(), InitState::Live);
        let hint = "ib_ipoib is loaded but created no interface: see dmesg";
        assert_eq!(of_ib0(&live).1, hint);
    }
}
