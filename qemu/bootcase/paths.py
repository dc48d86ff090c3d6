# SPDX-License-Identifier: MIT OR Apache-2.0
"""Paths, and the cache that the image steps share."""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

QEMU_DIR = Path(__file__).resolve().parent.parent
PROJECT = QEMU_DIR.parent
CASES = QEMU_DIR / "cases"
GUEST = QEMU_DIR / "guest"
TARGET = PROJECT / "target" / "qemu"
CACHE = TARGET / "cache"
KEEP_UNUSED_SECONDS = 3600
# The largest artefact is 0.7 GB, and two jobs may build one each.
SPACE_EXPECTED = 2 * 10**9
# What is read of other programs' messages is English, and users of a guest reach the files of its root.
os.environ["LC_ALL"] = "C"
os.umask(0o022)
# The programs of `run`.
running = set()


class Failed(Exception):
    """A step before the boot failed; the text is one line for the user."""


def say(text):
    """Progress goes to stderr: stdout carries the verdicts."""
    print(f"qemu: {text}", file=sys.stderr, flush=True)


def run(argv, log=None, **kwargs):
    """Run a program to its end; a failure names it and quotes its last lines."""
    argv = [str(a) for a in argv]
    # In a group of its own: `end` also reaches what the program has started.
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        process_group=0,
        **kwargs,
    ) as program:
        running.add(program)
        try:
            output, _ = program.communicate()
        except BaseException:
            end(program)
            raise
        finally:
            running.discard(program)
    if log:
        log.write_text(output)
    if program.returncode != 0:
        tail = " | ".join(output.strip().splitlines()[-4:])
        where = f" (full log: {log})" if log else ""
        raise Failed(f"{Path(argv[0]).name}: exit {program.returncode}: {tail}{where}")
    return output


def end(program):
    """End a program of `run`, and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)


def end_all():
    """End the programs of `run`."""
    for program in list(running):
        end(program)


def digest(*parts):
    """A short hash of strings, files and whole folders: the inputs of a cached image."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            files = sorted(p for p in part.rglob("*") if p.is_file()) if part.is_dir() else [part]
            for file in files:
                total.update(f"{file.relative_to(part) if part.is_dir() else file.name}\0{file.stat().st_mode & 0o111}\0".encode())
                total.update(file.read_bytes())
        else:
            total.update(f"{part}\0".encode())
    return total.hexdigest()[:12]


@contextmanager
def locked(name):
    """Allow one builder at a time for one artefact, across processes."""
    locks = TARGET / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with open(locks / name, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def cached(name, key, build):
    """The folder NAME-KEY of the cache; `build(folder)` creates it if it does not exist."""
    final = CACHE / f"{name}-{key}"
    with locked(name):
        if final.is_dir():
            os.utime(final)
            return final
        free = shutil.disk_usage(CACHE.parent).free
        if free < SPACE_EXPECTED:
            raise Failed(
                f"{name}: {SPACE_EXPECTED / 1e9:.0f} GB of free space expected on the file system of {TARGET}, found {free / 1e9:.1f} GB"
            )
        say(f"building {name}")
        began = time.monotonic()
        work = CACHE / f"{name}.work"
        remove(work)
        work.mkdir(parents=True)
        build(work)
        work.rename(final)
        os.utime(final)
        for old in CACHE.glob(f"{name}-????????????"):
            if old != final and time.time() - old.stat().st_mtime > KEEP_UNUSED_SECONDS:
                remove(old)
        say(f"built {name} in {time.monotonic() - began:.0f} s")
    return final


def remove(folder):
    """Remove a folder of the cache, if it exists."""
    if folder.exists():
        shutil.rmtree(folder)
