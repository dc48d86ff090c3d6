# SPDX-License-Identifier: MIT OR Apache-2.0
"""The router was believed at once, and what was granted is in leases.json."""


def verify(boot):
    state = boot.json("run/state.json")
    (progress,) = boot.json("run/lease/leases.json")["dhcp6"]
    lease = progress["lease"]
    guid = "00:03:00:20:02:50:f7:00:00:00:a0:01"
    found = (progress["state"], progress["duid"], progress["iaid"], progress["router"], lease["address"])
    if found != ("BOUND", guid, 0xFFFF, "managed", "fd00::10"):
        yield f"leases.json: {progress}"
    if [mark["object"] for mark in state["marks"] if mark["phase"] == "lease6"] != ["ib0"]:
        yield "state.json: no mark of the lease"
    if not boot.first(r"ibboot: ib0: DHCPv6: begins, DUID 00:03:00:20:02:50:f7:00:00:00:a0:01, IAID 65535"):
        yield "kmsg: no line with the DUID"
