// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: how far DHCP came on an interface, and which of the known causes fits when it does not.

use serde::{Deserialize, Serialize};

use super::Wish;
use super::lease::Lease;
use crate::dhcp::progress::{Counts, Diagnosis, Words};
use crate::hardware::HardwareType;

/// Where a client is (RFC 2131, figure 5), as state.json has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum State {
    /// Nothing until the time of `due`, then DISCOVER.
    #[default]
    #[serde(rename = "INIT")]
    Waiting,
    /// Offers are awaited.
    Selecting,
    /// An offer is asked for.
    Requesting,
    /// The address of an earlier lease is asked for.
    #[serde(rename = "INIT-REBOOT")]
    Rebooting,
    /// Bound, and the address is asked for on the link.
    Probing,
    /// There is a lease.
    Bound,
    /// Its server is asked for more time.
    Renewing,
    /// Any server is asked for more time.
    Rebinding,
}

/// [`Counts`] in the words of RFC 2131.
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
    #[serde(rename = "why_nak", default, skip_serializing_if = "Option::is_none")]
    why_refused: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why_unusable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken: Option<String>,
}

/// How far it came on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The interface.
    pub interface: String,
    /// Its index, which a rename leaves alone.
    pub index: u32,
    /// ARP hardware type.
    pub hardware_type: HardwareType,
    /// Option 61 as it was sent, in hexadecimal.
    pub client_id: String,
    /// State of the client.
    pub state: State,
    /// What was sent and what came back.
    #[serde(with = "Rfc2131")]
    pub counts: Counts,
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
    /// The probes for the address were not over.
    pub fn is_probing(&self) -> bool {
        self.lease.is_some() && self.state == State::Probing
    }

    /// What was found while there is no lease.
    pub fn diagnosis(&self) -> Diagnosis {
        let id = &self.client_id;
        let (foreign, silence) = if self.hardware_type == HardwareType::InfiniBand {
            (
                "see whether it knows this client identifier and serves InfiniBand (hardware type 32, no hardware address)",
                "a DHCP server or relay must listen in this partition, and serve InfiniBand: dnsmasq does, Kea, busybox udhcpd and a plain ISC dhcpd only behind a relay",
            )
        } else {
            (
                "see whether it knows this client identifier or hardware address",
                "a DHCP server or relay must listen on this network",
            )
        };
        let refused = "look for a second server, or for a reservation in another subnet";
        self.counts.diagnosis(Words {
            broken: self.broken.as_deref(),
            is_requesting: self.state == State::Requesting,
            taken: "end the other machine's use of it, or take it out of the server's range",
            refused: (String::new(), refused.to_owned()),
            foreign: (
                format!("a DHCP server answers others and not client {id}"),
                foreign.to_owned(),
            ),
            silence: (format!("nobody answers client {id}"), silence.to_owned()),
        })
    }
}
