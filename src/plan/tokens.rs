// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the fate of every argument of the table: a step carries it out, another program that is able
//! to does, or the plan reports it.

use std::fmt;

use kernel_cmdline::{Effect, PARAMETERS};
use serde::Serialize;

use super::Plan;
use crate::request::interfaces::InterfaceWish;
use crate::request::{Known, NotOurs, Request, Written};
use crate::wish::origin::Origin;

/// What becomes of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// ibboot carries it out: in a step, or in what the steps expect.
    Step,
    /// Another program carries it out.
    Left,
    /// No program does: the plan says why.
    Reported,
}

/// An argument and its fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    /// The argument.
    #[serde(flatten)]
    pub origin: Origin,
    /// What becomes of it.
    pub fate: Fate,
    /// The object of the step, the other program, or the reason.
    pub to: String,
    /// The reason is on a line of its own: no complaint, refusal or other line has it.
    #[serde(skip)]
    pub is_news: bool,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.to)
    }
}

const DRACUT: &str = "dracut";
pub(super) const NETWORK_MODULE: &str = "the image's network module";
const EARLIER: &str = "an earlier argument requests the same";
const REPLACED: &str = "a later argument replaces it";
const NOBODY: &str = "no program uses this argument: ibboot does not, and the image's network module sets up no interface";
const SUPERSEDED: &str = "no interface uses it: another argument has precedence";

impl Token {
    fn new(origin: &Origin, fate: Fate, to: impl Into<String>) -> Token {
        Token {
            origin: origin.clone(),
            fate,
            to: to.into(),
            is_news: false,
        }
    }

    /// Reported in a line of its own.
    fn news(origin: &Origin, why: &str) -> Token {
        Token {
            is_news: true,
            ..Token::new(origin, Fate::Reported, why)
        }
    }
}

/// The fate of every argument of the table that the command line has; empty if nothing is requested:
/// then ibboot does nothing, and every argument has the meaning that it has without ibboot.
pub fn tokens(request: &Request, plan: &Plan) -> Vec<Token> {
    if request.requested_by.is_none() {
        return Vec::new();
    }
    let written = request.written.iter();
    written
        .map(|written| token(written, request, plan))
        .collect()
}

fn token(written: &Written, request: &Request, plan: &Plan) -> Token {
    let origin = &written.origin;
    let known = match &written.known {
        Known::Complaint(problem) => Some(Token::new(origin, Fate::Reported, problem)),
        // dracut reads the same argument from several files.
        Known::Replaced if is_again(written, request) => {
            Some(Token::new(origin, Fate::Step, "the same argument again"))
        }
        Known::Replaced => Some(Token::news(origin, REPLACED)),
        Known::Disabled(by) => Some(Token::news(origin, &format!("{by} switches it off"))),
        Known::OfOthers | Known::Open => None,
    };
    let refusal = || {
        let mut refusals = plan.refusals.iter();
        let refusal = refusals.find(|refusal| refusal.requested_by.as_ref() == Some(origin))?;
        let why = format!("{}: {}", refusal.object, refusal.reason);
        Some(Token::new(origin, Fate::Reported, why))
    };
    known
        .or_else(refusal)
        .or_else(|| of_interface(origin, request))
        .or_else(|| not_ours(origin, request))
        .or_else(|| of_plan(written, request, plan))
        .unwrap_or_else(|| by_name(written, request))
}

fn is_again(written: &Written, request: &Request) -> bool {
    let (own, mut all) = (&written.origin, request.written.iter());
    all.any(|other| other.origin != *own && other.origin.argument == own.argument)
}

/// The interface or bond whose wish follows the argument.
fn of_interface(origin: &Origin, request: &Request) -> Option<Token> {
    let follows = |one: &&InterfaceWish| one.follows.contains(origin);
    let all: Vec<&InterfaceWish> = request.all_interfaces().filter(follows).collect();
    let possible = all.iter().find(|one| one.refused.is_none());
    let one = possible.or(all.first())?;
    Some(match &one.refused {
        Some(reason) => Token::new(origin, Fate::Reported, format!("{}: {reason}", one.name)),
        None if one.left => Token::new(origin, Fate::Left, NETWORK_MODULE),
        None => Token::new(origin, Fate::Step, &one.name),
    })
}

/// What the request says of it.
fn not_ours(origin: &Origin, request: &Request) -> Option<Token> {
    let left = request.left.iter().find(|left| left.origin == *origin)?;
    Some(match left.value {
        NotOurs::Left(_) if !has_network_module(request) => Token::news(origin, NOBODY),
        NotOurs::Left(_) => Token::new(origin, Fate::Left, NETWORK_MODULE),
        NotOurs::Unused(why) => Token::new(origin, Fate::Reported, why),
    })
}

/// The line of the plan that follows from it.
fn of_plan(written: &Written, request: &Request, plan: &Plan) -> Option<Token> {
    let origin = &written.origin;
    let is_it = |by: Option<&Origin>| by == Some(origin);
    let expected = &plan.expectation;
    let modules = expected.modules.iter();
    // Drivers also follow from the first argument that requests ibboot, whatever becomes of it.
    let is_root = request
        .root
        .as_ref()
        .is_some_and(|root| root.origin == *origin);
    let is_driver = written
        .name
        .is_some_and(|name| name.starts_with("rd.driver."));
    let module = modules
        .filter(|module| is_it(module.requested_by.as_ref()))
        .filter(|_| is_root || is_driver);
    let links = expected.links.iter().chain(&expected.any_port);
    let link = links.filter(|link| is_it(link.requested_by.as_ref()));
    let servers = expected.servers.iter();
    let server = servers.filter(|server| is_it(server.requested_by.as_ref()));
    let of_all = plan.of_all.as_ref().filter(|by| *by == origin);
    let mut objects = link
        .map(|link| link.target.to_string())
        .chain(server.map(|server| server.server.to_string()))
        .chain(module.map(|module| format!("module {}", module.name)))
        .chain(of_all.map(|_| "every interface".to_owned()));
    let object = objects.next()?;
    Some(Token::new(origin, Fate::Step, object))
}

/// The fate that follows from the name.
fn by_name(written: &Written, request: &Request) -> Token {
    let origin = &written.origin;
    let step = |object: &str| Token::new(origin, Fate::Step, object);
    let left = |program: &str| Token::new(origin, Fate::Left, program);
    let name = written.name.unwrap_or_default();
    match name {
        "rd.ib" => step("whether ibboot works"),
        "rd.ib.require" => step("the required ports"),
        "rd.ib.rate" => step("the minimum rates"),
        "rd.ib.timeout" => step("the deadline"),
        "rd.ib.onfail" => step("what follows a failure"),
        "rd.ib.handover" => step("the handover"),
        "rd.ib.roce" => step("the RoCE modes"),
        "rd.ib.porttype" => step("the port types"),
        "rd.ib.async_probe" => step("how drivers are loaded"),
        "rd.debug" | "rd.info" => step("what is logged"),
        "rd.bootif" => step("whether BOOTIF= is used"),
        "rd.nonvmf" => step("whether NVMe servers are connected"),
        "rd.ib.netns" => step("the network namespace mode"),
        // With an interface in front, `ib1:2044`, it is not for every interface.
        "rd.ib.mode" | "rd.ib.mtu"
            if request.any_interface.is_some() && !origin.argument.contains(':') =>
        {
            step("every interface")
        }
        "rd.ib.mode" | "rd.ib.mtu" => {
            let why = is_for_bond(origin, request);
            Token::news(origin, why.as_deref().unwrap_or(SUPERSEDED))
        }
        "rd.ib.kdump" => left("a kernel that saves a crash dump"),
        // ibboot loads the RDMA modules among them.
        _ if name.starts_with("rd.driver.") => left(DRACUT),
        _ => by_effect(written, request),
    }
}

/// Why `rd.ib.mtu=INTERFACE:MTU` has no effect if the interface is in a bond.
fn is_for_bond(origin: &Origin, request: &Request) -> Option<String> {
    let value = origin.argument.strip_prefix("rd.ib.mtu=")?;
    let (name, mtu) = value.rsplit_once(':')?;
    let mut all = request.interfaces.iter().map(|one| &one.value);
    let bond = all.find(|one| one.name == name)?.ipoib.bond.as_ref()?;
    Some(format!("{name} is in {bond}: write rd.ib.mtu={bond}:{mtu}"))
}

/// Whether the network module sets up any interface: Ethernet if the command line names one,
/// InfiniBand if the module is not kept away.
pub(super) fn has_network_module(request: &Request) -> bool {
    let mut all = request.written.iter();
    let has_others = all.any(|other| other.known == Known::OfOthers);
    has_others || request.anywhere || !request.claims_infiniband()
}

/// Arguments from which systemd-network-generator may make an interface that ibboot refuses.
const NAMES_INTERFACE: [&str; 8] = [
    "ip", "bond", "vlan", "bridge", "team", "ifname", "bootdev", "BOOTIF",
];

/// Whether ibboot addresses every interface that the command line names: systemd-networkd in the
/// image has nothing to set up.
pub fn addresses_all(request: &Request) -> bool {
    let mut written = request.written.iter();
    let is_any_wrong = written.any(|written| {
        let is_complaint = matches!(written.known, Known::Complaint(_));
        is_complaint
            && written
                .name
                .is_some_and(|name| NAMES_INTERFACE.contains(&name))
    });
    let mut all = request.all_interfaces();
    !has_network_module(request)
        && !is_any_wrong
        && request.all_interfaces().all(InterfaceWish::is_ours)
        && all.any(|one| one.ipoib.is_addressed())
}

/// Whether an earlier argument has the same text.
fn has_earlier(written: &Written, request: &Request) -> bool {
    let origin = &written.origin;
    let all = request.written.iter();
    let mut earlier = all.take_while(|one| one.origin != *origin);
    earlier.any(|one| one.origin.argument == origin.argument)
}

fn by_effect(written: &Written, request: &Request) -> Token {
    let origin = &written.origin;
    let mut parameters = PARAMETERS.iter();
    let parameter = parameters.find(|parameter| Some(parameter.name) == written.name);
    let is_able = has_network_module(request);
    match parameter.map(|parameter| (parameter.origin, parameter.effect)) {
        Some((kernel_cmdline::Origin::Dracut, Effect::CarriedOut)) => {
            Token::new(origin, Fate::Left, DRACUT)
        }
        Some((_, Effect::CarriedOut)) if has_earlier(written, request) => {
            Token::news(origin, EARLIER)
        }
        Some((_, Effect::CarriedOut)) | None => Token::news(origin, NOBODY),
        Some(_) if written.known == Known::OfOthers || is_able => {
            Token::new(origin, Fate::Left, NETWORK_MODULE)
        }
        Some(_) => Token::news(origin, NOBODY),
    }
}

#[cfg(test)]
mod tests {
    use kernel_cmdline::{Cmdline, Source, parameter_name};
    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Inventory, plan, text};
    use crate::system::root::Root;

    fn planned(line: &str) -> (Request, Plan) {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = Inventory::read(&Root::new(sys)).unwrap();
        let request = Request::from_text(line);
        let plan = plan(&request, &inventory);
        (request, plan)
    }

    /// `ARGUMENT: FATE to TO` of each argument.
    fn fates(line: &str) -> Vec<String> {
        let word = |fate| match fate {
            Fate::Step => "step",
            Fate::Left => "left",
            Fate::Reported => "reported",
        };
        let tokens = planned(line).1.tokens;
        let tokens = tokens.iter();
        tokens
            .map(|token| format!("{} {}: {}", word(token.fate), token.origin, token.to))
            .collect()
    }

    #[test]
    fn an_argument_has_one_of_three_fates() {
        assert_eq!(
            fates(
                "ip=ib0:dhcp rd.net.dhcp.dscp=CS6 rd.net.timeout.dhcp=5 nameserver=10.0.0.1 rd.retry=9"
            ),
            [
                "step ip=ib0:dhcp: ib0",
                &format!("reported rd.net.dhcp.dscp=CS6: {NOBODY}"),
                "step rd.net.timeout.dhcp=5: ib0",
                "step nameserver=10.0.0.1: ib0",
                "left rd.retry=9: dracut",
            ]
        );
        assert_eq!(
            fates("ip=ib0:dhcp ip=eth0:dhcp rd.net.dhcp.dscp=CS6 rd.ib.timeout=9 rd.ib.timeout=10 vlan=v:ib0"),
            [
                "step ip=ib0:dhcp: ib0".to_owned(),
                format!("left ip=eth0:dhcp: {NETWORK_MODULE}"),
                format!("left rd.net.dhcp.dscp=CS6: {NETWORK_MODULE}"),
                format!("reported rd.ib.timeout=9: {REPLACED}"),
                "step rd.ib.timeout=10: the deadline".to_owned(),
                "reported vlan=v:ib0: v: the kernel creates no VLAN on an InfiniBand interface (NETIF_F_VLAN_CHALLENGED): \
                 ib.pkey= creates an interface for a partition"
                    .to_owned(),
            ]
        );
        assert_eq!(
            fates(
                "rd.ib.mode=connected rd.ib.mtu=max rd.ib.mode=ib0:auto rd.ib.mtu=ib0:2044 ip=ib0:dhcp:4092"
            ),
            [
                format!("reported rd.ib.mode=connected: {SUPERSEDED}"),
                format!("reported rd.ib.mtu=max: {SUPERSEDED}"),
                "step rd.ib.mode=ib0:auto: ib0".to_owned(),
                format!("reported rd.ib.mtu=ib0:2044: {SUPERSEDED}"),
                "step ip=ib0:dhcp:4092: ib0".to_owned(),
            ]
        );
        // A bond has the MTU of its interfaces.
        let of_bond =
            fates("rd.ib.require=all bond=bond0:ib0,ib1::2044 rd.ib.mtu=ib1:2044 rd.ib.mtu=max");
        assert_eq!(
            of_bond[2..],
            [
                "reported rd.ib.mtu=ib1:2044: ib1 is in bond0: write rd.ib.mtu=bond0:2044"
                    .to_owned(),
                "step rd.ib.mtu=max: every interface".to_owned(),
            ]
        );
        assert_eq!(fates("ip=eth0:dhcp root=/dev/sda1"), [""; 0]);
    }

    #[test]
    fn networkd_has_nothing_to_set_up_where_ibboot_addresses_every_named_interface() {
        const STATIC: &str = "ip=10.0.0.1:::24::ib0:none";
        for (line, expected) in [
            ("root=nfs:10.0.0.2:/", true),
            ("rd.neednet=1 ip=ib1:dhcp", true),
            ("bond=bond1:ib1,ib2 ip=bond1:dhcp", true),
            ("ip=eth0:dhcp", false),
            ("bootdev=eth0 ip=eth0:dhcp", false),
            ("vlan=vlan7:eth0 ip=vlan7:dhcp", false),
            ("BOOTIF=01-52-54-00-1b-b0-00", false),
            ("BOOTIF=01-52-54-00-1b-b0-00 rd.bootif=0", true),
            ("ip=ib1:link-local", false),
            ("ip=dhcp", false),
            // An invalid argument is not carried out here, but perhaps there.
            ("ip=192.168.1.5::192.168.1.1::node1:eth0:none", false),
            ("bond=bond0:ib1,eth0 ip=bond0:dhcp", false),
        ] {
            let request = Request::from_text(&format!("{STATIC} {line}"));
            assert_eq!(addresses_all(&request), expected, "{line}");
        }
        for line in ["rd.neednet=1 rd.ib.mode=connected", "bootdev=eth0 rd.ib=1"] {
            assert!(!addresses_all(&Request::from_text(line)), "{line}");
        }
    }

    /// Examples of the table, and lines with names that several of them share.
    fn line() -> impl Strategy<Value = String> {
        const MORE: &[&str] = &[
            "ip=ib0:dhcp",
            "ip=ib0:dhcp,dhcp6",
            "ip=ib1:auto6",
            "ip=10.0.0.6:::24::ib1:none",
            "ip=10.0.0.7::10.0.0.1:24",
            "ip=dhcp",
            "ip=eth0:dhcp",
            "ip=ib2:link-local",
            "bond=bond0:eth0,eth1",
            "vlan=ib0.7:ib0",
            "bootdev=ib1",
            "rd.ib.mode=connected",
            "rd.ib.mtu=ib1:2044",
            "rd.ib.require=all",
            "rd.ib.rate=5O",
            "rd.ib.mod=auto",
            "rd.neednet=1",
            "rd.route=10.9.0.0/16:10.0.0.9",
            "rd.ib=1",
        ];
        let examples = PARAMETERS.iter().map(|parameter| parameter.example);
        let all: Vec<&str> = examples.chain(MORE.iter().copied()).collect();
        let line = proptest::collection::vec(proptest::sample::select(all), 1..9);
        line.prop_map(|words| words.join(" "))
    }

    /// Settings that change nothing where their object is absent, or that have their default.
    const DEFAULTS: &[&str] = &[
        "rd.bootif=0",
        "rd.nonvmf=1",
        "rd.info",
        "rd.ib=1",
        "rd.ib.async_probe=1",
        "rd.ib.onfail=continue",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_argument_has_a_fourth_fate(line in line()) {
            let (request, plan) = planned(&line);
            if request.requested_by.is_none() {
                prop_assert_eq!(plan.tokens.len(), 0);
                return Ok(());
            }
            // Each argument of the table or with a complaint is listed once, in order.
            let source = [Source::new("--cmdline", line.as_bytes())];
            let columns = Cmdline::new(&source).tokens();
            let columns: Vec<usize> = columns
                .filter(|token| parameter_name(token.key).is_some() || token.key.starts_with(b"rd.ib"))
                .map(|token| token.column)
                .collect();
            let listed: Vec<usize> = plan.tokens.iter().map(|token| token.origin.column).collect();
            prop_assert_eq!(&listed, &columns);
            let text = text::of_plan(&plan);
            for token in &plan.tokens {
                match token.fate {
                    // The plan is another one without the argument, unless it is said twice or has the
                    // default.
                    Fate::Step if DEFAULTS.contains(&token.origin.argument.as_str()) => {}
                    Fate::Step => {
                        let words = line.split(' ');
                        let is_twice = words.filter(|word| *word == token.origin.argument).count() > 1;
                        prop_assert!(is_twice || has_effect(&line, token), "{}", token);
                    }
                    // Whoever is named is there, and is not kept away.
                    Fate::Left if token.to == NETWORK_MODULE => {
                        let is_other = request.written.iter().any(|one| one.known == Known::OfOthers);
                        let is_except = request.interfaces.iter().any(|one| one.value.left);
                        let is_able = is_other || is_except || request.anywhere || !request.claims_infiniband();
                        prop_assert!(is_able, "{}\n{}", token, text);
                    }
                    Fate::Left => {}
                    // The text has a line about it.
                    Fate::Reported => {
                        // The first argument that requests ibboot is named in many places.
                        let is_first = request.requested_by.as_ref() == Some(&token.origin);
                        let is_vain = !token.is_news || is_first || !has_effect(&line, token);
                        prop_assert!(is_vain, "{} has an effect", token);
                        let is_said = text.lines().any(|line| {
                            !line.starts_with(' ') && line.contains(&token.origin.argument)
                                || line.starts_with("refused: ") && line.contains(&token.to)
                        });
                        prop_assert!(is_said, "{}\n{}", token, text);
                    }
                }
            }
        }
    }

    /// Whether the plan or the request differs without the argument, lines about arguments aside.
    fn has_effect(line: &str, token: &Token) -> bool {
        let begin = token.origin.column - 1;
        let length = token.origin.argument.len();
        let mut without = line.to_owned();
        without.replace_range(begin..begin + length, &" ".repeat(length));
        let whole = |line: &str| {
            let (request, plan) = planned(line);
            let request = Request {
                written: Vec::new(),
                left: Vec::new(),
                ..request
            };
            let plan = Plan {
                tokens: Vec::new(),
                left: Vec::new(),
                unused: Vec::new(),
                ..plan
            };
            (request, plan)
        };
        whole(line) != whole(&without)
    }
}
