// SPDX-License-Identifier: MIT OR Apache-2.0
//! The links of the plan: software links, IPoIB interfaces, bonds, and any port.

use kernel_cmdline::LinkKind;

use super::{Action, Draft, Interface, Step};
use crate::facts::Netdev;
use crate::hardware::HardwareType;
use crate::rdma::types::LinkLayer;
use crate::request::SoftLink;
use crate::request::interfaces::{InterfaceWish, RequestedBond};
use crate::system::drivers;
use crate::system::modules::Found;
use crate::wish::expectation::{LinkWish, Require, Target};
use crate::wish::origin::Requested;
use crate::wish::selector::Selector;

impl Draft<'_> {
    pub(super) fn soft_links(&mut self) -> Vec<LinkWish> {
        let request = self.request;
        let mut wishes = Vec::new();
        for (position, link) in request.links.iter().enumerate() {
            let before = request.links.get(..position).unwrap_or(&[]);
            let refused = self.refuse_link(link, before);
            match &refused {
                Some(reason) => self.refuse(&link.value.name, reason, Some(&link.origin)),
                None => self.steps.push(Step {
                    action: Action::AddLink {
                        name: link.value.name.clone(),
                        kind: link.value.kind,
                        netdev: link.value.netdev.clone(),
                    },
                    requested_by: Some(link.origin.clone()),
                }),
            }
            wishes.push(LinkWish {
                target: Target::from(link.value.name.clone()),
                requested_by: Some(link.origin.clone()),
                link_layer: Some(LinkLayer::Ethernet),
                netdev: Some(link.value.netdev.clone()),
                refused,
                ..LinkWish::default()
            });
        }
        wishes
    }

    fn refuse_link(
        &mut self,
        link: &Requested<SoftLink>,
        before: &[Requested<SoftLink>],
    ) -> Option<String> {
        let SoftLink { kind, netdev, .. } = &link.value;
        // With two software devices on one interface rdma_cm would use the first one.
        if let Some(other) = before.iter().find(|other| &other.value.netdev == netdev) {
            return Some(format!(
                "{netdev} already carries {}: only one software link per interface",
                other.value.name
            ));
        }
        if let Some(reason) = self
            .inventory
            .facts
            .netdev(netdev)
            .and_then(|n| unfit(n, *kind))
        {
            return Some(reason);
        }
        if self.load(drivers::of_link(*kind), Some(&link.origin)) {
            return None;
        }
        // The refusal of the module has the details; the refusal of the link names the module.
        let module = drivers::of_link(*kind);
        let why = self.why_not(module);
        Some(match self.inventory.modules.find(module) {
            Found::Missing if *kind == LinkKind::Siw => {
                format!("{why} (many distribution kernels are built without it)")
            }
            _ => why,
        })
    }

    /// The wish for a port that `rd.ib.require=` lists.
    pub(super) fn port(&mut self, port: &Requested<Selector>) -> LinkWish {
        let refused = self.no_driver.clone();
        let refused = refused.filter(|_| !self.may_be_software(&port.value));
        if let Some(reason) = &refused {
            self.refuse(port.value.as_str(), reason, Some(&port.origin));
        }
        LinkWish {
            target: Target::from(port.value.clone()),
            requested_by: Some(port.origin.clone()),
            undriven: refused.is_some(),
            refused,
            ..LinkWish::default()
        }
    }

    /// Plans the IPoIB interface of a port; `links` may have the port under the same name already.
    pub(super) fn interface(
        &mut self,
        interface: &Requested<InterfaceWish>,
        links: &mut Vec<LinkWish>,
    ) {
        let InterfaceWish {
            name, port, ipoib, ..
        } = &interface.value;
        let refused = interface.value.refused.clone().or_else(|| self.no_ipoib());
        let undriven = interface.value.refused.is_none() && refused.is_some();
        // rd.ib.require= may list the interface or its port.
        let listed = |link: &&mut LinkWish| {
            link.ipoib.is_none()
                && (link.target == *name || (link.target == *port && ipoib.pkey.is_none()))
        };
        if let Some(link) = links.iter_mut().find(listed) {
            link.port = (link.target != *port).then(|| port.clone());
            link.link_layer = Some(LinkLayer::InfiniBand);
            link.undriven = undriven;
            link.refused.clone_from(&refused);
            link.ipoib = Some(ipoib.clone());
            let target = link.target.clone();
            return self.plan_interface(interface, target, refused);
        }
        links.push(LinkWish {
            target: Target::from(name.clone()),
            port: (*port != *name).then(|| port.clone()),
            requested_by: Some(interface.origin.clone()),
            link_layer: Some(LinkLayer::InfiniBand),
            ipoib: Some(ipoib.clone()),
            undriven,
            refused: refused.clone(),
            ..LinkWish::default()
        });
        self.plan_interface(interface, Target::from(name.clone()), refused);
    }

    fn plan_interface(
        &mut self,
        interface: &Requested<InterfaceWish>,
        link: Target,
        refused: Option<String>,
    ) {
        let name = &interface.value.name;
        match refused {
            Some(reason) => self.refuse(name, &reason, Some(&interface.origin)),
            None => self.interfaces.push(Requested {
                value: Interface {
                    name: name.clone(),
                    link,
                },
                origin: interface.origin.clone(),
            }),
        }
    }

    /// Plans a bond of interfaces that are already planned.
    pub(super) fn bond(&mut self, bond: &Requested<RequestedBond>, links: &mut Vec<LinkWish>) {
        let interface = &bond.value.interface;
        let name = &interface.name;
        let mut refused = interface.refused.clone().or_else(|| self.no_ipoib());
        if let Some(reason) = &refused {
            self.refuse(name, reason, Some(&bond.origin));
        } else if !self.load(drivers::BONDING, Some(&bond.origin)) {
            let reason = self.why_not(drivers::BONDING);
            self.refuse(name, &reason, Some(&bond.origin));
            refused = Some(reason);
        }
        // rd.ib.require= may list the bond.
        links.retain(|link| link.target != *name);
        links.push(LinkWish {
            target: Target::from(name.clone()),
            requested_by: Some(bond.origin.clone()),
            ipoib: Some(interface.ipoib.clone()),
            bond: Some(bond.value.bond.clone()),
            undriven: interface.refused.is_none() && refused.is_some(),
            refused,
            ..LinkWish::default()
        });
    }

    /// Applies `rd.ib.mode=` and `rd.ib.mtu=` without an interface to the ports that
    /// `rd.ib.require=` lists, if no argument names their interfaces.
    pub(super) fn all_interfaces(&self, links: &mut [LinkWish]) {
        let Some(all) = self.request.any_interface.as_ref() else {
            return;
        };
        let made = |link: &LinkWish| {
            let mut links = self.request.links.iter();
            links.any(|made| made.value.is_named(link.target.as_str()))
        };
        let listed = |link: &LinkWish| {
            let mut ports = self.request.required.ports().iter();
            ports.any(|port| link.target == port.value)
        };
        let is_bare = |link: &&mut LinkWish| listed(link) && link.ipoib.is_none() && !made(link);
        for link in links.iter_mut().filter(is_bare) {
            link.ipoib = Some(all.value.clone());
            link.of_all = true;
        }
    }

    /// The wish for any port.
    pub(super) fn any_port(&mut self, require: Require) -> LinkWish {
        let refused = self.no_driver.clone();
        let requested = self.request.requested_by.as_ref();
        if let Some(reason) = &refused {
            self.refuse(Target::Any.as_str(), reason, requested);
        }
        let all = self.request.any_interface.as_ref();
        LinkWish {
            target: Target::Any,
            requested_by: requested.cloned(),
            link_layer: self.link_layer(require),
            except: self.except(require),
            refused,
            required: require == Require::All,
            ipoib: all.map(|wish| wish.value.clone()),
            of_all: all.is_some(),
            ..LinkWish::default()
        }
    }
}

/// Why a software link on this interface is not possible.
fn unfit(netdev: &Netdev, kind: LinkKind) -> Option<String> {
    let name = &netdev.ifname;
    if netdev.is_infiniband() {
        return Some(format!(
            "{name} is an IPoIB interface: a software link needs an Ethernet interface"
        ));
    }
    if kind == LinkKind::Rxe && netdev.kind.as_deref() == Some("vlan") {
        return Some(format!(
            "{name} is a VLAN: the kernel creates Soft-RoCE only on the parent interface"
        ));
    }
    let loopback = name == "lo";
    match netdev.hardware_type {
        None | Some(HardwareType::Ethernet) => None,
        Some(_) if loopback => None,
        Some(other) => Some(format!(
            "{name} is not an Ethernet interface (ARP hardware type {other})"
        )),
    }
}
