# SPDX-License-Identifier: MIT OR Apache-2.0
"""The unit writes nothing of the kernel and of the image, and has three capabilities and a system call filter. Outside of
the unit the same files can be written: the comparison shows that the test can fail."""

EROFS = "Read-only file system"
KERNEL = ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/class/net/lo/ifalias")
IMAGE = ("/new", "/dev/new")
FOR_DRACUT = ("/run/new", "/etc/new", "/tmp/new")
# CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW: linux/capability.h, bits 10, 12, 13.
POWER = {
    "CapBnd": "0000000000003400",
    "CapEff": "0000000000003400",
    "CapPrm": "0000000000003400",
    "NoNewPrivs": "1",
    "Seccomp": "2",
}


def verify(boot):
    lines = (boot.text("out/sandbox.txt") or "").splitlines()
    pairs = (line.partition(":") for line in lines if not line.startswith(("inside", "outside")))
    found = {name: value.strip() for name, _, value in pairs}
    if found != POWER:
        yield f"/proc/PID/status of ibboot up: {found}, expected {POWER}"
    for file in (*KERNEL, *IMAGE, *FOR_DRACUT):
        inside = "writable" if file in FOR_DRACUT else EROFS
        for line in (f"outside: {file}: writable", f"inside: {file}: {inside}"):
            if line not in lines:
                yield f"sandbox.txt: no line {line!r}"
