// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: how far DHCP came on an interface, and which of the known causes fits when it does not.

use serde::{Deserialize, Serialize};

use super::Wish;
use super::lease::Lease;
use crate::hardware::HardwareType;

/// The state's name in which an address is in use and asked for on the link.
pub const PROBING: &str = "PROBING";

/// What was sent and what came back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Messages sent.
    pub sent: u32,
    /// Offers that could be used.
    pub offers: u32,
    /// Leases granted.
    pub acks: u32,
    /// Refusals.
    pub naks: u32,
    /// Servers that offered and did not answer the REQUEST.
    pub unanswered_requests: u32,
    /// Answers to somebody else: another transaction or client identifier.
    pub foreign: u32,
    /// Answers that nobody asked for, FORCERENEW among them.
    pub unsolicited: u32,
    /// Answers that could not be used.
    pub unusable: u32,
    /// Packets for the client's port that are no DHCP.
    pub malformed: u32,
    /// The last refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_nak: Option<String>,
    /// The last answer that could not be used and was told of, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_unusable: Option<String>,
    /// The last granted address that somebody else has.
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
    /// ARP hardware type.
    pub hardware_type: HardwareType,
    /// Option 61 as it was sent, in hexadecimal.
    pub client_id: String,
    /// State of the client (RFC 2131, figure 5).
    pub state: String,
    /// What was sent and what came back.
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
        self.lease.is_some() && self.state == PROBING
    }

    /// What was seen while there is no lease, and one thing to do.
    pub fn diagnosis(&self) -> (String, String) {
        let counts = &self.counts;
        let id = &self.client_id;
        let plain = |seen: &str, hint: &str| (seen.to_owned(), hint.to_owned());
        if let Some(why) = &self.broken {
            return plain(why, "see dmesg");
        }
        if self.state == "REQUESTING" && counts.unanswered_requests == 0 {
            return plain("a server offered an address and is asked for it", "");
        }
        if let Some(taken) = &counts.taken {
            return plain(
                taken,
                "end the other machine's use of it, or take it out of the server's range",
            );
        }
        if let Some(why) = &counts.why_nak {
            return plain(
                why,
                "look for a second server, or for a reservation in another subnet",
            );
        }
        if counts.unanswered_requests > 0 {
            return plain(
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
        let infiniband = self.hardware_type == HardwareType::InfiniBand;
        if counts.foreign > 0 {
            let seen = format!("a DHCP server answers others and not client {id}");
            let hint = if infiniband {
                "see whether it knows this client identifier and serves InfiniBand (hardware type 32, no hardware address)"
            } else {
                "see whether it knows this client identifier or hardware address"
            };
            return (seen, hint.to_owned());
        }
        if counts.sent < 2 {
            return plain("asked just now", "");
        }
        let seen = format!("nobody answers client {id}");
        let hint = if infiniband {
            "a DHCP server or relay must listen in this partition, and serve InfiniBand: dnsmasq does, Kea, busybox udhcpd and a plain ISC dhcpd only behind a relay"
        } else {
            "a DHCP server or relay must listen on this network"
        };
        (seen, hint.to_owned())
    }
}
