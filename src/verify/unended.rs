// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a port whose card changes the types of its ports is not verified; a write that takes long
//! is named where it keeps an object from what is expected.

use super::checks::Id;
use super::object::{Interface, Object};
use crate::facts::{Facts, PortRef, Unended, rules};
use crate::verify::finding::Finding;
use crate::wish::selector::{Means, Selector};

/// Takes the writes into account. While the types of its card's ports are written, a port is not
/// verified, whatever was found: the driver removes it. The first failed finding names a write that
/// is about the object and takes long: the write may still end, so the failure does not last.
pub fn note(findings: &mut [Finding], object: &Object<'_>, facts: &Facts) {
    let is_retyped = |write: &Unended| write.is_port_types && has_port_of(&write.object, object);
    if facts.unended.iter().any(is_retyped) {
        unverify(findings);
    }
    let failed = |f: &&mut Finding| f.status.is_wrong();
    let Some(finding) = findings.iter_mut().find(failed) else {
        return;
    };
    let mut long = facts.unended.iter().filter(|write| write.is_long);
    if let Some(write) = long.find(|write| is_cause(write, finding.check, object, facts)) {
        finding.hint = Some(Unended::words(&write.what));
        finding.lasting = false;
    }
}

/// Whether the write may be why the check of the object failed: a write of port types, of any check
/// of the card's ports; a write to an interface, of the checks of that interface.
fn is_cause(write: &Unended, check: Id, object: &Object<'_>, facts: &Facts) -> bool {
    if write.is_port_types {
        return has_port_of(&write.object, object) || is_named(&write.object, object);
    }
    let name = check.row().name;
    let is_of_interface = name.starts_with("ipoib.") || name.starts_with("bond.");
    is_of_interface && is_interface(&write.object, object, facts)
}

/// Whether the object has no port, and is the PCI function with this address or names it.
fn is_named(card: &str, object: &Object<'_>) -> bool {
    let is_address = |selector: &Selector| matches!(selector.means(), Means::Pci(address) if address.to_string() == card);
    let link = object.link.as_ref().filter(|link| link.port.is_none());
    let is_linked = link.is_some_and(|link| link.wish.selector().is_some_and(is_address));
    is_linked
        || object
            .function
            .is_some_and(|function| function.address == card)
}

/// The port counts as absent; nothing below that is known.
fn unverify(findings: &mut [Finding]) {
    for finding in findings {
        *finding = match finding.check {
            Id::WishPossible => continue,
            Id::DevicePresent => {
                let found = "the types of the ports of its card are being set";
                Finding::failed(Id::DevicePresent, found, "").hint("")
            }
            other => Finding::skipped(other),
        };
    }
}

/// Whether the object has a port of the card with this PCI address.
fn has_port_of(card: &str, object: &Object<'_>) -> bool {
    let port = object.link.as_ref().and_then(|link| link.port);
    port.is_some_and(|port: PortRef<'_>| port.device.bus_address.as_deref() == Some(card))
}

/// Whether this is the interface or bond of the object. A child that is not there yet is created by
/// a write to its parent.
fn is_interface(name: &str, object: &Object<'_>, facts: &Facts) -> bool {
    let is_of_link = |interface: &Interface<'_>| match interface.name {
        Some(own) => own == name,
        None => {
            let port = object.link.as_ref().and_then(|link| link.port);
            let parent = port.and_then(|port| rules::own_interface(port, facts));
            parent.is_some_and(|parent| parent.ifname == name)
        }
    };
    object.interface.as_ref().is_some_and(is_of_link)
        || object.bond.as_ref().is_some_and(|bond| bond.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Netdev, Port};
    use crate::hardware::HardwareType;
    use crate::verify::checks::Id;
    use crate::verify::finding::Status;
    use crate::verify::object::Link;
    use crate::wish::expectation::LinkWish;
    use crate::wish::ipoib::{IpoibFacts, IpoibWish};

    fn stuck(object: &str, is_port_types: bool) -> Facts {
        Facts {
            unended: vec![Unended {
                object: object.to_owned(),
                what: "set it".to_owned(),
                is_port_types,
                is_long: true,
            }],
            ..Facts::default()
        }
    }

    /// The findings about ib0 on mlx4_0/1 with a write to this interface that has not ended.
    fn on_interface(written: &str, mut findings: Vec<Finding>) -> Vec<Finding> {
        let device = Device {
            bus_address: Some("0000:05:00.0".to_owned()),
            ..Device::default()
        };
        let (port, wish) = (Port::default(), LinkWish::default());
        let (netdev, ipoib) = (Netdev::default(), IpoibWish::default());
        let found = PortRef {
            device: &device,
            port: &port,
        };
        let object = Object {
            link: Some(Link {
                wish: &wish,
                port: Some(found),
            }),
            interface: Some(Interface {
                wish: &ipoib,
                netdev: &netdev,
                name: Some("ib0"),
                is_bond: false,
            }),
            ..Object::default()
        };
        note(&mut findings, &object, &stuck(written, false));
        findings
    }

    #[test]
    fn the_first_failure_of_an_interface_names_the_write_to_it() {
        let failed = |id: Id| Finding::failed(id, "found", "expected").lasting();
        let named = |id: Id| failed(id).passing().hint(&Unended::words("set it"));
        let present = || Finding::ok(Id::IpoibPresent, "ib0");
        let both = || vec![present(), failed(Id::IpoibMode), failed(Id::IpoibUp)];
        let first = vec![present(), named(Id::IpoibMode), failed(Id::IpoibUp)];
        assert_eq!(on_interface("ib0", both()), first);
        assert_eq!(on_interface("ib1", both()), both());
        assert_eq!(on_interface("0000:05:00.0", both()), both());
        // The port has a cause of its own.
        let port = || vec![failed(Id::PortState), failed(Id::IpoibUp)];
        assert_eq!(on_interface("ib0", port()), port());
    }

    #[test]
    fn an_absent_child_names_the_write_to_its_parent() {
        let address = "80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";
        let parent = Netdev {
            ifname: "ib0".to_owned(),
            hardware_type: Some(HardwareType::InfiniBand),
            address: Some(address.parse().unwrap()),
            ipoib: Some(IpoibFacts {
                pkey: Some(0xffff),
                ..IpoibFacts::default()
            }),
            ..Netdev::default()
        };
        let device = Device::default();
        let port = Port {
            port_guid: parent.port_guid(),
            ..Port::default()
        };
        let (wish, link) = (IpoibWish::default(), LinkWish::default());
        let netdev = Netdev::default();
        let object = Object {
            link: Some(Link {
                wish: &link,
                port: Some(PortRef {
                    device: &device,
                    port: &port,
                }),
            }),
            interface: Some(Interface {
                wish: &wish,
                netdev: &netdev,
                name: None,
                is_bond: false,
            }),
            ..Object::default()
        };
        let before = Finding::failed(Id::IpoibPresent, "only ib0", "a child").hint("by hand");
        for (written, is_cause) in [("ib0", true), ("ib1", false)] {
            let facts = Facts {
                netdevs: vec![parent.clone()],
                ..stuck(written, false)
            };
            let mut findings = [before.clone()];
            note(&mut findings, &object, &facts);
            assert_eq!(findings[0] != before, is_cause, "{written}");
        }
    }

    /// Whether the failure of a link that names an absent port names the write.
    fn is_named_without_port(target: &str, written: &str, is_port_types: bool) -> bool {
        let wish = LinkWish {
            target: target.to_owned().into(),
            ..LinkWish::default()
        };
        let object = Object {
            link: Some(Link {
                wish: &wish,
                port: None,
            }),
            ..Object::default()
        };
        let before = Finding::failed(Id::DevicePresent, "no RDMA device", target).lasting();
        let mut findings = [before.clone()];
        note(&mut findings, &object, &stuck(written, is_port_types));
        findings != [before]
    }

    #[test]
    fn the_words_hold_from_5_s_to_the_deadline() {
        assert_eq!(
            Unended::words("set mode connected of ib0"),
            "set mode connected of ib0: the kernel has not finished this write after 5 s; the \
             firmware may not answer: see dmesg"
        );
    }

    #[test]
    fn an_absent_port_is_explained_only_by_port_types_of_its_card() {
        let (own, other) = ("0000:05:00.0", "0000:06:00.0");
        assert!(is_named_without_port("pci=0000:05:00.0", own, true));
        assert!(!is_named_without_port("pci=0000:05:00.0", other, true));
        assert!(!is_named_without_port("mlx5_7", own, true));
        assert!(!is_named_without_port("mlx5_7", "ib1", false));
    }

    #[test]
    fn a_port_is_not_verified_while_its_card_changes_the_types_of_its_ports() {
        let device = Device {
            ifname: "mlx4_0".to_owned(),
            bus_address: Some("0000:05:00.0".to_owned()),
            ..Device::default()
        };
        let (port, wish) = (Port::default(), LinkWish::default());
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
        let of = |card: &str, is_long| {
            let facts = Facts {
                unended: vec![Unended {
                    object: card.to_owned(),
                    what: "set it".to_owned(),
                    is_port_types: true,
                    is_long,
                }],
                ..Facts::default()
            };
            let mut findings = vec![
                Finding::ok(Id::DevicePresent, "mlx4_0/1"),
                Finding::ok(Id::PortState, "ACTIVE"),
            ];
            note(&mut findings, &object, &facts);
            findings
        };
        let both = |findings: Vec<Finding>| findings.iter().map(|f| f.status).collect::<Vec<_>>();
        let unverified = [Status::Critical, Status::Skipped];
        assert_eq!(both(of("0000:06:00.0", false)), [Status::Ok, Status::Ok]);
        assert_eq!(both(of("0000:05:00.0", false)), unverified);
        assert_eq!(of("0000:05:00.0", false).first().unwrap().hint, None);
        let long = of("0000:05:00.0", true);
        let hint = long.first().unwrap().hint.clone();
        assert_eq!(hint, Some(Unended::words("set it")));
        assert_eq!(both(long), unverified, "for the whole write");
    }
}
