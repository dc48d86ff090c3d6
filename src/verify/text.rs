// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a report for people: the whole table, and a summary.

use crate::error::printable;
use crate::system::terminal::{Colour, Terminal};
use crate::verify::checks::Id;
use crate::verify::finding::{Finding, Status};
use crate::verify::report::{LinkReport, Report};

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
            let name = format!("link {}", self.named(link));
            line(&mut out, 0, link.status, &name, &link.description());
            checks(&mut out, &link.checks);
        }
        for other in &self.others {
            let name = format!("not a link: {}", other.name());
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
            line(&mut out, 0, Status::Unknown, "invalid argument", complaint);
        }
        if let Some(shortfall) = self.too_few() {
            out.push_str(&format!("{shortfall}\n"));
        }
        out.push_str(&self.verdict());
        out
    }

    /// The failures and the warnings with what to do, and what is good; within the width of the
    /// terminal.
    pub fn summary(&self, terminal: &Terminal) -> String {
        let mut out = String::new();
        for module in &self.modules {
            if module.finding.needs_attention() {
                trouble(&mut out, &module.name, &module.finding, terminal);
            }
        }
        for link in &self.links {
            let name = self.named(link);
            for finding in link.checks.iter().filter(|f| f.needs_attention()) {
                trouble(&mut out, &name, finding, terminal);
            }
        }
        for server in self.servers.iter().filter(|s| s.finding.needs_attention()) {
            trouble(
                &mut out,
                &server.server.to_string(),
                &server.finding,
                terminal,
            );
        }
        let findings = self.root.iter().flat_map(|root| &root.findings);
        for finding in findings.filter(|f| f.needs_attention()) {
            trouble(&mut out, "root", finding, terminal);
        }
        for complaint in &self.complaints {
            let text = format!("invalid argument: {complaint}");
            out.push_str(&labelled(Status::Unknown, &text, terminal));
        }
        if let Some(shortfall) = self.too_few() {
            out.push_str(&terminal.wrapped(&shortfall, 0));
        }
        let good: Vec<&LinkReport> = self
            .links
            .iter()
            .filter(|l| l.status == Status::Ok)
            .collect();
        for link in good.iter().take(SHOWN) {
            let text = format!("{}: {}", self.named(link), link.description());
            let text = labelled(link.status, text.trim_end_matches(": "), terminal);
            out.push_str(&terminal.coloured(text.trim_end(), Some(Colour::Green)));
            out.push('\n');
        }
        let more = good.len().saturating_sub(SHOWN);
        if more > 0 {
            out.push_str(&format!(
                "ok        {more} more links (ibboot check --all)\n"
            ));
        }
        out.push_str(&self.last_line(terminal));
        out
    }

    /// The verdict within the width of the terminal, in colour.
    pub fn last_line(&self, terminal: &Terminal) -> String {
        let text = terminal.wrapped(&self.verdict(), 0);
        terminal.coloured(text.trim_end(), colour(self.status)) + "\n"
    }

    /// The last line: the verdict, the number of links and, if the verdict is not ok, the checks
    /// that cause it.
    pub fn verdict(&self) -> String {
        let verified = self.verified();
        let mut line = format!(
            "{}: {verified} of {} links verified, required: {}",
            self.status.word(),
            self.links.len(),
            self.require
        );
        let causes = match self.status {
            Status::Ok => Vec::new(),
            _ => self.causes(),
        };
        if let Some((first, rest)) = causes.split_first() {
            line.push_str(&format!("; because of {first}"));
            if !rest.is_empty() {
                line.push_str(&format!(" and {} more", rest.len()));
            }
        }
        line.push('\n');
        line
    }

    /// The name of a link, and whether the boot does not depend on the link while it depends on
    /// others.
    fn named(&self, link: &LinkReport) -> String {
        let name = printable(&link.object());
        match link.required || !self.has_required() {
            true => name,
            false => format!("{name} (not required)"),
        }
    }

    /// The boot depends on certain links, and not only on a number of them.
    pub fn has_required(&self) -> bool {
        self.links.iter().any(|link| link.required)
    }
}

/// The colour of a status.
pub fn colour(status: Status) -> Option<Colour> {
    match status {
        Status::Ok => Some(Colour::Green),
        Status::Skipped => None,
        Status::Warning | Status::Unknown => Some(Colour::Yellow),
        Status::Critical => Some(Colour::Red),
    }
}

/// The most good links that a summary describes.
const SHOWN: usize = 4;

/// The problem and, below it, what to do.
fn trouble(out: &mut String, object: &str, finding: &Finding, terminal: &Terminal) {
    let text = format!("{object}: {}", finding.titled());
    let text = labelled(finding.status, &text, terminal);
    out.push_str(&terminal.coloured(text.trim_end(), colour(finding.status)));
    out.push('\n');
    if let Some(hint) = &finding.hint {
        out.push_str(&terminal.wrapped(&printable(hint), LABEL + 2));
    }
}

/// Columns of the status in front of a text.
const LABEL: usize = 10;

/// The text behind its status, within the width of the terminal.
fn labelled(status: Status, text: &str, terminal: &Terminal) -> String {
    let text = terminal.wrapped(&printable(text), LABEL);
    format!("{:<LABEL$}{}", status.word(), text.trim_start())
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

/// What was expected and what to do, below a check that failed, warns or is unknown.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::report::{ModuleReport, ServerReport};
    use crate::wish::expectation::{LinkWish, Target};

    fn report(status: Status, links: Vec<LinkReport>) -> Report {
        Report {
            status,
            satisfied: status <= Status::Warning,
            require: "any InfiniBand port".to_owned(),
            links,
            ..Report::default()
        }
    }

    fn link(name: &str, required: bool, finding: Finding) -> LinkReport {
        let wish = LinkWish {
            target: Target::from(name.to_owned()),
            required,
            ..LinkWish::default()
        };
        LinkReport::new(&wish, None, vec![finding])
    }

    fn slow(name: &str) -> LinkReport {
        let finding = Finding::failed(Id::PortLanes, "50 Gb/sec (1X HDR)", "4 lanes");
        link(name, false, finding.as_warning())
    }

    fn module(finding: Finding) -> ModuleReport {
        ModuleReport {
            name: "ib_core".to_owned(),
            requested_by: None,
            finding,
        }
    }

    #[test]
    fn the_verdict_names_the_worst_cause_first() {
        let init = |required| {
            let finding = Finding::failed(Id::PortState, "INIT", "ACTIVE");
            link("b", required, finding)
        };
        let ending = |report: &Report| {
            let verdict = report.verdict();
            let (_, causes) = verdict.split_once("; because of ").unwrap();
            causes.to_owned()
        };
        let short = |links| Report {
            shortfall: Some("rd.ib.require=2".to_owned()),
            ..report(Status::Critical, links)
        };
        // One port that works with a warning, and one that does not.
        assert_eq!(
            ending(&short(vec![slow("a"), init(false)])),
            "port.state of b and 1 more\n"
        );
        // Each port there is works.
        assert_eq!(
            ending(&short(vec![slow("a"), slow("b")])),
            "too few verified ports and 2 more\n"
        );
        let mut wrong = report(Status::Unknown, vec![slow("a")]);
        wrong.complaints.push("rd.ib.mode=foo".to_owned());
        assert_eq!(ending(&wrong), "an invalid argument and 1 more\n");
        // A failure that the boot does not depend on is not the cause of UNKNOWN.
        let unknown = link("a", true, Finding::unknown(Id::PortState));
        let optional = report(Status::Unknown, vec![init(false), unknown]);
        assert_eq!(ending(&optional), "port.state of a and 1 more\n");
        let mut server = report(Status::Critical, vec![slow("a")]);
        server.servers.push(ServerReport {
            server: serde_json::from_str(r#"{"address":"10.0.0.2","port":null}"#).unwrap(),
            requested_by: None,
            finding: Finding::failed(Id::ServerRdma, "no answer", ""),
        });
        assert_eq!(ending(&server), "server.rdma of 10.0.0.2 and 1 more\n");
        let mut warning = report(Status::Warning, vec![slow("a")]);
        let finding = Finding::failed(Id::ModuleLive, "not loaded", "loaded and initialised");
        warning.modules.push(module(finding));
        assert_eq!(ending(&warning), "module.live of ib_core and 1 more\n");
    }

    #[test]
    fn a_skipped_check_of_a_module_is_no_failure() {
        let terminal = Terminal {
            columns: 80,
            has_colours: false,
        };
        let mut found = report(Status::Warning, vec![slow("a")]);
        let failed = Finding::failed(Id::ModuleLive, "not loaded", "loaded and initialised");
        found.modules.push(module(failed));
        found.modules.push(module(Finding::skipped(Id::RdmaNetns)));
        let text = found.summary(&terminal);
        assert!(!text.contains("rdma.netns"), "{text}");
        let verdict = "because of\nmodule.live of ib_core and 1 more\n";
        assert!(text.ends_with(verdict), "{text}");
    }
}
