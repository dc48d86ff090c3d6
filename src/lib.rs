// SPDX-License-Identifier: MIT OR Apache-2.0
//! ibboot: bring up, verify and hand over InfiniBand and RoCE links during early boot.
//!
//! One direction: command line -> [`request`] -> [`plan`] -> actions ([`up`]) -> [`facts`] ->
//! [`verify`] -> [`report`] and [`handover`]. Deciding is pure, doing is thin.

#![deny(unsafe_code)]

pub mod bond;
pub mod cli;
pub mod dhcp;
pub mod dhcp6;
pub mod dracut;
pub mod drivers;
pub mod error;
pub mod explain;
pub mod facts;
pub mod handover;
pub mod interfaces;
pub mod ipoib;
pub mod keep;
pub mod monitoring;
pub mod peers;
pub mod plan;
pub mod rdma;
pub mod redact;
pub mod report;
pub mod request;
pub mod storage;
pub mod system;
pub mod timeline;
pub mod up;
pub mod verify;
