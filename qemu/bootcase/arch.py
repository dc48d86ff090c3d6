# SPDX-License-Identifier: MIT OR Apache-2.0
"""The processors of guests: everything that depends on them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """`name`: Debian's. `prefix`: of names in the cache. `qemu`, `machine`, `cpu`: the program, its
    machine, and the processor under emulation. `console`: the guest's first serial port. `files`:
    QEMU's arguments for the second one, /dev/ttyS1 in the guest. `words`: arguments of the kernel.
    `package`, `emulator`, `target`, only of a processor that the host does not have: Debian's
    package of `qemu`, the program of Debian's package qemu-user-static, and Rust's name."""

    name: str
    prefix: str
    qemu: str
    machine: str
    cpu: str
    console: str
    files: tuple
    words: str
    package: str = ""
    emulator: str = ""
    target: str = ""


AMD64 = Architecture(
    name="amd64",
    prefix="",
    qemu="qemu-system-x86_64",
    machine="q35",
    # With ERMS the kernel clears pages by "rep stosb", which is emulated byte by byte.
    cpu="max,-erms",
    console="ttyS0,115200",
    files=("-serial", "chardev:files"),
    words=" tsc=reliable no_timer_check",
)
ARM64 = Architecture(
    name="arm64",
    prefix="arm64-",
    qemu="qemu-system-aarch64",
    machine="virt",
    # Debian's kernel signs return addresses, and the emulator computes their cipher in software.
    cpu="max,pauth=off",
    console="ttyAMA0,115200",
    # The console is a PL011; the first port of the PCI card remains unused.
    files=("-device", "pci-serial-2x,chardev2=files"),
    words="",
    package="qemu-system-arm",
    emulator="qemu-aarch64-static",
    target="aarch64-unknown-linux-musl",
)
