// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DHCP client against real servers (dnsmasq, ISC dhcpd, Kea) and hostile servers, each in its
//! own network namespace behind a veth pair. Needs root; a test reports a missing server as
//! skipped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod alone;
#[path = "dhcp/hostile.rs"]
mod hostile;
#[path = "dhcp/ipxe.rs"]
mod ipxe;
#[path = "dhcp/keeping.rs"]
mod keeping;
#[path = "dhcp/network.rs"]
mod network;
#[path = "dhcp/others.rs"]
mod others;
mod pace;
mod program;
#[path = "dhcp/secrets.rs"]
mod secrets;
#[path = "dhcp/servers.rs"]
mod servers;
#[path = "dhcp/six.rs"]
mod six;
#[path = "dhcp/six_hostile.rs"]
mod six_hostile;
#[path = "dhcp/six_keeping.rs"]
mod six_keeping;
mod skip;
#[path = "dhcp/standing.rs"]
mod standing;
