// SPDX-License-Identifier: MIT OR Apache-2.0
//! The census of HCAs: the PCI functions that are RDMA cards, whether they have an RDMA device or
//! not (/sys/bus/pci/devices; the classes are those of include/linux/pci_ids.h).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::facts::pcie::{self, PcieLink};
use crate::facts::{Device, Facts, Look, Netdev, PortRef, Unread, role};
use crate::rdma::types::{LinkLayer, NetnsMode};
use crate::system::drivers::{self, Fabric};
use crate::system::kmsg::KernelWords;
use crate::system::modules::InitState;
use crate::system::pci::{PCI, PciId};
use crate::wish::bond::BondFacts;

/// [`Function::kernel`] of a saved tree, by address, as JSON.
pub const KERNEL: &str = "/ibboot-kernel.json";
/// The class of Ethernet controllers.
const ETHERNET: u16 = 0x0200;
/// The class of a ConnectX-3 whose ports may be of either link layer.
const EITHER: u16 = 0x0280;
/// Adds the PCI functions of a guest of Hyper-V (Azure), each on a bus of its own and one after
/// another, while the module initialises (hv_pci_probe, drivers/pci/controller/pci-hyperv.c).
const ADDS_FUNCTIONS: &str = "pci_hyperv";
/// Maximum of kernel lines about one function: a failed probe logs the cause and then the error.
const LINES: usize = 2;

/// A kernel module of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Module {
    /// Name in the kernel's spelling.
    pub name: String,
    /// Its state; none if it is not loaded.
    pub state: Option<InitState>,
}

/// A PCI function of an RDMA card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Function {
    /// `0000:81:00.0`.
    pub address: String,
    /// Vendor and device, `15b3:101b`.
    pub id: String,
    /// Base class and subclass, `0207`.
    pub class: String,
    /// The bound driver.
    pub driver: Option<String>,
    /// The modules that make an RDMA device of the function: the PCI driver, then the module for
    /// RDMA if that is another one. Empty if no driver is known.
    pub modules: Vec<Module>,
    /// Names of its RDMA devices.
    pub devices: Vec<String>,
    /// The physical function, if this is a virtual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical: Option<String>,
    /// The card is an InfiniBand (or Omni-Path) card: by its class, its driver, or the ports of a
    /// function of the same model. False for a function of an NVSwitch.
    pub infiniband: bool,
    /// The function must have an RDMA device ([`is_expected`]).
    pub expected: bool,
    /// Its RDMA device is in another network namespace, and hidden here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_other_netns: bool,
    /// The flash of the card has no valid firmware ([`PciId::is_in_recovery`]).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovery: bool,
    /// The PCI Express link of a function with an RDMA device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie: Option<PcieLink>,
    /// The kernel's last lines about the function, if it has a driver and no RDMA device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<String>,
}

/// What decides whether a function must have an RDMA device.
#[derive(Debug, Clone, Copy, Default)]
struct Signs<'a> {
    class: u16,
    /// An InfiniBand card, by class or driver.
    is_infiniband: bool,
    /// The PCI driver, by vendor and device.
    driver: Option<&'a str>,
    /// Another function with the same vendor and device has an RDMA device.
    has_sibling: bool,
    /// [`Function::is_for_guest`].
    is_for_guest: bool,
    /// Bound to another driver than the card's (vfio-pci), or reserved for one.
    is_given_away: bool,
    /// A function of an NVSwitch, whose ports carry no link of the machine.
    is_switch: bool,
}

/// Whether a function must have an RDMA device. InfiniBand cards must, and so must a ConnectX-3 of
/// class 0280, which does InfiniBand or both, and a function like one that has a device.
///
/// An Ethernet controller (0200) never must, although its driver may make RDMA devices: a server
/// has RDMA for such a card only if its site wants RDMA, a bond makes one device of two functions
/// (`mlx5_bond_0`), and devlink switches RDMA off. A virtual function never must: it waits for a
/// guest.
fn is_expected(signs: Signs<'_>) -> bool {
    let is_vpi = signs.driver == Some("mlx4_core");
    signs.class != ETHERNET
        && !signs.is_for_guest
        && !signs.is_given_away
        && !signs.is_switch
        && (signs.is_infiniband || is_vpi || signs.has_sibling)
}

impl Function {
    /// A driver is bound, or may be: its module is loaded.
    fn may_be_driven(&self) -> bool {
        self.modules.first().is_some_and(|m| m.state.is_some())
    }

    /// The function must have an RDMA device and has none.
    pub fn is_missing(&self) -> bool {
        self.expected && self.devices.is_empty()
    }

    /// The ports may be InfiniBand or Ethernet ports.
    pub fn is_of_both(&self) -> bool {
        self.class == format!("{EITHER:04x}")
    }

    /// The function is an Ethernet controller, of this machine and not of a guest.
    pub fn is_ethernet(&self) -> bool {
        self.class == format!("{ETHERNET:04x}") && !self.is_for_guest()
    }

    /// This is a virtual function of a card of this machine: it waits for a guest.
    fn is_for_guest(&self) -> bool {
        self.physical.is_some()
    }

    /// This is a virtual function of mlx4 or mlx5, of this machine or of its host (the tables of the
    /// drivers: drivers/net/ethernet/mellanox/mlx4/main.c, mlx5/core/main.c).
    pub fn is_virtual(&self) -> bool {
        const VIRTUAL: [&str; 10] = [
            "15b3:1002",
            "15b3:1004",
            "15b3:1012",
            "15b3:1014",
            "15b3:1016",
            "15b3:1018",
            "15b3:101a",
            "15b3:101c",
            "15b3:101e",
            "15b3:a2d3",
        ];
        self.is_for_guest() || VIRTUAL.contains(&self.id.as_str())
    }

    /// The driver's cards can have InfiniBand ports.
    fn may_be_infiniband(&self) -> bool {
        let driver = self.modules.first().map(|module| module.name.as_str());
        let family = driver.and_then(drivers::of_pci);
        family.is_some_and(|family| family.fabric != Fabric::NoInfiniBand)
    }

    /// A module of the function runs its init function, which probes the cards one by one.
    pub fn is_initialising(&self) -> bool {
        let mut states = self.modules.iter().map(|module| module.state);
        self.devices.is_empty() && states.any(|state| state == Some(InitState::Coming))
    }

    /// A module of the function is between two states: not every kernel tells when that is over.
    pub(super) fn is_coming(&self) -> bool {
        let mut states = self.modules.iter().filter_map(|module| module.state);
        states.any(|state| state != InitState::Live)
    }

    /// The driver is loaded, and no driver is bound: the probe failed or is running.
    pub fn is_left(&self) -> bool {
        let module = self.modules.first();
        self.driver.is_none() && module.is_some_and(|m| m.state == Some(InitState::Live))
    }

    /// How far the drivers are.
    pub fn state(&self) -> String {
        if self.in_other_netns {
            return "its RDMA device is in another network namespace".to_owned();
        }
        if self.recovery {
            return "flash recovery: the card has no valid firmware".to_owned();
        }
        let Some(pci) = self.modules.first() else {
            return match &self.driver {
                Some(driver) => format!("{driver} created no RDMA device"),
                None => "no driver is known for this card".to_owned(),
            };
        };
        let name = &pci.name;
        match (&self.driver, pci.state) {
            (Some(driver), _) if driver != name => format!("{driver} is bound to this card"),
            (None, None) => format!("{name} is not loaded"),
            (None, Some(InitState::Coming)) => {
                format!("no driver is bound yet: {name} is still initialising")
            }
            (None, Some(InitState::Live)) => format!("{name} is loaded but not bound to this card"),
            (None, Some(InitState::Going)) => format!("{name} is being removed"),
            (Some(_), _) => match self.modules.get(1) {
                None => format!("{name} is bound but created no RDMA device"),
                Some(half) => match half.state {
                    None => format!("{name} is bound, but {} is not loaded", half.name),
                    Some(InitState::Coming) => {
                        format!("{name} is bound, but {} is still initialising", half.name)
                    }
                    Some(InitState::Live | InitState::Going) => {
                        format!("{name} is bound, but {} created no RDMA device", half.name)
                    }
                },
            },
        }
    }

    /// The state and what the kernel logged.
    pub fn sentence(&self) -> String {
        let state = self.state();
        match self.kernel.is_empty() {
            true => state,
            false => format!("{state} (kernel: {})", self.kernel.join(" | ")),
        }
    }

    /// What to do.
    pub fn hint(&self) -> String {
        let mut names = self.modules.iter().rev();
        let absent = names.find(|module| module.state.is_none());
        if let (Some(driver), Some(pci)) = (&self.driver, self.modules.first())
            && *driver != pci.name
        {
            return format!(
                "give the card back to {} (driver_override and drivers_probe in sysfs), or do not require it",
                pci.name
            );
        }
        match absent {
            _ if self.in_other_netns => {
                "look there: ip netns exec NETNS rdma dev (after the boot lsns -t net shows all namespaces)"
                    .to_owned()
            }
            _ if self.recovery => {
                "burn the firmware of the card (mstflint), then switch the node off and on"
                    .to_owned()
            }
            _ if self.is_initialising() => {
                "wait: the driver initialises one card after another, and each may need up to 2 minutes; to \
                 initialise the cards in parallel, write rd.ib.async_probe=1"
                    .to_owned()
            }
            // Loaded without an argument that names the module.
            Some(module) if self.may_be_infiniband() => format!(
                "run modprobe {0}, then see dmesg; if the image lacks {0}: dracut --force --add-drivers {0}",
                module.name
            ),
            Some(module) => format!(
                "load {0} (rd.driver.post={0}); if the image lacks {0}: dracut --force --add-drivers {0}",
                module.name
            ),
            None if self.modules.is_empty() && self.driver.is_none() => {
                "install the driver of this card, and add it to the image (dracut --force --add-drivers MODULE)"
                    .to_owned()
            }
            None => format!("look for {} in dmesg", self.address),
        }
    }
}

impl Facts {
    /// The functions of RDMA cards without an RDMA device: those that must have one, or if there
    /// are none, those that may.
    pub fn bare_functions(&self) -> Vec<&Function> {
        let bare = |function: &&Function| {
            function.devices.is_empty()
                && (function.expected || !function.is_for_guest())
                && self.roce_bond(&function.address).is_none()
        };
        let all: Vec<&Function> = self.functions.iter().filter(bare).collect();
        let missing: Vec<&Function> = all.iter().copied().filter(|f| f.is_missing()).collect();
        match missing.is_empty() {
            true => all,
            false => missing,
        }
    }

    /// The RoCE bond that has the port of the Ethernet function at this address: mlx5_ib removes the devices
    /// of all functions of a card and adds one for the bond. The driver of the function must be bound.
    pub fn roce_bond(&self, address: &str) -> Option<&Device> {
        let function = self.function(address).filter(|one| one.is_ethernet())?;
        let has_port = |bond: &&Device| {
            let card = bond.card().filter(|card| slot(card) == slot(address));
            let first = card.and_then(|card| self.function(card));
            first.is_some_and(|first| first.driver.is_some() && first.driver == function.driver)
                && function.devices.iter().all(|own| *own == bond.ifname)
        };
        let is_bond = |device: &&Device| match drivers::is_kernels_name(&device.ifname) {
            true => drivers::is_roce_bond(&device.ifname),
            false => self.sharing(device).contains(&address),
        };
        self.devices.iter().filter(has_port).find(is_bond)
    }

    /// The addresses of the functions whose interfaces are in a bond that makes one device of them, under a
    /// name from udev (`rocep1s0f0`): all are of one card, and only the first has a device
    /// (mlx5_lag_check_prereq, drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c). None of another device.
    fn sharing(&self, device: &Device) -> Vec<&str> {
        let first = device.card().unwrap_or_default();
        let is_attached = |name: &String| {
            let mut ports = device.ports.iter();
            ports.any(|port| port.netdev.as_ref() == Some(name))
        };
        let is_over = |netdev: &&Netdev| {
            let mut slaves = netdev.bond.iter().flat_map(|bond| &bond.slaves);
            slaves.any(is_attached) || (netdev.bond.is_some() && is_attached(&netdev.ifname))
        };
        // In other modes each function keeps a device of its own.
        let is_joined = |bond: &&BondFacts| {
            let modes = ["mode=active-backup", "mode=balance-xor", "mode=802.3ad"];
            let mut options = bond.options.iter();
            options.any(|option| modes.iter().any(|mode| option.starts_with(mode)))
        };
        let bond = self.netdevs.iter().find(is_over);
        let slaves = bond
            .iter()
            .filter_map(|netdev| netdev.bond.as_ref())
            .filter(is_joined);
        let slaves = slaves.flat_map(|bond| &bond.slaves);
        let address = |slave: &String| self.netdev(slave)?.bus_address.as_deref();
        let all: Option<Vec<&str>> = slaves.map(address).collect();
        let is_of_card = |address: &&str| {
            let function = self.function(address);
            slot(address) == slot(first)
                && function.is_some_and(|one| {
                    one.driver.as_deref() == Some(drivers::MLX5)
                        && (*address == first || one.devices.is_empty())
                })
        };
        let is_whole = |all: &Vec<&str>| {
            all.contains(&first)
                && all.iter().any(|one| *one != first)
                && all.iter().all(is_of_card)
        };
        all.filter(is_whole).unwrap_or_default()
    }

    /// A driver still initialises HCAs, or another one still adds functions to the PCI bus.
    pub fn is_probing(&self) -> bool {
        self.has_functions_to_come || self.functions.iter().any(Function::is_initialising)
    }

    /// The PCI bus, or the model of a function, that could not be read: which HCAs there are is not known.
    pub fn unread_bus(&self) -> Option<&Unread> {
        let mut unread = self.unread.iter();
        unread.find(|Unread { path, .. }| {
            path == PCI || (path.starts_with(PCI) && path.ends_with("/modalias"))
        })
    }

    /// No HCA is on the PCI bus; false if the bus could not be read.
    pub fn has_no_hca(&self) -> bool {
        self.functions.is_empty() && self.unread_bus().is_none()
    }

    /// What a machine without an RDMA device has, in words.
    pub fn no_device_in_words(&self) -> String {
        let bare = self.bare_functions();
        match (bare.is_empty(), self.unread_bus()) {
            (false, _) => format!("no RDMA device; HCAs on the PCI bus: {}", in_words(&bare)),
            (true, Some(Unread { path, why, .. })) => format!("no RDMA device; {path}: {why}"),
            (true, None) if self.functions.is_empty() => {
                "no RDMA device, and no HCA on the PCI bus".to_owned()
            }
            (true, None) => "no RDMA device".to_owned(),
        }
    }

    /// The machine has an InfiniBand card, or a port that is one.
    pub fn has_infiniband(&self) -> bool {
        let mut ports = self.ports();
        self.functions.iter().any(|function| function.infiniband)
            || ports.any(|port| port.port.link_layer == Some(LinkLayer::InfiniBand))
    }

    /// Whether the port is that of a virtual function or a sub-function of a card of this machine: it
    /// waits for a guest, and has no cable of its own.
    pub fn is_for_guest(&self, found: &PortRef<'_>) -> bool {
        found.device.card().is_some_and(|card| {
            // The device of a sub-function is on the auxiliary bus (mlx5_sf_dev_add,
            // drivers/net/ethernet/mellanox/mlx5/core/sf/dev/dev.c).
            card.starts_with("mlx5_core.sf.")
                || self.function(card).is_some_and(Function::is_for_guest)
        })
    }

    /// The function at this address.
    pub fn function(&self, address: &str) -> Option<&Function> {
        self.functions.iter().find(|f| f.address == address)
    }
}

/// The address of the card that has the function at this address, `0000:81:00`.
pub fn slot(address: &str) -> Option<&str> {
    address.rsplit_once('.').map(|(slot, _)| slot)
}

/// The functions with their addresses, models and states.
pub fn in_words(functions: &[&Function]) -> String {
    const SHOWN: usize = 4;
    let shown = functions.iter().take(SHOWN);
    let mut words: Vec<String> = shown
        .map(|f| format!("{} ({}): {}", f.address, f.id, f.sentence()))
        .collect();
    if functions.len() > SHOWN {
        words.push(format!("and {} more", functions.len() - SHOWN));
    }
    words.join("; ")
}

/// Whether a driver still adds functions to the PCI bus.
pub(super) fn are_to_come(look: &mut Look<'_>) -> bool {
    look.module(ADDS_FUNCTIONS) == Some(InitState::Coming)
}

/// The functions of RDMA cards, by address.
pub fn functions(
    look: &mut Look<'_>,
    devices: &[Device],
    netns: Option<NetnsMode>,
) -> Vec<Function> {
    let mut all = Vec::new();
    for address in look.list(PCI) {
        let path = format!("{PCI}/{address}/modalias");
        let modalias = look.constant(&path);
        match modalias.as_deref().map(PciId::parse) {
            Some(Some(id)) => all.push((address, id)),
            Some(None) => look.note(path, "not the modalias of a PCI function"),
            None => {}
        }
    }
    let of = |address: &str| -> Vec<&Device> {
        let is_of = |device: &&Device| device.card() == Some(address);
        devices.iter().filter(is_of).collect()
    };
    let mut models = Vec::new();
    for (address, id) in &all {
        if let Some(device) = of(address).first() {
            let driver = look.link_name(&format!("{PCI}/{address}/driver"));
            models.push((*id, driver, *device));
        }
    }
    let mut found = Vec::new();
    for (address, id) in &all {
        let mut models = models.iter();
        let model =
            models.find(|(model, ..)| (model.vendor, model.device) == (id.vendor, id.device));
        let by_id = id.driver();
        if id.is_rdma() || id.is_in_recovery() || by_id.is_some() || model.is_some() {
            let driver = by_id.or_else(|| model?.1.as_deref());
            let sibling = model.map(|(.., device)| *device);
            let devices = of(address).into_iter();
            let devices: Vec<String> = devices.map(|device| device.ifname.clone()).collect();
            found.push(Function {
                pcie: (!devices.is_empty())
                    .then(|| pcie::link(look, address, *id))
                    .flatten(),
                devices,
                ..function(look, address, *id, driver, sibling)
            });
        }
    }
    if netns == Some(NetnsMode::Exclusive) {
        // A device in another network namespace is hidden here, but not the directory that it has
        // in its function (class_dir of drivers/base/core.c).
        for function in &mut found {
            let directory = format!("{PCI}/{}/infiniband", function.address);
            let has_one = matches!(look.root().is_there(&directory), Ok(true));
            if function.devices.is_empty() && has_one {
                function.in_other_netns = true;
                function.expected = false;
            }
        }
    }
    found
}

fn function(
    look: &mut Look<'_>,
    address: &str,
    id: PciId,
    expected_driver: Option<&str>,
    sibling: Option<&Device>,
) -> Function {
    let base = format!("{PCI}/{address}");
    let driver = look.link_name(&format!("{base}/driver"));
    // A card may have one of several drivers: the one that is bound, if it is a driver of HCAs.
    let bound = driver.as_deref().filter(|name| drivers::binds_hcas(name));
    let expected_driver = bound.or(expected_driver);
    // The file waits for the lock of a device that its driver probes (driver_override_show of
    // drivers/pci/pci-sysfs.c); the link to the driver is there before the probe begins.
    let chosen = match driver {
        Some(_) => None,
        None => look.text(&format!("{base}/driver_override")),
    };
    // sysfs shows "(null)" if no driver is chosen.
    let chosen = chosen.filter(|text| !text.is_empty() && text != "(null)");
    let physical = look.link_name(&format!("{base}/physfn"));
    let differs = |name: &Option<String>| {
        let name = name.as_deref();
        name.is_some() && expected_driver.is_some() && name != expected_driver
    };
    let ports = sibling.into_iter().flat_map(|device| &device.ports);
    let mut layers = ports.map(|port| port.link_layer);
    let is_switch = physical.is_none() && role::is_switch_function(look.root(), address, id);
    let is_of_infiniband = id.is_rdma()
        || expected_driver.is_some_and(drivers::is_infiniband_only)
        || (id.class != ETHERNET && layers.any(|layer| layer == Some(LinkLayer::InfiniBand)));
    let is_infiniband = is_of_infiniband && !is_switch;
    let expected = is_expected(Signs {
        class: id.class,
        // The model may be one for InfiniBand.
        is_infiniband: is_infiniband || id.is_in_recovery(),
        driver: expected_driver,
        has_sibling: sibling.is_some(),
        is_for_guest: physical.is_some(),
        is_given_away: differs(&driver) || differs(&chosen),
        is_switch,
    });
    let names = expected_driver
        .into_iter()
        .flat_map(|name| {
            let rdma = drivers::of_pci(name).map(|family| family.rdma);
            [Some(name), rdma.filter(|rdma| *rdma != name)]
        })
        .flatten();
    let modules = names.map(|name| Module {
        name: name.to_owned(),
        state: look.module(name),
    });
    Function {
        modules: modules.collect(),
        address: address.to_owned(),
        id: format!("{:04x}:{:04x}", id.vendor, id.device),
        class: format!("{:04x}", id.class),
        driver,
        physical,
        infiniband: is_infiniband,
        expected,
        recovery: id.is_in_recovery(),
        ..Function::default()
    }
}

/// The kernel's lines about functions, read as far as the log goes.
#[derive(Debug, Default)]
pub(super) struct KernelLog {
    addresses: Vec<String>,
    words: Option<KernelWords>,
    lines: BTreeMap<String, Vec<String>>,
}

impl KernelLog {
    /// The last lines about each address.
    fn lines(&mut self, addresses: Vec<String>) -> &BTreeMap<String, Vec<String>> {
        if self.addresses != addresses {
            *self = KernelLog {
                addresses,
                ..KernelLog::default()
            };
        }
        let words = self.words.get_or_insert_with(KernelWords::from_start);
        let names: Vec<&str> = self.addresses.iter().map(String::as_str).collect();
        for line in words.about(&names) {
            for address in self.addresses.iter().filter(|one| is_about(&line, one)) {
                let lines = self.lines.entry(address.clone()).or_default();
                lines.push(line.clone());
                if lines.len() > LINES {
                    lines.remove(0);
                }
            }
        }
        &self.lines
    }
}

/// Adds what the kernel logged about functions whose driver is loaded and that have no RDMA device.
pub(super) fn add_kernel_lines(
    look: &mut Look<'_>,
    functions: &mut [Function],
    log: &mut KernelLog,
) {
    let is_of_interest = |function: &Function| {
        let is_bare = function.devices.is_empty() && !function.in_other_netns;
        is_bare && (function.driver.is_some() || function.may_be_driven())
    };
    let addresses: Vec<String> = functions
        .iter()
        .filter(|function| is_of_interest(function))
        .map(|function| function.address.clone())
        .collect();
    if addresses.is_empty() {
        return;
    }
    let mut lines: BTreeMap<String, Vec<String>> = match look.root().is_live() {
        true => log.lines(addresses).clone(),
        false => look.saved(KERNEL),
    };
    if look.root().is_recording() {
        look.root().keep(KERNEL, &lines);
    }
    for function in functions.iter_mut().filter(|f| is_of_interest(f)) {
        function.kernel = lines.remove(&function.address).unwrap_or_default();
    }
}

/// Whether a driver wrote the line about the function: `mlx5_core 0000:dc:00.0: ...`. Lines of the
/// PCI core (`pci 0000:dc:00.0: `) tell what the bus found, and `probe of 0000:dc:00.0 failed`
/// repeats the driver's error.
fn is_about(line: &str, address: &str) -> bool {
    let mut words = line.split(' ');
    let driver = words.next();
    let object = words.next().and_then(|word| word.strip_suffix(':'));
    driver.is_some_and(|driver| driver != "pci" && driver != "pcieport") && object == Some(address)
}

#[cfg(test)]
mod tests;
