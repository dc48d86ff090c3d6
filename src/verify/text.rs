// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report for people: the whole table, and a summary. Pure.

use crate::error::printable;
use crate::system::terminal::{Colour, Terminal};
use crate::verify::checks::Id;
use crate::verify::report::{Finding, LinkReport, Report, Status};

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
        out.push_str(&self.verdict());
        out
    }

    /// The failures and the warnings with what to do, and what is good; within the width of the
    /// terminal.
    pub fn summary(&self, terminal: &Terminal) -> String {
        let mut out = String::new();
        for module in &self.modules {
            if module.finding.status != Status::Ok {
                trouble(&mut out, &module.name, &module.finding, terminal);
            }
        }
        for link in &self.links {
            let name = self.named(link);
            for finding in link.checks.iter().filter(|finding| is_wrong(finding)) {
                trouble(&mut out, &name, finding, terminal);
            }
        }
        for server in self.servers.iter().filter(|s| is_wrong(&s.finding)) {
            trouble(
                &mut out,
                &server.server.to_string(),
                &server.finding,
                terminal,
            );
        }
        let findings = self.root.iter().flat_map(|root| &root.findings);
        for finding in findings.filter(|finding| is_wrong(finding)) {
            trouble(&mut out, "root", finding, terminal);
        }
        for complaint in &self.complaints {
            let text = format!("wrong argument: {complaint}");
            out.push_str(&labelled(Status::Unknown, &text, terminal));
        }
        if let Some(shortfall) = &self.shortfall {
            out.push_str(&terminal.wrapped(&printable(shortfall), 0));
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
        let good = self.links.iter().filter(|link| link.is_good()).count();
        let mut line = format!(
            "{}: {good} of {} links verified, required: {}",
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

    /// `CHECK of OBJECT` for each object that is not as expected, the required ones first.
    fn causes(&self) -> Vec<String> {
        let of = |finding: &Finding, object: &str| {
            format!("{} of {}", finding.check.row().name, printable(object))
        };
        let link = |link: &LinkReport| Some(of(link.trouble()?, &link.object()));
        let (required, optional): (Vec<&LinkReport>, Vec<&LinkReport>) = self
            .links
            .iter()
            .partition(|link| link.required && !link.is_good());
        let modules = self
            .modules
            .iter()
            .filter(|m| m.finding.status != Status::Ok);
        let servers = self.servers.iter().filter(|s| is_wrong(&s.finding));
        let root = self.root.iter().flat_map(|root| &root.findings);
        let causes = required.into_iter().filter_map(link);
        let causes = causes.chain(servers.map(|s| of(&s.finding, &s.server.to_string())));
        let causes = causes.chain(root.filter(|f| is_wrong(f)).map(|f| of(f, "root")));
        let causes = causes.chain(optional.into_iter().filter_map(link));
        let causes = causes.chain(modules.map(|m| of(&m.finding, &m.name)));
        let complaints = self.complaints.iter();
        causes
            .chain(complaints.map(|_| "a wrong argument".to_owned()))
            .collect()
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

fn is_wrong(finding: &Finding) -> bool {
    finding.status > Status::Skipped
}

/// The problem and, below it, what to do.
fn trouble(out: &mut String, object: &str, finding: &Finding, terminal: &Terminal) {
    let name = finding.check.row().name;
    let text = format!("{object}: {} [{name}]", finding.problem());
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
