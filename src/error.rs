// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error type of the program. One line names the object, what failed, what was found and
//! expected, and one thing to do.

use std::fmt;

use kernel_cmdline::is_plain;
use serde::{Deserialize, Serialize};

/// Why the program ends, and the exit code (ibboot(8), EXIT STATUS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Invalid arguments: exit 64 (`EX_USAGE`).
    Usage,
    /// Something on the machine failed: exit 1.
    Failed,
    /// The command line requests nothing: exit 2.
    NothingAsked,
    /// The question cannot be answered: exit 3.
    Unknown,
}

impl Kind {
    /// The process exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::NothingAsked => 2,
            Kind::Unknown => 3,
            Kind::Usage => 64,
        }
    }
}

/// `OBJECT: WHAT: FOUND, expected EXPECTED; HINT`, without the parts that are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// Exit class.
    pub kind: Kind,
    /// The file, module, device or argument that failed.
    pub object: String,
    /// What failed.
    pub what: String,
    /// What was found.
    pub found: Option<String>,
    /// What was expected.
    pub expected: Option<String>,
    /// One thing to do.
    pub hint: Option<String>,
}

/// Result with the program's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure of `object`.
    pub fn new(object: impl Into<String>, what: impl Into<String>) -> Self {
        Error {
            kind: Kind::Failed,
            object: object.into(),
            what: what.into(),
            found: None,
            expected: None,
            hint: None,
        }
    }

    /// A failed system call or file access; the errno text is what was found.
    pub fn io(object: impl fmt::Display, what: impl Into<String>, error: &std::io::Error) -> Self {
        Error::new(object.to_string(), what).found(errno_text(error))
    }

    /// Sets the exit class.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds what was found.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// Adds what was expected.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Adds one thing to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The line without the object.
    pub fn reason(&self) -> String {
        let mut line = self.what.clone();
        match (&self.found, &self.expected) {
            (Some(found), Some(expected)) => {
                line.push_str(&format!(": {found}, expected {expected}"))
            }
            (Some(found), None) => line.push_str(&format!(": {found}")),
            (None, Some(expected)) => line.push_str(&format!(": expected {expected}")),
            (None, None) => {}
        }
        if let Some(hint) = &self.hint {
            line.push_str(&format!("; {hint}"));
        }
        printable(&line)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", printable(&self.object), self.reason())
    }
}

impl std::error::Error for Error {}

/// The kernel's words for an errno, without the "(os error N)" of std.
pub fn errno_text(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => nix::errno::Errno::from_raw(code).desc().to_owned(),
        None => error.to_string(),
    }
}

/// External text made safe for a terminal and for one log line: each byte of a character that is
/// not plain becomes `\xNN`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            for byte in c.to_string().bytes() {
                out.push_str(&format!("\\x{byte:02x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_make_one_line() {
        let error = Error::new("rxe0/1", "port is not ACTIVE")
            .found("DOWN")
            .expected("ACTIVE")
            .hint("check the cable");
        assert_eq!(
            error.to_string(),
            "rxe0/1: port is not ACTIVE: DOWN, expected ACTIVE; check the cable"
        );
        assert_eq!(error.kind.exit_code(), 1);
    }

    #[test]
    fn control_characters_never_reach_the_console() {
        let error = Error::new("a\nb", "\x1b[31m");
        assert_eq!(error.to_string(), "a\\x0ab: \\x1b[31m");
        let error = Error::new("\u{202e}sknil", "a\u{2028}b").found("\u{9b}2J\u{feff}");
        assert_eq!(
            error.to_string(),
            "\\xe2\\x80\\xaesknil: a\\xe2\\x80\\xa8b: \\xc2\\x9b2J\\xef\\xbb\\xbf"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_one_plain_line(text in ".*|\\PC*|[\\p{Cf}\\p{Zl}\\p{Zp}\\p{Cc}]*") {
            let line = printable(&text);
            proptest::prop_assert!(line.chars().all(is_plain));
            // Plain text is unchanged.
            let is_same = text.chars().all(is_plain);
            proptest::prop_assert_eq!(line == text, is_same);
        }
    }
}
