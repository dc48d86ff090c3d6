// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of others over RDMA, for `up` and for `check`: subnet administrators why an interface has no
//! carrier, and servers whether they answer.

pub mod administrators;
pub mod servers;
