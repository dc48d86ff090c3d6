// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jitter and transaction numbers: SplitMix64 (Steele, Lea, Flood 2014). No number is a secret; the
//! seed differs from node to node.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use crate::system::clock::boottime_ns;

/// A seed that differs between nodes by the address, and between clients of a node by the time and
/// the kernel's random numbers.
pub(super) fn seed(address: &[u8]) -> u64 {
    let mut seed = RandomState::new().build_hasher();
    seed.write(address);
    seed.write_u64(boottime_ns());
    seed.finish()
}

/// The SplitMix64 generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of the full 32-bit range.
    pub fn next_u32(&mut self) -> u32 {
        // The upper half of 64 bits always fits.
        u32::try_from(self.next() >> 32).unwrap_or(0)
    }

    /// A number below `limit`; 0 for 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next().checked_rem(limit).unwrap_or(0)
    }
}
