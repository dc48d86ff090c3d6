// SPDX-License-Identifier: MIT OR Apache-2.0
//! argv -> command -> exit code.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use dlmalloc::GlobalDlmalloc;
use ibboot::check;
use ibboot::cli::{
    self, Call, CheckArguments, CheckFormat, Command, Format, HardwareReportArguments, Parsed,
    PlanArguments, SuggestFormat, TimelineFormat, TurnArguments, UpArguments,
};
use ibboot::decoding;
use ibboot::error::{Error, Kind, Result, errno_text};
use ibboot::facts::reader;
use ibboot::generator;
use ibboot::handover::{self, gauges, timeline};
use ibboot::loader;
use ibboot::plan::text;
use ibboot::preflight;
use ibboot::request::{Request, in_initramfs};
use ibboot::status;
use ibboot::suggest::{self, files};
use ibboot::survey::claim::Claim;
use ibboot::survey::{self, Disturbance, tree};
use ibboot::system::decoder;
use ibboot::system::readiness::event_loop;
use ibboot::system::root::Root;
use ibboot::system::terminal::Terminal;
use ibboot::system::{kmsg, limit, stderr, worker};
use ibboot::turn::{self, files::Environment};
use ibboot::up::{self, peers};
use ibboot::verify::report::{NoReport, Report};
use ibboot::verify::{guide, monitoring};
use log::LevelFilter;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;

/// The pause between two checks of `check --watch`.
const WATCH: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            stderr::say(&error);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

fn run() -> Result<u8> {
    // No argument may contain invalid UTF-8; the program must report it, not panic.
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let arguments: Vec<String> = arguments
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    if program.ends_with(generator::NAME) {
        return generate(&arguments);
    }
    if let Some((worker::COMMAND, job)) = arguments.split_first().map(|(a, b)| (a.as_str(), b)) {
        return work(job);
    }
    let call = match cli::parse(&arguments)? {
        Parsed::Help(text) => return print(text).map(|()| 0),
        Parsed::Call(call) => call,
    };
    if !call.root.is_dir() {
        let what = format!("{}: not a directory that can be read", call.root.display());
        return Err(Error::new("--root", what)
            .expected(
                "what ibboot facts --tree saved, or ibboot-report of an archive of ibboot report",
            )
            .kind(Kind::Usage));
    }
    match call.limit {
        Some(limit) => execute_within(limit, &call, &arguments),
        None => execute(&call, None),
    }
}

/// Has a child carry out the command, and does not wait for the child longer than the limit.
fn execute_within(limit: Duration, call: &Call, arguments: &[String]) -> Result<u8> {
    let child = match limit::start(arguments) {
        Ok(child) => child,
        // Without /proc, as in a chroot, this program does not find itself.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return execute(call, None),
        Err(error) => return execute(call, Some(&error)),
    };
    let error = |what: &str| Error::new(call.shown(arguments), what);
    let error = match limit::end(child, limit) {
        Ok(limit::End::Exited(code, output)) => {
            let kind = match &call.command {
                Command::Check(check) => unknown(check.format),
                _ => Kind::Failed,
            };
            return print(output)
                .map(|()| code)
                .map_err(|error| error.kind(kind));
        }
        Ok(limit::End::Killed) => error("was killed").hint("see dmesg"),
        Ok(limit::End::Late) => error("has not ended in time")
            .hint("firmware does not answer, or a lock of the kernel is held: see dmesg"),
        Err(e) => error("its end cannot be awaited").found(errno_text(&e)),
    };
    match &call.command {
        Command::Check(check) => tell(&Root::new(&call.root), check, Err(error), ""),
        _ => Err(error),
    }
}

/// Carries out the command. `limitless`: why no child has its limit.
fn execute(call: &Call, limitless: Option<&io::Error>) -> Result<u8> {
    let root = match &call.command {
        Command::Facts(arguments) if arguments.tree.is_some() => Root::recording(&call.root),
        Command::Report(_) | Command::HardwareReport(_) => Root::recording(&call.root),
        _ => Root::new(&call.root),
    };
    stderr::on_panic(match call.command {
        Command::Check(_) => Kind::Unknown,
        _ => Kind::Failed,
    });
    if !matches!(call.command, Command::Up(_)) {
        stderr::init(match call.command {
            _ if call.verbose => LevelFilter::Debug,
            // A service: its journal shows each renewal.
            Command::Lease(_) => LevelFilter::Info,
            _ => LevelFilter::Warn,
        })?;
    }
    if let Some(error) = limitless {
        log::warn!(
            "--limit has no effect: no child can be started: {}",
            errno_text(error)
        );
    }
    match &call.command {
        Command::Status(_) => print(&status::text(&root, &Terminal::of_output())?).map(|()| 0),
        Command::Plan(arguments) => show_plan(&root, arguments),
        Command::Suggest(arguments) => show_suggestion(&root, arguments.format),
        Command::Up(arguments) => bring_up(&root, arguments, call.verbose),
        Command::Check(arguments) if arguments.watch => watch(&root, arguments),
        Command::Check(arguments) => show_check(&root, arguments, ""),
        Command::Explain(arguments) => explain(arguments.name.as_deref()),
        Command::Facts(arguments) => show_facts(&root, arguments.tree.as_deref()),
        Command::Report(arguments) => make_report(&root, || {
            survey::report(&root, &arguments.output).map(|()| true)
        }),
        Command::HardwareReport(arguments) => make_report(&root, || {
            let mut say = |claim: &Claim| print(format!("{claim}\n"));
            let request = disturbance(arguments)?;
            survey::hardware_report(&root, &arguments.output, request.as_ref(), &mut say)
        }),
        Command::Lease(_) => keep_leases(&root),
        Command::Timeline(arguments) => show_timeline(&root, arguments.format),
        Command::Turn(arguments) => take_turn(&root, arguments),
    }
}

/// Writes drop-ins for systemd, whose generators have no other output than the kernel's log.
fn generate(arguments: &[String]) -> Result<u8> {
    kmsg::init(LevelFilter::Warn, false);
    stderr::on_panic(Kind::Failed);
    let directory = arguments.first().ok_or_else(|| {
        let what = "no directory for units";
        Error::new(generator::NAME, what).kind(Kind::Usage)
    });
    let done = directory.and_then(|directory| {
        generator::generate(&Root::new("/"), Path::new(directory), kmsg::is_readable())
    });
    Ok(match done {
        Ok(()) => 0,
        Err(error) => {
            log::error!("{error}");
            error.kind.exit_code()
        }
    })
}

/// Does the job of a worker.
fn work(arguments: &[String]) -> Result<u8> {
    let job: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match job.as_slice() {
        [limit::JOB, ..] => match cli::parse(arguments.get(1..).unwrap_or_default())? {
            Parsed::Help(text) => print(&text).map(|()| 0),
            Parsed::Call(call) => execute(&call, None),
        },
        [reader::JOB, name] => reader::serve(name)
            .map(|()| 0)
            .map_err(|e| Error::io(name, "cannot be read", &e)),
        [loader::JOB] => {
            kmsg::init(LevelFilter::Info, false);
            loader::serve().map(|()| 0)
        }
        [loader::WRITE] => {
            kmsg::init(LevelFilter::Info, false);
            loader::write()
                .map(|()| 0)
                .map_err(|e| Error::io(loader::WRITE, "cannot be done", &e))
        }
        [decoder::JOB] => decoding::serve()
            .map(|()| 0)
            .map_err(|e| Error::io(decoder::JOB, "cannot be done", &e)),
        _ => Err(Error::new(worker::COMMAND, "no such job").kind(Kind::Usage)),
    }
}

/// Prints a result to stdout. A reader that closed the pipe is not an error.
fn print(text: impl AsRef<[u8]>) -> Result<()> {
    match io::stdout()
        .write_all(text.as_ref())
        .and_then(|()| io::stdout().flush())
    {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io("stdout", "cannot be written", &e))
        }
        _ => Ok(()),
    }
}

fn show_plan(root: &Root, arguments: &PlanArguments) -> Result<u8> {
    at_most_one(&[
        ("--requested", arguments.requested),
        (
            "--format json or --image",
            arguments.format == Format::Json || arguments.image.is_some(),
        ),
    ])?;
    if arguments.requested {
        let request = match &arguments.cmdline {
            Some(text) => Request::from_text(text),
            None => Request::read(root),
        };
        if request.requested_by.is_none() {
            return Ok(Kind::NothingAsked.exit_code());
        }
        if root.is_live() && arguments.cmdline.is_none() && in_initramfs(root) {
            handover::write_requested(&request)?;
        }
        return Ok(0);
    }
    let line = arguments.cmdline.as_deref();
    let found = match &arguments.image {
        Some(image) => preflight::with_image(root, image, line)?,
        None => preflight::plan(root, line)?,
    };
    print(&match arguments.format {
        Format::Text => text::of_plan(&found.plan) + &found.image_text(),
        Format::Json => handover::json(&found)?,
    })?;
    Ok(match found.plan.requested_by {
        None if found.has_all() => Kind::NothingAsked.exit_code(),
        Some(_) if found.is_possible() => 0,
        _ => Kind::Failed.exit_code(),
    })
}

fn show_suggestion(root: &Root, format: SuggestFormat) -> Result<u8> {
    let (profiles, unread) = files::read(root);
    let found = suggest::suggest(&tree::facts(root), &profiles, unread);
    if format == SuggestFormat::Line {
        for note in &found.notes {
            stderr::say(note);
        }
    }
    print(&match format {
        SuggestFormat::Text => found.text(),
        SuggestFormat::Line if found.arguments.is_empty() => String::new(),
        SuggestFormat::Line => found.line() + "\n",
        SuggestFormat::Json => handover::json(&found)?,
    })?;
    Ok(match found.arguments.is_empty() {
        true => Kind::NothingAsked.exit_code(),
        false => 0,
    })
}

/// An error about this argument if `root` is a saved tree.
fn must_be_live(root: &Root, argument: &str, what: &str) -> Result<()> {
    if root.is_live() {
        return Ok(());
    }
    Err(Error::new(argument, what).kind(Kind::Usage))
}

/// An error if more than one of these options is given.
fn at_most_one(options: &[(&str, bool)]) -> Result<()> {
    let given: Vec<&str> = options
        .iter()
        .filter_map(|(name, is_given)| is_given.then_some(*name))
        .collect();
    match given.as_slice() {
        [first, second, ..] => {
            let what = format!("not together with {second}");
            Err(Error::new(*first, what).kind(Kind::Usage))
        }
        _ => Ok(()),
    }
}

fn bring_up(root: &Root, arguments: &UpArguments, verbose: bool) -> Result<u8> {
    at_most_one(&[
        ("--dry-run", arguments.dry_run),
        ("--reserve", arguments.reserve),
        ("--hand-over", arguments.hand_over),
        ("--early", arguments.early),
    ])?;
    if arguments.dry_run {
        return dry_run(root, verbose);
    }
    must_be_live(
        root,
        "--root",
        "up works on the running machine only; with --root add --dry-run",
    )?;
    let mut request = Request::read(root);
    let level = if verbose {
        LevelFilter::Debug
    } else {
        request.verbosity
    };
    if in_initramfs(root) {
        kmsg::init(level, request.on_console);
    } else {
        stderr::init(level)?;
    }
    if arguments.reserve || arguments.hand_over {
        if request.requested_by.is_none() {
            if arguments.reserve && in_initramfs(root) {
                peers::release()?;
            }
            return Ok(Kind::NothingAsked.exit_code());
        }
        return if arguments.reserve {
            peers::reserve(root, &request).map(|()| 0)
        } else {
            peers::hand_over(root, &request).map(|()| 0)
        };
    }
    let is_early = arguments.early && in_initramfs(root);
    let end =
        event_loop().and_then(|events| events.block_on(up::bring_up(root, &mut request, is_early)));
    let end = end.inspect_err(|error| {
        if request.requested_by.is_some() {
            up::stillborn(request.onfail, error);
        }
    })?;
    if !in_initramfs(root) {
        match &end.report {
            Some(report) => print(report.text())?,
            None => {
                stderr::say("up: the kernel command line requests nothing; see ibboot.cmdline(7)")
            }
        }
    }
    Ok(end.code)
}

fn dry_run(root: &Root, verbose: bool) -> Result<u8> {
    stderr::init(if verbose {
        LevelFilter::Debug
    } else {
        LevelFilter::Warn
    })?;
    let (text, code) = up::Next::look(root, &Request::read(root))?.report();
    print(&text).map(|()| code)
}

/// Renews the DHCP leases of the initramfs, unless another program now owns the interfaces.
fn keep_leases(root: &Root) -> Result<u8> {
    must_be_live(root, "--root", "lease works on the running machine only")?;
    event_loop()?.block_on(ibboot::keep::keep(root))?;
    Ok(0)
}

/// What `check` compares, and its report; a failure is unknown.
fn report(root: &Root, arguments: &CheckArguments) -> Result<Report> {
    // An invalid argument or an unreadable file may request anything.
    let nothing = |what: &str, request: &Request| {
        let found = [vec![what.to_owned()], request.complaints.clone()].concat();
        Error::new("check", "nothing to compare with").found(found.join("; "))
    };
    let basis = match &arguments.cmdline {
        Some(text) => {
            let request = Request::from_text(text);
            let basis = check::requested(root, &request)?;
            basis.ok_or_else(|| nothing("--cmdline requests nothing", &request))
        }
        None => check::basis(root)?.ok_or_else(|| {
            let what = "no /run/ibboot/expected.json, and the command line requests nothing";
            nothing(what, &Request::read(root))
        }),
    };
    Ok(check::compare(root, &mut basis?, arguments.sm))
}

/// What a program reads if there is no report: the verdict is unknown, and the reason is there.
fn without_report(root: &Root, format: CheckFormat, error: &Error) -> Result<String> {
    Ok(match format {
        CheckFormat::Text => String::new(),
        CheckFormat::Json => handover::json(&NoReport::new(error))?,
        CheckFormat::Nagios => monitoring::nagios_without_report(error),
        CheckFormat::Prom => monitoring::prometheus_without_report() + &beside_report(root),
        CheckFormat::Nhc => monitoring::nhc_without_report(error),
        CheckFormat::Journal => monitoring::journal_without_report(error),
    })
}

/// The gauges that need no report: the time of the check, and the boot.
fn beside_report(root: &Root) -> String {
    // A saved tree has no clock.
    let now = root.is_live().then(|| SystemTime::UNIX_EPOCH.elapsed());
    let time = now.and_then(std::result::Result::ok);
    let boot = handover::read_state(root).unwrap_or_else(|error| {
        log::warn!("{error}");
        None
    });
    let time = time.map(|time| monitoring::checked_at(time.as_secs()));
    let boot = boot.as_ref().map(gauges::of);
    time.unwrap_or_default() + &boot.unwrap_or_default()
}

/// Makes the report and tells it; `before` stands in front of the output.
fn show_check(root: &Root, arguments: &CheckArguments, before: &str) -> Result<u8> {
    if arguments.record {
        must_be_live(
            root,
            "--record",
            "check --record works on the running machine only",
        )?;
    }
    // These files describe this boot, which another command line does not.
    at_most_one(&[
        ("--cmdline", arguments.cmdline.is_some()),
        (
            "--record or --textfile",
            arguments.record || arguments.textfile.is_some(),
        ),
    ])?;
    tell(root, arguments, report(root, arguments), before)
}

/// What a failure of `check` is: the exit codes 1 and 2 mean warning and critical, except where there
/// are only two codes.
fn unknown(format: CheckFormat) -> Kind {
    match format {
        CheckFormat::Nhc | CheckFormat::Journal => Kind::Failed,
        _ => Kind::Unknown,
    }
}

/// Prints the report and writes its files.
fn tell(
    root: &Root,
    arguments: &CheckArguments,
    report: Result<Report>,
    before: &str,
) -> Result<u8> {
    let unknown = unknown(arguments.format);
    let code = match &report {
        Ok(report) if unknown == Kind::Failed => monitoring::failed(report),
        Ok(report) => report.status.exit_code(),
        Err(_) => unknown.exit_code(),
    };
    write_out(root, arguments, report, before)
        .map(|()| code)
        .map_err(|error| error.kind(unknown))
}

fn write_out(
    root: &Root,
    arguments: &CheckArguments,
    report: Result<Report>,
    before: &str,
) -> Result<()> {
    let text = match &report {
        Ok(report) => output(root, arguments, report)?,
        Err(error) => without_report(root, arguments.format, error)?,
    };
    // A monitoring system must not keep an old result because the output goes to a full disk.
    let printed = print(before.to_owned() + &text);
    if let Some(file) = &arguments.textfile {
        let text = match &report {
            Ok(report) => gauges(root, report),
            Err(error) => without_report(root, CheckFormat::Prom, error)?,
        };
        check::write_textfile(file, &text)?;
    }
    match report {
        // The file is for `timeline` only.
        Ok(report) if arguments.record => check::record(root, &report)
            .unwrap_or_else(|error| log::warn!("{error}; timeline will lack this check")),
        Err(error) if arguments.format != CheckFormat::Journal => stderr::say(match error.hint {
            Some(_) => error,
            None => error.hint("ibboot status shows the ports of this machine"),
        }),
        _ => {}
    }
    printed
}

/// Repeats the check until SIGINT, or until nobody reads the output.
fn watch(root: &Root, arguments: &CheckArguments) -> Result<u8> {
    // Clear the screen (ECMA-48, ED and CUP).
    let before = match io::stdout().is_terminal() {
        true => "\x1b[2J\x1b[H",
        false => "",
    };
    loop {
        let code = show_check(root, arguments, before)?;
        if !is_read_for(WATCH) {
            return Ok(code);
        }
    }
}

/// Waits; false at once if the reader of the output closes the pipe.
fn is_read_for(time: Duration) -> bool {
    let output = io::stdout();
    // Without requested events, poll(2) returns for POLLERR and POLLHUP only.
    let mut files = [PollFd::new(output.as_fd(), PollFlags::empty())];
    let limit = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    match poll(&mut files, limit) {
        Ok(closed) => closed == 0,
        Err(_) => {
            std::thread::sleep(time);
            true
        }
    }
}

fn explain(name: Option<&str>) -> Result<u8> {
    let Some(name) = name else {
        return print(guide::list()).map(|()| 0);
    };
    let text = guide::explain(name, &Terminal::of_output()).map_err(|nearest| {
        let error = Error::new(
            "explain",
            format!("no check, argument or term is called '{name}'"),
        );
        let hint = match nearest {
            Some(name) => format!("did you mean {name}?"),
            None => "ibboot explain lists all".to_owned(),
        };
        error.hint(hint).kind(Kind::Usage)
    })?;
    print(&text).map(|()| 0)
}

fn output(root: &Root, arguments: &CheckArguments, report: &Report) -> Result<String> {
    Ok(match arguments.format {
        CheckFormat::Text if arguments.all => report.text(),
        CheckFormat::Text => report.summary(&Terminal::of_output()),
        CheckFormat::Json => handover::json(report)?,
        CheckFormat::Nagios => monitoring::nagios(report),
        CheckFormat::Prom => gauges(root, report),
        CheckFormat::Nhc => monitoring::nhc(report),
        CheckFormat::Journal => monitoring::journal(report),
    })
}

/// The output of --format prom.
fn gauges(root: &Root, report: &Report) -> String {
    monitoring::prometheus(report) + &beside_report(root)
}

fn show_facts(root: &Root, directory: Option<&std::path::Path>) -> Result<u8> {
    let facts = tree::facts(root);
    if let Some(directory) = directory {
        for error in tree::read_rest(root, &facts) {
            log::warn!("{error}");
        }
        tree::save(root, directory)?;
    }
    print(&handover::json(&facts)?)?;
    Ok(0)
}

/// Makes the archive of `report` or, with claims, of `hardware-report`.
fn make_report(root: &Root, call: impl FnOnce() -> Result<bool>) -> Result<u8> {
    let what = "a report describes the running machine only";
    must_be_live(root, "--root", what)?;
    Ok(if call()? { 0 } else { Kind::Failed.exit_code() })
}

/// What `hardware-report` may disturb.
fn disturbance(arguments: &HardwareReportArguments) -> Result<Option<Disturbance>> {
    let rebind = arguments.rebind;
    match arguments.disturb.clone() {
        Some(port) => Ok(Some(Disturbance { port, rebind })),
        None if rebind => Err(Error::new("--rebind", "only with --disturb").kind(Kind::Usage)),
        None => Ok(None),
    }
}

fn show_timeline(root: &Root, format: TimelineFormat) -> Result<u8> {
    let unknown = |error: Error| error.kind(Kind::Unknown);
    let state = handover::read_state(root).map_err(unknown)?;
    let state = state.ok_or_else(|| {
        Error::new("timeline", "nothing was handed over in this boot")
            .found("no /run/ibboot/state.json")
            .kind(Kind::Unknown)
    })?;
    let check = handover::read_check(root).map_err(unknown)?;
    let line = |path| root.text(path).ok();
    let machine = timeline::Machine {
        host: line(tree::HOST_NAME),
        kernel: line("/proc/sys/kernel/osrelease"),
    };
    let timeline = timeline::timeline(&state, check.as_ref(), machine);
    print(&match format {
        TimelineFormat::Text => timeline.text(&Terminal::of_output()),
        TimelineFormat::Json => handover::json(&timeline)?,
        TimelineFormat::Svg => timeline.svg(),
    })?;
    Ok(0)
}

/// Prints what dracut's hooks do after the verdict; the hooks set the environment.
fn take_turn(root: &Root, arguments: &TurnArguments) -> Result<u8> {
    at_most_one(&[
        ("--ended", arguments.ended),
        ("--idle", arguments.idle),
        ("--finished", arguments.finished),
    ])?;
    must_be_live(root, "--root", "turn works on the running machine only")?;
    let environment = Environment::of_process();
    if arguments.finished {
        let state = turn::files::read(root, &environment)?;
        // dracut may set up the last interface after the last turn.
        turn::files::keep_name_servers(&state);
        return Ok(u8::from(!turn::may_go_on(&state)));
    }
    if arguments.ended {
        return turn::files::end(root).map(|()| 0);
    }
    print(&turn::files::take(root, &environment, arguments.idle)?)?;
    Ok(0)
}
