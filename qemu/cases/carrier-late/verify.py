# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the kernel's word that the port is active to ours that the link is verified: an event, not a poll."""

WAITED_AT_LEAST = 15.0
# Ours is an event away and the look without an event comes every 15 s; emulation on a busy machine takes its share.
EVENT = 1.0


def verify(boot):
    start = boot.first(r"boot-test: initramfs")
    active = next(((when, text) for when, text in reversed(boot.kmsg) if "rxe0: set active" in text and when < verified_at(boot)), None)
    if start is None or active is None:
        yield "kmsg: no line of the start or of the kernel's 'rxe0: set active' before ours"
        return
    if active[0] - start[0] < WAITED_AT_LEAST:
        yield f"the port was active {active[0] - start[0]:.1f} s after the start: the cable was not out"
    late = verified_at(boot) - active[0]
    if late > EVENT:
        yield f"verified {late * 1000:.0f} ms after the kernel reported active: more than {EVENT * 1000:.0f} ms"


def verified_at(boot):
    found = boot.first(r"ibboot: rxe0/1: verified")
    return found[0] if found else 0.0
