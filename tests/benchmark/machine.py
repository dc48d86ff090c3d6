# SPDX-License-Identifier: MIT OR Apache-2.0
"""The machine on which it was measured, and whether it had time for us."""

import hashlib
import os
import platform
import re
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
# Below this share of the processors in use, a run is not disturbed by its neighbours.
BUSY_SHARE = 0.5


def out(argv):
    """What a program says in its first line; nothing when it cannot be run."""
    try:
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip().partition("\n")[0]


def processor():
    """The processor's name."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found.group(1) if found else platform.machine()


def commit():
    """The commit, and whether the work tree is another."""
    name = out(["git", "rev-parse", "--short=12", "HEAD"]) or "unknown"
    changed = out(["git", "status", "--porcelain", "--untracked-files=no"])
    return f"{name} with changes" if changed else name


def origin():
    """Of what the program was built: a program from elsewhere is not this work tree's."""
    if os.environ.get("IBBOOT"):
        return f"commit not known (IBBOOT names it), tests of {commit()}"
    return f"commit {commit()}"


def emulated():
    """Is the guest's processor emulated? The harness' own rule."""
    return os.environ.get("IBBOOT_KVM") != "1"


def doubt_in_guest():
    """Why a time in the guest may be over its budget for no fault of ours."""
    return "emulated" if emulated() else ""


def facts(binary):
    """Lines about where and what was measured."""
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()[:12]
    accelerator = "KVM" if not emulated() else "TCG (emulated: everything in the guest is many times slower)"
    return [
        f"machine: {processor()}, {os.cpu_count()} processors, Linux {platform.release()}",
        f"guest: {out(['qemu-system-x86_64', '--version']) or 'no QEMU'}, {accelerator}",
        f"build: {out([str(binary), '--version'])}, {origin()}, {binary}, SHA-256 {digest}",
    ]


def load(when):
    """A line about the load, with a warning where others take the processors."""
    one = os.getloadavg()[0]
    line = f"load {when}: {one:.2f} on {os.cpu_count()} processors"
    if one > BUSY_SHARE * os.cpu_count():
        line += " - HIGH: others were running, times are upper bounds"
    return line
