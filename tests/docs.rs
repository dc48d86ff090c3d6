// SPDX-License-Identifier: MIT OR Apache-2.0
//! README.md, docs/, monitoring/ and the manual pages agree with the tables of the program and with
//! the outputs of the cases.
//! BLESS=1 has no effect here: the pages are written by hand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ibboot::cli;
use ibboot::request::Request;
use ibboot::verify::checks::TABLE;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The sessions of all cases and examples, with their headers.
fn outputs() -> Vec<String> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect()
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let subjects = below(&root.join("tests/cases"));
    let mut folders = below(&root.join("kernel-cmdline/examples"));
    folders.extend(subjects.iter().flat_map(|subject| below(subject)));
    let all: Vec<String> = folders
        .iter()
        .map(|folder| fs::read_to_string(folder.join("case")).unwrap())
        .collect();
    assert!(all.len() > 70, "only {} outputs", all.len());
    all
}

/// README.md and the pages of docs/ and docs/guides/: name and text.
fn pages() -> Vec<(String, String)> {
    let mut names = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/guides"] {
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                names.push(format!("{folder}/{name}"));
            }
        }
    }
    names
        .into_iter()
        .map(|name| (name.clone(), read(&name)))
        .collect()
}

/// The lines of code blocks: indented by four columns or between fences.
fn code(page: &str) -> Vec<&str> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            found.push(line);
        } else {
            found.extend(line.strip_prefix("    "));
        }
    }
    found
}

/// Words of a shell line without its comment; quotes group words.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ' ') => words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty())),
            (None, '#') if word.is_empty() => break,
            _ => word.push(c),
        }
    }
    words.extend(Some(word).filter(|w| !w.is_empty()));
    words
}

/// `(/lib/modules/.../mlx5_ib.ko)` shortened as in README and docs: `(.../mlx5_ib.ko)`.
fn shortened(line: &str) -> String {
    let Some((before, rest)) = line.split_once("(/lib/modules/") else {
        return line.to_owned();
    };
    let (path, after) = rest.split_once(')').unwrap();
    let file = path.rsplit('/').next().unwrap();
    format!("{before}(.../{file}){after}")
}

#[test]
fn every_output_in_readme_and_docs_is_one_of_a_case() {
    let known: BTreeSet<String> = outputs()
        .iter()
        .flat_map(|output| output.lines())
        .map(shortened)
        .collect();
    let pages: String = pages().into_iter().map(|(_, text)| text).collect();
    let is_output = |line: &&str| {
        let text = line.trim_start();
        let numbered = text
            .split_once(". ")
            .is_some_and(|(n, _)| n.parse::<u8>().is_ok());
        let begins = [
            "requested by: ",
            "required: ",
            "left: ",
            "refused: ",
            "wrong: ",
            "CRITICAL",
            "skipped ",
            "<3>",
            "ibboot: CRITICAL",
            "IBBOOT ",
        ];
        numbered || begins.iter().any(|begin| text.starts_with(begin))
    };
    let lines: Vec<&str> = pages
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(is_output)
        .collect();
    assert!(lines.len() > 30, "only {} lines of output", lines.len());
    for line in lines {
        assert!(known.contains(line), "no case prints this: {line}");
    }
}

/// Evaluated: in a report as text or JSON that has a result of it other than "skipped".
#[test]
fn every_check_is_evaluated_by_a_case() {
    let mut evaluated = BTreeSet::new();
    for output in outputs() {
        let mut lines = output.lines().map(str::trim_start).peekable();
        while let Some(line) = lines.next() {
            let mut words = line.split_ascii_whitespace();
            let (first, second) = (words.next(), words.next());
            if let Some("ok" | "WARNING" | "UNKNOWN" | "CRITICAL") = first {
                evaluated.extend(second.map(str::to_owned));
            }
            let check = line.strip_prefix("\"check\": \"");
            let is_skipped = lines.peek() == Some(&"\"status\": \"skipped\",");
            if let Some(check) = check.filter(|_| !is_skipped) {
                evaluated.insert(check.trim_end_matches("\",").to_owned());
            }
        }
    }
    let is_missing = |name: &&str| !evaluated.contains(*name);
    let names = TABLE.iter().map(|row| row.name);
    let missing: Vec<&str> = names.filter(is_missing).collect();
    assert_eq!(missing, Vec::<&str>::new(), "no case evaluates these");
}

#[test]
fn the_manual_names_every_field_of_every_json_output() {
    // The words of the page without their roff markup.
    let page = read("man/ibboot-json.5")
        .replace("\\fI", " ")
        .replace("\\fB", " ")
        .replace("\\fP", " ")
        .replace("\\-", "-");
    let words: BTreeSet<&str> = page
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .collect();
    let mut fields = BTreeSet::new();
    for output in outputs() {
        for line in output.lines() {
            let Some((key, value)) = line
                .trim_start()
                .strip_prefix('"')
                .and_then(|l| l.split_once("\": "))
            else {
                continue;
            };
            // A pair of a module and its state.
            if !["\"live\"", "\"coming\"", "\"going\""].contains(&value.trim_end_matches(',')) {
                fields.insert(key.to_owned());
            }
        }
    }
    assert!(fields.len() > 60, "only {} fields", fields.len());
    let missing: Vec<&String> = fields
        .iter()
        .filter(|field| !words.contains(field.as_str()))
        .collect();
    assert_eq!(missing, Vec::<&String>::new(), "not in ibboot-json(5)");
}

#[test]
fn every_call_in_the_pages_is_one_of_the_program() {
    let mut count = 0;
    for (name, page) in pages() {
        for line in code(&page) {
            let call = line.trim_start_matches(['$', '#', ' ']);
            let mut words = words(call);
            let end = words
                .iter()
                .position(|w| ["|", ">", "&&", ";"].contains(&w.as_str()));
            words.truncate(end.unwrap_or(words.len()));
            let is_program = |word: &String| Path::new(word).ends_with("ibboot");
            let Some((_, arguments)) = words.split_first().filter(|(first, _)| is_program(first))
            else {
                continue;
            };
            cli::parse(arguments).unwrap_or_else(|error| panic!("{name}: {line}: {error}"));
            count += 1;
        }
    }
    assert!(count > 20, "only {count} calls");
}

/// The kernel command lines in a line of a guide: the line, or its quoted texts (also behind
/// `addkcmdline=`) if it is a command.
fn command_lines(line: &str) -> Vec<String> {
    let is_one = |text: &String| {
        let begins = ["ip=", "rd.ib.", "bond=", "ib.pkey="];
        let mut tokens = text.split(' ');
        text.contains(' ') && tokens.any(|token| begins.iter().any(|b| token.starts_with(b)))
    };
    let mut found = match line.contains(['"', '\'']) {
        true => words(line),
        false => vec![line.trim_start().to_owned()],
    };
    for word in &mut found {
        *word = word.trim_start_matches("addkcmdline=").to_owned();
    }
    found.retain(is_one);
    found
}

#[test]
fn every_command_line_of_a_guide_is_understood() {
    let mut count = 0;
    for (name, page) in pages() {
        if !name.starts_with("docs/guides/") {
            continue;
        }
        for text in code(&page).into_iter().flat_map(command_lines) {
            let request = Request::from_text(&text);
            assert_eq!(request.complaints, Vec::<String>::new(), "{name}: {text}");
            assert!(
                request.requested_by.is_some(),
                "{name}: requests nothing: {text}"
            );
            count += 1;
        }
    }
    assert!(count >= 15, "only {count} command lines");
}

/// The text of the fenced block of a language.
fn block<'p>(page: &'p str, language: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_dhcp_servers_take_their_configuration() {
    let page = read("docs/guides/dhcp-servers.md");
    let checks: [(&str, &str, &[&str]); 3] = [
        ("dnsmasq", "dnsmasq", &["--test", "-C"]),
        ("json", "kea-dhcp4", &["-t"]),
        ("dhcpd", "dhcpd", &["-t", "-cf"]),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (language, server, arguments) in checks {
        let file = folder.path().join(server);
        fs::write(&file, block(&page, language)).unwrap();
        let path = "/usr/sbin:/usr/bin:/sbin:/bin";
        let run = Command::new("env")
            .args(["-i", &format!("PATH={path}"), server])
            .args(arguments)
            .arg(&file)
            .output()
            .unwrap();
        if run.status.code() == Some(127) {
            println!("skipped in part: configuration of {server}: it is not installed here");
            continue;
        }
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(run.status.success(), "{server}: {said}");
    }
}

/// The names of gauges in a text.
fn gauges(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c: char| !is_part(c))
        .filter(|word| word.starts_with("ibboot_"))
        .filter(|word| !["ibboot_drivers", "ibboot_sm", "ibboot_binary"].contains(word))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_manual_the_alerts_and_the_board_have_the_gauges_of_the_program() {
    let outputs = outputs().join("\n");
    let types = outputs
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let mut printed: BTreeSet<String> = types.flat_map(gauges).collect();
    // A saved tree has no clock.
    printed.insert("ibboot_check_timestamp_seconds".to_owned());
    assert_eq!(gauges(&read("man/ibboot-monitoring.7")), printed);
    let board = read("monitoring/grafana/ibboot.json");
    serde_json::from_str::<serde_json::Value>(&board).unwrap();
    let rules = read("monitoring/prometheus/ibboot.rules.yml");
    for used in gauges(&board).iter().chain(&gauges(&rules)) {
        assert!(printed.contains(used), "no case prints {used}");
    }
}
