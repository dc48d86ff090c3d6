// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: limits the log lines that the sender of a message can cause, for both families of DHCP.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::system::decoder::is_line;

/// Kinds of lines that are logged before the brake closes.
pub const KINDS: usize = 8;
/// A lease opens the brake no sooner than this after the first line, in ns: leases of one second
/// must not bypass the brake.
pub const WINDOW: u64 = 60_000_000_000;

/// Why an answer cannot be used: a text that may contain bytes of the sender, and its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Never made of received bytes: the brake compares kinds.
    pub kind: Cow<'static, str>,
    text: String,
}

impl Reason {
    /// A reason whose text contains bytes of the sender.
    pub fn new(kind: &'static str, text: String) -> Reason {
        let kind = kind.into();
        Reason { kind, text }
    }

    /// Whether a decoder can have sent this.
    pub fn is_sound(&self) -> bool {
        is_line(&self.kind) && is_line(&self.text)
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

/// The kinds that were logged since the last lease.
#[derive(Debug, Default)]
pub struct Brake {
    logged: Vec<Cow<'static, str>>,
    /// When the first kind was logged, ns since kernel start.
    since_ns: u64,
    /// A lease was granted since then.
    is_loose: bool,
}

impl Brake {
    /// The line to log; none if a line of this kind, or [`KINDS`] other kinds, were logged already.
    pub fn pass(
        &mut self,
        now_ns: u64,
        kind: impl Into<Cow<'static, str>>,
        line: String,
    ) -> Option<String> {
        let kind = kind.into();
        if self.is_loose && now_ns.saturating_sub(self.since_ns) >= WINDOW {
            *self = Brake::default();
        }
        if self.logged.len() >= KINDS || self.logged.contains(&kind) {
            return None;
        }
        if self.logged.is_empty() {
            (self.since_ns, self.is_loose) = (now_ns, false);
        }
        self.logged.push(kind);
        Some(if self.logged.len() == KINDS {
            format!("{line} (further lines are counted, not logged)")
        } else {
            line
        })
    }

    /// A lease was granted: lines are logged again, once [`WINDOW`] has passed.
    pub fn loosen(&mut self) {
        self.is_loose = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_logged_once_and_eight_kinds_until_a_lease() {
        const ALL: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let mut brake = Brake::default();
        let mut logged = Vec::new();
        for text in 0..20_000 {
            let kind = ALL[text % ALL.len()];
            logged.extend(brake.pass(7, kind, format!("{kind} of {text}")));
        }
        assert_eq!(logged.len(), KINDS);
        assert_eq!(logged[1], "b of 1");
        assert_eq!(logged[7], "h of 7 (further lines are counted, not logged)");
        assert_eq!(brake.pass(7 + WINDOW, "a", String::new()), None);
        brake.loosen();
        assert_eq!(brake.pass(6 + WINDOW, "a", String::new()), None);
        let again = brake.pass(7 + WINDOW, "a", "a".to_owned());
        assert_eq!(again.as_deref(), Some("a"));
    }

    #[test]
    fn a_lease_before_the_first_line_does_not_open_the_brake() {
        let mut brake = Brake::default();
        brake.loosen();
        assert_eq!(brake.pass(7, "a", "a".to_owned()).as_deref(), Some("a"));
        assert_eq!(brake.pass(7 + WINDOW, "a", String::new()), None);
    }
}
