# SPDX-License-Identifier: MIT OR Apache-2.0
"""The timeline has what the machine did before the command line was complete, once each."""


def verify(boot):
    marks = boot.json("run/state.json")["marks"]
    (hooks,) = [mark for mark in marks if mark["phase"] == "hooks"]
    for phase in ("device_found", "port_active"):
        starts = [mark["start_ns"] for mark in marks if mark["phase"] == phase]
        if len(starts) != 1 or starts[0] >= hooks["end_ns"]:
            yield f"state.json: {phase}: {starts}, expected one before {hooks['end_ns']}"
    verified = [mark["start_ns"] for mark in marks if mark["phase"] == "verified"]
    if len(verified) != 1 or verified[0] < hooks["end_ns"]:
        yield f"state.json: verified: {verified}, expected one after {hooks['end_ns']}"
