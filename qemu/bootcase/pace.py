# SPDX-License-Identifier: MIT OR Apache-2.0
"""The time limits of guests. A busy or slow host is not a fault: the harness measures a fixed piece
of work on this host and extends a limit in proportion. tests/pace/mod.rs does the same for the
tests outside QEMU."""

import subprocess
import time

from .paths import PROJECT, say

WORK = PROJECT / "tests" / "pace" / "work.sh"
# The duration of the work on an idle machine of 2020.
IDLE_SECONDS = 0.2
# The maximum, so that a hanging guest ends on any host.
MOST = 4


def now():
    """How many times slower than an idle machine this host is: 1 to MOST."""
    began = time.monotonic()
    subprocess.run(["sh", str(WORK)], stdin=subprocess.DEVNULL, check=True)
    return factor(time.monotonic() - began)


def factor(took):
    """The factor for a measured duration of the work."""
    return min(max(took / IDLE_SECONDS, 1.0), MOST)


class Limit:
    """A limit in seconds of an idle machine. The host is measured only after these seconds."""

    def __init__(self, idle, what):
        self.idle, self.what = idle, what
        self.times = 1.0
        self.began = time.monotonic()

    def seconds(self):
        """The limit with its extension."""
        return self.idle * self.times

    def is_over(self):
        """Whether the limit has passed; measures the host first."""
        if time.monotonic() - self.began <= self.seconds():
            return False
        times = now()
        if times > self.times:
            self.times = times
            say(f"{self.what}: not ended after {self.idle:.0f} s; this host takes {times:.1f} times as long for its work: limit {self.seconds():.0f} s")
        return time.monotonic() - self.began > self.seconds()
