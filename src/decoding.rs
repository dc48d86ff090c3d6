// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder's job: all that is decoded of what other hosts send.

use std::io;

use crate::dhcp::{v4, v6};
use crate::rdma::{cm, mad};
use crate::system::decoder::{self, Decode, entry};

/// The formats, by name.
fn formats() -> [(&'static str, Decode); 5] {
    [
        entry::<v4::answer::Answers>(),
        entry::<v4::arp::Arps>(),
        entry::<v6::answer::Answers>(),
        entry::<mad::Replies>(),
        entry::<cm::Events>(),
    ]
}

/// Does the job ([`decoder::serve`]).
pub fn serve() -> io::Result<()> {
    decoder::serve(&formats())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_format_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = formats().iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), formats().len());
    }
}
