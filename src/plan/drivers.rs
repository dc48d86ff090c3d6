// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of the plan: those that arguments name, those that follow from other requests, and
//! the drivers of the HCAs in this machine.

use std::collections::BTreeSet;

use kernel_cmdline::{LinkKind, Number, PciAddress, is_rdma_module};

use super::{Action, Draft, IB_CORE, Inventory, PciFunction, Step};
use crate::facts::Netdev;
use crate::rdma::types::{LinkLayer, NetnsMode};
use crate::request::Required;
use crate::system::drivers::{self, ASYNC_PROBE, Fabric, IPOIB, NO_BOND};
use crate::system::modules::{Found, Index, normal};
use crate::system::pci::PciId;
use crate::wish::expectation::ModuleWish;
use crate::wish::origin::{Origin, Requested};
use crate::wish::selector::{Means, Selector};

/// What overrules a blacklist.
const LOADED_BY_NAME: &str = "; to load the module anyway, name it in rd.driver.post=";

/// A PCI function and the driver that binds it.
struct Hca<'a> {
    function: &'a PciFunction,
    driver: String,
    /// The module that makes an RDMA device of it.
    maker: String,
}

impl Hca<'_> {
    fn maker(&self) -> &str {
        &self.maker
    }

    /// Whether the card can have InfiniBand ports. The driver of another card is loaded only for a
    /// selector that identifies the card: most Ethernet cards are no part of what is requested.
    fn is_infiniband(&self) -> bool {
        let family = drivers::of_pci(&self.driver);
        family.is_some_and(|family| family.fabric != Fabric::NoInfiniBand)
    }
}

/// How a selector identifies an HCA that has no RDMA device yet.
enum Demand {
    At(PciAddress),
    By(&'static str),
}

impl Demand {
    fn is(&self, hca: &Hca<'_>) -> bool {
        match self {
            Demand::At(address) => hca.function.address == address.to_string(),
            Demand::By(maker) => hca.maker() == *maker,
        }
    }
}

/// The HCA that a selector identifies; none for the name of an interface, for a name from udev and
/// for a GUID.
fn identified(selector: &Selector) -> Option<Demand> {
    match selector.means() {
        Means::Pci(address) => Some(Demand::At(*address)),
        Means::Name(device) | Means::Port { device, .. } => {
            drivers::by_device_name(device).map(|family| Demand::By(family.rdma))
        }
        Means::Guid(_) => None,
    }
}

impl Draft<'_> {
    pub(super) fn drivers(&mut self) {
        let named: Vec<Requested<String>> = self
            .request
            .modules
            .iter()
            .filter(|module| self.is_rdma(&module.value))
            .cloned()
            .collect();
        for module in &named {
            self.load(&module.value, Some(&module.origin));
        }
        let wants_hca = self.wants_hca();
        for module in &named {
            self.half(module, wants_hca);
        }
        let is_hca = |name: &str| drivers::binds_hcas(name) || drivers::makes_hcas(name);
        if wants_hca && !named.iter().any(|module| is_hca(&module.value)) {
            self.hca_drivers();
        }
        let interfaces = self
            .request
            .interfaces
            .iter()
            .map(|interface| &interface.origin);
        let any = self
            .request
            .any_interface
            .iter()
            .map(|interface| &interface.origin);
        if let Some(origin) = interfaces.chain(any).next() {
            self.load(IPOIB, Some(origin));
        }
        let root = self.request.root.as_ref();
        if let Some((root, module)) = root.and_then(|root| Some((root, root.value.module()?))) {
            self.load(module, Some(&root.origin));
        }
        if let Some(netns) = &self.request.netns {
            self.load(IB_CORE, Some(&netns.origin));
        }
        if let Some(roce) = self.request.roce.first() {
            self.load("rdma_cm", Some(&roce.origin));
        }
    }

    /// Why no RDMA device can come into being: there is none, the drivers that are requested cannot be
    /// loaded, and no other driver of this machine's cards can, which udev would load.
    pub(super) fn no_driver(&self) -> Option<String> {
        let Inventory {
            modules,
            facts,
            pci,
            ..
        } = self.inventory;
        let is_driven = |function: &PciFunction| {
            // The index has no alias of a driver that is built in.
            let usual = usual_driver(&function.modalias);
            let drivers = [modules.for_modalias(&function.modalias), usual].concat();
            let mut hcas = drivers.iter().filter(|driver| drivers::binds_hcas(driver));
            hcas.any(|driver| self.can_load(maker(modules, driver)))
        };
        let makers = self.modules.iter();
        let makers = makers.filter(|module| drivers::may_make_devices(&module.name));
        let (missing, there): (Vec<_>, Vec<_>) = makers.partition(|maker| maker.refused.is_some());
        let can_come = !self.request.links.is_empty()
            || !facts.devices.is_empty()
            || !there.is_empty()
            || pci.iter().any(is_driven);
        let missing: Vec<&str> = missing.iter().map(|maker| maker.name.as_str()).collect();
        (!missing.is_empty() && !can_come).then(|| {
            let missing = missing.join(", ");
            format!("no driver for an RDMA device can be loaded ({missing})")
        })
    }

    /// Whether the selector may name a device in software that another program makes: not one by the
    /// kernel's name of a card's device, by a GUID or by a PCI address.
    pub(super) fn may_be_software(&self, selector: &Selector) -> bool {
        let name = match selector.means() {
            Means::Name(name) | Means::Port { device: name, .. } => name,
            Means::Guid(_) | Means::Pci(_) => return false,
        };
        let mut kinds = [LinkKind::Rxe, LinkKind::Siw].into_iter();
        drivers::by_device_name(name).is_none()
            && kinds.any(|kind| !self.is_missing(drivers::of_link(kind)))
    }

    /// Why this machine can have no IPoIB interface.
    pub(super) fn no_ipoib(&self) -> Option<String> {
        let mut refused = self
            .modules
            .iter()
            .filter(|module| module.refused.is_some());
        let is_missing = refused.any(|module| module.name == IPOIB)
            && !self
                .inventory
                .facts
                .netdevs
                .iter()
                .any(Netdev::is_infiniband);
        let missing = is_missing.then(|| self.why_not(IPOIB));
        self.no_driver.clone().or(missing)
    }

    /// Whether a port is required that is not a software link of this request.
    fn wants_hca(&self) -> bool {
        let request = self.request;
        let is_made = |port: &str| {
            let mut links = request.links.iter();
            links.any(|link| link.value.is_named(port))
        };
        request.links.is_empty()
            || !request.interfaces.is_empty()
            || request.any_interface.is_some()
            || request
                .required
                .ports()
                .iter()
                .any(|port| !is_made(port.value.as_str()))
            || matches!(
                request.required,
                Required::Candidates { number: Number::Any(n), .. } if n as usize > request.links.len()
            )
    }

    /// Loads the RDMA half of a named PCI driver, which alone makes no RDMA device. If no HCA is
    /// required, a half that cannot be loaded is not an error.
    fn half(&mut self, core: &Requested<String>, wants_hca: bool) {
        let Some(half) = drivers::half_of(&core.value) else {
            return;
        };
        let is_named = |name: &str| self.request.modules.iter().any(|m| m.value == name);
        let useful = wants_hca || self.can_load(half);
        if is_named(half) || !useful {
            return;
        }
        match self.blacklisted(half) {
            Some(by) => self.leave(half, &by, LOADED_BY_NAME),
            None => {
                self.load(half, Some(&core.origin));
            }
        }
    }

    /// Loads the drivers of the HCAs on the PCI bus, if the command line names none.
    fn hca_drivers(&mut self) {
        let inventory = self.inventory;
        let index = &inventory.modules;
        let requested = self.request.requested_by.clone();
        let mut hcas: Vec<Hca<'_>> = Vec::new();
        for function in &inventory.pci {
            let mut found = index.for_modalias(&function.modalias);
            if found.is_empty() {
                // The index has no alias of a driver that is built in.
                found = usual_driver(&function.modalias);
                found
                    .retain(|driver| matches!(index.find(driver), Found::Builtin | Found::Assumed));
            }
            hcas.extend(found.into_iter().map(|driver| Hca {
                function,
                maker: maker(index, &driver).to_owned(),
                driver,
            }));
        }
        let identified = self.identified();
        let is_identified = |hca: &Hca<'_>| identified.iter().any(|demand| demand.is(hca));
        let is_meant = |hca: &Hca<'_>| hca.is_infiniband() || is_identified(hca);
        let (mut hcas, others): (Vec<_>, Vec<_>) = hcas.into_iter().partition(is_meant);
        if hcas.is_empty() {
            self.refuse_undriven();
            hcas = self.of_ethernet_only(others);
        }
        if self.request.dump.is_some() {
            if !identified.is_empty() {
                hcas.retain(is_identified);
            }
            self.note_several(&hcas);
        }
        // Loading a module also loads the modules that it needs, even if a blacklist has them.
        let blacklisted = |draft: &Self, hca: &Hca<'_>| {
            let own = draft.blacklisted(hca.maker());
            own.or_else(|| draft.blacklisted(&hca.driver))
        };
        let is_free =
            |hca: &Hca<'_>| self.can_load(hca.maker()) && blacklisted(self, hca).is_none();
        let has_free = hcas.iter().any(is_free);
        for hca in &hcas {
            let is_spare = has_free && !is_identified(hca);
            let barred = self.barred(hca.maker()).filter(|_| is_spare);
            let barred = barred.map(|barred| barred.origin.to_string());
            match (blacklisted(self, hca), barred) {
                (Some(by), _) => self.leave(hca.maker(), &by, LOADED_BY_NAME),
                (None, Some(by)) => self.leave(hca.maker(), &by, ""),
                (None, None) => {
                    self.load(hca.maker(), requested.as_ref());
                }
            }
        }
    }

    /// The cards with Ethernet ports only, if the command line requires Ethernet ports, and neither an
    /// RDMA device nor another module that may make one is there: those whose driver the image has; all of
    /// them if it has none, so that the refusals say what to add.
    fn of_ethernet_only<'a>(&self, others: Vec<Hca<'a>>) -> Vec<Hca<'a>> {
        let mut makers = self.modules.iter();
        let has_maker = makers.any(|module| drivers::may_make_devices(&module.name));
        let has_device = !self.inventory.facts.devices.is_empty();
        let requires_ethernet = self.request.required.link_layer() == Some(LinkLayer::Ethernet);
        if !requires_ethernet || has_maker || has_device || !self.request.links.is_empty() {
            return Vec::new();
        }
        let is_card = |hca: &Hca<'_>| drivers::binds_hcas(&hca.driver);
        let cards = others.into_iter().filter(is_card);
        let (there, missing): (Vec<_>, Vec<_>) = cards.partition(|hca| self.can_load(hca.maker()));
        if there.is_empty() { missing } else { there }
    }

    /// The HCAs that the selectors of ports and interfaces identify.
    fn identified(&self) -> Vec<Demand> {
        let request = self.request;
        let ports = request.required.ports().iter().map(|port| &port.value);
        let interfaces = request.interfaces.iter().map(|known| &known.value.port);
        ports.chain(interfaces).filter_map(identified).collect()
    }

    /// A kernel that saves a dump has memory for one driver. If no selector identifies an HCA, all
    /// are loaded, because the dump may need any of them, and a line says so.
    fn note_several(&mut self, hcas: &[Hca<'_>]) {
        let makers: BTreeSet<&str> = hcas.iter().map(Hca::maker).collect();
        if makers.len() > 1 {
            let makers: Vec<&str> = makers.into_iter().collect();
            self.left.push(format!(
                "rd.ib.kdump=: no selector identifies the HCA, so the drivers of all HCAs are loaded: {}; write pci= in \
                 rd.ib.require= or name one driver in rd.driver.post=",
                makers.join(" and ")
            ));
        }
    }

    /// The argument or file that forbids loading the module unless an argument names it.
    pub(super) fn blacklisted(&self, name: &str) -> Option<String> {
        let argument = self.request.blacklist.iter().find(|b| b.value == name);
        let file = || self.inventory.blacklist.by(name);
        argument
            .map(|argument| argument.origin.to_string())
            .or_else(|| file().map(str::to_owned))
    }

    fn leave(&mut self, name: &str, by: &str, hint: &str) {
        let line = format!("{by}: module {name} is not loaded for the HCAs that need it{hint}");
        if !self.left.contains(&line) {
            self.left.push(line);
        }
    }

    /// Whether a module is part of the RDMA stack: by its name, or because it needs ib_core.
    fn is_rdma(&self, name: &str) -> bool {
        is_rdma_module(name)
            || drivers::half_of(name).is_some()
            || self
                .inventory
                .modules
                .closure(name)
                .iter()
                .any(|m| m == IB_CORE)
    }

    /// Whether the module is live, or the image has it and the kernel will load it.
    pub(super) fn can_load(&self, name: &str) -> bool {
        !self.is_missing(name) && self.placeholder(name).is_none() && self.barred(name).is_none()
    }

    /// The file of a module that does nothing: MLNX_OFED and DOCA install one in place of each module that
    /// does not fit their ib_core (`--build-dummy-mods` of mlnx-ofa_kernel). Such a module needs no other.
    fn placeholder(&self, name: &str) -> Option<String> {
        let index = &self.inventory.modules;
        let is_file = |name: &str| matches!(index.find(name), Found::File(_));
        let is_without = drivers::uses_ib_core(name)
            && is_file(IB_CORE)
            && !index.closure(name).iter().any(|needed| needed == IB_CORE);
        match index.find(name) {
            Found::File(file) if is_without => Some(file),
            _ => None,
        }
    }

    /// Whether the image does not have the module, nor the kernel.
    fn is_missing(&self, name: &str) -> bool {
        let Inventory { modules, live, .. } = self.inventory;
        modules.find(name) == Found::Missing && !live.contains(&normal(name))
    }

    /// The module that `module_blacklist=` keeps the kernel from loading: this one, or one that it needs.
    pub(super) fn barred(&self, name: &str) -> Option<&Requested<String>> {
        let index = &self.inventory.modules;
        let needed = index.closure(name);
        let is_module = |name: &str| index.find(name) != Found::Builtin;
        let mut barred = self.request.barred.iter();
        barred.find(|one| needed.contains(&one.value) && is_module(&one.value))
    }

    /// Why a module that was refused is not there; its own refusal has the details.
    pub(super) fn why_not(&self, name: &str) -> String {
        if self.is_missing(name) {
            let place = self.inventory.modules.place();
            return format!("kernel module {name} is not {place}");
        }
        match self.placeholder(name) {
            Some(_) => format!("kernel module {name} is a placeholder"),
            None => format!("the kernel will not load {name}"),
        }
    }

    /// Why the module cannot be loaded.
    fn no_module(&self, name: &str) -> Option<String> {
        let index = &self.inventory.modules;
        if self.is_missing(name) {
            let (place, remedy) = (index.place(), index.remedy(name));
            return Some(format!("kernel module {name} is not {place}; {remedy}"));
        }
        if let Some(file) = self.placeholder(name) {
            let remedy = match drivers::package_of_ofed(name) {
                Some(package) => format!("install {package}, then build the image again"),
                None => "this module needs the kernel's own RDMA drivers".to_owned(),
            };
            return Some(format!(
                "{file} is a placeholder of MLNX_OFED or DOCA: it does not use {IB_CORE}; {remedy}"
            ));
        }
        let Requested { value, origin } = self.barred(name)?;
        Some(match normal(name) == *value {
            true => format!("the kernel will not load this module ({origin})"),
            false => {
                format!("the kernel will not load {value}, which this module needs ({origin})")
            }
        })
    }

    /// Plans a module once; false if it cannot be loaded.
    pub(super) fn load(&mut self, name: &str, requested_by: Option<&Origin>) -> bool {
        if let Some(known) = self.modules.iter().find(|module| module.name == name) {
            return known.refused.is_none();
        }
        let found = self.inventory.modules.find(name);
        let refused = self.no_module(name);
        if refused.is_none() && self.request.async_probe {
            self.probe_side_by_side(name, requested_by);
        }
        self.modules.push(ModuleWish {
            name: name.to_owned(),
            requested_by: requested_by.cloned(),
            netns: self.netns_of(name),
            builtin: found == Found::Builtin,
            refused: refused.clone(),
        });
        if let Some(reason) = refused {
            self.refuse(name, &reason, requested_by);
            return false;
        }
        self.steps.push(Step {
            action: Action::LoadModule {
                module: name.to_owned(),
                assumed: found == Found::Assumed,
                file: match found {
                    Found::File(file) => Some(file),
                    _ => None,
                },
                parameters: self.parameters(name),
            },
            requested_by: requested_by.cloned(),
        });
        true
    }

    /// The network namespace mode, which is a property of ib_core.
    fn netns_of(&self, module: &str) -> Option<NetnsMode> {
        let netns = self.request.netns.as_ref()?;
        (module == IB_CORE).then_some(netns.value)
    }

    /// Loads the dependencies that bind the cards, because they need `async_probe` themselves:
    /// modprobe passes parameters only to the module that it is called for.
    fn probe_side_by_side(&mut self, name: &str, requested_by: Option<&Origin>) {
        let index = &self.inventory.modules;
        let cores = index
            .closure(name)
            .into_iter()
            .filter(|m| m != name && drivers::half_of(m).is_some() && index.drives_devices(m));
        for core in cores.collect::<Vec<_>>() {
            self.load(&core, requested_by);
        }
    }

    fn parameters(&self, name: &str) -> Vec<String> {
        if self.request.async_probe && self.inventory.modules.drives_devices(name) {
            vec![ASYNC_PROBE.to_owned()]
        } else if name == drivers::BONDING {
            vec![NO_BOND.to_owned()]
        } else {
            Vec::new()
        }
    }
}

/// The module that makes an RDMA device of a card with this driver.
fn maker<'d>(index: &Index, driver: &'d str) -> &'d str {
    drivers::maker(driver, |name| index.find(name) != Found::Missing)
}

/// The driver of a card by its number, without an index that has its alias.
fn usual_driver(modalias: &str) -> Vec<String> {
    let id = PciId::parse(modalias);
    let driver = id.and_then(PciId::driver);
    driver.into_iter().map(str::to_owned).collect()
}
