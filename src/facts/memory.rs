// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a look leaves for the next one, so that only what an event touched, or what is too old
//! (`reader`, `lasts`), is read again. Links, addresses and routes are dumped at every look; a device also
//! tells its reader of its events.

use std::collections::BTreeMap;

use super::devices::CLASS;
use super::functions::{self, Function, KernelLog};
use super::links::Links;
use super::{Device, Look, NETNS_MODE, Unread};
use crate::rdma::events::Uevent;
use crate::rdma::types::{LinkLayer, NetnsMode, netns_mode};
use crate::system::modules::InitState;
use crate::system::pci::PCI;

/// What may have changed since the last look, beside links, addresses and routes: those are dumped at
/// every look. Each word includes those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touched {
    /// Nothing else.
    Nothing,
    /// The lists of RDMA devices, PCI functions and modules, the drivers of functions, and
    /// the mode of network namespaces if it was not known.
    Lists,
    /// The RDMA devices: another one may have a name that is known.
    Devices,
    /// What a function is, too: its PCI address may belong to another function now; the files of
    /// interfaces; and the mode of network namespaces.
    #[default]
    Everything,
}

impl Touched {
    /// What a uevent touches: the lists of devices, functions and modules have no other events.
    pub fn by_uevent(event: &Uevent) -> Touched {
        match event.subsystem.as_str() {
            _ if event.is_synthetic => Touched::Nothing,
            "pci" if matches!(event.action.as_str(), "add" | "remove") => Touched::Everything,
            "infiniband" => Touched::Devices,
            // The kernel may wait until the reader of the device closes its event file.
            "infiniband_verbs" if event.action == "remove" => Touched::Devices,
            "pci" | "auxiliary" | "module" => Touched::Lists,
            subsystem if subsystem.starts_with("infiniband") => Touched::Lists,
            _ => Touched::Nothing,
        }
    }
}

/// The memory of a series of looks at one machine. Nothing is remembered at first.
#[derive(Debug, Default)]
pub struct Memory {
    /// Since the last look.
    touched: Touched,
    /// What the present look reads again.
    reads: Touched,
    pub(super) links: Links,
    names: Kept<Vec<String>>,
    netns_mode: Kept<Option<NetnsMode>>,
    functions: Kept<Vec<Function>>,
    has_functions_to_come: Kept<bool>,
    /// What the functions were derived from.
    shapes: Vec<Shape>,
    kernel: KernelLog,
    live: BTreeMap<String, Option<InitState>>,
}

/// A value with what could not be read of it.
type Kept<T> = Option<(T, Vec<Unread>)>;

/// What a function takes over from its RDMA device.
type Shape = (String, Option<String>, Vec<Option<LinkLayer>>);

fn shape(device: &Device) -> Shape {
    let layers = device.ports.iter().map(|port| port.link_layer);
    let address = device.bus_address.clone();
    (device.ifname.clone(), address, layers.collect())
}

/// What another function at the same address, or none, does not have.
fn name(function: &Function) -> (&str, &str) {
    (&function.address, &function.id)
}

/// The kept value, or a new one. A value of which something could not be read is read again.
fn kept<T: Clone>(
    slot: &mut Kept<T>,
    is_valid: bool,
    look: &mut Look<'_>,
    read: impl FnOnce(&mut Look<'_>) -> T,
) -> T {
    if let Some((value, unread)) = slot
        && is_valid
        && unread.is_empty()
    {
        return value.clone();
    }
    let before = look.unread.len();
    let value = read(look);
    let unread = look.unread.get(before..).unwrap_or_default().to_vec();
    *slot = Some((value.clone(), unread));
    value
}

impl Memory {
    /// The next look reads this again.
    pub fn touch(&mut self, touched: Touched) {
        self.touched = self.touched.max(touched);
    }

    /// Whether the next look reads everything.
    pub fn is_all_touched(&self) -> bool {
        self.touched == Touched::Everything
    }

    /// True if the present look reads the lists of devices, functions and modules.
    pub(super) fn reads_lists(&self) -> bool {
        self.reads >= Touched::Lists
    }

    /// True if the present look reads all RDMA devices.
    pub(super) fn reads_devices(&self) -> bool {
        self.reads >= Touched::Devices
    }

    /// True if the present look keeps nothing of the last one.
    pub(super) fn reads_everything(&self) -> bool {
        self.reads == Touched::Everything
    }

    /// A look begins.
    pub(super) fn begin(&mut self, look: &mut Look<'_>) {
        self.reads = std::mem::replace(&mut self.touched, Touched::Nothing);
        if self.reads_everything() {
            look.root().forget(PCI);
            self.links.forget();
        }
        if !self.reads_lists() {
            // A module that is live leaves with a uevent. An older kernel than 5.6 sends no uevent
            // when a module becomes live.
            look.modules = std::mem::take(&mut self.live);
        }
    }

    /// A look ends.
    pub(super) fn end(&mut self, look: &mut Look<'_>) {
        self.live = std::mem::take(&mut look.modules);
        self.live.retain(|_, state| *state == Some(InitState::Live));
    }

    /// The names of the RDMA devices.
    pub(super) fn names(&mut self, look: &mut Look<'_>) -> Vec<String> {
        let is_valid = !self.reads_lists();
        kept(&mut self.names, is_valid, look, |look| look.list(CLASS))
    }

    /// Which network namespaces see RDMA devices.
    pub(super) fn netns_mode(&mut self, look: &mut Look<'_>) -> Option<NetnsMode> {
        // ibboot itself or a person changes the mode. Without ib_core there is none.
        let is_known = matches!(self.netns_mode, Some((Some(_), _)));
        let is_valid = !self.reads_everything() && (is_known || !self.reads_lists());
        kept(&mut self.netns_mode, is_valid, look, |look| {
            look.parsed(NETNS_MODE, netns_mode)
        })
    }

    /// Whether the census of HCAs may grow.
    pub(super) fn has_functions_to_come(&mut self, look: &mut Look<'_>) -> bool {
        let is_moving = matches!(self.has_functions_to_come, Some((true, _)));
        let is_valid = !self.reads_lists() && !is_moving;
        kept(
            &mut self.has_functions_to_come,
            is_valid,
            look,
            functions::are_to_come,
        )
    }

    /// The census of HCAs.
    pub(super) fn functions(
        &mut self,
        look: &mut Look<'_>,
        devices: &[Device],
        netns: Option<NetnsMode>,
    ) -> Vec<Function> {
        let shapes: Vec<Shape> = devices.iter().map(shape).collect();
        let is_moving = |(found, _): &(Vec<Function>, _)| {
            found.iter().any(|function: &Function| function.is_coming())
        };
        let is_valid = !self.reads_lists()
            && self.shapes == shapes
            && !self.functions.as_ref().is_some_and(is_moving);
        self.shapes = shapes;
        let before = self.functions.clone().filter(|_| !is_valid);
        let mut found = kept(&mut self.functions, is_valid, look, |look| {
            functions::functions(look, devices, netns)
        });
        // Slow files are read again for another function only.
        for (address, id) in before
            .iter()
            .flat_map(|(before, _)| before.iter().map(name))
        {
            if !found.iter().any(|function| name(function) == (address, id)) {
                look.root().forget_words(&format!("{PCI}/{address}/"));
            }
        }
        functions::add_kernel_lines(look, &mut found, &mut self.kernel);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::rdma::events::uevent;
    use crate::system::root::Root;
    use crate::wish::expectation::Depth;
    use std::fs;

    #[test]
    fn a_uevent_touches_what_has_no_other_event() {
        let touched = |action: &str, subsystem: &str, more: &str| {
            let message = format!(
                "{action}@/devices/a\0ACTION={action}\0DEVPATH=/devices/a\0SUBSYSTEM={subsystem}\0{more}"
            );
            Touched::by_uevent(&uevent::parse(message.as_bytes()).unwrap())
        };
        for (action, subsystem, expected) in [
            ("add", "infiniband", Touched::Devices),
            ("move", "infiniband", Touched::Devices),
            ("add", "infiniband_verbs", Touched::Lists),
            ("remove", "infiniband_verbs", Touched::Devices),
            ("remove", "infiniband_mad", Touched::Lists),
            ("move", "net", Touched::Nothing),
            ("bind", "auxiliary", Touched::Lists),
            ("add", "module", Touched::Lists),
            ("bind", "pci", Touched::Lists),
            ("unbind", "pci", Touched::Lists),
            ("add", "pci", Touched::Everything),
            ("remove", "pci", Touched::Everything),
            ("add", "tty", Touched::Nothing),
            ("add", "block", Touched::Nothing),
            ("add", "netdevsim", Touched::Nothing),
            ("add", "bdi", Touched::Nothing),
        ] {
            assert_eq!(
                touched(action, subsystem, ""),
                expected,
                "{action} {subsystem}"
            );
            // udev asks for an event of every device when it starts.
            let of_udev = touched(action, subsystem, "SYNTH_UUID=0\0");
            assert_eq!(of_udev, Touched::Nothing, "{action} {subsystem}, synthetic");
        }
        assert!(Touched::Nothing < Touched::Lists && Touched::Lists < Touched::Devices);
        assert!(Touched::Devices < Touched::Everything);
        assert_eq!(
            Touched::default(),
            Touched::Everything,
            "nothing is known yet"
        );
    }

    #[test]
    fn only_what_was_touched_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("sys/module/mlx5_core/initstate");
        let function = dir.path().join("sys/bus/pci/devices/0000:81:00.0");
        let device = dir.path().join("sys/class/infiniband/mlx5_0");
        for folder in [state.parent().unwrap(), &function, &device] {
            fs::create_dir_all(folder).unwrap();
        }
        let modalias = "pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00";
        fs::write(function.join("modalias"), modalias).unwrap();
        fs::write(&state, "coming\n").unwrap();
        let root = Root::new(dir.path());
        let mut memory = Memory::default();
        let modules = ["mlx5_core".to_owned()];
        let look = |memory: &mut Memory| {
            let facts = Facts::gather_again(&root, None, memory, &modules, Depth::Ports);
            let module = facts.modules.get("mlx5_core").copied();
            (module, facts.functions.len(), facts.devices.len())
        };
        assert_eq!(look(&mut memory), (Some(InitState::Coming), 1, 1));
        // What is on its way changes without an event.
        fs::write(&state, "live\n").unwrap();
        assert_eq!(look(&mut memory), (Some(InitState::Live), 1, 1));
        fs::write(&state, "going\n").unwrap();
        fs::remove_dir_all(&function).unwrap();
        fs::remove_dir_all(&device).unwrap();
        assert_eq!(look(&mut memory), (Some(InitState::Live), 1, 1));
        memory.touch(Touched::Lists);
        memory.touch(Touched::Nothing);
        assert_eq!(look(&mut memory), (Some(InitState::Going), 0, 0));
    }

    #[test]
    fn the_census_may_grow_while_a_guest_gets_its_functions() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("sys/module/pci_hyperv/initstate");
        let function = dir.path().join("sys/bus/pci/devices/0101:00:00.0");
        for folder in [state.parent().unwrap(), &function] {
            fs::create_dir_all(folder).unwrap();
        }
        let modalias = "pci:v000015B3d0000101Esv000015B3sd00000011bc02sc07i00";
        fs::write(function.join("modalias"), modalias).unwrap();
        let root = Root::new(dir.path());
        let mut memory = Memory::default();
        let mut look = |text: &str| {
            fs::write(&state, text).unwrap();
            Facts::gather_again(&root, None, &mut memory, &[], Depth::Ports).is_probing()
        };
        assert!(look("coming\n"));
        assert!(!look("live\n"));
        assert!(!Facts::default().is_probing());
    }

    #[test]
    fn the_mode_of_network_namespaces_is_read_when_ib_core_has_come() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(NETNS_MODE.trim_start_matches('/'));
        let root = Root::new(dir.path());
        let mut memory = Memory::default();
        let mut look = |touched: Touched| {
            memory.touch(touched);
            let facts = Facts::gather_again(&root, None, &mut memory, &[], Depth::Ports);
            facts.netns_mode
        };
        assert_eq!(look(Touched::Everything), None);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "N\n").unwrap();
        assert_eq!(look(Touched::Lists), Some(NetnsMode::Exclusive));
        fs::write(&file, "Y\n").unwrap();
        assert_eq!(look(Touched::Lists), Some(NetnsMode::Exclusive));
        assert_eq!(look(Touched::Everything), Some(NetnsMode::Shared));
    }

    #[test]
    fn what_a_function_is_changes_only_with_an_event_of_pci() {
        let dir = tempfile::tempdir().unwrap();
        let function = dir.path().join("sys/bus/pci/devices/0000:81:00.0");
        fs::create_dir_all(&function).unwrap();
        let model = |device: &str| {
            let modalias = format!("pci:v000015B3d0000{device}sv000015B3sd00000007bc02sc07i00");
            fs::write(function.join("modalias"), modalias).unwrap();
        };
        let root = Root::new(dir.path());
        let mut memory = Memory::default();
        let mut look = |touched: Touched| {
            memory.touch(touched);
            let facts = Facts::gather_again(&root, None, &mut memory, &[], Depth::Ports);
            facts.functions[0].id.clone()
        };
        let product = |name: &str| fs::write(function.join("vpd"), name).unwrap();
        let is_switch = || root.has_word("/sys/bus/pci/devices/0000:81:00.0/vpd", "SW_MNG", 64);
        model("101B");
        product("SW_MNG");
        assert_eq!(look(Touched::Nothing), "15b3:101b");
        assert!(is_switch().unwrap());
        product("other");
        assert_eq!(look(Touched::Everything), "15b3:101b");
        assert!(is_switch().unwrap(), "the same function");
        model("101D");
        assert_eq!(look(Touched::Lists), "15b3:101b");
        assert_eq!(look(Touched::Everything), "15b3:101d");
        assert!(!is_switch().unwrap());
    }
}
