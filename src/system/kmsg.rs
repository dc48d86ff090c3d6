// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel log: writes this program's lines and reads the kernel's lines.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use log::{Level, LevelFilter, Log, Metadata, Record};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::makedev;

use crate::error::printable;
use crate::system::stderr;

const KMSG: &str = "/dev/kmsg";
/// syslog facility `daemon` (RFC 5424, 6.2.1), which other programs of the initramfs also use.
const FACILITY_DAEMON: u8 = 3 << 3;
/// The kernel truncates a record near 976 bytes (printk's LOG_LINE_MAX less the prefix).
const LINE_MAX: usize = 900;

const CONSOLE: &str = "/dev/console";

/// A [`Log`] that writes one kmsg record per line: `<30>ibboot: ...`.
#[derive(Debug)]
struct KmsgLog {
    /// Records with this severity or a less urgent one are also written to the console, because the
    /// kernel does not print them there (`quiet`).
    console_from: Option<u8>,
}

fn severity(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// Columns of a record on the console: 100, less the 15 of the kernel's time stamp.
const COLUMNS: usize = 85;
/// Before the rest of a text that fills more than one record.
const REST: &str = "    ";

/// The text of each record: at most [`COLUMNS`] with the program's name, divided between words.
fn divided(text: &str) -> Vec<String> {
    let columns = COLUMNS - "ibboot: ".len();
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        let width = line.chars().count() + word.trim_end().chars().count();
        if width > columns && !line.trim().is_empty() {
            let full = std::mem::replace(&mut line, REST.to_owned());
            lines.push(full.trim_end().to_owned());
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// The text on one line, cut to [`LINE_MAX`] bytes.
fn bounded(text: &str) -> String {
    let mut text = printable(text);
    if text.len() > LINE_MAX {
        let mut end = LINE_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

/// One record in the format of /dev/kmsg (Documentation/ABI/testing/dev-kmsg) of a text that is
/// [`bounded`].
fn record(level: Level, text: &str) -> String {
    format!("<{}>ibboot: {text}\n", FACILITY_DAEMON | severity(level))
}

impl KmsgLog {
    fn write(&self, level: Level, text: &str) {
        let line = record(level, text);
        let written = open_for_record().and_then(|mut file| file.write_all(line.as_bytes()));
        let mut on_console = self
            .console_from
            .is_some_and(|from| severity(level) >= from);
        if written.is_err() {
            stderr::say(text);
            // What the kernel prints on a `quiet` console; without systemd standard error is the console.
            on_console |= level == Level::Error && !io::stderr().is_terminal();
        }
        if on_console {
            say_on_console(text);
        }
    }
}

impl Log for KmsgLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ibboot") || metadata.level() <= Level::Warn
    }

    fn log(&self, entry: &Record<'_>) {
        if !self.enabled(entry.metadata()) {
            return;
        }
        for text in divided(&bounded(&entry.args().to_string())) {
            self.write(entry.level(), &text);
        }
    }

    fn flush(&self) {}
}

/// Writes the text of a record to the console, which may be a raw terminal.
fn say_on_console(text: &str) {
    let written = OpenOptions::new()
        .write(true)
        .open(CONSOLE)
        .and_then(|mut file| file.write_all(format!("ibboot: {text}\r\n").as_bytes()));
    // A write error is ignored: a node without a console still has its kernel log.
    drop(written);
}

/// Sends log lines to the kernel log, or to stderr if /dev/kmsg cannot be written. With
/// `on_console` (`rd.info`, `rd.debug`) the lines also appear on a `quiet` console.
pub fn init(level: LevelFilter, on_console: bool) {
    // console_loglevel is the first number: the kernel prints records that are more urgent
    // (proc(5)).
    let loglevel = std::fs::read_to_string("/proc/sys/kernel/printk")
        .ok()
        .and_then(|text| text.split_ascii_whitespace().next()?.parse().ok());
    let console_from = loglevel.filter(|_| on_console);
    if log::set_boxed_logger(Box::new(KmsgLog { console_from })).is_ok() {
        log::set_max_level(level);
    }
}

/// The kernel's records from a point in time on.
#[derive(Debug)]
pub struct KernelWords {
    file: Option<File>,
}

impl KernelWords {
    /// Starts after the newest record. Without /dev/kmsg no record is ever returned.
    pub fn from_now() -> Self {
        Self::from(SeekFrom::End(0))
    }

    /// Starts with the oldest record that the kernel still has.
    pub fn from_start() -> Self {
        Self::from(SeekFrom::Start(0))
    }

    fn from(position: SeekFrom) -> Self {
        let open = || -> io::Result<File> {
            let mut file = open_log().or_else(|_| handed_over())?;
            file.seek(position)?;
            Ok(file)
        };
        KernelWords { file: open().ok() }
    }

    /// The kernel's own records since the last call that contain one of `words`; records of
    /// programs are left out.
    pub fn about(&mut self, words: &[&str]) -> Vec<String> {
        let records = self.file.as_mut().map(kernel_records).unwrap_or_default();
        let texts = records.into_iter().map(|(_, text)| text);
        texts
            .filter(|text| words.iter().any(|word| text.contains(word)))
            .collect()
    }
}

/// All records in the kernel log that the kernel itself wrote: microseconds since kernel start, and
/// the first line of the text. EPERM: not root (kernel.dmesg_restrict).
pub fn all_kernel_records() -> io::Result<Vec<(u64, String)>> {
    Ok(kernel_records(&mut open_log()?))
}

/// Whether the kernel's log can be opened. EPERM also for root with `printk.devkmsg=off`
/// (kernel/printk/printk.c, devkmsg_open).
pub fn is_readable() -> bool {
    open_log().is_ok()
}

fn open_log() -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(KMSG)
}

/// The log for one record. Opened for each record: the kernel limits the rate (10 lines in 5 s) per
/// open file.
fn open_for_record() -> io::Result<File> {
    let open = |path| OpenOptions::new().write(true).open(path);
    // ProtectKernelLogs= in a drop-in hides the device file from the unit. The link in /proc opens the same
    // device file again (proc_pid_fd(5)).
    open(KMSG).or_else(|_| handed_over().and_then(|_| open("/proc/self/fd/0")))
}

/// The log that the unit in the initramfs opens as standard input, because the unit lacks CAP_SYSLOG,
/// without which a kernel may refuse to open the log for reading (kernel.dmesg_restrict).
fn handed_over() -> io::Result<File> {
    /// Major and minor number (Documentation/admin-guide/devices.txt).
    const NUMBER: (u64, u64) = (1, 11);
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let about = file.metadata()?;
    if !about.file_type().is_char_device() || about.rdev() != makedev(NUMBER.0, NUMBER.1) {
        return Err(io::ErrorKind::NotFound.into());
    }
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(file)
}

/// The kernel's own records from the position of `file` to the end of the log.
fn kernel_records(file: &mut File) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut buffer = [0u8; 8192];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                let text = String::from_utf8_lossy(buffer.get(..n).unwrap_or(&[]));
                found.extend(kernel_record(&text).map(|(time, line)| (time, line.to_owned())));
            }
            // EPIPE: records were overwritten before they were read; the next records follow.
            Err(e) if e.raw_os_error() == Some(libc::EPIPE) => {}
            Err(_) => break,
        }
    }
    found
}

/// Time in microseconds and message of a /dev/kmsg record `PRIO,SEQ,USEC,FLAGS;TEXT` if the kernel
/// wrote it (facility 0).
fn kernel_record(text: &str) -> Option<(u64, &str)> {
    let (head, message) = text.split_once(';')?;
    let mut head = head.split(',');
    let priority: u32 = head.next()?.parse().ok()?;
    let time = head.nth(1)?.parse().ok()?;
    (priority < 8).then(|| (time, message.lines().next().unwrap_or("").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_short_line() {
        assert_eq!(
            record(Level::Error, &bounded("rxe0: no\ncarrier")),
            "<27>ibboot: rxe0: no\\x0acarrier\n"
        );
        let long = record(Level::Info, &bounded(&"ä".repeat(1000)));
        assert!(long.len() < 976, "{}", long.len());
        assert!(long.ends_with(" ...\n"));
    }

    #[test]
    fn a_text_without_end_is_few_records() {
        let records = divided(&bounded(&"word\n ".repeat(2000)));
        assert_eq!(records.len(), 13);
        assert!(records.last().unwrap().ends_with(" ..."));
        assert!(records.iter().all(|record| record.len() <= COLUMNS));
    }

    #[test]
    fn a_long_text_is_divided_between_words() {
        assert_eq!(divided("rxe0: no carrier"), ["rxe0: no carrier"]);
        assert_eq!(divided("  action"), ["  action"]);
        assert_eq!(divided(""), [""]);
        let word = "w".repeat(40);
        let indented = format!("    {word}");
        assert_eq!(
            divided(&format!("{word} {word}")),
            [word.clone(), indented.clone()]
        );
        let long = "w".repeat(120);
        assert_eq!(
            divided(&format!("{word} {long} {word}")),
            [word, format!("    {long}"), indented]
        );
    }

    #[test]
    fn only_the_kernel_is_quoted() {
        assert_eq!(
            kernel_record(
                "3,1033,5140900,-;mlx5_core: disagrees about version of symbol\n SUBSYSTEM=x"
            ),
            Some((5_140_900, "mlx5_core: disagrees about version of symbol"))
        );
        assert_eq!(kernel_record("30,1033,5140900,-;dracut: mlx5_core"), None);
        assert_eq!(kernel_record("garbage"), None);
    }
}
