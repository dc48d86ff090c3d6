# SPDX-License-Identifier: MIT OR Apache-2.0
"""A router was waited for as long as was said, and the server was asked from the other interface alone."""

WAIT_S = 20


def verify(boot):
    (progress,) = boot.json("run/state.json")["dhcp6"]
    seen = (progress["interface"], progress["state"], progress["router"], progress["lease"]["address"])
    if seen != ("ib0", "BOUND", "silent", "fd00::10"):
        yield f"state.json: {progress}"
    far = boot.text("out/far.txt")
    if "DHCPSOLICIT" not in far or "00:03:00:20:02:50:f7:00:00:00:a0:02" in far or "request via ib3" in far:
        yield "far.txt: not one client alone"
    tentative = boot.first(r"ibboot: waiting: ib0 .* fe80::250:f700:0:a001/64 is tentative")
    begins = boot.first(r"ibboot: ib0: DHCPv6: begins")
    if begins[0] - tentative[0] < WAIT_S:
        yield f"kmsg: less than {WAIT_S} s between {tentative} and {begins}"
