// SPDX-License-Identifier: MIT OR Apache-2.0
//! rtnetlink in an empty network: addresses, routes, names, carrier, and the kernel's errors.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use ibboot::dhcp::hardware::Hardware;
use ibboot::facts::{AddressState, FoundAddress, Netdev};
use ibboot::hardware::HardwareType;
use ibboot::inet::{Address, Route};
use ibboot::system::decoder;
use ibboot::system::net::Net;
use ibboot::up::claims::Claims;
use kernel_cmdline::HwAddr;
use nix::sched::CloneFlags;

use super::{IBBOOT, alone, index_of, ip, pace};

fn in_empty_network(name: &str, test: impl AsyncFnOnce(Net) + Send + 'static) {
    decoder::use_program(IBBOOT.into());
    alone::run(name, CloneFlags::CLONE_NEWNET, &[], move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let net = Net::open().expect("rtnetlink");
            let mut test = std::pin::pin!(test(net));
            let mut limit = pace::Limit::seconds(20);
            while tokio::time::timeout(limit.left(), &mut test).await.is_err() {
                assert!(!limit.is_over(), "no result within 20 s");
            }
        });
    });
}

/// Two interfaces, near0 and near1, each with an address of both families in a network of its own.
fn two_links() -> [u32; 2] {
    for (name, peer, subnet) in [("near0", "far0", 0), ("near1", "far1", 1)] {
        ip(&format!("link add {name} type veth peer name {peer}"));
        ip(&format!("link set {peer} up"));
        ip(&format!("link set {name} up"));
        ip(&format!("address add 10.{subnet}.0.2/24 dev {name}"));
        ip(&format!("address add fd00:{subnet}::2/64 dev {name} nodad"));
    }
    ["near0", "near1"].map(index_of)
}

#[test]
fn a_second_default_route_is_appended() {
    in_empty_network("two-gateways", async |net: Net| {
        let indexes = two_links();
        for gateways in [["10.0.0.1", "10.1.0.1"], ["fd00:0::1", "fd00:1::1"]] {
            let routes = gateways.map(|gateway| Route::default_through(gateway.parse().unwrap()));
            net.add_route(indexes[0], &routes[0]).await.unwrap();
            // The second call finds the same route.
            for _ in 0..2 {
                net.append_route(indexes[1], &routes[1]).await.unwrap();
            }
        }
        let lines = |family: &str| ip(&format!("{family} -oneline route show default"));
        let (v4, v6) = (lines("-4"), lines("-6"));
        let at = |text: &str, route: &str| text.find(route).unwrap_or_else(|| panic!("{text}"));
        assert!(at(&v4, "via 10.0.0.1 dev near0") < at(&v4, "via 10.1.0.1 dev near1"));
        assert!(at(&v6, "via fd00::1 dev near0") < at(&v6, "via fd00:1::1 dev near1"));
        assert_eq!(
            v4.matches("via").count() + v6.matches("via").count(),
            4,
            "{v4}{v6}"
        );
        let route = Route::default_through("10.1.0.1".parse().unwrap());
        net.delete_route(indexes[1], &route).await.unwrap();
        assert_eq!(lines("-4").matches("via").count(), 1);
    });
}

#[test]
fn the_default_route_of_the_boot_device_is_used() {
    in_empty_network("boot-gateway", async |net: Net| {
        let [other, boot] = two_links();
        let default = |gateway: &str| Route::default_through(gateway.parse().unwrap());
        let used = |to: &str| ip(&format!("route get {to}"));
        for (to, near, far) in [
            ("192.0.2.1", "10.0.0.1", "10.1.0.1"),
            ("2001:db8::1", "fd00:0::1", "fd00:1::1"),
        ] {
            let (near, far) = (default(near), default(far));
            for is_first in [false, true] {
                if is_first {
                    net.prepend_route(boot, &far).await.unwrap();
                    net.append_route(other, &near).await.unwrap();
                } else {
                    net.add_route(other, &near).await.unwrap();
                    net.prepend_route(boot, &far).await.unwrap();
                }
                // The same route again is no second one.
                net.prepend_route(boot, &far).await.unwrap();
                assert!(used(to).contains("dev near1"), "{}", used(to));
                net.delete_route(boot, &far).await.unwrap();
                assert!(used(to).contains("dev near0"), "{}", used(to));
                net.delete_route(other, &near).await.unwrap();
            }
        }
    });
}

#[test]
fn a_default_route_leaves_room_for_that_of_an_advertisement() {
    in_empty_network("advertised gateway", async |net: Net| {
        let [index, _] = two_links();
        let route = Route::default_through("fe80::1".parse().unwrap());
        for is_added in [true, false] {
            if is_added {
                net.add_route(index, &route).await.unwrap();
            } else {
                net.append_route(index, &route).await.unwrap();
            }
            // As the kernel adds one: not beside a route with the same metric.
            ip("-6 route add default via fe80::1 dev near0 proto ra metric 1024");
            let shown = ip("-6 route show default");
            assert_eq!(shown.matches("via fe80::1").count(), 2, "{shown}");
            net.delete_route(index, &route).await.unwrap();
            net.delete_route(index, &route).await.unwrap();
        }
    });
}

#[test]
fn a_route_of_another_program_is_removed() {
    in_empty_network("removed routes", async |net| {
        ip("link add near type veth peer name far");
        ip("addr add 10.9.8.7/24 dev near");
        ip("addr add fd00:9::7/64 dev near nodad");
        ip("link set near up");
        ip("link set far up");
        let index = index_of("near");
        // Without `proto` these have the protocol boot.
        ip("route add 10.10.0.0/16 via 10.9.8.1 dev near");
        ip("-6 route add fd00:10::/64 via fd00:9::1 dev near");
        for (network, gateway) in [("10.10.0.0/16", "10.9.8.1"), ("fd00:10::/64", "fd00:9::1")] {
            let route = Route {
                network: network.parse().unwrap(),
                gateway: gateway.parse().ok(),
            };
            net.delete_route(index, &route).await.unwrap();
            let family = if network.contains(':') { "-6" } else { "-4" };
            assert_eq!(ip(&format!("{family} route show {network}")), "");
        }
        // The kernel's own route of the address.
        let own = Route {
            network: "10.9.8.0/24".parse().unwrap(),
            gateway: None,
        };
        net.delete_route(index, &own).await.unwrap();
        assert!(ip("-4 route show 10.9.8.0/24").contains("proto kernel"));
    });
}

#[test]
fn a_link_is_set_up_addressed_and_renamed_as_ip_shows_it() {
    in_empty_network("rtnetlink", async |net: Net| {
        ip("link add near type veth peer name far");
        ip("link set far up");
        let index = index_of("near");
        net.rename(index, "storage0").await.unwrap();
        net.set_up(index).await.unwrap();
        net.set_up(index).await.unwrap();
        net.set_mtu(index, 1400).await.unwrap();
        let address: IpAddr = "10.9.8.7".parse().unwrap();
        for _ in 0..2 {
            net.add_address(index, address, 24, None).await.unwrap();
            let v6: IpAddr = "fd00:9::7".parse().unwrap();
            net.add_address(index, v6, 64, None).await.unwrap();
            let route = Route::default_through("10.9.8.1".parse().unwrap());
            net.add_route(index, &route).await.unwrap();
            for (network, prefix, gateway) in [
                ("10.20.0.0", 16, Some("10.9.8.2")),
                ("10.30.0.0", 16, None),
                ("fd00:20::", 64, Some("fd00:9::2")),
                ("fd00:30::", 64, None),
            ] {
                let network = Address {
                    address: network.parse().unwrap(),
                    prefix,
                };
                let gateway = gateway.map(|gateway: &str| gateway.parse().unwrap());
                let route = Route { network, gateway };
                net.add_route(index, &route).await.unwrap();
            }
        }
        let other = "10.9.7.7".parse().unwrap();
        let peer = Some("10.9.6.6".parse().unwrap());
        net.add_address(index, other, 32, peer).await.unwrap();
        let json: serde_json::Value = serde_json::from_str(&ip("-j addr show storage0")).unwrap();
        let link = &json[0];
        assert_eq!(link["mtu"], 1400);
        assert!(
            link["flags"]
                .as_array()
                .unwrap()
                .iter()
                .any(|flag| flag == "UP")
        );
        let addresses: Vec<String> = link["addr_info"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|a| a["scope"] == "global")
            .map(|a| format!("{}/{}", a["local"].as_str().unwrap(), a["prefixlen"]))
            .collect();
        assert_eq!(addresses, ["10.9.8.7/24", "10.9.7.7/32", "fd00:9::7/64"]);
        assert_eq!(link["addr_info"][1]["address"], "10.9.6.6");
        let routes = |call: &str| -> Vec<String> {
            let lines = ip(call);
            let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.lines().map(plain).collect()
        };
        assert_eq!(
            routes("-4 route show proto static"),
            [
                "default via 10.9.8.1 dev storage0",
                "10.20.0.0/16 via 10.9.8.2 dev storage0",
                "10.30.0.0/16 dev storage0 scope link",
            ]
        );
        assert_eq!(
            routes("-6 route show proto static"),
            [
                "fd00:20::/64 via fd00:9::2 dev storage0 metric 1024 pref medium",
                "fd00:30::/64 dev storage0 metric 1024 pref medium",
            ]
        );
    });
}

fn usable(text: &str) -> FoundAddress {
    text.parse::<Address>().unwrap().into()
}

fn in_state(netdev: &Netdev, state: AddressState) -> Vec<String> {
    let found = netdev.addresses_in(state);
    found.map(|address| address.to_string()).collect()
}

#[test]
fn an_address_of_another_host_is_found_at_once_or_within_a_second() {
    in_empty_network("address probe", async |net: Net| {
        ip("link add near type veth peer name far");
        ip("link set far address 52:54:00:00:00:02");
        ip("addr add 10.9.8.7/24 dev far");
        ip("link set far up");
        net.set_up(index_of("near")).await.unwrap();
        let near: serde_json::Value = serde_json::from_str(&ip("-j link show near")).unwrap();
        let address = near[0]["address"].as_str().unwrap();
        let hardware = Hardware {
            index: index_of("near"),
            hardware_type: HardwareType::Ethernet,
            address: HwAddr::parse(address).unwrap().as_bytes().to_vec(),
            broadcast: vec![0xff; 6],
        };
        let mut claims = Claims::new(false);
        let near = index_of("near");
        let addresses = ["10.9.8.8/24", "10.9.8.7/24"];
        let mut netdevs = [Netdev {
            ifindex: Some(near),
            addresses: addresses.map(usable).to_vec(),
            ..Netdev::default()
        }];
        for address in ["10.9.8.8", "10.9.8.7"] {
            // The address is set at once; outside a boot it does not count before its probe ends.
            assert!(claims.claim(&hardware, address.parse().unwrap()).unwrap());
        }
        claims.add_to(&mut netdevs);
        assert_eq!(
            in_state(&netdevs[0], AddressState::Tentative),
            ["10.9.8.8/24", "10.9.8.7/24"]
        );
        let began = Instant::now();
        while claims.owner(near, "10.9.8.7".parse().unwrap()).is_none() {
            tokio::time::sleep_until(claims.due().unwrap()).await;
            claims.listen();
        }
        assert!(began.elapsed() < Duration::from_secs(1) * pace::now());
        assert!(
            !claims
                .claim(&hardware, "10.9.8.7".parse().unwrap())
                .unwrap()
        );
        netdevs[0].addresses = addresses.map(usable).to_vec();
        claims.add_to(&mut netdevs);
        let words = ["the host with 52:54:00:00:00:02 uses 10.9.8.7".to_owned()];
        assert_eq!(netdevs[0].taken, words);
        assert_eq!(
            in_state(&netdevs[0], AddressState::Tentative),
            ["10.9.8.8/24"]
        );
        assert_eq!(in_state(&netdevs[0], AddressState::Usable), ["10.9.8.7/24"]);
        // No answer at first, and then another host uses the address.
        let ten = "10.9.8.10".parse().unwrap();
        loop {
            let began = Instant::now();
            assert!(claims.claim(&hardware, ten).unwrap());
            claims.listen();
            assert!(claims.owner(near, ten).is_none());
            ip("addr add 10.9.8.10/24 dev far");
            tokio::time::sleep_until(claims.due().unwrap()).await;
            // No second probe follows on a machine so slow: once more from the start.
            let is_late = began.elapsed() > Duration::from_millis(900);
            claims.listen();
            while !claims.is_settled() {
                tokio::time::sleep_until(claims.due().unwrap()).await;
                claims.listen();
            }
            if !is_late {
                break;
            }
            ip("addr del 10.9.8.10/24 dev far");
            claims.forget(near);
        }
        assert!(claims.owner(near, ten).is_some());
        assert!(claims.owner(near, "10.9.8.8".parse().unwrap()).is_none());
        assert!(
            claims
                .claim(&hardware, "10.9.8.9".parse().unwrap())
                .unwrap()
        );
        // Carrier is lost within that second: the address is probed again from the start, and so is
        // the one that nobody had.
        let nine = "10.9.8.9".parse().unwrap();
        claims.forget(near);
        assert!(claims.is_open(near, nine) && claims.is_settled());
        assert!(claims.is_open(near, "10.9.8.8".parse().unwrap()));
        assert!(claims.owner(near, "10.9.8.7".parse().unwrap()).is_none());
        assert!(claims.claim(&hardware, nine).unwrap());
        assert!(!claims.is_open(near, nine));
        let began = Instant::now();
        while !claims.is_settled() {
            tokio::time::sleep_until(claims.due().unwrap()).await;
            claims.listen();
        }
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(990), "{took:?}");
        assert!(claims.owner(near, "10.9.8.9".parse().unwrap()).is_none());
    });
}

#[test]
fn carrier_is_an_event() {
    in_empty_network("carrier event", async |mut net: Net| {
        ip("link add near type veth peer name far");
        net.set_up(index_of("near")).await.unwrap();
        ip("link set far up");
        // The messages about `far`, and those before, are not about this carrier.
        while !net.link_message().await.starts_with("near: up, carrier") {}
    });
}

#[test]
fn the_kernels_error_texts_are_returned() {
    in_empty_network("rtnetlink errors", async |net: Net| {
        assert_eq!(
            net.rename(4711, "x").await,
            Err("No such device".to_owned())
        );
        assert_eq!(net.set_up(4711).await, Err("No such device".to_owned()));
    });
}

#[test]
fn the_alarm_rings_when_it_is_set_and_not_before() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let alarm = ibboot::system::alarm::Alarm::new().unwrap();
        let far = alarm.rings(Duration::from_secs(3600));
        assert!(
            tokio::time::timeout(Duration::from_millis(200), far)
                .await
                .is_err()
        );
        // The next wait sets the alarm again; an abandoned alarm does not fire later.
        let began = std::time::Instant::now();
        alarm.rings(Duration::from_millis(50)).await;
        assert!(began.elapsed() >= Duration::from_millis(50));
        alarm.rings(Duration::ZERO).await;
    });
}
