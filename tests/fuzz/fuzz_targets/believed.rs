// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of every DHCPv6 lease and of all settings that the client accepts.

use ibboot::dhcp::v6::lease::Lease;

pub fn check(lease: &Lease) {
    let address = lease.address;
    assert!(!address.is_unspecified() && !address.is_loopback() && !address.is_multicast());
    assert!(!address.is_unicast_link_local() && address.to_ipv4().is_none());
    assert!(0 < lease.renew_s && lease.renew_s <= lease.rebind_s);
    assert!(lease.rebind_s <= lease.seconds && lease.preferred_s <= lease.seconds);
    assert!(lease.name_servers.len() <= 16 && lease.domain_search.len() <= 32);
    clean(&lease.variables(), &lease.left_out);
    let json = serde_json::to_string(lease).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Lease>(&json).as_ref().ok(),
        Some(lease)
    );
}

pub fn clean(variables: &[(&str, Vec<u8>)], left_out: &[String]) {
    for (name, value) in variables {
        let text = std::str::from_utf8(value).expect("text");
        assert!(!text.chars().any(char::is_control), "{name}");
    }
    for line in left_out {
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}
