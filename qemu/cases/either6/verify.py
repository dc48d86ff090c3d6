# SPDX-License-Identifier: MIT OR Apache-2.0
"""DHCPv6 begins after the wait for routers; on the other interface only name servers are requested."""

WAIT_S = 20
GUID = "00:03:00:20:02:50:f7:00:00:00:a0:02"


def verify(boot):
    (progress,) = boot.json("run/state.json")["dhcp6"]
    found = (progress["interface"], progress["state"], progress["router"], progress["lease"]["address"])
    if found != ("ib0", "BOUND", "silent", "fd00::10"):
        yield f"state.json: {progress}"
    (inquiry,) = boot.json("run/state.json")["information"]
    answer = inquiry["information"]
    found = (inquiry["interface"], inquiry["duid"], answer["name_servers"], answer["domain_search"])
    if found != ("ib1", GUID, ["fd00:1::53"], ["cluster.example"]):
        yield f"state.json: {inquiry}"
    far = boot.text("out/far.txt")
    if f"DHCPINFORMATION-REQUEST(ib3) {GUID}" not in far or f"DHCPSOLICIT(ib3) {GUID}" in far:
        yield f"far.txt: no request for name servers from {GUID}"
    resolver = "search cluster.example\nnameserver fd00:1::53\n"
    options = "new_dhcp6_name_servers='fd00:1::53'\nnew_dhcp6_domain_search='cluster.example'\n"
    for name, expected in (("net.ib1.resolv.conf", resolver), ("resolv.conf", resolver), ("dhclient.ib1.dhcpopts", options)):
        if (found := boot.text(f"out/{name}")) != expected:
            yield f"{name}: {found!r}, expected {expected!r}"
    tentative = boot.first(r"ibboot: ib0 \(softib0/1\): waiting for the address")
    begins = boot.first(r"ibboot: ib0: DHCPv6: begins")
    if begins[0] - tentative[0] < WAIT_S:
        yield f"kmsg: less than {WAIT_S} s between {tentative} and {begins}"
