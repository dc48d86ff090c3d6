// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for another program to create a file (inotify(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tokio::io::unix::AsyncFd;

use super::readiness::watched;

/// Pause between two looks for the file if the kernel has no inotify.
const LOOK: Duration = Duration::from_millis(100);

/// Wraps nix's Inotify, which gives out its descriptor only as a borrow.
#[derive(Debug)]
pub struct Names(Inotify);

impl AsRawFd for Names {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Waits until `path` exists, in a directory that exists; needs the current tokio runtime.
pub async fn of(path: &Path) {
    let names = watch(path);
    while !path.exists() {
        let changed = match &names {
            Ok(names) => change(names).await,
            Err(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        if changed.is_err() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn watch(path: &Path) -> io::Result<AsyncFd<Names>> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    let directory = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    inotify.add_watch(
        &directory,
        AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO,
    )?;
    watched(Names(inotify))
}

/// Waits until a file of the directory is created or renamed.
async fn change(names: &AsyncFd<Names>) -> io::Result<()> {
    loop {
        let mut ready = names.readable().await?;
        match names.get_ref().0.read_events() {
            Ok(_) => return Ok(()),
            Err(Errno::EAGAIN) => ready.clear_ready(),
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn a_file_is_awaited_whether_it_is_written_or_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let other = dir.path().join("other");
        let write = async {
            // The wait has begun: join polls it first.
            fs::write(&path, "").unwrap();
        };
        tokio::join!(of(&path), write);
        of(&path).await;
        fs::remove_file(&path).unwrap();
        let rename = async {
            fs::write(&other, "").unwrap();
            tokio::task::yield_now().await;
            fs::rename(&other, &path).unwrap();
        };
        tokio::join!(of(&path), rename);
    }

    #[tokio::test(start_paused = true)]
    async fn a_directory_that_cannot_be_watched_is_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("later/file");
        let writing = async {
            tokio::time::sleep(LOOK * 3).await;
            fs::create_dir(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
        };
        tokio::join!(of(&path), writing);
    }
}
