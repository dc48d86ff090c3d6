// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what is requested of an interface, with what DHCP servers granted to it.

use super::{Facts, Netdev};
use crate::dhcp::v4::lease::Lease;
use crate::dhcp::v4::progress::Progress;
use crate::dhcp::v6;
use crate::dhcp::v6::lease::PREFIX;
use crate::inet::{Address, is_link_local};
use crate::wish::ipoib::{Family, IpoibWish};

/// An owner that no argument names.
pub const ANOTHER: &str = "another program";

/// The DHCP lease of the interface, where one is requested.
pub fn lease<'p>(wish: &IpoibWish, netdev: &Netdev, progress: &'p [Progress]) -> Option<&'p Lease> {
    wish.dhcp.as_ref()?;
    let mut all = progress.iter();
    let one = all.find(|one| netdev.ifindex == Some(one.index))?;
    one.lease.as_ref()
}

/// The DHCPv6 lease of the interface, where one is requested.
pub fn lease6<'p>(
    wish: &IpoibWish,
    netdev: &Netdev,
    progress: &'p [v6::progress::Progress],
) -> Option<&'p v6::lease::Lease> {
    wish.dhcp6.as_ref()?;
    let mut all = progress.iter();
    let one = all.find(|one| netdev.ifindex == Some(one.index))?;
    one.lease.as_ref()
}

/// What is requested of the interface, with the leases that clients have for it.
pub fn granted(
    wish: &IpoibWish,
    netdev: &Netdev,
    dhcp: &[Progress],
    dhcp6: &[v6::progress::Progress],
) -> IpoibWish {
    let wish4 = lease(wish, netdev, dhcp).map(|lease| wish.granted(lease));
    let wish = wish4.unwrap_or_else(|| wish.clone());
    match lease6(&wish, netdev, dhcp6) {
        Some(lease) => wish.granted6(lease, netdev.shown6(lease.address)),
        None => wish,
    }
}

/// What is expected of the interface: as [`granted`], but what another program renews can have any
/// value.
pub fn expected(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> IpoibWish {
    let is_ours = |family| owner(wish, netdev, facts, family).is_none();
    let dhcp = facts.dhcp.as_slice();
    let dhcp6 = facts.dhcp6.as_slice();
    granted(
        wish,
        netdev,
        if is_ours(Family::Ipv4) { dhcp } else { &[] },
        if is_ours(Family::Ipv6) { dhcp6 } else { &[] },
    )
}

/// The program that renews the lease of this family in its own way: the one that `rd.ib.handover=`
/// names, or [`ANOTHER`].
pub fn owner(
    wish: &IpoibWish,
    netdev: &Netdev,
    facts: &Facts,
    family: Family,
) -> Option<&'static str> {
    let is_left = || is_left(wish, netdev, facts, family).then_some(ANOTHER);
    facts.owner().or_else(is_left)
}

/// Whether another program gave the interface an address in place of that of the lease, or the same
/// address. ibboot sets no lifetime, and the programs that lease addresses do. A router's address has
/// one too, and the prefix of a network.
fn is_left(wish: &IpoibWish, netdev: &Netdev, facts: &Facts, family: Family) -> bool {
    let lease = match family {
        Family::Ipv4 => lease(wish, netdev, &facts.dhcp).map(Lease::granted),
        Family::Ipv6 => lease6(wish, netdev, &facts.dhcp6).map(v6::lease::Lease::granted),
    };
    let lease = lease.map(|granted| granted.address.address);
    let Some(lease) = lease.filter(|_| facts.renewer.is_some() && !wish.must_keep()) else {
        return false;
    };
    let all = || netdev.addresses.iter().map(|found| found.address);
    let has_lifetime = |own: &Address| netdev.dynamic.contains(&own.address);
    let is_leased = |own: &Address| {
        Family::from(own.address) == family
            && !is_link_local(own.address)
            && (own.address.is_ipv4() || own.prefix == PREFIX)
    };
    let is_held = all().any(|own| own.address == lease && !has_lifetime(&own));
    !is_held && all().any(|own| is_leased(&own) && has_lifetime(&own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp::v4::Dhcp4Wish;
    use crate::dhcp::v6::Dhcp6Wish;

    fn progress(index: u32) -> Progress {
        let lease = r#"{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1","requested_ns":0,
            "seconds":60,"renew_s":30,"rebind_s":50}"#;
        Progress {
            index,
            lease: Some(serde_json::from_str(lease).unwrap()),
            ..Progress::default()
        }
    }

    fn progress6(index: u32) -> v6::progress::Progress {
        let lease = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
            "requested_ns":0,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
        v6::progress::Progress {
            index,
            lease: Some(serde_json::from_str(lease).unwrap()),
            ..v6::progress::Progress::default()
        }
    }

    fn addresses(wish: &IpoibWish, netdev: &Netdev) -> Vec<String> {
        let (dhcp, dhcp6) = ([progress(3), progress(4)], [progress6(4), progress6(5)]);
        let granted = granted(wish, netdev, &dhcp, &dhcp6);
        granted.addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_interface_has_the_leases_of_its_own_index_that_it_requests() {
        let netdev = |index| Netdev {
            ifindex: Some(index),
            ..Netdev::default()
        };
        let both = IpoibWish {
            dhcp: Some(Dhcp4Wish::default()),
            dhcp6: Some(Dhcp6Wish::default()),
            ..IpoibWish::default()
        };
        assert_eq!(addresses(&both, &netdev(3)), ["10.0.0.5/24"]);
        assert_eq!(addresses(&both, &netdev(4)), ["10.0.0.5/24", "fd00::5/128"]);
        assert_eq!(addresses(&both, &netdev(5)), ["fd00::5/128"]);
        assert_eq!(addresses(&both, &Netdev::default()), Vec::<String>::new());
        let none = Vec::<String>::new();
        assert_eq!(addresses(&IpoibWish::default(), &netdev(4)), none);
        let mut routed = netdev(5);
        routed
            .addresses
            .push("fd00::5/64".parse::<crate::inet::Address>().unwrap().into());
        assert_eq!(addresses(&both, &routed), ["fd00::5/64"]);
    }
}
