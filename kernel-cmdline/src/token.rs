// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of arguments, and their tokens.

use crate::redact::Shown;

/// One source of kernel arguments, such as `/proc/cmdline`.
///
/// Sources are given to [`crate::parse`] in the order in which dracut reads them:
/// `/etc/cmdline.d/*.conf`, `/etc/cmdline`, `/proc/cmdline`,
/// `/run/initramfs/cmdline.d/*.conf`. The last match wins across all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// The name of this source in messages, usually its path.
    pub name: &'a str,
    /// The bytes as read, possibly not UTF-8.
    pub bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// A source with this name and these bytes.
    pub const fn new(name: &'a str, bytes: &'a [u8]) -> Self {
        Self { name, bytes }
    }

    /// The tokens of this source, first to last.
    pub fn tokens(&self) -> Tokens<'a> {
        Tokens {
            source: self.name,
            rest: self.bytes,
            offset: 0,
        }
    }
}

/// One argument as written in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Name of the source.
    pub source: &'a str,
    /// 1-based byte column of the first byte of `raw` in the source. A newline counts as a
    /// space: the source is one line.
    pub column: usize,
    /// The text of the whole argument, quotes included.
    pub raw: &'a [u8],
    /// The text before the `=`, without a leading quote.
    pub key: &'a [u8],
    /// The text behind the `=`, without enclosing quotes. `None` without a `=`.
    pub value: Option<&'a [u8]>,
    /// The source ends while a quote of this argument is open.
    pub unclosed_quote: bool,
}

impl<'a> Token<'a> {
    /// The argument without secrets, printable on one line.
    pub const fn text(&self) -> Shown<'a> {
        Shown(self.raw)
    }

    /// dracut's `getargbool`: `0`, `no` and `off` are false; any other value is true, and so is
    /// an argument without a value.
    pub fn is_true(&self) -> bool {
        !matches!(self.value, Some(b"0" | b"no" | b"off"))
    }
}

/// The tokens of one [`Source`].
///
/// The rules are those of the kernel's `next_arg`, which dracut shares: white space separates
/// arguments, every `"` switches quoting on or off, there is no escape character, and quotes are
/// removed only if they enclose the whole argument or the whole value. An open quote ends with
/// its source.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    source: &'a str,
    rest: &'a [u8],
    offset: usize,
}

/// White space according to C's `isspace` in the C locale.
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

impl<'a> Tokens<'a> {
    /// Length of the argument at the start of `text`, and whether a quote is open at the end of
    /// the argument.
    fn measure(text: &[u8]) -> (usize, bool) {
        let mut quoted = false;
        for (at, &byte) in text.iter().enumerate() {
            if is_space(byte) && !quoted {
                return (at, false);
            }
            if byte == b'"' {
                quoted = !quoted;
            }
        }
        // The newline at the end of a source does not belong to an open value.
        let line_ends = text.iter().rev().take_while(|&&byte| byte == b'\n').count();
        (
            text.len()
                .saturating_sub(if quoted { line_ends } else { 0 }),
            quoted,
        )
    }
}

/// Position of the `=` behind the name. As in the kernel, a leading `=` belongs to the name.
pub(crate) fn equals(body: &[u8]) -> Option<usize> {
    let behind = body.iter().skip(1).position(|&byte| byte == b'=');
    behind.map(|at| at.saturating_add(1))
}

/// The key and the value of one argument.
fn split(raw: &[u8]) -> (&[u8], Option<&[u8]>) {
    let (body, enclosed) = match raw.strip_prefix(b"\"") {
        Some(inner) => (inner, true),
        None => (raw, false),
    };
    let unquoted = body.strip_suffix(b"\"");
    let Some((key, rest)) = equals(body).and_then(|at| body.split_at_checked(at)) else {
        return match unquoted {
            Some(inner) if enclosed => (inner, None),
            _ => (body, None),
        };
    };
    let value = rest.strip_prefix(b"=").unwrap_or(rest);
    let value = match value.strip_prefix(b"\"") {
        Some(inner) => inner.strip_suffix(b"\"").unwrap_or(inner),
        None if enclosed => value.strip_suffix(b"\"").unwrap_or(value),
        None => value,
    };
    (key, Some(value))
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let blank = self.rest.iter().take_while(|&&byte| is_space(byte)).count();
        let text = self.rest.get(blank..)?;
        if text.is_empty() {
            self.rest = text;
            return None;
        }
        let start = self.offset.saturating_add(blank);
        let (length, unclosed_quote) = Self::measure(text);
        let (raw, rest) = text.split_at_checked(length)?;
        self.rest = rest;
        self.offset = start.saturating_add(length);
        let (key, value) = split(raw);
        Some(Token {
            source: self.source,
            column: start.saturating_add(1),
            raw,
            key,
            value,
            unclosed_quote,
        })
    }
}

/// All sources as one command line.
#[derive(Debug, Clone, Copy)]
pub struct Cmdline<'a> {
    sources: &'a [Source<'a>],
}

impl<'a> Cmdline<'a> {
    /// The command line of all `sources`, in reading order.
    pub const fn new(sources: &'a [Source<'a>]) -> Self {
        Self { sources }
    }

    /// Every token of every source, in reading order.
    pub fn tokens(&self) -> impl Iterator<Item = Token<'a>> + use<'a> {
        self.sources.iter().flat_map(Source::tokens)
    }

    /// Every token whose name is exactly `key`, in reading order (dracut's `getargs`).
    pub fn all(&self, key: &'a str) -> impl Iterator<Item = Token<'a>> + use<'a> {
        self.tokens()
            .filter(move |token| token.key == key.as_bytes())
    }
}

/// A decimal number without sign or spaces.
pub(crate) fn decimal(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
