// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the checks of the leases of both families.

use super::checks::Id;
use super::unread;
use crate::dhcp::{Granted, v4, v6};
use crate::facts::granted::{ANOTHER, owner};
use crate::facts::{AddressState, Facts, FoundAddress, Netdev, Renewer};
use crate::inet::is_link_local;
use crate::system::clock::SECOND;
use crate::verify::finding::{Finding, Status};
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
    if owner(wish, netdev, facts, Family::Ipv6).is_some() {
        return of_owner(wish, netdev, Family::Ipv6);
    }
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
    if owner(wish, netdev, facts, Family::Ipv4).is_some() {
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
    let is_leased = |found: &&FoundAddress| {
        let own = found.address;
        Family::from(own.address) == family
            && !is_link_local(own.address)
            && !wish.addresses.contains(&own)
    };
    let leased = netdev.addresses.iter().filter(is_leased);
    leased.min_by_key(|found| found.state != AddressState::Usable)
}

/// Whether the owner of the interface renews what this check is about.
pub fn is_left_to_owner(id: Id, wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> bool {
    let family = match id {
        Id::LeasePresent => Family::Ipv4,
        Id::Lease6Present => Family::Ipv6,
        _ => return false,
    };
    owner(wish, netdev, facts, family).is_some()
}

/// The hint about an address that the owner leases.
fn of_log(owner: &str) -> String {
    match owner {
        ANOTHER => format!("{owner} renews the lease"),
        _ => format!("{owner} renews the lease: see journalctl -u {owner}"),
    }
}

/// What was found in place of an address of the owner.
const NO_ADDRESS: &str = "the interface has no such address";

/// A finding about addresses that did not fail, with those that the owner of the interface leases: one
/// of each family must be usable.
pub fn with_leased(finding: Finding, wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Finding {
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
        let Some(owner) = owner(wish, netdev, facts, family) else {
            continue;
        };
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
            .hint(&of_log(owner))
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
    if let Some(owner) = owner(wish, netdev, facts, Family::Ipv4) {
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
                .hint(&of_log(owner))
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
    let client = Known {
        granted,
        diagnosis: progress.diagnosis(),
        refusal: progress.refusal(),
        gave_up: progress.gave_up,
    };
    of_client(ID, client, netdev, facts)
}

/// The DHCPv6 lease.
pub fn evaluate6(wish: &IpoibWish, netdev: &Netdev, facts: &Facts) -> Finding {
    if let Some(owner) = owner(wish, netdev, facts, Family::Ipv6) {
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
    let client = Known {
        granted,
        diagnosis: progress.diagnosis(),
        refusal: progress.refusal(),
        gave_up: progress.gave_up,
    };
    of_client(ID, client, netdev, facts)
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

/// What is known of a client of either family.
struct Known<'p> {
    granted: Option<Granted>,
    /// Cause and hint while there is no lease.
    diagnosis: (String, String),
    /// Why the client requests its lease anew, if a server refused the lease.
    refusal: Option<&'p str>,
    gave_up: bool,
}

fn of_client(id: Id, client: Known<'_>, netdev: &Netdev, facts: &Facts) -> Finding {
    let Some(granted) = client.granted else {
        let (found, hint) = client.diagnosis;
        let finding = missing(id, &found, &hint);
        return if client.gave_up {
            finding.lasting()
        } else {
            finding
        };
    };
    let now_ns = facts.taken_ns;
    let is_renewed = is_renewed(&granted, netdev, facts);
    let is_due = granted.rebinds_ns.is_some_and(|due| now_ns >= due);
    let what = format!(
        "the lease of {} from server {}",
        granted.address, granted.server
    );
    match granted.ends_ns {
        Some(ends) if has_ended(&granted, now_ns) => {
            let seconds = now_ns.saturating_sub(ends) / SECOND;
            let found = format!("{what} expired {seconds} s ago");
            if !is_renewed {
                let found = format!("{found}, and no program renews the lease");
                return Finding::failed(id, &found, "a valid lease").hint(NO_KEEPER);
            }
            Finding::failed(id, &found, "a valid lease")
                .hint("check that ibboot-lease.service runs, then read its log and the log of the DHCP server")
                .as_warning()
        }
        Some(ends) if is_due && !is_renewed => {
            let seconds = ends.saturating_sub(now_ns) / SECOND;
            let found = format!("{what} ends in {seconds} s, and no program renews the lease");
            Finding::failed(id, &found, "a renewed lease")
                .hint(NO_KEEPER)
                .as_warning()
        }
        _ => match client.refusal {
            Some(why) => {
                let found = format!("the lease of {}: {why}", granted.address);
                let finding = Finding::failed(id, &found, "a renewed lease");
                let hint = match is_renewed {
                    true => {
                        "the address is kept and requested again: see the logs of ibboot-lease.service and of the server"
                    }
                    false => NO_KEEPER,
                };
                finding.hint(hint).as_warning()
            }
            None => {
                let (address, server) = (&granted.address, &granted.server);
                Finding::ok(id, &format!("{address} of {server}, {}", granted.length))
            }
        },
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
mod tests;
