// SPDX-License-Identifier: MIT OR Apache-2.0
//! `up`'s end of the loader: requests, and their answers in any order.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::request::{Answer, Request};
use super::{JOB, SOCKET, index};
use crate::error::{Error, Result, errno_text};
use crate::system::readiness::watched;
use crate::system::root::Root;
use crate::system::worker::{Ear, Worker};

/// Loaders that one request may have: one that has ended is replaced.
const LOADERS: usize = 2;

/// The loader, which is started for the first request. One that has ended is replaced once for each
/// request that it had.
#[derive(Debug)]
pub struct Loader {
    start: fn() -> io::Result<Worker>,
    line: RefCell<Option<Rc<Line>>>,
}

impl Default for Loader {
    fn default() -> Loader {
        Loader::new(start)
    }
}

/// With systemd in an initramfs the loader is a unit of its own, which has the power that `up` gave
/// up; without it, a child of this process. A child of the unit of `up` would have no power either:
/// its errors would name wrong causes.
fn start() -> io::Result<Worker> {
    match Worker::connect(SOCKET) {
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            match index::is_hidden(&Root::new("/")) {
                true => Err(io::Error::new(e.kind(), without_socket(&e))),
                false => Worker::start(&[JOB]),
            }
        }
        connected => connected,
    }
}

fn without_socket(error: &io::Error) -> String {
    format!("{SOCKET}: {}: see ibboot-loader.socket", errno_text(error))
}

impl Loader {
    /// A loader that `start` starts.
    pub fn new(start: fn() -> io::Result<Worker>) -> Loader {
        let line = RefCell::new(None);
        Loader { start, line }
    }

    /// Loads a module, and ends when the kernel reports the module as live
    /// ([`crate::system::modprobe::load`]).
    pub async fn load(&self, module: &str, parameters: &[String]) -> Result<()> {
        let (module, parameters) = (module.to_owned(), parameters.to_vec());
        self.do_this(Request::Load { module, parameters }).await
    }

    /// Probes a PCI function, and ends when the driver's probe ends.
    pub async fn probe(&self, address: &str) -> Result<()> {
        self.do_this(Request::Probe(address.to_owned())).await
    }

    /// Has a request carried out that ends soon on any machine. An answer that does not come in
    /// time is an error.
    pub async fn do_within(&self, limit: Duration, request: Request) -> Result<()> {
        let late = lost(&request, &io::ErrorKind::TimedOut.into());
        let done = tokio::time::timeout(limit, self.do_this(request)).await;
        done.unwrap_or(Err(late))
    }

    async fn do_this(&self, request: Request) -> Result<()> {
        match self.carry_out(request).await {
            Answer::Done(result) => result,
            Answer::Ports(all) => all.into_iter().try_for_each(|port| port.map(drop)),
        }
    }

    /// Has the request carried out, however long that takes. The answer is of the kind that the
    /// request has: for [`Request::PortTypes`] one result for each port, for any other request one
    /// result.
    pub async fn carry_out(&self, request: Request) -> Answer {
        let invalid = || lost(&request, &io::ErrorKind::InvalidData.into());
        let ports = match &request {
            Request::PortTypes { ports, .. } => Some(ports.len()),
            _ => None,
        };
        match (self.ask(&request).await, ports) {
            (Err(error) | Ok(Answer::Done(Err(error))), Some(count)) => {
                Answer::Ports(vec![Err(error); count])
            }
            (Err(error), None) => Answer::Done(Err(error)),
            (Ok(Answer::Ports(all)), Some(count)) if all.len() == count => Answer::Ports(all),
            (Ok(Answer::Done(result)), None) => Answer::Done(result),
            (Ok(_), Some(count)) => Answer::Ports(vec![Err(invalid()); count]),
            (Ok(Answer::Ports(_)), None) => Answer::Done(Err(invalid())),
        }
    }

    /// The answer of this loader, or of the next one if this one ends.
    async fn ask(&self, request: &Request) -> Result<Answer> {
        let fail = |error| lost(request, &error);
        let mut loaders = 0;
        loop {
            loaders += 1;
            let line = self.line().map_err(fail)?;
            let (is_sent, error) = match line.send(request).await {
                Ok(number) => match line.answer(number).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => (true, error),
                },
                Err(error) => (false, error),
            };
            self.hang_up(&line);
            if loaders == LOADERS || (is_sent && !request.may_be_repeated()) {
                return Err(fail(error));
            }
        }
    }

    /// Leaves this loader; another request may have started another one.
    fn hang_up(&self, line: &Rc<Line>) {
        let mut current = self.line.borrow_mut();
        current.take_if(|current| Rc::ptr_eq(current, line));
    }

    fn line(&self) -> io::Result<Rc<Line>> {
        let mut line = self.line.borrow_mut();
        if let Some(line) = &*line {
            return Ok(Rc::clone(line));
        }
        let new = Rc::new(Line::new((self.start)()?)?);
        Ok(Rc::clone(line.insert(new)))
    }
}

fn lost(request: &Request, error: &io::Error) -> Error {
    Error::io("loader", format!("no answer to: {request}"), error)
}

/// One loader.
#[derive(Debug)]
struct Line {
    worker: Worker,
    ear: AsyncFd<Ear>,
    /// The number of the last request.
    last: Cell<u32>,
    /// The answers that nobody has taken yet.
    answers: RefCell<BTreeMap<u32, Answer>>,
    /// Tells every request of a new answer.
    news: Notify,
}

impl Line {
    fn new(worker: Worker) -> io::Result<Line> {
        Ok(Line {
            ear: watched(worker.ear()?)?,
            worker,
            last: Cell::new(0),
            answers: RefCell::default(),
            news: Notify::new(),
        })
    }

    /// Sends the request; the number is that of its answer.
    async fn send(&self, request: &Request) -> io::Result<u32> {
        let number = self.last.get().wrapping_add(1);
        self.last.set(number);
        self.worker.send_when_free(&(number, request)).await?;
        Ok(number)
    }

    async fn answer(&self, number: u32) -> io::Result<Answer> {
        loop {
            // Before the look: an answer that another request receives meanwhile is not missed.
            let news = self.news.notified();
            if let Some(answer) = self.answers.borrow_mut().remove(&number) {
                return Ok(answer);
            }
            tokio::select! {
                () = news => {}
                received = self.receive() => received?,
            }
        }
    }

    /// Waits for the next answer to any request.
    async fn receive(&self) -> io::Result<()> {
        let mut ready = self.ear.readable().await?;
        match self.worker.receive()? {
            Some((number, answer)) => {
                self.answers.borrow_mut().insert(number, answer);
                self.news.notify_waiters();
            }
            None => ready.clear_ready(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use nix::sys::socket::MsgFlags;

    use super::*;
    use crate::loader::request::{Interface, Write};
    use crate::system::worker::{receive_from, send_to};

    /// Answers the second request before the first one, and then ends.
    fn backwards() -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        std::thread::spawn(move || -> io::Result<()> {
            let receive = || receive_from::<(u32, Request)>(far.as_fd(), MsgFlags::empty());
            let send = |message: (u32, Answer)| send_to(far.as_fd(), &message, MsgFlags::empty());
            let (first, second) = (receive()?.0, receive()?.0);
            send((second, Answer::Done(Ok(()))))?;
            send((first, Answer::Done(Err(Error::new("a", "failed")))))
        });
        Ok(worker)
    }

    #[tokio::test]
    async fn each_request_gets_its_own_answer() {
        let loader = Loader::new(backwards);
        let (a, b) = tokio::join!(loader.load("a", &[]), loader.load("b", &[]));
        assert_eq!(a.unwrap_err().to_string(), "a: failed");
        assert_eq!(b, Ok(()));
    }

    /// Ends with the first request.
    fn brief() -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        let receive =
            move || receive_from::<(u32, Request)>(far.as_fd(), MsgFlags::empty()).map(drop);
        std::thread::spawn(receive);
        Ok(worker)
    }

    fn ended() -> io::Result<Worker> {
        Worker::pair().map(|(worker, _)| worker)
    }

    /// Does everything.
    fn willing() -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        std::thread::spawn(move || -> io::Result<()> {
            loop {
                let (number, _): (u32, Request) = receive_from(far.as_fd(), MsgFlags::empty())?;
                let answer = (number, Answer::Done(Ok(())));
                send_to(far.as_fd(), &answer, MsgFlags::empty())?;
            }
        });
        Ok(worker)
    }

    fn line(start: fn() -> io::Result<Worker>) -> Option<Rc<Line>> {
        Some(Rc::new(Line::new(start().unwrap()).unwrap()))
    }

    #[tokio::test]
    async fn a_loader_that_has_ended_is_replaced_once() {
        let lost = "loader: no answer to: probe 0000:dc:00.0: ";
        for (start, why) in [
            (
                brief as fn() -> io::Result<Worker>,
                "unexpected end of file",
            ),
            (ended, "Broken pipe"),
        ] {
            let loader = Loader::new(start);
            let error = loader.probe("0000:dc:00.0").await.unwrap_err();
            assert_eq!(error.to_string(), format!("{lost}{why}"));
            assert!(loader.line.borrow().is_none());
        }
        let loader = Loader::new(willing);
        let child = || {
            Request::Write(Write::CreateChild {
                interface: Interface {
                    name: "ib0".to_owned(),
                    index: 5,
                },
                pkey: 1,
            })
        };
        for (first, is_repeated) in [(brief as fn() -> io::Result<Worker>, false), (ended, true)] {
            *loader.line.borrow_mut() = line(first);
            let (a, b) = tokio::join!(loader.load("a", &[]), loader.load("b", &[]));
            assert_eq!((a, b), (Ok(()), Ok(())));
            // The lost loader may have made the child: another try would be an error.
            *loader.line.borrow_mut() = line(first);
            assert_eq!(loader.do_this(child()).await.is_ok(), is_repeated);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_loader_that_never_answers_holds_a_short_request_for_its_limit() {
        let (worker, _far) = Worker::pair().unwrap();
        let loader = Loader::new(willing);
        *loader.line.borrow_mut() = Some(Rc::new(Line::new(worker).unwrap()));
        let began = tokio::time::Instant::now();
        let limit = Duration::from_secs(20);
        let error = loader.do_within(limit, Request::Index).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "loader: no answer to: read the index of modules: timed out"
        );
        assert_eq!(began.elapsed(), limit);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_socket_is_no_lost_loader() {
        let (worker, far) = Worker::pair().unwrap();
        let line = Rc::new(Line::new(worker).unwrap());
        let name = Request::Write(Write::HostName("n".repeat(4096)));
        while line.worker.send(&(0, &name)).is_ok() {}
        let read = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let all = || receive_from::<(u32, Request)>(far.as_fd(), MsgFlags::MSG_DONTWAIT);
            while all().is_ok() {}
        };
        let (sent, ()) = tokio::join!(line.send(&name), read);
        assert_eq!(sent.unwrap(), 1);
    }

    #[tokio::test]
    async fn an_answer_to_another_question_is_an_error() {
        let loader = Loader::new(backwards);
        let request = Request::PortTypes {
            card: "0000:05:00.0".to_owned(),
            ports: vec![
                (1, kernel_cmdline::PortType::Eth),
                (2, kernel_cmdline::PortType::Ib),
            ],
        };
        let (_, all) = tokio::join!(loader.load("a", &[]), loader.carry_out(request));
        let words = "loader: no answer to: set port types of 0000:05:00.0: invalid data";
        let Answer::Ports(all) = all else {
            panic!("{all:?}")
        };
        let all = all.into_iter().map(|one| one.unwrap_err().to_string());
        assert_eq!(all.collect::<Vec<_>>(), [words, words]);
    }

    #[tokio::test]
    async fn a_loader_that_cannot_be_started_is_an_error_of_each_request() {
        let loader = Loader::new(|| Err(io::ErrorKind::NotFound.into()));
        let name = Request::Write(Write::HostName("n1".to_owned()));
        assert_eq!(
            loader.do_this(name).await.unwrap_err().to_string(),
            "loader: no answer to: set the host name: entity not found"
        );
    }
}
