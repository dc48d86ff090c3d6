// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the checks of the IPoIB interface on a port.

use std::net::{IpAddr, Ipv4Addr};

use super::carrier;
use super::checks::Id;
use super::lease;
use super::object::{Interface, Ipoib};
use super::port;
use super::unread;
use crate::facts::{AddressState, Facts, Netdev, PortRef, rules};
use crate::inet::{Address, Route};
use crate::rdma::types::PortState;
use crate::system::drivers::IPOIB;
use crate::system::modules::InitState;
use crate::verify::finding::Finding;
use crate::wish::ipoib::{self, Autoconf, FULL_MEMBER, IpoibWish, RequestedMtu};

/// Finding of `ipoib.present`: the port has the interface.
pub fn present(ipoib: &Ipoib<'_>, facts: &Facts) -> Finding {
    match ipoib.interface.name {
        Some(name) => Finding::ok(Id::IpoibPresent, name),
        None => absent(ipoib.interface.wish, ipoib.port, facts),
    }
}

/// The hint if an interface in datagram mode has less than the requested MTU.
const GROUP_MTU: &str = "in datagram mode the broadcast group limits the MTU: mtu=5 in partitions.conf gives 4092, connected \
                         mode up to 65520";

/// The hint if ib_ipoib is there and the interface is not.
const GONE: &str = "ib_ipoib is loaded: the interface was deleted, or is in another network namespace (after the boot: lsns -t \
                    net), or ib_ipoib did not make it (see dmesg)";

/// Finding of `ipoib.name`: the name that `ifname=` requests.
pub fn name(interface: &Interface<'_>) -> Finding {
    let found = interface.netdev.ifname.as_str();
    match interface.wish.ifname.as_deref() {
        Some(expected) if expected != found => Finding::failed(Id::IpoibName, found, expected),
        _ => Finding::ok(Id::IpoibName, found),
    }
}

/// Finding of `ipoib.up`: IFF_UP is set.
pub fn up(netdev: &Netdev) -> Finding {
    if netdev.up {
        Finding::ok(Id::IpoibUp, "up")
    } else {
        Finding::failed(Id::IpoibUp, "down", "up")
    }
}

/// Finding of `ipoib.carrier`: the interface joined its broadcast group.
pub fn carrier(ipoib: &Ipoib<'_>, facts: &Facts) -> Finding {
    let netdev = ipoib.interface.netdev;
    match netdev.carrier {
        Some(true) => Finding::ok(Id::IpoibCarrier, "carrier"),
        _ => carrier::missing(netdev, ipoib.port, facts),
    }
}

/// What was found in place of an interface or its parent.
const NO_INTERFACE: &str = "the port has no IPoIB interface";

fn absent(wish: &IpoibWish, port: PortRef<'_>, facts: &Facts) -> Finding {
    let is_ipoib = |netdev: &Netdev| netdev.ipoib.is_some();
    let is_live = facts.modules.get(IPOIB) == Some(&InitState::Live);
    let with_cause = |finding: Finding| match is_live || facts.netdevs.iter().any(is_ipoib) {
        true => finding.hint(GONE),
        false => finding,
    };
    let Some(pkey) = wish.pkey else {
        let expected = format!("an interface on {}", port.name());
        let finding = Finding::failed(Id::IpoibPresent, NO_INTERFACE, &expected);
        return match port.port.port_guid {
            Some(_) => with_cause(finding),
            None => finding.hint(
                "the port has no GUID: assign one to the virtual function (on its host: ip link set PF vf N port_guid GUID, with colons)",
            ),
        };
    };
    let parent = rules::own_interface(port, facts);
    let expected = format!("a child of P_Key {pkey:#06x}");
    match parent {
        // Before the subnet manager has configured the port, this is the P_Key of the card.
        Some(parent)
            if rules::is_in_partition(parent, pkey)
                && port.port.state == Some(PortState::Active) =>
        {
            Finding::failed(
                Id::IpoibPresent,
                &format!("{} itself is in this partition", parent.ifname),
                &expected,
            )
            .hint(&format!(
                "name {0} instead of {0}.{1:04x}, and remove ib.pkey=: the kernel creates no second interface for a P_Key",
                parent.ifname,
                pkey | FULL_MEMBER
            ))
            .lasting()
        }
        Some(parent) => Finding::failed(
            Id::IpoibPresent,
            &format!("the port has only {}", parent.ifname),
            &expected,
        )
        .hint(match wish.ifindex {
            Some(_) => {
                "the child was deleted (ibboot up creates it again), or is in another network namespace (after the boot: lsns -t net)"
            }
            None => {
                "ibboot up creates the child; by hand: write the P_Key to create_child of the parent"
            }
        }),
        None => with_cause(Finding::failed(Id::IpoibPresent, NO_INTERFACE, &expected)),
    }
}

/// Finding of `ipoib.mode`: the requested mode, or the one that `auto` means on this interface.
pub fn mode(wish: &IpoibWish, netdev: &Netdev) -> Finding {
    let found = rules::current_mode(netdev);
    let found_word = found.map_or("unknown", ipoib::Mode::word);
    match wish.mode.map(|mode| rules::mode(mode, netdev)) {
        Some(Ok(expected)) if found != Some(expected) => {
            Finding::failed(Id::IpoibMode, found_word, expected.word())
        }
        Some(Err(reason)) => Finding::failed(Id::IpoibMode, found_word, "connected")
            .hint(&reason)
            .lasting(),
        _ => Finding::ok(Id::IpoibMode, found_word),
    }
}

/// The kernel sets the full membership bit in the P_Key of every interface; only the port's P_Key
/// table shows the real membership.
pub fn pkey(netdev: &Netdev, port: PortRef<'_>) -> Finding {
    let Some(pkey) = netdev.ipoib.as_ref().and_then(|ipoib| ipoib.pkey) else {
        return Finding::unknown(Id::PortPkey);
    };
    let table = &port.port.pkeys;
    let full = pkey | FULL_MEMBER;
    let limited = pkey & !FULL_MEMBER;
    if table.contains(&full) {
        return Finding::ok(Id::PortPkey, &format!("{full:#06x}, full member"));
    }
    if table.contains(&limited) {
        return Finding::failed(
            Id::PortPkey,
            &format!("{limited:#06x}, limited member"),
            "full membership",
        )
        .hint(&format!(
            "limited members cannot reach each other: make {} a full member in partitions.conf",
            port::guid(port)
        ))
        .as_warning();
    }
    let present: Vec<String> = table.iter().map(|pkey| format!("{pkey:#06x}")).collect();
    let found = if present.is_empty() {
        "the port has no P_Key".to_owned()
    } else {
        format!("the port has only {}", present.join(", "))
    };
    Finding::failed(Id::PortPkey, &found, &format!("{full:#06x}")).hint(&format!(
        "give {} this P_Key with full membership in the subnet manager's partitions.conf",
        port::guid(port)
    ))
}

/// Whether an MTU is requested or suggested.
pub fn has_mtu(wish: &IpoibWish) -> bool {
    wish.mtu.is_some() || wish.suggested.mtu.is_some()
}

/// The MTU: a requested MTU is required, a suggested one is at most a warning.
pub fn mtu(wish: &IpoibWish, netdev: &Netdev) -> Finding {
    const ID: Id = Id::IpoibMtu;
    let Some(found) = netdev.mtu else {
        return Finding::unknown(ID);
    };
    let suggested = &wish.suggested;
    match (wish.mtu, suggested.mtu) {
        (Some(RequestedMtu::Bytes(expected)), _) if expected != found => {
            let finding = Finding::failed(ID, &found.to_string(), &expected.to_string());
            let is_datagram = rules::current_mode(netdev) == Some(ipoib::Mode::Datagram);
            match is_datagram && expected > found {
                true => finding.hint(GROUP_MTU),
                false => finding,
            }
        }
        (None, Some(mtu)) if mtu != found => {
            let found = format!("found {found}, {mtu}{}", suggested.by_whom());
            Finding::failed(ID, &found, "")
                .hint("the DHCP server suggested this MTU, and the command line does not request it: the device refused the MTU, or another program changed it; correct option 26 of the DHCP server")
                .as_warning()
        }
        _ => Finding::ok(ID, &found.to_string()),
    }
}

/// The hint if the kernel uses another default route.
const OTHER_DEFAULT: &str = "the default route with the lowest metric is used: give the other one a higher metric, or no gateway \
                             to its interface";

/// What was found in place of a route.
const NO_ROUTE: &str = "the interface does not have this route";

/// Whether a route is requested or suggested.
pub fn has_routes(wish: &IpoibWish) -> bool {
    wish.all_gateways().next().is_some() || wish.all_routes().next().is_some()
}

/// The routes: requested routes are required, suggested ones are at most a warning, and so is another
/// default route before that of the boot device.
pub fn routes(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Finding {
    const ID: Id = Id::RoutePresent;
    let list = |gateways: &[IpAddr]| {
        let texts: Vec<String> = gateways.iter().map(ToString::to_string).collect();
        if texts.is_empty() {
            "no default gateway".to_owned()
        } else {
            format!("default gateway {}", texts.join(", "))
        }
    };
    let missing = |gateway: &&IpAddr| !netdev.gateways.contains(gateway);
    if let Some(gateway) = wish.gateways.iter().find(missing) {
        let finding = Finding::failed(ID, &list(&netdev.gateways), &list(&wish.gateways));
        return blaming_hop(finding, wish, netdev, Some(*gateway));
    }
    if let Some(route) = wish.routes.iter().find(|route| !netdev.has_route(route)) {
        let finding = Finding::failed(ID, NO_ROUTE, &route.to_string());
        return blaming_hop(finding, wish, netdev, route.gateway);
    }
    let suggested = &wish.suggested;
    let warning = |found: &str, route: String| {
        let expected = format!("{route},{}", suggested.by_whom());
        Finding::failed(ID, found, &expected)
            .hint("the DHCP server suggested this route, and the command line does not request it: correct options 3, 33 and 121 of the DHCP server, or look for another program that removes routes")
            .as_warning()
    };
    if let Some(gateway) = suggested.gateway.iter().find(missing) {
        return warning(&list(&netdev.gateways), list(&[*gateway]));
    }
    let mut routes = suggested.routes.iter();
    if let Some(route) = routes.find(|route| !netdev.has_route(route)) {
        return warning(NO_ROUTE, route.to_string());
    }
    if let Some(finding) = outranked(wish, netdev, facts) {
        return finding;
    }
    let gateways = wish.all_gateways().map(ToString::to_string);
    let all: Vec<String> = gateways
        .chain(wish.all_routes().map(ToString::to_string))
        .collect();
    Finding::ok(ID, &all.join(", "))
}

/// The warning if the kernel uses another default route than the requested one of the boot device, or may
/// use it. Other InfiniBand interfaces may have a default route each, as in `changes`, and the owner of
/// the interface, which may not be known, decides the metric.
fn outranked(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Option<Finding> {
    if !wish.boot || facts.owner().is_some() || unread::hides_grants(facts) {
        return None;
    }
    let is_own = |of: &Netdev| of.ifname == netdev.ifname;
    let suggested = &wish.suggested.gateway;
    [false, true].into_iter().find_map(|is_ipv6| {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        // Of an interface that goes away the kernel does not tell the type.
        let is_other = |of: &&Netdev| of.hardware_type.is_some() && !of.is_infiniband();
        let competes = |of: &&Netdev| is_own(of) || is_other(of);
        for of in facts.netdevs.iter().filter(competes) {
            for (Route { network, gateway }, metric) in &of.metrics {
                let is_default = network.prefix == 0 && network.address.is_ipv6() == is_ipv6;
                match gateway {
                    _ if !is_default => {}
                    Some(own_one) if is_own(of) && wish.gateways.contains(own_one) => {
                        own.push((*metric, *own_one));
                    }
                    Some(_) if is_own(of) && gateway == suggested => {}
                    _ => others.push((*metric, *gateway, &of.ifname)),
                }
            }
        }
        let (metric, gateway) = own.into_iter().min()?;
        let (lowest, other, ifname) = others.into_iter().min()?;
        if lowest > metric {
            return None;
        }
        let other = other.map_or("default route".to_owned(), |other| {
            format!("default gateway {other}")
        });
        let which = match lowest == metric {
            true => "the kernel may use",
            false => "the kernel uses",
        };
        let found = format!("{which} {other} of {ifname}, metric {lowest}");
        let expected = format!("default gateway {gateway}, found with metric {metric}");
        let finding = Finding::failed(Id::RoutePresent, &found, &expected);
        Some(finding.hint(OTHER_DEFAULT).as_warning())
    })
}

/// The finding of a missing route, with the next hop to which nothing leads: the kernel refuses the
/// route.
fn blaming_hop(
    finding: Finding,
    wish: &IpoibWish,
    netdev: &Netdev,
    hop: Option<IpAddr>,
) -> Finding {
    // A router may have yet to announce the network; the address of a lease has none.
    let is_network = |a: &Address| a.prefix < 128 && Autoconf::Router.is_met_by(a.address);
    let may_come = |hop: &IpAddr| {
        let mut usable = netdev.addresses_in(AddressState::Usable);
        let is_routed = wish.kernel_autoconf() == Some(Autoconf::Router);
        hop.is_ipv6()
            && is_routed
            && !usable.any(|a| is_network(&a) && !wish.addresses.contains(&a))
    };
    match hop.filter(|hop| !wish.reaches(*hop) && !netdev.reaches(*hop) && !may_come(hop)) {
        Some(hop) => finding.hint(&format!(
            "the gateway {hop} is in no network of this interface: the kernel refuses the route"
        )),
        None => finding,
    }
}

/// Finding of `address.present`: all requested addresses are set and usable.
pub fn addresses(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Finding {
    let finding = all_addresses(wish, netdev);
    let mut static_ones = wish.addresses.iter();
    let has_all = static_ones.all(|a| netdev.state_of(a) == Some(AddressState::Usable));
    let finding = match wish.autoconf {
        Some(Autoconf::Router) if has_all => lease::without_router(finding, wish, netdev, facts),
        _ => finding,
    };
    match finding.status.is_wrong() {
        true => finding,
        false => lease::with_leased(finding, wish, netdev, facts),
    }
}

fn all_addresses(wish: &IpoibWish, netdev: &Netdev) -> Finding {
    let has = |address: &Address, state| netdev.state_of(address) == Some(state);
    let mut expected: Vec<String> = wish.addresses.iter().map(ToString::to_string).collect();
    let mut requested = wish.addresses.iter();
    if let Some(address) = requested.find(|a| has(a, AddressState::Duplicate)) {
        let found = format!("another host uses {address}");
        return Finding::failed(Id::AddressPresent, &found, &expected.join(", "))
            .hint("give this node another address with ip=, or take it from the other host");
    }
    let has_all = || {
        let mut requested = wish.addresses.iter();
        requested.all(|a| has(a, AddressState::Usable))
    };
    let found = wish.autoconf.map(|autoconf| {
        let usable = netdev.addresses_in(AddressState::Usable);
        let mut others = usable.filter(|a| !wish.addresses.contains(a));
        others.find(|other| autoconf.is_met_by(other.address))
    });
    let missing = found == Some(None) || !has_all();
    if missing && !netdev.taken.is_empty() {
        let found = netdev.taken.join(", ");
        return Finding::failed(Id::AddressPresent, &found, &expected.join(", "))
            .hint("give this node another address with ip=, or find the other host by its GUID");
    }
    match (wish.autoconf, found) {
        (_, Some(Some(address))) => expected.push(address.to_string()),
        (Some(autoconf), _) => expected.push(autoconf.word().to_owned()),
        _ => {}
    }
    let awaited = |a: &Address| wish.autoconf.is_some() || wish.addresses.contains(a);
    let mut tentative = netdev.addresses_in(AddressState::Tentative);
    if let Some(address) = tentative.find(awaited).filter(|_| missing) {
        let found = format!("{address} is tentative");
        return Finding::failed(Id::AddressPresent, &found, &expected.join(", "))
            .hint("duplicate address detection takes one second; if the address stays tentative, see ip -6 addr");
    }
    if missing {
        let usable = netdev.addresses_in(AddressState::Usable);
        let usable: Vec<String> = usable.map(|address| address.to_string()).collect();
        let found = if usable.is_empty() {
            "the interface has no usable address".to_owned()
        } else {
            format!("the interface has only {}", usable.join(", "))
        };
        let finding = Finding::failed(Id::AddressPresent, &found, &expected.join(", "));
        return if wish.autoconf == Some(Autoconf::Router) && has_all() {
            finding.hint("see whether a router advertises a prefix on this partition (radvd; on the router: tcpdump -i IF icmp6)")
        } else {
            finding
        };
    }
    let mut unproven = wish.unproven.iter().chain(&netdev.unproven);
    let is_requested = |one: &&Ipv4Addr| {
        wish.addresses
            .iter()
            .any(|address| address.address == **one)
    };
    match unproven.find(is_requested) {
        Some(address) => {
            let found = format!("another host may use {address}: an ARP message was not decoded");
            Finding::unanswered(Id::AddressPresent, &found)
                .hint("look for \"decoder\" in dmesg; ibboot up probes the address again")
        }
        None => Finding::ok(Id::AddressPresent, &expected.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp::v6::lease::Lease;
    use crate::facts::FoundAddress;
    use crate::verify::finding::Status;

    #[test]
    fn a_gateway_is_blamed_only_if_nothing_leads_there() {
        let blamed = |cmdline: &str, found: &[&str]| {
            let expectation = crate::plan::tests::planned(cmdline).expectation;
            let found = found.iter().map(|text| text.parse::<Address>().unwrap());
            let netdev = Netdev {
                addresses: found.map(Into::into).collect(),
                ..Netdev::default()
            };
            let wish = expectation.links[0].ipoib.as_ref().unwrap();
            let hint = routes(wish, &netdev, &Facts::default())
                .hint
                .unwrap_or_default();
            let end = " is in no network of this interface: the kernel refuses the route";
            hint.strip_suffix(end).unwrap_or_default().to_owned()
        };
        let outside = "ip=10.0.0.5::10.9.0.1:24::ib0:none";
        assert_eq!(blamed(outside, &["10.0.0.5/24"]), "the gateway 10.9.0.1");
        assert_eq!(blamed(outside, &["10.0.0.5/24", "10.9.0.7/16"]), "");
        let of_one_host = "ip=10.0.0.5::10.9.0.1:32::ib0:none";
        assert_eq!(blamed(of_one_host, &["10.0.0.5/32"]), "");
        let local = "ip=[fd00::5]::[fe80::1]:64::ib0:none";
        assert_eq!(blamed(local, &["fd00::5/64"]), "");
        // The router may have yet to announce the network.
        let routed = "ip=ib0:dhcp6 rd.route=[fd01::/64]:[fd02::9]:ib0";
        assert_eq!(blamed(routed, &["fd00::5/128"]), "");
        let announced = ["fd00::5/128", "fd00::7/64"];
        assert_eq!(blamed(routed, &announced), "the gateway fd02::9");
    }

    #[test]
    fn a_granted_address_that_a_router_gave_already_has_the_routers_prefix() {
        let lease = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
            "requested_ns":0,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
        let lease: Lease = serde_json::from_str(lease).unwrap();
        let found = |shown: &str| {
            let netdev = Netdev {
                addresses: ["fe80::5/64", shown]
                    .map(|text| text.parse::<Address>().unwrap().into())
                    .to_vec(),
                ..Netdev::default()
            };
            let wish = IpoibWish::default().granted6(&lease, netdev.shown6(lease.address));
            let finding = addresses(&wish, &netdev, &Facts::default());
            (finding.status, finding.found.unwrap_or_default())
        };
        for same in ["fd00::5/64", "fd00::5/128"] {
            assert_eq!(found(same), (Status::Ok, same.to_owned()));
        }
        let other = "the interface has only fe80::5/64, fd00::6/64".to_owned();
        assert_eq!(found("fd00::6/64"), (Status::Critical, other));
        let dead = FoundAddress {
            address: "fd00::5/64".parse().unwrap(),
            state: AddressState::Duplicate,
        };
        let netdev = Netdev {
            addresses: vec![dead],
            ..Netdev::default()
        };
        assert!(netdev.is_duplicate6(lease.address));
        assert_eq!(netdev.shown6(lease.address), Some(dead.address));
    }

    #[test]
    fn while_all_addresses_are_usable_what_else_happened_is_no_failure() {
        let wish = IpoibWish {
            addresses: vec!["10.0.0.5/24".parse().unwrap()],
            autoconf: Some(Autoconf::Router),
            ..IpoibWish::default()
        };
        let usable = |text: &str| text.parse::<Address>().unwrap().into();
        let mut netdev = Netdev {
            addresses: vec![usable("10.0.0.5/24"), usable("fd00::5/64")],
            taken: vec!["another host uses 10.0.0.4".to_owned()],
            ..Netdev::default()
        };
        // The router has announced a second network.
        netdev.addresses.push(FoundAddress {
            address: "fd01::5/64".parse().unwrap(),
            state: AddressState::Tentative,
        });
        let status = |netdev: &Netdev| addresses(&wish, netdev, &Facts::default()).status;
        assert_eq!(status(&netdev), Status::Ok);
        netdev.addresses.remove(1);
        assert_eq!(status(&netdev), Status::Critical);
    }

    #[test]
    fn what_a_server_suggests_is_at_most_a_warning() {
        let lease = r#"{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1","requested_ns":0,
            "seconds":60,"renew_s":30,"rebind_s":50,"mtu":65520,"classless_routes":[
            {"network":"0.0.0.0","prefix":0,"gateway":"10.0.0.9"},
            {"network":"10.7.0.0","prefix":16,"gateway":"10.0.0.7"}]}"#;
        let lease = serde_json::from_str(lease).unwrap();
        let mut wish = IpoibWish::default().granted(&lease);
        let mut netdev = Netdev {
            mtu: Some(2044),
            ..Netdev::default()
        };
        let reported = |finding: Finding| {
            let expected = finding.expected.unwrap_or_default();
            (finding.status, finding.found.unwrap_or_default(), expected)
        };
        let row =
            |status, found: &str, expected: &str| (status, found.to_owned(), expected.to_owned());
        assert!(has_routes(&wish));
        assert_eq!(
            reported(mtu(&wish, &netdev)),
            row(
                Status::Warning,
                "found 2044, 65520 suggested by 10.0.0.1",
                ""
            )
        );
        assert_eq!(
            reported(routes(&wish, &netdev, &Facts::default())),
            row(
                Status::Warning,
                "no default gateway",
                "default gateway 10.0.0.9, suggested by 10.0.0.1"
            )
        );
        netdev.gateways.push("10.0.0.9".parse().unwrap());
        assert_eq!(
            reported(routes(&wish, &netdev, &Facts::default())),
            row(
                Status::Warning,
                NO_ROUTE,
                "10.7.0.0/16 via 10.0.0.7, suggested by 10.0.0.1"
            )
        );
        netdev.routes = wish.suggested.routes.clone();
        let all = "10.0.0.9, 10.7.0.0/16 via 10.0.0.7";
        assert_eq!(
            reported(routes(&wish, &netdev, &Facts::default())),
            row(Status::Ok, all, "")
        );
        // What the command line requests is required.
        wish.mtu = Some(RequestedMtu::Bytes(65520));
        wish.gateways = vec!["10.0.0.2".parse().unwrap()];
        assert_eq!(
            reported(mtu(&wish, &netdev)),
            row(Status::Critical, "2044", "65520")
        );
        assert_eq!(
            reported(routes(&wish, &netdev, &Facts::default())),
            row(
                Status::Critical,
                "default gateway 10.0.0.9",
                "default gateway 10.0.0.2"
            )
        );
    }
}
