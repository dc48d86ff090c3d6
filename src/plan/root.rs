// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: whether the root file system uses an interface of ibboot.

use crate::request::Request;
use crate::wish::expectation::RootWish;
use crate::wish::ipoib::IpoibWish;
use crate::wish::storage::{Protocol, Transport};

/// The root file system, if an interface of ibboot leads to its server; over RDMA always.
pub fn carried(request: &Request) -> Option<RootWish> {
    let wish = request.root.as_ref()?;
    let server = wish.value.server;
    let leads = request.all_interfaces().any(|one| {
        let ipoib = &one.ipoib;
        let routes = ipoib.routes.iter().map(|route| &route.network);
        let mut networks = ipoib.addresses.iter().chain(routes);
        let near = server.is_some_and(|server| networks.any(|n| n.reaches(server)));
        near || may_learn_root(ipoib) || !ipoib.gateways.is_empty()
    });
    (leads || wish.value.transport == Transport::Rdma).then(|| RootWish {
        root: wish.value,
        portals: request
            .portals
            .iter()
            .map(|one| one.value.clone())
            .collect(),
        requested_by: Some(wish.origin.clone()),
    })
}

/// Whether `netroot` must wait for the verdict: the root file system uses a link of ibboot, or the
/// DHCP server of a boot device of ibboot may still name it.
pub fn holds_netroot(request: &Request) -> bool {
    let mut all = request.all_interfaces();
    let may_be_named = request.root_of_lease.is_some() && all.any(|one| may_learn_root(&one.ipoib));
    request.requested_by.is_some() && (carried(request).is_some() || may_be_named)
}

/// Whether the DHCP server of this interface may name the root file system or its server.
fn may_learn_root(ipoib: &IpoibWish) -> bool {
    ipoib.boot && (ipoib.dhcp.is_some() || ipoib.dhcp6.is_some())
}

/// Whether the command line lacks the address of the root file system's server.
pub(super) fn leaves_server_out(request: &Request) -> bool {
    let named = request.root.as_ref().map(|root| root.value);
    let is_nfs = named.is_some_and(|root| root.protocol == Protocol::Nfs && root.server.is_none());
    is_nfs || request.root_of_lease.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_left_to_dhcp_waits_for_us_where_the_boot_device_is_ours_and_asks() {
        for (cmdline, expected) in [
            ("ip=ib0:dhcp root=dhcp", true),
            ("bootdev=ib0 root=dhcp", true),
            ("bond=bond0:ib0,ib1 root=dhcp", true),
            ("ip=eth0:dhcp ip=ib0:dhcp bootdev=ib0 root=dhcp", true),
            ("bond=bond0:ib0,ib1 ip=bond0:dhcp root=dhcp", true),
            (
                "ip=eth0:dhcp ip=10.0.0.1:::255.255.255.0::ib0:none root=dhcp",
                false,
            ),
            ("ip=eth0:dhcp ip=ib0:dhcp root=dhcp", false),
            ("ip=dhcp ip=10.0.0.1:::24::ib0:none root=dhcp", false),
        ] {
            let request = Request::from_text(cmdline);
            assert!(request.requested_by.is_some(), "{cmdline}");
            assert_eq!(holds_netroot(&request), expected, "{cmdline}");
        }
    }

    #[test]
    fn a_server_without_an_address_is_the_boot_devices_to_say() {
        for (cmdline, expected) in [
            ("root=dhcp", true),
            ("root=nfs:/srv/root", true),
            ("root=nfs:10.0.0.2:/srv/root", false),
            ("netroot=iscsi:10.0.0.2::::iqn.a", false),
            ("root=/dev/vda", false),
        ] {
            let request = Request::from_text(cmdline);
            assert_eq!(leaves_server_out(&request), expected, "{cmdline}");
        }
    }
}
