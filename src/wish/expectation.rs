// SPDX-License-Identifier: MIT OR Apache-2.0
//! The expectation: the input of `verify`, which survives switch_root.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rdma::reach::Server;
use crate::rdma::types::{Identity, LinkLayer, NetnsMode};
use crate::system::drivers;
use crate::wish::bond::BondWish;
use crate::wish::ipoib::{FULL_MEMBER, IpoibWish};
use crate::wish::origin::Origin;
use crate::wish::selector::Selector;
use crate::wish::storage;

/// How many of the links must be verified (`rd.ib.require=`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Require {
    /// Every link in the list that is marked required.
    #[default]
    Listed,
    /// Any links of this number.
    Count(u32),
    /// Every port of the machine, and at least one.
    All,
}

/// The name of a link on the command line, in reports and in the JSON; `Any` is `any port`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Target {
    /// Every port of the machine.
    #[default]
    Any,
    /// A selector as written (`mlx5_0:1`, `guid=0x...`), or a name that may be one: `ib0`, `bond0`.
    Selector(Selector),
    /// The name of a requested interface that is no selector: the child of `guid=0x...`.
    Name(String),
}

impl Target {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Target::Any => "any port",
            Target::Selector(selector) => selector.as_str(),
            Target::Name(name) => name,
        }
    }

    /// The selector, if the name is one.
    pub fn selector(&self) -> Option<&Selector> {
        match self {
            Target::Selector(selector) => Some(selector),
            Target::Any | Target::Name(_) => None,
        }
    }
}

impl From<String> for Target {
    fn from(text: String) -> Target {
        if Target::Any.as_str() == text {
            return Target::Any;
        }
        Selector::parse(&text).map_or_else(|| Target::Name(text), Target::Selector)
    }
}

impl From<Selector> for Target {
    fn from(selector: Selector) -> Target {
        Target::Selector(selector)
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        target.to_string()
    }
}

impl<T: AsRef<str> + ?Sized> PartialEq<T> for Target {
    fn eq(&self, text: &T) -> bool {
        self.as_str() == text.as_ref()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One requested link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkWish {
    /// The name of the link.
    pub target: Target,
    /// The selector of the port, if `target` is not a selector: the parent of an interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Selector>,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// Under [`Require::Listed`]: the boot depends on it.
    pub required: bool,
    /// Its port does not count for `rd.ib.require=N`, as was found at the handover.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// The requirement was met at the handover: another port counts only in place of one that
    /// failed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserve: bool,
    /// The port that was verified; none before.
    pub identity: Option<Identity>,
    /// No argument names the port: it was one of [`Target::Any`] at the handover.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_any: bool,
    /// Its device was a RoCE bond at the handover.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_bond: bool,
    /// Address of the port's HCA on its bus, at the handover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_address: Option<String>,
    /// The requested link layer.
    pub link_layer: Option<LinkLayer>,
    /// NETLINK_RDMA index of the device, constant within a boot: distinguishes devices with the
    /// same node GUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_index: Option<u32>,
    /// Another port had the same identity: index or netdev tell the two apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// The netdev that the port must be bound to.
    pub netdev: Option<String>,
    /// Index of that netdev once it was found: its name may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netdev_index: Option<u32>,
    /// The IPoIB interface requested on the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipoib: Option<IpoibWish>,
    /// `ipoib` applies to all interfaces that no other link names (`rd.ib.mode=` and `rd.ib.mtu=`
    /// without an interface).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_all: bool,
    /// Set if `target` is a bond: what is requested of the bond, which has no port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond: Option<BondWish>,
    /// Minimum rate in Mb/s, once the port is known; before that see [`Expectation::rates`].
    pub megabits: Option<u32>,
    /// Selectors of ports that [`Target::Any`] does not mean (`rd.ib.require=all,-SELECTOR`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Selector>,
    /// The ports that names of `except` meant when the links were handed over: udev may give the
    /// devices other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except_ports: Vec<PortPin>,
    /// Ports of NVSwitches: only root can read what they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switch_ports: Vec<PortPin>,
    /// Why the link is not possible on this machine, decided before any change.
    pub refused: Option<String>,
    /// `refused` because the initramfs lacks a driver: the real root may have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undriven: bool,
}

impl LinkWish {
    /// The selector of its port; none for any port, and for a name that is no selector.
    pub fn selector(&self) -> Option<&Selector> {
        self.port.as_ref().or_else(|| self.target.selector())
    }
}

/// A minimum rate (`rd.ib.rate=`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Which ports, as written; none for all.
    pub selector: Option<Selector>,
    /// Mb/s.
    pub megabits: u32,
    /// The port that `selector` meant when the links were handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<PortPin>,
}

/// The link layer that was requested of ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortLayer {
    /// Which ports, as written.
    pub selector: Selector,
    /// None: whatever the card detects.
    pub link_layer: Option<LinkLayer>,
    /// The port that `selector` meant when the links were handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<PortPin>,
}

/// A port that a selector meant when the links were handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortPin {
    /// The name that the port had.
    pub name: String,
    /// What identifies the port.
    pub identity: Identity,
    /// NETLINK_RDMA index of the device, as in [`LinkWish::device_index`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_index: Option<u32>,
    /// Another port had the same identity: only the index tells the two apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// A requested kernel module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleWish {
    /// Name in the kernel's spelling.
    pub name: String,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// Of ib_core: which network namespaces must see the RDMA devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<NetnsMode>,
    /// Part of the kernel image: nothing to load.
    pub builtin: bool,
    /// Why the module cannot be loaded on this machine, decided before any attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A server that must answer over RDMA (`rd.ib.probe=`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerWish {
    #[serde(flatten)]
    pub server: Server,
    /// The disk of the root file system has several servers: an answer of one of them is enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alternative: bool,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
}

/// The root file system that a link must carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootWish {
    /// The root file system.
    #[serde(flatten)]
    pub root: storage::Root,
    /// On disks: all servers and targets, if several are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub portals: Vec<storage::Portal>,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
}

/// `/run/ibboot/expected.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// Version of the shape.
    pub schema: u32,
    /// The kernel's boot id; none for an expectation that was not handed over.
    pub boot_id: Option<String>,
    /// How many links must be verified.
    pub require: Require,
    /// The named links.
    pub links: Vec<LinkWish>,
    /// Set if every port of the machine is a candidate: what is requested of each port.
    pub any_port: Option<LinkWish>,
    /// Minimum rates; the last one that matches a port counts.
    pub rates: Vec<Rate>,
    /// The link layers that were requested of ports (`rd.ib.porttype=`); the last one that matches a
    /// port counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_layers: Vec<PortLayer>,
    /// The PCI addresses of HCAs that had no RDMA device at the handover: under [`Require::All`] none
    /// may be gone from the bus since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<String>,
    pub modules: Vec<ModuleWish>,
    /// The servers, queried when the links are verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerWish>,
    /// The root file system, which exists after switch_root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RootWish>,
    /// Invalid arguments, one line each: the expectation does not contain what they request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<String>,
}

impl Expectation {
    /// The modules to look at: the requested ones, and the PCI drivers without which they are not
    /// loaded.
    pub fn module_names(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        for module in &self.modules {
            names.insert(module.name.clone());
            names.extend(drivers::cores_of(&module.name).map(str::to_owned));
        }
        names.into_iter().collect()
    }

    /// The requirement in words: `any InfiniBand port`, `every port of this machine, without mlx5_3:1`.
    pub fn requirement(&self) -> String {
        let candidates = self.any_port.as_ref();
        let layer = candidates.and_then(|link| link.link_layer);
        let layer = layer.map_or_else(String::new, |layer| format!("{layer} "));
        let mut words = match self.require {
            Require::Listed => "every port that the command line names".to_owned(),
            Require::Count(1) => format!("any {layer}port"),
            Require::Count(n) => format!("any {n} {layer}ports"),
            Require::All => format!("every {layer}port of this machine"),
        };
        let texts = candidates.iter().flat_map(|link| link.except.iter());
        let pins = candidates.iter().flat_map(|link| link.except_ports.iter());
        let texts = texts.map(Selector::as_str);
        let except: Vec<&str> = texts.chain(pins.map(|pin| pin.name.as_str())).collect();
        if !except.is_empty() {
            words.push_str(&format!(", without {}", except.join(", ")));
        }
        words
    }

    /// How much must be read: the partition tables are needed for a requested IPoIB interface.
    pub fn depth(&self) -> Depth {
        let links = self.links.iter().chain(&self.any_port);
        let mut wishes = links.filter_map(|link| link.ipoib.as_ref()).peekable();
        if wishes.peek().is_none() {
            return Depth::Ports;
        }
        let pkeys = wishes.filter_map(|wish| wish.pkey);
        Depth::Partitions(pkeys.map(|pkey| pkey | FULL_MEMBER).collect())
    }
}

/// How much of the machine is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Depth {
    /// Network interfaces, addresses and routes: no RDMA device, because its firmware may be slow.
    Interfaces,
    /// What the checks of ports need.
    Ports,
    /// The partition tables too, from the first slot until these P_Keys of full members are found:
    /// there are 128 slots a port on mlx5, and each costs a firmware command.
    Partitions(BTreeSet<u16>),
    /// Everything, for `ibboot facts`.
    All,
}
