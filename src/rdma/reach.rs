// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: interprets the connection manager's events: whether a server answers over RDMA
//! (drivers/infiniband/core/cma.c).

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::cm::Event;
use super::types::Guid;

/// A server that must answer (`rd.ib.probe=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Server {
    /// IP address of the server.
    pub address: IpAddr,
    /// Required service, as a port number of RDMA_PS_TCP; none: only the host must answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.address, port).fmt(f),
            None => self.address.fmt(f),
        }
    }
}

/// Result of the test of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAnswer {
    /// The server that was tested.
    #[serde(flatten)]
    pub server: Server,
    /// Answer of the server.
    pub answer: Answer,
}

/// Result of a connection request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The server answers; the local port towards it is known.
    Reached {
        /// GUID of the RDMA device.
        node_guid: Guid,
        /// Port number, from 1.
        port: u32,
    },
    /// The host answers that the service is not offered.
    NoService,
    /// The host of the service rejects connections, with this reason of IBTA 12.6.7.2.
    Rejected(i32),
    /// The request was sent; no answer came.
    Silent,
    /// No ARP or neighbour discovery answer.
    NoNeighbour,
    /// The address is reached through an interface that belongs to no RDMA device.
    NoDevice,
    /// No route to the address.
    NoRoute,
    /// The subnet administrator knows no path; the text is the kernel's error.
    NoPath(String),
    /// The address is resolved through this port, but the kernel connects no request without a queue
    /// pair (iw_cm_connect of drivers/infiniband/core/iwcm.c): an iWARP port.
    Resolved {
        /// GUID of the RDMA device.
        node_guid: Guid,
        /// Port number, from 1.
        port: u32,
    },
    /// The request could not be sent; the text is the reason.
    NotAsked(String),
}

/// Next step of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Resolve the path.
    ResolveRoute,
    /// Send the connection request.
    Connect,
    /// The server answers.
    Reached,
    /// The server has accepted the connection: the server answers, and waits for the end of the
    /// handshake.
    Accepted,
    /// The connection has ended.
    Ended,
    /// The test failed.
    Failed(Answer),
    /// The event is not relevant: wait for the next event.
    Wait,
}

const ADDR_RESOLVED: u32 = 0;
const ADDR_ERROR: u32 = 1;
const ROUTE_RESOLVED: u32 = 2;
const ROUTE_ERROR: u32 = 3;
const CONNECT_RESPONSE: u32 = 5;
const CONNECT_ERROR: u32 = 6;
const UNREACHABLE: u32 = 7;
const REJECTED: u32 = 8;
const ESTABLISHED: u32 = 9;
const DISCONNECTED: u32 = 10;
const DEVICE_REMOVAL: u32 = 11;

/// IB_CM_REJ_INVALID_SERVICE_ID.
const NO_SUCH_SERVICE: i32 = 8;
/// IB_CM_REJ_CONSUMER_DEFINED: the program that sends this reason listens.
const BY_CONSUMER: i32 = 28;

/// The step that follows an event.
pub fn hear(event: Event) -> Next {
    match (event.kind, event.status) {
        (ADDR_RESOLVED, _) => Next::ResolveRoute,
        (ROUTE_RESOLVED, _) => Next::Connect,
        (CONNECT_RESPONSE, _) => Next::Accepted,
        (ESTABLISHED, _) => Next::Reached,
        (DISCONNECTED, _) => Next::Ended,
        // A host without the service also answers, with a positive status.
        (UNREACHABLE, 0..) => Next::Reached,
        (REJECTED, NO_SUCH_SERVICE) => Next::Failed(Answer::NoService),
        (REJECTED, BY_CONSUMER) => Next::Reached,
        (REJECTED, reason) => Next::Failed(Answer::Rejected(reason)),
        (UNREACHABLE, _) => Next::Failed(Answer::Silent),
        (ADDR_ERROR, status) => Next::Failed(unresolved(status)),
        (ROUTE_ERROR, status) => Next::Failed(Answer::NoPath(words(status))),
        (CONNECT_ERROR, status) => Next::Failed(Answer::NotAsked(words(status))),
        (DEVICE_REMOVAL, _) => Next::Failed(Answer::NoDevice),
        _ => Next::Wait,
    }
}

fn unresolved(status: i32) -> Answer {
    match status.saturating_neg() {
        libc::ETIMEDOUT | libc::EHOSTUNREACH => Answer::NoNeighbour,
        libc::ENODEV => Answer::NoDevice,
        libc::ENETUNREACH => Answer::NoRoute,
        _ => Answer::NotAsked(words(status)),
    }
}

/// The kernel's text for a negative errno.
fn words(status: i32) -> String {
    nix::errno::Errno::from_raw(status.saturating_neg())
        .desc()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heard(kind: u32, status: i32) -> Next {
        hear(Event { kind, status })
    }

    #[test]
    fn a_host_without_the_service_still_answers() {
        // IB_SIDR_UNSUPPORTED
        assert_eq!(heard(UNREACHABLE, 1), Next::Reached);
        assert_eq!(heard(UNREACHABLE, -110), Next::Failed(Answer::Silent));
    }

    #[test]
    fn a_missing_service_differs_from_a_silent_one() {
        assert_eq!(heard(REJECTED, 8), Next::Failed(Answer::NoService));
        assert_eq!(heard(REJECTED, 28), Next::Reached);
        assert_eq!(heard(REJECTED, 3), Next::Failed(Answer::Rejected(3)));
        assert_eq!(heard(CONNECT_RESPONSE, 0), Next::Accepted);
        assert_eq!(heard(ESTABLISHED, 0), Next::Reached);
        // The end is the end, whether the server confirms it or not.
        assert_eq!(heard(DISCONNECTED, 0), Next::Ended);
        assert_eq!(heard(DISCONNECTED, -110), Next::Ended);
    }

    #[test]
    fn an_unresolved_address_has_a_reason() {
        assert_eq!(heard(ADDR_ERROR, -110), Next::Failed(Answer::NoNeighbour));
        assert_eq!(heard(ADDR_ERROR, -19), Next::Failed(Answer::NoDevice));
        let other = Answer::NotAsked("Invalid argument".to_owned());
        assert_eq!(heard(ADDR_ERROR, -22), Next::Failed(other));
        let path = Answer::NoPath("Connection timed out".to_owned());
        assert_eq!(heard(ROUTE_ERROR, -110), Next::Failed(path));
        assert_eq!(
            heard(ADDR_ERROR, i32::MIN),
            Next::Failed(Answer::NotAsked("Unknown errno".to_owned()))
        );
    }

    #[test]
    fn the_order_is_address_route_request() {
        assert_eq!(heard(ADDR_RESOLVED, 0), Next::ResolveRoute);
        assert_eq!(heard(ROUTE_RESOLVED, 0), Next::Connect);
        assert_eq!(heard(14, 0), Next::Wait);
    }

    #[test]
    fn a_server_is_written_as_on_the_command_line() {
        let server = |text: &str, port| Server {
            address: text.parse().unwrap(),
            port,
        };
        assert_eq!(server("10.0.0.2", None).to_string(), "10.0.0.2");
        assert_eq!(
            server("fe80::2", Some(20049)).to_string(),
            "[fe80::2]:20049"
        );
    }

    proptest! {
        /// The status comes from the kernel or from another host and can be any number.
        #[test]
        fn every_event_has_a_meaning(kind in 0_u32..20, status: i32) {
            let next = heard(kind, status);
            let is_end = matches!(kind, ADDR_ERROR | ROUTE_ERROR | CONNECT_ERROR | DEVICE_REMOVAL);
            prop_assert!(!is_end || matches!(next, Next::Failed(_)));
            if let Next::Failed(Answer::NoPath(why) | Answer::NotAsked(why)) = next {
                prop_assert!(!why.is_empty() && !why.chars().any(char::is_control));
            }
        }
    }
}
