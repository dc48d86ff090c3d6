// SPDX-License-Identifier: MIT OR Apache-2.0
//! The index of kernel modules for a program whose unit hides /lib/modules: the loader saves what the
//! program needs of it.

use std::io;

use super::client::Loader;
use super::request::Request;
use crate::error::{Error, Result};
use crate::system::directory::Directory;
use crate::system::modules::Index;
use crate::system::root::Root;

/// The folder that the unit hides (ProtectKernelModules=, systemd.exec(5)).
const MODULES: &str = "/lib/modules";
/// The file in /run/ibboot.
const FILE: &str = "modules.json";

/// The loader's end: saves the index.
pub(super) fn save(index: &Index) -> Result<()> {
    let json = serde_json::to_vec(index)
        .map_err(|e| Error::new(FILE, "cannot be made").found(e.to_string()))?;
    Directory::open()?.write(FILE, &json)
}

impl Loader {
    /// The index of the running kernel ([`Index::read`]).
    pub async fn index(&self, root: &Root) -> Result<Index> {
        if !is_hidden(root) {
            return Index::read(root);
        }
        self.do_this(Request::Index).await?;
        let path = format!("/run/ibboot/{FILE}");
        let json = root
            .read(&path)
            .map_err(|e| Error::io(&path, "cannot be read", &e))?;
        parse(&json).map_err(|e| Error::new(path, "does not parse").found(e.to_string()))
    }
}

fn parse(json: &[u8]) -> serde_json::Result<Index> {
    serde_json::from_slice(json)
}

fn is_hidden(root: &Root) -> bool {
    let list = root.list(MODULES);
    list.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
}
