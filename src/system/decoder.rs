// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decoder: a worker without any power, in which the messages of other hosts are decoded. The
//! program that sets up links receives such a message without looking into it, sends its bytes to
//! the decoder, and gets back a value of a type, which it checks. The decoder has no other file
//! than the socket of this exchange ([`confine`](super::confine)).

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::confine::{close_inherited, confine, limit_memory};
use super::worker::{self, Master, Worker};
use crate::error::{errno_text, printable};
use crate::hardware::{Hex, unhex};

/// The job of the worker.
pub const JOB: &str = "decode";

/// How long an answer may take, with the start of a decoder on a slow machine.
const LIMIT: Duration = Duration::from_secs(2);
/// How long no decoder gets a message of a format at which decoders ended or lied.
const PAUSE: Duration = Duration::from_secs(1);
/// Decoders that get a message, and decoders that may be silent about one format within [`REST`].
const TRIES: usize = 2;
/// How long no decoder gets a message of a format about which [`TRIES`] were silent: the walk waits
/// at most `TRIES * LIMIT` for them in this time.
const REST: Duration = Duration::from_secs(60);
/// Memory of the decoder in bytes. Measured: 0.7 MiB with a packet of 64 KiB; a value that repeats
/// every byte of the packet as a number takes 32 times the packet.
const MEMORY: u64 = 16 << 20;

/// A kind of message of other hosts.
pub trait Format {
    /// Name between program and decoder.
    const NAME: &'static str;
    /// What the program knows about the message.
    type Context: Serialize + DeserializeOwned;
    /// What the message says.
    type Value: Serialize + DeserializeOwned;

    /// PURE: runs in the decoder.
    fn decode(context: &Self::Context, bytes: &[u8]) -> Self::Value;

    /// PURE: runs in the program. Whether [`Format::decode`] can return this value: whoever has
    /// taken over the decoder must not be able to say more than whoever sends messages.
    fn is_sound(context: &Self::Context, value: &Self::Value) -> bool;
}

#[derive(Debug, Serialize, Deserialize)]
struct Request {
    format: String,
    context: Value,
    /// Hexadecimal.
    bytes: String,
}

/// What the decoder sends.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// First of all: the decoder is confined, except by these, which cannot be used here.
    Confined(Vec<String>),
    /// In its place: why the decoder cannot give up its power. It decodes nothing.
    Unconfined(String),
    Decoded(Value),
}

/// Decodes the bytes of one format.
pub type Decode = fn(Value, &[u8]) -> io::Result<Value>;

/// The entry of a format in the table of [`serve`].
pub fn entry<F: Format>() -> (&'static str, Decode) {
    (F::NAME, |context, bytes| {
        let context = serde_json::from_value(context)?;
        Ok(serde_json::to_value(F::decode(&context, bytes))?)
    })
}

/// The worker: confines itself, then decodes until nobody needs it.
pub fn serve(formats: &[(&str, Decode)]) -> io::Result<()> {
    let master = Master::of_process();
    match give_up_power() {
        Ok(lacks) => master.send(&Message::Confined(lacks))?,
        Err(why) => {
            master.send(&Message::Unconfined(why.clone()))?;
            // The end of a process with an unread message would hide what it has sent (unix(7),
            // ECONNRESET).
            let _: IgnoredAny = master.receive()?;
            return Err(io::Error::other(why));
        }
    }
    loop {
        let request: Request = match master.receive() {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            request => request?,
        };
        let format = formats.iter().find(|(name, _)| *name == request.format);
        let (_, decode) = format.ok_or(io::ErrorKind::Unsupported)?;
        let bytes = match request.bytes.as_str() {
            "" => Vec::new(),
            text => unhex(text).ok_or(io::ErrorKind::InvalidData)?,
        };
        master.send(&Message::Decoded(decode(request.context, &bytes)?))?;
    }
}

/// Confines the process. Returns what cannot be used here; an error names the system call.
fn give_up_power() -> Result<Vec<String>, String> {
    let failed = |call: &'static str| move |e: io::Error| format!("{call}: {}", errno_text(&e));
    let closed = close_inherited();
    limit_memory(MEMORY).map_err(failed("setrlimit"))?;
    let mut lacks = confine().map_err(failed("capset"))?;
    if closed.is_err() {
        lacks.push("close_range".to_owned());
    }
    Ok(lacks)
}

/// The decoder of this program.
#[derive(Debug)]
struct Decoder {
    start: fn() -> io::Result<Worker>,
    limit: Duration,
    worker: Option<Worker>,
    /// The formats at which decoders failed: who sends messages of one format cannot keep those of
    /// another from being decoded.
    troubles: BTreeMap<&'static str, Trouble>,
    /// What cannot be used here, or why no decoder can be confined, was logged.
    is_introduced: bool,
    /// A decoder was started before the first message.
    is_prepared: bool,
}

/// How decoders failed at one format; the first failure was logged.
#[derive(Debug, Default)]
struct Trouble {
    /// A decoder ended or lied: no decoder gets a message before.
    pause: Option<Instant>,
    /// Decoders that were silent since [`Trouble::since`].
    silent: usize,
    since: Option<Instant>,
}

/// Why a value is missing in the words of a report, where [`decode`] gave none.
pub const LOST: &str = "a message of this kind could not be decoded, see dmesg";

static DECODER: Mutex<Decoder> = Mutex::new(Decoder::new(start, LIMIT));

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program that is started as the decoder, for a program that is not ibboot. Only the
/// first call counts.
pub fn use_program(path: PathBuf) {
    PROGRAM.get_or_init(|| path);
}

fn start() -> io::Result<Worker> {
    match PROGRAM.get() {
        Some(program) => Worker::start_program(program, &[JOB]),
        None => Worker::start(&[JOB]),
    }
}

/// Starts the decoder, if none runs, before the first message comes. [`decode`] reports an error.
pub fn prepare() {
    if !cfg!(test) {
        let mut decoder = DECODER.lock().unwrap_or_else(PoisonError::into_inner);
        decoder.prepare();
    }
}

/// What the message says. None: the message is lost, because the decoder failed; the first failure
/// at each format is logged as a warning.
pub fn decode<F: Format>(context: &F::Context, bytes: &[u8]) -> Option<F::Value> {
    if cfg!(test) {
        // The program of a unit test is no decoder.
        return Some(F::decode(context, bytes)).filter(|value| F::is_sound(context, value));
    }
    let mut decoder = DECODER.lock().unwrap_or_else(PoisonError::into_inner);
    decoder.decode::<F>(context, bytes)
}

impl Decoder {
    const fn new(start: fn() -> io::Result<Worker>, limit: Duration) -> Decoder {
        Decoder {
            start,
            limit,
            worker: None,
            troubles: BTreeMap::new(),
            is_introduced: false,
            is_prepared: false,
        }
    }

    /// Once: [`Decoder::ask`] starts the next one, after a pause.
    fn prepare(&mut self) {
        if !self.is_prepared {
            self.is_prepared = true;
            self.worker = self.worker.take().or_else(|| (self.start)().ok());
        }
    }

    fn decode<F: Format>(&mut self, context: &F::Context, bytes: &[u8]) -> Option<F::Value> {
        let is_paused = |trouble: &Trouble| trouble.pause.is_some_and(|at| Instant::now() < at);
        if self.troubles.get(F::NAME).is_some_and(is_paused) {
            return None;
        }
        // A second decoder gets the message that the first one lost: not every message is repeated.
        for _ in 0..TRIES {
            if self.is_at_rest(F::NAME) {
                return None;
            }
            match self.try_once::<F>(context, bytes) {
                Ok(value) => return Some(value),
                Err(error) => self.fail(F::NAME, &error),
            }
        }
        None
    }

    /// Whether so many decoders were silent about the format that no other gets a message.
    fn is_at_rest(&mut self, format: &str) -> bool {
        let Some(trouble) = self.troubles.get_mut(format) else {
            return false;
        };
        if trouble.since.is_some_and(|since| since.elapsed() >= REST) {
            (trouble.silent, trouble.since) = (0, None);
        }
        trouble.silent >= TRIES
    }

    fn try_once<F: Format>(&mut self, context: &F::Context, bytes: &[u8]) -> io::Result<F::Value> {
        let value = self.ask(F::NAME, context, bytes)?;
        let value: F::Value = serde_json::from_value(value)?;
        let unsound = || io::Error::new(io::ErrorKind::InvalidData, "impossible value");
        Some(value)
            .filter(|value| F::is_sound(context, value))
            .ok_or_else(unsound)
    }

    fn ask(&mut self, format: &str, context: &impl Serialize, bytes: &[u8]) -> io::Result<Value> {
        let request = Request {
            format: format.to_owned(),
            context: serde_json::to_value(context)?,
            bytes: Hex(bytes).to_string(),
        };
        // A decoder that was killed while it waited has lost no message.
        let waiting = self.worker.take();
        let worker = match waiting.filter(|worker| worker.send(&request).is_ok()) {
            Some(worker) => worker,
            None => {
                let worker = (self.start)()?;
                worker.send(&request)?;
                worker
            }
        };
        let worker = self.worker.insert(worker);
        let deadline = Instant::now() + self.limit;
        while Instant::now() < deadline {
            match worker.receive()? {
                Some(Message::Decoded(value)) => return Ok(value),
                Some(Message::Confined(lacks)) => {
                    if !self.is_introduced {
                        introduce(&lacks);
                    }
                    self.is_introduced = true;
                }
                Some(Message::Unconfined(why)) => {
                    if !self.is_introduced {
                        log::error!("{UNCONFINED}: {}", printable(&why));
                    }
                    self.is_introduced = true;
                    return Err(io::Error::other(UNCONFINED));
                }
                None => worker::wait(&[&*worker], deadline),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Ends the decoder: an answer that comes late must not be taken for the next one. One that was
    /// silent is replaced at once: other formats need not wait for its message.
    fn fail(&mut self, format: &'static str, error: &io::Error) {
        if let Some(worker) = self.worker.take() {
            worker.end();
        }
        let is_first = !self.troubles.contains_key(format);
        let trouble = self.troubles.entry(format).or_default();
        if error.kind() == io::ErrorKind::TimedOut {
            trouble.since.get_or_insert_with(Instant::now);
            trouble.silent += 1;
        } else {
            trouble.pause = Some(Instant::now() + PAUSE);
        }
        let why = errno_text(error);
        match is_first {
            true => log::warn!("decoder: {format}: {why}: a message from the network is lost"),
            false => log::debug!("decoder: {format}: {why}"),
        }
    }
}

const UNCONFINED: &str = "messages of other hosts (DHCP, ARP, SA) are not decoded: the decoder cannot drop its capabilities";

/// Logs what cannot be used here. No warning: it is the same in each of the checks of an old kernel.
fn introduce(lacks: &[String]) {
    match lacks {
        [] => log::debug!("decoder: confined"),
        lacks => log::info!("decoder: {}", works_without(lacks)),
    }
}

fn works_without(lacks: &[String]) -> String {
    let lacks = printable(&lacks.join(" and "));
    format!("works without {lacks} (not in this kernel, or forbidden)")
}

/// Whether a text of the decoder can be printed and stored as one line.
pub fn is_line(text: &str) -> bool {
    text.len() <= LINE && text.chars().all(kernel_cmdline::is_plain)
}

/// Longest text of the decoder, in bytes: that of a message of DHCP in hexadecimal.
pub const LINE: usize = 16384;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace;
    use nix::sys::socket::MsgFlags;
    use std::os::fd::{AsFd, OwnedFd};

    /// The number of bytes, of which the program believes at most `context`.
    struct Size;

    impl Format for Size {
        const NAME: &'static str = "size";
        type Context = usize;
        type Value = usize;

        fn decode(_: &usize, bytes: &[u8]) -> usize {
            bytes.len()
        }

        fn is_sound(most: &usize, size: &usize) -> bool {
            size <= most
        }
    }

    /// A decoder whose answers are the return values of `answer`.
    fn worker(answer: fn(Request) -> Option<Message>) -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        let serve = move |far: OwnedFd| -> io::Result<()> {
            let lacks = vec!["landlock".to_owned()];
            worker::send_to(far.as_fd(), &Message::Confined(lacks), MsgFlags::empty())?;
            loop {
                let request = worker::receive_from(far.as_fd(), MsgFlags::empty())?;
                if let Some(message) = answer(request) {
                    worker::send_to(far.as_fd(), &message, MsgFlags::empty())?;
                }
            }
        };
        std::thread::spawn(move || serve(far));
        Ok(worker)
    }

    fn honest() -> io::Result<Worker> {
        worker(|request| {
            let bytes = unhex(&request.bytes)?;
            let (name, decode) = entry::<Size>();
            assert_eq!(request.format, name);
            decode(request.context, &bytes).ok().map(Message::Decoded)
        })
    }

    fn ended() -> io::Result<Worker> {
        Worker::pair().map(|(worker, _)| worker)
    }

    fn liar() -> io::Result<Worker> {
        worker(|_| Some(Message::Decoded(4096.into())))
    }

    fn endless() -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        let none = Message::Confined(Vec::new());
        let serve = move |far: OwnedFd| -> io::Result<()> {
            loop {
                worker::send_to(far.as_fd(), &none, MsgFlags::empty())?;
            }
        };
        std::thread::spawn(move || serve(far));
        Ok(worker)
    }

    fn confused() -> io::Result<Worker> {
        worker(|_| Some(Message::Decoded("ten".into())))
    }

    fn unconfined() -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        let why = Message::Unconfined("capset: Operation not permitted".to_owned());
        std::thread::spawn(move || {
            worker::send_to(far.as_fd(), &why, MsgFlags::empty())?;
            worker::receive_from::<IgnoredAny>(far.as_fd(), MsgFlags::empty())
        });
        Ok(worker)
    }

    fn missing() -> io::Result<Worker> {
        Err(io::ErrorKind::NotFound.into())
    }

    #[test]
    fn a_message_becomes_a_value() {
        let mut decoder = Decoder::new(honest, LIMIT);
        assert_eq!(decoder.decode::<Size>(&10, b"abc"), Some(3));
        assert_eq!(decoder.decode::<Size>(&10, b"abcdefghij"), Some(10));
        assert!(decoder.is_introduced && decoder.troubles.is_empty());
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        assert_eq!(
            works_without(&["landlock".to_owned(), "close\u{1b}".to_owned()]),
            "works without landlock and close\\x1b (not in this kernel, or forbidden)"
        );
    }

    #[test]
    fn a_prepared_decoder_gets_the_first_message() {
        let mut decoder = Decoder::new(honest, LIMIT);
        decoder.prepare();
        decoder.start = missing;
        decoder.prepare();
        assert_eq!(decoder.decode::<Size>(&10, b"abc"), Some(3));
        let mut decoder = Decoder::new(missing, LIMIT);
        decoder.prepare();
        decoder.start = honest;
        decoder.prepare();
        assert!(decoder.worker.is_none() && decoder.troubles.is_empty());
    }

    #[test]
    fn a_decoder_that_ended_while_it_waited_costs_no_message() {
        let mut decoder = Decoder::new(ended, LIMIT);
        decoder.prepare();
        decoder.start = honest;
        assert_eq!(decoder.decode::<Size>(&10, b"abc"), Some(3));
        assert!(decoder.troubles.is_empty());
    }

    #[test]
    fn a_decoder_that_fails_is_ended_and_another_one_starts_a_second_later() {
        for start in [ended, liar, confused, unconfined, missing] {
            let mut decoder = Decoder::new(start, LIMIT);
            let began = Instant::now();
            assert_eq!(decoder.decode::<Size>(&10, b"abc"), None);
            assert!(decoder.worker.is_none());
            let trouble = decoder.troubles.get_mut("size").unwrap();
            let pause = trouble.pause.as_mut().unwrap();
            assert!(*pause >= began + PAUSE);
            // On a busy machine what follows may take longer.
            *pause += REST;
            decoder.start = honest;
            assert_eq!(decoder.decode::<Size>(&10, b"abc"), None);
            // The pause is that of the format.
            assert!(!decoder.troubles.contains_key("other"));
            decoder.start = picky;
            assert_eq!(decoder.decode::<Other>(&(), b"abc"), Some(3));
            assert_eq!(decoder.decode::<Size>(&10, b"abc"), None);
            (decoder.start, decoder.worker) = (honest, None);
            decoder.troubles.get_mut("size").unwrap().pause = Some(Instant::now());
            assert_eq!(decoder.decode::<Size>(&10, b"abc"), Some(3));
        }
    }

    /// Another format.
    struct Other;

    impl Format for Other {
        const NAME: &'static str = "other";
        type Context = ();
        type Value = usize;

        fn decode((): &(), bytes: &[u8]) -> usize {
            bytes.len()
        }

        fn is_sound((): &(), _: &usize) -> bool {
            true
        }
    }

    /// Says nothing about the messages of [`Size`].
    fn picky() -> io::Result<Worker> {
        worker(|request| (request.format == "other").then(|| Message::Decoded(3.into())))
    }

    #[test]
    fn two_silent_decoders_give_their_format_a_rest_and_no_other() {
        let short = Duration::from_millis(20);
        for start in [picky, endless] {
            let mut decoder = Decoder::new(start, short);
            let began = Instant::now();
            for _ in 0..100 {
                assert_eq!(decoder.decode::<Size>(&10, b"abc"), None);
            }
            // Each of the two decoders is given its limit, once.
            assert_eq!(decoder.troubles["size"].silent, TRIES);
            let took = began.elapsed();
            assert!(took >= 2 * short, "{took:?}");
            let most = 50 * short;
            assert!(took < most || took < most * pace::now(), "{took:?}");
            assert!(decoder.troubles["size"].pause.is_none(), "replaced at once");
            decoder.start = picky;
            decoder.limit = LIMIT;
            assert_eq!(decoder.decode::<Other>(&(), b"abc"), Some(3));
            // After the rest the format has another two.
            decoder.start = honest;
            decoder.worker = None;
            assert_eq!(decoder.decode::<Size>(&10, b"abc"), None);
            let trouble = decoder.troubles.get_mut("size").unwrap();
            trouble.since = trouble.since.map(|since| since - REST);
            assert_eq!(decoder.decode::<Size>(&10, b"abc"), Some(3));
        }
    }
}
