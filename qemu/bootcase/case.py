# SPDX-License-Identifier: MIT OR Apache-2.0
"""A boot case: a folder with case.toml and optionally initramfs.sh, root.sh, verify.py and site/
(modprobe.d files).

`fabric = "PARAMETERS"` loads softib with these parameters and puts the far end of its cables into a
namespace, where the case's far.sh (otherwise qemu/guest/98ibboot-fabric/far.sh) runs in parallel
with the boot.
"""

import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from .debian import OTHERS, RELEASES
from .images import DISKS, NEIGHBOURS, NETWORK_SERVICES, STORAGE, Flavour
from .netboot import LOADERS
from .paths import CASES, Failed

ENDS = ("root", "emergency", "reboot", "dump")
# The source of interface names: the kernel (net.ifnames=0), or udev by bus address.
NAMES = ("kernel", "predictable")


@dataclass(frozen=True)
class Action:
    """An action of the harness on the guest, `after` seconds after a console line matched
    `when`."""

    when: re.Pattern
    after: float = 0.0
    cable_in: str | None = None
    cable_out: str | None = None
    device_del: str | None = None
    type: str | None = None


@dataclass(frozen=True)
class Case:
    """One boot and its expected result."""

    name: str
    folder: Path
    summary: str
    cmdline: str
    ends: str
    kernels: tuple = ("6.1",)
    systemd: bool = True
    drivers: str | None = None
    network: str | None = None
    storage: str | None = None
    disk: str | None = None
    beside: tuple = ()
    compared: bool = False
    uncompared: tuple = ()
    nics: int = 1
    names: str = "kernel"
    firmware: str | None = None
    ibft: bool = False
    fabric: str | None = None
    pci: int = 0
    far_here: bool = False
    crash: bool = False
    cables_out: tuple = ()
    thorough: tuple = ()
    time_limit: float = 600.0
    result: str | None = None
    reason: str | None = None
    check_exit: int | None = None
    console: tuple = ()
    console_not: tuple = ()
    kmsg: tuple = ()
    kmsg_not: tuple = ()
    diagnoses: tuple = ()
    actions: tuple = field(default=())
    # Not keys of case.toml: see machine.argv_of, and `without`.
    counted: bool = True
    ibboot: bool = True

    def flavour(self):
        """The initramfs of this case."""
        site = self.name if self.site() else ""
        words = {name: getattr(self, name) for name in ("systemd", "ibboot", "drivers", "network", "storage", "disk", "beside")}
        return Flavour(site=site, **words)

    def without(self):
        """The same boot with an initramfs that has no ibboot."""
        return replace(self, ibboot=False)

    def dump_flavour(self):
        """The initramfs of the kernel that saves the dump of this case's crash."""
        return replace(self.flavour(), dump=True)

    def site(self):
        """The folder with the modprobe.d files of this case's site, or None."""
        folder = self.folder / "site"
        return folder if folder.is_dir() else None

    def script(self, name):
        """The path of one of the case's own scripts, or None."""
        path = self.folder / name
        return path if path.is_file() else None


KINDS = {
    "summary": str,
    "cmdline": str,
    "ends": str,
    "kernels": list,
    "everywhere": bool,
    "systemd": bool,
    "drivers": str,
    "network": str,
    "storage": str,
    "disk": str,
    "beside": list,
    "compared": bool,
    "uncompared": list,
    "nics": int,
    "names": str,
    "firmware": str,
    "ibft": bool,
    "fabric": str,
    "pci": int,
    "far_here": bool,
    "crash": bool,
    "cables_out": list,
    "thorough": list,
    "time_limit": (int, float),
    "result": str,
    "reason": str,
    "check_exit": int,
    "console": list,
    "console_not": list,
    "kmsg": list,
    "kmsg_not": list,
    "diagnoses": list,
    "action": list,
}
ACTIONS = ("cable_in", "cable_out", "device_del", "type")
ACTION_KINDS = {"when": str, "after": (int, float), **dict.fromkeys(ACTIONS, str)}


def checked(where, table, kinds, required):
    """Reject a missing or unknown key, or a value of the wrong type."""
    if missing := [key for key in required if key not in table]:
        raise Failed(f"{where}: {missing[0]}: missing")
    for key, value in table.items():
        if key not in kinds:
            raise Failed(f"{where}: {key}: no such key; the keys are {', '.join(kinds)}")
        words = value if isinstance(value, list) and key != "action" else ()
        if not isinstance(value, kinds[key]) or not all(isinstance(word, str) for word in words):
            raise Failed(f"{where}: {key}: wrong type of value: {value!r}")
    return table


def compiled(where, pattern):
    """The pattern; one that is none is a fault of the case, found before a boot."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise Failed(f"{where}: {pattern!r}: {error}") from error


def load(name):
    """Read one case; its name is its folder."""
    folder = CASES / name
    path = folder / "case.toml"
    if not path.is_file():
        raise Failed(f"{name}: no such case; qemu/run --list shows them")
    try:
        table = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise Failed(f"{path}: {error}") from error
    checked(path, table, KINDS, ("summary", "cmdline", "ends"))
    actions = []
    for entry in table.pop("action", []):
        checked(path, entry, ACTION_KINDS, ("when",))
        if entry.keys() <= {"when", "after"}:
            raise Failed(f"{path}: action: does nothing: expected one of {', '.join(ACTIONS)}")
        actions.append(Action(**dict(entry, when=compiled(path, entry["when"]))))
    if table["ends"] not in ENDS:
        raise Failed(f"{path}: ends: expected one of {', '.join(ENDS)}")
    for key in ("kernels", "thorough"):
        if unknown := [kernel for kernel in table.get(key, []) if kernel not in RELEASES]:
            raise Failed(f"{path}: {key}: {unknown[0]}: expected one of {', '.join(RELEASES)}")
    if table.pop("everywhere", False):
        table["kernels"] = [*table.get("kernels", Case.kernels), *OTHERS]
        table["thorough"] = [*table.get("thorough", ()), *OTHERS]
    if table.get("network", "systemd-networkd") not in NETWORK_SERVICES:
        raise Failed(f"{path}: network: expected one of {', '.join(NETWORK_SERVICES)}")
    if table.get("storage", "nfs") not in STORAGE:
        raise Failed(f"{path}: storage: expected one of {', '.join(STORAGE)}")
    if table.get("disk", "raid") not in DISKS:
        raise Failed(f"{path}: disk: expected one of {', '.join(DISKS)}")
    if "disk" in table and (table.get("storage") in (None, "live") or "network" in table):
        raise Failed(f"{path}: disk: expected with storage, not live, and without network")
    if table.get("disk") == "raid" and table["storage"] != "iscsi":
        raise Failed(f"{path}: disk: expected raid with storage iscsi only")
    if unknown := [name for name in table.get("beside", []) if name not in NEIGHBOURS]:
        raise Failed(f"{path}: beside: {unknown[0]}: expected one of {', '.join(NEIGHBOURS)}")
    if table.get("names", "kernel") not in NAMES:
        raise Failed(f"{path}: names: expected one of {', '.join(NAMES)}")
    if table.get("firmware", "bios") not in LOADERS:
        raise Failed(f"{path}: firmware: expected one of {', '.join(LOADERS)}")
    if table.get("pci") and "fabric" not in table:
        raise Failed(f"{path}: pci: only HCAs of a fabric are PCI devices: add fabric")
    tuples = {key: tuple(value) for key, value in table.items() if isinstance(value, list)}
    patterns = [table.get("reason", "")]
    patterns += [pattern for key in ("console", "console_not", "kmsg", "kmsg_not", "diagnoses", "uncompared") for pattern in tuples.get(key, ())]
    for pattern in patterns:
        compiled(path, pattern)
    return Case(name=name, folder=folder, actions=tuple(actions), **{**table, **tuples})


def names():
    """All cases, by name."""
    return sorted(path.parent.name for path in CASES.glob("*/case.toml"))
