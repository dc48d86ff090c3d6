// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a brake on what the sender of a message can make the log say, for both families of DHCP.

use std::fmt;

/// Kinds of lines that are said until the brake is loosened.
pub const KINDS: usize = 8;
/// Of a lease the brake takes notice no sooner than this after the first line, in ns: leases of a
/// second are no way around it.
pub const WINDOW: u64 = 60_000_000_000;

/// Why an answer cannot be used: text that may have bytes of its sender in it, and of which kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Never made of what was received: the brake goes by it.
    pub kind: &'static str,
    text: String,
}

impl Reason {
    /// A reason with bytes of the sender in its text.
    pub fn new(kind: &'static str, text: String) -> Reason {
        Reason { kind, text }
    }
}

impl From<&'static str> for Reason {
    fn from(kind: &'static str) -> Reason {
        Reason::new(kind, kind.to_owned())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What was said since the last lease.
#[derive(Debug, Default)]
pub struct Brake {
    said: Vec<&'static str>,
    /// When the first of them was said, ns since kernel start.
    since_ns: u64,
    /// There was a lease since.
    is_loose: bool,
}

impl Brake {
    /// The line to say; none where one of its kind, or [`KINDS`] others, were said already.
    pub fn pass(&mut self, now_ns: u64, kind: &'static str, line: String) -> Option<String> {
        if self.is_loose && now_ns.saturating_sub(self.since_ns) >= WINDOW {
            *self = Brake::default();
        }
        if self.said.len() >= KINDS || self.said.contains(&kind) {
            return None;
        }
        if self.said.is_empty() {
            self.since_ns = now_ns;
        }
        self.said.push(kind);
        Some(if self.said.len() == KINDS {
            format!("{line} (more is counted and not said)")
        } else {
            line
        })
    }

    /// There is a lease: what comes from now on is news, or will be.
    pub fn loosen(&mut self) {
        self.is_loose = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_said_once_and_eight_of_them_until_there_is_a_lease() {
        const ALL: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let mut brake = Brake::default();
        let mut said = Vec::new();
        for text in 0..20_000 {
            let kind = ALL[text % ALL.len()];
            said.extend(brake.pass(7, kind, format!("{kind} of {text}")));
        }
        assert_eq!(said.len(), KINDS);
        assert_eq!(said[1], "b of 1");
        assert_eq!(said[7], "h of 7 (more is counted and not said)");
        assert_eq!(brake.pass(7 + WINDOW, "a", String::new()), None);
        brake.loosen();
        assert_eq!(brake.pass(6 + WINDOW, "a", String::new()), None);
        let again = brake.pass(7 + WINDOW, "a", "a".to_owned());
        assert_eq!(again.as_deref(), Some("a"));
    }
}
