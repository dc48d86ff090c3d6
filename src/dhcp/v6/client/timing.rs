// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a message is sent again (RFC 8415 15, with the parameters of 7.6).

use super::{Client, State};
use crate::dhcp::v6::answer::Answer;
use crate::system::clock::SECOND;

/// SOL_TIMEOUT, REQ_TIMEOUT, DEC_TIMEOUT.
const SOON: u64 = SECOND;
/// REN_TIMEOUT and REB_TIMEOUT, REN_MAX_RT and REB_MAX_RT.
const RENEW: u64 = 10 * SECOND;
const RENEW_LONGEST: u64 = 600 * SECOND;
/// REQ_MAX_RT.
const REQUEST_LONGEST: u64 = 30 * SECOND;
/// The longest wait between two SOLICITs while a boot waits for the answer, where the RFC has an hour
/// and the server's choice: a server or a partition that comes up late must not cost minutes.
const SOLICIT_LONGEST: u64 = 16 * SECOND;
/// SOL_MAX_RT, after boot.
const SOL_MAX_RT: u32 = 3600;

impl Client {
    /// The wait from the current message to its repetition: the wait doubles, with a tenth of
    /// jitter to either side.
    pub(super) fn next_wait(&mut self) -> u64 {
        let solicit_longest = match self.config.boot_waits {
            true => SOLICIT_LONGEST,
            false => u64::from(self.slowest_s.unwrap_or(SOL_MAX_RT)) * SECOND,
        };
        let (initial, longest) = match self.state {
            State::Renewing | State::Rebinding => (RENEW, RENEW_LONGEST),
            State::Soliciting => (SOON, solicit_longest),
            State::Requesting => (SOON, REQUEST_LONGEST),
            _ => (SOON, u64::MAX / 4),
        };
        let base = match self.wait_ns {
            // The client decides only after the whole first wait (18.2.1).
            0 if self.state == State::Soliciting => {
                return initial + 1 + self.random.below(initial / 10);
            }
            0 => initial,
            before => before.saturating_mul(2).min(longest),
        };
        base - base / 10 + self.random.below(base / 5)
    }

    /// Takes SOL_MAX_RT from a server (21.24).
    pub(super) fn slow_down(&mut self, message: &Answer) {
        self.slowest_s = message.sol_max_rt_s.or(self.slowest_s);
    }
}
