// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot status`: a row for each port, the failures first. The decisions are pure; the look is
//! that of `ibboot check`.

use crate::check;
use crate::error::{Error, Result, printable};
use crate::facts::reader::{ONCE, silence};
use crate::facts::{
    AddressState, Device, Facts, FoundAddress, Function, Netdev, PortRef, Readers, functions, rules,
};
use crate::request::Request;
use crate::system::root::Root;
use crate::system::terminal::Terminal;
use crate::verify::checks::Id;
use crate::verify::finding::Status;
use crate::verify::report::{LinkReport, OtherPorts, Report};
use crate::verify::text::colour;
use crate::wish::bond::BondFacts;
use crate::wish::expectation::{Depth, Expectation};
use crate::wish::ipoib::Autoconf;
use crate::wish::selector::Means;

/// A row of the table.
#[derive(Debug, Default)]
struct Row {
    /// Status, port, interface, state, rate, LID of the subnet manager, need, GUID and address.
    cells: [String; 9],
    status: Option<Status>,
    /// What is wrong.
    trouble: Option<String>,
}

const HEADS: [&str; 9] = [
    "",
    "PORT",
    "NETDEV",
    "STATE",
    "RATE",
    "SM",
    "NEED",
    "PORT GUID",
    "ADDRESS",
];
/// The column that is cut if the table is too wide: the address, the last one.
const LAST: usize = HEADS.len() - 1;

/// The ports of the machine, compared with the expectation if there is one.
pub fn text(root: &Root, terminal: &Terminal) -> Result<String> {
    let mut basis = match check::basis(root) {
        Ok(Some(basis)) => basis,
        basis => {
            let facts = Facts::gather(root, Readers::of(root, ONCE).as_ref(), &[], Depth::Ports);
            let rows: Vec<Row> = facts.ports().map(|port| row(port, None, &facts)).collect();
            // An invalid or unreadable argument may request anything.
            let complaints = Request::read(root).complaints;
            let error = basis.err();
            let below = nothing_expected(&facts, &complaints, error.as_ref(), terminal);
            return Ok(table(rows, terminal) + &below);
        }
    };
    let (facts, report) = check::look_and_compare(root, &mut basis, false);
    let rows = rows(&facts, &report, &basis.expectation);
    Ok(table(rows, terminal) + &report.last_line(terminal))
}

/// What a machine has that ibboot did not boot, or whose expectation cannot be used, and what to try.
/// In place of a statement that is not certain: the files that could not be read, and the invalid
/// arguments.
fn nothing_expected(
    facts: &Facts,
    complaints: &[String],
    error: Option<&Error>,
    terminal: &Terminal,
) -> String {
    let unread = facts.unread.iter();
    let mut lines: Vec<String> = unread
        .map(|unread| format!("not known: {}: {}", unread.path, unread.why))
        .collect();
    if lines.is_empty() {
        lines.push(format!("This machine has {}.", hardware(facts)));
    }
    // Ports that carry no link have no row.
    let others = OtherPorts::of(facts).into_iter();
    lines.extend(others.map(|other| format!("not a link: {} ({})", other.name(), other.words())));
    // A silent device without a port has no row.
    let without_row = facts
        .devices
        .iter()
        .filter(|device| device.ports.is_empty());
    lines.extend(without_row.filter_map(silent));
    lines.extend(complaints.iter().cloned());
    match error {
        Some(error) => lines.push(format!("What the boot requires is not known: {error}")),
        None if complaints.is_empty() => lines.push(
            "ibboot set up no link during this boot: /run/ibboot/expected.json does not exist, and the \
             kernel command line requests no link."
                .to_owned(),
        ),
        None => {}
    }
    lines.push(
        "ibboot plan --cmdline TEXT shows what a command line would do; see ibboot.cmdline(7)."
            .to_owned(),
    );
    let lines = lines.iter().map(|line| printable(line));
    lines.map(|line| terminal.wrapped(&line, 0)).collect()
}

/// The RDMA devices of the machine, and the HCAs that must have one and have none, in words.
fn hardware(facts: &Facts) -> String {
    let missing = facts.bare_functions().into_iter();
    let missing: Vec<&Function> = missing.filter(|function| function.is_missing()).collect();
    let devices = match facts.devices.len() {
        0 => return facts.no_device_in_words(),
        1 => "1 RDMA device".to_owned(),
        devices => format!("{devices} RDMA devices"),
    };
    match missing.is_empty() {
        true => devices,
        false => format!(
            "{devices}; HCAs without an RDMA device: {}",
            functions::in_words(&missing)
        ),
    }
}

/// What is wrong with a device that does not answer.
fn silent(device: &Device) -> Option<String> {
    let seconds = device.silent_s?;
    Some(printable(&format!(
        "{} {}",
        device.ifname,
        silence(seconds)
    )))
}

/// The rows of the report and of the ports that are not in it, the worst first.
fn rows(facts: &Facts, report: &Report, expectation: &Expectation) -> Vec<Row> {
    let port_of = |link: &LinkReport| facts.ports().find(|p| Some(p.name()) == link.name);
    let mut rows: Vec<Row> = report
        .links
        .iter()
        .map(|link| match port_of(link) {
            Some(port) => row(port, Some(link), facts),
            None => without_port(link, facts),
        })
        .collect();
    let has_required = report.has_required();
    for (row, link) in rows.iter_mut().zip(&report.links) {
        let [_, _, _, _, _, _, need, ..] = &mut row.cells;
        if !has_required {
            "any".clone_into(need);
        } else if !link.required && is_in_bond(link, expectation) {
            "bond".clone_into(need);
        }
    }
    let is_in = |port: &PortRef<'_>| {
        let name = port.name();
        report
            .links
            .iter()
            .any(|link| link.name.as_ref() == Some(&name))
    };
    let others = facts.ports().filter(|port| !is_in(port));
    rows.extend(others.map(|port| row(port, None, facts)));
    worst_first(&mut rows);
    rows
}

/// Whether the link is requested as an interface of a bond, which may do without it.
fn is_in_bond(link: &LinkReport, expectation: &Expectation) -> bool {
    let mut wishes = expectation.links.iter();
    wishes.any(|wish| {
        let ipoib = wish.ipoib.as_ref();
        wish.target == link.target && ipoib.is_some_and(|ipoib| ipoib.bond.is_some())
    })
}

fn worst_first(rows: &mut [Row]) {
    rows.sort_by_key(|row| std::cmp::Reverse(row.status.filter(|s| *s > Status::Skipped)));
}

fn need(link: Option<&LinkReport>) -> String {
    match link {
        Some(link) if link.required => "yes".to_owned(),
        Some(_) => "no".to_owned(),
        None => "-".to_owned(),
    }
}

fn dash(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or_else(|| "-".to_owned())
}

/// Every address that is not link-local; one that cannot be used, with the reason. None if there is none.
fn addresses(netdev: &Netdev) -> Option<String> {
    let found = netdev.addresses.iter();
    let global = found.filter(|found| !Autoconf::LinkLocal.is_met_by(found.address.address));
    let text = |found: &FoundAddress| match found.state {
        AddressState::Usable => found.address.to_string(),
        AddressState::Tentative => format!("{} (tentative)", found.address),
        AddressState::Duplicate => format!("{} (duplicate)", found.address),
    };
    let texts: Vec<String> = global.map(text).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// The addresses of the bond that has the interface, with the name of the bond.
fn addresses_of_bond(slave: &Netdev, facts: &Facts) -> Option<String> {
    let is_of = |bond: &BondFacts| bond.slaves.contains(&slave.ifname);
    let mut bonds = facts.netdevs.iter();
    let bond = bonds.find(|netdev| netdev.bond.as_ref().is_some_and(is_of))?;
    Some(format!("{} ({})", addresses(bond)?, bond.ifname))
}

fn row(port: PortRef<'_>, link: Option<&LinkReport>, facts: &Facts) -> Row {
    let is_above = |netdev: &&Netdev| netdev.is_parent() && netdev.is_over(port);
    let name = link
        .and_then(|link| link.interface.clone())
        .or_else(|| port.port.netdev.clone())
        .or_else(|| {
            facts
                .netdevs
                .iter()
                .find(is_above)
                .map(|n| n.ifname.clone())
        });
    let netdev = name.as_deref().and_then(|name| facts.netdev(name));
    let rate = port.port.rate.as_ref();
    let rate = rate.map(|rate| match rules::may_be_faster(port, rate) {
        true => "unknown".to_owned(),
        false => format!("{} {}x{}", rate.gbps, rate.width, rate.speed),
    });
    let sm = port.port.sm_lid.filter(|lid| *lid != 0);
    Row {
        cells: [
            String::new(),
            port.name(),
            dash(name.clone()),
            dash(port.port.state.map(|state| state.to_string())),
            dash(rate),
            dash(sm.map(|lid| lid.to_string())),
            need(link),
            dash(port.port.port_guid.map(|guid| guid.to_string())),
            dash(netdev.and_then(|own| addresses(own).or_else(|| addresses_of_bond(own, facts)))),
        ],
        status: link.map(|link| link.status),
        trouble: match link {
            Some(link) => trouble(link),
            None => silent(port.device),
        },
    }
}

/// A link that no port was found for, and a bond.
fn without_port(link: &LinkReport, facts: &Facts) -> Row {
    let netdev = link
        .interface
        .as_deref()
        .and_then(|name| facts.netdev(name));
    let mut cells = [(); 9].map(|()| "-".to_owned());
    let [_, port, name, _, _, _, needed, _, address] = &mut cells;
    *needed = need(Some(link));
    *address = dash(netdev.and_then(addresses));
    let is_bond = link
        .checks
        .iter()
        .any(|found| found.check == Id::BondPresent);
    let target = link.target.to_string();
    // The name of an interface, or of a device: nothing shows which.
    let selector = link.target.selector();
    let is_name = selector.is_some_and(|selector| matches!(selector.means(), Means::Name(_)));
    match &link.interface {
        Some(bond) => (*port, *name) = ("bond".to_owned(), bond.clone()),
        None if is_bond => (*port, *name) = ("bond".to_owned(), target),
        None if is_name => *name = target,
        None => *port = target,
    }
    Row {
        cells,
        status: Some(link.status),
        trouble: trouble(link),
    }
}

fn trouble(link: &LinkReport) -> Option<String> {
    Some(link.trouble()?.titled())
}

/// The table within the width of the terminal; what is wrong stands below its row.
fn table(mut rows: Vec<Row>, terminal: &Terminal) -> String {
    if rows.is_empty() {
        return String::new();
    }
    for row in &mut rows {
        let [status, ..] = &mut row.cells;
        *status = row.status.map_or("-", Status::word).to_owned();
    }
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column));
        let head = HEADS.get(column).map_or(0, |head| head.len());
        cells
            .map(|cell| printable(cell).chars().count())
            .fold(head, usize::max)
    };
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    // The GUID is the widest column and the first to go: ibboot facts has it.
    let total: usize = widths.iter().take(LAST).sum::<usize>() + LAST;
    let is_narrow = total + "ADDRESS".len() > terminal.columns;
    let line = |cells: Vec<String>| -> String {
        let shown = cells.iter().zip(&widths).enumerate();
        let shown = shown.filter(|(column, _)| !is_narrow || *column != LAST - 1);
        let text: String = shown
            .map(|(_, (cell, width))| format!("{cell:<width$} "))
            .collect();
        cut(text.trim_end(), terminal.columns)
    };
    let mut out = line(HEADS.map(str::to_owned).to_vec()) + "\n";
    for row in &rows {
        let text = line(row.cells.iter().map(|cell| printable(cell)).collect());
        out.push_str(&terminal.coloured(&text, row.status.and_then(colour)));
        out.push('\n');
        if let Some(trouble) = &row.trouble {
            out.push_str(&terminal.wrapped(trouble, 2));
        }
    }
    out
}

/// The text, cut to this number of columns.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars()
        .take(columns.saturating_sub(1))
        .chain(['>'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Function, Port, Unread};
    use crate::plan::{Inventory, plan};
    use crate::rdma::types::{Guid, PortState};
    use crate::rdma::{parse, types::LinkLayer};
    use crate::verify::finding::Finding;
    use crate::verify::verify;
    use crate::wish::expectation::{LinkWish, Target};

    const TERMINAL: Terminal = Terminal {
        columns: 80,
        has_colours: false,
    };

    #[test]
    fn the_need_of_an_interface_of_a_bond_is_the_bond() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = Inventory::read(&Root::new(sys)).unwrap();
        let of = |cmdline: &str| {
            let request = Request::from_text(cmdline);
            let expectation = plan(&request, &inventory).expectation;
            let facts = Facts::default();
            let report = verify(&expectation, &facts);
            let rows = rows(&facts, &report, &expectation);
            let needs = rows.into_iter().map(|row| row.cells[6].clone());
            needs.collect::<Vec<String>>()
        };
        let bond = "bond=bond0:ib0,ib1 ip=bond0:dhcp";
        let mut needs = of(bond);
        needs.sort();
        assert_eq!(needs, ["bond", "bond", "yes"]);
        // Any port counts, also that of an interface of a bond.
        let any = of(&format!("{bond} rd.ib.require=1"));
        assert!(any.iter().all(|need| need == "any"), "{any:?}");
    }

    /// Eight HCAs with two ports each.
    fn sixteen() -> Facts {
        let port = |device: u32, port| Port {
            port,
            link_layer: Some(LinkLayer::InfiniBand),
            state: Some(PortState::Active),
            rate: parse::rate("200 Gb/sec (4X HDR)").ok(),
            sm_lid: Some(1),
            port_guid: Some(Guid(0xb859_9f03_00fc_0000 + u64::from(device * 2 + port))),
            netdev: Some(format!("ibp{}s0f{port}", 92 + device)),
            ..Port::default()
        };
        let device = |number| Device {
            ifname: format!("mlx5_{number}"),
            ports: vec![port(number, 1), port(number, 2)],
            ..Device::default()
        };
        Facts {
            devices: (0..8).map(device).collect(),
            ..Facts::default()
        }
    }

    #[test]
    fn sixteen_ports_fit_80_columns_and_the_failures_come_first() {
        let facts = sixteen();
        let found = "INIT, no subnet manager has configured this port";
        let link = |port: PortRef<'_>| {
            let finding = match port.name().as_str() {
                "mlx5_5/2" => Finding::failed(Id::PortState, found, "ACTIVE"),
                _ => Finding::ok(Id::PortState, "ACTIVE"),
            };
            LinkReport::new(&LinkWish::default(), Some(port), vec![finding])
        };
        let links: Vec<LinkReport> = facts.ports().map(link).collect();
        let mut rows: Vec<Row> = facts
            .ports()
            .zip(&links)
            .map(|(port, link)| row(port, Some(link), &facts))
            .collect();
        worst_first(&mut rows);
        let text = table(rows, &TERMINAL);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert_eq!(lines.len(), 1 + 16 + 2, "{text}");
        assert!(
            lines[1].starts_with("CRITICAL mlx5_5/2 ibp97s0f2 ACTIVE "),
            "{text}"
        );
        assert!(
            lines[2].starts_with("  port is not ACTIVE: INIT, "),
            "{text}"
        );
        assert!(lines[4].starts_with("ok       mlx5_0/1 "), "{text}");
    }

    const UNEXPECTED: &str = "ibboot set up no link during this boot: /run/ibboot/expected.json does not\n\
                              exist, and the kernel command line requests no link.\n";
    const TRY: &str =
        "ibboot plan --cmdline TEXT shows what a command line would do; see\nibboot.cmdline(7).\n";

    #[test]
    fn what_is_not_certain_is_not_stated() {
        let mut facts = Facts::default();
        let none = "This machine has no RDMA device, and no HCA on the PCI bus.\n";
        assert_eq!(
            nothing_expected(&facts, &[], None, &TERMINAL),
            format!("{none}{UNEXPECTED}{TRY}")
        );
        let complaint = "/proc/cmdline:1: rd.ib.link=x: too short".to_owned();
        assert_eq!(
            nothing_expected(&facts, &[complaint], None, &TERMINAL),
            format!("{none}/proc/cmdline:1: rd.ib.link=x: too short\n{TRY}")
        );
        facts.unread.push(Unread {
            path: "/sys/class/infiniband".to_owned(),
            why: "Permission denied".to_owned(),
            obstacle: None,
        });
        assert_eq!(
            nothing_expected(&facts, &[], None, &TERMINAL),
            format!("not known: /sys/class/infiniband: Permission denied\n{UNEXPECTED}{TRY}")
        );
    }

    #[test]
    fn a_silent_device_is_not_ok() {
        let mut facts = sixteen();
        facts.devices.truncate(2);
        facts.devices[1].silent_s = Some(47);
        let silent = "mlx5_1 has not answered for 30 s (firmware?)";
        let rows = |facts: &Facts| -> Vec<Row> {
            facts.ports().map(|port| row(port, None, facts)).collect()
        };
        let text = table(rows(&facts), &TERMINAL);
        let found: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("answered"))
            .collect();
        assert_eq!(found, [format!("  {silent}"), format!("  {silent}")]);
        facts.devices[1].ports.clear();
        assert!(!table(rows(&facts), &TERMINAL).contains("answered"));
        let text = nothing_expected(&facts, &[], None, &TERMINAL);
        let expected = format!("This machine has 2 RDMA devices.\n{silent}\n{UNEXPECTED}{TRY}");
        assert_eq!(text, expected);
    }

    #[test]
    fn hostile_text_does_not_reach_the_terminal() {
        let facts = Facts {
            functions: vec![Function {
                address: "0000:81:00.0".to_owned(),
                id: "15b3:101b".to_owned(),
                expected: true,
                kernel: vec!["\x1b[2Jmlx5_core\n".to_owned()],
                ..Function::default()
            }],
            ..Facts::default()
        };
        let complaints = ["\x1b]0;x\x07".to_owned()];
        let text = nothing_expected(&facts, &complaints, None, &TERMINAL);
        assert!(!text.contains(['\x1b', '\x07']), "{text:?}");
        assert!(text.contains("\\x1b[2J"), "{text:?}");
        assert!(text.contains("\n\\x1b]0;x\\x07\n"), "{text:?}");
    }

    #[test]
    fn addresses_that_cannot_be_used_are_marked() {
        let found = |text: &str, state| FoundAddress {
            address: text.parse().unwrap(),
            state,
        };
        let netdev = Netdev {
            addresses: vec![
                found("fe80::5/64", AddressState::Usable),
                found("febf::5/64", AddressState::Usable),
                found("10.0.0.5/24", AddressState::Usable),
                found("fd00::5/64", AddressState::Tentative),
                found("fd00::6/64", AddressState::Duplicate),
            ],
            ..Netdev::default()
        };
        let shown = "10.0.0.5/24 fd00::5/64 (tentative) fd00::6/64 (duplicate)";
        assert_eq!(addresses(&netdev).as_deref(), Some(shown));
        assert_eq!(addresses(&Netdev::default()), None);
        let bond = Netdev {
            ifname: "bond0".to_owned(),
            bond: Some(BondFacts {
                slaves: vec!["eth0".to_owned()],
                ..BondFacts::default()
            }),
            addresses: vec![found("10.0.0.5/24", AddressState::Usable)],
            ..Netdev::default()
        };
        let slave = |name: &str| Netdev {
            ifname: name.to_owned(),
            ..Netdev::default()
        };
        let facts = Facts {
            netdevs: vec![bond],
            ..Facts::default()
        };
        let of_bond = addresses_of_bond(&slave("eth0"), &facts);
        assert_eq!(of_bond.as_deref(), Some("10.0.0.5/24 (bond0)"));
        assert_eq!(addresses_of_bond(&slave("eth1"), &facts), None);
    }

    #[test]
    fn a_link_without_a_port_stands_in_the_column_of_what_was_requested() {
        let facts = Facts::default();
        let cells = |target: &str, id| {
            let wish = LinkWish {
                target: Target::from(target.to_owned()),
                ..LinkWish::default()
            };
            let finding = Finding::failed(id, "none", target);
            let link = LinkReport::new(&wish, None, vec![finding]);
            let [_, port, netdev, ..] = without_port(&link, &facts).cells;
            (port, netdev)
        };
        let device = Id::DevicePresent;
        for (target, id, port, netdev) in [
            ("any port", device, "any port", "-"),
            ("pci=0000:81:00.0", device, "pci=0000:81:00.0", "-"),
            ("mlx5_9:1", device, "mlx5_9:1", "-"),
            ("ib0", device, "-", "ib0"),
            ("bond0", Id::BondPresent, "bond", "bond0"),
        ] {
            let expected = (port.to_owned(), netdev.to_owned());
            assert_eq!(cells(target, id), expected);
        }
    }
}
