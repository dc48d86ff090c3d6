# SPDX-License-Identifier: MIT OR Apache-2.0
"""The size that the dracut module adds to an initramfs."""

import re

from bootcase import debian, images
from bootcase.paths import run

from .binary import compressed
from .table import MEBIBYTES, MIB

# The zstd command of dracut.
DRACUT_LEVEL = 15
GROWTH_BUDGET = 1.0 * MIB
MODULES_BUDGET = 12 * MIB
BUDGET_DRIVERS = ["mlx4_ib", "mlx5_ib", "ib_ipoib", "ib_umad", "rdma_ucm"]
MODULE = re.compile(r"^-\S+\s+\d+\s+\S+\s+\S+\s+(\d+) .*?([^/ ]+\.ko)(?:\.\w+)?$", re.M)


def modules_in(image):
    """{file name: bytes} of the kernel modules in an uncompressed initramfs."""
    listing = run(["cpio", "--list", "--verbose", "--quiet", "--file", image])
    return {name: int(size) for size, name in MODULE.findall(listing)}


def sizes(image):
    """(size, compressed size) in bytes of an uncompressed initramfs."""
    data = image.read_bytes()
    return len(data), len(compressed(data, DRACUT_LEVEL))


def measure(table, release):
    """Three images: without ibboot, with ibboot but without its kernel modules, and as users build
    it."""
    without = images.initramfs(release, images.Flavour(test=False, ibboot=False))
    bare = images.initramfs(release, images.Flavour(test=False, drivers=""))
    whole = images.initramfs(release, images.Flavour(test=False))

    (base_raw, base_packed), (raw, packed) = sizes(without), sizes(bare)
    table.add("growth of the image, zstd, without kernel modules", MEBIBYTES, packed - base_packed, GROWTH_BUDGET)
    table.note(
        f"image without ibboot {base_raw / MIB:.2f} MiB, zstd -{DRACUT_LEVEL} {base_packed / MIB:.2f} MiB;"
        f" ibboot adds {(raw - base_raw) / MIB:.2f} MiB, {(packed - base_packed) / MIB:.2f} MiB of zstd"
    )
    before = modules_in(bare)
    added = {name: size for name, size in modules_in(whole).items() if name not in before}
    files = debian.module_files(debian.kernel(release), BUDGET_DRIVERS)
    closure = {path.name.partition(".ko")[0] + ".ko" for path in files}
    wanted = {name: size for name, size in added.items() if name in closure}
    rest = {name: size for name, size in added.items() if name not in closure}
    table.add("kernel modules: mlx4, mlx5, IPoIB, umad, ucm", MEBIBYTES, sum(wanted.values()), MODULES_BUDGET)
    table.add("kernel modules: all of the default list", MEBIBYTES, sum(added.values()))
    table.note(f"kernel modules that the budget counts: {listed(wanted)}")
    table.note(f"kernel modules beyond it: {listed(rest)}")


def listed(modules):
    """The lines of the table, largest first."""
    ordered = sorted(modules.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{name.removesuffix('.ko')} {size / 1024:.0f} KiB" for name, size in ordered) or "none"
