# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was granted is in state.json, and the time it took in the timeline."""


def verify(boot):
    state = boot.json("run/state.json")
    (progress,) = state["dhcp"]
    lease = progress["lease"]
    found = (progress["state"], progress["hardware_type"], lease["address"], lease["root_path"])
    if found != ("BOUND", 32, "10.0.0.55", "nfs:10.0.0.2:/srv/root"):
        yield f"state.json: {progress}"
    if [mark["object"] for mark in state["marks"] if mark["phase"] == "lease"] != ["ib0"]:
        yield "state.json: no mark of the lease"
    if not boot.first(r"ibboot: ib0: DHCP: 10\.0\.0\.55/24 of 10\.0\.0\.2, for 3600 s"):
        yield "kmsg: no line about the lease"
