// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the progress of DHCPv6 on an interface, and the known cause that fits while there is no
//! lease.

use serde::{Deserialize, Serialize};

use super::Dhcp6Wish;
use super::lease::Lease;
use crate::dhcp::progress::{Counts, Diagnosis, Words};
use crate::inet::{Address, Route, Router};

/// The current exchange, named by its first message (RFC 8415 18.2), as in state.json; `WAITING` or
/// `BOUND` outside an exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// The client waits until `due`, then sends SOLICIT, or RENEW or REBIND while its lease is valid.
    #[default]
    #[serde(rename = "WAITING")]
    Waiting,
    /// The client waits for offers.
    #[serde(rename = "SOLICIT")]
    Soliciting,
    /// The client requests an offer.
    #[serde(rename = "REQUEST")]
    Requesting,
    /// The client declines an address that another host has.
    #[serde(rename = "DECLINE")]
    Declining,
    /// The client has a lease.
    #[serde(rename = "BOUND")]
    Bound,
    /// The client requests more time from the server of the lease.
    #[serde(rename = "RENEW")]
    Renewing,
    /// The client requests more time from any server.
    #[serde(rename = "REBIND")]
    Rebinding,
}

/// The progress on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Name of the interface.
    pub interface: String,
    /// Index of the interface; a rename does not change the index.
    pub index: u32,
    /// Option 1 as it was sent, in hexadecimal.
    pub duid: String,
    /// The interface of this DUID.
    pub iaid: u32,
    /// State of the client.
    pub state: State,
    /// Messages sent and answers received.
    pub counts: Counts,
    /// What a router advertises about DHCPv6.
    pub router: Router,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The requested settings.
    pub wish: Dhcp6Wish,
    /// The routes of this family that the command line requests on the interface, in `state.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The addresses of this family that the command line requests on the interface, in `state.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// `rd.net.timeout.dhcp=` expired as often as `rd.net.dhcp.retry=` allows.
    pub gave_up: bool,
    /// Why the client cannot send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

impl Progress {
    /// Whether `check` shows the same of both clients, apart from their leases.
    pub fn is_alike(&self, other: &Progress) -> bool {
        (self.state, &self.broken) == (other.state, &other.broken)
            && self.counts.are_alike(&other.counts)
    }

    /// Why the client requests the address of its lease anew, if a server refused the lease.
    pub fn refusal(&self) -> Option<&str> {
        let asks_anew = matches!(
            self.state,
            State::Waiting | State::Soliciting | State::Requesting
        );
        self.counts.why_refused.as_deref().filter(|_| asks_anew)
    }

    /// The cause while there is no lease.
    pub fn diagnosis(&self) -> Diagnosis {
        let duid = &self.duid;
        let refused = "give the server a pool for this link, or a reservation for this DUID";
        let foreign = "check whether another node has this port GUID or this client identifier";
        self.counts.diagnosis(Words {
            broken: self.broken.as_deref(),
            is_requesting: self.state == State::Requesting,
            request: "Request message",
            taken: "stop the other host from using the address, or remove the address from the pool of the server",
            refused: (format!(" (client {duid})"), refused.to_owned()),
            foreign: (
                format!("a DHCPv6 server answers other clients but not client {duid}"),
                foreign.to_owned(),
            ),
            silence: self.silence(),
        })
    }

    /// The cause if no server answers, with what a router advertises.
    fn silence(&self) -> Diagnosis {
        let (more, hint) = match self.router {
            Router::Silent => (
                "and no router sends advertisements",
                "a DHCPv6 server or relay, and for the routes a router, must serve this partition (on the server: tcpdump -i IF 'udp port 547 or icmp6')",
            ),
            Router::Unmanaged | Router::Stateless => (
                "and the router does not advertise DHCPv6 (no M flag)",
                "use ip=IF:auto6 if the router gives addresses, or start a DHCPv6 server for this partition",
            ),
            Router::Managed => (
                "although the router advertises DHCPv6 (M flag)",
                "a DHCPv6 server or relay must listen on this partition (UDP port 547, ff02::1:2)",
            ),
        };
        (
            format!("no DHCPv6 server answers client {}, {more}", self.duid),
            hint.replace("ip=IF", &format!("ip={}", self.interface)),
        )
    }
}
