// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of the plan: those that are named, those that follow, and the drivers of the HCAs
//! that are there.

use std::collections::BTreeSet;

use kernel_cmdline::{PciAddress, Selector, is_rdma_module};

use super::{Action, Draft, PciFunction, Refusal, Step};
use crate::request::Required;
use crate::system::drivers;
use crate::system::modules::{Found, Index};
use crate::wish::expectation::ModuleWish;
use crate::wish::origin::{Origin, Requested};

/// A PCI function and the driver that binds it.
struct Hca<'a> {
    function: &'a PciFunction,
    driver: String,
}

impl Hca<'_> {
    /// The module by which it becomes an RDMA device.
    fn maker(&self) -> &str {
        drivers::half_of(&self.driver).unwrap_or(&self.driver)
    }
}

/// What a selector tells of an HCA that has no RDMA device yet.
enum Wanted {
    At(PciAddress),
    By(&'static str),
}

impl Wanted {
    fn is(&self, hca: &Hca<'_>) -> bool {
        match self {
            Wanted::At(address) => hca.function.address == address.to_string(),
            Wanted::By(maker) => hca.maker() == *maker,
        }
    }
}

/// None for the name of an interface, for one that udev gave, and for a GUID.
fn told(selector: &str) -> Option<Wanted> {
    match Selector::parse(selector)? {
        Selector::Pci(address) => Some(Wanted::At(address)),
        Selector::Name(device) | Selector::Port { device, .. } => {
            drivers::by_device_name(device).map(Wanted::By)
        }
        Selector::Guid(_) => None,
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
            self.load("ib_ipoib", Some(origin));
        }
        let root = self.request.root.as_ref();
        if let Some((root, module)) = root.and_then(|root| Some((root, root.value.module()?))) {
            self.load(module, Some(&root.origin));
        }
        if let Some(roce) = self.request.roce.first() {
            self.load("rdma_cm", Some(&roce.origin));
        }
    }

    /// Whether a port is wanted that no software link of ours makes.
    fn wants_hca(&self) -> bool {
        let request = self.request;
        let is_made = |port: &str| {
            request.links.iter().any(|link| {
                let name = &link.value.name;
                port == name || port.strip_suffix(":1") == Some(name)
            })
        };
        request.links.is_empty()
            || !request.interfaces.is_empty()
            || request.any_interface.is_some()
            || request.ports.iter().any(|port| !is_made(&port.value))
            || matches!(request.required, Required::Count(n) if n as usize > request.links.len())
    }

    /// A PCI driver that is named alone makes no RDMA device: its half belongs to it. Where no HCA
    /// is wanted it is enough if the image has it.
    fn half(&mut self, core: &Requested<String>, wants_hca: bool) {
        let Some(half) = drivers::half_of(&core.value) else {
            return;
        };
        let is_named = |name: &str| self.request.modules.iter().any(|m| m.value == name);
        let useful = wants_hca || self.inventory.modules.find(half) != Found::Missing;
        if is_named(half) || !useful {
            return;
        }
        match self.blacklisted(half) {
            Some(by) => self.leave(half, &by),
            None => {
                self.load(half, Some(&core.origin));
            }
        }
    }

    /// The drivers of the HCAs on the PCI bus, where the command line names none.
    fn hca_drivers(&mut self) {
        let inventory = self.inventory;
        let asked = self.request.asked.clone();
        let mut hcas: Vec<Hca<'_>> = Vec::new();
        for function in &inventory.pci {
            let found = inventory.modules.for_modalias(&function.modalias);
            hcas.extend(found.into_iter().map(|driver| Hca { function, driver }));
        }
        if self.request.dump.is_some() {
            self.keep_the_wanted(&mut hcas);
        }
        for hca in &hcas {
            // A module that is loaded brings those it needs, whatever blacklists say of them.
            let by = self
                .blacklisted(hca.maker())
                .or_else(|| self.blacklisted(&hca.driver));
            match by {
                Some(by) => self.leave(hca.maker(), &by),
                None => {
                    self.load(hca.maker(), asked.as_ref());
                }
            }
        }
    }

    /// A kernel that saves a dump has memory for one driver: that of the HCAs which the selectors of the wanted ports
    /// mean. Where none of them tells an HCA, all stay, since the dump may need any.
    fn keep_the_wanted(&mut self, hcas: &mut Vec<Hca<'_>>) {
        let request = self.request;
        let ports = request.ports.iter().map(|port| &port.value);
        let interfaces = request.interfaces.iter().map(|known| &known.value.port);
        let wanted: Vec<Wanted> = ports.chain(interfaces).filter_map(|p| told(p)).collect();
        if !wanted.is_empty() {
            hcas.retain(|hca| wanted.iter().any(|wanted| wanted.is(hca)));
        }
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

    /// Who forbids to load the module where nobody named it: an argument or a file.
    fn blacklisted(&self, name: &str) -> Option<String> {
        let argument = self.request.blacklist.iter().find(|b| b.value == name);
        let file = || self.inventory.blacklist.by(name);
        argument
            .map(|argument| argument.origin.to_string())
            .or_else(|| file().map(str::to_owned))
    }

    fn leave(&mut self, name: &str, by: &str) {
        let line = format!(
            "{by}: {name} is not loaded for its HCA; name it in rd.driver.post= to load it anyway"
        );
        if !self.left.contains(&line) {
            self.left.push(line);
        }
    }

    /// Part of the RDMA stack: by its name, or because it needs ib_core.
    fn is_rdma(&self, name: &str) -> bool {
        is_rdma_module(name)
            || drivers::half_of(name).is_some()
            || self
                .inventory
                .modules
                .closure(name)
                .iter()
                .any(|m| m == "ib_core")
    }

    /// Plans a module once; false if the image does not have it.
    pub(super) fn load(&mut self, name: &str, asked_by: Option<&Origin>) -> bool {
        if let Some(known) = self.modules.iter().find(|module| module.name == name) {
            return known.refused.is_none();
        }
        let index = &self.inventory.modules;
        let (builtin, file) = match index.find(name) {
            Found::Builtin => (true, None),
            Found::File(file) => (false, Some(file)),
            Found::Missing => {
                let refusal = missing(name, index, asked_by);
                self.modules.push(ModuleWish {
                    name: name.to_owned(),
                    asked_by: asked_by.cloned(),
                    builtin: false,
                    refused: Some(refusal.reason.clone()),
                });
                self.refusals.push(refusal);
                return false;
            }
        };
        if self.request.async_probe {
            self.probe_side_by_side(name, asked_by);
        }
        self.modules.push(ModuleWish {
            name: name.to_owned(),
            asked_by: asked_by.cloned(),
            builtin,
            refused: None,
        });
        self.steps.push(Step {
            action: Action::LoadModule {
                module: name.to_owned(),
                file,
                parameters: self.parameters(name),
            },
            asked_by: asked_by.cloned(),
        });
        true
    }

    /// A dependency that binds the cards must itself get `async_probe`: modprobe passes
    /// parameters only to the module it is called for.
    fn probe_side_by_side(&mut self, name: &str, asked_by: Option<&Origin>) {
        let index = &self.inventory.modules;
        let cores = index
            .closure(name)
            .into_iter()
            .filter(|m| m != name && drivers::half_of(m).is_some() && index.drives_devices(m));
        for core in cores.collect::<Vec<_>>() {
            self.load(&core, asked_by);
        }
    }

    fn parameters(&self, name: &str) -> Vec<String> {
        if self.request.async_probe && self.inventory.modules.drives_devices(name) {
            vec!["async_probe=1".to_owned()]
        } else if name == drivers::BONDING {
            // Or it makes a bond0 of its own, in a mode of its own.
            vec!["max_bonds=0".to_owned()]
        } else {
            Vec::new()
        }
    }
}

/// The refusal of a module that is not in the image: it names the module and the file.
fn missing(name: &str, index: &Index, asked_by: Option<&Origin>) -> Refusal {
    let file = drivers::usual_file(name);
    Refusal {
        object: name.to_owned(),
        reason: format!(
            "kernel module is not in this image: {file} is not in {}/modules.dep; add it (dracut --add-drivers {name}, or ibboot_drivers= in dracut.conf.d)",
            index.directory
        ),
        asked_by: asked_by.cloned(),
    }
}
