# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table that a firmware leaves which has booted from the far end's iSCSI target by net0: "iSCSI Boot
Firmware Table (iBFT) as Defined in ACPI 3.0b Specification", version 1.03; struct ibft_* of
drivers/firmware/iscsi_ibft.c."""

import ipaddress
import struct

INITIATOR = b"iqn.2026-01.test:node1"
TARGET = b"iqn.2026-01.test:disk"
ADDRESS, PREFIX, SERVER, PORT = "10.0.0.55", 24, "10.0.0.2", 3260
# net0 is 0000:00:03.0.
BUS_ADDRESS = 3 << 3
# The header of an ACPI table, which QEMU writes; 12 reserved bytes follow.
HEADER = 36
# The structures by their identifier, without the header that all of them have.
LAYOUTS = {1: "<6H", 2: "<64x2H", 3: "<16s2B64xH6s3H", 4: "<16sH8s2B2H16x"}
# Block valid, firmware boot selected; the first structure has no flags.
USED = 0b11
MANUAL = 1


def address(text):
    """An IPv4 address as 16 bytes."""
    return ipaddress.IPv6Address(f"::ffff:{text}").packed


def content(mac):
    """The table without the header of ACPI; `mac` is that of net0."""
    sizes = [6 + struct.calcsize(layout) for layout in LAYOUTS.values()]
    at = HEADER + 12
    offsets = [at + sum(sizes[:number]) for number in range(len(sizes) + 1)]
    _, initiator, card, target, names = offsets
    fields = [
        (0, initiator, card, target, 0, 0),
        (len(INITIATOR), names),
        (address(ADDRESS), PREFIX, MANUAL, 0, bytes.fromhex(mac.replace(":", "")), BUS_ADDRESS, 0, 0),
        (address(SERVER), PORT, bytes(8), 0, 0, len(TARGET), names + len(INITIATOR) + 1),
    ]
    found = bytes(12)
    for (kind, layout), size, values in zip(LAYOUTS.items(), sizes, fields):
        found += struct.pack("<BBHBB", kind, 1, size, 0, USED if kind > 1 else 0) + struct.pack(layout, *values)
    return found + INITIATOR + b"\0" + TARGET + b"\0"
