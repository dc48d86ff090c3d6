// SPDX-License-Identifier: MIT OR Apache-2.0
//! `up`'s end of the loader: requests, and their answers in any order.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

use super::request::{Answer, PortSet, Request, Write};
use super::{JOB, SOCKET};
use crate::error::{Error, Result};
use crate::system::readiness::watched;
use crate::system::worker::{Ear, Worker};

/// The loader, which is started for the first request. One that has ended is replaced by the next
/// request; the requests that it had are errors.
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
/// up; without it, a child of this process.
fn start() -> io::Result<Worker> {
    match Worker::connect(SOCKET) {
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            Worker::start(&[JOB])
        }
        connected => connected,
    }
}

impl Loader {
    /// A loader that `start` starts.
    pub fn new(start: fn() -> io::Result<Worker>) -> Loader {
        let line = RefCell::new(None);
        Loader { start, line }
    }

    /// Loads a module, and ends when the kernel reports the module as live
    /// ([`crate::system::modules::load`]).
    pub async fn load(&self, module: &str, parameters: &[String]) -> Result<()> {
        let (module, parameters) = (module.to_owned(), parameters.to_vec());
        self.do_this(Request::Load { module, parameters }).await
    }

    /// Probes a PCI function, and ends when the driver's probe ends.
    pub async fn probe(&self, address: &str) -> Result<()> {
        self.do_this(Request::Probe(address.to_owned())).await
    }

    /// Writes to one file of the kernel. [`Error::found`] is the kernel's answer.
    pub async fn write(&self, write: Write) -> Result<()> {
        self.do_this(Request::Write(write)).await
    }

    /// Sets the types of ports of one card; one result for each.
    pub async fn set_port_types(
        &self,
        card: &str,
        ports: impl ExactSizeIterator<Item = (u32, kernel_cmdline::PortType)>,
    ) -> Vec<PortSet> {
        let count = ports.len();
        let request = Request::PortTypes {
            card: card.to_owned(),
            ports: ports.map(|(port, value)| (port, value.into())).collect(),
        };
        match self.ask(&request).await {
            Ok(Answer::Ports(all)) if all.len() == count => all,
            Ok(Answer::Done(Err(error))) | Err(error) => vec![Err(error); count],
            Ok(_) => vec![Err(lost(&request, &io::ErrorKind::InvalidData.into())); count],
        }
    }

    pub(super) async fn do_this(&self, request: Request) -> Result<()> {
        match self.ask(&request).await? {
            Answer::Done(result) => result,
            Answer::Ports(_) => Err(lost(&request, &io::ErrorKind::InvalidData.into())),
        }
    }

    async fn ask(&self, request: &Request) -> Result<Answer> {
        let fail = |error| lost(request, &error);
        let mut line = self.line().map_err(fail)?;
        let mut sent = line.send(request);
        if sent.is_err() {
            // The loader has ended since the last request.
            self.hang_up(&line);
            line = self.line().map_err(fail)?;
            sent = line.send(request);
        }
        let answer = match sent {
            Ok(number) => line.answer(number).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| {
            self.hang_up(&line);
            fail(error)
        })
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
    fn send(&self, request: &Request) -> io::Result<u32> {
        let number = self.last.get().wrapping_add(1);
        self.last.set(number);
        self.worker.send(&(number, request))?;
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

    #[tokio::test]
    async fn a_loader_that_has_ended_is_replaced() {
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
        let mut loader = Loader::new(brief);
        let lost = "loader: no answer to: probe 0000:dc:00.0: ";
        for _ in 0..2 {
            let error = loader.probe("0000:dc:00.0").await.unwrap_err().to_string();
            assert_eq!(error, format!("{lost}unexpected end of file"));
            assert!(loader.line.borrow().is_none());
        }
        // Neither of two loaders takes the request.
        loader.start = ended;
        let error = loader.probe("0000:dc:00.0").await.unwrap_err().to_string();
        assert_eq!(error, format!("{lost}Broken pipe"));
        // The second one does.
        *loader.line.borrow_mut() = Some(Rc::new(Line::new(ended().unwrap()).unwrap()));
        loader.start = backwards;
        let (_, b) = tokio::join!(loader.load("a", &[]), loader.load("b", &[]));
        assert_eq!(b, Ok(()));
    }

    #[tokio::test]
    async fn an_answer_to_another_question_is_an_error() {
        let loader = Loader::new(backwards);
        let ports = [
            (1, kernel_cmdline::PortType::Eth),
            (2, kernel_cmdline::PortType::Ib),
        ];
        let card = "0000:05:00.0";
        let (_, all) = tokio::join!(
            loader.load("a", &[]),
            loader.set_port_types(card, ports.into_iter())
        );
        let words = "loader: no answer to: set port types of 0000:05:00.0: invalid data";
        let all: Vec<String> = all
            .into_iter()
            .map(|one| one.unwrap_err().to_string())
            .collect();
        assert_eq!(all, [words, words]);
    }

    #[tokio::test]
    async fn a_loader_that_cannot_be_started_is_an_error_of_each_request() {
        let loader = Loader::new(|| Err(io::ErrorKind::NotFound.into()));
        let name = Write::HostName("n1".to_owned());
        assert_eq!(
            loader.write(name).await.unwrap_err().to_string(),
            "loader: no answer to: set the host name: entity not found"
        );
    }
}
