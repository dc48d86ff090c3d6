# SPDX-License-Identifier: MIT OR Apache-2.0
"""Machines of any size, built from the fixture tree of a dual-port ConnectX-6."""

import json
import os
import shutil
from pathlib import Path

FIXTURE = Path(__file__).resolve().parent.parent / "sys" / "connectx6-hdr"
CARD = "sys/class/infiniband/mlx5_0"
FUNCTION = "sys/bus/pci/devices/0000:81:00.0"
NETDEV = "sys/class/net/ib0"
FIRST_GUID = 0xB859_9F03_00FC_0000
FIRST_PCI_BUS = 0x10
FIRST_IFINDEX = 4
MODULE_FILES = ("modules.alias", "modules.builtin", "modules.dep")
CMDLINE = "BOOT_IMAGE=/vmlinuz rd.neednet=1 rd.driver.pre=mlx5_ib,ib_ipoib,ib_umad rd.ib.require=all rd.ib.rate=200"
CMDLINE_OF_OTHERS = (
    "BOOT_IMAGE=/boot/vmlinuz-6.1.0-50-amd64 root=UUID=6d1c0b0e-9f43-4f0c-8a55-0b2e6f0e9d11 ro quiet"
    " rd.luks.uuid=luks-0c9f2f7b rd.lvm.lv=vg/root rd.md=0 rd.dm=0 vconsole.keymap=de crashkernel=256M"
    " ip=enp1s0:dhcp rd.neednet=1 nameserver=192.0.2.53 console=tty0 console=ttyS0,115200n8 mitigations=auto"
)


def contents(folder):
    """A small folder as {relative path: bytes, or the target of a link}."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in [*files, *(name for name in folders if os.path.islink(os.path.join(where, name)))]:
            path = Path(where) / name
            found[str(path.relative_to(folder))] = os.readlink(path) if path.is_symlink() else path.read_bytes()
    return found


def write(folder, files, changed):
    """Write these files to a folder; `changed` replaces contents by relative path."""
    made = set()
    for name, content in {**files, **changed}.items():
        path = folder / name
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        if isinstance(content, str):
            path.symlink_to(content)
        else:
            path.write_bytes(content)


def colons(number):
    """A GUID in the spelling of sysfs."""
    text = f"{number:016x}"
    return ":".join(text[at : at + 4] for at in range(0, 16, 4))


def make(root, ports, modules=None):
    """A machine with this many one-port devices, and the expectation that it meets; `modules` is a
    folder of module indexes that replaces the few lines of the fixture."""
    device, function, netdev = (contents(FIXTURE / part) for part in (CARD, FUNCTION, NETDEV))
    for part in ("proc", "sys/module"):
        shutil.copytree(FIXTURE / part, root / part, symlinks=True)
    [own] = (FIXTURE / "lib" / "modules").iterdir()
    release = root / "lib" / "modules" / own.name
    release.mkdir(parents=True)
    for name in MODULE_FILES:
        shutil.copyfile((modules or own) / name, release / name)
    links = []
    for number in range(ports):
        guid = FIRST_GUID + number
        address = f"0000:{FIRST_PCI_BUS + number // 256:02x}:{number // 8 % 32:02x}.{number % 8}"
        name = f"mlx5_{number}"
        changed = {file: f"{colons(guid)}\n".encode() for file in ("node_guid", "sys_image_guid")}
        changed |= {
            "device": f"../../../{address}",
            "node_desc": f"node017 {name}\n".encode(),
            "ports/1/gids/0": f"fe80:0000:0000:0000:{colons(guid)}\n".encode(),
            "ports/1/lid": f"{number + 1:#x}\n".encode(),
        }
        write(root / "sys/class/infiniband" / name, device, changed)
        write(root / "sys/bus/pci/devices" / address, function, {})
        octets = bytes.fromhex(f"80000048fe80000000000000{guid:016x}").hex(":")
        changed = {
            "address": f"{octets}\n".encode(),
            "ifindex": f"{FIRST_IFINDEX + number}\n".encode(),
            "device": f"../../../{address}",
            "uevent": f"INTERFACE=ib{number}\nIFINDEX={FIRST_IFINDEX + number}\n".encode(),
        }
        write(root / "sys/class/net" / f"ib{number}", netdev, changed)
        links.append(link(name, guid))
    (root / "proc" / "cmdline").write_text(f"{CMDLINE}\n")
    boot_id = (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    handed_over = root / "run" / "ibboot"
    handed_over.mkdir(parents=True)
    (handed_over / "expected.json").write_text(json.dumps(expectation(boot_id, links), indent=2))


def link(name, guid):
    """One entry of expected.json, as written by `up`."""
    return {
        "target": f"{name}:1",
        "requested_by": {"argument": "rd.ib.require=all", "source": "/proc/cmdline", "column": 75},
        "required": True,
        "identity": {"node_guid": f"{guid:#x}", "port": 1},
        "link_layer": "InfiniBand",
        "netdev": None,
        "megabits": 200_000,
        "refused": None,
    }


def expectation(boot_id, links):
    """expected.json."""
    modules = [{"name": name, "requested_by": None, "builtin": False} for name in ("mlx5_ib", "ib_ipoib", "ib_umad")]
    return {
        "schema": 1,
        "boot_id": boot_id,
        "require": "listed",
        "links": links,
        "any_port": None,
        "rates": [],
        "modules": modules,
    }
