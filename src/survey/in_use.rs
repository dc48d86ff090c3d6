// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: who depends on a port. A mount over the port needs an address, a route or a connection.

use std::net::IpAddr;

use super::questions::interfaces;
use crate::facts::{Facts, Netdev, PortRef};
use crate::inet::Address;
use crate::rdma::netlink::Holder;

/// Modules whose queue pairs every InfiniBand port has: management datagrams and IPoIB.
const OF_EVERY_PORT: [&str; 2] = ["ib_core", "ib_ipoib"];

/// The network interfaces of a port: IPoIB interfaces over the port, and the network device below a
/// RoCE port.
pub fn of_port<'f>(port: PortRef<'f>, facts: &'f Facts) -> Vec<&'f Netdev> {
    let below = port.port.netdev.as_deref();
    let below = facts
        .netdevs
        .iter()
        .filter(|n| below == Some(n.ifname.as_str()));
    interfaces(port, facts).chain(below).collect()
}

/// What a disturbance touches.
#[derive(Debug)]
pub struct Touched<'f> {
    /// Number of the port; none for all ports of the device.
    pub port: Option<u32>,
    /// The device's driver.
    pub driver: Option<&'f str>,
    /// Interfaces of the port or, with all ports, of the function.
    pub netdevs: Vec<&'f Netdev>,
    /// Interfaces over these: bonds, VLANs, P_Key children.
    pub uppers: Vec<String>,
    /// Queue pairs and cm_ids of the device.
    pub holders: Vec<Holder>,
}

impl Touched<'_> {
    /// Every use by others, as one clause each.
    pub fn uses(&self) -> Vec<String> {
        let mut found = Vec::new();
        for netdev in &self.netdevs {
            let name = &netdev.ifname;
            let addresses = netdev.addresses.iter().map(|found| &found.address);
            let addresses = addresses.filter(|address| !is_automatic(address));
            found.extend(addresses.map(|address| format!("{name} has the address {address}")));
            let gateways = netdev.gateways.iter();
            found.extend(gateways.map(|gateway| format!("{name} has a route through {gateway}")));
            let routes = netdev.routes.iter();
            let routes = routes.filter(|route| !is_automatic(&route.network));
            found.extend(routes.map(|route| format!("{name} has the route {route}")));
        }
        let is_own = |name: &&String| self.netdevs.iter().any(|netdev| netdev.ifname == **name);
        let uppers = self.uppers.iter().filter(|name| !is_own(name));
        found.extend(uppers.map(|name| format!("the interface {name} is over the port")));
        let others = self
            .holders
            .iter()
            .filter(|holder| self.is_of_others(holder));
        found.extend(others.map(|holder| {
            let owner = match (&holder.module, holder.pid) {
                (Some(module), _) => format!("kernel module {module}"),
                (None, Some(pid)) => format!("process {pid}"),
                (None, None) => "unknown owner".to_owned(),
            };
            format!("{} of {owner}", holder.what)
        }));
        found
    }

    fn is_of_others(&self, holder: &Holder) -> bool {
        let is_other_port =
            self.port.is_some() && holder.port.is_some() && self.port != holder.port;
        let module = holder.module.as_deref();
        let is_usual =
            module.is_some_and(|name| OF_EVERY_PORT.contains(&name) || self.driver == module);
        !is_other_port && !is_usual
    }
}

/// Addresses and routes that the kernel adds to every IPv6 interface: link-local and multicast.
fn is_automatic(network: &Address) -> bool {
    match network.address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_multicast(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{AddressState, Device, FoundAddress, Port};
    use crate::inet::Route;
    use crate::rdma::types::Guid;
    use crate::wish::ipoib::IpoibFacts;

    fn machine() -> Facts {
        let netdev = |name: &str, guid: &str| Netdev {
            ifname: name.into(),
            address: Some(
                format!("80:00:00:01:fe:80:00:00:00:00:00:00:02:50:f7:00:00:00:a0:{guid}")
                    .parse()
                    .unwrap(),
            ),
            ipoib: Some(IpoibFacts::default()),
            ..Netdev::default()
        };
        let device = Device {
            ifname: "mlx5_0".into(),
            driver: Some("mlx5_core".into()),
            ports: vec![Port {
                port: 1,
                port_guid: Some(Guid(0x0250_f700_0000_a001)),
                ..Port::default()
            }],
            ..Device::default()
        };
        Facts {
            devices: vec![device],
            netdevs: vec![
                netdev("ib0", "01"),
                netdev("ib1", "11"),
                netdev("ib0.8001", "01"),
            ],
            ..Facts::default()
        }
    }

    fn address(text: &str) -> Address {
        let (address, prefix) = text.split_once('/').unwrap();
        Address {
            address: address.parse().unwrap(),
            prefix: prefix.parse().unwrap(),
        }
    }

    fn found(facts: &Facts, uppers: &[&str], holders: &[Holder]) -> Vec<String> {
        let port = facts.ports().next().unwrap();
        let touched = Touched {
            port: Some(1),
            driver: port.device.driver.as_deref(),
            netdevs: of_port(port, facts),
            uppers: uppers.iter().map(ToString::to_string).collect(),
            holders: holders.to_vec(),
        };
        touched.uses()
    }

    #[test]
    fn a_port_that_nobody_uses() {
        let mut facts = machine();
        for (netdev, text) in [(0, "fe80::1/64"), (1, "10.0.0.1/24")] {
            facts.netdevs[netdev].addresses.push(FoundAddress {
                address: address(text),
                state: AddressState::Usable,
            });
        }
        for network in ["fe80::/64", "ff00::/8"] {
            facts.netdevs[0].routes.push(Route {
                network: address(network),
                gateway: None,
            });
        }
        let holder = |module: &str, port| Holder {
            what: "queue pair",
            port,
            module: Some(module.into()),
            pid: None,
        };
        let holders = [
            holder("ib_core", Some(1)),
            holder("ib_ipoib", Some(1)),
            holder("mlx5_core", None),
            holder("rpcrdma", Some(2)),
        ];
        assert_eq!(found(&facts, &["ib0.8001"], &holders), [""; 0]);
    }

    #[test]
    fn each_use_is_named() {
        let mut facts = machine();
        facts.netdevs[2].addresses.push(FoundAddress {
            address: address("10.0.0.1/24"),
            state: AddressState::Usable,
        });
        facts.netdevs[0]
            .gateways
            .push("10.0.0.254".parse().unwrap());
        facts.netdevs[0].routes.push(Route {
            network: address("10.0.0.0/24"),
            gateway: None,
        });
        let holder = |what, port, module: Option<&str>, pid| Holder {
            what,
            port,
            module: module.map(str::to_owned),
            pid,
        };
        let holders = [
            holder("queue pair", Some(1), Some("rpcrdma"), None),
            holder("cm_id", None, None, Some(77)),
            holder("cm_id", Some(1), None, None),
        ];
        assert_eq!(
            found(&facts, &["bond0"], &holders),
            [
                "ib0 has a route through 10.0.0.254",
                "ib0 has the route 10.0.0.0/24",
                "ib0.8001 has the address 10.0.0.1/24",
                "the interface bond0 is over the port",
                "queue pair of kernel module rpcrdma",
                "cm_id of process 77",
                "cm_id of unknown owner",
            ]
        );
    }
}
