// SPDX-License-Identifier: MIT OR Apache-2.0
//! Typed wishes out of the parsed command line, each with the argument that asked for it.

mod dump;
mod left_to_others;

pub mod interfaces;
pub mod root;

use std::time::Duration;

use kernel_cmdline::{
    Arguments, Cmdline, Handover, LinkKind, OnFail, PortType, Require, RoceMode, Source,
};

use serde::Serialize;

use crate::error::Error;
use crate::rdma::reach::Server;
use crate::request::interfaces::{BondWish, InterfaceWish, is_anywhere};
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
        let ib = &arguments.ib;
        let (links, replaced) = soft_links(arguments);
        let (listed, required) = required(arguments);
        let mut interfaces = interfaces::named(arguments);
        let is_enough = !interfaces.is_empty() && !listed && required == Required::Named;
        let any_interface = interfaces::unnamed(arguments).filter(|_| !is_enough);
        let left = left_to_others::left(arguments, &interfaces);
        let bonds = interfaces::bonds(arguments, &mut interfaces);
        let debug = arguments.debug.is_some_and(|on| on.value);
        let blacklist = arguments.drivers.blacklist.iter();
        let roce = ib.roce.iter().map(|roce| {
            let selector = roce.value.selector.map(|s| s.to_string());
            requested(roce, (selector, roce.value.mode))
        });
        let port_types = ib.port_types.iter().map(|kind| {
            let selector = kind.value.selector.to_string();
            requested(kind, (selector, kind.value.port_type))
        });
        let rates = ib.rates.iter().map(|rate| Rate {
            selector: rate.value.selector.map(|s| s.to_string()),
            megabits: rate.value.megabits,
        });
        Request {
            asked: arguments.asked().as_ref().map(origin),
            modules: modules(arguments),
            blacklist: blacklist
                .map(|driver| requested(driver, normal(driver.value)))
                .collect(),
            links,
            roce: roce.collect(),
            port_types: port_types.collect(),
            ports: listed_ports(arguments),
            interfaces,
            bonds,
            any_interface,
            anywhere: is_anywhere(arguments),
            listed,
            required,
            rates: rates.collect(),
            servers: servers(arguments),
            async_probe: ib.async_probe.is_some_and(|on| on.value),
            timeout: timeout(arguments),
            onfail: on_failure(arguments),
            handover: ib.handover.as_ref().map(|to| requested(to, to.value)),
            root: root::named(arguments),
            portals: root::portals(arguments),
            root_of_lease: root::left_to_dhcp(arguments),
            verbosity: match debug {
                true => log::LevelFilter::Debug,
                false => log::LevelFilter::Info,
            },
            on_console: debug || arguments.info.is_some_and(|on| on.value),
            complaints: complaints(arguments),
            left: replaced.into_iter().chain(left).collect(),
            dump: None,
        }
    }
}

/// The modules of `rd.driver.pre=` and `rd.driver.post=`, each once.
fn modules(arguments: &Arguments<'_>) -> Vec<Requested<String>> {
    let mut modules: Vec<Requested<String>> = Vec::new();
    for driver in arguments.drivers.pre.iter().chain(&arguments.drivers.post) {
        let name = normal(driver.value);
        if modules.iter().all(|known| known.value != name) {
            modules.push(requested(driver, name));
        }
    }
    modules
}

/// The software links, the last one of each name, and the arguments that this replaces.
fn soft_links(
    arguments: &Arguments<'_>,
) -> (Vec<Requested<SoftLink>>, Vec<Requested<&'static str>>) {
    const REPLACED: &str = "a later argument gives the same name to another link";
    let mut links: Vec<Requested<SoftLink>> = Vec::new();
    let mut replaced = Vec::new();
    for link in &arguments.ib.links {
        let value = SoftLink {
            name: link.value.name.to_owned(),
            kind: link.value.kind,
            netdev: link.value.netdev.to_owned(),
        };
        let position = links
            .iter()
            .position(|known| known.value.name == value.name);
        if let Some(position) = position {
            let before = links.remove(position);
            // dracut may read the same argument from two files.
            if before.value != value {
                replaced.push(before.with(REPLACED));
            }
        }
        links.push(requested(link, value));
    }
    (links, replaced)
}

/// Whether `rd.ib.require=` lists ports, and how many it requires.
fn required(arguments: &Arguments<'_>) -> (bool, Required) {
    match arguments.ib.require.as_ref().map(|require| &require.value) {
        None => (false, Required::Named),
        Some(Require::All) => (false, Required::All),
        Some(Require::Any) => (false, Required::Count(1)),
        Some(Require::Count(n)) => (false, Required::Count(*n)),
        Some(Require::Ports(_)) => (true, Required::Named),
    }
}

fn timeout(arguments: &Arguments<'_>) -> Duration {
    let seconds = arguments.ib.timeout.or(arguments.retry);
    // rd.retry=0 is dracut's to make sense of; here it would mean not to look at all.
    let seconds = seconds.filter(|seconds| seconds.value > 0);
    seconds.map_or(TIMEOUT, |seconds| Duration::from_secs(seconds.value.into()))
}

fn on_failure(arguments: &Arguments<'_>) -> OnFailure {
    match arguments.ib.onfail.map(|onfail| onfail.value) {
        Some(OnFail::Shell) => OnFailure::Shell,
        Some(OnFail::Reboot) => OnFailure::Reboot,
        None if arguments.waits_for_network().is_some() => OnFailure::Dracut,
        Some(OnFail::Continue) | None => OnFailure::Continue,
    }
}

/// A line for each wrong argument.
fn complaints(arguments: &Arguments<'_>) -> Vec<String> {
    let lost = arguments.complaints_lost;
    let lost = (lost > 0).then(|| format!("{lost} more wrong arguments"));
    let complaints = arguments.complaints.iter().map(ToString::to_string);
    complaints.chain(lost).collect()
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
