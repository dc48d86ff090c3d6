// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPv6 addresses with their states, as /proc/net/if_inet6 shows them (net/ipv6/addrconf.c,
//! if6_seq_show): one that duplicate address detection still looks at is no address yet.

use std::net::Ipv6Addr;

use super::{Look, Netdev};

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

/// Adds the addresses to their interfaces.
pub(super) fn add(netdevs: &mut [Netdev], look: &mut Look<'_>) {
    let text = look.text("/proc/net/if_inet6").unwrap_or_default();
    for (ifname, address, flags) in text.lines().filter_map(parse) {
        let Some(netdev) = netdevs.iter_mut().find(|n| n.ifname == ifname) else {
            continue;
        };
        let list = if flags & FAILED != 0 {
            &mut netdev.duplicates
        } else if flags & (TENTATIVE | OPTIMISTIC) == TENTATIVE {
            &mut netdev.tentative
        } else {
            &mut netdev.addresses
        };
        list.push(address);
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
