// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ibboot status`: a row for each port, the failures first. The decisions are pure; the look is
//! that of `ibboot check`.

use crate::check;
use crate::error::{Result, printable};
use crate::facts::reader::ONCE;
use crate::facts::{Facts, Netdev, PortRef, Readers, functions};
use crate::system::root::Root;
use crate::system::terminal::Terminal;
use crate::verify::report::{LinkReport, Report, Status};
use crate::verify::text::colour;
use crate::wish::expectation::Depth;

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
    let Some(expectation) = check::expectation(root)? else {
        let facts = Facts::gather(root, Readers::of(root, ONCE).as_ref(), &[], Depth::Ports);
        let rows: Vec<Row> = facts.ports().map(|port| row(port, None, &facts)).collect();
        return Ok(table(rows, terminal) + &nothing_expected(&facts, terminal));
    };
    let (facts, report) = check::look_and_compare(root, &expectation, false);
    Ok(table(rows(&facts, &report), terminal) + &report.last_line(terminal))
}

/// What a machine that ibboot did not boot has, and what to try.
fn nothing_expected(facts: &Facts, terminal: &Terminal) -> String {
    let devices = facts.devices.len();
    let bare = facts.bare_functions();
    let found = match (devices, bare.is_empty()) {
        (0, true) => "no RDMA device, and no HCA on the PCI bus".to_owned(),
        (0, false) => format!(
            "no RDMA device; on the PCI bus: {}",
            functions::in_words(&bare)
        ),
        (1, _) => "1 RDMA device".to_owned(),
        (devices, _) => format!("{devices} RDMA devices"),
    };
    let lines = [
        format!("This machine has {found}."),
        "ibboot did not boot it: there is no /run/ibboot/expected.json, and the kernel command \
         line requests no link."
            .to_owned(),
        "ibboot plan --cmdline TEXT shows what a command line would do; see ibboot.cmdline(7)."
            .to_owned(),
    ];
    lines.iter().map(|line| terminal.wrapped(line, 0)).collect()
}

/// The rows of the report and of the ports that are not in it, the worst first.
fn rows(facts: &Facts, report: &Report) -> Vec<Row> {
    let port_of = |link: &LinkReport| facts.ports().find(|p| Some(p.name()) == link.name);
    let mut rows: Vec<Row> = report
        .links
        .iter()
        .map(|link| match port_of(link) {
            Some(port) => row(port, Some(link), facts),
            None => without_port(link, facts),
        })
        .collect();
    if !report.has_required() {
        for row in &mut rows {
            let [_, _, _, _, _, _, need, ..] = &mut row.cells;
            "any".clone_into(need);
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

/// Every address that is not link-local.
fn addresses(netdev: Option<&Netdev>) -> String {
    let addresses = netdev.into_iter().flat_map(|netdev| &netdev.addresses);
    let texts = addresses.map(|found| found.address.to_string());
    let global: Vec<String> = texts.filter(|text| !text.starts_with("fe80:")).collect();
    dash(Some(global.join(" ")))
}

fn row(port: PortRef<'_>, link: Option<&LinkReport>, facts: &Facts) -> Row {
    let is_above = |netdev: &&Netdev| {
        let is_parent = netdev.ipoib.as_ref().is_some_and(|ipoib| !ipoib.child);
        is_parent && port.port.port_guid.is_some() && netdev.port_guid() == port.port.port_guid
    };
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
    let rate = rate.map(|rate| format!("{} {}x{}", rate.gbps, rate.width, rate.speed));
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
            addresses(netdev),
        ],
        status: link.map(|link| link.status),
        trouble: link.and_then(trouble),
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
    *name = link.target.to_string();
    *needed = need(Some(link));
    *address = addresses(netdev);
    if let Some(bond) = &link.interface {
        *port = "bond".to_owned();
        name.clone_from(bond);
    }
    Row {
        cells,
        status: Some(link.status),
        trouble: trouble(link),
    }
}

fn trouble(link: &LinkReport) -> Option<String> {
    let finding = link.trouble()?;
    Some(format!(
        "{} [{}]",
        finding.problem(),
        finding.check.row().name
    ))
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
    use crate::facts::{Device, Port};
    use crate::rdma::types::{Guid, PortState};
    use crate::rdma::{parse, types::LinkLayer};
    use crate::verify::checks::Id;
    use crate::verify::report::Finding;
    use crate::wish::expectation::LinkWish;

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
        let terminal = Terminal {
            columns: 80,
            has_colours: false,
        };
        let text = table(rows, &terminal);
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
}
