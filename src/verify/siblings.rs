// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: which ports should be alike.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::facts::{Facts, PortRef, rules};
use crate::rdma::types::{Guid, LinkLayer, PortState};

/// What InfiniBand ports have in common that should have the same speed: the model of the board, and
/// the subnet. A storage network often is a slower subnet for other boards. Ethernet ports are not
/// compared: their prefix, fe80::/64, is the same on every network.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'a> {
    board: &'a str,
    subnet_prefix: Option<Guid>,
}

/// The fastest port of each kind.
#[derive(Debug)]
pub struct Siblings<'a>(BTreeMap<Kind<'a>, PortRef<'a>>);

impl<'a> Siblings<'a> {
    /// The ports of the machine that are ACTIVE: other ports have no speed.
    pub fn of(facts: &'a Facts) -> Siblings<'a> {
        let mut fastest: BTreeMap<Kind<'a>, PortRef<'a>> = BTreeMap::new();
        for port in facts.ports() {
            let Some(kind) = kind(port) else { continue };
            match fastest.entry(kind) {
                Entry::Vacant(entry) => {
                    entry.insert(port);
                }
                Entry::Occupied(mut entry) if gbps(port) > gbps(*entry.get()) => {
                    entry.insert(port);
                }
                Entry::Occupied(_) => {}
            }
        }
        Siblings(fastest)
    }

    /// The fastest port of the same kind, if that port is faster.
    pub fn faster_than(&self, port: PortRef<'a>) -> Option<PortRef<'a>> {
        let fastest = self.0.get(&kind(port)?)?;
        (gbps(*fastest) > gbps(port)).then_some(*fastest)
    }
}

/// None of a port that is not compared, or whose speed or model is unknown.
fn kind(port: PortRef<'_>) -> Option<Kind<'_>> {
    let rate = port.port.rate.as_ref()?;
    let is_compared = port.port.link_layer == Some(LinkLayer::InfiniBand)
        && port.port.state == Some(PortState::Active)
        && !rules::may_be_faster(port, rate);
    let board = port.device.board_id.as_deref().filter(|_| is_compared)?;
    Some(Kind {
        board,
        subnet_prefix: port.port.subnet_prefix,
    })
}

fn gbps(port: PortRef<'_>) -> f64 {
    port.port.rate.as_ref().map_or(0.0, |rate| rate.gbps)
}
