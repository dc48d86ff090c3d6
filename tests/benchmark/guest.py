# SPDX-License-Identifier: MIT OR Apache-2.0
"""One boot in QEMU, from qemu/bench-cases/up: memory, event latency, wake-ups, and the cost of the
hooks."""

import re
import statistics
from pathlib import Path

from bootcase.boot import boot
from bootcase.case import Action, Case

from . import machine
from .machine import PROJECT
from .table import MEBIBYTES, MIB, MILLISECONDS, TIMES, WAKE_UPS, Unmeasured, say

FOLDER = PROJECT / "qemu" / "bench-cases" / "up"
TIME_LIMIT = 480.0
MEMORY_BUDGET = 4 * MIB
LATENCY_BUDGET = 10e-3
NOT_ASKED_BUDGET = 5e-3
WAKE_UP_BUDGET = 20
WAKE_UP_SECONDS = 180
ACTIVE = re.compile(r"infiniband rxe0: set active")
VERIFIED = re.compile(r"ibboot: rxe0/1: verified")
ROUND = re.compile(r"ibboot-bench: round (\d+)$")
LOOPS = ("start", "requested", "hooks", "empty")
LOOP = re.compile(rf"ibboot-bench: ({'|'.join(LOOPS)}) (begins|ends)(?: after (\d+))?$")
# The kernel logs a warning at each query of a virtual card's speed. A large log buffer keeps these
# warnings from overwriting the measured lines.
CMDLINE = "log_buf_len=4M"


def run(release):
    """Boot, and let the guest's script pull and plug the cable of its first card."""
    rounds = int(re.search(r"^rounds=(\d+)$", (FOLDER / "root.sh").read_text(), re.M).group(1))
    actions = []
    for number in range(1, rounds + 1):
        actions.append(Action(when=re.compile(f"ibboot-bench: cable out {number};"), cable_out="net0"))
        actions.append(Action(when=re.compile(f"ibboot-bench: cable in {number};"), cable_in="net0"))
    case = Case(
        name="bench",
        folder=FOLDER,
        summary="what ibboot costs while it runs",
        cmdline=CMDLINE,
        ends="root",
        nics=2,
        cables_out=("net1",),
        time_limit=TIME_LIMIT,
        actions=tuple(actions),
        # The measured times are times on this host.
        counted=False,
    )
    done = boot(case, release, "bench")
    say(f"guest: {done.seconds:.0f} s, kept in {done.folder.relative_to(PROJECT)}")
    if done.timed_out:
        raise Unmeasured(f"the guest was still running after {TIME_LIMIT:.0f} s: {done.folder / 'console.log'}")
    if (code := (done.text("out/root.exit") or "").strip()) != "0":
        told = (done.text("out/root.txt") or "").strip().splitlines()
        raise Unmeasured(f"root.sh: exit {code or 'unknown'}: {told[-1] if told else 'nothing said'}")
    return done


def latency(table, done, start):
    """Seconds from the kernel's record that the port is ACTIVE to ibboot's record that the port is
    verified; `start` is the duration of a process that does nothing, in this guest."""
    found, active, in_rounds = [], None, False
    for when, text in done.kmsg:
        in_rounds = in_rounds or bool(ROUND.search(text))
        if ACTIVE.search(text):
            active = when
        elif VERIFIED.search(text) and active is not None:
            if in_rounds:
                found.append(when - active)
            active = None
    if not found:
        raise Unmeasured("no round in which a port became ACTIVE and was verified")
    median = statistics.median(found)
    table.add("port ACTIVE -> verified, median", MILLISECONDS, median, LATENCY_BUDGET, machine.doubt_in_guest())
    table.add("port ACTIVE -> verified, in starts of a process that does nothing", TIMES, median / start)
    table.note(
        f"port ACTIVE -> verified, {len(found)} cables plugged in: min {min(found) * 1e3:.2f} ms, median"
        f" {median * 1e3:.2f} ms, max {max(found) * 1e3:.2f} ms, from the kernel's record"
        " 'rxe0: set active' to ibboot's 'verified': event, a look at all of the machine, judgement, log line"
    )


def field(done, name, key):
    """A number of a saved /proc/PID/status."""
    found = re.search(rf"^{key}:\s+(\d+)", done.text(f"out/{name}") or "", re.M)
    if not found:
        raise Unmeasured(f"{name}: no {key}")
    return int(found.group(1))


def memory(table, done):
    """VmHWM of `up` at its end."""
    peak = field(done, "linger.after", "VmHWM") * 1024
    parts = ", ".join(f"{key} {field(done, 'linger.after', key) / 1024:.2f} MiB" for key in ("RssAnon", "RssFile"))
    table.add("peak RSS of up", MEBIBYTES, peak, MEMORY_BUDGET)
    table.note(f"peak RSS of up: VmHWM after a link made, verified, lost and found again, a second one waited for; now {parts}")


def wake_ups(table, done):
    """Voluntary context switches of two waits, scaled to the duration of the budget."""
    begins, ends = (done.first(f"ibboot-bench: wait {word}") for word in ("begins", "ends"))
    if not begins or not ends:
        raise Unmeasured("the kernel log has no wait")
    seconds = ends[0] - begins[0]
    for name, what in (("linger", "a cable that never comes"), ("absent", "a device that never comes")):
        key = "voluntary_ctxt_switches"
        count = field(done, f"{name}.after", key) - field(done, f"{name}.before", key)
        scaled = count * WAKE_UP_SECONDS / seconds
        table.add(f"{WAKE_UP_SECONDS} s of waiting for {what}", WAKE_UPS, scaled, WAKE_UP_BUDGET)
        table.note(f"waiting for {what}: {count} voluntary context switches in {seconds:.1f} s")


def loops(done):
    """Seconds of one turn of each loop of initramfs.sh."""
    began, each = {}, {}
    for when, text in done.kmsg:
        if found := LOOP.search(text):
            name, what, rounds = found.groups()
            if what == "begins":
                began[name] = when
            elif name in began:
                each[name] = (when - began[name]) / int(rounds)
    if missing := [name for name in LOOPS if name not in each]:
        raise Unmeasured(f"the kernel log has no loop {', '.join(missing)}")
    return each


def hooks(table, done, each, host_start):
    """The cost of ibboot's dracut hooks if the command line does not request ibboot."""
    spent = each["hooks"] - each["empty"]
    table.add("nothing requested: all hooks, guest", MILLISECONDS, spent, NOT_ASKED_BUDGET, machine.doubt_in_guest())
    table.add("nothing requested: all hooks, in starts of a process that does nothing", TIMES, spent / each["start"])
    paths = done.first(r"ibboot-bench: hooks are")[1].rpartition("are ")[2].split()
    names = ", ".join(str(Path(*Path(path).parts[-2:])) for path in paths)
    table.note(
        f"all hooks: {names}, sourced by the initramfs' shell {each['hooks'] * 1e3:.2f} ms, less {each['empty'] * 1e3:.2f} ms"
        f" for a hook that is empty; of it 'plan --requested' {each['requested'] * 1e3:.2f} ms, where a process that does nothing"
        f" takes {each['start'] * 1e3:.2f} ms: {each['requested'] / each['start']:.2f} times"
    )
    table.note(f"the guest takes {each['start'] / host_start:.0f} times as long as the host to start a process")


def measure(table, release, host_start, attempt):
    """All measurements that need a guest; `attempt` guards each line."""
    done = run(release)
    attempt("peak RSS of up", lambda: memory(table, done))
    attempt("wake-ups in a wait", lambda: wake_ups(table, done))
    each = loops(done)
    attempt("port ACTIVE -> verified", lambda: latency(table, done, each["start"]))
    attempt("nothing requested, guest", lambda: hooks(table, done, each, host_start))
