# SPDX-License-Identifier: MIT OR Apache-2.0
"""ibboot beside dracut's own network modules: the same kernel, fabric, command line, DHCP server and observer, one
after the other.

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
from .table import MILLISECONDS, SECONDS, Unmeasured, compare, say

FOLDER = PROJECT / "qemu" / "bench-cases" / "peers"
PEERS = ("network-manager", "systemd-networkd", "network-legacy")
OURS = "ibboot"
# For images without ibboot: what its module would have brought.
DRIVERS = "mlx4_ib mlx5_ib ib_ipoib ib_umad ib_uverbs rdma_ucm"
CMDLINE = "rd.neednet=1 rd.driver.post=ib_ipoib,ib_umad,rdma_ucm printk.devkmsg=on log_buf_len=4M"
STATIC = f"{CMDLINE} ip=10.0.0.1:::255.255.255.0::ib0:none"
TIME_LIMIT = 600.0
# Well after all of them have asked for the first time.
LATE_SECONDS = 45
MODES = {
    "on-time": ("subnet manager on time", STATIC),
    "late": (f"subnet manager {LATE_SECONDS} s after kernel start", f"{STATIC} ibboot-bench.sm={LATE_SECONDS}"),
    # One address for whoever asks: the observer waits for the same one.
    "dhcp": ("DHCP", f"{CMDLINE} ip=ib0:dhcp ibboot-bench.dhcp"),
}
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


def run(release, peer, mode):
    """Seconds since kernel start of each mark; those that did not happen are left out."""
    label = f"bench-{peer}-{mode}"
    case = Network(
        name=label,
        folder=FOLDER,
        summary="an address on IPoIB",
        cmdline=MODES[mode][1],
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
    # One that never goes on has no address either.
    if not done.kmsg and (peer == OURS or not done.timed_out):
        raise Unmeasured(f"{label}: no kernel log came out: {done.folder / 'console.log'}")
    return seen


def measure(table, release, mode):
    """Four boots."""
    seen = {peer: run(release, peer, mode) for peer in (OURS, *PEERS)}
    when = MODES[mode][0]

    def between(peer, start, end):
        marks = seen[peer]
        return marks[end] - marks[start] if start in marks and end in marks else None

    if mode == "on-time":
        there = {peer: marks.get("there") for peer, marks in seen.items()}
        compare(table, "kernel start -> ib0 is there", SECONDS, OURS, there)
    for name, start in INTERVALS:
        took = {peer: between(peer, start, "address") for peer in seen}
        compare(table, f"{when}: {name} -> address", SECONDS, OURS, took)
    if (took := between(OURS, "carrier", "verified")) is not None:
        table.add(f"{when}: carrier -> verified: {OURS}", MILLISECONDS, took)
