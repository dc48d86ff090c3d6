// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may be requested: words only, no rule about a machine.

pub mod bond;
pub mod expectation;
pub mod ipoib;
pub mod origin;
pub mod selector;
pub mod storage;
