// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queries over RDMA, for `up` and `check`: subnet administrators report why an interface has no
//! carrier, and servers show whether they answer.

pub mod administrators;
pub mod servers;
