# SPDX-License-Identifier: MIT OR Apache-2.0
"""A router was waited for as long as was said; at the other interface the server was asked for name servers alone."""

WAIT_S = 20
GUID = "00:03:00:20:02:50:f7:00:00:00:a0:02"


def verify(boot):
    (progress,) = boot.json("run/state.json")["dhcp6"]
    seen = (progress["interface"], progress["state"], progress["router"], progress["lease"]["address"])
    if seen != ("ib0", "BOUND", "silent", "fd00::10"):
        yield f"state.json: {progress}"
    (asked,) = boot.json("run/state.json")["information"]
    said = asked["information"]
    seen = (asked["interface"], asked["duid"], said["name_servers"], said["domain_search"])
    if seen != ("ib1", GUID, ["fd00:1::53"], ["cluster.example"]):
        yield f"state.json: {asked}"
    far = boot.text("out/far.txt")
    if f"DHCPINFORMATION-REQUEST(ib3) {GUID}" not in far or f"DHCPSOLICIT(ib3) {GUID}" in far:
        yield f"far.txt: not one question for name servers of {GUID}"
    resolver = "search cluster.example\nnameserver fd00:1::53\n"
    options = "new_dhcp6_name_servers='fd00:1::53'\nnew_dhcp6_domain_search='cluster.example'\n"
    for name, wanted in (("net.ib1.resolv.conf", resolver), ("resolv.conf", resolver), ("dhclient.ib1.dhcpopts", options)):
        if (seen := boot.text(f"out/{name}")) != wanted:
            yield f"{name}: {seen!r}"
    tentative = boot.first(r"ibboot: waiting: ib0 .* fe80::250:f700:0:a001/64 is tentative")
    begins = boot.first(r"ibboot: ib0: DHCPv6: begins")
    if begins[0] - tentative[0] < WAIT_S:
        yield f"kmsg: less than {WAIT_S} s between {tentative} and {begins}"
