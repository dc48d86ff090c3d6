# SPDX-License-Identifier: MIT OR Apache-2.0
"""The firmware requested iPXE, iPXE requested its script, and the script requested the rest."""


def verify(boot):
    requests = (boot.folder / "netboot" / "dnsmasq.log").read_text()
    for expected in ("vendor class: PXEClient:Arch:00007:", "/snponly.efi to ", "user class: iPXE", "/boot.ipxe to "):
        if expected not in requests:
            yield f"dnsmasq.log: no line has {expected!r}"
    served = (boot.folder / "netboot" / "http.log").read_text()
    for expected in ('"GET /kernel HTTP/1.1" 200', '"GET /initrd HTTP/1.1" 200'):
        if expected not in served:
            yield f"http.log: no line has {expected!r}"
