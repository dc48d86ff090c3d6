// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the counters of a client of either family, and the known cause that fits while there is no
//! lease.

use serde::{Deserialize, Serialize};

/// Messages sent and received. The names in state.json are those of DHCPv6; `v4::progress` renames
/// them for DHCPv4.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Messages sent.
    pub sent: u32,
    /// Usable offers (OFFER, ADVERTISE).
    pub offers: u32,
    /// Leases granted (ACK, REPLY).
    pub replies: u32,
    /// Answers that grant nothing (NAK, a status).
    pub refusals: u32,
    /// Servers that sent an offer and did not answer the REQUEST.
    pub unanswered_requests: u32,
    /// Answers for another client: another transaction or client identifier.
    pub foreign: u32,
    /// Messages that the client did not request, such as FORCERENEW and RECONFIGURE.
    pub unsolicited: u32,
    /// Unusable answers.
    pub unusable: u32,
    /// Packets for the client's port that are not DHCP.
    pub malformed: u32,
    /// Packets for the client's port that the decoder lost.
    #[serde(default, skip_serializing_if = "is_none")]
    pub undecoded: u32,
    /// The last refusal that was logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_refused: Option<String>,
    /// The last unusable answer that was logged, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_unusable: Option<String>,
    /// The last granted address that another host has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
}

/// Counts one more.
pub(super) fn count(counter: &mut u32) {
    *counter = counter.saturating_add(1);
}

/// Whether nothing was counted.
pub(super) fn is_none(count: &u32) -> bool {
    *count == 0
}

/// The cause, and one thing to do.
pub type Diagnosis = (String, String);

/// Facts and wordings of one family, for the diagnosis.
pub(super) struct Words<'a> {
    /// Why the client cannot send.
    pub broken: Option<&'a str>,
    /// The client has requested an offered address.
    pub is_requesting: bool,
    /// The name of the message that requests an offered address.
    pub request: &'a str,
    /// Hint if another host has the granted address.
    pub taken: &'a str,
    /// Text that follows a server's refusal, and the hint.
    pub refused: Diagnosis,
    /// Cause and hint if only other clients get answers.
    pub foreign: Diagnosis,
    /// Cause and hint if no server answers.
    pub silence: Diagnosis,
}

impl Counts {
    /// Whether both lead to the same diagnosis: of most numbers only whether there is one matters.
    pub(super) fn are_alike(&self, other: &Counts) -> bool {
        let outline = |counts: &Counts| Counts {
            sent: counts.sent.min(2),
            unanswered_requests: counts.unanswered_requests.min(1),
            foreign: counts.foreign.min(1),
            undecoded: counts.undecoded.min(2),
            why_refused: counts.why_refused.clone(),
            why_unusable: counts.why_unusable.clone(),
            taken: counts.taken.clone(),
            ..Counts::default()
        };
        outline(self) == outline(other)
    }

    /// Keeps the reason in [`Counts::why_refused`] or [`Counts::why_unusable`]: the report changes no more
    /// often than the log.
    pub(super) fn note(kept: &mut Option<String>, is_logged: bool, why: String) {
        if is_logged || kept.is_none() {
            *kept = Some(why);
        }
    }

    /// Forgets what a diagnosis rests on: a renewal begins, whose trouble has causes of its own.
    pub(super) fn settle(&mut self) {
        *self = Counts {
            sent: self.sent,
            offers: self.offers,
            replies: self.replies,
            refusals: self.refusals,
            unsolicited: self.unsolicited,
            unusable: self.unusable,
            malformed: self.malformed,
            ..Counts::default()
        };
    }

    /// The cause while there is no lease; the most certain cause comes first.
    pub(super) fn diagnosis(&self, words: Words<'_>) -> Diagnosis {
        let plain = |found: &str, hint: &str| (found.to_owned(), hint.to_owned());
        if let Some(why) = words.broken {
            return plain(why, "see dmesg");
        }
        if words.is_requesting && self.unanswered_requests == 0 {
            return plain(
                "a server offered an address, and the client has requested it",
                "",
            );
        }
        if let Some(taken) = &self.taken {
            return plain(taken, words.taken);
        }
        if let Some(why) = &self.why_refused {
            let (more, hint) = words.refused;
            return (format!("{why}{more}"), hint);
        }
        if self.undecoded > 0 {
            let found = match self.undecoded {
                1 => "a message for the client could not be decoded".to_owned(),
                n => format!("{n} messages for the client could not be decoded"),
            };
            return plain(&found, "look for \"decoder\" in dmesg");
        }
        if self.unanswered_requests > 0 {
            return plain(
                &format!(
                    "a server offered an address but did not answer the {}",
                    words.request
                ),
                "see the server's log",
            );
        }
        if let Some(why) = &self.why_unusable {
            return plain(
                &format!("only unusable answers: {why}"),
                "correct the server's configuration, or find out who runs the server",
            );
        }
        if self.foreign > 0 {
            return words.foreign;
        }
        if self.sent < 2 {
            return plain("the client has just started", "");
        }
        words.silence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_begins_without_the_causes_of_an_earlier_trouble() {
        let mut counts = Counts {
            sent: 9,
            refusals: 1,
            foreign: 3,
            undecoded: 1,
            unanswered_requests: 1,
            why_refused: Some("server 10.0.0.2 refuses (NAK)".to_owned()),
            why_unusable: Some("OFFER from 10.0.0.2: no lease time".to_owned()),
            taken: Some("10.0.0.5 is taken".to_owned()),
            ..Counts::default()
        };
        counts.settle();
        let expected = Counts {
            sent: 9,
            refusals: 1,
            ..Counts::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn counts_are_alike_if_their_diagnosis_is_the_same() {
        let few = Counts {
            sent: 2,
            foreign: 1,
            ..Counts::default()
        };
        let many = Counts {
            sent: 200,
            foreign: 300,
            offers: 5,
            malformed: 7,
            ..few.clone()
        };
        assert!(few.are_alike(&many));
        let others = [
            Counts {
                sent: 1,
                ..few.clone()
            },
            Counts {
                foreign: 0,
                ..few.clone()
            },
            Counts {
                unanswered_requests: 1,
                ..few.clone()
            },
            Counts {
                undecoded: 1,
                ..few.clone()
            },
            Counts {
                why_refused: Some("no".to_owned()),
                ..few.clone()
            },
            Counts {
                why_unusable: Some("no".to_owned()),
                ..few.clone()
            },
            Counts {
                taken: Some("no".to_owned()),
                ..few.clone()
            },
        ];
        for other in &others {
            assert!(!other.are_alike(&many), "{other:?}");
        }
    }

    #[test]
    fn the_most_certain_cause_is_reported() {
        let found = |counts: &Counts, broken, is_requesting| {
            let same = |text: &str| (text.to_owned(), String::new());
            let words = Words {
                broken,
                is_requesting,
                request: "DHCPREQUEST",
                taken: "",
                refused: same(" to me"),
                foreign: same("foreign"),
                silence: same("silence"),
            };
            counts.diagnosis(words).0
        };
        let mut counts = Counts::default();
        assert_eq!(found(&counts, None, false), "the client has just started");
        counts.sent = 2;
        assert_eq!(found(&counts, None, false), "silence");
        counts.foreign = 1;
        assert_eq!(found(&counts, None, false), "foreign");
        counts.why_unusable = Some("OFFER: no mask".to_owned());
        let unusable = "only unusable answers: OFFER: no mask";
        assert_eq!(found(&counts, None, false), unusable);
        let offered = "a server offered an address, and the client has requested it";
        assert_eq!(found(&counts, None, true), offered);
        counts.unanswered_requests = 1;
        let unanswered = "a server offered an address but did not answer the DHCPREQUEST";
        assert_eq!(found(&counts, None, true), unanswered);
        for (undecoded, words) in [
            (1, "a message for the client could not be decoded"),
            (2, "2 messages for the client could not be decoded"),
        ] {
            counts.undecoded = undecoded;
            assert_eq!(found(&counts, None, true), words);
        }
        counts.why_refused = Some("no".to_owned());
        assert_eq!(found(&counts, None, true), "no to me");
        counts.taken = Some("a by b".to_owned());
        assert_eq!(found(&counts, None, true), "a by b");
        assert_eq!(found(&counts, Some("EPERM"), true), "EPERM");
    }
}
