// SPDX-License-Identifier: MIT OR Apache-2.0
//! `vlan=`, `bridge=` and `team=`: interfaces on top of others, which dracut's network module makes.

use core::fmt;

use heapless::Vec;

use crate::bond::BOND_SLAVES;
use crate::selector::{INTERFACE_NAME, Interface, is_name};
use crate::values::words;

words! {
    /// The kind of an interface on top of others.
    StackKind {
        /// `vlan=NAME:IF`.
        Vlan = "vlan",
        /// `bridge=NAME:IF[,IF...]`.
        Bridge = "bridge",
        /// `team=NAME:IF[,IF...][:RUNNER]`.
        Team = "team",
    }
}

/// An interface on top of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stacked<'a> {
    pub kind: StackKind,
    /// The name of the interface.
    pub name: &'a str,
    /// The interfaces below, at most [`BOND_SLAVES`].
    pub below: Vec<Interface<'a>, BOND_SLAVES>,
}

impl<'a> Stacked<'a> {
    /// Reads the value of an argument of this kind. None for a value that names no interface below:
    /// dracut has defaults and checks of its own.
    pub fn parse(kind: StackKind, text: &'a str) -> Option<Self> {
        let (name, rest) = text.split_once(':')?;
        let listed = rest.split(':').next().unwrap_or_default();
        let mut below = Vec::new();
        for interface in listed.split(',').filter_map(Interface::parse) {
            if below.push(interface).is_err() {
                break;
            }
        }
        let is_named = is_name(name, INTERFACE_NAME) && !below.is_empty();
        is_named.then_some(Self { kind, name, below })
    }

    /// Whether at least one interface below is an InfiniBand interface.
    pub fn is_infiniband(&self) -> bool {
        self.below.iter().any(Interface::is_infiniband)
    }
}
