# SPDX-License-Identifier: MIT OR Apache-2.0
"""Field by field: what `ibboot facts` says of the link, and what rdma, ibstat and ibv_devinfo say of it."""

import ipaddress
import re

STATES = {"ACTIVE": ("ACTIVE", "Active", "PORT_ACTIVE")}
PHYSICAL = {"LinkUp": ("LINK_UP", "LinkUp", "LINK_UP")}
LANE_GBPS = {"SDR": "2.5 Gbps", "DDR": "5.0 Gbps", "QDR": "10.0 Gbps"}


def verify(boot):
    facts = boot.json("out/facts.json")
    if facts is None:
        yield "facts.json: absent or not JSON"
        return
    [device] = facts["devices"]
    [port] = device["ports"]
    rdma_dev = one(boot.json("out/rdma-dev.json"))
    rdma_link = one(boot.json("out/rdma-link.json"))
    ibstat = labels(boot.text("out/ibstat.txt"))
    devinfo = labels(boot.text("out/ibv_devinfo.txt"))
    rows = [*of_device(device, rdma_dev, ibstat, devinfo), *of_port(device, port, rdma_link, ibstat, devinfo)]
    for field, ours, theirs in rows:
        if str(ours) != str(theirs):
            yield f"{field}: ibboot reports {ours!r}, the witness {theirs!r}"
    yield from moved(boot)


def of_device(device, rdma_dev, ibstat, devinfo):
    """(field, ours, theirs) of the RDMA device."""
    guid, image = device["node_guid"], device["sys_image_guid"]
    return [
        ("rdma dev: ifname", device["ifname"], rdma_dev.get("ifname")),
        ("rdma dev: ifindex", device["ifindex"], rdma_dev.get("ifindex")),
        ("rdma dev: node_type", device["node_type"].lower(), rdma_dev.get("node_type")),
        ("rdma dev: node_guid", quads(guid), rdma_dev.get("node_guid")),
        ("rdma dev: sys_image_guid", quads(image), rdma_dev.get("sys_image_guid")),
        ("ibstat: CA", device["ifname"], ibstat.get("CA")),
        ("ibstat: CA type", device["hca_type"] or "", ibstat.get("CA type")),
        ("ibstat: Firmware version", device["fw"] or "", ibstat.get("Firmware version")),
        ("ibstat: Hardware version", device["hw_rev"] or "", ibstat.get("Hardware version")),
        ("ibstat: Number of ports", len(device["ports"]), ibstat.get("Number of ports")),
        ("ibstat: Node GUID", guid, ibstat.get("Node GUID")),
        ("ibstat: System image GUID", image, ibstat.get("System image GUID")),
        ("ibv_devinfo: hca_id", device["ifname"], devinfo.get("hca_id")),
        ("ibv_devinfo: node_guid", quads(guid), devinfo.get("node_guid")),
        ("ibv_devinfo: sys_image_guid", quads(image), devinfo.get("sys_image_guid")),
        ("ibv_devinfo: phys_port_cnt", len(device["ports"]), devinfo.get("phys_port_cnt")),
    ]


def of_port(device, port, rdma_link, ibstat, devinfo):
    """(field, ours, theirs) of its port."""
    rdma_state, ibstat_state, verbs_state = STATES.get(port["state"], (port["state"],) * 3)
    rdma_phys, ibstat_phys, verbs_phys = PHYSICAL.get(port["physical_state"], (port["physical_state"],) * 3)
    rate = port["rate"]
    return [
        ("rdma link: ifname", device["ifname"], rdma_link.get("ifname")),
        ("rdma link: port", port["port"], rdma_link.get("port")),
        ("rdma link: state", rdma_state, rdma_link.get("state")),
        ("rdma link: physical_state", rdma_phys, rdma_link.get("physical_state")),
        ("rdma link: netdev", port["netdev"], rdma_link.get("netdev")),
        ("rdma link: netdev_index", port["netdev_index"], rdma_link.get("netdev_index")),
        ("ibstat: Port", True, f"Port {port['port']}" in ibstat),
        ("ibstat: State", ibstat_state, ibstat.get("State")),
        ("ibstat: Physical state", ibstat_phys, ibstat.get("Physical state")),
        ("ibstat: Rate", f"{rate['gbps']:g}", ibstat.get("Rate")),
        ("ibstat: Base lid", port["lid"], ibstat.get("Base lid")),
        ("ibstat: LMC", port["lmc"], ibstat.get("LMC")),
        ("ibstat: SM lid", port["sm_lid"], ibstat.get("SM lid")),
        ("ibstat: Capability mask", f"0x{port['cap_mask']:08x}", ibstat.get("Capability mask")),
        ("ibstat: Port GUID", port["port_guid"], ibstat.get("Port GUID")),
        ("ibstat: Link layer", port["link_layer"], ibstat.get("Link layer")),
        ("ibv_devinfo: port", port["port"], devinfo.get("port")),
        ("ibv_devinfo: state", verbs_state, name(devinfo.get("state"))),
        ("ibv_devinfo: phys_state", verbs_phys, name(devinfo.get("phys_state"))),
        ("ibv_devinfo: sm_lid", port["sm_lid"], devinfo.get("sm_lid")),
        ("ibv_devinfo: port_lid", port["lid"], devinfo.get("port_lid")),
        ("ibv_devinfo: port_lmc", f"0x{port['lmc']:02x}", devinfo.get("port_lmc")),
        ("ibv_devinfo: port_cap_flags", f"0x{port['cap_mask']:08x}", devinfo.get("port_cap_flags")),
        ("ibv_devinfo: link_layer", port["link_layer"], devinfo.get("link_layer")),
        ("ibv_devinfo: active_width", f"{rate['width']}X", name(devinfo.get("active_width"))),
        ("ibv_devinfo: active_speed", LANE_GBPS.get(rate["speed"]), name(devinfo.get("active_speed"))),
        ("ibv_devinfo: GID 0", gid(port), (devinfo.get("GID[  0]") or "").partition(",")[0]),
    ]


def moved(boot):
    """Data went over the link: what the two programs say at their end."""
    output = boot.text("out/root.txt") or ""
    if not re.search(r"^819200 bytes in ", output, re.M):
        yield "ibv_rc_pingpong: no line about 819200 bytes"
    pings = re.findall(r"^ping data: rdma-ping-(\d+): ", output, re.M)
    if len(pings) != 20:
        yield f"rping: {len(pings)} of 20 messages came back"


def one(rows):
    """The only object of a JSON list, or an empty one."""
    return rows[0] if isinstance(rows, list) and len(rows) == 1 else {}


def labels(text):
    """`label: value` lines; of several with one label the first counts."""
    found = {}
    for line in (text or "").splitlines():
        if match := re.match(r"^\s*(CA) '(.*)'$", line) or re.match(r"^\s*([\w \[\]]+?):\s*(.*?)\s*$", line):
            found.setdefault(match.group(1), match.group(2))
    return found


def name(value):
    """The name out of `NAME (number)`."""
    return (value or "").partition(" (")[0]


def quads(guid):
    """0x0123456789abcdef as 0123:4567:89ab:cdef."""
    digits = guid.removeprefix("0x").rjust(16, "0")
    return ":".join(digits[at : at + 4] for at in range(0, 16, 4))


def gid(port):
    """The default GID as ibv_devinfo writes it: prefix and port GUID as an IPv6 address."""
    return str(ipaddress.IPv6Address(int(port["subnet_prefix"], 16) << 64 | int(port["port_guid"], 16)))
