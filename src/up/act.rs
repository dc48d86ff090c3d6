// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written to the machine: port types, links, RoCE modes, interfaces set up. Each action
//! looks first whether it is needed, so that the walk may come by as often as it likes.

mod settings;

use std::collections::{BTreeMap, BTreeSet};

use kernel_cmdline::{LinkKind, Selector};
use nix::errno::Errno;

use super::Walk;
use crate::error::Error;
use crate::facts::{Facts, PortRef, select};
use crate::plan::{Action, Plan};
use crate::rdma::types::LinkLayer;
use crate::system::drivers;
use crate::system::modules::{self, Found, Index};
use crate::system::root::Root;
use crate::wish::expectation::{Expectation, LinkWish};

/// What needs no second try.
#[derive(Debug, Default)]
pub struct Done {
    settings: settings::Done,
    pub(super) interfaces: super::ipoib::Tried,
    /// Interfaces that could not be set up, with the error that was told.
    not_up: BTreeMap<String, String>,
    /// Links that the kernel says are there while no look has shown them yet.
    unseen: BTreeSet<String>,
}

impl Done {
    /// What a module that cannot be loaded means: its own check says why, and a software link that
    /// needs it will never be.
    pub fn module_failed(
        &mut self,
        name: &str,
        error: &Error,
        expectation: &mut Expectation,
        plan: &Plan,
    ) {
        let text = error.to_string();
        let reason = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text);
        let modules = expectation.modules.iter_mut();
        for module in modules.filter(|module| module.name == name) {
            module.refused = Some(reason.to_owned());
        }
        for step in &plan.steps {
            if let Action::AddLink {
                name: link, kind, ..
            } = &step.action
                && LinkKind::parse(kind).map(drivers::of_link) == Some(name)
            {
                refuse(expectation, link, &text);
            }
        }
    }
}

fn refuse(expectation: &mut Expectation, wanted: &str, reason: &str) {
    for wish in expectation
        .links
        .iter_mut()
        .filter(|wish| wish.wanted == wanted)
    {
        wish.refused = Some(reason.to_owned());
    }
}

impl Walk<'_> {
    /// Does what can be done now. True if something was changed.
    pub(super) async fn act(&mut self, facts: &Facts) -> bool {
        let plan = self.plan;
        self.parts.naming.begin();
        let mut changed = self.set_port_types(facts);
        for step in &plan.steps {
            if let Action::AddLink { name, kind, netdev } = &step.action {
                changed |= self.add_link(name, kind, netdev, facts).await;
            }
        }
        self.set_roce_modes(facts);
        // Interfaces come from the expectation, which knows their ports.
        changed |= self.interfaces(facts).await;
        changed |= self.bonds(facts).await;
        changed | self.ethernet_up(facts).await
    }

    /// A RoCE port is ACTIVE only while its interface is up: nothing else in an initramfs sets
    /// an interface up that carries no address. Only what is named: the others are not ours.
    async fn ethernet_up(&mut self, facts: &Facts) -> bool {
        let wanted: BTreeSet<String> = self
            .expectation
            .links
            .iter()
            .filter_map(|wish| Selector::parse(&wish.wanted))
            .flat_map(|selector| select::ports(&selector, facts))
            .filter(|found| found.port.link_layer == Some(LinkLayer::Ethernet))
            .filter_map(|found| found.port.netdev.clone())
            .collect();
        let mut changed = false;
        for name in wanted {
            changed |= self.set_up(&name, facts).await;
        }
        changed
    }

    pub(super) fn is_live(&self, module: &str) -> bool {
        is_live(self.root, self.index, module)
    }

    /// Sets the interface up when udev has named it. True if that was done now.
    pub(super) async fn set_up(&mut self, name: &str, facts: &Facts) -> bool {
        let Some((netdev, index)) = facts.netdev(name).and_then(|n| Some((n, n.ifindex?))) else {
            return false;
        };
        if netdev.up || !self.is_settled(netdev) {
            return false;
        }
        match self.net.set_up(name, index).await {
            Ok(()) => {
                log::info!("{name}: set up");
                self.acts.not_up.remove(name);
                true
            }
            Err(error) => {
                let text = error.to_string();
                if self.acts.not_up.get(name) != Some(&text) {
                    log::error!("{text}");
                    self.acts.not_up.insert(name.to_owned(), text);
                }
                false
            }
        }
    }

    async fn add_link(&mut self, name: &str, kind: &str, netdev: &str, facts: &Facts) -> bool {
        let wish = self.expectation.links.iter().find(|w| w.wanted == name);
        if wish.is_some_and(|wish| wish.refused.is_some()) {
            return false;
        }
        let there = is_there(name, wish, facts);
        let (Some(kind), Some(below)) = (LinkKind::parse(kind), facts.netdev(netdev)) else {
            return false;
        };
        if !self.is_settled(below) {
            return false;
        }
        let raised = self.set_up(netdev, facts).await;
        if there || !is_live(self.root, self.index, drivers::of_link(kind)) {
            return raised;
        }
        // ib_core may have come with the module just now.
        if self.rdma.is_none() {
            self.rdma = crate::rdma::netlink::Rdma::open().ok();
        }
        let Some(rdma) = &self.rdma else {
            return raised;
        };
        match rdma.new_link(name, kind.as_str(), netdev) {
            Ok(()) => {
                log::info!("{name}: {kind} link added on {netdev}");
                true
            }
            Err(error) => {
                let reason = match error.errno() {
                    // The interface went while we looked: it may come back.
                    Some(Errno::ENODEV) => return raised,
                    Some(Errno::EEXIST) => {
                        if let Some(other) = adopt(&mut self.expectation, name, kind, netdev, facts)
                        {
                            log::info!(
                                "{name}: {netdev} carries {other} already: that one is meant"
                            );
                            return true;
                        }
                        // Made since the look: the next one shows it.
                        if self.acts.unseen.insert(name.to_owned()) {
                            return true;
                        }
                        format!("{netdev} carries another software link already")
                    }
                    Some(Errno::ENFILE) => {
                        format!("the name {name} is taken by another RDMA device")
                    }
                    Some(Errno::EINVAL) => format!(
                        "the kernel refuses a {kind} link {name} on {netdev} (EINVAL): see dmesg"
                    ),
                    Some(errno) => format!(
                        "the kernel refuses a {kind} link {name} on {netdev}: {}",
                        errno.desc()
                    ),
                    None => format!("a {kind} link {name} cannot be added on {netdev}: {error}"),
                };
                self.journal.fail(format!("{name}: {reason}"));
                refuse(&mut self.expectation, name, &reason);
                raised
            }
        }
    }
}

fn is_live(root: &Root, index: &Index, module: &str) -> bool {
    index.find(module) == Found::Builtin || modules::is_live(root, module)
}

/// The link by its name, or the one that was taken for it under another name.
fn is_there(name: &str, wish: Option<&LinkWish>, facts: &Facts) -> bool {
    let adopted = wish.and_then(|wish| wish.identity);
    facts.devices.iter().any(|device| device.ifname == name)
        || adopted.is_some_and(|key| facts.ports().any(|port| port.identity() == Some(key)))
}

/// True for a software link of this kind on that interface, and never for the interface's own
/// hardware. Soft-RoCE names what is below it; siw does not, and has no bus.
fn is_link_on(netdev: &str, kind: LinkKind, found: PortRef<'_>) -> bool {
    let parent = found.device.parent.as_deref();
    match kind {
        LinkKind::Rxe => parent == Some(netdev),
        LinkKind::Siw => {
            parent.is_none()
                && found.device.bus_address.is_none()
                && found.port.netdev.as_deref() == Some(netdev)
        }
    }
}

/// The interface carries a software link under another name (a second run after udev renamed
/// it): the wish means that one.
fn adopt(
    expectation: &mut Expectation,
    name: &str,
    kind: LinkKind,
    netdev: &str,
    facts: &Facts,
) -> Option<String> {
    let found = facts
        .ports()
        .find(|found| is_link_on(netdev, kind, *found))?;
    let key = found.identity()?;
    let wish = expectation
        .links
        .iter_mut()
        .find(|wish| wish.wanted == name)?;
    wish.identity = Some(key);
    Some(found.device.ifname.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use std::path::Path;

    fn facts_of(trees: &[&str]) -> Facts {
        let sys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let mut facts = Facts::default();
        for tree in trees {
            let more = Facts::gather(
                &Root::new(sys.join(tree)),
                None,
                &[],
                crate::wish::expectation::Depth::Ports,
            );
            facts.devices.extend(more.devices);
            facts.netdevs.extend(more.netdevs);
        }
        facts
    }

    fn expectation(cmdline: &str) -> Expectation {
        let sys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = crate::plan::Inventory::read(&Root::new(sys)).unwrap();
        crate::plan::plan(&Request::from_text(cmdline), &inventory).expectation
    }

    #[test]
    fn a_renamed_link_is_adopted_for_good() {
        let mut facts = facts_of(&["soft-roce"]);
        let mut expected = expectation("rd.ib.link=rxe0:rxe:eth0");
        for device in &mut facts.devices {
            device.ifname = "rocep0s3".to_owned();
        }
        assert!(!is_there("rxe0", expected.links.first(), &facts));
        let adopted = adopt(&mut expected, "rxe0", LinkKind::Rxe, "eth0", &facts);
        assert_eq!(adopted.as_deref(), Some("rocep0s3"));
        assert!(is_there("rxe0", expected.links.first(), &facts));
        facts.devices.clear();
        assert!(!is_there("rxe0", expected.links.first(), &facts));
    }

    #[test]
    fn hardware_is_never_adopted() {
        let mut facts = facts_of(&["connectx6-hdr", "soft-roce"]);
        let hardware = "mlx5_0";
        for device in &mut facts.devices {
            for port in &mut device.ports {
                port.netdev = Some("eth0".to_owned());
            }
        }
        assert!(facts.devices.iter().any(|d| d.ifname == hardware));
        let mut expected = expectation("rd.ib.link=rxe0:rxe:eth0");
        let adopted = adopt(&mut expected, "rxe0", LinkKind::Rxe, "eth0", &facts);
        assert_eq!(adopted.as_deref(), Some("rxe0"));
        let adopted = adopt(&mut expected, "rxe0", LinkKind::Siw, "eth0", &facts);
        assert_eq!(adopted, None);
    }

    #[test]
    fn a_module_that_fails_says_why_in_its_check_and_takes_its_link_along() {
        let sys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = crate::plan::Inventory::read(&Root::new(sys)).unwrap();
        let request = Request::from_text("rd.ib.link=rxe0:rxe:eth0 rd.driver.post=ib_umad");
        let plan = crate::plan::plan(&request, &inventory);
        let mut expected = plan.expectation.clone();
        let error =
            Error::new("rdma_rxe", "kernel module cannot be loaded").seen("Exec format error");
        Done::default().module_failed("rdma_rxe", &error, &mut expected, &plan);
        let reason = "kernel module cannot be loaded: Exec format error";
        let module = |name: &str| expected.modules.iter().find(|m| m.name == name).unwrap();
        assert_eq!(module("rdma_rxe").refused.as_deref(), Some(reason));
        assert_eq!(module("ib_umad").refused, None);
        let link = expected.links.first().unwrap();
        assert_eq!(link.refused, Some(format!("rdma_rxe: {reason}")));
    }
}
