// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what the clients of both families do alike, where the RFCs leave a choice.

use super::random::Random;
use crate::system::clock::SECOND;

/// Unanswered REQUESTs before the next offer, if any, is tried.
pub(super) const IMPATIENT: u32 = 2;
/// Unanswered REQUESTs before the client looks for offers again; DHCPv6 has REQ_MAX_RC, 10, but a boot
/// waits.
pub(super) const REQUESTS: u32 = 4;
/// Offers that are remembered.
pub(super) const OFFERS: usize = 8;
/// How long an offer of a server that failed before waits for a better offer.
pub(super) const GRACE: u64 = 2 * SECOND;
/// Shortest time to a renewal or a repetition: a short lease must not cause a storm.
pub(super) const CLOSE: u64 = SECOND;
/// After boot, a hurried client repeats its request within this time.
const SPREAD: u64 = 10 * SECOND;

/// The wait after a DECLINE that follows `declines` others (RFC 2131 3.1.5): a server whose addresses
/// are all in use must not cause a storm.
pub(super) fn after_decline(declines: u32) -> u64 {
    match declines {
        0 => SECOND,
        _ => 10 * SECOND,
    }
}

/// Whether a client repeats its request at `now_ns`, because a server probably answers now. The client
/// sent the request at `sent_ns` and repeats it at `due`: neither may be within a moment.
pub(super) fn may_hurry(now_ns: u64, sent_ns: u64, due: Option<u64>) -> bool {
    let is_fresh = now_ns < sent_ns.saturating_add(CLOSE);
    !is_fresh && due.is_some_and(|due| due > now_ns.saturating_add(CLOSE))
}

/// When a hurried client repeats its request, which is otherwise due at `due`: the carrier of all nodes
/// of a switch or of a subnet returns at once.
pub(super) fn spread(random: &mut Random, now_ns: u64, due: Option<u64>) -> Option<u64> {
    let at = now_ns.saturating_add(random.below(SPREAD));
    due.map(|due| due.min(at))
}

/// When a lease that was requested at `requested_ns` is renewed: up to a twentieth of its time before
/// T1, which ends at `renew_ns`. A thousand nodes that booted together must not renew together.
pub(super) fn early(random: &mut Random, requested_ns: u64, renew_ns: u64) -> u64 {
    let time = renew_ns.saturating_sub(requested_ns);
    renew_ns.saturating_sub(random.below(time / 20))
}

/// What follows when a lease ended or was refused; `keep`: the root file system depends on the address.
/// Otherwise the holder of the interface removes the address, unless the command line requests it too.
pub(super) fn fate(keep: bool) -> &'static str {
    match keep {
        true => "the address is kept, because the root file system depends on it",
        false => "a new lease is requested",
    }
}
