// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the judgement of leases, for each that may renew them.

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

fn owned() -> Facts {
    Facts {
        renewer: Some(Renewer::Owner("systemd-networkd")),
        ..Facts::default()
    }
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
    let ended = "the lease of fd00::5/128 from server fe80::1 expired 30 s ago".to_owned();
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
        obstacle: None,
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
    let ended = "the lease of 10.0.0.5/24 from server 10.0.0.1 expired 30 s ago".to_owned();
    assert_eq!(found(&facts), (Status::Warning, ended));
    facts.dhcp[0].index = 5;
    let nobody = "no lease was requested".to_owned();
    assert_eq!(found(&facts), (Status::Critical, nobody));
}

#[test]
fn a_lease_that_is_kept_after_a_refusal_is_a_warning() {
    let one = netdev(&["10.0.0.5/24", "fd00::5/128"]);
    let mut facts = Facts {
        dhcp: vec![v4::progress::Progress {
            index: 4,
            lease: Some(lease4()),
            ..v4::progress::Progress::default()
        }],
        dhcp6: vec![v6::progress::Progress {
            index: 4,
            lease: Some(lease6()),
            ..v6::progress::Progress::default()
        }],
        taken_ns: 10 * SECOND,
        ..Facts::default()
    };
    facts.dhcp[0].counts.why_refused = Some("no".to_owned());
    facts.dhcp6[0].counts.why_refused = Some("no".to_owned());
    let found = |finding: Finding| (finding.status, finding.found.unwrap_or_default());
    let refused = |lease: &str| (Status::Warning, format!("the lease of {lease}: no"));
    let holds = |lease: &str| (Status::Ok, format!("{lease}, for 60 s"));
    let (what, held) = ("10.0.0.5/24", "10.0.0.5/24 of 10.0.0.1");
    for (state, expected) in [
        (v4::progress::State::Selecting, refused(what)),
        (v4::progress::State::Rebooting, refused(what)),
        // The refusal was before the lease.
        (v4::progress::State::Bound, holds(held)),
        (v4::progress::State::Renewing, holds(held)),
    ] {
        facts.dhcp[0].state = state;
        assert_eq!(found(of_ipv4(&one, &facts)), expected, "{state:?}");
    }
    let (what, held) = ("fd00::5/128", "fd00::5/128 of fe80::1");
    for (state, expected) in [
        (v6::progress::State::Soliciting, refused(what)),
        (v6::progress::State::Waiting, refused(what)),
        (v6::progress::State::Rebinding, holds(held)),
    ] {
        facts.dhcp6[0].state = state;
        assert_eq!(found(of_ipv6(&one, &facts)), expected, "{state:?}");
    }
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
    let held = ["10.0.0.5/24 of 10.0.0.1, ", "fd00::5/128 of fe80::1, "];
    let lease = [
        "the lease of 10.0.0.5/24 from server 10.0.0.1 ",
        "the lease of fd00::5/128 from server fe80::1 ",
    ];
    let hint = Some(NO_KEEPER.to_owned());
    let nobody = Some(Renewer::Nobody);
    for (now_s, status, what, words, hint) in [
        (54, Status::Ok, held, "for 60 s", None),
        (
            55,
            Status::Warning,
            lease,
            "ends in 10 s, and no program renews the lease",
            hint.clone(),
        ),
        (
            65,
            Status::Critical,
            lease,
            "expired 0 s ago, and no program renews the lease",
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
    let facts = owned();
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
        let finding = with_leased(before, &wish, &one, &facts);
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

#[test]
fn a_lease_of_the_boot_is_stale_if_its_address_outlives_it_without_the_owner() {
    let statuses = |wish: &IpoibWish, netdev: &Netdev, now_s: u64| {
        let facts = Facts {
            renewer: Some(Renewer::Owner("systemd-networkd")),
            taken_ns: now_s * SECOND,
            ..clients(Holds, Holds)
        };
        [evaluate, evaluate6].map(|evaluate| evaluate(wish, netdev, &facts).status)
    };
    let (left, stale) = ([Status::Skipped; 2], [Status::Warning; 2]);
    let wish = both(None, None);
    let mut one = netdev(&["10.0.0.5/24", "fd00::5/128"]);
    assert_eq!(statuses(&wish, &one, 64), left);
    assert_eq!(statuses(&wish, &one, 65), stale);
    assert_eq!(statuses(&wish, &netdev(&["10.0.0.7/24"]), 65), left);
    // The owner may keep an address for ever: under the root file system, or one of the command line.
    let rooted = IpoibWish {
        dhcp6: Some(Dhcp6Wish {
            keep: true,
            ..Dhcp6Wish::default()
        }),
        ..wish.clone()
    };
    assert_eq!(statuses(&rooted, &one, 65), left);
    let fixed = IpoibWish {
        addresses: vec!["10.0.0.5/24".parse().unwrap()],
        ..wish.clone()
    };
    assert_eq!(statuses(&fixed, &one, 65), left);
    // The owner renews the addresses: they have a lifetime.
    one.dynamic = one.addresses.iter().map(|a| a.address.address).collect();
    assert_eq!(statuses(&wish, &one, 65), left);
}

#[test]
fn the_lease_of_an_interface_that_another_program_has_is_not_compared() {
    let wish = IpoibWish {
        dhcp: Some(v4::Dhcp4Wish::default()),
        ..both(None, None)
    };
    let judged = |wish: &IpoibWish, netdev: &Netdev, renewer| {
        let facts = Facts {
            renewer,
            taken_ns: 65 * SECOND,
            ..clients(Holds, Holds)
        };
        let wish = expected(wish, netdev, &facts);
        let leases = [evaluate, evaluate6].map(|evaluate| evaluate(&wish, netdev, &facts).status);
        (leases, addresses(&wish, netdev, &facts).status)
    };
    let dynamic = |here: &[&str], all: &[&str]| Netdev {
        dynamic: all.iter().map(|text| text.parse().unwrap()).collect(),
        ..netdev(here)
    };
    let (skipped, ended) = (Status::Skipped, Status::Warning);
    for (netdev, expected) in [
        // Both families: another address, and the same one.
        (
            dynamic(&["10.0.0.7/24", "fd00::5/128"], &["10.0.0.7", "fd00::5"]),
            ([skipped; 2], Status::Ok),
        ),
        // A static address and a router's are no leases.
        (
            dynamic(&["10.0.0.7/24", "fd00::7/64"], &["fd00::7"]),
            ([ended; 2], Status::Critical),
        ),
        (
            dynamic(&["10.0.0.7/24", "fd00::5/128"], &["10.0.0.7"]),
            ([skipped, ended], Status::Ok),
        ),
        // The address of the lease has no lifetime: the keeper holds it.
        (
            dynamic(
                &["10.0.0.5/24", "10.0.0.7/24", "fd00::5/128"],
                &["10.0.0.7"],
            ),
            ([ended; 2], Status::Ok),
        ),
        (
            dynamic(
                &["169.254.0.7/16", "fe80::7/128"],
                &["169.254.0.7", "fe80::7"],
            ),
            ([ended; 2], Status::Critical),
        ),
    ] {
        let found = judged(&wish, &netdev, Some(Renewer::Keeper));
        assert_eq!(found, expected, "{:?}", netdev.addresses);
    }
    // In the initramfs nothing was handed over, and a root file system needs the address of its lease.
    let other = dynamic(&["10.0.0.7/24", "fd00::7/128"], &["10.0.0.7", "fd00::7"]);
    let rooted = IpoibWish {
        dhcp6: Some(Dhcp6Wish {
            keep: true,
            ..Dhcp6Wish::default()
        }),
        ..wish.clone()
    };
    let keeper = Some(Renewer::Keeper);
    assert_eq!(judged(&wish, &other, None), ([ended; 2], Status::Critical));
    assert_eq!(
        judged(&rooted, &other, keeper),
        ([ended; 2], Status::Critical)
    );
}

#[test]
fn one_usable_address_of_the_owner_is_enough_beside_a_tentative_one() {
    let wish = IpoibWish {
        dhcp6: Some(Dhcp6Wish::default()),
        ..IpoibWish::default()
    };
    let mut one = netdev(&["fd00::7/128", "fd00::8/128"]);
    one.addresses[0].state = AddressState::Tentative;
    let before = Finding::ok(Id::AddressPresent, "");
    let finding = with_leased(before, &wish, &one, &owned());
    assert_eq!(finding.status, Status::Ok);
}

#[test]
fn a_family_whose_client_has_not_begun_may_still_come() {
    let (wish, one) = (both(None, None), netdev(&["fe80::5/64"]));
    let found = |facts: &Facts| {
        [evaluate, evaluate6].map(|evaluate| {
            let finding = evaluate(&wish, &one, facts);
            (finding.status, finding.lasting)
        })
    };
    let both = [(Status::Critical, false); 2];
    let mut facts = clients(GaveUp, GaveUp);
    facts.dhcp.clear();
    assert_eq!(found(&facts), both);
    let mut facts = clients(GaveUp, GaveUp);
    facts.dhcp6.clear();
    assert_eq!(found(&facts), both);
}

#[test]
fn a_lease_of_dhcp_spares_no_address_of_the_command_line() {
    let mut wish = both(None, Some(Autoconf::Router));
    let (facts, bare) = (clients(Holds, Asks), netdev(&["fe80::5/64"]));
    assert_eq!(addresses(&wish, &bare, &facts).status, Status::Warning);
    wish.addresses = vec!["fd09::5/64".parse().unwrap()];
    assert_eq!(addresses(&wish, &bare, &facts).status, Status::Critical);
}
