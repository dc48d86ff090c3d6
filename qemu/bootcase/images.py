# SPDX-License-Identifier: MIT OR Apache-2.0
"""The initramfs and the root file system of a boot, built once for all cases that share them."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import debian, raid
from .arch import AMD64
from .paths import GUEST, PROJECT, QEMU_DIR, TARGET, Failed, cached, digest, remove, run

IMAGE_STEPS = QEMU_DIR / "image"
SCRIPTS = QEMU_DIR / "bench-cases" / "scripts"
DRACUT_MODULE = PROJECT / "dracut-module" / "50ibboot"
ROOT_UNITS = [PROJECT / "dracut-module" / name for name in ("ibboot-check.service", "ibboot-lease.service")]
TEXTFILE = PROJECT / "monitoring" / "systemd" / "textfile.conf"
SYSUSERS = PROJECT / "dracut-module" / "ibboot.sysusers"

# Only the drivers of a virtual machine with a virtio disk, and ext4: under emulation each megabyte
# costs time.
DRIVERS = "virtio_pci virtio_blk virtio_net ext4"
SYSTEMD = "systemd systemd-initrd dracut-systemd"
# For each protocol of a root file system: dracut's modules, and the kernel modules of the far end's
# server. Modules that code loads by name (checksums) are not among the dependencies.
STORAGE = {
    "nfs": ("nfs", "nfsd"),
    "iscsi": ("iscsi", "sd_mod iscsi_target_mod target_core_iblock ib_isert crc32c_generic crct10dif_generic"),
    "live": ("livenet", ""),
    "nbd": ("nbd", ""),
    "nvmf": ("nvmf", "nvmet_rdma crct10dif_generic"),
}
# Kernel modules in addition, for each kind of disk that is more than a file system.
DISKS = {"encrypted": "dm_crypt aes_generic xts sha512_generic", "raid": "raid0 target_core_file"}
# A warning or an error of dracut, of its program that copies, or of the shell that runs a module. dracut before
# 060 does not mark its warnings: tests/images.rs has it print nothing else.
WARNED = re.compile(r"^dracut\[[WEF]\]|^dracut-install: |^dracut: FAILED: |/module-setup\.sh: line")
# Ubuntu's kernels have ext4 built in. libsystemd-shared opens libraries that the suite does not require.
KNOWN = re.compile(r"\bext4'?$|could not locate dlopen dependency")
BASE = "base udev-rules kernel-modules rootfs-block fs-lib shutdown"

# Modules of dracut that an image has in addition, and no boot of it needs.
NEIGHBOURS = ("dmsquash-live", "iscsi", "multipath", "nbd", "nfs", "nvmf", "rdma")

# The network manager in addition to ibboot, and its service in the real root.
NETWORK_SERVICES = {"network-manager": "NetworkManager.service", "systemd-networkd": "systemd-networkd.service"}


@dataclass(frozen=True)
class Flavour:
    """The kind of initramfs: with or without systemd, with or without ibboot, for tests or as users
    build it."""

    systemd: bool = True
    ibboot: bool = True
    test: bool = True
    drivers: str | None = None
    site: str = ""
    network: str | None = None
    storage: str | None = None
    disk: str | None = None
    beside: tuple = ()
    # As built by kdump.
    dump: bool = False
    # A program of the benchmark: a dracut module of SCRIPTS, without its number.
    script: str | None = None


def binary(architecture=AMD64):
    """The program under test: IBBOOT, otherwise the last build of `make`; for another processor always
    that of tests/aarch64, which must not be older than the last build of `make`."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or PROJECT / "target")
    if architecture.target:
        found = target / architecture.target / "release" / "ibboot"
        if not found.is_file():
            raise debian.NotHere(f"{found}: not built: run make build TARGET={architecture.target}")
        host = target / "ibboot"
        if host.is_file() and found.stat().st_mtime < host.stat().st_mtime:
            raise debian.NotHere(f"{found}: older than {host}: run make aarch64")
        return found
    found = Path(os.environ.get("IBBOOT") or target / "ibboot")
    if not found.is_file():
        raise Failed(f"{found}: not built: run make, or name a binary in IBBOOT")
    return found


def require(architecture):
    """The error is NotHere if this machine cannot build and emulate guests with the processor."""
    binary(architecture)
    if not architecture.emulator:
        return
    if not shutil.which(architecture.qemu):
        raise debian.NotHere(f"{architecture.qemu} is not installed here (Debian's package {architecture.package})")
    emulated = debian.emulated(architecture)
    try:
        run([*emulated, "true"])
    except Failed as error:
        raise debian.NotHere(f"no user namespace with binfmt_misc (Linux 6.7 or later): {error}") from error


def dracut_arguments(release, flavour):
    """The arguments of dracut, one word per entry."""
    modules = f"{SYSTEMD} {BASE}" if flavour.systemd else BASE
    drivers = DRIVERS
    # Without a named module dracut would include any network manager of its host.
    if network := flavour.network or ((flavour.storage or flavour.beside) and release.network):
        modules += f" {network} network"
    if flavour.storage:
        more = STORAGE[flavour.storage]
        modules += f" {more[0]}"
        drivers += f" {more[1]}"
    if flavour.disk:
        modules += f" {release.crypt}" if flavour.disk == "encrypted" else " mdraid"
        drivers += f" {DISKS[flavour.disk]}"
    modules += "".join(f" {name}" for name in flavour.beside)
    if flavour.ibboot:
        modules += " ibboot"
    if flavour.test:
        modules += " ibboot-test"
    if flavour.script:
        modules += f" {flavour.script}"
    # An image with ibboot gets these drivers from its module.
    more = f" {flavour.drivers}" if flavour.drivers and not flavour.ibboot else ""
    words = ["--modules", modules, "--drivers", drivers + more, "--filesystems", "ext4"]
    if not flavour.systemd:
        words += ["--omit", SYSTEMD]
    return words


def purpose_of(flavour):
    """The root tree with the programs that dracut copies, or `builder`: the host has no programs that
    manage networks or mount a network root."""
    if flavour.disk:
        return flavour.disk
    if flavour.beside or flavour.storage == "nbd":
        return "neighbours"
    if flavour.storage:
        return "live" if flavour.storage == "live" else "storage"
    return "network" if flavour.network else "builder"


def guest_modules(flavour):
    """The harness's own dracut modules of an image."""
    found = [GUEST / "99ibboot-test"] if flavour.test else []
    found += [GUEST / "90kernel-network-modules"] if flavour.storage or flavour.beside else []
    return found + [GUEST / "50rdma"] if "rdma" in flavour.beside else found


def initramfs(release, flavour, site=None):
    """The path of an initramfs; `site` is a folder of modprobe.d files of a site."""
    kernel = debian.kernel(release)
    program = binary(release.architecture)
    parts = [kernel.name, *dracut_arguments(release, flavour), flavour.drivers or "", IMAGE_STEPS / "initramfs.sh"]
    purpose = purpose_of(flavour)
    builder = debian.tree(release, purpose) if release.chroot_dracut or purpose != "builder" else None
    parts.append(builder.parent.name if builder else debian.installed_dracut())
    if flavour.ibboot:
        parts += [DRACUT_MODULE, program]
    parts += guest_modules(flavour)
    if flavour.script:
        parts.append(SCRIPTS)
    if site:
        parts.append(site)
    # mkdumprd of kdump-utils sets this for dracut's modules.
    environment = {"IN_KDUMP": "1"} if flavour.dump else {}
    parts += environment

    def build(work):
        for folder in ("modules", "modprobe.d", "bin"):
            (work / folder).mkdir()
        place = Path("/mnt") if builder else work
        conf = ""
        if flavour.ibboot:
            shutil.copytree(DRACUT_MODULE, work / "modules" / "50ibboot")
            shutil.copy2(program, work / "bin" / "ibboot")
            conf += f'ibboot_binary="{place}/bin/ibboot"\n'
        if flavour.drivers is not None:
            conf += f'ibboot_drivers="{flavour.drivers}"\n'
        for module in guest_modules(flavour):
            shutil.copytree(module, work / "modules" / module.name)
        if flavour.script:
            shutil.copytree(SCRIPTS, work / "modules", dirs_exist_ok=True)
        if site:
            shutil.copytree(site, work / "modprobe.d", dirs_exist_ok=True)
        (work / "conf").write_text(conf)
        (work / "arguments").write_text("".join(f"{word}\n" for word in dracut_arguments(release, flavour)))
        shutil.copy2(IMAGE_STEPS / "initramfs.sh", work)
        # In a user namespace, /sys of the initial network namespace cannot be mounted.
        argv = [*debian.emulated(release.architecture), "unshare", "--mount", "--net", "bash", work / "initramfs.sh", work, kernel]
        if builder:
            argv.append(builder)
        log = TARGET / f"dracut-{name}.log"
        run(argv, log=log, env=os.environ | environment)
        # dracut ends with success although the image cannot boot.
        if warned := [line for line in log.read_text().splitlines() if WARNED.search(line) and not KNOWN.search(line)]:
            raise Failed(f"{name}: {warned[0]}")
        for folder in ("dracut", "tmp", "confdir", "modules", "modprobe.d"):
            remove(work / folder)

    name = f"initramfs-{release.kernel}-{flavour_name(flavour)}"
    return cached(name, digest(*parts), build) / "initramfs.img"


def flavour_name(flavour):
    """A name for the cache. The key tells apart images that differ only in drivers or site
    files."""
    words = ["systemd" if flavour.systemd else "nosystemd"]
    if not flavour.ibboot:
        words.append("without")
    if not flavour.test:
        words.append("plain")
    if flavour.drivers is not None:
        words.append("drivers")
    if flavour.storage:
        words.append(flavour.storage)
    if flavour.disk:
        words.append(flavour.disk)
    if flavour.site:
        words.append(flavour.site)
    if flavour.network:
        words.append(flavour.network)
    words += ["beside"] if flavour.beside else []
    if flavour.dump:
        words.append("dump")
    if flavour.script:
        words.append(flavour.script)
    return "-".join(words)


def root(release, network=None):
    """The path of an ext4 image with a small Debian, ibboot as installed by `make install`, and the
    script that checks the boot; `network`, if given, runs in the image."""
    kernel = debian.kernel(release)
    tree = debian.tree(release, "network" if network else "root")
    program = binary(release.architecture)
    modules = debian.module_files(kernel, ["rdma_rxe", "ib_umad", "rdma_ucm", "ib_uverbs", "virtio_net"])
    added = [
        (program, "sbin/ibboot"),
        *((unit, f"lib/systemd/system/{unit.name}") for unit in ROOT_UNITS),
        (SYSUSERS, "lib/sysusers.d/ibboot.conf"),
        (TEXTFILE, "share/doc/ibboot/monitoring/systemd/textfile.conf"),
        (GUEST / "99ibboot-test" / "export.sh", "lib/ibboot-test/export.sh"),
        (GUEST / "99ibboot-test" / "show.sh", "lib/ibboot-test/show.sh"),
        (GUEST / "98ibboot-fabric" / "79-softib-names.rules", "lib/udev/rules.d/79-softib-names.rules"),
        (GUEST / "root-run.sh", "lib/ibboot-test/root-run.sh"),
        (GUEST / "ibboot-test.service", "lib/systemd/system/ibboot-test.service"),
        (GUEST / "ibboot-test.target", "lib/systemd/system/ibboot-test.target"),
    ]
    services = [NETWORK_SERVICES[network]] if network in NETWORK_SERVICES else []

    def build(work):
        put = work / "add" / "usr"
        for source, place in added:
            (put / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, put / place)
        (work / "modules").write_text("".join(f"{path}\n" for path in modules))
        run(["bash", IMAGE_STEPS / "root.sh", work, tree, kernel, *services], log=TARGET / f"{name}.log")
        remove(work / "add")

    name = f"{release.architecture.prefix}root-{release.suite}" + (f"-{network}" if network else "")
    parts = [part for pair in added for part in pair] + [str(path) for path in modules] + services
    return cached(name, digest(kernel.name, tree.parent.name, IMAGE_STEPS / "root.sh", *parts), build) / "root.ext4"


def live(release):
    """The path of an ext4 image with `root.squashfs` in it: the root file system as a live
    image."""
    tree = debian.tree(release, "live")
    whole = root(release)

    def build(work):
        argv = [*debian.emulated(release.architecture), "unshare", "--mount", "bash", IMAGE_STEPS / "live.sh", work, whole, tree]
        run(argv, log=TARGET / f"{name}.log")

    name = f"{release.architecture.prefix}live-{release.suite}"
    key = digest(whole.parent.name, tree.parent.name, IMAGE_STEPS / "live.sh")
    return cached(name, key, build) / "live.ext4"


def encrypted(release):
    """The path of a LUKS image of the root file system, with the identifier and the key of
    encrypted.sh."""
    tree = debian.tree(release, "encrypted")
    whole = root(release)

    def build(work):
        argv = [*debian.emulated(release.architecture), "unshare", "--mount", "bash", IMAGE_STEPS / "encrypted.sh", work, whole, tree]
        run(argv, log=TARGET / f"{name}.log")

    name = f"{release.architecture.prefix}encrypted-{release.suite}"
    key = digest(whole.parent.name, tree.parent.name, IMAGE_STEPS / "encrypted.sh")
    return cached(name, key, build) / "encrypted.img"


def raid_members(release):
    """The path of an ext4 image with the files `half0` and `half1`: the members of a RAID with the root file system."""
    whole = root(release)

    def build(work):
        small, halves = work / "small.ext4", work / "disk"
        run(["cp", "--sparse=always", whole, small])
        run(["resize2fs", "-f", "-M", small])
        halves.mkdir()
        raid.split(small, [halves / "half0", halves / "half1"])
        run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", halves, work / "raid.ext4", "1G"])
        remove(halves)
        small.unlink()

    name = f"{release.architecture.prefix}raid-{release.suite}"
    return cached(name, digest(whole.parent.name, Path(raid.__file__)), build) / "raid.ext4"


def disk(release, case):
    """The path of the disk of a case."""
    if case.disk == "encrypted":
        return encrypted(release)
    if case.disk == "raid":
        return raid_members(release)
    return live(release) if case.storage == "live" else root(release, case.network)


def newc(files):
    """A cpio archive (newc) of {name: bytes}, appended to an initramfs: the kernel unpacks all
    archives in order."""
    out = bytearray()
    folders = sorted({str(parent) for name in files for parent in Path(name).parents if str(parent) != "."})
    entries = [(name, 0o040755, b"") for name in folders]
    entries += [(name, 0o100755, data) for name, data in sorted(files.items())]
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        fields = [number if mode else 0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        out += b"\0" * (-len(out) % 4)
        out += data
        out += b"\0" * (-len(out) % 4)
    return bytes(out)


def kernel_image(release):
    """The path of the kernel to boot."""
    folder = debian.kernel(release)
    return folder / "boot" / f"vmlinuz-{debian.kernel_version(folder)}"
