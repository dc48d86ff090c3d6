# SPDX-License-Identifier: MIT OR Apache-2.0
"""The timeline has what the machine did before the command line was complete, and both leases."""


def verify(boot):
    marks = boot.json("run/state.json")["marks"]
    (hooks,) = [mark for mark in marks if mark["phase"] == "hooks"]
    for phase in ("device_found", "port_active", "lease"):
        first = min((mark["start_ns"] for mark in marks if mark["phase"] == phase), default=None)
        if first is None or first >= hooks["end_ns"]:
            yield f"state.json: {phase}: {first}, expected before {hooks['end_ns']}"
    leases = [mark["object"] for mark in marks if mark["phase"] == "lease"]
    if leases != ["ib0", "ib0"]:
        yield f"state.json: marks of leases: {leases}"
