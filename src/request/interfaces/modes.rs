// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: `rd.ib.mode=` and `rd.ib.mtu=`: the IPoIB mode and the MTU of each interface.

use kernel_cmdline::{Arguments, Interface, Spanned};

use super::Collected;
use super::identity::{bonds_of, key};
use crate::wish::ipoib::IpoibWish;
use crate::wish::origin::{Requested, origin};

/// What `rd.ib.mode=` and `rd.ib.mtu=` without an interface request of every interface.
pub fn unnamed(arguments: &Arguments<'_>) -> Option<Requested<IpoibWish>> {
    let mode = applied(&arguments.ib.modes, |mode| mode.interface, |_| false);
    let mtu = applied(&arguments.ib.mtus, |mtu| mtu.interface, |_| false);
    let wish = IpoibWish {
        mode: mode.map(|mode| mode.value.mode),
        mtu: mtu.map(|mtu| mtu.value.mtu),
        ..IpoibWish::default()
    };
    let by = mode.map(origin).or_else(|| mtu.map(origin))?;
    Some(Requested {
        value: wish,
        origin: by,
    })
}

impl Collected<'_, '_> {
    /// Adds the interfaces that only `rd.ib.mode=` and `rd.ib.mtu=` name, before any of their values
    /// applies: a value for all interfaces is for these too.
    pub(super) fn set_only(&mut self) {
        let ib = &self.arguments.ib;
        let modes = ib.modes.iter();
        let modes = modes.filter_map(|mode| Some(mode.with(mode.value.interface?)));
        let mtus = ib.mtus.iter();
        let mtus = mtus.filter_map(|mtu| Some(mtu.with(mtu.value.interface?)));
        for interface in modes.chain(mtus) {
            let key = key(self.arguments, &interface.value);
            if self.find(&key).is_none() {
                self.add(&interface, |_| ());
            }
        }
    }

    /// Sets modes.
    pub(super) fn modes(&mut self) {
        let arguments = self.arguments;
        for found in &mut self.found {
            // The mode belongs to the slaves, not to the bond.
            if bonds_of(arguments).any(|bond| found.value.port == bond.value.name) {
                continue;
            }
            let is_it = |interface: &Interface<'_>| {
                let mut bonds = bonds_of(arguments);
                match bonds.find(|bond| *interface == Interface::Name(bond.value.name)) {
                    Some(bond) => {
                        let mut slaves = bond.value.slaves.iter();
                        slaves.any(|slave| found.value.is(&key(arguments, slave)))
                    }
                    None => found.value.is(&key(arguments, interface)),
                }
            };
            let mode = applied(&arguments.ib.modes, |mode| mode.interface, is_it);
            found.value.ipoib.mode = mode.map(|mode| mode.value.mode);
            found.value.follows.extend(mode.map(origin));
        }
    }

    /// Sets MTUs; the MTU field of `ip=` and the MTU of `bond=` have precedence.
    pub(super) fn mtus(&mut self) {
        let arguments = self.arguments;
        for found in &mut self.found {
            if found.value.ipoib.bond.is_some() {
                found.value.ipoib.mtu = None;
            } else if found.value.ipoib.mtu.is_none() {
                let is_it = |interface: &Interface<'_>| found.value.is(&key(arguments, interface));
                let mtu = applied(&arguments.ib.mtus, |mtu| mtu.interface, is_it);
                found.value.ipoib.mtu = mtu.map(|mtu| mtu.value.mtu);
                found.value.follows.extend(mtu.map(origin));
            }
        }
    }
}

/// The last argument that names the interface, otherwise the last one for all interfaces.
fn applied<'a, 'b, T>(
    all: &'a [Spanned<'b, T>],
    interface: impl Fn(&T) -> Option<Interface<'b>>,
    is_it: impl Fn(&Interface<'b>) -> bool,
) -> Option<&'a Spanned<'b, T>> {
    let named = |one: &&Spanned<'b, T>| interface(&one.value).is_some_and(|named| is_it(&named));
    let for_all = |one: &&Spanned<'b, T>| interface(&one.value).is_none();
    all.iter()
        .rfind(named)
        .or_else(|| all.iter().rfind(for_all))
}

#[cfg(test)]
mod tests {
    use crate::request::Request;
    use crate::wish::ipoib::{RequestedMode, RequestedMtu};

    #[test]
    fn a_mode_or_mtu_for_one_interface_precedes_those_for_all_in_any_order() {
        let of_one = "rd.ib.mode=ib0:auto rd.ib.mode=ib0:datagram rd.ib.mtu=ib0:2044";
        let of_all = "rd.ib.mode=connected rd.ib.mtu=max";
        for line in [format!("{of_one} {of_all}"), format!("{of_all} {of_one}")] {
            let request = Request::from_text(&format!("ip=ib0:dhcp {line} ip=ib1:dhcp"));
            let wishes = request.interfaces.iter().map(|found| &found.value);
            let wishes = wishes.map(|found| (&*found.name, found.ipoib.mode, found.ipoib.mtu));
            assert_eq!(
                wishes.collect::<Vec<_>>(),
                [
                    (
                        "ib0",
                        Some(RequestedMode::Datagram),
                        Some(RequestedMtu::Bytes(2044))
                    ),
                    (
                        "ib1",
                        Some(RequestedMode::Connected),
                        Some(RequestedMtu::Max)
                    ),
                ],
                "{line}"
            );
        }
    }
}
