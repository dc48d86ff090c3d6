// SPDX-License-Identifier: MIT OR Apache-2.0
//! The request: typed wishes from the parsed command line, each with the argument that requested
//! it.

mod dump;
mod left_to_others;
mod strangers;
mod written;

pub mod interfaces;
pub mod root;

use std::fmt;
use std::time::Duration;

use kernel_cmdline::{
    Arguments, Cmdline, Handover, LinkKind, Number, OnFail, PortType, Require, RoceMode, Source,
    Token,
};

use serde::Serialize;

use crate::error::Error;
use crate::rdma::reach::Server;
use crate::rdma::types::{LinkLayer, NetnsMode};
use crate::request::interfaces::{InterfaceWish, RequestedBond, is_anywhere};
use crate::system::modules::normal;
use crate::system::root::Root;
use crate::wish::expectation::Rate;
use crate::wish::ipoib::IpoibWish;
use crate::wish::origin::{Origin, Requested, origin, requested};
use crate::wish::selector::Selector;
use crate::wish::storage;

pub use dump::Dump;
pub use written::{Known, Written, changed};

/// Deadline if neither `rd.ib.timeout=` nor `rd.retry=` gives one: dracut's default.
const TIMEOUT: Duration = Duration::from_secs(180);

impl<T> Requested<T> {
    /// `value`, requested by the same argument.
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
    /// Name of the RDMA device to create.
    pub name: String,
    /// rxe or siw.
    pub kind: LinkKind,
    /// The network interface below the device.
    pub netdev: String,
}

impl SoftLink {
    /// Whether `port` is the name of the device, or of its only port.
    pub fn is_named(&self, port: &str) -> bool {
        port.strip_suffix(":1").unwrap_or(port) == self.name
    }
}

/// Which ports gate the boot (`rd.ib.require=`).
#[derive(Debug, Clone, PartialEq)]
pub enum Required {
    /// Without the argument: all named ports; without names, any one port.
    Named,
    /// Only these ports, without repetition.
    Listed(Vec<Requested<Selector>>),
    /// Ports that the argument does not name.
    Candidates {
        number: Number,
        /// Only ports with this link layer count, if the argument names one.
        link_layer: Option<LinkLayer>,
        /// Selectors of the ports that do not count.
        except: Vec<Selector>,
    },
}

impl Required {
    /// The listed ports.
    pub fn ports(&self) -> &[Requested<Selector>] {
        match self {
            Required::Listed(ports) => ports,
            Required::Named | Required::Candidates { .. } => &[],
        }
    }

    /// The link layer of the ports that count, if the argument names one.
    pub fn link_layer(&self) -> Option<LinkLayer> {
        match self {
            Required::Candidates { link_layer, .. } => *link_layer,
            Required::Named | Required::Listed(_) => None,
        }
    }

    /// The selectors of the ports that do not count.
    pub fn except(&self) -> &[Selector] {
        match self {
            Required::Candidates { except, .. } => except,
            Required::Named | Required::Listed(_) => &[],
        }
    }
}

/// What happens if the deadline passes before everything required is verified (`rd.ib.onfail=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// An emergency shell.
    Shell,
    /// The boot continues.
    Continue,
    /// The machine reboots.
    Reboot,
    /// The boot continues, and dracut, which waits for the network with its own deadline, decides.
    Dracut,
}

/// Why ibboot does not carry out a valid argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOurs {
    /// Another program is able to carry it out.
    Left(&'static str),
    /// No program carries it out.
    Unused(&'static str),
}

impl fmt::Display for NotOurs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (NotOurs::Left(why) | NotOurs::Unused(why)) = self;
        f.write_str(why)
    }
}

/// Everything that the command line requests of ibboot.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The argument that turns ibboot on; none if there is nothing to do.
    pub requested_by: Option<Origin>,
    /// Modules of `rd.driver.pre=` and `rd.driver.post=`, in the kernel's spelling.
    pub modules: Vec<Requested<String>>,
    /// Modules that no device may load by itself (`rd.driver.blacklist=`, `modprobe.blacklist=`).
    pub blacklist: Vec<Requested<String>>,
    /// Modules that the kernel refuses to load (`module_blacklist=`).
    pub barred: Vec<Requested<String>>,
    /// Software links to create.
    pub links: Vec<Requested<SoftLink>>,
    /// Default RoCE modes; of a selector or of all ports.
    pub roce: Vec<Requested<(Option<Selector>, RoceMode)>>,
    /// mlx4 port types by selector.
    pub port_types: Vec<Requested<(Selector, PortType)>>,
    /// Named IPoIB interfaces, without repetition.
    pub interfaces: Vec<Requested<InterfaceWish>>,
    /// Bonds of such interfaces.
    pub bonds: Vec<Requested<RequestedBond>>,
    /// What `rd.ib.mode=` and `rd.ib.mtu=` without an interface request, if they may apply to
    /// interfaces other than the named ones.
    pub any_interface: Option<Requested<IpoibWish>>,
    /// The image's network module is to address any interface that comes up.
    pub anywhere: bool,
    /// Which ports gate the boot.
    pub required: Required,
    /// An `rd.ib.require=` is invalid: another requirement is in force.
    pub has_wrong_requirement: bool,
    /// `rd.ib.rate=`.
    pub rates: Vec<Rate>,
    /// `rd.ib.probe=`, without repetition.
    pub servers: Vec<Requested<Server>>,
    /// Which network namespaces see RDMA devices, if an argument says so.
    pub netns: Option<Requested<NetnsMode>>,
    /// Probe the HCAs of one driver side by side.
    pub async_probe: bool,
    /// Time until the deadline, from the complete command line.
    pub timeout: Duration,
    /// What happens when the deadline passes.
    pub onfail: OnFailure,
    /// What dracut does if no emergency shell may open; none if one may.
    pub no_shell: Option<&'static str>,
    /// Before its first hook dracut removes the files that are for one machine only, also those of the
    /// command line (`rd.hostonly=0`).
    pub without_hostonly: bool,
    /// Who owns the interfaces in the real root, if an argument says so.
    pub handover: Option<Requested<Handover>>,
    /// The root file system on a server, if an argument names one.
    pub root: Option<Requested<storage::Root>>,
    /// The paths to the disks of the root file system, if several are named.
    pub portals: Vec<Requested<storage::Portal>>,
    /// Set if a DHCP server names the root file system.
    pub root_of_lease: Option<storage::OfLease>,
    /// Log level: debug with `rd.debug`, otherwise info.
    pub verbosity: log::LevelFilter,
    /// `rd.info` or `rd.debug`: log also on a quiet console.
    pub on_console: bool,
    /// One line for each invalid argument.
    pub complaints: Vec<String>,
    /// One line for each argument that has an effect although its value is odd.
    pub warnings: Vec<String>,
    /// Valid arguments that ibboot does not carry out, with the reason.
    pub left: Vec<Requested<NotOurs>>,
    /// Every argument of the table, in reading order.
    pub written: Vec<Written>,
    /// One line for each word that is no argument of the table and looks like a mistake in one.
    pub strangers: Vec<String>,
    /// `rd.nonvmf`: no NVMe server is connected.
    pub no_nvmf: bool,
    /// Set if this kernel saves a crash dump: which part of the command line it carries out.
    pub dump: Option<Dump>,
}

impl Request {
    /// Reads the files that make up the command line, as dracut does inside an initramfs and as
    /// the kernel wrote it elsewhere.
    pub fn read(root: &Root) -> Request {
        Request::of_files(root, in_initramfs(root), true)
    }

    /// Reads the files that would make up the command line if this were an initramfs.
    pub fn read_as_initramfs(root: &Root) -> Request {
        let request = Request::of_files(root, true, true);
        // dracut removes the files of the image before its hooks write others.
        match request.without_hostonly && !in_initramfs(root) {
            true => Request::of_files(root, true, false),
            false => request,
        }
    }

    /// `of_image`: with the files that the image has.
    fn of_files(root: &Root, as_initramfs: bool, of_image: bool) -> Request {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let mut unread = Vec::new();
        let mut cannot = |path: &str, e: &std::io::Error| {
            if e.kind() != std::io::ErrorKind::NotFound {
                unread.push(Error::io(path, "cannot be read", e).to_string());
            }
        };
        let mut paths = vec!["/proc/cmdline".to_owned()];
        if as_initramfs {
            let mut conf = |directory: &str| -> Vec<String> {
                let names = root.list(directory).inspect_err(|e| cannot(directory, e));
                let names = names.unwrap_or_default().into_iter();
                let conf = names.filter(|name| name.ends_with(".conf"));
                conf.map(|name| format!("{directory}/{name}")).collect()
            };
            if of_image {
                paths.insert(0, "/etc/cmdline".to_owned());
                paths.splice(0..0, conf("/etc/cmdline.d"));
            }
            paths.extend(conf("/run/initramfs/cmdline.d"));
        }
        for path in paths {
            match root.read(&path) {
                Ok(bytes) => files.push((path, bytes)),
                Err(e) => cannot(&path, &e),
            }
        }
        let sources = sources(&files);
        let saves_dump = root.has_file(dump::VMCORE);
        let mut request = Request::from_sources(&sources, saves_dump);
        request.complaints.extend(unread);
        request
    }

    /// The command lines of these files, path and content, for a kernel that boots a machine.
    pub fn from_files(files: &[(String, Vec<u8>)]) -> Request {
        Request::from_sources(&sources(files), false)
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
        request.barred = of_kernel(sources);
        request.no_shell = no_shell(sources);
        request.without_hostonly = without_hostonly(sources);
        request.written = written::written(sources, &arguments);
        request.strangers = strangers::strangers(sources, &arguments);
        if saves_dump {
            dump::narrow(&mut request, &arguments);
        }
        request
    }

    /// Whether the image's network modules are kept away from InfiniBand interfaces, except those
    /// whose addresses are left to them. They keep all if they shall address any interface and ibboot
    /// gives no interface an address.
    pub fn claims_infiniband(&self) -> bool {
        let has_interface = self.interfaces.iter().any(|one| one.value.is_ours());
        let mut ours = self.all_interfaces().filter(|one| one.is_ours());
        self.requested_by.is_some()
            && (has_interface || self.any_interface.is_some())
            && (!self.anywhere || ours.any(|one| one.ipoib.is_addressed()))
    }

    /// All named interfaces, bonds included.
    pub fn all_interfaces(&self) -> impl Iterator<Item = &InterfaceWish> {
        let bonds = self.bonds.iter().map(|bond| &bond.value.interface);
        self.interfaces.iter().map(|one| &one.value).chain(bonds)
    }

    /// The wishes in `arguments`, without what the other words of the command line say.
    fn new(arguments: &Arguments<'_>) -> Request {
        let ib = &arguments.ib;
        let (links, replaced) = soft_links(arguments);
        let required = required(arguments);
        let mut interfaces = interfaces::named(arguments);
        let is_enough = !interfaces.is_empty() && required == Required::Named;
        let any_interface = interfaces::unnamed(arguments).filter(|_| !is_enough);
        let left = left_to_others::left(arguments, &interfaces);
        let bonds = interfaces::bonds(arguments, &mut interfaces);
        let debug = arguments.debug.is_some_and(|on| on.value);
        let blacklist = arguments.drivers.blacklist.iter();
        let roce = ib.roce.iter().map(|roce| {
            let selector = roce.value.selector.map(Selector::from);
            requested(roce, (selector, roce.value.mode))
        });
        let port_types = ib.port_types.iter().map(|kind| {
            let selector = Selector::from(kind.value.selector);
            requested(kind, (selector, kind.value.port_type))
        });
        let rates = ib.rates.iter().map(|rate| Rate {
            selector: rate.value.selector.map(Selector::from),
            megabits: rate.value.megabits,
            port: None,
        });
        Request {
            requested_by: arguments.requested_by().as_ref().map(origin),
            modules: modules(arguments),
            blacklist: blacklist
                .map(|driver| requested(driver, normal(driver.value)))
                .collect(),
            barred: Vec::new(),
            links,
            roce: roce.collect(),
            port_types: port_types.collect(),
            interfaces,
            bonds,
            any_interface,
            anywhere: is_anywhere(arguments),
            required,
            has_wrong_requirement: has_wrong_requirement(arguments),
            rates: rates.collect(),
            servers: servers(arguments),
            netns: ib.netns.as_ref().map(|mode| requested(mode, mode.value)),
            async_probe: ib.async_probe.is_some_and(|on| on.value),
            timeout: timeout(arguments),
            onfail: on_failure(arguments),
            no_shell: None,
            without_hostonly: false,
            handover: ib.handover.as_ref().map(|to| requested(to, to.value)),
            root: root::named(arguments),
            portals: root::portals(arguments),
            root_of_lease: root::left_to_dhcp(arguments),
            no_nvmf: arguments.root.no_nvmf.is_some_and(|off| off.value),
            verbosity: match debug {
                true => log::LevelFilter::Debug,
                false => log::LevelFilter::Info,
            },
            on_console: debug || arguments.info.is_some_and(|on| on.value),
            complaints: complaints(arguments),
            warnings: warnings(arguments),
            left: replaced.into_iter().chain(left).collect(),
            written: Vec::new(),
            strangers: Vec::new(),
            dump: None,
        }
    }
}

fn sources(files: &[(String, Vec<u8>)]) -> Vec<Source<'_>> {
    let files = files.iter();
    files
        .map(|(path, bytes)| Source::new(path, bytes))
        .collect()
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

/// The software links, the last one of each name, and the arguments that it replaces.
fn soft_links(arguments: &Arguments<'_>) -> (Vec<Requested<SoftLink>>, Vec<Requested<NotOurs>>) {
    const REPLACED: NotOurs =
        NotOurs::Unused("a later argument gives the same name to another link");
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

fn required(arguments: &Arguments<'_>) -> Required {
    let Some(require) = &arguments.ib.require else {
        return Required::Named;
    };
    // Bit 15 of a child's P_Key is set in its name, whatever the argument has.
    let full = |selector: &kernel_cmdline::Selector<'_>| match *selector {
        kernel_cmdline::Selector::Name(name) => {
            Selector::named(&interfaces::full_name(arguments, name))
        }
        selector => Selector::from(selector),
    };
    match &require.value {
        Require::Ports(selectors) => {
            let mut ports: Vec<Requested<Selector>> = Vec::new();
            for selector in selectors {
                let selector = full(selector);
                if ports.iter().all(|known| known.value != selector) {
                    ports.push(requested(require, selector));
                }
            }
            Required::Listed(ports)
        }
        Require::Candidates(candidates) => Required::Candidates {
            number: candidates.number,
            link_layer: candidates.link_layer.map(|layer| match layer {
                kernel_cmdline::LinkLayer::Ib => LinkLayer::InfiniBand,
                kernel_cmdline::LinkLayer::Eth => LinkLayer::Ethernet,
            }),
            except: candidates.except.iter().map(full).collect(),
        },
    }
}

fn has_wrong_requirement(arguments: &Arguments<'_>) -> bool {
    let mut complaints = arguments.complaints.iter();
    complaints.any(|complaint| unquoted(complaint.argument).starts_with(b"rd.ib.require"))
}

/// The argument without the quote in front, which the kernel drops.
fn unquoted(argument: &[u8]) -> &[u8] {
    argument.strip_prefix(b"\"").unwrap_or(argument)
}

fn timeout(arguments: &Arguments<'_>) -> Duration {
    let seconds = arguments.ib.timeout.or(arguments.retry);
    // rd.retry=0 has a meaning only for dracut; here the deadline would pass at once.
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

/// One line for each invalid argument.
fn complaints(arguments: &Arguments<'_>) -> Vec<String> {
    let lost = arguments.complaints_lost;
    let lost = (lost > 0).then(|| format!("{lost} more invalid arguments"));
    let complaints = arguments.complaints.iter();
    let complaints = complaints.filter(|complaint| !complaint.problem.has_effect());
    complaints.map(ToString::to_string).chain(lost).collect()
}

/// One line for each argument that has an effect although its value is odd.
fn warnings(arguments: &Arguments<'_>) -> Vec<String> {
    let complaints = arguments.complaints.iter();
    let odd = complaints.filter(|complaint| complaint.problem.has_effect());
    odd.map(ToString::to_string).collect()
}

/// True inside an initramfs (os-release(5)). Without systemd dracut 112 has no `/etc/initrd-release`.
pub fn in_initramfs(root: &Root) -> bool {
    root.has_file("/etc/initrd-release") || root.has_file("/usr/lib/initrd-release")
}

/// `modprobe.blacklist=MODULE[,MODULE...]`, which modprobe itself reads (modprobe(8)).
fn of_modprobe(sources: &[Source<'_>]) -> Vec<Requested<String>> {
    let tokens = Cmdline::new(sources).all("modprobe.blacklist");
    tokens
        .flat_map(|token| modules_of(&token, normal))
        .collect()
}

/// `module_blacklist=MODULE[,MODULE...]`: the kernel has the last one of its own command line, and compares
/// the names as they are written (kernel/module/main.c, blacklisted).
fn of_kernel(sources: &[Source<'_>]) -> Vec<Requested<String>> {
    let is_own = |token: &Token<'_>| matches!(token.source, "/proc/cmdline" | "--cmdline");
    let tokens = Cmdline::new(sources).all("module_blacklist");
    let last = tokens.filter(is_own).last();
    last.map_or_else(Vec::new, |token| modules_of(&token, str::to_owned))
}

/// What dracut does where `rd.shell=` forbids the emergency shell (emergency_shell of dracut-lib.sh, and
/// dracut-emergency.sh). Without `rd.emergency=` dracut 106 and later switch the node off.
fn no_shell(sources: &[Source<'_>]) -> Option<&'static str> {
    let line = Cmdline::new(sources);
    let shell = line.all("rd.shell").last();
    // dracut 059 still knows the old name.
    let mut breaks = ["rd.break", "rdbreak"].into_iter();
    if shell.is_none_or(|shell| shell.is_true())
        || breaks.any(|name| line.all(name).next().is_some())
    {
        return None;
    }
    let action = line.all("rd.emergency").last();
    Some(match action.and_then(|action| action.value) {
        Some(b"reboot") => "no shell opens (rd.shell=): dracut reboots the node",
        Some(b"poweroff") => "no shell opens (rd.shell=): dracut switches the node off",
        Some(b"halt") => "no shell opens (rd.shell=): dracut halts the node",
        None | Some(b"") => "no shell opens (rd.shell=): dracut halts the node or switches it off",
        Some(_) => "no shell opens (rd.shell=): the boot continues",
    })
}

/// Whether dracut removes the files that are for one machine only (remove_hostonly_files of dracut-lib.sh).
fn without_hostonly(sources: &[Source<'_>]) -> bool {
    let hostonly = Cmdline::new(sources).all("rd.hostonly").last();
    hostonly.is_some_and(|hostonly| !hostonly.is_true())
}

/// The modules that an argument lists.
fn modules_of(token: &Token<'_>, name: fn(&str) -> String) -> Vec<Requested<String>> {
    let value = String::from_utf8_lossy(token.value.unwrap_or_default());
    let module = |text| Requested {
        value: name(text),
        origin: Origin {
            argument: token.text().to_string(),
            source: token.source.to_owned(),
            column: token.column,
        },
    };
    value.split(',').map(module).collect()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_initramfs_has_one_of_two_files() {
        for file in ["etc/initrd-release", "usr/lib/initrd-release"] {
            let tree = tempfile::tempdir().unwrap();
            let root = Root::new(tree.path());
            assert!(!in_initramfs(&root));
            let path = tree.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
            assert!(in_initramfs(&root), "{file}");
        }
    }
}
