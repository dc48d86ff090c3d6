// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checked-in pages are what the table renders. `BLESS=1` writes them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
)]

use std::path::Path;
use std::{env, fs};

use kernel_cmdline::{Effect, GROUPS, Origin, PARAMETERS, Source, docs, parse};

fn compare(path: &str, rendered: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if env::var_os("BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, rendered).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    let line = checked_in
        .lines()
        .zip(rendered.lines())
        .position(|(left, right)| left != right);
    assert!(
        checked_in == rendered,
        "{} is not what the table says (first difference in line {:?}); run BLESS=1 cargo test -p kernel-cmdline",
        path.display(),
        line.map(|line| line + 1),
    );
}

#[test]
fn reference_page_is_up_to_date() {
    let mut page = String::new();
    docs::write_reference(&mut page).unwrap();
    compare("REFERENCE.md", &page);
}

#[test]
fn manual_page_is_up_to_date() {
    let mut page = String::new();
    docs::write_manual(&mut page).unwrap();
    compare("../man/ibboot.cmdline.7", &page);
}

#[test]
fn every_parameter_is_said_completely() {
    for parameter in PARAMETERS {
        let name = parameter.name;
        assert!(parameter.grammar.starts_with(name), "{name}: grammar");
        for form in parameter.grammar.split(" | ") {
            assert!(form.starts_with(name), "{name}: form {form}");
        }
        assert!(
            parameter.help.ends_with('.') && parameter.help.len() > 10,
            "{name}: help"
        );
        assert!(
            !parameter.default.is_empty() && !parameter.default.ends_with('.'),
            "{name}: default"
        );
        assert!(parameter.example.starts_with(name), "{name}: example");
        assert_eq!(
            PARAMETERS.iter().filter(|other| other.name == name).count(),
            1,
            "{name}: listed twice"
        );
        assert_eq!(
            name.starts_with("rd.ib.") || name == "rd.ib",
            parameter.origin == Origin::Ibboot,
            "{name}: origin"
        );
    }
    assert_eq!(
        PARAMETERS.len(),
        GROUPS
            .iter()
            .map(|group| group.parameters.len())
            .sum::<usize>()
    );
}

/// What the page shows as an example is read without a complaint. What ibboot carries out has an
/// effect.
#[test]
fn every_example_works() {
    let nothing = parse(&[]);
    for parameter in PARAMETERS {
        let source = [Source::new("example", parameter.example.as_bytes())];
        let arguments = parse(&source);
        let complaints: Vec<_> = arguments
            .complaints
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(complaints.is_empty(), "{complaints:?}");
        // systemd waits for rd.timeout=.
        let is_left = matches!(parameter.effect, Effect::LeftToDracut | Effect::Ethernet)
            || parameter.name == "rd.timeout";
        assert!(
            is_left || arguments != nothing,
            "{} has no effect",
            parameter.example
        );
    }
}

/// Who carries an argument out is said.
#[test]
fn whoever_carries_a_parameter_out_is_named() {
    for (name, effect) in [
        ("nameserver", Effect::InfiniBand),
        ("rd.route", Effect::InfiniBand),
        ("rd.net.timeout.carrier", Effect::Ethernet),
    ] {
        let parameter = PARAMETERS
            .iter()
            .find(|parameter| parameter.name == name)
            .unwrap();
        assert_eq!(parameter.effect, effect, "{name}");
    }
}
