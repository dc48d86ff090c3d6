// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands.

use std::path::PathBuf;
use std::time::Duration;

use argh::FromArgs;

use crate::error::{Error, Kind, Result};

/// Bring up, verify and hand over InfiniBand and RoCE links during early boot.
#[derive(FromArgs, Debug)]
#[argh(
    note = "Global options stand anywhere: --root TREE reads files below TREE instead of /; --limit SECONDS ends the command after this time even if the kernel does not answer; -v prints more.",
    example = "What would a command line do, without any hardware:\n  {command_name} plan --cmdline 'rd.ib.link=rxe0:rxe:eth0 rd.neednet=1'",
    example = "Are the links still as the initramfs verified them:\n  {command_name} check",
    error_code(
        0,
        "done; plan --asked: the command line requests something; up: verified; check: ok"
    ),
    error_code(
        1,
        "failed; plan, up --dry-run: something is wrong or refused; hardware-report: a claim is false; check: warning; turn --finished: not yet"
    ),
    error_code(2, "nothing requested; check: critical"),
    error_code(3, "check, timeline: nothing to compare with"),
    error_code(64, "wrong usage")
)]
pub struct Arguments {
    #[argh(subcommand)]
    /// the command
    pub command: Command,
}

/// One of the commands.
#[derive(FromArgs, Debug)]
#[argh(subcommand)]
pub enum Command {
    /// plan
    Plan(PlanArguments),
    /// up
    Up(UpArguments),
    /// check
    Check(CheckArguments),
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

/// Show the steps that the kernel command line requests, and what is refused on this machine.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "plan")]
pub struct PlanArguments {
    /// use this command line instead of the machine's
    #[argh(option, arg_name = "text")]
    pub cmdline: Option<String>,
    /// text or json
    #[argh(option, default = "Format::Text", arg_name = "format")]
    pub format: Format,
    /// print nothing; exit 0 if something is requested, 2 if not; in an initramfs also write
    /// /run/ibboot/asked (dracut's cmdline hook)
    #[argh(switch)]
    pub asked: bool,
}

/// Carry out the plan: load, create, wait, verify, hand over. Safe to repeat.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "up")]
pub struct UpArguments {
    /// in an initramfs, load the drivers at once and do the rest when dracut's cmdline hooks have
    /// ended (ibboot.service)
    #[argh(switch)]
    pub early: bool,
    /// only tell the network modules of the initramfs to leave the interfaces, and a root file
    /// system over them, alone (dracut's cmdline hook)
    #[argh(switch)]
    pub claim: bool,
    /// only tell the network programs of the real root what rd.ib.handover= requests (dracut's
    /// cleanup hook)
    #[argh(switch)]
    pub hand_over: bool,
    /// only print the next changes, one a line; works on a saved machine too (--root)
    #[argh(switch)]
    pub dry_run: bool,
}

/// Compare the machine with what was handed over, or with what the command line requests.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "check")]
pub struct CheckArguments {
    /// text, json, nagios, prom, nhc or journal
    #[argh(option, default = "CheckFormat::Text", arg_name = "format")]
    pub format: CheckFormat,
    /// also query the subnet managers of ports that work
    #[argh(switch)]
    pub sm: bool,
    /// keep the first report after boot in /run/ibboot/check.json, for the timeline
    #[argh(switch)]
    pub record: bool,
    /// also write the output of --format prom to this file, in one step
    #[argh(option, arg_name = "file")]
    pub textfile: Option<PathBuf>,
}

/// Print the RDMA state of this machine as JSON.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "facts")]
pub struct FactsArguments {
    /// also save every file that was read in this new directory, for a bug report and as a tree
    /// for --root
    #[argh(option, arg_name = "directory")]
    pub tree: Option<PathBuf>,
}

/// Save the state of this machine in a tar archive without secrets, for a bug report.
#[derive(FromArgs, Debug)]
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
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "hardware-report")]
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
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "lease")]
pub struct LeaseArguments {}

/// Show where the boot time went.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "timeline")]
pub struct TimelineArguments {
    /// text, json or svg
    #[argh(option, default = "TimelineFormat::Text", arg_name = "format")]
    pub format: TimelineFormat,
}

/// Tell dracut's hooks what to do after the verdict, and keep their progress in /run/ibboot.
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "turn")]
pub struct TurnArguments {
    /// the steps that were printed are done
    #[argh(switch)]
    pub ended: bool,
    /// print nothing; exit 0 if the boot may go on, 1 if not
    #[argh(switch)]
    pub finished: bool,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            _ => Err("expected text or json".to_owned()),
        }
    }
}

/// How `check` prints its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// As a Nagios plugin.
    Nagios,
    /// Prometheus' text format.
    Prom,
    /// One line for a node health check, with its exit code.
    Nhc,
    /// Lines with the priority of the journal, and the exit code of a unit.
    Journal,
}

impl std::str::FromStr for CheckFormat {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "text" => Ok(CheckFormat::Text),
            "json" => Ok(CheckFormat::Json),
            "nagios" => Ok(CheckFormat::Nagios),
            "prom" => Ok(CheckFormat::Prom),
            "nhc" => Ok(CheckFormat::Nhc),
            "journal" => Ok(CheckFormat::Journal),
            _ => Err("expected text, json, nagios, prom, nhc or journal".to_owned()),
        }
    }
}

/// How `timeline` prints its marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// A picture.
    Svg,
}

impl std::str::FromStr for TimelineFormat {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "text" => Ok(TimelineFormat::Text),
            "json" => Ok(TimelineFormat::Json),
            "svg" => Ok(TimelineFormat::Svg),
            _ => Err("expected text, json or svg".to_owned()),
        }
    }
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

/// Result of [`parse`].
#[derive(Debug)]
pub enum Parsed {
    /// A command to run.
    Call(Box<Call>),
    /// Help or version text to print.
    Help(String),
}

/// Parses the program's arguments (without the program's name). The error is of kind `Usage`.
pub fn parse(arguments: &[String]) -> Result<Parsed> {
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
    let mut root = PathBuf::from("/");
    let mut verbose = false;
    let mut limit = None;
    let mut own: Vec<&str> = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    // argh does not support options that may stand before or after the command.
    while let Some(argument) = rest.next() {
        match argument {
            "-v" | "--verbose" => verbose = true,
            "--root" => {
                root = PathBuf::from(
                    rest.next()
                        .ok_or_else(|| usage("--root needs a directory"))?,
                )
            }
            "--limit" => limit = Some(seconds(rest.next())?),
            "--version" => {
                return Ok(Parsed::Help(format!(
                    "ibboot {}\n",
                    env!("CARGO_PKG_VERSION")
                )));
            }
            // The value of these options may look like a global option.
            "--cmdline" | "--format" | "--tree" | "--output" => {
                own.push(argument);
                own.extend(rest.next());
            }
            _ => match argument.split_once('=') {
                Some(("--root", directory)) => root = PathBuf::from(directory),
                Some(("--limit", text)) => limit = Some(seconds(Some(text))?),
                // argh expects the value as a separate argument.
                Some((option @ ("--cmdline" | "--format" | "--tree" | "--output"), value)) => {
                    own.extend([option, value]);
                }
                _ => own.push(argument),
            },
        }
    }
    if own.is_empty() {
        return Err(usage("a command is missing")
            .expected("plan, up, check, facts, report, hardware-report, lease or timeline"));
    }
    match Arguments::from_args(&["ibboot"], &own) {
        Ok(arguments) => Ok(Parsed::Call(Box::new(Call {
            root,
            verbose,
            limit,
            command: arguments.command,
        }))),
        Err(exit) if exit.status.is_ok() => Ok(Parsed::Help(exit.output)),
        Err(exit) => Err(usage(
            exit.output
                .lines()
                .find(|l| !l.trim().is_empty())
                .unwrap_or("wrong call"),
        )),
    }
}
