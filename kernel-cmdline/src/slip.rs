// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invalid arguments that were meant for InfiniBand: ibboot must report them.

use crate::net::{fields, leading_address};
use crate::selector::Interface;

/// Field of the interface in the full form of `ip=`.
const FULL_FORM: usize = 5;

/// Whether `name=value`, which does not parse, has an InfiniBand interface in the place where
/// such an argument has an interface.
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

/// The interface is the first field, or the field of the full form.
fn address_of(value: &str) -> bool {
    let Ok(fields) = fields(value) else {
        return false;
    };
    if let [only] = fields.as_slice() {
        // ip=ibtf is a misspelt method.
        return names(only) && only.ends_with(|end: char| end.is_ascii_digit());
    }
    [0, FULL_FORM].into_iter().any(|at| {
        let from = fields.get(at..).unwrap_or_default();
        let address = leading_address(from, |_| true);
        from.first().is_some_and(|field| names(field))
            || address.is_some_and(|(address, _)| address.is_infiniband())
    })
}
