// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages that a client sends in each exchange (RFC 8415 18.2).

use std::net::Ipv6Addr;

use super::{Client, State};
use crate::dhcp::v6::lease::Lease;
use crate::dhcp::v6::packet::{Association, Kind, Message, option};
use crate::hardware::unhex;

/// Option 6.
const REQUESTED: [u16; 3] = [
    option::NAME_SERVERS,
    option::DOMAIN_LIST,
    option::SOL_MAX_RT,
];
/// One hundredth of a second in ns, the unit of option 8.
const HUNDREDTH: u64 = 10_000_000;

/// Hundredths of a second since the exchange began (RFC 8415 21.9).
pub(in crate::dhcp::v6) fn elapsed(began_ns: u64, now_ns: u64) -> u16 {
    u16::try_from(now_ns.saturating_sub(began_ns) / HUNDREDTH).unwrap_or(u16::MAX)
}

impl Client {
    /// The message of the exchange.
    pub(super) fn message(&self, now_ns: u64) -> Option<Message> {
        let held = self.held.as_ref();
        let offered = self.offers.first().map(|offer| &offer.lease);
        Some(match self.state {
            State::Soliciting => {
                let mut message = self.about(Kind::Solicit, now_ns, None, self.requested);
                // Rapid commit could replace a kept address by another address.
                if held.is_none() {
                    message.options.push(option::RAPID_COMMIT, []);
                }
                message
            }
            State::Requesting => self.of_server(Kind::Request, now_ns, offered?),
            State::Renewing => self.of_server(Kind::Renew, now_ns, held?),
            State::Rebinding => self.about(Kind::Rebind, now_ns, None, Some(held?.address)),
            State::Declining => self.of_server(Kind::Decline, now_ns, self.declined.as_ref()?),
            State::Waiting | State::Bound => return None,
        })
    }

    /// A message to one server about the server's address.
    fn of_server(&self, kind: Kind, now_ns: u64, lease: &Lease) -> Message {
        self.about(kind, now_ns, Some(&lease.server_id), Some(lease.address))
    }

    fn about(
        &self,
        kind: Kind,
        now_ns: u64,
        server: Option<&str>,
        address: Option<Ipv6Addr>,
    ) -> Message {
        let identity = &self.config.identity;
        let mut message = Message::new(kind, self.transaction);
        let options = &mut message.options;
        options.push(option::CLIENT_ID, identity.duid.clone());
        if let Some(server) = server.and_then(unhex) {
            options.push(option::SERVER_ID, server);
        }
        let elapsed = elapsed(self.requested_ns, now_ns);
        options.push(option::ELAPSED_TIME, elapsed.to_be_bytes());
        if kind != Kind::Decline {
            let codes: Vec<u8> = REQUESTED.iter().flat_map(|c| c.to_be_bytes()).collect();
            options.push(option::REQUEST, codes);
        }
        let association = Association::asking(identity.iaid, address);
        options.push(option::IA_NA, association.encode());
        message
    }
}
