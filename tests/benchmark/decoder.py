# SPDX-License-Identifier: MIT OR Apache-2.0
"""The decoder: what a boot pays before the first message of another host is decoded."""

import json
import socket
import statistics
import subprocess
import time

from .table import MILLISECONDS, Unmeasured

RUNS = 15
BUDGET = 10e-3
GIVE_UP_SECONDS = 10

# An ARP request of 10.0.0.5 for 10.0.0.6.
ARP = bytes([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 5, 0, 0, 0, 0, 0, 0, 10, 0, 0, 6])
REQUEST = json.dumps({"format": "arp", "context": None, "bytes": ARP.hex(":")}).encode()


def start(program):
    """Seconds from the start of a decoder to its first answer, and to the second one after that."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.settimeout(GIVE_UP_SECONDS)
    with near, far:
        began = time.perf_counter()
        quiet = subprocess.DEVNULL
        process = subprocess.Popen([program, "worker", "decode"], stdin=far, stdout=quiet, stderr=quiet)
        far.close()
        near.send(REQUEST)
        confined, first = json.loads(near.recv(1 << 18)), json.loads(near.recv(1 << 18))
        answered = time.perf_counter()
        near.send(REQUEST)
        near.recv(1 << 18)
        again = time.perf_counter() - answered
    process.wait()
    if "Confined" not in confined or first["Decoded"]["sender_address"] != "10.0.0.5":
        raise Unmeasured(f"unexpected answers: {confined}, {first}")
    return answered - began, again


def measure(table, program):
    """Add the lines of the decoder."""
    firsts, others = zip(*[start(program) for _ in range(RUNS)])
    table.add("decoder: start, and the first message", MILLISECONDS, statistics.median(firsts), BUDGET)
    table.add("decoder: another message", MILLISECONDS, statistics.median(others))
