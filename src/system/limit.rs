// SPDX-License-Identifier: MIT OR Apache-2.0
//! A command with a limit: a child process carries the command out, because a process that sleeps
//! in the kernel for dead firmware cannot end itself.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::worker::{COMMAND, PROGRAM};

/// The job of a worker that carries out the command that follows.
pub const JOB: &str = "call";

/// Pause between two looks at a child that has closed its output and is about to end.
const PAUSE: Duration = Duration::from_millis(1);

/// How a command with a limit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By itself, with this exit code and this output.
    Exited(u8, Vec<u8>),
    /// By a signal.
    Killed,
    /// Not within the limit.
    Late,
}

/// Starts a child that carries out the program's `arguments`.
pub fn start(arguments: &[String]) -> io::Result<Child> {
    Command::new(PROGRAM)
        .arg0("ibboot")
        .args([COMMAND, JOB])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
}

/// Waits for the end of the child, and kills the child if the limit is over or if waiting fails. The
/// output is there once the child has ended by itself: a child that never ends must not hold the
/// pipe of a caller.
pub fn end(mut child: Child, limit: Duration) -> io::Result<End> {
    let deadline = Instant::now() + limit;
    let end = of_child(&mut child, deadline);
    match end {
        Ok(End::Late) => child.kill()?,
        Ok(_) => {}
        Err(_) => {
            let killed = child.kill().and_then(|()| status(&mut child, deadline));
            killed.map(drop).unwrap_or_default();
        }
    }
    end
}

fn of_child(child: &mut Child, deadline: Instant) -> io::Result<End> {
    let Some(output) = output(child, deadline)? else {
        return Ok(End::Late);
    };
    let Some(status) = status(child, deadline)? else {
        return Ok(End::Late);
    };
    // A signal has no exit code.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(End::Killed, |code| End::Exited(code, output)))
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

/// How the child ended; none if it has not ended at the deadline.
fn status(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        std::thread::sleep(PAUSE);
    }
}
