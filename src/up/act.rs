// SPDX-License-Identifier: MIT OR Apache-2.0
//! From one look to the next: what leases grant is added to what is expected, and the changes that
//! follow are made.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use tokio::time::Instant;

use super::Walk;
use super::clients::{Means, Site};
use super::speaker::Speaker;
use crate::changes::{Claim, Done, Expected, Ground, changes};
use crate::error::Error;
use crate::facts::{Facts, Netdev};
use crate::plan::{Action, Plan};
use crate::system::drivers;
use crate::wish::expectation::Expectation;
use crate::wish::ipoib::IpoibWish;

/// What was tried or logged, and is not at every look.
#[derive(Debug, Default)]
pub struct Tried {
    /// Changes.
    pub(super) done: Done,
    /// Interfaces that could not be set up, with the error that was logged.
    pub(super) not_up: BTreeMap<String, String>,
    /// Links that the kernel says are there while no look has shown them yet.
    pub(super) unseen: BTreeSet<String>,
    /// The host name that was set.
    pub(super) host_name: Option<String>,
}

/// What a module that cannot be loaded means: its own check says why, and a software link that
/// needs it will never be.
pub(super) fn module_failed(name: &str, error: &Error, expectation: &mut Expectation, plan: &Plan) {
    let text = error.to_string();
    let reason = match error.object == name {
        true => error.reason(),
        false => text.clone(),
    };
    let modules = expectation.modules.iter_mut();
    for module in modules.filter(|module| module.name == name) {
        module.refused = Some(reason.clone());
    }
    for step in &plan.steps {
        if let Action::AddLink {
            name: link, kind, ..
        } = &step.action
            && drivers::of_link(*kind) == name
        {
            refuse(expectation, link, &text);
        }
    }
}

pub(super) fn refuse(expectation: &mut Expectation, target: &str, reason: &str) {
    let links = expectation.links.iter_mut();
    for wish in links.filter(|wish| wish.target == target) {
        wish.refused = Some(reason.to_owned());
    }
}

impl Walk<'_, '_> {
    /// Does what can be done now. True if something was changed.
    pub(super) async fn act(&mut self, facts: &Facts) -> bool {
        let facts = &facts.answering();
        for index in facts
            .netdevs
            .iter()
            .filter(|n| n.up)
            .filter_map(|n| n.ifindex)
        {
            self.tried.done.record_up(index);
        }
        for netdev in facts.netdevs.iter().filter(|n| n.carrier != Some(true)) {
            if let Some(index) = netdev.ifindex {
                self.tried.done.forget(index);
                if netdev.bond.is_none() {
                    self.parts.claims.forget(index);
                }
            }
        }
        let (expectation, plan) = (self.expectation.clone(), self.plan);
        let machine = &self.machine;
        let mut expected = Expected::new(&plan.steps, &expectation, facts);
        let mut ground = Ground::read(machine.root, machine.index, &expected, facts);
        let naming = &mut self.parts.naming;
        ground.unnamed = naming.begin(machine.root, self.plan, facts);
        self.grant(&mut expected, &mut ground).await;
        let done = &mut self.tried.done;
        done.record_right_port_types(&expected, facts, &ground);
        let changes = changes(&expected, facts, &ground, done);
        self.apply(&changes, facts).await
    }

    /// Adds what leases grant, and what ARP found of addresses.
    async fn grant(&mut self, expected: &mut Expected<'_>, ground: &mut Ground) {
        for interface in &mut expected.interfaces {
            if let Some((netdev, index)) = interface.ready(ground) {
                let wish = &interface.wish;
                interface.wish = self.step_clients(wish, netdev, index, &Speaker::Own).await;
                interface.max_mtu = self.max_mtu(&interface.wish, netdev, index).await;
                self.claimed(&interface.wish, index, ground);
            }
        }
        for bond in &mut expected.bonds {
            if let Some((netdev, found, index)) = bond.ready() {
                let (named, now) = (bond.named(), Instant::now());
                let speakers = &mut self.parts.speakers;
                let speaker = speakers.of_bond((netdev, index, found), &named, now);
                bond.wish = self.step_clients(&bond.wish, netdev, index, &speaker).await;
                bond.max_mtu = self.max_mtu(&bond.wish, netdev, index).await;
                self.claimed(&bond.wish, index, ground);
            }
        }
    }

    /// Moves the clients of an interface on. Gives what is requested of it, with what servers granted.
    async fn step_clients(
        &mut self,
        wish: &IpoibWish,
        netdev: &Netdev,
        index: u32,
        speaker: &Speaker,
    ) -> IpoibWish {
        let site = Site {
            wish,
            netdev,
            index,
            speaker,
        };
        let mut means = Means {
            root: self.machine.root,
            net: &self.machine.net,
            journal: &mut self.journal,
        };
        let granted = self.parts.leasing.step(site, &mut means).await;
        if granted.is_lost {
            self.tried.done.forget(index);
        }
        granted.wish
    }

    /// The largest MTU of the driver, where a server suggests one.
    async fn max_mtu(&self, wish: &IpoibWish, netdev: &Netdev, index: u32) -> Option<u32> {
        let suggested = wish.suggested.mtu?;
        let is_open = netdev.carrier == Some(true) && netdev.mtu != Some(suggested);
        if is_open {
            self.machine.net.max_mtu(index).await
        } else {
            None
        }
    }

    fn claimed(&self, wish: &IpoibWish, index: u32, ground: &mut Ground) {
        for address in &wish.addresses {
            let IpAddr::V4(v4) = address.address else {
                continue;
            };
            let claim = if self.parts.claims.is_open(index, v4) {
                Claim::Open
            } else if let Some(owner) = self.parts.claims.owner(index, v4) {
                Claim::Taken(owner.to_owned())
            } else {
                continue;
            };
            ground.claims.insert((index, v4), claim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::planned;

    #[test]
    fn a_module_that_fails_says_why_in_its_check_and_takes_its_link_along() {
        let plan = planned("rd.ib.link=rxe0:rxe:eth0 rd.driver.post=ib_umad");
        let mut expected = plan.expectation.clone();
        let error =
            Error::new("rdma_rxe", "kernel module cannot be loaded").found("Exec format error");
        module_failed("rdma_rxe", &error, &mut expected, &plan);
        let reason = "kernel module cannot be loaded: Exec format error";
        let module = |name: &str| expected.modules.iter().find(|m| m.name == name).unwrap();
        assert_eq!(module("rdma_rxe").refused.as_deref(), Some(reason));
        assert_eq!(module("ib_umad").refused, None);
        let link = expected.links.first().unwrap();
        assert_eq!(link.refused, Some(format!("rdma_rxe: {reason}")));
    }
}
