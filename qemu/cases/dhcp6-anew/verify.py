# SPDX-License-Identifier: MIT OR Apache-2.0
"""The timeline has both leases, the first from before the command line was complete."""


def verify(boot):
    marks = boot.json("run/state.json")["marks"]
    (hooks,) = [mark for mark in marks if mark["phase"] == "hooks"]
    leases = [mark for mark in marks if mark["phase"] == "lease6"]
    starts = [mark["start_ns"] < hooks["end_ns"] for mark in leases]
    if starts != [True, False]:
        yield f"state.json: marks of leases: {leases}"
