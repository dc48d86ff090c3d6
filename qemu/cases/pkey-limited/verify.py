# SPDX-License-Identifier: MIT OR Apache-2.0
"""The warning, word for word, and the link verified all the same."""

WARNING = "ibboot: ib0 (softib0/1): not in the partition: 0x7fff, limited member, expected full membership [port.pkey]"
REMEDY = "ibboot:   limited members cannot reach each other: make the port a full member in partitions.conf"
VERIFIED = "ibboot: ib0 (softib0/1): verified: InfiniBand, 40 Gb/sec (4X QDR), port GUID 0x0250f7000000a001, softib.0"


def verify(boot):
    lines = [text for _, text in boot.kmsg]
    for line in (WARNING, REMEDY, VERIFIED):
        if line not in lines:
            yield f"kmsg: no line {line!r}"
