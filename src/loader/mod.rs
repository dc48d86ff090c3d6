// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loader: the process that loads modules and writes files of the kernel for `up`, so that `up`,
//! which other hosts send messages to, needs no power to do so. The requests are a closed list. No
//! request contains a path: the loader makes the path from names that it has checked.

mod cards;
mod client;
mod files;
mod index;
mod netdev;
mod request;
mod serve;
mod write;

pub use cards::is_port_type;
pub use client::Loader;
pub use files::sysctl;
pub use request::{Answer, Interface, PortSet, Request, Write};
pub use serve::serve;
pub use write::{JOB as WRITE, serve as write};

/// The job of the worker.
pub const JOB: &str = "load";

/// Where systemd waits for `up` and starts the loader (ibboot-loader.socket). Outside of /run/ibboot,
/// which exists only if something is requested.
pub const SOCKET: &str = "/run/ibboot-loader";
