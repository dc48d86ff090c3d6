# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was granted, by whom, and under which identifier."""

GUID = "20:02:50:f7:00:00:00:a0:01"


def verify(boot):
    (progress,) = boot.json("run/state.json")["dhcp"]
    lease = progress.get("lease", {})
    if (progress["client_id"], lease.get("address"), lease.get("server")) != (GUID, "10.0.0.30", "10.8.0.2"):
        yield f"state.json: {progress}"
