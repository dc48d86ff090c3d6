// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the result of one check, and its lines of text.

use serde::{Deserialize, Serialize};

use super::checks::Id;
use crate::error::printable;
use crate::facts::{Obstacle, Unread};

/// Result of a check, of a link or of the whole report, in ascending order of severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Passed.
    Ok,
    /// Not evaluated: a parent failed, or another program sees to it.
    Skipped,
    /// Works, but needs attention.
    Warning,
    /// Could not be determined.
    #[default]
    Unknown,
    /// Failed.
    Critical,
}

impl Status {
    /// Exit code of `ibboot check`, as of monitoring plugins (0 ok, 1 warning, 2 critical, 3
    /// unknown).
    pub fn exit_code(self) -> u8 {
        match self {
            Status::Ok | Status::Skipped => 0,
            Status::Warning => 1,
            Status::Critical => 2,
            Status::Unknown => 3,
        }
    }

    /// Failed, or could not be determined.
    pub fn is_wrong(self) -> bool {
        matches!(self, Status::Unknown | Status::Critical)
    }

    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Skipped => "skipped",
            Status::Warning => "WARNING",
            Status::Unknown => "UNKNOWN",
            Status::Critical => "CRITICAL",
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which check.
    pub check: Id,
    /// Its result.
    pub status: Status,
    /// What was found.
    pub found: Option<String>,
    /// What was expected, if the check failed.
    pub expected: Option<String>,
    /// What to do, if the check failed.
    pub hint: Option<String>,
    /// Waiting does not resolve the failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl Finding {
    fn new(check: Id, status: Status) -> Finding {
        Finding {
            check,
            status,
            found: None,
            expected: None,
            hint: None,
            lasting: false,
        }
    }

    /// Marks a failure that waiting does not resolve.
    #[must_use]
    pub fn lasting(mut self) -> Finding {
        self.lasting = true;
        self
    }

    /// Marks a failure that waiting may resolve.
    #[must_use]
    pub fn passing(mut self) -> Finding {
        self.lasting = false;
        self
    }

    /// Passed.
    pub fn ok(check: Id, found: &str) -> Finding {
        Finding {
            found: some(found),
            ..Finding::new(check, Status::Ok)
        }
    }

    /// Failed, with the table's hint.
    pub fn failed(id: Id, found: &str, expected: &str) -> Finding {
        Finding {
            found: some(found),
            expected: some(expected),
            hint: some(id.row().hint),
            ..Finding::new(id, Status::Critical)
        }
    }

    /// The kernel does not report it.
    pub fn unknown(check: Id) -> Finding {
        Finding {
            found: some("not reported"),
            ..Finding::new(check, Status::Unknown)
        }
        .hint("the kernel has no such file for this device")
    }

    /// What was found is no answer.
    pub fn unanswered(id: Id, found: &str) -> Finding {
        Finding {
            found: some(found),
            ..Finding::new(id, Status::Unknown)
        }
        .hint(id.row().hint)
    }

    /// A file that the check needs could not be read.
    pub fn unread(check: Id, unread: &Unread) -> Finding {
        let hint = match unread.obstacle {
            Some(Obstacle::NotRoot) => "run as root",
            Some(Obstacle::Limit) => "raise the limit of processes or files of the caller",
            Some(Obstacle::NoProcess) => "check that this program can execute /proc/self/exe",
            // A file of ibboot: the reason is enough.
            None if unread.path.starts_with("/run/") => "",
            None => "see dmesg, and check that root can read the file",
        };
        Finding {
            found: some(&format!("{}: {}", unread.path, unread.why)),
            ..Finding::new(check, Status::Unknown)
        }
        .hint(hint)
    }

    /// Not evaluated.
    pub fn skipped(check: Id) -> Finding {
        Finding::new(check, Status::Skipped)
    }

    /// Replaces the hint.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Finding {
        self.hint = some(hint);
        self
    }

    /// Turns a failure into a warning.
    #[must_use]
    pub fn as_warning(mut self) -> Finding {
        if self.status == Status::Critical {
            self.status = Status::Warning;
        }
        self
    }

    /// A warning, failed, or could not be determined.
    pub fn needs_attention(&self) -> bool {
        self.status > Status::Skipped
    }

    /// `WHAT FAILED: FOUND, expected EXPECTED`, or `CHECK is not known` in place of the failure. What
    /// failed stands alone if it ends with what was found.
    pub fn problem(&self) -> String {
        let row = self.check.row();
        let mut line = match self.status {
            Status::Unknown => format!("{} is not known", row.name),
            _ => row.failure.to_owned(),
        };
        if self.is_said() {
            return line;
        }
        if let Some(found) = &self.found {
            line.push_str(&format!(": {found}"));
        }
        if let Some(expected) = &self.expected {
            line.push_str(&format!(", expected {expected}"));
        }
        printable(&line)
    }

    /// Whether what failed ends with what was found.
    pub fn is_said(&self) -> bool {
        let failure = self.check.row().failure;
        let is_end = |found: &str| failure.ends_with(&format!(" {found}"));
        self.status != Status::Unknown && self.found.as_deref().is_some_and(is_end)
    }

    /// The problem and what to do: `PROBLEM; HINT`.
    pub fn sentence(&self) -> String {
        self.with_hint(self.problem())
    }

    /// The problem with the name of the check: `PROBLEM [CHECK]`.
    pub fn titled(&self) -> String {
        format!("{} [{}]", self.problem(), self.check.row().name)
    }

    /// The sentence with the name of the check: `PROBLEM [CHECK]; HINT`.
    pub fn named(&self) -> String {
        self.with_hint(self.titled())
    }

    fn with_hint(&self, mut line: String) -> String {
        if let Some(hint) = &self.hint {
            line.push_str(&format!("; {}", printable(hint)));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_of_an_unread_file_fits_what_is_in_the_way() {
        let hint = |path: &str, obstacle| {
            let unread = Unread {
                path: path.to_owned(),
                why: "EACCES".to_owned(),
                obstacle,
            };
            Finding::unread(Id::PortState, &unread).hint
        };
        for (obstacle, expected) in [
            (None, "see dmesg, and check that root can read the file"),
            (Some(Obstacle::NotRoot), "run as root"),
            (
                Some(Obstacle::Limit),
                "raise the limit of processes or files of the caller",
            ),
            (
                Some(Obstacle::NoProcess),
                "check that this program can execute /proc/self/exe",
            ),
        ] {
            let hint = hint("/sys/class/infiniband", obstacle);
            assert_eq!(hint.as_deref(), Some(expected));
        }
        assert_eq!(hint("/run/ibboot/state.json", None), None);
    }

    #[test]
    fn a_warning_is_made_of_failures_only() {
        let unknown = Finding::unknown(Id::HcaPcie).as_warning();
        assert_eq!(unknown.status, Status::Unknown);
        let failed = Finding::failed(Id::HcaPcie, "found", "expected");
        assert_eq!(failed.as_warning().status, Status::Warning);
    }
}
