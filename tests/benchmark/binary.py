# SPDX-License-Identifier: MIT OR Apache-2.0
"""The program as a file: static, stripped, small."""

import re
import subprocess

from .table import MB, MEGABYTES, MIB, Unmeasured

BUDGET = 2.2 * MB


def readelf(binary, *options):
    """The output of readelf for the program."""
    try:
        done = subprocess.run(["readelf", "-W", *options, str(binary)], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unmeasured(f"readelf: {error}") from error
    return done.stdout


def kind(binary):
    """`static-pie, stripped`; Unmeasured for any other kind of file, which the budget does not
    cover."""
    header, segments = readelf(binary, "-h"), readelf(binary, "-l")
    faults = []
    if not re.search(r"Type:\s+DYN", header):
        faults.append("is not position independent")
    if re.search(r"^\s+INTERP\s", segments, re.M):
        faults.append("needs an interpreter")
    if needed := re.findall(r"\(NEEDED\).*\[(.+)\]", readelf(binary, "-d")):
        faults.append(f"needs {', '.join(needed)}")
    if ".symtab" in readelf(binary, "-S"):
        faults.append("is not stripped")
    if faults:
        raise Unmeasured(f"{binary}: {'; '.join(faults)}")
    return "static-pie, stripped, no interpreter, no NEEDED"


def compressed(data, level):
    """`data` compressed by zstd."""
    argv = ["zstd", "--quiet", "--stdout", f"-{level}", "-T0"]
    try:
        return subprocess.run(argv, input=data, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unmeasured(f"zstd: {error}") from error


def measure(table, binary):
    """The two lines of the table."""
    shape = kind(binary)
    size = binary.stat().st_size
    libc = "musl" if "-musl" in str(binary.resolve()) else "glibc"
    table.add(f"binary ({libc}, {shape})", MEGABYTES, size, BUDGET)
    table.add("binary, zstd -19", MEGABYTES, len(compressed(binary.read_bytes(), 19)))
    table.note(f"binary: {size} bytes, {size / MIB:.2f} MiB")
