// SPDX-License-Identifier: MIT OR Apache-2.0
//! A command with a limit: a child process carries the command out, because a process that sleeps
//! in the kernel for dead firmware cannot end itself.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::worker::{COMMAND, PROGRAM};

/// The job of a worker that carries out the command that follows.
pub const JOB: &str = "call";

/// Pause between two looks at a child that has closed its output and is about to end.
const PAUSE: Duration = Duration::from_millis(1);

/// How a command with a limit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this exit code.
    Exited(u8),
    /// By a signal.
    Killed,
    /// Not within the limit.
    Late,
}

/// Carries out the program's `arguments`. The output is printed once the command has ended by itself:
/// a child that never ends must not hold the pipe of a caller.
pub fn call(arguments: &[String], limit: Duration) -> io::Result<End> {
    let deadline = Instant::now() + limit;
    let mut child = Command::new(PROGRAM)
        .arg0("ibboot")
        .args([COMMAND, JOB])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()?;
    let output = output(&mut child, deadline)?;
    let end = match output {
        Some(_) => end(&mut child, deadline)?,
        None => End::Late,
    };
    match end {
        End::Late => child.kill()?,
        End::Killed => {}
        End::Exited(_) => match io::stdout().write_all(&output.unwrap_or_default()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => return Err(e),
            _ => {}
        },
    }
    Ok(end)
}

/// All that the child prints; none if it has not closed its output at the deadline.
fn output(child: &mut Child, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
    let Some(mut pipe) = child.stdout.take() else {
        return Ok(None);
    };
    let mut output = Vec::new();
    let mut part = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        let mut files = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        if poll(&mut files, left)? == 0 {
            return Ok(None);
        }
        match pipe.read(&mut part)? {
            0 => return Ok(Some(output)),
            length => output.extend(part.iter().take(length)),
        }
    }
}

fn end(child: &mut Child, deadline: Instant) -> io::Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            // A signal has no exit code.
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(code.map_or(End::Killed, End::Exited));
        }
        if Instant::now() >= deadline {
            return Ok(End::Late);
        }
        std::thread::sleep(PAUSE);
    }
}
