# SPDX-License-Identifier: MIT OR Apache-2.0
"""The gate opens when the required link is there; the other one is given up when the real root is next."""


def verify(boot):
    opened = boot.first(r"ibboot: 1 of 2 links verified ")
    dead = boot.first(r"ibboot: rxe1/1: verified")
    stopped = boot.first(r"ibboot: stopped by SIGTERM")
    if opened is None:
        yield "kmsg: the gate was not opened"
    if dead is not None:
        yield f"kmsg: {dead[1]}, without a cable"
    if stopped is None:
        yield "kmsg: ibboot up did not end by SIGTERM before the switch into the real root"
