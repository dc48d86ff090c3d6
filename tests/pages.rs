// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages and completions that are written from the tables of the program: ibboot.checks(7),
//! docs/troubleshooting.md and completions/. `BLESS=1` writes them (`make docs`).

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use argh::{ArgsInfo, FlagInfo, FlagInfoKind, SubCommandInfo};
use ibboot::cli::{Arguments, GLOBAL, options};
use ibboot::verify::checks::{Check, TABLE};
use ibboot::verify::guide::{Guide, guide, needs, severity, wait};
use kernel_cmdline::PARAMETERS;
use kernel_cmdline::docs::SECTIONS;

const INTRODUCTION: &str = "Each check that ibboot makes, in the order in which the checks are made. At the \
    deadline and in the formats text and journal of ibboot check, the name of the check follows each failure in \
    square brackets. ibboot explain NAME prints the same text on a node without network. If a check fails, the checks that depend \
    on that check are skipped. IF, DEVICE, PORT, PCI-ADDRESS, SERVER and MODULE stand for an interface, an RDMA device, the number \
    of its port, a PCI address (ls -l /sys/class/infiniband shows those of the devices), a server and a kernel module.";

/// What holds for all checks, after the checks.
const REPORTS: [(&str, &str); 3] = [
    (
        "Files that cannot be read",
        "A check that did not pass and that depends on an unreadable file is unknown, and names the file and the \
         kernel's error: a file that cannot be read does not prove that something is missing. The same holds \
         for a device whose ports cannot be listed, for addresses and routes of which rtnetlink returned no \
         complete list, and for a state.json that does not parse.",
    ),
    (
        "Ports without a link",
        "Some ports carry no link and are listed as such, without a check: management planes of a card (SMI \
         sub-devices, Linux 6.11 on); ports of an NVSwitch, in the NVLink fabric, which NVLSM manages (their \
         VPD has the word SW_MNG); representors of virtual functions (the phys_port_name of their interface \
         begins with pf); on an Ethernet device with more than two ports, ports without a network \
         interface; and Ethernet ports for raw packets only, whose directory gids in sysfs has no file: the uplink \
         of an mlx5 card in switchdev mode (port p0 of a BlueField DPU), a port of an mlx5 card whose enable_roce \
         is false, and manae_N on Azure. None of these is counted, set up or judged, and the name of a device means its other ports.",
    ),
    (
        "Status",
        "The status of a link is that of its worst check, in the order ok, warning, unknown, critical; a check \
         that was skipped does not count. \
         The status of the report is ok if every module and every link is ok; warning if the required links \
         are ok and something else is not; critical if something required is known to be missing; unknown if \
         nothing is requested, if a check is unknown and nothing required is known to be missing, or if an \
         argument is invalid, because ibboot cannot know what that argument would require. A link with only \
         warnings counts as verified, unless its RDMA device is in another network namespace. Reports leave out the checks that nothing requests: the checks from \
         ipoib.present on need a request for an IPoIB interface.",
    ),
];

fn compare(path: &str, rendered: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, rendered).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let path = path.display();
    assert!(
        written == rendered,
        "{path} is not what the tables say: run make docs"
    );
}

/// The checks with their causes and commands, and the name of an earlier check that has printed the
/// same ones.
fn guides() -> impl Iterator<Item = (&'static Check, Guide, Option<&'static str>)> {
    let mut printed: Option<(&str, Guide)> = None;
    TABLE.iter().map(move |&row| {
        let own = guide(row.id);
        let shown = |guide: &Guide| (guide.causes, guide.node, guide.server, guide.switch);
        let same =
            printed.filter(|(_, other)| !own.causes.is_empty() && shown(other) == shown(&own));
        let same = same.map(|(name, _)| name);
        if same.is_none() {
            printed = Some((row.name, own));
        }
        (row, own, same)
    })
}

fn roff(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '"' => out.push_str("\\(dq"),
            '`' => out.push_str("\\(ga"),
            other => out.push(other),
        }
    }
    match out.starts_with('.') {
        true => format!("\\&{out}"),
        false => out,
    }
}

#[test]
fn the_manual_page_of_the_checks_is_up_to_date() {
    let mut out = String::from(
        ".\\\" SPDX-License-Identifier: MIT OR Apache-2.0\n\
         .\\\" Written from src/verify/checks.rs and src/verify/guide.rs; make docs renews it.\n\
         .TH IBBOOT.CHECKS 7 \"2026-11-23\" \"ibboot\" \"Checks\"\n.ad l\n\
         .SH NAME\nibboot.checks \\- the checks of ibboot, causes of failures, and commands\n.SH DESCRIPTION\n",
    );
    writeln!(out, "{}", roff(INTRODUCTION)).unwrap();
    for (row, guide, same) in guides() {
        writeln!(out, ".SH {}", roff(&row.name.to_uppercase())).unwrap();
        writeln!(out, ".B {}", roff(row.name)).unwrap();
        writeln!(out, "proves that {}.", roff(row.why)).unwrap();
        writeln!(
            out,
            "If not: {}.\n{}",
            roff(row.failure),
            roff(severity(row))
        )
        .unwrap();
        for text in [guide.detail.to_owned(), needs(row), wait(row)] {
            if !text.is_empty() {
                writeln!(out, ".PP\n{}", roff(&text)).unwrap();
            }
        }
        if let Some(name) = same {
            writeln!(out, ".PP\nCauses and commands: as for {name}.").unwrap();
            continue;
        }
        out.push_str(".PP\nCauses, the most frequent first:\n");
        for cause in guide.causes {
            writeln!(out, ".IP \\(bu 2\n{}", roff(cause)).unwrap();
        }
        for (host, commands) in guide.hosts() {
            writeln!(out, ".PP\nCommands {host}:\n.PP\n.nf\n.RS").unwrap();
            for command in commands {
                writeln!(out, "{}", roff(command)).unwrap();
            }
            out.push_str(".RE\n.fi\n");
        }
    }
    for (title, text) in REPORTS {
        writeln!(out, ".SH {}\n{}", roff(&title.to_uppercase()), roff(text)).unwrap();
    }
    out.push_str(".SH SEE ALSO\n.BR ibboot (8),\n.BR ibboot.cmdline (7)\n");
    compare("man/ibboot.checks.7", &out);
}

#[test]
fn the_page_about_troubleshooting_is_up_to_date() {
    let mut out = String::from(
        "# Troubleshooting\n\n<!-- Written from src/verify/checks.rs and src/verify/guide.rs; make docs renews it. -->\n\n",
    );
    out.push_str("[A node hangs at boot](node-hangs.md) starts from the lines on the console.\n\n");
    writeln!(out, "{INTRODUCTION}\n").unwrap();
    out.push_str("| message | check |\n|---|---|\n");
    for row in TABLE {
        let anchor = row.name.replace('.', "");
        writeln!(out, "| {} | [{}](#{anchor}) |", row.failure, row.name).unwrap();
    }
    for (row, guide, same) in guides() {
        writeln!(out, "\n## {}\n", row.name).unwrap();
        writeln!(
            out,
            "Proves that {}. If not: \"{}\". {}\n",
            row.why,
            row.failure,
            severity(row)
        )
        .unwrap();
        for text in [guide.detail.to_owned(), needs(row), wait(row)] {
            if !text.is_empty() {
                writeln!(out, "{text}\n").unwrap();
            }
        }
        if let Some(name) = same {
            let anchor = name.replace('.', "");
            writeln!(out, "Causes and commands: as for [{name}](#{anchor}).").unwrap();
            continue;
        }
        for (number, cause) in (1..).zip(guide.causes) {
            writeln!(out, "{number}. {cause}").unwrap();
        }
        for (host, commands) in guide.hosts() {
            writeln!(out, "\nCommands {host}:\n").unwrap();
            for command in commands {
                writeln!(out, "    {command}").unwrap();
            }
        }
    }
    for (title, text) in REPORTS {
        writeln!(out, "\n## {title}\n\n{text}").unwrap();
    }
    compare("docs/troubleshooting.md", &out);
}

/// The names of the fields of JSON texts, one field in a line.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter_map(|line| {
        let (name, value) = line.trim_start().strip_prefix('"')?.split_once("\": ")?;
        // The modules of the facts have their names as fields.
        let is_module = ["\"live\"", "\"coming\"", "\"going\""];
        (!is_module.contains(&value.trim_end_matches(','))).then_some(name)
    });
    lines.filter(|name| !name.contains('"'))
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => below(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

#[test]
fn every_field_of_json_is_in_the_manual_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("man/ibboot-json.5")).unwrap();
    let page = page.replace("\\fI", " ").replace("\\fP", " ");
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = page.split(|c| !is_name(c)).collect();
    let mut files = Vec::new();
    for folder in ["tests/cases", "kernel-cmdline/examples"] {
        below(&root.join(folder), &mut files);
    }
    let mut known = BTreeSet::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        if !["case", "state.json"].contains(&name) {
            continue;
        }
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        for field in fields(&text) {
            assert!(words.contains(field), "{}: {field}", file.display());
            known.insert(field.to_owned());
        }
    }
    assert!(known.len() > 150, "{}", known.len());
}

/// The values of an option that has a choice: `text (default), json or svg`.
fn choices(description: &str) -> String {
    let words = description
        .replace("(default)", " ")
        .replace([',', '.'], " ");
    let words: Vec<&str> = words
        .split_whitespace()
        .filter(|word| *word != "or")
        .collect();
    words.join(" ")
}

/// The commands that a person calls.
fn commands() -> Vec<SubCommandInfo> {
    let mut commands = Arguments::get_args_info().commands;
    commands.retain(|command| command.name != "turn");
    commands
}

fn explained() -> String {
    let names = TABLE.iter().map(|row| row.name);
    let names = names.chain(PARAMETERS.iter().map(|p| p.name));
    let names: Vec<&str> = names.chain(SECTIONS.iter().map(|s| s.name)).collect();
    names.join(" ")
}

#[test]
fn the_completion_of_bash_is_up_to_date() {
    let all = commands();
    let names: Vec<&str> = all.iter().map(|command| command.name).collect();
    let mut out = String::from("# Written from src/cli.rs; make docs renews it.\n_ibboot() {\n");
    out.push_str("    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words='' command='' one\n");
    writeln!(out, "    for one in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n        case $one in {}) command=$one ;; esac\n    done", names.join("|")).unwrap();
    let is_of_path = |flag: &&FlagInfo<'_>| matches!(flag.kind, FlagInfoKind::Option { arg_name } if is_path(arg_name));
    let flags = all.iter().flat_map(|command| command.command.flags);
    let paths: BTreeSet<&str> = flags.filter(is_of_path).map(|flag| flag.long).collect();
    let paths: Vec<String> = paths.iter().map(|long| format!("*:{long}")).collect();
    writeln!(out, "    case $command:$before in\n        *:--root|{})\n            mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n            return ;;", paths.join("|")).unwrap();
    for command in &all {
        for flag in command
            .command
            .flags
            .iter()
            .filter(|flag| flag.long == "--format")
        {
            writeln!(
                out,
                "        {}:--format) words='{}' ;;",
                command.name,
                choices(flag.description)
            )
            .unwrap();
        }
    }
    writeln!(out, "        explain:explain) words='{}' ;;", explained()).unwrap();
    for command in &all {
        let flags: Vec<&str> = options(&command.command)
            .filter(|flag| flag.starts_with("--"))
            .collect();
        writeln!(
            out,
            "        {}:*) words='{}' ;;",
            command.name,
            flags.join(" ")
        )
        .unwrap();
    }
    writeln!(
        out,
        "        *) words='{} --help {}' ;;\n    esac",
        names.join(" "),
        GLOBAL.join(" ")
    )
    .unwrap();
    out.push_str("    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\ncomplete -F _ibboot ibboot\n");
    compare("completions/ibboot.bash", &out);
}

/// Whether the value of an option is the path of a file or a directory.
fn is_path(arg_name: &str) -> bool {
    ["file", "directory"].contains(&arg_name)
}

/// Text within single quotes of a shell.
fn quoted(text: &str) -> String {
    text.replace('\'', "'\\''")
}

#[test]
fn the_completion_of_zsh_is_up_to_date() {
    let label = |text: &str| {
        quoted(text)
            .replace('[', "\\[")
            .replace(']', "\\]")
            .replace(':', "\\:")
    };
    let mut out = String::from(
        "#compdef ibboot\n# Written from src/cli.rs; make docs renews it.\nlocal -a commands\ncommands=(\n",
    );
    for command in commands() {
        writeln!(
            out,
            "    '{}:{}'",
            command.name,
            label(command.command.description)
        )
        .unwrap();
    }
    out.push_str(")\nlocal context state line\n_arguments -C '--root[read files below this directory]:tree:_files -/' '--limit[end after so many seconds]:seconds:' '(-v --verbose)'{-v,--verbose}'[print more]' '(-h --help)'{-h,--help}'[print help]' '(-V --version)'{-V,--version}'[print the version]' '1:command:{_describe command commands}' '*::argument:->rest'\n[[ $state == rest ]] || return\ncase $words[1] in\n");
    for command in commands() {
        let mut line = format!("    {}) _arguments", command.name);
        for flag in command
            .command
            .flags
            .iter()
            .filter(|flag| flag.long != "--help")
        {
            let text = label(flag.description);
            match flag.kind {
                FlagInfoKind::Switch => write!(line, " '{}[{text}]'", flag.long).unwrap(),
                FlagInfoKind::Option { .. } if flag.long == "--format" => {
                    write!(
                        line,
                        " '{}[{text}]:format:({})'",
                        flag.long,
                        choices(flag.description)
                    )
                    .unwrap();
                }
                FlagInfoKind::Option { arg_name } => {
                    let files = if is_path(arg_name) { "_files" } else { "" };
                    write!(line, " '{}[{text}]:{arg_name}:{files}'", flag.long).unwrap();
                }
            }
        }
        if command.name == "explain" {
            write!(line, " '1:name:({})'", explained()).unwrap();
        }
        writeln!(out, "{line} ;;").unwrap();
    }
    out.push_str("esac\n");
    compare("completions/_ibboot", &out);
}

#[test]
fn the_completion_of_fish_is_up_to_date() {
    let mut out =
        String::from("# Written from src/cli.rs; make docs renews it.\ncomplete -c ibboot -f\n");
    let quoted = |text: &str| text.replace('\'', "\\'");
    for (long, short) in [
        ("root", " -r -F"),
        ("limit", " -x"),
        ("verbose", " -s v"),
        ("help", " -s h"),
        ("version", " -s V"),
    ] {
        writeln!(out, "complete -c ibboot -l {long}{short}").unwrap();
    }
    for command in commands() {
        let name = command.name;
        let text = quoted(command.command.description);
        writeln!(
            out,
            "complete -c ibboot -n __fish_use_subcommand -a {name} -d '{text}'"
        )
        .unwrap();
        for flag in command
            .command
            .flags
            .iter()
            .filter(|flag| flag.long != "--help")
        {
            let value = match flag.kind {
                FlagInfoKind::Switch => String::new(),
                FlagInfoKind::Option { .. } if flag.long == "--format" => {
                    format!(" -x -a '{}'", choices(flag.description))
                }
                FlagInfoKind::Option { arg_name } if is_path(arg_name) => " -r -F".to_owned(),
                FlagInfoKind::Option { .. } => " -x".to_owned(),
            };
            let (long, text) = (flag.long.trim_start_matches('-'), quoted(flag.description));
            writeln!(out, "complete -c ibboot -n '__fish_seen_subcommand_from {name}' -l {long}{value} -d '{text}'").unwrap();
        }
    }
    writeln!(
        out,
        "complete -c ibboot -n '__fish_seen_subcommand_from explain' -a '{}'",
        explained()
    )
    .unwrap();
    compare("completions/ibboot.fish", &out);
}
