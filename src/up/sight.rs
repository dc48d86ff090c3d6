// SPDX-License-Identifier: MIT OR Apache-2.0
//! A look at the machine, and what one look leaves for the next.

use tokio::time::Instant;

use super::ages::Ages;
use crate::facts::{Facts, Memory, Readers, Touched};
use crate::system::root::Root;
use crate::wish::expectation::Expectation;

/// What the looks of one walk share.
pub struct Sight {
    readers: Option<Readers>,
    memory: Memory,
    looked: Instant,
    ages: Ages,
}

impl Sight {
    /// `readers` read the RDMA devices, each in a process of its own.
    pub fn new(readers: Option<Readers>) -> Sight {
        Sight {
            readers,
            memory: Memory::default(),
            looked: Instant::now(),
            ages: Ages::default(),
        }
    }

    /// The next look reads `touched` again.
    pub fn touch(&mut self, touched: Touched) {
        self.memory.touch(touched);
    }

    /// Reads again what was touched.
    pub fn look(&mut self, root: &Root, expectation: &Expectation) -> Facts {
        if self.memory.is_all_touched() {
            self.looked = Instant::now();
        }
        let (names, depth) = (expectation.module_names(), expectation.depth());
        let (readers, memory) = (self.readers.as_ref(), &mut self.memory);
        let mut facts = Facts::gather_again(root, readers, memory, &names, depth);
        self.ages.add(&mut facts);
        facts
    }

    /// The start of the last look at everything.
    pub fn looked(&self) -> Instant {
        self.looked
    }

    /// The processes that read the RDMA devices; none where every file is read here.
    pub fn readers(&self) -> Option<&Readers> {
        self.readers.as_ref()
    }

    /// The readers, for the looks of another walk.
    pub fn into_readers(self) -> Option<Readers> {
        self.readers
    }

    /// Whether an RDMA device does not answer its reader.
    pub fn is_any_silent(&self) -> bool {
        self.readers.as_ref().is_some_and(Readers::is_any_silent)
    }
}
