// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a port whose card changes the types of its ports is not verified; a write that takes long
//! is named where it keeps an object from what is expected.

use super::checks::Id;
use super::object::Object;
use crate::facts::{Facts, PortRef, Unended};
use crate::verify::report::{Finding, Status};

/// Takes the writes into account. While the types of its card's ports are written, a port is not
/// verified, whatever was found: the driver removes it. The first failed finding names a write that
/// is about the object and takes long: the write may still end, so the failure does not last.
pub fn note(findings: &mut [Finding], object: &Object<'_>, facts: &Facts) {
    let is_retyped = |write: &Unended| write.is_port_types && has_port_of(&write.object, object);
    if facts.unended.iter().any(is_retyped) {
        unverify(findings);
    }
    let mut long = facts.unended.iter().filter(|write| write.is_long);
    let Some(write) = long.find(|write| is_about(&write.object, object)) else {
        return;
    };
    let failed = |f: &&mut Finding| matches!(f.status, Status::Unknown | Status::Critical);
    if let Some(finding) = findings.iter_mut().find(failed) {
        finding.hint = Some(Unended::words(&write.what));
        finding.lasting = false;
    }
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

/// Whether the write is about the interface, bond or port of this object. While a card changes the
/// types of its ports, the port of its link is not there.
fn is_about(name: &str, object: &Object<'_>) -> bool {
    let is_name = |other: &str| other == name;
    let interface = object.interface.iter();
    let mut interfaces = interface.chain(object.ipoib.iter().map(|ipoib| &ipoib.interface));
    let port = |port: crate::facts::PortRef<'_>| {
        let device = port.device;
        is_name(&device.ifname)
            || device.bus_address.as_deref().is_some_and(is_name)
            || port.port.netdev.as_deref().is_some_and(is_name)
    };
    interfaces.any(|interface| interface.name.is_some_and(is_name))
        || object.bond.as_ref().is_some_and(|bond| is_name(bond.name))
        || object
            .link
            .as_ref()
            .is_some_and(|link| link.port.is_none_or(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Netdev, Port, PortRef};
    use crate::verify::checks::Id;
    use crate::verify::object::{Interface, Link};
    use crate::wish::expectation::LinkWish;
    use crate::wish::ipoib::IpoibWish;

    /// The hints of a link with the port mlx4_0/1 of 0000:05:00.0, or without a port.
    fn hints(written: &str, has_port: bool) -> Vec<Option<String>> {
        let facts = Facts {
            unended: vec![Unended {
                object: written.to_owned(),
                what: "set it".to_owned(),
                is_port_types: false,
                is_long: true,
            }],
            ..Facts::default()
        };
        let device = Device {
            ifname: "mlx4_0".to_owned(),
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
                port: has_port.then_some(found),
            }),
            interface: Some(Interface {
                wish: &ipoib,
                netdev: &netdev,
                name: Some("ib0"),
                is_bond: false,
            }),
            ..Object::default()
        };
        let mut findings = [
            Finding::ok(Id::IpoibPresent, "ib0"),
            Finding::failed(Id::IpoibMode, "datagram", "connected").lasting(),
            Finding::failed(Id::IpoibUp, "down", "up"),
        ];
        let before = findings.clone();
        note(&mut findings, &object, &facts);
        let is_other = |(one, other): &(&Finding, &Finding)| one != other;
        let changed = findings.iter().zip(&before).filter(is_other);
        changed.map(|(finding, _)| finding.hint.clone()).collect()
    }

    #[test]
    fn the_first_failure_names_the_write_of_its_own_object() {
        let words = Some(Unended::words("set it"));
        for own in ["ib0", "mlx4_0", "0000:05:00.0"] {
            assert_eq!(hints(own, true), std::slice::from_ref(&words), "{own}");
        }
        assert_eq!(hints("ib1", true), []);
        assert_eq!(hints("0000:06:00.0", false), [words]);
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
