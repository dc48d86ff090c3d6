// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: compares the expectation with the facts. No file, clock or device is used, so the
//! initramfs, the real root and a test on a saved tree run the same code.

mod bond;
pub mod carrier;
mod causes;
pub mod checks;
mod degraded;
pub mod elsewhere;
mod evaluate;
pub mod finding;
pub mod guide;
mod interface;
mod lease;
mod link;
mod lookup;
mod module;
pub mod monitoring;
mod object;
mod port;
mod present;
pub mod report;
mod requirement;
mod root;
mod server;
mod siblings;
pub mod text;
mod unended;
mod unnamed;
pub(crate) mod unread;

pub use evaluate::verify;
pub use port::SWEEPING;
pub use requirement::ports;
