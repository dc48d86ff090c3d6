# SPDX-License-Identifier: MIT OR Apache-2.0
"""The name server of the command line stands before the DHCP server's."""

RESOLVER = "nameserver 10.0.0.53\nnameserver 10.0.0.54\n"


def verify(boot):
    if (found := boot.text("out/resolv.conf")) != RESOLVER:
        yield f"resolv.conf: {found!r}"
