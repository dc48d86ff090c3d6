// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which argument requested something.

use std::fmt;

use kernel_cmdline::Spanned;
use serde::{Deserialize, Serialize};

use crate::redact;

/// The position of a wish on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The argument as text without secrets ([`kernel_cmdline::Shown`]).
    #[serde(deserialize_with = "redact::argument")]
    pub argument: String,
    /// The file of the argument.
    pub source: String,
    /// Byte column, from 1.
    pub column: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.argument)
    }
}

/// A value and the argument that requested it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested<T> {
    /// The requested value.
    pub value: T,
    /// The argument.
    pub origin: Origin,
}

pub(crate) fn origin<T>(spanned: &Spanned<'_, T>) -> Origin {
    Origin {
        argument: spanned.text().to_string(),
        source: spanned.source.to_owned(),
        column: spanned.column,
    }
}

pub(crate) fn requested<T, U>(spanned: &Spanned<'_, T>, value: U) -> Requested<U> {
    Requested {
        value,
        origin: origin(spanned),
    }
}
