// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of `--format`.

/// Defines an enum whose variants are words behind `--format`, and the text for any other word.
macro_rules! formats {
    ($(#[$doc:meta])* $name:ident, $expected:literal {
        $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> std::result::Result<Self, String> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err($expected.to_owned()),
                }
            }
        }
    };
}

formats! {
    /// How a result is printed.
    Format, "expected text or json" {
        /// For people.
        Text = "text",
        /// For programs.
        Json = "json",
    }
}

formats! {
    /// How `check` prints its report.
    CheckFormat, "expected text, json, nagios, prom, nhc or journal" {
        /// For people.
        Text = "text",
        /// For programs.
        Json = "json",
        /// As a Nagios plugin.
        Nagios = "nagios",
        /// Prometheus' text format.
        Prom = "prom",
        /// One line for a node health check, with its exit code.
        Nhc = "nhc",
        /// Lines with the priority of the journal, and the exit code of a unit.
        Journal = "journal",
    }
}

formats! {
    /// How `suggest` prints the arguments.
    SuggestFormat, "expected text, line or json" {
        /// One argument a line, with its reason.
        Text = "text",
        /// One line to paste.
        Line = "line",
        /// For programs.
        Json = "json",
    }
}

formats! {
    /// How `timeline` prints its marks.
    TimelineFormat, "expected text, json or svg" {
        /// For people.
        Text = "text",
        /// For programs.
        Json = "json",
        /// A picture.
        Svg = "svg",
    }
}
