# SPDX-License-Identifier: MIT OR Apache-2.0
"""The link is verified by the look that follows every 15 s without an event."""

BETWEEN_LOOKS = 15.0


def verify(boot):
    active = boot.first(r"softib softib\.0 softib0: port 1: ACTIVE")
    verified = boot.first(r"ibboot: softib0/1: verified: ")
    if active is None or verified is None:
        yield f"kmsg: ACTIVE {active}, verified {verified}: expected both"
    elif verified[0] - active[0] > BETWEEN_LOOKS + 1:
        yield f"verified {verified[0] - active[0]:.1f} s after ACTIVE, expected at most {BETWEEN_LOOKS:.0f} s"
