# SPDX-License-Identifier: MIT OR Apache-2.0
"""`plan` and `check` on machines of 1, 64 and 1024 ports, and their cost without a request, on the
host."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from . import tree
from .machine import PROJECT
from .table import CALLS, MEBIBYTES, MIB, MILLISECONDS, TIMES, Unmeasured
from .timing import RUNS, cost, peak_memory

COUNTS = (1, 64, 1024)
BUDGET_PORTS = 64
BUDGET = 20e-3
NOT_ASKED_BUDGET = 5e-3
# System calls of a check of a saved tree: those of the program and of the machine, and those of a
# port with its device and its interface: 25 files at 4 calls, and the rest links and a directory.
CALLS_OF_CHECK = 130
CALLS_OF_PORT = 135
# The budget of `up`, which reads the same files.
MEMORY_BUDGET = 4 * MIB
# More than twice the slope of 1 to 64 ports does not count as linear.
LINEAR = 2.0
NOTHING_ASKED = 2


def sees_all(binary, root, ports):
    """Verify the tree; otherwise the time of an error would be measured."""
    done = subprocess.run([binary, "--root", root, "check"], capture_output=True, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2] or done.stderr.strip()
    if not last.startswith(f"ok: {ports} of {ports} links verified"):
        raise Unmeasured(f"check of {ports} ports: {last}")


def doubt(found, budget):
    """A time over the budget by the clock but not by the processor includes waiting for other
    processes."""
    return "loaded" if found.wall > budget >= found.cpu else ""


def spelled(found, start):
    """A cost as text, compared with a process that does nothing."""
    return (
        f"median of {RUNS}: wall {found.wall * 1e3:.2f} ms, processor {found.cpu * 1e3:.2f} ms, user {found.user * 1e3:.2f} ms;"
        f" fastest {found.fastest * 1e3:.2f} ms, {found.fastest / start.fastest:.1f} times the fastest that does nothing"
    )


def system_calls(command):
    """The number of system calls of a command and its children, as strace(1) counts them."""
    with tempfile.NamedTemporaryFile(prefix="calls-") as counts:
        subprocess.run(["strace", "-f", "-c", "-o", counts.name, *command], capture_output=True, check=False)
        # The last line: 100.00, seconds, microseconds per call, calls, errors, total.
        *_, total = Path(counts.name).read_text().splitlines() or [""]
    words = total.split()
    if words[-1:] != ["total"]:
        raise Unmeasured(f"strace -c printed {total!r}")
    return int(words[3])


def count_calls(table, binary, root, ports, start):
    """The line for the system calls of one look at a saved tree, where each word is a file, with those
    of a process that does nothing."""
    name = f"check, {ports} port{'s' if ports > 1 else ''}, system calls"
    if shutil.which("strace") is None:
        table.missing(name, "no strace", counts=False)
        return
    calls = system_calls([binary, "--root", root, "check"])
    table.add(name, CALLS, calls, CALLS_OF_CHECK + ports * CALLS_OF_PORT)
    table.note(f"{name}: {calls}, {calls - start} more than a process that does nothing, {(calls - start) / ports:.0f} per port")


def measure(table, binary, modules):
    """Lines for each command and number of ports; `modules` is the folder of a real kernel's module
    indexes."""
    start = cost([binary, "--version"], 0)
    table.add("a process that does nothing (--version)", MILLISECONDS, start.wall)
    costs = {"plan": {}, "check": {}}
    nothing = system_calls([binary, "--version"]) if shutil.which("strace") else 0
    with tempfile.TemporaryDirectory(prefix="bench-", dir=PROJECT / "target") as folder:
        for ports in COUNTS:
            root = Path(folder) / str(ports)
            tree.make(root, ports, modules)
            sees_all(binary, root, ports)
            count_calls(table, binary, root, ports, nothing)
            for command in costs:
                found = cost([binary, "--root", root, command], 0)
                costs[command][ports] = found.cpu
                name = f"{command}, {ports} port{'s' if ports > 1 else ''}"
                budget = BUDGET if ports == BUDGET_PORTS else None
                table.add(name, MILLISECONDS, found.wall, budget, doubt(found, BUDGET))
                peak = peak_memory([binary, "--root", root, command])
                if (command, ports) == ("plan", BUDGET_PORTS):
                    table.add(f"peak RSS of {name}, every module of a distribution", MEBIBYTES, peak, MEMORY_BUDGET)
                table.note(f"{name}: {spelled(found, start)}, peak RSS {peak / MIB:.2f} MiB")
    for command, spent in costs.items():
        few, some, many = COUNTS
        slope = (spent[many] - spent[some]) / (many - some)
        # The share of one port is the maximum cost of one more port, on the largest machine too.
        allowed = BUDGET / BUDGET_PORTS
        table.add(f"{command}, each port more (64 -> 1024), processor time", MILLISECONDS, slope, allowed)
        before = (spent[some] - spent[few]) / (some - few)
        table.add(f"{command}, slope 64 -> 1024 against 1 -> 64 (1 is linear)", TIMES, slope / before, LINEAR)
    table.note(f"plan and check: on generated ConnectX-6 trees in a warm page cache, with the module index of all of {modules.name}")


def not_asked(table, binary):
    """`plan --requested` on a command line that does not request ibboot, as called by dracut's cmdline
    hook."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=PROJECT / "target") as folder:
        root = Path(folder) / "root"
        tree.make(root, 1)
        (root / "proc" / "cmdline").write_text(f"{tree.CMDLINE_OF_OTHERS}\n")
        start = cost([binary, "--version"], 0)
        found = cost([binary, "--root", root, "plan", "--requested"], NOTHING_ASKED)
    table.add("nothing requested: plan --requested, host", MILLISECONDS, found.wall, NOT_ASKED_BUDGET, doubt(found, NOT_ASKED_BUDGET))
    table.note(f"plan --requested: {spelled(found, start)}")
