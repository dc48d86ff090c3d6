// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values of `--format`.

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            _ => Err("expected text or json".to_owned()),
        }
    }
}

/// How `check` prints its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// As a Nagios plugin.
    Nagios,
    /// Prometheus' text format.
    Prom,
    /// One line for a node health check, with its exit code.
    Nhc,
    /// Lines with the priority of the journal, and the exit code of a unit.
    Journal,
}

impl std::str::FromStr for CheckFormat {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "text" => Ok(CheckFormat::Text),
            "json" => Ok(CheckFormat::Json),
            "nagios" => Ok(CheckFormat::Nagios),
            "prom" => Ok(CheckFormat::Prom),
            "nhc" => Ok(CheckFormat::Nhc),
            "journal" => Ok(CheckFormat::Journal),
            _ => Err("expected text, json, nagios, prom, nhc or journal".to_owned()),
        }
    }
}

/// How `suggest` prints the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestFormat {
    /// One argument a line, with its reason.
    Text,
    /// One line to paste.
    Line,
    /// For programs.
    Json,
}

impl std::str::FromStr for SuggestFormat {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "text" => Ok(SuggestFormat::Text),
            "line" => Ok(SuggestFormat::Line),
            "json" => Ok(SuggestFormat::Json),
            _ => Err("expected text, line or json".to_owned()),
        }
    }
}

/// How `timeline` prints its marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// A picture.
    Svg,
}

impl std::str::FromStr for TimelineFormat {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "text" => Ok(TimelineFormat::Text),
            "json" => Ok(TimelineFormat::Json),
            "svg" => Ok(TimelineFormat::Svg),
            _ => Err("expected text, json or svg".to_owned()),
        }
    }
}
