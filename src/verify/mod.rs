// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wanted against seen. Pure: no file, no clock, no device is touched here, so the initramfs, the
//! real root and a test on a saved tree run the very same code.

mod bond;
pub mod carrier;
pub mod checks;
pub mod evaluate;
mod interface;
mod lease;
mod module;
pub mod monitoring;
mod object;
mod port;
pub mod report;
mod root;
mod server;
mod text;
mod unread;

pub use evaluate::verify;
