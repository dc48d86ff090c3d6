// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the file of an initramfs: archives of the format newc behind each other, the last of them
//! mostly compressed (dracut(8), Documentation/driver-api/early-userspace/buffer-format.rst). The
//! system's programs decompress, as for lsinitrd(1). Nothing is written, and only names and the
//! contents that are asked for are kept.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::cpio::{self, Files, invalid};
use crate::error::{Error, Result};

/// Most bytes that a decompressor may write: no image is that large.
const IMAGE: u64 = 8 << 30;
/// Most bytes of one decompressed module.
const MODULE: u64 = 64 << 20;
/// Bytes that tell the format.
const START: usize = 6;
/// Where the decompressors are.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// First bytes of a compressed file, and the program that decompresses it.
const FORMATS: [(&[u8], &[&str]); 8] = [
    (b"\x1f\x8b\x08", &["gzip", "-dc"]),
    (b"\xfd7zXZ\0", &["xz", "-dc"]),
    (b"\x28\xb5\x2f\xfd", &["zstd", "-dcq"]),
    // The kernel's own format, and that of lz4(1).
    (b"\x02\x21\x4c\x18", &["lz4", "-dcq"]),
    (b"\x04\x22\x4d\x18", &["lz4", "-dcq"]),
    (b"BZh", &["bzip2", "-dc"]),
    (LZMA, &["xz", "-dc", "--format=lzma"]),
    (b"\x89LZO", &["lzop", "-dc"]),
];

/// These bytes are in many files.
const LZMA: &[u8] = b"\x5d\0\0";

fn decompressor(start: &[u8]) -> Option<&'static [&'static str]> {
    let format = FORMATS.iter().find(|(magic, _)| start.starts_with(magic));
    format.map(|(_, command)| *command)
}

/// The files of the image at `path`; `keep` tells whose contents are kept.
pub fn read(path: &Path, keep: &dyn Fn(&str) -> bool) -> Result<Files> {
    let name = path.display();
    let cannot = |what: &str, e: &io::Error| match e.kind() {
        io::ErrorKind::InvalidData => Error::new(name.to_string(), what).found(e.to_string()),
        io::ErrorKind::UnexpectedEof => {
            Error::new(name.to_string(), what).found("the file is truncated")
        }
        _ => Error::io(name.to_string(), what, e),
    };
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|e| cannot("cannot be read", &e))?;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(Error::new(name.to_string(), "is not a regular file"));
    }
    archives(&file, keep).map_err(|e| cannot("is no initramfs that can be read", &e))
}

/// Reads one archive behind the other.
fn archives(mut file: &File, keep: &dyn Fn(&str) -> bool) -> io::Result<Files> {
    let mut files = Files::default();
    let mut at = 0;
    let mut has_any = false;
    loop {
        file.seek(SeekFrom::Start(at))?;
        let mut reader = BufReader::new(file);
        at += skip_zeros(&mut reader)?;
        let mut start = Vec::new();
        file.seek(SeekFrom::Start(at))?;
        file.take(START as u64).read_to_end(&mut start)?;
        file.seek(SeekFrom::Start(at))?;
        if start.is_empty() && has_any {
            return Ok(files);
        }
        if cpio::is_newc(&start) {
            at += files.add(BufReader::new(file), keep)?;
            has_any = true;
            continue;
        }
        let command = decompressor(&start).ok_or_else(|| unknown(&start, has_any))?;
        // The decompressor reads to the end of the file, through compressed archives that follow.
        let before = files.clone();
        let whole = decompressed(command, file, |reader| inner(reader, &mut files, keep));
        let whole = whole.and_then(|ended| ended);
        // bzip2 passes over what it does not know without a word.
        if whole.is_ok() && !command.contains(&"bzip2") {
            return Ok(files);
        }
        // The decompressor ends at an archive of another kind, or at zeros in front of one; the kernel reads
        // both.
        let Some(end) = next_archive(command, file, at)? else {
            return match whole {
                Ok(()) => Ok(files),
                Err(error) => without_padding(command, file, at, &before, keep)?.ok_or(error),
            };
        };
        files = before;
        file.seek(SeekFrom::Start(at))?;
        let input = file.take(end - at);
        let ended = decompressed(command, input, |reader| inner(reader, &mut files, keep))?;
        // Padding in front of that archive may be an error to the decompressor: what counts is that its
        // own archive is whole.
        if let Err(error) = ended {
            log::debug!("{error}");
        }
        at = end;
        has_any = true;
    }
}

/// The files of a compressed archive at the end of the file, with zeros behind it: boot loaders and unified
/// kernel images pad, and the kernel skips the zeros, which some decompressors take for a damaged archive.
/// None without such zeros, or if the archive itself is damaged.
fn without_padding(
    command: &[&str],
    mut file: &File,
    at: u64,
    before: &Files,
    keep: &dyn Fn(&str) -> bool,
) -> io::Result<Option<Files>> {
    /// Zeros that may be the end of the archive itself: of a check sum, or lz4's mark of the end. lz4 does
    /// not compress the last bytes, up to 12, which are zeros behind a cpio archive.
    const OWN: usize = 12;
    let padding = padding(file, at)?;
    for end in padding.take(OWN + 1) {
        let mut files = before.clone();
        file.seek(SeekFrom::Start(at))?;
        let input = file.take(end - at);
        let whole = decompressed(command, input, |reader| inner(reader, &mut files, keep));
        if matches!(whole, Ok(Ok(()))) {
            return Ok(Some(files));
        }
    }
    Ok(None)
}

/// The places of the zeros at the end of the file, behind `at`.
fn padding(mut file: &File, at: u64) -> io::Result<Range<u64>> {
    /// Bytes that are read at once.
    const PART: u64 = 1 << 16;
    let length = file.metadata()?.len();
    let mut end = length;
    while end > at {
        let start = end.saturating_sub(PART).max(at);
        let mut part = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(end - start).read_to_end(&mut part)?;
        if let Some(last) = part.iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1..length);
        }
        end = start;
    }
    Ok(end..length)
}

/// The place of the archive behind the compressed one at `at`. Compressors store what they cannot compress
/// as it is, with the headers and modules in it: what only looks like an archive there lies within the
/// compressed one, which is not whole up to that place.
fn next_archive(command: &[&str], mut file: &File, at: u64) -> io::Result<Option<u64>> {
    let places = places(file, at)?;
    let mut is_whole = |end: &u64| {
        let mut files = Files::default();
        let read = |reader: &mut dyn BufRead| inner(reader, &mut files, &|_| false);
        let input = file.seek(SeekFrom::Start(at)).map(|_| file.take(end - at));
        input.is_ok_and(|input| decompressed(command, input, read).is_ok())
    };
    // Mostly the compressor has stored no header as it is.
    if places.first().is_some_and(&mut is_whole) {
        return Ok(places.first().copied());
    }
    if !places.last().is_some_and(&mut is_whole) {
        return Ok(None);
    }
    let first = places.partition_point(|place| !is_whole(place));
    Ok(places.get(first).copied())
}

/// The places behind `at` that look like the start of an archive. The kernel reads one that is not compressed
/// only at a multiple of 4, and a compressed one anywhere (init/initramfs.c, unpack_to_rootfs); one of lzma is
/// looked for behind zeros only.
fn places(mut file: &File, at: u64) -> io::Result<Vec<u64>> {
    /// Bytes that are read at once, and how many of them are read again: a header may lie across the end.
    const PART: usize = 1 << 20;
    const AGAIN: usize = cpio::HEADER.next_multiple_of(4);
    /// Most places: one for each file of an image, and each may be a compressed file.
    const PLACES: usize = 1 << 21;
    let mut places = Vec::new();
    let mut part = Vec::with_capacity(PART);
    let mut start = at.next_multiple_of(4);
    loop {
        part.clear();
        file.seek(SeekFrom::Start(start))?;
        file.take(PART as u64).read_to_end(&mut part)?;
        for (place, before) in (1..=PART - AGAIN).zip(&part) {
            let bytes = part.get(place..).unwrap_or_default();
            let is_plain = place % 4 == 0 && cpio::begins_archive(bytes);
            let is_clear = *before == 0 || !bytes.starts_with(LZMA);
            if is_plain || is_clear && decompressor(bytes).is_some() {
                places.push(start + place as u64);
            }
        }
        if places.len() > PLACES {
            return Err(invalid("too many archives may be in it"));
        }
        if part.len() <= PART - AGAIN {
            return Ok(places);
        }
        start += (PART - AGAIN) as u64;
    }
}

fn unknown(start: &[u8], has_any: bool) -> io::Error {
    invalid(match start {
        [b'M', b'Z', ..] => {
            "a unified kernel image: extract its initramfs (objcopy -O binary --only-section=.initrd IMAGE FILE)"
        }
        [] => "the file is empty",
        _ if has_any => "an unknown format follows an archive",
        _ => "neither a cpio archive nor compressed by gzip, xz, zstd, lz4, bzip2 or lzop",
    })
}

/// The archives in a decompressed stream.
fn inner(
    reader: &mut dyn BufRead,
    files: &mut Files,
    keep: &dyn Fn(&str) -> bool,
) -> io::Result<()> {
    let mut has_any = false;
    loop {
        skip_zeros(reader)?;
        if reader.fill_buf()?.is_empty() && has_any {
            return Ok(());
        }
        files.add(&mut *reader, keep)?;
        has_any = true;
    }
}

/// Skips the padding in front of an archive.
fn skip_zeros(reader: &mut (impl BufRead + ?Sized)) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let zeros = buffer.iter().take_while(|byte| **byte == 0).count();
        let is_over = zeros < buffer.len() || buffer.is_empty();
        reader.consume(zeros);
        skipped += zeros as u64;
        if is_over {
            return Ok(skipped);
        }
    }
}

fn start(command: &[&str], input: Stdio) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => invalid(format!(
            "{program}, which decompresses it, is not installed"
        )),
        _ => e,
    })
}

/// Lets `use_it` read what the program makes of the input. The result in the result is how the program
/// ended.
fn decompressed(
    command: &[&str],
    mut from: impl Read + Send,
    use_it: impl FnOnce(&mut dyn BufRead) -> io::Result<()>,
) -> io::Result<io::Result<()>> {
    let mut child = start(command, Stdio::piped())?;
    let mut input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    std::thread::scope(|scope| {
        // The program writes while it reads.
        scope.spawn(move || io::copy(&mut from, &mut input));
        let used = use_it(&mut BufReader::new(output.take(IMAGE)));
        // Without a reader the program ends with its next write (SIGPIPE).
        let ended = ended(child, command);
        // A damaged file ends the stream early: the program knows why.
        match used {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => ended.and(Err(e)),
            Err(e) => Err(e),
            Ok(()) => Ok(ended),
        }
    })
}

/// Waits for the program; its first line about a failure is the error.
fn ended(mut child: Child, command: &[&str]) -> io::Result<()> {
    /// Of a line of an error.
    const WORDS: u64 = 400;
    let mut words = Vec::new();
    if let Some(errors) = child.stderr.take() {
        errors.take(WORDS).read_to_end(&mut words)?;
    }
    if child.wait()?.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&words);
    let line = words.lines().find(|line| !line.trim().is_empty());
    let program = command.first().copied().unwrap_or_default();
    Err(invalid(line.map_or_else(
        || format!("{program} failed"),
        |line| line.trim().to_owned(),
    )))
}

/// The bytes of a module, which may be compressed.
pub fn module(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let Some(command) = decompressor(bytes) else {
        return Ok(bytes.to_vec());
    };
    let mut child = start(command, Stdio::piped())?;
    let mut input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut plain = Vec::new();
    // The program writes while it reads.
    let read = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes));
        output.take(MODULE).read_to_end(&mut plain)
    });
    ended(child, command)?;
    read.map(|_| plain)
}
