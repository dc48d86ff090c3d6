// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPoIB interfaces: child, name, mode, up, carrier, MTU, addresses, in this order. The mode
//! before up, because some drivers take it only then; the MTU after carrier, because the
//! broadcast group decides it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use kernel_cmdline::Selector;

use super::Walk;
use super::speaker::Speaker;
use crate::dhcp::socket::Hardware;
use crate::error::{Error, errno_text};
use crate::facts::{Facts, Netdev, PortRef, rules, select};
use crate::inet::{Address, Route};
use crate::system::root::Root;
use crate::wish::expectation::LinkWish;
use crate::wish::ipoib::{self, FULL_MEMBER, Mode, Suggested, Wish};

/// Nobody wins against another program that names interfaces: give up after so many times.
const RENAMES: u32 = 3;
/// Routes of a DHCP server that are named in its line of the log.
const ROUTES_SAID: usize = 8;

/// What was tried on an interface and must not be tried on every look.
#[derive(Debug, Default)]
pub struct Tried {
    /// How often each interface index was renamed.
    renames: BTreeMap<u32, u32>,
    /// (interface index, MTU) since the last carrier.
    mtu: BTreeSet<(u32, u32)>,
    /// Interface index, network (none: everything) and gateway of what a server suggested and was set
    /// since the last carrier.
    routes: BTreeSet<(u32, Option<Address>, Option<IpAddr>)>,
}

impl Tried {
    /// Its carrier or its lease went: the next one may bring another MTU, and routes are to be set anew.
    pub(super) fn forget_tried(&mut self, index: u32) {
        self.mtu.retain(|(tried, _)| *tried != index);
        self.routes.retain(|(tried, ..)| *tried != index);
    }
}

impl Walk<'_> {
    /// Brings every wanted interface one step further. True if something was changed.
    pub(super) async fn interfaces(&mut self, facts: &Facts) -> bool {
        let wishes: Vec<LinkWish> = self
            .expectation
            .links
            .iter()
            .chain(&self.expectation.any_port)
            .filter(|wish| wish.ipoib.is_some() && wish.bond.is_none() && wish.refused.is_none())
            .cloned()
            .collect();
        let named = rules::named_interfaces(&self.expectation, |link| ports_of(link, facts));
        let mut changed = false;
        for link in wishes {
            let Some(wish) = &link.ipoib else { continue };
            let ports = ports_of(&link, facts).into_iter();
            for port in ports.filter(|port| rules::wants_interface(&link, *port, &named)) {
                changed |= self.interface(&link, wish, port, facts).await;
            }
        }
        changed
    }

    async fn interface(
        &mut self,
        link: &LinkWish,
        wish: &Wish,
        port: PortRef<'_>,
        facts: &Facts,
    ) -> bool {
        let Some(netdev) = rules::interface(wish, port, facts) else {
            return self.create_child(wish, port, facts);
        };
        let Some(index) = netdev.ifindex.filter(|_| self.is_settled(netdev)) else {
            return false;
        };
        if let Some(name) = wish.ifname.as_deref().filter(|name| *name != netdev.ifname) {
            return self.rename(netdev, index, name, facts).await;
        }
        let mut changed = self.set_mode(link, wish, netdev);
        // A child is up only while its parent is.
        if wish.pkey.is_some()
            && let Some(parent) = rules::interface(&Wish::default(), port, facts)
        {
            changed |= self.set_up(&parent.ifname, facts).await;
        }
        // Its bond sets it up, and has what follows.
        if wish.bond.is_some() {
            return changed;
        }
        self.set_autoconf(wish, netdev);
        changed |= self.set_up(&netdev.ifname, facts).await;
        let speaker = &Speaker::Own;
        let wish = &self.granted(wish, netdev, index, speaker).await;
        if netdev.carrier != Some(true) {
            self.acts.interfaces.forget_tried(index);
            self.parts.claims.forget(index);
            return changed;
        }
        changed |= self.set_mtu(wish, netdev, index).await;
        changed |= self.try_mtu(wish, netdev, index, &[]).await;
        if self.set_addresses(wish, netdev, index).await {
            self.parts.leasing.v4.announce(index);
            changed = true;
        }
        changed
    }

    fn create_child(&mut self, wish: &Wish, port: PortRef<'_>, facts: &Facts) -> bool {
        let parent = rules::interface(&Wish::default(), port, facts);
        let (Some(pkey), Some(parent)) = (wish.pkey, parent) else {
            return false;
        };
        // The kernel makes the child's name out of its parent's.
        if !self.is_settled(parent) {
            return false;
        }
        // Full membership always: the kernel compares before it sets the bit, and would make a
        // second child for the limited spelling of the same partition.
        let text = format!("{:#06x}\n", pkey | FULL_MEMBER);
        let path = format!("/sys/class/net/{}/create_child", parent.ifname);
        match self.root.set(&path, &text) {
            Ok(()) => {
                log::info!(
                    "{}: child of P_Key {} made (full membership bit set)",
                    parent.ifname,
                    text.trim()
                );
                true
            }
            Err(e) => {
                let hint = if e.raw_os_error() == Some(libc::ENOTUNIQ) {
                    "an interface with this P_Key is there already: look at ip -d link"
                } else {
                    "see dmesg"
                };
                let error = Error::io(
                    &path,
                    format!("child of P_Key {} cannot be made", text.trim()),
                    &e,
                )
                .hint(hint);
                self.journal.tell_once(&parent.ifname, &error);
                false
            }
        }
    }

    async fn rename(&mut self, netdev: &Netdev, index: u32, name: &str, facts: &Facts) -> bool {
        // Another interface in the way steps aside: ifname= may swap ib0 and ib1.
        if let Some(other) = facts.netdev(name) {
            if other.hardware_type != Some(select::ARPHRD_INFINIBAND) {
                let error = Error::new(&netdev.ifname, format!("cannot be renamed to {name}"))
                    .seen("an interface that is not InfiniBand has this name")
                    .hint("choose another name in ifname=");
                self.journal.tell_once(&netdev.ifname, &error);
                return false;
            }
            let aside = format!("ib-aside{}", other.ifindex.unwrap_or(0));
            let Some(other_index) = other.ifindex else {
                return false;
            };
            return self.is_settled(other) && self.rename_to(other, other_index, &aside).await;
        }
        self.rename_to(netdev, index, name).await
    }

    async fn rename_to(&mut self, netdev: &Netdev, index: u32, name: &str) -> bool {
        let times = self.acts.interfaces.renames.entry(index).or_default();
        if *times >= RENAMES {
            return false;
        }
        *times += 1;
        match self.net.rename(index, name).await {
            Ok(()) => {
                log::info!("{}: renamed to {name}", netdev.ifname);
                true
            }
            Err(why) => {
                let error = Error::new(&netdev.ifname, format!("cannot be renamed to {name}"))
                    .seen(why)
                    .hint("kernels before 6.2 rename only what is down: load ib_ipoib no earlier than ibboot does");
                self.journal.tell_once(&netdev.ifname, &error);
                false
            }
        }
    }

    fn set_mode(&mut self, link: &LinkWish, wish: &Wish, netdev: &Netdev) -> bool {
        let Some(wanted) = wish.mode else {
            return false;
        };
        let seen = netdev.ipoib.as_ref().and_then(|seen| seen.mode);
        let mode = match rules::mode(wanted, netdev) {
            Ok(mode) => mode,
            Err(reason) => {
                // The check of the mode says that waiting does not help.
                self.journal
                    .tell_once(&link.wanted, &Error::new(&netdev.ifname, reason));
                return false;
            }
        };
        if seen == Some(mode) {
            return false;
        }
        match set_mode(self.root, &netdev.ifname, mode) {
            Ok(()) => {
                log::info!("{}: mode {mode}", netdev.ifname);
                true
            }
            Err(error) => {
                self.journal.tell_once(&netdev.ifname, &error);
                false
            }
        }
    }

    pub(super) async fn set_mtu(&mut self, wish: &Wish, netdev: &Netdev, index: u32) -> bool {
        let wanted = wish
            .mtu
            .and_then(|wanted| rules::mtu_to_set(wanted, netdev));
        let Some(bytes) = wanted.filter(|bytes| self.acts.interfaces.mtu.insert((index, *bytes)))
        else {
            return false;
        };
        match self.net.set_mtu(index, bytes).await {
            Ok(()) => true,
            Err(why) => {
                // "As much as there is" is not an error where the device has less.
                if wish.mtu != Some(ipoib::WantedMtu::Max) {
                    let error =
                        Error::new(&netdev.ifname, format!("MTU {bytes} is refused")).seen(why);
                    self.journal.tell_once(&netdev.ifname, &error);
                }
                false
            }
        }
    }

    /// The MTU that a DHCP server suggests: what the device makes of it, its check says.
    pub(super) async fn try_mtu(
        &mut self,
        wish: &Wish,
        netdev: &Netdev,
        index: u32,
        slaves: &[&Netdev],
    ) -> bool {
        let suggested = &wish.suggested;
        if suggested.mtu.is_none() || suggested.mtu == netdev.mtu {
            return false;
        }
        let device_max = self.net.max_mtu(index).await;
        let bytes = rules::suggested_mtu(suggested, netdev, device_max, slaves);
        let Some(bytes) = bytes.filter(|bytes| self.acts.interfaces.mtu.insert((index, *bytes)))
        else {
            return false;
        };
        match self.net.set_mtu(index, bytes).await {
            Ok(()) => true,
            Err(why) => {
                log::debug!("{}: MTU {bytes} is refused: {why}", netdev.ifname);
                false
            }
        }
    }

    pub(super) async fn set_addresses(&mut self, wish: &Wish, netdev: &Netdev, index: u32) -> bool {
        let mut changed = false;
        for address in &wish.addresses {
            let text = address.to_string();
            // What a DHCP server granted its client has asked for already.
            let v4 = match address.address {
                IpAddr::V4(v4) if wish.dhcp.is_none() => Some(v4),
                _ => None,
            };
            let mut there = netdev.addresses.iter().chain(&netdev.tentative);
            if there.any(|there| *there == text) {
                if let Some(v4) = v4.filter(|v4| self.parts.claims.is_open(index, *v4)) {
                    self.may_be_set(netdev, v4);
                }
                changed |= self.yield_address(netdev, index, address, v4).await;
                continue;
            }
            if netdev.duplicates.contains(&text) {
                continue;
            }
            if v4.is_some_and(|v4| !self.may_be_set(netdev, v4)) {
                // Routes through it wait for it.
                return changed;
            }
            let peer = wish.peer_of(address);
            match self
                .net
                .add_address(index, address.address, address.prefix, peer)
                .await
            {
                Ok(()) => {
                    log::info!("{}: address {address}", netdev.ifname);
                    changed = true;
                }
                Err(why) => {
                    let error =
                        Error::new(&netdev.ifname, format!("address {address} cannot be set"))
                            .seen(why);
                    self.journal.tell_once(&netdev.ifname, &error);
                }
            }
        }
        // A gateway may be reached by one of the other routes only: those first.
        for route in wish.routes.iter().filter(|r| !netdev.has_route(r)) {
            let added = self
                .net
                .add_route(index, Some(route.network), route.gateway);
            let added = added.await;
            changed |= self.note_route(netdev, &format!("route {route}"), added);
        }
        let missing = wish
            .gateways
            .iter()
            .filter(|gateway| !netdev.gateways.contains(gateway));
        for gateway in missing {
            let added = self.net.add_route(index, None, Some(*gateway)).await;
            changed |= self.note_route(netdev, &format!("default gateway {gateway}"), added);
        }
        changed | self.try_routes(&wish.suggested, netdev, index).await
    }

    /// The routes that a DHCP server suggests, each set once until the carrier or the lease goes:
    /// whether they are there then, their check says.
    async fn try_routes(&mut self, suggested: &Suggested, netdev: &Netdev, index: u32) -> bool {
        let default = suggested
            .gateway
            .filter(|gateway| !netdev.gateways.contains(gateway));
        let default = default.map(|gateway| (None, Some(gateway)));
        let routes = suggested.routes.iter().filter(|r| !netdev.has_route(r));
        let routes = routes.map(|route| (Some(route.network), route.gateway));
        let mut set = Vec::new();
        for (network, gateway) in routes.chain(default) {
            let key = (index, network, gateway);
            if self.acts.interfaces.routes.contains(&key) {
                continue;
            }
            let text = route_text(network, gateway);
            match self.net.add_route(index, network, gateway).await {
                Ok(()) => {
                    self.acts.interfaces.routes.insert(key);
                    set.push(text);
                }
                Err(why) => log::debug!("{}: {text} is refused: {why}", netdev.ifname),
            }
        }
        if set.is_empty() {
            return false;
        }
        let more = set.len().saturating_sub(ROUTES_SAID);
        set.truncate(ROUTES_SAID);
        if more > 0 {
            set.push(format!("{more} more"));
        }
        log::info!(
            "{}: {},{}",
            netdev.ifname,
            set.join(", "),
            suggested.by_whom()
        );
        true
    }

    /// Whether nobody else on the link is known to have the address.
    fn may_be_set(&mut self, netdev: &Netdev, address: std::net::Ipv4Addr) -> bool {
        let hardware = Hardware::read(self.root, &netdev.ifname);
        match hardware.and_then(|hardware| self.parts.claims.claim(&hardware, address)) {
            Ok(may) => may,
            Err(e) => {
                let error = Error::io(
                    &netdev.ifname,
                    format!("nobody can be asked whether {address} is free"),
                    &e,
                );
                self.journal.tell_once(&netdev.ifname, &error);
                true
            }
        }
    }

    /// Takes the address away again where somebody turned out to have it. True if so.
    async fn yield_address(
        &mut self,
        netdev: &Netdev,
        index: u32,
        address: &Address,
        v4: Option<std::net::Ipv4Addr>,
    ) -> bool {
        let Some(by) = v4.and_then(|v4| self.parts.claims.owner(index, v4)) else {
            return false;
        };
        let error = Error::new(&netdev.ifname, format!("address {address} is taken away"))
            .seen(format!("{by} has it"))
            .hint("give this node another address with ip=, or find the other one by its GUID");
        // Once, whoever else says that he has it.
        let taken = format!("{address} is taken");
        if self.journal.is_first_time(&netdev.ifname, &taken) {
            self.journal.tell_once(&netdev.ifname, &error);
        }
        if let Err(why) = self.net.delete_address(index, address.address, None).await {
            let error = Error::new(
                &netdev.ifname,
                format!("address {address} cannot be taken away"),
            )
            .seen(why);
            self.journal.tell_once(&netdev.ifname, &error);
            return false;
        }
        true
    }

    /// IPv6 is told before the interface is up: the kernel solicits routers then.
    pub(super) fn set_autoconf(&mut self, wish: &Wish, netdev: &Netdev) {
        let settings = wish.kernel_autoconf().map(ipoib::Autoconf::settings);
        for (name, value) in settings.into_iter().flatten() {
            let path = format!("/proc/sys/net/ipv6/conf/{}/{name}", netdev.ifname);
            let set = match self.root.text(&path) {
                Ok(text) if text == value => continue,
                Ok(_) => self.root.set(&path, &format!("{value}\n")),
                Err(e) => Err(e),
            };
            if let Err(e) = set {
                let error = Error::io(&path, format!("cannot be set to {value}"), &e)
                    .hint("is IPv6 in this kernel (ipv6.disable=)?");
                self.journal.tell_once(&netdev.ifname, &error);
            }
        }
    }

    /// True if it was added.
    fn note_route(&mut self, netdev: &Netdev, what: &str, added: Result<(), String>) -> bool {
        match added {
            Ok(()) => {
                log::info!("{}: {what}", netdev.ifname);
                true
            }
            Err(why) => {
                let error = Error::new(&netdev.ifname, format!("{what} cannot be set")).seen(why);
                self.journal.tell_once(&netdev.ifname, &error);
                false
            }
        }
    }
}

fn route_text(network: Option<Address>, gateway: Option<IpAddr>) -> String {
    match (network, gateway) {
        (Some(network), gateway) => format!("route {}", Route { network, gateway }),
        (None, Some(gateway)) => format!("default gateway {gateway}"),
        (None, None) => "default route".to_owned(),
    }
}

/// The ports that a wish means.
pub(super) fn ports_of<'f>(link: &LinkWish, facts: &'f Facts) -> Vec<PortRef<'f>> {
    if let Some(identity) = link.identity {
        let is_it = |port: &PortRef<'_>| port.identity() == Some(identity);
        return facts.ports().filter(is_it).collect();
    }
    match Selector::parse(link.port.as_deref().unwrap_or(&link.wanted)) {
        Some(selector) if link.wanted != "any port" => select::ports(&selector, facts),
        _ => facts.ports().collect(),
    }
}

/// Writes the mode and reads it back: the kernel reports some failures as success
/// (ipoib_main.c, ipoib_set_mode, -EBUSY).
fn set_mode(root: &Root, ifname: &str, mode: Mode) -> Result<(), Error> {
    let path = format!("/sys/class/net/{ifname}/mode");
    // The newline is part of the word (ipoib_set_mode compares with it).
    let word = format!("{mode}\n");
    let fail = |why: String| {
        Error::new(ifname, "mode cannot be set")
            .seen(why)
            .wanted(mode.word())
            .hint("see dmesg")
    };
    for _ in 0..3 {
        match root.set(&path, &word) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(fail(errno_text(&e))),
            Ok(()) => {}
        }
        let after = root.text(&path).map_err(|e| fail(errno_text(&e)))?;
        if after == mode.word() {
            return Ok(());
        }
    }
    Err(fail("the kernel did not take it".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_written_with_its_newline_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sys/class/net/ib0/mode");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "datagram\n").unwrap();
        let root = Root::new(dir.path());
        assert_eq!(set_mode(&root, "ib0", Mode::Connected), Ok(()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "connected\n");
        assert_eq!(
            set_mode(&root, "ib1", Mode::Connected)
                .unwrap_err()
                .to_string(),
            "ib1: mode cannot be set: No such file or directory, wanted connected; see dmesg"
        );
    }
}
