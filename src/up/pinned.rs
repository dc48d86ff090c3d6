// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the expectation of `check` after the boot. udev may give devices and interfaces other names
//! in the real root: what the command line names is pinned to the ports that it meant.

use crate::facts::role::Role;
use crate::facts::select::{Ports, pins};
use crate::facts::{Facts, PortRef};
use crate::verify::checks::Id;
use crate::verify::report::{LinkReport, Report};
use crate::wish::expectation::{Expectation, LinkWish, PortLayer, PortPin, Rate, Require, Target};
use crate::wish::ipoib::IpoibWish;
use crate::wish::selector::{Means, Selector};

/// The expectation as `check` will use it: every link whose port was found is pinned to that port,
/// verified or not.
pub fn pinned(
    expectation: &Expectation,
    facts: &Facts,
    report: &Report,
    boot_id: Option<String>,
) -> Expectation {
    let (rates, layers) = (expectation.rates.iter(), expectation.link_layers.iter());
    let mut pinned = Expectation {
        boot_id,
        rates: rates.flat_map(|rate| pinned_rate(rate, facts)).collect(),
        cards: bare_cards(report),
        link_layers: layers
            .flat_map(|layer| pinned_layer(layer, facts))
            .collect(),
        ..expectation.clone()
    };
    if let Some(wish) = &mut pinned.any_port {
        pin_exceptions(wish, facts);
        wish.switch_ports.extend(switch_pins(facts));
    }
    let ports = Ports::new(facts);
    let found = |link: &&LinkReport| link.name.is_some() && link.identity.is_some();
    let pin = |wish: &LinkWish, link: &LinkReport| pinned_link(wish, link, &ports, facts);
    let mut links = Vec::new();
    for wish in &expectation.links {
        let reports = report.links.iter();
        let reports: Vec<&LinkReport> = reports.filter(|r| r.target == wish.target).collect();
        if reports.is_empty() || !reports.iter().all(found) {
            links.push(wish.clone());
        } else {
            links.extend(reports.into_iter().map(|link| pin(wish, link)));
        }
    }
    if let Some(wish) = &expectation.any_port {
        // "Every port" also means a port that failed: the port may be gone after boot.
        let is_all = expectation.require == Require::All;
        let is_of_any = |link: &&LinkReport| link.target == wish.target;
        let found = report.links.iter().filter(found).filter(is_of_any);
        let found = found.filter(|link| is_all || link.is_good());
        links.extend(found.map(|link| pin(wish, link)));
        // While too few are verified, any other port may still make up for it after boot, and a
        // port that nothing identifies is found again only as any port.
        let is_lost =
            |link: &LinkReport| link.is_good() && link.name.is_some() && link.identity.is_none();
        let is_reserve = report.satisfied && !report.links.iter().any(is_lost);
        if let Some(wish) = &mut pinned.any_port {
            wish.reserve = !is_all && is_reserve;
        }
    }
    for wish in &mut links {
        add_unproven(wish, facts, report);
    }
    pinned.links = links;
    pinned
}

/// Adds the addresses that another host may have.
fn add_unproven(wish: &mut LinkWish, facts: &Facts, report: &Report) {
    let Some(ipoib) = &mut wish.ipoib else {
        return;
    };
    let links = report.links.iter();
    let interfaces = links
        .filter(|link| link.target == wish.target)
        .filter_map(|link| facts.netdev(link.interface.as_deref()?));
    let unproven = interfaces.flat_map(|netdev| netdev.unproven.iter());
    ipoib.unproven.extend(unproven);
}

/// The PCI addresses of the HCAs that have no RDMA device and must have one.
fn bare_cards(report: &Report) -> Vec<String> {
    let links = report.links.iter();
    let is_card = |link: &&LinkReport| link.checks.iter().any(|one| one.check == Id::HcaDevice);
    let cards = links.filter(is_card);
    cards.filter_map(|link| link.bus_address.clone()).collect()
}

/// `wish` of the port of `link`.
fn pinned_link(wish: &LinkWish, link: &LinkReport, ports: &Ports<'_>, facts: &Facts) -> LinkWish {
    let interface = link.interface.as_deref();
    let ifindex = interface.and_then(|name| facts.netdev(name)?.ifindex);
    let with_index = |wish: IpoibWish| IpoibWish {
        ifindex: wish.pkey.and(ifindex),
        ..wish
    };
    let name = link.name.as_ref().map(|name| name.replace('/', ":"));
    let identity = link.identity.as_ref();
    let port = facts.ports().find(|port| Some(port.name()) == link.name);
    let card = port.and_then(|port| port.device.card());
    LinkWish {
        target: match (&wish.ipoib, &name) {
            (None, Some(port)) => Target::from(port.clone()),
            _ => wish.target.clone(),
        },
        // None if the kernel's name of the device is no selector: the link is pinned all the same.
        port: name
            .filter(|_| wish.ipoib.is_some())
            .and_then(|port| Selector::parse(&port)),
        uncounted: link.uncounted,
        identity: identity.cloned(),
        of_any: wish.target == Target::Any,
        of_bond: card.is_some_and(|card| facts.roce_bond(card).is_some()),
        bus_address: card.map(str::to_owned),
        device_index: link.device_index,
        shared: identity.is_some_and(|identity| ports.is_shared(identity)),
        ipoib: wish.ipoib.clone().map(with_index),
        netdev_index: wish.netdev.as_ref().and(link.netdev_index),
        // A link that was not verified may have another link layer and rate than expected.
        link_layer: wish
            .link_layer
            .or(link.link_layer.filter(|_| link.is_good())),
        megabits: match link.is_good() {
            true => link.megabits,
            false => wish.megabits,
        },
        ..wish.clone()
    }
}

/// A minimum rate for each port that its selector means now.
fn pinned_rate(rate: &Rate, facts: &Facts) -> Vec<Rate> {
    let selector = rate.selector.as_ref();
    let pins = selector.and_then(|selector| pins(selector, facts));
    let of = |pin: Option<PortPin>| Rate {
        port: pin,
        ..rate.clone()
    };
    pins.map_or_else(
        || vec![of(None)],
        |pins| pins.into_iter().map(|pin| of(Some(pin))).collect(),
    )
}

/// A link layer for each port that its selector means now.
fn pinned_layer(layer: &PortLayer, facts: &Facts) -> Vec<PortLayer> {
    let of = |pin: PortPin| PortLayer {
        port: Some(pin),
        ..layer.clone()
    };
    let pins = pins(&layer.selector, facts);
    pins.map_or_else(
        || vec![layer.clone()],
        |pins| pins.into_iter().map(of).collect(),
    )
}

/// Replaces the names of `wish.except` by the ports that they mean now. A GUID and a PCI address
/// mean the same after the boot.
fn pin_exceptions(wish: &mut LinkWish, facts: &Facts) {
    for selector in std::mem::take(&mut wish.except) {
        let is_name = matches!(selector.means(), Means::Name(_) | Means::Port { .. });
        match pins(&selector, facts).filter(|_| is_name) {
            Some(pins) => wish.except_ports.extend(pins),
            None => wish.except.push(selector),
        }
    }
}

/// The ports of NVSwitches. Only root can read the file that shows what they are, and in the real
/// root `check` may run as another user.
fn switch_pins(facts: &Facts) -> Vec<PortPin> {
    let is_of_switch = |found: &PortRef<'_>| found.port.role == Role::Nvlink;
    let pin = |found: PortRef<'_>| {
        Some(PortPin {
            name: found.name(),
            identity: found.identity()?,
            device_index: found.device.ifindex,
            shared: false,
        })
    };
    facts
        .all_ports()
        .filter(is_of_switch)
        .filter_map(pin)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::facts::{Netdev, Unread};
    use crate::inet::Address;
    use crate::plan::tests::planned;
    use crate::rdma::types::{Guid, LinkLayer, PortState};
    use crate::system::root::Root;
    use crate::verify::finding::Status;
    use crate::verify::verify;
    use crate::wish::expectation::Depth;

    fn expectation(cmdline: &str) -> Expectation {
        planned(cmdline).expectation
    }

    #[test]
    fn names_of_the_command_line_mean_the_same_ports_after_udev_has_renamed_them() {
        let mut facts = machine("connectx6-hdr");
        facts.devices[1].ports[0].state = Some(PortState::Down);
        let cmdline = "rd.ib.require=all,-mlx5_1:1 rd.ib.rate=mlx5_0:1=100 rd.ib.rate=mlx5_1=400";
        let expectation = expectation(cmdline);
        let report = verify(&expectation, &facts);
        assert_eq!((report.satisfied, &report.complaints[..]), (true, &[][..]));
        let json = serde_json::to_string(&pinned(&expectation, &facts, &report, None)).unwrap();
        let after: Expectation = serde_json::from_str(&json).unwrap();
        for (device, name) in facts.devices.iter_mut().zip(["ibp129s0f0", "ibp129s0f1"]) {
            device.ifname = name.to_owned();
        }
        let report = verify(&after, &facts);
        assert_eq!((report.satisfied, &report.complaints[..]), (true, &[][..]));
        assert_eq!(report.links.len(), 1);
        assert!(
            report.require.ends_with("without mlx5_1/1"),
            "{}",
            report.require
        );
        // A name that means another device now: still the port of the handover.
        facts.devices[0].ifname = "mlx5_1".to_owned();
        assert!(verify(&after, &facts).satisfied);
        // A dead card makes no argument wrong.
        facts.devices.remove(0);
        let report = verify(&after, &facts);
        assert_eq!((report.satisfied, &report.complaints[..]), (false, &[][..]));
    }

    #[test]
    fn a_port_that_was_not_verified_is_found_under_its_new_name() {
        let mut facts = machine("connectx6-hdr");
        facts.devices[1].ports[0].state = Some(PortState::Down);
        let expectation = expectation("rd.ib.require=mlx5_0:1,mlx5_1:1");
        let report = verify(&expectation, &facts);
        assert!(!report.satisfied);
        let after = pinned(&expectation, &facts, &report, None);
        for (device, name) in facts.devices.iter_mut().zip(["ibp129s0f0", "ibp129s0f1"]) {
            device.ifname = name.to_owned();
        }
        let report = verify(&after, &facts);
        let names: Vec<_> = report.links.iter().map(|link| link.name.clone()).collect();
        let port = |name: &str| Some(name.to_owned());
        assert_eq!(names, [port("ibp129s0f0/1"), port("ibp129s0f1/1")]);
        assert!(!report.satisfied);
        facts.devices[1].ports[0].state = Some(PortState::Active);
        assert!(verify(&after, &facts).satisfied);
    }

    #[test]
    fn after_boot_too_two_ports_that_may_share_a_cable_are_not_two() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let root = Root::new(sys.join("connectx6-hdr"));
        for (cmdline, is_known) in [("rd.ib.require=2", false), ("rd.ib.require=any", true)] {
            let mut facts = Facts::gather(&root, None, &[], Depth::Ports);
            let expectation = expectation(cmdline);
            let report = verify(&expectation, &facts);
            let after = pinned(&expectation, &facts, &report, None);
            assert!(verify(&after, &facts).satisfied);
            let path = "/sys/class/infiniband/mlx5_1/sys_image_guid".to_owned();
            facts.unread = vec![Unread {
                path: path.clone(),
                why: "EIO".to_owned(),
                obstacle: None,
            }];
            let report = verify(&after, &facts);
            assert_eq!(report.satisfied, is_known, "{cmdline}");
            assert_eq!(report.status == Status::Unknown, !is_known, "{cmdline}");
            let unknown = report.links.iter().filter(|link| link.name.is_none());
            let found: Vec<_> = unknown.map(|link| link.checks[0].found.clone()).collect();
            let expected = Vec::from_iter((!is_known).then(|| Some(format!("{path}: EIO"))));
            assert_eq!(found, expected, "{cmdline}");
        }
    }

    #[test]
    fn a_port_that_did_not_count_does_not_count_after_boot() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let root = Root::new(sys.join("connectx6-hdr"));
        let mut facts = Facts::gather(&root, None, &[], Depth::All);
        let expectation = expectation("rd.ib.require=any,-mlx5_0:1 rd.ib.mtu=ib0:2044");
        let report = verify(&expectation, &facts);
        assert!(report.satisfied);
        let json = serde_json::to_string(&pinned(&expectation, &facts, &report, None)).unwrap();
        let after: Expectation = serde_json::from_str(&json).unwrap();
        assert!(verify(&after, &facts).satisfied);
        facts.devices[1].ports[0].state = Some(PortState::Down);
        let report = verify(&after, &facts);
        let good: Vec<_> = report.links.iter().map(LinkReport::is_good).collect();
        assert_eq!((report.satisfied, good), (false, vec![true, false]));
    }

    /// A saved machine.
    fn machine(name: &str) -> Facts {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        Facts::gather(&Root::new(sys.join(name)), None, &[], Depth::Ports)
    }

    /// Sets the state of the first port of a device.
    fn set(facts: &mut Facts, device: usize, state: PortState) {
        facts.devices[device].ports[0].state = Some(state);
    }

    /// Whether the requirement is met, and the names and states of the links.
    fn after_boot(expectation: &Expectation, facts: &Facts) -> (bool, String) {
        let report = verify(expectation, facts);
        let line = |link: &LinkReport| format!("{} {}", link.object(), link.status.word());
        let lines: Vec<String> = report.links.iter().map(line).collect();
        (report.satisfied, lines.join(", "))
    }

    #[test]
    fn any_port_may_take_the_place_of_one_that_fails_after_boot() {
        let mut facts = machine("connectx6-hdr");
        set(&mut facts, 1, PortState::Down);
        let expectation = expectation("rd.ib.require=any");
        let after = pinned(&expectation, &facts, &verify(&expectation, &facts), None);
        let ok = (true, "mlx5_0/1 ok".to_owned());
        assert_eq!(after_boot(&after, &facts), ok);
        set(&mut facts, 1, PortState::Active);
        assert_eq!(after_boot(&after, &facts), ok);
        set(&mut facts, 0, PortState::Down);
        let other = "mlx5_0/1 CRITICAL, mlx5_1/1 ok".to_owned();
        assert_eq!(after_boot(&after, &facts), (true, other));
        set(&mut facts, 1, PortState::Down);
        let none = "mlx5_0/1 CRITICAL".to_owned();
        assert_eq!(after_boot(&after, &facts), (false, none));
    }

    #[test]
    fn every_port_also_means_one_that_failed_at_the_handover() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let facts_of =
            |machine: &str| Facts::gather(&Root::new(sys.join(machine)), None, &[], Depth::Ports);
        let expectation = expectation("rd.ib.require=all");
        let handed_over = |facts: &Facts| {
            let report = verify(&expectation, facts);
            assert!(!report.satisfied);
            pinned(&expectation, facts, &report, None)
        };
        let mut facts = facts_of("connectx6-hdr");
        facts.devices[1].ports[0].state = Some(PortState::Init);
        let after = handed_over(&facts);
        let failed = "mlx5_0/1 ok, mlx5_1/1 CRITICAL".to_owned();
        assert_eq!(after_boot(&after, &facts), (false, failed));
        facts.devices.truncate(1);
        let gone = "mlx5_0/1 ok, mlx5_1:1 CRITICAL".to_owned();
        assert_eq!(after_boot(&after, &facts), (false, gone));
        // An HCA without an RDMA device.
        let mut facts = facts_of("hca-not-bound");
        let after = handed_over(&facts);
        let (is_met, bare) = after_boot(&after, &facts);
        let cards = facts.bare_functions().len();
        assert_eq!((is_met, bare.matches("CRITICAL").count()), (false, cards));
        facts.functions.retain(|function| !function.is_missing());
        assert_eq!(after_boot(&after, &facts), (false, bare));
    }

    #[test]
    fn a_device_that_is_moved_to_another_network_namespace_is_not_verified_and_fails_nothing() {
        let outcome = |cmdline: &str, moved: &[usize], down: &[usize]| {
            let mut facts = machine("connectx6-hdr");
            let expectation = expectation(cmdline);
            let report = verify(&expectation, &facts);
            let json = serde_json::to_string(&pinned(&expectation, &facts, &report, None)).unwrap();
            let after: Expectation = serde_json::from_str(&json).unwrap();
            for index in down {
                set(&mut facts, *index, PortState::Down);
            }
            for index in moved.iter().rev() {
                facts.devices.remove(*index);
                facts.functions[*index].devices.clear();
                facts.functions[*index].expected = false;
                facts.functions[*index].in_other_netns = true;
            }
            let report = verify(&after, &facts);
            (report.satisfied, report.status, report.verified())
        };
        let (warning, unknown, critical) = (Status::Warning, Status::Unknown, Status::Critical);
        for (cmdline, moved, down, expected) in [
            ("rd.ib.require=all", &[1][..], &[][..], (true, warning, 1)),
            ("rd.ib.require=all", &[1], &[0], (false, critical, 0)),
            ("rd.ib.require=all", &[0, 1], &[], (false, unknown, 0)),
            ("rd.ib.require=any", &[1], &[], (true, warning, 1)),
            ("rd.ib.require=any", &[0, 1], &[], (false, unknown, 0)),
            ("rd.ib.require=2", &[1], &[], (false, unknown, 1)),
            ("rd.ib.require=2", &[1], &[0], (false, critical, 0)),
            (
                "rd.ib.require=mlx5_0:1,mlx5_1:1",
                &[1],
                &[],
                (false, critical, 1),
            ),
            // The first argument, which the report names for any port too.
            (
                "ip=10.0.0.5:::24::ib1:none rd.ib.require=all",
                &[1],
                &[],
                (false, critical, 1),
            ),
        ] {
            let found = outcome(cmdline, moved, down);
            assert_eq!(found, expected, "{cmdline} {moved:?} {down:?}");
        }
    }

    #[test]
    fn a_port_of_an_nvswitch_is_excluded_for_those_who_cannot_read_what_it_is() {
        let mut facts = machine("nvswitch");
        let switches = facts.all_ports().filter(|p| p.port.role == Role::Nvlink);
        let names: Vec<String> = switches.map(|port| port.name()).collect();
        assert!(!names.is_empty());
        let expectation = expectation("rd.ib.require=all");
        let report = verify(&expectation, &facts);
        let after = pinned(&expectation, &facts, &report, None);
        let ports = facts
            .devices
            .iter_mut()
            .flat_map(|device| &mut device.ports);
        for port in ports.filter(|port| port.role == Role::Nvlink) {
            port.role = Role::Link;
        }
        let after = verify(&after, &facts);
        for link in after.links.iter().filter_map(|link| link.name.as_ref()) {
            assert!(!names.contains(link), "{link}");
        }
    }

    #[test]
    fn an_address_that_another_host_may_have_is_unknown_after_boot_too() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let mut facts = Facts::gather(&Root::new(sys.join("connectx6-hdr")), None, &[], Depth::All);
        let expectation = expectation("ip=10.0.0.5:::24::ib0:none");
        let netdevs = facts.netdevs.iter_mut();
        for netdev in netdevs.filter(|netdev| netdev.ifname == "ib0") {
            netdev.addresses = vec!["10.0.0.5/24".parse::<Address>().unwrap().into()];
            netdev.unproven = vec![Ipv4Addr::new(10, 0, 0, 5)];
        }
        let report = verify(&expectation, &facts);
        let json = serde_json::to_string(&pinned(&expectation, &facts, &report, None)).unwrap();
        for netdev in &mut facts.netdevs {
            netdev.unproven.clear();
        }
        assert!(verify(&expectation, &facts).satisfied);
        let after: Expectation = serde_json::from_str(&json).unwrap();
        let found = after_boot(&after, &facts);
        assert_eq!(found, (false, "ib0 (mlx5_0/1) UNKNOWN".to_owned()));
    }

    #[test]
    fn of_several_children_of_a_partition_the_verified_one_is_checked_under_its_new_name() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let gathered = |tree| Facts::gather(&Root::new(sys.join(tree)), None, &[], Depth::All);
        let mut facts = gathered("connectx6-hdr");
        let mut child = gathered("ipoib-child").netdevs.remove(0);
        assert_eq!(
            (child.ifname.as_str(), child.ifindex),
            ("ib0.8001", Some(6))
        );
        facts.netdevs.push(Netdev {
            ifname: "a".to_owned(),
            ifindex: Some(7),
            ..child.clone()
        });
        facts.netdevs.push(child.clone());
        let expectation = expectation("ib.pkey=ib0.8001");
        let report = verify(&expectation, &facts);
        let json = serde_json::to_string(&pinned(&expectation, &facts, &report, None)).unwrap();
        assert!(json.contains(r#""pkey":32769,"ifindex":6,"#), "{json}");
        let after: Expectation = serde_json::from_str(&json).unwrap();
        child.ifname = "b".to_owned();
        child.up = false;
        facts.netdevs.pop();
        facts.netdevs.push(child);
        let found = after_boot(&after, &facts);
        assert_eq!(found, (false, "b (mlx5_0/1) CRITICAL".to_owned()));
    }

    #[test]
    fn what_is_verified_without_a_node_guid_is_verified_after_boot() {
        let mut facts = machine("connectx6-hdr");
        facts.devices.truncate(1);
        let guid = facts.devices[0].ports[0].port_guid;
        for (node_guid, port_guid, bus_address, key) in [
            (
                Some(7),
                guid,
                Some("0000:81:00.0"),
                r#""node_guid":"0x0000000000000007""#,
            ),
            (Some(0), guid, None, r#""port_guid":"0xb8599f0300fc1a2c""#),
            (
                Some(0),
                None,
                Some("0000:81:00.0"),
                r#""bus_address":"0000:81:00.0""#,
            ),
            (None, None, None, r#""target":"any port""#),
        ] {
            let device = &mut facts.devices[0];
            device.ifname = "mlx5_0".to_owned();
            device.node_guid = node_guid.map(Guid);
            device.ports[0].port_guid = port_guid;
            device.bus_address = bus_address.map(str::to_owned);
            let expectation = expectation("rd.ib.require=1");
            let report = verify(&expectation, &facts);
            assert!(report.satisfied, "{key}");
            let json = serde_json::to_string(&pinned(&expectation, &facts, &report, None)).unwrap();
            assert!(json.contains(key), "{json}");
            let after: Expectation = serde_json::from_str(&json).unwrap();
            facts.devices[0].ifname = "ibp129s0f0".to_owned();
            let report = verify(&after, &facts);
            let good: Vec<_> = report.links.iter().map(LinkReport::is_good).collect();
            assert_eq!((report.satisfied, &good[..]), (true, &[true][..]), "{json}");
            // The physical function assigns a GUID later; in place of node GUID 7 it is another HCA.
            facts.devices[0].node_guid = Some(Guid(9));
            let report = verify(&after, &facts);
            let good: Vec<_> = report.links.iter().map(LinkReport::is_good).collect();
            let expected: &[bool] = match node_guid {
                Some(7) => &[false, true],
                _ => &[true],
            };
            assert_eq!((report.satisfied, &good[..]), (true, expected), "{key}");
        }
    }

    #[test]
    fn only_a_verified_link_is_held_to_the_link_layer_and_rate_that_it_had() {
        let mut facts = machine("connectx6-hdr");
        facts.devices[1].ports[0].state = Some(PortState::Down);
        let expectation = expectation("rd.ib.require=mlx5_0:1,mlx5_1:1 rd.ib.rate=200");
        let report = verify(&expectation, &facts);
        let after = pinned(&expectation, &facts, &report, Some("this boot".to_owned()));
        let held: Vec<_> = after
            .links
            .iter()
            .map(|l| (l.link_layer, l.megabits))
            .collect();
        let as_verified = (Some(LinkLayer::InfiniBand), Some(200_000));
        assert_eq!(held, [as_verified, (None, None)]);
        assert_eq!(after.boot_id.as_deref(), Some("this boot"));
    }

    #[test]
    fn a_rate_counts_for_a_port_that_comes_up_after_the_boot_under_another_name() {
        let mut facts = machine("connectx6-hdr");
        set(&mut facts, 1, PortState::Down);
        let expectation = expectation("rd.ib.require=any rd.ib.rate=mlx5_1:1=400");
        let after = pinned(&expectation, &facts, &verify(&expectation, &facts), None);
        for (device, name) in facts.devices.iter_mut().zip(["ibp129s0f0", "ibp129s0f1"]) {
            device.ifname = name.to_owned();
        }
        set(&mut facts, 0, PortState::Down);
        set(&mut facts, 1, PortState::Active);
        let none = "ibp129s0f0/1 CRITICAL".to_owned();
        assert_eq!(after_boot(&after, &facts), (false, none));
    }

    #[test]
    fn a_port_type_counts_for_the_port_under_another_name() {
        let mut facts = machine("connectx3-dual");
        let expectation = expectation("rd.ib.porttype=mlx4_0:1:eth rd.ib.require=any");
        let after = pinned(&expectation, &facts, &verify(&expectation, &facts), None);
        facts.devices[0].ifname = "ibp5s0".to_owned();
        let links = "ibp5s0/1 CRITICAL, ibp5s0/2 CRITICAL".to_owned();
        assert_eq!(after_boot(&after, &facts), (false, links));
    }

    #[test]
    fn each_of_two_soft_links_of_one_guid_is_the_one_on_its_interface() {
        let mut facts = machine("soft-roce");
        let mut second = facts.devices[0].clone();
        second.ifname = "rxe1".to_owned();
        second.ports[0].netdev = Some("eth1".to_owned());
        second.ports[0].netdev_index = Some(12);
        facts.devices[0].ports[0].netdev_index = Some(11);
        facts.devices.push(second);
        for (device, index) in facts.devices.iter_mut().zip(1..) {
            device.ifindex = Some(index);
        }
        let cmdline = "rd.ib.link=rxe0:rxe:eth0 rd.ib.link=rxe1:rxe:eth1";
        let expectation = expectation(cmdline);
        let report = verify(&expectation, &facts);
        let after = pinned(&expectation, &facts, &report, None);
        // udev renames the interfaces.
        for (device, name) in facts.devices.iter_mut().zip(["ens1", "ens2"]) {
            device.ports[0].netdev = Some(name.to_owned());
        }
        let both = "rxe0/1 ok, rxe1/1 ok".to_owned();
        assert_eq!(after_boot(&after, &facts), (true, both));
        facts.devices.remove(1);
        let one = "rxe0/1 ok, rxe1:1 CRITICAL".to_owned();
        assert_eq!(after_boot(&after, &facts), (false, one));
    }

    #[test]
    fn every_port_also_means_one_that_comes_after_the_boot() {
        let mut facts = machine("connectx6-hdr");
        let mut late = facts.devices.remove(1);
        let expectation = expectation("rd.ib.require=all");
        let after = pinned(&expectation, &facts, &verify(&expectation, &facts), None);
        assert!(verify(&after, &facts).satisfied);
        late.ports[0].state = Some(PortState::Init);
        facts.devices.push(late);
        let links = "mlx5_0/1 ok, mlx5_1/1 CRITICAL".to_owned();
        assert_eq!(after_boot(&after, &facts), (false, links));
    }

    #[test]
    fn if_no_port_was_verified_every_port_tells_why_after_the_boot() {
        let mut facts = machine("connectx6-hdr");
        for device in &mut facts.devices {
            device.ports[0].state = Some(PortState::Init);
        }
        let expectation = expectation("rd.ib.require=any");
        let after = pinned(&expectation, &facts, &verify(&expectation, &facts), None);
        let links = "mlx5_0/1 CRITICAL, mlx5_1/1 CRITICAL".to_owned();
        assert_eq!(after_boot(&after, &facts), (false, links));
    }
}
