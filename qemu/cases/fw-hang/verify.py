# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the verdict to the end of the cleanup hook, where the boot would wait for the dead HCA."""

import re

# Of the guest's clock, for the whole hook: 5 s for the dead HCA, the rest is the shell's.
LIMIT_S = 10


def verify(boot):
    journal = boot.text("out/journal.txt") or ""

    def at(what):
        found = re.search(rf"^\[ *([0-9.]+)\].*{what}", journal, re.M)
        return float(found[1]) if found else None

    begin = at(r"Starting dracut-pre-pivot\.service")
    end = at(r"Finished dracut-pre-pivot\.service")
    if begin is None or end is None:
        yield "journal: no start or no end of dracut-pre-pivot.service"
    elif end - begin > LIMIT_S:
        yield f"journal: dracut-pre-pivot.service took {end - begin:.1f} s"
