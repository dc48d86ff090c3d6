// SPDX-License-Identifier: MIT OR Apache-2.0
//! IP addresses: of the running machine from rtnetlink, of a saved one as /proc/net/if_inet6 shows
//! those of IPv6 (net/ipv6/addrconf.c, if6_seq_show). One that duplicate address detection still
//! looks at is no address yet.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use super::{Look, Netdev, rtnetlink};

/// The note of a dump that gave no answer.
pub const DUMP: &str = "rtnetlink addresses";
/// Where a saved tree has those of IPv6.
pub const V6: &str = "/proc/net/if_inet6";
/// Those of IPv4 in a saved tree, which no file of the kernel shows: by interface, as JSON.
pub const V4: &str = "/ibboot-addresses.json";

/// IFA_F_OPTIMISTIC, IFA_F_DADFAILED, IFA_F_TENTATIVE (linux/if_addr.h).
const OPTIMISTIC: u32 = 0x04;
const FAILED: u32 = 0x08;
const TENTATIVE: u32 = 0x40;

impl Netdev {
    /// The address as the kernel shows it, of whatever prefix length; tentative and another host's
    /// too.
    pub fn shown6(&self, address: Ipv6Addr) -> Option<&str> {
        let there = self.addresses.iter().chain(&self.tentative);
        let mut there = there.chain(&self.duplicates).map(String::as_str);
        there.find(|shown| is_of(shown, address))
    }

    /// Whether another host has the address.
    pub fn is_duplicate6(&self, address: Ipv6Addr) -> bool {
        self.duplicates.iter().any(|shown| is_of(shown, address))
    }
}

fn is_of(shown: &str, address: Ipv6Addr) -> bool {
    shown.split('/').next().and_then(|text| text.parse().ok()) == Some(address)
}

impl Netdev {
    fn add_address(&mut self, shown: String, flags: u32) {
        let list = if flags & FAILED != 0 {
            &mut self.duplicates
        } else if flags & (TENTATIVE | OPTIMISTIC) == TENTATIVE {
            &mut self.tentative
        } else {
            &mut self.addresses
        };
        list.push(shown);
    }
}

/// Adds the addresses to their interfaces.
pub(super) fn add(netdevs: &mut [Netdev], look: &mut Look<'_>) {
    if !look.root().is_live() {
        return add_saved(netdevs, look);
    }
    look.keep(V6);
    let found = match rtnetlink::addresses() {
        Ok(found) => found,
        Err(e) => return look.note(DUMP, e),
    };
    let mut v4: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in found {
        let Some(netdev) = netdevs.iter_mut().find(|n| n.ifindex == Some(one.index)) else {
            continue;
        };
        let shown = one.address.to_string();
        netdev.add_address(shown.clone(), one.flags);
        if one.address.address.is_ipv4() {
            v4.entry(netdev.ifname.clone()).or_default().push(shown);
        }
    }
    look.root().keep(V4, &v4);
}

fn add_saved(netdevs: &mut [Netdev], look: &mut Look<'_>) {
    let mut v4: BTreeMap<String, Vec<String>> = look.saved(V4);
    for netdev in netdevs.iter_mut() {
        netdev
            .addresses
            .extend(v4.remove(&netdev.ifname).unwrap_or_default());
    }
    let text = look.text(V6).unwrap_or_default();
    for line in text.lines() {
        let Some((ifname, address, flags)) = parse(line) else {
            look.note(V6, "a line is not as the kernel writes it");
            continue;
        };
        if let Some(netdev) = netdevs.iter_mut().find(|n| n.ifname == ifname) {
            netdev.add_address(address, flags);
        }
    }
}

/// `fe80... 02 40 20 80 ib0`: address, index, prefix length, scope, flags, name.
fn parse(line: &str) -> Option<(&str, String, u32)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [address, _, prefix, _, flags, ifname] = fields.as_slice() else {
        return None;
    };
    let address = Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?);
    let prefix = u8::from_str_radix(prefix, 16).ok()?;
    let flags = u32::from_str_radix(flags, 16).ok()?;
    Some((ifname, format!("{address}/{prefix}"), flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line = "fe80000000000000b8599f0300fc1a2c 02 40 20 c0      ib0";
        let address = "fe80::b859:9f03:fc:1a2c/64".to_owned();
        assert_eq!(parse(line), Some(("ib0", address, 0xc0)));
        assert_eq!(parse("fe80 02 40 20 80"), None);
        assert_eq!(parse("x 02 40 20 80 ib0"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_survived(line in "\\PC*|([0-9a-fx+-]{1,33} ){5}ib0") {
            if let Some((_, shown, _)) = parse(&line) {
                let (address, prefix) = shown.split_once('/').unwrap();
                proptest::prop_assert!(address.parse::<Ipv6Addr>().is_ok());
                proptest::prop_assert!(prefix.parse::<u8>().is_ok());
            }
        }
    }
}
