// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks of the leases of both families.

use super::checks::Id;
use super::unread;
use crate::dhcp::{Granted, v4, v6};
use crate::facts::{AddressState, Facts, Netdev};
use crate::system::clock::SECOND;
use crate::verify::report::{Finding, Status};
use crate::wish::ipoib::{Autoconf, Family, IpoibWish};

/// The hint if no lease was requested.
const NOT_RUN: &str = "ibboot up requests the lease: check that it ran";

fn progress<'f>(netdev: &Netdev, facts: &'f Facts) -> Option<&'f v4::progress::Progress> {
    let mut all = facts.dhcp.iter();
    all.find(|progress| netdev.ifindex == Some(progress.index))
}

fn progress6<'f>(netdev: &Netdev, facts: &'f Facts) -> Option<&'f v6::progress::Progress> {
    let mut all = facts.dhcp6.iter();
    all.find(|progress| netdev.ifindex == Some(progress.index))
}

/// Whether a DHCPv6 lease is expected. With `either6` none is expected if a router gave an address,
/// or while the wait for a router lasts; the lease that an unreadable file may hold is expected.
pub fn is_wanted6(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> bool {
    let Some(dhcp6) = &wish.dhcp6 else {
        return false;
    };
    if dhcp6.after_router_s.is_none() || unread::hides_grants(facts) {
        return true;
    }
    let of_router = has_router_address(wish, netdev);
    progress6(netdev, facts).is_some_and(|progress| progress.lease.is_some() || !of_router)
}

/// Whether the interface has an address of a router's prefix in addition to the requested ones.
pub fn has_router_address(wish: &IpoibWish, netdev: &Netdev) -> bool {
    let usable = netdev.addresses_in(AddressState::Usable);
    let mut others = usable.filter(|a| !wish.addresses.contains(a));
    others.any(|other| Autoconf::Router.is_met_by(other.address))
}

/// What is known of the other address family of an interface.
struct Other {
    /// The interface has an address of it.
    is_there: bool,
    /// Its client does not give up.
    is_open: bool,
}

/// The IPv6 addresses of servers and routers.
fn ipv6(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Other {
    let client = progress6(netdev, facts);
    let of_router = wish.autoconf == Some(Autoconf::Router) && has_router_address(wish, netdev);
    Other {
        is_there: of_router || client.is_some_and(|client| client.lease.is_some()),
        is_open: wish.dhcp6.is_none() || client.is_none_or(|client| !client.gave_up),
    }
}

fn ipv4(netdev: &Netdev, facts: &Facts) -> Other {
    let client = progress(netdev, facts);
    Other {
        is_there: client.is_some_and(|client| client.lease.is_some()),
        is_open: client.is_none_or(|client| !client.gave_up),
    }
}

/// A missing family: a warning if the other one is enough, and no reason to give up while the other
/// one may come.
fn spared(finding: Finding, wish: &IpoibWish, family: Family, other: &Other) -> Finding {
    if finding.status != Status::Critical || !wish.may_lack(family) {
        return finding;
    }
    let is_over = wish
        .second_family
        .as_ref()
        .is_some_and(|second| second.is_over);
    let is_waited_for = !is_over && !finding.lasting;
    match other {
        Other { is_there: true, .. } if !is_waited_for => finding.as_warning().passing(),
        Other { is_there: true, .. } | Other { is_open: true, .. } => finding.passing(),
        _ => finding,
    }
}

/// The finding about a router's address that is missing beside a lease of DHCP.
pub fn without_router(
    finding: Finding,
    wish: &IpoibWish,
    netdev: &Netdev,
    facts: &Facts,
) -> Finding {
    spared(finding, wish, Family::Ipv6, &ipv4(netdev, facts))
}

/// The DHCP lease.
pub fn evaluate(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Finding {
    let other = ipv6(wish, netdev, facts);
    spared(of_ipv4(netdev, facts), wish, Family::Ipv4, &other)
}

fn of_ipv4(netdev: &Netdev, facts: &Facts) -> Finding {
    const ID: Id = Id::LeasePresent;
    let Some(progress) = progress(netdev, facts) else {
        return missing(ID, "no lease was requested", NOT_RUN);
    };
    let granted = progress.lease.as_ref().map(v4::lease::Lease::granted);
    let diagnosis = progress.diagnosis();
    of_client(ID, granted, diagnosis, progress.gave_up, facts.taken_ns)
}

/// The DHCPv6 lease.
pub fn evaluate6(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Finding {
    let other = ipv4(netdev, facts);
    spared(of_ipv6(netdev, facts), wish, Family::Ipv6, &other)
}

fn of_ipv6(netdev: &Netdev, facts: &Facts) -> Finding {
    const ID: Id = Id::Lease6Present;
    let Some(progress) = progress6(netdev, facts) else {
        let (found, hint) = not_begun(netdev);
        return missing(ID, &found, hint);
    };
    let granted = progress.lease.as_ref().map(v6::lease::Lease::granted);
    let diagnosis = progress.diagnosis();
    of_client(ID, granted, diagnosis, progress.gave_up, facts.taken_ns)
}

fn missing(id: Id, found: &str, hint: &str) -> Finding {
    Finding::failed(id, found, "a lease").hint(hint)
}

/// The finding about a client at `now_ns`, ns since kernel start; `diagnosis` is the reason and the
/// hint if there is no lease.
fn of_client(
    id: Id,
    granted: Option<Granted>,
    diagnosis: (String, String),
    gave_up: bool,
    now_ns: u64,
) -> Finding {
    let Some(granted) = granted else {
        let (found, hint) = diagnosis;
        let finding = missing(id, &found, &hint);
        return if gave_up { finding.lasting() } else { finding };
    };
    let what = format!("{} of {}", granted.address, granted.server);
    match granted.ends_ns {
        Some(ends) if now_ns >= ends => {
            let seconds = (now_ns - ends) / SECOND;
            let found = format!("{what}, expired {seconds} s ago");
            Finding::failed(id, &found, "a valid lease")
                .hint("the address is kept and a new lease is requested: see the logs of ibboot-lease.service and of the server")
                .as_warning()
        }
        _ => Finding::ok(id, &format!("{what}, {}", granted.length)),
    }
}

/// Why no lease was requested: the request needs a link-local address.
fn not_begun(netdev: &Netdev) -> (String, &'static str) {
    let of_link = |state| {
        let mut all = netdev.addresses_in(state);
        all.find(|found| Autoconf::LinkLocal.is_met_by(found.address))
    };
    if netdev.link_local().is_some() {
        return ("no lease was requested".to_owned(), NOT_RUN);
    }
    if let Some(address) = of_link(AddressState::Duplicate) {
        return (
            format!("another host has the link-local address {address}"),
            "two ports have the same GUID: see ibstat on both hosts",
        );
    }
    if let Some(address) = of_link(AddressState::Tentative) {
        return (
            format!("the link-local address {address} is tentative"),
            "duplicate address detection takes one second; if the address stays tentative, see ip -6 addr",
        );
    }
    (
        "no link-local address to send from".to_owned(),
        "check that the kernel has IPv6 (ipv6.disable=) and that addr_gen_mode is 0",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp::v6::Dhcp6Wish;
    use crate::facts::{FoundAddress, Unread};
    use crate::inet::Address;
    use crate::wish::ipoib::SecondFamily;

    fn found(netdev: &Netdev, facts: &Facts) -> (Status, String) {
        let finding = of_ipv6(netdev, facts);
        (finding.status, finding.found.unwrap_or_default())
    }

    fn netdev(addresses: &[&str]) -> Netdev {
        Netdev {
            ifindex: Some(4),
            addresses: addresses.iter().map(|text| usable(text)).collect(),
            ..Netdev::default()
        }
    }

    /// Until 65 s after the start of the kernel.
    fn lease4() -> v4::lease::Lease {
        let json = r#"{"address":"10.0.0.5","prefix":24,"server":"10.0.0.1",
            "requested_ns":5000000000,"seconds":60,"renew_s":30,"rebind_s":50}"#;
        serde_json::from_str(json).unwrap()
    }

    fn lease6() -> v6::lease::Lease {
        let json = r#"{"address":"fd00::5","server":"fe80::1","server_id":"00:03:00:01",
            "requested_ns":5000000000,"seconds":60,"preferred_s":60,"renew_s":30,"rebind_s":50}"#;
        serde_json::from_str(json).unwrap()
    }

    fn usable(text: &str) -> FoundAddress {
        text.parse::<Address>().unwrap().into()
    }

    #[test]
    fn before_it_begins_the_link_local_address_tells_why() {
        let facts = Facts::default();
        let link = |state| FoundAddress {
            state,
            ..usable("fe80::5/64")
        };
        let mut one = netdev(&["fd00::9/64"]);
        let none = "no link-local address to send from".to_owned();
        assert_eq!(found(&one, &facts), (Status::Critical, none));
        one.addresses.push(link(AddressState::Tentative));
        let tentative = "the link-local address fe80::5/64 is tentative".to_owned();
        assert_eq!(found(&one, &facts), (Status::Critical, tentative));
        one.addresses.push(link(AddressState::Duplicate));
        let taken = "another host has the link-local address fe80::5/64".to_owned();
        assert_eq!(found(&one, &facts), (Status::Critical, taken));
        one.addresses.push(link(AddressState::Usable));
        let unasked = "no lease was requested".to_owned();
        assert_eq!(found(&one, &facts), (Status::Critical, unasked));
    }

    #[test]
    fn a_lease_that_has_ended_is_a_warning_with_its_age() {
        let mut facts = Facts {
            dhcp6: vec![v6::progress::Progress {
                index: 4,
                lease: Some(lease6()),
                ..v6::progress::Progress::default()
            }],
            taken_ns: 64 * SECOND,
            ..Facts::default()
        };
        let one = netdev(&[]);
        let other = Netdev {
            ifindex: Some(5),
            ..Netdev::default()
        };
        let none = "no link-local address to send from".to_owned();
        assert_eq!(found(&other, &facts), (Status::Critical, none));
        let what = "fd00::5/128 of fe80::1".to_owned();
        assert_eq!(
            found(&one, &facts),
            (Status::Ok, format!("{what}, for 60 s"))
        );
        facts.taken_ns = 95 * SECOND;
        let ended = format!("{what}, expired 30 s ago");
        assert_eq!(found(&one, &facts), (Status::Warning, ended));
    }

    #[test]
    fn with_either6_a_routers_address_is_as_good_as_a_lease() {
        let mut wish = IpoibWish {
            autoconf: Some(Autoconf::Router),
            dhcp6: Some(Dhcp6Wish {
                after_router_s: Some(10),
                ..Dhcp6Wish::default()
            }),
            ..IpoibWish::default()
        };
        let mut facts = Facts::default();
        let bare = netdev(&["fe80::5/64"]);
        let routed = netdev(&["fe80::5/64", "fd00::5/64"]);
        assert!(!is_wanted6(&wish, &bare, &facts), "a router is waited for");
        facts.dhcp6.push(v6::progress::Progress {
            index: 4,
            ..v6::progress::Progress::default()
        });
        assert!(is_wanted6(&wish, &bare, &facts));
        assert!(!is_wanted6(&wish, &routed, &facts));
        let address_of_the_command_line = IpoibWish {
            addresses: vec!["fd00::5/64".parse().unwrap()],
            ..wish.clone()
        };
        assert!(is_wanted6(&address_of_the_command_line, &routed, &facts));
        facts.dhcp6[0].lease = Some(lease6());
        assert!(is_wanted6(&wish, &routed, &facts), "it may have ended");
        facts.dhcp6.clear();
        facts.unread.push(Unread {
            path: "/run/ibboot/state.json".to_owned(),
            why: "Permission denied".to_owned(),
        });
        assert!(is_wanted6(&wish, &routed, &facts), "it may have ended");
        wish.dhcp6 = Some(Dhcp6Wish::default());
        assert!(is_wanted6(&wish, &routed, &Facts::default()));
        wish.dhcp6 = None;
        assert!(!is_wanted6(&wish, &bare, &facts));
    }

    #[test]
    fn a_lease_of_dhcp_that_has_ended_is_a_warning_with_its_age() {
        let netdev = netdev(&[]);
        let mut facts = Facts {
            dhcp: vec![v4::progress::Progress {
                index: 4,
                lease: Some(lease4()),
                ..v4::progress::Progress::default()
            }],
            ..Facts::default()
        };
        let found = |facts: &Facts| {
            let finding = of_ipv4(&netdev, facts);
            (finding.status, finding.found.unwrap_or_default())
        };
        facts.taken_ns = 64 * SECOND;
        let what = "10.0.0.5/24 of 10.0.0.1".to_owned();
        assert_eq!(found(&facts), (Status::Ok, format!("{what}, for 60 s")));
        facts.taken_ns = 95 * SECOND;
        let ended = format!("{what}, expired 30 s ago");
        assert_eq!(found(&facts), (Status::Warning, ended));
        facts.dhcp[0].index = 5;
        let nobody = "no lease was requested".to_owned();
        assert_eq!(found(&facts), (Status::Critical, nobody));
    }

    #[test]
    fn one_family_is_enough_when_the_wait_is_over() {
        let other = |is_there, is_open| Other { is_there, is_open };
        let failed = || Finding::failed(Id::LeasePresent, "nobody answers", "a lease");
        let wish = |is_over, needed| IpoibWish {
            second_family: Some(SecondFamily {
                wait_s: 20,
                needed,
                is_over,
            }),
            ..IpoibWish::default()
        };
        let (warning, critical) = (Status::Warning, Status::Critical);
        let ipv4 = Some(Family::Ipv4);
        for (is_over, needed, gave_up, other, status, lasting) in [
            (false, None, false, other(true, true), critical, false),
            (true, None, false, other(true, true), warning, false),
            (false, None, true, other(true, true), warning, false),
            // The other family may still come; then it cannot.
            (true, None, true, other(false, true), critical, false),
            (true, None, true, other(false, false), critical, true),
            // The server of the root file system has an IPv4 address.
            (true, ipv4, false, other(true, true), critical, false),
            (
                true,
                Some(Family::Ipv6),
                false,
                other(true, true),
                warning,
                false,
            ),
        ] {
            let finding = if gave_up {
                failed().lasting()
            } else {
                failed()
            };
            let found = spared(finding, &wish(is_over, needed), Family::Ipv4, &other);
            assert_eq!((found.status, found.lasting), (status, lasting));
        }
        let single = spared(
            failed(),
            &IpoibWish::default(),
            Family::Ipv4,
            &other(true, true),
        );
        assert_eq!(single.status, critical);
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Client {
        Holds,
        Asks,
        GaveUp,
    }
    use Client::{Asks, GaveUp, Holds};

    fn clients(dhcp: Client, dhcp6: Client) -> Facts {
        Facts {
            dhcp: vec![v4::progress::Progress {
                index: 4,
                lease: (dhcp == Holds).then(lease4),
                gave_up: dhcp == GaveUp,
                ..v4::progress::Progress::default()
            }],
            dhcp6: vec![v6::progress::Progress {
                index: 4,
                lease: (dhcp6 == Holds).then(lease6),
                gave_up: dhcp6 == GaveUp,
                ..v6::progress::Progress::default()
            }],
            ..Facts::default()
        }
    }

    /// An interface whose wait for the second family is over.
    fn both(needed: Option<Family>, autoconf: Option<Autoconf>) -> IpoibWish {
        IpoibWish {
            dhcp6: autoconf.is_none().then(Dhcp6Wish::default),
            autoconf,
            second_family: Some(SecondFamily {
                wait_s: 20,
                needed,
                is_over: true,
            }),
            ..IpoibWish::default()
        }
    }

    #[test]
    fn each_family_is_spared_by_what_the_other_one_has() {
        let (ok, warning) = ((Status::Ok, false), (Status::Warning, false));
        let (passing, lasting) = ((Status::Critical, false), (Status::Critical, true));
        let root = Some(Family::Ipv4);
        for (dhcp, dhcp6, needed, of_ipv4, of_ipv6) in [
            (Holds, Holds, None, ok, ok),
            (Asks, Holds, None, warning, ok),
            (Holds, Asks, None, ok, warning),
            (Asks, Holds, root, passing, ok),
            (Holds, Asks, root, ok, warning),
            (Asks, Asks, None, passing, passing),
            (GaveUp, Asks, None, passing, passing),
            (Asks, GaveUp, None, passing, passing),
            (GaveUp, GaveUp, None, lasting, lasting),
        ] {
            let (wish, facts) = (both(needed, None), clients(dhcp, dhcp6));
            let found = [evaluate, evaluate6].map(|evaluate| {
                let finding = evaluate(&wish, &netdev(&["fe80::5/64"]), &facts);
                (finding.status, finding.lasting)
            });
            assert_eq!(found, [of_ipv4, of_ipv6]);
        }
    }

    #[test]
    fn a_routers_address_and_a_lease_of_dhcp_spare_each_other() {
        let (bare, routed) = (netdev(&["fe80::5/64"]), netdev(&["fd00::5/64"]));
        let router = both(None, Some(Autoconf::Router));
        let lease = |wish, netdev| evaluate(wish, netdev, &clients(Asks, Asks)).status;
        assert_eq!(lease(&router, &routed), Status::Warning);
        assert_eq!(lease(&router, &bare), Status::Critical);
        // Nobody requested this address.
        assert_eq!(lease(&both(None, None), &routed), Status::Critical);
        let address = |dhcp| {
            let missing = Finding::failed(Id::AddressPresent, "none", "an address");
            without_router(missing, &router, &bare, &clients(dhcp, Asks)).status
        };
        assert_eq!(address(Holds), Status::Warning);
        assert_eq!(address(Asks), Status::Critical);
    }
}
