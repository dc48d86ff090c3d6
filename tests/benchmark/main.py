# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line of tests/bench."""

import argparse
import os
import sys
import time
import traceback

from bootcase import debian, images
from bootcase.cli import handle_signals
from bootcase.paths import TARGET, Failed

from . import binary, decoder, guest, image, look, machine, peers, ports, soak, storm
from .table import Table, Unmeasured, say
from .timing import cost


def attempt(table, what, measure):
    """Report a failed measurement as a line of the table and in the exit code. A fault of the
    benchmark is one too: it must not throw away what was measured before."""
    say(what)
    try:
        measure()
    except (Unmeasured, Failed) as error:
        table.missing(what, error)
    except Exception as error:
        say(traceback.format_exc().rstrip())
        table.missing(what, f"{type(error).__name__}: {error}")


def module_index(release):
    """The folder with modules.dep and the other indexes of a real kernel: all modules of a
    distribution."""
    folder = debian.kernel(release)
    return folder / "lib" / "modules" / debian.kernel_version(folder)


def main(argv=None):
    """Measure and print; exit 1 if a measurement failed, or if there was none. An exceeded budget does
    not change the exit code."""
    parser = argparse.ArgumentParser(
        prog="tests/bench", description="Print what this build costs, against the budgets. Time never fails the run."
    )
    parser.add_argument("--no-guest", action="store_true", help="leave out what needs QEMU; it counts as not measured")
    parser.add_argument(
        "--repetitions", type=int, metavar="N", default=peers.REPETITIONS, help="boots of each program (default %(default)s)"
    )
    modes = (*peers.MODES, "nothing")
    parser.add_argument("--only-peers", metavar="MODE", choices=modes, help="only compare with others: one of " + ", ".join(modes))
    arguments = parser.parse_args(argv)
    if os.geteuid() != 0:
        print("tests/bench: root is needed to build initramfs images", file=sys.stderr)
        return 1
    TARGET.mkdir(parents=True, exist_ok=True)
    handle_signals()
    began = time.monotonic()
    try:
        program = images.binary()
        release = next(iter(debian.RELEASES.values()))
        index = module_index(release)
    except Failed as error:
        print(f"tests/bench: {error}", file=sys.stderr)
        return 1
    table = Table()
    for line in machine.facts(program):
        print(line)
    print(machine.load("before"), flush=True)

    def guarded(what, measure):
        attempt(table, what, measure)

    if not arguments.only_peers:
        alone(table, release, program, index, guarded, arguments.no_guest)
    if not arguments.no_guest:
        with_others(table, release, guarded, arguments)
    print(machine.load("at the end, our own included"), flush=True)
    table.print()
    say(f"took {time.monotonic() - began:.0f} s")
    return 1 if table.unmeasured or not table.lines else 0


def alone(table, release, program, index, guarded, no_guest):
    """What ibboot costs by itself."""
    # Times first: the other measurements load the machine.
    guarded("binary", lambda: binary.measure(table, program))
    guarded("plan and check", lambda: ports.measure(table, program, index))
    guarded("nothing requested, host", lambda: ports.not_asked(table, program))
    guarded("decoder", lambda: decoder.measure(table, program))
    print(machine.load("after the times on the host"), flush=True)
    guarded("storm", lambda: storm.measure(table, program.resolve().parent / "examples" / "dhcp-client"))
    guarded("soak", lambda: soak.measure(table, program))
    guarded("image", lambda: image.measure(table, release))
    if no_guest:
        table.missing("in the guest", "--no-guest")
    else:
        guarded("a look", lambda: look.measure(table, release))
        guarded("in the guest", lambda: guest.measure(table, release, start_of(program), guarded))


def with_others(table, release, guarded, arguments):
    """ibboot beside other programs, and beside no program."""
    modes = [mode for mode in peers.MODES if arguments.only_peers in (None, mode)]
    for mode in modes:
        guarded(f"beside others, {mode}", lambda mode=mode: peers.measure(table, release, mode, arguments.repetitions))
    if arguments.only_peers in (None, "nothing"):
        guarded("nothing requested", lambda: peers.nothing(table, release, 2 * arguments.repetitions))


def start_of(program):
    """Seconds of a process that does nothing."""
    return cost([program, "--version"], 0).fastest
