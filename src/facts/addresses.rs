// SPDX-License-Identifier: MIT OR Apache-2.0
//! IP addresses. Source on a running machine: rtnetlink; in a saved tree: /proc/net/if_inet6 for
//! IPv6 (net/ipv6/addrconf.c, if6_seq_show). An address is not usable before duplicate address
//! detection is complete.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Serialize, Serializer};

use super::links::Links;
use super::rtnetlink::Dumps;
use super::{Look, Netdev};
use crate::inet::Address;

/// Name of the rtnetlink dump in a note about a failure.
pub const DUMP: &str = "rtnetlink addresses";
/// File with the IPv6 addresses of a saved tree.
pub const V6: &str = "/proc/net/if_inet6";
/// File with the IPv4 addresses of a saved tree, which no file of the kernel contains: by
/// interface, as JSON.
pub const V4: &str = "/ibboot-addresses.json";

/// IFA_F_OPTIMISTIC, IFA_F_DADFAILED, IFA_F_TENTATIVE (linux/if_addr.h).
const OPTIMISTIC: u32 = 0x04;
const FAILED: u32 = 0x08;
const TENTATIVE: u32 = 0x40;
/// IFA_F_PERMANENT: an address without a lifetime.
const PERMANENT: u32 = 0x80;
/// Behind an IPv4 address with a lifetime in a saved tree, as `ip address` shows it.
const DYNAMIC: &str = "dynamic";

/// An IP address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundAddress {
    /// The address with its prefix length.
    pub address: Address,
    pub state: AddressState,
}

/// State of an address according to duplicate address detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressState {
    /// The address can be used.
    Usable,
    /// Detection is not complete: the kernel probes IPv6 addresses, `up` probes IPv4 addresses.
    Tentative,
    /// Another host has the address (IPv6).
    Duplicate,
}

impl AddressState {
    /// The state for the kernel's flags IFA_F_*.
    fn of(flags: u32) -> AddressState {
        if flags & FAILED != 0 {
            AddressState::Duplicate
        } else if flags & (TENTATIVE | OPTIMISTIC) == TENTATIVE {
            AddressState::Tentative
        } else {
            AddressState::Usable
        }
    }
}

/// A usable address.
impl From<Address> for FoundAddress {
    fn from(address: Address) -> FoundAddress {
        FoundAddress {
            address,
            state: AddressState::Usable,
        }
    }
}

/// Serializes a list of texts for each state; empty lists of tentative and duplicate addresses are
/// left out.
pub(super) fn by_state<S: Serializer>(
    found: &[FoundAddress],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct ByState {
        addresses: Vec<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tentative: Vec<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        duplicates: Vec<String>,
    }

    let texts = |state| {
        let found = found.iter().filter(|found| found.state == state);
        found.map(|found| found.address.to_string()).collect()
    };
    let lists = ByState {
        addresses: texts(AddressState::Usable),
        tentative: texts(AddressState::Tentative),
        duplicates: texts(AddressState::Duplicate),
    };
    lists.serialize(serializer)
}

impl Netdev {
    /// The addresses in this state, in the order of the kernel.
    pub fn addresses_in(&self, state: AddressState) -> impl Iterator<Item = Address> {
        let found = self.addresses.iter();
        found
            .filter(move |found| found.state == state)
            .map(|found| found.address)
    }

    /// The state of the address with this prefix length; none if the interface does not have the
    /// address.
    pub fn state_of(&self, address: &Address) -> Option<AddressState> {
        let mut found = self.addresses.iter();
        found
            .find(|found| found.address == *address)
            .map(|found| found.state)
    }

    /// Whether `hop` is in a network of the interface.
    pub fn reaches(&self, hop: IpAddr) -> bool {
        let direct = self.routes.iter().filter(|route| route.gateway.is_none());
        let own = self.addresses.iter().map(|found| found.address);
        let mut networks = own.chain(direct.map(|route| route.network));
        networks.any(|network| network.reaches(hop))
    }

    /// The address as the kernel shows it, with any prefix length and state.
    pub fn shown6(&self, address: Ipv6Addr) -> Option<Address> {
        let mut found = self.addresses.iter().map(|found| found.address);
        found.find(|found| found.address == address)
    }

    /// Whether another host has the address.
    pub fn is_duplicate6(&self, address: Ipv6Addr) -> bool {
        let mut duplicates = self.addresses_in(AddressState::Duplicate);
        duplicates.any(|duplicate| duplicate.address == address)
    }

    /// A usable link-local IPv6 address, the source address of DHCPv6 clients.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        let mut usable = self.addresses_in(AddressState::Usable);
        usable.find_map(|usable| match usable.address {
            IpAddr::V6(v6) => v6.is_unicast_link_local().then_some(v6),
            IpAddr::V4(_) => None,
        })
    }
}

/// Adds the addresses to their interfaces.
pub(super) fn add(netdevs: &mut [Netdev], look: &mut Look<'_>, links: &mut Links) {
    if !look.root().is_live() {
        return add_saved(netdevs, look);
    }
    look.keep(V6);
    let found = match links.dump(Dumps::addresses) {
        Ok(found) => found,
        Err(e) => return look.note(DUMP, e),
    };
    let mut v4: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in found {
        let Some(netdev) = netdevs.iter_mut().find(|n| n.ifindex == Some(one.index)) else {
            continue;
        };
        let (address, state) = (one.address, AddressState::of(one.flags));
        netdev.addresses.push(FoundAddress { address, state });
        let is_dynamic = one.flags & PERMANENT == 0;
        netdev.dynamic.extend(is_dynamic.then_some(address.address));
        if address.address.is_ipv4() {
            let of_name = v4.entry(netdev.ifname.clone()).or_default();
            of_name.push(match is_dynamic {
                true => format!("{address} {DYNAMIC}"),
                false => address.to_string(),
            });
        }
    }
    look.root().keep(V4, &v4);
}

fn add_saved(netdevs: &mut [Netdev], look: &mut Look<'_>) {
    let mut v4: BTreeMap<String, Vec<String>> = look.saved(V4);
    for netdev in netdevs.iter_mut() {
        for text in v4.remove(&netdev.ifname).unwrap_or_default() {
            let word = text.strip_suffix(DYNAMIC).map(str::trim_end);
            match word.unwrap_or(&text).parse::<Address>() {
                Ok(address) => {
                    netdev.addresses.push(address.into());
                    netdev.dynamic.extend(word.map(|_| address.address));
                }
                Err(why) => look.note(V4, format!("{text:?}: {why}")),
            }
        }
    }
    let text = look.text(V6).unwrap_or_default();
    for line in text.lines() {
        let Some((ifname, found, is_dynamic)) = parse(line) else {
            look.note(V6, "a line is not in the kernel's format");
            continue;
        };
        if let Some(netdev) = netdevs.iter_mut().find(|n| n.ifname == ifname) {
            netdev.addresses.push(found);
            let address = found.address.address;
            netdev.dynamic.extend(is_dynamic.then_some(address));
        }
    }
}

/// Parses `fe80... 02 40 20 80 ib0`: address, index, prefix length, scope, flags, name. The last value
/// is whether the address has a lifetime.
fn parse(line: &str) -> Option<(&str, FoundAddress, bool)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [address, _, prefix, _, flags, ifname] = fields.as_slice() else {
        return None;
    };
    let address = Address {
        address: IpAddr::from(u128::from_str_radix(address, 16).ok()?.to_be_bytes()),
        prefix: u8::from_str_radix(prefix, 16).ok()?,
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    let state = AddressState::of(flags);
    let found = FoundAddress { address, state };
    Some((ifname, found, flags & PERMANENT == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, state: AddressState) -> FoundAddress {
        let address = text.parse().unwrap();
        FoundAddress { address, state }
    }

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line = "fe80000000000000b8599f0300fc1a2c 02 40 20 c0      ib0";
        for (flags, state, is_dynamic) in [
            ("80", AddressState::Usable, false),
            ("c0", AddressState::Tentative, false),
            ("c4", AddressState::Usable, false),
            ("c8", AddressState::Duplicate, false),
            ("00", AddressState::Usable, true),
            ("01", AddressState::Usable, true),
        ] {
            let line = line.replace("c0 ", &format!("{flags} "));
            let expected = found("fe80::b859:9f03:fc:1a2c/64", state);
            let expected = Some(("ib0", expected, is_dynamic));
            assert_eq!(parse(&line), expected, "{flags}");
        }
        assert_eq!(parse("fe80 02 40 20 80"), None);
        assert_eq!(parse("x 02 40 20 80 ib0"), None);
    }

    #[test]
    fn json_has_a_list_of_texts_for_each_state() {
        let mut netdev = Netdev {
            addresses: vec![
                found("fe80::5/64", AddressState::Tentative),
                found("10.0.0.1/24", AddressState::Usable),
                found("fd00::5/64", AddressState::Duplicate),
                found("10.0.0.2/24", AddressState::Usable),
            ],
            ..Netdev::default()
        };
        let json = |netdev: &Netdev| {
            let json = serde_json::to_string(netdev).unwrap();
            let (_, addresses) = json.split_once(r#""ipoib":null,"#).unwrap();
            addresses.to_owned()
        };
        assert_eq!(
            json(&netdev),
            r#""addresses":["10.0.0.1/24","10.0.0.2/24"],"tentative":["fe80::5/64"],"duplicates":["fd00::5/64"],"gateways":[]}"#
        );
        netdev.addresses.clear();
        assert_eq!(json(&netdev), r#""addresses":[],"gateways":[]}"#);
    }

    #[test]
    fn an_address_is_found_with_its_state() {
        let netdev = Netdev {
            addresses: vec![
                found("fe80::4/64", AddressState::Tentative),
                found("10.0.0.1/24", AddressState::Usable),
                found("fe80::5/64", AddressState::Usable),
                found("fd00::5/64", AddressState::Duplicate),
            ],
            ..Netdev::default()
        };
        let state_of = |text: &str| netdev.state_of(&text.parse().unwrap());
        assert_eq!(state_of("10.0.0.1/24"), Some(AddressState::Usable));
        assert_eq!(state_of("10.0.0.1/25"), None);
        assert_eq!(state_of("fe80::4/64"), Some(AddressState::Tentative));
        let link_local = "fe80::5".parse().unwrap();
        assert_eq!(netdev.link_local(), Some(link_local));
        let duplicate = "fd00::5".parse().unwrap();
        assert_eq!(netdev.shown6(duplicate).unwrap().prefix, 64);
        assert!(netdev.is_duplicate6(duplicate) && !netdev.is_duplicate6(link_local));
        assert_eq!(netdev.shown6("fd00::6".parse().unwrap()), None);
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "\\PC*|([0-9a-fx+-]{1,33} ){5}ib0") {
            if let Some((ifname, found, _)) = parse(&line) {
                proptest::prop_assert!(line.contains(ifname) && found.address.address.is_ipv6());
            }
        }
    }
}
