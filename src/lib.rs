// SPDX-License-Identifier: MIT OR Apache-2.0
//! ibboot: bring up, verify and hand over InfiniBand and RoCE links during early boot.
//!
//! Data flows in one direction: command line -> [`request`] -> [`plan`] -> actions ([`up`]) ->
//! [`facts`] -> [`verify`] -> [`handover`]. Decisions are pure functions; the code that acts is
//! thin. A room imports only rooms below it: see ARCHITECTURE.md and tests/layers.rs.

#![deny(unsafe_code)]

pub mod ask;
pub mod changes;
pub mod check;
pub mod cli;
pub mod decoding;
pub mod dhcp;
pub mod error;
pub mod facts;
pub mod generator;
pub mod handover;
pub mod hardware;
pub mod inet;
pub mod keep;
pub mod loader;
pub mod plan;
pub mod preflight;
pub mod rdma;
pub mod redact;
pub mod request;
pub mod status;
pub mod suggest;
pub mod survey;
pub mod system;
pub mod turn;
pub mod up;
pub mod verify;
pub mod wish;

/// Version of the file formats in /run/ibboot; a reader refuses a higher version. A reader passes over
/// fields that it does not know and refuses words that it does not know: the version is raised when an
/// older `check` would verify less than a new field of expected.json requests, and for a new word.
pub const SCHEMA: u32 = 1;

#[cfg(test)]
#[path = "../tests/pace/mod.rs"]
mod pace;
