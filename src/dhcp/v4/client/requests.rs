// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages that a client sends in each state (RFC 2131, tables 4 and 5; RFC 4390 2).

use std::net::Ipv4Addr;

use super::{Client, Destination, State};
use crate::dhcp::v4::lease::Lease;
use crate::dhcp::v4::packet::{Kind, Message, option};
use crate::hardware::HardwareType;

/// Option 57: a size that both the smallest IPoIB MTU, 2044, and an Ethernet frame can carry.
const MAX_SIZE: u16 = 1472;
/// Option 55, in the order of preference.
const PARAMETERS: [u8; 16] = [
    option::MASK,
    option::CLASSLESS_ROUTES,
    option::ROUTERS,
    option::STATIC_ROUTES,
    option::NAME_SERVERS,
    option::DOMAIN_NAME,
    option::DOMAIN_SEARCH,
    option::HOST_NAME,
    option::ROOT_PATH,
    option::MTU,
    option::BROADCAST,
    option::LEASE_TIME,
    option::RENEW,
    option::REBIND,
    option::TFTP_SERVER,
    option::BOOT_FILE,
];
const UNSPECIFIED: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// Hardware fields of a message (RFC 2131 2).
pub(super) struct Hardware {
    pub htype: u8,
    /// Number of valid bytes in `chaddr`.
    pub hlen: u8,
    pub chaddr: [u8; 16],
}

impl Client {
    /// The message of the state, and its destination.
    pub(super) fn message(&self) -> Option<(Message, Destination)> {
        let (kind, requested, server) = match self.state {
            State::Selecting => (Kind::Discover, self.requested, None),
            State::Rebooting => (Kind::Request, self.requested, None),
            State::Requesting => {
                let offer = self.offers.first()?;
                (Kind::Request, Some(offer.address), Some(offer.server))
            }
            State::Renewing | State::Rebinding => (Kind::Request, None, None),
            State::Waiting | State::Probing | State::Bound => return None,
        };
        let mut message = self.request(kind);
        let mut add = |code: u8, value: Vec<u8>| message.options.insert(code, value);
        if let Some(address) = requested {
            add(option::REQUESTED, address.octets().to_vec());
        }
        if let Some(server) = server {
            add(option::SERVER, server.octets().to_vec());
        }
        add(option::PARAMETERS, PARAMETERS.to_vec());
        add(option::MAX_SIZE, MAX_SIZE.to_be_bytes().to_vec());
        if let Some(class) = &self.config.vendor_class {
            add(option::VENDOR_CLASS, class.clone().into_bytes());
        }
        if let Some(name) = &self.config.host_name {
            add(option::HOST_NAME, name.clone().into_bytes());
        }
        let to = match self.state {
            State::Renewing | State::Rebinding => {
                let held = self.held.as_ref()?;
                // The answer comes to this address: no broadcast flag (RFC 4390 2.3).
                message.ciaddr = held.address;
                message.broadcast = false;
                if self.state == State::Renewing {
                    Destination::Server {
                        from: held.address,
                        to: held.server,
                    }
                } else {
                    Destination::Link(held.address)
                }
            }
            _ => Destination::Link(UNSPECIFIED),
        };
        Some((message, to))
    }

    /// DECLINE, without a parameter request list (RFC 2131, table 5).
    pub(super) fn decline(&self, lease: &Lease) -> Message {
        let mut message = self.request(Kind::Decline);
        let mut add = |code: u8, value: &[u8]| message.options.insert(code, value.to_vec());
        add(option::REQUESTED, &lease.address.octets());
        add(option::SERVER, &lease.server.octets());
        message.broadcast = false;
        message
    }

    fn request(&self, kind: Kind) -> Message {
        let mut message = Message::new(kind, self.xid);
        let own = self.hardware();
        (message.htype, message.hlen, message.chaddr) = (own.htype, own.hlen, own.chaddr);
        message.secs = self.secs;
        // Over InfiniBand `chaddr` reaches no host: answers are broadcast (RFC 4390 2.1).
        message.broadcast = self.config.identity.hardware_type == HardwareType::InfiniBand;
        let id = self.config.identity.client_id.clone();
        message.options.insert(option::CLIENT_ID, id);
        message
    }

    /// The hardware fields of this client; over InfiniBand without an address (RFC 4390 2.1).
    pub(super) fn hardware(&self) -> Hardware {
        let identity = &self.config.identity;
        let mut own = Hardware {
            htype: u8::try_from(identity.hardware_type.number()).unwrap_or(0),
            hlen: 0,
            chaddr: [0; 16],
        };
        if identity.hardware_type != HardwareType::InfiniBand {
            own.hlen = u8::try_from(identity.hardware.len()).unwrap_or(0);
            for (to, from) in own.chaddr.iter_mut().zip(&identity.hardware) {
                *to = *from;
            }
        }
        own
    }
}
