// SPDX-License-Identifier: MIT OR Apache-2.0
//! One snapshot of the machine: RDMA devices and ports, network interfaces, modules. Every decision
//! reads the snapshot and never the machine, so a saved tree gives the same answers.

pub mod addresses;
pub mod cable;
pub mod devices;
mod disks;
pub mod functions;
pub mod granted;
pub mod lasting;
pub mod links;
mod look;
mod memory;
pub mod pcie;
pub mod reader;
pub mod role;
pub mod rootfs;
pub mod routes;
mod rtnetlink;
pub mod rules;
pub mod select;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dhcp;
use crate::dhcp::v4::progress::Progress;
use crate::error::Result;
use crate::hardware::{HardwareAddress, HardwareType};
use crate::inet::Route;
use crate::rdma::netlink::Rdma;
use crate::rdma::types::{
    Connection, Guid, Identity, Key, LinkLayer, NetnsMode, NodeType, PhysState, PortState, Rate,
};
use crate::rdma::{reach, sa};
use crate::system::BOOT_ID;
use crate::system::clock;
use crate::system::copy::Failure;
use crate::system::modules::{InitState, OS_RELEASE};
use crate::system::root::Root;
use crate::wish::bond::BondFacts;
use crate::wish::expectation::Depth;
use crate::wish::ipoib::IpoibFacts;

pub use crate::system::copy::FAILURES;
pub use addresses::{AddressState, FoundAddress};
pub use disks::DiskPath;
pub use functions::Function;
pub use look::Look;
pub use memory::{Memory, Touched};
pub use reader::Readers;
pub use role::{Role, SubDevice};
pub use rootfs::RootMount;

/// Version of the JSON format.
pub const SCHEMA: u32 = 1;

/// Parameter of ib_core, which shows the present mode.
pub const NETNS_MODE: &str = "/sys/module/ib_core/parameters/netns_mode";
/// The answers of subnet administrators in a saved tree: [`Facts::subnet_administrator`] as JSON.
const SA_ANSWERS: &str = "/ibboot-sa.json";
/// [`Facts::subnet_managers`] in a saved tree, as JSON.
const SM_ANSWERS: &str = "/ibboot-sm.json";
/// [`Facts::taken_ns`] in a saved tree.
pub const TAKEN: &str = "/ibboot-taken.json";
/// The entries of [`Facts::unread`] that no file of a saved tree shows, as JSON.
pub const UNREAD: &str = "/ibboot-unread.json";
/// [`Facts::servers`] in a saved tree, as JSON.
pub const SERVERS: &str = "/ibboot-servers.json";

/// The snapshot, as `ibboot facts` prints it. Field names are those of `rdma -j` (iproute2), where
/// it has the field.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The kernel's boot id.
    pub boot_id: Option<String>,
    /// Release of the running kernel.
    pub kernel: Option<String>,
    /// Time of the snapshot, ns since kernel start; 0 for a saved tree that does not have it.
    pub taken_ns: u64,
    /// State of the relevant modules; a module that is not loaded is not listed.
    pub modules: BTreeMap<String, InitState>,
    /// PCI functions of RDMA cards, by address, with and without an RDMA device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// A driver still adds functions to the PCI bus.
    #[serde(skip)]
    pub has_functions_to_come: bool,
    /// Which network namespaces see RDMA devices; none without ib_core, and before Linux 5.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netns_mode: Option<NetnsMode>,
    /// RDMA devices, by name.
    pub devices: Vec<Device>,
    /// Network interfaces, by name.
    pub netdevs: Vec<Netdev>,
    /// Answers of the subnet administrators about interfaces, if they were queried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subnet_administrator: Vec<sa::SaAnswer>,
    /// Whether the subnet administrators of the other ports answer, if they were queried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subnet_managers: Vec<sa::Contact>,
    /// Answers of the servers that were tested over RDMA.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<reach::ServerAnswer>,
    /// Progress of DHCP, or the lease that was granted in this boot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dhcp: Vec<Progress>,
    /// Progress of DHCPv6, or the lease that was granted in this boot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dhcp6: Vec<dhcp::v6::progress::Progress>,
    /// Who renews the leases after the boot; none during `up`.
    #[serde(skip)]
    pub renewer: Option<Renewer>,
    /// The mount of the root directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<RootMount>,
    /// Established RDMA connections.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// Writes of `up` that have not ended: those of port types, and after some seconds any other.
    #[serde(skip)]
    pub unended: Vec<Unended>,
    /// Attributes that could not be read or parsed: the rest of the snapshot is valid.
    pub unread: Vec<Unread>,
}

/// A write to a file of the kernel that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unended {
    /// Name of the interface or RDMA device, or address of the PCI function.
    pub object: String,
    /// What is written: `set mode connected of ib0`.
    pub what: String,
    /// The types of the ports of a card are written: its driver removes and adds all of them.
    pub is_port_types: bool,
    /// The write has taken some seconds already.
    pub is_long: bool,
}

impl Unended {
    /// From then on the report names the write, and no verdict waits for it.
    pub const LONG: Duration = Duration::from_secs(5);

    /// The line about a write.
    pub fn words(what: &str) -> String {
        format!(
            "{what}: the kernel has not finished this write after {} s; the firmware may not answer: see \
             dmesg",
            Unended::LONG.as_secs()
        )
    }
}

/// An attribute that could not be read or parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Path of the file, or name of the query.
    pub path: String,
    /// errno text or parse error.
    pub why: String,
    /// What would help, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
}

/// Why the caller could not read a file that another caller can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// The caller is not root, and may not.
    NotRoot,
    /// The limits of the caller allow no more files or processes.
    Limit,
    /// No process can be started that would read it.
    NoProcess,
}

impl Obstacle {
    /// Of a file that could not be opened or read; `is_root`: root is the caller.
    fn of_file(error: &io::Error, is_root: bool) -> Option<Obstacle> {
        match error.raw_os_error() {
            Some(libc::EACCES) if !is_root => Some(Obstacle::NotRoot),
            Some(libc::EMFILE | libc::ENFILE) => Some(Obstacle::Limit),
            _ => None,
        }
    }

    /// Of a process that could not be started.
    fn of_process(error: &io::Error) -> Obstacle {
        match error.raw_os_error() {
            // EAGAIN: RLIMIT_NPROC, and TasksMax= of a unit.
            Some(libc::EAGAIN | libc::EMFILE | libc::ENFILE) => Obstacle::Limit,
            _ => Obstacle::NoProcess,
        }
    }
}

/// An RDMA device: /sys/class/infiniband/NAME and NETLINK_RDMA.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Name; udev may rename the device.
    pub ifname: String,
    /// NETLINK_RDMA index, stable across a rename; none in a saved tree.
    pub ifindex: Option<u32>,
    /// `node_guid`: together with the port number, the key of a link inside one boot.
    pub node_guid: Option<Guid>,
    /// `sys_image_guid`.
    pub sys_image_guid: Option<Guid>,
    /// `node_type`.
    pub node_type: Option<NodeType>,
    /// `fw_ver`; absent for Soft-RoCE and siw.
    pub fw: Option<String>,
    /// `hca_type`: `MT4123`.
    pub hca_type: Option<String>,
    /// `hw_rev`.
    pub hw_rev: Option<String>,
    /// `board_id`, the PSID of NVIDIA cards.
    pub board_id: Option<String>,
    /// `node_desc`, which the subnet manager's log shows.
    pub node_desc: Option<String>,
    /// The bus driver; absent for most software devices.
    pub driver: Option<String>,
    /// Name on its bus, `0000:81:00.0` for a PCI card; absent for most software devices
    /// ([`Device::card`]).
    pub bus_address: Option<String>,
    /// `parent`: the network device below a Soft-RoCE device.
    pub parent: Option<String>,
    /// Set for a device that belongs to another RDMA device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_device: Option<SubDevice>,
    /// The device has not answered for so many seconds: only what identifies the device and its
    /// ports is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_s: Option<u32>,
    /// The ports, from 1.
    pub ports: Vec<Port>,
}

/// A port of an RDMA device: /sys/class/infiniband/NAME/ports/N.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Number, from 1.
    pub port: u32,
    /// What the port is.
    #[serde(default, skip_serializing_if = "Role::is_link")]
    pub role: Role,
    /// `link_layer`.
    pub link_layer: Option<LinkLayer>,
    /// `state`.
    pub state: Option<PortState>,
    /// `phys_state`.
    pub physical_state: Option<PhysState>,
    /// `rate`.
    pub rate: Option<Rate>,
    /// `lid`; 0 is none.
    pub lid: Option<u32>,
    /// `sm_lid`; 0 is none.
    pub sm_lid: Option<u32>,
    /// `lid_mask_count`.
    pub lmc: Option<u32>,
    /// `cap_mask`, PortInfo.CapabilityMask.
    pub cap_mask: Option<u32>,
    /// GUID of the port: the low half of `gids/0`.
    pub port_guid: Option<Guid>,
    /// The high half of `gids/0`.
    pub subnet_prefix: Option<Guid>,
    /// An Ethernet port without an entry in its GID table, even an empty one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_gid_table: bool,
    /// `pkeys` without empty slots, as far as the table was read; bit 15 is full membership.
    pub pkeys: Vec<u16>,
    /// The network device attached to the port (RoCE, Soft-RoCE); never an IPoIB interface.
    pub netdev: Option<String>,
    /// Interface index of the attached network device.
    pub netdev_index: Option<u32>,
    /// Seconds since the port has this state and this SM LID; none if nobody watched the port.
    #[serde(skip)]
    pub seconds_in_state: Option<u64>,
}

/// A network interface: /sys/class/net/NAME.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Netdev {
    pub ifname: String,
    pub ifindex: Option<u32>,
    /// ARP hardware type (`type`).
    pub hardware_type: Option<HardwareType>,
    /// Hardware address (`address`).
    pub address: Option<HardwareAddress>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Administratively up (IFF_UP).
    pub up: bool,
    /// Carrier; absent while the interface is down.
    pub carrier: Option<bool>,
    /// Operational state (RFC 2863).
    pub operstate: Option<String>,
    /// Kind of a virtual interface (`DEVTYPE` in its uevent: `vlan`, `bond`).
    pub kind: Option<String>,
    /// Index of the interface below a VLAN, and of the parent of an IPoIB child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<u32>,
    /// Name of the underlying device on its bus.
    pub bus_address: Option<String>,
    /// GUID of the port below an IPoIB interface whose address has another GID of the port.
    #[serde(skip)]
    pub alias_of: Option<Guid>,
    /// Attributes of an IPoIB interface.
    pub ipoib: Option<IpoibFacts>,
    /// Attributes of a bond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bond: Option<BondFacts>,
    /// IP addresses, including link-local ones (rtnetlink).
    #[serde(flatten, serialize_with = "addresses::by_state")]
    pub addresses: Vec<FoundAddress>,
    /// Gateways of default routes through the interface (rtnetlink: the routes that /proc/net/route
    /// and /proc/net/ipv6_route show).
    pub gateways: Vec<IpAddr>,
    /// Those of `gateways` that a router advertised, and no program or person set.
    #[serde(skip)]
    pub advertised: Vec<IpAddr>,
    /// Those of `addresses` that have a lifetime: a server or a router gave them.
    #[serde(skip)]
    pub dynamic: Vec<IpAddr>,
    /// Other routes through the interface; routes to its own addresses are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Metrics of the routes, default routes included.
    #[serde(skip)]
    pub metrics: Vec<(Route, u32)>,
    /// Requested addresses that another host on the link has, as text, in a run of `up`.
    #[serde(skip)]
    pub taken: Vec<String>,
    /// Requested addresses of which no ARP probe of a run of `up` has shown whether another host has
    /// them: an ARP message was not decoded.
    #[serde(skip)]
    pub unproven: Vec<Ipv4Addr>,
}

/// One port with its device.
#[derive(Debug, Clone, Copy)]
pub struct PortRef<'a> {
    pub device: &'a Device,
    pub port: &'a Port,
}

impl PortRef<'_> {
    /// The best identity; none of a software device without a node GUID.
    pub fn identity(&self) -> Option<Identity> {
        self.identities().next()
    }

    /// Everything that identifies the port, best first: the GUID of a virtual function may be
    /// assigned after the port was verified without one.
    pub fn identities(&self) -> impl Iterator<Item = Identity> {
        let is_set = |guid: &Guid| guid.0 != 0;
        let bus_address = self.device.card().map(str::to_owned);
        let keys = [
            self.device.node_guid.filter(is_set).map(Key::NodeGuid),
            self.port.port_guid.filter(is_set).map(Key::PortGuid),
            bus_address.map(Key::BusAddress),
        ];
        let port = self.port.port;
        let identity = move |device| Identity { device, port };
        keys.into_iter().flatten().map(identity)
    }

    /// `rxe0/1`, the spelling of rdma(8).
    pub fn name(&self) -> String {
        format!("{}/{}", self.device.ifname, self.port.port)
    }

    /// `mlx5_0/1 (InfiniBand)`; the name alone if the link layer is not known.
    pub fn name_and_layer(&self) -> String {
        match self.port.link_layer {
            Some(layer) => format!("{} ({layer})", self.name()),
            None => self.name(),
        }
    }
}

impl Netdev {
    /// Whether it is an IPoIB interface or a bond of such interfaces.
    pub fn is_infiniband(&self) -> bool {
        self.hardware_type == Some(HardwareType::InfiniBand)
    }

    /// Whether it is an IPoIB interface that the kernel made for a port, not a child.
    pub fn is_parent(&self) -> bool {
        self.ipoib.as_ref().is_some_and(|ipoib| !ipoib.child)
    }

    /// Whether it is an IPoIB interface that was made on another one.
    pub fn is_child(&self) -> bool {
        self.ipoib.as_ref().is_some_and(|ipoib| ipoib.child)
    }

    /// GUID of the port below an IPoIB interface, from its hardware address.
    pub fn port_guid(&self) -> Option<Guid> {
        let of_address = || self.address.as_ref().and_then(HardwareAddress::port_guid);
        self.alias_of.or_else(of_address)
    }

    /// Whether it is an IPoIB interface over this port, or a bond with such an interface: the last 8
    /// bytes of its address are the GUID of the port. Cards with a copied firmware image have one GUID;
    /// only the kernel's own interface of a port has the device of the card (ipoib_parent_init,
    /// drivers/infiniband/ulp/ipoib/ipoib_main.c).
    pub fn is_over(&self, found: PortRef<'_>) -> bool {
        let guid = self.port_guid();
        let cards = self
            .bus_address
            .as_ref()
            .zip(found.device.bus_address.as_ref());
        let is_card = cards.is_none_or(|(own, other)| own == other);
        guid.is_some() && guid == found.port.port_guid && is_card
    }

    /// Carrier, and the kernel transmits: for a short time after the carrier comes, it drops packets
    /// without an error. The operational state changes when that time ends (linkwatch_do_dev of
    /// net/core/link_watch.c).
    pub fn can_transmit(&self) -> bool {
        let is_down = |state: &str| matches!(state, "down" | "lowerlayerdown" | "notpresent");
        self.carrier == Some(true) && !self.operstate.as_deref().is_some_and(is_down)
    }
}

impl Facts {
    /// Takes a snapshot of the machine. `readers`, if given, read the RDMA devices, and add values
    /// that sysfs does not have (device index, attached network device).
    pub fn gather(
        root: &Root,
        readers: Option<&Readers>,
        modules: &[String],
        depth: Depth,
    ) -> Facts {
        Facts::gather_again(root, readers, &mut Memory::default(), modules, depth)
    }

    /// Like [`Facts::gather`], after an earlier snapshot with the same `memory`: only what was
    /// [touched](Memory::touch) since then is read again.
    pub fn gather_again(
        root: &Root,
        readers: Option<&Readers>,
        memory: &mut Memory,
        modules: &[String],
        depth: Depth,
    ) -> Facts {
        let mut look = Look::new(root);
        look.depth = depth;
        memory.begin(&mut look);
        let has_devices = look.depth != Depth::Interfaces;
        let mut devices = match has_devices {
            true => devices::devices(&mut look, readers, memory),
            false => Vec::new(),
        };
        let netns_mode = memory.netns_mode(&mut look);
        let functions = match has_devices {
            true => memory.functions(&mut look, &devices, netns_mode),
            false => Vec::new(),
        };
        let is_guest = functions.iter().any(Function::is_virtual);
        let has_functions_to_come = is_guest && memory.has_functions_to_come(&mut look);
        let mut netdevs = links::netdevs(&mut look, &mut memory.links);
        addresses::add(&mut netdevs, &mut look, &mut memory.links);
        routes::add(&mut netdevs, &mut look, &mut memory.links);
        devices::bind_netdevs(&mut devices, &netdevs);
        role::assign(&mut devices, &mut look);
        links::bind_aliases(&mut netdevs, &devices, &mut look);
        let modules = look.modules(modules);
        memory.end(&mut look);
        let mut facts = Facts {
            schema: SCHEMA,
            boot_id: look.constant(BOOT_ID),
            kernel: look.constant(OS_RELEASE),
            modules,
            functions,
            has_functions_to_come,
            netns_mode,
            devices,
            netdevs,
            ..Facts::default()
        };
        if root.is_live() {
            facts.taken_ns = clock::boottime_ns();
        } else {
            // A saved tree has the answers in files: it has no servers to query.
            facts.subnet_managers = look.saved(SM_ANSWERS);
            facts.subnet_administrator = look.saved(SA_ANSWERS);
            facts.servers = look.saved(SERVERS);
            facts.taken_ns = look.saved(TAKEN);
            let unread: Vec<Unread> = look.saved(UNREAD);
            look.unread.extend(unread);
            // Notes that it is damaged.
            drop(look.saved::<BTreeMap<String, Failure>>(FAILURES));
        }
        facts.unread = look.unread;
        facts
    }

    /// Whether an RDMA device or an IPoIB interface is gone, or has another name than at the look: udev
    /// renames both when the real root starts.
    pub fn is_outdated(&self, root: &Root) -> bool {
        let is_gone = |class: &str, name: &str| {
            let path = format!("{class}/{name}");
            matches!(root.is_there(&path), Ok(false))
        };
        let mut devices = self.devices.iter();
        let is_ipoib = |netdev: &&Netdev| netdev.hardware_type == Some(HardwareType::InfiniBand);
        let mut netdevs = self.netdevs.iter().filter(is_ipoib);
        devices.any(|device| is_gone(devices::CLASS, &device.ifname))
            || netdevs.any(|netdev| is_gone(links::CLASS, &netdev.ifname))
    }

    /// Adds the states of these modules.
    pub fn add_modules(&mut self, root: &Root, names: &[String]) {
        let mut look = Look::new(root);
        self.modules.extend(look.modules(names));
        self.unread.append(&mut look.unread);
    }

    /// Adds what no file of the kernel shows: the leases of DHCP servers.
    pub fn add_leases(&mut self, leases: Result<Leases>) {
        match leases {
            Ok(leases) => {
                (self.dhcp, self.dhcp6) = (leases.dhcp, leases.dhcp6);
                self.renewer = leases.renewer;
            }
            Err(error) => self.unread.push(Unread {
                why: error.reason(),
                path: error.object,
                obstacle: None,
            }),
        }
    }

    /// Adds the root file system and its transport, which matter only after it is mounted.
    pub fn add_root(&mut self, root: &Root, rdma: Option<&Rdma>) {
        let mut look = Look::new(root);
        self.root = rootfs::root(&mut look);
        self.connections = match rdma {
            Some(rdma) => devices::connections(&mut look, rdma, &self.devices),
            None if root.is_live() => {
                devices::note_silence(&mut look);
                Vec::new()
            }
            None => look.saved(rootfs::CONNECTIONS),
        };
        self.unread.append(&mut look.unread);
    }

    /// Stores in the recorded tree what no file of the machine shows: answers to queries, and what
    /// could not be read.
    pub fn keep_answers(&self, root: &Root) {
        fn keep<T: Serialize>(root: &Root, path: &str, values: &[T]) {
            if !values.is_empty() {
                root.keep(path, &values);
            }
        }
        keep(root, SA_ANSWERS, &self.subnet_administrator);
        keep(root, SM_ANSWERS, &self.subnet_managers);
        keep(root, SERVERS, &self.servers);
        if self.taken_ns != 0 {
            root.keep(TAKEN, &self.taken_ns);
        }
        keep(root, rootfs::CONNECTIONS, &self.connections);
        let is_lost = |unread: &&Unread| !root.is_remembered(&unread.path);
        let lost: Vec<&Unread> = self.unread.iter().filter(is_lost).collect();
        keep(root, UNREAD, &lost);
    }

    /// The program that owns the interfaces and renews their leases in its own way.
    pub fn owner(&self) -> Option<&'static str> {
        match self.renewer {
            Some(Renewer::Owner(name)) => Some(name),
            Some(Renewer::Keeper | Renewer::Nobody) | None => None,
        }
    }

    /// The ports of the machine: those that carry a link.
    pub fn ports(&self) -> impl Iterator<Item = PortRef<'_>> {
        self.all_ports().filter(|found| found.port.role.is_link())
    }

    /// The port of this name, `mlx5_0/1`.
    pub fn port(&self, name: &str) -> Option<PortRef<'_>> {
        self.ports().find(|port| port.name() == name)
    }

    /// All ports of all devices, of whatever role.
    pub fn all_ports(&self) -> impl Iterator<Item = PortRef<'_>> {
        self.devices.iter().flat_map(|device| {
            device
                .ports
                .iter()
                .map(move |port| PortRef { device, port })
        })
    }

    /// The snapshot without the devices that do not answer, and without their IPoIB interfaces: a
    /// change there would wait for the firmware, with the lock of all network interfaces held
    /// (ipoib_open of drivers/infiniband/ulp/ipoib/ipoib_main.c runs under rtnl_lock).
    pub fn answering(&self) -> Cow<'_, Facts> {
        let is_silent = |device: &&Device| device.silent_s.is_some();
        let silent = self.devices.iter().filter(is_silent);
        let guids: Vec<Guid> = silent
            .flat_map(|device| device.ports.iter().filter_map(|port| port.port_guid))
            .collect();
        if !self.devices.iter().any(|device| is_silent(&device)) {
            return Cow::Borrowed(self);
        }
        let mut facts = self.clone();
        facts.devices.retain(|device| !is_silent(&device));
        let is_theirs = |netdev: &Netdev| netdev.port_guid().is_some_and(|g| guids.contains(&g));
        facts.netdevs.retain(|netdev| !is_theirs(netdev));
        Cow::Owned(facts)
    }

    /// The reason why the list of interfaces and addresses is incomplete, if it is.
    pub fn unread_interfaces(&self) -> Option<&Unread> {
        let is_index =
            |path: &str| path.starts_with("/sys/class/net/") && path.ends_with("/ifindex");
        self.unread.iter().find(|unread| {
            let path = unread.path.as_str();
            path == links::DUMP
                || path == addresses::DUMP
                || path == routes::DUMP
                || path == "/sys/class/net"
                || is_index(path)
        })
    }

    /// The interface with this name.
    pub fn netdev(&self, name: &str) -> Option<&Netdev> {
        self.netdevs.iter().find(|netdev| netdev.ifname == name)
    }
}

/// Leases of DHCP servers in this boot.
#[derive(Debug, Clone, Default)]
pub struct Leases {
    /// Leases of DHCP (IPv4).
    pub dhcp: Vec<Progress>,
    /// Leases of DHCPv6.
    pub dhcp6: Vec<dhcp::v6::progress::Progress>,
    /// Who renews them after the boot; none if nothing was handed over.
    pub renewer: Option<Renewer>,
}

/// Who renews the leases after the boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewer {
    /// `ibboot lease`, which was started in this boot.
    Keeper,
    /// `ibboot lease` was never started.
    Nobody,
    /// The program that `rd.ib.handover=` names.
    Owner(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_transmits_with_carrier_once_its_operational_state_follows() {
        for (carrier, state, expected) in [
            (Some(true), "up", true),
            (Some(true), "unknown", true),
            (Some(true), "dormant", true),
            (Some(true), "down", false),
            (Some(true), "lowerlayerdown", false),
            (Some(true), "notpresent", false),
            (Some(false), "up", false),
            (None, "unknown", false),
        ] {
            let operstate = Some(state.to_owned());
            let netdev = Netdev {
                carrier,
                operstate,
                ..Netdev::default()
            };
            assert_eq!(netdev.can_transmit(), expected, "{carrier:?} {state}");
        }
    }

    #[test]
    fn what_is_in_the_way_of_a_file_depends_on_who_asks() {
        let of = |code, is_root| Obstacle::of_file(&io::Error::from_raw_os_error(code), is_root);
        assert_eq!(of(libc::EACCES, false), Some(Obstacle::NotRoot));
        assert_eq!(of(libc::EACCES, true), None);
        assert_eq!(of(libc::EIO, false), None);
        assert_eq!(of(libc::EMFILE, true), Some(Obstacle::Limit));
    }

    #[test]
    fn an_attribute_in_an_unknown_format_is_noted_as_unread() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("sys/class/net/ib0");
        std::fs::create_dir_all(&base).unwrap();
        for (file, text) in [("address", "80:00:zz"), ("type", "65568")] {
            std::fs::write(base.join(file), text).unwrap();
        }
        let saved = r#"{"ib0":["10.0.0.1/24","10.0.0.2/99"]}"#;
        std::fs::write(dir.path().join("ibboot-addresses.json"), saved).unwrap();
        let root = Root::new(dir.path());
        let facts = Facts::gather(&root, None, &[], Depth::All);
        let netdev = facts.netdev("ib0").unwrap();
        assert_eq!((&netdev.address, netdev.hardware_type), (&None, None));
        let unread: Vec<&str> = facts.unread.iter().map(|u| u.path.as_str()).collect();
        assert_eq!(
            unread,
            [
                "/sys/class/net/ib0/type",
                "/sys/class/net/ib0/address",
                addresses::V4
            ]
        );
        let addresses: Vec<String> = netdev
            .addresses
            .iter()
            .map(|found| found.address.to_string())
            .collect();
        assert_eq!(addresses, ["10.0.0.1/24"]);
    }
}
