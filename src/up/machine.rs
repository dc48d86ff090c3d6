// SPDX-License-Identifier: MIT OR Apache-2.0
//! Through what the walk reads and changes the machine.

use crate::loader::Loader;
use crate::rdma::netlink::Rdma;
use crate::system::modules::Index;
use crate::system::net::Net;
use crate::system::root::Root;

/// The handles of one walk.
pub struct Machine<'a> {
    pub root: &'a Root,
    pub index: &'a Index,
    pub loader: &'a Loader,
    pub net: Net,
    /// None until ib_core is loaded.
    pub rdma: Option<Rdma>,
}

impl Machine<'_> {
    /// Opens NETLINK_RDMA, if that is possible now.
    pub fn open_rdma(&mut self) {
        if self.rdma.is_none() {
            self.rdma = Rdma::open_if_loaded();
        }
    }
}
