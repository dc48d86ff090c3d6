// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a report as monitoring systems read it: a Nagios plugin's output, Prometheus' text format,
//! one line for a node health check, and lines for the journal. A report that cannot be made is
//! unknown in each of them.

use std::fmt;

use kernel_cmdline::is_plain;

use crate::error::{Error, printable};
use crate::rdma::parse;
use crate::verify::checks::Id;
use crate::verify::finding::{Finding, Status};
use crate::verify::report::{LinkReport, ModuleReport, Report};

/// `n of m links verified`.
fn count(report: &Report) -> String {
    let verified = report.verified();
    format!("{verified} of {} links verified", report.links.len())
}

/// The word of a plugin's first line (Monitoring Plugins Development Guidelines, 3.2).
fn word(status: Status) -> &'static str {
    match status {
        Status::Ok | Status::Skipped => "OK",
        other => other.word(),
    }
}

/// Any `|` begins the performance data.
fn without_bars(text: &str) -> String {
    text.replace('|', "/")
}

/// The first line of a Nagios plugin if there is no report.
pub fn nagios_without_report(error: &Error) -> String {
    let word = word(Status::Unknown);
    format!("IBBOOT {word} - {}\n", without_bars(&error.to_string()))
}

/// The output of a Nagios plugin: the verdict and the worst trouble with performance data, then one
/// line for each other trouble. The exit code is that of [`Status::exit_code`].
pub fn nagios(report: &Report) -> String {
    let plain = |text: String| without_bars(&text);
    let troubles = report.troubles();
    let worst = report.reason().or_else(|| troubles.first().cloned());
    let summary = match (&worst, report.status) {
        (Some(worst), status) if status != Status::Ok => {
            plain(format!("{worst} ({})", count(report)))
        }
        _ => count(report),
    };
    let verified = report.verified();
    let mut out = format!(
        "IBBOOT {} - {summary} | verified={verified};;;0;{}\n",
        word(report.status),
        report.links.len()
    );
    for trouble in troubles
        .into_iter()
        .filter(|one| Some(one) != worst.as_ref())
    {
        out.push_str(&plain(trouble));
        out.push('\n');
    }
    out
}

/// One line for LBNL Node Health Check and similar programs, with the verdict unless it is ok.
pub fn nhc(report: &Report) -> String {
    match report
        .reason()
        .or_else(|| report.troubles().into_iter().next())
    {
        Some(reason) if report.status != Status::Ok => {
            format!("ibboot: {}: {reason}\n", word(report.status))
        }
        _ => format!("ibboot: {}\n", count(report)),
    }
}

/// The line if there is no report.
pub fn nhc_without_report(error: &Error) -> String {
    format!("ibboot: {}: {error}\n", word(Status::Unknown))
}

/// 1 on any failure, 0 otherwise: a warning is not a failure. Node health checks (`die 1`) and
/// systemd units know no other codes.
pub fn failed(report: &Report) -> u8 {
    u8::from(report.status > Status::Warning)
}

/// The priority of a journal line (sd-daemon(3)): error, warning or information.
fn priority(status: Status) -> u8 {
    match status {
        Status::Ok | Status::Skipped => 6,
        Status::Warning => 4,
        Status::Unknown | Status::Critical => 3,
    }
}

/// Lines for the journal, each with its priority in front: `<3>ib0 (mlx5_0/1): no carrier ...`. A
/// line for each object that is not as expected, with the name of the check, then the verdict. A
/// module, and a link that the boot does not require, is at most a warning.
pub fn journal(report: &Report) -> String {
    let mut lines: Vec<(Status, String)> = Vec::new();
    for module in &report.modules {
        let text = format!("{}: {}", printable(&module.name), module.finding.named());
        lines.push((module.finding.status.min(Status::Warning), text));
    }
    for link in &report.links {
        let status = match link.required {
            true => link.status,
            false => link.status.min(Status::Warning),
        };
        let text = |f: &Finding| format!("{}: {}", printable(&link.object()), f.named());
        lines.extend(link.trouble().map(|finding| (status, text(finding))));
    }
    for server in &report.servers {
        let warns = report.status != Status::Ok && server.finding.status == Status::Warning;
        let finding = Some(&server.finding).filter(|finding| warns || finding.status.is_wrong());
        let text = |f: &Finding| format!("{}: {}", server.server, f.named());
        lines.extend(finding.map(|finding| (finding.status, text(finding))));
    }
    if let Some(root) = &report.root {
        let text = |f: &Finding| format!("root: {}", f.named());
        lines.extend(root.trouble().map(|finding| (root.status(), text(finding))));
    }
    let others = report.invalid_arguments().chain(report.too_few());
    lines.extend(others.map(|text| (report.status, text)));
    lines.retain(|(status, _)| priority(*status) < priority(Status::Ok));
    let verdict = format!("{}, required: {}", count(report), report.require);
    lines.push((
        report.status,
        format!("{}: {verdict}", report.status.word()),
    ));
    let line = |(status, text)| format!("<{}>{text}\n", priority(status));
    lines.into_iter().map(line).collect()
}

/// The line for the journal if there is no report.
pub fn journal_without_report(error: &Error) -> String {
    let status = Status::Unknown;
    format!("<{}>{}: {error}\n", priority(status), status.word())
}

/// A label's value in Prometheus' text format (version 0.0.4).
fn label(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            // Prometheus allows these characters, but they can alter a terminal.
            c if !is_plain(c) => out.push('\u{fffd}'),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out
}

/// What follows the name of a gauge: `{a="b",...} 1`.
pub fn sample(labels: &[(&str, &str)], value: &dyn fmt::Display) -> String {
    let each: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", label(value)))
        .collect();
    format!("{{{}}} {value}", each.join(","))
}

/// A family of gauges in Prometheus' text format, or nothing if it has no samples. A sample is as
/// [`sample`] returns it; without labels it is a space and the value.
pub fn family(name: &str, help: &str, samples: &[String]) -> String {
    if samples.is_empty() {
        return String::new();
    }
    let mut out = format!("# HELP {name} {help}\n# TYPE {name} gauge\n");
    for sample in samples {
        out.push_str(&format!("{name}{sample}\n"));
    }
    out
}

/// The labels that identify a link in every sample: the requested selector, the port, the interface
/// and whether the boot requires the link.
fn names(link: &LinkReport) -> [(&'static str, &str); 4] {
    [
        ("target", link.target.as_str()),
        ("port", link.name.as_deref().unwrap_or("")),
        ("interface", link.interface.as_deref().unwrap_or("")),
        ("required", if link.required { "true" } else { "false" }),
    ]
}

/// The signalling rate of a port in bit/s: only of an ACTIVE port, and only if the kernel can tell
/// the rate.
fn rate(link: &LinkReport) -> Option<u64> {
    let status = |id: Id| Some(link.checks.iter().find(|f| f.check == id)?.status);
    if status(Id::PortState) != Some(Status::Ok) || link.is_rate_unsure {
        return None;
    }
    let rate = parse::rate(link.rate.as_deref()?).ok()?;
    // A multiple of 0.5 Gb/s: exact in whole bits, and far below 2^53.
    Some((rate.gbps * 1e9) as u64)
}

/// The gauge of the time of a check, in seconds since 1970-01-01 UTC. A file that is no longer
/// written shows its age.
pub fn checked_at(unix_s: u64) -> String {
    family(
        "ibboot_check_timestamp_seconds",
        "Unix time of the check.",
        &[format!(" {unix_s}")],
    )
}

/// The two gauges that every output has.
fn verdict(status: Status, satisfied: bool) -> String {
    let status = family(
        "ibboot_status",
        "Verdict: 0 ok, 1 warning, 2 critical, 3 unknown.",
        &[format!(" {}", status.exit_code())],
    );
    let satisfied = family(
        "ibboot_satisfied",
        "Whether everything that is required is verified.",
        &[format!(" {}", u8::from(satisfied))],
    );
    status + &satisfied
}

/// The gauges if there is no report.
pub fn prometheus_without_report() -> String {
    verdict(Status::Unknown, false)
}

/// A sample of each check that ran, with these labels in front of its name.
fn samples<'f>(
    findings: impl IntoIterator<Item = &'f Finding>,
    of: &[(&str, &str)],
) -> Vec<String> {
    let ran = |finding: &&Finding| finding.status != Status::Skipped;
    let one = |finding: &Finding| {
        let name = ("check", finding.check.row().name);
        sample(&[of, &[name]].concat(), &finding.status.exit_code())
    };
    findings.into_iter().filter(ran).map(one).collect()
}

/// Gauges for the textfile collector of Prometheus' node exporter.
pub fn prometheus(report: &Report) -> String {
    let is_ok = |finding: &Finding| u8::from(finding.status == Status::Ok);
    let is_loadable = |module: &&ModuleReport| module.finding.check == Id::ModuleLive;
    let modules = report.modules.iter().filter(is_loadable);
    let modules = modules.map(|m| sample(&[("module", &m.name)], &is_ok(&m.finding)));
    let servers = report.servers.iter().map(|server| {
        let address = server.server.to_string();
        sample(&[("server", &address)], &is_ok(&server.finding))
    });
    let links = report.links.iter();
    let verified = links
        .clone()
        .map(|link| sample(&names(link), &u8::from(link.is_verified())));
    let rates = links
        .clone()
        .filter_map(|link| Some(sample(&names(link), &rate(link)?)));
    let checks = links
        .clone()
        .flat_map(|link| samples(&link.checks, &names(link)));
    let root = report.root.iter().flat_map(|root| &root.findings);
    [
        verdict(report.status, report.satisfied),
        family(
            "ibboot_wrong_arguments",
            "Number of invalid arguments.",
            &[format!(" {}", report.complaints.len())],
        ),
        family(
            "ibboot_module_live",
            "Whether a kernel module is loaded.",
            &modules.collect::<Vec<_>>(),
        ),
        family(
            "ibboot_server_answers",
            "Whether a server answers over RDMA.",
            &servers.collect::<Vec<_>>(),
        ),
        family(
            "ibboot_link_verified",
            "Whether all checks of a link passed or only warn.",
            &verified.collect::<Vec<_>>(),
        ),
        family(
            "ibboot_link_rate_bits_per_second",
            "Signalling rate of an ACTIVE port over all its lanes.",
            &rates.collect::<Vec<_>>(),
        ),
        family(
            "ibboot_link_info",
            "Properties of a link.",
            &links.map(info).collect::<Vec<_>>(),
        ),
        family(
            "ibboot_link_check",
            "Result of a check that ran: 0 ok, 1 warning, 2 critical, 3 unknown.",
            &checks.collect::<Vec<_>>(),
        ),
        family(
            "ibboot_root_check",
            "Result of a check of the root file system: 0 ok, 1 warning, 2 critical, 3 unknown.",
            &samples(root, &[]),
        ),
    ]
    .concat()
}

fn info(link: &LinkReport) -> String {
    let guid = link
        .port_guid
        .map_or(String::new(), |guid| guid.to_string());
    let layer = link
        .link_layer
        .map_or(String::new(), |layer| layer.to_string());
    let rest = [
        ("port_guid", guid.as_str()),
        ("link_layer", &layer),
        ("rate", link.rate.as_deref().unwrap_or("")),
        ("bus_address", link.bus_address.as_deref().unwrap_or("")),
    ];
    sample(&[names(link).as_slice(), &rest].concat(), &1_u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_begins_no_performance_data() {
        let line = nagios_without_report(&Error::new("/a|b", "cannot be read"));
        assert_eq!(line, "IBBOOT UNKNOWN - /a/b: cannot be read\n");
    }

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        assert_eq!(
            sample(&[("a", "x\"} 1\ny\\")], &2),
            "{a=\"x\\\"} 1\\ny\\\\\"} 2"
        );
        assert_eq!(sample(&[("a", "\x1b[2J")], &2), "{a=\"\u{fffd}[2J\"} 2");
    }
}
