// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which argument requested something.

use std::fmt;

use kernel_cmdline::Spanned;
use serde::{Deserialize, Serialize};

use crate::redact;

/// Where on the command line a wish stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The argument as people may see it ([`kernel_cmdline::Shown`]).
    #[serde(deserialize_with = "redact::argument")]
    pub argument: String,
    /// The file it stands in.
    pub source: String,
    /// Byte column, from 1.
    pub column: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.argument)
    }
}

/// A value and who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested<T> {
    /// What is wanted.
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
