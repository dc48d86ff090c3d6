// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what may be a secret is taken out of texts before they are written where others than root
//! read, or are sent away in a bug report: [`kernel_cmdline::Shown`] says of an argument what that is,
//! [`kernel_cmdline::place`] of a place on the network.

use kernel_cmdline::HIDDEN;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A place on the network, as a mount or a DHCP server names it, without user, password and query.
pub fn place(text: &str) -> String {
    String::from_utf8_lossy(&kernel_cmdline::place(text.as_bytes()).concat()).into_owned()
}

/// Whether something was taken out.
pub fn is_redacted(text: &str) -> bool {
    text.contains(HIDDEN)
}

/// Fields that hold a place: they are written without its secret, and that of an older file is not
/// even read.
pub mod places {
    use super::{Deserialize, Deserializer, Serialize, Serializer, place};

    /// For serde.
    pub fn serialize<S: Serializer>(text: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
        text.as_deref().map(place).serialize(to)
    }

    /// For serde.
    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<String>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        Ok(text.as_deref().map(place))
    }
}

/// An argument in a file of ours, for serde: an image's ibboot may be older, and have written it whole.
pub fn argument<'a, D: Deserializer<'a>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let shown = kernel_cmdline::Shown(text.as_bytes()).pieces().concat();
    Ok(String::from_utf8_lossy(&shown).into_owned())
}
