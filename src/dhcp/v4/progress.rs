// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the progress of DHCP on an interface, and the known cause that fits while there is no
//! lease.

use serde::{Deserialize, Serialize};

use super::Dhcp4Wish;
use super::lease::Lease;
use crate::dhcp::progress::{Counts, Diagnosis, Words, is_none};
use crate::hardware::HardwareType;
use crate::inet::{Address, Route};

/// State of a client (RFC 2131, figure 5), as in state.json.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum State {
    /// The client waits until `due`, then sends DISCOVER.
    #[default]
    #[serde(rename = "INIT")]
    Waiting,
    /// The client waits for offers.
    Selecting,
    /// The client requests an offer.
    Requesting,
    /// The client requests the address of an earlier lease.
    #[serde(rename = "INIT-REBOOT")]
    Rebooting,
    /// The client has a lease and probes whether another host has the address.
    Probing,
    /// The client has a lease.
    Bound,
    /// The client requests more time from the server of the lease.
    Renewing,
    /// The client requests more time from any server.
    Rebinding,
}

/// [`Counts`] with the names of RFC 2131.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Counts")]
struct Rfc2131 {
    sent: u32,
    offers: u32,
    #[serde(rename = "acks")]
    replies: u32,
    #[serde(rename = "naks")]
    refusals: u32,
    unanswered_requests: u32,
    foreign: u32,
    unsolicited: u32,
    unusable: u32,
    malformed: u32,
    #[serde(default, skip_serializing_if = "is_none")]
    undecoded: u32,
    #[serde(rename = "why_nak", default, skip_serializing_if = "Option::is_none")]
    why_refused: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why_unusable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken: Option<String>,
}

/// The progress on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Name of the interface.
    pub interface: String,
    /// Index of the interface; a rename does not change the index.
    pub index: u32,
    /// ARP hardware type.
    pub hardware_type: HardwareType,
    /// Option 61 as it was sent, in hexadecimal.
    pub client_id: String,
    /// State of the client.
    pub state: State,
    /// Messages sent and answers received.
    #[serde(with = "Rfc2131")]
    pub counts: Counts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The requested settings.
    pub wish: Dhcp4Wish,
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
    /// True while the probes for other hosts with the address are not over.
    pub fn is_probing(&self) -> bool {
        self.lease.is_some() && self.state == State::Probing
    }

    /// Whether `check` shows the same of both clients, apart from their leases.
    pub fn is_alike(&self, other: &Progress) -> bool {
        (self.state, &self.broken) == (other.state, &other.broken)
            && self.counts.are_alike(&other.counts)
    }

    /// Why the client requests the address of its lease anew, if a server refused the lease.
    pub fn refusal(&self) -> Option<&str> {
        let asks_anew = matches!(
            self.state,
            State::Waiting | State::Selecting | State::Requesting | State::Rebooting
        );
        self.counts.why_refused.as_deref().filter(|_| asks_anew)
    }

    /// The cause while there is no lease.
    pub fn diagnosis(&self) -> Diagnosis {
        let id = &self.client_id;
        let (foreign, silence) = if self.hardware_type == HardwareType::InfiniBand {
            (
                "check whether the server knows this client identifier and serves InfiniBand (hardware type 32, no hardware address)",
                "check that a DHCP server or relay runs in this partition: dnsmasq serves an IPoIB interface directly, ISC dhcpd and Kea only behind a relay, busybox udhcpd not at all",
            )
        } else {
            (
                "check whether the server knows this client identifier or hardware address",
                "a DHCP server or relay must listen on this network",
            )
        };
        let refused =
            "look for a second DHCP server on this network, or for a reservation in another subnet";
        self.counts.diagnosis(Words {
            broken: self.broken.as_deref(),
            is_requesting: self.state == State::Requesting,
            request: "DHCPREQUEST",
            taken: "stop the other host from using the address, or remove the address from the pool of the server",
            refused: (String::new(), refused.to_owned()),
            foreign: (
                format!("a DHCP server answers other clients but not client {id}"),
                foreign.to_owned(),
            ),
            silence: (format!("no DHCP server answers client {id}"), silence.to_owned()),
        })
    }
}
