// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a run as a script, read from the beginning.

pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// At most this many bytes.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
