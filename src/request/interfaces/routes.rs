// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the interfaces that `nameserver=` and `rd.route=` are for.

use std::net::IpAddr;

use super::identity::key;
use super::{Collected, InterfaceWish};
use crate::inet::{Address, Route};
use crate::wish::origin::{Requested, origin};

impl Collected<'_, '_> {
    /// `nameserver=` applies to every interface with an address, after the name servers of its own
    /// `ip=` and before those of its DHCP servers.
    pub(super) fn nameservers(&mut self) {
        for found in &mut self.found {
            let entry = &mut found.value.ipoib;
            let servers = self.arguments.net.nameservers.iter().map(|n| n.value);
            if entry.is_addressed() {
                entry.dns.extend(servers);
                let all = self.arguments.net.nameservers.iter();
                found.value.follows.extend(all.map(origin));
            }
        }
    }

    /// Each `rd.route=` belongs to one interface: the named one, the one whose static address reaches
    /// the gateway, otherwise the one that the root file system uses, if it has any address.
    pub(super) fn routes(&mut self) {
        for route in &self.arguments.net.routes {
            let by = origin(route);
            let route = &route.value;
            let found = match &route.interface {
                Some(interface) => self.find(&key(self.arguments, interface)),
                None => self.reaching(route.gateway),
            };
            if let Some(found) = found {
                found.value.follows.push(by);
                let network = Address {
                    address: route.network,
                    prefix: route.prefix,
                };
                let ipoib = &mut found.value.ipoib;
                match route.gateway {
                    Some(gateway) if route.prefix == 0 => ipoib.gateways.push(gateway),
                    gateway => ipoib.routes.push(Route {
                        network: network.network(),
                        gateway,
                    }),
                }
            }
        }
    }

    fn reaching(&mut self, gateway: Option<IpAddr>) -> Option<&mut Requested<InterfaceWish>> {
        let near = |found: &Requested<InterfaceWish>| {
            let mut addresses = found.value.ipoib.addresses.iter();
            gateway.is_some_and(|gateway| addresses.any(|address| address.reaches(gateway)))
        };
        // A lease may reach the gateway.
        let boot = |found: &Requested<InterfaceWish>| {
            found.value.ipoib.boot && found.value.ipoib.is_addressed()
        };
        let first = self.found.iter().position(near);
        let at = first.or_else(|| self.found.iter().position(boot))?;
        self.found.get_mut(at)
    }
}
