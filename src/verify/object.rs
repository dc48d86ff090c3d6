// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the object of one report, and the loop over the table of checks.

use super::checks::{Id, Severity, TABLE};
use super::{lease, unended, unread};
use crate::facts::{Facts, Function, Netdev, PortRef};
use crate::rdma::types::LinkLayer;
use crate::verify::finding::{Finding, Status};
use crate::verify::report::LinkReport;
use crate::wish::bond::{BondFacts, BondWish};
use crate::wish::expectation::{LinkWish, ModuleWish, RootWish, ServerWish};
use crate::wish::ipoib::IpoibWish;

/// The object of one report. A check applies to the part that its row names.
#[derive(Default)]
pub struct Object<'a> {
    pub module: Option<&'a ModuleWish>,
    pub function: Option<&'a Function>,
    pub link: Option<Link<'a>>,
    pub port: Option<Port<'a>>,
    pub ipoib: Option<Ipoib<'a>>,
    pub interface: Option<Interface<'a>>,
    pub bond: Option<Bond<'a>>,
    pub server: Option<Server<'a>>,
    pub root: Option<Root<'a>>,
}

/// A link that is not a bond.
pub struct Link<'a> {
    pub wish: &'a LinkWish,
    /// None if no port matches.
    pub port: Option<PortRef<'a>>,
}

impl Link<'_> {
    /// Whether the link was refused before any port was searched.
    pub fn is_refused(&self) -> bool {
        self.port.is_none() && self.wish.refused.is_some()
    }
}

/// A port of a link.
pub struct Port<'a> {
    pub wish: &'a LinkWish,
    pub found: PortRef<'a>,
    /// Minimum rate in Mb/s.
    pub least_rate: Option<u32>,
    /// The fastest port of the same kind, if that port is faster.
    pub faster: Option<PortRef<'a>>,
}

impl Port<'_> {
    /// The port has LIDs.
    pub fn is_infiniband(&self) -> bool {
        self.found.port.link_layer == Some(LinkLayer::InfiniBand)
    }
}

/// The IPoIB interface of a port.
pub struct Ipoib<'a> {
    pub interface: Interface<'a>,
    pub port: PortRef<'a>,
}

/// The interface of a port, or a bond.
#[derive(Clone, Copy)]
pub struct Interface<'a> {
    /// The wish plus what DHCP servers granted.
    pub wish: &'a IpoibWish,
    /// Empty if `name` is none, or if the interface of the bond's name is not a bond.
    pub netdev: &'a Netdev,
    /// None if the interface does not exist.
    pub name: Option<&'a str>,
    pub is_bond: bool,
}

/// A bond of IPoIB interfaces.
pub struct Bond<'a> {
    pub name: &'a str,
    pub wish: &'a BondWish,
    /// For each interface, the name on the command line and the name on this machine.
    pub slaves: &'a [(String, Option<String>)],
    /// Why no interface can join the bond, whatever happens: none of them can have its mode.
    pub impossible: Option<String>,
    /// `netdev` and `found` are empty if the bond does not exist.
    pub netdev: &'a Netdev,
    pub found: &'a BondFacts,
}

/// A server.
pub struct Server<'a> {
    pub wish: &'a ServerWish,
    /// Whether the links are as expected; the server is queried only then.
    pub is_connected: bool,
}

/// The root file system.
pub struct Root<'a> {
    pub wish: &'a RootWish,
    pub links: &'a [LinkReport],
}

/// The finding of a check about this part of an object: skipped if a parent did not pass, none if
/// the check does not apply.
pub fn judge<T>(
    id: Id,
    part: &T,
    facts: &Facts,
    is_met: bool,
    applies: fn(&T, &Facts) -> bool,
    evaluate: fn(&T, &Facts) -> Finding,
) -> Option<Finding> {
    match (applies(part, facts), is_met) {
        (false, _) => None,
        (true, false) => Some(Finding::skipped(id)),
        (true, true) => Some(evaluate(part, facts)),
    }
}

/// Runs the checks on one object, in the order of the table.
pub fn findings(object: &Object<'_>, facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::with_capacity(TABLE.len());
    for row in TABLE {
        let is_left = |found: &Finding| {
            object
                .interface
                .is_some_and(|Interface { wish, netdev, .. }| {
                    lease::is_left_to_owner(found.check, wish, netdev, facts)
                })
        };
        let is_unmet = |found: &Finding| {
            row.parents.contains(&found.check)
                && !matches!(found.status, Status::Ok | Status::Warning)
                && !is_left(found)
        };
        let is_met = !findings.iter().any(is_unmet);
        let finding = match ((row.rule)(object, facts, is_met), row.severity) {
            (None, _) => continue,
            (Some(finding), _) if !is_met => finding,
            (Some(finding), Severity::Critical) => unread::settle(finding, row, object, facts),
            (Some(finding), Severity::Warning) => {
                unread::settle(finding.as_warning(), row, object, facts)
            }
        };
        findings.push(finding);
    }
    unended::note(&mut findings, object, facts);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Unended, Unread};
    use crate::wish::ipoib::Autoconf;

    #[test]
    fn parents_severity_and_unread_files_count_for_every_object() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        let mut found = BondFacts {
            slaves: words(&["ib0"]),
            active_slave: Some("ib0".to_owned()),
            options: words(&["mode=active-backup 1", "fail_over_mac=active 1"]),
        };
        let netdev = |found: &BondFacts, carrier| Netdev {
            ifname: "b0".to_owned(),
            up: true,
            carrier: Some(carrier),
            bond: Some(found.clone()),
            ..Netdev::default()
        };
        let of = |found: &BondFacts, carrier, unread: Option<&str>| {
            let netdev = netdev(found, carrier);
            let slave = Netdev {
                ifname: "ib0".to_owned(),
                carrier: Some(true),
                ..Netdev::default()
            };
            let facts = Facts {
                netdevs: vec![netdev.clone(), slave],
                unread: Vec::from_iter(unread.map(|path| Unread {
                    path: path.to_owned(),
                    why: "EIO".to_owned(),
                    obstacle: None,
                })),
                ..Facts::default()
            };
            let wish = IpoibWish {
                autoconf: Some(Autoconf::Router),
                ..IpoibWish::default()
            };
            let bond = BondWish {
                slaves: vec!["ib0".to_owned()],
                options: vec![("miimon".to_owned(), "100".to_owned())],
            };
            let slaves = [("ib0".to_owned(), Some("ib0".to_owned()))];
            let object = Object {
                bond: Some(Bond {
                    name: "b0",
                    wish: &bond,
                    slaves: &slaves,
                    impossible: None,
                    netdev: &netdev,
                    found,
                }),
                interface: Some(Interface {
                    wish: &wish,
                    netdev: &netdev,
                    name: Some("b0"),
                    is_bond: true,
                }),
                ..Object::default()
            };
            let found = findings(&object, &facts).into_iter();
            found.map(|f| (f.check, f.status)).collect::<Vec<_>>()
        };
        let all = |mode, options, carrier, address| {
            vec![
                (Id::BondPresent, Status::Ok),
                (Id::BondMode, mode),
                (Id::BondSlaves, Status::Ok),
                (Id::BondOptions, options),
                (Id::BondCarrier, carrier),
                (Id::AddressPresent, address),
            ]
        };
        let (ok, skipped) = (Status::Ok, Status::Skipped);
        // The row of the options warns; children are evaluated after a warning and after a pass.
        let (warning, critical) = (Status::Warning, Status::Critical);
        assert_eq!(of(&found, true, None), all(ok, warning, ok, critical));
        assert_eq!(of(&found, false, None), all(ok, warning, critical, skipped));
        let unread = of(&found, false, Some("/sys/class/net/b0/carrier"));
        assert_eq!(unread, all(ok, warning, Status::Unknown, skipped));
        let of_another = of(&found, false, Some("/sys/class/net/b1/carrier"));
        assert_eq!(of_another, all(ok, warning, critical, skipped));
        found.options = words(&["mode=802.3ad 4", "miimon=100"]);
        assert_eq!(of(&found, true, None), all(critical, ok, skipped, skipped));
    }

    #[test]
    fn the_checks_of_a_port_know_what_is_written_to_its_card() {
        let device = Device {
            ifname: "mlx4_0".to_owned(),
            bus_address: Some("0000:05:00.0".to_owned()),
            ..Device::default()
        };
        let (port, wish) = (crate::facts::Port::default(), LinkWish::default());
        let found = |card: &str| {
            let object = Object {
                link: Some(Link {
                    wish: &wish,
                    port: Some(PortRef {
                        device: &device,
                        port: &port,
                    }),
                }),
                ..Object::default()
            };
            let facts = Facts {
                unended: vec![Unended {
                    object: card.to_owned(),
                    what: "set it".to_owned(),
                    is_port_types: true,
                    is_long: false,
                }],
                ..Facts::default()
            };
            let found = findings(&object, &facts).into_iter();
            found.map(|f| (f.check, f.status)).collect::<Vec<_>>()
        };
        let present = |status| vec![(Id::DevicePresent, status)];
        assert_eq!(found("0000:06:00.0"), present(Status::Ok));
        assert_eq!(found("0000:05:00.0"), present(Status::Critical));
    }
}
