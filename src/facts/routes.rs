// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routes, as /proc/net/route and /proc/net/ipv6_route show them.

use std::net::IpAddr;

use super::{Look, Netdev};
use crate::ipoib::{Address, Route};

/// RTF_UP and RTF_REJECT (linux/route.h), RTF_LOCAL (linux/ipv6_route.h).
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;
const LOCAL: u32 = 0x8000_0000;

impl Netdev {
    /// Whether the route is there.
    pub fn has_route(&self, route: &Route) -> bool {
        self.routes.contains(route)
    }
}

/// One line of either file.
struct Line<'a> {
    ifname: &'a str,
    network: Address,
    gateway: Option<IpAddr>,
}

/// Adds the routes to their interfaces.
pub(super) fn add(netdevs: &mut [Netdev], look: &mut Look<'_>) {
    let v4 = look.text("/proc/net/route").unwrap_or_default();
    let v6 = look.text("/proc/net/ipv6_route").unwrap_or_default();
    let lines = v4
        .lines()
        .filter_map(of_v4)
        .chain(v6.lines().filter_map(of_v6));
    for line in lines {
        let Some(netdev) = netdevs.iter_mut().find(|n| n.ifname == line.ifname) else {
            continue;
        };
        match line.gateway {
            Some(gateway) if line.network.prefix == 0 => netdev.gateways.push(gateway),
            gateway => netdev.routes.push(Route {
                network: line.network,
                gateway,
            }),
        }
    }
}

/// Words of the machine's byte order (net/ipv4/fib_trie.c, fib_route_seq_show).
fn of_v4(line: &str) -> Option<Line<'_>> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [ifname, network, gateway, flags, _, _, _, mask, ..] = fields.as_slice() else {
        return None;
    };
    let word = |text: &str| u32::from_str_radix(text, 16).ok();
    let address = |text: &str| word(text).map(|word| IpAddr::from(word.to_ne_bytes()));
    let flags = word(flags)?;
    (flags & UP != 0 && flags & REJECT == 0).then_some(())?;
    Some(Line {
        ifname,
        network: Address {
            address: address(network)?,
            prefix: u8::try_from(word(mask)?.count_ones()).ok()?,
        },
        gateway: address(gateway).filter(|gateway| !gateway.is_unspecified()),
    })
}

/// Plain hexadecimal (net/ipv6/route.c, rt6_info_route).
fn of_v6(line: &str) -> Option<Line<'_>> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [network, length, _, _, gateway, _, _, _, flags, ifname] = fields.as_slice() else {
        return None;
    };
    let address = |text: &str| {
        let word = u128::from_str_radix(text, 16).ok()?;
        Some(IpAddr::from(word.to_be_bytes()))
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    (flags & UP != 0 && flags & (REJECT | LOCAL) == 0).then_some(())?;
    Some(Line {
        ifname,
        network: Address {
            address: address(network)?,
            prefix: u8::from_str_radix(length, 16).ok()?,
        },
        gateway: address(gateway).filter(|gateway| !gateway.is_unspecified()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let v4 = "ib0\t0009000A\t0100000A\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0";
        if cfg!(target_endian = "little") {
            let line = of_v4(v4).unwrap();
            assert_eq!(
                (line.ifname, line.network.to_string()),
                ("ib0", "10.0.9.0/24".to_owned())
            );
            assert_eq!(line.gateway, Some("10.0.0.1".parse().unwrap()));
        }
        let v6 = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 \
            fe800000000000000000000000000001 00000400 00000001 00000000 00000003      ib0";
        let line = of_v6(v6).unwrap();
        assert_eq!(
            (line.ifname, line.network.to_string()),
            ("ib0", "fd00::/64".to_owned())
        );
        assert_eq!(line.gateway, Some("fe80::1".parse().unwrap()));
        assert!(of_v6(&v6.replace("00000003 ", "80000003 ")).is_none());
    }

    proptest! {
        #[test]
        fn any_line_is_survived(line in "\\PC*|(ib0 )?([0-9A-Fx+-]{1,33} ){7,10}(ib0)?") {
            if let Some(found) = of_v4(&line) {
                prop_assert!(found.network.prefix <= 32 && found.network.address.is_ipv4());
            }
            if let Some(found) = of_v6(&line) {
                prop_assert!(found.network.address.is_ipv6());
                prop_assert!(found.gateway.is_none_or(|gateway| gateway.is_ipv6()));
            }
        }
    }
}
