# SPDX-License-Identifier: MIT OR Apache-2.0
"""The console lines for a spectator of a boot: the messages and tables of ibboot."""

import re

STAMP = re.compile(r"^\[\s*\d+\.\d+\]\s*")
# Text behind a prompt without an end of line.
TABLE = re.compile(r"(?:^|login: )==== (.*) ====$")


class Show:
    """Called with each console line."""

    def __init__(self, out):
        self.out = out
        self.table = False

    def __call__(self, seconds, line):
        if found := TABLE.search(line):
            self.table = found.group(1) != "end"
            if self.table:
                print(f"\n{found.group(1)}", file=self.out, flush=True)
        elif self.table:
            print(f"  {line}", file=self.out, flush=True)
        elif "ibboot: " in line or "Linux version" in line:
            print(f"{seconds:6.1f} s  {STAMP.sub('', line)[:150]}", file=self.out, flush=True)
