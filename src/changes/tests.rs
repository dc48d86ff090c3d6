// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules that a case on a saved machine cannot express: changes that were tried, leases, and
//! answers of the link. `tests/cases` tests the order of the changes.

use std::path::Path;

use kernel_cmdline::PortType;

use super::*;
use crate::dhcp::v4::lease::Lease;
use crate::facts::{AddressState, FoundAddress};
use crate::hardware::HardwareType;
use crate::inet::Route;
use crate::plan::{Inventory, Plan, plan};
use crate::request::Request;
use crate::system::root::Root;
use crate::wish::bond::BondFacts;
use crate::wish::ipoib::Mode;

/// A saved machine and its request.
struct Machine {
    root: Root,
    inventory: Inventory,
    facts: Facts,
    plan: Plan,
}

impl Machine {
    fn new(tree: &str, cmdline: &str) -> Machine {
        let sys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let root = Root::new(sys.join(tree));
        let inventory = Inventory::read(&root).unwrap();
        let plan = plan(&Request::from_text(cmdline), &inventory);
        let facts = Facts::gather(&root, None, &[], plan.expectation.depth());
        Machine {
            root,
            inventory,
            facts,
            plan,
        }
    }

    fn netdev(&mut self, name: &str) -> &mut Netdev {
        let mut all = self.facts.netdevs.iter_mut();
        all.find(|netdev| netdev.ifname == name).unwrap()
    }

    fn with(&self, done: &Done, edit: impl FnOnce(&mut Expected<'_>, &mut Ground)) -> Vec<Change> {
        let steps = &self.plan.steps;
        let mut expected = Expected::new(steps, &self.plan.expectation, &self.facts);
        let modules = &self.inventory.modules;
        let mut ground = Ground::read(&self.root, modules, &expected, &self.facts);
        edit(&mut expected, &mut ground);
        changes(&expected, &self.facts, &ground, done)
    }

    /// Returns the next changes and records all of them as tried.
    fn tried(&self, done: &mut Done) -> Vec<String> {
        let before = done.clone();
        let changes = self.with(&before, |expected, ground| {
            done.record_right_port_types(expected, &self.facts, ground);
        });
        changes.iter().for_each(|change| done.record(change));
        lines(&changes)
    }
}

fn lines(changes: &[Change]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

const IB: &str = "rd.driver.post=mlx5_ib,ib_ipoib";

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn an_mtu_is_tried_once_until_the_carrier_goes() {
    let machine = Machine::new("connectx6-hdr", &format!("{IB} rd.ib.mtu=ib0:max"));
    let mut done = Done::default();
    assert_eq!(machine.tried(&mut done), ["ib0: set MTU 4092"]);
    assert_eq!(machine.tried(&mut done), none());
    done.forget(5);
    assert_eq!(machine.tried(&mut done), none());
    done.forget(4);
    assert_eq!(machine.tried(&mut done), ["ib0: set MTU 4092"]);
}

#[test]
fn an_address_waits_until_the_kernel_transmits() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} ip=10.0.0.5:::24::ib0:none"));
    let state = |word: &str| Some(word.to_owned());
    machine.netdev("ib0").operstate = state("down");
    assert_eq!(machine.tried(&mut Done::default()), none());
    machine.netdev("ib0").operstate = state("up");
    let changes = machine.tried(&mut Done::default());
    assert_eq!(
        changes,
        [
            "ib0: probe address 10.0.0.5 by ARP",
            "ib0: set address 10.0.0.5/24"
        ]
    );
}

#[test]
fn an_mtu_does_not_wait_until_the_kernel_transmits() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} rd.ib.mtu=ib0:max"));
    machine.netdev("ib0").operstate = Some("down".to_owned());
    assert_eq!(machine.tried(&mut Done::default()), ["ib0: set MTU 4092"]);
}

#[test]
fn a_requested_mtu_can_fail_and_the_largest_one_cannot() {
    let need = |mtu: &str| {
        let machine = Machine::new("connectx6-hdr", &format!("{IB} rd.ib.mtu=ib0:{mtu}"));
        let changes = machine.with(&Done::default(), |_, _| {});
        changes.first().map(|change| change.need)
    };
    assert_eq!(need("4092"), Some(Need::Requested));
    assert_eq!(need("max"), Some(Need::Best));
}

#[test]
fn a_rename_is_given_up_after_some_tries() {
    let address = "80:00:00:02:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";
    let cmdline = format!("{IB} ifname=x:{address} ip=10.0.0.5:::24::x:none");
    let machine = Machine::new("connectx6-hdr", &cmdline);
    let mut done = Done::default();
    for _ in 0..3 {
        assert_eq!(machine.tried(&mut done), ["ib0: rename to x"]);
    }
    assert_eq!(machine.tried(&mut done), none());
}

#[test]
fn a_mode_and_an_address_are_tried_every_time() {
    let cmdline = format!("{IB} rd.ib.mode=ib0:connected ip=[fd00::5]:::64::ib0:none");
    let mut machine = Machine::new("connectx6-hdr", &cmdline);
    let mut done = Done::default();
    let first = ["ib0: set mode connected", "ib0: set IPv6 disable_ipv6 to 0"];
    let all = [&first[..], &["ib0: set address fd00::5/64"]].concat();
    for _ in 0..5 {
        assert_eq!(machine.tried(&mut done), all);
    }
    // Another host has the address: the kernel would not accept the address again.
    machine.netdev("ib0").addresses = vec![FoundAddress {
        address: "fd00::5/64".parse().unwrap(),
        state: AddressState::Duplicate,
    }];
    assert_eq!(machine.tried(&mut done), first);
}

#[test]
fn a_port_type_is_tried_once_by_each_step_for_the_port() {
    let machine = Machine::new(
        "connectx3-dual",
        "rd.ib.porttype=pci=0000:05:00.0:auto rd.ib.porttype=mlx4_0:2:eth",
    );
    let ports = |done: &Done| -> Vec<(u32, PortType, usize)> {
        let mut ports = Vec::new();
        let edit = |_: &mut Expected<'_>, ground: &mut Ground| {
            ground
                .port_types
                .values_mut()
                .for_each(|shown| "ib".clone_into(shown));
        };
        for change in machine.with(done, edit) {
            if let What::Write(Writing::PortTypes(of)) = change.what {
                ports.extend(of.iter().map(|port| (port.port, port.value, port.step)));
            }
        }
        ports
    };
    let steps = |value: PortType| {
        let mut steps = machine.plan.steps.iter();
        let is_it = |step: &crate::plan::Step| matches!(&step.action, crate::plan::Action::SetPortType { port_type, .. } if *port_type == value);
        steps.position(is_it).unwrap()
    };
    let (auto, eth) = (steps(PortType::Auto), steps(PortType::Eth));
    let mut done = Done::default();
    assert_eq!(
        ports(&done),
        [(1, PortType::Auto, auto), (2, PortType::Eth, eth)]
    );
    let port = |port, step| CardPort {
        port,
        value: PortType::Auto,
        step,
    };
    done.record_port_type("0000:05:00.0", &port(1, auto));
    // Before its device existed, an earlier step applied to the second port.
    done.record_port_type("0000:05:00.0", &port(2, auto));
    assert_eq!(ports(&done), [(2, PortType::Eth, eth)]);
    done.record_port_type("0000:05:00.0", &port(2, eth));
    assert_eq!(ports(&done), []);
}

#[test]
fn a_type_that_is_right_already_outlives_the_name_of_its_device() {
    let cmdline = "rd.ib.porttype=pci=0000:05:00.0:eth rd.ib.porttype=mlx4_0:1:ib";
    let mut machine = Machine::new("connectx3-dual", cmdline);
    let mut done = Done::default();
    let port_2 = ["0000:05:00.0: set port 2 to type eth"];
    assert_eq!(machine.tried(&mut done), port_2);
    for device in &mut machine.facts.devices {
        device.ifname = "ibp5s0".to_owned();
    }
    assert_eq!(machine.tried(&mut done), port_2);
}

#[test]
fn a_roce_mode_is_set_once_for_a_device() {
    let mut machine = Machine::new("soft-roce", "rd.ib.roce=v2");
    let mut done = Done::default();
    let mut tried = |machine: &Machine| {
        let changes = machine.with(&done, |_, ground| {
            ground.drivers.insert("rdma_cm".to_owned());
        });
        changes.iter().for_each(|change| done.record(change));
        lines(&changes)
    };
    let mode = ["rxe0/1: set default RoCE mode RoCE v2"];
    assert_eq!(tried(&machine), mode);
    assert_eq!(tried(&machine), none());
    // The driver has added the device again: the kernel has its default.
    machine.facts.devices[0].ifindex = Some(99);
    assert_eq!(tried(&machine), mode);
    assert_eq!(tried(&machine), none());
    assert_eq!(machine.tried(&mut Done::default()), none(), "no rdma_cm");
}

#[test]
fn a_refused_bond_option_is_tried_again_with_another_slave() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} bond=b:ib0,ib1:miimon=50"));
    machine
        .plan
        .expectation
        .links
        .iter_mut()
        .for_each(|link| link.refused = None);
    let bond = |slaves: &[&str]| Netdev {
        ifname: "b".to_owned(),
        ifindex: Some(9),
        bond: Some(BondFacts {
            slaves: slaves.iter().map(ToString::to_string).collect(),
            options: vec!["mode=active-backup 1".to_owned()],
            ..BondFacts::default()
        }),
        mtu: Some(2044),
        up: true,
        ..Netdev::default()
    };
    machine.facts.netdevs.push(bond(&["ib0", "ib1"]));
    let mut done = Done::default();
    assert_eq!(machine.tried(&mut done), ["b: set option miimon=50"]);
    assert_eq!(machine.tried(&mut done), none());
    *machine.netdev("b") = bond(&["ib0"]);
    assert_eq!(
        machine.tried(&mut done),
        ["b: set option miimon=50", "ib1: set down"]
    );
    assert_eq!(machine.tried(&mut done), ["ib1: set down"]);
}

/// The bond `b` with the interface ib1.
fn bond_of_ib1() -> Netdev {
    Netdev {
        ifname: "b".to_owned(),
        ifindex: Some(9),
        bond: Some(BondFacts {
            slaves: vec!["ib1".to_owned()],
            options: vec!["mode=active-backup 1".to_owned(), "miimon=100".to_owned()],
            ..BondFacts::default()
        }),
        up: true,
        ..Netdev::default()
    }
}

#[test]
fn an_interface_without_a_file_for_its_mode_joins_its_bond() {
    let cmdline = format!("{IB} bond=b:ib0,ib1 rd.ib.mode=ib0:datagram");
    let mut machine = Machine::new("connectx6-hdr", &cmdline);
    let links = machine.plan.expectation.links.iter_mut();
    links.for_each(|link| link.refused = None);
    machine.facts.netdevs.push(bond_of_ib1());
    let ib0 = machine.netdev("ib0");
    ib0.address = "00:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c"
        .parse()
        .ok();
    ib0.ipoib.as_mut().unwrap().mode = None;
    ib0.up = false;
    assert_eq!(machine.tried(&mut Done::default()), ["ib0: add to b"]);
}

/// A lease of 10.0.0.5 with more values.
fn lease(more: &str) -> Lease {
    let common = r#""address":"10.0.0.5","prefix":24,"server":"10.0.0.1","requested_ns":5,
        "seconds":60,"renew_s":30,"rebind_s":50"#;
    serde_json::from_str(&format!("{{{common}{more}}}")).unwrap()
}

#[test]
fn granted_values_are_set_and_suggested_values_are_tried() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} ip=ib0:dhcp"));
    machine.netdev("ib0").mtu = Some(1500);
    let lease = lease(
        r#","mtu":65520,"routers":["10.0.0.2"],
            "static_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]"#,
    );
    let next = |done: &Done| {
        machine.with(done, |expected, _| {
            for interface in &mut expected.interfaces {
                interface.wish = interface.wish.granted(&lease);
                interface.max_mtu = Some(2044);
            }
        })
    };
    let mut done = Done::default();
    let changes = next(&done);
    let address = "ib0: set address 10.0.0.5/24";
    assert_eq!(
        lines(&changes),
        [
            "ib0: set MTU 2044, suggested by 10.0.0.1",
            // Without a probe: the DHCP client probes the address itself.
            address,
            "ib0: set route 10.7.0.0/16 via 10.0.0.7, suggested by 10.0.0.1",
            "ib0: set default gateway 10.0.0.2, suggested by 10.0.0.1",
        ]
    );
    for change in &changes {
        done.record(change);
        if let What::Set(Setting::AddRoute(route, _)) = &change.what {
            done.record_route(Some(4), route);
        }
    }
    assert_eq!(lines(&next(&done)), [address]);
    done.forget(4);
    assert_eq!(next(&done), changes);
}

#[test]
fn a_static_address_beside_a_lease_is_probed() {
    let cmdline = format!("{IB} ip=10.0.0.9:::24::ib0:none ip=ib0:dhcp");
    let machine = Machine::new("connectx6-hdr", &cmdline);
    let changes = machine.with(&Done::default(), |expected, _| {
        for interface in &mut expected.interfaces {
            interface.wish = interface.wish.granted(&lease(""));
        }
    });
    assert_eq!(
        lines(&changes),
        [
            "ib0: probe address 10.0.0.9 by ARP",
            "ib0: set address 10.0.0.9/24",
            "ib0: set address 10.0.0.5/24",
        ]
    );
}

#[test]
fn an_address_of_another_host_is_removed() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} ip=10.0.0.5:::24::ib0:none"));
    machine.netdev("ib0").addresses = vec!["10.0.0.5/24".parse::<Address>().unwrap().into()];
    let next = |claim: Option<Claim>| {
        let changes = machine.with(&Done::default(), |_, ground| {
            let key = (4, Ipv4Addr::new(10, 0, 0, 5));
            ground.claims.extend(claim.map(|claim| (key, claim)));
        });
        lines(&changes)
    };
    assert_eq!(next(None), none());
    assert_eq!(
        next(Some(Claim::Open)),
        ["ib0: probe address 10.0.0.5 by ARP"]
    );
    assert_eq!(
        next(Some(Claim::Taken("port GUID 1".to_owned()))),
        ["ib0: remove address 10.0.0.5/24: port GUID 1 uses this address"]
    );
}

#[test]
fn only_an_interface_without_its_name_waits_for_udev() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} rd.ib.mode=connected"));
    machine.netdev("ib0").up = false;
    let next = |unnamed: &[u32]| {
        let changes = machine.with(&Done::default(), |_, ground| {
            ground.unnamed.extend(unnamed);
        });
        lines(&changes)
    };
    let connected = "ib1: set mode connected";
    let waits = "ib0: wait until udev has named the interface";
    assert_eq!(next(&[4, 5]), [waits, connected], "ib1 is up");
    let both = ["ib0: set mode connected", "ib0: bring up", connected];
    assert_eq!(next(&[]), both);
}

#[test]
fn an_interface_has_its_lease_when_it_has_its_name_and_no_bond() {
    let address = "80:00:00:02:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";
    let ready = |cmdline: &str, unnamed: &[u32], up: bool| {
        let mut machine = Machine::new("connectx6-hdr", &format!("{IB} {cmdline}"));
        machine.netdev("ib0").up = up;
        let mut ready = Vec::new();
        machine.with(&Done::default(), |expected, ground| {
            ground.unnamed.extend(unnamed);
            let interfaces = expected.interfaces.iter();
            let found = interfaces.filter_map(|interface| interface.ready(ground));
            ready = found.map(|(_, index)| index).collect();
        });
        ready
    };
    assert_eq!(ready("ip=ib0:dhcp", &[], false), [4]);
    assert_eq!(ready("ip=ib0:dhcp", &[4], false), [0_u32; 0]);
    assert_eq!(ready("ip=ib0:dhcp", &[4], true), [4]);
    let renamed = format!("ip=x:dhcp ifname=x:{address}");
    assert_eq!(ready(&renamed, &[], true), [0_u32; 0]);
    assert_eq!(ready("bond=b:ib0,ib1 ip=b:dhcp", &[], true), [0_u32; 0]);
}

#[test]
fn a_link_by_a_module_that_is_not_loaded_is_not_added() {
    let machine = Machine::new(
        "soft-roce",
        "rd.ib.link=siw0:siw:eth0 rd.ib.link=x:rxe:eth1",
    );
    assert_eq!(machine.tried(&mut Done::default()), none());
}

#[test]
fn a_mode_is_set_only_if_it_differs() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} rd.ib.mode=ib0:auto"));
    let next = |machine: &Machine| lines(&machine.with(&Done::default(), |_, _| {}));
    assert_eq!(next(&machine), ["ib0: set mode connected"]);
    machine.netdev("ib0").ipoib.as_mut().unwrap().mode = Some(Mode::Connected);
    assert_eq!(next(&machine), none());
}

#[test]
fn two_rails_have_a_default_route_each() {
    let ips = "ip=10.0.0.2::10.0.0.1:24::ib0:none ip=10.1.0.2::10.1.0.1:24::ib1:none";
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} {ips}"));
    for name in ["ib0", "ib1"] {
        machine.netdev(name).gateways.clear();
    }
    let routes = |machine: &Machine| -> Vec<(String, Rival)> {
        let changes = machine.with(&Done::default(), |_, _| {});
        let route = |change: &Change| match change.what {
            What::Set(Setting::AddRoute(_, rival)) => Some((change.object.clone(), rival)),
            _ => None,
        };
        changes.iter().filter_map(route).collect()
    };
    let on = |name: &str, rival| (name.to_owned(), rival);
    assert_eq!(
        routes(&machine),
        [on("ib0", Rival::Replaced), on("ib1", Rival::Kept)]
    );
    machine.netdev("ib1").gateways = vec!["10.1.0.1".parse().unwrap()];
    assert_eq!(routes(&machine), [on("ib0", Rival::Outranked)]);
    // What another program set up on Ethernet gives way.
    machine.netdev("ib1").hardware_type = Some(HardwareType::Ethernet);
    machine.netdev("ib1").gateways = vec!["10.9.0.1".parse().unwrap()];
    assert_eq!(routes(&machine).first(), Some(&on("ib0", Rival::Replaced)));
}

#[test]
fn two_requested_routes_of_one_interface_stay_beside_each_other() {
    let ips = "ip=10.0.0.5::10.0.0.1:24::ib0:none ip=10.1.0.5::10.1.0.1:24::ib0:none";
    let routes = "rd.route=10.9.0.0/16:10.0.0.8:ib0 rd.route=10.9.0.0/16:10.0.0.9:ib0";
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} {ips} {routes}"));
    let next = |machine: &Machine| -> Vec<(String, Rival)> {
        let changes = machine.with(&Done::default(), |_, _| {});
        let route = |change: Change| match change.what {
            What::Set(Setting::AddRoute(route, rival)) => Some((route.to_string(), rival)),
            _ => None,
        };
        changes.into_iter().filter_map(route).collect()
    };
    let on = |route: &str, rival| (route.to_owned(), rival);
    let (replaced, kept) = (Rival::Replaced, Rival::Kept);
    machine.netdev("ib0").gateways.clear();
    let all = [
        on("10.9.0.0/16 via 10.0.0.8", replaced),
        on("10.9.0.0/16 via 10.0.0.9", kept),
        on("0.0.0.0/0 via 10.0.0.1", replaced),
        on("0.0.0.0/0 via 10.1.0.1", kept),
    ];
    assert_eq!(next(&machine), all);
    let ib0 = machine.netdev("ib0");
    ib0.gateways = vec!["10.1.0.1".parse().unwrap()];
    ib0.routes = vec![Route {
        network: "10.9.0.0/16".parse().unwrap(),
        gateway: "10.0.0.9".parse().ok(),
    }];
    let missing = [
        on("10.9.0.0/16 via 10.0.0.8", kept),
        on("0.0.0.0/0 via 10.0.0.1", kept),
    ];
    assert_eq!(next(&machine), missing);
    // Nobody requests this gateway.
    machine.netdev("ib0").gateways = vec!["10.0.0.7".parse().unwrap()];
    assert_eq!(next(&machine)[1], on("0.0.0.0/0 via 10.0.0.1", replaced));
    // Twice the same route is one.
    let twice = ips.replace("10.1.0.1", "10.0.0.1");
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} {twice}"));
    machine.netdev("ib0").gateways.clear();
    assert_eq!(next(&machine), [on("0.0.0.0/0 via 10.0.0.1", replaced)]);
}

#[test]
fn the_default_route_of_the_boot_device_comes_first() {
    let next = |cmdline: &str, has: &[(&str, &str)]| -> Vec<(String, Rival)> {
        let mut machine = Machine::new("connectx6-hdr", &format!("{IB} {cmdline}"));
        for name in ["ib0", "ib1"] {
            let gateways = has.iter().filter(|(on, _)| *on == name);
            let gateways = gateways.map(|(_, gateway)| gateway.parse().unwrap());
            machine.netdev(name).gateways = gateways.collect();
        }
        let changes = machine.with(&Done::default(), |_, _| {});
        let route = |change: Change| match change.what {
            What::Set(Setting::AddRoute(route, rival)) => {
                Some((route.gateway.unwrap().to_string(), rival))
            }
            _ => None,
        };
        changes.into_iter().filter_map(route).collect()
    };
    let on = |gateway: &str, rival| (gateway.to_owned(), rival);
    let (a, b) = ("10.0.0.1", "10.1.0.1");
    let ips = "ip=10.0.0.2::10.0.0.1:24::ib0:none ip=10.1.0.2::10.1.0.1:24::ib1:none";
    let booted = format!("{ips} bootdev=ib1");
    let both = [on(a, Rival::Replaced), on(b, Rival::Outranked)];
    assert_eq!(next(&booted, &[]), both);
    assert_eq!(next(&booted, &[("ib0", a)]), both[1..]);
    assert_eq!(next(&booted, &[("ib1", b)]), [on(a, Rival::Kept)]);
    // Without bootdev= the first ip= names the boot device.
    let first = [on(a, Rival::Replaced), on(b, Rival::Kept)];
    assert_eq!(next(ips, &[]), first);
    assert_eq!(next(ips, &[("ib1", b)]), [on(a, Rival::Outranked)]);
    // Its own second gateway comes after the first one.
    let second = format!("{booted} rd.route=0.0.0.0/0:10.1.0.9:ib1");
    let three = [
        both[0].clone(),
        both[1].clone(),
        on("10.1.0.9", Rival::Kept),
    ];
    assert_eq!(next(&second, &[]), three);
    assert_eq!(next(&second, &[("ib0", a), ("ib1", b)]), three[2..]);
    let ips = "ip=[fd00::2]::[fd00::1]:64::ib0:none ip=[fd01::2]::[fd01::1]:64::ib1:none";
    let booted = format!("{ips} bootdev=ib1");
    let (a, b) = ("fd00::1", "fd01::1");
    assert_eq!(
        next(&booted, &[]),
        [on(a, Rival::Replaced), on(b, Rival::Outranked)]
    );
    assert_eq!(
        next(ips, &[]),
        [on(a, Rival::Outranked), on(b, Rival::Kept)]
    );
    let alone = "ip=[fd00::2]::[fd00::1]:64::ib0:none";
    assert_eq!(next(alone, &[]), [on(a, Rival::Outranked)]);
}

#[test]
fn an_ethernet_interface_that_was_up_is_left_to_who_sets_it_down() {
    for cmdline in ["rd.ib.require=rxe0", "rd.ib.link=rxe0:rxe:eth0"] {
        let mut machine = Machine::new("soft-roce", cmdline);
        let eth0 = machine.netdev("eth0");
        eth0.up = false;
        let index = eth0.ifindex.unwrap();
        let mut done = Done::default();
        // An attempt that failed is made again.
        for _ in 0..2 {
            assert_eq!(machine.tried(&mut done), ["eth0: bring up"], "{cmdline}");
        }
        done.record_up(index);
        assert_eq!(machine.tried(&mut done), none(), "{cmdline}");
        // A reset gives the interface another index.
        machine.netdev("eth0").ifindex = Some(index + 1);
        assert_eq!(machine.tried(&mut done), ["eth0: bring up"], "{cmdline}");
    }
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} ip=ib0:dhcp"));
    let ib0 = machine.netdev("ib0");
    ib0.up = false;
    let mut done = Done::default();
    done.record_up(ib0.ifindex.unwrap());
    assert_eq!(machine.tried(&mut done), ["ib0: bring up"]);
}

#[test]
fn a_route_waits_for_the_lease_or_the_router_that_reaches_its_next_hop() {
    let routes = |cmdline: &str, found: &[&str], leased: Option<&str>| -> Vec<String> {
        let mut machine = Machine::new("connectx6-hdr", &format!("{IB} {cmdline}"));
        let found = found.iter().map(|text| text.parse::<Address>().unwrap());
        machine.netdev("ib0").addresses = found.map(Into::into).collect();
        let changes = machine.with(&Done::default(), |expected, _| {
            let wish = &mut expected.interfaces[0].wish;
            wish.leased = leased.map(|leased| leased.parse().unwrap());
        });
        let is_route = |change: &&Change| matches!(change.what, What::Set(Setting::AddRoute(..)));
        let routes: Vec<Change> = changes.iter().filter(is_route).cloned().collect();
        lines(&routes)
    };
    let (four, six) = (
        "rd.route=10.9.0.0/16:10.0.0.9:ib0",
        "rd.route=[fd01::/64]:[fd00::9]:ib0",
    );
    let (set4, set6) = (
        "ib0: set route 10.9.0.0/16 via 10.0.0.9",
        "ib0: set route fd01::/64 via fd00::9",
    );
    let dhcp = format!("ip=ib0:dhcp {four}");
    assert_eq!(routes(&dhcp, &[], None), none());
    assert_eq!(routes(&dhcp, &["10.0.0.5/24"], None), [set4]);
    // The lease does not reach the next hop: the kernel says so.
    assert_eq!(routes(&dhcp, &["10.7.0.5/24"], Some("10.7.0.5")), [set4]);
    let beside = format!("ip=10.0.0.5:::24::ib0:dhcp {four}");
    assert_eq!(routes(&beside, &[], None), [set4]);
    let default = "ip=ib0:dhcp rd.route=0.0.0.0/0:10.0.0.9:ib0";
    assert_eq!(routes(default, &["fe80::5/64"], None), none());
    for method in ["auto6", "dhcp6", "either6"] {
        let routed = format!("ip=ib0:{method} {six}");
        assert_eq!(routes(&routed, &["fe80::5/64"], None), none(), "{method}");
        let direct = format!("ip=ib0:{method} rd.route=[fd00::/64]::ib0 {six}");
        let both = ["ib0: set route fd00::/64", set6];
        assert_eq!(routes(&direct, &[], None), both, "{method}");
        assert_eq!(routes(&routed, &["fd00::7/64"], None), [set6], "{method}");
    }
    let local = "ip=ib0:dhcp6 rd.route=[fd01::/64]:[fe80::9]:ib0";
    let set_local = "ib0: set route fd01::/64 via fe80::9";
    assert_eq!(routes(local, &[], None), [set_local]);
    // Nothing is awaited.
    let fixed = format!("ip=10.7.0.5:::24::ib0:none {four}");
    assert_eq!(routes(&fixed, &[], None), [set4]);
}

#[test]
fn the_route_of_an_advertisement_is_not_the_requested_one() {
    let cmdline = format!("{IB} ip=[fd00::5]::[fe80::1]:64::ib0:none");
    let mut machine = Machine::new("connectx6-hdr", &cmdline);
    let gateway = "fe80::1".parse().unwrap();
    let ib0 = machine.netdev("ib0");
    ib0.addresses = vec!["fd00::5/64".parse::<Address>().unwrap().into()];
    (ib0.gateways, ib0.advertised) = (vec![gateway], vec![gateway]);
    let next = |machine: &Machine| lines(&machine.with(&Done::default(), |_, _| {}));
    let replaced = [
        "ib0: remove default gateway fe80::1",
        "ib0: set default gateway fe80::1",
    ];
    let routes = |machine: &Machine| -> Vec<String> {
        let all = next(machine).into_iter();
        all.filter(|line| line.contains("gateway")).collect()
    };
    assert_eq!(routes(&machine), replaced);
    // The next advertisement adds its route beside the requested one.
    machine.netdev("ib0").gateways.push(gateway);
    assert_eq!(routes(&machine), none());
}

#[test]
fn an_ipv6_address_is_not_set_a_second_time_with_another_prefix() {
    let cmdline = format!("{IB} ip=[fd00::5]:::64::ib0:none ip=[fd00::5]:::128::ib0:none");
    let mut machine = Machine::new("connectx6-hdr", &cmdline);
    let shown: Address = "fd00::5/64".parse().unwrap();
    machine.netdev("ib0").addresses = vec![shown.into()];
    let changes = machine.with(&Done::default(), |_, _| {});
    let refused = changes
        .iter()
        .filter(|change| matches!(change.what, What::Impossible(_)));
    assert_eq!(
        lines(&refused.cloned().collect::<Vec<_>>()),
        [
            "ib0: address fd00::5/128 cannot be set: the interface has fd00::5/64; an interface has an \
             IPv6 address once: remove one of the two"
        ]
    );
    let is_set = |change: &Change| matches!(change.what, What::Set(Setting::AddAddress(..)));
    assert!(!changes.iter().any(is_set));
}

#[test]
fn the_address_of_a_lease_without_a_preferred_lifetime_is_set_as_deprecated() {
    let machine = Machine::new("connectx6-hdr", &format!("{IB} ip=ib0:dhcp6"));
    let set = |preferred_s: u32| -> Vec<String> {
        let lease = format!(
            r#"{{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01","requested_ns":0,
                "seconds":60,"preferred_s":{preferred_s},"renew_s":30,"rebind_s":50}}"#
        );
        let lease = serde_json::from_str(&lease).unwrap();
        let changes = machine.with(&Done::default(), |expected, _| {
            let wish = &mut expected.interfaces[0].wish;
            *wish = wish.granted6(&lease, None);
        });
        let all = lines(&changes).into_iter();
        all.filter(|line| line.contains("fd00::5")).collect()
    };
    assert_eq!(set(60), ["ib0: set address fd00::5/128"]);
    assert_eq!(set(0), ["ib0: set address fd00::5/128, deprecated"]);
}

#[test]
fn a_suggested_route_that_is_there_is_not_set_again() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} ip=ib0:dhcp"));
    let ib0 = machine.netdev("ib0");
    ib0.gateways = vec!["10.0.0.2".parse().unwrap()];
    ib0.routes = vec![Route {
        network: "10.7.0.0/16".parse().unwrap(),
        gateway: "10.0.0.7".parse().ok(),
    }];
    let lease = lease(
        r#","routers":["10.0.0.2"],
            "static_routes":[{"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]"#,
    );
    let changes = machine.with(&Done::default(), |expected, _| {
        for interface in &mut expected.interfaces {
            interface.wish = interface.wish.granted(&lease);
        }
    });
    assert_eq!(lines(&changes), ["ib0: set address 10.0.0.5/24"]);
}

#[test]
fn of_the_routes_of_the_boot_device_only_the_default_route_comes_first() {
    let next = |cmdline: &str| -> Vec<(String, Rival)> {
        let machine = Machine::new("connectx6-hdr", &format!("{IB} {cmdline} bootdev=ib1"));
        let changes = machine.with(&Done::default(), |_, _| {});
        let route = |change: Change| match change.what {
            What::Set(Setting::AddRoute(_, rival)) => Some((change.object, rival)),
            _ => None,
        };
        changes.into_iter().filter_map(route).collect()
    };
    let both = [
        ("ib0".to_owned(), Rival::Replaced),
        ("ib1".to_owned(), Rival::Kept),
    ];
    let ips = "ip=10.0.0.2:::24::ib0:none ip=10.1.0.2:::24::ib1:none";
    let routes = "rd.route=10.9.0.0/16:10.0.0.9:ib0 rd.route=10.9.0.0/16:10.1.0.9:ib1";
    assert_eq!(next(&format!("{ips} {routes}")), both);
    let ips = "ip=[fd00::2]:::64::ib0:none ip=[fd01::2]:::64::ib1:none";
    let routes = "rd.route=[fd09::/64]:[fd00::9]:ib0 rd.route=[fd09::/64]:[fd01::9]:ib1";
    assert_eq!(next(&format!("{ips} {routes}")), both);
}

#[test]
fn a_bond_is_created_when_its_driver_is_loaded() {
    let mut machine = Machine::new("connectx6-hdr", &format!("{IB} bond=b:ib0,ib1"));
    let links = machine.plan.expectation.links.iter_mut();
    links.for_each(|link| link.refused = None);
    assert_eq!(machine.tried(&mut Done::default()), none());
    let changes = machine.with(&Done::default(), |_, ground| {
        ground.drivers.insert("bonding".to_owned());
    });
    assert_eq!(lines(&changes), ["b: create the bond, mode active-backup"]);
}

#[test]
fn an_interface_whose_address_belongs_to_its_bond_stays_as_it_is() {
    for mode in ["", "rd.ib.mode=ib0:connected"] {
        let cmdline = format!("{IB} bond=b:ib0,ib1 ip=10.0.0.5:::24::ib0:none {mode}");
        let mut machine = Machine::new("connectx6-hdr", &cmdline);
        let links = machine.plan.expectation.links.iter_mut();
        let bonds = links.filter(|link| link.bond.is_some());
        bonds.for_each(|link| link.refused = None);
        machine.facts.netdevs.push(bond_of_ib1());
        assert_eq!(machine.tried(&mut Done::default()), none(), "{mode}");
    }
}

#[test]
fn a_software_link_is_added_to_an_interface_that_has_its_name() {
    let mut machine = Machine::new("soft-roce", "rd.ib.link=x:rxe:eth0");
    machine.facts.devices.clear();
    let eth0 = machine.netdev("eth0");
    eth0.up = false;
    let index = eth0.ifindex.unwrap();
    let next = |unnamed: &[u32]| {
        let changes = machine.with(&Done::default(), |_, ground| {
            ground.drivers.insert("rdma_rxe".to_owned());
            ground.unnamed.extend(unnamed);
        });
        lines(&changes)
    };
    let waits = "eth0: wait until udev has named the interface";
    assert_eq!(next(&[index]), [waits]);
    assert_eq!(next(&[]), ["eth0: bring up", "x: add rxe link on eth0"]);
}

#[test]
fn a_name_is_free_when_udev_has_named_the_interface_that_has_it() {
    let address = "80:00:00:02:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";
    let cmdline = format!("{IB} ifname=ib1:{address} ip=10.0.0.5:::24::ib1:none");
    let mut machine = Machine::new("connectx6-hdr", &cmdline);
    machine.netdev("ib1").up = false;
    let next = |unnamed: &[u32]| {
        let changes = machine.with(&Done::default(), |_, ground| {
            ground.unnamed.extend(unnamed);
        });
        lines(&changes)
    };
    assert_eq!(next(&[5]), ["ib1: wait until udev has named the interface"]);
    assert_eq!(next(&[]), ["ib1: rename to ib-aside5"]);
}

#[test]
fn nothing_follows_a_carrier_that_is_not_known() {
    let cmdline = format!("{IB} rd.ib.mtu=ib0:4092 ip=10.0.0.5:::24::ib0:none");
    let mut machine = Machine::new("connectx6-hdr", &cmdline);
    machine.netdev("ib0").carrier = None;
    assert_eq!(machine.tried(&mut Done::default()), none());
}
