# SPDX-License-Identifier: MIT OR Apache-2.0
"""One client identifier and one address, whichever port carried the bond."""

import re

CLIENT = "ff:00:00:00:00:00:02:00:00:02:c9:00:02:50:f7:00:00:00:a0:01"


def verify(boot):
    (progress,) = boot.json("run/lease/leases.json")["dhcp"]
    if (progress["state"], progress["client_id"]) != ("BOUND", CLIENT):
        yield f"leases.json: {progress}"
    begun = [text for _, text in boot.kmsg if "ibboot: bond0: DHCP: begins" in text]
    if len(begun) != 1:
        yield f"kmsg: {begun}"
    acks = re.findall(r"DHCPACK\(far0\) (\S+) (\S+)", boot.text("out/far.txt"))
    if len(acks) < 2 or set(acks) != {(progress["lease"]["address"], CLIENT)}:
        yield f"far.txt: {acks}"
