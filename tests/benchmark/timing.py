# SPDX-License-Identifier: MIT OR Apache-2.0
"""Processes, one by one: wall clock, user time, and peak memory."""

import fcntl
import os
import re
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .table import Unmeasured

RUNS = 15
GIVE_UP_SECONDS = 10


@dataclass(frozen=True)
class Cost:
    """Seconds over all runs: the medians of wall clock time, processor time and user time, and the
    fastest wall clock time. Other processes of a busy machine disturb processor time least."""

    wall: float
    fastest: float
    cpu: float
    user: float


def run_once(argv):
    """(wall, processor, user, exit code) of one process; its output is discarded."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, {}, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_utime, os.waitstatus_to_exitcode(status)


def cost(argv, expected_exit, runs=RUNS):
    """The medians of `runs` runs, after one run that fills the caches."""
    argv = [str(word) for word in argv]
    results = [run_once(argv) for _ in range(runs + 1)]
    if wrong := [result[3] for result in results if result[3] != expected_exit]:
        raise Unmeasured(f"{' '.join(argv)}: exit {wrong[0]}, expected {expected_exit}")
    walls, cpus, users, _ = zip(*results[1:])
    return Cost(statistics.median(walls), min(walls), statistics.median(cpus), statistics.median(users))


def peak_memory(argv):
    """VmHWM in bytes of a program that prints at its end: a full pipe stops the program there, so
    that its status can be read. (wait4's ru_maxrss keeps the size of this process across exec,
    which may be larger.)"""
    argv = [str(word) for word in argv]
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as reader, os.fdopen(writer, "wb", buffering=0) as writer:
        writer.write(bytes(fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, os.sysconf("SC_PAGE_SIZE"))))
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL)
        writer.close()
        deadline = time.monotonic() + GIVE_UP_SECONDS
        status = Path(f"/proc/{process.pid}/status")
        # The program sleeps only while writing: its files are in the page cache.
        asleep = 0
        while asleep < 10:
            state = re.search(r"^State:\s+(\w)", status.read_text(), re.M).group(1)
            asleep = asleep + 1 if state == "S" else 0
            if state == "Z" or time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise Unmeasured(f"{' '.join(argv)}: not seen writing to a full pipe, but in state {state}")
            time.sleep(0.001)
        peak = int(re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.M).group(1)) * 1024
        reader.read()
        process.wait()
    return peak
