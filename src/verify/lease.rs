// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the checks of the leases of both families.

use std::net::IpAddr;

use super::checks::Id;
use super::unread;
use crate::dhcp::{Granted, v4, v6};
use crate::facts::{AddressState, Facts, FoundAddress, Netdev, Renewer};
use crate::system::clock::SECOND;
use crate::verify::report::{Finding, Status};
use crate::wish::ipoib::{Autoconf, Family, IpoibWish};

/// The hint if nothing renews a lease.
const NO_KEEPER: &str = "systemctl enable --now ibboot-lease.service";

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
    let lease = client.and_then(|client| client.lease.as_ref());
    let granted = lease.map(v6::lease::Lease::granted);
    Other {
        is_there: of_router || granted.is_some_and(|granted| !is_lost(&granted, netdev, facts)),
        is_open: wish.dhcp6.is_none() || client.is_none_or(|client| !client.gave_up),
    }
}

fn ipv4(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Other {
    if facts.owner().is_some() {
        return of_owner(wish, netdev, Family::Ipv4);
    }
    let client = progress(netdev, facts);
    let lease = client.and_then(|client| client.lease.as_ref());
    let granted = lease.map(v4::lease::Lease::granted);
    Other {
        is_there: granted.is_some_and(|granted| !is_lost(&granted, netdev, facts)),
        is_open: client.is_none_or(|client| !client.gave_up),
    }
}

/// What the owner of the interface has of a family: its client is not known.
fn of_owner(wish: &IpoibWish, netdev: &Netdev, family: Family) -> Other {
    Other {
        is_there: leased_by_owner(wish, netdev, family)
            .is_some_and(|found| found.state == AddressState::Usable),
        is_open: false,
    }
}

/// The address of a family that the owner of the interface leased, whatever its value: a usable one
/// if there is one.
fn leased_by_owner<'n>(
    wish: &IpoibWish,
    netdev: &'n Netdev,
    family: Family,
) -> Option<&'n FoundAddress> {
    let is_local = |address| match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(_) => Autoconf::LinkLocal.is_met_by(address),
    };
    let is_leased = |found: &&FoundAddress| {
        let own = found.address;
        Family::from(own.address) == family
            && !is_local(own.address)
            && !wish.addresses.contains(&own)
    };
    let leased = netdev.addresses.iter().filter(is_leased);
    leased.min_by_key(|found| found.state != AddressState::Usable)
}

/// Whether the owner of the interface renews what this check is about.
pub fn is_left_to_owner(id: Id, facts: &Facts) -> bool {
    facts.owner().is_some() && matches!(id, Id::LeasePresent | Id::Lease6Present)
}

/// What was found in place of an address of the owner.
const NO_ADDRESS: &str = "the interface has no such address";

/// A finding about addresses that did not fail, with those that the owner of the interface leases: one
/// of each family must be usable.
pub fn with_leased(finding: Finding, wish: &IpoibWish, netdev: &Netdev, owner: &str) -> Finding {
    // A router's address that is expected in place of a lease was looked for already.
    let is_routed = wish.autoconf == Some(Autoconf::Router);
    let families = [
        wish.dhcp.as_ref().map(|_| (Family::Ipv4, Family::Ipv6)),
        wish.dhcp6
            .as_ref()
            .filter(|_| !is_routed)
            .map(|_| (Family::Ipv6, Family::Ipv4)),
    ];
    let mut worst = finding;
    for (family, other) in families.into_iter().flatten() {
        let found = match leased_by_owner(wish, netdev, family) {
            Some(found) if found.state == AddressState::Usable => {
                if worst.status == Status::Ok {
                    let all = worst.found.iter().cloned();
                    let all: Vec<String> = all.chain([found.address.to_string()]).collect();
                    worst = Finding::ok(worst.check, &all.join(", "));
                }
                continue;
            }
            Some(found) if found.state == AddressState::Duplicate => {
                format!("another host uses {}", found.address)
            }
            Some(found) => format!("{} is tentative", found.address),
            None => NO_ADDRESS.to_owned(),
        };
        let expected = match family {
            Family::Ipv4 => "an IPv4 address of a DHCP server",
            Family::Ipv6 => "an IPv6 address of a DHCPv6 server",
        };
        let missing = Finding::failed(Id::AddressPresent, &found, expected)
            .hint(&format!(
                "{owner} renews the lease: see journalctl -u {owner}"
            ))
            .lasting();
        let other = of_owner(wish, netdev, other);
        let missing = spared(missing, wish, family, &other).passing();
        if missing.status > worst.status {
            worst = missing;
        }
    }
    worst
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
    spared(finding, wish, Family::Ipv6, &ipv4(wish, netdev, facts))
}

/// The DHCP lease.
pub fn evaluate(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Finding {
    if let Some(owner) = facts.owner() {
        let lease = progress(netdev, facts).and_then(|progress| progress.lease.as_ref());
        let granted = lease.map(v4::lease::Lease::granted);
        return left_to(Id::LeasePresent, owner, granted, wish, netdev, facts);
    }
    let other = ipv6(wish, netdev, facts);
    spared(of_ipv4(netdev, facts), wish, Family::Ipv4, &other)
}

/// The owner of the interface renews the lease; [`with_leased`] is about its address. An address without
/// a lifetime that outlives the lease of the boot is not the owner's.
fn left_to(
    id: Id,
    owner: &str,
    granted: Option<Granted>,
    wish: &IpoibWish,
    netdev: &Netdev,
    facts: &Facts,
) -> Finding {
    // systemd-networkd gives no lifetime to an address that outlives its lease (KeepConfiguration=yes).
    let may_be_kept = wish.must_keep() || !wish.addresses.is_empty();
    let is_stale = |granted: &Granted| {
        let address = granted.address.address;
        let mut addresses = netdev.addresses.iter();
        has_ended(granted, facts.taken_ns)
            && addresses.any(|found| found.address.address == address)
            && !netdev.dynamic.contains(&address)
    };
    match granted.filter(|granted| !may_be_kept && is_stale(granted)) {
        Some(granted) => {
            let found = format!(
                "the lease of {} from the boot has expired, and the address has no lifetime",
                granted.address
            );
            Finding::failed(id, &found, &format!("a lease of {owner}"))
                .hint(&format!(
                    "{owner} renews the lease: see journalctl -u {owner}"
                ))
                .as_warning()
        }
        None => Finding {
            found: Some(format!("{owner} renews the lease")),
            ..Finding::skipped(id)
        },
    }
}

fn of_ipv4(netdev: &Netdev, facts: &Facts) -> Finding {
    const ID: Id = Id::LeasePresent;
    let Some(progress) = progress(netdev, facts) else {
        return missing(ID, "no lease was requested", NOT_RUN);
    };
    let granted = progress.lease.as_ref().map(v4::lease::Lease::granted);
    let diagnosis = progress.diagnosis();
    of_client(ID, granted, diagnosis, progress.gave_up, netdev, facts)
}

/// The DHCPv6 lease.
pub fn evaluate6(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Finding {
    if let Some(owner) = facts.owner() {
        let lease = progress6(netdev, facts).and_then(|progress| progress.lease.as_ref());
        let granted = lease.map(v6::lease::Lease::granted);
        return left_to(Id::Lease6Present, owner, granted, wish, netdev, facts);
    }
    let other = ipv4(wish, netdev, facts);
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
    of_client(ID, granted, diagnosis, progress.gave_up, netdev, facts)
}

fn missing(id: Id, found: &str, hint: &str) -> Finding {
    Finding::failed(id, found, "a lease").hint(hint)
}

/// Whether the lease has ended at `now_ns`, ns since kernel start.
fn has_ended(granted: &Granted, now_ns: u64) -> bool {
    granted.ends_ns.is_some_and(|ends| now_ns >= ends)
}

/// Whether something renews the lease. A lifetime of its address is of another program, which renews
/// it: ibboot sets none.
fn is_renewed(granted: &Granted, netdev: &Netdev, facts: &Facts) -> bool {
    facts.renewer != Some(Renewer::Nobody) || netdev.dynamic.contains(&granted.address.address)
}

/// Whether the lease has ended and nothing requests a new one.
fn is_lost(granted: &Granted, netdev: &Netdev, facts: &Facts) -> bool {
    has_ended(granted, facts.taken_ns) && !is_renewed(granted, netdev, facts)
}

/// The finding about a client; `diagnosis` is the reason and the hint if there is no lease.
fn of_client(
    id: Id,
    granted: Option<Granted>,
    diagnosis: (String, String),
    gave_up: bool,
    netdev: &Netdev,
    facts: &Facts,
) -> Finding {
    let Some(granted) = granted else {
        let (found, hint) = diagnosis;
        let finding = missing(id, &found, &hint);
        return if gave_up { finding.lasting() } else { finding };
    };
    let now_ns = facts.taken_ns;
    let is_renewed = is_renewed(&granted, netdev, facts);
    let is_due = granted.rebinds_ns.is_some_and(|due| now_ns >= due);
    let what = format!("{} of {}", granted.address, granted.server);
    match granted.ends_ns {
        Some(ends) if has_ended(&granted, now_ns) => {
            let seconds = now_ns.saturating_sub(ends) / SECOND;
            let found = format!("{what}, expired {seconds} s ago");
            if !is_renewed {
                let found = format!("{found}, and nothing renews it");
                return Finding::failed(id, &found, "a valid lease").hint(NO_KEEPER);
            }
            Finding::failed(id, &found, "a valid lease")
                .hint("the address is kept and a new lease is requested: see the logs of ibboot-lease.service and of the server")
                .as_warning()
        }
        Some(ends) if is_due && !is_renewed => {
            let seconds = ends.saturating_sub(now_ns) / SECOND;
            let found = format!("{what}, ends in {seconds} s, and nothing renews it");
            Finding::failed(id, &found, "a renewed lease")
                .hint(NO_KEEPER)
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
            format!("another host uses the link-local address {address}"),
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
    use crate::facts::Unread;
    use crate::facts::granted::expected;
    use crate::inet::Address;
    use crate::verify::interface::addresses;
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
        let taken = "another host uses the link-local address fe80::5/64".to_owned();
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
    fn a_lease_that_nothing_renews_is_a_warning_from_t2_on_and_critical_at_its_end() {
        let mut one = netdev(&["10.0.0.5/24", "fd00::5/128"]);
        let both = |one: &Netdev, renewer, now_s: u64| {
            let facts = Facts {
                renewer,
                taken_ns: now_s * SECOND,
                ..clients(Holds, Holds)
            };
            let found = [of_ipv4(one, &facts), of_ipv6(one, &facts)];
            found.map(|f| (f.status, f.found.unwrap_or_default(), f.hint))
        };
        let what = ["10.0.0.5/24 of 10.0.0.1, ", "fd00::5/128 of fe80::1, "];
        let hint = Some(NO_KEEPER.to_owned());
        let nobody = Some(Renewer::Nobody);
        for (now_s, status, words, hint) in [
            (54, Status::Ok, "for 60 s", None),
            (
                55,
                Status::Warning,
                "ends in 10 s, and nothing renews it",
                hint.clone(),
            ),
            (
                65,
                Status::Critical,
                "expired 0 s ago, and nothing renews it",
                hint,
            ),
        ] {
            let row = what.map(|what| (status, format!("{what}{words}"), hint.clone()));
            assert_eq!(both(&one, nobody, now_s), row);
        }
        for renewer in [None, Some(Renewer::Keeper)] {
            let statuses = |now_s| both(&one, renewer, now_s).map(|(status, ..)| status);
            assert_eq!(statuses(64), [Status::Ok; 2]);
            assert_eq!(statuses(65), [Status::Warning; 2]);
        }
        // Another program gave the addresses a lifetime.
        one.dynamic = one.addresses.iter().map(|a| a.address.address).collect();
        let statuses = |now_s| both(&one, nobody, now_s).map(|(status, ..)| status);
        assert_eq!(statuses(64), [Status::Ok; 2]);
        assert_eq!(statuses(65), [Status::Warning; 2]);
    }

    #[test]
    fn a_lease_for_ever_needs_nobody() {
        let mut facts = Facts {
            renewer: Some(Renewer::Nobody),
            taken_ns: u64::MAX,
            ..clients(Holds, Asks)
        };
        facts.dhcp[0].lease.as_mut().unwrap().seconds = u32::MAX;
        let finding = of_ipv4(&netdev(&[]), &facts);
        assert_eq!(finding.status, Status::Ok);
    }

    #[test]
    fn a_family_whose_lease_is_lost_spares_no_other() {
        let (wish, one) = (both(None, None), netdev(&["fe80::5/64"]));
        let statuses = |renewer, now_s| {
            let facts = Facts {
                renewer: Some(renewer),
                taken_ns: now_s * SECOND,
                ..clients(Holds, Holds)
            };
            [evaluate, evaluate6].map(|evaluate| evaluate(&wish, &one, &facts).status)
        };
        assert_eq!(statuses(Renewer::Nobody, 65), [Status::Critical; 2]);
        assert_eq!(statuses(Renewer::Keeper, 65), [Status::Warning; 2]);
    }

    #[test]
    fn of_the_owner_any_usable_address_of_each_leased_family_is_expected() {
        let wish = |cmdline: &str| {
            let expectation = crate::plan::tests::planned(cmdline).expectation;
            expectation.links[0].ipoib.clone().unwrap()
        };
        let facts = Facts {
            renewer: Some(Renewer::Owner("NetworkManager")),
            // The leases of the initramfs: they count no more.
            ..clients(Holds, Holds)
        };
        let found = |cmdline: &str, here: &[&str]| {
            let wish = expected(&wish(cmdline), &netdev(here), &facts);
            let finding = addresses(&wish, &netdev(here), &facts);
            let expected = finding.expected.unwrap_or_default();
            let found = finding.found.unwrap_or_default();
            (finding.status, found, expected)
        };
        let ok = |text: &str| (Status::Ok, text.to_owned(), String::new());
        let none = |status, what: &str| (status, NO_ADDRESS.to_owned(), what.to_owned());
        let (of_v4, of_v6) = (
            "an IPv4 address of a DHCP server",
            "an IPv6 address of a DHCPv6 server",
        );
        let local = ["fe80::5/64", "169.254.0.5/16"];
        let with = |more: &[&'static str]| [&local[..], more].concat();
        let (v4, v6) = ("ip=ib0:dhcp", "ip=ib0:dhcp6");
        assert_eq!(found(v4, &with(&["10.9.0.7/16"])), ok("10.9.0.7/16"));
        assert_eq!(
            found(v4, &with(&["fd00::5/128"])),
            none(Status::Critical, of_v4)
        );
        assert_eq!(found(v6, &with(&["fd09::7/128"])), ok("fd09::7/128"));
        assert_eq!(
            found(v6, &with(&["10.0.0.5/24"])),
            none(Status::Critical, of_v6)
        );
        // What the command line requests is compared, and is no leased address.
        let fixed = "ip=ib0:dhcp ip=10.7.0.2:::24::ib0:none";
        assert_eq!(
            found(fixed, &with(&["10.7.0.2/24"])),
            none(Status::Critical, of_v4)
        );
        assert_eq!(
            found(fixed, &with(&["10.7.0.2/24", "10.0.0.9/24"])),
            ok("10.7.0.2/24, 10.0.0.9/24")
        );
        assert_eq!(
            found(fixed, &with(&["10.0.0.9/24"])).2,
            "10.7.0.2/24".to_owned()
        );
        // One family is enough, unless the root file system needs the other one.
        let both = "ip=ib0:dhcp,dhcp6";
        assert_eq!(
            found(both, &with(&["10.0.0.9/24"])),
            none(Status::Warning, of_v6)
        );
        assert_eq!(
            found(both, &with(&["fd00::9/128"])),
            none(Status::Warning, of_v4)
        );
        assert_eq!(found(both, &with(&[])), none(Status::Critical, of_v4));
        let rooted = "ip=ib0:dhcp,dhcp6 root=nfs:[fd00::1]:/x";
        assert_eq!(
            found(rooted, &with(&["10.0.0.9/24"])),
            none(Status::Critical, of_v6)
        );
        // A router's address is enough.
        let either = "ip=ib0:either6";
        assert_eq!(found(either, &with(&["fd00::9/64"])), ok("fd00::9/64"));
        assert_eq!(found(either, &with(&[])).0, Status::Critical);
    }

    #[test]
    fn an_address_of_the_owner_that_is_not_usable_is_named() {
        let wish = IpoibWish {
            dhcp6: Some(Dhcp6Wish::default()),
            ..IpoibWish::default()
        };
        for (state, words) in [
            (AddressState::Tentative, "fd00::7/128 is tentative"),
            (AddressState::Duplicate, "another host uses fd00::7/128"),
        ] {
            let mut one = netdev(&["fe80::5/64"]);
            one.addresses.push(FoundAddress {
                state,
                ..usable("fd00::7/128")
            });
            let before = Finding::ok(Id::AddressPresent, "");
            let finding = with_leased(before, &wish, &one, "systemd-networkd");
            let found = finding.found.as_deref();
            assert_eq!((finding.status, found), (Status::Critical, Some(words)));
        }
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
