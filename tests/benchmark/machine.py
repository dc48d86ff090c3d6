# SPDX-License-Identifier: MIT OR Apache-2.0
"""The measuring machine, and its load."""

import hashlib
import os
import platform
import re
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
# Below this share of busy processors, other processes do not disturb a run.
BUSY_SHARE = 0.5


def out(argv):
    """The first line of a program's output; empty if the program cannot run."""
    try:
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip().partition("\n")[0]


def processor():
    """The name of the processor."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found.group(1) if found else platform.machine()


def commit():
    """The commit, and whether the work tree differs from it."""
    name = out(["git", "rev-parse", "--short=12", "HEAD"]) or "unknown"
    changed = out(["git", "status", "--porcelain", "--untracked-files=no"])
    return f"{name} with changes" if changed else name


def origin():
    """The source of the program: this work tree or another place."""
    if os.environ.get("IBBOOT"):
        return f"commit not known (IBBOOT names it), tests of {commit()}"
    return f"commit {commit()}"


def emulated():
    """Whether the guest's processor is emulated, by the rule of the harness."""
    return os.environ.get("IBBOOT_KVM") != "1"


def doubt_in_guest():
    """Why a time in the guest may exceed its budget without a fault of ibboot."""
    return "emulated" if emulated() else ""


def facts(binary):
    """Lines about the machine and the measured program."""
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()[:12]
    accelerator = "KVM" if not emulated() else "TCG (emulated: everything in the guest is many times slower)"
    return [
        f"machine: {processor()}, {os.cpu_count()} processors, Linux {platform.release()}",
        f"guest: {out(['qemu-system-x86_64', '--version']) or 'no QEMU'}, {accelerator}",
        f"build: {out([str(binary), '--version'])}, {origin()}, {binary}, SHA-256 {digest}",
    ]


def load(when):
    """A line about the load, with a warning if other processes use the processors."""
    one = os.getloadavg()[0]
    line = f"load {when}: {one:.2f} on {os.cpu_count()} processors"
    if one > BUSY_SHARE * os.cpu_count():
        line += " - HIGH: others were running, times are upper bounds"
    return line
