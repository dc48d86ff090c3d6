// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's RDMA stack tells and takes: sysfs text, NETLINK_RDMA, uverbs events, umad,
//! rdma_cm.

pub mod cm;
pub mod events;
pub mod mad;
pub mod netlink;
pub mod parse;
pub mod reach;
pub mod sa;
pub mod types;
pub mod umad;
