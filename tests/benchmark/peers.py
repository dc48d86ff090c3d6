# SPDX-License-Identifier: MIT OR Apache-2.0
"""ibboot compared with dracut's own network modules, one after the other: the same kernel, fabric,
command line, servers and observer.

Times are those of the guest's kernel log, whose clock counts instructions (machine.argv_of).
Compared are the time of the interface; the time from the start of the subnet manager, from the
ACTIVE port and from carrier to the address; and the time of the mount of a root file system over
NFS. The table also has ibboot's "verified" message, which comes later than the address.
"""

import re
from dataclasses import dataclass

from bootcase.boot import boot
from bootcase.case import Case
from bootcase.debian import RELEASES
from bootcase.images import Flavour

from .machine import PROJECT
from .table import MILLISECONDS, SECONDS, Unmeasured, compare, say

FOLDER = PROJECT / "qemu" / "bench-cases" / "peers"
PEERS = ("network-manager", "systemd-networkd", "network-legacy")
OURS = "ibboot"
# For images without ibboot: the drivers that its module would add.
DRIVERS = "mlx4_ib mlx5_ib ib_ipoib ib_umad ib_uverbs rdma_ucm"
CMDLINE = "rd.neednet=1 rd.driver.post=ib_ipoib,ib_umad,rdma_ucm printk.devkmsg=on log_buf_len=4M"
STATIC = f"{CMDLINE} ip=10.0.0.1:::255.255.255.0::ib0:none"
TIME_LIMIT = 600.0
# Seconds: well after the first request of each program.
LATE = 45
THERE = ("kernel start -> ib0 is there", None, "there")
SET = ("kernel start -> address", None, "address")
ADDRESS = (
    ("subnet manager's start -> address", "manager", "address"),
    ("port ACTIVE -> address", "active", "address"),
    ("carrier -> address", "carrier", "address"),
)
ROOT = (
    ("kernel start -> root mounted", None, "mounted"),
    ("server ready -> root mounted", "start", "mounted"),
    ("server ready -> initramfs left", "start", "left"),
)


@dataclass(frozen=True)
class Mode:
    """A task for all programs, and the compared times."""

    title: str
    cmdline: str
    intervals: tuple
    storage: str | None = None
    kernel: str | None = None


MODES = {
    "on-time": Mode("subnet manager on time", STATIC, (THERE, SET, *ADDRESS)),
    "late": Mode(f"subnet manager {LATE} s after kernel start", f"{STATIC} ibboot-bench.sm={LATE}", ADDRESS),
    # One address for every client: the observer waits for the same one. network-legacy's client,
    # Debian's dhclient, does not support InfiniBand and ends at once: "Unsupported device type 32".
    "dhcp": Mode("DHCP", f"{CMDLINE} ip=ib0:dhcp ibboot-bench.dhcp", (SET, *ADDRESS)),
    # dracut 059 mounts nothing after systemd-networkd, and after NetworkManager it tries before
    # rd.driver.post=.
    "root": Mode("NFS over IPoIB, kernel 6.12", f"{STATIC} root=nfs:10.0.0.2:/ ibboot-bench.root", ROOT, "nfs", "6.12"),
}
MARKS = {
    "start": re.compile(r"boot-test: the boot goes on"),
    "there": re.compile(r"ibboot-bench: event .*\bib0: <"),
    "manager": re.compile(r"boot-test: the subnet manager starts"),
    "active": re.compile(r"softib0: port 1: ACTIVE"),
    "carrier": re.compile(r"ib0: link becomes ready|ibboot-bench: event .*\bib0: <[^>]*LOWER_UP"),
    "address": re.compile(r"ibboot-bench: event .*\bib0\b.* inet 10\.0\.0\.1/24"),
    "verified": re.compile(r"ibboot: ib0 \(softib0/1\): verified"),
    "mounted": re.compile(r"ibboot-bench: the root file system is mounted"),
    "left": re.compile(r"ibboot-bench: the initramfs is left"),
}
GIVEN_UP = r"ibboot-bench: given up: (.*)"
REFUSED = re.compile(r" (dhclient)\[\d+\]: (Unsupported device type .*)")


@dataclass(frozen=True)
class Network(Case):
    """A case whose image has another program in place of ibboot. For a root file system over NFS
    all images have dracut's nfs module, and ibboot's image has network-legacy: the nfs module
    requires a module that manages networks."""

    peer: str = OURS

    def flavour(self):
        if self.peer == OURS:
            return Flavour(storage=self.storage)
        return Flavour(ibboot=False, network=self.peer, drivers=DRIVERS, storage=self.storage)


def run(release, peer, mode):
    """Seconds since kernel start of each mark that happened, and why a mark did not happen, if that
    is known."""
    label = f"bench-{peer}-{mode}"
    release = RELEASES.get(MODES[mode].kernel, release)
    case = Network(
        name=label,
        folder=FOLDER,
        summary="an address on IPoIB",
        cmdline=MODES[mode].cmdline,
        ends="root",
        storage=MODES[mode].storage,
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
    # A boot that never continues has no address either.
    if not done.kmsg and (peer == OURS or not done.timed_out):
        raise Unmeasured(f"{label}: no kernel log came out: {done.folder / 'console.log'}")
    given_up = done.first(GIVEN_UP)
    why = [re.search(GIVEN_UP, given_up[1]).group(1)] if given_up else []
    if refused := REFUSED.search(done.text("out/journal.txt") or ""):
        why.append(": ".join(refused.groups()))
    return seen, "; ".join(why)


def measure(table, release, mode):
    """Compare the programs in four boots."""
    seen, why = {}, {}
    for peer in (OURS, *PEERS):
        seen[peer], reason = run(release, peer, mode)
        why |= {peer: reason} if reason else {}
    what = MODES[mode]

    def between(peer, start, end):
        marks = {None: 0.0, **seen[peer]}
        return marks[end] - marks[start] if start in marks and end in marks else None

    for name, start, end in what.intervals:
        took = {peer: between(peer, start, end) for peer in seen}
        compare(table, f"{what.title}: {name}", SECONDS, OURS, took, why)
    if (took := between(OURS, "carrier", "verified")) is not None:
        table.add(f"{what.title}: carrier -> verified: {OURS}", MILLISECONDS, took)
