// SPDX-License-Identifier: MIT OR Apache-2.0
//! The index of kernel modules for a program whose unit hides /lib/modules: the loader saves what the
//! program needs of it.

use std::io;
use std::time::Duration;

use super::client::Loader;
use super::request::Request;
use crate::error::{Error, Result};
use crate::system::directory::Directory;
use crate::system::modules::Index;
use crate::system::root::Root;

/// The folder that the unit hides (ProtectKernelModules=, systemd.exec(5)).
const MODULES: &str = "/lib/modules";
/// How long the loader may take, with its start on a slow machine.
const LIMIT: Duration = Duration::from_secs(20);
/// The file in /run/ibboot.
const FILE: &str = "modules.json";

/// The loader's end: saves the index.
pub(super) fn save(index: &Index) -> Result<()> {
    let json = serde_json::to_vec(index)
        .map_err(|e| Error::new(FILE, "cannot be created").found(e.to_string()))?;
    Directory::open()?.write(FILE, &json)
}

impl Loader {
    /// The index of the running kernel ([`Index::read`]); an error after `limit` at the latest.
    pub async fn index(&self, root: &Root, limit: Duration) -> Result<Index> {
        if !is_hidden(root) {
            return Index::read(root);
        }
        self.saved_index(root, limit).await
    }

    /// The index that the loader saves.
    async fn saved_index(&self, root: &Root, limit: Duration) -> Result<Index> {
        self.do_within(LIMIT.min(limit), Request::Index).await?;
        let path = format!("/run/ibboot/{FILE}");
        let json = root
            .read(&path)
            .map_err(|e| Error::io(&path, "cannot be read", &e))?;
        serde_json::from_slice(&json)
            .map_err(|e| Error::new(path, "does not parse").found(e.to_string()))
    }
}

/// Whether the unit of this process hides the modules: what else it forbids, the process cannot do.
pub(super) fn is_hidden(root: &Root) -> bool {
    let list = root.list(MODULES);
    list.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;

    use super::*;
    use crate::system::worker::Worker;

    /// Receives requests, and never answers.
    fn silent() -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        tokio::spawn(async move {
            let _far = far;
            pending::<()>().await;
        });
        Ok(worker)
    }

    #[tokio::test(start_paused = true)]
    async fn no_index_is_awaited_beyond_the_deadline() {
        let root = Root::new("/nowhere");
        for (left, waited) in [(7, 7), (180, 20)] {
            let (began, left) = (Instant::now(), Duration::from_secs(left));
            let index = Loader::new(silent).saved_index(&root, left).await;
            assert_eq!(
                index.unwrap_err().to_string(),
                "loader: no answer to: read the index of modules: timed out"
            );
            assert_eq!(began.elapsed(), Duration::from_secs(waited));
        }
    }
}
