// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the result of `verify`, with a report of each object.

mod link;
mod others;

use serde::{Deserialize, Serialize};

use super::finding::{Finding, Status};
use crate::SCHEMA;
use crate::error::{Error, printable};
use crate::rdma::reach::Server;
use crate::wish::origin::Origin;

pub use link::LinkReport;
pub use others::OtherPorts;

/// A kernel module's check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleReport {
    /// Name in the kernel's spelling.
    pub name: String,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// The check.
    pub finding: Finding,
}

/// A server's check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    #[serde(flatten)]
    pub server: Server,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// The check.
    pub finding: Finding,
}

/// The root file system's checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootReport {
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// The checks, in the table's order.
    pub findings: Vec<Finding>,
}

impl ModuleReport {
    /// `NAME: ` and what needs attention; none if nothing does.
    pub fn diagnosis(&self) -> Option<String> {
        let sentence = || format!("{}: {}", printable(&self.name), self.finding.sentence());
        self.finding.needs_attention().then(sentence)
    }
}

impl RootReport {
    /// True if a check failed.
    pub fn has_failed(&self) -> bool {
        self.status() == Status::Critical
    }

    /// True unless a check failed or is unknown; before switch_root the checks are skipped.
    pub fn is_good(&self) -> bool {
        !self.findings.iter().any(|f| f.status.is_wrong())
    }

    /// The worst of its checks.
    pub fn status(&self) -> Status {
        let statuses = self.findings.iter().map(|finding| finding.status);
        statuses.max().unwrap_or(Status::Unknown)
    }

    /// `root: ` and what is wrong or warns; none if all is well.
    pub fn diagnosis(&self) -> Option<String> {
        Some(format!("root: {}", self.trouble()?.sentence()))
    }

    /// The first check that failed or is unknown, otherwise the first one that warns.
    pub fn trouble(&self) -> Option<&Finding> {
        let mut findings = self.findings.iter();
        let warning = || self.findings.iter().find(|f| f.status == Status::Warning);
        findings.find(|f| f.status.is_wrong()).or_else(warning)
    }
}

impl ServerReport {
    /// The server answered, or need not answer: another server of the disk did, or over iWARP only
    /// the mount shows it.
    pub fn is_answered(&self) -> bool {
        matches!(self.finding.status, Status::Ok | Status::Warning)
    }

    /// `ADDRESS: ` and what is wrong or warns; none if all is well.
    pub fn diagnosis(&self) -> Option<String> {
        self.finding
            .needs_attention()
            .then(|| format!("{}: {}", self.server, self.finding.sentence()))
    }
}

/// What `ibboot check --format json` prints if the report cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoReport {
    /// Version of the shape.
    pub schema: u32,
    /// Unknown.
    pub status: Status,
    /// False.
    pub satisfied: bool,
    /// Why.
    pub error: String,
}

impl NoReport {
    /// The report cannot be made because of this error.
    pub fn new(error: &Error) -> NoReport {
        NoReport {
            schema: SCHEMA,
            status: Status::Unknown,
            satisfied: false,
            error: error.to_string(),
        }
    }
}

/// The whole report, as `ibboot check --format json` prints it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the shape.
    pub schema: u32,
    /// The kernel's boot id.
    pub boot_id: Option<String>,
    /// Time of the snapshot, ns since kernel start.
    pub taken_ns: u64,
    /// Ok: everything is as expected. Warning: everything required is as expected, something else
    /// is not. Critical: something required failed. Unknown: nothing to compare with, or something
    /// could not be read and nothing required is known to have failed.
    pub status: Status,
    /// Everything required is verified.
    pub satisfied: bool,
    /// How many links are required.
    pub require: String,
    /// Set if too few ports are verified, although every link found may be good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<String>,
    pub modules: Vec<ModuleReport>,
    pub links: Vec<LinkReport>,
    /// Ports that carry no link: listed and never judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherPorts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerReport>,
    /// The root file system, if a link must carry it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RootReport>,
    /// Invalid arguments, one line each: what they request was not checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<String>,
}

impl Report {
    /// The number of verified links.
    pub fn verified(&self) -> usize {
        self.links.iter().filter(|link| link.is_verified()).count()
    }
}
