// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments for facts that no saved machine has.

use super::*;
use crate::facts::Device;
use crate::facts::Port;
use crate::facts::addresses::{AddressState, FoundAddress};
use crate::facts::functions::Function;
use crate::hardware::HardwareAddress;
use crate::hardware::HardwareType;
use crate::inet::Route;
use crate::rdma::types::Guid;
use crate::wish::bond::BondFacts;
use crate::wish::ipoib::{IpoibFacts, Mode};

fn device(name: &str, address: Option<&str>, driver: &str) -> Device {
    Device {
        ifname: name.to_owned(),
        bus_address: address.map(str::to_owned),
        driver: address.map(|_| driver.to_owned()),
        ..Device::default()
    }
}

fn with_port(mut device: Device, guid: u64, layer: LinkLayer) -> Device {
    device.ports.push(Port {
        port: 1,
        link_layer: Some(layer),
        state: Some(PortState::Active),
        port_guid: Some(Guid(guid)),
        netdev: (layer == LinkLayer::Ethernet).then(|| "eth0".to_owned()),
        ..Port::default()
    });
    device
}

fn interface(name: &str, guid: u64, carrier: bool, addresses: &[(&str, AddressState)]) -> Netdev {
    let address = format!(
        "80:00:00:48:fe:80:00:00:00:00:00:00:{}",
        crate::hardware::Hex(&guid.to_be_bytes())
    );
    let found = |(address, state): &(&str, AddressState)| FoundAddress {
        address: address.parse().unwrap(),
        state: *state,
    };
    Netdev {
        ifname: name.to_owned(),
        hardware_type: Some(HardwareType::InfiniBand),
        address: Some(address.parse::<HardwareAddress>().unwrap()),
        carrier: Some(carrier),
        addresses: addresses.iter().map(found).collect(),
        ..Netdev::default()
    }
}

fn arguments(found: &Suggestion) -> Vec<&str> {
    found
        .arguments
        .iter()
        .map(|one| one.argument.as_str())
        .collect()
}

#[test]
fn a_port_for_a_guest_is_not_required() {
    let card = |address: &str, physical: Option<&str>| Function {
        address: address.to_owned(),
        physical: physical.map(str::to_owned),
        ..Function::default()
    };
    let device = |name, address| device(name, Some(address), "mlx5_core");
    let mut facts = Facts {
        devices: vec![
            with_port(device("mlx5_0", "0000:81:00.0"), 1, LinkLayer::InfiniBand),
            with_port(device("mlx5_1", "0000:81:00.1"), 2, LinkLayer::InfiniBand),
            with_port(device("mlx5_2", "0000:81:00.2"), 3, LinkLayer::InfiniBand),
            with_port(device("mlx5_3", "mlx5_core.sf.4"), 4, LinkLayer::InfiniBand),
        ],
        functions: vec![
            card("0000:81:00.0", None),
            card("0000:81:00.1", Some("0000:81:00.0")),
            card("0000:81:00.2", Some("0000:81:00.0")),
        ],
        ..Facts::default()
    };
    facts.devices[2].ports[0].state = Some(PortState::Down);
    let found = suggest(&facts, &[], Vec::new());
    assert_eq!(arguments(&found), ["rd.ib.require=guid=0x0000000000000001"]);
    assert_eq!(
        found.notes,
        ["ports of virtual functions and sub-functions that are not required: 3"]
    );
}

#[test]
fn a_software_device_with_a_bus_device_is_software() {
    let rnic = |mut device: Device| {
        device.node_type = Some(NodeType::Rnic);
        device
    };
    let mut rxe = device("rxe0", Some("0000:1b:00.0"), "mlx5_core");
    rxe.parent = Some("eth0".to_owned());
    let siw = rnic(device("siw0", Some("0000:02:00.0"), "bnxt_en"));
    let mut irdma = rnic(device("irdma0", Some("0000:03:00.0"), "ice"));
    irdma.fw = Some("1.71".to_owned());
    let facts = Facts {
        devices: vec![
            with_port(rxe, 1, LinkLayer::Ethernet),
            with_port(siw, 2, LinkLayer::Ethernet),
            with_port(irdma, 3, LinkLayer::Ethernet),
            with_port(
                device("hns_0", Some("HISI00D1:00"), "hns_roce"),
                4,
                LinkLayer::Ethernet,
            ),
        ],
        ..Facts::default()
    };
    let found = suggest(&facts, &[], Vec::new());
    assert_eq!(
        arguments(&found),
        [
            "rd.ib.require=pci=0000:03:00.0",
            "rd.ib.link=rxe0:rxe:eth0",
            "rd.ib.link=siw0:siw:eth0",
        ]
    );
    assert_eq!(
        found.notes[0],
        "hns_0/1 is no PCI card (HISI00D1:00), and not required"
    );
}

#[test]
fn interfaces_without_carrier_are_required_only_if_no_other_is_left() {
    let mlx5 = |name, guid| with_port(device(name, None, ""), guid, LinkLayer::InfiniBand);
    let address = [("10.0.0.5/24", AddressState::Usable)];
    let require = |first, second| {
        let facts = Facts {
            devices: vec![mlx5("a", 1), mlx5("b", 2)],
            netdevs: vec![
                interface("ib0", 1, first, &address),
                interface("ib1", 2, second, &[("10.1.0.5/24", AddressState::Usable)]),
            ],
            ..Facts::default()
        };
        let found = suggest(&facts, &[], Vec::new());
        let is_require = |one: &&str| one.starts_with("rd.ib.require=");
        let argument = arguments(&found)
            .into_iter()
            .find(is_require)
            .map(str::to_owned);
        (argument, found.notes[0].clone())
    };
    assert_eq!(require(true, true).0, None);
    assert_eq!(require(true, false).0.as_deref(), Some("rd.ib.require=ib0"));
    let note = "ib0, ib1: required because the arguments name them, although they have no carrier";
    assert_eq!(require(false, false), (None, note.to_owned()));
}

#[test]
fn only_usable_addresses_are_written_and_ipv6_has_its_own_argument() {
    let facts = Facts {
        netdevs: vec![interface(
            "ib0",
            1,
            true,
            &[
                ("fd00::5/64", AddressState::Usable),
                ("fd00::6/64", AddressState::Tentative),
                ("fd00::7/64", AddressState::Duplicate),
            ],
        )],
        devices: vec![with_port(device("a", None, ""), 1, LinkLayer::InfiniBand)],
        ..Facts::default()
    };
    let found = suggest(&facts, &[], Vec::new());
    let addresses: Vec<&str> = arguments(&found)
        .into_iter()
        .filter(|one| one.starts_with("ip="))
        .collect();
    assert_eq!(addresses, ["ip=[fd00::5]:::64::ib0:none"]);
    assert!(
        found.notes[0].ends_with("if a DHCP server assigned the address, write ip=ib0:dhcp6"),
        "{:?}",
        found.notes
    );
}

#[test]
fn a_gateway_of_a_profile_is_for_its_addresses_only() {
    let profile = keyfile::of_manager(
        "f",
        "[connection]\ntype=infiniband\ninterface-name=ib0\n[ipv4]\nmethod=manual\n\
         address1=10.0.0.5/24,10.0.0.1\nroute1=10.8.0.0/16,10.0.0.9\n",
    );
    let profiles = [profile.unwrap()];
    let with = |addresses: &[(&str, AddressState)]| {
        let facts = Facts {
            netdevs: vec![interface("ib0", 1, true, addresses)],
            devices: vec![with_port(device("a", None, ""), 1, LinkLayer::InfiniBand)],
            ..Facts::default()
        };
        let found = suggest(&facts, &profiles, Vec::new());
        let is_ip = |one: &&str| one.starts_with("ip=") || one.starts_with("rd.route=");
        let arguments = arguments(&found).into_iter().filter(is_ip);
        arguments.map(str::to_owned).collect::<Vec<_>>()
    };
    let here = [("10.0.0.5/24", AddressState::Usable)];
    assert_eq!(with(&here), ["ip=10.0.0.5:::24::ib0:none"]);
    assert_eq!(
        with(&[]),
        [
            "ip=10.0.0.5::10.0.0.1:24::ib0:none",
            "rd.route=10.8.0.0/16:10.0.0.9:ib0"
        ]
    );
}

/// An interface with this mode and MTU; with a P_Key a child.
fn with_mode(mut netdev: Netdev, mode: Mode, mtu: u32, pkey: Option<u16>) -> Netdev {
    netdev.mtu = Some(mtu);
    netdev.ipoib = Some(IpoibFacts {
        mode: Some(mode),
        pkey: pkey.or(Some(0xffff)),
        child: pkey.is_some(),
        legacy: true,
    });
    netdev
}

fn bond(slaves: &[&str], mtu: u32, addresses: &[(&str, AddressState)]) -> Netdev {
    let primary = slaves.first().map(|first| format!("primary={first}"));
    Netdev {
        mtu: Some(mtu),
        bond: Some(BondFacts {
            slaves: slaves.iter().map(|&one| one.to_owned()).collect(),
            active_slave: None,
            options: primary.into_iter().collect(),
        }),
        ..interface("bond0", 1, true, addresses)
    }
}

#[test]
fn a_bond_has_the_names_that_its_interfaces_have_in_the_initramfs() {
    use Mode::Connected;
    let child = Some(0x8001);
    let facts = Facts {
        netdevs: vec![
            with_mode(interface("ib0", 1, true, &[]), Connected, 65520, None),
            with_mode(interface("stor0", 1, true, &[]), Connected, 65520, child),
            with_mode(interface("ib1", 2, true, &[]), Connected, 65520, None),
            with_mode(interface("stor1", 2, true, &[]), Connected, 65520, child),
            bond(&["stor0", "stor1"], 65520, &[]),
        ],
        ..Facts::default()
    };
    let found = suggest(&facts, &[], Vec::new());
    let of_bond = arguments(&found)
        .into_iter()
        .find(|one| one.starts_with("bond="));
    assert_eq!(
        of_bond,
        Some("bond=bond0:ib0.8001,ib1.8001:mode=active-backup,primary=ib0.8001")
    );
}

#[test]
fn a_bond_has_the_mtu_of_its_interfaces() {
    let mtus = |mode, mtu| {
        let facts = Facts {
            netdevs: vec![
                with_mode(interface("ib0", 1, true, &[]), mode, mtu, None),
                with_mode(interface("ib1", 2, true, &[]), mode, mtu, None),
                bond(&["ib0", "ib1"], mtu, &[]),
            ],
            ..Facts::default()
        };
        let found = suggest(&facts, &[], Vec::new());
        let is_mtu = |one: &&str| one.starts_with("rd.ib.mtu=");
        let mtus = arguments(&found).into_iter().filter(is_mtu);
        mtus.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(mtus(Mode::Connected, 65520), [""; 0]);
    assert_eq!(mtus(Mode::Connected, 9000), ["rd.ib.mtu=bond0:9000"]);
    assert_eq!(mtus(Mode::Datagram, 2044), [""; 0]);
    assert_eq!(mtus(Mode::Datagram, 1500), ["rd.ib.mtu=bond0:1500"]);
}

#[test]
fn a_route_on_the_link_is_written_unless_the_kernel_makes_it() {
    let route = |text: &str| Route {
        network: text.parse().unwrap(),
        gateway: None,
    };
    let addresses = ["10.0.0.5/32", "10.1.0.5/24", "fd00::5/128"];
    let addresses = addresses.map(|address| (address, AddressState::Usable));
    let mut ib0 = interface("ib0", 1, true, &addresses);
    ib0.routes = [
        "10.0.0.0/24",
        "10.1.0.0/24",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "fd00::5/128",
        "fd00::/64",
        "fe80::/64",
        "ff00::/8",
    ]
    .map(route)
    .to_vec();
    // Of a prefix of a router, without an address of the interface.
    let mut ib1 = interface("ib1", 2, true, &[("10.2.0.5/24", AddressState::Usable)]);
    ib1.routes = vec![route("fd01::/64")];
    let facts = Facts {
        netdevs: vec![ib0, ib1],
        ..Facts::default()
    };
    let found = suggest(&facts, &[], Vec::new());
    let all = arguments(&found).into_iter();
    let routes: Vec<&str> = all.filter(|one| one.starts_with("rd.route=")).collect();
    assert_eq!(
        routes,
        ["rd.route=10.0.0.0/24::ib0", "rd.route=[fd00::]/64::ib0"]
    );
}

#[test]
fn a_route_of_a_profile_needs_no_gateway() {
    let profile = keyfile::of_manager(
        "f",
        "[connection]\ntype=infiniband\ninterface-name=ib0\n[ipv4]\nmethod=manual\n\
         address1=10.0.0.5/32\nroute1=10.8.0.0/16\n",
    );
    let facts = Facts {
        netdevs: vec![interface("ib0", 1, true, &[])],
        ..Facts::default()
    };
    let found = suggest(&facts, &[profile.unwrap()], Vec::new());
    assert!(arguments(&found).contains(&"rd.route=10.8.0.0/16::ib0"));
}
