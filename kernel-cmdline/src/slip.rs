// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that are wrong and were meant for InfiniBand all the same: somebody must say so.

use crate::net::{fields, leading_address};
use crate::selector::Interface;

/// Field of the interface in the full form of `ip=`.
const FULL_FORM: usize = 5;

/// Whether `name=value`, which does not parse, clearly names an InfiniBand interface, where such
/// an argument names one.
pub(crate) fn means_infiniband(name: &str, value: &str) -> bool {
    match name {
        "ip" => address_of(value),
        "ifname" => value.split_once(':').is_some_and(|(name, _)| names(name)),
        "bond" => {
            let slaves = value.split(':').nth(1).unwrap_or_default();
            slaves.split(',').any(names)
        }
        _ => false,
    }
}

fn names(text: &str) -> bool {
    Interface::parse(text).is_some_and(|interface| interface.is_infiniband())
}

/// The interface stands in front, or where the full form has it.
fn address_of(value: &str) -> bool {
    let Ok(fields) = fields(value) else {
        return false;
    };
    if let [only] = fields.as_slice() {
        // ip=ibtf is a method with a slip in it.
        return names(only) && only.ends_with(|end: char| end.is_ascii_digit());
    }
    [0, FULL_FORM].into_iter().any(|at| {
        let from = fields.get(at..).unwrap_or_default();
        let address = leading_address(from, |_| true);
        from.first().is_some_and(|field| names(field))
            || address.is_some_and(|(address, _)| address.is_infiniband())
    })
}
