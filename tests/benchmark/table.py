# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table: what | budget | measured | ratio | verdict, and notes that explain a line."""

import sys
from dataclasses import dataclass
from statistics import median

MB = 1e6
MIB = float(1 << 20)


@dataclass(frozen=True)
class Unit:
    """A unit: an amount is divided by `size` and written with `digits` decimals."""

    name: str
    size: float = 1.0
    digits: int = 2

    def text(self, amount):
        """An amount with its unit."""
        return f"{amount / self.size:.{self.digits}f} {self.name}"


MEGABYTES = Unit("MB", MB, 3)
MEBIBYTES = Unit("MiB", MIB, 2)
MILLISECONDS = Unit("ms", 1e-3, 2)
SECONDS = Unit("s", 1.0, 2)
WAKE_UPS = Unit("wake-ups", 1.0, 0)
CALLS = Unit("calls", 1.0, 0)
TIMES = Unit("times", 1.0, 2)


class Unmeasured(Exception):
    """Something could not be measured; the text says why in one line."""


class Table:
    """Lines are printed at the end, so that progress on stderr does not interrupt the table."""

    def __init__(self):
        self.rows = [("what", "budget", "measured", "ratio", "verdict")]
        self.notes = []
        self.unmeasured = []
        self.over = []

    def add(self, what, unit, measured, budget=None, doubt=""):
        """One measured amount; without a budget it is a reference. `doubt` is the reason why a time
        over the budget means little for an idle, real machine."""
        if budget is None:
            self.rows.append((what, "-", unit.text(measured), "-", "-"))
            return
        ratio = measured / budget
        verdict = "ok" if ratio <= 1 else "over"
        if verdict == "over":
            self.over.append(what)
            verdict += f", {doubt}" if doubt else ""
        self.rows.append((what, unit.text(budget), unit.text(measured), f"{ratio:.2f}", verdict))

    def add_runs(self, what, unit, amounts):
        """The median of several measured amounts, with the smallest and the largest one."""
        spread = f"{len(amounts)} runs: {unit.text(min(amounts))} to {unit.text(max(amounts))}" if len(amounts) > 1 else "1 run"
        self.rows.append((what, "-", unit.text(median(amounts)), "-", spread))

    def missing(self, what, why, counts=True):
        """A line without a figure; a mark that another program does not reach does not fail the
        run."""
        if counts:
            self.unmeasured.append(what)
        self.rows.append((what, "-", "not measured", "-", str(why)))

    def note(self, text):
        """A sentence below the table."""
        self.notes.append(text)

    @property
    def lines(self):
        """The number of lines, without the heading."""
        return len(self.rows) - 1

    def print(self):
        """Print the table on stdout."""
        widths = [max(len(row[column]) for row in self.rows) for column in range(4)]
        for row in self.rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths)]
            print(" | ".join([*cells, row[4]]))
        for text in self.notes:
            print(f"  {text}")
        print(f"{self.lines} lines: {len(self.over)} over budget, {len(self.unmeasured)} not measured", flush=True)


def compare(table, what, unit, ours, amounts, why=None):
    """A line for ibboot, and a line for each other program with the ratio of the medians. `amounts`
    has the amounts of all runs by name; without amounts the program never got there, and `why` may
    have the reason by name."""
    reasons = dict.fromkeys(amounts, "it never came to that") | (why or {})
    if not amounts[ours]:
        raise Unmeasured(f"{ours}: {what}: {reasons[ours]}")
    for name, runs in amounts.items():
        if not runs:
            table.missing(f"{what}: {name}", reasons[name], counts=False)
            continue
        table.add_runs(f"{what}: {name}", unit, runs)
        if name != ours:
            table.add(f"{what}: {name}, in times of {ours}", TIMES, median(runs) / median(amounts[ours]))


def say(text):
    """Print progress on stderr."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
