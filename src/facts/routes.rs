// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routes. Source on a running machine: rtnetlink; in a saved tree: /proc/net/route and
//! /proc/net/ipv6_route.

use std::cmp::Reverse;
use std::net::IpAddr;

use super::links::Links;
use super::rtnetlink::Dumps;
use super::{Look, Netdev};
use crate::inet::{Address, Route};

/// RTF_UP and RTF_REJECT (linux/route.h), RTF_ADDRCONF and RTF_LOCAL (linux/ipv6_route.h).
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;
const ADVERTISED: u32 = 0x4_0000;
const LOCAL: u32 = 0x8000_0000;

impl Netdev {
    fn add_route(&mut self, route: Route, metric: u32, is_advertised: bool) {
        self.metrics.push((route, metric));
        match route.gateway {
            Some(gateway) if route.network.prefix == 0 => {
                self.gateways.push(gateway);
                self.advertised.extend(is_advertised.then_some(gateway));
            }
            _ => self.routes.push(route),
        }
    }

    /// The best route of the interface to an address: the length of its prefix, and its metric. The
    /// longest prefix counts, then the lowest metric.
    pub fn way_to(&self, to: IpAddr) -> Option<(u8, Reverse<u32>)> {
        let defaults = self.gateways.iter().copied().map(Route::default_through);
        let routes = self.routes.iter().copied().chain(defaults);
        let ways = routes.filter(|route| route.network.reaches(to));
        let rank = |route: Route| (route.network.prefix, Reverse(self.metric(&route)));
        ways.map(rank).max()
    }

    fn metric(&self, route: &Route) -> u32 {
        let metrics = self.metrics.iter().filter(|(of, _)| of == route);
        let lowest = metrics.map(|(_, metric)| *metric).min();
        lowest.unwrap_or(0)
    }

    /// Whether a route of the interface leads to the network of this one.
    pub fn leads_to(&self, route: &Route) -> bool {
        let is_default = |gateway: &IpAddr| gateway.is_ipv6() == route.network.address.is_ipv6();
        match route.network.prefix {
            0 => self.gateways.iter().any(is_default),
            _ => self.routes.iter().any(|own| own.network == route.network),
        }
    }

    /// Whether a default route through the gateway exists that no router's advertisement made. The route
    /// of an advertisement ends with its lifetime, or when a program turns forwarding on
    /// (rt6_purge_dflt_routers of net/ipv6/route.c).
    pub fn has_lasting_gateway(&self, gateway: IpAddr) -> bool {
        let count = |all: &[IpAddr]| all.iter().filter(|one| **one == gateway).count();
        count(&self.gateways) > count(&self.advertised)
    }

    /// Whether the route exists.
    pub fn has_route(&self, route: &Route) -> bool {
        match route.gateway {
            Some(gateway) if route.network.prefix == 0 => self.gateways.contains(&gateway),
            _ => self.routes.contains(route),
        }
    }
}

/// Name of the rtnetlink dump in a note about a failure.
pub const DUMP: &str = "rtnetlink routes";
/// File with the IPv4 routes of a saved tree.
pub const V4: &str = "/proc/net/route";
/// File with the IPv6 routes of a saved tree.
pub const V6: &str = "/proc/net/ipv6_route";

/// A route of one line of either file.
struct Line<'a> {
    ifname: &'a str,
    route: Route,
    metric: u32,
    is_advertised: bool,
}

/// Adds the routes to their interfaces.
pub(super) fn add(netdevs: &mut [Netdev], look: &mut Look<'_>, links: &mut Links) {
    if !look.root().is_live() {
        return add_saved(netdevs, look);
    }
    look.keep(V4);
    look.keep(V6);
    match links.dump(Dumps::routes) {
        Ok(routes) => {
            for through in routes {
                let index = Some(through.index);
                if let Some(netdev) = netdevs.iter_mut().find(|n| n.ifindex == index) {
                    netdev.add_route(through.route, through.metric, through.is_advertised);
                }
            }
        }
        Err(e) => look.note(DUMP, e),
    }
}

/// Adds the routes of a saved tree, as /proc shows them.
fn add_saved(netdevs: &mut [Netdev], look: &mut Look<'_>) {
    let v4 = look.text(V4).unwrap_or_default();
    let v6 = look.text(V6).unwrap_or_default();
    // The IPv4 file begins with a header line.
    let v4 = v4.lines().filter(|line| !line.starts_with("Iface"));
    let v4 = v4.map(|line| (V4, of_v4(line)));
    let lines = v4.chain(v6.lines().map(|line| (V6, of_v6(line))));
    for (path, line) in lines {
        match line {
            Some(Some(line)) => {
                if let Some(netdev) = netdevs.iter_mut().find(|n| n.ifname == line.ifname) {
                    netdev.add_route(line.route, line.metric, line.is_advertised);
                }
            }
            Some(None) => {}
            None => look.note(path, "a line is not in the kernel's format"),
        }
    }
}

/// Parses a line of hexadecimal words in the machine's byte order (net/ipv4/fib_trie.c,
/// fib_route_seq_show). `None`: not such a line; `Some(None)`: a route that is down or rejects.
fn of_v4(line: &str) -> Option<Option<Line<'_>>> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [ifname, network, gateway, flags, _, _, metric, mask, ..] = fields.as_slice() else {
        return None;
    };
    let word = |text: &str| u32::from_str_radix(text, 16).ok();
    let address = |text: &str| word(text).map(|word| IpAddr::from(word.to_ne_bytes()));
    let flags = word(flags)?;
    let network = Address {
        address: address(network)?,
        prefix: u8::try_from(word(mask)?.count_ones()).ok()?,
    };
    let gateway = Some(address(gateway)?).filter(|gateway| !gateway.is_unspecified());
    let line = Line {
        ifname,
        route: Route { network, gateway },
        // `%d` of fib_route_seq_show, of an unsigned number.
        metric: metric.parse::<i64>().ok()?.cast_unsigned() as u32,
        is_advertised: false,
    };
    let leads = flags & UP != 0 && flags & REJECT == 0;
    Some(leads.then_some(line))
}

/// Parses a line of hexadecimal numbers (net/ipv6/route.c, rt6_info_route); a route without an
/// interface, such as a reject route, may lack the name. The result is as for [`of_v4`].
fn of_v6(line: &str) -> Option<Option<Line<'_>>> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (fields, ifname) = match fields.as_slice() {
        [fields @ .., ifname] if fields.len() == 9 => (fields, *ifname),
        fields => (fields, ""),
    };
    let [network, length, _, _, gateway, metric, _, _, flags] = fields else {
        return None;
    };
    let address = |text: &str| {
        let word = u128::from_str_radix(text, 16).ok()?;
        Some(IpAddr::from(word.to_be_bytes()))
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    let network = Address {
        address: address(network)?,
        prefix: u8::from_str_radix(length, 16).ok()?,
    };
    let gateway = Some(address(gateway)?).filter(|gateway| !gateway.is_unspecified());
    let line = Line {
        ifname,
        route: Route { network, gateway },
        metric: u32::from_str_radix(metric, 16).ok()?,
        is_advertised: flags & ADVERTISED != 0,
    };
    let leads = flags & UP != 0 && flags & (REJECT | LOCAL) == 0;
    Some(leads.then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let v4 = "ib0\t0009000A\t0100000A\t0003\t0\t0\t150\t00FFFFFF\t0\t0\t0";
        if cfg!(target_endian = "little") {
            let line = of_v4(v4).unwrap().unwrap();
            let route = "10.0.9.0/24 via 10.0.0.1".to_owned();
            assert_eq!((line.ifname, line.route.to_string()), ("ib0", route));
            assert_eq!(line.metric, 150);
            assert!(of_v4(&v4.replace("0003", "0203")).unwrap().is_none());
            let last = v4.replace("\t150\t", "\t-1\t");
            assert_eq!(of_v4(&last).unwrap().unwrap().metric, u32::MAX);
        }
        let v6 = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 \
            fe800000000000000000000000000001 00000400 00000001 00000000 00000003      ib0";
        let line = of_v6(v6).unwrap().unwrap();
        let route = "fd00::/64 via fe80::1".to_owned();
        assert_eq!((line.ifname, line.route.to_string()), ("ib0", route));
        assert_eq!((line.metric, line.is_advertised), (1024, false));
        let advertised = v6.replace("00000003 ", "00450003 ");
        assert!(of_v6(&advertised).unwrap().unwrap().is_advertised);
        for other in ["80000003", "00200200"] {
            let rejects = v6.replace("00000003 ", &format!("{other} "));
            assert!(of_v6(&rejects).unwrap().is_none());
            assert!(of_v6(rejects.trim_end_matches("ib0")).unwrap().is_none());
        }
        for cut in [v4.split_at(20).0, v6.split_at(40).0] {
            assert!(of_v4(cut).is_none() && of_v6(cut).is_none(), "{cut}");
        }
    }

    #[test]
    fn a_gateway_lasts_if_it_has_a_route_that_no_router_advertised() {
        let gateway: IpAddr = "fe80::1".parse().unwrap();
        let route = Route::default_through(gateway);
        let mut netdev = Netdev::default();
        assert!(!netdev.has_lasting_gateway(gateway));
        netdev.add_route(route, 1024, true);
        assert!(netdev.has_route(&route) && !netdev.has_lasting_gateway(gateway));
        netdev.add_route(route, 1, false);
        assert!(netdev.has_lasting_gateway(gateway));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "\\PC*|(ib0 )?([0-9A-Fx+-]{1,33} ){7,10}(ib0)?") {
            if let Some(Some(found)) = of_v4(&line) {
                prop_assert!(found.route.network.prefix <= 32 && found.route.network.address.is_ipv4());
            }
            if let Some(Some(found)) = of_v6(&line) {
                prop_assert!(found.route.network.address.is_ipv6());
                prop_assert!(found.route.gateway.is_none_or(|gateway| gateway.is_ipv6()));
            }
        }
    }
}
