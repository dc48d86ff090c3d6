// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes steps and an expectation from a request and an inventory: pure, but for [`Inventory`], which
//! reads the machine. A request that is not possible on this machine is refused here, before anything
//! is written.

mod candidates;
pub mod drivers;
mod links;
pub mod notes;
mod port_types;
mod root;
pub mod steps;
pub mod text;
mod tokens;

use std::collections::BTreeSet;
use std::time::Duration;

use kernel_cmdline::{Handover, LinkKind, Number, PortType};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::SCHEMA;
use crate::error::Result;
use crate::facts::reader::ONCE;
use crate::facts::{Facts, Look, Readers};
use crate::rdma::reach::Server;
use crate::rdma::types::NetnsMode;
use crate::request::{Dump, NotOurs, OnFailure, Request, Required, in_initramfs};
use crate::system::blacklist::Blacklist;
use crate::system::modules::{self, Index};
use crate::system::pci::PCI;
use crate::system::root::Root;
use crate::wish::expectation::{
    Depth, Expectation, LinkWish, ModuleWish, Require, ServerWish, Target,
};
use crate::wish::ipoib::IpoibWish;
use crate::wish::origin::{Origin, Requested};
use crate::wish::selector::Selector;
use crate::wish::storage::{self, OfLease, Portal, Transport, has_alternative};

pub use port_types::mlx4_targets;
pub use root::{carried, holds_netroot};
pub use tokens::{Fate, Token, addresses_all};

/// A PCI function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciFunction {
    /// `0000:81:00.0`.
    pub address: String,
    /// `pci:v000015B3d0000101Bsv...`.
    pub modalias: String,
    /// Bound driver, if any.
    pub driver: Option<String>,
    /// mlx4 port types can be set here (`mlx4_port1`, `mlx4_port2`), by port number.
    pub mlx4_ports: Vec<(u32, String)>,
}

/// How much of the machine a plan needs.
pub const DEPTH: Depth = Depth::Ports;

/// The state of the machine before any change.
#[derive(Debug)]
pub struct Inventory {
    /// The image's modules.
    pub modules: Index,
    /// Modules that are live and need no file; none for a plan of another boot.
    pub live: BTreeSet<String>,
    /// What modprobe.d(5) forbids.
    pub blacklist: Blacklist,
    /// Existing devices and interfaces.
    pub facts: Facts,
    /// All PCI functions.
    pub pci: Vec<PciFunction>,
}

impl Inventory {
    /// Looks at the tree.
    #[cfg(test)]
    pub fn read(root: &Root) -> Result<Inventory> {
        Inventory::read_by(root, Readers::of(root, ONCE).as_ref())
    }

    /// Looks at the tree. Outside an initramfs the next boot has another one: without an index of
    /// modules, the image is assumed to have every module.
    pub fn of_machine(root: &Root) -> Result<Inventory> {
        let modules = match in_initramfs(root) {
            true => Index::read(root)?,
            false => Index::read_or_assume(root)?,
        };
        Ok(Inventory::with(
            root,
            Readers::of(root, ONCE).as_ref(),
            modules,
        ))
    }

    /// Looks at the tree; `readers`, if given, read the RDMA devices.
    pub fn read_by(root: &Root, readers: Option<&Readers>) -> Result<Inventory> {
        Ok(Inventory::with(root, readers, Index::read(root)?))
    }

    /// Looks at the tree, whose kernel has this index of modules.
    pub fn with(root: &Root, readers: Option<&Readers>, modules: Index) -> Inventory {
        let facts = Facts::gather(root, readers, &[], DEPTH);
        let mut look = Look::new(root);
        let mut pci = Vec::new();
        for address in look.list(PCI) {
            let base = format!("{PCI}/{address}");
            let Some(modalias) = look.constant(&format!("{base}/modalias")) else {
                continue;
            };
            let mlx4_ports = [1u32, 2]
                .into_iter()
                .filter_map(|port| Some((port, look.text(&format!("{base}/mlx4_port{port}"))?)))
                .collect();
            pci.push(PciFunction {
                driver: root.link_name(&format!("{base}/driver")).ok(),
                modalias,
                mlx4_ports,
                address,
            });
        }
        Inventory {
            modules,
            live: modules::live(root),
            blacklist: Blacklist::read(root),
            facts,
            pci,
        }
    }
}

/// The module that has the network namespace mode.
pub const IB_CORE: &str = "ib_core";

/// What `up` does in addition to the work for the expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Load a kernel module with parameters, concurrently with the other modules.
    LoadModule {
        /// Name in the kernel's spelling.
        module: String,
        /// The module's file; none if the module is builtin or assumed.
        file: Option<String>,
        /// There is no index of modules: the image is assumed to have the module.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        assumed: bool,
        /// `NAME=VALUE`, added to those of the site.
        parameters: Vec<String>,
    },
    /// Set the port type of an mlx4 card.
    SetPortType {
        /// Which ports.
        selector: Selector,
        port_type: PortType,
    },
    /// Set which network namespaces see RDMA devices.
    SetNetnsMode { mode: NetnsMode },
    /// Set the netdev up and add a software RDMA link on it.
    AddLink {
        /// Name of the new RDMA device.
        name: String,
        /// Soft-RoCE or Soft-iWARP.
        kind: LinkKind,
        /// The interface.
        netdev: String,
    },
    /// Set the default RoCE mode.
    SetRoceMode {
        /// Which ports; none for all.
        selector: Option<Selector>,
        /// As configfs spells it: `IB/RoCE v1` or `RoCE v2`.
        mode: &'static str,
    },
}

/// A step and the argument that requested it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What is done.
    #[serde(flatten)]
    pub action: Action,
    /// The argument; none if the step follows from another step.
    pub requested_by: Option<Origin>,
}

/// A request that is not possible on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// What is refused.
    pub object: String,
    /// Why, and what to do.
    pub reason: String,
    /// The argument.
    pub requested_by: Option<Origin>,
}

/// An IPoIB interface that an argument names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name on the command line.
    pub name: String,
    /// The link of the expectation that describes the interface.
    pub link: Target,
}

/// What will be done, and what is expected afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The argument that turned ibboot on; none if nothing is done.
    pub requested_by: Option<Origin>,
    /// What is done in addition to the expectation, in order; [`Plan::lines`] has both.
    pub steps: Vec<Step>,
    /// The named IPoIB interfaces, in order.
    pub interfaces: Vec<Requested<Interface>>,
    /// The argument that applies to all other IPoIB interfaces.
    pub of_all: Option<Origin>,
    /// Who owns the interfaces in the real root, if an argument says so.
    pub handover: Option<Requested<Handover>>,
    /// Requests that are not possible.
    pub refusals: Vec<Refusal>,
    /// Invalid arguments, one line each.
    pub complaints: Vec<String>,
    /// Arguments that are left to another program, and drivers that are not loaded, one line each.
    pub left: Vec<String>,
    /// Arguments, or parts of one, that no program carries out, one line each.
    pub unused: Vec<String>,
    /// What may go wrong on this machine although every step is possible, one line each.
    pub warnings: Vec<String>,
    /// What the present machine shows of the request, one line each ([`notes`]).
    pub notes: Vec<String>,
    /// The fate of every argument of the table; empty if nothing is requested.
    pub tokens: Vec<Token>,
    /// Time until the deadline, from the complete command line.
    pub timeout: Duration,
    /// What happens at the deadline.
    pub onfail: OnFailure,
    /// [`Request::no_shell`].
    pub no_shell: Option<&'static str>,
    /// In a kernel that saves a crash dump: which part of the request is carried out.
    pub dump: Option<Dump>,
    /// Set if the DHCP server of the boot device names the root file system.
    pub root_of_lease: Option<OfLease>,
    /// Only the DHCP server of the boot device may name the server of the root file system.
    pub needs_boot_device: bool,
    /// What `verify` will compare with.
    pub expectation: Expectation,
    /// Neither an argument nor a card of the machine says whether the ports that count are InfiniBand
    /// ports ([`Plan::narrow`]).
    pub is_layer_open: bool,
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("requested_by", &self.requested_by)?;
        // Without an argument there are no lines, not even the handover.
        let lines = self.requested_by.as_ref().map(|_| self.lines());
        map.serialize_entry("steps", &lines.unwrap_or_default())?;
        map.serialize_entry("refusals", &self.refusals)?;
        map.serialize_entry("complaints", &self.complaints)?;
        map.serialize_entry("left", &[&self.left[..], &self.unused[..]].concat())?;
        if !self.warnings.is_empty() {
            map.serialize_entry("warnings", &self.warnings)?;
        }
        if !self.notes.is_empty() {
            map.serialize_entry("notes", &self.notes)?;
        }
        map.serialize_entry("tokens", &self.tokens)?;
        map.serialize_entry("timeout", &self.timeout.as_secs())?;
        map.serialize_entry("onfail", &self.onfail)?;
        if let Some(dump) = &self.dump {
            map.serialize_entry("dump", dump)?;
        }
        if let Some(root) = &self.root_of_lease {
            map.serialize_entry("root_of_lease", root)?;
        }
        map.serialize_entry("expectation", &self.expectation)?;
        map.end()
    }
}

/// Makes the plan for a request on this machine.
pub fn plan(request: &Request, inventory: &Inventory) -> Plan {
    let mut draft = Draft {
        request,
        inventory,
        steps: Vec::new(),
        interfaces: Vec::new(),
        refusals: Vec::new(),
        modules: Vec::new(),
        no_driver: None,
        left: Vec::new(),
        warnings: Vec::new(),
    };
    let expectation = if request.requested_by.is_some() {
        draft.make()
    } else {
        nothing()
    };
    let is_layer_open = draft.is_layer_open(expectation.require);
    let has_network_module = tokens::has_network_module(request);
    let is_left = |one: &&Requested<NotOurs>| matches!(one.value, NotOurs::Left(_));
    let line = |one: &Requested<NotOurs>| format!("{}: {}", one.origin, one.value);
    let left = request.left.iter().filter(is_left).map(line);
    let left = left.filter(|_| has_network_module);
    let unused = request.left.iter().filter(|one| !is_left(one)).map(line);
    let mut plan = Plan {
        requested_by: request.requested_by.clone(),
        tokens: Vec::new(),
        steps: draft.steps,
        interfaces: draft.interfaces,
        of_all: request.any_interface.as_ref().map(|all| all.origin.clone()),
        handover: request.handover.clone(),
        refusals: draft.refusals,
        complaints: request.complaints.clone(),
        left: left.chain(draft.left).collect(),
        unused: unused.collect(),
        warnings: [request.warnings.clone(), draft.warnings].concat(),
        notes: Vec::new(),
        timeout: request.timeout,
        dump: request.dump,
        root_of_lease: request.root_of_lease.clone(),
        needs_boot_device: root::leaves_server_out(request),
        onfail: request.onfail,
        no_shell: request.no_shell,
        expectation,
        is_layer_open,
    };
    plan.tokens = tokens::tokens(request, &plan);
    plan
}

fn nothing() -> Expectation {
    Expectation {
        schema: SCHEMA,
        ..Expectation::default()
    }
}

struct Draft<'a> {
    request: &'a Request,
    inventory: &'a Inventory,
    steps: Vec<Step>,
    interfaces: Vec<Requested<Interface>>,
    refusals: Vec<Refusal>,
    modules: Vec<ModuleWish>,
    /// Why no RDMA device can come into being on this machine.
    no_driver: Option<String>,
    left: Vec<String>,
    warnings: Vec<String>,
}

impl Draft<'_> {
    /// The servers to query; also plans the module that queries them.
    fn servers(&mut self) -> Vec<ServerWish> {
        let named = self.request.servers.clone();
        let is_named = !named.is_empty();
        let servers = if is_named { named } else { self.root_servers() };
        let portals = self.request.portals.iter();
        let portals: Vec<Portal> = portals.map(|one| one.value.clone()).collect();
        if let Some(first) = servers.first() {
            self.load("rdma_ucm", Some(&first.origin));
        }
        let wish = |server: Requested<Server>| ServerWish {
            alternative: !is_named && has_alternative(&portals, server.value.address, |_| true),
            server: server.value,
            requested_by: Some(server.origin),
        };
        servers.into_iter().map(wish).collect()
    }

    /// The servers of a root file system over RDMA; none if one of them is not known here, or has another
    /// path. No argument requests this query, so an image without the module for it omits the query.
    fn root_servers(&self) -> Vec<Requested<Server>> {
        let root = self.request.root.iter();
        let mut paths: Vec<(&storage::Root, &Origin)> =
            root.map(|one| (&one.value, &one.origin)).collect();
        if !self.request.portals.is_empty() {
            let portals = self.request.portals.iter();
            paths = portals.map(|one| (&one.value.root, &one.origin)).collect();
        }
        let server = |(root, origin): (&storage::Root, &Origin)| {
            let is_rdma = root.transport == Transport::Rdma;
            let address = root.server.filter(|_| is_rdma)?;
            Some(Requested {
                value: Server {
                    address,
                    port: None,
                },
                origin: origin.clone(),
            })
        };
        let servers: Option<Vec<_>> = paths.into_iter().map(server).collect();
        let mut servers = servers
            .filter(|_| self.can_load("rdma_ucm"))
            .unwrap_or_default();
        // One server may have several targets.
        let mut known = BTreeSet::new();
        servers.retain(|server| known.insert(server.value.address));
        servers
    }

    fn make(&mut self) -> Expectation {
        self.drivers();
        self.no_driver = self.no_driver();
        let servers = self.servers();
        self.netns();
        self.port_types();
        let mut links = self.soft_links();
        self.roce();
        for port in self.request.required.ports() {
            if links.iter().all(|link| link.target != port.value) {
                links.push(self.port(port));
            }
        }
        for interface in &self.request.interfaces {
            self.interface(interface, &mut links);
        }
        for bond in &self.request.bonds {
            self.bond(bond, &mut links);
        }
        self.all_interfaces(&mut links);
        let require = match &self.request.required {
            Required::Candidates {
                number: Number::Any(n),
                ..
            } => Require::Count(*n),
            Required::Candidates {
                number: Number::All,
                ..
            } => Require::All,
            Required::Named | Required::Listed(_) if links.is_empty() => Require::Count(1),
            Required::Named | Required::Listed(_) => Require::Listed,
        };
        for link in &mut links {
            link.required = self.is_required(link, require);
        }
        // `rxe0:1` in a list is the port of a link that ibboot creates: one wish, not two.
        let made = self.request.links.iter();
        let made: Vec<String> = made.map(|l| format!("{}:1", l.value.name)).collect();
        links.retain(|link| made.iter().all(|made| link.target != *made));
        // If no port is named, or any N or all are required, every port is a candidate.
        let any_port = (require != Require::Listed).then(|| self.any_port(require));
        let expectation = Expectation {
            require,
            links,
            any_port,
            rates: self.request.rates.clone(),
            link_layers: self.link_layers(),
            modules: std::mem::take(&mut self.modules),
            servers,
            root: carried(self.request),
            complaints: self.request.complaints.clone(),
            ..nothing()
        };
        self.warn(&expectation);
        expectation
    }

    fn netns(&mut self) {
        let netns = self.request.netns.as_ref();
        self.steps.extend(netns.map(|netns| Step {
            action: Action::SetNetnsMode { mode: netns.value },
            requested_by: Some(netns.origin.clone()),
        }));
    }

    fn is_required(&self, link: &LinkWish, require: Require) -> bool {
        // One interface of a bond is enough; the checks of the bond require it.
        let is_in_bond = |ipoib: &IpoibWish| ipoib.bond.is_some();
        match (require, &self.request.required) {
            (Require::All, _) => true,
            (Require::Count(_), _) => false,
            (Require::Listed, Required::Listed(ports)) => ports.iter().any(|port| {
                // The name of its port also selects a link that ibboot creates.
                let device = port.value.as_str().strip_suffix(":1");
                link.target == port.value || device.is_some_and(|device| link.target == device)
            }),
            (Require::Listed, _) => !link.ipoib.as_ref().is_some_and(is_in_bond),
        }
    }

    fn refuse(&mut self, object: &str, reason: &str, requested_by: Option<&Origin>) {
        let is_known = |known: &Refusal| known.object == object && known.reason == reason;
        if !self.refusals.iter().any(is_known) {
            self.refusals.push(Refusal {
                object: object.to_owned(),
                reason: reason.to_owned(),
                requested_by: requested_by.cloned(),
            });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The plan of a command line on a machine whose drivers are not loaded yet.
    pub fn planned(cmdline: &str) -> Plan {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = Inventory::read(&Root::new(sys)).unwrap();
        plan(&Request::from_text(cmdline), &inventory)
    }
}
