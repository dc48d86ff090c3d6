# SPDX-License-Identifier: MIT OR Apache-2.0
"""A boot over the network: QEMU gets no kernel, and its firmware loads one through the network card.

The cable of the card ends in a private network namespace with a DHCP, TFTP and HTTP server.
netboot.sh creates the namespace, which ends with QEMU.

bios  SeaBIOS -> iPXE in the card's ROM (PXE) -> pxelinux.0 by TFTP -> kernel and initramfs by iPXE's HTTP
uefi  OVMF's own PXE -> iPXE by TFTP -> its script -> kernel and initramfs by HTTP

Both loaders append BOOTIF= to the kernel's arguments, each in its own way.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from .paths import Failed

SERVER = "192.168.77.1"
OVMF = Path("/usr/share/OVMF")
TUN = Path("/dev/net/tun")
LOADERS = {
    "bios": [Path("/usr/lib/PXELINUX/pxelinux.0"), Path("/usr/lib/syslinux/modules/bios/ldlinux.c32")],
    "uefi": [Path("/usr/lib/ipxe/snponly.efi"), OVMF / "OVMF_CODE_4M.fd", OVMF / "OVMF_VARS_4M.fd"],
}
# dnsmasq's answers to the firmware, and to iPXE (option 175) when it asks again.
BOOT_FILES = {
    "bios": ["--dhcp-boot=pxelinux.0"],
    "uefi": ["--dhcp-match=set:ipxe,175", "--dhcp-boot=tag:!ipxe,snponly.efi", "--dhcp-boot=tag:ipxe,boot.ipxe"],
}
PXELINUX = """SERIAL 0 115200
DEFAULT node
LABEL node
  KERNEL http://{server}/kernel
  INITRD http://{server}/initrd
  APPEND {append}
  SYSAPPEND 2
"""
IPXE = """#!ipxe
kernel http://{server}/kernel initrd=initrd {append} BOOTIF=01-${{netX/mac:hexhyp}}
initrd http://{server}/initrd
boot
"""


@dataclass(frozen=True)
class Netboot:
    """The folder of the served files, and the firmware of the guest."""

    firmware: str
    folder: Path

    def machine(self):
        """QEMU's arguments for the firmware itself."""
        if self.firmware == "bios":
            return []
        code = f"if=pflash,unit=0,format=raw,readonly=on,file={OVMF / 'OVMF_CODE_4M.fd'}"
        return ["-drive", code, "-drive", f"if=pflash,unit=1,format=raw,file={self.folder / 'variables'}"]

    def card(self, mac):
        """QEMU's arguments for the card; OVMF has its own driver for the card and needs no ROM."""
        rom = ",romfile=" if self.firmware == "uefi" else ""
        device = f"virtio-net-pci,id=net0,netdev=user0,mac={mac},bootindex=0{rom}"
        return ["-netdev", "tap,id=user0,ifname=tap0,script=no,downscript=no", "-device", device]

    def around(self, argv):
        """The command that runs QEMU in the namespace."""
        script = Path(__file__).with_suffix(".sh")
        servers = ["bash", str(script), SERVER, str(self.folder), *BOOT_FILES[self.firmware]]
        return ["unshare", "--net", *servers, "--", *argv]


def prepare(folder, firmware, kernel, initrd, append):
    """Create the folder of the served files."""
    for path in [TUN, *LOADERS[firmware]]:
        if not path.exists():
            raise Failed(f"{path}: missing: run tests/setup, or load the module tun")
    served = folder / "netboot" / "served"
    served.mkdir(parents=True)
    shutil.copyfile(kernel, served / "kernel")
    initrd.rename(served / "initrd")
    words = {"server": SERVER, "append": append}
    if firmware == "bios":
        for loader in LOADERS["bios"]:
            shutil.copyfile(loader, served / loader.name)
        (served / "pxelinux.cfg").mkdir()
        (served / "pxelinux.cfg" / "default").write_text(PXELINUX.format(**words))
    else:
        shutil.copyfile(LOADERS["uefi"][0], served / "snponly.efi")
        (served / "boot.ipxe").write_text(IPXE.format(**words))
        shutil.copyfile(OVMF / "OVMF_VARS_4M.fd", folder / "netboot" / "variables")
    return Netboot(firmware, folder / "netboot")
