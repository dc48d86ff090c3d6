// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose hardware address a bond asks for its addresses with.

use tokio::time::Instant;

use super::Walk;
use super::speaker::{PATIENCE, Speaker};
use crate::facts::Netdev;
use crate::wish::bond::Seen;

impl Walk<'_> {
    /// Who asks for the addresses of a bond; `named` are its interfaces as the command line names them.
    pub(super) fn speaker(
        &mut self,
        named: &[Option<&Netdev>],
        netdev: &Netdev,
        seen: &Seen,
        index: u32,
    ) -> Speaker {
        let speaker = Speaker::of_bond(named, seen, false);
        if speaker != Speaker::Awaited || netdev.carrier != Some(true) {
            self.speechless.remove(&index);
            return speaker;
        }
        let since = *self.speechless.entry(index).or_insert_with(Instant::now);
        Speaker::of_bond(named, seen, since.elapsed() >= PATIENCE)
    }

    /// When [`Walk::speaker`] takes another one.
    pub(super) fn speaker_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let ends = self.speechless.values().map(|since| *since + PATIENCE);
        ends.filter(|end| *end > now).min()
    }
}
