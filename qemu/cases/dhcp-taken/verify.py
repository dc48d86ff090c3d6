# SPDX-License-Identifier: MIT OR Apache-2.0
"""The second lease is what was handed over."""


def verify(boot):
    (progress,) = boot.json("run/state.json")["dhcp"]
    if (progress["lease"]["address"], progress["counts"]["acks"]) != ("10.0.0.11", 2):
        yield f"state.json: {progress}"
    leases = [mark["object"] for mark in boot.json("run/state.json")["marks"] if mark["phase"] == "lease"]
    if leases != ["ib0", "ib0"]:
        yield f"state.json: marks of leases: {leases}"
