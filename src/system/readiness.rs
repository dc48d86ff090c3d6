// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for our own event files on the event loop.

#![allow(unsafe_code)]

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::system::alarm::Timer;
use crate::system::arrival::Names;

/// A value that owns one open descriptor for its whole lifetime.
///
/// # Safety
///
/// `as_raw_fd` returns the same open descriptor on every call until the value is dropped.
pub unsafe trait OwnsDescriptor: AsRawFd {}

// SAFETY: Timer holds a TimerFd, which owns its descriptor and never replaces it.
unsafe impl OwnsDescriptor for Timer {}
// SAFETY: Names holds an Inotify, which owns its descriptor and never replaces it.
unsafe impl OwnsDescriptor for Names {}
// SAFETY: the standard library's socket is also an OwnedFd.
unsafe impl OwnsDescriptor for UdpSocket {}

/// Implements [`OwnsDescriptor`] for a type with an OwnedFd in a private field. The module of the
/// type must never replace the OwnedFd.
macro_rules! owns_descriptor {
    ($name:ident, $field:tt) => {
        impl std::os::fd::AsRawFd for $name {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                let owned: &std::os::fd::OwnedFd = &self.$field;
                owned.as_raw_fd()
            }
        }

        // SAFETY: `as_raw_fd` returns the descriptor of an OwnedFd, which nothing replaces.
        #[allow(unsafe_code)]
        unsafe impl $crate::system::readiness::OwnsDescriptor for $name {}
    };
}
pub(crate) use owns_descriptor;

/// Registers a nonblocking event file with the current event loop.
pub fn watched<T: OwnsDescriptor>(inner: T) -> io::Result<AsyncFd<T>> {
    // SAFETY: OwnsDescriptor guarantees the requirement: one descriptor, open for the whole life of
    // `inner`, which the AsyncFd owns.
    unsafe { AsyncFd::register_with_interest(inner, Interest::READABLE) }.map_err(io::Error::from)
}

/// Creates the program's event loop, which runs on one thread.
pub fn event_loop() -> crate::error::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| crate::error::Error::io("event loop", "cannot be started", &e))
}
