# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the kernel that saved the dump left: the last log that was carried out is its own."""

import re


def verify(boot):
    """ibboot did nothing, and its image has no more drivers than links need."""
    if boot.text("out/dump.txt") is None:
        return
    if boot.first("ibboot: "):
        yield f"the kernel that saves the dump: {boot.first('ibboot: ')[1]}"
    # systemd makes the directory for ibboot.service; ls of an empty directory prints nothing.
    listed = boot.text("out/dump-ibboot.txt")
    if listed is None or (listed and "No such file" not in listed):
        yield f"/run/ibboot has files: {listed}"
    modules = re.findall(r"/([\w-]+)\.ko", boot.text("out/dump-modules.txt") or "")
    if missing := {"mlx4_ib", "mlx5_ib", "ib_ipoib"} - set(modules):
        yield f"not in the image: {missing}"
    if more := {"ib_umad", "rdma_ucm", "rdma_rxe", "siw"} & set(modules):
        yield f"in the image: {more}"
    if "ib_core" in (boot.text("out/dump-loaded.txt") or ""):
        yield "ib_core was loaded"
