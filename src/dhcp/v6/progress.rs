// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: how far DHCPv6 came on an interface, and which of the known causes fits when it does not.

use serde::{Deserialize, Serialize};

use super::Wish;
use super::lease::Lease;
use crate::dhcp::progress::{Counts, Diagnosis, Words};
use crate::inet::Router;

/// The exchange that goes on, by its first message (RFC 8415 18.2), as state.json has it; `WAITING` or
/// `BOUND` where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Nothing until the time of `due`, then SOLICIT.
    #[default]
    #[serde(rename = "WAITING")]
    Waiting,
    /// Offers are awaited.
    #[serde(rename = "SOLICIT")]
    Soliciting,
    /// An offer is asked for.
    #[serde(rename = "REQUEST")]
    Requesting,
    /// The server is told that another host has the address.
    #[serde(rename = "DECLINE")]
    Declining,
    /// There is a lease.
    #[serde(rename = "BOUND")]
    Bound,
    /// Its server is asked for more time.
    #[serde(rename = "RENEW")]
    Renewing,
    /// Any server is asked for more time.
    #[serde(rename = "REBIND")]
    Rebinding,
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
    /// State of the client.
    pub state: State,
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
    /// What was found while there is no lease.
    pub fn diagnosis(&self) -> Diagnosis {
        let duid = &self.duid;
        let refused = "give the server a pool for this link, or a reservation for this DUID";
        let foreign = "see whether another node has this port GUID or this client identifier";
        self.counts.diagnosis(Words {
            broken: self.broken.as_deref(),
            is_requesting: self.state == State::Requesting,
            taken: "end the other machine's use of it, or take it out of the server's pool",
            refused: (format!(" (client {duid})"), refused.to_owned()),
            foreign: (
                format!("only answers to others than client {duid}"),
                foreign.to_owned(),
            ),
            silence: self.silence(),
        })
    }

    /// Nobody answers: what a router says of that.
    fn silence(&self) -> Diagnosis {
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
