// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads each RDMA device in a process of its own. On mlx5 each query of a port is a firmware
//! command, and one whose firmware does not answer sleeps up to 60 s where no signal reaches the
//! process (MLX5_TO_CMD_MS of drivers/net/ethernet/mellanox/mlx5/core/lib/tout.c): only a reader of
//! its own keeps that away from the other devices.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::devices::{CLASS, SILENT, complete, identify, identify_again};
use super::{Device, Look, Obstacle, Port, Unread, role};
use crate::error::errno_text;
use crate::rdma::chardev::{self, Kind};
use crate::rdma::events::{AsyncEvent, AsyncEvents};
use crate::rdma::netlink::Rdma;
use crate::rdma::types::{LinkLayer, PortState};
use crate::system::clock::{SECOND, boottime_ns};
use crate::system::copy::Recorded;
use crate::system::root::Root;
use crate::system::worker::{self, Ear, Master, Worker};
use crate::wish::expectation::Depth;

/// The job of a worker that reads the device with the name that follows.
pub const JOB: &str = "device";

/// How long a look of the boot waits for a device; the device is read further meanwhile.
pub const IN_BOOT: Duration = Duration::from_secs(2);
/// How long a single look waits for a device.
pub const ONCE: Duration = Duration::from_secs(5);

/// "has not answered for N s (firmware?)", in steps: the sentence is not new at every look.
pub fn silence(seconds: u32) -> String {
    const STEPS: [u32; 10] = [600, 300, 120, 60, 30, 20, 10, 5, 2, 1];
    let step = STEPS.into_iter().find(|step| *step <= seconds);
    format!("has not answered for {} s (firmware?)", step.unwrap_or(1))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Request {
    depth: Depth,
    is_recording: bool,
    /// The reader tells of the events of the device ([`Message::Changed`]).
    wants_events: bool,
}

/// What a reader sends.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    Found(Box<Answer>),
    /// The device had an event: look again.
    Changed,
}

/// What a reader found. It sends this twice: what is known without the firmware, then all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Answer {
    device: Device,
    unread: Vec<Unread>,
    files: BTreeMap<PathBuf, Recorded>,
    is_complete: bool,
    /// The events of the device are heard.
    has_events: bool,
}

fn answer(root: &Root, look: &Look<'_>, device: &Device, is_complete: bool) -> Answer {
    Answer {
        device: device.clone(),
        unread: look.unread.clone(),
        files: root.recorded(),
        is_complete,
        has_events: false,
    }
}

/// What a worker keeps from one request to the next.
#[derive(Debug, Default)]
struct Kept {
    rdma: Option<Rdma>,
    /// What identifies the device, with its index.
    identity: Option<Device>,
    /// What the master knows without the firmware.
    told: Option<Answer>,
}

impl Kept {
    /// Reads the device `name`, and gives what is known without the firmware to `early`, if that is
    /// news.
    fn read(
        &mut self,
        name: &str,
        request: &Request,
        early: impl FnOnce(Option<&Answer>, Option<(&Rdma, u32)>),
    ) -> Answer {
        let root = match request.is_recording {
            true => Root::recording("/"),
            false => Root::new("/"),
        };
        let mut look = Look::new(&root);
        look.depth = request.depth.clone();
        if self.rdma.is_none() {
            self.rdma = Rdma::open_if_loaded();
        }
        let is_short = !request.is_recording && request.depth != Depth::All;
        let identity = self.identity.take().filter(|_| is_short);
        let again = identity.zip(self.rdma.as_ref());
        let again = again.and_then(|(known, rdma)| identify_again(&mut look, rdma, &known));
        let (mut device, reported) = match again {
            Some((device, reported)) => (device, Some(reported)),
            // `complete` notes an error.
            None => {
                let devices = self.rdma.as_ref().and_then(|rdma| rdma.devices().ok());
                let mut devices = devices.into_iter().flatten();
                let reported = devices.find(|device| device.name == name);
                (identify(&mut look, name), reported)
            }
        };
        // A management plane is none of the ports that are awaited, also while it is silent.
        device.sub_device = reported.as_ref().and_then(role::sub_device);
        let identity = answer(&root, &look, &device, false);
        let is_news = self.told.as_ref() != Some(&identity);
        self.told = Some(identity);
        let index = reported.as_ref().map(|device| device.index);
        early(
            self.told.as_ref().filter(|_| is_news),
            self.rdma.as_ref().zip(index),
        );
        let identity = device.clone();
        complete(&mut look, self.rdma.as_ref(), reported, &mut device);
        if look.unread.is_empty() {
            self.identity = device.ifindex.map(|index| Device {
                ifindex: Some(index),
                ..identity
            });
        } else {
            self.rdma = None;
        }
        answer(&root, &look, &device, true)
    }
}

/// The open event file of a device.
#[derive(Debug)]
struct Events<F> {
    /// Index of the device.
    device: u32,
    /// Name of the uverbs file.
    name: String,
    file: F,
}

impl<F> Events<F> {
    /// Whether the file stays open: another device may have the name of the device now, and most
    /// drivers let the kernel remove the device only after the file is closed.
    fn is_kept(&self, root: &Root, device: Option<u32>) -> bool {
        device == Some(self.device) && chardev::is_there(root, &self.name, Kind::Uverbs)
    }
}

/// The asynchronous events of the device; none where they cannot be heard, as with a driver that has a
/// request format of its own ([`AsyncEvents::open`]): its ports are polled.
fn open_events(root: &Root, device: &str, index: u32, rdma: &Rdma) -> Option<Events<AsyncEvents>> {
    let name = chardev::name(root, rdma, (index, device), Kind::Uverbs).ok()?;
    Some(Events {
        device: index,
        file: AsyncEvents::open(&name).ok()?,
        name,
    })
}

/// The worker: reads the device `name` for each request, and tells of its events, until nobody needs
/// it. Opening, reading and closing a uverbs file may also query the firmware.
pub fn serve(name: &str) -> io::Result<()> {
    let master = Master::of_process();
    let root = Root::new("/");
    let mut events: Option<Events<AsyncEvents>> = None;
    let mut kept = Kept::default();
    loop {
        if let Some(Events { file, .. }) = &events
            && master.is_readable_first(file.as_fd())?
        {
            let is_final = |event: &AsyncEvent| event.kind.is_final();
            if !file.drain().is_ok_and(|told| !told.iter().any(is_final)) {
                events = None;
            }
            master.send(&Message::Changed)?;
            continue;
        }
        let request: Request = match master.receive() {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            request => request?,
        };
        let mut sent = Ok(());
        let early = |identity: Option<&Answer>, device: Option<(&Rdma, u32)>| {
            if let Some(identity) = identity {
                sent = master.send(&Message::Found(Box::new(identity.clone())));
            }
            let index = device.map(|(_, index)| index);
            let open = events.take().filter(|open| open.is_kept(&root, index));
            // The event file is open before the state is read, or an event in between is lost.
            events = match (request.wants_events, open) {
                (true, None) => {
                    device.and_then(|(rdma, index)| open_events(&root, name, index, rdma))
                }
                (wants_events, open) => open.filter(|_| wants_events),
            };
        };
        let whole = kept.read(name, &request, early);
        let whole = Answer {
            has_events: events.is_some(),
            ..whole
        };
        sent.and_then(|()| master.send(&Message::Found(Box::new(whole))))?;
    }
}

/// Starts the reader of the device with this name.
type Start = fn(&str) -> io::Result<Worker>;

/// The reader of one device.
#[derive(Debug, Default)]
struct Reader {
    /// The last answer said so.
    has_events: bool,
    /// None: the device was given up, or its reader has ended.
    worker: Option<Worker>,
    /// What the device is, and what of that could not be read.
    identity: Answer,
    /// The request without an answer, and its time in ns since kernel start.
    open: Option<(Request, u64)>,
    /// The last request with its answer.
    answer: Option<(Request, Answer)>,
    /// Time of the last answer, in ns since kernel start.
    answered_ns: u64,
    /// The device had an event since that answer.
    is_changed: bool,
    /// Nothing touches the device again.
    is_given_up: bool,
    /// Why the last request has no answer, and what was in the way.
    failure: Option<(String, Option<Obstacle>)>,
}

/// How long an answer about a port that is not ACTIVE stays true without an event: of ACTIVE every
/// driver tells, of DOWN to INIT few.
const UNTIL_ACTIVE: Duration = Duration::from_secs(1);

/// How long an answer about these ports stays true while the device tells of no event. An ACTIVE port
/// gets its attributes one by one, and older kernels than 5.6 tell of ACTIVE before the port has all of
/// them; an Ethernet port follows its network interface: answers about these are true once.
fn lasts(device: &Device) -> Duration {
    let is_set = |number: Option<u32>| number.is_some_and(|number| number != 0);
    let of_port = |port: &Port| match (port.link_layer, port.state) {
        (Some(LinkLayer::InfiniBand), Some(PortState::Active))
            if port.port_guid.is_some() && is_set(port.lid) && is_set(port.sm_lid) =>
        {
            Duration::MAX
        }
        (
            Some(LinkLayer::InfiniBand),
            Some(PortState::Down | PortState::Init | PortState::Armed),
        ) => UNTIL_ACTIVE,
        _ => Duration::ZERO,
    };
    device.ports.iter().map(of_port).min().unwrap_or_default()
}

impl Reader {
    /// Whether the last answer is still true, as far as the device has told.
    fn is_current(&self, request: &Request) -> bool {
        let is_held = self.worker.is_some() && self.has_events && !self.is_changed;
        let age = Duration::from_nanos(boottime_ns().saturating_sub(self.answered_ns));
        let is_answer = |(of, answer): &(Request, Answer)| {
            let lacks = |pkey| !answer.device.ports.iter().all(|p| p.pkeys.contains(pkey));
            let is_complete = match &request.depth {
                Depth::Partitions(required) => !required.iter().any(lacks),
                _ => true,
            };
            let is_true = answer.unread.is_empty() && age < lasts(&answer.device);
            of == request && is_complete && is_true
        };
        is_held && self.open.is_none() && self.answer.as_ref().is_some_and(is_answer)
    }

    /// Takes what the reader has told since its last answer.
    fn hear(&mut self) {
        while let Some(worker) = self.worker.as_ref().filter(|_| self.open.is_none()) {
            match worker.receive::<Message>() {
                Ok(None) => return,
                Ok(Some(_)) => self.is_changed = true,
                Err(error) => self.fail(error),
            }
        }
    }

    /// Sends the request, unless an earlier one is not answered yet.
    fn ask(&mut self, name: &str, request: &Request, start: Start) {
        self.answer = None;
        self.failure = None;
        if self.is_given_up {
            return;
        }
        if self.worker.is_none() {
            self.open = None;
            match start(name) {
                Ok(worker) => self.worker = Some(worker),
                Err(error) => {
                    let why = format!("no process can read it: {}", errno_text(&error));
                    self.failure = Some((why, Some(Obstacle::of_process(&error))));
                    return;
                }
            }
        }
        if self.open.is_none() {
            self.send(request);
        }
    }

    fn send(&mut self, request: &Request) {
        self.is_changed = false;
        let sent = self.worker.as_ref().map(|worker| worker.send(request));
        match sent {
            Some(Err(error)) => self.fail(error),
            _ => self.open = Some((request.clone(), boottime_ns())),
        }
    }

    /// Ends the reader. A healthy one has closed its files then.
    fn end(&mut self) {
        let worker = self.worker.take();
        if let Some(worker) = worker.filter(|_| self.open.is_none()) {
            worker.end();
        }
        (self.open, self.has_events) = (None, false);
    }

    fn fail(&mut self, error: io::Error) {
        (self.has_events, self.answer) = (false, None);
        (self.worker, self.open) = (None, None);
        self.failure = Some((format!("the reader has ended: {error}"), None));
    }

    /// Takes what has come. A late answer to another request is not enough.
    fn receive(&mut self, request: &Request) {
        while let Some(worker) = self.worker.as_ref().filter(|_| self.open.is_some()) {
            match worker.receive() {
                Ok(None) => return,
                // The reader reads after it has told of an event.
                Ok(Some(Message::Changed)) => {}
                Ok(Some(Message::Found(found))) if !found.is_complete => self.identity = *found,
                Ok(Some(Message::Found(found))) => {
                    self.has_events = found.has_events;
                    self.answered_ns = boottime_ns();
                    let is_same = self.open.take().is_some_and(|(open, _)| open == *request);
                    match is_same {
                        true => self.answer = Some((request.clone(), *found)),
                        false => self.send(request),
                    }
                }
                Err(error) => self.fail(error),
            }
        }
    }

    /// Since when the device has not answered, in ns since kernel start.
    fn silent_since(&self) -> Option<u64> {
        self.open.as_ref().map(|(_, since_ns)| *since_ns)
    }

    fn give_up(&mut self) {
        self.is_given_up |= self.open.is_some();
        if self.is_given_up {
            self.worker = None;
        }
    }

    /// What is known of the device.
    fn device(&mut self, name: &str, look: &mut Look<'_>) -> Device {
        let ports = format!("{CLASS}/{name}/ports");
        if let Some((_, answer)) = &self.answer {
            look.root().adopt(answer.files.clone());
            look.unread.extend(answer.unread.iter().cloned());
            return answer.device.clone();
        }
        look.root().adopt(self.identity.files.clone());
        look.unread.extend(self.identity.unread.iter().cloned());
        let mut device = self.identity.device.clone();
        name.clone_into(&mut device.ifname);
        if let Some((why, obstacle)) = &self.failure {
            look.push(&ports, why, *obstacle);
        } else if let Some(since_ns) = self.silent_since() {
            let seconds = boottime_ns().saturating_sub(since_ns) / SECOND;
            let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
            device.silent_s = Some(seconds);
            if device.ports.is_empty() {
                look.note(&ports, silence(seconds));
            }
        }
        device
    }
}

/// The processes that have not answered a request of the look that began then: a look waits only for the
/// devices that it asked.
fn awaited(readers: &BTreeMap<String, Reader>, began_ns: u64) -> Vec<&Worker> {
    let is_awaited = |since_ns: u64| since_ns >= began_ns;
    readers
        .values()
        .filter(|reader| reader.silent_since().is_some_and(is_awaited))
        .filter_map(|reader| reader.worker.as_ref())
        .collect()
}

/// The readers of all devices. A look waits for each device only once: a device that did not answer
/// is [`Device::silent_s`] until its answer comes.
#[derive(Debug)]
pub struct Readers {
    budget: Duration,
    start: Start,
    readers: RefCell<BTreeMap<String, Reader>>,
    /// [`Readers::give_up`] was called.
    is_over: Cell<bool>,
    /// [`Readers::listen`] was called.
    is_listening: Cell<bool>,
}

impl Readers {
    /// The readers of the running machine; none for a saved tree. A look waits `budget` for the
    /// devices.
    pub fn of(root: &Root, budget: Duration) -> Option<Readers> {
        let start: Start = |name| Worker::start(&[JOB, name]);
        root.is_live().then(|| Readers::new(budget, start))
    }

    fn new(budget: Duration, start: Start) -> Readers {
        Readers {
            budget,
            start,
            readers: RefCell::default(),
            is_over: Cell::default(),
            is_listening: Cell::default(),
        }
    }

    /// Reads the devices with these names, side by side. Unless `is_all`, a device whose last answer is
    /// still true ([`lasts`]) is not read again.
    pub fn read(&self, names: &[String], look: &mut Look<'_>, is_all: bool) -> Vec<Device> {
        let mut readers = self.readers.borrow_mut();
        let request = || Request {
            depth: look.depth.clone(),
            is_recording: look.root().is_recording(),
            wants_events: self.is_listening.get(),
        };
        let requests: BTreeMap<&String, Request> =
            names.iter().map(|name| (name, request())).collect();
        // A device that is gone may come back with another driver behind it.
        readers.retain(|name, _| names.contains(name));
        let began_ns = boottime_ns();
        let deadline = Instant::now() + self.budget;
        for (name, request) in &requests {
            let reader = readers.entry((*name).clone()).or_default();
            if !is_all {
                reader.hear();
            }
            if is_all || !reader.is_current(request) {
                reader.ask(name, request, self.start);
            }
        }
        loop {
            let waited_for = awaited(&readers, began_ns);
            if !waited_for.is_empty() {
                worker::wait(&waited_for, deadline);
            }
            for (name, reader) in readers.iter_mut() {
                if let Some(request) = requests.get(name) {
                    reader.receive(request);
                }
            }
            // A late answer to another request is followed by a new request.
            if awaited(&readers, began_ns).is_empty() || Instant::now() >= deadline {
                break;
            }
        }
        if self.is_over.get() {
            readers.values_mut().for_each(Reader::give_up);
        }
        let of_name = |name: &String| Some(readers.get_mut(name)?.device(name, look));
        let devices: Vec<Device> = names.iter().filter_map(of_name).collect();
        let silent = devices.iter();
        let silent = silent.filter_map(|one| Some((&one.ifname, one.silent_s?)));
        let silent: BTreeMap<&String, u32> = silent.collect();
        if !silent.is_empty() {
            look.root().keep(SILENT, &silent);
        }
        devices
    }

    /// From now on readers hold the event files of their devices open and tell of events.
    pub fn listen(&self) {
        self.is_listening.set(true);
    }

    /// The process of each reader, by device; 0 in a test.
    pub fn processes(&self) -> BTreeMap<String, u32> {
        let readers = self.readers.borrow();
        let process = |reader: &Reader| reader.worker.as_ref().map(Worker::id);
        let of_all = readers.iter();
        of_all
            .filter_map(|(name, reader)| Some((name.clone(), process(reader)?)))
            .collect()
    }

    /// Listens to the reader of the device.
    pub fn ear(&self, name: &str) -> io::Result<Ear> {
        let readers = self.readers.borrow();
        let worker = readers.get(name).and_then(|reader| reader.worker.as_ref());
        worker.ok_or(io::ErrorKind::NotFound)?.ear()
    }

    /// A device whose events matter answers, and its events are not heard.
    pub fn is_any_deaf(&self, matters: impl Fn(&str) -> bool) -> bool {
        let readers = self.readers.borrow();
        let mut answering = readers.iter().filter(|(_, reader)| reader.open.is_none());
        answering.any(|(name, reader)| !reader.has_events && matters(name))
    }

    /// A device does not answer: its answer may come at any time.
    pub fn is_any_silent(&self) -> bool {
        let readers = self.readers.borrow();
        let is_silent = |reader: &Reader| reader.open.is_some() && !reader.is_given_up;
        readers.values().any(is_silent)
    }

    /// From now on a device that does not answer is never read again.
    pub fn give_up(&self) {
        self.is_over.set(true);
        let mut readers = self.readers.borrow_mut();
        readers.values_mut().for_each(Reader::give_up);
    }

    /// An earlier run gave up this device, which has not answered since `since_ns`.
    pub fn leave_out(&self, name: &str, since_ns: u64) {
        let request = Request {
            depth: Depth::Ports,
            is_recording: false,
            wants_events: false,
        };
        let reader = Reader {
            open: Some((request, since_ns)),
            is_given_up: true,
            ..Reader::default()
        };
        self.readers.borrow_mut().insert(name.to_owned(), reader);
    }
}

impl Drop for Readers {
    /// Many a device cannot be removed while its event file is open.
    fn drop(&mut self) {
        self.readers.get_mut().values_mut().for_each(Reader::end);
    }
}

#[cfg(test)]
mod tests;
