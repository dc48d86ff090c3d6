// SPDX-License-Identifier: MIT OR Apache-2.0
//! ibboot: bring up, verify and hand over InfiniBand and RoCE links during early boot.
//!
//! One direction: command line -> [`request`] -> [`plan`] -> actions ([`up`]) -> [`facts`] ->
//! [`verify`] -> [`handover`]. Deciding is pure, doing is thin. The rooms look down only: see
//! ARCHITECTURE.md and tests/layers.rs.

#![deny(unsafe_code)]

pub mod ask;
pub mod changes;
pub mod check;
pub mod cli;
pub mod dhcp;
pub mod error;
pub mod facts;
pub mod handover;
pub mod hardware;
pub mod inet;
pub mod keep;
pub mod plan;
pub mod rdma;
pub mod redact;
pub mod request;
pub mod system;
pub mod turn;
pub mod up;
pub mod verify;
pub mod wish;

/// Version of the shapes of the files in /run/ibboot; a reader refuses a higher one.
pub const SCHEMA: u32 = 1;
