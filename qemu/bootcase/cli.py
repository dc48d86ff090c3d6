# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command line of qemu/run."""

import argparse
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from . import case as cases
from . import compare
from .boot import boot
from .debian import RELEASES, NotHere
from .judge import faults
from .machine import kill_all
from .paths import TARGET, Failed, end_all, locked
from .show import Show

FIRST_KERNEL = next(iter(RELEASES))


def say(line):
    """Print one line of a verdict. If nobody reads the verdicts any more, the run ends."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        end(1)


class Tally:
    """Verdicts, one line each, counted."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.lock = threading.Lock()

    def ok(self, label, seconds):
        """A case passed."""
        with self.lock:
            self.passed += 1
            say(f"ok {label} {seconds:.1f} s")

    def fail(self, label, why):
        """A case failed: all reasons, the first one on the line of the verdict."""
        with self.lock:
            self.failed += 1
            say(f"FAIL {label} {why[0]}")
            for more in why[1:]:
                say(f"     {label} {more}")

    def skip(self, label, why):
        """A case that cannot run here is reported, never dropped silently."""
        with self.lock:
            self.skipped += 1
            say(f"skip {label} {why}")


def label_of(name, kernel):
    """The name of a case on a kernel, and of the folder of its files."""
    return name if kernel == FIRST_KERNEL else f"{name}-{kernel}"


def one(tally, case, kernel, watch):
    """Boot and judge one case."""
    label = label_of(case.name, kernel)
    try:
        # The folder belongs to one boot at a time, even if another process runs the same case.
        with locked(f"case-{label}"):
            done = boot(case, RELEASES[kernel], label, watch)
            wrong = faults(case, done)
            if case.compared and not wrong:
                other = boot(case.without(), RELEASES[kernel], f"{label}-without", watch)
                wrong = [f"without ibboot: {fault}" for fault in faults(case, other)] or compare.faults(done, other, case.uncompared)
    except NotHere as error:
        tally.skip(label, str(error))
        return
    except Failed as error:
        tally.fail(label, [str(error)])
        return
    if wrong:
        tally.fail(label, wrong)
    else:
        tally.ok(label, done.seconds)


def parse(argv):
    """Parse the arguments."""
    parser = argparse.ArgumentParser(
        prog="qemu/run", description="Boot ibboot in QEMU: a real kernel, a real dracut image, a real switch into a real root."
    )
    parser.add_argument("case", nargs="*", help="cases to boot")
    parser.add_argument("--list", action="store_true", help="list the cases, one per line")
    parser.add_argument("--all", action="store_true", help="every case on all its kernels")
    parser.add_argument("--quick", action="store_true", help="with --all: skip the slow cases of make test-all, and report each")
    parser.add_argument("--kernel", choices=list(RELEASES), help="this kernel only")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="parallel boots (default 1)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the guest's console live")
    parser.add_argument("--show", action="store_true", help="show the messages of ibboot live, and its tables at the end")
    return parser, parser.parse_args(argv)


def main(argv=None):
    """Run; exit code 0 if no case failed, 64 for a usage error."""
    parser, arguments = parse(argv)
    try:
        known = [cases.load(name) for name in cases.names()]
        if arguments.list:
            for case in known:
                print(f"{case.name:28} {'+'.join(case.kernels):9} {case.summary}")
            return 0
        if arguments.all == bool(arguments.case):
            parser.print_usage(sys.stderr)
            print("qemu/run: name cases, or use --all", file=sys.stderr)
            return 64
        chosen = known if arguments.all else [cases.load(name) for name in arguments.case]
    except Failed as error:
        print(f"qemu/run: {error}", file=sys.stderr)
        return 64
    if os.geteuid() != 0:
        print("qemu/run: root is needed to make a Debian root tree and its images", file=sys.stderr)
        return 1
    TARGET.mkdir(parents=True, exist_ok=True)
    handle_signals()
    return run_all(arguments, chosen)


def handle_signals():
    """What a signal ends leaves no program behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # nohup makes this process ignore one of them.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupted)


def interrupted(number, _frame):
    """What a signal does."""
    end(128 + number)


def end(code):
    """End the guests and the steps that build images, and exit without waiting for the threads."""
    kill_all()
    end_all()
    os._exit(code)


def run_all(arguments, chosen):
    """Boot the chosen cases and print the count."""
    tally = Tally()
    with ThreadPoolExecutor(max_workers=max(1, arguments.jobs)) as pool:
        for case in chosen:
            for kernel in case.kernels:
                if arguments.quick and kernel in case.thorough:
                    tally.skip(label_of(case.name, kernel), "slow: make test-all runs it")
                elif arguments.kernel in (None, kernel):
                    pool.submit(guarded, tally, case, kernel, watcher(arguments))
            if arguments.kernel and arguments.kernel not in case.kernels:
                tally.skip(label_of(case.name, arguments.kernel), f"is not for kernel {arguments.kernel}")
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped", flush=True)
    return 1 if tally.failed or not tally.passed else 0


def guarded(tally, case, kernel, watch):
    """Count a fault of the harness itself as a failed case, too."""
    try:
        one(tally, case, kernel, watch)
    except Exception as error:  # noqa: BLE001
        tally.fail(label_of(case.name, kernel), [f"harness: {type(error).__name__}: {error}"])


def watcher(arguments):
    """The receiver of live console lines."""
    if arguments.show:
        return Show(sys.stdout)
    if arguments.verbose:
        return lambda seconds, line: print(f"{seconds:7.2f} {line}", flush=True)
    return None
