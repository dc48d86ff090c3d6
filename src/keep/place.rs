// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: finds the interface of a lease, and whether the interface is still the same device.
//!
//! An interface vanishes and returns when its card is reset or its driver is loaded again; its
//! index changes, and perhaps its name. The constant bytes of its hardware address and its P_Key
//! then identify the interface.

use crate::facts::lasting::Identity;
use crate::facts::{Facts, Netdev};
use crate::system::net::LinkEvents;

/// The interface of a lease.
#[derive(Debug)]
pub(super) struct Place {
    /// Last known name.
    pub(super) name: String,
    /// Last known index.
    pub(super) index: u32,
    pub(super) identity: Option<Identity>,
    is_present: bool,
    /// The interface was up with carrier at the last check.
    works: bool,
    /// The interface came back and has not been up with carrier since.
    is_bare: bool,
    /// MTU in bytes when the interface was last up with carrier.
    mtu: Option<u32>,
}

/// The result of a check.
#[derive(Debug)]
pub(super) enum Found<'a> {
    /// The interface existed at the last check.
    Vanished,
    /// The interface did not exist at the last check either.
    Gone,
    Present(Present<'a>),
}

#[derive(Debug)]
pub(super) struct Present<'a> {
    pub(super) netdev: &'a Netdev,
    /// The interface is another device than at the last check, or did not exist then: no setting of
    /// ours is on the interface.
    pub(super) is_back: bool,
    /// Up with carrier since the last check: another program removed what is missing.
    pub(super) worked_since: bool,
    /// Up with carrier now, and down or without carrier in between.
    pub(super) came_up: bool,
    /// The interface came back with the kernel's defaults: no other program sets the interface up.
    pub(super) must_be_set_up: bool,
    /// The interface came back and is up with carrier now: its earlier MTU.
    pub(super) mtu_before: Option<u32>,
}

impl Place {
    /// An interface as handed over: present, up and with carrier.
    pub(super) fn new(name: &str, index: u32, identity: Option<Identity>) -> Place {
        Place {
            name: name.to_owned(),
            index,
            identity,
            is_present: true,
            works: true,
            is_bare: false,
            mtu: None,
        }
    }

    /// Looks for the interface; `events` are the link events since the last check.
    pub(super) fn look<'a>(&mut self, facts: &'a Facts, events: &LinkEvents) -> Found<'a> {
        let Some((netdev, index)) = self.find(facts) else {
            self.works = false;
            return match std::mem::take(&mut self.is_present) {
                true => Found::Vanished,
                false => Found::Gone,
            };
        };
        let is_back = !self.is_present || index != self.index;
        let faltered = is_back || events.has_faltered(index);
        let works = netdev.up && netdev.carrier == Some(true);
        self.is_bare |= is_back;
        let present = Present {
            netdev,
            is_back,
            worked_since: works && self.works && !faltered,
            came_up: works && (!self.works || faltered),
            must_be_set_up: self.is_bare && !netdev.up,
            mtu_before: self.mtu.filter(|_| works && self.is_bare),
        };
        self.is_bare &= !works;
        netdev.ifname.clone_into(&mut self.name);
        self.index = index;
        self.identity = Identity::of(netdev).or(self.identity.take());
        (self.is_present, self.works) = (true, works);
        if present.worked_since {
            self.mtu = netdev.mtu;
        }
        Found::Present(present)
    }

    /// The interface with the same index, which a rename does not change, otherwise the interface
    /// with the same identity.
    fn find<'a>(&self, facts: &'a Facts) -> Option<(&'a Netdev, u32)> {
        let all = facts.netdevs.iter();
        let mut all = all.filter_map(|netdev| Some((netdev, netdev.ifindex?)));
        let same = all.clone().find(|(netdev, index)| {
            let identity = self.identity.as_ref();
            *index == self.index && identity.is_none_or(|identity| identity.is_kind_of(netdev))
        });
        if same.is_some() {
            return same;
        }
        let Some(identity) = &self.identity else {
            // The interface vanished before this program could read its identity.
            return all.find(|(netdev, _)| netdev.ifname == self.name);
        };
        let alike: Vec<_> = all
            .filter(|(netdev, _)| Identity::of(netdev).as_ref() == Some(identity))
            .collect();
        match alike.as_slice() {
            [one] => Some(*one),
            // If several interfaces match, such as VLANs of one interface, the name decides.
            several => several
                .iter()
                .find(|(netdev, _)| netdev.ifname == self.name)
                .copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{HardwareAddress, HardwareType};
    use crate::wish::bond::BondFacts;

    use crate::wish::ipoib::IpoibFacts;

    const GUID: &str = "b8:59:9f:03:00:fc:1a:2c";

    fn address(text: &str) -> HardwareAddress {
        text.parse().unwrap()
    }

    fn ib(name: &str, index: u32, prefix: &str, pkey: u16) -> Netdev {
        Netdev {
            ifname: name.to_owned(),
            ifindex: Some(index),
            hardware_type: Some(HardwareType::InfiniBand),
            address: Some(address(&format!("{prefix}:fe:80:00:00:00:00:00:00:{GUID}"))),
            up: true,
            carrier: Some(true),
            mtu: Some(2044),
            ipoib: Some(IpoibFacts {
                pkey: Some(pkey),
                child: pkey != 0xffff,
                ..IpoibFacts::default()
            }),
            ..Netdev::default()
        }
    }

    fn facts(netdevs: Vec<Netdev>) -> Facts {
        Facts {
            netdevs,
            ..Facts::default()
        }
    }

    fn place(netdev: &Netdev) -> Place {
        let index = netdev.ifindex.unwrap();
        Place::new(&netdev.ifname, index, Identity::of(netdev))
    }

    fn index_of(found: &Found<'_>) -> Option<u32> {
        match found {
            Found::Vanished | Found::Gone => None,
            Found::Present(present) => present.netdev.ifindex,
        }
    }

    #[test]
    fn a_device_that_was_reset_is_known_by_its_guid_and_pkey() {
        let before = ib("ib0", 4, "80:00:00:48", 0xffff);
        let mut place = place(&before);
        let quiet = LinkEvents::default();
        assert!(
            matches!(place.look(&facts(vec![before]), &quiet), Found::Present(t) if t.worked_since)
        );
        assert!(matches!(
            place.look(&facts(vec![]), &quiet),
            Found::Vanished
        ));
        assert!(matches!(place.look(&facts(vec![]), &quiet), Found::Gone));
        // The interface has another name and another queue pair; a child and an interface of
        // another port with the old name exist too.
        let mut other = ib("ib0", 9, "80:00:00:48", 0xffff);
        let text = other.address.unwrap().to_string();
        other.address = Some(address(&text.replace("1a:2c", "1a:2d")));
        let child = ib("ib1.8001", 10, "80:00:01:07", 0x8001);
        let mut back = ib("ib1", 11, "80:00:01:07", 0x7fff);
        back.mtu = Some(4092);
        let all = facts(vec![other, child, back]);
        let Found::Present(present) = place.look(&all, &quiet) else {
            panic!("it is there");
        };
        assert_eq!(
            (present.netdev.ifname.as_str(), present.is_back),
            ("ib1", true)
        );
        assert!(present.came_up && !present.worked_since);
        assert_eq!(present.mtu_before, Some(2044));
        assert_eq!((place.name.as_str(), place.index), ("ib1", 11));
        assert!(
            matches!(place.look(&all, &quiet), Found::Present(t) if t.worked_since && !t.is_back)
        );
    }

    #[test]
    fn a_device_that_was_reset_between_two_looks_has_the_defaults_of_the_kernel() {
        let before = ib("ib0", 4, "80:00:00:48", 0xffff);
        let mut place = place(&before);
        let mut look = |netdev: &Netdev| {
            let facts = facts(vec![netdev.clone()]);
            match place.look(&facts, &LinkEvents::default()) {
                Found::Vanished | Found::Gone => panic!("it is there"),
                Found::Present(t) => (t.worked_since, t.came_up, t.must_be_set_up, t.mtu_before),
            }
        };
        assert_eq!(look(&before), (true, false, false, None));
        let mut back = ib("ib0", 5, "80:00:01:07", 0xffff);
        (back.up, back.mtu) = (false, Some(4092));
        assert_eq!(look(&back), (false, false, true, None));
        back.up = true;
        assert_eq!(look(&back), (false, true, false, Some(2044)));
        assert_eq!(look(&back), (true, false, false, None));
        // Another program sets the interface down: its carrier may be the one of before.
        back.up = false;
        assert_eq!(look(&back), (false, false, false, None));
        back.up = true;
        assert_eq!(look(&back), (false, true, false, None));
        back.ifindex = Some(6);
        assert_eq!(look(&back), (false, true, false, Some(4092)));
    }

    #[test]
    fn the_mtu_of_before_outlives_a_second_reset() {
        let before = ib("ib0", 4, "80:00:00:48", 0xffff);
        let mut place = place(&before);
        let mut look = |netdev: &Netdev| {
            let facts = facts(vec![netdev.clone()]);
            match place.look(&facts, &LinkEvents::default()) {
                Found::Vanished | Found::Gone => panic!("it is there"),
                Found::Present(t) => t.mtu_before,
            }
        };
        assert_eq!(look(&before), None);
        let mut back = ib("ib0", 5, "80:00:01:07", 0xffff);
        back.mtu = Some(4092);
        assert_eq!(look(&back), Some(2044));
        // The keeper has not set the MTU yet.
        back.ifindex = Some(6);
        assert_eq!(look(&back), Some(2044));
    }

    #[test]
    fn an_interface_is_known_although_its_address_could_not_be_read_in_between() {
        let quiet = LinkEvents::default();
        // Its identity is learned while it has its index.
        let mut place = Place::new("ib0", 4, None);
        let before = ib("ib0", 4, "80:00:00:48", 0xffff);
        let unread = Netdev {
            address: None,
            ipoib: None,
            ..before.clone()
        };
        for netdev in [before, unread] {
            let found = facts(vec![netdev]);
            assert_eq!(index_of(&place.look(&found, &quiet)), Some(4));
        }
        let found = facts(vec![ib("ib3", 9, "80:00:01:07", 0xffff)]);
        assert_eq!(index_of(&place.look(&found, &quiet)), Some(9));
    }

    #[test]
    fn an_index_that_another_device_has_now_does_not_find_the_interface() {
        let quiet = LinkEvents::default();
        let before = ib("ib0", 4, "80:00:00:48", 0xffff);
        let other = Netdev {
            hardware_type: Some(HardwareType::Ethernet),
            address: Some(address("52:54:00:00:00:01")),
            ..before.clone()
        };
        let found = facts(vec![other]);
        assert_eq!(index_of(&place(&before).look(&found, &quiet)), None);
        // The interface had vanished before its identity was read: the name is left.
        let mut nameless = Place::new("ib0", 4, None);
        let ib = |name, index| ib(name, index, "80:00:00:48", 0xffff);
        let found = facts(vec![ib("ib1", 8), ib("ib0", 9)]);
        assert_eq!(index_of(&nameless.look(&found, &quiet)), Some(9));
    }

    #[test]
    fn down_and_up_between_two_looks_is_not_missed() {
        let netdev = ib("ib0", 4, "80:00:00:48", 0xffff);
        let mut place = place(&netdev);
        let quiet = LinkEvents::default();
        let lost = LinkEvents::everything();
        let all = facts(vec![netdev.clone()]);
        assert!(
            matches!(place.look(&all, &quiet), Found::Present(t) if t.worked_since && !t.came_up)
        );
        assert!(
            matches!(place.look(&all, &lost), Found::Present(t) if !t.worked_since && t.came_up)
        );
        let without = Netdev {
            carrier: Some(false),
            ..netdev
        };
        let dark = facts(vec![without]);
        assert!(
            matches!(place.look(&dark, &quiet), Found::Present(t) if !t.worked_since && !t.came_up)
        );
        assert!(
            matches!(place.look(&all, &quiet), Found::Present(t) if !t.worked_since && t.came_up)
        );
        let unknown = Netdev {
            carrier: None,
            ..all.netdevs[0].clone()
        };
        let unknown = facts(vec![unknown]);
        assert!(
            matches!(place.look(&unknown, &quiet), Found::Present(t) if !t.worked_since && !t.came_up)
        );
    }

    #[test]
    fn a_bond_is_known_by_its_name_and_a_vlan_is_not_the_interface_below() {
        let plain = |name: &str, index, kind: Option<&str>| Netdev {
            ifname: name.to_owned(),
            ifindex: Some(index),
            hardware_type: Some(HardwareType::Ethernet),
            address: Some(address("52:54:00:00:00:01")),
            kind: kind.map(str::to_owned),
            ..Netdev::default()
        };
        let quiet = LinkEvents::default();
        let vlan = |name: &str, index| plain(name, index, Some("vlan"));
        let mut of_vlan = place(&vlan("e.5", 3));
        let all = facts(vec![
            plain("e", 2, None),
            vlan("e.4", 6),
            vlan("e.5", 7),
            vlan("e.6", 8),
        ]);
        assert_eq!(index_of(&of_vlan.look(&all, &quiet)), Some(7));
        let nameless = facts(vec![vlan("a", 9), vlan("b", 10)]);
        assert_eq!(index_of(&of_vlan.look(&nameless, &quiet)), None);
        let mut bond = plain("bond0", 5, Some("bond"));
        bond.bond = Some(BondFacts::default());
        let mut of_bond = place(&bond);
        bond.address = Some(address("52:54:00:00:00:02"));
        bond.ifindex = Some(12);
        assert_eq!(
            index_of(&of_bond.look(&facts(vec![bond]), &quiet)),
            Some(12)
        );
    }
}
