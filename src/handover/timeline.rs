// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the times of the boot as text bars, SVG and JSON.

use serde::{Deserialize, Serialize};

use crate::error::printable;
use crate::handover::{Mark, Phase, State};
use crate::system::clock::seconds;
use crate::verify::report::Report;

impl Phase {
    fn words(self) -> &'static str {
        match self {
            Phase::KernelStart => "kernel start",
            Phase::Started => "ibboot up started",
            Phase::Driver => "driver",
            Phase::DeviceFound => "device found",
            Phase::PortActive => "port ACTIVE",
            Phase::Lease => "DHCP lease",
            Phase::Lease6 => "DHCPv6 lease",
            Phase::Verified => "verified",
            Phase::ServerAnswered => "server answers",
            Phase::HandedOver => "handed over",
            Phase::CheckedAfterBoot => "checked after boot",
        }
    }
}

/// `ibboot timeline --format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Version of the JSON format.
    pub schema: u32,
    /// The marks in order of time.
    pub marks: Vec<Mark>,
}

/// Combines the marks of the initramfs with those of the check after boot.
pub fn timeline(state: &State, check: Option<&Report>) -> Timeline {
    let moment = |phase, start_ns| Mark {
        phase,
        object: String::new(),
        start_ns,
        end_ns: None,
    };
    let mut marks = vec![moment(Phase::KernelStart, 0)];
    marks.extend(state.marks.iter().cloned());
    marks.extend(check.map(|report| moment(Phase::CheckedAfterBoot, report.taken_ns)));
    marks.sort_by_key(|mark| mark.start_ns);
    Timeline {
        schema: crate::SCHEMA,
        marks,
    }
}

const BAR: u64 = 40;

impl Timeline {
    /// Text with one line per mark: seconds since kernel start, a bar, the phase.
    pub fn text(&self) -> String {
        let last = |mark: &Mark| mark.end_ns.unwrap_or(mark.start_ns);
        let end = self.marks.iter().map(last).max().unwrap_or(0).max(1);
        let position = |ns: u64| {
            usize::try_from(u128::from(ns) * u128::from(BAR - 1) / u128::from(end)).unwrap_or(0)
        };
        let mut out = String::new();
        for mark in &self.marks {
            let (from, to) = (position(mark.start_ns), position(last(mark)));
            let bar = match mark.end_ns {
                Some(_) => "=".repeat(to.saturating_sub(from) + 1),
                None => "|".to_owned(),
            };
            let took = mark.end_ns.map_or(String::new(), |end_ns| {
                format!("  ({} s)", seconds(end_ns.saturating_sub(mark.start_ns)))
            });
            let object = if mark.object.is_empty() {
                String::new()
            } else {
                format!(" {}", printable(&mark.object))
            };
            out.push_str(&format!(
                "{:>9}  {:<width$}  {}{object}{took}\n",
                seconds(mark.start_ns),
                format!("{}{bar}", " ".repeat(from)),
                mark.phase.words(),
                width = BAR as usize,
            ));
        }
        out
    }

    /// The same content as an SVG picture: one line per mark, time to the right, seconds at both
    /// ends.
    pub fn svg(&self) -> String {
        const WIDTH: u64 = 960;
        const LEFT: u64 = 260;
        const RIGHT: u64 = 80;
        const ROW: u64 = 22;
        const TOP: u64 = 34;
        let last = |mark: &Mark| mark.end_ns.unwrap_or(mark.start_ns);
        let end = self.marks.iter().map(last).max().unwrap_or(0).max(1);
        let x = |ns: u64| {
            let span = u128::from(WIDTH - LEFT - RIGHT);
            LEFT + u64::try_from(u128::from(ns) * span / u128::from(end)).unwrap_or(0)
        };
        let rows = self.marks.len() as u64;
        let height = TOP + rows * ROW + 12;
        let (axis, bottom) = (TOP - 8, TOP + rows * ROW);
        let (right, above) = (WIDTH - RIGHT, axis - 6);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>Boot, seconds since kernel start</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <path d=\"M{LEFT} {axis}H{right}M{LEFT} {axis}V{bottom}M{right} {axis}V{bottom}\" stroke=\"#bbb\" fill=\"none\"/>\n\
             <text x=\"{LEFT}\" y=\"{above}\">0 s</text>\n\
             <text x=\"{right}\" y=\"{above}\" text-anchor=\"end\">{} s</text>\n",
            seconds(end),
        );
        for (row, mark) in self.marks.iter().enumerate() {
            let y = TOP + row as u64 * ROW;
            let (from, to) = (x(mark.start_ns), x(last(mark)));
            let color = if mark.end_ns.is_some() {
                "#4878a8"
            } else {
                "#c05020"
            };
            let name = format!("{} {}", mark.phase.words(), printable(&mark.object));
            let took = mark.end_ns.map_or_else(
                || seconds(mark.start_ns),
                |end_ns| seconds(end_ns.saturating_sub(mark.start_ns)),
            );
            out.push_str(&format!(
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
                 <rect x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{color}\"/>\n\
                 <text x=\"{}\" y=\"{}\">{took} s</text>\n",
                LEFT - 10,
                y + 11,
                markup(name.trim()),
                to.saturating_sub(from).max(2),
                ROW - 8,
                to + 8,
                y + 11,
            ));
        }
        out.push_str("</svg>\n");
        out
    }
}

/// Escapes text for XML: the name of an object comes from the command line.
fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Characters that XML excludes (XML 1.0, 2.2).
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handover::Mark;
    use crate::handover::Phase;

    #[test]
    fn bars_are_to_scale() {
        let mark = |phase, object: &str, start_ns, end_ns| Mark {
            phase,
            object: object.to_owned(),
            start_ns,
            end_ns,
        };
        let timeline = Timeline {
            schema: 1,
            marks: vec![
                mark(Phase::KernelStart, "", 0, None),
                mark(
                    Phase::Driver,
                    "rdma_rxe",
                    2_000_000_000,
                    Some(4_000_000_000),
                ),
                mark(Phase::Verified, "rxe0/1", 4_000_000_000, None),
            ],
        };
        assert_eq!(
            timeline.text(),
            "    0.000  |                                         kernel start\n\
             \x20   2.000                     =====================  driver rdma_rxe  (2.000 s)\n\
             \x20   4.000                                         |  verified rxe0/1\n"
        );
    }
}
