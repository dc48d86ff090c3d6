# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which interface requested what from a silent DHCPv6 server, and that state.json has all of it."""


def verify(boot):
    then = boot.json("out/state-then.json")["information"]
    if [inquiry["interface"] for inquiry in then] != ["ib0"]:
        yield f"state.json before the end of the initramfs: {then}"
    inquiries = boot.json("run/state.json")["information"]
    if [(one["interface"], one["counts"]["sent"] >= 5, "information" in one) for one in inquiries] != [
        ("ib0", True, False),
        ("ib1", True, False),
    ]:
        yield f"state.json: {inquiries}"
    clients = boot.json("run/state.json")["dhcp6"]
    if [(one["interface"], one["router"], one["gave_up"]) for one in clients] != [("ib1", "managed", True)]:
        yield f"state.json: {clients}"
    if not boot.first(r"^ibboot: ib1: DHCPv6: ends, no server grants anything and a router gave an address$"):
        yield "kmsg: ib1's client did not end"
