// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interfaces of the kernel's RDMA stack: sysfs, NETLINK_RDMA, uverbs events, umad and rdma_cm.

pub mod chardev;
pub mod cm;
pub mod events;
pub mod mad;
pub mod netlink;
pub mod parse;
pub mod reach;
pub mod sa;
pub mod types;
pub mod umad;
