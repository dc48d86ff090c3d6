# SPDX-License-Identifier: MIT OR Apache-2.0
"""ibboot beside dracut's own network modules: the same kernel, fabric, command line and observer, one after the other.

Times are the guest's: records of its kernel log. What is compared is when the interface is there, and how long after
the subnet manager's start, after the port became ACTIVE and after carrier the address is on it; ibboot's own word
("verified") comes later than the address and is shown too.
"""

import re
from dataclasses import dataclass

from bootcase.boot import boot
from bootcase.case import Case
from bootcase.images import Flavour

from .machine import PROJECT
from .table import MILLISECONDS, SECONDS, TIMES, Unmeasured, say

FOLDER = PROJECT / "qemu" / "bench-cases" / "peers"
PEERS = ("network-manager", "systemd-networkd", "network-legacy")
OURS = "ibboot"
# For images without ibboot: what its module would have brought.
DRIVERS = "mlx4_ib mlx5_ib ib_ipoib ib_umad ib_uverbs rdma_ucm"
CMDLINE = (
    "rd.neednet=1 rd.driver.post=ib_ipoib,ib_umad,rdma_ucm ip=10.0.0.1:::255.255.255.0::ib0:none"
    " printk.devkmsg=on log_buf_len=4M"
)
TIME_LIMIT = 420.0
# Well after all of them have asked for the first time.
LATE_SECONDS = 45
MARKS = {
    "there": re.compile(r"ibboot-bench: event .*\bib0: <"),
    "manager": re.compile(r"boot-test: the subnet manager starts"),
    "active": re.compile(r"softib0: port 1: ACTIVE"),
    "carrier": re.compile(r"ib0: link becomes ready|ibboot-bench: event .*\bib0: <[^>]*LOWER_UP"),
    "address": re.compile(r"ibboot-bench: event .*\bib0\b.* inet 10\.0\.0\.1/24"),
    "verified": re.compile(r"ibboot: ib0 \(softib0/1\): verified"),
}
INTERVALS = (("subnet manager's start", "manager"), ("port ACTIVE", "active"), ("carrier", "carrier"))


@dataclass(frozen=True)
class Network(Case):
    """A case whose image has another program in ibboot's place."""

    peer: str = OURS

    def flavour(self):
        if self.peer == OURS:
            return Flavour()
        return Flavour(ibboot=False, network=self.peer, drivers=DRIVERS)


def run(release, peer, late):
    """Seconds since kernel start of each mark; those that did not happen are left out."""
    label = f"bench-{peer}-{'late' if late else 'on-time'}"
    case = Network(
        name=label,
        folder=FOLDER,
        summary="an address on IPoIB",
        cmdline=CMDLINE + (f" ibboot-bench.sm={LATE_SECONDS}" if late else ""),
        ends="root",
        fabric="",
        time_limit=TIME_LIMIT,
        peer=peer,
    )
    done = boot(case, release, label)
    say(f"{label}: {done.seconds:.0f} s, kept in {done.folder.relative_to(PROJECT)}")
    seen = {}
    for name, pattern in MARKS.items():
        if found := done.first(pattern.pattern):
            seen[name] = found[0]
    if not done.kmsg:
        raise Unmeasured(f"{label}: no kernel log came out: {done.folder / 'console.log'}")
    return seen


def compare(table, what, unit, ours, theirs):
    """A line for ours, and for each of theirs with how many times as long it takes."""
    if ours is None:
        raise Unmeasured(f"{OURS}: {what}: did not happen")
    table.add(f"{what}: {OURS}", unit, ours)
    for peer, took in theirs.items():
        if took is None:
            table.missing(f"{what}: {peer}", "it never came to that", counts=False)
        else:
            table.add(f"{what}: {peer}", unit, took)
            table.add(f"{what}: {peer}, in times of {OURS}", TIMES, took / ours)


def measure(table, release):
    """Eight boots."""
    for late in (False, True):
        seen = {peer: run(release, peer, late) for peer in (OURS, *PEERS)}
        when = f"subnet manager {LATE_SECONDS} s after kernel start" if late else "subnet manager on time"

        def between(peer, start, end):
            marks = seen[peer]
            return marks[end] - marks[start] if start in marks and end in marks else None

        if not late:
            there = {peer: seen[peer].get("there") for peer in PEERS}
            compare(table, "kernel start -> ib0 is there", SECONDS, seen[OURS].get("there"), there)
        for name, start in INTERVALS:
            took = {peer: between(peer, start, "address") for peer in PEERS}
            compare(table, f"{when}: {name} -> address", SECONDS, between(OURS, start, "address"), took)
        if (took := between(OURS, "carrier", "verified")) is not None:
            table.add(f"{when}: carrier -> verified: {OURS}", MILLISECONDS, took)
