// SPDX-License-Identifier: MIT OR Apache-2.0
//! A worker is this program once more: a child process with one job, at the other end of a socket.
//! A worker that sleeps in the kernel, where no signal reaches a process, costs nobody else any
//! time: nothing here waits for the end of a worker.

use std::io::{self, Stdin};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, setsockopt, socket,
    socketpair, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::readiness::owns_descriptor;

/// The hidden command of the program.
pub const COMMAND: &str = "worker";

/// The running program, even if its file was replaced (proc(5)).
pub(super) const PROGRAM: &str = "/proc/self/exe";

/// Largest message in bytes. The default of net.core.wmem_default is less, so the buffer for sending
/// is enlarged.
const MESSAGE: usize = 256 << 10;

/// The pause before another try to send to a socket that is full.
const FULL: Duration = Duration::from_millis(10);

/// The end of a healthy worker takes less, in ms; it closes its files.
const END_MS: u32 = 50;

/// Processes that were killed and had not ended: the start of the next worker looks after them, so that
/// a program that runs for months collects no zombies.
static ENDING: Mutex<Vec<Child>> = Mutex::new(Vec::new());

fn ending() -> MutexGuard<'static, Vec<Child>> {
    ENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// A worker, and this end of its socket (SOCK_SEQPACKET, unix(7)): a message is one JSON value.
#[derive(Debug)]
pub struct Worker {
    socket: OwnedFd,
    /// None: another program started the worker, or a thread of a test plays it.
    child: Option<Child>,
}

impl Worker {
    /// Starts `ibboot worker JOB...`. The job's standard input is its end of the socket; it has no
    /// output, so that no pipe of the caller stays open with it.
    pub fn start(job: &[&str]) -> io::Result<Worker> {
        Worker::start_program(Path::new(PROGRAM), job)
    }

    /// Like [`Worker::start`], with another program in the place of the running one.
    pub fn start_program(program: &Path, job: &[&str]) -> io::Result<Worker> {
        ending().retain_mut(|child| !has_ended(child));
        let (mut worker, far) = Worker::pair()?;
        let child = Command::new(program)
            .arg0("ibboot")
            .arg(COMMAND)
            .args(job)
            .stdin(Stdio::from(far))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        worker.child = Some(child);
        Ok(worker)
    }

    /// A worker without a process, and the far end of its socket.
    pub fn pair() -> io::Result<(Worker, OwnedFd)> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (socket, far) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        for end in [&socket, &far] {
            // Without CAP_NET_ADMIN the default stays, which most messages fit in.
            setsockopt(end, sockopt::SndBufForce, &MESSAGE).unwrap_or_default();
        }
        Ok((Worker::at(socket), far))
    }

    /// The worker that another program starts for whoever connects to this socket (unix(7)).
    pub fn connect(path: &str) -> io::Result<Worker> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let new = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        connect(new.as_raw_fd(), &UnixAddr::new(path)?)?;
        Ok(Worker::at(new))
    }

    /// Whoever is at the far end of this socket: for a worker, that is the program that requests
    /// its work.
    pub fn at(socket: OwnedFd) -> Worker {
        let child = None;
        Worker { socket, child }
    }

    /// The id of the process; 0 without one.
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Sends one message; a full socket is an error.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        send_to(self.socket.as_fd(), message, MsgFlags::MSG_DONTWAIT)
    }

    /// Like [`Worker::send`], but waits while the socket is full.
    pub async fn send_when_free(&self, message: &impl Serialize) -> io::Result<()> {
        loop {
            match self.send(message) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(FULL).await,
                sent => return sent,
            }
        }
    }

    /// The next message, if one has come. `UnexpectedEof`: the worker has ended.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        match receive_from(self.socket.as_fd(), MsgFlags::MSG_DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            message => message.map(Some),
        }
    }

    /// A copy of the socket, which becomes readable when the worker has sent something or has ended.
    pub fn ear(&self) -> io::Result<Ear> {
        Ok(Ear(self.socket.try_clone()?))
    }

    /// Waits for the process to end, for as long as a healthy one takes: it has its files closed
    /// then.
    pub fn end(mut self) {
        self.kill();
        for _ in 0..END_MS {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Like [`Worker::end`], in an event loop.
    pub async fn end_soon(mut self) {
        self.kill();
        for _ in 0..END_MS {
            if self.has_ended() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// True if there is no process to wait for, or no longer: it leaves no zombie.
    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(has_ended)
    }

    fn kill(&mut self) {
        if let Some(Err(error)) = self.child.as_mut().map(Child::kill) {
            log::debug!("worker: {error}");
        }
    }
}

impl Drop for Worker {
    /// A process that sleeps in the kernel ends as soon as the kernel lets it.
    fn drop(&mut self) {
        self.kill();
        if !self.has_ended() {
            ending().extend(self.child.take());
        }
    }
}

/// Listens to a worker, for an event loop.
#[derive(Debug)]
pub struct Ear(OwnedFd);

owns_descriptor!(Ear, 0);

impl Ear {
    /// True if the worker has sent something that was not received, or has ended.
    pub fn hears(&self) -> bool {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        !matches!(
            recv(self.0.as_raw_fd(), &mut [0], flags),
            Err(Errno::EAGAIN)
        )
    }
}

/// Waits until a worker has sent something or has ended, or until `deadline`.
pub fn wait(workers: &[&Worker], deadline: Instant) {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
    let mut files: Vec<PollFd<'_>> = workers
        .iter()
        .map(|worker| PollFd::new(worker.socket.as_fd(), PollFlags::POLLIN))
        .collect();
    if let Err(errno) = poll(&mut files, left) {
        log::debug!("poll: {errno}");
    }
}

/// The worker's own end of the socket.
#[derive(Debug)]
pub struct Master(Stdin);

impl Master {
    /// Standard input.
    pub fn of_process() -> Master {
        Master(io::stdin())
    }

    /// The socket for an event loop.
    pub fn into_worker(self) -> io::Result<Worker> {
        Ok(Worker::at(self.0.as_fd().try_clone_to_owned()?))
    }

    /// Sends one message.
    pub fn send(&self, message: &impl Serialize) -> io::Result<()> {
        send_to(self.0.as_fd(), message, MsgFlags::empty())
    }

    /// Waits until there is a message, or until the file is readable. True if the file is.
    pub fn is_readable_first(&self, file: BorrowedFd<'_>) -> io::Result<bool> {
        let mut files = [
            PollFd::new(self.0.as_fd(), PollFlags::POLLIN),
            PollFd::new(file, PollFlags::POLLIN),
        ];
        match poll(&mut files, PollTimeout::NONE) {
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
            Ok(_) => Ok(files.last().is_some_and(|file| file.any() == Some(true))),
        }
    }

    /// Waits for the next message. `UnexpectedEof`: nobody needs this worker any longer.
    pub fn receive<T: DeserializeOwned>(&self) -> io::Result<T> {
        receive_from(self.0.as_fd(), MsgFlags::empty())
    }
}

/// Sends one message.
pub fn send_to(
    socket: BorrowedFd<'_>,
    message: &impl Serialize,
    flags: MsgFlags,
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    send(socket.as_raw_fd(), &bytes, flags | MsgFlags::MSG_NOSIGNAL)?;
    Ok(())
}

/// Receives one message.
pub fn receive_from<T: DeserializeOwned>(socket: BorrowedFd<'_>, flags: MsgFlags) -> io::Result<T> {
    let receive = |buffer: &mut [u8], flags| loop {
        match recv(socket.as_raw_fd(), buffer, flags | MsgFlags::MSG_TRUNC) {
            Err(Errno::EINTR) => {}
            length => return length,
        }
    };
    let length = receive(&mut [], flags | MsgFlags::MSG_PEEK)?;
    if length > MESSAGE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut buffer = vec![0; length];
    let length = receive(&mut buffer, flags)?;
    match buffer.get(..length) {
        Some([]) => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(message) => Ok(serde_json::from_slice(message)?),
        None => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

#[cfg(test)]
mod tests;
