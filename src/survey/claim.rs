// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a claim about the machine, with its result, as one line.

use std::fmt;

use crate::error::printable;

/// Result of one claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The claim is true.
    Pass,
    /// The claim is false, or the answer could not be read or parsed.
    Fail(String),
    /// The claim was not tested, for this reason.
    Skip(String),
}

/// `OBJECT WHAT: PASS`, `OBJECT WHAT: FAIL: REASON` or `OBJECT WHAT: SKIP: REASON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The port, device, interface or program.
    pub object: String,
    /// What is claimed, with the measured values.
    pub what: String,
    /// Result.
    pub verdict: Verdict,
}

impl Claim {
    /// A claim that passes or fails.
    pub fn new(
        object: impl Into<String>,
        what: impl Into<String>,
        result: Result<(), impl fmt::Display>,
    ) -> Claim {
        Claim {
            object: object.into(),
            what: what.into(),
            verdict: match result {
                Ok(()) => Verdict::Pass,
                Err(why) => Verdict::Fail(why.to_string()),
            },
        }
    }

    /// A claim that was not tested.
    pub fn skip(object: impl Into<String>, what: impl Into<String>, why: &str) -> Claim {
        Claim {
            object: object.into(),
            what: what.into(),
            verdict: Verdict::Skip(why.to_owned()),
        }
    }

    /// Whether the claim is false.
    pub fn is_false(&self) -> bool {
        matches!(self.verdict, Verdict::Fail(_))
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (object, what) = (&self.object, &self.what);
        f.write_str(&printable(&match &self.verdict {
            Verdict::Pass => format!("{object} {what}: PASS"),
            Verdict::Fail(why) => format!("{object} {what}: FAIL: {why}"),
            Verdict::Skip(why) => format!("{object} {what}: SKIP: {why}"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_one_printable_line() {
        let line = |verdict| Claim {
            object: "mlx5_0/1".into(),
            what: "GET_CONTEXT\naccepted".into(),
            verdict,
        };
        let skipped = Verdict::Skip("\u{1b}[2J".into());
        assert_eq!(
            line(Verdict::Pass).to_string(),
            "mlx5_0/1 GET_CONTEXT\\x0aaccepted: PASS"
        );
        assert_eq!(
            line(skipped).to_string(),
            "mlx5_0/1 GET_CONTEXT\\x0aaccepted: SKIP: \\x1b[2J"
        );
        assert!(line(Verdict::Fail("x".into())).is_false());
    }
}
