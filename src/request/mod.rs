// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typed wishes out of the parsed command line, each with the argument that asked for it.

mod dump;

pub mod interfaces;
pub mod root;

use std::time::Duration;

use kernel_cmdline::{
    Arguments, Cmdline, Handover, HwAddr, Interface, LinkKind, Method, Net, OnFail, PortType,
    Require, RoceMode, Route, Source, Spanned,
};

use serde::Serialize;

use crate::error::Error;
use crate::rdma::reach::Server;
use crate::request::interfaces::{
    BondWish, InterfaceWish, boot_device, is_addressed, is_anywhere, is_named, is_without_ip,
    unaddressed,
};
use crate::system::modules::normal;
use crate::system::root::Root;
use crate::wish::expectation::Rate;
use crate::wish::origin::{Origin, Requested, origin, requested};
use crate::wish::{ipoib, storage};

pub use dump::Dump;

/// Deadline where neither `rd.ib.timeout=` nor `rd.retry=` says one: dracut's own.
const TIMEOUT: Duration = Duration::from_secs(180);

impl<T> Requested<T> {
    /// `value`, asked for by the same argument.
    fn with<U>(self, value: U) -> Requested<U> {
        Requested {
            value,
            origin: self.origin,
        }
    }
}

/// `rd.ib.link=NAME:KIND:NETDEV`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftLink {
    /// Name of the RDMA device to make.
    pub name: String,
    /// rxe or siw.
    pub kind: LinkKind,
    /// The interface below it.
    pub netdev: String,
}

/// How many ports (`rd.ib.require=`), the named ones being in [`Request::ports`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Required {
    /// All that are named; without names, any one.
    Named,
    /// That many, whichever.
    Count(u32),
    /// Every port there is.
    All,
}

/// What happens when the deadline passes and what is required is not verified (`rd.ib.onfail=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// An emergency shell.
    Shell,
    /// The boot goes on.
    Continue,
    /// The machine reboots.
    Reboot,
    /// The boot goes on, and dracut, which waits for the network with a deadline of its own, decides.
    Dracut,
}

/// Everything the command line wants of us.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The argument that turns ibboot on; `None`: there is nothing to do.
    pub asked: Option<Origin>,
    /// Modules of `rd.driver.pre=` and `rd.driver.post=`, in the kernel's spelling.
    pub modules: Vec<Requested<String>>,
    /// Modules that no device may load by itself (`rd.driver.blacklist=`, `modprobe.blacklist=`).
    pub blacklist: Vec<Requested<String>>,
    /// Software links to make.
    pub links: Vec<Requested<SoftLink>>,
    /// Default RoCE modes; selector text or all.
    pub roce: Vec<Requested<(Option<String>, RoceMode)>>,
    /// mlx4 port types by selector text.
    pub port_types: Vec<Requested<(String, PortType)>>,
    /// Ports that something names, as selector texts, without repetition.
    pub ports: Vec<Requested<String>>,
    /// IPoIB interfaces that something names, without repetition.
    pub interfaces: Vec<Requested<InterfaceWish>>,
    /// Bonds of such interfaces.
    pub bonds: Vec<Requested<BondWish>>,
    /// What `rd.ib.mode=` and `rd.ib.mtu=` without an interface want, where that may be of interfaces
    /// beside those that are named.
    pub any_interface: Option<Requested<ipoib::Wish>>,
    /// The image's network module is asked to address whichever interface comes up.
    pub anywhere: bool,
    /// Ports that `rd.ib.require=` lists: then only these gate the boot.
    pub listed: bool,
    /// How many of them gate the boot.
    pub required: Required,
    /// `rd.ib.rate=`.
    pub rates: Vec<Rate>,
    /// `rd.ib.probe=`, without repetition.
    pub servers: Vec<Requested<Server>>,
    /// Probe the HCAs of one driver side by side.
    pub async_probe: bool,
    /// The deadline, from the start of `up`.
    pub timeout: Duration,
    /// What happens when it passes.
    pub onfail: OnFailure,
    /// Who owns the interfaces in the real root, where something says so.
    pub handover: Option<Requested<Handover>>,
    /// The server that the root file system comes from, where it is named.
    pub root: Option<Requested<storage::Root>>,
    /// Its servers, where several are named; none: one that is not known.
    pub portals: Vec<Option<std::net::IpAddr>>,
    /// Where a DHCP server names it.
    pub root_of_lease: Option<storage::OfLease>,
    /// Log as much as `rd.debug` wants.
    pub verbosity: log::LevelFilter,
    /// `rd.info` or `rd.debug`: also on a console that is quiet.
    pub on_console: bool,
    /// One line for each argument that is wrong.
    pub complaints: Vec<String>,
    /// Arguments that were understood and that somebody else carries out, or nobody yet.
    pub left: Vec<Requested<&'static str>>,
    /// This kernel saves the dump of one that crashed, and what it does of the command line.
    pub dump: Option<Dump>,
}

impl Request {
    /// Reads the files that make up the command line, as dracut does inside an initramfs and as
    /// the kernel wrote it elsewhere.
    pub fn read(root: &Root) -> Request {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let mut unread = Vec::new();
        let mut cannot = |path: &str, e: &std::io::Error| {
            if e.kind() != std::io::ErrorKind::NotFound {
                unread.push(Error::io(path, "cannot be read", e).to_string());
            }
        };
        let mut paths = vec!["/proc/cmdline".to_owned()];
        if in_initramfs(root) {
            let mut conf = |directory: &str| -> Vec<String> {
                let names = root.list(directory).inspect_err(|e| cannot(directory, e));
                let names = names.unwrap_or_default().into_iter();
                let conf = names.filter(|name| name.ends_with(".conf"));
                conf.map(|name| format!("{directory}/{name}")).collect()
            };
            paths.insert(0, "/etc/cmdline".to_owned());
            paths.splice(0..0, conf("/etc/cmdline.d"));
            paths.extend(conf("/run/initramfs/cmdline.d"));
        }
        for path in paths {
            match root.read(&path) {
                Ok(bytes) => files.push((path, bytes)),
                Err(e) => cannot(&path, &e),
            }
        }
        let sources: Vec<Source<'_>> = files
            .iter()
            .map(|(path, bytes)| Source::new(path, bytes))
            .collect();
        let saves_dump = root.exists(dump::VMCORE);
        if saves_dump {
            // Of a saved machine that it is there is enough.
            root.remember_file(dump::VMCORE, b"");
        }
        let mut request = Request::from_sources(&sources, saves_dump);
        request.complaints.extend(unread);
        request
    }

    /// A command line given as text, for a kernel that boots a machine.
    pub fn from_text(text: &str) -> Request {
        let sources = [Source::new("--cmdline", text.as_bytes())];
        Request::from_sources(&sources, false)
    }

    fn from_sources(sources: &[Source<'_>], saves_dump: bool) -> Request {
        let arguments = kernel_cmdline::parse(sources);
        let mut request = Request::new(&arguments);
        request.blacklist.extend(of_modprobe(sources));
        if saves_dump {
            dump::narrow(&mut request, &arguments);
        }
        request
    }

    /// The wishes in `arguments`.
    pub fn new(arguments: &Arguments<'_>) -> Request {
        let mut modules: Vec<Requested<String>> = Vec::new();
        for driver in arguments.drivers.pre.iter().chain(&arguments.drivers.post) {
            let name = normal(driver.value);
            if modules.iter().all(|known| known.value != name) {
                modules.push(requested(driver, name));
            }
        }
        let ib = &arguments.ib;
        let mut links: Vec<Requested<SoftLink>> = Vec::new();
        let mut replaced = Vec::new();
        for link in &ib.links {
            let value = SoftLink {
                name: link.value.name.to_owned(),
                kind: link.value.kind,
                netdev: link.value.netdev.to_owned(),
            };
            // The last one of a name counts; dracut may read the same argument from two files.
            if let Some(position) = links
                .iter()
                .position(|known| known.value.name == value.name)
            {
                let before = links.remove(position);
                if before.value != value {
                    replaced.push(Requested {
                        value: "a later argument gives the same name to another link",
                        origin: before.origin,
                    });
                }
            }
            links.push(requested(link, value));
        }
        let (listed, required) = match ib.require.as_ref().map(|require| &require.value) {
            None => (false, Required::Named),
            Some(Require::All) => (false, Required::All),
            Some(Require::Any) => (false, Required::Count(1)),
            Some(Require::Count(n)) => (false, Required::Count(*n)),
            Some(Require::Ports(_)) => (true, Required::Named),
        };
        let mut complaints: Vec<String> = arguments
            .complaints
            .iter()
            .map(ToString::to_string)
            .collect();
        if arguments.complaints_lost > 0 {
            complaints.push(format!(
                "{} more wrong arguments",
                arguments.complaints_lost
            ));
        }
        let mut interfaces = crate::request::interfaces::named(arguments);
        let is_enough = !interfaces.is_empty() && !listed && required == Required::Named;
        let any_interface = crate::request::interfaces::unnamed(arguments).filter(|_| !is_enough);
        let left = left(arguments, &interfaces);
        let left = replaced.into_iter().chain(left).collect();
        let bonds = crate::request::interfaces::bonds(arguments, &mut interfaces);
        let debug = arguments.debug.is_some_and(|on| on.value);
        Request {
            asked: arguments.asked().as_ref().map(origin),
            modules,
            blacklist: arguments
                .drivers
                .blacklist
                .iter()
                .map(|driver| requested(driver, normal(driver.value)))
                .collect(),
            links,
            roce: ib
                .roce
                .iter()
                .map(|roce| {
                    requested(
                        roce,
                        (roce.value.selector.map(|s| s.to_string()), roce.value.mode),
                    )
                })
                .collect(),
            port_types: ib
                .port_types
                .iter()
                .map(|kind| {
                    requested(
                        kind,
                        (kind.value.selector.to_string(), kind.value.port_type),
                    )
                })
                .collect(),
            ports: listed_ports(arguments),
            interfaces,
            bonds,
            any_interface,
            anywhere: is_anywhere(arguments),
            listed,
            required,
            rates: ib
                .rates
                .iter()
                .map(|rate| Rate {
                    selector: rate.value.selector.map(|s| s.to_string()),
                    megabits: rate.value.megabits,
                })
                .collect(),
            servers: servers(arguments),
            async_probe: ib.async_probe.is_some_and(|on| on.value),
            timeout: ib
                .timeout
                .or(arguments.retry)
                // rd.retry=0 is dracut's to make sense of; here it would mean not to look at all.
                .filter(|s| s.value > 0)
                .map_or(TIMEOUT, |s| Duration::from_secs(u64::from(s.value))),
            onfail: match ib.onfail.map(|onfail| onfail.value) {
                Some(OnFail::Shell) => OnFailure::Shell,
                Some(OnFail::Reboot) => OnFailure::Reboot,
                None if arguments.waits_for_network().is_some() => OnFailure::Dracut,
                Some(OnFail::Continue) | None => OnFailure::Continue,
            },
            handover: ib.handover.as_ref().map(|to| requested(to, to.value)),
            root: root::named(arguments),
            portals: root::portals(arguments),
            root_of_lease: root::left_to_dhcp(arguments),
            verbosity: if debug {
                log::LevelFilter::Debug
            } else {
                log::LevelFilter::Info
            },
            on_console: debug || arguments.info.is_some_and(|on| on.value),
            complaints,
            left,
            dump: None,
        }
    }
}

/// True inside an initramfs (`/etc/initrd-release`, os-release(5)).
pub fn in_initramfs(root: &Root) -> bool {
    root.exists("/etc/initrd-release")
}

/// `modprobe.blacklist=MODULE[,MODULE...]`, which modprobe itself reads (modprobe(8)).
fn of_modprobe(sources: &[Source<'_>]) -> Vec<Requested<String>> {
    let mut blacklist = Vec::new();
    for token in Cmdline::new(sources).all("modprobe.blacklist") {
        let value = String::from_utf8_lossy(token.value.unwrap_or_default());
        blacklist.extend(value.split(',').map(|name| Requested {
            value: normal(name),
            origin: Origin {
                argument: token.text().to_string(),
                source: token.source.to_owned(),
                column: token.column,
            },
        }));
    }
    blacklist
}

/// The ports that `rd.ib.require=` lists.
fn listed_ports(arguments: &Arguments<'_>) -> Vec<Requested<String>> {
    let mut ports: Vec<Requested<String>> = Vec::new();
    if let Some(require) = &arguments.ib.require
        && let Require::Ports(selectors) = &require.value
    {
        for selector in selectors {
            let port = requested(require, selector.to_string());
            if ports.iter().all(|known| known.value != port.value) {
                ports.push(port);
            }
        }
    }
    ports
}

/// The servers that must answer.
fn servers(arguments: &Arguments<'_>) -> Vec<Requested<Server>> {
    let mut servers: Vec<Requested<Server>> = Vec::new();
    for probe in &arguments.ib.probes {
        let server = Server {
            address: probe.value.address,
            port: probe.value.port,
        };
        if servers.iter().all(|known| known.value != server) {
            servers.push(requested(probe, server));
        }
    }
    servers
}

/// `BOOTIF=` of Ethernet firmware, where a root file system on the network is wanted over ours:
/// `bootdev=` says so, or nothing else has an address. dracut lets `BOOTIF=` win over both.
fn ethernet_booted_from<'a>(
    arguments: &Arguments<'a>,
    is_ours: impl Fn(Interface<'_>) -> bool,
) -> Option<Spanned<'a, HwAddr>> {
    let Net { ip, bootdev, .. } = &arguments.net;
    let over_ours = match bootdev {
        Some(bootdev) => is_ours(bootdev.value),
        None => {
            let mut addressed = ip.iter().map(|ip| ip.value.interface);
            !ip.is_empty() && addressed.all(|interface| interface.is_some_and(&is_ours))
        }
    };
    arguments
        .boot_interface()
        .filter(|bootif| !bootif.value.is_infiniband())
        .filter(|_| over_ours && arguments.network_root().is_some())
}

/// The addresses of whichever interface comes up.
fn left_anywhere(arguments: &Arguments<'_>) -> Vec<Requested<&'static str>> {
    const WHICH: &str = "which interface is not said: it is left to the image's network module; \
         for InfiniBand write ip=INTERFACE:dhcp or bootdev=";
    const WHOSE: &str = "which interface is not said: it is left to the image's network module; \
         for InfiniBand write the interface into it or bootdev=";
    const ANOTHER: &str = "another ip= names the boot device, and which other interface is not said: \
         it is left to the image's network module";
    const NOWHERE: &str = "no ip= and no bootdev= says which interface: its address is left to the image's \
         network module; for InfiniBand write ip=INTERFACE:dhcp or bootdev=";
    let booted = boot_device(arguments);
    let ip = &arguments.net.ip;
    let is_boot_devices = unaddressed(arguments).is_some();
    // Where Ethernet is booted from, they are for that.
    let is_ethernets = booted.is_none() && is_named(arguments);
    if arguments.asked().is_none() || is_boot_devices || is_ethernets {
        return Vec::new();
    }
    let anywhere = ip.iter().filter(|ip| ip.value.interface.is_none());
    let left = anywhere.filter_map(|ip| {
        let asks = is_addressed(&ip.value);
        let why = match booted {
            Some(_) => ANOTHER,
            None if asks => WHICH,
            None => WHOSE,
        };
        (asks || ip.value.client.is_some()).then(|| requested(ip, why))
    });
    let root = arguments.waits_for_network();
    let root = root.filter(|_| booted.is_none() && is_without_ip(arguments));
    left.chain(root.map(|root| requested(&root, NOWHERE)))
        .collect()
}

/// What was understood and is not done by this program.
fn left(
    arguments: &Arguments<'_>,
    interfaces: &[Requested<InterfaceWish>],
) -> Vec<Requested<&'static str>> {
    const ADDRESS: &str = "this address is left to the image's network module";
    const REST: &str =
        "link-local and ibft are left to the image's network module, the rest is carried out";
    const OTHERS: [Method; 2] = [Method::LinkLocal, Method::Ibft];
    const HARDWARE: &str = "the hardware address is not set: an IPoIB interface has the number of its queue pair \
         and its port's GUID for one, and the kernel lets only its GUID be changed";
    const BOOTIF: &str = "dracut's network module takes this interface for the boot device and sets it up; \
         rd.bootif=0 keeps it from that";
    let net = &arguments.net;
    // Bonds among them.
    let is_ours = |interface: Interface<'_>| {
        let mut known = interfaces.iter().map(|known| known.value.name.as_str());
        interface.is_infiniband() || known.any(|name| interface == Interface::Name(name))
    };
    let mut left = Vec::new();
    let is_booted = unaddressed(arguments).is_some();
    let infiniband = net
        .ip
        .iter()
        .filter(|ip| ip.value.interface.map_or(is_booted, is_ours));
    for ip in infiniband {
        if ip.value.macaddr.is_some() {
            left.push(requested(ip, HARDWARE));
        }
        let methods = &ip.value.methods;
        let carried_out = |method: &Method| !OTHERS.contains(method);
        if !methods.is_empty() && !methods.iter().any(carried_out) {
            left.push(requested(ip, ADDRESS));
        } else if !methods.iter().all(carried_out) {
            left.push(requested(ip, REST));
        }
    }
    left.extend(left_anywhere(arguments));
    left.extend(ethernet_booted_from(arguments, is_ours).map(|bootif| requested(&bootif, BOOTIF)));
    if left.is_empty()
        && interfaces.iter().map(|i| &i.value.ipoib).all(|ipoib| {
            ipoib.addresses.is_empty() && ipoib.dhcp.is_none() && ipoib.dhcp6.is_none()
        })
    {
        return left;
    }
    const NAMES: &str = "name servers are left to the image's network module";
    const ROUTE: &str = "no address of an InfiniBand interface reaches its gateway: it is left to the image's network module";
    if !interfaces.iter().any(|i| i.value.ipoib.is_addressed()) {
        left.extend(net.nameservers.iter().map(|a| requested(a, NAMES)));
    }
    let is_taken = |route: &Route<'_>| {
        let mut routes = interfaces.iter().flat_map(|i| &i.value.ipoib.routes);
        routes.any(|taken| {
            taken.network.address == route.network
                && taken.network.prefix == route.prefix
                && taken.gateway == route.gateway
        })
    };
    let may_be_ours = |route: &Route<'_>| route.interface.is_none_or(is_ours);
    let routes = net.routes.iter().filter(|route| {
        let route = &route.value;
        !is_taken(route) && may_be_ours(route)
    });
    left.extend(routes.map(|a| requested(a, ROUTE)));
    left
}
