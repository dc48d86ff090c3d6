// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invalid arguments that were meant for InfiniBand: ibboot must report them.

use crate::complain::Problem;
use crate::ip::Method;
use crate::net::{fields, leading_address};
use crate::selector::{Interface, Pkey, Selector};

/// Field of the interface in the full form of `ip=`.
const FULL_FORM: usize = 5;
/// The names of RDMA devices with InfiniBand begin with one of these: of the kernel's
/// (drivers/infiniband/hw), and of those that udev gives.
const DEVICES: [&str; 7] = ["ib", "mlx4_", "mlx5_", "hfi1_", "hfi2_", "mthca", "qib"];

/// Whether `name=value`, which does not parse, has an InfiniBand interface in the place where
/// such an argument has an interface.
pub(crate) fn means_infiniband(name: &str, value: &str) -> bool {
    match name {
        "ip" | "bond" if port_with_colon(value).is_some() => true,
        "ip" => address_of(value),
        "ifname" => value.split_once(':').is_some_and(|(name, _)| names(name)),
        "bond" => {
            let slaves = value.split(':').nth(1).unwrap_or_default();
            slaves.split(',').any(names)
        }
        _ => false,
    }
}

/// The problem of `name=value`, which does not parse, if it has `DEVICE:PORT` where a colon separates
/// fields.
pub(crate) fn ambiguous_port<'a>(name: &str, value: &'a str) -> Option<Problem<'a>> {
    matches!(name, "ip" | "bond" | "rd.route").then_some(())?;
    Some(Problem::Malformed {
        what: "an interface",
        text: port_with_colon(value)?,
        hint: "write a port with a slash here: DEVICE/PORT, such as mlx5_0/1",
    })
}

/// The first `DEVICE:PORT`; of one digit, because a number behind a name may be an MTU.
fn port_with_colon(value: &str) -> Option<&str> {
    value.match_indices(':').find_map(|(colon, _)| {
        let (front, end) = (value.get(..colon)?, colon.checked_add(2)?);
        let begin = front.rfind([':', ',']).map_or(0, |at| at.saturating_add(1));
        let behind = value.get(end..)?;
        let is_whole = behind.is_empty() || behind.starts_with([':', ',', '.']);
        let text = value.get(begin..end).filter(|_| is_whole)?;
        let is_device = DEVICES.iter().any(|start| text.starts_with(start));
        let is_port = matches!(Selector::parse(text), Some(Selector::Port { .. }));
        (is_device && is_port).then_some(text)
    })
}

/// Whether the text is an InfiniBand interface, or would be: too long a name, or the partition of a
/// port.
fn names(text: &str) -> bool {
    let parent = || Pkey::parse(text).map(|child| child.parent);
    let interface = Interface::parse(text).or_else(parent);
    interface.unwrap_or(Interface::Name(text)).is_infiniband()
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
