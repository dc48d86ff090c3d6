# SPDX-License-Identifier: MIT OR Apache-2.0
"""The ROM of the card requested the boot loader, and the loader requested the rest."""


def verify(boot):
    requests = (boot.folder / "netboot" / "dnsmasq.log").read_text()
    for expected in ("vendor class: PXEClient:Arch:00000:", "user class: iPXE", "/pxelinux.0 to ", "/pxelinux.cfg/default to "):
        if expected not in requests:
            yield f"dnsmasq.log: no line has {expected!r}"
    served = (boot.folder / "netboot" / "http.log").read_text()
    for expected in ('"GET /kernel HTTP/1.1" 200', '"GET /initrd HTTP/1.1" 200'):
        if expected not in served:
            yield f"http.log: no line has {expected!r}"
