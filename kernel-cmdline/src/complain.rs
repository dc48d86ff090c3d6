// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invalid arguments, each reported on one line.

use core::fmt;
use core::fmt::Write;

use crate::plain::is_plain;
use crate::redact::{HIDDEN, Shown};
use crate::token::Token;

/// Any bytes, displayed on one line: [`is_plain`] characters unchanged, other characters and
/// invalid UTF-8 as `\xNN`, at most [`Escaped::LIMIT`] characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Escaped<'a>(pub &'a [u8]);

impl Escaped<'_> {
    /// Maximum of characters; `...` replaces the others. A log line of the kernel holds some 900
    /// bytes, and the reason stands behind the argument.
    pub const LIMIT: usize = 200;
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, &[self.0])
    }
}

/// Writes the concatenation of `pieces` as one [`Escaped`].
pub(crate) fn escape(f: &mut fmt::Formatter<'_>, pieces: &[&[u8]]) -> fmt::Result {
    let mut shown = 0_usize;
    let mut room = |length: usize| {
        shown = shown.saturating_add(length);
        shown <= Escaped::LIMIT
    };
    for chunk in pieces.iter().flat_map(|piece| piece.utf8_chunks()) {
        for character in chunk.valid().chars() {
            let plain = is_plain(character);
            if !room(if plain {
                1
            } else {
                HEXADECIMAL.saturating_mul(character.len_utf8())
            }) {
                return f.write_str("...");
            }
            if plain {
                f.write_char(character)?;
                continue;
            }
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        for byte in chunk.invalid() {
            if !room(HEXADECIMAL) {
                return f.write_str("...");
            }
            write!(f, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

/// Characters in `\xNN`.
const HEXADECIMAL: usize = 4;

/// Why an argument is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem<'a> {
    /// No argument of this name exists below `rd.ib.`.
    Unknown {
        /// The most similar existing name.
        nearest: Option<&'static str>,
    },
    /// A value is required.
    NoValue,
    /// Bytes that are not UTF-8, or control characters.
    NotText,
    /// A `"` is never closed, so the argument includes everything behind it.
    UnclosedQuote,
    /// Not one of the allowed words.
    NotOneOf {
        /// What the word is.
        what: &'static str,
        /// The word as written.
        text: &'a str,
        /// The allowed words.
        choices: &'static [&'static str],
    },
    /// Not a number, or a number out of range.
    NotNumber {
        /// What the number is.
        what: &'static str,
        /// The number as written.
        text: &'a str,
        /// Smallest number allowed.
        min: u32,
        /// Largest number allowed.
        max: u32,
    },
    /// A part with a syntax error.
    Malformed {
        /// What the part must be, with its article.
        what: &'static str,
        /// The part as written.
        text: &'a str,
        /// What to write.
        hint: &'static str,
    },
    /// A required part is missing.
    Missing {
        /// What is missing, with its article.
        what: &'static str,
        /// What to write.
        hint: &'static str,
    },
    /// Two parts or two arguments exclude each other.
    Contradiction {
        /// What excludes what.
        what: &'static str,
        /// What to write.
        hint: &'static str,
    },
    /// A value that dracut's boolean rule reads as true, although it does not look like that.
    CountsAsTrue {
        /// The value as written.
        text: &'a str,
    },
    /// More arguments of one name than the fixed capacity; the surplus is ignored.
    TooManyArguments {
        /// The name.
        name: &'static str,
        /// The capacity.
        limit: usize,
    },
    /// More elements than the fixed capacity; the surplus is ignored.
    TooMany {
        /// The name of the elements, in the plural.
        what: &'static str,
        /// The capacity.
        limit: usize,
    },
}

impl Problem<'_> {
    /// The argument has an effect all the same.
    pub const fn has_effect(&self) -> bool {
        matches!(self, Self::CountsAsTrue { .. })
    }
}

/// One invalid argument with its position.
///
/// `Display` gives one line: `SOURCE:COLUMN: ARGUMENT: what is wrong; what to do`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complaint<'a> {
    /// Name of the source.
    pub source: &'a str,
    /// 1-based byte column of the argument in the source.
    pub column: usize,
    /// The argument as written.
    pub argument: &'a [u8],
    /// What is wrong with it.
    pub problem: Problem<'a>,
}

impl<'a> Complaint<'a> {
    /// `problem` of the argument `token`. A part of the argument that is not shown may be a secret.
    pub fn new(token: &Token<'a>, mut problem: Problem<'a>) -> Self {
        match &mut problem {
            Problem::NotOneOf { text, .. }
            | Problem::NotNumber { text, .. }
            | Problem::Malformed { text, .. }
            | Problem::CountsAsTrue { text }
                if !token.text().has(text) =>
            {
                *text = HIDDEN;
            }
            _ => {}
        }
        Self {
            source: token.source,
            column: token.column,
            argument: token.raw,
            problem,
        }
    }
}

impl fmt::Display for Complaint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = Escaped(self.source.as_bytes());
        write!(
            f,
            "{source}:{}: {}: {}",
            self.column,
            Shown(self.argument),
            self.problem
        )
    }
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unknown { nearest: Some(name) } => write!(f, "unknown argument; did you mean {name}?"),
            Self::Unknown { nearest: None } => {
                f.write_str("unknown argument; see ibboot.cmdline(7) for all arguments")
            }
            Self::NoValue => f.write_str("the value is missing; write = and a value after the name"),
            Self::NotText => f.write_str("contains bytes that are not text, so the argument is ignored; write the argument in plain ASCII"),
            Self::UnclosedQuote => {
                f.write_str("a \" is never closed, so everything after it belongs to this argument; add the closing \"")
            }
            Self::NotOneOf { what, text, choices } => {
                write!(f, "'{}' is not {what}; ", Escaped(text.as_bytes()))?;
                match crate::nearest::nearest(text, choices.iter().copied()) {
                    Some(choice) => write!(f, "did you mean {choice}?"),
                    None => {
                        f.write_str("write ")?;
                        alternatives(f, choices)
                    }
                }
            }
            Self::NotNumber { what, text, min, max } => {
                write!(f, "'{}' is not {what}; write a number from {min} to {max}", Escaped(text.as_bytes()))
            }
            Self::Malformed { what, text, hint } => {
                write!(f, "'{}' is not {what}; {hint}", Escaped(text.as_bytes()))
            }
            Self::Missing { what, hint } => write!(f, "{what} is missing; {hint}"),
            Self::Contradiction { what, hint } => write!(f, "{what}; {hint}"),
            Self::CountsAsTrue { text } => {
                write!(f, "'{}' counts as 1; write 0, no or off to turn the argument off", Escaped(text.as_bytes()))
            }
            Self::TooManyArguments { name, limit } => {
                write!(f, "too many {name}= arguments: the limit is {limit}; remove some")
            }
            Self::TooMany { what, limit } => write!(f, "too many {what}: the limit is {limit}; remove some"),
        }
    }
}

/// `a, b or c`.
fn alternatives(f: &mut fmt::Formatter<'_>, words: &[&str]) -> fmt::Result {
    let Some((last, others)) = words.split_last() else {
        return Ok(());
    };
    for (at, word) in others.iter().enumerate() {
        write!(f, "{}{word}", if at == 0 { "" } else { ", " })?;
    }
    write!(f, "{}{last}", if others.is_empty() { "" } else { " or " })
}
