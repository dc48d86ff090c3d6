// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the timeline as text, as wide as the terminal.

use super::lanes::{Fill, Lane};
use super::shares::{noun, tenths};
use super::{Timeline, ticks};
use crate::error::printable;
use crate::handover::Phase;
use crate::system::clock::seconds;
use crate::system::terminal::Terminal;
use crate::verify::checks::Awaits;

/// The widest name of a lane.
const NAME: usize = 24;
/// Columns behind the bar: the time of the verification.
const BEHIND: usize = 12;

impl Fill {
    fn letter(self) -> char {
        match self {
            Fill::Load | Fill::Wait(Awaits::Driver) => 'd',
            Fill::Wait(Awaits::PhysicalLink) => 'p',
            Fill::Wait(Awaits::SubnetManager) => 'm',
            Fill::Wait(Awaits::Carrier) => 'c',
            Fill::Wait(Awaits::Lease) => 'l',
            Fill::Wait(Awaits::Address) => 'a',
            Fill::Wait(Awaits::Server) => 'r',
            Fill::Wait(Awaits::Members) => 'b',
            Fill::Wait(Awaits::Setting) => 's',
        }
    }

    /// In the legend.
    pub(super) fn words(self) -> &'static str {
        match self {
            Fill::Load => noun(Awaits::Driver),
            Fill::Wait(awaits) => noun(awaits),
        }
    }
}

impl Timeline {
    /// Title, shares, lanes with a legend, and the critical chain.
    pub fn text(&self, terminal: &Terminal) -> String {
        let mut out = terminal.wrapped(&self.title(), 0);
        out.push('\n');
        self.write_shares(&mut out, terminal);
        self.write_lanes(&mut out, terminal);
        self.write_chain(&mut out);
        out
    }

    fn write_shares(&self, out: &mut String, terminal: &Terminal) {
        for (ns, share, whose) in self.shares() {
            let head = format!("{:>8} s {:>3} %  ", tenths(ns), self.percent(ns));
            let wrapped = terminal.wrapped(&share.named(&whose), head.len());
            out.push_str(&head);
            out.push_str(wrapped.trim_start());
        }
    }

    fn write_lanes(&self, out: &mut String, terminal: &Terminal) {
        let lanes = self.lanes();
        if lanes.is_empty() {
            return;
        }
        let longest = lanes.iter().map(|lane| lane.name.chars().count()).max();
        let name = longest.unwrap_or(0).min(NAME);
        let width = terminal.columns.saturating_sub(name + 2 + BEHIND).max(10);
        out.push_str(&format!("\n{:name$}  {}\n", "", self.axis(width)));
        for lane in &lanes {
            let shown: String = printable(&lane.name).chars().take(NAME).collect();
            let behind = match lane.verified_ns {
                Some(ns) => format!("  {} s", seconds(ns)),
                None => String::new(),
            };
            let line = format!("{shown:name$}  {}{behind}", self.bar(lane, width));
            out.push_str(line.trim_end());
            out.push('\n');
        }
        let mut legend: Vec<String> = Vec::new();
        for (_, _, fill) in lanes.iter().flat_map(|lane| &lane.spans) {
            let one = format!("{} {}", fill.letter(), fill.words());
            if !legend.contains(&one) {
                legend.push(one);
            }
        }
        if lanes.iter().any(|lane| lane.verified_ns.is_some()) {
            legend.push("V verified".to_owned());
        }
        out.push_str(&terminal.wrapped(&legend.join(", "), name + 2));
    }

    fn column(&self, ns: u64, width: usize) -> usize {
        let last = width.saturating_sub(1);
        let at = u128::from(ns) * (last as u128) / u128::from(self.end_ns());
        usize::try_from(at).unwrap_or(last).min(last)
    }

    /// The seconds over the bars; the first number has the unit.
    fn axis(&self, width: usize) -> String {
        let mut line = String::new();
        let most = u64::try_from(width / 8).unwrap_or(1).max(1);
        for (ns, text) in ticks(self.end_ns(), most) {
            let text = if ns == 0 { "0 s".to_owned() } else { text };
            let at = self.column(ns, width);
            if at >= line.len() && at + text.len() <= width {
                line.push_str(&" ".repeat(at - line.len()));
                line.push_str(&text);
            }
        }
        line
    }

    fn bar(&self, lane: &Lane, width: usize) -> String {
        let mut cells = vec!['.'; width];
        for (from, to, fill) in &lane.spans {
            let (from, to) = (self.column(*from, width), self.column(*to, width));
            for cell in cells.iter_mut().take(to.max(from) + 1).skip(from) {
                *cell = fill.letter();
            }
        }
        if let Some(ns) = lane.verified_ns {
            let at = self.column(ns, width);
            for (column, cell) in cells.iter_mut().enumerate().skip(at) {
                match *cell {
                    _ if column == at => *cell = 'V',
                    '.' => *cell = ' ',
                    // The link was lost again.
                    _ => {}
                }
            }
        }
        cells.into_iter().collect::<String>().trim_end().to_owned()
    }

    fn write_chain(&self, out: &mut String) {
        out.push_str("\ncritical chain, seconds since kernel start:\n");
        for piece in self.pieces() {
            let took = piece.to_ns.saturating_sub(piece.from_ns);
            out.push_str(&format!(
                "{:>10}  {} for {} s\n",
                seconds(piece.from_ns),
                piece.share.named(piece.object),
                seconds(took),
            ));
        }
        let after = self.first(Phase::CheckedAfterBoot);
        let ends = [
            (Some(self.end_ns()), "handed over"),
            (after, "checked after boot"),
        ];
        for (ns, words) in ends {
            if let Some(ns) = ns {
                out.push_str(&format!("{:>10}  {words}\n", seconds(ns)));
            }
        }
    }
}
