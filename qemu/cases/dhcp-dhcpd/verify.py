# SPDX-License-Identifier: MIT OR Apache-2.0
"""What was granted and under which identifier."""


def verify(boot):
    (progress,) = boot.json("run/state.json")["dhcp"]
    if not progress["client_id"].startswith("20:02:50:f7:00:00:00:a0:01") or progress["lease"]["address"] != "10.0.0.30":
        yield f"state.json: {progress}"
