// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: removes secrets from texts before they are written to files that other users than root can
//! read, or to a bug report. [`kernel_cmdline::Shown`] finds the secrets of an argument,
//! [`kernel_cmdline::place`] those of a place on the network.

use kernel_cmdline::HIDDEN;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A place on the network, as a mount or a DHCP server names it, without user, password and query.
pub fn place(text: &str) -> String {
    String::from_utf8_lossy(&kernel_cmdline::place(text.as_bytes()).concat()).into_owned()
}

/// Whether a secret was removed from the text.
pub fn is_redacted(text: &str) -> bool {
    text.contains(HIDDEN)
}

/// Fields that hold a place: they are written without the secret. A secret in a file of an older
/// version is dropped when the file is read.
pub mod places {
    use super::{Deserialize, Deserializer, Serialize, Serializer, place};

    /// `serialize_with` of serde.
    pub fn serialize<S: Serializer>(text: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
        text.as_deref().map(place).serialize(to)
    }

    /// `deserialize_with` of serde.
    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<String>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        Ok(text.as_deref().map(place))
    }
}

/// Reads an argument from a file of /run/ibboot, without its secret (`deserialize_with` of serde):
/// the ibboot of the initramfs may be older, and may have written the whole argument.
pub fn argument<'a, D: Deserializer<'a>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let shown = kernel_cmdline::Shown(text.as_bytes()).pieces().concat();
    Ok(String::from_utf8_lossy(&shown).into_owned())
}
