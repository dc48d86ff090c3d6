// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes an interface join its broadcast group at once when a silent subnet administrator answers
//! again.

use crate::facts::{AddressState, Facts, Netdev, rules};
use crate::system::net::Net;
use crate::wish::ipoib::Autoconf;

/// Sets each interface in `due` down and up. After a silence of the subnet administrator the kernel
/// waits for up to 16 s before the next join (IPOIB_MAX_BACKOFF_SECONDS); down and up restarts the
/// join. Nothing is lost by that: no join is in progress during the wait, and an interface with an
/// address, or with a child that has carrier, stays up.
pub async fn rejoin(due: &[String], net: &Net, facts: &Facts) {
    for interface in due {
        let netdev = facts.netdev(interface);
        let Some((netdev, index)) = netdev.and_then(|n| Some((n, n.ifindex?))) else {
            continue;
        };
        if let Some(why) = in_use(netdev, facts) {
            log::info!(
                "{interface}: stays up, so the next join of the broadcast group may take up to 16 s: {why}"
            );
            continue;
        }
        match net.set_down(index).await {
            Ok(()) => log::info!(
                "{interface}: the subnet administrator answers again: the interface is set down and up, so that the \
                 kernel joins the broadcast group at once"
            ),
            Err(why) => log::warn!("{interface}: cannot be set down: {why}"),
        }
        if let Err(why) = net.set_up(index).await {
            log::error!("{interface}: cannot be brought up: {why}");
        }
    }
}

/// Why the interface must stay up; none: setting it down loses nothing.
fn in_use(netdev: &Netdev, facts: &Facts) -> Option<String> {
    let mut usable = netdev.addresses_in(AddressState::Usable);
    if let Some(address) = usable.find(|a| !Autoconf::LinkLocal.is_met_by(a.address)) {
        return Some(format!("it has the address {address}"));
    }
    // The kernel sets the children down with their parent.
    let mut others = facts.netdevs.iter();
    let child = others.find(|other| {
        let parent = rules::parent(other, facts);
        other.carrier == Some(true) && parent.is_some_and(|one| one.ifname == netdev.ifname)
    });
    child.map(|child| format!("its child {} has carrier", child.ifname))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FoundAddress;
    use crate::inet::Address;
    use crate::wish::ipoib::IpoibFacts;

    fn usable(text: &str) -> FoundAddress {
        text.parse::<Address>().unwrap().into()
    }

    fn netdev(ifname: &str, guid_end: u8, child: bool, carrier: bool) -> Netdev {
        let address =
            format!("80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:{guid_end:02x}");
        Netdev {
            ifname: ifname.to_owned(),
            address: Some(address.parse().unwrap()),
            carrier: Some(carrier),
            addresses: vec![usable("fe80::1/64")],
            ipoib: Some(IpoibFacts {
                child,
                ..IpoibFacts::default()
            }),
            ..Netdev::default()
        }
    }

    #[test]
    fn an_interface_with_an_address_or_a_working_child_is_not_set_down() {
        let parent = netdev("ib0", 1, false, false);
        let mut facts = Facts {
            netdevs: vec![parent.clone(), netdev("ib0.8001", 1, true, false)],
            ..Facts::default()
        };
        assert_eq!(in_use(&parent, &facts), None);
        facts.netdevs.push(netdev("ib1.8001", 2, true, true));
        assert_eq!(in_use(&parent, &facts), None);
        facts.netdevs.push(netdev("ib0.8002", 1, true, true));
        assert_eq!(
            in_use(&parent, &facts),
            Some("its child ib0.8002 has carrier".to_owned())
        );
        let child = netdev("ib0.8001", 1, true, false);
        assert_eq!(in_use(&child, &facts), None);
        let addressed = Netdev {
            addresses: vec![usable("fe80::1/64"), usable("10.0.0.1/24")],
            ..child
        };
        assert_eq!(
            in_use(&addressed, &facts),
            Some("it has the address 10.0.0.1/24".to_owned())
        );
    }
}
