// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what the connection manager's events mean for the question whether a server answers over
//! RDMA (drivers/infiniband/core/cma.c).

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::cm::Event;
use super::types::Guid;

/// A server that must answer (`rd.ib.probe=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Server {
    /// Its address.
    pub address: IpAddr,
    /// The service that must listen, in RDMA_PS_TCP's numbers; none: the host itself.
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

/// What was learnt of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Which.
    #[serde(flatten)]
    pub server: Server,
    /// What it said.
    pub answer: Answer,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It answers, and it is reached by this port.
    Reached {
        /// GUID of the RDMA device.
        node_guid: Guid,
        /// Port number, from 1.
        port: u32,
    },
    /// The host answers that nobody listens there.
    NoService,
    /// The service's host turns connections away; the reason is IBTA 12.6.7.2's.
    Rejected(i32),
    /// The question went out, and nothing came back.
    Silent,
    /// No ARP or neighbour discovery answer.
    NoNeighbour,
    /// The address lies behind an interface that is of no RDMA device.
    NoDevice,
    /// No route to the address.
    NoRoute,
    /// The subnet administrator knows no path.
    NoPath(String),
    /// It could not be asked, and why.
    NotAsked(String),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask for the path.
    ResolveRoute,
    /// Ask the server.
    Connect,
    /// It answers.
    Reached,
    /// It does not, or not as wanted.
    Failed(Answer),
    /// Not for us.
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
const DEVICE_REMOVAL: u32 = 11;

/// IB_CM_REJ_INVALID_SERVICE_ID.
const NO_SUCH_SERVICE: i32 = 8;
/// IB_CM_REJ_CONSUMER_DEFINED: the one that says so listens.
const BY_CONSUMER: i32 = 28;

/// What an event means.
pub fn hear(event: Event) -> Next {
    match (event.kind, event.status) {
        (ADDR_RESOLVED, _) => Next::ResolveRoute,
        (ROUTE_RESOLVED, _) => Next::Connect,
        (CONNECT_RESPONSE | ESTABLISHED, _) => Next::Reached,
        // A host without the service answers too, and says so with a status of its own.
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

/// The kernel's words for a negative errno.
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
    fn a_host_that_has_not_the_service_answers_all_the_same() {
        // IB_SIDR_UNSUPPORTED
        assert_eq!(heard(UNREACHABLE, 1), Next::Reached);
        assert_eq!(heard(UNREACHABLE, -110), Next::Failed(Answer::Silent));
    }

    #[test]
    fn a_service_that_nobody_offers_is_not_one_that_is_silent() {
        assert_eq!(heard(REJECTED, 8), Next::Failed(Answer::NoService));
        assert_eq!(heard(REJECTED, 28), Next::Reached);
        assert_eq!(heard(REJECTED, 3), Next::Failed(Answer::Rejected(3)));
        assert_eq!(heard(CONNECT_RESPONSE, 0), Next::Reached);
    }

    #[test]
    fn an_address_that_does_not_resolve_says_why() {
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
    fn the_way_is_address_route_question() {
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
        /// The status is the kernel's word or a peer's, and any number.
        #[test]
        fn whatever_is_heard_means_something(kind in 0_u32..20, status: i32) {
            let next = heard(kind, status);
            let is_end = matches!(kind, ADDR_ERROR | ROUTE_ERROR | CONNECT_ERROR | DEVICE_REMOVAL);
            prop_assert!(!is_end || matches!(next, Next::Failed(_)));
            if let Next::Failed(Answer::NoPath(why) | Answer::NotAsked(why)) = next {
                prop_assert!(!why.is_empty() && !why.chars().any(char::is_control));
            }
        }
    }
}
