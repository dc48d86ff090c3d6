# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long a guest may take. A busy or slow host is no fault: a limit is a multiple of what a measured piece of work
takes on this host, at that time. tests/pace/mod.rs is the same for the tests outside QEMU."""

import subprocess
import time

from .paths import PROJECT, say

WORK = PROJECT / "tests" / "pace" / "work.sh"
# What it takes on a machine of 2020 that has nothing else to do.
IDLE_SECONDS = 0.2
# A guest that hangs is ended too, on any host.
MOST = 4


def now():
    """How many times slower than an idle machine this host is now: 1 to MOST."""
    began = time.monotonic()
    subprocess.run(["sh", str(WORK)], stdin=subprocess.DEVNULL, check=True)
    return factor(time.monotonic() - began)


def factor(took):
    """The same, of what the work took."""
    return min(max(took / IDLE_SECONDS, 1.0), MOST)


class Limit:
    """A limit in seconds of an idle machine. The host is measured only when they are over."""

    def __init__(self, idle, what):
        self.idle, self.what = idle, what
        self.times = 1.0
        self.began = time.monotonic()

    def seconds(self):
        """What the limit has come to."""
        return self.idle * self.times

    def is_over(self):
        """Asks the host, before it says so, whether that was time enough."""
        if time.monotonic() - self.began <= self.seconds():
            return False
        times = now()
        if times > self.times:
            self.times = times
            say(f"{self.what}: not ended after {self.idle:.0f} s; this host takes {times:.1f} times as long for its work: limit {self.seconds():.0f} s")
        return time.monotonic() - self.began > self.seconds()
