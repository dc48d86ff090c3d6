// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a plan as text.

use crate::dhcp::identity::RequestedId;
use crate::dhcp::v6::Dhcp6Wish;
use crate::dhcp::v6::identity::of_rfc4361;
use crate::error::printable;
use crate::hardware::Hex;
use crate::plan::steps::{Expected, What};
use crate::plan::{Action, Plan};
use crate::request::{Dump, OnFailure};
use crate::wish::bond;
use crate::wish::bond::BondWish;
use crate::wish::ipoib::{Family, IpoibWish, RequestedMode, RequestedMtu};
use crate::wish::selector::Selector;
use kernel_cmdline::Handover;

/// A step in words.
fn action(action: &Action) -> String {
    match action {
        Action::LoadModule {
            module,
            file,
            assumed,
            parameters,
        } => {
            let mut text = format!("load module {module}");
            for parameter in parameters {
                text.push_str(&format!(" {parameter}"));
            }
            match file {
                Some(file) => text.push_str(&format!(" ({file})")),
                None if *assumed => {}
                None => text.push_str(" (builtin)"),
            }
            text
        }
        Action::SetPortType {
            selector,
            port_type,
        } => format!("set the port type of {selector} to {port_type}"),
        Action::SetNetnsMode { mode } => {
            format!("set the network namespace mode of RDMA to {mode}")
        }
        Action::AddLink { name, kind, netdev } => {
            format!("set {netdev} up and add the {kind} link {name} on it")
        }
        Action::SetRoceMode { selector, mode } => format!(
            "set the default RoCE mode of {} to {mode}",
            selector.as_ref().map_or("all ports", Selector::as_str)
        ),
    }
}

/// The work for the expectation, in words.
fn expected(action: &Expected<'_>) -> String {
    match action {
        Expected::BringUpInterface { name, port, ipoib } => interface(name, port, ipoib),
        Expected::BringUpInterfaces { ports, ipoib } => {
            let ports = match ports.as_slice() {
                [] => "every port".to_owned(),
                ports => ports.join(" and "),
            };
            let parts = configuring(ipoib).join(", ");
            format!(
                "bring up the IPoIB interface of {ports}, unless another step names it: {parts}"
            )
        }
        Expected::WaitFor { port, gates_boot } => format!(
            "wait until {port} is verified{}",
            if *gates_boot {
                ""
            } else {
                " (the boot does not wait for it)"
            }
        ),
        Expected::AskServer {
            server,
            alternative,
        } => {
            let enough = match alternative {
                true => " (the disk has several servers: one answer is enough)",
                false => "",
            };
            format!("query {server} over RDMA{enough}")
        }
        Expected::MakeBond { name, bond, ipoib } => make_bond(name, bond, ipoib),
        Expected::HandOver { to } => {
            let owner = match to {
                Some(Handover::Keep) => "; the interfaces stay as they are",
                Some(Handover::Nm) => "; NetworkManager gets the interfaces",
                Some(Handover::Networkd) => "; systemd-networkd gets the interfaces",
                Some(Handover::None) => "; no program is told about the interfaces",
                Some(Handover::Auto) | None => "",
            };
            format!("hand over to the real root{owner}")
        }
    }
}

/// The work on an IPoIB interface, in order.
fn interface(name: &str, port: &str, wish: &IpoibWish) -> String {
    let mut parts = Vec::new();
    if let Some(pkey) = wish.pkey {
        parts.push(format!("child of P_Key {pkey:#06x} on {port}"));
    } else if name != port {
        parts.push(format!("on {port}"));
    }
    parts.extend(wish.ifname.as_ref().map(|name| format!("named {name}")));
    parts.extend(configuring(wish));
    format!("bring up IPoIB interface {name}: {}", parts.join(", "))
}

/// The work on an existing interface.
fn configuring(wish: &IpoibWish) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(wish.mode.map(|mode| {
        let mode = match mode {
            RequestedMode::Auto => "connected if the device can, else datagram",
            RequestedMode::Connected => "connected",
            RequestedMode::Datagram => "datagram",
        };
        format!("mode {mode}")
    }));
    parts.push(match &wish.bond {
        Some(bond) => format!("into {bond}"),
        None => "up, carrier".to_owned(),
    });
    parts.extend(addressing(wish));
    parts
}

/// MTU, addresses, routes, names and DHCP.
fn addressing(wish: &IpoibWish) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(wish.mtu.map(|mtu| match mtu {
        RequestedMtu::Max => "MTU max".to_owned(),
        RequestedMtu::Bytes(bytes) => format!("MTU {bytes}"),
    }));
    parts.extend(wish.addresses.iter().map(ToString::to_string));
    parts.extend(wish.autoconf.map(|autoconf| autoconf.word().to_owned()));
    let is_peer = wish.addresses.iter().any(|a| wish.peer_of(a).is_some());
    let other = if is_peer { "peer" } else { "boot server" };
    parts.extend(wish.peer.map(|peer| format!("{other} {peer}")));
    parts.extend(wish.routes.iter().map(|route| format!("route {route}")));
    parts.extend(
        wish.gateways
            .iter()
            .map(|gateway| format!("gateway {gateway}")),
    );
    parts.extend(
        wish.dns
            .iter()
            .map(|server| format!("name server {server}")),
    );
    parts.extend(wish.hostname.iter().map(|name| format!("host name {name}")));
    parts.extend(wish.dhcp.as_ref().map(|dhcp| {
        let id = match &dhcp.client_id {
            RequestedId::Firmware => "of the card's firmware".to_owned(),
            RequestedId::Partition(pkey) => {
                format!("of the card's firmware with the IAID {pkey:#06x}")
            }
            RequestedId::Hardware => "20 and the port GUID".to_owned(),
            RequestedId::PortGuid => "of xCAT: the port GUID".to_owned(),
            RequestedId::Ipxe => "of iPXE: 01 and 6 bytes of the port GUID".to_owned(),
            RequestedId::Bytes(bytes) => Hex(bytes).to_string(),
        };
        let limit = dhcp.limit_s.map_or(String::new(), |limit| {
            format!(", {}", tries(dhcp.tries, limit))
        });
        format!("DHCP (client identifier {id}{limit})")
    }));
    parts.extend(wish.dhcp6.as_ref().map(asking6));
    parts.extend(wish.second_family.as_ref().map(|second| {
        let wait_s = second.wait_s;
        match second.needed {
            None => format!("one address family is enough after {wait_s} s"),
            Some(Family::Ipv4) => format!("IPv4 is enough after {wait_s} s"),
            Some(Family::Ipv6) => format!("IPv6 is enough after {wait_s} s"),
        }
    }));
    let informed = wish.information();
    parts.extend(informed.map(|_| "name servers from DHCPv6 if a router requests it".to_owned()));
    parts
}

fn tries(number: u32, limit_s: u32) -> String {
    match number {
        1 => format!("1 try of {limit_s} s"),
        _ => format!("{number} tries of {limit_s} s"),
    }
}

fn asking6(wish: &Dhcp6Wish) -> String {
    let mut how = Vec::new();
    let written = match &wish.client_id {
        RequestedId::Bytes(bytes) => of_rfc4361(bytes),
        _ => None,
    };
    how.push(match written {
        Some(identity) => format!("DUID {}, IAID {}", Hex(&identity.duid), identity.iaid),
        None => "DUID from the port GUID".to_owned(),
    });
    how.extend(wish.limit_s.map(|limit| tries(wish.tries, limit)));
    how.extend(wish.after_router_s.map(|seconds| {
        format!("if a router requests DHCPv6 or gives no address within {seconds} s")
    }));
    format!("DHCPv6 ({})", how.join(", "))
}

/// The work on a bond.
fn make_bond(name: &str, bond: &BondWish, wish: &IpoibWish) -> String {
    let mut parts = vec![format!("mode {}", bond::MODE)];
    let options = bond.options.iter();
    parts.extend(options.map(|(option, value)| format!("{option} {value}")));
    parts.push("up, carrier".to_owned());
    parts.extend(addressing(wish));
    let slaves = bond.slaves.join(" and ");
    format!("create bond {name} of {slaves}: {}", parts.join(", "))
}

/// A line for each text, which begins with `word`.
fn lines(word: &str, texts: &[String]) -> String {
    let texts = texts.iter();
    texts
        .map(|text| format!("{word}: {}\n", printable(text)))
        .collect()
}

/// The plan as text: one numbered line for each step, with the argument that requested it.
pub fn of_plan(plan: &Plan) -> String {
    let mut out = lines("wrong", &plan.complaints);
    if plan.dump == Some(Dump::Undisturbed) {
        out.push_str(
            "nothing to do: this kernel saves a crash dump (/proc/vmcore); rd.ib.kdump=1 requests links in this kernel\n",
        );
        return out;
    }
    let Some(asked) = &plan.requested_by else {
        out.push_str("this command line requests nothing from ibboot: rd.ib=0, or no argument names an InfiniBand interface or an RDMA link; see ibboot explain rd.ib\n");
        out.push_str(&lines("note", &plan.notes));
        return out;
    };
    out.push_str(&format!("requested by: {}\n", printable(&asked.argument)));
    for (number, line) in plan.lines().iter().enumerate() {
        let what = printable(&match &line.what {
            What::Step(step) => action(step),
            What::Expected(wish) => expected(wish),
        });
        match line.requested_by {
            Some(origin) => {
                out.push_str(&format!(
                    "{:>3}. {what}  <- {}\n",
                    number + 1,
                    printable(&origin.argument)
                ));
            }
            None => out.push_str(&format!("{:>3}. {what}\n", number + 1)),
        }
    }
    for refusal in &plan.refusals {
        out.push_str(&format!(
            "refused: {}: {}",
            printable(&refusal.object),
            printable(&refusal.reason)
        ));
        if let Some(origin) = &refusal.requested_by {
            out.push_str(&format!("  <- {}", printable(&origin.argument)));
        }
        out.push('\n');
    }
    out.push_str(&lines("warning", &plan.warnings));
    out.push_str(&lines("left", &plan.left));
    out.push_str(&lines("unused", &plan.unused));
    for token in plan.tokens.iter().filter(|token| token.is_news) {
        out.push_str(&format!("unused: {}\n", printable(&token.to_string())));
    }
    out.push_str(&lines("note", &plan.notes));
    out.push_str(&format!(
        "required: {}; deadline {} s, then {}\n",
        plan.expectation.requirement(),
        plan.timeout.as_secs(),
        match plan.onfail {
            OnFailure::Dracut => "dracut waits for the root file system",
            OnFailure::Shell => plan.no_shell.unwrap_or("an emergency shell opens"),
            OnFailure::Continue => "the boot continues",
            OnFailure::Reboot => "the node reboots",
        }
    ));
    out
}
