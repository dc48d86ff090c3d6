// SPDX-License-Identifier: MIT OR Apache-2.0
//! The terminal that a person reads: its width and its colours.

#![allow(unsafe_code)]

use std::io::IsTerminal;

/// Columns if nothing else is known.
const USUAL: usize = 80;
/// A narrower table cannot be read.
const LEAST: usize = 40;
/// A line of this length is long enough.
const MOST: usize = 1000;

/// Where a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Width in columns.
    pub columns: usize,
    /// Whether words have colours.
    pub has_colours: bool,
}

/// The colour of a line (ECMA-48, 8.3.117).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// A failure.
    Red = 31,
    /// Success.
    Green = 32,
    /// Something that needs attention.
    Yellow = 33,
}

/// The width of the terminal on standard output (tty_ioctl(4)); a serial console may report 0.
fn width() -> Option<usize> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the kernel writes one winsize, to which the pointer leads for the time of the call.
    let done = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    Some(usize::from(size.ws_col)).filter(|columns| done == 0 && *columns > 0)
}

impl Terminal {
    /// Standard output. The width is `COLUMNS`, otherwise that of the terminal, otherwise 80; colours
    /// only on a terminal, and never with `NO_COLOR` (no-color.org) or `TERM=dumb`.
    pub fn of_output() -> Terminal {
        let variable = |name| std::env::var(name).ok();
        let columns = variable("COLUMNS").and_then(|text| text.parse().ok());
        let columns = columns.or_else(width);
        let is_plain = variable("NO_COLOR").is_some_and(|text| !text.is_empty())
            || variable("TERM").is_none_or(|term| term == "dumb");
        Terminal {
            columns: columns.unwrap_or(USUAL).clamp(LEAST, MOST),
            has_colours: !is_plain && std::io::stdout().is_terminal(),
        }
    }

    /// The text in a colour.
    pub fn coloured(&self, text: &str, colour: Option<Colour>) -> String {
        match colour.filter(|_| self.has_colours) {
            Some(colour) => format!("\x1b[{}m{text}\x1b[0m", colour as u8),
            None => text.to_owned(),
        }
    }

    /// Lines of the text within the width, divided between words and indented.
    pub fn wrapped(&self, text: &str, indent: usize) -> String {
        let mut out = String::new();
        let mut used = 0;
        for word in text.split_ascii_whitespace() {
            let width = word.chars().count();
            if used > 0 && used + 1 + width > self.columns {
                out.push('\n');
                used = 0;
            }
            if used == 0 {
                out.push_str(&" ".repeat(indent));
                used = indent;
            } else {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += width;
        }
        out.push('\n');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_divided_between_words_and_coloured_on_a_terminal() {
        let mut terminal = Terminal {
            columns: 12,
            has_colours: false,
        };
        assert_eq!(terminal.wrapped("one two three", 2), "  one two\n  three\n");
        assert_eq!(
            terminal.wrapped("aninterminableword b", 2),
            "  aninterminableword\n  b\n"
        );
        assert_eq!(terminal.coloured("ok", Some(Colour::Green)), "ok");
        terminal.has_colours = true;
        assert_eq!(
            terminal.coloured("ok", Some(Colour::Green)),
            "\x1b[32mok\x1b[0m"
        );
        assert_eq!(terminal.coloured("ok", None), "ok");
    }
}
