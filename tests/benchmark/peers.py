# SPDX-License-Identifier: MIT OR Apache-2.0
"""ibboot compared with dracut's own network modules and with two scripts: the same kernel, fabric,
command line, servers and observer. The boots of all programs follow each other, and then again.

Times are those of the guest's kernel log, whose clock counts instructions (machine.argv_of).
Compared are the time of the interface; the time of the address (for ibboot that of its verdict),
also from the start of systemd; the time from the start of the subnet manager, from the
ACTIVE port and from carrier to the address; and the time of the mount of a root file system over
NFS. The table also has ibboot's "verified" message, which comes later than the address.
"""

import re
from dataclasses import dataclass
from statistics import median

from bootcase.boot import boot
from bootcase.case import Case
from bootcase.debian import RELEASES
from bootcase.images import Flavour

from .machine import PROJECT
from .table import MILLISECONDS, SECONDS, TIMES, Unmeasured, compare, say

FOLDER = PROJECT / "qemu" / "bench-cases" / "peers"
PEERS = ("network-manager", "systemd-networkd", "network-legacy")
OURS = "ibboot"
# address.sh before dracut's cmdline hooks, and in dracut's pre-trigger hook.
SCRIPTS = ("early-script", "floor-script")
# Where nothing is requested: an image without ibboot's dracut module, one with the drivers alone that the
# module adds, and one with the module. The time includes the deletion of all files of the image.
WITHOUT = "without ibboot"
DRIVERS_ALONE = "drivers alone"
NOTHING = (WITHOUT, DRIVERS_ALONE, OURS)
REPETITIONS = 5
# For images without ibboot: the drivers that its module would add.
DRIVERS = "mlx4_ib mlx5_ib ib_ipoib ib_umad ib_uverbs rdma_ucm"
CMDLINE = "rd.neednet=1 rd.driver.post=ib_ipoib,ib_umad,rdma_ucm printk.devkmsg=on log_buf_len=4M"
STATIC = f"{CMDLINE} ip=10.0.0.1:::255.255.255.0::ib0:none"
TIME_LIMIT = 600.0
# Seconds: well after the first request of each program.
LATE = 45
# From systemd's start to a verified link: in times of what the other program takes to an address.
START_BUDGETS = {"systemd-networkd": 0.65, "early-script": 1.0, "floor-script": 1.0}
# Seconds from carrier to a verified link.
CARRIER_BUDGET = 0.020
THERE = ("kernel start -> ib0 is there", None, "there")
SET = ("kernel start -> address", None, "address")
USABLE = (
    ("kernel start -> address, of ibboot verified", None, "usable"),
    ("systemd's start -> address, of ibboot verified", "systemd", "usable"),
    ("HCA is there -> address, of ibboot verified", "hca", "usable"),
)
ADDRESS = (
    ("subnet manager's start -> address", "manager", "address"),
    ("port ACTIVE -> address", "active", "address"),
    ("carrier -> address", "carrier", "address"),
)
ROOT = (
    ("kernel start -> root mounted", None, "mounted"),
    ("systemd's start -> root mounted", "systemd", "mounted"),
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
    others: tuple = PEERS
    fabric: str = ""


MODES = {
    "on-time": Mode(
        "subnet manager on time", STATIC, (THERE, SET, *USABLE, *ADDRESS), others=(*SCRIPTS, *PEERS)
    ),
    # Eight near HCAs, one of which has a subnet manager; the other eight are the far ends.
    "hcas": Mode("8 HCAs", STATIC, (THERE, SET, *USABLE, *ADDRESS), others=(*SCRIPTS, *PEERS), fabric="hcas=16"),
    "late": Mode(f"subnet manager {LATE} s after kernel start", f"{STATIC} ibboot-bench.sm={LATE}", ADDRESS),
    # One address for every client: the observer waits for the same one. network-legacy's client,
    # Debian's dhclient, does not support InfiniBand and ends at once: "Unsupported device type 32".
    "dhcp": Mode("DHCP", f"{CMDLINE} ip=ib0:dhcp ibboot-bench.dhcp", (SET, *USABLE, *ADDRESS)),
    # dracut 059 mounts nothing after systemd-networkd, and after NetworkManager it tries before
    # rd.driver.post=.
    "root": Mode("NFS over IPoIB, kernel 6.12", f"{STATIC} root=nfs:10.0.0.2:/ ibboot-bench.root", ROOT, "nfs", "6.12"),
}
MARKS = {
    "hca": re.compile(r"boot-test: the fabric is there"),
    "systemd": re.compile(r"systemd\[1\]: systemd .* running in system mode"),
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


def drivers_of_module():
    """The drivers that ibboot's dracut module adds by default, as one text."""
    text = (PROJECT / "dracut-module/50ibboot/module-setup.sh").read_text()
    return re.search(r'^ibboot_default_drivers="(.*)"$', text, re.MULTILINE)[1]


@dataclass(frozen=True)
class Network(Case):
    """A case whose image has another program in place of ibboot. For a root file system over NFS
    all images have dracut's nfs module, and ibboot's image has network-legacy: the nfs module
    requires a module that manages networks."""

    peer: str = OURS

    def flavour(self):
        if self.peer == OURS:
            return Flavour(storage=self.storage)
        if self.peer in SCRIPTS:
            return Flavour(ibboot=False, drivers=DRIVERS, script=self.peer)
        if self.peer == WITHOUT:
            return Flavour(ibboot=False)
        if self.peer == DRIVERS_ALONE:
            return Flavour(ibboot=False, drivers=drivers_of_module())
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
        fabric=MODES[mode].fabric,
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


def measure(table, release, mode, repetitions=REPETITIONS):
    """Compare the programs."""
    what = MODES[mode]
    peers = (OURS, *what.others)
    runs, why = {peer: [] for peer in peers}, {}
    for _ in range(repetitions):
        for peer in peers:
            seen, reason = run(release, peer, mode)
            seen["usable"] = seen.get("verified" if peer == OURS else "address")
            runs[peer].append({None: 0.0, **{mark: at for mark, at in seen.items() if at is not None}})
            why |= {peer: reason} if reason else {}

    def between(peer, start, end):
        return [marks[end] - marks[start] for marks in runs[peer] if start in marks and end in marks]

    for name, start, end in what.intervals:
        took = {peer: between(peer, start, end) for peer in peers}
        compare(table, f"{what.title}: {name}", SECONDS, OURS, took, why)
    if took := between(OURS, "carrier", "verified"):
        name = f"{what.title}: carrier -> verified: {OURS}"
        table.add_runs(name, MILLISECONDS, took)
        table.add(f"{name}, median", MILLISECONDS, median(took), CARRIER_BUDGET)
    if USABLE[1] in what.intervals:
        starts = {peer: between(peer, "systemd", "usable") for peer in peers}
        for peer, budget in START_BUDGETS.items():
            if starts.get(peer):
                ratio = median(starts[OURS]) / median(starts[peer])
                table.add(f"{what.title}: {USABLE[1][0]}: {OURS}, in times of {peer}", TIMES, ratio, budget)


def initramfs_time(release, peer):
    """Seconds from the start of systemd in the initramfs to its start in the real root, of a boot
    that requests nothing."""
    label = f"bench-nothing-{peer.replace(' ', '-')}"
    case = Network(name=label, folder=FOLDER / "nothing", summary="nothing is requested", cmdline="", ends="root", peer=peer)
    done = boot(case, release, label)
    starts = [when for when, text in done.kmsg if MARKS["systemd"].search(text)]
    if len(starts) != 2:
        raise Unmeasured(f"{label}: systemd started {len(starts)} times, expected 2: {done.folder / 'console.log'}")
    say(f"{label}: {starts[1] - starts[0]:.3f} s")
    return starts[1] - starts[0]


def nothing(table, release, repetitions=2 * REPETITIONS):
    """What ibboot's module costs a boot that requests nothing."""
    took = {peer: [] for peer in NOTHING}
    for _ in range(repetitions):
        for peer in NOTHING:
            took[peer].append(initramfs_time(release, peer))
    for peer in NOTHING:
        table.add_runs(f"nothing requested: duration of the initramfs: {peer}", SECONDS, took[peer])
