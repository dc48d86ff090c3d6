// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: which settings of a lease are missing on its interface, and whether to set them again.
//!
//! Settings that vanish with the link (down, a reset of the card) are set again. If settings vanish
//! while the interface stays up with carrier, another program removed them: they stay removed,
//! unless the root file system depends on them.

use super::place::Present;
use crate::inet::Route;

/// The settings of a lease that were on the interface at the last check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Holdings {
    address: bool,
    routes: Vec<Route>,
    /// Routes that another program removed.
    removed: Vec<Route>,
}

/// What must be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Set what is missing.
    Set {
        /// Set the address too.
        address: bool,
        /// Set these routes, in this order.
        routes: Vec<Route>,
        /// Another program removed these routes: they stay removed.
        left: Vec<Route>,
    },
    /// Another program removed the address: the lease has another owner.
    Left,
}

impl Holdings {
    /// The state after the handover: the address is set, and another program removed the routes
    /// `removed`.
    pub(super) fn handed_over(removed: Vec<Route>) -> Holdings {
        Holdings {
            address: true,
            routes: Vec::new(),
            removed,
        }
    }

    /// Routes that another program removed.
    pub(super) fn removed(&self) -> &[Route] {
        &self.removed
    }

    /// No setting of ours is on the interface.
    pub(super) fn nothing() -> Holdings {
        Holdings::default()
    }

    /// Records that the address was set: a later removal is deliberate.
    pub(super) fn set_address(&mut self) {
        self.address = true;
    }

    /// Records that the route was set.
    pub(super) fn set_route(&mut self, route: Route) {
        self.routes.push(route);
    }

    /// `has_address`: the interface has the address of the lease. `routes` are the expected routes;
    /// the root file system depends on the routes in `needed` (and on the address, if `keep` is
    /// true).
    pub(super) fn compare(
        &mut self,
        present: &Present<'_>,
        has_address: bool,
        routes: &[Route],
        keep: bool,
        needed: &[Route],
    ) -> Verdict {
        let had_address = std::mem::replace(&mut self.address, has_address);
        if !has_address && had_address && present.worked_since && !keep {
            return Verdict::Left;
        }
        let has = |route: &&Route| present.netdev.has_route(route);
        let found: Vec<Route> = routes.iter().filter(has).copied().collect();
        // The kernel removes the routes together with their address.
        if !present.worked_since || !has_address {
            self.removed.clear();
        }
        self.removed.retain(|route| !found.contains(route));
        let missing = routes.iter().filter(|route| !found.contains(route));
        let missing: Vec<Route> = missing.copied().collect();
        let mut left = Vec::new();
        if present.worked_since && has_address && had_address {
            left = missing.clone();
            left.retain(|route| self.routes.contains(route) && !needed.contains(route));
            self.removed.extend(&left);
        }
        self.routes = found;
        Verdict::Set {
            address: !has_address,
            routes: missing
                .into_iter()
                .filter(|route| !self.removed.contains(route) || needed.contains(route))
                .collect(),
            left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Netdev;
    use crate::inet::Address;
    use crate::keep::tests::netdev;

    fn route(network: &str, prefix: u8) -> Route {
        Route {
            network: Address {
                address: network.parse().unwrap(),
                prefix,
            },
            gateway: Some("10.0.0.1".parse().unwrap()),
        }
    }

    fn present(netdev: &Netdev, worked_since: bool) -> Present<'_> {
        Present {
            netdev,
            is_back: false,
            worked_since,
            came_up: !worked_since,
            must_be_set_up: false,
            mtu_before: None,
        }
    }

    fn set(address: bool, routes: &[Route], left: &[Route]) -> Verdict {
        Verdict::Set {
            address,
            routes: routes.to_vec(),
            left: left.to_vec(),
        }
    }

    #[test]
    fn settings_that_vanished_with_the_link_are_set_again() {
        let expected = [route("10.8.0.0", 16), route("0.0.0.0", 0)];
        let (whole, bare) = (netdev(&expected), netdev(&[]));
        for keep in [false, true] {
            let mut found = Holdings::handed_over(Vec::new());
            let mut look = |netdev: &Netdev, worked_since, has_address| {
                let present = present(netdev, worked_since);
                found.compare(&present, has_address, &expected, keep, &[])
            };
            assert_eq!(look(&bare, true, true), set(false, &expected, &[]));
            assert_eq!(look(&whole, true, true), set(false, &[], &[]));
            assert_eq!(look(&bare, false, true), set(false, &expected, &[]));
            // The routes could not be set: try again.
            assert_eq!(look(&bare, true, true), set(false, &expected, &[]));
            assert_eq!(look(&whole, true, true), set(false, &[], &[]));
            assert_eq!(look(&bare, false, false), set(true, &expected, &[]));
            assert_eq!(look(&bare, true, false), set(true, &expected, &[]));
        }
    }

    #[test]
    fn a_removal_right_after_setting_is_respected() {
        let expected = [route("0.0.0.0", 0)];
        let bare = netdev(&[]);
        let mut found = Holdings::nothing();
        let look = |found: &mut Holdings, has_address| {
            found.compare(&present(&bare, true), has_address, &expected, false, &[])
        };
        assert_eq!(look(&mut found, false), set(true, &expected, &[]));
        found.set_address();
        found.set_route(expected[0]);
        assert_eq!(look(&mut found, true), set(false, &[], &expected));
        assert_eq!(look(&mut found, false), Verdict::Left);
    }

    #[test]
    fn a_route_that_was_removed_before_a_restart_stays_removed() {
        let expected = [route("10.8.0.0", 16), route("0.0.0.0", 0)];
        let [way, default] = expected;
        let mut found = Holdings::handed_over(vec![default]);
        let mut look = |found_routes: &[Route], worked_since| {
            let netdev = netdev(found_routes);
            found.compare(&present(&netdev, worked_since), true, &expected, false, &[])
        };
        assert_eq!(look(&[way], true), set(false, &[], &[]));
        assert_eq!(look(&[], true), set(false, &[], &[way]));
        assert_eq!(look(&[], false), set(false, &expected, &[]));
        assert_eq!(found.removed(), []);
    }

    #[test]
    fn a_removed_route_is_set_if_the_root_needs_it_and_is_no_longer_removed_if_it_is_back() {
        let expected = [route("10.8.0.0", 16), route("0.0.0.0", 0)];
        let mut found = Holdings::handed_over(expected.to_vec());
        let mut look = |found_routes: &[Route], needed: &[Route]| {
            let netdev = netdev(found_routes);
            found.compare(&present(&netdev, true), true, &expected, true, needed)
        };
        let [way, default] = expected;
        assert_eq!(look(&[], &[default]), set(false, &[default], &[]));
        assert_eq!(look(&[default], &[default]), set(false, &[], &[]));
        assert_eq!(found.removed(), [way]);
    }

    #[test]
    fn a_removed_route_is_set_again_with_the_address_that_was_removed_too() {
        let expected = [route("0.0.0.0", 0)];
        let mut found = Holdings::handed_over(expected.to_vec());
        let bare = netdev(&[]);
        let mut look = |has_address| {
            let present = present(&bare, true);
            found.compare(&present, has_address, &expected, true, &[])
        };
        assert_eq!(look(true), set(false, &[], &[]));
        assert_eq!(look(false), set(true, &expected, &[]));
    }

    #[test]
    fn routes_are_missing_and_not_removed_while_the_address_was_missing() {
        let expected = [route("0.0.0.0", 0)];
        let mut found = Holdings::handed_over(Vec::new());
        let mut look = |netdev: &Netdev, has_address| {
            let present = present(netdev, true);
            found.compare(&present, has_address, &expected, true, &[])
        };
        assert_eq!(look(&netdev(&expected), false), set(true, &[], &[]));
        assert_eq!(look(&netdev(&[]), true), set(false, &expected, &[]));
    }

    #[test]
    fn settings_that_another_program_removed_stay_removed_unless_the_root_needs_them() {
        let expected = [route("10.8.0.0", 16), route("0.0.0.0", 0)];
        let [way, default] = expected;
        let whole = netdev(&expected);
        for keep in [false, true] {
            let needed: &[Route] = if keep { &[way] } else { &[] };
            let mut found = Holdings::handed_over(Vec::new());
            let mut look = |netdev: &Netdev, worked_since, has_address| {
                let present = present(netdev, worked_since);
                found.compare(&present, has_address, &expected, keep, needed)
            };
            assert_eq!(look(&whole, true, true), set(false, &[], &[]));
            let verdict = if keep {
                set(false, &[way], &[default])
            } else {
                set(false, &[], &expected)
            };
            assert_eq!(look(&netdev(&[]), true, true), verdict);
            let mine: &[Route] = if keep { &[way] } else { &[] };
            assert_eq!(look(&netdev(&[]), true, true), set(false, mine, &[]));
            // After the link was down all settings are ours again.
            assert_eq!(look(&netdev(&[]), false, true), set(false, &expected, &[]));
            assert_eq!(look(&whole, true, true), set(false, &[], &[]));
            let without = look(&netdev(&[]), true, false);
            if keep {
                assert_eq!(without, set(true, &expected, &[]));
            } else {
                assert_eq!(without, Verdict::Left);
            }
        }
    }
}
