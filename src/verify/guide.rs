// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the causes of a failed check, the most frequent first, and commands that tell them apart:
//! the source of `ibboot explain`, of ibboot.checks(7) and of docs/troubleshooting.md.

mod rows;

use kernel_cmdline::docs::{SECTIONS, Section};
use kernel_cmdline::{PARAMETERS, Parameter, nearest};

use super::checks::{Awaits, Check, Id, Severity, TABLE};
use crate::system::terminal::Terminal;

pub use rows::{Guide, guide};

impl Guide {
    /// The commands, with the host on which each list is run.
    pub fn hosts(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        let hosts = [
            ("on the node", self.node),
            (
                "on the host of the subnet manager or of the server",
                self.server,
            ),
            ("on a switch with MLNX-OS", self.switch),
        ];
        hosts
            .into_iter()
            .filter(|(_, commands)| !commands.is_empty())
    }
}

/// The text of `ibboot explain`: a check, a kernel argument, or terms that arguments share. The error is the nearest name, if
/// there is one.
pub fn explain(name: &str, terminal: &Terminal) -> Result<String, Option<&'static str>> {
    let argument = name.split('=').next().unwrap_or(name);
    if let Some(row) = TABLE.iter().find(|row| row.name == name) {
        return Ok(check(row, terminal));
    }
    if let Some(parameter) = PARAMETERS.iter().find(|p| p.name == argument) {
        return Ok(parameter_text(parameter, terminal));
    }
    if let Some(section) = SECTIONS.iter().find(|section| section.name == name) {
        return Ok(section_text(section, terminal));
    }
    let names = TABLE.iter().map(|row| row.name);
    let names = names.chain(PARAMETERS.iter().map(|p| p.name));
    Err(nearest(
        argument,
        names.chain(SECTIONS.iter().map(|section| section.name)),
    ))
}

/// The names of all checks, arguments and terms, one line each.
pub fn list() -> String {
    let checks = TABLE
        .iter()
        .map(|row| format!("{:<24} {}\n", row.name, row.why));
    let arguments = PARAMETERS.iter().map(|p| format!("{}\n", p.grammar));
    let sections = SECTIONS.iter().map(|section| format!("{}\n", section.name));
    checks.chain(arguments).chain(sections).collect()
}

/// What a check means when it fails.
pub fn severity(row: &Check) -> &'static str {
    match (row.id, row.severity) {
        (Id::DeviceAnswers, _) => {
            "The check is unknown then, never critical: the link is not verified."
        }
        (Id::ModuleLive | Id::RdmaNetns, _) => {
            "A failure is critical for the module. If everything required is verified without the module, the \
             verdict is only a warning."
        }
        (Id::ServerRdma, _) => {
            "A failure is critical, whatever the state of the links. Over iWARP it is a warning that alone does \
             not change the verdict, unless one of several servers of a disk must answer."
        }
        (Id::RootMounted | Id::RootTransport | Id::RootPath, _) => {
            "A failure is critical, whatever the state of the links."
        }
        (_, Severity::Critical) => "A failure is critical: the link cannot be used as requested.",
        (_, Severity::Warning) => "A failure is a warning: the link works.",
    }
}

/// How long the boot usually waits for this check, as a sentence.
pub fn wait(row: &Check) -> String {
    // The root file system is checked after the switch, a subnet administrator only with --sm. What is
    // not possible will not become possible.
    let is_never = matches!(
        row.id,
        Id::WishPossible
            | Id::RootMounted
            | Id::RootTransport
            | Id::RootPath
            | Id::PortSa
            | Id::IpoibGroup
    );
    if is_never || row.severity == Severity::Warning {
        return "The boot does not wait for this check.".to_owned();
    }
    let (seconds, words) = (row.awaits.usual_s(), row.awaits.words());
    // While `up` loads drivers, this time does not run.
    let since = match row.awaits {
        Awaits::Driver if row.id != Id::DeviceAnswers => {
            ", counted from the moment when all drivers are loaded"
        }
        _ => "",
    };
    format!("During the boot the wait for {words} usually ends within {seconds} s{since}.")
}

/// The checks that must pass before this one, as a sentence; empty if there are none.
pub fn needs(row: &Check) -> String {
    let parents: Vec<&str> = row.parents.iter().map(|id| id.row().name).collect();
    match parents.is_empty() {
        true => String::new(),
        false => format!("Skipped unless these pass: {}.", parents.join(", ")),
    }
}

fn check(row: &Check, terminal: &Terminal) -> String {
    let guide = guide(row.id);
    let mut out = terminal.wrapped(&format!("{}: proves that {}.", row.name, row.why), 0);
    let message = format!("If not: \"{}\". {}", row.failure, severity(row));
    out.push_str(&terminal.wrapped(&message, 0));
    for text in [guide.detail.to_owned(), needs(row), wait(row)] {
        if !text.is_empty() {
            out.push_str(&terminal.wrapped(&text, 0));
        }
    }
    out.push_str("\ncauses, the most frequent first:\n");
    for (number, cause) in (1..).zip(guide.causes) {
        out.push_str(&terminal.wrapped(&format!("{number}. {cause}"), 2));
    }
    for (host, commands) in guide.hosts() {
        out.push_str(&format!("\n{host}:\n"));
        for command in commands {
            out.push_str(&format!("    {command}\n"));
        }
    }
    out
}

fn parameter_text(parameter: &Parameter, terminal: &Terminal) -> String {
    let mut out = String::new();
    for form in parameter.grammar.split(" | ") {
        out.push_str(&format!("{form}\n"));
    }
    for paragraph in parameter.help.split("\n\n") {
        out.push('\n');
        out.push_str(&terminal.wrapped(paragraph, 2));
    }
    if let Some(note) = parameter.effect.note() {
        out.push('\n');
        out.push_str(&terminal.wrapped(note, 2));
    }
    out.push_str(&format!(
        "\ndefault: {}\nexample: {}\n",
        parameter.default, parameter.example
    ));
    if parameter.grammar.contains("SELECTOR") {
        out.push_str("SELECTOR: see ibboot explain selectors\n");
    }
    out
}

fn section_text(section: &Section, terminal: &Terminal) -> String {
    let mut out = terminal.wrapped(section.introduction, 0);
    for (term, meaning) in section.terms {
        out.push_str(&format!("\n{term}\n"));
        out.push_str(&terminal.wrapped(meaning, 2));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_and_every_argument_is_explained() {
        let terminal = Terminal {
            columns: 80,
            has_colours: false,
        };
        for name in TABLE
            .iter()
            .map(|row| row.name)
            .chain(PARAMETERS.iter().map(|p| p.name))
            .chain(SECTIONS.iter().map(|section| section.name))
        {
            let text = explain(name, &terminal).unwrap();
            assert!(text.lines().count() > 4, "{name}: {text}");
        }
        for row in TABLE {
            let (name, guide) = (row.name, guide(row.id));
            assert!(!guide.causes.is_empty(), "{name}");
            assert!(
                guide.causes.iter().all(|cause| cause.ends_with('.')),
                "{name}"
            );
            assert!(
                guide.detail.is_empty() || guide.detail.ends_with('.'),
                "{name}"
            );
            assert!(!guide.node.is_empty(), "{name}");
            // A command can be pasted: nothing stands before it or behind it.
            for command in guide.hosts().flat_map(|(_, commands)| commands) {
                let has_words = [": ", " ("].iter().any(|words| command.contains(words));
                assert!(!has_words || command.contains("grep"), "{command}");
            }
        }
        assert!(explain("rd.ib.mode=connected", &terminal).is_ok());
        assert_eq!(explain("port.stat", &terminal), Err(Some("port.state")));
        assert_eq!(explain("x", &terminal), Err(None));
    }

    #[test]
    fn a_text_claims_no_more_than_the_check_does() {
        let silent = Id::DeviceAnswers.row();
        assert!(!severity(silent).contains("A failure is critical"));
        assert_eq!(
            wait(silent),
            "During the boot the wait for the driver usually ends within 2 s."
        );
        assert_eq!(
            wait(Id::DevicePresent.row()),
            "During the boot the wait for the driver usually ends within 2 s, counted from the moment when all \
             drivers are loaded."
        );
        assert_eq!(
            wait(Id::WishPossible.row()),
            "The boot does not wait for this check."
        );
        assert!(severity(Id::ServerRdma.row()).contains("Over iWARP it is a warning"));
        let critical = "A failure is critical: the link cannot be used as requested.";
        assert_eq!(severity(Id::PortState.row()), critical);
        for id in [Id::ModuleLive, Id::RdmaNetns, Id::ServerRdma, Id::RootPath] {
            assert_ne!(severity(id.row()), critical);
        }
        assert!(guide(Id::PortLid).detail.contains("0xefffff"));
        for id in [Id::LeasePresent, Id::Lease6Present] {
            assert!(guide(id).detail.contains("expired is a warning"));
        }
        let causes = guide(Id::Lease6Present).causes.concat();
        assert!(!causes.contains("hardware type"), "{causes}");
    }
}
