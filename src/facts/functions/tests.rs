// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::facts::Port;
use crate::wish::bond::BondFacts;

#[test]
fn a_bus_that_could_not_be_read_is_not_known_to_be_empty() {
    let mut facts = Facts::default();
    assert_eq!(
        facts.no_device_in_words(),
        "no RDMA device, and no HCA on the PCI bus"
    );
    for (file, is_known) in [
        ("/0000:1b:00.0/vpd", true),
        ("/0000:1b:00.0/modalias", false),
        ("", false),
    ] {
        let path = format!("{PCI}{file}");
        let expected = match is_known {
            true => "no RDMA device, and no HCA on the PCI bus".to_owned(),
            false => format!("no RDMA device; {path}: Permission denied"),
        };
        let why = "Permission denied".to_owned();
        facts.unread = vec![Unread {
            path,
            why,
            obstacle: None,
        }];
        assert_eq!(facts.no_device_in_words(), expected);
    }
}

#[test]
fn infiniband_cards_must_have_a_device_and_ethernet_cards_never() {
    let infiniband = Signs {
        class: 0x0207,
        is_infiniband: true,
        driver: Some("mlx5_core"),
        ..Signs::default()
    };
    let ethernet = Signs {
        class: 0x0200,
        is_infiniband: false,
        has_sibling: true,
        ..infiniband
    };
    let model = Signs {
        class: 0x00ff,
        is_infiniband: false,
        driver: Some("softib"),
        ..infiniband
    };
    for (signs, expected) in [
        (infiniband, true),
        (
            Signs {
                driver: None,
                ..infiniband
            },
            true,
        ),
        (
            Signs {
                is_for_guest: true,
                ..infiniband
            },
            false,
        ),
        (
            Signs {
                is_given_away: true,
                ..infiniband
            },
            false,
        ),
        (
            Signs {
                is_switch: true,
                ..infiniband
            },
            false,
        ),
        (ethernet, false),
        (
            Signs {
                driver: Some("mlx4_core"),
                ..ethernet
            },
            false,
        ),
        (
            Signs {
                class: 0x0280,
                driver: Some("mlx4_core"),
                ..ethernet
            },
            true,
        ),
        (model, false),
        (
            Signs {
                has_sibling: true,
                ..model
            },
            true,
        ),
    ] {
        assert_eq!(is_expected(signs), expected, "{signs:?}");
    }
}

#[test]
fn the_state_names_the_module_that_is_not_ready() {
    let live = Some(InitState::Live);
    let coming = Some(InitState::Coming);
    let function = |driver: Option<&str>, states: &[Option<InitState>]| Function {
        driver: driver.map(str::to_owned),
        modules: ["mlx5_core", "mlx5_ib"]
            .iter()
            .zip(states)
            .map(|(name, state)| Module {
                name: (*name).to_owned(),
                state: *state,
            })
            .collect(),
        ..Function::default()
    };
    let core = Some("mlx5_core");
    for (driver, states, state) in [
        (None, vec![None, None], "mlx5_core is not loaded"),
        (
            None,
            vec![coming, None],
            "no driver is bound yet: mlx5_core is still initialising",
        ),
        (
            None,
            vec![live, live],
            "mlx5_core is loaded but not bound to this card",
        ),
        (
            core,
            vec![live, None],
            "mlx5_core is bound, but mlx5_ib is not loaded",
        ),
        (
            core,
            vec![live, coming],
            "mlx5_core is bound, but mlx5_ib is still initialising",
        ),
        (
            core,
            vec![live, live],
            "mlx5_core is bound, but mlx5_ib created no RDMA device",
        ),
        (
            core,
            vec![live],
            "mlx5_core is bound but created no RDMA device",
        ),
        (
            Some("vfio-pci"),
            vec![live, live],
            "vfio-pci is bound to this card",
        ),
        (None, vec![], "no driver is known for this card"),
        (Some("new"), vec![], "new created no RDMA device"),
    ] {
        assert_eq!(function(driver, &states).state(), state);
    }
}

#[test]
fn only_a_drivers_lines_about_the_function_count() {
    let address = "0000:dc:00.0";
    for (line, expected) in [
        ("mlx5_core 0000:dc:00.0: firmware version: 28.39.1002", true),
        ("pci 0000:dc:00.0: BAR 0: assigned", false),
        ("mlx5_core 0000:dc:00.1: firmware version", false),
        (
            "mlx5_core: probe of 0000:dc:00.0 failed with error -16",
            false,
        ),
        ("0000:dc:00.0:", false),
        ("", false),
    ] {
        assert_eq!(is_about(line, address), expected, "{line}");
    }
}

#[test]
fn a_function_of_a_roce_bond_is_not_bare_and_one_that_failed_is() {
    let function = |address: &str, driver: Option<&str>| Function {
        address: address.to_owned(),
        class: "0200".to_owned(),
        driver: driver.map(str::to_owned),
        ..Function::default()
    };
    let mlx5 = Some("mlx5_core");
    let (first, second) = ("0000:01:00.0", "0000:01:00.1");
    let bare = |device: &str, functions: &[Function]| {
        let facts = Facts {
            devices: vec![Device {
                ifname: device.to_owned(),
                bus_address: Some(first.to_owned()),
                ..Device::default()
            }],
            functions: functions.to_vec(),
            ..Facts::default()
        };
        let bare = facts.bare_functions().into_iter();
        bare.map(|one| one.address.clone()).collect::<Vec<_>>()
    };
    let with = |second: Function| {
        let devices = vec!["mlx5_bond_0".to_owned()];
        [
            Function {
                devices,
                ..function(first, mlx5)
            },
            second,
        ]
    };
    let healthy = with(function(second, mlx5));
    assert!(bare("mlx5_bond_0", &healthy).is_empty());
    assert_eq!(bare("mlx5_0", &healthy), [second], "the bond is lost");
    for (failed, why) in [
        (function(second, None), "no driver"),
        (function(second, Some("vfio-pci")), "given away"),
        (function("0000:81:00.1", mlx5), "another card"),
        (
            Function {
                class: "0207".to_owned(),
                ..function(second, mlx5)
            },
            "an InfiniBand port",
        ),
    ] {
        let address = failed.address.clone();
        assert_eq!(bare("mlx5_bond_0", &with(failed)), [address], "{why}");
    }
}

#[test]
fn a_roce_bond_under_a_name_of_udev_is_known_by_its_interfaces() {
    let (first, second) = ("0000:01:00.0", "0000:01:00.1");
    let function = |address: &str, devices: &[&str]| Function {
        address: address.to_owned(),
        class: "0200".to_owned(),
        driver: Some("mlx5_core".to_owned()),
        devices: devices.iter().map(|one| (*one).to_owned()).collect(),
        ..Function::default()
    };
    let device = |name: &str| Device {
        ifname: name.to_owned(),
        bus_address: Some(first.to_owned()),
        ports: vec![Port {
            port: 1,
            netdev: Some("eth0".to_owned()),
            ..Port::default()
        }],
        ..Device::default()
    };
    let netdev = |name: &str, address: &str| Netdev {
        ifname: name.to_owned(),
        bus_address: Some(address.to_owned()),
        ..Netdev::default()
    };
    let machine = |name: &str, slaves: &[&str]| Facts {
        devices: vec![device(name)],
        functions: vec![
            function(first, &[name]),
            function(second, &[]),
            function("0000:01:00.2", &[]),
            function("0000:81:00.0", &[]),
        ],
        netdevs: vec![
            netdev("eth0", first),
            netdev("eth1", second),
            netdev("eth2", "0000:81:00.0"),
            Netdev {
                ifname: "bond0".to_owned(),
                bond: Some(BondFacts {
                    slaves: slaves.iter().map(|one| (*one).to_owned()).collect(),
                    options: vec!["mode=802.3ad 4".to_owned()],
                    ..BondFacts::default()
                }),
                ..Netdev::default()
            },
        ],
        ..Facts::default()
    };
    let of = |facts: &Facts| {
        let addresses = facts.functions.iter().map(|one| one.address.as_str());
        let shared = addresses.filter(|address| facts.roce_bond(address).is_some());
        shared.map(str::to_owned).collect::<Vec<_>>()
    };
    let both = machine("rocep1s0f0", &["eth0", "eth1"]);
    assert_eq!(of(&both), [first, second]);
    let mut on_bond = both.clone();
    on_bond.devices[0].ports[0].netdev = Some("bond0".to_owned());
    assert_eq!(of(&on_bond), [first, second]);
    for (name, slaves) in [
        // The kernel names no bond so.
        ("mlx5_0", &["eth0", "eth1"][..]),
        ("rocep1s0f0", &["eth0"]),
        ("rocep1s0f0", &["eth1"]),
        ("rocep1s0f0", &["eth0", "eth2"]),
        ("rocep1s0f0", &["eth0", "eth1", "eth2"]),
        ("rocep1s0f0", &["eth0", "unknown"]),
        ("rocep1s0f0", &[]),
    ] {
        assert!(of(&machine(name, slaves)).is_empty(), "{name} {slaves:?}");
    }
    let mut separate = both.clone();
    separate.netdevs[3].bond.as_mut().unwrap().options[0] = "mode=balance-rr 0".to_owned();
    assert!(of(&separate).is_empty(), "a mode without a device for all");
    let mut two = both.clone();
    two.functions[1] = function(second, &["rocep1s0f1"]);
    assert!(of(&two).is_empty(), "a device of its own");
    let mut unbound = both.clone();
    unbound.functions[1].driver = None;
    assert!(of(&unbound).is_empty(), "no driver");
    let mut other = both;
    for function in &mut other.functions {
        function.driver = Some("bnxt_en".to_owned());
    }
    assert!(of(&other).is_empty(), "a driver without such bonds");
}
