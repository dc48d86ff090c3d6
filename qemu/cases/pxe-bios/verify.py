# SPDX-License-Identifier: MIT OR Apache-2.0
"""The card's ROM asked for the boot loader, and the loader for the rest."""


def verify(boot):
    asked = (boot.folder / "netboot" / "dnsmasq.log").read_text()
    for want in ("vendor class: PXEClient:Arch:00000:", "user class: iPXE", "/pxelinux.0 to ", "/pxelinux.cfg/default to "):
        if want not in asked:
            yield f"dnsmasq.log: no line has {want!r}"
    served = (boot.folder / "netboot" / "http.log").read_text()
    for want in ('"GET /kernel HTTP/1.1" 200', '"GET /initrd HTTP/1.1" 200'):
        if want not in served:
            yield f"http.log: no line has {want!r}"
