// SPDX-License-Identifier: MIT OR Apache-2.0
//! One timer for the event loop. tokio's own timer wakes several times before a far deadline (it
//! moves down its wheel level by level); this timer wakes once.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

use super::readiness::watched;

/// A timerfd (timerfd_create(2)) on CLOCK_BOOTTIME.
#[derive(Debug)]
pub struct Alarm {
    timer: AsyncFd<Timer>,
}

/// Wraps nix's TimerFd, which gives out its descriptor only as a borrow.
#[derive(Debug)]
pub struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Alarm {
    /// Creates a timer that is not set; needs the current tokio runtime.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?;
        Ok(Alarm {
            timer: watched(Timer(timer))?,
        })
    }

    /// Waits for `after` from now. A new call replaces an earlier setting.
    pub async fn rings(&self, after: Duration) {
        // Zero would disable the timer.
        let after = TimeSpec::from(after.max(Duration::from_nanos(1)));
        let set = self
            .timer
            .get_ref()
            .0
            .set(Expiration::OneShot(after), TimerSetTimeFlags::empty());
        if set.is_err() {
            return;
        }
        loop {
            let Ok(mut ready) = self.timer.readable().await else {
                return;
            };
            match self.timer.get_ref().0.wait() {
                Err(Errno::EAGAIN) => ready.clear_ready(),
                _ => {
                    ready.clear_ready();
                    return;
                }
            }
        }
    }
}
