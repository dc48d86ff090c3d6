# SPDX-License-Identifier: MIT OR Apache-2.0
"""ibboot waits 2 s for udev to name each interface, logs that once, and then uses the interface."""

USED = {
    "ib0": r"ibboot: ib0: is up$",
    "ib1": r"ibboot: ib1: added to bond0$",
    "eth0": r"ibboot: eth0: is up$",
}


def verify(boot):
    for name, used in USED.items():
        expected = f"ibboot: {name}: udev has not named this interface after 2 s: ibboot continues without udev"
        lines = [when for when, text in boot.kmsg if text == expected]
        if len(lines) != 1:
            yield f"kmsg: {len(lines)} times {expected!r}"
            continue
        then = boot.first(used)
        if then is None or then[0] < lines[0]:
            yield f"kmsg: {name}: logged at {lines[0]}, used at {then}"
