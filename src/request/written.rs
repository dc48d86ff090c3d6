// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: every argument of the table that the command line has, and what the command line alone
//! says about its fate. `plan/tokens.rs` knows the rest.

use kernel_cmdline::{Arguments, Cmdline, Interface, Source, Spanned, parameter_name};

use super::interfaces::is_infiniband;
use crate::wish::origin::Origin;

/// What the command line alone says about an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// It is invalid.
    Complaint(String),
    /// A later argument has its place.
    Replaced,
    /// This other argument switches it off.
    Disabled(&'static str),
    /// It names only interfaces that are not InfiniBand.
    OfOthers,
    /// Nothing.
    Open,
}

/// An argument of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its name in the table; none for an invalid argument with another name.
    pub name: Option<&'static str>,
    /// Where it is.
    pub origin: Origin,
    /// What is known of it.
    pub known: Known,
}

/// One line for each argument that is only `after` or only `before` dracut's hooks have run.
pub fn changed(before: &[Written], after: &[Written]) -> Vec<String> {
    let line = |written: &Written, what: &str| {
        let origin = &written.origin;
        format!("{}:{}: {origin}: {what}", origin.source, origin.column)
    };
    let is_in = |all: &[Written], one: &Written| all.iter().any(|known| known.origin == one.origin);
    let added = after.iter().filter(|written| !is_in(before, written));
    let removed = before.iter().filter(|written| !is_in(after, written));
    added
        .map(|written| line(written, "added by a hook of this image"))
        .chain(removed.map(|written| line(written, "removed by a hook of this image")))
        .collect()
}

/// The arguments that may be given several times; of the others the last one counts.
const REPEATED: &[&str] = &[
    "bond",
    "bridge",
    "ib.pkey",
    "ifname",
    "ip",
    "nameserver",
    "netroot",
    "rd.driver.blacklist",
    "rd.driver.post",
    "rd.driver.pre",
    "rd.ib.dhcp.client-id",
    "rd.ib.link",
    "rd.ib.mode",
    "rd.ib.mtu",
    "rd.ib.porttype",
    "rd.ib.probe",
    "rd.ib.rate",
    "rd.ib.roce",
    "rd.iscsi.param",
    "rd.net.dhcp.client-id",
    "rd.nvmf.discover",
    "rd.route",
    "team",
    "vlan",
];

type Place<'a> = (&'a str, usize);

fn place<'a, T>(spanned: &Spanned<'a, T>) -> Place<'a> {
    (spanned.source, spanned.column)
}

/// The arguments whose object a later one of the list has too.
fn replaced<'a, T, K: PartialEq>(
    list: &[Spanned<'a, T>],
    object: impl Fn(&T) -> K,
) -> Vec<Place<'a>> {
    let is_again = |at: usize, one: &Spanned<'a, T>| {
        let mut later = list.iter().skip(at + 1);
        later.any(|other| object(&other.value) == object(&one.value))
    };
    let all = list.iter().enumerate();
    all.filter(|(at, one)| is_again(*at, one))
        .map(|(_, one)| place(one))
        .collect()
}

fn all_replaced<'a>(arguments: &Arguments<'a>) -> Vec<Place<'a>> {
    let (ib, net) = (&arguments.ib, &arguments.net);
    [
        replaced(&ib.modes, |wish| wish.interface),
        replaced(&ib.mtus, |wish| wish.interface),
        replaced(&ib.client_ids, |wish| wish.interface),
        replaced(&ib.rates, |wish| wish.selector),
        replaced(&ib.roce, |wish| wish.selector),
        replaced(&ib.port_types, |wish| wish.selector),
        replaced(&ib.probes, |probe| *probe),
        replaced(&ib.links, |link| link.name),
        replaced(&net.dhcp.client_ids, |id| id.interface),
    ]
    .concat()
}

/// The arguments that name only interfaces that are not InfiniBand.
fn of_others<'a>(arguments: &Arguments<'a>) -> Vec<Place<'a>> {
    let net = &arguments.net;
    let is_other = |interface: &Interface<'_>| !is_infiniband(arguments, interface);
    let ip = net.ip.iter();
    let ip = ip.filter(|ip| ip.value.interface.as_ref().is_some_and(is_other));
    let routes = net.routes.iter();
    let routes = routes.filter(|route| route.value.interface.as_ref().is_some_and(is_other));
    let bonds = net.bonds.iter();
    let bonds = bonds.filter(|bond| bond.value.slaves.iter().all(is_other));
    let stacked = net.stacked.iter();
    let stacked = stacked.filter(|stacked| stacked.value.below.iter().all(is_other));
    let ifnames = net.ifname.iter();
    let ifnames = ifnames.filter(|ifname| is_other(&Interface::Name(ifname.value.name)));
    let bootdev = net
        .bootdev
        .iter()
        .filter(|bootdev| is_other(&bootdev.value));
    let bootif = arguments
        .boot_interface()
        .filter(|bootif| !bootif.value.is_infiniband());
    let ids = net.dhcp.client_ids.iter();
    let ids = ids.filter(|id| is_other(&id.value.interface));
    ip.map(place)
        .chain(routes.map(place))
        .chain(bonds.map(place))
        .chain(stacked.map(place))
        .chain(ifnames.map(place))
        .chain(bootdev.map(place))
        .chain(bootif.as_ref().map(place))
        .chain(ids.map(place))
        .collect()
}

/// Every argument of the table in `sources`, which were parsed to `arguments`.
pub(super) fn written(sources: &[Source<'_>], arguments: &Arguments<'_>) -> Vec<Written> {
    let (replaced, others) = (all_replaced(arguments), of_others(arguments));
    let disabled = arguments.net.bootif.as_ref().map(place);
    let disabled = disabled.filter(|_| arguments.boot_interface().is_none());
    let is_without_nvmf = arguments.root.no_nvmf.is_some_and(|off| off.value);
    let mut all: Vec<Written> = Vec::new();
    for token in Cmdline::new(sources).tokens() {
        let at = (token.source, token.column);
        let mut complaints = arguments.complaints.iter();
        let complaint = complaints.find(|complaint| {
            (complaint.source, complaint.column) == at && !complaint.problem.has_effect()
        });
        let name = parameter_name(token.key);
        let known = match complaint {
            Some(complaint) => Known::Complaint(complaint.problem.to_string()),
            None if name.is_none() => continue,
            None if replaced.contains(&at) => Known::Replaced,
            None if disabled == Some(at) => Known::Disabled("rd.bootif=0"),
            None if name == Some("rd.nvmf.discover") && is_without_nvmf => {
                Known::Disabled("rd.nonvmf")
            }
            None if others.contains(&at) => Known::OfOthers,
            None => Known::Open,
        };
        let is_single = name.is_some_and(|name| !REPEATED.contains(&name));
        if is_single && complaint.is_none() {
            let before = all.iter_mut().filter(|before| before.name == name);
            let valid = before.filter(|before| !matches!(before.known, Known::Complaint(_)));
            valid.for_each(|before| before.known = Known::Replaced);
        }
        all.push(Written {
            name,
            origin: Origin {
                argument: token.text().to_string(),
                source: token.source.to_owned(),
                column: token.column,
            },
            known,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_cmdline::{PARAMETERS, Source, parse};

    fn written_in(files: &[(&str, &str)]) -> Vec<Written> {
        let sources: Vec<Source<'_>> = files
            .iter()
            .map(|(path, text)| Source::new(path, text.as_bytes()))
            .collect();
        written(&sources, &parse(&sources))
    }

    #[test]
    fn an_argument_of_a_hook_is_named_with_its_file() {
        let kernel = ("/proc/cmdline", "quiet ip=ib0:dhcp");
        let image = ("/etc/cmdline.d/10-image.conf", "rd.ib.timeout=90");
        let hook = ("/etc/cmdline.d/20-hook.conf", "x=1 rd.ib.mode=connected");
        let before = written_in(&[image, kernel]);
        assert_eq!(changed(&before, &before), Vec::<String>::new());
        assert_eq!(
            changed(&before, &written_in(&[hook, kernel])),
            [
                "/etc/cmdline.d/20-hook.conf:5: rd.ib.mode=connected: added by a hook of this image",
                "/etc/cmdline.d/10-image.conf:1: rd.ib.timeout=90: removed by a hook of this image",
            ]
        );
    }

    #[test]
    fn the_arguments_that_may_be_repeated_are_those_of_the_table() {
        let repeated = PARAMETERS
            .iter()
            .filter(|parameter| parameter.help.contains("given several times"))
            .map(|parameter| parameter.name);
        let mut repeated: Vec<&str> = repeated.collect();
        repeated.sort_unstable();
        assert_eq!(repeated, REPEATED);
    }
}
