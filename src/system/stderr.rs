// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard error, which may be closed, full or without a reader: this must not change what the
//! program does or how it ends.

use std::fmt::Display;
use std::io::{self, Write};
use std::panic::PanicHookInfo;

use log::{LevelFilter, Log, Metadata, Record};
use simple_logger::SimpleLogger;

use crate::error::{Error, Kind, Result, printable};

/// Prefix of each line.
const NAME: &str = "ibboot: ";

/// Writes `ibboot: LINE`. A write error is ignored, because no other channel is left.
pub fn say(line: impl Display) {
    drop(io::stderr().write_all(format!("{NAME}{line}\n").as_bytes()));
}

/// [`SimpleLogger`] selects the lines. This type writes them, because SimpleLogger panics if a
/// write fails.
struct Lines(SimpleLogger);

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let text = printable(&record.args().to_string());
            say(format_args!("{:<5} {text}", record.level()));
        }
    }

    fn flush(&self) {}
}

/// Sends the log to stderr.
pub fn init(level: LevelFilter) -> Result<()> {
    let logger = SimpleLogger::new()
        .with_level(LevelFilter::Warn)
        .with_module_level("ibboot", level);
    let most = logger.max_level();
    log::set_boxed_logger(Box::new(Lines(logger)))
        .map_err(|e| Error::new("log", "cannot be started").found(e.to_string()))?;
    log::set_max_level(most);
    Ok(())
}

/// Makes a panic of the program a log line, which an initramfs without systemd also keeps, and the
/// exit code of `kind` instead of a signal.
pub fn on_panic(kind: Kind) {
    std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        log::error!("{}", fault(info));
        std::process::exit(i32::from(kind.exit_code()));
    }));
}

fn fault(info: &PanicHookInfo<'_>) -> String {
    let place = info
        .location()
        .map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    let payload = info.payload();
    let message = match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(message), _) => message,
        (None, Some(message)) => message.as_str(),
        (None, None) => "no message",
    };
    printable(&format!("internal error of ibboot{place}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: &str = "IBBOOT_TEST_FAULT";

    #[test]
    fn a_fault_is_one_line_and_an_exit_code() {
        if std::env::var_os(CHILD).is_some() {
            init(LevelFilter::Warn).unwrap();
            on_panic(Kind::Unknown);
            panic!("two\nlines");
        }
        let run = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("system::stderr::tests::a_fault_is_one_line_and_an_exit_code")
            .env(CHILD, "1")
            .output()
            .unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        let (before, after) = message.split_once(concat!(" at ", file!(), ":")).unwrap();
        assert_eq!(before, "ibboot: ERROR internal error of ibboot");
        assert!(after.ends_with(": two\\x0alines\n"), "{after}");
        assert_eq!(run.status.code(), Some(3));
    }
}
