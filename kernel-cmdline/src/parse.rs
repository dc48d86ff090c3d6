// SPDX-License-Identifier: MIT OR Apache-2.0
//! From tokens to [`Arguments`].

use heapless::Vec;

use crate::args::{Arguments, Reason, Single, Spanned};
use crate::bond::Bond;
use crate::cluster::Cluster;
use crate::complain::{Complaint, Problem};
use crate::ip::Ip;
use crate::modules::is_module_name;
use crate::nearest::nearest;
use crate::net::Route;
use crate::plain::is_plain;
use crate::selector::Interface;
use crate::stacked::{StackKind, Stacked};
use crate::table::PARAMETERS;
use crate::token::{Source, Token, is_space};
use crate::values::{Handover, Netns, OnFail};
use crate::{slip, wishes};

/// Reads all sources, given in the order in which they are read.
///
/// Of a repeated single-valued argument the last valid one applies. An invalid argument is
/// reported and has no effect.
pub fn parse<'a>(sources: &[Source<'a>]) -> Arguments<'a> {
    let mut reader = Reader::default();
    for source in sources {
        for token in source.tokens() {
            reader.read(&token);
        }
    }
    reader.finish()
}

#[derive(Debug, Default)]
struct Reader<'a> {
    arguments: Arguments<'a>,
    cluster: Cluster<'a>,
}

/// The name of an argument as in the table, if ibboot reads the argument. Names below `rd.ib.`
/// belong to ibboot even if they are not in the table.
pub fn parameter_name(key: &[u8]) -> Option<&'static str> {
    if key.eq_ignore_ascii_case(b"BOOTIF") {
        // The boot loader writes this argument; some boot loaders write it in lower case.
        return Some("BOOTIF");
    }
    PARAMETERS
        .iter()
        .map(|parameter| parameter.name)
        .find(|name| name.as_bytes() == key)
}

fn is_ours(key: &[u8]) -> bool {
    below_rd_ib(key).is_some() || parameter_name(key).is_some()
}

/// The rest of a name behind `rd.ib` and a separator. A wrong separator and capital letters are
/// typing errors: no other program reads such names.
fn below_rd_ib(key: &[u8]) -> Option<&[u8]> {
    let (front, name) = key.split_at_checked(PREFIX.len())?;
    let (&separator, prefix) = front.split_last()?;
    let ours = prefix.eq_ignore_ascii_case(b"rd.ib") && !separator.is_ascii_alphanumeric();
    ours.then_some(name)
}

/// The arguments of images that xCAT and anaconda fetch. ibboot does not check their values.
pub(crate) const FETCHED: &[&[u8]] = &[b"imgurl", b"inst.ks", b"inst.repo", b"inst.stage2"];

/// Whether a value of these arguments is a network address.
fn is_url(value: &str) -> bool {
    const SCHEMES: &[&str] = &[
        "http:", "https:", "ftp:", "tftp:", "nfs:", "nfs4:", "nfsiso:",
    ];
    SCHEMES.iter().any(|scheme| value.starts_with(scheme))
}

/// The prefix of the arguments that only ibboot reads.
const PREFIX: &str = "rd.ib.";

impl<'a> Reader<'a> {
    fn complain(&mut self, token: &Token<'a>, problem: Problem<'a>) {
        self.keep(Complaint::new(token, problem));
    }

    fn keep(&mut self, complaint: Complaint<'a>) {
        if self.arguments.complaints.push(complaint).is_err() {
            self.arguments.complaints_lost = self.arguments.complaints_lost.saturating_add(1);
        }
    }

    fn read(&mut self, token: &Token<'a>) {
        let ours = is_ours(token.key);
        self.ask(token, token.key);
        if token.unclosed_quote && self.read_open_quote(token, ours) {
            return;
        }
        if !ours {
            self.fetched(token);
            return self.cluster.note(token);
        }
        if let Err(problem) = text(token).and_then(|value| self.dispatch(token, value)) {
            self.complain(token, problem);
        }
    }

    /// An argument that includes everything behind an open quote. Returns whether it includes
    /// other arguments: then its value cannot be read.
    fn read_open_quote(&mut self, token: &Token<'a>, ours: bool) -> bool {
        let mut is_ours = ours;
        for name in swallowed(token.raw) {
            is_ours = true;
            self.ask(token, name);
        }
        if is_ours {
            self.complain(token, Problem::UnclosedQuote);
        }
        token.raw.iter().any(|&byte| is_space(byte))
    }

    /// Records an image that an installer or a provisioning system fetches itself.
    fn fetched(&mut self, token: &Token<'a>) {
        if let Ok(Some(url)) = text(token)
            && FETCHED.contains(&token.key)
            && is_url(url)
        {
            self.arguments.root.fetched = Some(Spanned::new(url, token));
        }
    }

    /// Records an argument that requests InfiniBand by its name. `rd.ib.kdump` only says in which
    /// kernels the other arguments apply.
    fn ask(&mut self, token: &Token<'a>, name: &[u8]) {
        let asks = below_rd_ib(name).is_some() && name != b"rd.ib.kdump";
        if asks || name == b"ib.pkey" {
            self.because(token, Reason::Argument);
        }
    }

    fn because(&mut self, token: &Token<'a>, reason: Reason) {
        self.arguments
            .first_reason
            .get_or_insert(Spanned::new(reason, token));
    }

    /// One argument of ibboot whose bytes are text.
    fn dispatch(&mut self, token: &Token<'a>, value: Option<&'a str>) -> Result<(), Problem<'a>> {
        let Some(name) = parameter_name(token.key) else {
            return Err(unknown(token.key));
        };
        if let Some(slot) = self.boolean_slot(name) {
            *slot = Some(Spanned::new(token.is_true(), token));
            return match value {
                None | Some("" | "0" | "no" | "off" | "1" | "yes" | "on" | "y" | "true") => Ok(()),
                Some(text) => Err(Problem::CountsAsTrue { text }),
            };
        }
        let value = match value.filter(|value| !value.is_empty()) {
            Some(value) => value,
            // dracut has defaults, all of Ethernet.
            None if name == "bond" || StackKind::parse(name).is_some() => return Ok(()),
            None => return Err(Problem::NoValue),
        };
        if let Some(parameter) = name.strip_prefix("rd.ib.") {
            return self.read_ib(parameter, token, value);
        }
        if let Some(list) = name.strip_prefix("rd.driver.") {
            return self.read_drivers(list, token, value);
        }
        if name.starts_with("rd.net.") {
            return self.read_net_setting(name, token, value);
        }
        self.read_other(name, token, value)
            .inspect_err(|_| self.because_of(token, slip::means_infiniband(name, value)))
            .map_err(|problem| slip::ambiguous_port(name, value).unwrap_or(problem))
    }

    fn boolean_slot(&mut self, name: &str) -> Option<&mut Single<'a, bool>> {
        let arguments = &mut self.arguments;
        Some(match name {
            "rd.ib" => &mut arguments.ib.enabled,
            "rd.ib.async_probe" => &mut arguments.ib.async_probe,
            "rd.ib.kdump" => &mut arguments.ib.kdump,
            "rd.neednet" => &mut arguments.neednet,
            "rd.debug" => &mut arguments.debug,
            "rd.info" => &mut arguments.info,
            "rd.bootif" => &mut arguments.net.use_bootif,
            "rd.nonvmf" => &mut arguments.root.no_nvmf,
            "rd.peerdns" => &mut arguments.net.peerdns,
            _ => return None,
        })
    }

    fn read_ib(
        &mut self,
        name: &str,
        token: &Token<'a>,
        value: &'a str,
    ) -> Result<(), Problem<'a>> {
        let ib = &mut self.arguments.ib;
        match name {
            "mode" => add(&mut ib.modes, token, wishes::mode(value)?),
            "dhcp.client-id" => add(&mut ib.client_ids, token, wishes::client_id_form(value)?),
            "mtu" => add(&mut ib.mtus, token, wishes::mtu_wish(value)?),
            "link" => add(&mut ib.links, token, wishes::link(value)?),
            "roce" => add(&mut ib.roce, token, wishes::roce(value)?),
            "porttype" => add(&mut ib.port_types, token, wishes::port_type(value)?),
            "rate" => add(&mut ib.rates, token, wishes::rate(value)?),
            "probe" => add(&mut ib.probes, token, wishes::probe(value)?),
            "require" => {
                let (require, wrong) = wishes::require(value);
                if let Some(require) = require {
                    set(&mut ib.require, token, require)?;
                }
                wrong.map_or(Ok(()), Err)
            }
            "timeout" => set(&mut ib.timeout, token, wishes::seconds(value, 1)?),
            "onfail" => {
                let onfail = OnFail::read("an action on failure", value)?;
                set(&mut ib.onfail, token, onfail)
            }
            "netns" => {
                let netns = Netns::read("a network namespace mode", value)?;
                set(&mut ib.netns, token, netns)
            }
            "handover" => {
                let handover = Handover::read("a value of this argument", value)?;
                set(&mut ib.handover, token, handover)
            }
            _ => Err(unknown(token.key)),
        }
    }

    fn read_drivers(
        &mut self,
        list: &str,
        token: &Token<'a>,
        value: &'a str,
    ) -> Result<(), Problem<'a>> {
        for name in value.split(',').filter(|name| !name.is_empty()) {
            if !is_module_name(name) {
                let hint = match name.contains(".ko") {
                    true => "write the name of the module without .ko",
                    false => "write names of kernel modules with commas between them",
                };
                self.complain(
                    token,
                    Problem::Malformed {
                        what: "a module",
                        text: name,
                        hint,
                    },
                );
                continue;
            }
            let drivers = &mut self.arguments.drivers;
            let (list, what) = match list {
                "pre" => (&mut drivers.pre, "drivers of rd.driver.pre="),
                "post" => (&mut drivers.post, "drivers of rd.driver.post="),
                _ => (&mut drivers.blacklist, "drivers of rd.driver.blacklist="),
            };
            add_as(list, token, name, what)?;
        }
        Ok(())
    }

    fn read_net_setting(
        &mut self,
        name: &str,
        token: &Token<'a>,
        value: &'a str,
    ) -> Result<(), Problem<'a>> {
        let timeouts = &mut self.arguments.net.timeouts;
        let dhcp = &mut self.arguments.net.dhcp;
        match name {
            // Only checked: dracut carries these out.
            "rd.net.timeout.carrier"
            | "rd.net.timeout.iflink"
            | "rd.net.timeout.ifup"
            | "rd.net.timeout.route"
            | "rd.net.timeout.ipv6dad" => wishes::seconds(value, 0).map(|_| ()),
            "rd.net.dhcp.dscp" => Ok(()),
            "rd.net.timeout.ipv6auto" => {
                set(&mut timeouts.ipv6auto, token, wishes::seconds(value, 0)?)
            }
            "rd.net.timeout.dhcp" => set(&mut timeouts.dhcp, token, wishes::limit(value)?),
            "rd.net.timeout.ip-required" => {
                set(&mut timeouts.ip_required, token, wishes::limit(value)?)
            }
            "rd.net.dhcp.retry" => set(&mut dhcp.retry, token, wishes::count(value)?),
            "rd.net.dhcp.vendor-class" => set(&mut dhcp.vendor_class, token, value),
            "rd.net.dhcp.client-id" => add(&mut dhcp.client_ids, token, wishes::client_id(value)?),
            _ => Err(unknown(token.key)),
        }
    }

    fn read_other(
        &mut self,
        name: &str,
        token: &Token<'a>,
        value: &'a str,
    ) -> Result<(), Problem<'a>> {
        let arguments = &mut self.arguments;
        let net = &mut arguments.net;
        match name {
            "rd.retry" => set(&mut arguments.retry, token, wishes::seconds(value, 0)?),
            "rd.timeout" => wishes::seconds(value, 0).map(|_| ()),
            "root" => set(&mut arguments.root.root, token, value),
            "netroot" => add(&mut arguments.root.netroot, token, value),
            "nfsroot" => set(&mut arguments.root.nfsroot, token, value),
            "rd.iscsi.transport" => set(&mut arguments.root.iscsi_transport, token, value),
            "rd.iscsi.param" => match value.strip_prefix("iface.transport_name=") {
                Some(name) => set(&mut arguments.root.iscsi_transport, token, name),
                None => Ok(()),
            },
            "rd.nvmf.discover" => add(
                &mut arguments.root.nvmf_discover,
                token,
                wishes::nvmf_discover(value)?,
            ),
            "ib.pkey" => add(&mut arguments.pkeys, token, wishes::pkey(value)?),
            "nameserver" => add(&mut net.nameservers, token, wishes::name_server(value)?),
            "rd.route" => add(&mut net.routes, token, Route::parse(value)?),
            "BOOTIF" => set(&mut net.bootif, token, wishes::boot_interface(value)?),
            "bootdev" => set(&mut net.bootdev, token, wishes::interface(value)?),
            "ifname" => {
                let ifname = wishes::ifname(value)?;
                let infiniband =
                    ifname.address.is_infiniband() || Interface::Name(ifname.name).is_infiniband();
                self.because_of(token, infiniband);
                add(&mut self.arguments.net.ifname, token, ifname)
            }
            "bond" => {
                let bond = Bond::parse(value)?;
                self.because_of(token, bond.is_infiniband());
                add(&mut self.arguments.net.bonds, token, bond)
            }
            "vlan" | "bridge" | "team" => {
                let Some(stacked) =
                    StackKind::parse(name).and_then(|kind| Stacked::parse(kind, value))
                else {
                    return Ok(());
                };
                self.because_of(token, stacked.is_infiniband());
                let what = "vlan=, bridge= and team= arguments";
                add_as(&mut self.arguments.net.stacked, token, stacked, what)
            }
            "ip" => {
                let ip = Ip::parse(value)?;
                self.because_of(token, ip.is_infiniband());
                add(&mut self.arguments.net.ip, token, ip)
            }
            _ => Err(unknown(token.key)),
        }
    }

    fn because_of(&mut self, token: &Token<'a>, infiniband: bool) {
        if infiniband {
            self.because(token, Reason::Interface);
        }
    }

    fn finish(mut self) -> Arguments<'a> {
        self.complete_clusters();
        self.arguments
    }

    /// Fills in the fields of an `ip=ADDRESS` from other arguments.
    fn complete_clusters(&mut self) {
        let bootif = self.arguments.boot_interface();
        let bootif = bootif.map(|bootif| Interface::Address(bootif.value));
        let mut wrong = None;
        for ip in self
            .arguments
            .net
            .ip
            .iter_mut()
            .filter(|ip| ip.value.is_cluster)
        {
            wrong = Some(self.cluster.complete(&mut ip.value, bootif));
            if ip.value.is_infiniband() {
                self.arguments
                    .first_reason
                    .get_or_insert(ip.with(Reason::Interface));
            }
        }
        for (token, problem) in wrong.into_iter().flatten() {
            self.complain(&token, problem);
        }
        let mut addresses = core::mem::take(&mut self.arguments.net.ip);
        addresses.retain(|ip| {
            let complete = ip
                .value
                .client
                .is_none_or(|client| client.prefix.is_some() || ip.value.peer.is_some());
            if !complete {
                let hint = "write netmask= as well; it is not guessed from the address";
                let problem = Problem::Missing {
                    what: "the netmask",
                    hint,
                };
                self.keep(Complaint {
                    source: ip.source,
                    column: ip.column,
                    argument: ip.raw,
                    problem,
                });
            }
            complete
        });
        self.arguments.net.ip = addresses;
    }
}

/// The names of ibboot's arguments behind an open quote.
fn swallowed(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = raw.split(|&byte| is_space(byte)).skip(1);
    let names = words.map(|word| word.split(|&byte| byte == b'=').next().unwrap_or_default());
    names.filter(|name| is_ours(name))
}

/// The value as text, or why the value is not text.
pub(crate) fn text<'a>(token: &Token<'a>) -> Result<Option<&'a str>, Problem<'a>> {
    let raw = core::str::from_utf8(token.raw).map_err(|_| Problem::NotText)?;
    if !raw.chars().all(is_plain) {
        return Err(Problem::NotText);
    }
    token
        .value
        .map(|value| core::str::from_utf8(value).map_err(|_| Problem::NotText))
        .transpose()
}

fn unknown<'a>(key: &[u8]) -> Problem<'a> {
    let names = || PARAMETERS.iter().map(|parameter| parameter.name);
    let written = below_rd_ib(key)
        .and_then(|name| core::str::from_utf8(name).ok())
        .unwrap_or_default();
    let short = nearest(
        written,
        names().filter_map(|name| name.strip_prefix(PREFIX)),
    );
    let nearest =
        short.and_then(|short| names().find(|name| name.strip_prefix(PREFIX) == Some(short)));
    Problem::Unknown { nearest }
}

fn set<'a, T>(slot: &mut Single<'a, T>, token: &Token<'a>, value: T) -> Result<(), Problem<'a>> {
    *slot = Some(Spanned::new(value, token));
    Ok(())
}

/// Adds to the values of all arguments with the name of `token`.
fn add<'a, T, const N: usize>(
    list: &mut Vec<Spanned<'a, T>, N>,
    token: &Token<'a>,
    value: T,
) -> Result<(), Problem<'a>> {
    let name = parameter_name(token.key).unwrap_or_default();
    list.push(Spanned::new(value, token))
        .map_err(|_| Problem::TooManyArguments { name, limit: N })
}

/// Adds to a list whose elements are not just the arguments of one name.
fn add_as<'a, T, const N: usize>(
    list: &mut Vec<Spanned<'a, T>, N>,
    token: &Token<'a>,
    value: T,
    what: &'static str,
) -> Result<(), Problem<'a>> {
    list.push(Spanned::new(value, token))
        .map_err(|_| Problem::TooMany { what, limit: N })
}
