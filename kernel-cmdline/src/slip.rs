// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invalid arguments that were meant for InfiniBand: ibboot must report them.

use crate::ip::Method;
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

/// A name with a number: `ip=ibtf` is a misspelt method.
fn is_numbered(text: &str) -> bool {
    names(text) && text.ends_with(|end: char| end.is_ascii_digit())
}

/// The interface is the first field, or the field of the full form, or beside a method: a colon too
/// few or too many moves the fields.
fn address_of(value: &str) -> bool {
    if is_beside_method(value) {
        return true;
    }
    let Ok(fields) = fields(value) else {
        return false;
    };
    if let [only] = fields.as_slice() {
        return is_numbered(only);
    }
    [0, FULL_FORM].into_iter().any(|at| {
        let from = fields.get(at..).unwrap_or_default();
        let address = leading_address(from, |_| true);
        from.first().is_some_and(|field| names(field))
            || address.is_some_and(|(address, _)| address.is_infiniband())
    })
}

fn is_beside_method(value: &str) -> bool {
    let is_pair = |name: &str, method: &str| is_numbered(name) && Method::parse(method).is_some();
    let words = value.split([':', ',', ';', '=', '\'']);
    let next = words.clone().skip(1);
    words
        .zip(next)
        .any(|(first, second)| is_pair(first, second) || is_pair(second, first))
}
