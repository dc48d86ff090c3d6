// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the timeline as an SVG picture.

use super::lanes::{Fill, Lane};
use super::shares::tenths;
use super::{Timeline, ticks};
use crate::error::printable;
use crate::system::clock::seconds;
use crate::verify::checks::Awaits;

const WIDTH: u64 = 960;
const LEFT: u64 = 200;
const RIGHT: u64 = 90;
const ROW: u64 = 20;
const BAR: u64 = 14;
const LINE: u64 = 17;

impl Fill {
    /// Colours that differ in brightness too, for readers who see no hues.
    fn colour(self) -> &'static str {
        match self {
            Fill::Load => "#9aa5b1",
            Fill::Wait(Awaits::Driver) => "#7a8591",
            Fill::Wait(Awaits::PhysicalLink) => "#7b3294",
            Fill::Wait(Awaits::SubnetManager) => "#d9822b",
            Fill::Wait(Awaits::Carrier) => "#e8c547",
            Fill::Wait(Awaits::Lease) => "#2b7bba",
            Fill::Wait(Awaits::Address) => "#6fb7e9",
            Fill::Wait(Awaits::Server) => "#1b4f72",
            Fill::Wait(Awaits::Members) => "#4b5320",
            Fill::Wait(Awaits::Setting) => "#c9b8d6",
        }
    }
}

impl Timeline {
    /// Title, shares, a lane for each port with time to the right, and a legend.
    pub fn svg(&self) -> String {
        let (lanes, shares) = (self.lanes(), self.shares());
        let top = 34 + LINE * shares.len() as u64 + 24;
        let bottom = top + ROW * lanes.len() as u64;
        let height = bottom + 40;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"12\" y=\"22\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n",
            title = markup(&self.title()),
        );
        for (row, (ns, share, whose)) in (0_u64..).zip(&shares) {
            let y = 42 + LINE * row;
            out.push_str(&format!(
                "<text x=\"12\" y=\"{y}\">{} s, {} %: {}</text>\n",
                tenths(*ns),
                self.percent(*ns),
                markup(&share.named(whose))
            ));
        }
        self.draw_axis(&mut out, top, bottom);
        for (row, lane) in (0_u64..).zip(&lanes) {
            self.draw_lane(&mut out, lane, top + ROW * row);
        }
        draw_legend(&mut out, &lanes, bottom + 18);
        out.push_str("</svg>\n");
        out
    }

    fn x(&self, ns: u64) -> u64 {
        let span = u128::from(WIDTH - LEFT - RIGHT);
        let at = u128::from(ns.min(self.end_ns())) * span / u128::from(self.end_ns());
        LEFT + u64::try_from(at).unwrap_or(0)
    }

    fn draw_axis(&self, out: &mut String, top: u64, bottom: u64) {
        for (ns, text) in ticks(self.end_ns(), 10) {
            let x = self.x(ns);
            let y = top - 8;
            out.push_str(&format!(
                "<path d=\"M{x} {}V{bottom}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#555\">{text} s</text>\n",
                top - 4
            ));
        }
    }

    fn draw_lane(&self, out: &mut String, lane: &Lane, y: u64) {
        let text = y + 11;
        out.push_str(&format!(
            "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\n",
            LEFT - 8,
            markup(&printable(&lane.name))
        ));
        for (from, to, fill) in &lane.spans {
            let (from, to) = (self.x(*from), self.x(*to));
            out.push_str(&format!(
                "<rect x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"{BAR}\" fill=\"{}\"/>\n",
                to.saturating_sub(from).max(1),
                fill.colour(),
            ));
        }
        if let Some(ns) = lane.verified_ns {
            let x = self.x(ns);
            out.push_str(&format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"3\" height=\"{BAR}\" fill=\"#2e7d32\"/>\n\
                 <text x=\"{}\" y=\"{text}\">{} s</text>\n",
                x + 7,
                seconds(ns),
            ));
        }
    }
}

fn draw_legend(out: &mut String, lanes: &[Lane], y: u64) {
    let mut entries: Vec<(&str, &str)> = Vec::new();
    for (_, _, fill) in lanes.iter().flat_map(|lane| &lane.spans) {
        let words = match fill {
            Fill::Load => "module loads",
            Fill::Wait(_) => fill.words(),
        };
        if !entries.contains(&(fill.colour(), words)) {
            entries.push((fill.colour(), words));
        }
    }
    if lanes.iter().any(|lane| lane.verified_ns.is_some()) {
        entries.push(("#2e7d32", "verified"));
    }
    let mut x = 12;
    for (colour, words) in entries {
        out.push_str(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n\
             <text x=\"{}\" y=\"{}\">{words}</text>\n",
            x + 17,
            y + 10,
        ));
        x += 30 + 7 * words.len() as u64;
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
