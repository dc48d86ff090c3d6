# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compare a boot with the same boot of an initramfs without ibboot: the lines of console and journal, and the state of
the real root at the end."""

import re

# Numbers of one boot: times, processes, sizes.
NUMBER = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|-?(?:0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?)")
LIFETIME = re.compile(r"(?:valid|preferred)_lft \S+|tentative")
JOURNAL = re.compile(r"^\[\s*[\d.]+\] \S+ ([^\s:\[]+)(?:\[\d+\])?: (.*)$")
KMSG_TIME = re.compile(r"^\[\s*\d+\.\d+\]\s?")
PROCESS = re.compile(r"^\d+ \((.*)\) ")
# The kernel starts its workers on demand.
WORKER = "kworker/"
# The thread of a queue has the queue's name once more while it works, and after its work (wq_worker_comm of
# kernel/workqueue.c).
AT_WORK = re.compile(r"^(.+)[+-]\1$")
SHOWN = 5


def faults(boot, other, uncompared=()):
    """The differences between a boot and `other`, the one without ibboot, except lines with a pattern of `uncompared`."""
    found = []
    by_chance = re.compile("|".join(uncompared) or r"(?!)")
    for name, lines in PARTS.items():
        mine, theirs = ({line for line in lines(each) if line and not by_chance.search(line)} for each in (boot, other))
        if name != "failed units" and not (mine and theirs):
            found.append(f"{name}: nothing to compare")
        found += [f"{name}: only with ibboot: {line}" for line in sorted(mine - theirs)[:SHOWN]]
        found += [f"{name}: only without ibboot: {line}" for line in sorted(theirs - mine)[:SHOWN]]
    return found


def console(boot):
    """The lines of the console."""
    return (NUMBER.sub("N", KMSG_TIME.sub("", line)).strip() for line in boot.console)


def journal(boot):
    """The messages of the journal, each with its program."""
    found = (JOURNAL.match(line) for line in lines_of(boot, "journal.txt"))
    return (NUMBER.sub("N", f"{match.group(1)}: {match.group(2)}") for match in found if match)


def processes(boot):
    """The names of the processes."""
    found = (PROCESS.match(line) for line in lines_of(boot, "processes.txt"))
    names = (match.group(1) for match in found if match and not match.group(1).startswith(WORKER))
    return (NUMBER.sub("N", AT_WORK.sub(r"\1", name)) for name in names)


def addresses(boot):
    """The addresses of the interfaces."""
    return (" ".join(LIFETIME.sub("", line).split()) for line in lines_of(boot, "addresses.txt"))


def lines_of(boot, name):
    """The lines of a file of the guest."""
    return (boot.text(f"out/{name}") or "").splitlines()


def numberless(name):
    """The function that yields the lines of a file without numbers."""
    return lambda boot: (NUMBER.sub("N", line) for line in lines_of(boot, name))


PARTS = {
    "console": console,
    "journal": journal,
    "processes": processes,
    "addresses": addresses,
    "mounts": numberless("mounts.txt"),
    "modules": numberless("modules.txt"),
    "/run": numberless("run.txt"),
    "state": numberless("system.state"),
    "failed units": numberless("failed.txt"),
}
