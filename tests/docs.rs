// SPDX-License-Identifier: MIT OR Apache-2.0
//! README.md, docs/ and ibboot(8) agree with the tables of the program and with the outputs of the cases.
//! BLESS=1 has no effect here: the pages are written by hand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let pages = fs::read_dir(docs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pages: String = pages
        .map(|page| fs::read_to_string(page).unwrap())
        .chain([read("README.md")])
        .collect();
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

#[test]
fn the_manual_has_the_table_of_checks() {
    let page = read("man/ibboot.8");
    for row in TABLE {
        let begin = format!("\n{}@", row.name);
        let (_, rest) = page
            .split_once(&begin)
            .unwrap_or_else(|| panic!("{} is not in ibboot(8)", row.name));
        let after = match rest.strip_prefix("T{\n") {
            Some(block) => block.split_once("\nT}@").unwrap().0,
            None => rest.split_once('@').unwrap().0,
        };
        let parents: Vec<&str> = row
            .parents
            .iter()
            .map(|id| TABLE.iter().find(|parent| parent.id == *id).unwrap().name)
            .collect();
        assert_eq!(after, parents.join(", "), "after {}", row.name);
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
    let page = read("man/ibboot.8")
        .replace("\\fI", " ")
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
    assert_eq!(missing, Vec::<&String>::new(), "not in ibboot(8)");
}
