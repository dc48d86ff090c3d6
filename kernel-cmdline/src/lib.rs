// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel command line as an initramfs reads it.
//!
//! Text goes one way: [`Source`] (a name and bytes) -> [`Token`] (an argument and its position)
//! -> [`Arguments`] (typed values, each with its position) and [`Complaint`]s (one line each).
//! The crate allocates nothing: all values borrow from the sources. No input makes it fail or
//! panic: an invalid argument is reported and left out, and so is an argument beyond a fixed
//! capacity.
//!
//! ```
//! use kernel_cmdline::{Mode, Source, parse};
//!
//! let sources = [Source::new("/proc/cmdline", b"quiet rd.ib.mode=connected rd.ib.mut=max")];
//! let arguments = parse(&sources);
//! let mode = arguments.ib.modes.first().unwrap();
//! assert_eq!((mode.value.mode, mode.column), (Mode::Connected, 7));
//! assert_eq!(
//!     arguments.complaints.first().unwrap().to_string(),
//!     "/proc/cmdline:28: rd.ib.mut=****: unknown argument; did you mean rd.ib.mtu?",
//! );
//! ```
//!
//! The rules are dracut's: see [`Tokens`] for quotes, [`Cmdline`] for repeated arguments and
//! [`Token::is_true`] for booleans. [`PARAMETERS`] is the table of all arguments; [`docs`] writes
//! the reference page and the manual page from this table.

#![no_std]
#![forbid(unsafe_code)]

mod args;
mod bond;
mod cluster;
mod complain;
pub mod docs;
mod hwaddr;
mod ip;
mod modules;
mod nearest;
mod net;
mod parse;
mod plain;
mod redact;
mod selector;
mod slip;
mod stacked;
mod table;
mod token;
mod values;
mod wishes;

pub use args::{
    Arguments, BONDS, COMPLAINTS, DEV_NFS, DRIVERS, Dhcp, Drivers, INTERFACES, Ib, List,
    NAMESERVERS, Net, Reason, Root, Single, Spanned, Timeouts, WISHES, is_plain_nfs,
};
pub use bond::{BOND_OPTIONS, BOND_SLAVES, Bond};
pub use complain::{Complaint, Escaped, Problem};
pub use hwaddr::{Guid, HARDWARE_ETHERNET, HARDWARE_INFINIBAND, HwAddr};
pub use ip::{Ip, METHODS, Method, Methods};
pub use modules::{MODULE_NAME, RDMA_MODULES, is_rdma_module};
pub use nearest::nearest;
pub use net::{Prefixed, Route};
pub use parse::{parameter_name, parse};
pub use plain::is_plain;
pub use redact::{HIDDEN, Pieces, Shown, place};
pub use selector::{
    DEVICE_NAME, FULL_MEMBER, INTERFACE_NAME, Interface, PciAddress, Pkey, Selector,
};
pub use stacked::{StackKind, Stacked};
pub use table::{Effect, GROUPS, Group, Origin, PARAMETERS, Parameter};
pub use token::{Cmdline, Source, Token, Tokens};
pub use values::{
    Candidates, ClientId, ClientIdForm, ClientIdValue, ClientIdWish, EXCLUDED_PORTS, Handover,
    Ifname, Limit, Link, LinkKind, LinkLayer, Mode, ModeWish, Mtu, MtuWish, Netns, Number,
    NvmfDiscover, OnFail, PortType, PortTypeWish, Probe, REQUIRED_PORTS, RateWish, Require,
    RoceMode, RoceWish,
};
