// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report as a table for people. Pure.

use crate::error::printable;
use crate::verify::checks::Id;
use crate::verify::report::{Finding, Report, Status};

impl Report {
    /// One line for each module, link, server and invalid argument; the checks follow their link.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for module in &self.modules {
            let finding = &module.finding;
            let name = match finding.check {
                Id::ModuleLive => format!("module {}", module.name),
                id => format!("{} ({})", id.row().name, module.name),
            };
            line(&mut out, 0, finding.status, &name, found(finding));
            if finding.check != Id::ModuleLive {
                advice(&mut out, finding);
            }
        }
        for link in &self.links {
            let name = format!("link {}", link.object());
            line(&mut out, 0, link.status, &name, &link.description());
            checks(&mut out, &link.checks);
        }
        for other in &self.others {
            let name = format!("no link {}", other.name());
            line(&mut out, 0, Status::Skipped, &name, &other.words());
        }
        for server in &self.servers {
            let name = format!("server {}", server.server);
            line(
                &mut out,
                0,
                server.finding.status,
                &name,
                found(&server.finding),
            );
            advice(&mut out, &server.finding);
        }
        if let Some(root) = &self.root {
            let requested = root.requested_by.as_ref().map(ToString::to_string);
            line(
                &mut out,
                0,
                root.status(),
                "root",
                &requested.unwrap_or_default(),
            );
            checks(&mut out, &root.findings);
        }
        for complaint in &self.complaints {
            line(&mut out, 0, Status::Unknown, "wrong argument", complaint);
        }
        if let Some(shortfall) = &self.shortfall {
            out.push_str(&format!("{}\n", printable(shortfall)));
        }
        let good = self.links.iter().filter(|link| link.is_good()).count();
        out.push_str(&format!(
            "{}: {good} of {} links verified, required: {}\n",
            self.status.word(),
            self.links.len(),
            self.require
        ));
        out
    }
}

fn found(finding: &Finding) -> &str {
    finding.found.as_deref().unwrap_or("")
}

fn checks(out: &mut String, findings: &[Finding]) {
    for finding in findings {
        let name = finding.check.row().name;
        line(out, 2, finding.status, name, found(finding));
        advice(out, finding);
    }
}

/// What was expected and what to do, below a failed check.
fn advice(out: &mut String, finding: &Finding) {
    if let (Status::Critical | Status::Warning | Status::Unknown, Some(hint)) =
        (finding.status, &finding.hint)
    {
        let expected = finding
            .expected
            .as_deref()
            .map_or(String::new(), |text| format!("expected {text}; "));
        let text = printable(&format!("{expected}{hint}"));
        out.push_str(&format!("{:14}{text}\n", ""));
    }
}

fn line(out: &mut String, indent: usize, status: Status, name: &str, found: &str) {
    let text = format!(
        "{:indent$}{:<10}{:<26} {}",
        "",
        status.word(),
        printable(name),
        printable(found)
    );
    out.push_str(text.trim_end());
    out.push('\n');
}
