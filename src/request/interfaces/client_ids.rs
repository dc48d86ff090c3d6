// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the client identifier that each interface sends to DHCP servers: `rd.ib.dhcp.client-id=`,
//! `rd.net.dhcp.client-id=`, and the interfaces of one port.

use kernel_cmdline::{ClientIdForm, Interface};

use super::identity::{Key, bonds_of, key};
use super::{Collected, InterfaceWish};
use crate::dhcp::identity::RequestedId;
use crate::wish::origin::origin;
use crate::wish::selector::Selector;

impl Collected<'_, '_> {
    /// Sets client identifiers. Those for one interface precede those for all; an identifier that
    /// the command line gives as bytes precedes both.
    pub(super) fn client_ids(&mut self) {
        let arguments = self.arguments;
        let of_form = |form: ClientIdForm| match form {
            ClientIdForm::Firmware => RequestedId::Firmware,
            ClientIdForm::Guid => RequestedId::Hardware,
            ClientIdForm::PortGuid => RequestedId::PortGuid,
            ClientIdForm::Ipxe => RequestedId::Ipxe,
        };
        for found in &mut self.found {
            let means = |interface: &Interface<'_>| found.value.is(&key(arguments, interface));
            let (mut client_id, mut by) = (RequestedId::default(), None);
            let forms = &arguments.ib.client_ids;
            let all = forms.iter().filter(|id| id.value.interface.is_none());
            let named = forms.iter().filter(|id| {
                let interface = id.value.interface.as_ref();
                interface.is_some_and(means)
            });
            for id in all.chain(named) {
                client_id = of_form(id.value.form);
                by = Some(origin(id));
            }
            let explicit = arguments.net.dhcp.client_ids.iter();
            for id in explicit.filter(|id| means(&id.value.interface)) {
                client_id = RequestedId::Bytes(id.value.id.bytes().collect());
                by = Some(origin(id));
            }
            let ipoib = &found.value.ipoib;
            if ipoib.dhcp.is_some() || ipoib.dhcp6.is_some() || ipoib.information.is_some() {
                found.value.follows.extend(by);
            }
            if let Some(dhcp6) = &mut found.value.ipoib.dhcp6 {
                dhcp6.client_id = client_id.clone();
            }
            if let Some(information) = &mut found.value.ipoib.information {
                information.client_id = client_id.clone();
            }
            if let Some(dhcp) = &mut found.value.ipoib.dhcp {
                dhcp.client_id = client_id;
            }
        }
    }

    /// Gives the interfaces of one port different client identifiers: only one sends that of the
    /// firmware. Interfaces of one client need an IAID each (RFC 4361 6.1): of two leases with one
    /// identifier dnsmasq forgets the first, whatever their networks are.
    pub(super) fn partition_ids(&mut self) {
        let arguments = self.arguments;
        // A bond sends the GUID of its first interface.
        let sender = |one: &InterfaceWish| {
            let mut bonds = bonds_of(arguments);
            let bond = bonds.find(|bond| one.port == bond.value.name);
            let first = bond.and_then(|bond| bond.value.slaves.first());
            first.map_or_else(|| one.key(), |slave| key(arguments, slave))
        };
        let is_firmware = |one: &InterfaceWish| {
            let dhcp = one.ipoib.dhcp.as_ref();
            dhcp.is_some_and(|dhcp| dhcp.client_id == RequestedId::Firmware)
        };
        let mut senders: Vec<(usize, bool, Key)> = Vec::new();
        for (at, found) in self.found.iter().enumerate() {
            let one = &found.value;
            if is_firmware(one) {
                senders.push((at, one.ipoib.boot, sender(one)));
            }
        }
        // The port's own interface comes first, then the boot device.
        senders.sort_by_key(|(_, is_boot, key)| (key.pkey.is_some(), !is_boot));
        let mut ports: Vec<&Selector> = Vec::new();
        for (at, _, key) in &senders {
            let found = self.found.get_mut(*at).map(|found| &mut found.value.ipoib);
            let dhcp = found.and_then(|ipoib| ipoib.dhcp.as_mut());
            if let (Some(dhcp), Some(pkey), true) = (dhcp, key.pkey, ports.contains(&&key.port)) {
                dhcp.client_id = RequestedId::Partition(pkey);
            }
            ports.push(&key.port);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dhcp::identity::RequestedId;
    use crate::request::Request;

    #[test]
    fn of_the_interfaces_of_a_port_one_has_the_identifier_of_the_firmware() {
        use RequestedId::{Firmware, Hardware, Partition};
        let ids = |line: &str| -> Vec<(String, RequestedId)> {
            let request = Request::from_text(line);
            let all = request.all_interfaces().cloned();
            all.filter_map(|one| Some((one.name, one.ipoib.dhcp?.client_id)))
                .collect()
        };
        let [one, two] = [Partition(0x8001), Partition(0x8002)];
        for (line, expected) in [
            ("ip=ib0.8001:dhcp", &[("ib0.8001", Firmware)][..]),
            (
                "ip=ib0.8001:dhcp ip=ib0:off ip=ib1:dhcp",
                &[("ib0.8001", Firmware), ("ib1", Firmware)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0:dhcp",
                &[("ib0.8001", one.clone()), ("ib0", Firmware)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0.8002:dhcp",
                &[("ib0.8001", Firmware), ("ib0.8002", two)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0.8002:dhcp bootdev=ib0.8002",
                &[("ib0.8001", one.clone()), ("ib0.8002", Firmware)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0:dhcp rd.ib.dhcp.client-id=guid",
                &[("ib0.8001", Hardware), ("ib0", Hardware)],
            ),
            (
                "ip=ib0.8001:dhcp ip=ib0:dhcp rd.ib.dhcp.client-id=ib0:guid",
                &[("ib0.8001", Firmware), ("ib0", Hardware)],
            ),
            (
                "bond=a:ib0,ib1 bond=b:ib0.8001,ib1.8001 ip=a:dhcp ip=b:dhcp",
                &[("a", Firmware), ("b", one)],
            ),
        ] {
            let mut found = ids(line);
            let mut expected: Vec<(String, RequestedId)> = expected
                .iter()
                .map(|(name, id)| ((*name).to_owned(), id.clone()))
                .collect();
            let by_name = |one: &(String, RequestedId)| one.0.clone();
            found.sort_by_key(by_name);
            expected.sort_by_key(by_name);
            assert_eq!(found, expected, "{line}");
        }
    }
}
