// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands.

mod format;

use std::path::PathBuf;
use std::time::Duration;

use argh::{ArgsInfo, CommandInfoWithArgs, FromArgs};
use kernel_cmdline::nearest;

use crate::error::{Error, Kind, Result};

pub use format::{CheckFormat, Format, SuggestFormat, TimelineFormat};

/// Bring up, verify and hand over InfiniBand and RoCE links during early boot.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    note = "Without a command: status. Global options may appear before or after the command: --root TREE reads files below TREE instead of /; --limit SECONDS ends the command after this time even if the kernel does not answer; -v prints more; -h prints help, -V the version.",
    example = "What would a command line do, without any hardware:\n  {command_name} plan --cmdline 'rd.ib.link=rxe0:rxe:eth0 rd.neednet=1'",
    example = "Do the links still match the verified state:\n  {command_name} check",
    error_code(
        0,
        "done; plan --requested: the command line requests something; up: verified; check: ok"
    ),
    error_code(
        1,
        "failed; plan, up --dry-run: something is wrong or refused; hardware-report: a claim is false; check: warning (--format nhc or journal: critical or unknown); turn --finished: not yet"
    ),
    error_code(2, "nothing requested; suggest: nothing to suggest; check: critical"),
    error_code(
        3,
        "check: unknown; timeline: the files of the handover are missing or cannot be used; lease: they cannot be used"
    ),
    error_code(64, "wrong usage")
)]
pub struct Arguments {
    #[argh(subcommand)]
    /// the command
    pub command: Command,
}

/// One of the commands.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand)]
pub enum Command {
    /// status
    Status(StatusArguments),
    /// plan
    Plan(PlanArguments),
    /// suggest
    Suggest(SuggestArguments),
    /// up
    Up(UpArguments),
    /// check
    Check(CheckArguments),
    /// explain
    Explain(ExplainArguments),
    /// facts
    Facts(FactsArguments),
    /// report
    Report(ReportArguments),
    /// hardware-report
    HardwareReport(HardwareReportArguments),
    /// lease
    Lease(LeaseArguments),
    /// timeline
    Timeline(TimelineArguments),
    /// turn
    Turn(TurnArguments),
}

/// Show a row for each port, the failures first; the command if none is given.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "status")]
pub struct StatusArguments {}

/// Show the steps that the kernel command line requests, and what is refused on this machine.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    subcommand,
    name = "plan",
    error_code(0, "every step is possible; with --requested something is requested"),
    error_code(1, "something is wrong, refused or missing in the image"),
    error_code(
        2,
        "nothing is requested, also if something is wrong (1 if the image lacks something)"
    )
)]
pub struct PlanArguments {
    /// use this command line instead of the machine's
    #[argh(option, arg_name = "text")]
    pub cmdline: Option<String>,
    /// look into this initramfs instead of /lib/modules: its modules, its ibboot, its command line
    #[argh(option, arg_name = "file")]
    pub image: Option<PathBuf>,
    /// text (default) or json
    #[argh(option, default = "Format::Text", arg_name = "format")]
    pub format: Format,
    /// print nothing; exit 0 if something is requested, 2 if not; in an initramfs also write
    /// /run/ibboot/requested (dracut's cmdline hook)
    #[argh(switch)]
    pub requested: bool,
}

/// Write the kernel arguments for the links that this node has now, each with its reason.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    subcommand,
    name = "suggest",
    error_code(0, "there is something to suggest"),
    error_code(2, "there is nothing to suggest")
)]
pub struct SuggestArguments {
    /// text (default), line or json
    #[argh(option, default = "SuggestFormat::Text", arg_name = "format")]
    pub format: SuggestFormat,
}

/// Carry out the plan: load, create, wait, verify, hand over. Safe to repeat.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    subcommand,
    name = "up",
    error_code(0, "everything required is verified"),
    error_code(1, "failed; with --dry-run something is refused"),
    error_code(2, "nothing is requested")
)]
pub struct UpArguments {
    /// in an initramfs, begin before dracut's cmdline hooks have ended, and end after them
    /// (ibboot.service)
    #[argh(switch)]
    pub early: bool,
    /// only tell the network modules of the initramfs to leave the interfaces, and a root file
    /// system over them, alone (dracut's cmdline hook)
    #[argh(switch)]
    pub reserve: bool,
    /// only tell the network programs of the real root what rd.ib.handover= requests (dracut's
    /// cleanup hook)
    #[argh(switch)]
    pub hand_over: bool,
    /// only print the next changes, one a line; works on a saved machine too (--root)
    #[argh(switch)]
    pub dry_run: bool,
}

/// Compare the machine with what was handed over, or with what the command line requests.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    subcommand,
    name = "check",
    error_code(0, "ok"),
    error_code(1, "warning; with --format nhc or journal: critical or unknown"),
    error_code(2, "critical"),
    error_code(
        3,
        "unknown: nothing to compare with, an argument is invalid, something cannot be read, or --limit expired"
    )
)]
pub struct CheckArguments {
    /// text (default), json, nagios, prom, nhc or journal
    #[argh(option, default = "CheckFormat::Text", arg_name = "format")]
    pub format: CheckFormat,
    /// compare with this command line instead of the handover
    #[argh(option, arg_name = "text")]
    pub cmdline: Option<String>,
    /// repeat the check every 2 s, until interrupted
    #[argh(switch)]
    pub watch: bool,
    /// text: every check of every link, not only failures and warnings
    #[argh(switch)]
    pub all: bool,
    /// also query the subnet administrators of ACTIVE InfiniBand ports
    #[argh(switch)]
    pub sm: bool,
    /// keep the first report after boot in /run/ibboot/check.json, for the timeline
    #[argh(switch)]
    pub record: bool,
    /// also write the output of --format prom to this file, in one step
    #[argh(option, arg_name = "file")]
    pub textfile: Option<PathBuf>,
}

/// Explain a check or a kernel argument: what it means, causes of a failure, and commands.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "explain")]
pub struct ExplainArguments {
    /// the check (port.state), the argument (rd.ib.require) or the terms (selectors, addresses);
    /// without a name: the list of all
    #[argh(positional)]
    pub name: Option<String>,
}

/// Print the RDMA state of this machine as JSON.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "facts")]
pub struct FactsArguments {
    /// also save every file that was read in this new directory, for a bug report and as a tree
    /// for --root
    #[argh(option, arg_name = "directory")]
    pub tree: Option<PathBuf>,
}

/// Save the state of this machine in a tar archive without secrets, for a bug report.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "report")]
pub struct ReportArguments {
    /// the archive, a new file; default ibboot-report.tar
    #[argh(
        option,
        default = "PathBuf::from(\"ibboot-report.tar\")",
        arg_name = "file"
    )]
    pub output: PathBuf,
}

/// Test what ibboot assumes about the RDMA hardware, one line for each claim, and save the results
/// in a tar archive without secrets.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    subcommand,
    name = "hardware-report",
    error_code(0, "the archive was written, and no claim is false"),
    error_code(1, "failed, a claim is false, or the port is in use")
)]
pub struct HardwareReportArguments {
    /// also set the interfaces of this unused port (mlx5_0/1) down and up and record the events
    #[argh(option, arg_name = "port")]
    pub disturb: Option<String>,
    /// with --disturb: also unbind and bind the driver of the port
    #[argh(switch)]
    pub rebind: bool,
    /// the archive, a new file; default ibboot-hardware-report.tar
    #[argh(
        option,
        default = "PathBuf::from(\"ibboot-hardware-report.tar\")",
        arg_name = "file"
    )]
    pub output: PathBuf,
}

/// Keep the DHCP leases of the initramfs: renew them until stopped (ibboot-lease.service).
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    subcommand,
    name = "lease",
    error_code(0, "stopped, or there is no lease to keep"),
    error_code(1, "another instance keeps the leases, or the kernel refuses a socket"),
    error_code(3, "the files of the handover cannot be used")
)]
pub struct LeaseArguments {}

/// Show where the boot time went.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(
    subcommand,
    name = "timeline",
    error_code(0, "done"),
    error_code(3, "the files of the handover are missing or cannot be used")
)]
pub struct TimelineArguments {
    /// text (default), json or svg
    #[argh(option, default = "TimelineFormat::Text", arg_name = "format")]
    pub format: TimelineFormat,
}

/// Tell dracut's hooks what to do after the verdict, and keep their progress in /run/ibboot.
#[derive(FromArgs, ArgsInfo, Debug)]
#[argh(subcommand, name = "turn")]
pub struct TurnArguments {
    /// the steps that were printed are done
    #[argh(switch)]
    pub ended: bool,
    /// no shell that carries out steps runs
    #[argh(switch)]
    pub idle: bool,
    /// print nothing; exit 0 if the boot may go on, 1 if not
    #[argh(switch)]
    pub finished: bool,
}

/// The parsed arguments.
#[derive(Debug)]
pub struct Call {
    /// Prefix of all paths.
    pub root: PathBuf,
    /// Log at debug level.
    pub verbose: bool,
    /// The command ends after this time.
    pub limit: Option<Duration>,
    pub command: Command,
}

impl Call {
    /// The arguments of this call for a message, without the command line: it may contain passwords.
    pub fn shown(&self, arguments: &[String]) -> String {
        let cmdline = match &self.command {
            Command::Plan(plan) => plan.cmdline.as_deref(),
            Command::Check(check) => check.cmdline.as_deref(),
            _ => None,
        };
        let shown = |argument: &String| match cmdline.and_then(|text| argument.strip_suffix(text)) {
            Some(option) if matches!(option, "" | "--cmdline=") => format!("{option}****"),
            _ => argument.clone(),
        };
        arguments.iter().map(shown).collect::<Vec<_>>().join(" ")
    }
}

/// Result of [`parse`].
#[derive(Debug)]
pub enum Parsed {
    /// A command to run.
    Call(Box<Call>),
    /// Help or version text to print.
    Help(String),
}

/// The options of the commands that take a value.
const VALUED: &[&str] = &[
    "--cmdline",
    "--disturb",
    "--format",
    "--image",
    "--output",
    "--textfile",
    "--tree",
];

/// Parses the program's arguments (without the program's name). The error is of kind `Usage`.
pub fn parse(arguments: &[String]) -> Result<Parsed> {
    let options = GlobalOptions::split(arguments)?;
    if options.is_version {
        let version = format!("ibboot {}\n", env!("CARGO_PKG_VERSION"));
        return Ok(Parsed::Help(version));
    }
    match Arguments::from_args(&["ibboot"], &options.rest) {
        Ok(arguments) => Ok(Parsed::Call(Box::new(Call {
            root: options.root,
            verbose: options.verbose,
            limit: options.limit,
            command: arguments.command,
        }))),
        Err(exit) if exit.status.is_ok() => Ok(Parsed::Help(exit.output)),
        Err(exit) => {
            let mut lines = exit.output.lines();
            let line = lines.find(|l| !l.trim().is_empty());
            let line = line.unwrap_or("wrong call").trim();
            Err(wrong(line.trim_end_matches('.'), &options.rest))
        }
    }
}

/// The options that stand anywhere, which argh does not support, and the rest of a call.
struct GlobalOptions<'a> {
    root: PathBuf,
    verbose: bool,
    limit: Option<Duration>,
    is_version: bool,
    /// The command and its arguments.
    rest: Vec<&'a str>,
}

impl<'a> GlobalOptions<'a> {
    fn split(arguments: &'a [String]) -> Result<GlobalOptions<'a>> {
        let usage = |what: &str| {
            Error::new("usage", what.trim())
                .kind(Kind::Usage)
                .hint("see ibboot --help")
        };
        let seconds = |text: Option<&str>| {
            let number = text.and_then(|text| text.parse::<u16>().ok());
            let number = number.filter(|seconds| *seconds > 0);
            let missing = || usage("--limit needs a number of seconds from 1 to 65535");
            number
                .map(|n| Duration::from_secs(n.into()))
                .ok_or_else(missing)
        };
        let mut found = GlobalOptions {
            root: PathBuf::from("/"),
            verbose: false,
            limit: None,
            is_version: false,
            rest: Vec::new(),
        };
        let mut all = arguments.iter().map(String::as_str);
        while let Some(argument) = all.next() {
            match argument {
                "-v" | "--verbose" => found.verbose = true,
                "-h" => found.rest.push("--help"),
                "--root" => {
                    let directory = all.next();
                    let directory = directory.ok_or_else(|| usage("--root needs a directory"))?;
                    found.root = PathBuf::from(directory);
                }
                "--limit" => found.limit = Some(seconds(all.next())?),
                "-V" | "--version" => {
                    found.is_version = true;
                    return Ok(found);
                }
                // The value of these options may look like a global option.
                option if VALUED.contains(&option) => {
                    found.rest.push(option);
                    found.rest.extend(all.next());
                }
                _ => match argument.split_once('=') {
                    Some(("--root", directory)) => found.root = PathBuf::from(directory),
                    Some(("--limit", text)) => found.limit = Some(seconds(Some(text))?),
                    // argh expects the value as a separate argument.
                    Some((option, value)) if VALUED.contains(&option) => {
                        found.rest.extend([option, value]);
                    }
                    _ => found.rest.push(argument),
                },
            }
        }
        if found.rest.is_empty() {
            found.rest.push("status");
        }
        Ok(found)
    }
}

/// The error for what argh refuses.
fn wrong(line: &str, own: &[&str]) -> Error {
    let error = Error::new("usage", line).kind(Kind::Usage);
    let Some(unknown) = line.strip_prefix("Unrecognized argument: ") else {
        return error.hint("see ibboot --help");
    };
    let all = Arguments::get_args_info();
    let called = own.iter().find(|argument| !argument.starts_with('-'));
    let command = all.commands.iter().find(|c| called == Some(&c.name));
    let (what, names, help): (_, Vec<&str>, String) = match command {
        Some(command) => (
            "option",
            options(&command.command).collect(),
            format!("see ibboot {} --help", command.name),
        ),
        None => (
            "command",
            all.commands.iter().map(|command| command.name).collect(),
            "see ibboot --help".to_owned(),
        ),
    };
    let what = match what {
        "option" if !unknown.starts_with('-') => "argument",
        what => what,
    };
    // A word of a command line without quotes: its value may be a password.
    let shown = match unknown.split_once('=') {
        Some((name, _)) => format!("{name}=****"),
        None => unknown.to_owned(),
    };
    let error = Error::new("usage", format!("unknown {what} '{shown}'")).kind(Kind::Usage);
    if what == "argument" && own.contains(&"--cmdline") {
        return error.hint("write the command line in quotes: --cmdline \"TEXT\"");
    }
    match nearest(unknown, names.into_iter()) {
        Some(name) => error.hint(format!("did you mean {name}?")),
        None => error.hint(help),
    }
}

/// Options of every command, beside `--help`.
pub const GLOBAL: &[&str] = &["--root", "--limit", "--verbose", "--version"];

/// The options of a command, as written.
pub fn options(command: &CommandInfoWithArgs) -> impl Iterator<Item = &'static str> {
    let own = command.flags.iter().map(|flag| flag.long);
    own.chain(GLOBAL.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use argh::FlagInfoKind;
    use std::collections::BTreeSet;

    #[test]
    fn a_word_of_a_command_line_without_quotes_is_named_without_its_value() {
        let call = ["plan", "--cmdline", "quiet", "rd.iscsi.password=S3CR3T"];
        let error = parse(&call.map(str::to_owned)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "usage: unknown argument 'rd.iscsi.password=****'; write the command line in quotes: \
             --cmdline \"TEXT\""
        );
    }

    #[test]
    fn a_missing_value_is_one_sentence_and_its_hint() {
        let error = parse(&["check".to_owned(), "--cmdline".to_owned()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "usage: No value provided for option '--cmdline'; see ibboot --help"
        );
    }

    #[test]
    fn a_value_may_stand_behind_an_equals_sign() {
        let all = Arguments::get_args_info();
        let commands = all.commands.iter().map(|command| &command.command);
        let flags = commands.flat_map(|command| command.flags.iter());
        let valued: BTreeSet<&str> = flags
            .filter(|flag| matches!(flag.kind, FlagInfoKind::Option { .. }))
            .map(|flag| flag.long)
            .collect();
        assert_eq!(valued, VALUED.iter().copied().collect());
        let parsed = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            match parse(&arguments) {
                Ok(Parsed::Call(call)) => format!("{:?}", call.command),
                other => format!("{other:?}"),
            }
        };
        for (together, apart) in [
            (
                &["check", "--textfile=a=b"][..],
                &["check", "--textfile", "a=b"][..],
            ),
            (
                &["hardware-report", "--disturb=mlx5_0/1"],
                &["hardware-report", "--disturb", "mlx5_0/1"],
            ),
        ] {
            let found = parsed(together);
            assert!(found.contains("Arguments {"), "{found}");
            assert_eq!(found, parsed(apart));
        }
    }
}
