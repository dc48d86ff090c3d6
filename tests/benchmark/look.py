# SPDX-License-Identifier: MIT OR Apache-2.0
"""The system calls of one look of `ibboot up` at a machine with one port, in a guest, as the strace(1) of this
machine counts them: those of `up` and of the process that reads the HCA."""

import re
import shutil
import subprocess
from pathlib import Path

from bootcase import fabric, images
from bootcase.boot import boot
from bootcase.case import Case

from .machine import PROJECT
from .table import CALLS, Unmeasured, say

FOLDER = PROJECT / "qemu" / "bench-cases" / "look"
PLACE = f"{fabric.PLACE}/strace"
BUDGET = 40
WAITING = "printk.devkmsg=on log_buf_len=4M ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.timeout=300"
CALL = re.compile(r"\d+ +(?!<\.\.\.|\+\+\+|---)(\w+)\((.*)")
# The request to the reader, and the dump of rtnetlink that each look has: RTM_GETLINK.
REQUEST = re.compile(r'^sendto\(\d+, "\{\\"depth\\"')
LINKS = re.compile(r"nlmsg_type=(RTM_GETLINK|0x12\b)")
# What is no part of a look: a wait and its end, a line of the log, a new socket (of ARP), a change.
OTHER = re.compile(r'^(epoll_p?wait|epoll_ctl|socket|write)\(|^open(at)?\(.*"/dev/kmsg"')
CHANGED = '"\\"Changed\\""'
LISTS = '"/sys/bus/pci/devices"'
OF_PORT = "a look after an event of the port"
OF_ADDRESS = "a look after an address was set"
WITH_LISTS = "a look that reads the lists of devices too"
BUDGETED = (OF_PORT, OF_ADDRESS)


def program(strace):
    """strace and its libraries as an archive behind the initramfs."""
    told = subprocess.run(["ldd", strace], capture_output=True, text=True, check=True).stdout
    found = [Path(word) for word in told.split() if word.startswith("/")]
    files = {f"{PLACE}/{'ld' if path.name.startswith('ld-') else f'lib/{path.name}'}": path for path in found}
    files[f"{PLACE}/strace"] = Path(strace)
    return images.newc({name: path.read_bytes() for name, path in files.items()})


def calls(text):
    """Each system call with its arguments, in the order in which the calls began."""
    return [f"{found[1]}({found[2]}" for line in text.splitlines() if (found := CALL.match(line))]


def looks(calls):
    """The calls of each look: all from the last wait, line or change to the next, with those that find out what
    woke `up` and what the look leaves to be done."""
    found, look = [], []
    for call in (*calls, "epoll_pwait("):
        # The end of a line of the log.
        if not look and call.startswith("close("):
            continue
        if not OTHER.match(call):
            look.append(call)
            continue
        if any(LINKS.search(one) for one in look):
            found.append(look)
        look = []
    return found


def kind(look):
    """What the look reads."""
    if any(LISTS in call for call in look):
        return WITH_LISTS
    return OF_PORT if any(REQUEST.match(call) for call in look) else OF_ADDRESS


def measure(table, release):
    """The looks from the event of a port that became ACTIVE to the verdict."""
    strace = shutil.which("strace")
    if strace is None:
        for row in BUDGETED:
            table.missing(row, "no strace", counts=False)
        return
    case = Case(name="look", folder=FOLDER, summary="system calls of a look", cmdline=WAITING, ends="root", fabric="")
    done = boot(case, release, "bench-look", more=program(strace))
    say(f"look: {done.seconds:.0f} s, kept in {done.folder.relative_to(PROJECT)}")
    all_calls = calls(done.text("out/up.strace") or "")
    active = next((n for n, call in enumerate(all_calls) if CHANGED in call), None)
    if active is None:
        raise Unmeasured("strace saw no event of the port: " + (done.text("out/strace.err") or "no output").strip())
    found = looks(all_calls[active:])
    for row in BUDGETED:
        counts = [len(look) for look in found if kind(look) == row]
        if not counts:
            raise Unmeasured(f"{row}: no such look among {len(found)}")
        table.add(f"{row}, system calls", CALLS, max(counts), BUDGET)
    longer = [len(look) for look in looks(all_calls) if kind(look) == WITH_LISTS]
    table.note(
        "system calls of a look: those of `up` and of the reader of the HCA, from the wake-up to the first change or line;"
        f" {WITH_LISTS}: {longer or 'none in this run'}"
    )
