// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: how far DHCPv6 came on an interface, and which of the known causes fits when it does not.

use serde::{Deserialize, Serialize};

use super::Wish;
use super::lease::Lease;
use crate::inet::Router;

/// What was sent and what came back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Messages sent.
    pub sent: u32,
    /// Offers (ADVERTISE) that could be used.
    pub offers: u32,
    /// Leases granted.
    pub replies: u32,
    /// Answers that grant nothing.
    pub refusals: u32,
    /// Servers that offered and did not answer the REQUEST.
    pub unanswered_requests: u32,
    /// Answers to somebody else: another transaction or client identifier.
    pub foreign: u32,
    /// Messages that nobody asked for, RECONFIGURE among them.
    pub unsolicited: u32,
    /// Answers that could not be used.
    pub unusable: u32,
    /// Packets for the client's port that are no DHCPv6.
    pub malformed: u32,
    /// The last refusal that was told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_refused: Option<String>,
    /// The last answer that could not be used and was told of, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_unusable: Option<String>,
    /// The last granted address that another host has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
}

/// How far it came on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The interface.
    pub interface: String,
    /// Its index, which a rename leaves alone.
    pub index: u32,
    /// Option 1 as it was sent, in hexadecimal.
    pub duid: String,
    /// Which interface of this DUID.
    pub iaid: u32,
    /// The exchange that goes on, by its first message; `WAITING` or `BOUND` where there is none.
    pub state: String,
    /// What was sent and what came back.
    pub counts: Counts,
    /// What a router said of it.
    pub router: Router,
    /// What was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// What was asked for.
    pub wish: Wish,
    /// `rd.net.timeout.dhcp=` passed as often as `rd.net.dhcp.retry=` allows.
    pub gave_up: bool,
    /// Why nothing can be sent at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

impl Progress {
    /// What was seen while there is no lease, and one thing to do.
    pub fn diagnosis(&self) -> (String, String) {
        let counts = &self.counts;
        let say = |seen: &str, hint: &str| (seen.to_owned(), hint.to_owned());
        if let Some(why) = &self.broken {
            return say(why, "see dmesg");
        }
        if self.state == "REQUEST" && counts.unanswered_requests == 0 {
            return say("a server offered an address and is asked for it", "");
        }
        if let Some(taken) = &counts.taken {
            return say(
                taken,
                "end the other machine's use of it, or take it out of the server's pool",
            );
        }
        if let Some(why) = &counts.why_refused {
            return (
                format!("{why} (client {})", self.duid),
                "give the server a pool for this link, or a reservation for this DUID".to_owned(),
            );
        }
        if counts.unanswered_requests > 0 {
            return say(
                "a server offered an address and did not answer the REQUEST for it",
                "see the server's log",
            );
        }
        if let Some(why) = &counts.why_unusable {
            return (
                format!("only answers that cannot be used: {why}"),
                "correct the server's configuration, or find out whose server that is".to_owned(),
            );
        }
        if counts.foreign > 0 {
            return (
                format!("only answers to others than client {}", self.duid),
                "see whether another node has this port GUID or this client identifier".to_owned(),
            );
        }
        if counts.sent < 2 {
            return say("asked just now", "");
        }
        self.silence()
    }

    /// Nobody answers: what a router says of that.
    fn silence(&self) -> (String, String) {
        let (more, hint) = match self.router {
            Router::Silent => (
                "and no router advertises itself",
                "a DHCPv6 server or relay, and for the routes a router, must serve this partition (tcpdump -i IF 'udp port 547 or icmp6')",
            ),
            Router::Unmanaged | Router::Stateless => (
                "and the router advertises none (M flag)",
                "use ip=IF:auto6 if the router gives addresses, or start a DHCPv6 server for this partition",
            ),
            Router::Managed => (
                "though the router advertises one (M flag)",
                "a DHCPv6 server or relay must listen on this partition (UDP port 547, ff02::1:2)",
            ),
        };
        (
            format!("nobody answers client {}, {more}", self.duid),
            hint.replace("IF", &self.interface),
        )
    }
}
