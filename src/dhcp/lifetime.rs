// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: how long leases last, and the minimum of each of their times.

use crate::system::clock::SECOND;

/// A lease for ever (RFC 2131 3.3, RFC 8415 7.7).
pub const FOR_EVER: u32 = u32::MAX;
/// A shorter lease counts as `SECONDS_MIN`, and no lease is renewed sooner than `RENEW_MIN` after
/// the request. A server's mistake must not make every node send, log and write each second (dhcpcd
/// has the same minimum, DHCP_MIN_LEASE).
pub(super) const SECONDS_MIN: u32 = 20;
const RENEW_MIN: u32 = 5;

/// T1, T2 and the length of a lease, in seconds; each is raised to its minimum.
pub(super) fn floored(renew_s: u32, rebind_s: u32, seconds: u32) -> (u32, u32, u32) {
    (
        renew_s.max(RENEW_MIN),
        rebind_s.max(2 * RENEW_MIN),
        seconds.max(SECONDS_MIN),
    )
}

/// Whether these times can come from [`floored`], with T1 and T2 in their order within the lease.
pub(super) fn is_sound(renew_s: u32, rebind_s: u32, seconds: u32) -> bool {
    let is_long = renew_s >= RENEW_MIN && rebind_s >= 2 * RENEW_MIN && seconds >= SECONDS_MIN;
    is_long && renew_s <= rebind_s && rebind_s <= seconds
}

/// The time `seconds` after `requested_ns`, ns since kernel start; `None`: never.
pub(super) fn end_ns(requested_ns: u64, seconds: u32) -> Option<u64> {
    let length = u64::from(seconds).saturating_mul(SECOND);
    (seconds != FOR_EVER).then(|| requested_ns.saturating_add(length))
}

/// `for 600 s` or `for ever`.
pub(super) fn words(seconds: u32) -> String {
    match seconds {
        FOR_EVER => "for ever".to_owned(),
        seconds => format!("for {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_of_a_lease_is_below_its_floor() {
        assert_eq!(floored(1, 2, 3), (5, 10, 20));
        assert_eq!(floored(30, 50, 60), (30, 50, 60));
    }

    #[test]
    fn a_lease_is_renewed_before_it_is_rebound_and_rebound_before_it_ends() {
        assert!(is_sound(5, 10, 20) && is_sound(FOR_EVER, FOR_EVER, FOR_EVER));
        assert!(!is_sound(4, 10, 20) && !is_sound(5, 9, 20) && !is_sound(5, 10, 19));
        assert!(!is_sound(31, 30, 60) && !is_sound(30, 61, 60));
    }

    #[test]
    fn a_lease_ends_its_length_after_the_request_or_never() {
        assert_eq!(end_ns(7, 2), Some(2_000_000_007));
        assert_eq!(end_ns(u64::MAX - 1, 60), Some(u64::MAX));
        assert_eq!(end_ns(7, FOR_EVER), None);
        assert_eq!(words(60), "for 60 s");
        assert_eq!(words(FOR_EVER), "for ever");
    }
}
